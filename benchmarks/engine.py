"""What the engine costs and gains: growth, precision, small batches, first calls, sparsity, peak, threads.

python benchmarks/engine.py                    all parts
python benchmarks/engine.py growth start       some
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import machine, minima, one_core

import robokit as rk
from robokit.engine.batch import processors
from robokit.kernels import kernel
from robokit.model import ModelBuilder, Placement

G1 = "example-robot-data:g1"


def states(robot: rk.Robot, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, v, a of a batch."""
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(rows)])
    return q, *rng.standard_normal((2, rows, robot.nv))


def chain(n: int) -> rk.Robot:
    """Equal links in a row, axes in turn about x and y."""
    builder = ModelBuilder(f"chain {n}").link("l0")
    for k in range(n):
        builder.link(f"l{k + 1}", 1.0, (0.1, 0.02, -0.3), np.diag([0.02, 0.03, 0.02]))
        place, axis = Placement(np.eye(3), (0.0, 0.01, -0.5)), ((1, 0, 0), (0, 1, 0))[k % 2]
        builder.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, axis=axis)
    return builder.build()


def random_tree(n: int) -> rk.Robot:
    """Random parents among the last six links, axes, masses and placements; a fifth of the joints slide."""
    rng = np.random.default_rng(n)
    builder = ModelBuilder(f"random tree {n}").link("l0")
    for k in range(n):
        half = rng.standard_normal((3, 3)) * 0.1
        turned, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        turned *= np.linalg.det(turned)
        inertia = half @ half.T + np.eye(3) * 0.02
        builder.link(f"l{k + 1}", rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3), inertia)
        kind = "prismatic" if rng.random() < 0.2 else "revolute"
        place = Placement(turned, rng.uniform(-0.3, 0.3, 3))
        parent = f"l{rng.integers(max(0, k - 6), k + 1)}"
        builder.joint(f"j{k}", kind, parent, f"l{k + 1}", place, axis=rng.standard_normal(3))
    return builder.build()


def growth(seconds: float) -> dict[str, Any]:
    """Nanoseconds a joint of batches of 1024, and the first call with an empty cache [s]."""
    robots = [*(chain(n) for n in (10, 30, 100, 300, 1000)), random_tree(30), random_tree(200)]
    found: dict[str, Any] = {}
    print(f"  {'ns a joint, batch 1024':<26}{'RNEA':>9}{'first':>9}{'ABA':>9}{'first':>9}")
    for robot in robots:
        q, v, a = states(robot, 1024)
        row = {}
        for name in ("rnea", "aba"):
            run, out = getattr(rk, name), np.empty((1024, robot.nv))
            started = time.perf_counter()
            run(robot, q, v, a, out=out)
            first = time.perf_counter() - started
            best = minima({"": partial(run, robot, q, v, a, out=out)}, seconds)[""]
            row[name] = {"ns a joint": best / 1024 / robot.nv * 1e9, "first call s": first}
        found[robot.name] = row
        cells = (f"{r['ns a joint']:9.2f}{r['first call s']:7.2f} s" for r in row.values())
        print(f"  {robot.name:<26}{''.join(cells)}")
    return found


def single_precision(seconds: float) -> dict[str, Any]:
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
    found = {}
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
    return found


def small_batches(seconds: float) -> dict[str, Any]:
    """Inverse dynamics of G1, microseconds a call."""
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    found = {}
    q, v, a = states(robot, 256)
    one = tuple(np.ascontiguousarray(x[0]) for x in (q, v, a))
    calls: dict[str, Callable[[], Any]] = {"single": partial(rk.rnea, robot, *one)}
    for rows in (1, 4, 16, 64, 256):
        calls[f"batch of {rows}"] = partial(rk.rnea, robot, q[:rows], v[:rows], a[:rows])
    for name, best in minima(calls, 4 * seconds).items():
        found[name] = best * 1e6
        print(f"  {name:<16}{best * 1e6:9.2f} us")
    return found


def threads(seconds: float) -> dict[str, Any]:
    """One and two threads, batches of 64 and 8192 of G1; needs two idle processors."""
    if processors() < 2:
        print("  this process may use one processor only: not measured")
        return {}
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    found = {}
    for rows in (64, 8192):
        given = states(robot, rows)
        run, out = kernel(robot, "rnea").batch, np.empty((rows, robot.nv))
        best = minima({str(n): partial(run, *given, out=out, threads=n) for n in (1, 2)}, seconds)
        found[str(rows)] = best["1"] / best["2"]
        print(f"  batch of {rows:<6}{found[str(rows)]:7.2f}x with two threads")
    return found


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


def start(seconds: float) -> dict[str, Any]:
    """Import, and the first call on G1 with an empty and with a filled cache, each in a new process [s]."""
    found: dict[str, Any] = {}
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
    return found


def sparsity(seconds: float) -> dict[str, Any]:
    """LTDL in the tree's sparsity beside LAPACK's dense Cholesky, one matrix [us]."""
    from scipy.linalg import cho_factor, cho_solve

    found = {}
    for name, base in (("humanoid", "floating"), ("quadruped", "floating"), ("chain", "fixed")):
        robot = rk.load_urdf(rk.find_robot(name), base=base)
        q, v, _ = (x[0] for x in states(robot, 1))
        H = rk.crba(robot, q)
        ours, dense = rk.ltdl(robot, H), cho_factor(H)
        assert np.allclose(ours.solve(v), cho_solve(dense, v), rtol=1e-6)
        flat = np.ascontiguousarray(H.reshape(-1))
        factor = partial(kernel(robot, "ltdl"), flat) if robot.nv < 60 else partial(rk.ltdl, robot, H)
        contestants = {
            "factor": factor,
            "Cholesky": partial(cho_factor, H, check_finite=False),
            "solve": partial(ours.solve, v),
            "Cholesky solve": partial(cho_solve, dense, v, check_finite=False),
        }
        best = minima(contestants, seconds)
        found[name] = {k: x * 1e6 for k, x in best.items()}
        print(f"  {name:<12}" + "".join(f"{k} {x:.1f} us  " for k, x in found[name].items()))
    return found


def peak(seconds: float) -> dict[str, Any]:
    """Share of the measured peak of multiply-adds, batches of 4096 of G1."""
    from peak import flops_per_second

    most = flops_per_second()
    robot = rk.load_urdf(rk.find_robot(G1), base="floating")
    given = states(robot, 4096)
    found: dict[str, Any] = {"Gflop/s": most / 1e9}
    print(f"  peak {most / 1e9:.1f} Gflop/s on one core")
    for name in ("rnea", "aba", "crba_nonzeros", "centroidal_momentum_matrix"):
        run = kernel(robot, name)
        some = given[: len(run.inputs)]
        out = run.batch(*some, threads=1)
        best = minima({"": partial(run.batch, *some, out=out, threads=1)}, seconds)[""]
        found[name] = run.flops * 4096 / best / most
        print(f"  {name:<28}{run.flops:7d} flops{found[name]:8.0%} of the peak")
    return found


PARTS = {
    "growth": growth,
    "float32": single_precision,
    "small": small_batches,
    "start": start,
    "sparsity": sparsity,
    "peak": peak,
    "threads": threads,
}


def measure(parts: list[str], seconds: float) -> dict[str, Any]:
    """Run the parts, print their tables and return their figures; Ctrl-C keeps those that are done."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROBOKIT_CACHE_DIR"] = folder  # first calls are first calls
        for name in parts:
            summary = str(PARTS[name].__doc__).splitlines()[0]
            print(f"\n{name}: {summary}")
            try:
                with one_core(name != "threads"):
                    found[name] = PARTS[name](seconds)
            except KeyboardInterrupt:
                print("  interrupted")
                break
    return found


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
    measure(arguments.part or list(PARTS), arguments.seconds)


if __name__ == "__main__":
    main()
