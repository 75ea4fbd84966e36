"""Whether points are the corners of a box, and which."""

from __future__ import annotations

from itertools import product

import numpy as np

EXACT = 1e-9
"""Distance of points from the corners, over the box's diagonal, that is let pass."""


def box_of_corners(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The box with these eight corners.

    Args:
        points: (8, 3) in any order [m].

    Returns:
        its edges (3,) [m], the rotation (3, 3) that turns its axes into those of the points, nearest to none,
        and its middle (3,) [m]; None where the points are not the corners of a box.
    """
    if len(points) != 8:
        return None
    sides = points[1:] - points[0]
    lengths = np.linalg.norm(sides, axis=1)
    sides = sides[np.argsort(lengths)]
    near = EXACT * lengths.max()
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
