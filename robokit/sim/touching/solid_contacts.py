"""Where a solid of the ground touches a box or a capsule of the robot between its own points, and a ball.

The corners of a box and the ends of a capsule miss what is smaller than they are apart, and a ball in a
corner touches two surfaces at once. So each pair of such a part and a solid has points more, from the solid's
side:

    part     solid     points
    ball     all       its centre, with its radius
    box      sphere    its centre, with its radius
             capsule   three of its axis, with its radius
             cylinder  five of its rims, and three balls inside it
             box       8: the edges of the face that is near, each cut to what lies over the robot's face
    capsule  box       2: its axis, cut to what lies over the face that is near; or where it is nearest
             others    that of its axis that is nearest to the solid
    disc     box       2: of each rim (rim_on_box.py), unless the disc lies on a face flat

Of more than two solids of one kind, a part has points for the two that are nearest to its centre.

Two edges that cross, neither of them in a face that is near, do not touch; the corners of a hull do not
touch a box.

Source: closed forms; the last line by alternating projections between axis and solid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from robokit.sim.shapes.contact_shapes import NEAREST, Facing, Part, Rim
from robokit.sim.touching.rim_on_box import PlacedRim, rim_on_box
from robokit.sim.touching.surfaces import FAR, TINY, PlacedSolid, Surface, box, placed_solid
from robokit.spatial import Matrix3, Transform, Vector3
from robokit.spatial.scalars import Scalar, clamp, maximum, minimum, sqrt, where
from robokit.spatial.vector3 import chosen

PROJECTIONS = 4
"""Alternating projections of an axis and a solid."""

ROUNDS = 2
"""Rounds of three projections of an axis and a box; the first may find another edge than it began at."""

SIDE = 0.01
"""Distance by which points of a cylinder stay behind others of the same place, over its radius."""

STEEP = 1e-9
"""What is less is none: slope of an edge along a slab [m], bend of projections."""


class Meeting(NamedTuple):
    """A point of a pair, in body coordinates.

    Attributes:
        p: on the part's surface [m].
        phi: distance of part and solid there, below 0 inside [m].
        n: unit normal, away from the solid.
    """

    p: Vector3
    phi: Scalar
    n: Vector3


@dataclass(frozen=True)
class _Frames:
    """The frames of a part, of its body and of a solid."""

    part: Part
    pose: Transform
    solid: PlacedSolid

    def to_part(self, x: Vector3) -> Vector3:
        """A point of the solid's frame in the part's."""
        world = x if self.solid.R is None else self.solid.R @ x
        body = self.pose.E @ (world + self.solid.p - self.pose.r)
        return _matrix(self.part).transpose_apply(body - Vector3(*self.part.center))

    def turned(self, x: Vector3) -> Vector3:
        """A direction of the solid's frame in the part's."""
        world = x if self.solid.R is None else self.solid.R @ x
        return _matrix(self.part).transpose_apply(self.pose.E @ world)

    def to_solid(self, x: Vector3) -> Vector3:
        """A point of the part's frame in the solid's."""
        world = self.pose.point(self.to_body(x)) - self.solid.p
        return world if self.solid.R is None else self.solid.R.transpose_apply(world)

    def turned_to_solid(self, x: Vector3) -> Vector3:
        """A direction of the part's frame in the solid's."""
        world = self.pose.E.transpose_apply(_matrix(self.part) @ x)
        return world if self.solid.R is None else self.solid.R.transpose_apply(world)

    def to_body(self, x: Vector3) -> Vector3:
        """A point of the part's frame in the body's."""
        return _matrix(self.part) @ x + Vector3(*self.part.center)

    def meeting(self, p: Vector3, phi: Scalar, n: Vector3) -> Meeting:
        """From the part's frame."""
        return Meeting(self.to_body(p), phi, _matrix(self.part) @ n)


def meetings(
    shape: Facing, pose: Transform, surfaces: Sequence[Surface], mu: Scalar
) -> list[tuple[PlacedSolid, list[Meeting]]]:
    """The solids that are nearest to a part, and its points with each of them.

    Args:
        shape: one of the points.
        pose: of the body's coordinates in the world.
        surfaces: of the ground.
        mu: friction coefficient of solids that have none of their own.
    """
    solids = [surface for k in shape.surfaces if isinstance(surface := surfaces[k], PlacedSolid)]
    if len(solids) > NEAREST:
        solids = _nearest(solids, pose.point(Vector3(*shape.part.center)), mu)
    return [(solid, _of_pair(_Frames(shape.part, pose, solid))) for solid in solids]


def meeting(shape: Facing, pose: Transform, surfaces: Sequence[Surface]) -> Meeting:
    """One of them."""
    return meetings(shape, pose, surfaces, 0.0)[shape.rank][1][shape.number]


def _nearest(solids: Sequence[PlacedSolid], x: Vector3, mu: Scalar) -> list[PlacedSolid]:
    """The NEAREST of solids of one kind to a point, the nearest first."""
    kind = solids[0].kind
    best: list[list[Scalar]] = []
    for solid in solids:
        rows = () if solid.R is None else [s for row in solid.R.rows for s in row]
        own = mu if solid.mu is None else solid.mu
        numbers = [solid(x, 0.0).phi, own, *solid.p, *solid.sizes, *rows]
        for k, other in enumerate(best):
            nearer = numbers[0] < other[0]
            both = list(zip(numbers, other, strict=True))
            best[k] = [where(nearer, a, b) for a, b in both]
            numbers = [where(nearer, b, a) for a, b in both]
        if len(best) < NEAREST:
            best.append(numbers)
    found = []
    for _, own, px, py, pz, *rest in best:
        turned = len(rest) > 9
        sizes, rows = (rest[:-9], rest[-9:]) if turned else (rest, [])
        R = Matrix3([rows[:3], rows[3:6], rows[6:]]) if turned else None
        found.append(placed_solid(kind, tuple(sizes), R, Vector3(px, py, pz), own))
    return found


def _of_pair(frames: _Frames) -> list[Meeting]:
    """The points of a part and a solid, FACING[part.kind, solid.kind] of them."""
    if frames.part.kind == "ball":
        return [_on_ball(frames, Vector3.zero())]
    if frames.part.kind == "capsule":
        return _under_capsule(frames)
    if frames.part.kind == "disc":
        return _on_rims(frames)
    return _box_under_box(frames) if frames.solid.kind == "box" else _round_under_box(frames)


def _round_under_box(frames: _Frames) -> list[Meeting]:
    solid, half = frames.solid, frames.part.size
    surface = box(Vector3(*half))

    def ball(at: Vector3, radius: Scalar) -> Meeting:
        x = frames.to_part(at)
        touch = surface(x, 0.0)
        return frames.meeting(x - touch.n * touch.phi, touch.phi - radius, -touch.n)

    radius = solid.sizes[0]
    if solid.kind == "sphere":
        return [ball(Vector3.zero(), radius)]
    length = solid.sizes[1]
    middle = frames.to_solid(Vector3.zero()).z
    along = frames.turned(Vector3(0.0, 0.0, 1.0))
    reach: Scalar = sum((abs(a) * h for a, h in zip(along, half, strict=True)), 0.0)
    if solid.kind == "capsule":
        places = [clamp(middle + s, -length, length) for s in (0.0, -reach, reach)]
        return [ball(Vector3(0.0, 0.0, z), radius) for z in places]
    inner = minimum(radius, length)
    found = []
    for s in (0.0, -reach, reach):
        side = ball(Vector3(0.0, 0.0, clamp(middle + s, inner - length, length - inner)), inner)
        upright = along.dot(_matrix(frames.part).transpose_apply(side.n))
        # A flat end touches with its rim.
        found.append(side._replace(phi=where(upright * upright > 0.5, FAR, side.phi)))
    # The rims, as those of a cylinder of the robot: the lowest points towards the box.
    nearest = surface(frames.to_part(Vector3.zero()), 0.0)
    n = frames.turned_to_solid(nearest.n)
    near = where(n.z > 0.0, -length, length)
    for z, turn in ((near, 0.0), (near, 0.5), (near, 1.0), (near, 1.5), (-near, 0.0)):
        rim = Rim((0.0, 0.0, z), (0.0, 0.0, 1.0), radius, turn * math.pi)
        found.append(ball(rim.at(n), 0.0))
    return found


def _box_under_box(frames: _Frames) -> list[Meeting]:
    """Ends of the edges of the solid's near face, cut to the sides of the part's near face."""
    half, size = Vector3(*frames.part.size), Vector3(*frames.solid.sizes)
    center = frames.to_solid(Vector3.zero())
    side, sign = _near_face(center, size)
    nearest = Vector3(
        *(where(f > 0.5, s * h, clamp(x, -h, h)) for f, s, h, x in zip(side, sign, size, center, strict=True))
    )
    face, facing = _near_face(frames.to_part(nearest), half)
    at, first, second = _of_face(side, sign, size)
    at, first, second = frames.to_part(at), frames.turned(first), frames.turned(second)
    normal = Vector3(*(f * s for f, s in zip(face, facing, strict=True)))
    depth = face.dot(half)
    found = []
    for across, along in ((second, first), (first, second)):
        for middle in (at - across, at + across):
            low, high = _cut(middle, along, half, face)
            over = low < high
            for t in (low, high):
                x = chosen(over, middle + along * t, Vector3.zero())
                out = normal.dot(x)
                # What is not in the outer half of the part touches its other face, if any.
                phi = where(over, where(out > 0.0, out - depth, FAR), FAR)
                found.append(frames.meeting(x - normal * (out - depth), phi, -normal))
    return found


def _on_ball(frames: _Frames, at: Vector3) -> Meeting:
    """A ball about a point of the part, of its radius."""
    radius, middle = frames.part.size[0], frames.to_body(at)
    touch = frames.solid(frames.pose.point(middle), radius)
    n = frames.pose.E @ touch.n
    return Meeting(middle - n * radius, touch.phi - radius, n)


def _on_rims(frames: _Frames) -> list[Meeting]:
    """The places of both rims of a disc that touch first."""
    part, pose = frames.part, frames.pose
    radius, half = part.size
    axis = _matrix(part) @ Vector3(0.0, 0.0, 1.0)

    found = []
    for s in (-half, half):

        def lowest(n: Vector3, s: Scalar = s) -> Vector3:
            own = _matrix(part).transpose_apply(pose.E @ n)
            out = -radius / sqrt(own.x * own.x + own.y * own.y + TINY)
            return pose.point(frames.to_body(Vector3(own.x * out, own.y * out, s)))

        center = pose.point(frames.to_body(Vector3(0.0, 0.0, s)))
        rim = PlacedRim(center, pose.E.transpose_apply(axis), radius, lowest)
        place, touch = rim_on_box(rim, frames.solid)
        n = pose.E @ touch.n
        c = n.dot(axis)
        flat = SIDE * radius * maximum(2.0 * c * c - 1.0, 0.0)
        found.append(Meeting(pose.E @ (place - pose.r), touch.phi + flat, n))
    return found


def _under_capsule(frames: _Frames) -> list[Meeting]:
    solid, length = frames.solid, frames.part.size[1]
    axis = Vector3(0.0, 0.0, 1.0)
    start = clamp(frames.to_part(Vector3.zero()).z, -length, length)
    if solid.kind != "box":
        for _ in range(PROJECTIONS):
            x = frames.pose.point(frames.to_body(axis * start))
            touch = solid(x, 0.0)
            foot = frames.pose.E @ (x - touch.n * touch.phi - frames.pose.r) - Vector3(*frames.part.center)
            start = clamp(_matrix(frames.part).transpose_apply(foot).z, -length, length)
        return [_on_ball(frames, axis * start)]
    size = Vector3(*solid.sizes)
    first = frames.to_solid(Vector3.zero())
    along = frames.turned_to_solid(axis * length)
    nearest = _nearest_of_axis(first, along, size)
    side, _ = _near_face(first + along * nearest, size)
    low, high = _cut(first, along, size, side)
    over = low < high
    low, high = where(over, minimum(low, nearest), nearest), where(over, maximum(high, nearest), nearest)
    return [_on_ball(frames, axis * (length * t)) for t in (low, high)]


def _nearest_of_axis(middle: Vector3, along: Vector3, half: Vector3) -> Scalar:
    """Where middle + t along, t in [-1, 1], is nearest to a box.

    Alternating projections take t to a t + b as long as they meet the same face or edge, so that two of them
    tell where they end.
    """
    square = along.dot(along)

    def next_after(t: Scalar) -> Scalar:
        x = middle + along * t
        foot = Vector3(*(clamp(s, -h, h) for s, h in zip(x, half, strict=True)))
        return clamp(along.dot(foot - middle) / square, -1.0, 1.0)

    t = next_after(0.0)
    for _ in range(ROUNDS):
        second = next_after(t)
        third = next_after(second)
        bend = third - 2.0 * second + t
        some = abs(bend) > STEEP
        t = where(some, t - (second - t) * (second - t) / where(some, bend, 1.0), third)
        t = clamp(t, -1.0, 1.0)
    return next_after(t)


def _matrix(part: Part) -> Matrix3:
    return Matrix3(part.rotation)


def _near_face(x: Vector3, half: Vector3) -> tuple[Vector3, Vector3]:
    """The face of a box that is nearest to a point: 1 at its axis, else 0; and the signs of x."""
    a = [abs(s) - h for s, h in zip(x, half, strict=True)]
    first = where((a[0] > a[1]) & (a[0] > a[2]), 1.0, 0.0)
    second = where(a[1] > a[2], 1.0 - first, 0.0)
    sign = Vector3(*(where(s < 0.0, -1.0, 1.0) for s in x))
    return Vector3(first, second, 1.0 - first - second), sign


def _of_face(side: Vector3, sign: Vector3, half: Vector3) -> tuple[Vector3, Vector3, Vector3]:
    """Middle of a face of a box and its two half edges."""
    f, s, h = list(side), list(sign), list(half)
    middle = [a * b * c for a, b, c in zip(f, s, h, strict=True)]
    edges = [[f[(k - j) % 3] * h[k] for k in range(3)] for j in (1, 2)]
    return Vector3(*middle), Vector3(*edges[0]), Vector3(*edges[1])


def _cut(middle: Vector3, along: Vector3, half: Vector3, face: Vector3) -> tuple[Scalar, Scalar]:
    """The part of middle + t along, t in [-1, 1], within a box but for its thickness across a face."""
    low, high = -1.0, 1.0
    for x, d, h, across in zip(middle, along, half, face, strict=True):
        slope = where(abs(d) < STEEP, STEEP, d)
        a, b = (-h - x) / slope, (h - x) / slope
        free = across > 0.5
        low = where(free, low, maximum(low, minimum(a, b)))
        high = where(free, high, minimum(high, maximum(a, b)))
    return low, high
