"""Centroidal momentum of a floating robot read off H and C, without visiting the links.

    I^c_b = S_b H S_b^T   gives M and p_G in the base         (eq. 23)
    A_G   = ^bX_G^T S_b H                                     (eq. 25)
    Ad_G qd = ^bX_G^T S_b C qd                                (eq. 26)

Source: dynamics notes eq. 20-26.
Differs: S_b H is H's base rows, momentum in base coordinates at the base's origin; taking it to G in
world axes needs R_b and the base-frame p_G together; C is the gravity-free one.
Cost: O(n) on top of H and C.
"""

from __future__ import annotations

from itertools import chain

from robokit.algorithms.bias import bias_forces
from robokit.algorithms.crba import crba
from robokit.model.tree import Tree
from robokit.spatial import Force, Matrix3, Vector3


def centroidal_momentum_matrix_from_h(tree: Tree, q) -> list[list]:
    """A_G, 6 x nv, rows [angular; linear] in world axes about G; body 1 must be the floating base."""
    H = crba(tree, q)
    R, p_G = _base_rotation(tree, q), _com_in_base(H)
    columns = [_to_G(R, p_G, [H[k][j] for k in range(6)]) for j in range(tree.nv)]
    return [list(row) for row in zip(*columns, strict=True)]


def centroidal_momentum_bias_from_h(tree: Tree, q, qd) -> Force:
    """Ad_G qd [N m; N]; body 1 must be the floating base; ``tree`` must be free of gravity."""
    C = list(chain(*bias_forces(tree, q, qd)))
    return _to_G(_base_rotation(tree, q), _com_in_base(crba(tree, q)), C[:6])


def _base_rotation(tree: Tree, q) -> Matrix3:
    joint = tree.joint[1]
    if joint.kind.name != "floating":
        raise ValueError("body 1 must be a floating base; centroidal.py serves every tree")
    return tree.X(1, q[1]).E.T


def _com_in_base(H) -> Vector3:
    """p_G from the block M p_G x of the base's composite inertia (eq. 23)."""
    k = 1.0 / H[3][3]
    return Vector3(H[2][4] * k, H[0][5] * k, H[1][3] * k)


def _to_G(R: Matrix3, p_G: Vector3, rows) -> Force:
    """^bX_G^T of one column (eq. 24): shift to G in base axes, then turn to world axes."""
    k, l = Vector3(*rows[:3]), Vector3(*rows[3:])
    return Force(R @ (k - p_G.cross(l)), R @ l)
