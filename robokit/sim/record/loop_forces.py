"""Wrenches of loop joints: of steps with contact as they acted, of passive motion where each step begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.loop_dynamics import loop_dynamics
from robokit.contact.materials import loop_numbers
from robokit.model.robot import Robot
from robokit.sim.joints.outside import as_list
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.record.notes import Notes, StepInputs
from robokit.sim.step.books import along
from robokit.sim.step.held_forces import held_forces
from robokit.sim.step.integrators import forces_outside
from robokit.sim.step.problem import Problem
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.energies import in_blocks
from robokit.spatial import Force, Transform
from robokit.spatial.scalars import Scalar


def loop_forces(
    program: Program,
    dt: float,
    notes: Notes,
    inputs: StepInputs,
    marks: Sequence[int],
    states: tuple[np.ndarray, np.ndarray],
) -> dict[str, np.ndarray]:
    """The wrench [N m; N] of each loop joint on its successor in the step after each state, (T, 6) by name.

    That of the last state is the one of the step that led to it. Axes and origin are those of the joint's
    frame on its predecessor.

    Args:
        program: the step.
        dt: time step [s].
        notes: of these steps at least.
        inputs: of the steps.
        marks: steps taken until each record.
        states: q and v of the records, (T, ...).
    """
    robot, loops = program.robot, program.loops
    if loops is None:
        return {}
    steps = np.minimum(marks, max(marks[-1] - 1, 0))
    if program.contact:
        before, after = (notes.with_end(states[0][-1], states[1][-1], at)[0] for at in (steps, steps + 1))
        each = _as_acted(robot, notes.arrays["loop"][notes.last(steps)], before, after)
        return {model.name: each[:, k] for k, model in enumerate(loops.models)}
    tau, given = inputs.rows(steps)
    q, v, carried = (notes.arrays[name][notes.first(steps)] for name in ("q", "v", "carried"))
    parameters = [float(x) for x in program.parameters(dt)]

    def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p = program.problem(parameters, inputs)
        found = _wrenches(p, *rows, dt, Carried(program.layout, kept))
        return [x for wrench in found for x in wrench]

    both = in_blocks(text, 6 * len(loops.models), q, v, tau, carried, *given)
    return {model.name: both[:, 6 * k : 6 * k + 6] for k, model in enumerate(loops.models)}


def _wrenches(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> list[Force]:
    """What each loop joint exerts on its successor, in its frame P on the predecessor, at P's origin.

    It is the wrench at the start of the step.
    """
    assert p.loops is not None
    held = held_forces(p, q, v, tau, dt, carried)
    total = along(along(held.given, 1.0, held.rub), 1.0, held.stops)
    outside, _ = forces_outside(p, q, tau)
    f_ext = None if outside is None else as_list(outside)
    _, forces, system = loop_dynamics(p.tree, p.loops.models, q, v, total, p.loops.proximal, f_ext)
    rest = iter(forces)
    return [loop.wrench([next(rest) for _ in loop.rows]) for loop in system.loops]


def _as_acted(robot: Robot, forces: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The wrench [N m; N] of each loop on its successor, in its frame P on its predecessor, (T, L, 6).

    Args:
        robot: the robot.
        forces: of the rows of loops in steps, (T, L, 6).
        before, after: configurations before and after these, (T, nq).
    """
    numbers = loop_numbers(robot)
    axes = numbers["loop_axes"].reshape(-1, 3, 3)
    g = forces
    turn = np.einsum("tlm,lmk->tlk", g[..., :3], axes)
    push = np.einsum("tlm,lmk->tlk", g[..., 3:] * numbers["loop_holds"], axes)
    # A thread turns as it pushes.
    thread = (g[..., 5] * numbers["loop_pitch"])[..., None] * axes[:, 2]
    arm = 0.5 * (_apart(robot, before) + _apart(robot, after))
    rods, crosses = numbers["loop_length"] > 0.0, numbers["loop_turns"] == 1
    along = arm / np.maximum(np.linalg.norm(arm, axis=-1, keepdims=True), 1e-300)
    push[:, rods] = (g[..., 3, None] * along)[:, rods]
    if crosses.any():  # a moment about what is perpendicular to both axes
        second = np.einsum("tlij,lj->tli", _turned(robot, after), axes[:, 0])
        turn[:, crosses] = (g[..., 0, None] * np.cross(second, axes[:, 2]))[:, crosses]
    return np.concatenate([turn + np.cross(arm, push) - thread, push], axis=-1)


def _apart(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Origin of each loop's frame S in axes of P, from that of P, in configurations (T, nq): (T, L, 3)."""
    X0, numbers = forward_kinematics(robot.tree, robot.split_q(list(q.T))), loop_numbers(robot)
    found = np.zeros((len(q), len(numbers["loop_bodies"]), 3))
    of_loops = zip(numbers["loop_bodies"].tolist(), numbers["loop_placement"], strict=True)
    for k, (bodies, places) in enumerate(of_loops):
        ends = zip(bodies, places, strict=True)
        (P, p), (_, s) = (_frame(X0[b] if b else None, place, len(q)) for b, place in ends)
        found[:, k] = np.einsum("tij,ti->tj", P, s - p)
    return found


def _turned(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Axes of each loop's frame S in those of P, (T, L, 3, 3)."""
    X0, numbers = forward_kinematics(robot.tree, robot.split_q(list(q.T))), loop_numbers(robot)
    found = np.zeros((len(q), len(numbers["loop_bodies"]), 3, 3))
    of_loops = zip(numbers["loop_bodies"].tolist(), numbers["loop_placement"], strict=True)
    for k, (bodies, places) in enumerate(of_loops):
        ends = zip(bodies, places, strict=True)
        (P, _), (S, _) = (_frame(X0[b] if b else None, place, len(q)) for b, place in ends)
        found[:, k] = np.einsum("tij,tik->tjk", P, S)
    return found


def _frame(X: Transform | None, place: np.ndarray, T: int) -> tuple[np.ndarray, np.ndarray]:
    """Axes (T, 3, 3) and origin (T, 3) in the world of a frame on a body."""
    R, r = np.broadcast_to(np.eye(3), (T, 3, 3)), np.zeros((T, 3))
    if X is not None:
        E = [np.broadcast_to(x, T) for row in X.E.rows for x in row]
        R = np.stack(E, axis=-1).reshape(T, 3, 3).swapaxes(1, 2)
        r = np.stack([np.broadcast_to(x, T) for x in X.r], axis=-1)
    return R @ place[:9].reshape(3, 3), r + R @ place[9:]
