"""Derivatives of the centroidal momentum h_G and of its rate with respect to q, qd and qdd.

For a column s of joint i, with the composites of i in a world without gravity:

    dh/dq_s  = I^c Psi' + s x* h^c                       dh/dqd_s = I^c s
    dh'/dq_s = 2 B^c Psi' + I^c Psi'' + s x* f^c         dh'/dqd_s = 2 B^c s + I^c (Psi' + s')
    dh'/dqdd_s = I^c s

about the origin; taken to G, the first and third lose dp_G x l and dp_G x f, where dp_G is the linear part of
I^c s over the mass. The last is A_G. Rows are [angular; linear] in world axes about G.

Source: J. Carpentier, N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018, for the
columns (those of inverse dynamics); dynamics notes eq. 20-22 for G.
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.moving_composites import MovingComposites
from robokit.model.tree import Tree
from robokit.spatial import Force, Matrix3, Transform, Vector3


def centroidal_momentum_derivatives(tree: Tree, q, qd, qdd) -> tuple[list[list], ...]:
    """dh/dq, dh'/dq, dh'/dqd and dh'/dqdd, 6 x nv each, as lists of rows."""
    moving = MovingComposites(tree, q, qd, qdd, gravity=False, momenta=True)
    X, h = moving.X, moving.hc
    l, f = Vector3.zero(), Vector3.zero()
    for i in tree.children[0]:
        l, f = l + X[i].E.transpose_apply(h[i].lin), f + X[i].E.transpose_apply(moving.fc[i].lin)

    m, moment = 0.0, Vector3.zero()
    for i in reversed(tree.children[0]):
        I = moving.Ic[i]
        m, moment = m + I.m, moment + (X[i].E.transpose_apply(I.h) + X[i].r * I.m)
    XG = [Transform(Matrix3.identity(), moment * (-1.0 / m))]
    columns: list[list[Force]] = [[], [], [], []]
    for i in tree.outward():
        Ic, Bc = moving.Ic[i], moving.Bc[i]
        XG.append(X[i] @ XG[tree.parent[i]])
        for s, own, psi, psi2 in zip(tree.joint[i].S.columns, *moving.rates(i), strict=True):
            AG = XG[i].T @ (Ic @ s)
            dp = AG.lin * (1.0 / m)
            dh = XG[i].T @ (Ic @ psi + s.cross_force(h[i]))
            rate = XG[i].T @ (Bc @ (psi * 2.0) + Ic @ psi2 + s.cross_force(moving.fc[i]))
            columns[0].append(Force(dh.ang - dp.cross(l), dh.lin))
            columns[1].append(Force(rate.ang - dp.cross(f), rate.lin))
            columns[2].append(XG[i].T @ (Bc @ (s * 2.0) + Ic @ (psi + own)))
            columns[3].append(AG)
    return tuple([list(row) for row in zip(*c, strict=True)] for c in columns)
