"""``.xacro`` files, expanded by the package of that name, which is optional.

Expanding runs what the file says: xacro includes other files, reads environment variables and evaluates
Python expressions. robokit does so for paths that end in ``.xacro`` only; a .urdf never leads to it. It
happens in a process of its own, which is stopped after a time and has a bound on its memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robokit.arguments import path_argument
from robokit.child_process import MOST_MEMORY, MOST_SECONDS, Child, OutOfBounds
from robokit.errors import WrongType, warn
from robokit.urdf import xacro_child
from robokit.urdf.findings import Report, refusal
from robokit.urdf.mesh_files import Resolver, folders
from robokit.urdf.source import MAX_BYTES, decode, is_refused, read_file, without_declaration

INSTALL = 'pip install "robokit[xacro]"'

PathLike = str | os.PathLike[str]


def expand_xacro(path: PathLike, args: Mapping[str, str] | None = None, package_dirs: Any = ()) -> str:
    """The URDF text of a xacro file, for ``loads_urdf(text, folder=...)``.

    Only for files that you trust: see :mod:`robokit.urdf.xacro`.

    Args:
        path: the file.
        args: values of its ``<xacro:arg>``, what ``xacro`` takes as ``name:=value``.
        package_dirs: folders searched first for ``$(find package)``.

    Raises:
        UrdfError: no such file, xacro is not installed, or it cannot expand the file within 30 s and 2 GiB.

    Warns:
        UserWarning: a name in ``args`` that the file does not ask for.

    Example:
        >>> from pathlib import Path
        >>> from robokit.urdf import expand_xacro
        >>> robot = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        >>> text = robot + '<xacro:arg name="root" default="a"/><link name="$(arg root)"/></robot>'
        >>> size = Path("r.xacro").write_text(text)
        >>> '<link name="base"/>' in expand_xacro("r.xacro", {"root": "base"})
        True
    """
    if args is not None and not isinstance(args, Mapping):
        raise WrongType("args", args, "a mapping of names to values")
    report = Report(str(path_argument("path", path)))
    text = expanded(path, report, folders(package_dirs), args)
    refusing = refusal(report.file, report.diagnostics())
    if refusing is not None:
        raise refusing
    for finding in report.diagnostics():
        warn(str(finding), UserWarning)
    assert text is not None
    return text


def is_xacro(path: Any) -> bool:
    """Whether the path ends in .xacro."""
    return not isinstance(path, bytes) and os.fspath(path).lower().endswith(".xacro")


def expanded(
    path: PathLike,
    report: Report,
    package_dirs: Sequence[PathLike] = (),
    args: Mapping[str, str] | None = None,
) -> str | None:
    """The expanded text, or None with an error in the report, whose file becomes "... (expanded)"."""
    data = read_file(path, report)
    text = None if data is None else decode(data, report)
    if text is None or is_refused(without_declaration(text), report):
        return None
    answer = _ask_child(
        os.path.abspath(path), dict(args or {}), Resolver(Path(path).absolute().parent, package_dirs)
    )
    if "missing" in answer:
        message = "is a xacro file, and the package xacro, which expands it, is not installed"
        report.add("xacro-missing", "file", 0, message, f"{INSTALL}, or expand it: xacro in.xacro > out.urdf")
        return None
    if "argument" in answer:
        # Arguments that the file uses and gives no default, in its order, but for those that are given.
        given = {*(args or {}), *_DECLARED.findall(text)}
        names = {name: None for name in _USED.findall(text) if name not in given} | {answer["argument"]: None}
        shown = ", ".join(names)
        message = f"xacro needs a value of {'arguments' if len(names) > 1 else 'the argument'} {shown}"
        values = ", ".join(f"{name!r}: ..." for name in names)
        hint = (
            f"on the command line {' '.join(f'{name}:=VALUE' for name in names)}, in Python "
            f"xacro_args={{{values}}}"
        )
        report.add("xacro-argument", "file", 0, message, hint)
        return None
    if "package" in answer:
        answer["hint"] = "pass package_dirs=[the folder that holds it], on the command line --package-dir DIR"
    if "problem" in answer:
        message = f"xacro cannot expand it: {answer['problem']}"
        report.add("xacro-failed", "file", 0, message, answer.get("hint"))
        return None
    for name in answer["unknown"]:
        report.add("xacro-argument-unknown", "file", 0, f"has no argument {name!r}, whose value is given")
    report.file += " (expanded)"
    return str(answer["text"])


_USED = re.compile(r"\$\(arg\s+([A-Za-z_][\w.-]*)\s*\)")
_DECLARED = re.compile(r"<xacro:arg\s[^>]*?name\s*=\s*[\"']([^\"']*)[\"']")


def _ask_child(path: str, args: dict[str, str], resolver: Resolver) -> dict[str, Any]:
    """The answer of :mod:`robokit.urdf.xacro_child` for a file, or a problem where there is none."""
    named = {str(name): str(value) for name, value in args.items()}
    question = {"path": path, "args": named, "roots": resolver.roots, "longest": MAX_BYTES}
    try:
        with Child(
            xacro_child.__file__, MOST_SECONDS, MOST_MEMORY, work="expands"
        ) as child:  # a new one for each file
            return dict(child.ask(question))
    except OutOfBounds as problem:
        hint = "look for an expression that never ends, or a macro that calls itself"
        return {"problem": str(problem), "hint": hint}
