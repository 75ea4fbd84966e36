"""Files that functions write: their place is looked at before any work, and errors say what is wrong."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from robokit.arguments import path_argument
from robokit.errors import ShapeError, WriteError


def output_path(name: str, value: Any, suffix: str = "") -> Path:
    """The path of a file that is going to be written.

    Args:
        name: of the argument, for messages.
        value: what was given.
        suffix: appended where the name has none.

    Raises:
        WrongType: not a string or path of text.
        WriteError: no file can be written there.
    """
    path = path_argument(name, value)
    if path.name and not path.suffix:
        path = path.with_suffix(suffix)
    if path.is_dir():
        raise WriteError(f"{name}: {str(path)!r} is a folder; give the name of a file", path, errno.EISDIR)
    if not path.parent.is_dir():
        missing = (
            f"{name}: cannot write {str(path)!r}: there is no folder {str(path.parent)!r}; make it first"
        )
        raise WriteError(missing, path, errno.ENOENT)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise WriteError(f"{name}: cannot write {str(path)!r}: permission denied", path, errno.EACCES)
    return path


def shell_word(path: str | os.PathLike[str]) -> str:
    """A path as it is typed in a shell; bytes that are no UTF-8 as bash, zsh and ksh read them."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        plain = (chr(b) if 32 <= b < 127 and b not in b"'\\" else f"\\x{b:02x}" for b in os.fsencode(text))
        return f"$'{''.join(plain)}'"
    return shlex.quote(text)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says against writing to a path, in one clear error.

    Raises:
        WriteError: the file cannot be written.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(f"cannot write {str(path)!r}: {reason}", path, error.errno) from error


def write_text(path: Path, text: str, **options: Any) -> None:
    """Write text as UTF-8.

    Raises:
        WriteError: the file cannot be written.
    """
    with writing(path):
        path.write_text(text, encoding="utf-8", **options)


def figure_path(name: str, value: Any) -> Path:
    """The path of a figure that matplotlib is going to write; ".png" where the name has no suffix.

    Raises:
        WrongType, WriteError: as of :func:`output_path`.
        ShapeError: an ending that matplotlib does not write.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    path = output_path(name, value, ".png")
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ShapeError(f"{name}: expected a name that ends in .{', .'.join(known)}, got {str(path)!r}")
    return path
