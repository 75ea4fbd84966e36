"""Distance of a box from a box, a capsule or a sphere, in closed form without a branch.

Two convex bodies are as far apart as the best of all planes between them says:

    phi = max over unit n of  n . (c_B - c_A) - h_A(n) - h_B(-n)          h: support functions

below 0 where they overlap. Looked at are the normals of the faces, the cross products of the edges, and the
direction between the nearest points. The first two decide exactly whether two boxes overlap, and how deep;
the third is exact for spheres and capsules, and between two boxes what alternating projections find: boxes
that are apart by their corners can be taken to be nearer, not such that touch.

Source: separating axes, S. Gottschalk, "Collision queries using oriented bounding boxes" (2000), chapter 5.
Differs: the direction between the nearest points; no branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, clamp, maximum, sqrt, where
from robokit.spatial.vector3 import chosen

UNIT = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))

OTHERS = ((1, 2), (2, 0), (0, 1))
"""The other two of three axes."""

PROJECTIONS = 4
"""Alternating projections between two bodies that are no points."""

PARALLEL = 1e-4
"""Square of the sine below which edges have no direction across both."""

STEEP = 1e-9
"""Slope below which an axis runs along a face [m]."""

FAR = 1e3
"""Distance of what is not there [m]."""


@dataclass(frozen=True)
class Block:
    """A box, a segment or a point, and a radius around it.

    Attributes:
        center: Vector3 [m].
        axes: unit vectors along its edges: three, one or none.
        half: half its lengths along them, above 0 [m].
        radius: [m].
    """

    center: Vector3
    axes: tuple[Vector3, ...]
    half: tuple[Scalar, ...]
    radius: Scalar

    def within(self, x: Vector3) -> Vector3:
        """Its point that is nearest to x, without its radius."""
        d = x - self.center
        return self.at([clamp(d.dot(a), -h, h) for a, h in zip(self.axes, self.half, strict=True)])

    def at(self, along: Sequence[Scalar]) -> Vector3:
        """The point with these coordinates along its axes."""
        x = self.center
        for a, s in zip(self.axes, along, strict=True):
            x = x + a * s
        return x

    def reach(self, n: Vector3) -> Scalar:
        """Support function about its center, without its radius."""
        return sum((abs(n.dot(a)) * h for a, h in zip(self.axes, self.half, strict=True)), 0.0)


class Plane(NamedTuple):
    """The best plane so far: distance of the bodies across it, and its normal."""

    phi: Scalar
    n: Vector3

    def or_(self, other: Plane, ahead: Scalar = 0.0) -> Plane:
        """The better of the two; the other one must be ahead by so much."""
        better = other.phi > self.phi + ahead
        return Plane(where(better, other.phi, self.phi), chosen(better, other.n, self.n))


def box_gap(a: Block, b: Block) -> Scalar:
    """Distance of a box a from b, below 0 where they overlap [m]."""
    b = seen(a, b)
    own, other, rest, _ = planes(a.half, b)
    phi = maximum(own.phi, rest.phi)
    return (phi if other is None else maximum(phi, other.phi)) - (a.radius + b.radius)


def seen(a: Block, b: Block) -> Block:
    """b in the axes of a, about its center."""
    d = b.center - a.center
    axes = tuple(Vector3(*(u.dot(v) for u in a.axes)) for v in b.axes)
    return Block(Vector3(*(u.dot(d) for u in a.axes)), axes, b.half, b.radius)


def sign(x: Scalar) -> Scalar:
    """-1 or 1."""
    return where(x < 0.0, -1.0, 1.0)


def planes(half: Sequence[Scalar], b: Block) -> tuple[Plane, Plane | None, Plane, Vector3]:
    """The best of the faces of a box about the origin, of those of b if it has any, and of all else.

    And the point of b that is nearest to the box.
    """
    t = b.center
    box = Block(Vector3.zero(), UNIT, tuple(half), 0.0)
    own = other = None
    for e, x, h in zip(UNIT, t, half, strict=True):
        plane = Plane(abs(x) - h - b.reach(e), e * sign(x))
        own = plane if own is None else own.or_(plane)
    if len(b.axes) == 3:
        for v, h in zip(b.axes, b.half, strict=True):
            x = t.dot(v)
            plane = Plane(abs(x) - h - box.reach(v), v * sign(x))
            other = plane if other is None else other.or_(plane)
    assert own is not None
    near, y = _between(box, b)
    return own, other, _across_edges(half, b, near), y


def _across_edges(half: Sequence[Scalar], b: Block, best: Plane) -> Plane:
    """The best of the planes along an edge of a box about the origin and one of b, and of one more."""
    middle, edges = list(b.center), [list(v) for v in b.axes]
    size = [[abs(x) for x in v] for v in edges]
    for i, (first, second) in enumerate(OTHERS):
        for j, v in enumerate(edges):
            square = v[first] * v[first] + v[second] * v[second]
            reach = half[first] * size[j][second] + half[second] * size[j][first]
            if len(edges) == 3:
                # (e x v) . w is the component along e of the third axis.
                m, k = OTHERS[j]
                reach = reach + b.half[m] * size[k][i] + b.half[k] * size[m][i]
            x = middle[second] * v[first] - middle[first] * v[second]
            some = square > PARALLEL
            inverse = 1.0 / sqrt(where(some, square, 1.0))
            phi = where(some, (abs(x) - reach) * inverse, -FAR)
            across: list[Scalar] = [0.0, 0.0, 0.0]
            across[second], across[first] = v[first], -v[second]
            best = best.or_(Plane(phi, Vector3(*across) * (sign(x) * inverse)))
    return best


def _between(box: Block, b: Block) -> tuple[Plane, Vector3]:
    """The plane across the way between their nearest points, and that of b; for boxes by projections."""
    y = b.center
    if len(b.axes) == 1:
        y = _of_axis(box.half, y, b.axes[0] * b.half[0])
    x = box.within(y)
    for _ in range(PROJECTIONS if len(b.axes) == 3 else 0):
        y = b.within(x)
        x = box.within(y)
    d = y - x
    square = d.dot(d)
    apart = square > 1e-18
    n = d * (1.0 / sqrt(where(apart, square, 1.0)))
    return Plane(where(apart, b.center.dot(n) - box.reach(n) - b.reach(n), -FAR), n), y


def _of_axis(half: Sequence[Scalar], middle: Vector3, along: Vector3) -> Vector3:
    """The point middle + s along, s in [-1, 1], that is nearest to a box about the origin.

    Half the slope of the square of its distance, sum (x_i - clamp(x_i)) along_i, grows with s, and is linear
    between the planes of the faces: it is zero between the last of these below 0 and the first one above.
    """

    def slope(s: Scalar) -> Scalar:
        x = middle + along * s
        return sum(((t - clamp(t, -h, h)) * a for t, h, a in zip(x, half, along, strict=True)), 0.0)

    low, high = -1.0, 1.0
    under, over = slope(low), slope(high)
    for x, h, a in zip(middle, half, along, strict=True):
        some = abs(a) > STEEP
        inverse = 1.0 / where(some, a, 1.0)
        for face in (-h, h):
            s = where(some, (face - x) * inverse, 2.0)
            g = slope(s)
            below = (g <= 0.0) & (s > low) & (s < 1.0)
            above = (g >= 0.0) & (s < high) & (s > -1.0)
            low, under = where(below, s, low), where(below, g, under)
            high, over = where(above, s, high), where(above, g, over)
    rise = over - under
    some = rise > 0.0
    s = low - under * (high - low) * (1.0 / where(some, rise, 1.0))
    return middle + along * clamp(where(some, s, 0.5 * (low + high)), -1.0, 1.0)
