"""What the commands share: loading robots, finding files, messages, files to write, the time of compiling."""

from __future__ import annotations

import argparse
import errno
import hashlib
import io
import json
import logging
import math
import os
import re
import sys
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from robokit import stages
from robokit.errors import (
    InvalidValue,
    MissingDependency,
    OptionError,
    RobokitError,
    ShapeError,
    UnknownName,
    WriteError,
    WrongType,
    counted,
    one_line,
)
from robokit.files import obstacle

MOST_WARNINGS = 3  # warnings of the importer that a command shows before it starts its work
WRONG_USAGE = 2  # exit status where the arguments mean nothing, as argparse has it
SIMULATION_FAILED = 3  # exit status of a simulation that broke down
LONGEST_STEM_BYTES = 100  # of a robot's name in names of files: all systems take so many and an ending
INTERRUPTED = 130  # exit status after Ctrl-C, as shells have it: 128 + the number of the signal


class WrongUsage(RobokitError):
    """Arguments that mean nothing, such as the name of a robot that does not exist: exit status 2."""


NOT_ACCEPTED = (WrongUsage, OptionError, UnknownName, WrongType, ShapeError, InvalidValue)
"""Errors over an argument, of the command or of the function that it calls: exit status 2."""

NO_SUCH_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
"""The system's numbers of an output that is a folder, or in a folder that is not there: exit status 2."""


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


def load(
    name: str, base: str | None, mimic: str | None = None, arguments: argparse.Namespace | None = None
) -> Any:
    """The robot of that name; the first of the importer's warnings go to standard error.

    Args:
        name: what find_robot takes.
        base, mimic: as for rk.load.
        arguments: of the command, with what :func:`reading` finds in them.
    """
    import robokit as rk

    try:
        path = rk.find_robot(name, fetch=True)
    except MissingDependency:
        raise
    except RobokitError as error:  # there is none
        raise WrongUsage(str(error)) from error
    options = reading(arguments)
    if len(getattr(arguments, "robots", ())) < 2:
        see_xacro([path], options.get("xacro_args") or {})
    elif not path.name.lower().endswith(".xacro"):  # the arguments are those of the others
        options.pop("xacro_args", None)
    robot = rk.load(path, base=base, mimic=mimic, **options)
    found = [d for d in robot.diagnostics if d.severity != "note"]
    for diagnostic in found[:MOST_WARNINGS]:
        print(diagnostic, file=sys.stderr)
    if len(found) > MOST_WARNINGS:
        print(f"... and {len(found) - MOST_WARNINGS} more: robokit check {name}", file=sys.stderr)
    return robot


def tell_up_axes(robot: Any, arguments: argparse.Namespace) -> None:
    """Say that meshes give another axis than z as up, before they are drawn as if z were."""
    if arguments.mesh_up_axis != "ignore":
        return
    from robokit.meshes.collada import up_axis

    shapes = (shape for link in robot.links for shape in (*link.visuals, *link.collisions))
    paths = {getattr(shape.geometry, "path", None) for shape in shapes} - {None}
    turned = sum(up_axis(path) != "Z" for path in paths)
    if turned:
        one = turned == 1
        say(
            f"{counted(turned, 'COLLADA file')} {'says' if one else 'say'} that x or y is up, and "
            f"{'is' if one else 'are'} read as if z were, as in RViz; if parts look turned: "
            "--mesh-up-axis apply"
        )


def xacro_arguments(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """What is left of a command line, and its arguments of the form NAME:=VALUE, as xacro takes them."""
    found = [(each, re.fullmatch(r"([A-Za-z_][\w.-]*):=(.*)", each, re.DOTALL)) for each in argv]
    given = {match[1]: match[2] for _, match in found if match}
    return [each for each, match in found if not match], given


def see_xacro(files: Sequence[Any], given: dict[str, str]) -> None:
    """Raise WrongUsage for arguments of xacro where none of the files is a .xacro file."""
    if given and not any(str(file).lower().endswith(".xacro") for file in files):
        name = next(iter(given))
        raise WrongUsage(f"{name}:=... is an argument of a .xacro file, and no such file is given")


def reading(arguments: argparse.Namespace | None) -> dict[str, Any]:
    """The options of reading and the arguments of xacro, as rk.load takes them."""
    if arguments is None:
        return {}
    return {
        "package_dirs": arguments.package_dir,
        "xacro_args": arguments.xacro or None,
        "mesh_up_axis": arguments.mesh_up_axis,
        "loops": arguments.loops,
        "root": arguments.root,
    }


def named_files(names: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files that arguments refer to, and a message for each argument that refers to none.

    The name of the package of example robots alone stands for all its robots.
    """
    from robokit.robot_names import EXAMPLES, example_files, expanded, find_robot
    from robokit.urdf.lint import urdf_files

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


def shows_progress() -> bool:
    """Whether somebody may be looking at a progress bar."""
    return sys.stderr is not None and sys.stderr.isatty()


def open_page(page: Path, no_open: bool) -> None:
    """Open a page in the browser, unless the user does not want that."""
    if not no_open and not webbrowser.open(page.resolve().as_uri()):
        print("  no browser found: open the page by hand", file=sys.stderr)


def file_stem(robot: Any) -> str:
    """The robot's name as the start of a file name; digits tell apart long names that begin alike."""
    name = str(robot.name).replace("/", "_").replace("\\", "_") or "robot"
    raw = name.encode(errors="backslashreplace")
    if len(raw) <= LONGEST_STEM_BYTES:
        return name
    return f"{raw[:LONGEST_STEM_BYTES].decode(errors='ignore')}_{hashlib.sha256(raw).hexdigest()[:8]}"


def cache_folder() -> Path:
    """The folder of compiled code; RobokitError where there is none, because the user has no home folder."""
    from robokit.disk_cache import folder

    try:
        return folder()
    except RuntimeError:
        raise RobokitError(
            "there is no folder for compiled code, because this user has no home folder; set "
            "ROBOKIT_CACHE_DIR to a folder of your own"
        ) from None


# ---- Files that the commands write: checked before any work --------------------------------------


def writable(name: str, *suffixes: str) -> Path:
    """The file to write, as given on the command line, checked before any work.

    The first of the accepted suffixes is appended to a name that has none; any is accepted if none is given
    here. Raises WrongUsage for no name of a file, or one of another format; WriteError where it cannot be
    written.
    """
    path = Path(name)
    if not name or os.path.isdir(name):
        raise WrongUsage(f"cannot write to {name!r}: give the name of a file")
    if suffixes and not path.suffix:
        path = path.with_name(path.name + suffixes[0])
    if suffixes and path.suffix.lower() not in suffixes:
        raise WrongUsage(f"cannot write {path}: the name must end in {', '.join(suffixes)}")
    wrong = obstacle(path)
    if wrong is not None:
        raise WriteError(f"cannot write {path}: {wrong[1]}", path, wrong[0])
    return path


# ---- The time that a command spends on compiling -------------------------------------------------


class Compiling(logging.Handler):
    """Watches the engine's log while a command runs.

    ``seconds``: spent on compiling so far [s]; ``kernels``: number of pieces of code that were compiled;
    ``started``: when the command started, on ``time.monotonic()`` [s].
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.kernels, self.started = 0.0, 0, time.monotonic()
        self._log = logging.getLogger("robokit.engine.maker")

    def __enter__(self) -> Compiling:
        self._level, self._propagate = self._log.level, self._log.propagate
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.removeHandler(self)
        self._log.setLevel(self._level)
        self._log.propagate = self._propagate

    def emit(self, record: logging.LogRecord) -> None:
        """A compilation begins, or ends with the seconds that it took."""
        seconds = getattr(record, "seconds", None)
        if seconds is not None:
            self.seconds += seconds
            self.kernels += 1
