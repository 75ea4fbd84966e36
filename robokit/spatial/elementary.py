"""Exponential, logarithm, tangent and the inverse functions, for functions of one's own.

They are functions over ``+ - * /``, ``sqrt``, ``floor`` and ``where``: machine code, C and WebAssembly need
nothing more for them, derivatives of all orders come with them, and they have the same bits everywhere.
Symbolic scalars and complex numbers get the functions of their own libraries.

    from robokit.spatial.elementary import atan2, exp, log, tanh

Errors are a few units in the last place. Outside the range where a function is defined it is NaN; an
exponential that is too large is infinite.

Source: series of Taylor after a reduction of the argument, as in J.-M. Muller, Elementary Functions, chapters
3 and 11.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.spatial.scalars import Scalar, clamp, cos, floor, library, of_each, sin, sqrt, unboxed, where

__all__ = ["acos", "asin", "atan", "atan2", "exp", "log", "power", "tan", "tanh"]

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 in two parts; the first has 32 bits, so that its product with a whole number is exact."""

LARGEST, LEAST = 710.0, -746.0  # beyond these exp is infinite, or 0

EXP = tuple(1.0 / math.factorial(k) for k in range(15, 0, -1))
LOG = tuple(2.0 / k for k in range(23, 0, -2))
ATAN = tuple((-1.0) ** k / (2 * k + 1) for k in range(9, -1, -1))
"""Coefficients of exp(x) - 1, of log((1 + x) / (1 - x)) and of atan(x) over x, the highest first."""

LARGEST_POWER = 64  # up to here x**n is a product


def _by_entry(function: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """A function that takes arrays of scalars, and arrays of numbers beside one, entry by entry.

    Arrays of numbers alone are one scalar, of a batch.
    """

    @functools.wraps(function)
    def of(*numbers: Scalar) -> Scalar:
        arrays = any(type(x) is np.ndarray for x in numbers)
        own = arrays and not any(library(x, function.__name__) for x in numbers)
        entries = own and any(np.asarray(x).dtype == object for x in numbers)
        return of_each(of, *numbers) if entries else function(*numbers)

    return of


@_by_entry
def exp(x: Scalar) -> Scalar:
    """e to the power of x."""
    own = library(x, "exp")
    if own is not None:
        return own(x)
    rest, a, b = _parts_of_exp(x)
    return (rest + 1.0) * a * b


@_by_entry
def log(x: Scalar) -> Scalar:
    """Natural logarithm; -inf at 0, NaN below."""
    own = library(x, "log")
    if own is not None:
        return own(x)
    m, e = x, 0.0
    for i in range(9, -1, -1):  # m 2^e is x, and m goes to 1..2
        large = m >= 2.0**2**i
        m, e = where(large, m * 2.0 ** -(2**i), m), where(large, e + 2.0**i, e)
    for i in (9, *range(9, -1, -1)):
        small = m < 2.0 ** (1 - 2**i)
        m, e = where(small, m * 2.0**2**i, m), where(small, e - 2.0**i, e)
    upper = m > math.sqrt(2.0)
    m, e = where(upper, 0.5 * m, m), where(upper, e + 1.0, e)
    f = (m - 1.0) / (m + 1.0)
    found = e * LN2_HIGH + (f * _polynomial(LOG, f * f) + e * LN2_LOW)
    outside = where(x < 0.0, math.nan * x, where(x == 0.0, -math.inf, x))
    return where(x > 0.0, where(x < math.inf, found, x), outside)


@_by_entry
def power(x: Scalar, y: Scalar) -> Scalar:
    """x to the power of y: a product for whole y, with a root for y and a half, else exp(y log x).

    0 to the power of 0 is 1. Of x below 0 there are powers for whole y only; others are NaN.
    """
    y = unboxed(y)
    if isinstance(y, int | float) and abs(y) <= LARGEST_POWER and 2 * y == int(2 * y):
        result: Any = 1.0
        for _ in range(int(abs(y))):
            result = result * x
        if y != int(y):
            result = _flat_at_zero(x, result * sqrt(x), y)
        return result if y >= 0 else 1.0 / result
    if isinstance(y, int | float) and math.isfinite(y) and y == int(y):  # of numbers below 0, too
        size = exp(y * log(abs(x)))
        return where(x < 0.0, -size, size) if y % 2 else size
    if isinstance(y, int | float):
        return _flat_at_zero(x, exp(y * log(x)), y)
    if isinstance(x, int | float) and x > 0.0:
        return exp(y * math.log(x))
    size, sign = exp(y * log(abs(x))), where(y % 2.0 == 1.0, -1.0, 1.0)
    below = where(y == floor(y), sign, math.nan) * size
    return where(x < 0.0, below, where(x == 0.0, where(y == 0.0, 1.0, size), size))


def _flat_at_zero(x: Scalar, result: Scalar, y: Any) -> Scalar:
    """The power of x, which starts flat at 0 if y > 1: a root's or logarithm's slope there is infinite."""
    return where(x == 0.0, 0.0, result) if isinstance(y, int | float) and y > 1 else result


@_by_entry
def tan(x: Scalar) -> Scalar:
    """Tangent [x in rad]."""
    return sin(x) / cos(x)


@_by_entry
def tanh(x: Scalar) -> Scalar:
    """Hyperbolic tangent: a smooth step from -1 to 1."""
    own = library(x, "tanh")
    if own is not None:
        return own(x)
    rest, a, b = _parts_of_exp(-2.0 * abs(x))
    minus = a * b * rest + (a * b - 1.0)  # exp(-2 |x|) - 1, also where it is small
    size = -minus / (minus + 2.0)
    return where(x < 0.0, -size, size)


@_by_entry
def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of the point (x, y), from -pi to pi [rad]; 0 for (0, 0), and -0.0 is 0.0."""
    own = library(y, "atan2") or library(x, "atan2")
    if own is not None:
        return own(y, x)
    # One of five points c is at most an eighth away: atan(t) = atan(c) + atan((t - c) / (1 + t c)).
    first, second = abs(x), abs(y)
    steep = second > first
    large, small = where(steep, second, first), where(steep, first, second)
    c, angle = 0.0, 0.0
    for at in (0.25, 0.5, 0.75, 1.0):
        above = small > (at - 0.125) * large
        c, angle = where(above, at, c), where(above, math.atan(at), angle)
    below = large + small * c
    t = (small - large * c) / where(below == 0.0, 1.0, below)
    angle = angle + t * _polynomial(ATAN, t * t)
    angle = where(steep, 0.5 * math.pi - angle, angle)
    angle = where(x < 0.0, math.pi - angle, angle)
    return where(y < 0.0, -angle, angle)


@_by_entry
def atan(x: Scalar) -> Scalar:
    """Angle whose tangent is x [rad]."""
    own = library(x, "atan")
    return atan2(x, 1.0) if own is None else own(x)


@_by_entry
def asin(x: Scalar) -> Scalar:
    """Angle whose sine is x, from -pi/2 to pi/2 [rad]; NaN where there is none."""
    own = library(x, "asin")
    return atan2(x, sqrt((1.0 - x) * (1.0 + x))) if own is None else own(x)


@_by_entry
def acos(x: Scalar) -> Scalar:
    """Angle whose cosine is x, from 0 to pi [rad]; NaN where there is none."""
    own = library(x, "acos")
    return atan2(sqrt((1.0 - x) * (1.0 + x)), x) if own is None else own(x)


FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    each.__name__: each for each in (acos, asin, atan, atan2, exp, log, tan, tanh)
}
"""The functions by name."""


def _polynomial(coefficients: Sequence[float], x: Scalar) -> Scalar:
    """A polynomial by Horner's rule, the highest coefficient first."""
    total: Scalar = coefficients[0]
    for each in coefficients[1:]:
        total = total * x + each
    return total


def _parts_of_exp(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """r, a and b with exp(x) = (1 + r) a b; a and b are powers of two, since one alone would overflow."""
    x = clamp(x, LEAST, LARGEST)
    k = floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    half = floor(0.5 * k)
    left, a = abs(half), 1.0
    for i in range(9, -1, -1):
        bit = left >= 2.0**i
        a = a * where(bit, where(half < 0.0, 2.0 ** -(2**i), 2.0**2**i), 1.0)
        left = where(bit, left - 2.0**i, left)
    return r * _polynomial(EXP, r), a, a * (1.0 + k - 2.0 * half)
