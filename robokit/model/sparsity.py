"""Structure of the mass matrix and of its factors, from the tree alone.

Everything here is a pure function of ``dof_parent``: for each of the n degrees of freedom the index of the
one before it on the way to the base, -1 where there is none. Joints of several degrees of freedom are chains.

Source: RBDA 6.3 to 6.5 (branch-induced sparsity, LTDL factorisation and its cost).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robokit.errors import ModelError


def check_parents(dof_parent: Sequence[int]) -> np.ndarray:
    """The parent array as integers.

    Args:
        dof_parent: parent of each degree of freedom, -1 for none, (n,).

    Returns:
        The same numbers, (n,) int.

    Raises:
        ModelError: a parent that is not in [-1, i).
    """
    parents = np.asarray(dof_parent, dtype=int).reshape(-1)
    wrong = np.flatnonzero((parents < -1) | (parents >= np.arange(len(parents))))
    if len(wrong):
        i = int(wrong[0])
        raise ModelError(f"dof_parent[{i}] is {int(parents[i])}; a parent is -1 (none) or smaller than {i}")
    return parents


def dof_depths(dof_parent: Sequence[int]) -> np.ndarray:
    """Number of degrees of freedom from the base to each one, itself included.

    Args:
        dof_parent: parent of each degree of freedom, -1 for none, (n,).

    Returns:
        d with d[i] = 1 + d[parent of i], (n,) int.
    """
    parents = check_parents(dof_parent)
    depth = np.zeros(len(parents), dtype=int)
    for i, parent in enumerate(parents):
        depth[i] = 1 if parent < 0 else depth[parent] + 1
    return depth


def inertia_pattern(dof_parent: Sequence[int]) -> np.ndarray:
    """Where the mass matrix H can differ from zero.

    H[i, j] is zero by structure exactly when neither degree of freedom carries the other.

    Args:
        dof_parent: parent of each degree of freedom, -1 for none, (n,).

    Returns:
        Symmetric boolean (n, n).
    """
    parents = check_parents(dof_parent)
    n = len(parents)
    lower = np.zeros((n, n), dtype=bool)
    for i, parent in enumerate(parents):
        if parent >= 0:
            lower[i] = lower[parent]
        lower[i, i] = True
    return lower | lower.T


def cholesky_fill(pattern: np.ndarray) -> np.ndarray:
    """Pattern of the factor L of plain Cholesky, H = L Lᵀ, in the order given.

    Elimination goes from the first row down, so a base that everything hangs on is eliminated first and
    couples all branches: entries that H lacks fill in. L of H = Lᵀ D L has no such fill-in.

    Args:
        pattern: symmetric boolean pattern of H, (n, n).

    Returns:
        Lower triangular boolean (n, n), a superset of H's lower triangle.
    """
    factor = np.tril(np.asarray(pattern, dtype=bool))
    n = len(factor)
    for k in range(n):
        # Column k of L takes part in the update of every later column it has an entry for; by the
        # elimination tree it is enough to pass the pattern on to the first of them.
        below = np.flatnonzero(factor[k + 1 :, k]) + k + 1
        if len(below):
            factor[below, below[0]] = True
    return factor


def factorisation_counts(factor: np.ndarray) -> dict[str, int]:
    """Operations of a Cholesky factorisation and of the solve with it, from the pattern of L.

    Args:
        factor: lower triangular boolean pattern of L, (n, n).

    Returns:
        Multiply-adds of the factorisation ("factorise") and of the two triangular solves ("solve",
        divisions not counted).
    """
    below = np.asarray(factor, dtype=bool).sum(axis=0).astype(int) - 1
    return {"factorise": int((below * (below + 1) // 2).sum()), "solve": int(2 * below.sum())}


def ltdl_counts(dof_parent: Sequence[int]) -> dict[str, int | float]:
    """Exact operation counts of H = Lᵀ D L on the tree, beside those of a dense factorisation.

    With d[i] the depth of a degree of freedom: factorisation sum d (d - 1) / 2 multiply-adds against
    (n³ - n) / 6; the two triangular solves 2 sum (d - 1) against n² - n. Divisions are counted apart.

    Args:
        dof_parent: parent of each degree of freedom, -1 for none, (n,).

    Returns:
        n; entries (n²), nonzeros and zeros of H, zeros_share; factorise, factorise_dense, factorise_ratio,
        divisions; solve, solve_dense, solve_ratio. A ratio is dense / tree, 1.0 where both are zero.
    """
    depth = dof_depths(dof_parent)
    n = len(depth)
    off_diagonal = int((depth - 1).sum())
    nonzeros = n + 2 * off_diagonal
    factorise = int((depth * (depth - 1) // 2).sum())
    factorise_dense = (n**3 - n) // 6
    solve, solve_dense = 2 * off_diagonal, n * n - n
    return {
        "n": n,
        "entries": n * n,
        "nonzeros": nonzeros,
        "zeros": n * n - nonzeros,
        "zeros_share": (n * n - nonzeros) / (n * n) if n else 0.0,
        "factorise": factorise,
        "factorise_dense": factorise_dense,
        "factorise_ratio": _ratio(factorise_dense, factorise),
        "divisions": off_diagonal,
        "solve": solve,
        "solve_dense": solve_dense,
        "solve_ratio": _ratio(solve_dense, solve),
    }


def _ratio(dense: int, sparse: int) -> float:
    """How many times fewer operations; infinite where the tree leaves nothing to do."""
    if sparse == 0:
        return 1.0 if dense == 0 else float("inf")
    return dense / sparse
