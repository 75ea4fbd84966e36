"""Mesh files as surfaces: the one reader behind pictures, contact points and plausibility checks.

Mesh files come from anywhere. What is read is bounded by the size of the file, nothing is fetched, no
program is started, and what comes out is checked before anybody computes with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from robokit.meshes.collada import read_collada
from robokit.meshes.gltf import read_gltf
from robokit.meshes.stl_obj_ply import read_with_trimesh
from robokit.meshes.surface import Surface, unique_rows
from robokit.meshes.untrusted import Budget, check_coordinates, read_file, shortened

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
