"""Loop joints in a time step: impulses that hold them closed, and what is left projected away.

The implicit solve at the start of a step, from the velocities v to y, is given the impulse K^T lambda with

    K (v + y) = 0

The mean velocity is one that the loops allow, so that the impulse does no work. Redundant loops can always
meet it, because its right side is K times a velocity. The steps before may have left the loops open, so K is
that of the nearest pose in which they are closed. While open, the rows of a linkage that moves only because
they repeat each other (Bennett's, Sarrus's) are independent, and would stop it.

What a step leaves open is taken away at its end, with K at the new pose and H as the step factorised it:

    q <- q - H^-1 K^T A^-1 delta        v <- v - H^-1 K^T A^-1 K v

Both corrections are wrenches between two bodies, which make no momentum.

Source: RBDA section 8.3 (there stabilised by accelerations); projection methods, Hairer, Lubich and Wanner,
"Geometric numerical integration", section VII.2; H. C. Andersen, "Rattle" (1983).
Cost: that of the loops in ../../algorithms/loop_dynamics.py three times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.algorithms.loop_constraints import ClosedLoop
from robokit.algorithms.loop_dynamics import PROXIMAL, LoopSystem, add, closed_loops, closest
from robokit.algorithms.sparse_factors import ArticulatedFactor, Factor, SparseFactor
from robokit.model.constraints import LoopModel
from robokit.model.tree import Tree
from robokit.sim.motion.implicit_sweep import ImplicitSweep, body_velocities
from robokit.sim.motion.moving_axes import Rows
from robokit.spatial import Force, Motion
from robokit.spatial.scalars import Scalar

PROXIMAL_SINGLE = 1e-4
"""The proximal share in single precision."""


@dataclass(frozen=True)
class LoopLaw:
    """The loop joints of a step.

    Attributes:
        models: that constrain anything.
        proximal: see robokit.algorithms.loop_dynamics.
    """

    models: tuple[LoopModel, ...]
    proximal: float = PROXIMAL

    def system(self, tree: Tree, factor: Factor, X: Sequence[Any]) -> LoopSystem:
        """The constraints at the transforms X."""
        return LoopSystem(factor, closed_loops(tree, self.models, X), self.proximal)


class LoopKick:
    """The loops of an implicit solve.

    Attributes:
        loops: at the pose nearest to that of the solve in which they are closed; from the first solve on.
        impulses: on the successors, by row [N s | N m s].
        factor: of the last solve.
    """

    factor: Factor

    def __init__(self, law: LoopLaw, tree: Tree, q: Rows, X: Sequence[Any]) -> None:
        self.law, self.tree, self.q, self.X = law, tree, q, X
        self.loops: list[ClosedLoop] = []
        self.impulses: list[Scalar] = [0.0] * sum(model.rows for model in law.models)

    def solve(
        self, sweep: ImplicitSweep, T: Sequence[Force], tau: Rows, v: Rows
    ) -> tuple[Rows, list[Motion]]:
        """The solve of a sweep with the loops' impulses in it.

        Args:
            sweep: the matrix.
            T: momenta and impulses of the bodies 0..N, body coordinates.
            tau: forces of the joints, by joint.
            v: velocities before, by joint.

        Returns:
            y by joint and by body.
        """
        y, _ = sweep.solve(T, tau)
        if sweep.H is None:
            self.factor = ArticulatedFactor(self.tree, self.X, sweep.U, sweep.D)
        else:  # coupled joints
            self.factor = SparseFactor(self.tree, sweep.H)
        if not self.loops:
            drifted = self.law.system(self.tree, self.factor, self.X)
            _, self.loops = closest(drifted, self.tree, self.law.models, self.q)
        system = LoopSystem(self.factor, self.loops, self.law.proximal)
        impulses = system.forces([-a for a in system.rates(add(v, y))])
        y = add(y, system.motion(impulses))
        self.impulses = impulses
        return y, body_velocities(self.tree, self.X, y)


def project(law: LoopLaw, tree: Tree, factor: Factor, q: Rows, v: Rows) -> tuple[Rows, Rows]:
    """The state with its loops closed and its velocities such that they stay so.

    Args:
        factor: of H near this pose: it only weighs the corrections.
        q, v: the state at the step's end, by joint.
    """
    system = law.system(tree, factor, tree.transforms(q))
    q, loops = closest(system, tree, law.models, q)
    rates = [-x for loop in loops for x in loop.rates(v)]
    return q, add(v, system.motion(system.forces(rates)))
