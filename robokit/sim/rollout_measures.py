"""What rollouts measure in every step, without keeping the states: ``rk.rollout(..., measures=[...])``.

The measures that robokit has are in contact/measures.py, one class each.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.kinematics import forward_kinematics
from robokit.arguments import one_of
from robokit.contact.measures import NEVER, Columns, Subjects
from robokit.contact.measures import measures as known
from robokit.dataclass_tools import frozen
from robokit.dynamics.build import flat, recorded_key, row_of, without_inertias
from robokit.dynamics.differentiate import Flat
from robokit.dynamics.function_objects import Function
from robokit.errors import ShapeError, UnknownName, WrongType, shown
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.sim import motion
from robokit.sim.motion import bases_are_free, hangs_on_nothing
from robokit.sim.step_kernel import (
    NOTHING_MEASURED,
    Happened,
    Kept,
    MeasuredLayout,
    Program,
    Tracker,
    subjects_of,
)
from robokit.sim.steppers import energies
from robokit.spatial.scalars import Scalar, where

# ==== numbers of single states, by a kernel: the same bits whatever the number of rows ============

SIZE = 10
"""Figures of a state: kinetic and potential energy [J], height of the centre of mass and of the base [m],
centroidal momentum, angular and linear, world axes [N m s; N s]."""


def figures(program: Program, dt: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Figures of states (B, ...), one per row of steps of dt [s]: (B, SIZE); NaN if they are not finite."""
    plain, robot = copy(program), program.robot
    plain.measured = NOTHING_MEASURED

    def text(program: Program) -> Any:
        def numbers(q: Any, v: Any, tau: Any, carried: Any, parameters: Any, *more: Any) -> list[list[Any]]:
            tree, robot = program.problem(parameters, more).tree, program.robot
            rows, speeds = robot.split_q(q), robot.split_v(v)
            energy = [kinetic_energy(tree, rows, speeds), potential_energy(tree, rows)]
            base = forward_kinematics(tree, rows)[root(tree)].r.z if root(tree) else 0.0
            if not has_mass(program):
                return [[*energy, 0.0, base, *[0.0] * 6]]
            height, momentum = center_of_mass(tree, rows).z, centroidal_momentum(tree, rows, speeds)
            return [[*energy, height, base, *momentum]]

        return numbers

    kernel = plain.built("figures", text, inputs=[], outputs=[("figures", (SIZE,))])
    good = np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)
    q, v = np.where(good[:, None], q, robot.neutral()), np.where(good[:, None], v, 0.0)
    none = [np.zeros(size) for size in (robot.nv, program.layout.size)]
    inputs = [np.zeros(length) for _, length in program.given.inputs]
    arrays = [q, v, *none, program.parameters(dt), *inputs]
    with np.errstate(all="ignore"):
        found = np.asarray(
            kernel.batch(*(np.ascontiguousarray(x, program.dtype) for x in arrays)), dtype=float
        )
    found[~good] = np.nan
    return found


def has_mass(program: Program) -> bool:
    """Whether the robot has a centre of mass."""
    return program.open or bool(np.all(program.robot.total_mass))


def root(tree: Tree) -> int:
    """The body that is the base of the (first) robot that floats; 0 where none does."""
    return tree.children[0][0] if bases_are_free(tree) else 0


# ==== Measures of the user's own: a function of the state, reduced over the steps of each row =====

REDUCTIONS = ("max", "min", "mean", "final", "first_above", "first_below")

INPUTS = ("q", "v", "tau", "t", "contact_force")  # what a function may take of a step
LARGEST = 1e30  # values from here on count as not finite


@frozen
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
        function: made by ``rk.function``, or one of ``rk.functions`` whose result is a number.
        reduce: "max" or "min", with the time of the state in ``NAME_time``; "mean" over all states; "final";
            "first_above" or "first_below", the time of the first state beyond the threshold [s], NaN if none.
        name: name of the column; by default that of the function. With several outputs, NAME_OUTPUT.
        threshold: threshold of "first_above" and "first_below".
        unit: unit of the values, for tables and plots.
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


@frozen
class OwnTracker:
    """The numbers of a measure, in every step; a tracker (step/measured.py).

    Each output of the function has two: its best value and the number of that state, its sum and their
    count, its last value and whether that is finite, or the first state beyond the threshold and nothing.
    """

    key: bytes  # identifies the function on this robot
    outputs: tuple[str, ...]  # names of the function's
    # reduce, threshold: of the measure
    reduce: str
    threshold: float | None
    link: int | None  # number of its link among those that can touch the ground; None for all
    text: Flat = field(repr=False, compare=False)  # the function, flat
    made_by: tuple[Any, ...] = field(repr=False, compare=False)  # arguments of :meth:`of`, for pickle

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnTracker.of, self.made_by

    @staticmethod
    def of(measure: Measure, robot: Robot, given: bool, known: Sequence[str]) -> OwnTracker:
        """The tracker of a measure for a robot.

        ``given``: whether inertias are an input of the step; ``known``: links that can touch the ground.
        Raises ShapeError for an output that is no number or an input of a wrong size, UnknownName for a link
        that cannot touch the ground.
        """
        made_by = measure, robot, given, known
        robot = without_inertias(robot) if given else robot
        key = measure.function.key(robot)
        row = row_of(key)
        row = replace(row, sums="")  # with the bodies' own inertias, which are what a step knows
        parameters = given and row.inertial
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
                    f"{what}: its output {name!r} has shape {shape}, expected a number, (); give the "
                    "function an output for each number that matters"
                )
        if text.has_loops:
            raise ShapeError(
                f"{what}: its function has a loop whose length is known only when it runs, and measures are "
                "part of the step's straight line; make the length known (for_range(3, ...)), or call the "
                "function on the states afterwards"
            )
        link = None
        if measure.link is not None:
            if measure.link not in known:
                raise UnknownName("link that can touch the ground", measure.link, known)
            link = known.index(measure.link)
        names = tuple(name for name, _ in text.outputs)
        about = repr((row.name, row.derived)).encode()
        identity = hashlib.sha256(about + recorded_key(row, robot, parameters)).digest()
        return OwnTracker(identity, names, measure.reduce, measure.threshold, link, text, made_by)

    @property
    def start(self) -> Sequence[float]:
        """See Tracker; the state before the first step counts as that after step -1."""
        return [0.0, 0.0 if self.reduce in ("mean", "final") else NEVER] * len(self.outputs)

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        given: dict[str, Any] = dict(zip(("q", "v", "tau"), happened.flat, strict=True))
        given["t"] = [(happened.step + 1.0) * happened.dt]
        wanted = {each.name for each in self.text.inputs}  # others are left to nobody
        if "contact_force" in wanted:
            forces, k = happened.forces, self.link
            given["contact_force"] = list(forces[-3:] if k is None else forces[3 * k : 3 * k + 3])
        if "inertial_parameters" in wanted:
            given["inertial_parameters"] = happened.parameters[-COUNT * (happened.p.tree.n + 1) :]
        out = list[Scalar]()
        values = (
            x for row in self.text.function(*(given[each.name] for each in self.text.inputs)) for x in row
        )
        for k, value in enumerate(values):
            out += self._reduced(value, happened.step + 1.0, numbers[2 * k : 2 * k + 2])
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


class OwnMeasures:
    """Brings the numbers of a program's own measures up to date."""

    def __init__(self, program: Program) -> None:
        self.program, self.carried = program, np.zeros(program.layout.size)
        layout = program.measured
        self.trackers: list[tuple[Tracker, slice]] = [
            (each, layout.part(each)) for each in layout.trackers if not isinstance(each, Kept)
        ]
        self._kernel: Any = None

    def __bool__(self) -> bool:
        return bool(self.trackers)

    def after(
        self,
        numbers: np.ndarray,
        state: Sequence[np.ndarray],
        forces: np.ndarray,
        parameters: np.ndarray,
        more: Sequence[np.ndarray],
    ) -> None:
        """The numbers after a step, in place of those before; of one state, or of rows of states.

        ``numbers`` has all that is measured, the monitor's as after the step; ``state`` q, v and joint
        forces; ``forces`` those on the links that can touch the ground, and on all, (L + 1, 3) [N]; ``more``
        inputs of the step.
        """
        if self._kernel is None:
            self._kernel = self._built(forces.shape[-2] * forces.shape[-1])
        flat = forces.reshape(*forces.shape[:-2], -1)
        given = *state, numbers, flat, self.carried, parameters, *more
        new = self._kernel(*(np.ascontiguousarray(x, float) for x in given))
        numbers[...] = new[0] if isinstance(new, list | tuple) else new

    def _built(self, size: int) -> Any:
        trackers = self.trackers

        def text(bare: Program) -> Any:
            def after(
                q: Any, v: Any, tau: Any, numbers: Any, forces: Any, carried: Any, parameters: Any, *more: Any
            ) -> list[list[Any]]:
                p, out = bare.problem(parameters, more), list(numbers)
                taken = Happened(p, numbers[0] - 1.0, [], [], [], (q, v, tau), None, parameters, forces)
                for tracker, part in trackers:
                    out[part] = tracker.after(numbers[part], taken)
                return [out]

            return after

        n = self.program.measured.size
        return self.program.built(
            "own_measures",
            text,
            inputs=[("measured", n), ("forces", size)],
            outputs=[("measured_next", (n,))],
        )


# ==== what is known of rows =======================================================================


@frozen
class Readings:
    """What is known of B rows at the end of a rollout; NaN in a row that failed."""

    program: Program  # the step
    # q, v: states of the start and of the end, (2, B, ...)
    q: np.ndarray
    v: np.ndarray
    entries: np.ndarray  # of the ledger at the end, (B, size)
    dt: float  # time step [s]
    steps: int  # taken
    failure: np.ndarray  # why a row is no motion of the robot, (B,); None of a sound one
    failure_time: np.ndarray  # from when on [s], (B,); NaN of a sound one

    @cached_property
    def subjects(self) -> Subjects:
        """Whom the measures are about."""
        return subjects_of(self.program)

    def entry(self, name: str) -> np.ndarray:
        """One of motion.SLOTS, (B,)."""
        return self.entries[:, motion.AT[name]].copy()

    def share(self, name: str) -> np.ndarray:
        """An impulse as a share of that which presses, (B,); 0 where nothing does."""
        return self.entry(name) / np.maximum(self.entry("pressed"), 1e-300)

    def energy_balance(self) -> np.ndarray:
        """Mechanical energy gained + dissipated - work, (B,) [J]."""
        robot = self.program.robot
        good = np.isfinite(self.q).all(axis=(0, 2)) & np.isfinite(self.v).all(axis=(0, 2))
        q, v = np.where(good[:, None], self.q, robot.neutral()), np.where(good[:, None], self.v, 0.0)
        start, end = (sum(energies(robot, q[k], v[k])) for k in (0, 1))
        dissipated = sum(self.entry(name) for name in motion.DISSIPATED)
        return np.where(good, end - start + dissipated - self.entry("work"), np.nan)

    @property
    def rows(self) -> int:
        """Number of rows, B."""
        return len(self.entries)

    def of(self, tracker: Tracker) -> np.ndarray:
        """The numbers of a tracker, (size, B)."""
        return self.entries[:, self.program.parts["measured"]][:, self.program.measured.part(tracker)].T

    def times(self, steps: np.ndarray) -> np.ndarray:
        """The middle of steps [s]; NaN where it is none."""
        half = 0.5 * (self.program.accuracy is None)  # of parts of steps it is the middle that is kept
        return np.where(steps >= 0.0, (steps + half) * self.dt, np.nan)

    def names(self, numbers: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Names by number, (B,); None where a number stands for none."""
        found = np.where(numbers >= 0.0, numbers, len(names)).astype(int)
        return np.array([*names, None], dtype=object)[found]

    @cached_property
    def start(self) -> np.ndarray:
        """Figures of the starts, (B, 10)."""
        return figures(self.program, self.dt, self.q[0], self.v[0])

    @cached_property
    def end(self) -> np.ndarray:
        """Figures of the ends, (B, 10)."""
        return figures(self.program, self.dt, self.q[1], self.v[1])

    # ---- columns -------------------------------------------------------------------------------

    def largest_of(
        self, squares: np.ndarray, steps: np.ndarray, names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The largest of several, (n, B) each, the first of equals: (B,) itself, its name and its time."""
        if not len(names):
            none = np.where(np.isnan(self.entries[:, 0]), np.nan, 0.0)  # in the rows that did not fail
            return none, self.nobody(), np.full(self.rows, np.nan)
        which = first_largest(squares, -1.0)
        square, step = (x[which, np.arange(self.rows)] for x in (squares, steps))
        return square, self.names(np.where(step >= 0.0, which, -1.0), names), self.times(step)

    def first_of(self, steps: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Time and name of the first, of steps (n, B)."""
        if not len(names):
            return np.full(self.rows, np.nan), self.nobody()
        which = first_largest(np.where(steps >= 0.0, -steps, -np.inf), -np.inf)
        found = steps[which, np.arange(self.rows)]
        return self.times(found), self.names(np.where(found >= 0.0, which, -1.0), names)

    def heights(self) -> list[np.ndarray]:
        """Heights of the centre of mass and of the base at the end, (B,) each [m]; NaN if there is none."""
        there = has_mass(self.program), root(self.program.robot.tree)
        none = np.full(self.rows, np.nan)
        return [self.end[:, k] if has else none for k, has in zip((2, 3), there, strict=True)]

    def gained_energy(self) -> np.ndarray:
        """Mechanical energy gained, (B,) [J]."""
        return np.asarray(self.end[:, :2].sum(axis=1) - self.start[:, :2].sum(axis=1))

    def missing_momentum(self) -> np.ndarray:
        """Gained without a cause about the centre of mass, (B, 6) [N m s; N s]; NaN where it hangs."""
        robot, given = self.program.robot, self.program.given
        if not hangs_on_nothing(robot.tree) or not has_mass(self.program):
            return np.full((self.rows, 6), np.nan)
        missing = self.end[:, 4:] - self.start[:, 4:] - self.entries[:, motion.IMPULSE]
        if given.outside:
            missing -= self.entries[:, self.program.parts["outside"]]
        mass = np.broadcast_to(robot.total_mass, self.rows)
        missing[:, 3:] -= self.steps * self.dt * mass[:, None] * robot.gravity
        return np.asarray(missing)

    def nobody(self) -> np.ndarray:
        """No names, (B,)."""
        return np.full(self.rows, None, dtype=object)


def first_largest(values: np.ndarray, least: float) -> np.ndarray:
    """Number of the first largest of values (n, B), (B,); NaN counts as the least."""
    return np.asarray(np.where(np.isnan(values), least, values).argmax(axis=0))


# ==== the measures of a rollout ===================================================================


def wanted_measures(given: Any) -> tuple[str | Measure, ...]:
    """What was asked for, checked: True for all that robokit knows, names, :class:`Measure`, several; None or
    False for none.

    Raises UnknownName for no measure of that name, WrongType for what is neither, ShapeError for two of the
    same name.
    """
    if given is None or given is False:
        return ()
    if given is True:
        return tuple(known)
    several = [given] if isinstance(given, str | Measure | Function) else given
    if isinstance(several, Mapping) or not hasattr(several, "__iter__"):
        raise WrongType("measures", given, "True, or names and rk.Measure(...)", "print(rk.measures)")
    found: list[str | Measure] = []
    for each in several:
        if isinstance(each, Function):
            raise WrongType(
                "measures", each, "names and rk.Measure(...)", "say how to reduce it over the steps"
            )
        if not isinstance(each, str | Measure):
            raise WrongType("measures", each, "names and rk.Measure(...)", "print(rk.measures)")
        if isinstance(each, str):
            if each == "all":
                found += [name for name in known if name not in found]
                continue
            if each not in known:
                raise UnknownName("measure", each, [*known, "all"], "(print(rk.measures) lists them)")
        if each not in found:
            found.append(each)
    names = [each.name for each in found if isinstance(each, Measure)]
    twice = [name for name in names if names.count(name) > 1 or name in known]
    if twice:
        raise ShapeError(f"measures: several are named {twice[0]!r}; give rk.Measure(..., name=...)")
    return tuple(found)


class ChosenMeasures:
    """The measures of a rollout.

    ``wanted`` names robokit's and the user's own, and ``program`` is the step with the memory that they need.
    """

    def __init__(self, wanted: Sequence[str | Measure], program: Program) -> None:
        """Find out what the steps must keep for what :func:`wanted_measures` gave.

        Raises ShapeError or UnknownName where a measure of the user's own does not fit the robot.
        """
        self.wanted, subjects = tuple(wanted), subjects_of(program)
        names = dict.fromkeys(known[each].reads for each in wanted if isinstance(each, str))
        self._kept = {name: Kept(name, subjects) for name in names}
        of = program.robot, program.open, program.touching_links
        self.own = [(each, OwnTracker.of(each, *of)) for each in wanted if isinstance(each, Measure)]
        trackers: list[Tracker] = [kept for kept in self._kept.values() if kept.start]
        trackers += [tracker for _, tracker in self.own]
        self.program = copy(program)
        self.program.measured = MeasuredLayout(tuple(trackers))

    def first(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float) -> np.ndarray:
        """The numbers before the first step, (B, size), for starts (B, ...), tau (B or 1, nv) and dt [s]."""
        program, own = self.program, OwnMeasures(self.program)
        numbers = np.tile(np.array(program.measured.start), (len(q), 1))
        state = q, v, np.broadcast_to(tau, (len(q), tau.shape[1]))
        good = np.logical_and.reduce([np.isfinite(x).all(axis=1) for x in state])
        if own and good.any():
            parameters, now = program.parameters(dt), numbers[good]
            forces = np.zeros((len(now), len(program.touching_links) + 1, 3))
            rest = [np.zeros(size) for _, size in program.given.inputs]
            each = parameters[good] if parameters.ndim > 1 else parameters
            own.after(now, [x[good] for x in state], forces, each, rest)
            numbers[good] = now
        return numbers

    def columns(self, readings: Readings) -> Columns:
        """All columns, in the order in which they were asked for."""
        found: Columns = {}
        for each in self.wanted:
            if isinstance(each, str):
                found |= known[each].read(readings.of(self._kept[known[each].reads]), readings)
        for measure, tracker in self.own:
            found |= tracker.columns(measure.name, readings.of(tracker), readings.dt)
        return found
