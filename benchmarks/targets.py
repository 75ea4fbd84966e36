"""The engine's targets, each with what was measured.

python benchmarks/targets.py results.json      of a file that benchmarks/run.py wrote
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BATCH_ROWS = (
    *("rnea", "crba", "crba nonzeros", "aba", "forward_kinematics", "cmm"),
    *("cmm bias", "gravity", "bias", "energies"),
)


@dataclass(frozen=True)
class Verdict:
    """One target.

    Attributes:
        target: what is asked.
        asked: the bound, as text.
        measured: the worst figure, None where it was not measured.
        where: robot or algorithm of that figure.
        unit: after the figure.
        met: whether the bound is kept; None where it was not measured.
    """

    target: str
    asked: str
    measured: float | None
    where: str
    unit: str
    met: bool | None


def _least(target: str, bound: float, found: dict[str, float], unit: str = "x") -> Verdict:
    return _verdict(target, f">= {bound:g}{unit}", found, unit, min, lambda x: x >= bound)


def _most(target: str, bound: float, found: dict[str, float], unit: str = "x") -> Verdict:
    return _verdict(target, f"<= {bound:g}{unit}", found, unit, max, lambda x: x <= bound)


def _verdict(
    target: str,
    asked: str,
    found: dict[str, float],
    unit: str,
    worst_of: Callable[..., str],
    met: Callable[[float], bool],
) -> Verdict:
    if not found:
        return Verdict(target, asked, None, "not measured", unit, None)
    worst = worst_of(found, key=found.__getitem__)
    return Verdict(target, asked, found[worst], worst, unit, met(found[worst]))


def verdicts(results: dict[str, Any]) -> Iterator[Verdict]:
    """All targets, the worst figure of each; of results as benchmarks/run.py writes them."""
    robots = {robot["robot"].split(":")[-1]: robot for robot in results.get("dynamics", [])}
    engine = results.get("engine", {})
    humanoids = {name: robots[name] for name in ("g1", "talos") if name in robots}

    def batch(row: str) -> dict[str, float]:
        return {name: r[row]["pinocchio"] / r[row]["batch"] for name, r in humanoids.items() if row in r}

    def single(name: str) -> dict[str, float]:
        rows = {k: t for k, t in robots.get(name, {}).items() if isinstance(t, dict)}
        return {row: t["single"] / t["pinocchio"] for row, t in rows.items()}

    asked = 30 if "AVX-512" in str(results.get("machine")) else 15  # what the vectors of AVX2 should reach
    for row in BATCH_ROWS:
        yield _least(f"batch {row}", asked, batch(row))
    yield _least("batch crba and solve", asked * 2 / 3, batch("crba and solve"))
    yield _most("single call, G1", 0.35, single("g1"))
    yield _most("single call, Panda", 0.6, single("panda"))
    shares = {k: 100 * x for k, x in engine.get("peak", {}).items() if k in ("rnea", "aba", "crba_nonzeros")}
    yield _least("share of the peak", 50, shares, " %")
    short = {k: r["f64"] / r["f32"] for k, r in engine.get("float32", {}).items()}
    yield _least("float32 over float64", 1.8, short)
    threads = engine.get("threads", {})
    for rows, bound in (("8192", 1.8), ("64", 0.95)):
        yield _least(f"two threads, batch {rows}", bound, {k: x for k, x in threads.items() if k == rows})
    start = {k: 1e3 * x for k, x in engine.get("start", {}).items()}
    yield _most("first call, G1", 400, {k: x for k, x in start.items() if k.endswith("never seen")}, " ms")
    yield _most("first call from cache", 20, {k: x for k, x in start.items() if k.endswith("cache")}, " ms")
    yield _most("import robokit", 150, {k: x for k, x in start.items() if k == "import"}, " ms")
    growth = engine.get("growth", {})

    def per_joint(others: tuple[str, ...], base: str) -> dict[str, float]:
        rows = [(o, n) for o in others for n in ("rnea", "aba") if o in growth and base in growth]
        return {f"{n}, {o}": growth[o][n]["ns a joint"] / growth[base][n]["ns a joint"] for o, n in rows}

    yield _most("growth from 30 joints", 1.3, per_joint(("chain 100", "chain 300", "chain 1000"), "chain 30"))
    yield _most("random tree, 30 to 200", 1.5, per_joint(("random tree 200",), "random tree 30"))
    long = growth.get("chain 1000")
    yield _most(
        "first ABA, 1000 joints", 3, {"chain 1000": long["aba"]["first call s"]} if long else {}, " s"
    )
    ltdl = {
        name: (t["factor"] + t["solve"]) / (t["Cholesky"] + t["Cholesky solve"])
        for name, t in engine.get("sparsity", {}).items()
    }
    yield _most("LTDL over dense Cholesky", 1, ltdl)


def show(results: dict[str, Any]) -> None:
    """Print a line a target."""
    if "AVX-512" not in str(results.get("machine")):
        print("\n  no AVX-512 here: batches are held to half the ratios, the target for AVX2")
    print(f"\n  {'target, the worst figure of each':<33}{'asked':>10}{'measured':>11}{'':9}where")
    for v in verdicts(results):
        figure = "-" if v.measured is None else f"{v.measured:.2f}{v.unit}"
        word = {None: "", True: "met", False: "MISSED"}[v.met]
        print(f"  {v.target:<33}{v.asked:>10}{figure:>11}  {word:<7}{v.where}")


def main() -> None:
    """Read a file and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    show(json.loads(parser.parse_args().file.read_text()))


if __name__ == "__main__":
    main()
