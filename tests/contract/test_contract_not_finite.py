"""NaN and infinity in any entry of any argument are noticed, and the argument is named."""

from __future__ import annotations

from functools import cache

import ladder
import numpy as np
import pytest
from for_each import for_each

import robokit as rk

ROBOTS = {
    "pendulum": ladder.pendulum,
    "chain": ladder.chain,
    "tree, floating": lambda: ladder.random_tree(0, "floating"),
    "humanoid, floating": lambda: rk.load_urdf(ladder.ROBOTS / "humanoid.urdf", base="floating"),
}
BAD = (np.nan, np.inf, -np.inf)


@cache
def made(name: str) -> rk.Robot:
    return ROBOTS[name]()


def state(name: str, rows: int | None, dtype: str) -> tuple[rk.Robot, dict[str, np.ndarray]]:
    robot = made(name)
    s = ladder.State(robot)
    given = {"q": s.q, "v": s.v, "a": s.a, "tau": s.tau, "f_ext": s.f_body}
    if rows is not None:
        given = {k: np.tile(x, (rows, *[1] * x.ndim)) for k, x in given.items()}
    return robot, {k: x.astype(dtype) for k, x in given.items()}


CALLS = {
    "rnea": (rk.rnea, ("q", "v", "a", "f_ext")),
    "aba": (rk.aba, ("q", "v", "tau", "f_ext")),
    "aba without forces": (rk.aba, ("q", "v", "tau")),
    "kinetic energy": (rk.kinetic_energy, ("q", "v")),
}


def refused(call, robot, names, given, which, place, bad, **how) -> None:
    """The call with one number replaced."""
    kept = given[which][place]
    given[which][place] = bad
    with pytest.raises(rk.InvalidValue) as caught:
        call(robot, *(given[name] for name in names), **how)
    assert str(caught.value).startswith(f"{which}: expected finite numbers, got {bad}"), place
    given[which][place] = kept


@for_each("call", CALLS)
@for_each("name", ROBOTS)
def test_every_entry_of_a_single_state_is_looked_at(name, call):
    robot, given = state(name, None, "float64")
    function, names = CALLS[call]
    out = function(robot, *(given[name] for name in names))
    for which in names:
        for k, place in enumerate(np.ndindex(given[which].shape)):
            for bad in BAD if k % 5 == 0 else BAD[k % 2 : k % 2 + 1]:
                refused(function, robot, names, given, which, place, bad)
    assert np.array_equal(function(robot, *(given[name] for name in names)), out)


@pytest.mark.parametrize("name", [r for r in ROBOTS if r != "pendulum"])
def test_every_entry_of_a_single_state_in_single_precision_is_looked_at(name):
    robot, given = state(name, None, "float32")
    function, names = CALLS["rnea"]
    function(robot, *(given[name] for name in names), dtype="float32")
    for which in names:
        for k, place in enumerate(np.ndindex(given[which].shape)):
            refused(function, robot, names, given, which, place, BAD[k % 3], dtype="float32")


@for_each("dtype", ["float64", "float32"])
@for_each("rows", [1, 3, 9, 17, 40])
@for_each("name", ["pendulum", "humanoid, floating"])
def test_every_entry_of_a_batch_is_looked_at(name, rows, dtype):
    robot, given = state(name, rows, dtype)
    function, names = CALLS["rnea"]
    function(robot, *(given[name] for name in names), dtype=dtype)
    rng = np.random.default_rng(rows)
    for which in names:
        size = given[which][0].size
        # The last entries of the first and of the last row, and some of any.
        ends = [(row, k) for row in (0, rows - 1) for k in range(max(0, size - 3), size)]
        some = rng.integers((rows, size), size=(6, 2)).tolist()
        for k, (row, entry) in enumerate([*ends, *some]):
            place = (row, *np.unravel_index(entry, given[which].shape[1:]))
            refused(function, robot, names, given, which, place, BAD[k % 3], dtype=dtype)


def test_every_number_of_a_wrench_is_looked_at():
    robot, given = state("tree, floating", None, "float64")
    for k in range(6):
        wrench = np.zeros(6)
        wrench[k] = np.nan
        for link in (robot.link_names[0], robot.link_names[-1]):
            message = rf"^f_ext\['{link}'\]: expected finite numbers, got nan at f_ext\['{link}'\]\[{k}\]"
            with pytest.raises(rk.InvalidValue, match=message):
                rk.rnea(robot, given["q"], given["v"], given["a"], {link: wrench})


def test_every_length_of_an_argument_is_looked_at_to_its_end():
    """Whatever the processor's vectors are: shorter than one, a few whole ones, some entries more."""
    for n in (*range(1, 20), 31, 33):
        b = rk.ModelBuilder("chain").link("link0")
        for k in range(1, n + 1):
            b.link(f"link{k}", 1.0, inertia=np.eye(3)).joint(f"j{k}", "prismatic", f"link{k - 1}", f"link{k}")
        robot = b.build()
        given = {"q": np.zeros(n), "v": np.ones(n)}
        rk.kinetic_energy(robot, *given.values())
        for which in given:
            for k in range(n):
                refused(rk.kinetic_energy, robot, ("q", "v"), given, which, k, BAD[k % 3])
