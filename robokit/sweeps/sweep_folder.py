"""A sweep that was computed: its table, its worst rows, and each of its motions again."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.arguments import path_argument, whole_number
from robokit.errors import RobokitError, ShapeError, SimulationError, UnknownName, one_line
from robokit.sim.record import Trajectory
from robokit.sweeps.recipes.chunk_rows import FAILURE, HASH
from robokit.sweeps.recipes.recipe import Recipe
from robokit.sweeps.rows.state_hash import state_hash
from robokit.sweeps.running.chunk_content import arrow
from robokit.sweeps.running.chunk_files import chunk_files, read_chunks
from robokit.sweeps.running.folder_files import disk_problem
from robokit.sweeps.running.run_sweep import run_sweep
from robokit.sweeps.running.sweep_json import NAME, SweepJson, read_sweep_json
from robokit.written_files import shell_word

if TYPE_CHECKING:
    import pyarrow


class Sweep:
    """The rows of a sweep, as far as they are computed.

    Attributes:
        recipe: all that the rows follow from.
        folder: where they are kept; None where they are in memory.
        summary: what the run did that computed them: rows, computed, failures, seconds, memory, redone; None
            of a sweep that was opened.
    """

    def __init__(
        self, recipe: Recipe, folder: Path | None, tables: Sequence[Any] = (), summary: Any = None
    ) -> None:
        """A sweep of a folder, or of tables in memory."""
        self.recipe, self.folder, self.summary = recipe, folder, summary
        self._tables = list(tables)
        self._given: SweepJson | None = None

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        done, count = len(self), self.recipe.count
        rows = f"{count:,} rows" if done == count else f"{done:,} of {count:,} rows"
        return f"<Sweep of {', '.join(self.recipe.robots)}: {rows} {where}>"

    def __len__(self) -> int:
        """How many rows are computed."""
        return int(self._rows.num_rows)

    def table(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """The rows that are computed, ascending: parameters, measures, final_hash, failure.

        ``.to_pandas()`` of it is a DataFrame.

        Args:
            columns: names of those that are wanted; None for all.

        Raises:
            UnknownName: there is no such column.
            RobokitError: a file of the folder is damaged.
        """
        if columns is not None:
            for name in columns:
                if name not in self.columns:
                    raise UnknownName("column", name, self.columns, "in this sweep")
        return self._read(None if columns is None else list(columns))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._first_chunk.column_names)

    @property
    def failures(self) -> pyarrow.Table:
        """The rows that failed, with the reason in the column ``failure``."""
        pa, table = arrow(), self.table()
        return table.filter(pa.compute.is_valid(table[FAILURE]))

    def worst(self, measure: str, n: int = 10, smallest: bool = False) -> pyarrow.Table:
        """The rows with the largest values of a measure, the largest first; rows that failed are left out.

        Args:
            measure: name of a column of numbers.
            n: how many rows.
            smallest: those with the smallest values instead.

        Raises:
            UnknownName: there is no such column.
            ShapeError: it holds no numbers.
        """
        n = whole_number("n", n, 0)
        column = self.table([measure])[measure]
        if not arrow().types.is_floating(column.type) and not arrow().types.is_integer(column.type):
            raise ShapeError(f"measure: the column {measure!r} holds words, no numbers")
        values = column.to_numpy().astype(float)
        good = np.flatnonzero(np.isfinite(values))
        order = good[np.argsort(values[good] if smallest else -values[good], kind="stable")]
        return self.table().take(order[:n])

    def row(self, row: int) -> dict[str, Any]:
        """Parameters and measures of a row.

        Raises:
            ShapeError: there is no such row, or it is not computed yet.
        """
        row = whole_number("row", row, 0, self.recipe.count - 1)
        found = self._row(row)
        if found is None:
            raise ShapeError(f"row {row} is not computed yet; go on with the sweep: .resume()")
        return found

    def replay(self, row: int, record_every: int | None = None) -> Trajectory:
        """The motion of a row once more, to the last bit, with energies, contacts and events.

        ``.to_html(path)`` of it is its page.

        Args:
            row: its number.
            record_every: steps between two recorded states; None for about 5 ms.

        Raises:
            ShapeError: there is no such row.
            SimulationError: the row failed before its first step.

        Warns:
            UserWarning: the motion is not that of the sweep, to the bit.
        """
        row = whole_number("row", row, 0, self.recipe.count - 1)
        recorded = self._row(row)  # first: what contradicts its recipe is not computed
        with self._by_recipe():
            found = self.recipe.trajectory(row, record_every)
            name = self.recipe.robot_of(row)
            if found.robot is not None:
                found.robot = _with_shapes(found.robot, self.recipe.robots[name].shown())
        if recorded is not None and recorded[FAILURE] is None:
            again = int(state_hash(found.q[-1], found.v[-1]))
            found.summary["same_bits"] = again == recorded.get(HASH)
            if not found.summary["same_bits"]:
                warnings.warn(
                    f"row {row} does not repeat to the bit: the sweep was computed by robokit "
                    f"{self.recipe.versions.get('robokit')} of another source, or its files were changed",
                    stacklevel=2,
                )
        return found

    def resume(
        self, scheduler: str | None = None, workers: int | None = None, progress: bool = False
    ) -> Sweep:
        """Compute the rows that are missing; arguments and errors as those of :func:`robokit.sweep`."""
        if self.folder is None:
            raise ShapeError("resume: this sweep is in memory; give rk.sweep(..., out=folder)")
        with self._by_recipe():
            summary = run_sweep(
                self.recipe, self.folder, chunk=self._json().chunk, scheduler=scheduler, workers=workers,
                resume=True, progress=progress,
            )  # fmt: skip
        found = Sweep(self.recipe, self.folder, summary=summary)
        save_trajectories(found)
        return found

    def report(self, path: str | os.PathLike[str], rows: int | None = None, replay: bool = True) -> Path:
        """Write the sweep's page: distributions, scatter plots, the worst rows, each to be run again there.

        Args:
            path: where to; ".html" is appended where there is no suffix.
            rows: how many rows the page holds; of more, it holds so many at equal distances, all that failed,
                and the most extreme ones. The distributions count all. None for 100,000, or fewer where there
                are many columns.
            replay: whether rows run again in the page.

        Returns:
            The path of the file.
        """
        from robokit.sweeps.reporting.report import write_report

        with self._by_recipe():
            return write_report(self, Path(path), rows, replay)

    @cached_property
    def _rows(self) -> Any:
        return self._read(["row"])

    def _row(self, row: int) -> dict[str, Any] | None:
        """Parameters and measures of a row, from its chunk alone; None where it is not computed yet."""
        tables: Any = self._tables
        if self.folder is not None:
            before = [file for file in chunk_files(self.folder) if file.first <= row]
            same = [file for file in before if file.first == before[-1].first]
            tables = list(read_chunks(self.folder, only=same, given=self._json()))
        for table in tables:
            place = row - table["row"][0].as_py() if table.num_rows else -1
            if 0 <= place < table.num_rows:
                return dict(table.slice(place, 1).to_pylist()[0])
        return None

    @cached_property
    def _first_chunk(self) -> Any:
        if self.folder is None:
            return self._tables[0] if self._tables else self.recipe.compute(0, 0)
        return next(iter(read_chunks(self.folder, given=self._json())), None) or self.recipe.compute(0, 0)

    def _json(self) -> SweepJson:
        """What sweep.json says; read once."""
        assert self.folder is not None
        if self._given is None:
            self._given = read_sweep_json(self.folder)
        return self._given

    @contextlib.contextmanager
    def _by_recipe(self) -> Iterator[None]:
        """Whatever is raised by a recipe from a folder that makes no sense, in one clear error."""
        try:
            yield
        except (RobokitError, OSError):
            raise
        except Exception as error:
            if self.folder is None:
                raise
            said = one_line(f"{type(error).__name__}: {error}", 150)
            raise RobokitError(
                f"what {self.folder / NAME} says cannot be computed ({said}); put the right one back"
            ) from error

    def _read(self, columns: list[str] | None) -> Any:
        tables: Any = self._tables
        if self.folder is not None:
            tables = list(read_chunks(self.folder, columns, given=self._json()))
        elif columns is not None:
            tables = [table.select(columns) for table in tables]
        if not tables:
            empty = self.recipe.compute(0, 0)
            return empty if columns is None else empty.select(columns)
        found = arrow().concat_tables(tables)
        return found if columns is None else found.select(columns)


def open_sweep(folder: str | os.PathLike[str]) -> Sweep:
    """A sweep that was computed, or begun, in a folder.

    Args:
        folder: of :func:`robokit.sweep`, or of ``robokit sweep ... -o folder``.

    Raises:
        RobokitError: it is no folder of a sweep, or of one that this version cannot read; says which can.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> turned = {"joint:upper_joint": rk.Uniform(-1.0, 1.0)}
        >>> run = {"ground": None, "duration": 0.01}
        >>> swings = rk.sweep(robot, starts=turned, count=4, **run, out="swings", workers=0)
        >>> rk.open_sweep("swings").replay(2)
        <Trajectory of 'double_pendulum': 3 states, 0 to 0.01 s>
    """
    where = path_argument("folder", folder)
    given = read_sweep_json(where)
    try:
        found = Sweep(Recipe.from_json(given.recipe), where)
    except RobokitError as error:
        raise type(error)(f"{where / NAME}: {error}") from error
    found._given = given
    return found


def save_trajectories(sweep: Sweep) -> None:
    """Write the motions that the recipe asks for to the sweep's folder, as far as they are not there.

    Raises:
        RobokitError: the folder takes no files.
        KeyboardInterrupt: Ctrl-C; its text says how to go on.
    """
    if sweep.folder is None:
        return
    go_on = f"all rows are kept; go on with: robokit sweep --resume {shell_word(sweep.folder)}"
    for row in sweep.recipe.trajectories:
        path = sweep.folder / "trajectories" / f"{row}.npz"
        if path.exists():
            continue
        beside = path.with_name(f".{row}.tmp.npz")
        try:
            path.parent.mkdir(exist_ok=True)
            sweep.recipe.trajectory(row).save(beside)
            os.replace(beside, path)
        except SimulationError:  # its reason is in the table
            continue
        except OSError as error:
            raise RobokitError(f"{disk_problem(sweep.folder, error)}; {go_on}") from error
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted while trajectories were written; {go_on}") from None
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)


def _with_shapes(robot: Any, shown: Any) -> Any:
    """A robot with the visual shapes of another of the same links."""
    links = tuple(
        replace(mine, visuals=theirs.visuals, collisions=theirs.collisions)
        for mine, theirs in zip(robot.links, shown.links, strict=True)
    )
    return replace(robot, links=links)
