"""Mesh and texture files that are not there, are Git LFS pointers, or say which axis is up; and meshes that
cannot be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from robokit.model.geometry import Mesh
from robokit.urdf.description import RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver

MeshBox = Callable[[str], tuple[np.ndarray, np.ndarray] | None]
"""File name of a mesh as written -> lowest and highest corner in its file's frame, or None."""


def check_files(robot: RobotDescription, resolver: Resolver, report: Report) -> None:
    """Warns of meshes and textures that are not there, once for each file or missing package."""
    present: set[str] = set()
    for link in robot.links:
        for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                geometry = shape.geometry
                if not isinstance(geometry, Mesh) or geometry.filename in present:
                    continue
                if resolver(geometry.filename).file is not None:
                    present.add(geometry.filename)
                    continue
                where = f"link {link.name!r} {kind}"
                _missing(geometry.filename, "mesh", where, shape.line, resolver, report)
    for material in robot.material_table().values():
        if material.texture and resolver(material.texture).file is None:
            where = f"material {material.name!r}"
            _missing(material.texture, "texture", where, material.line, resolver, report)


def check_heads(robot: RobotDescription, resolver: Resolver, report: Report, z_up: bool) -> None:
    """What the first bytes of meshes and textures say: Git LFS pointers, and COLLADA's up axis.

    Each is told once, with the number of its files: one command fetches all of a repository.

    Args:
        robot, resolver, report: as for :func:`check_files`.
        z_up: whether shapes were turned by the up axes already.
    """
    from robokit.meshes.collada import up_axis
    from robokit.meshes.untrusted import FETCH, POINTER, head_of

    seen: set[str] = set()

    def pointer(name: str, what: str, where: str, line: int) -> bool:
        path = resolver(name).path
        if path is None or name in seen:
            return True
        seen.add(name)
        if head_of(path, 32).startswith(POINTER):
            message = f"{what} {name!r} is a Git LFS pointer, not the file itself"
            report.once("mesh-lfs-pointer", what, where, line, message, FETCH)
            return True
        return False

    for link in robot.links:
        for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                if not isinstance(shape.geometry, Mesh):
                    continue
                name, where = shape.geometry.filename, f"link {link.name!r} {kind}"
                if pointer(name, "mesh", where, shape.line):
                    continue
                up = "Z" if z_up else up_axis(resolver(name).path)
                if up != "Z":
                    message = (
                        f"mesh {name!r} says that {up.lower()} is up; it is read as if z were, as in RViz"
                    )
                    report.once("mesh-up-axis", "", where, shape.line, message)
    for material in robot.material_table().values():
        if material.texture:
            pointer(material.texture, "texture", f"material {material.name!r}", material.line)


def mesh_boxes(robot: RobotDescription, resolver: Resolver, report: Report) -> MeshBox:
    """Reads every mesh once; warns of those that cannot be read.

    Returns:
        File name as written -> lowest and highest corner (3,) in the file's own frame and unit, None where
        there is no such box.
    """
    boxes: dict[str, tuple[np.ndarray, np.ndarray] | None] = {}
    for link in robot.links:
        for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                if isinstance(shape.geometry, Mesh) and shape.geometry.filename not in boxes:
                    name = shape.geometry.filename
                    boxes[name], problem = _mesh_box(resolver(name).path)
                    if problem:
                        where = f"link {link.name!r} {kind}"
                        message = f"mesh {name!r} cannot be read: {problem}"
                        report.add("mesh-unreadable", where, shape.line, message)
    return boxes.get


def _mesh_box(path: Path | None) -> tuple[tuple[np.ndarray, np.ndarray] | None, str]:
    """The box of a mesh file, and why there is none."""
    if path is None:  # a missing file has a finding of its own
        return None, ""
    from robokit.meshes.read_mesh import read_mesh  # seven modules that loading does without
    from robokit.meshes.untrusted import POINTER, head_of

    if head_of(path, 32).startswith(POINTER):  # it has a finding of its own, too
        return None, ""
    try:
        points = [surface.vertices for surface in read_mesh(path) if len(surface.vertices)]
    except Exception as problem:  # each reader fails in its own way, and none may stop the check
        said = getattr(problem, "strerror", None) or str(problem).strip()
        return None, said or f"no further reason is known ({type(problem).__name__})"
    if not points:
        return None, "it holds no triangles"
    corners = np.concatenate(points)
    return (corners.min(axis=0), corners.max(axis=0)), ""


def _missing(filename: str, what: str, where: str, line: int, resolver: Resolver, report: Report) -> None:
    found = resolver(filename)
    tried = "; tried " + ", ".join(found.tried) if found.tried else ""
    if found.reason:
        tried = f": {found.reason}{tried}"
    if found.package is not None:
        message = f"{what} {filename!r} was not found: there is no package {found.package!r}"
        kind = f"package {found.package}"
        same = _same_name(found.package, resolver.roots, resolver)
        hint = f"pass package_dirs=[the folder that holds {found.package!r}]"
        if same is not None:
            hint = f"did you mean {same!r}? the names differ in capitals"
        report.once(f"{what}-unresolved", kind, where, line, message + tried, hint)
    else:
        packaged = filename.startswith(("package:", "model:"))
        advice = None if packaged else "correct the name; dynamics do not need it"
        message = f"{what} {filename!r} was not found{tried}"
        near = _near_file(found.tried, resolver, report)
        report.once(f"{what}-unresolved", filename, where, line, message, near or advice)


def _near_file(tried: Iterable[str], resolver: Resolver, report: Report) -> str | None:
    """A hint with the file that is there under nearly the same name."""
    for path in tried:
        there = _other_capitals(Path(path), resolver)
        if there is not None:
            same = os.path.commonpath((there, path))
            return f"did you mean {os.path.relpath(there, same)!r}? the names differ in capitals"
    for path in tried:
        files = resolver.entries(os.path.dirname(path))
        near = report.nearest(Path(path).name, files) if files else None
        if near is not None:
            return near
    return None


def _other_capitals(path: Path, resolver: Resolver) -> Path | None:
    """The file whose path differs from this one in capitals only, if there is one."""
    missing: list[str] = []
    here = path
    while not here.is_dir():
        if here.parent == here:
            return None
        missing.append(here.name)
        here = here.parent
    for name in reversed(missing):
        same = name if (here / name).exists() else _same_name(name, [str(here)], resolver)
        if same is None:
            return None
        here = here / same
    return here if here.is_file() else None


def _same_name(name: str, folders: Iterable[str], resolver: Resolver) -> str | None:
    """The first entry of folders whose name differs from this one in capitals only."""
    folded = name.casefold()
    for folder in folders:
        for entry in resolver.entries(folder):
            if entry.casefold() == folded and entry != name:
                return entry
    return None
