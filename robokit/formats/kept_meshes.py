"""Meshes that a description holds itself, as files: a robot's meshes are files that others can read, too."""

from __future__ import annotations

import hashlib
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.files import replacing

FOLDER = "meshes"
"""Name of the folder of these meshes, in the folder of compiled code."""


def file_of_mesh(name: str, points: np.ndarray, faces: np.ndarray) -> Path:
    """The binary STL of a mesh, named after it and its content, written where it is not there yet.

    Args:
        name: of the mesh.
        points: (n, 3) [m].
        faces: (m, 3) numbers of points.
    """
    content = stl_bytes(np.asarray(points, dtype="<f4")[np.asarray(faces, dtype=np.int64)])
    stem = re.sub(r"[^\w-]+", "_", Path(name).stem)[:40] or "mesh"
    path = _folder() / f"{stem}_{hashlib.sha256(content).hexdigest()[:16]}.stl"
    if not path.is_file() or path.stat().st_size != len(content):
        with replacing(path) as new:
            new.write_bytes(content)
    return path


def stl_bytes(corners: np.ndarray) -> bytes:
    """A binary STL of triangles, by their corners (m, 3, 3) [m]."""
    corners = np.asarray(corners, dtype="<f4")
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    rows = np.zeros(len(corners), dtype=[("numbers", "<f4", 12), ("count", "<u2")])
    rows["numbers"][:, :3] = normals / np.where(lengths > 0.0, lengths, 1.0)
    rows["numbers"][:, 3:] = corners.reshape(-1, 9)
    return bytes(80) + len(rows).to_bytes(4, "little") + rows.tobytes()


def is_kept(path: Path) -> bool:
    """Whether a file is one that :func:`file_of_mesh` made: others should not name it."""
    return path.is_relative_to(_folder())


@lru_cache(maxsize=1)
def _folder() -> Path:
    """Where the files are kept; a temporary folder where there is no other."""
    try:
        folder = disk_cache.folder() / FOLDER
        disk_cache.make_folder(folder)
        disk_cache.check_folder(folder)
    except (OSError, RuntimeError, disk_cache.NotTrusted):
        return Path(tempfile.mkdtemp(prefix="robokit_"))
    return folder


ELLIPSOID_RINGS, ELLIPSOID_POINTS = 12, 24
"""Of the mesh that stands for an ellipsoid or a cone; an ellipsoid's is at most 2 % of the radius inside."""


def ellipsoid_mesh(radii: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points and faces of a mesh inside an ellipsoid."""
    n, m = ELLIPSOID_POINTS, ELLIPSOID_RINGS
    theta = np.pi * np.arange(1, m) / m
    phi = 2.0 * np.pi * np.arange(n) / n
    ring = np.array([[np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)] for t in theta for p in phi])
    points = np.vstack([ring, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]]) * np.asarray(radii, dtype=float)
    top, bottom, faces = len(ring), len(ring) + 1, []
    for k in range(n):
        after = (k + 1) % n
        faces += [(top, k, after), (bottom, (m - 2) * n + after, (m - 2) * n + k)]
        for r in range(m - 2):
            a, b, c, d = r * n + k, r * n + after, (r + 1) * n + k, (r + 1) * n + after
            faces += [(a, c, b), (b, c, d)]
    return points, np.array(faces)


def cone_mesh(radius: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and faces of a mesh inside a cone along z, centred, with its tip up."""
    n = ELLIPSOID_POINTS
    phi = 2.0 * np.pi * np.arange(n) / n
    ring = np.stack([radius * np.cos(phi), radius * np.sin(phi), np.full(n, -length / 2.0)], axis=1)
    points = np.vstack([ring, [[0.0, 0.0, length / 2.0], [0.0, 0.0, -length / 2.0]]])
    faces = [face for k in range(n) for face in ((n, k, (k + 1) % n), (n + 1, (k + 1) % n, k))]
    return points, np.array(faces)
