"""Shared code for repeated iterations: the same numbers as the plain function, for every algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import OF_EVERY_ROBOT, has_large_code

import robokit as rk
from robokit.dynamics.build import example_key, flat_function, kernel, outputs, sizes
from robokit.dynamics.table import KERNELS
from robokit.engine import Kernel, maker
from robokit.engine.kernel import ONE_STATE
from robokit.engine.passes import similarity
from robokit.engine.trace.record import trace
from robokit.model import ModelBuilder, Placement
from robokit.model.robot import quaternion_offsets

pytestmark = pytest.mark.slow

# Factorisations walk no tree of bodies, so their lines are never cut.
ALGORITHMS = [name for name in OF_EVERY_ROBOT if "ltdl" not in name and "forward_dynamics" not in name]


@pytest.fixture
def eager(monkeypatch, tmp_path):
    """Any saving is worth it, and nothing is cached from other tests."""
    monkeypatch.setattr(similarity, "WORTH", 0)
    monkeypatch.setattr(maker, "LONG", 0)
    monkeypatch.setattr(similarity, "LEAST", 2)
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def chain(n: int, base: str = "fixed", equal: bool = True) -> rk.Robot:
    """Links in a row, all the same or each with its own masses and lengths."""
    builder = ModelBuilder(f"chain{n}{base}{equal}").link("l0", 1.0, inertia=np.eye(3) * 0.1)
    for k in range(n):
        x = 0.0 if equal else 0.01 * k
        builder.link(f"l{k + 1}", 1.0 + x, (0.1, 0.02 + x, -0.3), np.diag([0.02, 0.03 + x, 0.02 + x]))
        kind = ("revolute", "prismatic", "spherical")[k % 3 if not equal else 0]
        place = Placement(np.eye(3), (0.0, 0.01, -0.5 - x))
        builder.joint(f"j{k}", kind, f"l{k}", f"l{k + 1}", place, axis=((1, 0, 0), (0, 1, 0))[k % 2])
    return builder.build(base=base)


def forks(n: int) -> rk.Robot:
    """A tree with random parents, axes, masses and placements."""
    rng = np.random.default_rng(n)
    builder = ModelBuilder(f"forks{n}").link("l0")
    for k in range(n):
        half = rng.standard_normal((3, 3)) * 0.1
        turned, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        turned *= np.linalg.det(turned)
        mass, com = rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3)
        builder.link(f"l{k + 1}", mass, com, half @ half.T + np.eye(3) * 0.02)
        place = Placement(turned, rng.uniform(-0.3, 0.3, 3))
        parent = f"l{rng.integers(max(0, k - 3), k + 1)}"
        builder.joint(f"j{k}", "revolute", parent, f"l{k + 1}", place, axis=rng.standard_normal(3))
    return builder.build()


ROBOTS = {
    "forks": lambda: forks(10),
    "equal links": lambda: chain(8),
    "other links, three kinds of joint": lambda: chain(12, "floating", equal=False),
    "humanoid": lambda: rk.load_urdf(rk.find_robot("humanoid"), base="floating"),
}


def arguments(robot, row, rng, rows):
    q = np.stack([robot.random_configuration(rng) for _ in range(rows)])
    return [q if n == "q" else rng.standard_normal((rows, size)) for n, size in sizes(row, robot)]


def build(robot, name, dtype="float64"):
    row = KERNELS[name]
    return Kernel(
        name,
        sizes(row, robot),
        outputs(row, robot),
        flat_function(row, robot, example_key(row, robot)),
        quaternions=[(0, k) for k in quaternion_offsets(robot)] if row.inputs.startswith("q") else [],
        finite=row.result.finite,
        dtype=dtype,
    )


EVERYWHERE = ("rnea", "crba", "aba", "centroidal_momentum")
"""Algorithms for all robots: sweeps outward, inward, both, and what they end in."""


def robots_for(name: str):
    """One robot where code is long, as of a matrix; a tree and a row of many kinds of joints for most."""
    if KERNELS[name].floating:
        return ["humanoid"]
    if has_large_code(name):
        return ["equal links"]
    return list(ROBOTS) if name in EVERYWHERE else ["forks", "other links, three kinds of joint"]


@pytest.mark.parametrize(("name", "robot"), [(x, y) for x in ALGORITHMS for y in robots_for(x)])
def test_every_algorithm_agrees_with_its_text(eager, robot, name, rng):
    robot = ROBOTS[robot]()
    kernel = build(robot, name)
    given = arguments(robot, KERNELS[name], rng, 6)
    answers = [kernel.python(*given), kernel(*given), kernel(*[a[4] for a in given])]
    for e, b, o in zip(*(a if isinstance(a, tuple) else (a,) for a in answers), strict=True):
        scale = np.abs(e).max()
        np.testing.assert_allclose(b, e, rtol=0, atol=1e-11 * scale)
        np.testing.assert_allclose(o, e[4], rtol=0, atol=1e-11 * scale)


def planned(n: int) -> similarity.Rerolled:
    robot, row = chain(n), KERNELS["aba"]
    inputs = sizes(row, robot)
    program = trace(flat_function(row, robot, example_key(row, robot)), inputs, outputs(row, robot))
    plan = similarity.rerolled(program, similarity.PIECE)
    assert plan is not None
    return plan


def test_code_does_not_grow_with_the_chain_and_memory_in_proportion(eager):
    short, long = planned(40), planned(80)
    assert short.written == long.written
    assert long.slots / 80 == pytest.approx(short.slots / 40, rel=0.1)


def test_constants_of_any_sign_share_code_once_their_signs_are_kept(eager):
    robot, row = forks(40), KERNELS["aba"]
    inputs = sizes(row, robot)
    plans = [
        similarity.rerolled(
            trace(flat_function(row, robot), inputs, outputs(row, robot), signed=s), similarity.PIECE
        )
        for s in (False, True)
    ]
    assert plans[0] is None
    assert plans[1] is not None and len(plans[1].steps) > 80


def test_a_short_line_stays_straight(monkeypatch):
    calls = []
    monkeypatch.setattr(maker, "rerolled", lambda *a: calls.append(similarity.rerolled(*a)))
    build(chain(12), "rnea")(*np.zeros((3, 12)))
    assert calls == [None]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_odd_batches_and_single_precision(eager, dtype, rng):
    robot = chain(12)
    kernel = build(robot, "rnea", dtype)
    for rows in (1, 3, 17):
        given = arguments(robot, KERNELS["rnea"], rng, rows)
        expected = build(robot, "rnea").python(*given)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(kernel(*given), expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_refusals_stay_the_same(eager):
    robot = chain(18, "floating", equal=False)
    kernel = build(robot, "aba")
    q, v, tau = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    with pytest.raises(rk.InvalidValue, match=r"v\[3\]"):
        kernel(q, np.where(np.arange(robot.nv) == 3, np.nan, v), tau)
    with pytest.raises(rk.InvalidValue, match="unit quaternion"):
        kernel(2.0 * q + 0.1, v, tau)


@pytest.mark.parametrize("name", ["constrained_dynamics", "operational_space_inertia"])
def test_what_is_short_already_is_not_recorded_again(name, monkeypatch):
    """With the constants' signs kept the code would be half of a hundredth."""
    robot = chain(300)
    record, asked = maker.Maker._record, []
    monkeypatch.setattr(maker.Maker, "_record", lambda *a, **how: (asked.append(how), record(*a, **how))[1])
    made = kernel(robot, example_key(KERNELS[name], robot))._maker.planned(ONE_STATE)
    assert made.shared is not None and 20 * made.shared.written < len(made.program.order)
    assert [how.get("signed", False) for how in asked] == [False]
