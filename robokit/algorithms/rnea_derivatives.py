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
    held_composites,
    motions_back,
    numbered,
    square,
)
from robokit.model.tree import Tree
from robokit.spatial import Force


def rnea_derivatives(tree: Tree, q, qd, qdd, f_ext=None) -> tuple[list[list], list[list]]:
    """dtau/dq and dtau/dqd, nv x nv, as lists of rows; f_ext, in body coordinates, moves with the body."""
    return _derivatives(tree, MovingComposites(tree, q, qd, qdd, f_ext))


def rnea_derivatives_world(tree: Tree, q, qd, qdd, f_ext) -> tuple[list[list], list[list]]:
    """dtau/dq and dtau/dqd, nv x nv, as lists of rows; f_ext stays in the world while the bodies move.

    A small motion s of a body turns such a force, seen from the body, by -s x* f_ext.
    """
    moving = MovingComposites(tree, q, qd, qdd)
    dq, dv = _derivatives(tree, moving)
    to, held, S = moving.from_branch(), held_composites(tree, moving.X, f_ext), tree.lists(1)[0]
    for i in tree.outward():
        S[i] = motions_back(to[i], tree.joint[i].S.columns)
        turned = forces_back(to[i], [s.cross_force(held[i]) for s in tree.joint[i].S.columns])
        for j in tree.support[i]:
            for l, t in numbered(tree, j, S[j]):
                for k, f in numbered(tree, i, turned):
                    dq[k][l] = dq[k][l] - t.dot(f)
    return dq, dv


def _derivatives(tree: Tree, moving: MovingComposites) -> tuple[list[list], list[list]]:
    dq, dv = square(tree.nv), square(tree.nv)
    motions, to = tree.lists(1)[0], moving.from_branch()
    for i in tree.outward():
        columns, (by_q, by_v, U, W) = _columns(tree, moving, i)
        for k, s in numbered(tree, i, tree.joint[i].S.columns):
            for l, (f, g) in numbered(tree, i, zip(by_q, by_v, strict=True)):
                dq[k][l], dv[k][l] = s.dot(f), s.dot(g)
        motions[i] = [motions_back(to[i], x) for x in columns]
        forces = [forces_back(to[i], x) for x in (_force_turns(tree, moving, i, by_q), by_v, U, W)]
        for j in tree.support[i][:-1]:
            for l, (t, psi, psi2, both) in numbered(tree, j, zip(*motions[j], strict=True)):
                for k, (f, g, u, w) in numbered(tree, i, zip(*forces, strict=True)):
                    dq[l][k], dv[l][k] = t.dot(f), t.dot(g)
                    dq[k][l], dv[k][l] = psi.dot(w) + psi2.dot(u), t.dot(w) + both.dot(u)
    return dq, dv


def _columns(tree: Tree, moving: MovingComposites, i: int) -> tuple[tuple, tuple]:
    """s, Psi', Psi'', Psi' + s'; and the forces by q and by qd, I^c s, 2 B^cT s, in body coordinates."""
    Ic, Bc, columns = moving.Ic[i], moving.Bc[i], tree.joint[i].S.columns
    rate, psi, psi2 = moving.rates(i)
    both = [a + b for a, b in zip(psi, rate, strict=True)]
    by_q = [Bc @ (a * 2.0) + Ic @ b for a, b in zip(psi, psi2, strict=True)]
    by_v = [Bc @ (s * 2.0) + Ic @ b for s, b in zip(columns, both, strict=True)]
    W = [Bc.transpose_apply(s * 2.0) for s in columns]
    return (columns, psi, psi2, both), (by_q, by_v, tree.joint[i].S.of(Ic), W)


def _force_turns(tree: Tree, moving: MovingComposites, i: int, by_q: list[Force]) -> list[Force]:
    """The forces by q with those that the moved joint turns."""
    columns = tree.joint[i].S.columns
    return [f + s.cross_force(moving.fc[i]) for f, s in zip(by_q, columns, strict=True)]
