"""Mistakes over the origins and axes of joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from mutations.mutation import Mutant, Mutation, angles, movable, shuffled, with_joint
from robokit.urdf.description import Origin, RobotDescription


def _joints(wrong: Callable, fixed_too: bool = True) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        joints = [j for j in robot.joints if j.type != "floating"] if fixed_too else movable(robot)
        for joint in shuffled(joints, rng):
            changed = wrong(joint, robot)
            if changed is None:
                continue
            b = with_joint(robot, joint.name, **changed)
            after = next(j for j in b.joints if j.name == joint.name)
            if _moved(joint, after):
                yield Mutant(joint.name, b)

    return make


def _moved(a, b) -> bool:
    R, S = a.origin.rotation(), b.origin.rotation()
    p, q = np.array(a.origin.xyz), np.array(b.origin.xyz)
    if np.abs(R - S).max() > 1e-3 or np.abs(p - q).max() > 1e-3:
        return True
    x, y = np.array(a.axis), np.array(b.axis)
    return bool(
        a.axis != b.axis
        and (
            np.abs(x / np.linalg.norm(x) - y / np.linalg.norm(y)).max() > 1e-3
            or abs(np.linalg.norm(x) - np.linalg.norm(y)) > 0.1
        )
    )


def _set(joint, xyz=None, rpy=None, R=None):
    o = joint.origin
    xyz = o.xyz if xyz is None else tuple(map(float, xyz))
    if R is not None:
        rpy = angles(R)
    if rpy is None:
        return {"origin": o._replace(xyz=xyz)}
    return {"origin": Origin(xyz, tuple(map(float, rpy)), None, o.line)}


def _rotated(joint):
    return np.abs(joint.origin.rotation() - np.eye(3)).max() > 1e-3


def _rotation_lost(joint, robot):
    return _set(joint, rpy=(0, 0, 0)) if _rotated(joint) else None


def _rotation_twice(joint, robot):
    R = joint.origin.rotation()
    return _set(joint, R=R @ R)


def _rotation_inverted(joint, robot):
    return _set(joint, R=joint.origin.rotation().T)


def _degrees(joint, robot):
    return None if joint.origin.quat_xyzw else _set(joint, rpy=[math.radians(x) for x in joint.origin.rpy])


def _other_order(joint, robot):
    return None if joint.origin.quat_xyzw else _set(joint, rpy=joint.origin.rpy[::-1])


def _position_turned(joint, robot):
    return _set(joint, joint.origin.rotation() @ np.array(joint.origin.xyz))


def _position_lost(joint, robot):
    return _set(joint, (0, 0, 0))


def _position_twice(joint, robot):
    return _set(joint, 2 * np.array(joint.origin.xyz))


def _position_negated(joint, robot):
    return _set(joint, -np.array(joint.origin.xyz))


def _position_in_mm(joint, robot):
    return _set(joint, 0.001 * np.array(joint.origin.xyz))


def _mirrored(joint, robot):
    x, y, z = joint.origin.xyz
    return _set(joint, (x, -y, z))


def _origin_lost(joint, robot):
    if not _rotated(joint) or np.abs(joint.origin.xyz).max() < 1e-3:
        return None
    return {"origin": Origin(line=joint.origin.line)}


def _zero_moved(joint, robot):
    if joint.type == "prismatic":
        shift = joint.origin.rotation() @ np.array(joint.axis) / np.linalg.norm(joint.axis)
        return _set(joint, np.array(joint.origin.xyz) + 0.05 * shift)
    x = np.array(joint.axis) / np.linalg.norm(joint.axis)
    K = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
    turn = np.eye(3) + math.sin(0.4) * K + (1 - math.cos(0.4)) * K @ K
    return _set(joint, R=joint.origin.rotation() @ turn)


def _axis_flipped(joint, robot):
    return {"axis": tuple(-x for x in joint.axis)}


def _axis_longer(joint, robot):
    return {"axis": tuple(2.0 * x for x in joint.axis)}


def _axis_default(joint, robot):
    return {"axis": (1.0, 0.0, 0.0)}


def _axis_in_parent(joint, robot):
    """The axis expressed in the parent's frame."""
    return {"axis": tuple(map(float, joint.origin.rotation().T @ np.array(joint.axis)))}


def _axis_permuted(joint, robot):
    x, y, z = joint.axis
    return {"axis": (y, z, x)}


def _axis_snapped(joint, robot):
    x = np.array(joint.axis)
    k = int(np.abs(x).argmax())
    y = np.zeros(3)
    y[k] = math.copysign(1.0, x[k])
    return {"axis": tuple(map(float, y))}


PLACEMENTS = [
    Mutation("origin-rotation-lost", _joints(_rotation_lost)),
    Mutation("origin-rotation-twice", _joints(_rotation_twice)),
    Mutation("origin-rotation-inverted", _joints(_rotation_inverted)),
    Mutation("origin-degrees", _joints(_degrees)),
    Mutation("origin-rotation-convention", _joints(_other_order)),
    Mutation("origin-position-turned", _joints(_position_turned)),
    Mutation("origin-position-lost", _joints(_position_lost)),
    Mutation("origin-position-twice", _joints(_position_twice)),
    Mutation("origin-position-inverted", _joints(_position_negated)),
    Mutation("origin-units", _joints(_position_in_mm)),
    Mutation("origin-mirrored", _joints(_mirrored)),
    Mutation("origin-lost", _joints(_origin_lost)),
    Mutation("zero-position", _joints(_zero_moved, False)),
    Mutation("axis-flipped", _joints(_axis_flipped, False)),
    Mutation("axis-length", _joints(_axis_longer, False), mjcf=False),
    Mutation("axis-default", _joints(_axis_default, False)),
    Mutation("axis-frame", _joints(_axis_in_parent, False)),
    Mutation("axis-permuted", _joints(_axis_permuted, False)),
    Mutation("axis-snapped", _joints(_axis_snapped, False)),
]
