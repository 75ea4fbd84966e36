"""Geometry of links and solids as the arrays SHAPES of fields.py.

A new kind of geometry is one row of CORES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from robokit.collision.fields import CYLINDER, FIELD, PLANE, POINT, POLYTOPE, SEGMENT
from robokit.collision.hulls import Polytope, Round, box, exact_polytope, face_normals, kept_hull, polytope
from robokit.collision.support import CUBE
from robokit.meshes.hull import hull_corners
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Sphere, turned

Arrays = dict[str, np.ndarray]

MANY = 24
"""Corners from which on climbing along edges is faster than a look at all."""

SMALL = 0.01
"""Of the size of a hull: it is thinned by no more, however large the error that is allowed."""


@dataclass(frozen=True, eq=False)
class Core:
    """A convex set and a radius around it, in its own axes.

    Those are the geometry's but for balls, cylinders and cones that are given as meshes.
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


@dataclass(frozen=True, eq=False)
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
    points = hull_corners(given)
    if error is not None:
        error = min(error, SMALL * float(np.ptp(points, axis=0).max()))
    found = kept_hull(points, error)
    return _of_round(found) if isinstance(found, Round) else polytope_core(found)


def _of_round(given: Round) -> Core:
    own = Placement(given.rotation, given.middle)
    if given.kind == POINT:
        return replace(_of_sphere(Sphere(given.radius), 0.0), own=own)
    size = (given.radius, given.half, 0.0)
    return Core(given.kind, float(np.hypot(given.radius, given.half)), size=size, own=own)


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

    Args:
        geometry: the geometry.
        error: how far a mesh may reach out of its hull with fewer corners [m]; None for all corners.
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


def pair_arrays(pairs: np.ndarray, shapes: int, slack: Any = 0.0) -> Arrays:
    """The arrays PAIRS.

    Args:
        pairs: of shapes, (n, 2), the first one's number below the second one's.
        shapes: how many there are.
        slack: of each pair, (n,), or of all [m].
    """
    pairs = np.asarray(pairs, dtype=np.int32).reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    counts = np.bincount(pairs[:, 0], minlength=shapes)
    return {
        "pair_shapes": pairs,
        "pair_slack": np.array(np.broadcast_to(slack, len(pairs)), dtype=float),
        "shape_partners": _spans(counts.tolist()),
        "partners": np.stack([pairs[order, 1], order], axis=1).astype(np.int32),
    }


def shape_arrays(placed: Iterable[PlacedCore]) -> Arrays:
    """The arrays SHAPES, but for ``beside``; shapes stay in their order."""
    each = list(placed)
    heights = next((c.core.heights for c in each if c.core.heights is not None), np.zeros((1, 1)))
    hulls = [c.core.hull or _NONE for c in each]
    in_body = [_in_body(c) for c in each]
    places = [place for *_, place in in_body]
    rotations = np.array([place.rotation for place in places], dtype=float).reshape(-1, 9)
    origins = np.array([place.position for place in places], dtype=float).reshape(-1, 3)
    links = [list(map(list, hull.neighbours)) for hull in hulls]
    polygons = [polygon if len(hull.normals) else () for hull in hulls for polygon in hull.polygons]
    polygons = [p for p in polygons if p]
    own = list(chain.from_iterable(links))
    many = [len(hull.corners) > MANY and len(hull.normals) > 0 for hull in hulls]
    climbs: list[list[int]] = []
    starts: list[np.ndarray] = []
    for hull, m in zip(hulls, many, strict=True):
        climbs += hull.climbs if m else [[] for _ in hull.corners]
        if m:
            starts.append((cube_directions() @ hull.corners.T).argmax(axis=1))
    return {
        "shape_body": _whole([c.body for c in each]),
        "shape_kind": _whole([c.core.kind for c in each]),
        "shape_placement": np.concatenate([rotations, origins], axis=1),
        "shape_radius": np.array([c.core.radius for c in each], dtype=float),
        "shape_size": np.array([c.core.size for c in each], dtype=float).reshape(-1, 3),
        "shape_centre": np.array([centre for _, _, centre, _ in in_body], dtype=float).reshape(-1, 3),
        "shape_bound": np.array([c.core.bound for c in each], dtype=float),
        "shape_corners": _spans([len(hull.corners) for hull in hulls]),
        "shape_faces": _spans([len(hull.normals) for hull in hulls]),
        "corners": _stacked([corners for corners, *_ in in_body]),
        "corner_links": _spans([len(link) for link in own]),
        "neighbours": _whole(list(chain.from_iterable(own))),
        "shape_starts": np.where(many, 6 * CUBE**2 * (np.cumsum(many) - 1), -1).astype(np.int32),
        "starts": np.concatenate([*starts, [0]]).astype(np.int32),
        "corner_climbs": _spans([len(each) for each in climbs]),
        "climbs": _whole([*chain.from_iterable(climbs), 0]),
        "face_normal": _stacked([normals for _, normals, *_ in in_body]),
        "face_corners": _spans([len(polygon) for polygon in polygons]),
        "polygon": _whole(list(chain.from_iterable(polygons))),
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


def _whole(numbers: list[Any]) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def _spans(counts: list[int]) -> np.ndarray:
    """Of lists one after the other the first entry and how many."""
    n = np.array(counts, dtype=np.int32)
    return np.stack([np.cumsum(n) - n, n], axis=1).astype(np.int32)


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros((0, 3)), *parts])
