"""Acceleration of a fixed-point iteration y <- g(y), for many rows at once, each for itself.

    y <- g(y) - sum_k c_k (dy_k + df_k),    f = g(y) - y,    c = argmin |f - sum_k c_k df_k|

dy_k and df_k are the differences of the last iterates. What is known is dropped where f grows: contacts that
come and go make g jump, and what was learnt on one side misleads on the other. For the rare iteration that
stalls even so, turns of plain iterations follow.

Source: H. Walker and P. Ni, "Anderson acceleration for fixed-point iterations" (2011).
"""

from __future__ import annotations

import numpy as np

HISTORY = 4
"""Differences that are kept."""

ACCELERATED, PLAIN = 40, 60
"""Iterations of a turn with acceleration, and of one without."""

DAMPING = (1.0, 0.5, 0.25)
"""Part of f that is taken in the turns without, the last one for good: cycles end with a smaller one."""

RIDGE = 1e-14
"""Added to the diagonal of the normal equations, over their trace."""


class Acceleration:
    """The history of the iterations.

    Args:
        rows: how many there are.
        n: size of an iterate.
    """

    def __init__(self, rows: int, n: int) -> None:
        self.dy, self.df = np.zeros((rows, HISTORY, n)), np.zeros((rows, HISTORY, n))
        self.y, self.f = np.zeros((rows, n)), np.zeros((rows, n))
        self.known, self.last = np.zeros(rows, int), np.full(rows, np.inf)
        self.taken = 0

    def mixed(self, going: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The next iterates of the rows that still go on, (R,), after g = g(y), (R, n) each."""
        turn, at = divmod(self.taken, ACCELERATED + PLAIN)
        plain = at >= ACCELERATED
        beta = DAMPING[min(turn, len(DAMPING) - 1)] if plain else 1.0
        self.taken += 1
        f = g - y
        size = np.sqrt((f * f).sum(axis=1))
        fresh = (size > self.last[going]) | plain
        self.last[going] = size
        known = np.where(fresh, 0, np.minimum(self.known[going] + 1, HISTORY))
        use = (np.arange(HISTORY) < known[:, None])[:, :, None]
        dy, df = (
            np.where(use, np.concatenate([(new - old[going])[:, None], past[going, :-1]], axis=1), 0.0)
            for new, old, past in ((y, self.y, self.dy), (f, self.f, self.df))
        )
        self.known[going], self.dy[going], self.df[going] = known, dy, df
        self.y[going], self.f[going] = y, f
        A = (df[:, :, None] * df[:, None]).sum(axis=-1)
        b = (df * f[:, None]).sum(axis=-1)
        ridge = RIDGE * np.trace(A, axis1=1, axis2=2)
        A += np.where(use, np.maximum(ridge, 1e-300)[:, None, None], 1.0) * np.eye(HISTORY)
        return y + beta * f - (_solved(A, b)[:, :, None] * (dy + df)).sum(axis=1)


def _solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x with A x = b for positive definite A (R, n, n), b (R, n).

    By elimination, in one order of operations: that of a library depends on the processor.
    """
    A, b, n = A.copy(), b.copy(), b.shape[1]
    for k in range(n):
        for i in range(k + 1, n):
            share = A[:, i, k] / A[:, k, k]
            A[:, i, k:] -= share[:, None] * A[:, k, k:]
            b[:, i] -= share * b[:, k]
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            b[:, k] -= A[:, k, i] * b[:, i]
        b[:, k] /= A[:, k, k]
    return b
