"""Centroidal momentum from the links: A_G, h_G = A_G qd and the bias Ad_G qd.

    column of joint i: ^GX_i* I^c_i S_i        h_G = sum of ^GX_i* I_i v_i

Rows are [angular; linear] in world axes about the centre of mass G. Works for fixed bases too; the
route through H of the dynamics notes is in centroidal_from_h.py and agrees.

Source: dynamics notes eq. 20-22; composite inertias as in the CRBA (seeds 000).
Cost: O(n).
"""

from __future__ import annotations

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.composites import composite_inertias
from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.vectors import Matrix3


def centroidal_momentum_matrix(tree: Tree, q) -> list[list]:
    """A_G, 6 x nv, as a list of rows."""
    X = tree.transforms(q)
    Ic = dict(composite_inertias(tree, X, tree.I))
    m, h = composite_moment(tree, X)
    XG = [Transform(Matrix3.identity(), h * (-1.0 / m))]  # from the axes at G, not at O
    columns: list[Force] = []
    for i in tree.outward():
        XG.append(X[i] @ XG[tree.parent[i]])
        columns += [XG[i].T @ column for column in tree.joint[i].S.of(Ic[i])]
    return [list(row) for row in zip(*columns, strict=True)]


def centroidal_momentum(tree: Tree, q, qd) -> Force:
    """h_G = [k_G; l_G] [N m s; N s]."""
    X = tree.transforms(q)
    v = [Motion.zero()]
    for i in tree.outward():
        v.append(X[i] @ v[tree.parent[i]] + tree.joint[i].S * qd[i])
    h_O = _world_sum(tree, X, [tree.I[i] @ v[i] for i in tree.outward()])
    m, h = composite_moment(tree, X)
    return about(h_O, h * (1.0 / m))


def centroidal_momentum_bias(tree: Tree, q, qd) -> Force:
    """Ad_G qd: the rate of h_G at qdd = 0 and without gravity, [N m; N]."""
    X = tree.transforms(q)
    v, a, rate = [Motion.zero()], [Motion.zero()], []
    for i in tree.outward():
        p, I = tree.parent[i], tree.I[i]
        vJ = tree.joint[i].S * qd[i]
        v.append(X[i] @ v[p] + vJ)
        a.append(X[i] @ a[p] + v[i].cross(vJ))
        rate.append(I @ a[i] + v[i].cross_force(I @ v[i]))
    m, h = composite_moment(tree, X)
    return about(_world_sum(tree, X, rate), h * (1.0 / m))


def about(f: Force, p: Vector3) -> Force:
    """A force or momentum at the origin, taken about the point p in the same axes."""
    return Force(f.ang - p.cross(f.lin), f.lin)


def _world_sum(tree: Tree, X, f) -> Force:
    """Sum of the bodies' forces (body coordinates, bodies 1..N) in world coordinates at O."""
    total = [Force.zero(), *f]
    for i in tree.inward():
        p = tree.parent[i]
        total[p] = total[p] + X[i].T @ total[i]
    return total[0]
