"""Contacts of a pair of shapes: distance and normal, then the manifold; a plane's contacts come at once.

Cost: 0.5-3 us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robokit.collision.fields import CONE, FIELD, PLANE, POLYTOPE, SMOOTH
from robokit.collision.gjk import FAR, SETTLED, nearest_sets
from robokit.collision.manifold import manifold, pose
from robokit.collision.support import farthest, outermost, support, vector
from robokit.collision.terrain import ALIGNED, NORMAL, STATE, cells_below, counted, enter, located, numbered
from robokit.engine.loops.fields import once
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.control_flow import call, cond, for_range, while_loop, zeros
from robokit.spatial.scalars import sqrt, where

Add = Callable[[Any, Any, Any, Any], None]
"""Of a contact's feature (a whole number, below 2^31), place (3), gap, and normal (3), in world axes."""


def narrow(x: Any, k: Any, far: Any, direction: Any, corners: Any, add: Add) -> Any:
    """Find the contacts of pair k.

    Args:
        x: with SHAPES, PAIRS and POSES.
        k: number of the pair (a, b).
        far: contacts whose gap is not below it are left out [m].
        direction: 3 numbers that are read and written: where GJK begins, a unit vector from a to b in the
            axes of shape a, or zeros for none; afterwards the last one that was found.
        corners: 6 whole numbers that are read and written: rows of corners of a and b in turn, of the simplex
            that was nearest, -1 for none. They save time.
        add: called with each contact: ``add(feature, place, gap, n)``. The place is half-way between the
            surfaces, from the step's origin; the gap is negative where they overlap, slack taken off; n is
            a unit vector from a to b. Place and n are in world axes.

    Returns:
        0 where a gap below ``far`` is ruled out, else 1.
    """
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    kinds = x.shape_kind[a], x.shape_kind[b]

    def convex() -> Any:
        reach, put = _cores_of(x, k, far, add)
        towards(x, (a, b), direction)
        return _cores(x, (a, b), reach, direction, corners, put)

    def plane() -> Any:
        on_plane(x, k, far, corners, add)
        return 1

    return cond((kinds[0] == PLANE) | (kinds[1] == PLANE), plane, convex)


def on_plane(x: Any, k: Any, far: Any, corners: Any, add: Add) -> None:
    """Find the contacts of pair k, one of whose shapes is a plane.

    Args:
        x, k, far, add: as of :func:`narrow`.
        corners: likewise; of None all corners are looked at.
    """
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    reach, put = _cores_of(x, k, far, add)
    of_b = x.shape_kind[b] == PLANE
    other, plane, side = where(of_b, a, b), where(of_b, b, a), where(of_b, -1.0, 1.0)
    _on_plane(x, other, plane, side, reach, corners, put)


def _cores_of(x: Any, k: Any, far: Any, add: Add) -> tuple[Any, Callable[[Any, Vector3, Any, Vector3], None]]:
    """How near the cores of pair k have to be, and what their contacts are given to."""
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    slack = x.pair_slack[k]
    radii = x.shape_radius[a], x.shape_radius[b]

    def give(feature: Any, q: Any, gap: Any, n: Any) -> None:
        n = Vector3(*n)
        middle = Vector3(*q) + n * (0.5 * (radii[0] - radii[1]))
        add(feature, tuple(middle), gap - radii[0] - radii[1] + slack, tuple(n))

    def put(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
        call(give, feature, tuple(q), gap, tuple(n))

    return far + radii[0] + radii[1] - slack, put


def place(x: Any, body: Any, r: Vector3) -> Vector3:
    """A point of a body in world axes, from the step's origin."""
    return rotation(x, body) @ r + vector(x.p, body)


def rotation(x: Any, body: Any) -> Matrix3:
    """From a body's axes to those of the world."""
    return Matrix3([[x.R[body, 3 * i + k] for k in range(3)] for i in range(3)])


def shape_pose(x: Any, s: Any) -> tuple[Matrix3, Vector3]:
    """Rotation and origin of a shape, in world axes from the step's origin: of its body if it has corners."""
    body = x.shape_body[s]
    E, p = rotation(x, body), vector(x.p, body)

    def own() -> Any:
        R, r = pose(x.shape_placement[s])
        return (E @ R).rows, tuple(E @ r + p)

    def of_body() -> Any:
        return E.rows, tuple(p)

    rows, origin = cond(x.shape_kind[s] <= POLYTOPE, of_body, own)
    return Matrix3(rows), Vector3(*origin)


def gap_along(x: Any, k: Any, d: Vector3) -> Any:
    """A gap that no contact of pair k is below: how far apart its shapes are along a direction.

    Args:
        x: with SHAPES, PAIRS, POSES and CANDIDATES; ``apart_corners`` of the pair are read and written. That
            of a is 0 where the direction is another than the last time.
        k: number of the pair (a, b), neither a plane nor a height field.
        d: from a to b, a unit vector in the axes of shape a.
    """
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    (R, p), (S, q) = shape_pose(x, a), shape_pose(x, b)
    along = R @ d
    e = S.transpose_apply(along)

    def of_a(last: Any) -> Any:
        return cond(last < 0, lambda: farthest(x, a, d), lambda: 1 * last)

    def of_b(last: Any) -> Any:
        return farthest(x, b, -e, last)

    def extreme(s: Any, side: int, d: Vector3, corner_of: Callable[[Any], Any]) -> Vector3:
        def corner() -> Any:
            i = corner_of(x.apart_corners[k, side] - 1)
            x.apart_corners[k, side] = i + 1
            return tuple(vector(x.corners, i))

        return Vector3(*cond(x.shape_kind[s] <= POLYTOPE, corner, lambda: support(x, s, d)))

    y, z = extreme(a, 0, d, of_a), extreme(b, 1, -e, of_b)
    return along.dot(q - p) + e.dot(z) - d.dot(y) - x.shape_radius[a] - x.shape_radius[b] + x.pair_slack[k]


def _cores(x: Any, shapes: tuple[Any, Any], reach: Any, direction: Any, corners: Any, put: Any) -> Any:
    """Of two convex cores; a height field is one after the other. Returns what :func:`narrow` does."""
    a, b = shapes
    R, p = shape_pose(x, a)
    R_b, p_b = shape_pose(x, b)
    Q, r = R.T @ R_b, R.transpose_apply(p_b - p)
    field, size, radius = x.shape_kind[a] == FIELD, x.shape_bound[b], x.shape_radius[b]

    def ball() -> Vector3:
        return R.transpose_apply(place(x, x.shape_body[b], vector(x.shape_centre, b)) - p)

    cells = cond(field, lambda: cells_below(x, a, ball(), size + reach), lambda: (0, 0, 1, 1))

    def in_world(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
        put(feature, R @ q + p, gap, R @ n)

    def core(t: Any, found: Any) -> Any:
        at = located(cells, t)

        def put_if_it_counts(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            cond(field, lambda: of_field(feature, q, gap, n), lambda: in_world(feature, q, gap, n))

        def of_field(feature: Any, q: Vector3, gap: Any, n: Vector3) -> None:
            kept = once(x, counted, a, at, feature, tuple(q), gap, tuple(n), radius)
            cond(kept > 0, lambda: in_world(numbered(at, feature), q, gap, n), lambda: None)

        def below() -> Any:
            near = enter(x, a, cells, t, ball(), size, reach)
            cond(near, along_normal, lambda: None)
            return where(near, 1, 0)

        def along_normal() -> None:
            for i, number in enumerate(vector(x.cell, NORMAL)):
                direction[i] = number
            for i in range(6):
                corners[i] = -1

        def both() -> Any:
            near = _two_cores(x, shapes, Q, r, reach, direction, corners, put_if_it_counts)
            return where(near, 1, found)

        near = cond(field, below, lambda: 1)
        return cond(near > 0, both, lambda: 1 * found)

    return for_range(cells[3], core, 0)


def _two_cores(
    x: Any,
    shapes: tuple[Any, Any],
    Q: Matrix3,
    r: Vector3,
    reach: Any,
    direction: Any,
    corners: Any,
    put: Any,
) -> Any:
    a, b = shapes
    place, out = zeros(12), zeros(10)
    status, extreme = nearest_cores(x, shapes, (Q, r), reach, direction, corners, (place, out))

    field = x.shape_kind[a] == FIELD

    def along_normal() -> None:
        n = vector(x.cell, NORMAL)
        y = Q @ Vector3(*call(extreme, b, 1, tuple(-Q.transpose_apply(n)))[1:]) + r
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
        bare = (x.shape_radius[b] == 0.0) & (x.shape_kind[b] < SMOOTH)

        def begin() -> Any:
            sine = Vector3(out[1], out[2], out[3]).cross(vector(x.cell, NORMAL))
            return where(bare & (sine.dot(sine) < ALIGNED), 1, 0)

        while_loop(lambda k: k < 2, turn, cond(field, begin, lambda: 0))

    near = (status != FAR) & (out[0] < reach)
    cond(near, touching, lambda: None)
    return near


def nearest_cores(
    x: Any,
    shapes: tuple[Any, Any],
    of_b: tuple[Matrix3, Vector3],
    reach: Any,
    direction: Any,
    corners: Any,
    found: tuple[Any, Any],
    settled: float = SETTLED,
) -> tuple[Any, Callable[[Any, Any, Any], Any]]:
    """Distance or depth of two convex cores, their normal and nearest points, in the axes of the first.

    Args:
        x: with SHAPES.
        shapes: a and b.
        of_b: rotation and origin of b in the axes of a.
        reach: larger distances are not looked for [m].
        direction, corners: as of :func:`narrow`, in these axes.
        found: that are written to: 12 numbers, rotation by rows and origin of b; 10 as of gjk.nearest_sets.
        settled: as there.

    Returns:
        FAR, APART or INSIDE, and a function of a shape, its number 0 or 1 and a direction in its axes: its
        corner, -1 for none, and the point of it that is farthest along the direction.
    """
    (a, b), (Q, r), (place, out) = shapes, of_b, found
    for i, number in enumerate([number for row in Q.rows for number in row] + list(r)):
        place[i] = number
    # Corners that were found last, where climbing begins
    last, known = zeros(2, kind="integer"), zeros(6, kind="integer")
    last[0], last[1] = corners[0], corners[1]
    for i in range(6):
        known[i] = corners[i]
        corners[i] = -1

    def extreme(s: Any, side: Any, d: Any) -> Any:
        def corner() -> Any:
            i = farthest(x, s, Vector3(*d), last[side])
            last[side] = i
            return i, *vector(x.corners, i)

        return cond(x.shape_kind[s] <= POLYTOPE, corner, lambda: (-1, *support(x, s, Vector3(*d))))

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

    memory = remembered, corners
    return nearest_sets(x, vertex, reach, direction, out, memory, settled), extreme


def towards(x: Any, shapes: tuple[Any, Any], direction: Any) -> None:
    """A direction where none is given: from the middle of a's ball to that of b's."""

    def middles() -> None:
        R, _ = shape_pose(x, shapes[0])
        c, d = (place(x, x.shape_body[s], vector(x.shape_centre, s)) for s in shapes)
        r = R.transpose_apply(d - c)
        is_null = r.dot(r) == 0.0
        r = Vector3(where(is_null, 1.0, r.x), r.y, r.z)
        for i, number in enumerate(r * (1.0 / sqrt(r.dot(r)))):
            direction[i] = number

    d = Vector3(direction[0], direction[1], direction[2])
    cond(d.dot(d) == 0.0, middles, lambda: None)


def _on_plane(x: Any, s: Any, plane: Any, side: Any, reach: Any, corners: Any, put: Any) -> None:
    """Every point of a shape that may touch a plane: corners, points of rims, the tip of a cone.

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
        cond(kind >= SMOOTH, lambda: touch(0, Vector3(*support(x, s, down))), of_round)

    cond(kind <= POLYTOPE, of_polytope, smooth)
