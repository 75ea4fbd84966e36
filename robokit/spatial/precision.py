"""Bounds of rounding, in the precision in which a recorded program computes.

A bound is given as it is in double precision. In single precision rounding is 2^29 times as much, and so is
what stands for it; an error of second order, or one whose square counts, goes with the root of that.
"""

from __future__ import annotations

from typing import Any

from robokit.spatial.control_flow import in_precision

RATIO = 2.0**29
"""Rounding in single precision over that in double: 2^-24 and 2^-53."""


def rounding(bound: float, power: float = 1.0) -> Any:
    """A bound in double precision, and the same in single.

    Args:
        bound: in double precision.
        power: of the rounding that it grows with.
    """
    return in_precision(bound, bound * RATIO**power)


def smallest() -> Any:
    """A number that is added to a divisor that may be 0; beside any other it changes nothing."""
    return in_precision(1e-300, 1e-36)
