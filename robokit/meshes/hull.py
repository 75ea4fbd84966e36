"""Corners of the convex hull of a mesh file: all of a mesh that can touch a plane."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

from robokit import disk_cache as cache
from robokit.meshes.companions import read_file
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.untrusted import scaled
from robokit.model.geometry import Mesh


def solid_hull(points: np.ndarray, growing: bool = False) -> Any:
    """scipy's convex hull of points (n, 3), None where they are in one plane or fewer than four."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return ConvexHull(points, incremental=growing)
    except (QhullError, ValueError):
        return None


def hull_corners(mesh: Mesh) -> np.ndarray:
    """Corners of a mesh's convex hull, (n, 3) in the shape's frame [m], its scale applied.

    Raises:
        FileNotFoundError: the mesh names a file that was not found.
        ValueError, OSError: a file that cannot be read, and whatever else its reader raises.
    """
    path = mesh.path
    if path is None:
        raise FileNotFoundError(f"mesh {mesh.filename!r} was not found")
    file = os.stat(path)
    return scaled(_corners(path, mesh.filename, (file.st_mtime_ns, file.st_size)), mesh.scale)


@functools.lru_cache(maxsize=256)
def _corners(path: Path, name: str, state: tuple[int, int]) -> np.ndarray:
    """Corners of a file's hull, unscaled; kept, because robots of one file are made again and again."""

    def made() -> list[np.ndarray]:
        used = [s.vertices[np.unique(s.faces)] for s in read_mesh(path) if len(s.faces)]
        if not used:
            raise ValueError(f"mesh {name!r} holds no triangles")
        return [_hull(np.concatenate(used))]

    # The numbers of a GLTF may be in files beside it, so its own content is no key for the cache.
    if path.suffix.lower() == ".gltf":
        (corners,) = made()
    else:
        (corners,) = cache.arrays("convex hull", ("hull", path.suffix, read_file(path)), made)
    if not (len(corners) and np.isfinite(corners).all()):
        raise ValueError(f"mesh {name!r} holds no points")
    return corners


def _hull(points: np.ndarray) -> np.ndarray:
    """Corners of the hull of points; those in one plane get noise that makes them a solid."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        found = ConvexHull(points, qhull_options="QbB Pp Qt")  # scaled to a cube: its size does not matter
    except QhullError:
        found = ConvexHull(points, qhull_options="QJ")
    return points[np.sort(found.vertices)]
