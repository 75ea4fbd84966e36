"""Random numbers by row: a draw depends on the seed, the number of the row and the name of the parameter.

No row leaves a state to the next: row k draws the same numbers in every chunk, and a parameter draws the same
numbers whatever other parameters a sweep has.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(2011), Philox4x64-10; S. Joe, F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections" (2008).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

MULTIPLIERS = (np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157))
WEYL = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))
ROUNDS = 10
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)

SOBOL_BITS = 32
"""Binary digits of a coordinate of a Sobol point; there are 2^32 points."""

SHIFT_ROW = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The row that no sweep has: it draws the shift of a Sobol sequence."""

LARGEST_SEED = 2**64 - 1


def philox(counter: Sequence[np.ndarray], key: tuple[int, int]) -> list[np.ndarray]:
    """Four random words of 64 bits for each counter.

    Args:
        counter: its four words, arrays of uint64 of one shape.
        key: two words.
    """
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    k = [np.uint64(word) for word in key]
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        for _ in range(ROUNDS):
            high0, low0 = _product(MULTIPLIERS[0], c[0])
            high1, low1 = _product(MULTIPLIERS[1], c[2])
            c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
            k = [word + step for word, step in zip(k, WEYL, strict=True)]
    return c


def _product(a: np.uint64, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """High and low half of the product of two words, of 128 bits."""
    a0, a1 = a & LOW_HALF, a >> HALF
    b0, b1 = b & LOW_HALF, b >> HALF
    low, cross = a0 * b0, a1 * b0
    middle = a0 * b1 + (low >> HALF)
    total = cross + (middle & LOW_HALF)
    return a1 * b1 + (middle >> HALF) + (total >> HALF), a * b


def stream_of(name: str) -> int:
    """The number of the stream of a parameter: 64 bits of the SHA-256 of its name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def random_words(seed: int, name: str, rows: np.ndarray, count: int = 1) -> np.ndarray:
    """Random words of 64 bits, (rows, count)."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    row = np.repeat(np.asarray(rows, dtype=np.uint64), len(blocks))
    block = np.tile(blocks, len(rows))
    stream = np.full(len(row), stream_of(name), dtype=np.uint64)
    found = philox([row, block, stream, np.zeros_like(row)], (seed, 0))
    return np.stack(found, axis=-1).reshape(len(rows), 4 * len(blocks))[:, :count]


def uniforms(seed: int, name: str, rows: np.ndarray, count: int = 1) -> np.ndarray:
    """Numbers between 0 and 1, both excluded, (rows, count)."""
    return _between(random_words(seed, name, rows, count) >> np.uint64(12), 52)


def _between(whole: np.ndarray, bits: int) -> np.ndarray:
    """(whole + 1/2) 2^-bits: exact, and never 0 or 1, for bits up to 52."""
    return (whole.astype(float) + 0.5) * 2.0**-bits


def sobol_points(seed: int, names: Sequence[str], first: int, last: int) -> np.ndarray:
    """Points first..last of a Sobol sequence with a dimension for each name, in (0, 1), (rows, names).

    The digits of each coordinate are flipped at random, the same ones in all points: a digital shift, which
    leaves the sequence as even as it was. Digits beyond the 32nd are drawn for each point.
    """
    from scipy.stats import qmc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers of points that are no power of two
        sequence = qmc.Sobol(max(1, len(names)), scramble=False, bits=SOBOL_BITS)
        if first:
            sequence.fast_forward(first)
        points = sequence.random(last - first)[:, : len(names)]
    whole = (points * 2.0**SOBOL_BITS).astype(np.uint64)
    rows = np.arange(first, last, dtype=np.uint64)
    for k, name in enumerate(names):
        shift = random_words(seed, name, np.array([SHIFT_ROW]))[0, 0] >> np.uint64(64 - SOBOL_BITS)
        rest = random_words(seed, name, rows)[:, 0] >> np.uint64(12 + SOBOL_BITS)
        whole[:, k] = ((whole[:, k] ^ shift) << np.uint64(52 - SOBOL_BITS)) | rest
    return _between(whole, 52)


# ---- the quantile of the normal distribution ---------------------------------------------------

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 = LN2_HIGH + LN2_LOW; the product of the first with an exponent is exact."""

SQRT_HALF = 0.7071067811865476
ATANH_TERMS = 12

CENTRAL = (
    (
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
    ),
    (
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
        2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
    ),
)  # fmt: skip
MIDDLE = (
    (
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ),
    (
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)  # fmt: skip
FAR = (
    (
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7,
    ),
    (
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)  # fmt: skip
"""Numerators and denominators of the rational functions of :func:`normal_quantile`."""


def logarithm(x: Any) -> np.ndarray:
    """Natural logarithm of normal numbers x = m 2^e > 0, by the series of 2 atanh((m - 1) / (m + 1))."""
    m, e = np.frexp(np.asarray(x, dtype=float))
    low = m < SQRT_HALF
    m, e = np.where(low, m + m, m), np.where(low, e - 1, e).astype(float)
    f = (m - 1.0) / (m + 1.0)
    series = _polynomial(tuple(1.0 / (2 * k + 1) for k in range(1, ATANH_TERMS)), f * f)
    return e * LN2_HIGH + (2.0 * f + (2.0 * f * (f * f) * series + e * LN2_LOW))


def normal_quantile(p: Any) -> np.ndarray:
    """The standard normal variable that is exceeded with probability 1 - p, 0 < p < 1.

    Source: M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988); its
    relative error is about 1e-16.
    """
    p = np.asarray(p, dtype=float)
    q = p - 0.5
    central = np.abs(q) <= 0.425
    small = np.minimum(p, 1.0 - p)
    root = np.sqrt(-logarithm(np.where(central, 0.5, small)))
    inner = q * _ratio(CENTRAL, 0.180625 - np.where(central, q * q, 0.0))
    outer = np.where(root <= 5.0, _ratio(MIDDLE, root - 1.6), _ratio(FAR, root - 5.0))
    return np.where(central, inner, np.where(q < 0.0, -outer, outer))


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    return _polynomial(coefficients[0], x) / _polynomial(coefficients[1], x)


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """c_0 + c_1 x + c_2 x^2 + ... by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total
