"""Where some accelerations are given and some forces: prescribed joints, and bases that nothing drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.dynamics.choices import joint_names
from robokit.dynamics.devices import on_device
from robokit.dynamics.run import FExt, accelerations, dtype_of, run, with_forces
from robokit.dynamics.singular import check_inertia
from robokit.model.robot import Robot, check_robot

ENDLESS = 1e9
"""Rotor inertia of a joint that no force moves [kg m^2 | kg]."""

__all__ = ["floating_base_forces", "floating_base_inverse_dynamics", "hybrid_dynamics"]


def hybrid_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    a: Any,
    prescribed: Sequence[str] = (),
    f_ext: FExt = None,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Joint forces and accelerations where some joints have the one given and some the other.

    Every set of prescribed joints has machine code of its own: none is forward dynamics, all is inverse
    dynamics, all but the floating base is :func:`floating_base_inverse_dynamics`.

    Source: RBDA table 9.2.  Cost: O(n); O(n d^2) for robots with coupled joints.

    Args:
        robot: the robot.
        q, v, f_ext, engine, dtype, reproducible, device: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv); those of prescribed joints do not matter.
        a: accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv); those of the other joints do not matter.
        prescribed: names of the joints whose accelerations are given.
        out: two arrays to write to.

    Returns:
        (tau, a), both complete, (nv,) or (B, nv) each: ``rnea(robot, q, v, a, f_ext) == tau``.

    Raises:
        UnknownName: no such joint.
        SingularInertia: a joint whose force is given moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> given = ["upper_joint"]
        >>> tau, a = rk.hybrid_dynamics(robot, [0.5, 0.2], [0, 0], [0, 0], [1.0, 0], given)
        >>> tau.round(3), a.round(3)  # the force of the first joint, the acceleration of the second
        (array([2.276, 0.   ]), array([  1.   , -15.302]))
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    given = tuple(prescribed) if prescribed.__class__ is list else prescribed
    try:
        names = robot.derived.get(("prescribed", given), lambda: _prescribed(robot, given))
    except TypeError:  # something among them that is no name
        names = _prescribed(robot, given)
    if f_ext is not None:
        dtype = dtype_of(dtype, out, q, v, tau, a, f_ext)
    name, forces = with_forces("hybrid_dynamics", robot, q, f_ext, engine, reproducible)
    return accelerations(robot, (name, names), out, engine, dtype, reproducible, q, v, tau, a, *forces)


def floating_base_inverse_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    a_joints: Any,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """How a floating base answers to given joint accelerations, and the joint forces that they need.

    Nothing acts on the base but its joints and gravity: a satellite with arms, a robot in the air.

    Source: RBDA section 9.5, table 9.6.  Cost: O(n).

    Args:
        robot: a robot on a floating base.
        q, v, engine, dtype, reproducible, device: as in :func:`rnea`.
        a_joints: accelerations of all joints but the base [rad/s^2 | m/s^2], (nv - 6,) or (B, nv - 6).
        out: two arrays to write to.

    Returns:
        (a_base, tau): the base's acceleration [alpha; a] in base axes, as in the first six entries of a,
        (6,) or (B, 6), and the forces of the other joints [N m | N], (nv - 6,) or (B, nv - 6).

    Raises:
        ModelError: the robot's base is fixed.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> a_base, tau = rk.floating_base_inverse_dynamics(robot, robot.neutral(), np.zeros(8), [1.0, 0.0])
        >>> bool(np.isclose(a_base[5], -9.81))  # it falls, whatever its joints do
        True
        >>> same = rk.rnea(robot, robot.neutral(), np.zeros(8), [*a_base, 1.0, 0.0])
        >>> np.allclose(same, [0, 0, 0, 0, 0, 0, *tau])
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return accelerations(
        robot, "floating_base_inverse_dynamics", out, engine, dtype, reproducible, q, v, a_joints
    )


def floating_base_forces(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """The force that a motion needs on a floating base from outside: ground, tether or thrusters.

    It is the first six entries of :func:`rnea`, the only ones that no motor can give; where it is zero, the
    joints make the motion alone. The sum of all contact forces must equal it.

    Source: RBDA section 9.3.  Cost: O(n).

    Args:
        robot: a robot on a floating base.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [n; f] on the base about its origin, in base axes [N m; N], (6,) or (B, 6).

    Raises:
        ModelError: the robot's base is fixed.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> force = rk.floating_base_forces(robot, robot.neutral(), np.zeros(8), np.zeros(8))
        >>> round(float(force[5]), 3), round(robot.total_mass * 9.81, 3)  # its weight
        (41.202, 41.202)
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "floating_base_forces", out, engine, dtype, reproducible, q, v, a)


def _prescribed(robot: Robot, names: Sequence[str]) -> tuple[str, ...]:
    found = joint_names(robot, names)
    # A joint whose acceleration is given is one with an endless rotor: it needs no inertia behind it.
    tree = robot.tree
    given = {robot.joint(name).body for name in found}
    own = tree.armature or tuple((0.0,) * joint.kind.nv for joint in tree.joint)
    rotors = tuple((ENDLESS,) * len(row) if i in given else row for i, row in enumerate(own))
    check_inertia(replace(robot, tree=replace(tree, armature=rotors)))
    return found
