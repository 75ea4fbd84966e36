"""The engine's targets, each with what was measured and the part of benchmarks/run.py that measures it.

python benchmarks/targets.py results.json      of a file that benchmarks/run.py wrote
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

EIGHT = ("rnea", "crba", "aba", "forward_kinematics", "cmm", "cmm bias", "gravity", "energies")
OTHERS = ("crba nonzeros", "bias")  # beside the eight that the targets name


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
        part: of ``benchmarks/run.py --only``.
    """

    target: str
    asked: str
    measured: float | None
    where: str
    unit: str
    met: bool | None
    part: str = ""


def met(goal: str, before: float | None, after: float | None) -> bool | None:
    """Whether a figure is as wanted: "<= 2 s", or ">= 0.8 x" of that before; None where that is not known."""
    if not goal or after is None or (goal.endswith(" x") and before is None):
        return None
    sign, number, unit = goal.split()
    bound = float(number) * (before if before is not None and unit == "x" else 1.0)
    return after <= bound if sign == "<=" else after >= bound


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
    engine = results.get("engine", {})
    for verdict in _dynamics(results.get("dynamics", []), results.get("vectors") == "AVX2"):
        yield replace(verdict, part="dynamics")
    for part, section in SECTIONS.items():
        for verdict in section(engine.get(part, {})):
            yield replace(verdict, part=part)


def _dynamics(found: list[dict[str, Any]], avx2: bool) -> Iterator[Verdict]:
    """Batches and single calls beside Pinocchio."""
    robots = {robot["robot"].split(":")[-1]: robot for robot in found if "robot" in robot}
    humanoids = {name: robots[name] for name in ("g1", "talos") if name in robots}

    def beside(robot: dict[str, Any]) -> dict[str, dict[str, float]]:
        rows = {row: t for row, t in robot.items() if isinstance(t, dict)}
        return {row: t for row, t in rows.items() if "pinocchio" in t}

    def batch(row: str) -> dict[str, float]:
        rows = {name: beside(robot).get(row) for name, robot in humanoids.items()}
        return {name: t["pinocchio"] / t["batch"] for name, t in rows.items() if t}

    for row in (*EIGHT, *OTHERS):
        yield _least(f"batch {row}", 30, batch(row))
    yield _least("batch crba and solve", 20, batch("crba and solve"))
    # What was measured is AVX2's code where there is nothing wider, or where it was asked for.
    for row in EIGHT if avx2 else ():
        yield _least(f"AVX2, batch {row}", 15, batch(row))
    if not avx2:
        yield _least("AVX2 (run.py --avx2)", 15, {})
    for name, said, bound in (("g1", "G1", 0.35), ("panda", "Panda", 0.6)):
        rows = beside(robots.get(name, {}))
        yield _most(
            f"single call, {said}", bound, {row: t["single"] / t["pinocchio"] for row, t in rows.items()}
        )


def _growth(found: dict[str, dict[str, Any]]) -> Iterator[Verdict]:
    """Joints, code and compile time of chains and random trees."""
    whole = {name: row for name, row in found.items() if {"rnea", "aba"} <= set(row)}

    def ratios(key: str, base: str, *others: str) -> dict[str, float]:
        rows = [(o, n) for o in others for n in ("rnea", "aba") if o in whole and base in whole]
        return {f"{n}, {o}": whole[o][n][key] / whole[base][n][key] for o, n in rows if key in whole[o][n]}

    chains = "chain 100", "chain 300", "chain 1000"
    yield _most("growth from 30 joints", 1.3, ratios("ns a joint", "chain 30", *chains))
    yield _most("random tree, 30 to 200", 1.5, ratios("ns a joint", "random tree 30", "random tree 200"))
    yield _most("code size from 30 joints", 1.3, ratios("code bytes", "chain 30", *chains))
    yield _most("LLVM's time from 30 joints", 1.3, ratios("LLVM s", "chain 30", *chains))
    first = {k: row["aba"]["first call s"] for k, row in whole.items() if k == "chain 1000"}
    yield _most("first ABA, 1000 joints", 3, first, " s")


def _precision(found: dict[str, dict[str, float]]) -> Iterator[Verdict]:
    yield _least("float32 over float64", 1.8, {k: row["f64"] / row["f32"] for k, row in found.items()})


def _start(found: dict[str, float]) -> Iterator[Verdict]:
    ms = {name: 1e3 * seconds for name, seconds in found.items()}
    for target, bound, end in (
        ("first call, G1", 400, "never seen"),
        ("first call from cache", 20, "from cache"),
        ("import robokit", 150, "import"),
    ):
        yield _most(target, bound, {k: x for k, x in ms.items() if k.endswith(end)}, " ms")


def _peak(found: dict[str, float]) -> Iterator[Verdict]:
    named = {k: 100 * x for k, x in found.items() if k in ("rnea", "aba", "crba", "crba_nonzeros")}
    yield _least("share of the peak", 50, named, " %")
    sines = {
        k: 100 * x
        for k, x in found.items()
        if k.removesuffix(" with sines") in ("rnea", "aba", "crba_nonzeros")
    }
    yield _least("share of the peak, sines too", 50, {k: x for k, x in sines.items() if "sines" in k}, " %")


def _threads(found: dict[str, float]) -> Iterator[Verdict]:
    for rows, bound in (("8192", 1.8), ("64", 0.95)):
        yield _least(f"two threads, batch {rows}", bound, {k: x for k, x in found.items() if k == rows})


def _sparsity(found: dict[str, dict[str, float]]) -> Iterator[Verdict]:
    """The factorisation's operations and times; factor and solve together."""
    counted = {name: row for name, row in found.items() if "counts off" in row}
    yield _most("LTDL counts off the formulas", 0, {k: row["counts off"] for k, row in counted.items()}, "")
    for said, dense in (("LAPACK", "Cholesky"), ("dense text", "dense")):
        ratio = {
            name: (row["factor"] + row["solve"]) / (row[dense] + row[f"{dense} solve"])
            for name, row in counted.items()
            if dense in row
        }
        flops = {name: found[name]["ltdl flops"] / found[name]["dense flops"] for name in ratio}
        chains = {name: x for name, x in ratio.items() if flops[name] > 0.9}
        branched = {name: x for name, x in ratio.items() if name not in chains}
        yield _most(f"LTDL over {said}", 1, branched)
        # A chain has no zeros to leave out, an arm hardly any: sparse and dense are the same work.
        yield _most(f"LTDL over {said}, chains, arms", 1.1 if dense == "dense" else 1, chains)


def _memory(found: dict[str, dict[str, float]]) -> Iterator[Verdict]:
    """Of batches and of calls."""
    taken = {name: row["taken"] for name, row in found.items() if "taken" in row}
    beside = {name: x / found[name]["result"] for name, x in taken.items() if name.startswith("rows")}
    yield _most("memory of a batch, its result's", 1.1, beside)
    per_state: dict[str, list[float]] = {}
    for name, x in taken.items():
        layout, rows = name.split(", ")
        per_state.setdefault(layout, []).append(x / int(rows))
    spread = {layout: max(each) / min(each) for layout, each in per_state.items()}
    yield _most("memory a state, any batch", 1.1, spread)
    kept = {f"{row['calls']:,.0f} calls": row["kB"] for row in found.values() if "kB" in row}
    yield _most("memory that calls keep", 1000, kept, " kB")


SECTIONS: dict[str, Callable[[dict[str, Any]], Iterator[Verdict]]] = {
    "peak": _peak,
    "float32": _precision,
    "threads": _threads,
    "start": _start,
    "growth": _growth,
    "sparsity": _sparsity,
    "memory": _memory,
}


def show(results: dict[str, Any]) -> None:
    """Print a line a target."""
    print("\n  a row again: python benchmarks/run.py --only PART")
    if results.get("vectors") == "AVX2":
        print("  the code is for AVX2, four lanes; 30x, 20x and 50 % were set for the eight of AVX-512")
    print(f"\n  {'target, the worst figure of each':<35}{'asked':>10}{'measured':>11}{'':9}{'where':<24}part")
    for v in verdicts(results):
        figure = "-" if v.measured is None else f"{v.measured:.4g}{v.unit}"
        word = {None: "", True: "met", False: "MISSED"}[v.met]
        print(f"  {v.target:<35}{v.asked:>10}{figure:>11}  {word:<7}{v.where:<24}{v.part}")


def main() -> None:
    """Read a file and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    show(json.loads(parser.parse_args().file.read_text()))


if __name__ == "__main__":
    main()
