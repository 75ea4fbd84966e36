"""A step in three parts, whose kick is iterated to an accuracy: one sweep to begin, further ones, the end.

    begin    drift, and the sweep that foresees: the iterate y, and what the sweeps remember
    again    one sweep more from (y, memory), how much it changed, and whether its forces are possible
    finish   the last sweep from (y, memory), and all that comes after it in a step

Each part computes the geometry of the step's middle afresh, so that only y and a few numbers a point, stop
and actuator go from one to the next. Velocity products are taken at the mean of the velocity before and the
last iterate: in the limit it is the implicit midpoint rule.

Cost: that of a step with one sweep a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.sim.motion import ledger
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.moving_axes import Rows, advance
from robokit.sim.step.drift_kick_drift import finish_step
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled, Sweeps, mean
from robokit.sim.step.step_kernel import Program
from robokit.sim.touching.near_ground import act
from robokit.spatial import Motion
from robokit.spatial.scalars import Scalar, maximum, sqrt

TINY = 1e-300


def memory_size(program: Program) -> int:
    """Numbers that the sweeps remember, at least 1: kernels have no empty inputs."""
    points = sum(len(program.by_body[i]) for i in program.touching)
    stops = sum(s is not None for s in program.joints.stop) * 2  # as many as there can be limits
    each = 3 if program.ground is None or program.ground.restitution is None else 4
    return max(1, each * points + 3 * stops + 2 * len(program.given.drives))


def begin(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> tuple[Rows, list[Scalar]]:
    """The iterate of the first sweep by joint, and the memory."""
    _, sweeps = _middle(p, q, v, tau, dt, carried)
    y, _ = sweeps.sweep("foresee", sweeps.v, sweeps.V_before, sweeps.v)
    return y, _memory(sweeps)


def again(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried, y: Rows, memory: Sequence[Scalar]
) -> tuple[Rows, list[Scalar], list[Scalar]]:
    """(the next iterate by joint, memory, measures) of one sweep more.

    The measures are the largest change of the velocity of a touching body's point, or of a joint at stops,
    with dry friction or limited drives [m/s | rad/s], and the share of the impulse of the ground that pulls
    or lies outside Coulomb's cone (of at least the robot's weight).
    """
    _, sweeps = _middle(p, q, v, tau, dt, carried)
    _recall(sweeps, memory)
    V = body_velocities(p.tree, sweeps.X, y)
    y1, V1 = _further(sweeps, y, V)
    square: Scalar = 0.0
    pressed: Scalar = 0.0
    bad: Scalar = 0.0
    for body in sweeps.contacts:
        change = V1[body.i] - V[body.i]
        far: Scalar = 0.0
        for place in body.p:
            far = maximum(far, place.dot(place))
        lin, ang = change.lin.dot(change.lin), change.ang.dot(change.ang)
        square = maximum(square, 2.0 * (lin + ang * far))  # (a + b)^2 <= 2 (a^2 + b^2)
        acting = act(body.near, body, V1[body.i])
        pressed, bad = pressed + acting.pressed, bad + acting.pulled + acting.outside
    for i in _watched(p):
        for a, b in zip(y1[i], y[i], strict=True):
            square = maximum(square, (a - b) * (a - b))
    mass = sum((p.tree.I[i].m for i in p.tree.outward()), 0.0)
    a0 = p.tree.a0
    share = bad / maximum(maximum(pressed, mass * dt * sqrt(a0.dot(a0))), TINY)
    return y1, _memory(sweeps), [sqrt(square), share]


def finish_kick(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried, y: Rows, memory: Sequence[Scalar]
) -> tuple[Rows, Settled]:
    """(the configuration of the step's middle, what happens there), the last sweep from y."""
    qm, sweeps = _middle(p, q, v, tau, dt, carried)
    _recall(sweeps, memory)
    V = body_velocities(p.tree, sweeps.X, y)
    y1, V1 = _further(sweeps, y, V)
    return qm, sweeps.settled(y1, V1, V)


def _middle(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> tuple[Rows, Sweeps]:
    qm, vm = advance(p.tree, q, v, 0.5 * dt)
    return qm, Sweeps(p, qm, vm, tau, dt, carried, None)


def _further(sweeps: Sweeps, y: Rows, V: Sequence[Motion]) -> tuple[Rows, list[Motion]]:
    return sweeps.sweep("converge", y, V, mean(sweeps.v, y))


def _watched(p: Problem) -> list[int]:
    """Joints whose force may have a kink."""
    joints = p.joints
    found = {i for i, stop in enumerate(joints.stop) if stop is not None}
    found |= {i for i, row in enumerate(joints.friction) if any(f is not None for f in row)}
    return sorted(found | {d.body for d in p.given.layout.drives if d.effort or d.speed})


def _memory(sweeps: Sweeps) -> list[Scalar]:
    out = [x for body in sweeps.contacts for x in body.memory()]
    return [*out, *sweeps.state.memory(), *sweeps.drive.memory()]


def _recall(sweeps: Sweeps, memory: Sequence[Scalar]) -> None:
    rest = iter(memory)
    for body in sweeps.contacts:
        body.recall(sweeps.V_before[body.i], rest)
    sweeps.state.recall(rest)
    sweeps.drive.recall(rest)


# ---- as kernels --------------------------------------------------------------------------------------


class Parts:
    """The three parts as kernels.

    Attributes:
        begin, again, finish: the kernels.
    """

    def __init__(self, program: Program) -> None:
        robot, size = program.robot, memory_size(program)
        held = [("y", (robot.nv,)), ("memory", (size,))]
        given = [("y", robot.nv), ("memory", size)]
        self.begin = program.built("begin_step", _begin_text, [], held)
        self.again = program.built("again_step", _again_text, given, [*held, ("measures", (2,))])
        ends = [("q_next", robot.nq), ("v_next", robot.nv), ("ledger_next", program.entries)]
        ends += [("carried_next", program.layout.size)]
        self.finish = program.built(
            "finish_step", _finish_text, [("ledger", program.entries), *given], [(n, (k,)) for n, k in ends]
        )


def _begin_text(program: Program) -> Any:
    def text(q: Any, v: Any, tau: Any, carried: Any, parameters: Any, *more: Any) -> list[list[Any]]:
        p, state, kept = _problem(program, q, v, tau, carried, parameters, more)
        y, memory = begin(p, *state, parameters[0], kept)
        return [program.robot.join_v(y), _padded(program, memory)]

    return text


def _again_text(program: Program) -> Any:
    def text(
        q: Any, v: Any, tau: Any, y: Any, memory: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        p, state, kept = _problem(program, q, v, tau, carried, parameters, more)
        y1, memory, measures = again(p, *state, parameters[0], kept, program.robot.split_v(y), memory)
        return [program.robot.join_v(y1), _padded(program, memory), measures]

    return text


def _finish_text(program: Program) -> Any:
    def text(
        q: Any, v: Any, tau: Any, entries: Any, y: Any, memory: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        p, state, kept = _problem(program, q, v, tau, carried, parameters, more)
        rows, dt = program.robot.split_v(y), parameters[0]
        qm, done = finish_kick(p, *state, dt, kept, rows, memory)
        sums = ledger.Ledger(entries)
        q1, v1 = finish_step(p, state[0], qm, done, dt, sums, kept)
        return program.outputs(p, state, (q1, v1), tau, sums, kept, parameters)

    return text


def _problem(
    program: Program, q: Any, v: Any, tau: Any, carried: Any, parameters: Any, more: Sequence[Any]
) -> tuple[Problem, tuple[Rows, Rows, Rows], Carried]:
    robot = program.robot
    state = robot.split_q(q), robot.split_v(v), robot.split_tau(tau)
    return program.problem(parameters, more), state, Carried(program.layout, carried)


def _padded(program: Program, memory: Sequence[Scalar]) -> list[Scalar]:
    return [*memory, *[0.0] * (memory_size(program) - len(memory))]
