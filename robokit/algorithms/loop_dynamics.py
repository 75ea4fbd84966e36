"""Forward dynamics with closed loops: constraint forces through the sparse factor of H.

    [H  -K^T] [qdd   ]   [tau - C ]        H = L^T D L,  Y = L^-T K^T  (sparse_factors.py)
    [K   0  ] [lambda] = [-K' qd  ]        A = K H^-1 K^T = Y^T D^-1 Y

Loops may be redundant: a planar four-bar with a hinge in each corner has two loop constraints that matter
and three that repeat what its other hinges do. A is then singular. The proximal point iteration

    (A + e S) lambda <- b + e S lambda,    S diagonal

converges for every b that the loops can meet, at a rate of e / (e + the eigenvalue), to the lambda that
is least in S. What no lambda can meet grows only by b / (e S) an iteration and moves nothing; it can be told
by that and taken off.

Source: RBDA section 8.5, Y and the elimination of redundant constraints (there by rank, here proximal);
the iteration, R. T. Rockafellar, "Monotone operators and the proximal point algorithm" (1976).
Cost: O(n + n_c^2 d + n_c^3), n_c rows of constraints on branches of depth d.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.algorithms.aba import aba
from robokit.algorithms.coupling import coupled_forward_dynamics
from robokit.algorithms.crba import crba
from robokit.algorithms.loop_constraints import ClosedLoop
from robokit.algorithms.sparse_factors import ArticulatedFactor, Factor, SparseFactor
from robokit.model.constraints import LoopModel
from robokit.model.tree import Tree
from robokit.spatial import Transform
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar, added, maximum

PROXIMAL = 1e-12  # e: share of the typical entry of A that is added to its diagonal in double precision
ITERATIONS = 3  # proximal iterations
NEWTON_STEPS = 2  # corrections of a pose beside the loops: each takes off the digits that are right
RADIUS = 1.0  # angles count as much as lengths on this radius [m], where only lengths or only angles move


class LoopSystem:
    """The constraints of all loops in one configuration, and the mobility A that a factor of H gives them."""

    def __init__(
        self,
        factor: SparseFactor | ArticulatedFactor,
        loops: Sequence[ClosedLoop],
        proximal: float = PROXIMAL,
        least_pivot: float = 0.0,
    ) -> None:
        self.factor, self.loops = factor, loops
        self.Y = [factor.half(row) for loop in loops for row in loop.jacobian()]
        self.A = factor.products(self.Y)
        self.S = [proximal * s for s in self._scale()]
        damped = [[a + self.S[i] if i == j else a for j, a in enumerate(row)] for i, row in enumerate(self.A)]
        self.damped = ldl(damped, least_pivot)

    def _scale(self) -> list[Scalar]:
        """The typical mobility of a loop's angles and of its lengths, row by row."""
        scale: list[Scalar] = []
        for loop in self.loops:
            mean: dict[bool, Scalar] = {}
            for turns in (True, False):
                rows = [k for k, row in enumerate(loop.rows, len(scale)) if row.turns is turns]
                mean[turns] = added((self.A[k][k] for k in rows), 0.0) * (1.0 / max(1, len(rows)))
            angle = maximum(maximum(mean[True], mean[False] * (1.0 / RADIUS**2)), 1e-20)
            length = maximum(maximum(mean[False], mean[True] * RADIUS**2 * 1e-4), 1e-20)
            scale += [angle if row.turns else length for row in loop.rows]
        return scale

    def forces(self, b: Sequence[Scalar], iterations: int = ITERATIONS) -> list[Scalar]:
        """lambda with A lambda = b, as nearly as the loops can meet b."""
        x = ldl_solve(self.damped, b)
        for _ in range(iterations - 1):
            x = ldl_solve(self.damped, [bi + s * xi for bi, s, xi in zip(b, self.S, x, strict=True)])
        return x

    def least_forces(self, b: Sequence[Scalar], iterations: int) -> list[Scalar]:
        """lambda for the part of b that the loops can meet, the smallest such forces.

        What they cannot meet makes forces that move nothing and grow by the same amount in each iteration,
        while all others have come to rest. So the last iteration's growth, times their number, is taken off.
        Rounding leaves some of them; the least forces that move the same have none.
        """
        before = self.forces(b, iterations - 1)
        x = ldl_solve(self.damped, [bi + s * xi for bi, s, xi in zip(b, self.S, before, strict=True)])
        x = [xi - iterations * (xi - old) for xi, old in zip(x, before, strict=True)]
        met = [added((a * xi for a, xi in zip(row, x, strict=True)), 0.0) for row in self.A]
        return self.forces(met, iterations)

    def motion(self, forces: Sequence[Scalar]) -> list[list[Scalar]]:
        """H^-1 K^T lambda by joint."""
        return self.factor.motion(self.Y, forces)

    def rates(self, v: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """K v, for velocities by joint."""
        return [x for loop in self.loops for x in loop.rates(v)]


def closed_loops(tree: Tree, models: Sequence[LoopModel], X) -> list[ClosedLoop]:
    """The loops at the transforms X."""
    return [ClosedLoop(tree, model, X) for model in models]


def closest(
    system: LoopSystem, tree: Tree, models: Sequence[LoopModel], q
) -> tuple[list[list], list[ClosedLoop]]:
    """The configuration nearest to q that closes the loops, by joint, and its loops.

    By Newton's steps, all with the system at q, which weighs them.
    """
    loops = list(system.loops)
    for _ in range(NEWTON_STEPS):
        shift = system.motion(system.forces([-x for loop in loops for x in loop.delta]))
        q = [[], *(tree.joint[i].integrate(q[i], shift[i]) for i in tree.outward())]
        loops = closed_loops(tree, models, tree.transforms(q))
    return q, loops


def loop_dynamics(
    tree: Tree, models: Sequence[LoopModel], q, qd, tau, proximal: float = PROXIMAL, f_ext=None
) -> tuple[list[list], list, LoopSystem]:
    """Accelerations by joint [rad/s^2 | m/s^2], loop forces lambda by row, and the system they are of.

    They hold delta'' = 0; f_ext as in the RNEA. K is that of the nearest configuration that closes the loops,
    and K' qd that of the nearest velocity that they allow, so that q and qd may lie beside them, as the
    stages of a step do. Some linkages move only because their rows repeat each other while they are closed
    (Bennett's, Sarrus's): at an open configuration the rows would be independent, and hold them fast. Where
    rows are about to repeat each other, a velocity that opens the loops would take an acceleration without
    bounds.
    """
    free, X, factor = free_dynamics(tree, q, qd, tau, f_ext)
    system = LoopSystem(factor, closed_loops(tree, models, X), proximal)
    _, loops = closest(system, tree, models, q)
    system = LoopSystem(factor, loops, proximal)
    qd = add(qd, system.motion(system.forces([-x for x in system.rates(qd)])))
    product = (x for loop in system.loops for x in loop.velocity_product(qd))
    forces = system.forces([-a - b for a, b in zip(system.rates(free), product, strict=True)])
    return add(free, system.motion(forces)), forces, system


def free_dynamics(tree: Tree, q, qd, tau, f_ext=None) -> tuple[list[list], list[Transform], Factor]:
    """Accelerations by joint where no constraint acts [rad/s^2 | m/s^2], X, and the factor of H at q."""
    if tree.coupling is not None:
        free = coupled_forward_dynamics(tree, q, qd, tau, f_ext)
        return free, tree.transforms(q), SparseFactor(tree, crba(tree, q))
    X, U, D = lists = tree.lists(3)
    return aba(tree, q, qd, tau, f_ext, lists), X, ArticulatedFactor(tree, X, U, D)


def add(x: Sequence[Sequence[Scalar]], y: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """X + y by joint."""
    return [[a + b for a, b in zip(u, w, strict=True)] for u, w in zip(x, y, strict=True)]
