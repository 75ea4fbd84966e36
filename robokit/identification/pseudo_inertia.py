"""Pseudo-inertia: ten inertial parameters as a symmetric matrix that is positive exactly for real bodies.

    P = [[Sigma, h], [h^T, m]]      Sigma = integral of x x^T dm = tr(I)/2 1 - I

A body of points with positive mass that does not lie in a plane has P > 0, and every P > 0 has such a body.

Source: Wensing, Kim, Slotine 2018.
"""

from __future__ import annotations

import numpy as np

from robokit.model.inertial_parameters import COUNT

ROWS, COLUMNS = np.triu_indices(4)
BASIS = np.zeros((COUNT, 4, 4))
"""Symmetric matrices of length 1 that span all of them, (10, 4, 4)."""
BASIS[np.arange(COUNT), ROWS, COLUMNS] = np.where(ROWS == COLUMNS, 1.0, np.sqrt(0.5))
BASIS[np.arange(COUNT), COLUMNS, ROWS] = BASIS[np.arange(COUNT), ROWS, COLUMNS]

THIN = 1e-3
"""Least principal second moment of a prior body, as a share of their sum: a rod is given this thickness."""

RADIUS = 0.02
"""Radius of gyration of a prior body that is a point [m]."""


def pseudo_inertia(parameters: np.ndarray) -> np.ndarray:
    """P of inertial parameters, (..., 10) -> (..., 4, 4)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(parameters, dtype=float), -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def parameters_of(P: np.ndarray) -> np.ndarray:
    """Inertial parameters of P, (..., 4, 4) -> (..., 10)."""
    a, b, c = P[..., 0, 0], P[..., 1, 1], P[..., 2, 2]
    d, e, f = P[..., 0, 1], P[..., 0, 2], P[..., 1, 2]
    hx, hy, hz, m = (P[..., k, 3] for k in range(4))
    return np.stack([m, hx, hy, hz, b + c, -d, a + c, -e, -f, a + b], axis=-1)


def second_moments(parameters: np.ndarray) -> np.ndarray:
    """What consistency asks to be positive: m and the principal moments of x x^T dm about the centre of mass.

    Args:
        parameters: (..., 10).

    Returns:
        (..., 4): m [kg], then three moments [kg m^2] in ascending order.
    """
    P = pseudo_inertia(parameters)
    m, h = P[..., 3, 3], P[..., :3, 3]
    k = 1.0 / np.where(m > 0.0, m, 1.0)
    about = P[..., :3, :3] - h[..., :, None] * h[..., None, :] * k[..., None, None]
    return np.concatenate([m[..., None], np.linalg.eigvalsh(about)], axis=-1)


def possible(parameters: np.ndarray) -> np.ndarray:
    """The nearest parameters that a body of some thickness has, (n, 10) with positive masses."""
    P = pseudo_inertia(parameters)
    out = np.array(parameters, dtype=float)
    for k, body in enumerate(P):
        m, c = body[3, 3], body[:3, 3] / body[3, 3]
        values, axes = np.linalg.eigh(body[:3, :3] - m * np.outer(c, c))
        least = max(THIN * np.abs(values).sum(), THIN * m * RADIUS**2)
        if values.min() >= least:
            continue
        Sigma = (axes * np.maximum(values, least)) @ axes.T
        body[:3, :3] = Sigma + m * np.outer(c, c)
        out[k] = parameters_of(body)
    return out
