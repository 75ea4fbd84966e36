"""What a step enters into the ledger: energies, impulses, depths, and what the solver took.

A constant force f over a step that changes the velocity of its point from u to u' does the work f (u + u')/2:
these sums are exact, whatever the step.

Source: the change of 1/2 v^T H v is dt f . (v + v')/2.
Cost: O(contacts + rows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robokit.contact.constraints.adding import axes_of
from robokit.contact.constraints.motors import limited
from robokit.contact.fields import FRICTION, LINE, MOTOR, PRESCRIBED, SPEED, SPIN, SPRING, STOP
from robokit.contact.kinematics import (
    advance,
    kinetic_energy,
    place_bodies,
    potential_energy,
    spatial_momentum,
    velocities,
    whole_inertia,
)
from robokit.contact.linear import motion, sum_of
from robokit.contact.robot_data import FLOATING
from robokit.contact.solver import relative
from robokit.contact.vectors import force, matrix, nothing, of_ten, put, vector, write
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Matrix3, RigidInertia, Vector3
from robokit.spatial.control_flow import cond, for_range, rounding, smallest
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.rotation import quat_exp, quat_multiply, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where

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

GIVEN, TOUCHED, IMPULSE = 0, 1, 2
"""Places in ``account``."""


def account(x: Any) -> None:
    """Enter a step, after the solve, at its middle.

    ``account`` holds the impulse of the forces from outside about the origin, and what the corrections below
    take of the step afterwards.
    """
    outside = Force(*(Vector3(*(x.account[IMPULSE + 3 * h + k] for k in range(3))) for h in range(2)))
    for k in range(8):
        x.account[k] = 0.0
    com = _centre(x, of_ten([x.composite[0, k] for k in range(10)]))
    _given(x, outside, com)
    for_range(x.n_of[0], lambda i: _constraint(x, i, com))
    for_range(x.n_of[1], lambda i: _row(x, i))
    _solution(x)


def add(x: Any, name: str, amount: Scalar) -> None:
    """Add to an entry."""
    x.ledger[AT[name]] = x.ledger[AT[name]] + amount


def largest(x: Any, name: str, value: Scalar) -> None:
    """Keep the largest value so far."""
    x.ledger[AT[name]] = maximum(x.ledger[AT[name]], value)


def _gives(x: Any, amount: Scalar) -> None:
    x.account[GIVEN] = x.account[GIVEN] + amount


def about(f: Force, com: Vector3) -> Force:
    """A force about the origin as one about the centre of mass."""
    return Force(f.ang - com.cross(f.lin), f.lin)


def _impulse(x: Any, f: Force, com: Vector3, entries: Any, first: int) -> None:
    """Enter an impulse about the origin, of what is not the robot."""
    for k, amount in enumerate([*about(f, com)]):
        x.account[IMPULSE + k] = x.account[IMPULSE + k] + amount
        entries[first + k] = entries[first + k] + amount


def _centre(x: Any, I: RigidInertia) -> Vector3:
    """The point that impulses are accounted about, from the origin, at the middle of the step.

    Of what hangs on nothing it is where its momentum brings the centre of mass: with that, the impulses about
    any fixed point add up to the angular momentum about it. Where the bodies have their centre of mass at the
    middle is off that path by the error of the drift.
    """
    m = where(I.m > 0.0, I.m, 1.0)

    def on_its_path() -> Any:
        lin = vector(x.kept, None, MOMENTUM_AT + 3)
        return tuple(vector(x.kept, None, CENTRE_AT) + lin * (0.5 * x.dt[0] / m) - vector(x.origin))

    hangs_on_nothing = (x.keeps[0] == TOGETHER) | (x.keeps[0] == FLOATS)
    return Vector3(*cond(hangs_on_nothing, on_its_path, lambda: tuple(I.h * (1.0 / m))))


# ---- what is given ----------------------------------------------------------------------------------------


def _given(x: Any, outside: Force, com: Vector3) -> None:
    """Joint forces and pushes; ``outside`` is the impulse of those from outside about the origin."""
    dt = x.dt[0]
    work = for_range(x.nv, lambda j, W: W + x.tau[j] * (x.v0[j] + x.y[j]), 0.0) * (0.5 * dt)
    add(x, "work", work)
    _gives(x, work)
    _impulse(x, outside, com, x.outside_impulse, 0)


# ---- contacts ---------------------------------------------------------------------------------------------


def on_ground(x: Any, i: Any) -> Any:
    """Whether a constraint is a contact with the ground, no link; turning friction is none."""
    return cond(x.c_kind[i] == FRICTION, lambda: _of_ground(x, x.c_of[i]), lambda: False)


def _of_ground(x: Any, c: Any) -> Any:
    """Whether a contact is with the ground: a link that is fixed to the world is of body 0, too."""
    return x.pair_of_links[x.contact_pair[c]] == 0


def _constraint(x: Any, i: Any, com: Vector3) -> None:
    """A contact, its turning friction, or half of a loop."""
    before, g = relative(x, i, x.V), [x.c_g[i, k] for k in range(3)]
    given = sum_of(0.5 * (a + x.c_u[i, k]) * g[k] for k, a in enumerate(before))
    spins = x.c_kind[i] == SPIN

    def contact() -> None:
        _gives(x, given)
        x.account[TOUCHED] = x.account[TOUCHED] + where(spins, 0.0, maximum(g[2], 0.0))
        c = x.c_of[where(spins, x.c_of[i], i)]
        gap = where(spins, 0.0, x.contact_gap[c])
        cond(
            _of_ground(x, c),
            lambda: _ground(x, i, c, spins, given, gap, com),
            lambda: _met(x, i, given, gap, com),
        )

    def spring() -> None:
        _gives(x, given)
        add(x, "work", given)
        add(x, "springs", -given)
        to_world = x.c_bodies[i, 0] == 0
        cond(to_world, lambda: _impulse(x, impulse_of(x, i), com, x.outside_impulse, 0), nothing)

    def others() -> None:
        cond(x.c_kind[i] == SPRING, spring, contact)

    cond(x.c_kind[i] == LINE, lambda: _gives(x, given), others)


def _ground(x: Any, i: Any, c: Any, spins: Any, given: Scalar, gap: Scalar, com: Vector3) -> None:
    """A contact with the ground; the work of a belt is its force times the velocity of its surface."""
    g = [x.c_g[i, k] for k in range(3)]
    slides = g[0] * x.contact_surface[c, 0] + g[1] * x.contact_surface[c, 1]
    belt = where(spins, g[2] * x.contact_surface[c, 2], slides)
    add(x, "contact", belt - given)
    add(x, "work", belt)
    largest(x, "depth", -gap)
    add(x, "pressed", where(spins, 0.0, maximum(g[2], 0.0)))
    _impulse(x, impulse_of(x, i), com, x.ledger, AT["impulse_nx"])


def _met(x: Any, i: Any, given: Scalar, gap: Scalar, com: Vector3) -> None:
    """A contact of two links; one that is fixed to the world pushes from outside."""
    add(x, "collision", -given)
    largest(x, "overlap", -gap)
    fixed = x.c_bodies[i, 0] == 0
    cond(fixed, lambda: _impulse(x, impulse_of(x, i), com, x.outside_impulse, 0), nothing)


def impulse_of(x: Any, i: Any) -> Force:
    """That of a contact on its second body, about the origin."""
    E, g = [motion(x.c_E, i, 6 * k) for k in range(3)], [x.c_g[i, k] for k in range(3)]
    ang = sum_of(e.ang * s for e, s in zip(E, g, strict=True))
    return Force(ang, sum_of(e.lin * s for e, s in zip(E, g, strict=True)))


# ---- joints -----------------------------------------------------------------------------------------------


def _row(x: Any, i: Any) -> None:
    """A row of a joint: damping, friction, a stop or a motor."""
    j, g, kind = x.r_row[i], x.r_g[i], x.r_kind[i]
    given = 0.5 * x.r_gain[i] * (x.v0[j] + x.y[j]) * g
    _gives(x, given)

    def motor() -> None:
        add(x, "work", given)
        m = x.r_of[i]
        x.motor_sums[m, 0] = x.motor_sums[m, 0] + g
        x.motor_sums[m, 1] = x.motor_sums[m, 1] + x.dt[0] * limited(x, i)

    def stop() -> None:
        add(x, "stops", -given)
        x.account[TOUCHED] = x.account[TOUCHED] + abs(g)

    def rest() -> None:
        cond(kind == STOP, stop, lambda: add(x, "friction", -given))

    def not_driven() -> None:
        cond(kind == PRESCRIBED, lambda: add(x, "work", given), rest)

    cond(kind == MOTOR, motor, not_driven)


def enter_closing(x: Any) -> None:
    """What prescribed joints take at the end of a step, where velocities are put on the loops.

    The kick leaves the velocities of a loop off by terms of second order, which would leave its force off by
    one of first order.
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


# ---- the solver -------------------------------------------------------------------------------------------


def _solution(x: Any) -> None:
    iterations, residual = x.solved[0], x.solved[1]
    largest(x, "residual", residual)
    add(x, "residual_sum", residual)
    add(x, "steps", 1.0)
    add(x, "iterations", iterations)
    largest(x, "most", iterations)
    add(x, "missed", x.solved[2])


# ==== What keeps momentum, energy and the path of the centre of mass at the end of a step ==============
# The error of a step is put right by a rigid motion of the whole, which adds the momentum that is missing
# about the centre of mass G, and by one number x for the energy. A robot that floats moves as a rigid whole
# and in its shape, and the two share no kinetic energy:
#
#     T = 1/2 M v_G^2 + 1/2 k^T I_G^-1 k + T_s        k = I_G omega: angular momentum about G
#     T_s <- (1 + 2 x) T_s        turn by x I_G^-1 (omega x k) / omega^2
#
# G goes where the mean of the momentum before and after the step takes it, so that with k about G the angular
# momentum about any fixed point changes by what the impulses give. Where nothing touches, k stays and the
# energy about G is met. A step with contacts is less exact: there energy is only taken, where the step has
# made some; what it has lost stays lost. With a fixed base T is scaled to meet T + V. Several robots that
# hang on nothing share their momentum and their energy T + V: their shape is that of the whole, with the
# places of the robots to each other. Some of them may touch in many steps: there they get no more than what
# they had at the start and were given.
#
# Source: projection methods, Hairer, Lubich and Wanner, "Geometric numerical integration", section IV.4;
# kinetic energy about G, dynamics notes eq. 20-22.
# Cost: O(n), one pass of kinematics.


NOTHING, TOGETHER, FIXED, FLOATS = range(4)
"""What is kept: nothing; momentum and energy of robots that hang on nothing; the energy of robots with a
fixed base; momentum and energy of one that floats."""

LARGEST = 0.25
"""Bound of x, and of the turn beside that of the step itself: a step so wrong that this does not mend it
keeps the rest of its error, and the rounding of forces turns no robot that hardly moves."""

SMALL = 1e-12
"""Part of the energies below which a kinetic energy is hardly scaled to meet them: a robot that comes to rest
stays there, and what is missing is carried until there is motion again."""

MOMENTUM_AT, ENERGY_AT, CENTRE_AT, KNOWN_AT, GIVEN_AT = 0, 6, 7, 10, 11
"""Places in ``kept``."""


class Inner(NamedTuple):
    """A state seen from the centre of mass G, in world axes; what has a base that floats moves with it."""

    m: Scalar  # mass [kg]
    com: Vector3  # centre of mass from the step's origin [m]
    u: Vector3  # velocity of G relative to that of body 1's origin [m/s]
    k: Vector3  # angular momentum about G [N m s]
    I_G: tuple[Scalar, ...]  # rotational inertia about G as one rigid body: xx, yy, zz, xy, xz, yz [kg m^2]
    T: Scalar  # kinetic energy about G [J]

    @classmethod
    def of(cls, numbers: Any) -> Inner:
        """From all of them in a row."""
        m, *rest = numbers
        p_G, u, k = (Vector3(*rest[first : first + 3]) for first in (0, 3, 6))
        return cls(m, p_G, u, k, tuple(rest[9:15]), rest[15])


def begin(x: Any) -> None:
    """Before the first step: what is kept from then on."""

    def floats() -> None:
        state = _inner(x)
        _keep(x, [*state.k, *_velocity(x, state) * state.m], state.T, vector(x.origin) + state.com)

    def fixed() -> None:
        T, V = once(x, _energies)
        _keep(x, [0.0] * 6, T + V, Vector3.zero())

    def together() -> None:
        state = _of_all(x)
        energy = state.T + 0.5 * state.m * state.u.dot(state.u) + potential_energy(x)
        _keep(x, [*state.k, *state.u * state.m], energy, vector(x.origin) + state.com)
        x.kept[GIVEN_AT] = energy

    def all_of_it() -> None:
        once(x, place_bodies, x.q)
        x.kept[KNOWN_AT] = 1.0
        _chosen(x, together, fixed, floats)

    new = (x.kept[KNOWN_AT] == 0.0) & (x.keeps[0] > NOTHING)
    cond(new, all_of_it, nothing)


def conserve(x: Any) -> None:
    """At the end of a step: q and v corrected."""

    def all_of_it() -> None:
        once(x, place_bodies, x.q)
        _chosen(x, lambda: _hold_together(x), lambda: _hold_energy(x), lambda: _hold_both(x))

    cond(x.keeps[0] > NOTHING, all_of_it, nothing)


def _chosen(x: Any, together: Any, fixed: Any, floats: Any) -> None:
    keeps = x.keeps[0]
    cond(keeps == FLOATS, floats, lambda: cond(keeps == FIXED, fixed, together))


def _keep(x: Any, momentum: Any, energy: Scalar, centre: Vector3) -> None:
    write(x.kept, 0, [*momentum, energy, *centre])


# ---- states -----------------------------------------------------------------------------------------------


def _inner(x: Any) -> Inner:
    """Of a robot that floats, from axes that move with its base: a fast fall rounds nothing."""
    for_range(x.nv, lambda j: put(x.mean, j, x.v[j]))
    return _inner_at_mean(x)


def _inner_at_mean(x: Any) -> Inner:
    """At the velocities in ``mean``, of which the base's linear one is dropped."""
    for k in range(3, 6):
        x.mean[_base(x) + k] = 0.0
    return Inner.of(once(x, _seen))


def _of_all(x: Any) -> Inner:
    for_range(x.nv, lambda j: put(x.mean, j, x.v[j]))
    return Inner.of(once(x, _seen))


def _seen(x: Any) -> tuple[Scalar, ...]:
    """The numbers of :class:`Inner` at the velocities in ``mean``."""
    once(x, velocities, x.mean, x.W)
    h, I = spatial_momentum(x, x.W), whole_inertia(x)
    p_G, u = I.h * (1.0 / I.m), h.lin * (1.0 / I.m)
    T = kinetic_energy(x, x.mean, x.W) - 0.5 * h.lin.dot(u)
    return I.m, *p_G, *u, *(h.ang - p_G.cross(h.lin)), *_about(I, p_G), T


def _velocity(x: Any, state: Inner) -> Vector3:
    """Of G in the world."""
    return state.u + axes_of(x, 1) @ vector(x.v, None, _base(x) + 3)


def _energies(x: Any) -> tuple[Scalar, Scalar]:
    once(x, velocities, x.v, x.W)
    return kinetic_energy(x, x.v, x.W), potential_energy(x)


def _wanted(x: Any, m: Scalar) -> tuple[Force, Force]:
    """Momentum before and after the step; the latter is kept from now on."""
    before, wanted = _with_impulse(x, m, _six(x.account, IMPULSE))
    write(x.kept, MOMENTUM_AT, wanted)
    return before, wanted


def _thrown(x: Any, before: Force, wanted: Force, m: Scalar) -> tuple[Vector3, Vector3]:
    """Mean velocity of G in the step, and where it takes G in the world."""
    mean = (before.lin + wanted.lin) * (0.5 / m)
    return mean, vector(x.kept, None, CENTRE_AT) + mean * x.dt[0]


def _with_impulse(x: Any, m: Scalar, impulse: Force) -> tuple[Force, Force]:
    """Momentum before the step, and with an impulse about the centre of mass and that of the weight."""
    before = _six(x.kept, MOMENTUM_AT)
    return before, Force(
        before.ang + impulse.ang, before.lin + impulse.lin + vector(x.gravity) * (m * x.dt[0])
    )


def gain(x: Any) -> Scalar:
    """Energy that a robot that floats gains in a step which its kick leaves with the velocity y [J].

    That is at the end, with the momentum that the impulses give. Called in the middle of a step, after
    :func:`solver.impulses`, and before the account of the step.
    """
    I = whole_inertia(x)
    impulse = about(force(x.pushed, 1) + _six(x.account, IMPULSE), _centre(x, I))
    for_range(x.nq, lambda k: put(x.q_drifted, k, x.q[k]))
    for_range(x.nv, lambda j: put(x.mean, j, x.y[j]))
    once(x, advance, x.q_drifted, x.mean, 0.5 * x.dt[0])
    once(x, place_bodies, x.q_drifted)
    state = _inner_at_mean(x)
    before, wanted = _with_impulse(x, state.m, impulse)
    I_G = _factor(state.I_G)
    T_s = maximum(state.T - 0.5 * state.k.dot(_solve(I_G, state.k)), 0.0)
    T = T_s + 0.5 * wanted.ang.dot(_solve(I_G, wanted.ang))
    mean, _ = _thrown(x, before, wanted, state.m)
    once(x, place_bodies, x.q)
    return T - x.kept[ENERGY_AT] + impulse.lin.dot(mean)


# ---- ends -------------------------------------------------------------------------------------------------


def _hold_energy(x: Any) -> None:
    T, V = once(x, _energies)
    touched = x.account[TOUCHED] > 0.0
    target = x.kept[ENERGY_AT] + x.account[GIVEN]
    change = _bounded(x, (target - T - V) * _inverse(2.0 * T, rounding(SMALL) * (T + abs(V))), touched)
    add(x, "corrected_e", abs(change) * 2.0 * T)
    x.kept[ENERGY_AT] = where(touched, T * (1.0 + 2.0 * change) + V, target)
    s = sqrt(1.0 + 2.0 * change)
    for_range(x.nv, lambda j: put(x.v, j, s * x.v[j]))


def _hold_together(x: Any) -> None:
    """The shape's velocities scaled; the rigid motion of all that adds what is missing, to each base."""
    state = _of_all(x)
    before, wanted = _wanted(x, state.m)
    _, G = _thrown(x, before, wanted, state.m)
    shift = G - vector(x.origin) - state.com
    k, lin = wanted.ang - state.k, wanted.lin - state.u * state.m
    I_G = _factor(state.I_G)
    rigid, v_G = _solve(I_G, state.k), wanted.lin * (1.0 / state.m)
    omega = _solve(I_G, wanted.ang)
    T_s = maximum(state.T - 0.5 * state.k.dot(rigid), 0.0)
    V = -vector(x.gravity).dot(G) * state.m
    held = 0.5 * wanted.ang.dot(omega) + 0.5 * state.m * v_G.dot(v_G) + V
    touched, given = x.account[TOUCHED] > 0.0, x.kept[GIVEN_AT] + x.account[GIVEN]
    target = where(touched, given, x.kept[ENERGY_AT] + x.account[GIVEN])
    x.kept[GIVEN_AT] = given
    gain = _inverse(2.0 * T_s, rounding(SMALL) * (T_s + abs(held)))
    change = _bounded(x, (target - T_s - held) * gain, touched)
    x.kept[ENERGY_AT] = where(touched, T_s * (1.0 + 2.0 * change) + held, target)
    s = sqrt(1.0 + 2.0 * change)
    less = -2.0 * change / (1.0 + s)  # 1 - s, without rounding
    for_range(x.nv, lambda j: put(x.v, j, x.v[j] - less * x.v[j]))
    turn, go = omega - rigid + rigid * less, v_G - state.u + state.u * less

    def body(m: Any) -> None:
        b = m + 1

        def moved() -> None:
            R, row = axes_of(x, b), x.dof_row[x.body_dofs[b, 0]]
            p = vector(x.p, b)
            faster = [*R.transpose_apply(turn), *R.transpose_apply(go + turn.cross(p - state.com))]
            for c, more in enumerate(faster):
                x.v[row + c] = x.v[row + c] + more
            at = x.coordinate_from[x.joint_coordinate[b]] + 4
            for c, more in enumerate(matrix(x.joint_placement, b).transpose_apply(shift)):
                x.q[at + c] = x.q[at + c] + more

        cond((x.parent[b] == 0) & (x.joint_kind[b] == FLOATING), moved, nothing)

    for_range(x.n_bodies - 1, body)
    write(x.kept, CENTRE_AT, G)
    add(x, "corrected_e", abs(change) * 2.0 * T_s)
    add(x, "corrected_k", sqrt(k.dot(k)))
    add(x, "corrected_l", sqrt(lin.dot(lin)))


def _hold_both(x: Any) -> None:
    after = _inner(x)
    before, wanted = _wanted(x, after.m)
    m, k, v_G = after.m, wanted.ang, wanted.lin * (1.0 / after.m)
    touched = (x.account[TOUCHED] > 0.0) | (x.n_motions > 0)
    mean, G = _thrown(x, before, wanted, m)
    # Part of the work is done on the motion of G. That of the weight is left out on both sides: it is so
    # much that its rounding would turn a robot that hardly moves.
    target = x.kept[ENERGY_AT] + x.account[GIVEN] - _six(x.account, IMPULSE).lin.dot(mean)
    I_G = _factor(after.I_G)
    spun = _solve(I_G, after.k)
    T_s = maximum(after.T - 0.5 * after.k.dot(spun), 0.0)
    change, omega, turned, turn = _share(x, I_G, k, T_s, target, touched)
    _enter(x, after, T_s, change, omega, turned, target, touched, k, v_G)
    _write(x, after, change, spun, omega, turn, G, v_G)
    write(x.kept, CENTRE_AT, G)


def _enter(
    x: Any,
    after: Inner,
    T_s: Scalar,
    change: Scalar,
    omega: Vector3,
    turned: Vector3,
    target: Scalar,
    touched: Any,
    k: Vector3,
    v_G: Vector3,
) -> None:
    """Of the energy what is kept; in the ledger what was missing."""
    x.kept[ENERGY_AT] = where(touched, T_s * (1.0 + 2.0 * change) + 0.5 * turned.dot(omega), target)
    missed_k, missed_l = k - after.k, (v_G - _velocity(x, after)) * after.m
    add(x, "corrected_e", abs(where(touched, 2.0 * change * T_s, target - after.T)))
    add(x, "corrected_k", sqrt(missed_k.dot(missed_k)))
    add(x, "corrected_l", sqrt(missed_l.dot(missed_l)))


def _write(
    x: Any,
    after: Inner,
    change: Scalar,
    spun: Vector3,
    omega: Vector3,
    turn: list[Scalar],
    G: Vector3,
    v_G: Vector3,
) -> None:
    """The base's velocity grows by that of its shape and of the whole, in axes before the turn.

    Only what changes is turned: rounding would else scale the velocity at each step.
    """
    base = _base(x)
    R, R_turn = axes_of(x, 1), quat_wxyz_to_rotation(turn)
    s = sqrt(1.0 + 2.0 * change)
    more = 2.0 * change / (1.0 + s)
    spin = R @ vector(x.v, None, base) - spun
    shift = spun.cross(after.com) - after.u
    faster = omega - spun
    moved = R_turn.transpose_apply(v_G) - _velocity(x, after)
    lin = shift * more + moved - faster.cross(after.com)
    own = [*R.transpose_apply(spin * more + faster), *R.transpose_apply(lin)]
    own = [x.v[base + c] + more_of for c, more_of in enumerate(own)]
    for_range(x.nv, lambda j: put(x.v, j, s * x.v[j]))
    write(x.v, base, own)
    at = x.coordinate_from[x.joint_coordinate[1]]
    R_0, r_0 = _placement(x)  # q is in the axes of the base's joint
    own_turn = [turn[0], *R_0.transpose_apply(Vector3(*turn[1:]))]
    own_place = R_0.transpose_apply(G - R_turn @ after.com - r_0)
    place = [*quat_multiply(own_turn, [x.q[at + c] for c in range(4)]), *own_place]
    write(x.q, at, place)


def _share(
    x: Any, I_G: Any, k: Vector3, T_s: Scalar, target: Scalar, touched: Any
) -> tuple[Scalar, Vector3, Vector3, list[Scalar]]:
    """(x; omega and k seen from the robot before its turn; the turn, a quaternion), by Newton's method."""
    omega = _solve(I_G, k)
    torque = omega.cross(k)
    direction = _solve(I_G, torque) * (where(touched, 0.0, 1.0) / (omega.dot(omega) + smallest()))
    gain = _inverse(2.0 * T_s + torque.dot(direction), rounding(SMALL) * target)
    farthest = (LARGEST * x.dt[0]) ** 2 * omega.dot(omega) / (direction.dot(direction) + smallest())
    change: Scalar = 0.0
    turned, turn = k, [1.0, 0.0, 0.0, 0.0]
    for _ in range(2):
        left = target - T_s * (1.0 + 2.0 * change) - 0.5 * turned.dot(omega)
        change = _bounded(x, change + left * gain, touched)
        turn = list(quat_exp(direction * _within(change, farthest)))
        # The robot stays and the world turns back: I_G is the same.
        turned = quat_wxyz_to_rotation(turn).transpose_apply(k)
        omega = _solve(I_G, turned)
    return change, omega, turned, turn


# ---- numbers ----------------------------------------------------------------------------------------------


def _base(x: Any) -> Any:
    """First of the base's places in v."""
    return x.dof_row[x.body_dofs[1, 0]]


def _placement(x: Any) -> tuple[Matrix3, Vector3]:
    """Of the base's joint in the world."""
    return matrix(x.joint_placement, 1), vector(x.joint_placement, 1, 9)


def _six(array: Any, first: int) -> Force:
    return Force(vector(array, None, first), vector(array, None, first + 3))


def _about(I: RigidInertia, p: Vector3) -> tuple[Scalar, ...]:
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


def _factor(I_G: tuple[Scalar, ...]) -> Any:
    xx, yy, zz, xy, xz, yz = I_G
    return ldl([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _solve(factor: Any, b: Vector3) -> Vector3:
    return Vector3(*ldl_solve(factor, list(b)))


def _inverse(slope: Scalar, noise: Scalar) -> Scalar:
    """1 / slope, and 0 where slope is small beside noise."""
    return 1.0 / (slope + noise * noise / (slope + smallest()) + smallest())


def _within(x: Scalar, square: Scalar) -> Scalar:
    """x, and no farther from 0 than the root of the square."""
    end = sqrt(square)
    return where(x * x > square, where(x < 0.0, -end, end), x)


def _bounded(x: Any, change: Scalar, touched: Any) -> Scalar:
    """A change of the shape's velocities; none where some of them are prescribed."""
    found = minimum(maximum(change, -0.5), where(touched, 0.0, LARGEST))
    return cond(x.n_motions > 0, lambda: 0.0 * found, lambda: found)
