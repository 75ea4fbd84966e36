"""Mesh files as triangles for display: scaled, mirrored where the scale is negative, thinned."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from robokit.model.geometry import RGBA
from robokit.model.meshes import read_mesh
from robokit.viewer.scene import Triangles


@lru_cache(maxsize=512)
def load_mesh(
    path: Path, scale: tuple[float, float, float], max_triangles: int
) -> tuple[tuple[Triangles, RGBA | None], ...]:
    """The parts of a mesh file, each with the colour that the file gives it (None: no colour).

    Args:
        path: the file; any format that trimesh reads, and COLLADA.
        scale: factors along x, y, z; an odd number of negative ones turns the winding round.
        max_triangles: the whole file is thinned to about this many.

    Returns:
        Pairs of triangles and colour, at least one.

    Raises:
        ValueError: a file without triangles; and whatever the reader raises.
    """
    parts = [part for part in read_mesh(Path(path)) if len(part[1])]
    total = sum(len(faces) for _, faces, _ in parts)
    if not total:
        raise ValueError("the file holds no triangles")
    result = []
    for vertices, faces, colour in parts:
        budget = max(24, int(max_triangles * len(faces) / total))
        if len(faces) > budget:
            vertices, faces = simplify(vertices, faces, budget)
        vertices = np.asarray(vertices, dtype=float) * np.asarray(scale, dtype=float)
        if np.prod(np.sign(scale)) < 0:
            faces = faces[:, ::-1]
        if len(faces):
            result.append((Triangles(vertices, np.ascontiguousarray(faces, dtype=np.int64)), colour))
    if not result:
        raise ValueError("nothing is left of the mesh after thinning")
    return tuple(result)


def simplify(vertices: np.ndarray, faces: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """About `budget` triangles of the same surface.

    Quadric edge collapse where the fast_simplification package is installed, vertex clustering otherwise.

    Args:
        vertices: (n, 3).
        faces: (m, 3).
        budget: wanted number of triangles.

    Returns:
        Vertices and faces.
    """
    try:
        import fast_simplification
    except ImportError:
        return cluster(vertices, faces, budget)
    points, triangles = fast_simplification.simplify(
        np.asarray(vertices, dtype=np.float32), np.asarray(faces, dtype=np.int32), target_count=budget
    )
    return np.asarray(points, dtype=float), np.asarray(triangles)


def cluster(vertices: np.ndarray, faces: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Merge vertices that share a cell of a grid, with the finest grid that keeps to the budget.

    Args:
        vertices: (n, 3).
        faces: (m, 3).
        budget: wanted number of triangles.

    Returns:
        Vertices and faces.
    """
    low = vertices.min(axis=0)
    extent = max(float(np.ptp(vertices, axis=0).max()), 1e-12)
    best: tuple[np.ndarray, np.ndarray] | None = None
    coarse, fine = 2, 512
    while coarse <= fine:
        cells = (coarse + fine) // 2
        keys = np.floor((vertices - low) * (cells / extent)).astype(np.int64)
        _, first, merged = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        merged = merged.reshape(-1)
        triangles = merged[faces]
        whole = (triangles[:, 0] != triangles[:, 1]) & (triangles[:, 1] != triangles[:, 2])
        triangles = np.unique(triangles[whole & (triangles[:, 0] != triangles[:, 2])], axis=0)
        if len(triangles) <= budget:
            count = np.bincount(merged, minlength=len(first))[:, None]
            middle = np.zeros((len(first), 3))
            np.add.at(middle, merged, vertices)
            best, coarse = (middle / count, triangles), cells + 1
        else:
            fine = cells - 1
    return best if best is not None else (vertices, faces)
