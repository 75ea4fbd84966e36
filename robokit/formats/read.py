"""Which program reads a description, and what it reads: one form for URDF, MJCF, SDF and USD."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from robokit.arguments import one_of, path_argument
from robokit.errors import MissingDependency, RobokitError
from robokit.formats import other_programs
from robokit.formats.description import Description, check_numbers, unlimited
from robokit.formats.other_programs import peer_faults
from robokit.formats.sdf import read_sdf
from robokit.formats.urdf import read_urdf
from robokit.meshes.untrusted import FETCH, POINTER
from robokit.urdf.xacro import expand_xacro, is_xacro

PROGRAMS = ("robokit", "mujoco", "drake", "pinocchio")
"""Programs that may read a URDF."""

USD_ENDINGS = (".usd", ".usda", ".usdc", ".usdz")
HEAD_BYTES = 1 << 16

USD_BEGINNINGS = (b"#usda", b"PXR-USDC")
"""How USD files begin, as text and packed."""


def read_description(
    path: str | os.PathLike[str],
    through: str = "robokit",
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Description:
    """Read a description: URDF, xacro, MJCF, SDF or USD.

    Args:
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
    program = {"MJCF": "mujoco", "SDF": "drake", "USD": "usd"}.get(format_of(file), through)
    with file.open("rb") as stream:
        if stream.read(64).startswith(POINTER):
            raise RobokitError(f"{file}: is a Git LFS pointer, not the file itself; {FETCH}")
    if program == "robokit":
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

    Args:
        package_dirs, xacro_args: as for :func:`read_description`.
        root: what of the file is the robot, where the reader chooses: a model of an SDF world.

    Raises:
        RobokitError: the file cannot be read.
        MissingDependency: the program that reads the format is not installed.
    """
    kind = format_of(path)
    with path.open("rb") as stream:
        if stream.read(64).startswith(POINTER):
            raise RobokitError(f"{path}: is a Git LFS pointer, not the file itself; {FETCH}")
    if kind == "SDF":
        text = expand_xacro(path, xacro_args, package_dirs).encode() if is_xacro(path) else None
        return read_sdf(path, package_dirs, root, text)
    program, reader = {
        "MJCF": ("mujoco", ("robokit.formats.mujoco_scene", "read_mujoco_robot")),
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
    tag = _outermost(head)
    return "MJCF" if tag == "mujoco" else "SDF" if tag in ("sdf", "model", "world") else "URDF"


def _read_elsewhere(
    file: Path,
    program: str,
    reader: tuple[str, str],
    more: tuple[Any, ...],
    package_dirs: Sequence[str | os.PathLike[str]],
    xacro_args: Mapping[str, str] | None,
) -> Description:
    """What another program reads, in a child with bounded time and memory; a xacro file is expanded first.

    Args:
        file: what the user named.
        program: a key of ``other_programs.PROGRAMS``.
        reader: module and name of the function that reads.
        more: its arguments behind the path.
        package_dirs, xacro_args: as for :func:`read_description`.
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
    try:
        other_programs.require(program)
        plain = Path(os.path.abspath(plain))  # names of meshes are to lead to them from everywhere
        description = cast(Description, other_programs.call(*reader, os.fspath(plain), *more))
        description.file = os.fspath(file)
        check_numbers(description)
        unlimited(description)
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


def _outermost(head: bytes) -> str:
    """Name of the outermost element of XML that begins so; "" if it is not XML."""
    text = re.sub(rb"<!--.*?-->|<\?.*?\?>|<![^>]*>", b"", head.replace(b"\0", b""), flags=re.DOTALL)
    found = re.search(rb"<\s*([A-Za-z_][\w.-]*)", text)
    return found.group(1).decode() if found else ""
