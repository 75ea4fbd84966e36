"""Detection on real robots beside coal, with all corners of their meshes' hulls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scenes import numbered

import robokit as rk
from robokit.collision.detect import contacts_at
from robokit.collision.scene import robot_shapes, scene
from robokit.meshes.hull import hull_corners
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Sphere

try:
    import coal
except ModuleNotFoundError:  # the light suite has none, and runs nothing of this file
    coal = None

pytestmark = pytest.mark.parity


def of_coal(geometry: Any) -> Any:
    if isinstance(geometry, Mesh):
        corners = np.ascontiguousarray(hull_corners(geometry))
        points = coal.StdVec_Vec3s()
        for p in corners:
            points.append(p)
        return coal.Convex.convexHull(points, True, "Qt")
    if isinstance(geometry, Sphere):
        return coal.Sphere(geometry.radius)
    if isinstance(geometry, Box):
        return coal.Box(*geometry.size)
    if isinstance(geometry, Capsule):
        return coal.Capsule(geometry.radius, geometry.length)
    assert isinstance(geometry, Cylinder)
    return coal.Cylinder(geometry.radius, geometry.length)


def geometries(robot: rk.Robot) -> list[tuple[Any, int, Any]]:
    """Of each shape that touches, in the scene's order."""
    some = "collisions" if any(link.collisions for link in robot.links) else "visuals"
    found = [
        (of_coal(shape.geometry), link.body, link.placement @ shape.placement)
        for link in robot.links
        for shape in getattr(link, some)
    ]
    return sorted(found, key=lambda each: each[1])


def poses(robot: rk.Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    tree = robot.tree
    X = tree.transforms(robot.split_q(q.tolist()))
    R, p = [np.eye(3)], [np.zeros(3)]
    for i in tree.outward():
        R.append(R[tree.parent[i]] @ np.array(X[i].E.rows, float).T)
        p.append(p[tree.parent[i]] + R[tree.parent[i]] @ np.array(list(X[i].r), float))
    return np.array(R), np.array(p)


@pytest.mark.parametrize("name", ["humanoid", "example-robot-data:g1", "example-robot-data:talos"])
def test_overlaps_are_those_of_full_hulls(name: str) -> None:
    robot = rk.load_urdf(rk.find_robot(name))
    each, rng = geometries(robot), np.random.default_rng(0)
    assert len(each) == len(robot_shapes(robot))
    given = scene(robot, bodies=None)
    overlaps, memory = 0, None
    for _ in range(6):
        R, p = poses(robot, robot.random_configuration(rng))
        memory = found = contacts_at(given.arrays, R, p, memory=memory)
        placed = [(g, coal.Transform3s(R[b] @ P.rotation, R[b] @ P.position + p[b])) for g, b, P in each]
        for k, (i, j) in numbered(given.arrays).items():
            result = coal.DistanceResult()
            coal.distance(*placed[i], *placed[j], coal.DistanceRequest(), result)
            depth = -result.min_distance
            own = -found["contact_gap"][found["contact_pair"] == k].min(initial=0.0)
            error = given.errors[[i, j]].sum() + 1e-6
            # What is deep has several directions that are nearly as shallow, so fewer corners count more.
            assert depth - error - 0.05 * abs(depth) <= own <= max(depth, 0.0) + 1e-6, (i, j, depth, own)
            overlaps += own > 0.0
    assert overlaps > 3
