"""Convex hulls as polytopes: corners, flat faces as polygons, edges; with fewer corners to a stated error.

Balls, cylinders and cones among the hulls of meshes roll as such. A hull counts as one of them if it leaves
it by at most an error; a mesh of a wheel has bumps else.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.collision.fields import CONE, CYLINDER, POINT
from robokit.meshes.hull import Circle, circles, solid_hull

FLAT = 1e-5
"""Of the size of a hull: triangles whose corners are this close to one plane are one face. Files of float32
are flat to 1e-7."""

DIRECTIONS = 600
"""In which corners are chosen; between them they are 0.1 rad apart."""

PARTS = 6
"""Of the directions, one after the other: of 100,000 points and all directions there would be 0.5 GB."""

MORE = 32
"""Corners added at once, at most, where the error is still too large."""


@dataclass(frozen=True, eq=False)
class Polytope:
    """A convex hull."""

    corners: np.ndarray  # (n, 3) [m]
    normals: np.ndarray  # of the faces, outward, (m, 3)
    # of each face the numbers of its corners, counter-clockwise seen from outside
    polygons: tuple[tuple[int, ...], ...]
    error: float = 0.0  # how far the points that it stands for reach out of it [m]
    # (k, 2) corners of the sides of triangles that its faces are to rounding; None for edges
    sides: np.ndarray | None = None

    @functools.cached_property
    def neighbours(self) -> list[list[int]]:
        """Of each corner those at the other ends of its edges, ascending."""
        found: list[set[int]] = [set() for _ in self.corners]
        for polygon in self.polygons:
            for i, j in zip(polygon, (*polygon[1:], polygon[0]), strict=True):
                found[i].add(j)
                found[j].add(i)
        return [sorted(each) for each in found]

    @property
    def climbs(self) -> list[list[int]]:
        """Of each corner others of which one is higher along any direction, unless it is the highest itself.

        Those are its neighbours, and those across faces that are flat but for rounding of files.
        """
        found = [set(each) for each in self.neighbours]
        for i, j in (self.sides if self.sides is not None else np.zeros((0, 2), int)).tolist():
            found[i].add(j)
            found[j].add(i)
        return [sorted(each) for each in found]


BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
"""Corners of the faces -x, x, -y, y, -z, z; corner 4 i + 2 j + k is at the high end of x, y, z where 1."""


def box(size: Sequence[float]) -> Polytope:
    """A box about its origin, with full edge lengths [m]."""
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    corners = signs * np.asarray(size, dtype=float)
    return Polytope(corners, face_normals(corners, BOX_FACES), BOX_FACES)


def face_normals(corners: np.ndarray, polygons: Sequence[Sequence[int]]) -> np.ndarray:
    """Unit normals of faces, (m, 3): of the areas of all triangles from the first corner, added in order.

    By sums, products, quotients and a square root alone, so that they are the same bits everywhere; pages
    make them again (viewer/assets/live/contact_step.js).
    """
    sizes = np.array([len(polygon) for polygon in polygons], dtype=int)
    around = np.zeros((len(sizes), int(sizes.max(initial=0))), dtype=int)
    for row, polygon in zip(around, polygons, strict=True):
        row[: len(polygon)] = polygon
        row[len(polygon) :] = polygon[-1]  # triangles without an area
    N = np.zeros((len(sizes), 3))
    for k in range(1, around.shape[1] - 1):
        a, b = (corners[around[:, m]] - corners[around[:, 0]] for m in (k, k + 1))
        for c, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
            N[:, c] = N[:, c] + (a[:, i] * b[:, j] - a[:, j] * b[:, i])
    length = np.sqrt(N[:, 0] * N[:, 0] + N[:, 1] * N[:, 1] + N[:, 2] * N[:, 2])
    with np.errstate(invalid="ignore"):  # a face of a flat box has no area, and no normal
        return N / length[:, None]


def polytope(points: np.ndarray, error: float = 0.0) -> Polytope:
    """The convex hull of points.

    Args:
        points: (n, 3) [m]. Points in one plane make a flat hull of two faces.
        error: how far points may reach out of it, at most [m]; 0 keeps all corners.

    Raises:
        ValueError: the points lie on a line.
    """
    points = np.asarray(points, dtype=float)
    if error > 0.0 and len(points) > 8:
        hull, reached = _thinned(points, error)
    else:
        hull, reached = solid_hull(points), 0.0
    return _flat(points) if hull is None else _with_faces(hull, reached)


def exact_polytope(points: np.ndarray) -> Polytope:
    """The convex hull of points with all its corners: its faces are triangles, some in one plane.

    Raises:
        ValueError: the points lie on a line.
    """
    points = np.asarray(points, dtype=float)
    hull = solid_hull(points)
    if hull is None:
        return _flat(points)
    number = np.zeros(len(points), dtype=int)
    number[hull.vertices] = np.arange(len(hull.vertices))
    corners, triangles = points[hull.vertices], number[_oriented(hull)]
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    a, b, c = (corners[triangles[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=1)
    broad = length > 0.0
    polygons = tuple(map(tuple, triangles[broad].tolist()))
    return Polytope(corners, normals[broad] / length[broad, None], polygons, sides=sides)


def _directions() -> np.ndarray:
    """Unit vectors spread evenly: the Fibonacci lattice of the sphere, (DIRECTIONS, 3)."""
    k = np.arange(DIRECTIONS) + 0.5
    z, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + 5.0**0.5) * k
    across = np.sqrt(1.0 - z * z)
    return np.stack([across * np.cos(turn), across * np.sin(turn), z], axis=1)


def _thinned(points: np.ndarray, error: float) -> tuple[Any, float]:
    """A hull of few points that comes within ``error`` of all, and how far they reach out of it.

    The hull is None where they are in one plane.
    """
    directions = _directions()
    best = np.concatenate([(part @ points.T).argmax(axis=1) for part in np.split(directions, PARTS)])
    highest = np.einsum("ni,ni->n", directions, points[best])
    ends = np.concatenate([points.argmin(axis=0), points.argmax(axis=0)])
    kept = set(ends.tolist())
    reached = (directions @ points[sorted(kept)].T).max(axis=1)
    while True:
        k = int((highest - reached).argmax())
        if highest[k] - reached[k] <= error:
            break
        kept.add(int(best[k]))
        reached = np.maximum(reached, directions @ points[best[k]])
    measure = _above  # at most the distance, and cheap
    while True:
        hull = solid_hull(points[sorted(kept)])
        if hull is None and len(kept) == len(points):
            return None, 0.0
        away = np.full(len(points), np.inf) if hull is None else measure(points, hull)
        out = away > error
        if out.any():
            kept |= set(np.flatnonzero(out)[_apart(points[out], away[out])].tolist())
        elif measure is _above:
            measure = _away
        else:
            return hull, float(away.max())


def _above(points: np.ndarray, hull: Any) -> np.ndarray:
    """Height of each point over the planes of a hull, at least 0."""
    heights = points @ hull.equations[:, :3].T + hull.equations[:, 3]
    return np.maximum(heights.max(axis=1), 0.0)


def _apart(corners: np.ndarray, away: np.ndarray) -> list[int]:
    """The corners farthest out, each farther from the others than it is out."""
    if not np.isfinite(away).all():  # those that are kept lie in one plane
        return list(range(len(corners)))
    added: list[int] = []
    free = np.ones(len(corners), bool)
    for k in np.argsort(-away).tolist():
        if free[k]:
            added.append(k)
            free &= ((corners - corners[k]) ** 2).sum(axis=1) > (4.0 * away[k]) ** 2
        if len(added) == MORE:
            break
    return added


def _away(points: np.ndarray, hull: Any) -> np.ndarray:
    """Distance of each point from a hull, 0 inside: that of the nearest triangle of those it lies above.

    Over all points the largest is that of the support functions (R. Schneider, "Convex Bodies", 1.8.11).
    """
    heights = points @ hull.equations[:, :3].T + hull.equations[:, 3]
    rows, faces = np.nonzero(heights > 1e-9 * np.ptp(hull.points, axis=0).max())
    corners, normals = hull.points[hull.simplices[faces]], hull.equations[faces, :3]
    p, height = points[rows], heights[rows, faces]
    square, over = np.full(len(rows), np.inf), np.ones(len(rows), bool)
    turn = np.sign(
        np.einsum("ni,ni->n", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), normals)
    )
    for k in range(3):
        start = corners[:, k]
        edge, off = corners[:, (k + 1) % 3] - start, p - start
        length = np.maximum(np.einsum("ni,ni->n", edge, edge), 1e-300)
        t = np.clip(np.einsum("ni,ni->n", off, edge) / length, 0.0, 1.0)
        square = np.minimum(square, ((off - t[:, None] * edge) ** 2).sum(axis=1))
        over &= np.einsum("ni,ni->n", off, np.cross(normals, edge)) * turn >= 0.0
    square = np.where(over, height**2, square)
    found = np.full(len(points), np.inf)
    np.minimum.at(found, rows, square)
    found[np.isinf(found)] = 0.0
    return np.sqrt(found)


def _with_faces(hull: Any, error: float) -> Polytope:
    """Triangles of scipy's hull in one plane as one face; corners inside of a face go."""
    points, size = hull.points, float(np.ptp(hull.points, axis=0).max())
    triangles = _oriented(hull)
    a, b, c = (points[triangles[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    normals, offsets = hull.equations[:, :3], hull.equations[:, 3]
    close = np.abs(points @ normals.T + offsets) <= FLAT * size  # (points, planes)
    near, rows = hull.neighbors.tolist(), triangles.tolist()
    group = [-1] * len(rows)
    faces: list[tuple[int, ...]] = []
    for first in np.argsort(-areas, kind="stable").tolist():
        if group[first] >= 0:
            continue
        group[first], members, ahead = first, [], [first]
        on = close[:, first]
        while ahead:
            k = ahead.pop()
            members.append(rows[k])
            for m in near[k]:
                if group[m] < 0 and on[rows[m][0]] and on[rows[m][1]] and on[rows[m][2]]:
                    group[m] = first
                    ahead.append(m)
        faces.append(_around(members))
    used = sorted({k for face in faces for k in face})
    number = {k: i for i, k in enumerate(used)}
    polygons = tuple(tuple(number[k] for k in face) for face in faces)
    dropped = FLAT * size if len(used) < len(hull.vertices) else 0.0
    corners = points[used]
    if dropped:
        hull, number = solid_hull(corners), {k: k for k in range(len(used))}
    whole = np.zeros(len(hull.points), dtype=int)
    whole[list(number)] = list(number.values())
    sides = whole[
        np.concatenate([hull.simplices[:, [0, 1]], hull.simplices[:, [1, 2]], hull.simplices[:, [2, 0]]])
    ]
    return Polytope(corners, face_normals(corners, polygons), polygons, error + dropped, sides)


def _oriented(hull: Any) -> np.ndarray:
    """Triangles, counter-clockwise seen from outside."""
    triangles = hull.simplices.copy()
    a, b, c = (hull.points[triangles[:, k]] for k in range(3))
    inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return triangles  # type: ignore[no-any-return]


def _around(triangles: list[list[int]]) -> tuple[int, ...]:
    """Corners along the outer edge of triangles that hang together."""
    if len(triangles) == 1:
        return tuple(triangles[0])
    edges = {(t[k], t[(k + 1) % 3]) for t in triangles for k in range(3)}
    after = {i: j for i, j in edges if (j, i) not in edges}
    start = min(after)
    found = [start]
    while (k := after[found[-1]]) != start:
        found.append(k)
    return tuple(found)


def _flat(points: np.ndarray) -> Polytope:
    """The hull of points in one plane: two faces, back to back."""
    from scipy.spatial import ConvexHull

    middle = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - middle, full_matrices=True)
    if len(points) < 3 or sizes[1] <= 1e-9 * sizes[0]:
        raise ValueError("expected points that span a plane or a solid, got points on one line")
    around = ConvexHull((points - middle) @ axes[:2].T).vertices.tolist()  # counter-clockwise
    order, corners = tuple(range(len(around))), points[around]
    return Polytope(corners, face_normals(corners, (order, order[::-1])), (order, order[::-1]))


# ---- balls, cylinders and cones ---------------------------------------------------------------------------


FEWEST = 24
"""Corners of a ball at least."""

SHARE = 0.05
"""Of a ball's radius: the error is no larger, however large the one that is allowed."""

COAXIAL = 0.1
"""Of the error: how far two circles may be from being those of one cylinder, or a tip from an axis."""


@dataclass(frozen=True, eq=False)
class Round:
    """A ball, cylinder or cone."""

    kind: int  # of fields.py
    radius: float  # [m]
    half: float  # half its height [m]; 0 of a ball
    rotation: np.ndarray  # whose z axis is the axis, up to the tip of a cone
    middle: np.ndarray  # of the ball, or half-way up the axis [m]


def round_hull(corners: np.ndarray, error: float) -> Round | None:
    """The ball, cylinder or cone that a hull stands for.

    Args:
        corners: of the hull, (n, 3) [m].
        error: how far the surfaces may be apart [m].
    """
    if len(corners) < FEWEST:
        return None
    return _ball(corners, error) or _turned(corners, error)


def kept_hull(points: np.ndarray, error: float | None) -> Polytope | Round:
    """A ball, cylinder or cone that stands for a hull, else the hull of few corners; kept on disk.

    Args:
        points: corners of the hull, (n, 3) [m].
        error: how far points may reach out of it, at most [m]; None for the hull with all its corners.
    """
    points = np.ascontiguousarray(points, dtype=float)

    def made() -> list[np.ndarray]:
        found = None if error is None else round_hull(points, error)
        if found is not None:
            size = np.array([found.kind, found.radius, found.half])
            return [np.concatenate([size, found.rotation.ravel(), found.middle])]
        hull = exact_polytope(points) if error is None else polytope(points, error)
        counts = np.array([len(each) for each in hull.polygons])
        polygons = np.array([k for each in hull.polygons for k in each])
        sides = np.zeros((0, 2), int) if hull.sides is None else hull.sides
        return [hull.corners, hull.normals, counts, polygons, np.array([hull.error]), sides]

    first, *rest = disk_cache.arrays("convex hull", (points.tobytes(), error), made)
    if not rest:
        kind, radius, half = first[:3].tolist()
        return Round(int(kind), radius, half, first[3:12].reshape(3, 3), first[12:])
    normals, counts, numbers, reached, sides = rest
    polygons = np.split(numbers, np.cumsum(counts)[:-1])
    return Polytope(
        first, normals, tuple(tuple(each.tolist()) for each in polygons), float(reached[0]), sides
    )


def _ball(corners: np.ndarray, error: float) -> Round | None:
    middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    away = np.linalg.norm(corners - middle, axis=1)
    radius = float(away.max())
    least = radius - min(error, SHARE * radius)
    if away.min() < least:
        return None
    hull = solid_hull(corners - middle)
    if hull is None or float(-hull.equations[:, 3].max()) < least:
        return None
    return Round(POINT, radius, 0.0, np.eye(3), middle)


def _turned(corners: np.ndarray, error: float) -> Round | None:
    """A cylinder or cone: one or two circles, and nothing but what they hold and a tip."""
    ends = [c for c in circles(corners, error) if c.flat]
    if len(ends) == 2 and _are_one(ends[0], ends[1], error):
        first, last = ends
        middle, half = (
            0.5 * (first.center + last.center),
            0.5 * abs((last.center - first.center) @ first.axis),
        )
        found = Round(CYLINDER, max(first.radius, last.radius), float(half), _about(first.axis), middle)
    elif len(ends) == 1:
        base = ends[0]
        heights = (corners - base.center) @ base.axis
        k = int(np.abs(heights).argmax())
        axis = base.axis * np.sign(heights[k])
        half = 0.5 * abs(float(heights[k]))
        found = Round(CONE, base.radius, half, _about(axis), base.center + half * axis)
        beside = corners[k] - base.center - 2.0 * half * axis
        if half < error or np.linalg.norm(beside) > COAXIAL * error:
            return None
    else:
        return None
    return found if _holds(found, corners, error) else None


def _are_one(a: Circle, b: Circle, error: float) -> bool:
    """Whether two circles are the ends of one cylinder."""
    off = b.center - a.center
    across = off - (off @ a.axis) * a.axis
    apart = float(np.linalg.norm(across)) + abs(a.radius - b.radius)
    return bool(abs(abs(a.axis @ b.axis) - 1.0) < 1e-6 and apart <= COAXIAL * error)


def _holds(found: Round, corners: np.ndarray, error: float) -> bool:
    """Whether no corner is outside by more than a part of the error."""
    local = (corners - found.middle) @ found.rotation
    wide = np.hypot(local[:, 0], local[:, 1])
    up = local[:, 2]
    outside = np.abs(up) - found.half
    if found.kind == CONE:
        slope = found.radius / (2.0 * found.half)
        side = (wide - slope * (found.half - up)) / np.hypot(1.0, slope)
    else:
        side = wide - found.radius
    return bool(np.maximum(outside, side).max() <= COAXIAL * error)


def _about(axis: np.ndarray) -> np.ndarray:
    """A rotation whose z axis is the one given; the world's own where that is one of its axes."""
    e = np.zeros(3)
    e[int(np.abs(axis).argmin())] = 1.0
    x = e - axis * (axis @ e)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
