"""What a worker does: computes the rows of a chunk, and writes its file where it shares the sweep's folder.

A worker shares the folder if it finds the command's probe in it, a file with a random name. Otherwise, or
where it cannot write (its disk is full, its network file system has gone), the file's bytes go back to the
command, which writes them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from robokit.disk_cache import source_digest
from robokit.errors import RobokitError
from robokit.sweeps.running.chunk_content import content_hash, parquet_bytes, sealed
from robokit.sweeps.running.chunk_files import chunk_name
from robokit.sweeps.running.folder_files import CHUNKS, write_whole
from robokit.sweeps.running.sent_recipe import received


@dataclass(frozen=True)
class Place:
    """Where a sweep's chunks belong.

    Attributes:
        folder: of the sweep, absolute.
        probe: name of a file in it, by which a worker finds out whether it shares the folder.
        count: rows of the sweep.
        source: hash of robokit's source, which must be the same on all machines.
    """

    folder: str
    probe: str
    count: int
    source: bytes


@dataclass(frozen=True)
class Done:
    """A chunk that was computed.

    Attributes:
        first: number of its first row.
        rows: their number.
        failures: rows that failed.
        name: of its file.
        content: the file's bytes where the worker did not write them, else None.
        seconds: that the rows took [s].
        memory: largest memory of the worker's process so far [bytes], 0 where the system does not tell.
        worker: the process that computed it.
    """

    first: int
    rows: int
    failures: int
    name: str
    content: bytes | None
    seconds: float
    memory: int
    worker: str


def compute_chunk(text: str, reader: Callable[[str], Any], first: int, last: int, place: Place) -> Done:
    """Compute the rows of a chunk and write them, or hand them back.

    Args:
        text: the recipe (JSON).
        reader: makes the recipe of it.
        first: number of the first row.
        last: number of the row after the last.
        place: where the chunk belongs.

    Raises:
        RobokitError: this process has another robokit than the command.
    """
    _check_source(place)
    started = time.perf_counter()
    recipe = _recipe(reader, text)
    table = recipe.compute(first, last)
    seconds = time.perf_counter() - started
    if table.num_rows != last - first:
        raise RobokitError(f"rows {first} to {last - 1}: {table.num_rows} rows were computed")
    name = chunk_name(first, place.count, content_hash(table, recipe.hash))
    content: bytes | None = sealed(parquet_bytes(table, text), name)
    failed = table["failure"] if "failure" in table.schema.names else None
    failures = 0 if failed is None else len(failed) - failed.null_count
    assert content is not None
    if _written(place, name, content):
        content = None
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return Done(first, last - first, failures, name, content, seconds, peak_memory(), worker)


def compute_sent_chunk(
    first: int, last: int, recipe: str, reader: Callable[[str], Any], place: Place
) -> Done:
    """:func:`compute_chunk` on a worker of Dask; ``recipe`` is the name of one that was sent."""
    return compute_chunk(received(recipe), reader, first, last, place)


def peak_memory() -> int:
    """Largest memory of this process so far [bytes]; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else 1024 * int(peak)


@lru_cache(maxsize=2)
def _recipe(reader: Callable[[str], Any], text: str) -> Any:
    """The recipe, with all that its first chunk has compiled."""
    return reader(text)


def _written(place: Place, name: str, content: bytes) -> bool:
    folder = Path(place.folder)
    with contextlib.suppress(OSError):
        if (folder / place.probe).exists():
            write_whole(folder / CHUNKS / name, content)
            return True
    return False


def _check_source(place: Place) -> None:
    """Refuse to compute rows by another text than the command's; an unknown one (edited files) is let be."""
    here = source_digest()
    if here and place.source and here != place.source:
        raise RobokitError(
            f"worker {socket.gethostname()}:{os.getpid()} has another robokit, in "
            f"{Path(__file__).resolve().parents[2]}, than the command; install the same one, and start the "
            "worker again"
        )
