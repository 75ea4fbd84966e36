"""A configuration moved along velocities, and what turns with it.

A floating base turns during a step. A method that drifts along a velocity keeps the base's linear velocity
in axes that do not turn: :func:`advance` gives the velocity as seen from the base's new axes.
:func:`momenta_after` has the velocity products of an implicit solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.rotation import quat_exp, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar

Rows = list[Any]
"""Scalars by joint: one list for each body 0..N."""


def free_base(tree: Tree, i: int) -> bool:
    """Whether joint i is a free joint between world and body."""
    joint = tree.joint[i]
    return tree.parent[i] == 0 and joint is not None and joint.kind.name == "floating"


def advance(tree: Tree, q: Rows, v: Rows, dt: Scalar) -> tuple[Rows, Rows]:
    """q moved along v for dt, and v seen from the base's new axes."""
    q1: Rows = [[]]
    v1: Rows = [[]]
    for i in tree.outward():
        joint = tree.joint[i]
        assert joint is not None
        step = [s * dt for s in v[i]]
        if free_base(tree, i):
            shift = quat_wxyz_to_rotation(q[i][:4]) @ Vector3(*step[3:])
            turned = joint.integrate(q[i], [*step[:3], 0.0, 0.0, 0.0])
            q1.append([*turned[:4], *(x + y for x, y in zip(q[i][4:], shift, strict=True))])
            E = quat_wxyz_to_rotation(quat_exp(Vector3(*step[:3])))
            v1.append([*v[i][:3], *E.transpose_apply(Vector3(*v[i][3:]))])
        else:
            q1.append(joint.integrate(q[i], step))
            v1.append(list(v[i]))
    return q1, v1


def momenta_after(
    tree: Tree,
    X: Sequence[Transform | None],
    P: Sequence[Force],
    w: Rows,
    dt: Scalar,
) -> list[Force]:
    """Momenta of the bodies after dt without joint forces, had their joints no acceleration.

        T_i = P_i - dt (I_i a_i + W_i x* I_i W_i),    a_i = X a_lambda + W_i x S w_i

    The velocity products are taken at w, where the bodies have the velocities W. They do no work where w is
    the mean of the velocities before and after.

    Args:
        X: ^iX_lambda(i).
        P: momenta now, body coordinates.
        w: velocities for the products, by joint.
        dt: time [s].

    Source: the bias force of the RNEA, RBDA table 5.1.
    """
    a: list[Motion] = [Motion(Vector3.zero(), tree.a0)]
    W = [Motion.zero()]
    T = [Force.zero()]
    for i in tree.outward():
        vJ = tree.joint[i].S * w[i]  # type: ignore[union-attr]
        W.append(X[i] @ W[tree.parent[i]] + vJ)  # type: ignore[operator]
        a_i = X[i] @ a[tree.parent[i]]  # type: ignore[operator]
        if free_base(tree, i):
            a_i = Motion(a_i.ang, a_i.lin - W[i].ang.cross(W[i].lin))
        else:
            a_i = a_i + W[i].cross(vJ)
        a.append(a_i)
        I = tree.I[i]
        T.append(P[i] - (I @ a_i + W[i].cross_force(I @ W[i])) * dt)
    return T
