"""Derivatives made on the recorded graph beside Pinocchio's and beside the texts of the book.

python benchmarks/graph_derivatives.py                    G1 of example-robot-data, both bases
python benchmarks/graph_derivatives.py humanoid --base floating

For each derivative: seconds to record it; operations in units of the function; the first call, with an
empty cache; a single call and a state of a batch on one core [microseconds], the ratio of each to Pinocchio,
and that of the text of the book to the graph, where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from measure import arguments_of, chosen, machine, minima, nothing_compiled, one_core, prepare_to_measure
from models import G1, in_pinocchio, states

import robokit as rk
from robokit.dynamics.build import kernel

BATCH = 512
ROWS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("rnea", ("q",), "", ""),
    ("rnea", ("q", "v"), "computeRNEADerivatives", "rnea_derivatives"),
    ("aba", ("tau",), "computeMinverse", "inverse_mass_matrix"),
    ("aba", ("q",), "", ""),
    ("aba", ("q", "v", "tau"), "computeABADerivatives", "aba_derivatives"),
)
"""(function, with respect to, Pinocchio's function, robokit's text of the same)."""


def peers(robot: rk.Robot, state: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
    """Pinocchio's functions on converted arguments."""
    import pinocchio as pin

    model, data, to = in_pinocchio(robot)
    q, v, a = to.q(state[0]), to.v(state[1]), to.v(state[2])
    return {
        "computeRNEADerivatives": lambda: pin.computeRNEADerivatives(model, data, q, v, a),
        "computeABADerivatives": lambda: pin.computeABADerivatives(model, data, q, v, a),
        "computeMinverse": lambda: pin.computeMinverse(model, data, q),
    }


def compare(name: str, base: str, seconds: float) -> None:
    """Measure and print one robot."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    many = states(robot, BATCH)
    one = tuple(x[0] for x in many)
    theirs = peers(robot, one)
    print(f"\n{robot.name}, {base} base, nv {robot.nv}")
    head = ("record", "operations", "first call", "single", "ratio", "batch", "ratio", "text")
    widths = (8, 12, 12, 9, 8, 9, 8, 7)
    print(" " * 16 + "".join(x.rjust(n) for x, n in zip(head, widths, strict=True)))
    for function, of, peer, text in ROWS:
        f = rk.functions[function].derivative(*of)
        started = time.perf_counter()
        f(robot, *one)
        first = time.perf_counter() - started
        fresh = rk.load_urdf(rk.find_robot(name), base=base)
        started = time.perf_counter()
        program = f.program(fresh)
        recorded = time.perf_counter() - started
        share = program.flops / kernel(robot, function).flops
        out = f(robot, *many)
        contestants: dict[str, Callable[[], Any]] = {
            "single": lambda f=f: f(robot, *one),
            "batch": lambda f=f, out=out: f(robot, *many, out=out),
        }
        if peer:
            contestants["peer"] = theirs[peer]
        if text:
            taken = 1 if text == "inverse_mass_matrix" else 3
            book, given = getattr(rk, text), many[:taken]
            made = book(robot, *given)
            contestants["text"] = lambda book=book, given=given, made=made: book(robot, *given, out=made)
        with one_core():
            t = {k: 1e6 * x for k, x in minima(contestants, seconds).items()}
        batch = t["batch"] / BATCH
        shown = (f"{t['single'] / t['peer']:7.2f}x", f"{t['peer'] / batch:7.1f}x") if peer else ("", "")
        share_of_text = f"{t['text'] / t['batch']:6.2f}x" if text else ""
        label = f"{function} by {' '.join(of)}"
        print(
            f"  {label:<14}{recorded:6.2f} s{share:12.2f}{first:10.2f} s{t['single']:9.2f}{shown[0]:>8}"
            f"{batch:9.3f}{shown[1]:>8}{share_of_text:>7}"
        )


def main() -> None:
    """Parse, measure, print."""
    arguments = arguments_of(__doc__, 1.5)
    print(machine())
    with nothing_compiled():
        for name, base in chosen(arguments, [(G1, "fixed"), (G1, "floating")]):
            compare(name, base, arguments.seconds)


if __name__ == "__main__":
    prepare_to_measure()
    main()
