"""Time steps: methods as rows of a table, and the text of those for passive motion.

    name             order  for
    contact            2    falls: all forces as one problem (contact/step.py)
    midpoint           2    long passive motion at little cost
    rkmk4              4    passive motion, the default without a ground
    energy_momentum    4    the same; its energy is kept, too (below)

"euler" is an old name of "contact".

midpoint, rkmk4 and energy_momentum compute damping, friction and limits by an implicit solve at the start of
the step and hold these forces constant during it. However stiff they are, they cannot make the step unstable.
rkmk4 and energy_momentum integrate on the joints' manifolds; midpoint drifts along velocities
(motion.py).

All methods keep the momentum of a floating robot to rounding (motion.py).

Source: Runge-Kutta-Munthe-Kaas, H. Munthe-Kaas, "High order Runge-Kutta methods on manifolds" (1999).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from robokit.algorithms.aba import aba
from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.coupling import coupled_forward_dynamics
from robokit.algorithms.energy import rotor_energy
from robokit.algorithms.loop_dynamics import LoopSystem, add, loop_dynamics
from robokit.contact.accounts import LARGEST, SMALL, central_inertia, factor3, solve3
from robokit.dataclass_tools import frozen
from robokit.errors import UnknownName, warn
from robokit.model.tree import Tree
from robokit.sim.joint_forces import BodyForces, Given, JointLaw, LoopKick, LoopLaw, as_list, project
from robokit.sim.joint_forces import power as power_outside
from robokit.sim.motion import (
    Carried,
    ImplicitSweep,
    Ledger,
    Rows,
    advance,
    at_base,
    body_velocities,
    centroidal_state,
    floats,
    free_base,
    momenta_after,
)
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.rotation import quat_exp, quat_multiply, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, added, clamp, is_zero, maximum, minimum, sqrt, where


def along(x: Rows, s: Scalar, y: Rows) -> Rows:
    """x + s y."""
    return [[a + s * b for a, b in zip(u, w, strict=True)] for u, w in zip(x, y, strict=True)]


def half_way(v: Rows, y: Rows, dt: Scalar) -> Rows:
    """The displacement dt (v + y) / 2, over which constant forces that change v to y do their work."""
    return [[0.5 * dt * (a + b) for a, b in zip(x, z, strict=True)] for x, z in zip(v, y, strict=True)]


def power(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    """x . y."""
    return added((a * b for a, b in zip(x, y, strict=True)), 0.0)


def enter_joint_work(ledger: Ledger, theta: Rows, held: Held) -> None:
    """Enter the work of constant joint forces over the displacement theta into the ledger."""
    entries = ("work", 1.0, held.given), ("friction", -1.0, held.rub), ("stops", -1.0, held.stops)
    for name, sign, forces in entries:
        ledger.add(name, sign * added((power(f, s) for f, s in zip(forces, theta, strict=True)), 0.0))


def seen(tree: Tree, X: Sequence[Any]) -> list[Any]:
    """The transforms from world axes at the base of a robot that floats; else from the world."""
    return at_base(tree, X) if floats(tree) else list(X)


def keep(s: StepTaken, q: Rows, v: Rows, impulse: Force | None = None) -> tuple[Rows, Rows]:
    """The state (q, v) after a step, its momentum changed by gravity and the impulse from outside only.

    Of a robot that floats the base's velocity is corrected (motion.py).
    """
    tree, before = s.p.tree, s.carried.momentum
    if before is None:
        return q, v
    wanted = before if impulse is None else before + impulse
    mass = added((tree.I[i].m for i in tree.outward()), 0.0)
    s.carried.momentum = wanted = Force(wanted.ang, wanted.lin - tree.a0 * (mass * s.dt))
    X = tree.transforms(q)
    h, I, p_G = centroidal_state(tree, at_base(tree, X), body_velocities(tree, X, v))
    missing = wanted - h
    omega = solve3(factor3(central_inertia(I, p_G)), missing.ang)
    v_base = missing.lin * (1.0 / I.m) - omega.cross(p_G)
    E = X[1].E
    base = [a + b for a, b in zip(v[1], [*(E @ omega), *(E @ v_base)], strict=True)]
    s.ledger.add("corrected_k", sqrt(missing.ang.dot(missing.ang)))
    s.ledger.add("corrected_l", sqrt(missing.lin.dot(missing.lin)))
    return q, [[], base, *v[2:]]


# ---- methods ----------------------------------------------------------------------------------------------


STAGES = (), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)
WEIGHTS = 1 / 6, 1 / 3, 1 / 3, 1 / 6
"""The classical Runge-Kutta method of order 4: weights of the stages before each, and of all in the step."""


@frozen
class Method:
    """A row of the table."""

    order: int  # of the error in free motion
    step: Step | None  # one time step; None of the step that knows contact (contact/step.py)
    keeps_energy: bool = False  # whether the energy of the start is handed on from step to step

    @property
    def contact(self) -> bool:
        """Whether it knows contact."""
        return self.step is None


# ---- pieces ------------------------------------------------------------------------------------------


class Dynamics:
    """Accelerations by the ABA; for coupled joints by a solve with H_r, for loop joints with their forces.

    Attributes:
        loops: of the last call, or None.
    """

    def __init__(self, p: Problem) -> None:
        self.tree, self.law = p.tree, p.loops
        self.loops: LoopSystem | None = None

    def __call__(self, q: Rows, v: Rows, tau: Rows, outside: BodyForces | None = None) -> Rows:
        """By joint."""
        f_ext = None if outside is None else as_list(outside)
        if self.law is not None:
            a, _, self.loops = loop_dynamics(self.tree, self.law.models, q, v, tau, self.law.proximal, f_ext)
            return a
        text = aba if self.tree.coupling is None else coupled_forward_dynamics
        return [list(row) for row in text(self.tree, q, v, tau, f_ext)]

    def close(self, q: Rows, v: Rows) -> tuple[Rows, Rows]:
        """The state at the step's end with its loops closed."""
        if self.law is None or self.loops is None:
            return q, v
        return project(self.law, self.tree, self.loops.factor, q, v)


def acceleration(dynamics: Dynamics, q: Rows, v: Rows, tau: Rows, outside: BodyForces | None = None) -> Rows:
    """The base's linear acceleration as seen from axes that do not turn."""
    a, tree = dynamics(q, v, tau, outside), dynamics.tree
    for i in tree.outward():
        if free_base(tree, i):
            turning = Vector3(*v[i][:3]).cross(Vector3(*v[i][3:]))
            a[i] = [*a[i][:3], *(x + y for x, y in zip(a[i][3:], turning, strict=True))]
    return a


# ---- steps -------------------------------------------------------------------------------------------


def midpoint_step(s: StepTaken) -> tuple[Rows, Rows]:
    """Half a step of q, v by the acceleration at mid pose and mid velocity, the other half of q.

    The mid velocity lies a little beyond the middle: see :func:`beyond_the_middle`.
    """
    p, tree, dt, dynamics = s.p, s.p.tree, s.dt, Dynamics(s.p)
    held = held_forces(s)
    total = held.total
    qm, vm = advance(tree, s.q, s.v, 0.5 * dt)
    outside, X = forces_outside(p, qm, s.tau)
    share = beyond_the_middle(tree, qm, vm, dt)
    middle = along(vm, share * dt, acceleration(dynamics, qm, vm, total, outside))
    v1 = along(vm, dt, acceleration(dynamics, qm, middle, total, outside))
    q1, v1_turned = advance(tree, qm, v1, 0.5 * dt)
    enter_joint_work(s.ledger, half_way(vm, v1, dt), held)
    impulse = None
    if outside is not None:
        V = body_velocities(tree, X, half_way(vm, v1, 1.0))
        impulse = p.given.enter_outside(s.ledger, tree, seen(tree, X), outside, V, dt)
    return keep(s, *dynamics.close(q1, v1_turned), impulse)


def beyond_the_middle(tree: Tree, q: Rows, v: Rows, dt: Scalar) -> Scalar:
    """Part of a step after which midpoint takes its mid velocity: 1/2 + (omega dt)^2, at most 1.

    With exactly 1/2 a nutation of frequency w grows by (w dt)^4 / 8 of itself a step. w is at most twice the
    angular velocity omega of the fastest body, so that the addition outweighs this up to omega dt = 0.45.
    It is of second order and leaves the order of the step as it is.
    """
    V = body_velocities(tree, tree.transforms(q), v)
    fastest: Scalar = 0.0
    for i in tree.outward():
        fastest = maximum(fastest, V[i].ang.dot(V[i].ang))
    return minimum(0.5 + dt * dt * fastest, 1.0)


def rkmk_step(s: StepTaken) -> tuple[Rows, Rows]:
    """The Runge-Kutta-Munthe-Kaas method of order 4, and the momentum of the start."""
    q1, v1, _, impulse = rkmk(s)
    return keep(s, q1, v1, impulse)


def energy_momentum_step(s: StepTaken) -> tuple[Rows, Rows]:
    """The same, and the energy of the start too."""
    return conserve(s, *rkmk(s))


def rkmk(s: StepTaken) -> tuple[Rows, Rows, Scalar, Force | None]:
    """q = q exp(theta), with theta and v by a Runge-Kutta method in the joints' Lie algebras.

    Returns the state by joint after the step, the work of joint forces and of those from outside [J], and the
    impulse of these about the centre of mass [N m s; N s], None where there is none.
    """
    p, tree, q, v, dt, dynamics = s.p, s.p.tree, s.q, s.v, s.dt, Dynamics(s.p)
    held = held_forces(s)
    total = held.total
    rates: list[Rows] = []
    accelerations: list[Rows] = []
    impulse, work = None, 0.0
    for row, weight in zip(STAGES, WEIGHTS, strict=True):
        theta, vs = _stages_added(dt, row, rates, v, zero=True), _stages_added(dt, row, accelerations, v)
        qs = [
            tree.joint[i].integrate(q[i], theta[i]) if i and rates else q[i]  # type: ignore[union-attr]
            for i in range(tree.n + 1)
        ]
        outside, X = forces_outside(p, qs, s.tau)
        if outside is not None:
            V = body_velocities(tree, X, vs)
            share = p.given.enter_outside(s.ledger, tree, seen(tree, X), outside, V, weight * dt)
            impulse = share if impulse is None or share is None else impulse + share
            work = work + weight * dt * power_outside(outside, V)
        accelerations.append(dynamics(qs, vs, total, outside))
        rates.append([dexpinv(tree, i, theta[i], vs[i]) for i in range(tree.n + 1)])
    theta, v1 = (
        _stages_added(dt, WEIGHTS, rates, v, zero=True),
        _stages_added(dt, WEIGHTS, accelerations, v),
    )
    q1 = [[], *(tree.joint[i].integrate(q[i], theta[i]) for i in tree.outward())]  # type: ignore[union-attr]
    enter_joint_work(s.ledger, theta, held)
    work = work + added((power(f, way) for f, way in zip(total, theta, strict=True)), 0.0)
    return *dynamics.close(q1, v1), work, impulse


def forces_outside(p: Problem, q: Rows, tau: Rows) -> tuple[BodyForces | None, Sequence[Any]]:
    """(forces from outside by body, transforms) in the configuration q; (None, ()) where there are none."""
    if not p.given.layout.outside:
        return None, ()
    X = p.tree.transforms(q)
    return p.given.outside(p.tree, X, tau), X


def _stages_added(
    dt: Scalar, weights: Sequence[float], stages: list[Rows], v: Rows, zero: bool = False
) -> Rows:
    total = [[0.0] * len(row) for row in v] if zero else v
    for w, stage in zip(weights, stages, strict=True):
        if w:
            total = along(total, dt * w, stage)
    return total


def dexpinv(tree: Tree, i: int, theta: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Rate of theta for the body velocity v: v + [theta, v]/2 + [theta, [theta, v]]/12, to order 4."""
    if len(v) < 2:
        return list(v)
    first = _bracket(tree, i, theta, v)
    second = _bracket(tree, i, theta, first)
    return [a + 0.5 * b + c / 12.0 for a, b, c in zip(v, first, second, strict=True)]


def _bracket(tree: Tree, i: int, x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
    """S^T (S x X S y): every joint's S spans a subalgebra and has orthonormal columns."""
    S = tree.joint[i].S  # type: ignore[union-attr]
    m: Motion = (S * x).cross(S * y)
    return [c.ang.dot(m.ang) + c.lin.dot(m.lin) for c in S.columns]


METHODS: dict[str, Method] = {
    "contact": Method(2, None, keeps_energy=True),
    "midpoint": Method(2, midpoint_step),
    "rkmk4": Method(4, rkmk_step),
    "energy_momentum": Method(4, energy_momentum_step, keeps_energy=True),
}


def method(name: Any, contact: bool) -> tuple[str, Method]:
    """The method of that name; None takes "contact" where something can touch and "rkmk4" elsewhere.

    Raises UnknownName for no such method, or one that knows no contact where something can touch.
    """
    if name is None:
        name = "contact" if contact else "rkmk4"
    if isinstance(name, str) and name == "euler":
        said = "integrator: 'euler' is now 'contact'; the old name will be removed in robokit 0.4"
        warn(said, DeprecationWarning)
        name = "contact"
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownName("integrator", name, METHODS)
    if contact and not METHODS[name].contact:
        known = [each for each in METHODS if METHODS[each].contact]
        raise UnknownName("integrator with a ground", name, known, "(this one does not support contact)")
    return name, METHODS[name]


# ==== forces held during a step ===================================================================
# What a step of passive motion needs besides the state, and the forces that it holds constant.
#
# Damping, dry friction, stops and actuators are those of an implicit solve at the start of the step, for the
# velocities y at its end:
#
#     (H + dt b) y = J^T T + dt tau
#
# T are the bodies' momenta with the velocity products of the step (motion.py). Every sweep linearises
# the joint forces at the last iterate and solves afresh. However stiff they are, they cannot make the step
# unstable.
#
# Cost: O(n) a sweep.


@frozen
class Problem:
    """A robot and all that acts on it."""

    tree: Tree  # the tree
    joints: JointLaw  # damping, friction and limits
    loops: LoopLaw | None = None  # the loop joints, or None
    given: Given = field(default_factory=Given)  # actuators and forces from outside


@dataclass
class StepTaken:
    """A step of passive motion while it is taken."""

    p: Problem  # the robot and all that acts on it
    # q, v, tau: state and joint forces where it begins, by joint
    q: Rows
    v: Rows
    tau: Rows
    dt: Scalar  # [s]
    carried: Carried  # what the step before has handed on, then what this one hands on
    ledger: Ledger = field(default_factory=lambda: Ledger([]))  # to which it adds
    held: Held | None = None  # joint forces of the step; None where given forces act alone


Step = Callable[[StepTaken], tuple[Rows, Rows]]  # -> the state at its end, q and v by joint


# ---- forces that a step holds -----------------------------------------------------------------------------

SWEEPS = 3  # Solves. In the last one stops that pull are let go.


@dataclass
class Held:
    """Forces that a step holds."""

    given: Rows  # given joint forces and those of actuators, by joint [N m | N]
    rub: Rows  # damping and friction, by joint
    stops: Rows  # of limits, by joint
    limited: list[Scalar]  # 1.0 for each actuator at a limit, else 0.0
    # velocities of the bodies at the start, body coordinates; None where no solve was needed
    V: list[Motion] | None = None

    @property
    def total(self) -> Rows:
        """Their sum."""
        return add(add(self.given, self.rub), self.stops)


def held_forces(s: StepTaken) -> Held:
    """Joint forces held in a step, by joint; the step and its ledger, if it has entries, get them."""
    p = s.p
    if not p.joints.active and not p.given.layout.drives:
        zero = [[0.0] * len(row) for row in s.v]
        return Held(p.given.joint_forces(s.tau), zero, zero, [])
    s.held = _solved(s)
    if s.ledger.entries:
        p.given.enter_drives(s.ledger, s.held.given, s.held.limited, s.dt)
    return s.held


def _solved(s: StepTaken) -> Held:
    p, tree, q, v, dt = s.p, s.p.tree, s.q, s.v, s.dt
    X = tree.transforms(q)
    V = body_velocities(tree, X, v)
    P = [tree.I[i] @ V[i] for i in range(tree.n + 1)]
    state = JointState(s)
    drive = p.given.drive(q, v, s.tau, dt, 0.5 * dt)
    armature = tree.armature or [[0.0] * len(row) for row in v]
    spin = [  # what the rotors' momenta before the step add to the joint forces
        [a * rate * (1.0 / dt) if a else 0.0 for a, rate in zip(row, rates, strict=True)]
        for row, rates in zip(armature, v, strict=True)
    ]
    outside = p.given.outside(tree, X, s.tau)
    loops = None if p.loops is None else LoopKick(p.loops, tree, q, X)
    y: Rows = v
    w: Rows = v
    for k in range(SWEEPS):
        before = y
        T = momenta_after(tree, X, P, w, dt)
        T = [t if f is None else t + f * dt for t, f in zip(T, outside, strict=True)]
        b, rest = state.linearise(y, last=k == SWEEPS - 1)
        slopes, given = drive.linearise(y)
        sweep = ImplicitSweep(tree, X, add(b, slopes), dt)
        forces = add(add(rest, given), spin)
        y, _ = sweep.solve(T, forces) if loops is None else loops.solve(sweep, T, forces, v)
        w = half_way(v, half_way(before, y, 1.0) if k else y, 1.0)
    rub, stops = (list(rows) for rows in zip(*state.forces(y), strict=True))
    return Held(drive.forces(y), rub, stops, list(drive.limited), V)


# ---- damping, dry friction and limits ----------------------------------------------------------------------
#     tau = -damping qd + friction + stop
#
# Dry friction is a bristle: -min(kd, f / |x|) x with x = qd + r e, where e is how
# far it is wound, at most f / k. A joint that sticks is held by a spring and does not creep. A stop is a
# contact in one dimension: max(0, -k phi - d phi') where phi is the distance left to the limit.

SLOWEST = 1e-9  # speed below which a bristle's friction has no direction [rad/s | m/s]


class JointState:
    """The passive joint forces of one step, linearised at the last iterate of the solve."""

    def __init__(self, step: StepTaken) -> None:
        self.tree, self.law, self.q, self.dt = step.p.tree, step.p.joints, step.q, step.dt
        self.w: list[list[Scalar]] = []
        self.on0: list[list[Any]] = []
        self.rub: list[list[Scalar]] = []
        self.wound: dict[tuple[int, int], Scalar] = {}
        for (i, k), e in step.carried.wound.items():  # each bristle by what its joint moved in the last step
            f = self.law.friction[i][k]
            assert f is not None
            most = f.most / f.k
            self.wound[i, k] = clamp(e + self.dt * step.v[i][k], -most, most)
        step.carried.wound = dict(self.wound)

    def _gaps(self, i: int) -> Iterator[tuple[Scalar, float]]:
        """(distance left, its rate per qd) of the limits of joint i."""
        stop = self.law.stop[i]
        if stop is None:
            return
        q = self.q[i][0]
        if math.isfinite(stop.lower):
            yield q - stop.lower, 1.0
        if math.isfinite(stop.upper):
            yield stop.upper - q, -1.0

    def linearise(self, x: Rows, last: bool) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
        """Active stops and friction dampers from the iterate x; in the last sweep, no stop that pulls.

        Returns slope b and force at rest of the linearised law, tau = force - b qd, by joint and dof.
        """
        first = not self.w
        if first:
            self.w = [[] for _ in range(self.tree.n + 1)]
            self.on0 = [[] for _ in range(self.tree.n + 1)]
        old = self.rub
        self.rub = []
        for i in range(self.tree.n + 1):
            qd = x[i][0] if len(x[i]) else 0.0
            # Which stops act, a share from 0 to 1 that the sweeps settle; at first those where the joint
            # would get past its limit within dt.
            stop = self.law.stop[i]
            for m, (phi, sign) in enumerate(self._gaps(i)):
                assert stop is not None
                rho = stop.k / (stop.k * self.dt + stop.d)
                far = where(phi > 0.0, phi * (1.0 / self.dt), rho * phi)
                if first:
                    self.on0[i].append(sign * qd + far < 0.0)
                    self.w[i].append(where(self.on0[i][m], 1.0, 0.0))
                elif last:
                    N = -(stop.k * phi + (stop.k * self.dt + stop.d) * (sign * qd))
                    self.w[i][m] = where(N > 0.0, self.w[i][m], 0.0)
                else:
                    on = sign * qd + where(self.on0[i][m], rho * phi, far) < 0.0
                    self.w[i][m] = 0.5 * (self.w[i][m] + where(on, 1.0, 0.0))
            self.rub.append([self._damper(i, k, s, old[i][k] if old else None) for k, s in enumerate(x[i])])
        return self._law()

    def _damper(self, i: int, k: int, qd: Scalar, old: Scalar | None) -> Scalar:
        """The slope of dry friction at the speed qd."""
        f = self.law.friction[i][k]
        if f is None:
            return 0.0
        x, kd = self._bristle(i, k, qd)
        s = sqrt(x * x + SLOWEST * SLOWEST)
        if old is not None:
            s = s + maximum(old * s - f.most, 0.0) * (self.dt / f.inertia)
        return minimum(f.most / s, kd)

    def _bristle(self, i: int, k: int, qd: Scalar) -> tuple[Scalar, Scalar]:
        """(x, kd) of a bristle."""
        f = self.law.friction[i][k]
        assert f is not None
        kd = f.k * self.dt + f.d
        return qd + self.wound[i, k] * (f.k / kd), kd

    def _law(self) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
        slopes: list[list[Scalar]] = []
        rest: list[list[Scalar]] = []
        for i, rub in enumerate(self.rub):
            slope, force = [], []
            for k, c in enumerate(rub):
                b = self.law.damping[i][k]
                slope.append(b + c if not is_zero(c) else b)
                e = self.wound.get((i, k))
                at_rest: Scalar = 0.0
                if e is not None:
                    f = self.law.friction[i][k]
                    assert f is not None
                    at_rest = at_rest - c * e * (f.k / (f.k * self.dt + f.d))
                force.append(at_rest)
            stop = self.law.stop[i]
            if stop is not None:
                for w, (phi, sign) in zip(self.w[i], self._gaps(i), strict=True):
                    slope[0] = slope[0] + w * (stop.k * self.dt + stop.d)
                    force[0] = force[0] - sign * stop.k * w * phi
            slopes.append(slope)
            rest.append(force)
        return slopes, rest

    def forces(self, x: Rows) -> list[tuple[list[Scalar], list[Scalar]]]:
        """(damping and friction, stops) of the linearised law at x, by joint and dof."""
        out = []
        for i in range(self.tree.n + 1):
            rub: list[Scalar] = []
            for k, s in enumerate(x[i]):
                b, c = self.law.damping[i][k], self.rub[i][k]
                force: Scalar = 0.0
                if not is_zero(b):
                    force = force - b * s
                if not is_zero(c):
                    force = force - c * self._bristle(i, k, s)[0]
                rub.append(force)
            stops: list[Scalar] = [0.0] * len(rub)
            stop = self.law.stop[i]
            if stop is not None:
                for w, (phi, sign) in zip(self.w[i], self._gaps(i), strict=True):
                    N = -w * (stop.k * phi + (stop.k * self.dt + stop.d) * (sign * x[i][0]))
                    stops[0] = stops[0] + sign * N
            out.append((rub, stops))
        return out


# ==== energy, momentum and the path of the centre of mass =========================================
# What keeps energy, both momenta and the path of the centre of mass at the end of a step.
#
# The fourth-order step of "rkmk4" is followed by a correction of the size of its local error, that of
# contact/accounts.py where nothing touches. The velocity of the centre of mass G and G itself are put
# where the law of the throw has them, the angular momentum k about G is as it was. This leaves the energy
# about G, which only joint forces change. It is met by one number x, which scales the velocities of the shape
# and turns the whole robot about G against the gyroscopic torque. The first has no effect on a rigid body,
# the second none on a robot that does not tumble: together they follow the gradient of the energy in what k
# leaves free. With a fixed base T is scaled to meet T + V.
#
# Source: projection methods, Hairer, Lubich and Wanner, "Geometric numerical integration", section IV.4;
# kinetic energy about G, dynamics notes eq. 20-22.
# Cost: O(n), the four articulated-body sweeps and about a tenth more than the projection of momentum.

TINY = 1e-30  # added to divisors: nothing beside any energy, more than 0 in single precision, too


@frozen
class Inner:
    """A floating robot seen from its centre of mass G, in world axes."""

    X: Sequence[Any]  # transforms
    mass: Scalar  # [kg]
    com: Vector3  # centre of mass from the base [m]
    u: Vector3  # velocity of G relative to the base's origin [m/s]
    v_com: Vector3  # velocity of G [m/s]
    k: Vector3  # angular momentum about G [N m s]
    I_G: Any  # rotational inertia about G as one rigid body, factorised by ldl
    omega: Vector3  # I_G^-1 k [rad/s]
    T: Scalar  # kinetic energy about G [J]


def conserve(
    step: StepTaken, q1: Rows, v1: Rows, work: Scalar, impulse: Force | None = None
) -> tuple[Rows, Rows]:
    """The state (q1, v1) after a step, by joint, corrected to the run's energy and momenta.

    ``work`` is what joint forces and those from outside gave during the step [J], ``impulse`` that of the
    forces from outside about the centre of mass in world axes [N m s; N s], or None. The ledger takes what
    was missing; ``carried`` has the energy and momentum wanted before the step, and takes those after.
    """
    tree, ledger, carried = step.p.tree, step.ledger, step.carried
    if floats(tree):
        return _floating(step, q1, v1, work, impulse)
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


def _floating(step: StepTaken, q1: Rows, v1: Rows, work: Scalar, impulse: Force | None) -> tuple[Rows, Rows]:
    tree, q, dt, ledger, carried = step.p.tree, step.q, step.dt, step.ledger, step.carried
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

    omega = solve3(I_G, k)
    torque = omega.cross(k)
    direction = solve3(I_G, torque) * (1.0 / (omega.dot(omega) + TINY))
    gain = _inverse(2.0 * T_s + torque.dot(direction), SMALL * target)
    farthest = (LARGEST * dt) ** 2 * omega.dot(omega) / (direction.dot(direction) + TINY)
    x: Scalar = 0.0
    turned = k
    for _ in range(2):
        x = _bounded(x + (target - T_s * (1.0 + 2.0 * x) - 0.5 * turned.dot(omega)) * gain)
        end = sqrt(farthest + TINY)  # which has a slope at 0
        turn = quat_exp(direction * where(x * x > farthest, where(x < 0.0, -end, end), x))
        R = quat_wxyz_to_rotation(turn)
        turned = R.transpose_apply(k)  # the robot stays and the world turns back: I_G is the same
        omega = solve3(I_G, turned)
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
    I_G = factor3(central_inertia(whole, p_G))
    T = _kinetic(tree, V) + rotor_energy(tree, v) - 0.5 * h.lin.dot(u)
    v_G = u + X[1].E.transpose_apply(Vector3(*v[1][3:]))
    return Inner(X, whole.m, p_G, u, v_G, h.ang, I_G, solve3(I_G, h.ang), T)


def kinetic(tree: Tree, X: Sequence[Any], v: Rows) -> Scalar:
    """T [J]."""
    return _kinetic(tree, body_velocities(tree, X, v)) + rotor_energy(tree, v)


def _kinetic(tree: Tree, V: Sequence[Motion]) -> Scalar:
    return 0.5 * added((V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()), 0.0)


def potential(tree: Tree, X: Sequence[Any]) -> Scalar:
    """V [J], 0 where the centre of mass is at the world origin's height."""
    _, h = composite_moment(tree, X)
    return tree.a0.dot(h)


def _inverse(slope: Scalar, noise: Scalar) -> Scalar:
    """1 / slope, and 0 where slope is small beside noise."""
    return 1.0 / (slope + noise * noise / (slope + TINY) + TINY)


def _bounded(x: Scalar) -> Scalar:
    return minimum(maximum(x, -LARGEST), LARGEST)
