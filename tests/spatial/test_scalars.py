"""One function, many scalars: floats, complex numbers, NumPy arrays, SymPy and types of one's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from values import array

from robokit.spatial import RigidInertia, Symmetric3, Transform, Vector3, scalars
from robokit.spatial.rotation import coordinate_rotation, quat_wxyz_to_rotation


def moved_inertia(angle, x):
    """A bit of everything: rotate, shift, congruence; the moment of inertia about the new z axis."""
    E = coordinate_rotation(Vector3(0.0, 0.6, 0.8), scalars.cos(angle), scalars.sin(angle))
    X = Transform(E, Vector3(x, 0.5 * x, 1.0))
    I = RigidInertia.about_com(2.0, Vector3(0.1, 0.2, 0.3), Symmetric3(0.3, 0.4, 0.5, 0.01, 0.02, 0.03))
    return (X.T @ I @ X).Ibar.zz


def test_arrays_are_scalars_of_a_whole_batch():
    angle, x = np.linspace(-3, 3, 7), np.linspace(0, 1, 7)
    got = moved_inertia(angle, x)
    assert got.shape == (7,)
    assert_allclose(
        got, [moved_inertia(a, b) for a, b in zip(angle.tolist(), x.tolist(), strict=True)], rtol=1e-14
    )


def test_complex_step_gives_the_derivative():
    h = 1e-30
    exact = moved_inertia(0.7 + 1j * h, 0.4 + 0j).imag / h
    difference = (moved_inertia(0.7 + 1e-6, 0.4) - moved_inertia(0.7 - 1e-6, 0.4)) / 2e-6
    assert exact == pytest.approx(difference, rel=1e-8)


def test_sympy_scalars_through_the_same_text():
    sp = pytest.importorskip("sympy")
    a, x = sp.symbols("a x", real=True)
    expression = moved_inertia(a, x)
    value = expression.subs({a: 0.7, x: 0.4})
    assert float(value) == pytest.approx(moved_inertia(0.7, 0.4), rel=1e-12)
    slope = sp.diff(expression, a).subs({a: 0.7, x: 0.4})
    assert float(slope) == pytest.approx(moved_inertia(0.7 + 1e-30j, 0.4).imag / 1e-30, rel=1e-12)


def test_sympy_proves_that_a_unit_quaternion_gives_a_rotation():
    sp = pytest.importorskip("sympy")
    w, x, y, z = sp.symbols("w x y z", real=True)
    R = sp.Matrix(quat_wxyz_to_rotation((w, x, y, z)).rows)
    n = w**2 + x**2 + y**2 + z**2
    defect = (R * R.T - sp.eye(3)).applyfunc(
        lambda e: sp.rem(sp.expand(sp.nsimplify(e)), sp.expand(n - 1), w)
    )
    assert defect == sp.zeros(3, 3)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, lambda x: np.array([x, x])])
def test_functions_of_real_scalars(kind):
    x = kind(0.3)
    for name in ("sin", "cos", "sqrt"):
        assert_allclose(getattr(scalars, name)(x), getattr(math, name)(0.3), rtol=1e-6)
    assert_allclose(scalars.atan2(x, 1.0), math.atan2(0.3, 1.0), rtol=1e-6)
    assert_allclose(scalars.atan2(1.0, x), math.atan2(1.0, 0.3), rtol=1e-6)
    assert_allclose(scalars.where(x < 1.0, x, 2.0), 0.3, rtol=1e-6)
    assert_allclose(scalars.where(x > 1.0, x, 2.0), 2.0, rtol=1e-6)
    assert_allclose(scalars.maximum(x, 1.0), 1.0)
    assert_allclose(scalars.minimum(1.0, x), 0.3, rtol=1e-6)


def test_where_picks_lane_by_lane():
    assert scalars.where(np.array([True, False]), 1.0, np.array([2.0, 3.0])).tolist() == [1.0, 3.0]


def test_structural_zero_is_about_constants_only():
    assert scalars.is_zero(0.0) and scalars.is_zero(0) and scalars.is_zero(-0.0)
    assert not scalars.is_zero(1e-300)
    assert not scalars.is_zero(np.zeros(2))
    assert not scalars.is_zero(0j)


class Dual:
    """A number with its derivative: the smallest scalar type of one's own."""

    def __init__(self, x, d):
        self.x, self.d = x, d

    def __add__(self, o):
        o = o if isinstance(o, Dual) else Dual(o, 0.0)
        return Dual(self.x + o.x, self.d + o.d)

    def __mul__(self, o):
        o = o if isinstance(o, Dual) else Dual(o, 0.0)
        return Dual(self.x * o.x, self.x * o.d + self.d * o.x)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, o):
        return self + (-o)

    def __rsub__(self, o):
        return -self + o


def test_an_unknown_scalar_type_is_refused_with_the_remedy_and_then_registered():
    with pytest.raises(TypeError, match=r"Dual.*register"):
        scalars.sin(Dual(0.1, 1.0))

    class Functions:
        sin = staticmethod(lambda a: Dual(math.sin(a.x), math.cos(a.x) * a.d))
        cos = staticmethod(lambda a: Dual(math.cos(a.x), -math.sin(a.x) * a.d))

    scalars.register(Dual, Functions)
    try:
        got = moved_inertia(Dual(0.7, 1.0), 0.4)
        assert got.x == pytest.approx(moved_inertia(0.7, 0.4), rel=1e-14)
        assert got.d == pytest.approx(moved_inertia(0.7 + 1e-30j, 0.4).imag / 1e-30, rel=1e-13)
    finally:
        scalars._TABLE.pop(Dual)


def test_zeros_of_a_coordinate_axis_survive_for_array_scalars():
    q = np.linspace(0, 1, 3)
    E = coordinate_rotation(Vector3(0.0, 0.0, 1.0), np.cos(q), np.sin(q))
    assert_allclose(np.stack([np.broadcast_to(e, 3) for e in E.rows[2]]), np.outer([0, 0, 1], np.ones(3)))
    assert array(Vector3.zero()).tolist() == [0, 0, 0]
