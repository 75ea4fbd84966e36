"""Inverse dynamics of a floating base, which no joint force moves.

    0     = I^c_1 a_1 + p^c_1                  the base accelerates so that the whole needs no force on it
    tau_i = S_i^T (I^c_i a_1 + p^c_i)          p^c from the motion relative to the base

Source: RBDA sections 9.3-9.5, table 9.6.
Differs: p^c_i is the force of the motion with a_1 = 0 and gravity as a_0 = -a_g, as in the RNEA, so that a_1
is the true acceleration; rotors add theirs.
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.composites import composite_inertias
from robokit.algorithms.rnea import rnea
from robokit.model.tree import Tree
from robokit.spatial import Motion
from robokit.spatial.linear import ldl, ldl_solve

BASE = 1  # the body of a floating base


def floating_base_inverse_dynamics(tree: Tree, q, qd, qdd) -> tuple[list, list]:
    """(a_1 in base coordinates, forces by joint) of joint accelerations; qdd of the base is not looked at."""
    X = tree.transforms(q)
    S = tree.joint[BASE].S
    still = [rates if i != BASE else [0.0] * len(rates) for i, rates in enumerate(qdd)]
    tau = rnea(tree, q, qd, still)
    (Ic,) = tree.lists(1)
    for i, composite in composite_inertias(tree, X, tree.I):
        Ic[i] = composite
    block = [S.T @ column for column in S.of(Ic[BASE])]
    base = ldl_solve(ldl(block), [-f for f in tau[BASE]])
    a = [Motion.zero(), S * base]
    for i in tree.outward():
        if i == BASE:
            tau[i] = [0.0] * len(base)
            continue
        a.append(X[i] @ a[tree.parent[i]])
        pushed = tree.joint[i].S.T @ (Ic[i] @ a[i])
        tau[i] = [t + x for t, x in zip(tau[i], pushed, strict=True)]
    return base, tau


def floating_base_forces(tree: Tree, q, qd, qdd) -> list:
    """The force on the base [n; f] that the motion needs from outside: tau_1 of the RNEA, in base axes."""
    return rnea(tree, q, qd, qdd)[BASE]
