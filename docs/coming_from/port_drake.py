"""One task in Drake and in robokit: what holds an arm, and how heavy its hand is.

Run in tests/parity/test_ports.py.
"""

from __future__ import annotations

import numpy as np


def theirs(path: str) -> dict[str, np.ndarray]:
    """With Drake."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import JacobianWrtVariable

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(path)
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.Finalize()
    context, world, hand = plant.CreateDefaultContext(), plant.world_frame(), plant.GetFrameByName("gripper")
    plant.GetJointByName("joint_2").set_angle(context, 0.5)
    holds = -plant.CalcGravityGeneralizedForces(context)
    M = plant.CalcMassMatrix(context)
    wrt = JacobianWrtVariable.kV
    J = plant.CalcJacobianSpatialVelocity(context, wrt, hand, np.zeros(3), world, world)
    pose = plant.EvalBodyPoseInWorld(context, plant.GetBodyByName("gripper"))
    return {"hand": pose.translation(), "holds": holds, "mobility": J @ np.linalg.solve(M, J.T)}


def here(path: str) -> dict[str, np.ndarray]:
    """With robokit."""
    import robokit as rk

    robot = rk.load_urdf(path)
    q = robot.configuration(joints={"joint_2": 0.5})
    holds = rk.gravity_forces(robot, q)
    H = rk.crba(robot, q)
    J = rk.link_jacobian(robot, q, "gripper")
    hand = rk.forward_kinematics(robot, q)["gripper"][1]
    return {"hand": hand, "holds": holds, "mobility": J @ np.linalg.solve(H, J.T)}
