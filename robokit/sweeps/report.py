"""The report of a sweep: one HTML file that shows all rows, and runs each again."""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import whole_number
from robokit.contact.measures import Column, Monitor, measures
from robokit.errors import RobokitError, one_line
from robokit.files import output_path, shell_word, write_text
from robokit.sim.actuators import Actuator
from robokit.sim.ground import Ground
from robokit.sim.pushes import OutsideForces
from robokit.sweeps.distributions import Choice, Constant, Distribution, Grid, Normal, Sobol, Uniform
from robokit.sweeps.parameters import ROBOT, parameter
from robokit.sweeps.recipe import Recipe, prepare_rows, rows_run_together, run_rows
from robokit.sweeps.report_rows import (
    MAX_ROWS,
    PageRows,
    RobotRows,
    RowStarts,
    deflate_text,
    in_planes,
    page_rows,
    rerun_data,
)
from robokit.sweeps.row_inputs import change_with_time
from robokit.sweeps.table import FAILURE, HASH, RowTable
from robokit.viewer.page import (
    ASSETS,
    SCRIPTS,
    STYLES,
    filled,
    inline_script,
    joined,
    json_for_html,
    meshcat_page,
    own_scripts,
)
from robokit.viewer.payload_keys import ColumnData, ReasonData, ReportData

MAX_NUMBERS = 2_500_000
"""Values that a page holds: rows times columns."""

MAX_VALUES = 8
"""Values of a list that the recipe names in words."""

REPORT_SCRIPTS = (
    *("base/util.js", "base/theme.js", "base/panels.js", "base/shortcuts.js", "live/engine.js"),
    *("report/rows.js", "report/filter_bar.js", "report/histogram.js", "report/drawing_marks.js"),
    *("report/scatter.js", "report/row_table.js", "report/row_inputs.js", "report/recording.js"),
    *("report/fall.js", "report/sweep_facts.js", "report/report.js"),
)
"""The report's own scripts; those of the page of a fall come with that page."""

REPORT_STYLES = tuple(
    f"styles/{name}.css" for name in ("theme", "header", "view", "panels", "shortcuts", "narrow", "report")
)

FIRST = {"peak_load": 0, "peak_force": 1, "greatest_speed": 2, "dissipated": 3, "penetration": 4}
"""Measures that readers ask for first."""


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
    data = report_data(sweep, rows, replay)
    parts = {
        "title": html.escape(f"{data.title}: {data.rows:,} falls"),
        "styles": joined(REPORT_STYLES),
        "page": own_scripts(REPORT_SCRIPTS),
        "data": json_for_html(data),
    }
    write_text(path, filled("sweep_report.html", parts))
    return path


def report_data(sweep: Any, rows: int | None, replay: bool) -> ReportData:
    """What the page of a sweep gets; arguments and errors as those of :func:`write_report`."""
    table, recipe = sweep.rows(), sweep.recipe
    if not table.num_rows:
        where = "FOLDER" if sweep.folder is None else shell_word(sweep.folder)
        raise RobokitError(f"the sweep has no rows yet; go on with it: robokit sweep --resume {where}")
    infos = {name: _column_info(recipe, name, table.units.get(name, "")) for name in table.columns}
    failures = [why for why in table[FAILURE] if why]
    most = min(MAX_ROWS, max(1000, MAX_NUMBERS // len(infos)))
    held = _page_rows(table, infos, most if rows is None else whole_number("rows", rows, 1))
    columns = [
        column_data(name, values, infos[name], held.places)
        for name, values in table.columns.items()
        if name not in HIDDEN and (name != ROBOT or len(recipe.robots) > 1)
    ]
    columns = [column for column in columns if column.labels is None or column.labels]
    columns.sort(key=lambda column: column.role != "parameter")
    sorted_by, across, up, tinted = first_choices(columns, FIRST)
    reruns = [rerun_data(each) for each in _robot_rows(recipe, table, held)] if replay else []
    return ReportData(
        title="Sweep" if sweep.folder is None else one_line(Path(sweep.folder).resolve().name),
        robots=", ".join(recipe.robots),
        rows=table.num_rows,
        held=len(held.places),
        sample=_sample(held, sum(count for _, count in reruns) if reruns else None),
        figures=_figures(recipe, table.num_rows, len(failures)),
        recipe=recipe_words(recipe),
        openings=[] if sweep.folder is None else _openings(str(sweep.folder)),
        numbers=deflate_text(np.asarray(table["row"][held.places], "<u4").tobytes()),
        columns=columns,
        sorted_by=sorted_by,
        across=across,
        up=up,
        tinted=tinted,
        reasons=[ReasonData(why, count) for why, count in _most_frequent_first(failures)],
        page=deflate_text(row_page().encode("utf-8")),
        command=_row_command(sweep.folder),
        reruns=[data for data, _ in reruns],
    )


def _page_rows(table: RowTable, infos: Mapping[str, ColumnInfo], most: int) -> PageRows:
    """Places of the rows that the page of a table holds, and which these are, in words."""
    failed = np.array([bool(why) for why in table[FAILURE]])
    measures = {
        name: values.astype(float)
        for name, values in table.columns.items()
        if values.dtype.kind in "fiu" and infos[name].role == "measure" and name not in ("row", HASH)
    }
    return page_rows(table.num_rows, measures, failed, most)


def _column_info(recipe: Recipe, column: str, unit: str) -> ColumnInfo:
    """What is known of a column: from the table of parameters, else from that of measures."""
    if column in recipe.parameters:
        row = parameter(column)
        return ColumnInfo("parameter", row.unit, row.about)
    if column == FAILURE:
        return ColumnInfo("measure", "", "why the row failed")
    name, slash, of = column.partition("/")
    measure, known = _measures_by_column().get(name + slash, (None, None))
    if measure is None or known is None:
        return ColumnInfo("measure", unit)
    text = f"{measure.text}: {known.text}" if not of else f"{of}: {known.text}"
    return ColumnInfo("measure", "" if " or " in known.unit else known.unit, text)


@functools.cache
def _measures_by_column() -> dict[str, tuple[Monitor, Column]]:
    """Measures and their columns by the column's name, up to the link or joint that it is about."""
    columns = {}
    for measure in measures.values():
        for column in measure.columns:
            head, slash, _ = column.name.partition("/")
            columns[head + slash] = measure, column
    return columns


def _figures(recipe: Recipe, count: int, failed: int) -> list[tuple[str, str]]:
    """Label and text of each figure in the header."""
    simulated = _time_text(count * recipe.duration)
    figures = [("each", f"{recipe.duration:g} s"), ("simulated", simulated), ("failed", f"{failed:,}")]
    if count < recipe.count:
        figures.insert(0, ("computed", f"{count:,} of {recipe.count:,}"))
    return [(label, text.replace(",", " ")) for label, text in figures]


def _time_text(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"


def _row_command(folder: Path | None) -> str:
    """What makes the page of a row outside of the report; ROW stands for its number."""
    if folder is None:
        return 'sweep.replay(ROW).to_html("row.html")'
    return f"robokit replay {shell_word(folder)} ROW"


def _openings(folder: str) -> list[tuple[str, str]]:
    """Name of each program that opens the table, and the line that does it."""
    files = f"{folder}/chunks/*.parquet"
    return [
        ("pandas", f"pandas.read_parquet({_literal(f'{folder}/chunks')})"),
        ("polars", f"polars.read_parquet({_literal(files)})"),
        ("DuckDB", "SELECT * FROM '{}'".format(one_line(files, len(files)).replace("'", "''"))),
        ("robokit", f"rk.open_sweep({_literal(folder)}).table()"),
    ]


def _literal(text: str) -> str:
    """The text as Python's source has it."""
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)


def _robot_rows(recipe: Recipe, table: RowTable, held: PageRows) -> Iterator[RobotRows]:
    """The rows of the page by robot, ready to be run again."""
    rows = table.take(held.places)
    values = {name: rows[name] for name in recipe.parameters}
    numbers = rows["row"].astype(np.uint64)
    for name, places in rows_run_together(recipe, values, rows.num_rows):
        own = {key: x[places] for key, x in values.items()}

        def start(part: np.ndarray, name: str = name, own: Any = own, places: Any = places) -> RowStarts:
            some = {key: x[part] for key, x in own.items()}
            runs = prepare_rows(recipe, name, numbers[places][part], some)
            dt, steps = recipe.dt[name], recipe.steps(name)
            pushes = OutsideForces(runs.robot, runs.pushes, dt, steps) if runs.pushes else None
            return RowStarts(run_rows(recipe, name, replace(runs, pushes=[]), steps=0), pushes)

        moving = change_with_time(recipe.robots[name].actuators)
        yield RobotRows(
            name=name,
            robot=recipe.robots[name].with_meshes(),
            dt=recipe.dt[name],
            steps=recipe.steps(name),
            places=places,
            special=np.isin(held.places[places], held.special),
            start=start,
            parameters=own,
            hashes=rows[HASH][places],
            problem="the targets of its actuators change with time" if moving else "",
        )


def _sample(held: PageRows, runnable: int | None) -> str:
    """Which rows the page holds, and which of them it can run again; "" where it can all."""
    few = runnable is not None and runnable < len(held.places)
    again = f"{runnable or 0:,} of them run again in the page".replace(",", " ")
    more = ": those that failed or are most extreme first, the others at equal distances" if runnable else ""
    return " ".join(part for part in (held.sentence, f"{again}{more}." if few else "") if part)


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


def _most_frequent_first(texts: Sequence[str]) -> list[tuple[str, int]]:
    different, counts = np.unique(np.array(texts, dtype=str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(str(different[k]), int(counts[k])) for k in order]


# ---- the recipe in words -----------------------------------------------------------------------


def recipe_words(recipe: Recipe) -> list[tuple[str, str]]:
    """Label and text of each part of a recipe."""
    words = []
    for name, record in recipe.robots.items():
        robot = record.robot
        size = f"{robot.total_mass:.4g} kg, {robot.nv} dof, {robot.base} base"
        words.append(("robot", f"{name}: {size}, step {1000 * recipe.dt[name]:.4g} ms"))
    for record in recipe.robots.values():
        if record.actuators:
            words.append(("actuators", ", ".join(map(actuator_words, record.actuators))))
    words.append(("rows", f"{recipe.count:,} of {recipe.duration:g} s each".replace(",", " ")))
    standing = all(recipe.standing.values())
    words.append(("start", "standing" if standing else "the configurations that were given"))
    for name, values in recipe.parameters.items():
        words.append((name.replace("_", " "), distribution_words(values, parameter(name).unit)))
    words.append(("ground", ground_words(recipe.ground, "friction" in recipe.parameters)))
    for key, value in recipe.options.items():
        if value not in (None, False):
            words.append((key.replace("_", " "), "yes" if value is True else str(value)))
    words.append(("seed", str(recipe.seed)))
    tools = [f"{name} {x}" for name, x in recipe.versions.items() if name not in ("processor", "source")]
    words.append(("made with", ", ".join(tools)))
    if "processor" in recipe.versions:
        words.append(("made on", recipe.versions["processor"]))
    return [*words, ("recipe", recipe.hash[:16])]


def distribution_words(values: Distribution, unit: str) -> str:
    """A distribution in words; angles in degrees."""
    scale, unit = (180.0 / math.pi, unit.replace("rad", "°")) if unit in ("rad", "rad/s") else (1.0, unit)

    def number(x: Any) -> str:
        return str(x) if isinstance(x, str) else f"{scale * float(x):.4g}".replace("-", "−")

    tail = f" {unit}" if unit and not unit.startswith("°") else unit
    if isinstance(values, Uniform):
        how = "Sobol sequence" if isinstance(values, Sobol) else "uniform"
        return f"{how}, {number(values.low)} to {number(values.high)}{tail}"
    if isinstance(values, Normal):
        ends = [f"from {number(values.low)}"] if values.low is not None else []
        ends += [f"up to {number(values.high)}"] if values.high is not None else []
        cut = f", {' '.join(ends)}{tail}" if ends else ""
        return f"normal, {number(values.mean)} ± {number(values.deviation)}{tail}{cut}"
    if isinstance(values, Constant):
        return f"{number(values.value)}{tail}"
    every = values.values() or []
    several = [number(x) for x in every[:MAX_VALUES]] + (["…"] if len(every) > MAX_VALUES else [])
    if isinstance(values, Grid):
        return f"grid of {len(every)}: {', '.join(several)}{tail}"
    if isinstance(values, Choice) and values.weights is not None:
        total = sum(values.weights)
        pairs = zip(several, values.weights, strict=False)
        return "one of " + ", ".join(f"{value} ({100 * weight / total:.3g} %)" for value, weight in pairs)
    return f"one of {', '.join(several)}{tail}"


def actuator_words(actuator: Actuator) -> str:
    """An actuator in words: its kind, its joints, and the gains that are one number."""
    kinds = {"PD": "position servo", "Velocity": "velocity servo", "Torque": "given force"}
    gains = {name: getattr(actuator, name) for name in actuator.gains}
    words = [f"{name} {x:.4g}" for name, x in gains.items() if isinstance(x, int | float)]
    where = "all joints" if actuator.joints is None else ", ".join(actuator.joints)
    return f"{kinds[type(actuator).__name__]} on {where}" + f" ({', '.join(words)})" * bool(words)


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


# ---- the columns -----------------------------------------------------------------------------------------

BINS = 48
"""Bins of a histogram: at most so many, and at least half as many."""

MAX_TICKS = 20 * BINS
"""A column with more different values among its first MAX_VALUES_SEEN rows counts as continuous."""

MAX_VALUES_SEEN = 100_000

EQUAL_TOLERANCE = 1e-12
"""Numbers that differ by a smaller share of themselves are one number."""

LARGEST = 1e38
"""Larger numbers, as of rows that explode, are shown as this one: pages hold single precision."""

MAX_LABELS = 40
"""Texts that a column of texts keeps by name, the most frequent; the others are "other"."""

HIDDEN = ("row", "final_hash", "state_hash", "seed")
"""Columns that say nothing to a reader."""


@dataclass(frozen=True)
class ColumnInfo:
    """What is known of a column besides its values.

    Attributes:
        role: "parameter" or "measure".
        unit: of the values.
        text: what it is, in one line.
    """

    role: str
    unit: str = ""
    text: str = ""


def display_unit(values: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    """Values in the unit of the report: angles in degrees."""
    if unit in ("rad", "rad/s"):
        return np.degrees(values), unit.replace("rad", "°")
    return values, unit


def column_data(name: str, values: np.ndarray, about: ColumnInfo, held: np.ndarray) -> ColumnData:
    """A column of the report.

    Args:
        name: of the column.
        values: of all rows: numbers with NaN, or an object array of texts with None.
        about: role, unit, and what it is.
        held: places of the rows that the page holds.
    """
    title = name.replace("_", " ").replace(":", ": ").replace("/", ": ")
    if values.dtype.kind not in "fiub":
        return _labels(name, title, values, about, held)
    whole = values.dtype.kind != "f"
    numbers, unit = display_unit(values.astype(np.float64), about.unit)
    numbers = np.where(np.isfinite(numbers), np.clip(numbers, -LARGEST, LARGEST), np.nan)
    known = numbers[np.isfinite(numbers)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, -1.0)
    if high - low <= EQUAL_TOLERANCE * max(abs(low), abs(high)):
        high = low if len(known) else high  # the same number but for rounding: no bins lie between
    counts = np.array([len(known)])
    if high > low:
        counts = np.histogram(known, bins_of(known, low, high), (low, high))[0]
    whole = whole or bool(len(known) and np.array_equal(known, np.round(known)) and abs(high) < 1e9)
    singles = numbers[held].astype(np.float32)
    if not whole:
        singles = five_digits(singles)
    return ColumnData(
        name, title, unit, about.text, about.role, None, in_planes(singles), low, high,
        [int(n) for n in counts], int(len(values) - len(known)), whole,
    )  # fmt: skip


def bins_of(known: np.ndarray, low: float, high: float) -> int:
    """So many bins that each holds as many of the values that occur: times come in steps of the run.

    Args:
        known: the values.
        low, high: the least and the largest of them, which differ.
    """
    ticks = np.unique(known[:MAX_VALUES_SEEN].astype(np.float32))
    if not BINS // 2 <= len(ticks) <= min(MAX_TICKS, len(known) // 4):
        return BINS
    uneven = {m: np.histogram(ticks, m, (low, high))[0].std() * m for m in range(BINS, BINS // 2 - 1, -1)}
    return min(uneven, key=lambda m: uneven[m])


def five_digits(values: np.ndarray) -> np.ndarray:
    """Single numbers rounded to a share of 2e-5 of each: their lowest bytes are 0 and take no room."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x80)) & np.uint32(0xFFFFFF00)
    return np.where(np.isfinite(values), rounded, bits).astype(np.uint32).view(np.float32)


def _labels(name: str, title: str, values: np.ndarray, about: ColumnInfo, held: np.ndarray) -> ColumnData:
    texts = np.array(["" if x is None else str(x) for x in values], dtype=object)
    found, codes, counts = np.unique(texts.astype(str), return_inverse=True, return_counts=True)
    order = [k for k in np.argsort(-counts, kind="stable") if found[k]]
    place = np.full(len(found), np.nan)
    labels = [str(found[k]) for k in order[:MAX_LABELS]]
    place[order[:MAX_LABELS]] = np.arange(len(labels))
    if len(order) > MAX_LABELS:
        labels.append("other")
        place[order[MAX_LABELS:]] = MAX_LABELS
    every = place[codes]
    known = every[np.isfinite(every)].astype(np.int64)
    binned = np.bincount(known, minlength=len(labels)) if labels else np.zeros(0, np.int64)
    return ColumnData(
        name, title, "", about.text, about.role, labels, in_planes(every[held].astype(np.float32)),
        0.0, float(max(0, len(labels) - 1)), [int(n) for n in binned], int(np.isnan(every).sum()), True,
    )  # fmt: skip


def first_choices(columns: list[ColumnData], measures: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Columns that the report shows first: sorted by, across, up, colour.

    Args:
        columns: of the report.
        measures: what a reader most likely asks for, by name: the smaller the number, the sooner.
    """
    spread = [k for k, c in enumerate(columns) if c.labels is None and c.high > c.low]
    own = sorted(
        (k for k in spread if columns[k].role == "measure"),
        key=lambda k: measures.get(columns[k].name, math.inf),
    )
    inputs = [k for k in spread if columns[k].role == "parameter"]
    ranked = own or inputs
    up = ranked[0] if ranked else 0
    across = next((k for k in [*inputs, *ranked[1:]] if k != up), up)
    tinted = next((k for k in [*inputs[1:], *ranked[1:]] if k not in (up, across)), -1)
    return up, across, up, tinted
