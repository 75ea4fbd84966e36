"""The Coriolis matrix B of a moving body, which is made of its velocity and its inertia.

    B = 1/2 (v x* I - I v x + (I v) x-bar*)        v x* I v = B v        dI/dt = B + B^T

For points of mass m at r that move with u, B x = sum of [r x; 1] m (omega_x x u): it depends on the angular
part of x alone, and is twelve numbers, which add up over the bodies of a subtree.

Source: S. Echeandia, P. M. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel
symbols for rigid-body systems", 2021, for B; the sum over points follows from it.
"""

from __future__ import annotations

from robokit.spatial.inertia import RigidInertia
from robokit.spatial.plucker import Force, Motion, Transform
from robokit.spatial.scalars import Scalar
from robokit.spatial.vector3 import Matrix3, Symmetric3, Vector3


class CoriolisInertia:
    """B = [[K, 0], [-p x, 0]] with K = sum of m ((r . u) 1 - u r^T) and the momentum p = sum of m u."""

    __slots__ = ("K", "p")

    def __init__(self, K: Matrix3, p: Vector3) -> None:
        self.K, self.p = K, p

    @staticmethod
    def of(I: RigidInertia, v: Motion) -> CoriolisInertia:
        """That of the body I that moves with v."""
        A = I.Ibar
        half = (A.xx + A.yy + A.zz) * 0.5
        J = Symmetric3(half - A.xx, half - A.yy, half - A.zz, -A.xy, -A.xz, -A.yz)  # sum of m r r^T
        flow = Matrix3([[x * h for h in I.h] for x in v.lin]) + Matrix3.skew(v.ang) @ J.full()
        return CoriolisInertia(_diagonal(I.h.dot(v.lin)) - flow, v.lin * I.m + v.ang.cross(I.h))

    def __add__(self, other: CoriolisInertia) -> CoriolisInertia:
        return CoriolisInertia(self.K + other.K, self.p + other.p)

    def __matmul__(self, x: Motion) -> Force:
        """B x."""
        return Force(self.K @ x.ang, x.ang.cross(self.p))

    def transpose_apply(self, x: Motion) -> Force:
        """B^T x; its linear part is zero."""
        return Force(self.K.transpose_apply(x.ang) + self.p.cross(x.lin), Vector3.zero())

    def congruence(self, X: Transform) -> CoriolisInertia:
        """X^T B X."""
        p = X.E.transpose_apply(self.p)
        moved = Matrix3([[a * b for b in X.r] for a in p])
        return CoriolisInertia(X.E.T @ self.K @ X.E + (_diagonal(X.r.dot(p)) - moved), p)


def _diagonal(x: Scalar) -> Matrix3:
    return Matrix3(((x, 0.0, 0.0), (0.0, x, 0.0), (0.0, 0.0, x)))
