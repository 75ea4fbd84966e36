"""What bounces on the ground leaves at its restitution's share of its speed, but for the bounce's compliance.

That is 1e-4 of the mobility (contact/constraints/contacts.py): of the speed e of a ball that arrives at 1,
e - (1 + e) / 10001 is left.
"""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape, Sphere

UP = {0.0: (0.0, 0.0, 1.0), 0.4: (np.sin(0.4), 0.0, np.cos(0.4))}  # normals of the plane by its tilt


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


EACH = np.array([0.25, 0.8, 1.0])


def left(e, contacts=1):
    """Of a share e, where so many contacts share an impact."""
    return e - (1.0 + e) / (1.0 + 1e4 * contacts)


@pytest.mark.parametrize("dt", [2e-4, 1e-3, 4e-3])
def test_a_ball_bounces_by_its_restitution(dt):
    e, speed = np.repeat(EACH, 3), np.tile([0.1, 2.0, 10.0], 3)
    found = shares(m.ball(), rk.Ground(restitution=e), e, speed, dt)
    np.testing.assert_allclose(found, left(e), atol=1e-9)


@pytest.mark.parametrize("dt", [2e-4, 1e-3, 4e-3])
def test_nothing_comes_back_at_a_restitution_of_0(dt):
    """Spring and damper alone press it out again; what is left is the largest share of the lowest speed."""
    for given in (None, 0.0):
        ground = rk.Ground(restitution=given)
        found = shares(m.ball(), ground, 0.0, [0.1, 2.0, 10.0], dt, steps=round(0.04 / dt))
        assert (np.abs(found) < [4e-3, 2e-3, 2e-3]).all()


def test_masses_make_no_difference():
    ball = m.ball()
    scale = np.array([1e-3, 1.0, 30.0, 1e3])
    robots = ball.with_inertias(ball.inertial_parameters * scale[:, None, None])
    np.testing.assert_allclose(shares(robots, rk.Ground(restitution=0.8), [0.8] * 4), left(0.8), atol=1e-9)


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
    wanted = left(EACH, 4 if robot is m.box else 1)
    np.testing.assert_allclose(shares(robot(), ground, EACH, up=up), wanted, atol=1e-9)


@pytest.mark.parametrize("dt", [5e-4, 2e-3])
def test_a_ball_rises_to_the_square_of_its_share_of_the_height(dt):
    """Whenever in a step it arrives: gravity until the surface, and from there on, counts."""
    for height in (0.25, 0.2513):
        ground, start = rk.Ground(restitution=0.8), [1, 0, 0, 0, 0, 0, 0.1 + height]
        moved = rk.simulate(m.ball(), start, duration=0.5, dt=dt, ground=ground, record_every=1)
        k = int(np.argmax(moved.v[:, 5] > 0.0))
        assert moved.q[k:, 6].max() - 0.1 == pytest.approx(height * left(0.8) ** 2, rel=1e-4, abs=m.G * dt**2)


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
    # The compliance is 1e-4 of the body's mean mobility, here less than twice that along the normal.
    assert J @ moved.v[-1] / (J @ moved.v[0]) == pytest.approx(-e, abs=2.0 * (1.0 + e) * 1e-4)


def test_a_box_that_tumbles_without_loss_keeps_its_energy():
    moved = rk.simulate(
        m.box(), [1, 0, 0, 0, 0, 0, 0.5], [1, 2, 0.5, 0, 0, -2], duration=1.0, dt=1e-3,
        ground=rk.Ground(restitution=1.0, friction=0.0),
    )  # fmt: skip
    # A bounce takes 1 - left(1)^2 of the energy along the normal; there are two or three.
    assert 0.0 <= moved.summary["dissipated_by_contact"] < 1e-3 * moved.energy.mechanical[0]


FELL = {"a ball": m.ball, "a box, flat": m.box}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("dt", [2.5e-4, 1e-3, 2e-3, 4e-3])
@pytest.mark.parametrize("robot", FELL.values(), ids=FELL)
def test_energy_after_a_fall_is_that_of_its_restitution(robot, dt, dtype):
    """Whenever in a step it arrives, and however slowly it leaves: also a step after it has landed.

    Of falls from 5 cm to 1 m, the last 20 ms and 40 ms more.
    """
    e, height = np.meshgrid([0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0], np.geomspace(0.05, 1.0, 4))
    e, at = e.ravel(), np.sqrt(2.0 * m.G * height.ravel())
    q0, v0 = np.zeros((e.size, 7)), np.zeros((e.size, 6))
    q0[:, 0], v0[:, 3], v0[:, 5] = 1.0, 0.5, 0.02 * m.G - at
    q0[:, 6] = 0.1 + 0.02 * (at - 0.01 * m.G)
    ground, steps = rk.Ground(restitution=e, friction=0.0), round(0.06 / dt)
    r = rk.rollout(robot(), q0, v0, steps=steps, dt=dt, ground=ground, record_every=1, dtype=dtype)
    square = r.v[:, :, 5] ** 2 + 2.0 * m.G * (r.q[:, :, 6] - 0.1)
    left = np.sqrt(np.where(r.v[:, :, 5] > 0.0, square, 0.0).max(axis=0)) / at
    np.testing.assert_allclose(left, e, atol=1e-3)
    assert r.q[:, :, 6].min() > 0.1 - 1e-4  # and nothing goes on into the ground


@pytest.mark.parametrize("beside", ["four_bar", "double_pendulum"])
def test_what_swings_beside_a_bounce_pays_nothing_for_it(beside):
    """A spinning brick that bounces at 1 has never more energy than at first, whatever else loses some."""
    inertia = np.array([0.004, 0.003, 0.0008])
    builder = ModelBuilder("brick")
    builder.link("brick", 1.0, inertia=np.diag(inertia), collisions=(Shape(Box((0.08, 0.1, 0.2))),))
    far = Placement(position=np.array([3.0, 0.0, 1.0]))
    other = rk.load_urdf(rk.find_robot(beside))
    world = rk.together({"brick": builder.build("floating"), "other": (other, far)})
    for seed in (3, 4, 6, 7, 18, 20):
        rng = np.random.default_rng(seed)
        q, v = np.zeros(world.nq), np.zeros(world.nv)
        q[0], q[6], v[:3], v[3:6] = 1.0, 0.3, 15.0 * rng.normal(size=3), rng.normal(size=3)
        if not other.loop_joints:
            v[6:] = 10.0 * rng.normal(size=world.nv - 6)
        ground = rk.Ground(friction=(0.0, 0.5)[seed % 2], restitution=1.0)
        run = rk.simulate(world, q, v, duration=0.6, dt=2e-3, ground=ground, record_every=1)
        spin, speed, height = run.v[:, :3], run.v[:, 3:6], run.q[:, 6]
        energy = 0.5 * (inertia * spin**2).sum(1) + 0.5 * (speed**2).sum(1) + 9.81 * height
        assert run.contact_force[:, 2].max() > 100.0
        assert energy.max() <= energy[0] * (1.0 + 1e-11)
