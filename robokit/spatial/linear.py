"""Linear systems of generic scalars: small symmetric ones, as a joint's D, and dense ones by LU factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.spatial.control_flow import for_range
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


# LU factors of dense matrices, rows exchanged so that pivots are large: of a size known now, or at run time
# ----------------------------------------------------------------------------------------------------------
#
# :func:`lu` is unrolled, for generic scalars: an exchange is a choice. :func:`lu_in_place` is written in the
# words of control_flow, on arrays. A matrix that is singular gives infinities or NaN, never an error.
#
# Source: G. H. Golub, C. F. Van Loan, Matrix Computations, 2013, section 3.4 (partial pivoting).


def inverse(x: Scalar) -> Scalar:
    """1 / x, of plain numbers, too, where x is 0: infinite, as the processor's is."""
    if isinstance(x, (int, float)) and x == 0:
        return math.copysign(math.inf, x)
    return 1.0 / x


@dataclass(frozen=True)
class Factors:
    """P A = L U."""

    rows: list[list[Scalar]]  # L below the diagonal, U above it, and on it the inverse of U's
    exchanges: list[tuple[int, int, Any]]  # (one row, the other, whether they change places), in this order


def lu(A: Sequence[Sequence[Scalar]]) -> Factors:
    """Factors of a matrix (n, n) of generic scalars; n³/3 multiplications and about as many choices."""
    n, rows, exchanges = len(A), [list(row) for row in A], list[tuple[int, int, Any]]()
    for k in range(n):
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            larger = True if is_zero(rows[k][k]) else abs(rows[i][k]) > abs(rows[k][k])
            exchanges.append((k, i, larger))
            pairs = [_exchanged(larger, a, b) for a, b in zip(rows[k], rows[i], strict=True)]
            rows[k], rows[i] = [a for a, _ in pairs], [b for _, b in pairs]
        rows[k][k] = inverse(rows[k][k])
        for row in rows[k + 1 :]:
            if not is_zero(row[k]):
                row[k] = row[k] * rows[k][k]
                for j in range(k + 1, n):
                    if not is_zero(rows[k][j]):
                        row[j] = row[j] - row[k] * rows[k][j]
    return Factors(rows, exchanges)


def lu_solve(factors: Factors, b: Sequence[Scalar]) -> list[Scalar]:
    """The x of A x = b."""
    rows, x, n = factors.rows, list(b), len(b)
    for k, i, larger in factors.exchanges:
        x[k], x[i] = _exchanged(larger, x[k], x[i])
    for i in range(n):
        x[i] = _less(x[i], [(rows[i][j], x[j]) for j in range(i)])
    for i in reversed(range(n)):
        x[i] = _less(x[i], [(rows[i][j], x[j]) for j in reversed(range(i + 1, n))]) * rows[i][i]
    return x


def lu_solve_transposed(factors: Factors, b: Sequence[Scalar]) -> list[Scalar]:
    """The x of A^T x = b."""
    rows, x, n = factors.rows, list(b), len(b)
    for i in range(n):
        x[i] = _less(x[i], [(rows[j][i], x[j]) for j in range(i)]) * rows[i][i]
    for i in reversed(range(n)):
        x[i] = _less(x[i], [(rows[j][i], x[j]) for j in reversed(range(i + 1, n))])
    for k, i, larger in reversed(factors.exchanges):
        x[k], x[i] = _exchanged(larger, x[k], x[i])
    return x


def _exchanged(condition: Any, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    if isinstance(condition, bool):
        return (b, a) if condition else (a, b)
    return where(condition, b, a), where(condition, a, b)


def _less(x: Scalar, products: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
    """x minus these products."""
    for a, b in products:
        if not (is_zero(a) or is_zero(b)):
            x = x - a * b
    return x


# -- of a size that is known at run time ------------------------------------------------------------


def lu_in_place(A: Any, exchanges: Any) -> None:
    """Factors of an array (n, n), which they replace.

    ``A``: the matrix; then L below the diagonal, U above it, and on it the inverse of U's; ``exchanges``: of
    whole numbers (n,): the row that changes places with each.
    """
    n = A.shape[0]

    def column(k: Any) -> None:
        def larger(r: Any, best: Scalar, at: Any) -> tuple[Scalar, Any]:
            size = abs(A[k + r, k])
            return where(size > best, size, best), where(size > best, k + r, at)

        _, at = for_range(n - k, larger, 0.0, k)
        exchanges[k] = at

        def exchange(j: Any) -> None:
            A[k, j], A[at, j] = A[at, j], A[k, j]

        for_range(n, exchange)
        A[k, k] = inverse(A[k, k])

        def row(r: Any) -> None:
            i = k + 1 + r
            factor = A[i, k] * A[k, k]
            A[i, k] = factor

            def entry(c: Any) -> None:
                A[i, k + 1 + c] = A[i, k + 1 + c] - factor * A[k, k + 1 + c]

            for_range(n - 1 - k, entry)

        for_range(n - 1 - k, row)

    for_range(n, column)


def lu_solve_in_place(A: Any, exchanges: Any, x: Any) -> None:
    """Solve with the factors of :func:`lu_in_place`; x (n,) is the right-hand side, then the solution."""
    n = A.shape[0]

    def exchange(k: Any) -> None:
        at = exchanges[k]
        x[k], x[at] = x[at], x[k]

    def forward(i: Any) -> None:
        x[i] = for_range(i, lambda j, rest: rest - A[i, j] * x[j], x[i])

    def backward(r: Any) -> None:
        i = n - 1 - r
        rest = for_range(r, lambda c, rest: rest - A[i, i + 1 + c] * x[i + 1 + c], x[i])
        x[i] = rest * A[i, i]

    for_range(n, exchange)
    for_range(n, forward)
    for_range(n, backward)
