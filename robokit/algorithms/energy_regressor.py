"""Regressor of the energies: [T; V] = E(q, qd) pi, pi the inertial parameters of the bodies 1..N.

    T_i = 1/2 m v.v + h.(v x w) + 1/2 w.(I w)        V_i = a_0.(m r + E^T h)

The rows of T and V hold ten columns a body, in the order of regressor.py.

Source: Gautier, Khalil 1988, the energies of a body; T as in the CRBA slides (seeds 000).
Cost: O(n).
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Motion, Transform


def energy_regressor(tree: Tree, q, qd) -> list[list]:
    """2 x 10 N, as a list of rows [kinetic; potential]; the motors' inertia (armature) is no part of pi."""
    v, X0 = [Motion.zero()], [Transform.identity()]
    kinetic, potential = [], []
    for i in tree.outward():
        p, X = tree.parent[i], tree.X(i, q[i])
        v.append(X @ v[p] + tree.joint[i].S * qd[i])
        X0.append(X @ X0[p])
        w, u = v[i].ang, v[i].lin
        x, y, z = w.x * 0.5, w.y * 0.5, w.z * 0.5
        kinetic += [0.5 * u.dot(u), *u.cross(w), x * w.x, w.x * w.y, y * w.y, w.x * w.z, w.y * w.z, z * w.z]
        potential += [tree.a0.dot(X0[i].r), *(X0[i].E @ tree.a0), *([0.0] * 6)]
    return [kinetic, potential]
