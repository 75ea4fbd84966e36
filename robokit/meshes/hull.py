"""Convex hulls of meshes and points: their corners, the circles among these, and whether they are a box's."""

from __future__ import annotations

import contextlib
import functools
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from robokit import disk_cache as cache
from robokit.dataclass_tools import frozen
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.untrusted import content_key, file_state, scaled
from robokit.model.geometry import Mesh


def solid_hull(points: np.ndarray) -> Any:
    """scipy's convex hull of points (n, 3), None where they are in one plane or fewer than four."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return ConvexHull(points)
    except (QhullError, ValueError):
        return None


def hull_corners(mesh: Mesh) -> np.ndarray:
    """Corners of a mesh's convex hull, (n, 3) in the shape's frame [m], its scale applied.

    Raises FileNotFoundError for a file that was not found, ValueError, OSError and whatever else its reader
    raises for one that cannot be read.
    """
    path = _file(mesh)
    return scaled(_corners(path, mesh.filename, file_state(path)), mesh.scale)


def hull_key(mesh: Mesh) -> tuple[str, ...] | None:
    """What a mesh's hull depends on besides its scale, in a few words; None where that cannot be told.

    Errors as of :func:`hull_corners`.
    """
    return content_key(_file(mesh), ".gltf")


def _file(mesh: Mesh) -> Path:
    if mesh.path is None:
        raise FileNotFoundError(f"mesh {mesh.filename!r} was not found")
    return mesh.path


@functools.lru_cache(maxsize=256)
def _corners(path: Path, name: str, state: tuple[int, int]) -> np.ndarray:
    """Corners of a file's hull, unscaled; kept, because robots of one file are made again and again."""

    def made() -> list[np.ndarray]:
        used = [s.vertices[np.unique(s.faces)] for s in read_mesh(path) if len(s.faces)]
        if not used:
            raise ValueError(f"mesh {name!r} holds no triangles")
        return [_hull(np.concatenate(used))]

    key = content_key(path, ".gltf")
    (corners,) = cache.arrays("convex hull", key and ("hull", *key), made)
    if not (len(corners) and np.isfinite(corners).all()):
        raise ValueError(f"mesh {name!r} holds no points")
    return corners


FLAT = 1e-9  # thickness beside the length of what is in one plane, up to rounding


def _hull(points: np.ndarray) -> np.ndarray:
    """Corners of the hull of points; of points in one plane those of their polygon, on one line its ends."""
    from scipy.spatial import ConvexHull, QhullError

    off = points - points.mean(axis=0)
    inside = off @ np.linalg.eigh(off.T @ off)[1][:, ::-1]  # along the principal axes, the longest first
    length, _, thickness = np.ptp(inside, axis=0)
    # Of a plate in other axes Qhull leaves out corners where the thickness is all rounding.
    for each in (points, inside[:, :2]) if thickness > FLAT * length else (inside[:, :2],):
        with contextlib.suppress(QhullError):
            # Scaled to a cube: its size does not matter.
            return points[np.sort(ConvexHull(each, qhull_options="QbB Pp Qt").vertices)]
    return points[np.unique([inside[:, 0].argmin(), inside[:, 0].argmax()])]


# ---- circles among the corners -------------------------------------------------------------------
# Wheels, discs and cones, which meshes make polygons of. A flat face whose corners lie on one circle gives an
# axis; all other corners at equal heights on this axis and equal distances from it are circles too. A polygon
# counts as a circle if the circle through its corners leaves it by at most the error.

FEWEST_CORNERS = 12  # least number of corners of a circle
CIRCLE_TOLERANCE = 0.25  # corners this near a circle lie on it, relative to the error
PLANE_TOLERANCE = 0.02  # corners this near a face's plane lie in it, relative to the error


@frozen
class Circle:
    """A circle."""

    center: np.ndarray  # (3,) [m]
    axis: np.ndarray  # unit vector, (3,)
    radius: float  # [m]
    flat: bool  # whether the hull is flat inside it, so that it can stand on it


def circles(corners: np.ndarray, error: float) -> list[Circle]:
    """Circles of a hull, (n, 3) corners [m], that are needed to be within ``error`` [m] of those left out."""
    hull = solid_hull(corners) if len(corners) >= FEWEST_CORNERS else None
    if hull is None:
        return []
    corners = corners[hull.vertices]
    found: list[Circle] = []
    for normal, offset in _planes(hull.equations, 1e-3 * error):
        on = np.abs(corners @ normal + offset) <= PLANE_TOLERANCE * error
        if any(abs(abs(normal @ c.axis) - 1.0) < 1e-6 and _off(c, corners[on]) <= error for c in found):
            continue
        center = _center(corners[on], normal)
        if center is not None and _is_round(corners[on] - center, normal, error):
            found += _around(corners, center, normal, error)
    return found


def _planes(equations: np.ndarray, tolerance: float) -> list[tuple[np.ndarray, float]]:
    """(normal, offset) of the faces that several facets make up."""
    _, first, count = np.unique(
        np.round(equations / max(tolerance, 1e-7)), axis=0, return_index=True, return_counts=True
    )
    return [(equations[k, :3], float(equations[k, 3])) for k in first[count >= FEWEST_CORNERS - 4]]


def _off(circle: Circle, points: np.ndarray) -> float:
    """Largest distance of the points from a circle."""
    off = points - circle.center
    height = off @ circle.axis
    wide = np.linalg.norm(off - np.outer(height, circle.axis), axis=1)
    return float(np.hypot(height, wide - circle.radius).max(initial=0.0))


def _center(points: np.ndarray, normal: np.ndarray) -> np.ndarray | None:
    """Centre of the circle that fits points of a plane best."""
    if len(points) < FEWEST_CORNERS:
        return None
    middle = points.mean(axis=0)
    flat = points - middle - np.outer((points - middle) @ normal, normal)
    # |x|^2 = 2 x . c + const
    A = np.column_stack([2.0 * flat, np.ones(len(flat))])
    solution, *_ = np.linalg.lstsq(A, (flat**2).sum(axis=1), rcond=1e-9)
    return np.asarray(middle + solution[:3])


def _is_round(off: np.ndarray, axis: np.ndarray, error: float) -> bool:
    """Whether points, from the centre, go round the axis at one distance, near enough to each other."""
    if len(off) < FEWEST_CORNERS:
        return False
    flat = off - np.outer(off @ axis, axis)
    wide = np.linalg.norm(flat, axis=1)
    if np.ptp(wide) > CIRCLE_TOLERANCE * error or wide.min() <= error:
        return False
    e = flat[0] / wide[0]
    turns = np.sort(np.arctan2(flat @ np.cross(axis, e), flat @ e))
    gap = float(np.diff(np.append(turns, turns[0] + 2.0 * math.pi)).max())
    return gap <= 2.0 * math.pi / FEWEST_CORNERS * 1.01 and wide.max() * (1.0 - math.cos(0.5 * gap)) <= error


def _around(corners: np.ndarray, center: np.ndarray, axis: np.ndarray, error: float) -> list[Circle]:
    """The circles about an axis."""
    height = (corners - center) @ axis
    wide = np.linalg.norm(corners - center - np.outer(height, axis), axis=1)
    rings: list[tuple[float, float]] = []
    left = np.ones(len(corners), bool)
    while left.any():
        k = int(np.flatnonzero(left)[0])
        near = left & (np.abs(height - height[k]) + np.abs(wide - wide[k]) <= CIRCLE_TOLERANCE * error)
        left &= ~near
        if _is_round(corners[near] - center, axis, error):
            rings.append((float(height[near].mean()), float(wide[near].max())))
    rings.sort()
    ends = [h for h, _ in rings if np.isclose(h, height.min(), 0.0, error) or h >= height.max() - error]
    kept = _simplify_rings(rings, 0.5 * error)
    return [Circle(center + h * axis, axis, r, h in ends) for h, r in kept]


def _simplify_rings(rings: list[tuple[float, float]], error: float) -> list[tuple[float, float]]:
    """Rings without those that are within the error of a cone between two others."""
    if len(rings) < 3:
        return rings
    profile = np.array(rings)
    along = profile[-1] - profile[0]
    off = (profile - profile[0]) @ np.array([-along[1], along[0]]) / np.linalg.norm(along)
    k = int(off.argmax())
    if off[k] <= error:
        return [rings[0], rings[-1]]
    return _simplify_rings(rings[: k + 1], error)[:-1] + _simplify_rings(rings[k:], error)


# ---- boxes ---------------------------------------------------------------------------------------

BOX_TOLERANCE = 1e-9  # distance of points from the corners, over the box's diagonal, that is let pass


def box_of_corners(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The box with these eight corners (8, 3) in any order [m]; None where they are not those of a box.

    Returns its edges (3,) [m], the rotation (3, 3) that turns its axes into those of the points, nearest to
    none, and its middle (3,) [m].
    """
    if len(points) != 8:
        return None
    sides = points[1:] - points[0]
    lengths = np.linalg.norm(sides, axis=1)
    sides = sides[np.argsort(lengths)]
    near = BOX_TOLERANCE * lengths.max()
    edges: list[np.ndarray] = []
    for side in sides:  # the shortest is an edge, and the next that is square to those before
        length = np.linalg.norm(side)
        if len(edges) < 3 and all(
            abs(side @ edge) < near * (length + np.linalg.norm(edge)) for edge in edges
        ):
            edges.append(side)
    if len(edges) < 3:
        return None
    corners = points[0] + np.array(list(product((0.0, 1.0), repeat=3))) @ np.array(edges)
    gaps = np.linalg.norm(corners[:, None] - points[None], axis=2)
    if gaps.min(axis=0).max() > near or gaps.min(axis=1).max() > near:
        return None
    size = np.linalg.norm(edges, axis=1)
    axes = np.array(edges) / size[:, None]
    order: list[int] = []
    for k in range(3):
        order.append(max((m for m in range(3) if m not in order), key=lambda m: abs(axes[m, k])))
    axes, size = axes[order], size[order]
    axes = axes * np.sign([axes[k, k] or 1.0 for k in range(3)])[:, None]
    axes[2] = np.cross(axes[0], axes[1])
    return size, axes.T, points.mean(axis=0)
