"""When a simulation has made energy out of nothing.

What a robot can draw on is its kinetic energy at the start, its height over the lowest place it has reached,
what the springs of the ground and of the joint limits hold at the start, and what the controller gives. A
time step that is too long adds energy of its own. Once it has added more than all that the robot could draw
on, the motion is no longer that of the robot, and a simulation stops.

The errors of sound runs are far smaller: of 19 robots that fall for 2 s at 4 ms, the largest was 2 % of that
energy. A step that is far too long can also make contacts give energy, which the ledger has as dissipation
below zero; more of that than the robot could draw on stops the run too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.conventions import GRAVITY
from robokit.sim import motion
from robokit.sim.motion import state_facts
from robokit.sim.starts.start_checks import start_contacts
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.energies import energies

ROUNDING = 1e-9
"""Share of the potential energy that rounding may change."""


FIRST = 64
"""Recorded states at which a run is looked at for the first time."""


def first_excess(
    kinetic: np.ndarray, potential: np.ndarray, work: np.ndarray, least: Any, dissipated: Any = 0.0
) -> np.ndarray:
    """The first recorded state of each run whose energy cannot be explained.

    Args:
        kinetic, potential: of the recorded states, (T, ...) each [J].
        work: given by the controller until then, (T, ...) [J].
        least: energy that is there besides, a number or (...) [J].
        dissipated: until then, (T, ...) [J]; 0 where it is not known.

    Returns:
        number of the state, (...); T where there is none.
    """
    with np.errstate(all="ignore"):
        given = np.zeros_like(work)
        given[1:] = np.cumsum(np.maximum(np.diff(work, axis=0), 0.0), axis=0)
        height = potential[0] - np.minimum.accumulate(potential, axis=0)
        rounding = ROUNDING * np.maximum.accumulate(np.abs(potential), axis=0)
        growth = (kinetic - kinetic[0]) + (potential - potential[0]) - work
        drawable = kinetic[0] + height + given + rounding + least
        beyond = (growth > drawable) | (-dissipated > drawable)
    return np.where(beyond.any(axis=0), beyond.argmax(axis=0), len(kinetic))


def negligible(program: Program) -> float:
    """Energy too small to measure errors by: the robot's weight on Earth through a centimetre [J]."""
    return 0.01 * float(np.max(program.robot.total_mass)) * float(np.linalg.norm(GRAVITY))


def spring_energy(program: Program, q: np.ndarray) -> float:
    """Energy that the springs of contacts and of the joint limits hold in the configuration q (nq,) [J]."""
    held = float(start_contacts(program, q[None]).energy[0])
    rows = program.robot.split_q(q.tolist())
    for row, stop in zip(rows, program.joints.stop, strict=True):
        if stop is not None:
            held += 0.5 * stop.k * max(stop.lower - row[0], row[0] - stop.upper, 0.0) ** 2
    return held


class EnergyWatch:
    """Looks at the energies of a run now and then, and keeps them for its trajectory.

    Attributes:
        kinetic, potential: of the states that were looked at, (T,) each [J].
        due: number of recorded states at which to look again: twice those of the last time, so that looking
            costs no more, however long the run is.
    """

    def __init__(self, program: Program, q: np.ndarray) -> None:
        self.program, self.start = program, q
        self.kinetic, self.potential = np.zeros(0), np.zeros(0)
        self.due = FIRST
        self.least = negligible(program)

    def look(self, q: Sequence[np.ndarray], v: Sequence[np.ndarray], entries: Sequence[np.ndarray]) -> int:
        """The first recorded state whose energy cannot be explained; their number where there is none."""
        n, known = len(q), len(self.kinetic)
        if n > known:
            robot, new = self.program.robot, (np.array(q[known:]), np.array(v[known:]))
            if self.program.contact:
                kinetic, potential = state_facts(robot, *new)[:, :2].T
            else:
                kinetic, potential = energies(robot, *new)
            self.kinetic = np.concatenate([self.kinetic, kinetic])
            self.potential = np.concatenate([self.potential, potential])
        self.due = 2 * n
        sums = np.array(entries)
        dissipated = sums[:, [motion.AT[k] for k in motion.DISSIPATED]].sum(axis=1)
        work = sums[:, motion.AT["work"]]
        sound = self.kinetic[:n], self.potential[:n], work
        found = int(first_excess(*sound, self.least, dissipated))
        if found < n:  # rarely: then what springs hold at the start is looked at, too
            least = self.least + spring_energy(self.program, self.start)
            found = int(first_excess(*sound, least, dissipated))
        return found

    def cut(self, n: int) -> None:
        """Forget all but the first n states."""
        self.kinetic, self.potential = self.kinetic[:n], self.potential[:n]
        self.due = max(FIRST, min(self.due, 2 * n))

    def made(self, k: int, entries: np.ndarray) -> float:
        """Energy made without a cause until state k [J]: mechanical energy, or what contacts gave."""
        mechanical = sum(x[k] - x[0] for x in (self.kinetic, self.potential)) - entries[motion.AT["work"]]
        dissipated = sum(entries[motion.AT[name]] for name in motion.DISSIPATED)
        return float(max(mechanical, -dissipated))
