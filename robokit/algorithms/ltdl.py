"""Sparse factorisation H = L^T D L and its solve, in the sparsity that the tree's branches induce.

Source: seeds 000, function LTDL; RBDA tables 6.3-6.5. ``parent`` is lambda on degrees of freedom
(``tree.dof_parent``): a joint with k velocities counts as k single ones in a chain.
Differs: 0-based, -1 ends a path; D is split off, so L has a unit diagonal.
Cost: O(n d^2) to factorise, O(n d) to solve, d the depth; no fill-in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robokit.spatial.control_flow import for_range, while_loop


def ltdl(parent: Sequence[int], H) -> tuple[list[list], list]:
    """L (unit lower triangular, rows) and D with H = L^T D L."""
    n = len(parent)
    L, D = [[0.0] * n for _ in parent], [0.0] * n
    factorise(n, parent, H, L, D)
    return L, D


def factorise(n: Any, parent: Sequence[Any], H, L, D) -> None:
    """The same into L, zeros so far, and D; n and parent may be known only later."""

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


def paths(parent: Sequence[int]) -> list[list[int]]:
    """For each degree of freedom those that carry it, root first, itself last."""
    found: list[list[int]] = []
    for i, p in enumerate(parent):
        found.append([*(found[p] if p >= 0 else []), i])
    return found


def ltdl_solve(parent: Sequence[int], L, D, b) -> list:
    """Solve L^T D L x = b."""
    x = list(b)
    solve(len(parent), parent, L, D, x)
    return x


def solve(n: Any, parent: Sequence[Any], L, D, x) -> None:
    """The same in place of x = b; n and parent may be known only later."""
    half_solution(n, parent, L, x)

    def entry(k: Any) -> None:
        x[k] = x[k] / D[k]

    for_range(n, entry)
    other_half(n, parent, L, x)


def solve_transposed(parent: Sequence[int], L, b) -> list:
    """L^-T b."""
    x = list(b)
    half_solution(len(parent), parent, L, x)
    return x


def solve_unit(parent: Sequence[int], L, b) -> list:
    """L^-1 b."""
    x = list(b)
    other_half(len(parent), parent, L, x)
    return x


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
