"""The wrenches of the loop joints in a step."""

from __future__ import annotations

from robokit.algorithms.loop_dynamics import loop_dynamics
from robokit.sim.joints.outside import as_list
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.books import along
from robokit.sim.step.held_forces import held_forces
from robokit.sim.step.integrators import forces_outside
from robokit.sim.step.problem import Problem
from robokit.spatial import Force
from robokit.spatial.scalars import Scalar


def loop_wrenches(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> list[Force]:
    """What each loop joint exerts on its successor, in its frame P on the predecessor, at P's origin.

    It is the wrench at the start of the step.
    """
    if p.loops is None:
        return []
    held = held_forces(p, q, v, tau, dt, carried)
    total = along(along(held.given, 1.0, held.rub), 1.0, held.stops)
    outside, _ = forces_outside(p, q, tau)
    f_ext = None if outside is None else as_list(outside)
    _, forces, system = loop_dynamics(p.tree, p.loops.models, q, v, total, p.loops.proximal, f_ext)
    rest = iter(forces)
    return [loop.wrench([next(rest) for _ in loop.rows]) for loop in system.loops]
