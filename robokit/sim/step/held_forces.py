"""What a step of passive motion needs besides the state, and the forces that it holds constant.

Damping, dry friction, stops and actuators are those of an implicit solve at the start of the step, for the
velocities y at its end:

    (H + dt b) y = J^T T + dt tau

T are the bodies' momenta with the velocity products of the step (moving_axes.py). Every sweep linearises
the joint forces at the last iterate and solves afresh. However stiff they are, they cannot make the step
unstable.

Cost: O(n) a sweep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.joints.joint_law import JointLaw
from robokit.sim.joints.loop_impulses import LoopKick, LoopLaw
from robokit.sim.joints.step_inputs import Given
from robokit.sim.motion.implicit_sweep import ImplicitSweep, body_velocities
from robokit.sim.motion.ledger import Carried, Ledger
from robokit.sim.motion.moving_axes import Rows, momenta_after
from robokit.spatial import Motion
from robokit.spatial.scalars import Scalar, clamp, is_zero, maximum, minimum, sqrt, where


@dataclass(frozen=True)
class Problem:
    """A robot and all that acts on it.

    Attributes:
        tree: the tree.
        joints: damping, friction and limits.
        loops: the loop joints, or None.
        given: actuators and forces from outside.
    """

    tree: Tree
    joints: JointLaw
    loops: LoopLaw | None = None
    given: Given = field(default_factory=Given)


Step = Callable[[Problem, Rows, Rows, Rows, Scalar, Ledger, Carried], tuple[Rows, Rows]]
"""(problem, q, v, tau, dt, ledger, carried) -> (q, v), all by joint."""


# ---- forces that a step holds -----------------------------------------------------------------------------


SWEEPS = 3
"""Solves. In the last one stops that pull are let go."""


@dataclass
class Held:
    """Forces that a step holds.

    Attributes:
        given: given joint forces and those of actuators, by joint [N m | N].
        rub: damping and friction, by joint.
        stops: of limits, by joint.
        limited: 1.0 for each actuator at a limit, else 0.0.
        V: velocities of the bodies at the start, body coordinates; None where no solve was needed.
    """

    given: Rows
    rub: Rows
    stops: Rows
    limited: list[Scalar]
    V: list[Motion] | None = None


def held_forces(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried, ledger: Ledger | None = None
) -> Held:
    """Those of a step from the state (q, v), entered into the ledger as the step's.

    Args:
        q, v, tau: state and joint forces, by joint.
        dt: step [s].
        carried: what the step before has handed on.
        ledger: of the step, or None.
    """
    if not p.joints.active and not p.given.layout.drives:
        zero = [[0.0] * len(row) for row in v]
        return Held(p.given.joint_forces(tau), zero, zero, [])
    found = _solved(p, q, v, tau, dt, carried)
    if ledger is not None:
        ledger.held = found
        p.given.enter_drives(ledger, found.given, found.limited, dt)
    return found


def _solved(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> Held:
    tree = p.tree
    X = tree.transforms(q)
    V = body_velocities(tree, X, v)
    P = [tree.I[i] @ V[i] for i in range(tree.n + 1)]
    state = JointState(tree, p.joints, q, v, dt, carried)
    drive = p.given.drive(q, v, tau, dt, 0.5 * dt)
    spin, outside = rotor_momenta(tree, v, dt), p.given.outside(tree, X, tau)
    loops = None if p.loops is None else LoopKick(p.loops, tree, q, X)
    y: Rows = v
    w: Rows = v
    for k in range(SWEEPS):
        before = y
        T = momenta_after(tree, X, P, w, dt)
        T = [t if f is None else t + f * dt for t, f in zip(T, outside, strict=True)]
        b, rest = state.linearise(y, last=k == SWEEPS - 1)
        slopes, given = drive.linearise(y)
        sweep = ImplicitSweep(tree, X, [None] * (tree.n + 1), _sum(b, slopes), dt)
        forces = _sum(_sum(rest, given), spin)
        y, _ = sweep.solve(T, forces) if loops is None else loops.solve(sweep, T, forces, v)
        w = mean(v, mean(before, y) if k else y)
    rub, stops = (list(rows) for rows in zip(*state.forces(y), strict=True))
    return Held(drive.forces(y), rub, stops, list(drive.limited), V)


def rotor_momenta(tree: Tree, v: Rows, dt: Scalar) -> Rows:
    """What the rotors' momenta before a step add to the joint forces that act during it, by joint."""
    if not tree.armature:
        return [[0.0] * len(row) for row in v]
    return [
        [a * s * (1.0 / dt) if a else 0.0 for a, s in zip(row, rates, strict=True)]
        for row, rates in zip(tree.armature, v, strict=True)
    ]


def _sum(a: Rows, b: Rows) -> Rows:
    return [[s + t for s, t in zip(x, y, strict=True)] for x, y in zip(a, b, strict=True)]


def mean(a: Rows, b: Rows) -> Rows:
    """The mean of velocities, by joint."""
    return [[0.5 * (s + t) for s, t in zip(x, y, strict=True)] for x, y in zip(a, b, strict=True)]


# ---- damping, dry friction and limits ----------------------------------------------------------------------
#     tau = -damping qd + friction + stop
#
# Dry friction is a bristle: -min(kd, f / |x|) x with x = qd + r e, where e is how
# far it is wound, at most f / k. A joint that sticks is held by a spring and does not creep. A stop is a
# contact in one dimension: max(0, -k phi - d phi') where phi is the distance left to the limit.


SLOWEST = 1e-9
"""Speed below which a bristle's friction has no direction [rad/s | m/s]."""


class JointState:
    """The passive joint forces of one step, linearised at the last iterate of the solve."""

    def __init__(self, tree: Tree, law: JointLaw, q: Rows, v: Rows, dt: Scalar, carried: Carried) -> None:
        self.tree, self.law, self.q, self.dt = tree, law, q, dt
        self.w: list[list[Scalar]] = []
        self.on0: list[list[Any]] = []
        self.rub: list[list[Scalar]] = []
        self.wound: dict[tuple[int, int], Scalar] = {}
        for (i, k), e in carried.wound.items():
            self._wind(i, k, e, v[i][k])
        carried.wound = dict(self.wound)

    def _wind(self, i: int, k: int, e: Scalar, qd: Scalar) -> None:
        """Wind a bristle by what the joint has moved in the last step."""
        f = self.law.friction[i][k]
        assert f is not None
        most = f.most / f.k
        self.wound[i, k] = clamp(e + self.dt * qd, -most, most)

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

        Returns:
            slope b and force at rest of the linearised law, tau = force - b qd, by joint and dof.
        """
        first = not self.w
        if first:
            self.w = [[] for _ in range(self.tree.n + 1)]
            self.on0 = [[] for _ in range(self.tree.n + 1)]
        old = self.rub
        self.rub = []
        for i in range(self.tree.n + 1):
            self._stops(i, x[i][0] if len(x[i]) else 0.0, first, last)
            self.rub.append([self._damper(i, k, s, old[i][k] if old else None) for k, s in enumerate(x[i])])
        return self._law()

    def _stops(self, i: int, qd: Scalar, first: bool, last: bool) -> None:
        """Which stops of joint i act, a share from 0 to 1 that the sweeps settle.

        At first those where the joint would get past its limit within dt.
        """
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
