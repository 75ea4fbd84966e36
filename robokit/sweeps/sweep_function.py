"""rk.sweep: many runs, each a function of a recipe and of its number."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from robokit.arguments import path_argument, whole_number
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.body_pairs import CollisionPairs
from robokit.sim.ground import Ground
from robokit.stages import stage
from robokit.sweeps.recipes.chunk_rows import FAILURE
from robokit.sweeps.recipes.make_recipe import make_recipe
from robokit.sweeps.recipes.recipe import Recipe
from robokit.sweeps.running.run_sweep import default_chunk, run_sweep
from robokit.sweeps.running.sweep_progress import SweepProgress
from robokit.sweeps.sweep_folder import Sweep, save_trajectories


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
) -> Sweep:
    """Run a simulation many times, with other starts, masses, friction, pushes and robots.

    Each row has its own parameters, which follow from the seed and the row's number alone. A row is computed
    with the same bits in every chunk, by any number of workers and on every machine, so that its motion need
    not be stored: :meth:`Sweep.replay` makes it again. A row that cannot be run, or breaks down, is a row
    with a reason in its column ``failure``; the others go on.

    Args:
        robots: a robot, several, or {name: robot}. Of several, row after row has the next; with
            ``parameters={"robot": rk.Choice([...])}`` they are drawn.
        starts: parameters of the start as a mapping, such as ``{"tilt": rk.Uniform(0, 0.35)}``; with "q" and
            "v" in it, or an array alone, configurations (S, nq) to start from, of which row after row has the
            next. None for the standing robot, 2 cm above the ground; a robot with a fixed base starts
            neutral.
        parameters: the other parameters as a mapping, such as ``{"mass": rk.Uniform(0.8, 1.2)}``. Which there
            are: ``print(rk.sweep_parameters)``. A value is a number or a distribution: :class:`Uniform`,
            :class:`Normal`, :class:`Choice`, :class:`Grid`, :class:`Sobol`.
        duration: of each run [s]; rounded to whole steps.
        ground: ``rk.Ground(...)``, True for one with default values, None for none.
        measures: what is measured in every step, as in :func:`robokit.rollout`; None for most of what
            ``rk.measures`` lists. The code of a :class:`robokit.Measure` of your own is stored with the
            recipe, and runs again where the sweep goes on: resume only folders that you trust.
        out: a new folder for the results; None keeps them in memory and computes here, without workers.
        count: number of rows; None for one of each combination of the grids.
        seed: of all random numbers.
        dt: time step [s]; None as in :func:`robokit.simulate`.
        sobol: take all uniform parameters from one Sobol sequence.
        trajectories: numbers of rows whose motions are written to ``out/trajectories``, too.
        chunk: rows that are computed and written together; None for some seconds of work.
        scheduler: address of a Dask scheduler, or the file that it wrote; None for processes of this machine.
        workers: number of these processes; None for one a processor, 0 to compute in this process.
        resume: go on with the sweep in ``out``, which must be the same.
        progress: show rows, rows a second, failures, time left.
        integrator, joint_damping, self_collision, gravity: as in :func:`robokit.simulate`.
        actuators: as in :func:`robokit.rollout`, or {name of a robot: actuators}; the parameters kp, kd,
            effort, target and target_noise change them from row to row.

    Returns:
        the sweep; :func:`robokit.open_sweep` opens it again.

    Raises:
        UnknownName: no such parameter, measure, link, joint or robot.
        ShapeError, WrongType: an argument, or a value of a parameter, that makes no sense.
        ModelError: a robot that a URDF cannot say.
        MissingDependency: pyarrow or Dask is not installed.
        RobokitError: the folder holds something else, takes no files, or the cluster has come to an end.
        KeyboardInterrupt: Ctrl-C; what was computed is kept, and the text says how to go on.

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
    rows = rows_of_a_chunk(recipe) if chunk is None else whole_number("chunk", chunk, 1)
    if out is None:
        for name, given in (("scheduler", scheduler), ("workers", workers), ("resume", resume)):
            if given:
                raise ShapeError(f"{name}: a sweep without a folder is computed here; give out=FOLDER, too")
        if recipe.trajectories:
            raise ShapeError("trajectories: give out=FOLDER, too; .replay(row) gives any motion without it")
        return _in_memory(recipe, rows, progress)
    folder = path_argument("out", out)
    with stage("" if progress else "computing rows"):
        summary = run_sweep(
            recipe, folder, chunk=rows, scheduler=scheduler, workers=workers, resume=resume, progress=progress
        )
    found = Sweep(recipe, folder, summary=summary)
    save_trajectories(found)
    return found


def rows_of_a_chunk(recipe: Recipe) -> int:
    """How many rows of a sweep are computed and written together, where nobody says."""
    steps = max(round(recipe.duration / dt) for dt in recipe.dt.values())
    return default_chunk(recipe.count, steps)


def _in_memory(recipe: Recipe, rows: int, progress: bool) -> Sweep:
    """All rows, computed here."""
    tables = []
    seen = SweepProgress(recipe.count, 0, wanted=progress)
    with stage("" if progress else f"computing {recipe.count:,} rows"), contextlib.closing(seen):
        for first in range(0, recipe.count, rows):
            tables.append(recipe.compute(first, min(first + rows, recipe.count)))
            seen.add(tables[-1].num_rows, tables[-1].num_rows - tables[-1][FAILURE].null_count)
    return Sweep(recipe, None, tables)
