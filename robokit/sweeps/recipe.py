"""The recipe of a sweep: all that its rows follow from.

Row k is a function of the recipe and of k: its parameters, its start, its motion, its measures. None of it
depends on the chunk that it is computed in, on the machine, or on other rows.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from robokit.arguments import real_number, whole_number
from robokit.contact.measures import column_of
from robokit.disk_cache import source_digest
from robokit.engine.backend import llvm
from robokit.errors import ModelError, RobokitError, ShapeError, SimulationError, one_line, shown
from robokit.model.robot import Robot
from robokit.serialize import INVALID_CONTENT, Format, array_from_json, from_json, to_json
from robokit.sim.actuators import Actuator, with_rotors
from robokit.sim.ground import HEIGHTS, Ground, record_ground, restored_ground
from robokit.sim.pushes import Push
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.starts import BURIED, ground_gaps
from robokit.sim.trajectory import Trajectory
from robokit.sweeps.distributions import LARGEST_SEED, Distribution
from robokit.sweeps.parameters import ROBOT, check_kind, draw_parameters, parameter
from robokit.sweeps.robot_record import RobotRecord, keep_shapes
from robokit.sweeps.row_inputs import (
    replace_invalid,
    row_actuators,
    row_ground,
    row_inertias,
    row_pushes,
    start_states,
    with_damping,
)
from robokit.sweeps.table import FAILURE, HASH, RowTable, public_table
from robokit.sweeps.user_measures import StoredMeasure, measure_from_json, measure_to_json

FORMAT = Format(1)
"""The recipe's format; its number is raised when rows would come out otherwise, or could not be read."""

MAX_ROWS = 2**32
"""Rows of a sweep: a Sobol sequence has so many points."""

MAX_STEPS = 1e8
"""Time steps of a row."""

OPTIONS = ("integrator", "joint_damping")
"""Arguments of :func:`robokit.rollout` that a recipe may have besides its own."""

Values = Mapping[str, np.ndarray]
"""Parameters of rows by name, (B,) each."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """The recipe of a sweep, which determines all its rows.

    Attributes:
        robots: by name, as they are kept.
        parameters: by name, as distributions, in the order of the columns.
        count: number of rows.
        seed: of the random streams.
        duration: of each run [s].
        dt: time step [s], by robot.
        ground: the ground, or None.
        measures: what is measured: names, and measures of the user's own.
        standing: by robot, whether the starts are standing configurations.
        options: what else the runs are given: integrator, joint_damping.
        trajectories: rows whose motion is recorded.
        versions: of robokit and of the libraries that the recipe was made with, by name; the processor, and a
            hash of robokit's source.
    """

    robots: Mapping[str, RobotRecord]
    parameters: Mapping[str, Distribution]
    count: int
    seed: int
    duration: float
    dt: Mapping[str, float]
    ground: Ground | None
    measures: tuple[str | StoredMeasure, ...]
    standing: Mapping[str, bool]
    options: Mapping[str, Any]
    trajectories: tuple[int, ...]
    versions: Mapping[str, str]

    def __repr__(self) -> str:
        robots = ", ".join(self.robots)
        return f"<Recipe: {self.count:,} rows of {self.duration:g} s of {robots}; {self.hash[:12]}>"

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the recipe's text without the versions and the robots' files."""
        content = self._content([x if isinstance(x, str) else x.identity() for x in self.measures])
        del content["versions"]
        for robot in content["robots"].values():
            del robot["source"]
            robot.pop("looks", None)
        return hashlib.sha256(json.dumps(content, default=_plain, separators=(",", ":")).encode()).hexdigest()

    def rows(self, first: int, last: int) -> dict[str, np.ndarray]:
        """The parameters of rows first..last-1, (B,) each: numbers, or words as objects.

        Raises:
            ShapeError: there are no such rows.
        """
        if not 0 <= first <= last <= self.count:
            raise ShapeError(f"rows: expected 0 <= first <= last <= {self.count}, got {first} and {last}")
        return draw_parameters(self.parameters, self.seed, first, last)

    def robot_of(self, row: int) -> str:
        """The name of the robot of a row."""
        if len(self.robots) == 1:
            return next(iter(self.robots))
        return str(self.rows(row, row + 1)["robot"][0])

    def robot(self, name: str) -> Robot:
        """A robot of the sweep, to the bit."""
        return self.robots[name].robot

    def steps(self, name: str) -> int:
        """Time steps of a row of a robot."""
        return max(1, round(self.duration / self.dt[name]))

    def compute(self, first: int, last: int) -> Any:
        """Parameters and measures of rows first..last-1: the same bits in every chunk and on every machine.

        Returns:
            a ``pyarrow.Table``, or what :meth:`compute_rows` gives where pyarrow is not installed.
        """
        return public_table(self.compute_rows(first, last))

    def compute_rows(self, first: int, last: int, device: str | None = None) -> RowTable:
        """Columns of rows first..last-1: row, the parameters, the measures, final_hash, failure.

        ``device``: as of :func:`robokit.rollout`; the rows have the same bits on each.
        """
        values, B = self.rows(first, last), last - first
        measures = [x if isinstance(x, str) else x.measure for x in self.measures if B]
        measures += [FAILURE] if FAILURE not in measures else []
        columns: dict[str, np.ndarray] = {}
        hashes, why = np.zeros(B, np.uint64), np.full(B, None, object)
        for name, places in rows_run_together(self, values, B) if B else ():
            own = {key: x[places] for key, x in values.items()}
            runs = prepare_rows(self, name, places.astype(np.uint64) + np.uint64(first), own)
            how = {"record_every": self.steps(name), "measures": measures, "device": device}
            rolled = run_rows(self, name, runs, **how)
            hashes[places] = state_hash(rolled.q[-1], rolled.v[-1])
            hashes[places[rolled.failed]] = 0
            why[places] = rolled.measures.pop(FAILURE)
            for row, reason in runs.broken.items():
                why[places[row]] = reason
            for key, x in rolled.measures.items():
                kind, blank = (object, None) if x.dtype == object else (float, np.nan)
                columns.setdefault(key, np.full(B, blank, kind))[places] = x
        rows = np.arange(first, last, dtype=np.int64)
        columns = {"row": rows, **values, **columns, HASH: hashes, FAILURE: why}
        units = {name: self.unit(name) for name in columns}
        return RowTable(columns, {name: unit for name, unit in units.items() if unit})

    def unit(self, column: str) -> str:
        """The unit of a column; "" for a plain number or a word."""
        if column in self.parameters:
            return parameter(column).unit
        for own in (x.about for x in self.measures if not isinstance(x, str)):
            if own["name"] in (column, column.rpartition("_")[0]):
                is_time = column == f"{own['name']}_time" or own["threshold"] is not None
                return "s" if is_time else str(own["unit"])
        known = column_of(column)
        return known.unit if known else ""

    def trajectory(self, row: int, record_every: int | None = None) -> Trajectory:
        """The run of a row once more, with energies, contacts and events, to the same bits.

        Args:
            row: its number.
            record_every: steps between two records; None for about 5 ms.

        Raises:
            ShapeError: there is no such row.
            SimulationError: the row failed before its first step.
        """
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < self.count:
            raise ShapeError(f"row: expected a whole number from 0 to {self.count - 1}, got {shown(row)}")
        row = int(row)
        values = self.rows(row, row + 1)
        name = next(iter(rows_by_robot(self, values, 1)))
        runs = prepare_rows(self, name, np.array([row], np.uint64), values)
        if runs.broken:
            raise SimulationError(f"row {row} has no motion: {runs.broken[0]}")
        motion = run_rows(self, name, runs, record_every=record_every).trajectory(0)
        motion.summary |= {"sweep_row": row, "sweep_recipe": self.hash}
        return motion

    def to_json(self) -> str:
        """The recipe as text; :meth:`from_json` makes the same recipe of it."""
        return json.dumps(self._content([measure_to_json(x) for x in self.measures]), default=_plain)

    def _content(self, measures: list[Any]) -> dict[str, Any]:
        """What the recipe's text says, with these records of its measures."""
        ground = None
        if self.ground is not None:
            about, arrays = record_ground(self.ground)
            ground = about | to_json(arrays)
        return {
            "format": FORMAT.number,
            "count": self.count,
            "seed": self.seed,
            "duration": self.duration,
            "dt": dict(self.dt),
            "parameters": to_json(self.parameters),
            "ground": ground,
            "measures": measures,
            "standing": dict(self.standing),
            "options": dict(self.options),
            "trajectories": list(self.trajectories),
            "robots": to_json(self.robots),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The recipe of a text.

        Raises:
            ModelError: the text is no recipe, or one of a format that this version does not know.
        """
        try:
            content = json.loads(text)
            current = FORMAT.upgraded(content)
        except INVALID_CONTENT as error:
            raise ModelError(f"this is no recipe of a sweep: {error}") from error
        if current is None:
            known = content.get("versions")
            maker = known.get("robokit", "another version") if isinstance(known, dict) else "another version"
            raise ModelError(
                f"the recipe has format {content['format']}, made by robokit {maker}; this one reads format "
                f"{FORMAT.number}: its rows can be made again by robokit {maker} alone "
                f"(pip install robokit=={maker})"
            )
        try:
            return cls(**_read_fields(current))
        except INVALID_CONTENT as error:
            missing = isinstance(error, KeyError) and not isinstance(error, RobokitError)
            why = one_line(f"{error} is missing" if missing else str(error), 200)
            raise ModelError(f"this is no whole recipe of a sweep: {why}") from error


# ---- from JSON ---------------------------------------------------------------------------------


def _read_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recipe from its JSON, each checked."""
    count = whole_number("count", content["count"], 1, MAX_ROWS)
    duration = real_number("duration", content["duration"], above=0.0)
    robots = from_json(dict[str, RobotRecord], content["robots"], "robots")
    if not robots:
        raise ShapeError("robots: expected at least one, got none")
    parameters = from_json(dict[str, Distribution], content["parameters"], "parameters")
    for name, values in parameters.items():
        check_kind(name, values)
    dt = from_json(dict[str, float], content["dt"], "dt")
    standing = from_json(dict[str, bool], content["standing"], "standing")
    for name, by_robot in (("dt", dt), ("standing", standing)):
        if by_robot.keys() != robots.keys():
            raise ShapeError(f"{name}: expected those of {', '.join(robots)}, got {shown(list(by_robot))}")
    for step in dt.values():
        check_steps(duration, real_number("dt", step, above=0.0))
    rows = from_json(list[Any], content["trajectories"], "trajectories")
    return {
        "robots": robots,
        "parameters": parameters,
        "count": count,
        "seed": whole_number("seed", content["seed"], 0, LARGEST_SEED),
        "duration": duration,
        "dt": {name: dt[name] for name in robots},
        "ground": _read_ground(content["ground"]),
        "measures": tuple(map(measure_from_json, from_json(list[Any], content["measures"], "measures"))),
        "standing": {name: standing[name] for name in robots},
        "options": _read_options(from_json(dict[str, Any], content["options"], "options")),
        "trajectories": tuple(whole_number("trajectories", row, 0, count - 1) for row in rows),
        "versions": from_json(dict[str, str], content["versions"], "versions"),
    }


def _read_ground(content: Any) -> Ground | None:
    if content is None:
        return None
    about = from_json(dict[str, Any], content, "ground")
    heights = about.pop(HEIGHTS, None)
    return restored_ground(about, None if heights is None else array_from_json(heights))


def _read_options(content: Mapping[str, Any]) -> dict[str, Any]:
    """What else the runs are given; the values are checked where they run."""
    for name, value in content.items():
        if name not in OPTIONS:
            raise ShapeError(f"options: expected {' and '.join(OPTIONS)}, got {shown(name)}")
        if name == "joint_damping":
            real_number("joint_damping", value, least=0.0)
        elif not isinstance(value, str):
            raise ShapeError(f"{name}: expected its name, got {shown(value)}")
    return dict(content)


def check_steps(duration: float, dt: float) -> None:
    """Refuse a row without a time step, or with more than anybody could wait for.

    Args:
        duration: of a row [s].
        dt: time step [s].

    Raises:
        ShapeError: it is one.
    """
    steps = duration / dt
    if round(min(steps, MAX_STEPS + 1.0)) < 1 or steps > MAX_STEPS:
        raise ShapeError(f"duration: {duration:g} s are {steps:.3g} steps of {dt:g} s; take 1 to 1e8")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else float(value)


def versions() -> dict[str, str]:
    """What a recipe's numbers come from: versions of robokit and of libraries, the processor, robokit's text.

    "source" is the text's hash: rows of the same recipe may differ where it does. It is "" where files were
    edited while the program ran.
    """
    import scipy

    return {
        "robokit": getattr(sys.modules["robokit"], "__version__", "unknown"),  # it lies above this folder
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "processor": llvm.processor_name(),
        "source": source_digest().hex()[:16],
    }


# ---- the runs of rows --------------------------------------------------------------------------


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


def prepare_rows(recipe: Recipe, name: str, rows: np.ndarray, values: Values) -> Runs:
    """The runs of rows of one robot.

    Args:
        recipe: of the sweep.
        rows: their numbers, (B,).
        values: their parameters, (B,) each.
    """
    record = recipe.robots[name]
    robot = with_rotors(record.robot, record.actuators)
    values, broken = replace_invalid(values)
    if "gravity" in values:
        g = np.unique(values["gravity"])
        if len(g) > 1:
            raise ShapeError(f"gravity: rows of {g[0]:g} and {g[1]:g} m/s^2 are not run together")
        robot = robot.with_gravity([0.0, 0.0, -float(g[0])])
    ground = row_ground(recipe.ground, robot, values)
    error = (ground or Ground()).shape_error
    keep_shapes(robot, record.shapes, error)
    standing = recipe.standing[name]
    with np.errstate(all="ignore"):
        grounds = (recipe.ground, ground)
        q, v = start_states(robot, record.starts, values, rows, recipe.seed, grounds, standing, broken)
        q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
    for row in np.flatnonzero(~np.isfinite(q).all(axis=1)).tolist():
        broken.setdefault(row, "nothing is under the robot at its start")
    if broken:
        q[list(broken)] = np.nan
    samples = robot
    inertias = row_inertias(robot, values, record.shares, len(rows))
    if inertias is not None:
        default = recipe.options.get("joint_damping", None if ground is not None else 0.0)
        samples = with_damping(robot.with_inertias(inertias), values, default)
        keep_shapes(samples, record.shapes, error)
    if ground is not None and not (standing and "height" not in values):
        depth = -ground_gaps(robot, q, ground)
        for row in np.flatnonzero(depth > BURIED).tolist():
            broken[row] = f"it starts {depth[row]:.3g} m below the ground"
            q[row] = np.nan
    actuators = row_actuators(robot, record.actuators, values, q, rows, recipe.seed)
    return Runs(samples, q, v, ground, row_pushes(robot, values, recipe.parameters), actuators, broken)


def run_rows(recipe: Recipe, name: str, runs: Runs, **options: Any) -> Rollout:
    """The runs of one robot.

    Raises:
        KeyboardInterrupt: Ctrl-C, at which a rollout returns what its rows have reached until then.
    """
    options |= {"threads": 1} if options.get("device") is None else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the columns of a row have what its warnings say
        rolled = rollout(
            runs.robot, runs.q, runs.v, duration=recipe.duration, dt=recipe.dt[name], ground=runs.ground,
            pushes=runs.pushes or None, actuators=runs.actuators or None, reproducible=True,
            self_collision=recipe.robots[name].pairs or False, **recipe.options, **options,
        )  # fmt: skip
    if rolled.summary["interrupted"]:
        raise KeyboardInterrupt
    return rolled


def rows_by_robot(recipe: Recipe, values: Values, count: int) -> dict[str, np.ndarray]:
    """The places of the rows of each robot that has some, among ``count`` rows with these parameters."""
    if ROBOT not in values:
        return {next(iter(recipe.robots)): np.arange(count)}
    places = {name: np.flatnonzero(values[ROBOT] == name) for name in recipe.robots}
    return {name: x for name, x in places.items() if len(x)}


def rows_run_together(recipe: Recipe, values: Values, count: int) -> list[tuple[str, np.ndarray]]:
    """Robot and places of the rows of each rollout, among ``count`` rows with these parameters."""
    groups = []
    for name, places in rows_by_robot(recipe, values, count).items():
        if "gravity" not in values:
            groups.append((name, places))
            continue
        g = values["gravity"][places]  # gravity is a constant of the step's code
        groups += [(name, places[g == each]) for each in np.unique(g)]
    return groups


OFFSET, PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Constants of FNV-1a for 64 bits."""


def state_hash(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Hash of states: equal bits give equal numbers, other bits almost surely others.

    FNV-1a over the float64 numbers of q, then v, each taken as one 64-bit word. High bits are folded down
    after each word, for a product alone never carries them there. The report's page computes the same.

    Args:
        q: configurations, (nq,) or (B, nq).
        v: velocities, (nv,) or (B, nv).

    Returns:
        uint64, () or (B,).
    """
    words = np.concatenate([np.asarray(q, "<f8"), np.asarray(v, "<f8")], axis=-1).view("<u8")
    h = np.full(words.shape[:-1], OFFSET, np.uint64)
    with np.errstate(over="ignore"):
        for k in range(words.shape[-1]):
            h = (h ^ words[..., k]) * np.uint64(PRIME)
            h ^= h >> np.uint64(32)
    return np.asarray(h)
