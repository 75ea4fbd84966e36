"""What steps, batches, first runs and calls cost: robokit, MuJoCo on the same shapes, and what was before.

python benchmarks/gates.py
python benchmarks/gates.py --row batch --robot G1
python benchmarks/gates.py --json gates.json      goes on where an earlier run stopped
python benchmarks/gates.py --manual               writes what the manual shows, row by row

Times are processor seconds, so who else uses the machine matters little; programs take turns, and the best of
the turns counts. Each row is written to the JSON file when it is measured; Ctrl-C shows what there is.
Before was a step that was compiled for each robot; its figures are kept in gates.json, with commit and date.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
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
from measure import ROOT, commit, machine, prepare_to_measure
from targets import met

import robokit as rk
from robokit.contact.step import step_kernel
from robokit.contact.step_in_lanes import LANES, lanes_kernel

ROBOTS = {
    "humanoid": "humanoid",
    "G1": s.G1,
    "Talos": "example-robot-data:talos",
    "iCub": "example-robot-data:icub",
}
FAST = "humanoid", "G1", "Talos"
"""Robots whose speed is compared."""

MOST = {"humanoid": 1.0, "G1": 0.6, "Talos": 0.5}
"""Wanted time of a single step with self-collision, of that before."""

DT, SECONDS, ROWS = 1e-3, 2.0, 64

PLACE = ROOT / "benchmarks" / "gates.json"

FIRST = """
import json, resource, sys
import robokit as rk
robot = rk.load_urdf(rk.find_robot(sys.argv[1]), base="floating")
before = resource.getrusage(resource.RUSAGE_SELF)
q = rk.standing_configuration(robot, height=0.02)
rk.simulate(robot, q, duration=0.01, dt=1e-3, ground=True, self_collision=True)
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


def single(name: str, collide: bool, turns: int) -> dict[str, float]:
    """Microseconds a step of one state, in falls of 2 s; what a call costs besides has a row of its own."""
    step_kernel(False).well = True  # else it is compiled well after some of these falls
    robot, steps = load(name), round(SECONDS / DT)
    q = starts(robot, 2)

    def falls(count: int) -> None:
        options = {"ground": s.ground(), "self_collision": collide, "record_every": count}
        for x in q:
            s.fall(robot, x, duration=count * DT, dt=DT, **options)

    def ours() -> float:
        """Processor time of the falls, less that of calls of one step."""
        return cost(lambda: falls(steps)) - cost(lambda: falls(1))

    runs: dict[str, Callable[[], Any]] = {"robokit": ours}
    if mujoco_is_there():
        peer = Peer(robot, DT, pairs=rk.collision_pairs(robot) if collide else None)

        def theirs() -> None:
            for x in q:
                peer.start(x)
                peer.step(steps)

        runs["mujoco"] = theirs
    return {key: 1e6 * x / (len(q) * steps) for key, x in best(runs, turns).items()}


def batch(name: str, collide: bool, dtype: str, turns: int) -> dict[str, float]:
    """Rows and steps a second of processor time, one thread: 64 falls of half a second."""
    robot, steps = load(name), round(0.25 * SECONDS / DT)
    q = starts(robot, ROWS)
    options = {"ground": s.ground(), "self_collision": collide, "threads": 1, "dtype": dtype}
    kernel = lanes_kernel("friction" if collide else "planes", False, LANES[dtype])
    kernel.driver("batch", dtype)  # else it is compiled after 16 of these calls

    def ours() -> None:
        s.many(robot, q, None, steps=steps, dt=DT, record_every=steps, **options)

    runs: dict[str, Callable[[], Any]] = {"robokit": ours}
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


def first(name: str) -> dict[str, float]:
    """Processor seconds of the first simulate of a robot that was never seen, another one having been.

    Each in a process and a cache of its own, in which the humanoid (for the humanoid: the quadruped) has
    fallen before.
    """
    with tempfile.TemporaryDirectory() as cache:
        _in_a_process("quadruped" if name == "humanoid" else "humanoid", cache)
        return {"robokit": _in_a_process(ROBOTS[name], cache)}


def _in_a_process(robot: str, cache: str) -> float:
    """What FIRST prints."""
    env = os.environ | {"ROBOKIT_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
    call = [sys.executable, "-c", FIRST, robot]
    said = subprocess.run(call, env=env, check=False, capture_output=True, text=True)
    if said.returncode:
        raise RuntimeError(said.stderr.strip().splitlines()[-1])
    return float(said.stdout)


def on_a_machine() -> dict[str, float]:
    """Processor seconds of the very first simulate on a machine: nothing is compiled."""
    with tempfile.TemporaryDirectory() as cache:
        return {"robokit": _in_a_process("humanoid", cache)}


def call_cost() -> dict[str, float]:
    """Milliseconds of a simulate of one step of G1, compiled."""
    robot = load("G1")
    q = starts(robot, 1)[0]
    options = {"dt": DT, "ground": s.ground(), "self_collision": True}
    runs = {"robokit": lambda: s.fall(robot, q, duration=DT, **options)}
    return {key: 1e3 * x for key, x in best(runs, 10).items()}


def spread(name: str) -> dict[str, dict[str, float]]:
    """Mean and percentiles of the iterations of the steps of a fall of 2 s, and of their time [µs].

    Time is that of falls of 50 ms from states all along it, over 50: shorter is not to be timed.
    """
    robot, steps = load(name), round(SECONDS / DT)
    options: dict[str, Any] = {"dt": DT, "ground": s.ground(), "self_collision": True}
    q0 = starts(robot, 1)[0]
    whole = rk.Simulation(robot, q0, **options)
    sums = [0.0]
    for k in range(1, steps + 1):
        whole.step()
        sums.append(k * whole.trajectory().summary["contact_iterations_mean"])
    t = s.fall(robot, q0, duration=SECONDS, record_every=10, **options)
    states = list(zip(t.q, t.v, strict=True))[:-1:4]

    def timed(q: np.ndarray, v: np.ndarray) -> float:
        with s.in_processor_time():
            piece = s.fall(robot, q, v, duration=50 * DT, record_every=50, **options)
        return piece.summary["step_seconds"]

    out = {"robokit": _distribution(np.diff(sums), states, timed)}
    if mujoco_is_there():
        peer, iterations = Peer(robot, DT, pairs=rk.collision_pairs(robot)), []
        peer.start(q0)
        for _ in range(steps):
            peer.step()
            iterations.append(float(peer.data.solver_niter[0]))

        def timed_there(q: np.ndarray, v: np.ndarray) -> float:
            peer.start(q, v)
            return cost(lambda: peer.step(50))

        out["mujoco"] = _distribution(iterations, states, timed_there)
    return out


def _distribution(iterations: Any, states: Any, timed: Callable[..., float]) -> dict[str, float]:
    """Figures of both, the time of each piece the least of three."""
    times = [1e6 * min(timed(q, v) for _ in range(3)) / 50 for q, v in states]
    kinds = {"iterations": iterations, "µs": times}
    return {f"{kind}, {key}": x for kind, of in kinds.items() for key, x in _percentiles(of).items()}


def _percentiles(x: Any) -> dict[str, float]:
    x = np.asarray(x, float)
    return {"mean": float(x.mean()), "median": float(np.median(x)), "95 %": float(np.percentile(x, 95)),
            "99 %": float(np.percentile(x, 99)), "largest": float(x.max())}  # fmt: skip


def rows(turns: int) -> dict[str, tuple[str, str, Callable[[], dict[str, Any]]]]:
    """All rows: name -> (unit, what is wanted, x for times what was before; how it is measured)."""
    out: dict[str, tuple[str, str, Callable[[], dict[str, Any]]]] = {}
    for name in FAST:
        for collide in (True, False):
            with_it = "self-collision" if collide else "ground alone"
            goal = f"<= {MOST[name]:g} x" if collide else ""
            out[f"single, {name}, {with_it}"] = (
                "µs/step", goal, lambda n=name, c=collide: single(n, c, turns))  # fmt: skip
            for dtype in ("float64", "float32"):
                goal = ">= 0.8 x" if collide else ">= 0.5 x"
                out[f"batch, {name}, {with_it}, {dtype}"] = (
                    "rows x steps/s", goal,
                    lambda n=name, c=collide, d=dtype: batch(n, c, d, turns))  # fmt: skip
    for name in (*FAST, "iCub"):
        out[f"first simulate of {name}"] = ("s", "<= 2 s", lambda n=name: first(n))
    out["first simulate on a machine"] = ("s", "", on_a_machine)
    out["a call of one step, G1"] = ("ms", "<= 2 ms", call_cost)
    for name in FAST:
        out[f"spread, {name}"] = ("", "", lambda n=name: spread(n))
    return out


def table(found: dict[str, Any]) -> list[tuple[str, list[float | None], dict[str, Any]]]:
    """Lines: what it is, the figures before, of robokit and of MuJoCo, and the row."""
    out: list[tuple[str, list[float | None], dict[str, Any]]] = []
    for name, row in found["rows"].items():
        if "failed" in row:
            continue
        figures = {"before": found["before"]["rows"].get(name), **row["figures"]}
        columns = [figures.get(who) for who in ("before", "robokit", "mujoco")]
        keys = sorted({key for x in columns if isinstance(x, dict) for key in x})
        for key in keys:
            out.append(
                (f"{name}: {key}", [x.get(key) if isinstance(x, dict) else None for x in columns], row)
            )
        if not keys:
            out.append((name, columns, row))
    return out


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"\n{'':<46}{'before':>12}{'robokit':>12}{'MuJoCo':>12}  {'unit':<16}{'wanted':<12}met")
    for name, numbers, row in table(found):
        text = "".join(f"{'' if x is None else f'{x:,.4g}' if x < 1e4 else f'{x:,.0f}':>12}" for x in numbers)
        mark = {True: "yes", False: "NO", None: ""}[met(row["wanted"], *numbers[:2])]
        print(f"{name:<46}{text}  {row['unit']:<16}{row['wanted']:<12}{mark}")
    for name, row in found["rows"].items():
        if "failed" in row:
            print(f"{name:<46}failed: {row['failed']}")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", nargs="+", default=[""], help="only rows whose name has one of these words")
    parser.add_argument("--robot", help="only rows of this robot")
    parser.add_argument("--turns", type=int, default=3, help="how often each is timed")
    parser.add_argument("--json", metavar="FILE", help="write and resume")
    parser.add_argument("--manual", action="store_true", help="measure anew and write what the manual shows")
    arguments = parser.parse_args()
    stored = json.loads(PLACE.read_text(encoding="utf-8"))
    found: dict[str, Any] = stored | {"machine": machine(), "commit": commit(), "rows": {}}
    found["date"] = datetime.date.today().isoformat()
    place = PLACE if arguments.manual else Path(arguments.json) if arguments.json else None
    if place and place.exists():
        earlier = json.loads(place.read_text(encoding="utf-8"))
        if arguments.manual or all(earlier[key] == found[key] for key in ("machine", "commit")):
            found["rows"] = earlier["rows"]
    print(f"{found['machine']}; commit {found['commit']}")
    with contextlib.suppress(KeyboardInterrupt):
        for name, (unit, wanted, run) in rows(arguments.turns).items():
            wanted_here = any(word in name for word in arguments.row) and (arguments.robot or "") in name
            if (name in found["rows"] and not arguments.manual) or not wanted_here:
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
    prepare_to_measure()
    main()
