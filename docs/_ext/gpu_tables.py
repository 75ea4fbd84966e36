"""The directive `.. gpu:: functions`: figures of benchmarks/gpu.json (`benchmarks/gpu.py --manual`).

`.. gpu:: functions` and `.. gpu:: falls` are tables; `.. gpu:: machine` says what was measured on.
"""

from __future__ import annotations

import json
from typing import Any

from generated import ROOT, Generated, table
from sphinx.application import Sphinx

PLACE = ROOT / "benchmarks" / "gpu.json"
STEPS = 100
"""Of a fall that was not cut."""

SHOWN = "1024", "8192", "32768", "131072"


def rate(x: float | None) -> str:
    """Millions a second."""
    return "" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def count(x: Any) -> str:
    """A number of states."""
    return f"{int(x):,d}"


def functions(found: dict[str, Any]) -> list[str]:
    """A line a function and robot, single and double precision beside each other."""
    both: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for row in found["functions"]:
        both.setdefault((row["robot"], row["what"]), {})[row["dtype"]] = row.get("rates", {})
    rows = []
    for (robot, what), kinds in both.items():
        cells = [
            " / ".join(rate(kinds.get(dtype, {}).get(n)) for dtype in ("float32", "float64")) for n in SHOWN
        ]
        rows.append([robot, what, *cells])
    rows.sort(key=lambda cells: cells[0])
    return table(("robot", "float32 / float64", *map(count, SHOWN)), rows)


def falls(found: dict[str, Any]) -> list[str]:
    """A line a robot and program; millions of steps a second."""
    rows, sizes = [], ("8192", "32768", "131072")
    for row in found["falls"]:
        rates = row.get("rates", {})
        cells = [rate(rates.get(n)) for n in sizes]
        for k, n in enumerate(sizes):
            if cells[k] and row["steps"][n] < STEPS:
                cells[k] += f" ({row['steps'][n]} steps)"
        if any(cells):
            rows.append([row["robot"], row["what"], f"robokit, {row['dtype']}", *cells])
    theirs: dict[tuple[str, bool, str], dict[str, float]] = {}
    for row in found["peers"]:
        if "rate" in row:
            key = row["robot"], row["collide"], row["who"]
            theirs.setdefault(key, {})[str(row["worlds"])] = row["rate"] / 1e6
    for (robot, collide, who), rates in theirs.items():
        what = "ground and itself" if collide else "ground"
        rows.append([robot, what, who, *(rate(rates.get(n)) for n in sizes)])
    rows.sort(key=lambda cells: (cells[0], cells[1]))
    return table(("robot", "touches", "program", *map(count, sizes)), rows)


def machine(found: dict[str, Any]) -> list[str]:
    """Who measured what."""
    who = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    said = [f"{found['card']}, driver {found['driver']}, PyTorch {found['torch']}, {found['machine']}"]
    said += [who] if who else []
    text = f"``python benchmarks/gpu.py``; {'; '.join(said)}; commit {found['commit']}, {found['date']}."
    cold = found["cold"]
    if all(isinstance(cold.get(key), float) for key in ("first", "again")):
        text += (
            f" A rollout of 8,192 G1 in a new process takes {cold['first']:.0f} s with nothing compiled, and"
        )
        text += f" {cold['again']:.1f} s later."
    return [text, ""]


PARTS = {"functions": functions, "falls": falls, "machine": machine}


class Gpu(Generated):
    """What was measured on a card."""

    required_arguments = 1

    def rest(self) -> list[str]:
        """The table, or the sentence."""
        return PARTS[self.arguments[0]](json.loads(self.reads(PLACE).read_text(encoding="utf-8")))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("gpu", Gpu)
    return {"parallel_read_safe": True}
