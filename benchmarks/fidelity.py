"""Is a fall true? Every physical case: what is wanted, robokit, MuJoCo; figures, JSON and pictures.

python benchmarks/fidelity.py                   all cases, about a quarter of an hour
python benchmarks/fidelity.py --quick           a look, in a minute or two
python benchmarks/fidelity.py --case slope rotor
python benchmarks/fidelity.py --case spun_drops --json -
python benchmarks/fidelity.py --manual          writes what the manual's page shows
python benchmarks/fidelity.py --merge a.json    writes it from figures that --json left, of some cases each
python benchmarks/fidelity.py --case speed --avx2   code as a processor without AVX-512 has it
python benchmarks/fidelity.py --redraw          draws its pictures again, from the figures that are there

The figures are robokit's of the package that Python finds first (PYTHONPATH). Ctrl-C keeps what was measured.
The column "before" is kept in the file: the step of falls before contact/step.py, measured at the commits
that "before" names there.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import json
import re
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from fidelity_cases import peer, pictures
from fidelity_cases.table import CASES, Look, NotYet
from measure import ROOT, commit, machine, prepare_to_measure, without_avx512

TOPICS = (
    *("rest", "sliding", "turning", "rolling", "meshes", "impacts", "forces", "folding"),
    *("falls", "books", "joints", "speed"),
    *("piles", "grips", "edges", "mechanisms", "tops", "simbenchmark", "laws"),
)
"""Files of the cases, in the order of the page."""

SIDE_BY_SIDE = ("beside", "speed")
"""Cases that are nothing without MuJoCo."""

PLACE = ROOT / "benchmarks" / "fidelity.json"


def load_cases() -> None:
    """Register all cases."""
    for topic in TOPICS:
        importlib.import_module(f"fidelity_cases.{topic}")


def one(name: str, look: Look, debug: bool) -> dict[str, Any]:
    """Run a case; what it cannot do is said in its entry."""
    case, started = CASES[name], time.perf_counter()
    entry: dict[str, Any] = {
        "topic": case.topic,
        "title": case.title,
        "about": case.about,
        "quick": look.quick,
    }
    try:
        entry |= case.run(look).as_dict()
    except NotYet as missing:
        entry["missing"] = str(missing)
    except KeyboardInterrupt:
        raise
    except Exception as problem:
        if debug:
            traceback.print_exc()
        entry["failed"] = f"{type(problem).__name__}: {problem}"
    entry |= {"commit": commit(), "date": datetime.date.today().isoformat()}
    entry["seconds"] = round(time.perf_counter() - started, 1)
    return entry


def keep(entry: dict[str, Any], before: dict[str, Any]) -> None:
    """Put MuJoCo's figures and curves of an earlier measurement beside robokit's."""
    figures = entry.setdefault("figures", [])
    known = {f["what"]: f for f in figures}
    for figure in before.get("figures", ()):
        peer = {key: figure[key] for key in ("mujoco", "stiff")}
        if figure["what"] in known:
            known[figure["what"]] |= peer
        elif figure["robokit"] is None and figure.get("before") is None:
            figures.append(figure)
    plots = {plot["name"]: plot for plot in entry.get("plots", ())}
    for plot in before.get("plots", ()):
        lines = {label: xy for label, xy in plot["lines"].items() if "MuJoCo" in label}
        plots.get(plot["name"], {"lines": {}})["lines"].update(lines)
    entry["notes"] = entry.get("notes", []) + [x for x in before.get("notes", ()) if x.startswith("MuJoCo")]


def beside(entry: dict[str, Any], stored: dict[str, Any]) -> None:
    """Put the stored figures of the earlier step into the column "before"."""
    known = {f["what"]: f.get("before") for f in stored.get("figures", ())}
    for figure in entry.get("figures", ()):
        figure["before"] = known.get(figure["what"])


def lines(entry: dict[str, Any]) -> list[str]:
    """A case as text."""
    out = [f"\n{entry['title']}  ({entry['seconds']} s)"]
    for key in ("missing", "failed"):
        if key in entry:
            out.append(f"  {key}: {entry[key]}")
    if entry.get("figures"):
        before = any(f.get("before") is not None for f in entry["figures"])
        head = f"{'before':>10}" if before else ""
        out.append(f"  {'':<62}{'wanted':>10}{head}{'robokit':>11}{'':<7}{'MuJoCo':>10}{'stiff':>10}  unit")
    for f in entry.get("figures", ()):
        wanted = " ".join(
            f"{sign}{x:g}" for sign, x in (("≥", f["least"]), ("≤", f["most"])) if x is not None
        )
        ours, theirs, stiff = (_number(f[k]) for k in ("robokit", "mujoco", "stiff"))
        verdict = {None: "", True: " ok", False: " MISS"}[f["met"]]
        past = f"{_number(f.get('before')):>10}" if before else ""
        out.append(
            f"  {f['what']:<62}{wanted:>10}{past}{ours:>11}{verdict:<7}{theirs:>10}{stiff:>10}  {f['unit']}"
        )
    return out + [f"  {note}" for note in entry.get("notes", ())]


def _number(x: Any) -> str:
    return "" if x is None else x if isinstance(x, str) else f"{x:.3g}"


def main() -> None:
    """Measure, print, write."""
    load_cases()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", metavar="NAME", help="some of " + ", ".join(CASES))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument("--no-mujoco", action="store_true", help="robokit alone")
    parser.add_argument("--keep", action="store_true", help="MuJoCo's figures are those of the manual's file")
    parser.add_argument("--avx2", action="store_true", help="code as a processor without AVX-512 has it")
    parser.add_argument("--json", metavar="FILE", help='write the figures as JSON; "-" prints only it')
    parser.add_argument("--manual", action="store_true", help="write what the manual's page shows")
    parser.add_argument("--merge", nargs="+", metavar="FILE", help="what the manual's page shows, from these")
    parser.add_argument("--redraw", action="store_true", help="only draw the manual's pictures again")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of cases that fail")
    arguments = parser.parse_args()
    if arguments.avx2:
        if arguments.manual:
            parser.error("--avx2 is not for --manual: the manual has the figures of the whole machine")
        without_avx512()
    if arguments.redraw:
        pictures.write(json.loads(PLACE.read_text(encoding="utf-8")), _picture)
        return
    if arguments.merge:
        known = json.loads(PLACE.read_text(encoding="utf-8"))["cases"]
        files = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments.merge]
        merged = files[-1] | {"cases": {k: x for file in files for k, x in file["cases"].items()}}
        for name, entry in merged["cases"].items():
            beside(entry, known.get(name, {}))
        _write(merged, None, True)
        return
    for unknown in set(arguments.case or ()) - set(CASES):
        parser.error(f"{unknown!r} is not among {', '.join(CASES)}")
    look = Look(arguments.quick, peer.there() and not arguments.no_mujoco)
    alone = arguments.json == "-"
    before = json.loads(PLACE.read_text(encoding="utf-8"))["cases"] if PLACE.exists() else {}
    found: dict[str, Any] = {"machine": machine() + ", code for AVX2" * arguments.avx2, "cases": {}}
    with contextlib.redirect_stdout(sys.stderr) if alone else contextlib.nullcontext():
        print(f"{found['machine']}; commit {commit()}")
        try:
            for name in arguments.case or CASES:
                kept = before.get(name) if arguments.keep and name not in SIDE_BY_SIDE else None
                found["cases"][name] = one(name, replace(look, peer=look.peer and not kept), arguments.debug)
                if kept:
                    keep(found["cases"][name], kept)
                beside(found["cases"][name], before.get(name, {}))
                print("\n".join(lines(found["cases"][name])), flush=True)
                if arguments.manual:  # what is measured is kept, whatever comes
                    _write(dict(found), None, True)
        except KeyboardInterrupt:
            print("\ninterrupted; what was measured is kept")
    _write(found, arguments.json, arguments.manual)


def text(found: dict[str, Any]) -> str:
    """JSON with each list of numbers in one line."""
    numbers = re.compile(r"\[\s+(-?[\d.e+-]+(?:,\s+-?[\d.e+-]+)*)\s+\]")
    return numbers.sub(lambda m: f"[{' '.join(m[1].split())}]", json.dumps(found, indent=1)) + "\n"


def _write(found: dict[str, Any], json_to: str | None, manual: bool) -> None:
    if json_to == "-":
        print(text(found), end="")
    elif json_to:
        Path(json_to).write_text(text(found))
    if not manual:
        return
    if PLACE.exists():  # cases that were not run stay
        stored = json.loads(PLACE.read_text())
        kept, found["before"] = stored["cases"], stored["before"]
        found["cases"] = {k: v for k, v in (kept | found["cases"]).items() if k in CASES}
        found["cases"] = {k: found["cases"][k] for k in CASES if k in found["cases"]}
    PLACE.write_text(text(found))
    pictures.write(found, _picture)


def _picture(name: str) -> Path:
    return ROOT / "docs" / "_static" / f"fidelity_{name}.svg"


if __name__ == "__main__":
    prepare_to_measure()
    main()
