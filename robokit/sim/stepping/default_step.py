"""The time step that a simulation takes where none is given: 1 ms, halved until nothing turns far in it.

In a fall the velocities jump where links meet the ground and their limits. In a deep tree of light links such
a jump turns links by a large angle within a step, and the velocity products that a step misses there make or
take energy. Free motion is of second order or better and asks for no shorter step, nor do damping and
friction, which are implicit.

    w = v / l,     v^2 = 2 g h,     1 / l^2 = sum_i m_i / l_i^2  /  sum_i m_i,     w dt <= SPIN

v is the speed of a fall from the height h, the reach of the robot; l_i is how far from joint i a push on link
i must act to turn it without a force on the joint (its centre of percussion), I_i / (m_i c_i). Where links
ask for a shorter step, I_i is at least a tenth of 1 / (H^-1)_ii, what the joint turns with all others free: a
cross link in a hip or a wrist is small, but does not turn without the leg or the hand that it carries.

Measured on falls of chains of 5 to 100 links (w from 31 to 281 rad/s), four seeds each, 2 s, at 1/2 to 4 ms:
the energy that is taken, over that which moved, is 0.6 % at most up to w dt = 0.1, 4 % up to 0.2, 9 % up to
0.6 but for one fall of 11 %; from 0.8 on runs break down. Robots have 5 to 50 rad/s: 1 ms, and 4 ms as well.

A start whose bodies spin faster than that asks for itself: the step is halved until none turns by more than
SPIN in it.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from robokit.conventions import GRAVITY
from robokit.model.robot import Robot
from robokit.sim.motion import body_velocities, effective_inertias

LONGEST = 1e-3
"""Default time step [s] of a robot that needs no shorter one."""

SHORTEST = LONGEST / 2**10
"""Least default time step [s]."""

CARRIED = 0.1
"""Least inertia of a link about its joint, over that which the joint turns: 0.6 of it in chains of hinges."""

SPIN = 0.3
"""A body that turns by more in a step is worth a warning [rad]. The sine of the half is off its series' first
term by 0.4 %, which the axes of a step, those of its middle, leave out; at 1 rad it is 4 %."""

ROWS = 1024
"""Starts that are looked at together."""


def step_for_spin(dt: float, robot: Robot, q: np.ndarray, v: np.ndarray) -> float:
    """A time step halved as often as the spins of starts ask, but for those that ask for less than SHORTEST.

    Args:
        dt: the step [s].
        q, v: the starts, (nq,) and (nv,), or rows of them; a single row goes with many.
    """
    speed, _, _ = fastest_spin(robot, q, v, SPIN / dt, SPIN / SHORTEST)
    return _halved(dt, speed)


def _halved(dt: float, rate: float) -> float:
    """The step [s], halved until what turns at a rate [rad/s] turns by SPIN at most in it."""
    return dt / 2 ** max(0, math.ceil(math.log2(rate * dt / SPIN) - 1e-9))


def fastest_spin(
    robot: Robot, q: np.ndarray, v: np.ndarray, least: float, most: float = math.inf
) -> tuple[float, int, int]:
    """The largest angular velocity of a body [rad/s], its row and the body; (least, 0, 0) if none is larger.

    Args:
        q, v: as of :func:`step_for_spin`; rows that are not finite are skipped.
        least: [rad/s].
        most: rows with larger ones are skipped, too [rad/s].
    """
    q, v = np.atleast_2d(q), np.atleast_2d(v)
    found, rows = (least, 0, 0), max(len(q), len(v))
    with np.errstate(all="ignore"):  # no body turns faster than all joints together
        if not np.nanmax(np.abs(v).sum(axis=1), initial=0.0) > least:
            return found
    robot = robot if robot.samples is None else robot.sample(0)
    for first in range(0, rows, ROWS):
        x, y = (a if len(a) == 1 else a[first : first + ROWS] for a in (q, v))
        with np.errstate(all="ignore"):
            X = robot.tree.transforms(robot.split_q(list(x.T)))
            turning = body_velocities(robot.tree, X, robot.split_v(list(y.T)))
            speeds = [np.atleast_1d(np.sqrt(V.ang.dot(V.ang) + 0.0 * y.T[0])) for V in turning[1:]]
            good = np.logical_and.reduce([speed <= min(most, sys.float_info.max) for speed in speeds])
            for i, speed in enumerate(speeds, 1):
                k = int(np.where(good, speed, 0.0).argmax())
                if good[k] and speed[k] > found[0]:
                    found = (float(speed[k]), first + k, i)
    return found


def default_step(robot: Robot, falls: bool) -> float:
    """Time step for a robot: 1 ms, halved as often as its links ask.

    Args:
        falls: whether the method is that of falls; for the others 1 ms is enough.

    Returns:
        the step [s].
    """
    rate = turning_rate(robot) if falls else 0.0
    return max(_halved(LONGEST, rate), SHORTEST) if SPIN / LONGEST < rate < math.inf else LONGEST


def turning_rate(robot: Robot) -> float:
    """The rate w at which a fall turns the links [rad/s]; of samples, the largest."""
    alone = _turning_rate(robot, {})
    if not SPIN / LONGEST < alone < math.inf:
        return alone
    dofs = [
        (i, k)
        for i in robot.tree.outward()
        if robot.tree.parent[i] or robot.base != "floating"
        for k in range(robot.tree.joint[i].kind.nv)  # type: ignore[union-attr]
    ]
    carried = effective_inertias(robot, dofs)
    return _turning_rate(robot, {at: CARRIED * x for at, x in zip(dofs, carried, strict=True)})


def _turning_rate(robot: Robot, least: dict[tuple[int, int], Any]) -> float:
    """The rate, with a least inertia [kg m^2] for (joint, dof of the joint)."""
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    reach: list[float] = [0.0] * (tree.n + 1)
    mass: Any = 0.0
    bent: Any = 0.0
    height: Any = 0.0
    for i in tree.outward():
        I, p = tree.I[i], tree.parent[i]
        reach[i] = reach[p] + math.hypot(*X[i].r) if p else 0.0  # type: ignore[union-attr]
        some = np.where(np.asarray(I.m) > 0.0, I.m, 1.0)
        moment = np.sqrt(sum(np.square(x) for x in I.h))
        height = np.maximum(height, reach[i] + moment / some)
        mass = mass + I.m
        S = tree.joint[i].S  # type: ignore[union-attr]
        if p == 0 and robot.base == "floating":
            continue
        sharpest: Any = 0.0
        for k, (axis, momentum) in enumerate(zip(S.columns, S.of(I), strict=True)):
            if not any(axis.ang):
                continue
            inertia = np.maximum(axis.dot(momentum), least.get((i, k), 0.0))
            push = np.sqrt(sum(np.square(x) for x in momentum.lin))
            sharpest = np.maximum(
                sharpest, np.where(inertia > 0.0, push / np.where(inertia > 0.0, inertia, 1.0), 0.0)
            )
        bent = bent + I.m * sharpest**2
    g = math.hypot(*tree.gravity) or math.hypot(*GRAVITY)
    with np.errstate(all="ignore"):
        rate = np.sqrt(2.0 * g * height * bent / np.where(np.asarray(mass) > 0.0, mass, 1.0))
    return float(np.max(rate))
