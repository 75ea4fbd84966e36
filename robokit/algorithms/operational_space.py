"""Operational-space inertia of points and frames of links: what they weigh, felt from outside.

    Lambda^-1 = J H^-1 J^T = Y^T D^-1 Y       Jbar = H^-1 J^T Lambda       H = L^T D L,  Y = L^-T J^T

J's columns stand only along the support of each link, and so do Y's. Where the frames cannot move in some
direction, singular poses and frames that say the same twice, Lambda is infinite in it; with damping e it is
(J H^-1 J^T + e S)^-1, S the typical mobility of angles and of lengths (loop_dynamics.py).

Source: O. Khatib, "A unified approach for motion and force control of robot manipulators" (1987);
RBDA section 8.5 and RBDA 6.5 for Y in the sparsity of the branches.
Cost: O(n d^2 + m^2 d + m n d), m rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.algorithms.constrained_dynamics import LEAST_PIVOT
from robokit.algorithms.crba import crba
from robokit.algorithms.link_contacts import HeldLink
from robokit.algorithms.loop_dynamics import LoopSystem
from robokit.algorithms.sparse_factors import ArticulatedFactor, Factor, SparseFactor
from robokit.model.constraints import ContactModel
from robokit.model.tree import Tree
from robokit.spatial.linear import ldl_solve


def operational_space_inertia(tree: Tree, q, damping, frames: Sequence[ContactModel]) -> tuple:
    """(Lambda, Lambda^-1, Jbar), m x m, m x m and nv x m, as lists of rows; nv as the robot counts it."""
    X = tree.transforms(q)
    held = [HeldLink(tree, frame, X) for frame in frames]
    system = LoopSystem(factorised(tree, q, X), held, damping[0], LEAST_PIVOT)
    m = len(system.A)
    columns = [ldl_solve(system.damped, [1.0 if i == k else 0.0 for i in range(m)]) for k in range(m)]
    Lambda = [[columns[min(i, j)][max(i, j)] for j in range(m)] for i in range(m)]
    Jbar = [own(tree, system.motion(column)) for column in columns]
    return Lambda, system.A, [list(row) for row in zip(*Jbar, strict=True)]


def factorised(tree: Tree, q, X) -> Factor:
    """The mass matrix factorised: by dof in short trees, by joint in deep ones."""
    if tree.coupling is None and max(map(len, tree.support)) > DEEP:
        return ArticulatedFactor.of(tree, X)
    return SparseFactor(tree, crba(tree, q))


DEEP = 30  # joints on a branch from which the articulated-body algorithm is the shorter factorisation


def own(tree: Tree, rows) -> list:
    """Flat velocities of joints with coordinates of their own, from those of all joints."""
    full = [x for row in rows for x in row]
    return full if tree.coupling is None else [full[at] for at in tree.coupling.own_v]
