"""One task in MuJoCo and in robokit: a double pendulum swings for a second.

Run in tests/parity/test_ports.py.
"""

from __future__ import annotations

import numpy as np


def theirs(path: str) -> dict[str, np.ndarray]:
    """With MuJoCo."""
    import mujoco

    spec = mujoco.MjSpec.from_file(path)
    spec.option.integrator, spec.option.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONTACT
    model = spec.compile()
    data = mujoco.MjData(model)
    data.joint("upper_joint").qpos = 1.0
    for _ in range(1000):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return {"q": data.qpos.copy(), "v": data.qvel.copy(), "bob": data.body("lower").xpos.copy()}


def here(path: str) -> dict[str, np.ndarray]:
    """With robokit."""
    import robokit as rk

    robot = rk.load_urdf(path)
    q = robot.configuration(joints={"upper_joint": 1.0})
    run = rk.simulate(robot, q, duration=1.0, dt=1e-3)
    poses = rk.forward_kinematics(robot, run.q[-1])
    return {"q": run.q[-1], "v": run.v[-1], "bob": poses["lower"][1]}
