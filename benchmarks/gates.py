"""The gates of a new integrator, as one table: before ("contact"), after, and MuJoCo on the same shapes.

python benchmarks/gates.py                        before and MuJoCo (and "newton", where it is there)
python benchmarks/gates.py --integrator newton --json gates.json
python benchmarks/gates.py --row batch --robot G1
python benchmarks/gates.py --json gates.json      goes on where an earlier run stopped

Times are processor seconds, so who else uses the machine matters little; programs take turns, and the best of
the turns counts. Each row is written to the JSON file when it is measured; Ctrl-C shows what there is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer
from fidelity_cases.peer import there as mujoco_is_there
from measure import commit, machine

import robokit as rk
from robokit.contact.step_in_lanes import lanes_kernel
from robokit.sim.step.integrators import METHODS

ROBOTS = {
    "humanoid": "humanoid",
    "G1": s.G1,
    "Talos": "example-robot-data:talos",
    "iCub": "example-robot-data:icub",
}
FAST = "humanoid", "G1", "Talos"
"""Robots whose speed is compared."""

MOST = {"humanoid": 1.0, "G1": 0.6, "Talos": 0.5}
"""Time of a single step with self-collision, of that of "contact"."""

DT, SECONDS, ROWS = 1e-3, 2.0, 64

FIRST = """
import json, resource, sys
import robokit as rk
robot = rk.load_urdf(rk.find_robot(sys.argv[1]), base="floating")
options = {"integrator": sys.argv[2]} if sys.argv[2] else {}
before = resource.getrusage(resource.RUSAGE_SELF)
q = rk.standing_configuration(robot, height=0.02)
rk.simulate(robot, q, duration=0.01, dt=1e-3, ground=True, self_collision=True, **options)
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
"""


def load(name: str) -> rk.Robot:
    """A robot with the damping that falls assume written down, as MuJoCo has it."""
    return s.same_joints(s.load(ROBOTS[name]))


def starts(robot: rk.Robot, count: int) -> np.ndarray:
    """Poses 2 cm above the ground, leaning by 4 degrees."""
    return np.array([rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=k)
                     for k in range(count)])  # fmt: skip


def cost(run: Callable[[], Any]) -> float:
    """Time that a run says it took, or else its processor time [s]."""
    started = time.process_time()
    said = run()
    return said if isinstance(said, float) else time.process_time() - started


def best(runs: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Least processor time of each, in turns."""
    for run in runs.values():
        run()
    out = dict.fromkeys(runs, math.inf)
    for _ in range(turns):
        for name, run in runs.items():
            out[name] = min(out[name], cost(run))
    return out


def single(name: str, collide: bool, integrators: list[str], turns: int) -> dict[str, float]:
    """Microseconds a step of one state, in falls of 2 s; what a call costs besides has a row of its own."""
    robot, steps = load(name), round(SECONDS / DT)
    q = starts(robot, 2)
    runs: dict[str, Callable[[], Any]] = {}
    for integrator in integrators:

        def ours(integrator: str = integrator) -> float:
            took = 0.0
            for x in q:
                t = s.fall(robot, x, duration=SECONDS, dt=DT, ground=s.ground(), self_collision=collide,
                       record_every=steps, integrator=integrator)  # fmt: skip
                took += t.summary["step_seconds"]
            return took

        runs[integrator] = ours
    if mujoco_is_there():
        peer = Peer(robot, DT, pairs=rk.collision_pairs(robot) if collide else None)

        def theirs() -> None:
            for x in q:
                peer.start(x)
                peer.step(steps)

        runs["mujoco"] = theirs
    return {key: 1e6 * x / (len(q) * steps) for key, x in best(runs, turns).items()}


def batch(name: str, collide: bool, dtype: str, integrators: list[str], turns: int) -> dict[str, float]:
    """Rows and steps a second of processor time, one thread: 64 falls of half a second."""
    robot, steps = load(name), round(0.25 * SECONDS / DT)
    q = starts(robot, ROWS)
    lanes_kernel(not collide, False).driver("batch", "float64")  # else it is compiled after 16 of these calls
    runs: dict[str, Callable[[], Any]] = {}
    for integrator in integrators:

        def ours(integrator: str = integrator) -> None:
            s.many(robot, q, None, steps=steps, dt=DT, ground=s.ground(), self_collision=collide, threads=1,
                   record_every=steps, integrator=integrator, dtype=dtype)  # fmt: skip

        runs[integrator] = ours
    if mujoco_is_there():
        runs["mujoco"] = _rollout_there(robot, q, steps, collide)
    return {key: ROWS * steps / x for key, x in best(runs, turns).items()}


def _rollout_there(robot: rk.Robot, q: np.ndarray, steps: int, collide: bool) -> Callable[[], None]:
    import mujoco
    from mujoco.rollout import Rollout

    peer = Peer(robot, DT, pairs=rk.collision_pairs(robot) if collide else None)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.empty((len(q), mujoco.mj_stateSize(peer.model, full)))
    for x, state in zip(q, states, strict=True):
        peer.start(x)
        mujoco.mj_getState(peer.model, peer.data, state, full)
    pool, data = Rollout(nthread=1), [mujoco.MjData(peer.model)]
    return lambda: pool.rollout(peer.model, data, states, nstep=steps)


def first(name: str, integrators: list[str], turns: int) -> dict[str, float]:
    """Processor seconds of the first simulate of a robot that was never seen, another one having been.

    Each in a process and a cache of its own, in which the humanoid (for the humanoid: the quadruped) has
    fallen before.
    """
    out = {}
    for integrator in integrators:
        with tempfile.TemporaryDirectory() as cache:
            env = os.environ | {"ROBOKIT_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
            before = "quadruped" if name == "humanoid" else "humanoid"
            for robot in (before, ROBOTS[name]):
                out[integrator] = _in_a_process(robot, integrator, env)
    return out


def _in_a_process(robot: str, integrator: str, env: dict[str, str]) -> float:
    """What FIRST prints."""
    call = [sys.executable, "-c", FIRST, robot, integrator]
    said = subprocess.run(call, env=env, check=False, capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(said.stderr.strip().splitlines()[-1])
    return float(said.stdout)


def on_a_machine(integrators: list[str]) -> dict[str, float]:
    """Processor seconds of the very first simulate on a machine: nothing is compiled."""
    out = {}
    for integrator in integrators:
        with tempfile.TemporaryDirectory() as cache:
            env = os.environ | {"ROBOKIT_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
            out[integrator] = _in_a_process("humanoid", integrator, env)
    return out


def call_cost(integrators: list[str]) -> dict[str, float]:
    """Milliseconds of a simulate of one step of G1, compiled."""
    robot = load("G1")
    q = starts(robot, 1)[0]
    runs = {
        integrator: lambda integrator=integrator: s.fall(
            robot, q, duration=DT, dt=DT, ground=s.ground(), self_collision=True, integrator=integrator
        )
        for integrator in integrators
    }
    return {key: 1e3 * x for key, x in best(runs, 10).items()}


def spread(name: str, integrators: list[str]) -> dict[str, dict[str, float]]:
    """Mean and percentiles of the time of a step [µs], and of its iterations where the record has them.

    A step's time is that of a fall of 10 ms, over ten, all along falls of 2 s: shorter is not to be timed.
    """
    robot, out = load(name), {}
    for integrator in integrators:
        options = {"dt": DT, "ground": s.ground(), "self_collision": True, "integrator": integrator}
        t = s.fall(robot, starts(robot, 1)[0], duration=SECONDS, record_every=10, **options)
        figures: dict[str, float] = {}
        iterations = getattr(t, "iterations", None)
        if iterations is None:
            iterations = t.summary.get("iterations")
        if iterations is not None:
            for key, x in (iterations if isinstance(iterations, dict) else _percentiles(iterations)).items():
                figures[f"iterations, {key}"] = float(x)
        times = []
        for q, v in list(zip(t.q, t.v, strict=True))[:-1:4]:
            piece = [s.fall(robot, q, v, duration=0.05, record_every=50, **options) for _ in range(2)]
            times.append(1e6 * min(x.summary["step_seconds"] for x in piece) / 50)
        out[integrator] = figures | {f"µs, {key}": x for key, x in _percentiles(times).items()}
    return out


def _percentiles(x: Any) -> dict[str, float]:
    x = np.asarray(x, float)
    return {"mean": float(x.mean()), "95 %": float(np.percentile(x, 95)), "largest": float(x.max())}


def rows(integrators: list[str], turns: int) -> dict[str, tuple[str, str, Callable[[], dict[str, Any]]]]:
    """All rows: name -> (unit, what is wanted of the new one, in terms of "contact"; how it is measured)."""
    out: dict[str, tuple[str, str, Callable[[], dict[str, Any]]]] = {}
    for name in FAST:
        for collide in (True, False):
            with_it = "self-collision" if collide else "ground alone"
            goal = f"<= {MOST[name]:g} x" if collide else ""
            out[f"single, {name}, {with_it}"] = (
                "µs/step", goal, lambda n=name, c=collide: single(n, c, integrators, turns))  # fmt: skip
            for dtype in ("float64", "float32"):
                goal = ">= 0.8 x" if collide else ">= 0.5 x"
                out[f"batch, {name}, {with_it}, {dtype}"] = (
                    "rows x steps/s", goal,
                    lambda n=name, c=collide, d=dtype: batch(n, c, d, integrators, turns))  # fmt: skip
    for name in (*FAST, "iCub"):
        out[f"first simulate of {name}"] = ("s", "<= 2 s", lambda n=name: first(n, integrators, turns))
    out["first simulate on a machine"] = ("s", "", lambda: on_a_machine(integrators))
    out["a call of one step, G1"] = ("ms", "<= 2 ms", lambda: call_cost(integrators))
    for name in FAST:
        out[f"spread, {name}"] = ("", "", lambda n=name: spread(n, integrators))
    return out


def met(goal: str, before: float | None, after: float | None) -> str:
    """Whether the new integrator's figure is as wanted."""
    if not goal or after is None:
        return ""
    sign, number, unit = goal.split()
    wanted = float(number) * (before if before is not None and unit == "x" else 1.0)
    if unit == "x" and before is None:
        return ""
    return "yes" if (after <= wanted if sign == "<=" else after >= wanted) else "NO"


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"\n{'':<46}{'before':>12}{'after':>12}{'MuJoCo':>12}  {'unit':<16}{'wanted':<12}met")
    for name, row in found["rows"].items():
        if "failed" in row:
            print(f"{name:<46}failed: {row['failed']}")
        elif any(isinstance(x, dict) for x in row["figures"].values()):
            for key in sorted({key for x in row["figures"].values() for key in x}):
                numbers = [
                    row["figures"].get(who, {}).get(key) for who in ("contact", found["new"], "mujoco")
                ]
                _line(f"{name}: {key}", numbers, row)
        else:
            _line(name, [row["figures"].get(who) for who in ("contact", found["new"], "mujoco")], row)


def _line(name: str, numbers: list[float | None], row: dict[str, Any]) -> None:
    text = "".join(f"{'' if x is None else f'{x:,.4g}' if x < 1e4 else f'{x:,.0f}':>12}" for x in numbers)
    print(f"{name:<46}{text}  {row['unit']:<16}{row['wanted']:<12}{met(row['wanted'], *numbers[:2])}")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--integrator", default="newton", help='the new one; "contact" is measured beside it')
    parser.add_argument("--row", nargs="+", default=[""], help="only rows whose name has one of these words")
    parser.add_argument("--robot", help="only rows of this robot")
    parser.add_argument("--turns", type=int, default=3, help="how often each is timed")
    parser.add_argument("--json", metavar="FILE", help="write and resume")
    parser.add_argument("--alone", action="store_true", help='only the new one, without "contact"')
    arguments = parser.parse_args()
    known = [x for x in ("contact", arguments.integrator) if x in METHODS]
    integrators = known[-1:] if arguments.alone else known
    place = Path(arguments.json) if arguments.json else None
    found: dict[str, Any] = {
        "machine": machine(),
        "commit": commit(),
        "new": arguments.integrator,
        "rows": {},
    }
    if place and place.exists():
        before = json.loads(place.read_text(encoding="utf-8"))
        same = all(before[key] == found[key] for key in ("machine", "commit", "new"))
        found = before if same else found
    print(f"{found['machine']}; commit {found['commit']}; " + ", ".join(integrators))
    if arguments.integrator not in METHODS:
        print(f"{arguments.integrator!r} is not there yet: before and MuJoCo only")
    with contextlib.suppress(KeyboardInterrupt):
        for name, (unit, wanted, run) in rows(integrators, arguments.turns).items():
            wanted_here = any(word in name for word in arguments.row) and (arguments.robot or "") in name
            if name in found["rows"] or not wanted_here:
                continue
            row: dict[str, Any] = {"unit": unit, "wanted": wanted, "figures": {}}
            try:
                row["figures"] = run()
            except Exception as problem:
                row["failed"] = f"{type(problem).__name__}: {problem}"
            found["rows"][name] = row
            if "failed" not in row:
                print(f"  {name}: {row['figures']}", file=sys.stderr, flush=True)
            if place:
                place.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    show(found)
    if place:
        print(f"written to {place}")


if __name__ == "__main__":
    main()
