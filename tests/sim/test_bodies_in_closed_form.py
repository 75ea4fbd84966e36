"""Several bodies that push, hit, roll on and hold each other, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape, Sphere

G = 9.81
LYING = Placement(rotation=np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]))
"""Of a cylinder whose axis is y."""


def body(geometry, mass: float = 1.0) -> rk.Robot:
    """A box, a ball, or a cylinder along y, that floats."""
    place = Placement()
    if isinstance(geometry, Box):
        square = np.array(geometry.size) ** 2
        inertia = np.diag(square.sum() - square) * mass / 12.0
    elif isinstance(geometry, Sphere):
        inertia = np.eye(3) * 0.4 * mass * geometry.radius**2
    else:
        across = mass * (3.0 * geometry.radius**2 + geometry.length**2) / 12.0
        inertia, place = np.diag([across, 0.5 * mass * geometry.radius**2, across]), LYING
    builder = ModelBuilder("body").link("body", mass, inertia=inertia, collisions=(Shape(geometry, place),))
    return builder.build("floating")


def at(x: float, z: float, rotation: np.ndarray | None = None) -> Placement:
    return Placement(np.eye(3) if rotation is None else rotation, np.array([x, 0.0, z]))


def about_y(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def run(world, duration, friction=0.5, restitution=0.0, **options) -> rk.Trajectory:
    pairs = rk.collision_pairs(world).with_law(friction=friction, restitution=restitution)
    options = {"dt": 1e-3, "joint_damping": 0.0, "record_every": 1} | options
    return rk.simulate(world, duration=duration, self_collision=pairs, **options)


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_row_of_boxes_that_is_pushed_at_one_end_accelerates_as_one(count):
    cube = Box((0.2, 0.2, 0.2))
    world = rk.together({f"b{k}": (body(cube, 1.0 + k % 2), at(0.2 * k, 0.1)) for k in range(count)})
    mu, mass = 0.3, world.total_mass
    push = rk.Push("b0/body", (1.5 * mu * mass * G, 0.0, 0.0), start=0.3, duration=1.0)
    moved = run(world, 0.8, ground=rk.Ground(friction=mu), pushes=push)
    rows = moved.t > 0.4
    for speed in moved.v[rows, 3::6].T:
        assert np.polyfit(moved.t[rows], speed, 1)[0] == pytest.approx(0.5 * mu * G, rel=1e-3)


def test_the_last_ball_of_a_cradle_takes_the_speed_of_the_first():
    """Each meets the next alone: where all touch within one step, rounding says who passes on how much."""
    builder = ModelBuilder("cradle").link("rail")
    for k, x in enumerate((-0.3, 0.2, 0.41)):
        builder.link(f"b{k}", mass=1.0, inertia=np.eye(3), collisions=(Shape(Sphere(0.1)),))
        builder.joint(f"s{k}", "prismatic", "rail", f"b{k}", at(x, 0.0), axis=(1, 0, 0))
    v0 = np.array([1.0, 0.0, 0.0])
    moved = run(builder.build("fixed"), 0.6, restitution=1.0, v0=v0, gravity=(0, 0, 0))
    assert moved.v[-1] == pytest.approx([0.0, 0.0, 1.0], abs=4e-4)  # two bounces keep 1 - 2e-4 each


@pytest.mark.parametrize("restitution", [0.0, 0.95])
@pytest.mark.parametrize("friction", [0.05, 0.1, 0.2, 0.5])
def test_a_ball_that_hits_another_askew_throws_it(restitution, friction):
    """Sideways it gets mu times the normal impulse, or what stops the sliding: a seventh of the speed.

    The mass that two points of equal balls feel is m / 2 along the normal and m / 7 across it.
    """
    cut = np.array([0.2, 0.5, 0.9])
    normal = np.stack([np.cos(cut), np.sin(cut), 0.0 * cut], axis=1)
    across = np.stack([-np.sin(cut), np.cos(cut), 0.0 * cut], axis=1)
    ball = body(Sphere(0.03), 0.2)
    world = rk.together({"cue": (ball, at(0.0, 0.0)), "other": (ball, at(0.1, 0.0))})
    pairs = rk.collision_pairs(world).with_law(friction=friction, restitution=restitution)
    q0, v0 = np.tile(world.neutral(), (3, 1)), np.zeros((3, 12))
    q0[:, 11:14] = 0.06 * normal  # from its place
    v0[:, 3] = 1.0
    options = {"joint_damping": 0.0, "gravity": (0, 0, 0), "self_collision": pairs}
    moved = rk.rollout(world, q0, v0, steps=1500, dt=1e-4, **options)
    turn = rk.forward_kinematics(world, moved.q[-1])["other/body"][0]
    got = np.einsum("rij,rj->ri", turn, moved.v[-1, :, 9:])
    along = 0.5 * (1.0 + restitution) * np.cos(cut)
    sideways = np.minimum(friction * along, np.sin(cut) / 7.0)
    error = 2e-3 if restitution else 4e-3  # without one spring and damper push a little of the speed back
    assert (np.abs((got * normal).sum(axis=1) - along) < error * along).all()
    assert (np.abs((got * across).sum(axis=1) + sideways) < error * along).all()


@pytest.mark.parametrize("masses", [(1.0, 1.0), (0.1, 5.0), (5.0, 0.1)])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_balls_part_with_the_share_of_their_speed_that_is_asked_for(masses, restitution):
    first, second = (body(Sphere(0.03), mass) for mass in masses)
    world = rk.together({"a": (first, at(0.0, 0.0)), "b": (second, at(0.1, 0.0))})
    v0 = np.zeros(12)
    v0[3] = 2.0
    moved = run(world, 0.1, restitution=restitution, v0=v0, gravity=(0, 0, 0))
    # A bounce has a compliance of 1e-4 of both mobilities, which leaves so much of the speed.
    left = restitution - (1.0 + restitution) / 10001.0
    # At 0 spring and damper push a little of it back.
    assert moved.v[-1, 9] - moved.v[-1, 3] == pytest.approx(2.0 * left, abs=1e-6 if restitution else 4e-3)


def test_a_plank_on_two_rollers_rolls():
    """Each roller of mass m goes half as fast and turns: it counts as 3/8 m."""
    roller, plank = body(Cylinder(0.05, 0.3)), body(Box((1.0, 0.2, 0.04)), 2.0)
    world = rk.together(
        {"r0": (roller, at(-0.2, 0.05)), "r1": (roller, at(0.2, 0.05)), "p": (plank, at(0.0, 0.12))}
    )
    force = 2.0
    push = rk.Push("p/body", (force, 0.0, 0.0), start=0.3, duration=1.0)
    moved = run(world, 0.9, friction=0.8, ground=rk.Ground(friction=0.8), pushes=push)
    rows = moved.t > 0.4
    speeds = moved.q[-1, [4, 11, 18]] - moved.q[rows][0, [4, 11, 18]]
    wanted = 0.5 * force / 2.75 * ((moved.t[-1] - 0.3) ** 2 - (moved.t[rows][0] - 0.3) ** 2)
    assert speeds == pytest.approx([0.5 * wanted, 0.5 * wanted, wanted], rel=0.03)


def test_a_box_dropped_on_a_seesaw_turns_it_by_its_angular_momentum():
    arm, height, I = 0.8, 0.3, 2.0 * 4.0 / 12.0
    builder = ModelBuilder("seesaw").link("post")
    builder.link("plank", 2.0, inertia=np.diag([0.01, I, I]), collisions=(Shape(Box((2.0, 0.3, 0.04))),))
    builder.joint("pivot", "revolute", "post", "plank", at(0.0, 0.5), (0, 1, 0), lower=-0.5, upper=0.5)
    box = (body(Box((0.1, 0.1, 0.1))), at(arm, 0.57 + height))
    world = rk.together({"seesaw": builder.build("fixed"), "box": box})
    time = math.sqrt(2.0 * height / G)
    moved = run(world, time + 3e-3, ground=rk.Ground(height=-3.0))
    assert moved.v[-1, 0] == pytest.approx(G * time * arm / (I + arm**2), rel=0.01)


@pytest.mark.parametrize("mu", [0.3, 0.5])
@pytest.mark.parametrize("share", [0.95, 1.05])
def test_a_ladder_slides_where_floor_and_wall_cannot_hold_it(mu, share):
    """At tan(angle) = (1 - mu^2) / (2 mu) both give all that they can."""
    angle, length, thick = share * math.atan((1.0 - mu * mu) / (2.0 * mu)), 2.0, 0.02
    c, s = math.cos(angle), math.sin(angle)
    x, z = 0.5 * (length * c + thick * s), 0.5 * (length * s + thick * c)
    q = np.array([math.cos(0.5 * angle), 0.0, math.sin(0.5 * angle), 0.0, x, 0.0, z])
    wall = rk.Solid(Box((0.4, 4.0, 4.0)), (-0.2, 0.0, 2.0))
    ladder = body(Box((length, 0.3, thick)), 5.0)
    moved = rk.simulate(
        ladder, q, duration=1.5, dt=1e-3, ground=rk.Ground(shapes=[wall], plane=True, friction=mu)
    )
    assert (z - moved.q[-1, 6] < 1e-3) == (share > 1.0)


@pytest.mark.parametrize("mu", [0.15, 0.25])
def test_two_cards_lean_on_each_other_where_the_floor_holds_them(mu):
    """It needs half the tangent of their angle from upright: 0.182."""
    length, thick, lean = 0.4, 0.01, math.radians(20.0)
    x = 0.5 * (length * math.sin(lean) + thick * math.cos(lean))
    z = 0.5 * (length * math.cos(lean) + thick * math.sin(lean)) + 1e-4
    card = body(Box((thick, 0.3, length)), 0.2)
    world = rk.together({"l": (card, at(-x, z, about_y(lean))), "r": (card, at(x, z, about_y(-lean)))})
    moved = run(world, 1.5, ground=rk.Ground(friction=mu))
    assert (np.abs(moved.q[-1, [6, 13]]).max() < 2e-3) == (mu > 0.5 * math.tan(lean))


@pytest.mark.parametrize("force", [6.0, 8.0])
def test_plates_that_close_on_a_falling_box_brake_it_with_twice_their_friction(force):
    mu, mass, speed = 0.5, 0.5, 1.0
    builder = ModelBuilder("plates").link("frame")
    for k, side in enumerate((-1.0, 1.0)):
        builder.link(f"p{k}", 0.2, inertia=np.eye(3) * 1e-3, collisions=(Shape(Box((0.02, 0.06, 1.5))),))
        builder.joint(f"s{k}", "prismatic", "frame", f"p{k}", at(side * 0.065, 0.0), axis=(-side, 0, 0))
    box = (body(Box((0.1, 0.1, 0.1)), mass), at(0.0, 0.5))
    world = rk.together({"plates": builder.build("fixed"), "box": box})
    v0 = np.zeros(world.nv)
    v0[7] = -speed
    pushes = [
        rk.Push(f"plates/p{k}", (side * force, 0.0, 0.0), duration=2.0) for k, side in ((0, 1), (1, -1))
    ]
    moved = run(world, 0.3, friction=mu, v0=v0, ground=rk.Ground(height=-9.0), pushes=pushes)
    slides = (moved.t > 0.06) & (moved.v[:, 7] < -0.1)
    brake = np.polyfit(moved.t[slides], moved.v[slides, 7], 1)[0]
    assert brake == pytest.approx(2.0 * mu * force / mass - G, abs=0.005 * 2.0 * mu * force / mass)


@pytest.mark.parametrize(("mu", "cosine"), [(0.0, 2.0 / 3.0), (2.0, 10.0 / 17.0)])
def test_a_ball_leaves_a_sphere_where_its_weight_no_longer_holds_it(mu, cosine):
    """48.19 degrees from the top where it slides, 53.97 where it rolls, if it starts at the top."""
    start, R = math.radians(5.0), 1.1
    q = np.array([1.0, 0.0, 0.0, 0.0, R * math.sin(start), 0.0, R * math.cos(start)])
    ground = rk.Ground(shapes=[rk.Solid(Sphere(1.0))], plane=False, friction=mu)
    moved = rk.simulate(body(Sphere(0.1)), q, duration=2.5, dt=5e-4, ground=ground, record_every=1)
    last = np.flatnonzero(np.linalg.norm(moved.contact_force, axis=1))[-1]
    x = moved.q[last, 4:]
    wanted = math.degrees(math.acos(cosine * math.cos(start)))
    assert math.degrees(math.acos(x[2] / np.linalg.norm(x))) == pytest.approx(wanted, abs=1.0)


def test_balls_rest_on_the_fixed_base_of_another_robot():
    table = ModelBuilder("table").link(
        "top", 1.0, inertia=np.eye(3), collisions=(Shape(Box((1.0, 1.0, 0.1))),)
    )
    ball = body(Sphere(0.1))
    world = rk.together(
        {"table": table.build("fixed"), "a": (ball, at(-0.2, 0.16)), "b": (ball, at(0.2, 0.16))}
    )
    assert len(rk.collision_pairs(world)) == 3
    moved = run(world, 1.0, ground=rk.Ground(height=-3.0))
    assert moved.q[-1, [6, 13]] == pytest.approx([-0.01, -0.01], abs=1e-3)
    assert np.abs(moved.v[-1]).max() < 1e-5


@pytest.mark.parametrize("far", [0.0, pytest.param(30.0, marks=pytest.mark.slow)])
def test_one_body_alone_on_the_tilted_base_of_another_robot(far):
    """A ball rolls with 5/7 g sin, a box slides with g (sin - mu cos) or stays; nothing else moves them."""
    tilt, mu = 0.2, 0.1
    R = about_y(tilt)
    builder = ModelBuilder("table").link("top", 1.0, collisions=(Shape(Box((8.0, 1.0, 0.1)), Placement(R)),))
    table = builder.build("fixed"), at(far, 0.0)
    cases = [(Sphere(0.1), 0.8, 5.0 / 7.0 * G * math.sin(tilt))]
    cases += [(Box((0.2, 0.2, 0.2)), mu, G * (math.sin(tilt) - mu * math.cos(tilt)))]
    cases += [(Box((0.2, 0.2, 0.2)), 0.3, 0.0)]
    for geometry, friction, wanted in cases:
        place = Placement(R, R @ np.array([-1.5, 0.0, 0.15]) + np.array([far, 0.0, 0.0]))
        world = rk.together({"table": table, "body": (body(geometry), place)})
        moved = run(world, 1.0, friction=friction, ground=rk.Ground(height=-9.0))
        assert moved.q[-1, 4:] == pytest.approx([0.5 * wanted, 0.0, 0.0], abs=2e-3)
        assert moved.summary["momentum_balance_linear"] < 1e-9
        assert moved.summary["momentum_balance_angular"] < 1e-9
        assert moved.summary["momentum_corrected_linear"] < 1e-9


def test_the_momentum_that_two_bodies_get_from_the_base_of_another_robot_is_in_the_balance():
    table = ModelBuilder("table").link("top", 1.0, collisions=(Shape(Box((1.0, 1.0, 0.1))),))
    ball = body(Sphere(0.1))
    bodies = {"a": (ball, at(-0.2, 0.16)), "b": (ball, at(0.2, 0.3))}
    moved = run(rk.together({"table": table.build("fixed"), **bodies}), 0.4)
    assert moved.summary["momentum_balance_linear"] < 1e-9
    pairs = rk.collision_pairs(moved.robot)
    rows = rk.rollout(moved.robot, moved.q[:1], duration=0.4, measures="momentum", self_collision=pairs)
    assert rows.measures["momentum_balance_linear"][0] < 1e-9


@pytest.mark.parametrize("share", [0.98, 1.1, 1.5])
@pytest.mark.parametrize("masses", [(18.0, 0.5), (2.0, 2.0)])
def test_a_board_under_a_block_is_held_by_the_ground_or_slides_with_it(masses, share):
    """The block is pushed by a share of what friction of the ground holds; it sticks to the board."""
    mu = 0.3
    block, board = body(Box((0.2, 0.2, 0.1)), masses[0]), body(Box((0.6, 0.4, 0.05)), masses[1])
    world = rk.together({"block": (block, at(0.0, 0.1)), "board": (board, at(0.0, 0.025))})
    force = share * mu * sum(masses) * G
    push = rk.Push("block/body", (force, 0.0, 0.0), start=0.3, duration=2.0)
    moved = run(world, 0.8, friction=0.8, ground=rk.Ground(friction=mu), pushes=push)
    rows = moved.t > 0.5
    speed = np.polyfit(moved.t[rows], moved.v[rows, 9], 1)[0]
    assert speed == pytest.approx(max(share - 1.0, 0.0) * mu * G, rel=1e-3, abs=1e-4)
    if share < 1.0:
        assert np.abs(moved.q[-1, [4, 11]]).max() < 2e-4


@pytest.mark.parametrize("turns", [1.0, -1.0])
def test_a_lever_brakes_a_drum_on_an_axle(turns):
    """Both turn about their centres of mass: it was pressed 0.2 mm in, and off in every third step."""
    radius, arm, drop, mu, force = 0.2, 0.15, 0.05, 0.5, 20.0
    builder = ModelBuilder("brake").link("frame")
    builder.link("drum", 5.0, inertia=np.eye(3) * 0.1, collisions=(Shape(Cylinder(radius, 0.2), LYING),))
    builder.joint("axle", "continuous", "frame", "drum", axis=(0, 1, 0))
    pad = Shape(Sphere(0.02), at(arm, 0.02 - drop))
    builder.link("lever", 0.1, inertia=np.eye(3) * 0.01, collisions=(pad,))
    builder.joint("pivot", "revolute", "frame", "lever", at(-arm, radius + drop), axis=(0, 1, 0))
    push = rk.Push("lever", (0.0, 0.0, -force), (0.5, 0.0, 0.0), 0.0, 1.0)
    ground = rk.Ground(height=-5.0, sink=1e-5)  # as stiff as the contact
    v0 = np.array([30.0 * turns, 0.0])
    braked = run(builder.build("fixed"), 0.06, mu, ground=ground, v0=v0, pushes=push)
    normal = 0.5 * force / (arm + turns * mu * drop)
    torque = -0.1 * np.diff(braked.v[20:, 0]) / 1e-3
    assert torque == pytest.approx(turns * mu * normal * radius, rel=1e-3)


# The code of the next test's worlds.
@pytest.mark.parametrize("masses", [(18.0, 0.5), (1.0, 5.0)])
def test_a_block_that_slides_over_a_board_stops_where_coulomb_says_and_leaves_the_board_alone(masses):
    mu, speed = 0.4, 1.0
    block, board = body(Box((0.2, 0.2, 0.1)), masses[0]), body(Box((2.0, 0.4, 0.05)), masses[1])
    world = rk.together({"block": (block, at(-0.5, 0.1)), "board": (board, at(0.0, 0.025))})
    v0 = np.zeros(12)
    v0[3] = speed
    moved = run(world, 0.5, friction=mu, ground=rk.Ground(friction=0.9), v0=v0)
    assert moved.q[-1, 4] == pytest.approx(0.5 * speed**2 / (mu * G), rel=2e-3)
    assert abs(moved.q[-1, 11]) < 1e-5


@pytest.mark.parametrize("masses", [(0.5, 18.0), (18.0, 0.5), (0.1, 1.0), (1.0, 5.0)])
def test_a_block_on_a_board_stays_at_rest(masses):
    """It tilted ever faster, until it hopped by 0.1 mm, some seconds after it was put down."""
    block, board = body(Box((0.2, 0.2, 0.1)), masses[0]), body(Box((2.0, 0.4, 0.05)), masses[1])
    world = rk.together({"block": (block, at(-0.5, 0.1)), "board": (board, at(0.0, 0.025))})
    moved = run(world, 5.0, friction=0.4, ground=rk.Ground(friction=0.9))
    late = moved.t > 2.0
    assert np.abs(moved.v[late]).max() < 1e-5
    assert np.ptp(moved.q[late], axis=0).max() < 1e-7


@pytest.mark.slow
def test_a_quadruped_that_stands_on_a_light_box_stays_where_it_is():
    """The box went over the ground with 24 mm/s, as if there were no friction under it."""
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    box = (body(Box((1.2, 0.8, 0.2)), 0.5), at(0.0, 0.1))
    world = rk.together({"dog": (robot, at(0.0, 0.2)), "box": box})
    q = world.neutral()
    q[: robot.nq] = rk.standing_configuration(robot)
    legs = [joint.name for joint in world.joints if "floating" not in joint.name]
    stand = rk.PD(joints=legs, kp=200.0, kd=5.0)
    moved = rk.simulate(world, q, duration=3.0, dt=1e-3, ground=rk.Ground(), actuators=stand)
    late = moved.t > 2.0
    assert np.abs(moved.v[late, 18:]).max() < 1e-5
    assert np.ptp(moved.q[late, -3:], axis=0).max() < 1e-6
