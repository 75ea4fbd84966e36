"""Vectors of three scalars and rotation matrices, 6-vectors and Plücker transforms, inertias of bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, Self

from robokit.spatial.scalars import Scalar, where


class Vector3:
    """Three scalars. Immutable; ``+ - *`` act as on paper, ``cross`` and ``dot`` by name."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Scalar, y: Scalar, z: Scalar) -> None:
        self.x, self.y, self.z = x, y, z

    @staticmethod
    def zero() -> Vector3:
        """The null vector."""
        return Vector3(0.0, 0.0, 0.0)

    def __iter__(self) -> Iterator[Scalar]:
        yield self.x
        yield self.y
        yield self.z

    def __repr__(self) -> str:
        return f"({self.x}, {self.y}, {self.z})"

    def __add__(self, other: Vector3) -> Vector3:
        return Vector3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector3) -> Vector3:
        return Vector3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vector3:
        return Vector3(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vector3:
        return Vector3(self.x * s, self.y * s, self.z * s)

    __rmul__ = __mul__

    def dot(self, other: Vector3) -> Scalar:
        """self . other."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vector3) -> Vector3:
        """self x other."""
        return Vector3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )


def chosen(condition: Scalar, a: Vector3, b: Vector3) -> Vector3:
    """a where the condition holds, else b."""
    return Vector3(*(where(condition, s, t) for s, t in zip(a, b, strict=True)))


class Matrix3:
    """3 x 3 matrix of scalars, row by row; rotations E are of this type."""

    __slots__ = ("rows",)

    def __init__(self, rows: Iterable[Iterable[Scalar]]) -> None:
        a, b, c = rows
        self.rows = (tuple(a), tuple(b), tuple(c))

    @staticmethod
    def identity() -> Matrix3:
        """The unit matrix."""
        return Matrix3(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))

    @staticmethod
    def zero() -> Matrix3:
        """The null matrix."""
        return Matrix3(((0.0,) * 3,) * 3)

    @staticmethod
    def skew(r: Vector3) -> Matrix3:
        """r x as a matrix."""
        return Matrix3(((0.0, -r.z, r.y), (r.z, 0.0, -r.x), (-r.y, r.x, 0.0)))

    def __getitem__(self, index: tuple[int, int]) -> Scalar:
        return self.rows[index[0]][index[1]]

    @property
    def T(self) -> Matrix3:
        """Transpose."""
        return Matrix3(zip(*self.rows, strict=True))

    def __add__(self, other: Matrix3) -> Matrix3:
        return Matrix3(
            [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(self.rows, other.rows, strict=True)]
        )

    def __sub__(self, other: Matrix3) -> Matrix3:
        return Matrix3(
            [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(self.rows, other.rows, strict=True)]
        )

    def __mul__(self, s: Scalar) -> Matrix3:
        return Matrix3([[x * s for x in row] for row in self.rows])

    __rmul__ = __mul__

    def __matmul__(self, other):
        """Matrix times vector or matrix."""
        if isinstance(other, Vector3):
            return Vector3(*(a * other.x + b * other.y + c * other.z for a, b, c in self.rows))
        columns = tuple(zip(*other.rows, strict=True))
        return Matrix3([[a * d + b * e + c * f for d, e, f in columns] for a, b, c in self.rows])

    def transpose_apply(self, v: Vector3) -> Vector3:
        """E^T v without building E^T."""
        (a, b, c), (d, e, f), (g, h, i) = self.rows
        return Vector3(a * v.x + d * v.y + g * v.z, b * v.x + e * v.y + h * v.z, c * v.x + f * v.y + i * v.z)


class Symmetric3:
    """Symmetric 3 x 3 matrix: six scalars xx, yy, zz, xy, xz, yz."""

    __slots__ = ("xx", "xy", "xz", "yy", "yz", "zz")

    def __init__(self, xx: Scalar, yy: Scalar, zz: Scalar, xy: Scalar, xz: Scalar, yz: Scalar) -> None:
        self.xx, self.yy, self.zz, self.xy, self.xz, self.yz = xx, yy, zz, xy, xz, yz

    @staticmethod
    def zero() -> Symmetric3:
        """The null matrix."""
        return Symmetric3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def diagonal(a: Scalar) -> Symmetric3:
        """The unit matrix, a times."""
        return Symmetric3(a, a, a, 0.0, 0.0, 0.0)

    @staticmethod
    def upper(m: Matrix3) -> Symmetric3:
        """Upper triangle of a matrix that is known to be symmetric."""
        return Symmetric3(m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2])

    @staticmethod
    def of_products(P: Matrix3, Q: Matrix3, R: Matrix3, S: Matrix3) -> Symmetric3:
        """Upper triangle of P Q^T + R S^T, where that is known to be symmetric."""
        first, second = (
            [a * d + b * e + c * f for k, (a, b, c) in enumerate(left.rows) for d, e, f in right.rows[k:]]
            for left, right in ((P, Q), (R, S))
        )
        xx, xy, xz, yy, yz, zz = (x + y for x, y in zip(first, second, strict=True))
        return Symmetric3(xx, yy, zz, xy, xz, yz)

    def full(self) -> Matrix3:
        """All nine entries."""
        return Matrix3(
            ((self.xx, self.xy, self.xz), (self.xy, self.yy, self.yz), (self.xz, self.yz, self.zz))
        )

    def __iter__(self) -> Iterator[Scalar]:
        yield from (self.xx, self.yy, self.zz, self.xy, self.xz, self.yz)

    def __add__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(
            self.xx + other.xx,
            self.yy + other.yy,
            self.zz + other.zz,
            self.xy + other.xy,
            self.xz + other.xz,
            self.yz + other.yz,
        )

    def __sub__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(*(a - b for a, b in zip(self, other, strict=True)))

    def __matmul__(self, v: Vector3) -> Vector3:
        """Matrix times vector."""
        return Vector3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def rotated(self, E: Matrix3) -> Symmetric3:
        """E^T A E, six entries of it, where E is a rotation."""
        for k in range(3):
            if _is(E[k, k], 1.0) and all(_is(E[k, j], 0.0) and _is(E[j, k], 0.0) for j in range(3) if j != k):
                return self._turned(E, k)
        (a, b, c), (d, e, f), (g, h, i) = E.rows
        # T = A E, column by column; then the upper triangle of E^T T.
        t0 = self @ Vector3(a, d, g)
        t1 = self @ Vector3(b, e, h)
        t2 = self @ Vector3(c, f, i)
        return Symmetric3(
            a * t0.x + d * t0.y + g * t0.z,
            b * t1.x + e * t1.y + h * t1.z,
            c * t2.x + f * t2.y + i * t2.z,
            a * t1.x + d * t1.y + g * t1.z,
            a * t2.x + d * t2.y + g * t2.z,
            b * t2.x + e * t2.y + h * t2.z,
        )

    def _turned(self, E: Matrix3, k: int) -> Symmetric3:
        """E A E^T for a rotation E about coordinate axis k, at half the products: two of the rows mix."""
        i, j = (k + 1) % 3, (k + 2) % 3
        A, c, s = self.full(), E[i, i], E[i, j]
        if _is(c, 1.0) and _is(s, 0.0):  # the cosine of a hundred-millionth of a turn is 1 too
            return self
        a, b, d = A[i, i], A[j, j], A[i, j]
        w = s * (b - a) - 2.0 * c * d
        entries = {
            (i, i): a + s * w,
            (j, j): b - s * w,
            (k, k): A[k, k],
            (i, j): -(c * w) - d,
            (i, k): c * A[i, k] - s * A[j, k],
            (j, k): s * A[i, k] + c * A[j, k],
        }
        entries |= {(n, m): value for (m, n), value in entries.items()}
        return Symmetric3(*(entries[place] for place in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))


def _is(x: Scalar, number: float) -> bool:
    """Whether a scalar is a constant of this value, whatever the configuration."""
    return isinstance(x, (int, float)) and x == number


# Motion and force vectors and the Plücker transforms between coordinate frames
# -----------------------------------------------------------------------------
#
# Source: RBDA chapter 2; dynamics notes eq. 11. Angular part first. A transform is kept as (E, r):
# B's axes from A's by the coordinate rotation E, B's origin at r in A; no 6 x 6 matrix is formed.


class Inertia(Protocol):
    """What stands between X^T and X: the inertia of a rigid or of an articulated body."""

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

    def without(self, axes: tuple[int, ...]) -> Self:
        """The vector with these entries exactly 0."""
        a, b, c, d, e, f = (0.0 if k in axes else x for k, x in enumerate(self))
        return type(self)(Vector3(a, b, c), Vector3(d, e, f))


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


# Rigid-body inertia (m, h, Ī) and articulated-body inertia (symmetric 6 x 6 in three blocks)
# -------------------------------------------------------------------------------------------
#
# Source: RBDA sections 2.13 and 7.1, tables A.1-A.2. Both map motion to force and are taken from B to A
# coordinates by the congruence X^T I X; neither is ever a dense 6 x 6 matrix.


class RigidInertia:
    """Spatial inertia of a rigid body: mass m, first moment h = m c, rotational inertia about the origin."""

    __slots__ = ("Ibar", "h", "m")

    def __init__(self, m: Scalar, h: Vector3, Ibar: Symmetric3) -> None:
        self.m, self.h, self.Ibar = m, h, Ibar

    @staticmethod
    def zero() -> RigidInertia:
        """No body at all."""
        return RigidInertia(0.0, Vector3.zero(), Symmetric3.zero())

    @staticmethod
    def about_com(m: Scalar, c: Vector3, Ic: Symmetric3) -> RigidInertia:
        """From mass, centre of mass and rotational inertia about the centre of mass."""
        h = c * m
        return RigidInertia(m, h, Ic + _shift(h, c))

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.m + other.m, self.h + other.h, self.Ibar + other.Ibar)

    def __matmul__(self, v: Motion) -> Force:
        """I v."""
        return Force(self.Ibar @ v.ang + self.h.cross(v.lin), v.lin * self.m - self.h.cross(v.ang))

    def congruence(self, X: Transform) -> RigidInertia:
        """X^T I X (RBDA eq. 2.66)."""
        k = X.E.transpose_apply(self.h)
        h = k + X.r * self.m
        return RigidInertia(self.m, h, self.Ibar.rotated(X.E) + _shift(k + h, X.r))

    def articulated(self) -> ArticulatedInertia:
        """The inertia as an articulated-body inertia, a symmetric 6 x 6."""
        return ArticulatedInertia(self.Ibar, Matrix3.skew(self.h), Symmetric3.diagonal(self.m))


def _shift(a: Vector3, r: Vector3) -> Symmetric3:
    """The symmetric part of -(a x) (r x): what moving a body by r adds, with a = the first moments' sum."""
    sx, sy, sz = r.x * 0.5, r.y * 0.5, r.z * 0.5
    px, py, pz = a.x * r.x, a.y * r.y, a.z * r.z
    return Symmetric3(
        py + pz, px + pz, px + py, -(a.x * sy + a.y * sx), -(a.x * sz + a.z * sx), -(a.y * sz + a.z * sy)
    )


class ArticulatedInertia:
    """Symmetric 6 x 6 [[A, B], [B^T, M]]: f = [A omega + B v; B^T omega + M v]."""

    __slots__ = ("A", "B", "M")

    SIZE = 21

    def __init__(self, A: Symmetric3, B: Matrix3, M: Symmetric3) -> None:
        self.A, self.B, self.M = A, B, M

    def __iter__(self) -> Iterator[Scalar]:
        """The entries of A, of B by rows and of M."""
        yield from self.A
        for row in self.B.rows:
            yield from row
        yield from self.M

    @staticmethod
    def of(entries: Sequence[Scalar]) -> ArticulatedInertia:
        """From its 21 entries."""
        B = Matrix3([entries[k : k + 3] for k in (6, 9, 12)])
        return ArticulatedInertia(Symmetric3(*entries[:6]), B, Symmetric3(*entries[15:]))

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.A + other.A, self.B + other.B, self.M + other.M)

    def __matmul__(self, v: Motion) -> Force:
        """I v."""
        return Force(self.A @ v.ang + self.B @ v.lin, self.B.transpose_apply(v.ang) + self.M @ v.lin)

    def minus_outer(self, U: Force, W: Force) -> ArticulatedInertia:
        """I - U W^T, where W is a multiple of U or one term of a symmetric sum."""

        def outer(a: Vector3, b: Vector3) -> Symmetric3:
            return Symmetric3(a.x * b.x, a.y * b.y, a.z * b.z, a.x * b.y, a.x * b.z, a.y * b.z)

        cross = Matrix3([[a * b for b in W.lin] for a in U.ang])
        return ArticulatedInertia(self.A - outer(U.ang, W.ang), self.B - cross, self.M - outer(U.lin, W.lin))

    def without(self, axes: tuple[int, ...]) -> ArticulatedInertia:
        """The inertia with these rows and columns exactly 0.

        The articulated-body algorithm knows I^a S = 0; a difference of equal products would be
        rounding noise, and work that a tracer cannot see to be void.
        """
        ang = [0.0 if i in axes else 1.0 for i in range(3)]
        lin = [0.0 if i + 3 in axes else 1.0 for i in range(3)]

        def kept(S: Symmetric3, k: list[float]) -> Symmetric3:
            x, y, z = k
            return Symmetric3(
                *(a if b else 0.0 for a, b in zip(S, (x, y, z, x * y, x * z, y * z), strict=True))
            )

        B = Matrix3(
            [
                [b if a * l else 0.0 for b, l in zip(row, lin, strict=True)]
                for row, a in zip(self.B.rows, ang, strict=True)
            ]
        )
        return ArticulatedInertia(kept(self.A, ang), B, kept(self.M, lin))

    def congruence(self, X: Transform) -> ArticulatedInertia:
        """X^T I X: rotate the blocks, then shift the origin (RBDA table A.2)."""
        A, M = self.A.rotated(X.E), self.M.rotated(X.E)
        B = X.E.T @ self.B @ X.E
        rx = Matrix3.skew(X.r)
        B2 = B + rx @ M.full()
        return ArticulatedInertia(A + Symmetric3.of_products(rx, B, B2, rx), B2, M)


# ---- the Coriolis matrix of a moving body --------------------------------------------------------
# B is made of the body's velocity v and its inertia I:
#
#     B = 1/2 (v x* I - I v x + (I v) x-bar*)        v x* I v = B v        dI/dt = B + B^T
#
# For points of mass m at r that move with u, B x = sum of [r x; 1] m (omega_x x u): it depends on the angular
# part of x alone, and is twelve numbers, which add up over the bodies of a subtree.
#
# Source: S. Echeandia, P. M. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel
# symbols for rigid-body systems", 2021, for B; the sum over points follows from it.


class CoriolisInertia:
    """B = [[K, 0], [-p x, 0]] with K = sum of m ((r . u) 1 - u r^T) and the momentum p = sum of m u."""

    __slots__ = ("K", "p")

    def __init__(self, K: Matrix3, p: Vector3) -> None:
        self.K, self.p = K, p

    @staticmethod
    def of(I: RigidInertia, v: Motion) -> CoriolisInertia:
        """B of a body of inertia I that moves with the velocity v."""
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
