"""Measures of the user's own: a function of the state, reduced over the steps of each row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robokit.arguments import one_of
from robokit.contact.measures import NEVER
from robokit.dynamics.build import flat, recorded_key, row_of, without_inertias
from robokit.dynamics.differentiate import Flat
from robokit.dynamics.function_objects import Function
from robokit.errors import ShapeError, UnknownName, WrongType, shown
from robokit.model.inertial_parameters import COUNT
from robokit.sim.measuring.run_ends import of_states
from robokit.sim.step_kernel import Happened, Program
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, where

REDUCTIONS = ("max", "min", "mean", "final", "first_above", "first_below")

INPUTS = ("q", "v", "tau", "t", "contact_force")
"""What a function may take of a step."""

LARGEST = 1e30
"""Values from here on count as not finite."""


@dataclass(frozen=True)
class Measure:
    """A function of the state and a way to reduce it over the states of a row: ``rk.Measure(speed, "max")``.

    It is evaluated at the start and after every step, whatever is recorded. The function is made by
    ``rk.function``; its inputs are some of

    - q, v: the state;
    - tau: joint forces of the step before the state [N m | N]; at the start those of the first step;
    - t: time, a number: ``inputs={"q": "q", "t": ()}`` [s];
    - contact_force: force of the ground on the robot, or on ``link``, in the step before the state, world
      axes [N]: ``{"contact_force": (3,)}``; 0 at the start.

    Its outputs are numbers, ``outputs={"speed": ()}``. Values that are not finite are ignored.

    Attributes:
        function: of ``rk.function``, or one of ``rk.functions`` whose result is a number.
        reduce: "max" or "min", with the time of the state in ``NAME_time``; "mean" over all states; "final";
            "first_above" or "first_below", the time of the first state beyond the threshold [s], NaN if none.
        name: name of the column; by default that of the function. With several outputs, NAME_OUTPUT.
        threshold: threshold of "first_above" and "first_below".
        unit: of the values, for tables and plots.
        link: link of the contact force; None for the whole robot.
    """

    function: Function
    reduce: str = "max"
    name: str = ""
    threshold: float | None = None
    unit: str = ""
    link: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.function, Function):
            raise WrongType("function", self.function, "a function made by rk.function")
        one_of("reduce", self.reduce, REDUCTIONS)
        if not self.name:
            object.__setattr__(self, "name", self.function.name)
        if not isinstance(self.name, str):
            raise WrongType("name", self.name, "a name")
        beyond = self.reduce.startswith("first_")
        if beyond != (self.threshold is not None):
            needs = f"reduce={self.reduce!r} needs one" if beyond else f"reduce={self.reduce!r} has none"
            raise ShapeError(f"threshold: {needs}, got {shown(self.threshold)}")
        if self.threshold is not None:
            value = self.threshold
            real = isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
            if not real or not math.isfinite(value):
                raise ShapeError(f"threshold: expected a finite number, got {shown(value)}")
            object.__setattr__(self, "threshold", float(value))
        wrong = [name for name in self.function.inputs if name not in INPUTS]
        if wrong:
            raise UnknownName(f"input of measure {self.name!r}", wrong[0], INPUTS)


@dataclass(frozen=True)
class OwnTracker:
    """The numbers of a measure, in every step; a tracker (step/measured.py).

    Each output of the function has two: its best value and the number of that state, its sum and their
    count, its last value and whether that is finite, or the first state beyond the threshold and nothing.

    Attributes:
        key: identifies the function on this robot.
        outputs: names of the function's.
        reduce, threshold: of the measure.
        link: number of its link among those that can touch the ground; None for all.
        text: the function, flat.
    """

    key: bytes
    outputs: tuple[str, ...]
    reduce: str
    threshold: float | None
    link: int | None
    text: Flat = field(repr=False, compare=False)

    @staticmethod
    def of(measure: Measure, program: Program) -> OwnTracker:
        """The tracker of a measure for a robot.

        Raises:
            ShapeError: an output that is no number, or an input of a wrong size.
            UnknownName: a link that cannot touch the ground.
        """
        robot = without_inertias(program.robot) if program.open else program.robot
        key = measure.function.key(robot)
        row = row_of(key)
        row = replace(row, sums="")  # with the bodies' own inertias, which are what a step knows
        parameters = program.open and row.inertial
        text = flat(row, robot, key, parameters)
        sizes = {"q": robot.nq, "v": robot.nv, "tau": robot.nv, "t": 1, "contact_force": 3}
        what = f"measure {measure.name!r}"
        for each in text.inputs:
            if each.name in sizes and each.size != sizes[each.name]:
                raise ShapeError(
                    f"{what}: its input {each.name!r} has {each.size} numbers, expected {sizes[each.name]}"
                )
        for name, shape in text.outputs:
            if math.prod(shape) != 1:
                raise ShapeError(
                    f"{what}: its output {name!r} has shape {shape}, expected a number, (); give the text "
                    "an output for each number that matters"
                )
        if text.has_loops:
            raise ShapeError(
                f"{what}: its function has a loop whose length is known only when it runs, and measures are "
                "part of the step's straight line; make the length known (for_range(3, ...)), or call the "
                "function on the states afterwards"
            )
        link, known = None, program.touching_links
        if measure.link is not None:
            if measure.link not in known:
                raise UnknownName("link that can touch the ground", measure.link, known)
            link = known.index(measure.link)
        names = tuple(name for name, _ in text.outputs)
        about = repr((row.name, row.derived)).encode()
        identity = hashlib.sha256(about + recorded_key(row, robot, parameters)).digest()
        return OwnTracker(identity, names, measure.reduce, measure.threshold, link, text)

    @property
    def start(self) -> Sequence[float]:
        """See Tracker; the values of the start are put in by :meth:`first`."""
        return self._begin(self.outputs, None)

    def first(self, values: np.ndarray) -> np.ndarray:
        """The numbers before the first step, from the values at the start (B, outputs)."""
        numbers = self._begin(list(values.T), np.zeros(len(values)))
        return np.stack(np.broadcast_arrays(*numbers), axis=-1)

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        values = self.values(self._inputs(happened))
        out: list[Scalar] = []
        for k, value in enumerate(values):
            out += self._reduced(value, happened.step + 1.0, numbers[2 * k : 2 * k + 2])
        return out

    def values(self, given: dict[str, Any]) -> list[Scalar]:
        """The outputs of the function from inputs by name."""
        arguments = [given[each.name] for each in self.text.inputs]
        return [x for row in self.text.text(*arguments) for x in row]

    def _begin(self, values: Sequence[Any], zero: Any) -> list[Any]:
        """Numbers of the start from values; None for ``zero`` takes none."""
        out: list[Any] = []
        for value in values:
            fallback = [0.0, NEVER] if self.reduce not in ("mean", "final") else [0.0, 0.0]
            if zero is None:
                out += fallback
                continue
            out += self._reduced(value, zero, fallback)
        return out

    def _reduced(self, value: Scalar, state: Scalar, before: Sequence[Scalar]) -> list[Scalar]:
        """The two numbers with the value of one state more."""
        old, mark = before
        finite = (value < LARGEST) & (value > -LARGEST)
        if self.reduce == "mean":
            return [where(finite, old + value, old), where(finite, mark + 1.0, mark)]
        if self.reduce == "final":
            return [where(finite, value, 0.0), where(finite, 1.0, 0.0)]
        if self.reduce in ("max", "min"):
            more = value > old if self.reduce == "max" else value < old
            better = finite & (more | (mark < 0.0))
            return [where(better, value, old), where(better, state, mark)]
        beyond = value > self.threshold if self.reduce == "first_above" else value < self.threshold
        return [old, where(beyond & (mark < 0.0), state, mark)]

    def _inputs(self, happened: Happened) -> dict[str, Any]:
        """The inputs after a step; those that the function does not take are left to nobody."""
        given: dict[str, Any] = {
            **dict(zip(("q", "v", "tau"), happened.flat, strict=True)),
            "t": [(happened.step + 1.0) * happened.dt],
        }
        wanted = {each.name for each in self.text.inputs}
        if "contact_force" in wanted:
            given["contact_force"] = list(self._force(happened))
        if "inertial_parameters" in wanted:
            given["inertial_parameters"] = happened.parameters[-COUNT * (happened.p.tree.n + 1) :]
        return given

    def _force(self, happened: Happened) -> Vector3:
        if self.link is None:
            return happened.ground_force
        return happened.force_on(self.link)

    # ---- columns -------------------------------------------------------------------------------

    def columns(self, name: str, numbers: np.ndarray, dt: float) -> dict[str, np.ndarray]:
        """From the numbers (size, B) to columns."""
        found: dict[str, np.ndarray] = {}
        for k, output in enumerate(self.outputs):
            key = name if len(self.outputs) == 1 else f"{name}_{output}"
            value, mark = numbers[2 * k], numbers[2 * k + 1]
            there = mark >= 0.0
            if self.reduce == "mean":
                with np.errstate(all="ignore"):
                    found[key] = np.where(mark > 0.0, value / mark, np.nan)
            elif self.reduce == "final":
                found[key] = np.where(mark > 0.0, value, np.nan)
            elif self.reduce in ("max", "min"):
                found[key] = np.where(there, value, np.nan)
                found[f"{key}_time"] = np.where(there, mark * dt, np.nan)
            else:
                found[key] = np.where(there, mark * dt, np.nan)
        return found


def values_at_start(
    program: Program, tracker: OwnTracker, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float
) -> np.ndarray:
    """The values at the starts (B, ...), (B, outputs), by a kernel; NaN where a start is not finite.

    Args:
        tracker: of the measure.
        q, v: the starts.
        tau: joint forces of the first step, (B or 1, nv).
        dt: time step [s].
    """
    inertial = COUNT * (program.robot.nbodies + 1)

    def text(bare: Program) -> Any:
        def values(q: Any, v: Any, tau: Any, carried: Any, parameters: Any, *more: Any) -> list[list[Any]]:
            given = {"q": q, "v": v, "tau": tau, "t": [0.0], "contact_force": [0.0] * 3}
            return [tracker.values(given | {"inertial_parameters": parameters[-inertial:]})]

        return values

    name = f"measure_{tracker.key.hex()[:16]}"
    return of_states(program, name, text, len(tracker.outputs), q, v, tau, dt)
