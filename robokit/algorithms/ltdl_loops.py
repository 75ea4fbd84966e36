"""LTDL and its solve (ltdl.py) as loops over lambda as data: for robots of hundreds of joints, compiled once.

Source: seeds 000, function LTDL; RBDA tables 6.3-6.5.
Cost: O(n d^2) to factorise, O(n d) to solve, d the depth; no fill-in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robokit.spatial.control_flow import for_range, while_loop


def factorise(n: Any, parent: Sequence[Any], H, L, D) -> None:
    """L and D of H = L^T D L, L (n, n) unit lower triangular and zero so far, D (n,)."""

    def copied(k: Any) -> None:
        def entry(j: Any) -> None:
            L[k][j] = H[k][j]

        upward(parent, k, entry)

    def column(back: Any) -> None:
        k = n - 1 - back
        d = 1.0 / L[k][k]

        def row(i: Any) -> None:
            a = L[k][i] * d

            def entry(j: Any) -> None:
                L[i][j] = L[i][j] - L[k][j] * a

            upward(parent, i, entry)
            L[k][i] = a

        upward(parent, parent[k], row)
        D[k] = L[k][k]
        L[k][k] = 1.0

    for_range(n, copied)
    for_range(n, column)


def upward(parent: Sequence[Any], start: Any, body: Callable[[Any], None]) -> None:
    """Do something for a degree of freedom and all that carry it."""

    def turn(i: Any) -> Any:
        body(i)
        return parent[i]

    while_loop(lambda i: i >= 0, turn, start)


def solve(n: Any, parent: Sequence[Any], L, D, x) -> None:
    """The x of L^T D L x = b, in place of b (n,)."""
    half_solution(n, parent, L, x)

    def entry(k: Any) -> None:
        x[k] = x[k] / D[k]

    for_range(n, entry)
    other_half(n, parent, L, x)


def half_solution(n: Any, parent: Sequence[Any], L, x) -> None:
    """L^-T x in place of x."""

    def column(back: Any) -> None:
        i = n - 1 - back

        def entry(j: Any) -> None:
            x[j] = x[j] - L[i][j] * x[i]

        upward(parent, parent[i], entry)

    for_range(n, column)


def other_half(n: Any, parent: Sequence[Any], L, x) -> None:
    """L^-1 x in place of x."""

    def row(i: Any) -> None:
        def entry(j: Any) -> None:
            x[i] = x[i] - L[i][j] * x[j]

        upward(parent, parent[i], entry)

    for_range(n, row)
