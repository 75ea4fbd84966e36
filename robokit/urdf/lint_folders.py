"""The robots in a folder: its .urdf files, and those of its .xacro files that are whole robots.

Nothing is expanded here: the elements say enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from robokit.urdf.findings import Report
from robokit.urdf.reader import Reader
from robokit.urdf.source import decode, parse_xml, read_file
from robokit.urdf.xacro import is_xacro

if TYPE_CHECKING:
    from lxml import etree

_NO_CONTENT = frozenset(("xacro:macro", "xacro:property", "xacro:arg", "xacro:insert_block"))
_CONTROL = frozenset(("xacro:if", "xacro:unless", "xacro:include", "xacro:element", "xacro:attribute"))


def is_robot_file(path: Path) -> bool:
    """Whether the ending is that of a URDF or of a macro file."""
    return path.suffix.lower() in (".urdf", ".xacro")


def robot_files(folder: Path) -> Iterator[Path]:
    """URDFs and xacro files in a folder and below it.

    Hidden folders are left out, and links to folders are not followed, so that it ends.
    """
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (path for path in (Path(here) / name for name in names) if is_robot_file(path))


def without_parts(paths: Iterable[Path]) -> list[Path]:
    """The paths but for xacro files that hold nothing but macros, or that another of the files includes.

    A xacro file is a robot where something outside its macros makes links: a ``<link>``, the call of a
    macro, or, in a robot with a name, an included file. A file that cannot be read stays and is reported.
    """
    paths = list(paths)
    macros = {path: _root(path) for path in paths if is_xacro(path)}
    whole = [path for path in paths if (root := macros.get(path)) is None or _makes_links(*root)]
    parts = [part for path, root in macros.items() if root for part in _included(path, *root)]
    return [path for path in whole if path not in macros or not _is_one_of(path, parts)]


def _is_one_of(path: Path, parts: Iterable[str]) -> bool:
    place = path.absolute().as_posix()
    return any(place == part or place.endswith(f"/{part}") for part in parts)


def _root(path: Path) -> tuple[etree._Element, Reader] | None:
    report = Report(str(path))
    data = read_file(path, report)
    text = None if data is None else decode(data, report)
    parsed = None if text is None else parse_xml(text, report)
    return None if parsed is None else (parsed[0], Reader(*parsed, report))


def _outside_macros(root: etree._Element, reader: Reader) -> Iterator[tuple[str, etree._Element]]:
    """(tag, element) of all elements outside of macros."""
    stack = [root]
    while stack:
        element = stack.pop()
        tag = reader.tag(element)
        if tag not in _NO_CONTENT:
            yield tag, element
            stack.extend(element)


def _makes_links(root: etree._Element, reader: Reader) -> bool:
    named = bool(root.get("name"))
    return any(
        tag == "link"
        or (tag.startswith("xacro:") and tag not in _CONTROL)
        or (tag == "xacro:include" and named)
        for tag, _ in _outside_macros(root, reader)
    )


def _included(path: Path, root: etree._Element, reader: Reader) -> Iterator[str]:
    """The files that one includes: whole paths, or their ends behind ``$(find ...)``."""
    for element in root.iter():
        name = element.get("filename")
        if not name or reader.tag(element) != "xacro:include":
            continue
        if "$" not in name:
            yield Path(os.path.normpath(path.absolute().parent / name)).as_posix()
        elif end := name[max(name.rfind(")"), name.rfind("}")) + 1 :].lstrip("/"):
            yield end
