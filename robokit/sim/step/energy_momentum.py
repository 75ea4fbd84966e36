"""What keeps energy, both momenta and the path of the centre of mass at the end of a step.

The fourth-order step of "rkmk4" is followed by a correction of the size of its local error, that of
contact/conservation.py where nothing touches. The velocity of the centre of mass G and G itself are put where
the law of the throw has them, the angular momentum k about G is as it was. This leaves the energy about G,
which only joint forces change. It is met by one number x, which scales the velocities of the shape and turns
the whole robot about G against the gyroscopic torque. The first has no effect on a rigid body, the second
none on a robot that does not tumble: together they follow the gradient of the energy in what k leaves free.
With a fixed base T is scaled to meet T + V.

Source: projection methods, Hairer, Lubich and Wanner, "Geometric numerical integration", section IV.4;
kinetic energy about G, dynamics notes eq. 20-22.
Cost: O(n), the four articulated-body sweeps and about a tenth more than the projection of momentum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.energy import rotor_energy
from robokit.model.tree import Tree
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.ledger import Carried, Ledger
from robokit.sim.motion.momentum_projection import about_center, at_base, centroidal_state, floats
from robokit.sim.motion.moving_axes import Rows
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.rotation import quat_exp, quat_multiply, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, added, maximum, minimum, sqrt, where

LARGEST = 0.25
"""Bound of x, and of the turn beside that of the step itself: a step so wrong that this does not mend it
keeps the rest of its error, and the rounding of forces turns no robot that hardly moves."""

SMALL = 1e-12
"""Part of the energies below which a kinetic energy is hardly scaled to meet them: a robot that comes to rest
stays there, and what is missing is carried until there is motion again."""

TINY = 1e-30
"""Added to what is divided by: nothing beside any energy, and more than 0 in single precision too."""


@dataclass(frozen=True)
class Inner:
    """A floating robot seen from its centre of mass G, in world axes.

    Attributes:
        X: transforms.
        mass: [kg].
        com: centre of mass from the base [m].
        u: velocity of G relative to the base's origin [m/s].
        v_com: velocity of G [m/s].
        k: angular momentum about G [N m s].
        I_G: rotational inertia about G as one rigid body, factorised by ldl.
        omega: I_G^-1 k [rad/s].
        T: kinetic energy about G [J].
    """

    X: Sequence[Any]
    mass: Scalar
    com: Vector3
    u: Vector3
    v_com: Vector3
    k: Vector3
    I_G: Any
    omega: Vector3
    T: Scalar


def conserve(
    tree: Tree,
    q: Rows,
    q1: Rows,
    v1: Rows,
    dt: Scalar,
    work: Scalar,
    ledger: Ledger,
    carried: Carried,
    impulse: Force | None = None,
) -> tuple[Rows, Rows]:
    """The state (q1, v1) at the end of a step, corrected to the energy and momenta of the start of the run.

    Args:
        q: the configuration before the step, by joint.
        q1, v1: the state after, by joint.
        dt: time step [s].
        work: what joint forces and those from outside gave during the step [J].
        ledger: takes what was missing.
        carried: energy and momentum wanted before the step; takes those after.
        impulse: of the forces from outside about the centre of mass, world axes [N m s; N s], or None.
    """
    if floats(tree):
        return _floating(tree, q, q1, v1, dt, work, ledger, carried, impulse)
    assert carried.energy is not None
    target = carried.energy + work
    X = tree.transforms(q1)
    T, V = kinetic(tree, X, v1), potential(tree, X)
    missing = target - (T + V)
    x = _bounded(missing * _inverse(2.0 * T, SMALL * (T + maximum(V, -V))))
    ledger.add("corrected_e", maximum(x, -x) * 2.0 * T)
    carried.energy = target
    s = sqrt(1.0 + 2.0 * x)
    return q1, [[s * rate for rate in row] for row in v1]


def kept_energy(tree: Tree, q: Rows, v: Rows) -> Scalar:
    """The energy that :func:`conserve` keeps [J]: about the centre of mass, or T + V with a fixed base."""
    if floats(tree):
        return inner(tree, q, v).T
    X = tree.transforms(q)
    return kinetic(tree, X, v) + potential(tree, X)


def _floating(
    tree: Tree,
    q: Rows,
    q1: Rows,
    v1: Rows,
    dt: Scalar,
    work: Scalar,
    ledger: Ledger,
    carried: Carried,
    impulse: Force | None,
) -> tuple[Rows, Rows]:
    assert carried.momentum is not None and carried.energy is not None
    after = inner(tree, q1, v1)
    I_G, p_G, mass, weight = after.I_G, after.com, after.mass, tree.a0 * -after.mass
    before = carried.momentum
    wanted = before if impulse is None else before + impulse
    carried.momentum = wanted = Force(wanted.ang, wanted.lin + weight * dt)
    k, v_G = wanted.ang, wanted.lin * (1.0 / mass)
    mean = (before.lin + wanted.lin) * (0.5 / mass)
    _, moment = composite_moment(tree, at_base(tree, tree.transforms(q)))
    G0 = Vector3(*q[1][4:]) + moment * (1.0 / mass)
    throw = G0 + mean * dt
    if impulse is None:
        G = throw
        target = carried.energy + work
    else:  # the place of G is that of the step, unless it was thrown; part of the work is done on its motion
        G = Vector3(*q1[1][4:]) + p_G
        # The work of the weight on that motion is left out on both sides: it is so much that its rounding
        # would turn a robot that hardly moves.
        target = carried.energy + work - impulse.lin.dot(mean) + weight.dot(G - throw)
    T_s = maximum(after.T - 0.5 * after.k.dot(after.omega), 0.0)

    omega = _solve(I_G, k)
    torque = omega.cross(k)
    direction = _solve(I_G, torque) * (1.0 / (omega.dot(omega) + TINY))
    gain = _inverse(2.0 * T_s + torque.dot(direction), SMALL * target)
    farthest = (LARGEST * dt) ** 2 * omega.dot(omega) / (direction.dot(direction) + TINY)
    x: Scalar = 0.0
    turned = k
    for _ in range(2):
        x = _bounded(x + (target - T_s * (1.0 + 2.0 * x) - 0.5 * turned.dot(omega)) * gain)
        turn = quat_exp(direction * _within(x, farthest))
        R = quat_wxyz_to_rotation(turn)
        turned = R.transpose_apply(k)  # the robot stays and the world turns back: I_G is the same
        omega = _solve(I_G, turned)
    s = sqrt(1.0 + 2.0 * x)

    # The base's velocity grows by that of its shape and of the whole, in axes of the robot before the turn.
    # Only what changes passes through E, whose rounding would else scale the velocity at each step.
    E, more = after.X[1].E, 2.0 * x / (1.0 + s)
    spin = E.transpose_apply(Vector3(*v1[1][:3])) - after.omega
    shift = after.omega.cross(p_G) - after.u
    faster = omega - after.omega
    moved = R.transpose_apply(v_G) - after.v_com
    change = [*(E @ (spin * more + faster)), *(E @ (shift * more + moved - faster.cross(p_G)))]
    base = [a + b for a, b in zip(v1[1], change, strict=True)]
    carried.energy = target
    missed_e = target - after.T
    ledger.add("corrected_e", maximum(missed_e, -missed_e))
    missed_k, missed_l = k - after.k, (v_G - after.v_com) * mass
    ledger.add("corrected_k", sqrt(missed_k.dot(missed_k)))
    ledger.add("corrected_l", sqrt(missed_l.dot(missed_l)))
    place = [*quat_multiply(turn, q1[1][:4]), *(G - R @ p_G)]
    return [[], place, *q1[2:]], [[], base, *([s * rate for rate in row] for row in v1[2:])]


def inner(tree: Tree, q: Rows, v: Rows) -> Inner:
    """The motion about the centre of mass, from axes that move with the base: a fast fall rounds nothing."""
    X = tree.transforms(q)
    at_rest: Rows = [[], [*v[1][:3], 0.0, 0.0, 0.0], *v[2:]]
    V = body_velocities(tree, X, at_rest)
    h, whole, p_G = centroidal_state(tree, at_base(tree, X), V)
    u = h.lin * (1.0 / whole.m)
    I_G = ldl(about_center(whole, p_G))
    T = _kinetic(tree, V) + rotor_energy(tree, v) - 0.5 * h.lin.dot(u)
    v_G = u + X[1].E.transpose_apply(Vector3(*v[1][3:]))
    return Inner(X, whole.m, p_G, u, v_G, h.ang, I_G, _solve(I_G, h.ang), T)


def kinetic(tree: Tree, X: Sequence[Any], v: Rows) -> Scalar:
    """T [J]."""
    return _kinetic(tree, body_velocities(tree, X, v)) + rotor_energy(tree, v)


def _kinetic(tree: Tree, V: Sequence[Motion]) -> Scalar:
    return 0.5 * added((V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()), 0.0)


def potential(tree: Tree, X: Sequence[Any]) -> Scalar:
    """V [J], 0 where the centre of mass is at the world origin's height."""
    _, h = composite_moment(tree, X)
    return tree.a0.dot(h)


def _solve(factor: Any, b: Vector3) -> Vector3:
    return Vector3(*ldl_solve(factor, list(b)))


def _inverse(slope: Scalar, noise: Scalar) -> Scalar:
    """1 / slope, and 0 where slope is small beside noise."""
    return 1.0 / (slope + noise * noise / (slope + TINY) + TINY)


def _within(x: Scalar, square: Scalar) -> Scalar:
    """x, and no farther from 0 than the root of the square."""
    end = sqrt(square + TINY)  # which has a slope at 0
    return where(x * x > square, where(x < 0.0, -end, end), x)


def _bounded(x: Scalar) -> Scalar:
    return minimum(maximum(x, -LARGEST), LARGEST)
