"""Distance of two convex sets by GJK, depth of their overlap by EPA, on their Minkowski difference.

The difference A - B is known by its supports alone: ``vertex(d, row)`` writes the point w of A - B that is
farthest along d, the points a, b with w = a - b, and numbers of these points to a row (11 numbers), and
returns h = d.w.
The origin is outside where h < 0 for some unit vector d, which then points from A to B, and

    distance = max over d of -h(d)          depth = min over d of h(d)

so that every direction bounds the result: what is returned is the best of all that were looked at.

Source: E. Gilbert, D. Johnson, S. Keerthi 1988; G. van den Bergen, Proximity queries and penetration depth
computation on 3D game objects, 2001.
Differs: a simplex's nearest point is the nearest of its parts', found by distance instead of by regions; the
direction of a triangle is its normal, exact at any distance; a flat simplex answers by its normal; it begins
with the simplex of the last time, if there is one.
Cost: 1 support for sets that are known to be far apart, 2-10 else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from robokit.collision.fields import FACES, POINTS, ROW
from robokit.collision.support import unit
from robokit.spatial import Vector3
from robokit.spatial.control_flow import (
    RATIO,
    call,
    cond,
    for_range,
    in_precision,
    rounding,
    smallest,
    while_loop,
    whole,
    zeros,
)
from robokit.spatial.scalars import added, clamp, maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

Vertex = Callable[[Any, Any], Any]  # of a direction (3 numbers) and an array's row (ROW numbers)
NUMBERS = 9  # where the numbers of a and b are in a row
GOES, FAR, APART, INSIDE = range(4)  # of GJK: nothing yet, farther than asked for, the distance, overlap
ROUNDING = 1e-14  # of the size of A - B: two supports that differ by less along a direction are the same

SETTLED = 1e-10
"""Of the size of A - B: what a distance or depth of round sets may be off here; their normals are off by the
root of it, until round_shapes.py has refined them. Polytopes' are exact."""

BEYOND = 1e2 * ROUNDING, 0.5 * ROUNDING * RATIO
"""Of the size of A - B, in double and in single precision: a corner that is farther beyond a face than this
sees it. It is less than what a depth may be off: else a face that a corner is beyond would stay, and be
asked again and again.
"""

TURNS = 100  # of GJK at most: polytopes take up to 20, round sets approach without end and stop by rounding
ROOM = 40  # faces that a new corner of EPA's polytope may bring


def settling() -> Any:
    """Tolerance of a distance or depth, in the present precision."""
    return in_precision(SETTLED, max(SETTLED * RATIO**0.5, ROUNDING * RATIO))


def at(row: Any, k: int = 0) -> Vector3:
    """A point of a row: w, or from entries 3 and 6 on its parts on a and b."""
    return Vector3(row[k], row[k + 1], row[k + 2])


def nearest_sets(x: Any, vertex: Vertex, far: Any, direction: Any, out: Any, memory: Any) -> Any:
    """Distance or depth of two sets, their normal and nearest points.

    Args:
        x: with SHAPES, in whose work arrays EPA's polytope grows.
        vertex: of the difference A - B.
        far: larger distances are not looked for.
        direction: unit vector from A to B to begin with; afterwards the last one that was found.
        out: 10 numbers: distance (negative: depth), normal from A to B, nearest points of A and of B.
        memory: ``remembered(k, row)`` writes corner k of 3 of the last simplex to a row, and returns 1, or 0
            if there is none; and an array of 6 numbers of points for those of this one.

    Returns:
        FAR, APART or INSIDE.
    """
    S, weights = zeros(4, ROW), zeros(4)
    remembered, numbers = memory
    start = at(direction)
    h = vertex(tuple(start), S[0])
    weights[0] = 1.0

    def note(rows: Any, k: Any, i: Any) -> None:
        numbers[2 * k], numbers[2 * k + 1] = (whole(rows[i, NUMBERS + m]) for m in range(2))

    def measured() -> Any:
        size, count, status = _gjk(vertex, remembered, S, weights, far, direction)
        for_range(minimum(count, 3), lambda k: note(S, k, k))

        def others() -> Any:
            def overlap() -> None:
                _inside(x, vertex, S, count, size, start, direction, out, note)

            _of_simplex(S, weights, count, direction, out)
            cond(status == INSIDE, overlap, lambda: None)
            return status

        return cond(status == FAR, lambda: status, others)

    def is_far() -> Any:
        note(S, 0, 0)
        return FAR

    return cond(-h > far, is_far, measured)


def _gjk(
    vertex: Vertex, remembered: Any, S: Any, weights: Any, far: Any, direction: Any
) -> tuple[Any, Any, Any]:
    """Size of A - B, corners of the last simplex, and what is known."""

    def nearest(count: Any) -> Any:
        return _nearest(S, weights, count)

    def enter(k: Any, size: Any, count: Any, v: Any, length: Any) -> Any:
        """Corner k of the last simplex."""
        place = minimum(count, 3)
        given = remembered(k, S[place])

        def is_there(m: Any, found: Any) -> Any:
            same = (S[m, NUMBERS] == S[place, NUMBERS]) & (S[m, NUMBERS + 1] == S[place, NUMBERS + 1])
            return where(same, 1, found)

        def add() -> Any:
            w = at(S[place])
            more, v = call(nearest, count + 1)
            return maximum(size, sqrt(w.dot(w))), more, v, sqrt(added(k * k for k in v))

        fresh = cond(given > 0, lambda: for_range(count, is_there, 0), lambda: 1)
        return cond((fresh == 0) & (count < 4), add, lambda: (size, count, v, length))

    def turn(size: Any, count: Any, status: Any, v: Any, length: Any) -> Any:
        d = Vector3(*v) * (-1.0 / length)
        h = vertex(tuple(d), S[count])
        w = at(S[count])
        size = maximum(size, sqrt(w.dot(w)))
        _put(direction, d)

        def is_corner(m: Any, found: Any) -> Any:
            """Whether it is in the simplex: then none is nearer, however much rounding hides it."""
            return where((S[m, 0] == w.x) & (S[m, 1] == w.y) & (S[m, 2] == w.z), 1, found)

        def nearer() -> Any:
            again = for_range(count, is_corner, 0) == 1
            more, v = call(nearest, count + 1)
            now = sqrt(added(k * k for k in v))
            inside = (more == 4) | (now <= rounding(ROUNDING) * size)
            stalls = where(again | (length + h <= settling() * size), APART, INSIDE)
            return where(inside, INSIDE, where(now < length, GOES, stalls)), more, v, now

        def at_end() -> Any:
            return where(-h > far, FAR, APART), count, v, length

        ends = (-h > far) | (length + h <= rounding(ROUNDING) * size)
        status, count, v, length = cond(ends, at_end, nearer)
        return size, count, status, v, length

    v = at(S[0])
    length = sqrt(v.dot(v))
    size, count, v, length = for_range(3, enter, length, 1, tuple(v), length)
    begin = where((count < 4) & (length > rounding(ROUNDING) * size), GOES, INSIDE)
    size, count, status, *_ = while_loop(
        lambda size, count, status, v, length: status == GOES,
        turn,
        *(size, count, begin, v, length),
        most=TURNS,
    )
    return size, count, where(status == GOES, APART, status)


def _of_simplex(S: Any, weights: Any, count: Any, direction: Any, out: Any) -> None:
    """Results from the last simplex: nearest points are weighted sums of its corners'."""

    def add(k: Any, *so_far: Any) -> Any:
        return tuple(p + weights[k] * S[k, 3 + m] for m, p in enumerate(so_far))

    found = for_range(count, add, *(0.0,) * 6)
    d = at(direction)
    a, b = Vector3(*found[:3]), Vector3(*found[3:])
    _result(out, d.dot(b - a), d, a, b)


def _result(out: Any, distance: Any, n: Vector3, a: Vector3, b: Vector3) -> None:
    for k, number in enumerate((distance, *n, *a, *b)):
        out[k] = number


def _put(row: Any, v: Vector3) -> None:
    for k, number in enumerate(v):
        row[k] = number


# ---- the point of a simplex that is nearest to the origin ----------------------------------------------


def _nearest(S: Any, weights: Any, count: Any) -> tuple[Any, Any]:
    """Keep the corners whose hull holds the nearest point.

    Returns how many are kept, 4 where the origin is inside, and the point.
    """
    best = zeros(8)  # weights of all four, squared distance, nearest point
    best[4] = float("inf")

    def edge(i: Any, j: Any) -> None:
        a, b = at(S[i]), at(S[j])
        e = b - a
        t = clamp(-a.dot(e) / (e.dot(e) + smallest()), 0.0, 1.0)
        _better(best, a + e * t, ((i, 1.0 - t), (j, t)))

    def triangle(i: Any, j: Any, k: Any) -> None:
        a, b, c = at(S[i]), at(S[j]), at(S[k])
        n = (b - a).cross(c - a)
        area = n.dot(n)  # squared; 0 where a corner is there twice
        scale = 1.0 / (area + smallest())
        to_b, to_c = (c - a).cross(a).dot(n) * scale, a.cross(b - a).dot(n) * scale
        inside = (area > 0.0) & (to_b >= 0.0) & (to_c >= 0.0) & (to_b + to_c <= 1.0)

        def interior() -> None:
            _better(best, n * (n.dot(a) * scale), ((i, 1.0 - to_b - to_c), (j, to_b), (k, to_c)))

        cond(inside, interior, lambda: None)

    def triangle_and_edges(i: Any, j: Any) -> None:
        """Of two corners and the newest; what lies on old corners alone was looked at before."""
        call(edge, i, count - 1)
        call(edge, j, count - 1)
        call(triangle, i, j, count - 1)

    def tetrahedron() -> Any:
        o = at(S[3])
        outside = False
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            n = (at(S[i]) - o).cross(at(S[j]) - o)
            beyond = n.dot(o) * n.dot(at(S[k]) - o) >= 0.0
            outside = outside | beyond
            cond(beyond, partial(call, triangle_and_edges, i, j), lambda: None)
        return where(outside, 0, 1)

    def fewer() -> Any:
        cond(count == 2, lambda: call(edge, 0, 1), lambda: call(triangle_and_edges, 0, 1))
        return 0

    inside = cond(count == 4, tetrahedron, fewer)
    kept = cond(inside == 1, lambda: 4, lambda: _kept(S, weights, best))
    return kept, (best[5], best[6], best[7])


def _better(best: Any, p: Vector3, shares: Any) -> None:
    """Take a point if it is nearer."""
    q = p.dot(p)

    def take() -> None:
        for k in range(4):
            best[k] = 0.0
        for k, share in shares:
            best[k] = share
        best[4] = q
        _put(best[5:8], p)

    cond(q < best[4], take, lambda: None)


def _kept(S: Any, weights: Any, best: Any) -> Any:
    """Corners with weights move to the front."""

    def corner(k: Any, n: Any) -> Any:
        def keep() -> Any:
            weights[n] = best[k]
            for m in range(ROW):
                S[n, m] = S[k, m]
            return n + 1

        return cond(best[k] > 0.0, keep, lambda: n)

    return for_range(4, corner, 0)


# ---- depth ---------------------------------------------------------------------------------------------


def _inside(
    x: Any,
    vertex: Vertex,
    S: Any,
    count: Any,
    size: Any,
    start: Vector3,
    direction: Any,
    out: Any,
    note: Any,
) -> None:
    """Depth: the least support of all directions that are known. ``out`` has the points of a flat A - B."""
    last, row = at(direction), zeros(ROW)

    def take(d: Any) -> None:
        """A direction that bounds the depth better. EPA's points stay, unless it has missed most of it."""
        h = vertex(d, row)

        def points() -> Any:
            return [row[k] for k in range(3, 9)]

        def better() -> None:
            nearest = cond(-h > 0.5 * out[0], points, lambda: [out[k] for k in range(4, 10)])
            _result(out, -h, Vector3(*d), Vector3(*nearest[:3]), Vector3(*nearest[3:]))

        cond(-h > out[0] + settling() * size, better, lambda: None)

    flat, d = _completed(vertex, S, count, size, last, x.inner_points)

    def along() -> None:
        out[0] = -vertex(tuple(d), row)
        _put(out[1:4], Vector3(*d))

    def grow() -> None:
        out[0] = -float("inf")
        _epa(x, vertex, size, out, note)

    cond(flat == 1, along, grow)
    call(take, tuple(start))
    call(take, tuple(last))
    _put(direction, Vector3(out[1], out[2], out[3]))


def _completed(vertex: Vertex, S: Any, count: Any, size: Any, last: Vector3, P: Any) -> Any:
    """Corners of a tetrahedron that holds the origin, on it or in it.

    Returns 1 if A - B is flat, and the direction in which it is, else 0.
    """
    for_range(count * ROW, lambda k: _copy(S, P, k))
    row = zeros(ROW)

    def turn(n: Any, flat: Any, *_: Any) -> Any:
        a, e = at(P[0]), at(P[minimum(n - 1, 1)]) - at(P[0])
        e = chosen(n > 1, e, last)
        other = chosen(n > 2, at(P[2]) - a, _least_axis(e))
        d = unit(e.cross(other))
        d = chosen(n > 1, d, last)
        h = vertex(tuple(d), P[n])
        up = h - d.dot(a)
        below = vertex(tuple(-d), row)
        down = below + d.dot(a)
        cond(down > up, lambda: _copy_row(row, P[n]), lambda: None)
        thin = maximum(up, down) <= rounding(ROUNDING) * 10.0 * size
        sign = where((h < below) | ((h <= below) & (d.dot(last) >= 0.0)), 1.0, -1.0)
        return n + 1, where(thin, 1, flat), *(d * sign)

    _, flat, *d = while_loop(lambda n, flat, *_: (n < 4) & (flat == 0), turn, count, 0, *last, most=3)
    return flat, d


def _copy(S: Any, P: Any, k: Any) -> None:
    P[k // ROW, k % ROW] = S[k // ROW, k % ROW]


def _copy_row(row: Any, to: Any) -> None:
    for k in range(ROW):
        to[k] = row[k]


def _least_axis(e: Vector3) -> Vector3:
    """The axis that is least along e."""
    x, y, z = abs(e.x), abs(e.y), abs(e.z)
    first, second = (x <= y) & (x <= z), y <= z
    return Vector3(
        where(first, 1.0, 0.0), where(first, 0.0, where(second, 1.0, 0.0)), where(first | second, 0.0, 1.0)
    )


def _epa(x: Any, vertex: Vertex, size: Any, out: Any, note: Any) -> None:
    """Grow a polytope within A - B until its face that is nearest to the origin is one of A - B."""
    P, F, corners, gone = x.inner_points, x.inner_faces, x.inner_corners, x.inner_gone

    def add(f: Any, i: Any, j: Any, k: Any) -> Any:
        a = at(P[i])
        n = (at(P[j]) - a).cross(at(P[k]) - a)
        length = sqrt(n.dot(n))
        n = n * (1.0 / (length + smallest()))
        _put(F[f], n)
        F[f, 3] = where(length > 0.0, n.dot(a), float("inf"))
        for m, c in enumerate((i, j, k)):
            corners[f, m] = c
        return f + 1

    def nearest(faces: Any) -> Any:
        def closer(f: Any, least: Any, at_: Any) -> Any:
            return where(F[f, 3] < least, F[f, 3], least), where(F[f, 3] < least, f, at_)

        return for_range(faces, closer, float("inf"), 0)[1]

    def turn(points: Any, faces: Any, _: Any, __: Any) -> Any:
        f = nearest(faces)
        n = at(F[f])
        h = vertex(tuple(n), P[points])
        is_face = h - F[f, 3] <= settling() * size
        # A face that is none yet may bound the depth as well, but the points of its corners are elsewhere.
        cond((-h > out[0]) | is_face, lambda: _at_face(P, F, corners, f, h, out), lambda: None)

        def grown() -> Any:
            return points + 1, _opened(P, F, corners, gone, add, points, faces, size), f, 1

        done = is_face | (points >= POINTS - 1) | (faces > FACES - ROOM)
        return cond(done, lambda: (points, faces, f, 0), grown)

    o = at(P[0])
    volume = (at(P[1]) - o).cross(at(P[2]) - o).dot(at(P[3]) - o)
    i, j = where(volume > 0.0, 2, 1), where(volume > 0.0, 1, 2)
    for f, triple in enumerate(((0, i, j), (0, 3, i), (0, j, 3), (i, 3, j))):
        call(add, f, *triple)
    _, _, f, _ = while_loop(lambda points, faces, f, goes: goes == 1, turn, 4, 4, 0, 1)
    for_range(3, lambda k: note(P, k, corners[f, k]))


def _opened(P: Any, F: Any, corners: Any, gone: Any, add: Any, new: Any, faces: Any, size: Any) -> Any:
    """Faces that see the new corner go; those between their rim and the corner come.

    Returns how many faces there are.
    """
    w = at(P[new])

    def sort(f: Any, kept: Any, seen: Any) -> Any:
        sees = (at(F[f]).dot(w) - F[f, 3] > in_precision(*BEYOND) * size) | (F[f, 3] >= float("inf"))

        def go() -> Any:
            for m in range(3):
                gone[seen, m] = corners[f, m]
            return kept, seen + 1

        def move() -> None:
            for m in range(4):
                F[kept, m] = F[f, m]
            for m in range(3):
                corners[kept, m] = corners[f, m]

        def stay() -> Any:
            cond(kept < f, move, lambda: None)
            return kept + 1, seen

        return cond(sees, go, stay)

    kept, seen = for_range(faces, sort, 0, 0)

    def edge(g: Any, now: Any) -> Any:
        i, j = gone[g // 3, g % 3], gone[g // 3, (g + 1) % 3]

        def shared(k: Any, found: Any) -> Any:
            a, b, c = (gone[k, m] for m in range(3))
            back = ((a == j) & (b == i)) | ((b == j) & (c == i)) | ((c == j) & (a == i))
            return where(back, 1, found)

        inner = for_range(seen, shared, 0)
        return cond((inner == 0) & (now < FACES), lambda: call(add, now, i, j, new), lambda: now)

    return for_range(3 * seen, edge, kept)


def _at_face(P: Any, F: Any, corners: Any, f: Any, h: Any, out: Any) -> None:
    """Depth h along a face's normal, and the points of A and B below the origin."""
    n = at(F[f])
    i, j, k = (corners[f, m] for m in range(3))
    a, b, c = at(P[i]), at(P[j]), at(P[k])
    p, area = n * F[f, 3], (b - a).cross(c - a)
    scale = 1.0 / (area.dot(area) + smallest())
    to_b, to_c = (p - a).cross(c - a).dot(area) * scale, (b - a).cross(p - a).dot(area) * scale
    to_a = 1.0 - to_b - to_c
    points = [at(P[i], m) * to_a + at(P[j], m) * to_b + at(P[k], m) * to_c for m in (3, 6)]
    _result(out, -h, n, *points)
