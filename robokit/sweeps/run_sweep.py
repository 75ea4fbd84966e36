"""Runs a sweep: finds the chunks that are missing, has them computed, and sees to it that none is lost."""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robokit.disk_cache import source_digest
from robokit.errors import RobokitError, one_line
from robokit.sweeps.chunk_files import (
    CHUNKS,
    ChunkFile,
    chunk_files,
    damage,
    disk_problem,
    probe_name,
    read_chunks,
    remove_temporary,
    write_whole,
)
from robokit.sweeps.chunk_task import Done, Place, compute_chunk
from robokit.sweeps.clusters import Cluster, LocalProcesses, RunningScheduler, processors
from robokit.sweeps.sweep_json import SweepJson, begin, canonical, check_same, held, read_sweep_json
from robokit.sweeps.sweep_progress import SweepProgress

IN_FLIGHT = 3
"""Chunks for each thread of a worker that Dask holds at a time: one computed, the next one at hand."""

LOOK_SECONDS = 0.5
"""Time between two looks at the cluster [s]."""

FETCH_SECONDS = 120.0
"""How long a result may take from a worker before its chunk is computed again [s]."""

MOST_ATTEMPTS = 2
"""How often a chunk that raises an error, or ends its worker, is tried, before the sweep goes on without it."""

MOST_FAILED = 8
"""Chunks that may fail, or lose their workers, before the sweep gives up: it is not the rows then."""


@dataclass(frozen=True)
class RunSummary:
    """What a run of a sweep did.

    Attributes:
        rows: of the sweep.
        computed: those of them that were computed by this run.
        failures: rows that failed, of all.
        seconds: of this run [s].
        memory: largest memory of a worker [bytes], 0 where none says.
        redone: chunks that were there and damaged, as lines of text.
    """

    rows: int
    computed: int
    failures: int
    seconds: float
    memory: int
    redone: tuple[str, ...]


def default_chunk(count: int, steps: int) -> int:
    """Rows of a chunk: some seconds of work, and not more than 10,000 chunks.

    Args:
        count: rows of the sweep.
        steps: time steps of a row.
    """
    rows = 1 << max(4, (2_000_000 // max(steps, 1)).bit_length() - 1)
    while rows * 10_000 < count:
        rows *= 2
    return min(rows, max(count, 1))


def run_sweep(
    recipe: Any,
    folder: str | os.PathLike[str],
    *,
    chunk: int,
    scheduler: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    progress: bool = False,
) -> RunSummary:
    """Compute all rows of a sweep that are not there yet.

    Args:
        recipe: with ``count``, ``to_json()``, ``from_json(text)`` and ``compute(first, last)``.
        folder: new, or with ``resume`` that of the same sweep.
        chunk: rows of a chunk; that of the folder is kept with ``resume``.
        scheduler: address of a Dask scheduler, or the file that it wrote; None for processes of this machine.
        workers: number of these processes; None for one a processor, 0 to compute in this process. One
            chunk alone is always computed in this process.
        resume: go on with the sweep in the folder.
        progress: show rows, rows a second, failures, time left.

    Raises:
        RobokitError: the folder holds another sweep or takes no files, the cluster has come to an end, or
            chunks could not be computed. What was computed until then is kept.
        KeyboardInterrupt: Ctrl-C; its text says how to go on.
    """
    where = Path(folder)
    given = SweepJson(canonical(recipe.to_json()), chunk, recipe.count)
    if resume:
        found = read_sweep_json(where)
        check_same(where, found, given)
        given = found
    else:
        begin(where, given)
    with held(where):
        return _Run(recipe, where.absolute(), given, progress).go(scheduler, workers)


class _Run:
    """One run of a sweep."""

    def __init__(self, recipe: Any, folder: Path, given: SweepJson, progress: bool) -> None:
        self.folder, self.given, self.reader = folder, given, type(recipe).from_json
        self.token = os.urandom(8).hex()
        self.place = Place(str(folder), probe_name(), given.count, source_digest())
        self.wanted = progress
        self.waiting: deque[tuple[int, int]] = deque()
        self.suspects: deque[tuple[int, int]] = deque()  # chunks whose workers died, to be tried alone
        self.sent: dict[int, int] = {}  # how often a chunk was given to Dask
        self.tried: dict[int, int] = {}  # and how often it failed
        self.failed: dict[tuple[int, int], str] = {}
        self.memory = 0
        self.progress: SweepProgress

    def go(self, scheduler: str | None, workers: int | None) -> RunSummary:
        """Compute what is missing."""
        redone, there, failures = self._look_through()
        self.progress = SweepProgress(self.given.count, there, failures, self.wanted)
        for line in redone:
            self.progress.say(f"robokit: {line}")
        try:
            if self.waiting:
                self._compute(scheduler, workers)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._rest("interrupted")) from None
        except OSError as error:  # of the folder: those of workers are among their chunks
            raise RobokitError(disk_problem(self.folder, error)) from error
        finally:
            self.progress.close()
            self._tidy()
        if self.failed:
            raise RobokitError(self._rest(self._failures()))
        seen = self.progress
        return RunSummary(
            self.given.count, seen.rows - there, seen.failures, seen.seconds, self.memory, tuple(redone)
        )

    # ---- the folder ----------------------------------------------------------------------------

    def _look_through(self) -> tuple[list[str], int, int]:
        """Find what is missing; returns what was wrong, and how many rows and failures are there."""
        wrong: list[str] = []
        kept: list[ChunkFile] = []
        rows = dict(self.given.chunks())
        files: dict[int, list[ChunkFile]] = {}
        try:
            remove_temporary(self.folder)
            for file in chunk_files(self.folder):
                files.setdefault(file.first, []).append(file)
            for first, same in files.items():
                n = rows.get(first, first) - first
                problem = f"is there {len(same)} times" if len(same) > 1 else None
                problem = problem or damage(same[0], n, self.given.recipe)
                if problem is None:
                    kept.append(same[0])
                    continue
                wrong.append(f"{same[0].path.name} {problem}: its rows are computed again")
                for file in same:
                    file.path.unlink(missing_ok=True)
        except OSError as error:
            raise RobokitError(disk_problem(self.folder, error)) from error
        there = {file.first for file in kept}
        self.waiting.extend(each for each in self.given.chunks() if each[0] not in there)
        return wrong, sum(rows[first] - first for first in there), _failures_of(self.folder, kept)

    def _tidy(self) -> None:
        """Remove what is not of the result, as far as the folder lets us."""
        with contextlib.suppress(OSError):
            remove_temporary(self.folder)

    def _keep(self, done: Done) -> None:
        """A chunk is done: write it, if its worker could not."""
        path = self.folder / CHUNKS / done.name
        if done.content is not None:
            write_whole(path, done.content)
        elif not path.exists():  # a worker's folder that only looks like ours
            raise OSError(2, os.strerror(2), str(path))
        self.memory = max(self.memory, done.memory)
        self.progress.add(done.rows, done.failures)

    # ---- computing -----------------------------------------------------------------------------

    def _compute(self, scheduler: str | None, workers: int | None) -> None:
        if scheduler is None and (workers == 0 or (workers is None and len(self.waiting) == 1)):
            self._compute_here()
            return
        (self.folder / self.place.probe).touch()
        n = min(workers or processors(), len(self.waiting))
        self.progress.wait("starting")
        cluster: Cluster = LocalProcesses(n) if scheduler is None else RunningScheduler(scheduler)
        try:
            if cluster.dashboard:
                self.progress.say(f"robokit: dashboard {cluster.dashboard}")
            self._feed(cluster)
        finally:
            cluster.close()

    def _compute_here(self) -> None:
        place = Place(self.place.folder, "", self.place.count, self.place.source)  # handed back, written here
        while self.waiting:
            first, last = self.waiting.popleft()
            try:
                done = compute_chunk(self.given.recipe, self.reader, first, last, place)
            except Exception as error:
                self._set_aside((first, last), _words(error), False)
            else:
                self._keep(done)

    def _feed(self, cluster: Cluster) -> None:
        """Give Dask as many chunks as its workers need, take their results, look after the cluster."""
        client = cluster.client
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        flight: dict[Any, tuple[int, int]] = {}
        text = client.submit(_same, self.given.recipe, key=f"recipe-{self.token}")
        room, looked = 1, -LOOK_SECONDS
        while self.waiting or self.suspects or flight:
            if time.monotonic() - looked > LOOK_SECONDS:
                threads = _threads(client)
                self.progress.wait(cluster.check(threads))
                room, looked = max(1, IN_FLIGHT * threads), time.monotonic()
            if not (self.waiting or flight):
                self.waiting.append(self.suspects.popleft())  # alone, so that no other is suspected with it
            while self.waiting and len(flight) < room:
                chunk = self.waiting.popleft()
                future = self._send(client, text, chunk)
                flight[future.key] = chunk
                future.add_done_callback(ended.put)
            try:
                future = ended.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            self._take(future, flight.pop(future.key))

    def _send(self, client: Any, text: Any, chunk: tuple[int, int]) -> Any:
        """The future of a chunk; each time it is sent it has a key of its own."""
        sent = self.sent[chunk[0]] = self.sent.get(chunk[0], 0) + 1
        key = f"chunk-{self.token}", *chunk, sent
        return client.submit(compute_chunk, text, self.reader, *chunk, self.place, key=key, pure=False)

    def _take(self, future: Any, chunk: tuple[int, int]) -> None:
        """A chunk has ended, one way or another."""
        from distributed import CancelledError, KilledWorker

        try:
            done = future.result(timeout=FETCH_SECONDS)
        except (CancelledError, TimeoutError):
            self.waiting.append(chunk)  # lost on the way, no fault of the rows
        except KilledWorker:
            self._set_aside(chunk, "their worker was killed again and again; is its memory too small?", True)
        except Exception as error:
            self._set_aside(chunk, _words(error), not isinstance(error, RobokitError))
        else:
            self._keep(done)
        finally:
            future.release()

    def _set_aside(self, chunk: tuple[int, int], why: str, again: bool) -> None:
        """A chunk failed: try it again at the end, alone, if that may help; then go on without it."""
        tried = self.tried[chunk[0]] = self.tried.get(chunk[0], 0) + 1
        if again and tried < MOST_ATTEMPTS:
            self.suspects.append(chunk)
        else:
            self.failed[chunk] = why
        if len(self.failed) + len(self.suspects) > MOST_FAILED:
            self.failed |= dict.fromkeys(self.suspects, why)
            raise RobokitError(self._rest(self._failures()))

    # ---- words ---------------------------------------------------------------------------------

    def _failures(self) -> str:
        (first, last), why = min(self.failed.items())
        more = f" (and {len(self.failed) - 1} more chunks)" if len(self.failed) > 1 else ""
        return f"rows {first} to {last - 1} could not be computed{more}: {why}"

    def _rest(self, what: str) -> str:
        there, total = self.progress.rows, self.given.count
        return f"{what}; {there:,} of {total:,} rows are kept; go on with: robokit sweep --resume {self.folder}"


def _words(error: Exception) -> str:
    said = one_line(str(error), 300)
    return said if isinstance(error, RobokitError) else f"{type(error).__name__}: {said}"


def _same(text: str) -> str:
    """The recipe's text, as a task of its own: Dask sends it once to each worker, not with each chunk."""
    return text


def _threads(client: Any) -> int:
    """Threads of all workers that are ready."""
    if client.status != "running":
        raise RobokitError("the scheduler has gone")
    return sum(client.nthreads().values())


def _failures_of(folder: Path, files: Iterable[ChunkFile]) -> int:
    """Rows that failed, of chunks that are there."""
    found = 0
    for table in read_chunks(folder, only=list(files)):
        if "failure" in table.schema.names:
            found += table.num_rows - table["failure"].null_count
    return found
