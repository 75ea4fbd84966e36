"""Arguments that simulate refuses, and results that it warns of."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import ShapeError, SingularInertia
from robokit.kernels import quaternion_offsets
from robokit.model.robot import Robot
from robokit.sim.passive import subtree_inertia

DEEP = 0.01
"""A point deeper than this is worth a warning [m]."""

UNSETTLED = 0.05
"""A mean change of velocity in the last iteration above this is worth a warning [m/s]."""


def warn_of(s: dict[str, Any]) -> None:
    """Warn of a run whose contacts are not to be trusted, by its summary."""
    if s.get("deepest_penetration", 0.0) > DEEP:
        warnings.warn(
            f"a contact point sank {1e3 * s['deepest_penetration']:.3g} mm into the ground (10 mm are fine): "
            "start above the ground, take a shorter dt or a smaller Ground(sink=...)",
            stacklevel=3,
        )
    if s.get("contact_residual_mean", 0.0) > UNSETTLED:
        warnings.warn(
            f"contacts did not settle: {s['contact_residual_mean']:.2g} m/s changed in the last iteration, "
            "on average; take more Ground(iterations=...) or a shorter dt",
            stacklevel=3,
        )


def numbers(what: str, value: Any, n: int) -> np.ndarray:
    """value as n finite numbers."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: expected {n} numbers, got {value!r}") from None
    if array.shape != (n,):
        raise ShapeError(f"{what}: expected shape ({n},), got {array.shape}")
    if not np.isfinite(array).all():
        raise ShapeError(f"{what}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    return array


def check_quaternions(robot: Robot, q: np.ndarray) -> None:
    """Raise ShapeError where a quaternion in q is not unit."""
    for k in quaternion_offsets(robot):
        norm = float(np.linalg.norm(q[k : k + 4]))
        if abs(norm * norm - 1.0) > UNIT_QUATERNION_TOLERANCE:
            raise ShapeError(
                f"q0[{k}:{k + 4}] is a quaternion (wxyz) of norm {norm:.6g}; a unit quaternion is needed: "
                "divide it by its norm"
            )


def check_times(duration: Any, dt: Any, record_every: Any, joint_damping: Any) -> None:
    """Raise ShapeError for a duration, step, stride or damping that makes no sense."""
    for what, value, least in (
        ("duration", duration, 0.0),
        ("dt", dt, 0.0),
        ("joint_damping", joint_damping, 0.0),
    ):
        if value is None and what == "joint_damping":
            continue
        good = isinstance(value, int | float | np.number) and math.isfinite(value) and value >= least
        if not good or (what == "dt" and value == 0.0):
            sign = ">" if what == "dt" else ">="
            raise ShapeError(f"{what}: expected a number {sign} 0, got {value!r}")
    if record_every is not None and (not isinstance(record_every, int | np.integer) or record_every < 1):
        raise ShapeError(f"record_every: expected a whole number of steps >= 1, got {record_every!r}")


def check_inertia(robot: Robot) -> None:
    """Raise SingularInertia for a joint that moves no inertia."""
    for joint, (H, _) in zip(robot.joints, subtree_inertia(robot)[1:], strict=True):
        if len(H) and not np.linalg.eigvalsh(H).min() > 1e-14 * float(np.abs(H).max()):
            raise SingularInertia(
                f"joint {joint.name!r} moves no inertia (link {joint.child_link!r} and all behind it): give "
                "its links mass and inertia, or make the joint fixed",
                joint.name,
            )
