"""A function written as C beside the machine code and Pinocchio: single calls, where they agree.

python benchmarks/c_code.py                               G1 and Panda: rnea, crba, aba
python benchmarks/c_code.py humanoid --base floating --cflags "-O2"

C and the machine code run in a loop of C; what a call from Python adds is in the columns after them.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from dynamics import peers
from measure import arguments_of, chosen, machine, minima, one_core, prepare_to_measure

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.engine.kernel import ONE_STATE

FUNCTIONS = {"rnea": 3, "crba": 1, "aba": 3}
"""Functions, and how many of q, v and a (or tau) each takes."""

FLAGS = "-O3 -march=native -ffp-contract=fast -fno-tree-slp-vectorize"
LOOPS = 200
DEFAULT = (("example-robot-data:g1", "floating"), ("example-robot-data:panda", "fixed"))

DRIVER = """
#include "{name}.h"
#include <stdint.h>
void loop_c(int n, {types})
{{ for (int k = 0; k < n; k++) {name}({arguments}); }}
void loop_machine(int n, int64_t (*single)(void **, double *), void **arrays, double *work)
{{ for (int k = 0; k < n; k++) single(arrays, work); }}
"""


def build(robot: rk.Robot, function: str, folder: Path, flags: str) -> tuple[ctypes.CDLL, float]:
    """The C file with loops around it, and what the compiler took [s]."""
    _, source, _ = rk.codegen(robot, function, folder)
    count = FUNCTIONS[function] + 1
    driver = folder / "driver.c"
    driver.write_text(
        DRIVER.format(
            name=source.stem,
            types=", ".join(f"double *a{k}" for k in range(count)),
            arguments=", ".join(f"a{k}" for k in range(count)),
        )
    )
    library = folder / f"{source.stem}.so"
    started = time.perf_counter()
    subprocess.run(
        ["cc", "-std=c99", *flags.split(), "-fPIC", "-shared", source, driver, "-lm", "-o", library],
        check=True,
    )
    return ctypes.CDLL(str(library)), time.perf_counter() - started


def contestants(
    robot: rk.Robot, function: str, library: ctypes.CDLL, given: list[np.ndarray]
) -> dict[str, Callable[[], Any]]:
    """Calls: LOOPS of the C and of the machine code, one of robokit from Python."""
    public = getattr(rk, function)
    expected = public(robot, *given)
    used = [*given, np.empty_like(expected)]
    addresses = [ctypes.c_void_p(x.ctypes.data) for x in used]
    code = kernel(robot, function)._maker.code(ONE_STATE)  # type: ignore[union-attr]
    single, work = ctypes.c_void_p(code.address("single")), ctypes.c_void_p(code.memory_address)
    arrays = (ctypes.c_void_p * len(addresses))(*addresses)
    library.loop_c(1, *addresses)
    error = np.abs(used[-1] - expected).max() / np.abs(expected).max()
    assert error < 1e-12, f"C differs by {error:.1e}"
    return {
        "C": lambda _keep=used: library.loop_c(LOOPS, *addresses),
        "machine": lambda: library.loop_machine(LOOPS, single, arrays, work),
        "robokit": lambda: public(robot, *given),
    }


def compare(name: str, base: str, seconds: float, flags: str) -> None:
    """Measure one robot and print its table."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    rng = np.random.default_rng(0)
    state = [robot.random_configuration(rng), *rng.standard_normal((2, robot.nv))]
    others = peers(robot, *state).get("pinocchio", {})
    print(f"\n{robot.name}, {base} base, nv {robot.nv}; microseconds a call, minimum of interleaved repeats")
    print(
        f"  {'':<6}{'C':>8}{'machine code':>14}{'ratio':>7}{'robokit, Python':>17}{'Pinocchio':>11}"
        f"{'C over it':>11}{'cc [s]':>8}{'lines':>8}"
    )
    for function, count in FUNCTIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            library, compiling = build(robot, function, Path(folder), flags)
            lines = sum(1 for _ in next(Path(folder).glob(f"*_{function}.c")).open())
            calls = contestants(robot, function, library, state[:count])
            if function in others:
                calls["pinocchio"] = others[function]
            t = {k: 1e6 * x for k, x in minima(calls, seconds).items()}
        t["C"] /= LOOPS
        t["machine"] /= LOOPS
        peer = f"{t['pinocchio']:11.2f}{t['C'] / t['pinocchio']:10.2f}x" if "pinocchio" in t else " " * 22
        print(
            f"  {function:<6}{t['C']:8.2f}{t['machine']:14.2f}{t['C'] / t['machine']:6.2f}x"
            f"{t['robokit']:17.2f}{peer}{compiling:8.2f}{lines:8,}"
        )


def main() -> None:
    """Parse, measure, print."""

    def flags(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cflags", default=FLAGS, help="default: %(default)s")

    arguments = arguments_of(__doc__, 1.0, more=flags)
    print(machine())
    with one_core():
        for name, base in chosen(arguments, DEFAULT):
            compare(name, base, arguments.seconds, arguments.cflags)


if __name__ == "__main__":
    prepare_to_measure()
    main()
