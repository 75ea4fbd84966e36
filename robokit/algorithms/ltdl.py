"""Sparse factorisation H = L^T D L and its solve, in the sparsity that the tree's branches induce.

Source: seeds 000, function LTDL; RBDA tables 6.3-6.5. ``parent`` is lambda on degrees of freedom
(``tree.dof_parent``): a joint with k velocities counts as k single ones in a chain.
Differs: 0-based, -1 ends a path; D is split off, so L has a unit diagonal.
Cost: O(n d^2) to factorise, O(n d) to solve, d the depth; no fill-in.
"""

from __future__ import annotations

from collections.abc import Sequence


def ltdl(parent: Sequence[int], H) -> tuple[list[list], list]:
    """L (unit lower triangular, rows) and D with H = L^T D L."""
    n = len(parent)
    U = [list(row) for row in H]
    L = [[0.0] * n for _ in range(n)]
    path = paths(parent)
    carried = [[k for k in range(i + 1, n) if i in path[k]] for i in range(n)]
    for i in reversed(range(n)):
        for k in reversed(carried[i]):
            for j in path[i]:
                U[i][j] = U[i][j] - U[k][j] * L[k][i]
        d = 1.0 / U[i][i]
        for j in path[i][:-1]:
            L[i][j] = U[i][j] * d
        L[i][i] = 1.0
    return L, [U[i][i] for i in range(n)]


def paths(parent: Sequence[int]) -> list[list[int]]:
    """For each degree of freedom those that carry it, root first, itself last."""
    found: list[list[int]] = []
    for i, p in enumerate(parent):
        found.append([*(found[p] if p >= 0 else []), i])
    return found


def ltdl_solve(parent: Sequence[int], L, D, b) -> list:
    """Solve L^T D L x = b."""
    x = solve_transposed(parent, L, b)
    return solve_unit(parent, L, [xi / d for xi, d in zip(x, D, strict=True)])


def solve_transposed(parent: Sequence[int], L, b) -> list:
    """L^-T b."""
    x = list(b)
    for i in reversed(range(len(parent))):
        j = parent[i]
        while j >= 0:
            x[j] = x[j] - L[i][j] * x[i]
            j = parent[j]
    return x


def solve_unit(parent: Sequence[int], L, b) -> list:
    """L^-1 b."""
    x = list(b)
    for i in range(len(parent)):
        j = parent[i]
        while j >= 0:
            x[i] = x[i] - L[i][j] * x[j]
            j = parent[j]
    return x
