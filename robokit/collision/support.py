"""Cores of shapes: support points, and the polygon of each that faces a direction.

A core is a convex set C in the axes of its shape. All that detection asks of it is

    support(d)      the point of C that is farthest along d
    facing(d)       the polygon of C's boundary that faces d: a face, an edge or segment, a point

so that a new kind of core is one support function, a row of SUPPORTS, and, where it has flat or straight
parts, one polygon; those that have none are SMOOTH.
Polygons of round rims begin at the rim's point that is farthest along d: a wheel rolls on a point that turns
with the direction of the contact, not with the wheel, and has no bumps.

Cost: O(corners) for polytopes, with many corners about the square root of it, by climbing along edges from a
corner that depends on the direction alone; O(1) for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from robokit.collision.fields import CONE, CYLINDER, ELLIPSOID, FIELD, POINT, POLYTOPE, SEGMENT, SMOOTH
from robokit.collision.terrain import NORMAL, edge_of_cell, support_of_cell
from robokit.engine.loops.fields import once
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.control_flow import cond, for_range, smallest, while_loop, whole
from robokit.spatial.scalars import Scalar, clamp, minimum, sqrt, where

Triple = tuple[Scalar, Scalar, Scalar]

RIM = 8  # corners of the polygon that stands for a round face
STEEP = 0.7  # a round face is what faces d where its normal is within 45 degrees of d; else it is the side
EDGE_ON = 0.1  # a face whose normal has less than this along d is seen edge-on: the edge stands for it

TILT = 2.4e-4
"""A round face that is tilted by less, as what stands on ground that gives way is, has its polygon's first
corner fixed in its axes, not where it is lowest: it lies deeper there by a thirteenth of the radius times the
tilt at most. With a tilt t above, the first corner is off by TILT^3 / t^3."""

SHARE = 2.0 * (1.0 - math.cos(math.pi / RIM))
"""Twice what RIM corners in all directions, at most 2 pi / RIM apart, miss of the farthest one's distance."""

COS = [math.cos(2.0 * math.pi * k / RIM) for k in range(RIM)]
SIN = [math.sin(2.0 * math.pi * k / RIM) for k in range(RIM)]


def vector(array: Any, k: Any) -> Vector3:
    """Row k of an array of vectors."""
    return Vector3(array[k, 0], array[k, 1], array[k, 2])


def pair_number(x: Any, a: Any, b: Any) -> Any:
    """The number of a pair of shapes a and b, the body of a before that of b: see PAIRS of fields.py.

    All of its terms are below the number of pairs.
    """
    (start, size, first), (_, size_b, first_b) = ([x.shape_pairs[s, k] for k in range(3)] for s in (a, b))
    return start + size * (first_b - first - size) + (a - first) * size_b + b - first_b


def unit(v: Vector3) -> Vector3:
    """v over its length."""
    return v * (1.0 / (sqrt(v.dot(v)) + smallest()))


def tangents(n: Vector3) -> tuple[Vector3, Vector3]:
    """Two unit vectors, right-handed with the unit vector n; they jump where n crosses a cone about -z.

    Source: T. Duff et al., Building an orthonormal basis, revisited, JCGT 6 (2017).
    Differs: the seam is where n.z = -0.9, since walls and floors are more frequent than slanted ceilings.
    """
    sign = where(n.z < -0.9, -1.0, 1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    t1 = Vector3(1.0 + sign * n.x * n.x * a, sign * b, -sign * n.x)
    return t1, Vector3(b, sign + n.y * n.y * a, -n.y)


def pose(numbers: Any) -> tuple[Matrix3, Vector3]:
    """Rotation by rows and origin."""
    rows = [[numbers[3 * i + k] for k in range(3)] for i in range(3)]
    return Matrix3(rows), Vector3(*(numbers[9 + k] for k in range(3)))


def place(x: Any, body: Any, r: Vector3) -> Vector3:
    """A point of a body in world axes, from the step's origin."""
    return rotation(x, body) @ r + origin_of(x, body)


def origin_of(x: Any, body: Any) -> Vector3:
    """The origin of a body in world axes, from the step's origin."""
    return vector(x.p, body) + vector(x.seat, body)


def rotation(x: Any, body: Any) -> Matrix3:
    """From a body's axes to those of the world."""
    return Matrix3([[x.R[body, 3 * i + k] for k in range(3)] for i in range(3)])


def body_pose(x: Any, s: Any) -> tuple[Matrix3, Vector3]:
    """Rotation and origin of the body of a shape: those of the shape itself, if it has corners."""
    return rotation(x, x.shape_body[s]), origin_of(x, x.shape_body[s])


def shape_pose(x: Any, s: Any) -> tuple[Matrix3, Vector3]:
    """Rotation and origin of a shape, in world axes from the step's origin: of its body if it has corners."""
    E, p = body_pose(x, s)

    def own() -> Any:
        R, r = pose(x.shape_placement[s])
        return (E @ R).rows, tuple(E @ r + p)

    def of_body() -> Any:
        return E.rows, tuple(p)

    rows, origin = cond(x.shape_kind[s] <= POLYTOPE, of_body, own)
    return Matrix3(rows), Vector3(*origin)


def posed(x: Any, s: Any) -> tuple[Matrix3, Vector3]:
    """As :func:`shape_pose`; the code exists once in a kernel."""
    return pose(once(x, _posed, s))


def _posed(x: Any, s: Any) -> Any:
    R, p = shape_pose(x, s)
    return *(number for row in R.rows for number in row), *p


def support(x: Any, s: Any, d: Vector3) -> Triple:
    """The point of the core of shape s that is farthest along d, in the axes of the shape.

    ``x``: with SHAPES; ``s``: number of the shape; ``d``: direction, of any length.
    """
    kind = x.shape_kind[s]

    def other() -> Triple:
        return cond(kind == FIELD, lambda: tuple(support_of_cell(x, d)), lambda: of_kinds(x, s, d))

    return cond(kind <= POLYTOPE, lambda: tuple(vector(x.corners, farthest(x, s, d))), other)


def of_kinds(x: Any, s: Any, d: Vector3, least: int = 0) -> Triple:
    """As :func:`support`, for a shape of one of the kinds of SUPPORTS from ``least`` on."""

    def found(kinds: Sequence[int]) -> Triple:
        def own() -> Triple:
            return tuple(SUPPORTS[kinds[0]](vector(x.shape_size, s), d))

        return cond(x.shape_kind[s] == kinds[0], own, lambda: found(kinds[1:])) if kinds[1:] else own()

    return found([kind for kind in SUPPORTS if kind >= least])


CUBE = 4  # parts of the edge of a cube of directions: 96 in all


def farthest(x: Any, s: Any, d: Vector3, near: Any = -1) -> Any:
    """The corner of shape s that is farthest along d: its row of ``corners``.

    ``x``: with SHAPES; ``s``: number of the shape, one with corners; ``d``: direction, of any length;
    ``near``: a corner of it that may be near, where climbing begins; -1 for none.
    """
    return cond(x.shape_starts[s] < 0, lambda: _of_all(x, s, d), lambda: _climbed(x, s, d, near))


def _climbed(x: Any, s: Any, d: Vector3, near: Any) -> Any:
    base = x.shape_corners[s, 0]

    def of_direction() -> Any:
        return base + x.starts[x.shape_starts[s] + part_of_cube(d)]

    begin = cond(near >= 0, lambda: near, of_direction)

    def turn(at: Any, h: Scalar, goes: Any) -> Any:
        links = x.corner_climbs[at, 0]

        def higher(k: Any, most: Scalar, top: Any) -> tuple[Scalar, Any]:
            j = base + x.climbs[links + k]
            h = vector(x.corners, j).dot(d)
            return where(h > most, h, most), where(h > most, j, top)

        most, top = for_range(x.corner_climbs[at, 1], higher, h, at)
        return top, most, where(top == at, 0, 1)

    return while_loop(lambda at, h, goes: goes > 0, turn, begin, vector(x.corners, begin).dot(d), 1)[0]


def part_of_cube(d: Vector3, parts: int = CUBE) -> Any:
    """Number of the part of a cube of directions in which d is; of the null vector that of some.

    ``d``: direction, of any length; ``parts``: of each edge of the cube.
    """
    a, b, c = abs(d.x), abs(d.y), abs(d.z)
    x_most, y_most = (a >= b) & (a >= c), b >= c
    u = where(x_most, d.y, where(y_most, d.z, d.x))
    v = where(x_most, d.z, where(y_most, d.x, d.y))
    along = where(x_most, d.x, where(y_most, d.y, d.z))
    scale = 0.5 * parts / (abs(along) + smallest())
    row = minimum(whole(clamp(u * scale + 0.5 * parts, 0.0, 1.0 * parts)), parts - 1)
    column = minimum(whole(clamp(v * scale + 0.5 * parts, 0.0, 1.0 * parts)), parts - 1)
    side = where(x_most, 0, where(y_most, 2, 4)) + where(along < 0.0, 1, 0)
    return (side * parts + row) * parts + column


def middle_of_part(number: Any, parts: int) -> Vector3:
    """The unit vector to the middle of a part of :func:`part_of_cube`."""
    side, row, column = number // (parts * parts), number // parts % parts, number % parts
    axis, along = side // 2, where(side % 2 == 1, -1.0, 1.0)
    u, v = ((2.0 * k + 1.0) * (1.0 / parts) - 1.0 for k in (row, column))
    x = where(axis == 0, along, where(axis == 1, v, u))
    y = where(axis == 0, u, where(axis == 1, along, v))
    z = where(axis == 0, v, where(axis == 1, u, along))
    return unit(Vector3(x, y, z))


def _of_all(x: Any, s: Any, d: Vector3) -> Any:
    first = x.shape_corners[s, 0]

    def further(k: Any, most: Scalar, at: Any) -> tuple[Scalar, Any]:
        h = vector(x.corners, first + 1 + k).dot(d)
        return where(h > most, h, most), where(h > most, first + 1 + k, at)

    return for_range(x.shape_corners[s, 1] - 1, further, vector(x.corners, first).dot(d), first)[1]


def _of_ellipsoid(axes: Vector3, d: Vector3) -> Vector3:
    scaled = Vector3(axes.x * d.x, axes.y * d.y, axes.z * d.z)
    k = 1.0 / (sqrt(scaled.dot(scaled)) + smallest())
    return Vector3(axes.x * scaled.x * k, axes.y * scaled.y * k, axes.z * scaled.z * k)


def _of_cylinder(size: Vector3, d: Vector3) -> Vector3:
    radius, half = size.x, size.y
    k = radius / (sqrt(d.x * d.x + d.y * d.y) + smallest())
    return Vector3(d.x * k, d.y * k, where(d.z < 0.0, -half, half))


def _of_cone(size: Vector3, d: Vector3) -> Vector3:
    radius, half = size.x, size.y
    across = sqrt(d.x * d.x + d.y * d.y)
    k = where(2.0 * half * d.z > radius * across, 0.0, radius / (across + smallest()))
    return Vector3(d.x * k, d.y * k, where((k > 0.0) | (d.z < 0.0), -half, half))


SUPPORTS: dict[int, Callable[[Vector3, Vector3], Vector3]] = {
    CYLINDER: _of_cylinder,
    ELLIPSOID: _of_ellipsoid,
    CONE: _of_cone,
}
"""Of each kind without corners, often met ones first: (shape_size, d) to the point farthest along d."""


class Facing(NamedTuple):
    """The part of a core's surface that faces a direction."""

    count: Any
    """Corners of the polygon: 1 for a point, 2 for a segment."""
    what: Any
    """The face; of a segment or edge its first corner; 1 or -1 for a round face, 0 for a straight side."""
    other: Any
    """The second corner of an edge."""
    normal: Triple
    """Of the polygon, outward; of a segment perpendicular to it; of a point the direction itself."""


def facing(x: Any, s: Any, d: Vector3) -> Facing:
    """The polygon of shape s that faces the unit vector d, in the axes of the shape."""
    kind = x.shape_kind[s]
    point = Facing(1, 0, 0, (d.x, d.y, d.z))
    first = x.shape_corners[s, 0]
    return Facing(
        *cond(
            (kind == POINT) | (kind >= SMOOTH),
            lambda: point,
            lambda: cond(
                kind == SEGMENT,
                lambda: _segment(x, first, first + 1, d),
                lambda: cond(
                    kind == POLYTOPE,
                    lambda: _of_polytope(x, s, d),
                    lambda: cond(kind == FIELD, lambda: _of_cell(x, d), lambda: round_face(x, s, d)),
                ),
            ),
        )
    )


def faced(x: Any, s: Any, d: Vector3) -> Facing:
    """As :func:`facing`; the code exists once in a kernel."""
    return once(x, _faced, s, tuple(d))


def _faced(x: Any, s: Any, d: Any) -> Facing:
    return facing(x, s, Vector3(*d))


def _segment(x: Any, i: Any, j: Any, d: Vector3) -> Facing:
    along = unit(vector(x.corners, j) - vector(x.corners, i))
    return Facing(2, i, j, tuple(unit(d - along * along.dot(d))))


def _of_polytope(x: Any, s: Any, d: Vector3) -> Facing:
    first = x.shape_faces[s, 0]

    def better(k: Any, most: Scalar, at: Any) -> tuple[Scalar, Any]:
        h = vector(x.face_normal, first + k).dot(d)
        return where(h > most, h, most), where(h > most, first + k, at)

    _, face = for_range(x.shape_faces[s, 1], better, EDGE_ON, -1)

    def edge() -> Facing:
        i = farthest(x, s, d)
        links, base, here = x.corner_links[i, 0], x.shape_corners[s, 0], vector(x.corners, i)

        def flatter(k: Any, most: Scalar, at: Any) -> tuple[Scalar, Any]:
            j = base + x.neighbours[links + k]
            h = unit(vector(x.corners, j) - here).dot(d)
            return where(h > most, h, most), where(h > most, j, at)

        j = for_range(x.corner_links[i, 1], flatter, -2.0, i)[1]
        return cond(j == i, lambda: Facing(1, i, i, tuple(d)), lambda: _segment(x, i, j, d))

    def whole_face() -> Facing:
        return Facing(x.face_corners[face, 1], face, 0, tuple(vector(x.face_normal, face)))

    return cond(face >= 0, whole_face, edge)


def _of_cell(x: Any, d: Vector3) -> Facing:
    """The triangle of a height field, or an edge of it."""
    n = vector(x.cell, NORMAL)
    return cond(
        n.dot(d) >= EDGE_ON,
        lambda: Facing(3, 0, 0, tuple(n)),
        lambda: Facing(2, *edge_of_cell(x, d)),
    )


def round_face(x: Any, s: Any, d: Vector3) -> Facing:
    """A round face, or the straight side of a cylinder or cone."""
    is_cone = x.shape_kind[s] == CONE
    end = where(d.z < -STEEP, -1, where((d.z > STEEP) & ~is_cone, 1, 0))
    across, up = 2.0 * x.shape_size[s, 1], where(is_cone, x.shape_size[s, 0], 0.0)
    u = outermost(d)
    side = unit(Vector3(across * u.x, across * u.y, up))
    normal = (where(end == 0, side.x, 0.0), where(end == 0, side.y, 0.0), where(end == 0, side.z, 1.0 * end))
    return Facing(where(end == 0, 2, RIM), end, 0, normal)


def outermost(d: Vector3) -> Vector3:
    """From the axis of a round face towards the point of its rim that is farthest along d."""
    square = d.x * d.x + d.y * d.y
    return unit(Vector3(square * d.x + TILT * TILT * TILT, square * d.y, 0.0))


def missed(d: Vector3) -> Any:
    """Depth over the radius by which the lowest point of a round face that faces d may be deeper than its
    polygon: in proportion to the tilt below TILT, and soon nothing above.
    """
    tilt = sqrt(d.x * d.x + d.y * d.y)
    off = TILT / (tilt + smallest())
    return tilt * minimum(SHARE, off * off * off * off * off * off)


def corner(x: Any, s: Any, face: Facing, d: Vector3, k: Any) -> tuple[Scalar, Scalar, Scalar, Any]:
    """Corner k of a polygon that faces d, counter-clockwise from outside, and its number in the shape."""

    def of_polytope() -> Any:
        of_face = (x.shape_kind[s] == POLYTOPE) & (face.count > 2)
        first = x.shape_corners[s, 0]

        def of_a_face() -> Any:
            return first + x.polygon[x.face_corners[face.what, 0] + k]

        i = cond(of_face, of_a_face, lambda: where(k == 0, face.what, face.other))
        return *vector(x.corners, i), i - first

    def of_cell() -> Any:
        i = where(face.count > 2, k, where(k == 0, face.what, face.other))
        return *vector(x.cell, i), i

    def other() -> Any:
        return cond(x.shape_kind[s] == FIELD, of_cell, lambda: round_corner(x, s, face, d, k))

    return cond(x.shape_kind[s] <= POLYTOPE, of_polytope, other)


def round_corner(x: Any, s: Any, face: Facing, d: Vector3, k: Any) -> Any:
    """As :func:`corner`, of a cylinder or cone."""
    radius, half, u = x.shape_size[s, 0], x.shape_size[s, 1], outermost(d)
    end = face.what

    def of_face() -> Any:
        c, n = 1.0, 0.0
        for m in range(1, RIM):
            c, n = where(k == m, COS[m], c), where(k == m, SIN[m], n)
        n = n * end
        return (
            radius * (c * u.x - n * u.y),
            radius * (c * u.y + n * u.x),
            half * end,
            k + where(end < 0, RIM, 0),
        )

    def of_side() -> Any:
        tip = (k == 1) & (x.shape_kind[s] == CONE)
        r = where(tip, 0.0, radius)
        z = where(k == 1, half, -half)
        return r * u.x, r * u.y, z, where(tip, 2 * RIM, where(k == 1, 0, RIM))

    return cond(end == 0, of_side, of_face)
