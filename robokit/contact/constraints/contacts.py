"""Contacts with friction: a spring and a damper along the normal, a bristle along the tangents.

A contact with the gap phi (negative where it overlaps) and the relative velocity u at the end of the step
feels, over dt,

    N = max(0, -k (phi + dt u_n) - d u_n)      t = -k_t (e + dt u_t) - d_t u_t, shortened to mu N

e is the deflection of its bristle, a tangential spring that holds a sticking contact, so that it does not
creep. As a constraint:

    kd = k dt + d           R_n = 1/(dt kd)        aim_n = -phi k/kd (phi < 0),  -phi/dt (phi >= 0)
    k_t = 30 k,  d_t = sqrt(30) d,  kd_t = k_t dt + d_t
                            R_t = 1/(dt kd_t)      aim_t = -e k_t/kd_t + velocity of the surface
    set: Coulomb's cone     afterwards e += dt u_t, shortened to mu N/k_t

An impact is over with its step, and what it adds to N bends no bristle: where something lands (landings.py),
N of the step before bounds it, too. By N of the impact alone it would be longer than the next step lets it
be, and friction would point along it and not against the slip.

A fast impact is damped more, d (1 + u^2 / c^2). It then compresses the spring by less than the weight does,
and does not bounce. In discrete time this damping would stop the contact within a fraction of a step. The
damping d + more of a step is therefore chosen such that it removes as much of u0, the normal speed before the
step less what the spring removes in it, as the continuous law does. For bodies of the mobility w that law has
the solution v, which implicit Euler then has, too.

    dv/dt = -w d (1 + v^2 / c^2) v        v(dt)^2 = u0^2 E / (1 + (1 - E) u0^2 / c^2),  E = exp(-2 w d dt)
    E = 1 / (1 + a)^2 of implicit Euler,  a = w dt d,  d' = d / c^2,  c = 0.2 sink / time
    1 + w dt (d + more) = (1 + a) sqrt(1 + x),  x = (1 - E) u0^2 / c^2 = w dt d' u0^2 (2 + a) / (1 + a)^2

The additional damping acts along the tangents, too.

With a restitution r, a fast contact leaves at r times its speed of approach, with R = 1e-4 w along all three
axes. After the kick it continues to fall, arrives at the surface after the time t with the speed S, and rises
from there:

    h = phi - g dt^2/8,  s0 = -u_n + g dt/2,  S^2 = s0^2 + 2 g h,  t = 2 h / (s0 + S),  s = r S
    to the next kick: aim_n = (s T - g T^2/2 - h) / dt        after the step: aim_n = s - g (T - dt/2)

These are the aims of the two solutions in landings.py. The velocities of a kick are those half a step before
and after it, so a falling contact is at the height h when its gap at the kick is phi. g is the acceleration
at which the gap closes in a step without bounces (impacts.py). T is the rest of the step, dt - t, but at
least dt/2: otherwise the recorded pose, which is that at dt/2, would be inside the surface. The same holds
for a contact that would be back within the step. A contact that does not arrive in the step is kept out until
the next kick, and has no other force. The spring adds nothing to the speed of a bounce: until the contact is
out, or is pressed in again, its aim is that of a gap of 0.

Source: robokit/contact/README.md; bristles as in P. Dahl (1968), S. Cundall and O. Strack (1979).
Cost: O(contacts), about 200 operations each.
"""

from __future__ import annotations

import math
from typing import Any

from robokit.collision.fields import CYLINDER, SEGMENT
from robokit.collision.support import pair_number
from robokit.contact.constraints.adding import (
    add_constraint,
    axes_of,
    body_velocity,
    meeting,
    place_on,
    row,
    vector,
    velocity_between,
)
from robokit.contact.fields import FRICTION, SPIN
from robokit.contact.groups import LANDS
from robokit.contact.kinematics import velocity_products
from robokit.contact.vectors import motion, nothing, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import call, cond, for_range, in_precision, rounding, smallest, while_loop
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

TANGENTIAL = 200.0  # stiffness of bristles over that along the normal: boxes slide after micrometres

SHORT = 4.0
"""Speed below which a contact does not bounce, over what gravity and the contact's load change in a step: it
would be back after eight steps, and what rests would be taken to bounce."""

SEEN = (
    1e-10  # share of a step by which a contact may arrive after it: what follows at once is off by rounding
)

RIGID = 1e-4, 1e-3
"""Compliance of an impact over the mobility of the two bodies, in double and in single precision.

The first is what a bounce leaves of the velocity, in both precisions (impacts.py)."""

HARDEST = 2.0**-30, RIGID[1]
"""Least compliance over the mobility, in double and in single precision: what an impact leaves of its speed.

Impulses have the rounding of velocities over their compliance: here 2^-23 of the momentum of a body of that
mobility, a tenth of the tolerance. A light body beside heavy ones would have harder contacts, as the weight
of all decides on their stiffness. In single precision the bound is for A = H + J^T G J, whose rounding is
that of G d^2 for a contact at the distance d from the base."""


def collect(x: Any) -> None:
    """The constraints of all contacts, each followed by that of its torsional friction."""

    def contact(c: Any, at: Any) -> Any:
        """``at``: the first bristle whose pair is not before that of the last contact."""
        pair = x.contact_pair[c]
        at = while_loop(lambda m: _pair(x, m, 0) < pair, lambda m: m + 1, at)
        own = while_loop(
            lambda m: (_pair(x, m, -1) == pair) & (_feature(x, m) != x.contact_feature[c]),
            lambda m: m + 1,
            at,
        )
        is_known, m = _pair(x, own, -1) == pair, minimum(own, x.n_contacts - 1)
        known, N = where(is_known, 1.0, 0.0), x.bristle_normal[m]
        turning = vector(x.bristle, m, 3) * where(N > 0.0, known, 0.0)
        # A body that comes onto another shape of the same body touches it on. Pairs, and so bristles, ascend
        # by their bodies: those of the same two are beside each other.
        before, there = _pair(x, maximum(at - 1, 0), -1), _pair(x, at, -1)
        stays = _same_bodies(x, before, c) | _same_bodies(x, there, c)
        _add(x, c, vector(x.bristle, m, 0) * known, N * known, turning, is_known & (N == 0.0), stays)
        return at

    n = minimum(x.counts[0], x.n_contacts)
    cond(n > 0, lambda: velocity_products(x, x.V, Vector3.zero()), nothing)
    for_range(n, contact, 0)


def _pair(x: Any, m: Any, beyond: int) -> Any:
    """Pair of bristle m; ``beyond``: the value if there is no such bristle."""
    pair = x.bristle_pair[minimum(m, x.n_contacts - 1)]
    last = (m >= x.n_contacts) | (pair < 0)
    return where(last, 2**31 - 1 if beyond == 0 else -1, pair)


def _same_bodies(x: Any, pair: Any, c: Any) -> Any:
    """Whether a pair of shapes, or -1 for none, belongs to the bodies of contact c; pairs of two bodies are
    consecutive.
    """
    a, b = (x.contact_shapes[c, side] for side in range(2))
    first = pair_number(x, x.shape_pairs[a, 2], x.shape_pairs[b, 2])
    return (pair >= first) & (pair < first + x.shape_pairs[a, 1] * x.shape_pairs[b, 1])


def _feature(x: Any, m: Any) -> Any:
    return x.bristle_feature[minimum(m, x.n_contacts - 1)]


def _add(x: Any, c: Any, e: Vector3, N: Scalar, turning: Vector3, leaves: Any, stays: Any) -> None:
    """Add the constraints of contact c, with the bristle e and the impulse N from the previous step.

    ``turning``: impulse of its torsional friction in the previous step [N m s]. ``leaves``: whether it has
    bounced, and is separating. ``stays``: whether its bodies touched before.
    """
    a, b, dt = x.contact_bodies[c, 0], x.contact_bodies[c, 1], x.dt[0]
    p, phi = vector(x.contact_place, c, 0), where(leaves, 0.0, x.contact_gap[c])
    axes = [vector(x.contact_frame, c, 3 * k) for k in range(3)]
    arm = p - meeting(x, a, b)
    E = [Motion(arm.cross(t), t) for t in axes]
    u = row(E[2], velocity_between(x, a, b))
    k = x.pair_stiffness[0]
    w = x.body_mobility[a] + x.body_mobility[b]
    kd, k_t, kd_t = stiffnesses(x)
    rolls = rolling_velocity(x, c, p, axes[2]) * where(stays, 1.0, 0.0)
    rolls_n = axes[2].dot(rolls)
    hit = minimum(u + rolls_n + dt * k * w * maximum(-phi, 0.0), 0.0)
    x.contact_hit[c] = hit
    # Damping of an impact, beyond that of what rests [N s/m]. Its speed is that along the normal beyond what
    # the spring takes of it in a step: what rolls or rocks meets the ground anew in every step.
    more = impact(x.pair_impact[0] * hit**2, w * dt * x.pair_damping[0], w * dt)[0]
    kd, kd_t = kd + more, kd_t + TANGENTIAL**0.5 * more
    falls, far = once(x, fast, c, u, N * w), minimum(2.0 * u, -x.contact_gap[c] / dt)
    may_bounce, bounces = falls & (far < -x.contact_gap[c] / dt), where(falls, 1.0, 0.0)
    # Velocity along t1 and t2 at which nothing slides, and about n at which nothing turns.
    spin, belt = surface(x, c, p, body_velocity(x, b))
    moves = Vector3(axes[0].dot(belt), axes[1].dot(belt), axes[2].dot(spin))
    bent = [axes[i].dot(e) * (1.0 - bounces) for i in range(2)]
    for i in range(2):
        x.contact_bristle[c, i] = bent[i]
    for i, s in enumerate(moves):
        x.contact_surface[c, i] = s
    for i in range(3):
        x.contact_rolls[c, i] = axes[i].dot(rolls)
    x.contact_bounces[c] = where(may_bounce, 1, where(falls, -2, where(leaves, -1, 0)))
    x.contact_fall[c] = u
    x.n_of[2] = x.n_of[2] + where(may_bounce, 1, 0)
    spring = where(phi < 0.0, -phi * k / kd, -phi / dt) + rolls_n
    still = moves + Vector3(*(t.dot(rolls) for t in axes))
    write_row(x.contact_back, c, (still.x, still.y, rolls_n))
    aim = [s - q * k_t / kd_t for s, q in zip(still, bent, strict=False)]
    least = in_precision(*HARDEST) * w
    R = [where(falls, rigid() * w, maximum(1.0 / (dt * s), least)) for s in (kd_t, kd)]
    i = add_constraint(
        x,
        FRICTION,
        c,
        (a, b),
        E,
        (R[0], R[1]),
        Vector3(aim[0], aim[1], where(falls, far, spring)),
        w,
        friction(x, c),
        last=(*(-dt * k_t * q for q in bent), N * (1.0 - bounces)),
    )
    x.contact_constraint[c] = i
    add_spin(x, i, c, (a, b), axes, R[0], moves.z, w, turning)


def of_ground(x: Any, c: Any) -> Any:
    """Whether a contact is with the ground; a link that is fixed to the world is of body 0, too."""
    return x.contact_shapes[c, 0] < x.ground_shapes[0]


def friction(x: Any, c: Any) -> Scalar:
    """Coulomb's coefficient of a contact."""
    own, of_link = (x.shape_friction[x.contact_shapes[c, side]] for side in range(2))
    return where(of_ground(x, c), where(own < 0.0, of_link, own), x.between[0])


def restitution(x: Any, c: Any) -> Scalar:
    """Coefficient of restitution of a contact."""
    return where(of_ground(x, c), x.shape_restitution[x.contact_shapes[c, 1]], x.between[1])


def arms(x: Any, c: Any) -> tuple[Scalar, Scalar]:
    """Lever arms of torsional and rolling friction of a contact [m]."""
    return tuple(where(of_ground(x, c), x.ground_arms[k], 0.0) for k in range(2))


def stiffnesses(x: Any) -> tuple[Scalar, Scalar, Scalar]:
    """kd, k_t and kd_t of contacts."""
    k, d, dt = x.pair_stiffness[0], x.pair_damping[0], x.dt[0]
    k_t = TANGENTIAL * k
    return k * dt + d, k_t, k_t * dt + TANGENTIAL**0.5 * d


def impact(more: Scalar, a: Scalar, w: Scalar) -> tuple[Scalar, Scalar]:
    """Damping of an impact that removes as much speed in a step as the continuous law; and its derivative.

    ``more``: d' u0^2 [N s/m]; ``a``: w dt d; ``w``: mobility times dt [m/(N s)].
    """
    share = (2.0 + a) / ((1.0 + a) * (1.0 + a))
    root = sqrt(1.0 + w * share * more)
    return (1.0 + a) * share * more / (1.0 + root), 0.5 * (1.0 + a) * share / root


def rigid() -> Any:
    """Compliance of an impact over the mobility."""
    return in_precision(*RIGID)


def fast(x: Any, c: Any, u: Scalar, load: Scalar) -> Any:
    """Whether a contact with the normal speed u [m/s] bounces when it arrives.

    ``load``: speed that it has given its bodies in the previous step [m/s].
    """
    gravity = vector(x.gravity, 0)
    slow = SHORT * (x.dt[0] * sqrt(gravity.dot(gravity)) + load)
    return (restitution(x, c) > 0.0) & (u < -slow)


def bounce(x: Any, c: Any, u: Scalar, gap: Scalar, since: Any = 0.0) -> tuple[Scalar, Scalar]:
    """Time after the kick at which a contact bounces [s], and the speed at which it leaves [m/s].

    ``c``: the contact; ``u``: normal speed before [m/s]; ``gap``: height above the surface [m], ``since``: at
    this time after the kick [s]. The time is infinite if it does not arrive in this step, for example because
    other forces push it away within the step as fast as it came.
    """
    dt, g = x.dt[0], x.contact_fall[c]
    begins = g * (0.5 * dt + since) - u
    square = begins * begins + 2.0 * g * gap
    arrives = sqrt(maximum(square, 0.0))
    at = since + 2.0 * gap / (maximum(begins, smallest()) + arrives)
    arrived = (begins > 0.0) & (square >= 0.0) & (at < (1.0 + rounding(SEEN)) * dt)
    back, at = restitution(x, c) * arrives, minimum(at, dt)
    return where(arrived, where(2.0 * back < g * (dt - at), dt, at), math.inf), back


def after(x: Any, c: Any, at: Scalar, s: Scalar) -> tuple[Scalar, Scalar]:
    """Distance that a contact of the speed s has moved by the next kick [m], and its speed after the step
    [m/s].

    ``at``: when it has that speed [s]. A contact that bounces after the recorded pose leaves at that pose.
    """
    g, half = x.contact_fall[c], 0.5 * x.dt[0]
    left = maximum(x.dt[0] - at, where(s > 0.0, half, 0.0))
    return left * (s - 0.5 * g * left), s - g * (left - half)


def above(x: Any, c: Any) -> Scalar:
    """Height of a contact above the surface at the kick, on the path of its motion; 0 if it overlaps [m]."""
    return maximum(x.contact_gap[c] - 0.125 * x.contact_fall[c] * x.dt[0] ** 2, 0.0)


def surface(x: Any, c: Any, p: Vector3, rider: Motion) -> tuple[Vector3, Vector3]:
    """Spin of the surface that a body of velocity ``rider`` touches at p, and its velocity there.

    This is for belts and turntables. A kick gives the velocity half a step after its pose; by then, a body
    that rides on a turntable has been carried on by half a step, and relative to the surface at the pose it
    would seem to slide. The body's origin is carried along a straight line; a rotating point is not.
    """
    shape, half = x.contact_shapes[c, 0], 0.5 * x.dt[0]
    spin, at_origin = vector(x.surface_velocity, shape, 0), vector(x.surface_velocity, shape, 3)
    carried = (rider.lin + rider.ang.cross(vector(x.p, x.contact_bodies[c, 1], 0))) * half
    return spin, at_origin + spin.cross(vector(x.origin, 0) + p + carried)


def remember(x: Any) -> None:
    """Store the bristles of closed contacts: pair, feature, bristle, normal and torsional impulse.

    The normal impulse of a contact that leaves after a bounce is 0.
    """

    def contact(c: Any, at: Any) -> Any:
        i, dt, u = x.contact_constraint[c], x.dt[0], x.c_u[x.contact_constraint[c], 2]
        bounced = x.contact_bounces[c] > 0
        N = where(bounced, 0.0, x.c_g[i, 2])
        leaves = (bounced | ((x.contact_bounces[c] < 0) & (N <= 0.0))) & (x.contact_gap[c] + dt * u < 0.0)
        kept = leaves | (N > 0.0)
        _, k_t, _ = stiffnesses(x)
        lasts = where(x.by_group[x.c_group[i], LANDS] > 0.0, minimum(N, x.c_last[i, 2]), N)
        e = _bent(x, c, i, lasts / (dt * k_t))

        def turning() -> None:
            for k in range(3):
                x.bristle[at, 3 + k] = x.c_g[i + 1, k]

        def keep() -> None:
            x.bristle_pair[at], x.bristle_feature[at] = x.contact_pair[c], x.contact_feature[c]
            x.bristle_normal[at] = N
            write_row(x.bristle, at, e)
            cond(maximum(*arms(x, c)) > 0.0, turning, lambda: None)

        cond(kept, keep, lambda: None)
        return where(kept, at + 1, at)

    n = for_range(x.counts[0], contact, 0)

    def clear() -> None:
        x.bristle_pair[n] = -1

    cond(n < x.n_contacts, clear, lambda: None)


def _bent(x: Any, c: Any, i: Any, normal: Scalar) -> Vector3:
    """The bristle after the step, in world axes; ``normal``: its greatest length over mu [m]."""
    axes = [vector(x.contact_frame, c, 3 * k) for k in range(2)]
    slip = [
        x.c_u[i, k] + x.c_ahead[i, 3 + k] - x.contact_surface[c, k] - x.contact_rolls[c, k] for k in range(2)
    ]
    e = [x.contact_bristle[c, k] + x.dt[0] * slip[k] for k in range(2)]
    share = minimum(1.0, x.c_mu[i] * normal / sqrt(e[0] * e[0] + e[1] * e[1] + smallest()))
    return axes[0] * (e[0] * share) + axes[1] * (e[1] * share)


# ==== friction against turning and rolling ========================================================
# Friction of a contact against turning about its normal and against rolling; places of contacts that move on.
#
# The first, from patches of contact, is the normal impulse N times an arm: a moment that holds up to arm N
# and gives way beyond.
#
#     u = axes (omega_b - omega_a)     R = 1e-4 R_t/arm^2     aim = R g_last
#     set: an interval of arm_n N about the normal, a disc of arm_t N about the tangents
#
# g_last is its impulse in the last step, along the contact's axes then: as with dry friction of joints, what
# holds does not creep.
#
# The second: a kick gives the velocity half a step after its pose. By then a body has turned and a link has
# moved along its arc, while places of what floats have moved straight on. Held at rest at the pose, what
# rolls, turns on a tip, stands on a foot or rides on an arm would slide by dt/2 times the acceleration of its
# point, and springs and dampers would take its energy. With the acceleration a of the point of a body while
# those of joints are 0, and its angular velocity w before the kick, each body has there the velocity
#
#     -dt/2 (a + w x r)     r = R (w_b - w_a) x n     1/R = 1/R_a + 1/R_b
#
# and a surface that spins dt/2 spin x (w x m + r), with the way m to the point from the body's origin.
#
# r is how fast the place moves along the surfaces, whose radii are those around the cores: 0 at corners.
# Along a capsule, between its ends, 1/R_a is 0, and 1/R_b of what has corners, which touches it by an edge,
# is infinite. The place of a disc or coin runs along its rim:
#
#     dt/2 r = (down(a') - down(a)) radius + (a' - a) along - dt/2 w x d,     a' = a + dt/2 w x a
#
# a is the disc's axis, down(a) the direction across it that goes lowest, d the way from the disc's middle to
# the place, along its part along the axis. Where two bodies begin to touch there is none of this: that
# changes w. Nor is there any along the normal at a rim: a coin that falls flat runs round by half a radian a
# step, and the spring, which knows the gap of the middle alone, would give more than it took.
#
# N is that of the solution, and slopes are those by the turning and by N (``c_by_load``): with N of the
# iterate before, an eighth of the steps of a quadruped that is thrown with arms of 2 cm took turns and did
# not settle.
#
# Source: torsional and rolling friction as in M. Anitescu, J. Cremer and F. Potra (1996).
# Cost: O(contacts).


FIRM = 1e-4  # compliance over that of the bristles at the arm: a spun ball creeps by 0.3 rad/s with theirs

LOWEST = 1e-6
"""How far the direction to the lowest point may be off, as one less its cosine: by the rounding of places,
far from the rim's other contacts."""

RIM = 0.01  # share of the radius by which a rim's point may seem inside: contacts are half-way in gaps
UPRIGHT = 1e-5  # tilt of a disc below which it stands on its face, and its points keep their places [rad]


def add_spin(
    x: Any,
    i: Any,
    c: Any,
    bodies: tuple[Any, Any],
    axes: list[Vector3],
    R_t: Scalar,
    spin: Scalar,
    w: Scalar,
    last: Vector3,
) -> None:
    """Add the constraint of a contact's torsional and rolling friction, if it has any.

    Args:
        i: constraint of the contact.
        c: the contact.
        bodies: a and b.
        axes: t1, t2, n.
        R_t: compliance of its tangents.
        spin: of the surface about n [rad/s].
        w: mobility of both bodies [1/kg].
        last: its impulse in the last step [N m s].
    """
    torsion, rolling = arms(x, c)
    arm = maximum(torsion, rolling)

    def add() -> None:
        E = [Motion(t, Vector3.zero()) for t in axes]
        R = FIRM * R_t / (arm * arm)
        sizes = [x.shape_bound[x.contact_shapes[c, side]] for side in range(2)]
        size = maximum(minimum(*sizes), arm)
        turn = w / (size * size)
        aim = last * R + Vector3(0.0, 0.0, spin)
        add_constraint(x, SPIN, i, bodies, E, (R, R), aim, turn, rolling, torsion)

    cond(arm > 0.0, add, lambda: None)


def rolling_velocity(x: Any, c: Any, p: Vector3, n: Vector3) -> Vector3:
    """Velocity of b relative to a by which contact c turns, rolls and moves on in half a step [m/s]."""
    shapes, bodies = ([of[c, side] for side in range(2)] for of in (x.contact_shapes, x.contact_bodies))

    def rolled(shapes: Any, bodies: Any, p: Any, n: Any) -> Any:
        return tuple(_rolled(x, shapes, bodies, Vector3(*p), Vector3(*n)))

    return Vector3(*call(rolled, tuple(shapes), tuple(bodies), tuple(p), tuple(n)))


def _rolled(x: Any, shapes: tuple[Any, Any], bodies: tuple[Any, Any], p: Vector3, n: Vector3) -> Vector3:
    """The same for two shapes of bodies a and b that touch at p with the normal n."""
    turns = [body_velocity(x, body).ang for body in bodies]
    first, second = (x.shape_radius[shape] for shape in shapes)
    both = first * second / (first + second + smallest())
    turning, radius = (turns[1] - turns[0]).cross(n), where(both > 0.0, both, first + second)
    rolls = turning * radius

    def straight(b: Any, shape: Any, p: Any) -> Any:
        return tuple(_straight(x, b, shape, Vector3(*p)))

    for body, shape, other in zip(bodies, shapes, (second, first), strict=True):
        t = Vector3(*call(straight, body, shape, tuple(p)))
        rolls = rolls + t * (t.dot(turning) * (other - radius))

    def along(b: Any, shape: Any, *of: Any) -> Any:
        return tuple(_along_rim(x, b, shape, *(Vector3(*each) for each in of)))

    rims = Vector3.zero()
    for body, shape, w, up in zip(bodies, shapes, turns, (-n, n), strict=True):
        rims = rims + Vector3(*call(along, body, shape, tuple(w), tuple(p), tuple(up)))
    rolls = rolls + rims
    found, spins = Vector3.zero(), (Vector3.zero(), vector(x.surface_velocity, shapes[0], 0))
    for body, w, spin, half in zip(bodies, turns, spins, (-0.5 * x.dt[0], 0.5 * x.dt[0]), strict=True):
        at = from_seat(x, body, p)
        way = w.cross(at - vector(x.p, body, 0)) + rolls
        found = found + (_turning(x, body, at, rolls) - way.cross(spin)) * half
    return found - n * where(rims.dot(rims) > 0.0, n.dot(found), 0.0)


def _turning(x: Any, b: Any, p: Vector3, rolls: Vector3) -> Vector3:
    """How fast the velocity of body b at a place that moves along with it, and rolls, is lost [m/s^2].

    ``p``: the place, from the seat of the body; ``rolls``: its velocity against the body. Accelerations while
    those of joints are 0, as in :func:`robokit.contact.kinematics.bias`.
    """
    V, a = body_velocity(x, b), motion(x.a, b)
    return p.cross(a.ang) - a.lin + (V.lin + V.ang.cross(p) + rolls).cross(V.ang)


def from_seat(x: Any, b: Any, p: Vector3) -> Vector3:
    """A place relative to the step's origin, relative to the seat of a body instead."""
    return p - vector(x.seat, b, 0)


def _straight(x: Any, b: Any, shape: Any, p: Vector3) -> Vector3:
    """Unit vector along which a shape of body b is straight at p: a capsule between its ends; else 0."""

    def between_ends() -> Any:
        first = x.shape_corners[shape, 0]
        start, end = (place_on(x, b, vector(x.corners, first + k, 0)) for k in range(2))
        axis = end - start
        share = axis.dot(from_seat(x, b, p) - start) / axis.dot(axis)
        beside = (share > LOWEST) & (share < 1.0 - LOWEST)
        return tuple(chosen(beside, axis * (1.0 / sqrt(axis.dot(axis))), Vector3.zero()))

    return Vector3(*cond(x.shape_kind[shape] == SEGMENT, between_ends, lambda: (0.0,) * 3))


def _along_rim(x: Any, b: Any, shape: Any, w: Vector3, p: Vector3, n: Vector3) -> Vector3:
    """Velocity relative to the body with which the contact point of a disc moves along its rim [m/s].

    It is 0 unless the point is the lowest one. ``b``, ``shape``: the disc's body and shape; ``w``: its
    angular velocity; ``p``: the point, from the step's origin [m]; ``n``: the normal towards the disc.
    """

    def on_rim() -> Any:
        R, half = axes_of(x, b), 0.5 * x.dt[0]
        a = R @ Vector3(*(x.shape_placement[shape, 3 * k + 2] for k in range(3)))
        centre = R @ Vector3(*(x.shape_placement[shape, 9 + k] for k in range(3))) + vector(x.p, b, 0)
        radius = x.shape_size[shape, 0] + x.shape_radius[shape]
        rim = from_seat(x, b, p) - centre
        out = rim - a * a.dot(rim)
        down = a * a.dot(n) - n
        tilt = sqrt(down.dot(down) + UPRIGHT * UPRIGHT)
        later = a + w.cross(a) * half
        later = later * (1.0 / sqrt(later.dot(later)))
        lower = later * later.dot(n) - n
        lower = lower * (1.0 / sqrt(lower.dot(lower) + UPRIGHT * UPRIGHT))
        size = sqrt(out.dot(out))
        is_lowest = (out.dot(down) > (1.0 - LOWEST) * size * tilt) & (size > (1.0 - RIM) * radius)
        s = (lower - down * (1.0 / tilt)) * radius + (later - a) * a.dot(rim)
        return tuple(chosen(is_lowest, s * (1.0 / half) - w.cross(rim), Vector3.zero()))

    is_disc = x.shape_kind[shape] == CYLINDER
    return Vector3(*cond(is_disc, on_rim, lambda: (0.0,) * 3))
