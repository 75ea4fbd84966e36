"""Configurations to start from: a robot just above the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.arguments import random_generator, real_array, real_number
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import ShapeError, WrongType
from robokit.model.arguments import not_a_robot
from robokit.model.robot import Robot
from robokit.sim.body_pairs import CollisionPairs, body_contacts
from robokit.sim.closing import closed
from robokit.sim.ground import Ground
from robokit.sim.starts.given_states import check_quaternions, numbers
from robokit.sim.starts.ground_gaps import lowered_base
from robokit.sim.starts.moved_apart import moved_apart
from robokit.spatial.sines import sine_and_cosine

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
    """A configuration above the ground, to be let go, with its loops closed.

    Its bodies do not overlap: where the random change of ``seed``, or limits that leave out the neutral
    configuration, bring some together, the joints between them are moved until they are apart. A ``q`` that
    is given without a seed keeps its joints.

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
