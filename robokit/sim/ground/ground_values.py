"""What a ground is given, checked: coefficients, shares and directions, for all rows or one a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.arguments import real_array, real_number
from robokit.errors import ShapeError, shown

STEEPEST = math.radians(89.0)
"""Tilt of the plane, at most [rad]: it is given by its height over the origin."""


def coefficients(mu: Any) -> float | tuple[float, ...]:
    """A coefficient as a float, one a row as a tuple."""
    values = real_array("Ground(friction=...)", mu, "() or (B,)")
    if values.ndim > 1 or not values.size or not np.all(np.isfinite(values) & (values >= 0.0)):
        raise ShapeError(f"Ground(friction=...): expected coefficients >= 0, got {shown(mu)}")
    return tuple(values.tolist()) if values.ndim else float(values)


def shares(e: Any) -> float | tuple[float, ...]:
    """A restitution as a float, one a row as a tuple."""
    if np.ndim(e) == 0:
        if real_number("Ground(restitution=...)", e, least=0.0) > 1.0:
            raise ShapeError(f"Ground(restitution=...): expected 0 to 1, got {e:g}")
        return float(e)
    values = real_array("Ground(restitution=...)", e, "() or (B,)")
    if values.ndim > 1 or not values.size or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ShapeError(f"Ground(restitution=...): expected shares of 0 to 1, got {shown(e)}")
    return tuple(values.tolist())


def upward(given: Any) -> tuple[float, ...]:
    """A direction upward, of any length."""
    n = vector("Ground(normal=...)", given)
    if not n[2] > math.cos(STEEPEST) * math.hypot(*n):
        raise ShapeError(
            "Ground(normal=...): expected a direction upward, at most "
            f"{math.degrees(STEEPEST):g} degrees from the z axis, got {shown(given)}"
        )
    return n


def vector(name: str, value: Any) -> tuple[float, ...]:
    """Three finite numbers."""
    numbers = real_array(name, value, "(3,)")
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise ShapeError(f"{name}: expected three finite numbers, got {shown(value)}")
    return tuple(numbers.tolist())


def of_row(mu: Any, k: Any) -> Any:
    """Of numbers one a row, that of row k, or those of a slice; a number for all rows is itself."""
    return mu[k] if isinstance(mu, tuple) else mu
