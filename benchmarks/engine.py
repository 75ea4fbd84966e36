"""What the engine costs and gains: growth, precision, first calls, sparsity, peak, memory, threads.

python benchmarks/engine.py                    all parts
python benchmarks/engine.py growth start       some
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from measure import machine, minima, nothing_compiled, one_core, prepare_to_measure, progress, step
from memory import memory
from models import G1, chain, random_tree, states
from sparse import sparsity

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.engine.backend import llvm
from robokit.engine.batch_calls import processors
from robokit.engine.emit import ir


@contextmanager
def compiling(spent: dict[str, float]) -> Iterator[None]:
    """Add up the bytes of machine code that LLVM makes meanwhile (tables apart), and its seconds."""
    from llvmlite.binding import ObjectFileRef

    whole, part = llvm.assemble, llvm._object

    def assemble(text: str) -> bytes:
        started = time.perf_counter()
        code = whole(text)
        spent["LLVM s"] += time.perf_counter() - started
        return code

    def counted(text: str) -> bytes:
        code = part(text)
        sections = ObjectFileRef.from_data(code).sections()
        spent["code bytes"] += sum(section.size() for section in sections if section.is_text())
        return code

    llvm.assemble, llvm._object = assemble, counted
    try:
        yield
    finally:
        llvm.assemble, llvm._object = whole, part


def growth(seconds: float, found: dict[str, Any]) -> None:
    """Batches of 1024: ns a joint; the first call [s], LLVM's share of it, code size, with an empty cache."""
    robots = [*(chain(n) for n in (10, 30, 100, 300, 1000)), random_tree(30), random_tree(200)]
    head = "".join(f"{x:>10}" for x in ("first s", "LLVM s", "code kB"))
    print(f"  {'':<18}{'RNEA, ns':>10}{head}{'ABA, ns':>10}{head}")
    for robot in robots:
        q, v, a = states(robot, 1024)
        row = found[robot.name] = {}
        for name in ("rnea", "aba"):
            run, out = getattr(rk, name), np.empty((1024, robot.nv))
            spent = {"LLVM s": 0.0, "code bytes": 0}
            started = time.perf_counter()
            with compiling(spent):
                run(robot, q, v, a, out=out)
            first = time.perf_counter() - started
            best = minima({"": partial(run, robot, q, v, a, out=out)}, seconds)[""]
            row[name] = {"ns a joint": best / 1024 / robot.nv * 1e9, "first call s": first, **spent}
        figures = ([*r.values()] for r in row.values())
        cells = (f"{ns:10.2f}{s:10.2f}{llvm:10.2f}{code / 1e3:10.0f}" for ns, s, llvm, code in figures)
        print(f"  {robot.name:<18}{''.join(cells)}")


def single_precision(seconds: float, found: dict[str, Any]) -> None:
    """float32 beside float64, batches of 4096 of G1."""
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    exact = states(robot, 4096)
    short = tuple(x.astype(np.float32) for x in exact)
    rows: dict[str, tuple[Callable[..., Any], int]] = {
        "rnea": (rk.rnea, 3),
        "crba": (rk.crba, 1),
        "crba nonzeros": (rk.crba_nonzeros, 1),
        "aba": (rk.aba, 3),
        "cmm": (rk.centroidal_momentum_matrix, 1),
        "gravity": (rk.gravity_forces, 1),
    }
    for name, (run, count) in rows.items():
        given = exact[:count], short[:count]
        outs = run(robot, *given[0]), run(robot, *given[1], dtype="float32")
        contestants = {
            "f64": partial(run, robot, *given[0], out=outs[0]),
            "f32": partial(run, robot, *given[1], out=outs[1], dtype="float32"),
        }
        best = {k: x / 4096 * 1e6 for k, x in minima(contestants, seconds).items()}
        error = float(np.abs(outs[1] - outs[0]).max() / np.abs(outs[0]).max())
        found[name] = best | {"error": error}
        ratio = f"{best['f64'] / best['f32']:7.2f}x  error {error:.0e}"
        print(f"  {name:<16}{best['f64']:8.3f} us{best['f32']:8.3f} us{ratio}")


def small_batches(seconds: float, found: dict[str, Any]) -> None:
    """Inverse dynamics of G1, microseconds a call."""
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    q, v, a = states(robot, 256)
    one = tuple(np.ascontiguousarray(x[0]) for x in (q, v, a))
    calls: dict[str, Callable[[], Any]] = {"single": partial(rk.rnea, robot, *one)}
    for rows in (1, 4, 16, 64, 256):
        calls[f"batch of {rows}"] = partial(rk.rnea, robot, q[:rows], v[:rows], a[:rows])
    for name, best in minima(calls, 4 * seconds).items():
        found[name] = best * 1e6
        print(f"  {name:<16}{best * 1e6:9.2f} us")


def threads(seconds: float, found: dict[str, Any]) -> None:
    """One and two threads, batches of 64 and 8192 of G1; needs two idle processors."""
    if processors() < 2:
        print("  this process may use one processor only: not measured")
        return
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    for rows in (64, 8192):
        given = states(robot, rows)
        run, out = kernel(robot, "rnea").batch, np.empty((rows, robot.nv))
        best = minima({str(n): partial(run, *given, out=out, threads=n) for n in (1, 2)}, seconds)
        found[str(rows)] = best["1"] / best["2"]
        print(f"  batch of {rows:<6}{found[str(rows)]:7.2f}x with two threads")


_START = """
import time
start = time.perf_counter()
import robokit as rk
imported = time.perf_counter() - start
import numpy as np
robot = rk.load_urdf(rk.find_robot("{robot}"), base="floating")
q, v = robot.neutral(), np.zeros(robot.nv)
start = time.perf_counter()
rk.{name}(robot, q{more})
print(imported, time.perf_counter() - start)
"""


def start(seconds: float, found: dict[str, Any]) -> None:
    """Import, and the first call on G1 with an empty and with a filled cache, each in a new process [s].

    On all processors: a module is compiled in parts.
    """
    imports = []
    bytecode = os.path.join(os.environ["ROBOKIT_CACHE_DIR"], "bytecode")  # as an installed package has it
    for name, more in (("rnea", ", v, v"), ("crba", ""), ("aba", ", v, v")):
        for what in ("never seen", "from cache"):
            best = np.inf
            for _ in range(3):
                with tempfile.TemporaryDirectory() as folder:
                    environment = os.environ | {"ROBOKIT_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": bytecode}
                    environment.pop("PYTHONDONTWRITEBYTECODE", None)
                    for _ in range(1 if what == "never seen" else 2):
                        text = _START.format(robot=G1, name=name, more=more)
                        done = subprocess.run(
                            [sys.executable, "-c", text], env=environment, capture_output=True, check=True
                        )
                    imported, first = map(float, done.stdout.split())
                imports.append(imported)
                best = min(best, first)
            found[f"{name} {what}"] = best
            print(f"  {name:<6}{what:<12}{best * 1e3:8.0f} ms")
    found["import"] = min(imports)
    print(f"  import robokit    {found['import'] * 1e3:8.0f} ms")


def peak(seconds: float, found: dict[str, Any]) -> None:
    """Share of the measured peak of multiply-adds, batches of 4096 of G1; with sines and cosines too."""
    from peak import bytes_per_second, flops_per_second

    pair = len(re.findall(r"= f(?:add|sub|mul) ", "\n".join(ir.sincos_body(1, "%x", near=True))))
    most = flops_per_second()
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    given = states(robot, 4096)
    found["Gflop/s"], found["GB/s"] = most / 1e9, bytes_per_second() / 1e9
    points = found["roofline"] = {}
    print(f"  peak {most / 1e9:.1f} Gflop/s, {found['GB/s']:.1f} GB/s to and from memory, one core")
    for name in ("rnea", "aba", "crba", "crba_nonzeros", "centroidal_momentum_matrix", "forward_kinematics"):
        run = kernel(robot, name)
        some = given[: len(run.signature.inputs)]
        out = run.batch(*some, threads=1)
        best = minima({"": partial(run.batch, *some, out=out, threads=1)}, seconds)[""]
        more = run.flops + pair * run.counts["sincos"]
        for flops, key in ((run.flops, name), (more, f"{name} with sines")):
            found[key] = flops * 4096 / best / most
            print(f"  {key:<38}{flops:7d} flops{found[key]:8.0%} of the peak")
        moved = sum(a[0].nbytes for a in (*some, out))
        points[name] = {"flops a byte": more / moved, "Gflop/s": more * 4096 / best / 1e9}


PARTS = {
    "growth": growth,
    "float32": single_precision,
    "small": small_batches,
    "start": start,
    "sparsity": sparsity,
    "peak": peak,
    "memory": memory,
    "threads": threads,
}


def measure(parts: list[str], seconds: float, found: dict[str, Any]) -> None:
    """Run the parts, print their tables and put their figures into ``found`` as they come."""
    with nothing_compiled():
        for name in parts:
            summary = str(PARTS[name].__doc__).splitlines()[0]
            print(f"\n{name}: {summary}")
            with step(name), one_core(name not in ("threads", "start")):
                PARTS[name](seconds, found.setdefault(name, {}))


def main() -> None:
    """Parse and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time a row")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.part if part not in PARTS]
    if unknown:
        parser.error(f"no part named {unknown[0]!r}; there are {', '.join(PARTS)}")
    print(machine())
    parts = arguments.part or list(PARTS)
    try:
        with progress(len(parts)):
            measure(parts, arguments.seconds, {})
    except KeyboardInterrupt:
        sys.exit("interrupted")


if __name__ == "__main__":
    prepare_to_measure()
    main()
