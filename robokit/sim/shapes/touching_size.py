"""Size of what can touch the ground, and how little it may give way: how soft the ground is follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.model.robot import Robot
from robokit.sim.shapes.contact_points import ContactPoints
from robokit.sim.shapes.contact_shapes import ContactShape, Facing, Lowest, Point, Rim
from robokit.spatial import Vector3

FIRM = 0.1
"""Softness of the ground under a loose body over that under a robot of its size: what slides begins to at
most 2 ms too early when it is pushed by a tenth more than friction holds."""

LARGE = 0.2
"""Radius from which size no longer counts [m]."""

STEADY = 3e-3
"""Depth over thickness^2 / length. A body on its narrow end then tips at 0.97 or more of its limit (measured:
boxes and cylinders of 5 cm to 1 m, 1:1 to 1:4, put down on a slope at rest, steps of 1/2 to 2 ms)."""

ROUND = 4.0
"""Depth of a body with corners over that of a round one: there one point carries all in the end, not two."""

THINNEST = 1.0 / 16.0
"""Least (thickness / length)^2 that this asks for."""


def extent(robot: Robot, points: ContactPoints) -> Any:
    """Half the longest edge of a box around the points in the neutral configuration [m].

    inf of none, and of a single point: a point mass says nothing of its size. (B,) where points move with
    the inertias of a robot with samples.
    """
    if not len(points):
        return math.inf
    X0 = forward_kinematics(robot.tree, robot.split_q(robot.neutral().tolist()))
    low, high = [], []
    for m, (i, shape) in enumerate(zip(points.body, points.shape, strict=True)):
        for center, radius in _balls(shape):
            at = np.stack(np.broadcast_arrays(*X0[i].point(Vector3(*_place(points, m, center)))))
            low.append(at - radius)
            high.append(at + radius)
    half = 0.5 * _edges(low, high).max(axis=0)
    half = np.where(half > 0.0, half, math.inf)
    return half if half.ndim else float(half)


def loose_extent(robot: Robot, points: ContactPoints) -> Any:
    """The size that the ground under loose bodies goes by instead, where it is less [m]; inf of none.

    A FIRM part of theirs, over the share of the weight; (B,) as of :func:`steady`.
    """
    found: Any = math.inf
    for _, share, edges in _loose(robot, points):
        found = np.minimum(found, FIRM * np.minimum(0.5 * edges.max(axis=0), LARGE) / share)
    return found if np.ndim(found) else float(found)


def steady(robot: Robot, points: ContactPoints) -> Any:
    """Depth at which a point may carry the robot's weight for its loose bodies to stand [m]; inf of none.

    A loose body floats and has no joints: a box, a cylinder. On a ground that gives way it leans to the side
    to which it would tip, and swings that way as it is put down, and so tips before it must. The depth
    follows from a box around its points; of several loose bodies the one decides that allows least, by its
    share of the weight.

    (B,) where points or masses differ in the samples of a robot.
    """
    found: Any = math.inf
    for own, share, edges in _loose(robot, points):
        thin, long = edges.min(axis=0), np.maximum(edges.max(axis=0), 1e-12)
        depth = STEADY * np.maximum(thin**2 / long, THINNEST * long)
        if any(isinstance(points.shape[m], Rim) for m in own):
            depth = depth / ROUND
        found = np.minimum(found, depth / share)
    return found if np.ndim(found) else float(found)


def _loose(robot: Robot, points: ContactPoints) -> Iterator[tuple[list[int], Any, Any]]:
    """Of each loose body: its points, its share of the mass, and the edges of a box around it [m]."""
    tree = robot.tree
    for i in tree.children[0]:
        joint = tree.joint[i]
        own = np.flatnonzero(points.body == i).tolist()
        if tree.children[i] or joint is None or joint.kind.name != "floating" or not own:
            continue
        low, high = [], []
        for m in own:
            shape = points.shape[m]
            for center, radius in _balls(shape):
                at = np.stack(np.broadcast_arrays(*_place(points, m, center)))
                wide = _widths(shape, radius).reshape(3, *(1,) * (at.ndim - 1))
                low.append(at - wide)
                high.append(at + wide)
        yield own, tree.I[i].m / robot.total_mass, _edges(low, high)


def _place(points: ContactPoints, m: int, center: Point) -> Any:
    """Where a ball of point m is, body coordinates [m]."""
    return np.moveaxis(points.position[..., m, :], -1, 0) if points.of_inertia[m] else center


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
