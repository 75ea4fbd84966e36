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
    L = [list(row) for row in H]
    for k in reversed(range(n)):
        d = 1.0 / L[k][k]
        i = parent[k]
        while i >= 0:
            a = L[k][i] * d
            j = i
            while j >= 0:
                L[i][j] = L[i][j] - L[k][j] * a
                j = parent[j]
            L[k][i] = a
            i = parent[i]
    D = [L[k][k] for k in range(n)]
    for k in range(n):
        L[k] = [*L[k][:k], 1.0, *[0.0] * (n - k - 1)]
    return L, D


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
