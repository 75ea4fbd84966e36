"""Reading a mesh file and the files that it may name: pictures, lists of materials and buffers near it.

Mesh files come from anywhere. Only regular files of bounded size are read, so that no pipe can block and no
device can fill the memory, and a mesh file reaches nothing but what lies near it and is called like
something that meshes use.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from robokit.meshes.limits import check_size
from robokit.read_files import open_regular

COMPANIONS = frozenset(
    (".mtl", ".bin", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tga", ".tif", ".tiff", ".webp")
)
"""Endings of the files that a mesh file may name."""

LEVELS = 2
"""Folders above its own that a mesh file may reach, as a robot's relative names may."""


def read_file(path: Path) -> bytes:
    """The content of a regular file.

    Args:
        path: of the file; links are followed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is a folder, pipe, socket or device, or too large.
    """
    try:
        file = open_regular(path)
    except ValueError:
        raise ValueError(f"{path.name!r} is not a regular file") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        check_size(size)
        return file.read(size)


def companion(folder: Path, name: str) -> Path:
    """The file that a mesh file names.

    It lies in the mesh's folder or below one of the two folders above, after links are followed; the root
    of the file system is none of these two.

    Args:
        folder: of the mesh file.
        name: as written there: relative, perhaps with %20 for a space or with backslashes.

    Raises:
        FileNotFoundError: there is none, or it is no file that a mesh file may name.
    """
    wanted = unquote(name).removeprefix("file://").replace("\\", "/")
    here = folder.resolve()
    above = [here, *here.parents]
    root = above[min(LEVELS, max(len(above) - 2, 0))]
    for place in (folder / wanted, folder / Path(wanted).name):
        try:
            found = place.resolve()
            near = found.parent == here or (root != root.parent and found.is_relative_to(root))
            if near and found.suffix.lower() in COMPANIONS and found.is_file():
                return found
        except (OSError, ValueError):  # no name that a file could have
            continue
    raise FileNotFoundError(f"{shortened(name)!r} is not beside the mesh")


def picture_beside(folder: Path, name: str | None) -> tuple[Path | None, str]:
    """The picture of that name, and the name where it is not found.

    Args:
        folder: of the mesh file.
        name: as written there, or None where it names none.
    """
    try:
        return (companion(folder, name) if name else None), ""
    except FileNotFoundError:
        return None, shortened(name or "")


def shortened(name: str) -> str:
    """A name for a message: files may hold names of any length."""
    return name if len(name) <= 120 else name[:117] + "..."
