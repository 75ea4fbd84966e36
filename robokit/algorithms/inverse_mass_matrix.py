"""The inverse of the joint-space inertia matrix, in the sparsity that the tree's branches induce.

    H = L^T D L        N = L^-1 D^-1/2        H^-1 = N N^T
    H^-1_ik = sum of N_ij N_kj over the degrees of freedom j that carry both i and k

N has the pattern of L: column j is what moves with j where everything beyond j is free too. The rows of a
branch are computed side by side.

Source: RBDA section 6.5 for the factors.
Differs: the articulated-body way to H^-1 (J. Carpentier, "Analytical inverse of the joint space inertia
matrix", 2018) is O(n^2) with a large constant; for humanoids and arms this one takes fewer operations.
Cost: O(n^2 d), with few common dofs for most pairs of a branched tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robokit.algorithms.coupling import reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import paths
from robokit.model.tree import Tree
from robokit.spatial.scalars import side_by_side, sqrt


def inverse_mass_matrix(tree: Tree, q) -> list[list]:
    """H^-1, nv x nv, symmetric, as a list of rows; without the joints that follow others."""
    parent, H = tree.dof_parent, crba(tree, q)
    if tree.coupling is not None:
        parent, H = tree.coupling.dof_parent, reduced_matrix(tree, H)
    return inverse_of_factor(parent, inverse_factor(parent, *factors(parent, H)))


def factors(parent: Sequence[int], H) -> tuple[list[list], list]:
    """L and D of ltdl.py: each row takes what all rows beyond it leave at once, so fewer values are alive."""
    n, path = len(parent), paths(parent)
    U, L = [list(row) for row in H], [[0.0] * len(parent) for _ in parent]
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


def branches(parent: Sequence[int]) -> list[list[int]]:
    """The degrees of freedom in groups without a branch between them: each carries all after it."""
    children = [0] * len(parent)
    for p in parent:
        if p >= 0:
            children[p] += 1
    found: list[list[int]] = []
    for i, p in enumerate(parent):
        if p >= 0 and children[p] == 1:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def inverse_factor(parent: Sequence[int], L, D) -> list[list]:
    """N = L^-1 D^-1/2, lower triangular, in the pattern of L: row k is D^-1/2 L^-T e_k."""
    path, root = paths(parent), [sqrt(1.0 / d) for d in D]
    N = [[0.0] * len(parent) for _ in parent]
    for group in branches(parent):
        carry = path[group[-1]]

        def text(*given, carry=carry):
            row, unit = given[: len(carry)], given[len(carry) :]
            x = dict(zip(carry, [-r for r in row], strict=True))
            for i in reversed(carry[:-1]):
                for j in path[i][:-1]:
                    x[j] = x[j] - L[i][j] * x[i]
            return [(x[j] + e) * root[j] for j, e in zip(carry, unit, strict=True)]

        units = [[1.0 if j == k else 0.0 for j in carry] for k in group]
        rows = [[L[k][j] if j < k else 0.0 for j in carry] for k in group]
        found = side_by_side(
            object(), text, [[*r, *e] for r, e in zip(rows, units, strict=True)], len(carry) ** 2 // 2
        )
        for k, row in zip(group, found, strict=True):
            for j, x in zip(carry, row, strict=True):
                N[k][j] = x
    return N


def inverse_of_factor(parent: Sequence[int], N) -> list[list]:
    """N N^T: column k is N times row k of N."""
    n, path = len(parent), paths(parent)
    inverse = [[0.0] * n for _ in range(n)]
    for group in branches(parent):
        carry = path[group[-1]]
        common = [[j for j in carry if j in own] for own in map(set, path)]

        def text(*row, carry=carry, common=common):
            y = dict(zip(carry, row, strict=True))
            return [weighted(N[i], y, own) for i, own in enumerate(common)]

        rows = [[N[k][j] for j in carry] for k in group]
        found = side_by_side(object(), text, rows, sum(map(len, common)))
        for k, column in zip(group, found, strict=True):
            for i, x in enumerate(column):
                inverse[i][k] = x
    return inverse


def weighted(row: Sequence, y: Mapping, places: Sequence[int]):
    """The sum of row[j] y[j] over some places."""
    total = 0.0
    for j in places:
        total = total + row[j] * y[j]
    return total
