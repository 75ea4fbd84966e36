"""Reading a mesh file and the files that it may name: pictures, lists of materials and buffers near it.

Mesh files come from anywhere. Only regular files of bounded size are read, so that no pipe can block and no
device can fill the memory, and a mesh file reaches nothing but what lies near it and is called like
something that meshes use.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from urllib.parse import unquote

from robokit.files import open_regular
from robokit.meshes.untrusted import check_size

COMPANIONS = frozenset(
    (".mtl", ".bin", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tga", ".tif", ".tiff", ".webp")
)
"""Endings of the files that a mesh file may name."""

POINTER = (b"version https://git-lfs", b"version https://hawser")
"""First bytes of a Git LFS pointer: the few lines that stand for a file until ``git lfs pull`` fetches it.

Source: Git LFS specification, "The Pointer", and its form before version 1.
"""

FETCH = "fetch the files of its repository: git lfs pull"
"""What to do about one."""

LEVELS = 2
"""Folders above its own that a mesh file may reach, as a robot's relative names may."""


_ENDS = re.compile(rb"\.(?:%s)[ \t]*(?=[<>\"\r\n]|\Z)" % b"|".join(e[1:].encode() for e in COMPANIONS), re.I)
"""Where a name may end in a mesh file, before what ends it in XML, JSON and lines of words."""

_LONGEST_NAME = 1000


def read_file(path: Path) -> bytes:
    """The content of a regular file.

    Args:
        path: of the file; links are followed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is a folder, pipe, socket or device, too large, or a Git LFS pointer.
    """
    try:
        file = open_regular(path)
    except ValueError:
        raise ValueError(f"{path.name!r} is not a regular file") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        check_size(size)
        content = file.read(size)
    if content.startswith(POINTER):
        raise ValueError(f"{shortened(path.name)!r} is a Git LFS pointer, not the file itself; {FETCH}")
    return content


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of a regular file; none of what cannot be read, which its reader says."""
    try:
        with open_regular(path) as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def wanted_path(name: str) -> str:
    """The path that a mesh file means by a name: with %20 for a space, perhaps, or with backslashes."""
    return unquote(name).removeprefix("file://").replace("\\", "/")


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
    wanted = wanted_path(name)
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


def files_named(path: Path) -> dict[str, Path]:
    """The files that a mesh file may name, and their own lists of materials, by their names there.

    The text is looked through for names of files that are there, without reading the mesh: there may be more
    of them than the mesh uses.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    found: dict[str, Path] = {}
    waiting = [path]
    while waiting:
        content = read_file(waiting.pop())
        for end in _ENDS.finditer(content):
            start = max(0, end.end() - _LONGEST_NAME)
            line = re.split(rb"[<>\"\r\n]", content[start : end.end()])[-1].decode(errors="replace").strip()
            words = html.unescape(line).split(" ")
            for name in (" ".join(words[k:]) for k in range(len(words))):  # "mtllib NAME", "map_Kd -s 1 NAME"
                if name and name not in found:
                    try:
                        found[name] = companion(path.parent, name)
                    except FileNotFoundError:
                        continue
                    if found[name].suffix.lower() == ".mtl":
                        waiting.append(found[name])
    return found


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
