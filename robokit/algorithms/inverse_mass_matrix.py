"""The inverse of the joint-space inertia matrix, in the sparsity that the tree's branches induce.

    H = L^T D L        M = L^-1        H^-1 = M D^-1 M^T
    H^-1_ik = sum of M_ij M_kj / D_j over the degrees of freedom j that carry both i and k

M has the pattern of L, and ones on its diagonal: row k is how the forces on all that carry k make k move. The
rows of a branch are computed side by side, and half of H^-1 is enough.

Source: RBDA section 6.5 for the factors.
Differs: the articulated-body way to H^-1 (J. Carpentier, "Analytical inverse of the joint space inertia
matrix", 2018) is O(n^2) with a large constant; for humanoids and arms this one takes fewer operations.
Cost: O(n^2 d), with few common dofs for most pairs of a branched tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from robokit.algorithms.coupling import reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import paths
from robokit.model.tree import Tree
from robokit.spatial.control_flow import vmap

TALL, WIDE = 4, 3
"""Sums that are made together: four by three fit in 16 registers beside what they are made of, and each
number that is loaded serves three or four of them."""


def inverse_mass_matrix(tree: Tree, q) -> list[list]:
    """H^-1, nv x nv, symmetric, as a list of rows; without the joints that follow others."""
    parent, H = tree.dof_parent, crba(tree, q)
    if tree.coupling is not None:
        parent, H = tree.coupling.dof_parent, reduced_matrix(tree, H)
    L, Dinv = factors(parent, H)
    return inverse_of_factor(parent, inverse_factor(parent, L), Dinv)


def factors(parent: Sequence[int], H) -> tuple[list[list], list]:
    """L and D^-1 of ltdl.py: rows take at once what all beyond them leave, WIDE of a branch together."""
    n, path = len(parent), paths(parent)
    U, L, Dinv = [list(row) for row in H], [[0.0] * n for _ in parent], [0.0] * n
    carried = [[k for k in range(i + 1, n) if i in path[k]] for i in range(n)]
    for group in reversed(branches(parent)):
        for rows in reversed(list(parts(group, WIDE))):
            beyond = list(reversed(carried[rows[-1]]))
            for columns in parts(path[rows[-1]], TALL):
                for k, j in product(beyond, columns):
                    for i in rows:
                        if j <= i:
                            U[i][j] = U[i][j] - U[k][j] * L[k][i]
            for i in reversed(rows):
                for k, j in product(reversed([k for k in rows if k > i]), path[i]):
                    U[i][j] = U[i][j] - U[k][j] * L[k][i]
                Dinv[i] = 1.0 / U[i][i]
                for j in path[i][:-1]:
                    L[i][j] = U[i][j] * Dinv[i]
                L[i][i] = 1.0
    return L, Dinv


def branches(parent: Sequence[int]) -> list[list[int]]:
    """The degrees of freedom in groups without a branch between them: each carries all after it."""
    children = [0] * len(parent)
    for p in parent:
        if p >= 0:
            children[p] += 1
    found: list[list[int]] = []
    for i, p in enumerate(parent):
        if p >= 0 and p == i - 1 and children[p] == 1:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def inverse_factor(parent: Sequence[int], L) -> list[list]:
    """M = L^-1, lower triangular with ones on the diagonal, in the pattern of L: row k is L^-T e_k."""
    path = paths(parent)
    M = [[0.0] * len(parent) for _ in parent]
    for group in branches(parent):
        carry = path[group[-1]]

        def function(*row, carry=carry):
            x = dict(zip(carry, [-r for r in row], strict=True))
            for some in reversed(list(parts(carry, TALL))):
                for i, j in product(reversed(carry[:-1]), some):
                    if j < i:
                        x[j] = x[j] - L[i][j] * x[i]
            return [x[j] for j in carry]

        rows = [[L[k][j] if j < k else 0.0 for j in carry] for k in group]
        found = vmap(function)(*zip(*rows, strict=True))
        for k, row in zip(group, found, strict=True):
            for j, x in zip(carry, row, strict=True):
                M[k][j] = x if j < k else 1.0 if j == k else 0.0
    return M


def inverse_of_factor(parent: Sequence[int], M, Dinv) -> list[list]:
    """M D^-1 M^T: column k, down to its diagonal, is M times row k of M D^-1; the rest is symmetric."""
    n, path = len(parent), paths(parent)
    inverse = [[0.0] * n for _ in range(n)]
    for group in branches(parent):
        carry = path[group[-1]]
        common = [[j for j in carry if j in own] for own in map(set, path[: group[-1] + 1])]

        def function(*row, carry=carry, common=common):
            y = {j: x * Dinv[j] for j, x in zip(carry, row, strict=True)}
            return products(M[: len(common)], y, common)

        rows = [[M[k][j] for j in carry] for k in group]
        found = vmap(function)(*zip(*rows, strict=True))
        for k, column in zip(group, found, strict=True):
            for i, x in enumerate(column[: k + 1]):
                inverse[i][k] = inverse[k][i] = x
    return inverse


def products(rows: Sequence[Sequence], y: Mapping, places: Sequence[Sequence[int]]) -> list:
    """The sums of row[j] y[j] over each row's places, TALL rows at a time: each y[j] serves all of them."""
    found: list = []
    for some in parts(range(len(places)), TALL):
        totals = dict.fromkeys(some, 0.0)
        for j in sorted({j for i in some for j in places[i]}):
            for i in some:
                if j in places[i]:
                    totals[i] = totals[i] + rows[i][j] * y[j]
        found += totals.values()
    return found


def parts(some: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Pieces of so many numbers."""
    return (some[k : k + size] for k in range(0, len(some), size))
