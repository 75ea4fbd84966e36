"""The Coriolis matrix C(q, qd): C qd is the bias without gravity, and dH/dt - 2 C is skew-symmetric.

For a column s of S_i and a column t of S_j, j a joint between i and the reference, with the composites of i:

    C_ts = t . (B^c s + I^c s')        C_st = s . (B^c t + I^c t')

All other entries are 0. Many matrices have these properties; where the velocities are the rates of the
coordinates, this one is made of Christoffel's symbols.

Source: S. Echeandia, P. M. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel
symbols for rigid-body systems", 2021, algorithm 1.
Differs: coordinates as in moving_composites.py.
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


def coriolis_matrix(tree: Tree, q, qd) -> list[list]:
    """C, nv x nv, as a list of rows."""
    moving = MovingComposites(tree, q, qd, tree.split_v([0.0] * tree.nv))
    C = square(tree.nv)
    S, rate = tree.lists(2)
    to = moving.from_branch()

    for i in tree.outward():
        Ic, Bc, columns = moving.Ic[i], moving.Bc[i], tree.joint[i].S.columns
        rate[i], _, _ = moving.rates(i)
        F = [Bc @ s + Ic @ r for s, r in zip(columns, rate[i], strict=True)]
        for k, s in numbered(tree, i, columns):
            for l, f in numbered(tree, i, F):
                C[k][l] = s.dot(f)

        F = forces_back(to[i], F)
        U = forces_back(to[i], tree.joint[i].S.of(Ic))
        W = forces_back(to[i], [Bc.transpose_apply(s) for s in columns])
        S[i], rate[i] = motions_back(to[i], columns), motions_back(to[i], rate[i])
        for j in tree.support[i][:-1]:
            for l, (t, r) in numbered(tree, j, zip(S[j], rate[j], strict=True)):
                for k, (f, u, w) in numbered(tree, i, zip(F, U, W, strict=True)):
                    C[l][k], C[k][l] = t.dot(f), t.dot(w) + r.dot(u)
    return C
