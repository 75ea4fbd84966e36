"""Extents of shapes: bounding boxes and volumes of links, and of links that are welded together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from robokit.urdf.checks.structure import LinkTree
from robokit.urdf.description import LinkDescription, Origin, RobotDescription

MeshBox = Callable[[str], tuple[np.ndarray, np.ndarray] | None]
"""File name of a mesh as written -> lowest and highest corner in its file's frame, or None."""


LARGEST = 1e50
"""Longer lengths [m] are not judged: their powers overflow."""


@dataclass(frozen=True)
class Extent:
    """The room that shapes take, in one frame.

    Attributes:
        low, high: corners of the bounding box, (3,) [m].
        most: volume that the shapes cannot exceed [m^3].
        least: volume that they have at least, that of the largest; 0 where only boxes are known [m^3].
        reach: squared radius of a circle that holds their outline seen along each axis, (3,) [m^2]. No mass
            inside has a larger moment about its centre of mass than the mass times that: the mean square
            distance from the mean is at most that from any other point, and so from the circle's centre.
    """

    low: np.ndarray
    high: np.ndarray
    most: float
    least: float
    reach: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return self.high - self.low


Pose = tuple[np.ndarray, np.ndarray]
"""Rotation (3, 3) and position (3,) [m] of a frame in another."""

HERE: Pose = (np.eye(3), np.zeros(3))


def compose(outer: Pose, origin: Origin) -> Pose:
    """Pose of an origin's frame, given in a frame whose pose is ``outer``."""
    R, p = outer
    inner = origin.rotation() if origin.rotated else np.eye(3)
    return R @ inner, R @ np.array(origin.xyz) + p


def link_extent(link: LinkDescription, pose: Pose = HERE, mesh_box: MeshBox | None = None) -> Extent | None:
    """The room of all shapes of a link, or None where it has none or one whose size is not known.

    Args:
        link: visuals and collisions count alike; of the volumes the larger of the two sums is taken.
        pose: of the link in the frame of the result.
        mesh_box: gives the boxes of meshes; without it a mesh makes the room unknown.
    """
    low, high = np.full(3, math.inf), np.full(3, -math.inf)
    sums, largest = [0.0, 0.0], 0.0
    outlines: dict[tuple, np.ndarray] = {}  # of different shapes
    for kind, shapes in enumerate((link.visuals, link.collisions)):
        for shape in shapes:
            local = _local_box(shape.geometry, mesh_box)
            if local is None or not np.abs(local).max() < LARGEST:
                return None
            R, p = compose(pose, shape.origin)
            middle, half = R @ (0.5 * (local[0] + local[1])) + p, _half(shape.geometry, R, local)
            low, high = np.minimum(low, middle - half), np.maximum(high, middle + half)
            volume = _volume(shape.geometry, local)
            sums[kind] += volume
            if not isinstance(shape.geometry, Mesh):
                largest = max(largest, volume)
            if len(outlines) < 2:
                outlines[shape.geometry, shape.origin[:3]] = _outline(shape.geometry, R)
    if not np.any(high > low) or not np.all(np.abs(np.append(low, high)) < LARGEST):
        return None
    reach = _half_diagonals(high - low)
    if len(outlines) == 1:
        reach = np.minimum(reach, *outlines.values())
    return Extent(low, high, min(max(sums), float(np.prod(high - low))), largest, reach)


def union(extents: Iterable[Extent]) -> Extent:
    """The room of several extents of one frame together."""
    parts = list(extents)
    low, high = np.min([e.low for e in parts], axis=0), np.max([e.high for e in parts], axis=0)
    most = min(sum(e.most for e in parts), float(np.prod(high - low)))
    return Extent(low, high, most, max(e.least for e in parts), _half_diagonals(high - low))


def _half_diagonals(size: np.ndarray) -> np.ndarray:
    """Squares of half the diagonals of a box's faces across each axis, (3,) [m^2]."""
    return ((size**2).sum() - size**2) / 4.0


def _outline(geometry: Geometry, R: np.ndarray) -> np.ndarray:
    """Squared radius of the circle round one round shape, seen along each axis of the result, (3,) [m^2]."""
    if isinstance(geometry, (Box, Mesh)):
        return np.full(3, math.inf)  # the box round it says as much
    r = abs(geometry.radius)
    if isinstance(geometry, Sphere):
        return np.full(3, r * r)
    along = np.abs(R[:, 2])
    if isinstance(geometry, Capsule):
        seen = 0.5 * abs(geometry.length) * np.sqrt(np.maximum(0.0, 1.0 - along**2))  # half of its axis
        return (seen + r) ** 2
    return np.where(along > 1.0 - 1e-12, r * r, math.inf)  # from the side the box says as much


@dataclass(frozen=True)
class Welded:
    """The rigid body that a link belongs to.

    Attributes:
        links: its links.
        poses: link name -> its pose in the frame of the first.
    """

    links: list[LinkDescription]
    poses: dict[str, Pose]

    @property
    def mass(self) -> float:
        """Sum of what its links weigh [kg]."""
        return sum(max(link.inertial.mass, 0.0) for link in self.links if link.inertial)

    def extent(self, mesh_box: MeshBox | None = None) -> Extent | None:
        """The room of all its shapes in the frame of the first link; None where one is not known."""
        extents = []
        for link in self.links:
            extent = link_extent(link, self.poses[link.name], mesh_box)
            if extent is not None:
                extents.append(extent)
            elif link.visuals or link.collisions:
                return None
        return union(extents) if extents else None


def welded_bodies(robot: RobotDescription, tree: LinkTree) -> dict[str, Welded]:
    """Link name -> the body of all links that fixed joints join to it."""
    links = {link.name: link for link in robot.links}
    bodies: dict[str, Welded] = {}
    poses: dict[str, Pose] = {}
    for name in tree.order:
        joint = tree.incoming.get(name)
        if joint is None or joint.moves:
            bodies[name], poses[name] = Welded([], {}), HERE
        else:
            assert joint.parent is not None
            bodies[name], poses[name] = bodies[joint.parent], compose(poses[joint.parent], joint.origin)
        bodies[name].links.append(links[name])
        bodies[name].poses[name] = poses[name]
    return bodies


def _local_box(geometry: Geometry, mesh_box: MeshBox | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners in the shape's own frame; None for a mesh of unknown size."""
    if isinstance(geometry, Mesh):
        corners = mesh_box(geometry.filename) if mesh_box else None
        if corners is None:
            return None
        a, b = corners[0] * np.array(geometry.scale), corners[1] * np.array(geometry.scale)
        return np.minimum(a, b), np.maximum(a, b)
    if isinstance(geometry, Box):
        half = 0.5 * np.abs(np.array(geometry.size))
    elif isinstance(geometry, Sphere):
        half = np.full(3, abs(geometry.radius))
    else:
        caps = abs(geometry.radius) if isinstance(geometry, Capsule) else 0.0
        half = np.array([abs(geometry.radius)] * 2 + [0.5 * abs(geometry.length) + caps])
    return -half, half


def _half(geometry: Geometry, R: np.ndarray, local: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Half the edges of the box round the turned shape, (3,) [m]; round shapes stay tight."""
    if isinstance(geometry, Sphere):
        return local[1]
    if isinstance(geometry, Capsule):
        return np.abs(R[:, 2]) * 0.5 * abs(geometry.length) + abs(geometry.radius)
    if isinstance(geometry, Cylinder):
        across = np.sqrt(np.maximum(0.0, 1.0 - R[:, 2] ** 2))
        return np.abs(R[:, 2]) * 0.5 * abs(geometry.length) + across * abs(geometry.radius)
    return np.abs(R) @ (0.5 * (local[1] - local[0]))


def _volume(geometry: Geometry, local: tuple[np.ndarray, np.ndarray]) -> float:
    """Volume of a shape [m^3]; of a mesh that of the box round it."""
    if isinstance(geometry, (Box, Mesh)):
        return float(np.prod(local[1] - local[0]))
    radius = abs(geometry.radius)
    ball = 4.0 / 3.0 * math.pi * radius**3
    if isinstance(geometry, Sphere):
        return ball
    return math.pi * radius**2 * abs(geometry.length) + (ball if isinstance(geometry, Capsule) else 0.0)
