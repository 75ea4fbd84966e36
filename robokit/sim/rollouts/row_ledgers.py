"""The ledger of each row of a rollout at its end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robokit.sim.motion import ledger
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.energies import energies


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
        return self.entries[:, ledger.AT[name]].copy()

    def share(self, name: str) -> np.ndarray:
        """An impulse as a share of that which presses, (B,); 0 where nothing does."""
        return self.entry(name) / np.maximum(self.entry("pressed"), 1e-300)

    def energy_balance(self) -> np.ndarray:
        """Mechanical energy gained + dissipated - work, (B,) [J]."""
        robot = self.program.robot
        good = np.isfinite(self.q).all(axis=(0, 2)) & np.isfinite(self.v).all(axis=(0, 2))
        q, v = np.where(good[:, None], self.q, robot.neutral()), np.where(good[:, None], self.v, 0.0)
        start, end = (sum(energies(robot, q[k], v[k])) for k in (0, 1))
        dissipated = sum(self.entry(name) for name in ledger.DISSIPATED)
        return np.where(good, end - start + dissipated - self.entry("work"), np.nan)
