"""A height field as convex shapes: of each cell two triangles, which are prisms that reach down.

The ground is what lies below the triangles; beyond the grid it goes on level. The prism at work stands in the
array ``cell``, made of the heights as it is needed. A body's contacts with it are those of two convex shapes,
but for those that the prisms around it hide. A contact at the point p of a prism, with normal n, counts if

    n is the normal of its triangle, or p is on an edge or corner of it and all of the ground around lies
    below the plane through p with normal n: ridges and peaks,

and is left out if it is an edge's or corner's and all of the ground around lies in this plane: no edge.

The normal comes first: where the shortest way out of the prism alone is none of the ground's, a body with
flat or straight parts leaves along the normal of the triangle or of a ridge beside it, whichever is soonest.
Where a contact does not count then, those along the triangle's own normal are taken, of points that leave
the ground across the edges of the triangle no sooner.

Corners 0, 1, 2 of the triangle with half 0 of cell (i, j) are the grid's (i, j), (i + 1, j), (i + 1, j + 1);
with half 1 they are (i, j), (i + 1, j + 1), (i, j + 1). Opposite corner k is that of the triangle across the
edge from corner k to the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.engine.loops.fields import once
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision, smallest, whole
from robokit.spatial.scalars import clamp, maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

OPPOSITE, NORMAL, STATE, CENTRE, FACE = 3, 6, 7, 8, 9
"""Rows of ``cell``: 0 to 2 are the triangle's corners, then those opposite to its edges, its normal, and
three numbers: how far the prism reaches down [m]; 1 where a contact did not count; 1 where those along the
normal are looked for, -1 where those across a ridge. Then the middle of the body's ball; and, where those
along the normal are looked for, minus the normal of the body's face or edge there."""

FLUSH = 1e-6, 1e-5  # of a cell's size, in double and single precision: less is in one plane, or on an edge

BESIDE = 1e-3
"""Of the size of a cell: a contact of another normal than its triangle's is on an edge if it is off by less.
It cannot be elsewhere, and a rim's place at a corner is known to the root of what its distance may be off."""

LEVEL = 1e-12  # square of the sine of an angle: normals with less between them are the same

ALIGNED = 1e-6
"""Square of the sine of an angle: what has flat or straight parts lies on a triangle if the normal
is nearer to the triangle's; which of both their normals gives the lesser depth would be chance. Likewise it
lies across an edge of the triangle if the normal is nearer to being perpendicular to it."""

FARTHEST = 1e8  # cells from the grid: beyond, the ground ends
DEEP = 4.0  # of a body's size, and a cell's: prisms reach down so far, and no body leaves them below
RING = ((1, 0), (1, 1), (0, 1), (-1, 0), (-1, -1), (0, -1))  # the corners around one, along the edges

ROWS, COLUMNS, FEATURES = 64, 32, 1 << 19
"""Cells that have numbers of their own, along x and y, and features of each: 2^31 numbers in all."""

KINDS, NEAREST, EDGES = 4, 3, 23167  # of features; that of the nearest points; edges of a shape (narrow.py)


def vector(array: Any, k: Any) -> Vector3:
    """Row k of an array of vectors."""
    return Vector3(array[k, 0], array[k, 1], array[k, 2])


def unit(v: Vector3) -> Vector3:
    """v over its length."""
    return v * (1.0 / (sqrt(v.dot(v)) + smallest()))


def height(x: Any, i: Any, j: Any) -> Any:
    """At a corner of the grid, in the axes of the field; beyond it at its edge."""
    i = minimum(maximum(i, 0), x.field[0] - 1)
    j = minimum(maximum(j, 0), x.field[1] - 1)
    return x.heights[i * x.field[1] + j]


def cells_below(x: Any, s: Any, c: Vector3, r: Any) -> tuple[Any, Any, Any, Any]:
    """The cells under a ball: the first along x and y, how many along y, and the number of triangles.

    ``x``: with SHAPES; ``s``: the field; ``c``: centre of the ball, in the axes of the field [m]; ``r``: its
    radius [m].
    """
    dx, dy = x.shape_size[s, 0], x.shape_size[s, 1]

    def cell(u: Any) -> Any:
        return whole(clamp(u, -FARTHEST, FARTHEST))

    i, j = cell((c.x - r) / dx), cell((c.y - r) / dy)
    rows, columns = cell((c.x + r) / dx) - i + 1, cell((c.y + r) / dy) - j + 1
    return i, j, columns, 2 * rows * columns


def enter(x: Any, s: Any, cells: Sequence[Any], t: Any, c: Vector3, r: Any, reach: Any) -> Any:
    """Make triangle t of those below a ball the current prism.

    Returns whether it may be nearer to the ball than ``reach``.
    """
    i, j, half = located(cells, t)
    dx, dy = x.shape_size[s, 0], x.shape_size[s, 1]

    def corner(k: Any, m: Any) -> Vector3:
        return Vector3(1.0 * (i + k) * dx, 1.0 * (j + m) * dy, height(x, i + k, j + m))

    a, b, d = corner(0, 0), corner(1, half), corner(1 - half, 1)
    n = unit((b - a).cross(d - a))
    low = c.z - r - reach
    over = (low < a.z) | (low < b.z) | (low < d.z)

    def make() -> None:
        far = corner(where(half == 0, 0, -1), where(half == 0, -1, 0))
        right = corner(where(half == 0, 2, 1), where(half == 0, 1, 2))
        across = corner(half, 1 - half)
        # The diagonal is the last edge of half 0 and the first one of half 1.
        first = chosen(half == 0, far, across)
        last = chosen(half == 0, across, far)
        for row, point in enumerate((a, b, d, first, right, last, n, n, c)):
            for k, number in enumerate(point):
                x.cell[row, k] = number
        x.cell[STATE, 0] = DEEP * (r + dx + dy)
        x.cell[STATE, 1], x.cell[STATE, 2] = 0.0, 0.0

    near = over & (n.dot(c - a) < r + reach)
    cond(near, make, lambda: None)
    return near


def located(cells: Sequence[Any], t: Any) -> tuple[Any, Any, Any]:
    """Cell along x and y, and half, of triangle t of those below a ball."""
    i, j, columns, _ = cells
    return i + t // (2 * columns), j + (t // 2) % columns, t % 2


def counts(x: Any, s: Any, place: tuple[Any, Any, Any], feature: Any, p: Vector3, n: Vector3) -> Any:
    """Whether a contact counts: 1; else 0, or -1 where it says nothing else either: it is another triangle's.

    Args:
        x: with the prism at work.
        s: the field.
        place: cell and half of the triangle.
        feature: of the contact, as of narrow.py.
        p: its point on the prism, in the axes of the field.
        n: its normal.
    """
    dx, dy = x.shape_size[s, 0], x.shape_size[s, 1]
    flush = in_precision(*FLUSH) * (dx + dy)
    sine = n.cross(vector(x.cell, NORMAL))
    own = sine.dot(sine) < LEVEL
    beside = where(own, 2.0 * flush, BESIDE * (dx + dy))
    most, least = once(x, _around, s, place, tuple(p), tuple(n), beside)
    seam = most > -float("inf")
    rises, flat = seam & (most > 4.0 * flush), seam & (most <= 4.0 * flush) & (least >= -4.0 * flush)
    kind = feature % KINDS

    i, j, half = place
    # A corner of the body on a seam is that triangle's which is below the body and does not cut it off.
    inward = vector(x.cell, CENTRE) - p
    share = minimum(1.0, 0.25 * flush / (sqrt(inward.x * inward.x + inward.y * inward.y) + smallest()))
    u = clamp((p.x + share * inward.x) / dx, -FARTHEST, FARTHEST)
    w = clamp((p.y + share * inward.y) / dy, -FARTHEST, FARTHEST)
    k, m = whole(u), whole(w)
    mine = (k == i) & (m == j) & (where(w - m > u - k, 1, 0) == half)
    other = (feature == NEAREST) & (x.cell[STATE, 2] != 0.0) & ~mine
    another = seam & where(own, flat & (kind % 2 == 1) & ~mine, (half == 1) & (kind > 1) & ~rises)
    none = other | another | ((kind % 2 == 0) & _goes_on(x, s, place, feature, p, n, own, flush))
    return where(~own & (rises | ~seam), 0, where(none, -1, 1))


def _goes_on(x: Any, s: Any, place: Any, feature: Any, p: Vector3, n: Vector3, own: Any, flush: Any) -> Any:
    """Whether an edge or corner of the triangle is none, since the ground goes on in the contact's plane.

    That is an edge between two triangles in one plane, and a corner inside a straight line.
    """

    def level(o: Vector3) -> Any:
        return abs(n.dot(o - p)) <= 4.0 * flush

    def corner() -> Any:
        k = feature // KINDS
        found: Any = False
        for u, w in RING[:3]:
            found = found | (level(_beside(x, s, place, k, u, w)) & level(_beside(x, s, place, k, -u, -w)))
        return found

    def edge() -> Any:
        return own & level(vector(x.cell, OPPOSITE + _edge_of(feature)))

    return cond(feature % KINDS == 0, corner, edge)


def _beside(x: Any, s: Any, place: Any, k: Any, di: Any, dj: Any) -> Vector3:
    """The corner of the grid next to corner k of a triangle."""
    i, j, half = place
    i = where(k == 0, i, where(k == 1, i + 1, i + 1 - half)) + di
    j = where(k == 0, j, where(k == 1, j + half, j + 1)) + dj
    return Vector3(1.0 * i * x.shape_size[s, 0], 1.0 * j * x.shape_size[s, 1], height(x, i, j))


def _around(x: Any, s: Any, place: tuple[Any, Any, Any], p: Any, n: Any, beside: Any) -> tuple[Any, Any]:
    """How far the ground around a point of the triangle rises over a plane through it, at most and at least.

    Minus and plus infinity for a point inside of the triangle: there is nothing but the triangle around it.
    It is on an edge, or at a corner, if it is not farther off than ``beside`` [m]. Along an edge that is not
    perpendicular to n the ground itself rises.
    """
    p, n, inf = Vector3(*p), Vector3(*n), float("inf")
    dx, dy = x.shape_size[s, 0], x.shape_size[s, 1]
    both = beside * (dx + dy) / minimum(dx, dy)  # what is beside two edges, also of an acute angle

    def is_at(c: Vector3) -> Any:
        return (abs(c.x - p.x) < both) & (abs(c.y - p.y) < both)

    def side(k: Any, most: Any, least: Any) -> Any:
        a, b = vector(x.cell, k), vector(x.cell, where(k == 2, 0, k + 1))
        o = vector(x.cell, OPPOSITE + k)
        e = b - a
        off = abs(e.x * (p.y - a.y) - e.y * (p.x - a.x))
        climbs = (n.dot(e) * n.dot(e) > ALIGNED * e.dot(e)) & ~is_at(a) & ~is_at(b)
        h = where(climbs, inf, n.dot(o - p))
        near = off < beside * sqrt(e.x * e.x + e.y * e.y)
        return where(near & (h > most), h, most), where(near & (h < least), h, least)

    most, least = for_range(3, side, -inf, inf)

    def corner(k: Any, most: Any, least: Any) -> Any:
        c = vector(x.cell, k)

        def ring(m: Any, most: Any, least: Any) -> Any:
            di, dj = 0, 0
            for step, (u, w) in enumerate(RING):
                di, dj = where(m == step, u, di), where(m == step, w, dj)
            h = n.dot(_beside(x, s, place, k, di, dj) - p)
            return where(h > most, h, most), where(h < least, h, least)

        return cond(is_at(c), lambda: for_range(len(RING), ring, most, least), lambda: (most, least))

    return for_range(3, corner, most, least)


def counted(x: Any, s: Any, place: Any, feature: Any, q: Any, gap: Any, n: Any, radius: Any) -> Any:
    """:func:`counts`, noted where another normal is to be looked at.

    Args:
        x, s, place, feature: as there.
        q: half-way between the cores, in the axes of the field.
        gap: between them [m].
        n: the normal.
        radius: around the core of the body.
    """
    q, n = Vector3(*q), Vector3(*n)
    half = n * (0.5 * gap)
    found = counts(x, s, place, feature, q - half, n)
    first = x.cell[STATE, 2] <= 0.0

    def note() -> None:
        x.cell[STATE, 1] = 1.0

    cond((found == 0) & first, note, lambda: None)
    left = sooner(x, s, place[2], feature, q + half, radius, radius - gap)
    return where((found > 0) & ~first, where(left, 0, 1), found)


def sooner(x: Any, s: Any, half: Any, feature: Any, y: Vector3, radius: Any, depth: Any) -> Any:
    """Whether a contact along the triangle's normal is that of a ridge beside it, or of what lies beyond.

    A corner of the body, or what has none, leaves the ground sooner there. An edge or face of the body that
    lies across the ridge does if it is tilted that way. With less than ALIGNED it has one contact with both
    triangles, that of the triangle with half 0; there it is along the normal.

    Args:
        x: with the prism at work.
        s: the field.
        half: of the triangle.
        feature: of the contact, as of narrow.py.
        y: the point of the core, in the axes of the field.
        radius: around the core.
        depth: below the triangle, along its normal, with the radius.
    """
    n, face = vector(x.cell, NORMAL), vector(x.cell, FACE)
    flush = in_precision(*FLUSH) * (x.shape_size[s, 0] + x.shape_size[s, 1])
    kind, rest = feature % KINDS, feature // KINDS
    number = where(kind == 2, _edge_of(feature), rest)

    def side(k: Any, found: Any) -> Any:
        a, b = vector(x.cell, k), vector(x.cell, where(k == 2, 0, k + 1))
        o = vector(x.cell, OPPOSITE + k)
        m = unit((a - b).cross(o - b))
        ridge = n.dot(o - a) < -4.0 * flush  # as in counts: else rounding makes ridges of a plane
        other = radius - m.dot(y - a)
        corner = (depth > 0.0) & (other < depth * (1.0 - in_precision(*FLUSH)))
        at = (number == k) | ((kind == 0) & (number == where(k == 2, 0, k + 1)))
        e = b - a
        tilt = face.dot(e.cross(n))
        alone = (kind == 0) | (half == 1) | (tilt * tilt >= ALIGNED * e.dot(e))
        return where(ridge & where(kind % 2 == 1, corner, at & (tilt > 0.0) & alone), 1, found)

    return for_range(3, side, 0) > 0


def _edge_of(feature: Any) -> Any:
    """Which edge of the triangle is that of a contact of two edges."""
    number = (feature // KINDS // EDGES) % 4  # 1, 2 and 511 there
    return where(number == 1, 0, where(number == 2, 2, 1))


def is_of_ground(x: Any, s: Any, place: Any, p: Vector3, n: Vector3) -> Any:
    """Whether n is a normal of the ground at a point of the triangle's edges: nothing rises over it."""
    size = x.shape_size[s, 0] + x.shape_size[s, 1]
    most, _ = once(x, _around, s, place, tuple(p), tuple(n), BESIDE * size)
    return (most > -float("inf")) & (most <= 4.0 * in_precision(*FLUSH) * size)


def across_edge(x: Any, s: Any, k: Any, n: Vector3) -> tuple[Vector3, Any, Any]:
    """The normal of edge k of the triangle that is nearest to n, where the edge is along it, and whether it
    is one of the ground: of a ridge, between the normals of its two sides.
    """
    a, b = vector(x.cell, k), vector(x.cell, where(k == 2, 0, k + 1))
    other, beyond = vector(x.cell, where(k == 0, 2, k - 1)), vector(x.cell, OPPOSITE + k)
    e = unit(b - a)
    m = unit(n - e * n.dot(e))
    flush = in_precision(*FLUSH) * (x.shape_size[s, 0] + x.shape_size[s, 1])
    ridge = vector(x.cell, NORMAL).dot(beyond - a) < -4.0 * flush  # as in counts: else a plane has ridges
    return m, m.dot(a), ridge & (m.dot(other - a) <= flush) & (m.dot(beyond - a) <= flush)


def numbered(place: tuple[Any, Any, Any], feature: Any) -> Any:
    """A feature of a triangle's contacts as one of the field's."""
    i, j, half = place
    kind, rest = feature % KINDS, feature // KINDS
    # Edges of the triangle have the numbers 1, 2 and 511 there.
    ours = where(kind == 2, (rest // EDGES) % 4, where(kind == 0, rest % 4, 0))
    theirs = where(kind == 2, rest % EDGES, where(kind == 1, rest % EDGES, 0))
    own = (ours * KINDS + kind) * (FEATURES // 16) + theirs
    return (((i % ROWS) * COLUMNS + j % COLUMNS) * 2 + half) * FEATURES + own


# ---- the prism as a core -------------------------------------------------------------------------------


def support_of_cell(x: Any, d: Vector3) -> Vector3:
    """Its point that is farthest along d."""
    best, at = vector(x.cell, 0), vector(x.cell, 0).dot(d)
    for k in (1, 2):
        c = vector(x.cell, k)
        h = c.dot(d)
        best, at = chosen(h > at, c, best), where(h > at, h, at)
    return Vector3(best.x, best.y, best.z - where(d.z < 0.0, x.cell[STATE, 0], 0.0))


def edge_of_cell(x: Any, d: Vector3) -> tuple[Any, Any, Any]:
    """The edge of the triangle that faces d: its corners, and its normal."""
    low, at = 0, vector(x.cell, 0).dot(d)
    for k in (1, 2):
        h = vector(x.cell, k).dot(d)
        low, at = where(h < at, k, low), where(h < at, h, at)
    i, j = where(low == 0, 1, 0), where(low == 2, 1, 2)
    along = unit(vector(x.cell, j) - vector(x.cell, i))
    return i, j, tuple(unit(d - along * along.dot(d)))
