"""What the commands share: loading robots, finding and naming files, saying what went wrong."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robokit.errors import RobokitError

MOST_WARNINGS = 3
"""Warnings of the importer that a command shows before it gets to its work."""


def fail(message: str) -> int:
    """Say what went wrong; the exit status."""
    print(f"robokit: {message}", file=sys.stderr)
    return 1


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    """A warning in one line, in the place of ``warnings.showwarning``."""
    print(f"robokit: warning: {message}", file=sys.stderr)


def load(name: str, base: str, mimic: str | None = None) -> Any:
    """The robot of that name; a few of the importer's warnings go to stderr."""
    import robokit as rk

    robot = rk.load_urdf(rk.find_robot(name), base=base, mimic=mimic)
    found = [d for d in robot.diagnostics if d.severity != "note"]
    for diagnostic in found[:MOST_WARNINGS]:
        print(diagnostic, file=sys.stderr)
    if len(found) > MOST_WARNINGS:
        print(f"... and {len(found) - MOST_WARNINGS} more: robokit check {name}", file=sys.stderr)
    return robot


def named_files(names: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Files that arguments mean, and a line for each that means none; EXAMPLES alone means all its robots."""
    from robokit.robot_names import EXAMPLES, example_files, find_robot
    from robokit.urdf.lint.files import urdf_files

    all_names: list[str] = []
    for name in names:
        every = name == EXAMPLES and not Path(name).exists()
        all_names += map(str, example_files()) if every else [name]
    return urdf_files(all_names, find_robot)


def writable(name: str, *suffixes: str) -> Path:
    """The file to write, looked at before any work; the first suffix is appended where there is none."""
    path = Path(name)
    if not name or path.is_dir():
        raise RobokitError(f"cannot write to {name!r}: give the name of a file")
    if not path.suffix:
        path = path.with_name(path.name + suffixes[0])
    if path.suffix.lower() not in suffixes:
        raise RobokitError(f"cannot write {path}: the name must end in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise RobokitError(f"cannot write {path}: there is no folder {str(path.parent)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise RobokitError(f"cannot write {path}: permission denied")
    return path


def open_page(page: Path, no_open: bool) -> None:
    """Open a page in the browser, unless that is not wanted."""
    if not no_open and not webbrowser.open(page.resolve().as_uri()):
        print("  no browser found: open the page by hand", file=sys.stderr)
