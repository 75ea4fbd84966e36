"""Capsules and distances of hulls that are sharp, flat, thin, or of balls of several sizes."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import rotation
from scipy.optimize import minimize

import robokit as rk
from robokit.model import Box, Capsule, Placement, Shape, Sphere
from robokit.sim.collide.body_shapes import CORNERS, LinkBox, body_shapes
from robokit.sim.collide.box_fit import fit_box
from robokit.sim.collide.capsule_fit import fit_capsules
from robokit.sim.collide.hull_distance import hull_distance
from robokit.sim.collide.hull_surface import directions, support


def at(*position):
    return Placement(np.eye(3), np.array(position, dtype=float))


def ball(radius, x):
    return Shape(Sphere(radius), at(x, 0.0, 0.0))


def of_link(*shapes):
    """What stands for a link with these shapes."""
    builder = rk.ModelBuilder("link").link("a", mass=1.0, inertia=np.eye(3), collisions=shapes)
    return body_shapes(builder.build(base="floating"))


@pytest.mark.parametrize(
    ("shapes", "length", "radius"),
    [
        ([ball(0.05, x) for x in (0.0, 0.1, 0.2)], 0.2, 0.05),
        ([ball(0.05, 0.2), ball(0.02, 0.1), ball(0.05, 0.0)], 0.2, 0.05),
        ([ball(0.05, 0.0), ball(0.02, 0.01)], 0.0, 0.05),
        ([ball(0.05, 0.1)] * 3, 0.0, 0.05),
        ([Shape(Capsule(0.05, 0.2)), Shape(Capsule(0.05, 0.2), at(0.0, 0.0, 0.3))], 0.5, 0.05),
        ([Shape(Box((0.3, 1e-12, 1e-12)))], 0.3, 0.0),
    ],
)
def test_shapes_whose_hull_is_a_capsule_become_it(shapes, length, radius):
    (found,) = of_link(*shapes)
    assert found.missed == found.added == 0.0 and found.radius == radius
    assert np.linalg.norm(found.ends[1] - found.ends[0]) == pytest.approx(length, abs=1e-15)


@pytest.mark.parametrize("size", [(0.2, 0.2, 0.2), (0.3, 0.2, 0.1), (8.0, 1.0, 0.1)])
@pytest.mark.parametrize("seed", range(4))
def test_a_box_is_a_box_however_it_is_turned(size, seed):
    rng = np.random.default_rng(seed)
    place = Placement(rotation(rng), rng.normal(size=3))
    (found,) = of_link(Shape(Box(size), place))
    assert isinstance(found, LinkBox) and found.added < 1e-12
    assert sorted(found.half) == pytest.approx(sorted(0.5 * np.array(size)), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_nearly_a_box_has_one_around_it_that_is_hardly_larger(seed):
    """Of a box whose corners are off by up to 2 mm there is one that sticks out by 8 mm at most."""
    rng = np.random.default_rng(seed)
    corners = CORNERS * np.array([0.3, 0.25, 0.2]) + rng.uniform(-1e-3, 1e-3, size=(8, 3))
    found = fit_box(corners @ rotation(rng), np.zeros(8))
    assert found.error < 8e-3


@pytest.mark.parametrize("thick", [1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("flat", [False, True])
def test_what_is_thin_is_fitted_too(thick, flat):
    turn = rotation(np.random.default_rng(2))
    corners = CORNERS * np.array([0.3, 0.2 if flat else thick, thick]) @ turn
    found = fit_capsules(corners, np.zeros(8))
    assert found.missed < (0.02 if flat else 1e-3) and found.added < (0.06 if flat else 2e-3)
    assert np.isfinite(found.start).all() and np.isfinite(found.end).all() and (found.radius >= 0.0).all()


SHARP = {
    "cube": 0.2 * CORNERS,
    "tetrahedron": 0.1 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
    "wedge": 0.1 * np.array([[0, 0, 0], [3, 0, 0], [0, 2, 0], [3, 2, 0], [0, 0, 1], [0, 2, 1.0]]),
    "plate": CORNERS * np.array([0.3, 0.2, 0.01]),
}


@pytest.mark.parametrize("name", SHARP)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_stated_errors_are_those_of_sharp_shapes(name, size):
    """Over points and directions that crowd near corners, edges and faces, where errors are largest."""
    corners, rng = size * SHARP[name], np.random.default_rng(0)
    found = fit_capsules(corners, np.zeros(len(corners)))
    x = rng.dirichlet(np.full(len(corners), 0.15), 20_000) @ corners
    way = found.end - found.start
    t = ((x[:, None] - found.start) * way).sum(axis=2) / np.maximum((way * way).sum(axis=1), 1e-300)
    nearest = found.start + np.clip(t, 0.0, 1.0)[..., None] * way
    missed = (np.linalg.norm(x[:, None] - nearest, axis=2) - found.radius).min(axis=1).max()
    d, balls = directions(20_000), np.concatenate([found.start, found.end])
    added = (support(balls, np.tile(found.radius, 2), d) - support(corners, np.zeros(len(corners)), d)).max()
    assert 0.85 * missed <= found.missed <= 1.1 * missed
    assert 0.97 * added <= found.added <= 1.1 * added


def _least_distance(points, radii, others, other_radii):
    """The distance of hulls of balls: each is the union of balls between its own."""
    n, both = len(radii), np.concatenate([points, -others])
    sizes = np.concatenate([radii, other_radii])

    def gap(w):
        return np.linalg.norm(w @ both) - w @ sizes

    one = [{"type": "eq", "fun": lambda w, own=own: w[own].sum() - 1.0} for own in (slice(n), slice(n, None))]
    begin = np.concatenate([np.full(n, 1.0 / n), np.full(len(sizes) - n, 1.0 / (len(sizes) - n))])
    options = {"maxiter": 500, "ftol": 1e-14}
    return minimize(gap, begin, bounds=[(0.0, 1.0)] * len(sizes), constraints=one, options=options).fun


@pytest.mark.parametrize("seed", range(8))
def test_the_distance_of_hulls_of_balls_of_several_sizes_is_that_of_a_solver(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 7, 2)
    a, b = rng.normal(size=(n, 3)), rng.normal(size=(m, 3)) + np.array([6.0, 0.0, 0.0])
    radii, other_radii = rng.uniform(0.0, 0.8, n), rng.uniform(0.0, 0.8, m)
    want = _least_distance(a, radii, b, other_radii)
    assert want > 0.1
    assert hull_distance(a, radii, b, other_radii) == pytest.approx(want, rel=1e-5)
    assert hull_distance(a, radii, b - np.array([want + 2.0, 0.0, 0.0]), other_radii) < want


def test_a_ball_on_a_link_does_not_make_its_other_shapes_thicker():
    """A plate with a ball at its far end, 1 cm from a block: they can meet, and do not touch yet."""
    builder = rk.ModelBuilder("apart")
    plate = (Shape(Box((0.3, 0.3, 0.05))), Shape(Sphere(0.06), at(0.5, 0.0, 0.0)))
    builder.link("plate", mass=1.0, inertia=np.eye(3), collisions=plate)
    builder.link("between", mass=1.0, inertia=np.eye(3), collisions=[Shape(Sphere(0.01), at(0.0, 0.0, 3.0))])
    block = Shape(Box((0.1, 0.1, 0.1)), at(-0.21, 0.0, 0.0))
    builder.link("block", mass=1.0, inertia=np.eye(3), collisions=[block])
    builder.joint("turn", "revolute", "plate", "between", axis=(0, 1, 0), lower=-2.0, upper=2.0)
    builder.joint("slide", "prismatic", "between", "block", axis=(1, 0, 0), lower=-0.5, upper=0.5)
    pairs = rk.collision_pairs(builder.build(base="floating"))
    assert ("plate", "block") in pairs and list(pairs.slack.values()) == [pytest.approx(5e-3, abs=5e-3)]
