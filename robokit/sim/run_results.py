"""What a run recorded, as a trajectory with its summary."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.conventions import GRAVITY
from robokit.errors import SimulationWarning
from robokit.sim import motion
from robokit.sim.contact_state import scene_of
from robokit.sim.events import Notes, StepInputs
from robokit.sim.force_elements import NO_SPRINGS
from robokit.sim.loop_closure import distances, gaps, torn
from robokit.sim.motion import hangs_on_nothing, state_facts
from robokit.sim.starts import DEEP, start_contacts, two_digits
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import SPIN, energies, fastest_spin, momenta, tally
from robokit.sim.trajectory import Energy, Trajectory

# ==== energy growth ===============================================================================
# When a simulation has made energy out of nothing.
#
# What a robot can draw on is its kinetic energy at the start, its height over the lowest place it has
# reached, what the springs of the ground and of the joint limits hold at the start, and what the controller
# gives. A time step that is too long adds energy of its own. Once it has added more than all that the robot
# could draw on, the motion is no longer that of the robot, and a simulation stops.
#
# The errors of sound runs are far smaller: of 19 robots that fall for 2 s at 4 ms, the largest was 2 % of
# that energy. A step that is far too long can also make contacts give energy, which the ledger has as
# dissipation below zero; more of that than the robot could draw on stops the run too.

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


# ==== Warnings about the result of a run, by the figures of its summary ===========================

UNBALANCED = 0.1
"""An energy error above this share of the energy that moved is worth a warning."""


def warn_of_length(refused: str | None, name: str) -> None:
    """Warn of a step that is too long to compile, before it is taken."""
    if refused is not None and "operations" in refused:
        warnings.warn(
            f"robot {name!r}: the step runs in plain Python, thousands of times slower ({refused}); "
            "install llvmlite",
            SimulationWarning,
            stacklevel=4,
        )


def warn_of(s: dict[str, Any], start: float = 0.0, level: int = 3) -> None:
    """Warn of a run whose contacts are not to be trusted.

    Args:
        s: its summary.
        start: depth of the start in the ground that was warned of [m]; 0 where none was.
        level: of the stack.
    """
    if s.get("deepest_penetration", 0.0) > start + DEEP:
        warnings.warn(
            f"a contact penetrated the ground by {1e3 * s['deepest_penetration']:.3g} mm (10 mm is fine): "
            "start above the ground, use a shorter dt or a smaller Ground(sink=...)",
            SimulationWarning,
            stacklevel=level,
        )
    if s.get("steps_not_settled"):
        warnings.warn(
            f"{s['steps_not_settled']} steps did not converge; the largest residual is "
            f"{s['residual_largest']:.2g} of a step's impulses: use a shorter dt{_double(s)}",
            SimulationWarning,
            stacklevel=level,
        )
    if "loop_torn" in s:
        warnings.warn(
            f"loop joint {s['loop_torn']!r} was torn open, by up to {s['loop_gap']:.2g} m: prescribed "
            "motions or other loops contradict it, and its forces are meaningless",
            SimulationWarning,
            stacklevel=level,
        )
        return
    moved, error = s.get("energy_exchanged", 0.0), s.get("energy_balance", 0.0)
    if moved > 0.0 and error > UNBALANCED * moved:
        warnings.warn(
            f"the energy balance is off by {error:.3g} J, {error / moved:.0%} of the energy that moved: "
            "use a shorter dt",
            SimulationWarning,
            stacklevel=level,
        )


# ---- whips ------------------------------------------------------------------------------------------------

OFF = 1e-3
"""Error of an angle in a run that is worth a warning [rad]: what ``accuracy`` usually is."""

OF_THE_WAY = 2e-5
"""And over the way that the joint has gone: of a swing of frequency w it is (w dt)^2 / 12, 1 rad at 15 rad/s
and 1 ms. Falls of all robots here stay below a tenth of both."""


def warn_of_whips(run: Trajectory) -> None:
    """Warn of a link that has become too fast for the step, or in free motion is swung about too fast.

    A start that is too fast is warned of before it (starts.py).
    """
    program, dt, notes = run.program, run.summary["dt"], run.notes
    assert program is not None
    q, v = (run.q, run.v) if notes is None else (notes.arrays["q"], notes.arrays["v"])
    speed, row, body = fastest_spin(program.robot, q, v, SPIN / dt)
    if body:
        t = float(run.t[row]) if notes is None else dt * float(notes.begin[row])
        warnings.warn(
            f"link {program.robot.body_name(body)!r} rotates at {speed:.3g} rad/s at t = {t:.4g} s, "
            f"{speed * dt:.2g} rad per step of {dt:g} s, where {SPIN} is fine: use dt = "
            f"{two_digits(SPIN / speed):.2g}",
            SimulationWarning,
            stacklevel=3,
        )
    elif notes is not None and program.method.order == 2 and program.accuracy is None and run.tau is None:
        _of_free_motion(program, dt, notes)


def _of_free_motion(program: Program, dt: float, notes: Notes) -> None:
    """Warn of what a method of second order has missed where nothing touches or drives.

    A step is off by dt^2 / 12 times the change of the acceleration from step to step.
    """
    given, robot, x = program.given, program.robot, notes.arrays
    driven = given.drives or given.places or given.base or given.motions or program.springs != NO_SPRINGS
    if driven or len(notes) < 3:
        return
    after = x["after"] if "after" in x else x["v"][1:]
    before = x["before"] if "after" in x else x["v"][:-1]
    a = (after - before) / dt
    free = np.ones(len(a), bool)
    if "end" in x:
        free = (np.diff(x["end"], prepend=0) == 0) & ~x["joint"][..., 2].any(axis=1)
    smooth = free[1:] & free[:-1]
    off = (np.abs(np.diff(a, axis=0)) * smooth[:, None]).sum(axis=0) * dt * dt / 12.0
    way = np.abs(x["v"]).sum(axis=0) * dt
    turns = [joint for joint in robot.joints if joint.kind in ("revolute", "continuous")]
    for joint in sorted(turns, key=lambda joint: -off[joint.v_slice.start]):
        k = joint.v_slice.start
        if off[k] > OFF and off[k] > OF_THE_WAY * way[k]:
            most = np.abs(a[free, k]).max()
            better = two_digits(dt * min(1.0, (OFF / off[k]) ** 0.5))
            warnings.warn(
                f"link {joint.child_link!r} is whipped about with up to {most:.2g} rad/s^2: with steps of "
                f"{dt:g} s, joint {joint.name!r} may be off by {off[k]:.2g} rad; use dt = {better:.2g}",
                SimulationWarning,
                stacklevel=4,
            )
            return


def _double(s: dict[str, Any]) -> str:
    """What else helps where single precision was asked for."""
    return ', or dtype="float64" (float32 is too short for chains of many links)' * (
        s.get("dtype") == "float32"
    )


def warn_of_rows(s: dict[str, Any], failed: np.ndarray, times: np.ndarray, start: float = 0.0) -> None:
    """Warn of rows that failed, and of contacts that are not to be trusted in the worst row."""
    if len(failed):
        first = int(times.argmin())
        grown = " or gained energy without a cause" if s.get("rows_of_excess_energy") else ""
        warnings.warn(
            f"{len(failed)} of {s['rows']} rows are no longer finite{grown}, row {failed[first]} first, at "
            f"t = {times[first]:.6g} s: they are NaN from then on (.failed lists them). The start is not "
            f"finite, joint forces are too large, or the step is too long: try dt = "
            f"{s['dt'] / 4:g}{_double(s)}",
            SimulationWarning,
            stacklevel=3,
        )
    warn_of(s, start, 4)


# ==== records and the trajectory of a run =========================================================


@dataclass
class Records:
    """The recorded states of a run, one entry of each list a state."""

    steps: list[int] = field(default_factory=list)  # taken until then
    # q, v: the state, (nq,) and (nv,)
    q: list[np.ndarray] = field(default_factory=list)
    v: list[np.ndarray] = field(default_factory=list)
    entries: list[np.ndarray] = field(default_factory=list)  # the ledger, (SIZE,)
    # of the ground until one step before, (6,) as in the ledger
    impulses: list[np.ndarray] = field(default_factory=list)
    # what every step was given, those between the records too
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
