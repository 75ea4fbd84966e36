"""Which joints an actuator drives, and numbers by joint as they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.errors import ShapeError, UnknownName, shown
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.sim.driving.actuators import Actuator, Torque


def label_of(actuators: Sequence[Actuator], k: int) -> str:
    """Actuator k in messages."""
    kind = type(actuators[k]).__name__
    return f"actuators[{k}]: {kind}" if len(actuators) > 1 else kind


def by_joint(
    what: str, value: Any, joints: Sequence[Joint], nv: int, default: Sequence[float] | None = None
) -> np.ndarray:
    """Numbers of the driven joints, (n,) or (B, n); a mapping may leave out what has a default.

    Raises:
        UnknownName: a joint that is not one of these.
        ShapeError: a wrong shape, or a joint without a number.
    """
    names, n = tuple(joint.name for joint in joints), len(joints)
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                raise UnknownName("driven joint", name, names, f"({what})")
        given = dict(zip(names, default, strict=True)) if default is not None else {}
        given |= value
        for name in names:
            if name not in given:
                raise ShapeError(f"{what}: joint {name!r} is driven and has no value")
        value = [given[name] for name in names]
    array = real_array(what, value, f"(), ({n},) or (B, {n})")
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape[-1] == nv != n:
        array = array[..., [joint.v_slice.start for joint in joints]]
    if array.ndim > 2 or array.shape[-1] != n:
        raise ShapeError(f"{what}: expected shape (), ({n},) or (B, {n}), got {np.shape(value)}")
    return array


def with_rotors(robot: Robot, actuators: Sequence[Actuator]) -> Robot:
    """The robot with the inertias of its actuators' rotors on the diagonal of H; itself without any.

    They take the place of the joints' own armature.

    The same rotors give the same object, and with it the same machine code.

    Raises:
        UnknownName, ShapeError: as :class:`~robokit.sim.run.driven_joints.DrivenJoints`.
    """
    rotors: dict[int, float] = {}
    for k, actuator in enumerate(actuators):
        if not isinstance(actuator.armature, Mapping | np.ndarray | Sequence) and not actuator.armature:
            continue
        label = label_of(actuators, k)
        joints = driven(label, robot, actuator)
        what = f"{label}(armature=...)"
        found = by_joint(what, actuator.armature, joints, robot.nv, [0.0] * len(joints))
        if found.ndim > 1:
            raise ShapeError(f"{what}: expected one number a joint, got shape {found.shape}")
        rotors |= {joint.body: x for joint, x in zip(joints, found.tolist(), strict=True) if x}
    if not rotors:
        return robot
    tree = robot.tree
    own = tree.armature or ((), *((0.0,) * joint.kind.nv for joint in tree.joint[1:]))
    armature = [()] + [(rotors[i],) if i in rotors else own[i] for i in tree.outward()]
    variant = replace(tree, armature=tuple(armature))
    return robot.derived.get(
        ("rotors", variant.armature), lambda: replace(robot, tree=variant, shared_kernels={})
    )


def driven(label: str, robot: Robot, actuator: Actuator) -> list[Joint]:
    """The joints of an actuator: those named, those that its gains name, or all that can be driven."""
    named = next((g for name in actuator.gains if isinstance(g := getattr(actuator, name), Mapping)), None)
    names = actuator.joints if actuator.joints is not None else named
    if names is None and isinstance(actuator, Torque) and isinstance(actuator.target, Mapping):
        names = actuator.target
    if names is None:
        found = [j for j in robot.joints if _can_be_driven(robot, j)]
        if not found:
            raise ShapeError(f"{label}: robot {robot.name!r} has no joint of one degree of freedom")
        return found
    known = [joint.name for joint in robot.joints]
    out = []
    for name in names:
        if name not in known:
            raise UnknownName("joint that can be driven", name, known, f"in robot {robot.name!r} ({label})")
        joint = robot.joint(name)
        if not _can_be_driven(robot, joint):
            raise ShapeError(
                f"{label}: joint {shown(name)} is {joint.kind}; actuators drive joints of one degree of "
                "freedom, a controller or tau= the others"
            )
        out.append(joint)
    if not out:
        raise ShapeError(f"{label}(joints=...): expected at least one joint, got none")
    return out


def _can_be_driven(robot: Robot, joint: Joint) -> bool:
    kind = robot.tree.joint[joint.body].kind
    return kind.nv == 1 and kind.nq == 1
