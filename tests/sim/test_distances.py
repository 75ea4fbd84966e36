"""Distances and collisions: closed forms, what must hold of any two links, gradients, grounds, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Placement, Shape, Sphere, couple


def pair(a, b) -> rk.Robot:
    """Two links that move anyhow beside each other."""
    builder = ModelBuilder("pair").link("world")
    for name, geometry in (("a", a), ("b", b)):
        builder.link(name, 1.0, inertia=np.eye(3), collisions=[Shape(geometry)])
        builder.joint(f"to_{name}", "floating", "world", name)
    return builder.build()


def poses(rng, rows: int) -> np.ndarray:
    """Random q of :func:`pair`."""
    q = rng.normal(size=(rows, 2, 7))
    q[..., :4] /= np.linalg.norm(q[..., :4], axis=-1, keepdims=True)
    q[..., 4:] *= 0.5
    return q.reshape(rows, 14)


def rotation(quat) -> np.ndarray:
    w, x, y, z = quat
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def test_balls_capsules_and_boxes_in_closed_form():
    rng = np.random.default_rng(0)
    q = poses(rng, 200)
    between = q[:, 11:14] - q[:, 4:7]
    d = rk.distance(pair(Sphere(0.3), Sphere(0.5)), q, "a", "b")
    gap = np.linalg.norm(between, axis=1)
    np.testing.assert_allclose(d.distance, gap - 0.8, atol=1e-14)
    np.testing.assert_allclose(d.normal, between / gap[:, None], atol=1e-13)
    np.testing.assert_allclose(d.point_a, q[:, 4:7] + 0.3 * d.normal, atol=1e-14)
    assert (d.distance < 0).any() and (d.distance > 0).any()

    # A ball in the axes of a box: outside by its clamped centre, inside by the nearest face.
    d = rk.distance(pair(Box((0.6, 0.8, 1.0)), Sphere(0.1)), q, "a", "b")
    local = np.array([rotation(row[:4]).T @ r for row, r in zip(q, between, strict=True)])
    beyond = np.abs(local) - [0.3, 0.4, 0.5]
    outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
    expected = np.where(outside > 0.0, outside, beyond.max(axis=1)) - 0.1
    np.testing.assert_allclose(d.distance, expected, atol=1e-13)

    # Two capsules: the least over a grid of their axes is no less, and near.
    d = rk.distance(pair(Capsule(0.1, 0.8), Capsule(0.2, 1.2)), q, "a", "b")
    s, t = np.linspace(-0.4, 0.4, 161), np.linspace(-0.6, 0.6, 241)
    for row, found in zip(q[:40], d.distance, strict=False):
        first, last = rotation(row[:4])[:, 2], rotation(row[7:11])[:, 2]
        ends = row[4:7] + s[:, None] * first, row[11:14] + t[:, None] * last
        least = np.linalg.norm(ends[0][:, None] - ends[1][None], axis=2).min() - 0.3
        assert -1e-12 <= least - found < 5e-3


def test_parallel_and_crossing_capsules():
    robot = pair(Capsule(0.1, 1.0), Capsule(0.1, 1.0))
    up = [1.0, 0, 0, 0, 0, 0, 0]
    tilted = [np.cos(5e-9), np.sin(5e-9), 0, 0, 0.5, 0, 0.2]
    for other, expected in (
        ([1.0, 0, 0, 0, 0.5, 0, 0.2], 0.3),
        (tilted, 0.3),
        ([1.0, 0, 0, 0, 0, 0, 1.5], 0.3),
    ):
        assert abs(rk.distance(robot, [*up, *other], "a", "b").distance - expected) < 1e-12
    # Axes that meet at a right angle: parted across both, by both radii.
    across = [np.sqrt(0.5), np.sqrt(0.5), 0, 0, 0, 0, 0]
    d = rk.distance(robot, [*up, *across], "a", "b")
    assert abs(d.distance + 0.2) < 1e-12
    np.testing.assert_allclose(np.abs(d.normal), [1, 0, 0], atol=1e-9)


def test_points_in_an_overlap_are_as_far_apart_as_it_is_deep():
    # A rod across a plate: a direction of the depth is known before the face that it belongs to.
    turned = np.array([2.15833491, -1.52381526, 0.22070254])
    angle = np.linalg.norm(turned)
    q = [1, 0, 0, 0, 0, 0, 0, np.cos(angle / 2), *np.sin(angle / 2) * turned / angle]
    q += [-0.48145756, -0.27466059, -0.2742806]
    d = rk.distance(pair(Box((1, 1, 0.01)), Capsule(0.01, 1.0)), q, "a", "b")
    assert d.distance < -0.05
    np.testing.assert_allclose(d.point_b - d.point_a, d.distance * d.normal, atol=1e-9)


@pytest.fixture(scope="module")
def humanoid() -> rk.Robot:
    return rk.load_urdf(rk.find_robot("humanoid"), base="floating")


@pytest.fixture(scope="module")
def configurations(humanoid) -> np.ndarray:
    rng = np.random.default_rng(1)
    q = np.array([humanoid.random_configuration(rng) for _ in range(12)])
    q[:, 4:7] = rng.uniform(-0.3, 0.8, (12, 3))
    return q


WORLD = rk.Ground(
    tilt=0.2,
    shapes=[
        rk.Solid(Box((0.3, 0.4, 0.2)), (0.5, 0, 0.1)),
        rk.Solid(Sphere(0.2), (-0.5, 0, 0.3)),
        rk.Solid(Cylinder(0.2, 0.5), (0, 0.6, 0.3)),
    ],
)


def test_points_normals_and_distances_belong_together(humanoid, configurations):
    d = rk.distance(humanoid, configurations, ground=WORLD, pairs="all")
    np.testing.assert_allclose(d.point_b - d.point_a, d.distance[..., None] * d.normal, atol=2e-8)
    np.testing.assert_allclose(np.linalg.norm(d.normal, axis=-1), 1.0, atol=1e-14)
    assert (d.distance < 0).any()
    k = d.pairs.index(("ground", "left_hand"))
    turned = rk.distance(humanoid, configurations, "left_hand", "ground", ground=WORLD)
    assert np.array_equal(turned.distance, d.distance[:, k]) and np.array_equal(
        turned.normal, -d.normal[:, k]
    )
    assert np.array_equal(turned.point_a, d.point_b[:, k])
    # The plane's own: along its normal, as far as the lowest point is over it.
    n = np.array(WORLD.up)
    np.testing.assert_allclose(turned.normal, np.broadcast_to(-n, (12, 3)), atol=1e-15)
    np.testing.assert_allclose(turned.point_a @ n, turned.distance, atol=1e-14)


def test_to_move_one_along_the_normal_is_to_change_the_distance(humanoid, configurations):
    """Of the whole robot and solids, apart or not: to first order, and never by more."""
    names = ["solid 0", "solid 1", "solid 2", "ground"]
    h = 1e-6
    for name in names:
        d = rk.distance(humanoid, configurations, name, "right_foot", ground=WORLD)
        moved = configurations.copy()
        moved[:, 4:7] += h * d.normal
        after = rk.distance(humanoid, moved, name, "right_foot", ground=WORLD)
        np.testing.assert_allclose(after.distance - d.distance, h, atol=1e-10)


def differences(robot, q, eps=1e-6, **options) -> np.ndarray:
    e = eps * np.eye(robot.nv)
    ends = [np.array([robot.integrate(q, s * row) for row in e]) for s in (1, -1)]
    up, down = (rk.distance(robot, end, **options).distance for end in ends)
    return (up - down).T / (2 * eps)


def test_gradients_are_those_of_differences(humanoid, configurations):
    found = rk.distance(humanoid, configurations, ground=WORLD, gradient=True)
    for q, gradient in zip(configurations[:4], found.gradient, strict=False):
        error = np.abs(gradient - differences(humanoid, q, ground=WORLD)).max(axis=1)
        assert np.quantile(error, 0.99) < 1e-6  # a kink may lie between the two ends
    same = [k for k, (a, _) in enumerate(found.pairs) if a not in ("ground", "solid 0", "solid 1", "solid 2")]
    assert not found.gradient[:, same, :6].any()  # to move the whole robot changes nothing, to the last bit


def test_coupled_joints_have_one_gradient():
    builder = ModelBuilder("fingers").link("palm", collisions=[Shape(Box((0.1, 0.1, 0.02)))])
    for name, side, mimic in (("left", 1, None), ("right", -1, rk.Mimic("left_slide", -1.0, 0.0))):
        builder.link(name, 0.1, inertia=1e-4 * np.eye(3), collisions=[Shape(Sphere(0.01))])
        place = Placement(position=(0.05 * side, 0, 0.05))
        more = {"lower": -0.05, "upper": 0.05, **({"mimic": mimic} if mimic else {})}
        builder.joint(f"{name}_slide", "prismatic", "palm", name, place, axis=(1, 0, 0), **more)
    robot = couple(builder.build())
    d = rk.distance(robot, [0.01], "left", "right", gradient=True)
    assert robot.nv == 1
    np.testing.assert_allclose(d.gradient, [2.0], atol=1e-14)


def test_rows_of_a_batch_have_the_bits_of_single_ones(humanoid, configurations):
    batch = rk.distance(humanoid, configurations, ground=WORLD, gradient=True, threads=2)
    for k, q in enumerate(configurations):
        one = rk.distance(humanoid, q, ground=WORLD, gradient=True)
        for name in ("distance", "point_a", "point_b", "normal", "gradient"):
            assert np.array_equal(getattr(one, name), getattr(batch, name)[k])


def test_python_finds_the_same_as_machine_code(monkeypatch):
    robot = rk.load_urdf(rk.find_robot("arm"))
    q = robot.random_configuration(np.random.default_rng(0))
    compiled = rk.distance(robot, q, pairs="all", ground=WORLD, gradient=True)
    monkeypatch.setattr("robokit.sim.kernel_rows.engine", lambda: "python")
    again = rk.load_urdf(rk.find_robot("arm"))  # nothing is prepared for it
    plain = rk.distance(again, q, pairs="all", ground=WORLD, gradient=True)
    np.testing.assert_allclose(plain.distance, compiled.distance, atol=1e-12)
    np.testing.assert_allclose(plain.gradient, compiled.gradient, atol=1e-6)


def test_farther_than_asked_for(humanoid, configurations):
    d, near = (rk.distance(humanoid, configurations, max_distance=m, gradient=True) for m in (np.inf, 0.1))
    within = d.distance < 0.1
    assert within.any() and np.array_equal(near.distance[within], d.distance[within])
    assert np.isinf(near.distance[~within]).all() and np.isnan(near.point_a[~within]).all()
    assert not near.normal[~within].any() and not near.gradient[~within].any()


def test_collisions_are_distances_below_the_margin(humanoid, configurations):
    d = rk.distance(humanoid, configurations, ground=WORLD)
    for margin in (0.0, 0.05, -0.02):
        found = rk.collisions(humanoid, configurations, ground=WORLD, margin=margin)
        rows, pairs = np.nonzero(d.distance < margin)
        assert sorted(zip(found.row.tolist(), found.pairs, strict=True)) == sorted(
            (int(r), d.pairs[k]) for r, k in zip(rows, pairs, strict=True)
        )
        assert np.array_equal(found.any, (d.distance < margin).any(axis=1))
        one = rk.collisions(humanoid, configurations[0], ground=WORLD, margin=margin)
        first = [c for c in found if c.row == 0]
        assert [(c.a, c.b, c.depth) for c in one] == [(c.a, c.b, c.depth) for c in first]
        assert one.any == bool(one) == bool(first)
        assert (np.diff(one.depth) <= 0.0).all()
    assert "left_foot" in repr(rk.collisions(humanoid, humanoid.neutral(), ground=True))
    assert repr(rk.collisions(humanoid, humanoid.neutral())) == "<Collisions: none>"


def test_pairs_are_those_of_simulate_unless_asked(humanoid):
    q, pairs = humanoid.neutral(), rk.collision_pairs(humanoid)
    named = rk.distance(humanoid, q).pairs
    link = humanoid.link
    bodies = {tuple(sorted((link(a).body, link(b).body))) for a, b in named}
    assert bodies == set(pairs.bodies)
    fewer = pairs.remove("left_hand")
    assert not any("left_hand" in pair for pair in rk.distance(humanoid, q, pairs=fewer).pairs)
    own = rk.distance(humanoid, q, "left_hand")
    assert own.pairs and all(a == "left_hand" for a, _ in own.pairs)
    assert all(b == "left_hand" for _, b in rk.distance(humanoid, q, b="left_hand").pairs)
    assert len(own) < len(rk.distance(humanoid, q, "left_hand", pairs="all"))
    neighbours = rk.distance(humanoid, q, "left_hand", "left_wrist")  # asked for by name
    assert neighbours.distance.shape == () and neighbours.nearest == ("left_hand", "left_wrist")
    assert rk.distance(humanoid, q, ["left_hand", "chest"], ["chest", "left_hand"]).pairs == (
        ("left_hand", "chest"),
    )


def sine_field() -> rk.Ground:
    x, y = np.meshgrid(0.1 * np.arange(41), 0.1 * np.arange(41), indexing="ij")
    return rk.Ground(terrain=rk.HeightField(0.3 * np.sin(2 * x) * np.cos(3 * y), 0.1, (-2.0, -2.0, 0.0)))


def test_height_fields_by_their_points():
    ground, rng = sine_field(), np.random.default_rng(2)
    field = ground.terrain
    # Points of its triangles, 0.02 m apart.
    cells = np.moveaxis(np.mgrid[0:40, 0:40], 0, -1).reshape(-1, 1, 2)
    u = np.moveaxis(np.mgrid[0:6, 0:6], 0, -1).reshape(1, -1, 2) / 5
    i, j = cells[..., 0], cells[..., 1]
    h = field.heights
    a, b, c, d = h[i, j], h[i + 1, j], h[i + 1, j + 1], h[i, j + 1]
    s, t = u[..., 0], u[..., 1]
    z = np.where(s >= t, a + s * (b - a) + t * (c - b), a + s * (c - d) + t * (d - a))
    surface = np.stack([(i + s) * 0.1 - 2.0, (j + t) * 0.1 - 2.0, z], axis=-1).reshape(-1, 3)
    robot = ModelBuilder("ball").link("ball", 1.0, collisions=[Shape(Sphere(0.1))]).build("floating")
    q = np.zeros((30, 7))
    q[:, 0], q[:, 4:6] = 1.0, rng.uniform(-1.5, 1.5, (30, 2))
    q[:, 6] = rng.uniform(0.3, 0.9, 30)
    found = rk.distance(robot, q, "ground", "ball", ground=ground, gradient=True)
    least = np.linalg.norm(q[:, None, 4:] - surface, axis=-1).min(axis=1) - 0.1
    apart = found.distance > 0.0
    assert apart.sum() > 20
    assert ((least - found.distance)[apart] > -1e-12).all() and ((least - found.distance)[apart] < 5e-3).all()
    np.testing.assert_allclose(found.gradient[:, 3:], found.normal, atol=1e-12)
    sunk = q.copy()
    sunk[:, 4:] -= found.normal * (found.distance[:, None] + 0.01)
    deep = rk.distance(robot, sunk, "ground", "ball", ground=ground)
    assert ((deep.distance < 0.0) & (deep.distance > -0.011)).mean() > 0.9


def test_bad_input_is_one_error(humanoid):
    q = humanoid.neutral()

    def refused(error, words, *given, robot=humanoid, **options):
        with pytest.raises(error) as found:
            rk.distance(robot, *given, **options)
        assert all(word in str(found.value) for word in words), found.value

    refused(rk.UnknownName, ["left_hnd", "left_hand"], q, "left_hnd", "chest")
    refused(rk.UnknownName, ["ground", "ground= gives one"], q, "ground", "chest")
    refused(rk.ShapeError, ["threads:"], [q, q], threads=0)
    refused(rk.ShapeError, ["q:", "(38,)"], q[:-1])
    refused(rk.InvalidValue, ["q:"], np.full(humanoid.nq, np.nan))
    refused(rk.InvalidValue, ["quaternion"], 2.0 * q)
    refused(rk.ShapeError, ["pairs:"], q, pairs="some")
    refused(rk.ShapeError, ["two links"], q, "chest", "chest")
    refused(rk.WrongType, ["a:"], q, 3)
    refused(rk.ShapeError, ["ground:"], q, ground="flat")
    refused(rk.ShapeError, ["max_distance"], q, max_distance=np.nan)
    refused(rk.ShapeError, ["pairs", "quadruped"], q,
            pairs=rk.collision_pairs(rk.load_urdf(rk.find_robot("quadruped"))))  # fmt: skip
    seen = ModelBuilder("seen").link("base", collisions=[Shape(Sphere(0.1))])
    seen.link("tip", 1.0, inertia=np.eye(3), visuals=[Shape(Sphere(0.1))])
    seen.joint("j", "revolute", "base", "tip")
    refused(
        rk.ModelError,
        ["'tip' has no collision shape", "1 to be seen"],
        [0.0],
        "tip",
        "base",
        robot=seen.build(),
    )
    bare = (
        ModelBuilder("bare")
        .link("a")
        .link("b", 1.0, inertia=np.eye(3))
        .joint("j", "revolute", "a", "b")
        .build()
    )
    refused(rk.ModelError, ["'bare'", "no link has a shape"], [0.0], robot=bare)
    refused(rk.ModelError, ["'b' has no collision shape", "nor has any other"], [0.0], "b", robot=bare)
    assert not rk.collisions(humanoid, np.zeros((0, humanoid.nq)))
