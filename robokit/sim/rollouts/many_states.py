"""Many states of a robot through time, as their caller says: what a Simulation with a batch is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.engine.backend.llvm import processors
from robokit.engine.batch_calls import PAYS_SECONDS
from robokit.sim.rollouts.rollout_batch import runner_of
from robokit.sim.run.run_inputs import RunInputs
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_rows import SECONDS, ContactRunner
from robokit.sim.stepping.energies import first_carried


class ManyStates:
    """Rows that are stepped together, in place.

    Attributes:
        rows: B.
        q, v: the states, (B, ...).
        failed: (B,) rows whose state is no longer finite.
        done: steps taken.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        rows: int,
        dt: float,
        inputs: RunInputs,
        threads: int | None,
    ) -> None:
        """At the start.

        Args:
            q, v: starts, (B or 1, ...).
            rows: B.
            dt: time step [s].
            inputs: of actuators and pushes.
            threads: None for as many as pay.
        """
        self.rows = rows
        self.program, self.dt, self.inputs, self.threads = program, dt, inputs, threads
        self._start = [np.array(np.broadcast_to(x, (rows, x.shape[1]))) for x in (q, v)]
        self.q, self.v = (x.copy() for x in self._start)
        parameters = program.parameters(dt)
        given, self.change = self._at(0, rows)
        self.arrays = [
            self.q[None],
            self.v[None],
            np.zeros((1, rows, program.robot.nv)),
            np.zeros((1, rows, program.entries)),
            first_carried(program, self.q, self.v)[None],
            np.ascontiguousarray(parameters[None] if parameters.ndim == 2 else parameters[None, None]),
            *given,
        ]
        self.failed, self.done = np.zeros(rows, bool), 0
        self.runner = runner_of(program, dt)
        if isinstance(self.runner, ContactRunner):
            wanted = threads or max(1, min(processors(), int(rows * SECONDS / PAYS_SECONDS)))
            self.runner.divide(self.arrays, rows, wanted)

    def _at(self, step: int, rows: int) -> tuple[list[np.ndarray], int]:
        """Inputs of a step, (1, B, n) each, and the step at which they change."""
        found, change = self.inputs.at(step, self._start[0], self._start[1])
        each = (np.broadcast_to(x, (rows, x.shape[-1])) for x in found)
        return [np.array(x, order="C")[None] for x in each], change

    def step(self, tau: np.ndarray | None, u: np.ndarray | None, steps: int) -> None:
        """So many steps; none where it is interrupted.

        Args:
            tau: joint forces, (nv,) or (B, nv); None for none.
            u: what driven joints are given, (B, n); None for what they have.
        """
        before, done = self.state(), self.done
        try:
            self._go(tau, u, steps)
        except BaseException:  # Ctrl-C: threads have come to different steps
            self.restore(before, done)
            raise

    def _go(self, tau: np.ndarray | None, u: np.ndarray | None, steps: int) -> None:
        self.arrays[2][0] = 0.0 if tau is None else tau
        end = self.done + steps
        while self.done < end:
            if self.done >= self.change:
                given, self.change = self._at(self.done, len(self.q))
                self.arrays[6:] = given
            if u is not None:
                self.arrays[6][0] = u
            few = min(end, self.change) - self.done
            with np.errstate(all="ignore"):
                self._take(few)
            self.done += few

    def _take(self, steps: int) -> None:
        if isinstance(self.runner, ContactRunner):
            self.runner.advance(self.done, self.done + steps)
            self.failed[:] = ~self.runner.good
            return
        _, interrupted = self.runner.roll(self.arrays, len(self.q), [0, steps], lambda *_: None, self.threads)
        if interrupted:
            raise KeyboardInterrupt
        self.failed[:] = ~(np.isfinite(self.q).all(axis=1) & np.isfinite(self.v).all(axis=1))

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...): nothing was before."""
        self.q[rows], self.v[rows] = q, v
        self.arrays[3][0, rows] = 0.0
        self.arrays[4][0, rows] = first_carried(self.program, self.q, self.v)[rows]
        if isinstance(self.runner, ContactRunner):
            self.runner.reset(rows, q, v)
        self.failed[rows] = False

    def state(self) -> tuple[Any, ...]:
        """All that :meth:`restore` needs."""
        own = self.runner.state() if isinstance(self.runner, ContactRunner) else None
        return [x.copy() for x in (*self.arrays[:2], *self.arrays[3:5])], own

    def restore(self, state: tuple[Any, ...], done: int) -> None:
        """Go on from there."""
        arrays, own = state
        for x, old in zip((*self.arrays[:2], *self.arrays[3:5]), arrays, strict=True):
            x[...] = old
        if isinstance(self.runner, ContactRunner):
            self.runner.restore(own)
            self.failed[:] = ~self.runner.good
        else:
            self.failed[:] = ~(np.isfinite(self.q).all(axis=1) & np.isfinite(self.v).all(axis=1))
        self.done, self.change = done, 0
