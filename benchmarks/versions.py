"""Two versions of robokit side by side: first calls, single calls, batches and code size of every algorithm.

python benchmarks/versions.py 0c8ba257                this commit beside that one
python benchmarks/versions.py 0c8ba257 --robot G1 --row rnea crba
python benchmarks/versions.py --print                 what has been measured

Each version runs in a process of its own, with an empty cache of compiled code. They measure in turns, and
the least of each counts. Every row is written to versions.json when it is measured. Another run goes on from
there, and measures rows that look slower again. All times are processor time, so who else uses the machine
matters little.

first: of a single call and of a batch, recording and compiling included, after another robot's [s]
single, batch: microseconds of a state
code: files of both in the cache, baseline code apart [kB]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from measure import ROOT, commit, machine, unpack

PLACE = Path(__file__).with_name("versions.json")

ROBOTS = {
    "G1": ("example-robot-data:g1", "floating"),
    "Panda": ("example-robot-data:panda", "fixed"),
    "Talos": ("example-robot-data:talos", "floating"),
    "humanoid": ("humanoid", "floating"),
    "chain of 100": ("100", "fixed"),
    "chain of 1,000": ("1000", "fixed"),
}

TURNS, AGAIN = 12, 3
"""Turns of a row, and by how many pairs of processes it is measured as long as it looks slower."""

SLOWER = 0.97
"""Time before over time now, below which a row is slower."""

LIMIT = 300.0
"""Seconds after which a first call is given up, by the clock."""

CHILD = r'''
import json, os, sys, time
from functools import partial
from pathlib import Path
sys.path.insert(0, sys.argv[4])
import numpy as np
from models import chain
import robokit as rk
from robokit.dynamics.build import kernel
from robokit.dynamics.choices import CHOICES
from robokit.dynamics.table import KERNELS
from robokit.engine import maker
try:
    from robokit.dynamics.long_derivatives import long_way  # before the engine had loops
except ImportError:
    from robokit.dynamics.long_robots import long_way

assert Path(rk.__file__).is_relative_to(sys.argv[1]), rk.__file__
cache = Path(os.environ["ROBOKIT_CACHE_DIR"])
def new_files():
    """Bytes of the files that have come since the last time, but for baseline code."""
    global seen
    now = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    found = sum(len(now[path]) for path in now.keys() - seen if b'"baseline": true' not in now[path])
    seen = set(now)
    return found

seen = set()

where, base = sys.argv[2:4]
robot = chain(int(where)) if where.isdigit() else rk.load_urdf(rk.find_robot(where), base=base)
rng = np.random.default_rng(0)
small = chain(3)
q = np.full((64, 3), 0.3)
for _ in range(2):
    rk.rnea(small, q, q, q), rk.aba(small, q[0], q[0], q[0]), rk.crba(small, q), rk.crba(small, q[0])

def values(name, size, rows):
    if name == "q":
        return np.stack([robot.random_configuration(rng) for _ in range(rows)])
    if name == "H":
        return rk.crba(robot, values("q", robot.nq, rows)).reshape(rows, -1)
    if name in ("L", "D"):
        factors = rk.ltdl(robot, rk.crba(robot, values("q", robot.nq, 1)[0]))
        return np.tile(np.asarray(getattr(factors, name)).reshape(1, -1), (rows, 1))
    x = rng.uniform(0.1, 1.0, (rows, size))
    return x * 1e-6 if name == "proximal" else x

def aligned(x):
    """The same numbers, from the beginning of a cache line: where arrays lie would count otherwise."""
    memory = np.empty(x.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    found = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found

def code(name, choices):
    """What the public function runs on one state and on rows; the same where it is not written out."""
    way = None if choices else long_way(robot, name)
    k = way or kernel(robot, (name, *choices) if choices else name)
    return k, way or partial(k.batch, threads=1)

new_files()
calls = {}
def first(name):
    """Seconds of the first single call and of the first batch, bytes of code, and a sum of the results."""
    row = KERNELS[name]
    choices = []
    for each in row.about.split():
        choices.append(CHOICES[each].read(robot, CHOICES[each].example(robot)))
    k, on_rows = code(name, choices)
    shape = kernel(robot, (name, *choices) if choices else name).signature
    entries = sum(n for _, n in shape.inputs) + sum(int(np.prod(n)) for _, n in shape.outputs)
    rows = 2 if k is on_rows else max(16, min(256, 2_000_000 // entries // 16 * 16))
    many = [aligned(values(n, size, rows)) for n, size in shape.inputs]
    one = [aligned(x[0]) for x in many]
    t = [time.process_time()]
    k(*one)
    t.append(time.process_time())
    on_rows(*many)
    t.append(time.process_time())
    # Versions that first make do with baseline code are measured with the better code that follows.
    maker.TIERED = False
    robot.kernels.clear()
    k, on_rows = code(name, choices)
    answer, answers = k(*one), on_rows(*many)
    maker.TIERED = True
    of_all = lambda x: [aligned(np.asarray(y)) for y in (x if isinstance(x, tuple) else (x,))]
    outs, outs_of_all = map(of_all, (answer, answers))
    if isinstance(answer, float):
        single = lambda: k(*one)
    else:
        single = lambda: k(*one, out=outs if len(outs) > 1 else outs[0])
    batch = lambda: on_rows(*many, out=outs_of_all if len(outs_of_all) > 1 else outs_of_all[0])
    calls.clear()
    calls.update(single=(single, 1), batch=(batch, rows))
    check = float(np.sum([np.abs(x[np.isfinite(x)]).sum() for x in outs]))
    return {"first": t[1] - t[0], "first batch": t[2] - t[1], "code": new_files(), "check": check}

def turn(what):
    """Least time of some blocks of about 2 ms [us a state]."""
    call, rows = calls[what]
    call()
    t = time.thread_time(); call(); least = time.thread_time() - t
    count = max(1, int(2e-3 / max(least, 1e-7)))
    for _ in range(6 if least < 2e-3 else 2):
        t = time.thread_time()
        for _ in range(count):
            call()
        least = min(least, (time.thread_time() - t) / count)
    return least / rows * 1e6

print(json.dumps(list(KERNELS)), flush=True)
for line in sys.stdin:
    what, argument = json.loads(line)
    try:
        said = first(argument) if what == "first" else turn(argument)
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), flush=True)
'''


class Child:
    """A version that measures a robot.

    Args:
        root: folder of its source.
        robot: key of :data:`ROBOTS`.
        cache: folder for compiled code.
    """

    def __init__(self, root: Path, robot: str, cache: Path) -> None:
        environment = os.environ | {
            "PYTHONPATH": str(root),
            "ROBOKIT_CACHE_DIR": str(cache),
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-c", CHILD, str(root), *ROBOTS[robot], str(Path(__file__).parent)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
        )
        self.kernels: list[str] = self._said(LIMIT)

    def ask(self, what: str, argument: str) -> Any:
        """What it says to a request.

        Raises:
            TimeoutError: it says nothing within :data:`LIMIT`.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, argument]).encode() + b"\n")
        self._process.stdin.flush()
        return self._said(LIMIT)

    def _said(self, seconds: float) -> Any:
        stream = self._process.stdout
        assert stream is not None
        if not select.select([stream], [], [], seconds)[0]:
            raise TimeoutError(f"longer than {LIMIT:.0f} s")
        line = stream.readline()
        if not line:
            raise RuntimeError("a version that is measured has ended")
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def source_of(version: str) -> Iterator[Path]:
    """A folder with the package as it was at a commit."""
    packed = subprocess.run(
        ["git", "archive", version, "robokit", "robots"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        unpack(packed, folder)
        yield Path(folder).resolve()


class Pair:
    """The two versions on a robot; they are started again after one has been given up."""

    def __init__(self, roots: Mapping[str, Path], robot: str) -> None:
        self._roots, self._robot = dict(roots), robot
        self._caches = tempfile.TemporaryDirectory()
        self._children: dict[str, Child] = {}

    def children(self) -> dict[str, Child]:
        """Version -> its process."""
        if not self._children:
            for name, root in self._roots.items():
                self._children[name] = Child(root, self._robot, Path(self._caches.name) / name)
        return self._children

    def end(self) -> None:
        """End both; the next two start in the other order, and find the code that these have made."""
        for child in self._children.values():
            child.close()
        self._children = {}
        self._roots = dict(reversed(self._roots.items()))

    def row(self, name: str) -> dict[str, Any]:
        """Measure an algorithm: a figure of each version, or why there is none.

        Where the system has put a process's arrays can make it slower by a fifth as long as it lives: a row
        that looks slower is measured again by other processes, and the least of all counts.
        """
        found: dict[str, Any] = {}
        for _ in range(AGAIN):
            for version, child in self.children().items():
                try:
                    said = child.ask("first", name)
                except (TimeoutError, RuntimeError) as error:
                    self.end()
                    return {"left out": f"{version}: {error}"}
                if "error" in said:
                    return {"left out": said["error"]}
                found.setdefault(version, said)
            for _ in range(TURNS):
                for what in ("single", "batch"):
                    for version, child in self.children().items():
                        t = child.ask("time", what)
                        found[version][what] = min(t, found[version].get(what, t))
            if not slower(found):
                break
            self.end()
        return found


def measure(version: str, robots: list[str], rows: list[str]) -> None:
    """Measure what is not in the file yet."""
    kept = json.loads(PLACE.read_text()) if PLACE.exists() else {}
    table = kept.setdefault("rows", {})
    with source_of(version) as before, source_of("HEAD") as now:
        for robot in robots:
            pair = Pair({"before": before, "now": now}, robot)
            try:
                named = [child.kernels for child in pair.children().values()]
                for name in (n for n in named[1] if n in named[0]):
                    place = f"{robot}, {name}"
                    known = table.get(place, {})
                    if name not in rows if rows else known and not slower(known):
                        continue
                    found = pair.row(name) | {"commit": commit().removesuffix("+")}
                    if known.get("commit") == found["commit"] and not {"left out"} & (known | found).keys():
                        for version, what in product(("before", "now"), ("single", "batch")):
                            found[version][what] = min(found[version][what], known[version][what])
                    table[place] = found
                    kept |= {"machine": machine(), "before": version, "date": time.strftime("%Y-%m-%d")}
                    PLACE.write_text(json.dumps(kept, indent=1) + "\n")
                    print(line(place, table[place]), flush=True)
            finally:
                pair.end()


def slower(row: Mapping[str, Any]) -> bool:
    """Whether a row looks slower than before."""
    return "left out" not in row and min(ratios(row)) < SLOWER


def ratios(row: Mapping[str, Any]) -> list[float]:
    """Time before over time now, of a single call and of a state of a batch."""
    return [row["before"][w] / row["now"][w] for w in ("single", "batch")]


def line(place: str, row: Mapping[str, Any]) -> str:
    """A row of the printed table."""
    if "left out" in row:
        return f"{place:<44}{row['left out']}"
    before, now = row["before"], row["now"]
    single, batch = ratios(row)
    cells = "".join(f"{before[w]:8.2f}{now[w]:8.2f}" for w in ("first", "first batch", "single", "batch"))
    size = f"{before['code'] / 1e3:8.0f}{now['code'] / 1e3:8.0f}"
    return f"{place:<44}{cells}{size}{single:7.2f}{batch:7.2f}" + " <" * slower(row)


def main() -> None:
    """Measure, or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", nargs="?", help="commit to compare with")
    parser.add_argument("--robot", nargs="+", choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument("--row", nargs="+", default=[], help="kernels to measure (again)")
    parser.add_argument("--print", action="store_true", help="what was measured")
    arguments = parser.parse_args()
    if arguments.print:
        for place, row in json.loads(PLACE.read_text())["rows"].items():
            print(line(place, row))
        return
    if arguments.before is None:
        parser.error("before: name a commit to compare with, such as HEAD~10")
    with contextlib.suppress(KeyboardInterrupt):
        measure(arguments.before, arguments.robot, arguments.row)


if __name__ == "__main__":
    main()
