"""Limits for files of unknown origin: the size of a mesh, the files that it may name, the images.

Small files that multiply are refused before the work begins. What a file holds grows with its bytes: a binary
STL takes 50 bytes a triangle, the tightest text about 6. More than that comes from meshes that a scene places
many times, and from counts without data.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from robokit.files import open_regular

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_BYTES = 512 << 20  # bytes of a mesh file, together with the buffers and lists of materials that it names

MOST_TRIANGLES, FREE_TRIANGLES, BYTES_A_TRIANGLE = 10_000_000, 100_000, 2
"""Triangles: at most; in any file; bytes of the file for each one beyond. Meshes placed twice count twice."""

MOST_PIECES, MOST_PLACES, FREE_PLACES, BYTES_A_PLACE = 20_000, 50_000, 1_000, 20
"""Pieces at most, nodes and instances of a scene at most; either in any file; bytes for each beyond."""

LARGEST_COORDINATE = 1e18
"""Largest coordinate [m]: the square of a distance is still a single-precision number, as pages and graphics
cards compute with. So is that of its inverse, the smallest unit of length."""

MOST_TAGS = 4_000_000  # elements of XML or entries of JSON, which take far more memory than characters


class Budget:
    """What is left of the triangles, pieces and places that a file of this size may have."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._triangles = self._pieces = self._places = self._copied = 0

    def read(self, size: int) -> None:
        """Count the bytes of another file that the mesh file names; ValueError where they are too many."""
        self._size += size
        check_size(self._size, "the file and those it names have")

    def copied(self, size: int) -> None:
        """Count the bytes of a picture that is stored in the file; ValueError beyond those of the file."""
        self._copied += size
        if self._copied > self._size:
            raise ValueError(f"its pictures have more bytes than the file, which has {self._size:,}")

    @property
    def most_triangles(self) -> int:
        """Number of triangles that the file may have."""
        return min(MOST_TRIANGLES, FREE_TRIANGLES + self._size // BYTES_A_TRIANGLE)

    def triangles(self, count: int) -> None:
        """Count triangles that will be made; ValueError where they are too many."""
        self._triangles += count
        if self._triangles > self.most_triangles:
            raise ValueError(
                f"it holds more than {self.most_triangles:,} triangles; accepted are {FREE_TRIANGLES:,}, "
                f"one more for every {BYTES_A_TRIANGLE} of its {self._size:,} bytes, and at most "
                f"{MOST_TRIANGLES:,}"
            )

    def piece(self, triangles: int) -> None:
        """Count a piece that will be made, with its triangles; ValueError where they are too many."""
        self._pieces += 1
        self._check(self._pieces, "pieces", MOST_PIECES)
        self.triangles(triangles)

    def place(self) -> None:
        """Count a node or an instance of a scene; ValueError where they are too many."""
        self._places += 1
        self._check(self._places, "nodes and instances", MOST_PLACES)

    def _check(self, count: int, what: str, most: int) -> None:
        allowed = min(most, FREE_PLACES + self._size // BYTES_A_PLACE)
        if count > allowed:
            raise ValueError(
                f"it has more than {allowed:,} {what}; accepted are {FREE_PLACES:,}, one more for every "
                f"{BYTES_A_PLACE} of its {self._size:,} bytes, and at most {most:,}"
            )


def check_size(size: int, what: str = "the file has") -> None:
    """Raise ValueError for more bytes than are read."""
    if size > MOST_BYTES:
        raise ValueError(f"{what} {size >> 20:,} MB; at most {MOST_BYTES >> 20:,} MB are read")


def check_tags(count: int, what: str) -> None:
    """Raise ValueError for more elements of a text than are read."""
    if count > MOST_TAGS:
        raise ValueError(f"it has {count:,} {what}; at most {MOST_TAGS:,} are read")


def check_coordinates(vertices: np.ndarray) -> None:
    """Raise ValueError for vertices that no computation should meet."""
    if not np.isfinite(vertices).all():
        raise ValueError("a vertex is not a finite number")
    if len(vertices) and (largest := float(np.abs(vertices).max())) > LARGEST_COORDINATE:
        raise ValueError(
            f"a vertex has the coordinate {largest:.3g}; at most {LARGEST_COORDINATE:g} are read"
        )


def scaled(vertices: np.ndarray, scale: tuple[float, float, float]) -> np.ndarray:
    """Vertices times a description's scale, (n, 3) [m]; ValueError if they are too far away."""
    with np.errstate(all="ignore"):
        found = np.asarray(vertices, dtype=float) * np.asarray(scale, dtype=float)
    check_coordinates(found)
    return found


# ---- which files are read ------------------------------------------------------------------------
# Only regular files of bounded size are read, so that no pipe can block and no device can fill the memory. A
# mesh file reaches nothing but what lies near it and has the ending of something that meshes use.

COMPANIONS = frozenset(
    (".mtl", ".bin", ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tga", ".tif", ".tiff", ".webp")
)
"""Endings of the files that a mesh file may name."""

POINTER = (b"version https://git-lfs", b"version https://hawser")
"""First bytes of a Git LFS pointer: the few lines that stand for a file until ``git lfs pull`` fetches it.

Source: Git LFS specification, "The Pointer", and its form before version 1.
"""

FETCH = "fetch the files of its repository: git lfs pull"  # what to do about a Git LFS pointer
LEVELS = 2  # folders above its own that a mesh file may reach, as a robot's relative names may


_ENDS = re.compile(rb"\.(?:%s)[ \t]*(?=[<>\"\r\n]|\Z)" % b"|".join(e[1:].encode() for e in COMPANIONS), re.I)
"""Where a name may end in a mesh file, before what ends it in XML, JSON and lines of words."""

_LONGEST_NAME = 1000


def read_file(path: Path) -> bytes:
    """The content of a regular file; links are followed.

    Raises OSError if it cannot be read, ValueError for a folder, pipe, socket or device, a Git LFS pointer,
    or a file that is too large.
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


def file_state(path: Path) -> tuple[int, int]:
    """When a file was changed [ns], and its length [bytes]: where both are the same, so is its content."""
    state = os.stat(path)
    return state.st_mtime_ns, state.st_size


def content_key(path: Path, *beside: str) -> tuple[str, str] | None:
    """The ending and the hash of a file, on which all depends that is read of it.

    None where it has one of the endings ``beside``, of formats that have some of it in files beside it.
    Errors as of :func:`read_file`.
    """
    ending = path.suffix.lower()
    return None if ending in beside else (ending, _hash(path, file_state(path)))


@lru_cache(maxsize=256)
def _hash(path: Path, state: tuple[int, int]) -> str:
    return hashlib.sha256(read_file(path)).hexdigest()


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


def companion(folder: Path, name: str, read: bool = False) -> Path:
    """The file that a mesh file names.

    It lies in the mesh's folder or below one of the two folders above, after links are followed; the root of
    the file system is none of these two. The name may have %20 for a space, or backslashes. ``read``: whether
    the content is read with the mesh; that of a picture is not. Raises FileNotFoundError if there is none, or
    it is no file that a mesh file may name.
    """
    note_names([f"{_READ if read else _SEEN}{name}"])
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


_NOTED: ContextVar[dict[str, None] | None] = ContextVar("names that are looked for", default=None)
_READ, _SEEN = "+", "-"  # before a name that is noted: whether the file is read with the mesh


@contextlib.contextmanager
def noting_names() -> Iterator[dict[str, None]]:
    """The names of files that readers look for beside a mesh meanwhile, in that order."""
    noted: dict[str, None] = {}
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def note_names(names: Iterable[str]) -> None:
    """That files of these names are looked for, or were when what is now used was read."""
    noted = _NOTED.get()
    if noted is not None:
        noted.update(dict.fromkeys(names))


def state_beside(folder: Path, names: Iterable[str]) -> list[str]:
    """All that a mesh depends on of files with these names: where each is, and the hash of what is read."""
    found = []
    for name in names:
        try:
            path = companion(folder, name[1:])
            content = _hash(path, file_state(path)) if name[0] == _READ else ""
            found += [os.path.relpath(path, folder.resolve()), content]
        except (OSError, ValueError):  # none, or one that its reader refuses
            found += ["", ""]
    return found


def files_named(path: Path) -> dict[str, Path]:
    """The files that a mesh file may name, and their own lists of materials, by their names there.

    The text is looked through for names of files that are there, without reading the mesh: there may be more
    of them than the mesh uses. Raises OSError or ValueError if the file cannot be read.
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
    """The picture of a name in a mesh file of this folder, and the name where it is not found."""
    try:
        return (companion(folder, name) if name else None), ""
    except FileNotFoundError:
        return None, shortened(name or "")


def shortened(name: str) -> str:
    """A name for a message: files may hold names of any length."""
    return name if len(name) <= 120 else name[:117] + "..."


# ---- which pictures are opened -------------------------------------------------------------------
# Pillow reads more formats than meshes use, and starts another program for some of them (Ghostscript for
# PostScript). So the format is told from the content, whatever the file is called, and Pillow is given that
# format alone. Sizes are compared before anything is decoded.

MOST_PIXELS, LONGEST_SIDE = 1 << 25, 16_384  # pixels of a picture, 8192 x 4096, and of its longest side
MOST_SCANS = 200  # of a progressive JPEG, usually ten: each costs the time of the whole picture

_FIRST_BYTES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"BM": "BMP",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
_TILE_WIDTH, _TILE_HEIGHT = 322, 323
ACCEPTED = "PNG, JPEG, BMP, TGA, GIF, WebP and TIFF"


def open_picture(picture: Path | bytes) -> Image:
    """A picture, by its path or content, with its size checked and its pixels not yet decoded.

    Raises ValueError for a format that is not accepted, a damaged head or too many pixels, OSError for a file
    that cannot be read.
    """
    from PIL import Image

    content = picture if isinstance(picture, bytes) else read_file(picture)
    kind = picture_format(content, "" if isinstance(picture, bytes) else picture.suffix)
    if kind == "JPEG" and content.count(b"\xff\xda") > MOST_SCANS:
        raise ValueError(f"the JPEG has more than {MOST_SCANS} scans")
    if kind == "WEBP":
        _check_pixels(*_webp_size(content))  # Pillow makes room for the pixels when it opens the file
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the caller raises an error
            image = Image.open(io.BytesIO(content), formats=[kind])
    except Image.UnidentifiedImageError as problem:
        raise ValueError(f"it begins like a {kind} and is none") from problem
    except Image.DecompressionBombError as problem:
        raise ValueError(f"the picture is too large: {problem}") from problem
    _check_pixels(*image.size)
    if kind == "TIFF":  # it is decoded tile by tile, and a tile may be larger than the picture
        tags = getattr(image, "tag_v2", {})
        _check_pixels(*(int(tags.get(tag, 0)) for tag in (_TILE_WIDTH, _TILE_HEIGHT)))
    return image


def picture_format(content: bytes, suffix: str = "") -> str:
    """Pillow's name of the format that the content has; ValueError for none of the accepted ones.

    The suffix of the name counts for a TGA file, which may have nothing else that tells it.
    """
    for start, kind in _FIRST_BYTES.items():
        if content.startswith(start):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    if content[-18:] == b"TRUEVISION-XFILE.\0" or (suffix.lower() == ".tga" and _is_tga(content)):
        return "TGA"
    raise ValueError(f"it is not one of the picture formats {ACCEPTED}")


def _is_tga(content: bytes) -> bool:
    """Whether the header of a TGA file could begin so: it has no first bytes of its own."""
    if len(content) < 18:
        return False
    palette, kind, depth = content[1], content[2], content[16]
    return palette in (0, 1) and kind in (1, 2, 3, 9, 10, 11) and depth in (8, 15, 16, 24, 32)


def _webp_size(content: bytes) -> tuple[int, int]:
    """Width and height that the first chunk of a WebP file gives (RFC 9649)."""
    kind, data = content[12:16], content[20:30]
    if len(data) < 10:
        raise ValueError("the WebP ends in its header")
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[4:7], "little"), 1 + int.from_bytes(data[7:10], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(data[6:8], "little") & 0x3FFF, int.from_bytes(data[8:10], "little") & 0x3FFF


def _check_pixels(width: int, height: int) -> None:
    if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise ValueError(
            f"the picture has {width} x {height} pixels; at most {MOST_PIXELS:,} are opened, "
            f"and {LONGEST_SIDE:,} along a side"
        )
