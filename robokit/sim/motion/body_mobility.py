"""How far joints give way to a push in one configuration: all of them in one walk over the tree.

Phi_i maps a force on body i to its velocity, both in body coordinates, (H^-1 seen at the body). With the
articulated inertias of the inward walk, U_i = I^A_i S_i and D_i = S_i^T U_i, it follows outward:

    Phi_a = X Phi_parent X^T                            what the body would have without a joint of its own
    Phi_i = P Phi_a P^T + S D^-1 S^T,  P = 1 - S D^-1 U^T
    (H^-1)_ii = D^-1 + w^T Phi_a w,    w = U D^-1

Source: the recursion of inverse operational-space inertias, K. Chang and O. Khatib (2000), with the
articulated bodies of RBDA chapter 7.
Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.algorithms.aba import combine
from robokit.sim.motion.implicit_sweep import ImplicitSweep
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.linear import ldl_solve
from robokit.spatial.scalars import Scalar, is_zero

Columns = Sequence[Motion]
"""Phi: the velocities by the six unit forces, moments first."""


def unit_forces() -> list[Force]:
    """Three unit moments and three unit forces."""
    axes = [Vector3(*(1.0 if k == m else 0.0 for k in range(3))) for m in range(3)]
    return [*(Force(e, Vector3.zero()) for e in axes), *(Force(Vector3.zero(), e) for e in axes)]


def velocity(Phi: Columns, f: Force) -> Motion:
    """Phi f."""
    total = Motion.zero()
    for column, x in zip(Phi, f, strict=False):
        if not is_zero(x):
            total = total + column * x
    return total


def joint_mobilities(sweep: ImplicitSweep) -> list[list[Scalar]]:
    """The diagonal of H^-1 by joint and dof of a tree without coupled joints, from its factorised matrix."""
    tree, units = sweep.tree, unit_forces()
    bodies: list[Columns] = [[]]
    joints: list[list[Scalar]] = [[]]
    for i in tree.outward():
        S, U, D, X = tree.joint[i].S, sweep.U[i], sweep.D[i], sweep.X[i]  # type: ignore[union-attr]
        assert X is not None
        parent = bodies[tree.parent[i]]
        above = [X @ velocity(parent, X.T @ f) for f in units] if parent else []
        own: list[Scalar] = []
        for k in range(len(U)):
            x = ldl_solve(D, [1.0 if m == k else 0.0 for m in range(len(U))])
            w = combine(U, x)
            own.append(x[k] + velocity(above, w).dot(w))
        joints.append(own)
        columns = []
        for f in units:
            x = ldl_solve(D, list(S.T @ f))
            a = velocity(above, f - combine(U, x))
            y = [s - t for s, t in zip(x, ldl_solve(D, [a.dot(column) for column in U]), strict=True)]
            columns.append(a + S * y)
        bodies.append(columns)
    return joints
