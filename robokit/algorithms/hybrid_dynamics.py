"""Hybrid dynamics: forces and accelerations, where some joints have the one given and some the other.

    free:        tau_i given    as in the articulated-body algorithm
    prescribed:  qdd_i given    I^A_lambda += I^A_i    p^A_lambda += p^A_i + I^A_i (c_i + S_i qdd_i)

A prescribed joint hands its whole articulated inertia on: its motion is no answer to any force.

Source: RBDA sections 9.1, 9.2 and table 9.2.
Differs: rotors add their inertia times qdd to tau; joints that
follow others break the recursion, so their robots take H_ff qdd_f = tau_f - ID(q, qd, qdd with qdd_f = 0)_f,
in the sparsity of the branches (RBDA 9.1, 6.5).
Cost: O(n); O(n d^2) with joints that follow others.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from robokit.algorithms.aba import add_rotors, combine, rotor_forces, without_joint
from robokit.algorithms.coupling import reduced_force, reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.algorithms.rnea import rnea
from robokit.model.tree import Tree
from robokit.spatial import Motion, Vector3
from robokit.spatial.linear import ldl, ldl_solve


def hybrid_dynamics(
    tree: Tree, q, qd, tau, qdd, prescribed: Collection[int], f_ext=None
) -> tuple[list, list]:
    """(tau, qdd) by joint [N m | N], [rad/s^2 | m/s^2], complete; prescribed: the joints with given qdd.

    f_ext: forces on the bodies 0..N from outside, in body coordinates.
    """
    X, v, c, IA, pA, U, D, u, a = tree.lists(9)
    tau, qdd = list(tau), list(qdd)
    v[0] = Motion.zero()
    a[0] = Motion(Vector3.zero(), tree.a0)

    for i in tree.outward():
        S, I = tree.joint[i].S, tree.I[i]
        X[i] = tree.X(i, q[i])
        vJ = S * qd[i]
        v[i] = X[i] @ v[tree.parent[i]] + vJ
        c[i] = v[i].cross(vJ)
        if i in prescribed:
            c[i] = c[i] + S * qdd[i]
        IA[i] = I.articulated()
        pA[i] = v[i].cross_force(I @ v[i])
        if f_ext is not None:
            pA[i] = pA[i] - f_ext[i]

    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S
        if i in prescribed:
            Ia, pa = IA[i], pA[i] + IA[i] @ c[i]
        else:
            U[i] = S.of(IA[i])
            rows = [S.T @ column for column in U[i]]
            rotors = add_rotors(tree, i, rows)
            D[i] = ldl(rows)
            u[i] = [t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]
            if p != 0:
                Ia = without_joint(IA[i], U[i], D[i], () if rotors else S.axes)
                pa = pA[i] + Ia @ c[i] + combine(U[i], ldl_solve(D[i], u[i]))
        if p != 0:
            IA[p] = IA[p] + X[i].T @ Ia @ X[i]
            pA[p] = pA[p] + X[i].T @ pa

    for i in tree.outward():
        S = tree.joint[i].S
        a[i] = X[i] @ a[tree.parent[i]] + c[i]
        if i in prescribed:
            tau[i] = rotor_forces(tree, i, S.T @ (IA[i] @ a[i] + pA[i]), qdd[i])
        else:
            qdd[i] = ldl_solve(D[i], [ui - a[i].dot(column) for ui, column in zip(u[i], U[i], strict=True)])
            a[i] = a[i] + S * qdd[i]
    return tau, qdd


def coupled_hybrid_dynamics(
    tree: Tree, q, qd, tau, qdd, prescribed: Collection[int], f_ext=None
) -> tuple[list, list]:
    """(tau, qdd) of a robot with coupled joints, by full joint, complete and consistent with each other."""
    coupling = tree.coupling
    if coupling is None:
        raise ValueError("the tree has no coupled joints; hybrid_dynamics serves it")
    own = {at: k for k, at in enumerate(coupling.own_v)}
    given = {own[at] for i in prescribed for at in range(tree.nv)[tree.v_slice[i]]}
    free = [k for k in range(coupling.nv) if k not in given]
    known = [x if at in own and own[at] in given else 0.0 for at, x in enumerate(chain(*qdd))]
    y = [known[at] for at in coupling.own_v]
    C = reduced_force(tree, chain(*rnea(tree, q, qd, tree.split_v(coupling.full_v(y)), f_ext)))
    H = reduced_matrix(tree, crba(tree, q))
    parent = contracted(coupling.dof_parent, free)
    L, D = ltdl(parent, [[H[i][j] for j in free] for i in free])
    b = reduced_force(tree, chain(*tau))
    for k, x in zip(free, ltdl_solve(parent, L, D, [b[k] - C[k] for k in free]), strict=True):
        y[k] = x
    full = tree.split_v(coupling.full_v(y))
    forces = reduced_force(tree, chain(*rnea(tree, q, qd, full, f_ext)))
    complete = [forces[k] if k in given else b[k] for k in range(coupling.nv)]
    return tree.split_v(coupling.force_at_own(complete)), full


def contracted(parent, kept) -> list[int]:
    """The tree of the nodes that are kept: the parent of each is its nearest kept ancestor, -1 for none."""
    number = {k: n for n, k in enumerate(kept)}
    found = []
    for k in kept:
        above = parent[k]
        while above >= 0 and above not in number:
            above = parent[above]
        found.append(number.get(above, -1))
    return found
