"""The numbers of a servo in a step, from its gains and the inertia that it moves.

robokit.sim.joints.drives has the law. Everything is computed by + - * / and powers of two, so the numbers
are the same to the bit with every C library and every NumPy, as reproducible runs need them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SERIES = (1.0 / 12.0, -1.0 / 720.0, 1.0 / 30240.0, -1.0 / 1209600.0, 1.0 / 47900160.0, -5.284190138687493e-10)
"""Of (1 / (1 - e^-z) - 1 / z - 1/2) / z in powers of z^2: Bernoulli numbers over factorials."""

NEAR = 0.5
"""Below it the series is taken: its first term left out is 2e-15 there."""

FAR = 700.0
"""Beyond it e^-z is next to nothing."""

LOG2_E = 1.4426950408889634
LN_2 = (0.693147180369123816490, 1.90821492927058770002e-10)
"""ln 2 in two parts, the first with zeros at its end: small multiples of it are exact."""


def servo_numbers(kp: Any, kd: Any, mass: Any, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(b, lag, factor of target velocities) of robokit.sim.joints.drives.

    Args:
        kp: stiffness [N m/rad | N/m], any shape.
        kd: damping [N m s/rad | N s/m].
        mass: inertia that the joint moves [kg m^2 | kg].
        dt: step [s].
    """
    alpha = end_share(dt * kd / mass)
    R = kp * dt * dt / mass
    extra = kp * dt * (2.0 * R / (1.0 + 2.0 * R))
    return alpha * kd + extra, (1.0 - alpha) * kd, kd + extra + 0.0 * mass


def end_share(z: Any) -> np.ndarray:
    """alpha = 1 / (1 - e^-z) - 1 / z for z >= 0: from 1/2, where a damper is weak, to 1."""
    z = np.asarray(z, dtype=float)
    square = z * z
    series = np.zeros_like(z)
    for c in SERIES[::-1]:
        series = c + square * series
    far = np.minimum(np.maximum(z, NEAR), FAR)
    direct = 1.0 / (1.0 - decay(far)) - 1.0 / np.maximum(z, NEAR)
    return np.where(z < NEAR, 0.5 + z * series, direct)


def decay(z: np.ndarray) -> np.ndarray:
    """e^-z for 0 <= z <= FAR, to some 1e-16 of itself."""
    k = np.floor(z * LOG2_E + 0.5)
    r = (z - k * LN_2[0]) - k * LN_2[1]
    found = np.ones_like(r)
    for n in range(14, 0, -1):
        found = 1.0 - found * r / n
    return np.ldexp(found, -k.astype(int))
