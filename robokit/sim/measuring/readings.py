"""From the numbers that the steps have kept to the columns of the table of measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robokit.sim.measuring.run_ends import figures, has_mass, root
from robokit.sim.motion import ledger
from robokit.sim.motion.momentum_projection import hangs_on_nothing
from robokit.sim.record.events import CALM
from robokit.sim.step.measured import Tracker
from robokit.sim.step.step_kernel import Program

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Readings:
    """What is known of B rows at the end of a rollout.

    Attributes:
        program: the step.
        dt: time step [s].
        steps: taken.
        q, v: states of the start and of the end, (2, B, ...); NaN at the end of a row that failed.
        entries: of the ledger at the end, (B, size); NaN in a row that failed.
    """

    program: Program
    dt: float
    steps: int
    q: np.ndarray
    v: np.ndarray
    entries: np.ndarray

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

    def largest(self, name: str, pair: np.ndarray, square: bool = True) -> Columns:
        """A largest value and its time.

        Args:
            name: of the column.
            pair: (value or its square, step), (2, B).
            square: which.
        """
        size = np.sqrt(pair[0]) if square else pair[0].copy()
        return {name: size, f"{name}_time": self.times(pair[1])}

    def peak_forces(self, tracker: Tracker, names: Sequence[str], by_link: bool) -> Columns:
        """Of the tracker's links: the largest, or all."""
        numbers = self.of(tracker)
        each = len(numbers) // max(1, len(names))
        squares, steps = (numbers[k::each] if len(names) else numbers for k in (0, 1))
        if by_link:
            found: Columns = {}
            for name, square, step in zip(names, squares, steps, strict=True):
                found |= {f"peak_force/{name}": np.sqrt(square), f"peak_force_time/{name}": self.times(step)}
            return found
        if not len(names):
            none = np.full(self.rows, np.nan)
            return {
                "peak_force": self.sound(0.0), "peak_force_link": self.nobody(), "peak_force_time": none
            }  # fmt: skip
        which = first_largest(squares, -1.0)
        square, step = (x[which, np.arange(self.rows)] for x in (squares, steps))
        return {
            "peak_force": np.sqrt(square),
            "peak_force_link": self.names(np.where(step >= 0.0, which, -1.0), names),
            "peak_force_time": self.times(step),
        }

    def first_contacts(self, tracker: Tracker, names: Sequence[str], by_link: bool) -> Columns:
        """The same of the first contact."""
        numbers = self.of(tracker)
        each = len(numbers) // max(1, len(names))
        steps = numbers[each - 1 :: each] if len(names) else numbers
        if by_link:
            return {
                f"first_contact_time/{name}": self.times(row) for name, row in zip(names, steps, strict=True)
            }
        return self.first("first_contact", steps, names, "link")

    def first(self, name: str, steps: np.ndarray, names: Sequence[str], what: str) -> Columns:
        """Time and name of the first, of steps (n, B)."""
        if not len(names):
            return {f"{name}_time": np.full(self.rows, np.nan), f"{name}_{what}": self.nobody()}
        waiting = np.where(steps >= 0.0, -steps, -np.inf)
        which = first_largest(waiting, -np.inf)
        found = steps[which, np.arange(self.rows)]
        return {
            f"{name}_time": self.times(found),
            f"{name}_{what}": self.names(np.where(found >= 0.0, which, -1.0), names),
        }

    def limits(self, hits: Tracker, past: Tracker, joints: Sequence[str]) -> Columns:
        """Joints that reach their limits, and how far they go past them."""
        numbers = self.of(hits)
        first = self.first("limit", numbers[3::3], joints, "joint")
        far, step, which = self.of(past)
        return {
            "limit_hits": numbers[0].copy(),
            "limit_joint": first["limit_joint"],
            "limit_time": first["limit_time"],
            "past_limit": far.copy(),
            "past_limit_joint": self.names(which, joints),
            "past_limit_time": self.times(step),
        }

    def limits_by_joint(self, hits: Tracker, joints: Sequence[str]) -> Columns:
        """When each joint first reaches a limit."""
        steps = self.of(hits)[3::3]
        return {f"limit_time/{name}": self.times(row) for name, row in zip(joints, steps, strict=True)}

    def speed(self, tracker: Tracker) -> Columns:
        """The fastest body."""
        square, step, body = self.of(tracker)
        return {
            "greatest_speed": np.sqrt(square),
            "greatest_speed_link": self.names(body, self.program.robot.tree.name),
            "greatest_speed_time": self.times(step),
        }

    def rest(self, tracker: Tracker) -> Columns:
        """Since when the robot rests, and how high it lies."""
        if not has_mass(self.program):
            none = np.full(self.rows, np.nan)
            return {name: none.copy() for name in ("rest_time", "resting_height", "resting_base_height")}
        last = self.of(tracker)[2]
        since = np.where((self.steps - (last + 1.0)) * self.dt >= CALM, last + 1.0, np.nan)
        still = np.isfinite(since)
        heights = self.heights()
        return {
            "rest_time": self.times(since),
            "resting_height": np.where(still, heights["final_height"], np.nan),
            "resting_base_height": np.where(still, heights["final_base_height"], np.nan),
        }

    def heights(self) -> Columns:
        """Of the centre of mass and of the base at the end."""
        there = has_mass(self.program), root(self.program.robot.tree)
        columns = zip(("final_height", "final_base_height"), (2, 3), there, strict=True)
        return {name: self.end[:, k] if has else np.full(self.rows, np.nan) for name, k, has in columns}

    def energy(self) -> Columns:
        """Where the energy went."""
        found = {f"dissipated_by_{name}": self.entry(name) for name in ledger.DISSIPATED}
        dissipated, work = sum(found.values(), np.zeros(self.rows)), self.entry("work")
        gained = self.end[:, :2].sum(axis=1) - self.start[:, :2].sum(axis=1)
        balance = gained + dissipated - work
        return {"dissipated": dissipated, **found, "work": work, "energy_balance": balance}

    def momentum(self) -> Columns:
        """What it gained without a cause."""
        robot, given = self.program.robot, self.program.given
        names = "momentum_balance_linear", "momentum_balance_angular"
        if not hangs_on_nothing(robot.tree) or not has_mass(self.program):
            return {name: np.full(self.rows, np.nan) for name in names}
        missing = self.end[:, 4:] - self.start[:, 4:] - self.entries[:, ledger.IMPULSE]
        if given.outside:
            missing -= self.entries[:, ledger.SIZE : ledger.SIZE + 6]
        mass = np.broadcast_to(robot.total_mass, self.rows)
        missing[:, 3:] -= self.steps * self.dt * mass[:, None] * robot.gravity
        size = np.abs(missing)
        return {names[0]: size[:, 3:].max(axis=1), names[1]: size[:, :3].max(axis=1)}

    def sound(self, value: float) -> np.ndarray:
        """A value in all rows that did not fail, (B,)."""
        return np.where(np.isnan(self.entries[:, 0]), np.nan, value)

    def nobody(self) -> np.ndarray:
        """No names, (B,)."""
        return np.full(self.rows, None, dtype=object)


def first_largest(values: np.ndarray, least: float) -> np.ndarray:
    """Number of the first largest of values (n, B), (B,); NaN counts as the least."""
    return np.asarray(np.where(np.isnan(values), least, values).argmax(axis=0))
