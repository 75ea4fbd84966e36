"""A configuration near a given one in which no bodies of the robot overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robokit.collision.detect_kernel import Arrays, Detector
from robokit.collision.scene import scene
from robokit.model.robot import Robot
from robokit.sim.closing import closed_rows
from robokit.sim.starts.ground_gaps import body_poses

ROUNDS = 30
"""At most. Each takes the overlaps as linear in the joints; most starts of robots need two to four."""

DECIMALS = 6
"""Of the change of a coordinate [rad | m]: the last bits of distances differ between processors."""

SLIGHT = 1e-4
"""Change of a coordinate that tells the slope of a distance [rad | m]."""

CLEAR = 1e-3
"""Distance to which bodies that overlap are moved apart [m]."""


def moved_apart(robot: Robot, bodies: Sequence[tuple[int, int]], q: np.ndarray) -> np.ndarray:
    """The configuration q, with the joints moved that keep its bodies from overlapping.

    One overlap after the other is undone by the least change of the joints with one coordinate that lie
    between its bodies, inside their limits (Kaczmarz), until none is left. Loops stay closed.

    Args:
        robot: the robot.
        bodies: pairs that are to be apart.
        q: configuration, (nq,), which is returned as it is where nothing overlaps.

    Returns:
        (nq,); with the overlaps that are left where no way out of them was found.
    """
    if not bodies:
        return q
    detector = Detector(scene(robot, None, bodies).arrays, robot.nbodies + 1)
    lower, upper = _limits(robot, q)
    for _ in range(ROUNDS):
        R, p = body_poses(robot, q[None])
        found = detector.at(R[0], p[0])
        if not (found["contact_gap"] < 0.0).any():
            break
        q = _one_round(robot, q, found, lower, upper)
    return q


def _one_round(
    robot: Robot, q: np.ndarray, found: Arrays, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """q after one correction of every overlap, the deepest first."""
    gaps, change = found["contact_gap"], np.zeros(robot.nq)
    moving = [j.q_slice.start for j in robot.joints if j.q_slice.stop - j.q_slice.start == 1]
    rows = np.repeat(q[None], 1 + len(moving), axis=0)
    rows[1 + np.arange(len(moving)), moving] += SLIGHT
    R, p = body_poses(robot, rows)
    deepest: dict[int, int] = {}
    for k in np.argsort(gaps, kind="stable").tolist():
        if gaps[k] < 0.0:
            deepest.setdefault(int(found["contact_pair"][k]), k)
    for k in deepest.values():
        a, b = found["contact_bodies"][k].tolist()
        place, n = found["contact_place"][k], found["contact_frame"][k, 6:]
        apart = _moved(R[:, b], p[:, b], place) - _moved(R[:, a], p[:, a], place)
        slope = np.zeros(robot.nq)
        slope[moving] = ((apart[1:] - apart[0]) @ n) / SLIGHT
        # A joint at its limit cannot help.
        slope[((q + change >= upper) & (slope > 0.0)) | ((q + change <= lower) & (slope < 0.0))] = 0.0
        steep = float(slope @ slope)
        wanted = CLEAR - float(gaps[k]) - float(slope @ change)
        if steep > 0.0 and wanted > 0.0:
            change = np.clip(q + change + slope * (wanted / steep), lower, upper) - q
    moved = np.clip(q + np.round(change, DECIMALS), lower, upper)
    closed, open_ = closed_rows(robot, moved[None])
    return q if open_ else closed[0]


def _moved(R: np.ndarray, p: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Where a point of a body that is at a place in the first of its poses is in each, (B, 3)."""
    own = R[0].T @ (place - p[0])
    return R @ own + p


def _limits(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of every coordinate, no narrower than q; none where a joint has more than one."""
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start == 1:
            lower[joint.q_slice], upper[joint.q_slice] = joint.lower, joint.upper
    return np.minimum(lower, q), np.maximum(upper, q)
