"""Files that the commands write: checked before any work."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from robokit.errors import RobokitError
from robokit.written_files import obstacle


def writable(name: str, *suffixes: str) -> Path:
    """The file to write, checked before any work.

    Args:
        name: as given on the command line.
        suffixes: accepted ones; the first is appended to a name that has none. Any is accepted if none is
            given here.

    Raises:
        RobokitError: the file cannot be written.
    """
    path = Path(name)
    if not name or os.path.isdir(name):
        raise RobokitError(f"cannot write to {name!r}: give the name of a file")
    if suffixes and not path.suffix:
        path = path.with_name(path.name + suffixes[0])
    if suffixes and path.suffix.lower() not in suffixes:
        raise RobokitError(f"cannot write {path}: the name must end in {', '.join(suffixes)}")
    wrong = obstacle(path)
    if wrong is not None:
        raise RobokitError(f"cannot write {path}: {wrong[1]}")
    return path


def refuse_input(path: Path, robot: Any) -> None:
    """Refuse to overwrite the file that a robot was loaded from.

    Raises:
        RobokitError: it is that file, under whatever name.
    """
    with contextlib.suppress(OSError):  # one of them does not exist
        if os.path.samefile(path, robot.source):
            raise RobokitError(f"{path} is the robot's own file; give another name")
