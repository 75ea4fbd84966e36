"""The reader that a file needs, by its ending and its outermost element."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from robokit.arguments import one_of, path_argument
from robokit.errors import RobokitError
from robokit.parity.sides.side import Side
from robokit.parity.sides.urdf_side import urdf_side

PROGRAMS = ("robokit", "mujoco", "drake", "pinocchio")
"""Programs that may read a URDF."""

USD = (".usd", ".usda", ".usdc", ".usdz")
HEAD = 1 << 16


def open_side(
    path: str | os.PathLike[str],
    through: str = "robokit",
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    xacro_args: Mapping[str, str] | None = None,
) -> Side:
    """Read a description: URDF, xacro, MJCF, SDF or USD.

    Args:
        path: the file.
        through: the program that reads a URDF, one of ``PROGRAMS``.
        package_dirs: folders searched first for ``package://`` files.
        xacro_args: values of the arguments of a .xacro file.

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
    if file.suffix.lower() in USD:
        from robokit.parity.sides.usd_side import usd_side

        return usd_side(file)
    tag = _outermost(file)
    if tag == "mujoco":
        from robokit.parity.sides.mujoco_side import mujoco_side

        return mujoco_side(file)
    if tag in ("sdf", "model", "world"):
        from robokit.parity.sides.drake_side import drake_side

        return drake_side(file)
    if through == "mujoco":
        from robokit.parity.sides.mujoco_side import mujoco_side

        return mujoco_side(file)
    if through == "drake":
        from robokit.parity.sides.drake_side import drake_side

        return drake_side(file)
    if through == "pinocchio":
        from robokit.parity.sides.pinocchio_side import pinocchio_side

        return pinocchio_side(file)
    return urdf_side(file, package_dirs, xacro_args)


def _outermost(file: Path) -> str:
    """Name of the outermost element; "" if it is not XML."""
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    text = re.sub(rb"<!--.*?-->|<\?.*?\?>|<![^>]*>", b"", head.replace(b"\0", b""), flags=re.DOTALL)
    found = re.search(rb"<\s*([A-Za-z_][\w.-]*)", text)
    return found.group(1).decode() if found else ""
