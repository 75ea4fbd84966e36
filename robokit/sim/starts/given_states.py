"""States that were given to start from, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.arguments import check_finite, check_values, real_array
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.dynamics.build import angle_bounds, quaternion_offsets
from robokit.errors import InvalidValue, ShapeError
from robokit.model.robot import Robot, of_joint


def numbers(what: str, value: Any, n: int, robot: Robot | None = None) -> np.ndarray:
    """value as n finite numbers; with the robot, errors name the joint."""
    array = real_array(what, value, f"({n},)").copy()
    if array.shape != (n,):
        raise ShapeError(f"{what}: expected shape ({n},), got {array.shape}")
    try:
        check_finite(what, array)
    except InvalidValue as error:
        raise (of_joint(robot, error) if robot else error) from None
    return array


def states(what: str, value: Any, n: int, least: int = 1, robot: Robot | None = None) -> np.ndarray:
    """value as rows of n numbers, (B, n) or (1, n); what is given for all rows must be finite."""
    array = real_array(what, value, f"({n},) or (B, {n})")
    if array.ndim == 1:
        return numbers(what, array, n, robot)[None]
    if array.ndim != 2 or array.shape[1] != n or len(array) < least:
        some = f" with B >= {least}" if least else ""
        raise ShapeError(f"{what}: expected shape ({n},) or (B, {n}){some}, got {array.shape}")
    return array


def check_angles(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where an angle in q, (nq,) or (B, nq), is beyond the range of the sines."""

    def found() -> tuple[float, Any]:
        bounds = angle_bounds(robot)
        return min((most for _, most in bounds), default=math.inf), bounds

    least, bounds = robot.derived.get("bounds of angles", found)
    finite = np.where(np.isfinite(q), q, 0.0)  # rows that are not finite are marked as such later
    if np.abs(finite).max(initial=0.0) > least:
        check_values((what,), (finite,), (), [(0, k, most) for k, most in bounds])


def check_quaternions(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where a quaternion in q, (nq,) or (B, nq), is not unit."""
    for k in quaternion_offsets(robot):
        with np.errstate(all="ignore"):
            norms = np.atleast_1d(np.linalg.norm(q[..., k : k + 4], axis=-1))
            off = np.abs(norms * norms - 1.0) > UNIT_QUATERNION_TOLERANCE
        if off.any():
            row = int(off.argmax())
            place = f"{row}, {k}" if q.ndim == 2 else str(k)
            raise InvalidValue(
                f"{what}[{place}:{k + 4}] is a quaternion (wxyz) of norm {norms[row]:.6g}; a unit quaternion "
                "is needed: divide it by its norm",
                what,
                (row, k) if q.ndim == 2 else (k,),
            )
