"""Files that functions write: looked at before any work, written whole or not at all, with clear errors."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
    wrong = obstacle(path)
    if wrong is not None:
        number, why = wrong
        said = f"{name}: {str(path)!r} {why}" if number == errno.EISDIR else None
        raise WriteError(said or f"{name}: cannot write {str(path)!r}: {why}", path, number)
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


def obstacle(path: Path) -> tuple[int, str] | None:
    """What is known to stand in the way of a file of that name: the system's number of it, and words.

    Links are followed: what counts is the file at their end, which need not be there yet.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            return errno.ELOOP, "its links lead in a circle"
        if target.is_dir():
            return errno.EISDIR, "is a folder; give the name of a file"
        if not target.parent.is_dir():
            return errno.ENOENT, f"there is no folder {str(_named(path, target).parent)!r}; make it first"
        if not os.access(path if path.exists() else target.parent, os.W_OK):
            return errno.EACCES, "permission denied"
    except (OSError, ValueError) as error:  # a name that is too long; ValueError: one with a NUL
        return getattr(error, "errno", None) or errno.EINVAL, getattr(error, "strerror", None) or str(error)
    return None


def _named(path: Path, target: Path) -> Path:
    """The name to speak of: as it was given, or that at the end of its links."""
    return target if path.is_symlink() else path


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says against writing to a path, in one clear error.

    Raises:
        WriteError: the file cannot be written.
    """
    try:
        yield
    except (WriteError, BrokenPipeError):
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(f"cannot write {str(path)!r}: {reason}", path, error.errno) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write to; what is written there takes the place of ``path`` when all is done.

    A full disk or Ctrl-C thus leaves what was there before, and nothing else. The name has the ending of
    ``path``, by which writers choose a format. Links stay links. What is no regular file (a pipe, a
    terminal) is written directly.

    Raises:
        WriteError: the file cannot be written.
    """
    with writing(path), ExitStack() as last:
        target = Path(os.path.realpath(path))
        if path.exists() and not (target.is_file() and target.samefile(path)):  # /dev/fd names others
            yield path
            return
        name = f".{os.getpid()}-{os.urandom(4).hex()}{path.suffix}"
        if os.access(target.parent, os.W_OK):
            beside = target.with_name(name)
            last.callback(beside.unlink, missing_ok=True)
            yield beside
            if target.exists():
                shutil.copymode(target, beside)
            os.replace(beside, target)
        else:
            beside = Path(last.enter_context(tempfile.TemporaryDirectory())) / name
            yield beside
            _overwrite(target, beside.read_bytes())


def _overwrite(target: Path, content: bytes) -> None:
    """Give a file other content where its folder takes no other file; its own again if that fails."""
    before = target.read_bytes()
    with target.open("r+b", buffering=0) as file:
        try:
            _fill(file, content)
        except BaseException:
            _fill(file, before)
            raise


def _fill(file: Any, content: bytes) -> None:
    file.seek(0)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    file.truncate()


def write_text(path: Path, text: str, encoding: str = "utf-8", newline: str | None = None) -> None:
    """Write a text whole or not at all.

    Raises:
        WriteError: the file cannot be written.
    """
    write_texts({path: text}, encoding, newline)


def write_texts(texts: Mapping[Path, str], encoding: str = "utf-8", newline: str | None = None) -> None:
    """Write several texts whole, or none of them.

    Raises:
        WriteError: a file cannot be written.
    """
    with ExitStack() as all_or_none:
        places = [all_or_none.enter_context(replacing(path)) for path in texts]
        for place, (path, text) in zip(places, texts.items(), strict=True):
            with writing(path):
                place.write_text(text, encoding=encoding, newline=newline)


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
