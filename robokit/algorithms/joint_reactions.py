"""The wrench that each joint passes on to its body, and the motion that it belongs to.

    f_i = I_i a_i + v_i x* I_i v_i - f_ext_i + sum of ^iX_j^* f_j over the children j

It is the recursive Newton-Euler algorithm stopped before its last line, tau_i = S_i^T f_i: all six numbers
are what the parent exerts on the child through the joint, drive and bearing together.

Source: RBDA table 5.1 and section 5.3 (f_i, the force transmitted across joint i).
Differs: gravity enters as a_0 = -a_g; rotors take no part, their inertia acts about the joint's axis alone.
Cost: O(n).
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Vector3


def joint_reactions(tree: Tree, q, qd, qdd, f_ext=None) -> tuple[list[Force], list[Motion], list[Motion]]:
    """(f, v, a) of the bodies 0..N, in body coordinates; gravity is part of a.

    f of body 0 is the sum of what its joints carry. f_ext: one Force a body in body coordinates, or None.
    """
    X, v, a, f = tree.lists(4)
    v[0], f[0] = Motion.zero(), Force.zero()
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
        f[tree.parent[i]] = f[tree.parent[i]] + X[i].T @ f[i]
    return f, v, a
