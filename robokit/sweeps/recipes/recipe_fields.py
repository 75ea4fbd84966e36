"""What a recipe holds, as JSON both ways, and the parameters of its rows."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from robokit.arguments import real_number, whole_number
from robokit.disk_cache import source_digest
from robokit.engine.backend import cpu
from robokit.errors import ModelError, RobokitError, ShapeError, one_line, shown
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.ground.saved_ground import HEIGHTS, record_ground, restored_ground
from robokit.sweeps.draws import row_parameters
from robokit.sweeps.draws.distributions import Distribution, from_record
from robokit.sweeps.draws.parameter_table import check_kind
from robokit.sweeps.draws.random_streams import LARGEST_SEED
from robokit.sweeps.recipes.own_measures import OwnMeasure, measure_of_record, measure_record
from robokit.sweeps.recipes.robot_record import RobotRecord
from robokit.sweeps.recipes.stored_numbers import array_of_record, record_of_array

FORMAT = 1
"""Number of the recipe's format: raised when rows would come out otherwise, or could not be read."""

MOST_ROWS = 2**32
"""Of a sweep: a Sobol sequence has so many points."""

MOST_STEPS = 1e8
"""Of a row."""

SECTIONS: dict[str, type] = {
    **dict.fromkeys(("robots", "parameters", "dt", "standing", "options", "versions"), dict),
    **dict.fromkeys(("measures", "trajectories"), list),
}
"""Parts of a recipe's JSON, and what they are."""

PARSED = (AttributeError, LookupError, TypeError, ValueError, OverflowError)
"""What a record that makes no sense may raise."""

OPTIONS = ("integrator", "joint_damping")
"""What else the runs may be given."""


@dataclass(frozen=True, eq=False)
class RecipeFields:
    """What a recipe holds; :class:`robokit.sweeps.recipes.recipe.Recipe` says what each of it is."""

    robots: Mapping[str, RobotRecord]
    parameters: Mapping[str, Distribution]
    count: int
    seed: int
    duration: float
    dt: Mapping[str, float]
    ground: Ground | None
    measures: tuple[str | OwnMeasure, ...]
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
        given = json.loads(self.to_json())
        del given["versions"]
        for robot in given["robots"].values():
            del robot["source"]
            robot.pop("looks", None)
        for measure in given["measures"]:
            if not isinstance(measure, str) and measure["source"]:
                del measure["code"]
        return hashlib.sha256(json.dumps(given, separators=(",", ":")).encode()).hexdigest()

    def rows(self, first: int, last: int) -> dict[str, np.ndarray]:
        """The parameters of rows first..last, (B,) each: numbers, or words as objects.

        Raises:
            ShapeError: there are no such rows.
        """
        if not 0 <= first <= last <= self.count:
            raise ShapeError(f"rows: expected 0 <= first <= last <= {self.count}, got {first} and {last}")
        return row_parameters.draw(self.parameters, self.seed, first, last)

    def robot_of(self, row: int) -> str:
        """The name of the robot of a row."""
        if len(self.robots) == 1:
            return next(iter(self.robots))
        return str(self.rows(row, row + 1)["robot"][0])

    def robot(self, name: str) -> Robot:
        """A robot of the sweep, to the bit."""
        return self.robots[name].robot

    def to_json(self) -> str:
        """The recipe as text; :meth:`from_json` makes the same recipe of it."""
        ground = None
        if self.ground is not None:
            about, arrays = record_ground(self.ground)
            ground = about | {name: record_of_array(x) for name, x in arrays.items()}
        found = {
            "format": FORMAT,
            "count": self.count,
            "seed": self.seed,
            "duration": self.duration,
            "dt": dict(self.dt),
            "parameters": {name: x.record() for name, x in self.parameters.items()},
            "ground": ground,
            "measures": [measure_record(each) for each in self.measures],
            "standing": dict(self.standing),
            "options": dict(self.options),
            "trajectories": list(self.trajectories),
            "robots": {name: robot.to_record() for name, robot in self.robots.items()},
            "versions": dict(self.versions),
        }
        return json.dumps(found, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The recipe of a text.

        Raises:
            ModelError: the text is no recipe, or one of a format that this version does not know.
        """
        try:
            given = json.loads(text)
            number = given["format"]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ModelError(f"this is no recipe of a sweep: {error}") from error
        if number != FORMAT:
            made = given.get("versions", {}).get("robokit", "another version")
            raise ModelError(
                f"the recipe has format {number}, made by robokit {made}; this one reads format {FORMAT}: "
                f"its rows can be made again by robokit {made} alone (pip install robokit=={made})"
            )
        try:
            return cls(**_read(given))
        except PARSED as error:
            raise ModelError(f"this is no whole recipe of a sweep: {_words(error)}") from error


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recipe from its JSON, each checked."""
    for name, kind in SECTIONS.items():
        _check_kind(name, given[name], kind)
    ground = given["ground"]
    if ground is not None:
        _check_kind("ground", ground, dict)
        about = {name: x for name, x in ground.items() if name != HEIGHTS}
        heights = ground.get(HEIGHTS)
        ground = restored_ground(about, None if heights is None else array_of_record(heights))
    count = whole_number("count", given["count"], 1, MOST_ROWS)
    duration = real_number("duration", given["duration"], above=0.0)
    robots = _each("robots", given["robots"], RobotRecord.from_record)
    if not robots:
        raise ShapeError("robots: expected at least one, got none")
    parameters = _each("parameters", given["parameters"], from_record)
    for name, values in parameters.items():
        check_kind(name, values)
    dt = {name: real_number("dt", given["dt"][name], above=0.0) for name in robots}
    for step in dt.values():
        check_steps(duration, step)
    read = {
        "robots": robots,
        "parameters": parameters,
        "count": count,
        "seed": whole_number("seed", given["seed"], 0, LARGEST_SEED),
        "duration": duration,
        "dt": dt,
        "ground": ground,
        "measures": tuple(measure_of_record(each) for each in given["measures"]),
        "standing": {name: _flag(f"standing[{name!r}]", given["standing"][name]) for name in robots},
        "options": _options(given["options"]),
        "trajectories": tuple(
            whole_number("trajectories", row, 0, count - 1) for row in given["trajectories"]
        ),
        "versions": {name: str(x) for name, x in given["versions"].items()},
    }
    for name in ("dt", "standing"):
        if given[name].keys() != robots.keys():
            raise ShapeError(f"{name}: expected those of {', '.join(robots)}, got {shown(list(given[name]))}")
    assert list(read) == [field.name for field in fields(RecipeFields)]
    return read


def _check_kind(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        what = "an object" if kind is dict else "a list"
        raise TypeError(f"{name}: expected {what}, got {shown(value)}")


def _each(name: str, given: Mapping[str, Any], made: Callable[[Any], Any]) -> dict[str, Any]:
    """What is made of each entry; an error names it."""
    found = {}
    for key, x in given.items():
        where = f"{name}[{key!r}]"
        _check_kind(where, x, dict)
        try:
            found[key] = made(x)
        except PARSED as error:
            raise ValueError(f"{where}: {_words(error)}") from error
    return found


def _words(error: Exception) -> str:
    missing = isinstance(error, KeyError) and not isinstance(error, RobokitError)
    return one_line(f"{error} is missing" if missing else str(error), 200)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ShapeError(f"{name}: expected true or false, got {shown(value)}")
    return value


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """What else the runs are given; the values are checked where they run."""
    for name, value in given.items():
        if name not in OPTIONS:
            raise ShapeError(f"options: expected {' and '.join(OPTIONS)}, got {shown(name)}")
        if name == "joint_damping":
            real_number("joint_damping", value, least=0.0)
        elif not isinstance(value, str):
            raise ShapeError(f"{name}: expected its name, got {shown(value)}")
    return dict(given)


def check_steps(duration: float, dt: float) -> None:
    """Refuse a row without a step, or with more than anybody could wait for.

    Args:
        duration: of a row [s].
        dt: time step [s].

    Raises:
        ShapeError: it is one.
    """
    steps = duration / dt
    if round(min(steps, MOST_STEPS + 1.0)) < 1 or steps > MOST_STEPS:
        raise ShapeError(f"duration: {duration:g} s are {steps:.3g} steps of {dt:g} s; take 1 to 1e8")


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else float(value)


def versions() -> dict[str, str]:
    """Those of robokit and of the libraries that a recipe's numbers come from, the source and the processor.

    "source" is a hash of robokit's text: rows of the same recipe may differ where it does. It is "" where
    files were edited while the program ran.
    """
    import scipy

    own = getattr(sys.modules["robokit"], "__version__", "unknown")  # the package is above this folder
    return {
        "robokit": own,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "processor": cpu.name(),
        "source": source_digest().hex()[:16],
    }
