"""Batches of few states go through the builtin; what it does not take goes the slow way, to equal ends."""

from __future__ import annotations

import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import robokit as rk
from robokit.engine import Kernel
from robokit.engine.memory import LINE_BYTES, address
from robokit.engine.single_calls import ALIGNED_FROM
from robokit.errors import InvalidValue, ShapeError

pytestmark = pytest.mark.usefixtures("compiled_well")


def function(x, y):
    return [[x[0] * y[k % 2] + k for k in range(24)], [x[0] + x[1] + x[2]]]


@pytest.fixture(scope="module")
def kernel():
    made = Kernel("few", [("x", 3), ("y", 2)], [("a", (2, 3, 4)), ("b", ())], function)
    made.batch(np.zeros((1, 3)), np.zeros((1, 2)))  # the builtin is there from now on
    return made


@pytest.fixture
def given():
    rng = np.random.default_rng(2)
    return rng.standard_normal((7, 3)), rng.standard_normal((7, 2))


@pytest.mark.parametrize("rows", [1, 2, 5, 7])
def test_it_takes_few_states_and_agrees(kernel, given, rows):
    x, y = (g[:rows] for g in given)
    few = kernel.few(x, y)
    assert few is not None, "the builtin refused what it should take"
    for ours, slow in zip(few, kernel.batch(x, y), strict=True):
        assert ours.shape == slow.shape and ours.flags.owndata
        np.testing.assert_array_equal(ours, slow)


def test_long_results_begin_at_a_cache_line_and_outlive_the_call(kernel):
    rows = kernel._runner.few
    x, y = np.arange(3.0 * rows).reshape(rows, 3), np.ones((rows, 2))
    kept = [kernel.few(x[:n], y[:n])[0] for n in range(rows - 8, rows + 1)]
    for ours, n in zip(kept, range(rows - 8, rows + 1), strict=True):
        assert ours.nbytes >= ALIGNED_FROM and address(ours) % LINE_BYTES == 0
        assert ours.flags.carray and ours.base.nbytes == ours.nbytes + LINE_BYTES
        np.testing.assert_array_equal(ours, kernel.batch(x[:n], y[:n])[0])


def test_long_results_leave_no_memory_behind(kernel):
    rows = kernel._runner.few
    x, y = np.ones((rows, 3)), np.ones((rows, 2))
    ours = kernel.few(x, y)[0]
    block = ours.base
    fresh = np.ones(3)
    assert sys.getrefcount(ours) == sys.getrefcount(fresh)
    died = weakref.ref(block)
    del ours, block
    assert died() is None
    x[0] = np.nan  # what was made for a call that is then refused
    tracemalloc.start()
    for _ in range(3):
        assert kernel.few(x, y) is None
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < ALIGNED_FROM


def test_it_writes_to_given_arrays(kernel, given):
    out = np.empty((7, 2, 3, 4)), np.empty(7)
    assert kernel(*given, out=out)[0] is out[0]
    np.testing.assert_array_equal(out[0], kernel.batch(*given)[0])


@pytest.mark.parametrize(
    "change",
    {
        "one state for all": lambda x, y: (x, y[0]),
        "rows of a wider array": lambda x, y: (np.hstack([x, x])[:, :3], y),
        "Fortran order": lambda x, y: (np.asfortranarray(x), y),
        "single precision": lambda x, y: (x.astype(np.float32), y),
        "lists": lambda x, y: (x.tolist(), y),
        "no states": lambda x, y: (x[:0], y[:0]),
    }.items(),
    ids=lambda item: item[0],
)
def test_what_it_does_not_take_goes_the_slow_way(kernel, given, change):
    x, y = change[1](*given)
    assert kernel.few(x, y) is None
    expected = kernel.batch(x, y)
    for ours, slow in zip(kernel(x, y), expected, strict=True):
        np.testing.assert_array_equal(ours, slow)


def test_other_numbers_of_states_and_nan_are_refused_in_words(kernel, given):
    x, y = given
    with pytest.raises(ShapeError, match="y: expected a batch of 7 like x, got 6"):
        kernel(x, y[:6])
    x = x.copy()
    x[4, 1] = np.nan
    with pytest.raises(InvalidValue, match=r"x: expected finite numbers, got nan at x\[4, 1\]"):
        kernel(x, y)


def test_many_states_are_left_to_the_threads(kernel):
    rows = kernel._runner.few + 1
    assert kernel.few(np.zeros((rows, 3)), np.zeros((rows, 2))) is None


def test_a_function_of_a_robot_goes_there_without_a_detour(monkeypatch):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    q, v = np.random.default_rng(3).standard_normal((2, 6, robot.nv))
    expected = rk.inverse_mass_matrix(robot, q), rk.rnea_derivatives(robot, q, v, v)
    assert type(robot.kernels["rnea_derivatives"].few) is type(len)

    def detour(*given, **choices):
        raise AssertionError("the slow way")

    monkeypatch.setattr(Kernel, "__call__", detour)
    out, outs = np.empty_like(expected[0]), [np.empty_like(x) for x in expected[1]]
    rk.inverse_mass_matrix(robot, q, out=out)
    rk.rnea_derivatives(robot, q, v, v, out=outs)
    again = rk.inverse_mass_matrix(robot, q)
    wanted = expected[0], *expected[1], expected[0]
    for ours, want in zip((out, *outs, again), wanted, strict=True):
        np.testing.assert_array_equal(ours, want)


def test_inertias_given_as_numbers_go_along():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    heavier = robot.with_inertias({robot.link_names[-1]: (5.0, None, None)})
    q = np.random.default_rng(4).standard_normal((6, robot.nv))
    out = np.empty((6, robot.nv, robot.nv))
    for _ in range(2):
        rk.crba(heavier, q, out=out)
        one_by_one = np.array([rk.crba(heavier, x) for x in q])
        np.testing.assert_allclose(out, one_by_one, rtol=1e-13)
        np.testing.assert_allclose(rk.crba(heavier, q), one_by_one, rtol=1e-13)
    assert abs(rk.crba(robot, q) - out).max() > 0.1
