"""The loop over the steps of one simulation, and what it records."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from robokit.conventions import GRAVITY
from robokit.errors import MissingDependency, ShapeError
from robokit.sim.recorded import energies, momenta
from robokit.sim.run_arguments import numbers
from robokit.sim.step import ledger
from robokit.sim.step.step_kernel import Program
from robokit.sim.trajectory import Energy, Trajectory

Controller = Callable[[float, np.ndarray, np.ndarray], Any]

ITERATED = 50
"""Steps from which the loop inside the engine is faster than one call a step."""


class Run:
    """The loop over the steps, and what it records."""

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        dt: float,
        every: int,
        controller: Controller | None,
    ) -> None:
        self.program, self.dt, self.every, self.controller = program, dt, every, controller
        self.kernel = program.kernel()
        self.parameters = program.parameters(dt)
        self.state = (q, v, np.zeros(ledger.SIZE))
        self.tau = np.zeros(program.robot.nv)
        self.steps: list[int] = []
        self.q: list[np.ndarray] = []
        self.v: list[np.ndarray] = []
        self.entries: list[np.ndarray] = []
        self.taus: list[np.ndarray] = []
        self.done = 0
        self.broken_at: float | None = None
        self.failure: Exception | None = None
        self.interrupted = False
        self.seconds = self.build_seconds = 0.0

    def go(self, steps: int, progress: bool) -> None:
        """Take the steps."""
        started = time.perf_counter()
        self.kernel.iterate(*self._arguments(), steps=0)
        self.build_seconds = time.perf_counter() - started
        bar = progress_bar(steps) if progress else None
        started = time.perf_counter()
        # One NumPy warning says less than the error that follows a state that is not finite.
        with np.errstate(all="ignore"):
            try:
                self._record()
                while self.done < steps and self.broken_at is None and self.failure is None:
                    before = self.done
                    self._frame(min(self.every, steps - self.done))
                    if bar is not None:
                        bar.update(self.done - before)
            except KeyboardInterrupt:
                self.interrupted = True
                if not self.taus:  # in the controller's first call: the start is all there is
                    self._note()
            finally:
                self.seconds = time.perf_counter() - started
                if bar is not None:
                    bar.close()

    def _arguments(self) -> tuple[np.ndarray, ...]:
        q, v, entries = self.state
        return q, v, self.tau, entries, self.parameters

    def _frame(self, steps: int) -> None:
        """Steps up to the next record."""
        if self.controller is None:
            done, state = self._free(steps)
            self._accept(done, state, done == steps)
        else:
            for _ in range(steps):
                self._accept(*self._free(1), True)
                if self.broken_at is not None:
                    return
                try:
                    self._control()
                except Exception as failure:  # the user's code: whatever it is, keep what was computed
                    self.failure = failure
                    break
        if self.broken_at is None:
            self._record()

    def _free(self, steps: int) -> tuple[int, Any]:
        """Steps with the same joint forces: how many were good, and the state after them."""
        if steps >= ITERATED:
            return self.kernel.iterate(*self._arguments(), steps=steps)
        q, v, entries = self.state
        for k in range(steps):
            try:
                q, v, entries = self.kernel(q, v, self.tau, entries, self.parameters)
            except (ShapeError, ArithmeticError):  # not finite; plain floats overflow and divide by 0 instead
                return max(0, k - 1), (q, v, entries)
        return steps, (q, v, entries)

    def _accept(self, done: int, state: Any, whole: bool) -> None:
        self.done += done
        if whole and all(np.isfinite(x).all() for x in state):
            self.state = state
        else:
            self.broken_at = self.done * self.dt

    def _control(self) -> None:
        """The controller's forces for the next step."""
        q, v, _ = self.state
        assert self.controller is not None
        tau = self.controller(self.done * self.dt, q.copy(), v.copy())
        self.tau = numbers("controller's tau", tau, len(self.tau))

    def _record(self) -> None:
        if not self.steps and self.controller is not None:
            self._control()
        self._note()

    def _note(self) -> None:
        q, v, entries = self.state
        self.steps.append(self.done)
        self.q.append(q)
        self.v.append(v)
        self.entries.append(entries)
        self.taus.append(self.tau)

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        # Ctrl-C may fall between two of these lists.
        n = min(len(self.steps), len(self.q), len(self.v), len(self.entries), len(self.taus))
        robot = self.program.robot
        t = self.dt * np.array(self.steps[:n], dtype=float)
        q, v, entries = (np.array(x[:n]) for x in (self.q, self.v, self.entries))
        kinetic, potential = energies(robot, q, v)
        momentum = momenta(robot, q, v)
        dissipated = sum(entries[:, ledger.AT[k]] for k in ("contact", "friction", "stops"))
        force = np.zeros((n, 3))
        force[1:] = np.diff(entries[:, ledger.IMPULSE], axis=0)[:, 3:] / np.diff(t)[:, None]
        energy = Energy(kinetic, potential, np.asarray(dissipated), entries[:, ledger.AT["work"]])
        found = Trajectory(
            t, q, v, energy, momentum, force, robot,
            np.array(self.taus[:n]) if self.controller is not None else None,
            self.program.ground, program=self.program,
        )  # fmt: skip
        found.summary = self._summary(found, entries)
        return found

    def _summary(self, found: Trajectory, entries: np.ndarray) -> dict[str, Any]:
        robot, energy = self.program.robot, found.energy
        # The robot's weight through a centimetre: less than that is nothing to measure errors by.
        least = 0.01 * robot.total_mass * float(np.linalg.norm(GRAVITY))
        summary: dict[str, Any] = {
            "robot": robot.name,
            "integrator": self.program.name,
            "dt": self.dt,
            "steps": self.done,
            "steps_per_second": self.done / self.seconds if self.done and self.seconds else 0.0,
            "build_seconds": self.build_seconds,
            "energy_balance": float(np.abs(energy.total - energy.total[0]).max()),
            "energy_exchanged": float(max(energy.kinetic.max(), np.ptp(energy.potential), least)),
            "interrupted": self.interrupted,
        }
        for k in ("contact", "friction", "stops"):
            summary[f"dissipated_by_{k}"] = float(entries[-1, ledger.AT[k]])
        if robot.base == "floating":
            missing = found.momentum - found.momentum[0] - entries[:, ledger.IMPULSE]
            missing[:, 3:] -= found.t[:, None] * robot.total_mass * robot.gravity
            size = np.abs(missing).max(axis=0)
            summary["momentum_balance_angular"] = float(size[:3].max())
            summary["momentum_balance_linear"] = float(size[3:].max())
            summary["momentum_corrected_angular"] = float(entries[-1, ledger.AT["corrected_k"]])
            summary["momentum_corrected_linear"] = float(entries[-1, ledger.AT["corrected_l"]])
        if self.program.points is not None:
            summary["contact_points"] = len(self.program.points)
            summary["deepest_penetration"] = float(entries[-1, ledger.AT["depth"]])
            summary["contact_residual_largest"] = float(entries[-1, ledger.AT["residual"]])
            summary["contact_residual_mean"] = float(
                entries[-1, ledger.AT["residual_sum"]] / max(1, self.done)
            )
        return summary


def progress_bar(steps: int) -> Any:
    """A bar for so many steps.

    Raises:
        MissingDependency: tqdm is not installed.
    """
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingDependency("progress=True needs tqdm: pip install tqdm") from error
    return tqdm(total=steps, unit="step", unit_scale=True, leave=False)
