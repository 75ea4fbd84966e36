"""The model beside a log: forces unexplained, and what they identify."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from log_files import joint_messages, write_ros2

import robokit as rk
from robokit.logs.comparison import best_cutoff, smooth
from robokit.logs.read import logged_trajectory
from robokit.momentum_observer import friction_forces

# ---- torques -------------------------------------------------------------------------------------
# Smoothed motion and unexplained torques against motions whose derivatives are known in closed form.


RATE = 250.0
t = np.arange(0.0, 6.0, 1.0 / RATE)


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


def motion(n):
    """Sines of 0.5 to 1.3 Hz: q, v, a, (T, n) each."""
    w, phase = 2 * np.pi * np.linspace(0.5, 1.3, n), np.arange(n)
    angle = w * t[:, None] + phase
    return np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)


def log_of(robot, q, v, tau):
    return logged_trajectory(robot, t, q, v, tau, {"robot": robot.name, "dt": 1 / RATE})


@pytest.mark.parametrize(("noise", "error"), [(0.0, 1e-5), (1e-4, 5e-4), (1e-2, 0.02)])
def test_accelerations_of_noisy_positions(robot, noise, error):
    q, v, a = motion(2)
    measured = q + noise * np.random.default_rng(0).standard_normal(q.shape)
    found = smooth(log_of(robot, measured, v, None))
    good = found.good
    assert good.mean() > 0.5

    def off(x, y):
        return np.sqrt(np.mean((x - y)[good] ** 2) / np.mean(y[good] ** 2))

    assert off(found.a, a) < error and off(found.v, v) < error
    if noise:  # no other cutoff is much better
        others = [smooth(log_of(robot, measured, v, None), found.cutoff * k).a for k in (0.6, 0.8, 1.25, 1.6)]
        assert off(found.a, a) < 1.5 * min(off(other, a) for other in others)


def test_the_cutoff_falls_with_noise_and_keeps_the_motion():
    q, _, _ = motion(3)
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(q.shape)
    cutoffs = [best_cutoff(q + s * noise, RATE) for s in (1e-6, 1e-4, 1e-2)]
    assert cutoffs[0] > cutoffs[1] > cutoffs[2] > 1.3
    # a joint that stands still has no say
    assert best_cutoff(np.column_stack([q, np.zeros(len(q))]), RATE) == best_cutoff(q, RATE)


def test_derivatives_of_a_base_that_turns_and_flies():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
    run = rk.simulate(
        robot, v0=[1.0, -2.0, 1.5, 0.3, 0.2, 0.1, 1.0, -1.0], duration=1.0, dt=1e-3, record_every=2,
        joint_damping=0.0,
    )  # fmt: skip
    found = smooth(run, 50.0)
    exact = rk.forward_dynamics(robot, run.q, run.v, -friction_forces(robot, run.v))
    good = found.good
    assert np.abs(found.v - run.v)[good].max() < 2e-3 * np.abs(run.v).max()
    assert np.abs(found.a - exact)[good].max() < 0.01 * np.abs(exact).max()
    # nothing holds it: the model needs no wrench from outside, though it weighs 40 N
    wrench = rk.rnea(robot, found.q, found.v, found.a)[:, :6]
    assert np.abs(wrench[good]).max() < 0.5


def test_what_the_model_lacks_is_what_stays_unexplained(robot):
    q, v, a = motion(2)
    extra = np.column_stack([0.5 * v[:, 0], 0.8 * np.ones(len(t))])
    tau = rk.rnea(robot, q, v, a) + friction_forces(robot, v) + extra
    found = rk.unexplained_torques(log_of(robot, q, v, tau))
    good = found.motion.good
    assert found.names == robot.joint_names
    assert np.abs(found.unexplained - extra)[good].max() < 0.02
    lines = found.table()
    assert str(found).splitlines() == lines
    assert all(len(line) <= 80 for line in lines) and "0.8" in lines[2]
    with pytest.warns(UserWarning, match="opposite sign"):
        rk.unexplained_torques(log_of(robot, q, v, -rk.rnea(robot, q, v, a)))


def test_gaps_and_ends_do_not_count(robot):
    q, v, a = motion(2)
    tau = rk.rnea(robot, q, v, a) + friction_forces(robot, v)
    keep = np.r_[0:600, 800 : len(t)]
    log = logged_trajectory(robot, t[keep], q[keep], v[keep], tau[keep], {"dt": 1 / RATE})
    found = rk.unexplained_torques(log)
    bad = (found.motion.t > t[600]) & (found.motion.t < t[800])
    assert not found.motion.good[bad].any() and not found.motion.good[[0, -1]].any()
    assert (found.rms(found.unexplained) < 0.01 * found.rms(found.measured)).all()


def test_what_cannot_be_compared_is_an_error(robot):
    q, v, _ = motion(2)
    with pytest.raises(rk.ShapeError, match="no efforts"):
        rk.unexplained_torques(log_of(robot, q, v, None))
    with pytest.raises(rk.ShapeError, match="less than half of the sampling rate, 250 Hz"):
        rk.unexplained_torques(log_of(robot, q, v, v), cutoff=200.0)
    with pytest.raises(rk.ShapeError, match="too few"):
        rk.unexplained_torques(logged_trajectory(robot, t[:9], q[:9], v[:9], v[:9], {}))
    with pytest.raises(rk.WrongType, match="a Trajectory"):
        rk.unexplained_torques(q)


def test_the_simulation_beside_a_log(robot, tmp_path):
    """With the torques of a run, its simulation is the run; with others it is not, and joints are led."""
    push = rk.Torque(lambda time, q, v: [2 * np.sin(3 * time), np.cos(2 * time)])
    run = rk.simulate(robot, [0.3, 0.2], duration=1.0, dt=1e-3, record_every=1, actuators=push)
    tau = np.vstack([run.actuator_force[1:], run.actuator_force[-1:]])
    log = logged_trajectory(robot, run.t, run.q, run.v, tau, {"dt": 1e-3})
    again = rk.simulate_log(log)
    assert np.abs(again.q[-1] - run.q[-1]).max() < 1e-2
    log = logged_trajectory(robot, run.t, run.q, run.v, tau, {"dt": 1e-3, "efforts": ["upper_joint"]})
    led = np.interp(run.t, (one := rk.simulate_log(log)).t, one.q[:, 1])
    assert np.abs(led - run.q[:, 1]).max() < 0.1
    found = rk.unexplained_torques(log, 50.0)
    page = rk.write_log_page(log, tmp_path / "log.html", found, again).read_text()
    assert "unexplained torque" in page and "simulation" in page
    rows = replace(found, model=found.measured * (1 + 1e-9)).table()  # hardly anything left
    assert all(row.split()[3:5] == ["<0.1", "%"] for row in rows[1:])


@pytest.mark.slow
def test_a_floating_robot_stands_where_its_lowest_point_was(tmp_path):
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    ground = rk.Ground(height=-0.4)
    q0 = rk.standing_configuration(robot, ground_height=-0.4)
    run = rk.simulate(
        robot, q0, duration=0.6, dt=2e-3, ground=ground, record_every=1, actuators=rk.PD(kp=300, kd=10)
    )
    again = rk.simulate_log(run)
    assert abs(again.ground.height + 0.4) < 0.01
    found = rk.unexplained_torques(run, 20.0)
    weight = robot.total_mass * 9.81
    up = -found.unexplained[found.motion.good][:, found.names.index("base force z")]
    assert abs(up.mean() - weight) < 0.1 * weight
    # the feet's wrenches account for the base and for the legs, and carry the weight
    feet = [link for link in run.contact_forces if np.abs(run.contact_forces[link]).max() > 1.0]
    with_feet = rk.unexplained_torques(run, 20.0, contacts=feet)
    carried = sum(with_feet.wrenches[foot][:, 5] for foot in feet)[with_feet.motion.good]
    assert abs(carried.mean() - weight) < 0.05 * weight
    with pytest.raises(rk.ShapeError, match="something carries the floating base"):
        rk.identify_log(run, cutoff=20.0)
    left, before = (x.rms(x.unexplained) for x in (with_feet, found))
    assert np.linalg.norm(left) < 0.05 * np.linalg.norm(before)


# ---- identify ------------------------------------------------------------------------------------
# Parameters of a robot that is not as its description says, found from logs of its simulation.


NOISE = 0.01  # of the torques, of their size; positions have 2e-5 rad


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


@functools.cache
def pendulum_log(seed):
    """A double pendulum as described and as it is, its friction, and what is recorded of it."""
    described = rk.load_urdf(rk.find_robot("double_pendulum"))
    real, *friction = altered(described, np.random.default_rng(0))
    return described, real, friction, recorded(real, described, seed)


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
    assert all(len(line) <= 80 for line in fit.table()) and str(fit).splitlines() == fit.table()


def test_masses_and_friction_from_a_log(tmp_path):
    logs = []
    for seed in (0, 1):
        described, real, (viscous, coulomb), (t, q, tau) = pendulum_log(seed)
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
    described, *_, (t, q, tau) = pendulum_log(0)
    tau = tau * [1.0, 0.0]
    log = logged_trajectory(described, t, q, np.gradient(q, t, axis=0), tau, {"efforts": ["upper_joint"]})
    with pytest.warns(UserWarning) as said:
        fit = rk.identify_log(log)
    assert not [w for w in said if "unexplained" in str(w.message)] and fit.names == ("upper_joint",)
    assert fit.after[0] < 0.1 * fit.before[0]


def test_efforts_of_the_wrong_sign_are_named():
    described, *_, (t, q, tau) = pendulum_log(0)
    log = logged_trajectory(described, t, q, np.gradient(q, t, axis=0), -tau, {})
    with pytest.warns(UserWarning, match="unexplained; look at contacts, and at signs"):
        rk.identify_log(log)
    with pytest.raises(rk.ShapeError, match="no efforts"):
        rk.identify_log(logged_trajectory(described, t, q, q, None, {}))


def test_a_log_that_is_too_short_for_a_fit_is_refused():
    """As many combinations of parameters as states explain any forces, and leave no noise."""
    described, *_, log = pendulum_log(0)
    t, q, tau = (x[:1000] for x in log)
    log = logged_trajectory(described, t, q, np.gradient(q, t, axis=0), tau, {})
    with pytest.raises(rk.ShapeError, match=r"log: too short for joint 'upper_joint': .* leaves \d indep"):
        rk.identify_log(log, cutoff=2.0)


def test_a_joint_that_moves_for_a_moment_only():
    """Its parameters explain any forces in the few states between reversals: the others count, too."""
    described = rk.load_urdf(rk.find_robot("double_pendulum"))
    rng = np.random.default_rng(0)
    real, *_ = altered(described, rng)
    q, v, a = motion(2)
    s = np.pi * np.clip((t - 2.0) / 0.9, 0.0, 1.0)
    rate = np.pi / 0.9 * ((t > 2.0) & (t < 2.9))
    q[:, 0] = 0.4 * np.sin(s) ** 4
    v[:, 0] = 1.6 * rate * np.sin(s) ** 3 * np.cos(s)
    a[:, 0] = 1.6 * rate**2 * (3.0 * np.sin(s) ** 2 - 4.0 * np.sin(s) ** 4)
    tau = rk.rnea(real, q, v, a) + friction_forces(real, v)
    tau += NOISE * tau.std(axis=0) * rng.standard_normal(tau.shape)
    fit = rk.identify_log(log_of(described, q + 2e-5 * rng.standard_normal(q.shape), v, tau), cutoff=5.0)
    assert (fit.after < 0.1 * fit.before).all()


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


@pytest.mark.parametrize("every", [1, 4])
def test_forces_of_a_controller_count_beside_those_of_actuators(tmp_path, every):
    """An actuator drives one joint and a controller both; before and after saving."""
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    run = rk.simulate(
        robot,
        [1.0, 0.0],
        duration=2.0,
        record_every=every,
        actuators=rk.PD(joints=["upper_joint"], target=0.3, kp=10.0, kd=1.0),
        controller=lambda t, q, v: [np.sin(3 * t), 0.3 * np.cos(2 * t)],
    )
    for log in (run, rk.Trajectory.load(run.save(tmp_path / "run.npz"))):
        found = rk.unexplained_torques(log)
        assert np.abs(found.measured).max(axis=0)[1] > 0.25
        inner = slice(len(log.t) // 10, -len(log.t) // 10)  # without the ends of the filter
        assert np.abs(found.unexplained[inner]).max() < 0.01
