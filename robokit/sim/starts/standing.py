"""Configurations to start from: a robot just above the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.arguments import random_generator, real_array, real_number
from robokit.collision.detect_kernel import Arrays, Detector
from robokit.collision.scene import scene
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import ShapeError, WrongType
from robokit.model.arguments import not_a_robot
from robokit.model.robot import Robot
from robokit.sim.body_pairs import CollisionPairs, body_contacts
from robokit.sim.ground import Ground
from robokit.sim.loop_closure import closed, closed_rows
from robokit.sim.starts.ground_gaps import body_poses, lowered_base
from robokit.sim.starts.start_checks import check_quaternions, numbers
from robokit.spatial.scalars import sine_and_cosine

SHAKE = 0.02
"""Standard deviation of the random change of every joint [rad | m] and of the tilt [rad]."""


def standing_height(
    robot: Robot,
    q: Any = None,
    clearance: float = 0.0,
    ground_height: float = 0.0,
    ground: Ground | None = None,
) -> float:
    """Height of a floating base at which the lowest point of the robot is ``clearance`` above the ground.

    Args:
        robot: a robot with a floating base.
        q: configuration, (nq,), of which the base's own height does not matter; neutral by default.
        clearance: gap under the lowest point [m].
        ground_height: of a horizontal ground in the world [m].
        ground: instead of a height: the ground, onto which the robot is lowered until its first point is
            ``clearance`` away from it.

    Returns:
        z of the base in the world [m].

    Raises:
        WrongType: robot is no Robot.
        ShapeError: a fixed base, or another argument of the wrong shape or content.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> round(rk.standing_height(robot), 3)
        0.935
    """
    q = _start(robot, q)
    clearance = real_number("clearance", clearance)
    ground_height = real_number("ground_height", ground_height)
    if ground is not None and not isinstance(ground, Ground):
        raise WrongType("ground", ground, "rk.Ground(...) or None")
    return lowered_base(robot, q, Ground(height=ground_height) if ground is None else ground, clearance)


def standing_configuration(
    robot: Robot,
    height: float = 0.0,
    tilt: float | Sequence[float] = 0.0,
    seed: int | None = None,
    q: Any = None,
    ground_height: float = 0.0,
    ground: Ground | None = None,
    self_collision: CollisionPairs | bool | None = None,
) -> np.ndarray:
    """A configuration of a robot standing on or above the ground, with its loops closed.

    Its bodies do not overlap: if the random change of ``seed``, or limits that exclude the neutral
    configuration, make some overlap, the joints between them are moved until they are apart. A ``q`` without
    a seed keeps its joints.

    Args:
        robot: a robot with a floating base.
        height: gap between the ground and the lowest point of the robot [m].
        tilt: angle by which the robot leans forward, about its y axis [rad], or a unit quaternion wxyz
            that turns the whole robot.
        seed: seed of a small random change of joints and tilt, so that no two falls are alike; None for
            none.
        q: configuration to start from, (nq,); neutral by default.
        ground_height: of a horizontal ground in the world [m].
        ground: instead of a height: the ground, as in :func:`standing_height`.
        self_collision: which pairs of bodies, as in :func:`robokit.simulate`.

    Returns:
        q, (nq,).

    Raises:
        WrongType: robot is no Robot.
        ShapeError: a fixed base, another argument of the wrong shape or content, or loops that cannot be
            closed from q.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> q = rk.standing_configuration(robot, height=0.02, tilt=0.07)
        >>> q.shape
        (38,)
    """
    own = q is None or seed is not None
    q = _start(robot, q)
    height = real_number("height", height)
    turn = _quaternion(tilt)
    dv = np.zeros(robot.nv)
    if seed is not None:
        dv = random_generator("seed", seed).normal(0.0, SHAKE, robot.nv)
        dv[3:6] = 0.0
    q = robot.integrate(q, dv)
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start == 1:
            k = joint.q_slice.start
            q[k] = min(max(q[k], joint.lower), joint.upper)
    q = closed(robot, q, "q")
    # In the neutral configuration no pairs overlap.
    if own and not np.array_equal(q, robot.neutral()):
        q = moved_apart(robot, body_contacts(robot, self_collision, True).bodies, q)
    w, x, y, z = turn
    a, b, c, d = q[:4]
    q[:4] = (
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    )
    q[:4] /= np.linalg.norm(q[:4])
    q[6] = standing_height(robot, q, height, ground_height, ground)
    return q


def _quaternion(tilt: Any) -> tuple[float, ...]:
    angle_or_quat = real_array("tilt", tilt, "() or (4,)")
    if angle_or_quat.shape == ():
        angle = real_number("tilt", float(angle_or_quat))
        s, c = sine_and_cosine(0.5 * angle)
        return (c, 0.0, s, 0.0)
    quat = angle_or_quat
    if quat.shape != (4,) or not abs(float(quat @ quat) - 1.0) <= UNIT_QUATERNION_TOLERANCE:
        raise ShapeError(f"tilt: expected an angle [rad] or a unit quaternion wxyz, got {tilt!r}")
    return tuple(quat.tolist())


def _start(robot: Any, q: Any) -> np.ndarray:
    """A copy of q, or the neutral configuration, of a robot that can stand."""
    if not isinstance(robot, Robot):
        raise not_a_robot(robot)
    if robot.base != "floating":
        if any(joint.kind == "floating" for joint in robot.joints):
            raise ShapeError(
                f"robot {robot.name!r} is a world of robots, each with a base of its own; let each stand "
                "alone, and give their q one after the other: "
                "np.concatenate([rk.standing_configuration(a), rk.standing_configuration(b)])"
            )
        raise ShapeError(
            f"robot {robot.name!r} has a fixed base and cannot stand; load it with base='floating'"
        )
    q = numbers("q", robot.neutral() if q is None else q, robot.nq, robot)
    check_quaternions("q", robot, q)
    return q


# ---- bodies moved apart ------------------------------------------------------------------------------------


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
