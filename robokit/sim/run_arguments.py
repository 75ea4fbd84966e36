"""What simulate and rollout make of their arguments, and which of them they refuse."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.dynamics.build import quaternion_offsets
from robokit.dynamics.singular import check_inertia
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.contact_points import ContactPoints
from robokit.sim.ground import Ground
from robokit.sim.recorded import BLOCK, heights, row_heights
from robokit.sim.step.integrators import method
from robokit.sim.step.joint_forces import joint_law
from robokit.sim.step.step_kernel import Program

FALL_DAMPING = 0.1
"""Joint damping in falls where the description gives none [N m s/rad | N s/m]."""

FRAME = 5e-3
"""Time between recorded states by default [s]."""

LARGEST_CONTACT_STEP = 4e-3
"""Longest step with a ground that is not warned of [s]."""

BURIED = 0.1
"""A start with a point deeper than this is a mistake [m]."""


def check_start(robot: Robot, q: np.ndarray, points: ContactPoints, height: float) -> None:
    """Raise ShapeError for a start deep inside the ground: what follows would be an explosion."""
    if not len(points):
        return
    depth = height - (heights(robot, q.tolist(), points.body, points.position) - points.radius)
    k = int(depth.argmax())
    if depth[k] > BURIED:
        remedy = (
            "start from rk.standing_configuration(robot)" if robot.base == "floating" else "start elsewhere"
        )
        raise ShapeError(
            f"q0: a point of link {points.link[k]!r} starts {depth[k]:.3g} m below the ground; {remedy}, or "
            f"lower it with Ground(height={height - depth[k]:.3g})"
        )


def check_starts(robot: Robot, q: np.ndarray, points: ContactPoints, height: float) -> None:
    """The same for each row of q (B, nq); rows that are not finite are skipped."""
    if not len(points):
        return
    if points.position.ndim == 3:  # one set of points a row
        q = np.broadcast_to(q, (len(points.position), q.shape[1]))
    for start in range(0, len(q), BLOCK):
        some = q[start : start + BLOCK]
        position = points.position[start : start + BLOCK] if points.position.ndim == 3 else points.position
        with np.errstate(all="ignore"):
            lowest = row_heights(robot, some, points.body, position) - points.radius
            deep = (height - lowest > BURIED) & np.isfinite(some).all(axis=1)[:, None]
        if deep.any():
            row = int(deep.any(axis=1).argmax())
            try:
                check_start(robot, some[row], points.sample(start + row), height)
            except ShapeError as error:
                raise ShapeError(str(error).replace("q0", f"q0[{start + row}]", 1)) from None


def numbers(what: str, value: Any, n: int) -> np.ndarray:
    """value as n finite numbers."""
    array = real_array(what, value, f"({n},)").copy()
    if array.shape != (n,):
        raise ShapeError(f"{what}: expected shape ({n},), got {array.shape}")
    if not np.isfinite(array).all():
        raise ShapeError(f"{what}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    return array


def states(what: str, value: Any, n: int) -> np.ndarray:
    """value as rows of n numbers, (B, n) or (1, n); what is given for all rows must be finite."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: expected numbers of shape ({n},) or (B, {n})") from None
    if array.ndim == 1:
        return numbers(what, array, n)[None]
    if array.ndim != 2 or array.shape[1] != n or not len(array):
        raise ShapeError(f"{what}: expected shape ({n},) or (B, {n}) with B >= 1, got {array.shape}")
    return array


def check_count(what: str, value: Any, least: int) -> None:
    """Raise ShapeError unless value is None or a whole number of at least ``least``."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    if value is not None and not good:
        raise ShapeError(f"{what}: expected a whole number >= {least}, got {value!r}")


def check_quaternions(robot: Robot, q: np.ndarray) -> None:
    """Raise ShapeError where a quaternion in q, (nq,) or (B, nq), is not unit."""
    for k in quaternion_offsets(robot):
        with np.errstate(all="ignore"):
            norms = np.atleast_1d(np.linalg.norm(q[..., k : k + 4], axis=-1))
            off = np.abs(norms * norms - 1.0) > UNIT_QUATERNION_TOLERANCE
        if off.any():
            row = int(off.argmax())
            place = f"{row}, {k}" if q.ndim == 2 else str(k)
            raise ShapeError(
                f"q0[{place}:{k + 4}] is a quaternion (wxyz) of norm {norms[row]:.6g}; a unit quaternion is "
                "needed: divide it by its norm"
            )


def check_times(duration: Any, dt: Any, record_every: Any, joint_damping: Any) -> None:
    """Raise ShapeError for a duration, step, stride or damping that makes no sense."""
    for what, value, least in (
        ("duration", duration, 0.0),
        ("dt", dt, 0.0),
        ("joint_damping", joint_damping, 0.0),
    ):
        if value is None and what == "joint_damping":
            continue
        good = isinstance(value, int | float | np.number) and math.isfinite(value) and value >= least
        if not good or (what == "dt" and value == 0.0):
            sign = ">" if what == "dt" else ">="
            raise ShapeError(f"{what}: expected a number {sign} 0, got {value!r}")
    if record_every is not None and (not isinstance(record_every, int | np.integer) or record_every < 1):
        raise ShapeError(f"record_every: expected a whole number of steps >= 1, got {record_every!r}")


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
