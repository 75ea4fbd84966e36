"""Steps whose kick is iterated until it has settled to an accuracy (``Ground(accuracy=)``).

:class:`IteratedSteps` stands where the kernel of a step stands otherwise: it is called with one state, and
its runner takes many states through many steps. The iteration is driven from here, because the engine has no
loops, with three kernels (step/iterated_kick.py). Each state goes on until it has settled, for itself: the
result does not depend on what else is computed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.engine import Kernel
from robokit.errors import InvalidValue
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.drift_kick_drift import kick
from robokit.sim.step.iterated_kick import Parts, finish_kick
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.acceleration import Acceleration
from robokit.spatial.scalars import Scalar

MOST_SWEEPS = 400
"""Sweeps of a step, at most."""


def stepper(program: Program) -> Kernel | IteratedSteps:
    """What takes the steps of a program: its kernel, or the iteration."""
    ground = program.ground
    if ground is None or ground.accuracy is None or not program.method.falls:
        return program.kernel()
    return IteratedSteps(program)


def iterates(
    program: Program,
    dt: float,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    carried: np.ndarray,
    given: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """(y, memory) before the last sweep of the step from each state (T, ...); nothing without an accuracy."""
    steps = stepper(program)
    if isinstance(steps, Kernel):
        return []
    parameters, tables = program.parameters(dt), program.tables()
    found = [
        steps.settled(row[:3], [row[3], parameters, *row[4:], *tables])
        for row in zip(q, v, tau, carried, *given, strict=True)
    ]
    if found:
        return [np.array(x) for x in zip(*found, strict=True)]
    sizes = [n for _, n in steps.parts.again.signature.inputs[3:5]]
    return [np.zeros((0, n)) for n in sizes]


def kick_again(
    program: Program,
    p: Problem,
    q: Rows,
    v: Rows,
    tau: Rows,
    dt: Scalar,
    carried: Carried,
    settled: Sequence[Any],
) -> tuple[Rows, Settled]:
    """The kick of a step: the last sweep after the iterates that are given, or all of it without any."""
    if not settled:
        return kick(p, q, v, tau, dt, carried)
    y, memory = settled
    return finish_kick(p, q, v, tau, dt, carried, program.robot.split_v(y), memory)


class Tally:
    """What became of the iterations, over all states and steps.

    Attributes:
        steps: of all states.
        sweeps: of all these.
        most: of one step.
        missed: steps that did not settle.
        first: number of the first such step, or None.
        largest: residual of a step.
    """

    def __init__(self) -> None:
        self.steps = self.sweeps = self.most = self.missed = 0
        self.first: int | None = None
        self.largest = 0.0

    def add(self, step: int, sweeps: np.ndarray, residual: np.ndarray, settled: np.ndarray) -> None:
        """Enter the states of one step."""
        if not len(sweeps):
            return
        self.steps += len(sweeps)
        self.sweeps += int(sweeps.sum())
        self.most = max(self.most, int(sweeps.max()))
        self.largest = max(self.largest, float(residual.max()))
        self.missed += int((~settled).sum())
        if self.first is None and not settled.all():
            self.first = step

    def summary(self, accuracy: float, dt: float) -> dict[str, Any]:
        """Figures for a run's summary."""
        return {
            "accuracy": accuracy,
            "steps_not_settled": self.missed,
            "first_not_settled": None if self.first is None else self.first * dt,
            "residual_largest": self.largest,
            "sweeps_mean": self.sweeps / max(1, self.steps),
            "sweeps_most": self.most,
        }


class IteratedSteps:
    """Steps of one state, or of many.

    Attributes:
        accuracy: see :class:`robokit.Ground`.
        tally: of the steps taken.
    """

    def __init__(self, program: Program) -> None:
        assert program.ground is not None and program.ground.accuracy is not None
        self.program, self.accuracy = program, program.ground.accuracy
        self.parts, self.tally, self.taken = Parts(program), Tally(), 0

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, as of :class:`robokit.engine.Kernel`."""
        parts = self.parts.begin, self.parts.again, self.parts.finish
        return next((kernel.refused for kernel in parts if kernel.refused is not None), None)

    def restart(self) -> None:
        """Count from here."""
        self.tally, self.taken = Tally(), 0

    # ---- one state ---------------------------------------------------------------------------------

    def __call__(
        self, q: Any, v: Any, tau: Any, entries: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[np.ndarray]:
        """One step, as that of the kernel of the program."""
        out = self._step(_single, [q, v, tau], entries, [carried, parameters, *more], 1, self.taken)
        self.taken += 1
        return out

    def iterate(self, *arguments: Any, steps: int) -> tuple[int, Any]:
        """Steps of one state: how many were good, and the outcome of the last."""
        q, v, tau, entries, carried, *rest = arguments
        for k in range(steps):
            try:
                q, v, entries, carried = self(q, v, tau, entries, carried, *rest)
            except (InvalidValue, ArithmeticError):
                return max(0, k - 1), (q, v, entries, carried)
        return steps, (q, v, entries, carried)

    def settled(self, state: Sequence[np.ndarray], rest: Sequence[np.ndarray]) -> tuple[Any, Any]:
        """(y, memory) before the last sweep of the step from one state.

        Args:
            state: q, v and tau.
            rest: carried numbers, parameters, inputs and tables.
        """
        y, memory, *_ = self._iterate(_single, state, rest, 1)
        return y, memory

    # ---- many --------------------------------------------------------------------------------------

    def rollout_runner(self) -> IteratedRunner:
        """Takes many states through many steps, in place."""
        return IteratedRunner(self)

    def _step(
        self, call: Call, state: list[Any], entries: Any, rest: list[Any], rows: int, step: int
    ) -> list[np.ndarray]:
        y, memory, sweeps, residual, settled = self._iterate(call, state, rest, rows)
        self.tally.add(step, sweeps, residual, settled)
        return call(self.parts.finish, [*state, entries, y, memory, *rest])

    def _iterate(
        self, call: Call, state: Sequence[Any], rest: Sequence[Any], rows: int
    ) -> tuple[Any, Any, np.ndarray, np.ndarray, np.ndarray]:
        """(y, memory, sweeps, residual, whether it has settled) of each row."""
        y, memory = call(self.parts.begin, [*state, *rest])
        y, memory = np.array(y), np.array(memory)
        sweeps, residual, settled = np.ones(rows, int), np.full(rows, np.inf), np.zeros(rows, bool)
        going, mixer = np.arange(rows), Acceleration(rows, y.shape[-1])
        for k in range(2, MOST_SWEEPS + 1):
            part = [_rows(x, going, rows) for x in (*state, y, memory, *rest)]
            outs = call(self.parts.again, part)
            new, kept, measures = (np.atleast_2d(x) for x in outs)
            change = measures.max(axis=1)
            done = (change <= self.accuracy) | ~np.isfinite(change)
            sweeps[going], residual[going] = k, change
            settled[going] = change <= self.accuracy
            more = ~done
            if more.any() and k < MOST_SWEEPS:
                new[more] = mixer.mixed(going[more], np.atleast_2d(part[3])[more], new[more])
            if y.ndim == 1:
                y, memory = new[0], kept[0]
            else:
                y[going], memory[going] = new, kept
            going = going[more]
            if not len(going):
                break
        return y, memory, sweeps, residual, settled


Call = Callable[[Kernel, Sequence[Any]], Any]
"""How kernels are called."""


def _single(kernel: Kernel, arguments: Sequence[Any]) -> Any:
    return kernel(*arguments)


def _many(kernel: Kernel, arguments: Sequence[Any]) -> Any:
    return kernel.batch(*arguments)


def _rows(x: np.ndarray, going: np.ndarray, rows: int) -> np.ndarray:
    """Those of the rows that go on; what all rows share stays."""
    return x if x.ndim == 1 or len(going) == rows else x[going]


class IteratedRunner:
    """As :class:`robokit.engine.run.rollout_calls.RolloutRunner`, with an iteration in each step."""

    def __init__(self, steps: IteratedSteps) -> None:
        self.steps = steps

    def workspace(self) -> None:
        """None is needed."""
        return

    def run(self, arrays: Sequence[np.ndarray], memory: Any, rows: range, step: int, steps: int) -> None:
        """Take steps in place; rows that are not finite stay so."""
        first, last = rows.start, rows.stop
        for k in range(step, step + steps):
            now = [a[k if len(a) > 1 else 0] for a in arrays]
            tables = len(self.steps.program.tables())
            own = [
                a[first:last] if len(a) > 1 else np.broadcast_to(a, (last - first, a.shape[1])) for a in now
            ]
            own, shared = own[: len(own) - tables], [a[0] for a in now[len(now) - tables :]] if tables else []
            with np.errstate(all="ignore"):
                good = np.isfinite(sum(a.sum(axis=1) for a in own))
            places = np.flatnonzero(good)
            for j in (0, 1, 3, 4):
                arrays[j][0, first:last][~good] = np.nan
            if not len(places):
                continue
            q, v, tau, entries, *rest = (np.ascontiguousarray(a[places]) for a in own)
            done = self.steps._step(_many, [q, v, tau], entries, [*rest, *shared], len(places), k)
            for j, x in zip((0, 1, 3, 4), done, strict=True):
                arrays[j][0, first + places] = x

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Callable[[int, int, int], None],
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """Take all rows through the steps, as that of the engine's runner does."""
        for k in range(1, len(marks)):
            try:
                self.run(arrays, None, range(rows), marks[k - 1], marks[k] - marks[k - 1])
                record(k, 0, rows)
            except KeyboardInterrupt:
                return k, True
            if progress is not None:
                progress(marks[k] - marks[k - 1])
        return len(marks), False
