"""Expands one xacro file in a process of its own, whose time and memory are bounded.

An expression of a xacro file can ask for any amount of work (``${9**9**9}``), and nothing inside a process
stops it. So :mod:`robokit.urdf.read.xacro` has this file, which imports nothing of robokit, answer in a child
(:mod:`robokit.bounded`): ``{"text": ...}`` or ``{"missing": True}`` or ``{"problem": ...}``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any


def package_folders(roots: Sequence[str], name: str) -> list[str]:
    """Where a package of this name may be, in the order of the folders that are searched."""
    folders: dict[str, None] = {}
    for root in roots:
        if os.path.basename(root) == name:
            folders[root] = None
        folders[os.path.join(root, name)] = None
    return list(folders)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The answer for one file; arguments as for :func:`expand`."""
    return expand(**question)


def expand(path: str, args: dict[str, str], roots: Sequence[str], longest: int) -> dict[str, Any]:
    """The answer for one file.

    Args:
        path: absolute path of the file.
        args: values of its ``<xacro:arg>``.
        roots: folders that packages are looked for in.
        longest: characters of the longest text that is given back.
    """
    try:
        import xacro
    except ImportError:
        return {"missing": True}
    _find_packages(xacro, roots)
    try:
        text = xacro.process_file(path, mappings=args).toxml()
    except Exception as problem:  # xacro lets through whatever an expression raises
        if isinstance(getattr(problem, "exc", problem), MemoryError):  # xacro wraps it and says nothing
            return {"problem": "it needs more memory than it may have"}
        what = f"{problem}" or type(problem).__name__
        files = [os.path.abspath(str(f)) for f in getattr(xacro, "filestack", None) or () if f]
        inside = f" (in {files[-1]})" if files and files[-1] != path else ""
        return {"problem": what + inside}
    if len(text) > longest:
        return {"problem": f"the expanded text has {len(text)} characters, at most {longest} are read"}
    return {"text": text}


def _find_packages(xacro: Any, roots: Sequence[str]) -> None:
    """``$(find package)`` looks where ``package://`` does, then in ROS's own index."""
    from xacro import substitution_args as module

    ros = module._eval_find

    def find(package: str) -> str:
        for folder in package_folders(roots, package):
            if os.path.isdir(folder):
                return folder
        with contextlib.suppress(Exception):
            return str(ros(package))
        raise xacro.XacroException(
            f"$(find {package}): there is no such package; pass package_dirs=[the folder that holds it]"
        )

    module._eval_find = module._eval_dict["find"] = find
