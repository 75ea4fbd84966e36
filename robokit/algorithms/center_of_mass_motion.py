"""How the centre of mass moves: its Jacobian, velocity and acceleration in the world.

    column of joint i: R_i (omega x h_i + m_i v) / M for the columns (omega, v) of S_i
    m_i, h_i: mass and first moment of all that joint i carries, in body-i coordinates

These are the linear rows of A_G, of h_G and of its rate, over M. They need no inertias beyond m and h and no
velocities of bodies: the first moment and its first two rates, seen from the body, are handed to the parent.

    h_lambda += E^T h + m r      w = hd + omega x h + m v      hd_lambda += E^T w
    hdd_lambda += E^T (hdd + alpha x h + m a + omega x (hd + w))

with (omega, v) = S qd and (alpha, a) = S qdd of the joint. These rates are derived here.

Source: RBDA section 2.13 (first moment of a composite); dynamics notes eq. 20, 22.
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.center_of_mass import composite_moments
from robokit.model.tree import Tree
from robokit.spatial import Matrix3, Vector3


def center_of_mass_jacobian(tree: Tree, q) -> list[list]:
    """J_G, 3 x nv, as a list of rows: J_G qd is the velocity of the centre of mass [m/s]."""
    X = tree.transforms(q)
    m, h = composite_moments(tree, X)
    share, E = 1.0 / m[0], [Matrix3.identity()]
    columns: list[Vector3] = []
    for i in tree.outward():
        E.append(X[i].E @ E[tree.parent[i]])
        h_i, m_i = h[i] * share, m[i] * share
        columns += [E[i].transpose_apply(s.ang.cross(h_i) + s.lin * m_i) for s in tree.joint[i].S.columns]
    return [list(row) for row in zip(*columns, strict=True)] or [[], [], []]


def center_of_mass_velocity(tree: Tree, q, qd) -> Vector3:
    """Velocity of the centre of mass [m/s]."""
    X = tree.transforms(q)
    m, h = composite_moments(tree, X)
    hd = [Vector3.zero()] * (tree.n + 1)
    for i in tree.inward():
        p, vJ = tree.parent[i], tree.joint[i].S * qd[i]
        w = hd[i] + vJ.ang.cross(h[i]) + vJ.lin * m[i]
        hd[p] = hd[p] + X[i].E.transpose_apply(w)
    return hd[0] * (1.0 / m[0])


def center_of_mass_acceleration(tree: Tree, q, qd, qdd) -> Vector3:
    """Acceleration of the centre of mass [m/s^2]; gravity does not enter."""
    X = tree.transforms(q)
    m, h = composite_moments(tree, X)
    hd, hdd = ([Vector3.zero()] * (tree.n + 1) for _ in range(2))
    for i in tree.inward():
        p, S, E = tree.parent[i], tree.joint[i].S, X[i].E
        vJ, aJ = S * qd[i], S * qdd[i]
        w = hd[i] + vJ.ang.cross(h[i]) + vJ.lin * m[i]
        rate = hdd[i] + aJ.ang.cross(h[i]) + aJ.lin * m[i] + vJ.ang.cross(hd[i] + w)
        hd[p] = hd[p] + E.transpose_apply(w)
        hdd[p] = hdd[p] + E.transpose_apply(rate)
    return hdd[0] * (1.0 / m[0])
