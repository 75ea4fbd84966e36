"""``robokit.load``: a robot from a file of any format, or by name; which program reads a description.

Readers are imported where they are used: `import robokit` stays light.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robokit.arguments import one_of, path_argument
from robokit.errors import (
    Diagnostic,
    LoadError,
    MissingDependency,
    ModelError,
    OptionError,
    RobokitError,
    UnknownName,
    WrongType,
    warnings_into,
)
from robokit.interpreter import without_collector
from robokit.meshes.untrusted import FETCH, POINTER
from robokit.model.robot import Robot
from robokit.robot_names import find_robot
from robokit.stages import stage
from robokit.urdf import check_urdf
from robokit.urdf.description import RobotDescription
from robokit.urdf.load import BASES, LOOPS, MIMICS, UP_AXES, load_urdf
from robokit.urdf.xacro import expand_xacro, is_xacro

if TYPE_CHECKING:
    from robokit.formats.description import Description

# ---- which program reads a description, and what it reads ----------------------------------------

PROGRAMS = ("robokit", "mujoco", "drake", "pinocchio")  # programs that may read a URDF

USD_ENDINGS = (".usd", ".usda", ".usdc", ".usdz")
HEAD_BYTES = 1 << 16

USD_BEGINNINGS = (b"#usda", b"PXR-USDC")  # how USD files begin, as text and packed


def read_description(
    path: str | os.PathLike[str],
    through: str = "robokit",
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Description:
    """Read a description: URDF (by one of ``PROGRAMS``), xacro with its arguments, MJCF, SDF or USD.

    ``package_dirs`` are folders searched first for ``package://`` files; ``loops`` is of a URDF that robokit
    reads, as for :func:`robokit.load_urdf`. Raises RobokitError for no such file, none of these formats, or
    one that cannot be read; MissingDependency where the program that reads it is not installed.
    """
    one_of("through", through, PROGRAMS)
    file = path_argument("path", path)
    if not file.is_file():
        raise RobokitError(
            f"no file {os.fspath(path)!r}; give the path of a URDF, xacro, MJCF, SDF or USD file"
        )
    program = {"MJCF": "mujoco", "SDF": "drake", "USD": "usd"}.get(_format_of_content(file), through)
    if program == "robokit":
        from robokit.formats.description import unlimited
        from robokit.formats.urdf import read_urdf

        side = read_urdf(file, package_dirs, xacro_args, loops)
        unlimited(side)
        return side
    reader = f"robokit.formats.{program}", f"read_{program}"
    more = ([os.fspath(folder) for folder in package_dirs],) if program == "drake" else ()
    return _read_elsewhere(file, program, reader, more, package_dirs, xacro_args)


def read_robot(
    path: Path,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, str] | None = None,
    root: str | None = None,
) -> Description:
    """Read all of an MJCF, SDF or USD file that a robot and its surroundings can have.

    ``root``: what of the file is the robot, where the reader chooses: a model of an SDF world. Other
    arguments and errors are as for :func:`read_description`.
    """
    kind = _format_of_content(path)
    if kind == "SDF":
        from robokit.formats.sdf import read_sdf

        text = expand_xacro(path, xacro_args, package_dirs).encode() if is_xacro(path) else None
        return read_sdf(path, package_dirs, root, text)
    program, reader = {
        "MJCF": ("mujoco", ("robokit.formats.mujoco", "read_mujoco_robot")),
        "USD": ("usd", ("robokit.formats.usd", "read_usd")),
    }[kind]
    more = (True,) if kind == "USD" else ()
    return _read_elsewhere(path, program, reader, more, package_dirs, xacro_args)


def format_of(file: Path) -> str:
    """The format by the beginning of a file: URDF, MJCF, SDF or USD; URDF for what is none of the others."""
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if file.suffix.lower() in USD_ENDINGS or head.startswith(USD_BEGINNINGS):
        return "USD"
    # Name of the outermost element; none if it is not XML.
    text = re.sub(rb"<!--.*?-->|<\?.*?\?>|<![^>]*>", b"", head.replace(b"\0", b""), flags=re.DOTALL)
    found = re.search(rb"<\s*([A-Za-z_][\w.-]*)", text)
    tag = found.group(1).decode() if found else ""
    return "MJCF" if tag == "mujoco" else "SDF" if tag in ("sdf", "model", "world") else "URDF"


def _format_of_content(file: Path) -> str:
    """The same; RobokitError for a Git LFS pointer in the place of a file."""
    with file.open("rb") as stream:
        if stream.read(64).startswith(POINTER):
            raise RobokitError(f"{file}: is a Git LFS pointer, not the file itself; {FETCH}")
    return format_of(file)


def _read_elsewhere(
    file: Path,
    program: str,
    reader: tuple[str, str],
    more: tuple[Any, ...],
    package_dirs: Sequence[str | os.PathLike[str]],
    xacro_args: Mapping[str, str] | None,
) -> Description:
    """What another program (a key of ``PROGRAMS``) reads, in a child with bounded time and memory.

    A xacro file is expanded first. ``reader`` has the module and the name of the function that reads,
    ``more`` its arguments behind the path; ``package_dirs`` and ``xacro_args`` are as for
    :func:`read_description`.
    """
    if not is_xacro(file):
        return _described(file, file, program, reader, more)
    ending = {"mujoco": ".xml", "drake": ".sdf", "usd": ".usda"}.get(program, ".urdf")
    ending = ending if format_of(file) != "URDF" else ".urdf"
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / (file.stem + ending)
        plain.write_text(expand_xacro(file, xacro_args, package_dirs), encoding="utf-8")
        # MuJoCo starts names of meshes from where the file stands.
        own = (os.path.abspath(file.parent),) if program == "mujoco" else ()
        side = _described(file, plain, program, reader, (*more, *own))
        side.file += " (expanded)"
        return side


def _described(
    file: Path, plain: Path, program: str, reader: tuple[str, str], more: tuple[Any, ...]
) -> Description:
    from robokit.formats import other_programs
    from robokit.formats.description import check_numbers, unlimited

    try:
        other_programs.require(program)
        plain = Path(os.path.abspath(plain))  # names of meshes are to lead to them from everywhere
        description: Description = other_programs.call(*reader, os.fspath(plain), *more)
        description.file = os.fspath(file)
        check_numbers(description)
        unlimited(description)
        description.notes += other_programs.peer_faults(program, plain.read_bytes)
        return description
    except MissingDependency as problem:
        raise MissingDependency(f"{file}: {problem}") from None
    except other_programs.NoAnswer as problem:
        what = other_programs.PROGRAMS[program].name
        raise RobokitError(f"{file}: {what} cannot read it: {problem}") from None
    except RobokitError as problem:
        said = str(problem).replace(os.fspath(plain), os.fspath(file))
        raise RobokitError(said if os.fspath(file) in said else f"{file}: {said}") from None


# ---- the robot -----------------------------------------------------------------------------------

PathLike = str | os.PathLike[str]


def load(
    path: PathLike,
    base: str | None = None,
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
    root: str | None = None,
) -> Robot:
    """Load a robot from a URDF, xacro, MJCF, SDF or USD file, or by name.

    The format is recognised by the content of the file. URDF, xacro and SDF are read by robokit, MJCF by
    MuJoCo (the package mujoco) and USD by usd-core, in a separate process with limited time and memory.
    Features that robokit does not support are listed in ``robot.diagnostics``; actuators, ground, keyframes
    and excluded collision pairs are in ``robot.scene``.

    Args:
        path: a file; a name that :func:`robokit.find_robot` knows; or "robot_descriptions:NAME", whose files
            that package clones if needed.
        base: "fixed" or "floating"; None: the base of the file, and fixed for a URDF. An MJCF with one free
            joint has a floating base.
        package_dirs: folders searched first for ``package://`` and ``model://`` files.
        strict: refuse warnings like errors.
        mimic: as for :func:`robokit.load_urdf`; in an MJCF, the mimic joints are those that an <equality>
            couples.
        xacro_args: values of a .xacro file's arguments.
        mesh_up_axis, loops: of a URDF, as for :func:`robokit.load_urdf`.
        root: the robot to load from a file with several: the name of its root body in an MJCF, of a model in
            an SDF world. None loads all, in one world.

    Raises:
        LoadError: the file cannot become a robot; ``UrdfError``, which is one, for a URDF; ``OptionError``,
            which is one, for ``root``, ``mesh_up_axis`` or ``loops`` of a file of another format.
        UnknownName: there is no such robot or root, or an unknown value of ``base``, ``mimic``,
            ``mesh_up_axis`` or ``loops``.
        MissingDependency: the program that reads the format is not installed; says the install line.
        WrongType: no path.

    Example:
        >>> robot = rk.load("humanoid", base="floating")
        >>> robot.nv
        37
    """
    if base is not None:
        one_of("base", base, BASES)
    if mimic is not None:
        one_of("treatment of mimic joints", mimic, MIMICS)
    one_of("treatment of up axes", mesh_up_axis, UP_AXES)
    one_of("treatment of loops", loops, LOOPS)
    if not isinstance(path, (str, os.PathLike)):
        raise WrongType("path", path, "the path of a file or the name of a robot")

    file = find_robot(os.fspath(path), fetch=True)
    kind = format_of(file) if file.is_file() else "URDF"
    if kind == "URDF":
        if root is not None:
            raise OptionError(f"{file}: root= is for files with several robots; a URDF has one")
        return load_urdf(file, base or "fixed", package_dirs, strict, mimic, xacro_args, mesh_up_axis, loops)
    for name, value, usual in (("mesh_up_axis", mesh_up_axis, "ignore"), ("loops", loops, "declared")):
        if value != usual:
            raise OptionError(f"{file}: {name}={value!r} is for URDF files; this one is {kind}")
    return _other(file, kind, base, package_dirs, strict, mimic, xacro_args, root)


@without_collector()
def _other(
    file: Any,
    kind: str,
    base: str | None,
    package_dirs: Sequence[PathLike],
    strict: bool,
    mimic: str | None,
    xacro_args: Mapping[str, Any] | None,
    root: str | None,
) -> Robot:
    """The robot of a file that is no URDF."""
    from robokit.formats.build import build_robot

    try:
        with stage(f"reading {file.name}"):
            side = read_robot(file, package_dirs, xacro_args, root)
            # Of an SDF, root has chosen the model.
            return build_robot(side, base, None if kind == "SDF" else root, mimic, strict)
    except (LoadError, MissingDependency, UnknownName):
        raise
    except RobokitError as problem:
        raise LoadError(str(problem)) from problem


# ---- what ``robokit check`` finds in files that are no URDF --------------------------------------

OF_THE_TEXT = (
    "limit-incomplete",
    "limit-missing",
    "mesh-up-axis",
    "mimic-independent",
    "robot-name-empty",
    "version-too-low",
)
"""Codes about a URDF's text, which says nothing about the file that the robot came from."""


def check_other(
    path: Path,
    base: str = "either",
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    meshes: bool = False,
    mimic: str | None = None,
    **options: Any,
) -> tuple[RobotDescription | None, list[Diagnostic]] | None:
    """Judge a file that is no URDF; never raises over the file. None for a URDF, and for what is no file.

    Else the robot as a URDF describes it (None where it cannot) and all findings, errors first. Arguments are
    as for :func:`robokit.urdf.check_urdf`; ``options`` are others of :func:`robokit.load`.
    """
    if not path.is_file() or format_of(path) == "URDF":
        return None
    from robokit.urdf.write import dump

    file = os.fspath(path)
    try:
        robot = load(file, None if base == "either" else base, package_dirs, mimic=mimic, **options)
    except RobokitError as problem:
        said = problem.diagnostics if isinstance(problem, LoadError) else []
        text = str(problem).removeprefix(f"{file}: ")
        return None, [Diagnostic("error", "file-refused", "the file", file, 0, text), *said]
    found = list(robot.diagnostics)
    try:
        with warnings_into([]):  # those about what a URDF leaves out
            text = dump(robot, own_types=True)
    except ModelError as problem:
        found.append(
            Diagnostic("note", "unjudged", "the robot", file, 0, f"its masses are not judged: {problem}")
        )
        return None, found
    judged_base = "floating" if robot.base == "floating" else "fixed" if base == "either" else base
    description, findings = check_urdf(text.encode(), judged_base, package_dirs, True, meshes, mimic)
    physics = (d for d in findings if d.code not in OF_THE_TEXT)
    found += [replace(d, file=file, line=0) for d in physics]
    order = ("error", "warning", "note")
    return description, sorted(found, key=lambda d: order.index(d.severity))
