"""Impacts that touching contacts pass on: which body flies off, and with how much of energy and momentum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import ModelBuilder, Placement, Shape, Sphere
from robokit.sim.steppers import energies

STEPS = (0.25e-3, 1e-3, 4e-3)
SIZE = 0.2  # of bodies, between their faces [m]


@cache
def several(kind: str, count: int) -> rk.Robot:
    """So many balls or boxes of 1 kg."""
    return rk.together({f"{k}": {"ball": m.ball, "box": m.box}[kind]() for k in range(count)})


def moved(robot, places, v, e=1.0, duration=0.02, dt=1e-3, gravity=(0.0, 0.0, 0.0), spin=0.0, **ground):
    """The run of bodies that begin upright at places (n, 3), with v [m/s] and spins [rad/s], (n, 3)."""
    count = len(places)
    q, qd = np.zeros((count, 7)), np.zeros((count, 6))
    q[:, 0], q[:, 4:], qd[:, 3:], qd[:, :3] = 1.0, places, v, spin
    pairs = rk.collision_pairs(robot).with_law(restitution=e, friction=ground.get("friction", 0.0))
    floor = rk.Ground(restitution=e, **ground) if ground else None
    return rk.simulate(
        robot,
        q.ravel(),
        qd.ravel(),
        duration,
        dt,
        gravity=gravity,
        record_every=1,
        ground=floor,
        self_collision=pairs,
    )


def along(axis, gaps, count=5, lowest=0.0):
    """Places of bodies in a row."""
    places = np.zeros((count, 3))
    places[:, 2] = lowest
    places[:, axis] += SIZE * np.arange(count) + np.cumsum(np.broadcast_to(gaps, count))
    return places


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("gap", [0.0, 1e-6, -1e-6])
@pytest.mark.parametrize("come", [1, 2, 3])
@pytest.mark.parametrize("way", [0.01, 0.02])  # the second is covered at 4 ms just when a step ends
def test_as_many_balls_fly_off_a_cradle_as_come(way, come, gap, dt):
    v = np.zeros((5, 3))
    v[:come, 0] = 2.0
    places = along(0, gap)
    places[:come, 0] -= way
    run = moved(several("ball", 5), places, v, duration=0.03, dt=dt)
    after = run.v[-1].reshape(5, 6)[:, 3]
    np.testing.assert_allclose(after, v[::-1, 0], atol=2e-3)
    assert abs(after.sum() - v.sum()) < 1e-12


@pytest.mark.parametrize("dt", STEPS)
def test_a_cradle_with_less_restitution_is_one_of_tiny_gaps(dt):
    """Each ball hands (1 + e) / 2 of its speed to the next one and keeps (1 - e) / 2."""
    e, v = 0.9, np.zeros((3, 3))
    v[0, 0] = 2.0
    run = moved(several("ball", 3), along(0, -1e-6, 3), v, e=e, dt=dt)
    keeps, gives = 0.5 * (1.0 - e), 0.5 * (1.0 + e)
    one, other, last = 2.0 * keeps, 2.0 * gives * keeps, 2.0 * gives * gives
    # The first one is faster than the second now, and hits it again.
    wanted = keeps * one + gives * other, gives * one + keeps * other, last
    np.testing.assert_allclose(run.v[-1].reshape(3, 6)[:, 3], wanted, atol=1e-3)


def test_a_ball_that_comes_nearer_feels_nothing_before_it_touches():
    """While the one before it hit another, it was held at twice its speed of approach, a millimetre away."""
    places, v = along(0, 1e-3, 3), np.zeros((3, 3))
    v[:2, 0] = 2.0 + 1e-9, 2.0
    run = moved(several("ball", 3), places, v, duration=1.5e-3, dt=0.25e-3, spin=(0.0, 0.0, 20.0))
    speeds = np.linalg.norm(run.v[-1].reshape(3, 6)[:, 3:], axis=1)
    np.testing.assert_allclose(speeds, (0.0, 2.0, 2.0), atol=2e-3)


def test_a_long_row_passes_an_impact_on_to_its_end_in_a_step():
    """Of 60 balls that overlap by rounding the impact came to the 41st, and two thirds was lost."""
    v = np.zeros((60, 3))
    v[0, 0] = 2.0
    run = moved(several("ball", 60), along(0, -1e-9, 60), v, duration=2e-3)
    np.testing.assert_allclose(run.v[-1].reshape(60, 6)[:, 3], v[::-1, 0], atol=1e-3)
    # Iterations of all these impacts count.
    assert run.summary["contact_iterations_most"] > 59 and run.summary["steps_not_settled"] == 0


def test_what_moves_together_passes_nothing_on():
    """Bodies approach each other by rounding, without end."""
    v, places = np.zeros((7, 3)), along(0, -1e-6, 7)
    places[:5, 0] -= 0.006
    for seed in range(8):
        rng = np.random.default_rng(seed)
        v[:5, 0], spin = rng.uniform(0.5, 4.0), 10.0 * rng.normal(size=(7, 3))
        run = moved(several("ball", 7), places, v, spin=spin, duration=1e-3)
        assert run.summary["contact_iterations_most"] < 40 and run.summary["steps_not_settled"] == 0


def test_impacts_that_go_on_at_ever_less_speed_are_ended():
    """What a ball keeps of an impact makes others behind it: more than 1000, in which little is left."""
    v = np.zeros((60, 3))
    v[0, 0] = 2.0
    run = moved(several("ball", 60), along(0, -1e-9, 60), v, e=0.5, duration=2e-3)
    assert run.summary["steps_not_settled"] == 0
    assert abs(run.v[-1].reshape(60, 6)[:, 3].sum() - 2.0) < 1e-12


@pytest.mark.parametrize("dt", STEPS)
@pytest.mark.parametrize("gap", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("count", [2, 3])
def test_balls_that_land_on_each_other_keep_their_energy(count, gap, dt):
    """Two lost 20, 61 and 80 % in steps of 4, 1 and 0.25 ms, where they touched."""
    places = along(2, gap, count, 0.15)
    v = np.tile([0.0, 0.0, -4.0], (count, 1))
    robot = several("ball", count)
    run = moved(robot, places, v, duration=0.1, dt=dt, gravity=(0.0, 0.0, -9.81), friction=0.0)
    energy = np.add(*energies(robot, run.q, run.v))
    assert energy[0] * (1.0 - 1e-3) < energy[-1] and energy.max() < energy[0] * (1.0 + 1e-12)


@pytest.mark.parametrize("dt", STEPS)
def test_a_stack_bounces_and_keeps_its_energy(dt):
    """Four corners each, of which none may come before the others."""
    places = along(2, 0.0, 3, 0.15)
    robot = several("box", 3)
    run = moved(robot, places, np.zeros((3, 3)), duration=0.4, dt=dt, gravity=(0.0, 0.0, -9.81), friction=0.5)
    energy = np.add(*energies(robot, run.q, run.v))
    rests = 9.81 * (0.1 + 0.3 + 0.5)
    assert (energy[-1] - rests) > (1.0 - 1e-3) * (energy[0] - rests)
    assert energy.max() < energy[0] * (1.0 + 1e-12)
    assert abs(run.q[-1].reshape(3, 7)[:, 1:6]).max() < 1e-4  # upright, one on the other


@pytest.mark.parametrize("dt", STEPS)
def test_a_ball_throws_up_the_box_on_which_it_falls(dt):
    """An impact goes on to the ground and comes back. The spring below the box took 3 to 46 % of it."""
    robot = rk.together({"box": m.box(), "ball": m.ball(0.05)})
    places, v = [[0.0, 0.0, 0.1], [0.0, 0.0, 0.3]], [[0.0, 0.0, 0.0], [0.0, 0.0, -3.0]]
    run = moved(robot, places, v, duration=0.06, dt=dt, gravity=(0.0, 0.0, -9.81), friction=0.5)
    energy = np.add(*energies(robot, run.q, run.v))
    rests = 9.81 * 0.1
    assert (energy[-1] - rests) > (1.0 - 2e-3) * (energy[0] - rests)
    assert energy.max() < energy[0] * (1.0 + 1e-12)


def test_boxes_with_friction_that_land_on_each_other_settle():
    """A block of 27: 178 iterations a step, and one not settled, where bounces have 1e-6 of the mobility."""
    k = np.arange(27)
    places = SIZE * np.stack([k % 3, k // 3 % 3, k // 9], axis=1)
    places[:, 2] += 0.105
    given = {"e": 0.5, "duration": 0.06, "gravity": (0.0, 0.0, -9.81), "friction": 0.3}
    run = moved(several("box", 27), places, (0.0, 0.0, -2.0), **given)
    assert run.summary["steps_not_settled"] == 0 and run.summary["contact_iterations_mean"] < 60.0


def test_balls_on_rods_that_fly_off_together_gain_nothing():
    """What a drift has put into each other and an impact leaves at one speed no spring drives apart."""
    builder = ModelBuilder("cradle")
    builder.link("base")
    place = Placement(position=np.array([0.0, 0.0, -1.0]))
    for k in range(5):
        at, shape = Placement(position=np.array([(SIZE + 1e-3) * k, 0.0, 0.0])), Shape(Sphere(0.1), place)
        builder.link(f"b{k}", 1.0, com=(0.0, 0.0, -1.0), inertia=np.eye(3) * 0.004, collisions=(shape,))
        builder.joint(f"j{k}", "revolute", "base", f"b{k}", at, axis=(0, 1, 0), lower=-3.0, upper=3.0)
    robot = builder.build("fixed")
    pairs = rk.collision_pairs(robot).with_law(restitution=1.0, friction=0.0)
    q = np.array([0.3, 0.3, 0.0, 0.0, 0.0])
    run = rk.simulate(robot, q, np.zeros(5), 0.7, 2e-3, record_every=1, self_collision=pairs)
    energy = np.add(*energies(robot, run.q, run.v)) + 5 * 9.81
    assert energy[0] * (1.0 - 1e-3) < energy[-1] and energy.max() < energy[0] * (1.0 + 1e-12)


@pytest.mark.parity
def test_what_light_links_pass_on_between_heavy_ones_makes_no_energy():
    """Of a thrown iCub; friction in the turns of an impact made more in each, at last beyond all numbers."""
    robot = rk.load("icub", base="floating")
    rng = np.random.default_rng(3)
    q = [rk.standing_configuration(robot, height=0.1, tilt=1.0, seed=k) for k in range(8)]
    v = rng.normal(size=(8, robot.nv)) * np.where(np.isin(np.arange(robot.nv), (3, 4, 5)), 0.5, 1.0)
    pairs = rk.collision_pairs(robot).with_law(restitution=0.5, friction=1.5)
    ground = rk.Ground(restitution=0.5, friction=1.5)
    run = rk.rollout(robot, np.array(q), v, duration=0.4, dt=1e-3, ground=ground, self_collision=pairs)
    assert len(run.failed) == 0 and run.summary["steps_not_settled"] == 0
    assert run.summary["contact_iterations_most"] < 2000
