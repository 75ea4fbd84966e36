"""How the place and the normal of a contact move with the two bodies.

A contact's frame moves as a rigid body would: an angular velocity w of its normal, a velocity of its place p.
Both follow from what of the two shapes touches:

    normal    fixed to the body whose face it is perpendicular to, the first one where both are; of two round
              points along the line between them; else the mean of both bodies
    place     fixed to the corner, end or centre that it belongs to (with w a radius away from it); of the
              rim of a cylinder or cone to the point that is lowest along n; else the mean of both bodies
    along n   half-way between the two surfaces

This is exact for corners on faces, whatever is flush, spheres and capsules on faces, spheres on spheres, and
cylinders and cones on a plane. Of two edges that cross, of segments beside each other and of ellipsoids it is
an approximation, since these touch elsewhere as they turn.

Cost: O(contacts that act), and for each the faces of both shapes.
"""

from __future__ import annotations

from typing import Any

from robokit.collision.fields import CONE, CYLINDER, PLANE, POINT, POLYTOPE
from robokit.collision.narrow import shape_pose
from robokit.collision.support import facing, outermost
from robokit.contact.vectors import vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, where

ALIGNED = 1e-10
"""One less the cosine of the angle up to which a face is perpendicular to a normal: what GJK leaves."""

SIZE = 16
"""Numbers of a contact: weights of b for place and normal, offset of the owner's point, 1 / distance of round
points, their offsets, lowest point of a rim (axis, its share, centre)."""

PLACE, NORMAL, OFFSET, APART, OFFSETS, AXIS, SHARE, CENTRE = 0, 1, 2, 3, 4, 6, 9, 12


def look(x: Any, i: Any, c: Any) -> None:
    """What decides how contact c moves, to row i of ``c_moves``."""
    k = x.contact_pair[c]
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    n, what = vector(x.contact_frame, c, 6), x.contact_feature[c] % 4
    radius = x.shape_radius[a], x.shape_radius[b]
    plane = x.shape_kind[a] == PLANE
    flat = [once(x, _has_face, s, tuple(m)) for s, m in ((a, n), (b, -n))]
    of_a = plane | (flat[0] > 0)
    of_b = ~of_a & (flat[1] > 0)
    apart = radius[0] + radius[1]
    round_ones = ~of_a & ~of_b & (apart > 0.0)
    normal = where(of_a, 0.0, where(of_b, 1.0, 0.5))
    points = x.shape_kind[a] == POINT, x.shape_kind[b] == POINT
    corner_b = plane | points[1] | (what == 1) | ((what == 3) & of_a)
    corner_a = ~corner_b & (points[0] | (what == 0) | ((what == 3) & of_b))
    place = where(corner_b, 1.0, where(corner_a, 0.0, 0.5))
    half = 0.5 * (x.contact_gap[c] - x.pair_slack[k])
    offset = where(corner_b, radius[1] + half, where(corner_a, -radius[0] - half, 0.0))
    distance = where(round_ones, 1.0 / where(round_ones, apart + 2.0 * half, 1.0), 0.0)
    numbers = [place, normal, offset, distance, -radius[0] - half, radius[1] + half, *(0.0,) * 9, 0.0]
    write_row(x.c_moves, i, numbers)
    kind = x.shape_kind[b]
    rim = corner_b & ((kind == CYLINDER) | (kind == CONE))
    cond(rim, lambda: _on_rim(x, i, b, n), lambda: None)


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


def _on_rim(x: Any, i: Any, s: Any, n: Vector3) -> None:
    """The rim's point that is lowest along n turns about the axis a with the direction u in which it is."""
    R, centre = shape_pose(x, s)
    d = -(R.T @ n)
    across = (d.x * d.x + d.y * d.y) ** 0.5
    a = R @ Vector3(0.0, 0.0, 1.0)
    u = R @ outermost(d)
    share = u * (a.dot(n) / where(across > 0.0, across, 1.0))
    tilted = across > 1e-4  # else its points keep their places, see support.TILT

    def write() -> None:
        for first, of_rim in ((AXIS, a), (SHARE, share), (CENTRE, centre)):
            for c, number in enumerate(of_rim):
                x.c_moves[i, first + c] = number

    cond(tilted, write, lambda: None)


def frame_motion(x: Any, i: Any, p: Vector3, n: Vector3, A: Motion, B: Motion) -> Motion:
    """The motion of the frame of constraint i about the origin, as its bodies move by A and B.

    Args:
        x: the step.
        i: a constraint of a contact.
        p, n: its place and normal.
        A, B: motions of its bodies about the origin.
    """
    place, normal, offset, apart = (x.c_moves[i, k] for k in range(4))

    def at(M: Motion, point: Vector3) -> Vector3:
        return M.lin + M.ang.cross(point)

    ends = [p + n * x.c_moves[i, OFFSETS + k] for k in range(2)]
    turns = n.cross(at(B, ends[1]) - at(A, ends[0])) * apart
    w = _between(A.ang, B.ang, normal)
    w = Vector3(*(where(apart > 0.0, s, t) for s, t in zip(turns, w, strict=True)))
    w = w - n * n.dot(w)
    point = p + n * offset
    own = _between(at(A, point), at(B, point), place) + _rolled(x, i, point, B.ang - w)
    own = own - w.cross(n) * offset
    half_way = (at(A, p) + at(B, p)) * 0.5
    v = own + n * n.dot(half_way - own)
    return Motion(w, v - w.cross(p))


def _rolled(x: Any, i: Any, p: Vector3, w: Vector3) -> Vector3:
    """What the lowest point of a rim moves beside the body's point, at its angular velocity w against n."""
    a, share, centre = (vector(x.c_moves, i, first) for first in (AXIS, SHARE, CENTRE))
    return a.cross(p - centre) * -(a.dot(w) + share.dot(w))


def _between(a: Vector3, b: Vector3, weight: Scalar) -> Vector3:
    return a * (1.0 - weight) + b * weight
