"""Joints that move as a function of time says: exactly, at the force it takes, and the rest as it must."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import robokit as rk
from robokit.model import Box, Capsule, ModelBuilder, Placement, Shape


def wave(t):
    return 0.3 * np.sin(5.0 * t) + 0.2 * np.cos(3.0 * t)


def rate(t):
    return 1.5 * np.cos(5.0 * t) - 0.6 * np.sin(3.0 * t)


def acceleration(t):
    return -7.5 * np.sin(5.0 * t) - 1.8 * np.cos(3.0 * t)


@pytest.fixture(scope="module")
def pendulum():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


def swing(robot, duration):
    """The lower joint while the upper one follows the wave, by the hybrid dynamics of another algorithm."""
    damping = np.array([joint.damping for joint in robot.joints])

    def law(t, y):
        q, v = [wave(t), y[0]], [rate(t), y[1]]
        H, C = rk.crba(robot, q), rk.bias_forces(robot, q, v) + damping * v
        return [y[1], (-C[1] - H[1, 0] * acceleration(t)) / H[1, 1]]

    return solve_ivp(law, (0, duration), [0.5, 0.0], "DOP853", rtol=1e-10, atol=1e-11, dense_output=True).sol


def test_the_joint_is_where_it_is_said_to_be_and_the_rest_swings_as_it_must(pendulum):
    exact, errors = swing(pendulum, 0.5), []
    for dt in (4e-3, 2e-3):
        motion = rk.PrescribedMotion("upper_joint", wave)
        run = rk.simulate(pendulum, [0.0, 0.5], duration=0.5, dt=dt, motions=motion, record_every=5)
        assert run.summary["integrator"] == "contact"
        assert np.array_equal(run.q[:, 0], [wave(t) for t in run.t])  # to the last digit
        np.testing.assert_allclose(run.v[:, 0], rate(run.t), atol=1e-9)
        errors.append(abs(run.q[-1, 1] - exact(0.5)[0]))
        assert np.ptp(run.energy.total) < 1e-4
    assert errors[1] < 5e-6
    assert 3.5 < errors[0] / errors[1] < 4.5
    # The force is that of inverse dynamics in the middle of the step.
    middle = run.t[1:] - 0.5 * run.summary["dt"]
    q = np.stack([wave(middle), exact(middle)[0]], axis=1)
    v = np.stack([rate(middle), exact(middle)[1]], axis=1)
    damping = np.array([joint.damping for joint in pendulum.joints])
    a = np.stack([acceleration(middle), np.gradient(exact(middle)[1], middle)], axis=1)
    force = rk.rnea(pendulum, q, v, a)[:, 0] + damping[0] * v[:, 0]
    np.testing.assert_allclose(run.prescribed_force["upper_joint"][2:-1], force[1:-1], atol=2e-2)
    assert abs(run.prescribed_force["upper_joint"]).max() > 1.0


def test_rows_steps_arrays_and_keyframes_are_the_same_motion(pendulum):
    start, dt = [0.0, 0.5], 1e-3
    one = rk.simulate(pendulum, start, duration=0.1, dt=dt, motions=rk.PrescribedMotion("upper_joint", wave))
    t = dt * np.arange(101)
    array = rk.PrescribedMotion("upper_joint", wave(t))
    by_array = rk.simulate(pendulum, start, duration=0.1, dt=dt, motions=[array])
    np.testing.assert_allclose(by_array.q, one.q, atol=1e-9)
    np.testing.assert_allclose(by_array.v, one.v, atol=1e-6)
    rows = rk.PrescribedMotion("upper_joint", np.stack([wave(t), 2.0 * wave(t)], axis=1))
    many = rk.rollout(pendulum, start, duration=0.1, dt=dt, motions=rows)
    assert np.array_equal(many.q[:, 0], by_array.q)
    assert np.array_equal(many.q[:, 1, 0], 2.0 * wave(t[::5]))
    sim = rk.Simulation(pendulum, start, dt=dt, motions=rk.PrescribedMotion("upper_joint", wave))
    for _ in range(50):
        sim.step()
    kept = sim.state()
    sim.step(steps=50)
    assert np.array_equal(sim.q, one.q[-1]) and np.array_equal(sim.v, one.v[-1])
    sim.restore(kept)
    sim.step(steps=50)
    assert np.array_equal(sim.q, one.q[-1])
    batch = rk.Simulation(pendulum, start, dt=dt, batch=2, motions=rk.PrescribedMotion("upper_joint", wave))
    batch.step(steps=100)
    assert np.array_equal(batch.q[1], one.q[-1])
    batch.reset(rows=np.array([True, False]))  # time goes on, and the motion with it
    assert batch.q[0, 0] == batch.q[1, 0] == wave(0.1)
    batch.step()
    assert batch.q[0, 0] == batch.q[1, 0] == wave(0.101)
    over = rk.Simulation(pendulum, dt=dt, motions=rk.PrescribedMotion("upper_joint", t[:6]))
    over.step(steps=5)
    assert over.q[0] == t[5] and abs(over.v[0] - 1.0) < 1e-12
    over.step(steps=2)  # after the end of an array the joint stays
    assert over.q[0] == t[5] and over.v[0] == 0.0
    keys = rk.Keyframes([0.0, 0.05, 0.1], ["upper_joint", "lower_joint"], [[0, 0], [0.1, -0.2], [0, 0.1]])
    both = rk.simulate(pendulum, duration=0.1, dt=dt, motions=rk.PrescribedMotion(None, keys))
    np.testing.assert_allclose(both.q, keys.at(both.t)[0], atol=1e-15)


def test_a_motor_without_mass_turns_a_four_bar():
    """The crank of a loop is prescribed: the loop stays closed, and the other joints follow."""
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    crank = robot.joint_names[0]
    motion = rk.PrescribedMotion(crank, lambda t: 0.3 + 0.5 * np.sin(4.0 * t))
    run = rk.simulate(robot, [0.3, 0.0, 0.0], duration=0.5, motions=motion)
    assert np.array_equal(run.q[:, 0], 0.3 + 0.5 * np.sin(4.0 * run.t))
    assert run.summary["loop_gap"] < 1e-8 and "loop_torn" not in run.summary
    some = run.q[::4]
    closed = np.array([rk.close_loops(robot, q, keep=[crank]) for q in some])
    np.testing.assert_allclose(closed, some, atol=1e-7)
    with pytest.warns(rk.SimulationWarning, match=f"loop joint {robot.loop_joints[0].name!r} was torn open"):
        two = [motion, rk.PrescribedMotion(robot.joint_names[1], lambda t: run.q[0, 1] + 3.0 * t)]
        rk.simulate(robot, run.q[0], duration=0.02, motions=two)


def test_a_satellite_turns_against_its_arm():
    """A prescribed arm in free flight: the momentum stays, and the body turns as that says."""
    b = ModelBuilder("satellite").link("body", 10.0, (0, 0, 0), np.eye(3) * 2.0)
    b.link("arm", 0.0, (0, 0, 0), np.eye(3) * 0.5).joint("hub", "continuous", "body", "arm", axis=(0, 0, 1))
    robot = b.build("floating", gravity=(0, 0, 0))
    run = rk.simulate(robot, duration=1.0, motions=rk.PrescribedMotion("hub", lambda t: t * t))
    turned = 2.0 * np.arctan2(run.q[:, 3], run.q[:, 0])
    # It starts at rest but for the arm's rate at the start, which is 0.
    np.testing.assert_allclose(turned, -0.2 * run.t**2, atol=1e-9)
    assert run.summary["momentum_balance_angular"] < 1e-10


@pytest.mark.parametrize("ground", [{"sink": 1e-5}, {"sink": 1e-7}, {"restitution": 0.5}])
def test_a_press_meets_ground_that_hardly_gives(ground):
    """Its head goes 1 mm into the ground: what the joint holds and what the contact holds are both stiff."""
    size, mass = 0.1, 2.0
    builder = ModelBuilder("press").link("frame")
    builder.link("head", mass, inertia=np.eye(3) * 0.01, collisions=(Shape(Box((size,) * 3)),))
    above = Placement(position=np.array([0.0, 0.0, 0.5 * size]))
    robot = builder.joint("ram", "prismatic", "frame", "head", above, (0, 0, 1)).build("fixed")
    motion = rk.PrescribedMotion("ram", lambda t: 0.02 - 0.021 * np.sin(6.0 * t))
    options = {"ground": rk.Ground(**ground), "joint_damping": 0.0, "record_every": 1, "dt": 1e-3}
    run = rk.simulate(robot, [0.02], duration=0.5, motions=motion, **options)
    # Bounces have those of the step without them and of impacts, and a second solution of what presses so.
    allowed = 30 if "restitution" in ground else 20
    most = run.summary["contact_iterations_most"]
    assert run.summary["steps_not_settled"] == 0 and most <= allowed
    force, pressed = run.prescribed_force["ram"][1:], run.contact_force[1:, 2]
    assert pressed.max() > 1e4
    left = force + pressed - mass * (9.81 + np.diff(run.v[:, 0]) / 1e-3)
    assert np.abs(left).max() < 1e-6 * pressed.max()


def test_a_prescribed_joint_pushes_on_the_ground():
    """A foot that is pressed on the ground goes where it is told, and the ground carries what it takes."""
    ball = rk.model.Shape(rk.model.Sphere(0.1))
    b = ModelBuilder("press").link("frame").link("foot", 1.0, (0, 0, 0), np.eye(3) * 0.01, collisions=[ball])
    robot = b.joint("down", "prismatic", "frame", "foot", Placement(), (0, 0, 1)).build()
    motion = rk.PrescribedMotion("down", lambda t: 0.1 - 5e-5 * np.sin(3.0 * t))
    run = rk.simulate(robot, duration=0.5, ground=True, motions=motion)
    assert np.array_equal(run.q[:, 0], 0.1 - 5e-5 * np.sin(3.0 * run.t))
    assert run.contact_force[-1, 2] > 0.5
    assert abs(run.prescribed_force["down"][-1] + run.contact_force[-1, 2] - 9.81) < 1e-3


def test_a_step_whose_first_attempt_fails_begins_anew_without_its_forces():
    """The next ones began with the force of the prescribed joint that the first had led to, 1e300 N m."""
    rng = np.random.default_rng(39)
    b = ModelBuilder("chain")
    for k in range(10):
        mass, inertia = 10 ** rng.uniform(-1, 0.3), np.eye(3) * 10 ** rng.uniform(-4, -3)
        shape = Shape(Capsule(0.015, 0.03), Placement(np.eye(3), (0.03, 0, 0)))
        b.link(f"l{k}", float(mass), (0, 0, 0), inertia, collisions=(shape,))
        if k:
            axis, place = rng.normal(size=3), np.array([0.06, 0, 0]) + rng.normal(size=3) * 0.005
            ends = {"lower": -0.8, "upper": 0.8, "damping": 1e-2 * rng.random()}
            axis /= np.linalg.norm(axis)
            b.joint(f"j{k}", "revolute", f"l{k - 1}", f"l{k}", Placement(np.eye(3), place), axis=axis, **ends)
    robot = b.build("floating")
    q = np.asarray(robot.integrate(robot.neutral(), rng.normal(size=robot.nv) * 0.12))
    v = rng.normal(size=robot.nv) * 0.5
    at, low = q[robot.joint("j2").q_slice][0], rk.forward_kinematics(robot, q).position[:, 2].min()
    run = rk.simulate(
        robot,
        q,
        v,
        dt=2e-3,
        duration=0.1,
        self_collision=True,
        reproducible=True,
        ground=rk.Ground(height=low - 0.03, friction=1.5),
        springs=[rk.Spring("l6", "l8", stiffness=50.0, damping=1.0)],
        motions=[rk.PrescribedMotion("j2", lambda t: at + 0.2 * np.sin(9.0 * t))],
    )
    assert run.summary["steps_not_settled"] == 0


@pytest.mark.parametrize(
    ("make", "more", "error", "words"),
    [
        (lambda: rk.PrescribedMotion("uper_joint", wave), {}, rk.UnknownName, "upper_joint"),
        (lambda: rk.PrescribedMotion("upper_joint", wave), {"accuracy": 1e-3}, rk.ShapeError, "accuracy"),
        (
            lambda: rk.PrescribedMotion("upper_joint", wave),
            {"integrator": "rkmk4"},
            rk.ShapeError,
            "no motions",
        ),
        (
            lambda: rk.PrescribedMotion("upper_joint", np.zeros(3)),
            {},
            rk.ShapeError,
            "one more than there are",
        ),
        (lambda: rk.PrescribedMotion("upper_joint", lambda t: np.nan), {}, rk.InvalidValue, "gave"),
        (lambda: rk.PrescribedMotion("upper_joint", lambda t: 1 / 0), {}, rk.InvalidValue, "ZeroDivision"),
        (lambda: [rk.PrescribedMotion("upper_joint", wave)] * 2, {}, rk.ShapeError, "twice"),
        (lambda: wave, {}, rk.WrongType, "motions"),
    ],
)
def test_motions_that_make_no_sense_are_refused(pendulum, make, more, error, words):
    with pytest.raises(error, match=words):
        rk.simulate(pendulum, duration=0.1, motions=make(), **more)


def test_the_torque_of_a_slider_crank_is_that_of_virtual_work():
    """Crank prescribed, rod without mass, a spring on the slider: force and energy to second order."""
    b = (
        ModelBuilder("slider_crank")
        .link("ground")
        .link("crank", 1.0, (0, 0, 0), np.eye(3) * 0.02)
        .link("rod")
    )
    b.link("slider", 2.0, (0, 0, 0), np.eye(3) * 1e-3)
    for name, above, x in (("crank", "ground", 0.0), ("rod", "crank", 0.1)):
        b.joint(name, "continuous", above, name, Placement(position=np.array([x, 0, 0])), (0, 1, 0))
    b.joint("slide", "prismatic", "ground", "slider", Placement(position=np.array([0.4, 0, 0])), (1, 0, 0))
    b.loop_joint(
        "pin", "revolute", "rod", "slider", Placement(position=np.array([0.3, 0, 0])), axis=(0, 1, 0)
    )
    robot = b.build()
    start = rk.close_loops(robot, [0.7, -1.0, 0.0], keep=["crank"])
    motion = rk.PrescribedMotion("crank", lambda t: 0.7 + 6.0 * t)
    spring = rk.JointSpring("slide", stiffness=200.0)
    run = rk.simulate(robot, start, duration=0.5, dt=1e-3, motions=motion, springs=spring)

    def slide(t):
        angle = 0.7 + 6.0 * t
        return 0.1 * np.cos(angle) + np.sqrt(0.09 - 0.01 * np.sin(angle) ** 2) - 0.4

    np.testing.assert_allclose(run.q[:, 2], slide(run.t), atol=1e-14)
    assert np.ptp(run.energy.total) < 1e-7
    middle, h = run.t[1:] - 0.5e-3, 1e-4
    by_angle = (slide(middle + h) - slide(middle - h)) / (12.0 * h)
    acceleration = (slide(middle + h) - 2.0 * slide(middle) + slide(middle - h)) / h**2
    torque = by_angle * (2.0 * acceleration + 200.0 * slide(middle))
    np.testing.assert_allclose(run.prescribed_force["crank"][1:], torque, atol=2e-5)


def test_the_start_velocity_of_an_array_is_that_of_the_chosen_step():
    """An array has one position a step: its velocity follows from the step, also from one that is chosen."""
    robot, positions = rk.load_urdf(rk.find_robot("double_pendulum")), 1e-3 * np.arange(1000.0)
    motion = rk.PrescribedMotion(robot.joint_names[0], positions)
    fast = {"v0": [0.0, 800.0], "duration": 0.005, "motions": motion}
    run, rows = rk.simulate(robot, **fast), rk.rollout(robot, **fast)
    assert run.summary["dt"] < 1e-3
    assert run.v[0, 0] == pytest.approx(1e-3 / run.summary["dt"], rel=1e-9)
    assert (run.q == rows.q[:, 0]).all() and (run.v == rows.v[:, 0]).all()
    sim = rk.Simulation(robot, v0=fast["v0"], motions=motion)
    assert sim.dt == run.summary["dt"] and (sim.v == run.v[0]).all()
