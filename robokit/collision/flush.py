"""Fixed polytopes side by side are one surface, whose inner edges and walls nothing touches.

A contact at the point p of solid a, with the normal n out of a, is hidden by the solid s if

    p lies in s or on it, within what is flush; along a's surface, with a normal of an edge, within BESIDE,
    something of s is farther along n than p: n is no normal of s there, and
    where p is moved out of s along a's surface, by the nearest face of s that does not face against n, it
    leaves a as well.

The last keeps the foot of a wall on a floor, where the wall goes on above it, and the bottom of a valley.

The normal comes first: where the shortest way out of a alone is hidden, contacts are those along that face of
a which is not, and is left soonest; but none, where what hides it is left sooner, as a thin plate on a floor
is. What lies across flush faces has their normal on each of them. An edge or corner of a touches nothing
where its face goes on in one plane over others of its material; where the friction changes the edges bear
what presses there.
"""

from __future__ import annotations

from typing import Any

from robokit.collision.fields import POLYTOPE
from robokit.collision.support import body_pose, corner, faced, posed, support, vector
from robokit.collision.terrain import ALIGNED, NEAREST
from robokit.engine.loops.fields import once
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision, smallest, while_loop
from robokit.spatial.scalars import maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

FLUSH = 2e-5, 1e-4
"""Of the size of the shape that touches, in double and in single precision: what is off by less is flush.
What stops this shape does not depend on how far a floor reaches."""

SEAM = 1e-8, 1e-6
"""Of the size of a solid: what is off by less is on the seam of two solids, and the first one's. Normals of
flush faces differ by FLUSH, and with them places of contacts by this part of the depth."""

BESIDE = 1e-4, 1e-3
"""Of the size of the shape that touches a solid: a contact on an edge is there to within this. Where a round
side touches an edge is known to the root of what its distance may be off."""


ZERO = (0.0, 0.0, 0.0)

ALL, NOT_AGAINST, BUT_ITS_OWN = range(3)
"""Faces of a polytope: all; those that do not face against a normal; all but the one whose normal it is."""

LEVEL = 1e-12
"""Square of the sine of an angle: a face that is tilted by less against a's surface is parallel to it."""


LEANS = 0.99  # cosine of an angle: what touches along the normal of a face may be tilted by it

SHALLOW = 1e-2  # sine of an angle: an edge with less between the faces beside it is none


STAYS, NOWHERE = -1, -2
"""Instead of the row of a face: the normal is one of the surface; there is no face that could be touched."""


def face_touched(x: Any, a: Any, b: Any, nearest: Any) -> Any:
    """The face of a fixed polytope along which a shape touches the surface that it is part of.

    Args:
        x: with SHAPES and POSES.
        a: the polytope.
        b: the shape.
        nearest: 10 numbers, as of gjk.nearest_sets.

    Returns:
        its row of ``face_normal``, STAYS or NOWHERE.
    """
    return once(x, _face_touched, a, b, nearest)


def _face_touched(x: Any, a: Any, b: Any, nearest: Any) -> Any:
    n, p = (Vector3(*(nearest[first + c] for c in range(3))) for first in (1, 4))
    R, r = body_pose(x, a)
    at_p, along = R @ p + r, R @ n

    def free(f: Any) -> Any:
        """Whether the surface has this face at a point a little further in than the nearest one of a."""
        up = vector(x.face_normal, f)
        height = up.dot(p - first_corner(x, a, f))
        inward = _middle(x, a, f) - p + up * height
        size = sqrt(inward.dot(inward)) + smallest()
        q = p - up * height + inward * minimum(1.0, 4.0 * (_flush(x, b) + abs(height)) / size)
        return ~hidden(x, a, b, R @ q + r, R @ up)

    def turn(gap: Any, f: Any, _: Any) -> Any:
        gap, f = _left_next(x, a, b, p, gap, f)
        return gap, f, cond(f >= 0, lambda: where(free(f), 0, 1), lambda: 0)

    def soonest() -> Any:
        """The face that is left soonest, if not much later than, along n, those that hide it."""
        gap, f, _ = while_loop(lambda _, __, goes: goes > 0, turn, float("inf"), STAYS, 1)
        leans = vector(x.face_normal, maximum(f, x.shape_faces[a, 0])).dot(n) > LEANS
        enough = where(leans, 0.0, -0.5 * (gap + _flush(x, b)))
        return where(_depth_beside(x, a, b, at_p, along, enough) >= enough, f, NOWHERE)

    def own() -> Any:
        f = once(x, _facing, a, tuple(n))
        off = n.cross(vector(x.face_normal, f))
        return where(off.dot(off) < ALIGNED, f, STAYS)

    return cond(hidden(x, a, b, at_p, along), soonest, own)


def _left_next(x: Any, a: Any, b: Any, p: Vector3, limit: Any, last: Any) -> tuple[Any, Any]:
    """Of the faces of a that b reaches out of, the one that it leaves soonest but for some.

    ``p``: a point in the axes of a; ``limit``, ``last``: the gap along the face that was left before, and
    this one. Returns gap and face, or NOWHERE.
    """
    R, r = body_pose(x, a)
    at_p = R @ p + r

    def face(k: Any, greatest: Any, at: Any) -> Any:
        f = x.shape_faces[a, 0] + k
        up = vector(x.face_normal, f)
        height, out = up.dot(p - first_corner(x, a, f)), R @ up
        gap = height - _beyond(x, b, at_p, -out)
        next_one = (gap > greatest) & ((gap < limit) | ((gap == limit) & (f > last)))
        next_one = cond(next_one, lambda: height + _beyond(x, b, at_p, out) > 0.0, lambda: next_one)
        return where(next_one, gap, greatest), where(next_one, f, at)

    return for_range(x.shape_faces[a, 1], face, -float("inf"), NOWHERE)


def _depth_beside(x: Any, a: Any, b: Any, p: Vector3, n: Vector3, enough: Any) -> Any:
    """Depth of b along n in those that hide this normal of a at p, in world axes; ``enough`` is enough."""
    low = _beyond(x, b, p, -n)

    def one(k: Any, most: Any) -> Any:
        s = x.beside[x.shape_beside[a, 0] + k]

        def look() -> Any:
            hides = once(x, _covers, s, tuple(p), tuple(n), _flush(x, b), 0.0)[0] > 0
            return cond(hides, lambda: maximum(_beyond(x, s, p, n) + low, most), lambda: most)

        return cond(most < enough, look, lambda: most)

    return for_range(x.shape_beside[a, 1], one, 0.0)


def first_corner(x: Any, s: Any, face: Any) -> Vector3:
    """A corner of a face of a polytope, in its axes."""
    return vector(x.corners, x.shape_corners[s, 0] + x.polygon[x.face_corners[face, 0]])


def beside_others(x: Any, s: Any) -> Any:
    """Whether a shape is a fixed polytope with others beside it."""
    return (x.shape_kind[s] == POLYTOPE) & (x.shape_beside[s, 1] > 0)


def is_off(x: Any, a: Any, b: Any, nearest: Any) -> Any:
    """Whether the nearest point along a face of a fixed polytope is off it: in none of those beside, as at
    the bottom of a valley, or farther off than the depth.
    """
    p = Vector3(*(nearest[4 + c] for c in range(3)))

    def look() -> Any:
        off, flush, (R, r) = once(x, _height, a, tuple(p), ZERO, ALL)[0], _flush(x, b), body_pose(x, a)
        at_p = R @ p + r

        def one(k: Any, free: Any) -> Any:
            s = x.beside[x.shape_beside[a, 0] + k]
            S, o = body_pose(x, s)
            above, _ = once(x, _height, s, tuple(S.transpose_apply(at_p - o)), ZERO, ALL)
            return where(above <= flush, 0, free)

        near = off <= maximum(flush, -nearest[0])
        free = cond(near & (off > flush), lambda: for_range(x.shape_beside[a, 1], one, 1), lambda: 0)
        return ~near | (free > 0)

    return cond(beside_others(x, a), look, lambda: x.shape_kind[a] < 0)


def touches(x: Any, a: Any, b: Any, feature: Any, p: Vector3, n: Vector3) -> Any:
    """Whether a contact counts: it is not hidden, on no edge that is none, and not another's on a seam.

    Args:
        x: with SHAPES and POSES.
        a: a shape.
        b: the one that touches it.
        feature: of the contact, as of narrow.py.
        p: its point on the surface of a, from the step's origin in world axes [m].
        n: its normal, out of a.
    """

    def look() -> Any:
        return once(x, _touches, a, b, feature, tuple(p), tuple(n))

    return cond(beside_others(x, a), look, lambda: 1) > 0


def _touches(x: Any, a: Any, b: Any, feature: Any, p: Any, n: Any) -> Any:
    of_a, at_corner = (feature % 4 == 0) | (feature % 4 == 2), where(feature % 4 == 0, 1, 0)

    def inside_surface() -> Any:
        return cond(of_a, lambda: once(x, _goes_on, a, b, at_corner, p, n), lambda: 0)

    def none() -> Any:
        return cond(once(x, _is_anothers, a, b, p, n) > 0, lambda: 1, inside_surface)

    # Where the normal is for the nearest points these are not hidden.
    is_hidden = cond(feature == NEAREST, lambda: 0, lambda: once(x, _hidden, a, b, p, n))
    return cond(is_hidden > 0, lambda: 0, lambda: where(none() > 0, 0, 1))


def hidden(x: Any, a: Any, b: Any, p: Vector3, n: Vector3) -> Any:
    """Whether a contact of shape a is hidden by one of those beside it; as in :func:`touches`."""
    return once(x, _hidden, a, b, tuple(p), tuple(n)) > 0


def _hidden(x: Any, a: Any, b: Any, p: Any, n: Any) -> Any:
    m = body_pose(x, a)[0].transpose_apply(Vector3(*n))

    def along(k: Any, most: Any) -> Any:
        return maximum(most, vector(x.face_normal, x.shape_faces[a, 0] + k).dot(m))

    most = for_range(x.shape_faces[a, 1], along, 0.0)
    # A normal of no face is one of an edge: along the surface the contact may be off it.
    on_edge = 1.0 - most * most >= in_precision(LEVEL, 1e-6)
    flush, off = _flush(x, b), where(on_edge, in_precision(*BESIDE) * x.shape_bound[b], 0.0)

    def moved_out(k: Any, moved: Any, *q: Any) -> Any:
        covered, *out = once(x, _covers, x.beside[x.shape_beside[a, 0] + k], q, n, flush, off)
        return where(covered > 0, 1, moved), *out

    moved, *q = for_range(x.shape_beside[a, 1], moved_out, 0, *p)

    def look() -> Any:
        R, r = body_pose(x, a)
        left, _ = once(x, _height, a, tuple(R.transpose_apply(Vector3(*q) - r)), ZERO, ALL)

        def still(k: Any, found: Any) -> Any:
            s = x.beside[x.shape_beside[a, 0] + k]
            return cond(found > 0, lambda: 1, lambda: once(x, _covers, s, tuple(q), n, flush, off)[0])

        return cond(left > flush, lambda: 1, lambda: for_range(x.shape_beside[a, 1], still, 0))

    return cond(moved > 0, look, lambda: 0)


def _is_anothers(x: Any, a: Any, b: Any, p: Any, n: Any) -> Any:
    """Whether a contact is on a face of one beside a, but not on a; on a seam it is the first one's."""
    R, r = body_pose(x, a)
    q, m = R.transpose_apply(Vector3(*p) - r), R.transpose_apply(Vector3(*n))
    height, _ = once(x, _height, a, tuple(q), tuple(m), BUT_ITS_OWN)
    return once(x, _on_surface, a, b, p, n, where(height > _seam(x, a), x.n_shapes, a))


def _goes_on(x: Any, a: Any, b: Any, at_corner: Any, p: Any, n: Any) -> Any:
    """Whether a corner or edge of a that touches is none, as its face goes on in one plane.

    That is across the edge, or on both sides of the corner along one of its edges, on solids beside it. An
    edge that crosses at a corner crosses both of the edges there.
    """
    (R, r), (S, o) = body_pose(x, a), posed(x, b)
    m, q, flush = R.transpose_apply(Vector3(*n)), R.transpose_apply(Vector3(*p) - r), _flush(x, b)
    first, count = x.shape_faces[a, 0], x.shape_faces[a, 1]
    face = once(x, _facing, a, tuple(m))
    up = vector(x.face_normal, face)
    down = S.transpose_apply(-Vector3(*n))
    lower = faced(x, b, down)
    decides = where(at_corner > 0, 1, -1)  # one edge of a corner that goes on is enough

    def level(way: Vector3) -> Any:
        """Whether the surface goes on from the point to a side, and what of the other shape faces it."""
        d = S.transpose_apply(R @ way)

        def farther(k: Any, most: Any) -> Any:
            return maximum(most, d.dot(Vector3(*corner(x, b, lower, down, k)[:3])))

        reach = for_range(lower.count, farther, -float("inf")) + d.dot(S.transpose_apply(o - Vector3(*p)))
        reach = reach + x.shape_radius[b]
        there = q + way * minimum(reach, 4.0 * flush)
        own, _ = once(x, _height, a, tuple(there), tuple(up), BUT_ITS_OWN)

        def on_another() -> Any:
            return once(x, _on_surface, a, b, tuple(R @ there + r), tuple(R @ up), x.n_shapes) > 0

        goes_on = cond(own <= _seam(x, a), lambda: own <= _seam(x, a), on_another)
        return goes_on & (reach > where(at_corner > 0, flush, _seam(x, a)))

    def side(k: Any, found: Any) -> Any:
        outward = vector(x.face_normal, first + k)
        c = first_corner(x, a, first + k)
        out = outward - up * up.dot(outward)
        size = sqrt(out.dot(out))
        is_here = (size > SHALLOW) & (abs(outward.dot(q - c)) <= flush) & (found != decides)

        def look() -> Any:
            across = out * (1.0 / size)
            along = up.cross(across)

            def one(k: Any, goes: Any) -> Any:
                way = chosen(at_corner > 0, along * where(k == 0, 1.0, -1.0), across)
                return cond(goes > 0, lambda: where(level(way), 1, -1), lambda: -1)

            return for_range(1 + at_corner, one, 1)

        return cond(is_here, look, lambda: found)

    return for_range(count, side, 0)


def _facing(x: Any, a: Any, m: Any) -> Any:
    """The face of a polytope whose normal is nearest to a direction in its axes."""
    first, m = x.shape_faces[a, 0], Vector3(*m)

    def better(k: Any, most: Any, at: Any) -> Any:
        h = vector(x.face_normal, first + k).dot(m)
        return where(h > most, h, most), where(h > most, first + k, at)

    return for_range(x.shape_faces[a, 1], better, 0.0, first)[1]


def _on_surface(x: Any, a: Any, b: Any, p: Any, up: Any, least: Any) -> Any:
    """Whether a point is on a face, with this normal, of one of those beside shape a of its material.

    ``x``, ``a``, ``b``: as in :func:`hidden`; ``p``: from the step's origin in world axes [m]; ``up``: the
    normal; ``least``: shapes with this number or above do not count.
    """
    p, up = Vector3(*p), Vector3(*up)

    def one(k: Any, found: Any) -> Any:
        s = x.beside[x.shape_beside[a, 0] + k]

        def look() -> Any:
            R, r = body_pose(x, s)
            q, m = R.transpose_apply(p - r), R.transpose_apply(up)
            inside, _ = once(x, _height, s, tuple(q), tuple(m), BUT_ITS_OWN)

            def rises() -> Any:
                return where(abs(_beyond(x, s, p, up)) <= 4.0 * _flush(x, b), 1, 0)

            return cond(inside <= _seam(x, s), rises, lambda: 0)

        return cond((found == 0) & (s < least), look, lambda: found)

    return for_range(x.shape_beside[a, 2], one, 0)


def _seam(x: Any, s: Any) -> Any:
    """What is off by less is on a seam of shape s [m]."""
    return in_precision(*SEAM) * x.shape_bound[s]


def _flush(x: Any, b: Any) -> Any:
    """What is off by less is flush for shape b [m]."""
    return in_precision(*FLUSH) * x.shape_bound[b]


def _beyond(x: Any, s: Any, p: Vector3, n: Vector3) -> Any:
    """How far shape s reaches beyond a point along a normal, both in world axes."""
    return once(x, _beyond_numbers, s, tuple(p), tuple(n))


def _beyond_numbers(x: Any, s: Any, p: Any, n: Any) -> Any:
    (R, r), n = posed(x, s), Vector3(*n)
    farthest = R @ Vector3(*support(x, s, R.transpose_apply(n))) + r
    return n.dot(farthest - Vector3(*p)) + x.shape_radius[s]


def _middle(x: Any, s: Any, face: Any) -> Vector3:
    """Of the corners of a face."""
    first, count, corners = x.face_corners[face, 0], x.face_corners[face, 1], x.shape_corners[s, 0]

    def add(k: Any, *total: Any) -> Any:
        return tuple(vector(x.corners, corners + x.polygon[first + k]) + Vector3(*total))

    return Vector3(*for_range(count, add, 0.0, 0.0, 0.0)) * (1.0 / count)


def _covers(x: Any, s: Any, p: Any, n: Any, flush: Any, off: Any) -> Any:
    """Whether a point lies in s, of which something is farther along n; and where it leaves s."""
    (R, r), (p, n) = body_pose(x, s), (Vector3(*p), Vector3(*n))
    q, m = R.transpose_apply(p - r), R.transpose_apply(n)
    height, _ = once(x, _height, s, tuple(q), ZERO, ALL)

    def stays() -> Any:
        return 0, *p

    def inside() -> Any:
        above, face = once(x, _height, s, tuple(q), tuple(m), NOT_AGAINST)
        farthest = _beyond(x, s, p, n)

        def leaves() -> Any:
            outward = vector(x.face_normal, face)
            along = outward - m * m.dot(outward)
            rise = along.dot(outward)
            along = chosen(rise > LEVEL, along * (1.0 / (rise + smallest())), outward)
            return 1, *(p + R @ along * (3.0 * flush - above))

        return cond((above <= flush) & (farthest > 4.0 * flush), leaves, stays)

    return cond(height <= maximum(flush, off), inside, stays)


def _height(x: Any, s: Any, q: Any, n: Any, which: Any) -> tuple[Any, Any]:
    """How far a point lies above the nearest of some faces of a polytope, negative inside, and this face."""
    first = x.shape_faces[s, 0]
    q, n = Vector3(*q), Vector3(*n)
    least = where(which == NOT_AGAINST, -in_precision(*FLUSH), -2.0)

    def higher(k: Any, highest: Any, at: Any) -> Any:
        face = first + k
        outward = vector(x.face_normal, face)
        h, along = outward.dot(q - first_corner(x, s, face)), outward.dot(n)
        own = (which == BUT_ITS_OWN) & (along > 1.0 - 0.5 * ALIGNED)
        counts = (h > highest) & (along >= least) & ~own
        return where(counts, h, highest), where(counts, face, at)

    return for_range(x.shape_faces[s, 1], higher, -float("inf"), first)
