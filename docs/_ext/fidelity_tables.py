"""Figures of benchmarks/fidelity.py and gates.py.

`.. fidelity-summary::`, `.. fidelity-misses::`, `.. fidelity:: Rest`; `.. gates:: single batch` shows the
rows of gates.json whose names begin with one of the words, with `:wanted:` also what is wanted and whether
it is met.
"""

from __future__ import annotations

import json
import sys
from typing import Any, ClassVar

from docutils.parsers.rst import directives
from generated import ROOT, Generated, table
from sphinx.application import Sphinx

sys.path.append(str(ROOT / "benchmarks"))

from targets import met

PLACE = ROOT / "benchmarks" / "fidelity.json"
GATES = ROOT / "benchmarks" / "gates.json"
MARK = {True: "yes", False: "**no**", None: ""}


def number(x: Any) -> str:
    """A measured figure, None as nothing."""
    if x is None or isinstance(x, str):
        return x or ""
    return f"{x:,.0f}" if abs(x) >= 1e3 and abs(x) < 1e7 else f"{x:.3g}"


def wanted(figure: dict[str, Any]) -> str:
    """What is wanted, as text."""
    least, most = figure["least"], figure["most"]
    if least is not None and most is not None:
        return f"{number(least)} to {number(most)}"
    return f"≥ {number(least)}" if least is not None else f"≤ {number(most)}" if most is not None else ""


def figures(entry: dict[str, Any]) -> list[str]:
    """The table of a case; columns that would be empty are left out."""
    rows = entry.get("figures") or []
    columns = {"wanted": wanted, "before": None, "robokit": None, "met": None, "mujoco": None, "stiff": None}
    heads = {"before": "before", "met": "met", "mujoco": "MuJoCo", "stiff": "MuJoCo, stiff"}
    cells: dict[str, list[str]] = {}
    for key, text in columns.items():
        if key == "met":
            cells[key] = [MARK[row["met"]] for row in rows]
        else:
            cells[key] = [text(row) if text else number(row.get(key)) for row in rows]
    shown = [key for key in columns if any(cells[key])]
    if not shown:
        return []
    body = [
        [f"{row['what']}" + (f" [{row['unit']}]" if row["unit"] else ""), *(cells[key][k] for key in shown)]
        for k, row in enumerate(rows)
    ]
    return table(("", *(heads.get(key, key) for key in shown)), body)


def measured(entry: dict[str, Any]) -> bool:
    """Whether the case has figures of the step as it is, not only of the one before."""
    now = ("robokit", "mujoco", "stiff")
    return any(row[who] is not None for row in entry.get("figures", ()) for who in now)


def verdict(entry: dict[str, Any]) -> tuple[str, str]:
    """In a word, and how many figures are as wanted."""
    if "missing" in entry:
        return "not yet possible", entry["missing"]
    if "failed" in entry:
        return "failed", entry["failed"]
    if not measured(entry):
        return "", "not measured yet"
    met = [row["met"] for row in entry["figures"] if row["met"] is not None]
    if not met:
        return "", "measured, nothing wanted"
    return "holds" if all(met) else "**misses**", f"{sum(met)} of {len(met)}"


class Summary(Generated):
    """All cases, each in a line."""

    def rest(self) -> list[str]:
        """Who measured, and the table."""
        found = json.loads(self.reads(PLACE).read_text(encoding="utf-8"))
        rows = [[entry["title"], *verdict(entry), name] for name, entry in found["cases"].items()]
        when: dict[str, set[str]] = {}
        for entry in found["cases"].values():
            when.setdefault(entry["date"], set()).add(entry["commit"])
        days = "; ".join(f"{date}: commits {', '.join(sorted(when[date]))}" for date in sorted(when))
        made = f"{found['machine']}; {days}."
        past = found["before"]
        made += f" *Before* is the step of falls that this one replaced, {past['first']} to {past['last']}."
        return [made, "", *table(("case", "", "figures as wanted", "``--case``"), rows)]


class Misses(Generated):
    """All figures that are not as wanted, and what is not possible yet."""

    def rest(self) -> list[str]:
        """The table, or a sentence."""
        found = json.loads(self.reads(PLACE).read_text(encoding="utf-8"))
        rows = []
        for name, entry in found["cases"].items():
            for key in ("missing", "failed"):
                if key in entry:
                    rows.append([f"``{name}``", entry[key], "", key])
            for row in entry.get("figures", ()):
                if row["met"] is False:
                    unit = f" {row['unit']}" if row["unit"] else ""
                    rows.append(
                        [f"``{name}``", row["what"], wanted(row) + unit, number(row["robokit"]) + unit]
                    )
        if rows:
            return table(("case", "", "wanted", "robokit"), rows)
        whole = all(measured(entry) for entry in found["cases"].values())
        return ["Nothing." if whole else "Nothing of what has been measured.", ""]


class Topic(Generated):
    """The cases of one topic: what they are, their figures and pictures."""

    required_arguments = 1

    def rest(self) -> list[str]:
        """The lines."""
        found = json.loads(self.reads(PLACE).read_text(encoding="utf-8"))
        lines: list[str] = []
        for name, entry in found["cases"].items():
            if entry["topic"] != self.arguments[0]:
                continue
            lines += [f".. rubric:: {entry['title']}", "", f"{entry['about']} (``--case {name}``)", ""]
            if entry.get("quick"):
                lines += ["*A quick look: fewer and shorter runs.*", ""]
            for key, words in (("missing", "Not yet possible"), ("failed", "Failed")):
                if key in entry:
                    lines += [f"**{words}**: {entry[key]}.", ""]
            lines += figures(entry)
            for plot in entry.get("plots", ()):
                picture = f"fidelity_{plot['name']}.svg"
                if measured(entry) and (ROOT / "docs" / "_static" / picture).exists():
                    lines += [f".. image:: /_static/{picture}", f"   :alt: {plot['title']}", ""]
            for note in entry.get("notes", ()):
                lines += [note, ""]
        return lines


class Gates(Generated):
    """What steps, batches, first runs and calls cost."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"wanted": directives.flag}

    def rest(self) -> list[str]:
        """Who measured, and the table."""
        found = json.loads(self.reads(GATES).read_text(encoding="utf-8"))
        self.reads(ROOT / "benchmarks" / "targets.py")
        past, rows, goals = found["before"], [], "wanted" in self.options
        heads = (
            "",
            *(["wanted", "before"] if goals else []),
            "robokit",
            *(["met"] if goals else []),
            "MuJoCo",
        )
        for name, row in found["rows"].items():
            if name.split()[0].strip(",") not in self.arguments[0].split():
                continue
            figures = {"before": past["rows"].get(name), **row.get("figures", {})}
            columns = [figures.get(who) for who in ("before", "robokit", "mujoco")]
            several = next((list(x) for x in reversed(columns[:2]) if isinstance(x, dict)), None)
            for key in several or [""]:
                of = [x.get(key) if isinstance(x, dict) else x for x in columns] if several else columns
                what = f"{name}: {key}" if several else f"{name} [{row['unit']}]"
                cells = dict(zip(("before", "robokit", "MuJoCo"), map(number, of), strict=True))
                cells |= {"wanted": goal(row["wanted"]), "met": MARK[met(row["wanted"], *of[:2])]}
                rows.append([what, *(cells[head] for head in heads[1:])])
        made = f"``python benchmarks/gates.py``; {found['machine']}"
        made += f", commit {found['commit']}, {found['date']}." if found["commit"] else "; not measured yet."
        made += f" *Before*: commit {past['commit']}, {past['date']}, {past['machine']}." if goals else ""
        return [*table(heads, rows), "", made, ""]


def goal(text: str) -> str:
    """What is wanted of a row of gates.json, as text."""
    words = {"<=": "≤", ">=": "≥", "x": "× before"}
    return " ".join(words.get(word, word) for word in text.split())


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("fidelity-summary", Summary)
    app.add_directive("fidelity-misses", Misses)
    app.add_directive("fidelity", Topic)
    app.add_directive("gates", Gates)
    return {"parallel_read_safe": True}
