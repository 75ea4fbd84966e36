"""What `robokit fall` costs from its start to its page, on a machine that has compiled nothing, and after.

python benchmarks/first_answer.py
python benchmarks/first_answer.py --robot humanoid chain --times 5

Times are processor seconds of the whole command. The first one has an empty cache; of the others the least
counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from gates import ROBOTS

FALLS = {**ROBOTS, "quadruped": "quadruped", "chain": "chain"}


def cost(robot: str, folder: Path) -> tuple[float, float]:
    """Processor time [s] of one command, and the size of its page [MB]."""
    page = folder / "fall.html"
    command = [Path(sys.executable).with_name("robokit"), "fall", robot, "--no-open", "-o", str(page)]
    # Whatever the platform calls its folder for caches, it is in there.
    environment = os.environ | {"ROBOKIT_CACHE_DIR": str(folder / "cache"), "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, page.stat().st_size / 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--robot", nargs="+", choices=FALLS, default=list(FALLS))
    parser.add_argument("--times", type=int, default=3, help="runs after the first one")
    arguments = parser.parse_args()
    print(f"{'':12}{'first [s]':>12}{'after [s]':>12}{'page [MB]':>12}")
    for name in arguments.robot:
        with tempfile.TemporaryDirectory() as folder:
            first, size = cost(FALLS[name], Path(folder))
            after = min(cost(FALLS[name], Path(folder))[0] for _ in range(arguments.times))
        print(f"{name:12}{first:12.2f}{after:12.2f}{size:12.2f}", flush=True)


if __name__ == "__main__":
    main()
