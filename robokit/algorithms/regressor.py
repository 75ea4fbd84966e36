"""Regressor of inverse dynamics: tau = Y(q, qd, qdd) pi, pi the inertial parameters of the bodies 1..N.

    rows of joint j, columns of body i in nu(j):  (^iX_j S_j)^T A_i      f_i = A_i pi_i

A_i is the Newton-Euler equation of body i, written as linear in its ten parameters
[m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz], h and I at the body's origin. A motor's inertia
(armature) is felt by its own joint alone, as armature times qdd.

Source: Atkeson, An, Hollerbach 1986, eq. 9-16, in the recursions of RBDA table 5.1.
Differs: the columns S_j go out to the bodies, one motion a pair (j, i), in place of ten forces coming in.
Cost: O(n d), d the depth of the tree. Only rows of joints that support the body are computed; the rest are 0.
"""

from __future__ import annotations

from itertools import chain

from robokit.model.tree import Tree
from robokit.spatial import Matrix3, Motion, Vector3


def regressor(tree: Tree, q, qd, qdd) -> list[list]:
    """Y, nv x 10 N, as a list of rows; the motors' inertia (armature) is no part of pi."""
    v, a, S = tree.lists(3)
    v[0] = Motion.zero()
    a[0] = Motion(Vector3.zero(), tree.a0)
    Y = [[0.0] * (10 * tree.n) for _ in range(tree.nv)]

    for i in tree.outward():
        p, X, joint = tree.parent[i], tree.X(i, q[i]), tree.joint[i]
        vJ = joint.S * qd[i]
        v[i] = X @ v[p] + vJ
        a[i] = X @ a[p] + joint.S * qdd[i] + v[i].cross(vJ)
        dofs = range(tree.nv)[tree.v_slice[i]]
        S[i] = [(k, X @ s) for k, s in S[p]] + list(zip(dofs, joint.S.columns, strict=True))
        equation = newton_euler(v[i], a[i])
        for k, s in S[i]:
            Y[k][10 * (i - 1) : 10 * i] = power(s, *equation)
    return Y


def regressor_armature(tree: Tree, q, qd, qdd) -> tuple[list[list], list]:
    """Y, and the diagonal of the columns that motors add to it: qdd."""
    return regressor(tree, q, qd, qdd), list(chain(*qdd))


def newton_euler(v: Motion, a: Motion) -> tuple[Vector3, Matrix3, list[Vector3]]:
    """g, B and D of a body's equation f = m g + B h, n = h x g + D [I_xx .. I_zz]."""
    w, e = v.ang, a.ang
    g = a.lin + w.cross(v.lin)
    xx, yy, zz, xy, xz, yz = w.x * w.x, w.y * w.y, w.z * w.z, w.x * w.y, w.x * w.z, w.y * w.z
    B = Matrix3(
        ((-(yy + zz), xy - e.z, xz + e.y), (xy + e.z, -(xx + zz), yz - e.x), (xz - e.y, yz + e.x, -(xx + yy)))
    )
    D = [
        Vector3(e.x, xz, -xy),
        Vector3(e.y - xz, e.x + yz, xx - yy),
        Vector3(-yz, e.y, xy),
        Vector3(e.z + xy, zz - xx, e.x - yz),
        Vector3(yy - zz, e.z - xy, e.y + xz),
        Vector3(yz, -xz, e.z),
    ]
    return g, B, D


def power(s: Motion, g: Vector3, B: Matrix3, D: list[Vector3]) -> list:
    """s^T A: the ten coefficients of the power of the body's force on the motion s."""
    return [s.lin.dot(g), *(B.transpose_apply(s.lin) + g.cross(s.ang)), *(s.ang.dot(d) for d in D)]
