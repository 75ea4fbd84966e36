"""The constraint of a loop joint: how far it is from closed, and the rate of that.

    delta' = K qd        delta'' = K qdd + K' qd

delta is what the joint does not allow, 6 - n_f numbers, of the pose of its frame S on the successor as seen
from its frame P on the predecessor: r, the origin of S, and R, the axes of S, both in P.

    kind              orientation [rad]        position [m]
    fixed             2 tan(theta/2) u         r
    prismatic         2 tan(theta/2) u         t1 . r, t2 . r
    revolute          2 tan(theta/2) of R a    r
    cylindrical       2 tan(theta/2) of R a    t1 . r, t2 . r
    helical           2 tan(theta/2) of R a    t1 . r, t2 . r, 2 h tan((a . r / h - psi) / 2)
    planar            2 tan(theta/2) of R a    a . r
    spherical         -                        r
    universal         a . R b                  r
    distance          -                        |r| - L
    floating          -                        -

a is the joint's axis, t1 and t2 are perpendicular to it, u and theta axis and angle of R, psi the angle of R
about a, b the axis of a universal joint on the successor, L the length of a rod. 2 tan(theta/2) is theta for
small angles, smooth up to half a turn, and zero only at zero; a row of it has a derivative without roots or
angles. A thread fits again after each turn, as the last entry says.

Every row of K is a spatial force f in P: delta' = f . V, where V is the velocity of S relative to P. Both
bodies feel the same wrench lambda f, one of them reversed, so that no momentum is made. Joints above the
last common body of both ends move them alike, and do not appear.

Source: RBDA sections 8.2 and 8.3, K and k (here -K' qd). Differs: RBDA takes the constraint forces T of an
undisplaced joint; here K is the exact derivative of delta, displaced or not.
Cost: O(n_c d), d the length of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from robokit.model.constraints import LoopModel
from robokit.model.joints import plane_axes
from robokit.model.tree import Tree
from robokit.spatial import Force, Matrix3, Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar, added, cos, iterations, sin, sqrt, where

_UNIT = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))


class Row(NamedTuple):
    """One number of delta."""

    delta: Scalar  # its value [rad | m]
    f: Force  # its row, in P
    rate: Callable[[Motion], Force]  # f' for a velocity V of S relative to P
    turns: bool  # whether it is an angle


class ClosedLoop:
    """One loop joint in one configuration.

    ``rows``: what it constrains; ``columns``: (dof, motion) for each dof of the loop: what it moves S
    relative to P, in P.
    """

    def __init__(self, tree: Tree, loop: LoopModel, X: Sequence[Transform]) -> None:
        self.tree, self.loop, self.X = tree, loop, X
        self.up, self.down = sides(tree, loop)
        self.P, self.S = _along(X, self.up, loop.Xp), _along(X, self.down, loop.Xs)
        between = self.S[0] @ self.P[0].inverse()
        self.rows = constraint_rows(loop, between.E.T, between.r)
        self.columns: list[tuple[int, Motion]] = []
        for sign, path, ends, end in ((-1.0, self.up, self.P, loop.Xp), (1.0, self.down, self.S, loop.Xs)):
            # From body j to P: along its own side to the joint's frame, and across the joint.
            last = Transform.identity() if sign < 0.0 else between.inverse()
            for k, j in iterations(list(enumerate(path))):
                to = last @ (ends[k + 1] if k + 1 < len(path) else end)
                for at, column in enumerate(tree.joint[j].S.columns, tree.v_slice[j].start):
                    self.columns.append((at, (to @ column) * sign))

    @property
    def delta(self) -> list[Scalar]:
        """How far the loop is from closed [rad | m]."""
        return [row.delta for row in self.rows]

    @property
    def gap(self) -> Scalar:
        """The distance by which the loop is open [m]."""
        return sqrt(added((row.delta * row.delta for row in self.rows if not row.turns), 0.0))

    def rates(self, qd: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """K qd, for velocities by joint."""
        V = Motion.zero()
        flat = [x for row in qd for x in row]
        for at, column in iterations(self.columns):
            V = V + column * flat[at]
        return [V.dot(row.f) for row in self.rows]

    def jacobian(self) -> list[list[Scalar]]:
        """K, n_c x nv, as a list of rows."""
        K: list[list[Scalar]] = [[0.0] * self.tree.nv for _ in self.rows]
        for at, column in iterations(self.columns):
            for line, row in zip(K, self.rows, strict=True):
                line[at] = column.dot(row.f)
        return K

    def velocity_product(self, qd: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """K' qd, for velocities by joint."""
        V_p, a_p = self._end_motion(qd, self.up)
        V_s, a_s = self._end_motion(qd, self.down)
        across = self.S[0] @ self.P[0].inverse()
        V_s, a_s = across.inverse() @ V_s, across.inverse() @ a_s
        V = V_s - V_p
        # d/dt of the components in P, which moves with V_p.
        A = a_s - a_p - V_p.cross(V)
        return [A.dot(row.f) + V.dot(row.rate(V)) for row in self.rows]

    def _end_motion(self, qd: Sequence[Sequence[Scalar]], path: Sequence[int]) -> tuple[Motion, Motion]:
        """Velocity, and acceleration at qdd = 0, of one end as seen from the common body, in its frame."""
        V, a = Motion.zero(), Motion.zero()
        for j in iterations(path):
            vJ = self.tree.joint[j].S * qd[j]
            V = self.X[j] @ V + vJ
            a = self.X[j] @ a + V.cross(vJ)
        end = self.loop.Xp if path is self.up else self.loop.Xs
        return end @ V, end @ a

    def wrench(self, forces: Sequence[Scalar]) -> Force:
        """The wrench on the successor of forces by row, in P at its origin."""
        total = Force.zero()
        for row, force in zip(self.rows, forces, strict=True):
            total = total + row.f * force
        return total


def sides(tree: Tree, loop: LoopModel) -> tuple[list[int], list[int]]:
    """The joints from the last common body to the predecessor, and to the successor, outward."""
    up, down = tree.support[loop.p], tree.support[loop.s]
    shared = {*up} & {*down}
    return [j for j in up if j not in shared], [j for j in down if j not in shared]


def _along(X: Sequence[Transform], path: Sequence[int], end: Transform) -> list[Transform]:
    """Transforms from the common body, and all bodies of the path but the last, to the frame at its end."""
    found, to = [], end
    for j in iterations(path[::-1]):
        to = to @ X[j]
        found.append(to)
    return found[::-1] or [end]


def constraint_rows(loop: LoopModel, R: Matrix3, r: Vector3) -> list[Row]:
    """The rows of a loop joint whose frame S is at r with the axes R in P."""
    kind, a = loop.joint.kind.name, loop.joint.axis
    if kind == "floating":
        return []
    if kind == "distance":
        return [_distance(loop.length, r)]
    t1, t2 = plane_axes(a)
    shift = {"prismatic": (t1, t2), "cylindrical": (t1, t2), "helical": (t1, t2), "planar": (a,)}
    rows = [_position(e, r) for e in shift.get(kind, _UNIT)]
    if kind == "helical":
        rows.append(_thread(a, loop.joint.pitch, R, r) if loop.joint.pitch else _position(a, r))
    if kind in ("fixed", "prismatic"):
        return [*_orientation(R), *rows]
    if kind == "universal":
        return [_right_angle(a, R @ loop.axis2), *rows]
    return rows if kind == "spherical" else [*(_tilt(a, t, R @ a) for t in (t1, t2)), *rows]


def _position(e: Vector3, r: Vector3) -> Row:
    """E . r."""

    def rate(V: Motion) -> Force:
        return Force((V.lin + V.ang.cross(r)).cross(e), Vector3.zero())

    return Row(e.dot(r), Force(r.cross(e), e), rate, False)


def _distance(length: float, r: Vector3) -> Row:
    """|r| - L."""
    size = sqrt(r.dot(r))
    apart = size > 0.0
    share = where(apart, 1.0 / where(apart, size, 1.0), 0.0)
    n = r * share + _UNIT[0] * where(apart, 0.0, 1.0)  # of points that meet any direction does

    def rate(V: Motion) -> Force:
        # Of the origin of S as P sees it; a moment r x n is 0 whatever moves.
        v = V.lin + V.ang.cross(r)
        turned = (v - n * n.dot(v)) * share
        return Force(Vector3.zero(), turned)

    return Row(size - length, Force(Vector3.zero(), n), rate, False)


def _right_angle(a: Vector3, b: Vector3) -> Row:
    """A . b of two axes that stay perpendicular, b = R axis2."""

    def rate(V: Motion) -> Force:
        return Force(V.ang.cross(b).cross(a), Vector3.zero())

    return Row(a.dot(b), Force(b.cross(a), Vector3.zero()), rate, True)


def _orientation(R: Matrix3) -> list[Row]:
    """2 c with c = tan(theta/2) u: c' = (1 - c x + c c^T) omega / 2."""
    k = 1.0 / (1.0 + (R[0, 0] + R[1, 1] + R[2, 2]))
    c = Vector3((R[2, 1] - R[1, 2]) * k, (R[0, 2] - R[2, 0]) * k, (R[1, 0] - R[0, 1]) * k)

    def row(e: Vector3, ck: Scalar) -> Row:
        def rate(V: Motion) -> Force:
            d = (V.ang + V.ang.cross(c) + c * c.dot(V.ang)) * 0.5
            return Force(d.cross(e) + d * ck + c * e.dot(d), Vector3.zero())

        return Row(2.0 * ck, Force(e + c.cross(e) + c * ck, Vector3.zero()), rate, True)

    return [row(e, ck) for e, ck in zip(_UNIT, c, strict=True)]


def _tilt(a: Vector3, t: Vector3, n: Vector3) -> Row:
    """2 t . (a x n) / (1 + a . n): the tilt of the axis n = R a about t."""
    m = t.cross(a)
    k = 1.0 / (1.0 + a.dot(n))
    h = m.dot(n) * k
    w = n.cross(m - a * h) * (2.0 * k)

    def rate(V: Motion) -> Force:
        dn = V.ang.cross(n)
        dk = -k * k * a.dot(dn)
        dh = m.dot(dn) * k + m.dot(n) * dk
        turned = dn.cross(m - a * h) - n.cross(a) * dh
        return Force(turned * (2.0 * k) + n.cross(m - a * h) * (2.0 * dk), Vector3.zero())

    return Row(2.0 * h, Force(w, Vector3.zero()), rate, True)


def _thread(a: Vector3, pitch: float, R: Matrix3, r: Vector3) -> Row:
    """2 h tan((a . r / h - psi) / 2), with the pitch h."""
    t1, t2 = plane_axes(a)
    b1, b2 = R @ t1, R @ t2
    s, c = t2.dot(b1) - t1.dot(b2), t1.dot(b1) + t2.dot(b2)
    gs, gc = b1.cross(t2) - b2.cross(t1), b1.cross(t1) + b2.cross(t2)
    k = 1.0 / (s * s + c * c)
    w = (gs * c - gc * s) * k
    along = a.dot(r) * (1.0 / pitch)
    root = sqrt(k)
    ca, sa = cos(along), sin(along)
    T = (sa * c - ca * s) * root / (1.0 + (ca * c + sa * s) * root)
    straight = _position(a, r)
    f = straight.f - Force(w * pitch, Vector3.zero())

    def rate(V: Motion) -> Force:
        d1, d2 = V.ang.cross(b1), V.ang.cross(b2)
        ds, dc = gs.dot(V.ang), gc.dot(V.ang)
        dgs, dgc = d1.cross(t2) - d2.cross(t1), d1.cross(t1) + d2.cross(t2)
        dw = (gs * dc + dgs * c - gc * ds - dgc * s) * k - w * (2.0 * k * (c * dc + s * ds))
        dT = 0.5 * (1.0 + T * T) * V.dot(f) * (1.0 / pitch)
        df = straight.rate(V) - Force(dw * pitch, Vector3.zero())
        return f * (2.0 * T * dT) + df * (1.0 + T * T)

    return Row(2.0 * pitch * T, f * (1.0 + T * T), rate, False)
