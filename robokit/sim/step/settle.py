"""The kick of a time step: velocities at its end, for contacts, limits, damping and friction together.

    (H + J^T K J + dt b) y = J^T T + dt tau

T are the bodies' momenta with the velocity products of the step (moving_axes.py). Every sweep linearises
contacts and joint forces at the last iterate and solves afresh, so that nothing accumulates:

    sweep 1    at the velocities v before, products at v
    sweep 2    at the result y1 of sweep 1, products at (v + y1) / 2

A sweep of two or more makes free motion second order and takes the energy out of gyroscopic terms. The last
solve takes the contact forces as given, cut to what a ground can do, so that those forces are what acts.

Source: 7-contact of this project's notes, steps 2 to 7.
Cost: O(n) a sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.sim.step.carried import Carried
from robokit.sim.step.contact import Acting, BodyContact, ground_axes
from robokit.sim.step.implicit_sweep import ImplicitSweep, body_velocities
from robokit.sim.step.joint_forces import JointState
from robokit.sim.step.loop_impulses import LoopKick
from robokit.sim.step.moving_axes import Rows, momenta_after
from robokit.sim.step.problem import Problem
from robokit.spatial import Force, Motion, Transform
from robokit.spatial.scalars import Scalar, maximum, sqrt


@dataclass
class Settled:
    """Outcome of :func:`settle`.

    Attributes:
        X: transforms of the pose.
        before, y: velocities before and after, by joint.
        V_before, V: the same of the bodies, body coordinates.
        contacts: what acts on each touching body.
        joint_force: (damping and friction, limits) of each joint, by dof [N m | N].
        residual: largest change of a touching body's velocity in the last sweep [m/s].
        loops: what holds the loop joints closed, or None.
    """

    X: Sequence[Transform | None]
    before: Rows
    y: list[list[Scalar]]
    V_before: list[Motion]
    V: list[Motion]
    contacts: list[Acting]
    joint_force: list[tuple[list[Scalar], list[Scalar]]]
    residual: Scalar
    loops: LoopKick | None


def settle(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> Settled:
    """Velocities at the end of a kick at the pose q, from v before it."""
    tree = p.tree
    X = tree.transforms(q)
    V_before = body_velocities(tree, X, v)
    P = [tree.I[i] @ V_before[i] for i in range(tree.n + 1)]
    contacts = touching_bodies(p, X, V_before, dt, carried)
    state = JointState(tree, p.joints, q, v, dt, carried)
    loops = None if p.loops is None else LoopKick(p.loops, tree, X)

    def solve(K: Any, b: Any, T: Any, tau: Any, v: Rows | None) -> tuple[Rows, list[Motion]]:
        """With the loops' impulses; v is None for a change of y."""
        sweep = ImplicitSweep(tree, X, K, b, dt, factor=loops is None)
        return sweep.solve(T, tau) if loops is None else loops.solve(sweep, T, tau, v)

    y, V = v, V_before
    before = V
    for k in range(p.sweeps):
        w, W = (v, V_before) if k == 0 else (_mean(v, y), _mean_motions(V_before, V))
        T = momenta_after(tree, X, P, w, W, dt)
        K: list[Any] = [None] * (tree.n + 1)
        for body in contacts:
            i = body.i
            (body.look_again if k else body.foresee)(V[i])
            K[i], impulse = body.linear()
            T[i] = T[i] + impulse
        b, rest = state.linearise(y)
        tau_now = [[s + t for s, t in zip(r, row, strict=True)] for r, row in zip(rest, tau, strict=True)]
        before = V
        y, V = solve(K, b, T, tau_now, v)

    residual: Scalar = 0.0
    for body in contacts:
        change = (V[body.i] - before[body.i]).lin
        residual = maximum(residual, change.dot(change))
    acting = [body.act(V[body.i]) for body in contacts]
    if contacts:
        cut = [Force.zero()] * (tree.n + 1)
        for done in acting:
            cut[done.body.i] = done.change
        b, rest = state.keep(y)
        change_y, change_V = solve([None] * (tree.n + 1), b, cut, rest, None)
        y = [[s + t for s, t in zip(a, c, strict=True)] for a, c in zip(y, change_y, strict=True)]
        V = [a + c for a, c in zip(V, change_V, strict=True)]
    return Settled(
        X, v, [list(row) for row in y], V_before, V, acting, state.forces(y), sqrt(residual), loops
    )


def touching_bodies(
    p: Problem, X: Sequence[Transform | None], V: Sequence[Motion], dt: Scalar, carried: Carried
) -> list[BodyContact]:
    """The bodies with contact points, their bristles bent by the last step."""
    if p.ground is None:
        return []
    axes = ground_axes(p.tree, X, p.ground.height)
    falling = max(p.tree.a0.z, 0.0) * dt
    bodies = [i for i in p.tree.outward() if p.points[i]]
    out, at = [], 0
    for i, mu, mass in zip(bodies, p.ground.mu, p.ground.mass, strict=True):
        body = BodyContact(i, p.points[i], axes[i], mu, mass, p.ground, dt, falling)
        if p.ground.slip is None:
            n = len(p.points[i])
            body.hold(V[i], carried.anchors[at : at + n])
            carried.anchors[at : at + n] = body.anchors
            at += n
        out.append(body)
    return out


def _mean(a: Rows, b: Rows) -> Rows:
    return [[0.5 * (s + t) for s, t in zip(x, y, strict=True)] for x, y in zip(a, b, strict=True)]


def _mean_motions(A: Sequence[Motion], B: Sequence[Motion]) -> list[Motion]:
    return [(a + b) * 0.5 for a, b in zip(A, B, strict=True)]
