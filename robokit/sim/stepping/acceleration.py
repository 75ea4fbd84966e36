"""Acceleration of a fixed-point iteration y <- g(y), in a kernel with loops.

    y <- g(y) - sum_k c_k (dy_k + df_k),    f = g(y) - y,    c = argmin |f - sum_k c_k df_k|

dy_k and df_k are the differences of the last iterates. What is known is dropped where f grows: contacts that
come and go make g jump, and what was learnt on one side misleads on the other. For the rare iteration that
stalls even so, turns of plain iterations follow.

Source: H. Walker and P. Ni, "Anderson acceleration for fixed-point iterations" (2011).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import for_range
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where

HISTORY = 4
"""Differences that are kept."""

ACCELERATED, PLAIN = 40, 60
"""Iterations of a turn with acceleration, and of one without."""

DAMPING = (1.0, 0.5, 0.25)
"""Part of f that is taken in the turns without, the last one for good: cycles end with a smaller one."""

RIDGE = 1e-14
"""Added to the diagonal of the normal equations, over their trace."""

TINY = 1e-300


class Known(NamedTuple):
    """What is carried from one iteration to the next.

    Attributes:
        count: of differences; -1 before the first iterate.
        size: of the last f.
        at: iterations of this turn, accelerated and plain ones, and
        turn: how many turns are over.
    """

    count: Any = -1
    size: Any = math.inf
    at: Any = 0
    turn: Any = 0


def memory(size: str | int) -> list[ArrayOf]:
    """Work arrays for iterates of a size: dy, df, and the last y and f."""
    shapes = {"dy": (HISTORY, size), "df": (HISTORY, size), "y_before": (size,), "f_before": (size,)}
    return [ArrayOf(name, shape, "work") for name, shape in shapes.items()]


def mix(n: Any, y: Any, g: Any, dy: Any, df: Any, y_before: Any, f_before: Any, known: Known) -> Known:
    """Make y the next iterate after g = g(y), arrays of n numbers; what is known then.

    Args:
        n: size of an iterate.
        y, g: iterate and its image.
        dy, df, y_before, f_before: arrays of :func:`memory`.
        known: what was carried.
    """
    square = for_range(n, lambda i, s: s + (g[i] - y[i]) * (g[i] - y[i]), 0.0)
    size, plain = sqrt(square), ~(known.at < ACCELERATED)
    fresh = (known.size < size) | plain
    count = where(fresh, 0, minimum(known.count + 1, HISTORY))
    pairs = [(k, j) for k in range(HISTORY) for j in range(k + 1)]

    def learn(i: Any, *sums: Any) -> list[Scalar]:
        """Shift the differences; the sums of the normal equations."""
        f = g[i] - y[i]
        for k in reversed(range(HISTORY)):
            new_y, new_f = (dy[k - 1, i], df[k - 1, i]) if k else (y[i] - y_before[i], f - f_before[i])
            dy[k, i], df[k, i] = (where(count > k, x, 0.0) for x in (new_y, new_f))
        y_before[i], f_before[i] = y[i], f
        slopes = [df[k, i] for k in range(HISTORY)]
        products = [slopes[k] * slopes[j] for k, j in pairs] + [slope * f for slope in slopes]
        return [s + x for s, x in zip(sums, products, strict=True)]

    sums = list(for_range(n, learn, *[0.0] * (len(pairs) + HISTORY)))
    A = dict(zip(pairs, sums, strict=False))
    ridge = maximum(RIDGE * sum((A[k, k] for k in range(HISTORY)), 0.0), TINY)
    for k in range(HISTORY):
        A[k, k] = A[k, k] + where(count > k, ridge, 1.0)
    c = _solved(A, sums[len(pairs) :])
    turn = known.turn
    beta = where(plain, where(turn < 1, DAMPING[0], where(turn < 2, DAMPING[1], DAMPING[2])), 1.0)

    def move(i: Any) -> None:
        step = beta * f_before[i]
        for k in range(HISTORY):
            step = step - c[k] * (dy[k, i] + df[k, i])
        y[i] = y[i] + step

    for_range(n, move)
    over = ~(known.at + 1 < ACCELERATED + PLAIN)
    return Known(count, size, where(over, 0, known.at + 1), where(over, turn + 1, turn))


def _solved(A: dict[tuple[int, int], Scalar], b: list[Scalar]) -> list[Scalar]:
    """x with A x = b for positive definite A, of which the lower half is given: by elimination."""
    n, b = len(b), list(b)
    for k in range(n):
        for i in range(k + 1, n):
            share = A[i, k] / A[k, k]
            for j in range(k + 1, i + 1):
                A[i, j] = A[i, j] - share * A[j, k]
            b[i] = b[i] - share * b[k]
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            b[k] = b[k] - A[i, k] * b[i]
        b[k] = b[k] / A[k, k]
    return b
