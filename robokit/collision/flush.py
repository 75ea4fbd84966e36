"""Contacts of a fixed polytope that another one beside it hides: ghost edges of flush faces.

Solids side by side are one surface, whose inner edges and walls nothing touches. A contact at the point p of
solid a, with the normal n out of a, is hidden by the solid s if

    p lies in s or on it,
    something of s is farther along n than p: n is no normal of s there, and
    where p is moved out of s along a's surface, by the nearest face of s that does not face against n, it
    leaves a as well.

The last keeps the foot of a wall on a floor, where the wall goes on above it, and the bottom of a valley.
"""

from __future__ import annotations

from typing import Any

from robokit.collision.narrow import shape_pose
from robokit.collision.support import support, vector
from robokit.engine.loops.fields import once
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision, smallest
from robokit.spatial.scalars import minimum, sqrt, where
from robokit.spatial.vectors import chosen

FLUSH = 1e-6, 1e-5
"""Of the size of a solid, in double and in single precision: what is off by less is flush."""


ZERO = (0.0, 0.0, 0.0)

LEVEL = 1e-12
"""Square of the sine of an angle: a face that is tilted by less against a's surface is parallel to it."""


SHALLOW = 1e-2
"""Of the size of a solid: what is deeper in it than this stands on no face of it."""


def hidden(x: Any, a: Any, p: Vector3, n: Vector3) -> Any:
    """Whether a contact of shape a is hidden by one of those beside it.

    Args:
        x: with SHAPES and POSES.
        a: a shape.
        p: the contact's point on its surface, from the step's origin in world axes [m].
        n: the contact's normal, out of a.
    """
    return once(x, _hidden, a, tuple(p), tuple(n)) > 0


def _hidden(x: Any, a: Any, p: Any, n: Any) -> Any:
    def one(k: Any, found: Any) -> Any:
        s = x.beside[x.shape_beside[a, 0] + k]
        return cond(found > 0, lambda: found, lambda: _hides(x, a, s, Vector3(*p), Vector3(*n)))

    return for_range(x.shape_beside[a, 1], one, 0)


def on_face(x: Any, k: Any) -> tuple[Any, Vector3, Any, Vector3]:
    """The contact of the pair k on that face of its fixed polytope which is not hidden and is left soonest.

    What stands on the seam of two solids would leave each of them soonest through the wall between them.

    Returns:
        whether there is one; its point half-way between the surfaces, gap and normal, as of a contact.
    """
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    first, corners = x.shape_faces[a, 0], x.shape_corners[a, 0]
    R, r = shape_pose(x, a)
    S, o = shape_pose(x, b)
    flush = in_precision(*FLUSH) * x.shape_bound[a]

    def face(k: Any, *best: Any) -> Any:
        f = vector(x.face_normal, first + k)
        up = R @ f
        c = vector(x.corners, corners + x.polygon[x.face_corners[first + k, 0]])
        y = S @ Vector3(*_support(x, b, -S.transpose_apply(up))) + o - up * x.shape_radius[b]
        gap = f.dot(R.transpose_apply(y - r) - c)
        p = y - up * gap
        # By as much as it is deep it may be beside the face; the face is looked at a little further in.
        depth = flush + abs(gap)
        q = R.transpose_apply(p - r)
        inward = _middle(x, a, first + k) - q
        inside = q + inward * minimum(1.0, 4.0 * depth / (sqrt(inward.dot(inward)) + smallest()))

        def over() -> Any:
            height, _ = once(x, _height, a, tuple(q), ZERO)
            return cond(height <= depth, lambda: hidden(x, a, R @ inside + r, up), lambda: height > depth)

        covered = cond(gap > best[0], over, lambda: gap <= best[0])
        numbers = (gap, *(p + up * (0.5 * gap)), *up)
        return tuple(where(covered, old, new) for old, new in zip(best, numbers, strict=True))

    none = -SHALLOW * x.shape_bound[a]
    gap, *rest = for_range(x.shape_faces[a, 1], face, none, *(0.0,) * 6)
    return gap > none, Vector3(*rest[:3]), gap + x.pair_slack[k], Vector3(*rest[3:])


def _support(x: Any, s: Any, d: Vector3) -> Any:
    return once(x, _support_of_numbers, s, tuple(d))


def _support_of_numbers(x: Any, s: Any, d: Any) -> Any:
    return support(x, s, Vector3(*d))


def _middle(x: Any, s: Any, face: Any) -> Vector3:
    """Of the corners of a face."""
    first, count, corners = x.face_corners[face, 0], x.face_corners[face, 1], x.shape_corners[s, 0]

    def corner(k: Any, *total: Any) -> Any:
        return tuple(vector(x.corners, corners + x.polygon[first + k]) + Vector3(*total))

    return Vector3(*for_range(count, corner, 0.0, 0.0, 0.0)) * (1.0 / count)


def _hides(x: Any, a: Any, s: Any, p: Vector3, n: Vector3) -> Any:
    R, r = shape_pose(x, s)
    q, m = R.transpose_apply(p - r), R.transpose_apply(n)
    flush = in_precision(*FLUSH) * x.shape_bound[s]
    height, _ = once(x, _height, s, tuple(q), ZERO)

    def inside() -> Any:
        farthest = Vector3(*_support(x, s, m)).dot(m) - m.dot(q)
        return cond(farthest > 4.0 * flush, leaves, lambda: 0)

    def leaves() -> Any:
        height, face = once(x, _height, s, tuple(q), tuple(m))
        outward = vector(x.face_normal, face)
        along = outward - m * m.dot(outward)
        rise = along.dot(outward)
        along = chosen(rise > LEVEL, along * (1.0 / (rise + smallest())), outward)
        out = q + along * (3.0 * flush - height)
        S, o = shape_pose(x, a)
        back = S.transpose_apply(R @ out + r - o)
        above, _ = once(x, _height, a, tuple(back), ZERO)
        return where(above > flush, 1, 0)

    return cond(height <= flush, inside, lambda: 0)


def _height(x: Any, s: Any, q: Any, n: Any) -> tuple[Any, Any]:
    """How far a point lies above the nearest face of a polytope, negative inside, and this face.

    Faces whose outward normals point against n do not count.
    """
    first, corners = x.shape_faces[s, 0], x.shape_corners[s, 0]
    q, n = Vector3(*q), Vector3(*n)

    def higher(k: Any, most: Any, at: Any) -> Any:
        face = first + k
        c = vector(x.corners, corners + x.polygon[x.face_corners[face, 0]])
        outward = vector(x.face_normal, face)
        h = outward.dot(q - c)
        nearer = (h > most) & (outward.dot(n) >= -in_precision(*FLUSH))
        return where(nearer, h, most), where(nearer, face, at)

    return for_range(x.shape_faces[s, 1], higher, -float("inf"), first)
