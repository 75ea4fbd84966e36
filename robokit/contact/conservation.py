"""What keeps momentum, energy and the path of the centre of mass at the end of a step.

The error of a step is put right by a rigid motion of the whole, which adds the momentum that is missing
about the centre of mass G, and by one number x for the energy. A robot that floats moves as a rigid whole and
in its shape, and the two share no kinetic energy:

    T = 1/2 M v_G^2 + 1/2 k^T I_G^-1 k + T_s        k = I_G omega: angular momentum about G
    T_s <- (1 + 2 x) T_s        turn by x I_G^-1 (omega x k) / omega^2

Where nothing touches, G goes the way of the throw, k stays and the energy about G is met. A step with
contacts is less exact: there energy is only taken, where the step has made some; what it has lost stays lost.
With a fixed base T is scaled to meet T + V. Several robots that hang on nothing share their momentum and
their energy T + V: their shape is that of the whole, with the places of the robots to each other. Some of
them may touch in many steps: there they get no more than what they had at the start and were given.

Source: projection methods, Hairer, Lubich and Wanner, "Geometric numerical integration", section IV.4;
kinetic energy about G, dynamics notes eq. 20-22.
Cost: O(n), one pass of kinematics.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robokit.contact.accounts import GIVEN, IMPULSE, TOUCHED, about, add
from robokit.contact.constraints.adding import axes_of
from robokit.contact.kinematics import (
    advance,
    kinetic_energy,
    place_bodies,
    potential_energy,
    spatial_momentum,
    velocities,
    whole_inertia,
)
from robokit.contact.robot_data import FLOATING
from robokit.contact.vectors import force, matrix, nothing, put, vector, write
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Matrix3, RigidInertia, Vector3
from robokit.spatial.control_flow import cond, for_range, rounding, smallest
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.rotation import quat_exp, quat_multiply, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where

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
        _keep(x, [*state.k, *state.u * state.m], energy, Vector3.zero())
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
    impulse = about(force(x.pushed, 1) + _six(x.account, IMPULSE), I.h * (1.0 / I.m))
    for_range(x.nq, lambda k: put(x.q_drifted, k, x.q[k]))
    for_range(x.nv, lambda j: put(x.mean, j, x.y[j]))
    once(x, advance, x.q_drifted, x.mean, 0.5 * x.dt[0])
    once(x, place_bodies, x.q_drifted)
    state = _inner_at_mean(x)
    G = vector(x.origin) + state.com
    before, wanted = _with_impulse(x, state.m, impulse)
    I_G = _factor(state.I_G)
    T_s = maximum(state.T - 0.5 * state.k.dot(_solve(I_G, state.k)), 0.0)
    T = T_s + 0.5 * wanted.ang.dot(_solve(I_G, wanted.ang))
    rise = G - vector(x.kept, None, CENTRE_AT)
    added, mean = wanted.lin - before.lin, (before.lin + wanted.lin) * (0.5 / state.m)
    once(x, place_bodies, x.q)
    return T - x.kept[ENERGY_AT] + added.dot(mean) - vector(x.gravity).dot(rise) * state.m


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
    _, wanted = _wanted(x, state.m)
    k, lin = wanted.ang - state.k, wanted.lin - state.u * state.m
    I_G = _factor(state.I_G)
    rigid, v_G = _solve(I_G, state.k), wanted.lin * (1.0 / state.m)
    omega = _solve(I_G, wanted.ang)
    T_s = maximum(state.T - 0.5 * state.k.dot(rigid), 0.0)
    held = 0.5 * wanted.ang.dot(omega) + 0.5 * state.m * v_G.dot(v_G) + potential_energy(x)
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

        cond((x.parent[b] == 0) & (x.joint_kind[b] == FLOATING), moved, nothing)

    for_range(x.n_bodies - 1, body)
    add(x, "corrected_e", abs(change) * 2.0 * T_s)
    add(x, "corrected_k", sqrt(k.dot(k)))
    add(x, "corrected_l", sqrt(lin.dot(lin)))


def _hold_both(x: Any) -> None:
    after = _inner(x)
    before, wanted = _wanted(x, after.m)
    m, k, v_G = after.m, wanted.ang, wanted.lin * (1.0 / after.m)
    touched = (x.account[TOUCHED] > 0.0) | (x.n_motions > 0)
    mean = (before.lin + wanted.lin) * (0.5 / m)
    throw = vector(x.kept, None, CENTRE_AT) + mean * x.dt[0]
    here = vector(x.origin) + after.com
    G = Vector3(*(where(touched, a, b) for a, b in zip(here, throw, strict=True)))
    # Part of the work is done on the motion of G. That of the weight is left out on both sides: it is so
    # much that its rounding would turn a robot that hardly moves.
    work = x.account[GIVEN] - _six(x.account, IMPULSE).lin.dot(mean)
    target = x.kept[ENERGY_AT] + work + vector(x.gravity).dot(G - throw) * m
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
