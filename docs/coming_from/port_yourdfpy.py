"""One task in yourdfpy and in robokit: where the hand is, and the masses.

Run in tests/parity/test_ports.py.
"""

from __future__ import annotations

import numpy as np


def theirs(path: str) -> dict[str, np.ndarray]:
    """With yourdfpy."""
    from yourdfpy import URDF

    urdf = URDF.load(path)
    urdf.update_cfg({"joint_2": 0.5, "joint_4": -1.0})
    pose = urdf.get_transform("gripper", "base")
    limits = [
        (urdf.joint_map[name].limit.lower, urdf.joint_map[name].limit.upper)
        for name in urdf.actuated_joint_names
    ]
    mass = sum(link.inertial.mass for link in urdf.link_map.values() if link.inertial)
    return {"R": pose[:3, :3], "p": pose[:3, 3], "limits": np.array(limits), "mass": np.array(mass)}


def here(path: str) -> dict[str, np.ndarray]:
    """With robokit."""
    import robokit as rk

    robot = rk.load_urdf(path)
    q = robot.configuration(joints={"joint_2": 0.5, "joint_4": -1.0})
    R, p = rk.forward_kinematics(robot, q)["gripper"]
    limits = [(joint.lower, joint.upper) for joint in robot.joints]
    mass = sum(link.mass for link in robot.links)
    return {"R": R, "p": p, "limits": np.array(limits), "mass": np.array(mass)}
