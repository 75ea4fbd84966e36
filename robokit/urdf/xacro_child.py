"""Expands one xacro file in a process of its own, whose time and memory are bounded.

An expression of a xacro file can ask for any amount of work (``${9**9**9}``), and nothing inside a process
stops it. So :mod:`robokit.urdf.xacro` has this file, which imports nothing of robokit, answer in a child
(:mod:`robokit.child_process`): ``{"text": ...}`` with the arguments that are ``"unknown"`` to the file,
``{"missing": True}``, or ``{"problem": ...}`` with, where that is the reason, the ``"argument"`` that has no
value or the ``"package"`` that is not there.
"""

from __future__ import annotations

import contextlib
import os
import re
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
    """The answer for one file at an absolute path, with values of its ``<xacro:arg>``.

    ``roots`` are folders that packages are looked for in, ``longest`` the characters of the longest text
    given back.
    """
    try:
        import xacro
    except ImportError:
        return {"missing": True}
    _find_packages(xacro, roots)
    given = Arguments(args)
    try:
        text = xacro.process_file(path, mappings=given).toxml()
    except Exception as problem:  # xacro lets through whatever an expression raises
        chain = _chain(problem)
        if any(isinstance(one, MemoryError) for one in chain):  # its message is empty
            return {"problem": "it needs more memory than it may have"}
        answer = {"problem": _words(problem)}
        for one in chain:
            if type(one).__name__ == "ArgException":
                answer["argument"] = str(one)
            elif isinstance(one, NoPackage):
                answer["package"] = one.package
        files = [os.path.abspath(str(f)) for f in getattr(xacro, "filestack", None) or () if f]
        inside = [files[-1]] if files and files[-1] != path else []
        inside += [f"macro {m.body.getAttribute('name')}" for m in getattr(xacro, "macrostack", None) or ()][
            -1:
        ]
        answer["problem"] += f" (in {', '.join(inside)})" if inside else ""
        return answer
    if len(text) > longest:
        return {"problem": f"the expanded text has {len(text)} characters, at most {longest} are read"}
    return {"text": text, "unknown": [name for name in args if name not in given.asked_for]}


class Arguments(dict[str, str]):
    """Values of ``<xacro:arg>``, as xacro takes them; the file has declared or used those ``asked_for``."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.asked_for: set[object] = set()

    def __contains__(self, name: object) -> bool:
        self.asked_for.add(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked_for.add(name)
        return super().__getitem__(name)


class NoPackage(Exception):
    """A package, by its name, that is in no folder."""

    def __init__(self, package: str) -> None:
        self.package = package
        super().__init__(f"$(find {package}): there is no such package")


def _chain(problem: BaseException, reasons: bool = True) -> list[BaseException]:
    """An exception, those that xacro has put into it, and the reasons for which they were raised."""
    chain = [problem]
    while len(chain) < 20:
        last = chain[-1]
        inner = getattr(last, "exc", None) or (reasons and (last.__cause__ or last.__context__))
        if not isinstance(inner, BaseException) or inner in chain:
            break
        chain.append(inner)
    return chain


def _words(problem: BaseException) -> str:
    """What an exception and those inside it say, each thing once, without the names of their classes."""
    chain = _chain(problem, reasons=False)
    if any(isinstance(one, RecursionError) for one in _chain(problem)):
        return "a macro or an expression calls itself without end"
    suffixes = [str(getattr(one, "suffix", None) or "") for one in reversed(chain)]
    said: dict[str, set[str]] = {}
    for text in (*map(_own_words, chain), *suffixes):
        text = " ".join(re.sub(r"<class '[^']*'>:?", " ", text).split())
        words = set(re.findall(r"[^\s:]+", text))  # equal messages may have their words in another order
        if words and not any(words <= other for other in said.values()):
            said = {other: own for other, own in said.items() if not own <= words}
            said[text] = words
    return " ".join(said) or type(chain[-1]).__name__


def _own_words(one: BaseException) -> str:
    if isinstance(one, OSError):
        return f"{one.filename}: {one.strerror}" if one.filename else str(one)
    if isinstance(one, KeyError):
        return f"there is no key {one}"
    return str(one.args[0]) if one.args and one.args[0] is not None else ""


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
        raise NoPackage(package)

    module._eval_find = module._eval_dict["find"] = find
