"""Contacts of a pair of shapes: distance and normal, then the manifold; a plane's contacts come at once.

Cost: 0.5-3 us.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from robokit.collision.fields import CONE, CYLINDER, FIELD, PLANE, POLYTOPE, SMOOTH
from robokit.collision.flush import NOWHERE, beside_others, face_touched, first_corner, is_off
from robokit.collision.gjk import APART, FAR, nearest_sets
from robokit.collision.round_shapes import feature, refine
from robokit.collision.support import (
    RIM,
    Facing,
    corner,
    faced,
    farthest,
    missed,
    place,
    pose,
    posed,
    round_corner,
    round_face,
    shape_pose,
    support,
    unit,
    vector,
)
from robokit.collision.terrain import (
    ALIGNED,
    FACE,
    NORMAL,
    STATE,
    across_edge,
    cells_below,
    counted,
    enter,
    is_of_ground,
    located,
    numbered,
)
from robokit.engine.loops.fields import once
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.control_flow import (
    call,
    cond,
    for_range,
    in_precision,
    rounding,
    smallest,
    solution,
    while_loop,
    zeros,
)
from robokit.spatial.scalars import clamp, maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

# ==== contact manifold ============================================================================
# Contacts of two cores that are near: polygons that face each other, one clipped by the sides of the other.
#
# With the normal n, from A to B, found by GJK or EPA, the polygon of each core that faces along it is taken.
# The one whose normal is closer to n is the reference; the other is clipped by planes through the reference's
# sides, parallel to n. Each corner of what is left is a contact, and its gap is its distance to the reference
# along n. This is exact for face on face, edge on face and edge across edge: the point where two edges cross,
# seen along n, is a corner of what is left. Of two segments neither is the reference: they give the ends of
# what of them lies side by side, along the direction half-way between theirs. If no corner is as deep as the
# nearest points of the cores are, these are a contact too.
#
# All is in the axes of A. Features have a number that lasts as long as the contact does:
#
#     4 c        corner c of A          4 c + 1    corner c of B
#     4 e + 2    edges of A and B, or   3          the nearest points
#                flush ends of segments
#
# Source: for clipping, I. Sutherland, G. Hodgman, Reentrant polygon clipping, Communications of the ACM 17
# (1974).


LEVEL = 1e-6
"""The larger shape's polygon is the reference unless the other's is aligned with n better by this, so that
flush faces do not take turns: angles of 1e-3."""

BESIDE = 1e-6, 2e-5
"""Of the length of a side, in double and in single precision: what is outside by less is inside, so that
flush sides do not take turns. The line along which a cylinder meets an edge is known to the root of what its
distance may be off: where that put it outside, one end of it alone was a contact, and wheels that met a kerb
straight on tipped over."""

AS_DEEP = 1e-9
"""Of the size of the polygons: a contact that is higher by less is as deep as the nearest points."""

SAME, EXACT = 1e-12, 1e-26
"""Squares of the sine of an angle: a normal that is off that of a face by less is this one; by rounding."""

EDGES = 23167
"""Edges are numbered below it, so that a pair of edges has a number below 2^29."""


def manifold(
    x: Any, shapes: Any, place: Any, nearest: Any, far: Any, add: Callable[[Any, Vector3, Any, Any], None]
) -> None:
    """Contacts of two cores.

    Args:
        x: with SHAPES.
        shapes: a and b.
        place: rotation by rows and origin of b in the axes of a (12 numbers).
        nearest: 10 numbers, as of gjk.nearest_sets.
        far: contacts with larger gaps are left out.
        add: called with a contact's feature, half-way point, gap.
    """
    distance, n = nearest[0], Vector3(nearest[1], nearest[2], nearest[3])
    Q, _ = pose(place)
    outward = n, -(Q.T @ n)
    faces = [faced(x, s, d) for s, d in zip(shapes, outward, strict=True)]
    points = [Vector3(*(nearest[first + k] for k in range(3))) for first in (4, 7)]
    half_way = (points[0] + points[1]) * 0.5
    n, half_way = _moving_with_face(x, shapes, Q, distance, n, faces, points, half_way)

    def polygons() -> Any:
        segments = (faces[0].count == 2) & (faces[1].count == 2)
        given = x, shapes, place, nearest[0], n, faces, far, add
        return cond(segments, lambda: _segments(*given), lambda: _polygons(*given))

    both = (faces[0].count > 1) & (faces[1].count > 1)
    deepest, size = cond(both, polygons, lambda: (float("inf"), 0.0))
    left_out = maximum(*(_missed(x, *each) for each in zip(shapes, faces, outward, strict=True)))
    misses = deepest > distance + rounding(AS_DEEP, 0.5) * size + left_out

    def nearest_points() -> None:
        off = is_off(x, shapes[0], shapes[1], nearest)
        cond(off, lambda: None, lambda: add(3, half_way, distance, n))

    cond(misses, nearest_points, lambda: None)


def _moving_with_face(
    x: Any,
    shapes: Any,
    Q: Matrix3,
    distance: Any,
    n: Vector3,
    faces: list[Facing],
    points: list[Vector3],
    half_way: Vector3,
) -> tuple[Vector3, Vector3]:
    """Normal and middle of the nearest points as they are; they move as a face does, where n is its normal.

    The simplex by which they were found may be any part of the face, or of two flush ones: the normal is that
    of the larger shape's then.
    """

    def whose() -> tuple[Any, Any, Vector3, Vector3]:
        N = Vector3(*faces[0].normal), -(Q @ Vector3(*faces[1].normal))
        off = [n.cross(m).dot(n.cross(m)) for m in N]
        is_face = [(f.count > 2) & (sine < SAME) for f, sine in zip(faces, off, strict=True)]
        larger = x.shape_bound[shapes[0]] >= x.shape_bound[shapes[1]]
        nearer = where(maximum(*off) < EXACT, where(larger, 1, 0), where(off[0] <= off[1], 1, 0)) > 0
        of_a = is_face[0] & (~is_face[1] | nearer)
        return of_a, is_face[1] & ~of_a, *N

    def off_normal(found: Any) -> Any:
        of_a, of_b, N, M = whose()
        return tuple(Vector3(*found) - chosen(of_a, N, chosen(of_b, M, n)))

    def off_middle(found: Any) -> Any:
        of_a, of_b, *_ = whose()
        on_b = chosen(of_b & (faces[0].count == 1), points[0] + moving * (0.5 * distance), half_way)
        on_a = points[1] - moving * (0.5 * distance)
        return tuple(Vector3(*found) - chosen(of_a & (faces[1].count == 1), on_a, on_b))

    moving = Vector3(*solution(off_normal, tuple(n)))
    return moving, Vector3(*solution(off_middle, tuple(half_way)))


def _missed(x: Any, s: Any, face: Facing, d: Vector3) -> Any:
    """How much deeper the lowest point of a round face may be than its polygon [m]; 0 for other faces.

    It is no contact: under a body that stands it would change sides in every step, and the body would rock.
    """
    is_round = ((x.shape_kind[s] == CYLINDER) | (x.shape_kind[s] == CONE)) & (face.count > 2)
    return where(is_round, missed(d) * x.shape_size[s, 0], 0.0)


def _polygons(
    x: Any, shapes: Any, place: Any, distance: Any, n: Vector3, faces: list[Facing], far: Any, add: Any
) -> tuple[Any, Any]:
    """Add the contacts of two polygons. Along n no point is deeper than the nearest ones.

    Returns:
        the least gap, and the size of the reference.
    """
    Q, _ = pose(place)
    normals = Vector3(*faces[0].normal), Q @ Vector3(*faces[1].normal)
    level = [
        m.dot(d) - where(f.count == 2, 2.0, 0.0) for m, d, f in zip(normals, (n, -n), faces, strict=True)
    ]
    larger = x.shape_bound[shapes[0]] >= x.shape_bound[shapes[1]]
    first = level[0] + where(larger, LEVEL, -LEVEL) >= level[1]  # A's is the reference
    sides = _sides(place, shapes, n, faces)
    reference, incident = (
        [where(first, *each) for each in zip(sides[k], sides[1 - k], strict=True)] for k in range(2)
    )
    most = reference[1] + incident[1] + 2
    face, face_corners = zeros(reference[1], 3), zeros(reference[1], kind="integer")
    V, corners, labels = (
        zeros(2 * most, 3),
        zeros(incident[1], kind="integer"),
        zeros(2 * most, 2, kind="integer"),
    )

    def put(s: Any, count: Any, what: Any, other: Any, dx: Any, dy: Any, dz: Any, *rest: Any) -> None:
        _put_corners(x, place, s, (count, what, other), Vector3(dx, dy, dz), *rest)

    call(put, *reference, 0, face, face_corners)
    call(put, *incident, 0, V, corners)
    up = n * where(first, 1.0, -1.0)
    N = Vector3(*(where(first, s, t) for s, t in zip(*normals, strict=True)))
    # A body that reaches less far over the end of a triangle than it is deep leaves the next one sideways.
    of_field = ~first & (x.shape_kind[shapes[0]] == FIELD)
    at_end = where(of_field, 2.0 * maximum(-distance, 0.0), -float("inf"))
    begin, count = _clipped(face, reference[1], up, V, labels, incident[1], most, at_end)
    p, along = vector(face, 0), vector(face, 1) - vector(face, 0)

    def put_corner(k: Any, least: Any) -> Any:
        q = vector(V, begin + k)
        height = (q - p).dot(N) / N.dot(up)
        gap = solution(lambda gap: gap - height, maximum(height, distance))  # they differ by rounding

        def give() -> None:
            feature = _feature(labels, begin + k, (corners, incident[1]), (face_corners, reference[1]), first)
            add(feature, q - up * (0.5 * gap), gap, n)

        cond(gap < far, give, lambda: None)
        return minimum(gap, least)

    return for_range(count, put_corner, float("inf")), sqrt(along.dot(along))


def _sides(place: Any, shapes: Any, n: Vector3, faces: list[Facing]) -> list[list[Any]]:
    """Of A and B what :func:`_put_corners` takes: shape, polygon, direction that it faces, 1 of B."""
    Q, _ = pose(place)
    directions = n, -(Q.T @ n)
    return [[s, *f[:3], *d, of_b] for s, f, d, of_b in zip(shapes, faces, directions, (0, 1), strict=True)]


def _put_corners(
    x: Any, place: Any, s: Any, polygon: tuple[Any, ...], d: Vector3, of_b: Any, *to: Any
) -> None:
    """Write the corners of a polygon, in the axes of A, and their numbers from a row on: to two arrays."""
    (count, what, other), (first, points, numbers) = polygon, to

    def one(k: Any) -> None:
        *p, i = corner(x, s, Facing(count, what, other, (d.x, d.y, d.z)), d, k)
        p = cond(of_b == 1, lambda: tuple(_moved(place, p)), lambda: tuple(p))
        for m, number in enumerate(p):
            points[first + k, m] = number
        numbers[first + k] = i

    for_range(count, one)


def _moved(place: Any, p: Any) -> Vector3:
    Q, r = pose(place)
    return Q @ Vector3(*p) + r


def _segments(
    x: Any, shapes: Any, place: Any, distance: Any, n: Vector3, faces: list[Facing], far: Any, add: Any
) -> tuple[Any, Any]:
    """Add the contacts of two segments; the result is as of :func:`_polygons`."""
    ends, numbers = zeros(4, 3), zeros(4, kind="integer")

    def put(s: Any, count: Any, what: Any, other: Any, dx: Any, dy: Any, dz: Any, *rest: Any) -> None:
        _put_corners(x, place, s, (count, what, other), Vector3(dx, dy, dz), *rest)

    for first, side in zip((0, 2), _sides(place, shapes, n, faces), strict=True):
        call(put, *side, first, ends, numbers)
    a, b = (vector(ends, first + 1) - vector(ends, first) for first in (0, 2))
    u, v = (unit(d - n * n.dot(d)) for d in (a, b))
    opposed = u.dot(v) < 0.0
    e = unit(u + chosen(opposed, -v, v))
    across, size = n.cross(e), sqrt(maximum(a.dot(a), b.dot(b)))
    margin = in_precision(*BESIDE) * size
    # Ends in the order in which they come along e, and where they do.
    rows = (0, 1), (where(opposed, 3, 2), where(opposed, 2, 3))
    along = [[e.dot(vector(ends, k)) for k in pair] for pair in rows]
    low, high = maximum(along[0][0], along[1][0]), minimum(along[0][1], along[1][1])

    def end(side: int, t: Any) -> Any:
        """Number of the end of a segment that is at t, or -1."""
        numbers_of = [numbers[k] for k in rows[side]]
        first, last = (abs(there - t) <= margin for there in along[side])
        return where(first, numbers_of[0], where(last, numbers_of[1], -1))

    def point(side: int, t: Any) -> Vector3:
        (first, last), (begin, end) = (vector(ends, k) for k in rows[side]), along[side]
        return first + (last - first) * clamp((t - begin) / (end - begin + smallest()), 0.0, 1.0)

    def give(k: Any, least: Any) -> Any:
        t = where(k == 0, low, high)
        p, q = point(0, t), point(1, t)
        height, beside = n.dot(q - p), across.dot(q - p)
        # It is their distance, for what is a little beside.
        apart = height + sqrt(height * height + beside * beside) - abs(height)
        gap = solution(lambda gap: gap - apart, maximum(apart, distance))
        i, j = end(0, t), end(1, t)
        both = 4 * ((i % EDGES) * EDGES + j % EDGES) + 2  # flush ends do not take turns
        feature = where(j < 0, 4 * i, where(i < 0, 4 * j + 1, both))
        cond(gap < far, lambda: add(feature, (p + q) * 0.5, gap, n), lambda: None)
        return minimum(gap, least)

    count = where(high - low > margin, 2, where(high - low >= -margin, 1, 0))
    return for_range(count, give, float("inf")), size


def _clipped(
    face: Any, sides: Any, up: Vector3, V: Any, labels: Any, count: Any, most: Any, at_end: Any
) -> tuple[Any, Any]:
    """Cut the polygon in V by planes through the sides of a face, parallel to ``up``.

    The rows of V and of the labels are two polygons, of which one is written while the other is read. Labels
    are what a corner is, and which line leads on from it: -1 - s for side s, or edge k of the polygon. A
    corner is one of the polygon, 0, or where the line before it (1 + line + sides) meets a side. So does one
    that is inside by less than ``at_end``: where the ground goes on, corners of its triangles do not count.

    Returns:
        row where it begins, and how many corners it has.
    """
    closed = count > 2

    def begin(k: Any) -> None:
        labels[k, 0], labels[k, 1] = -1 - k, k

    for_range(count, begin)

    def side(s: Any, here: Any, n: Any) -> Any:
        p = vector(face, s)
        e = vector(face, where(s + 1 < sides, s + 1, 0)) - p
        normal = e.cross(up)
        margin = in_precision(*BESIDE) * e.dot(e)
        end = -2.0 * margin - at_end * sqrt(e.dot(e))
        there = most - here

        def beyond(k: Any) -> Any:
            return (vector(V, here + k) - p).dot(normal) - margin

        def emit(m: Any, point: Any, what: Any, line: Any) -> Any:
            for k, number in enumerate(point):
                V[there + m, k] = number
            labels[there + m, 0], labels[there + m, 1] = what, line
            return m + 1

        def corner(k: Any, m: Any, d: Any, before: Any) -> Any:
            after = where(k + 1 < n, k + 1, 0)
            next_d = beyond(after)
            i, line = here + k, labels[here + k, 1]
            crosses = ((d <= 0.0) ^ (next_d <= 0.0)) & (closed | (k + 1 < n))

            def crossing(m: Any) -> Any:
                p, q = vector(V, i), vector(V, here + after)
                share = clamp((d + margin) / (d - next_d), 0.0, 1.0)
                what = (line + sides) * sides + s
                return call(emit, m, tuple(p + (q - p) * share), what, where(d <= 0.0, -1 - s, line))

            def own(m: Any) -> Any:
                ends = (labels[i, 0] < 0) & (d > end) & (next_d <= 0.0) & (before <= 0.0)
                what = where(ends, (line + sides) * sides + s, labels[i, 0])
                return call(emit, m, tuple(vector(V, i)), what, line)

            m = cond(d <= 0.0, lambda: own(m), lambda: m)
            return cond(crosses, lambda: crossing(m), lambda: m), next_d, d

        return there, for_range(n, corner, 0, beyond(0), beyond(where(n > 0, n - 1, 0)))[0]

    return for_range(sides, side, 0, count)


def _feature(labels: Any, k: Any, incident: tuple[Any, Any], reference: tuple[Any, Any], first: Any) -> Any:
    """Number of a corner of the clipped polygon: see the module."""
    what = labels[k, 0]
    (corners, count), (others, sides) = incident, reference
    of_incident = where(first, 1, 0)

    def own() -> Any:
        return 4 * corners[-1 - what] + of_incident

    def met() -> Any:
        line, s = what // sides - sides, what % sides

        def of_reference() -> Any:
            before = -1 - line
            return 4 * others[where(s - before == 1, s, before)] + 1 - of_incident

        def crossing() -> Any:
            mine = _edge(corners, line, count)
            theirs = _edge(others, s, sides)
            return 4 * where(first, theirs * EDGES + mine, mine * EDGES + theirs) + 2

        return cond(line < 0, of_reference, crossing)

    return cond(what < 0, own, met)


def _edge(corners: Any, k: Any, count: Any) -> Any:
    i, j = corners[k], corners[where(k + 1 < count, k + 1, 0)]
    return (where(i < j, i, j) * 509 + where(i < j, j, i)) % EDGES


# ==== contacts of a pair ==========================================================================


Add = Callable[[Any, Any, Any, Any], None]
"""Of a contact's feature (a whole number, below 2^31), place (3), gap, and normal (3), in world axes."""


def narrow(x: Any, shapes: tuple[Any, Any], far: Any, direction: Any, corners: Any, add: Add) -> None:
    """Find the contacts of a pair: :func:`narrow_pairs` of one.

    Args:
        x: with SHAPES and POSES.
        shapes: a and b, the body of a before that of b.
        far: contacts whose gap is not below it are left out [m].
        direction, corners: as in :func:`narrow_pairs`.
        add: called with each contact.
    """
    pairs = Pairs(lambda _: (shapes, far), direction, corners, lambda _: 1, lambda _, __: None)
    narrow_pairs(x, 1, pairs, lambda _, *contact: add(*contact))


class Pairs(NamedTuple):
    """Pairs that are processed one after the other, by their place in a list."""

    pair: Callable[[Any], tuple[tuple[Any, Any], Any]]
    """The shapes (a, b), and the gap below which contacts count [m]."""
    direction: Any
    """3 numbers that are read and written: where GJK begins, a unit vector from a to b in the axes of a, or
    zeros for none; afterwards the last one that was found."""
    corners: Any
    """6 whole numbers that are read and written: features of a and b in turn, of the simplex that was
    nearest: rows of corners, numbers of round_shapes.py, -1 for none. They save time."""
    begin: Callable[[Any], Any]
    """Of a place in the list: fills both; 0 if the pair is to be passed over, else 1."""
    end: Callable[[Any, Any], None]
    """Of the place of a pair that was looked at, and 0 if its gap is certainly not below that, else 1."""


def narrow_pairs(x: Any, count: Any, pairs: Pairs, add: Callable[..., None]) -> None:
    """Find the contacts of so many pairs.

    States that are computed side by side look for their first pair that touches together, write its contacts
    together, and go on to their second.

    Args:
        x: with SHAPES and POSES.
        count: how many.
        pairs: these.
        add: called with each contact: ``add(shapes, feature, place, gap, n)``. The place is half-way
            between the surfaces, from the step's origin; the gap is negative where they overlap; n is a unit
            vector from a to b. Place and n are in world axes.
    """
    cells, last = zeros(4, kind="integer"), zeros(2, kind="integer")
    found = zeros(12), zeros(10)
    given = pairs.direction, pairs.corners

    def next_pair(i: Any, _: Any, near: Any) -> Any:
        cond(near < 0, lambda: None, lambda: pairs.end(i, near))
        cells[3] = 0
        return i + 1, 0, cond(i + 1 < count, lambda: begun(i + 1), lambda: -1)

    def begun(i: Any) -> Any:
        def parts() -> Any:
            shapes, far = pairs.pair(i)
            for c, number in enumerate(_cells_of(x, shapes, far, pairs.direction)):
                cells[c] = number
            return 0

        return cond(pairs.begin(i) > 0, parts, lambda: -1)

    def part(i: Any, t: Any, near: Any, _: Any) -> Any:
        i, t, near = while_loop(lambda i, t, _: (i < count) & (t >= cells[3]), next_pair, i, t, near)

        def touches() -> Any:
            shapes, far = pairs.pair(i)
            return _part_touches(x, shapes, far, [cells[c] for c in range(4)], t, given, found, last)

        now = cond(i < count, touches, lambda: 0)
        return i, t + 1, where(now > 0, 1, near), now

    def to_next_contacts(i: Any, t: Any, near: Any) -> Any:
        i, t, near, now = while_loop(lambda i, _, __, now: (i < count) & (now == 0), part, i, t, near, 0)

        def contacts() -> None:
            shapes, far = pairs.pair(i)
            at = located([cells[c] for c in range(4)], t - 1)
            _contacts(x, shapes, far, at, pairs.corners, found, last, partial(add, shapes))

        cond(now > 0, contacts, lambda: None)
        return i, t, near

    while_loop(lambda i, _, __: i < count, to_next_contacts, -1, 0, -1)


def _cells_of(x: Any, shapes: tuple[Any, Any], far: Any, direction: Any) -> tuple[Any, ...]:
    """Cells of a height field that a pair may touch, as of cells_below; else one for the whole pair."""
    a, b = shapes

    def convex() -> Any:
        towards(x, shapes, direction)
        return cond(x.shape_kind[a] == FIELD, below, lambda: (0, 0, 1, 1))

    def below() -> Any:
        return cells_below(x, a, _ball(x, a, b), x.shape_bound[b] + _reach(x, shapes, far))

    plane = (x.shape_kind[a] == PLANE) | (x.shape_kind[b] == PLANE)
    return cond(plane, lambda: (0, 0, 1, 1), convex)


def _ball(x: Any, a: Any, b: Any) -> Vector3:
    """The middle of the ball around shape b in the axes of a."""
    R, p = shape_pose(x, a)
    return R.transpose_apply(place(x, x.shape_body[b], vector(x.shape_centre, b)) - p)


def _part_touches(
    x: Any,
    shapes: tuple[Any, Any],
    far: Any,
    cells: list[Any],
    t: Any,
    given: tuple[Any, Any],
    found: tuple[Any, Any],
    last: Any,
) -> Any:
    """Whether a part of a pair may have contacts: 1 for planes."""
    (a, b), (direction, corners) = shapes, given
    reach = _reach(x, shapes, far)

    def below() -> Any:
        near = enter(x, a, cells, t, _ball(x, a, b), x.shape_bound[b], reach)
        cond(near, along_normal, lambda: None)
        return where(near, 1, 0)

    def along_normal() -> None:
        for i, number in enumerate(vector(x.cell, NORMAL)):
            direction[i] = number
        for i in range(6):
            corners[i] = -1

    def distance() -> Any:
        (R, p), (R_b, p_b) = shape_pose(x, a), shape_pose(x, b)
        of_b = R.T @ R_b, R.transpose_apply(p_b - p)
        status = nearest_cores(x, shapes, of_b, reach, direction, corners, found, last=last)
        return where((status != FAR) & (found[1][0] < reach), 1, 0)

    def convex() -> Any:
        near = cond(x.shape_kind[a] == FIELD, below, lambda: 1)
        return cond(near > 0, distance, lambda: 0)

    plane = (x.shape_kind[a] == PLANE) | (x.shape_kind[b] == PLANE)
    return cond(plane, lambda: 1, convex)


def _contacts(
    x: Any,
    shapes: tuple[Any, Any],
    far: Any,
    at: tuple[Any, Any, Any],
    corners: Any,
    found: tuple[Any, Any],
    last: Any,
    add: Add,
) -> None:
    """The contacts of a part of a pair, of which it is known how near it is."""
    a, b = shapes

    def convex() -> None:
        R, p = shape_pose(x, a)
        put = _put_of(x, shapes, add)

        def in_world(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            put(feature, R @ q + p, gap, R @ n)

        def of_field(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            kept = once(x, counted, a, at, feature, tuple(q), gap, tuple(n), x.shape_radius[b])
            cond(kept > 0, lambda: in_world(numbered(at, feature), q, gap, n), lambda: None)

        def put_if_it_counts(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            is_field = x.shape_kind[a] == FIELD
            cond(is_field, lambda: of_field(feature, q, gap, n), lambda: in_world(feature, q, gap, n))

        _touching(x, shapes, at, found, last, _reach(x, shapes, far), put_if_it_counts)

    plane = (x.shape_kind[a] == PLANE) | (x.shape_kind[b] == PLANE)
    cond(plane, lambda: on_plane(x, shapes, far, corners, add), convex)


def _touching(
    x: Any,
    shapes: tuple[Any, Any],
    at: tuple[Any, Any, Any],
    found: tuple[Any, Any],
    last: Any,
    reach: Any,
    put: Any,
) -> None:
    """Of two cores; a second time along the normal of a height field's triangle, where a contact did not
    count.
    """
    (a, b), (place, out) = shapes, found
    field = x.shape_kind[a] == FIELD

    def along(*face: Any) -> None:
        _along(x, b, found, last, *face)

    def along_normal() -> None:
        n = vector(x.cell, NORMAL)
        call(along, *n, n.dot(vector(x.cell, 0)))
        x.cell[STATE, 2] = 1.0
        for i, number in enumerate(_face_towards(x, b, place, n)):
            x.cell[FACE, i] = number

    def on_surface() -> Any:
        """Along the face of a fixed polytope that is touched, where that is not along the normal."""
        face = face_touched(x, a, b, out)

        def along_face() -> None:
            n = vector(x.face_normal, face)
            call(along, *n, n.dot(first_corner(x, a, face)))

        cond(face >= 0, along_face, lambda: None)
        return where(face == NOWHERE, 2, 0)

    def turn(k: Any) -> Any:
        cond(k == 1, along_normal, lambda: None)
        manifold(x, shapes, place, out, reach, put)
        return cond(field, lambda: where((k == 0) & (x.cell[STATE, 1] > 0.0), 1, 2), lambda: 2)

    straight = x.shape_kind[b] < SMOOTH
    bare = straight & (x.shape_radius[b] == 0.0)

    def across_ridge() -> Any:
        x.cell[STATE, 2] = -1.0
        return _across_ridge(x, shapes, found, along)

    def begin() -> Any:
        n, p = (Vector3(*(out[first + c] for c in range(3))) for first in (1, 4))
        sine = n.cross(vector(x.cell, NORMAL))
        aligned = sine.dot(sine) < ALIGNED
        none = cond(bare & ~aligned, lambda: ~is_of_ground(x, a, at, p, n), lambda: bare & ~bare)
        return cond(none, across_ridge, lambda: where(straight & aligned, 1, 0))

    def other() -> Any:
        return cond(beside_others(x, a), on_surface, lambda: 0)

    while_loop(lambda k: k < 2, turn, cond(field, begin, other))


def _along(x: Any, b: Any, found: tuple[Any, Any], last: Any, nx: Any, ny: Any, nz: Any, height: Any) -> None:
    """Nearest points along the normal of a face of a, which is so far from the origin."""
    place, out = found
    (Q, r), n = pose(place), Vector3(nx, ny, nz)
    y = Q @ Vector3(*_extreme(x, b, last, 1, -Q.transpose_apply(n))[1:]) + r
    gap = n.dot(y) - height
    for i, number in enumerate((gap, *n, *(y - n * gap), *y)):
        out[i] = number


def _face_towards(x: Any, b: Any, place: Any, n: Vector3) -> Vector3:
    """Minus the normal of what of shape b faces a face of a with the normal n."""
    Q, _ = pose(place)
    return -(Q @ Vector3(*faced(x, b, -Q.transpose_apply(n)).normal))


def _across_ridge(x: Any, shapes: tuple[Any, Any], found: tuple[Any, Any], along: Any) -> Any:
    """Nearest points across the ridge beside a triangle where shape b leaves it soonest, and 0; 1 where that
    is along its normal.
    """
    (a, b), (place, out) = shapes, found
    n, own = Vector3(out[1], out[2], out[3]), vector(x.cell, NORMAL)
    face = _face_towards(x, b, place, own)

    def edge(k: Any, most: Any, *best: Any) -> Any:
        """Nearest to n, or to the normal of what faces the triangle; at last its own normal."""
        m, height, ridge = across_edge(x, a, k % 3, chosen(k < 3, n, face))
        m = chosen(k < 6, m, own)
        height = where(k < 6, height, own.dot(vector(x.cell, 0)))
        call(along, *m, height)
        better = (out[0] > most) & (ridge | (k == 6))
        known = zip((1.0 * out[0], 1.0 * k, *m, height), (most, *best), strict=True)
        return tuple(where(better, new, old) for new, old in known)

    _, k, *best = for_range(7, edge, -float("inf"), 0.0, *own, 0.0)
    call(along, *best)
    return where(k < 6.0, 0, 1)


def on_plane(x: Any, shapes: tuple[Any, Any], far: Any, corners: Any, add: Add) -> None:
    """Find the contacts of a pair, one of whose shapes is a plane.

    Args:
        x, shapes, far, add: as in :func:`narrow`.
        corners: likewise; of None all corners are looked at.
    """
    a, b = shapes
    reach, put = _reach(x, shapes, far), _put_of(x, shapes, add)
    of_b = x.shape_kind[b] == PLANE
    other, plane, side = where(of_b, a, b), where(of_b, b, a), where(of_b, -1.0, 1.0)
    _on_plane(x, other, plane, side, reach, corners, put)


def _reach(x: Any, shapes: tuple[Any, Any], far: Any) -> Any:
    """How near the cores of a pair have to be."""
    a, b = shapes
    return far + x.shape_radius[a] + x.shape_radius[b]


def _put_of(x: Any, shapes: tuple[Any, Any], add: Add) -> Callable[[Any, Vector3, Any, Vector3], None]:
    """What contacts of the cores of a pair are given to."""
    a, b = shapes
    radii = x.shape_radius[a], x.shape_radius[b]

    def give(feature: Any, q: Any, gap: Any, n: Any) -> None:
        n = Vector3(*n)
        middle = Vector3(*q) + n * (0.5 * (radii[0] - radii[1]))
        add(feature, tuple(middle), gap - radii[0] - radii[1], tuple(n))

    def put(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
        call(give, feature, tuple(q), gap, tuple(n))

    return put


def gap_along(x: Any, m: Any, d: Vector3) -> Any:
    """A gap that no contact of a candidate is below: how far apart its shapes are along a direction.

    Args:
        x: with SHAPES, POSES and CANDIDATES; ``apart_corners`` of the pair are read and written. That of a
            is 0 where the direction is another than the last time.
        m: its place among candidates; a and b, its shapes, are neither planes nor height fields.
        d: from a to b, a unit vector in the axes of shape a.
    """
    a, b = x.candidate_shapes[m, 0], x.candidate_shapes[m, 1]
    (R, p), (S, q) = shape_pose(x, a), shape_pose(x, b)
    along = R @ d
    e = S.transpose_apply(along)

    def of_a(last: Any) -> Any:
        return cond(last < 0, lambda: farthest(x, a, d), lambda: 1 * last)

    def of_b(last: Any) -> Any:
        return farthest(x, b, -e, last)

    def extreme(s: Any, side: int, d: Vector3, corner_of: Callable[[Any], Any]) -> Vector3:
        def corner() -> Any:
            i = corner_of(x.apart_corners[m, side] - 1)
            x.apart_corners[m, side] = i + 1
            return tuple(vector(x.corners, i))

        return Vector3(*cond(x.shape_kind[s] <= POLYTOPE, corner, lambda: support(x, s, d)))

    y, z = extreme(a, 0, d, of_a), extreme(b, 1, -e, of_b)
    return along.dot(q - p) + e.dot(z) - d.dot(y) - x.shape_radius[a] - x.shape_radius[b]


def nearest_cores(
    x: Any,
    shapes: tuple[Any, Any],
    of_b: tuple[Matrix3, Vector3],
    reach: Any,
    direction: Any,
    corners: Any,
    found: tuple[Any, Any],
    last: Any = None,
) -> Any:
    """Distance or depth of two convex cores, their normal and nearest points, in the axes of the first.

    Args:
        x: with SHAPES.
        shapes: a and b.
        of_b: rotation and origin of b in the axes of a.
        reach: larger distances are not looked for [m].
        direction, corners: as in :func:`narrow`, in these axes.
        found: that are written to: 12 numbers, rotation by rows and origin of b; 10 as of gjk.nearest_sets.
        last: 2 whole numbers for the corners where climbing ended.

    Returns:
        FAR, APART or INSIDE.
    """
    (a, b), (Q, r), (place, out) = shapes, of_b, found
    for i, number in enumerate([number for row in Q.rows for number in row] + list(r)):
        place[i] = number
    known = zeros(6, kind="integer")
    last = zeros(2, kind="integer") if last is None else last
    last[0], last[1] = corners[0], corners[1]
    for i in range(6):
        known[i] = corners[i]
        corners[i] = -1

    def extreme(s: Any, side: Any, d: Any) -> Any:
        return _extreme(x, s, last, side, Vector3(*d))

    def write(row: Any, i: Any, A: Vector3, j: Any, B: Vector3) -> Vector3:
        Q, r = pose(place)
        B = Q @ B + r
        w = A - B
        for m, number in enumerate((*w, *A, *B, 1.0 * i, 1.0 * j)):
            row[m] = number
        return w

    def of_pair(d: Any, row: Any) -> Any:
        Q, _ = pose(place)
        along = Vector3(*d)
        i, *A = call(extreme, a, 0, d)
        j, *B = call(extreme, b, 1, tuple(-Q.transpose_apply(along)))
        return write(row, i, Vector3(*A), j, Vector3(*B)).dot(along)

    def vertex(d: Any, row: Any) -> Any:
        return call(of_pair, d, row)

    def remembered(k: Any, row: Any) -> Any:
        i, j = known[2 * k], known[2 * k + 1]

        def enter() -> Any:
            write(row, i, vector(x.corners, i), j, vector(x.corners, j))
            return 1

        return cond((i >= 0) & (j >= 0), enter, lambda: 0)

    status = nearest_sets(x, vertex, reach, direction, out, (remembered, corners))
    is_round = _is_round(x, a) | _is_round(x, b)

    def to_the_last_digits() -> None:
        refine(x, shapes, lambda: pose(place), corners, out, vertex, status == APART)
        for k in range(3):
            direction[k] = out[1 + k]

    known = (status != FAR) & is_round & (x.shape_kind[a] != FIELD)
    cond(known, to_the_last_digits, lambda: None)
    return status


def _is_round(x: Any, s: Any) -> Any:
    kind = x.shape_kind[s]
    return (kind == CYLINDER) | (kind == CONE) | (kind >= SMOOTH)


def _extreme(x: Any, s: Any, last: Any, side: Any, d: Vector3) -> Any:
    """The feature of a shape, a corner's row or one of a round shape, and its point that are farthest
    along d; where climbing begins, and ends, is an entry of ``last``.
    """

    def corner() -> Any:
        i = farthest(x, s, d, last[side])
        last[side] = i
        return i, *vector(x.corners, i)

    def other() -> Any:
        # A point of the shape; how that of a rim moves along it is for round_shapes.py to tell.
        p = support(x, s, Vector3(*solution(lambda still: still, tuple(d))))
        return feature(x, s, Vector3(*p)), *p

    return cond(x.shape_kind[s] <= POLYTOPE, corner, other)


def towards(x: Any, shapes: tuple[Any, Any], direction: Any) -> None:
    """An initial direction if none is given: from the centre of a's bounding sphere to that of b's."""

    def middles() -> None:
        R, _ = posed(x, shapes[0])
        c, d = (place(x, x.shape_body[s], vector(x.shape_centre, s)) for s in shapes)
        r = R.transpose_apply(d - c)
        is_null = r.dot(r) == 0.0
        r = Vector3(where(is_null, 1.0, r.x), r.y, r.z)
        for i, number in enumerate(r * (1.0 / sqrt(r.dot(r)))):
            direction[i] = number

    d = Vector3(direction[0], direction[1], direction[2])
    cond(d.dot(d) == 0.0, middles, lambda: None)


def _on_plane(x: Any, s: Any, plane: Any, side: Any, reach: Any, corners: Any, put: Any) -> None:
    """Every point of a shape that may touch a plane: corners, those of the polygon of a round face or side.

    Args:
        x: with SHAPES and POSES.
        s: the shape.
        plane: that of the plane.
        side: 1 where the normal of the contacts is that of the plane, else -1.
        reach: contacts with larger gaps are left out.
        corners: of which the first is where the shape was lowest, or None.
        put: called with a contact's feature, half-way point, gap and normal.
    """
    E, at = shape_pose(x, s)
    P, origin = shape_pose(x, plane)
    N = Vector3(*(P.rows[i][2] for i in range(3)))
    kind = x.shape_kind[s]
    down, height = -E.transpose_apply(N), (at - origin).dot(N)

    def touch(feature: Any, point: Vector3) -> None:
        gap = height - down.dot(point)

        def near() -> None:
            put(4 * feature, E @ point + at - N * (0.5 * gap), gap, N * side)

        cond(gap < reach, near, lambda: None)

    def of_corner(k: Any) -> None:
        touch(k, vector(x.corners, x.shape_corners[s, 0] + k))

    def of_polytope() -> None:
        if corners is None:
            for_range(x.shape_corners[s, 1], of_corner)
            return
        lowest = farthest(x, s, down, corners[0])
        corners[0] = lowest
        some = height - down.dot(vector(x.corners, lowest)) < reach
        for_range(where(some, x.shape_corners[s, 1], 0), of_corner)

    def of_round() -> None:
        face = round_face(x, s, down)

        def of_face(k: Any) -> None:
            *point, i = round_corner(x, s, face, down, k)
            cond(k < face.count, lambda: touch(i, Vector3(*point)), lambda: None)

        for_range(RIM, of_face)

    def smooth() -> None:
        cond(kind >= SMOOTH, lambda: touch(0, Vector3(*support(x, s, down))), of_round)

    cond(kind <= POLYTOPE, of_polytope, smooth)
