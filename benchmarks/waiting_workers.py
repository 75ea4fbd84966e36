"""What a chunk of a sweep costs the command and Dask's scheduler; the workers wait instead of computing.

The workers are Dask's, one thread each, up to 32 in a process; each "computes" a chunk by sleeping and writes
a small file. What the command and the scheduler take for a chunk does not depend on what is in it. Counted is
processor time, and that of workers that have nothing to do (their heartbeats) apart, so that another
program on the machine matters little. This file is also the program of such a process:

python benchmarks/waiting_workers.py COUNT SCHEDULER_FILE FILE    (it makes FILE when its workers are there)
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from robokit.sweeps.table import RowTable
from robokit.sweeps.workers import run_sweep

WORKERS = (8, 32, 128)
IN_A_PROCESS = 32
"""Workers of a process: many more would wait for its interpreter's lock, not for the scheduler."""

MACHINES = 1000
BUSY = 0.5
"""How much of its processor the scheduler may need [share]."""

IDLE_SECONDS = 10.0
READY_SECONDS = 120.0


@dataclass(frozen=True)
class Waiting:
    """A recipe whose chunks take a while and nothing else."""

    count: int
    seconds: float  # of a chunk

    @property
    def hash(self) -> str:
        """Any name."""
        return "waiting"

    def to_json(self) -> str:
        """The recipe as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Waiting:
        """The recipe of a text."""
        return cls(**json.loads(text))

    def compute_rows(self, first: int, last: int) -> RowTable:
        """The rows' numbers, after a while."""
        time.sleep(self.seconds)
        rows = np.arange(first, last)
        return RowTable({"row": rows, "failure": np.full(len(rows), None, object)})


@dataclass(frozen=True)
class Cost:
    """Processor time that workers cost."""

    command: float  # for a chunk [s]
    scheduler: float  # for a chunk [s]
    heartbeat: float  # of a worker, of the scheduler [s]


def waiting(seconds: float, waves: int) -> None:
    """What a chunk takes with 8, 32, 128 workers that wait, and how many workers that would feed."""
    print(f"waiting workers, {seconds:g} s a chunk; processor time:")
    for workers in WORKERS:
        with tempfile.TemporaryDirectory() as folder:
            found = _measured(workers, seconds, waves, Path(folder))
    idle = found.heartbeat * MACHINES / _beat(MACHINES)
    print(f"  on paper, with {MACHINES:,} workers: heartbeats take {100 * idle:.0f} % of the scheduler;")
    least = MACHINES * max(found.command / BUSY, found.scheduler / max(BUSY - idle, 1e-3))
    print(f"  it and the command are less than {100 * BUSY:.0f} % busy with chunks of {least:.1f} s or more")


def _beat(workers: int) -> float:
    """Time between two heartbeats of a Dask worker, of so many [s]."""
    from distributed.scheduler import heartbeat_interval

    return float(heartbeat_interval(workers))


def _measured(workers: int, seconds: float, waves: int, folder: Path) -> Cost:
    file, there = folder / "scheduler.json", [folder / f"there_{k}" for k in range(0, workers, IN_A_PROCESS)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        "DASK_LOGGING__DISTRIBUTED": "critical",
        # Each worker would look at all threads of its process every 10 ms.
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    }

    def started(*words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, *map(str, words)]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    scheduler = started(
        *("-m", "dask", "scheduler", "--scheduler-file", file, "--no-dashboard", "--host", "127.0.0.1")
    )
    crowd = [started(__file__, min(IN_A_PROCESS, workers), file, each) for each in there]
    try:
        began = time.monotonic()
        while not all(each.exists() for each in there):
            time.sleep(0.05)
            if time.monotonic() - began > READY_SECONDS:
                raise SystemExit(f"{workers} workers are not there after {READY_SECONDS:.0f} s")
        # The first sweep imports and connects what the second one finds.
        run_sweep(Waiting(workers, 0.5), folder / "first", chunk=1, scheduler=str(file))
        before = _used(scheduler.pid)
        time.sleep(IDLE_SECONDS)
        idle = (_used(scheduler.pid) - before) / IDLE_SECONDS
        chunks = workers * waves
        before, own = _used(scheduler.pid), time.process_time()
        found = run_sweep(Waiting(chunks, seconds), folder / "out", chunk=1, scheduler=str(file))
        command = (time.process_time() - own) / chunks
        scheduling = (_used(scheduler.pid) - before - idle * found.seconds) / chunks
    finally:
        for process in (*crowd, scheduler):
            process.kill()
            process.wait()
    print(
        f"  {workers:4d} workers: a chunk takes {1e3 * command:4.2f} ms of the command, "
        f"{1e3 * scheduling:4.2f} ms of the scheduler;\n    idle workers {1e3 * idle:.0f} ms a second; "
        f"{chunks} chunks took {found.seconds:.1f} s, {waves * seconds:g} s of it waited",
        flush=True,
    )
    return Cost(command, scheduling, idle * _beat(workers) / workers)


def _used(pid: int) -> float:
    """Processor time of a process so far [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _crowd(count: int, file: str, there: str) -> None:
    """Workers that share a process."""
    import pyarrow  # noqa: F401 (before the workers' threads all need it)
    from distributed import Worker

    from robokit.disk_cache import source_digest

    source_digest()
    while not Path(file).exists():
        await asyncio.sleep(0.05)
    workers = [Worker(scheduler_file=file, nthreads=1, dashboard=False) for _ in range(count)]
    await asyncio.gather(*workers)
    Path(there).touch()
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    asyncio.run(_crowd(int(sys.argv[1]), *sys.argv[2:]))
