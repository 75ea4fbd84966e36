"""The directive `.. measured::`: the tables of benchmarks/results.json (`benchmarks/run.py -o results`)."""

from __future__ import annotations

import json
from typing import Any

from generated import ROOT, Generated, table
from sphinx.application import Sphinx


def ratios(robot: dict[str, Any]) -> list[str]:
    """A robot's figures beside Pinocchio's."""
    rows = []
    for name, times in robot.items():
        if isinstance(times, dict):
            peer, one, many = times["pinocchio"], times["single"], times["batch"]
            cells = f"{peer:.2f}", f"{one:.2f}", f"{one / peer:.2f}", f"{many:.3f}", f"{peer / many:.1f}"
            rows.append([name.replace("_", " "), *cells])
    title = f"**{robot['robot'].split(':')[-1]}**, {robot['base']} base, {robot['nv']} degrees of freedom:"
    head = "", "Pinocchio", "single", "time, of Pinocchio's", "batch", "times as many states"
    return [title, "", *table(head, rows)]


class Measured(Generated):
    """All tables."""

    def rest(self) -> list[str]:
        """The lines."""
        found = json.loads(self.reads(ROOT / "benchmarks" / "results.json").read_text())
        lines = [
            f"{found['machine']}; commit {found['commit']}; ``python benchmarks/run.py -o results``.",
            "Minima of interleaved repeats on one core, microseconds a state; batches of 4096 beside",
            "Pinocchio called from Python in a loop.",
            "",
        ]
        for robot in found["dynamics"]:
            lines += ratios(robot)
        engine = found["engine"]
        rows = [
            [name, *(f"{row[k][what]:.{n}f}" for k in ("rnea", "aba") for what, n in PARTS)]
            for name, row in engine["growth"].items()
        ]
        lines += ["Growth, batches of 1024:", ""]
        lines += table(("", "RNEA, ns a joint", "first call, s", "ABA, ns a joint", "first call, s"), rows)
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
        rows = [[name, *(f"{x:.1f}" for x in row.values())] for name, row in engine["sparsity"].items()]
        lines += ["Sparse factorisation beside LAPACK's dense Cholesky, one matrix, microseconds:", ""]
        lines += table(("", "LTDL", "Cholesky", "LTDL solve", "Cholesky solve"), rows)
        start = {k: f"{1e3 * x:.0f} ms" for k, x in engine["start"].items()}
        small = {k: f"{x:.1f} µs" for k, x in engine["small"].items()}
        share = {k: f"{x:.0%}" for k, x in engine["peak"].items() if "flop" not in k}
        rows = [
            ["first call on G1, or import", "; ".join(f"{k} {x}" for k, x in start.items())],
            ["inverse dynamics of G1, a call", "; ".join(f"{k} {x}" for k, x in small.items())],
            [
                f"share of {engine['peak']['Gflop/s']:.1f} Gflop/s",
                "; ".join(f"{k} {x}" for k, x in share.items()),
            ],
            ["two threads", "; ".join(f"batch of {k} {x:.2f} times" for k, x in engine["threads"].items())],
        ]
        return [*lines, "The rest:", "", *table(("", ""), rows)]


PARTS = (("ns a joint", 1), ("first call s", 2))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
