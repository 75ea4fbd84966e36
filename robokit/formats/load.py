"""``robokit.load``: a robot from a file of any format, or by name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robokit.arguments import one_of
from robokit.errors import (
    Diagnostic,
    LoadError,
    MissingDependency,
    ModelError,
    RobokitError,
    UnknownName,
    WrongType,
)
from robokit.interpreter import without_collector
from robokit.model.robot import Robot
from robokit.robot_names import find_robot
from robokit.stages import stage
from robokit.urdf import check_urdf
from robokit.urdf.description import RobotDescription
from robokit.urdf.load import BASES, LOOPS, MIMICS, UP_AXES, load_urdf

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
        mimic: as for :func:`robokit.load_urdf`; of an MJCF it is about joints that an <equality> couples.
        xacro_args: values of a .xacro file's arguments.
        mesh_up_axis, loops: of a URDF, as for :func:`robokit.load_urdf`.
        root: the robot to load from a file with several: the name of its root body in an MJCF, of a model in
            an SDF world. None loads all, in one world.

    Raises:
        LoadError: the file cannot become a robot; ``UrdfError``, which is one, for a URDF.
        UnknownName: no such robot, root, base, or treatment of mimic joints, up axes or loops.
        MissingDependency: the program that reads the format is not installed; says the install line.
        WrongType: no path.

    Example:
        >>> robot = rk.load("humanoid", base="floating")
        >>> robot.nv
        37
    """
    _check_choices(base, mimic, mesh_up_axis, loops)
    if not isinstance(path, (str, os.PathLike)):
        raise WrongType("path", path, "the path of a file or the name of a robot")
    from robokit.formats.read import format_of

    file = find_robot(os.fspath(path), fetch=True)
    kind = format_of(file) if file.is_file() else "URDF"
    if kind == "URDF":
        if root is not None:
            raise LoadError(f"{file}: root= is for files with several robots; a URDF has one")
        return load_urdf(file, base or "fixed", package_dirs, strict, mimic, xacro_args, mesh_up_axis, loops)
    for name, value, usual in (("mesh_up_axis", mesh_up_axis, "ignore"), ("loops", loops, "declared")):
        if value != usual:
            raise LoadError(f"{file}: {name}={value!r} is for URDF files; this one is {kind}")
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
    from robokit.formats.read import read_robot

    try:
        with stage(f"reading {file.name}"):
            side = read_robot(file, package_dirs, xacro_args, root)
            # Of an SDF, root has chosen the model.
            return build_robot(side, base, None if kind == "SDF" else root, mimic, strict)
    except (LoadError, MissingDependency, UnknownName):
        raise
    except RobokitError as problem:
        raise LoadError(str(problem)) from problem


def _check_choices(base: str | None, mimic: str | None, mesh_up_axis: str, loops: str) -> None:
    if base is not None:
        one_of("base", base, BASES)
    if mimic is not None:
        one_of("treatment of mimic joints", mimic, MIMICS)
    one_of("treatment of up axes", mesh_up_axis, UP_AXES)
    one_of("treatment of loops", loops, LOOPS)


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
    """Judge a file that is no URDF; never raises over the file.

    Args:
        base, package_dirs, meshes, mimic: as for :func:`robokit.urdf.check_urdf`.
        options: others of :func:`robokit.load`.

    Returns:
        None for a URDF, and for what is no file; else the robot as a URDF describes it (None where it cannot)
        and all findings, errors first.
    """
    from robokit.formats.read import format_of  # `import robokit` stays light
    from robokit.urdf.write import dump

    if not path.is_file() or format_of(path) == "URDF":
        return None

    file = os.fspath(path)
    try:
        robot = load(file, None if base == "either" else base, package_dirs, mimic=mimic, **options)
    except RobokitError as problem:
        said = problem.diagnostics if isinstance(problem, LoadError) else []
        text = str(problem).removeprefix(f"{file}: ")
        return None, [Diagnostic("error", "file-refused", "the file", file, 0, text), *said]
    found = list(robot.diagnostics)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warnings about what a URDF leaves out
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
