"""Mesh files as surfaces: the one reader behind pictures, contact points and plausibility checks.

Mesh files come from anywhere. What is read is bounded by the size of the file, nothing is fetched, no
program is started, and what comes out is checked before anybody computes with it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from robokit.meshes.collada import read_collada
from robokit.meshes.gltf import read_gltf
from robokit.meshes.surface import Surface, unique_rows
from robokit.meshes.untrusted import (
    Budget,
    check_coordinates,
    companion,
    picture_beside,
    read_file,
    shortened,
)
from robokit.model.geometry import RGBA

# ==== stl obj ply =================================================================================
# STL, OBJ and PLY files: read by trimesh, once their counts have been compared with what is there.
#
# Binary STL files, which most robots have, are read without it: importing trimesh takes longer than reading.
#
# trimesh opens the pictures that a file names with whatever Pillow has for them. It gets none to open here:
# the lists of materials that it reads name them under another key, and the heads of PLY files not at all.


OBJ_STEPS, OBJ_STEPS_A_BYTE = 100_000_000, 20
"""Materials of an OBJ times its vertices, in any file, and more for each of its bytes: trimesh goes through
all vertices for each material."""

MOST_MATERIALS = 2_000
"""Pieces of an OBJ: trimesh compares the names of all of them, and each material is one."""

MOST_SOLIDS = 100
"""Solids of a text STL that are written so that they cannot be joined; trimesh compares all their names."""

LONGEST_PLY_HEAD, MOST_PLY_PROPERTIES = 1 << 16, 64
"""Bytes of the head of a PLY; elements and properties that it describes."""

_PICTURE = "robokit_picture"
_PLY_SIZES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("double", "float64"), 8),
}


def read_with_trimesh(path: Path, content: bytes, budget: Budget) -> Iterator[Surface]:
    """The surfaces of an STL, OBJ or PLY file.

    Args:
        path: of the file; its ending says what it is, and its folder holds what it names.
        content: of the file.
        budget: counts what is made of it.

    Raises:
        ValueError: counts that do not fit the file; and whatever trimesh raises.
    """
    kind = path.suffix.lower().lstrip(".")
    name = None
    if kind == "stl":
        content, binary = _checked_stl(content)
        if binary:
            yield _binary_stl(content, budget)
            return
    elif kind == "obj":
        content = _checked_obj(content)
    else:
        content, name = _checked_ply(content)
    import trimesh

    beside = _Materials(path.parent, budget)
    # As it is: trimesh's processing drops vertices that are not finite without a word.
    with np.errstate(all="ignore"):  # numbers beyond their type are refused afterwards
        loaded: Any = trimesh.load(io.BytesIO(content), file_type=kind, resolver=beside, process=False)
    pieces = loaded.geometry.values() if isinstance(loaded, trimesh.Scene) else [loaded]
    piece: Any
    for piece in pieces:
        if not hasattr(piece, "faces") or not len(piece.faces):
            continue
        budget.piece(len(piece.faces))
        faces, vertices = np.asarray(piece.faces), np.asarray(piece.vertices, dtype=float)
        places = getattr(piece.visual, "uv", None)
        colours, uv, picture, missing = None, None, None, ""
        if places is not None:
            picture, missing = picture_beside(path.parent, _material_picture(piece) or name)
        if picture is not None:
            uv = np.asarray(places, dtype=float)[faces][..., :2]
        elif getattr(piece.visual, "kind", None) in ("vertex", "face"):
            colours = np.asarray(piece.visual.vertex_colors)[:, :3]
        yield Surface(vertices, faces, _colour(piece), colours, uv, picture, missing)


class _Materials(Mapping[str, bytes]):
    """What trimesh may read beside a file: lists of materials, with pictures under a key of ours."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder, self.budget = folder, budget

    def __getitem__(self, name: str) -> bytes:
        path = companion(self.folder, name)
        if path.suffix.lower() != ".mtl":
            raise FileNotFoundError(f"{path.name!r} is no list of materials")
        content = read_file(path)
        self.budget.read(len(content))
        lines = []
        for line in content.decode("utf-8", errors="replace").splitlines():
            key, *rest = line.split(maxsplit=1) or [""]
            if key.lower() == "map_kd":
                line = f"{_PICTURE} {quote(rest[0].strip())}" if rest else ""
            lines.append(line)
        return "\n".join(lines).encode()

    def get(self, name: str, default: Any = None) -> Any:
        """Called by trimesh for pictures: there are none."""
        raise FileNotFoundError(f"{name!r} is not opened")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _binary_stl(content: bytes, budget: Budget) -> Surface:
    """The triangles of a binary STL file: 80 bytes, their number, and of each 12 float32 and 2 bytes."""
    count = int.from_bytes(content[80:84], "little")
    budget.piece(count)
    rows = np.frombuffer(content, np.dtype([("numbers", "<f4", 12), ("more", "<u2")]), count, offset=84)
    vertices = rows["numbers"][:, 3:].reshape(-1, 3).astype(float)
    return Surface(vertices, np.arange(3 * count).reshape(-1, 3))


def _checked_stl(content: bytes) -> tuple[bytes, bool]:
    """An STL file, its solids joined to one, and whether it is a binary one of just its triangles.

    Raises:
        ValueError: it has fewer triangles than it says.
    """
    count, room = int.from_bytes(content[80:84], "little"), max(0, (len(content) - 84) // 50)
    if content[:512].lstrip()[:5].lower() != b"solid":
        if room < count:
            raise ValueError(f"the STL says that it has {count:,} triangles, and there is room for {room:,}")
        return content, len(content) == 84 + 50 * count
    if len(content) == 84 + 50 * count:  # it is binary nevertheless
        return content, True
    text = re.sub(rb"(?i)endsolid[^\n]{0,200}\n\s*solid[^\n]{0,200}\n", b"", _utf8(content))
    solids = len(re.findall(rb"(?i)endsolid", text))
    if solids > MOST_SOLIDS:
        raise ValueError(
            f"the STL has {solids:,} solids on lines with others; at most {MOST_SOLIDS} are read"
        )
    return text, False


def _checked_obj(content: bytes) -> bytes:
    """An OBJ file, its continued lines joined.

    Raises:
        ValueError: it would cost far more than its size.
    """
    text = _utf8(content).replace(b"\r\n", b"\n").replace(b"\\\n", b"")
    materials = len(set(re.findall(rb"usemtl[ \t]+([^\r\n]*)", text)))
    if materials > MOST_MATERIALS:
        raise ValueError(f"the OBJ has {materials:,} materials; at most {MOST_MATERIALS:,} are read")
    vertices = text.count(b"\nv ") + 1
    most = OBJ_STEPS + OBJ_STEPS_A_BYTE * len(content)
    if materials * vertices > most:
        raise ValueError(
            f"the OBJ has {materials:,} materials for {vertices:,} vertices; the product of both may be "
            f"{most:,} at most"
        )
    return text


def _utf8(content: bytes) -> bytes:
    """A text in UTF-8, so that trimesh reads the same text that was counted here."""
    return content if content.isascii() else content.decode("utf-8", errors="replace").encode()


def _checked_ply(content: bytes) -> tuple[bytes, str | None]:
    """A PLY file whose head does not name a picture, and the name.

    Raises:
        ValueError: no head of a PLY, or more elements than there is room for.
    """
    lines: list[str] = []
    end = 0
    while "end_header" not in (lines[-1].split() if lines else ()):
        start, end = end, content.find(b"\n", end) + 1
        if not 0 < end <= LONGEST_PLY_HEAD or not content.startswith(b"ply"):
            raise ValueError(f"it does not begin with the head of a PLY, {LONGEST_PLY_HEAD} bytes at most")
        lines.append(content[start:end].decode("utf-8"))
    text = any(line.split()[:2] == ["format", "ascii"] for line in lines)
    name, needed, properties, elements, count = None, 0, 0, 0, 0
    for line in lines:
        words = line.split()
        if words[:1] == ["element"] and len(words) == 3:
            if not re.fullmatch(r"[0-9]{1,18}", words[2]):
                raise ValueError(f"the PLY has the count {shortened(words[2])!r}, not a whole number from 0")
            count, elements = int(words[2]), elements + 1
        elif words[:1] == ["property"] and len(words) > 2:
            properties += 1
            needed += count * (1 if text else _PLY_SIZES.get(words[2] if words[1] == "list" else words[1], 1))
        elif "texturefile" in line.lower():
            name = line[line.lower().index("texturefile") + len("texturefile") :].strip()
    if max(properties, elements) > MOST_PLY_PROPERTIES:
        raise ValueError(f"the PLY has more than {MOST_PLY_PROPERTIES} elements or properties")
    if needed > len(content) - end:
        raise ValueError(f"the PLY asks for {needed:,} bytes at least, and has {len(content) - end:,}")
    return re.sub(rb"(?i)texturefile", b"picturefile", content[:end]) + content[end:], name


def _material_picture(piece: Any) -> str | None:
    """The name of the picture that the material of a piece has."""
    material = getattr(getattr(piece, "visual", None), "material", None)
    words = (getattr(material, "kwargs", None) or {}).get(_PICTURE)
    return unquote(words[0]) if words else None


def _colour(piece: Any) -> RGBA | None:
    """The one colour of a piece, or None where the file does not say."""
    material: Any = getattr(getattr(piece, "visual", None), "material", None)
    main = getattr(material, "main_color", None)
    if main is None or getattr(material, "name", None) in (None, "default", "material_0"):
        return None
    red, green, blue, alpha = (float(value) / 255.0 for value in main)
    return red, green, blue, alpha


# ==== read mesh ===================================================================================


READERS = {
    ".stl": read_with_trimesh,
    ".obj": read_with_trimesh,
    ".ply": read_with_trimesh,
    ".glb": read_gltf,
    ".gltf": read_gltf,
    ".dae": read_collada,
}
"""Ending of the file's name, in small letters -> its reader."""


def read_mesh(path: Path) -> Iterator[Surface]:
    """The surfaces of a file.

    Args:
        path: the file: STL, OBJ, PLY, GLB, GLTF or COLLADA (.dae), by its ending.

    Yields:
        Those with triangles, with finite vertices, and faces that name vertices.

    Raises:
        ValueError: another format, a file that is not what its ending says, or one beyond the limits of
            :mod:`robokit.meshes.untrusted`.
        OSError: a file that cannot be opened.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        ending = f"ends in {shortened(path.suffix)!r}" if path.suffix else "has no ending"
        raise ValueError(f"its name {ending}; mesh files are {', '.join(READERS)}")
    content = read_file(path)
    try:
        for surface in reader(path, content, Budget(len(content))):
            if len(surface.faces):
                _check(surface)
                yield _with_merged_vertices(_with_used_vertices(_with_valid_picture(surface)))
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as problem:  # the readers meet anything in a file that is not what it should be
        reason = str(problem).strip() or "no more is known"
        raise ValueError(f"the file is not well formed: {type(problem).__name__}: {reason}") from problem


def _with_valid_picture(surface: Surface) -> Surface:
    """The same surface, without its picture where that has no proper places on it."""
    if surface.uv is None:
        return surface
    if surface.uv.shape[2:] == (2,) and np.isfinite(surface.uv).all():
        return surface
    return replace(surface, uv=None, picture=None)


def _with_used_vertices(surface: Surface) -> Surface:
    """The same surface without vertices that no face uses."""
    used = np.zeros(len(surface.vertices), dtype=bool)
    used[surface.faces] = True
    if used.all():
        return surface
    colours = None if surface.colours is None else surface.colours[used]
    faces = (np.cumsum(used) - 1)[surface.faces]
    return replace(surface, vertices=surface.vertices[used], faces=faces, colours=colours)


def _with_merged_vertices(surface: Surface) -> Surface:
    """The same surface with one vertex at a place: formats repeat them for each face or picture corner."""
    vertices, first, merged = unique_rows(surface.vertices)
    if len(vertices) == len(surface.vertices):
        return surface
    colours = None if surface.colours is None else surface.colours[first]
    return replace(surface, vertices=vertices, faces=merged[surface.faces], colours=colours)


def _check(surface: Surface) -> None:
    """Raise ValueError for what no computation should meet."""
    check_coordinates(surface.vertices)
    if surface.faces.min() < 0 or surface.faces.max() >= len(surface.vertices):
        raise ValueError(f"a face names vertex {surface.faces.max()} of {len(surface.vertices)}")
