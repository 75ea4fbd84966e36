"""Forward dynamics by the articulated-body algorithm, in body coordinates.

    f = I^A a + p^A: the force that moves body i, with all its subtree hanging on it.

Source: RBDA table 7.1; seeds 002. The slides derive it for an unbranched chain at one coordinate
origin; branches and body coordinates put the transforms and the sums over children back.
Differs: the slides' last pass prints (u_i + h_i^T a) / d_i; their own derivation gives the minus.
Their u absorbs h . c, here (as in RBDA) c is added to the acceleration first.
Cost: O(n).
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.linear import ldl, ldl_solve


def aba(tree: Tree, q, qd, tau, f_ext=None, factor: list[list] | None = None) -> list:
    """Joint accelerations by joint, [rad/s^2 | m/s^2]; f_ext: one Force a body in body coordinates.

    factor: lists that X, U and D are left in, if they are of use (sparse_factors.py).
    """
    X, U, D, v, c, IA, pA, u, a, qdd = *(factor or tree.lists(3)), *tree.lists(7)
    v[0] = Motion.zero()
    a[0] = Motion(Vector3.zero(), tree.a0)

    for i in tree.outward():
        S, I = tree.joint[i].S, tree.I[i]
        X[i] = tree.X(i, q[i])
        vJ = S * qd[i]
        v[i] = X[i] @ v[tree.parent[i]] + vJ
        c[i] = v[i].cross(vJ)
        IA[i] = I.articulated()
        pA[i] = v[i].cross_force(I @ v[i])
        if f_ext is not None:
            pA[i] = pA[i] - f_ext[i]

    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S
        U[i] = S.of(IA[i])
        rows = [S.T @ column for column in U[i]]
        rotors = add_rotors(tree, i, rows)
        D[i] = ldl(rows)
        u[i] = [t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]
        if p != 0:
            Ia = without_joint(IA[i], U[i], D[i], () if rotors else S.axes)
            pa = pA[i] + Ia @ c[i] + combine(U[i], ldl_solve(D[i], u[i]))
            IA[p] = IA[p] + X[i].T @ Ia @ X[i]
            pA[p] = pA[p] + X[i].T @ pa

    for i in tree.outward():
        S = tree.joint[i].S
        a[i] = X[i] @ a[tree.parent[i]] + c[i]
        qdd[i] = ldl_solve(D[i], [ui - a[i].dot(column) for ui, column in zip(u[i], U[i], strict=True)])
        a[i] = a[i] + S * qdd[i]
    return qdd


def add_rotors(tree: Tree, i: int, block: list[list]) -> bool:
    """Add the inertias of joint i's rotors to the diagonal of its block; whether there are any.

    I^a S = 0 holds only where there are none.
    """
    rotors = tree.armature[i] if tree.armature else ()
    for k, rotor in enumerate(rotors):
        block[k][k] = block[k][k] + rotor
    return any(rotors)


def rotor_forces(tree: Tree, i: int, tau: list, qdd) -> list:
    """The forces of joint i with what accelerates its rotors: tau_i + rotor * qdd_i."""
    rotors = tree.armature[i] if tree.armature else ()
    return [t + r * x for t, r, x in zip(tau, rotors, qdd, strict=True)] if any(rotors) else tau


def without_joint(IA, U, D, axes: tuple[int, ...] = ()):
    """I^A - U D^-1 U^T; D as ``ldl`` factorised it; axes: rows and columns that are exactly 0 then."""
    IA, U, k = IA.without(axes), [column.without(axes) for column in U], len(U)
    for m in range(k):
        column = ldl_solve(D, [1.0 if j == m else 0.0 for j in range(k)])
        IA = IA.minus_outer(U[m], combine(U, column))
    return IA


def combine(U: list[Force], x: list) -> Force:
    """U x."""
    total = U[0] * x[0]
    for column, value in zip(U[1:], x[1:], strict=True):
        total = total + column * value
    return total
