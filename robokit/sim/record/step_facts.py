"""What happens in single steps: contacts by link, stops by joint, actuators at their limits.

As in recorded.py, the text of the step runs with NumPy arrays in place of scalars, many steps at once.
Nothing is compiled, and a run that nobody asks costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.short_reprs import short_repr
from robokit.sim.joints.joint_law import pressing
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.record.recorded import in_blocks
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled, settle
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.iterated_steps import iterates, kick_again
from robokit.sim.touching.acting import Acting
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
        force: of the ground on each link that can touch it, world axes, (S, L, 3) [N].
        normal: the part along the ground's normal, (S, L) [N].
        sliding: the part of it on points that slide, (S, L) [N].
        speed: at which these slide at the end of the step, (S, L) [m/s].
        closing: largest speed before the step at which a point that is then pressed approaches, (S, L) [m/s].
        stop: force of the stop of each joint with limits, (S, J) [N m | N].
        rate: the joint's velocity before the step, (S, J) [rad/s | m/s].
        past: how far the joint is above its upper limit, negative below its lower one, (S, J) [rad | m].
        drive: force of each actuator that has a limit, (S, D) [N m | N].
        limited: 1.0 where it is at that limit, (S, D).
        met: impulse of other bodies on each body that can meet one, (S, M) [N s].
        moving: speed of the robot, the root of twice its kinetic energy over its mass, (S,) [m/s].
        v: velocities before the step, (S, nv) [rad/s | m/s].
        q: configurations before the step, (S, nq).
        tau: joint forces of the controller in the step, (S, nv) [N m | N].
    """

    force: np.ndarray
    normal: np.ndarray
    sliding: np.ndarray
    speed: np.ndarray
    closing: np.ndarray
    stop: np.ndarray
    rate: np.ndarray
    past: np.ndarray
    drive: np.ndarray
    limited: np.ndarray
    met: np.ndarray
    moving: np.ndarray
    v: np.ndarray
    q: np.ndarray
    tau: np.ndarray

    __repr__ = short_repr

    @property
    def nbytes(self) -> int:
        """Memory of all of it."""
        return sum(getattr(self, f.name).nbytes for f in fields(self))

    @property
    def load(self) -> np.ndarray:
        """Size of the force of the ground on the whole robot, (S,) [N]."""
        return np.asarray(np.linalg.norm(self.force.sum(axis=1), axis=-1))

    def repeated(self, counts: Sequence[int]) -> StepFacts:
        """Each step so many times, S counts."""
        return StepFacts(*(np.repeat(getattr(self, f.name), counts, axis=0) for f in fields(self)))

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
        if program.newton:
            meeting = tuple(sorted({i for pair in program.touching_bodies for i in pair} - {0}))
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
    widths = [3 * L, L, L, L, L, J, J, J, D, D, M, 1]

    def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p, carry = program.problem(parameters, inputs[: len(given)]), Carried(program.layout, kept)
        middle, done = happening(program, p, *rows, dt, carry, inputs[len(given) :])
        out = _of_links(program, subjects, middle, done)
        stops = {i: stop for i, stop in enumerate(program.joints.stop) if stop is not None}
        out += [pressing(stops[i], rows[0][i][0], done.joint_force[i][1][0]) for _, i in subjects.joints]
        out += [rows[1][i][0] for _, i in subjects.joints]
        out += [past_of(rows[0][i][0], program.joints.stop[i]) for _, i in subjects.joints]
        out += [done.given[i][0] for _, i, _ in subjects.driven]
        out += [done.limited[k] for *_, k in subjects.driven]
        for _, i in subjects.meeting:
            f = None if done.met is None else done.met.impulse.get(i)
            out.append(0.0 if f is None else f.lin.dot(f.lin) ** 0.5)
        mass = sum((p.tree.I[i].m for i in p.tree.outward()), 0.0)
        energy = sum((done.V_before[i].dot(p.tree.I[i] @ done.V_before[i]) for i in p.tree.outward()), 0.0)
        return [*out, (maximum(energy, 0.0) / mass) ** 0.5 if mass else 0.0]

    settled = iterates(program, dt, q, v, tau, carried, given)
    columns = in_blocks(text, sum(widths), q, v, tau, carried, *given, *settled)
    parts = np.split(columns, np.cumsum(widths)[:-1], axis=1)
    parts[0], parts[-1] = parts[0].reshape(len(columns), L, 3), parts[-1][:, 0]
    return StepFacts(*[*parts, v, q, tau])


def happening(
    program: Program,
    p: Problem,
    q: Rows,
    v: Rows,
    tau: Rows,
    dt: Scalar,
    carried: Carried,
    settled: Sequence[Any] = (),
) -> tuple[Rows, Settled]:
    """The configuration in which forces act, and what acts.

    At the middle of the step, or at its start with a method that holds joint forces. ``settled`` is what
    :func:`iterates` found for a ground with an accuracy.
    """
    if program.method.falls:
        return kick_again(program, p, q, v, tau, dt, carried, settled)
    return q, settle(replace(p, ground=None, pairs=None), q, v, tau, dt, carried, 0.5 * dt)


def past_of(q: Any, stop: Any) -> Any:
    """How far a joint is above its upper limit, negative below its lower one."""
    return maximum(q - stop.upper, 0.0) - maximum(stop.lower - q, 0.0)


def _of_links(program: Program, subjects: Subjects, middle: Rows, done: Settled) -> list[Any]:
    """Of each link force, its normal and its sliding part, speed of sliding and of approach."""
    points = program.points
    if points is None:
        return []
    place = {name: k for k, name in enumerate(subjects.links)}
    links = iter([place[points.link[k]] for k in points.order(program.robot.nbodies)])
    normal, sliding, moved, closing = ([0.0] * len(place) for _ in range(4))
    force = [Vector3.zero()] * len(place)
    frames = forward_kinematics(program.robot.tree, middle)
    for acting in done.contacts:
        E = frames[acting.body.i].E
        facts = zip(_of_points(acting, done), acting.point_forces(), strict=True)
        for (N, slides, speed, approach), f in facts:
            k = next(links)
            force[k] = force[k] + E.transpose_apply(f)
            normal[k] = normal[k] + N
            sliding[k] = sliding[k] + where(slides, N, 0.0)
            moved[k] = maximum(moved[k], where(slides, speed, 0.0))
            closing[k] = maximum(closing[k], where(N > 0.0, approach, 0.0))
    return [*(x for f in force for x in f), *normal, *sliding, *moved, *closing]


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
