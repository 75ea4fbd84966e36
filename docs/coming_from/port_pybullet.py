"""One task in PyBullet and in robokit: the forces of an arm's motion.

Run in tests/parity/test_ports.py.
"""

from __future__ import annotations

import numpy as np

MOTION = ([0.5, 0.4, -0.3, 0.8, 0.1, -0.6, 0.2], [0.1] * 7, [1.0] * 7)


def theirs(path: str) -> dict[str, np.ndarray]:
    """With PyBullet."""
    import pybullet as p

    server = p.connect(p.DIRECT)
    p.setGravity(0, 0, -9.81, physicsClientId=server)
    flags = p.URDF_USE_INERTIA_FROM_FILE
    arm = p.loadURDF(path, useFixedBase=True, flags=flags, physicsClientId=server)
    joints = range(p.getNumJoints(arm, physicsClientId=server))
    info = [p.getJointInfo(arm, k, physicsClientId=server) for k in joints]
    moving = [k for k in joints if info[k][2] != p.JOINT_FIXED]
    hand = next(k for k in joints if info[k][12] == b"gripper")
    q, v, a = MOTION
    for k, angle in zip(moving, q, strict=True):
        p.resetJointState(arm, k, angle, physicsClientId=server)
    tau = p.calculateInverseDynamics(arm, q, v, a, physicsClientId=server)
    M = p.calculateMassMatrix(arm, q, physicsClientId=server)
    place = p.getLinkState(arm, hand, computeForwardKinematics=True, physicsClientId=server)[4]
    p.disconnect(server)
    return {"tau": np.array(tau), "mass matrix": np.array(M), "hand": np.array(place)}


def here(path: str) -> dict[str, np.ndarray]:
    """With robokit."""
    import robokit as rk

    robot = rk.load_urdf(path)
    q, v, a = MOTION
    tau = rk.rnea(robot, q, v, a)
    H = rk.crba(robot, q)
    hand = rk.forward_kinematics(robot, q)["gripper"][1]
    return {"tau": tau, "mass matrix": H, "hand": hand}
