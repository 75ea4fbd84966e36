"""What a batch costs that makes its own result, beside one that is given ``out=``: time and page faults.

python benchmarks/results_memory.py            G1, dense mass matrices and inverse dynamics
python benchmarks/results_memory.py humanoid
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

from models import G1, states

import robokit as rk
from robokit.engine.memory import aligned

ROWS = (256, 1024, 4096, 8192)
REPEATS = 30


def faults() -> int:
    """Page faults of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def measured(call: Callable[..., Any], *others: Callable[..., Any]) -> list[tuple[float, float]]:
    """(least seconds, page faults a call) of each, taken in turn."""
    calls = (call, *others)
    best, seen = [float("inf")] * len(calls), [0] * len(calls)
    for each in calls:
        each()
    for _ in range(REPEATS):
        for k, each in enumerate(calls):
            before, start = faults(), time.perf_counter()
            each()
            best[k] = min(best[k], time.perf_counter() - start)
            seen[k] += faults() - before
    return [(seconds, count / REPEATS) for seconds, count in zip(best, seen, strict=True)]


def main() -> None:
    """Print a line for each function and number of states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robot", nargs="?", default=G1)
    robot = rk.load_urdf(rk.find_robot(parser.parse_args().robot), base="floating")
    print(
        f"{'function':10} {'states':>6} {'MB':>6} {'own us':>8} {'out us':>8} {'ratio':>6} {'own faults':>11}"
    )
    for rows in ROWS:
        q, v, a = states(robot, rows)
        for function, given in ((rk.crba, (q,)), (rk.rnea, (q, v, a))):
            shape = function(robot, *given).shape
            out = aligned(function(robot, *given).size).reshape(shape)
            (own, count), (with_out, _) = measured(
                lambda f=function, x=given: f(robot, *x),
                lambda f=function, x=given, o=out: f(robot, *x, out=o),
            )
            print(
                f"{function.__name__:10} {rows:6} {out.nbytes / 1e6:6.1f} {own / rows * 1e6:8.3f} "
                f"{with_out / rows * 1e6:8.3f} {own / with_out:6.2f} {count:11.1f}"
            )


if __name__ == "__main__":
    main()
