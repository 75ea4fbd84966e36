"""How heavy joints are to a push in the neutral configuration, with all that hangs on them.

A robot as it was loaded is asked once. One whose inertias are an input has others in each row of a rollout:
all its joints are found in one walk over the tree (body_mobility.py), to rounding the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.motion.body_mobility import joint_mobilities
from robokit.sim.motion.implicit_sweep import ImplicitSweep
from robokit.spatial import Force

LEAST = 1e-12
"""Mobility [1/kg | 1/(kg m^2)] that stands for none."""


def effective_inertias(robot: Robot, dofs: Sequence[tuple[int, int]]) -> list[Any]:
    """1 / (H^-1)_jj of the given (joint, dof of the joint) [kg m^2 | kg]; floats, or (B,) for samples."""
    if _many(robot):
        found = robot.derived.get("mobilities of joints", lambda: joint_mobilities(_factor(robot)))
        return [_inverse(1.0, np.asarray(found[i][k])) for i, k in dofs]
    tau: list[list[Any]] = _nothing(robot)
    for m, (i, k) in enumerate(dofs):
        tau[i][k] = _one_hot(robot, len(dofs), m)
    y, _ = _factor(robot).solve([Force.zero()] * (robot.tree.n + 1), tau)
    return [_inverse(1.0, np.asarray(y[i][k])[m]) for m, (i, k) in enumerate(dofs)]


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
