"""What there is to draw: a robot as a list of nodes, each a shape at a placement on a body.

Only bodies move, so links welded to a body are folded into it. A robot is seen as its visuals; one without
any as its collision shapes; one without those as inertia boxes and joint axes: a scene is never empty.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robokit.meshes.surface import Picture
from robokit.meshes.thin import thinned_mesh
from robokit.model.geometry import RGBA, Box, Capsule, Cylinder, Geometry, Mesh, Placement, Shape, Sphere

Role = Literal["visual", "collision", "inertia", "axis"]

DEFAULT_COLOUR: RGBA = (0.70, 0.73, 0.78, 1.0)
COLLISION_COLOUR: RGBA = (0.95, 0.50, 0.15, 0.40)
INERTIA_COLOUR: RGBA = (0.38, 0.36, 0.85, 0.35)
BARE_COLOUR: RGBA = (0.55, 0.56, 0.80, 1.0)
AXIS_COLOUR: RGBA = (0.80, 0.20, 0.45, 1.0)
MISSING_COLOUR: RGBA = (0.90, 0.25, 0.60, 0.65)
WHITE: RGBA = (1.0, 1.0, 1.0, 1.0)

TRIANGLES, LEAST_TRIANGLES, MOST_TRIANGLES = 80_000, 1_500, 10_000
"""Of a robot's meshes together, shared out equally, and of one mesh at least and at most."""

MISSING_SIZE = 0.1
"""Edge of the box that stands for a mesh that could not be read [m]."""


@dataclass(frozen=True)
class Triangles:
    """A triangle mesh in memory.

    Attributes:
        vertices: (n, 3) [m].
        faces: (m, 3).
        colours: (n, 3) of the vertices, 0..255, or None.
        uv: (m, 3, 2) places of the faces' corners in a picture, or None.
        picture: the mesh's own, a path or an image of Pillow, or None.
    """

    vertices: np.ndarray
    faces: np.ndarray
    colours: np.ndarray | None = None
    uv: np.ndarray | None = None
    picture: Picture | None = None


Drawable = Box | Sphere | Cylinder | Capsule | Triangles


@dataclass(frozen=True)
class Node:
    """One thing to draw.

    Attributes:
        link: name of the link it belongs to.
        body: number of the body that carries it, 0 for the world or the fixed root.
        geometry: primitive or triangles, in the node's own frame.
        placement: the node's frame in the body's frame.
        rgba: colour, each 0 to 1 (sRGB).
        role: "visual" is the robot as seen; the others are overlays.
        stand_in: True where the robot is seen as this overlay because it has nothing better.
        picture: what covers it, a path or an image of Pillow, or None.
    """

    link: str
    body: int
    geometry: Drawable
    placement: Placement
    rgba: RGBA
    role: Role
    stand_in: bool = False
    picture: Picture | None = None


def scene(robot: Any, max_triangles: int | None = None) -> list[Node]:
    """All nodes of a robot: its looks, its collision shapes, its inertia boxes and its joint axes.

    Args:
        robot: the Robot.
        max_triangles: a mesh is thinned to about this many triangles; None shares out what a page shows well.

    Returns:
        Nodes in link order; never empty for a robot with a link that has mass or a joint.
        A mesh that cannot be read becomes a box, with a Python warning that names it.
    """
    if max_triangles is None:
        max_triangles = _share(robot)
    nodes: list[Node] = []
    seen: set[tuple[str, str]] = set()
    for link in robot.links:
        nodes += _shape_nodes(link, link.visuals, "visual", DEFAULT_COLOUR, max_triangles, seen)
        nodes += _shape_nodes(link, link.collisions, "collision", COLLISION_COLOUR, max_triangles, seen)
        inertia = inertia_node(link)
        if inertia is not None:
            nodes.append(inertia)
    size = robot_size(robot)
    for joint in robot.body_joints:
        nodes += joint_axis_nodes(joint, size)
    return nodes + _stand_ins(nodes)


def _share(robot: Any) -> int:
    """Triangles for each of a robot's mesh files."""
    shapes = [shape for link in robot.links for shape in (*link.visuals, *link.collisions)]
    files = {(s.geometry.path, s.geometry.scale) for s in shapes if isinstance(s.geometry, Mesh)}
    return min(max(TRIANGLES // max(len(files), 1), LEAST_TRIANGLES), MOST_TRIANGLES)


def inertia_node(link: Any) -> Node | None:
    """The homogeneous box with the link's mass and inertia, or None for a link without mass.

    Box edges a, b, c follow from the principal moments: I1 = m (b² + c²) / 12 and so on.
    """
    if not link.mass > 0:
        return None
    moments, axes = np.linalg.eigh(np.asarray(link.inertia, dtype=float))
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    squares = 6.0 * (moments.sum() - 2.0 * moments) / link.mass
    edges = np.sqrt(np.maximum(squares, 1e-6))
    placement = link.placement @ Placement(axes, np.asarray(link.com, dtype=float))
    size = (float(edges[0]), float(edges[1]), float(edges[2]))
    return Node(link.name, link.body, Box(size), placement, INERTIA_COLOUR, "inertia")


def joint_axis_nodes(joint: Any, size: float) -> Iterable[Node]:
    """A thin rod along the axis of a joint that has one, in the body that it moves."""
    if joint.kind in ("floating", "fixed", "spherical") or joint.axis is None:
        return
    axis = np.asarray(joint.axis, dtype=float).reshape(-1)
    if axis.shape != (3,) or not np.any(axis):
        return
    rod = Cylinder(0.006 * size, 0.22 * size)
    yield Node(joint.child_link, joint.body, rod, Placement(rotation_from_z(axis)), AXIS_COLOUR, "axis")


def rotation_from_z(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the given direction, (3, 3)."""
    z = axis / np.linalg.norm(axis)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def robot_size(robot: Any) -> float:
    """A length that overlays are scaled by: of the order of half the robot's extent [m]."""
    from robokit.viewer.poses import body_poses

    poses = body_poses(robot, robot.neutral()[None])[0]
    extent = np.ptp(poses[1:, :3], axis=0) if len(poses) > 1 else np.zeros(3)
    radius = 0.05
    for link in robot.links:
        node = inertia_node(link)
        if node is not None:
            reach = np.abs(node.placement.position).max() + 0.5 * max(node.geometry.size)  # type: ignore[union-attr]
            radius = max(radius, float(reach))
    return min(max(0.5 * float(np.linalg.norm(extent)), radius), 3.0)


def local_box(geometry: Drawable) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner of a geometry in its own frame, (3,) each [m]."""
    if isinstance(geometry, Triangles):
        return geometry.vertices.min(axis=0), geometry.vertices.max(axis=0)
    if isinstance(geometry, Box):
        half = 0.5 * np.asarray(geometry.size, dtype=float)
    elif isinstance(geometry, Sphere):
        half = np.full(3, float(geometry.radius))
    else:
        caps = geometry.radius if isinstance(geometry, Capsule) else 0.0
        half = np.array([geometry.radius, geometry.radius, 0.5 * geometry.length + caps], dtype=float)
    return -half, half


def _shape_nodes(
    link: Any,
    shapes: Iterable[Shape],
    role: Role,
    colour: RGBA,
    max_triangles: int,
    seen: set[tuple[str, str]],
) -> list[Node]:
    """Nodes of a link's shapes; a mesh file gives one node for each of its colours."""
    nodes = []
    for shape in shapes:
        for geometry, painted in _drawables(shape.geometry, max_triangles, seen):
            picture: Picture | None = None
            rgba = painted if painted == MISSING_COLOUR else None
            if role == "visual" and rgba is None:
                geometry, picture, rgba = _looks(shape, geometry, painted)
            placement = link.placement @ shape.placement
            nodes.append(
                Node(link.name, link.body, geometry, placement, rgba or colour, role, picture=picture)
            )
    return nodes


def _looks(
    shape: Shape, geometry: Drawable, painted: RGBA | None
) -> tuple[Drawable, Picture | None, RGBA | None]:
    """Geometry, picture and colour as seen: what the description says, else what the mesh file says."""
    mesh = geometry if isinstance(geometry, Triangles) else None
    if shape.rgba or shape.texture:
        if mesh is not None and mesh.colours is not None:
            geometry = replace(mesh, colours=None)
        return geometry, shape.texture, shape.rgba or WHITE
    if mesh is not None and mesh.picture is not None:
        return geometry, mesh.picture, WHITE
    return geometry, None, WHITE if mesh is not None and mesh.colours is not None else painted


def _drawables(
    geometry: Geometry, max_triangles: int, seen: set[tuple[str, str]]
) -> list[tuple[Drawable, RGBA | None]]:
    """The geometry itself, or the parts of its mesh file with the colours the file gives them."""
    if not isinstance(geometry, Mesh):
        return [(geometry, None)]
    try:
        if geometry.path is None:
            raise FileNotFoundError("the file was not found")
        parts, missing = _mesh_parts(geometry.path, tuple(geometry.scale), max_triangles)
        for name in missing:
            if (geometry.filename, name) not in seen:
                seen.add((geometry.filename, name))
                warnings.warn(
                    f"picture {name!r} of mesh {geometry.filename!r} is left out: it is not beside it",
                    stacklevel=4,
                )
        return list(parts)
    except Exception as problem:
        # Files come from anywhere and each reader fails in its own way: the picture goes on without this one.
        if (geometry.filename, "") not in seen:
            seen.add((geometry.filename, ""))
            warnings.warn(
                f"mesh {geometry.filename!r} is drawn as a box of {MISSING_SIZE} m: {problem}", stacklevel=4
            )
        return [(Box((MISSING_SIZE,) * 3), MISSING_COLOUR)]


@lru_cache(maxsize=512)
def _mesh_parts(
    path: Path, scale: tuple[float, float, float], max_triangles: int
) -> tuple[list[tuple[Triangles, RGBA | None]], tuple[str, ...]]:
    """The parts of a mesh file with their colours, and names of pictures that were not found.

    Kept, so that a file which many shapes show is one geometry of the page.
    """
    surfaces, missing = thinned_mesh(path, scale, max_triangles)
    return [(Triangles(s.vertices, s.faces, s.colours, s.uv, s.picture), s.rgba) for s in surfaces], missing


def _stand_ins(nodes: list[Node]) -> list[Node]:
    """What a robot without visuals is seen as: collision shapes, else inertia boxes and joint axes."""
    roles = {node.role for node in nodes}
    if "visual" in roles:
        return []
    shown = (
        {"collision": DEFAULT_COLOUR}
        if "collision" in roles
        else {"inertia": BARE_COLOUR, "axis": AXIS_COLOUR}
    )
    return [
        Node(node.link, node.body, node.geometry, node.placement, shown[node.role], "visual", stand_in=True)
        for node in nodes
        if node.role in shown
    ]
