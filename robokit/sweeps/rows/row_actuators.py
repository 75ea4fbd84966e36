"""From the parameters of rows to their actuators: gains, limits and targets, one set a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.driving.actuators import Actuator
from robokit.sim.driving.joint_values import by_joint, driven, label_of
from robokit.sim.driving.keyframes import Keyframes
from robokit.sweeps.rows.row_starts import normals

Values = Mapping[str, np.ndarray]

GAINS = {"kp": "kp", "kd": "kd", "gain": "kd"}
"""Parameter that is a factor of a gain."""

DRIVING = ("kp", "kd", "effort", "target", "target_noise")
"""Parameters, or beginnings of them, that change actuators."""


def driving(names: Any) -> list[str]:
    """Those of the names that change actuators."""
    return [name for name in names if name.partition(":")[0] in DRIVING]


def check_drives(robot: Robot, actuators: Sequence[Actuator], names: Sequence[str]) -> None:
    """Refuse parameters that change nothing of these actuators.

    Raises:
        ShapeError: there are no actuators, none has what the parameter changes, or its target changes with
            time.
    """
    for name in driving(names):
        head, _, joint = name.partition(":")
        if not actuators:
            raise ShapeError(f"{name}: there are no actuators; give actuators=rk.PD(...)")
        mine = [
            (k, one) for k, one in enumerate(actuators)
            if (not joint or joint in _names(robot, actuators, k)) and _has(one, head)
        ]  # fmt: skip
        if not mine:
            where = f" on joint {joint!r}" if joint else ""
            raise ShapeError(f"{name}: robot {robot.name!r} has no actuator{where} with such a value")
        moving = [k for k, one in mine if _moves(one)]
        if head == "target" and moving:
            raise ShapeError(
                f"{name}: the target of {label_of(actuators, moving[0])} changes with time; a sweep changes "
                "one that is constant"
            )
        if head == "target_noise" and any(_moves(one) and type(one).__name__ != "PD" for _, one in mine):
            raise ShapeError(f"{name}: expected constant targets of all but rk.PD")
        if head == "target_noise" and any(_moves(one) and _is_moving(one.feedforward) for _, one in mine):  # type: ignore[attr-defined]
            raise ShapeError(f"{name}: expected a constant feedforward where the target changes with time")


def change_with_time(actuators: Sequence[Actuator]) -> bool:
    """Whether any of their targets, velocities and feedforwards does."""
    names = ("target", "velocity", "feedforward")
    return any(_is_moving(getattr(one, name, None)) for one in actuators for name in names)


def row_actuators(
    robot: Robot, actuators: Sequence[Actuator], values: Values, q: np.ndarray, rows: np.ndarray, seed: int
) -> list[Actuator]:
    """The actuators of rows.

    Args:
        robot: the robot, without samples.
        actuators: of the sweep.
        values: of the parameters, (B,) each.
        q: configurations at the start, (B, nq).
        rows: their numbers, (B,).
        seed: of the sweep.

    Returns:
        as many actuators; their rotors are left out, which the robot has by now.
    """
    own = driving(values)
    found = []
    for k, one in enumerate(actuators):
        changes: dict[str, Any] = {"armature": 0.0}
        names = _names(robot, actuators, k)
        joints = [robot.joint(name) for name in names]
        if any(not of or of in names for of in (name.partition(":")[2] for name in own)):
            changes["joints"] = names
            for gain in one.gains:
                factor = _factors(GAINS[gain], names, values)
                if factor is not None:
                    base = by_joint(gain, getattr(one, gain), joints, robot.nv)
                    changes[gain] = base * factor
                elif isinstance(getattr(one, gain), Mapping):
                    changes[gain] = by_joint(gain, getattr(one, gain), joints, robot.nv)
            factor = _factors("effort", names, values)
            if factor is not None:
                limits = [joint.effort or math.inf for joint in joints]
                base = by_joint(
                    "effort", limits if one.effort is None else one.effort, joints, robot.nv, limits
                )
                endless = np.isinf(base)
                changes["effort"] = np.where(endless, math.inf, np.where(endless, 0.0, base) * factor)
            changes |= _targets(robot, one, names, values, q, rows, seed, changes)
        found.append(replace(one, **changes))
    return found


def _targets(
    robot: Robot,
    one: Actuator,
    names: Sequence[str],
    values: Values,
    q: np.ndarray,
    rows: np.ndarray,
    seed: int,
    changes: Mapping[str, Any],
) -> dict[str, Any]:
    """The targets of rows, where parameters change them."""
    B, kind = len(rows), type(one).__name__
    noise = values.get("target_noise") if kind != "Torque" else None
    if noise is None and not any(f"target:{name}" in values for name in names):
        return {}
    off = np.zeros((B, len(names)))
    if noise is not None:
        for j, name in enumerate(names):
            off[:, j] = noise * normals(seed, f"target_noise:{name}", rows, 1)[:, 0]
    if _moves(one):  # of rk.PD, as was checked: kp times what the target is off
        joints = [robot.joint(name) for name in names]
        kp = changes.get("kp", by_joint("kp", one.kp, joints, robot.nv))  # type: ignore[attr-defined]
        more = kp * off
        forward: Any = one.feedforward  # type: ignore[attr-defined]
        if isinstance(forward, Mapping):
            forward = [float(forward.get(name, 0.0)) for name in names]
        forward = np.asarray(forward, dtype=float)
        if forward.ndim and len(forward) != len(names):
            forward = forward[[joint.v_slice.start for joint in joints]]
        return {"feedforward": (forward + more)[None]}
    target = np.array(_constant(robot, one, names, q))
    for j, name in enumerate(names):
        if f"target:{name}" in values:
            target[:, j] = values[f"target:{name}"]
    return {"target": (target + off)[None]}


def _constant(robot: Robot, one: Actuator, names: Sequence[str], q: np.ndarray) -> np.ndarray:
    """The constant target of an actuator in each row, (B, n)."""
    value: Any = one.target  # type: ignore[attr-defined]
    position = type(one).__name__ == "PD"
    joints = [robot.joint(name) for name in names]
    columns = [(j.q_slice if position else j.v_slice).start for j in joints]
    base = np.zeros((len(q), len(names)))
    if position:  # a row that cannot be run has no start
        base = np.where(np.isfinite(q[:, columns]), q[:, columns], 0.0)
    if value is None:
        return base
    if isinstance(value, Mapping):
        base = base.copy()
        for name, number in value.items():
            base[:, list(names).index(name)] = float(number)
        return base
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        return np.full(base.shape, float(array))
    if array.shape[-1] != len(names):
        array = array[..., columns]
    return np.broadcast_to(array.reshape(-1, len(names)), base.shape)


def _names(robot: Robot, actuators: Sequence[Actuator], k: int) -> list[str]:
    return [joint.name for joint in driven(label_of(actuators, k), robot, actuators[k])]


def _has(one: Actuator, head: str) -> bool:
    """Whether a parameter changes something of an actuator."""
    if head in ("kp", "kd"):
        return any(GAINS[gain] == head for gain in one.gains)
    return head != "target_noise" or type(one).__name__ != "Torque"


def _moves(one: Actuator) -> bool:
    """Whether the target changes with time."""
    return _is_moving(one.target)  # type: ignore[attr-defined]


def _is_moving(value: Any) -> bool:
    if value is None or isinstance(value, Mapping):
        return False
    return isinstance(value, Keyframes) or np.ndim(value) > 1


def _factors(head: str, names: Sequence[str], values: Values) -> np.ndarray | None:
    """The factor of each joint in each row, (B, n); None where there is none."""
    everywhere = values.get(head)
    if everywhere is None and not any(f"{head}:{name}" in values for name in names):
        return None
    columns = []
    for name in names:
        column = values.get(f"{head}:{name}")
        if column is None:
            column = everywhere
        elif everywhere is not None:
            column = column * everywhere
        columns.append(column)
    known = next(column for column in columns if column is not None)
    return np.stack([np.ones(len(known)) if column is None else column for column in columns], axis=1)
