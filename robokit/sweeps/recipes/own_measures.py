"""Measures of the user's own in a recipe: their code is stored with it, and runs where rows are computed.

Nothing of it runs when a sweep is opened, read or shown; only a sweep that goes on needs it.
"""

from __future__ import annotations

import base64
import hashlib
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from robokit.dynamics.build import recorded_key
from robokit.dynamics.function_objects import Function
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import MissingDependency, ModelError, RobokitError, one_line
from robokit.model.robot import Robot
from robokit.sim.measuring import Measure

WORDS = ("name", "reduce", "threshold", "unit", "link")


@dataclass(frozen=True, eq=False)
class OwnMeasure:
    """A measure of the user's own, as a recipe keeps it.

    Attributes:
        about: its name, reduction, threshold, unit and link.
        source: hash of what the function computes for the robots of the sweep; "" where it cannot be
            recorded.
        code: the function, pickled.
    """

    about: dict[str, Any]
    source: str
    code: bytes

    @classmethod
    def of(cls, given: Measure, robots: Iterable[Robot]) -> OwnMeasure:
        """The record of a measure.

        Args:
            given: the measure.
            robots: of the sweep.

        Raises:
            MissingDependency: cloudpickle, which comes with Dask, is not installed.
            ModelError: the function cannot be sent to other processes.
        """
        try:
            import cloudpickle
        except ImportError as error:
            raise MissingDependency(
                "a measure of your own goes to other processes: pip install 'robokit[sweep]'"
            ) from error
        try:
            code = cloudpickle.dumps(given.function)
        except Exception as error:  # whatever the function refers to
            raise ModelError(
                f"measure {given.name!r}: its function cannot be sent to other processes: "
                f"{one_line(str(error), 120)}"
            ) from error
        return cls({name: getattr(given, name) for name in WORDS}, _source(given.function, robots), code)

    @cached_property
    def measure(self) -> Measure:
        """The measure; this runs stored code.

        Raises:
            ModelError: it does not run here, for example under another version of Python.
        """
        try:
            return Measure(pickle.loads(self.code), **self.about)
        except Exception as error:  # whatever the stored code raises
            raise ModelError(
                f"measure {self.about['name']!r} of the recipe cannot be made here: "
                f"{one_line(str(error), 120)}"
            ) from error

    def record(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {**self.about, "source": self.source, "code": base64.b64encode(self.code).decode("ascii")}


def _source(function: Function, robots: Iterable[Robot]) -> str:
    """What a function computes for robots, as a hash; "" where it cannot be recorded."""
    found = hashlib.sha256(repr((function.name, function.row.derived)).encode())
    try:
        for robot in robots:
            found.update(recorded_key(function.row, robot))
    except (RobokitError, TraceTooLarge):  # of its text, which says so when rows are computed
        return ""
    return found.hexdigest()


def measure_record(given: str | OwnMeasure) -> Any:
    """A measure of a recipe, for JSON."""
    return given if isinstance(given, str) else given.record()


def measure_of_record(given: Any) -> str | OwnMeasure:
    """What :func:`measure_record` gave.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"measure {given!r}")
    about = {name: given[name] for name in WORDS}
    return OwnMeasure(about, given["source"], base64.b64decode(given["code"], validate=True))
