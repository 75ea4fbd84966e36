"""Places for constraints and rows, and the velocities that they see.

Each force is written as J, R, an aim and a set: with u = J y its impulse is the point of the set that is
nearest to (aim - u) / R. Where there is no place left nothing is written, but counted: ``n_of`` then says how
many are needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from robokit.contact.kinematics import own_inertia
from robokit.contact.vectors import moved, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, maximum, where


def add_constraint(
    x: Any,
    kind: int,
    of: Any,
    bodies: tuple[Any, Any],
    E: Sequence[Motion],
    R: tuple[Scalar, Scalar],
    aim: Vector3,
    w: Scalar,
    mu: Scalar = 0.0,
    arm: Scalar = 0.0,
    last: tuple[Scalar, ...] = (0.0, 0.0, 0.0),
) -> Any:
    """Three rows between two bodies: u = E (V_b - V_a).

    Args:
        kind: FRICTION, LINE or SPIN.
        of: what it belongs to.
        bodies: a and b.
        E: the rows, moments about :func:`meeting` first.
        R: compliance of the first two rows and of the third.
        aim: velocities.
        w: mobility of what it acts on.
        mu, arm: see the fields.
        last: its impulse in the step before, as far as that is known.

    Returns:
        its number.
    """
    i = x.n_of[0]
    x.n_of[0] = i + 1

    def write() -> None:
        x.c_kind[i] = kind
        x.c_of[i] = of
        x.c_w[i], x.c_mu[i], x.c_arm[i] = w, mu, arm
        for k in range(2):
            x.c_bodies[i, k], x.c_R[i, k] = bodies[k], R[k]
        for k, (a, g) in enumerate(zip(aim, last, strict=True)):
            x.c_aim[i, k], x.c_last[i, k] = a, g
        for k, e in enumerate(number for row in E for number in row):
            x.c_E[i, k] = e
        once(x, _note_arms, i)

    cond(i < x.n_constraints, write, lambda: None)
    return i


def add_row(
    x: Any,
    kind: int,
    of: Any,
    dof: Any,
    side: Scalar,
    R: Scalar,
    aim: Scalar,
    low: Scalar,
    high: Scalar,
    speed: Scalar = float("inf"),
) -> None:
    """One row of a dof: u = side qd.

    Args:
        kind: DAMPING, DRY, STOP or MOTOR.
        of: number of the dof, stop or motor.
        dof: of the tree.
        side: 1, or -1 to count the other way.
        R: compliance.
        aim: velocity.
        low, high: bounds of its impulse.
        speed: largest at which it gives way.
    """
    i = x.n_of[1]
    x.n_of[1] = i + 1

    def write() -> None:
        x.r_kind[i], x.r_of[i], x.r_row[i] = kind, of, x.dof_row[dof]
        x.r_gain[i] = side * x.dof_gain[dof]
        x.r_R[i], x.r_aim[i], x.r_low[i], x.r_high[i] = R, aim, low, high
        x.r_speed[i], x.r_speed_R[i] = speed, SPEED * mobility(x, dof)
        loose = x.dof_mobility[dof]  # 0 where what moves has no inertia
        x.r_w[i] = maximum(loose, mobility(x, dof))
        x.r_loose[i] = where(loose > 0.0, loose, math.inf)

    cond(i < x.n_rows, write, lambda: None)


SPEED = 1e-4  # compliance of a largest speed over the mobility of the dof: what a step leaves of an excess


def act_on(x: Any, b: Any, moment: Vector3, force: Vector3, point: Vector3) -> None:
    """Add a wrench at a point, from the seat, to what is known before the solve: the forces on bodies."""
    for k, more in enumerate([*(moment + point.cross(force)), *force]):
        x.f[b, k] = x.f[b, k] + more


def axes_of(x: Any, b: Any) -> Matrix3:
    """Rotation of a body."""
    return Matrix3([[x.R[b, 3 * r + c] for c in range(3)] for r in range(3)])


def place_on(x: Any, b: Any, point: Vector3) -> Vector3:
    """A point of a body, from its seat."""
    return axes_of(x, b) @ point + vector(x.p, b, 0)


def meeting(x: Any, a: Any, b: Any) -> Vector3:
    """What a constraint between two bodies is about, from the step's origin: the seat of the one that gives
    way more.

    What does not move gives way by 0. Where both move, the inertia of that one is small, and about a place
    far away A would have more rounding than that.
    """
    return Vector3(*once(x, _meeting, a, b))


def _meeting(x: Any, a: Any, b: Any) -> tuple[Scalar, ...]:
    first = (x.body_tip[b] < 0) | (x.body_mobility[a] > x.body_mobility[b])
    return tuple(vector(x.seat, where(first, a, b), 0))


def _note_arms(x: Any, i: Any) -> None:
    """The place of the rows of a constraint, from the seats of its bodies."""
    bodies = [x.c_bodies[i, k] for k in range(2)]
    place = meeting(x, *bodies)
    for k, body in enumerate(bodies):
        write_row(x.c_arms, (i, k), place - vector(x.seat, body, 0))


def mobility(x: Any, dof: Any) -> Scalar:
    """1 / H of a dof, the rest held [1/(kg m^2) | 1/kg]."""
    row, gain = x.dof_row[dof], x.dof_gain[dof]
    return gain * gain / own_inertia(x, row)


def moves(x: Any, dof: Any) -> Any:
    """Whether a dof moves at all: some that follow others do not."""
    return x.dof_row[dof] >= 0


def speed(x: Any, dof: Any) -> Scalar:
    """Of a dof, before the kick [rad/s | m/s]."""
    return x.dof_gain[dof] * x.v[x.dof_row[dof]]


def value(x: Any, dof: Any) -> Scalar:
    """The coordinate of a joint with one dof [rad | m]."""
    return x.coordinate[x.joint_coordinate[x.dof_body[dof]]]


def vector(array: Any, *at: Any) -> Vector3:
    """Three numbers of an array from a place on: the last index."""
    *first, k = at
    return Vector3(*(array[(*first, k + m)] for m in range(3)))


def body_velocity(x: Any, b: Any) -> Motion:
    """Of a body before the kick, about its seat."""
    return Motion(vector(x.V, b, 0), vector(x.V, b, 3))


def velocity_between(x: Any, a: Any, b: Any) -> Motion:
    """Of b against a before the kick, about :func:`meeting`."""
    six = once(x, _velocity_between, a, b)
    return Motion(Vector3(*six[:3]), Vector3(*six[3:]))


def _velocity_between(x: Any, a: Any, b: Any) -> tuple[Scalar, ...]:
    place = meeting(x, a, b)
    V_a, V_b = (moved(body_velocity(x, c), place - vector(x.seat, c, 0)) for c in (a, b))
    return tuple(V_b - V_a)


def row(e: Motion, V: Motion) -> Scalar:
    """A row of E on a velocity."""
    return e.ang.dot(V.ang) + e.lin.dot(V.lin)
