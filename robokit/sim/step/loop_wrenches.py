"""The wrenches of the loop joints in a step."""

from __future__ import annotations

from robokit.algorithms.loop_dynamics import loop_dynamics
from robokit.sim.joints.outside import as_list
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.books import along
from robokit.sim.step.drift_kick_drift import drift_kick_drift, kick
from robokit.sim.step.integrators import forces_outside, held_forces
from robokit.sim.step.problem import Problem, Step
from robokit.spatial import Force
from robokit.spatial.scalars import Scalar


def loop_wrenches(
    step: Step, p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried
) -> list[Force]:
    """What each loop joint exerts on its successor, in its frame P on the predecessor, at P's origin.

    It is the mean over the step of a method that drifts and kicks, and otherwise the wrench at its start.
    """
    if p.loops is None:
        return []
    if step is drift_kick_drift:
        _, done = kick(p, q, v, tau, dt, carried)
        assert done.loops is not None
        loops, forces = done.loops.loops, [x * (1.0 / dt) for x in done.loops.impulses]
    else:
        given, rub, stops = held_forces(p, q, v, tau, dt, carried)
        total = along(along(given, 1.0, rub), 1.0, stops)
        outside, _ = forces_outside(p, q, tau)
        f_ext = None if outside is None else as_list(outside)
        _, forces, system = loop_dynamics(p.tree, p.loops.models, q, v, total, p.loops.proximal, f_ext)
        loops = [*system.loops]
    rest = iter(forces)
    return [loop.wrench([next(rest) for _ in loop.rows]) for loop in loops]
