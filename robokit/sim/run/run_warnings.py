"""Warnings about the result of a run, by the figures of its summary."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from robokit.errors import SimulationWarning
from robokit.sim.record import Trajectory
from robokit.sim.record.notes import Notes
from robokit.sim.springs import NO_SPRINGS
from robokit.sim.starts.start_checks import DEEP, two_digits
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.default_step import SPIN, fastest_spin

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

    A start that is too fast is warned of before it (starts/start_checks.py).
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
