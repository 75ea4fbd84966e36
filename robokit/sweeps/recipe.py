"""The recipe of a sweep: made from the arguments of :func:`robokit.sweep`, and what a row of it comes to."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import pickle
import platform
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from robokit.arguments import not_a_robot, real_array, real_number, whole_number
from robokit.contact.measures import DEFAULT, column_of, measures
from robokit.dataclass_tools import frozen
from robokit.disk_cache import source_digest
from robokit.dynamics.build import recorded_key
from robokit.dynamics.function_objects import Function
from robokit.engine.backend import llvm
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import (
    MissingDependency,
    ModelError,
    RobokitError,
    ShapeError,
    SimulationError,
    UnknownName,
    WrongType,
    one_line,
    shown,
)
from robokit.model.robot import Robot, check_robot
from robokit.serialize import INVALID_CONTENT, Format, array_from_json, from_json, to_json
from robokit.sim.actuators import Actuator, actuators_of, with_rotors
from robokit.sim.force_elements import Push
from robokit.sim.ground import HEIGHTS, Ground, ground_of, record_ground, restored_ground
from robokit.sim.rollout_measures import Measure, wanted_measures
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.run_inputs import DrivenJoints, longest_step
from robokit.sim.starts import buried_depth, check_quaternions, ground_gaps, standing_configuration
from robokit.sim.steppers import default_step
from robokit.sim.trajectory import Trajectory
from robokit.sweeps.distributions import LARGEST_SEED, Distribution, Sobol, Uniform
from robokit.sweeps.parameters import (
    ROBOT,
    check_drives,
    check_kind,
    check_parameters,
    draw_parameters,
    grid_size,
    parameter,
    replace_invalid,
    row_actuators,
    row_ground,
    row_inertias,
    row_pushes,
    start_states,
    with_damping,
)
from robokit.sweeps.robot_record import RobotRecord, actuator_to_json, keep_shapes
from robokit.sweeps.table import FAILURE, HASH, RowTable, public_table

# ==== user measures ===============================================================================
# User-defined measures in a recipe: their code is stored with it, and runs where rows are computed.
#
# Opening, reading or showing a sweep runs none of it; only a sweep that is resumed needs it.

NO_CLOUDPICKLE = (
    "a measure of your own is stored with the recipe, by cloudpickle: pip install 'robokit[sweep]'"
)

MEASURE_FIELDS = ("name", "reduce", "threshold", "unit", "link")


@frozen(eq=False)
class StoredMeasure:
    """A measure of the user's own, as a recipe keeps it."""

    about: dict[str, Any]  # its name, reduction, threshold, unit and link
    # hash of what the function computes for the robots of the sweep; "" where it cannot be recorded
    source: str
    code: bytes  # the function, pickled

    @classmethod
    def of(cls, measure: Measure, robots: Iterable[Robot]) -> StoredMeasure:
        """The record of a measure for these robots; ModelError if its function cannot be pickled."""
        try:
            code = _pickled(measure.function)
        except MissingDependency:  # nor is it needed, as long as all rows are computed here and none is kept
            code = b""
        except Exception as error:  # pickling may raise anything, depending on what the function refers to
            raise ModelError(
                f"measure {measure.name!r}: its function cannot be sent to other processes: "
                f"{one_line(str(error), 120)}"
            ) from error
        found = cls(
            {name: getattr(measure, name) for name in MEASURE_FIELDS}, _source(measure.function, robots), code
        )
        if not code:
            found.__dict__["measure"] = measure
        return found

    @cached_property
    def measure(self) -> Measure:
        """The measure; this runs stored code, and raises ModelError where that does not run here."""
        try:
            return Measure(pickle.loads(self.code), **self.about)
        except Exception as error:  # the stored code may raise anything
            raise ModelError(
                f"measure {self.about['name']!r} of the recipe cannot be made here: "
                f"{one_line(str(error), 120)}"
            ) from error

    def identity(self) -> dict[str, Any]:
        """What equal measures of two sweeps have in common; the code only if nothing else tells."""
        code = {} if self.source else {"code": base64.b64encode(self.code).decode("ascii")}
        return {**self.about, "source": self.source, **code}

    def record(self) -> dict[str, Any]:
        """All of it, for JSON; MissingDependency without cloudpickle, which comes with Dask."""
        if not self.code:
            raise MissingDependency(NO_CLOUDPICKLE)
        return {**self.about, "source": self.source, "code": base64.b64encode(self.code).decode("ascii")}


def _pickled(function: Function) -> bytes:
    """A function with the text of the user's own modules that it needs: other processes do not find these."""
    try:
        import cloudpickle
    except ImportError as error:
        raise MissingDependency(NO_CLOUDPICKLE) from error

    own = [module for module in list(sys.modules.values()) if _is_own(module)]
    names = {module.__name__ for module in own}

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Function) and obj.__module__ in names:
                return obj.made_by[0], obj.made_by[1:]
            return super().reducer_override(obj)

    before = cloudpickle.list_registry_pickle_by_value()
    mine = [module for module in own if module.__name__ not in before]
    found = io.BytesIO()
    try:
        for module in mine:
            cloudpickle.register_pickle_by_value(module)
        Pickler(found).dump(function)
    finally:
        for module in mine:
            cloudpickle.unregister_pickle_by_value(module)
    return found.getvalue()


def _is_own(module: Any) -> bool:
    """Whether a module lies in the current folder or beside the program, and is not installed there."""
    file, name = getattr(module, "__file__", None), getattr(module, "__name__", "__main__")
    if not isinstance(file, str) or name == "__main__" or name.partition(".")[0] == "robokit":
        return False
    beside = getattr(sys.modules["__main__"], "__file__", None)
    roots = [Path.cwd(), *([Path(beside).resolve().parent] if beside else [])]
    place = Path(file).resolve()
    installed = {"site-packages", "dist-packages"}
    if installed.intersection(place.parts) or place.is_relative_to(sysconfig.get_path("stdlib")):
        return False
    return any(place.is_relative_to(root) for root in roots)


def _source(function: Function, robots: Iterable[Robot]) -> str:
    """What a function computes for robots, as a hash; "" where it cannot be recorded."""
    found = hashlib.sha256(repr((function.name, function.row.derived)).encode())
    try:
        for robot in robots:
            found.update(recorded_key(function.row, robot))
    except (RobokitError, TraceTooLarge):  # of its text, which says so when rows are computed
        return ""
    return found.hexdigest()


def measure_to_json(measure: str | StoredMeasure) -> Any:
    """A measure of a recipe, for JSON."""
    return measure if isinstance(measure, str) else measure.record()


def measure_from_json(content: Any) -> str | StoredMeasure:
    """What :func:`measure_to_json` gave; raises LookupError, TypeError or ValueError for anything else."""
    if isinstance(content, str):
        if content not in measures:
            raise UnknownName("measure", content, measures, "(print(rk.measures) lists them)")
        return content
    if not isinstance(content, Mapping):
        raise TypeError(f"measure {shown(content)}")
    about = {name: content[name] for name in MEASURE_FIELDS}
    for name, x in about.items():
        if name == "threshold":
            good = x is None or real_number("threshold", x) is not None
        else:
            good = isinstance(x, str) or (name == "link" and x is None)
        if not good:
            raise TypeError(f"measures: {name!r} is {shown(x)}")
    source, code = content["source"], content["code"]
    if not (isinstance(source, str) and isinstance(code, str)):
        raise TypeError(f"measures: source {shown(source)} and code {shown(code)}")
    return StoredMeasure(about, source, base64.b64decode(code, validate=True))


# ==== the recipe of a sweep: all that its rows follow from ========================================
# Row k is a function of the recipe and of k: its parameters, its start, its motion, its measures. None of it
# depends on the chunk that it is computed in, on the machine, or on other rows.

FORMAT = Format(1)  # raised when rows would come out otherwise, or could not be read
MAX_ROWS = 2**32  # rows of a sweep: a Sobol sequence has so many points
MAX_STEPS = 1e8  # time steps of a row

OPTIONS = ("integrator", "joint_damping")
"""Arguments of :func:`robokit.rollout` that a recipe may have besides its own."""

Values = Mapping[str, np.ndarray]  # parameters of rows by name, (B,) each


@frozen(eq=False)
class Recipe:
    """The recipe of a sweep, which determines all its rows.

    Attributes:
        robots: robots by name, as the recipe stores them.
        parameters: distributions by name, in the order of the columns.
        count: number of rows.
        seed: seed of the random streams.
        duration: of each run [s].
        dt: time step [s] of each robot.
        ground: the ground, or None.
        measures: what is measured: names, and measures of the user's own.
        standing: whether the starts of each robot are standing configurations.
        options: further arguments of the runs: integrator, joint_damping.
        trajectories: rows whose motion is recorded.
        versions: versions of robokit and the libraries that the recipe was made with, by name; the processor,
            and a hash of robokit's source.
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
        """The name of a row's robot."""
        if len(self.robots) == 1:
            return next(iter(self.robots))
        return str(self.rows(row, row + 1)["robot"][0])

    def robot(self, name: str) -> Robot:
        """A robot of the sweep, with exactly the stored numbers."""
        return self.robots[name].robot

    def steps(self, name: str) -> int:
        """Number of time steps in a row of this robot."""
        return max(1, round(self.duration / self.dt[name]))

    def compute(self, first: int, last: int) -> Any:
        """Parameters and measures of rows first..last-1, with the same bits in every chunk and on every
        machine.

        Returns:
            a ``pyarrow.Table``, or what :meth:`compute_rows` gives where pyarrow is not installed.
        """
        return public_table(self.compute_rows(first, last))

    def compute_rows(self, first: int, last: int, device: str | None = None) -> RowTable:
        """Columns of rows first..last-1: row, the parameters, the measures, final_hash, failure.

        ``device``: as in :func:`robokit.rollout`; the rows have the same bits on each.
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
        """The run of a row, computed again to the same bits, with energies, contacts and events.

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
        """The recipe as JSON text, from which :meth:`from_json` makes the same recipe."""
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
        """The recipe from its JSON text.

        Raises:
            ModelError: the text is not a recipe, or has a format that this version does not know.
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
    """Refuse, by ShapeError, a row without a time step, or with more than anybody could wait for."""
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


@frozen
class Runs:
    """Rows of one robot, ready to be run."""

    robot: Robot  # with one sample of inertias a row where these differ
    # q, v: the states at the start, (B, nq) and (B, nv); NaN in a row that cannot be run
    q: np.ndarray
    v: np.ndarray
    ground: Ground | None  # what they fall on, or None
    pushes: list[Push]  # on each row
    actuators: list[Actuator]  # of each row
    broken: dict[int, str]  # why rows cannot be run, by their place among these


def prepare_rows(recipe: Recipe, name: str, rows: np.ndarray, values: Values) -> Runs:
    """The runs of rows of one robot: by their numbers and their parameters, (B,) each."""
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
        samples = with_damping(
            robot.with_inertias(inertias), values, default, None if ground is None else ground.sink
        )
        keep_shapes(samples, record.shapes, error)
    if ground is not None and not (standing and "height" not in values):
        depth = -ground_gaps(robot, q, ground)
        for row in np.flatnonzero(depth > buried_depth(robot, ground)).tolist():
            broken[row] = f"it starts {depth[row]:.3g} m below the ground"
            q[row] = np.nan
    actuators = row_actuators(robot, record.actuators, values, q, rows, recipe.seed)
    return Runs(samples, q, v, ground, row_pushes(robot, values, recipe.parameters), actuators, broken)


def run_rows(recipe: Recipe, name: str, runs: Runs, **options: Any) -> Rollout:
    """The runs of one robot; KeyboardInterrupt at Ctrl-C, where a rollout returns what it has."""
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


OFFSET, PRIME = 0xCBF29CE484222325, 0x100000001B3  # constants of FNV-1a for 64 bits


def state_hash(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Hash of states, (nq,) and (nv,) or (B, nq) and (B, nv), as uint64, () or (B,).

    Equal bits give equal numbers, other bits almost surely others. It is FNV-1a over the float64 numbers of
    q, then v, each taken as one 64-bit word. High bits are folded down after each word, for a product alone
    never carries them there. The report's page computes the same.
    """
    words = np.concatenate([np.asarray(q, "<f8"), np.asarray(v, "<f8")], axis=-1).view("<u8")
    h = np.full(words.shape[:-1], OFFSET, np.uint64)
    with np.errstate(over="ignore"):
        for k in range(words.shape[-1]):
            h = (h ^ words[..., k]) * np.uint64(PRIME)
            h ^= h >> np.uint64(32)
    return np.asarray(h)


# ==== From the arguments of a sweep to its recipe =================================================

STATE_NAMES = ("q", "v")


def make_recipe(
    robots: Robot | Sequence[Robot] | Mapping[str, Robot],
    *,
    starts: Any = None,
    parameters: Mapping[str, Any] | None = None,
    duration: float = 1.0,
    ground: Ground | bool | None = True,
    measures: Any = None,
    count: int | None = None,
    seed: int = 0,
    dt: float | None = None,
    sobol: bool = False,
    trajectories: Sequence[int] = (),
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: Any = None,
    gravity: Sequence[float] | None = None,
    actuators: Any = None,
) -> Recipe:
    """The recipe of a sweep; arguments and errors as those of :func:`robokit.sweep`."""
    named = named_robots(robots)
    if isinstance(actuators, Mapping):
        for name in actuators:
            if name not in named:
                raise UnknownName("robot", str(name), named, "in this sweep (actuators)")
    if gravity is not None:
        named = {name: robot.with_gravity(gravity) for name, robot in named.items()}
    ground = ground_of(ground)
    if ground is not None and ground.rows is not None:
        raise ShapeError("ground: a sweep's friction by row is its parameter friction=rk.Uniform(...)")
    start_parameters, states = _split_starts(starts)
    values = dict(start_parameters)
    for name, value in (parameters or {}).items():
        if name in values:
            raise ShapeError(f"parameters: {name!r} is among the starts already")
        values[name] = value
    duration = real_number("duration", duration, above=0.0)
    start = {name: _start_states(name, robot, states, ground) for name, robot in named.items()}
    number = {len(q) for q, _, _ in start.values()}
    if len(number) > 1:
        raise ShapeError(f"starts: robots have {min(number)} and {max(number)} states; give each as many")
    drawn = check_parameters(values, named, number.pop(), ground is not None)
    if ground is not None and "ground_tilt" in drawn and not (ground.only_plane and ground.horizontal):
        raise ShapeError("ground_tilt: expected a ground that is one horizontal plane at rest, to be tilted")
    if sobol:
        drawn = {n: Sobol(x.low, x.high) if type(x) is Uniform else x for n, x in drawn.items()}
    if count is None:
        count = grid_size(drawn)
        if count == 1:
            raise ShapeError("count: expected the number of rows; only rk.Grid determines it by itself")
    count = whole_number("count", count, 1, MAX_ROWS)
    steps = {name: _time_step(robot, ground, dt, duration) for name, robot in named.items()}
    drives = {
        name: _checked_actuators(name, robot, actuators, (steps[name], duration), start[name][0])
        for name, robot in named.items()
    }
    for name, robot in ({n: r for n, r in named.items() if drives[n]} or named).items():
        check_drives(robot, drives[name], list(drawn))
    links = [name.partition(":")[2] for name in drawn if name.startswith("mass:")]
    options = {"integrator": integrator, "joint_damping": joint_damping}
    return Recipe(
        robots={
            name: RobotRecord.of(robot, *start[name][:2], ground, links, self_collision, drives[name])
            for name, robot in named.items()
        },
        parameters=drawn,
        count=count,
        trajectories=tuple(sorted({whole_number("trajectories", k, 0, count - 1) for k in trajectories})),
        seed=whole_number("seed", seed, 0, LARGEST_SEED),
        duration=duration,
        dt=steps,
        ground=ground,
        measures=tuple(
            StoredMeasure.of(x, named.values()) if isinstance(x, Measure) else x
            for x in wanted_measures(DEFAULT if measures is None else measures)
        ),
        standing={name: standing for name, (_, _, standing) in start.items()},
        options={name: x for name, x in options.items() if x not in (None, False)},
        versions=versions(),
    )


def named_robots(robots: Any) -> dict[str, Robot]:
    """The robots of a sweep by name; WrongType where there are none, ShapeError where two have one name."""
    if isinstance(robots, Robot):
        return {robots.name: robots}
    if isinstance(robots, Mapping):
        named = dict(robots)
    elif isinstance(robots, Sequence) and not isinstance(robots, str):
        named = {getattr(robot, "name", k): robot for k, robot in enumerate(robots)}
        if len(named) != len(robots):
            raise ShapeError("robots: two have one name; give {name: robot, ...}")
    else:
        raise not_a_robot(robots, "robots")
    for name, robot in named.items():
        check_robot(robot, f"robots[{name!r}]")
        if not isinstance(name, str):
            raise WrongType("robots", name, "names as keys")
    if not named:
        raise ShapeError("robots: expected at least one, got none")
    return named


def _split_starts(starts: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the start, and states to start from: q and v."""
    if starts is None:
        return {}, {}
    if isinstance(starts, Mapping):
        states = {name: starts[name] for name in STATE_NAMES if name in starts}
        return {name: x for name, x in starts.items() if name not in STATE_NAMES}, states
    if isinstance(starts, tuple) and len(starts) == 2:
        return {}, dict(zip(STATE_NAMES, starts, strict=True))
    return {}, {"q": starts}


def _start_states(
    name: str, robot: Robot, states: Mapping[str, Any], ground: Ground | None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Configurations and velocities to start from, (S, nq) and (S, nv); whether they are standing ones."""
    q, v = (x.get(name) if isinstance(x, Mapping) else x for x in (states.get(k) for k in STATE_NAMES))
    standing = q is None and robot.base == "floating"
    if standing:
        # On a ground that is not even, each row is lowered onto it where it is.
        q = standing_configuration(robot, ground_height=0.0 if ground is None else ground.height)
    elif q is None:
        q = robot.neutral()
    q = _state_rows(f"starts: q of robot {name!r}", q, robot.nq)
    v = _state_rows(f"starts: v of robot {name!r}", np.zeros(robot.nv) if v is None else v, robot.nv)
    S = max(len(q), len(v))
    if min(len(q), len(v)) not in (1, S):
        raise ShapeError(f"starts: robot {name!r} has {len(q)} configurations and {len(v)} velocities")
    check_quaternions(f"starts: q of robot {name!r}", robot, q)
    return np.array(np.broadcast_to(q, (S, robot.nq))), np.array(np.broadcast_to(v, (S, robot.nv))), standing


def _state_rows(what: str, states: Any, n: int) -> np.ndarray:
    array = real_array(what, states, f"({n},) or (S, {n})")
    rows = np.atleast_2d(array)
    if rows.ndim != 2 or rows.shape[1] != n or not len(rows):
        raise ShapeError(f"{what}: expected shape ({n},) or (S, {n}), got {array.shape}")
    if not np.isfinite(rows).all():
        raise ShapeError(f"{what}: expected finite numbers")
    return rows


def _time_step(robot: Robot, ground: Ground | None, dt: float | None, duration: float) -> float:
    """The time step of a robot [s]."""
    step = default_step(robot, ground is not None) if dt is None else real_number("dt", dt, above=0.0)
    if ground is not None and step > longest_step(ground):
        raise ShapeError(f"dt: {step:g} s is too long for contact; take {longest_step(ground):.3g} s or less")
    check_steps(duration, step)
    return step


def _checked_actuators(
    name: str, robot: Robot, actuators: Any, times: tuple[float, float], q: np.ndarray
) -> tuple[Actuator, ...]:
    """The actuators of a robot, checked as a run of a step and a duration would check them."""
    own = actuators_of(actuators.get(name) if isinstance(actuators, Mapping) else actuators)
    if not own:
        return ()
    for one in own:
        actuator_to_json(one)  # refuses functions
    dt, duration = times
    fitted = DrivenJoints(with_rotors(robot, own), own, dt, max(1, round(duration / dt)), q[:1], None)
    if fitted.rows is not None:
        raise ShapeError(
            f"actuators: expected one set of numbers for all rows, got {fitted.rows}; a sweep changes them "
            "by parameters such as kp=rk.Uniform(0.5, 2.0)"
        )
    return own
