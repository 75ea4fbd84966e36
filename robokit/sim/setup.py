"""What simulate and rollout make of their common arguments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from robokit.dynamics.singular import check_inertia
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.run_arguments import check_times
from robokit.sim.step.integrators import method
from robokit.sim.step.joint_forces import joint_law
from robokit.sim.step.step_kernel import Program

FALL_DAMPING = 0.1
"""Joint damping in falls where the description gives none [N m s/rad | N s/m]."""

FRAME = 5e-3
"""Time between recorded states by default [s]."""

LARGEST_CONTACT_STEP = 4e-3
"""Longest step with a ground that is not warned of [s]."""


def set_up(
    robot: Robot,
    duration: float,
    dt: float,
    ground: Ground | bool | None,
    integrator: str | None,
    record_every: int | None,
    joint_damping: float | None,
    dtype: str = "float64",
    many: bool = False,
) -> tuple[Program, int, int, dict[str, Any]]:
    """The step of a robot, the number of steps, those between two records, and remarks for the summary.

    Warnings point at the caller's caller; for errors see :func:`robokit.simulate`.
    """
    check_times(duration, dt, record_every, joint_damping)
    surface = Ground() if ground is True else (ground or None)
    if surface is not None and not isinstance(surface, Ground):
        raise ShapeError(f"ground: expected rk.Ground(...), True or None, got {ground!r}")
    if surface is not None and surface.rows is not None and not many:
        raise ShapeError(
            f"ground: friction has {surface.rows} coefficients, one a row of rk.rollout; give one number here"
        )
    for link in surface.friction if surface is not None and isinstance(surface.friction, Mapping) else ():
        robot.link(link)  # a misspelt link would get the default coefficient and nobody would know
    name, row = method(integrator, surface is not None)
    if surface is not None and dt > LARGEST_CONTACT_STEP:
        warnings.warn(f"dt = {dt:g} s is long for contact: take 4 ms or less", stacklevel=3)
    if robot.loop_joints:
        warnings.warn(
            f"robot {robot.name!r}: loop joints are not simulated ({robot.loop_joints[0].name!r}, ...)",
            stacklevel=3,
        )
    check_inertia(robot)
    damping = joint_damping if joint_damping is not None else (FALL_DAMPING if surface is not None else 0.0)
    law, defaulted = joint_law(robot, damping)
    program = Program(robot, name, row, law, surface, surface.steps(dt) if surface is not None else 2, dtype)
    said = {"default_damping": damping, "default_damping_joints": len(defaulted)} if defaulted else {}
    return program, max(0, round(duration / dt)), record_every or max(1, round(FRAME / dt)), said
