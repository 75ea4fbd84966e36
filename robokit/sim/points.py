"""Contact points of a robot, from its collision shapes.

    sphere 1 (with its radius), capsule 2 (with radius), box 8 corners, cylinder 2 rims of 8,
    mesh: corners of its convex hull, at most 32

A robot of many cylinders and meshes takes only those of their points that are farthest apart.

Links without collision shapes take part with their visuals only if no link of the robot has collision
shapes, and with the box of their inertia if there are no shapes at all.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from robokit.engine import cache
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.meshes import LARGEST, read_mesh
from robokit.model.parts import Link
from robokit.model.robot import Robot

RIM = 8
MOST, LEAST = 32, 2


@dataclass(frozen=True)
class ContactPoints:
    """K points that can touch the ground.

    Attributes:
        body: (K,) number of the body.
        position: (K, 3) in body coordinates [m].
        radius: (K,) [m]; a sphere's point is its centre.
        link: K link names.
    """

    body: np.ndarray
    position: np.ndarray
    radius: np.ndarray
    link: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.body)

    def by_body(self, n: int) -> list[list[tuple[tuple[float, float, float], float]]]:
        """(position, radius) of the points of each body 0..n."""
        rows: list[list[tuple[tuple[float, float, float], float]]] = [[] for _ in range(n + 1)]
        for i, p, r in zip(self.body, self.position, self.radius, strict=True):
            rows[i].append(((float(p[0]), float(p[1]), float(p[2])), float(r)))
        return rows

    def order(self, n: int) -> list[int]:
        """Numbers of the points, body by body."""
        return [k for i in range(n + 1) for k in np.flatnonzero(self.body == i).tolist()]


def contact_points(robot: Robot, max_points: int = 96) -> ContactPoints:
    """The robot's contact points, computed once.

    Points of links that do not move (body 0) are left out.

    Args:
        robot: the robot.
        max_points: what spheres, capsules and boxes leave of them is spread over cylinders and meshes,
            at least 2 to each.

    Warns:
        UserWarning: meshes that cannot be read, once for the robot; their links touch with other shapes.
    """
    known = robot.__dict__.setdefault("_contact_points", {})  # beside the robot's own cached properties
    if max_points not in known:
        known[max_points] = _contact_points(robot, max_points)
    return known[max_points]


def _contact_points(robot: Robot, max_points: int) -> ContactPoints:
    links = [link for link in robot.links if link.body > 0]
    source = next((s for s in ("collisions", "visuals") if any(getattr(k, s) for k in links)), None)
    fixed: list[tuple[Link, np.ndarray, float]] = []
    hulls: list[tuple[Link, np.ndarray]] = []
    unread: list[tuple[Link, Exception]] = []
    for link in links:
        shapes = getattr(link, source) if source else _inertia_box(link)
        whole, thinned = _split(link, shapes, unread)
        fixed += [(link, p, r) for p, r in whole]
        hulls += [(link, corners) for corners in thinned]
    if unread:
        first, error = unread[0]
        others = len({link.name for link, _ in unread}) - 1
        more = f" (and meshes of {others} more link{'s' * (others != 1)})" if others else ""
        warnings.warn(
            f"link {first.name!r}: {error}{more}; such a link touches the ground with its other shapes "
            "or its inertia's box",
            stacklevel=3,
        )
    for (link, corners), chosen in zip(
        hulls, _spread([c for _, c in hulls], max_points - len(fixed)), strict=True
    ):
        fixed += [(link, corners[k], 0.0) for k in chosen]
    place = [link.placement for link, _, _ in fixed]
    position = [P.rotation @ p + P.position for P, (_, p, _) in zip(place, fixed, strict=True)]
    return ContactPoints(
        np.array([link.body for link, _, _ in fixed], dtype=int),
        np.array(position, dtype=float).reshape(-1, 3),
        np.array([r for _, _, r in fixed], dtype=float),
        tuple(link.name for link, _, _ in fixed),
    )


def _split(
    link: Link, shapes: tuple[Shape, ...], unread: list[tuple[Link, Exception]]
) -> tuple[list[tuple[np.ndarray, float]], list[np.ndarray]]:
    """Points that all count, and corners of cylinders and meshes that may be thinned, in the link frame.

    Meshes that cannot be had are added to ``unread``.
    """
    points: list[tuple[np.ndarray, float]] = []
    hulls: list[np.ndarray] = []
    missing = False
    for shape in shapes:
        P = shape.placement
        if isinstance(shape.geometry, Mesh):
            try:
                corners = _hull(shape.geometry)
            except Exception as error:  # readers of mesh formats raise whatever they like
                unread.append((link, error))
                missing = True
            else:
                hulls.append(corners @ P.rotation.T + P.position)
        else:
            local, radius = primitive_points(shape.geometry)
            local = local @ P.rotation.T + P.position
            if isinstance(shape.geometry, Cylinder):
                hulls.append(local)
            else:
                points += [(p, radius) for p in local]
    if missing and not points and not hulls:
        others = link.visuals if shapes is not link.visuals else ()
        simple = tuple(s for s in others if not isinstance(s.geometry, Mesh)) or _inertia_box(link)
        return _split(link, simple, unread)
    return points, hulls


def primitive_points(shape: Box | Sphere | Cylinder | Capsule) -> tuple[np.ndarray, float]:
    """(K, 3) points in the shape's frame [m], and their radius [m]."""
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius
    if isinstance(shape, Capsule):
        h = 0.5 * shape.length
        return np.array([[0.0, 0.0, -h], [0.0, 0.0, h]]), shape.radius
    if isinstance(shape, Box):
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return 0.5 * signs * np.array(shape.size), 0.0
    turns = 2.0 * math.pi / RIM * np.arange(RIM)
    rim = shape.radius * np.stack([np.cos(turns), np.sin(turns), np.zeros(RIM)], axis=1)
    end = np.array([0.0, 0.0, 0.5 * shape.length])
    return np.concatenate([rim - end, rim + end]), 0.0


def _inertia_box(link: Link) -> tuple[Shape, ...]:
    """The box of even density with the link's mass and inertia."""
    if link.mass <= 0.0:
        return ()
    moments, axes = np.linalg.eigh(link.inertia)
    squares = 6.0 / link.mass * (moments.sum() - 2.0 * moments)
    x, y, z = np.sqrt(np.maximum(squares, 0.0)).tolist()
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return (Shape(Box((x, y, z)), Placement(axes, link.com)),)


def _hull(mesh: Mesh) -> np.ndarray:
    """Corners of a mesh's convex hull, (n, 3) in the shape's frame; raises where it cannot be had."""
    path = mesh.path
    if path is None:
        raise FileNotFoundError(f"mesh {mesh.filename!r} was not found")

    def made() -> list[np.ndarray]:
        import trimesh

        used = [s.vertices[np.unique(s.faces)] for s in read_mesh(path) if len(s.faces)]
        if not used:
            raise ValueError(f"mesh {mesh.filename!r} holds no triangles")
        return [np.asarray(trimesh.PointCloud(np.concatenate(used)).convex_hull.vertices, dtype=float)]

    if path.suffix.lower() == ".gltf" or path.stat().st_size > LARGEST:
        (corners,) = made()
    else:
        (corners,) = cache.arrays("convex hull", ("hull", path.suffix, path.read_bytes()), made)
    if not len(corners):
        raise ValueError(f"mesh {mesh.filename!r} holds no points")
    return corners * np.array(mesh.scale)


def _spread(hulls: list[np.ndarray], budget: int) -> list[list[int]]:
    """Farthest-point sampling of several hulls at once: the next point goes where the largest gap is."""
    chosen: list[list[int]] = []
    gaps: list[np.ndarray] = []
    for corners in hulls:
        first = int(np.argmax(((corners - corners.mean(axis=0)) ** 2).sum(axis=1)))
        chosen.append([first])
        gaps.append(np.linalg.norm(corners - corners[first], axis=1))
    spent = len(hulls)
    while True:
        open_hulls = [
            k
            for k, row in enumerate(chosen)
            if len(row) < MOST and gaps[k].max() > 0.0 and (spent < budget or len(row) < LEAST)
        ]
        if not open_hulls:
            return chosen
        k = max(open_hulls, key=lambda k: (len(chosen[k]) < LEAST, gaps[k].max()))
        new = int(np.argmax(gaps[k]))
        chosen[k].append(new)
        spent += 1
        gaps[k] = np.minimum(gaps[k], np.linalg.norm(hulls[k] - hulls[k][new], axis=1))
