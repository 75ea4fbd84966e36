"""The directive `.. measured::`: the tables of benchmarks/results.json (`benchmarks/run.py --manual`)."""

from __future__ import annotations

import json
import sys
from typing import Any

from generated import ROOT, Generated, table
from sphinx.application import Sphinx

BENCHMARKS = ROOT / "benchmarks"
SAME = """\
Before the times were measured, all programs computed the same numbers to 1e-10. The table has the targets
and the worst figure for each; ``python benchmarks/run.py --only PART`` measures a row again. The targets of
30 and 20 times Pinocchio and half of the peak are for the eight lanes of AVX-512, 15 times is for the four
of AVX2:"""
CALLS = """\
Single calls from Python and robokit's batches of 4096, in microseconds a state: minima of interleaved repeats
on one core. MuJoCo's calls include the kinematics that they need. Drake's include setting the state; without
it, Drake would return cached results."""
BATCHES = """\
Batches of 4096 in states a second, by every way that a program offers to Python. A free step is one of 20
semi-implicit Euler steps of 256 states, without contact. Pinocchio's wheel has no code generation."""
SPARSE = """\
Sparse factorisation of one mass matrix in microseconds, compared with the same text on the full matrix in the
same engine, and with LAPACK's Cholesky through SciPy. Operations are those of the factorisation; they equal
Featherstone's formulas:"""
GROWTH = {
    "ns a joint": "ns a joint",
    "first call s": "first call, s",
    "LLVM s": "of it LLVM, s",
    "code bytes": "code, bytes",
}
FACTORS = {
    "n": "n",
    "factor": "LTDL",
    "dense": "dense",
    "Cholesky": "LAPACK",
    "solve": "LTDL, solve",
    "dense solve": "dense, solve",
    "Cholesky solve": "LAPACK, solve",
    "ltdl flops": "operations",
    "dense flops": "dense, operations",
}
PEERS = {"pinocchio": "Pinocchio", "mujoco": "MuJoCo", "drake": "Drake"}


def ratios(robot: dict[str, Any]) -> list[str]:
    """A robot's figures beside its peers'."""
    rows = []
    for name, times in robot.items():
        if isinstance(times, dict):
            peer, one, many = times["pinocchio"], times["single"], times["batch"]
            theirs = (f"{times[k]:.2f}" if k in times else "" for k in PEERS)
            cells = *theirs, f"{one:.2f}", f"{one / peer:.2f}", f"{many:.3f}", f"{peer / many:.1f}"
            rows.append([name.replace("_", " "), *cells])
    title = f"**{robot['robot'].split(':')[-1]}**, {robot['base']} base, {robot['nv']} degrees of freedom:"
    head = "", *PEERS.values(), "single", "time, of Pinocchio's", "batch", "times as many states"
    return [title, "", *table(head, rows)]


def throughput(name: str, found: dict[str, dict[str, float]]) -> list[str]:
    """States a second of one robot, by program and row."""
    ways = dict.fromkeys(way for rates in found.values() for way in rates)
    rows = [
        [way, *(f"{rates[way]:,.0f}" if way in rates else "" for rates in found.values())] for way in ways
    ]
    return [f"**{name}**:", "", *table(("", *found), rows)]


def number(x: float) -> str:
    """A count, or a measured figure."""
    return f"{x:,d}" if isinstance(x, int) else f"{x:.2f}"


def factors(found: dict[str, dict[str, float]]) -> list[str]:
    """The sparse factorisation beside dense ones."""
    rows = [[name, *(number(row[k]) if k in row else "" for k in FACTORS)] for name, row in found.items()]
    return table(("", *FACTORS.values()), rows)


def growing(found: dict[str, Any]) -> list[str]:
    """Chains and random trees."""
    rows = []
    for name, row in found.items():
        both = [(row[k], key) for k in ("rnea", "aba") for key in GROWTH]
        rows.append([name, *(number(r[key]) if key in r else "" for r, key in both)])
    return table(("", *(f"{k}, {c}" for k in ("RNEA", "ABA") for c in GROWTH.values())), rows)


def aims(found: dict[str, Any]) -> list[str]:
    """The targets and what was measured, the worst figure of each."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    from targets import verdicts

    words = {None: "", True: "met", False: "missed"}
    rows = [
        [
            v.target.replace("_", " "),
            v.asked,
            "" if v.measured is None else f"{v.measured:.4g}{v.unit}",
            words[v.met],
            v.where.replace("_", " "),
            v.part,
        ]
        for v in verdicts(found)
    ]
    return table(("", "asked", "measured", "", "where", "part"), rows)


class Measured(Generated):
    """All tables."""

    def rest(self) -> list[str]:
        """The lines."""
        found = json.loads(self.reads(BENCHMARKS / "results.json").read_text())
        self.reads(BENCHMARKS / "targets.py")
        made = f"{found['machine']}; commit {found['commit']}; "
        lines = [made + "``python benchmarks/run.py -o results``.", SAME, "", *aims(found), CALLS, ""]
        for robot in found["dynamics"]:
            lines += ratios(robot)
        lines += [BATCHES, ""]
        for name, rates in found.get("peers", {}).items():
            lines += throughput(name, rates)
        engine = found["engine"]
        lines += [
            "Growth with the number of joints, in batches of 1024; first calls are with an empty cache:",
            "",
            *growing(engine["growth"]),
        ]
        rows = [
            [
                name,
                f"{row['f64']:.3f}",
                f"{row['f32']:.3f}",
                f"{row['f64'] / row['f32']:.2f}",
                f"{row['error']:.0e}",
            ]
            for name, row in engine["float32"].items()
        ]
        lines += ["Single precision, G1, microseconds a state:", ""]
        lines += table(("", "float64", "float32", "ratio", "largest relative error"), rows)
        lines += [SPARSE, "", *factors(engine["sparsity"])]
        start = {k: f"{1e3 * x:.0f} ms" for k, x in engine["start"].items()}
        small = {k: f"{x:.1f} µs" for k, x in engine["small"].items()}
        share = {k: f"{x:.0%}" for k, x in engine["peak"].items() if "/s" not in k and k != "roofline"}
        memory = engine.get("memory", {})
        taken = {k: f"{row['taken'] / row['result']:.2f}" for k, row in memory.items() if "taken" in row}
        rows = [
            ["first call on G1, or import", "; ".join(f"{k} {x}" for k, x in start.items())],
            ["inverse dynamics of G1, a call", "; ".join(f"{k} {x}" for k, x in small.items())],
            [
                f"share of {engine['peak']['Gflop/s']:.1f} Gflop/s",
                "; ".join(f"{k} {x}" for k, x in share.items()),
            ],
            ["two threads", "; ".join(f"batch of {k} {x:.2f} times" for k, x in engine["threads"].items())],
            ["memory of a batch, its result's", "; ".join(f"{k} {x}" for k, x in taken.items())],
            *(
                [f"memory that {row['calls']:,} calls keep", f"{row['kB']:.0f} kB"]
                for row in memory.values()
                if "kB" in row
            ),
        ]
        return [*lines, "The rest:", "", *table(("", ""), rows)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
