"""The report of a sweep: one HTML file that shows all rows, and runs each again."""

from __future__ import annotations

import base64
import functools
import html
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import whole_number
from robokit.contact.measures import Column, Monitor, measures
from robokit.dataclass_tools import frozen
from robokit.errors import RobokitError, one_line
from robokit.files import output_path, shell_word, write_text
from robokit.model.robot import Robot
from robokit.sim.actuators import Actuator
from robokit.sim.force_elements import OutsideForces
from robokit.sim.ground import Ground
from robokit.sim.rollouts import Rollout
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import differ, first_carried, row_numbers, scene_of
from robokit.sweeps.distributions import Choice, Constant, Distribution, Grid, Normal, Sobol, Uniform
from robokit.sweeps.parameters import ROBOT, change_with_time, parameter
from robokit.sweeps.recipe import Recipe, prepare_rows, rows_run_together, run_rows
from robokit.sweeps.table import FAILURE, HASH, RowTable
from robokit.viewer.live_data import live_data_of
from robokit.viewer.motion_data import deflated
from robokit.viewer.page import WORKER as LIVE_WORKER
from robokit.viewer.page import filled, joined, json_for_html, own_scripts, page_of
from robokit.viewer.payload import motionless_payload
from robokit.viewer.payload_keys import ColumnData, InputData, PartData, ReasonData, ReportData, RerunData

# ==== The rows of a report: which of them it holds, and what the page needs to run them again =====

WORKER = (*LIVE_WORKER[:-1], "live/rerun.js", LIVE_WORKER[-1])
"""The page's Worker, which also takes whole runs."""

BLOCK = 4096  # rows whose inputs are made at once

INSTEAD = "the command below makes the page of this row"

MAX_RERUN = 30_000  # rows of a robot that run again in the page: their inputs take about a second a thousand
MAX_BYTES = 16_000_000  # of the starts of rows, unpacked; rows beyond it are left to ``robokit replay``


@frozen
class RowStarts:
    """Rows before their first step."""

    rollout: Rollout  # of them, without pushes and without a step
    pushes: OutsideForces | None  # that act on them, or None

    @property
    def program(self) -> Program:
        """Their step, with places for the pushes."""
        program = self.rollout.program
        assert program is not None
        if self.pushes is None:
            return program
        places = self.pushes.places
        layout = replace(program.given, places=tuple((body, point is None) for body, point in places))
        points = [x for _, point in places if point is not None for x in point]
        return replace(program, given=layout, given_numbers=(*program.given_numbers, *points))

    def inputs(self, dt: float) -> dict[str, np.ndarray]:
        """What the first step of each row is given, and its pushes, (n, width) each.

        A push is nine numbers: its place, its first step, the one after its last, and the wrench.
        """
        program, q, v = self.program, self.rollout.q[0], self.rollout.v[0]
        n, found = len(q), {"q": q, "v": v}
        if program.contact:
            found |= _own_arrays(program, dt, n)
        else:
            parameters = program.parameters(dt)
            with np.errstate(all="ignore"):
                found["carried"] = first_carried(program, q, v)
            found["parameters"] = np.broadcast_to(parameters, (n, parameters.shape[-1]))
        if program.given.drives:
            wanted = self.rollout.given[0][0]
            found["drives"] = np.broadcast_to(wanted, (n, wanted.shape[-1]))
        if self.pushes is not None:
            spans: list[Any] = [*self.pushes.spans]
            spans += [(place, when, when + 1, wrench) for place, when, wrench in self.pushes.by_row]
            columns = [[place, first, last, *np.moveaxis(w, -1, 0)] for place, first, last, w in spans]
            one = [np.broadcast_to(x, n).astype(float) for column in columns for x in column]
            found["push_spans"] = np.stack(one, axis=1)
        return found


def _own_arrays(program: Program, dt: float, rows: int) -> dict[str, np.ndarray]:
    """Arrays of the step in which rows differ, (n, width) each, but for what driven joints want."""
    if not differ(program):
        return {}
    found = row_numbers(program, dt, scene_of(program), np.arange(rows))
    return {name: x.reshape(rows, -1) for name, x in found.items() if x.size and x.dtype == float}


@frozen
class RobotRows:
    """Rows of one robot, to be run again."""

    name: str  # of the robot in the table
    robot: Robot  # with the shapes that are drawn, without samples
    dt: float  # time step [s]
    steps: int  # of a row
    places: np.ndarray  # of the rows among those of the page, ascending, (n,)
    special: np.ndarray  # which of them come first where not all fit, (n,)
    start: Callable[[np.ndarray], RowStarts]  # the start of the rows at these places, (k,)
    parameters: Mapping[str, np.ndarray]  # of the rows, (n,) each
    hashes: np.ndarray | None  # of their last states, uint64 (n,); or None
    problem: str = ""  # why they cannot run again in the page; "" where nothing is known of that


def rerun_data(rows: RobotRows) -> tuple[RerunData, int]:
    """The data with which the page runs a robot's rows again, and how many of them it can run again."""
    none = RerunData(rows.name, "", rows.steps, "", [], [], None, False, "")
    if rows.problem:
        return replace(none, problem=f"{rows.problem}; {INSTEAD}"), 0
    first = rows.start(np.arange(1))
    program, start = first.program, first.inputs(rows.dt)
    try:
        q, v, own = start["q"][0], start["v"][0], start.get("parameters", np.zeros((1, 0)))[0]
        live = live_data_of(program, rows.dt, q, v, joined(WORKER), True, own, True)
    except RobokitError as error:
        return replace(none, problem=f"{str(error).partition('; write')[0]}; {INSTEAD}"), 0
    pose = q if np.isfinite(q).all() else rows.robot.neutral()
    ground = program.ground and program.ground.row(0)
    payload = replace(motionless_payload(rows.robot, ground, pose), live=live)
    factors = factors_of(rows.parameters)
    chosen = thin_rows(len(rows.places), rows.special, fitting(rows, factors))
    n, own = len(chosen), [factor[chosen] for factor in factors]
    packed = {name: PackedInput(name, x.shape[1], own, n) for name, x in start.items()}
    for at in range(0, n, BLOCK):
        for name, values in rows.start(chosen[at : at + BLOCK]).inputs(rows.dt).items():
            packed[name].add(values)
    made = replace(
        none,
        payload=deflate_text(json_for_html(payload).encode("utf-8")),
        places=deflate_text(np.asarray(rows.places[chosen], "<u4").tobytes()),
        factors=[in_planes(factor) for factor in own],
        inputs=[one.packed() for one in packed.values()],
        hashes=None if rows.hashes is None else in_planes(rows.hashes[chosen].astype(np.uint64)),
        inertial=program.open,
    )
    return made, n


def fitting(rows: RobotRows, factors: Sequence[np.ndarray]) -> int:
    """How many of the rows fit into a page: as many as their own numbers leave room for."""
    n = len(rows.places)
    few = rows.start(np.arange(min(n, 64))).inputs(rows.dt)
    width = 0
    for name, values in few.items():
        one = PackedInput(name, values.shape[1], [factor[:64] for factor in factors], len(values))
        one.add(values)
        width += sum(entry.kept.dtype.itemsize for entry in one.entries.values() if entry.factor < 0)
    return min(n, MAX_RERUN, max(1000, MAX_BYTES // max(1, width)))


# ---- inputs of rows, packed --------------------------------------------------------------------


def deflate_text(content: bytes) -> str:
    """Bytes as deflated text in base64."""
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def in_planes(values: np.ndarray) -> str:
    """Numbers as deflated text, all lowest bytes first, then all second ones and so on."""
    array = np.ascontiguousarray(values)
    size = array.dtype.itemsize
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    content = np.ascontiguousarray(little.reshape(-1).view(np.uint8).reshape(-1, size).T)
    return deflate_text(content.tobytes())


@dataclass
class _Entry:
    """An entry of the input that is not the same in all rows."""

    factor: int  # place of the factor that it is proportional to; -1 where it is kept as it is
    start: float  # the number before the factor
    kept: np.ndarray  # differences to the product (int8 or int16), or the numbers themselves (float64), (n,)


class PackedInput:
    """An input of the step for n rows of so many numbers, block by block.

    ``factors`` are numbers of the rows that entries may be proportional to, (n,) each.
    """

    def __init__(self, name: str, width: int, factors: Sequence[np.ndarray], rows: int) -> None:
        self.name, self.factors, self.rows = name, factors, rows
        self.base = np.zeros(width)
        self.entries: dict[int, _Entry] = {}
        self.filled = 0

    def add(self, values: np.ndarray) -> None:
        """Add the next rows, (k, width)."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        if not self.filled:
            self.base[:] = values[0]
        part = slice(self.filled, self.filled + len(values))
        same = (values.view(np.int64) == self.base.view(np.int64)).all(axis=0)
        for place in sorted({*np.flatnonzero(~same).tolist(), *self.entries}):
            column = np.ascontiguousarray(values[:, place])
            entry = self.entries.get(place)
            if entry is None:
                entry = self.entries[place] = self._begun(place, column, part)
            self._keep(entry, column, part)
        self.filled = part.stop

    def packed(self) -> InputData:
        """What the page gets of it."""
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        base = self.base.copy()
        for place, entry in self.entries.items():
            groups[entry.factor, entry.kept.dtype.itemsize].append(place)
            base[place] = entry.start if entry.factor >= 0 else 0.0
        parts = []
        for (factor, size), places in groups.items():
            table = np.stack([self.entries[place].kept for place in places], axis=1)
            parts.append(PartData(places, factor, size, in_planes(table)))
        return InputData(self.name, deflated(base, "<f8"), parts)

    def _begun(self, place: int, column: np.ndarray, part: slice) -> _Entry:
        """Begin an entry that differs in this block; all rows before had the value of the base."""
        if part.start == 0:
            factor, start = _proportional(column, [x[part] for x in self.factors])
            if factor >= 0:
                return _Entry(factor, start, np.zeros(self.rows, np.int8))
        kept = np.zeros(self.rows)
        kept[: part.start] = self.base[place]
        return _Entry(-1, 0.0, kept)

    def _keep(self, entry: _Entry, column: np.ndarray, part: slice) -> None:
        if entry.factor >= 0:
            away = column.view(np.int64) - self._guess(entry, part).view(np.int64)
            most = int(np.abs(away).max()) if np.isfinite(column).all() else 2**15
            if most >= 2**7 and entry.kept.dtype == np.int8:
                entry.kept = entry.kept.astype(np.int16)
            if most < 2**15:
                entry.kept[part] = away
                return
            before = slice(0, part.start)
            whole = np.zeros(self.rows)
            whole[before] = (self._guess(entry, before).view(np.int64) + entry.kept[before]).view(np.float64)
            entry.factor, entry.start, entry.kept = -1, 0.0, whole
        entry.kept[part] = column

    def _guess(self, entry: _Entry, part: slice) -> np.ndarray:
        return np.ascontiguousarray(entry.start * self.factors[entry.factor][part])


def factors_of(parameters: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Parameters that entries may be proportional to: finite numbers, not 0, that differ from row to row."""
    found = []
    for values in parameters.values():
        if values.dtype.kind == "f" and np.isfinite(values).all() and values.all() and np.ptp(values) > 0:
            found.append(np.ascontiguousarray(values, dtype=np.float64))
    return found


def _proportional(column: np.ndarray, factors: Sequence[np.ndarray]) -> tuple[int, float]:
    """Place of the factor that a column is proportional to, to rounding, and the number before it; or -1."""
    if np.isfinite(column).all() and column.all():
        for k, factor in enumerate(factors):
            ratio = column / factor
            if np.ptp(ratio) <= 2e-12 * abs(ratio[0]):
                return k, float(np.median(ratio))
    return -1, 0.0


# ---- which rows a page holds -------------------------------------------------------------------

MAX_ROWS = 100_000  # rows of a page: as many as a browser opens within a second or two
WORST = 100  # rows with the largest and smallest values of each measure, which a page always holds
MAX_FAILURES = 20_000  # rows that failed, of those that a page holds in any case


@frozen
class PageRows:
    """Rows of a page."""

    places: np.ndarray  # of them among those of the sweep, ascending
    special: np.ndarray  # of those that failed or are among the most extreme, ascending
    sentence: str  # which rows the page holds; "" where it holds all


def page_rows(
    count: int, measures: Mapping[str, np.ndarray], failed: np.ndarray, most: int = MAX_ROWS
) -> PageRows:
    """The rows that a page holds of ``count``: ``most`` at equal distances, and those that stand out.

    The sample is the same for the same sweep, one row being as random as another. ``measures`` are numbers by
    name, NaN for none, and ``failed`` says which rows failed, (count,) each.
    """
    failures = np.flatnonzero(failed)
    kept = [failures[:MAX_FAILURES]]
    for values in measures.values():
        known = np.flatnonzero(np.isfinite(values))
        if len(known) <= 2 * WORST:
            kept.append(known)
            continue
        for sign in (-1.0, 1.0):
            kept.append(known[np.argpartition(sign * values[known], WORST - 1)[:WORST]])
    special = np.unique(np.concatenate(kept))
    if count <= most:
        return PageRows(np.arange(count), special, "")
    even = np.unique(np.linspace(0, count - 1, most).astype(np.int64))
    places = np.union1d(even, special)
    those = _spaced(len(failures))
    if len(failures) > MAX_FAILURES:
        those = f"the first {_spaced(MAX_FAILURES)} of {those}"
    sentence = (
        f"This page holds {_spaced(len(places))} of {_spaced(count)} rows: {_spaced(most)} at equal "
        f"distances, {those} that failed, and the {WORST} with the largest and {WORST} with the smallest "
        "value of each measure. The distributions count all rows of the sweep; what a filter leaves of them "
        "is scaled up from the rows of the page."
    )
    return PageRows(places, special, sentence)


def thin_rows(rows: int, special: np.ndarray, most: int) -> np.ndarray:
    """Places of at most so many rows, ascending: those that stand out, then others at equal distances."""
    if rows <= most:
        return np.arange(rows)
    first = np.flatnonzero(special)[:most]
    rest = np.flatnonzero(~special)
    if not len(rest) or most == len(first):
        return first
    even = np.unique(np.linspace(0, len(rest) - 1, most - len(first)).astype(np.int64))
    return np.union1d(first, rest[even])


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


# ==== report ======================================================================================

MAX_NUMBERS = 2_500_000  # values that a page holds: rows times columns
MAX_VALUES = 8  # values of a list that the recipe names in words

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

FIRST = ("peak_load", "peak_force", "greatest_speed", "dissipated", "penetration")
"""Measures that readers ask for first."""


def write_report(sweep: Any, path: str | Path, rows: int | None = None, replay: bool = True) -> Path:
    """Write the report of a sweep as one HTML file; arguments and result as of :meth:`Sweep.report`.

    It shows the distributions of all parameters and measures, a scatter of any two, the rows by any measure
    and the failures with their reasons. A click on a row runs it again in the page, to the same bits. Raises
    RobokitError if no row is computed yet, WriteError if the file cannot be written.
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
    """The data of a sweep's page; arguments and errors as those of :func:`write_report`."""
    table, recipe = sweep.rows(), sweep.recipe
    if not table.num_rows:
        where = "FOLDER" if sweep.folder is None else shell_word(sweep.folder)
        raise RobokitError(f"the sweep has no rows yet; go on with it: robokit sweep --resume {where}")
    infos = {name: _column_info(recipe, name, table.units.get(name, "")) for name in table.columns}
    failures = [why for why in table[FAILURE] if why]
    failed = np.array([bool(why) for why in table[FAILURE]])
    measures = {
        name: values.astype(float)
        for name, values in table.columns.items()
        if values.dtype.kind in "fiu" and infos[name].role == "measure" and name not in ("row", HASH)
    }
    usual = min(MAX_ROWS, max(1000, MAX_NUMBERS // len(infos)))
    most = usual if rows is None else whole_number("rows", rows, 1)
    held = page_rows(table.num_rows, measures, failed, most)
    columns = [
        column_data(name, values, infos[name], held.places)
        for name, values in table.columns.items()
        if name not in HIDDEN and (name != ROBOT or len(recipe.robots) > 1)
    ]
    columns = [column for column in columns if column.labels is None or column.labels]
    columns.sort(key=lambda column: column.role != "parameter")
    sorted_by, across, up, tinted = first_choices(columns)
    reruns = [rerun_data(each) for each in _robot_rows(recipe, table, held)] if replay else []
    simulated = _time_text(table.num_rows * recipe.duration)
    figures = [("each", f"{recipe.duration:g} s"), ("simulated", simulated), ("failed", f"{len(failures):,}")]
    if table.num_rows < recipe.count:
        figures.insert(0, ("computed", f"{table.num_rows:,} of {recipe.count:,}"))
    return ReportData(
        title="Sweep" if sweep.folder is None else one_line(Path(sweep.folder).resolve().name),
        robots=", ".join(recipe.robots),
        rows=table.num_rows,
        held=len(held.places),
        sample=_sample(held, sum(count for _, count in reruns) if reruns else None),
        figures=[(label, text.replace(",", " ")) for label, text in figures],
        recipe=recipe_words(recipe),
        openings=[] if sweep.folder is None else _openings(str(sweep.folder)),
        numbers=deflate_text(np.asarray(table["row"][held.places], "<u4").tobytes()),
        columns=columns,
        sorted_by=sorted_by,
        across=across,
        up=up,
        tinted=tinted,
        reasons=[ReasonData(why, count) for why, count in Counter(sorted(failures)).most_common()],
        page=deflate_text(page_of("A fall of the sweep", "{{ data }}", True).encode("utf-8")),
        command='sweep.replay(ROW).to_html("row.html")'
        if sweep.folder is None
        else f"robokit replay {shell_word(sweep.folder)} ROW",
        reruns=[data for data, _ in reruns],
    )


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


def _time_text(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds:,.3g} s"


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

BINS = 48  # bins of a histogram: at most so many; of times, at least half as many
MAX_TICKS = 20 * BINS  # columns with more values among the first MAX_VALUES_SEEN rows are continuous

MAX_VALUES_SEEN = 100_000

EQUAL_TOLERANCE = 1e-12  # numbers that differ by a smaller share of themselves are one number
LARGEST = 1e38  # larger numbers, as of rows that explode, are shown as this one: pages hold single precision
MAX_LABELS = 40  # texts that a column of texts keeps by name, the most frequent; the others are "other"
HIDDEN = ("row", "final_hash", "state_hash", "seed")  # columns that say nothing to a reader


@frozen
class ColumnInfo:
    """What is known of a column besides its values."""

    role: str  # "parameter" or "measure"
    unit: str = ""  # of the values
    text: str = ""  # what it is, in one line


def display_unit(values: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    """Values in the unit of the report: angles in degrees."""
    if unit in ("rad", "rad/s"):
        return np.degrees(values), unit.replace("rad", "°")
    return values, unit


def column_data(name: str, values: np.ndarray, about: ColumnInfo, held: np.ndarray) -> ColumnData:
    """A column of the report: values of all rows, numbers with NaN or an object array of texts with None.

    ``about`` is its role, unit, and what it is; ``held`` the places of the rows that the page holds.
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
        # Rounded to a share of 2e-5 of each: their lowest bytes are 0 and take no room.
        bits = singles.view(np.uint32)
        rounded = (bits + np.uint32(0x80)) & np.uint32(0xFFFFFF00)
        singles = np.where(np.isfinite(singles), rounded, bits).astype(np.uint32).view(np.float32)
    return ColumnData(
        name, title, unit, about.text, about.role, None, in_planes(singles), low, high,
        [int(n) for n in counts], int(len(values) - len(known)), whole,
    )  # fmt: skip


def bins_of(known: np.ndarray, low: float, high: float) -> int:
    """So many bins that each holds as many of the values that occur: times come in steps of the run.

    Other numbers have 2 n^(1/3) bins (the Rice rule): the bars of a small sweep show its distribution, too.
    """
    ticks = np.unique(known[:MAX_VALUES_SEEN].astype(np.float32))
    if not BINS // 2 <= len(ticks) <= min(MAX_TICKS, len(known) // 4):
        return min(BINS, math.ceil(2.0 * math.cbrt(len(known))))
    uneven = {m: np.histogram(ticks, m, (low, high))[0].std() * m for m in range(BINS, BINS // 2 - 1, -1)}
    return min(uneven, key=lambda m: uneven[m])


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


def first_choices(columns: list[ColumnData]) -> tuple[int, int, int, int]:
    """Columns that the report shows first: sorted by, across, up, colour."""
    spread = [k for k, c in enumerate(columns) if c.labels is None and c.high > c.low]
    own = [k for k in spread if columns[k].role == "measure"]
    own.sort(key=lambda k: FIRST.index(columns[k].name) if columns[k].name in FIRST else len(FIRST))
    inputs = [k for k in spread if columns[k].role == "parameter"]
    ranked = own or inputs
    up = ranked[0] if ranked else 0
    across = next((k for k in [*inputs, *ranked[1:]] if k != up), up)
    tinted = next((k for k in [*inputs[1:], *ranked[1:]] if k not in (up, across)), -1)
    return up, across, up, tinted
