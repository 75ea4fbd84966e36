"""Circles among the corners of a convex hull: wheels, discs and cones, which meshes make polygons of.

A flat face whose corners lie on one circle gives an axis; all other corners at equal heights on this axis and
equal distances from it are circles too. A polygon counts as a circle if the circle through its corners
leaves it by at most the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robokit.meshes.hull import solid_hull

FEWEST = 12
"""Corners of a circle at least."""

ROUND = 0.25
"""Corners this near a circle lie on it, relative to the error."""

FLAT = 0.02
"""Corners this near a face's plane lie in it, relative to the error."""


@dataclass(frozen=True)
class Circle:
    """A circle.

    Attributes:
        center: (3,) [m].
        axis: unit vector, (3,).
        radius: [m].
        flat: whether the hull is flat inside it, so that it can stand on it.
    """

    center: np.ndarray
    axis: np.ndarray
    radius: float
    flat: bool


def circles(corners: np.ndarray, error: float) -> list[Circle]:
    """Circles of a hull, (n, 3) corners [m], that are needed to be within ``error`` [m] of those left out."""
    hull = solid_hull(corners) if len(corners) >= FEWEST else None
    if hull is None:
        return []
    corners = corners[hull.vertices]
    found: list[Circle] = []
    for normal, offset in _planes(hull.equations, 1e-3 * error):
        on = np.abs(corners @ normal + offset) <= FLAT * error
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
    return [(equations[k, :3], float(equations[k, 3])) for k in first[count >= FEWEST - 4]]


def _off(circle: Circle, points: np.ndarray) -> float:
    """How far points are from a circle, at most."""
    off = points - circle.center
    height = off @ circle.axis
    wide = np.linalg.norm(off - np.outer(height, circle.axis), axis=1)
    return float(np.hypot(height, wide - circle.radius).max(initial=0.0))


def _center(points: np.ndarray, normal: np.ndarray) -> np.ndarray | None:
    """Centre of the circle that fits points of a plane best."""
    if len(points) < FEWEST:
        return None
    middle = points.mean(axis=0)
    flat = points - middle - np.outer((points - middle) @ normal, normal)
    # |x|^2 = 2 x . c + const
    A = np.column_stack([2.0 * flat, np.ones(len(flat))])
    solution, *_ = np.linalg.lstsq(A, (flat**2).sum(axis=1), rcond=1e-9)
    return np.asarray(middle + solution[:3])


def _is_round(off: np.ndarray, axis: np.ndarray, error: float) -> bool:
    """Whether points, from the centre, go round the axis at one distance, near enough to each other."""
    if len(off) < FEWEST:
        return False
    flat = off - np.outer(off @ axis, axis)
    wide = np.linalg.norm(flat, axis=1)
    if np.ptp(wide) > ROUND * error or wide.min() <= error:
        return False
    e = flat[0] / wide[0]
    turns = np.sort(np.arctan2(flat @ np.cross(axis, e), flat @ e))
    gap = float(np.diff(np.append(turns, turns[0] + 2.0 * math.pi)).max())
    return gap <= 2.0 * math.pi / FEWEST * 1.01 and wide.max() * (1.0 - math.cos(0.5 * gap)) <= error


def _around(corners: np.ndarray, center: np.ndarray, axis: np.ndarray, error: float) -> list[Circle]:
    """The circles about an axis."""
    height = (corners - center) @ axis
    wide = np.linalg.norm(corners - center - np.outer(height, axis), axis=1)
    rings: list[tuple[float, float]] = []
    left = np.ones(len(corners), bool)
    while left.any():
        k = int(np.flatnonzero(left)[0])
        near = left & (np.abs(height - height[k]) + np.abs(wide - wide[k]) <= ROUND * error)
        left &= ~near
        if _is_round(corners[near] - center, axis, error):
            rings.append((float(height[near].mean()), float(wide[near].max())))
    rings.sort()
    ends = [h for h, _ in rings if np.isclose(h, height.min(), 0.0, error) or h >= height.max() - error]
    kept = _simplified(rings, 0.5 * error)
    return [Circle(center + h * axis, axis, r, h in ends) for h, r in kept]


def _simplified(rings: list[tuple[float, float]], error: float) -> list[tuple[float, float]]:
    """Rings without those that are within the error of a cone between two others."""
    if len(rings) < 3:
        return rings
    profile = np.array(rings)
    along = profile[-1] - profile[0]
    off = (profile - profile[0]) @ np.array([-along[1], along[0]]) / np.linalg.norm(along)
    k = int(off.argmax())
    if off[k] <= error:
        return [rings[0], rings[-1]]
    return _simplified(rings[: k + 1], error)[:-1] + _simplified(rings[k:], error)
