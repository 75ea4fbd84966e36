"""Sweeps: rows a second beside a plain loop over rk.rollout, memory, bytes a row, what a chunk costs.

python benchmarks/sweeps.py                        falls of the humanoid, 0.5 s each
python benchmarks/sweeps.py --rows 1000000         the whole of it; --rows is of each sweep
python benchmarks/sweeps.py --only waiting         workers that wait instead of computing

The plain loop runs the same rows by ``rk.rollout`` with the same measures, one batch of a chunk's size after
the other, in one process with one thread, and keeps the last states. Waiting workers are Dask's, one thread
each, all in one process: each "computes" a chunk by sleeping and writes a small file. What the command and
the scheduler take for a chunk does not depend on what is in it.
"""

from __future__ import annotations

import argparse
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
from measure import machine

import robokit as rk
from robokit.sweeps.recipes.chunk_rows import by_robot, prepared, run
from robokit.sweeps.recipes.make_recipe import make_recipe
from robokit.sweeps.running.run_sweep import default_chunk, run_sweep

WORKERS = (8, 32, 128)
MACHINES = 1000


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

    def compute(self, first: int, last: int) -> object:
        """The rows' numbers, after a while."""
        import pyarrow as pa

        time.sleep(self.seconds)
        return pa.table({"row": np.arange(first, last)})


def falls(rows: int) -> None:
    """Rows a second, scaling, memory, bytes a row."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    recipe = make_recipe(
        robot,
        starts={"tilt": rk.Uniform(0.0, 0.35)},
        parameters={"mass": rk.Uniform(0.8, 1.2), "friction": rk.Uniform(0.3, 1.0)},
        duration=0.5,
        dt=1e-3,
        count=rows,
    )
    chunk = default_chunk(rows, 500)
    print(f"humanoid, {rows:,} falls of 0.5 s in steps of 1 ms, chunks of {chunk}")
    recipe.compute(0, chunk)  # compiled now, and kept on the disk
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            out = Path(folder) / str(workers)
            found = run_sweep(recipe, out, chunk=chunk, workers=workers)
            name = f"sweep, {workers} process{'es' if workers > 1 else ''}"
            rates[name] = rows / found.seconds
            print(
                f"  {name:<22}{rates[name]:10,.0f} rows/s  {found.memory / 2**20:6,.0f} MiB a worker at most"
            )
        size = sum(path.stat().st_size for path in (out / "chunks").iterdir())
        print(f"  {size / rows:.0f} bytes a row on the disk")
    started = time.perf_counter()
    for first in range(0, rows, chunk):
        last = min(first + chunk, rows)
        values = recipe.rows(first, last)
        for name, places in by_robot(recipe, values, last - first).items():
            runs = prepared(recipe, name, places + first, {key: x[places] for key, x in values.items()})
            run(recipe, name, runs, record_every=500, measures=list(recipe.measures))
    loop = rows / (time.perf_counter() - started)
    print(f"  rk.rollout in a loop  {loop:10,.0f} rows/s, in one process")
    one, two = rates.values()
    print(f"  one process is {one / loop:.2f} of the loop, two processes are {two / one:.2f} of one")


def waiting(seconds: float, waves: int) -> None:
    """What a chunk takes with 8, 32, 128 workers that wait, and how many workers that would feed."""
    print(f"waiting workers, {seconds:g} s a chunk; processor time of a chunk besides its rows:")
    for workers in WORKERS:
        with tempfile.TemporaryDirectory() as folder:
            _wait(workers, seconds, waves, Path(folder))


def _wait(workers: int, seconds: float, waves: int, folder: Path) -> None:
    file = str(folder / "scheduler.json")
    quiet = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"}
    dask = [sys.executable, "-m", "dask", "scheduler", "--scheduler-file", file, "--no-dashboard"]
    scheduler = subprocess.Popen([*dask, "--host", "127.0.0.1"], env=quiet, stderr=subprocess.DEVNULL)
    there = folder / "there"
    crowd = subprocess.Popen([sys.executable, __file__, "--crowd", str(workers), file, str(there)], env=quiet)
    try:
        while not there.exists():
            time.sleep(0.05)
        chunks = workers * waves
        before, began = os.times(), _used(scheduler.pid)
        found = run_sweep(Waiting(chunks, seconds), folder / "out", chunk=1, scheduler=file)
        now, ended = os.times(), _used(scheduler.pid)
    finally:
        for process in (crowd, scheduler):
            process.kill()
            process.wait()
    command = (now.user + now.system - before.user - before.system) / chunks
    scheduling = (ended - began) / chunks
    print(
        f"  {workers:4d} workers: {1e3 * command:5.2f} ms of the command, {1e3 * scheduling:5.2f} ms of the "
        f"scheduler; {chunks} chunks in {found.seconds:.1f} s, {waves * seconds:.0f} s of it waited"
    )
    if workers == WORKERS[-1]:
        least = MACHINES * max(command, scheduling)
        print(f"  so {MACHINES:,} workers can be fed with chunks of {least:.1f} s or more")


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


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=16384, help="default: %(default)s")
    parser.add_argument("--only", choices=("falls", "waiting"))
    parser.add_argument("--seconds", type=float, default=2.0, help="that a waiting worker takes for a chunk")
    parser.add_argument("--waves", type=int, default=8, help="chunks of each waiting worker")
    parser.add_argument("--crowd", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.crowd:
        asyncio.run(_crowd(int(arguments.crowd[0]), *arguments.crowd[1:]))
        return
    print(machine())
    if arguments.only != "waiting":
        falls(arguments.rows)
    if arguments.only != "falls":
        waiting(arguments.seconds, arguments.waves)


if __name__ == "__main__":
    main()
