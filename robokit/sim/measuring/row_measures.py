"""The measures of a rollout: what its steps must keep, and the columns that its rows make at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from robokit.contact.measures import Columns, Subjects
from robokit.contact.measures import measures as known
from robokit.dynamics.function_objects import Function
from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.sim import motion
from robokit.sim.measuring.own_measure import Measure, OwnTracker, values_at_start
from robokit.sim.measuring.run_ends import figures, has_mass, root
from robokit.sim.motion import hangs_on_nothing
from robokit.sim.step_kernel import Kept, MeasuredLayout, Program, Tracker
from robokit.sim.stepping.energies import energies

# ---- what is known of rows --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failures:
    """Rows of a rollout that are no motion of the robot.

    Attributes:
        reason: why, (B,); None of a sound row.
        time: from when on [s], (B,); NaN of a sound row.
    """

    reason: np.ndarray
    time: np.ndarray


@dataclass(frozen=True)
class RowLedgers:
    """What the ledgers of B rows hold.

    Attributes:
        program: the step.
        q, v: states of the start and of the end, (2, B, ...).
        entries: of the ledger at the end, (B, size); NaN in a row that failed.
    """

    program: Program
    q: np.ndarray
    v: np.ndarray
    entries: np.ndarray

    def entry(self, name: str) -> np.ndarray:
        """One of ledger.SLOTS, (B,)."""
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


@dataclass(frozen=True)
class Readings(RowLedgers):
    """What else is known of B rows at the end of a rollout, NaN in a row that failed.

    Attributes:
        dt: time step [s].
        steps: taken.
        subjects: whom the measures are about.
        failures: rows that are no motion of the robot.
    """

    dt: float
    steps: int
    subjects: Subjects
    failures: Failures

    @property
    def rows(self) -> int:
        """B."""
        return len(self.entries)

    def of(self, tracker: Tracker) -> np.ndarray:
        """The numbers of a tracker, (size, B)."""
        part = self.program.measured.part(tracker)
        return self.entries[:, self.program.sums + part.start : self.program.sums + part.stop].T

    def times(self, steps: np.ndarray) -> np.ndarray:
        """The middle of steps [s]; NaN where it is none."""
        half = (
            0.5 if self.program.accuracy is None else 0.0
        )  # of parts of steps it is the middle that is kept
        return np.where(steps >= 0.0, (steps + half) * self.dt, np.nan)

    def names(self, numbers: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Names by number, (B,); None where the number is none."""
        found = np.where(numbers >= 0.0, numbers, len(names)).astype(int)
        return np.array([*names, None], dtype=object)[found]

    @cached_property
    def start(self) -> np.ndarray:
        """Figures of the starts (run_ends.py), (B, 10)."""
        return figures(self.program, self.dt, self.q[0], self.v[0])

    @cached_property
    def end(self) -> np.ndarray:
        """Figures of the ends, (B, 10)."""
        return figures(self.program, self.dt, self.q[1], self.v[1])

    # ---- columns -------------------------------------------------------------------------------

    def largest_of(
        self, squares: np.ndarray, steps: np.ndarray, names: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The first largest of several, (n, B) each: (B,) itself, its name and its time."""
        if not len(names):
            return self.sound(0.0), self.nobody(), np.full(self.rows, np.nan)
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
        """Of the centre of mass and of the base at the end, (B,) each [m]; NaN of what is not there."""
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
            missing -= self.entries[:, motion.SIZE : motion.SIZE + 6]
        mass = np.broadcast_to(robot.total_mass, self.rows)
        missing[:, 3:] -= self.steps * self.dt * mass[:, None] * robot.gravity
        return np.asarray(missing)

    def sound(self, value: float) -> np.ndarray:
        """A value in all rows that did not fail, (B,)."""
        return np.where(np.isnan(self.entries[:, 0]), np.nan, value)

    def nobody(self) -> np.ndarray:
        """No names, (B,)."""
        return np.full(self.rows, None, dtype=object)


def first_largest(values: np.ndarray, least: float) -> np.ndarray:
    """Number of the first largest of values (n, B), (B,); NaN counts as the least."""
    return np.asarray(np.where(np.isnan(values), least, values).argmax(axis=0))


# ---- the measures of a rollout ----------------------------------------------------------------------------


def wanted_measures(given: Any) -> tuple[str | Measure, ...]:
    """What was asked for, checked.

    Args:
        given: True for all that robokit knows, a name or a :class:`Measure`, several of them; None or False
            for none.

    Raises:
        UnknownName: no measure of that name.
        WrongType: neither a name nor a Measure.
        ShapeError: two of the same name.
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

    Attributes:
        wanted: names of robokit's, and those of the user's own.
        subjects: whom robokit's are about.
        program: the step, with what it must keep.
    """

    def __init__(self, wanted: Sequence[str | Measure], program: Program) -> None:
        """Find out what the steps must keep.

        Args:
            wanted: from :func:`wanted_measures`.

        Raises:
            ShapeError, UnknownName: a measure of the user's own does not fit the robot.
        """
        self.wanted, self.subjects = tuple(wanted), subjects_of(program)
        names = dict.fromkeys(known[each].reads for each in wanted if isinstance(each, str))
        self._kept = {name: Kept(name, self.subjects) for name in names}
        self.own = [(each, OwnTracker.of(each, program)) for each in wanted if isinstance(each, Measure)]
        trackers: list[Tracker] = [kept for kept in self._kept.values() if kept.start]
        trackers += [tracker for _, tracker in self.own]
        self.program = copy(program)
        self.program.measured = MeasuredLayout(tuple(trackers))

    def first(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float) -> np.ndarray:
        """What is kept before the first step, (B, size).

        Args:
            q, v: the starts, (B, ...).
            tau: joint forces of the first step, (B or 1, nv).
            dt: time step [s].
        """
        layout = self.program.measured
        numbers = np.tile(np.array(layout.start), (len(q), 1))
        for _, tracker in self.own:
            part = layout.part(tracker)
            numbers[:, part] = tracker.first(values_at_start(self.program, tracker, q, v, tau, dt))
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


def subjects_of(program: Program) -> Subjects:
    """Whom the measures of a program are about."""
    joints = {joint.body: joint.name for joint in program.robot.body_joints}
    stops = [i for i, stop in enumerate(program.joints.stop) if stop is not None]
    masses = program.robot.inertial_parameters[..., 1:, 0].reshape(-1, program.robot.nbodies)
    heavy = (np.flatnonzero(masses.any(axis=0)) + 1).tolist()
    return Subjects(program.touching_links, tuple((joints[i], i) for i in stops), tuple(heavy))
