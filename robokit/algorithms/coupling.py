"""Algorithms on a robot with coupled joints: v_full = G v.

    tau_r = G^T tau     Y_r = G^T Y     H_r = G^T H G     A_G,r = A_G G     H_r qdd = tau_r - G^T C

G is constant, so that the accelerations are G qdd and no velocity term appears. Forward dynamics cannot
use the articulated-body algorithm of the full tree, whose joints would move on their own: it factorises
H_r in the sparsity of its elimination tree.

Source: RBDA sections 3.3 and 6.4. G comes from ../model/tree.py.
Cost: O(n) for the projections of forces, O(n d^2) for forward dynamics.
"""

from __future__ import annotations

from itertools import chain

from robokit.algorithms.bias import bias_forces
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.model.tree import Tree


def reduced_force(tree: Tree, tau) -> list:
    """G^T tau, (nv,), of forces by full dof; tau itself without a coupling."""
    if tree.coupling is None:
        return list(tau)
    out = [0.0] * tree.coupling.nv
    for t, (k, m) in zip(tau, tree.coupling.v_from, strict=True):
        if k >= 0:
            out[k] = out[k] + t * m
    return out


def reduced_columns(tree: Tree, rows) -> list[list]:
    """A G of a matrix with a column for each full dof, as a list of rows."""
    return [reduced_force(tree, row) for row in rows]


def reduced_rows(tree: Tree, rows) -> list[list]:
    """G^T Y of a matrix with a row for each full dof, as a list of rows."""
    columns = [reduced_force(tree, column) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def reduced_matrix(tree: Tree, H) -> list[list]:
    """G^T H G, as a list of rows."""
    half = reduced_columns(tree, H)
    return [
        list(row)
        for row in zip(*(reduced_force(tree, column) for column in zip(*half, strict=True)), strict=True)
    ]


def coupled_solve(tree: Tree, H, b) -> list:
    """y by full joint with y = G y_r and G^T H G y_r = G^T b, for H and b of the full tree."""
    coupling = tree.coupling
    if coupling is None:
        raise ValueError("the tree has no coupled joints; forward_dynamics.py and aba.py serve it")
    L, D = ltdl(coupling.dof_parent, reduced_matrix(tree, H))
    return tree.split_v(coupling.full_v(ltdl_solve(coupling.dof_parent, L, D, reduced_force(tree, b))))


def coupled_forward_dynamics(tree: Tree, q, qd, tau, f_ext=None) -> list:
    """Accelerations of all joints by joint, [rad/s^2 | m/s^2]; q, qd and tau by full joint."""
    C = chain(*bias_forces(tree, q, qd, f_ext))
    b = [t - c for t, c in zip(chain(*tau), C, strict=True)]
    return coupled_solve(tree, crba(tree, q), b)
