"""A configuration near a given one in which no bodies of the robot overlap."""

from __future__ import annotations

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.closing import closed_rows
from robokit.sim.collide.collision_pairs import CLEAR, SLIGHT, joints_between
from robokit.sim.collide.gaps import Gaps, overlaps
from robokit.sim.collide.pair_list import CollisionPairs

ROUNDS = 30
"""At most. Each takes the overlaps as linear in the joints; most starts of robots need two to four."""

DECIMALS = 6
"""Of the change of a coordinate [rad | m]: the last bits of distances differ between processors."""


def moved_apart(robot: Robot, pairs: CollisionPairs, q: np.ndarray) -> np.ndarray:
    """The configuration q, with the joints moved that keep its bodies from overlapping.

    One overlap after the other is undone by the least change of the joints with one coordinate that lie
    between its bodies, inside their limits (Kaczmarz), until none is left. Loops stay closed.

    Args:
        robot: the robot.
        pairs: of bodies that are to be apart.
        q: configuration, (nq,), which is returned as it is where nothing overlaps.

    Returns:
        (nq,); with the overlaps that are left where no way out of them was found.
    """
    lower, upper = _limits(robot, q)
    for _ in range(ROUNDS):
        deep = {shapes: -float(over[0]) for shapes, _, over in overlaps(robot, pairs, q)}
        if not deep:
            break
        q = _one_round(robot, pairs, q, deep, lower, upper)
    return q


def _one_round(
    robot: Robot,
    pairs: CollisionPairs,
    q: np.ndarray,
    deep: dict[tuple[int, int], float],
    lower: np.ndarray,
    upper: np.ndarray,
) -> np.ndarray:
    """q after one correction of every overlap, the deepest first."""
    between = {
        (k, m): np.flatnonzero(joints_between(robot, pairs.shapes[k].body, pairs.shapes[m].body))
        for k, m in deep
    }
    moving = np.unique(np.concatenate(list(between.values())))
    rows = np.repeat(q[None], len(moving), axis=0)
    rows[np.arange(len(moving)), moving] += SLIGHT
    gaps, change = Gaps(robot, pairs.shapes, np.concatenate([q[None], rows])), np.zeros(robot.nq)
    for (k, m), distance in sorted(deep.items(), key=lambda item: item[1]):
        at = np.searchsorted(moving, between[k, m])
        tried = gaps.gap(k, m, np.concatenate([[0], 1 + at]))
        slope = np.zeros(robot.nq)
        slope[between[k, m]] = (tried[1:] - tried[0]) / SLIGHT
        # A joint at its limit cannot help.
        slope[((q + change >= upper) & (slope > 0.0)) | ((q + change <= lower) & (slope < 0.0))] = 0.0
        steep = float(slope @ slope)
        wanted = CLEAR - distance - float(slope @ change)
        if steep > 0.0 and wanted > 0.0:
            change = np.clip(q + change + slope * (wanted / steep), lower, upper) - q
    moved = np.clip(q + np.round(change, DECIMALS), lower, upper)
    closed, open_ = closed_rows(robot, moved[None])
    return q if open_ else closed[0]


def _limits(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every coordinate, no narrower than q; none where a joint has more than one."""
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start == 1:
            lower[joint.q_slice], upper[joint.q_slice] = joint.lower, joint.upper
    return np.minimum(lower, q), np.maximum(upper, q)
