"""Derivatives of inverse dynamics with respect to q and qd; that with respect to qdd is H.

For a column s of S_i and a column t of S_j, j a joint between i and the reference, with the composites of i:

    dtau_t/dq_s  = t . (2 B^c Psi'_s + I^c Psi''_s + s x* f^c)
    dtau_s/dq_t  = s . (2 B^c Psi'_t + I^c Psi''_t)
    dtau_t/dqd_s = t . (2 B^c s + I^c (Psi'_s + s'))
    dtau_s/dqd_t = s . (2 B^c t + I^c (Psi'_t + t'))

The term s x* f^c is missing where j = i. All other entries are 0. Column k of the first matrix is the change
along integrate(q, e_k), for quaternions as for angles.

Source: S. Singh, R. P. Russell, P. M. Wensing, "Efficient analytical derivatives of rigid-body dynamics
using spatial vector algebra", 2022, algorithm 1 (IDSVA).
Differs: coordinates as in moving_composites.py; external forces, held fixed in the body or in the world.
Cost: O(n d).
"""

from __future__ import annotations

from robokit.algorithms.moving_composites import (
    MovingComposites,
    forces_back,
    motions_back,
    numbered,
    square,
)
from robokit.model.tree import Tree


def rnea_derivatives(tree: Tree, q, qd, qdd, f_ext=None) -> tuple[list[list], list[list]]:
    """dtau/dq and dtau/dqd, nv x nv, as lists of rows; f_ext, in body coordinates, moves with the body."""
    return _derivatives(tree, MovingComposites(tree, q, qd, qdd, f_ext))


def rnea_derivatives_world(tree: Tree, q, qd, qdd, f_ext) -> tuple[list[list], list[list]]:
    """The same for forces that stay as they are in the world while the bodies move.

    A small motion s of a body turns such a force, seen from the body, by -s x* f_ext.
    """
    moving = MovingComposites(tree, q, qd, qdd)
    held = list(f_ext)
    for i in tree.inward():
        p = tree.parent[i]
        if p != 0:
            held[p] = held[p] + moving.X[i].T @ held[i]
    dq, dv = _derivatives(tree, moving)
    to, S = moving.from_branch(), tree.lists(1)[0]
    for i in tree.outward():
        columns = tree.joint[i].S.columns
        turned = [s.cross_force(held[i]) for s in columns]
        for k, s in numbered(tree, i, columns):
            for l, f in numbered(tree, i, turned):
                dq[k][l] = dq[k][l] + s.dot(f)
        S[i], turned = motions_back(to[i], columns), forces_back(to[i], turned)
        for j in tree.support[i][:-1]:
            for t, x in numbered(tree, j, S[j]):
                for s, f in numbered(tree, i, turned):
                    dq[s][t] = dq[s][t] - x.dot(f)
    return dq, dv


def _derivatives(tree: Tree, moving: MovingComposites) -> tuple[list[list], list[list]]:
    dq, dv = square(tree.nv), square(tree.nv)
    S, Psi, Psi2, both = tree.lists(4)
    to = moving.from_branch()

    for i in tree.outward():
        Ic, Bc, columns = moving.Ic[i], moving.Bc[i], tree.joint[i].S.columns
        rate, Psi[i], Psi2[i] = moving.rates(i)
        both[i] = [a + b for a, b in zip(Psi[i], rate, strict=True)]
        by_q = [Bc @ (a * 2.0) + Ic @ b for a, b in zip(Psi[i], Psi2[i], strict=True)]
        by_v = [Bc @ (s * 2.0) + Ic @ b for s, b in zip(columns, both[i], strict=True)]
        for k, s in numbered(tree, i, columns):
            for l, (f, g) in numbered(tree, i, zip(by_q, by_v, strict=True)):
                dq[k][l], dv[k][l] = s.dot(f), s.dot(g)

        by_q = forces_back(
            to[i], [f + s.cross_force(moving.fc[i]) for f, s in zip(by_q, columns, strict=True)]
        )
        by_v = forces_back(to[i], by_v)
        U = forces_back(to[i], tree.joint[i].S.of(Ic))
        W = forces_back(to[i], [Bc.transpose_apply(s * 2.0) for s in columns])
        S[i], Psi[i], Psi2[i], both[i] = (motions_back(to[i], x) for x in (columns, Psi[i], Psi2[i], both[i]))
        for j in tree.support[i][:-1]:
            for l, (t, psi, psi2, b) in numbered(tree, j, zip(S[j], Psi[j], Psi2[j], both[j], strict=True)):
                for k, (f, g, u, w) in numbered(tree, i, zip(by_q, by_v, U, W, strict=True)):
                    dq[l][k], dv[l][k] = t.dot(f), t.dot(g)
                    dq[k][l], dv[k][l] = psi.dot(w) + psi2.dot(u), t.dot(w) + b.dot(u)
    return dq, dv
