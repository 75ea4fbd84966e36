"""Shapes, surfaces and placements in meshcat's terms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.viewer.nodes import Drawable, Node, Triangles, data_uri
from robokit.viewer.poses import rotate

REPEAT = 1000
"""three.js' number of a picture that repeats."""


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
    if triangles.uv is not None or triangles.colours is not None:
        return _painted(triangles)
    return g.TriangularMeshGeometry(
        np.asarray(triangles.vertices, dtype=np.float32), np.asarray(triangles.faces, dtype=np.uint32)
    )


def _painted(triangles: Triangles) -> Any:
    """Triangles with colours or picture coordinates, which their corners have one by one."""
    import meshcat.geometry as g

    corners = triangles.faces.reshape(-1)
    edges = triangles.vertices[triangles.faces]
    normals = np.zeros_like(triangles.vertices)
    across = np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0])
    np.add.at(normals, corners, np.repeat(across, 3, axis=0))
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    attributes = {"position": triangles.vertices[corners], "normal": normals[corners]}
    if triangles.colours is not None:
        attributes["color"] = triangles.colours[corners] / 255.0
    if triangles.uv is not None:
        attributes["uv"] = triangles.uv.reshape(-1, 2)
    packed = {name: g.pack_numpy_array(np.asarray(a, np.float32).T) for name, a in attributes.items()}

    class Painted(g.Geometry):  # type: ignore[misc]
        def lower(self, _: Any) -> dict[str, Any]:
            return {"uuid": self.uuid, "type": "BufferGeometry", "data": {"attributes": packed}}

    return Painted()


def meshcat_material(node: Node) -> Any:
    """The surface of a node as one of meshcat's materials; a picture that cannot be read is left out.

    Warns:
        UserWarning: a picture that cannot be read.
    """
    import meshcat.geometry as g

    red, green, blue = (round(255 * channel) for channel in node.rgba[:3])
    opacity = float(node.rgba[3])
    painted = isinstance(node.geometry, Triangles) and node.geometry.colours is not None
    return g.MeshLambertMaterial(
        color=(red << 16) + (green << 8) + blue,
        opacity=opacity,
        transparent=opacity < 1.0,
        vertexColors=painted and node.role == "visual",
        map=_texture(node),
    )


def _texture(node: Node) -> Any:
    """The picture of a node as one of meshcat's textures, or None."""
    import meshcat.geometry as g

    if node.picture is None:
        return None
    try:
        uri = data_uri(node.picture)
    except Exception as problem:  # each reader fails in its own way on a bad file
        name = "inside a mesh" if isinstance(node.picture, bytes) else str(node.picture)
        warnings.warn(f"picture {name!r} of link {node.link!r} is left out: {problem}", stacklevel=2)
        return None

    class Picture(g.Image):  # type: ignore[misc]
        def lower(self, _: Any) -> dict[str, Any]:
            return {"uuid": self.uuid, "url": uri}

    return g.ImageTexture(Picture(), wrap=[REPEAT, REPEAT])


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
