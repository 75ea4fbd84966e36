"""Everything: robokit beside its peers, and the engine by itself; tables, JSON and plots.

python benchmarks/run.py -o results    some minutes; results.json and three plots
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
import plots
import targets
import throughput
from measure import ROOT, commit, machine, one_core, prepare_to_measure, progress, step

from robokit.engine.backend import llvm

NAMES = {name.split(":")[-1]: (name, base) for name, base in dynamics.DEFAULT}
PARTS = ["dynamics", "peers", "loading", *engine.PARTS]


def forced_avx2() -> None:
    """Compile for this processor without AVX-512 from now on; nothing may be compiled before."""
    name, features = llvm.host()
    fewer = ",".join(x for x in features.split(",") if not x.startswith("+avx512"))
    name = "x86-64-v3" if "+avx512f" in features.split(",") else name
    llvm.host = lambda: (name, fewer)
    llvm.processor_description = lambda: ""  # so that LLVM's words count
    llvm.identity.cache_clear()
    llvm.vector_width.cache_clear()


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
    vectors = {8: "AVX-512", 4: "AVX2"}.get(llvm.vector_width(), "narrow")
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
        plots.write(results, lambda name: Path(f"{arguments.o}_{name}.svg"))
    if arguments.manual:
        (ROOT / "benchmarks" / "results.json").write_text(written)
        plots.write(results, lambda name: ROOT / "docs" / "_static" / f"{name}.svg")
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
    prepare_to_measure()
    main()
