"""From a sweep to its report: its table, its recipe in words, and its rows ready to be run again."""

from __future__ import annotations

import base64
import functools
import html
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import whole_number
from robokit.errors import RobokitError, one_line
from robokit.files import output_path, shell_word, write_text
from robokit.sim.driving.actuators import Actuator
from robokit.sim.driving.pushes import OutsideForces
from robokit.sim.ground import Ground
from robokit.sim.measuring.measure_table import BuiltIn, Column, measures
from robokit.sweeps.distributions import Choice, Constant, Distribution, Grid, Normal, Sobol, Uniform
from robokit.sweeps.parameters import parameter
from robokit.sweeps.recipe import Recipe, prepare_rows, rows_run_together, run_rows
from robokit.sweeps.report_columns import HIDDEN, About, column_data, first_choices
from robokit.sweeps.report_rows import MAX_ROWS, PageRows, RobotRows, RowStarts, page_rows, rerun_data
from robokit.sweeps.row_inputs import change_with_time
from robokit.sweeps.table import FAILURE, HASH
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

MAX_NUMBERS = 2_500_000
"""Values that a page holds: rows times columns."""


def write_report(sweep: Any, path: str | Path, rows: int | None = None, replay: bool = True) -> Path:
    """Write the report of a sweep as one HTML file.

    It shows the distributions of all parameters and measures, a scatter of any two, the rows by any measure
    and the failures with their reasons. A click on a row runs it again in the page, to the same bits.

    Args:
        sweep: the sweep.
        path: where to; ".html" is appended where there is no suffix.
        rows: how many rows the page holds; of more, it holds so many at equal distances, all that failed, and
            those with the largest and smallest values of each measure. The distributions count all rows.
            None for 100,000, or fewer where there are many columns.
        replay: whether rows run again in the page. Compiling their step for it takes some seconds the first
            time, for each robot.

    Returns:
        The path of the file.

    Raises:
        RobokitError: no row is computed yet.
        WriteError: the file cannot be written.
    """
    path = output_path("path", path, ".html")
    table = sweep.rows()
    if not table.num_rows:
        where = "FOLDER" if sweep.folder is None else shell_word(sweep.folder)
        raise RobokitError(f"the sweep has no rows yet; go on with it: robokit sweep --resume {where}")
    columns = dict(table.columns)
    about = {name: _about(sweep.recipe, name, table.units.get(name, "")) for name in columns}
    most = min(MAX_ROWS, max(1000, MAX_NUMBERS // len(columns)))
    held = page_rows_of_table(columns, about, most if rows is None else whole_number("rows", rows, 1))
    report = Report(
        title=_title(sweep),
        robots=list(sweep.recipe.robots),
        numbers=columns["row"],
        columns={name: values for name, values in columns.items() if name not in ("row", HASH)},
        about=about,
        rerun=list(_robots(sweep.recipe, columns, held)) if replay else [],
        figures=_figures(sweep, columns),
        recipe=recipe_words(sweep.recipe),
        openings=_openings(sweep),
        command=_command(sweep),
        held=held,
    )
    return write_html(report, path)


def _title(sweep: Any) -> str:
    return "Sweep" if sweep.folder is None else one_line(Path(sweep.folder).resolve().name)


def _command(sweep: Any) -> str:
    """What makes the page of a row outside of the report; ROW stands for its number."""
    if sweep.folder is None:
        return 'sweep.replay(ROW).to_html("row.html")'
    return f"robokit replay {shell_word(sweep.folder)} ROW"


def _about(recipe: Any, column: str, unit: str) -> About:
    """What is known of a column: from the table of parameters, else from that of measures."""
    if column in recipe.parameters:
        row = parameter(column)
        return About("parameter", row.unit, row.about)
    if column == FAILURE:
        return About("measure", "", "why the row failed")
    name, slash, of = column.partition("/")
    measure, known = _known().get(name + slash, (None, None))
    if measure is None or known is None:
        return About("measure", unit)
    text = f"{measure.text}: {known.text}" if not of else f"{of}: {known.text}"
    return About("measure", "" if " or " in known.unit else known.unit, text)


@functools.cache
def _known() -> dict[str, tuple[BuiltIn, Column]]:
    """Measures and their columns by the column's name, up to the link or joint that it is about."""
    found = {}
    for measure in measures.values():
        for column in measure.columns:
            head, slash, _ = column.name.partition("/")
            found[head + slash] = measure, column
    return found


def _figures(sweep: Any, columns: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
    recipe, count = sweep.recipe, len(columns["row"])
    failed = sum(x is not None for x in columns.get(FAILURE, ()))
    simulated = count * recipe.duration
    found = [("each", f"{recipe.duration:g} s"), ("simulated", _time(simulated)), ("failed", f"{failed:,}")]
    if count < recipe.count:
        found.insert(0, ("computed", f"{count:,} of {recipe.count:,}"))
    return [(label, text.replace(",", " ")) for label, text in found]


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"


def _openings(sweep: Any) -> list[tuple[str, str]]:
    """How other programs open the table."""
    found = []
    if sweep.folder is not None:
        chunks, files = f"{sweep.folder}/chunks", f"{sweep.folder}/chunks/*.parquet"
        found = [
            ("pandas", f"pandas.read_parquet({_literal(chunks)})"),
            ("polars", f"polars.read_parquet({_literal(files)})"),
            ("DuckDB", "SELECT * FROM '{}'".format(one_line(files, len(files)).replace("'", "''"))),
            ("robokit", f"rk.open_sweep({_literal(str(sweep.folder))}).table()"),
        ]
    return found


def _literal(text: str) -> str:
    """The text as Python's source has it."""
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)


def _robots(recipe: Any, columns: Mapping[str, np.ndarray], held: PageRows) -> Iterator[RobotRows]:
    """The rows of the page by robot, ready to be run again."""
    places = held.places
    values = {name: columns[name][places] for name in recipe.parameters}
    numbers = columns["row"][places].astype(np.uint64)
    for name, mine in rows_run_together(recipe, values, len(places)):
        own = {key: x[mine] for key, x in values.items()}

        steps = max(1, round(recipe.duration / recipe.dt[name]))

        def started(
            part: np.ndarray, name: str = name, own: Any = own, mine: Any = mine, steps: int = steps
        ) -> RowStarts:
            some = {key: x[part] for key, x in own.items()}
            runs = prepare_rows(recipe, name, numbers[mine][part], some)
            outside = OutsideForces(runs.robot, runs.pushes, recipe.dt[name], steps) if runs.pushes else None
            return RowStarts(run_rows(recipe, name, replace(runs, pushes=[]), steps=0), outside)

        yield RobotRows(
            name=name,
            robot=recipe.robots[name].shown(),
            dt=recipe.dt[name],
            steps=steps,
            places=mine,
            special=np.isin(places[mine], held.special),
            started=started,
            parameters=own,
            hashes=columns[HASH][places][mine].astype(np.uint64),
            problem="the targets of its actuators change with time"
            if change_with_time(recipe.robots[name].actuators)
            else "",
        )


# ---- the HTML file ---------------------------------------------------------------------------------------

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
    held: PageRows | None = None


def page_rows_of_table(
    columns: Mapping[str, np.ndarray], about: Mapping[str, About], most: int = MAX_ROWS
) -> PageRows:
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
    return page_rows(count, measures, failed, most)


def report_html(report: Report) -> str:
    """The text of the page.

    Args:
        report: what it shows.
    """
    held = report.held or page_rows_of_table(report.columns, report.about)
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


def _sample(held: PageRows, ran: int | None) -> str:
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


# ---- the recipe in words ---------------------------------------------------------------------------------

MAX_VALUES = 8
"""Values of a list that are named."""


def recipe_words(recipe: Recipe) -> list[tuple[str, str]]:
    """Label and text of each part of a recipe."""
    found = []
    for name, record in recipe.robots.items():
        robot = record.robot
        size = f"{robot.total_mass:.4g} kg, {robot.nv} dof, {robot.base} base"
        found.append(("robot", f"{name}: {size}, step {1000 * recipe.dt[name]:.4g} ms"))
    for record in recipe.robots.values():
        found += [("actuators", ", ".join(map(actuator_words, record.actuators)))] if record.actuators else []
    found.append(("rows", f"{recipe.count:,} of {recipe.duration:g} s each".replace(",", " ")))
    standing = all(recipe.standing.values())
    found.append(("start", "standing" if standing else "the configurations that were given"))
    for name, given in recipe.parameters.items():
        found.append((name.replace("_", " "), distribution_words(given, parameter(name).unit)))
    found.append(("ground", ground_words(recipe.ground, "friction" in recipe.parameters)))
    options = {key: value for key, value in recipe.options.items() if value not in (None, False)}
    found += [
        (key.replace("_", " "), "yes" if value is True else str(value)) for key, value in options.items()
    ]
    found.append(("seed", str(recipe.seed)))
    made = {name: version for name, version in recipe.versions.items() if name not in ("processor", "source")}
    found.append(("made with", ", ".join(f"{name} {version}" for name, version in made.items())))
    found += [("made on", recipe.versions[name]) for name in ("processor",) if name in recipe.versions]
    found.append(("recipe", recipe.hash[:16]))
    return found


def distribution_words(given: Distribution, unit: str) -> str:
    """A distribution in words; angles in degrees."""
    scale, unit = (180.0 / math.pi, unit.replace("rad", "°")) if unit in ("rad", "rad/s") else (1.0, unit)

    def number(x: Any) -> str:
        return str(x) if isinstance(x, str) else f"{scale * float(x):.4g}".replace("-", "−")

    tail = f" {unit}" if unit and not unit.startswith("°") else unit
    if isinstance(given, Sobol | Uniform):
        how = "Sobol sequence" if isinstance(given, Sobol) else "uniform"
        return f"{how}, {number(given.low)} to {number(given.high)}{tail}"
    if isinstance(given, Normal):
        ends = [f"from {number(given.low)}"] if given.low is not None else []
        ends += [f"up to {number(given.high)}"] if given.high is not None else []
        cut = f", {' '.join(ends)}{tail}" if ends else ""
        return f"normal, {number(given.mean)} ± {number(given.deviation)}{tail}{cut}"
    if isinstance(given, Constant):
        return f"{number(given.value)}{tail}"
    values = given.values() or []
    several = [number(x) for x in values[:MAX_VALUES]] + (["…"] if len(values) > MAX_VALUES else [])
    if isinstance(given, Grid):
        return f"grid of {len(values)}: {', '.join(several)}{tail}"
    if isinstance(given, Choice) and given.weights is not None:
        total = sum(given.weights)
        pairs = zip(several, given.weights, strict=False)
        return "one of " + ", ".join(f"{value} ({100 * weight / total:.3g} %)" for value, weight in pairs)
    return f"one of {', '.join(several)}{tail}"


def actuator_words(given: Actuator) -> str:
    """An actuator in words: its kind, its joints, and the gains that are one number."""
    kind = {"PD": "position servo", "Velocity": "velocity servo", "Torque": "given force"}[
        type(given).__name__
    ]
    gains = {name: getattr(given, name) for name in given.gains}
    words = [f"{name} {x:.4g}" for name, x in gains.items() if isinstance(x, int | float)]
    where = "all joints" if given.joints is None else ", ".join(given.joints)
    return f"{kind} on {where}" + f" ({', '.join(words)})" * bool(words)


def ground_words(ground: Ground | None, drawn: bool = False) -> str:
    """What the robots fall on, in words; without its friction where rows have their own."""
    if ground is None:
        return "none: free flight"
    parts = []
    if ground.plane:
        tilted = "" if ground.horizontal else f", normal ({', '.join(f'{x:.3g}' for x in ground.up)})"
        parts.append(f"a plane{tilted}")
    if ground.terrain is not None:
        parts.append("a height field")
    if ground.shapes:
        parts.append(f"{len(ground.shapes)} solids")
    mu = ground.friction
    friction = f", friction {float(mu):.3g}" if isinstance(mu, int | float) and not drawn else ""
    return " and ".join(parts) + friction
