"""From the parameters of rows to the states in which they start.

Every number comes from the parameters by + - * / and square roots, and by sines and cosines of robokit's own
(robokit.spatial.sines). So a row starts with the same bits on every machine and in every chunk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from robokit.dynamics.build import angle_bounds
from robokit.model.robot import Robot
from robokit.sim.closing import closed_rows
from robokit.sim.ground import Ground
from robokit.sim.ground.solids import Hull
from robokit.sim.run.ground_gaps import CLOSE, row_gaps
from robokit.sim.shapes.contact_points import ContactPoints
from robokit.spatial.rotation import quat_multiply, quat_normalized, quat_wxyz_to_rotation
from robokit.spatial.scalars import cos, sin
from robokit.spatial.vector3 import Vector3
from robokit.sweeps.draws.normal_quantile import normal_quantile
from robokit.sweeps.draws.random_streams import uniforms

LEANING = ("tilt", "yaw", "direction")
"""Parameters that turn the robot."""

VELOCITIES = ("speed", "spin", *(f"{what}_{x}" for what in ("velocity", "angular_velocity") for x in "xyz"))

STANDS = 0.02
"""Gap under a robot that starts standing, where no height is given [m]: as of ``robokit fall``."""

DEEPEST = 1e6
"""A robot that has been lowered so far has nothing under it [m]."""

MOST_ROUNDS = 1000
"""Of lowering a robot onto an uneven ground."""

Values = Mapping[str, np.ndarray]


def start_states(
    robot: Robot,
    starts: tuple[np.ndarray, np.ndarray],
    values: Values,
    rows: np.ndarray,
    seed: int,
    grounds: tuple[Ground | None, Ground | None],
    points: ContactPoints | None,
    standing: bool,
    broken: dict[int, str],
) -> tuple[np.ndarray, np.ndarray]:
    """The states in which rows start, (B, nq) and (B, nv).

    Args:
        robot: the robot, without samples.
        starts: configurations and velocities to choose from, (S, nq) and (S, nv).
        values: of the parameters, (B,) each.
        rows: their numbers, (B,).
        seed: of the sweep.
        grounds: of the sweep, and of the rows, which may have tilts of their own; or None twice.
        points: the robot's contact points.
        standing: whether the starts are standing configurations: their height is not a wish.
        broken: gets the reasons why rows cannot be run, by their place.

    A row under whose robot there is nothing has NaN.
    """
    B = len(rows)
    place = np.asarray(values.get("start", np.zeros(B))).astype(int)
    q, v = np.array(starts[0][place]), np.array(starts[1][place])
    _move_joints(robot, q, v, values, rows, seed)
    q = _that_can_be_run(robot, q, broken)
    if robot.base != "floating":
        return q, v
    turned = any(name in values for name in LEANING)
    if turned:
        _lean(q, values)
    ground = grounds[1]
    moved = turned or "ground_tilt" in values
    moved |= any(name.partition("_")[0].partition(":")[0] == "joint" for name in values)
    if (
        points is not None
        and ground is not None
        and len(points)
        and (moved or standing or "height" in values)
    ):
        if "height" in values:
            gap: Any = values["height"]
        elif standing:
            gap = np.full(B, STANDS)
        else:  # as far from the ground as the configuration that was given
            gap = _gaps(robot, starts[0], points, grounds[0] or ground)[place]
        _lower(robot, q, points, ground, gap)
    elif "height" in values:
        q[:, 6] = q[:, 6] + values["height"]
    if any(name in values for name in VELOCITIES):
        _add_velocity(q, v, values)
    return q, v


def normals(seed: int, name: str, rows: np.ndarray, count: int) -> np.ndarray:
    """Standard normal variables of rows, (B, count)."""
    return normal_quantile(uniforms(seed, name, rows, count))


def _move_joints(
    robot: Robot, q: np.ndarray, v: np.ndarray, values: Values, rows: np.ndarray, seed: int
) -> None:
    """Joints at given coordinates and velocities, and their random changes."""
    for name, given in values.items():
        kind, _, joint_name = name.partition(":")
        if kind == "joint":
            q[:, robot.joint(joint_name).q_slice.start] = given
        elif kind == "joint_velocity":
            v[:, robot.joint(joint_name).v_slice.start] = given
    own = [joint for joint in robot.joints if robot.base != "floating" or joint.body != 1]
    if "joint_noise" in values:
        size = values["joint_noise"]
        for joint in own:
            change = normals(
                seed, f"joint_noise:{joint.name}", rows, joint.v_slice.stop - joint.v_slice.start
            )
            dv = [size * column for column in change.T]
            at = list(q[:, joint.q_slice].T)
            after = robot.tree.joint[joint.body].integrate(at, dv)
            if len(after) == 1:
                low, high = robot.position_range(joint)
                # A start beyond its limits stays where it is.
                after = [np.minimum(np.maximum(after[0], np.minimum(low, at[0])), np.maximum(high, at[0]))]
            q[:, joint.q_slice] = np.stack(after, axis=1)
    if "joint_velocity_noise" in values:
        size = values["joint_velocity_noise"]
        for joint in own:
            part = joint.v_slice
            change = normals(seed, f"joint_velocity_noise:{joint.name}", rows, part.stop - part.start)
            v[:, part] = v[:, part] + size[:, None] * change


def _that_can_be_run(robot: Robot, q: np.ndarray, broken: dict[int, str]) -> np.ndarray:
    """Starts (B, nq) with their loops closed, and NaN where that cannot be done, or a number is too large.

    ``broken`` gets the reasons, by the row's place.
    """
    for place, most in angle_bounds(robot):
        for row in np.flatnonzero(np.abs(q[:, place]) > most).tolist():
            broken[row] = f"an angle of {q[row, place]:.3g} rad at its start is beyond {most:.3g}"
            q[row] = np.nan
    q, why = closed_rows(robot, q)
    for row, reason in why.items():
        broken[row] = reason.partition("; start closer")[0].removeprefix("start: ")
        q[row] = np.nan
    return q


def _lean(q: np.ndarray, values: Values) -> None:
    """Turn the base by yaw about the vertical, then by tilt about the horizontal axis across direction."""
    zero = np.zeros(len(q))
    half_yaw, half = 0.5 * values.get("yaw", zero), 0.5 * values.get("tilt", zero)
    where = values.get("direction", zero)
    turn = [cos(half), -sin(where) * sin(half), cos(where) * sin(half), zero]
    turn = list(quat_multiply(turn, [cos(half_yaw), zero, zero, sin(half_yaw)]))
    q[:, :4] = np.stack(quat_normalized(quat_multiply(turn, list(q[:, :4].T))), axis=1)


def _add_velocity(q: np.ndarray, v: np.ndarray, values: Values) -> None:
    """Add a velocity in world axes to that of the base."""
    zero = np.zeros(len(q))

    def given(name: str) -> np.ndarray:
        return values.get(name, zero)

    where, speed = given("direction"), given("speed")
    turning = [given(f"angular_velocity_{x}") for x in "xyz"]
    moving = [given(f"velocity_{x}") for x in "xyz"]
    turning[2] = turning[2] + given("spin")
    moving[0], moving[1] = moving[0] + speed * cos(where), moving[1] + speed * sin(where)
    R = quat_wxyz_to_rotation(list(q[:, :4].T))
    in_base = [*R.transpose_apply(Vector3(*turning)), *R.transpose_apply(Vector3(*moving))]
    v[:, :6] = v[:, :6] + np.stack(np.broadcast_arrays(*in_base), axis=1)


def _gaps(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground) -> np.ndarray:
    """Distance of the nearest contact point of each row from the ground, (B,) [m]."""
    return row_gaps(robot, q, points, ground).min(axis=1)


def _lower(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground, gap: np.ndarray) -> None:
    """Move each row along the vertical until its nearest point is so far from the ground."""
    if ground.only_plane:
        up = ground.up[2]
        q[:, 6] = q[:, 6] + (gap - _gaps(robot, q, points, ground)) / up
        return
    q[:, 6] = _over_all(robot, q, points, ground, gap)
    waiting = np.arange(len(q))
    for _ in range(MOST_ROUNDS):
        # No point meets the ground before the robot has gone its distance from it.
        step = _gaps(robot, q[waiting], points, ground) - gap[waiting]
        q[waiting, 6] = q[waiting, 6] - step
        waiting = waiting[~(np.abs(step) < CLOSE) & (q[waiting, 6] > -DEEPEST)]
        if not len(waiting):
            break
    q[q[:, 6] <= -DEEPEST] = np.nan


def _over_all(
    robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground, gap: np.ndarray
) -> np.ndarray:
    """Heights of the base from which all of the ground is below every point, (B,) [m]."""
    tree = robot.tree
    path = [0.0] * (tree.n + 1)
    for i in tree.outward():
        x, y, z = tree.XT[i].r if i > 1 else (0.0, 0.0, 0.0)
        path[i] = path[tree.parent[i]] + math.sqrt(x * x + y * y + z * z)
    away = 0.0
    for i, (center, radius) in zip(points.body, (shape.reach() for shape in points.shape), strict=True):
        away = max(away, path[i] + math.sqrt(sum(x * x for x in center)) + float(radius))
    tops = [np.zeros(len(q))]
    if ground.plane:
        n = ground.up
        tops.append(ground.height - (n[0] * q[:, 4] + n[1] * q[:, 5]) / n[2] + (away + gap) / n[2])
    if ground.terrain is not None:
        tops.append(float(ground.terrain.heights.max()) + ground.terrain.origin[2] + away + gap)
    for solid in ground.shapes:
        tops.append(float(solid.placement.position[2]) + _reach(solid.geometry) + away + gap)
    top = tops[0] if len(tops) == 1 else tops[1]
    for other in tops[2:]:
        top = np.maximum(top, other)
    return top


def _reach(shape: Any) -> float:
    """Radius of a ball about its centre that holds a solid [m]."""
    if isinstance(shape, Hull):
        return max(math.sqrt(x * x + y * y + z * z) for x, y, z in shape.points.tolist()) + shape.error
    if hasattr(shape, "size"):
        x, y, z = shape.size
        return 0.5 * math.sqrt(x * x + y * y + z * z)
    return float(shape.radius) + 0.5 * float(getattr(shape, "length", 0.0))
