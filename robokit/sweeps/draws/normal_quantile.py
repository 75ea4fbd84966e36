"""The quantile of the normal distribution, with the same bits on every machine.

The logarithms of NumPy and SciPy come from the machine's libraries, whose last bit differs from one to
another. These use + - * / and the square root, which IEEE 754 fixes, one operation at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
