"""Bias forces C and gravity forces G: inverse dynamics at zero acceleration, and at rest.

    C = ID(q, qd, 0, f_ext)     G = ID(q, 0, 0)

Source: CRBA slides, step 1 (seeds 000); dynamics notes eq. 13, 14. Here C contains gravity, as in the
slides; the notes' C qd is C - G.
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.rnea import rnea
from robokit.model.tree import Tree


def _zeros(tree: Tree) -> list:
    return tree.split_v([0.0] * tree.nv)


def bias_forces(tree: Tree, q, qd, f_ext=None) -> list:
    """C by joint, [N m | N]: the joint forces that give zero acceleration."""
    return rnea(tree, q, qd, _zeros(tree), f_ext)


def gravity_forces(tree: Tree, q) -> list:
    """G by joint, [N m | N]: the joint forces that hold the robot at rest."""
    return rnea(tree, q, _zeros(tree), _zeros(tree))
