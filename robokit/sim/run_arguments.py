"""Arguments that simulate and rollout refuse, and results that it warns of."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.dynamics.build import quaternion_offsets
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.contact_points import ContactPoints
from robokit.sim.recorded import BLOCK, heights, row_heights

DEEP = 0.01
"""A point deeper than this is worth a warning [m]."""

UNSETTLED = 0.05
"""A mean change of velocity in the last iteration above this is worth a warning [m/s]."""


BURIED = 0.1
"""A start with a point deeper than this is a mistake [m]."""

UNBALANCED = 0.1
"""An energy error above this share of the energy that moved is worth a warning."""


def check_start(robot: Robot, q: np.ndarray, points: ContactPoints, height: float) -> None:
    """Raise ShapeError for a start deep inside the ground: what follows would be an explosion."""
    if not len(points):
        return
    depth = height - (heights(robot, q.tolist(), points.body, points.position) - points.radius)
    k = int(depth.argmax())
    if depth[k] > BURIED:
        remedy = (
            "start from rk.standing_configuration(robot)" if robot.base == "floating" else "start elsewhere"
        )
        raise ShapeError(
            f"q0: a point of link {points.link[k]!r} starts {depth[k]:.3g} m below the ground; {remedy}, or "
            f"lower it with Ground(height={height - depth[k]:.3g})"
        )


def check_starts(robot: Robot, q: np.ndarray, points: ContactPoints, height: float) -> None:
    """The same for each row of q (B, nq); a row that is not finite is no matter of this check."""
    if not len(points):
        return
    if points.position.ndim == 3:  # one set of points a row
        q = np.broadcast_to(q, (len(points.position), q.shape[1]))
    for start in range(0, len(q), BLOCK):
        some = q[start : start + BLOCK]
        position = points.position[start : start + BLOCK] if points.position.ndim == 3 else points.position
        with np.errstate(all="ignore"):
            lowest = row_heights(robot, some, points.body, position) - points.radius
            deep = (height - lowest > BURIED) & np.isfinite(some).all(axis=1)[:, None]
        if deep.any():
            row = int(deep.any(axis=1).argmax())
            try:
                check_start(robot, some[row], points.sample(start + row), height)
            except ShapeError as error:
                raise ShapeError(str(error).replace("q0", f"q0[{start + row}]", 1)) from None


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

    moved, error = s.get("energy_exchanged", 0.0), s.get("energy_balance", 0.0)
    if moved > 0.0 and error > UNBALANCED * moved:
        warnings.warn(
            f"the energy balance is off by {error:.3g} J, {error / moved:.0%} of the energy that moved: "
            "take a shorter dt",
            stacklevel=3,
        )


def numbers(what: str, value: Any, n: int) -> np.ndarray:
    """value as n finite numbers."""
    array = real_array(what, value, f"({n},)").copy()
    if array.shape != (n,):
        raise ShapeError(f"{what}: expected shape ({n},), got {array.shape}")
    if not np.isfinite(array).all():
        raise ShapeError(f"{what}: expected finite numbers, found {array[~np.isfinite(array)][0]}")
    return array


def warn_of_rows(s: dict[str, Any], failed: np.ndarray, times: np.ndarray) -> None:
    """Warn of rows that failed, and of contacts that are not to be trusted in the worst row."""
    if len(failed):
        first = int(times.argmin())
        warnings.warn(
            f"{len(failed)} of {s['rows']} rows are no longer finite, row {failed[first]} first, at "
            f"t = {times[first]:.6g} s: they are NaN from there (.failed lists them); a start that is not "
            f"finite, joint forces that are too large, or a step that is too long: try dt = {s['dt'] / 4:g}",
            stacklevel=3,
        )
    warn_of(s)


def states(what: str, value: Any, n: int) -> np.ndarray:
    """value as rows of n numbers, (B, n) or (1, n); what is given for all rows must be finite."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what}: expected numbers of shape ({n},) or (B, {n})") from None
    if array.ndim == 1:
        return numbers(what, array, n)[None]
    if array.ndim != 2 or array.shape[1] != n or not len(array):
        raise ShapeError(f"{what}: expected shape ({n},) or (B, {n}) with B >= 1, got {array.shape}")
    return array


def check_count(what: str, value: Any, least: int) -> None:
    """Raise ShapeError for a number of things that is none; None is one."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    if value is not None and not good:
        raise ShapeError(f"{what}: expected a whole number >= {least}, got {value!r}")


def check_quaternions(robot: Robot, q: np.ndarray) -> None:
    """Raise ShapeError where a quaternion in q, (nq,) or (B, nq), is not unit."""
    for k in quaternion_offsets(robot):
        with np.errstate(all="ignore"):
            norms = np.atleast_1d(np.linalg.norm(q[..., k : k + 4], axis=-1))
            off = np.abs(norms * norms - 1.0) > UNIT_QUATERNION_TOLERANCE
        if off.any():
            row = int(off.argmax())
            place = f"{row}, {k}" if q.ndim == 2 else str(k)
            raise ShapeError(
                f"q0[{place}:{k + 4}] is a quaternion (wxyz) of norm {norms[row]:.6g}; a unit quaternion is "
                "needed: divide it by its norm"
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
