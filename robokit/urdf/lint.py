"""Many URDFs judged at once: which files, what was found in each, and the exit status."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robokit.errors import Diagnostic, RobokitError, Severity, one_line
from robokit.urdf.checks.plausible import link_boxes, total_mass
from robokit.urdf.description import RobotDescription
from robokit.urdf.lint_folders import is_robot_file, robot_files, without_parts
from robokit.urdf.load import PathLike, check_urdf
from robokit.urdf.xacro import is_xacro

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

UNREADABLE = ("file-missing", "file-not-regular", "file-unreadable")
"""Codes of files that could not be read: exit status 2."""

FORMAT = 1
"""Version of the JSON; a key may be added without a new number, none is renamed or removed."""


@dataclass(frozen=True)
class Checked:
    """One file and what was found.

    Attributes:
        file: its path as given.
        description: what it says, None where it cannot be read.
        diagnostics: the findings, errors first.
    """

    file: str
    description: RobotDescription | None
    diagnostics: list[Diagnostic]

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(d.severity == severity for d in self.diagnostics)

    def status(self, strict: bool = False) -> int:
        """0: clean, 1: has errors (strict: or warnings), 2: cannot be read."""
        if any(d.code in UNREADABLE for d in self.diagnostics):
            return 2
        return 1 if self.count("error") or (strict and self.count("warning")) else 0


def urdf_files(names: Iterable[str], find: Callable[[str], Path]) -> tuple[list[Path], list[str]]:
    """The files that arguments mean: paths, folders, patterns, names of robots.

    Args:
        names: a folder means all .urdf files and robots in .xacro files in it and below it, hidden folders
            left out; a pattern may hold ``*``, ``?``, ``[...]`` and ``**``.
        find: path of an argument that is neither a folder nor a pattern; raises RobokitError.

    Returns:
        The files, each once, in the order of the arguments; and a line for each argument that means none.
    """
    files: dict[Path, None] = {}
    problems = []
    for name in names:
        path = Path(name).expanduser()
        if path.is_dir():
            found = without_parts(sorted(robot_files(path)))
            missing = f"no .urdf file, and no robot in a .xacro file, in folder {name!r} or below it"
        elif glob.has_magic(name) and not path.exists():
            found = without_parts(sorted(set(_matching(str(path)))))
            missing = f"no .urdf file, and no robot in a .xacro file, matches {name!r}"
        else:
            try:
                found, missing = [find(name)], ""
            except RobokitError as error:
                found, missing = [], str(error)
        files.update(dict.fromkeys(found))
        if not found:
            problems.append(missing)
    return list(files), problems


def _matching(pattern: str) -> Iterable[Path]:
    """Files that a pattern matches, and the robot files in folders that it matches."""
    for name in glob.glob(pattern, recursive=True):
        path = Path(name)
        if path.is_file() and (is_robot_file(path) or not pattern.endswith("*")):
            yield path
        elif path.is_dir() and not pattern.endswith("**"):
            yield from robot_files(path)


def check_files(
    paths: Iterable[PathLike],
    base: str = "either",
    package_dirs: Sequence[PathLike] = (),
    meshes: bool = False,
    ignore: Collection[str] = (),
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
) -> list[Checked]:
    """Judge files one after the other; never raises over a file.

    Args:
        paths: the files.
        base, package_dirs, meshes, mimic, mesh_up_axis, loops: as for :func:`robokit.urdf.check_urdf`.
        xacro_args: for those of the files that are .xacro files.
        ignore: codes to leave out.
    """
    checked = []
    for path in paths:
        args = xacro_args if is_xacro(path) else None
        description, found = check_urdf(
            path, base, package_dirs, True, meshes, mimic, args, mesh_up_axis, loops
        )
        checked.append(Checked(os.fspath(path), description, [d for d in found if d.code not in ignore]))
    return checked


def exit_status(checked: Iterable[Checked], strict: bool = False) -> int:
    """The worst status of all files."""
    return max((one.status(strict) for one in checked), default=0)


def as_json(
    checked: Sequence[Checked], strict: bool = False, inertias: bool = False, problems: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything found as a dictionary for ``json.dumps``.

    Args:
        checked: the files.
        strict: whether warnings count in the status.
        inertias: add every link's mass, principal moments, principal axes and equivalent box.
        problems: lines on arguments that mean no file.

    Returns:
        ``format``, ``status``, ``counts``, ``problems`` and ``files``. Each file has ``file``, ``status``,
        ``robot``, ``links``, ``joints``, ``moving_joints``, ``mass_kg``, ``counts`` and ``diagnostics``,
        whose entries have ``severity``, ``code``, ``element``, ``line``, ``message`` and ``hint``. The
        figures of a file that cannot be read are null.
    """
    return {
        "format": FORMAT,
        "status": 2 if problems else exit_status(checked, strict),
        "counts": {s: sum(one.count(s) for one in checked) for s in SEVERITIES},
        "problems": list(problems),
        "files": [_file_json(one, strict, inertias) for one in checked],
    }


def _file_json(one: Checked, strict: bool, inertias: bool) -> dict[str, Any]:
    robot = one.description
    table: dict[str, Any] = {
        "file": one.file,
        "status": one.status(strict),
        "robot": one_line(robot.name) if robot else None,
        "links": len(robot.links) if robot else None,
        "joints": len(robot.joints) if robot else None,
        "moving_joints": sum(j.moves for j in robot.joints) if robot else None,
        "mass_kg": _finite(total_mass(robot)) if robot else None,
        "counts": {s: one.count(s) for s in SEVERITIES},
        "diagnostics": [
            {
                "severity": d.severity,
                "code": d.code,
                "element": d.element,
                "line": d.line,
                "message": d.message,
                "hint": d.hint,
            }
            for d in one.diagnostics
        ],
    }
    if inertias and robot:
        table["inertias"] = _inertias(robot)
    return table


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _inertias(robot: RobotDescription) -> list[dict[str, Any]]:
    return [
        {
            "link": one_line(link),
            "mass_kg": inertial.mass,
            "com_m": list(inertial.origin.xyz),
            "principal_moments_kg_m2": box.moments.tolist(),
            "principal_axes": box.axes.T.tolist(),
            "box_m": box.size.tolist(),
        }
        for link, inertial, box in link_boxes(robot)
    ]
