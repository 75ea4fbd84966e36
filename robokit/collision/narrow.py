"""Contacts of a pair of shapes: distance and normal, then the manifold; a plane's contacts come at once.

Cost: 1-2 supports for a pair that stays farther apart than is asked for; else 0.5-3 us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robokit.collision.fields import CONE, ELLIPSOID, FIELD, PLANE, POLYTOPE
from robokit.collision.gjk import FAR, nearest_sets
from robokit.collision.manifold import manifold, pose
from robokit.collision.support import outermost, support, vector
from robokit.collision.terrain import ALIGNED, NORMAL, STATE, cells_below, counted, enter, located, numbered
from robokit.engine.loops.fields import once
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.control_flow import call, cond, for_range, while_loop, zeros
from robokit.spatial.scalars import where
from robokit.spatial.vector3 import chosen

Add = Callable[[Any, Any, Any, Any], None]
"""Of a contact's feature (a whole number, below 2^31), place (3), gap, and normal (3), in world axes."""


def narrow(x: Any, k: Any, far: Any, direction: Any, add: Add) -> None:
    """Find the contacts of pair k.

    Args:
        x: with SHAPES, PAIRS and POSES.
        k: number of the pair (a, b).
        far: contacts whose gap is not below it are left out [m].
        direction: 3 numbers that are read and written: where GJK begins, a unit vector from a to b in the
            axes of shape a, or zeros for none; afterwards the last one that was found.
        add: called with each contact: ``add(feature, place, gap, n)``. The place is half-way between the
            surfaces, from the step's origin; the gap is negative where they overlap, slack taken off; n is
            a unit vector from a to b. Place and n are in world axes.
    """
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    slack = x.pair_slack[k]
    radii = x.shape_radius[a], x.shape_radius[b]
    reach = far + radii[0] + radii[1] - slack
    R, p = shape_pose(x, a)
    R_b, p_b = shape_pose(x, b)
    Q, r = R.T @ R_b, R.transpose_apply(p_b - p)

    def give(feature: Any, q: Any, gap: Any, n: Any) -> None:
        q, n = Vector3(*q), Vector3(*n)
        middle = R @ (q + n * (0.5 * (radii[0] - radii[1]))) + p
        add(feature, tuple(middle), gap - radii[0] - radii[1] + slack, tuple(R @ n))

    def put(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
        call(give, feature, tuple(q), gap, tuple(n))

    def convex() -> None:
        _cores(x, (a, b), (R, p), (Q, r), reach, direction, put)

    plane_a, plane_b = x.shape_kind[a] == PLANE, x.shape_kind[b] == PLANE

    def plane() -> None:
        other = where(plane_a, b, a)
        side = where(plane_a, 1.0, -1.0)
        identity = Matrix3.identity()
        # Of the plane and of the other shape, in the axes of a
        N = chosen(plane_a, Vector3(0.0, 0.0, 1.0), Q @ Vector3(0.0, 0.0, 1.0))
        origin = chosen(plane_a, Vector3.zero(), r)
        at = chosen(plane_a, r, Vector3.zero())
        rows = zip(Q.rows, identity.rows, strict=True)
        E = Matrix3([[where(plane_a, s, t) for s, t in zip(*both, strict=True)] for both in rows])
        _on_plane(x, other, (E, at), (N, origin), side, reach, put)

    cond(plane_a | plane_b, plane, convex)


def shape_pose(x: Any, s: Any) -> tuple[Matrix3, Vector3]:
    """Rotation and origin of a shape, in world axes from the step's origin."""
    body = x.shape_body[s]
    E = Matrix3([[x.R[body, 3 * i + k] for k in range(3)] for i in range(3)])
    R, r = pose(x.shape_placement[s])
    return E @ R, E @ r + vector(x.p, body)


def _cores(
    x: Any, shapes: tuple[Any, Any], pose_of_a: Any, place: Any, reach: Any, direction: Any, put: Any
) -> None:
    """Of two convex cores; a height field is one after the other."""
    a, b = shapes
    (R, p), (Q, r) = pose_of_a, place
    field, size, radius = x.shape_kind[a] == FIELD, x.shape_bound[b], x.shape_radius[b]

    def ball() -> Vector3:
        body = x.shape_body[b]
        E = Matrix3([[x.R[body, 3 * i + k] for k in range(3)] for i in range(3)])
        return R.transpose_apply(E @ vector(x.shape_centre, b) + vector(x.p, body) - p)

    cells = cond(field, lambda: cells_below(x, a, ball(), size + reach), lambda: (0, 0, 1, 1))

    def core(t: Any) -> None:
        at = located(cells, t)

        def put_if_it_counts(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            cond(field, lambda: of_field(feature, q, gap, n), lambda: put(feature, q, gap, n))

        def of_field(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            kept = once(x, counted, a, at, feature, tuple(q), gap, tuple(n), radius)
            cond(kept > 0, lambda: put(numbered(at, feature), q, gap, n), lambda: None)

        def below() -> Any:
            near = enter(x, a, cells, t, ball(), size, reach)
            for i, number in enumerate(vector(x.cell, NORMAL)):
                direction[i] = number
            return where(near, 1, 0)

        near = cond(field, below, lambda: 1)
        cond(
            near > 0,
            lambda: _two_cores(x, shapes, Q, r, reach, direction, put_if_it_counts),
            lambda: None,
        )

    for_range(cells[3], core)


def _two_cores(
    x: Any, shapes: tuple[Any, Any], Q: Matrix3, r: Vector3, reach: Any, direction: Any, put: Any
) -> None:
    a, b = shapes
    place, out = zeros(12), zeros(10)
    for i, number in enumerate([number for row in Q.rows for number in row] + list(r)):
        place[i] = number

    def extreme(s: Any, d: Any) -> Any:
        return support(x, s, Vector3(*d))

    def of_pair(d: Any, row: Any) -> Any:
        Q, r = pose(place)
        along = Vector3(*d)
        A = Vector3(*call(extreme, a, d))
        B = Q @ Vector3(*call(extreme, b, tuple(-Q.transpose_apply(along)))) + r
        w = A - B
        for i, number in enumerate((*w, *A, *B)):
            row[i] = number
        return w.dot(along)

    def vertex(d: Any, row: Any) -> Any:
        return call(of_pair, d, row)

    _begin(direction, r)
    status = nearest_sets(vertex, reach, direction, out)

    field = x.shape_kind[a] == FIELD

    def along_normal() -> None:
        n = vector(x.cell, NORMAL)
        y = Q @ Vector3(*call(extreme, b, tuple(-Q.transpose_apply(n)))) + r
        gap = n.dot(y - vector(x.cell, 0))
        for i, number in enumerate((gap, *n, *(y - n * gap), *y)):
            out[i] = number
        x.cell[STATE, 2] = 1.0

    def turn(k: Any) -> Any:
        cond(k == 1, along_normal, lambda: None)
        manifold(x, shapes, place, out, reach, put)
        return cond(field, lambda: where((k == 0) & (x.cell[STATE, 1] > 0.0), 1, 2), lambda: 2)

    def touching() -> None:
        """A second time along the normal of a height field's triangle, where a contact did not count."""
        bare = (x.shape_radius[b] == 0.0) & (x.shape_kind[b] != ELLIPSOID)

        def begin() -> Any:
            sine = Vector3(out[1], out[2], out[3]).cross(vector(x.cell, NORMAL))
            return where(bare & (sine.dot(sine) < ALIGNED), 1, 0)

        while_loop(lambda k: k < 2, turn, cond(field, begin, lambda: 0))

    cond((status != FAR) & (out[0] < reach), touching, lambda: None)


def _begin(direction: Any, r: Vector3) -> None:
    """A direction where none is given: towards the other shape's origin."""
    d = vector(direction.reshape(1, 3), 0)

    def towards() -> None:
        c = r * (1.0 / (r.dot(r) ** 0.5))
        for i, number in enumerate(c):
            direction[i] = number

    def anywhere() -> None:
        direction[0], direction[1], direction[2] = 1.0, 0.0, 0.0

    def begin() -> None:
        cond(r.dot(r) > 0.0, towards, anywhere)

    cond(d.dot(d) == 0.0, begin, lambda: None)


def _on_plane(x: Any, s: Any, of_shape: Any, of_plane: Any, side: Any, reach: Any, put: Any) -> None:
    """Every point of a shape that may touch a plane: corners, points of rims, the tip of a cone."""
    (E, at), (N, origin) = of_shape, of_plane
    kind = x.shape_kind[s]
    down = -(E.T @ N)
    n = N * side

    def touch(feature: Any, point: Vector3) -> None:
        q = E @ point + at
        gap = (q - origin).dot(N)
        cond(gap < reach, lambda: put(4 * feature, q - N * (0.5 * gap), gap, n), lambda: None)

    def of_corner(k: Any) -> None:
        touch(k, vector(x.corners, x.shape_corners[s, 0] + k))

    def of_round() -> None:
        radius, half, u = x.shape_size[s, 0], x.shape_size[s, 1], outermost(down)
        is_cone = kind == CONE
        up = (down.z > 0.0) & ~is_cone
        z = where(up, half, -half)

        def of_rim(k: Any) -> None:
            c, d = where(k == 0, 1.0, where(k == 2, -1.0, 0.0)), where(k == 1, 1.0, where(k == 3, -1.0, 0.0))
            other = k == 4  # the lowest point of the other end, or the tip
            c = where(other & ~is_cone, 1.0, c) * radius
            height = where(other, -z, z)
            touch(
                where(up ^ other, k % 4, 4 + k % 4),
                Vector3(c * u.x - radius * d * u.y, c * u.y + radius * d * u.x, height),
            )

        for_range(5, of_rim)

    def smooth() -> None:
        cond(kind == ELLIPSOID, lambda: touch(0, Vector3(*support(x, s, down))), of_round)

    cond(kind <= POLYTOPE, lambda: for_range(x.shape_corners[s, 1], of_corner), smooth)
