"""A card beside the processor, MuJoCo Warp and MJX: agreement, states and steps a second, the first call.

python benchmarks/gpu.py                      all, but falls and peers that take longer than four minutes
python benchmarks/gpu.py --part functions falls --robot G1
python benchmarks/gpu.py --manual             writes benchmarks/gpu.json, which the manual shows

It needs a card of NVIDIA and ``pip install 'robokit[cuda,torch]'``; mujoco-warp and mujoco-mjx (with JAX for
cards) are measured where they are installed, with the same robots, shapes and starts. Functions are timed by
the card's clock in CUDA graphs, the best of repeats; falls by the wall clock, less a call of one step: 100
steps of 1 ms, or as many as 3 s allow, from states of falls at ten moments. Figures are millions a second.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import importlib.util
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fidelity_cases import scenes
from measure import ROOT, commit, machine
from models import states

import robokit as rk
from robokit.errors import DeviceError

PLACE = ROOT / "benchmarks" / "gpu.json"
ROBOTS = {
    "G1": scenes.G1,
    "humanoid": "humanoid",
    "Talos": "example-robot-data:talos",
    "quadruped": "quadruped",
}
WHOLE = "humanoid", "G1"
"""Robots that fall in batches of all sizes, and beside peers; the others fall in two."""

DOUBLE = "G1"
"""The robot that falls in double precision, too."""

SIZES = tuple(2**k for k in range(10, 18))
FEW = 2**13, 2**17
DTYPES = "float32", "float64"
DT, STEPS, DISTINCT = 1e-3, 100, 1024
WORLDS = 2**13, 2**15
"""Sizes of MuJoCo Warp's batches; MJX's is the first."""

LONG = 3.0
"""Falls are cut to so many seconds, but never to fewer than 20 steps."""

FALLS_END, PEERS_END = 165.0, 228.0
"""When no further fall is begun, and when peers are ended [s]."""

CALLS: dict[str, Callable[..., Any]] = {
    "RNEA": lambda robot, q, v, a: rk.rnea(robot, q, v, a),
    "CRBA": lambda robot, q, v, a: rk.crba(robot, q),
    "ABA": lambda robot, q, v, a: rk.aba(robot, q, v, a),
    "FK": lambda robot, q, v, a: rk.forward_kinematics(robot, q),
    "∂RNEA": lambda robot, q, v, a: rk.rnea_derivatives(robot, q, v, a),
    "∂ABA": lambda robot, q, v, a: rk.aba_derivatives(robot, q, v, a),
}

COLD = """
import sys, time
started = time.perf_counter()
import numpy as np
import robokit as rk
from robokit.errors import DeviceError
robot = rk.load_urdf(rk.find_robot(sys.argv[1]), base="floating")
q = np.resize(rk.standing_configuration(robot, height=0.02), (8192, robot.nq))
rk.rollout(robot, q, steps=100, dt=1e-3, ground=True, record_every=100, device="cuda", dtype="float32")
print(time.perf_counter() - started)
"""


@functools.cache
def load(name: str) -> rk.Robot:
    """A robot with the damping that falls assume written down, as MuJoCo has it."""
    return scenes.same_joints(scenes.load(ROBOTS.get(name, name)))


@functools.cache
def moments(robot: rk.Robot) -> tuple[np.ndarray, np.ndarray]:
    """q and v of 64 falls at ten moments of their first second, moment by moment."""
    q = [rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=k) for k in range(64)]
    run = scenes.many(
        robot,
        np.array(q),
        None,
        steps=1000,
        dt=DT,
        ground=scenes.ground(),
        self_collision=True,
        record_every=100,
    )
    good = np.setdiff1d(np.arange(64), run.failed)
    return run.q[1:, good].reshape(-1, robot.nq), run.v[1:, good].reshape(-1, robot.nv)


def starts(robot: rk.Robot, count: int) -> tuple[np.ndarray, np.ndarray]:
    """So many states of falls, :func:`moments` again and again: neighbours are at the same moment."""
    q, v = moments(robot)
    return np.resize(q, (count, robot.nq)), np.resize(v, (count, robot.nv))


def the_card() -> dict[str, Any]:
    """The card, its driver and versions.

    Raises:
        SystemExit: there is none, or no PyTorch for it.
    """
    from robokit.engine.cuda import driver

    try:
        card = driver.card()
    except DeviceError as error:
        raise SystemExit(
            f"benchmarks/gpu.py measures a card, and there is none that it can use: {error}"
        ) from None
    try:
        import torch
    except ImportError:
        raise SystemExit("benchmarks/gpu.py needs PyTorch: pip install 'robokit[cuda,torch]'") from None
    if not torch.cuda.is_available():
        raise SystemExit(f"PyTorch {torch.__version__} cannot use {card.name}: install it for CUDA")
    said = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    version = said.stdout.split("\n")[0].strip() or "of unknown version"
    return {"card": card.name, "driver": version, "memory": card.memory()[1], "torch": torch.__version__}


# ---- functions ---------------------------------------------------------------------------------------------


def side_by_side(x: np.ndarray, dtype: str, rows: int) -> Any:
    """A batch on the card, its numbers side by side: the transposed of an array (n, rows)."""
    import torch

    few = torch.as_tensor(np.ascontiguousarray(x.T), dtype=getattr(torch, dtype), device="cuda")
    return few.repeat(1, -(-rows // len(x)))[:, :rows].T


def seconds(call: Callable[[], Any]) -> float:
    """Least time of one call on the card [s]: of graphs of several calls."""
    import torch

    call()
    torch.cuda.synchronize()
    inner, best = 1, math.inf
    while True:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(inner):
                call()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(5):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            best = min(best, 1e-3 * begin.elapsed_time(end) / inner)
        if inner * best > 2e-4 or inner > 100:
            return best
        inner = 2 + int(4e-4 / best)


def leaves(x: Any) -> list[Any]:
    """The arrays of a result."""
    if hasattr(x, "rotation"):
        return [x.rotation, x.position]
    return [y for part in x for y in leaves(part)] if isinstance(x, tuple) else [x]


def agreement(robot: rk.Robot, call: Callable[..., Any], dtype: str, few: list[np.ndarray]) -> float:
    """Largest difference of a result from the processor's in double precision, relative to its size."""
    there = leaves(call(robot, *(side_by_side(x, dtype, len(x)) for x in few)))
    here = leaves(call(robot, *few))
    pairs = [(x.double().cpu().numpy(), np.asarray(y)) for x, y in zip(there, here, strict=True)]
    return max(float(np.linalg.norm(x - y) / np.linalg.norm(y)) for x, y in pairs)


def functions(name: str, found: dict[str, Any]) -> None:
    """Every function of one robot: agreement, and rates by batch size."""
    import torch

    robot = load(name)
    few = list(states(robot, DISTINCT))
    for what, call in CALLS.items():
        for dtype in DTYPES:
            row: dict[str, Any] = {"robot": name, "what": what, "dtype": dtype, "rates": {}}
            found["functions"].append(row)
            with said_in(row):
                row["error"] = agreement(robot, call, dtype, few)
                for rows in SIZES:
                    given = [side_by_side(x, dtype, rows) for x in few]
                    row["rates"][rows] = rows / seconds(lambda: call(robot, *given)) / 1e6  # noqa: B023
            torch.cuda.empty_cache()
            show(row)


# ---- falls -------------------------------------------------------------------------------------------------


def fall(robot: rk.Robot, rows: int, collide: bool, dtype: str, steps: int, device: str = "cuda") -> Any:
    """A rollout of so many rows that fall."""
    return scenes.many(
        robot, *starts(robot, rows), steps=steps, dt=DT, ground=scenes.ground(),
        self_collision=collide, record_every=steps, dtype=dtype, device=device,
    )  # fmt: skip


def fall_agreement(robot: rk.Robot, collide: bool, dtype: str, steps: int = 50) -> dict[str, float]:
    """Differences of falls from the processor's in double precision, largest of a row [m | rad]."""
    there = fall(robot, 640, collide, dtype, steps)
    here = fall(robot, 640, collide, "float64", steps, device="cpu")
    apart = np.abs(np.asarray(there.q[-1], float) - here.q[-1]).max(axis=1)
    return {"median": float(np.median(apart)), "worst": float(apart.max()), "steps": steps}


def falls(names: list[str], found: dict[str, Any], end: float) -> None:
    """Falls, with and without self-collision; what matters most first, until the time is up."""
    rows: dict[tuple[str, str, bool], dict[str, Any]] = {}
    jobs = [(name, "float32", FEW) for name in names] + [(DOUBLE, "float64", FEW)]
    rest = tuple(n for n in SIZES if n not in FEW)
    jobs += [(name, "float32", rest) for name in names if name in WHOLE]
    for (name, dtype, sizes), collide in itertools.product(jobs, (True, False)):
        row = rows.get((name, dtype, collide))
        if name not in names or (row and "problem" in row):
            continue
        if row is None:
            row = {"robot": name, "collide": collide, "dtype": dtype, "rates": {}, "steps": {}, "call": {}}
            rows[name, dtype, collide] = row
            found["falls"].append(row)
        robot = load(name)
        with said_in(row):
            for count in sizes:
                timed_fall(row, count, end, lambda n: spent(robot, count, collide, dtype, n))  # noqa: B023
            if "apart" not in row:
                row["apart"] = fall_agreement(robot, collide, dtype)
        show(row)


def spent(robot: rk.Robot, rows: int, collide: bool, dtype: str, steps: int) -> float:
    """Seconds of a fall."""
    started = time.perf_counter()
    run = fall(robot, rows, collide, dtype, steps)
    if len(run.failed):
        raise ValueError(f"{len(run.failed)} of {rows} rows failed")
    return time.perf_counter() - started


def timed_fall(row: dict[str, Any], rows: int, end: float, fall: Callable[[int], float]) -> None:
    """Time falls of so many rows, by what they take more than a single step.

    Raises:
        TimeoutError: there is no time for it.
    """
    if time.perf_counter() > end:
        raise TimeoutError(f"time was up before {rows} rows")
    fall(1)
    one = fall(1)
    step = max(1e-6, (fall(11) - one) / 10)
    steps = int(min(STEPS, max(20, LONG / step)))
    best = min(fall(steps) for _ in range(2 if steps * step < 0.5 * LONG else 1))
    row["rates"][rows] = rows * (steps - 1) / (best - one) / 1e6
    row["steps"][rows], row["call"][rows] = steps, round(one, 3)


def cold(found: dict[str, Any]) -> None:
    """Seconds of a process that loads G1 and takes 100 steps of 8,192 falls: nothing compiled, and again."""
    with tempfile.TemporaryDirectory() as empty:
        env = os.environ | {"ROBOKIT_CACHE_DIR": empty}
        for what in ("first", "again"):
            done = subprocess.run(
                [sys.executable, "-c", COLD, ROBOTS["G1"]],
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            said = done.stdout if done.returncode == 0 else done.stderr
            last = (said.strip().splitlines() or ["nothing was said"])[-1]
            found["cold"][what] = float(last) if done.returncode == 0 else last
    print(f"a rollout of 8,192 G1 in a new process [s]: {found['cold']}", flush=True)


# ---- peers -------------------------------------------------------------------------------------------------


class Peer:
    """MuJoCo Warp or MJX with one model in its own process: it compiles at once, and measures when told."""

    def __init__(self, who: str, robot: str, collide: bool, worlds: tuple[int, ...]) -> None:
        file = ROBOTS.get(robot, robot)
        asked = {
            "who": who,
            "robot": robot,
            "file": file,
            "collide": collide,
            "worlds": worlds,
            "steps": STEPS,
        }
        call = [sys.executable, str(ROOT / "benchmarks" / "gpu_peers.py"), json.dumps(asked)]
        self.who, self.ready = who, threading.Event()
        self.results: list[dict[str, Any]] = []
        self.errors = Path(tempfile.mkstemp(suffix=".txt")[1])
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # libraries print too
                said = json.loads(line)
                if "ready" in said:
                    self.ready.set()
                else:
                    self.results.append(said)
                    print(f"  {said}", flush=True)
        self.ready.set()

    def measure(self, found: dict[str, Any], end: float) -> None:
        """Let it measure, and take its results; at the end of the time it is ended."""
        self.ready.wait(max(0.0, end - time.perf_counter()))
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        self.reader.join(max(0.0, end - time.perf_counter()))
        ended = self.process.poll() is None
        if ended:
            self.process.kill()
        if self.process.wait():
            last = (self.errors.read_text().strip().splitlines() or ["?"])[-1][:300]
            said = {"who": self.who, "failed": "time was up" if ended else last}
            self.results.append(said)
            print(f"  {said}", flush=True)
        self.errors.unlink()
        for each in self.results:
            if "versions" in each:
                found["versions"] |= each["versions"]
            else:
                found["peers"].append(each)


def peers(names: list[str]) -> list[Peer]:
    """Those that are installed; MJX without self-collision, for which it compiles for minutes."""
    both = [(name, collide) for name in names for collide in (False, True)]
    out = []
    if _installed("mujoco_warp"):
        out += [Peer("MuJoCo Warp", *each, WORLDS) for each in both]
    if _installed("mujoco.mjx"):
        out += [Peer("MJX", *each, WORLDS[:1]) for each in both if not each[1]]
    return out


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


# ---- all of it ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def said_in(row: dict[str, Any]) -> Iterator[None]:
    """What fails is said in the row, and the next one follows."""
    started = time.perf_counter()
    try:
        yield
    except Exception as problem:
        row["problem"] = f"{type(problem).__name__}: {problem}"[:300]
    row["seconds"] = round(time.perf_counter() - started, 1)


def show(row: dict[str, Any]) -> None:
    """One line."""
    head = [str(row["robot"]), row.get("what", "falls"), row["dtype"]]
    head += ["with self-collision" if row["collide"] else "ground alone"] if "collide" in row else []
    apart = row.get("error", row.get("apart"))
    rates = " ".join(f"{rows}: {rate:.4g}" for rows, rate in row["rates"].items())
    print(
        f"{', '.join(head)}: apart {apart}; {rates} M/s {row.get('problem', '')} ({row['seconds']} s)",
        flush=True,
    )


def compiling(names: list[str], part: str) -> list[subprocess.Popen[bytes]]:
    """Processes, one a robot and dtype, that compile what is measured, so that it is in the cache."""
    call = [sys.executable, __file__, "--part", part, "--compile"]
    pairs = [
        (name, dtype)
        for name, dtype in itertools.product(names, DTYPES)
        if part == "functions" or dtype == "float32" or name == DOUBLE
    ]
    return [subprocess.Popen([*call, *pair]) for pair in pairs]


def compile_one(name: str, dtype: str, part: str) -> None:
    """Compile what is measured of one robot; what fails is said when it is measured."""
    robot = load(name)
    if part == "functions":
        few = [x[:32] for x in states(robot, 32)]
        for call, rows in itertools.product(CALLS.values(), (SIZES[0], SIZES[-1])):  # code of their own
            with contextlib.suppress(Exception):
                call(robot, *(side_by_side(x, dtype, rows) for x in few))
    else:
        for collide, rows in itertools.product((True, False), (*FEW, 640)):
            with contextlib.suppress(Exception):
                fall(robot, rows, collide, dtype, 1)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = "functions", "falls", "peers", "cold"
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    parser.add_argument(
        "--robot", nargs="+", default=list(ROBOTS), help="names; default: " + ", ".join(ROBOTS)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    parser.add_argument("--manual", action="store_true", help="write them where the manual shows them")
    parser.add_argument("--compile", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile:
        name, dtype = arguments.compile
        compile_one(name, dtype, arguments.part[0])
        return
    found: dict[str, Any] = {
        **the_card(), "machine": machine(), "versions": {}, "commit": commit(),
        "date": datetime.date.today().isoformat(), "functions": [], "falls": [], "peers": [], "cold": {},
    }  # fmt: skip
    print(
        ", ".join(f"{key} {found[key]}" for key in ("card", "driver", "torch", "machine", "commit")),
        flush=True,
    )
    places = [place for place in (arguments.json, PLACE if arguments.manual else None) if place]
    try:
        measure(arguments.robot, arguments.part, found)
    finally:
        for place in places:
            place.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(f"written to {place}")


def measure(names: list[str], parts: list[str], found: dict[str, Any]) -> None:
    """All parts; what one compiles, others do not wait for."""
    started = time.perf_counter()
    beside = peers([name for name in names if name in WHOLE]) if "peers" in parts else []
    made = {part: compiling(names, part) for part in ("falls", "functions") if part in parts}
    for part in ("functions", "falls"):
        for process in made.get(part, ()):
            process.wait()
        print(f"{part}, compiled after {time.perf_counter() - started:.0f} s", flush=True)
        if part in made and part == "falls":
            falls(names, found, started + FALLS_END)
        for name in names if part in made and part == "functions" else ():
            functions(name, found)
    for each in beside:
        each.ready.wait(max(0.0, started + FALLS_END - time.perf_counter()))
    if "cold" in parts:
        cold(found)
    for each in beside:
        each.measure(found, started + PEERS_END)
    found["seconds"] = round(time.perf_counter() - started)
    print(f"{found['seconds']} s in all")


if __name__ == "__main__":
    main()
