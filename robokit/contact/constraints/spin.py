"""Friction of a contact against turning about its normal and against rolling; discs that roll on their rims.

The first, from patches of contact, is the normal impulse N times an arm: a moment that holds up to arm N and
gives way beyond.

    u = axes (omega_b - omega_a)     R = 1e-4 R_t/arm^2     aim = 0
    set: an interval of arm_n N about the normal, a disc of arm_t N about the tangents

The second: the point where a disc or coin touches runs along its rim. A kick gives the velocity half a step
after its pose; there, it touches beside where it does at the pose. A coin that wobbles with its middle at
rest would seem to slide, and friction would raise it. With the angular velocity w before the kick the place
moves by s in half a step, and the point at the pose is to have the velocity

    s x w,     s = (down(a') - down(a)) radius + (a' - a) along,     a' = a + dt/2 w x a

a is the disc's axis, down(a) the direction across it that goes lowest, along the distance of the rim from the
body's middle.

N is that of the solution, and slopes are those by the turning and by N (``c_by_load``): with N of the iterate
before, an eighth of the steps of a quadruped that is thrown with arms of 2 cm took turns and did not settle.

Source: torsional and rolling friction as in M. Anitescu, J. Cremer and F. Potra (1996).
Cost: O(contacts).
"""

from __future__ import annotations

from typing import Any

from robokit.collision.fields import CYLINDER
from robokit.contact.constraints.adding import add_constraint, axes_of, body_velocity, vector
from robokit.contact.fields import SPIN
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, maximum, sqrt

FIRM = 1e-4
"""Compliance over that of the contact's bristles at the arm: with theirs a spun ball creeps by 0.3 rad/s."""

LOWEST = 1e-6
"""How far the direction to the lowest point may be off, as one less its cosine: by the rounding of places,
far from the rim's other contacts."""

RIM = 0.01
"""Share of the radius by which a point on the rim may seem to be inside: contacts are half-way in a gap."""

UPRIGHT = 1e-5
"""Tilt of a disc below which it stands on its face, and its points keep their places [rad]."""


def add_spin(
    x: Any,
    i: Any,
    pair: Any,
    bodies: tuple[Any, Any],
    axes: list[Vector3],
    R_t: Scalar,
    spin: Scalar,
    w: Scalar,
) -> None:
    """The constraint after that of contact constraint i, if its pair has such friction.

    Args:
        i: constraint of the contact.
        pair: of shapes.
        bodies: a and b.
        axes: t1, t2, n.
        R_t: compliance of its tangents.
        spin: of the surface about n [rad/s].
        w: mobility of both bodies [1/kg].
    """
    torsion, rolling = x.pair_torsion[pair], x.pair_rolling[pair]
    arm = maximum(torsion, rolling)

    def add() -> None:
        E = [Motion(t, Vector3.zero()) for t in axes]
        R = FIRM * R_t / (arm * arm)
        size = maximum(x.shape_bound[x.pair_shapes[pair, 1]], arm)
        turn = w / (size * size)
        add_constraint(x, SPIN, i, bodies, E, (R, R), Vector3(0.0, 0.0, spin), turn, rolling, torsion)

    cond(arm > 0.0, add, lambda: None)


def rolling_velocity(x: Any, c: Any, p: Vector3, n: Vector3) -> Vector3:
    """The velocity at which contact c of a loose disc rolls on [m/s]; 0 for all others."""
    b, shape = x.contact_bodies[c, 1], x.pair_shapes[x.contact_pair[c], 1]

    def rolled() -> tuple[Scalar, Scalar, Scalar]:
        R, w = axes_of(x, b), body_velocity(x, b).ang
        a = R @ Vector3(*(x.shape_placement[shape, 3 * k + 2] for k in range(3)))
        centre = R @ Vector3(*(x.shape_placement[shape, 9 + k] for k in range(3))) + vector(x.p, b, 0)
        middle = vector(x.I, b, 1) * (1.0 / x.I[b, 0])
        radius = x.shape_size[shape, 0] + x.shape_radius[shape]
        rim = p - centre
        out = rim - a * a.dot(rim)
        down = a * a.dot(n) - n
        tilt = sqrt(down.dot(down) + UPRIGHT * UPRIGHT)
        later = a + w.cross(a) * (0.5 * x.dt[0])
        later = later * (1.0 / sqrt(later.dot(later)))
        lower = later * later.dot(n) - n
        lower = lower * (1.0 / sqrt(lower.dot(lower) + UPRIGHT * UPRIGHT))
        size = sqrt(out.dot(out))
        is_lowest = (out.dot(down) > (1.0 - LOWEST) * size * tilt) & (size > (1.0 - RIM) * radius)
        s = (lower - down * (1.0 / tilt)) * radius + (later - a) * a.dot(p - middle)
        u = s.cross(w)
        return cond(is_lowest, lambda: (u.x, u.y, u.z), lambda: (0.0, 0.0, 0.0))

    disc = (x.loose[b] > 0) & (x.shape_kind[shape] == CYLINDER)
    return Vector3(*cond(disc, rolled, lambda: (0.0, 0.0, 0.0)))
