"""Contact points that move on their shapes, hulls thinned to an error, and corners that share a point."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import nnls

import robokit as rk
from robokit.meshes.hull_circles import circles
from robokit.meshes.hull_error import error_of, thinned
from robokit.model import ModelBuilder, Placement
from robokit.sim.shapes.body_surface import BodySurface, shapes_of
from robokit.sim.shapes.contact_patches import patches
from robokit.sim.shapes.contact_shapes import Ball, Lowest, Rim, cylinder_points
from robokit.spatial import Vector3

BOX = np.array(list(itertools.product((-0.1, 0.1), (-0.2, 0.2), (-0.05, 0.05))))


def _directions(count, seed=0):
    n = np.random.default_rng(seed).normal(size=(count, 3))
    return n / np.linalg.norm(n, axis=1, keepdims=True)


def _ellipsoid(count=600, seed=1):
    return _directions(count, seed) * [0.2, 0.1, 0.05]


def _low(shapes, n):
    """Height of the lowest point of the shapes."""
    up = Vector3(*n)
    return min(up.dot(shape.at(up)) for shape in shapes)


def test_distance_from_a_hull_is_that_of_the_nearest_mixture_of_its_corners():
    corners, points = BOX, 0.25 * _directions(60)
    found = error_of(points, corners)
    for p, distance in zip(points, found, strict=True):
        heavy = 1e4  # the weights add up to 1
        A = np.vstack([corners.T, np.full(len(corners), heavy)])
        _, nearest = nnls(A, np.append(p, heavy))
        assert distance == pytest.approx(nearest, abs=1e-6)


@pytest.mark.parametrize("error", [1e-3, 4e-3, 1e-2])
def test_thinned_hull_is_within_the_error_in_every_direction(error):
    points = _ellipsoid(250)
    kept = thinned(points, error)
    loss = (points @ _directions(4000, 2).T).max(axis=0) - (points[kept] @ _directions(4000, 2).T).max(axis=0)
    assert 0.0 <= loss.max() <= error
    assert error_of(points, points[kept]).max() <= error
    assert len(kept) < len(points) and np.array_equal(kept, thinned(points, error))
    # One corner less of those that are far out, and the bound breaks: none is kept for nothing.
    fewer = [error_of(points, points[np.delete(kept, k)]).max() > error for k in range(0, len(kept), 11)]
    assert np.mean(fewer) > 0.6


def test_what_is_given_need_not_be_kept():
    points = _ellipsoid()
    around = np.array(list(itertools.product((-0.2, 0.2), (-0.1, 0.1), (-0.05, 0.05))))
    assert len(thinned(points, 1e-4, around)) == 0
    half = points[points[:, 0] > 0.0]
    kept = thinned(points, 2e-3, half)
    assert (points[kept, 0] <= 0.0).all() and len(kept)


def test_corners_in_one_plane_are_all_kept():
    flat = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 1.2, 0]])
    assert thinned(flat, 0.1).tolist() == [0, 1, 2, 3, 4]
    assert thinned(flat[:2], 0.1).tolist() == [0, 1]


def test_opposite_corners_of_a_box_share_a_point():
    groups = patches(BOX, 1e-3)
    assert sorted(k for group in groups for k in group) == list(range(8))
    assert len(groups) == 4
    for a, b in groups:
        assert BOX[a] == pytest.approx(-BOX[b])


def test_corners_far_apart_on_a_face_are_different_points():
    prism = np.array([[math.cos(t), math.sin(t), z] for t in np.arange(4) * math.pi / 2 for z in (-0.1, 0.1)])
    for group in patches(prism, 1e-3):
        z = prism[group, 2]
        assert (z > 0).sum() <= 1 and (z < 0).sum() <= 1
    assert len(patches(prism, 1e-3, 2)) == 2  # fewer where fewer are allowed, and still every corner
    assert sorted(itertools.chain(*patches(prism, 1e-3, 2))) == list(range(8))


def test_lowest_is_as_low_as_the_lowest_corner_and_within_the_hull():
    corners = tuple(map(tuple, _ellipsoid(40)))
    shape = Lowest(corners, 0.01, 1e-3)
    for n in _directions(200):
        p = np.array([*shape.at(Vector3(*n))])
        heights = np.array(corners) @ n
        assert p @ n == pytest.approx(heights.min() - 0.01, abs=1e-12)
        near = np.array(corners)[heights < heights.min() + 1e-3]
        flat = p - n * (p @ n)
        spread = near - np.outer(near @ n, n)
        assert np.linalg.norm(spread - flat, axis=1).min() <= np.ptp(spread, axis=0).max() + 1e-9


def test_lowest_moves_steadily_from_corner_to_corner():
    shape = Lowest(((-0.1, 0.0, 0.0), (0.1, 0.0, 0.0)), 0.0, 1e-3)
    tilts = np.linspace(-0.02, 0.02, 401)
    x = np.array([shape.at(Vector3(math.sin(t), 0.0, math.cos(t))).x for t in tilts])
    assert x[0] == pytest.approx(0.1, abs=1e-6) and x[-1] == pytest.approx(-0.1, abs=1e-6)
    assert x[200] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(np.diff(x)).max() < 0.01  # no jump between corners 0.2 m apart


@pytest.mark.parametrize("tilt", [0.1, 0.5, 1.0, math.pi / 2])
def test_rim_is_the_lowest_point_of_its_circle(tilt):
    axis = np.array([0.36, 0.48, 0.8])
    rim = Rim((0.1, 0.2, 0.3), tuple(axis), 0.25)
    for side in np.cross(axis, _directions(20)):
        n = math.cos(tilt) * axis + math.sin(tilt) * side / np.linalg.norm(side)
        exact = n @ [0.1, 0.2, 0.3] - 0.25 * math.sin(tilt)
        assert _low([rim], n) == pytest.approx(exact, abs=0.25 * 1e-6 / tilt)
        place = np.array([*rim.at(Vector3(*n))]) - [0.1, 0.2, 0.3]
        assert np.linalg.norm(place) == pytest.approx(0.25, rel=1e-9) and place @ axis == pytest.approx(0.0)
    if tilt == math.pi / 2:  # a wheel rolls on its exact lowest point
        assert np.abs(place + 0.25 * n).max() < 1e-9


def test_cylinder_stands_on_four_points_and_lies_on_two():
    points = cylinder_points((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.2, 0.6)
    for up, z in ((1.0, -0.3), (-1.0, 0.3)):
        places = np.array([[*p.at(Vector3(0.0, 0.0, up))] for p in points])
        down = places[np.isclose(places[:, 2], z)]
        assert len(down) == 4 and np.linalg.norm(down[:, :2], axis=1) == pytest.approx(
            np.full(4, 0.2), rel=1e-6
        )
        assert np.abs(down[:, :2].sum(axis=0)).max() < 1e-9
    for n in _directions(50):
        exact = -0.3 * abs(n[2]) - 0.2 * math.hypot(n[0], n[1])
        assert _low(points, n) == pytest.approx(exact, abs=1e-6)
    level = [p.at(Vector3(1.0, 0.0, 0.0)).x for p in points]
    assert sorted(np.isclose(level, -0.2).tolist()) == [False] * 3 + [True] * 2


def test_moved_shapes_are_the_same_elsewhere():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]) @ np.array(
        [[1.0, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]]
    )
    place = Placement(turn, np.array([1.0, 2.0, 3.0]))
    for shape in (Ball((0.1, 0.2, 0.3), 0.05), *cylinder_points((0.0, 0.1, 0.0), (0.0, 0.0, 1.0), 0.2, 0.6)):
        for n in _directions(10):
            before, after = shape.at(Vector3(*n)), shape.moved(place).at(Vector3(*(turn @ n)))
            low = n @ [*before] + (turn @ n) @ place.position
            assert (turn @ n) @ [*after] == pytest.approx(low, abs=1e-3)


def test_all_points_lie_within_reach_and_take_arrays():
    columns = _directions(30)
    for shape in (
        Ball((0.1, 0.2, 0.3), 0.05),
        Lowest(tuple(map(tuple, BOX)), 0.01, 1e-3),
        *cylinder_points((0.0, 0.1, 0.0), (0.0, 0.0, 1.0), 0.2, 0.6, 0.01),
    ):
        many = shape.at(Vector3(*columns.T))
        center, radius = shape.reach()
        for k, n in enumerate(columns):
            one = np.array([*shape.at(Vector3(*n))])
            assert one == pytest.approx(np.array([np.broadcast_to(x, 30)[k] for x in many]), abs=1e-12)
            assert np.linalg.norm(one - center) <= radius + 1e-12


@pytest.mark.parametrize("error", [1e-3, 5e-3])
def test_surface_of_a_body_is_within_the_error(error):
    link = ModelBuilder("r").link("a", mass=1.0, inertia=np.eye(3)).build("floating").links[0]
    corners = _ellipsoid()
    shapes = [shape for _, shape in shapes_of(BodySurface([], [(link, corners)]), error, True)]
    n = _directions(2000, 3)
    off = np.array([_low(shapes, x) for x in n]) - (corners @ n.T).min(axis=0)
    assert len(shapes) <= 5 and np.abs(off).max() <= error
    assert off.min() < 0.0 < off.max()  # half outside, half inside


def test_what_is_inside_the_other_shapes_of_its_body_has_no_points():
    link = ModelBuilder("r").link("a", mass=1.0, inertia=np.eye(3)).build("floating").links[0]
    outer = [(link, Ball(tuple(p))) for p in BOX.tolist()]
    inner = [(link, Ball(tuple(0.5 * p))) for p in BOX] + [(link, Ball((0.0, 0.0, 0.0), 0.04))]
    out = [(link, Ball((0.0, 0.0, 0.0), 0.06))]
    surface = BodySurface([*outer, *inner, *out], [(link, 0.9 * BOX)])
    ball, *pairs = [shape for _, shape in shapes_of(surface, 1e-3, True)]
    assert ball == out[0][1] and len(pairs) == 4
    assert sorted(itertools.chain(*(pair.corners for pair in pairs))) == sorted(map(tuple, BOX.tolist()))
    assert len(shapes_of(surface, 1e-3, False)) == len(outer + inner + out)


def _polygon(sides, radius, z):
    turns = 2.0 * math.pi / sides * np.arange(sides)
    return np.stack([radius * np.cos(turns), radius * np.sin(turns), np.full(sides, z)], axis=1)


def test_a_disc_of_64_segments_is_a_cylinder():
    link = ModelBuilder("r").link("a", mass=1.0, inertia=np.eye(3)).build("floating").links[0]
    disc = np.concatenate([_polygon(64, 0.1, -0.02), _polygon(64, 0.1, 0.02)])
    turn = np.array([[0.0, -0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.8, 0.6]])
    for corners in (disc, disc @ turn.T + np.array([1.0, 2.0, 3.0])):
        shapes = [shape for _, shape in shapes_of(BodySurface([], [(link, corners)]), 1e-3, True)]
        assert len(shapes) == 5 and all(isinstance(shape, Rim) for shape in shapes)
        for n in _directions(100):
            low = (corners @ n).min()
            assert low - 0.1 * (1 - math.cos(math.pi / 64)) - 1e-7 <= _low(shapes, n) <= low + 1e-6


def test_cones_and_rounded_discs_have_their_circles_and_boxes_none():
    cone = np.concatenate([_polygon(40, 0.1, 0.0), [[0.0, 0.0, 0.2]]])
    (base,) = circles(cone, 1e-3)
    assert base.flat and base.radius == pytest.approx(0.1) and abs(base.axis[2]) == pytest.approx(1.0)
    turns = np.linspace(-math.pi / 2, math.pi / 2, 25)
    tyre = np.concatenate([_polygon(64, 0.1 + 0.02 * math.cos(t), 0.02 * math.sin(t)) for t in turns])
    found = circles(tyre, 1e-3)
    assert [c.flat for c in found].count(True) == 2 and 4 <= len(found) < 15
    assert circles(BOX, 1e-3) == [] and circles(_ellipsoid(), 1e-3) == []
    assert circles(_polygon(11, 0.1, 0.0), 1e-3) == []
    oval = np.concatenate([_polygon(64, 0.1, z) for z in (-0.02, 0.02)]) * [1.0, 0.9, 1.0]
    assert circles(oval, 1e-3) == []


def test_what_is_left_beside_the_circles_of_a_hull_is_kept():
    link = ModelBuilder("r").link("a", mass=1.0, inertia=np.eye(3)).build("floating").links[0]
    handle = np.array([[0.15, y, z] for y in (-0.01, 0.01) for z in (-0.01, 0.01)])
    pan = np.concatenate([_polygon(64, 0.1, -0.02), _polygon(64, 0.12, 0.02), handle])
    shapes = [shape for _, shape in shapes_of(BodySurface([], [(link, pan)]), 1e-3, True)]
    assert sum(isinstance(shape, Rim) for shape in shapes) == 8
    n = _directions(500)
    off = np.array([_low(shapes, x) for x in n]) - (pan @ n.T).min(axis=0)
    assert np.abs(off).max() <= 1e-3


@pytest.mark.parametrize("height", [-2.0, -0.3])
def test_a_point_mass_has_the_usual_ground(height):
    """A link without shape and without rotational inertia is a point; it has no size to go by."""
    builder = ModelBuilder("pendulum").link("base").link("bob", mass=1.0, com=(0.0, 0.0, -0.5))
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
