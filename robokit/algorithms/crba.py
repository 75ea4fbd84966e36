"""Joint-space inertia matrix H by the composite-rigid-body algorithm, in body coordinates.

Source: RBDA table 6.2; seeds 000, pseudocode; dynamics notes eq. 16-19.
Cost: O(n d), d the depth of the tree. Only entries on common branches are computed; the rest are 0.
"""

from __future__ import annotations

from robokit.algorithms.aba import add_rotors
from robokit.algorithms.composites import composite_inertias
from robokit.model.tree import Tree


def crba(tree: Tree, q) -> list[list]:
    """H, nv x nv, symmetric, as a list of rows."""
    return composite(tree, tree.transforms(q), tree.I)


def composite(tree: Tree, X, I) -> list[list]:
    """H of the inertias I, rigid or articulated, and the transforms X."""
    H = [[0.0] * tree.nv for _ in range(tree.nv)]

    for i, Ic in composite_inertias(tree, X, I):
        S = tree.joint[i].S
        F = S.of(Ic)
        block = [S.T @ column for column in F]
        add_rotors(tree, i, block)
        _put(H, tree, i, i, block)
        j = i
        while tree.parent[j] != 0:
            F = [X[j].T @ column for column in F]
            j = tree.parent[j]
            _put(H, tree, i, j, [tree.joint[j].S.T @ column for column in F])
    return H


def _put(H: list[list], tree: Tree, i: int, j: int, block: list[list]) -> None:
    """Write the block H_ij = F^T S_j and its transpose H_ji."""
    for row, values in zip(range(tree.nv)[tree.v_slice[i]], block, strict=True):
        for column, value in zip(range(tree.nv)[tree.v_slice[j]], values, strict=True):
            if i != j or column <= row:
                H[row][column] = H[column][row] = value
