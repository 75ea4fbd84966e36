"""``.xacro`` files, expanded by the package of that name, which is optional.

Expanding runs what the file says: xacro includes other files, reads environment variables and evaluates
Python expressions. robokit does so for paths that end in ``.xacro`` only; a .urdf never leads to it.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robokit.urdf.findings import Report, refusal
from robokit.urdf.read.mesh_files import Resolver
from robokit.urdf.read.source import decode, read_file, refused

INSTALL = 'pip install "robokit[xacro]"'
_LOCK = threading.Lock()  # xacro keeps its state in its module

PathLike = str | os.PathLike[str]


def expand_xacro(path: PathLike, args: Mapping[str, str] | None = None, package_dirs: Any = ()) -> str:
    """The URDF text of a xacro file, for ``loads_urdf(text, folder=...)``.

    Only for files that you trust: see :mod:`robokit.urdf.xacro`.

    Args:
        path: the file.
        args: values of its ``<xacro:arg>``, what ``xacro`` takes as ``name:=value``.
        package_dirs: folders searched first for ``$(find package)``.

    Raises:
        UrdfError: no such file, xacro is not installed, or it cannot expand the file.
    """
    report = Report(os.fspath(path))
    dirs = [package_dirs] if isinstance(package_dirs, (str, os.PathLike)) else list(package_dirs)
    text = expanded(path, report, dirs, args)
    refusing = refusal(report.file, report.diagnostics())
    if refusing is not None:
        raise refusing
    assert text is not None
    return text


def is_xacro(path: Any) -> bool:
    """Whether the path's ending asks for xacro."""
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
    if text is None or refused(text.removeprefix("\ufeff"), report):
        return None
    try:
        import xacro
    except ImportError:
        message = "is a xacro macro file, and the package that expands it is not installed"
        report.add("xacro-missing", "file", 0, message, f"{INSTALL}, or expand it: xacro in.xacro > out.urdf")
        return None
    folder = Path(path).absolute().parent
    said = io.StringIO()  # xacro talks to stderr; its exceptions say the same
    try:
        with _LOCK, contextlib.redirect_stderr(said), _packages(xacro, Resolver(folder, package_dirs)):
            document = xacro.process_file(os.path.abspath(path), mappings=dict(args or {}))
            text = document.toxml()
    except Exception as problem:  # xacro lets through whatever an expression raises
        what = " ".join(f"{problem}".split()) or type(problem).__name__
        files = [os.path.abspath(str(f)) for f in getattr(xacro, "filestack", None) or () if f]
        inside = f" (in {files[-1]})" if files and files[-1] != os.path.abspath(path) else ""
        report.add("xacro-failed", "file", 0, f"xacro cannot expand it: {what}{inside}")
        return None
    report.file += " (expanded)"
    return text


@contextlib.contextmanager
def _packages(xacro: Any, resolver: Resolver) -> Iterator[None]:
    """``$(find package)`` looks where ``package://`` does, then in ROS's own index."""
    from xacro import substitution_args as module

    ros = module._eval_find

    def find(package: str) -> str:
        for folder in resolver.package_folders(package):
            if os.path.isdir(folder):
                return folder
        with contextlib.suppress(Exception):
            return ros(package)
        raise xacro.XacroException(
            f"$(find {package}): there is no such package; pass package_dirs=[the folder that holds it]"
        )

    module._eval_find = module._eval_dict["find"] = find
    try:
        yield
    finally:
        module._eval_find = module._eval_dict["find"] = ros
