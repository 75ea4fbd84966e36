"""Size of what can touch the ground: the softness of the ground follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.model.robot import Robot
from robokit.sim.shapes.contact_points import ContactPoints
from robokit.sim.shapes.contact_shapes import ContactShape, Facing, Lowest, Point, Rim
from robokit.spatial import Vector3

STEADY = 25.0
"""Thin bodies are taken as smaller by STEADY (thickness / size)^2, and by STEADY at most."""


def extent(robot: Robot, points: ContactPoints) -> Any:
    """Half the longest edge of a box around the points in the neutral configuration [m]; 0 of none.

    Of a robot that is one thin body, less: STEADY thickness^2 over it, but no less than a twenty-fifth: it
    may stand on its edge, and on a ground that gives way by more than thickness^2 / (2 height) it would tip.

    (B,) where points move with the inertias of a robot with samples.
    """
    if not len(points):
        return 0.0
    X0 = forward_kinematics(robot.tree, robot.split_q(robot.neutral().tolist()))
    low, high, lowest, highest = [], [], [], []
    for m, (i, shape) in enumerate(zip(points.body, points.shape, strict=True)):
        moved = np.moveaxis(points.position[..., m, :], -1, 0) if points.of_inertia[m] else None
        for center, radius in _balls(shape):
            place: Any = center if moved is None else moved
            at = np.stack(np.broadcast_arrays(*X0[i].point(Vector3(*place))))
            low.append(at - radius)
            high.append(at + radius)
            wide = _widths(shape, radius).reshape(3, *(1,) * (np.ndim(moved) - 1 if moved is not None else 0))
            at = np.stack(np.broadcast_arrays(*place))
            lowest.append(at - wide)
            highest.append(at + wide)
    half = 0.5 * _edges(low, high).max(axis=0)
    if robot.nbodies == 1:
        thin = _edges(lowest, highest).min(axis=0)
        half = np.minimum(half, np.maximum(STEADY * thin**2 / np.maximum(half, 1e-12), half / STEADY))
    return half if half.ndim else float(half)


def _edges(low: Sequence[Any], high: Sequence[Any]) -> Any:
    """Of a box around boxes, (3,) or (3, B) [m]."""
    return np.max(np.broadcast_arrays(*high), axis=0) - np.min(np.broadcast_arrays(*low), axis=0)


def _widths(shape: ContactShape, radius: float) -> np.ndarray:
    """How far the surface around one place of a point reaches along the body's axes, (3,) [m]."""
    if not isinstance(shape, Rim):
        return np.full(3, radius)
    a = np.abs(np.array(shape.axis))
    return np.asarray(shape.radius * np.sqrt(np.maximum(1.0 - a * a, 0.0)) + shape.half * a + shape.rounding)


def _balls(shape: ContactShape) -> list[tuple[Point, float]]:
    """Balls (centre, radius) around all places of a point."""
    if isinstance(shape, Facing):
        return []  # within those of its part
    return [(c, shape.radius) for c in shape.corners] if isinstance(shape, Lowest) else [shape.reach()]
