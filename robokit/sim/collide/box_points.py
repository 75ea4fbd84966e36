"""Where a box touches a box, a capsule or a sphere: points, each with its own distance, without a branch.

Where the plane of a face is the best of all (box_distance.py), the corners of the other box, or the ends of
the capsule, touch that face: four, two or one points, brought to its border where they lie beside it.
Otherwise it is one point, between the edges that are nearest.

What carries a body does not jump while it moves: springs at points that do would give it energy, and it would
tremble for ever. So from the face to the edges, the point of the face that is nearest to theirs becomes that
of the edges within FACES_FIRST, and the others are given up little by little. An edge that lies on a face has
a point where it leaves it, too.

Of faces that are nearly equally far the first body's is taken.

Source: closed forms, with the reference face and the incident one of D. Gregorius, "The contact manifold",
GDC 2015.  Differs: corners are brought to the face, instead of cutting its edges: always four.
Cost: with the distance, 2,350 operations for two boxes, 800 for a box and a capsule, 140 for a box and a
sphere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

from robokit.sim.collide.box_distance import UNIT, Block, Plane, planes, seen, sign
from robokit.sim.collide.capsule_distance import nearest_of_segments
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, clamp, maximum, minimum, sqrt, where
from robokit.spatial.vector3 import chosen

FACES_FIRST = 5e-5
"""Edges must be farther apart by this than faces to be all that counts: faces have more points [m]."""

SWITCH = 0.005
"""The second body's face must be farther apart than the first's by this part of the first's longest half
edge. What lies on another leans by the depth at which springs carry it; the points would be the corners of
the one and of the other by turns, and it would tremble."""

FADING = 4.0
"""How fast the other points of a face are given up: their distance over that by which edges are farther."""

SLANT = 1e-3
"""Sine of an edge and a border below which they do not cross."""

SLOPE = 0.1
"""Sine of the angle between two faces from which it is an edge of the one that lies on the other."""

LEVEL = 0.1
"""What of faces that are parallel their edges must be deeper than their corners to be taken [m]."""

TINY = 1e-30


class Meeting(NamedTuple):
    """A point of two bodies.

    Attributes:
        phi: their distance there, below 0 where they overlap [m].
        n: unit vector from the first to the second.
        x: the point between them [m].
    """

    phi: Scalar
    n: Vector3
    x: Vector3


def points_of(axes: int) -> int:
    """Points that a box and a body with so many axes touch in at most."""
    return {0: 1, 1: 2, 3: 4}[axes]


def box_meetings(a: Block, b: Block) -> list[Meeting]:
    """The points in which a box a and b touch, as many as points_of says; apart where there are fewer."""
    c = seen(a, b)
    own, other, rest, y = planes(a.half, c)
    shift = 0.5 * (a.radius - c.radius)
    if not c.axes:
        best = own.or_(rest)
        x = y + best.n * (shift - 0.5 * best.phi)
        return [_seen_from(a, Meeting(best.phi - (a.radius + c.radius), best.n, x))]
    if other is None:
        face, ahead = own, rest.phi - own.phi
        patch = _on_face(own.n, a.half, c)
        lone = y - rest.n * (0.5 * rest.phi)
    else:
        lead = SWITCH * reduce(maximum, a.half)
        face = own.or_(other, lead)
        # An edge beside the face that is not taken would be ahead of the one that is.
        ahead = rest.phi - maximum(own.phi, other.phi)
        patch = _on_either(a.half, c, own, other, lead)
        lone = _between_edges(a.half, c, rest.n)
    # How far the edges have taken over from the face.
    crossing = clamp(ahead * (1.0 / FACES_FIRST), 0.0, 1.0)
    away = FADING * maximum(ahead - FACES_FIRST, 0.0)
    n = _unit(face.n + (rest.n - face.n) * crossing)
    off = [(x - lone).dot(x - lone) for _, x in patch]
    nearest = reduce(minimum, off)
    found = []
    left: Any = True
    for (phi, x), square in zip(patch, off, strict=True):
        first, left = left & (square <= nearest), left & (square > nearest)
        share = where(first, crossing, 0.0)
        phi = phi + (rest.phi - phi) * share + where(first, 0.0, away)
        x = x + (lone - x) * share
        found.append(_seen_from(a, Meeting(phi - (a.radius + c.radius), n, x + n * shift)))
    return found


def _unit(x: Vector3) -> Vector3:
    return x * (1.0 / sqrt(x.dot(x) + TINY))


def _seen_from(a: Block, met: Meeting) -> Meeting:
    """A point in the axes of a, about its center, in the world's."""
    return Meeting(met.phi, _turned(a, met.n), a.center + _turned(a, met.x))


def _turned(a: Block, x: Vector3) -> Vector3:
    return a.axes[0] * x.x + a.axes[1] * x.y + a.axes[2] * x.z


def _face(n: Vector3, axes: Sequence[Vector3]) -> tuple[list[Scalar], list[Scalar]]:
    """The axis that is most along n: 1 for it, else 0; and the signs of n along all axes."""
    along = [n.dot(v) for v in axes]
    a, b, c = (abs(s) for s in along)
    first = where((a >= b) & (a >= c), 1.0, 0.0)
    second = where(b >= c, 1.0 - first, 0.0)
    return [first, second, 1.0 - first - second], [sign(s) for s in along]


def _on_face(n: Vector3, half: Sequence[Scalar], side: Block) -> list[tuple[Scalar, Vector3]]:
    """Where another body touches a face of a box about the origin: distances, and points between the two.

    A corner beside the face is brought to its border: to the place of the other side that is nearest to it,
    or, where that is deeper, to where an edge of the other side crosses the border.

    Args:
        n: normal of the face, along one of the box's axes.
        half: of the box.
        side: what of the other body faces it: a segment or a rectangle.
    """
    found = []
    top = sum((abs(m) * h for m, h in zip(n, half, strict=True)), 0.0)

    def beside(x: Vector3) -> list[Scalar]:
        """How far a point is beside the face, along each axis."""
        rows = zip(x, half, n, strict=True)
        return [maximum(abs(c) - h, 0.0) * (1.0 - abs(m)) for c, h, m in rows]

    for signs in product((-1.0, 1.0), repeat=len(side.axes)):
        ends = [s * h for s, h in zip(signs, side.half, strict=True)]
        corner = side.at(ends)
        inside = Vector3(*(clamp(x, -h, h) for x, h in zip(corner, half, strict=True)))
        x = inside + n * (n.dot(corner) - n.dot(inside))
        d = x - side.center
        along = [clamp(d.dot(v), -h, h) for v, h in zip(side.axes, side.half, strict=True)]
        y = side.at(along)
        height = n.dot(y)
        if len(side.axes) == 2:
            over = beside(corner)
            # Where the other side is nearly parallel to the face, the two ways would take turns.
            steep = minimum(sum((n.dot(v) * n.dot(v) for v in side.axes), 0.0) * (1.0 / SLOPE**2), 1.0)
            height = height + sum(beside(y), 0.0) * steep
            worse = FACES_FIRST + LEVEL * (1.0 - steep)
            for s, v, length in zip(signs, side.axes, side.half, strict=True):
                rates = [sign(c) * u * s for c, u in zip(corner, v, strict=True)]
                way = reduce(maximum, [o / maximum(r, SLANT) for o, r in zip(over, rates, strict=True)])
                z = corner - v * (s * minimum(way, 2.0 * length))
                at = n.dot(z) + sum(beside(z), 0.0) + worse
                y, height = chosen(at < height, z, y), minimum(at, height)
        found.append((height - top, y + n * (0.5 * (top - height))))
    return found


def _on_either(
    half: Sequence[Scalar], b: Block, own: Plane, other: Plane, ahead: Scalar
) -> list[tuple[Scalar, Vector3]]:
    """The corners of b on a face of the first box, or of that on b's if it is better by ``ahead``."""
    swap = other.phi > own.phi + ahead
    t, axes = b.center, b.axes
    back = [Vector3(*(v[k] for v in map(list, axes))) for k in range(3)]
    about = Vector3(*(-t.dot(v) for v in axes))
    ground = [where(swap, q, p) for p, q in zip(half, b.half, strict=True)]
    upper = Block(
        chosen(swap, about, t),
        tuple(chosen(swap, q, p) for p, q in zip(axes, back, strict=True)),
        tuple(where(swap, p, q) for p, q in zip(half, b.half, strict=True)),
        0.0,
    )
    n = chosen(swap, Vector3(*(-other.n.dot(v) for v in axes)), own.n)
    face, signs = _face(n, upper.axes)
    across = [-s * h for s, h in zip(signs, upper.half, strict=True)]
    middle = upper.at([f * x for f, x in zip(face, across, strict=True)])
    along, lengths = [], []
    for j in (1, 2):
        one = [face[k - j] for k in range(3)]
        along.append(upper.at(one) - upper.center)
        lengths.append(sum((f * h for f, h in zip(one, upper.half, strict=True)), 0.0))
    found = _on_face(n, ground, Block(middle, tuple(along), tuple(lengths), 0.0))
    return [(phi, chosen(swap, b.at(list(x)), x)) for phi, x in found]


def _between_edges(half: Sequence[Scalar], b: Block, n: Vector3) -> Vector3:
    """Middle of a box about the origin and a box b, where n is the best normal and no face's."""
    p, u = _edge(n, Block(Vector3.zero(), UNIT, tuple(half), 0.0))
    q, w = _edge(-n, b)
    s, t = nearest_of_segments(p, u, q, w)
    return (p + u * s + q + w * t) * 0.5


def _edge(n: Vector3, box: Block) -> tuple[Vector3, Vector3]:
    """Start and vector of the edge of a box that lies farthest along n."""
    along = [n.dot(v) for v in box.axes]
    a, b, c = (abs(s) for s in along)
    first = where((a <= b) & (a <= c), 1.0, 0.0)
    second = where(b <= c, 1.0 - first, 0.0)
    free = [first, second, 1.0 - first - second]
    start = [where(f > 0.5, -h, sign(s) * h) for f, s, h in zip(free, along, box.half, strict=True)]
    way = [2.0 * f * h for f, h in zip(free, box.half, strict=True)]
    return box.at(start), box.at(way) - box.center
