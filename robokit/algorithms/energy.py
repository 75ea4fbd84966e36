"""Kinetic and potential energy.

    T = 1/2 sum v_i^T I_i v_i        V = -a_g . M p_G

Source: CRBA slides (seeds 000), the sum of the bodies' kinetic energies.
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.center_of_mass import composite_moment
from robokit.model.tree import Tree
from robokit.spatial import Motion
from robokit.spatial.scalars import added, is_zero


def kinetic_energy(tree: Tree, q, qd):
    """T [J]."""
    v = [Motion.zero()]
    T = 0.0
    for i in tree.outward():
        v.append(tree.X(i, q[i]) @ v[tree.parent[i]] + tree.joint[i].S * qd[i])
        T = T + 0.5 * v[i].dot(tree.I[i] @ v[i])
    return T + rotor_energy(tree, qd)


def rotor_energy(tree: Tree, qd):
    """Kinetic energy of the joints' rotors [J]."""
    squares = [
        a * s * s
        for row, rates in zip(tree.armature, qd, strict=False)
        for a, s in zip(row, rates, strict=True)
        if not is_zero(a)
    ]
    return 0.5 * added(squares, 0.0)


def potential_energy(tree: Tree, q):
    """V [J]: zero where the centre of mass is at the world origin's height."""
    _, h = composite_moment(tree, tree.transforms(q))
    return tree.a0.dot(h)
