"""Everything: robokit beside its peers, and the engine by itself; tables, JSON and plots.

python benchmarks/run.py -o results    some minutes; results.json, results_ratios.svg, results_growth.svg
python benchmarks/run.py --manual      the same to benchmarks/results.json and docs/_static
python benchmarks/run.py --quick       a look
python benchmarks/run.py --robots g1 panda --only dynamics peak

Ctrl-C ends it; what was measured until then is printed and written.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import agree
import dynamics
import engine
import loading
import targets
import throughput
from measure import ROOT, commit, machine, one_core, progress, step

from robokit.engine import compile, processor

NAMES = {name.split(":")[-1]: (name, base) for name, base in dynamics.DEFAULT}
PARTS = ["dynamics", "peers", "loading", *engine.PARTS]


def plots(results: dict[str, Any], ratios: Path, growth: Path) -> None:
    """Ratios as bars, growth as lines, to a file each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    robots = [robot for robot in results["dynamics"] if "pinocchio" in robot.get("rnea", {})]
    if robots:
        rows = [k for k in robots[0] if isinstance(robots[0][k], dict)]
        figure, axes = plt.subplots(figsize=(9, 0.42 * len(rows) + 1.6), layout="constrained")
        height = 0.8 / len(robots)
        for k, robot in enumerate(robots):
            ratio = [robot[row]["pinocchio"] / robot[row]["batch"] if row in robot else 0.0 for row in rows]
            places = [i + (k - (len(robots) - 1) / 2) * height for i in range(len(rows))]
            axes.barh(places, ratio, height * 0.9, label=f"{robot['robot'].split(':')[-1]}, nv {robot['nv']}")
        axes.set_yticks(range(len(rows)), rows)
        axes.invert_yaxis()
        axes.axvline(15, color="0.3", linewidth=0.8, linestyle=":")
        axes.set_xlabel("states per second, robokit's batches of 4096 over Pinocchio called from Python")
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(ratios)
    found = results["engine"].get("growth", {})
    chains = {
        int(name.split()[-1]): row for name, row in found.items() if name.startswith("chain") and "aba" in row
    }
    if chains:
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        for name, label in (("rnea", "RNEA"), ("aba", "ABA")):
            axes.plot(list(chains), [row[name]["ns a joint"] for row in chains.values()], "o-", label=label)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xticks(list(chains), [str(n) for n in chains])
        axes.set_xlabel("joints of a chain")
        axes.set_ylabel("ns a joint and state, batches of 1024")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(growth)


def forced_avx2() -> None:
    """Compile for this processor without AVX-512 from now on; nothing may be compiled before."""
    name, features = compile.host()
    fewer = ",".join(x for x in features.split(",") if not x.startswith("+avx512"))
    name = "x86-64-v3" if "+avx512f" in features.split(",") else name
    compile.host = lambda: (name, fewer)
    processor.described = lambda: ""  # so that LLVM's words count
    compile.identity.cache_clear()
    compile.vector_width.cache_clear()


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", metavar="STEM", type=Path, help="write STEM.json and the plots")
    parser.add_argument("--manual", action="store_true", help="write what the manual's page shows")
    parser.add_argument("--quick", action="store_true", help="G1 and Panda only, a tenth of the time")
    parser.add_argument("--seconds", type=float, default=1.5, help="measuring time a row")
    parser.add_argument("--avx2", action="store_true", help="robokit's code without AVX-512")
    parser.add_argument("--robots", nargs="+", metavar="ROBOT", help="some of " + ", ".join(NAMES))
    parser.add_argument("--only", nargs="+", metavar="PART", help="some of " + ", ".join(PARTS))
    arguments = parser.parse_args()
    for given, known in ((arguments.robots, NAMES), (arguments.only, PARTS)):
        for unknown in set(given or ()) - set(known):
            parser.error(f"{unknown!r} is not among {', '.join(known)}")
    seconds = arguments.seconds / 10 if arguments.quick else arguments.seconds
    jobs = [dynamics.DEFAULT[0], dynamics.DEFAULT[3]] if arguments.quick else dynamics.DEFAULT
    if arguments.robots:
        jobs = [NAMES[name] for name in arguments.robots]
    if arguments.avx2:
        forced_avx2()
    vectors = {8: "AVX-512", 4: "AVX2"}.get(compile.vector_width(), "narrow")
    results: dict[str, Any] = {"machine": machine(), "vectors": vectors, "commit": commit()}
    print(f"{results['machine']}\nrobokit's vectors: {vectors}; commit {results['commit']}")
    results |= {"batch": dynamics.BATCH, "dynamics": [], "peers": {}, "engine": {}}
    try:
        parts = arguments.only or PARTS
        rounds = 1 + sum(part in parts for part in ("dynamics", "peers"))
        with progress(rounds * len(jobs) + sum(part in parts for part in ("loading", *engine.PARTS))):
            measure(results, list(jobs), parts, seconds)
    except agree.Disagreement as problem:
        sys.exit(f"nothing was timed: {problem}")
    except KeyboardInterrupt:
        results["interrupted"] = True
        print("\ninterrupted; what was measured is kept")
    targets.show(results)
    written = json.dumps(results, indent=1) + "\n"
    if arguments.o:
        Path(f"{arguments.o}.json").write_text(written)
        plots(results, Path(f"{arguments.o}_ratios.svg"), Path(f"{arguments.o}_growth.svg"))
    if arguments.manual:
        (ROOT / "benchmarks" / "results.json").write_text(written)
        plots(results, *(ROOT / "docs" / "_static" / f"{name}.svg" for name in ("ratios", "growth")))
    if "interrupted" in results:
        sys.exit(130)


def measure(results: dict[str, Any], jobs: list[tuple[str, str]], parts: list[str], seconds: float) -> None:
    """Check the numbers and measure the parts; figures are put into ``results`` as they come."""
    print("\nthe same numbers? largest difference, over the largest entry")
    agree.everything(jobs)
    for name, base in jobs if "dynamics" in parts else ():
        results["dynamics"].append({})
        with step(f"dynamics, {name}"), one_core():
            dynamics.compare(name, base, seconds, results["dynamics"][-1])
    for name, base in jobs if "peers" in parts else ():
        with step(f"peers, {name}"):
            throughput.compare(name, base, seconds, results["peers"].setdefault(name.split(":")[-1], {}))
    if "loading" in parts:
        print("\nloading: URDF files without meshes, least of interleaved repeats")
        with step("loading"), one_core():
            results["loading"] = loading.measure(seconds=2.0 * seconds)
    engine.measure([part for part in engine.PARTS if part in parts], seconds, results["engine"])


if __name__ == "__main__":
    main()
