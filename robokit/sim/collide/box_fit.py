"""A box in place of a convex shape, by its support function.

Tried are the axes of the coordinates, those of the inertia of the surface, both turned about each of them,
and those of the largest faces of the hull with the edges of each: a box, and what is nearly one, is found
however it is turned. The box around the shape that differs least is turned on, a little about each of its
axes, while that makes it better.

Source: a face of the smallest box around a polytope, or two, lie along edges of it, J. O'Rourke, "Finding
minimal enclosing boxes" (1985). Differs: only the largest faces, and a descent from there.
Cost: about ten milliseconds a shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robokit.meshes.hull_error import solid_hull
from robokit.sim.collide.hull_surface import directions, support

DIRECTIONS = 400

TURNS = 12
"""Turns about each axis that are tried, in a quarter turn."""

FACES, EDGES = 6, 8
"""Largest faces of a hull whose axes are tried, and longest edges of each."""

FINEST = 1e-4
"""Least turn with which the best box is improved [rad]."""

EXACT = 1e-9
"""Error of a box that is not improved [m]."""


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
    farthest = (d @ points.T + radii).argmax(axis=1)
    surface = points[farthest]
    _, principal = np.linalg.eigh(np.cov(surface.T) if len(points) > 1 else np.eye(3))
    tried = [np.eye(3)]
    for axes in (np.eye(3), principal.T):
        for about in range(3):
            tried += [_turned(axes, about, 0.5 * math.pi * k / TURNS) for k in range(TURNS)]
    tried += _of_faces(points[np.unique(farthest)])
    wanted = support(points, radii, d)
    boxes = (_around(points, radii, axes, d, wanted) for axes in tried)
    best = min(boxes, key=lambda box: max(box.error, EXACT))  # of several that are exact the first one
    step = 0.5 * math.pi / TURNS
    while step > FINEST and best.error > EXACT:
        around = [_turned(best.axes, about, sign * step) for about in range(3) for sign in (-1.0, 1.0)]
        better = min((_around(points, radii, axes, d, wanted) for axes in around), key=lambda box: box.error)
        if better.error < best.error:
            best = better
        else:
            step *= 0.5
    check = directions(3 * DIRECTIONS)
    return _around(points, radii, best.axes, check, support(points, radii, check))


def _turned(axes: np.ndarray, about: int, angle: float) -> np.ndarray:
    """Axes, row by row, turned about one of them."""
    c, s = math.cos(angle), math.sin(angle)
    turned = axes.copy()
    i, j = (about + 1) % 3, (about + 2) % 3
    turned[i], turned[j] = c * axes[i] + s * axes[j], c * axes[j] - s * axes[i]
    return turned


def _of_faces(points: np.ndarray) -> list[np.ndarray]:
    """Axes along the normals of the largest faces of a hull and the longest edges of each."""
    hull = solid_hull(points)
    if hull is None:
        return []
    corners = points[hull.simplices]
    sides = corners[:, [1, 2, 0]] - corners
    sizes = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    normals = hull.equations[:, :3]
    _, first, face = np.unique(normals.round(6), axis=0, return_index=True, return_inverse=True)
    face = face.reshape(-1)
    area = np.bincount(face, sizes)
    found = []
    for k in np.argsort(-area, kind="stable")[:FACES]:
        edges = sides[face == k].reshape(-1, 3)
        for along in edges[np.argsort(-np.linalg.norm(edges, axis=1), kind="stable")[:EDGES]]:
            n = normals[first[k]] / np.linalg.norm(normals[first[k]])
            x = along - n * (along @ n)
            x = x / np.linalg.norm(x)
            found.append(np.stack([x, np.cross(n, x), n]))
    return found


def _around(
    points: np.ndarray, radii: np.ndarray, axes: np.ndarray, d: np.ndarray, wanted: np.ndarray
) -> FittedBox:
    """The box with these axes that touches the shape on all sides."""
    low, high = -support(points, radii, -axes), support(points, radii, axes)
    center, half = axes.T @ (0.5 * (low + high)), 0.5 * (high - low)
    error = float(np.abs(d @ center + np.abs(d @ axes.T) @ half - wanted).max())
    return FittedBox(center, axes, half, error)
