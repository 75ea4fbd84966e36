"""A box in place of a convex shape, by its support function.

Tried are the axes of the coordinates, those of the inertia of the surface, and both turned about each of
them; the box around the shape that differs least is taken.

Cost: a few milliseconds a shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robokit.sim.collide.hull_surface import directions, support

DIRECTIONS = 400

TURNS = 12
"""Turns about each axis that are tried, in a quarter turn."""


@dataclass(frozen=True)
class FittedBox:
    """A box.

    Attributes:
        center: (3,) [m].
        axes: (3, 3), unit vectors along its edges, row by row.
        half: (3,) half its lengths along them [m].
        error: how far the box reaches out of the shape, which lies inside it [m].
    """

    center: np.ndarray
    axes: np.ndarray
    half: np.ndarray
    error: float


def fit_box(points: np.ndarray, radii: np.ndarray) -> FittedBox:
    """The box that stands for the hull of balls.

    Args:
        points: (n, 3) centres [m].
        radii: (n,) [m]; 0 for corners.
    """
    d = directions(DIRECTIONS)
    surface = points[(d @ points.T + radii).argmax(axis=1)]
    _, principal = np.linalg.eigh(np.cov(surface.T) if len(points) > 1 else np.eye(3))
    tried = [np.eye(3)]
    for axes in (np.eye(3), principal.T):
        for about in range(3):
            for k in range(TURNS):
                turn = 0.5 * math.pi * k / TURNS
                c, s = math.cos(turn), math.sin(turn)
                turned = axes.copy()
                i, j = (about + 1) % 3, (about + 2) % 3
                turned[i], turned[j] = c * axes[i] + s * axes[j], c * axes[j] - s * axes[i]
                tried.append(turned)
    wanted = support(points, radii, d)
    best = min((_around(points, radii, axes, d, wanted) for axes in tried), key=lambda box: box.error)
    check = directions(3 * DIRECTIONS)
    return _around(points, radii, best.axes, check, support(points, radii, check))


def _around(
    points: np.ndarray, radii: np.ndarray, axes: np.ndarray, d: np.ndarray, wanted: np.ndarray
) -> FittedBox:
    """The box with these axes that touches the shape on all sides."""
    low, high = -support(points, radii, -axes), support(points, radii, axes)
    center, half = axes.T @ (0.5 * (low + high)), 0.5 * (high - low)
    error = float(np.abs(d @ center + np.abs(d @ axes.T) @ half - wanted).max())
    return FittedBox(center, axes, half, error)
