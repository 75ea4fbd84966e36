"""Forward dynamics with contacts and loop joints that hold, and what an impact makes of the velocities.

    H a + C = tau + J^T lambda       J a + J' v = -kp delta - kd J v
    H (v+ - v-) = J^T Lambda         J v+ = -e J v-

J has the rows of all constraints; delta is how far a loop joint is from closed, and 0 for a contact, which
is held where it is; kp and kd are Baumgarte's gains. The constraints hold both ways: a contact can pull.
They may say the same twice; loop_dynamics.py says which forces are found then.

Source: RBDA sections 8.1, 8.2, 8.5 and 11.7 (impacts); J. Baumgarte, "Stabilization of constraints and
integrals of motion in dynamical systems" (1972).
Cost: O(n + m^2 d + m^3), m rows; O(n d^2) with joints that follow others.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.algorithms.crba import crba
from robokit.algorithms.link_contacts import HeldLink
from robokit.algorithms.loop_constraints import ClosedLoop
from robokit.algorithms.loop_dynamics import LoopSystem, add, free_dynamics
from robokit.algorithms.sparse_factors import ArticulatedFactor, Factor, SparseFactor
from robokit.model.constraints import ConstraintModel, ContactModel
from robokit.model.tree import Tree

PROXIMAL = 1e-8  # fraction of the typical mobility that is added to the diagonal of A, in double precision
ITERATIONS = 7  # proximal iterations: more than a simulation needs, also for nearly singular constraints
LEAST_PIVOT = 1e-13  # smaller shares of their row's mobility are rounding: redundant constraints


def constrained_dynamics(
    tree: Tree, q, qd, tau, gains, proximal, constraints: Sequence[ConstraintModel], f_ext=None
) -> tuple[list, list]:
    """(qdd by joint, lambda by row) [rad/s^2 | m/s^2], [N m | N]; gains = (kp, kd) [1/s^2, 1/s].

    f_ext: forces on the bodies 0..N besides those of the constraints, in body coordinates.
    """
    free, X, factor = free_dynamics(tree, q, qd, tau, f_ext)
    system = constraint_system(tree, X, factor, constraints, proximal)
    product = [x for held in system.loops for x in held.velocity_product(qd)]
    delta = [x for held in system.loops for x in held.delta]
    kp, kd = gains
    errors = zip(system.rates(free), product, delta, system.rates(qd), strict=True)
    forces = system.least_forces([-a - b - kp * d - kd * r for a, b, d, r in errors], ITERATIONS)
    return add(free, system.motion(forces)), forces


def impact(
    tree: Tree, q, qd, restitution, proximal, constraints: Sequence[ConstraintModel]
) -> tuple[list, list]:
    """(velocities after by joint, impulses by row) [rad/s | m/s], [N m s | N s]."""
    X = tree.transforms(q)
    factor = ArticulatedFactor.of(tree, X) if tree.coupling is None else SparseFactor(tree, crba(tree, q))
    system = constraint_system(tree, X, factor, constraints, proximal)
    impulses = system.least_forces([-(1.0 + restitution[0]) * r for r in system.rates(qd)], ITERATIONS)
    return add(qd, system.motion(impulses)), impulses


def constraint_system(
    tree: Tree, X, factor: Factor, constraints: Sequence[ConstraintModel], proximal
) -> LoopSystem:
    """The rows of all constraints at the transforms X, and the mobility that H gives them."""
    held = [
        HeldLink(tree, c, X) if isinstance(c, ContactModel) else ClosedLoop(tree, c, X) for c in constraints
    ]
    return LoopSystem(factor, held, proximal[0], LEAST_PIVOT)
