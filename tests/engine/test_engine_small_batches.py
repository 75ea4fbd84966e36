"""Batches of few states go through the builtin; what it does not take goes the slow way, to equal ends."""

from __future__ import annotations

import numpy as np
import pytest

from robokit.engine import Kernel
from robokit.errors import ShapeError


def text(x, y):
    return [[x[0] * y[k % 2] + k for k in range(24)], [x[0] + x[1] + x[2]]]


@pytest.fixture(scope="module")
def kernel():
    made = Kernel.build("few", [("x", 3), ("y", 2)], [("a", (2, 3, 4)), ("b", ())], text)
    made.batch(np.zeros((1, 3)), np.zeros((1, 2)))  # the builtin is there from now on
    return made


@pytest.fixture
def given():
    rng = np.random.default_rng(2)
    return rng.standard_normal((7, 3)), rng.standard_normal((7, 2))


@pytest.mark.parametrize("rows", [1, 2, 5, 7])
def test_it_takes_few_states_and_agrees(kernel, given, rows):
    x, y = (g[:rows] for g in given)
    few = kernel._few(x, y)
    assert few is not None, "the builtin refused what it should take"
    for ours, slow in zip(few, kernel.batch(x, y), strict=True):
        assert ours.shape == slow.shape and ours.flags.owndata
        np.testing.assert_array_equal(ours, slow)


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
    assert kernel._few(x, y) is None
    expected = kernel.batch(x, y)
    for ours, slow in zip(kernel(x, y), expected, strict=True):
        np.testing.assert_array_equal(ours, slow)


def test_other_numbers_of_states_and_nan_are_refused_in_words(kernel, given):
    x, y = given
    with pytest.raises(ShapeError, match="y: expected a batch of 7 like x, got 6"):
        kernel(x, y[:6])
    x = x.copy()
    x[4, 1] = np.nan
    with pytest.raises(ShapeError, match=r"x: expected finite numbers, got nan at x\[4, 1\]"):
        kernel(x, y)


def test_many_states_are_left_to_the_threads(kernel):
    rows = kernel._runner.few + 1
    assert kernel._few(np.zeros((rows, 3)), np.zeros((rows, 2))) is None
