"""Corners of a hull as few contact points that move: which corners share one.

Corners that can touch a plane at the same time should be different points, for together they hold the body;
corners that cannot, such as those of opposite sides, may share one point, the lowest of them. So a hull of
any number of corners costs a handful of points, and sinks no deeper than all of its corners would.
"""

from __future__ import annotations

import numpy as np

from robokit.meshes.hull_error import solid_hull

MOST = 5
"""Points of one hull."""

NEAR = 0.2
"""Corners that touch together may share a point up to this distance, relative to the hull's size."""


def patches(corners: np.ndarray, depth: float, most: int = MOST, near: float = NEAR) -> list[list[int]]:
    """Numbers of the corners of each point.

    Args:
        corners: (n, 3) [m].
        depth: corners within this height of each other touch at the same time [m].
        most: points at most.
        near: distance up to which corners that touch together may share a point, relative to the size.
    """
    n = len(corners)
    if n == 0:
        return []
    apart = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    together = np.where(_touch_together(corners, depth), apart, 0.0)
    order = _farthest_first(apart)
    near = near * float(apart.max(initial=0.0))
    groups: list[list[int]] = [[k] for k in range(n)]
    for count in range(1, min(n, most) + 1):
        groups, worst = _shared(together, order, count)
        if worst <= near:
            break
    return [sorted(group) for group in groups if group]


def neighbourhoods(corners: np.ndarray, most: int) -> list[list[int]]:
    """Numbers of the corners of each point where the ground is not a plane: neighbours share one.

    Where the ground's normal changes from place to place, corners of opposite sides may touch at the same
    time, and the normal under the middle says which is the lowest only where all are near it.

    Args:
        corners: (n, 3) [m].
        most: points at most.
    """
    apart = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    seeds = _farthest_first(apart)[:most]
    nearest = apart[:, seeds].argmin(axis=1)
    return [np.flatnonzero(nearest == k).tolist() for k in range(len(seeds))]


def _shared(together: np.ndarray, order: list[int], count: int) -> tuple[list[list[int]], float]:
    """Each corner where those that touch with it are nearest, and the largest distance that is left."""
    groups: list[list[int]] = [[] for _ in range(count)]
    costs, worst = np.zeros((count, len(order))), 0.0
    for k in order:
        best = int(costs[:, k].argmin())
        groups[best].append(k)
        worst = max(worst, float(costs[best, k]))
        costs[best] = np.maximum(costs[best], together[k])
    return groups, worst


def _touch_together(corners: np.ndarray, depth: float) -> np.ndarray:
    """Whether two corners are both within ``depth`` of the lowest for some plane, (n, n).

    The planes of the hull's facets and those between two facets are tried.
    """
    hull = solid_hull(corners)
    if hull is None:
        return np.ones((len(corners), len(corners)), bool)
    normals = hull.equations[:, :3]
    pairs = np.array([(k, j) for k, row in enumerate(hull.neighbors) for j in row if k < j])
    between = normals[pairs[:, 0]] + normals[pairs[:, 1]]
    size = np.linalg.norm(between, axis=1, keepdims=True)
    heights = corners @ np.concatenate([normals, between / np.maximum(size, 1e-9)]).T
    touch = (heights >= heights.max(axis=0) - depth).astype(float)
    return touch @ touch.T > 0.0


def _farthest_first(apart: np.ndarray) -> list[int]:
    """Corners, each the farthest from those before it; the first is the farthest from the others."""
    order = [int(apart.sum(axis=1).argmax())]
    gap = apart[order[0]].copy()
    while len(order) < len(apart):
        gap[order] = -1.0
        order.append(int(gap.argmax()))
        gap = np.minimum(gap, apart[order[-1]])
    return order
