"""Which program reads a description, and what it reads: one form for URDF, MJCF, SDF and USD."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from robokit.arguments import one_of, path_argument
from robokit.errors import MissingDependency, RobokitError
from robokit.formats import other_programs
from robokit.formats.description import Description, check_numbers
from robokit.formats.other_programs import peer_faults
from robokit.formats.urdf import read_urdf
from robokit.meshes.untrusted import FETCH, POINTER
from robokit.urdf.xacro import expand_xacro, is_xacro

PROGRAMS = ("robokit", "mujoco", "drake", "pinocchio")
"""Programs that may read a URDF."""

USD_ENDINGS = (".usd", ".usda", ".usdc", ".usdz")
HEAD_BYTES = 1 << 16

XACRO_OF = {"mujoco": ".xml", "sdf": ".sdf", "model": ".sdf", "world": ".sdf"}
"""Outermost element of a xacro file -> ending of what it expands to, other than a URDF's."""


def read_description(
    path: str | os.PathLike[str],
    through: str = "robokit",
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Description:
    """Read a description: URDF, xacro, MJCF, SDF or USD.

    Args:
        path: the file.
        through: the program that reads a URDF, one of ``PROGRAMS``.
        package_dirs: folders searched first for ``package://`` files.
        xacro_args: values of the arguments of a .xacro file.
        loops: of a URDF that robokit reads, as for :func:`robokit.load_urdf`.

    Raises:
        RobokitError: no such file, none of these formats, or the file cannot be read.
        MissingDependency: the program that reads the format is not installed.
    """
    one_of("through", through, PROGRAMS)
    file = path_argument("path", path)
    if not file.is_file():
        raise RobokitError(
            f"no file {os.fspath(path)!r}; give the path of a URDF, xacro, MJCF, SDF or USD file"
        )
    tag = "" if file.suffix.lower() in USD_ENDINGS else _outermost(file)
    with file.open("rb") as stream:
        if stream.read(64).startswith(POINTER):
            raise RobokitError(f"{file}: is a Git LFS pointer, not the file itself; {FETCH}")
    if file.suffix.lower() in USD_ENDINGS:
        program = "usd"
    elif tag == "mujoco":
        program = "mujoco"
    elif tag in ("sdf", "model", "world"):
        program = "drake"
    else:
        program = through
    if program == "robokit":
        return read_urdf(file, package_dirs, xacro_args, loops)
    if not is_xacro(file):
        return _read_elsewhere(file, file, program, package_dirs)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / (file.stem + XACRO_OF.get(tag, ".urdf"))
        plain.write_text(expand_xacro(file, xacro_args, package_dirs), encoding="utf-8")
        side = _read_elsewhere(file, plain, program, package_dirs)
        side.file += " (expanded)"
        return side


def _read_elsewhere(
    file: Path, plain: Path, program: str, package_dirs: Sequence[str | os.PathLike[str]]
) -> Description:
    """What another program reads, in a child with bounded time and memory.

    Args:
        file: what the user named.
        plain: what is read: the file, or what it is when expanded.
        program: a key of ``other_programs.PROGRAMS``.
        package_dirs: as for :func:`read_description`.
    """
    try:
        other_programs.require(program)
        more = ([os.fspath(folder) for folder in package_dirs],) if program == "drake" else ()
        description = cast(
            Description,
            other_programs.call(f"robokit.formats.{program}", f"read_{program}", os.fspath(plain), *more),
        )
        description.file = os.fspath(file)
        check_numbers(description)
        description.notes += peer_faults(program, plain.read_bytes)
        return description
    except MissingDependency as problem:
        raise MissingDependency(f"{file}: {problem}") from None
    except other_programs.NoAnswer as problem:
        what = other_programs.PROGRAMS[program].name
        raise RobokitError(f"{file}: {what} cannot read it: {problem}") from None
    except RobokitError as problem:
        said = str(problem).replace(os.fspath(plain), os.fspath(file))
        raise RobokitError(said if os.fspath(file) in said else f"{file}: {said}") from None


def _outermost(file: Path) -> str:
    """Name of the outermost element; "" if it is not XML."""
    with file.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    text = re.sub(rb"<!--.*?-->|<\?.*?\?>|<![^>]*>", b"", head.replace(b"\0", b""), flags=re.DOTALL)
    found = re.search(rb"<\s*([A-Za-z_][\w.-]*)", text)
    return found.group(1).decode() if found else ""
