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


def check_states(robot: Robot, measured: list[str], q: np.ndarray, degrees: bool) -> list[str]:
    """What is odd about measured states, in words.

    Args:
        robot: the robot.
        measured: joints with positions.
        q: configurations, (T, nq).
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


WINDOWS = 20
"""Parts of a log in which velocities are compared with the ways of positions: noise has no say there."""

ODD_SHARE = 0.3
"""Of the way of a joint: how much of it velocities may miss."""


STANDS_STILL = 10.0
"""Times what noise makes of the ways of a joint: below that it stands still, and nothing is compared."""


def check_rates(robot: Robot, t: np.ndarray, names: list[str], q: np.ndarray, v: np.ndarray) -> list[str]:
    """Measured velocities that are not the rates of the positions, in words.

    Args:
        robot: the robot.
        t: stamps [ns], (T,).
        names: joints with measured velocities.
        q, v: the states, (T, nq) and (T, nv).
    """
    seconds = (t - t[0]) * 1e-9
    edges = np.unique(np.linspace(0, len(t) - 1, WINDOWS + 1).astype(int))
    odd = []
    for joint in robot.joints:
        if joint.name not in names or joint.q_slice.stop - joint.q_slice.start != 1:
            continue
        speed = v[:, joint.v_slice.start]
        way = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(seconds))])
        of_v, of_q = np.diff(way[edges]), np.diff(q[edges, joint.q_slice.start])
        size = float(np.linalg.norm(of_q))
        x = q[:, joint.q_slice.start]
        # What noise alone makes of the ways: second differences of white noise have 6 times its variance.
        noise = float(np.std(np.diff(x, 2)) / np.sqrt(6.0) * np.sqrt(2.0 * len(of_q))) if len(x) > 2 else 0.0
        if size > STANDS_STILL * noise and float(np.linalg.norm(of_v - of_q)) > ODD_SHARE * size:
            odd.append((joint.name, float(of_v @ of_q) / size**2))
    if not odd:
        return []
    factors = [f"{name} {factor:.3g}" for name, factor in odd[:4]]
    more = f" and {len(odd) - 4} more" if len(odd) > 4 else ""
    return [
        "velocities are not the rates of the positions, which a factor in their place tells: "
        f"{', '.join(factors)}{more} (-1: a sign; 57.3 or 0.0175: degrees; 0: not measured)"
    ]
