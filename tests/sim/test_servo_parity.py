"""An arm on position servos beside MuJoCo, whose Runge-Kutta method evaluates the servos in every stage."""

import dataclasses
import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.mjcf import to_mjcf

pytestmark = [pytest.mark.parity, pytest.mark.slow]

KP = np.array([400.0, 400.0, 200.0, 200.0, 100.0, 40.0, 40.0])
KD = np.array([40.0, 40.0, 15.0, 15.0, 5.0, 2.0, 1.0])
ROTOR = np.array([0.3, 0.3, 0.1, 0.1, 0.05, 0.02, 0.02])
GOAL = np.array([0.8, -0.6, 0.5, 1.0, -0.4, 0.7, 0.3])


def arm():
    robot = rk.load_urdf(m.ROBOTS / "arm.urdf")
    joints = tuple(
        dataclasses.replace(j, lower=-math.inf, upper=math.inf, friction=0.0) for j in robot.joints
    )
    return dataclasses.replace(robot, joints=joints)


def reference(robot, steps, dt, limit):
    """Positions after every step of MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    servos = "".join(
        f'<general joint="{j.name}" gainprm="{kp}" biasprm="0 {-kp} {-kd}" biastype="affine" '
        f'forcelimited="true" forcerange="{-limit} {limit}"/>'
        for j, kp, kd in zip(robot.joints, KP, KD, strict=True)
    )
    text = to_mjcf(robot).replace("</mujoco>", f"<actuator>{servos}</actuator></mujoco>")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep, model.opt.integrator = dt, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.dof_armature[:] = ROTOR
    model.jnt_actfrclimited[:] = False  # of the description; the limit here is that of the servos
    data = mujoco.MjData(model)
    data.ctrl[:] = GOAL
    out = [data.qpos.copy()]
    for _ in range(steps):
        mujoco.mj_step(model, data)
        out.append(data.qpos.copy())
    return np.array(out)


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
@pytest.mark.parametrize("limit", [1e4, 25.0])
def test_a_servo_driven_arm_moves_as_in_mujoco(name, limit):
    robot = arm()
    exact = reference(robot, 10000, 1e-4, limit)[::10]
    servo = rk.PD(KP, KD, target=GOAL, armature=ROTOR, effort=limit, max_velocity=math.inf)
    errors = []
    for dt, every in ((1e-3, 1), (5e-4, 2)):
        run = rk.simulate(robot, duration=1.0, dt=dt, integrator=name, actuators=servo, record_every=every)
        errors.append(np.abs(run.q - exact).max())
    assert np.abs(exact[-1]).max() > 0.5
    assert bool(run.summary["saturated"]) == (limit == 25.0)
    # Damping of the joints and limits that begin and end within a step are of first order.
    assert errors[1] < 0.6 * errors[0]
    assert errors[0] < 2e-3, errors
