"""Findings as lines for a terminal: by file, then severity, then code."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from robokit.errors import LONGEST_NAME, Diagnostic, Severity, one_line
from robokit.urdf.checks.plausible import link_boxes, total_mass
from robokit.urdf.codes import CODES
from robokit.urdf.description import RobotDescription
from robokit.urdf.lint import SEVERITIES, Checked

WIDTH = 80
"""Columns of a line; only longer words, such as paths, exceed it."""

MOST = 100
"""Findings of one code that are listed for a file."""

_STYLES = {"error": "1;31", "warning": "1;33", "note": "1;36", "file": "1", "clean": "32", "quiet": "2"}


class Paint:
    """Puts colour codes round a text, if there are to be colours.

    Attributes:
        on: whether there is any colour.
    """

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, style: str, text: str) -> str:
        """The text in a style of the table above."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def wants_colour(choice: str, stream: IO[str] | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to colour what goes to a stream.

    Args:
        choice: "always", "never", or "auto": on a terminal, unless NO_COLOR is set or TERM is dumb.
        stream: where the lines go; None where a program was started with that output closed.
        environ: environment variables.
    """
    if choice != "auto":
        return choice == "always"
    if stream is None or environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def listing(checked: Sequence[Checked], paint: Paint, inertias: bool = False) -> Iterator[str]:
    """The lines of all files, with their sum where there are several.

    Args:
        checked: the files.
        paint: the colours.
        inertias: add a table of every link's mass, principal moments and equivalent box.
    """
    for one in checked:
        yield from _file(one, paint)
        if inertias and one.description:
            yield from _inertias(one.description)
        if one.diagnostics or inertias:
            yield ""
    if len(checked) > 1:
        total = {s: sum(one.count(s) for one in checked) for s in SEVERITIES}
        with_errors = sum(one.count("error") > 0 for one in checked)
        said = f"{len(checked)} files: {_counts(total, paint) or paint('clean', 'nothing to report')}"
        yield said + (f"; {with_errors} cannot be loaded" if with_errors else "")


def _file(one: Checked, paint: Paint) -> Iterator[str]:
    counts = {s: one.count(s) for s in SEVERITIES}
    said = _counts(counts, paint) or paint("clean", "nothing to report")
    yield f"{paint('file', one_line(one.file))}: {said}"
    for severity in SEVERITIES:
        groups: dict[str, list[Diagnostic]] = {}
        for diagnostic in one.diagnostics:
            if diagnostic.severity == severity:
                groups.setdefault(diagnostic.code, []).append(diagnostic)
        for code, found in groups.items():
            yield from _group(code, found, paint)
    if one.description and one.diagnostics:
        yield from _wrapped(_figures(one.description), "  ", "  ")


def _group(code: str, found: Sequence[Diagnostic], paint: Paint) -> Iterator[str]:
    severity: Severity = found[0].severity
    head = f"{severity} {code}"
    meaning = list(_wrapped(f"{head}: {CODES[code].meaning}", "  ", "    "))
    yield meaning[0].replace(head, paint(severity, head), 1)
    yield from meaning[1:]
    # Copied values are common: the same words about many elements are said once.
    same = Counter((d.message, d.hint) for d in found)
    told: dict[tuple[str, str], Diagnostic] = {}
    for d in found:
        told.setdefault((d.message, d.hint), d)
    found, left_out = list(told.values())[:MOST], len(told) - MOST
    margin = max(len(str(d.line)) for d in found)
    indent = " " * (margin + 11)
    for k, d in enumerate(found):
        where = f"line {d.line:>{margin}}" if d.line else ""
        more = same[d.message, d.hint] - 1
        element = f"{d.element} and {more} more" if more else d.element
        yield from _wrapped(f"{element}: {d.message}", f"    {where:{margin + 5}}  ", indent)
        following = found[k + 1].hint if k + 1 < len(found) else None
        if d.hint and d.hint != following:
            yield from (paint("quiet", line) for line in _wrapped(f"fix: {d.hint}", indent, indent + "     "))
    if left_out > 0:
        yield f"{indent}and {left_out} more like these: --json lists all"


def _wrapped(text: str, first: str, rest: str) -> Iterator[str]:
    """Text in lines of at most 80 columns; words are never broken."""
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _counts(counts: Mapping[Severity, int], paint: Paint) -> str:
    return ", ".join(paint(s, f"{n} {s}{'s' * (n != 1)}") for s, n in counts.items() if n)


def _figures(robot: RobotDescription) -> str:
    moving = sum(joint.moves for joint in robot.joints)
    links = len(robot.links)
    sizes = f"{links} link{'s' * (links != 1)}, {moving} moving joint{'s' * (moving != 1)}"
    return f"{one_line(robot.name, LONGEST_NAME) or 'no name'}: {sizes}, {total_mass(robot):.4g} kg"


def _inertias(robot: RobotDescription) -> Iterator[str]:
    rows = [("kg", "principal moments [kg m^2]", "equivalent box [m]", "link")]
    for link, inertial, box in link_boxes(robot):
        moments = " ".join(f"{m:.3g}" for m in box.moments)
        rows.append(
            (f"{inertial.mass:.4g}", moments, " x ".join(f"{x:.2g}" for x in box.size), one_line(link))
        )
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    for row in rows:
        cells = [row[0].rjust(widths[0]), row[1].ljust(widths[1]), row[2].ljust(widths[2])]
        left = "  " + "  ".join(cells) + "  "
        room = max(WIDTH - len(left), 12)
        yield left + (row[3] if len(row[3]) <= room else row[3][: room - 3] + "...")
