"""Warnings about the result of a run, by the figures of its summary."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from robokit.errors import SimulationWarning
from robokit.model.robot import Robot
from robokit.sim.starts.start_warnings import DEEP

PAST_ANGLE, PAST_DEPTH = 0.05, 5e-3
"""A start this far past the limit of a joint is worth a warning [rad], of a slide [m]."""

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


def warn_of_limits(robot: Robot, q: np.ndarray) -> None:
    """Warn of a start past the limit of a joint: the spring of the stop throws the joint back.

    Args:
        robot: the robot.
        q: configurations at the start, (nq,) or (B, nq).
    """
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start != 1 or joint.kind == "continuous":
            continue
        least, unit = (PAST_DEPTH, "m") if joint.kind == "prismatic" else (PAST_ANGLE, "rad")
        at = q[..., joint.q_slice]
        for side, limit, past in (
            ("lower", joint.lower, joint.lower - at),
            ("upper", joint.upper, at - joint.upper),
        ):
            if np.any(past > least):
                warnings.warn(
                    f"q0: joint {joint.name!r} starts {np.nanmax(past):.3g} {unit} past its {side} limit, "
                    f"{limit:.4g} {unit}; the stop throws it back: start inside the limits",
                    SimulationWarning,
                    stacklevel=3,
                )
                return


def warn_of(s: dict[str, Any], start: float = 0.0, level: int = 3) -> None:
    """Warn of a run whose contacts are not to be trusted.

    Args:
        s: its summary.
        start: depth of the start in the ground that was warned of [m]; 0 where none was.
        level: of the stack.
    """
    if s.get("deepest_penetration", 0.0) > start + DEEP:
        warnings.warn(
            f"a contact sank {1e3 * s['deepest_penetration']:.3g} mm into the ground (10 mm are fine): "
            "start above the ground, take a shorter dt or a smaller Ground(sink=...)",
            SimulationWarning,
            stacklevel=level,
        )
    if s.get("steps_not_settled"):
        warnings.warn(
            f"{s['steps_not_settled']} steps took the most iterations and did not settle; the largest "
            f"residual is {s['residual_largest']:.2g} of a step's impulses: take a shorter dt",
            SimulationWarning,
            stacklevel=level,
        )
    moved, error = s.get("energy_exchanged", 0.0), s.get("energy_balance", 0.0)
    if moved > 0.0 and error > UNBALANCED * moved:
        warnings.warn(
            f"the energy balance is off by {error:.3g} J, {error / moved:.0%} of the energy that moved: "
            "take a shorter dt",
            SimulationWarning,
            stacklevel=level,
        )


def warn_of_rows(s: dict[str, Any], failed: np.ndarray, times: np.ndarray, start: float = 0.0) -> None:
    """Warn of rows that failed, and of contacts that are not to be trusted in the worst row."""
    if len(failed):
        first = int(times.argmin())
        grown = " or have energy without a cause" if s.get("rows_of_excess_energy") else ""
        warnings.warn(
            f"{len(failed)} of {s['rows']} rows are no longer finite{grown}, row {failed[first]} first, at "
            f"t = {times[first]:.6g} s: they are NaN from there (.failed lists them); a start that is not "
            f"finite, joint forces that are too large, or a step that is too long: try dt = {s['dt'] / 4:g}",
            SimulationWarning,
            stacklevel=3,
        )
    warn_of(s, start, 4)
