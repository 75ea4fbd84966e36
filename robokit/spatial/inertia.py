"""Rigid-body inertia (m, h, Ī) and articulated-body inertia (symmetric 6 x 6 in three blocks).

Source: RBDA sections 2.13 and 7.1, tables A.1-A.2. Both map motion to force and are taken from B to A
coordinates by the congruence X^T I X; neither is ever a dense 6 x 6 matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robokit.spatial.plucker import Force, Motion, Transform
from robokit.spatial.scalars import Scalar
from robokit.spatial.vector3 import Matrix3, Symmetric3, Vector3


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
        A2 = A + Symmetric3.upper(rx @ B.T - B2 @ rx)
        return ArticulatedInertia(A2, B2, M)


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
