"""rk.sweep, and the sweep that it gives: its table, its worst rows, and each of its motions again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.arguments import path_argument, whole_number
from robokit.dynamics.choices import card_number
from robokit.errors import RobokitError, ShapeError, SimulationError, UnknownName, one_line, warn
from robokit.files import shell_word
from robokit.model.robot import Robot
from robokit.sim.distances import CollisionPairs
from robokit.sim.ground import Ground
from robokit.sim.trajectory import Trajectory
from robokit.stages import stage
from robokit.sweeps.folder import (
    SWEEP_FILE,
    SweepFile,
    chunk_files,
    disk_problem,
    read_chunks,
    read_sweep_file,
)
from robokit.sweeps.recipe import Recipe, make_recipe, state_hash
from robokit.sweeps.table import FAILURE, HASH, RowTable, concatenate, public_table
from robokit.sweeps.workers import SweepProgress, default_chunk, run_sweep

if TYPE_CHECKING:
    import pyarrow


def sweep(
    robots: Robot | Sequence[Robot] | Mapping[str, Robot],
    *,
    starts: Any = None,
    parameters: Mapping[str, Any] | None = None,
    duration: float = 1.0,
    ground: Ground | bool | None = True,
    measures: Any = None,
    out: str | os.PathLike[str] | None = None,
    count: int | None = None,
    seed: int = 0,
    dt: float | None = None,
    sobol: bool = False,
    trajectories: Sequence[int] = (),
    chunk: int | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    progress: bool = False,
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: CollisionPairs | bool | None = None,
    gravity: Sequence[float] | None = None,
    actuators: Any = None,
    device: Any = None,
) -> Sweep:
    """Simulate many runs with different starts, masses, friction, pushes and robots.

    Each run is a row of a table. Its parameters follow from the seed and the number of the row alone, and it
    has the same bits in every chunk, with any number of workers and on every machine. Its motion is therefore
    not stored: :meth:`Sweep.replay` computes it again. A row that cannot be run, or breaks down, has the
    reason in its column ``failure``; the other rows continue.

    Args:
        robots: a robot, several, or {name: robot}. Several robots take turns from row to row; with
            ``parameters={"robot": rk.Choice([...])}`` they are drawn at random.
        starts: parameters of the start, such as ``{"tilt": rk.Uniform(0, 0.35)}``. Its keys "q" and "v", or
            an array instead of the mapping, are configurations (S, nq) and velocities (S, nv) to start from,
            which take turns from row to row. None for the standing robot, 2 cm above the ground, or for the
            neutral configuration of a robot with a fixed base.
        parameters: the other parameters, such as ``{"mass": rk.Uniform(0.8, 1.2)}``;
            ``print(rk.sweep_parameters)`` lists them. A value is a number or a distribution:
            :class:`Uniform`, :class:`Normal`, :class:`Choice`, :class:`Grid`, :class:`Sobol`.
        duration: duration of each run [s]; rounded to whole steps.
        ground: ``rk.Ground(...)``, True for the default ground, None for none.
        measures: what is measured, as in :func:`robokit.rollout`; None for most of what ``rk.measures``
            lists. The code of a user-defined :class:`robokit.Measure` is stored with the recipe and runs when
            the sweep is resumed: resume only folders that you trust.
        out: a new folder for the results, which needs pyarrow; None keeps them in memory and computes them in
            this process.
        count: number of rows; None for one row per combination of the grids.
        seed: seed of all random numbers.
        dt: time step [s]; None as in :func:`robokit.simulate`.
        sobol: whether all uniform parameters are taken from one Sobol sequence.
        trajectories: numbers of rows whose motions are also written to ``out/trajectories``.
        chunk: number of rows that are computed and written together; None for a few seconds of work.
        scheduler: address of a Dask scheduler, or the file that it wrote; None for processes of this machine.
        workers: number of these processes; None for one per processor, 0 to compute in this process, without
            Dask.
        resume: whether to continue the sweep in ``out``, which must be the same.
        progress: whether to show rows, rows per second, failures and the remaining time.
        integrator, joint_damping, self_collision, gravity: as in :func:`robokit.simulate`.
        actuators: as in :func:`robokit.rollout`, or {name of a robot: actuators}. The parameters kp, kd,
            effort, target and target_noise change them from row to row.
        device: "cuda" computes the rows on the graphics cards of the machine (:doc:`/gpu`), with one process
            for each, "cuda:1" on that one. Rows have the same bits as on a processor, so a sweep that was
            begun on one can be continued and replayed on the other.

    Returns:
        the sweep; :func:`robokit.open_sweep` opens it again.

    Raises:
        UnknownName: an unknown parameter, measure, link, joint or robot.
        ShapeError, WrongType: an invalid argument, or an invalid value of a parameter.
        ModelError: a robot that cannot be written as URDF.
        MissingDependency: ``out`` is given and pyarrow is not installed, or workers are needed and Dask is
            not.
        RobokitError: the folder holds something else or cannot be written, or the cluster has ended.
        KeyboardInterrupt: Ctrl-C; the computed rows are kept, and the text says how to resume.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> turned = {"joint:upper_joint": rk.Grid(0.0, 1.0, 3)}
        >>> swings = rk.sweep(robot, starts=turned, ground=None, duration=0.01)
        >>> swings
        <Sweep of double_pendulum: 3 rows in memory>
        >>> swings.table(["row", "joint:upper_joint", "failure"]).to_pylist()[1]
        {'row': 1, 'joint:upper_joint': 0.5, 'failure': None}
    """
    recipe = make_recipe(
        robots,
        starts=starts,
        parameters=parameters,
        duration=duration,
        ground=ground,
        measures=measures,
        count=count,
        seed=seed,
        dt=dt,
        sobol=sobol,
        trajectories=trajectories,
        integrator=integrator,
        joint_damping=joint_damping,
        self_collision=self_collision,
        gravity=gravity,
        actuators=actuators,
    )
    device = device_name(device)
    rows = rows_of_a_chunk(recipe, device) if chunk is None else whole_number("chunk", chunk, 1)
    if out is None:
        for name, value in (("scheduler", scheduler), ("workers", workers), ("resume", resume)):
            if value:
                raise ShapeError(f"{name}: a sweep without a folder is computed here; give out=FOLDER, too")
        if recipe.trajectories:
            raise ShapeError("trajectories: give out=FOLDER, too; .replay(row) gives any motion without it")
        return _in_memory(recipe, rows, progress, device)
    folder = path_argument("out", out)
    with stage("" if progress else "computing rows"):
        summary = run_sweep(
            recipe,
            folder,
            chunk=rows,
            scheduler=scheduler,
            workers=workers,
            resume=resume,
            progress=progress,
            device=device,
        )
    found = Sweep(recipe, folder, summary=summary)
    save_trajectories(found)
    return found


def device_name(device: Any) -> str | None:
    """The device as text for the workers, None for the processor; DeviceError if there is no such device."""
    number = card_number(device)
    return None if number is None else str(device)


def rows_of_a_chunk(recipe: Recipe, device: str | None = None) -> int:
    """Number of rows of a chunk, if the caller gives none."""
    steps = max(round(recipe.duration / dt) for dt in recipe.dt.values())
    return default_chunk(recipe.count, steps, device)


def _in_memory(recipe: Recipe, rows: int, progress: bool, device: str | None) -> Sweep:
    """All rows, computed here."""
    tables = []
    seen = SweepProgress(recipe.count, 0, wanted=progress)
    with stage("" if progress else f"computing {recipe.count:,} rows"), contextlib.closing(seen):
        for first in range(0, recipe.count, rows):
            tables.append(recipe.compute_rows(first, min(first + rows, recipe.count), device))
            seen.add(tables[-1].num_rows, tables[-1].failures)
    return Sweep(recipe, None, tables)


# ---- a sweep that was computed -----------------------------------------------------------------


class Sweep:
    """The rows of a sweep, as far as they are computed.

    Attributes:
        recipe: the recipe, which determines all rows.
        folder: folder that contains the rows; None if they are in memory.
        summary: figures of the run that computed the rows: rows, computed, failures, seconds, memory, redone;
            None for a sweep that was opened.
    """

    def __init__(
        self, recipe: Recipe, folder: Path | None, tables: Sequence[RowTable] = (), summary: Any = None
    ) -> None:
        """A sweep of a folder, or of tables in memory."""
        self.recipe, self.folder, self.summary = recipe, folder, summary
        self._tables = list(tables)
        self._sweep_file: SweepFile | None = None

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        done, count = len(self), self.recipe.count
        rows = f"{count:,} rows" if done == count else f"{done:,} of {count:,} rows"
        return f"<Sweep of {', '.join(self.recipe.robots)}: {rows} {where}>"

    def __len__(self) -> int:
        """How many rows are computed."""
        return self._numbers.num_rows

    def table(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """The computed rows in ascending order: parameters, measures, final_hash, failure.

        ``.to_pandas()`` makes a DataFrame of it. If pyarrow is not installed, the result is that of
        :meth:`rows`, which also has ``column_names``, ``num_rows``, ``to_pylist()`` and ``to_pandas()``.

        Args:
            columns: names of the columns; None for all.

        Raises:
            UnknownName: there is no such column.
            RobokitError: a file of the folder is damaged.
        """
        return public_table(self.rows(columns))

    def rows(self, columns: Sequence[str] | None = None) -> RowTable:
        """The computed rows in ascending order, as columns of NumPy.

        Args:
            columns: names of the columns; None for all.

        Raises:
            UnknownName, RobokitError: as in :meth:`table`.
        """
        for name in () if columns is None else columns:
            if name not in self.columns:
                raise UnknownName("column", name, self.columns, "in this sweep")
        return self._read(None if columns is None else list(columns))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._first_chunk.column_names)

    @property
    def failures(self) -> pyarrow.Table:
        """The failed rows, with the reason in the column ``failure``; a table like that of :meth:`table`."""
        rows = self.rows()
        return public_table(rows.take([k for k, why in enumerate(rows[FAILURE]) if why is not None]))

    def worst(self, measure: str, n: int = 10, smallest: bool = False) -> pyarrow.Table:
        """The rows with the largest values of a measure, the largest first, without failed rows.

        Args:
            measure: name of a column of numbers.
            n: number of rows.
            smallest: whether to return the rows with the smallest values instead.

        Returns:
            a table like that of :meth:`table`.

        Raises:
            UnknownName: there is no such column.
            ShapeError: the column does not contain numbers.
        """
        return public_table(self.worst_rows(measure, n, smallest))

    def worst_rows(self, measure: str, n: int = 10, smallest: bool = False) -> RowTable:
        """The rows of :meth:`worst`, as columns of NumPy."""
        n = whole_number("n", n, 0)
        column = self.rows([measure])[measure]
        if column.dtype == object:
            raise ShapeError(f"measure: the column {measure!r} contains words, not numbers")
        values = column.astype(float)
        good = np.flatnonzero(np.isfinite(values))
        order = good[np.argsort(values[good] if smallest else -values[good], kind="stable")]
        return self.rows().take(order[:n])

    def row(self, row: int) -> dict[str, Any]:
        """Parameters and measures of a row.

        Raises:
            ShapeError: there is no such row, or it is not computed yet.
        """
        row = whole_number("row", row, 0, self.recipe.count - 1)
        found = self._row(row)
        if found is None:
            raise ShapeError(f"row {row} is not computed yet; continue the sweep: .resume()")
        return found

    def replay(self, row: int, record_every: int | None = None) -> Trajectory:
        """The motion of a row, computed again to the last bit, with energies, contacts and events.

        ``.to_html(path)`` writes its page.

        Args:
            row: its number.
            record_every: steps between two recorded states; None for about 5 ms.

        Raises:
            ShapeError: there is no such row.
            SimulationError: the row failed before its first step.

        Warns:
            UserWarning: the motion differs in a bit from that of the sweep.
        """
        row = whole_number("row", row, 0, self.recipe.count - 1)
        recorded = self._row(row)  # first: what contradicts its recipe is not computed
        with self._by_recipe():
            found = self.recipe.trajectory(row, record_every)
            name = self.recipe.robot_of(row)
            if found.robot is not None:
                # The visual shapes of another robot of the same links.
                shown = self.recipe.robots[name].with_meshes()
                links = tuple(
                    replace(mine, visuals=theirs.visuals, collisions=theirs.collisions)
                    for mine, theirs in zip(found.robot.links, shown.links, strict=True)
                )
                found.robot = replace(found.robot, links=links)
        if recorded is not None and recorded[FAILURE] is None:
            again = int(state_hash(found.q[-1], found.v[-1]))
            found.summary["same_bits"] = again == recorded.get(HASH)
            if not found.summary["same_bits"]:
                warn(
                    f"row {row} does not repeat to the bit: the sweep was computed by robokit "
                    f"{self.recipe.versions.get('robokit')} of another source, or its files were changed",
                    UserWarning,
                )
        return found

    def resume(
        self,
        scheduler: str | None = None,
        workers: int | None = None,
        progress: bool = False,
        device: Any = None,
    ) -> Sweep:
        """Compute the missing rows; arguments and errors as those of :func:`robokit.sweep`."""
        if self.folder is None:
            raise ShapeError("resume: this sweep is in memory; give rk.sweep(..., out=folder)")
        with self._by_recipe():
            how: dict[str, Any] = {"scheduler": scheduler, "workers": workers, "progress": progress}
            how["device"] = device_name(device)
            chunk = self._description().chunk
            summary = run_sweep(self.recipe, self.folder, chunk=chunk, resume=True, **how)
        found = Sweep(self.recipe, self.folder, summary=summary)
        save_trajectories(found)
        return found

    def report(self, path: str | os.PathLike[str], rows: int | None = None, replay: bool = True) -> Path:
        """Write the report of the sweep: distributions, scatter plots, and rows that can be run in the page.

        Args:
            path: path of the page; ".html" is appended if it has no suffix.
            rows: number of rows that the page contains. Of a larger sweep, it contains this number of rows at
                equal distances, all failed rows and the most extreme ones; the distributions count all rows.
                None for 100,000, or fewer if there are many columns.
            replay: whether rows can be run again in the page.

        Returns:
            The path of the file.
        """
        from robokit.sweeps.report import write_report

        with self._by_recipe():
            return write_report(self, Path(path), rows, replay)

    @cached_property
    def _numbers(self) -> RowTable:
        return self._read(["row"])

    def _row(self, row: int) -> dict[str, Any] | None:
        """Parameters and measures of a row, from its chunk alone; None where it is not computed yet."""
        tables: Any = self._tables
        if self.folder is not None:
            before = [file for file in chunk_files(self.folder) if file.first <= row]
            same = [file for file in before if file.first == before[-1].first]
            tables = list(read_chunks(self.folder, only=same, sweep_file=self._description()))
        for table in tables:
            place = row - int(table["row"][0]) if table.num_rows else -1
            if 0 <= place < table.num_rows:
                return table.take([place]).to_pylist()[0]
        return None

    @cached_property
    def _first_chunk(self) -> RowTable:
        tables = (
            self._tables if self.folder is None else read_chunks(self.folder, sweep_file=self._description())
        )
        return next(iter(tables), None) or self.recipe.compute_rows(0, 0)

    def _description(self) -> SweepFile:
        """What sweep.json says; read once."""
        assert self.folder is not None
        if self._sweep_file is None:
            self._sweep_file = read_sweep_file(self.folder)
        return self._sweep_file

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
                f"what {self.folder / SWEEP_FILE} says cannot be computed ({said}); put the right one back"
            ) from error

    def _read(self, columns: list[str] | None) -> RowTable:
        tables: list[RowTable] = self._tables
        if self.folder is not None:
            tables = list(read_chunks(self.folder, columns, sweep_file=self._description()))
        found = concatenate(tables) if tables else self.recipe.compute_rows(0, 0)
        return found if columns is None else found.select(columns)


def open_sweep(folder: str | os.PathLike[str]) -> Sweep:
    """Open the sweep in a folder, complete or not.

    Args:
        folder: folder that :func:`robokit.sweep` or ``robokit sweep ... -o folder`` has written.

    Raises:
        RobokitError: the folder contains no sweep, or one that this version cannot read; the message says
            which can.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> turned = {"joint:upper_joint": rk.Uniform(-1.0, 1.0)}
        >>> run = {"ground": None, "duration": 0.01}
        >>> swings = rk.sweep(robot, starts=turned, count=4, **run, out="swings", workers=0)
        >>> rk.open_sweep("swings").replay(2)
        <Trajectory of 'double_pendulum': 3 states, 0 to 0.01 s>
    """
    where = path_argument("folder", folder)
    sweep_file = read_sweep_file(where)
    try:
        found = Sweep(Recipe.from_json(sweep_file.recipe), where)
    except RobokitError as error:
        raise type(error)(f"{where / SWEEP_FILE}: {error}") from error
    found._sweep_file = sweep_file
    return found


def save_trajectories(sweep: Sweep) -> None:
    """Write the motions that the recipe asks for to the sweep's folder, as far as they are not there.

    Raises RobokitError where the folder takes no files; the text of a KeyboardInterrupt says how to go on.
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
