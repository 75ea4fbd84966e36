"""How the place and the normal of a contact move with the two bodies.

A contact's frame moves as a rigid body would: an angular velocity w of its normal n, a velocity of its place
p. Both follow from what of the two shapes touches there: a face, an edge or segment with the direction d, or
a corner, end or centre.

    n    of a face that is perpendicular to it: fixed to that body, the first one where both have such a face
         of two edges d, e: along d x e
         of an edge d and a point, at the distance D: n' = omega x n + (1 - n n^T - d d^T) u / D, omega that
         of the edge's body, u the velocity of b's point against a's; of two points the same with d = 0
    p    of a corner, end or centre: fixed to it, a radius away along n
         where two edges cross: on both, p_b' - p_a' = D n' along the surface, p_a' = v_a + alpha d,
         p_b' = v_b + beta e; of the rim of a cylinder or cone: where it is lowest along n
         along n: on b's surface where a is the world, else half-way between the two

The gap changes with the velocity of b's place against a's along n. Where the lowest point of a rim runs along
it, the other corners of its polygon do, too, and these rise or sink (``along_rim``).

What is left, ellipsoids, what is round on something round, and edges across those of height fields, moves
with the mean of both bodies. Of two faces that are not quite flush the gap is that to one of them along the
normal of the other: this is left out.

Cost: O(contacts that act), and for each the faces and edges of both shapes.
"""

from __future__ import annotations

import math
from typing import Any

from robokit.collision.fields import CONE, CYLINDER, FIELD, PLANE, POINT, POLYTOPE, SEGMENT
from robokit.collision.narrow import shape_pose
from robokit.collision.support import facing, outermost_turns
from robokit.collision.terrain import kind_of
from robokit.contact.vectors import vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, clamp, where
from robokit.spatial.vectors import chosen

ALIGNED = 1e-10
"""One less the cosine of the angle up to which a face is perpendicular to a normal: what GJK leaves."""

SIZE = 23
"""Numbers of a contact: weights of b for place and normal, 1 where two edges cross, 1 / distance of round
ones, offsets of both surfaces along n, 1 where n is not of a face; rim: axis, how corners turn about it,
centre; directions of the two edges, 0 for none; weight of b for the velocity along n."""

PLACE, NORMAL, CROSS, NEAR, OFFSETS, FREE = 0, 1, 2, 3, 4, 6
AXIS, TURNS, CENTRE, EDGES, SURFACE = 7, 10, 13, 16, 22

END = 1e-6
"""Share of an edge from its end where a point on it counts as the end."""

LEVEL = 0.02
"""Of a shape's size: how far from the plane of a contact the ends of an edge are that lies in it."""

PARALLEL = 1e-3
"""Sine of the angle of two edges that cross."""


def look(x: Any, i: Any, c: Any) -> None:
    """What decides how contact c moves, to row i of ``c_moves``."""
    k = x.contact_pair[c]
    shapes = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    p, n = vector(x.contact_place, c), vector(x.contact_frame, c, 6)
    field = x.shape_kind[shapes[0]] == FIELD
    what = kind_of(x.contact_feature[c], field)
    gap = x.contact_gap[c] - x.pair_slack[k]
    along_n = where(x.c_bodies[i, 0] == 0, 1.0, 0.5)
    ends = -(x.shape_radius[shapes[0]] + along_n * gap), x.shape_radius[shapes[1]] + (1.0 - along_n) * gap
    plane = x.shape_kind[shapes[0]] == PLANE
    still = plane | (field & (what != 0))  # triangles of height fields; their corners are on a face of b
    of_a = cond(still, lambda: 1, lambda: once(x, _has_face, shapes[0], tuple(n))) > 0
    of_b = cond(of_a, lambda: 0, lambda: once(x, _has_face, shapes[1], tuple(-n))) > 0
    free = ~of_a & ~of_b
    searched = (what > 1) & ~plane

    def edge(side: int) -> Vector3:
        given = shapes[side], tuple(p + n * ends[side]), tuple(n)
        return Vector3(*cond(searched, lambda: once(x, _edge, *given), lambda: (0.0, 0.0, 0.0)))

    d, e = edge(0), edge(1)
    has = d.dot(d) > 0.0, e.dot(e) > 0.0
    both = d.cross(e)
    crosses = has[0] & has[1] & (both.dot(both) > PARALLEL * PARALLEL)
    points = x.shape_kind[shapes[0]] == POINT, x.shape_kind[shapes[1]] == POINT
    corner_b = plane | points[1] | (what == 1) | ((what == 3) & (of_a | (free & has[0] & ~has[1])))
    corner_a = ~corner_b & (points[0] | (what == 0) | ((what == 3) & (of_b | (free & has[1] & ~has[0]))))
    place = where(corner_b, 1.0, where(corner_a, 0.0, 0.5))
    normal = where(of_a, 0.0, where(of_b, 1.0, 0.5))
    distance = ends[1] - ends[0]
    apart = free & ~(has[0] & has[1]) & (x.shape_radius[shapes[0]] + x.shape_radius[shapes[1]] > 0.0)
    near = where(apart, 1.0 / where(apart, distance, 1.0), 0.0)
    numbers = [place, normal, where(crosses, 1.0, 0.0), near, *ends, where(free, 1.0, 0.0)]
    write_row(x.c_moves, i, [*numbers, *(0.0,) * 9, *d, *e, along_n])
    of_rim, outward = where(corner_b, shapes[1], shapes[0]), n * where(corner_b, -1.0, 1.0)
    kind = x.shape_kind[of_rim]
    rim = (corner_a | corner_b) & ((kind == CYLINDER) | (kind == CONE))
    cond(rim, lambda: _on_rim(x, i, of_rim, outward), lambda: None)


def _edge(x: Any, s: Any, p: Any, n: Any) -> Any:
    """Direction of the edge or segment of a shape that is nearest to a point, 0 if an end is.

    Edges of polytopes count that are about perpendicular to n.
    """
    R, r = shape_pose(x, s)
    point, level = R.T @ (Vector3(*p) - r), R.T @ Vector3(*n)
    height, most = level.dot(point), LEVEL * x.shape_bound[s]
    base = x.shape_corners[s, 0]

    def better(i: Any, j: Any, best: Any) -> Any:
        here = vector(x.corners, i)
        along = vector(x.corners, j) - here
        share = along.dot(point - here) / along.dot(along)
        inside = (share > END) & (share < 1.0 - END)
        off = point - here - along * clamp(share, 0.0, 1.0)
        length = along.dot(along) ** 0.5
        found = off.dot(off), *(along * where(inside, 1.0 / length, 0.0))
        return tuple(where(found[0] < best[0], new, old) for new, old in zip(found, best, strict=True))

    def is_level(i: Any) -> Any:
        return abs(level.dot(vector(x.corners, i)) - height) < most

    def corner(k: Any, *best: Any) -> Any:
        links = x.corner_links[base + k, 0]

        def edge(m: Any, *best: Any) -> Any:
            other = x.neighbours[links + m]
            taken = (other > k) & is_level(base + other)
            return cond(taken, lambda: better(base + k, base + other, best), lambda: best)

        def edges() -> Any:
            return for_range(x.corner_links[base + k, 1], edge, *best)

        return cond(is_level(base + k), edges, lambda: best)

    none = math.inf, 0.0, 0.0, 0.0
    kind = x.shape_kind[s]
    found = cond(
        kind == SEGMENT,
        lambda: better(base, base + 1, none),
        lambda: cond(kind == POLYTOPE, lambda: for_range(x.shape_corners[s, 1], corner, *none), lambda: none),
    )
    return tuple(R @ Vector3(*found[1:]))


def _has_face(x: Any, s: Any, n: Any) -> Any:
    """1 where a polytope, cylinder or cone has a face with this normal, in world axes."""

    def polygon() -> Any:
        R, _ = shape_pose(x, s)
        d = R.T @ Vector3(*n)
        found = facing(x, s, d)
        aligned = Vector3(*found.normal).dot(d) > 1.0 - ALIGNED
        return where(aligned & (found.count > 2), 1, 0)

    kind = x.shape_kind[s]
    return cond((kind == POLYTOPE) | (kind == CYLINDER) | (kind == CONE), polygon, lambda: 0)


def _on_rim(x: Any, i: Any, s: Any, outward: Vector3) -> None:
    """Corners of the rim's polygon turn about the axis with the point that is farthest along a direction."""
    R, centre = shape_pose(x, s)
    a, turns = R @ Vector3(0.0, 0.0, 1.0), outward.cross(R @ outermost_turns(R.T @ outward))
    for first, of_rim in ((AXIS, a), (TURNS, turns), (CENTRE, centre)):
        for c, number in enumerate(of_rim):
            x.c_moves[i, first + c] = number


def frame_motion(x: Any, i: Any, p: Vector3, n: Vector3, A: Motion, B: Motion) -> Motion:
    """The motion of the frame of constraint i about the origin, as its bodies move by A and B.

    Args:
        i: a constraint of a contact.
        p, n: its place and normal.
        A, B: motions of its bodies about the origin.
    """
    m = [x.c_moves[i, k] for k in range(7)]
    ends = [p + n * m[OFFSETS + k] for k in range(2)]
    v_a, v_b = _at(A, ends[0]), _at(B, ends[1])
    d, e = (vector(x.c_moves, i, EDGES + 3 * k) for k in range(2))
    flat = _between(A.ang, B.ang, m[NORMAL]).cross(n)
    turned = chosen(m[CROSS] > 0.0, _of_edges(A.ang, B.ang, d, e, n), flat)
    turned = chosen(m[NEAR] > 0.0, _of_points(A, B, ends, d, e, n, m[NEAR]), turned)
    turned = chosen(m[FREE] > 0.0, turned, flat)
    turned = turned - n * n.dot(turned)
    w = n.cross(turned)
    sigma = n.dot(d.cross(e))
    apart = turned * (m[OFFSETS + 1] - m[OFFSETS]) - (v_b - v_a)
    along = d * (apart.dot(n.cross(e)) * where(m[CROSS] > 0.0, 1.0 / where(m[CROSS] > 0.0, sigma, 1.0), 0.0))
    crossing = v_a + along - turned * m[OFFSETS]
    rolled = _rolled(x, i, p, n, w, A, B)
    own = _between(v_a - turned * m[OFFSETS], v_b - turned * m[OFFSETS + 1], m[PLACE]) + rolled
    own = chosen((m[CROSS] > 0.0) & (m[PLACE] == 0.5), crossing, own)
    along_n = x.c_moves[i, SURFACE]
    surface = _between(_at(A, p), _at(B, p), along_n) + rolled * (1.0 - abs(m[PLACE] - along_n))
    v = own + n * n.dot(surface - own)
    return Motion(w, v - w.cross(p))


def along_rim(x: Any, i: Any, M: Motion, A: Motion, B: Motion) -> Scalar:
    """What the gap of a contact at a rim changes beside the velocity of the bodies' points there; else 0.

    Args:
        x: the step.
        i: a constraint of a contact.
        M: the motion of its frame.
        A, B: those of its bodies.
    """
    c = x.c_of[i]
    p, n = vector(x.contact_place, c), vector(x.contact_frame, c, 6)
    return _rolled(x, i, p, n, M.ang, A, B).dot(n) * (2.0 * x.c_moves[i, PLACE] - 1.0)


def _at(M: Motion, point: Vector3) -> Vector3:
    """Velocity of a point."""
    return M.lin + M.ang.cross(point)


def _of_edges(w_a: Vector3, w_b: Vector3, d: Vector3, e: Vector3, n: Vector3) -> Vector3:
    """n' of a normal along d x e."""
    sigma = n.dot(d.cross(e))
    crosses = abs(sigma) > 0.0
    return (w_a.cross(d).cross(e) + d.cross(w_b.cross(e))) * where(
        crosses, 1.0 / where(crosses, sigma, 1.0), 0.0
    )


def _of_points(
    A: Motion, B: Motion, ends: list[Vector3], d: Vector3, e: Vector3, n: Vector3, near: Scalar
) -> Vector3:
    """n' of a normal between a point of b and an edge or point of a, or the other way round."""
    of_b = e.dot(e) > 0.0
    point = chosen(of_b, ends[0], ends[1])
    w = chosen(of_b, B.ang, A.ang)
    edge = d + e
    u = _at(B, point) - _at(A, point)
    return w.cross(n) + (u - edge * edge.dot(u)) * near


def _rolled(x: Any, i: Any, p: Vector3, n: Vector3, w: Vector3, A: Motion, B: Motion) -> Vector3:
    """What the place at a rim moves beside its body's point, at that body's angular velocity against w."""
    a, turns, centre = (vector(x.c_moves, i, first) for first in (AXIS, TURNS, CENTRE))
    of_b = x.c_moves[i, PLACE]
    point = p + n * ((1.0 - of_b) * x.c_moves[i, OFFSETS] + of_b * x.c_moves[i, OFFSETS + 1])
    return a.cross(point - centre) * -turns.dot(_between(A.ang, B.ang, of_b) - w)


def _between(a: Vector3, b: Vector3, weight: Scalar) -> Vector3:
    return a * (1.0 - weight) + b * weight
