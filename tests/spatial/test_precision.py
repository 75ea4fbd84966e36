"""Constants that follow the precision of the code."""

import numpy as np
import pytest

from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import for_range, in_precision, rounding, smallest


def scaled(n, x, out):
    out[0] = for_range(n, lambda k, so_far: so_far + x[k], 0.0) * in_precision(0.5, 0.25)
    out[1] = -in_precision(0.5, 0.25)


KERNEL = LoopKernel("scaled", scaled, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (2,), "out")])


@pytest.mark.parametrize(("dtype", "share"), [("float64", 0.5), ("float32", 0.25)])
def test_code_of_each_precision_has_its_own_constant(dtype, share):
    x = np.array([[1.0, 2.0, 4.0], [8.0, 0.0, 0.0]])
    for given in (x[0], x):
        out = KERNEL(x=given, dtype=dtype)["out"]
        np.testing.assert_array_equal(out[..., 0], share * given.sum(axis=-1))
        np.testing.assert_array_equal(out[..., 1], -share)
    rate = KERNEL.forward("x")(x=x[0], dx=np.ones(3), dtype=dtype)["dout"]
    np.testing.assert_array_equal(rate, [3.0 * share, 0.0])


def test_plain_numbers_are_double():
    assert KERNEL(x=np.ones(3), engine="python")["out"].tolist() == [1.5, -0.5]
    assert rounding(1e-14) == 1e-14 and smallest() == 1e-300


def test_a_bound_of_rounding_is_as_many_roundings_in_each_precision():
    def bounds(out):
        out[0], out[1], out[2] = rounding(1e-14), rounding(1e-10, 0.5), smallest()

    kernel = LoopKernel("bounds", bounds, [], [ArrayOf("out", (3,), "out")])
    eps = np.finfo(np.float32).eps / np.finfo(np.float64).eps
    np.testing.assert_allclose(kernel(dtype="float64")["out"], [1e-14, 1e-10, 1e-300], rtol=1e-15)
    single = kernel(dtype="float32")["out"]
    np.testing.assert_allclose(single, [1e-14 * eps, 1e-10 * eps**0.5, 1e-36], rtol=1e-6)
    assert 1.0 / single[2] < np.inf
