"""The files that a mesh file may name: pictures, lists of materials and buffers beside it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

COMPANIONS = frozenset(
    (".mtl", ".bin", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tga", ".tif", ".tiff", ".webp")
)
"""Endings of the files that a mesh file may name."""


def companion(folder: Path, name: str) -> Path:
    """The file that a mesh file names.

    Args:
        folder: of the mesh file.
        name: as written there: relative, perhaps with %20 for a space or with backslashes.

    Raises:
        FileNotFoundError: there is none, or it is no file that a mesh file may name.
    """
    wanted = unquote(name).removeprefix("file://").replace("\\", "/")
    root = folder.resolve().parents[min(1, len(folder.resolve().parents) - 1)]
    for place in (folder / wanted, folder / Path(wanted).name):
        found = place.resolve()
        if found.suffix.lower() in COMPANIONS and found.is_relative_to(root) and found.is_file():
            return found
    raise FileNotFoundError(f"{name!r} is not beside the mesh")
