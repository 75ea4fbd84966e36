"""The forces of damping, dry friction, stops and actuators that a step holds constant.

They are those of an implicit solve at the start of the step, for the velocities y at its end:

    (H + dt b) y = J^T T + dt tau

T are the bodies' momenta with the velocity products of the step (moving_axes.py). Every sweep linearises
the joint forces at the last iterate and solves afresh. However stiff they are, they cannot make the step
unstable.

Cost: O(n) a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

from robokit.model.tree import Tree
from robokit.sim.joints.joint_forces import JointState
from robokit.sim.joints.loop_impulses import LoopKick
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import ImplicitSweep, body_velocities
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.moving_axes import Rows, momenta_after
from robokit.sim.step.problem import Problem
from robokit.spatial import Motion
from robokit.spatial.scalars import Scalar

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
        p: the robot and all that acts on it.
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
