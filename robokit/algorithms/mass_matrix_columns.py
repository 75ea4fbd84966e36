"""H column by column from inverse dynamics: slow, simple, and independent of the CRBA.

    H_i = ID(q, qd, delta_i) - ID(q, qd, 0)

Source: dynamics notes eq. 15.
Cost: O(n^2).
"""

from __future__ import annotations

from itertools import chain

from robokit.algorithms.rnea import rnea
from robokit.model.tree import Tree


def mass_matrix_columns(tree: Tree, q) -> list[list]:
    """H, nv x nv, as a list of rows."""
    n = tree.nv
    rest = tree.split_v([0.0] * n)
    at_rest = list(chain(*rnea(tree, q, rest, rest)))
    columns = []
    for i in range(n):
        delta = tree.split_v([1.0 if k == i else 0.0 for k in range(n)])
        columns.append([a - b for a, b in zip(chain(*rnea(tree, q, rest, delta)), at_rest, strict=True)])
    return [[columns[j][i] for j in range(n)] for i in range(n)]
