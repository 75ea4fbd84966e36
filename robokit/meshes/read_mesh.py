"""Mesh files as surfaces: the one reader behind pictures, contact points and plausibility checks.

Mesh files come from anywhere. A reader may open what lies beside the file or up to two folders above and is
called like a picture, a list of materials or a buffer, and nothing else; nothing is fetched. What it
returns is checked before anybody computes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.meshes.collada import read_collada
from robokit.meshes.companions import companion
from robokit.meshes.surface import Picture, Surface
from robokit.model.geometry import RGBA

LARGEST = 512 << 20
"""Bytes of a file that is still read."""

MOST_TRIANGLES = 10_000_000
"""Of one file; a scene that places a mesh many times counts it as often."""


def read_mesh(path: Path) -> Iterator[Surface]:
    """The surfaces of a file.

    Args:
        path: the file: STL, OBJ, PLY, GLB, GLTF, COLLADA and whatever else trimesh reads.

    Raises:
        ValueError, OSError: a file that cannot be read; and whatever else its reader raises.
    """
    size = path.stat().st_size
    if size > LARGEST:
        raise ValueError(f"the file has {size >> 20} MB; at most {LARGEST >> 20} are read")
    if path.suffix.lower() == ".dae":
        surfaces = read_collada(path)
    else:
        surfaces = _read(path)
    total = 0
    for surface in surfaces:
        total += len(surface.faces)
        if total > MOST_TRIANGLES:
            raise ValueError(f"the file holds more than {MOST_TRIANGLES:,} triangles")
        if len(surface.faces):
            _check(surface)
            yield _merged(surface)


class _Companions(Mapping[str, bytes]):
    """What trimesh may read beside a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, name: str) -> bytes:
        path = companion(self.folder, name)
        if path.stat().st_size > LARGEST:
            raise FileNotFoundError(f"{name!r} is too large")
        return path.read_bytes()

    def get(self, name: str, default: Any = None) -> Any:
        """As a resolver of trimesh: raises where a mapping would answer None."""
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _read(path: Path) -> Iterator[Surface]:
    import trimesh

    kind = path.suffix.lower().lstrip(".")
    with open(path, "rb") as file:
        if kind == "stl":
            _check_stl(file.read(84), path.stat().st_size)
            file.seek(0)
        # As it is: trimesh's processing drops vertices that are not finite without a word.
        loaded: Any = trimesh.load(file, file_type=kind, resolver=_Companions(path.parent), process=False)
    pieces = loaded.dump() if isinstance(loaded, trimesh.Scene) else [loaded]
    piece: Any
    for piece in pieces:
        if not hasattr(piece, "faces"):
            continue
        faces, vertices = np.asarray(piece.faces), np.asarray(piece.vertices, dtype=float)
        colours, uv, picture = None, None, _picture(piece)
        if picture is not None and getattr(piece.visual, "uv", None) is not None:
            uv = np.asarray(piece.visual.uv, dtype=float)[faces]
        elif getattr(piece.visual, "kind", None) in ("vertex", "face"):
            colours = np.asarray(piece.visual.vertex_colors)[:, :3]
        yield Surface(vertices, faces, _colour(piece), colours, uv, None if uv is None else picture)


def _check_stl(head: bytes, size: int) -> None:
    """Raise ValueError for a binary STL that is shorter than its number of triangles asks for."""
    if head.lstrip()[:5].lower() == b"solid":  # text, or binary that only its reader can tell from it
        return
    count, room = int.from_bytes(head[80:84], "little"), max(0, (size - 84) // 50)
    if room < count:
        raise ValueError(f"the STL says that it has {count} triangles, and there is room for {room}")


def _merged(surface: Surface) -> Surface:
    """The same surface with one vertex at a place: formats repeat them for each face or picture corner."""
    vertices, first, merged = np.unique(surface.vertices, axis=0, return_index=True, return_inverse=True)
    if len(vertices) == len(surface.vertices):
        return surface
    colours = None if surface.colours is None else surface.colours[first]
    return replace(surface, vertices=vertices, faces=merged.reshape(-1)[surface.faces], colours=colours)


def _check(surface: Surface) -> None:
    """Raise ValueError for what no computation should meet."""
    if not np.isfinite(surface.vertices).all():
        raise ValueError("a vertex is not a finite number")
    if surface.faces.min() < 0 or surface.faces.max() >= len(surface.vertices):
        raise ValueError(f"a face names vertex {surface.faces.max()} of {len(surface.vertices)}")


def _picture(piece: Any) -> Picture | None:
    """The picture of a material, whatever trimesh calls it."""
    material = getattr(getattr(piece, "visual", None), "material", None)
    for name in ("image", "baseColorTexture"):
        if getattr(material, name, None) is not None:
            return getattr(material, name)
    return None


def _colour(piece: Any) -> RGBA | None:
    """The one colour of a piece, or None where the file does not say."""
    material: Any = getattr(getattr(piece, "visual", None), "material", None)
    if hasattr(material, "baseColorFactor"):
        return None if material.baseColorFactor is None else _from_linear(material.baseColorFactor)
    main = getattr(material, "main_color", None)
    if main is None or getattr(material, "name", None) in (None, "default", "material_0"):
        return None
    red, green, blue, alpha = (float(value) / 255.0 for value in main)
    return red, green, blue, alpha


def _from_linear(factor: Any) -> RGBA:
    """A colour factor of glTF, 0..255 and linear (glTF 2.0, 3.9.2), in sRGB (IEC 61966-2-1)."""
    light = np.append(np.asarray(factor, dtype=float) / 255.0, 1.0)[:4]
    red, green, blue, _ = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1.0 / 2.4) - 0.055)
    return float(red), float(green), float(blue), float(light[3])
