"""What a step enters into the ledger: energies, impulses, depths, and what the solver took.

A constant force f over a step that changes the velocity of its point from u to u' does the work f (u + u')/2:
these sums are exact, whatever the step.

Source: the change of 1/2 v^T H v is dt f . (v + v')/2.
Cost: O(contacts + rows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robokit.contact.constraints.adding import axes_of
from robokit.contact.constraints.contacts import of_ground
from robokit.contact.fields import FRICTION, LINE, MOTOR, PRESCRIBED, SPEED, SPIN, SPRING, STOP
from robokit.contact.groups import HELD, add_to, each_group
from robokit.contact.kinematics import (
    advance,
    known_row,
    place_bodies,
    velocities,
)
from robokit.contact.landings import limited
from robokit.contact.linear import sum_of
from robokit.contact.solver import before
from robokit.contact.vectors import (
    about,
    force,
    inertia,
    matrix,
    motion,
    nothing,
    of_force,
    put,
    vector,
    write,
    write_row,
)
from robokit.engine.loops.fields import once
from robokit.spatial import Force, RigidInertia, Vector3
from robokit.spatial.control_flow import cond, for_range, rounding, smallest
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.rotation import quat_exp, quat_multiply, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

ENTRIES = (
    "contact",  # energy taken by the ground [J], that stored in its springs included
    "friction",  # energy taken by damping and friction of the joints [J]
    "stops",  # energy taken by joint limits [J]
    "work",  # energy given by joint forces, motors, pushes and belts [J]
    "impulse_nx",  # impulse of the ground about the centre of mass, world axes [N m s; N s]
    "impulse_ny",
    "impulse_nz",
    "impulse_fx",
    "impulse_fy",
    "impulse_fz",
    "depth",  # deepest point in the ground so far [m]
    "residual",  # largest residual of a solution so far, relative
    "residual_sum",  # sum of the residuals
    "corrected_k",  # sum of the angular momentum that steps missed and the projection gave back [N m s]
    "corrected_l",  # the same of the linear momentum [N s]
    "corrected_e",  # the same of the energy [J]
    "collision",  # energy taken by contacts between bodies [J]
    "overlap",  # deepest overlap of two bodies so far [m]
    "pressed",  # sum of the normal impulses on the ground [N s]
    "pulled",  # sum of the normal impulses that pull: 0 [N s]
    "outside",  # sum of the tangential impulses outside Coulomb's cone: 0 [N s]
    "steps",  # that were taken
    "iterations",  # of all these
    "most",  # of one step
    "missed",  # steps that did not settle
    "springs",  # energy taken by springs and dampers [J], that stored in them included; part of "work"
)
"""Entries of the ledger of a step."""

AT = {name: k for k, name in enumerate(ENTRIES)}

GIVEN, TOUCHED, IMPULSE, PATH, MASS, MOVED, AHEAD, LANDED = 0, 1, 2, 8, 11, 12, 13, 16
"""Places in a row of ``account``."""


def open_account(x: Any) -> None:
    """Open the account of a step, before the solve, at the middle: ``f`` holds the given forces on each body
    and all that it carries.

    ``account`` has a row for each mechanism (a tree, or trees that loops connect). Impulses on a floating one
    are taken about the point to which its momentum moves its centre of mass: with that, the moments about any
    fixed point add up to the change of angular momentum about it. The centre of mass of the bodies at the
    middle is off that path by the error of the drift.
    """
    for_range(x.n_wholes, lambda w: _clear(x.account, w, LANDED + 2))

    def child(b: Any, w: Any) -> None:
        add_to_row(x.account, w, IMPULSE, force(x.f, b) * x.dt[0])
        add_to_row(x.account, w, MASS, [x.composite[b, 0]])

    def whole(w: Any) -> None:
        lin = vector(x.kept, w, MOMENTUM_AT + 3)
        path = vector(x.kept, w, CENTRE_AT) + lin * (0.5 * x.dt[0] / x.account[w, MASS])
        add_to_row(x.account, w, PATH, path - vector(x.origin) - seat_of(x, w))

    def prescribed(m: Any) -> None:
        x.account[x.row_whole[x.dof_row[x.motion_dof[m]]], MOVED] = 1.0

    _children(x, child)
    for_range(x.n_motions, prescribed)
    cond(x.keeps[0] == FREE, lambda: _wholes(x, whole), nothing)


def account(x: Any) -> None:
    """Enter a step into the ledger, after the solve, at its middle."""
    com = _centre(x)
    cond((x.n_parts > 1) | (x.n_loops > 0), lambda: once(x, velocities, x.y, x.Vd), nothing)
    _given(x, com)
    once(x, touch)
    for_range(x.n_of[0], lambda i: _constraint(x, i, com))
    for_range(x.n_of[1], lambda i: _row(x, i))
    cond(x.landed[0] > 0, lambda: once(x, _land), nothing)
    iterations, residual = x.solved[0] + x.passed[0], maximum(x.solved[1], x.passed[1])
    largest(x, "residual", residual)
    add(x, "residual_sum", residual)
    add(x, "steps", 1.0)
    add(x, "iterations", iterations)
    largest(x, "most", iterations)
    add(x, "missed", maximum(x.solved[2], x.passed[2]))


def touch(x: Any) -> None:
    """Enter the impulses that press on each mechanism, from contacts and joint limits."""

    def presses(w: Any, amount: Scalar) -> None:
        x.account[w, TOUCHED] = x.account[w, TOUCHED] + amount

    def contact(i: Any) -> None:
        pressed = where(x.c_kind[i] == FRICTION, maximum(x.c_g[i, 2], 0.0), 0.0)
        for k in range(2):  # steps of planes know the first body, and have it nowhere
            b = x.c_bodies[i, k]
            presses(x.body_whole[b], where(b > 0, pressed, 0.0))  # the world is of no whole

    def stop(i: Any) -> None:
        presses(x.row_whole[x.r_row[i]], where(x.r_kind[i] == STOP, abs(x.r_g[i]), 0.0))

    for_range(x.n_wholes, lambda w: put(x.account, (w, TOUCHED), 0.0))
    for_range(x.n_of[0], contact)
    for_range(x.n_of[1], stop)


def seat_of(x: Any, w: Any) -> Vector3:
    """The first base of a mechanism, which all its numbers are about, from the step's origin [m]."""
    return vector(x.seat, x.wholes[w, 0])


def add_to_row(A: Any, row: Any, first: int, values: Any) -> None:
    """Add numbers to a row, from a column on."""
    for k, value in enumerate(values):
        A[row, first + k] = A[row, first + k] + value


def _clear(A: Any, row: Any, columns: int) -> None:
    for_range(columns, lambda k: put(A, (row, k), 0.0))


def _children(x: Any, do: Any) -> None:
    """Call do(b, w) with each child b of the world, which belongs to mechanism w."""

    def body(m: Any) -> None:
        b = m + 1
        cond(x.parent[b] == 0, lambda: do(b, x.body_whole[b]), nothing)

    for_range(x.n_bodies - 1, body)


def _wholes(x: Any, do: Any) -> None:
    """Call do(w) with each floating mechanism."""
    for_range(x.n_wholes, lambda w: cond(floats(x, w), lambda: do(w), nothing))


def floats(x: Any, w: Any) -> Any:
    """Whether a mechanism floats: it is not fixed to the world."""
    return x.wholes[w, 1] > 0


def add(x: Any, name: str, amount: Scalar) -> None:
    """Add to an entry."""
    x.ledger[AT[name]] = x.ledger[AT[name]] + amount


def largest(x: Any, name: str, value: Scalar) -> None:
    """Keep the largest value so far."""
    x.ledger[AT[name]] = maximum(x.ledger[AT[name]], value)


def _gives(x: Any, w: Any, amount: Scalar) -> None:
    x.account[w, GIVEN] = x.account[w, GIVEN] + amount


def _impulse(f: Force, entries: Any, first: int) -> None:
    """Enter an external impulse about the centre of mass."""
    for k, amount in enumerate([*f]):
        entries[first + k] = entries[first + k] + amount


def _centre(x: Any) -> Vector3:
    """The common centre of mass, relative to the origin; floating mechanisms are on the paths of their
    momentum.
    """

    def child(m: Any, *h: Scalar) -> tuple[Scalar, ...]:
        b = m + 1
        w, m = x.body_whole[b], x.composite[b, 0]
        on_path = floats(x, w) & (x.keeps[0] == FREE)
        own = chosen(on_path, vector(x.account, w, PATH) * m, vector(x.composite, b, 1))
        return tuple(
            total + where(x.parent[b] == 0, o, 0.0)
            for total, o in zip(h, own + vector(x.seat, b) * m, strict=True)
        )

    m = x.composite[0, 0]
    return Vector3(*for_range(x.n_bodies - 1, child, 0.0, 0.0, 0.0)) * (1.0 / where(m > 0.0, m, 1.0))


# ---- what is given ----------------------------------------------------------------------------------------


def _given(x: Any, com: Vector3) -> None:
    """Enter joint forces and pushes."""
    half = 0.5 * x.dt[0]

    def row(j: Any, W: Scalar) -> Scalar:
        power = x.tau[j] * (x.v0[j] + x.y[j])
        _gives(x, x.row_whole[j], power)
        return W + power

    def whole(w: Any) -> None:
        outside = force(x.account, w, IMPULSE)
        _impulse(about(outside, com - seat_of(x, w)), x.outside_impulse, 0)
        x.account[w, GIVEN] = half * x.account[w, GIVEN]
        for k, amount in enumerate(about(outside, vector(x.account, w, PATH))):
            x.account[w, IMPULSE + k] = amount

    add(x, "work", for_range(x.nv, row, 0.0) * half)
    for_range(x.n_wholes, whole)


# ---- contacts ---------------------------------------------------------------------------------------------


def on_ground(x: Any, i: Any) -> Any:
    """Whether a constraint is a contact of a link with the ground, and not its torsional friction."""
    return cond(x.c_kind[i] == FRICTION, lambda: of_ground(x, x.c_of[i]), lambda: False)


def _constraint(x: Any, i: Any, com: Vector3) -> None:
    """Enter a contact, its torsional friction, or half of a loop."""
    u, g = once(x, before, i), [x.c_g[i, k] for k in range(3)]
    given = sum_of(0.5 * (a + x.c_u[i, k]) * g[k] for k, a in enumerate(u))
    spins, kind, f = x.c_kind[i] == SPIN, x.c_kind[i], impulse_of(x, i)
    c = x.c_of[where(spins, x.c_of[i], i)]  # number of a contact
    bodies = [x.c_bodies[i, k] for k in range(2)]  # steps of planes know the first, and have it nowhere
    a, b = (x.body_whole[body] for body in bodies)

    def on_one(k: Any, left: Scalar) -> Scalar:
        """Of two wholes: the impulse on one, and the work that is done on it; ``left`` is that of both."""
        body = where(k > 0, bodies[1], bodies[0])
        w, arm = where(k > 0, b, a), vector(x.c_arms, (i, k))
        on_it = about(f * where(k > 0, 1.0, -1.0), -arm)
        work = where(k > 0, left, 0.5 * (motion(x.V, body) + motion(x.Vd, body)).dot(on_it))
        _gives(x, w, work)
        add_to_row(x.account, w, IMPULSE, about(on_it, vector(x.account, w, PATH)))
        return left - work

    def apart() -> None:
        for_range(2, on_one, given)

    def contact() -> Any:
        ground = of_ground(x, c)
        gap = where(spins, 0.0, x.contact_gap[c])
        cond(ground, lambda: _ground(x, i, c, spins, given, gap), lambda: _met(x, given, gap))
        return ground

    def spring() -> Any:
        add(x, "work", given)
        add(x, "springs", -given)
        return False

    def from_outside() -> None:
        on_all = about(f, com - vector(x.seat, bodies[1]) - vector(x.c_arms, (i, 1)))
        cond(
            ground,
            lambda: _impulse(on_all, x.ledger, AT["impulse_nx"]),
            lambda: _impulse(on_all, x.outside_impulse, 0),
        )

    def others() -> Any:
        return cond(kind == SPRING, spring, contact)

    cond(a == b, lambda: _gives(x, b, given), apart)
    ground = cond(kind == LINE, lambda: False, others)
    cond((bodies[0] == 0) & (kind != LINE), from_outside, nothing)


def _land(x: Any) -> None:
    """Enter what landings add: to the displacements of the mechanisms, and to their angular momentum.

    During the motion to the next kick, the impulse D acts in addition to that of the velocity after the step,
    so the centre of mass of a mechanism moves farther by dt D/m. Two mechanisms then miss the angular
    momentum dt (v_b' - v_a') x D, with their velocities v' after the step: half of it each. The ground adds
    dt D x (v' - v_G') about the common centre of mass G.
    """
    m = x.composite[0, 0]
    v_G = _momentum_after(x) * (1.0 / where(m > 0.0, m, 1.0))

    def constraint(i: Any) -> None:
        D, bodies = ahead_of(x, i), [x.c_bodies[i, k] for k in range(2)]
        ground = on_ground(x, i)
        size = where(x.c_kind[i] == FRICTION, abs(x.c_ahead[i, 2]), 0.0)
        for b, sign in zip(bodies, (-1.0, 1.0), strict=True):
            more = [*(D * where(b > 0, sign, 0.0)), where(ground, size, 0.0), where(ground, 0.0, size)]
            add_to_row(x.account, x.body_whole[b], AHEAD, more)

    def between(i: Any) -> None:
        a, b = (x.body_whole[x.c_bodies[i, k]] for k in range(2))
        moment = _missed(x, i, velocity_after(x, b) - velocity_after(x, a))
        for w in (a, b):
            add_to_row(x.account, w, IMPULSE, moment)
        late = late_moment(x, i) - ahead_of(x, i).cross(v_G) * x.dt[0]
        _impulse(late * where(on_ground(x, i), 1.0, 0.0), x.ledger, AT["impulse_nx"])

    def lifted(b: Any, energy: Scalar) -> None:
        w = x.body_whole[b]
        free = floats(x, w) & (x.keeps[0] == FREE)  # its centre of mass has a path
        _gives(x, w, where(free, 0.0, energy))

    for_range(x.n_of[0], constraint)
    cond(x.keeps[0] == FREE, lambda: for_range(x.n_of[0], between), nothing)
    lift(x, lifted)


def _missed(x: Any, i: Any, u: Vector3) -> Vector3:
    """Half of the angular momentum that two mechanisms miss, whose centres of mass separate at u after the
    step.
    """
    a, b = (x.body_whole[x.c_bodies[i, k]] for k in range(2))
    both = floats(x, a) & floats(x, b) & (a != b)
    return u.cross(ahead_of(x, i)) * where(both, 0.5 * x.dt[0], 0.0)


def ahead_of(x: Any, i: Any) -> Vector3:
    """D of a constraint on its second body: impulse of the motion to the next kick, minus that of the
    velocity after the step.
    """
    return sum_of(motion(x.c_E, i, 6 * k).lin * x.c_ahead[i, k] for k in range(3))


def velocity_after(x: Any, w: Any) -> Vector3:
    """Velocity of the centre of mass of a mechanism after the step; 0 if it does not float."""
    free, m = floats(x, w) & (x.keeps[0] == FREE), x.account[w, MASS]
    momentum = vector(x.kept, w, MOMENTUM_AT + 3) + vector(x.account, w, IMPULSE + 3)
    velocity = momentum * (1.0 / where(m > 0.0, m, 1.0)) + vector(x.gravity) * x.dt[0]
    return velocity * where(free, 1.0, 0.0)


def _momentum_after(x: Any) -> Vector3:
    """Momentum of all floating mechanisms after the step, world axes [N s]."""

    def whole(w: Any, *total: Scalar) -> tuple[Scalar, ...]:
        return tuple(p + x.account[w, MASS] * u for p, u in zip(total, velocity_after(x, w), strict=True))

    return Vector3(*for_range(x.n_wholes, whole, 0.0, 0.0, 0.0))


def late_moment(x: Any, i: Any) -> Vector3:
    """Moment that a landing contact exerts on both bodies about a fixed point, in addition to that of its
    impulse.

    The impulse acts as if at once, and D when the mechanisms have moved on by dt v', the mean velocity of
    those that move.
    """
    a, b = (x.body_whole[x.c_bodies[i, k]] for k in range(2))
    v = (velocity_after(x, a) + velocity_after(x, b)) * where(floats(x, a) & floats(x, b), 0.5, 1.0)
    return ahead_of(x, i).cross(v) * x.dt[0]


def _ground(x: Any, i: Any, c: Any, spins: Any, given: Scalar, gap: Scalar) -> None:
    """Enter a contact with the ground; the work of a belt is its force times the velocity of its surface."""
    g = [x.c_g[i, k] for k in range(3)]
    slides = g[0] * x.contact_surface[c, 0] + g[1] * x.contact_surface[c, 1]
    belt = where(spins, g[2] * x.contact_surface[c, 2], slides)
    add(x, "contact", belt - given)
    add(x, "work", belt)
    largest(x, "depth", -gap)
    add(x, "pressed", where(spins, 0.0, maximum(g[2], 0.0)))


def _met(x: Any, given: Scalar, gap: Scalar) -> None:
    """Enter a contact of two links."""
    add(x, "collision", -given)
    largest(x, "overlap", -gap)


def impulse_of(x: Any, i: Any) -> Force:
    """That of a constraint on its second body, about its place."""
    return of_force(once(x, _impulse_of, i))


def _impulse_of(x: Any, i: Any) -> tuple[Scalar, ...]:
    E, g = [motion(x.c_E, i, 6 * k) for k in range(3)], [x.c_g[i, k] for k in range(3)]
    ang = sum_of(e.ang * s for e, s in zip(E, g, strict=True))
    return *ang, *sum_of(e.lin * s for e, s in zip(E, g, strict=True))


# ---- joints -----------------------------------------------------------------------------------------------


def _row(x: Any, i: Any) -> None:
    """Enter a row of a joint: damping, friction, a limit or a motor."""
    j, g, kind = x.r_row[i], x.r_g[i], x.r_kind[i]
    given = 0.5 * x.r_gain[i] * (x.v0[j] + x.y[j]) * g
    _gives(x, x.row_whole[j], given)

    def motor() -> None:
        add(x, "work", given)
        m = x.r_of[i]
        x.motor_sums[m, 0] = x.motor_sums[m, 0] + g
        x.motor_sums[m, 1] = x.motor_sums[m, 1] + x.dt[0] * limited(x, i)

    def rest() -> None:
        cond(kind == STOP, lambda: add(x, "stops", -given), lambda: add(x, "friction", -given))

    def not_driven() -> None:
        cond(kind == PRESCRIBED, lambda: add(x, "work", given), rest)

    cond(kind == MOTOR, motor, not_driven)


def enter_closing(x: Any) -> None:
    """Enter the forces of prescribed joints at the end of a step, where velocities are projected onto the
    loops.

    The kick leaves an error of second order in the velocities of a loop, which would be one of first order in
    its force.
    """

    def joint(m: Any) -> None:
        row, force = x.dof_row[x.motion_dof[m]], x.motion_push[m] / x.dt[0]
        x.motion_force[m] = x.motion_force[m] + force
        add(x, "work", x.motion_push[m] * x.motion_values[m, SPEED])

        def note() -> None:
            n = x.noted[0] - 1
            put(x.noted_joint, (n, row, 0), x.noted_joint[n, row, 0] + x.dof_gain[x.motion_dof[m]] * force)

        if hasattr(x, "noted"):
            cond(x.watched[0] > 1, note, nothing)

    cond(x.n_loops > 0, lambda: for_range(x.n_motions, joint), nothing)


# ==== What keeps momentum, energy and the path of the centre of mass at the end of a step ==============
# Each whole that hangs on nothing keeps its own: a robot on a free base, or what loops hold together of
# several. The error of a step is put right by a rigid motion of the whole, which adds the momentum that is
# missing about its centre of mass G, and by one number x for the energy. It moves as a rigid whole and in its
# shape, and the two share no kinetic energy:
#
#     T = 1/2 M v_G^2 + 1/2 k^T I_G^-1 k + T_s        k = I_G omega: angular momentum about G
#     T_s <- (1 + 2 x) T_s        turn by x I_G^-1 (omega x k) / omega^2
#
# G goes where the mean of the momentum before and after the step takes it, so that with k about G the angular
# momentum about any fixed point changes by what the impulses give. Where nothing touches, k stays and the
# energy about G is met. A step with contacts is less exact: there energy is only taken, where the step has
# made some; what it has lost stays lost. Where no whole hangs on nothing, T of each is scaled to meet T + V;
# beside one that does, what the world holds is left as it is.
#
# Source: projection methods, Hairer, Lubich and Wanner, "Geometric numerical integration", section IV.4;
# kinetic energy about G, dynamics notes eq. 20-22.
# Cost: O(n), one pass of kinematics.


NOTHING, FIXED, FREE = range(3)
"""What is kept: nothing; the energy of each whole, where none hangs on nothing; momentum and energy of those
that do."""

LARGEST = 0.25
"""Bound of x, and of the turn beside that of the step itself: a step so wrong that this does not mend it
keeps the rest of its error, and the rounding of forces turns no robot that hardly moves."""

SMALL = 1e-12
"""Part of the energies below which a kinetic energy is hardly scaled to meet them: a robot that comes to rest
stays there, and what is missing is carried until there is motion again."""

MOMENTUM_AT, ENERGY_AT, CENTRE_AT, KNOWN_AT = 0, 6, 7, 10  # places in a row of ``kept``


class Inner(NamedTuple):
    """A mechanism seen from its centre of mass G, in world axes."""

    m: Scalar  # mass [kg]
    com: Vector3  # centre of mass from the first base [m]
    u: Vector3  # velocity of G, relative to that of the base of one that has one [m/s]
    k: Vector3  # angular momentum about G [N m s]
    I_G: tuple[Scalar, ...]  # rotational inertia about G as one rigid body: xx, yy, zz, xy, xz, yz [kg m^2]
    T: Scalar  # kinetic energy about G [J]
    spun: Vector3  # angular velocity of one rigid body with this k [rad/s]
    T_s: Scalar  # kinetic energy beside that of this body [J]
    velocity: Vector3  # of G in the world [m/s]


class Change(NamedTuple):
    """The correction of a mechanism."""

    s: Scalar  # factor of its shape's velocities
    more: Scalar  # s - 1
    spun: Vector3  # spin as one rigid body, before [rad/s]
    faster: Vector3  # change of that [rad/s]
    turn: tuple[Scalar, ...]  # quaternion
    com: Vector3  # as in Inner
    u: Vector3
    moved: Vector3  # change of the velocity of G [m/s]

    @classmethod
    def of(cls, row: Any) -> Change:
        """Unpack a correction from a row."""
        spun, faster, com, u, moved = (Vector3(*row[first : first + 3]) for first in (2, 5, 12, 15, 18))
        return cls(row[0], row[1], spun, faster, tuple(row[8:12]), com, u, moved)

    def numbers(self) -> list[Scalar]:
        """Pack a correction into a row."""
        return [n for part in self for n in (part if isinstance(part, (Vector3, tuple)) else (part,))]


def begin(x: Any) -> None:
    """Set the quantities that are conserved from now on, before the first step."""

    def whole(w: Any) -> None:
        state = _inner(x, w)
        centre = vector(x.origin) + seat_of(x, w) + state.com
        write_row(x.kept, w, [*state.k, *state.velocity * state.m, state.T, *centre])

    def fixed(w: Any) -> None:
        T, V = _energies(x, w)
        x.kept[w, ENERGY_AT] = T + V

    def all_of_it() -> None:
        x.kept[0, KNOWN_AT] = 1.0
        once(x, _see, x.q, x.v)
        cond(x.keeps[0] == FREE, lambda: _wholes(x, whole), lambda: for_range(x.n_wholes, fixed))

    new = (x.kept[0, KNOWN_AT] == 0.0) & (x.keeps[0] > NOTHING)
    cond(new, all_of_it, nothing)


def conserve(x: Any) -> None:
    """Correct q and v at the end of a step."""

    def all_of_it() -> None:
        once(x, _see, x.q, x.v)
        for_range(x.n_wholes, lambda w: put(x.corrected, (w, 0), 1.0))
        cond(x.keeps[0] == FREE, lambda: _wholes(x, lambda w: _hold(x, w)), lambda: _hold_energies(x))
        _correct(x)

    cond(x.keeps[0] > NOTHING, all_of_it, nothing)


# ---- states -----------------------------------------------------------------------------------------------


def _see(x: Any, q: Any, v: Any) -> None:
    """Inertia, momentum and energy of the mechanisms in a state, to ``seen``, about their first bases.

    A mechanism with one base is seen from axes that move with it, so that a fast fall adds no rounding.
    """
    for_range(x.nv, lambda j: put(x.mean, j, v[j]))
    once(x, place_bodies, q)

    def child(b: Any, w: Any) -> None:
        cond(x.wholes[w, 1] == 1, lambda: write(x.mean, _base(x, b) + 3, [0.0] * 3), nothing)

    _children(x, child)
    once(x, velocities, x.mean, x.W)
    for_range(x.n_wholes, lambda w: _clear(x.seen, w, 17))

    def body(m: Any) -> None:
        b = m + 1
        w, V = x.body_whole[b], motion(x.W, b)
        h = inertia(x.I, b) @ V
        for_range(10, lambda k: put(x.seen, (w, k), x.seen[w, k] + x.I[b, k]))
        add_to_row(x.seen, w, 10, [*h, V.dot(h)])

    def rotor(j: Any) -> None:
        rate = x.dof_gain[j] * x.mean[known_row(x.dof_row[j])]
        add_to_row(x.seen, x.body_whole[x.dof_body[j]], 16, [x.armature[j] * rate * rate])

    for_range(x.n_bodies - 1, body)
    for_range(x.n_dofs, rotor)


def _inner(x: Any, w: Any) -> Inner:
    m, *rest = once(x, _numbers_of_inner, w)
    com, u, k = (Vector3(*rest[first : first + 3]) for first in (0, 3, 6))
    spun, velocity = (Vector3(*rest[first : first + 3]) for first in (16, 20))
    return Inner(m, com, u, k, tuple(rest[9:15]), rest[15], spun, rest[19], velocity)


def _numbers_of_inner(x: Any, w: Any) -> tuple[Scalar, ...]:
    I, h = inertia(x.seen, w), force(x.seen, w, 10)
    com, u = I.h * (1.0 / I.m), h.lin * (1.0 / I.m)
    T, k, I_G = 0.5 * x.seen[w, 16] - 0.5 * h.lin.dot(u), h.ang - com.cross(h.lin), central_inertia(I, com)
    spun, base = solve3(factor3(I_G), k), x.wholes[w, 0]
    own, seen = (vector(v, None, _base(x, base) + 3) for v in (x.v, x.mean))
    velocity = u + axes_of(x, base) @ (own - seen)
    return I.m, *com, *u, *k, *I_G, T, *spun, maximum(T - 0.5 * k.dot(spun), 0.0), *velocity


def _energies(x: Any, w: Any) -> tuple[Scalar, Scalar]:
    """T and V of a mechanism [J]; V is 0 where its centre of mass is at the height of the world's origin."""
    m, h = x.seen[w, 0], vector(x.seen, w, 1)
    seat = vector(x.origin) + seat_of(x, w)
    return 0.5 * x.seen[w, 16], -vector(x.gravity).dot(h + seat * m)


def _with_impulse(x: Any, w: Any, m: Scalar, impulse: Force) -> tuple[Force, Force, Vector3]:
    """Momentum before the step, and with the impulses about G and of the weight; mean velocity of G."""
    before = force(x.kept, w, MOMENTUM_AT)
    weight = vector(x.gravity) * (m * x.dt[0])
    wanted = Force(before.ang + impulse.ang, before.lin + impulse.lin + weight)
    return before, wanted, (before.lin + wanted.lin) * (0.5 / m)


def gain(x: Any, enter: Any) -> None:
    """Call enter(w, energy) with the energy change of this kick [J] for each mechanism for which
    :func:`gains` holds.

    The energy is that at the end of the step, with the momentum from the impulses; a mechanism that nothing
    touches keeps its energy. Called in the middle of a step, after :func:`solver.impulses` and :func:`touch`,
    before the account of the step.
    """
    for_range(x.n_wholes, lambda w: _clear(x.corrected, w, TIED + 1))

    def tied(k: Any) -> None:
        for end in range(2):
            x.corrected[x.body_whole[x.loop_bodies[k, end]], TIED] = 1.0

    for_range(x.n_loops, tied)
    _children(x, lambda b, w: add_to_row(x.corrected, w, 0, force(x.pushed, b)))

    def velocity(w: Any) -> Vector3:
        pushed = vector(x.corrected, w, 3) + vector(x.account, w, IMPULSE + 3)
        m = x.account[w, MASS]
        return (vector(x.kept, w, MOMENTUM_AT + 3) + pushed) * (1.0 / where(m > 0.0, m, 1.0))

    def between(i: Any) -> None:
        a, b = (x.body_whole[x.c_bodies[i, k]] for k in range(2))
        moment = _missed(x, i, velocity(b) - velocity(a))
        for w in (a, b):
            add_to_row(x.corrected, w, 0, moment)

    for_range(x.n_of[0], between)
    for_range(x.nq, lambda k: put(x.q_drifted, k, x.q[k]))
    for_range(x.nv, lambda j: put(x.d, j, x.y[j]))
    once(x, advance, x.q_drifted, x.d, x.ahead, 0.5 * x.dt[0])
    once(x, _see, x.q_drifted, x.d)

    def whole(w: Any) -> None:
        state, pushed = _inner(x, w), force(x.corrected, w) + force(x.account, w, IMPULSE)
        impulse = about(pushed, vector(x.account, w, PATH))
        _, wanted, mean = _with_impulse(x, w, state.m, impulse)
        I_G = factor3(state.I_G)
        T = state.T_s + 0.5 * wanted.ang.dot(solve3(I_G, wanted.ang))
        gained = T - x.kept[w, ENERGY_AT] + impulse.lin.dot(mean)
        enter(w, where(gains(x, w), gained, 0.0))

    _wholes(x, whole)
    once(x, place_bodies, x.q_kick)


TIED = 6  # place in a row of ``corrected`` meanwhile: 1 where a loop ties bodies of a whole


def gains(x: Any, w: Any) -> Any:
    """Whether a mechanism is touched and can gain energy at the end of a step; valid after :func:`gain`.

    Loops move bodies from where q has them; mechanisms with loops have joints, and so motion from which
    energy can be taken.
    """
    return floats(x, w) & (x.account[w, TOUCHED] > 0.0) & (x.corrected[w, TIED] == 0.0)


def lift(x: Any, enter: Any) -> None:
    """Call enter(b, energy) with the potential energy [J] by which y1 lifts each body more than y would.

    The work of contacts and joints is what they do with y; in landings and bounces, the motion to the next
    kick has another velocity, y1.
    """

    def body(m: Any) -> None:
        momentum = inertia(x.I, m + 1) @ motion(x.W, m + 1)
        enter(m + 1, -0.5 * x.dt[0] * vector(x.gravity).dot(momentum.lin))

    for_range(x.nv, lambda j: put(x.mean, j, x.ahead[j] - x.y[j]))
    once(x, velocities, x.mean, x.W)
    for_range(x.n_bodies - 1, body)


def _takes(x: Any, w: Any, energy: Scalar) -> None:
    """Enter the energy that a landing takes in addition, because forces do other work along y1
    than along y.
    """
    ground, links = (x.account[w, LANDED + k] for k in range(2))
    share = where(ground + links > 0.0, energy / (ground + links + smallest()), 0.0)
    add(x, "contact", share * ground)
    add(x, "collision", share * links)


# ---- ends -------------------------------------------------------------------------------------------------


def _hold_energies(x: Any) -> None:
    """Correct the energy of fixed mechanisms: jointly for those that touch each other, otherwise separately.

    Contacts exchange energy between them, to rounding; in their sum it cancels.
    """

    def note(w: Any) -> None:
        T, V = _energies(x, w)
        touched = where(x.account[w, TOUCHED] > 0.0, 1.0, 0.0)
        numbers = (T, T + abs(V), _target(x, w) - T - V, x.account[w, MOVED])
        for k, amount in enumerate(numbers):
            add_to(x, x.whole_group[w], HELD + k, touched * amount)

    each_group(x, lambda p: for_range(4, lambda k: put(x.by_group, (p, HELD + k), 0.0)))
    for_range(x.n_wholes, lambda w: put(x.whole_group, w, 0))
    for_range(x.nv, lambda j: put(x.whole_group, x.row_whole[j], x.row_group[j]))
    for_range(x.n_wholes, note)
    for_range(x.n_wholes, lambda w: _hold_energy(x, w))


def _hold_energy(x: Any, w: Any) -> None:
    T, V = _energies(x, w)
    touched, target = x.account[w, TOUCHED] > 0.0, _target(x, w)
    own = (T, T + abs(V), target - T - V, x.account[w, MOVED])
    together = (x.by_group[x.whole_group[w], HELD + k] for k in range(4))
    T_all, size, left, moved = (where(touched, a, b) for a, b in zip(together, own, strict=True))
    change = _bounded(left * _inverse(2.0 * T_all, rounding(SMALL) * size), touched, moved > 0.0)
    add(x, "corrected_e", abs(change) * 2.0 * T)
    found = T * (1.0 + 2.0 * change) + V
    x.kept[w, ENERGY_AT] = where(touched, found, target)
    _takes(x, w, target - found)
    x.corrected[w, 0] = sqrt(1.0 + 2.0 * change)


def _target(x: Any, w: Any) -> Scalar:
    """T + V that a fixed mechanism should have [J]."""
    return x.kept[w, ENERGY_AT] + x.account[w, GIVEN]


def _hold(x: Any, w: Any) -> None:
    """The correction of a mechanism, to ``corrected``; also updates the quantities that are conserved."""
    after, impulse = _inner(x, w), force(x.account, w, IMPULSE)
    _, wanted, mean = _with_impulse(x, w, after.m, impulse)
    k, v_G = wanted.ang, wanted.lin * (1.0 / after.m)
    touched = (x.account[w, TOUCHED] > 0.0) | (x.account[w, MOVED] > 0.0)
    ahead = vector(x.account, w, AHEAD)
    G = vector(x.kept, w, CENTRE_AT) + (mean + ahead * (1.0 / after.m)) * x.dt[0]
    # Part of the work is done on the motion of G. That of the weight is left out on both sides: it is so
    # much that its rounding would turn a robot that hardly moves.
    target = x.kept[w, ENERGY_AT] + x.account[w, GIVEN] - impulse.lin.dot(mean)
    I_G = factor3(after.I_G)
    spun, T_s = after.spun, after.T_s
    change, omega, turned, turn = _share(x, w, I_G, k, T_s, target, touched)
    s, velocity = sqrt(1.0 + 2.0 * change), after.velocity
    more = 2.0 * change / (1.0 + s)  # s - 1, without rounding
    moved = quat_wxyz_to_rotation(turn).transpose_apply(v_G) - velocity
    found = Change(s, more, spun, omega - spun, tuple(turn), after.com, after.u, moved)
    write_row(x.corrected, w, found.numbers())
    energy = where(touched, T_s * (1.0 + 2.0 * change) + 0.5 * turned.dot(omega), target)
    write_row(x.kept, w, [*wanted, energy, *G])
    _takes(x, w, target - energy + x.dt[0] * vector(x.gravity).dot(ahead))
    missed_k, missed_l = k - after.k, (v_G - velocity) * after.m
    add(x, "corrected_e", abs(where(touched, 2.0 * change * T_s, target - after.T)))
    add(x, "corrected_k", sqrt(missed_k.dot(missed_k)))
    add(x, "corrected_l", sqrt(missed_l.dot(missed_l)))


def _correct(x: Any) -> None:
    """Add the correction to the velocities: that of the shape in each mechanism, and a rigid motion at its
    bases.
    """

    def body(m: Any) -> None:
        b = m + 1
        w, first = x.body_whole[b], x.dof_row[x.body_dofs[b, 0]]

        def row(k: Any) -> None:
            x.v[first + k] = x.corrected[w, 0] * x.v[first + k]

        def joint() -> None:
            cond(x.joint_leads[b] > 0, lambda: for_range(x.body_dofs[b, 1], row), nothing)

        cond(floats(x, w) & (x.parent[b] == 0), lambda: _correct_base(x, b, w), joint)

    for_range(x.n_bodies - 1, body)


def _correct_base(x: Any, b: Any, w: Any) -> None:
    """Correct the position and velocity of a base, in the axes before its rotation.

    Only what changes is rotated: otherwise rounding would scale the velocity in each step.
    """
    whole = Change.of([x.corrected[w, k] for k in range(21)])
    R, R_turn = axes_of(x, b), quat_wxyz_to_rotation(whole.turn)
    arm = whole.com - vector(x.p, b)
    ang, beside = (vector(x.mean, None, _base(x, b) + first) for first in (0, 3))
    spin = R @ ang - whole.spun
    shift = whole.spun.cross(arm) - whole.u + R @ beside
    lin = shift * whole.more + whole.moved - whole.faster.cross(arm)
    more = [*R.transpose_apply(spin * whole.more + whole.faster), *R.transpose_apply(lin)]
    for c, more_of in enumerate(more):
        x.v[_base(x, b) + c] = x.v[_base(x, b) + c] + more_of
    at = x.coordinate_from[x.joint_coordinate[b]]
    R_0, r_0 = matrix(x.joint_placement, b), vector(x.joint_placement, b, 9)  # q is in the joint's axes
    own_turn = [whole.turn[0], *R_0.transpose_apply(Vector3(*whole.turn[1:]))]
    own_place = R_0.transpose_apply(vector(x.kept, w, CENTRE_AT) - R_turn @ arm - r_0)
    write(x.q, at, [*quat_multiply(own_turn, [x.q[at + c] for c in range(4)]), *own_place])


def _share(
    x: Any, w: Any, I_G: Any, k: Vector3, T_s: Scalar, target: Scalar, touched: Any
) -> tuple[Scalar, Vector3, Vector3, list[Scalar]]:
    """(x; omega and k seen from the robot before its rotation; the rotation as a quaternion), by Newton's
    method.
    """
    omega = solve3(I_G, k)
    torque = omega.cross(k)
    direction = solve3(I_G, torque) * (where(touched, 0.0, 1.0) / (omega.dot(omega) + smallest()))
    gain = _inverse(2.0 * T_s + torque.dot(direction), rounding(SMALL) * target)
    farthest = (LARGEST * x.dt[0]) ** 2 * omega.dot(omega) / (direction.dot(direction) + smallest())

    def iteration(_: Any, change: Scalar, *rest: Scalar) -> tuple[Scalar, ...]:
        omega, turned = Vector3(*rest[:3]), Vector3(*rest[3:6])
        left = target - T_s * (1.0 + 2.0 * change) - 0.5 * turned.dot(omega)
        change = _bounded(change + left * gain, touched, x.account[w, MOVED] > 0.0)
        turn = quat_exp(direction * _within(change, farthest))
        # The robot stays and the world turns back: I_G is the same.
        turned = quat_wxyz_to_rotation(turn).transpose_apply(k)
        return change, *solve3(I_G, turned), *turned, *turn

    change, *rest = for_range(2, iteration, 0.0, *omega, *k, 1.0, 0.0, 0.0, 0.0)
    return change, Vector3(*rest[:3]), Vector3(*rest[3:6]), rest[6:]


# ---- numbers ----------------------------------------------------------------------------------------------


def _base(x: Any, b: Any) -> Any:
    """The first row of v of a free body."""
    return x.dof_row[x.body_dofs[b, 0]]


def central_inertia(I: RigidInertia, p: Vector3) -> tuple[Scalar, ...]:
    """Rotational inertia about the centre of mass p of an inertia given about the origin."""
    xx, yy, zz, xy, xz, yz = I.Ibar
    (a, b, c), (ha, hb, hc) = p, I.h
    return (
        xx - (b * hb + c * hc),
        yy - (a * ha + c * hc),
        zz - (a * ha + b * hb),
        xy + a * hb,
        xz + a * hc,
        yz + b * hc,
    )


def factor3(I_G: tuple[Scalar, ...]) -> Any:
    """L D L^T of a 3 x 3 inertia."""
    xx, yy, zz, xy, xz, yz = I_G
    return ldl([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def solve3(factor: Any, b: Vector3) -> Vector3:
    """The solution x of I_G x = b."""
    return Vector3(*ldl_solve(factor, list(b)))


def _inverse(slope: Scalar, noise: Scalar) -> Scalar:
    """1 / slope, or 0 if the slope is small relative to noise."""
    return 1.0 / (slope + noise * noise / (slope + smallest()) + smallest())


def _within(x: Scalar, square: Scalar) -> Scalar:
    """x, limited in size to the root of the square."""
    end = sqrt(square)
    return where(x * x > square, where(x < 0.0, -end, end), x)


def _bounded(change: Scalar, touched: Any, moved: Any) -> Scalar:
    """Limit the correction of a mechanism's shape; it is 0 if some of its velocities are prescribed
    (``moved``).
    """
    found = minimum(maximum(change, -0.5), where(touched, 0.0, LARGEST))
    return where(moved, 0.0, found)
