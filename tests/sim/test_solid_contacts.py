"""Boxes and capsules on solids smaller than they are: heights in closed form, tipping, choice of solids."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Placement, Shape, Sphere

LYING = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # axes of a log along y

CAPSULE = Capsule(0.04, 0.5)
PILLAR = rk.Solid(Box((0.1, 0.1, 0.3)), (0.0, 0.0, 0.15))
SOLIDS = {
    "pillar": PILLAR,
    "ridge": rk.Solid(Box((0.1, 1.0, 0.3)), (0.0, 0.0, 0.15)),
    "ball": rk.Solid(Sphere(0.2), (0.0, 0.0, 0.1)),
    "log": rk.Solid(Cylinder(0.1, 1.0), Placement(LYING, np.array([0.0, 0.0, 0.2]))),
    "column": rk.Solid(Cylinder(0.05, 0.3), (0.0, 0.0, 0.15)),
    "sausage": rk.Solid(Capsule(0.1, 1.0), Placement(LYING, np.array([0.0, 0.0, 0.2]))),
}
"""All are 0.3 m high."""


def plate() -> rk.Robot:
    """A box of 0.2 x 0.2 x 0.1 m, whose collision box is moved and turned in its link."""
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    at = np.array([0.02, 0.01, -0.03])
    shape = Shape(Box((0.2, 0.2, 0.1)), Placement(quarter, at))
    builder = ModelBuilder("plate").link("plate", 1.0, at, np.eye(3) * 4e-3, collisions=(shape,))
    return builder.build("floating")


def bar(shape=CAPSULE) -> rk.Robot:
    """A capsule along x, 0.5 m and its ends of 4 cm; or a cylinder."""
    turned = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    shape = Shape(shape, Placement(turned))
    builder = ModelBuilder("bar").link("bar", 1.0, inertia=np.eye(3) * 0.01, collisions=(shape,))
    return builder.build("floating")


LIGHT = ("pillar", "ridge")
BOXES = [pytest.param(name, marks=() if name in LIGHT else pytest.mark.slow) for name in SOLIDS]


@pytest.mark.parametrize("name", BOXES)
def test_a_box_rests_on_a_solid_that_its_corners_miss(name):
    robot, ground = plate(), rk.Ground(shapes=[SOLIDS[name]])
    q = robot.neutral()
    q[4:7] = -0.02, -0.01, 0.4
    assert rk.standing_height(robot, q, ground=ground) == pytest.approx(0.38, abs=1e-9)
    q[6] = 0.39
    run = rk.simulate(robot, q, duration=1.0, ground=ground)
    assert 0.379 < run.q[-1, 6] < 0.38
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-6)
    np.testing.assert_allclose(run.contact_force[-1], [0.0, 0.0, m.G], atol=1e-6)


@pytest.mark.parametrize("name", ["ridge", pytest.param("ball", marks=pytest.mark.slow),
                                  pytest.param("log", marks=pytest.mark.slow)])  # fmt: skip
@pytest.mark.parametrize("shape", [CAPSULE, pytest.param(Cylinder(0.04, 0.6), marks=pytest.mark.slow)])
def test_a_bar_rests_across_a_solid_that_its_ends_miss(name, shape):
    robot = bar(shape)
    q = robot.neutral()
    q[6] = 0.35
    run = rk.simulate(robot, q, duration=1.0, ground=rk.Ground(shapes=[SOLIDS[name]]))
    assert 0.3385 < run.q[-1, 6] < 0.34
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-6)


EDGES = [rk.Solid(Box((0.2, 1.0, 0.2)), (x, 0.0, 0.1)) for x in (-0.12, 0.12)]


@pytest.mark.parametrize("plane", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_ball_rests_on_two_edges(plane):
    robot = m.ball(0.05)
    q = robot.neutral()
    q[4], q[6] = 0.01, 0.26
    run = rk.simulate(robot, q, duration=1.5, ground=rk.Ground(plane=plane, shapes=EDGES))
    np.testing.assert_allclose(run.q[-1, 4:], [0.0, 0.0, 0.2 + math.sqrt(0.05**2 - 0.02**2)], atol=3e-4)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-9)


def test_a_ball_is_pressed_into_a_corner():
    """Floor and wall press at once, with the weight and the push."""
    robot = m.ball(0.05)
    wall = rk.Ground(shapes=[rk.Solid(Box((0.2, 2.0, 1.0)), (0.15, 0.0, 0.5))])
    q = robot.neutral()
    q[6] = 0.05
    weight = m.G * robot.total_mass
    push = (robot.links[0].name, (0.5 * weight, 0, 0), (0, 0, 0), 0.0, 1.0)
    run = rk.simulate(robot, q, duration=1.0, ground=wall, pushes=push)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(run.contact_force[-1], [-0.5 * weight, 0.0, weight], atol=1e-3 * weight)
    # Compiled and plain text keep the bristles at a wall in the same axes.
    np.testing.assert_allclose(run.contacts.forces.sum(axis=1), run.contact_force, atol=1e-8 * weight)


@pytest.mark.parametrize(("x", "falls"), [(0.045, False), (0.055, True)])
def test_a_box_tips_over_the_edge_of_a_solid(x, falls):
    """It is carried while its middle is over the solid; the edge is 5 cm away."""
    robot = plate()
    q = robot.neutral()
    q[4:7] = x - 0.02, -0.01, 0.38
    run = rk.simulate(robot, q, duration=1.0, ground=rk.Ground(shapes=[SOLIDS["ridge"]]))
    assert (run.q[-1, 6] < 0.3) == falls
    if not falls:
        np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-5)


@pytest.mark.slow
def test_the_two_nearest_of_many_solids_carry():
    """A plate lies on two rods; of three more, one is far away and two lie lower."""
    beside = [rk.Solid(Box((0.04, 0.4, 0.3)), (x, 0.0, 0.15)) for x in (-0.05, 0.06)]
    others = [rk.Solid(Box((0.04, 0.4, 0.1)), (x, 0.0, 0.05)) for x in (-0.3, 0.0, 5.0)]
    robot = plate()
    q = robot.neutral()
    q[4:7] = -0.02, -0.01, 0.385
    one, many = (
        rk.simulate(robot, q, duration=0.5, ground=rk.Ground(shapes=shapes))
        for shapes in (beside, [others[0], beside[0], *others[1:], beside[1]])
    )
    assert 0.379 < one.q[-1, 6] < 0.38
    np.testing.assert_allclose(many.q, one.q, atol=1e-9)


@pytest.mark.slow
def test_rows_on_a_pillar_move_as_each_alone():
    robot, ground = plate(), rk.Ground(shapes=[PILLAR], friction=0.4)
    q = np.tile(robot.neutral(), (3, 1))
    for k, turn in enumerate((0.0, 0.3, 0.7)):
        q[k, [0, 3]] = math.cos(turn), math.sin(turn)
    q[:, 6] = 0.4
    many = rk.rollout(robot, q, duration=0.2, ground=ground)
    for k in range(3):
        one = rk.simulate(robot, q[k], duration=0.2, ground=ground)
        np.testing.assert_allclose(many.q[-1, k], one.q[-1], atol=1e-10)
        assert one.summary["energy_balance"] < 1e-3
        total = sum(one.contact_forces.values())
        np.testing.assert_allclose(total, one.contacts.forces.sum(axis=1), atol=1e-9)


def groove(slope: float) -> list[rk.Solid]:
    """Two boxes whose faces meet along y, each tilted by this."""
    c, s = math.cos(slope), math.sin(slope)
    solids = []
    for side in (1.0, -1.0):
        R = np.array([[c, 0.0, -side * s], [0.0, 1.0, 0.0], [side * s, 0.0, c]])
        solids.append(rk.Solid(Box((1.0, 2.0, 0.2)), Placement(rotation=R, position=-0.1 * R[:, 2])))
    return solids


@pytest.mark.parametrize("walls", ["two boxes", "a box and the plane"])
@pytest.mark.parametrize(
    "geometry", [Cylinder(0.1, 0.4), Capsule(0.1, 0.3), Cylinder(0.1, 0.04), Cylinder(0.1, 0.15)]
)
@pytest.mark.parametrize("slope", [0.35, math.pi / 4])
def test_a_bar_rests_in_a_groove(geometry, walls, slope):
    """Its ends are equally near to both walls; so are the rims of a disc."""
    c, s = math.cos(slope), math.sin(slope)
    solids = groove(slope)
    ground = rk.Ground(shapes=solids, plane=False)
    if walls != "two boxes":
        ground = rk.Ground(shapes=solids[:1], normal=(s, 0.0, c))
    builder = ModelBuilder("bar")
    builder.link(
        "bar",
        mass=1.0,
        inertia=np.diag([0.016, 0.005, 0.016]),
        collisions=(Shape(geometry, Placement(LYING)),),
    )
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1 / c + 1e-3])
    run = rk.simulate(builder.build("floating"), q, duration=1.5, dt=1e-3, ground=ground, record_every=1)
    late = run.t > 1.0
    assert np.abs(run.v[late]).max() < 1e-6
    assert np.abs(run.q[late] - run.q[-1]).max() < 1e-8
    # Two walls carry it along their normals.
    assert -3e-4 < run.q[-1, 6] - 0.1 / c < 0.0


@pytest.mark.parametrize("slope", [0.35, 0.6, 1.05])
def test_a_wheel_in_a_groove_rolls_on_the_edges_of_its_rims(slope):
    """It keeps its speed, and upright it does not begin to roll by itself."""
    radius, width = 0.1, 0.04
    along_x = Placement(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]))
    builder = ModelBuilder("wheel")
    shape = Shape(Cylinder(radius, width), along_x)
    builder.link("wheel", 1.0, inertia=np.diag([5e-3, 2.6e-3, 2.6e-3]), collisions=(shape,))
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, -0.6, radius + 0.5 * width * math.tan(slope)])
    for speed in (0.0, 0.5):
        v0 = np.array([-speed / radius, 0.0, 0.0, 0.0, speed, 0.0])
        ground = rk.Ground(shapes=groove(slope), plane=False)
        run = rk.simulate(builder.build("floating"), q, v0=v0, duration=1.0, dt=1e-3, ground=ground)
        assert run.q[-1, 4:] == pytest.approx([0.0, -0.6 + speed, q[6]], abs=5e-5)
        assert np.abs(run.v[-1] - v0)[0] < 1e-3
        assert run.summary["steps_not_settled"] == 0


def test_corners_of_a_box_are_that_box():
    """Else a wheel, whose rims know the edges of boxes, would not climb one that comes as a mesh."""
    box = Box((0.3, 0.2, 0.6))
    corners = (
        0.5 * np.array(box.size) * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    )
    place = Placement(LYING, np.array([1.0, 2.0, 3.0]))
    level = rk.Solid(corners[::-1] + np.array([0.0, 0.0, 0.3]), place)
    assert level.kind == "box" and level.geometry.size == pytest.approx(box.size)
    np.testing.assert_allclose(level.placement.rotation, LYING, atol=1e-15)
    np.testing.assert_allclose(
        level.placement.position, LYING @ [0.0, 0.0, 0.3] + [1.0, 2.0, 3.0], atol=1e-15
    )
    c, s = math.cos(0.3), math.sin(0.3)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    turned = rk.Solid(corners @ R.T)
    np.testing.assert_allclose(turned.placement.rotation, R, atol=1e-12)
    assert turned.kind == "box" and turned.geometry.size == pytest.approx(box.size)
    corners[0, 0] += 1e-4
    assert rk.Solid(corners).kind == "hull"
    assert rk.Solid(corners[1:]).kind == "hull"


def test_what_falls_past_the_rim_of_tiles_touches_only_the_tiles():
    """Its lowest corner, beside the rim, was a contact of a tile's top, 3 cm deep: energy grew by 5 J."""
    tiles = [rk.Solid(Box((0.1, 0.1, 0.05)), (0.1 * i, 0.1 * j, 0.025)) for i in range(4) for j in range(4)]
    cube = ModelBuilder("cube").link("cube", 1.0, inertia=np.eye(3) * 2e-3, collisions=Box((0.1, 0.1, 0.1)))
    rng, q = np.random.default_rng(0), np.zeros((120, 7))
    q[:, :4] = rng.normal(size=(120, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1)[:, None]
    q[:, 4], q[:, 5], q[:, 6] = rng.uniform(0.0, 0.3, 120), rng.uniform(-0.12, -0.03, 120), 0.3
    falls = rk.rollout(cube.build("floating"), q, duration=0.3, dt=2e-3, ground=rk.Ground(shapes=tiles))
    assert not len(falls.failed) and falls.deepest.max() < 3e-3
