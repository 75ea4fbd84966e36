"""Sine and cosine in additions and multiplications: the same bits on every machine.

The C library's functions differ from release to release and from processor to processor, NumPy's besides from
one place of an array to another. This is the computation that the engine writes as machine code
(emit/sincos.py says how it works and how exact it is), without fused multiply-adds, for Python's floats and
NumPy's arrays. Its numbers are here for both.

Of angles beyond 2^30 rad the functions of the C library and of NumPy are taken: kernels refuse them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LIMIT = 2.0**30
"""Largest angle [rad]."""

MAGIC = 1.5 * 2.0**52
TWO_OVER_PI = 0.6366197723675814
Way = tuple[float, float, tuple[float, ...]]
"""Largest angle, the number that rounds, and the parts of pi/2."""

FAR: Way = (LIMIT, MAGIC, (1.570796251296997, 7.549789415861596e-08, 5.390302858158119e-15))
NEAR: Way = (2.0**20, MAGIC, (1.5707963267341256, 6.077100506506192e-11))
NEAR_FLOAT32: Way = (8192.0, 1.5 * 2.0**23, (1.5703125, 0.0004837512969970703, 7.549790126404332e-08))

SIN = (
    -0.16666666666666632,
    0.008333333333322413,
    -0.00019841269829807737,
    2.7557313691900135e-06,
    -2.505075811311583e-08,
    1.5896795552841927e-10,
)
COS = (
    0.0416666666666666,
    -0.0013888888888874125,
    2.4801587289482242e-05,
    -2.755731435234916e-07,
    2.087572327532008e-09,
    -1.135964790296927e-11,
)
SIN_FLOAT32 = (-0.16666654936659347, 0.008332177687744378, -0.00019517234893886887)
COS_FLOAT32 = (0.04166664685483267, -0.0013887366920632739, 2.4438380580700725e-05)


def sine_and_cosine(x: float) -> tuple[float, float]:
    """Sine and cosine of one angle [rad].

    Raises:
        ValueError: x is infinite.
    """
    if x == 0.0:  # most angles in descriptions are 0; the result below would be the same
        return 0.0, 1.0
    size = abs(x)
    if not size <= LIMIT:
        return math.sin(x), math.cos(x)
    _, shift, parts = NEAR if size <= NEAR[0] else FAR
    k = (shift + x * TWO_OVER_PI) - shift
    r = x
    for part in parts:
        r = r - k * part
    r2 = r * r
    r4 = r2 * r2
    a, b, c, d, e, f = SIN
    s = r + (r * r2) * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * (e + r2 * f)))
    a, b, c, d, e, f = COS
    co = (1.0 - r2 * 0.5) + r4 * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * (e + r2 * f)))
    quadrant = int(k) & 3
    if quadrant == 0:
        return s, co
    if quadrant == 1:
        return co, -s
    if quadrant == 2:
        return -s, -co
    return -co, s


def sines_and_cosines(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sines and cosines of an array, in its own precision, float64 or float32."""
    short = x.dtype == np.float32
    if not short and x.dtype != np.float64:
        x = np.asarray(x, float)
    size = np.abs(x)
    largest, shift, parts = NEAR_FLOAT32 if short else NEAR
    r, k = _reduced(x, shift, parts)
    if not (size <= largest).all():
        with np.errstate(all="ignore"):
            far, far_k = _reduced(x.astype(np.float64), FAR[1], FAR[2])
            near = size <= largest
            r, k = np.where(near, r, far.astype(x.dtype)), np.where(near, k, far_k)
    r2 = r * r
    r4 = r2 * r2
    sine = r + (r * r2) * _polynomial(SIN_FLOAT32 if short else SIN, r2, r4)
    cosine = (1.0 - r2 * 0.5) + r4 * _polynomial(COS_FLOAT32 if short else COS, r2, r4)
    with np.errstate(all="ignore"):
        quadrant = np.where(size <= LIMIT, k, 0.0).astype(np.int64) & 3
    odd = (quadrant & 1).astype(bool)
    s, c = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    s, c = np.where(quadrant >= 2, -s, s), np.where((quadrant == 1) | (quadrant == 2), -c, c)
    beyond = ~(size <= LIMIT)
    if beyond.any():
        with np.errstate(all="ignore"):
            s, c = np.where(beyond, np.sin(x), s), np.where(beyond, np.cos(x), c)
    return s, c


def _reduced(x: np.ndarray, shift: float, parts: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The remainder of x after whole quarter turns, and their number."""
    k = (shift + x * TWO_OVER_PI) - shift
    for part in parts:
        x = x - k * part
    return x, k


def _polynomial(c: Sequence[float], r2: np.ndarray, r4: np.ndarray) -> np.ndarray:
    """A polynomial, summed in the order of emit/sincos.py."""
    pairs = [c[j] + r2 * c[j + 1] for j in range(0, len(c) - 1, 2)]
    total = pairs.pop() if len(c) % 2 == 0 else c[-1]
    while pairs:
        total = pairs.pop() + r4 * total
    return np.asarray(total)
