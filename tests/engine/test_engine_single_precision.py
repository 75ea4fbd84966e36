"""float32 kernels: arrays, shapes, refusals; sizes that are no multiple of a tile."""

from __future__ import annotations

import numpy as np
import pytest

from robokit.engine import Kernel
from robokit.errors import InvalidValue, ShapeError
from robokit.spatial.scalars import sin, sqrt, where


def function(x, y):
    total = x[0] + y[0] * y[1]
    rows = [sin(total) * y[k % 3] + 0.1 for k in range(20)]
    return [rows, [sqrt(x[1] * x[1] + 2.0), where(x[0] < y[0], x[0], 3.0)]]


def build(dtype):
    return Kernel("t", [("x", 2), ("y", 3)], [("a", (4, 5)), ("b", (2,))], function, dtype=dtype)


@pytest.fixture(scope="module")
def kernels():
    return build("float64"), build("float32")


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 31, 65])
def test_batches_agree_with_double_precision(kernels, rng, rows):
    x, y = rng.standard_normal((rows, 2)), rng.standard_normal((rows, 3))
    for exact, single in zip(*(kernel(x, y) for kernel in kernels), strict=True):
        assert single.dtype == np.float32 and single.shape == exact.shape
        np.testing.assert_allclose(single, exact, rtol=2e-6, atol=1e-6)


def test_one_state_is_a_batch_of_one(kernels, rng):
    x, y = rng.standard_normal((1, 2)), rng.standard_normal((1, 3))
    for one, many in zip(kernels[1](x[0], y[0]), kernels[1](x, y), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, many[0])


def test_rows_far_apart_shared_rows_and_no_rows(kernels, rng):
    wide = rng.standard_normal((9, 6)).astype(np.float32)
    y = wide[:, 3:]
    np.testing.assert_array_equal(
        kernels[1](wide[:, 1:3], y)[0], kernels[1](wide[:, 1:3].copy(), y.copy())[0]
    )
    np.testing.assert_array_equal(kernels[1](wide[0, 1:3], y)[0][4], kernels[1](wide[0, 1:3], y[4])[0])
    assert kernels[1](wide[:0, 1:3], y[:0])[0].shape == (0, 4, 5)


def test_out_must_be_single_too(kernels, rng):
    x, y = rng.standard_normal((3, 2)), rng.standard_normal((3, 3))
    out = np.empty((3, 4, 5), np.float32), np.empty((3, 2), np.float32)
    assert kernels[1](x, y, out=out)[0] is out[0]
    with pytest.raises(ShapeError, match=r"out\[0\]: expected float32 of shape \(3, 4, 5\), got float64"):
        kernels[1](x, y, out=(np.empty((3, 4, 5)), out[1]))


def test_a_number_too_large_for_single_precision_is_refused(kernels):
    with pytest.raises(InvalidValue, match=r"y: expected finite numbers, got inf at y\[1\]"):
        kernels[1](np.zeros(2), np.array([1.0, 1e39, 0.0]))
