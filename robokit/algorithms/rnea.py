"""Inverse dynamics by the recursive Newton-Euler algorithm, in body coordinates.

    tau = ID(q, qd, qdd, f_ext) = H(q) qdd + C(q, qd, f_ext)

Source: RBDA table 5.1; seeds 001; dynamics notes eq. 2-10.
Differs: gravity enters as a_0 = -a_g (the sources write a_0 = g); rotors add their inertia (RBDA 9.6).
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.aba import rotor_forces
from robokit.model.tree import Tree
from robokit.spatial import Motion, Vector3


def rnea(tree: Tree, q, qd, qdd, f_ext=None) -> list:
    """Joint forces by joint, [N m | N]; f_ext: one Force a body in body coordinates, or None."""
    X, v, a, f, tau = tree.lists(5)
    v[0] = Motion.zero()
    a[0] = Motion(Vector3.zero(), tree.a0)

    for i in tree.outward():
        p, S, I = tree.parent[i], tree.joint[i].S, tree.I[i]
        X[i] = tree.X(i, q[i])
        vJ = S * qd[i]
        v[i] = X[i] @ v[p] + vJ
        a[i] = X[i] @ a[p] + S * qdd[i] + v[i].cross(vJ)
        f[i] = I @ a[i] + v[i].cross_force(I @ v[i])
        if f_ext is not None:
            f[i] = f[i] - f_ext[i]

    for i in tree.inward():
        p = tree.parent[i]
        tau[i] = rotor_forces(tree, i, tree.joint[i].S.T @ f[i], qdd[i])
        if p != 0:
            f[p] = f[p] + X[i].T @ f[i]
    return tau
