"""Memory of batches and of many calls, each measured in a process of its own.

Run as ``python benchmarks/engine.py memory``.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

CALLS = 1_000_000

_CALLS = """
import resource, sys
import numpy as np
import robokit as rk

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
rng = np.random.default_rng(0)
q = np.stack([robot.random_configuration(rng) for _ in range(64)])
v = rng.standard_normal((64, robot.nv))
out, bad = np.empty(robot.nv), np.full(robot.nq, np.nan)

def run(calls):
    for k in range(calls // 4):
        q1, v1 = q[k & 63], v[k & 63]
        rk.rnea(robot, q1, v1, v1)
        rk.aba(robot, q1, v1, v1, out=out)
        rk.crba(robot, q1)
        rk.kinetic_energy(robot, q1, v1)
        if k % 1000 == 0:
            rk.rnea(robot, q, v, v)
            rk.forward_kinematics(robot, q[: k // 1000 % 64])
            try:
                rk.rnea(robot, bad, v1, v1)
            except rk.InvalidValue:
                pass

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

run(40_000)
before = most()
run(int(sys.argv[1]))
print(most() - before)
"""

_BATCH = """
import resource, sys
import numpy as np
import robokit as rk

rows, layout = int(sys.argv[1]), sys.argv[2]
robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q = np.tile(robot.neutral(), (rows, 1))
v = np.random.default_rng(0).standard_normal((rows, robot.nv))
if layout == "columns":
    q, v = np.asfortranarray(q), np.asfortranarray(v)
rk.rnea(robot, q[:100], v[:100], v[:100])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak starts anew
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
before = peak()
tau = rk.rnea(robot, q, v, v)
print(peak() - before, tau.nbytes / 1024)
"""


def _child(script: str, *arguments: object) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def memory(seconds: float, found: dict[str, Any]) -> None:
    """What batches take beside their results, and what a million calls leave behind [kB]."""
    if not sys.platform.startswith("linux"):
        print("  read from Linux' /proc: not measured")
        return
    for layout in ("rows", "columns"):
        for rows in (1 << 14, 1 << 16, 1 << 18):
            taken, result = _child(_BATCH, rows, layout)
            found[f"{layout}, {rows}"] = {"taken": taken, "result": result}
            print(f"  RNEA, {rows:6d} states in {layout:<8}{taken:10,.0f} kB  result {result:10,.0f} kB")
    calls = CALLS if seconds >= 0.5 else CALLS // 10
    (grown,) = _child(_CALLS, calls)
    found["calls"] = {"calls": calls, "kB": grown}
    print(f"  {calls:,d} calls {grown:8,.0f} kB more")
