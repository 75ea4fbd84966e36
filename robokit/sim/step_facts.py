"""What happens in single steps: contacts by link, stops by joint, actuators at their limits.

As in recorded.py, the text of the step runs with NumPy arrays in place of scalars, many steps at once.
Nothing is compiled, and a run that nobody asks costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robokit.sim.iterated_steps import iterates, kick_again
from robokit.sim.recorded import in_blocks
from robokit.sim.step.acting import Acting
from robokit.sim.step.carried import Carried
from robokit.sim.step.moving_axes import Rows
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled, settle
from robokit.sim.step.step_kernel import Program
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, maximum, where

SLIDING = 1e-3
"""Speed over the ground from which a point slides [m/s]."""

CONE = 0.9
"""Share of Coulomb's limit from which it does."""


@dataclass
class StepFacts:
    """Facts of S steps.

    Attributes:
        normal: force of the ground along its normal on each link that can touch it, (S, L) [N].
        sliding: the part of it on points that slide, (S, L) [N].
        speed: at which these slide at the end of the step, (S, L) [m/s].
        closing: largest speed before the step at which a point that is then pressed approaches, (S, L) [m/s].
        stop: force of the stop of each joint with limits, (S, J) [N m | N].
        rate: the joint's velocity before the step, (S, J) [rad/s | m/s].
        drive: force of each actuator that has a limit, (S, D) [N m | N].
        limited: 1.0 where it is at that limit, (S, D).
        met: impulse of other bodies on each body that can meet one, (S, M) [N s].
        force: of the ground on each link that can touch it, world axes, (S, L, 3) [N]: the impulse of the
            step over the step.
        v: velocities before the step, (S, nv) [rad/s | m/s].
        moving: speed of the robot, the root of twice its kinetic energy over its mass, (S,) [m/s].
    """

    normal: np.ndarray
    sliding: np.ndarray
    speed: np.ndarray
    closing: np.ndarray
    stop: np.ndarray
    rate: np.ndarray
    drive: np.ndarray
    limited: np.ndarray
    met: np.ndarray
    force: np.ndarray
    v: np.ndarray
    moving: np.ndarray

    @staticmethod
    def joined(parts: Sequence[StepFacts]) -> StepFacts:
        """Several in a row as one."""
        names = [f.name for f in fields(StepFacts)]
        return StepFacts(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Subjects:
    """Whom the columns of the facts are about.

    Attributes:
        links: that can touch the ground.
        joints: with limits; their names and bodies.
        driven: actuators with limits; the names of their joints, their bodies, and places among the drives.
        meeting: bodies that can meet others; names of their links, and bodies.
    """

    links: tuple[str, ...]
    joints: tuple[tuple[str, int], ...]
    driven: tuple[tuple[str, int, int], ...]
    meeting: tuple[tuple[str, int], ...]

    @staticmethod
    def of(program: Program) -> Subjects:
        """Those of a program."""
        robot, points = program.robot, program.points
        names = {joint.body: joint.name for joint in robot.body_joints}
        joints = [(names[i], i) for i, stop in enumerate(program.joints.stop) if stop is not None]
        driven = [
            (names[d.body], d.body, k)
            for k, d in enumerate(program.given.drives)
            if d.effort or d.speed
        ]  # fmt: skip
        meeting = () if program.shapes is None else program.shapes.bodies
        return Subjects(
            () if points is None else tuple(dict.fromkeys(points.link)),
            tuple(joints),
            tuple(driven),
            tuple((robot.body_name(i), i) for i in meeting),
        )


def step_facts(
    program: Program,
    dt: float,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    carried: np.ndarray,
    *given: np.ndarray,
) -> StepFacts:
    """The facts of the steps from S states.

    Args:
        program: the step.
        dt: time step [s].
        q, v, tau: states and joint forces, (S, ...).
        carried: what the steps are handed besides, (S, C).
        given: their inputs from actuators and pushes, (S, ...) each.
    """
    robot, subjects = program.robot, Subjects.of(program)
    parameters = [float(x) for x in program.parameters(dt)]
    L, J, D, M = (len(x) for x in (subjects.links, subjects.joints, subjects.driven, subjects.meeting))
    widths = [L, L, L, L, J, J, D, D, M, 3 * L, 1]

    def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p, carry = program.problem(parameters, inputs[: len(given)]), Carried(program.layout, kept)
        done = happening(program, p, *rows, dt, carry, inputs[len(given) :])
        out = _of_links(program, subjects, done)
        out += [done.joint_force[i][1][0] for _, i in subjects.joints]
        out += [rows[1][i][0] for _, i in subjects.joints]
        out += [done.given[i][0] for _, i, _ in subjects.driven]
        out += [done.limited[k] for *_, k in subjects.driven]
        for _, i in subjects.meeting:
            f = None if done.met is None else done.met.impulse.get(i)
            out.append(0.0 if f is None else f.lin.dot(f.lin) ** 0.5)
        out += _forces(program, subjects, p, done)
        mass = sum((p.tree.I[i].m for i in p.tree.outward()), 0.0)
        energy = sum((done.V_before[i].dot(p.tree.I[i] @ done.V_before[i]) for i in p.tree.outward()), 0.0)
        out.append((maximum(energy, 0.0) / mass) ** 0.5 if mass else 0.0)
        return out

    settled = iterates(program, dt, q, v, tau, carried, given)
    columns = in_blocks(text, sum(widths), q, v, tau, carried, *given, *settled)
    *parts, force, moving = np.split(columns, np.cumsum(widths)[:-1], axis=1)
    return StepFacts(*parts, force.reshape(len(q), L, 3), v, moving[:, 0])


def happening(
    program: Program,
    p: Problem,
    q: Rows,
    v: Rows,
    tau: Rows,
    dt: Scalar,
    carried: Carried,
    settled: Sequence[Any] = (),
) -> Settled:
    """What acts in a step: at its middle, or at its start with a method that holds joint forces.

    ``settled`` is what :func:`iterates` found for a ground with an accuracy.
    """
    if program.method.falls:
        return kick_again(program, p, q, v, tau, dt, carried, settled)[1]
    return settle(replace(p, ground=None, pairs=None), q, v, tau, dt, carried, 0.5 * dt)


def _of_links(program: Program, subjects: Subjects, done: Settled) -> list[Any]:
    """Normal force, its sliding part, speed of sliding and of approach, each by link."""
    points = program.points
    if points is None:
        return []
    place = {name: k for k, name in enumerate(subjects.links)}
    links = iter([place[points.link[k]] for k in points.order(program.robot.nbodies)])
    normal, sliding, moved, closing = ([0.0] * len(place) for _ in range(4))
    for acting in done.contacts:
        for N, slides, speed, approach in _of_points(acting, done):
            k = next(links)
            normal[k] = normal[k] + N
            sliding[k] = sliding[k] + where(slides, N, 0.0)
            moved[k] = maximum(moved[k], where(slides, speed, 0.0))
            closing[k] = maximum(closing[k], where(N > 0.0, approach, 0.0))
    return [*normal, *sliding, *moved, *closing]


def _forces(program: Program, subjects: Subjects, p: Problem, done: Settled) -> list[Any]:
    """Force of the ground on each link, world axes: x, y, z of the first, then of the next."""
    points = program.points
    if points is None:
        return []
    place = {name: k for k, name in enumerate(subjects.links)}
    links = iter([place[points.link[k]] for k in points.order(program.robot.nbodies)])
    total = [Vector3.zero() for _ in place]
    turned = _rotations(p, done)
    for acting in done.contacts:
        E = turned[acting.body.i]
        for f in acting.point_forces():
            k = next(links)
            total[k] = total[k] + (f if E is None else E.transpose_apply(f))
    return [x for f in total for x in f]


def _rotations(p: Problem, done: Settled) -> list[Any]:
    """From world axes to those of each body in the step's pose; None for the world itself."""
    E: list[Any] = [None]
    for i in p.tree.outward():
        X, above = done.X[i], E[p.tree.parent[i]]
        assert X is not None
        E.append(X.E if above is None else X.E @ above)
    return E


def _of_points(acting: Acting, done: Settled) -> list[tuple[Any, Any, Any, Any]]:
    """(normal force, whether it slides, how fast, speed of approach before) of each point."""
    body = acting.body
    before, after = body.speeds(done.V_before[body.i]), body.speeds(done.V[body.i])
    out = []
    for m, (N, x, y) in enumerate(acting.forces):
        N = maximum(N, 0.0)
        limit = CONE * body.mu_at(m) * N
        slides = (x * x + y * y >= limit * limit) & (after[m][1] > SLIDING) & (N > 0.0)
        out.append((N, slides, after[m][1], -before[m][0]))
    return out
