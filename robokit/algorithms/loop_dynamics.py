"""Forward dynamics with closed loops: constraint forces through the sparse factor of H.

    [H  -K^T] [qdd   ]   [tau - C ]        H = L^T D L,  Y = L^-T K^T
    [K   0  ] [lambda] = [-K' qd  ]        A = K H^-1 K^T = Y^T D^-1 Y

Loops may be redundant: a planar four-bar with a hinge in each corner has two loop constraints that matter
and three that repeat what its other hinges do. A is then singular. The proximal point iteration

    (A + e S) lambda <- b + e S lambda,    S diagonal

converges for every b that the loops can meet, at a rate of e / (e + the eigenvalue), to the lambda that
is least in S. What no lambda can meet grows only by b / (e S) an iteration and moves nothing.

Source: RBDA section 8.5, Y and the elimination of redundant constraints (there by rank, here proximal);
the iteration, R. T. Rockafellar, "Monotone operators and the proximal point algorithm" (1976).
Cost: O(n d^2 + n_c n d + n_c^2 n + n_c^3), n_c rows of constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from robokit.algorithms.bias import bias_forces
from robokit.algorithms.coupling import reduced_force, reduced_matrix
from robokit.algorithms.crba import composite
from robokit.algorithms.loop_constraints import ClosedLoop
from robokit.algorithms.ltdl import ltdl, ltdl_solve, solve_transposed, solve_unit
from robokit.model.loop_models import LoopModel
from robokit.model.tree import Tree
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar, maximum

PROXIMAL = 1e-7
"""e: share of the typical entry of A that is added to its diagonal in double precision."""

ITERATIONS = 3
"""Proximal iterations."""

RADIUS = 1.0
"""Angles count as much as lengths on this radius [m], where only lengths or only angles move."""


class SparseFactor:
    """H = L^T D L, with joints that follow others taken out."""

    def __init__(self, tree: Tree, H: Sequence[Sequence[Scalar]]) -> None:
        self.tree = tree
        self.parent = tree.dof_parent if tree.coupling is None else tree.coupling.dof_parent
        self.L, self.D = ltdl(self.parent, H if tree.coupling is None else reduced_matrix(tree, H))

    def solve(self, b: Sequence[Scalar]) -> list[list[Scalar]]:
        """H^-1 b by joint."""
        return self._by_joint(ltdl_solve(self.parent, self.L, self.D, reduced_force(self.tree, b)))

    def half(self, b: Sequence[Scalar]) -> list[Scalar]:
        """L^-T b."""
        return solve_transposed(self.parent, self.L, reduced_force(self.tree, b))

    def other_half(self, y: Sequence[Scalar]) -> list[list[Scalar]]:
        """L^-1 D^-1 y by joint."""
        scaled = [yi / d for yi, d in zip(y, self.D, strict=True)]
        return self._by_joint(solve_unit(self.parent, self.L, scaled))

    def _by_joint(self, x: Sequence[Scalar]) -> list[list[Scalar]]:
        full = x if self.tree.coupling is None else self.tree.coupling.full_v(x)
        return [list(row) for row in self.tree.split_v(full)]


class LoopSystem:
    """The constraints of all loops in one configuration, and the mobility A that a factor of H gives them."""

    def __init__(self, factor: SparseFactor, loops: Sequence[ClosedLoop], proximal: float = PROXIMAL) -> None:
        self.factor, self.loops = factor, loops
        self.Y = [factor.half(row) for loop in loops for row in loop.jacobian()]
        Z = [[y / d for y, d in zip(row, factor.D, strict=True)] for row in self.Y]
        n = len(self.Y)
        self.A: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i + 1):
                self.A[i][j] = self.A[j][i] = _dot(self.Y[i], Z[j])
        self.S = [proximal * s for s in self._scale()]
        damped = [[a + self.S[i] if i == j else a for j, a in enumerate(row)] for i, row in enumerate(self.A)]
        self.damped = ldl(damped)

    def _scale(self) -> list[Scalar]:
        """The typical mobility of a loop's angles and of its lengths, row by row."""
        scale: list[Scalar] = []
        for loop in self.loops:
            mean: dict[bool, Scalar] = {}
            for turns in (True, False):
                rows = [k for k, row in enumerate(loop.rows, len(scale)) if row.turns is turns]
                mean[turns] = sum((self.A[k][k] for k in rows), 0.0) * (1.0 / max(1, len(rows)))
            angle = maximum(maximum(mean[True], mean[False] * (1.0 / RADIUS**2)), 1e-20)
            length = maximum(maximum(mean[False], mean[True] * RADIUS**2 * 1e-4), 1e-20)
            scale += [angle if row.turns else length for row in loop.rows]
        return scale

    def forces(self, b: Sequence[Scalar]) -> list[Scalar]:
        """lambda with A lambda = b, as nearly as the loops can meet b."""
        x = ldl_solve(self.damped, b)
        for _ in range(ITERATIONS - 1):
            x = ldl_solve(self.damped, [bi + s * xi for bi, s, xi in zip(b, self.S, x, strict=True)])
        return x

    def motion(self, forces: Sequence[Scalar]) -> list[list[Scalar]]:
        """H^-1 K^T lambda by joint."""
        columns = zip(*self.Y, strict=True)
        return self.factor.other_half([_dot(column, forces) for column in columns])

    def rates(self, v: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """K v, for velocities by joint."""
        return [x for loop in self.loops for x in loop.rates(v)]


def _dot(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    return sum((a * b for a, b in zip(x, y, strict=True)), 0.0)


def closed_loops(tree: Tree, models: Sequence[LoopModel], X) -> list[ClosedLoop]:
    """The loops at the transforms X."""
    return [ClosedLoop(tree, model, X) for model in models]


def loop_dynamics(
    tree: Tree, models: Sequence[LoopModel], q, qd, tau, proximal: float = PROXIMAL, f_ext=None
) -> tuple[list[list], list, LoopSystem]:
    """Accelerations by joint [rad/s^2 | m/s^2], loop forces lambda by row, and the system they are of.

    They hold delta'' = 0 for velocities that the loops allow; f_ext as in the RNEA.
    """
    X = tree.transforms(q)
    factor = SparseFactor(tree, composite(tree, X, tree.I))
    C = chain(*bias_forces(tree, q, qd, f_ext))
    free = factor.solve([t - c for t, c in zip(chain(*tau), C, strict=True)])
    system = LoopSystem(factor, closed_loops(tree, models, X), proximal)
    product = (x for loop in system.loops for x in loop.velocity_product(qd))
    forces = system.forces([-a - b for a, b in zip(system.rates(free), product, strict=True)])
    return add(free, system.motion(forces)), forces, system


def add(x: Sequence[Sequence[Scalar]], y: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """X + y by joint."""
    return [[a + b for a, b in zip(u, w, strict=True)] for u, w in zip(x, y, strict=True)]
