"""The loop over the steps of one simulation: what it records, and why it stops.

A controller is asked about the middle of the step to come. A force that is held over a step is right to
second order if it is that of the step's middle, and to first order if it is that of its beginning. The
configuration there is q + dt/2 v, at which steps of "contact" let their forces act, too. The velocity goes on
as it has changed in the last two steps, by half of the smaller of the two changes, and not at all where they
differ in sign: what an impact did to it is over.

Source: B. van Leer, "Towards the ultimate conservative difference scheme" (1974): slopes by minmod.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import numpy as np

from robokit.conventions import GRAVITY
from robokit.dataclass_tools import frozen
from robokit.errors import counted, warn
from robokit.model.robot import Robot
from robokit.sim import motion
from robokit.sim.events import MOST_BYTES, Notes, StepInputs
from robokit.sim.force_elements import NO_SPRINGS
from robokit.sim.motion import body_velocities, hangs_on_nothing, state_facts
from robokit.sim.run_inputs import NEVER, RunInputs
from robokit.sim.starts import (
    DEEP,
    distances,
    entered,
    gaps,
    half_widths,
    numbers,
    start_contacts,
    torn,
    two_digits,
)
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import SPIN, contact_scale, default_step, fastest_spin, scene_of, stepper, tally
from robokit.sim.trajectory import Energy, Trajectory
from robokit.stages import stage

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

ROUNDING = 1e-9  # share of the potential energy that rounding may change


FIRST = 64  # recorded states at which a run is looked at for the first time


def first_excess(
    kinetic: np.ndarray, potential: np.ndarray, work: np.ndarray, least: Any, dissipated: Any = 0.0
) -> np.ndarray:
    """Number of each run's first recorded state whose energy cannot be explained, (...); T where there is
    none.

    Energies [J] are kinetic and potential of the recorded states, the work that the controller gave until
    then and what was dissipated, 0 where it is not known, (T, ...) each; ``least``, a number or (...), is
    there besides.
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


# ==== Warnings about the result of a run, by the figures of its summary ===========================

UNBALANCED = 0.1  # an energy error above this share of the energy exchanged is worth a warning


def warn_of_length(refused: str | None, name: str) -> None:
    """Warn of a step that is too long to compile, before it is taken."""
    if refused is not None and "operations" in refused:
        warn(
            f"robot {name!r}: the step runs in plain Python, thousands of times slower ({refused}); "
            "install llvmlite",
        )


def warn_of(s: dict[str, Any], start: float = 0.0, noted: tuple[Records, Notes] | None = None) -> None:
    """Warn of a run whose contacts are not to be trusted, by its summary s.

    ``start``: depth of the start in the ground that was warned of [m]; 0 where none was; ``noted``: records
    and notes of the run, which say what link it was.
    """
    fine = s.get("deepest_fine", DEEP)
    if s.get("deepest_penetration", 0.0) > start + fine:
        link = _deepest_link(*noted) if noted is not None else ""
        what = f"a contact of link {link!r}" if link else "a contact"
        warn(
            f"{what} penetrated the ground by {1e3 * s['deepest_penetration']:.3g} mm "
            f"({1e3 * fine:.3g} mm is fine): start above the ground, use a shorter dt or a smaller "
            "Ground(sink=...)",
        )
    if s.get("steps_not_settled"):
        warn(
            f"{counted(s['steps_not_settled'], 'step')} did not converge; the largest residual is "
            f"{s['residual_largest']:.2g} of a step's impulses: use a shorter dt{_double(s)}",
        )
    if "loop_torn" in s:
        warn(
            f"loop joint {s['loop_torn']!r} was torn open, by up to {s['loop_gap']:.2g} m: prescribed "
            "motions or other loops contradict it, and its forces are meaningless",
        )
        return
    moved, error = s.get("energy_exchanged", 0.0), s.get("energy_balance", 0.0)
    if moved > 0.0 and error > UNBALANCED * moved:
        warn(
            f"the energy balance is off by {error:.3g} J, {error / moved:.0%} of the energy exchanged: "
            "use a shorter dt",
        )


def _deepest_link(records: Records, notes: Notes) -> str:
    """The link that was deepest in the ground, in the steps since the last record that had less depth.

    "" where it was so before all records: then the run went on from a state of another one.
    """
    depth = [float(x[motion.AT["depth"]]) for x in records.entries]
    k = depth.index(depth[-1])
    if k == 0:
        return ""
    steps = slice(*notes.first([records.steps[k - 1], records.steps[k]]))
    found = start_contacts(notes.program, notes.kicks[0][steps])
    return found.link[int(found.depth.argmax())]


def warn_of_entered(program: Program, s: dict[str, Any], q: np.ndarray, t: np.ndarray) -> None:
    """Warn of a shape whose middle is in another one, in the states q (T, nq) at the times t (T,) [s].

    ``s``: summary of the run, whose largest depths say whether there is anything to look for.
    """
    if not program.contact:
        return
    half, own = half_widths(program), np.array([bool(link) for link in scene_of(program).links], bool)
    deepest = (s["deepest_overlap"], own), (s.get("deepest_penetration", 0.0), ~own)
    if all(depth <= half[which].min(initial=math.inf) for depth, which in deepest):
        return
    if (found := entered(program, q)) is not None:
        depth, thin, row, (first, second) = found
        warn(
            f"{second} is {1e3 * depth:.3g} mm deep in {first} at t = {t[row]:.4g} s, more than half of the "
            f"thinner one ({1e3 * thin:.3g} mm), which is pressed into the other or goes through it: use a "
            "shorter dt, a smaller Ground(sink=...), or masses that differ less",
        )


def warn_of_missed_energy(run: Trajectory) -> None:
    """Warn of a run with contacts whose steps missed so much energy that what puts it right is no detail.

    What they missed is a sum over all steps, so the kinetic energy that came and went is one, too.
    """
    program, s = run.program, run.summary
    missed, gone = s.get("energy_corrected", 0.0), 0.5 * float(np.abs(np.diff(run.energy.kinetic)).sum())
    moved = max(s["energy_exchanged"], gone)
    if program is None or program.ground is None or missed <= UNBALANCED * moved:
        return
    speed, link, t = _fastest_link(run, 0.0)
    fastest = f"; link {link!r} is the fastest, {speed:.3g} rad/s at t = {t:.4g} s" if link else ""
    warn(
        f"the energy errors of the steps, which were corrected by changing speeds, sum to {missed:.3g} J, "
        f"{missed / moved:.0%} of the energy exchanged{fastest}: use a shorter dt",
    )


def _fastest_link(run: Trajectory, least: float) -> tuple[float, str, float]:
    """Largest speed of rotation above ``least`` [rad/s]; the link; when [s]. "" and 0 if none is faster."""
    program, notes = run.program, run.notes
    assert program is not None
    q, v = (run.q, run.v) if notes is None else (notes.arrays["q"], notes.arrays["v"])
    known = None if notes is None else lambda: notes.facts
    speed, row, body = fastest_spin(program.robot, q, v, least, known=known)
    if not body:
        return speed, "", 0.0
    t = run.t[row] if notes is None else run.summary["dt"] * notes.begin[row]
    return speed, program.robot.body_name(body), float(t)


# ---- whips ------------------------------------------------------------------------------------------------

OFF = 1e-3  # error of an angle in a run that is worth a warning [rad]: what ``accuracy`` usually is

OF_THE_WAY = 2e-5
"""And over the way that the joint has gone: of a swing of frequency w it is (w dt)^2 / 12, 1 rad at 15 rad/s
and 1 ms. Falls of all robots here stay below a tenth of both."""


def warn_of_whips(run: Trajectory) -> None:
    """Warn of a link that has become too fast for the step, or in free motion is swung about too fast.

    A start that is too fast is warned of before it (starts.py).
    """
    program, dt, notes = run.program, run.summary["dt"], run.notes
    assert program is not None
    if program.accuracy is not None:  # which says how long the parts of steps may be
        return
    speed, link, t = _fastest_link(run, SPIN / dt)
    if link:
        warn(
            f"link {link!r} rotates at {speed:.3g} rad/s at t = {t:.4g} s, "
            f"{speed * dt:.2g} rad per step of {dt:g} s, where {SPIN} is fine: use dt = "
            f"{two_digits(SPIN / speed):.2g}",
        )
    elif notes is not None and program.method.order == 2 and run.tau is None:
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
            warn(
                f"link {joint.child_link!r} is whipped about with up to {most:.2g} rad/s^2: with steps of "
                f"{dt:g} s, joint {joint.name!r} may be off by {off[k]:.2g} rad; use dt = {better:.2g}",
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
        warn(
            f"{len(failed)} of {s['rows']} rows are no longer finite{grown}, row {failed[first]} first, at "
            f"t = {times[first]:.6g} s: they are NaN from then on (.failed lists them). The start is not "
            f"finite, joint forces are too large, or the step is too long: try dt = "
            f"{s['dt'] / 4:g}{_double(s)}",
        )
    warn_of(s, start)


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
    _facts: np.ndarray = field(default_factory=lambda: np.zeros((0, 8)))  # as far as they are known

    def add(self, steps: int, q: np.ndarray, v: np.ndarray, entries: np.ndarray, impulse: np.ndarray) -> None:
        """Record a state."""
        for rows, value in zip(self._lists(), (steps, q, v, entries, impulse), strict=True):
            rows.append(value)

    def cut(self, n: int | None = None) -> None:
        """Keep the first n; None keeps all that are whole, for Ctrl-C may come in the middle of one."""
        n = min(map(len, self._lists())) if n is None else n
        self._facts = self._facts[:n]
        for rows in self._lists():
            del rows[n:]

    def facts(self, robot: Robot) -> np.ndarray:
        """Energies and momenta of the states, (T, 8): see state_facts; of each once, however often asked."""
        new = slice(len(self._facts), len(self.q))
        if new.start < new.stop:
            found = state_facts(robot, np.array(self.q[new]), np.array(self.v[new]))
            self._facts = np.concatenate([self._facts, found])
        return self._facts

    def _lists(self) -> tuple[list[Any], ...]:
        return self.steps, self.q, self.v, self.entries, self.impulses


def trajectory_of(program: Program, dt: float, records: Records, notes: Notes | None) -> Trajectory:
    """The trajectory of a run, with the figures of its summary that follow from its records, one at least.

    ``dt``: time step [s]; ``notes``: of all steps; None where there are too many.
    """
    robot, inputs = program.robot, records.inputs.copy()
    t = dt * np.array(records.steps, dtype=float)
    q, v, entries = (np.array(x) for x in (records.q, records.v, records.entries))
    with np.errstate(all="ignore"):  # sums over the last finite states may not be
        facts = records.facts(robot)
        kinetic, potential, momentum = facts[:, 0], facts[:, 1], facts[:, 2:]
        losses = {k: entries[:, motion.AT[k]] for k in motion.DISSIPATED}
        work, stored = entries[:, motion.AT["work"]], None
        if program.springs.given:
            taken = entries[:, program.parts["own"]][:, motion.OWN.index("springs")]
            stored = program.springs.stored(robot, q)
            losses["springs"] = taken - (stored - stored[0])
            work = work + taken
        dissipated = sum(losses.values())
        impulse = entries[:, motion.IMPULSE]
        force = (impulse - np.array(records.impulses))[:, 3:] / dt
        found = Trajectory(
            t, q, v, Energy(kinetic, potential, np.asarray(dissipated), work, stored),
            momentum, force, robot, ground=program.ground, program=program, contact_impulse=impulse[:, 3:],
            actuator_force=actuator_forces(program, t, entries), marks=list(records.steps),
            inputs=inputs, notes=None if notes is None else replace(notes, inputs=inputs), losses=losses,
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
    forces = entries[..., program.parts["drives"]][..., ::2]
    with np.errstate(all="ignore"):
        for k, drive in enumerate(given.drives):
            sums = np.diff(forces[..., k], axis=0)
            out[1:, ..., dofs[drive.body]] = sums / np.diff(t).reshape(-1, *[1] * (sums.ndim - 1))
    return out


def limited_times(program: Program, entries: np.ndarray) -> dict[str, np.ndarray]:
    """Time that each actuator with a limit was at it [s], by joint, of entries (..., size)."""
    names = {joint.body: joint.name for joint in program.robot.joints}
    times = entries[..., program.parts["drives"]][..., 1::2]
    return {
        names[drive.body]: times[..., k]
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
            missing -= (entries - entries[0])[:, program.parts["outside"]]
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
        summary["deepest_fine"] = DEEP * contact_scale(program.robot, program.ground)
        pressed = max(float(last[motion.AT["pressed"]]), 1e-300)
        for name in ("pulled", "outside"):
            summary[f"contact_impulse_{name}"] = float(last[motion.AT[name]]) / pressed
    return summary | tally(program, last)


# ==== the middle of steps =========================================================================

History = tuple[tuple[int, np.ndarray], ...]  # numbers of steps, ascending, and velocities at their start


class MiddleOfSteps:
    """Predicts the middle of steps from ``history``: at most two steps before the last one asked for."""

    def __init__(self, robot: Robot, dt: float) -> None:
        """Of a robot; ``dt``: time step [s]."""
        self.dt, self.history = dt, History()
        single, self._others = [], []
        for joint in robot.joints:
            if joint.v_slice.stop - joint.v_slice.start == 1:
                single.append((joint.q_slice.start, joint.v_slice.start))
            else:
                self._others.append((robot.tree.joint[joint.body], joint.q_slice, joint.v_slice))
        self._q, self._v = np.array(single, dtype=int).reshape(-1, 2).T

    def __call__(self, step: int, q: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """(t, q, v) in the middle of the step of that number, which begins with q and v."""
        known = dict(self.history)
        self.history = (*((k, w) for k, w in self.history if step - 3 < k < step), (step, v.copy()))
        half = 0.5 * self.dt
        middle = q.copy()
        middle[self._q] += half * v[self._v]
        for joint, at, dofs in self._others:
            middle[at] = joint.integrate(q[at].tolist(), (half * v[dofs]).tolist())
        t = (step + 0.5) * self.dt
        if step - 1 not in known or step - 2 not in known:
            return t, middle, v.copy()
        last, before = v - known[step - 1], known[step - 1] - known[step - 2]
        smaller = np.where(np.abs(last) < np.abs(before), last, before)
        return t, middle, v + np.where(last * before > 0.0, 0.5 * smaller, 0.0)


# ==== the loop ====================================================================================

Controller = Callable[[float, np.ndarray, np.ndarray], Any]


@frozen
class Stop:
    """Why a run ended before its time."""

    time: float  # when [s]
    reason: str  # a clause that begins in lower case and has no full stop
    remedy: str = ""  # what to do about it, likewise; may be empty
    cause: Exception | None = None  # the exception of a controller that failed

    def __str__(self) -> str:
        """The message of the error."""
        if self.cause is not None:
            return self.reason
        return (
            f"stopped at t = {self.time:.6g} s: {self.reason}; {self.remedy}. The states before are in the "
            "error's .trajectory"
        )

    def summary(self) -> dict[str, Any]:
        """The same for :attr:`Trajectory.summary`, as sentences."""
        return {"time": self.time, "reason": _sentence(self.reason), "remedy": _sentence(self.remedy)}


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}." if clause else ""


class Run:
    """A simulation while it runs.

    Attributes:
        records: the recorded states.
        done: steps taken.
        behind: how many of them the stepper does not count.
        path: of each restored state that led here the name of what follows, and its step.
        stop: why it ended before its time, or None.
        interrupted: whether Ctrl-C ended it.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        dt: float,
        every: int,
        controller: Controller | None,
        inputs: RunInputs,
        alone: bool = False,
    ) -> None:
        """Set out from a state, in steps of dt [s].

        ``every`` counts the steps between two records, 0 for none. The controller, (t, q, v) -> joint forces,
        is asked before every step about its middle. ``alone``: the arrays of its steps are its own for good.
        ``lock`` is held while the state changes, and not while functions of the user run; ``beside`` are
        joint forces that are added to the controller's.
        """
        self.program, self.dt, self.every, self.controller = program, dt, every, controller
        self.stepper = stepper(program, dt, None if alone else self)
        self.inputs = inputs
        self.middle = MiddleOfSteps(program.robot, dt)
        self.controlled = controller is not None or inputs.by_function
        self.lock: AbstractContextManager[Any] = contextlib.nullcontext()
        self.begin(q, v)
        self.control_every, self.end = 1, NEVER
        self.interrupted = False
        self.step_seconds = self.compile_seconds = 0.0

    def begin(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set out anew."""
        program = self.program
        self.stepper.begin(q, v)
        self.stepper.forget_notes()
        self.middle.history = ()
        self.noted: list[Notes] = []
        self.first, self.dropped = 0, False
        self.stepper.noting = self.every > 0
        self.given = [np.zeros(size) for _, size in program.given.inputs]
        self.tau = self.commanded = np.zeros(program.robot.nv)
        self.beside: np.ndarray | None = None
        self.ask_anew()
        self.records, self.start, self.look_at = Records(), self.stepper.q.copy(), FIRST
        self.done = 0
        self.records.inputs.add(0, self.tau, self.given)
        self.behind = 0 - (self.stepper.taken or 0)
        self.path = [(uuid4().hex, 0)]
        self.last = self.stepper.impulse()
        self.stop: Stop | None = None

    def go_back(self, state: Any) -> None:
        """Continue from a :class:`robokit.SimulationState`, and discard what was recorded after it.

        If the state is from another run, the entire record is discarded.
        """
        done = state.steps
        known = next((k for k, (name, _) in enumerate(self.path) if name == state.path), None)
        if known is not None:
            left = self.path[known + 1][1] if known + 1 < len(self.path) else self.done
            known = known if done <= left else None
        self._gather()
        self.stepper.begin(state.q, state.v, state.memory, state.entries)
        self.stepper.forget_notes()
        records = self.records
        if known is None:
            self.records, self.noted, self.dropped, self.path = Records(), [], False, []
            self.records.inputs.add(done, self.tau, self.given)
            self.records.inputs.memory = state.memory
            self.start, self.look_at = self.stepper.q.copy(), FIRST
        else:
            while self.noted and self.noted[-1].steps > done:
                last = self.noted.pop().before(done)
                if len(last):
                    self.noted.append(last)
                    break
            records.cut(bisect.bisect_right(records.steps, done))
            records.inputs.cut(done)
            self.look_at = max(FIRST, min(self.look_at, 2 * len(records.steps)))
            del self.path[known + 1 :]
        self.path.append((uuid4().hex, done))
        self.done = self.first = done
        self.behind = done - (self.stepper.taken or 0)
        self.last = self.stepper.impulse()
        self.beside, self.stop = None, None
        self.middle.history = state.history
        self.ask_anew()

    def ask_anew(self) -> None:
        """Whatever was found for the next step: look again."""
        self.change, self._asked_at = 0, -1

    def recount(self) -> None:
        """Set the number of steps to that of the state, after an exception such as Ctrl-C."""
        taken = self.stepper.taken
        if taken is not None:
            self.done = taken + self.behind

    @property
    def due(self) -> bool:
        """Whether inputs change with the next step, and :meth:`control` is to find them."""
        asked = self.controller is not None and self.done % self.control_every == 0
        return (asked and self._asked_at != self.done) or self.done >= self.change

    def last_step(self) -> Notes | None:
        """Notes of the last step that was taken; None of none."""
        found = self.stepper.last()
        if found is not None:
            share = found.pop("share", np.ones(1))
            if self.every:  # a state that was restored has those of its last step there alone
                tau, given, _ = self.records.inputs.at(self.done - 1)
            else:
                tau, given = self._before if self._asked_at == self.done else (self.tau, self.given)
            steps = self.program, self.dt, StepInputs([0], [tau], [given])
            return Notes(*steps, self.done - 1 + np.cumsum(share) - share, share, found)
        if not self.noted or not len(self.noted[-1]) or self.noted[-1].steps != self.done:
            return None
        return self.noted[-1].before(self.done, self.done - 1)

    def go(self, steps: int, progress: bool) -> None:
        """Take the steps."""
        started, self.end = time.perf_counter(), steps
        if self.stepper.noting:
            self.stepper.room_for(steps, MOST_BYTES)
        self.stepper.take(0)  # so that no compiling counts as stepping
        self.compile_seconds = time.perf_counter() - started
        warn_of_length(self.stepper.refused, self.program.robot.name)
        # A warning of NumPy says less than the error that follows a state that is not finite.
        with stepping(steps, progress) as bar, np.errstate(all="ignore"):
            try:
                self.control()
                self.record()
                while self.done < steps and self.stop is None:
                    before, started = self.done, time.perf_counter()
                    try:
                        self.until(min(self.done + self.every, steps))
                    finally:
                        self.step_seconds += time.perf_counter() - started
                    if bar is not None:
                        bar.update(self.done - before)
            except KeyboardInterrupt:
                self.interrupted = True
                self.records.cut()
                if not self.records.steps:  # in the controller's first call: the start is all there is
                    self.give()
                    self.record()
            self._look()

    def until(self, end: int) -> None:
        """Take steps up to that number, and record states on the way."""
        while self.done < end and self.stop is None:
            try:
                if self.due:
                    self.control()
            except Exception as failure:  # of a function of the user: keep what was computed
                if not self.controlled:
                    raise
                reason = f"the controller failed at t = {self.now:.6g} s: {type(failure).__name__}: {failure}"
                with self.lock:
                    self.stop = Stop(self.now, reason, cause=failure)
                    if self.records.steps[-1:] != [self.done]:
                        self.record()
                return
            with self.lock:
                self._go_on(end)

    def _go_on(self, end: int) -> None:
        """Steps with the same inputs, to the next record at most."""
        mark, few = self.mark, min(end, self.next_stop) - self.done
        if self.done + few == mark:  # the step that leads to a record is taken alone: it has its force
            if few > 1:
                self.advance(few - 1)
                few = 1
            self.last = self.stepper.impulse()
        if self.stop is None:
            self.advance(few)
        if self.stop is not None:
            return
        if not self.controlled and self.due:  # a function is asked when its step comes: there may be none
            self.control()
        if self.done == mark:
            self.record()
            if len(self.records.steps) >= self.look_at:
                self._look()

    @property
    def mark(self) -> float:
        """The step after which the next record is."""
        return min((self.done // self.every + 1) * self.every, self.end) if self.every else math.inf

    @property
    def next_stop(self) -> int:
        """The step before which something is to be done, or which leads to a record."""
        if self.due:
            return self.done
        asked = math.inf
        if self.controller is not None:
            asked = (self.done // self.control_every + 1) * self.control_every
        return int(min(self.mark, self.change, asked))

    def advance(self, steps: int) -> None:
        """Steps with the same inputs; a state that is not finite stops the run."""
        if self.dropped:  # but for the last steps, of which the contacts may be asked
            self.stepper.forget_notes()
        try:
            done = self.stepper.take(steps)
        except BaseException:
            self.recount()
            raise
        self.done += done
        if done < steps:
            self.fail()

    def fail(self) -> None:
        """Stop: the state is no longer finite."""
        where = f"; {self._fastest(-1)}" if self.records.steps else ""
        what = f"the state is no longer finite ({self._step()}){where}"
        self.stop = Stop(self.now + self.dt, what, self._remedy())

    @property
    def now(self) -> float:
        """Time of the present state [s]."""
        return self.done * self.dt

    def control(self) -> None:
        """What is given to the next step: the controller's forces, targets of actuators, pushes.

        Functions are asked about the middle of the step that they act in; a controller that is asked at a
        rate of its own, about the state that there is, as a sampled one.
        """
        now = self.now, self.stepper.q, self.stepper.v
        before, commanded, changed = (self.tau, self.given), self.commanded, self.done >= self.change
        (tau, given), change = before, self.change
        held = self.control_every == 1
        middle = self.middle(self.done, *now[1:]) if self.controlled and (held or changed) else now
        law = self.controller if self.done % self.control_every == 0 else None
        if law is not None:
            t, q, v = middle if held else now
            commanded = numbers("controller's tau", law(t, q.copy(), v.copy()), len(tau))
            tau = commanded if self.beside is None else commanded + self.beside
        if changed:
            given, change = self.inputs.at(self.done, *middle[1:])
        with self.lock:
            self._before, self._asked_at = before, self.done
            self.tau, self.commanded, self.given, self.change = tau, commanded, given, change
            if law is not None or changed:
                self.give()

    def give(self) -> None:
        """Hand the inputs to the steps to come."""
        self.stepper.give(self.tau, self.given)
        if self.every:
            self.records.inputs.add(self.done, self.tau, self.given)

    def record(self) -> None:
        """Record the state."""
        own = self.stepper
        self.records.add(self.done, own.q.astype(float), own.v.astype(float), own.entries(), self.last)
        if not self.dropped and own.noted_bytes > MOST_BYTES:
            self.dropped, self.noted = True, []
            own.notes()

    # ---- reasons to stop -----------------------------------------------------------------------

    def _look(self) -> None:
        """Stop before the first recorded state whose energy cannot be explained.

        The next look is at twice as many states, so that looking costs no more, however long the run is.
        """
        records, program = self.records, self.program
        self.look_at = 2 * len(records.steps)
        facts = records.facts(program.robot)[:, :2].T  # not finite where an angle has no digits for its sine
        kinetic, potential = np.where(np.isfinite(facts).all(axis=0), facts, [[np.inf], [0.0]])
        sums, least = np.array(records.entries) - records.entries[0], negligible(program)
        dissipated = sums[:, [motion.AT[name] for name in motion.DISSIPATED]].sum(axis=1)
        found = kinetic, potential, sums[:, motion.AT["work"]]
        k = int(first_excess(*found, least, dissipated))
        if k < len(sums):  # rarely: then what springs hold at the start is looked at, too
            k = int(first_excess(*found, least + spring_energy(program, self.start), dissipated))
        if k == len(sums):
            return
        self.done, entries = records.steps[k], records.entries[k] - records.entries[0]
        energies = records.facts(self.program.robot)[:, :2]
        mechanical = (energies[k] - energies[0]).sum() - entries[motion.AT["work"]]
        given = -sum(entries[motion.AT[name]] for name in motion.DISSIPATED)  # by contacts
        what = f"the energy has grown by {max(mechanical, given):.3g} J without a cause"
        what = what if np.isfinite(mechanical) else "the state is no longer finite"
        what += f" ({self._step()}); {self._fastest(k)}"
        self.stop = Stop(self.now, what, self._remedy())
        records.cut(k)
        self.look_at = max(FIRST, min(self.look_at, 2 * k))
        self.done = records.steps[-1]

    def _step(self) -> str:
        return f"{self.program.name}, dt = {self.dt:g} s"

    def _fastest(self, k: int) -> str:
        """The body with the largest kinetic energy in record k, in words."""
        robot = self.program.robot
        tree, rows = robot.tree, robot.split_q(self.records.q[k].tolist())
        V = body_velocities(tree, tree.transforms(rows), robot.split_v(self.records.v[k].tolist()))
        energy = [0.5 * V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()]
        if not np.any(energy):
            return f"in the state recorded before, at {self.dt * self.records.steps[k]:g} s, nothing moves"
        i = 1 + int(np.nanargmax(energy)) if np.isfinite(energy).any() else 1
        turning, speed = (float(np.linalg.norm(list(x))) for x in (V[i].ang, V[i].lin))
        return f"link {robot.body_name(i)!r} has most kinetic energy: {speed:.3g} m/s, {turning:.3g} rad/s"

    def _remedy(self) -> str:
        best = default_step(self.program.robot, self.program.contact)
        shorter = f"try dt = {best if best < self.dt else self.dt / 4.0:g}"
        return (
            f"the time step is too long, or the controller too stiff for it; {shorter}"
            if self.controlled
            else shorter
        )

    # ---- results -------------------------------------------------------------------------------

    def notes(self) -> Notes | None:
        """Notes of all steps up to the last record; None where there are too many."""
        self._gather()
        if not self.every or self.dropped:
            return None
        if len(self.noted) != 1:
            self.noted = [Notes.joined(self.noted) if self.noted else self._new_notes()]
        found, last = self.noted[0], self.records.steps[-1]
        return found if found.steps <= last else found.before(last)

    def _gather(self) -> None:
        """Take what the stepper has noted."""
        if self.every and not self.dropped:
            new, self.first = self._new_notes(), self.done
            if len(new):
                self.noted.append(new)

    def _new_notes(self) -> Notes:
        return Notes.taken(self.stepper, self.records.inputs, self.first)

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        self.records.inputs.law = self.inputs.law
        found = trajectory_of(self.program, self.dt, self.records, self.notes())
        if self.controller is not None:
            found.tau = self.records.inputs.rows(self.records.steps)[0]
        seconds = self.step_seconds
        found.summary |= {
            "steps": self.done,
            "steps_per_second": self.done / seconds if self.done and seconds else 0.0,
            "compile_seconds": self.compile_seconds,
            "step_seconds": seconds,
            "interrupted": self.interrupted,
        }
        if self.stop is not None:
            found.summary["stopped"] = self.stop.summary()
        return found


@contextlib.contextmanager
def stepping(steps: int, progress: bool) -> Iterator[Any]:
    """A bar for so many steps if ``progress`` is wanted, else None: then they are a stage like others."""
    if not progress:
        with stage("simulating"):
            yield None
        return
    from tqdm import tqdm

    with stage(""), tqdm(total=steps, unit="step", unit_scale=True, leave=False) as bar:
        yield bar
