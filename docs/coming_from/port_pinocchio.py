"""One task in Pinocchio and in robokit: a quadruped's base is pushed.

Run in tests/parity/test_ports.py.
"""

from __future__ import annotations

import numpy as np


def theirs(path: str) -> dict[str, np.ndarray]:
    """With Pinocchio."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    data, q, v = model.createData(), pin.neutral(model), np.zeros(model.nv)
    q[2] = 0.5  # position first, then the quaternion xyzw
    q[model.joints[model.getJointId("front_left_knee")].idx_q] = -0.4
    v[:3] = (1.0, 0.0, 0.0)  # linear part first
    foot = model.getFrameId("front_left_foot")
    J = pin.computeFrameJacobian(model, data, q, foot, pin.LOCAL_WORLD_ALIGNED)
    a = pin.aba(model, data, q, v, np.zeros(model.nv))
    pin.framesForwardKinematics(model, data, q)
    return {"foot": data.oMf[foot].translation, "velocity": (J @ v)[:3], "fall": a[:3]}


def here(path: str) -> dict[str, np.ndarray]:
    """With robokit."""
    import robokit as rk

    robot = rk.load_urdf(path, base="floating")
    q = robot.configuration(base_position=(0, 0, 0.5), joints={"front_left_knee": -0.4})
    v = np.zeros(robot.nv)
    v[3:6] = (1.0, 0.0, 0.0)  # angular part first
    J = rk.link_jacobian(robot, q, "front_left_foot")
    a = rk.aba(robot, q, v, np.zeros(robot.nv))
    foot = rk.forward_kinematics(robot, q)["front_left_foot"][1]
    return {"foot": foot, "velocity": (J @ v)[3:], "fall": a[3:6]}
