"""Configurations to start from: a robot just above the ground."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.contact_points import contact_points
from robokit.sim.recorded import heights

SHAKE = 0.02
"""Standard deviation of the random change of every joint [rad | m] and of the tilt [rad]."""


def standing_height(robot: Robot, q: Any = None, clearance: float = 0.0, ground_height: float = 0.0) -> float:
    """Height of a floating base at which the lowest contact point is ``clearance`` above the ground.

    Args:
        robot: a robot with a floating base.
        q: configuration, (nq,), of which the base's own height does not matter; neutral by default.
        clearance: gap under the lowest point [m].
        ground_height: of the ground in the world [m].

    Returns:
        z of the base in the world [m].

    Raises:
        ShapeError: a fixed base, or q of a wrong shape.
    """
    q = _floating(robot, q)
    points = contact_points(robot)
    if not len(points):
        return ground_height + clearance
    lowest = float((heights(robot, q.tolist(), points.body, points.position) - points.radius).min())
    return float(q[6]) - lowest + clearance + ground_height


def standing_configuration(
    robot: Robot,
    height: float = 0.0,
    tilt: float | Sequence[float] = 0.0,
    seed: int | None = None,
    q: Any = None,
    ground_height: float = 0.0,
) -> np.ndarray:
    """A configuration above the ground, to be let go.

    Args:
        robot: a robot with a floating base.
        height: gap between the ground and the lowest contact point [m].
        tilt: angle by which the robot leans forward, about its y axis [rad], or a unit quaternion wxyz
            that turns the whole robot.
        seed: seed of a small random change of joints and tilt, so that no two falls are alike; None for
            none.
        q: configuration to start from, (nq,); neutral by default.
        ground_height: of the ground in the world [m].

    Returns:
        q, (nq,).

    Raises:
        ShapeError: a fixed base, or q or tilt of a wrong shape.
    """
    q = _floating(robot, q)
    dv = np.zeros(robot.nv)
    if seed is not None:
        dv = np.random.default_rng(seed).normal(0.0, SHAKE, robot.nv)
        dv[3:6] = 0.0
    q = robot.integrate(q, dv)
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start == 1:
            k = joint.q_slice.start
            q[k] = min(max(q[k], joint.lower), joint.upper)
    turn = np.array(_quaternion(tilt))
    w, x, y, z = turn
    a, b, c, d = q[:4]
    q[:4] = (
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    )
    q[:4] /= np.linalg.norm(q[:4])
    q[6] = standing_height(robot, q, height, ground_height)
    return q


def _quaternion(tilt: float | Sequence[float]) -> tuple[float, ...]:
    if isinstance(tilt, int | float):
        return (math.cos(0.5 * tilt), 0.0, math.sin(0.5 * tilt), 0.0)
    quat = np.asarray(tilt, dtype=float)
    if quat.shape != (4,) or abs(float(quat @ quat) - 1.0) > 1e-6:
        raise ShapeError(f"tilt: expected an angle [rad] or a unit quaternion wxyz, got {tilt!r}")
    return tuple(quat.tolist())


def _floating(robot: Robot, q: Any) -> np.ndarray:
    if robot.base != "floating":
        raise ShapeError(
            f"robot {robot.name!r} has a fixed base and cannot stand; load it with base='floating'"
        )
    if q is None:
        return robot.neutral()
    array = np.array(q, dtype=float)
    if array.shape != (robot.nq,):
        raise ShapeError(f"q: expected shape ({robot.nq},), got {array.shape}")
    return array
