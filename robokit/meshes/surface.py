"""A piece of a mesh file: triangles with their colours and a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robokit.model.geometry import RGBA

Picture = Path | bytes
"""An image: the path of its file, or the content of one that is stored inside a mesh file."""


@dataclass(frozen=True)
class Surface:
    """A piece of a mesh file.

    Attributes:
        vertices: (n, 3) [m].
        faces: (m, 3) numbers of vertices.
        rgba: the one colour that the file gives it, or None.
        colours: (n, 3) colour of each vertex, 0..255, or None.
        uv: (m, 3, 2) place of each face's corners in the picture, from its lower left to (1, 1), or None.
        picture: the picture that covers it, or None.
        missing: name of the picture that should cover it and was not found, or "".
    """

    vertices: np.ndarray
    faces: np.ndarray
    rgba: RGBA | None = None
    colours: np.ndarray | None = None
    uv: np.ndarray | None = None
    picture: Picture | None = None
    missing: str = ""

    def transform(self, matrix: np.ndarray) -> Surface:
        """The same surface elsewhere; where the matrix mirrors, the winding is turned round.

        Args:
            matrix: (4, 4) of the map.
        """
        faces, uv = self.faces, self.uv
        with np.errstate(all="ignore"):  # what is not finite is refused afterwards
            vertices = self.vertices @ matrix[:3, :3].T + matrix[:3, 3]
            mirrored = np.linalg.det(matrix[:3, :3]) < 0
        if mirrored:
            faces, uv = faces[:, ::-1], None if uv is None else uv[:, ::-1]
        return replace(self, vertices=vertices, faces=faces, uv=uv)


def compose(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """The product of two transforms of a scene, (4, 4) each.

    Raises:
        ValueError: it is not finite.
    """
    with np.errstate(all="ignore"):
        total = outer @ inner
    if not np.isfinite(total).all():
        raise ValueError("a transform of the scene is not finite")
    return total


def used_vertices(faces: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The vertices that faces use: lists of triangles often share the vertices of a whole file.

    Args:
        faces: (m, 3) numbers of vertices.
        count: of the vertices that there are.

    Returns:
        Numbers of the vertices in use (k,), and the faces by their places among them (m, 3).

    Raises:
        ValueError: a face names a vertex that there is not.
    """
    if len(faces) and not 0 <= faces.min() <= faces.max() < count:
        wrong = faces.max() if faces.max() >= count else faces.min()
        raise ValueError(f"a face names vertex {wrong} of {count}")
    used, renumbered = np.unique(faces, return_inverse=True)
    return used, renumbered.reshape(faces.shape)


def unique_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What ``np.unique(rows, axis=0)`` finds, sorted column by column, which takes a fraction of its time.

    Args:
        rows: (n, k).

    Returns:
        The rows in order, each once (m, k); where each comes first (m,); the number of each given row (n,).
    """
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.cumsum(first) - 1
    return ordered[first], order[first], number
