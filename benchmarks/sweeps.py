"""Sweeps: rows a second beside a plain loop over rk.rollout, memory, bytes a row, what a chunk costs.

python benchmarks/sweeps.py                        falls of the humanoid, 0.5 s each
python benchmarks/sweeps.py --rows 1000000         the whole of it; --rows is of each sweep
python benchmarks/sweeps.py --only waiting         workers that wait instead of computing

The plain loop runs the same rows by ``rk.rollout`` with the same measures, one batch of a chunk's size after
the other, in one process with one thread, and keeps the last states. For the waiting workers see
waiting_workers.py.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from measure import machine, prepare_to_measure
from waiting_workers import waiting

import robokit as rk
from robokit.sweeps.recipe import make_recipe, prepare_rows, rows_by_robot, run_rows
from robokit.sweeps.workers import default_chunk, run_sweep


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
        for name, places in rows_by_robot(recipe, values, last - first).items():
            runs = prepare_rows(recipe, name, places + first, {key: x[places] for key, x in values.items()})
            run_rows(recipe, name, runs, record_every=500, measures=list(recipe.measures))
    loop = rows / (time.perf_counter() - started)
    print(f"  rk.rollout in a loop  {loop:10,.0f} rows/s, in one process")
    one, two = rates.values()
    print(f"  one process is {one / loop:.2f} of the loop, two processes are {two / one:.2f} of one")


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=16384, help="default: %(default)s")
    parser.add_argument("--only", choices=("falls", "waiting"))
    parser.add_argument("--seconds", type=float, default=2.0, help="that a waiting worker takes for a chunk")
    parser.add_argument("--waves", type=int, default=8, help="chunks of each waiting worker")
    arguments = parser.parse_args()
    print(machine())
    if arguments.only != "waiting":
        falls(arguments.rows)
    if arguments.only != "falls":
        waiting(arguments.seconds, arguments.waves)


if __name__ == "__main__":
    prepare_to_measure()
    main()
