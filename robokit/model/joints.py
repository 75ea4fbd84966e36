"""The joint table: every joint the sources name, one row each.

A row gives the number of coordinates and velocities, the motion subspace S (constant in body
coordinates for every joint here, so c_J = S' v = 0), the joint transform X_J(q), and the motions on
the joint's manifold: exp, log and the neutral configuration. The velocities are angular first.

    kind        nq nv  q                               v (in coordinates of the moved body)
    revolute     1  1  angle about the axis            rate
    continuous   1  1  one plain angle, unbounded      rate
    prismatic    1  1  shift along the axis            rate
    helical      1  1  angle; shift = pitch * angle    rate of the angle
    cylindrical  2  2  angle, shift                    rates
    planar       3  3  angle about the normal, x, y    omega, and the two in-plane velocities
    spherical    4  3  unit quaternion wxyz            omega
    floating     7  6  quaternion wxyz, position       omega, linear velocity of the origin
    fixed        0  0  (folded into its parent)

Source: RBDA table 4.1; seeds 001, 003. Differs: the planar joint's velocities are taken in the moved
body, like every other joint's, which makes its S constant. Loop joints have two kinds more (LOOP_TABLE).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.spatial import Force, Matrix3, Motion, Transform, Vector3
from robokit.spatial.rotation import (
    coordinate_rotation,
    exp_translation,
    log_translation,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_normalized,
    quat_wxyz_to_rotation,
)
from robokit.spatial.scalars import Scalar, added, cos, sin

Scalars = Sequence[Scalar]


class MotionSubspace:
    """S, 6 x k: ``S * qd`` is the joint velocity, ``S.T @ f`` the joint force, ``I @ S`` by columns."""

    __slots__ = ("axes", "columns")

    def __init__(self, columns: Sequence[Motion]) -> None:
        self.columns = tuple(columns)
        #: rows of the spatial vector that S spans exactly, where its columns are coordinate axes
        self.axes = tuple(_coordinate(c) for c in columns) if all(_is_axis(c) for c in columns) else ()

    def __mul__(self, qd: Scalars) -> Motion:
        total = Motion.zero()
        for column, rate in zip(self.columns, qd, strict=True):
            total = total + column * rate
        return total

    @property
    def T(self) -> _SubspaceTranspose:
        """S^T, which takes a spatial force to joint forces."""
        return _SubspaceTranspose(self)

    def of(self, I) -> list[Force]:
        """I S, column by column, for any inertia I."""
        return [I @ column for column in self.columns]


class _SubspaceTranspose:
    __slots__ = ("S",)

    def __init__(self, S: MotionSubspace) -> None:
        self.S = S

    def __matmul__(self, f: Force) -> list[Scalar]:
        return [column.dot(f) for column in self.S.columns]


def _is_axis(c: Motion) -> bool:
    return sorted(abs(x) for x in c) == [0, 0, 0, 0, 0, 1]


def _coordinate(c: Motion) -> int:
    return next(i for i, x in enumerate(c) if x)


def _add(q: Scalars, v: Scalars, _axis: Vector3) -> list[Scalar]:
    return [a + b for a, b in zip(q, v, strict=True)]


def _subtract(q0: Scalars, q1: Scalars, _axis: Vector3) -> list[Scalar]:
    return [b - a for a, b in zip(q0, q1, strict=True)]


@frozen
class JointKind:
    """One row of the joint table."""

    name: str  # the kind's name
    nv: int  # number of velocities
    columns: Callable[[Vector3, float], list[Motion]]  # (axis, pitch) -> the columns of S in body coordinates
    # (q, axis, pitch) -> X_J, from the joint frame on the predecessor to the body
    transform: Callable[[Scalars, Vector3, float], Transform]
    neutral: tuple[float, ...]  # q of the undisplaced joint
    # (q, v, axis) -> q moved by the body velocity v for one unit of time
    exp: Callable[[Scalars, Scalars, Vector3], list[Scalar]] = _add
    log: Callable[[Scalars, Scalars, Vector3], list[Scalar]] = (
        _subtract  # (q0, q1, axis) -> v, exp(q0, v) = q1
    )
    quaternion: int | None = None  # offset of a unit quaternion inside q, or None
    angle: bool = False  # whether q begins with an angle
    has_axis: bool = True  # whether the axis matters
    # exp up to terms of third order in v, free of roots and branches: what derivatives along v are taken of
    near: Callable[[Scalars, Scalars, Vector3], list[Scalar]] = _add
    # (q, rate of q, axis) -> the v along which q changes at that rate
    velocity: Callable[[Scalars, Scalars, Vector3], list[Scalar]] = lambda q, rate, axis: list(rate)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.neutral)

    def __reduce__(self) -> tuple[Callable[[str], JointKind], tuple[str]]:
        """Pickled by name: a row is its place in the table."""
        return _row, (self.name,)


def _spin(u: Vector3) -> Motion:
    return Motion(u, Vector3.zero())


def _slide(u: Vector3) -> Motion:
    return Motion(Vector3.zero(), u)


def plane_axes(n: Vector3) -> tuple[Vector3, Vector3]:
    """Two unit vectors t1, t2 with (t1, t2, n) right handed; coordinate axes for a coordinate axis."""
    k = max(range(3), key=lambda i: abs(tuple(n)[i]))
    # The axis after the dominant one, made perpendicular to n: for n = z this gives x, then y.
    e = [0.0, 0.0, 0.0]
    e[(k + 1) % 3] = 1.0
    t1 = Vector3(*e) - n * n.dot(Vector3(*e))
    t1 = t1 * (1.0 / math.sqrt(t1.dot(t1)))
    return t1, n.cross(t1)


def _turn(q: Scalar, u: Vector3) -> Matrix3:
    return coordinate_rotation(u, cos(q), sin(q))


def _planar_transform(q: Scalars, n: Vector3, _pitch: float) -> Transform:
    t1, t2 = plane_axes(n)
    return Transform(_turn(q[0], n), t1 * q[1] + t2 * q[2])


def _planar_exp(q: Scalars, v: Scalars, n: Vector3) -> list[Scalar]:
    z = Vector3(0.0, 0.0, 1.0)
    step = exp_translation(z * v[0], Vector3(v[1], v[2], 0.0))
    out = _turn(q[0], z).transpose_apply(step)
    return [q[0] + v[0], q[1] + out.x, q[2] + out.y]


def _planar_near(q: Scalars, v: Scalars, n: Vector3) -> list[Scalar]:
    z = Vector3(0.0, 0.0, 1.0)
    u = Vector3(v[1], v[2], 0.0)
    out = _turn(q[0], z).transpose_apply(u + (z * v[0]).cross(u) * 0.5)
    return [q[0] + v[0], q[1] + out.x, q[2] + out.y]


def _planar_velocity(q: Scalars, rate: Scalars, n: Vector3) -> list[Scalar]:
    u = _turn(q[0], Vector3(0.0, 0.0, 1.0)) @ Vector3(rate[1], rate[2], 0.0)
    return [rate[0], u.x, u.y]


def _planar_log(q0: Scalars, q1: Scalars, n: Vector3) -> list[Scalar]:
    z = Vector3(0.0, 0.0, 1.0)
    step = _turn(q0[0], z) @ Vector3(q1[1] - q0[1], q1[2] - q0[2], 0.0)
    angle = q1[0] - q0[0]
    u = log_translation(z * angle, step)
    return [angle, u.x, u.y]


def _spherical_exp(q: Scalars, v: Scalars, _axis: Vector3) -> list[Scalar]:
    # Normalising costs little and keeps a million steps from drifting off the sphere.
    return list(quat_normalized(quat_multiply(q, quat_exp(Vector3(*v)))))


def _spherical_near(q: Scalars, v: Scalars, _axis: Vector3) -> list[Scalar]:
    half = [0.5 * x for x in v]
    return list(quat_multiply(q, (1.0 - 0.5 * added(x * x for x in half), *half)))


def _spherical_velocity(q: Scalars, rate: Scalars, _axis: Vector3) -> list[Scalar]:
    return [2.0 * x for x in quat_multiply(quat_conjugate(q), rate)[1:]]


def _spherical_log(q0: Scalars, q1: Scalars, _axis: Vector3) -> list[Scalar]:
    return list(quat_log(quat_multiply(quat_conjugate(q0), q1)))


def _floating_transform(q: Scalars, _axis: Vector3, _pitch: float) -> Transform:
    return Transform(quat_wxyz_to_rotation(q[:4]).T, Vector3(*q[4:]))


def _floating_exp(q: Scalars, v: Scalars, axis: Vector3) -> list[Scalar]:
    step = quat_wxyz_to_rotation(q[:4]) @ exp_translation(Vector3(*v[:3]), Vector3(*v[3:]))
    p = Vector3(*q[4:]) + step
    return [*_spherical_exp(q[:4], v[:3], axis), *p]


def _floating_near(q: Scalars, v: Scalars, axis: Vector3) -> list[Scalar]:
    u = Vector3(*v[3:])
    step = quat_wxyz_to_rotation(q[:4]) @ (u + Vector3(*v[:3]).cross(u) * 0.5)
    return [*_spherical_near(q[:4], v[:3], axis), *(Vector3(*q[4:]) + step)]


def _floating_velocity(q: Scalars, rate: Scalars, axis: Vector3) -> list[Scalar]:
    u = quat_wxyz_to_rotation(q[:4]).transpose_apply(Vector3(*rate[4:]))
    return [*_spherical_velocity(q[:4], rate[:4], axis), *u]


def _floating_log(q0: Scalars, q1: Scalars, axis: Vector3) -> list[Scalar]:
    phi = Vector3(*_spherical_log(q0[:4], q1[:4], axis))
    step = quat_wxyz_to_rotation(q0[:4]).transpose_apply(Vector3(*q1[4:]) - Vector3(*q0[4:]))
    return [*phi, *log_translation(phi, step)]


_AXES = [Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0)]


def _revolute(name: str) -> JointKind:
    return JointKind(
        name,
        1,
        columns=lambda u, p: [_spin(u)],
        transform=lambda q, u, p: Transform(_turn(q[0], u), Vector3.zero()),
        neutral=(0.0,),
        angle=True,
    )


JOINT_TABLE: dict[str, JointKind] = {
    row.name: row
    for row in (
        _revolute("revolute"),
        _revolute("continuous"),
        JointKind(
            "prismatic",
            1,
            columns=lambda u, p: [_slide(u)],
            transform=lambda q, u, p: Transform(Matrix3.identity(), u * q[0]),
            neutral=(0.0,),
        ),
        JointKind(
            "helical",
            1,
            columns=lambda u, p: [Motion(u, u * p)],
            transform=lambda q, u, p: Transform(_turn(q[0], u), u * (q[0] * p)),
            neutral=(0.0,),
            angle=True,
        ),
        JointKind(
            "cylindrical",
            2,
            columns=lambda u, p: [_spin(u), _slide(u)],
            transform=lambda q, u, p: Transform(_turn(q[0], u), u * q[1]),
            neutral=(0.0, 0.0),
            angle=True,
        ),
        JointKind(
            "planar",
            3,
            columns=lambda n, p: [_spin(n), *(_slide(t) for t in plane_axes(n))],
            transform=_planar_transform,
            exp=_planar_exp,
            log=_planar_log,
            near=_planar_near,
            velocity=_planar_velocity,
            neutral=(0.0, 0.0, 0.0),
            angle=True,
        ),
        JointKind(
            "spherical",
            3,
            columns=lambda u, p: [_spin(a) for a in _AXES],
            transform=lambda q, u, p: Transform(quat_wxyz_to_rotation(q).T, Vector3.zero()),
            exp=_spherical_exp,
            log=_spherical_log,
            near=_spherical_near,
            velocity=_spherical_velocity,
            neutral=(1.0, 0.0, 0.0, 0.0),
            quaternion=0,
            has_axis=False,
        ),
        JointKind(
            "floating",
            6,
            columns=lambda u, p: [*(_spin(a) for a in _AXES), *(_slide(a) for a in _AXES)],
            transform=_floating_transform,
            exp=_floating_exp,
            log=_floating_log,
            near=_floating_near,
            velocity=_floating_velocity,
            neutral=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            quaternion=0,
            has_axis=False,
        ),
        JointKind(
            "fixed",
            0,
            columns=lambda u, p: [],
            transform=lambda q, u, p: Transform.identity(),
            neutral=(),
            has_axis=False,
        ),
    )
}


def _holds_only(name: str, nv: int, has_axis: bool) -> JointKind:
    def none(*_: object) -> list[Scalar]:
        return []

    return JointKind(
        name,
        nv,
        columns=lambda u, p: [],
        transform=lambda q, u, p: Transform.identity(),
        exp=none,
        log=none,
        neutral=(),
        has_axis=has_axis,
    )


LOOP_TABLE: dict[str, JointKind] = JOINT_TABLE | {
    row.name: row for row in (_holds_only("universal", 2, True), _holds_only("distance", 5, False))
}
"""Kinds of loop joints: those of the table, and two that carry no body of the tree. A universal one keeps an
axis of the predecessor perpendicular to one of the successor, and their origins together; a distance keeps
two points as far apart as a rod does. Of these the freedoms nv count, and nothing else."""


def _row(name: str) -> JointKind:
    return LOOP_TABLE[name]


class JointModel:
    """A row of the table with its axis and pitch: what an algorithm sees as joint i.

    ``kind``: the row; ``S``: motion subspace in body coordinates, constant.
    """

    __slots__ = ("S", "axis", "kind", "pitch")

    def __init__(self, kind: JointKind, axis: Vector3, pitch: float = 0.0) -> None:
        self.kind, self.axis, self.pitch = kind, axis, pitch
        self.S = MotionSubspace(kind.columns(axis, pitch))

    def __repr__(self) -> str:
        axis = f", axis ({', '.join(f'{float(x):.6g}' for x in self.axis)})" if self.kind.has_axis else ""
        return f"<JointModel {self.kind.name}{axis}{f', pitch {self.pitch:.6g} m/rad' if self.pitch else ''}>"

    def XJ(self, q: Scalars) -> Transform:
        """X_J(q), from the joint frame on the predecessor to the body."""
        return self.kind.transform(q, self.axis, self.pitch)

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        """Move q along the constant body velocity dv for one unit of time."""
        return self.kind.exp(q, dv, self.axis)

    def near(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        """q moved along the velocity dv for a unit of time, up to terms of third order in dv."""
        return self.kind.near(q, dv, self.axis)

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        """The dv that :meth:`integrate` takes from q0 to q1."""
        return self.kind.log(q0, q1, self.axis)

    def neutral(self) -> list[float]:
        """The undisplaced configuration."""
        return list(self.kind.neutral)

    def random(self, rng: np.random.Generator, lower: Sequence[float], upper: Sequence[float]) -> list[float]:
        """A configuration inside the bounds: uniform, quaternions uniform on the sphere.

        ``rng``: NumPy random generator; ``lower``, ``upper``: bounds of the plain coordinates, nq of them; a
        quaternion's are ignored.
        """
        q = [float(rng.uniform(a, b)) for a, b in zip(lower, upper, strict=True)]
        k = self.kind.quaternion
        if k is not None:
            quat = rng.standard_normal(4)
            q[k : k + 4] = (quat / np.linalg.norm(quat)).tolist()
        return q


NO_JOINT = JointModel(JOINT_TABLE["fixed"], Vector3(1.0, 0.0, 0.0))  # of body 0, which has none
