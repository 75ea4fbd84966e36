"""Signed distances of links from links and the world, and their gradients, at given configurations.

The distance of two links is the least of all pairs of their shapes. Where shapes overlap it is negative:
minus the least translation that separates them. With n, the unit normal from a to b, and any point p of the
line along n through the nearest points,

    d' = n . (velocity of b's point - velocity of a's)        so        gradient_j = +-S_j . (p x n, n)

for the dofs j that move one of the two, + for b and - for a; dofs that move both cancel to the last bit.
Where the nearest points jump, the distance has no gradient; the result is then that of one side.

Source: E. Gilbert, D. Johnson, Distance functions and their application to robot path planning in the
presence of obstacles, 1985 (gradients of distances).
Cost: 3 ns a pair of shapes that is farther apart than the nearest of its links', else 0.2-2 us.
"""

from __future__ import annotations

import functools
from typing import Any

from robokit.collision.fields import FIELD, PLANE, POINT, SEGMENT, SHAPES
from robokit.collision.gjk import FAR
from robokit.collision.narrow import narrow, nearest_cores, towards
from robokit.collision.support import place, shape_pose, support, vector
from robokit.collision.terrain import FARTHEST, NORMAL, cells_below, enter, height
from robokit.contact.fields import MOTION, ROBOT
from robokit.contact.kinematics import place_links
from robokit.contact.vectors import nothing, put, write, write_row
from robokit.engine.loops.fields import kernel_of, once, real
from robokit.engine.loops.fields import whole as whole_array
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Vector3
from robokit.spatial.control_flow import call, cond, for_range, smallest, while_loop, whole, zeros
from robokit.spatial.scalars import added, clamp, maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

_ROBOT = (
    "parent body_dofs joint_kind joint_placement joint_turn joint_slide joint_coordinate coordinate_from "
    "coordinate_gain coordinate_offset dof_parent dof_body dof_row dof_gain dof_axis body_tip "
    "wholes body_whole"
)

_MOTION = ("R", "p", "seat", "origin", "S", "coordinate")

ROUNDING = 1e-9  # of a distance that is known to be enough: it is looked for a little farther

NOWHERE = float("nan")

MEETS = 1e-6  # of the radii of capsules: segments that are nearer tell their normal to fewer than ten digits

ARRAYS = (
    *SHAPES,
    whole_array("pair_shapes", "n_pairs", 2),  # of shapes whose distances are looked for
    *(a for a in ROBOT if a.name in _ROBOT.split()),
    *(a for a in MOTION if a.name in _MOTION),
    whole_array("shape_box", "n_shapes"),  # 1 of boxes with corners in the order of hulls.BOX_FACES
    whole_array(
        "group_pairs", "n_groups", 2
    ),  # of each pair of links: first of its pairs of shapes, how many
    whole_array("group_swapped", "n_groups"),  # 1 where the shapes' order is not that of the links
    real("farthest", 1),  # larger distances are not looked for [m]
    real("q", "nq"),
    real("distance", "n_groups", role="out"),  # [m]; infinite beyond the farthest
    real("normal", "n_groups", 3, role="out"),  # from a to b, in world axes
    real("points", "n_groups", 2, 3, role="out"),  # of a and b, from the world's origin [m]
    whole_array("nearest_pair", "n_groups", role="out"),  # of shapes, -1 beyond the farthest
    real("gradient", "n_gradients", "nv", role="out"),  # [m/rad | 1], for all groups or none
    real("balls", "n_shapes", 3, role="work"),  # centres
    real("nearest", 10, role="work"),  # of the pair that is looked at: distance, normal, points of a and b
    real("direction", 3, role="work"),
    whole_array("near_corners", 6, role="work"),
)


@functools.cache
def distance_kernel() -> LoopKernel:
    """The kernel of distances, for one configuration."""
    return kernel_of("distances", distances, ARRAYS, by_source=True, sizes=["nv"])


def distances(x: Any) -> None:
    """Compute the outputs of ARRAYS."""
    place_links(x, x.q)

    def ball(s: Any) -> None:
        write_row(x.balls, s, place(x, x.shape_body[s], vector(x.shape_centre, s)))

    for_range(x.n_shapes, ball)
    for_range(x.n_groups, lambda g: _group(x, g))
    for_range(x.n_gradients, lambda g: _gradient(x, g))


def _group(x: Any, g: Any) -> None:
    first = x.group_pairs[g, 0]
    x.nearest_pair[g] = -1
    for c in range(3):
        x.normal[g, c], x.points[g, 0, c], x.points[g, 1, c] = 0.0, NOWHERE, NOWHERE

    def pair(m: Any, least: Any) -> Any:
        k = first + m
        a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
        level = (x.shape_kind[a] == PLANE) | (x.shape_kind[a] == FIELD)
        between = vector(x.balls, b) - vector(x.balls, a)
        reach = least + x.shape_bound[a] + x.shape_bound[b]
        may = level | ((reach > 0.0) & (between.dot(between) < reach * reach))

        def look() -> Any:
            once(x, _of_shapes, k, least)
            nearer = x.nearest[0] < least
            cond(nearer, lambda: _take(x, g, k), nothing)
            return where(nearer, x.nearest[0], least)

        return cond(may, look, lambda: least)

    least = for_range(x.group_pairs[g, 1], pair, 1.0 * x.farthest[0])
    x.distance[g] = where(x.nearest_pair[g] < 0, float("inf"), least)


def _take(x: Any, g: Any, k: Any) -> None:
    """Write the result for a pair of shapes as that of their links."""
    swapped = x.group_swapped[g]
    x.nearest_pair[g] = k
    for c in range(3):
        n, a, b = (x.nearest[first + c] for first in (1, 4, 7))
        x.normal[g, c] = where(swapped == 1, -n, n)
        x.points[g, 0, c] = where(swapped == 1, b, a) + x.origin[c]
        x.points[g, 1, c] = where(swapped == 1, a, b) + x.origin[c]


def _gradient(x: Any, g: Any) -> None:
    for_range(x.nv, lambda j: put(x.gradient, (g, j), 0.0))
    k = x.nearest_pair[g]

    def of_pair() -> None:
        n = vector(x.normal, g)
        p = Vector3(*(x.points[g, 0, c] - x.origin[c] for c in range(3)))
        first = where(x.group_swapped[g] == 1, 1, 0)
        side(x.shape_body[x.pair_shapes[k, 1 - first]], p, n, 1.0)
        side(x.shape_body[x.pair_shapes[k, first]], p, n, -1.0)

    def side(body: Any, p: Vector3, n: Vector3, sign: float) -> None:
        wrench = (*(p - vector(x.seat, body)).cross(n), *n)

        def dof(j: Any) -> Any:
            row = x.dof_row[j]
            power = added(x.S[j, c] * wrench[c] for c in range(6))

            def moves() -> None:
                x.gradient[g, row] = x.gradient[g, row] + sign * power

            cond(row < 0, nothing, moves)
            return 1 * x.dof_parent[j]

        while_loop(lambda j: j >= 0, dof, 1 * x.body_tip[body])

    cond(k < 0, nothing, of_pair)


# ---- two shapes -------------------------------------------------------------------------------------------


def _of_shapes(x: Any, k: Any, far: Any) -> None:
    """Write the distance, normal and nearest points of pair k; infinite if it is not below ``far``."""
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    kind = x.shape_kind[a]
    x.nearest[0] = float("inf")

    def of_cores() -> None:
        other = x.shape_kind[b]

        def of_box() -> Any:
            box_first = (x.shape_box[a] > 0) & (other == POINT)
            box_last = (x.shape_box[b] > 0) & (kind == POINT)
            ends = where(box_first, a, b), where(box_first, b, a)
            return cond(box_first | box_last, lambda: _of_box(x, *ends, box_first), lambda: 0)

        straight = (kind <= SEGMENT) & (other <= SEGMENT)

        def of_segments() -> Any:
            balls = (kind == POINT) & (other == POINT)
            return cond(balls, lambda: _of_balls(x, a, b), lambda: _of_segments(x, a, b))

        known = cond(straight, of_segments, of_box)
        cond(known > 0, nothing, by_gjk)

    def by_gjk() -> None:
        write(x.direction, 0, (0.0, 0.0, 0.0))
        towards(x, (a, b), x.direction)
        once(x, _of_cores, a, b, far)

    def other() -> None:
        cond(kind == FIELD, lambda: _over_field(x, k, far), of_cores)

    cond(kind == PLANE, lambda: _over_plane(x, a, b), other)


def _of_cores(x: Any, a: Any, b: Any, far: Any) -> None:
    """The same for two convex shapes; GJK begins with ``x.direction``, in the axes of a."""
    R, p = shape_pose(x, a)
    R_b, p_b = shape_pose(x, b)
    of_b, radii = (R.T @ R_b, R.transpose_apply(p_b - p)), (x.shape_radius[a], x.shape_radius[b])
    both, out = radii[0] + radii[1], zeros(10)
    for_range(6, lambda i: put(x.near_corners, i, -1))
    found = zeros(12), out
    status = nearest_cores(x, (a, b), of_b, far + both, x.direction, x.near_corners, found)

    def take() -> None:
        n, y_a, y_b = (Vector3(*(out[first + c] for c in range(3))) for first in (1, 4, 7))
        points = (R @ (y_a + n * radii[0]) + p, R @ (y_b - n * radii[1]) + p)
        write(x.nearest, 0, (out[0] - both, *(R @ n), *points[0], *points[1]))

    cond(status == FAR, lambda: put(x.nearest, 0, float("inf")), take)


def _of_balls(x: Any, a: Any, b: Any) -> Any:
    """The same for two balls: 1, or 0 if their centres coincide, so that there is no normal."""
    c_a, c_b = (place(x, x.shape_body[s], vector(x.corners, x.shape_corners[s, 0])) for s in (a, b))
    between, radii = c_b - c_a, (x.shape_radius[a], x.shape_radius[b])
    length = sqrt(between.dot(between))
    n = between * (1.0 / (length + smallest()))
    points = c_a + n * radii[0], c_b - n * radii[1]
    write(x.nearest, 0, (length - radii[0] - radii[1], *n, *points[0], *points[1]))
    return where(length > MEETS * (radii[0] + radii[1]), 1, 0)


def _of_segments(x: Any, a: Any, b: Any) -> Any:
    """The same for balls and capsules: 1, or 0 if their points and segments intersect, so that there is no
    normal.

    The nearest points are the ends of one segment and their projections onto the other, or those where both
    lines are nearest.
    """

    def ends(s: Any) -> tuple[Vector3, Vector3]:
        first, body = x.shape_corners[s, 0], x.shape_body[s]
        start = place(x, body, vector(x.corners, first))
        return start, place(x, body, vector(x.corners, first + x.shape_corners[s, 1] - 1)) - start

    (p_a, e_a), (p_b, e_b) = ends(a), ends(b)
    r, radii = p_b - p_a, (x.shape_radius[a], x.shape_radius[b])
    square_a, square_b = 1.0 / (e_a.dot(e_a) + smallest()), 1.0 / (e_b.dot(e_b) + smallest())
    across = e_a.cross(e_b)
    t = clamp(r.cross(e_b).dot(across) / (across.dot(across) + smallest()), 0.0, 1.0)

    def of_a(t: Any) -> tuple[Any, Any]:
        return t, clamp((e_a * t - r).dot(e_b) * square_b, 0.0, 1.0)

    def of_b(u: Any) -> tuple[Any, Any]:
        return clamp((r + e_b * u).dot(e_a) * square_a, 0.0, 1.0), u

    t, u = of_b(of_a(t)[1])
    least = r + e_b * u - e_a * t
    for t_, u_ in (of_a(0.0), of_a(1.0), of_b(0.0), of_b(1.0)):
        other = r + e_b * u_ - e_a * t_
        nearer = other.dot(other) < least.dot(least)
        t, u, least = where(nearer, t_, t), where(nearer, u_, u), chosen(nearer, other, least)
    length = sqrt(least.dot(least))
    n = least * (1.0 / (length + smallest()))
    y_a, y_b = p_a + e_a * t + n * radii[0], p_b + e_b * u - n * radii[1]
    write(x.nearest, 0, (length - radii[0] - radii[1], *n, *y_a, *y_b))
    return where(length > MEETS * (radii[0] + radii[1]), 1, 0)


def _of_box(x: Any, box: Any, ball: Any, box_first: Any) -> Any:
    """The same for a box and a ball: 1. By the nearest point of the box, or inside of it by its
    nearest face.
    """
    first, radius = x.shape_corners[box, 0], x.shape_radius[ball]
    R, p = shape_pose(x, box)
    c = place(x, x.shape_body[ball], vector(x.corners, x.shape_corners[ball, 0]))
    low, high = vector(x.corners, first), vector(x.corners, first + 7)
    middle = (low + high) * 0.5
    local = R.transpose_apply(c - p) - middle
    edges = [vector(x.corners, first + k) - low for k in (4, 2, 1)]
    halves = [0.5 * sqrt(e.dot(e)) for e in edges]
    axes = [e * (0.5 / h) for e, h in zip(edges, halves, strict=True)]
    along = [u.dot(local) for u in axes]
    out = Vector3(0.0, 0.0, 0.0)
    face, least = out, -float("inf")
    for u, s, h in zip(axes, along, halves, strict=True):
        out = out + u * (s - clamp(s, -h, h))
        nearer = abs(s) - h > least
        face, least = chosen(nearer, u * where(s < 0.0, -1.0, 1.0), face), maximum(abs(s) - h, least)
    length = sqrt(out.dot(out))
    outside = length > ROUNDING * x.shape_bound[box]
    n = R @ chosen(outside, out * (1.0 / (length + smallest())), face)
    d = where(outside, length, least)
    on_box, on_ball = c - n * d, c - n * radius
    write(x.nearest, 0, (d - radius, *(n * where(box_first, 1.0, -1.0))))
    write(x.nearest, 4, (*chosen(box_first, on_box, on_ball), *chosen(box_first, on_ball, on_box)))
    return 1


def _over_plane(x: Any, a: Any, b: Any) -> None:
    """The same for a plane and the lowest point of a shape."""
    P, origin = shape_pose(x, a)
    n = Vector3(*(P.rows[i][2] for i in range(3)))
    y = _extreme(x, b, -n)
    h = (y - origin).dot(n)
    write(x.nearest, 0, (h, *n, *(y - n * h), *y))


def _extreme(x: Any, s: Any, d: Vector3) -> Vector3:
    """The point of a shape that is farthest along a unit vector, in world axes from the origin."""
    E, at = shape_pose(x, s)
    core = Vector3(*once(x, _support, s, tuple(E.transpose_apply(d))))
    return E @ core + at + d * x.shape_radius[s]


def _support(x: Any, s: Any, d: Any) -> Any:
    return support(x, s, Vector3(*d))


def _over_field(x: Any, k: Any, far: Any) -> None:
    """The same for a height field and a convex shape: the nearest of the prisms of its triangles.

    For an overlap it is the deepest of the contacts that the simulator finds.
    """
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    R, p = shape_pose(x, a)
    c = R.transpose_apply(vector(x.balls, b) - p)
    y = R.transpose_apply(_extreme(x, b, -(R @ Vector3(0.0, 0.0, 1.0))) - p)
    dx, dy = x.shape_size[a, 0], x.shape_size[a, 1]
    i, j = (whole(clamp(u, -FARTHEST, FARTHEST)) for u in (y.x / dx, y.y / dy))
    corner = y - Vector3(1.0 * i * dx, 1.0 * j * dy, height(x, i, j))
    # No corner of the ground is nearer than the nearest point of it.
    reach = minimum(far, sqrt(corner.dot(corner)) * (1.0 + ROUNDING))
    size, best = x.shape_bound[b], zeros(10)
    best[0] = float("inf")
    cells = cells_below(x, a, c, size + maximum(reach, 0.0))

    def triangle(t: Any, least: Any) -> Any:
        def look() -> Any:
            write(x.direction, 0, vector(x.cell, NORMAL))
            once(x, _of_cores, a, b, least)
            nearer = x.nearest[0] < least
            cond(nearer, lambda: for_range(10, lambda m: put(best, m, x.nearest[m])), nothing)
            return where(nearer, x.nearest[0], least)

        return cond(enter(x, a, cells, t, c, size, least), look, lambda: least)

    for_range(cells[3], triangle, reach)
    sunk = best[0] < 0.0

    def deepest() -> None:
        write(x.direction, 0, (0.0, 0.0, 0.0))
        for_range(6, lambda m: put(x.near_corners, m, -1))
        best[0] = 0.0
        narrow(x, (a, b), 0.0, x.direction, x.near_corners, lambda *contact: call(deeper, *contact))

    def deeper(feature: Any, point: Any, gap: Any, n: Any) -> None:
        half = Vector3(*n) * (0.5 * gap)
        points = *(Vector3(*point) - half), *(Vector3(*point) + half)
        cond(gap < best[0], lambda: write(best, 0, (gap, *n, *points)), nothing)

    cond(sunk, deepest, nothing)
    for_range(10, lambda m: put(x.nearest, m, best[m]))
