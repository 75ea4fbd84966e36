"""The reader that a file needs, by its ending and its outermost element."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from robokit.arguments import one_of, path_argument
from robokit.errors import MissingDependency, RobokitError
from robokit.meshes.companions import FETCH, POINTER
from robokit.parity import foreign
from robokit.parity.peer_faults import peer_faults
from robokit.parity.sides.side import Side, check_numbers
from robokit.parity.sides.urdf_side import urdf_side
from robokit.urdf.read.xacro import expand_xacro, is_xacro

PROGRAMS = ("robokit", "mujoco", "drake", "pinocchio")
"""Programs that may read a URDF."""

USD = (".usd", ".usda", ".usdc", ".usdz")
HEAD = 1 << 16

XACRO_OF = {"mujoco": ".xml", "sdf": ".sdf", "model": ".sdf", "world": ".sdf"}
"""Outermost element of a xacro file -> ending of what it expands to, other than a URDF's."""


def open_side(
    path: str | os.PathLike[str],
    through: str = "robokit",
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Side:
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
    tag = "" if file.suffix.lower() in USD else _outermost(file)
    with file.open("rb") as stream:
        if stream.read(64).startswith(POINTER):
            raise RobokitError(f"{file}: is a Git LFS pointer, not the file itself; {FETCH}")
    if file.suffix.lower() in USD:
        program = "usd"
    elif tag == "mujoco":
        program = "mujoco"
    elif tag in ("sdf", "model", "world"):
        program = "drake"
    else:
        program = through
    if program == "robokit":
        return urdf_side(file, package_dirs, xacro_args, loops)
    if not is_xacro(file):
        return _foreign_side(file, file, program, package_dirs)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / (file.stem + XACRO_OF.get(tag, ".urdf"))
        plain.write_text(expand_xacro(file, xacro_args, package_dirs), encoding="utf-8")
        side = _foreign_side(file, plain, program, package_dirs)
        side.file += " (expanded)"
        return side


def _foreign_side(
    file: Path, plain: Path, program: str, package_dirs: Sequence[str | os.PathLike[str]]
) -> Side:
    """What another program reads, in a child with bounded time and memory.

    Args:
        file: what the user named.
        plain: what is read: the file, or what it is when expanded.
        program: a key of ``foreign.PROGRAMS``.
        package_dirs: as for :func:`open_side`.
    """
    try:
        foreign.require(program)
        more = ([os.fspath(folder) for folder in package_dirs],) if program == "drake" else ()
        name = f"{program}_side"
        side = cast(Side, foreign.call(f"robokit.parity.sides.{name}", name, os.fspath(plain), *more))
        side.file = os.fspath(file)
        check_numbers(side)
        side.notes += peer_faults(program, plain.read_bytes)
        return side
    except MissingDependency as problem:
        raise MissingDependency(f"{file}: {problem}") from None
    except foreign.NoAnswer as problem:
        what = foreign.PROGRAMS[program].name
        raise RobokitError(f"{file}: {what} cannot read it: {problem}") from None
    except RobokitError as problem:
        said = str(problem).replace(os.fspath(plain), os.fspath(file))
        raise RobokitError(said if os.fspath(file) in said else f"{file}: {said}") from None


def _outermost(file: Path) -> str:
    """Name of the outermost element; "" if it is not XML."""
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    text = re.sub(rb"<!--.*?-->|<\?.*?\?>|<![^>]*>", b"", head.replace(b"\0", b""), flags=re.DOTALL)
    found = re.search(rb"<\s*([A-Za-z_][\w.-]*)", text)
    return found.group(1).decode() if found else ""
