"""Checks every URDF of example-robot-data: counts per code, time per file.

    python tests/parity/check_examples.py              prints the tables
    python tests/parity/check_examples.py --freeze     writes check_examples.json, what tests expect

Run it from the repository's root. Look at every difference by hand before freezing: a warning on a file that
a careful reader would accept is a defect of robokit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from importlib import metadata
from pathlib import Path

from robokit.robot_names import EXAMPLES, example_robots
from robokit.urdf import CODES, check_urdf

FROZEN = Path(__file__).with_suffix(".json")


def counts() -> dict[str, dict[str, int]]:
    """File -> code -> number of findings, fixed and floating base, shapes but no meshes judged."""
    return {
        place(path): dict(sorted(Counter(d.code for d in _found(path)).items()))
        for path in sorted(set(example_robots().values()), key=place)
    }


def place(path: Path) -> str:
    """A file's path below the package's folder of robots: two folders have a file of one name."""
    return path.as_posix().rpartition("/example-robot-data/robots/")[2]


def _found(path: Path):
    return check_urdf(path, base="either", plausible=True)[1]


def times(repeats: int = 5) -> dict[str, float]:
    """File -> best of several times [s] to read and judge it."""
    best = {}
    for path in set(example_robots().values()):
        spent = []
        for _ in range(repeats):
            start = time.perf_counter()
            _found(path)
            spent.append(time.perf_counter() - start)
        best[place(path)] = min(spent)
    return best


def main() -> None:
    """Print the tables, or freeze the counts."""
    parser = argparse.ArgumentParser(description="robokit check over example-robot-data")
    parser.add_argument("--freeze", action="store_true", help=f"write {FROZEN.name}")
    arguments = parser.parse_args()
    found = counts()
    if arguments.freeze:
        table = {
            "made_by": "python tests/parity/check_examples.py --freeze",
            "of": f"{EXAMPLES} {metadata.version(EXAMPLES)}",
            "options": "check_urdf(path, base='either', plausible=True)",
            "files": found,
        }
        FROZEN.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{'findings':>8}  {'files':>5}  severity  code")
    for code, row in CODES.items():
        several = [one[code] for one in found.values() if code in one]
        if several:
            print(f"{sum(several):8}  {len(several):5}  {row.severity:8}  {code}")
    clean = sum(not one for one in found.values())
    print(f"\n{len(found)} files, {clean} with nothing to report")
    spent = times()
    slowest = max(spent, key=spent.__getitem__)
    median = statistics.median(spent.values())
    print(f"time per file: median {1e3 * median:.1f} ms, worst {1e3 * spent[slowest]:.1f} ms ({slowest})")


if __name__ == "__main__":
    main()
