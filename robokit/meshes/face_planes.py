"""Planes of a convex polyhedron that holds given points: their hull, or few planes with a stated error."""

from __future__ import annotations

import numpy as np

MOST_FACES = 64
"""Planes of a polyhedron, at most: each costs a contact point a dozen operations."""

CLOSE = 1e-3
"""Error [m] at which no more planes are added."""

BOUNDS = np.concatenate([np.eye(3), -np.eye(3)])


def face_planes(points: np.ndarray, most: int = MOST_FACES, close: float = CLOSE) -> tuple[np.ndarray, float]:
    """Planes (n, d) with n . x <= d for all points: their hull if it has few faces, otherwise a bit more.

    Planes of the hull are added to the box of the points where the polyhedron sticks out most, until it does
    so by no more than ``close`` or has ``most`` planes.

    Args:
        points: (n, 3) [m].
        most: planes, at least 6.
        close: error that is small enough [m].

    Returns:
        (F, 4) unit normals and distances from the origin [m], and how far the polyhedron sticks out of the
        hull's faces at most [m].

    Raises:
        ValueError: the points lie in a plane.
    """
    from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

    points = np.asarray(points, dtype=float)
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise ValueError(f"{len(points)} points that do not span a solid") from error
    faces = _merged(hull.equations)
    if len(faces) <= most:
        return faces, 0.0
    middle = points[hull.vertices].mean(axis=0)
    bounds = np.column_stack([BOUNDS, (points @ BOUNDS.T).max(axis=0)])
    solid = HalfspaceIntersection(_halfspaces(bounds), middle, incremental=True)
    chosen: list[np.ndarray] = list(bounds)
    try:
        while True:
            out = solid.intersections @ faces[:, :3].T - faces[:, 3]
            worst = float(out.max())
            if worst <= close or len(chosen) >= most:
                return np.array(chosen), worst
            new = faces[int(out.max(axis=0).argmax())]
            chosen.append(new)
            solid.add_halfspaces(_halfspaces(new[None]))
    finally:
        solid.close()


def _halfspaces(planes: np.ndarray) -> np.ndarray:
    """The planes as scipy has them: n . x - d <= 0."""
    return np.column_stack([planes[:, :3], -planes[:, 3]])


def _merged(equations: np.ndarray) -> np.ndarray:
    """Planes (n, d) of a hull's triangles, each once."""
    planes = np.column_stack([equations[:, :3], -equations[:, 3]])
    scale = max(float(np.abs(planes[:, 3]).max()), 1e-9)
    keys = np.round(np.column_stack([planes[:, :3], planes[:, 3:] / scale]), 7)
    _, first = np.unique(keys, axis=0, return_index=True)
    return planes[np.sort(first)]
