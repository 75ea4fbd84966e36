"""Mesh files as vertices, faces and colours: the one reader behind pictures and contact points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from robokit.model.collada import Part, read_collada
from robokit.model.geometry import RGBA


def read_mesh(path: Path) -> Iterator[Part]:
    """Vertices (n, 3) [m], faces (m, 3) and colour of each part of a file.

    Args:
        path: the file; any format that trimesh reads, and COLLADA.

    Yields:
        One part for each piece of the file; its colour is None where the file gives none.

    Raises:
        ValueError, OSError: a file that cannot be read; and whatever else its reader raises.
    """
    if path.suffix.lower() == ".dae":
        yield from read_collada(path)
        return
    import trimesh

    loaded: Any = trimesh.load(path, process=True)
    pieces = loaded.dump() if isinstance(loaded, trimesh.Scene) else [loaded]
    piece: Any
    for piece in pieces:
        if hasattr(piece, "faces"):
            yield np.asarray(piece.vertices), np.asarray(piece.faces), _colour(piece)


def _colour(piece: Any) -> RGBA | None:
    """The one colour of a part, or None where the file does not say."""
    material = getattr(getattr(piece, "visual", None), "material", None)
    main = getattr(material, "main_color", None)
    if main is None or getattr(material, "name", None) in (None, "default", "material_0"):
        return None
    red, green, blue, alpha = (float(value) / 255.0 for value in main)
    return red, green, blue, alpha
