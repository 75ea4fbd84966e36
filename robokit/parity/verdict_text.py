"""A verdict as lines of text and as a table for JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import asdict
from typing import Any

from robokit.parity.causes.catalogue import CAUSES
from robokit.parity.causes.finding import Dynamics, Finding, Verdict

MOST = 8
"""Findings of one cause that are shown."""


def verdict_lines(verdict: Verdict, width: int | None = None, most: int | None = MOST) -> list[str]:
    """The verdict in lines: the two files, one line for each finding, notes, and a summary.

    Args:
        verdict: of :func:`robokit.parity.referee`.
        width: columns to wrap lines at; None for a line each, however long.
        most: findings of one cause that are shown; None for all.
    """
    a, b = verdict.a, verdict.b
    lines = [f"A  {a} ({verdict.a_format})", f"B  {b} ({verdict.b_format})"]
    lines.append(f"   {_counted(verdict.bodies, 'link')} and {_counted(verdict.joints, 'joint')} matched")
    shown: Counter[str] = Counter()
    count = Counter(finding.cause for finding in verdict.findings)
    for finding in verdict.findings:
        shown[finding.cause] += 1
        if most is None or shown[finding.cause] <= most:
            lines += _wrapped(_line(finding), width, "    ")
        elif shown[finding.cause] == most + 1:
            lines.append(f"... and {count[finding.cause] - most} more [{finding.cause}] (--all shows them)")
    for note in verdict.notes:
        lines += _wrapped(f"note: {note}", width, "    ")
    if verdict.dynamics is not None:
        lines += _wrapped(_dynamics(verdict.dynamics), width, "    ")
    return [*lines, *_wrapped(_summary(verdict, count), width, "    ")]


def verdict_table(verdict: Verdict) -> dict[str, Any]:
    """The verdict for JSON; every finding with the meaning of its cause and what to do."""
    findings = [
        asdict(f) | {"meaning": CAUSES[f.cause].meaning, "fix": CAUSES[f.cause].fix} for f in verdict.findings
    ]
    return asdict(verdict) | {"same": verdict.same, "findings": findings}


def _line(finding: Finding) -> str:
    also = f"; or {', '.join(finding.also)}" if finding.also else ""
    return f"{finding} [{finding.cause}{also}]"


def _dynamics(found: Dynamics) -> str:
    """How far the dynamics are apart, and whether rounding can make that."""
    if found.differs:
        apart = f"{found.where} differs by a relative {found.largest:.1g}"
        return f"dynamics at random states: {apart}; rounding makes at most {found.rounding:.1g}"
    return f"dynamics at random states: H, C and gravity agree to {max(found.H, found.C, found.gravity):.1g}"


def _summary(verdict: Verdict, count: Counter[str]) -> str:
    if verdict.same:
        return f"same: no difference above {verdict.tolerance:g}"
    causes = ", ".join(f"{cause} {n}" if n > 1 else cause for cause, n in count.most_common())
    return f"different: {_counted(len(verdict.findings), 'finding')} ({causes})"


def _counted(n: int, thing: str) -> str:
    return f"{n} {thing if n == 1 else thing + 's'}"


def _wrapped(line: str, width: int | None, indent: str) -> list[str]:
    if width is None:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
