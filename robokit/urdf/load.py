"""URDF in, Robot out: ``load_urdf``, ``loads_urdf``, ``check_urdf``, ``from_yourdfpy`` and ``build``."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import one_of, path_argument
from robokit.conventions import FLOATING_BASE
from robokit.errors import Diagnostic, WrongType
from robokit.interpreter import without_collector
from robokit.model.builder import JointDraft, LinkDraft, ModelBuilder, unit_numbers
from robokit.model.edit import couple
from robokit.model.geometry import Mesh, Placement, Rows, Shape
from robokit.model.parts import Calibration, Mimic, Safety
from robokit.model.robot import Robot
from robokit.stages import stage
from robokit.urdf.checks import check, fixed_base_name
from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LinkDescription,
    MaterialDescription,
    RobotDescription,
    ShapeDescription,
)
from robokit.urdf.findings import Report, refusal
from robokit.urdf.mesh_files import NoFiles, Resolver, folders
from robokit.urdf.parse import parse_path, parse_text
from robokit.urdf.rewrites import own_base, with_loops, with_z_up, without_own_base
from robokit.urdf.structure import check_second_parents
from robokit.urdf.xacro import expanded, is_xacro

BASES = ("fixed", "floating")
CHECK_BASES = (*BASES, "either")
MIMICS = ("independent", "couple")
UP_AXES = ("ignore", "apply")
LOOPS = ("declared", "close")
PathLike = str | os.PathLike[str]


@without_collector()
def load_urdf(
    path: PathLike,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> Robot:
    """Load a robot from a URDF file.

    Values are used as they are written. Warnings and notes are in ``robot.diagnostics``.

    Args:
        path: the .urdf file; a .xacro file is expanded first, where the package xacro is installed.
        base: "fixed" (the root link is body 0) or "floating" (a 6-dof joint carries the root link). If the
            file has a floating base of its own, that is, a massless root that carries everything by one
            floating joint, "floating" leaves out these two.
        package_dirs: folders searched first for ``package://`` files.
        strict: refuse warnings like errors.
        mimic: None: each mimic joint has a coordinate of its own, and its law is kept in ``joint.mimic`` for
            a program that applies it. "couple": mimic joints follow and have no coordinates; see
            ``robot.coupling``. "independent": as None, with a warning that names these joints, for programs
            that do not apply the laws either.
        xacro_args: values of a .xacro file's arguments, what ``xacro`` takes as ``name:=value``.
        mesh_up_axis: "ignore": meshes are read as if z were up, whatever a COLLADA file says, as in RViz;
            "apply": those that say that x or y is up are turned.
        loops: "declared": a loop is closed where a <loop_joint> closes it; "close": also at pairs of links
            ``closing_NAME_1`` and ``closing_NAME_2``, by a spherical joint, and where a link is the child of
            two joints, of which the second becomes a loop joint. See :mod:`robokit.urdf.rewrites`.

    Raises:
        UrdfError: the file cannot be loaded; the message and ``.diagnostics`` hold every problem found.
        UnknownName: no such base, or no such treatment of mimic joints, up axes or loops.
        WrongType: no path.
        ModelError: mimic="couple" and a mimic joint, or the one it follows, has several coordinates.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> robot.nq, robot.nv, round(robot.total_mass, 1)
        (38, 37, 75.0)
        >>> rk.load_urdf(rk.find_robot("humanoid"), base="hovering")
        Traceback (most recent call last):
            ...
        robokit.errors.UnknownName: no base named 'hovering'; did you mean 'floating'?
    """
    _check_choices(base, mimic, mesh_up_axis, loops)
    if not isinstance(path, (str, os.PathLike)):
        hint = "the text of a URDF goes to rk.loads_urdf" if isinstance(path, bytes) else ""
        raise WrongType("path", path, "the path of a URDF file, a string or a pathlib.Path", hint)
    report, resolver = Report(os.fspath(path)), Resolver(_folder(path), folders(package_dirs))
    with stage(f"reading {os.path.basename(path)}"):
        description = _description(path, report, folders(package_dirs), xacro_args)
        description = _apply_options(description, report, resolver, mesh_up_axis, loops)
        return _robot(description, report, base, resolver, strict, mimic)


@without_collector()
def loads_urdf(
    text: str | bytes,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    folder: PathLike | None = None,
    mimic: str | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> Robot:
    """Load a robot from the text of a URDF.

    Args:
        text: the XML; bytes are decoded by their byte order mark or declaration.
        base, package_dirs, strict, mimic, mesh_up_axis, loops: as for :func:`load_urdf`.
        folder: where relative mesh names start; none by default.

    Raises:
        UrdfError, UnknownName, ModelError, WrongType: as :func:`load_urdf`.

    Example:
        >>> robot = rk.loads_urdf('<robot name="stone"><link name="stone"><inertial><mass value="2"/>'
        ...                       '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        ...                       "</inertial></link></robot>", base="floating")
        >>> robot.total_mass
        2.0
    """
    _check_choices(base, mimic, mesh_up_axis, loops)
    if not isinstance(text, (str, bytes)):
        raise WrongType("text", text, "the text of a URDF, a string or bytes")
    report = Report("<string>")
    description = parse_text(text, report)
    resolver = Resolver(None if folder is None else path_argument("folder", folder), folders(package_dirs))
    description = _apply_options(description, report, resolver, mesh_up_axis, loops)
    return _robot(description, report, base, resolver, strict, mimic)


def robot_of_text(text: str, base: str, mimic: str | None = None) -> Robot:
    """:func:`loads_urdf` of a text from anywhere: no mesh or texture that it names is looked for."""
    _check_choices(base, mimic, "ignore", "declared")
    report = Report("<string>")
    return _robot(parse_text(text, report), report, base, NoFiles(environ={}), False, mimic)


@without_collector()
def check_urdf(
    path_or_text: PathLike | bytes,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    plausible: bool = False,
    meshes: bool = False,
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> tuple[RobotDescription | None, list[Diagnostic]]:
    """Check a URDF without building a robot; never raises because of the file.

    Args:
        path_or_text: a path, or the XML itself (bytes, or a string that begins with "<").
        base: as for :func:`load_urdf`, or "either": as "fixed", with a note where H would be singular
            with a floating base.
        package_dirs: as for :func:`load_urdf`.
        plausible: also note masses and inertias that do not fit the links' shapes, and joints whose zero
            position is outside their limits.
        meshes: read the meshes for that too.
        mimic: as for :func:`load_urdf`; "couple" also finds what cannot be coupled.
        xacro_args, mesh_up_axis, loops: as for :func:`load_urdf`.

    Returns:
        The description (None where nothing can be read) and all findings, errors first.

    Example:
        >>> from robokit.urdf import check_urdf
        >>> description, findings = check_urdf('<robot name="r"><link name="a"/><link name="b"/></robot>')
        >>> findings[0].severity, findings[0].code, findings[0].line
        ('error', 'tree-two-roots', 1)
    """
    _check_choices(base, mimic, mesh_up_axis, loops, CHECK_BASES)
    folder = None
    if not isinstance(path_or_text, (str, bytes, os.PathLike)):
        raise WrongType("path_or_text", path_or_text, "the path of a URDF, or its text as a string or bytes")
    if isinstance(path_or_text, bytes) or str(path_or_text).lstrip("\ufeff \t\r\n")[:1] == "<":
        report = Report("<string>")
        description = parse_text(path_or_text, report)  # type: ignore[arg-type]
    else:
        report = Report(os.fspath(path_or_text))
        description = _description(path_or_text, report, folders(package_dirs), xacro_args)
        folder = _folder(path_or_text)
    resolver = Resolver(folder, folders(package_dirs))
    description = _apply_options(description, report, resolver, mesh_up_axis, loops)
    if description is not None:
        check(description, report, resolver, base, plausible, meshes, mimic, mesh_up_axis == "apply")
    return description, report.diagnostics()


def from_yourdfpy(
    urdf: Any,
    base: str = "fixed",
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    folder: PathLike | None = None,
    mimic: str | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> Robot:
    """Make a robot from a loaded ``yourdfpy.URDF``.

    Its XML is written and read again, so every check applies; line numbers are of the rewritten text.

    Args:
        urdf: a ``yourdfpy.URDF``.
        base, package_dirs, strict, folder, mimic, mesh_up_axis, loops: as for :func:`loads_urdf`.

    Example:
        >>> import yourdfpy
        >>> urdf = yourdfpy.URDF.load(str(rk.find_robot("double_pendulum")))
        >>> rk.from_yourdfpy(urdf).joint_names
        ('upper_joint', 'lower_joint')
    """
    text = urdf.write_xml_string()
    return loads_urdf(text, base, package_dirs, strict, folder, mimic, mesh_up_axis, loops)


def _description(
    path: PathLike, report: Report, dirs: Sequence[PathLike], xacro_args: Mapping[str, Any] | None
) -> RobotDescription | None:
    if xacro_args is not None and not isinstance(xacro_args, Mapping):
        raise WrongType("xacro_args", xacro_args, "a mapping of names to values")
    if not is_xacro(path):
        if xacro_args:
            given = ", ".join(map(str, xacro_args))
            report.add(
                "xacro-argument", "file", 0, f"is no .xacro file, and takes no arguments ({given})", ""
            )
            return None
        return parse_path(path, report)
    text = expanded(path, report, dirs, xacro_args)
    return None if text is None else parse_text(text, report)


def _apply_options(
    description: RobotDescription | None, report: Report, resolver: Resolver, mesh_up_axis: str, loops: str
) -> RobotDescription | None:
    """The description with its meshes turned and its loops closed, if that is asked for."""
    if description is not None and loops == "close":
        check_second_parents(description, report)
        description = with_loops(description)
    if description is not None and mesh_up_axis == "apply":
        description = with_z_up(description, resolver)
    return description


def _check_choices(
    base: str, mimic: str | None, mesh_up_axis: str, loops: str, bases: Sequence[str] = BASES
) -> None:
    one_of("base", base, bases)
    if mimic is not None:
        one_of("mimic", mimic, MIMICS)
    one_of("mesh_up_axis", mesh_up_axis, UP_AXES)
    one_of("loops", loops, LOOPS)


def _folder(path: PathLike) -> Path:
    return Path(path).absolute().parent


def _robot(
    description: RobotDescription | None,
    report: Report,
    base: str,
    resolver: Resolver,
    strict: bool,
    mimic: str | None,
) -> Robot:
    if description is not None:
        # What cannot be coupled is the error of couple() below.
        check(description, report, resolver, base, mimic=None if mimic == "couple" else mimic)
    found = report.diagnostics()
    refused = refusal(report.file, found, strict)
    if refused is not None:
        raise refused
    assert description is not None  # a missing description is an error above
    robot = build(description, base, resolver, found)
    if mimic == "couple":
        return couple(robot)
    return robot


# ---- from a description to a robot ---------------------------------------------------------------

NO_INERTIAL = InertialDescription(0.0, (0.0,) * 6)


def build(
    description: RobotDescription,
    base: str = "fixed",
    resolver: Resolver | None = None,
    diagnostics: Sequence[Diagnostic] = (),
) -> Robot:
    """The robot of a description without errors (see :func:`check_urdf`).

    Args:
        description: what the file says.
        base: "fixed" or "floating". A massless root that carries everything by one floating joint is a
            floating base of its own: "floating" leaves out both.
        resolver: finds meshes and textures; a fresh one without folders by default.
        diagnostics: findings of the importer, stored with the robot.

    Example:
        >>> from robokit.urdf import build, check_urdf
        >>> description, findings = check_urdf(rk.find_robot("arm"))
        >>> build(description).name
        'arm'
    """
    resolver = resolver or Resolver()
    if base == "floating" and (root := own_base(description)) is not None:
        description = without_own_base(description, root)
    materials = description.material_table()
    _look_up_files(description, materials, resolver)
    builder = ModelBuilder(description.name.strip() or "robot", source=description.file)
    own = [link.inertial or NO_INERTIAL for link in description.links]
    # One array is cut into those of the links: NumPy takes as long to make one as to make a row of it.
    coms = _rows(inertial.origin.xyz for inertial in own)
    inertias = _matrices(inertial.matrix_rows() for inertial in own)
    for link, inertial, com, inertia in zip(description.links, own, coms, inertias, strict=True):
        shapes = partial(_shapes, link, resolver, materials)
        builder.add(LinkDraft(link.name, inertial.mass, com, inertia, make_shapes=shapes))
    # Several quadrupeds call the fixed joint under their trunk "floating_base".
    renamed = {FLOATING_BASE: fixed_base_name(description)} if base == "floating" else {}
    joints = description.joints
    rotations = _matrices(joint.origin.rotation_rows() for joint in joints)
    positions = _rows(joint.origin.xyz for joint in joints)
    axes = _rows(unit_numbers(joint.type, joint.axis) for joint in joints)
    for joint, R, p, axis in zip(joints, rotations, positions, axes, strict=True):
        builder.add(_joint(joint, Placement(R, p), axis, renamed))
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
            loop.pitch,
            loop.axis2,
            loop.length,
        )
    return builder.build(base=base, diagnostics=list(diagnostics))


def _look_up_files(
    description: RobotDescription, materials: Mapping[str, MaterialDescription], resolver: Resolver
) -> None:
    """Look for all meshes and textures now: shapes are made later, when files may have changed."""
    for material in materials.values():
        if material.texture:
            resolver(material.texture)
    for link in description.links:
        for shape in (*link.visuals, *link.collisions):
            if isinstance(shape.geometry, Mesh):
                resolver(shape.geometry.filename)
            if shape.material is not None and shape.material.texture:
                resolver(shape.material.texture)


def _rows(rows: Iterable[Sequence[float]]) -> np.ndarray:
    """Rows of three numbers as an array, (n, 3)."""
    return np.fromiter(chain.from_iterable(rows), float).reshape(-1, 3)


def _matrices(matrices: Iterable[Rows]) -> np.ndarray:
    """Matrices in plain floats as an array, (n, 3, 3)."""
    return _rows(chain.from_iterable(matrices)).reshape(-1, 3, 3)


def _shapes(
    link: LinkDescription, resolver: Resolver, materials: Mapping[str, MaterialDescription]
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Visuals and collisions of a link, made at their first use: all their files have been looked up."""

    def shape(s: ShapeDescription) -> Shape:
        geometry, texture, written, rgba, material = s.geometry, None, None, None, s.material
        if isinstance(geometry, Mesh):
            geometry = Mesh(geometry.filename, geometry.scale, resolver(geometry.filename).path)
        if material is not None:
            material = material if material.defined else materials.get(material.name, material)
            rgba, written = material.rgba, material.texture
            texture = resolver(written).file if written else None
        return Shape(geometry, s.origin.placement(), rgba, texture, s.name, written)

    return tuple(map(shape, link.visuals)), tuple(map(shape, link.collisions))


def _joint(
    joint: JointDescription, placement: Placement, axis: np.ndarray, renamed: Mapping[str, str]
) -> JointDraft:
    assert joint.parent is not None and joint.child is not None  # an error stopped us otherwise
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    s, c = joint.safety, joint.calibration
    ranged = limit.range if limit and joint.type in ("revolute", "prismatic") else None
    lower, upper = ranged or (-math.inf, math.inf)
    return JointDraft(
        renamed.get(joint.name, joint.name),
        joint.type,
        joint.parent,
        joint.child,
        placement,
        axis,
        0.0,
        lower,
        upper,
        *(limit.bounds if limit else (math.inf, math.inf)),
        dynamics.damping if dynamics else 0.0,
        dynamics.friction if dynamics else 0.0,
        Mimic(renamed.get(mimic.joint, mimic.joint), mimic.multiplier, mimic.offset) if mimic else None,
        Safety(s.soft_lower_limit, s.soft_upper_limit, s.k_position, s.k_velocity) if s else None,
        Calibration(c.rising, c.falling, c.reference_position) if c else None,
        dynamics.armature if dynamics else 0.0,
    )
