"""Files of a sweep's folder: written whole or not at all, and read only where they are files."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from robokit.read_files import open_regular

CHUNKS = "chunks"
"""Folder of the chunks, in that of the sweep."""

_BINARY = getattr(os, "O_BINARY", 0)


def regular_bytes(path: Path) -> bytes:
    """The content of a regular file; a folder may come from anywhere, and a pipe in it would never end.

    Raises:
        OSError: it cannot be read, or is no regular file.
        MemoryError: it is larger than the memory.
    """
    try:
        with open_regular(path) as file:
            return file.read(os.fstat(file.fileno()).st_size)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"it is {error}", str(path)) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole, and on the disk, or not at all.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    beside = path.with_name(f".{path.stem}.{os.urandom(6).hex()}.tmp")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows, and some network file systems
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def disk_problem(folder: Path, error: OSError) -> str:
    """Why a folder takes no files, in words."""
    why = error.strerror or str(error)
    if not folder.exists():
        return f"{folder} has gone ({why}); bring it back"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write to {folder}: {why}; make room"
    return f"cannot write to {folder}: {why}"
