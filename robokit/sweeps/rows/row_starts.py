"""From the parameters of rows to the states in which they start.

Every number comes from the parameters by + - * / and square roots, and by sines and cosines of robokit's own
(robokit.spatial.sines). So a row starts with the same bits on every machine and in every chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robokit.dynamics.build import angle_bounds
from robokit.model.robot import Robot
from robokit.sim.closing import closed_rows
from robokit.sim.ground import Ground
from robokit.sim.starts.ground_gaps import ground_gaps, lowered, touching_shapes
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

Values = Mapping[str, np.ndarray]


def start_states(
    robot: Robot,
    starts: tuple[np.ndarray, np.ndarray],
    values: Values,
    rows: np.ndarray,
    seed: int,
    grounds: tuple[Ground | None, Ground | None],
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
    if ground is not None and touching_shapes(robot, ground) and (moved or standing or "height" in values):
        if "height" in values:
            gap: Any = values["height"]
        elif standing:
            gap = np.full(B, STANDS)
        else:  # as far from the ground as the configuration that was given
            gap = ground_gaps(robot, starts[0], grounds[0] or ground)[place]
        q[:, 6] = lowered(robot, q, ground, gap)
        q[~np.isfinite(q[:, 6])] = np.nan
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
