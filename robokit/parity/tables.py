"""Comparisons in lines of at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from robokit.errors import RobokitError
from robokit.model.robot import Robot
from robokit.parity.compare import QUANTITIES, TOLERANCE, Comparison
from robokit.parity.engines import ENGINES
from robokit.parity.many_robots import FileComparison

NAME = 34
"""Columns for a file's name."""


def table(robot: Robot, found: list[Comparison], states: int = 3) -> list[str]:
    """One robot: a row for each quantity, a column for each engine, then what there is to say."""
    coupled = ", coupled mimic joints" if robot.coupling is not None else ""
    title = f"{robot.name}: {robot.base} base{coupled}, {robot.nv} degrees of freedom, {states} states;"
    lines = [*textwrap.wrap(f"{title} largest relative errors against robokit", 80)]
    lines.append(f"  {'':<12}" + "".join(f"{c.engine:>12}" for c in found))
    for what in QUANTITIES:
        cells = (f"{c.errors[what]:.1e}" if what in c.errors else "-" for c in found)
        lines.append(f"  {what:<12}" + "".join(f"{cell:>12}" for cell in cells))
    for c in found:
        verdict = f"agrees to {TOLERANCE:.0e}" if c.agrees else "differs"
        lines.append(
            f"{c.engine} {c.version}".strip() + f": {'cannot load the file' if c.failure else verdict}"
        )
        for note in ([c.failure] if c.failure else []) + c.changes + c.notes:
            lines += textwrap.wrap(note, 80, initial_indent="  - ", subsequent_indent="    ")
    return lines


def files_table(found: Iterable[FileComparison], engines: Sequence[str]) -> Iterator[str]:
    """Many robots: a line for each as it is done, then reasons, then the largest errors by quantity."""
    rows: list[FileComparison] = []
    yield f"{'':<{NAME}} {'base':<9}{'nv':>4}" + "".join(f"{engine:>11}" for engine in engines)
    for row in found:
        rows.append(row)
        head = f"{_end(str(row.file)):<{NAME}} {row.base:<9}"
        if row.failure:
            yield head + "   - robokit refuses the file"
            continue
        by_name = {c.engine: c for c in row.engines}
        cells = (_cell(by_name[e]) for e in engines)
        yield head + f"{row.nv:>4}" + "".join(f"{cell:>11}" for cell in cells)
    yield from _reasons(rows)
    yield ""
    yield "largest relative errors against robokit"
    yield f"  {'':<12}" + "".join(f"{engine:>12}" for engine in engines)
    for what in QUANTITIES:
        yield f"  {what:<12}" + "".join(f"{_largest(rows, e, what):>12}" for e in engines)
    loaded = [row for row in rows if not row.failure]
    for label, wanted in ((f"agree to {TOLERANCE:.0e}", "agrees"), ("refused", "failure")):
        counts = (
            sum(bool(getattr(c, wanted)) for row in loaded for c in row.engines if c.engine == e)
            for e in engines
        )
        yield f"  {label:<16}" + "".join(f"{count:>{8 if k == 0 else 12}}" for k, count in enumerate(counts))
    yield f"  of {len(loaded)} readings; files: {len({row.file for row in loaded})}"


def _cell(c: Comparison) -> str:
    """The largest error, marked where it is one too many."""
    return "refuses" if c.failure else f"{c.worst:.1e}" + ("" if c.agrees else "!")


def _reasons(rows: Sequence[FileComparison]) -> Iterator[str]:
    """Who refused which file, and what explains a difference; the first base's words stand for both."""
    seen: dict[tuple[Path, str], str] = {}
    for row in rows:
        if row.failure:
            seen.setdefault((row.file, "robokit"), "cannot load it: " + row.failure)
        for c in row.engines:
            if c.failure:
                seen.setdefault((row.file, c.engine), "cannot load it: " + c.failure)
            elif c.changes:
                seen.setdefault((row.file, c.engine), "; ".join(c.changes))
    if seen:
        yield ""
    for (file, engine), why in seen.items():
        text = f"{file.name}: {engine}: {why}"
        yield from textwrap.wrap(text, 80, subsequent_indent="    ")


def _largest(rows: Sequence[FileComparison], engine: str, what: str) -> str:
    errors = [c.errors[what] for row in rows for c in row.engines if c.engine == engine and what in c.errors]
    return f"{max(errors):.1e}" if errors else "-"


def _end(name: str) -> str:
    return name if len(name) <= NAME else "..." + name[3 - NAME :]


def no_engine() -> RobokitError:
    """What to say where there is nothing to compare with."""
    packages = " or ".join(engine.package for engine in ENGINES.values())
    return RobokitError(f"parity needs another engine: pip install {packages}")
