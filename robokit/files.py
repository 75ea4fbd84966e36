"""Files of anybody: read with bounds of size, and written whole or not at all, with clear errors.

Only regular files are opened, and sizes are known before memory is used: no pipe can block, no device can
fill the memory, and no archive unpacks to far more than it holds. What is written is looked at before any
work.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from robokit.arguments import path_argument
from robokit.errors import RobokitError, ShapeError, WriteError, library

UNPACKED_BYTES = 128 << 20  # bytes that any archive of arrays may unpack to
UNPACKED_RATIO = 100  # of its size, to which a larger archive may unpack: motion packs to 1/2, rest to 1/100
MOST_TEXT = 64 << 20  # bytes of an array of text, which has four for each character

_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods of NumPy. Others use other libraries, with errors and memory needs of their own."""


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """A regular file, open for reading; links are followed; OSError if it cannot be opened.

    Raises ValueError for a folder, pipe, socket or device, and says which, for a message after the file's
    name.
    """
    _check_regular(os.stat(path).st_mode)  # a device must not be opened at all
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _check_regular(os.fstat(file.fileno()).st_mode)  # once more: it may have been exchanged in between
    except BaseException:
        file.close()
        raise
    return file


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ValueError("a folder, not a regular file")
    if not stat.S_ISREG(mode):
        raise ValueError("a pipe, a socket or a device, not a regular file")


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a regular file of at most so many bytes, else ValueError; OSError if it cannot be
    read.
    """
    with open_regular(path) as file:
        check_size(os.fstat(file.fileno()).st_size, most)
        return file.read(most)


def check_size(size: int, most: int) -> None:
    """Raise ValueError for a file of more bytes than are read."""
    if size > most:
        raise ValueError(f"{size:,} bytes; at most {most:,} are read")


def read_arrays(path: str | os.PathLike[str], names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name, all by default; nothing in it runs.

    Raises OSError if it cannot be opened; ValueError, which names the array, for no regular file, no archive
    of plain arrays, a damaged one, or one that would unpack to far more than it holds.
    """
    with open_regular(path) as file:
        size, where = os.fstat(file.fileno()).st_size, "no archive"
        try:
            with zipfile.ZipFile(file) as packed:
                members = packed.infolist()
                if len({info.filename for info in members}) != len(members):
                    raise _Refused("two arrays have the same name")
                total = sum(info.file_size for info in members)
                allowed = UNPACKED_BYTES + UNPACKED_RATIO * size
                if total > allowed:
                    raise _Refused(
                        f"{size:,} bytes would unpack to {total:,}; a file of this size may hold at most "
                        f"{allowed:,}"
                    )
                arrays = {}
                for info in packed.infolist():
                    name = info.filename.removesuffix(".npy")
                    if names is None or name in names:
                        where = f"array {name!r}"
                        arrays[name] = _array(packed, info)
                return arrays
        except (_Refused, MemoryError):
            raise
        except Exception as error:  # zipfile, zlib, NumPy and Python's parser each have their own on damage
            raise ValueError(f"{where}: {error or type(error).__name__}") from error


class _Refused(ValueError):
    """An error whose text was written here."""


def _array(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, once its shape is known to fit the bytes that are there."""
    if info.compress_type not in _PACKED:
        raise _Refused(f"array {info.filename!r} is not packed as numpy.savez packs")
    with packed.open(info) as file:
        version = np.lib.format.read_magic(file)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in reader:
            raise _Refused(f"an array of version {version}")
        shape, _, dtype = reader[version](file)
        size = dtype.itemsize
        for n in shape:
            size *= n
        if dtype.hasobject or not 0 <= size <= info.file_size or (dtype.kind in "US" and size > MOST_TEXT):
            raise _Refused(f"array {info.filename!r} says {shape} of {dtype}, which is not what it holds")
    with packed.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


# ---- Files that functions write: looked at before any work, written whole or not at all, with clear errors


def output_path(name: str, value: Any, suffix: str = "") -> Path:
    """The path of a file that is going to be written; the suffix is appended where the name has none.

    Raises WrongType for no string or path of text, WriteError where no file can be written.
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


def refuse_input(path: Path, robot: Any) -> None:
    """Raise RobokitError for the file that a robot was read from, its ``source``, under whatever name."""
    with suppress(OSError):  # one of them does not exist
        if os.path.samefile(path, robot.source):
            raise RobokitError(f"{path} is the robot's own file; give another name")


def obstacle(path: Path) -> tuple[int, str] | None:
    """What is known to stand in the way of a file of that name: the system's number of it, and words.

    Links are followed: what counts is the file at their end, which need not be there yet.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            return errno.ELOOP, "its symbolic links form a cycle"
        if target.is_dir():
            return errno.EISDIR, "is a folder; give the name of a file"
        if not target.parent.is_dir():
            named = target if path.is_symlink() else path
            for above in named.parents:
                if above.exists() and not above.is_dir():
                    return errno.ENOTDIR, f"{str(above)!r} is a file, not a folder; give another name"
            return errno.ENOENT, f"there is no folder {str(named.parent)!r}; make it first"
        if not os.access(path if _exists(path) else target.parent, os.W_OK):
            return errno.EACCES, "permission denied"
    except (OSError, ValueError) as error:  # a name that is too long; ValueError: one with a NUL
        return getattr(error, "errno", None) or errno.EINVAL, getattr(error, "strerror", None) or str(error)
    return None


def _exists(path: Path) -> bool:
    """Whether the file exists; unlike ``path.exists()``, raises OSError for an impossible name."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says against writing to a path, as one clear WriteError."""
    try:
        yield
    except (WriteError, BrokenPipeError):
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(f"cannot write {str(path)!r}: {reason}", path, error.errno) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write to; what is written there takes the place of ``path`` when all is done; or WriteError.

    A full disk or Ctrl-C thus leaves what was there before, and nothing else. The name has the ending of
    ``path``, by which writers choose a format. Links stay links. What is not a regular file (a pipe, a
    terminal) is written directly.
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
    """Write a text whole or not at all; then WriteError says why."""
    write_texts({path: text}, encoding, newline)


def write_texts(texts: Mapping[Path, str], encoding: str = "utf-8", newline: str | None = None) -> None:
    """Write several texts whole, or none of them; then WriteError says why."""
    with ExitStack() as all_or_none:
        places = [all_or_none.enter_context(replacing(path)) for path in texts]
        for place, (path, text) in zip(places, texts.items(), strict=True):
            with writing(path):
                place.write_text(text, encoding=encoding, newline=newline)


def figure_path(value: Any) -> Path:
    """The path of a figure that matplotlib is going to write; ".png" where the name has no suffix.

    Errors as of :func:`output_path`; ShapeError for a suffix that matplotlib does not write.
    """
    backends = library("matplotlib.backend_bases", "plots", "a picture of curves or matrices")
    path = output_path("path", value, ".png")
    known = backends.FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        raise ShapeError(f"path: expected a name that ends in .{', .'.join(known)}, got {str(path)!r}")
    return path
