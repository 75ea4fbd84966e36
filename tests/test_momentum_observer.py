"""Forces from outside that are known, found from positions, velocities and motor torques alone."""

from dataclasses import replace

import numpy as np
import pytest

import robokit as rk

FORCE, POINT = np.array([12.0, -7.0, 20.0]), (0.02, 0.0, 0.05)


def without_stiction(robot):
    """A robot at rest does not say how much of a force its dry friction holds."""
    return replace(robot, joints=tuple(replace(joint, friction=0.0) for joint in robot.joints))


@pytest.fixture(scope="module")
def arm():
    return without_stiction(rk.load_urdf(rk.find_robot("arm")))


@pytest.fixture(scope="module")
def pushed(arm):
    """An arm that moves by servos and is pushed at its gripper from 0.2 s on."""
    q0 = np.array([0.3, 0.6, -0.2, -1.2, 0.4, 0.9, 0.1])
    servos = rk.PD(kp=300, kd=30, target=q0 + 0.3, effort=np.inf)
    push = rk.Push("gripper", FORCE, POINT, start=0.2, duration=9.0)
    return rk.simulate(arm, q0, duration=0.5, dt=2.5e-4, record_every=4, pushes=push, actuators=servos)


def test_a_push_of_known_size_is_found_to_two_percent(arm, pushed):
    gain = 200.0
    found = rk.external_torques(pushed, gain)
    force = rk.external_force(arm, pushed.q, found, "gripper", point=POINT)
    size = np.linalg.norm(FORCE)
    settled = pushed.t > 0.2 + 6.0 / gain
    assert np.linalg.norm(force[settled] - FORCE, axis=1).max() < 0.02 * size
    assert np.linalg.norm(force[pushed.t < 0.199], axis=1).max() < 0.02 * size
    # it rises with the time constant of the gain
    risen = force[np.searchsorted(pushed.t, 0.2 + 1.0 / gain)] @ FORCE / size**2
    assert abs(risen - (1.0 - np.exp(-1.0))) < 0.03


def test_step_by_step_it_is_the_same(arm, pushed):
    whole = rk.external_torques(pushed, 80.0)
    observer = rk.MomentumObserver(arm, 80.0)
    steps = [
        observer.step(q, v, tau, 1e-3)
        for q, v, tau in zip(pushed.q, pushed.v, pushed.actuator_force, strict=True)
    ]
    assert np.allclose(steps, whole, atol=1e-9)
    observer.reset()
    assert not observer.step(pushed.q[0], pushed.v[0], pushed.actuator_force[0], 1e-3).any()


@pytest.mark.parametrize("gain", [20.0, 1e5])
def test_the_residual_is_the_force_behind_a_low_pass(gain):
    """dr/dt = gain (tau_ext - r), in a fine motion that obeys the equations of motion, at any gain."""
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    t = np.arange(0.0, 1.0, 1e-3)
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)
    v = np.stack([3 * np.cos(3 * t), -2 * np.sin(2 * t)], axis=1)
    a = np.stack([-9 * np.sin(3 * t), -4 * np.cos(2 * t)], axis=1)
    outside = np.stack([np.sin(5 * t), np.where(t > 0.5, 1.0, 0.0)], axis=1)
    damping, friction = (np.array([getattr(j, k) for j in robot.joints]) for k in ("damping", "friction"))
    motors = rk.rnea(robot, q, v, a) + damping * v + friction * np.sign(v) - outside
    found = rk.external_torques(gain=gain, robot=robot, t=t, q=q, v=v, tau=motors)
    wanted = np.zeros_like(found)
    for k in range(1, len(t)):
        mean = 0.5 * (outside[k] + outside[k - 1])
        wanted[k] = mean + (wanted[k - 1] - mean) * np.exp(-gain * 1e-3)
    assert np.abs(found - wanted).max() < 2e-3


def test_the_wrench_on_a_floating_base():
    robot = without_stiction(rk.load_urdf(rk.find_robot("double_pendulum"), base="floating"))
    root = robot.joints[0].child_link
    push = rk.Push(root, FORCE, POINT, start=0.05, duration=9.0)
    run = rk.simulate(
        robot, v0=[1, -2, 1, 0.3, 0.2, 0.1, 1, -1], duration=0.2, dt=5e-4, record_every=1, pushes=push,
        actuators=rk.PD(kp=20, kd=1),
    )  # fmt: skip
    found = rk.external_torques(run, 300.0)
    late = run.t > 0.1
    axes = rk.forward_kinematics(robot, run.q)[root][0]
    in_base = np.einsum("tji,j->ti", axes, FORCE)
    assert np.abs(found[late, 3:6] - in_base[late]).max() < 0.02 * np.linalg.norm(FORCE)
    assert np.abs(found[late, :3] - np.cross(POINT, in_base[late])).max() < 0.02 * np.linalg.norm(FORCE)
    force = rk.external_force(robot, run.q, found, root, point=POINT)
    assert np.linalg.norm(force[late] - FORCE, axis=1).max() < 0.02 * np.linalg.norm(FORCE)
    wrench = rk.external_force(robot, run.q, found, root, point=POINT, moment=True)
    assert np.abs(wrench[late] - [0, 0, 0, *FORCE]).max() < 0.02 * np.linalg.norm(FORCE)


def test_forces_on_several_links(arm):
    rng = np.random.default_rng(0)
    q = arm.random_configuration(rng, 20)
    forces = rng.normal(size=(20, 2, 3))
    J = [
        rk.link_jacobian(arm, q, link, at=at)[:, 3:]
        for link, at in (("forearm", (0, 0, 0.2)), ("gripper", POINT))
    ]
    tau = sum(np.einsum("tij,ti->tj", jacobian, forces[:, k]) for k, jacobian in enumerate(J))
    found = rk.external_force(arm, q, tau, ["forearm", "gripper"], point=[(0, 0, 0.2), POINT])
    assert found.shape == (20, 2, 3) and np.allclose(found, forces, atol=1e-6)


def test_arguments_are_checked(arm, pushed):
    with pytest.raises(rk.ShapeError, match="gain"):
        rk.MomentumObserver(arm, 0.0)
    with pytest.raises(rk.ShapeError, match=r"tau: expected shape \(7,\)"):
        rk.MomentumObserver(arm).step(pushed.q[0], pushed.v[0], [0.0], 1e-3)
    with pytest.raises(rk.ShapeError, match="times that increase"):
        rk.external_torques(robot=arm, t=[0.0, 0.0], q=pushed.q[:2], v=pushed.v[:2], tau=pushed.v[:2])
    with pytest.raises(rk.ShapeError, match="no forces of motors"):
        rk.external_torques(rk.simulate(arm, duration=0.01))
    with pytest.raises(rk.UnknownName, match="gripper"):
        rk.external_force(arm, pushed.q, pushed.v, "griper")
