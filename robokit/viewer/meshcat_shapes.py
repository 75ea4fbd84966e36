"""Shapes and placements in meshcat's terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.viewer.nodes import Drawable, Node, Triangles
from robokit.viewer.poses import rotate


def pose_matrix(pose: np.ndarray) -> np.ndarray:
    """Homogeneous matrix of a pose of seven numbers, (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotate(pose[None, 3:], np.eye(3)).T
    matrix[:3, 3] = pose[:3]
    return matrix


def node_matrix(node: Node) -> np.ndarray:
    """Homogeneous matrix of a node in its body; meshcat's cylinders lie along y."""
    matrix = np.eye(4)
    matrix[:3, :3] = node.placement.rotation
    matrix[:3, 3] = node.placement.position
    if isinstance(node.geometry, Cylinder):
        matrix[:3, :3] = matrix[:3, :3] @ np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    return matrix


def meshcat_geometry(geometry: Drawable) -> Any:
    """A geometry as one of meshcat's."""
    import meshcat.geometry as g

    if isinstance(geometry, Box):
        return g.Box(list(geometry.size))
    if isinstance(geometry, Sphere):
        return g.Sphere(geometry.radius)
    if isinstance(geometry, Cylinder):
        return g.Cylinder(geometry.length, geometry.radius)
    triangles = capsule_triangles(geometry) if isinstance(geometry, Capsule) else geometry
    return g.TriangularMeshGeometry(
        np.asarray(triangles.vertices, dtype=np.float32), np.asarray(triangles.faces, dtype=np.uint32)
    )


def capsule_triangles(capsule: Capsule, around: int = 24, rings: int = 8) -> Triangles:
    """A capsule as one closed surface, a tube along z with a half sphere on each end.

    Args:
        capsule: the shape.
        around: corners of a ring.
        rings: rings of each half sphere.

    Returns:
        The triangles, wound outward.
    """
    up = np.linspace(-np.pi / 2, np.pi / 2, 2 * rings)
    up = np.insert(up, rings, 0.0)
    up = np.insert(up, rings, 0.0)
    shift = np.where(np.arange(len(up)) <= rings, -0.5, 0.5) * capsule.length
    turn = np.linspace(0.0, 2.0 * np.pi, around, endpoint=False)
    circle = np.stack([np.cos(turn), np.sin(turn), np.zeros(around)], axis=1)
    z = capsule.radius * np.sin(up) + shift
    rings_xyz = capsule.radius * np.cos(up)[:, None, None] * circle + z[:, None, None] * np.array(
        [0.0, 0.0, 1.0]
    )
    first = np.arange((len(up) - 1) * around)
    beside = first - first % around + (first + 1) % around
    faces = np.concatenate(
        [
            np.stack([first, beside, beside + around], axis=1),
            np.stack([first, beside + around, first + around], axis=1),
        ]
    )
    return Triangles(rings_xyz.reshape(-1, 3), faces)
