"""The solve of a time step: velocities y of a tree with linearised forces.

    (H + J^T K J + dt b) y = J^T T + dt tau

K_i is what the linearised contacts add to the inertia of body i, b what joint forces add to the diagonal.
They keep H's branch-induced sparsity, and one articulated-body sweep solves the system.

Source: articulated-body algorithm, RBDA table 7.1 and seeds 002.
Differs: no velocity products (they are in T); I^a S = 0 does not hold where a joint has a slope b.
Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.aba import add_rotors, combine, without_joint
from robokit.algorithms.coupling import coupled_solve
from robokit.algorithms.crba import composite
from robokit.model.tree import Tree
from robokit.spatial import ArticulatedInertia, Force, Motion, Transform
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar, is_zero

Rows = Sequence[Sequence[Scalar]]


def body_velocities(tree: Tree, X: Sequence[Transform | None], qd: Rows) -> list[Motion]:
    """Spatial velocity of each body in its own coordinates."""
    V = [Motion.zero()]
    for i in tree.outward():
        V.append(X[i] @ V[tree.parent[i]] + tree.joint[i].S * qd[i])  # type: ignore[union-attr, operator]
    return V


class ImplicitSweep:
    """The matrix H + J^T K J + dt b, factorised: inward through the tree once, then a solve a right side."""

    def __init__(
        self,
        tree: Tree,
        X: Sequence[Transform | None],
        K: Sequence[ArticulatedInertia | None],
        b: Rows,
        dt: Scalar,
    ) -> None:
        N = tree.n + 1
        self.tree, self.X, self.dt = tree, X, dt
        self.IA: list[Any] = [None] * N
        self.U: list[Any] = [None] * N
        self.D: list[Any] = [None] * N
        self.H: list[list[Scalar]] | None = None
        (self._factor if tree.coupling is None else self._dense)(K, b)

    def _own(self, K: Sequence[ArticulatedInertia | None], i: int) -> ArticulatedInertia:
        """I_i + K_i."""
        I, Ki = self.tree.I[i].articulated(), K[i]
        return I if Ki is None else I + Ki

    def _factor(self, K: Sequence[ArticulatedInertia | None], b: Rows) -> None:
        tree, IA = self.tree, self.IA
        for i in tree.inward():
            p, S, X = tree.parent[i], tree.joint[i].S, self.X[i]  # type: ignore[union-attr]
            if IA[i] is None:
                IA[i] = self._own(K, i)
            U = self.U[i] = S.of(IA[i])
            rows = [S.T @ column for column in U]
            rotors = add_rotors(tree, i, rows)
            for k, bk in enumerate(b[i]):
                rows[k][k] = rows[k][k] + self.dt * bk
            D = self.D[i] = ldl(rows)
            if p != 0:
                Ia = without_joint(IA[i], U, D)
                if all(is_zero(bk) for bk in b[i]) and not rotors:
                    Ia = Ia.without(S.axes)
                above = self._own(K, p) if IA[p] is None else IA[p]
                IA[p] = above + X.T @ Ia @ X  # type: ignore[union-attr]

    def _dense(self, K: Sequence[ArticulatedInertia | None], b: Rows) -> None:
        """For coupled joints: the composite matrix of the inertias I + K."""
        H = composite(self.tree, self.X, [None, *(self._own(K, i) for i in self.tree.outward())])
        for i in self.tree.outward():
            at = self.tree.v_slice[i].start
            for k, bk in enumerate(b[i]):
                H[at + k][at + k] = H[at + k][at + k] + self.dt * bk
        self.H = H

    def solve(self, T: Sequence[Force], tau: Rows) -> tuple[list[list[Scalar]], list[Motion]]:
        """y by joint and by body.

        Args:
            T: momenta and impulses of the bodies 0..N, body coordinates.
            tau: forces of the joints, by joint.
        """
        tree, X, U, D = self.tree, self.X, self.U, self.D
        if self.H is not None:
            return self._solve_dense(self.H, T, tau)
        pA: list[Any] = [-f for f in T]
        u: list[Any] = [None] * (tree.n + 1)
        for i in tree.inward():
            p, S = tree.parent[i], tree.joint[i].S  # type: ignore[union-attr]
            u[i] = [self.dt * t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]
            if p != 0:
                pA[p] = pA[p] + X[i].T @ (pA[i] + combine(U[i], ldl_solve(D[i], u[i])))  # type: ignore[union-attr]
        y: list[list[Scalar]] = [[]]
        V = [Motion.zero()]
        for i in tree.outward():
            above = X[i] @ V[tree.parent[i]]  # type: ignore[operator]
            right = [ui - above.dot(column) for ui, column in zip(u[i], U[i], strict=True)]
            y.append(ldl_solve(D[i], right))
            V.append(above + tree.joint[i].S * y[i])  # type: ignore[union-attr]
        return y, V

    def _solve_dense(
        self, H: list[list[Scalar]], T: Sequence[Force], tau: Rows
    ) -> tuple[list[list[Scalar]], list[Motion]]:
        tree, f = self.tree, list(T)
        right = [self.dt * t for row in tau for t in row]
        for i in tree.inward():
            p, at = tree.parent[i], tree.v_slice[i].start
            for k, force in enumerate(tree.joint[i].S.T @ f[i]):  # type: ignore[union-attr]
                right[at + k] = right[at + k] + force
            if p != 0:
                f[p] = f[p] + self.X[i].T @ f[i]  # type: ignore[union-attr]
        y = [list(row) for row in coupled_solve(tree, H, right)]
        return y, body_velocities(tree, self.X, y)
