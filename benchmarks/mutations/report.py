"""The figures of a run as text and as a table of the manual."""

from __future__ import annotations

from collections import defaultdict
from typing import Any


def _sums(rows: list[Any], key: str) -> dict[str, list[int]]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
    for row in rows:
        of = sums[getattr(row, key)]
        k = 0 if row.format == "URDF" else 3
        if row.skipped:
            continue
        of[k] += 1
        of[k + 1] += row.right
        of[k + 2] += row.alone
    return dict(sums)


def lines(rows: list[Any]) -> list[str]:
    """A line for each cause."""
    out = [f"{'cause':<32}{'URDF':>6}{'named':>7}{'alone':>7}{'MJCF':>8}{'named':>7}{'alone':>7}"]
    for cause, (a, b, c, d, e, f) in _sums(rows, "cause").items():
        mark = "  !" if b < a or e < d else ""
        out.append(f"{cause:<32}{a:>6}{b:>7}{c:>7}{d:>8}{e:>7}{f:>7}{mark}")
    done = [row for row in rows if not row.skipped and not row.cause.startswith("(")]
    right, first = sum(r.right for r in done), sum(r.first for r in done)
    skipped = sum(bool(r.skipped) for r in rows)
    out.append(
        f"{len(done)} mutants, {right} named ({100 * right / max(1, len(done)):.2f} %), {first} first, "
        f"{sum(r.alone for r in done)} with no other finding; {skipped} could not be written or seen"
    )
    same = [row for row in rows if row.cause.startswith("(") and not row.skipped]
    out.append(f"{len(same)} unchanged pairs, {sum(not r.right for r in same)} with a finding")
    return out


def manual(rows: list[Any]) -> str:
    """Two tables in reStructuredText: by cause and by robot."""
    text = []
    for title, key in (("cause", "cause"), ("robot", "robot")):
        text += [".. list-table::", "   :header-rows: 1", "", f"   * - {title}"]
        text += ["     - URDF", "     - named", "     - MJCF", "     - named"]
        kept = rows if key == "cause" else [r for r in rows if not r.cause.startswith("(")]
        sums = _sums(kept, key)
        for name, (a, b, _, d, e, _) in sums.items() if key == "cause" else sorted(sums.items()):
            text += [
                f"   * - ``{name}``",
                *(f"     - {x if x or y else '–'}" for x, y in ((a, a), (b, a), (d, d), (e, d))),
            ]
        text.append("")
    return "\n".join(text)
