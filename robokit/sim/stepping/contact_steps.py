"""Steps by the kernel of contact/step.py, as the loops over steps of runs and rollouts take them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.engine import Kernel
from robokit.errors import InvalidValue
from robokit.sim.motion import ledger
from robokit.sim.simulation import Simulation
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.own_measures import OwnMeasures
from robokit.sim.stepping.step_numbers import differ, row_numbers, scene_of, step_numbers


def stepper(program: Program) -> Kernel | ContactSteps:
    """What takes the steps of a program: its kernel, or that of contact/step.py."""
    return ContactSteps(program) if program.contact else program.kernel()


def tally(program: Program, entries: np.ndarray) -> dict[str, Any]:
    """Figures for a run's summary, of the ledgers at its end (..., size); NaN in those that failed."""
    if not program.contact:
        return {}
    own = entries.reshape(-1, entries.shape[-1])[:, : program.sums]
    last = own[np.isfinite(own).all(axis=1)]
    steps, iterations, most, missed = last[:, -len(ledger.OWN) :].T
    return {
        "contact_iterations_mean": float(iterations.sum() / max(1.0, steps.sum())),
        "contact_iterations_most": int(most.max(initial=0.0)),
        "residual_largest": float(last[:, ledger.AT["residual"]].max(initial=0.0)),
        "steps_not_settled": int(missed.sum()),
    }


class ContactSteps:
    """The steps of a program, one state at a time.

    Attributes:
        simulation: the state that was last at work.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._simulations: dict[float, Simulation] = {}
        self._last: Any = None
        self._scene = scene_of(program) if differ(program) else None
        self._row: tuple[float, int] | None = None

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        found = [each.refused for each in self._simulations.values()]
        return next((why for why in found if why), None)

    def simulation(self, dt: float) -> Simulation:
        """The arrays of steps of dt."""
        if dt not in self._simulations:
            program = self.program
            self._simulations[dt] = Simulation(
                program.robot, dt, step_numbers(program, dt), reproducible=program.reproducible
            )
        return self._simulations[dt]

    def __call__(self, *arguments: Any) -> list[np.ndarray]:
        """The state after one step."""
        return self.iterate(*arguments, steps=1)[1]

    def iterate(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        entries: np.ndarray,
        carried: np.ndarray,
        parameters: np.ndarray,
        *given: np.ndarray,
        steps: int,
        row: int = 0,
    ) -> tuple[int, list[np.ndarray]]:
        """Steps with the same inputs: how many were good, and the state after them (q, v, ledger, carried).

        ``row``: of the batch, where its rows differ in what is not among the arrays.

        Raises:
            InvalidValue: the state is not finite.
        """
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise InvalidValue("the state is not finite")
        dt = float(np.ravel(parameters)[0])
        simulation = self.simulation(dt)
        x = simulation.arrays
        if self._scene is not None and self._row != (dt, row):
            self._row = dt, row
            for name, numbers in row_numbers(self.program, dt, self._scene, row).items():
                x[name][...] = numbers
        x["q"][:], x["v"][:] = q, v
        if carried is not self._last:  # else it is still there
            simulation.unpack(carried)
        self._enter(x, entries)
        self._give(x, tau, given)
        done = simulation.take(steps)
        self._last = simulation.packed()
        return done, [x["q"].copy(), x["v"].copy(), self._leave(x), self._last]

    def _give(self, x: dict[str, np.ndarray], tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        layout, rest = self.program.given, iter(given)
        x["joint_forces"][:] = tau
        if layout.drives:
            rows = x["dof_row"][x["motor_dof"]]
            x["motor_command"][:, 0] = next(rest) + tau[rows]
            x["joint_forces"][rows] = 0.0
        if layout.places:
            x["push_wrench"][:] = np.reshape(next(rest), (-1, 6))

    def _enter(self, x: dict[str, np.ndarray], entries: np.ndarray) -> None:
        """Own accounts from those of the program."""
        sums, more = x["ledger"], self.program.given
        sums[: ledger.SIZE] = entries[: ledger.SIZE]
        sums[ledger.SIZE :] = entries[self.program.sums - len(ledger.OWN) : self.program.sums]
        at = ledger.SIZE
        if more.outside:
            x["outside_impulse"][:] = entries[at : at + 6]
            at += 6
        x["motor_sums"][:] = entries[at : at + x["motor_sums"].size].reshape(-1, 2)
        x["measured"][:] = entries[self.program.sums :]

    def _leave(self, x: dict[str, np.ndarray]) -> np.ndarray:
        """Those of the program from own ones."""
        sums = x["ledger"]
        outside = [x["outside_impulse"]] if self.program.given.outside else []
        return np.concatenate(
            [sums[: ledger.SIZE], *outside, x["motor_sums"].ravel(), sums[ledger.SIZE :], x["measured"]]
        )  # fmt: skip

    def rollout_runner(self) -> ContactRunner:
        """What takes many rows through many steps."""
        return ContactRunner(self)


class ContactRunner:
    """Rows one after the other, each through its steps (as engine/run/rollout_calls.py).

    Steps are taken in double precision, and go on from what they left: a record is rounded, a row is not.

    Attributes:
        states: q, v and memory of each row after its last step.
        failed: of each row whose state did not stay finite, the step after which.
    """

    def __init__(self, steps: ContactSteps) -> None:
        self.steps, self.own = steps, OwnMeasures(steps.program)
        self.states: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self.failed: dict[int, int] = {}

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Callable[[int, int, int], Any],
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """All rows from one mark to the next: (marks that all have reached, whether Ctrl-C came)."""
        k = 0
        try:
            for k in range(1, len(marks)):
                for row in range(rows):
                    self._row(arrays, row, marks[k - 1], marks[k] - marks[k - 1])
                record(k, 0, rows)
                if progress is not None:
                    progress(marks[k] - marks[k - 1])
        except KeyboardInterrupt:
            return k, True
        return len(marks), False

    def memory(self, row: int) -> np.ndarray:
        """What the next step of a row is handed besides q and v."""
        return self.states[row][2] if row in self.states else np.zeros(0)

    def _row(self, arrays: Sequence[np.ndarray], row: int, first: int, steps: int) -> None:
        if row in self.failed:
            return
        tau, entries, (_, *rest) = arrays[2], arrays[3][0, row], arrays[4:]
        q, v, memory = self.states.get(row) or (*(x[0, row].astype(float) for x in arrays[:2]), np.zeros(0))
        done = 0
        while done < steps:
            held = not self.own and all(len(x) == 1 for x in (tau, *rest))
            few = steps - done if held else 1
            now = [x[min(first + done, len(x) - 1), min(row, x.shape[1] - 1)] for x in (tau, *rest)]
            try:
                taken, (q, v, entries[...], memory) = self.steps.iterate(
                    q, v, now[0], entries, memory, *now[1:], steps=few, row=row
                )
            except InvalidValue:
                taken = 0
            if taken < few:
                self.failed[row] = first + done + taken + 1
                q = np.full_like(q, math.nan)
                break
            if self.own:
                forces = self.steps.simulation(float(np.ravel(now[1])[0])).work["link_force"]
                numbers = entries[self.steps.program.sums :]
                self.own.after(numbers, (q, v, now[0]), forces[:, :3], now[1], now[2:])
            done += few
        self.states[row] = q, v, memory
        with np.errstate(over="ignore"):  # such rows fail
            arrays[0][0, row], arrays[1][0, row] = q, v
