"""The directive `.. versions::`: figures of benchmarks/versions.json, a line a robot."""

from __future__ import annotations

import json
from statistics import median

from generated import ROOT, Generated, table
from sphinx.application import Sphinx

PLACE = ROOT / "benchmarks" / "versions.json"


def ratios(rows: list[dict], what: str) -> str:
    """Median and least of the time before over the time now."""
    found = [row["before"][what] / row["now"][what] for row in rows]
    return f"{median(found):.2f} (least {min(found):.2f})"


class Versions(Generated):
    """What was measured of two versions."""

    def rest(self) -> list[str]:
        """The table, and a sentence on what was measured."""
        found = json.loads(self.reads(PLACE).read_text(encoding="utf-8"))
        robots: dict[str, list[dict]] = {}
        for place, row in found["rows"].items():
            if "left out" not in row:
                robots.setdefault(place.rpartition(", ")[0], []).append(row)
        lines = []
        for robot, rows in robots.items():
            first = [f"{median(row[v]['first'] for row in rows):.2f}" for v in ("before", "now")]
            longest = f"{max(row['now']['first'] for row in rows):.1f}"
            steady = [ratios(rows, what) for what in ("single", "batch")]
            lines.append([robot, str(len(rows)), " / ".join(first), longest, *steady])
        heads = "robot", "functions", "first call [s]", "longest [s]", "one state", "batch"
        said = f"commit {found['before']} beside those of {found['date']}, {found['machine']}."
        return [*table(heads, lines), "", f"``python benchmarks/versions.py {found['before']}``; {said}", ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("versions", Versions)
    return {"parallel_read_safe": True}
