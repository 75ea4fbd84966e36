"""Wrenches of loop joints: of steps with contact as they acted, of passive motion where each step begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.algorithms.loop_dynamics import loop_dynamics
from robokit.model.constraints import loop_models
from robokit.model.robot import Robot
from robokit.sim.joints.outside import as_list
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.motion.state_facts import state_poses
from robokit.sim.record.notes import Notes, StepInputs
from robokit.sim.step.books import along
from robokit.sim.step.held_forces import held_forces
from robokit.sim.step.integrators import forces_outside
from robokit.sim.step.problem import Problem
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.energies import in_blocks
from robokit.spatial import Force
from robokit.spatial.scalars import Scalar


def loop_forces(
    program: Program,
    dt: float,
    notes: Notes,
    inputs: StepInputs,
    marks: Sequence[int],
) -> dict[str, np.ndarray]:
    """The wrench [N m; N] of each loop joint on its successor in the step after each state, (T, 6) by name.

    Of passive motion; of contact see motion_of_steps.kicks. That of the last state is the one of the step
    that led to it. Axes and origin are those of the joint's frame on its predecessor.

    Args:
        program: the step.
        dt: time step [s].
        notes: of these steps at least.
        inputs: of the steps.
        marks: steps taken until each record.
    """
    robot, loops = program.robot, program.loops
    if loops is None:
        return {}
    steps = np.minimum(marks, max(marks[-1] - 1, 0))
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


def noted_loops(robot: Robot, notes: Notes) -> dict[str, np.ndarray]:
    """The wrench [N m; N] of each loop joint on its successor, in its frame on the predecessor, (S, 6)."""
    R, p = state_poses(robot, notes.arrays["kick"])
    found = {}
    for k, model in enumerate(loop_models(robot)):
        E, r = np.array(model.Xp.E.rows, dtype=float), np.array([*model.Xp.r], dtype=float)
        n, f = notes.arrays["loop"][:, k, :3], notes.arrays["loop"][:, k, 3:]
        n = n + np.cross(p[:, model.s] - p[:, model.p] - R[:, model.p] @ r, f)
        to_P = E @ np.swapaxes(R[:, model.p], 1, 2)
        found[model.name] = np.concatenate([np.einsum("tij,tj->ti", to_P, x) for x in (n, f)], axis=1)
    return found
