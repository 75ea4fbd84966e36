"""Regressor of the momentum about the world origin: h_O = M(q, qd) pi, in world axes.

    columns of body i: 0X_i* K_i      I_i v_i = K_i pi_i

About a fixed point the momentum is linear in the parameters. About the centre of mass it is not, because
that point depends on them too: h_G is h_O taken about p_G.

Source: I_i v_i (RBDA eq. 2.62) written as linear in the ten parameters, as in regressor.py.
Cost: O(n).
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Transform, Vector3


def momentum_regressor(tree: Tree, q, qd) -> list[list]:
    """6 x 10 N, as a list of rows [angular; linear]."""
    v, X0, columns = [Motion.zero()], [Transform.identity()], []
    for i in tree.outward():
        p, X = tree.parent[i], tree.X(i, q[i])
        v.append(X @ v[p] + tree.joint[i].S * qd[i])
        X0.append(X @ X0[p])
        columns += [X0[i].T @ column for column in body_momentum(v[i])]
    return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in range(6)]


def body_momentum(v: Motion) -> list[Force]:
    """K: the momentum of a body of velocity v for a unit of each of its ten parameters."""
    w, u, o = v.ang, v.lin, Vector3.zero()
    axes = Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0)
    turns = (
        Vector3(w.x, 0.0, 0.0),
        Vector3(w.y, w.x, 0.0),
        Vector3(0.0, w.y, 0.0),
        Vector3(w.z, 0.0, w.x),
        Vector3(0.0, w.z, w.y),
        Vector3(0.0, 0.0, w.z),
    )
    return [Force(o, u), *(Force(e.cross(u), w.cross(e)) for e in axes), *(Force(n, o) for n in turns)]
