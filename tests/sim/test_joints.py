"""Damping, dry friction and stops of joints, and controllers."""

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Shape, Sphere
from robokit.sim.joint_forces import GIVING, STUCK, joint_law

INERTIA = 1.0 * 0.5**2 + 0.01


@pytest.mark.parametrize("name", ["contact", "rkmk4"])
def test_limit_holds(name):
    robot = m.pendulum(lower=-1.0, upper=0.5)
    trajectory = rk.simulate(robot, [-0.9], [4.0], duration=3.0, integrator=name, record_every=1)
    assert trajectory.q.max() < 0.5 + 0.02
    assert trajectory.summary["dissipated_by_stops"] > 0.1
    assert trajectory.energy.mechanical.max() < trajectory.energy.mechanical[0] + 0.03
    assert trajectory.summary["energy_balance"] < 0.05


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
def test_a_stop_carries_a_static_load(name):
    """Gravity pushes the pendulum onto its stop and leaves it there."""
    robot = m.pendulum(lower=0.4, upper=1.0)
    trajectory = rk.simulate(robot, [0.6], duration=3.0, integrator=name)
    assert trajectory.q[-1, 0] == pytest.approx(0.4, abs=0.01)
    assert abs(trajectory.v[-1, 0]) < 1e-6


def test_a_start_past_a_limit_is_warned_of(recwarn):
    robot = m.pendulum(lower=-1.0, upper=0.5)
    for q in ([0.54], [-1.04], [0.0]):
        rk.simulate(robot, q, duration=0.01)
    rk.simulate(m.pendulum(kind="continuous"), [7.0], duration=0.01)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="joint 'hinge' starts 0.3 rad beyond its upper limit, 0.5 rad"):
        rk.simulate(robot, [0.8], duration=0.01)
    with pytest.warns(UserWarning, match="starts 0.2 rad beyond its lower limit, -1 rad"):
        rk.rollout(robot, [[0.0], [-1.2], [-1.1]], duration=0.01)
    with pytest.warns(UserWarning, match="joint 'slide' starts 0.01 m beyond its upper limit, 0.2 m"):
        rk.simulate(m.slider(upper=0.2), [0.21], duration=0.01)


def test_continuous_joint_has_no_stop():
    robot = m.pendulum(kind="continuous")
    trajectory = rk.simulate(robot, [0.0], [20.0], duration=1.0)
    assert trajectory.q[-1, 0] > 2 * math.pi


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
def test_damping_decays_as_theory(name):
    robot = m.pendulum(kind="continuous", damping=0.2)
    trajectory = rk.simulate(robot, None, [1.0], duration=1.0, gravity=(0, 0, 0), integrator=name)
    assert trajectory.v[:, 0] == pytest.approx(np.exp(-0.2 / INERTIA * trajectory.t), rel=1e-3)
    assert trajectory.energy.dissipated[-1] == pytest.approx(
        trajectory.energy.kinetic[0] - trajectory.energy.kinetic[-1], abs=1e-9
    )


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
def test_dry_friction_holds_and_brakes(name):
    """What sticks gives way until it carries the load, and does not creep.

    In "contact" that is by a hundredth of the way that the load alone would go in a step (joints.py).
    """
    holding = m.pendulum(kind="continuous", friction=3.0)
    trajectory = rk.simulate(holding, [0.5], duration=1.0, integrator=name)
    torque = m.G * 0.5 * math.sin(0.5)
    wound = 1e-2 * torque * 1e-3**2 / INERTIA if name == "contact" else STUCK * torque / 3.0
    assert trajectory.q[-1, 0] - 0.5 == pytest.approx(-wound, rel=1e-4)
    assert abs(trajectory.v[-1, 0]) < 1e-15
    sliding = rk.simulate(holding, None, [5.0], duration=0.2, gravity=(0, 0, 0), integrator=name)
    assert sliding.v[-1, 0] == pytest.approx(5.0 - 3.0 / INERTIA * 0.2, rel=1e-3)


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
def test_dry_friction_stops_a_cart_in_time(name):
    """m v / f after the start, v^2 m / (2 f) away, and all of its energy entered as friction."""
    mass, force, speed = 2.0, 3.0, 1.5
    cart = m.slider(friction=force)
    run = rk.simulate(cart, None, [speed], duration=1.2, integrator=name, record_every=1)
    stopped = run.t[np.argmax(run.v[:, 0] < 0.01)]
    assert stopped == pytest.approx(mass * speed / force, rel=0.01)
    assert run.q[-1, 0] == pytest.approx(mass * speed**2 / (2 * force), rel=2e-3)
    assert np.abs(run.v[-1, 0]) < 1e-9
    assert run.energy.dissipated[-1] == pytest.approx(0.5 * mass * speed**2, rel=1e-9)
    assert run.summary["dissipated_by_friction"] == run.energy.dissipated[-1]
    # All that it takes is lost, but for what the bristle holds.
    assert np.diff(run.energy.dissipated).min() > -0.5 * force * min(STUCK, force * GIVING**2 / mass)


@pytest.mark.parametrize("dt", [0.5e-3, 1e-3, 4e-3])
@pytest.mark.parametrize("force", [0.03, 0.3, 3.0, 30.0])
def test_a_joint_breaks_away_within_two_milliseconds(force, dt):
    """Pushed with 1.1 times its friction, by its speed at the end: weak friction must not creep first."""
    cart = m.slider(friction=force)
    run = rk.simulate(cart, duration=0.4, dt=dt, actuators=rk.Torque(1.1 * force))
    assert abs(0.4 - run.v[-1, 0] * 2.0 / (0.1 * force)) < 2e-3


def test_dry_friction_below_zero_is_refused():
    robot = m.pendulum(kind="continuous", friction=-2.0)
    for run in (rk.simulate, rk.rollout):
        with pytest.raises(rk.ModelError, match=r"joint 'hinge': its dry friction of -2 is below zero"):
            run(robot, duration=0.1)


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
def test_a_stop_never_creates_energy(name):
    """Between two stops, without gravity: what moves and what the stops hold only becomes less."""
    robot, speed = m.pendulum(lower=-1.0, upper=0.5), 4.0
    stiffness = joint_law(robot)[0].stop[1].k
    for early in (0.0013, 0.0021, 0.0029):  # of the 4 mrad of a step: it reaches the stop within one
        how = {"duration": 4.0, "integrator": name, "record_every": 1, "gravity": (0, 0, 0)}
        run = rk.simulate(robot, [-0.9 + early], [speed], **how)
        # Half a step ahead of the record the implicit Euler rule holds for stops that push.
        ahead = 0.5 * run.summary["dt"] * run.v[:, 0]
        q = run.q[:, 0] + ahead
        depth = np.maximum(np.maximum(q - 0.5, -1.0 - q), 0.0)
        assert np.count_nonzero(np.diff(np.sign(run.v[:, 0]))) >= 2, "it hits both stops"
        assert 1e-3 < depth.max() < 0.012
        more = np.diff(run.energy.kinetic + 0.5 * stiffness * depth**2)
        # In the step that arrives, the half step can be in the stop before the stop pushes.
        pushes = (np.maximum(run.q[:, 0] - 0.5, -1.0 - run.q[:, 0]) > 0.0)[:-1]
        assert more[pushes].max() < 1e-14
        assert more.max() <= 0.5 * stiffness * (0.5 * run.summary["dt"] * speed) ** 2
        assert run.energy.kinetic.max() == run.energy.kinetic[0]
        assert run.energy.kinetic[-1] < 0.1 * run.energy.kinetic[0]
        assert run.summary["energy_balance"] < 1e-12


@pytest.mark.parametrize("rotor", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("how", [{}, {"ground": rk.Ground(height=-2.0)}])
def test_a_stop_stops_the_rotor_too(rotor, how):
    """A critically damped stop of 5 ms gives way by v T / e, whatever turns against it."""
    motor = rk.Torque(armature=rotor)
    robot = m.pendulum(lower=-1.0, upper=1.0)
    run = rk.simulate(
        robot, [0.9], [5.0], duration=0.2, actuators=motor, gravity=(0, 0, 0), record_every=1,
        joint_damping=1e-9, **how,
    )  # fmt: skip
    assert 0.5 < (run.q.max() - 1.0) / (5.0 * 5e-3 / math.e) < 1.2


def test_a_rotor_is_the_inertia_of_a_link_without_mass():
    builder = rk.ModelBuilder("dial").link("post", mass=1.0, inertia=np.eye(3) * 0.01).link("hand")
    builder.joint("axle", "revolute", "post", "hand", axis=(0, 0, 1), lower=-0.5, upper=0.5)
    dial, motor = builder.build("fixed"), rk.Torque(0.3, armature=0.1)
    free = rk.simulate(dial, duration=0.5, actuators=motor)
    assert free.q[-1, 0] == pytest.approx(0.5 * 0.3 / 0.1 * 0.5**2, rel=1e-9)
    fallen = rk.simulate(dial, duration=3.0, actuators=motor, ground=rk.Ground(height=-1.0))
    assert fallen.q[-1, 0] == pytest.approx(0.5, abs=1e-3)


def test_a_prismatic_stop_holds_a_cart():
    robot = m.slider(lower=-0.2, upper=0.3)
    run = rk.simulate(robot, None, [3.0], duration=2.0, record_every=1)
    assert run.q.min() > -0.23 and 0.3 < run.q.max() < 0.33
    assert run.energy.mechanical.max() == run.energy.mechanical[0]
    assert run.summary["dissipated_by_stops"] == pytest.approx(run.energy.dissipated[-1], rel=1e-12)


@pytest.mark.parametrize("name", ["contact", "midpoint", "rkmk4"])
def test_the_ledger_of_a_damped_double_pendulum_closes(name):
    """With gravity and every kind of loss: the error of the ledger is that of the free motion."""
    builder = rk.ModelBuilder("damped")
    builder.link("base")
    for k in (1, 2):
        builder.link(f"rod{k}", mass=1.0, com=(0, 0, -0.4), inertia=np.eye(3) * 0.01)
    builder.joint("one", "continuous", "base", "rod1", axis=(0, 1, 0), damping=0.05, friction=0.1)
    low = rk.Placement(position=np.array([0, 0, -0.5]))
    builder.joint("two", "revolute", "rod1", "rod2", low, (0, 1, 0), damping=0.02, lower=-1.5, upper=1.5)
    dt = 2.5e-4 if name == "contact" else 1e-3
    run = rk.simulate(builder.build("fixed"), [2.5, 0.0], duration=5.0, dt=dt, integrator=name)
    lost = run.energy.mechanical[0] - run.energy.mechanical[-1]
    assert lost > 5.0
    assert run.energy.dissipated[-1] == pytest.approx(lost, abs={"contact": 0.3}.get(name, 0.02))
    parts = sum(run.summary[f"dissipated_by_{k}"] for k in ("contact", "friction", "stops"))
    assert run.energy.dissipated[-1] == pytest.approx(parts, rel=1e-12)
    assert all(run.summary[f"dissipated_by_{k}"] > 0.01 for k in ("friction", "stops"))


def test_stiff_friction_is_stable():
    robot = m.pendulum(kind="continuous", damping=1e4, friction=1e3)
    trajectory = rk.simulate(robot, [0.5], [3.0], duration=0.5, dt=5e-3)
    assert abs(trajectory.v[-1, 0]) < 1e-3


@pytest.mark.slow
def test_falls_assume_some_damping_and_say_so():
    robot = m.free_chain()
    q = rk.standing_configuration(robot, height=0.5)
    trajectory = rk.simulate(robot, q, duration=0.05, ground=rk.Ground())
    assert trajectory.summary["default_damping"] == "inertia"
    assert trajectory.summary["default_damping_joints"] == 4
    assert any("inertia / 0.5 s assumed in 4 joints" in line for line in trajectory.report())
    given = rk.simulate(robot, q, duration=0.05, ground=rk.Ground(), joint_damping=0.3)
    assert given.summary["default_damping"] == 0.3
    assert any("0.3 N m s/rad assumed in 4 joints" in line for line in given.report())
    assert "default_damping" not in rk.simulate(robot, q, duration=0.05).summary
    none = rk.simulate(robot, q, duration=0.05, ground=rk.Ground(), joint_damping=0.0)
    assert "default_damping" not in none.summary


def test_controller_holds_and_its_work_is_entered():
    robot = m.double_pendulum()
    target = np.array([0.4, -0.3])

    def hold(t, q, v):
        return rk.gravity_forces(robot, q) + 40.0 * (target - q) - 8.0 * v

    trajectory = rk.simulate(robot, duration=2.0, controller=hold)
    assert trajectory.q[-1] == pytest.approx(target, abs=1e-3)
    assert trajectory.tau.shape == trajectory.v.shape
    gained = trajectory.energy.mechanical[-1] - trajectory.energy.mechanical[0]
    assert trajectory.energy.work[-1] == pytest.approx(gained, abs=1e-6)
    assert trajectory.summary["energy_balance"] < 1e-6


def test_a_controller_gets_time_and_copies():
    """What a controller does to its arguments changes nothing; its force acts in the step after."""
    seen = []

    def push(t, q, v):
        seen.append(t)
        q[:], v[:] = 99.0, 99.0
        return [4.0]

    cart = m.slider()
    run = rk.simulate(cart, duration=0.01, controller=push, record_every=1)
    assert seen == pytest.approx((np.arange(10) + 0.5) * 1e-3)
    assert run.v[:, 0] == pytest.approx(2.0 * run.t, rel=1e-12)
    assert run.energy.work == pytest.approx(4.0 * run.q[:, 0], rel=1e-12)
    assert run.tau == pytest.approx(np.full((11, 1), 4.0))


@pytest.mark.parametrize("bad", [None, np.zeros(3), [math.nan, 0.0], "no"])
def test_controller_of_a_wrong_shape(bad):
    with pytest.raises((rk.ShapeError, rk.InvalidValue), match="controller"):
        rk.simulate(m.double_pendulum(), duration=0.1, controller=lambda t, q, v: bad)


def test_limits_of_a_smaller_and_lighter_robot_act_as_its_ground_does():
    """A fall onto a ground that gives way by a share of the size: lengths times L, times by the root of L."""

    def fall(size: float, mass: float) -> np.ndarray:
        ball = [Shape(Sphere(0.1 * size))]
        inertia = 0.004 * mass * size**2 * np.eye(3)
        builder = rk.ModelBuilder("robot").link("base", mass, inertia=inertia, collisions=ball)
        for kind, reach in (("prismatic", 0.05 * size), ("revolute", 0.3)):
            at = rk.Placement(position=np.array([0.0, 0.3 * size, 0.0]))
            builder.link(kind, mass, inertia=inertia, collisions=ball)
            builder.joint(f"{kind}_joint", kind, "base", kind, at, (1, 0, 1), lower=-reach, upper=reach)
        robot, time = builder.build("floating"), math.sqrt(size)
        q, v = robot.neutral(), np.zeros(robot.nv)
        q[6], v[:2], v[3] = 0.5 * size, np.array([2.0, -1.0]) / time, size / time
        how = {"dt": 1e-3 * time, "joint_damping": 0.0, "ground": rk.Ground(sink=1e-3 * size)}
        run = rk.simulate(robot, q, v, duration=0.6 * time, record_every=5, **how)
        assert run.losses["stops"][-1] > 0.01 * mass * 9.81 * size
        return run.center_of_mass / size

    whole = fall(1.0, 1.0)
    for size, mass in ((0.1, 1.0), (1.0, 1e-6), (0.1, 1e-6)):
        assert np.abs(fall(size, mass) - whole).max() < 1e-9
