"""Fewer corners of a convex hull, to a stated error.

The support functions of two convex bodies, one inside the other, differ by at most the largest distance of a
corner of the outer from the inner, and somewhere by just that. A few distances therefore bound the error
over all directions.

Source: largest difference of support functions = Hausdorff distance, R. Schneider, "Convex Bodies", thm
1.8.11; distance to a triangle, C. Ericson, "Real-Time Collision Detection", section 5.1.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST = 1e-9
"""Points this much outside a hull, relative to its size, lie on it."""


def solid_hull(points: np.ndarray, growing: bool = False) -> Any:
    """scipy's convex hull of points (n, 3), None where they are in one plane or fewer than four."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return ConvexHull(points, incremental=growing)
    except (QhullError, ValueError):
        return None


def error_of(points: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Distance of each point from the hull of those kept, (n,) [m]; the largest is the error of the hull.

    Args:
        points: (n, 3) [m].
        kept: (m, 3) [m]; in one plane, they have no hull, and all distances are infinite.
    """
    hull = solid_hull(kept)
    return np.full(len(points), np.inf) if hull is None else _distances(points, hull)


def thinned(points: np.ndarray, error: float, given: np.ndarray | None = None) -> np.ndarray:
    """Corners whose hull comes within ``error`` of all points.

    Args:
        points: (n, 3) [m].
        error: largest distance of a point from the hull of those kept and those given [m].
        given: (m, 3) points that are there anyway [m].

    Returns:
        numbers of the points to keep, ascending: for points in one plane, all of them.
    """
    both = points if given is None else np.concatenate([points, given])
    n = len(points)
    whole = solid_hull(both)
    if whole is None:
        return np.arange(n)
    corners = whole.vertices
    far = candidates = corners[corners < n]
    seed = _spread_out(both, corners, given)
    hull = solid_hull(both[seed], growing=True)
    kept = [k for k in seed if k < n]
    while len(far):
        above = (both[far] @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1)
        far, above = far[above > error], above[above > error]
        if len(far):
            new = int(far[int(above.argmax())])
            kept.append(new)
            hull.add_points(both[new : new + 1])
    # Above facets is not yet how far from the hull: where it is sharp, the nearest point lies on an edge.
    far = candidates
    while len(far):
        distance = _distances(both[far], hull)
        far, distance = far[distance > error], distance[distance > error]
        if len(far):
            new = far[int(distance.argmax())]
            kept.append(int(new))
            hull.add_points(both[new : new + 1])
    hull.close()
    return np.array(sorted(kept), dtype=int)


def _spread_out(points: np.ndarray, corners: np.ndarray, given: np.ndarray | None) -> list[int]:
    """Points that are not in one plane: all those given, else the ends along the axes; more where needed."""
    own = points[corners]
    if given is not None:
        seed = list(range(len(points) - len(given), len(points)))
    else:
        along = own @ np.concatenate([np.eye(3), -np.eye(3)]).T
        seed = sorted(set(corners[along.argmax(axis=0)].tolist()))
    while True:
        centre = points[seed[0]]
        _, size, axes = np.linalg.svd(points[seed] - centre)
        rank = int((size > 1e-6 * max(size[0], 1e-300)).sum())
        if rank == 3:
            return seed
        off = own - centre
        off = off - off @ axes[:rank].T @ axes[:rank]
        seed.append(int(corners[int((off**2).sum(axis=1).argmax())]))


def _distances(points: np.ndarray, hull: Any) -> np.ndarray:
    """Distance of each point from a hull, 0 inside: that of the nearest of the facets that it lies above."""
    heights = points @ hull.equations[:, :3].T + hull.equations[:, 3]
    size = float(np.ptp(hull.points, axis=0).max())
    above = heights > LEAST * size
    square = np.where(above.any(axis=1), np.inf, 0.0)
    for k, simplex in enumerate(hull.simplices):
        some = np.flatnonzero(above[:, k])
        if len(some):
            square[some] = np.minimum(square[some], _squares(points[some], *hull.points[simplex]))
    return np.sqrt(square)


def _squares(p: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Squared distance of points from a triangle."""
    normal = np.cross(b - a, c - a)
    area = float(normal @ normal)
    nearest = np.full(len(p), np.inf)
    over = np.full(len(p), area > 0.0)
    for start, end in ((a, b), (b, c), (c, a)):
        edge, off = end - start, p - start
        t = np.clip(off @ edge / max(float(edge @ edge), 1e-300), 0.0, 1.0)
        nearest = np.minimum(nearest, ((off - t[:, None] * edge) ** 2).sum(axis=1))
        over &= off @ np.cross(normal, edge) >= 0.0
    return np.where(over, ((p - a) @ normal) ** 2 / max(area, 1e-300), nearest)
