"""Contact points of a robot, from its collision shapes.

    shape       points
    sphere      1, its centre, with its radius
    capsule     2, the ends of its axis, with its radius
    box         4 that move, each the lower of two opposite corners
    cylinder    5 that move: the lowest of each rim, and three more of the lower rim to stand on
    all but meshes  besides, points that face solids of the ground; cylinders only if they are long
    mesh        at most 5 that move, each the lowest of some corners of its convex hull; a
                polygon of many corners, as a wheel's, has a cylinder's points instead

A mesh's hull is thinned until it is within shape_error of the true one, in every direction. Shapes of one
body are seen together: what is inside the hull of the others has no points.

If no link has a collision shape, the visual shapes are used. If no link has a shape at all, or the meshes of
a link cannot be read, the points are the eight corners of the box that has the link's mass and inertia.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robokit.errors import ModelError
from robokit.meshes.hull import hull_corners
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere, turned
from robokit.model.inertia_box import box_edges
from robokit.model.parts import Link
from robokit.model.robot import Robot
from robokit.sim.shapes.body_surface import BodySurface, shapes_of
from robokit.sim.shapes.contact_patches import MOST
from robokit.sim.shapes.contact_shapes import Ball, ContactShape, Rim, cylinder_points, facing_points
from robokit.stages import stage

LEAST = 2
"""Points that the hulls of a link have at least, whatever max_points is."""

SHAPE_ERROR = 1e-3
"""Largest error of a thinned hull by default [m]."""

CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


@dataclass(frozen=True, eq=False)
class ContactPoints:
    """K points that can touch the ground.

    Attributes:
        body: (K,) number of the body.
        position: (K, 3) in body coordinates [m]: of a ball its centre, else the centre of a ball around all
            places of the point; (B, K, 3) for a robot with samples, where some point is a corner of the box
            of an inertia.
        radius: (K,) of balls and corners [m], else 0.
        link: K link names.
        of_inertia: (K,) whether it is a corner of the box of an inertia, so that another inertia moves it.
        shape: K shapes, in body coordinates; ``shape[k].at(n)`` is the point for the ground's normal n.
        error: largest difference of the surface from the true shapes in any direction [m].
    """

    body: np.ndarray
    position: np.ndarray
    radius: np.ndarray
    link: tuple[str, ...]
    of_inertia: np.ndarray
    shape: tuple[ContactShape, ...]
    error: float = 0.0

    def __len__(self) -> int:
        return len(self.body)

    def by_body(self, n: int) -> list[list[ContactShape]]:
        """Shapes of the points of each body 0..n, of the first sample where there are some."""
        rows: list[list[ContactShape]] = [[] for _ in range(n + 1)]
        for k, i in enumerate(self.body):
            rows[i].append(self.shape[k])
        return rows

    def sample(self, k: int) -> ContactPoints:
        """The points of sample k."""
        if self.position.ndim == 2:
            return self
        position = self.position[k]
        shape = [
            Ball(tuple(p.tolist())) if moves else s
            for p, s, moves in zip(position, self.shape, self.of_inertia, strict=True)
        ]
        return replace(self, position=position, shape=tuple(shape))

    def order(self, n: int) -> list[int]:
        """Numbers of the points, body by body."""
        return [k for i in range(n + 1) for k in np.flatnonzero(self.body == i).tolist()]


def contact_points(
    robot: Robot,
    max_points: int | None = None,
    shape_error: float = SHAPE_ERROR,
    plane: bool = True,
    solids: Sequence[tuple[int, str]] = (),
) -> ContactPoints:
    """The robot's contact points, computed once.

    Points of links that do not move (body 0) are left out.

    Args:
        robot: the robot.
        max_points: what spheres, capsules, boxes and cylinders leave of them is spread over meshes, at least
            2 to each link; None for no limit. The error of the surface does not depend on it: with fewer
            points, more corners share one.
        shape_error: of a mesh's hull, in any direction [m].
        plane: whether the ground is a plane. If not, only corners near each other share a point, and shapes
            inside the hull of their body stay, for they may touch where the ground is not flat.
        solids: number among the ground's surfaces, and kind, of its solids: shapes of the robot
            have points more that face them. ``max_points`` does not count these.

    Raises:
        ModelError: a link that touches with the box of its inertia has no mass in some samples.

    Warns:
        UserWarning: meshes that cannot be read, once for the robot; their links touch with other shapes.
    """
    given = max_points, shape_error, plane, tuple(solids)
    with stage(f"reading meshes of {robot.name}"):
        return robot.derived.get(("contact points", *given), lambda: _contact_points(robot, *given))


def _contact_points(
    robot: Robot, max_points: int | None, shape_error: float, plane: bool, solids: Sequence[tuple[int, str]]
) -> ContactPoints:
    links = [link for link in robot.links if link.body > 0]
    source = next((s for s in ("collisions", "visuals") if any(getattr(k, s) for k in links)), None)
    surfaces: dict[int, BodySurface] = {}
    boxes: list[Link] = []
    unread: list[tuple[Link, Exception]] = []
    for link in links:
        parts = _split(link, getattr(link, source), unread) if source else None
        if parts is None:
            if _has_mass(link):
                boxes.append(link)
            continue
        P = link.placement
        surface = surfaces.setdefault(link.body, BodySurface([], []))
        surface.exact += [(link, shape.moved(P)) for shape in parts[0]]
        surface.hulls += [(link, turned(P.rotation, corners) + P.position) for corners in parts[1]]
    if unread:
        first, error = unread[0]
        others = len({link.name for link, _ in unread}) - 1
        more = f" (and meshes of {others} more link{'s' * (others != 1)})" if others else ""
        warnings.warn(
            f"link {first.name!r}: {error}{more}; such a link touches the ground with its other shapes "
            "or its inertia's box",
            stacklevel=5,  # the caller of contact_points
        )
    found: list[tuple[Link, ContactShape]] = []
    for most in range(MOST, LEAST - 1, -1):
        found = [x for s in surfaces.values() for x in shapes_of(s, shape_error, plane, most)]
        if max_points is None or len(found) + len(CORNERS) * len(boxes) <= max_points:
            break
    for link in links:
        for shape in getattr(link, source) if source else ():
            found += [(link, point) for point in facing_points(shape, link.placement, solids)]
    return _with_boxes(robot, found, boxes, shape_error if any(s.hulls for s in surfaces.values()) else 0.0)


def _with_boxes(
    robot: Robot, found: list[tuple[Link, ContactShape]], boxes: list[Link], error: float
) -> ContactPoints:
    """The points found, and the corners of the boxes of inertias."""
    K = len(found)
    reach = [shape.reach()[0] for _, shape in found]
    at = np.array([*reach, *([[0.0] * 3] * (len(CORNERS) * len(boxes)))], dtype=float).reshape(-1, 3)
    if boxes and robot.samples is not None:
        at = np.tile(at, (robot.samples, 1, 1))
    for k, link in enumerate(boxes):
        start = K + len(CORNERS) * k
        at[..., start : start + len(CORNERS), :] = _inertia_corners(link)
    first = at if at.ndim == 2 else at[0]
    shapes = [shape for _, shape in found] + [Ball(tuple(p)) for p in first[K:].tolist()]
    of = [link for link, _ in found] + [link for link in boxes for _ in CORNERS]
    return ContactPoints(
        np.array([link.body for link in of], dtype=int),
        at,
        np.array([s.radius if isinstance(s, Ball) else 0.0 for s in shapes], dtype=float),
        tuple(link.name for link in of),
        np.arange(len(of)) >= K,
        tuple(shapes),
        error,
    )


def _split(
    link: Link, shapes: tuple[Shape, ...], unread: list[tuple[Link, Exception]]
) -> tuple[list[Ball | Rim], list[np.ndarray]] | None:
    """Shapes that are what they are, and corners of meshes' hulls, in the link frame.

    Meshes that cannot be read are added to ``unread``. None if no other shape is left.
    """
    points: list[Ball | Rim] = []
    hulls: list[np.ndarray] = []
    missing = False
    for shape in shapes:
        P = shape.placement
        if isinstance(shape.geometry, Mesh):
            try:
                corners = hull_corners(shape.geometry)
            except Exception as error:  # readers of mesh formats raise whatever they like
                unread.append((link, error))
                missing = True
            else:
                hulls.append(turned(P.rotation, corners) + P.position)
        else:
            points += [point.moved(P) for point in primitive_points(shape.geometry)]
    if missing and not points and not hulls:
        others = link.visuals if shapes is not link.visuals else ()
        simple = tuple(s for s in others if not isinstance(s.geometry, Mesh))
        return _split(link, simple, unread) if simple else None
    return points, hulls


def primitive_points(shape: Box | Sphere | Cylinder | Capsule) -> list[Ball | Rim]:
    """Contact points in the shape's frame."""
    if isinstance(shape, Sphere):
        return [Ball((0.0, 0.0, 0.0), shape.radius)]
    if isinstance(shape, Capsule):
        return [Ball((0.0, 0.0, h * shape.length), shape.radius) for h in (-0.5, 0.5)]
    if isinstance(shape, Box):
        return [Ball(tuple(corner)) for corner in (0.5 * CORNERS * np.array(shape.size)).tolist()]
    return list(cylinder_points((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), shape.radius, shape.length))


def _has_mass(link: Link) -> bool:
    """Whether a link has mass, in all samples or in none."""
    some = np.asarray(link.mass) > 0.0
    if some.any() and not some.all():
        raise ModelError(
            f"link {link.name!r} has no shapes to touch the ground with, and in sample {int(some.argmin())} "
            "no mass to guess its size by; give it a collision shape, or mass in all samples"
        )
    return bool(some.all())


def _inertia_corners(link: Link) -> np.ndarray:
    """Corners of the box of even density with the link's mass and inertia, (8, 3) or (B, 8, 3), by body [m].

    Scalar by scalar, so that a sample of many has the bits that it has alone.
    """
    moments, axes = np.linalg.eigh(link.inertia)
    half = 0.5 * box_edges(link.mass, moments)[..., None, :]
    at_com = turned(axes[..., None, :, :], CORNERS * half) + np.asarray(link.com)[..., None, :]
    return turned(link.placement.rotation, at_com) + link.placement.position
