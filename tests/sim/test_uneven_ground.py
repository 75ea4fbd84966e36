"""Falls on tilted and moving planes, solids and height fields: closed forms, and agreement between ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sim_models as m
from scipy.special import ellipk

import robokit as rk
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape, Sphere

SLOPE = math.radians(35.0)
DOWN = np.array([math.cos(SLOPE), 0.0, -math.sin(SLOPE)])
NORMAL = np.array([math.sin(SLOPE), 0.0, math.cos(SLOPE)])
FAR = rk.Solid(Sphere(0.1), (50.0, 0.0, 0.0))


def about_y(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def raised(q: np.ndarray, by: float) -> np.ndarray:
    return np.append(q[:-1], q[-1] + by)


def on_slope() -> np.ndarray:
    """The box of 0.2 m on the tilted plane."""
    q = m.box().neutral()
    q[:4] = math.cos(SLOPE / 2), 0.0, math.sin(SLOPE / 2), 0.0
    q[4:7] = NORMAL * (0.1 - 1e-4)
    return q


def test_a_box_slides_down_a_slope_as_coulomb_says():
    ground = rk.Ground(tilt=SLOPE, friction=0.4)
    run = rk.simulate(m.box(), on_slope(), duration=1.0, ground=ground)
    way, late = run.q[:, 4:7] @ DOWN, run.t > 0.3
    expected = m.G * (math.sin(SLOPE) - 0.4 * math.cos(SLOPE))
    assert 2.0 * np.polyfit(run.t[late], way[late], 2)[0] == pytest.approx(expected, rel=1e-3)
    assert run.summary["energy_balance"] < 1e-9


def test_a_box_below_its_cone_stays_where_it_is():
    ground = rk.Ground(tilt=SLOPE, friction=math.tan(SLOPE) / 0.95)
    run = rk.simulate(m.box(), on_slope(), duration=3.0, ground=ground)
    late = run.t > 1.0
    assert np.ptp(run.q[late, 4:7] @ DOWN) < 1e-6


def test_a_tilted_plane_is_a_tilted_gravity():
    robot, R = m.brick(), about_y(SLOPE)
    ground = rk.Ground(tilt=SLOPE, friction=0.5)
    q = rk.standing_configuration(robot, height=0.02, seed=3)
    flat = rk.simulate(robot, q, duration=0.3, ground=rk.Ground(friction=0.5), gravity=R.T @ robot.gravity)
    turned = q.copy()
    w, x, y, z = q[:4]
    c, s = math.cos(SLOPE / 2), math.sin(SLOPE / 2)
    turned[:4] = c * w - s * y, c * x + s * z, c * y + s * w, c * z - s * x
    turned[4:7] = R @ q[4:7]
    tilted = rk.simulate(robot, turned, duration=0.3, ground=ground)
    np.testing.assert_allclose(tilted.q[:, 4:7], flat.q[:, 4:7] @ R.T, atol=1e-9)
    np.testing.assert_allclose(tilted.q[:, 7:], flat.q[:, 7:], atol=1e-9)
    assert flat.summary["deepest_penetration"] > 1e-5  # it has arrived


def test_a_belt_carries_a_box_to_its_speed_and_its_work_closes_the_balance():
    q, belt = m.box().neutral(), (1.0, 0.5, 0.0)
    q[6] = 0.1 - 0.25e-3  # where it rests
    ground = rk.Ground(velocity=belt, friction=0.5)
    run = rk.simulate(m.box(), q, duration=0.6, ground=ground)
    speed = math.hypot(*belt)
    slipping = speed / (0.5 * m.G)
    np.testing.assert_allclose(np.gradient(run.q[:, 4], run.t)[-20:], 1.0, atol=1e-3)
    moved = run.q[-1, 4:6] / np.array(belt[:2])
    np.testing.assert_allclose(moved, 0.6 - 0.5 * slipping, rtol=2e-3)
    # Friction takes as much as it gives to a body that a belt brings to its speed.
    assert run.energy.kinetic[-1] == pytest.approx(0.5 * speed**2, rel=1e-3)
    assert run.energy.work[-1] == pytest.approx(speed**2, rel=5e-3)
    assert run.summary["energy_balance"] < 1e-9


def test_a_turntable_turns_a_box_that_sits_on_its_axis():
    q = m.box().neutral()
    q[6] = 0.1
    run = rk.simulate(m.box(), q, duration=1.0, ground=rk.Ground(spin=2.0, friction=0.8))
    assert run.v[-1, 2] == pytest.approx(2.0, abs=1e-3)
    np.testing.assert_allclose(run.q[-1, 4:6], 0.0, atol=1e-6)


def test_a_box_rides_on_a_turntable():
    """Friction holds it on its circle, whatever the step: it creeps by its bristles only."""
    q, v = m.box().neutral(), np.array([0.0, 0.0, 1.0, 0.0, 0.5, 0.0])
    q[4], q[6] = 0.5, 0.1
    run = rk.simulate(m.box(), q, v, duration=3.0, dt=2e-3, ground=rk.Ground(spin=1.0))
    np.testing.assert_allclose(np.hypot(run.q[:, 4], run.q[:, 5]), 0.5, atol=4e-5)
    np.testing.assert_allclose(np.arctan2(run.q[-1, 5], run.q[-1, 4]), 3.0, atol=1e-4)


def test_a_ball_spins_down_on_a_tilted_box_as_on_the_tilted_plane():
    R = about_y(SLOPE)
    block = rk.Solid(Box((10.0, 10.0, 1.0)), Placement(R, R @ [0.0, 0.0, -0.5]))
    q, v = m.ball().neutral(), np.zeros(6)
    q[4:7], v[:3] = NORMAL * 0.1, NORMAL * 5.0 + [0.0, 1.0, 0.0]
    given = {"torsional": 0.01, "rolling": 0.002}
    plane, solid = (
        rk.simulate(m.ball(), q, v, duration=0.3, ground=ground)
        for ground in (rk.Ground(tilt=SLOPE, **given), rk.Ground(plane=False, shapes=[block], **given))
    )
    # Of a plane the contact is on the ball, of a solid half-way between both: 25 of 100,000 um apart.
    np.testing.assert_allclose(solid.v, plane.v, rtol=2.5e-4, atol=1e-6)
    assert plane.v[-1, :3] @ NORMAL < 4.5


@pytest.mark.slow
def test_a_large_box_is_a_plane():
    q = m.box().neutral()
    q[:4], q[6] = (math.cos(0.3), math.sin(0.3), 0.0, 0.0), 0.3
    block = rk.Solid(Box((10.0, 10.0, 1.0)), (0.0, 0.0, -0.5))
    corners = [[x, y, z] for x in (-5, 5) for y in (-5, 5) for z in (-1, 0)]
    plane, *others = (
        rk.simulate(m.box(), q, duration=0.5, ground=ground)
        for ground in (
            rk.Ground(),
            rk.Ground(plane=False, shapes=[block]),
            rk.Ground(plane=False, shapes=[rk.Solid(np.array(corners, float))]),
            rk.Ground(plane=False, shapes=[rk.Solid(Cylinder(5.0, 1.0), (0.0, 0.0, -0.5))]),
        )
    )
    for other in others:
        np.testing.assert_allclose(other.q, plane.q, atol=1e-12)


def test_a_ball_leaves_the_flank_of_a_ball_by_the_mirrored_angle():
    """Without friction and damping the impulse is along the line of the centres, and energy is kept."""
    robot, q = m.ball(), m.ball().neutral()
    offset = 0.6 * math.sin(math.radians(30.0))
    q[4:7] = offset, 0.0, 1.5
    stone = rk.Solid(Sphere(0.5), friction=0.0)
    ground = rk.Ground(plane=False, shapes=[stone], sink=1e-5, time=1e-6)
    run = rk.simulate(robot, q, duration=0.55, dt=1e-4, ground=ground)
    before = int(np.argmin(run.q[:, 6])), int(np.argmax(np.abs(run.v[:, 3]) > 1e-9))
    at = max(before[1] - 1, 0)
    n = run.q[at, 4:7] / np.linalg.norm(run.q[at, 4:7])
    fall = np.array([0.0, 0.0, -math.sqrt(2 * m.G * (1.5 - 0.6 * math.cos(math.radians(30.0))))])
    after = np.gradient(run.q[:, 4:7], run.t, axis=0)[at + 3]
    turned = after - n * (n @ after), fall - n * (n @ fall)
    assert np.linalg.norm(turned[0] - turned[1]) < 0.06 * np.linalg.norm(fall)
    assert n @ after > 0.0


def test_a_box_rests_on_a_box_and_a_box_on_a_ball_falls_off():
    robot, q = m.box(0.2), m.box(0.2).neutral()
    table = rk.Ground(shapes=[rk.Solid(Box((0.6, 0.6, 0.4)), (0.0, 0.0, 0.2), friction=0.6)])
    q[4:7] = 0.1, 0.05, 0.52
    run = rk.simulate(robot, q, duration=2.0, ground=table)
    assert run.q[-1, 6] == pytest.approx(0.5, abs=1e-3)
    late = run.q[run.t > 1.0]
    assert np.ptp(late[:, 4:7], axis=0).max() < 1e-6
    assert run.contact_force[-1, 2] == pytest.approx(m.G, rel=1e-6)


def bowl(R: float = 3.0, cell: float = 0.05) -> rk.Ground:
    """A hollow sphere as a height field."""
    x = np.arange(-1.5, 1.5 + cell / 2, cell)
    return rk.Ground(
        terrain=rk.HeightField(R - np.sqrt(R * R - x[:, None] ** 2 - x**2), cell=cell, origin=(-1.5, -1.5))
    )


def test_a_ball_rolls_in_a_bowl_with_the_period_of_the_pendulum():
    """A ball that rolls has 7/5 of its mass: omega^2 = g / (7/5 (R - r)), longer by theta^2 / 16."""
    robot, q, ground, R = m.ball(), m.ball().neutral(), bowl(), 3.0
    q[4] = 0.5
    q = rk.standing_configuration(robot, q=q, ground=ground)
    run = rk.simulate(robot, q, duration=4.2, ground=ground)
    x = run.q[:, 4]
    zeros = run.t[np.flatnonzero(np.diff(np.sign(x)))]
    theta = math.asin(0.5 / (R - 0.1))
    period = 2 * math.pi * math.sqrt(1.4 * (R - 0.1) / m.G) * (1 + theta**2 / 16)
    assert 2.0 * np.diff(zeros)[0] == pytest.approx(period, rel=5e-3)
    assert np.abs(run.q[:, 5]).max() < 1e-4 and 0.48 < x[-100:].max() < 0.5
    assert run.summary["energy_balance"] < 1e-9


@pytest.mark.parametrize("mu", [0.0, 0.8])
@pytest.mark.parametrize("r", [0.1, pytest.param(0.2, marks=pytest.mark.slow)])
def test_a_ball_swings_in_a_circular_valley_with_the_period_of_the_pendulum(r, mu):
    """Of the length (R - r), 7/5 of it where the ball rolls; 2 % too long at r / R = 0.2 with one guess."""
    R, cell, start = 1.0, 0.005, 0.3
    x = np.arange(-0.6, 0.6 + 0.5 * cell, cell)
    heights = (R - np.sqrt(R * R - x * x))[:, None] * np.ones(3)
    field = rk.HeightField(heights, (cell, 1.0), (x[0], -1.0))
    robot = ModelBuilder("ball").link(
        "ball", 1.0, inertia=np.eye(3) * 0.4 * r * r, collisions=(Shape(Sphere(r)),)
    )
    q = np.array([1.0, 0.0, 0.0, 0.0, (R - r) * math.sin(start), 0.0, R - (R - r) * math.cos(start)])
    ground = rk.Ground(terrain=field, friction=mu)
    run = rk.simulate(robot.build("floating"), q, duration=4.0, dt=1e-3, ground=ground, record_every=1)
    x = run.q[:, 4]
    k = np.flatnonzero(np.diff(np.sign(x)))
    zeros = run.t[k] - x[k] * 1e-3 / (x[k + 1] - x[k])
    length = (1.4 if mu else 1.0) * (R - r)
    period = 4.0 * math.sqrt(length / m.G) * ellipk(math.sin(0.5 * start) ** 2)
    assert 2.0 * np.diff(zeros).mean() == pytest.approx(period, rel=1e-3)


def test_a_field_of_a_plane_is_the_plane_and_is_level_beyond_its_edge():
    x = np.linspace(-2.0, 2.0, 41)
    field = rk.HeightField(np.outer(-0.2 * x, np.ones(30)), (0.1, 0.2), (-2.0, -2.9, 0.3))
    q = m.box().neutral()
    q[:4], q[6] = (math.cos(0.3), 0.6 * math.sin(0.3), 0.8 * math.sin(0.3), 0.0), 0.7
    ground = rk.Ground(terrain=field)
    # A ball has one contact on both, a box as many as there are triangles under its edges.
    ball, plane = [1.0, 0, 0, 0, 1.5, 0.3, 0.4], rk.Ground(height=0.3, tilt=math.atan(0.2))
    rolls = [rk.simulate(m.ball(), ball, [0, 0, 0, 1.0, 0.5, 0], 1.0, ground=g).q for g in (ground, plane)]
    assert rolls[0][-1, 4] > 2.5, "it has left the field"
    on_both = rolls[0][:, 4] < 2.0  # contacts of a field lie half-way between the surfaces, here 25 um deep
    np.testing.assert_allclose(rolls[0][on_both], rolls[1][on_both], atol=5e-6)
    assert rolls[0][-1, 6] == pytest.approx(0.3 - 0.4 + 0.1, abs=0.01)
    on_field = rk.simulate(m.box(), q, duration=0.5, ground=ground)
    many = rk.rollout(m.box(), np.stack([q] * 3), steps=500, ground=ground)
    np.testing.assert_allclose(many.q[:, 1], on_field.q, atol=1e-12)
    single = rk.rollout(m.box(), np.stack([q] * 3), steps=500, ground=ground, dtype="float32")
    np.testing.assert_allclose(single.q[:, 1], on_field.q, atol=2e-5)  # as on the plane
    again = many.trajectory(1)
    assert np.array_equal(again.q, many.q[:, 1])
    np.testing.assert_allclose(again.contact_force, on_field.contact_force, atol=1e-8)
    assert [event.kind for event in again.events] == [event.kind for event in on_field.events]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_box_falls_beside_a_peak(dtype):
    """At first it is below the top of the field, and near none of its triangles."""
    heights = np.zeros((20, 20))
    heights[0, 0] = 2.0
    q = raised(m.box().neutral(), 0.6)
    q[4:6] = 1.0
    ground = rk.Ground(terrain=rk.HeightField(heights, 0.1))
    run = rk.rollout(m.box(), q[None], duration=0.8, dt=2e-3, ground=ground, dtype=dtype)
    assert run.q[-1, 0, 6] == pytest.approx(0.1, abs=1e-4) and abs(run.v[-1]).max() < 1e-3


def test_a_field_of_a_picture_has_its_heights(tmp_path):
    from PIL import Image

    pixels = np.array([[0, 51, 255], [102, 0, 0]], np.uint8)
    Image.fromarray(pixels).save(tmp_path / "hills.png")
    field = rk.HeightField.from_picture(tmp_path / "hills.png", (4.0, 1.0), 1.0, 2.0)
    np.testing.assert_allclose(field.heights, 1.0 + np.array([[0.4, 0.0], [0.0, 0.2], [0.0, 1.0]]))
    assert field.cell == (2.0, 1.0) and field.origin == (-2.0, -0.5, 0.0)
    deep = np.array([[0, 65535], [13107, 0]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    field = rk.HeightField.from_picture(tmp_path / "deep.png", 3.0)
    np.testing.assert_allclose(field.heights, [[0.2, 0.0], [0.0, 1.0]])
    assert field.cell == (3.0, 3.0)
    (tmp_path / "none.png").write_bytes(b"no picture")
    with pytest.raises(rk.ShapeError, match="no picture of heights"):
        rk.HeightField.from_picture(tmp_path / "none.png")


def test_standing_is_on_the_highest_ground_under_the_robot():
    robot = m.quadruped()
    step = rk.Solid(Box((0.3, 0.3, 0.1)), (0.2, 0.1, 0.05))
    for ground in (
        rk.Ground(shapes=[step]),
        rk.Ground(tilt=0.3, height=0.4),
        bowl(),
        rk.Ground(shapes=[rk.Solid(Sphere(0.2), (0.2, 0.1, 0.0))], height=-1.0),
    ):
        q = rk.standing_configuration(robot, seed=1, ground=ground)
        above, below = (
            rk.simulate(robot, q + by, duration=1e-6, dt=1e-6, ground=ground).summary["deepest_penetration"]
            for by in np.outer((1e-5, -1e-5), np.eye(robot.nq)[6])
        )
        assert above == 0.0 and 0.0 < below < 1.1e-5
    with pytest.raises(rk.ShapeError, match="nothing is under the robot"):
        rk.standing_configuration(robot, ground=rk.Ground(plane=False, shapes=[FAR]))
    with pytest.raises(rk.WrongType, match="ground"):
        rk.standing_configuration(robot, ground=0.1)


def test_a_start_inside_a_solid_is_refused():
    q = m.box().neutral()
    ground = rk.Ground(shapes=[rk.Solid(Box((1.0, 1.0, 1.0)))])
    with pytest.raises(rk.ShapeError, match=r"0.6 m below the ground; .*ground=ground\)$"):
        rk.simulate(m.box(), q, ground=ground)
    with pytest.raises(rk.ShapeError, match=r"q0\[1\]"):
        rk.rollout(m.box(), np.array([raised(q, 2.0), q]), ground=ground)


@pytest.mark.slow
def test_rollouts_are_simulations_and_single_precision_follows():
    robot, rng = m.box(), np.random.default_rng(4)
    shapes = [
        rk.Solid(Box((0.5, 0.4, 0.2)), Placement(about_y(0.3), np.array([0.3, 0.0, 0.1]))),
        rk.Solid(Sphere(0.3), (-0.4, 0.1, 0.0), friction=0.2),
        rk.Solid(rng.normal(size=(30, 3)) * 0.2, (0.0, 0.6, 0.1)),
    ]
    ground = rk.Ground(tilt=0.1, velocity=(0.0, 0.3, 0.0), shapes=shapes)
    q = np.tile(robot.neutral(), (6, 1))
    q[:, 4:6] = rng.uniform(-0.6, 0.6, (6, 2))
    q[:, 6] = 0.8
    many = rk.rollout(robot, q, steps=600, ground=ground)
    assert not len(many.failed)
    one = rk.simulate(robot, q[2], duration=0.6, ground=ground)
    np.testing.assert_allclose(many.q[:, 2], one.q, atol=1e-6)
    again = many.trajectory(2)
    assert again.summary["energy_balance"] < 1e-9
    single = rk.rollout(robot, q, steps=300, ground=ground, dtype="float32")
    np.testing.assert_allclose(single.q[-1], many.q[60], atol=2e-3)


def test_a_saved_trajectory_has_its_ground(tmp_path):
    q = m.box().neutral()
    q[6] = 0.5
    shapes = [
        rk.Solid(Sphere(0.3), (0.0, 0.0, 0.0), friction=0.4, rgba=(1, 0, 0, 1)),
        rk.Solid(np.random.default_rng(0).normal(size=(20, 3)), Placement(about_y(0.3))),
    ]
    ground = rk.Ground(normal=(0.1, 0.0, 1.0), velocity=(0.0, 1.0, 0.0), shapes=shapes, height=-3.0)
    run = rk.simulate(m.ball(), raised(q, 5.0), duration=0.01, ground=ground)
    again = rk.Trajectory.load(run.save(tmp_path / "motion.npz"))
    assert again.ground == ground
    assert again.ground != rk.Ground()
    run.ground = rk.Ground(terrain=rk.HeightField([[0.0, 1.0], [2.0, 4.0]], 0.3, (1, 2, 3), friction=0.1))
    assert rk.Trajectory.load(run.save(tmp_path / "motion.npz")).ground == run.ground
