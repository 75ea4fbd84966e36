"""Derivatives of forward dynamics with respect to q, qd and tau.

    dqdd/dtau = H^-1        dqdd/dq = -H^-1 dID/dq        dqdd/dqd = -H^-1 dID/dqd

with the derivatives of inverse dynamics ID at the accelerations that tau gives. H^-1 is applied as M D^-1 M^T
(inverse_mass_matrix.py), in the sparsity of both sides. Turning a floating base turns gravity alone, so that
only the acceleration of the base itself changes: these columns are written down.

Source: J. Carpentier, N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018, section
III; S. Singh, R. P. Russell, P. M. Wensing 2022.
Differs: the product goes through the sparse factor of H.
Cost: O(n^2 d).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from robokit.algorithms.bias import bias_forces
from robokit.algorithms.coupling import reduced_force, reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.inverse_mass_matrix import inverse_factor, inverse_of_factors, paths
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.algorithms.rnea_derivatives import rnea_derivatives, rnea_derivatives_world
from robokit.model.tree import Tree
from robokit.spatial import Motion, Vector3
from robokit.spatial.scalars import is_zero, shared

LARGE = 200
"""Multiplications of a column from which on its code is written once for all columns like it."""

Matrices = tuple[list[list], list[list], list[list]]


def aba_derivatives(tree: Tree, q, qd, tau, f_ext=None) -> Matrices:
    """dqdd/dq, dqdd/dqd and dqdd/dtau, nv x nv, as lists of rows; f_ext moves with the body."""
    return _derivatives(tree, q, qd, tau, f_ext, rnea_derivatives, turns=True)


def aba_derivatives_world(tree: Tree, q, qd, tau, f_ext) -> Matrices:
    """The same for forces that stay as they are in the world while the bodies move."""
    return _derivatives(tree, q, qd, tau, f_ext, rnea_derivatives_world, turns=False)


def _derivatives(tree: Tree, q, qd, tau, f_ext, inverse: Callable, turns: bool) -> Matrices:
    coupling = tree.coupling
    parent, H = tree.dof_parent, crba(tree, q)
    if coupling is not None:
        parent, H = coupling.dof_parent, reduced_matrix(tree, H)
    L, D = ltdl(parent, H)
    C = chain(*bias_forces(tree, q, qd, f_ext))
    b = reduced_force(tree, [t - c for t, c in zip(chain(*tau), C, strict=True)])
    a = ltdl_solve(parent, L, D, b)

    dq, dv = inverse(tree, q, qd, tree.split_v(a if coupling is None else coupling.full_v(a)), f_ext)
    turned = {}
    if coupling is not None:
        dq, dv = reduced_matrix(tree, dq), reduced_matrix(tree, dv)
    elif turns:
        turned = _turned_bases(tree, q)
        for k in turned:
            for row in dq:
                row[k] = 0.0
    M, dinv = inverse_factor(parent, L), [1.0 / d for d in D]
    once = object()
    dq, dv = (_minus_product(parent, M, dinv, B, once) for B in (dq, dv))
    for k, column in turned.items():
        for i, x in column:
            dq[i][k] = x
    return dq, dv, inverse_of_factors(parent, M, dinv)


def _turned_bases(tree: Tree, q) -> dict[int, list]:
    """For each dof of the floating bases its column of dqdd/dq: places and values."""
    columns = {}
    for i in tree.children[0]:
        S = tree.joint[i].S
        if S.axes == (0, 1, 2, 3, 4, 5):
            a0 = tree.X(i, q[i]) @ Motion(Vector3.zero(), tree.a0)
            rows = range(tree.nv)[tree.v_slice[i]]
            for k, s in zip(rows, S.columns, strict=True):
                columns[k] = list(zip(rows, -a0.cross(s), strict=True))
    return columns


def _minus_product(parent: Sequence[int], M, dinv, B, once: object) -> list[list]:
    """-M D^-1 M^T B, column by column, where B is not zero.

    Columns with the same pattern take the same operations, ``once`` for both matrices.
    """
    n = len(parent)
    path = paths(parent)
    result = [[0.0] * n for _ in range(n)]
    for k in range(n):
        rows = [i for i in range(n) if not is_zero(B[i][k])]

        def text(*column, rows=rows):
            y = [0.0] * n
            for i, b in zip(rows, column, strict=True):
                for j in path[i]:
                    y[j] = y[j] + M[i][j] * b
            y = [-(x * d) for x, d in zip(y, dinv, strict=True)]
            found = [0.0] * n
            for i in range(n):
                for j in path[i]:
                    if not is_zero(y[j]):
                        found[i] = found[i] + M[i][j] * y[j]
            return found

        cost = sum(len(path[i]) for i in (*rows, *range(n)))
        column = [B[i][k] for i in rows]
        if column:
            found = shared((once, *rows), text, column, [True] * len(column), large=cost >= LARGE)
            for i in range(n):
                result[i][k] = found[i]
    return result
