"""The files of a sweep's folder: chunks that are written once, whole or not at all.

A folder has ``sweep.json`` and, in ``chunks/``, a Parquet file for each chunk: FIRST-HASH.parquet, with the
number of its first row and the hash of its content (chunk_content). A file is written under a temporary name,
brought to the disk (fsync) and renamed. So a name without damage stands for rows that are done, whoever was
killed at what moment, and two workers that compute the same rows write the same file.

Everything else in ``chunks/`` is what killed processes left: temporary files, whose names begin with a dot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from robokit.errors import RobokitError
from robokit.sweeps.running.chunk_content import (
    HASH_LETTERS,
    RECIPE_KEY,
    arrow,
    as_computed,
    content_hash,
    parquet_bytes,
)

if TYPE_CHECKING:
    import pyarrow

CHUNKS = "chunks"
"""Folder of the chunks, in that of the sweep."""

_NAME = re.compile(rf"(\d+)-([0-9a-f]{{{HASH_LETTERS}}})\.parquet")
_TEMPORARY = re.compile(rf"\.(sweep|\d+-[0-9a-f]{{{HASH_LETTERS}}})\.[0-9a-f]+\.tmp|\.[0-9a-f]+\.probe\.tmp")
_BINARY = getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, order=True)
class ChunkFile:
    """The file of a chunk.

    Attributes:
        first: number of its first row.
        path: of the file.
        hash: of its content, as its name has it.
    """

    first: int
    path: Path
    hash: str


def chunk_name(first: int, count: int, content: str) -> str:
    """Name of a chunk's file; names sort as the rows do.

    Args:
        first: number of the chunk's first row.
        count: rows of the sweep.
        content: hash of the chunk's content.
    """
    return f"{first:0{len(str(max(count - 1, 0)))}d}-{content}.parquet"


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


def chunk_files(folder: Path) -> list[ChunkFile]:
    """The chunks of a sweep's folder by their names, ascending; their content is not looked at.

    Raises:
        RobokitError: the folder cannot be read.
    """
    found = []
    try:
        with os.scandir(folder / CHUNKS) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match:
                    found.append(ChunkFile(int(match[1]), Path(entry.path), match[2]))
    except OSError as error:
        raise RobokitError(f"cannot read {folder / CHUNKS}: {error.strerror or error}") from error
    return sorted(found)


def remove_temporary(folder: Path) -> None:
    """Remove what killed processes left, in a sweep's folder and among its chunks.

    Raises:
        OSError: the folder cannot be read, or a file cannot be removed.
    """
    for path in [*folder.iterdir(), *(folder / CHUNKS).iterdir()]:
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def probe_name() -> str:
    """Name of a file by which a worker finds out whether it shares the folder."""
    return f".{os.urandom(8).hex()}.probe.tmp"


def damage(file: ChunkFile, rows: int, recipe: str, recipe_hash: str) -> str | None:
    """What is wrong with a chunk; None if it is whole and holds what its name says.

    Args:
        file: of the chunk.
        rows: that it should have.
        recipe: text of the sweep's recipe.
        recipe_hash: its hash.
    """
    pa = arrow()
    try:
        content = file.path.read_bytes()
        opened = pa.parquet.ParquetFile(pa.BufferReader(content))
        table, writer = as_computed(opened.read()), opened.metadata.created_by
        about = opened.metadata.metadata or {}
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read ({str(error).splitlines()[0]:.60})"
    if table.num_rows != rows:
        return f"has {table.num_rows} rows in place of {rows}"
    if about.get(RECIPE_KEY) != recipe.encode():
        return "is of another recipe"
    if content_hash(table, recipe_hash) != file.hash:
        return "does not have the content that its name says"
    if writer.endswith(f" {pa.__version__}") and parquet_bytes(table, recipe) != content:
        return "has bytes that differ"  # where no value lies
    return None


def read_chunks(
    folder: Path, columns: list[str] | None = None, only: list[ChunkFile] | None = None
) -> Iterator[pyarrow.Table]:
    """The chunks' rows, one table a chunk, ascending.

    Args:
        folder: of the sweep.
        columns: names of those to read; None for all.
        only: the chunks to read; None for all.

    Raises:
        RobokitError: a chunk cannot be read.
    """
    pa = arrow()
    for file in chunk_files(folder) if only is None else only:
        try:
            found = pa.parquet.ParquetFile(file.path).read(columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise RobokitError(
                f"{file.path} is damaged ({str(error).splitlines()[0]:.100}); "
                f"robokit sweep --resume {shlex.quote(str(folder))} computes its rows again"
            ) from error
        yield as_computed(found)


def disk_problem(folder: Path, error: OSError) -> str:
    """Why a folder takes no files, in words."""
    why = error.strerror or str(error)
    if not folder.exists():
        return f"{folder} has gone ({why}); bring it back"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write to {folder}: {why}; make room"
    return f"cannot write to {folder}: {why}"
