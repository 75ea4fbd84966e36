"""How far points are from a ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.model.robot import Robot
from robokit.sim.contact_points import ContactPoints
from robokit.sim.ground import Ground
from robokit.sim.ground_inputs import layouts, numbers
from robokit.sim.step.surfaces import Surface, deepest, surfaces
from robokit.spatial import Vector3


def ground_surfaces(ground: Ground) -> list[Surface]:
    """The surfaces of a ground as functions of a point."""
    return surfaces(layouts(ground), iter(numbers(ground)))


def gaps(ground: Ground, x: Any, radius: Any = 0.0) -> np.ndarray:
    """Distance of balls of some radius about points x (..., 3) from the ground, below 0 inside [m]."""
    point = Vector3(*np.moveaxis(np.asarray(x, dtype=float), -1, 0))
    return np.asarray(deepest(ground_surfaces(ground), point, 0.0).phi - radius)


def point_places(robot: Robot, q: np.ndarray, points: ContactPoints) -> np.ndarray:
    """World positions of the contact points in the configuration q (nq,), (K, 3) [m]."""
    X0 = forward_kinematics(robot.tree, robot.split_q(q.tolist()))
    local = [Vector3(*p) for p in points.position.tolist()]
    rows = [list(X0[i].point(p)) for i, p in zip(points.body, local, strict=True)]
    return np.array(rows, dtype=float).reshape(-1, 3)
