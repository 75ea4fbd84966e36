"""Where a body touches a plane: contact points that lie, or move, on its surface.

Ball    a corner, or the point of a ball under its centre
Lowest  the lowest of several corners that do not touch at the same time
Rim     the lowest point of a circle, and its neighbours
Facing  where a solid of the ground is near, between the points of a box or a capsule

Each gives, as a text over generic scalars, its point for the plane's normal n in the body's axes. Such a
point moves on the body while the body turns; its material velocity, V.lin + V.ang x p, is what friction acts
on, so that a wheel rolls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.model.geometry import Box, Capsule, Cylinder, Placement, Shape, Sphere, product, turned
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where
from robokit.spatial.vector3 import Vector3

Point = tuple[Any, Any, Any]
"""Body coordinates [m]."""

UPRIGHT = 1e-5
"""Tilt of a rim's axis below which its points keep their places on the rim [rad]."""

SMALLEST = 1e-18
"""Keeps a direction finite where it is none."""


@dataclass(frozen=True)
class Ball:
    """A ball about a position; of radius 0, a corner.

    Attributes:
        position: of the centre [m].
        radius: [m].
    """

    position: Point
    radius: Any = 0.0

    def at(self, n: Vector3) -> Vector3:
        """The point that would touch first, body coordinates."""
        return _outward(Vector3(*self.position), n, self.radius)

    def moved(self, place: Placement) -> Ball:
        """The same, from a frame that is at this place of the body."""
        return Ball(_point(place, self.position), self.radius)

    def reach(self) -> tuple[Point, Any]:
        """Centre and radius [m] of a ball around all points."""
        return self.position, self.radius


@dataclass(frozen=True)
class Lowest:
    """The lowest of several corners, each with a small radius.

    Where some are nearly as low as the lowest, the point is their mean, weighted by w = (blend - h)^2 with h
    the height over the lowest, and is moved to the height of the lowest. It moves steadily from one corner
    to the other.

    Attributes:
        corners: [m].
        radius: of each corner [m].
        blend: height over the lowest up to which a corner counts [m].
    """

    corners: tuple[Point, ...]
    radius: float
    blend: float

    def __post_init__(self) -> None:
        if not self.corners or not self.blend > 0.0:
            raise ValueError("needs a corner and a blend above 0")

    def at(self, n: Vector3) -> Vector3:
        """The point that would touch first, body coordinates."""
        heights = [n.x * x + n.y * y + n.z * z for x, y, z in self.corners]
        low = heights[0]
        for h in heights[1:]:
            low = minimum(low, h)
        top = low + self.blend
        total: Scalar = 0.0
        place = Vector3.zero()
        for h, (x, y, z) in zip(heights, self.corners, strict=True):
            share = maximum(top - h, 0.0)
            w = share * share
            total = total + w
            place = Vector3(place.x + w * x, place.y + w * y, place.z + w * z)
        place = place * (1.0 / total)
        return place + n * (low - n.dot(place) - self.radius)

    def reach(self) -> tuple[Point, float]:
        """Centre and radius [m] of a ball around all points."""
        columns = list(zip(*self.corners, strict=True))
        x, y, z = (0.5 * (min(c) + max(c)) for c in columns)
        return (x, y, z), self.radius + max(math.dist((x, y, z), c) for c in self.corners)


@dataclass(frozen=True)
class Rim:
    """A point of a circle, turned by an angle from the lowest point.

    When the axis stands upright, no point is the lowest. The direction to it is therefore that of

        -(n - c a) + UPRIGHT c^2 e,   c = n . a,   e fixed on the body

    which is the lowest but for an angle of at most UPRIGHT / tilt, and exact where the axis is level.

    Attributes:
        center: of the circle [m].
        axis: unit vector.
        radius: [m].
        turn: angle from the lowest point [rad].
        half: the circle is that of the two at center -half axis and +half axis that lies lower [m].
        rounding: radius of the tube around the circle [m].
    """

    center: Point
    axis: Point
    radius: float
    turn: float = 0.0
    half: float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        if abs(math.hypot(*self.axis) - 1.0) > 1e-9:
            raise ValueError(f"axis: expected a unit vector, got {self.axis}")

    def at(self, n: Vector3) -> Vector3:
        """The point, body coordinates."""
        a = Vector3(*self.axis)
        place = Vector3(*self.center) + self._down(n, a) * self.radius
        if self.half:
            place = place + a * where(n.dot(a) > 0.0, -self.half, self.half)
        return _outward(place, n, self.rounding)

    def _down(self, n: Vector3, a: Vector3) -> Vector3:
        """Unit vector from the circle's centre to the point, of an axis a."""
        c = n.dot(a)
        down = a * c - n + Vector3(*_across(self.axis)) * (UPRIGHT * c * c)
        down = down * (1.0 / sqrt(down.dot(down) + SMALLEST))
        if self.turn:
            down = down * _exactly(math.cos(self.turn)) + a.cross(down) * _exactly(math.sin(self.turn))
        return down

    def rolled(self, n: Vector3, turn: Vector3, middle: Vector3) -> Vector3:
        """How far the lowest point moves over a ground while the body turns a little [m].

        It moves as the rim's axis does, whatever the body turns about that axis, and with the body where the
        body's middle is beside the axis.

        Args:
            n: the ground's normal, body coordinates.
            turn: of the body, small [rad].
            middle: of the body: where it is at rest, or moves steadily [m].
        """
        a = Vector3(*self.axis)
        later = a + turn.cross(a)
        later = later * (1.0 / sqrt(later.dot(later)))
        along = a.dot(Vector3(*self.center) - middle)
        return (self._down(n, later) - self._down(n, a)) * self.radius + (later - a) * along

    def moved(self, place: Placement) -> Rim:
        """The same, from a frame that is at this place of the body."""
        axis = turned(place.rotation, np.array(self.axis))
        x, y, z = (axis / math.hypot(*axis.tolist())).tolist()
        return replace(self, center=_point(place, self.center), axis=(x, y, z))

    def samples(self, count: int) -> np.ndarray:
        """Points of the circle or circles, (count, 3) or (2 count, 3) [m]."""
        e, a = np.array(_across(self.axis)), np.array(self.axis)
        turns = 2.0 * math.pi / count * np.arange(count)
        ring = self.radius * (np.outer(np.cos(turns), e) + np.outer(np.sin(turns), np.cross(a, e)))
        ring = ring + np.array(self.center)
        return np.concatenate([ring - self.half * a, ring + self.half * a]) if self.half else ring

    def reach(self) -> tuple[Point, float]:
        """Centre and radius [m] of a ball around all points."""
        return self.center, math.hypot(self.radius, self.half) + self.rounding


@dataclass(frozen=True)
class Part:
    """A ball, a box, a capsule or a disc of a body.

    Attributes:
        kind: "ball", "box", "capsule" or "disc", a cylinder that is no longer than wide.
        center: body coordinates [m].
        rotation: rows of the matrix that turns its axes into the body's.
        size: radius of a ball; half of a box's edges; radius and half the length of a capsule or disc, which
            lies along z [m].
    """

    kind: str
    center: Point
    rotation: tuple[Point, Point, Point]
    size: tuple[float, ...]


FACING = {
    ("box", "sphere"): 1,
    ("box", "capsule"): 3,
    ("box", "cylinder"): 8,
    ("box", "box"): 8,
    ("capsule", "box"): 2,
    ("capsule", "sphere"): 1,
    ("capsule", "capsule"): 1,
    ("capsule", "cylinder"): 1,
    ("capsule", "hull"): 1,
    ("disc", "box"): 2,
    **{("ball", solid): 1 for solid in ("box", "sphere", "capsule", "cylinder", "hull")},
}
"""Points of a part and a solid, by their kinds; none of others."""

NEAREST = 2
"""Solids of one kind that a part has points for: those that are nearest. Of hulls, all."""


@dataclass(frozen=True)
class Facing:
    """A point of a part that faces a solid of the ground; step/solid_contacts.py has its place.

    Attributes:
        part: the part.
        surfaces: numbers of solids of one kind among the ground's surfaces.
        rank: which of them: 0 for the nearest to the part's centre, 1 for the second, ...
        number: which of the points of the two.
    """

    part: Part
    surfaces: tuple[int, ...]
    rank: int
    number: int

    def at(self, n: Vector3) -> Vector3:
        """The centre of the part: over a plane it has no place of its own."""
        return Vector3(*self.part.center)

    def reach(self) -> tuple[Point, float]:
        """Centre and radius [m] of a ball around all points."""
        size = self.part.size
        return self.part.center, math.hypot(*size) if self.part.kind in ("box", "disc") else sum(size)


ContactShape = Ball | Lowest | Rim | Facing


def facing_points(shape: Shape, place: Placement, solids: Sequence[tuple[int, str]]) -> list[Facing]:
    """The points of a sphere, a box, a capsule or a cylinder that face solids.

    Args:
        shape: a collision shape of a link.
        place: of the link's frame in the body's.
        solids: number among the ground's surfaces, and kind, of each solid.
    """
    geometry, size = shape.geometry, tuple[float, ...]()
    if isinstance(geometry, Sphere):
        kind, size = "ball", (float(geometry.radius),)
    elif isinstance(geometry, Box):
        kind, size = "box", tuple(0.5 * float(edge) for edge in geometry.size)
    elif isinstance(geometry, Capsule):
        kind, size = "capsule", (float(geometry.radius), 0.5 * float(geometry.length))
    elif isinstance(geometry, Cylinder) and geometry.length > 2.0 * geometry.radius:
        radius = float(geometry.radius)  # its side is that of a capsule inside it
        kind, size = "capsule", (radius, 0.5 * float(geometry.length) - radius)
    elif isinstance(geometry, Cylinder):
        kind, size = "disc", (float(geometry.radius), 0.5 * float(geometry.length))
    else:
        return []
    rows = product(place.rotation, shape.placement.rotation).tolist()
    center = _point(place, tuple(shape.placement.position))
    part = Part(kind, center, (tuple(rows[0]), tuple(rows[1]), tuple(rows[2])), size)
    alike: dict[str, list[int]] = {}
    for k, other in solids:
        alike.setdefault(other if other != "hull" else f"hull {k}", []).append(k)
    return [
        Facing(part, tuple(numbers), rank, m)
        for other, numbers in alike.items()
        for rank in range(min(NEAREST, len(numbers)))
        for m in range(FACING.get((kind, other.split()[0]), 0))
    ]


def cylinder_points(
    center: Point, axis: Point, radius: float, length: float, rounding: float = 0.0
) -> tuple[Rim, ...]:
    """Points of a cylinder or disc: the lowest of each rim, and three more of the lower rim to stand on."""
    half = 0.5 * length
    ends = [tuple(p + s * a for p, a in zip(center, axis, strict=True)) for s in (-half, half)]
    lowest = [Rim(end, axis, radius, rounding=rounding) for end in ends]
    turns = [0.5 * math.pi, math.pi, 1.5 * math.pi]
    return (*lowest, *(Rim(center, axis, radius, turn, half, rounding) for turn in turns))


def _point(place: Placement, position: Point) -> Point:
    x, y, z = (turned(place.rotation, np.array(position)) + place.position).tolist()
    return x, y, z


def _outward(place: Vector3, n: Vector3, radius: Any) -> Vector3:
    return place - n * radius if not isinstance(radius, float) or radius else place


def _across(axis: Point) -> Point:
    """A unit vector across an axis."""
    x, y, z = axis
    k = min(range(3), key=lambda i: abs(axis[i]))
    e = [(0.0, z, -y), (-z, 0.0, x), (y, -x, 0.0)][k]
    size = math.hypot(*e)
    return e[0] / size, e[1] / size, e[2] / size


def _exactly(x: float) -> float:
    """Sines of quarter turns without their rounding: factors of 0 and 1 cost nothing."""
    return float(round(x)) if abs(x - round(x)) < 1e-15 else x
