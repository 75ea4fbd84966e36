"""Boxes and capsules of a robot's links, in place of their shapes.

Each link's collision shapes stand for the convex hull of them all. That is a box if one fits clearly better
than up to three capsules (box_fit.py, capsule_fit.py). If no link has a collision shape, the visual shapes
are used; as for contact points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robokit import disk_cache
from robokit.meshes.hull import hull_corners
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from robokit.model.parts import Link
from robokit.model.robot import Robot
from robokit.sim.collide.box_distance import Block
from robokit.sim.collide.box_fit import fit_box
from robokit.sim.collide.capsule_fit import CapsuleSet, fit_capsules, side_of_cylinder
from robokit.spatial import Vector3

RIM = 24
"""Corners of a rim in place of a circle."""

GOOD = 3e-3
"""Capsules that fit within this stay what they are [m]."""

BETTER = 0.5
"""A box is taken where its error is this part of that of the capsules, or less."""

THIN = 1e-6
"""Least half length of an edge of a box [m]."""

Point = tuple[float, float, float]
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


@dataclass(frozen=True)
class LinkCapsule:
    """A capsule on a body; a sphere where start and end are the same.

    Attributes:
        link: name of the link whose shapes it stands for.
        body: number of the body it belongs to.
        start, end: (3,) ends of its axis in body coordinates [m].
        radius: [m].
        missed: how far the hull of the link's shapes reaches out of all that stands for it [m].
        added: how far this reaches out of the hull [m].
    """

    link: str
    body: int
    start: Point
    end: Point
    radius: float
    missed: float
    added: float

    @property
    def is_sphere(self) -> bool:
        """Whether its axis has no length."""
        return self.start == self.end

    @property
    def dimensions(self) -> int:
        """How many edges it has: 0 for a sphere, 1 for a capsule."""
        return 0 if self.is_sphere else 1

    @property
    def ends(self) -> np.ndarray:
        """Centres of balls of its radius whose hull it is, (2, 3) [m]."""
        return np.array([self.start, self.end])


@dataclass(frozen=True)
class LinkBox:
    """A box on a body.

    Attributes:
        link: name of the link whose shapes it stands for.
        body: number of the body it belongs to.
        center: (3,) in body coordinates [m].
        axes: three unit vectors along its edges, body coordinates.
        half: half its lengths along them [m].
        missed: how far the hull of the link's shapes reaches out of it [m]: not at all.
        added: how far it reaches out of the hull [m].
    """

    link: str
    body: int
    center: Point
    axes: tuple[Point, Point, Point]
    half: Point
    missed: float
    added: float

    radius = 0.0
    dimensions = 3

    @property
    def ends(self) -> np.ndarray:
        """Its corners, (8, 3) [m]."""
        return np.array(self.center) + 2.0 * CORNERS * np.array(self.half) @ np.array(self.axes)


LinkShape = LinkCapsule | LinkBox


def body_shapes(robot: Robot, boxes: bool = True) -> tuple[LinkShape, ...]:
    """The boxes and capsules of all links that have shapes, computed once.

    Args:
        robot: the robot.
        boxes: False for capsules alone.
    """
    return robot.derived.get(("body shapes", boxes), lambda: _body_shapes(robot, boxes))


def _body_shapes(robot: Robot, boxes: bool) -> tuple[LinkShape, ...]:
    found: list[LinkShape] = []
    for link in robot.links:
        balls = link_balls(link, shapes_of(robot, link))
        if balls is None:
            continue
        P = link.placement
        points = balls[0] @ P.rotation.T + P.position
        fit = _side(link, shapes_of(robot, link)) or _capsules(link.name, points, balls[1])
        box = fit_box(points, balls[1]) if boxes and fit.error > GOOD else None
        own = (link.name, link.body)
        if box is not None and box.error < BETTER * fit.error:
            x, y, z = (_point(axis) for axis in box.axes)
            found.append(LinkBox(*own, _point(box.center), (x, y, z), _point(box.half), 0.0, box.error))
            continue
        for a, b, r in zip(fit.start, fit.end, fit.radius.tolist(), strict=True):
            found.append(LinkCapsule(*own, _point(a), _point(b), r, fit.missed, fit.added))
    return tuple(found)


def _side(link: Link, shapes: tuple[Shape, ...]) -> CapsuleSet | None:
    """The capsule with the side of a link that is one cylinder, body coordinates; None of others."""
    if len(shapes) != 1 or not isinstance(shapes[0].geometry, Cylinder):
        return None
    cylinder, own, P = shapes[0].geometry, shapes[0].placement, link.placement
    side = side_of_cylinder(cylinder.radius, cylinder.length)
    if side is None:
        return None
    start, end = (
        (x @ own.rotation.T + own.position) @ P.rotation.T + P.position for x in (side.start, side.end)
    )
    return replace(side, start=start, end=end)


def _capsules(name: str, points: np.ndarray, radii: np.ndarray) -> CapsuleSet:
    """As of :func:`fit_capsules`, kept on disk where it takes time."""
    if len(points) <= 2:
        return fit_capsules(points, radii)

    def made() -> list[np.ndarray]:
        fit = fit_capsules(points, radii)
        return [fit.start, fit.end, fit.radius, np.array([fit.missed, fit.added])]

    key = ("capsules", np.ascontiguousarray(points).tobytes(), np.asarray(radii, dtype=float).tobytes())
    start, end, radius, (missed, added) = disk_cache.arrays(f"{name}: capsules", key, made)
    return CapsuleSet(start, end, radius, float(missed), float(added))


def _point(x: np.ndarray) -> Point:
    a, b, c = x.tolist()
    return a, b, c


def placed(shape: LinkShape, turn: Callable[[Sequence[float]], Vector3], origin: Vector3) -> Block:
    """A shape where its body is.

    Args:
        shape: of the body.
        turn: a vector of the body -> the same in the world's axes.
        origin: of the body, world axes [m].
    """
    if isinstance(shape, LinkBox):
        axes = tuple(turn(axis) for axis in shape.axes)
        return Block(origin + turn(shape.center), axes, tuple(max(h, THIN) for h in shape.half), shape.radius)
    a, b = shape.ends
    along = b - a
    half = 0.5 * float(np.linalg.norm(along))
    axes = () if shape.is_sphere else (turn((0.5 * along / half).tolist()),)
    return Block(origin + turn((0.5 * (a + b)).tolist()), axes, (half,) * len(axes), shape.radius)


def shapes_of(robot: Robot, link: Link) -> tuple[Shape, ...]:
    """The shapes that a link touches other links with."""
    return link.collisions if any(other.collisions for other in robot.links) else link.visuals


def link_balls(link: Link, shapes: tuple[Shape, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """Balls whose hull is that of a link's shapes: centres (n, 3) in the link frame and radii (n,) [m].

    Meshes that cannot be read are left out; None where nothing is left.
    """
    centres, radii = [], []
    for shape in shapes:
        try:
            local, radius = balls_of(shape)
        except Exception:  # readers of mesh formats raise whatever they like; contact_points warns of them
            continue
        P = shape.placement
        centres.append(local @ P.rotation.T + P.position)
        radii.append(np.full(len(local), radius))
    return (np.concatenate(centres), np.concatenate(radii)) if centres else None


def balls_of(shape: Shape) -> tuple[np.ndarray, float]:
    """Centres (n, 3) in the shape's frame and the radius of balls whose hull is the shape [m]."""
    geometry = shape.geometry
    if isinstance(geometry, Mesh):
        return hull_corners(geometry), 0.0
    if isinstance(geometry, Sphere):
        return np.zeros((1, 3)), geometry.radius
    if isinstance(geometry, Box):
        return CORNERS * np.array(geometry.size), 0.0
    end = np.array([0.0, 0.0, 0.5 * geometry.length])
    if isinstance(geometry, Capsule):
        return np.array([-end, end]), geometry.radius
    assert isinstance(geometry, Cylinder)
    turns = 2.0 * math.pi / RIM * np.arange(RIM)
    rim = geometry.radius * np.stack([np.cos(turns), np.sin(turns), np.zeros(RIM)], axis=1)
    return np.concatenate([rim - end, rim + end]), 0.0
