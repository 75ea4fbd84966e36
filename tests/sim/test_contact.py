"""Contact with the ground: balls, boxes and slopes against theory, and a humanoid that falls."""

import math
import warnings

import numpy as np
import pytest
import sim_models as m

import robokit as rk

MU = 0.5
SINK, TIME = 1e-3, 0.02
GROUND = rk.Ground(sink=SINK, time=TIME)


def _at(robot, height, quat=(1.0, 0.0, 0.0, 0.0)):
    quat = np.array(quat) / np.linalg.norm(quat)
    return robot.configuration(base_position=(0, 0, height), base_quat_wxyz=quat)


def test_ground_carries_the_weight():
    trajectory = rk.simulate(m.box(), _at(m.box(), 0.1), duration=1.0, ground=rk.Ground())
    assert trajectory.contact_force[-1] == pytest.approx([0, 0, m.G], abs=1e-6)
    assert trajectory.contacts.forces[-1].sum(axis=0) == pytest.approx([0, 0, m.G], abs=1e-6)
    assert np.abs(trajectory.v[-1]).max() < 1e-6


def test_box_drop_never_gains_energy():
    for seed in range(8):
        quat = np.random.default_rng(seed).normal(size=4)
        trajectory = rk.simulate(
            m.box(), _at(m.box(), 0.5, quat), duration=1.5, ground=rk.Ground(), record_every=1
        )
        mechanical = trajectory.energy.mechanical
        # The ground's springs give back what they hold for a moment, never more than the start had.
        assert mechanical.max() - mechanical[0] < 1e-12, seed
        # The ledger closes but for the first-order step; at rest nothing is left to move.
        assert trajectory.summary["energy_balance"] < 0.02
        assert trajectory.energy.kinetic[-1] < 1e-5
        assert trajectory.summary["deepest_penetration"] < 0.01


def test_flat_box_drop_only_loses_energy():
    trajectory = rk.simulate(m.box(), _at(m.box(), 0.5), duration=1.0, ground=GROUND, record_every=1)
    # The middles of the steps follow the implicit Euler rule: z there is half a step ahead of the record.
    z = trajectory.q[:, 6] + 0.5 * trajectory.summary["dt"] * trajectory.v[:, 5]
    k = m.G / SINK
    held = 4 * 0.5 * k * np.minimum(z - 0.1, 0.0) ** 2
    assert np.diff(trajectory.energy.kinetic + m.G * z + held).max() < 1e-14


def test_momentum_balance_is_exact_with_contact():
    quat = (0.9, 0.3, 0.2, 0.1)
    trajectory = rk.simulate(
        m.box(), _at(m.box(), 0.3, quat), [1, 2, 3, 1, 0, 0], duration=1.0, ground=rk.Ground()
    )
    assert trajectory.summary["momentum_balance_linear"] < 1e-11
    assert trajectory.summary["momentum_balance_angular"] < 1e-11
    impulse = trajectory.contact_impulse[-1]
    expected = trajectory.momentum[-1, 3:] - trajectory.momentum[0, 3:] + [0, 0, m.G * trajectory.t[-1]]
    assert impulse == pytest.approx(expected, abs=1e-11)


def _on_a_slope(tangent):
    """(the run of a block set down on a slope, how far it moves downhill in the last of two seconds [m])."""
    run = rk.simulate(
        m.box(),
        _at(m.box(), 0.1),
        duration=2.0,
        ground=rk.Ground(friction=MU),
        gravity=m.tilted(math.atan(tangent)),
    )
    return run, run.q[-1, 4] - run.q[len(run) // 2, 4]


@pytest.mark.parametrize("tangent", [0.2, 0.4, 0.475])
def test_block_sticks_below_the_friction_angle(tangent):
    """Anchors hold it: it does not creep at all, and friction is all that gravity asks for."""
    run, moved = _on_a_slope(tangent)
    assert abs(moved) < 1e-12
    angle = math.atan(tangent)
    assert run.contact_force[-1] == pytest.approx(
        [-m.G * math.sin(angle), 0, m.G * math.cos(angle)], abs=1e-9
    )


@pytest.mark.parametrize("tangent", [0.6, 1.0])
def test_block_slides_above_the_friction_angle(tangent):
    angle = math.atan(tangent)
    # A slippery corner digs in: a flat start and a low block do not tip over.
    trajectory = rk.simulate(
        m.box(), _at(m.box(), 0.1), duration=1.0, ground=rk.Ground(friction=MU), gravity=m.tilted(angle)
    )
    half = len(trajectory) // 2
    acceleration = (trajectory.momentum[-1, 3] - trajectory.momentum[half, 3]) / (
        trajectory.t[-1] - trajectory.t[half]
    )
    assert acceleration == pytest.approx(m.G * (math.sin(angle) - MU * math.cos(angle)), rel=1e-3)


def _plate(mass=0.5, x=0.3, y=0.2, z=0.003):
    inertia = [mass / 12 * (y * y + z * z), mass / 12 * (x * x + z * z), mass / 12 * (x * x + y * y)]
    return rk.loads_urdf(
        f'''<robot name="plate"><link name="plate"><inertial><mass value="{mass}"/>
        <inertia ixx="{inertia[0]}" iyy="{inertia[1]}" izz="{inertia[2]}" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry><box size="{x} {y} {z}"/></geometry></collision></link></robot>''',
        base="floating",
    )


def test_a_slow_plate_stops_where_coulomb_says():
    """Bristles give way by some micrometres: at 0.3 m/s that is less than a thousandth of the way."""
    run = rk.simulate(_plate(), _at(_plate(), 0.0015), duration=0.5, ground=rk.Ground(friction=MU))
    run = rk.simulate(_plate(), run.q[-1], [0, 0, 0, 0.3, 0, 0], duration=0.2, ground=rk.Ground(friction=MU))
    assert run.q[-1, 4] - run.q[0, 4] == pytest.approx(0.3**2 / (2 * MU * m.G), rel=1e-3)


@pytest.mark.parametrize("dt", [0.5e-3, 1e-3])
def test_a_box_breaks_away_within_two_milliseconds(dt):
    """A push of 1.1 times the limit, at once: by the speed that it has half a second later."""
    ground, limit = rk.Ground(friction=MU), MU * m.G
    push = [("box", (1.1 * limit, 0, 0), (0, 0, -0.1), 0.5, 0.5)]
    run = rk.simulate(m.box(), _at(m.box(), 0.1), duration=1.0, dt=dt, ground=ground, pushes=push)
    late = 0.5 - run.momentum[-1, 3] / (0.1 * limit)
    assert abs(late) < 2e-3


def test_friction_coefficient_by_link():
    ground = rk.Ground(friction={"box": 0.0})
    trajectory = rk.simulate(m.box(), _at(m.box(), 0.1), [0, 0, 0, 1, 0, 0], duration=0.5, ground=ground)
    assert trajectory.momentum[-1, 3] == pytest.approx(1.0, rel=1e-3)


def test_friction_of_what_slides_is_all_that_the_normal_force_allows():
    """In every step of an oblique impact, to rounding."""
    ground = rk.Ground(friction=MU, sink=SINK, time=TIME)
    v = [0, 0, 0, 5, 0, -2]
    run = rk.simulate(m.ball(), _at(m.ball(), 0.11), v, duration=0.03, ground=ground, record_every=1)
    force = run.contact_force[run.contact_force[:, 2] > 0.0]
    assert len(force) > 15
    np.testing.assert_allclose(np.linalg.norm(force[:, :2], axis=1), MU * force[:, 2], rtol=1e-9)


def test_ball_rolls_and_does_not_sink():
    """A ball set sliding ends up rolling at 5/7 of its speed."""
    robot = m.ball()
    trajectory = rk.simulate(
        robot, _at(robot, 0.1), [0, 0, 0, 1, 0, 0], duration=1.5, ground=rk.Ground(friction=0.3)
    )
    assert trajectory.momentum[-1, 3] == pytest.approx(5 / 7, rel=0.01)
    assert trajectory.v[-1, 1] * 0.1 == pytest.approx(trajectory.momentum[-1, 3], abs=2e-3)


@pytest.mark.parametrize("speed", [1.0, 10.0])
@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_ball_does_not_tunnel_or_bounce_up(speed, dt):
    robot = m.ball()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # deep at 10 m/s and 4 ms: that is not the point here
        trajectory = rk.simulate(
            robot,
            _at(robot, 0.5),
            [0, 0, 0, 0, 0, -speed],
            duration=1.0,
            dt=dt,
            ground=GROUND,
            record_every=1,
        )
    z = trajectory.q[:, 6]
    # One damper d alone would stop the ball within v M / d.
    impact = math.sqrt(speed**2 + 2 * m.G * 0.4)
    assert z.min() > 0.1 - impact * SINK / (m.G * TIME) - SINK
    landed = int(np.argmax(z < 0.1))
    # One point with all the mass is critically damped: it gives back e^-2 of the speed at most.
    assert z[landed:].max() < 0.1 + (math.exp(-2) * impact) ** 2 / (2 * m.G)
    assert z[-1] == pytest.approx(0.1, abs=1.1e-3)


@pytest.mark.filterwarnings("ignore:.*long for contact")
@pytest.mark.parametrize("dt", [1e-3, 2e-2])
def test_nothing_hovers_where_gravity_alone_brings_it_down(dt):
    """Its damper alone would let it sink by a small part of the way in each step."""
    high = m.G * dt**2
    for gap in (0.02 * high, 0.2 * high, 0.45 * high):
        run = rk.simulate(m.ball(), _at(m.ball(), 0.1 + gap), duration=2 * dt, dt=dt, ground=GROUND)
        assert run.q[-1, 6] - 0.1 < 1e-3 * high


def test_no_ground_force_above_the_ground():
    trajectory = rk.simulate(m.box(), _at(m.box(), 1.0), duration=0.2, ground=rk.Ground(height=0.2))
    assert not trajectory.contact_force.any()
    assert not trajectory.contacts.forces.any()


def test_ground_height_moves_everything():
    low = rk.simulate(m.box(), _at(m.box(), 0.2), duration=0.5, ground=rk.Ground())
    high = rk.simulate(m.box(), _at(m.box(), 1.2), duration=0.5, ground=rk.Ground(height=1.0))
    assert high.q[:, 6] - 1.0 == pytest.approx(low.q[:, 6], abs=1e-9)


@pytest.mark.slow
def test_twenty_humanoids_fall():
    robot, deepest = m.humanoid(), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q = robot.random_configuration(rng)
        q[6] = rk.standing_height(robot, q, clearance=0.2)
        trajectory = rk.simulate(robot, q, 0.5 * rng.normal(size=robot.nv), duration=2.0, ground=rk.Ground())
        assert np.isfinite(trajectory.v).all()
        deepest.append(trajectory.summary["deepest_penetration"])
        assert trajectory.summary["momentum_balance_linear"] < 1e-9
        # What the ledger misses is the first-order step's own error.
        assert trajectory.summary["energy_balance"] < 0.005 * abs(trajectory.energy.mechanical[0]) + 2.0
    assert np.median(deepest) < 0.01 and max(deepest) < 0.03  # 1.1 cm in the worst of 150


@pytest.mark.parametrize("height", [-2.0, -0.3])
def test_a_point_mass_has_the_usual_ground(height):
    """A link without shape and without rotational inertia is a point; it has no size to go by."""
    builder = rk.ModelBuilder("pendulum").link("base").link("bob", mass=1.0, com=(0.0, 0.0, -0.5))
    builder.joint("hinge", "revolute", "base", "bob", axis=(0, 1, 0), damping=0.5)
    robot, ground = builder.build("fixed"), rk.Ground(height=height, friction=0.0)
    run = rk.simulate(robot, [1.5], duration=6.0, ground=ground)
    if height < -0.5:
        assert abs(run.q[-1, 0]) < 0.01
    else:
        lever = 0.5 * math.sin(run.q[-1, 0])
        assert run.contact_force[-1, 2] == pytest.approx(9.81, rel=1e-6) and lever > 0.3
        assert 0.0 < height + 0.5 * math.cos(run.q[-1, 0]) < 1.01e-3
    rows = rk.rollout(robot, [1.5], duration=6.0, ground=ground)
    np.testing.assert_allclose(rows.q[-1, 0], run.q[-1], atol=1e-9)
