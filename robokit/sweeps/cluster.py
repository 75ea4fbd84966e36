"""Dask, imported where it is used, and kept quiet: what matters is said in this program's words."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from robokit.errors import MissingDependency, RobokitError, one_line

# ---- Dask, imported where it is used ---------------------------------------------------------------------

_QUIET = {
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__DISK": "False",
    # A processor a worker: no library may start threads of its own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def distributed() -> Any:
    """The module distributed.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import distributed as found
    except ImportError as error:
        raise MissingDependency(
            "a sweep on several processes needs Dask: pip install 'robokit[sweep]'"
        ) from error
    return found


def worker_environment() -> dict[str, str]:
    """That of the processes: quiet, one thread each, with this robokit, and without the current folder.

    An empty part of PYTHONPATH stands for the current folder.
    """
    found = {**os.environ, **_QUIET, "PYTHONSAFEPATH": "1"}
    home = str(Path(__file__).resolve().parents[2])
    own = [] if "site-packages" in Path(home).parts else [home]
    given = [part for part in found.get("PYTHONPATH", "").split(os.pathsep) if part]
    found["PYTHONPATH"] = os.pathsep.join(own + given)
    return found


def has_bokeh() -> bool:
    """Whether the library of Dask's dashboard is installed."""
    from importlib.util import find_spec

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


# ---- the recipe on its way to the workers ----------------------------------------------------------------


def send_recipe(client: Any, name: str, text: str) -> None:
    """Give a recipe to the scheduler.

    Args:
        client: of the cluster, a ``distributed.Client``.
        name: under which the workers ask for it.
        text: of the recipe.
    """
    client.set_metadata(name, zlib.compress(text.encode(), 1))


def forget_recipe(client: Any, name: str) -> None:
    """Take it back, without waiting for that; a scheduler that has gone does not matter."""

    async def clear() -> None:
        with contextlib.suppress(Exception):
            await client.scheduler.set_metadata(keys=[name], value=None)

    with contextlib.suppress(Exception):
        client.loop.add_callback(clear)


@lru_cache(maxsize=2)
def receive_recipe(name: str) -> str:
    """The text of a recipe, in a task on a worker.

    Args:
        name: as it was sent.

    Raises:
        RobokitError: the scheduler does not have it (any more).
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    packed = sync(worker.loop, worker.scheduler.get_metadata, keys=[name], default=None)
    if packed is None:
        raise RobokitError("the scheduler does not have the sweep's recipe; has the command ended?")
    return zlib.decompress(packed).decode()


# ---- processes of this machine, or a cluster -------------------------------------------------------------

CONNECT_SECONDS = 10.0
"""How long an existing scheduler may take to answer [s]."""

AGAIN_SECONDS = 30.0
"""And one that was lost, to answer again [s]."""

CLOSE_SECONDS = 0.5
"""How long a client and a scheduler may take to end [s]; nothing depends on it."""

START_SECONDS = 90.0
"""How long no process of this machine may be ready to work [s]."""

MAX_STARTS = 4
"""How often the processes of this machine are started, when all of them have been ended together."""


class ClusterEnded(Exception):
    """What computes has come to an end; the text says how."""


class Cluster(Protocol):
    """What computes the chunks.

    Attributes:
        client: a connected ``distributed.Client``.
        dashboard: address of Dask's dashboard, "" where there is none.
    """

    client: Any
    dashboard: str

    def check(self, workers: int) -> str:
        """Look after it; called now and then.

        Args:
            workers: threads of workers that are ready.

        Returns:
            what it waits for, in words; "" as long as it can work.

        Raises:
            ClusterEnded: it has come to an end.
        """
        ...

    def again(self) -> bool:
        """Connect to it again after its scheduler was lost; returns whether that may be of use."""
        ...

    def close(self) -> None:
        """End what was started for this sweep; takes a second at most."""
        ...


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalProcesses:
    """Processes of this machine, started for one sweep; a :class:`Cluster`.

    Args:
        workers: number of processes.
        dashboard: whether Dask's dashboard is wanted; it takes a second to start.
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
        """Start the processes again if all were ended; see :class:`Cluster`."""
        assert self._process is not None
        now = time.monotonic()
        if workers:
            self._idle_since = now
        if self._process.poll() is not None:
            if self._starts == MAX_STARTS:
                raise ClusterEnded(
                    f"the processes that compute were ended again and again{self._last_words()}"
                )
            self._start()
        if now - self._idle_since > START_SECONDS:
            raise ClusterEnded(
                f"no process is ready to compute after {START_SECONDS:.0f} s{self._last_words()}"
            )
        return "" if workers else "starting"

    def again(self) -> bool:
        """Never: the scheduler is in this process; see :class:`Cluster`."""
        return False

    def close(self) -> None:
        """End the processes at once: chunks are written whole or not at all, so there is nothing to lose."""
        if self._process is not None:
            _kill(self._process)
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
            # A worker without dashboard listens, too, and without an address everywhere.
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
            *("--preload-nanny", "robokit.sweeps.cluster"),
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
        said = [line.strip() for line in lines if line.strip()]
        return f": {one_line(said[-1], 300)}" if said else ""


class RunningScheduler:
    """A Dask cluster that somebody else started; a :class:`Cluster`.

    Args:
        address: such as "tcp://10.0.0.7:8786", or the file of ``dask scheduler --scheduler-file``.

    Raises:
        RobokitError: no scheduler answers there.
    """

    def __init__(self, address: str) -> None:
        self.address, self._lost = address, 0
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
        """Say where workers are missing; see :class:`Cluster`."""
        return "" if workers else "waiting for workers"

    def again(self) -> bool:
        """Try for some seconds; see :class:`Cluster`."""
        self._lost += 1
        _close(self.client, None)
        with contextlib.suppress(OSError, ValueError):
            self._connect(AGAIN_SECONDS)
            return self._lost <= MAX_STARTS
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


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


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
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


# ---- the end of the command ------------------------------------------------------------------------------

_watching: list[threading.Thread] = []


def dask_setup(_: Any) -> None:
    """Begin to watch; Dask calls this once for each worker."""
    if not _watching:
        _watching.append(threading.Thread(target=_watch, name="command watch", daemon=True))
        _watching[0].start()


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)
