"""Runs a sweep: finds the missing chunks, has them computed, and stores them."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robokit.disk_cache import source_digest
from robokit.engine.backend.llvm import processors
from robokit.errors import RobokitError
from robokit.files import shell_word
from robokit.stages import is_live
from robokit.sweeps.chunks import (
    Chunk,
    ChunkFile,
    ComputedChunk,
    DamagedChunk,
    Place,
    check_belongs,
    check_same_bits,
    chunk_files,
    open_chunk,
    probe_name,
    remove_temporary,
    set_aside,
)
from robokit.sweeps.folder import (
    CHUNKS,
    SweepFile,
    another_sweep,
    canonical_json,
    create_folder,
    difference,
    disk_problem,
    hold_folder,
    read_sweep_file,
    write_whole,
)
from robokit.sweeps.table import FAILURE, arrow
from robokit.sweeps.workers import (
    ChunkQueue,
    ChunksFailed,
    Cluster,
    ClusterEnded,
    LocalProcesses,
    RunningScheduler,
)


@dataclass(frozen=True)
class RunSummary:
    """What a run of a sweep did.

    Attributes:
        rows: of the sweep.
        computed: those of them that were computed by this run.
        failures: rows that failed, of all.
        seconds: of this run [s].
        memory: largest memory of a worker [bytes], 0 where none says.
        redone: chunks that were there and damaged or of another sweep, as lines of text.
    """

    rows: int
    computed: int
    failures: int
    seconds: float
    memory: int
    redone: tuple[str, ...]


CARD = 32
"""Times as many rows as on a processor keep a card busy, about."""


def default_chunk(count: int, steps: int, device: str | None = None) -> int:
    """Rows of a chunk: some seconds of work, and not more than 10,000 chunks.

    It follows from the sweep, not from the machine: the folder's files are the same everywhere.

    Args:
        count: rows of the sweep.
        steps: time steps of a row.
        device: that computes them; None for a processor.
    """
    rows = (1 if device is None else CARD) << max(4, (2_000_000 // max(steps, 1)).bit_length() - 1)
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
    device: str | None = None,
) -> RunSummary:
    """Compute the missing rows of a sweep.

    Args:
        recipe: of its rows (:class:`robokit.sweeps.recipe.Recipe`): with ``count``, ``hash``,
            ``to_json()``, ``from_json(text)`` and ``compute_rows(first, last)``.
        folder: new, or with ``resume`` that of the same sweep.
        chunk: rows of a chunk; that of the folder is kept with ``resume``.
        scheduler: address of a Dask scheduler, or the file that it wrote; None for processes of this machine.
        workers: number of these processes; None for one per processor, 0 to compute in this process, as a
            single chunk is by default.
        resume: whether to continue the sweep in the folder.
        progress: whether to show rows, rows per second, failures and the remaining time.
        device: that computes, as of :func:`robokit.rollout`; with "cuda" there is a process for each card.

    Raises:
        RobokitError: the folder holds another sweep or cannot be written, the cluster has ended, or chunks
            could not be computed. What was computed until then is kept.
        MissingDependency: pyarrow is not installed; or Dask, and workers are asked for.
        KeyboardInterrupt: Ctrl-C; its text says how to go on.
    """
    arrow()  # before anything is computed
    where = Path(folder)
    sweep_file = SweepFile(canonical_json(recipe.to_json()), chunk, recipe.count)
    if resume:
        found = read_sweep_file(where)
        if type(recipe).from_json(found.recipe).hash != recipe.hash:
            raise another_sweep(where, found, sweep_file)
        sweep_file = found
    else:
        create_folder(where, sweep_file)
    with hold_folder(where):
        return _Run(recipe, where, sweep_file, device).go(scheduler, workers, progress)


class _Run:
    """One run of a sweep.

    Args:
        recipe: of the sweep.
        folder: of the sweep, as the user gave it.
        sweep_file: what its sweep.json says.
        device: that computes.
    """

    def __init__(self, recipe: Any, folder: Path, sweep_file: SweepFile, device: str | None = None) -> None:
        self.recipe, self.folder, self.sweep_file = recipe, folder, sweep_file
        where = str(folder.absolute()), probe_name(), sweep_file.count, source_digest()
        self.place = Place(*where, device)
        self.memory = 0
        self.progress: SweepProgress
        self._kept: list[ChunkFile] = []
        self._wrong: list[tuple[ChunkFile, str]] = []
        self._foreign: list[Chunk] = []

    def go(self, scheduler: str | None, workers: int | None, progress: bool) -> RunSummary:
        """Compute what is missing."""
        missing, there, failures = self._look_through()
        self.progress = seen = SweepProgress(self.sweep_file.count, there, failures, progress)
        reader = type(self.recipe).from_json
        chunks = ChunkQueue(
            self._missing(), missing, self.sweep_file.recipe, reader, self.place, self._keep, seen.wait
        )
        try:
            if missing and self._kept:
                check_same_bits(self.recipe, self.folder, self.sweep_file.recipe, self._kept[0])
            redone = self._make_room()
            for line in redone:
                seen.say(f"robokit: {line}")
            if missing:
                self._compute(chunks, scheduler, workers)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._how_to_go_on("interrupted")) from None
        except ClusterEnded as error:
            raise RobokitError(self._how_to_go_on(str(error))) from error
        except ChunksFailed:
            pass  # the error is raised below
        finally:
            seen.close()
            with contextlib.suppress(OSError):
                remove_temporary(self.folder)
        if chunks.failed:
            raise RobokitError(self._how_to_go_on(_failures(chunks.failed))) from chunks.error
        return RunSummary(
            self.sweep_file.count, seen.rows - there, seen.failures, seen.seconds, self.memory, tuple(redone)
        )

    def _look_through(self) -> tuple[int, int, int]:
        """How many chunks are missing, the rows and failures that are there; nothing is changed.

        Raises:
            RobokitError: sweep.json contradicts all sound chunks, or a chunk of its own recipe.
        """
        chunks: list[Chunk] = []
        for file in chunk_files(self.folder):
            try:
                chunks.append(open_chunk(file, self.sweep_file.layout, [FAILURE], self._hash_of))
            except DamagedChunk as error:
                self._wrong.append((file, str(error)))
        own = [chunk for chunk in chunks if chunk.recipe == self.sweep_file.recipe]
        for chunk in own or chunks:
            check_belongs(chunk, self.folder, self.sweep_file)
        self._foreign = [chunk for chunk in chunks if chunk.recipe != self.sweep_file.recipe]
        often = Counter(file.first for file in [*(chunk.file for chunk in own), *(x for x, _ in self._wrong)])
        rows = failures = 0
        for chunk in own:
            if often[chunk.file.first] > 1:
                self._wrong.append((chunk.file, "is there more than once, with other content"))
                continue
            self._kept.append(chunk.file)
            rows += chunk.rows
            failures += chunk.table.failures
        return -(-self.sweep_file.count // self.sweep_file.chunk) - len(self._kept), rows, failures

    def _missing(self) -> Iterator[tuple[int, int]]:
        there = {file.first for file in self._kept}
        return (each for each in self.sweep_file.chunks() if each[0] not in there)

    def _make_room(self) -> list[str]:
        """Remove what is damaged or was left by killed processes, and move chunks of other sweeps beside.

        Returns:
            what was damaged or of another sweep, as lines of text.
        """
        lines = []
        try:
            (self.folder / CHUNKS).mkdir(exist_ok=True)
            remove_temporary(self.folder)
            for file, why in self._wrong:
                lines.append(
                    f"{file.path.name} {why}: its rows are computed again{set_aside(file, self.folder)}"
                )
            for chunk in self._foreign:
                differs = difference(chunk.recipe, self.sweep_file.recipe)
                moved = set_aside(chunk.file, self.folder, keep=True)
                lines.append(f"{chunk.file.path.name} is of another sweep, whose {differs}{moved}")
            return lines
        except OSError as error:
            raise RobokitError(disk_problem(self.folder, error)) from error

    def _hash_of(self, text: str) -> str:
        """The hash of a recipe by its text."""
        return str(type(self.recipe).from_json(text).hash)

    def _compute(self, chunks: ChunkQueue, scheduler: str | None, workers: int | None) -> None:
        if scheduler is None and workers is None and self.place.device is not None:
            workers = cards(self.place.device)
            workers = 0 if workers == 1 else workers
        if scheduler is None and (workers == 0 or (workers is None and chunks.number == 1)):
            chunks.compute_here()
            return
        with self._writing():
            (self.folder / self.place.probe).touch()
        self.progress.wait("starting")
        cluster: Cluster
        if scheduler is None:
            cluster = LocalProcesses(min(workers or processors(), chunks.number), self.progress.wanted)
        else:
            cluster = RunningScheduler(scheduler)
        try:
            if cluster.dashboard:
                self.progress.say(f"robokit: dashboard {cluster.dashboard}")
            chunks.compute_on(cluster)
        finally:
            cluster.close()

    def _keep(self, done: ComputedChunk) -> None:
        """A chunk is done: write it, if its worker could not."""
        path = self.folder / CHUNKS / done.name
        with self._writing():
            if done.content is not None:
                write_whole(path, done.content)
            elif not path.exists():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self.memory = max(self.memory, done.memory)
        self.progress.add(done.rows, done.failures)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RobokitError(self._how_to_go_on(disk_problem(self.folder, error))) from error

    def _how_to_go_on(self, what: str) -> str:
        there, total = self.progress.rows, self.sweep_file.count
        return (
            f"{what}; {there:,} of {total:,} rows are kept; go on with: robokit sweep --resume "
            f"{shell_word(self.folder)}"
        )


def cards(device: str) -> int:
    """How many cards a device is: all of the machine for "cuda", else one.

    Raises:
        DeviceError: there is no such card.
    """
    from robokit.engine.cuda import arrays, driver

    arrays.number_of(device)
    return driver.count() if device == "cuda" else 1


def _failures(failed: dict[tuple[int, int], str]) -> str:
    (first, last), why = min(failed.items())
    more = f" (and those of {len(failed) - 1} more chunks)" if len(failed) > 1 else ""
    return f"rows {first} to {last - 1} could not be computed{more}: {why}"


# ---- how far a sweep is ------------------------------------------------------------------------

LINE_SECONDS = 30.0
"""Time between two lines where standard error is no terminal [s]."""


class SweepProgress:
    """A bar in a terminal or notebook; a line now and then where standard error goes to a file.

    Args:
        total: rows of the sweep.
        there: rows that are there already.
        failures: of these, those that failed.
        wanted: False for one that shows nothing.
    """

    def __init__(self, total: int, there: int, failures: int = 0, wanted: bool = True) -> None:
        self.total, self.there, self.rows, self.failures, self.wanted = total, there, there, failures, wanted
        self.started = time.monotonic()
        self._said, self._waits, self._bar = self.started, "", None
        self._lines = wanted and not is_live()
        if wanted and not self._lines:
            from tqdm import TqdmWarning

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TqdmWarning)  # a notebook without widgets gets a line of text
                from tqdm.auto import tqdm

            self._bar = tqdm(
                total=total,
                initial=there,
                unit=" rows",
                unit_scale=True,
                smoothing=0.0,
                dynamic_ncols=True,
                leave=False,
            )
            self._show()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.started

    def add(self, rows: int, failures: int) -> None:
        """Rows were computed and kept."""
        self.rows += rows
        self.failures += failures
        self._waits = ""
        if self._bar is not None:
            self._show()
            self._bar.update(rows)
        elif self._lines and time.monotonic() - self._said > LINE_SECONDS:
            self._line()

    def wait(self, what: str) -> None:
        """Nothing moves, because of ``what``; "" when it does again. The clock goes on."""
        changed = what != self._waits
        self._waits = what
        if self._bar is not None:
            if changed:
                self._show()
            self._bar.refresh()
        elif self._lines and what and changed:
            print(f"robokit: {what}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        elif self._lines:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def _show(self) -> None:
        failed = f"{self.failures:,} failed"
        assert self._bar is not None
        self._bar.set_postfix_str(f"{failed}, {self._waits}" if self._waits else failed, refresh=False)

    def _line(self) -> None:
        self._said = time.monotonic()
        new, seconds = self.rows - self.there, self.seconds
        rate = new / seconds
        left = seconds * (self.total - self.rows) / max(new, 1)
        print(
            f"robokit: {self.rows:,} of {self.total:,} rows, {rate:,.{0 if rate > 10 else 2}f} rows/s, "
            f"{self.failures:,} failed, {_clock(left)} left",
            file=sys.stderr,
            flush=True,
        )


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
