"""Comparisons as lines of text, at most 80 columns wide; only a long file name can exceed that."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from robokit.errors import RobokitError
from robokit.model.robot import Robot
from robokit.parity.compare import QUANTITIES, TOLERANCE, Comparison
from robokit.parity.engines import ENGINES
from robokit.parity.many_robots import FileComparison

NAME = 32
"""Columns for the name of a file; a longer name takes a line of its own."""


def table(robot: Robot, found: list[Comparison], states: int = 3) -> list[str]:
    """One robot: a row for each quantity, a column for each engine, then notes on each engine."""
    coupled = ", coupled mimic joints" if robot.coupling is not None else ""
    title = f"{robot.name}: {robot.base} base{coupled}, {robot.nv} degrees of freedom, {states} states;"
    lines = [*textwrap.wrap(f"{title} largest relative errors against robokit", 80)]
    lines.append(f"  {'':<12}" + "".join(f"{c.engine:>12}" for c in found))
    for what in QUANTITIES:
        cells = (f"{c.errors[what]:.1e}" if what in c.errors else "-" for c in found)
        lines.append(f"  {what:<12}" + "".join(f"{cell:>12}" for cell in cells))
    for c in found:
        verdict = f"agrees to {TOLERANCE:.0e}" if c.agrees else "differs"
        if c.failure:
            verdict = "cannot load the file" if c.imported else "cannot be imported"
        lines.append(f"{c.engine} {c.version}".strip() + f": {verdict}")
        for note in ([c.failure] if c.failure else []) + c.changes + c.notes:
            lines += textwrap.wrap(note, 80, initial_indent="  - ", subsequent_indent="    ")
    return lines


def short_names(files: Iterable[Path]) -> dict[Path, str]:
    """File -> its name, with as many of its folders as are needed to tell it from the other files."""
    files = list(dict.fromkeys(files))
    ends = Counter(file.parts[-k:] for file in files for k in range(1, len(file.parts) + 1))
    names = {}
    for file in files:
        lengths = range(1, len(file.parts) + 1)
        k = next((k for k in lengths if ends[file.parts[-k:]] == 1), len(file.parts))
        names[file] = str(Path(*file.parts[-k:]))
    return names


def files_table(
    found: Iterable[FileComparison], engines: Sequence[str], files: Iterable[Path] = ()
) -> Iterator[str]:
    """Many robots: a line for each as it is done, then reasons, then the largest errors by quantity.

    Args:
        found: the comparisons, as they come.
        engines: names of the engines, in the order of the columns.
        files: all the files, for short names; without them, whole paths are shown.
    """
    names = short_names(files)
    rows: list[FileComparison] = []
    yield f"{'':<{NAME}} {'base':<9}{'nv':>4}" + "".join(f"{engine:>11}" for engine in engines)
    for row in found:
        rows.append(row)
        name = names.setdefault(row.file, str(row.file))
        if len(name) > NAME:
            yield name
            name = ""
        head = f"{name:<{NAME}} {row.base:<9}"
        if row.failure:
            yield head + "   - robokit refuses the file"
            continue
        by_name = {c.engine: c for c in row.engines}
        cells = (_cell(by_name[e]) for e in engines)
        yield head + f"{row.nv:>4}" + "".join(f"{cell:>11}" for cell in cells)
    yield from _reasons(rows, names)
    yield ""
    yield "largest relative errors against robokit"
    yield f"  {'':<12}" + "".join(f"{engine:>12}" for engine in engines)
    for what in QUANTITIES:
        yield f"  {what:<12}" + "".join(f"{_largest(rows, e, what):>12}" for e in engines)
    loaded = [row for row in rows if not row.failure]
    for label, wanted in ((f"agree to {TOLERANCE:.0e}", "agrees"), ("refused", "failure")):
        counts = (
            sum(
                bool(getattr(c, wanted)) and c.imported
                for row in loaded
                for c in row.engines
                if c.engine == e
            )
            for e in engines
        )
        yield f"  {label:<16}" + "".join(f"{count:>{8 if k == 0 else 12}}" for k, count in enumerate(counts))
    files_loaded = len({row.file for row in loaded})
    yield f"  of {_count(len(loaded), 'reading')} of {_count(files_loaded, 'file')}"


def _cell(c: Comparison) -> str:
    """The largest error; with "!" if it is not within the tolerance."""
    if c.failure:
        return "refuses" if c.imported else "broken"
    return f"{c.worst:.1e}" + ("" if c.agrees else "!")


def _reasons(rows: Sequence[FileComparison], names: Mapping[Path, str]) -> Iterator[str]:
    """Who cannot load which file and why, and what was changed; once for both bases."""
    seen: dict[tuple[Path | None, str], str] = {}
    for row in rows:
        if row.failure:
            seen.setdefault((row.file, "robokit"), "cannot load it: " + row.failure)
        for c in row.engines:
            if not c.imported:
                seen.setdefault((None, c.engine), c.failure)  # once: it is no matter of a file
            elif c.failure:
                seen.setdefault((row.file, c.engine), "cannot load it: " + c.failure)
            elif c.changes:
                seen.setdefault((row.file, c.engine), "; ".join(c.changes))
    if seen:
        yield ""
    for (file, engine), why in seen.items():
        text = f"{engine}: {why}" if file is None else f"{names[file]}: {engine}: {why}"
        yield from textwrap.wrap(
            text, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )


def _largest(rows: Sequence[FileComparison], engine: str, what: str) -> str:
    errors = [c.errors[what] for row in rows for c in row.engines if c.engine == engine and what in c.errors]
    return f"{max(errors):.1e}" if errors else "-"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}{'s' * (n != 1)}"


def no_engine() -> RobokitError:
    """The error if no engine is installed."""
    packages = " or ".join(engine.package for engine in ENGINES.values())
    return RobokitError(f"there is no engine to compare with; pip install {packages}")
