"""A card beside the processor, MuJoCo Warp and MJX: agreement, states and steps a second, the first call.

python benchmarks/gpu.py                      what four minutes allow, what matters most first
python benchmarks/gpu.py --minutes 15         all of it
python benchmarks/gpu.py --part functions falls --robot G1
python benchmarks/gpu.py --manual             writes benchmarks/gpu.json, which the manual shows

It needs a card of NVIDIA and ``pip install 'robokit[cuda,torch]'``; mujoco-warp and mujoco-mjx (with JAX for
cards) are measured where they are installed, with the same robots, shapes and starts. Nothing is compiled
when it starts: the cache is its own. Jobs are compiled by several processes in the order of :func:`jobs`, and
measured as they are ready. Functions are timed by the card's clock in CUDA graphs, the best of repeats;
falls by the wall clock: 100 steps of 1 ms in one call of a Simulation, or as many as 2 s allow, from states
of falls at ten moments. Figures are millions a second, and are written after each row.
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
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fidelity_cases import scenes
from measure import ROOT, commit, machine, prepare_to_measure
from models import states

import robokit as rk
from robokit.errors import DeviceError

PLACE = ROOT / "benchmarks" / "gpu.json"
ROBOTS = {
    "G1": scenes.G1,
    "G1, fixed base": scenes.G1,
    "humanoid": "humanoid",
    "Talos": "example-robot-data:talos",
    "quadruped": "quadruped",
}
SIZES = tuple(2**k for k in range(10, 18))
FEW = 2**13, 2**17
LARGE = 2**15
"""A batch of which each thread has a state of its own, on any card; small ones have code of their own."""

DTYPES = "float32", "float64"
DT, STEPS, DISTINCT = 1e-3, 100, 1024
BESIDE = ("G1",)
"""Robots that fall beside peers, each of which compiles for a minute or two."""

WORLDS = 2**13, 2**15
"""Sizes of MuJoCo Warp's batches; MJX's is the first."""

LONG = 2.0
"""Falls are cut to so many seconds, but never to fewer than 20 steps."""

AGREED = 640
"""Rows of the falls that are compared with the processor's: one of each state of :func:`moments`."""

PEER = 25.0
"""Longest time for which a peer measures [s]; it is ended before the time is up."""

FALLS = {"ground and itself": True, "ground": False}
"""What falls touch, and whether that means self-collision."""

CALLS: dict[str, Callable[..., Any]] = {
    "RNEA": lambda robot, q, v, a: rk.rnea(robot, q, v, a),
    "CRBA": lambda robot, q, v, a: rk.crba(robot, q),
    "ABA": lambda robot, q, v, a: rk.aba(robot, q, v, a),
    "FK": lambda robot, q, v, a: rk.forward_kinematics(robot, q),
    "∂RNEA": lambda robot, q, v, a: rk.rnea_derivatives(robot, q, v, a),
    "∂ABA": lambda robot, q, v, a: rk.aba_derivatives(robot, q, v, a),
}


@functools.cache
def load(name: str) -> rk.Robot:
    """A robot with the damping that falls assume written down, as MuJoCo has it."""
    if name.endswith("fixed base"):
        with scenes.quiet():
            return scenes.same_joints(rk.load_urdf(rk.find_robot(ROBOTS[name])))
    return scenes.same_joints(scenes.load(ROBOTS.get(name, name)))


def moments(name: str) -> tuple[np.ndarray, np.ndarray]:
    """q and v of 64 falls at ten moments of their first second, moment by moment; kept in a file."""
    file = Path(os.environ["ROBOKIT_CACHE_DIR"], "moments " + name.replace("/", " ") + ".npz")
    mine = False
    with contextlib.suppress(FileExistsError):
        file.with_suffix(".begun").touch(exist_ok=False)
        mine = True
    if mine:
        robot = load(name)
        q = [rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=k) for k in range(64)]
        run = scenes.many(
            robot, np.array(q), None, steps=1000, dt=DT, ground=scenes.ground(), self_collision=True,
            record_every=100,
        )  # fmt: skip
        good = np.setdiff1d(np.arange(64), run.failed)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".npz", delete=False) as part:
            np.savez(part, q=run.q[1:, good].reshape(-1, robot.nq), v=run.v[1:, good].reshape(-1, robot.nv))
        Path(part.name).replace(file)
    until = time.perf_counter() + 120.0  # another process does it
    while not file.exists() and time.perf_counter() < until:
        time.sleep(0.1)
    with np.load(file) as kept:
        return kept["q"], kept["v"]


def starts(name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """So many states of falls, :func:`moments` again and again: neighbours are at the same moment."""
    q, v = moments(name)
    return np.resize(q, (count, q.shape[1])), np.resize(v, (count, v.shape[1]))


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


def agreement(robot: rk.Robot, call: Callable[..., Any], dtype: str, rows: int) -> float:
    """Largest difference of a batch from the processor's in double precision, relative to its size."""
    few = list(states(robot, DISTINCT))
    there = leaves(call(robot, *(side_by_side(x, dtype, rows) for x in few)))
    here = leaves(call(robot, *few))
    pairs = [(x[:DISTINCT].double().cpu().numpy(), np.asarray(y)) for x, y in zip(there, here, strict=True)]
    return max(float(np.linalg.norm(x - y) / np.linalg.norm(y)) for x, y in pairs)


# ---- jobs: functions and falls -----------------------------------------------------------------------------


class Job(NamedTuple):
    """What is compiled by another process, and then measured in this one.

    Attributes:
        robot, dtype: of it.
        what: a key of :data:`CALLS` or :data:`FALLS`.
        sizes: of the batches.
    """

    robot: str
    dtype: str
    what: str
    sizes: tuple[int, ...]

    @property
    def part(self) -> str:
        """Of the benchmark."""
        return "falls" if self.what in FALLS else "functions"

    def prepare(self) -> dict[str, Any]:
        """Compile it; what is found meanwhile: how far it is from the processor."""
        robot = load(self.robot)
        if self.part == "functions":
            both = (agreement(robot, CALLS[self.what], self.dtype, rows) for rows in (LARGE, SIZES[0]))
            return {"error": max(both)}
        sim = falling(self, AGREED)
        sim.step(steps=STEPS)
        there = np.asarray(sim.q.double().cpu())
        here = scenes.many(
            robot, *starts(self.robot, AGREED), steps=STEPS, dt=DT, ground=scenes.ground(),
            self_collision=FALLS[self.what], record_every=STEPS,
        )  # fmt: skip
        apart = np.abs(there - here.q[-1]).max(axis=1)
        return {"apart": {"median": float(np.median(apart)), "worst": float(apart.max()), "steps": STEPS}}

    def measure(self, row: dict[str, Any], save: Callable[[], None], end: float) -> None:
        """Rates of each size until the time is up; ``save`` is called after each."""
        import torch

        robot, rates = load(self.robot), row.setdefault("rates", {})
        few = list(states(robot, DISTINCT)) if self.part == "functions" else []
        for rows in self.sizes:
            if time.perf_counter() > end:
                row["problem"] = f"time was up before {rows} rows"
                break
            if self.part == "functions":
                given, call = [side_by_side(x, self.dtype, rows) for x in few], CALLS[self.what]
                rates[rows] = rows / seconds(lambda: call(robot, *given)) / 1e6  # noqa: B023
                del given
            else:
                rates[rows], row.setdefault("steps", {})[rows] = timed_fall(self, rows)
            torch.cuda.empty_cache()
            save()


def jobs(names: list[str], parts: list[str]) -> list[Job]:
    """All of them, what matters most first."""
    falls, single, double = tuple(FALLS), DTYPES[:1], DTYPES[1:]
    goals = "ABA", "∂ABA"
    rest = tuple(each for each in CALLS if each not in goals)
    groups = [
        (("G1",), falls, single, FEW),
        (("G1", "G1, fixed base"), goals, DTYPES, SIZES),
        (("G1",), rest, DTYPES, SIZES),
        (("humanoid",), falls, single, FEW),
        (("G1",), falls, double, FEW),
        (("quadruped", "Talos"), falls, single, FEW),
        (("humanoid", "Talos", "quadruped"), (*goals, *rest), single, SIZES),
        (("G1", "humanoid"), falls, single, tuple(n for n in SIZES if n not in FEW)),
        (("humanoid", "Talos", "quadruped"), (*goals, *rest), double, SIZES),
        (("G1, fixed base",), rest, DTYPES, SIZES),
    ]
    found = [
        Job(robot, dtype, what, sizes)
        for robots, whats, dtypes, sizes in groups
        for robot, dtype, what in itertools.product(robots, dtypes, whats)
    ]
    return [job for job in found if job.part in parts and job.robot in names]


def falling(job: Job, rows: int) -> Any:
    """So many rows that fall, on the card."""
    import torch

    q, v = (torch.tensor(x, dtype=getattr(torch, job.dtype), device="cuda") for x in starts(job.robot, rows))
    with scenes.quiet():
        return rk.Simulation(
            load(job.robot), q, v, batch=rows, dt=DT, ground=scenes.ground(),
            self_collision=FALLS[job.what], device="cuda", dtype=job.dtype,
        )  # fmt: skip


def timed_fall(job: Job, rows: int) -> tuple[float, int]:
    """Millions of steps a second, and of how many steps.

    Raises:
        ValueError: rows failed.
    """
    import torch

    falling(job, AGREED).step(steps=STEPS)  # then there is room for all contacts
    sim, best = falling(job, rows), math.inf

    def spent(steps: int) -> float:
        sim.reset()
        torch.cuda.synchronize()
        started = time.perf_counter()
        sim.step(steps=steps)
        torch.cuda.synchronize()
        return time.perf_counter() - started

    spent(5)
    steps = int(min(STEPS, max(20, 5 * LONG / spent(5))))
    for _ in range(2):
        best = min(best, spent(steps))
    if sim.failed.any():
        raise ValueError(f"{sim.failed.sum()} of {rows} rows failed")
    return rows * steps / best / 1e6, steps


# ---- processes that compile --------------------------------------------------------------------------------


class Compilers:
    """Processes that compile jobs in their order, a few at a time; each compiles with several threads."""

    def __init__(self, asked: list[Job]) -> None:
        count = max(1, len(os.sched_getaffinity(0)) // 4) if hasattr(os, "sched_getaffinity") else 4
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self._all = []
        for _ in range(min(count, len(asked))):
            call = [sys.executable, __file__, "--compile"]
            self._all.append(subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            self._idle.put(self._all[-1])
        self._pool = ThreadPoolExecutor(max(1, len(self._all)))
        self.futures: dict[Future[dict[str, Any]], Job] = {
            self._pool.submit(self._compile, job): job for job in asked
        }

    def _compile(self, job: Job) -> dict[str, Any]:
        process = self._idle.get()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # libraries print too
                said: dict[str, Any] = json.loads(line)
                self._idle.put(process)
                return said
        raise RuntimeError("the process that compiles has ended")

    def end(self) -> None:
        """Compile no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._all:
            process.kill()


def compile_jobs() -> None:
    """Jobs, a line each; what was found is a line, too."""
    for line in sys.stdin:
        robot, dtype, what, sizes = json.loads(line)
        found: dict[str, Any] = {}
        with said_in(found, "compiling"):
            found |= Job(robot, dtype, what, tuple(sizes)).prepare()
        print(json.dumps(found), flush=True)


def cold(found: dict[str, Any]) -> None:
    """Seconds of a process that loads G1 and takes 100 steps of 8,192 falls: nothing compiled, and again."""
    for what in ("first", "again"):
        done = subprocess.run(
            [sys.executable, __file__, "--cold"], capture_output=True, text=True, check=False
        )
        said = done.stdout if done.returncode == 0 else done.stderr
        last = (said.strip().splitlines() or ["nothing was said"])[-1]
        found["cold"][what] = float(last) if done.returncode == 0 else last
    print(f"a rollout of 8,192 G1 in a new process [s]: {found['cold']}", flush=True)


def one_rollout() -> None:
    """What :func:`cold` times; Python and the imports of this file, 1 s, are not in it."""
    started = time.perf_counter()
    robot = load("G1")
    q = np.resize(rk.standing_configuration(robot, height=0.02), (8192, robot.nq))
    scenes.many(
        robot, q, None, steps=100, dt=DT, ground=scenes.ground(), self_collision=True, record_every=100,
        device="cuda", dtype="float32",
    )  # fmt: skip
    print(time.perf_counter() - started)


# ---- peers -------------------------------------------------------------------------------------------------


class Peer:
    """MuJoCo Warp or MJX with one model in its own process: it compiles at once, and measures when told."""

    def __init__(self, who: str, robot: str, collide: bool, worlds: tuple[int, ...]) -> None:
        asked = {
            "who": who,
            "robot": robot,
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
def said_in(row: dict[str, Any], doing: str) -> Iterator[None]:
    """What fails is said in the row, and the next one follows; how long it took is said, too."""
    started = time.perf_counter()
    try:
        yield
    except Exception as problem:
        row["problem"] = f"{doing}: {type(problem).__name__}: {problem}"[:300]
    row[f"{doing} [s]"] = round(time.perf_counter() - started, 1)


def show(row: dict[str, Any], at: float) -> None:
    """One line."""
    apart = row.get("error", row.get("apart"))
    rates = " ".join(f"{rows}: {rate:.4g}" for rows, rate in row.get("rates", {}).items())
    print(
        f"{at:5.0f} s: {row['robot']}, {row['what']}, {row['dtype']}: apart {apart}; {rates} M/s "
        f"{row.get('problem', '')} ({row.get('compiling [s]')} + {row.get('measuring [s]')} s)",
        flush=True,
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = "functions", "falls", "peers", "cold"
    parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    parser.add_argument(
        "--robot", nargs="+", default=list(ROBOTS), help="names; default: " + "; ".join(ROBOTS)
    )
    parser.add_argument("--minutes", type=float, default=4.0, help="when to end; default: 4")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    parser.add_argument("--manual", action="store_true", help="write them where the manual shows them")
    for own in ("--compile", "--cold"):
        parser.add_argument(own, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile or arguments.cold:
        (compile_jobs if arguments.compile else one_rollout)()
        return
    end = time.perf_counter() + 60.0 * arguments.minutes - 5.0  # and time to end
    found: dict[str, Any] = {
        **the_card(), "machine": machine(), "versions": {}, "commit": commit(),
        "date": datetime.date.today().isoformat(), "functions": [], "falls": [], "peers": [], "cold": {},
    }  # fmt: skip
    print(
        ", ".join(f"{key} {found[key]}" for key in ("card", "driver", "torch", "machine", "commit")),
        flush=True,
    )
    places = [place for place in (arguments.json, PLACE if arguments.manual else None) if place]

    def save() -> None:
        for place in places:
            place.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        os.environ["ROBOKIT_CACHE_DIR"] = empty
        measure(arguments.robot, arguments.part, found, end, save)
    save()


def measure(
    names: list[str], parts: list[str], found: dict[str, Any], end: float, save: Callable[[], None]
) -> None:
    """All parts, in the order in which they are ready; until the time is up."""
    started, last = time.perf_counter(), 0.0
    if "cold" in parts:  # alone, while nothing else is compiled
        cold(found)
    compilers = Compilers(jobs(names, parts))
    waiting = dict(compilers.futures)
    beside = peers([name for name in BESIDE if name in names]) if "peers" in parts else []
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    while (waiting or beside) and (left := end - last - time.perf_counter()) > 0:
        ready = [peer for peer in beside if peer.ready.is_set()]
        done = [future for future in waiting if future.done()]
        if ready:  # they compile for longer than what matters most takes
            beside.remove(ready[0])
            ready[0].measure(found, min(end, time.perf_counter() + PEER))
        elif done:
            job = waiting.pop(done[0])
            row = rows.get(job[:3])
            if row is None:
                row = rows[job[:3]] = {"robot": job.robot, "what": job.what, "dtype": job.dtype}
                found[job.part].append(row)
            with said_in(row, "measuring"):
                row |= done[0].result()
                job.measure(row, save, end)
            last = min(10.0, row["measuring [s]"])
            show(row, time.perf_counter() - started)
        else:
            wait(waiting, min(left, 0.5), FIRST_COMPLETED) if waiting else time.sleep(0.5)
        save()
    for peer in beside:
        peer.measure(found, time.perf_counter())
    compilers.end()
    found["seconds"] = round(time.perf_counter() - started)
    found["left out"] = [", ".join(job[:3]) for job in waiting.values()]
    print(f"{found['seconds']} s in all; left out: {'; '.join(found['left out']) or 'nothing'}", flush=True)


if __name__ == "__main__":
    prepare_to_measure()
    main()
