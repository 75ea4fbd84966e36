"""Small dense symmetric systems of generic scalars: the D of a joint with several degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.spatial.scalars import Scalar, is_zero, where


def ldl(A: Sequence[Sequence[Scalar]], least: float = 0.0) -> tuple[list[list[Scalar]], list[Scalar]]:
    """L (unit lower) and 1/D of a symmetric positive definite A = L D L^T, k x k.

    least: a pivot that is not above this share of its entry in A is what rounding left of a zero. It is
    taken as zero, so that nothing that is finite comes of it.
    """
    k = len(A)
    L = [[0.0] * k for _ in range(k)]
    dinv: list[Scalar] = [0.0] * k
    work = [list(row) for row in A]
    for j in range(k):
        pivot = where(work[j][j] > least * A[j][j], work[j][j], 0.0) if least else work[j][j]
        dinv[j] = 1.0 / pivot
        L[j][j] = 1.0
        for i in range(j + 1, k):
            if not is_zero(work[i][j]):
                L[i][j] = work[i][j] * dinv[j]
        for i in range(j + 1, k):
            for m in range(j + 1, i + 1):
                if not (is_zero(L[i][j]) or is_zero(work[m][j])):
                    work[i][m] = work[i][m] - L[i][j] * work[m][j]
    return L, dinv


def ldl_solve(factor: tuple[list[list[Scalar]], list[Scalar]], b: Sequence[Scalar]) -> list[Scalar]:
    """Solve L D L^T x = b."""
    L, dinv = factor
    k = len(b)
    x = list(b)
    for i in range(k):
        for j in range(i):
            if not is_zero(L[i][j]):
                x[i] = x[i] - L[i][j] * x[j]
    x = [xi * di for xi, di in zip(x, dinv, strict=True)]
    for i in reversed(range(k)):
        for j in reversed(range(i + 1, k)):  # the newest x last: the chain of operations is shorter
            if not is_zero(L[j][i]):
                x[i] = x[i] - L[j][i] * x[j]
    return x
