"""What the commands share: loading robots, finding files, messages, standard output."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robokit import stages
from robokit.errors import MissingDependency, RobokitError, one_line

MOST_WARNINGS = 3
"""Warnings of the importer that a command shows before it starts its work."""

WRONG_USAGE = 2
"""Exit status where the arguments mean nothing, as argparse has it."""

BROKE_DOWN = 3
"""Exit status of a simulation that broke down."""

LONGEST_STEM = 100
"""Bytes of a robot's name in the names of files: all file systems take so many and an ending."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it: 128 + the number of the signal."""


class WrongUsage(RobokitError):
    """Arguments that mean nothing, such as the name of a robot that does not exist: exit status 2."""


def fail(message: str) -> int:
    """Print an error; returns exit status 1."""
    say(message)
    return 1


def say(message: str) -> None:
    """Print a message on standard error."""
    tell(f"robokit: {message}", sys.stderr)


def tell(text: Any, stream: Any = None, flush: bool = False) -> None:
    """Print lines; what would move the cursor or colour a terminal, as names may, is shown as escapes."""
    lines = (line if line.isprintable() else one_line(line, len(line)) for line in str(text).split("\n"))
    stages.clear()
    print("\n".join(lines), file=stream, flush=flush)


def show_warning(message: Any, *_: Any, **__: Any) -> None:
    """Print a warning in one line; takes the place of ``warnings.showwarning``."""
    say(f"warning: {message}")


def counted(n: int, thing: str) -> str:
    """A number and a noun in its right form: "1 joint", "2 joints", "2 bodies"."""
    plural = thing[:-1] + "ies" if thing.endswith("y") else thing + "s"
    return f"{n} {thing if n == 1 else plural}"


def tolerant_output() -> None:
    """Let standard output and error show characters that their encoding lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_output() -> None:
    """Write what standard output still holds: a full disk, or a reader that has gone, may show only now."""
    if sys.stdout is not None:
        sys.stdout.flush()


def drop_output() -> None:
    """Drop what standard output cannot write, so that the interpreter does not try again and complain."""
    try:
        flush_output()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(table: Any, indent: int = 2) -> None:
    """Print JSON; characters that standard output cannot show become escapes, and infinities null."""
    print(json.dumps(_finite(table), indent=indent, ensure_ascii=not _shows_all(sys.stdout), default=str))


def print_xml(text: str) -> None:
    """Print XML; characters that standard output cannot show become character references."""
    if not _shows_all(sys.stdout):
        text = text.encode("ascii", "xmlcharrefreplace").decode("ascii")
    print(text, end="")


def _finite(value: Any) -> Any:
    """The value with None for infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shows_all(stream: Any) -> bool:
    return str(getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"


def load(name: str, base: str, mimic: str | None = None) -> Any:
    """The robot of that name; the first of the importer's warnings go to standard error."""
    import robokit as rk

    robot = rk.load_urdf(named_robot(name), base=base, mimic=mimic)
    found = [d for d in robot.diagnostics if d.severity != "note"]
    for diagnostic in found[:MOST_WARNINGS]:
        print(diagnostic, file=sys.stderr)
    if len(found) > MOST_WARNINGS:
        print(f"... and {len(found) - MOST_WARNINGS} more: robokit check {name}", file=sys.stderr)
    return robot


def named_robot(name: str) -> Path:
    """The file of the robot of that name.

    Raises:
        WrongUsage: there is none.
    """
    import robokit as rk

    try:
        return rk.find_robot(name)
    except MissingDependency:
        raise
    except RobokitError as error:
        raise WrongUsage(str(error)) from error


def named_files(names: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files that arguments refer to, and a message for each argument that refers to none.

    The name of the package of example robots alone stands for all its robots.
    """
    from robokit.robot_names import EXAMPLES, example_files, expanded, find_robot
    from robokit.urdf.lint.files import urdf_files

    all_names: list[str] = []
    problems = []
    for name in names:
        if name == EXAMPLES and not Path(name).exists():
            all_names += map(str, example_files())
        elif not name:
            problems.append("the name of a file is empty")
        else:
            try:
                all_names.append(str(expanded(name)) if name.startswith("~") else name)
            except RobokitError as error:
                problems.append(str(error))
    files, more = urdf_files(all_names, find_robot)
    return files, problems + more


def open_page(page: Path, no_open: bool) -> None:
    """Open a page in the browser, unless the user does not want that."""
    if not no_open and not webbrowser.open(page.resolve().as_uri()):
        print("  no browser found: open the page by hand", file=sys.stderr)


def file_stem(robot: Any) -> str:
    """The robot's name as the start of a file name; digits tell apart long names that begin alike."""
    name = str(robot.name).replace("/", "_").replace("\\", "_") or "robot"
    raw = name.encode(errors="backslashreplace")
    if len(raw) <= LONGEST_STEM:
        return name
    return f"{raw[:LONGEST_STEM].decode(errors='ignore')}_{hashlib.sha256(raw).hexdigest()[:8]}"


def cache_folder() -> Path:
    """The folder of compiled code.

    Raises:
        RobokitError: there is none, because the user has no home folder.
    """
    from robokit.disk_cache import folder

    try:
        return folder()
    except RuntimeError:
        raise RobokitError(
            "there is no folder for compiled code, because this user has no home folder; set "
            "ROBOKIT_CACHE_DIR to a folder of your own"
        ) from None
