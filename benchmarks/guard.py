"""Fail where robokit has become slower beside Pinocchio than the floors in guard.json allow.

The floors were measured with AVX-512, eight lanes. With four (AVX2) those of batches are half as high.

python benchmarks/guard.py            measure and compare
python benchmarks/guard.py --write    store half of the ratios measured now as the new floors
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from dynamics import BATCH, pinocchio_calls, robokit_calls
from measure import machine, minima, one_core, prepare_to_measure

import robokit as rk
from robokit.engine.backend import llvm

FLOORS = Path(__file__).with_name("guard.json")
ROBOT, BASE = "example-robot-data:g1", "floating"


def ratios(seconds: float) -> dict[str, float]:
    """Pinocchio's time over robokit's per state, single calls and batches; seconds of measuring per row."""
    robot = rk.load_urdf(rk.find_robot(ROBOT), base=BASE)
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(BATCH)])
    v, a = rng.standard_normal((2, BATCH, robot.nv))
    theirs = pinocchio_calls(robot, q[0], v[0], a[0])
    single, batch = robokit_calls(robot, q[0], v[0], a[0]), robokit_calls(robot, q, v, a)
    found = {}
    for what, call in theirs.items():
        t = minima({"pinocchio": call, "single": single[what], "batch": batch[what]}, seconds)
        found[f"{what} single"] = t["pinocchio"] / t["single"]
        found[f"{what} batch"] = t["pinocchio"] / t["batch"] * BATCH
    return found


def main() -> None:
    """Measure, print a table, exit with 1 if a ratio is below its floor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="store new floors")
    parser.add_argument("--seconds", type=float, default=1.5, help="measuring time a row")
    arguments = parser.parse_args()
    with one_core():
        found = ratios(arguments.seconds)
    print(machine())
    if arguments.write:
        FLOORS.write_text(json.dumps({k: round(x / 2, 2) for k, x in found.items()}, indent=1) + "\n")
    if not FLOORS.exists():
        sys.exit(f"{FLOORS.name} is not there; run with --write on an idle core")
    floors = json.loads(FLOORS.read_text())
    if "avx512f" not in llvm.processor_flags():
        floors = {what: x / 2 if what.endswith("batch") else x for what, x in floors.items()}
    missing = sorted(set(found) ^ set(floors))
    if missing:
        sys.exit(f"{FLOORS.name} and the measured rows differ in {', '.join(missing)}; run with --write")
    if any(ratio < floors[what] for what, ratio in found.items()):
        # Something else on the machine slows a whole row down now and then: what is slow is slow twice.
        with one_core():
            again = ratios(arguments.seconds)
        found = {what: max(ratio, again[what]) for what, ratio in found.items()}
    low = 0
    for what, ratio in found.items():
        low += ratio < floors[what]
        verdict = "ok" if ratio >= floors[what] else "TOO SLOW"
        print(f"  {what:<28}{ratio:8.2f}x   floor {floors[what]:7.2f}x   {verdict}")
    if low:
        sys.exit(f"{low} of {len(found)} ratios are below their floors")


if __name__ == "__main__":
    prepare_to_measure()
    main()
