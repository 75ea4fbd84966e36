"""How heavy bodies and joints are to a push in the neutral configuration, with all that hangs on them.

A robot as it was loaded is asked once. One whose inertias are an input has others in each row of a rollout:
all its bodies and joints are found in one walk over the tree (body_mobility.py), to rounding the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.motion.body_mobility import mobility, unit_forces, velocity
from robokit.sim.motion.implicit_sweep import ImplicitSweep
from robokit.spatial import Force, Vector3

LEAST = 1e-12
"""Mobility [1/kg | 1/(kg m^2)] that stands for none."""


def effective_masses(robot: Robot, bodies: Sequence[int]) -> list[Any]:
    """3 / tr(J H^-1 J^T) of each body's centre of mass [kg]; floats, or (B,) for a robot with samples."""
    tree, R = robot.tree, 3 * len(bodies)
    if _many(robot):
        return [_inverse(3.0, _mobilities(robot)[0][i]) for i in bodies]
    T = [Force.zero()] * (tree.n + 1)
    coms = []
    for m, i in enumerate(bodies):
        c = _center(robot, i)
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
    if _many(robot):
        return [_inverse(1.0, _mobilities(robot)[1][i][k]) for i, k in dofs]
    tau: list[list[Any]] = _nothing(robot)
    for m, (i, k) in enumerate(dofs):
        tau[i][k] = _one_hot(robot, len(dofs), m)
    y, _ = _factor(robot).solve([Force.zero()] * (robot.tree.n + 1), tau)
    return [_inverse(1.0, np.asarray(y[i][k])[m]) for m, (i, k) in enumerate(dofs)]


def _many(robot: Robot) -> bool:
    """Whether rows of a rollout may have inertias of their own."""
    return robot.parameters is not None and robot.tree.coupling is None


def _mobilities(robot: Robot) -> tuple[list[Any], list[list[Any]]]:
    """tr(J H^-1 J^T) of each body's centre of mass [1/kg], and the diagonal of H^-1 by joint and dof."""

    def found() -> tuple[list[Any], list[list[Any]]]:
        whole = mobility(_factor(robot))
        traces: list[Any] = [0.0]
        for i in robot.tree.outward():
            c = _center(robot, i)
            pushes = [Force(c.cross(f.lin), f.lin) for f in unit_forces()[3:]]
            traces.append(sum(np.asarray(velocity(whole.bodies[i], f).dot(f)) for f in pushes))
        return traces, [[np.asarray(x) for x in row] for row in whole.joints]

    return robot.derived.get("mobilities in the neutral configuration", found)


def _center(robot: Robot, i: int) -> Vector3:
    """The centre of mass of a body, body coordinates [m]."""
    I = robot.tree.I[i]
    light = np.asarray(I.m) <= 0.0
    return I.h * (1.0 / np.where(light, 1.0, I.m))


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
