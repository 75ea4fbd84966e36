"""Meshes and pictures of a recipe's robot, for pages: copies of the files that have the hash in the recipe.

A recipe may come from anybody, and it names files. A file is used only if its content is that of the recipe;
materials, pictures and buffers that a mesh file refers to must be in the recipe, too. Pages are made from
copies, so that no file can be exchanged in between. A description is never read again, and no xacro is
expanded.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from robokit.meshes.untrusted import companion, files_named, read_file, wanted_path
from robokit.model.geometry import Mesh, Shape
from robokit.model.robot import Robot
from robokit.urdf.mesh_files import Resolver


@dataclass(frozen=True)
class Looks:
    """Hashes of the files that a robot looks like, besides its meshes.

    Attributes:
        pictures: SHA-256 by the file's name in the description.
        named: by mesh, SHA-256 of each file that the mesh names, by its name there.
    """

    pictures: Mapping[str, str]
    named: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, robot: Robot) -> Looks:
        """Those of the files that are there."""
        pictures: dict[str, str] = {}
        named: dict[str, dict[str, str]] = {}
        for shape in _shapes(robot):
            mesh = shape.geometry
            if shape.texture and shape.texture_filename:
                pictures[shape.texture_filename] = _hash(Path(shape.texture))
            if isinstance(mesh, Mesh) and mesh.path is not None and mesh.filename not in named:
                named[mesh.filename] = {}
                with contextlib.suppress(OSError, ValueError):
                    found = files_named(Path(mesh.path))
                    named[mesh.filename] = _known({name: _hash(path) for name, path in found.items()})
        return cls(_known(pictures), {name: x for name, x in sorted(named.items()) if x})


def mesh_hashes(robot: Robot) -> dict[str, str]:
    """SHA-256 of the files of all meshes that are there, by name."""
    found: dict[str, str] = {}
    for shape in _shapes(robot):
        mesh = shape.geometry
        if isinstance(mesh, Mesh) and mesh.path is not None and mesh.filename not in found:
            found[mesh.filename] = _hash(Path(mesh.path))
    return _known(found)


@functools.cache
def _folder() -> Path:
    """Where the copies of this process are; removed when it ends."""
    found = tempfile.mkdtemp(prefix="robokit-")
    atexit.register(_remove, found, os.getpid())
    return Path(found)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not where a fork of it ends
        shutil.rmtree(folder, ignore_errors=True)


def with_mesh_copies(robot: Robot, source: Path, meshes: Mapping[str, str], looks: Looks) -> Robot:
    """The robot with copies of its files in its shapes: of those that are as they were.

    Args:
        robot: without files.
        source: the file that its description was read from.
        meshes: SHA-256 by the mesh's name.
        looks: of the other files.
    """
    find, copies = Resolver(source.absolute().parent), dict[str, Path | None]()

    def copy(name: str, hashes: Mapping[str, str]) -> Path | None:
        if name in hashes and name not in copies:
            copies[name] = None
            with contextlib.suppress(OSError, ValueError):
                found = find(name).path
                copies[name] = (
                    None if found is None else _copy(found, hashes[name], looks.named.get(name, {}))
                )
        return copies.get(name) if name in hashes else None

    def shown(shape: Shape) -> Shape:
        mesh, name = shape.geometry, shape.texture_filename
        if isinstance(mesh, Mesh):
            shape = replace(shape, geometry=replace(mesh, path=copy(mesh.filename, meshes)))
        picture = None if name is None else copy(name, looks.pictures)
        return replace(shape, texture=None if picture is None else str(picture))

    links = tuple(
        replace(link, visuals=tuple(map(shown, link.visuals)), collisions=tuple(map(shown, link.collisions)))
        for link in robot.links
    )
    return replace(robot, links=links)


def _copy(path: Path, known: str, named: Mapping[str, str]) -> Path | None:
    """The copy of a file, with those that it names beside it; None where it is not what it was."""
    content = read_file(path)
    if hashlib.sha256(content).hexdigest() != known:
        return None
    beside = {}
    for name, hash_of_it in named.items():
        with contextlib.suppress(OSError, ValueError):
            more = read_file(companion(path.parent, name))
            if hashlib.sha256(more).hexdigest() == hash_of_it:
                beside[Path(wanted_path(name)).name] = more
    key = repr(
        (path.name, known, sorted((name, hashlib.sha256(x).hexdigest()) for name, x in beside.items()))
    )
    # Three folders deep: what a mesh may name ends within them.
    place = _folder() / hashlib.sha256(key.encode()).hexdigest()[:16] / "a" / "b"
    if not (place / path.name).exists():
        place.mkdir(parents=True, exist_ok=True)
        for name, more in beside.items():
            (place / name).write_bytes(more)
        (place / path.name).write_bytes(content)
    return place / path.name


def _shapes(robot: Robot) -> Iterator[Shape]:
    for link in robot.links:
        yield from (*link.visuals, *link.collisions)


def _hash(path: Path) -> str:
    """SHA-256 of a file; "" where it cannot be read."""
    try:
        return hashlib.sha256(read_file(path)).hexdigest()
    except (OSError, ValueError):
        return ""


def _known(hashes: Mapping[str, str]) -> dict[str, str]:
    return {name: x for name, x in sorted(hashes.items()) if x}
