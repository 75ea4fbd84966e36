"""Every kernel on random robots, batch sizes and layouts against the plain-float run of its function."""

from __future__ import annotations

import math
import tracemalloc

import ladder
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import LAYOUTS, SHARE, arguments, robots, robots_of

from robokit.dynamics.build import example_key, flat_function, kernel
from robokit.dynamics.table import KERNELS
from robokit.engine import NotFinite, memory
from robokit.errors import InvalidValue

EXAMPLES = 3
ROWS = (0, 1, 3, 4, 5, 17, 33)
SOLVES = ("aba", "forward_dynamics", "ltdl", "hybrid", "inverse_mass", "floating_base_inverse")


def limit(robot, name, given) -> float:
    """1e-12 relative; where a system is solved, rounding is multiplied by its condition."""
    if not name.startswith(SOLVES) or not robot.nv or not len(given[0]):
        return 1e-12
    H = np.array([_matrix(robot, name, x) for x in zip(*given, strict=True)])
    return max(1e-12, 1e-14 * float(np.linalg.cond(H).max()))


def _matrix(robot, name, state):
    n = robot.nv
    if name == "ltdl":
        return state[0].reshape(n, n)
    if name == "ltdl_solve":
        L = state[0].reshape(n, n)
        return L.T @ np.diag(state[1]) @ L
    function = flat_function(KERNELS["crba"], robot)(state[0].tolist())
    return np.array(function[0]).reshape(n, n)


def plainly(robot, name, state) -> list[np.ndarray]:
    """The function on plain floats: one state."""
    results = flat_function(KERNELS[name], robot, example_key(KERNELS[name], robot))(
        *(x.tolist() for x in state)
    )
    return [np.array(x, float) for x in results]


def as_list(result) -> list[np.ndarray]:
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def assert_close(got, expected, tolerance):
    for a, b in zip(got, expected, strict=True):
        a = a.reshape(b.shape)
        assert np.abs(a - b).max(initial=0.0) <= tolerance * max(1.0, np.abs(b).max(initial=0.0))


def guarded(rows: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Room to write to, and the whole that it lies in, which must stay -7 around it."""
    size = rows * math.prod(shape)
    whole = np.full(size + 64, -7.0)
    return whole[32 : 32 + size].reshape(rows, *shape), whole


@pytest.mark.parametrize("name", SHARE)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_every_layout_of_every_batch_is_the_plain_text(name, data):
    robot = data.draw(robots_of(name))
    assume(robot.total_mass > 0.0 or not name.startswith("cent"))  # no moving body: no centre of mass
    rows = data.draw(st.sampled_from(ROWS))
    values = arguments(robot, KERNELS[name].inputs.split(), rows, data.draw(st.integers(0, 2**16)))
    given_ = [LAYOUTS[data.draw(st.sampled_from(list(LAYOUTS)))](x) for x in values]
    values = [np.array(x, dtype=float).reshape(y.shape) for x, y in zip(given_, values, strict=True)]
    run = kernel(robot, example_key(KERNELS[name], robot))
    got = as_list(run(*given_))
    shapes = [shape for _, shape in run.signature.outputs]
    assert [x.shape for x in got] == [(rows, *shape) for shape in shapes]
    for x, y in zip(given_, values, strict=True):
        assert (np.asarray(x, float).reshape(y.shape) == y).all()  # arguments are left alone
    tolerance = limit(robot, name, values)
    for k in {0, 1, 7, rows // 2, rows - 2, rows - 1} & set(range(rows)):
        state = [x[k] for x in values]
        expected = plainly(robot, name, state)
        assert_close([x[k] for x in got], expected, tolerance)
        if k in (0, rows - 1):
            assert_close(as_list(run(*state)), expected, tolerance)
    rooms = [guarded(rows, shape) for shape in shapes]
    returned = run(*given_, out=[room for room, _ in rooms] if len(rooms) > 1 else rooms[0][0])
    for x, y, (room, whole) in zip(as_list(returned), got, rooms, strict=True):
        assert x is room and (room == y).all()
        assert (whole[:32] == -7.0).all() and (whole[len(whole) - 32 :] == -7.0).all()


def test_a_large_batch_is_its_rows():
    robot, rows = ladder.random_tree(3, n=5), 4097
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(64)])[rng.integers(0, 64, rows)]
    v, a = rng.standard_normal((2, rows, robot.nv))
    got = kernel(robot, "rnea")(q, v, a)
    for k in (0, 1, 2047, 4088, 4095, 4096):
        assert_close([got[k]], plainly(robot, "rnea", [q[k], v[k], a[k]]), 1e-12)
    again = np.vstack(
        [kernel(robot, "rnea")(q[i : i + 7], v[i : i + 7], a[i : i + 7]) for i in range(0, rows, 7)]
    )
    assert (again == got).all()  # wherever a row stands in its tile and however many there are


@pytest.fixture(scope="module")
def robot():
    """Every kind of joint, on a floating base."""
    return ladder.random_tree(4, "floating", n=9)


@pytest.mark.parametrize(
    ("name", "bad"), [("rnea", np.nan), ("rnea", np.inf), ("aba", np.nan), ("aba", -np.inf)]
)
def test_a_lane_that_is_not_finite_leaves_the_others_alone(robot, name, bad):
    # The batch is refused, and what was written until then is right in all other rows, bit by bit.
    row = KERNELS[name]
    rows = 21
    run = kernel(robot, example_key(KERNELS[name], robot))
    for k in (0, 5, 15, 16, 20):
        values = arguments(robot, row.inputs.split(), rows, seed=k)
        clean = as_list(run(*values))
        for which in range(len(values)):
            broken = [x.copy() for x in values]
            broken[which][k, -1] = bad
            room = [np.zeros_like(x) for x in clean]
            with pytest.raises(InvalidValue, match=rf"^{row.inputs.split()[which]}: .*{bad} at"):
                run(*broken, out=room if len(room) > 1 else room[0])
            for x, y in zip(room, clean, strict=True):
                assert (np.delete(x, k, axis=0) == np.delete(y, k, axis=0)).all()


@pytest.mark.parametrize(("name", "argument"), [("rnea", "v"), ("aba", "v"), ("kinetic_energy", "v")])
def test_a_lane_that_overflows_leaves_the_others_alone(robot, name, argument):
    names = KERNELS[name].inputs.split()
    values = arguments(robot, names, 11, seed=1)
    run = kernel(robot, example_key(KERNELS[name], robot))
    clean = run(*values)
    values[names.index(argument)][6] = 1e200
    try:
        got = run(*values)
    except NotFinite as error:
        got = error.result
    assert not np.isfinite(got[6]).all()
    assert (np.delete(got, 6, axis=0) == np.delete(clean, 6, axis=0)).all()


def test_an_angle_beyond_the_sines_range_is_refused(robot):
    q = arguments(robot, ("q",), 9, seed=2)[0]
    angle = next(j.q_slice.start for j in robot.joints if j.kind == "revolute")
    for far in (1.2e9, 1e15, 1e300):
        q[4, angle] = far
        for states, where in ((q, f"4, {angle}"), (q[4], angle)):
            with pytest.raises(InvalidValue, match=rf"q: expected an angle.*at q\[{where}\]"):
                kernel(robot, "crba")(states)


@settings(max_examples=5)
@given(robots(kinds=("revolute", "continuous", "fixed")), st.integers(0, 2**16))
def test_angles_up_to_a_milliard_are_exact(robot, seed):
    rng = np.random.default_rng(seed)
    q, v, a = arguments(robot, ("q", "v", "a"), 5, seed)
    for joint in robot.joints:
        if joint.kind in ("revolute", "continuous"):
            q[:, joint.q_slice] = rng.choice([-1e9, -1e6, -1e3, 12345678.9, 1e9], (5, 1)) * rng.uniform(
                0.9, 1.0
            )
    got = kernel(robot, "rnea")(q, v, a)
    for k in range(5):
        assert_close([got[k]], plainly(robot, "rnea", [q[k], v[k], a[k]]), 1e-12)


def test_denormal_numbers_are_numbers(robot):
    # Nothing flushes them to zero, neither here nor for the caller afterwards.
    still = robot.with_gravity((0.0, 0.0, 0.0))
    q, v, a = arguments(still, ("q", "v", "a"), 5, seed=3)
    a *= 1e-309
    got = kernel(still, "rnea")(q, 0.0 * v, a)
    for k in range(5):
        expected = plainly(still, "rnea", [q[k], 0.0 * v[k], a[k]])[0]
        assert 0.0 < np.abs(expected).max() < 1e-305
        assert np.abs(got[k] - expected).max() < 1e-320
        assert np.abs(kernel(still, "rnea")(q[k], 0.0 * v[k], a[k]) - expected).max() < 1e-320
    assert np.float64(5e-324) * 1.0 > 0.0 and 1e-310 / 2.0 > 0.0


@pytest.mark.parametrize("layout", ["C", "columns of a wider array", "one row broadcast"])
def test_memory_is_the_output_and_little_more(robot, layout, no_baseline_code):
    robot.kernels.clear()  # none whose code a thread may compile well meanwhile, in memory that counts here
    values = arguments(robot, ("q", "v", "a"), 50, seed=4)
    values = [LAYOUTS[layout](np.tile(x, (400, 1))) for x in values]
    run = kernel(robot, "rnea")
    run(*values)
    kept = memory.limit()
    memory.set_limit(0)  # that of the first result is given back
    tracemalloc.start()
    try:
        result = run(*values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        memory.set_limit(kept)
    assert result.nbytes <= peak < result.nbytes + 100_000
