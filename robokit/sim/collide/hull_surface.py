"""Where the surface of a convex shape is: the points at which rays from its middle leave it, and its corners.

The shape is the hull of balls, which its support function h describes: x is inside if n . x <= h(n) for all
directions n. A ray leaves it at the nearest of these planes. Looked at are the directions of a lattice and
those of the faces of the centres' hull: exact for a polytope, nearly so for what is round.
"""

from __future__ import annotations

import math

import numpy as np

from robokit.meshes.hull_error import solid_hull

FINE = 1200
"""Directions of the lattice; a corner that is the farthest in none of them is left out."""

ALONG = 17
"""Balls on an edge."""

STEEP = 0.02
"""Cosine between a ray and a plane's normal below which the plane is not met."""


def directions(n: int) -> np.ndarray:
    """n unit vectors that cover the sphere evenly, (n, 3): a Fibonacci lattice."""
    k = np.arange(n) + 0.5
    z, turn = 1.0 - 2.0 * k / n, math.pi * (1.0 + math.sqrt(5.0)) * k
    s = np.sqrt(1.0 - z * z)
    return np.stack([s * np.cos(turn), s * np.sin(turn), z], axis=1)


def support(points: np.ndarray, radii: np.ndarray, d: np.ndarray) -> np.ndarray:
    """h(d) of the hull of balls, for directions (n, 3) [m]."""
    return (d @ points.T + radii).max(axis=1)


def corners(points: np.ndarray, radii: np.ndarray, n: int) -> np.ndarray:
    """The points of the hull of balls that are the farthest in n directions, each once, (m, 3) [m]."""
    d = directions(n)
    farthest = (d @ points.T + radii).argmax(axis=1)
    sharp = np.unique(farthest[radii[farthest] == 0.0])
    round_ = radii[farthest] > 0.0
    return np.concatenate([points[sharp], (points[farthest] + d * radii[farthest][:, None])[round_]])


def surface(points: np.ndarray, radii: np.ndarray, n: int) -> np.ndarray:
    """n points on the surface of the hull of balls, spread over it, (n, 3) [m].

    Args:
        points: (m, 3) centres [m].
        radii: (m,) [m]; 0 for corners.
        n: how many.
    """
    d, fine = directions(n), directions(FINE)
    kept = np.unique((fine @ points.T + radii).argmax(axis=1))
    points, radii = points[kept], radii[kept]
    farthest = (d @ points.T + radii).argmax(axis=1)
    _, axes = np.linalg.eigh(np.cov((points[farthest] + d * radii[farthest][:, None]).T))
    low, high = -support(points, radii, -axes.T), support(points, radii, axes.T)
    middle = axes @ (0.5 * (low + high))
    rays = (d * (0.5 * (high - low))) @ axes.T  # those of a ball, stretched as the shape is
    rays = rays / np.maximum(np.linalg.norm(rays, axis=1), 1e-300)[:, None]
    hull = solid_hull(points)
    faces = np.zeros((0, 3)) if hull is None else np.unique(hull.equations[:, :3].round(9), axis=0)
    normals = np.concatenate([fine, axes.T, -axes.T, faces])
    along = rays @ normals.T
    met = along > STEEP
    reach = support(points, radii, normals) - normals @ middle
    way = np.where(met, reach / np.where(met, along, 1.0), np.inf).min(axis=1)
    return middle + np.where(np.isfinite(way), way, 0.0)[:, None] * rays


def edges_and_normals(points: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Balls of the hull whose centres are on edges of the centres' hull, and the normals of its faces.

    Args:
        points: (m, 3) centres [m].
        radii: (m,) [m]; 0 for corners.

    Returns:
        centres (k, 3) and radii (k,) [m], unit vectors (l, 3); none of what lies in one plane.
    """
    kept = np.unique((directions(FINE) @ points.T + radii).argmax(axis=1))
    points, radii = points[kept], radii[kept]
    hull = solid_hull(points)
    if hull is None:
        return np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3))
    edges = np.unique(np.sort(hull.simplices[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    t = np.linspace(0.0, 1.0, ALONG)[:, None]
    ends, sizes = points[edges], radii[edges]
    centres = ends[:, 0, None] * (1.0 - t) + ends[:, 1, None] * t
    return (
        centres.reshape(-1, 3),
        (sizes[:, :1] * (1.0 - t.T) + sizes[:, 1:] * t.T).reshape(-1),
        np.unique(hull.equations[:, :3].round(9), axis=0),
    )
