"""Doubts: what is said where the measured forces and an estimate do not go together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from robokit.identification.measurements import Compressed, Measured
from robokit.identification.parameter_names import dof_names
from robokit.model.robot import Robot

UNEXPLAINED = 0.5
"""Of a force's root mean square: what is left of it where the data must be wrong."""

FAR_OFF, VISIBLE, FEW = 10.0, 0.1, 0.1
"""An outlier: so many times the usual error, such a share of the force, and no more than so many of them."""

SHOWN = 3
"""Joints that a warning of outliers names."""

MEDIAN = 0.6745
"""Of the magnitude of normal noise, in standard deviations."""


def warn_impossible(robot: Robot, data: Measured, residual: np.ndarray, noise: np.ndarray) -> None:
    """Warn where some parameters account for a force, but none of bodies that can exist."""
    size = np.sqrt(np.mean(data.tau**2, axis=0))
    bad = np.flatnonzero((residual > UNEXPLAINED * size) & (noise < 0.5 * residual))
    if bad.size:
        warnings.warn(
            "identify: no bodies that can exist account for the force of joint "
            f"{dof_names(robot)[bad[0]]!r}{_constant(data.tau[:, bad[0]])}: more than half of it is left, "
            "which masses or moments below zero would explain; look at the sign of tau, at gravity, at units "
            "and order of q, v and a, and at the prior",
            stacklevel=3,
        )


def outliers(data: Measured, errors: np.ndarray) -> np.ndarray:
    """Which single forces are far off where the others are not, (B, nv): spikes, impacts, lost samples."""
    usual = np.median(errors, axis=0) / MEDIAN
    size = np.sqrt(np.mean(data.tau**2, axis=0))
    off = errors > np.maximum(FAR_OFF * usual, VISIBLE * size)
    off[:, (off.mean(axis=0) > FEW) | (usual > VISIBLE * size)] = False  # where all is off, none is odd
    return off


def warn_unexplained(
    robot: Robot, parts: Sequence[Compressed], data: Measured, errors: np.ndarray, off: np.ndarray
) -> None:
    """Warn where no parameters account for a force, though not where a few outliers alone are the reason."""
    for k, (name, part) in enumerate(zip(dof_names(robot), parts, strict=True)):
        left = np.sqrt(part.rest / (part.count - part.rank)) > UNEXPLAINED * np.sqrt(part.scale)
        kept = ~off[:, k]
        rest, size = (np.sqrt(np.mean(x[kept, k] ** 2)) for x in (errors, data.tau))
        if left and not (off[:, k].any() and rest < UNEXPLAINED * size):
            warnings.warn(
                "identify: no parameters account for the force of joint "
                f"{name!r}{_constant(data.tau[:, k])}: more than half of it is left; look at sign, unit, "
                "order and filters of q, v, a and tau",
                stacklevel=3,
            )


def warn_outliers(robot: Robot, off: np.ndarray) -> None:
    """Warn of single forces that are far off, with the joints that have them, the most first."""
    count, names = off.sum(axis=0), dof_names(robot)
    found = [
        f"{count[k]} of the {len(off)} forces of joint {names[k]!r}, the first in state {off[:, k].argmax()}"
        for k in np.argsort(-count, kind="stable")
        if count[k]
    ]
    if found:
        more = f" (and more of {len(found) - SHOWN} other joints)" if len(found) > SHOWN else ""
        warnings.warn(
            f"identify: outliers, {'; '.join(found[:SHOWN])}{more}: more than {FAR_OFF:g} times as far off "
            "as is usual; outliers count as much as all others: if they are no part of the motion, leave "
            "them out with weights=, 0 for each of them",
            stacklevel=3,
        )


def _constant(force: np.ndarray) -> str:
    """That a force does not change, as when nobody measured it; empty where it does."""
    return "" if np.ptp(force) else f", which is {force[0]:.6g} in all states"
