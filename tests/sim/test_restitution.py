"""A point of the ground that bounces leaves at its restitution's share of its speed, to rounding."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, ModelBuilder, Shape, Sphere

UP = {0.0: (0.0, 0.0, 1.0), 0.4: (np.sin(0.4), 0.0, np.cos(0.4))}
"""Normals of the plane by its tilt."""


def leg() -> rk.Robot:
    """A floating body with a thigh and a shank, bent, and a ball as its foot."""
    builder = ModelBuilder("leg").link("body", 3.0, (0.0, 0.0, 0.0), np.diag([0.02, 0.03, 0.03]))
    foot = Shape(Sphere(0.02), rk.Placement(np.eye(3), (0.0, 0.0, -0.2)))
    for name, mass, shapes in (("thigh", 0.7, ()), ("shank", 0.3, (foot,))):
        builder.link(name, mass, (0.0, 0.0, -0.1), np.diag([0.003, 0.003, 0.001]), collisions=shapes)
    builder.joint("hip", "continuous", "body", "thigh", axis=(0, 1, 0))
    builder.joint("knee", "continuous", "thigh", "shank", rk.Placement(np.eye(3), (0, 0, -0.2)), (0, 1, 0))
    return builder.build("floating")


def shares(robot, ground, e, speed=2.0, dt=1e-3, gravity=(0.0, 0.0, 0.0), lowest=0.1, up=UP[0.0], steps=3):
    """Speed away from the ground over that towards it, of rows that meet it in the second step."""
    e, speed = np.broadcast_arrays(np.atleast_1d(e), speed)
    up = np.array(up)
    q0 = np.array([[1.0, 0.0, 0.0, 0.0, *(up * (lowest + 1.5 * dt * k))] for k in speed])
    v0 = np.array([[0.0, 0.0, 0.0, *(-k * up)] for k in speed])
    moved = rk.rollout(robot, q0, v0, steps=steps, dt=dt, ground=ground, gravity=gravity)
    return moved.v[-1, :, 3:] @ up / speed


EACH = np.array([0.0, 0.25, 0.8, 1.0])


@pytest.mark.parametrize("dt", [2e-4, 1e-3, 4e-3])
def test_a_ball_bounces_by_its_restitution(dt):
    e, speed = np.repeat(EACH, 3), np.tile([0.1, 2.0, 10.0], 4)
    found = shares(m.ball(), rk.Ground(restitution=e), e, speed, dt)
    np.testing.assert_allclose(found, e, atol=1e-12)


def test_masses_make_no_difference():
    ball = m.ball()
    scale = np.array([1e-3, 1.0, 30.0, 1e3])
    robots = ball.with_inertias(ball.inertial_parameters * scale[:, None, None])
    np.testing.assert_allclose(shares(robots, rk.Ground(restitution=0.8), [0.8] * 4), 0.8, atol=1e-9)


SOLID = rk.Solid(Box((2.0, 2.0, 1.0)), rk.Placement(np.eye(3), (0, 0, -0.5)))
GROUNDS = {
    "a plane": (m.box, {}),  # on which it lands flat, on four points
    "a slope": (m.ball, {"tilt": 0.4}),
    "a height field": (m.ball, {"terrain": rk.HeightField(np.zeros((3, 3)), (2.0, 2.0))}),
    "a solid": (m.ball, {"shapes": [SOLID], "plane": False}),
}


@pytest.mark.parametrize(("robot", "given"), GROUNDS.values(), ids=GROUNDS)
def test_on_every_ground(robot, given):
    ground, up = rk.Ground(restitution=EACH, friction=0.0, **given), UP[given.get("tilt", 0.0)]
    np.testing.assert_allclose(shares(robot(), ground, EACH, up=up), EACH, atol=1e-9)


def test_gravity_of_the_step_is_borne_too():
    ground = rk.Ground(restitution=0.8)
    moved = rk.simulate(
        m.ball(), [1, 0, 0, 0, 0, 0, 0.35], duration=0.4, dt=1e-3, ground=ground, record_every=1
    )
    v = moved.v[:, 5]
    k = int(np.argmax(v > 0.0))
    assert v[k] / v[k - 1] == pytest.approx(-0.8, abs=1e-9)


def test_the_foot_of_a_leg_bounces_whatever_it_moves():
    """Its effective mass is not that of a body: friction, hip and knee decide what answers."""
    robot, e, dt = leg(), 0.7, 1e-6
    q0 = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.6, -1.1])
    foot = (0.0, 0.0, -0.2)
    at = rk.forward_kinematics(robot, q0)
    low = (at.position[-1] + at.rotation[-1] @ foot)[2]
    q0[6] += 0.02 - low + 0.5 * dt
    v0, ground = [0, 0, 0, 0.2, 0, -1.0, 0.3, 0.5], rk.Ground(restitution=e)
    moved = rk.simulate(robot, q0, v0, duration=dt, dt=dt, ground=ground)
    J = rk.link_jacobian(robot, q0, "shank", at=foot, axes="world")[5]
    assert J @ moved.v[-1] / (J @ moved.v[0]) == pytest.approx(-e, abs=2e-5)


def test_a_box_that_tumbles_without_loss_keeps_its_energy():
    moved = rk.simulate(
        m.box(), [1, 0, 0, 0, 0, 0, 0.5], [1, 2, 0.5, 0, 0, -2], duration=1.0, dt=1e-3,
        ground=rk.Ground(restitution=1.0, friction=0.0),
    )  # fmt: skip
    assert abs(moved.summary["dissipated_by_contact"]) < 1e-6
