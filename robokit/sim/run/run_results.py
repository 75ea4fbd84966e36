"""What a run recorded, as a trajectory with its summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.sim import motion
from robokit.sim.loop_closure import distances, gaps, torn
from robokit.sim.motion import hangs_on_nothing, state_facts
from robokit.sim.record import Energy, Trajectory
from robokit.sim.record.notes import Notes, StepInputs
from robokit.sim.run.energy_growth import negligible
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.energies import energies, momenta
from robokit.sim.stepping.step_numbers import scene_of
from robokit.sim.stepping.steppers import tally


@dataclass
class Records:
    """The recorded states of a run, one entry of each list a state.

    Attributes:
        steps: taken until then.
        q, v: the state, (nq,) and (nv,).
        entries: the ledger, (SIZE,).
        impulses: of the ground until one step before, (6,) as in the ledger.
        inputs: what every step was given, those between the records too.
    """

    steps: list[int] = field(default_factory=list)
    q: list[np.ndarray] = field(default_factory=list)
    v: list[np.ndarray] = field(default_factory=list)
    entries: list[np.ndarray] = field(default_factory=list)
    impulses: list[np.ndarray] = field(default_factory=list)
    inputs: StepInputs = field(default_factory=StepInputs)

    def add(self, steps: int, q: np.ndarray, v: np.ndarray, entries: np.ndarray, impulse: np.ndarray) -> None:
        """Record a state."""
        for rows, value in zip(self._lists(), (steps, q, v, entries, impulse), strict=True):
            rows.append(value)

    def cut(self, n: int | None = None) -> None:
        """Keep the first n; None keeps all that are whole, for Ctrl-C may come in the middle of one."""
        n = min(map(len, self._lists())) if n is None else n
        for rows in self._lists():
            del rows[n:]

    def _lists(self) -> tuple[list[Any], ...]:
        return self.steps, self.q, self.v, self.entries, self.impulses


def trajectory_of(
    program: Program,
    dt: float,
    records: Records,
    notes: Notes | None,
    energy: tuple[np.ndarray, np.ndarray] | None = None,
) -> Trajectory:
    """The trajectory of a run, with the figures of its summary that follow from the records.

    Args:
        dt: time step [s].
        records: at least one.
        notes: of all steps; None where there are too many.
        energy: kinetic and potential energy of the records, (T,) each [J]; None computes them.
    """
    robot = program.robot
    t = dt * np.array(records.steps, dtype=float)
    q, v, entries = (np.array(x) for x in (records.q, records.v, records.entries))
    with np.errstate(all="ignore"):  # sums over the last finite states may not be
        kinetic, potential = energies(robot, q, v) if energy is None else energy
        momentum = state_facts(robot, q, v)[:, 2:] if program.contact else momenta(robot, q, v)
        losses = {k: entries[:, motion.AT[k]] for k in motion.DISSIPATED}
        work, stored = entries[:, motion.AT["work"]], None
        if program.springs.given:
            taken = entries[:, motion.SIZE + program.given.entries + motion.OWN.index("springs")]
            stored = program.springs.stored(robot, q)
            losses["springs"] = taken - (stored - stored[0])
            work = work + taken
        dissipated = sum(losses.values())
        impulse = entries[:, motion.IMPULSE]
        force = (impulse - np.array(records.impulses))[:, 3:] / dt
        found = Trajectory(
            t, q, v, Energy(kinetic, potential, np.asarray(dissipated), work, stored),
            momentum, force, robot, ground=program.ground, program=program, contact_impulse=impulse[:, 3:],
            actuator_force=actuator_forces(program, t, entries), marks=records.steps, inputs=records.inputs,
            notes=notes, losses=losses,
        )  # fmt: skip
        found.summary = _summary(program, dt, records.steps[-1], found, entries)
    return found


def actuator_forces(program: Program, t: np.ndarray, entries: np.ndarray) -> np.ndarray | None:
    """Mean force of the actuators since the record before, by dof, (T, ..., nv); None where none are."""
    given, robot = program.given, program.robot
    if not given.drives:
        return None
    out = np.zeros((*entries.shape[:-1], robot.nv))
    dofs = {joint.body: joint.v_slice.start for joint in robot.joints}
    first = motion.SIZE + 6 * given.outside
    with np.errstate(all="ignore"):
        for k, drive in enumerate(given.drives):
            sums = np.diff(entries[..., first + 2 * k], axis=0)
            out[1:, ..., dofs[drive.body]] = sums / np.diff(t).reshape(-1, *[1] * (sums.ndim - 1))
    return out


def limited_times(program: Program, entries: np.ndarray) -> dict[str, np.ndarray]:
    """Time that each actuator with a limit was at it [s], by joint, of entries (..., size)."""
    names = {joint.body: joint.name for joint in program.robot.joints}
    first = motion.SIZE + 6 * program.given.outside + 1
    return {
        names[drive.body]: entries[..., first + 2 * k]
        for k, drive in enumerate(program.given.drives)
        if drive.effort or drive.speed
    }


def shape_error(program: Program) -> float:
    """How far meshes reach out of the hulls that touch, at most [m]."""
    found = scene_of(program)
    return float(found.errors[[bool(link) for link in found.links]].max(initial=0.0))


def _summary(
    program: Program, dt: float, steps: int, found: Trajectory, entries: np.ndarray
) -> dict[str, Any]:
    robot, energy, last = program.robot, found.energy, entries[-1]
    moved = (energy.kinetic.max(), np.ptp(energy.potential), negligible(program))
    summary: dict[str, Any] = {
        "robot": robot.name,
        "integrator": program.name,
        "dt": dt,
        "steps": steps,
        "energy_balance": float(np.abs(energy.total - energy.total[0]).max()),
        "energy_exchanged": float(max(moved)),
        "interrupted": False,
    }
    if program.layout.energy:
        summary["energy_corrected"] = float(last[motion.AT["corrected_e"]])
    for k in motion.DISSIPATED:
        summary[f"dissipated_by_{k}"] = float(last[motion.AT[k]])
    if hangs_on_nothing(robot.tree):
        missing = found.momentum - found.momentum[0] - (entries - entries[0])[:, motion.IMPULSE]
        if program.given.outside:
            missing -= (entries - entries[0])[:, motion.SIZE : motion.SIZE + 6]
        missing[:, 3:] -= (found.t - found.t[0])[:, None] * robot.total_mass * robot.gravity
        size = np.abs(missing).max(axis=0)
        summary["momentum_balance_angular"] = float(size[:3].max())
        summary["momentum_balance_linear"] = float(size[3:].max())
        summary["momentum_corrected_angular"] = float(last[motion.AT["corrected_k"]])
        summary["momentum_corrected_linear"] = float(last[motion.AT["corrected_l"]])
    if program.given.drives:
        shares = {
            name: min(1.0, float(x) / (steps * dt))
            for name, x in limited_times(program, last).items()
            if x > 0.0
        }
        summary["saturated"] = dict(sorted(shares.items(), key=lambda item: -item[1]))
    if program.loops is not None:
        gap, tilt = distances(robot, found.q), gaps(robot, found.q)
        summary["loop_gap"], summary["loop_error"] = float(gap.max()), float(tilt.max())
        if name := torn(robot, found.q):
            summary["loop_torn"] = name
    if program.ground is not None:
        summary["shape_error"] = shape_error(program)
        summary["deepest_penetration"] = float(last[motion.AT["depth"]])
        pressed = max(float(last[motion.AT["pressed"]]), 1e-300)
        for name in ("pulled", "outside"):
            summary[f"contact_impulse_{name}"] = float(last[motion.AT[name]]) / pressed
    return summary | tally(program, last)
