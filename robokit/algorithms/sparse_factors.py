"""The mass matrix factorised once for many right sides: H = L^T D L, by dof or by joint.

    half     L^-T b           inward, along the branches that b touches
    motion   L^-1 D^-1 y      outward

The articulated-body algorithm is such a factorisation, with blocks of a joint's dofs: its D_i is S^T I^A S,
and its inward and outward passes are the two halves of a solve. It costs O(n). Joints that follow others
break its recursion and take the factorisation of H itself.

Source: RBDA sections 6.5 (factors of H), 7.3 (articulated-body algorithm) and 8.5 (the halves).
Cost: O(d) a half of a vector on one branch of depth d (O(d^2) by dof), O(n) a motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.aba import add_rotors, combine, without_joint
from robokit.algorithms.coupling import reduced_force, reduced_matrix
from robokit.algorithms.ltdl import ltdl, solve_transposed, solve_unit
from robokit.model.tree import Tree
from robokit.spatial import Motion
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar, added, is_zero

Half = tuple[list[Any], list[Any]]  # L^-T b and D^-1 times it, in the factor's order; None where none


class SparseFactor:
    """H = L^T D L by dof, with joints that follow others taken out."""

    def __init__(self, tree: Tree, H: Sequence[Sequence[Scalar]]) -> None:
        self.tree = tree
        self.parent = tree.dof_parent if tree.coupling is None else tree.coupling.dof_parent
        self.L, D = ltdl(self.parent, H if tree.coupling is None else reduced_matrix(tree, H))
        self.Dinv = [1.0 / d for d in D]

    def half(self, b: Sequence[Scalar]) -> Half:
        """L^-T b for b by full dof."""
        y = solve_transposed(self.parent, self.L, reduced_force(self.tree, b))
        return y, [yi * d for yi, d in zip(y, self.Dinv, strict=True)]

    def products(self, halves: Sequence[Half]) -> list[list[Scalar]]:
        """The scalar products of some vectors in the metric H^-1, of their halves."""
        A = [[0.0] * len(halves) for _ in halves]
        for i, (y, _) in enumerate(halves):
            for j, (_, z) in enumerate(halves[: i + 1]):
                A[i][j] = A[j][i] = _dot(y, z)
        return A

    def motion(self, halves: Sequence[Half], weights: Sequence[Scalar]) -> list[list[Scalar]]:
        """H^-1 times the weighted sum of the vectors, by joint."""
        total = [_dot(column, weights) for column in zip(*(z for _, z in halves), strict=True)]
        x = solve_unit(self.parent, self.L, total)
        full = x if self.tree.coupling is None else self.tree.coupling.full_v(x)
        return [list(row) for row in self.tree.split_v(full)]


class ArticulatedFactor:
    """H factorised by joint: U = I^A S and D = S^T U (by ldl) of the articulated-body algorithm."""

    def __init__(self, tree: Tree, X: Sequence[Any], U: Sequence[Any], D: Sequence[Any]) -> None:
        self.tree, self.X, self.U, self.D = tree, X, U, D

    @staticmethod
    def of(tree: Tree, X: Sequence[Any], b: Sequence[Any] = (), dt: Scalar = 0.0) -> ArticulatedFactor:
        """The factor of H for the tree's own inertias, at the transforms X.

        With ``b``, diagonal entries by joint, it is that of H + dt diag(b).
        """
        N = tree.n + 1
        IA: list[Any] = [None, *(tree.I[i].articulated() for i in tree.outward())]
        U: list[Any] = [None] * N
        D: list[Any] = [None] * N
        for i in tree.inward():
            p, S = tree.parent[i], tree.joint[i].S
            U[i] = S.of(IA[i])
            rows = [S.T @ column for column in U[i]]
            rotors = add_rotors(tree, i, rows)
            slopes = b[i] if b else ()
            for k, bk in enumerate(slopes):
                rows[k][k] = rows[k][k] + dt * bk
            D[i] = ldl(rows)
            if p != 0:
                void = not rotors and all(map(is_zero, slopes))
                Ia = without_joint(IA[i], U[i], D[i], S.axes if void else ())
                IA[p] = IA[p] + X[i].T @ Ia @ X[i]
        return ArticulatedFactor(tree, X, U, D)

    def half(self, b: Sequence[Scalar]) -> Half:
        """L^-T b: the joint forces that remain after the inward pass, for b by dof."""
        tree, N = self.tree, self.tree.n + 1
        pA: list[Any] = [None] * N
        u: list[Any] = [None] * N
        z: list[Any] = [None] * N
        for i in tree.inward():
            own, p = b[tree.v_slice[i]], tree.parent[i]
            if pA[i] is None and all(is_zero(x) for x in own):
                continue
            pushed = [0.0] * len(own) if pA[i] is None else tree.joint[i].S.T @ pA[i]
            u[i] = [x - s for x, s in zip(own, pushed, strict=True)]
            z[i] = ldl_solve(self.D[i], u[i])
            if p != 0:
                f = combine(self.U[i], z[i])
                f = self.X[i].T @ (f if pA[i] is None else pA[i] + f)
                pA[p] = f if pA[p] is None else pA[p] + f
        return u, z

    def products(self, halves: Sequence[Half]) -> list[list[Scalar]]:
        """The scalar products of some vectors in the metric H^-1, of their halves."""
        A: list[list[Scalar]] = [[0.0] * len(halves) for _ in halves]
        for joint in self.tree.outward():
            for i, (u, _) in enumerate(halves):
                for j, (_, z) in enumerate(halves[: i + 1]):
                    if u[joint] is not None and z[joint] is not None:
                        A[i][j] = A[j][i] = A[i][j] + _dot(u[joint], z[joint])
        return A

    def motion(self, halves: Sequence[Half], weights: Sequence[Scalar]) -> list[list[Scalar]]:
        """H^-1 times the weighted sum of the vectors, by joint."""
        tree = self.tree
        y: list[list[Scalar]] = [[]]
        V = [Motion.zero()]
        for i in tree.outward():
            above, S = self.X[i] @ V[tree.parent[i]], tree.joint[i].S
            pushed = [above.dot(column) for column in self.U[i]]
            right: list[Scalar] = [0.0] * len(pushed)
            for (u, _), weight in zip(halves, weights, strict=True):
                if u[i] is not None:
                    right = [r + x * weight for r, x in zip(right, u[i], strict=True)]
            y.append(ldl_solve(self.D[i], [r - s for r, s in zip(right, pushed, strict=True)]))
            V.append(above + S * y[i])
        return y


Factor = SparseFactor | ArticulatedFactor


def _dot(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    return added((a * b for a, b in zip(x, y, strict=True)), 0.0)
