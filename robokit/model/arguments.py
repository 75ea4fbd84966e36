"""Checks of the arguments of :class:`ModelBuilder`, and of a function's first argument, the robot.

Every error names the link, the joint or the argument.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.errors import ModelError, WrongType, shown
from robokit.model.geometry import Placement

ORTHONORMAL = 1e-6  # what rotations typed with seven digits keep to


def checked_name(what: str, name: Any) -> str:
    """The name of a link or joint: a string that is not empty."""
    if not (isinstance(name, str) and name.strip()):
        raise ModelError(f"a {what} needs a name that is a string and not empty, got {shown(name)}")
    return name


def not_a_robot(given: Any, argument: str = "robot") -> WrongType:
    """The error for an argument that is not a Robot."""
    hint = ""
    if isinstance(given, (str, Path)):
        hint = f"load it first: rk.load_urdf({shown(str(given), 500)})"
    return WrongType(argument, given, "a Robot, as rk.load_urdf or ModelBuilder.build returns it", hint)


def finite(what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite numbers of a shape, as a new array."""
    array = np.array(real_array(what, value, shape, ModelError))
    if array.shape != shape or not all(map(math.isfinite, array.ravel().tolist())):
        raise ModelError(f"{what}: expected finite numbers of shape {shape}, got {shown(value)}")
    return array


def finite_number(what: str, value: Any) -> float:
    """One finite number."""
    number = _number(what, value)
    if not math.isfinite(number):
        raise ModelError(f"{what} must be finite, got {number}")
    return number


def not_negative(what: str, value: Any) -> float:
    """One finite number from 0."""
    number = finite_number(what, value)
    if number < 0.0:
        raise ModelError(f"{what} must be finite and not negative, got {number}")
    return number


def limit(what: str, value: Any, absent: float) -> float:
    """A limit, which may be infinite; None becomes ``absent``."""
    number = absent if value is None else _number(what, value)
    if math.isnan(number):
        raise ModelError(f"{what} is not a number (nan); leave it out where there is no limit")
    return number


def limits(joint: str, lower: Any, upper: Any) -> tuple[float, float]:
    """Position limits in order."""
    low = limit(f"lower limit of joint {joint!r}", lower, -math.inf)
    high = limit(f"upper limit of joint {joint!r}", upper, math.inf)
    if low > high:
        raise ModelError(f"joint {joint!r}: the lower limit {low:g} is above the upper limit {high:g}")
    return low, high


def checked_placement(what: str, placement: Any) -> Placement:
    """A placement with a proper rotation; None is the identity."""
    if placement is None:
        return Placement()
    if not isinstance(placement, Placement):
        raise ModelError(f"{what}: expected a Placement(rotation, position), got {shown(placement)}")
    R = finite(f"rotation of the {what}", placement.rotation, (3, 3))
    p = finite(f"position of the {what}", placement.position, (3,))
    # Entry by entry: NumPy takes longer over a 3 x 3 matrix, and there are thousands.
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    off = max(
        abs(a * a + d * d + g * g - 1.0),
        abs(b * b + e * e + h * h - 1.0),
        abs(c * c + f * f + i * i - 1.0),
        abs(a * b + d * e + g * h),
        abs(a * c + d * f + g * i),
        abs(b * c + e * f + h * i),
    )
    if off > ORTHONORMAL:
        raise ModelError(
            f"{what}: the rotation is not orthonormal; R^T R differs from 1 by {off:.2g}, "
            f"at most {ORTHONORMAL:g} passes"
        )
    if a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) < 0.0:
        raise ModelError(f"{what}: the rotation mirrors (its determinant is -1); a rotation has +1")
    return Placement(R, p)


def _number(what: str, value: Any) -> float:
    if type(value) is not float:
        array = real_array(what, value, "()", ModelError)  # as of arrays: no text, masks or imaginary parts
        if array.size != 1:
            raise ModelError(f"{what}: expected a number, got {shown(value)}")
        value = float(array.reshape(()))
    return value
