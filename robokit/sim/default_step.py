"""The time step that a simulation takes where none is given.

In a fall the velocities jump where links meet the ground and their limits. In a deep tree of light links such
a jump turns links by a large angle within a step, and what a step misses there makes energy. Free motion is
of second order or better and asks for no shorter step, nor do damping and friction, which are implicit.

    w = v / l,     v^2 = 2 g h,     1 / l^2 = sum_i m_i / l_i^2  /  sum_i m_i

v is the speed of a fall from the height h, the reach of the robot; l_i is how far from joint i a push on link
i must act to turn it without a force on the joint (its centre of percussion): S^T I S / |f|, f the force in
I S. The longer of two: of the link alone, and with all that hangs on it, I^A in the neutral pose. Files give
links that others carry no inertia about an axis, and links on one line with their load have none together.

Measured on falls of chains of 5 to 100 links, four seeds each, the energy error over the energy that moved:
at 1 ms it is 0.1 % for 36 rad/s, 1 % for 47, 2 % for 61, 5 % for 73, 12 % for 84, and from 100 rad/s on half
or more. Halving the step halves it. With 1/2 ms at 84 rad/s, 1/8 ms at 100 and 1/16 ms from 120 on (a chain
of 100 links) it is 6 % or less again: from 75 rad/s on the step falls with w^5. Robots have 5 to 50 rad/s and
an error of 0.1 % at 1 ms and at 4 ms (humanoid, quadruped, arm).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.algorithms.aba import add_rotors, without_joint
from robokit.conventions import GRAVITY
from robokit.model.robot import Robot
from robokit.spatial import Force
from robokit.spatial.linear import ldl

LONGEST = 1e-3
"""Default time step [s] of a robot that needs no shorter one."""

SHORTEST = LONGEST / 2**10
"""Least default time step [s]."""

FASTEST = 75.0
"""Rate of turning [rad/s] up to which the longest default step is short enough."""


def default_step(robot: Robot, falls: bool) -> float:
    """Time step for a robot: 1 ms, or 1 ms halved as often as its links ask.

    Args:
        robot: the robot.
        falls: whether the method is that of falls; for the others 1 ms is enough.

    Returns:
        the step [s].
    """
    rate = turning_rate(robot)
    if not falls or not FASTEST < rate < math.inf:
        return LONGEST
    halvings = math.ceil(5.0 * math.log2(rate / FASTEST) - 1e-9)
    return max(LONGEST / 2**halvings, SHORTEST)


def turning_rate(robot: Robot) -> float:
    """The rate w at which a fall turns the links [rad/s]; of samples, the largest."""
    tree = robot.tree
    X: Any = tree.transforms(robot.split_q(robot.neutral().tolist()))
    IA: Any = [I and I.articulated() for I in tree.I]
    reach: list[float] = [0.0] * (tree.n + 1)
    mass: Any = 0.0
    bent: Any = 0.0
    height: Any = 0.0
    for i in tree.outward():
        I, p = tree.I[i], tree.parent[i]
        reach[i] = reach[p] + math.hypot(*X[i].r) if p else 0.0
        some = np.where(np.asarray(I.m) > 0.0, I.m, 1.0)
        moment = np.sqrt(sum(np.square(x) for x in I.h))
        height = np.maximum(height, reach[i] + moment / some)
        mass = mass + I.m
    for i in tree.inward():
        S, p = tree.joint[i].S, tree.parent[i]  # type: ignore[union-attr]
        if p == 0 and robot.base == "floating":
            continue
        U, alone = S.of(IA[i]), S.of(tree.I[i])
        rows = [S.T @ column for column in U]
        add_rotors(tree, i, rows)
        sharpest: Any = 0.0
        for k, axis in enumerate(S.columns):
            carried = np.asarray(rows[k][k])
            if any(axis.ang):
                turned = np.minimum(_turned(U[k], carried), _turned(alone[k], np.asarray(axis.dot(alone[k]))))
                sharpest = np.maximum(sharpest, turned)
            rows[k][k] = np.where(carried > 0.0, carried, 1.0)  # of links without mass, which turn nothing
        bent = bent + tree.I[i].m * sharpest**2
        if p:
            IA[p] = IA[p] + X[i].T @ without_joint(IA[i], U, ldl(rows)) @ X[i]
    g = math.hypot(*tree.gravity) or math.hypot(*GRAVITY)
    with np.errstate(all="ignore"):
        rate = np.sqrt(2.0 * g * height * bent / np.where(np.asarray(mass) > 0.0, mass, 1.0))
    return float(np.max(rate))


def _turned(momentum: Force, inertia: np.ndarray) -> np.ndarray:
    """1 / l of a link with this momentum and inertia at a unit of speed [1/m]; 0 without inertia."""
    push = np.sqrt(sum(np.square(x) for x in momentum.lin))
    return np.where(inertia > 0.0, push / np.where(inertia > 0.0, inertia, 1.0), 0.0)
