"""What the rows of a chunk come to: their runs, and the table of their parameters and measures."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.errors import MissingDependency, ShapeError, SimulationError
from robokit.model.robot import Robot
from robokit.sim.driving.actuators import Actuator
from robokit.sim.driving.joint_values import with_rotors
from robokit.sim.driving.pushes import Push
from robokit.sim.ground import Ground
from robokit.sim.measuring import column_of
from robokit.sim.record import Trajectory
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.starts.ground_gaps import ground_gaps
from robokit.sim.starts.start_warnings import BURIED
from robokit.sweeps.draws.parameter_table import ROBOT, parameter
from robokit.sweeps.recipes.robot_record import RobotRecord
from robokit.sweeps.recipes.stored_shapes import keep_shapes
from robokit.sweeps.rows.row_actuators import row_actuators
from robokit.sweeps.rows.row_robots import (
    row_ground,
    row_inertias,
    row_pushes,
    with_damping,
    without_nonsense,
)
from robokit.sweeps.rows.row_starts import start_states
from robokit.sweeps.rows.state_hash import state_hash

if TYPE_CHECKING:
    import pyarrow

    from robokit.sweeps.recipes.recipe_fields import RecipeFields

HASH, FAILURE = "final_hash", "failure"
"""Columns beside parameters and measures: of the last state, 0 of a row that failed; and why it failed."""

UNITS = b"unit"
"""Key of a column's unit in its metadata."""


@dataclass(frozen=True)
class Runs:
    """Rows of one robot, ready to be run.

    Attributes:
        robot: with one sample of inertias a row where these differ.
        q, v: the states at the start, (B, nq) and (B, nv); NaN in a row that cannot be run.
        ground: what they fall on, or None.
        pushes: on each row.
        actuators: of each row.
        broken: why rows cannot be run, by their place among these.
    """

    robot: Robot
    q: np.ndarray
    v: np.ndarray
    ground: Ground | None
    pushes: list[Push]
    actuators: list[Actuator]
    broken: dict[int, str]


def prepared(recipe: RecipeFields, name: str, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> Runs:
    """The runs of rows of one robot.

    Args:
        recipe: of the sweep.
        name: of the robot.
        rows: their numbers, (B,).
        values: their parameters, (B,) each.
    """
    record: RobotRecord = recipe.robots[name]
    robot, B = with_rotors(record.robot, record.actuators), len(rows)
    sound, broken = without_nonsense(values)
    if "gravity" in sound:
        g = np.unique(sound["gravity"])
        if len(g) > 1:
            raise ShapeError(f"gravity: rows of {g[0]:g} and {g[1]:g} m/s^2 are not run together")
        robot = robot.with_gravity([0.0, 0.0, -float(g[0])])
    ground = row_ground(recipe.ground, robot, sound)
    error = (ground or Ground()).shape_error
    keep_shapes(robot, record.shapes, error)
    with np.errstate(all="ignore"):
        grounds, standing = (recipe.ground, ground), recipe.standing[name]
        q, v = start_states(robot, record.starts, sound, rows, recipe.seed, grounds, standing, broken)
        q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
    for row in np.flatnonzero(~np.isfinite(q).all(axis=1)).tolist():
        broken.setdefault(row, "nothing is under the robot at its start")
    if broken:
        q[list(broken)] = np.nan
    inertias = row_inertias(robot, sound, record.shares, B)
    many = robot
    if inertias is not None:
        default = recipe.options.get("joint_damping", None if ground is not None else 0.0)
        many = with_damping(robot.with_inertias(inertias), sound, default)
        keep_shapes(many, record.shapes, error)
    if ground is not None and not (standing and "height" not in sound):
        depth = -ground_gaps(robot, q, ground)
        for row in np.flatnonzero(depth > BURIED).tolist():
            broken[row] = f"it starts {depth[row]:.3g} m below the ground"
            q[row] = np.nan
    actuators = row_actuators(robot, record.actuators, sound, q, rows, recipe.seed)
    pushes = row_pushes(robot, sound, recipe.parameters, ())
    return Runs(many, q, v, ground, pushes, actuators, broken)


def run(recipe: RecipeFields, name: str, runs: Runs, **options: Any) -> Rollout:
    """The runs of one robot.

    Raises:
        KeyboardInterrupt: Ctrl-C, at which a rollout returns what its rows have reached until then.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a row is warned of is in its columns
        found = rollout(
            runs.robot,
            runs.q,
            runs.v,
            duration=recipe.duration,
            dt=recipe.dt[name],
            ground=runs.ground,
            pushes=runs.pushes or None,
            actuators=runs.actuators or None,
            threads=1,
            reproducible=True,
            self_collision=recipe.robots[name].pairs or False,
            **recipe.options,
            **options,
        )
    if found.summary["interrupted"]:
        raise KeyboardInterrupt
    return found


def by_robot(recipe: RecipeFields, values: Mapping[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """The places of the rows of each robot that has some, among rows with these parameters."""
    if ROBOT not in values:
        return {next(iter(recipe.robots)): np.arange(count)}
    found = {name: np.flatnonzero(values[ROBOT] == name) for name in recipe.robots}
    return {name: places for name, places in found.items() if len(places)}


def run_together(
    recipe: RecipeFields, values: Mapping[str, np.ndarray], count: int
) -> list[tuple[str, np.ndarray]]:
    """Robot and places of the rows of each rollout, among rows with these parameters."""
    found = []
    for name, places in by_robot(recipe, values, count).items():
        if "gravity" not in values:
            found.append((name, places))
            continue
        g = values["gravity"][places]  # a constant of the step's code
        found += [(name, places[g == each]) for each in np.unique(g)]
    return found


def chunk_table(recipe: RecipeFields, first: int, last: int) -> pyarrow.Table:
    """Parameters and measures of rows first..last.

    Columns: row, the parameters, the measures, final_hash, failure.

    Raises:
        MissingDependency: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependency("a sweep is kept as Parquet: pip install 'robokit[sweep]'") from error
    values, B = recipe.rows(first, last), last - first
    measures = [each if isinstance(each, str) else each.measure for each in recipe.measures if B]
    measures += [FAILURE] if FAILURE not in measures else []
    measured: dict[str, np.ndarray] = {}
    hashes, why = np.zeros(B, np.uint64), np.full(B, None, object)
    for name, places in run_together(recipe, values, B) if B else ():
        mine = {key: x[places] for key, x in values.items()}
        runs = prepared(recipe, name, places.astype(np.uint64) + np.uint64(first), mine)
        steps = max(1, round(recipe.duration / recipe.dt[name]))
        found = run(recipe, name, runs, record_every=steps, measures=measures)
        hashes[places] = state_hash(found.q[-1], found.v[-1])
        hashes[places[found.failed]] = 0
        why[places] = found.measures.pop(FAILURE)
        for row, reason in runs.broken.items():
            why[places[row]] = reason
        for key, column in found.measures.items():
            if key not in measured:
                blank: Any = None if column.dtype == object else np.nan
                measured[key] = np.full(B, blank, object if column.dtype == object else float)
            measured[key][places] = column
    columns = {
        "row": np.arange(first, last, dtype=np.int64),
        **values,
        **measured,
        HASH: hashes,
        FAILURE: why,
    }
    kinds = {
        "row": pa.int64(),
        HASH: pa.uint64(),
        FAILURE: pa.string(),
    }
    fields, arrays = [], []
    for key, column in columns.items():
        kind = kinds.get(key, pa.string() if column.dtype == object else pa.float64())
        fields.append(pa.field(key, kind, metadata={UNITS: unit_of(recipe, key).encode()}))
        arrays.append(pa.array(column, type=kind))
    return pa.table(arrays, schema=pa.schema(fields))


def unit_of(recipe: RecipeFields, column: str) -> str:
    """The unit of a column; "" for a plain number or a word."""
    if column in recipe.parameters:
        return parameter(column).unit
    for own in (each.about for each in recipe.measures if not isinstance(each, str)):
        if own["name"] in (column, column.rpartition("_")[0]):
            return "s" if column == f"{own['name']}_time" or own["threshold"] is not None else own["unit"]
    measured = column_of(column)
    return measured.unit if measured else ""


def row_trajectory(recipe: RecipeFields, row: int, record_every: int | None) -> Trajectory:
    """The run of a row once more, with its ledger.

    Raises:
        SimulationError: the row failed before its first step.
    """
    values = recipe.rows(row, row + 1)
    name = next(iter(by_robot(recipe, values, 1)))
    runs = prepared(recipe, name, np.array([row], np.uint64), values)
    if runs.broken:
        raise SimulationError(f"row {row} has no motion: {runs.broken[0]}")
    found = run(recipe, name, runs, record_every=record_every).trajectory(0)
    found.summary |= {"sweep_row": row, "sweep_recipe": recipe.hash}
    return found
