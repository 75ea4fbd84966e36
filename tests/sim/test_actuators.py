"""Actuators in simulations and rollouts."""

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk

INERTIA = 1.0 * 0.5**2 + 0.01
METHODS = ["contact", "midpoint", "rkmk4"]


def light(inertia=1e-3, **joint):
    """A link of 1 g m^2 about its hinge."""
    builder = rk.ModelBuilder("light")
    builder.link("base")
    builder.link("rotor", mass=0.01, inertia=np.eye(3) * inertia)
    builder.joint("hinge", "continuous", "base", "rotor", axis=(0, 0, 1), **joint)
    return builder.build("fixed")


@pytest.mark.parametrize("name", METHODS)
def test_pd_is_the_damped_oscillator(name):
    kp, kd, goal = 20.0, 1.0, 0.7
    rate = kd / (2 * INERTIA)
    w = math.sqrt(kp / INERTIA - rate**2)
    arm = m.pendulum(kind="continuous")
    errors = []
    for dt in (2e-3, 1e-3):
        run = rk.simulate(
            arm, duration=1.0, dt=dt, integrator=name, gravity=(0, 0, 0), record_every=5,
            actuators=rk.PD(kp=kp, kd=kd, target=goal),
        )  # fmt: skip
        t = run.t
        exact = goal - goal * np.exp(-rate * t) * (np.cos(w * t) + rate / w * np.sin(w * t))
        errors.append(np.abs(run.q[:, 0] - exact).max())
        assert run.summary["energy_balance"] < 1e-12
    assert errors[0] < 2e-5 and errors[1] < 0.3 * errors[0], "of second order"


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("gains", [(0.0, 3.0), (1e6, 0.0), (1e6, 3.0), (0.0, 1e6)])
def test_stiff_gains_on_a_light_link_are_stable(name, gains):
    kp, kd = gains
    run = rk.simulate(light(), [0.1], [1.0], 0.2, 1e-3, integrator=name, actuators=rk.PD(kp, kd, target=0.0))
    assert np.abs(run.q).max() < 0.11
    assert abs(run.v[-1, 0]) < 1e-12


def test_a_limit_is_held_exactly_and_said():
    servo = rk.PD(kp=100.0, kd=10.0, target=1.0, effort=0.5)
    run = rk.simulate(light(0.1), duration=1.0, actuators=servo, record_every=1)
    full = np.count_nonzero(run.actuator_force[1:, 0] == 0.5)
    assert full > 100
    assert np.abs(run.actuator_force).max() <= 0.5 * (1 + 1e-12)
    assert run.v[full // 2, 0] == pytest.approx(0.5 / 0.1 * run.t[full // 2], rel=1e-9)
    assert 0.0 < run.summary["saturated"]["hinge"] <= 1.0
    assert any("saturated" in line and "hinge" in line for line in run.report())
    always = rk.simulate(light(0.1), duration=1.0, actuators=rk.Torque(target=2.0, effort=0.5))
    assert always.summary["saturated"] == {"hinge": 1.0}
    assert any("hinge 100 % of the time" in line for line in always.report())


def test_limits_of_the_description_hold_and_can_be_lifted():
    arm = light(0.1, effort=0.5, velocity=2.0)
    run = rk.simulate(arm, duration=1.0, actuators=rk.Torque(target=3.0), record_every=1)
    assert run.actuator_force.max() == pytest.approx(0.5, rel=1e-12)
    assert run.v.max() == pytest.approx(2.0, rel=1e-12)
    free = rk.Torque(target=3.0, effort=math.inf, max_velocity=math.inf)
    assert rk.simulate(arm, duration=0.5, actuators=free).v[-1, 0] == pytest.approx(15.0)
    with pytest.warns(UserWarning, match="limits the effort to 0"):
        rk.simulate(light(effort=0.0), duration=0.01, actuators=rk.Torque(target=1.0))


@pytest.mark.parametrize("name", METHODS)
def test_velocity_servo_reaches_its_speed(name):
    run = rk.simulate(light(), duration=0.2, integrator=name, actuators=rk.Velocity(gain=0.05, target=4.0))
    assert run.v[:, 0] == pytest.approx(4.0 * (1.0 - np.exp(-50.0 * run.t)), abs=1e-6)
    assert run.energy.work[-1] == pytest.approx(run.energy.kinetic[-1], rel=1e-9)


def test_feedforward_and_controller_share_a_joint():
    """Gravity held by the feedforward, the rest by the servo; the controller's force is added."""
    robot = m.double_pendulum()
    goal = np.array([0.4, -0.3])
    servo = rk.PD(kp=40.0, kd=8.0, target=goal, feedforward=rk.gravity_forces(robot, goal), effort=math.inf)
    run = rk.simulate(robot, duration=4.0, actuators=servo)
    assert run.q[-1] == pytest.approx(goal, abs=1e-4)
    bare = rk.PD(kp=40.0, kd=8.0, target=goal, effort=math.inf)
    same = rk.simulate(
        robot, duration=4.0, actuators=bare, controller=lambda t, q, v: rk.gravity_forces(robot, goal)
    )
    assert same.q == pytest.approx(run.q, abs=1e-9)


@pytest.mark.parametrize("form", ["by step", "keyframes", "function"])
def test_targets_that_move(form):
    """A servo follows a ramp: with keyframes at no lag, for their velocity is known; else late by kd / kp."""
    steps, dt, kp, kd = 400, 1e-3, 400.0, 8.0
    middle = (np.arange(steps) + 0.5) * dt
    target = {
        "by step": middle[:, None],
        "keyframes": rk.Keyframes([0.0, 1.0], ["hinge"], [[0.0], [1.0]], curve="linear"),
        "function": lambda t, q, v: {"hinge": t + 0.5 * dt},
    }[form]
    run = rk.simulate(light(), duration=steps * dt, actuators=rk.PD(kp, kd, target=target))
    late = 0.0 if form == "keyframes" else kd / kp
    assert run.q[-1, 0] == pytest.approx(run.t[-1] - late, abs=1e-3)


def test_a_target_function_that_fails_keeps_what_was_computed():
    def target(t, q, v):
        if t > 0.01:
            raise ValueError("no more")
        return 0.0

    with pytest.raises(rk.SimulationError, match="no more") as caught:
        rk.simulate(light(), duration=0.1, actuators=rk.PD(1.0, target=target))
    assert 0.01 <= caught.value.trajectory.t[-1] < 0.02


def test_rollouts_move_as_simulations():
    robot, rng = m.double_pendulum(), np.random.default_rng(0)
    q0 = rng.normal(size=(3, 2))
    target = rng.normal(size=(3, 2))
    kp = np.array([[30.0, 10.0], [60.0, 20.0], [90.0, 30.0]])
    many = rk.rollout(
        robot, q0, duration=0.2, actuators=rk.PD(kp=kp, kd=2.0, target=target[None], effort=5.0)
    )
    for k in range(3):
        one = rk.simulate(
            robot, q0[k], duration=0.2, actuators=rk.PD(kp=kp[k], kd=2.0, target=target[k], effort=5.0)
        )
        assert many.q[:, k] == pytest.approx(one.q, abs=1e-12)
        row = many.trajectory(k)
        assert row.actuator_force == pytest.approx(one.actuator_force, abs=1e-9)
        assert row.summary["saturated"] == pytest.approx(one.summary["saturated"], abs=1e-9)
    assert set(many.summary["saturated"]) == set(robot.joint_names)
    held = rk.rollout(robot, q0, steps=200, dt=1e-3, actuators=rk.PD(kp=1e5, kd=1e3, effort=math.inf))
    assert held.q[-1] == pytest.approx(q0, abs=1e-3), "each row holds its own start"


def test_a_driven_joint_of_a_coupled_robot():
    """The servo of a leader moves its followers."""
    builder = rk.ModelBuilder("pair")
    builder.link("base")
    for name in ("a", "b"):
        builder.link(name, mass=1.0, com=(0, 0, -0.1), inertia=np.eye(3) * 0.01)
    builder.joint("lead", "continuous", "base", "a", axis=(0, 1, 0))
    builder.joint("follow", "continuous", "base", "b", axis=(0, 1, 0), mimic=rk.Mimic("lead", multiplier=2.0))
    from robokit.model import couple

    robot = couple(builder.build("fixed"))
    run = rk.simulate(
        robot, duration=2.0, gravity=(0, 0, 0), integrator="contact", actuators=rk.PD(20.0, 4.0, target=0.5)
    )
    assert run.q[-1] == pytest.approx([0.5], abs=1e-3)
    assert run.summary["energy_balance"] < 1e-12


def test_save_and_load_keep_the_actuators_forces(tmp_path):
    run = rk.simulate(light(), duration=0.02, actuators=rk.Torque(target=0.01))
    again = rk.Trajectory.load(run.save(tmp_path / "run.npz"))
    assert np.array_equal(again.actuator_force, run.actuator_force)


def test_nothing_given_is_the_same_kernel():
    from robokit.sim import motion
    from robokit.sim.run_inputs import set_up

    program = set_up(m.box(), 1.0, None, True, None, None, None).program
    assert [name for name, _ in program.kernel().signature.inputs][-1] == "parameters"
    assert program.given.inputs == [] and program.entries == motion.SIZE + len(motion.OWN)


@pytest.mark.parametrize(
    "actuators, error, words",
    [
        (rk.PD(kp={"hing": 1.0}), rk.UnknownName, "did you mean 'hinge'"),
        (rk.PD(kp=1.0, target=[1.0, 2.0]), rk.ShapeError, "target"),
        ("servo", rk.WrongType, "actuators"),
        ([rk.Torque(), rk.Velocity()], rk.ShapeError, "driven twice"),
    ],
)
@pytest.mark.parametrize("run", [rk.simulate, rk.rollout])
def test_refused(run, actuators, error, words):
    with pytest.raises(error, match=words):
        run(light(), duration=0.01, actuators=actuators)


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ([0.1, 0.2, 0.3], rk.ShapeError, r"PD\(target=\.\.\.\): expected shape \(\) or \(2,\), got \(3,\)"),
        (
            np.zeros((5, 2)),
            rk.ShapeError,
            r"got \(5, 2\); for values that change give a function \(t, q, v\)",
        ),
        ([0.0, np.nan], rk.InvalidValue, r"got nan at PD\(target=\.\.\.\)\[1\]"),
        ({"upper_joint": np.nan}, rk.InvalidValue, "joint 'upper_joint': expected finite numbers, got nan$"),
    ],
)
def test_targets_of_a_simulation_without_an_end_are_refused_in_the_words_of_the_argument(
    target, error, words
):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with pytest.raises(error, match=words):
        rk.Simulation(robot, actuators=rk.PD(kp=1.0, target=target)).step()


def test_rollouts_take_no_functions():
    with pytest.raises(rk.ShapeError, match="no functions"):
        rk.rollout(light(), duration=0.01, actuators=rk.PD(1.0, target=lambda t, q, v: q))


@pytest.mark.parametrize("name", [*METHODS, "energy_momentum"])
def test_a_rotor_is_inertia_of_its_joint(name):
    """tau / (I + armature), and its kinetic energy is in the ledger."""
    servo = rk.Torque(target=0.3, armature={"hinge": 0.2})
    run = rk.simulate(light(0.1), duration=0.5, integrator=name, actuators=servo)
    assert run.v[-1, 0] == pytest.approx(0.3 / 0.3 * 0.5, rel=1e-9)
    assert run.energy.kinetic[-1] == pytest.approx(0.5 * 0.3 * 0.5**2, rel=1e-9)
    assert run.summary["energy_balance"] < 1e-12


def test_rotors_in_the_equations_of_motion():
    """aba solves (H + rotors) a = tau - C, and passive motion keeps the energy with that of the rotors."""
    from robokit.algorithms.aba import aba
    from robokit.sim.actuators import with_rotors

    robot = m.double_pendulum()
    rotors = np.array([0.7, 0.2])
    geared = with_rotors(robot, [rk.Torque(armature=rotors)])
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 2))
    rows = robot.split_q(q.tolist()), robot.split_v(v.tolist()), robot.split_tau(tau.tolist())
    found = np.concatenate([row for row in aba(geared.tree, *rows) if len(row)])
    H = rk.crba(robot, q) + np.diag(rotors)
    assert found == pytest.approx(np.linalg.solve(H, tau - rk.bias_forces(robot, q, v)), rel=1e-12)
    assert rk.crba(geared, q) == pytest.approx(H, rel=1e-14)
    assert rk.kinetic_energy(geared, q, v) == pytest.approx(0.5 * v @ H @ v, rel=1e-14)
    free = m.without_limits(robot)
    run = rk.simulate(free, q, v, duration=1.0, actuators=rk.Torque(armature=rotors))
    assert np.ptp(run.energy.mechanical) < 1e-7
    assert run.robot is free
    many = rk.rollout(free, q, v, duration=1.0, actuators=rk.Torque(armature=rotors))
    assert many.q[:, 0] == pytest.approx(run.q, abs=1e-11)
    slow = rk.simulate(free, q, v, duration=1.0, integrator="contact", actuators=rk.Torque(armature=rotors))
    assert slow.q == pytest.approx(run.q, abs=1e-4)


def test_a_joints_own_rotor_is_that_of_an_actuator():
    from robokit.model import replace_armature

    robot = m.without_limits(m.double_pendulum())
    rotors = dict(zip(robot.joint_names, (0.7, 0.2), strict=True))
    v = [1.0, 0.5]
    own = rk.simulate(replace_armature(robot, rotors), None, v, duration=0.2)
    driven = rk.simulate(robot, None, v, duration=0.2, actuators=rk.Torque(armature=rotors))
    assert own.q == pytest.approx(driven.q, abs=1e-14)
    assert own.energy.kinetic == pytest.approx(driven.energy.kinetic, rel=1e-12)


def test_rotors_leave_the_momentum_of_a_robot_that_floats():
    robot = m.tumbler()
    v = np.random.default_rng(1).normal(size=robot.nv)
    for name in ("rkmk4", "contact"):
        run = rk.simulate(
            robot, None, v, duration=0.1, gravity=(0, 0, 0), integrator=name,
            actuators=rk.Torque(joints=["one"], armature=0.5),
        )  # fmt: skip
        assert np.ptp(run.momentum, axis=0).max() < 1e-12
        assert run.summary["momentum_corrected_angular"] < (1e-9 if name == "rkmk4" else 1e-3)
        assert run.summary["energy_balance"] < (1e-9 if name == "rkmk4" else 1e-3)


def test_inertias_as_inputs_and_single_precision():
    """Rows of samples move as their samples do; single precision as double, to rounding."""
    robot = m.double_pendulum()
    parameters = robot.inertial_parameters[None] * np.array([1.0, 1.5, 2.0])[:, None, None]
    samples = robot.with_inertias(parameters)
    servo = rk.PD(kp=60.0, kd=6.0, target=[0.5, -0.4], effort=8.0)
    options = {"duration": 0.2, "integrator": "contact", "actuators": servo}
    many = rk.rollout(samples, **options)
    for k in range(3):
        one = rk.simulate(samples.sample(k), **options)
        assert many.q[:, k] == pytest.approx(one.q, abs=1e-11)
    short = rk.rollout(robot, **options, dtype="float32")
    assert short.q[:, 0] == pytest.approx(many.q[:, 0], abs=1e-4)


def test_limits_of_several_joints_are_kept_nearly_always():
    """A joint may exceed its limit only in a step in which others reach theirs; the mean of 5 ms does not."""
    robot = m.double_pendulum()
    servo = rk.PD(kp=500.0, kd=10.0, target=[1.0, -1.0], effort=[6.0, 2.0])
    run = rk.simulate(robot, duration=1.0, integrator="contact", actuators=servo, record_every=1)
    beyond = np.abs(run.actuator_force) / [6.0, 2.0]
    assert np.mean(beyond > 1.0 + 1e-9) < 0.01 and beyond.max() < 1.1


@pytest.mark.parametrize("name", METHODS)
def test_loops_actuators_rotors_and_pushes_together(name):
    """The four-bar driven by its crank, its coupler pushed: loop closed, energy accounted for."""
    robot = rk.load_urdf(m.ROBOTS / "four_bar.urdf")
    run = rk.simulate(
        robot, duration=0.4, integrator=name,
        pushes=[(robot.link_names[2], (5.0, 0, 2.0), (0, 0, 0), 0.1, 0.2)],
        actuators=rk.Velocity({"crank_joint": 2.0}, {"crank_joint": 3.0}, armature=0.01),
    )  # fmt: skip
    assert run.summary["loop_gap"] < 1e-12
    assert np.abs(run.energy.work).max() > 0.1
    assert run.summary["energy_balance"] < (1e-7 if name == "rkmk4" else 1e-4)


def test_targets_that_change_are_followed_as_functions_of_time_are():
    """Of keyframes and tables many steps are found together, of functions each alone, going back too."""
    robot, dt, t = m.double_pendulum(), 1e-3, 1e-3 * np.arange(600)
    table = np.stack([np.sin(9.0 * t), np.cos(7.0 * t)], axis=1)
    keys = rk.Keyframes(t[::60], robot.joint_names, table[::60])
    gains, ends = {"kp": 60.0, "kd": 6.0}, []
    there, rate = (lambda time, q, v, k=k: keys.at([time])[k][0] for k in (0, 1))
    for servo in (rk.PD(target=keys, **gains), rk.PD(target=there, velocity=rate, **gains)):
        sim = rk.Simulation(robot, np.zeros(2), dt=dt, actuators=servo)
        ends.append([])
        start = sim.state()
        for steps in (100, 450, 40):
            sim.step(steps=steps)
            ends[-1].append(sim.q)
        sim.restore(start)
        sim.step(steps=300)
        ends[-1].append(sim.q)
    assert np.array_equal(*ends)
    targets = table, lambda time, q, v: table[int(time / dt)]
    how = {"duration": 0.6, "dt": dt, "record_every": 1}
    runs = [rk.simulate(robot, np.zeros(2), actuators=rk.PD(target=x, **gains), **how) for x in targets]
    assert np.array_equal(runs[0].q, runs[1].q)
