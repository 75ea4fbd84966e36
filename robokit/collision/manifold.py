"""Contacts of two cores that are near: polygons that face each other, one clipped by the sides of the other.

With the normal n, from A to B, found by GJK or EPA, the polygon of each core that faces along it is taken.
The one whose normal is closer to n is the reference; the other is clipped by planes through the reference's
sides, parallel to n. Each corner of what is left is a contact, and its gap is its distance to the reference
along n. This is exact for face on face, edge on face and edge across edge: the point where two edges cross,
seen along n, is a corner of what is left. Segments give the parts that lie side by side. If no corner is as
deep as the nearest points of the cores are, these are a contact too.

All is in the axes of A. Features have a number that lasts as long as the contact does:

    4 c        corner c of A          4 c + 1    corner c of B
    4 e + 2    edges of A and B       3          the nearest points

Source: for clipping, I. Sutherland, G. Hodgman, Reentrant polygon clipping, Communications of the ACM 17
(1974).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robokit.collision.support import COS, SIN, Facing, corner, facing, tangents, unit, vector
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.control_flow import call, cond, for_range, in_precision, rounding, zeros
from robokit.spatial.scalars import added, clamp, maximum, minimum, sqrt, where

POINTS = 8
"""Contacts of a pair of shapes at most, besides their nearest points."""

LEVEL = 1e-6
"""A's polygon is the reference unless B's is aligned with n better by this, so that flush faces do not take
turns: angles of 1e-3."""

BESIDE = 1e-6, 2e-5
"""Of the length of a side, in double and in single precision: what is outside by less is inside, so that
flush sides do not take turns. The line along which a cylinder meets an edge is known to the root of what its
distance may be off: where that put it outside, one end of it alone was a contact, and wheels that met a kerb
straight on tipped over."""

AS_DEEP = 1e-9
"""Of the size of the polygons: a contact that is higher by less is as deep as the nearest points."""

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

    def faced(s: Any, d: Any) -> Facing:
        return facing(x, s, Vector3(*d))

    faces = [call(faced, s, tuple(d)) for s, d in zip(shapes, outward, strict=True)]
    half_way = (
        Vector3(*(nearest[4 + k] for k in range(3))) + Vector3(*(nearest[7 + k] for k in range(3)))
    ) * 0.5

    def polygons() -> Any:
        return _polygons(x, shapes, place, nearest[0], n, faces, far, add)

    both = (faces[0].count > 1) & (faces[1].count > 1)
    deepest, size = cond(both, polygons, lambda: (float("inf"), 0.0))
    misses = deepest > distance + rounding(AS_DEEP, 0.5) * size
    cond(misses, lambda: add(3, half_way, distance, n), lambda: None)


def pose(numbers: Any) -> tuple[Matrix3, Vector3]:
    """Rotation by rows and origin."""
    rows = [[numbers[3 * i + k] for k in range(3)] for i in range(3)]
    return Matrix3(rows), Vector3(*(numbers[9 + k] for k in range(3)))


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
    first = level[0] + LEVEL >= level[1]  # A's is the reference
    inverse = -(Q.T @ n)
    sides = [(s, *f[:3], *d, of_b) for s, f, d, of_b in zip(shapes, faces, (n, inverse), (0, 1), strict=True)]
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

    def put(
        s: Any, count: Any, what: Any, other: Any, dx: Any, dy: Any, dz: Any, of_b: Any, *out: Any
    ) -> None:
        def one(k: Any) -> None:
            *p, i = corner(x, s, Facing(count, what, other, (dx, dy, dz)), Vector3(dx, dy, dz), k)
            p = cond(of_b == 1, lambda: tuple(_moved(place, p)), lambda: tuple(p))
            for m, number in enumerate(p):
                out[0][k, m] = number
            out[1][k] = i

        for_range(count, one)

    call(put, *reference, face, face_corners)
    call(put, *incident, V, corners)
    up = n * where(first, 1.0, -1.0)
    N = Vector3(*(where(first, s, t) for s, t in zip(*normals, strict=True)))
    begin, count = _clipped(face, reference[1], up, V, labels, incident[1], most)
    size = sqrt(added(k * k for k in vector(face, 1) - vector(face, 0)))
    flat = reference[1] > 2
    p, along = vector(face, 0), vector(face, 1) - vector(face, 0)
    across = unit(along.cross(up))
    gaps = zeros(most)

    def measure(k: Any, least: Any, near: Any) -> Any:
        w = vector(V, begin + k) - p
        gap = w.dot(N) / N.dot(up)
        beside = across.dot(w)
        # Of two segments it is their distance, for what is a little beside.
        gap = maximum(where(flat, gap, gap + sqrt(gap * gap + beside * beside) - abs(gap)), distance)
        gaps[k] = gap
        return minimum(gap, least), near + where(gap < far, 1, 0)

    least, near = for_range(count, measure, float("inf"), 0)

    def give(k: Any) -> None:
        feature = _feature(labels, begin + k, (corners, incident[1]), (face_corners, reference[1]), first)
        q = vector(V, begin + k)
        add(feature, q - up * (0.5 * gaps[k]), gaps[k], n)

    _chosen(V, begin, gaps, count, near, far, n, give)
    return least, size


def _moved(place: Any, p: Any) -> Vector3:
    Q, r = pose(place)
    return Q @ Vector3(*p) + r


def _clipped(
    face: Any, sides: Any, up: Vector3, V: Any, labels: Any, count: Any, most: Any
) -> tuple[Any, Any]:
    """Cut the polygon in V by planes through the sides of a face, parallel to ``up``.

    The rows of V and of the labels are two polygons, of which one is written while the other is read. Labels
    are what a corner is, and which line leads on from it: -1 - s for side s, or edge k of the polygon. A
    corner is one of the polygon, 0, or where the line before it (1 + line + sides) meets a side.

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
        across = e - up * up.dot(e)
        normal = Vector3(*(where(sides == 2, a, b) for a, b in zip(-across, e.cross(up), strict=True)))
        margin = in_precision(*BESIDE) * e.dot(e)
        there = most - here

        def beyond(k: Any) -> Any:
            return (vector(V, here + k) - p).dot(normal) - margin

        def emit(m: Any, point: Any, what: Any, line: Any) -> Any:
            for k, number in enumerate(point):
                V[there + m, k] = number
            labels[there + m, 0], labels[there + m, 1] = what, line
            return m + 1

        def corner(k: Any, m: Any, d: Any) -> Any:
            after = where(k + 1 < n, k + 1, 0)
            next_d = beyond(after)
            i, line = here + k, labels[here + k, 1]
            crosses = ((d <= 0.0) ^ (next_d <= 0.0)) & (closed | (k + 1 < n))

            def crossing(m: Any) -> Any:
                p, q = vector(V, i), vector(V, here + after)
                share = clamp((d + margin) / (d - next_d), 0.0, 1.0)
                what = (line + sides) * sides + s
                return call(emit, m, tuple(p + (q - p) * share), what, where(d <= 0.0, -1 - s, line))

            m = cond(d <= 0.0, lambda: call(emit, m, tuple(vector(V, i)), labels[i, 0], line), lambda: m)
            return cond(crosses, lambda: crossing(m), lambda: m), next_d

        return there, for_range(n, corner, 0, beyond(0))[0]

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


def _chosen(V: Any, begin: Any, gaps: Any, count: Any, near: Any, far: Any, n: Vector3, give: Any) -> None:
    """Give the corners whose gap is below far; of many the deepest and those farthest out in 8 directions."""
    taken = zeros(count, kind="integer")
    t1, t2 = tangents(n)

    def farthest(m: Any) -> None:
        """Of direction m of 8; the ninth is the deepest."""
        c, s = 0.0, 0.0
        for i in range(8):
            c, s = where(m == i, COS[i], c), where(m == i, SIN[i], s)
        d, weight = t1 * c + t2 * s, where(m == 8, 1.0, 0.0)

        def better(k: Any, most: Any, at: Any) -> Any:
            h = where(gaps[k] < far, vector(V, begin + k).dot(d) - weight * gaps[k], -float("inf"))
            return where(h > most, h, most), where(h > most, k, at)

        taken[for_range(count, better, -float("inf"), 0)[1]] = 1

    for_range(where(near > POINTS, 9, 0), farthest)

    def each(k: Any) -> None:
        wanted = (gaps[k] < far) & ((near <= POINTS) | (taken[k] == 1))
        cond(wanted, lambda: give(k), lambda: None)

    for_range(count, each)
