"""URDF in, Robot out: read, judge, build."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robokit.conventions import FLOATING_BASE
from robokit.diagnostics import Diagnostic
from robokit.errors import UnknownName
from robokit.model.geometry import Mesh, Shape
from robokit.urdf.check import check, fixed_base_name
from robokit.urdf.description import JointDescription, RobotDescription, ShapeDescription
from robokit.urdf.parse import parse_path, parse_text
from robokit.urdf.report import Report, refusal
from robokit.urdf.resolve import Resolver

if TYPE_CHECKING:
    from robokit.model.robot import Robot

BASES = ("fixed", "floating")
MIMICS = ("independent", "couple")
PathLike = str | os.PathLike[str]


def load_urdf(
    path: PathLike,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    mimic: str = "independent",
) -> Robot:
    """Load a robot from a URDF file.

    Values are taken as written. What a careful reader would look at twice is in ``robot.diagnostics``.

    Args:
        path: the .urdf file.
        base: "fixed" (the root link is body 0) or "floating" (a 6-dof joint carries the root link).
        package_dirs: folders searched first for ``package://`` files.
        strict: refuse warnings like errors.
        mimic: "independent" (each mimic joint keeps a coordinate of its own) or "couple" (mimic joints
            follow, and their coordinates are gone; see ``robot.coupling``).

    Raises:
        UrdfError: the file cannot be loaded; the message and ``.diagnostics`` hold every problem found.
        UnknownName: no such base, or no such treatment of mimic joints.
        ModelError: mimic="couple" and a mimic joint, or the one it follows, has several coordinates.
    """
    _check_base(base)
    _check_mimic(mimic)
    report = Report(os.fspath(path) if not isinstance(path, bytes) else os.fsdecode(path))
    description = parse_path(path, report)
    return _robot(description, report, base, Resolver(_folder(path), _dirs(package_dirs)), strict, mimic)


def loads_urdf(
    text: str | bytes,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    folder: PathLike | None = None,
    mimic: str = "independent",
) -> Robot:
    """Load a robot from the text of a URDF.

    Args:
        text: the XML; bytes are decoded by their byte order mark or declaration.
        base, package_dirs, strict, mimic: as for :func:`load_urdf`.
        folder: where relative mesh names start; none by default.

    Raises:
        UrdfError, UnknownName, ModelError: as :func:`load_urdf`.
    """
    _check_base(base)
    _check_mimic(mimic)
    report = Report("<string>")
    description = parse_text(text, report)
    resolver = Resolver(None if folder is None else Path(folder), _dirs(package_dirs))
    return _robot(description, report, base, resolver, strict, mimic)


def check_urdf(
    path_or_text: PathLike | bytes, base: str = "fixed", package_dirs: Sequence[PathLike] = ()
) -> tuple[RobotDescription | None, list[Diagnostic]]:
    """Judge a URDF without building a robot; never raises over the file.

    Args:
        path_or_text: a path, or the XML itself (bytes, or a string that begins with "<").
        base, package_dirs: as for :func:`load_urdf`.

    Returns:
        The description (None where nothing can be read) and all findings, errors first.
    """
    _check_base(base)
    folder = None
    if isinstance(path_or_text, bytes) or str(path_or_text).lstrip("\ufeff \t\r\n")[:1] == "<":
        report = Report("<string>")
        description = parse_text(path_or_text, report)  # type: ignore[arg-type]
    else:
        report = Report(os.fspath(path_or_text))
        description = parse_path(path_or_text, report)
        folder = _folder(path_or_text)
    if description is not None:
        check(description, report, Resolver(folder, _dirs(package_dirs)), base)
    return description, report.diagnostics()


def from_yourdfpy(
    urdf: Any,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    folder: PathLike | None = None,
) -> Robot:
    """A robot from a ``yourdfpy.URDF`` that is loaded already.

    Its XML is written and read again, so every check applies; line numbers are of the rewritten text.

    Args:
        urdf: a ``yourdfpy.URDF``.
        base, package_dirs, strict, folder: as for :func:`loads_urdf`.
    """
    return loads_urdf(urdf.write_xml_string(), base, package_dirs, strict, folder)


def _check_base(base: str) -> None:
    if base not in BASES:
        raise UnknownName("base", str(base), BASES)


def _check_mimic(mimic: str) -> None:
    if mimic not in MIMICS:
        raise UnknownName("mimic", str(mimic), MIMICS)


def _folder(path: PathLike) -> Path:
    return Path(path).absolute().parent


def _dirs(package_dirs: Sequence[PathLike] | PathLike) -> Sequence[PathLike]:
    # One folder instead of a list is an easy slip, and a string would be searched letter by letter.
    return [package_dirs] if isinstance(package_dirs, (str, os.PathLike)) else list(package_dirs)


def _robot(
    description: RobotDescription | None,
    report: Report,
    base: str,
    resolver: Resolver,
    strict: bool,
    mimic: str,
) -> Robot:
    if description is not None:
        check(description, report, resolver, base)
    found = report.diagnostics()
    refused = refusal(report.file, found, strict)
    if refused is not None:
        raise refused
    assert description is not None  # a missing description is an error above
    robot = build(description, base, resolver, found)
    if mimic == "couple":
        from robokit.model.coupling import couple

        return couple(robot)
    return robot


def build(
    description: RobotDescription,
    base: str = "fixed",
    resolver: Resolver | None = None,
    diagnostics: Sequence[Diagnostic] = (),
) -> Robot:
    """The robot of a description that :func:`check_urdf` finds free of errors.

    Args:
        description: what the file says.
        base: "fixed" or "floating".
        resolver: finds meshes and textures; a fresh one without folders by default.
        diagnostics: carried along on the robot.
    """
    from robokit.model.builder import ModelBuilder

    resolver = resolver or Resolver()
    materials = description.material_table()

    def shape(s: ShapeDescription) -> Shape:
        geometry, texture, rgba = s.geometry, None, None
        if isinstance(geometry, Mesh):
            geometry = Mesh(geometry.filename, geometry.scale, resolver(geometry.filename).path)
        if s.material is not None:
            material = s.material if s.material.defined else materials.get(s.material.name, s.material)
            rgba = material.rgba
            found = resolver(material.texture).path if material.texture else None
            texture = None if found is None else str(found)
        return Shape(geometry, s.origin.placement(), rgba, texture, s.name)

    builder = ModelBuilder(description.name.strip() or "robot", source=description.file)
    for link in description.links:
        shapes = [shape(s) for s in link.visuals], [shape(s) for s in link.collisions]
        if link.inertial is None:
            builder.link(link.name, visuals=shapes[0], collisions=shapes[1])
        else:
            inertial = link.inertial
            builder.link(link.name, inertial.mass, inertial.origin.xyz, inertial.matrix(), *shapes)
    # Several quadrupeds call the fixed joint under their trunk "floating_base".
    renamed = {FLOATING_BASE: fixed_base_name(description)} if base == "floating" else {}
    for joint in description.joints:
        _add_joint(builder, joint, renamed)
    for loop in description.loops:
        assert loop.predecessor is not None and loop.successor is not None  # an error stopped us otherwise
        builder.loop_joint(
            loop.name,
            loop.type,
            loop.predecessor,
            loop.successor,
            loop.predecessor_origin.placement(),
            loop.successor_origin.placement(),
            loop.axis,
        )
    return builder.build(base=base, diagnostics=list(diagnostics))


def _add_joint(builder: Any, joint: JointDescription, renamed: Mapping[str, str]) -> None:
    from robokit.model.robot import Mimic

    ranged = joint.type in ("revolute", "prismatic")
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    lower, upper = (limit.range if limit and ranged else None) or (None, None)
    length = math.hypot(*joint.axis)
    builder.joint(
        renamed.get(joint.name, joint.name),
        joint.type,
        joint.parent,
        joint.child,
        placement=joint.origin.placement(),
        axis=tuple(x / length for x in joint.axis) if joint.has_axis else (1.0, 0.0, 0.0),
        lower=lower,
        upper=upper,
        effort=limit.effort if limit else None,
        velocity=limit.velocity if limit else None,
        damping=dynamics.damping if dynamics else 0.0,
        friction=dynamics.friction if dynamics else 0.0,
        mimic=Mimic(renamed.get(mimic.joint, mimic.joint), mimic.multiplier, mimic.offset) if mimic else None,
    )
