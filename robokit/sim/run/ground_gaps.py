"""How far a robot's points are from a ground, and how far it can be lowered onto it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.ground.ground_inputs import ground_tables, layouts, surface_numbers
from robokit.sim.ground.solids import Hull
from robokit.sim.record.recorded import heights, placed, row_heights
from robokit.sim.shapes.contact_points import ContactPoints
from robokit.sim.shapes.contact_shapes import Ball, Facing
from robokit.sim.touching.solid_contacts import meeting
from robokit.sim.touching.surfaces import Surface, deepest, surfaces
from robokit.spatial import Transform, Vector3

CLOSE = 1e-10
"""Gap that is none [m]."""


def ground_surfaces(ground: Ground) -> list[Surface]:
    """The surfaces of a ground as functions of a point."""
    tables = [table for _, table in ground_tables(ground)]
    return surfaces(layouts(ground), iter(surface_numbers(ground)), tables)


def gaps(ground: Ground, x: Any, radius: Any = 0.0) -> np.ndarray:
    """Distance of balls of some radius about points x (..., 3) from the ground, below 0 inside [m]."""
    point = Vector3(*np.moveaxis(np.asarray(x, dtype=float), -1, 0))
    return np.asarray(deepest(ground_surfaces(ground), point, radius, 0.0).phi - radius)


def point_gaps(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground) -> np.ndarray:
    """The same of the contact points in the configuration q (nq,), (K,) [m]."""
    if ground.horizontal:
        return heights(robot, q.tolist(), points) - ground.height
    return _gaps(robot, q, points, ground_surfaces(ground))


def row_gaps(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground) -> np.ndarray:
    """The same for every row of q (B, nq), of points (K, 3) or (B, K, 3): (B, K) [m]."""
    if ground.horizontal and len(q) == 1 and points.position.ndim == 2 and np.isfinite(q).all():
        return (heights(robot, q[0].tolist(), points) - ground.height)[None]  # plain numbers are quicker
    if ground.horizontal:
        return row_heights(robot, q, points) - ground.height
    return np.moveaxis(_gaps(robot, q.T, points, ground_surfaces(ground)), 0, -1)


def _gaps(
    robot: Robot, q: np.ndarray, points: ContactPoints, over: list[Surface], lift: float = 0.0
) -> np.ndarray:
    """Distances of the contact points of a robot lifted by so much, (K,); (K, B) for rows of q (B,) [m]."""
    X0 = forward_kinematics(robot.tree, robot.split_q(list(q)))
    up = Vector3(0.0, 0.0, lift)
    found = []
    for i, shape in placed(points):
        if isinstance(shape, Facing):
            phi = meeting(shape, Transform(X0[i].E, X0[i].r + up), over).phi
            found.append(np.broadcast_to(phi, np.shape(q)[1:]))
            continue
        center, radius = shape.reach()
        touch = deepest(over, X0[i].point(Vector3(*center)) + up, radius, 0.0)
        phi = touch.phi - radius
        if not isinstance(shape, Ball):
            p = X0[i].point(shape.at(X0[i].E @ touch.n)) + up
            phi = deepest(over, p, 0.0, 0.0).phi
        found.append(np.broadcast_to(phi, np.shape(q)[1:]))
    return np.array(found, dtype=float).reshape(len(points), *np.shape(q)[1:])


def lowering(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground, clearance: float) -> float:
    """How far the robot is to be moved up so that it hangs ``clearance`` over the ground under it [m].

    It is lowered from above all of the ground until the first point is near.

    Raises:
        ShapeError: there is nothing under the robot.
    """
    X0 = forward_kinematics(robot.tree, robot.split_q(list(q)))
    balls = [(i, shape.reach()) for i, shape in placed(points)]
    x = np.array([[*X0[i].point(Vector3(*center))] for i, (center, _) in balls], dtype=float)
    r = np.array([radius for _, (_, radius) in balls])
    over = ground_surfaces(ground)
    low, high = _extent(ground, x, r + clearance)
    shift, lowest = float(np.max(high - x[:, 2])), float(np.min(low - x[:, 2]))
    for _ in range(1000):
        # No point meets the ground before it has gone its distance from it.
        step = float(_gaps(robot, q, points, over, shift).min()) - clearance
        shift -= step
        if step < CLOSE:
            return shift
        if shift < lowest:
            raise ShapeError("ground: nothing is under the robot; put it over a solid, or add the plane")
    return shift


def _extent(ground: Ground, x: np.ndarray, away: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Heights at which points x (K, 3) are so far under and over all of the ground, (K,) each [m]."""
    low, high = [], []
    if ground.plane:
        n = ground.up
        level = ground.height - (n[0] * x[:, 0] + n[1] * x[:, 1]) / n[2]
        low.append(level - away / n[2])
        high.append(level + away / n[2])
    if ground.terrain is not None:
        z, field = ground.terrain.heights, ground.terrain
        steep = [float(np.abs(np.diff(z, axis=k)).max()) / field.cell[k] for k in (0, 1)]
        far = away * math.sqrt(1.0 + steep[0] ** 2 + steep[1] ** 2)
        low.append(z.min() + field.origin[2] - far)
        high.append(z.max() + field.origin[2] + far)
    for solid in ground.shapes:
        shape = solid.geometry
        if isinstance(shape, Hull):
            reach = float(np.linalg.norm(shape.points, axis=1).max()) + shape.error
        elif solid.kind == "box":
            reach = 0.5 * float(np.linalg.norm(shape.size))
        else:
            reach = shape.radius + 0.5 * getattr(shape, "length", 0.0)
        z = np.full(len(x), float(solid.placement.position[2]))
        low.append(z - reach - away)
        high.append(z + reach + away)
    return np.min(low, axis=0), np.max(high, axis=0)
