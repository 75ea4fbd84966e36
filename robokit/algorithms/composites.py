"""Composite inertias: what each joint carries as if all joints beyond it were locked.

    I^c_i = I_i + sum of X_j^T I^c_j X_j over the children j of i

Source: RBDA section 6.2; seeds 000, first half of the CRBA.
Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Iterator

from robokit.model.tree import Tree


def composite_inertias(tree: Tree, X, I) -> Iterator[tuple]:
    """(i, I^c_i) for bodies N..1, from the tips to the root, of the inertias I and the transforms X."""
    Ic = list(I)
    for i in tree.inward():
        p = tree.parent[i]
        if p != 0:
            Ic[p] = Ic[p] + X[i].T @ Ic[i] @ X[i]
        yield i, Ic[i]
