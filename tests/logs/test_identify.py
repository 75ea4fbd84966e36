"""Parameters of a robot that is not as its description says, found from logs of its simulation."""

from dataclasses import replace

import numpy as np
import pytest
from log_files import joint_messages, write_ros2

import robokit as rk
from robokit.logs.read import logged_trajectory

NOISE = 0.01
"""Of the torques, of their size; positions have 2e-5 rad."""


def altered(robot, rng):
    """The robot with other masses, centres of mass and friction."""
    links = robot.inertial_parameters * rng.uniform(0.7, 1.4, (robot.nbodies + 1, 1))
    viscous, coulomb = rng.uniform(0.1, 0.5, (2, robot.nv))
    joints = tuple(
        replace(joint, damping=float(viscous[k]), friction=float(coulomb[k]))
        for k, joint in enumerate(robot.joints)
    )
    return replace(robot.with_inertias(links), joints=joints), viscous, coulomb


def recorded(real, described, seed, duration=5.0):
    """What the sensors of the real robot say while servos lead it along an exciting motion."""
    rng, motion = np.random.default_rng(seed), rk.excitation(described, duration, rng=seed)
    own = np.linspace(0.0, duration, len(motion.q))
    middle = (np.arange(round(duration / 1e-3)) + 0.5) * 1e-3
    q, v = (np.stack([np.interp(middle, own, x) for x in y.T], axis=1) for y in (motion.q, motion.v))
    servos = rk.PD(kp=400, kd=30, target=q, velocity=v, effort=np.inf, max_velocity=np.inf)
    run = rk.simulate(
        real,
        motion.q[0],
        motion.v[0],
        duration,
        dt=1e-3,
        actuators=servos,
        record_every=1,
        integrator="rkmk4",
    )
    tau = 0.5 * (run.actuator_force + np.vstack([run.actuator_force[1:], run.actuator_force[-1:]]))
    tau = tau + NOISE * tau.std(axis=0) * rng.standard_normal(tau.shape)
    return run.t[::2], (run.q + 2e-5 * rng.standard_normal(run.q.shape))[::2], tau[::2]


def check(described, real, viscous, coulomb, fit):
    """What was found is the real robot, in all that forces depend on, and each residual falls."""
    base = rk.base_parameters(described)
    true, found, before = (
        base.values(r.inertial_parameters[1:].ravel()) for r in (real, fit.robot, described)
    )
    assert np.linalg.norm(found - true) < 0.05 * np.linalg.norm(before - true)
    assert (
        np.abs(fit.found.viscous - viscous).max() < 0.05 and np.abs(fit.found.coulomb - coulomb).max() < 0.05
    )
    assert (fit.after < 0.25 * fit.before).all() and (fit.after < 0.05 * fit.measured).all()
    assert fit.condition < 100.0 and "well excited" in fit.excitation()
    assert all(len(line) <= 80 for line in fit.table())


def test_masses_and_friction_from_a_log(tmp_path):
    described = rk.load_urdf(rk.find_robot("double_pendulum"))
    real, viscous, coulomb = altered(described, np.random.default_rng(0))
    logs = []
    for seed in (0, 1):
        t, q, tau = recorded(real, described, seed)
        np.savez(tmp_path / f"{seed}.npz", t=t, q=q, tau=tau, names=np.array(described.joint_names))
        with pytest.warns(UserWarning, match="no velocities"):
            logs.append(rk.read_log(tmp_path / f"{seed}.npz", described))
    alone = rk.identify_log(logs[0])
    check(described, real, viscous, coulomb, alone)
    assert "the last 25%" in alone.judged_by
    judged = rk.identify_log(logs[0], validation=logs[1])
    check(described, real, viscous, coulomb, judged)
    # written and read again it predicts the second log as well
    better = rk.loads_urdf(rk.urdf.dump(judged.robot))
    logs[1].robot = better
    left = rk.unexplained_torques(logs[1], judged.cutoff)
    assert (left.rms(left.unexplained) < 0.06 * left.rms(left.measured)).all()


def test_joints_without_efforts_are_left_out():
    described = rk.load_urdf(rk.find_robot("double_pendulum"))
    real, *_ = altered(described, np.random.default_rng(0))
    t, q, tau = recorded(real, described, 0)
    tau = tau * [1.0, 0.0]
    log = logged_trajectory(described, t, q, np.gradient(q, t, axis=0), tau, {"efforts": ["upper_joint"]})
    with pytest.warns(UserWarning) as said:
        fit = rk.identify_log(log)
    assert not [w for w in said if "unexplained" in str(w.message)] and fit.names == ("upper_joint",)
    assert fit.after[0] < 0.1 * fit.before[0]


def test_efforts_of_the_wrong_sign_are_named():
    described = rk.load_urdf(rk.find_robot("double_pendulum"))
    t, q, tau = recorded(described, described, 0)
    log = logged_trajectory(described, t, q, np.gradient(q, t, axis=0), -tau, {})
    with pytest.warns(UserWarning, match="unexplained; look at contacts, and at signs"):
        rk.identify_log(log)
    with pytest.raises(rk.ShapeError, match="no efforts"):
        rk.identify_log(logged_trajectory(described, t, q, q, None, {}))


@pytest.mark.slow
def test_an_arm_of_seven_joints_from_bags(tmp_path):
    described = rk.load_urdf(rk.find_robot("arm"))
    real, viscous, coulomb = altered(described, np.random.default_rng(1))
    logs = []
    for seed in (0, 1):
        t, q, tau = recorded(real, described, seed, 10.0)
        write_ros2(tmp_path / str(seed), joint_messages(described.joint_names, t, q, None, tau), "mcap")
        with pytest.warns(UserWarning, match="no velocities"):
            logs.append(rk.read_log(tmp_path / str(seed), described))
    check(described, real, viscous, coulomb, rk.identify_log(logs[0], validation=logs[1]))
