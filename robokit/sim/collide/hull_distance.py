"""Distance of two convex hulls of balls, exact: for lists that are made once, not for steps.

The shortest vector of the Minkowski difference is that of a simplex of a few of its corners. The corner that
is farthest against the present vector joins the simplex until none is nearer.

Source: Gilbert, Johnson and Keerthi, "A fast procedure for computing the distance between complex objects in
three-dimensional space" (1988).  Differs: the simplex's shortest vector by non-negative least squares.
"""

from __future__ import annotations

import numpy as np

ROUNDS = 100
EXACT = 1e-10
"""The distance is known to this part of it."""


def hull_distance(
    points: np.ndarray, radii: np.ndarray, others: np.ndarray, other_radii: np.ndarray
) -> float:
    """Distance [m]; 0 or less where they touch, how deep is not told.

    Args:
        points, others: (n, 3) and (m, 3) centres of balls in the same axes [m].
        radii, other_radii: (n,) and (m,) [m].
    """
    shift = others.mean(axis=0)
    a, b = points - shift, others - shift
    # What all balls of a shape have in common is taken off in the end: of polytopes with a radius, all of it.
    least, other_least = float(radii.min()), float(other_radii.min())
    more, other_more = radii - least, other_radii - other_least
    corners = [a[0] - b[0]]
    d = corners[0]
    for _ in range(ROUNDS):
        far = _farthest(a, more, -d) - _farthest(b, other_more, d)
        square = float(d @ d)
        if square - float(far @ d) <= EXACT * square or any(np.array_equal(far, c) for c in corners):
            break
        corners.append(far)
        weights = _weights(np.array(corners))
        d = weights @ np.array(corners)
        corners = [c for c, w in zip(corners, weights, strict=True) if w > 0.0]
        if float(np.linalg.norm(d)) < 1e-9:
            d = np.zeros(3)
            break
    return float(np.linalg.norm(d)) - least - other_least


def _farthest(points: np.ndarray, radii: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The point of the hull of balls that is the farthest along d."""
    size = float(np.linalg.norm(d))
    k = int((points @ d + radii * size).argmax())
    return points[k] + radii[k] / max(size, 1e-300) * d


def _weights(corners: np.ndarray) -> np.ndarray:
    """Of the point of the corners' hull that is nearest to the origin: not negative, sum 1."""
    from scipy.optimize import nnls

    size = max(float(np.abs(corners).max()), 1e-300)
    A = np.concatenate([corners.T / size, np.full((1, len(corners)), 1.0)])
    # min |C w|^2 + |1 - sum w|^2 has its minimum along the ray of the shortest vector's weights.
    w, _ = nnls(A, np.array([0.0, 0.0, 0.0, 1.0]))
    return w / w.sum()
