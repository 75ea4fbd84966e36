"""A robot and the ground as lists of nodes: coloured shapes placed on bodies; and poses of the bodies."""

from __future__ import annotations

import base64
import io
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from robokit import disk_cache
from robokit.collision.shapes import outward_triangles
from robokit.dataclass_tools import frozen
from robokit.dynamics import forward_kinematics
from robokit.errors import ShapeError, warn
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.surface import (
    Picture,
    Surface,
    array_text,
    as_arrays,
    of_arrays,
    simplified_surfaces,
    text_array,
)
from robokit.meshes.untrusted import (
    content_key,
    note_names,
    noting_names,
    open_picture,
    state_beside,
)
from robokit.model.geometry import RGBA, Box, Capsule, Cylinder, Geometry, Mesh, Placement, Shape, Sphere
from robokit.model.inertial_parameters import equivalent_box
from robokit.model.parts import Link
from robokit.model.robot import Robot
from robokit.sim.ground import Ground, Hull
from robokit.spatial.rotation import rotation_to_quat_wxyz
from robokit.stages import stage

# ==== A thing to draw: a shape with a colour, at a placement on a body ============================

Role = Literal["visual", "collision", "inertia", "axis", "ground"]


@frozen
class Triangles:
    """A triangle mesh in memory."""

    vertices: np.ndarray  # (n, 3) [m]
    faces: np.ndarray  # vertex numbers, (m, 3)
    colours: np.ndarray | None = None  # of the vertices, (n, 3), 0 to 255; or None
    uv: np.ndarray | None = None  # picture coordinates of the faces' corners, (m, 3, 2); or None
    picture: Picture | None = None  # the mesh's own picture, a path or the content of a file; or None


Drawable = Box | Sphere | Cylinder | Capsule | Triangles


@frozen
class Node:
    """One thing to draw.

    Attributes:
        link: name of the link it belongs to.
        body: number of the body that carries it, 0 for the world or the fixed root.
        geometry: primitive or triangles, in the node's own frame.
        placement: the node's frame in the body's frame.
        rgba: colour, each 0 to 1 (sRGB).
        role: "visual" for the robot, "ground" for the ground; the others are overlays.
        picture: the texture, a path or the content of a file; or None.
    """

    link: str
    body: int
    geometry: Drawable
    placement: Placement
    rgba: RGBA
    role: Role
    picture: Picture | None = None


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


# ---- pictures ------------------------------------------------------------------------------------

LARGEST = 512  # pixels along the longer side in a page


def data_uri(picture: str | Path | bytes) -> str:
    """A picture, by its path or content, as text that a browser opens: JPEG, or PNG where it is transparent.

    Raises ValueError for another format or too many pixels, OSError for a file that is no picture.
    """
    image = open_picture(Path(picture) if isinstance(picture, str) else picture)
    clear = "A" in image.getbands() or "transparency" in image.info
    if image.mode in ("L", "RGB", "RGBA") and "transparency" not in image.info:
        image.thumbnail((LARGEST, LARGEST))  # before it is copied
    small = image.convert("RGBA" if clear else "RGB")
    if clear and small.getchannel("A").getextrema() == (255, 255):
        small, clear = small.convert("RGB"), False
    small.thumbnail((LARGEST, LARGEST))
    content = io.BytesIO()
    small.save(content, "PNG") if clear else small.save(content, "JPEG", quality=85)
    kind = "png" if clear else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"


def picture_of(node: Node) -> str | None:
    """The picture of a node, as :func:`data_uri` gives it; None without one, or with a warning why not."""
    try:
        return None if node.picture is None else data_uri(node.picture)
    except Exception as problem:  # each reader fails in its own way on a bad file
        name = "inside a mesh" if isinstance(node.picture, bytes) else str(node.picture)
        warn(f"picture {name!r} of link {node.link!r} is left out: {problem}", UserWarning)
        return None


# ==== motion as numbers to draw: poses of bodies, frames at display rate, the box round a whole motion ====
# A pose is seven numbers: position x y z [m], then quaternion x y z w (the order of the page's 3D library).

MAX_FPS = 60.0
MAX_FRAMES = 1200


def body_poses(robot: Robot, q: np.ndarray) -> np.ndarray:
    """World poses of bodies 0..N at configurations (T, nq): (T, N + 1, 7) [m, unit quaternion xyzw]."""
    q = np.ascontiguousarray(np.atleast_2d(np.asarray(q, dtype=float)))
    poses = forward_kinematics(robot, q)
    rotation = np.asarray(poses.rotation).reshape(len(q), -1, 3, 3)
    position = np.asarray(poses.position).reshape(len(q), -1, 3)
    result = np.zeros((len(q), len(robot.tree.parent), 7))
    result[:, :, 6] = 1.0
    first = {link.body: k for k, link in reversed([*enumerate(robot.links)])}
    bodies, links = list(first), list(first.values())
    body_in_link = [robot.links[k].placement.inverse() for k in links]
    turned, moved = (np.array([getattr(each, k) for each in body_in_link]) for k in ("rotation", "position"))
    of_links = rotation[:, links]
    result[:, bodies, :3] = position[:, links] + (of_links @ moved[..., None])[..., 0]
    result[:, bodies, 3:] = quaternions_xyzw(of_links @ turned)
    return result


def pose_numbers(placement: Placement) -> list[float]:
    """A placement as seven numbers, rounded to a micrometre and a microradian."""
    w, *xyz = rotation_to_quat_wxyz(np.asarray(placement.rotation, dtype=float).tolist())
    size = math.hypot(w, *xyz)
    numbers = [*np.asarray(placement.position, dtype=float), *(x / size for x in (*xyz, w))]
    return [round(float(number), 7) for number in numbers]


def relative_pose(parent: np.ndarray, child: np.ndarray) -> list[float]:
    """Pose of a child in its parent from the world poses of both, (7,) each."""
    inverse = parent[3:] * np.array([-1.0, -1.0, -1.0, 1.0])
    position = rotate(inverse, child[:3] - parent[:3])
    a, b, s, t = inverse[:3], child[3:6], inverse[3], child[6]
    quat = np.append(s * b + t * a + np.cross(a, b), s * t - a @ b)
    return [round(float(x), 9) for x in (*position, *quat)]


def quaternions_xyzw(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions (T, ..., 4) of rotations (T, ..., 3, 3), without jumps of sign along the first
    axis.
    """
    w, *xyz = rotation_to_quat_wxyz(np.moveaxis(np.asarray(rotation, dtype=float), (-2, -1), (0, 1)))
    quat = np.stack([*xyz, w], axis=-1)
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    if len(quat) > 1:
        turned = np.sum(quat[1:] * quat[:-1], axis=-1) < 0
        quat[1:] *= np.where(np.cumsum(turned, axis=0) % 2, -1.0, 1.0)[..., None]
    return quat


def frame_indices(t: np.ndarray, max_fps: float = MAX_FPS) -> np.ndarray:
    """Which samples at increasing times (T,) [s] become frames, the first and the last among them.

    Raises ShapeError if ``max_fps``, the largest number of frames a second, is not positive.
    """
    if not max_fps > 0:
        raise ShapeError(f"max_fps: expected a positive number of frames per second, got {max_fps!r}")
    t = np.asarray(t, dtype=float)
    if len(t) < 2:
        return np.arange(len(t))
    count = int(min(MAX_FRAMES, np.ceil((t[-1] - t[0]) * max_fps) + 1))
    if count >= len(t):
        return np.arange(len(t))
    wanted = np.linspace(t[0], t[-1], max(count, 2))
    right = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    nearest = np.where(wanted - t[right - 1] < t[right] - wanted, right - 1, right)
    return increasing(np.concatenate([[0], nearest, [len(t) - 1]]))


def increasing(indices: np.ndarray) -> np.ndarray:
    """Indices from 0 in increasing order, each once; ``np.unique`` would import ``np.ma``."""
    return np.flatnonzero(np.bincount(indices))


def bounds(nodes: list[Node], poses: np.ndarray, role: Role = "visual") -> np.ndarray:
    """Lowest and highest corner, (2, 3) [m], of the nodes of a role at body poses (T, N + 1, 7).

    A unit box about the origin where nothing is drawn.
    """
    corners: dict[int, list[np.ndarray]] = {}
    for node in nodes:
        if node.role != role:
            continue
        eight = _eight(*local_box(node.geometry))
        corners.setdefault(node.body, []).append(eight @ node.placement.rotation.T + node.placement.position)
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for body, points in corners.items():
        cloud = np.concatenate(points)
        cloud = _eight(cloud.min(axis=0), cloud.max(axis=0))
        world = rotate(poses[:, body, None, 3:], cloud[None]) + poses[:, body, None, :3]
        low, high = np.minimum(low, world.min(axis=(0, 1))), np.maximum(high, world.max(axis=(0, 1)))
    if not np.all(np.isfinite(low)):
        return np.array([[-0.5] * 3, [0.5] * 3])
    return np.stack([low, high])


def _eight(low: Any, high: Any) -> np.ndarray:
    """The corners of a box, (8, 3), from its lowest and highest one."""
    return np.array(list(itertools.product(*zip(low, high, strict=True))))


def sane_frames(t: np.ndarray, poses: np.ndarray, size: float) -> int:
    """How many frames at the start can be trusted, 1..T: a view must not be fitted to a motion that blew up.

    A frame is trusted while all its numbers are finite and no body is farther from its first place than twice
    the first speed and three times the Earth's gravity could have carried it, and ten sizes of the robot [m].
    ``t`` are the times, (T,) [s], and ``poses`` those of the bodies, (T, N + 1, 7).
    """
    t = np.asarray(t, dtype=float) - t[0]
    position = poses[:, 1:, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.linalg.norm(position - position[0], axis=2).max(axis=1, initial=0.0)
        speed = moved[1] / t[1] if len(t) > 1 and t[1] > 0 and np.isfinite(moved[1]) else 0.0
        reached = 10.0 * size + 2.0 * speed * t + 1.5 * 9.81 * t**2
        sane = np.isfinite(poses).all(axis=(1, 2)) & (moved <= reached)
    sane[0] = True
    return int(np.argmin(sane)) if not sane.all() else len(t)


def rotate(quat_xyzw: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors turned by unit quaternions, broadcast over leading axes, (..., 3)."""
    imaginary, real = quat_xyzw[..., :3], quat_xyzw[..., 3:]
    twice = 2.0 * np.cross(imaginary, vectors)
    return vectors + real * twice + np.cross(imaginary, twice)


# ==== what there is to draw: a robot as a list of nodes, each a shape at a placement on a body ====
# Only bodies move, so the shapes of a link that is welded to a body are placed on that body. A robot is shown
# by its visuals. One without visuals is shown by its collision shapes, and one without those by its inertia
# boxes and joint axes, so that a scene is never empty.

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

MISSING_SIZE = 0.1  # edge of the box that stands for a mesh that could not be read [m]
LEAST_EDGE = 1e-3  # edge of an inertia box, at least [m]: a thinner one could not be seen


Sized = tuple[Path, tuple[float, ...]]  # a mesh file and its scale: files are drawn once in each size
LEAST_SIZE, LONGEST_AXIS_SIZE = 0.02, 3.0  # of a robot [m]; most where joint axes are drawn to scale


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
        most = _shares(robot, max_triangles)
        nodes: list[Node] = []
        seen: set[tuple[str, str]] = set()
        for link in robot.links:
            nodes += _shape_nodes(link, link.visuals, "visual", DEFAULT_COLOUR, most, seen)
            nodes += _shape_nodes(link, link.collisions, "collision", COLLISION_COLOUR, most, seen)
            if (inertia := inertia_box(link)) is not None:
                nodes.append(Node(link.name, link.body, *inertia, INERTIA_COLOUR, "inertia"))
    _read.cache_clear()
    size = min(drawn_size(robot, nodes), LONGEST_AXIS_SIZE)
    # A thin rod along the axis of each joint that has one, in the body that it moves.
    rod = Cylinder(0.006 * size, 0.22 * size)
    for joint in robot.body_joints:
        if joint.kind not in ("floating", "fixed", "spherical"):
            place = Placement(rotation_from_z(np.asarray(joint.axis, dtype=float)))
            nodes.append(Node(joint.child_link, joint.body, rod, place, AXIS_COLOUR, "axis"))
    return nodes + _stand_ins(nodes)


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
    """Number of triangles of a mesh file, kept on disk; 0 if it cannot be read."""

    def made() -> list[np.ndarray]:
        return [np.array(sum(len(surface.faces) for surface in _surfaces(path)))]

    try:
        (count,) = _kept("triangles of a mesh", path, (), made)
    except Exception:  # whoever draws it tells why
        return 0
    return int(count)


def _kept(
    label: str, path: Path, key: Sequence[Any], make: Callable[[], Sequence[np.ndarray]]
) -> list[np.ndarray]:
    """Arrays that are made of a mesh file, kept by its content and what it uses of the files that it names.

    Their names are known once it was read, and kept likewise: lists of materials name pictures. ``key`` is
    all else that they depend on, as for ``disk_cache.digest``; ``make`` reads the file by :func:`_surfaces`.
    """
    made: list[Sequence[np.ndarray]] = []
    found: list[np.ndarray] = []

    def noted() -> list[np.ndarray]:
        if not made:
            with noting_names() as names:
                made.append(make())
            found.extend(map(text_array, names))
        return found

    content, beside = content_key(path) or (), list[str]()
    # What it names, and what that names; an STL file has nothing but triangles.
    for _ in range(0 if path.suffix.lower() == ".stl" else 2):
        names = disk_cache.arrays("names in a mesh", ("names", *content, *beside), noted)
        if not names:
            break
        beside = state_beside(path.parent, map(array_text, names))
    return disk_cache.arrays(label, (label, *content, *beside, *key), lambda: made[0] if made else make())


def _surfaces(path: Path) -> list[Surface]:
    """The surfaces of a mesh file, read once for a scene."""
    surfaces, names = _read(path)
    note_names(names)
    return surfaces


@cache
def _read(path: Path) -> tuple[list[Surface], list[str]]:
    """Surfaces of a mesh file, and the names of files that were looked for beside it."""
    with noting_names() as names:
        return list(read_mesh(path)), list(names)


def inertia_box(link: Link) -> tuple[Box, Placement] | None:
    """The equivalent inertia box of a link, placed on its body; None for a link without mass."""
    equivalent = equivalent_box(link.mass, link.inertia)
    if equivalent is None:
        return None
    x, y, z = np.maximum(equivalent.size, LEAST_EDGE).tolist()
    return Box((x, y, z)), link.placement @ Placement(equivalent.axes, np.asarray(link.com, dtype=float))


def rotation_from_z(axis: np.ndarray) -> np.ndarray:
    """A rotation whose third column is the given direction, (3, 3)."""
    z = axis / np.linalg.norm(axis)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def drawn_size(robot: Robot, nodes: list[Node]) -> float:
    """The length that overlays are scaled by: half the diagonal of what is drawn at the neutral pose [m].

    Of the nodes count the visuals, or collision shapes where there are none, else inertia boxes; and the
    bodies' places.
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
            warn(line, UserWarning)
    return list(parts)


@lru_cache(maxsize=512)
def _mesh_parts(
    path: Path, scale: tuple[float, float, float], max_triangles: int
) -> tuple[list[tuple[Drawable, RGBA | None]], tuple[str, ...]]:
    """The parts of a mesh file with their colours, and names of pictures that were not found.

    Kept, so that a file which many shapes show is one geometry of the page; on disk, too.
    """

    def made() -> list[np.ndarray]:
        surfaces, missing = simplified_surfaces(_surfaces(path), scale, max_triangles)
        return [text_array("\0".join(missing)), *as_arrays(surfaces, path.parent)]

    names, *arrays = _kept("drawn mesh", path, (*scale, max_triangles), made)
    missing = tuple(filter(None, array_text(names).split("\0")))
    surfaces = of_arrays(arrays, path.parent)
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
        Node(node.link, node.body, node.geometry, node.placement, shown[node.role], "visual")
        for node in nodes
        if node.role in shown
    ]


# ---- the ground ----------------------------------------------------------------------------------

TERRAIN_COLOUR: RGBA = (0.66, 0.68, 0.62, 1.0)
SOLID_COLOUR: RGBA = (0.74, 0.70, 0.63, 1.0)

MOST_LINES = 200  # lines of a height field that are drawn along each side: 80,000 triangles


def ground_nodes(ground: Ground) -> list[Node]:
    """Nodes of all but the plane."""
    nodes = []
    if (field := ground.terrain) is not None:
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
        nodes.append(Node("", 0, Triangles(vertices, faces), Placement(), TERRAIN_COLOUR, "ground"))
    for solid in ground.shapes:
        shape = solid.geometry
        drawn = hull_triangles(shape.points) if isinstance(shape, Hull) else shape
        nodes.append(Node("", 0, drawn, solid.placement, solid.rgba or SOLID_COLOUR, "ground"))
    return nodes


def hull_triangles(points: np.ndarray) -> Triangles:
    """The triangles of a convex hull, wound outward."""
    from scipy.spatial import ConvexHull

    return Triangles(points, outward_triangles(ConvexHull(points)))
