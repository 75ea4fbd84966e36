"""Files that the commands write: checked before any work, and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robokit.errors import RobokitError


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
    if not name or path.is_dir():
        raise RobokitError(f"cannot write to {name!r}: give the name of a file")
    if suffixes and not path.suffix:
        path = path.with_name(path.name + suffixes[0])
    if suffixes and path.suffix.lower() not in suffixes:
        raise RobokitError(f"cannot write {path}: the name must end in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise RobokitError(f"cannot write {path}: there is no folder {str(path.parent)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise RobokitError(f"cannot write {path}: permission denied")
    return path


def refuse_input(path: Path, robot: Any) -> None:
    """Refuse to overwrite the file that a robot was loaded from.

    Raises:
        RobokitError: it is that file, under whatever name.
    """
    with contextlib.suppress(OSError):  # one of them does not exist
        if os.path.samefile(path, robot.source):
            raise RobokitError(f"{path} is the robot's own file; give another name")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it replaces ``path`` when all is written, and is removed otherwise.

    A full disk or Ctrl-C thus leaves what was there before, and no half of a file. What is no regular file (a
    pipe, a terminal), or lies in a folder that takes no new files, is written directly.

    Raises:
        RobokitError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    direct = path.exists() and not (_is_plain(target, path) and os.access(target.parent, os.W_OK))
    beside = target.with_name(f".{os.getpid()}-{os.urandom(4).hex()}{target.suffix}")
    written = path if direct else beside
    try:
        yield written
        if not direct:
            if target.exists():
                shutil.copymode(target, written)
            os.replace(written, target)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename not in (None, str(written), str(target)):
            raise  # of a file that was read meanwhile
        raise RobokitError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if not direct:
            written.unlink(missing_ok=True)


def _is_plain(target: Path, path: Path) -> bool:
    """Whether ``target`` is a regular file, and the one that ``path`` opens (/dev/fd names others)."""
    return target.is_file() and target.samefile(path)
