"""User-defined measures in a recipe: their code is stored with it, and runs where rows are computed.

Opening, reading or showing a sweep runs none of it; only a sweep that is resumed needs it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import pickle
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from robokit.arguments import real_number
from robokit.contact.measures import measures
from robokit.dynamics.build import recorded_key
from robokit.dynamics.function_objects import Function
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import MissingDependency, ModelError, RobokitError, UnknownName, one_line, shown
from robokit.model.robot import Robot
from robokit.sim.rollout_measures import Measure

NO_CLOUDPICKLE = (
    "a measure of your own is stored with the recipe, by cloudpickle: pip install 'robokit[sweep]'"
)

MEASURE_FIELDS = ("name", "reduce", "threshold", "unit", "link")


@dataclass(frozen=True, eq=False)
class StoredMeasure:
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
    def of(cls, measure: Measure, robots: Iterable[Robot]) -> StoredMeasure:
        """The record of a measure.

        Args:
            measure: the measure.
            robots: of the sweep.

        Raises:
            ModelError: the function cannot be sent to other processes.
        """
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
        """The measure; this runs stored code.

        Raises:
            ModelError: it does not run here, for example under another version of Python.
        """
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
        """All of it, for JSON.

        Raises:
            MissingDependency: cloudpickle, which comes with Dask, is not installed.
        """
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
            if isinstance(obj, Function) and obj.__module__ in names and not obj._made_by:
                return object.__reduce_ex__(obj, pickle.DEFAULT_PROTOCOL)
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
    """What :func:`measure_to_json` gave.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    if isinstance(content, str):
        if content not in measures:
            raise UnknownName("measure", content, measures, "(print(rk.measures) lists them)")
        return content
    if not isinstance(content, Mapping):
        raise TypeError(f"measure {shown(content)}")
    about = {name: content[name] for name in MEASURE_FIELDS}
    for name in MEASURE_FIELDS:
        x = about[name]
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
