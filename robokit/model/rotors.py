"""Rotors of motors: their inertia on a joint, set by hand, and by degree of freedom.

A rotor of inertia I behind a gear of ratio n turns n times as fast as its joint. It adds n^2 I to the joint's
own entry on the diagonal of H. Spins about axes that the links turn are left out, and so are the rotors'
weights, which belong to the links' own.

Source: RBDA section 9.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.errors import ModelError, UnknownName, WrongType
from robokit.model.arguments import not_negative
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot


def replace_armature(robot: Robot, armature: Mapping[str, Any] | float) -> Robot:
    """The robot with other rotor inertias on its joints.

    Args:
        robot: the robot.
        armature: {joint: inertia of its rotors as the joint feels it, gear ratio squared included}
            [kg m^2 | kg], for each of the joint's velocities; joints that are not named keep theirs. Or one
            number for all joints of one degree of freedom.

    Raises:
        UnknownName: no such joint.
        ModelError: a negative number or none, or a joint that does not move.
        WrongType: neither a mapping nor a number.

    Example:
        >>> from robokit.model import replace_armature
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> geared = replace_armature(robot, {"upper_joint": 0.5})
        >>> (rk.crba(geared, [0, 0]) - rk.crba(robot, [0, 0])).round(6)
        array([[0.5, 0. ],
               [0. , 0. ]])
    """
    check_robot(robot)
    moving = {joint.name: joint for joint in robot.body_joints}
    tree = robot.tree
    if isinstance(armature, Mapping):
        for name in armature:
            if name not in moving:
                raise UnknownName("joint that moves", name, moving, f"in robot {robot.name!r}")
        given = {name: not_negative(f"armature of joint {name!r}", x) for name, x in armature.items()}
    elif isinstance(armature, int | float | np.number) and not isinstance(armature, bool):
        number = not_negative("armature", armature)
        given = {name: number for name, joint in moving.items() if tree.joint[joint.body].kind.nv == 1}
    else:
        raise WrongType("armature", armature, "a number, or a mapping of joint names to numbers")
    if robot.base == "floating" and given.get(robot.body_joints[0].name):
        raise ModelError(f"joint {robot.body_joints[0].name!r} is the floating base, which no motor drives")

    def changed(joint: Joint) -> Joint:
        return replace(joint, armature=given.get(joint.name, joint.armature))

    rows = [(changed(joint).armature,) * tree.joint[joint.body].kind.nv for joint in robot.body_joints]
    return replace(
        robot,
        tree=replace(tree, armature=((), *rows) if any(map(any, rows)) else ()),
        joints=tuple(map(changed, robot.joints)),
        mimic_joints=tuple(map(changed, robot.mimic_joints)),
        shared_kernels={},
    )


def armature_by_dof(robot: Robot) -> np.ndarray:
    """What the rotors add to the diagonal of H, (nv,) [kg m^2 | kg].

    The rotors of coupled mimic joints count at the joint that they follow.

    Example:
        >>> from robokit.model import armature_by_dof, replace_armature
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> armature_by_dof(replace_armature(robot, {"upper_joint": 0.5}))
        array([0.5, 0. ])
    """
    found = np.zeros(robot.nv)
    tree = robot.tree
    flat = [x for row in tree.armature for x in row]
    for at, x in enumerate(flat):
        k, m = (at, 1.0) if tree.coupling is None else tree.coupling.v_from[at]
        if k >= 0:
            found[k] += m * m * x
    return found
