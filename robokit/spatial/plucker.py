"""Motion and force vectors and the Plücker transforms between coordinate frames.

Source: RBDA chapter 2; dynamics notes eq. 11. Angular part first. A transform is kept as (E, r):
B's axes from A's by the coordinate rotation E, B's origin at r in A; no 6 x 6 matrix is formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self

from robokit.spatial.scalars import Scalar
from robokit.spatial.vector3 import Matrix3, Vector3


class Inertia(Protocol):
    """What stands between X^T and X: :mod:`robokit.spatial.inertia` has a rigid and an articulated one."""

    def congruence(self, X: Transform) -> Any:
        """X^T I X."""


class _Vector6:
    """What motions and forces have in common: an angular and a linear part, sums and multiples."""

    __slots__ = ("ang", "lin")

    def __init__(self, ang: Vector3, lin: Vector3) -> None:
        self.ang, self.lin = ang, lin

    @classmethod
    def zero(cls) -> Self:
        """The null vector."""
        return cls(Vector3.zero(), Vector3.zero())

    def __iter__(self) -> Iterator[Scalar]:
        yield from self.ang
        yield from self.lin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ang}, {self.lin})"

    def __add__(self, other: Self) -> Self:
        return type(self)(self.ang + other.ang, self.lin + other.lin)

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.ang - other.ang, self.lin - other.lin)

    def __neg__(self) -> Self:
        return type(self)(-self.ang, -self.lin)

    def __mul__(self, s: Scalar) -> Self:
        return type(self)(self.ang * s, self.lin * s)

    __rmul__ = __mul__


class Motion(_Vector6):
    """Spatial motion vector [omega; v]: velocity or acceleration."""

    __slots__ = ()

    def dot(self, f: Force) -> Scalar:
        """Power of the force f on this velocity."""
        return self.ang.dot(f.ang) + self.lin.dot(f.lin)

    def cross(self, m: Motion) -> Motion:
        """Motion cross product, v x m."""
        return Motion(self.ang.cross(m.ang), self.ang.cross(m.lin) + self.lin.cross(m.ang))

    def cross_force(self, f: Force) -> Force:
        """Force cross product, v x* f."""
        return Force(self.ang.cross(f.ang) + self.lin.cross(f.lin), self.ang.cross(f.lin))


class Force(_Vector6):
    """Spatial force vector [n; f]: force or momentum."""

    __slots__ = ()


class Transform:
    """Plücker transform X = rot(E) xlt(r) from A to B coordinates.

    ``X @ m`` takes motions from A to B, ``X.T @ f`` takes forces from B back to A,
    ``X.T @ I @ X`` takes an inertia from B to A, ``X2 @ X1`` is first X1, then X2.
    """

    __slots__ = ("E", "r")

    def __init__(self, E: Matrix3, r: Vector3) -> None:
        self.E, self.r = E, r

    @staticmethod
    def identity() -> Transform:
        """No change of coordinates."""
        return Transform(Matrix3.identity(), Vector3.zero())

    @property
    def T(self) -> TransposedTransform:
        """X^T, which acts on forces and, with X behind, on inertias."""
        return TransposedTransform(self)

    def inverse(self) -> Transform:
        """From B to A coordinates."""
        return Transform(self.E.T, -(self.E @ self.r))

    def __matmul__(self, other):
        """X m of a motion, or the transform that first does ``other``."""
        if isinstance(other, Motion):
            return Motion(self.E @ other.ang, self.E @ (other.lin - self.r.cross(other.ang)))
        return Transform(self.E @ other.E, other.r + other.E.transpose_apply(self.r))

    def back(self, m: Motion) -> Motion:
        """X^-1 m: a motion from B to A coordinates."""
        ang = self.E.transpose_apply(m.ang)
        return Motion(ang, self.E.transpose_apply(m.lin) + self.r.cross(ang))

    def star(self, f: Force) -> Force:
        """X* f: a force from A to B coordinates."""
        return Force(self.E @ (f.ang - self.r.cross(f.lin)), self.E @ f.lin)

    def point(self, p: Vector3) -> Vector3:
        """Coordinates in A of the point p given in B."""
        return self.r + self.E.transpose_apply(p)


class TransposedTransform:
    """X^T of a :class:`Transform`: ``X.T @ f`` and ``X.T @ I @ X``."""

    __slots__ = ("X",)

    def __init__(self, X: Transform) -> None:
        self.X = X

    def __matmul__(self, other):
        """X^T f for a force; for an inertia, the left half of the congruence X^T I X."""
        if isinstance(other, Force):
            f = self.X.E.transpose_apply(other.lin)
            return Force(self.X.E.transpose_apply(other.ang) + self.X.r.cross(f), f)
        return _HalfCongruence(self.X, other)


class _HalfCongruence:
    """X^T I, waiting for the X on its right: only the whole product has the structure worth using."""

    __slots__ = ("I", "X")

    def __init__(self, X: Transform, I: Inertia) -> None:
        self.X, self.I = X, I

    def __matmul__(self, X: Transform):
        if X is not self.X:
            raise TypeError("X.T @ I @ X needs the same transform on both sides")
        return self.I.congruence(X)
