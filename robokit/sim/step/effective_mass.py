"""How heavy bodies and joints are to a push in the neutral configuration, with all that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.step.implicit_sweep import ImplicitSweep
from robokit.spatial import Force, Vector3

LEAST = 1e-12
"""Mobility [1/kg | 1/(kg m^2)] that stands for none."""


def effective_masses(robot: Robot, bodies: Sequence[int]) -> list[Any]:
    """3 / tr(J H^-1 J^T) of each body's centre of mass [kg]; floats, or (B,) for a robot with samples."""
    tree, R = robot.tree, 3 * len(bodies)
    T = [Force.zero()] * (tree.n + 1)
    coms = []
    for m, i in enumerate(bodies):
        I = tree.I[i]
        light = np.asarray(I.m) <= 0.0
        c = I.h * (1.0 / np.where(light, 1.0, I.m))
        f = Vector3(*(_one_hot(robot, R, 3 * m + k) for k in range(3)))
        T[i] = Force(c.cross(f), f)
        coms.append(c)
    _, V = _factor(robot).solve(T, _nothing(robot))
    found = []
    for m, (i, c) in enumerate(zip(bodies, coms, strict=True)):
        u = V[i].lin + V[i].ang.cross(c)
        mobility = sum(np.asarray(x)[3 * m + k] for k, x in enumerate(u))
        found.append(_inverse(3.0, mobility))
    return found


def mobilities(robot: Robot, bodies: Sequence[int]) -> list[Any]:
    """1 / effective mass of each body [1/kg], 0 of body 0."""
    moving = tuple(i for i in bodies if i)
    masses = robot.derived.get(("effective masses", moving), lambda: effective_masses(robot, moving))
    found = dict(zip(moving, masses, strict=True))
    return [1.0 / found[i] if i else 0.0 for i in bodies]


def effective_inertias(robot: Robot, dofs: Sequence[tuple[int, int]]) -> list[Any]:
    """1 / (H^-1)_jj of the given (joint, dof of the joint) [kg m^2 | kg]; floats, or (B,) for samples."""
    tau: list[list[Any]] = _nothing(robot)
    for m, (i, k) in enumerate(dofs):
        tau[i][k] = _one_hot(robot, len(dofs), m)
    y, _ = _factor(robot).solve([Force.zero()] * (robot.tree.n + 1), tau)
    return [_inverse(1.0, np.asarray(y[i][k])[m]) for m, (i, k) in enumerate(dofs)]


def _factor(robot: Robot) -> ImplicitSweep:
    return robot.derived.get("neutral factor", lambda: _factored(robot))


def _factored(robot: Robot) -> ImplicitSweep:
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
