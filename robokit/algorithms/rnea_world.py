"""Inverse dynamics by the recursive Newton-Euler algorithm, all at the world origin O in world axes.

    xi_i  = xi_lambda + s_i qd                       spatial velocity
    xid_i = xid_lambda + s_i qdd + sd_i qd           spatial acceleration, sd_i = xi_i x s_i
    fa_i  = I_i xid_i + xi_i x* I_i xi_i - fe_i + sum of fa_j over the children j
    tau_i = s_i^T fa_i

Source: seeds 003, "4 steps Newton-Euler algorithm".
Differs: angular part first (the slides write linear first); fa over children with a plus, as in the
slides' summary (one slide prints a minus); xid_0 = -a_g.
Cost: O(n), about twice the body-coordinate form: an independent check of it.
"""

from __future__ import annotations

from robokit.algorithms.aba import rotor_forces
from robokit.algorithms.kinematics import forward_kinematics
from robokit.model.tree import Tree
from robokit.spatial import Motion, Vector3


def rnea_world(tree: Tree, q, qd, qdd, f_ext=None) -> list:
    """Joint forces by joint, [N m | N]; f_ext: one Force a body in body coordinates, or None."""
    X0 = forward_kinematics(tree, q)
    xi, xid, fa, s, tau = tree.lists(5)
    xi[0] = Motion.zero()
    xid[0] = Motion(Vector3.zero(), tree.a0)

    for i in tree.outward():
        p = tree.parent[i]
        to_world = X0[i].inverse()
        s[i] = [to_world @ column for column in tree.joint[i].S.columns]
        sqd, sqdd = Motion.zero(), Motion.zero()
        for column, rate, acceleration in zip(s[i], qd[i], qdd[i], strict=True):
            sqd, sqdd = sqd + column * rate, sqdd + column * acceleration
        xi[i] = xi[p] + sqd
        xid[i] = xid[p] + sqdd + xi[i].cross(sqd)
        I = X0[i].T @ tree.I[i] @ X0[i]
        fa[i] = I @ xid[i] + xi[i].cross_force(I @ xi[i])
        if f_ext is not None:
            fa[i] = fa[i] - X0[i].T @ f_ext[i]

    for i in tree.inward():
        p = tree.parent[i]
        tau[i] = rotor_forces(tree, i, [column.dot(fa[i]) for column in s[i]], qdd[i])
        if p != 0:
            fa[p] = fa[p] + fa[i]
    return tau
