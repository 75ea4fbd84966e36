"""Moments of weights at points, and the spatial inertias and forces they add up to.

What a body's contacts do to it in all directions alike enters through the sum of c, c p and c p p^T over its
points p, and what they do along the normal n through that of g, g a and g a a^T over their arms a = p x n:
the cost of a contact is a handful of multiplications, however the 6 x 6 matrices are used afterwards.
"""

from __future__ import annotations

from robokit.spatial import ArticulatedInertia, Matrix3, RigidInertia, Symmetric3, Vector3
from robokit.spatial.scalars import Scalar


def outer(a: Vector3) -> Symmetric3:
    """a a^T."""
    return Symmetric3(a.x * a.x, a.y * a.y, a.z * a.z, a.x * a.y, a.x * a.z, a.y * a.z)


class Moments:
    """Sum of w, of w p and of w p p^T: of weights at points, or at arms."""

    __slots__ = ("s0", "s1", "s2")

    def __init__(self, s0: Scalar = 0.0, s1: Vector3 | None = None, s2: Symmetric3 | None = None) -> None:
        self.s0 = s0
        self.s1 = Vector3.zero() if s1 is None else s1
        self.s2 = Symmetric3.zero() if s2 is None else s2

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.s0 + other.s0, self.s1 + other.s1, self.s2 + other.s2)

    @staticmethod
    def of(w: Scalar, p: Vector3) -> Moments:
        """One weight at one point."""
        wp = p * w
        return Moments(
            w, wp, Symmetric3(wp.x * p.x, wp.y * p.y, wp.z * p.z, wp.x * p.y, wp.x * p.z, wp.y * p.z)
        )


def isotropic(c: Moments) -> ArticulatedInertia:
    """Sum of the inertias of point masses c at p: forces c u against the points' velocities u."""
    trace = c.s2.xx + c.s2.yy + c.s2.zz
    s = c.s2
    Ibar = Symmetric3(trace - s.xx, trace - s.yy, trace - s.zz, -s.xy, -s.xz, -s.yz)
    return RigidInertia(c.s0, c.s1, Ibar).articulated()


def along(g: Moments, n: Vector3) -> ArticulatedInertia:
    """Sum of g [a; n] [a; n]^T, of the moments of g at the arms a = p x n: forces g (n . u) n at p."""
    return ArticulatedInertia(
        g.s2, Matrix3([[x * y for y in n] for x in g.s1]), Symmetric3(*(x * g.s0 for x in outer(n)))
    )
