"""Geometry of links and solids as the arrays SHAPES of fields.py.

A new kind of geometry is one row of CORES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.collision.fields import CONE, CYLINDER, ELLIPSOID, FIELD, PLANE, POINT, POLYTOPE, SEGMENT
from robokit.collision.support import CUBE
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError
from robokit.meshes.hull import Circle, circles, hull_corners, hull_key, solid_hull
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Sphere, turned

FLAT = 1e-5
"""Of the size of a hull: triangles whose corners are this close to one plane are one face. Files of float32
are flat to 1e-7."""

DIRECTIONS = 600  # in which corners are chosen; between them they are 0.1 rad apart
PARTS = 6  # of the directions, in turn: of 100,000 points and all directions there would be 0.5 GB
MOST_PAIRS = 2**31 - 2  # of shapes: pairs have 32-bit numbers
MORE = 32  # corners added at once, at most, where the error is still too large


@frozen(eq=False)
class Polytope:
    """A convex hull."""

    corners: np.ndarray  # (n, 3) [m]
    normals: np.ndarray  # of the faces, outward, (m, 3)
    # of each face the numbers of its corners, counter-clockwise seen from outside
    polygons: tuple[tuple[int, ...], ...]
    error: float = 0.0  # how far the points that it stands for reach out of it [m]
    # (k, 2) corners of the sides of triangles that its faces are to rounding; None for edges
    sides: np.ndarray | None = None

    @property
    def edges(self) -> np.ndarray:
        """The corners at the two ends of its edges, (k, 2); those between two faces twice."""
        flat, counts = ragged(self.polygons)
        after = np.arange(1, len(flat) + 1)
        after[np.cumsum(counts) - 1] -= counts  # behind the last corner of a face comes its first
        return np.stack([flat, flat[after]], axis=1)

    @property
    def climbs(self) -> np.ndarray:
        """Pairs of corners, (k, 2): of those with one of them, another is higher, unless that one is highest.

        Its edges, and the lines across faces that are flat but for rounding of files.
        """
        return self.edges if self.sides is None else np.concatenate([self.edges, self.sides])


def ragged(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all rows, one row after another, and how many each has."""
    counts = np.fromiter(map(len, rows), int, len(rows))
    return np.fromiter(chain.from_iterable(rows), int, int(counts.sum())), counts


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
    flat, sizes = ragged(polygons)
    places = np.minimum(np.arange(sizes.max(initial=0)), sizes[:, None] - 1)  # triangles without an area
    around = flat[places + (np.cumsum(sizes) - sizes)[:, None]]
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

    ``points``: (n, 3) [m]. Points in one plane make a flat hull of two faces. ``error``: how far points may
    reach out of it, at most [m]; 0 keeps all corners. Raises ValueError: the points lie on a line.
    """
    points = np.asarray(points, dtype=float)
    if error > 0.0 and len(points) > 8:
        hull, reached = _thinned(points, error)
    else:
        hull, reached = solid_hull(points), 0.0
    return _flat(points) if hull is None else _with_faces(hull, reached)


def exact_polytope(points: np.ndarray) -> Polytope:
    """The convex hull of points with all its corners: its faces are triangles, some in one plane.

    Raises ValueError: the points lie on a line.
    """
    points = np.asarray(points, dtype=float)
    hull = solid_hull(points)
    if hull is None:
        return _flat(points)
    number = np.zeros(len(points), dtype=int)
    number[hull.vertices] = np.arange(len(hull.vertices))
    corners, triangles = points[hull.vertices], number[outward_triangles(hull)]
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
    """Triangles of scipy's hull in one plane as one face; corners inside of a face go.

    A hull that is flat but for rounding has two faces.
    """
    points, size = hull.points, float(np.ptp(hull.points, axis=0).max())
    triangles = outward_triangles(hull)
    a, b, c = (points[triangles[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    normals, offsets = hull.equations[:, :3], hull.equations[:, 3]
    close = np.abs(points @ normals.T + offsets) <= FLAT * size  # (points, planes)
    if close[:, areas.argmax()].all():
        return _flat(points)
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


def outward_triangles(hull: Any) -> np.ndarray:
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


# ---- balls, ellipsoids, cylinders and cones ---------------------------------------------------------------


FEWEST = 24  # corners of a ball at least
SHARE = 0.05  # of a ball's radius: the error is no larger, however large the one that is allowed
COAXIAL = 0.1  # of the error: how far two circles, or a tip, may be off one cylinder's axis


@frozen(eq=False)
class Round:
    """A ball, ellipsoid, cylinder or cone."""

    kind: int  # of fields.py
    size: tuple[float, float, float]  # radius, half the height, 0; the half axes of an ellipsoid [m]
    rotation: np.ndarray  # whose z axis is the axis, up to the tip of a cone
    middle: np.ndarray  # of the ball or ellipsoid, or half-way up the axis [m]


def round_hull(corners: np.ndarray, error: float) -> Round | None:
    """The ball, ellipsoid along the axes, cylinder or cone that a hull stands for.

    ``corners``: of the hull, (n, 3) [m]; ``error``: how far the surfaces may be apart [m].
    """
    if len(corners) < FEWEST:
        return None
    return _ball(corners, error) or _ellipsoid(corners, error) or _turned(corners, error)


def kept_hull(mesh: Mesh, error: float | None) -> Polytope | Round:
    """What round shape stands for a mesh's hull, else its hull of few corners; kept on disk.

    ``error``: how far it may reach out of that, at most [m]; None for the hull with all its corners. Raises
    Exception: as of :func:`robokit.meshes.hull.hull_corners`.
    """

    def made() -> list[np.ndarray]:
        points = hull_corners(mesh)
        most = None if error is None else min(error, SMALL * float(np.ptp(points, axis=0).max()))
        found = None if most is None else round_hull(points, most)
        if found is not None:
            return [np.concatenate([[found.kind], found.size, found.rotation.ravel(), found.middle])]
        hull = exact_polytope(points) if most is None else polytope(points, most)
        polygons, counts = ragged(hull.polygons)
        sides = np.zeros((0, 2), int) if hull.sides is None else hull.sides
        return [hull.corners, hull.normals, counts, polygons, np.array([hull.error]), sides]

    key = hull_key(mesh)
    first, *rest = disk_cache.arrays(
        "convex hull", key and ("round or thinned hull", *key, *mesh.scale, error), made
    )
    if not rest:
        kind, *size = first[:4].tolist()
        return Round(int(kind), tuple(size), first[4:13].reshape(3, 3), first[13:])
    normals, counts, numbers, reached, sides = rest
    flat, ends = numbers.tolist(), np.cumsum(counts).tolist()
    polygons = tuple(tuple(flat[start:end]) for start, end in zip([0, *ends], ends, strict=False))
    return Polytope(first, normals, polygons, float(reached[0]), sides)


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
    return Round(POINT, (radius, 0.0, 0.0), np.eye(3), middle)


def _ellipsoid(corners: np.ndarray, error: float) -> Round | None:
    """An ellipsoid whose axes are those of the corners, with some of them at its ends."""
    middle = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    half = 0.5 * np.ptp(corners, axis=0)
    if not half.all():
        return None
    level, slope = (np.linalg.norm((corners - middle) / h, axis=1) for h in (half, half**2))
    # (level - 1) level / slope: how far a corner is from the surface, to first order
    if (np.abs(level - 1.0) * level > COAXIAL * error * slope).any():
        return None
    hull = solid_hull(corners - middle)
    if hull is None:
        return None
    over = np.sqrt(((hull.equations[:, :3] * half) ** 2).sum(axis=1)) + hull.equations[:, 3]
    if over.max() > min(error, SHARE * float(half.min())):
        return None
    return Round(ELLIPSOID, tuple(half.tolist()), np.eye(3), middle)


def _turned(corners: np.ndarray, error: float) -> Round | None:
    """A cylinder or cone: one or two circles, and nothing but what they hold and a tip."""
    ends = [c for c in circles(corners, error) if c.flat]
    if len(ends) == 2 and _are_one(ends[0], ends[1], error):
        first, last = ends
        middle, half = (
            0.5 * (first.center + last.center),
            0.5 * abs((last.center - first.center) @ first.axis),
        )
        size = (max(first.radius, last.radius), float(half), 0.0)
        found = Round(CYLINDER, size, _about(first.axis), middle)
    elif len(ends) == 1:
        base = ends[0]
        heights = (corners - base.center) @ base.axis
        k = int(np.abs(heights).argmax())
        axis = base.axis * np.sign(heights[k])
        half = 0.5 * abs(float(heights[k]))
        found = Round(CONE, (base.radius, half, 0.0), _about(axis), base.center + half * axis)
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
    radius, half, _ = found.size
    outside = np.abs(up) - half
    if found.kind == CONE:
        slope = radius / (2.0 * half)
        side = (wide - slope * (half - up)) / np.hypot(1.0, slope)
    else:
        side = wide - radius
    return bool(np.maximum(outside, side).max() <= COAXIAL * error)


def _about(axis: np.ndarray) -> np.ndarray:
    """A rotation whose z axis is the one given; the world's own where that is one of its axes."""
    e = np.zeros(3)
    e[int(np.abs(axis).argmin())] = 1.0
    x = e - axis * (axis @ e)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)


Arrays = dict[str, np.ndarray]

MANY = 24  # corners from which on climbing along edges is faster than a look at all
SMALL = 0.01  # of the size of a hull: it is thinned by no more, however large the error that is allowed


@frozen(eq=False)
class Core:
    """A convex set and a radius around it, in its own axes.

    Those are the geometry's but for round shapes that are given as meshes.
    """

    kind: int  # of fields.py
    bound: float  # radius of a ball about ``centre`` that holds all of it [m]
    radius: float = 0.0  # around the core [m]
    size: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of cylinders, cones and ellipsoids [m]
    hull: Polytope | None = None  # corners and faces of segments and polytopes
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the ball [m]
    heights: np.ndarray | None = None  # of a height field, (nx, ny) [m]
    # placement of the core's axes in the geometry's; None where they are the same
    own: Placement | None = None


@frozen(eq=False)
class PlacedCore:
    """A core on a body."""

    core: Core  # the core
    body: int  # number of the body, 0 for the world
    placement: Placement  # of the geometry's axes in the body
    link: str = ""  # name of the link, or "" of the ground's
    velocity: tuple[float, ...] = (0.0,) * 6  # spin and velocity of the surface at the world's origin


def polytope_core(hull: Polytope) -> Core:
    """Of a hull: its ball is about the middle of its box."""
    middle = 0.5 * (hull.corners.min(axis=0) + hull.corners.max(axis=0))
    bound = float(np.linalg.norm(hull.corners - middle, axis=1).max())
    return Core(POLYTOPE, bound, hull=hull, centre=tuple(middle.tolist()))


def plane_core() -> Core:
    """The half-space below z = 0."""
    return Core(PLANE, np.inf)


def field_core(heights: np.ndarray, cell: tuple[float, float]) -> Core:
    """All below heights (nx, ny) on a grid with cells of that size."""
    size = (*cell, float(heights.max()))
    return Core(FIELD, np.inf, size=size, heights=np.ascontiguousarray(heights, dtype=float))


def _of_sphere(given: Sphere, error: float | None) -> Core:
    corner = Polytope(np.zeros((1, 3)), np.zeros((0, 3)), ())
    return Core(POINT, given.radius, given.radius, hull=corner)


def _of_capsule(given: Capsule, error: float | None) -> Core:
    half = 0.5 * given.length
    ends = Polytope(np.array([[0.0, 0.0, -half], [0.0, 0.0, half]]), np.zeros((0, 3)), ((0, 1),))
    return Core(SEGMENT, half + given.radius, given.radius, hull=ends)


def _of_cylinder(given: Cylinder, error: float | None) -> Core:
    half = 0.5 * given.length
    return Core(CYLINDER, float(np.hypot(given.radius, half)), size=(given.radius, half, 0.0))


def _of_points(points: np.ndarray, error: float | None) -> Core:
    if error is None:
        return polytope_core(exact_polytope(points))
    return polytope_core(polytope(points, min(error, SMALL * float(np.ptp(points, axis=0).max()))))


def _of_mesh(given: Mesh, error: float | None) -> Core:
    found = kept_hull(given, error)
    return _of_round(found) if isinstance(found, Round) else polytope_core(found)


def _of_round(given: Round) -> Core:
    own = Placement(given.rotation, given.middle)
    if given.kind == POINT:
        return replace(_of_sphere(Sphere(given.size[0]), 0.0), own=own)
    bound = max(given.size) if given.kind == ELLIPSOID else float(np.hypot(*given.size[:2]))
    return Core(given.kind, bound, size=given.size, own=own)


CORES: dict[type, Callable[[Any, float | None], Core]] = {
    Sphere: _of_sphere,
    Capsule: _of_capsule,
    Box: lambda given, error: polytope_core(box(given.size)),
    Cylinder: _of_cylinder,
    Mesh: _of_mesh,
    np.ndarray: _of_points,
}
"""Of each kind of geometry its core; the error is how much a hull may be thinned [m], None for none."""


def core_of(geometry: Any, error: float | None) -> Core:
    """The core of a geometry: of robokit.model, points (n, 3) or what has ``points``.

    ``error``: how far a mesh may reach out of its hull with fewer corners [m]; None for all corners.
    """
    points = getattr(geometry, "points", None)
    given = geometry if points is None else np.asarray(points, dtype=float)
    return CORES[type(given)](given, error)


def cube_directions() -> np.ndarray:
    """The middles of the parts of a cube of directions (support.part_of_cube), (6 CUBE^2, 3)."""
    ends = (np.arange(CUBE) + 0.5) / (0.5 * CUBE) - 1.0
    u, v = (each.ravel() for each in np.meshgrid(ends, ends, indexing="ij"))
    sides = []
    for k in range(3):
        for sign in (1.0, -1.0):
            side = np.empty((CUBE * CUBE, 3))
            side[:, k], side[:, (k + 1) % 3], side[:, (k + 2) % 3] = sign, u, v
            sides.append(side)
    return np.concatenate(sides)


def runs_of(pairs: Any) -> np.ndarray:
    """Pairs (i, j), i < j, of bodies as runs (i, first, end) of those from first to end - 1, (n, 3).

    ``pairs``: (m, 2), in any order; some may be there twice.
    """
    i, j = np.unique(np.asarray(pairs, np.int32).reshape(-1, 2), axis=0).T
    return _joined(np.stack([i, j, j + 1], axis=1))


def _joined(runs: np.ndarray) -> np.ndarray:
    """Ascending runs (i, first, end), (n, 3), as few as there can be: some begin where the last one ends."""
    begins = np.ones(len(runs), bool)
    begins[1:] = (runs[1:, 0] != runs[:-1, 0]) | (runs[1:, 1] != runs[:-1, 2])
    return np.column_stack([runs[begins, :2], runs[np.roll(begins, -1), 2]])


def pair_arrays(body: np.ndarray, still: int, runs: np.ndarray) -> Arrays:
    """The arrays PAIRS.

    ``body``: of each shape, ascending; the first ``still`` are the ground's, which all bodies may touch;
    ``runs``: of bodies besides, ascending, (n, 3): those of :func:`runs_of`.
    Raises ModelError: there are more pairs of shapes than can be numbered.
    """
    first = np.searchsorted(body, np.arange(int(body.max(initial=0)) + 2))
    sizes = np.diff(first)
    later = sizes * (len(body) - first[1:])  # pairs of each body's shapes and those of later ones
    if later.sum() > MOST_PAIRS:
        raise ModelError(
            f"expected at most {MOST_PAIRS} pairs of shapes, got {later.sum()}: use fewer shapes"
        )
    who = np.where(np.arange(len(body)) < still, 0, body + 1)  # 1: links that are fixed to the world
    of_ground = np.array([[0, np.searchsorted(who, 2), len(body)]])[:still]
    of_links = np.column_stack([runs[:, 0] + 1, *np.searchsorted(who, runs[:, 1:].T + 1)])
    runs = np.concatenate([of_ground, of_links])
    runs = _joined(runs[runs[:, 1] < runs[:, 2]])
    entries = np.searchsorted(runs[:, 0], np.arange(len(sizes) + 2))
    return {
        "shape_pairs": np.stack([np.cumsum(later) - later, sizes, first[:-1]], axis=1)[body].astype(np.int32),
        "shape_runs": np.stack([entries[:-1], np.diff(entries)], axis=1)[who].astype(np.int32),
        "runs": runs[:, 1:].astype(np.int32),
    }


def count_of_pairs(arrays: Mapping[str, np.ndarray]) -> int:
    """How many pairs of shapes may touch; ``arrays``: PAIRS."""
    before = np.concatenate([[0], np.cumsum(arrays["runs"] @ np.array([-1, 1]))])
    first, count = arrays["shape_runs"].T
    return int((before[first + count] - before[first]).sum())


def shape_arrays(placed: Iterable[PlacedCore]) -> Arrays:
    """The arrays SHAPES, but for ``beside``; shapes stay in their order."""
    each = list(placed)
    heights = next((c.core.heights for c in each if c.core.heights is not None), np.zeros((1, 1)))
    hulls = [c.core.hull or _NONE for c in each]
    in_body = [_in_body(c) for c in each]
    places = [place for *_, place in in_body]
    rotations = np.array([place.rotation for place in places], dtype=float).reshape(-1, 9)
    origins = np.array([place.position for place in places], dtype=float).reshape(-1, 3)
    polygons, sizes = ragged([polygon for hull in hulls if len(hull.normals) for polygon in hull.polygons])
    many = [len(hull.corners) > MANY and len(hull.normals) > 0 for hull in hulls]
    directions = cube_directions()
    starts = [(directions @ hull.corners.T).argmax(axis=1) for hull, m in zip(hulls, many, strict=True) if m]
    counts = np.array([len(hull.corners) for hull in hulls], dtype=int)
    corner_links, neighbours = _partners([hull.edges for hull in hulls], counts)
    climbs_of = [hull.climbs if m else hull.climbs[:0] for hull, m in zip(hulls, many, strict=True)]
    corner_climbs, climbs = _partners(climbs_of, counts)
    return {
        "shape_body": _whole([c.body for c in each]),
        "shape_kind": _whole([c.core.kind for c in each]),
        "shape_placement": np.concatenate([rotations, origins], axis=1),
        "shape_radius": np.array([c.core.radius for c in each], dtype=float),
        "shape_size": np.array([c.core.size for c in each], dtype=float).reshape(-1, 3),
        "shape_centre": np.array([centre for _, _, centre, _ in in_body], dtype=float).reshape(-1, 3),
        "shape_bound": np.array([c.core.bound for c in each], dtype=float),
        "shape_corners": _spans(counts),
        "shape_faces": _spans([len(hull.normals) for hull in hulls]),
        "corners": _stacked([corners for corners, *_ in in_body]),
        "corner_links": corner_links,
        "neighbours": neighbours,
        "shape_starts": np.where(many, 6 * CUBE**2 * (np.cumsum(many) - 1), -1).astype(np.int32),
        "starts": np.concatenate([*starts, [0]]).astype(np.int32),
        "corner_climbs": corner_climbs,
        "climbs": np.append(climbs, np.int32(0)),
        "face_normal": _stacked([normals for _, normals, *_ in in_body]),
        "face_corners": _spans(sizes),
        "polygon": polygons.astype(np.int32),
        "surface_velocity": np.array([c.velocity for c in each], dtype=float).reshape(-1, 6),
        "heights": heights.ravel(),
        "field": _whole(list(heights.shape)),
    }


def _in_body(given: PlacedCore) -> tuple[np.ndarray, np.ndarray, np.ndarray, Placement]:
    """Corners, normals of faces and middle of a core's ball in body axes, and the placement of its own axes.

    That is the identity for those with corners.
    """
    core, place = given.core, given.placement if given.core.own is None else given.placement @ given.core.own
    R, r = np.asarray(place.rotation, dtype=float), np.asarray(place.position, dtype=float)
    centre = turned(R, np.array(core.centre)) + r
    if core.hull is None:
        return _NONE.corners, _NONE.normals, centre, Placement(R, r)
    corners = turned(R, core.hull.corners) + r
    faces = core.hull.polygons if len(core.hull.normals) else ()
    return corners, face_normals(corners, faces) if faces else _NONE.normals, centre, Placement()


_NONE = Polytope(np.zeros((0, 3)), np.zeros((0, 3)), ())


def _partners(pairs: Sequence[np.ndarray], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each corner those that are in a pair with it, ascending: as spans, and one after the other.

    ``pairs``: of each hull those of its corners, (k, 2); ``counts``: of each hull how many corners it has.
    """
    first, most = np.cumsum(counts) - counts, int(counts.max(initial=1))
    base = np.repeat(first, list(map(len, pairs)))
    i, j = np.concatenate([np.zeros((0, 2), int), *pairs]).T
    keys = np.sort(np.concatenate([(base + i) * most + j, (base + j) * most + i]))
    corner, partner = np.divmod(keys[np.diff(keys, prepend=-1) > 0], most)
    return _spans(np.bincount(corner, minlength=int(counts.sum()))), partner.astype(np.int32)


def _whole(numbers: list[Any]) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def _spans(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Of lists one after the other the first entry and how many."""
    n = np.asarray(counts, dtype=np.int32)
    return np.stack([np.cumsum(n) - n, n], axis=1).astype(np.int32)


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros((0, 3)), *parts])
