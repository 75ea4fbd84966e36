"""Runs a sweep: finds the missing chunks, has them computed, and stores them."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robokit.dataclass_tools import frozen
from robokit.disk_cache import source_digest
from robokit.engine.backend.llvm import processors
from robokit.errors import MissingDependency, RobokitError, one_line
from robokit.files import shell_word
from robokit.stages import is_live
from robokit.sweeps.folder import (
    CHUNKS,
    Chunk,
    ChunkFile,
    ComputedChunk,
    DamagedChunk,
    Place,
    SweepFile,
    another_sweep,
    canonical_json,
    check_belongs,
    check_same_bits,
    chunk_files,
    compute_chunk,
    create_folder,
    difference,
    disk_problem,
    hold_folder,
    open_chunk,
    probe_name,
    read_sweep_file,
    remove_temporary,
    set_aside,
    write_whole,
)
from robokit.sweeps.table import FAILURE, arrow

# ==== workers =====================================================================================
# Computes the chunks of a sweep: in this process, on processes of this machine, or on a cluster of Dask.
#
# Dask is imported where it is used, and kept quiet: what matters is said in this program's words.
#
# The processes of this machine are workers of Dask, one thread each, with a scheduler inside the command.
# They are started as a program of their own (``dask worker``), not forked from the command: a script that
# calls ``rk.sweep`` needs no ``if __name__ == "__main__"``, and Ctrl-C in a terminal reaches the command
# alone. They end with the command however it ends (:func:`dask_setup`). The scheduler listens on 127.0.0.1.

CHUNKS_A_THREAD = 3  # of a worker that Dask holds at a time: one computed, the next at hand
CHUNKS_AT_HAND = 10_000  # chunks that are taken from those to come at a time: enough for 3,000 workers
CHECK_SECONDS = 0.5  # time between two checks of the cluster [s]
FETCH_SECONDS = 120.0  # how long a result may take from a worker before its chunk is computed again [s]
FETCHERS = 32  # results fetched at once, so that a worker slow to answer does not hold up others
MAX_ATTEMPTS = 2  # at a chunk that raises an error or ends its worker; then the sweep goes on
MAX_FAILED = 8  # chunks that may fail, or lose workers, before the sweep gives up: it is not the rows
CONNECT_SECONDS = 10.0  # how long an existing scheduler may take to answer [s]
AGAIN_SECONDS = 30.0  # how long a lost scheduler may take to answer again [s]
CLOSE_SECONDS = 0.5  # how long a client and a scheduler may take to end [s]; nothing depends on it
START_SECONDS = 90.0  # how long no process of this machine may be ready to work [s]
MAX_STARTS = 4  # of the processes of this machine, when all of them have been ended together

ENVIRONMENT = {
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__DISK": "False",
    # A processor a worker: no library may start threads of its own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}
"""Variables of the processes of this machine."""


class ChunksFailed(Exception):
    """Too many chunks could not be computed."""


class ClusterEnded(Exception):
    """What computes has come to an end; the text says how."""


# ---- the chunks that are still to be computed --------------------------------------------------


class ChunkQueue:
    """Chunks that are to be computed: given to Dask a few at a time, and none of them lost.

    Args:
        chunks, number: of each the first row and the row after its last; how many there are.
        recipe, reader: its text, and what makes the recipe of it.
        place: where the chunks belong.
        keep, wait: are given each chunk that was computed, and what is waited for; "" for nothing.

    Attributes:
        failed: chunks that could not be computed, and why.
        error: the first error of a chunk that was computed in this process, or None.
    """

    def __init__(
        self,
        chunks: Iterable[tuple[int, int]],
        number: int,
        recipe: str,
        reader: Callable[[str], Any],
        place: Place,
        keep: Callable[[ComputedChunk], None],
        wait: Callable[[str], None],
    ) -> None:
        self.number = number
        self.error: Exception | None = None
        self.failed: dict[tuple[int, int], str] = {}
        self._recipe, self._reader, self._place, self._keep, self._wait = recipe, reader, place, keep, wait
        self._coming = iter(chunks)
        self._waiting: deque[tuple[int, int]] = deque()
        self._suspects: deque[tuple[int, int]] = deque()  # these failed: each is tried again alone
        self._times_sent: dict[int, int] = {}  # how often a chunk was given to Dask
        self._attempts: dict[int, int] = {}  # chunk -> how often it failed
        self._token = os.urandom(8).hex()
        self._name = f"robokit-recipe-{self._token}"
        self._compiled = False  # whether a chunk is done, and so all code is compiled

    def _any_waits(self) -> bool:
        """Whether a chunk waits; more are taken from those to come where few do."""
        if len(self._waiting) < CHUNKS_AT_HAND:
            self._waiting.extend(itertools.islice(self._coming, CHUNKS_AT_HAND))
        return bool(self._waiting)

    def compute_here(self) -> None:
        """Compute the chunks in this process, without Dask; ChunksFailed if too many fail."""
        while self._any_waits():
            chunk = self._waiting.popleft()
            try:
                computed = compute_chunk(self._recipe, self._reader, *chunk, self._place)
            except Exception as error:
                self.error = self.error or error
                self._set_aside(chunk, _error_words(error), again=False)
            else:
                self._keep(computed)

    def compute_on(self, cluster: Cluster) -> None:
        """Have the chunks computed by a cluster.

        Raises ChunksFailed if too many could not be computed, ClusterEnded if the cluster has come to an end.
        """
        with quiet_dask():
            while not self._feed(cluster):
                self._wait("the scheduler has gone: trying to reach it again")
                if not cluster.reconnect():
                    raise ClusterEnded("the scheduler has gone")

    def _feed(self, cluster: Cluster) -> bool:
        """Give Dask as many chunks as its workers need, take their results, look after the cluster.

        Returns whether all is done; False if the scheduler was lost.
        """
        client = cluster.client
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        fetched: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(FETCHERS):
            threading.Thread(target=_fetch, args=(ended, fetched), daemon=True).start()
        flight: dict[Any, tuple[int, int]] = {}
        room, checked = 1, -CHECK_SECONDS
        try:
            client.set_metadata(self._name, zlib.compress(self._recipe.encode(), 1))
            while self._any_waits() or self._suspects or flight:
                if time.monotonic() - checked > CHECK_SECONDS:
                    threads = sum(client.nthreads().values())
                    self._wait(cluster.check(threads) or ("" if self._compiled else "compiling"))
                    room, checked = max(1, CHUNKS_A_THREAD * threads), time.monotonic()
                if not (self._waiting or flight):
                    # Alone: Dask suspects all chunks that a worker held when it died.
                    self._waiting.append(self._suspects.popleft())
                if self._waiting and len(flight) <= room * (CHUNKS_A_THREAD - 1) // CHUNKS_A_THREAD:
                    for future, chunk in self._submit(client, room - len(flight)):
                        flight[future.key] = chunk
                        future.add_done_callback(ended.put)
                with contextlib.suppress(queue.Empty):
                    future, outcome = fetched.get(timeout=CHECK_SECONDS)
                    self._take(flight.pop(future.key), outcome)
                    future.release()
                if client.status != "running":
                    return False
        except (RobokitError, ClusterEnded, ChunksFailed):
            raise
        except Exception:
            if client.status == "running":
                raise
            return False
        finally:
            for _ in range(FETCHERS):
                ended.put(None)
            forget_recipe(client, self._name)
            self._waiting.extendleft(flight.values())
        return True

    def _submit(self, client: Any, count: int) -> Iterator[tuple[Any, tuple[int, int]]]:
        """Give chunks to Dask, many at once; returns the future of each.

        A message with a hundred chunks costs the scheduler little more than one with a single chunk.
        """
        chunks = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        for first, _ in chunks:
            self._times_sent[first] = self._times_sent.get(first, 0) + 1
        futures = client.map(
            compute_sent_chunk,
            *zip(*chunks, strict=True),
            # Each time that a chunk is sent it has a key of its own.
            key=[(f"chunk-{self._token}", *chunk, self._times_sent[chunk[0]]) for chunk in chunks],
            pure=False,
            recipe=self._name,
            reader=self._reader,
            place=self._place,
        )
        return zip(futures, chunks, strict=True)

    def _take(self, chunk: tuple[int, int], outcome: Any) -> None:
        """A chunk has ended, one way or another: with what was computed, or with an error."""
        from distributed import CancelledError, KilledWorker

        if isinstance(outcome, CancelledError | TimeoutError):
            self._waiting.append(chunk)  # the result was lost, which is not the fault of the rows
        elif isinstance(outcome, KilledWorker):
            why = "their worker is killed again and again; is its memory too small?"
            self._set_aside(chunk, why, again=True)
        elif isinstance(outcome, BaseException):
            self._set_aside(chunk, _error_words(outcome), again=not isinstance(outcome, RobokitError))
        else:
            self._compiled = True
            self._keep(outcome)

    def _set_aside(self, chunk: tuple[int, int], why: str, again: bool) -> None:
        """A chunk failed: try it again at the end, alone, if that may help; then go on without it."""
        attempts = self._attempts[chunk[0]] = self._attempts.get(chunk[0], 0) + 1
        if again and attempts < MAX_ATTEMPTS:
            self._suspects.append(chunk)
        else:
            self.failed[chunk] = why
        if len(self.failed) + len(self._suspects) > MAX_FAILED:
            self.failed |= dict.fromkeys(self._suspects, why)
            raise ChunksFailed


def _fetch(ended: queue.SimpleQueue[Any], fetched: queue.SimpleQueue[Any]) -> None:
    """Fetch the results of futures that have ended, until None comes; an error is a result, too."""
    while (future := ended.get()) is not None:
        try:
            outcome = future.result(timeout=FETCH_SECONDS)
        except BaseException as error:
            outcome = error
        fetched.put((future, outcome))


def _error_words(error: BaseException) -> str:
    text = one_line(str(error), 300)
    return text if isinstance(error, RobokitError) else f"{type(error).__name__}: {text}"


# ---- the recipe on its way to the workers ------------------------------------------------------
#
# Its text is kept by Dask's scheduler and asked for once by each process. Sent with each chunk, it would be
# most of what a scheduler has to carry. As a result that the chunks depend on, it would draw them to the one
# worker that has it: Dask sends a task where its data lies, and moves the others on by and by (with 128
# workers the last one began after half a minute or more).


def forget_recipe(client: Any, name: str) -> None:
    """Take a recipe back, without waiting for that; a scheduler that has gone does not matter."""

    async def clear() -> None:
        with contextlib.suppress(Exception):
            await client.scheduler.set_metadata(keys=[name], value=None)

    with contextlib.suppress(Exception):
        client.loop.add_callback(clear)


@lru_cache(maxsize=2)
def receive_recipe(name: str) -> str:
    """The text of a recipe that was sent, in a task on a worker; RobokitError if it is not there any more."""
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    packed = sync(worker.loop, worker.scheduler.get_metadata, keys=[name], default=None)
    if packed is None:
        raise RobokitError("the scheduler does not have the sweep's recipe; has the command ended?")
    return zlib.decompress(packed).decode()


def compute_sent_chunk(
    first: int, last: int, recipe: str, reader: Callable[[str], Any], place: Place
) -> ComputedChunk:
    """:func:`compute_chunk` on a worker of Dask; ``recipe`` is the name of one that was sent."""
    return compute_chunk(receive_recipe(recipe), reader, first, last, place)


# ---- processes of this machine, or a cluster that is there -------------------------------------


class LocalProcesses:
    """Processes of this machine, started for one sweep, with Dask's dashboard (it takes a second) if wanted.

    ``client`` is a connected ``distributed.Client``; ``dashboard`` the dashboard's address, "" where there is
    none.
    """

    def __init__(self, workers: int, dashboard: bool = False) -> None:
        module, dashboard = distributed(), dashboard and has_bokeh()
        self.workers, self.dashboard = workers, ""
        self.client: Any = None
        self._process: subprocess.Popen[bytes] | None = None
        self._scheduler: Any = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._starts, self._idle_since = 0, time.monotonic()
        try:
            with quiet_dask():
                self._scheduler = module.LocalCluster(
                    n_workers=0,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:8787" if dashboard else None,
                    silence_logs=logging.CRITICAL,
                )
                self._start()
                self.client = module.Client(self._scheduler, set_as_default=False)
                self.dashboard = str(self._scheduler.dashboard_link or "") if dashboard else ""
        except OSError as error:
            self.close()
            raise RobokitError(f"cannot start processes to compute: {error}") from error
        except BaseException:
            self.close()
            raise

    def check(self, workers: int) -> str:
        """Start the processes again if all were ended; called now and then, with how many are ready.

        Returns what it waits for, in words; "" as long as it can work. Raises ClusterEnded where the
        processes are ended again and again, or never ready.
        """
        assert self._process is not None
        now = time.monotonic()
        if workers:
            self._idle_since = now
        if self._process.poll() is not None:
            if self._starts == MAX_STARTS:
                words = self._last_words()
                raise ClusterEnded(f"the processes that compute were ended again and again{words}")
            self._start()
        if now - self._idle_since > START_SECONDS:
            words = self._last_words()
            raise ClusterEnded(f"no process is ready to compute after {START_SECONDS:.0f} s{words}")
        return "" if workers else "starting"

    def reconnect(self) -> bool:
        """Whether the scheduler can be reached again: never, because it ran in this process."""
        return False

    def close(self) -> None:
        """End the processes at once: chunks are written whole or not at all, so there is nothing to lose."""
        if self._process is not None:
            process = self._process
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        _close(self.client, self._scheduler)
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_SECONDS)
        self._log.close()

    def _start(self) -> None:
        self._starts += 1
        self._idle_since = time.monotonic()
        command = [
            # -P: or files of the current folder would be imported in place of Python's own modules.
            *(sys.executable, "-P", "-m", "dask", "worker", self._scheduler.scheduler_address),
            *("--nworkers", str(self.workers), "--nthreads", "1", "--host", "127.0.0.1"),
            *("--name", f"start{self._starts}"),  # chunks.card_of_worker reads the numbers behind it
            # A worker without dashboard listens, too, and without an address everywhere.
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--preload-nanny", __name__),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its end tells the processes that this one has ended
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env=worker_environment(),
            start_new_session=True,
        )

    def _last_words(self) -> str:
        """The last line that the processes wrote on standard error."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        return f": {one_line(lines[-1], 300)}" if lines else ""


class RunningScheduler:
    """A Dask cluster that somebody else started; methods and attributes as in :class:`LocalProcesses`.

    ``address`` is such as "tcp://10.0.0.7:8786", or the file of ``dask scheduler --scheduler-file``. Raises
    RobokitError if no scheduler answers there.
    """

    def __init__(self, address: str) -> None:
        self.address, self._losses = address, 0
        if address.endswith(".json") and not Path(address).is_file():
            raise RobokitError(f"scheduler: there is no file {address!r}")
        try:
            self._connect()
        except (OSError, ValueError, TypeError) as error:
            why = one_line(str(error), 150)
            raise RobokitError(
                f"no Dask scheduler answers at {address!r}: {why}; start one with: dask scheduler"
            ) from error
        self.dashboard = str(getattr(self.client, "dashboard_link", "") or "") if has_bokeh() else ""

    def check(self, workers: int) -> str:
        """Say where workers are missing."""
        return "" if workers else "waiting for workers"

    def reconnect(self) -> bool:
        """Try for some seconds to reach the scheduler again."""
        self._losses += 1
        _close(self.client, None)
        with contextlib.suppress(OSError, ValueError):
            self._connect(AGAIN_SECONDS)
            return self._losses <= MAX_STARTS
        return False

    def close(self) -> None:
        """Leave the cluster, which drops the chunks that are not begun."""
        _close(self.client, None)

    def _connect(self, seconds: float = CONNECT_SECONDS) -> None:
        file = self.address if self.address.endswith(".json") else None
        address = None if file else self.address
        with quiet_dask():
            self.client: Any = distributed().Client(
                address, scheduler_file=file, timeout=seconds, set_as_default=False
            )


Cluster = LocalProcesses | RunningScheduler


def _close(client: Any, scheduler: Any) -> None:
    """Close a client and the scheduler of this process, where they are; errors of that do not matter."""

    def close() -> None:
        for each in (client, scheduler):
            if each is not None:
                with contextlib.suppress(Exception):
                    each.close(timeout=CLOSE_SECONDS)

    if scheduler is not None:
        scheduler.shutdown_on_close = False  # or Dask would wait for it once more when this process ends
    with quiet_dask():
        closer = threading.Thread(target=close, daemon=True)
        closer.start()
        closer.join(CLOSE_SECONDS)


_watchers: list[threading.Thread] = []


def dask_setup(_: Any) -> None:
    """End the process that watches over the workers of this machine when the command has ended.

    Dask calls this in that process, once for each worker. Its standard input is a pipe that the command holds
    open and never writes to. However the command ends, kill -9 included, the system closes the pipe; this
    process ends then, and Dask's workers end with it, since they watch their parent in the same way.
    """
    if not _watchers:
        _watchers.append(threading.Thread(target=_watch, name="command watch", daemon=True))
        _watchers[0].start()


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


# ---- Dask, imported where it is used -----------------------------------------------------------


def distributed() -> Any:
    """The module distributed; MissingDependency where it is not installed."""
    try:
        import distributed as module
    except ImportError as error:
        raise MissingDependency(
            "a sweep on several processes needs Dask: pip install 'robokit[sweep]', or compute in this one: "
            "workers=0 (--workers 0)"
        ) from error
    return module


def worker_environment() -> dict[str, str]:
    """Variables of the processes: quiet, one thread each, with this robokit, and without the current folder.

    An empty part of PYTHONPATH stands for the current folder.
    """
    variables = {**os.environ, **ENVIRONMENT}
    home = str(Path(__file__).resolve().parents[2])
    own = [] if "site-packages" in Path(home).parts else [home]
    others = [part for part in variables.get("PYTHONPATH", "").split(os.pathsep) if part]
    variables["PYTHONPATH"] = os.pathsep.join(own + others)
    return variables


def has_bokeh() -> bool:
    """Whether the library of Dask's dashboard is installed."""
    return find_spec("bokeh") is not None


@contextlib.contextmanager
def quiet_dask() -> Iterator[None]:
    """Without the log and the warnings of Dask."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logging.getLogger(name) for name in (*names, "tornado.application", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


# ==== run sweep ===================================================================================


@frozen
class RunSummary:
    """What a run of a sweep did."""

    rows: int  # of the sweep
    computed: int  # those of them that were computed by this run
    failures: int  # rows that failed, of all
    seconds: float  # of this run [s]
    memory: int  # largest memory of a worker [bytes], 0 where none says
    redone: tuple[str, ...]  # chunks that were there and damaged or of another sweep, as lines of text


CARD = 32  # times as many rows as on a processor keep a card busy, about


def default_chunk(count: int, steps: int, device: str | None = None) -> int:
    """Rows of a chunk of a sweep of ``count`` rows: some seconds of work, and not more than 10,000 chunks.

    It follows from the sweep, not from the machine: the folder's files are the same everywhere.
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
    """Compute the missing rows of a sweep; arguments and errors as those of :func:`robokit.sweep`.

    ``recipe``: of its rows (:class:`robokit.sweeps.recipe.Recipe`); ``folder``: new, or with ``resume`` that
    of the same sweep; ``chunk``: rows of a chunk; that of the folder is kept with ``resume``; ``workers``:
    None computes a single chunk in this process.
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
    """One run of a sweep in its folder, as the user gave it."""

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
        kept = {file.first for file in self._kept}
        chunks = ChunkQueue(
            (each for each in self.sweep_file.chunks() if each[0] not in kept),
            missing,
            self.sweep_file.recipe,
            reader,
            self.place,
            self._keep,
            seen.wait,
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
            (first, last), why = min(chunks.failed.items())
            more = f" (and those of {len(chunks.failed) - 1} more chunks)" if len(chunks.failed) > 1 else ""
            why = f"rows {first} to {last - 1} could not be computed{more}: {why}"
            raise RobokitError(self._how_to_go_on(why)) from chunks.error
        return RunSummary(
            self.sweep_file.count, seen.rows - there, seen.failures, seen.seconds, self.memory, tuple(redone)
        )

    def _look_through(self) -> tuple[int, int, int]:
        """How many chunks are missing, the rows and failures that are there; nothing is changed.

        Raises RobokitError if sweep.json contradicts all sound chunks, or a chunk of its own recipe.
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
                self._wrong.append((chunk.file, "exists more than once, with different content"))
                continue
            self._kept.append(chunk.file)
            rows += chunk.rows
            failures += chunk.table.failures
        return -(-self.sweep_file.count // self.sweep_file.chunk) - len(self._kept), rows, failures

    def _make_room(self) -> list[str]:
        """Remove what is damaged or was left by killed processes, and move chunks of other sweeps beside.

        Returns what was damaged or of another sweep, as lines of text.
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
    """How many cards a device is: all of the machine for "cuda", else one; DeviceError if there is none."""
    from robokit.engine.cuda import arrays, driver

    arrays.number_of(device)
    return driver.count() if device == "cuda" else 1


# ---- how far a sweep is ------------------------------------------------------------------------

LINE_SECONDS = 30.0  # time between two lines where standard error is no terminal [s]


class SweepProgress:
    """A bar in a terminal or notebook; a line now and then where standard error goes to a file.

    Of ``total`` rows so many are ``there`` already; if it is not ``wanted`` it shows nothing.
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
        """Count rows that were computed and stored."""
        self.rows += rows
        self.failures += failures
        self._waits = ""
        if self._bar is not None:
            self._show()
            self._bar.update(rows)
        elif self._lines and time.monotonic() - self._said > LINE_SECONDS:
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

    def wait(self, what: str) -> None:
        """Show that the sweep waits because of ``what``; "" when it continues. The clock goes on."""
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


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
