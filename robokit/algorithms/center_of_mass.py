"""Centre of mass: mass-weighted first moments, gathered from the leaves to the world.

    h_lambda += E^T h_i + m_i r

Source: RBDA section 2.13 (first moment of a composite); dynamics notes eq. 20 for its use.
Cost: O(n).
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Vector3


def center_of_mass(tree: Tree, q) -> Vector3:
    """p_G of the moving bodies 1..N in the world [m]."""
    m, h = composite_moment(tree, tree.transforms(q))
    return h * (1.0 / m)


def composite_moment(tree: Tree, X) -> tuple:
    """(M, M p_G) of the moving bodies, from their transforms ^iX_lambda."""
    m, h = composite_moments(tree, X)
    return m[0], h[0]


def composite_moments(tree: Tree, X) -> tuple[list, list]:
    """(m_i, h_i) of what joint i carries, in body-i coordinates; of all moving bodies in the world at 0."""
    m = [0.0, *(I.m for I in tree.I[1:])]
    h = [Vector3.zero(), *(I.h for I in tree.I[1:])]
    for i in tree.inward():
        p = tree.parent[i]
        m[p] = m[p] + m[i]
        h[p] = h[p] + (X[i].E.transpose_apply(h[i]) + X[i].r * m[i])
    return m, h
