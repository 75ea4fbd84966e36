"""From the numbers that the steps have kept to the columns of the table of measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robokit.contact.measures import Subjects
from robokit.sim.measuring.run_ends import figures, has_mass, root
from robokit.sim.motion import ledger
from robokit.sim.motion.momentum_projection import hangs_on_nothing
from robokit.sim.step.measured import Tracker
from robokit.sim.step.step_kernel import Program


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
class Readings:
    """What is known of B rows at the end of a rollout.

    Attributes:
        program: the step.
        dt: time step [s].
        steps: taken.
        q, v: states of the start and of the end, (2, B, ...); NaN at the end of a row that failed.
        entries: of the ledger at the end, (B, size); NaN in a row that failed.
        subjects: whom the measures are about.
        failures: rows that are no motion of the robot.
    """

    program: Program
    dt: float
    steps: int
    q: np.ndarray
    v: np.ndarray
    entries: np.ndarray
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

    def entry(self, name: str) -> np.ndarray:
        """An entry of the ledger, (B,)."""
        return self.entries[:, ledger.AT[name]].copy()

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
        missing = self.end[:, 4:] - self.start[:, 4:] - self.entries[:, ledger.IMPULSE]
        if given.outside:
            missing -= self.entries[:, ledger.SIZE : ledger.SIZE + 6]
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
