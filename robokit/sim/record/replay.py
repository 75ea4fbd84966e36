"""The steps of a run between its records, taken once more."""

from __future__ import annotations

import bisect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.errors import InvalidValue
from robokit.sim.motion import ledger
from robokit.sim.record.contact_facts import contact_facts
from robokit.sim.record.recorded import BLOCK, even
from robokit.sim.record.step_facts import StepFacts, step_facts
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import stepper

STILL = 1e-9
"""Speed and way of a robot that stays where it is [rad/s | m/s; rad | m]."""

TOLERANCE = 1e-6
"""Difference from a record that is more than rounding, over the largest number of the records."""


@dataclass
class StepInputs:
    """What the steps of a run were given, one entry of each list for every change.

    Attributes:
        start: number of the step from which an entry holds, ascending from 0.
        tau: joint forces, (nv,) each.
        given: inputs from actuators and pushes.
    """

    start: list[int] = field(default_factory=list)
    tau: list[np.ndarray] = field(default_factory=list)
    given: list[Sequence[np.ndarray]] = field(default_factory=list)

    def add(self, step: int, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """From this step on."""
        self.start.append(step)
        self.tau.append(tau)
        self.given.append(given)

    def at(self, step: int) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Those of a step."""
        k = bisect.bisect_right(self.start, step) - 1
        return self.tau[k], self.given[k]


class Replay:
    """The states before all steps of a run, from each record to the next.

    Where nothing moves and nothing is asked anew from one record to another, one state stands for all.

    Attributes:
        error: largest difference of a state that was reached from the record of it [rad | m | rad/s | m/s].
        look: called after the step from each state of :meth:`steps`, in their order; None for nothing.
    """

    def __init__(
        self,
        program: Program,
        dt: float,
        marks: Sequence[int],
        q: np.ndarray,
        v: np.ndarray,
        carried: np.ndarray,
        inputs: StepInputs,
        sampled: bool = False,
        kernel: Any = None,
    ) -> None:
        """Prepare it.

        Args:
            program: the step.
            dt: time step [s].
            marks: steps taken until each record.
            q, v, carried: the records, (T, ...).
            inputs: of the steps.
            sampled: look at the records and at the step between each two with the largest force of the
                ground alone; a record stands for the steps around it.
            kernel: what takes the steps (contact_steps.stepper), if it is there already.
        """
        self.sampled, self.kernel = sampled, kernel or stepper(program)
        self.look: Callable[[], None] | None = None
        self.program, self.dt, self.marks = program, dt, list(marks)
        self.records, self.inputs = (q, v, carried), inputs
        self.error = 0.0

    def blocks(self) -> Iterator[tuple[list[int], list[np.ndarray]]]:
        """(for how many steps each state stands, [q, v, tau, carried, inputs...]), at most BLOCK states."""
        counts: list[int] = []
        rows: list[tuple[np.ndarray, ...]] = []
        for count, row in self.steps():
            counts.append(count)
            rows.append(row)
            if len(rows) == BLOCK:
                yield counts, [even(x).astype(float) for x in zip(*rows, strict=True)]
                counts, rows = [], []
        if rows:
            yield counts, [even(x).astype(float) for x in zip(*rows, strict=True)]

    def steps(self) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
        """(for how many steps it stands, (q, v, tau, carried, inputs...)) of each state."""
        program = self.program
        kernel: Any = self.kernel
        parameters = program.parameters(self.dt)
        real = "float64" if program.contact else program.dtype
        entries = np.zeros(program.entries, real)
        parameters = parameters.astype(real)

        whole = program.contact and self.look is not None and not self.sampled

        def look(row: tuple[np.ndarray, ...]) -> None:
            q, v, tau, carried, *given = row
            if self.look is not None:
                kernel(q, v, tau.astype(real), entries, carried, parameters, *(x.astype(real) for x in given))
                self.look()

        done = left = 0
        for k, (first, last) in enumerate(zip(self.marks, self.marks[1:], strict=False)):
            if k < done:
                continue
            q, v, carried = (x[k].astype(real) for x in self.records)
            tau, given = self.inputs.at(first)
            record = hardest = (q, v, tau, carried, *given)
            done = self._still_until(k)
            if done > k:
                yield left + self.marks[done] - first, record
                look(record)
                left = 0
                continue
            most, at, got = -1.0, first, entries
            for step in range(first, last):
                tau, given = self.inputs.at(step)
                row = (q, v, tau, carried, *given)
                if not self.sampled:
                    yield 1, row
                more = [x.astype(real) for x in given]
                try:
                    if whole:  # only the last step tells what is more than its state
                        state, told = (q, v, tau, got, carried, parameters, *more), step == last - 1
                        q, v, got, carried = kernel.iterate(*state, steps=1, told=told)[1]
                    else:
                        state = q, v, tau.astype(real), entries, carried, parameters, *more
                        q, v, got, carried = kernel(*state)
                except (InvalidValue, ArithmeticError):  # not finite, unlike the records: not their steps
                    self.error, got = np.inf, entries
                if self.look is not None and not self.sampled:
                    self.look()
                force = float(np.linalg.norm(got[ledger.IMPULSE][3:])) if self.sampled else 0.0
                if force > most:
                    most, at, hardest = force, step, row
            if self.sampled:
                yield left + at - first, record
                look(record)
                yield 1, hardest
                look(hardest)
                left = last - at - 1
            off = [np.abs(a - b[k + 1]).max(initial=0.0) for a, b in zip((q, v), self.records, strict=False)]
            self.error = max(self.error, *(float(x) for x in off))
        if left:
            yield left, record
            look(record)

    def _still_until(self, k: int) -> int:
        """The last record up to which the robot stays as it is at record k; k where it does not."""
        q, v, _ = self.records
        until = bisect.bisect_right(self.inputs.start, self.marks[k])
        changes = self.inputs.start[until] if until < len(self.inputs.start) else np.inf
        end = k
        while (
            np.abs(v[end]).max(initial=0.0) < STILL
            and end + 1 < len(self.marks)
            and self.marks[end + 1] <= changes
            and np.abs(v[end + 1]).max(initial=0.0) < STILL
            and np.abs(q[end + 1] - q[k]).max(initial=0.0) < STILL
        ):
            end += 1
        return end


def facts_of_run(
    program: Program,
    dt: float,
    marks: Sequence[int],
    q: np.ndarray,
    v: np.ndarray,
    carried: np.ndarray,
    inputs: StepInputs,
    sampled: bool = False,
) -> StepFacts:
    """What happened in every step of a run; arguments as those of :class:`Replay`.

    Warns:
        UserWarning: the steps do not meet the records.
    """
    replay = Replay(program, dt, marks, q, v, carried, inputs, sampled)
    if program.contact:
        parts = [contact_facts(program, dt, replay)]
    else:
        parts = [step_facts(program, dt, *block).repeated(counts) for counts, block in replay.blocks()]
    if not parts:  # a run without a step
        rows = [*(x[:0] for x in (q, v, v, carried)), *(x[None][:0] for x in inputs.given[0])]
        parts = [step_facts(program, dt, *rows)]
    size = max(1.0, float(np.abs(q).max(initial=0.0)), float(np.abs(v).max(initial=0.0)))
    if not replay.error <= size * (TOLERANCE if program.dtype == "float64" else 1e-2):
        warnings.warn(
            f"events: the steps taken once more are off by up to {replay.error:.1e} at the records; times "
            "and sizes are only roughly those of the run",
            stacklevel=3,
        )
    return StepFacts.joined(parts)
