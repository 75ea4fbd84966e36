"""Forward dynamics in three steps: C by the RNEA, H by the CRBA, a sparse solve of H qdd = tau - C.

Source: seeds 000, "a 3-step process"; RBDA section 6.1.
Cost: O(n d^2).
"""

from __future__ import annotations

from itertools import chain

from robokit.algorithms.bias import bias_forces
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.model.tree import Tree


def forward_dynamics(tree: Tree, q, qd, tau, f_ext=None) -> list:
    """Joint accelerations by joint, [rad/s^2 | m/s^2]."""
    C = chain(*bias_forces(tree, q, qd, f_ext))
    H = crba(tree, q)
    L, D = ltdl(tree.dof_parent, H)
    rhs = [t - c for t, c in zip(chain(*tau), C, strict=True)]
    return tree.split_v(ltdl_solve(tree.dof_parent, L, D, rhs))
