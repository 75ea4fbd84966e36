"""The physically consistent fit: the most probable bodies that can exist, with their covariance.

    minimise  1/2 |R x - z|^2 + 1/(4 s^2) sum_i (tr S_i - log det(1 + S_i)) + sum_j (y_j - log(1 + y_j))

Body i has the pseudo-inertia L0 (1 + S_i) L0^T, so that S_i = 0 is the prior body, and tr S - log det(1 + S)
is its divergence from there: the prior, and a barrier too, because it grows without bound where a body ceases
to be possible. Friction and motor inertias are scale (1 + y_j) > 0, with the same for one number.

The problem is convex, and Newton's method with halved steps finds its minimum from anywhere.

Source: Wensing, Kim, Slotine 2018 (pseudo-inertia); Lee, Wensing, Park 2020 (the divergence as prior).
Differs: Newton's method here, in place of scipy's least_squares over log-Cholesky parameters (Rucker, Wensing
2022): that took hundreds of evaluations for an arm of seven joints, and this takes some ten steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robokit.identification.measurements import triangle
from robokit.model.inertial_parameters import COUNT

MAX_STEPS = 200
DECREMENT_TOLERANCE = 1e-12
"""Newton decrement at which the minimum is reached, in units of the logarithm of probability."""


@dataclass(frozen=True)
class Prior:
    """What is assumed before the data."""

    bodies: np.ndarray  # inertial parameters, (N, 10); those of free bodies have P > 0
    free: np.ndarray  # the bodies that are fitted, (n,); the others keep these parameters
    deviation: float  # s, the standard deviation of the logarithm of a body's size
    scales: np.ndarray  # of friction and motor inertias, (m,)


@dataclass(frozen=True)
class Fit:
    """A consistent fit."""

    x: np.ndarray  # all parameters, (p,)
    covariance: np.ndarray  # of them, prior included, (p, p)
    before: np.ndarray  # the prior's covariance alone, (p, p)
    steps: int  # of Newton's method
    converged: bool  # whether the minimum was reached


class _Barrier:
    """The prior's value and derivatives in u, ten numbers of S a free body, then y."""

    def __init__(self, prior: Prior) -> None:
        self.n, self.weight = len(prior.free), 0.25 / prior.deviation**2

    def value(self, u: np.ndarray) -> float:
        """Infinite outside."""
        S, y = self._split(u)
        if (y <= -1.0).any():
            return np.inf
        try:
            L = np.linalg.cholesky(np.eye(4) + S)
        except np.linalg.LinAlgError:
            return np.inf
        trace, logdet = np.trace(S, axis1=1, axis2=2), 2 * np.log(np.einsum("ikk->ik", L)).sum(axis=1)
        return float(self.weight * (trace - logdet).sum() + (y - np.log1p(y)).sum())

    def derivatives(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient, and a square root C of the Hessian C^T C."""
        S, y = self._split(u)
        L = np.linalg.cholesky(np.eye(4) + S)
        half = np.linalg.solve(L, np.broadcast_to(np.eye(4), S.shape))
        # The Hessian's entry (a, b) is tr(M E_a M E_b) = <N_a, N_b> with N = L^-1 E L^-T.
        N = half[:, None] @ BASIS @ np.swapaxes(half, -1, -2)[:, None]
        of_bodies = self.weight * (np.trace(BASIS, axis1=1, axis2=2) - np.trace(N, axis1=2, axis2=3))
        blocks = np.sqrt(self.weight) * np.swapaxes(N.reshape(self.n, COUNT, 16), 1, 2)
        C = np.zeros((len(u), len(u)))
        for k, block in enumerate(blocks):
            here = slice(COUNT * k, COUNT * (k + 1))
            C[here, here] = triangle(block)
        last = np.arange(COUNT * self.n, len(u))
        C[last, last] = 1.0 / (1.0 + y)
        return np.concatenate([of_bodies.ravel(), y / (1.0 + y)]), C

    def _split(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S = np.einsum("ia,akl->ikl", u[: COUNT * self.n].reshape(self.n, COUNT), BASIS)
        return S, u[COUNT * self.n :]


def consistent_fit(R: np.ndarray, z: np.ndarray, prior: Prior) -> Fit:
    """The most probable consistent parameters.

    Args:
        R, z: the weighted equations R x = z, (k, p) and (k,), in units of their standard deviations.
        prior: the bodies that it starts from, and how far they are trusted.
    """
    x0 = np.concatenate([prior.bodies.ravel(), prior.scales])
    G = _rates(prior, len(x0))
    A, r0 = R @ G, R @ x0 - z
    barrier = _Barrier(prior)

    def objective(u: np.ndarray) -> float:
        return 0.5 * float(np.sum((A @ u + r0) ** 2)) + barrier.value(u)

    u = np.zeros(G.shape[1])
    value, converged, steps = objective(u), G.shape[1] == 0, 0
    while not converged and steps < MAX_STEPS:
        steps += 1
        gradient, C = barrier.derivatives(u)
        r = A @ u + r0
        # The Newton step in the form of least squares keeps the digits that R^T R would lose.
        target = -np.concatenate([r, np.linalg.solve(C.T, gradient)])
        Q, T = np.linalg.qr(np.vstack([A, C]))
        along = Q.T @ target
        step, decrement = np.linalg.solve(T, along), float(along @ along)
        length, moved = 1.0, np.inf
        while length > 1e-10 and not (moved := objective(u + length * step)) < value:
            length /= 2
        converged = decrement < DECREMENT_TOLERANCE * max(1.0, value) or not moved < value
        if moved < value:
            u, value = u + length * step, moved
    _, C = barrier.derivatives(u)
    half = np.linalg.solve(triangle(np.vstack([A, C])).T, G.T)
    loose = G * np.repeat([2.0 * prior.deviation, 1.0], [COUNT * len(prior.free), len(prior.scales)])
    return Fit(x0 + G @ u, half.T @ half, loose @ loose.T, steps, converged)


def _rates(prior: Prior, p: int) -> np.ndarray:
    """dx/du, (p, unknowns)."""
    n, N = len(prior.free), len(prior.bodies)
    L0 = np.linalg.cholesky(pseudo_inertia(prior.bodies[prior.free]))
    moved = parameters_of(L0[:, None] @ BASIS @ np.swapaxes(L0, -1, -2)[:, None])
    G = np.zeros((p, COUNT * n + len(prior.scales)))
    for k, body in enumerate(prior.free):
        G[COUNT * body : COUNT * (body + 1), COUNT * k : COUNT * (k + 1)] = moved[k].T
    G[COUNT * N :, COUNT * n :] = np.diag(prior.scales)
    return G


# ---- pseudo-inertia ----------------------------------------------------------------------------

ROWS, COLUMNS = np.triu_indices(4)
BASIS = np.zeros((COUNT, 4, 4))
"""Symmetric matrices of length 1 that span all of them, (10, 4, 4)."""
BASIS[np.arange(COUNT), ROWS, COLUMNS] = np.where(ROWS == COLUMNS, 1.0, np.sqrt(0.5))
BASIS[np.arange(COUNT), COLUMNS, ROWS] = BASIS[np.arange(COUNT), ROWS, COLUMNS]

LEAST_THICKNESS_SHARE = 1e-3
"""Least principal second moment of a prior body, as a share of their sum: a rod is given this thickness."""

LEAST_GYRATION_RADIUS = 0.02
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


def nearest_possible(parameters: np.ndarray) -> np.ndarray:
    """The nearest parameters that a body of some thickness has, (n, 10) with positive masses."""
    P = pseudo_inertia(parameters)
    out = np.array(parameters, dtype=float)
    for k, body in enumerate(P):
        m, c = body[3, 3], body[:3, 3] / body[3, 3]
        values, axes = np.linalg.eigh(body[:3, :3] - m * np.outer(c, c))
        least = max(
            LEAST_THICKNESS_SHARE * np.abs(values).sum(), LEAST_THICKNESS_SHARE * m * LEAST_GYRATION_RADIUS**2
        )
        if values.min() >= least:
            continue
        Sigma = (axes * np.maximum(values, least)) @ axes.T
        body[:3, :3] = Sigma + m * np.outer(c, c)
        out[k] = parameters_of(body)
    return out
