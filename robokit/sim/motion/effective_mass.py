"""How heavy joints are to a push in the neutral configuration, with all that hangs on them.

A robot as it was loaded is asked once. One whose inertias are an input has others in each row of a rollout:
all its joints are found in one walk over the tree, to rounding the same. Phi_i maps a force on body i to its
velocity, both in body coordinates (H^-1 seen at the body). With the articulated inertias of the inward walk,
U_i = I^A_i S_i and D_i = S_i^T U_i, it follows outward:

    Phi_a = X Phi_parent X^T                            what the body would have without a joint of its own
    Phi_i = P Phi_a P^T + S D^-1 S^T,  P = 1 - S D^-1 U^T
    (H^-1)_ii = D^-1 + w^T Phi_a w,    w = U D^-1

Source: the recursion of inverse operational-space inertias, K. Chang and O. Khatib (2000), with the
articulated bodies of RBDA chapter 7.
Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.algorithms.aba import combine
from robokit.algorithms.crba import crba
from robokit.algorithms.loop_dynamics import closed_loops
from robokit.dynamics.singular import singular
from robokit.model.constraints import loop_models
from robokit.model.robot import Robot
from robokit.sim.motion.implicit_sweep import ImplicitSweep
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.linear import ldl_solve
from robokit.spatial.scalars import Scalar, is_zero

LEAST = 1e-12
"""Mobility [1/kg | 1/(kg m^2)] that stands for none."""


def effective_inertias(robot: Robot, dofs: Sequence[tuple[int, int]]) -> list[Any]:
    """1 / (H^-1)_jj of the given (joint, dof of the joint) [kg m^2 | kg]; floats, or (B,) for samples.

    Of a robot with links that only loops move it is that with the loops as heavy as the robot.
    """
    if loop_models(robot) and robot.samples is None and singular(robot) is not None:
        held = robot.derived.get("mobilities by loops", lambda: _with_loops(robot))
        return [_inverse(1.0, held[robot.tree.v_slice[i].start + k]) for i, k in dofs]
    if _many(robot):
        found = robot.derived.get("mobilities of joints", lambda: joint_mobilities(_factor(robot)))
        return [_inverse(1.0, np.asarray(found[i][k])) for i, k in dofs]
    tau: list[list[Any]] = _nothing(robot)
    for m, (i, k) in enumerate(dofs):
        tau[i][k] = _one_hot(robot, len(dofs), m)
    y, _ = _factor(robot).solve([Force.zero()] * (robot.tree.n + 1), tau)
    return [_inverse(1.0, np.asarray(y[i][k])[m]) for m, (i, k) in enumerate(dofs)]


def _with_loops(robot: Robot) -> np.ndarray:
    """The diagonal of (H + K^T K m)^-1 by dof of the tree, m the largest inertia of a joint by row of K."""
    tree = robot.tree
    q = robot.split_q(robot.neutral().tolist())
    H = np.array(crba(tree, q), dtype=float)
    loops = closed_loops(tree, loop_models(robot), tree.transforms(q))
    K = np.array([row for loop in loops for row in loop.jacobian()], dtype=float).reshape(-1, tree.nv)
    K = K / np.maximum(np.abs(K).max(axis=1, keepdims=True), LEAST)
    A = H + np.diag(H).max() * (K.T @ K)
    G = np.eye(tree.nv) if tree.coupling is None else np.asarray(tree.coupling.G)
    found: np.ndarray = np.diag(G @ np.linalg.pinv(G.T @ A @ G) @ G.T)
    return found


def _many(robot: Robot) -> bool:
    """Whether rows of a rollout may have inertias of their own."""
    return robot.parameters is not None and robot.tree.coupling is None


def _factor(robot: Robot) -> ImplicitSweep:
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    return ImplicitSweep(tree, X, [None] * (tree.n + 1), _nothing(robot), 1.0)


def _nothing(robot: Robot) -> list[list[Any]]:
    tree = robot.tree
    return [[0.0] * (s.stop - s.start) for s in tree.v_slice]


def _one_hot(robot: Robot, n: int, k: int) -> np.ndarray:
    """1 in the k-th of n right sides, with room for samples behind."""
    out = np.zeros(n)
    out[k] = 1.0
    return out if robot.samples is None else out[:, None]


def _inverse(numerator: float, mobility: Any) -> Any:
    found = numerator / np.maximum(mobility, LEAST)
    return found if np.ndim(found) else float(found)


# ---- all joints in one walk ------------------------------------------------------------------------------

Columns = Sequence[Motion]
"""Phi: the velocities by the six unit forces, moments first."""


def unit_forces() -> list[Force]:
    """Three unit moments and three unit forces."""
    axes = [Vector3(*(1.0 if k == m else 0.0 for k in range(3))) for m in range(3)]
    return [*(Force(e, Vector3.zero()) for e in axes), *(Force(Vector3.zero(), e) for e in axes)]


def velocity(Phi: Columns, f: Force) -> Motion:
    """Phi f."""
    total = Motion.zero()
    for column, x in zip(Phi, f, strict=False):
        if not is_zero(x):
            total = total + column * x
    return total


def joint_mobilities(sweep: ImplicitSweep) -> list[list[Scalar]]:
    """The diagonal of H^-1 by joint and dof of a tree without coupled joints, from its factorised matrix."""
    tree, units = sweep.tree, unit_forces()
    bodies: list[Columns] = [[]]
    joints: list[list[Scalar]] = [[]]
    for i in tree.outward():
        S, U, D, X = tree.joint[i].S, sweep.U[i], sweep.D[i], sweep.X[i]  # type: ignore[union-attr]
        assert X is not None
        parent = bodies[tree.parent[i]]
        above = [X @ velocity(parent, X.T @ f) for f in units] if parent else []
        own: list[Scalar] = []
        for k in range(len(U)):
            x = ldl_solve(D, [1.0 if m == k else 0.0 for m in range(len(U))])
            w = combine(U, x)
            own.append(x[k] + velocity(above, w).dot(w))
        joints.append(own)
        columns = []
        for f in units:
            x = ldl_solve(D, list(S.T @ f))
            a = velocity(above, f - combine(U, x))
            y = [s - t for s, t in zip(x, ldl_solve(D, [a.dot(column) for column in U]), strict=True)]
            columns.append(a + S * y)
        bodies.append(columns)
    return joints
