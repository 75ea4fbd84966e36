"""What is odd about the states of a log: units, signs, gaps."""

from __future__ import annotations

import math

import numpy as np

from robokit.model.robot import Robot

GAP = 10.0
"""Times the usual step: a longer one is a gap."""


def gaps(t: np.ndarray) -> list[str]:
    """Gaps between stamps [ns], in words."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    long = np.flatnonzero(steps > GAP * usual)
    if not len(long):
        return []
    k = long[np.argmax(steps[long])]
    return [
        f"{len(long)} gap{'s' * (len(long) > 1)} without samples, the longest {steps[k] * 1e-9:.3g} s at "
        f"t = {(t[k] - t[0]) * 1e-9:.4g} s"
    ]


def check_states(robot: Robot, measured: list[str], q: np.ndarray, v: np.ndarray, degrees: bool) -> list[str]:
    """What is odd about measured states, in words.

    Args:
        robot: the robot.
        measured: joints with positions.
        q, v: the states, (T, nq) and (T, nv).
        degrees: whether they were taken as degrees.
    """
    notes = []
    outside, turned = [], []
    for joint in robot.joints:
        if joint.name not in measured or joint.q_slice.stop - joint.q_slice.start != 1:
            continue
        x = q[:, joint.q_slice.start]
        low, high = joint.lower, joint.upper
        if joint.kind == "continuous":
            low, high = -2 * math.pi, 2 * math.pi
        if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
            continue
        slack = 0.05 * (high - low)
        past = max(low - float(x.min()), float(x.max()) - high)
        if past <= slack:
            continue
        outside.append((past, joint.name))
        as_radians = x * (math.pi / 180)
        if joint.kind in ("revolute", "continuous") and past > high - low:
            turned.append(as_radians.min() >= low - slack and as_radians.max() <= high + slack)
    if turned and all(turned) and not degrees:
        notes.append(
            f"{len(turned)} joints are far past their limits, and within them as degrees: if the log is in "
            "degrees, degrees=True (--degrees)"
        )
    elif outside:
        past, name = max(outside)
        notes.append(
            f"{len(outside)} joint{'s are' if len(outside) > 1 else ' is'} past limits of the description, "
            f"{name!r} by {past:.3g}; look at units, zeros and signs of the log"
        )
    return notes
