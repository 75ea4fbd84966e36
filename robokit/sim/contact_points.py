"""Contact points of a robot, from its collision shapes.

    shape       points
    sphere      1, its centre, with its radius
    capsule     2, the ends of its axis, with its radius
    box         8, its corners
    cylinder    16, eight on each rim
    mesh        at most 32 corners of its convex hull

The points of cylinders and meshes are thinned to max_points in all; those farthest apart stay.

If no link has a collision shape, the visual shapes are used. If no link has a shape at all, or the meshes of
a link cannot be read, the points are the eight corners of the box that has the link's mass and inertia.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

from robokit.errors import ModelError
from robokit.meshes.hull import hull_corners
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from robokit.model.inertia_box import box_edges
from robokit.model.parts import Link
from robokit.model.robot import Robot

RIM = 8
MOST, LEAST = 32, 2
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


@dataclass(frozen=True)
class ContactPoints:
    """K points that can touch the ground.

    Attributes:
        body: (K,) number of the body.
        position: (K, 3) in body coordinates [m]; (B, K, 3) for a robot with samples, where some point is
            a corner of the box of an inertia.
        radius: (K,) [m]; a sphere's point is its centre.
        link: K link names.
        of_inertia: (K,) whether it is a corner of the box of an inertia, so that another inertia moves it.
    """

    body: np.ndarray
    position: np.ndarray
    radius: np.ndarray
    link: tuple[str, ...]
    of_inertia: np.ndarray

    def __len__(self) -> int:
        return len(self.body)

    def by_body(self, n: int) -> list[list[tuple[tuple[float, float, float], float]]]:
        """(position, radius) of the points of each body 0..n, of the first sample where there are some."""
        rows: list[list[tuple[tuple[float, float, float], float]]] = [[] for _ in range(n + 1)]
        for i, p, r in zip(self.body, self.sample(0).position, self.radius, strict=True):
            rows[i].append(((float(p[0]), float(p[1]), float(p[2])), float(r)))
        return rows

    def sample(self, k: int) -> ContactPoints:
        """The points of sample k."""
        return self if self.position.ndim == 2 else replace(self, position=self.position[k])

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

    Raises:
        ModelError: a link that touches with the box of its inertia has no mass in some samples.

    Warns:
        UserWarning: meshes that cannot be read, once for the robot; their links touch with other shapes.
    """
    return robot.derived.get(("contact points", max_points), lambda: _contact_points(robot, max_points))


def _contact_points(robot: Robot, max_points: int) -> ContactPoints:
    links = [link for link in robot.links if link.body > 0]
    source = next((s for s in ("collisions", "visuals") if any(getattr(k, s) for k in links)), None)
    fixed: list[tuple[Link, np.ndarray, float]] = []
    boxes: dict[int, Link] = {}
    hulls: list[tuple[Link, np.ndarray]] = []
    unread: list[tuple[Link, Exception]] = []
    for link in links:
        parts = _split(link, getattr(link, source), unread) if source else None
        if parts is None:
            if _has_mass(link):
                boxes[len(fixed)] = link
                fixed += [(link, corner, 0.0) for corner in CORNERS]
            continue
        whole, thinned = parts
        fixed += [(link, p, r) for p, r in whole]
        hulls += [(link, corners) for corners in thinned]
    if unread:
        first, error = unread[0]
        others = len({link.name for link, _ in unread}) - 1
        more = f" (and meshes of {others} more link{'s' * (others != 1)})" if others else ""
        warnings.warn(
            f"link {first.name!r}: {error}{more}; such a link touches the ground with its other shapes "
            "or its inertia's box",
            stacklevel=5,  # the caller of contact_points
        )
    for (link, corners), chosen in zip(
        hulls, _spread([c for _, c in hulls], max_points - len(fixed)), strict=True
    ):
        fixed += [(link, corners[k], 0.0) for k in chosen]
    place = [link.placement for link, _, _ in fixed]
    position = [P.rotation @ p + P.position for P, (_, p, _) in zip(place, fixed, strict=True)]
    at = np.array(position, dtype=float).reshape(-1, 3)
    of_inertia = np.zeros(len(fixed), bool)
    if boxes and robot.samples is not None:
        at = np.tile(at, (robot.samples, 1, 1))
    for k, link in boxes.items():
        of_inertia[k : k + len(CORNERS)] = True
        at[..., k : k + len(CORNERS), :] = _inertia_corners(link)
    return ContactPoints(
        np.array([link.body for link, _, _ in fixed], dtype=int),
        at,
        np.array([r for _, _, r in fixed], dtype=float),
        tuple(link.name for link, _, _ in fixed),
        of_inertia,
    )


def _split(
    link: Link, shapes: tuple[Shape, ...], unread: list[tuple[Link, Exception]]
) -> tuple[list[tuple[np.ndarray, float]], list[np.ndarray]] | None:
    """Points that all stay, and corners of cylinders and meshes that may be thinned, in the link frame.

    Meshes that cannot be read are added to ``unread``. None if no other shape is left.
    """
    points: list[tuple[np.ndarray, float]] = []
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
        simple = tuple(s for s in others if not isinstance(s.geometry, Mesh))
        return _split(link, simple, unread) if simple else None
    return points, hulls


def primitive_points(shape: Box | Sphere | Cylinder | Capsule) -> tuple[np.ndarray, float]:
    """(K, 3) points in the shape's frame [m], and their radius [m]."""
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius
    if isinstance(shape, Capsule):
        h = 0.5 * shape.length
        return np.array([[0.0, 0.0, -h], [0.0, 0.0, h]]), shape.radius
    if isinstance(shape, Box):
        return 0.5 * CORNERS * np.array(shape.size), 0.0
    turns = 2.0 * math.pi / RIM * np.arange(RIM)
    rim = shape.radius * np.stack([np.cos(turns), np.sin(turns), np.zeros(RIM)], axis=1)
    end = np.array([0.0, 0.0, 0.5 * shape.length])
    return np.concatenate([rim - end, rim + end]), 0.0


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
    at_com = _turned(axes[..., None, :, :], CORNERS * half) + np.asarray(link.com)[..., None, :]
    return _turned(link.placement.rotation, at_com) + link.placement.position


def _turned(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """R p for points (..., 3)."""
    return R[..., 0] * p[..., :1] + R[..., 1] * p[..., 1:2] + R[..., 2] * p[..., 2:]


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
