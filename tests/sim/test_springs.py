"""Springs and dampers between points and at joints, against closed forms, SciPy and MuJoCo."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import robokit as rk
from robokit.model import ModelBuilder, Placement, Shape, Sphere

G = 9.81
ABOVE = np.array([0.0, 0.0, 2.0])
START = np.array([0.4, 0.2, 1.2, 0.3, 1.0, -0.2])  # of the ball: place and velocity


def ball(mass=2.0):
    return ModelBuilder("ball").link("ball", mass, (0, 0, 0), np.eye(3) * 0.01).build("floating")


def states():
    return np.array([1.0, 0, 0, 0, *START[:3]]), np.array([0.0, 0, 0, *START[3:]])


def cubic(length, rate):
    return 200.0 * (length - 0.7) + 500.0 * (length - 0.7) ** 3 + 0.5 * rate * abs(rate)


LAWS = {
    "linear": (
        {"stiffness": 200.0, "damping": 0.5, "rest_length": 0.7, "preload": 3.0},
        lambda x, u: 3.0 + 200.0 * (x - 0.7) + 0.5 * u,
    ),
    "cable": (
        {"stiffness": 200.0, "rest_length": 0.9, "acts": "pull"},
        lambda x, u: max(0.0, 200.0 * (x - 0.9)),
    ),
    "function": ({"force": cubic}, cubic),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_ball_on_a_spring_moves_as_scipy_says(name):
    """Order two, energy to rounding, and the momentum of the world's pull is in the accounts."""
    given, tension = LAWS[name]
    robot, (q0, v0) = ball(), states()

    def law(t, y):
        apart = y[:3] - ABOVE
        length = np.linalg.norm(apart)
        n = apart / length
        return [*y[3:], *(-tension(length, n @ y[3:]) * n / 2.0 + [0, 0, -G])]

    end = solve_ivp(law, (0, 0.5), START, "DOP853", rtol=1e-11, atol=1e-12).y[:3, -1]
    errors = []
    for dt in (2e-3, 1e-3):
        spring = rk.Spring("world", "ball", ABOVE, **given)
        run = rk.simulate(robot, q0, v0, duration=0.5, dt=dt, springs=spring)
        errors.append(np.abs(run.q[-1, 4:] - end).max())
        assert run.summary["integrator"] == "contact"
        assert np.ptp(run.energy.total) < 1e-11
        assert run.summary["momentum_balance_linear"] < 1e-12
    assert errors[1] < 1e-5
    assert 3.0 < errors[0] / errors[1] < 6.0
    (record,) = run.springs
    np.testing.assert_allclose(record.length, np.linalg.norm(run.q[:, 4:] - ABOVE, axis=1), rtol=1e-12)
    np.testing.assert_allclose(record.rate[1:-1], np.gradient(record.length, run.t)[1:-1], atol=2e-3)
    np.testing.assert_allclose(
        record.force, [tension(*x) for x in zip(record.length, record.rate, strict=True)], atol=1e-9
    )
    slope = np.gradient(record.energy, record.length)
    still = np.array([tension(x, 0.0) for x in record.length])
    fast = np.abs(record.rate) > 0.2
    np.testing.assert_allclose(slope[1:-1][fast[1:-1]], still[1:-1][fast[1:-1]], atol=0.4)


def test_springs_conserve_energy_and_momentum_of_what_floats():
    """Two links in free flight on a spring: what is stored and what moves, to second order in dt."""
    b = ModelBuilder("two").link("a", 1.0, (0, 0, 0), np.eye(3) * 0.02)
    b.link("b", 2.0, (0, 0, 0), np.eye(3) * 0.03).joint("j", "spherical", "a", "b")
    robot = b.build("floating", gravity=(0, 0, 0))
    q = robot.neutral()
    q[4:7] = 0.0, 0.0, 1.0
    v = np.array([0.3, -2.0, 1.0, 0, 0, 0, 1.0, 3.0, -1.0])
    spring = rk.Spring("a", "b", (0.3, 0, 0), (0, 0.4, 0.1), stiffness=40.0, rest_length=0.3)
    lost = []
    for dt in (4e-3, 2e-3):
        run = rk.simulate(robot, q, v, duration=1.0, dt=dt, springs=spring)
        lost.append(np.abs(run.energy.mechanical - run.energy.mechanical[0]).max())
        assert run.summary["momentum_balance_angular"] < 1e-12
        assert run.energy.springs.max() - run.energy.springs.min() > 0.1
    assert lost[1] < 3e-4 * run.energy.kinetic.max()
    assert lost[0] / lost[1] > 3.5


def test_no_spring_is_too_stiff():
    """A net of springs up to 1e9 N/m holds a plate at a step of 2 ms: it rests where it is pulled to."""
    plate = ModelBuilder("plate").link("plate", 1.0, (0, 0, 0), np.diag([0.01, 0.01, 0.02])).build("floating")
    corners = [np.array([x, y, 0.0]) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
    hooks = [3.0 * c + [0, 0, h] for c in corners for h in (-1.0, 1.0)]
    q = plate.neutral()
    q[4:] = 0.01, -0.02, 0.03
    for stiffness in (1e3, 1e6, 1e9):
        springs = [
            rk.Spring("world", "plate", hook, corner, stiffness=stiffness, damping=1.0, preload=5.0)
            for corner, pair in zip(corners, np.reshape(hooks, (4, 2, 3)), strict=True)
            for hook in pair
            for _ in range(3)
        ]
        run = rk.simulate(plate, q, duration=2.0, dt=2e-3, springs=springs)
        assert np.abs(run.q[-1, 4:]).max() < 3.0 * G / stiffness + 1e-9, stiffness
        assert run.energy.kinetic.max() < 20.0


def test_a_torsion_spring_at_a_joint_swings_in_its_closed_form():
    """I a = -k (a - a0) - d a': frequency and decay; of a function as SciPy says."""
    inertia, k, d, rest = 2.0, 160.0, 2.0, 0.3
    b = ModelBuilder("wheel").link("base").link("wheel", 1.0, (0, 0, 0), np.eye(3) * inertia)
    robot = b.joint("hub", "continuous", "base", "wheel", axis=(0, 0, 1)).build()
    run = rk.simulate(
        robot, [1.3], duration=1.0, springs=rk.JointSpring("hub", stiffness=k, damping=d, rest=rest)
    )
    g = d / (2.0 * inertia)
    w = np.sqrt(k / inertia - g * g)
    exact = rest + np.exp(-g * run.t) * (np.cos(w * run.t) + g / w * np.sin(w * run.t))
    np.testing.assert_allclose(run.q[:, 0], exact, atol=1e-4)
    np.testing.assert_allclose(run.springs[0].force, k * (run.q[:, 0] - rest) + d * run.v[:, 0], atol=1e-12)
    run = rk.simulate(robot, [1.3], duration=1.0, springs=rk.JointSpring("hub", force=cubic))
    law = solve_ivp(
        lambda t, y: [y[1], -cubic(*y) / inertia], (0, 1), [1.3, 0.0], "DOP853", run.t, rtol=1e-10
    )
    np.testing.assert_allclose(run.q[:, 0], law.y[0], atol=3e-4)


def test_rows_and_steps_have_the_bits_of_one_run():
    robot = rk.load_urdf(rk.find_robot("arm"))
    springs = [
        rk.Spring("world", robot.link_names[-1], (0.5, 0, 1), stiffness=80.0, damping=2.0),
        rk.JointSpring(robot.joint_names[1], force=cubic),
    ]
    q = robot.random_configuration(np.random.default_rng(1))
    run = rk.simulate(robot, q, duration=0.1, springs=springs)
    rows = rk.rollout(robot, np.stack([robot.neutral(), q, q]), duration=0.1, springs=springs)
    assert np.array_equal(rows.q[:, 1], run.q) and np.array_equal(rows.q[:, 2], run.q)
    sim = rk.Simulation(robot, q, dt=run.summary["dt"], springs=springs)
    for _ in range(run.summary["steps"]):
        sim.step()
    assert np.array_equal(sim.q, run.q[-1])


def test_a_spring_does_what_its_force_does():
    """On contact, with a robot that stands: a preload alone is a pair of pushes."""
    robot, q = ball(), states()[0]
    pull = rk.simulate(robot, q, duration=0.3, springs=rk.Spring("world", "ball", (9e6, 0, 0), preload=5.0))
    push = rk.simulate(robot, q, duration=0.3, pushes=("ball", [5.0, 0, 0], (0, 0, 0), 0.0, 0.3), dt=1e-3,
                       integrator="contact")  # fmt: skip
    np.testing.assert_allclose(pull.q, push.q, atol=1e-6)


@pytest.mark.parametrize("damping", [0.0, 1.0])
def test_a_spring_whose_length_no_joint_changes_does_nothing(damping):
    """One end is on the axis of the joint between. Its mobility is rounding, and was divided by: no step
    settled on the ground, and states were no longer finite.
    """
    builder, turn = ModelBuilder("arm"), np.diag([1e-3, 1.2e-3, 1.3e-3])
    for k in range(3):
        builder.link(f"l{k}", 1.0, (0.1, 0.01, 0.02), turn, collisions=(Shape(Sphere(0.03)),))
    builder.joint("a", "planar", "l0", "l1", Placement(position=np.array([0.2, 0, 0])), axis=(0.3, 1, 0.2))
    end = Placement(position=np.array([0.2, 0.01, 0.03]))
    builder.joint("b", "revolute", "l1", "l2", end, axis=(0.5, 0.3, 0.9), lower=-2.0, upper=2.0)
    robot, spring = builder.build("fixed"), rk.Spring("l1", "l2", stiffness=3000.0, damping=damping)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = 0.3 * rng.normal(size=robot.nq), rng.normal(size=robot.nv)
        low = min(p[2] for _, p in rk.forward_kinematics(robot, q).values()) - 0.025
        how = {"duration": 0.05, "dt": 1e-3, "ground": rk.Ground(height=low), "self_collision": False}
        free, held = (rk.simulate(robot, q, v, springs=springs, **how) for springs in ((), spring))
        assert held.summary["steps_not_settled"] == 0
        assert held.q == pytest.approx(free.q, abs=1e-10)


def test_step_derivatives_know_springs():
    robot = rk.load_urdf(rk.find_robot("arm"))
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng), rng.standard_normal(robot.nv)
    spring = rk.Spring("world", robot.link_names[-1], (0, 0, 2), (0.1, 0, 0), stiffness=300.0, damping=2.0)
    made = rk.step_derivatives(robot, q, v, dt=1e-3, springs=spring).A
    h, n = 1e-6, robot.nv

    def step(q, v):
        found = rk.step_derivatives(robot, q, v, dt=1e-3, springs=spring)
        return np.concatenate([found.q, found.v])

    for k in range(n):
        d = np.zeros(n)
        d[k] = h
        by_q = (step(robot.integrate(q, d), v) - step(robot.integrate(q, -d), v)) / (2 * h)
        by_v = (step(q, v + d) - step(q, v - d)) / (2 * h)
        np.testing.assert_allclose(made[:, k], by_q, atol=1e-4)
        np.testing.assert_allclose(made[:, n + k], by_v, atol=1e-4)


@pytest.mark.parity
def test_mujoco_moves_springs_as_we_do():
    """A chain with springs to the world and at a joint: MuJoCo, of order one, at a hundredth of the step."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string("""
    <mujoco><option timestep="0.00001" integrator="implicit"><flag contact="disable"/></option><worldbody>
      <site name="w" pos="0.6 0.1 0.2"/>
      <body><joint name="a" axis="0 1 0" stiffness="3" damping="0.2" springref="20"/>
        <inertial mass="1" pos="0 0 -0.25" diaginertia="0.02 0.02 0.001"/>
        <body pos="0 0 -0.5"><joint name="b" axis="1 0 0"/>
          <inertial mass="0.5" pos="0 0 -0.2" diaginertia="0.01 0.01 0.001"/>
          <site name="t" pos="0.05 0 -0.4"/>
        </body></body></worldbody>
      <tendon><spatial stiffness="30" damping="0.5" springlength="0.4">
        <site site="w"/><site site="t"/></spatial></tendon></mujoco>""")
    data = mujoco.MjData(model)
    data.qpos[:] = 0.5, -0.8
    mujoco.mj_step(model, data, 50_000)
    b = ModelBuilder("chain").link("base").link("a", 1.0, (0, 0, -0.25), np.diag([0.02, 0.02, 0.001]))
    b.link("b", 0.5, (0, 0, -0.2), np.diag([0.01, 0.01, 0.001]))
    b.joint("a", "continuous", "base", "a", axis=(0, 1, 0))
    robot = b.joint("b", "continuous", "a", "b", Placement(position=np.array([0, 0, -0.5]))).build()
    springs = [
        rk.JointSpring("a", stiffness=3.0, damping=0.2, rest=np.radians(20)),
        rk.Spring(
            "world", "b", (0.6, 0.1, 0.2), (0.05, 0, -0.4), stiffness=30.0, damping=0.5, rest_length=0.4
        ),
    ]
    run = rk.simulate(robot, [0.5, -0.8], duration=0.5, dt=1e-3, springs=springs)
    np.testing.assert_allclose(run.q[-1], data.qpos, atol=1e-4)


def test_a_record_is_saved_and_read(tmp_path):
    spring = rk.Spring("world", "ball", ABOVE, stiffness=50.0, name="string")
    run = rk.simulate(
        ball(), *states(), duration=0.02, springs=[spring, rk.Spring("world", "ball", stiffness=1)]
    )
    again = rk.Trajectory.load(run.save(tmp_path / "run"))
    assert [each.name for each in again.springs] == ["string", "world - ball"]
    for old, new in zip(run.springs, again.springs, strict=True):
        for name in ("length", "rate", "force", "energy", "points"):
            np.testing.assert_array_equal(getattr(old, name), getattr(new, name))
    np.testing.assert_array_equal(run.energy.total, again.energy.total)
    line = next(line for line in again.report() if line.startswith("  springs"))
    assert "2, at most" in line and "in 'string'" in line


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rk.Spring("world", "bal"), rk.UnknownName, "ball"),
        (lambda: rk.Spring("ball", "ball", (0, 0, 1)), rk.ShapeError, "one body"),
        (lambda: rk.Spring("world", "ball", stiffness=-1.0), rk.RobokitError, "stiffness"),
        (lambda: rk.Spring("world", "ball", acts="pulls"), rk.UnknownName, "acts"),
        (lambda: rk.Spring("world", "ball", force=lambda x, u: None), rk.RobokitError, "springs"),
        (
            lambda: rk.Spring("world", "ball", force=lambda x, u: math.exp(x)),
            rk.FunctionError,
            "springs.0.: force",
        ),
        (lambda: rk.Spring("world", "ball", force=lambda x, u: max(0.0, x)), rk.FunctionError, "no branch"),
        (lambda: rk.Spring("world", "ball", force=cubic, stiffness=1.0), rk.ShapeError, "beside stiffness"),
        (lambda: rk.JointSpring("floating_base"), rk.ShapeError, "one degree of freedom"),
        (lambda: "ball", rk.WrongType, "springs"),
    ],
)
def test_springs_that_make_no_sense_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        rk.simulate(ball(), duration=0.01, springs=make())
    with pytest.raises(rk.ShapeError, match="takes no springs"):
        rk.simulate(ball(), duration=0.01, springs=rk.Spring("world", "ball"), integrator="rkmk4")


def test_a_table_has_springs_and_prescribed_forces(tmp_path):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    spring = rk.JointSpring("lower_joint", stiffness=2.0)
    run = rk.simulate(
        robot, duration=0.02, springs=spring, motions=rk.PrescribedMotion("upper_joint", lambda t: t)
    )
    header, *rows = run.to_csv(tmp_path / "run").read_text().splitlines()
    table = dict(zip(header.split(","), np.array([row.split(",") for row in rows], float).T, strict=True))
    np.testing.assert_array_equal(table["spring/lower_joint/force"], 2.0 * run.q[:, 1])
    np.testing.assert_array_equal(table["energy/springs"], run.energy.springs)
    np.testing.assert_array_equal(table["prescribed_force/upper_joint"], run.prescribed_force["upper_joint"])
