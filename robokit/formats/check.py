"""What ``robokit check`` finds in an MJCF, SDF or USD file: what its reader says, and the robot's physics."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robokit.errors import Diagnostic, LoadError, ModelError, RobokitError
from robokit.formats.load import load
from robokit.formats.read import format_of
from robokit.urdf import check_urdf, dump
from robokit.urdf.description import RobotDescription

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
        path: the file.
        base, package_dirs, meshes, mimic: as for :func:`robokit.urdf.check_urdf`.
        options: others of :func:`robokit.load`.

    Returns:
        None for a URDF, and for what is no file; else the robot as a URDF describes it (None where it cannot)
        and all findings, errors first.
    """
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
            warnings.simplefilter("ignore")  # what a URDF leaves out
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
