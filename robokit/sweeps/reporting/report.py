"""From a sweep to its report: its table, its recipe in words, and its rows ready to be run again."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import whole_number
from robokit.errors import RobokitError, one_line
from robokit.sim.driving.pushes import OutsideForces
from robokit.sim.measuring import Column, StepMeasure, measures
from robokit.sweeps.draws.parameter_table import parameter
from robokit.sweeps.recipes.chunk_rows import FAILURE, HASH, prepared, run, run_together
from robokit.sweeps.reporting.column_data import About, numbers_of
from robokit.sweeps.reporting.held_rows import MOST_ROWS, Held
from robokit.sweeps.reporting.recipe_words import recipe_words
from robokit.sweeps.reporting.report_page import Report, held_of, write_html
from robokit.sweeps.reporting.rerun_data import RobotRows, Started
from robokit.sweeps.rows.row_actuators import change_with_time
from robokit.written_files import output_path, shell_word

MOST_NUMBERS = 2_500_000
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
    table = sweep.table()
    if not table.num_rows:
        where = "FOLDER" if sweep.folder is None else shell_word(sweep.folder)
        raise RobokitError(f"the sweep has no rows yet; go on with it: robokit sweep --resume {where}")
    columns = {name: numbers_of(table, name) for name in table.column_names}
    about = {field.name: _about(sweep.recipe, field) for field in table.schema}
    most = min(MOST_ROWS, max(1000, MOST_NUMBERS // len(columns)))
    held = held_of(columns, about, most if rows is None else whole_number("rows", rows, 1))
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


def _about(recipe: Any, field: Any) -> About:
    """What is known of a column: from the table of parameters, else from the column's metadata."""
    if field.name in recipe.parameters:
        row = parameter(field.name)
        return About("parameter", row.unit, row.about)
    if field.name == FAILURE:
        return About("measure", "", "why the row failed")
    name, slash, of = field.name.partition("/")
    measure, column = _known().get(name + slash, (None, None))
    if measure is None or column is None:
        given = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        return About("measure", given.get("unit", ""))
    text = f"{measure.text}: {column.text}" if not of else f"{of}: {column.text}"
    unit = "" if " or " in column.unit else column.unit
    return About("measure", unit, text)


@functools.cache
def _known() -> dict[str, tuple[StepMeasure, Column]]:
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


def _robots(recipe: Any, columns: Mapping[str, np.ndarray], held: Held) -> Iterator[RobotRows]:
    """The rows of the page by robot, ready to be run again."""
    places = held.places
    values = {name: columns[name][places] for name in recipe.parameters}
    numbers = columns["row"][places].astype(np.uint64)
    for name, mine in run_together(recipe, values, len(places)):
        own = {key: x[mine] for key, x in values.items()}

        steps = max(1, round(recipe.duration / recipe.dt[name]))

        def started(
            part: np.ndarray, name: str = name, own: Any = own, mine: Any = mine, steps: int = steps
        ) -> Started:
            some = {key: x[part] for key, x in own.items()}
            runs = prepared(recipe, name, numbers[mine][part], some)
            outside = OutsideForces(runs.robot, runs.pushes, recipe.dt[name], steps) if runs.pushes else None
            return Started(run(recipe, name, replace(runs, pushes=[]), steps=0), outside)

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
