"""Files that anybody may have written: only regular ones are opened, sizes are known before memory is used.

No pipe can block, no device can fill the memory, and no archive unpacks to far more than it holds.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Collection
from typing import IO

import numpy as np

FREE = 128 << 20
"""Bytes that any archive of arrays may unpack to."""

RATIO = 100
"""Times its own size that a larger archive may unpack to: motion packs to a half, rest to a hundredth."""

MOST_TEXT = 64 << 20
"""Bytes of an array of text, which has four for each character."""

_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How NumPy packs arrays. Other ways are other libraries, with errors and appetites of their own."""


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """A regular file, open for reading; links are followed.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is a folder, pipe, socket or device; says which, for a message after the file's name.
    """
    _check_regular(os.stat(path).st_mode)  # a device is not even opened
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
        raise ValueError("a folder, no regular file")
    if not stat.S_ISREG(mode):
        raise ValueError("a pipe, a socket or a device, no regular file")


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a regular file.

    Args:
        path: of the file; links are followed.
        most: bytes that it may have.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or larger.
    """
    with open_regular(path) as file:
        check_size(os.fstat(file.fileno()).st_size, most)
        return file.read(most)


def check_size(size: int, most: int) -> None:
    """Raise ValueError for a file of more bytes than are read."""
    if size > most:
        raise ValueError(f"{size:,} bytes; at most {most:,} are read")


def read_arrays(path: str | os.PathLike[str], names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name; nothing in it runs.

    Args:
        path: of the file.
        names: of the arrays to read; all by default. The sizes of all count in any case.

    Raises:
        OSError: it cannot be opened.
        ValueError: no regular file, no archive of plain arrays, damaged, or one that would unpack to far more
            than it holds; names the array.
    """
    with open_regular(path) as file:
        size, where = os.fstat(file.fileno()).st_size, "no archive"
        try:
            with zipfile.ZipFile(file) as packed:
                _check_members(packed.infolist(), size)
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
    """What these functions say themselves."""


def _check_members(members: list[zipfile.ZipInfo], packed: int) -> None:
    if len({info.filename for info in members}) != len(members):
        raise _Refused("two arrays have one name")
    total, allowed = sum(info.file_size for info in members), FREE + RATIO * packed
    if total > allowed:
        raise _Refused(
            f"{packed:,} bytes would unpack to {total:,}; a file of this size may hold at most {allowed:,}"
        )


def _array(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, once its shape is known to fit the bytes that are there."""
    if info.compress_type not in _PACKED:
        raise _Refused(f"array {info.filename!r} is not packed as numpy.savez packs")
    with packed.open(info) as file:
        shape, dtype = _header(file)
        size = dtype.itemsize
        for n in shape:
            size *= n
        if dtype.hasobject or not 0 <= size <= info.file_size or (dtype.kind in "US" and size > MOST_TEXT):
            raise _Refused(f"array {info.filename!r} says {shape} of {dtype}, which is not what it holds")
    with packed.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in reader:
        raise _Refused(f"an array of version {version}")
    shape, _, dtype = reader[version](file)
    return shape, dtype
