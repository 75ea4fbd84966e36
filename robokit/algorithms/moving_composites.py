"""What each joint carries while everything moves: composites of inertia, Coriolis matrix and force.

    I^c_i, B^c_i, f^c_i and h^c_i: sums over the subtree of i of I, of B (spatial/vectors.py), of
    f = I a + B v - f_ext and of h = I v, in body-i coordinates

Derivatives and the Coriolis matrix are made of them, and of how the columns s of S_i change:

    s' = v_i x s        Psi' = v_lambda x s        Psi'' = a_lambda x s + v_lambda x Psi'

Source: S. Singh, R. P. Russell, P. M. Wensing, "Efficient analytical derivatives of rigid-body dynamics using
spatial vector algebra", 2022, algorithm 1; S. Echeandia, P. M. Wensing 2021, algorithm 1.
Differs: both work in world coordinates. Here the sums are in body coordinates, where S is constant and
mostly zeros. Only the columns that pairs of joints need are taken to common coordinates: those of the first
body of each branch that leaves the reference, where a floating base has S = 1 too.
Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.vectors import CoriolisInertia


class MovingComposites:
    """Transforms, motions and composites by body, index 0 for the reference; h^c if asked for."""

    def __init__(
        self, tree: Tree, q, qd, qdd, f_ext=None, gravity: bool = True, momenta: bool = False
    ) -> None:
        X, v, a, vp, ap, B, f, h = tree.lists(8)
        v[0] = Motion.zero()
        a[0] = Motion(Vector3.zero(), tree.a0 if gravity else Vector3.zero())
        for i in tree.outward():
            p, S, I = tree.parent[i], tree.joint[i].S, tree.I[i]
            X[i] = tree.X(i, q[i])
            vp[i], ap[i] = X[i] @ v[p], X[i] @ a[p]
            vJ = S * qd[i]
            v[i] = vp[i] + vJ
            a[i] = ap[i] + S * qdd[i] + v[i].cross(vJ)
            B[i] = CoriolisInertia.of(I, v[i])
            f[i] = I @ a[i] + B[i] @ v[i]
            if f_ext is not None:
                f[i] = f[i] - f_ext[i]
            if momenta:
                h[i] = I @ v[i]
        self.tree, self.X, self.v, self.vp, self.ap = tree, X, v, vp, ap
        self.Ic, self.Bc, self.fc = list(tree.I), B, f
        self.hc = h
        for i in tree.inward():
            p = tree.parent[i]
            if p != 0:
                self.Ic[p] = self.Ic[p] + X[i].T @ self.Ic[i] @ X[i]
                B[p] = B[p] + X[i].T @ B[i] @ X[i]
                f[p] = f[p] + X[i].T @ f[i]
                if momenta:
                    h[p] = h[p] + X[i].T @ h[i]

    def rates(self, i: int) -> tuple[list[Motion], list[Motion], list[Motion]]:
        """s', Psi' and Psi'' of the columns of S_i, in body coordinates."""
        columns = self.tree.joint[i].S.columns
        psi = [self.vp[i].cross(s) for s in columns]
        psi2 = [self.ap[i].cross(s) + self.vp[i].cross(p) for s, p in zip(columns, psi, strict=True)]
        if len(columns) == 1:  # the joint's own velocity is along s
            return psi, psi, psi2
        return [self.v[i].cross(s) for s in columns], psi, psi2

    def from_branch(self) -> list[Transform]:
        """To body i from the first body of its branch, whose coordinates are common to the branch."""
        to = [Transform.identity()]
        for i in self.tree.outward():
            p = self.tree.parent[i]
            to.append(Transform.identity() if p == 0 else self.X[i] @ to[p])
        return to


def held_composites(tree: Tree, X, f_ext) -> list[Force]:
    """Sums of external forces over the subtrees, in body coordinates."""
    f = list(f_ext)
    for i in tree.inward():
        p = tree.parent[i]
        if p != 0:
            f[p] = f[p] + X[i].T @ f[i]
    return f


def forces_back(X: Transform, forces: Iterable[Force]) -> list[Force]:
    """X^T f of several."""
    return [X.T @ f for f in forces]


def motions_back(X: Transform, motions: Iterable[Motion]) -> list[Motion]:
    """X^-1 m of several."""
    return [X.back(m) for m in motions]


def numbered(tree: Tree, i: int, values: Iterable) -> Iterator[tuple[int, Any]]:
    """(row, value) for the values of joint i's degrees of freedom."""
    return zip(range(tree.nv)[tree.v_slice[i]], values, strict=True)


def square(n: int) -> list[list]:
    """Zeros, n x n."""
    return [[0.0] * n for _ in range(n)]
