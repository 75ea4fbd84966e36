"""Balls, cylinders and cones among the hulls of meshes, which then roll as such.

A hull counts as one of them if it leaves it by at most an error; a mesh of a wheel has bumps else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robokit import disk_cache
from robokit.collision.fields import CONE, CYLINDER, POINT
from robokit.collision.hulls import Polytope, polytope
from robokit.meshes.hull import Circle, circles, solid_hull

FEWEST = 24
"""Corners of a ball at least."""

SHARE = 0.05
"""Of a ball's radius: the error is no larger, however large the one that is allowed."""

COAXIAL = 0.1
"""Of the error: how far two circles may be from being those of one cylinder, or a tip from an axis."""


@dataclass(frozen=True, eq=False)
class Round:
    """A ball, cylinder or cone.

    Attributes:
        kind: of fields.py.
        radius: [m].
        half: half its height [m]; 0 of a ball.
        rotation: whose z axis is the axis, up to the tip of a cone.
        middle: of the ball, or half-way up the axis [m].
    """

    kind: int
    radius: float
    half: float
    rotation: np.ndarray
    middle: np.ndarray


def round_hull(corners: np.ndarray, error: float) -> Round | None:
    """The ball, cylinder or cone that a hull stands for.

    Args:
        corners: of the hull, (n, 3) [m].
        error: how far the surfaces may be apart [m].
    """
    if len(corners) < FEWEST:
        return None
    return _ball(corners, error) or _turned(corners, error)


def kept_hull(points: np.ndarray, error: float) -> Polytope | Round:
    """A ball, cylinder or cone that stands for a hull, else the hull of few corners; kept on disk.

    Args:
        points: corners of the hull, (n, 3) [m].
        error: how far points may reach out of it, at most [m].
    """
    points = np.ascontiguousarray(points, dtype=float)

    def made() -> list[np.ndarray]:
        found = round_hull(points, error)
        if found is not None:
            size = np.array([found.kind, found.radius, found.half])
            return [np.concatenate([size, found.rotation.ravel(), found.middle])]
        hull = polytope(points, error)
        counts = np.array([len(each) for each in hull.polygons])
        polygons = np.array([k for each in hull.polygons for k in each])
        sides = np.zeros((0, 2), int) if hull.sides is None else hull.sides
        return [hull.corners, hull.normals, counts, polygons, np.array([hull.error]), sides]

    first, *rest = disk_cache.arrays("convex hull", ("thinned", points.tobytes(), float(error)), made)
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
