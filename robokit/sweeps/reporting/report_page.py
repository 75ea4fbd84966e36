"""The report of a sweep as one HTML file."""

from __future__ import annotations

import base64
import html
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robokit.sweeps.reporting.column_data import (
    HIDDEN,
    About,
    column_data,
    first_choices,
)
from robokit.sweeps.reporting.held_rows import MOST_ROWS, Held, held_rows
from robokit.sweeps.reporting.rerun_data import RobotRows, rerun_data
from robokit.viewer.meshcat_page import meshcat_page
from robokit.viewer.page import (
    ASSETS,
    SCRIPTS,
    STYLES,
    filled,
    inline_script,
    joined,
    json_for_html,
    own_scripts,
)
from robokit.viewer.payload_keys import ReasonData, ReportData
from robokit.written_files import output_path, write_text

REPORT_SCRIPTS = (
    "base/util.js",
    "base/theme.js",
    "base/panels.js",
    "base/shortcuts.js",
    "live/engine.js",
    "report/rows.js",
    "report/filter_bar.js",
    "report/histogram.js",
    "report/drawing_marks.js",
    "report/scatter.js",
    "report/row_table.js",
    "report/row_inputs.js",
    "report/recording.js",
    "report/fall.js",
    "report/sweep_facts.js",
    "report/report.js",
)
"""The report's own scripts; those of the page of a fall come with that page."""

REPORT_STYLES = (
    "styles/theme.css",
    "styles/header.css",
    "styles/view.css",
    "styles/panels.css",
    "styles/shortcuts.css",
    "styles/narrow.css",
    "styles/report.css",
)

FIRST = {"peak_load": 0, "peak_force": 1, "greatest_speed": 2, "dissipated": 3, "penetration": 4}
"""Measures that readers ask for first."""


@dataclass(frozen=True)
class Report:
    """What a report is made of.

    Attributes:
        title: name of the sweep's folder.
        robots: names of the robots.
        numbers: of all rows, ascending, (n,).
        columns: of the table by name, (n,) each: numbers with NaN, or objects: texts with None.
        about: what is known of each column.
        rerun: makes the rows at these places ready to be run again, by robot.
        figures: label and text for the header.
        recipe: label and text, in words.
        openings: name of a program and the line that opens the table in it.
        command: what writes the page of a row without this page; ROW stands for the row's number.
    """

    title: str
    robots: Sequence[str]
    numbers: np.ndarray
    columns: Mapping[str, np.ndarray]
    about: Mapping[str, About]
    rerun: Sequence[RobotRows] = ()
    figures: Sequence[tuple[str, str]] = ()
    recipe: Sequence[tuple[str, str]] = ()
    openings: Sequence[tuple[str, str]] = ()
    command: str = ""
    held: Held | None = None


def held_of(columns: Mapping[str, np.ndarray], about: Mapping[str, About], most: int = MOST_ROWS) -> Held:
    """Places of the rows that the page of a table holds, and which these are, in words."""
    count = len(next(iter(columns.values())))
    failure = columns.get("failure")
    failed = (
        np.zeros(count, bool) if failure is None else np.array([x is not None and x != "" for x in failure])
    )
    measures = {
        name: values.astype(float)
        for name, values in columns.items()
        if values.dtype.kind in "fiu" and name in about and about[name].role == "measure"
    }
    return held_rows(count, measures, failed, most)


def report_html(report: Report) -> str:
    """The text of the page.

    Args:
        report: what it shows.
    """
    held = report.held or held_of(report.columns, report.about)
    places = held.places
    shown = [name for name in report.columns if name not in HIDDEN]
    columns = []
    for name in shown:
        values = report.columns[name]
        if name == "robot" and len(report.robots) < 2:
            continue
        made = column_data(name, values, report.about.get(name, About("measure")), places)
        if made.labels is None or made.labels:
            columns.append(made)
    columns.sort(key=lambda column: column.role != "parameter")
    sorted_by, across, up, tinted = first_choices(columns, FIRST)
    failure = report.columns.get("failure", np.zeros(0, dtype=object))
    texts = [str(x) for x in failure if x is not None and x != ""]
    reasons = [ReasonData(str(text), int(n)) for text, n in _counted(texts)]
    reruns, ran = [], 0
    for rows in report.rerun:
        again, count = rerun_data(rows)
        reruns.append(again)
        ran += count
    data = ReportData(
        title=report.title,
        robots=", ".join(report.robots),
        rows=len(report.numbers),
        held=len(places),
        sample=_sample(held, ran if report.rerun else None),
        figures=list(report.figures),
        recipe=list(report.recipe),
        openings=list(report.openings),
        numbers=_deflated(np.asarray(report.numbers[places], "<u4").tobytes()),
        columns=columns,
        sorted_by=sorted_by,
        across=across,
        up=up,
        tinted=tinted,
        reasons=reasons,
        page=_deflated(row_page().encode("utf-8")),
        command=report.command,
        reruns=reruns,
    )
    parts = {
        "title": html.escape(f"{report.title}: {len(report.numbers):,} falls"),
        "styles": joined(REPORT_STYLES),
        "page": own_scripts(REPORT_SCRIPTS),
        "data": json_for_html(data),
    }
    return filled("sweep_report.html", parts)


def _sample(held: Held, ran: int | None) -> str:
    """Which rows the page holds, and which of them it can run again; "" where it can all."""
    few = ran is not None and ran < len(held.places)
    again = f"{ran or 0:,} of them run again in the page".replace(",", " ")
    more = "those that failed or are most extreme first, the others at equal distances" if ran else ""
    parts = [held.sentence, f"{again}{': ' if more else ''}{more}." if few else ""]
    return " ".join(part for part in parts if part)


def write_html(report: Report, path: str | Path) -> Path:
    """Write the page.

    Args:
        report: what it shows.
        path: where to; ".html" is appended where there is no suffix.

    Returns:
        The path of the file.
    """
    path = output_path("path", path, ".html")
    write_text(path, report_html(report))
    return path


def row_page() -> str:
    """The page of a fall with the mark for its data, as the report fills it for each row."""
    parts = {
        "title": "A fall of the sweep",
        "physics": " 'wasm-unsafe-eval'; worker-src blob:",
        "styles": joined(STYLES),
        "meshcat": inline_script((meshcat_page() / "main.min.js").read_text(encoding="utf-8")),
        "uplot": inline_script((ASSETS / "vendor" / "uPlot.iife.min.js").read_text(encoding="utf-8")),
        "page": own_scripts(SCRIPTS),
        "data": "{{ data }}",
    }
    return filled("page.html", parts)


def _counted(texts: Sequence[str]) -> list[tuple[str, int]]:
    found, counts = np.unique(np.array(texts, dtype=str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(str(found[k]), int(counts[k])) for k in order]


def _deflated(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")
