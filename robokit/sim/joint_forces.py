"""Forces at joints and from outside in a step: damping, friction, limits, actuators, loops, pushes.

Sections: the law of a robot's joints, the forces of its actuators, both as inputs of a step, and the impulses
that hold loop joints closed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import about
from robokit.algorithms.composites import composite_inertias
from robokit.algorithms.loop_constraints import ClosedLoop
from robokit.algorithms.loop_dynamics import PROXIMAL, LoopSystem, add, closed_loops, closest
from robokit.algorithms.sparse_factors import Factor, SparseFactor
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError
from robokit.model.constraints import LoopModel
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.sim.ground import weight
from robokit.sim.motion import ByJoint, ImplicitSweep, Ledger, Rows, body_velocities, effective_inertias
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar, is_zero, maximum, minimum, where

# ==== The law of the passive joint forces: damping, dry friction and limits of a robot's joints ===

DAMPING_TIME = 0.5
"""Time in which damping that is assumed stops a joint that nothing else moves [s].

What swings freely shrinks by a factor of e in twice this time: a hand is at rest ten seconds after a fall.
"""

STUCK = 5e-6  # most that a bristle of dry friction gives before the joint slides [rad | m]

GIVING = 8e-4
"""Time constant of a bristle against the dof's own inertia, at most [s].

What is heavy for its friction would creep for long before a softer bristle is wound.
"""

STOP_TIME = 5e-3  # time constant of a stop against the joint's inertia [s], at STOP_DEPTH
STOP_ANGLE = 0.01  # of a stop under the robot's weight at the subtree's radius of gyration [rad]
STOP_DEPTH = 1e-3  # the same of a prismatic joint [m], without a ground whose ``sink`` is given


@frozen
class Stop:
    """Limits of a joint and the gains of its stops: numbers, (B,) for samples, or scalars of a kernel."""

    lower: float
    upper: float
    k: Scalar
    d: Scalar


def pressing(stop: Stop, q: Scalar, force: Scalar) -> Scalar:
    """The force of a stop on its joint at q, without what pulls: a stop in a step may pull a little."""
    at_upper, at_lower = minimum(force, 0.0), maximum(force, 0.0)
    if math.isinf(stop.lower) or math.isinf(stop.upper):
        return at_upper if math.isinf(stop.lower) else at_lower
    return where(q > 0.5 * (stop.lower + stop.upper), at_upper, at_lower)


@frozen
class Friction:
    """Dry friction of a dof: its most [N m | N], damping of its bristle, effective inertia of the dof."""

    most: float
    d: Scalar
    inertia: Scalar

    @property
    def k(self) -> Scalar:
        """Stiffness of the bristle [N m/rad | N/m]."""
        return maximum(self.most / STUCK, self.inertia * (1.0 / GIVING**2))


@frozen
class JointLaw:
    """Passive forces by joint number 0..N."""

    damping: tuple[tuple[Scalar, ...], ...]  # [N m s/rad | N s/m] by dof
    assumed: tuple[bool, ...]  # whether that damping is not from the description but follows from the inertia
    friction: tuple[tuple[Friction | None, ...], ...]  # by dof, None where there is none
    stop: tuple[Stop | None, ...]  # limits, or None

    @property
    def active(self) -> bool:
        """Whether there is any force at all."""
        damped = any(
            np.any(b) if isinstance(b, float | np.ndarray) else True for r in self.damping for b in r
        )
        return damped or any(map(any, self.friction)) or any(self.stop)

    @property
    def wound(self) -> tuple[tuple[int, int], ...]:
        """(joint, dof of the joint) with a bristle."""
        return tuple((i, k) for i, row in enumerate(self.friction) for k, f in enumerate(row) if f)

    @property
    def gains(self) -> list[Scalar]:
        """The part of the law that depends on the robot's inertias."""
        found = [gain for stop in self.stop if stop is not None for gain in (stop.k, stop.d)]
        found += [gain for row in self.friction for f in row if f is not None for gain in (f.d, f.inertia)]
        return found + [b for row, own in zip(self.damping, self.assumed, strict=True) if own for b in row]

    def with_gains(self, gains: Sequence[Scalar]) -> JointLaw:
        """The same law with other gains."""
        rest = iter(gains)

        def friction(f: Friction | None) -> Friction | None:
            return f and replace(f, d=next(rest), inertia=next(rest))

        stops = tuple(stop and replace(stop, k=next(rest), d=next(rest)) for stop in self.stop)
        rubs = tuple(tuple(friction(f) for f in row) for row in self.friction)
        damping = tuple(
            tuple(next(rest) for _ in row) if own else row
            for row, own in zip(self.damping, self.assumed, strict=True)
        )
        return replace(self, stop=stops, friction=rubs, damping=damping)


def assumed_damping(amount: float | str) -> str:
    """The damping that was assumed, in words: [N m s/rad], or "inertia" for that over DAMPING_TIME."""
    return f"inertia / {DAMPING_TIME:g} s" if isinstance(amount, str) else f"{amount:g} N m s/rad"


def joint_law(
    robot: Robot, default_damping: float | None = 0.0, sink: float | None = None
) -> tuple[JointLaw, list[str]]:
    """The robot's passive joint forces, computed once, and the names of joints that got the default damping.

    ``default_damping`` is for moving joints that have none, the floating base excepted [N m s/rad | N s/m];
    None takes the inertia that the joint carries over DAMPING_TIME. ``sink`` is the depth by which stops of
    prismatic joints give way under the robot's weight, as contacts do [m]; time constants of stops go with
    its root. None: STOP_DEPTH. Raises ModelError for dry friction below zero.
    """
    return robot.derived.get(
        ("joint law", default_damping, sink), lambda: _joint_law(robot, default_damping, sink or STOP_DEPTH)
    )


def _joint_law(robot: Robot, default_damping: float | None, sink: float) -> tuple[JointLaw, list[str]]:
    damping: list[tuple[Any, ...]] = [()]
    assumed = [False]
    friction: list[tuple[Friction | None, ...]] = [()]
    stop: list[Stop | None] = [None]
    defaulted = []
    carried = cache(partial(subtree_inertia, robot))
    for i, joint in enumerate(robot.body_joints, 1):
        nv = robot.tree.joint[i].kind.nv
        free = joint.kind == "floating"
        given = joint.damping or free or default_damping == 0.0
        own = not given and default_damping is None
        if given:
            damping.append((0.0 if free else joint.damping,) * nv)
        else:
            defaulted.append(joint.name)
            moved = carried()[i][0] if own else []
            damping.append(
                tuple(_plain(moved[k][k] / DAMPING_TIME) if own else default_damping for k in range(nv))
            )
        assumed.append(own)
        most = 0.0 if free else joint.friction
        if most < 0.0:
            raise ModelError(
                f"joint {joint.name!r}: its dry friction of {most:g} is below zero and would push it along; "
                "a simulation takes zero or more"
            )
        if most:  # against what the dofs turn with all others free
            turned = effective_inertias(robot, [(i, k) for k in range(nv)])
            laws = [Friction(most, 0.0, _plain(x)) for x in turned]  # their bristles are critically damped
            friction.append(tuple(replace(f, d=_plain(2.0 * np.sqrt(f.inertia * f.k))) for f in laws))
        else:
            friction.append((None,) * nv)
        limited = math.isfinite(joint.lower) or math.isfinite(joint.upper)
        if nv == 1 and limited and joint.kind != "continuous":
            stop.append(_stop(joint, carried()[i], weight(robot), sink))
        else:
            stop.append(None)
    return JointLaw(tuple(damping), tuple(assumed), tuple(friction), tuple(stop)), defaulted


def _plain(x: Any) -> Any:
    return x if np.ndim(x) else float(x)


def _stop(joint: Any, inertia: tuple[list[list[Any]], Any], W: Any, sink: float) -> Stop:
    H, m, time = inertia[0][0][0], np.asarray(inertia[1]), STOP_TIME * math.sqrt(sink / STOP_DEPTH)
    if joint.kind == "prismatic":
        k = W / sink
    else:
        k = W * np.sqrt(np.where(m > 0.0, H / np.where(m > 0.0, m, 1.0), 0.0)) / STOP_ANGLE
    k = np.maximum(k, H / time**2)
    k = k if np.ndim(k) else float(k)
    return Stop(joint.lower, joint.upper, k, 2.0 * time * k)


def subtree_inertia(robot: Robot) -> list[tuple[list[list[Any]], Any]]:
    """Inertia S^T I^c S and mass of what each joint 0..N carries, in the neutral configuration.

    (B,) for samples. The joint's own rotor counts as carried: it must be stopped and damped, too.
    """
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    out: list[tuple[list[list[Any]], Any]] = [([], 0.0)] * (tree.n + 1)
    for i, Ic in composite_inertias(tree, X, tree.I):
        S = tree.joint[i].S  # type: ignore[union-attr]
        H = [list(S.T @ column) for column in S.of(Ic)]
        for k, rotor in enumerate(tree.armature[i] if tree.armature else ()):
            H[k][k] = H[k][k] + rotor
        out[i] = (H, Ic.m)
    return out


# ==== forces of actuators =========================================================================
# Forces of actuators: on the diagonal of H, as damping is, and within their limits.
#
#     tau = u - kp q - lag v - b y + tau_given,     u = kp q* + (kd + extra) v* + feedforward
#
# q is the configuration at mid step, v the velocity at the start and y that at the end of the step, m the
# inertia that the joint moves; b, lag and extra, and why no gain is too stiff: contact/constraints/motors.py.
#
# Limits: the effort may not exceed L, and it pushes no further than to the largest speed,
#
#     |tau| <= L,     tau > 0 only where y <= v_max,     tau < 0 only where y >= -v_max.
#
# With d the direction in which the law pushes, a joint pushes with the least of three: what the law wants, L,
# and what brings it to the largest speed at the end of the step. That is foreseen from the iterate x, whose
# effort was tau_x (0 before the first sweep),
#
#     top = d tau_x + r m / dt (v_max - d x),     r = 1 in the first sweep, CAUTION later.
#
# If top < 0, the joint is too fast without its motor, which neither pushes nor brakes. If it lies between 0
# and the other two, the joint is held at the largest speed by a line, top + HOLD m / dt (v_max - d y), or a
# flatter one, so that at x it is not above L: other joints may keep this one from its largest speed. Each
# sweep takes its top from the line before, so m need not be right. A first iterate knows nothing of the step:
# there, m is taken as that of a joint alone.
#
# Cost: about 5 operations a driven joint, and 20 an iteration where it is limited.

CAUTION = 0.1
"""Share of the inertia that the largest speed is looked ahead with, once there is an iterate: a joint whose
inertia is ten times smaller than m would jump to and fro between its limits past the speed between them."""

HOLD = 100.0
"""Slope that holds a joint at its largest speed, times dt / m. In single precision, the effort of a joint at
this speed is uncertain by so many roundings of its momentum over dt."""


@frozen
class Drive:
    """One driven joint: the properties that the code of a step depends on."""

    body: int  # number of the joint
    servo: bool  # whether there are gains; else the force is u alone
    effort: bool  # whether it is limited
    speed: bool  # whether that is

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the numbers that the joint takes."""
        names: tuple[str, ...] = ("kp", "b", "lag") if self.servo else ()
        if self.effort:
            names += ("effort",)
        if self.speed:
            names += ("speed",)
        return (*names, "mass") if self.effort or self.speed else names


@frozen
class DriveNumbers:
    """The numbers of one driven joint, floats or scalars of a kernel."""

    # kp, b, lag: of the law above
    kp: Scalar = 0.0
    b: Scalar = 0.0
    lag: Scalar = 0.0
    effort: Scalar = 0.0  # L [N m | N]
    speed: Scalar = 0.0  # v_max [rad/s | m/s]
    mass: Scalar = 0.0  # inertia that the joint moves [kg m^2 | kg], roughly


class DriveState:
    """The actuators in one step, linearised at the last iterate of the solve."""

    def __init__(
        self,
        drives: Sequence[Drive],
        numbers: Sequence[DriveNumbers],
        u: Sequence[Scalar],
        q: ByJoint,
        v: ByJoint,
        tau: ByJoint,
        dt: Scalar,
    ) -> None:
        """Prepare a step of dt [s] with q at mid step and v at the start, by joint.

        ``numbers`` are those of each driven joint, and u what it is given that does not depend on the state;
        tau are joint forces given besides, by joint, of which those on driven joints share their limits.
        """
        self.drives, self.numbers, self.tau, self.dt = drives, numbers, tau, dt
        self.old: list[list[Scalar]] | None = None
        self.b, self.command = [], []
        for drive, x, target in zip(drives, numbers, u, strict=True):
            i = drive.body
            command = target + tau[i][0]
            self.b.append(x.b if drive.servo else 0.0)
            self.command.append(command - x.kp * q[i][0] - x.lag * v[i][0] if drive.servo else command)
        self.lines: list[list[Scalar]] = []
        """(slope, force at rest) of each driven joint."""
        self.limited: list[Scalar] = []
        """1.0 where a driven joint is at a limit, else 0.0."""

    def linearise(self, x: ByJoint) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
        """Slope b and force at rest of all joint forces given, tau = force - b qd, at the iterate x, by
        joint and dof; joints without a drive have slope 0 and their tau.
        """
        self.old = self.lines or None
        self.lines, self.limited = [], []
        slopes: list[list[Scalar]] = [[0.0] * len(row) for row in self.tau]
        rest: list[list[Scalar]] = [list(row) for row in self.tau]
        for k, drive in enumerate(self.drives):
            i = drive.body
            slope, force, at_limit = self._line(k, x[i][0])
            self.lines.append([slope, force])
            self.limited.append(at_limit)
            slopes[i][0], rest[i][0] = slope, force
        return slopes, rest

    def _line(self, k: int, x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """(slope, force at rest, whether limited) of one driven joint."""
        drive, n, b, command = self.drives[k], self.numbers[k], self.b[k], self.command[k]
        if not drive.effort and not drive.speed:
            return b, command, 0.0
        at = x
        if self.old is None and drive.servo:
            at = (n.mass * x + self.dt * command) / (n.mass + self.dt * b)
        wanted = command - b * at if drive.servo else command
        d = where(wanted < 0.0, -1.0, 1.0)
        if not drive.speed:
            limited = d * wanted > n.effort
            return where(limited, 0.0, b), where(limited, d * n.effort, command), where(limited, 1.0, 0.0)
        rate = n.mass / self.dt
        gap = n.speed - d * x
        top = rate * gap
        if self.old is not None:
            slope, force = self.old[k]
            top = d * (force - slope * x) + CAUTION * top
        top = maximum(top, 0.0)
        held, line = top > 0.0, HOLD * rate
        if drive.effort:
            held, top = held & (top < n.effort), minimum(top, n.effort)
            far = gap * line > n.effort - top
            line = where(far, (n.effort - top) / where(far, gap, 1.0), line)
        limited = d * wanted > top
        line = where(held, line, 0.0)
        slope = where(limited, line, b)
        force = where(limited, d * (top + line * n.speed), command)
        return slope, force, where(limited, 1.0, 0.0)

    def forces(self, x: ByJoint) -> list[list[Scalar]]:
        """Given joint forces plus those of the actuators at x, by joint and dof."""
        out = [list(row) for row in self.tau]
        for drive, (slope, force) in zip(self.drives, self.lines, strict=True):
            out[drive.body][0] = force if is_zero(slope) else force - slope * x[drive.body][0]
        return out


# ==== actuators and pushes as inputs of a step ====================================================
# What a step is given: actuators, pushes, and what a controller gives to the six entries of a floating base.
#
# The kernel of a step has an input more for each of the first two that there is. Where nothing is given it is
# the kernel of a robot that only falls. Forces from outside change the momentum of a floating robot, which
# joint forces do not.


# ---- forces from outside -----------------------------------------------------------------------------------

Place = tuple[int, tuple[Scalar, Scalar, Scalar] | None]
"""Body and point in its coordinates [m]; None where the wrench is about the world's origin."""

BodyForces = list[Force | None]  # force on each body 0..N in its coordinates, None where there is none


def body_forces(
    tree: Tree, X: Sequence[Any], places: Sequence[Place], wrenches: Sequence[Scalar], base: Sequence[Scalar]
) -> BodyForces:
    """The forces from outside in one configuration, by body, from transforms X = ^iX_lambda(i).

    Wrenches are moment and force in world axes, 6 a place [N m; N]; ``base`` is a wrench on body 1 in its
    coordinates, (6,), or empty.
    """
    forces: BodyForces = [None] * (tree.n + 1)
    if base:
        forces[1] = Force(Vector3(*base[:3]), Vector3(*base[3:]))
    turned: dict[int, Transform] = {0: Transform.identity()}
    for k, (i, point) in enumerate(places):
        moment, push = Vector3(*wrenches[6 * k : 6 * k + 3]), Vector3(*wrenches[6 * k + 3 : 6 * k + 6])
        pose = _pose(tree, X, i, turned)
        if point is None:
            f = pose.star(Force(moment, push))
        else:
            turned_push = pose.E @ push
            f = Force(pose.E @ moment + Vector3(*point).cross(turned_push), turned_push)
        own = forces[i]
        forces[i] = f if own is None else own + f
    return forces


def _pose(tree: Tree, X: Sequence[Any], i: int, known: dict[int, Transform]) -> Transform:
    """^iX_0, and those of the bodies on the way."""
    path = []
    while i not in known:
        path.append(i)
        i = tree.parent[i]
    for j in reversed(path):
        known[j] = X[j] @ known[i]
        i = j
    return known[i]


def power(forces: BodyForces, V: Sequence[Motion]) -> Scalar:
    """Of the forces on bodies that move at V [W]."""
    total: Scalar = 0.0
    for f, v in zip(forces, V, strict=True):
        if f is not None:
            total = total + v.dot(f)
    return total


def as_list(forces: BodyForces) -> list[Force]:
    """As algorithms take f_ext: a force for each body."""
    return [Force.zero() if f is None else f for f in forces]


# ---- what a step is given ----------------------------------------------------------------------------------


@frozen
class GivenLayout:
    """What a step is given, without the numbers."""

    drives: tuple[Drive, ...] = ()  # the driven joints
    # (body, whether the wrench is about the world's origin) of each place of pushes
    places: tuple[tuple[int, bool], ...] = ()
    base: bool = False  # whether the first six joint forces are a wrench from outside on a base that floats
    bodies: int = 0  # how many bodies, from the first on, are given a wrench each, in body coordinates
    fixed_links: bool = False  # whether bodies can touch links that are fixed to the world
    links: tuple[str, ...] = field(default=(), compare=False, repr=False)  # that are pushed at these places
    # bodies whose joints move as is prescribed; steps of "contact" alone take them
    motions: tuple[int, ...] = ()

    @property
    def inputs(self) -> list[tuple[str, int]]:
        """(name, size) of the inputs of the kernel."""
        found = [("drives", len(self.drives)), ("pushes", 6 * len(self.places)), ("held", 6 * self.bodies)]
        found.append(("motions", 3 * len(self.motions)))
        return [(name, size) for name, size in found if size]

    @property
    def outside(self) -> bool:
        """Whether there are forces from outside."""
        return bool(self.places) or self.base or bool(self.bodies) or self.fixed_links

    def split(self, numbers: Iterable[Any]) -> tuple[list[dict[str, Any]], list[Place]]:
        """Numbers of the drives, by their names, and then three coordinates for each point of a body."""
        rest = iter(numbers)
        drives = [dict(zip(d.parameters, islice(rest, len(d.parameters)), strict=True)) for d in self.drives]
        return drives, [
            (body, None if world else (next(rest), next(rest), next(rest))) for body, world in self.places
        ]

    def problem(self, numbers: Iterable[Scalar], inputs: Sequence[Sequence[Scalar]]) -> Given:
        """What is given in a step: ``numbers`` as of :meth:`split`, ``inputs`` as :attr:`inputs`."""
        (own, places), values = self.split(numbers), iter(inputs)
        drives = [DriveNumbers(**each) for each in own]
        u = next(values) if self.drives else ()
        wrenches = next(values) if self.places else ()
        held = next(values) if self.bodies else ()
        return Given(self, drives, u, places, wrenches, held)


NOTHING = GivenLayout()


@frozen
class Given:
    """What is given in a step, with its numbers as plain numbers or scalars of a kernel."""

    layout: GivenLayout = NOTHING
    numbers: Sequence[DriveNumbers] = ()
    u: Sequence[Scalar] = ()
    places: Sequence[Place] = ()
    wrenches: Sequence[Scalar] = ()
    held: Sequence[Scalar] = ()

    def joint_forces(self, tau: Rows) -> Rows:
        """The joint forces without those that come from outside."""
        return [tau[0], [0.0] * 6, *tau[2:]] if self.layout.base else tau

    def drive(self, q: Rows, v: Rows, tau: Rows, dt: Scalar, ahead: Scalar) -> DriveState:
        """The actuators in a step, at the configuration q moved along v for the time ahead."""
        at: list[Any] = [()] * len(q)
        for drive in self.layout.drives:
            i = drive.body
            at[i] = [q[i][0] + ahead * v[i][0]]
        return DriveState(self.layout.drives, self.numbers, self.u, at, v, self.joint_forces(tau), dt)

    def outside(self, tree: Tree, X: Sequence[Any], tau: Rows) -> BodyForces:
        """The forces from outside in a configuration with the transforms X, by body."""
        if not self.layout.outside:
            return [None] * (tree.n + 1)
        forces = body_forces(tree, X, self.places, self.wrenches, tau[1] if self.layout.base else ())
        for k in range(self.layout.bodies):
            f = Force(Vector3(*self.held[6 * k : 6 * k + 3]), Vector3(*self.held[6 * k + 3 : 6 * k + 6]))
            own = forces[k + 1]
            forces[k + 1] = f if own is None else own + f
        return forces

    def enter_drives(self, ledger: Ledger, forces: Rows, limited: Sequence[Scalar], dt: Scalar) -> None:
        """Enter the forces of the actuators and the time that they were limited."""
        at = 6 * self.layout.outside
        for k, (drive, share) in enumerate(zip(self.layout.drives, limited, strict=True)):
            ledger.add_more(at + 2 * k, dt * forces[drive.body][0])
            ledger.add_more(at + 2 * k + 1, dt * share)

    def enter_outside(
        self, ledger: Ledger, tree: Tree, X: Sequence[Any], f: BodyForces, V: Sequence[Motion], dt: Scalar
    ) -> Force | None:
        """Enter the work and impulse of external forces f, by body, in the time dt [s] on bodies that move at
        V.

        X are transforms of a robot seen from its base, or from the world. Returns the impulse about the
        centre of mass in world axes [N m s; N s]; None where there are no such forces.
        """
        if not self.layout.outside:
            return None
        ledger.add("work", dt * power(f, V))
        total = as_list(f)
        for i in tree.inward():
            p = tree.parent[i]
            total[p] = total[p] + X[i].T @ total[i]
        m, h = composite_moment(tree, X)
        impulse = about(total[0], h * (1.0 / m)) * dt
        for k, x in enumerate(impulse):
            ledger.add_more(k, x)
        return impulse


# ==== impulses of loop joints =====================================================================
# Loop joints in a time step: impulses that hold them closed, and what is left projected away.
#
# The implicit solve at the start of a step, from the velocities v to y, is given the impulse K^T lambda with
#
#     K (v + y) = 0
#
# The mean velocity is one that the loops allow, so that the impulse does no work. Redundant loops can always
# meet it, because its right side is K times a velocity. The steps before may have left the loops open, so K
# is that of the nearest pose in which they are closed. While open, the rows of a linkage that moves only
# because they repeat each other (Bennett's, Sarrus's) are independent, and would stop it.
#
# What a step leaves open is taken away at its end, with K at the new pose and H as the step factorised it:
#
#     q <- q - H^-1 K^T A^-1 delta        v <- v - H^-1 K^T A^-1 K v
#
# Both corrections are wrenches between two bodies, which make no momentum.
#
# Source: RBDA section 8.3 (there stabilised by accelerations); projection methods, Hairer, Lubich and Wanner,
# "Geometric numerical integration", section VII.2; H. C. Andersen, "Rattle" (1983).
# Cost: that of the loops in ../../algorithms/loop_dynamics.py three times.

PROXIMAL_SINGLE = 1e-4  # the proximal share in single precision


@frozen
class LoopLaw:
    """The loop joints of a step."""

    models: tuple[LoopModel, ...]  # that constrain anything
    proximal: float = PROXIMAL  # see robokit.algorithms.loop_dynamics

    def system(self, tree: Tree, factor: Factor, X: Sequence[Any]) -> LoopSystem:
        """The constraints at the transforms X."""
        return LoopSystem(factor, closed_loops(tree, self.models, X), self.proximal)


class LoopKick:
    """The loops of an implicit solve.

    ``loops``: at the pose nearest to that of the solve in which they are closed; from the first solve on.
    """

    def __init__(self, law: LoopLaw, tree: Tree, q: Rows, X: Sequence[Any]) -> None:
        self.law, self.tree, self.q, self.X = law, tree, q, X
        self.loops: list[ClosedLoop] = []

    def solve(
        self, sweep: ImplicitSweep, T: Sequence[Force], tau: Rows, v: Rows
    ) -> tuple[Rows, list[Motion]]:
        """The solve of a sweep with the loops' impulses in it: y by joint and by body.

        T are momenta and impulses of the bodies 0..N in body coordinates, tau forces of the joints and v
        velocities before, by joint.
        """
        y, _ = sweep.solve(T, tau)
        factor = sweep.factor or SparseFactor(self.tree, sweep.H or ())
        if not self.loops:
            drifted = self.law.system(self.tree, factor, self.X)
            _, self.loops = closest(drifted, self.tree, self.law.models, self.q)
        system = LoopSystem(factor, self.loops, self.law.proximal)
        y = add(y, system.motion(system.forces([-a for a in system.rates(add(v, y))])))
        return y, body_velocities(self.tree, self.X, y)


def project(law: LoopLaw, tree: Tree, factor: Factor, q: Rows, v: Rows) -> tuple[Rows, Rows]:
    """The state (q, v) of a step's end, by joint, with its loops closed and its velocities tangent to them.

    ``factor``: of H near this pose; it only weighs the corrections.
    """
    system = law.system(tree, factor, tree.transforms(q))
    q, loops = closest(system, tree, law.models, q)
    rates = [-x for loop in loops for x in loop.rates(v)]
    return q, add(v, system.motion(system.forces(rates)))
