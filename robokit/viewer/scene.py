"""What there is to draw: a robot as a list of nodes, each a shape at a placement on a body.

Only bodies move, so the shapes of a link that is welded to a body are placed on that body. A robot is shown
by its visuals. One without visuals is shown by its collision shapes, and one without those by its inertia
boxes and joint axes, so that a scene is never empty.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.surface import Picture, Surface, simplified_surfaces
from robokit.model.geometry import RGBA, Box, Cylinder, Geometry, Mesh, Placement, Shape
from robokit.model.inertial_parameters import equivalent_box
from robokit.model.parts import Joint, Link
from robokit.model.robot import Robot
from robokit.sim.ground import Ground, HeightField, Hull, Solid
from robokit.stages import stage
from robokit.viewer.nodes import Drawable, Node, Role, Triangles
from robokit.viewer.poses import body_poses, bounds

DEFAULT_COLOUR: RGBA = (0.70, 0.73, 0.78, 1.0)
COLLISION_COLOUR: RGBA = (0.95, 0.50, 0.15, 0.40)
INERTIA_COLOUR: RGBA = (0.38, 0.36, 0.85, 0.35)
BARE_COLOUR: RGBA = (0.55, 0.56, 0.80, 1.0)
AXIS_COLOUR: RGBA = (0.80, 0.20, 0.45, 1.0)
MISSING_COLOUR: RGBA = (0.90, 0.25, 0.60, 0.65)
WHITE: RGBA = (1.0, 1.0, 1.0, 1.0)
BLACK: RGBA = (0.0, 0.0, 0.0, 1.0)

TRIANGLES, LEAST_TRIANGLES, MOST_TRIANGLES = 80_000, 1_500, 10_000
"""Triangles of all meshes of a robot, shared out; and of one mesh, at least and at most."""

MISSING_SIZE = 0.1
"""Edge of the box that stands for a mesh that could not be read [m]."""

LEAST_EDGE = 1e-3
"""Edge of an inertia box, at least [m]: a thinner one could not be seen."""


Sized = tuple[Path, tuple[float, ...]]
"""A mesh file and its scale: files are drawn once in each size."""

LEAST_SIZE, LONGEST_AXIS_SIZE = 0.02, 3.0
"""Sizes of a robot, at least, and at most where joint axes are drawn to scale [m]."""


def scene(robot: Robot, max_triangles: int | None = None) -> list[Node]:
    """All nodes of a robot: visuals, collision shapes, inertia boxes and joint axes.

    Args:
        robot: the Robot.
        max_triangles: a mesh is simplified to about this many triangles; None shares
            :data:`TRIANGLES` among the robot's meshes: where all are fewer, none is simplified.

    Returns:
        Nodes in link order; never empty for a robot with a link that has mass or a joint.
        A mesh that cannot be read becomes a box, with a Python warning that names it.

    Example:
        >>> from robokit.viewer import scene
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> len(scene(robot)) > len(robot.links)
        True
    """
    with stage("reading and thinning meshes"):
        nodes = _nodes_of_links(robot, _shares(robot, max_triangles))
    _surfaces.cache_clear()
    size = min(drawn_size(robot, nodes), LONGEST_AXIS_SIZE)
    for joint in robot.body_joints:
        nodes += joint_axis_nodes(joint, size)
    return nodes + _stand_ins(nodes)


def _nodes_of_links(robot: Robot, most: Mapping[Sized, int]) -> list[Node]:
    """Visuals, collision shapes and inertia boxes."""
    nodes: list[Node] = []
    seen: set[tuple[str, str]] = set()
    for link in robot.links:
        nodes += _shape_nodes(link, link.visuals, "visual", DEFAULT_COLOUR, most, seen)
        nodes += _shape_nodes(link, link.collisions, "collision", COLLISION_COLOUR, most, seen)
        if (inertia := inertia_box(link)) is not None:
            nodes.append(Node(link.name, link.body, *inertia, INERTIA_COLOUR, "inertia"))
    return nodes


def _shares(robot: Robot, max_triangles: int | None) -> dict[Sized, int]:
    """Triangles that each mesh file of a robot may show: small ones leave theirs to the larger ones."""
    shapes = [shape for link in robot.links for shape in (*link.visuals, *link.collisions)]
    meshes = [s.geometry for s in shapes if isinstance(s.geometry, Mesh)]
    files = list(dict.fromkeys((mesh.path, tuple(mesh.scale)) for mesh in meshes if mesh.path is not None))
    if max_triangles is not None:
        return dict.fromkeys(files, max_triangles)
    shares, left = {}, TRIANGLES
    counts = {file: _triangles(file[0]) for file in files}
    for k, file in enumerate(sorted(files, key=lambda file: counts[file])):
        shares[file] = min(max(left // (len(files) - k), LEAST_TRIANGLES), MOST_TRIANGLES)
        left = max(left - min(counts[file], shares[file]), 0)
    return shares


def _triangles(path: Path) -> int:
    """Number of triangles of a mesh file; 0 if it cannot be read."""
    try:
        return sum(len(surface.faces) for surface in _surfaces(path))
    except Exception:  # whoever draws it tells why
        return 0


@cache
def _surfaces(path: Path) -> list[Surface]:
    """The surfaces of a mesh file, read once for a scene."""
    return list(read_mesh(path))


def inertia_box(link: Link) -> tuple[Box, Placement] | None:
    """The equivalent inertia box of a link, placed on its body; None for a link without mass."""
    equivalent = equivalent_box(link.mass, link.inertia)
    if equivalent is None:
        return None
    x, y, z = np.maximum(equivalent.size, LEAST_EDGE).tolist()
    return Box((x, y, z)), link.placement @ Placement(equivalent.axes, np.asarray(link.com, dtype=float))


def joint_axis_nodes(joint: Joint, size: float) -> Iterable[Node]:
    """A thin rod along the axis of a joint that has one, in the body that it moves."""
    if joint.kind in ("floating", "fixed", "spherical"):
        return
    axis = np.asarray(joint.axis, dtype=float)
    rod = Cylinder(0.006 * size, 0.22 * size)
    yield Node(joint.child_link, joint.body, rod, Placement(rotation_from_z(axis)), AXIS_COLOUR, "axis")


def rotation_from_z(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the given direction, (3, 3)."""
    z = axis / np.linalg.norm(axis)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def drawn_size(robot: Robot, nodes: list[Node]) -> float:
    """The length that overlays are scaled by: half the diagonal of what is drawn at the neutral pose [m].

    Args:
        nodes: its nodes. Counted are its visuals; collision shapes where there are none, else inertia boxes;
            and the places of its bodies.
    """
    roles = {node.role for node in nodes}
    role: Role = "visual" if "visual" in roles else "collision" if "collision" in roles else "inertia"
    poses = body_poses(robot, robot.neutral()[None])
    corners = [] if role not in roles else [bounds(nodes, poses, role)]
    if len(poses[0]) > 1:
        corners.append(poses[0, 1:, :3])
    extent = np.ptp(np.concatenate(corners), axis=0) if corners else np.zeros(3)
    return max(0.5 * float(np.linalg.norm(extent)), LEAST_SIZE)


def _shape_nodes(
    link: Link,
    shapes: Iterable[Shape],
    role: Role,
    colour: RGBA,
    most: Mapping[Sized, int],
    seen: set[tuple[str, str]],
) -> list[Node]:
    """Nodes of a link's shapes; a mesh file gives one node for each of its colours."""
    nodes = []
    for shape in shapes:
        for geometry, painted in _drawables(link.name, shape.geometry, most, seen):
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
    """Geometry, picture and colour of a visual: those of the description, else those of the mesh file."""
    mesh = geometry if isinstance(geometry, Triangles) else None
    own = mesh is not None and (mesh.colours is not None or mesh.picture is not None or painted is not None)
    # Some exporters write black where a mesh file has colours of its own (the iCub of example-robot-data).
    unset = own and shape.rgba is not None and tuple(shape.rgba) == BLACK and not shape.texture
    if (shape.rgba or shape.texture) and not unset:
        if mesh is not None and mesh.colours is not None:
            geometry = replace(mesh, colours=None)
        return geometry, Path(shape.texture) if shape.texture else None, shape.rgba or WHITE
    if mesh is not None and mesh.picture is not None:
        return geometry, mesh.picture, WHITE
    return geometry, None, WHITE if mesh is not None and mesh.colours is not None else painted


def _drawables(
    link: str, geometry: Geometry, most: Mapping[Sized, int], seen: set[tuple[str, str]]
) -> list[tuple[Drawable, RGBA | None]]:
    """The geometry itself, or the parts of its mesh file with the colours the file gives them."""
    if not isinstance(geometry, Mesh):
        return [(geometry, None)]
    try:
        if geometry.path is None:
            raise FileNotFoundError("the file was not found")
        file = geometry.path, tuple(geometry.scale)
        parts, missing = _mesh_parts(*file, most[file])
        lines = {
            name: f"picture {name!r} of mesh {geometry.filename!r} is left out: it is not beside it"
            for name in missing
        }
    except Exception as problem:
        # Each reader fails in its own way on a bad file; the rest of the robot is still worth seeing.
        parts = [(Box((MISSING_SIZE,) * 3), MISSING_COLOUR)]
        name = f"mesh {geometry.filename!r} of link {link!r}"
        lines = {"": f"{name} is drawn as a box of {MISSING_SIZE} m: {problem}"}
    for name, line in lines.items():
        if (geometry.filename, name) not in seen:
            seen.add((geometry.filename, name))
            warnings.warn(line, stacklevel=5)
    return list(parts)


@lru_cache(maxsize=512)
def _mesh_parts(
    path: Path, scale: tuple[float, float, float], max_triangles: int
) -> tuple[list[tuple[Drawable, RGBA | None]], tuple[str, ...]]:
    """The parts of a mesh file with their colours, and names of pictures that were not found.

    Kept, so that a file which many shapes show is one geometry of the page.
    """
    surfaces, missing = simplified_surfaces(_surfaces(path), scale, max_triangles)
    return [(Triangles(s.vertices, s.faces, s.colours, s.uv, s.picture), s.rgba) for s in surfaces], missing


def _stand_ins(nodes: list[Node]) -> list[Node]:
    """What is shown of a robot without visuals: collision shapes, else inertia boxes and joint axes."""
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


# ---- the ground ----------------------------------------------------------------------------------


TERRAIN_COLOUR: RGBA = (0.66, 0.68, 0.62, 1.0)
SOLID_COLOUR: RGBA = (0.74, 0.70, 0.63, 1.0)

MOST_LINES = 200
"""Lines of a height field that are drawn along each side: 80,000 triangles."""


def ground_nodes(ground: Ground) -> list[Node]:
    """Nodes of all but the plane."""
    nodes = [] if ground.terrain is None else [_terrain_node(ground.terrain)]
    return nodes + [_solid_node(solid) for solid in ground.shapes]


def _terrain_node(field: HeightField) -> Node:
    z = np.asarray(field.heights)
    rows, columns = (
        np.unique(np.linspace(0, n - 1, min(n, MOST_LINES)).round().astype(int)) for n in z.shape
    )
    z = z[np.ix_(rows, columns)]
    (dx, dy), (x0, y0, z0) = field.cell, field.origin
    x, y = np.meshgrid(x0 + dx * rows, y0 + dy * columns, indexing="ij")
    vertices = np.stack([x, y, z0 + z], axis=-1).reshape(-1, 3)
    number = np.arange(z.size).reshape(z.shape)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    faces = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    return Node("", 0, Triangles(vertices, faces), Placement(), TERRAIN_COLOUR, "ground")


def _solid_node(solid: Solid) -> Node:
    shape = solid.geometry
    if isinstance(shape, Hull):
        shape = hull_triangles(shape.points)
    return Node("", 0, shape, solid.placement, solid.rgba or SOLID_COLOUR, "ground")


def hull_triangles(points: np.ndarray) -> Triangles:
    """The triangles of a convex hull, wound outward."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    a, b, c = (points[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return Triangles(points, faces)
