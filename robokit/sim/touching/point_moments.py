"""Moments of weights at points, and the spatial inertias and forces they add up to.

All that a body's contacts do to it enters through the sum of w, w p and w p p^T over its points: the
cost of a contact is a handful of multiplications, however the 6 x 6 matrices are used afterwards.
"""

from __future__ import annotations

from robokit.spatial import ArticulatedInertia, Force, Matrix3, RigidInertia, Symmetric3, Vector3
from robokit.spatial.scalars import Scalar


def outer(a: Vector3) -> Symmetric3:
    """a a^T."""
    return Symmetric3(a.x * a.x, a.y * a.y, a.z * a.z, a.x * a.y, a.x * a.z, a.y * a.z)


class Moments:
    """Sum of w, of w p and of w p p^T."""

    __slots__ = ("s0", "s1", "s2")

    def __init__(self, s0: Scalar = 0.0, s1: Vector3 | None = None, s2: Symmetric3 | None = None) -> None:
        self.s0 = s0
        self.s1 = Vector3.zero() if s1 is None else s1
        self.s2 = Symmetric3.zero() if s2 is None else s2

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.s0 + other.s0, self.s1 + other.s1, self.s2 + other.s2)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.s0 - other.s0, self.s1 - other.s1, self.s2 - other.s2)

    def __mul__(self, s: Scalar) -> Moments:
        return Moments(self.s0 * s, self.s1 * s, Symmetric3(*(x * s for x in self.s2)))

    @staticmethod
    def of(w: Scalar, p: Vector3) -> Moments:
        """One weight at one point."""
        return Moments(w, p * w, Symmetric3(*(x * w for x in outer(p))))


def isotropic(c: Moments) -> ArticulatedInertia:
    """Sum of the inertias of point masses c at p: forces c u against the points' velocities u."""
    trace = c.s2.xx + c.s2.yy + c.s2.zz
    s = c.s2
    Ibar = Symmetric3(trace - s.xx, trace - s.yy, trace - s.zz, -s.xy, -s.xz, -s.yz)
    return RigidInertia(c.s0, c.s1, Ibar).articulated()


def along(g: Moments, n: Vector3) -> ArticulatedInertia:
    """Sum of g [p x n; n] [p x n; n]^T: forces g (n . u) n."""
    a = g.s1.cross(n)
    nn = outer(n)
    return ArticulatedInertia(
        g.s2.rotated(Matrix3.skew(-n)),
        Matrix3([[x * y for y in n] for x in a]),
        Symmetric3(*(x * g.s0 for x in nn)),
    )


def push(w: Moments, n: Vector3, z: Scalar) -> Force:
    """Sum of -w phi [p x n; n], where phi = n . p + z."""
    total = -(n.dot(w.s1) + z * w.s0)
    moment = -(w.s2 @ n + w.s1 * z)
    return Force(moment.cross(n), n * total)
