"""Scenes of robots: hulls beside their meshes, pairs, detection beside every pair on its own."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import numbered
from scipy.spatial import ConvexHull

import robokit as rk
from robokit.collision import detect
from robokit.collision.detect import contacts_at
from robokit.collision.fields import CONE, CYLINDER, POINT, POLYTOPE
from robokit.collision.scene import (
    NO_RUNS,
    World,
    _beside,
    robot_shapes,
    scene,
    touching_count,
    touching_pairs,
    touching_runs,
)
from robokit.collision.shapes import (
    PlacedCore,
    box,
    core_of,
    count_of_pairs,
    cube_directions,
    pair_arrays,
    polytope,
    polytope_core,
    runs_of,
    shape_arrays,
)
from robokit.collision.support import CUBE, farthest, pair_number
from robokit.errors import ModelError
from robokit.model.geometry import Box, Mesh, Placement, Shape, Sphere
from robokit.spatial import Vector3

TILE = Box((0.2, 0.2, 0.1))


def directions(n: int, seed: int = 0) -> np.ndarray:
    d = np.random.default_rng(seed).normal(size=(n, 3))
    return d / np.linalg.norm(d, axis=1)[:, None]


def test_box_is_the_hull_of_its_corners() -> None:
    given = box((1.0, 2.0, 3.0))
    found = polytope(given.corners)
    assert len(found.polygons) == 6 and all(len(p) == 4 for p in found.polygons)
    for hull in (given, found):
        for n, p in zip(hull.normals, hull.polygons, strict=True):
            c = hull.corners[list(p)]
            assert np.allclose(c @ n, (hull.corners @ n).max())
            assert np.cross(c[1] - c[0], c[2] - c[1]) @ n > 0.0
        edges = {frozenset(pair) for pair in hull.edges.tolist()}
        assert len(edges) == 12 and all(sum(k in pair for pair in edges) == 3 for k in range(8))


@pytest.mark.parametrize("error", [0.0, 1e-3, 1e-2])
def test_thinned_hull_is_inside_and_as_near_as_it_says(error: float) -> None:
    points = directions(800) * [0.1, 0.07, 0.05]
    hull = polytope(points, error)
    d = directions(4000, 1)
    missing = (points @ d.T).max(axis=0) - (hull.corners @ d.T).max(axis=0)
    assert missing.min() >= -1e-15
    assert missing.max() <= hull.error + 1e-15 <= error + 2e-6
    edges = {frozenset(pair) for pair in hull.edges.tolist()}
    assert len(hull.corners) - len(edges) + len(hull.polygons) == 2
    assert missing.max() >= 0.5 * hull.error


def test_many_sided_prism_keeps_its_flat_ends() -> None:
    t = 2.0 * np.pi * np.arange(40) / 40
    ring = np.stack([np.cos(t), np.sin(t)], axis=1) * 0.1
    points = np.array([[*p, z] for z in (-0.02, 0.02) for p in ring])
    points += 1e-8 * np.random.default_rng(0).normal(size=points.shape)  # as files of float32 are
    sides = sorted(len(p) for p in polytope(points).polygons)
    assert sides[-2:] == [40, 40] and set(sides[:-2]) == {4}


def test_flat_points_have_two_faces() -> None:
    hull = polytope(np.array([[0.0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [0.5, 0.5, 1]]))
    assert len(hull.corners) == 4 and np.allclose(abs(hull.normals), [[0, 0, 1]] * 2)
    tilted = np.float32([[0, 0, 0], [0.2, 0, 0.1], [0, 0.2, 0.05], [0.2, 0.2, 0.15]]).astype(float)
    assert 0.0 < ConvexHull(tilted).volume < 1e-9  # a solid by the rounding of its file
    hull = polytope(tilted)
    assert [len(p) for p in hull.polygons] == [4, 4] and np.allclose(hull.normals.sum(axis=0), 0.0)
    with pytest.raises(ValueError, match="one line"):
        polytope(np.outer(np.arange(4.0), [1, 2, 3]))


@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_pairs_ascend_by_their_bodies(name: str) -> None:
    robot = rk.load_urdf(rk.find_robot(name))
    pairs = touching_pairs(robot).tolist()
    given = scene(robot, World(Placement()), None)
    bodies = given.arrays["shape_body"][[*numbered(given.arrays).values()]]
    assert (bodies[:, 0] < bodies[:, 1]).all()
    assert (np.diff(bodies @ [robot.nbodies + 1, 1]) >= 0).all()
    assert {(int(i), int(j)) for i, j in bodies if i} == {(i, j) for i, j in pairs if i}


def test_what_tells_pairs_goes_with_bodies() -> None:
    """Of 200 loose balls of which two are kept apart, in a world with a plane: 19,899 pairs, 201 runs."""
    one = rk.ModelBuilder("ball").link("ball", 1.0, collisions=(Shape(Sphere(0.1)),)).build("floating")
    robot = rk.together({f"b{k}": one for k in range(200)})
    names = {link.body: link.name for link in robot.links}
    pairs = rk.collision_pairs(robot).remove(names[21], names[31])
    found = scene(robot, World(Placement()), runs_of(pairs.bodies)).arrays
    assert len(found["runs"]) == 201 and count_of_pairs(found) == 200 + 19_899 == 200 + len(pairs)
    listed = set(numbered(found).values())
    assert (21, 31) not in listed and {(0, 21), (20, 31), (21, 30), (21, 32)} <= listed
    assert len(touching_pairs(robot)) == touching_count(robot) == 19_900
    assert len(touching_runs(robot)) == 199


def test_a_world_of_more_pairs_than_numbers_is_refused() -> None:
    with pytest.raises(ModelError, match="at most 2147483646 pairs of shapes, got 2147516416"):
        pair_arrays(np.arange(65_537), 1, NO_RUNS)


def test_what_numbers_pairs_of_many_shapes_of_one_body_fits_its_type() -> None:
    """Of 60,000 shapes of the ground, whose square is no 32-bit number, and a ball."""
    found = pair_arrays(np.append(np.zeros(60_000, np.int32), 1), 60_000, NO_RUNS)["shape_pairs"].tolist()
    assert found[0] == [0, 60_000, 0] and found[-1] == [60_000, 1, 60_000]
    assert pair_number(SimpleNamespace(shape_pairs=np.array(found)), 59_999, 60_000) == 59_999


@pytest.mark.parametrize("still", [0, 3])
def test_pairs_are_all_shapes_of_both_bodies(still: int) -> None:
    """Of the ground with each body, and of each pair once; some links are fixed to the world."""
    rng = np.random.default_rng(still)
    body = np.array([0] * still + sorted([*rng.integers(0, 9, 20).tolist(), 8]), np.int32)
    own = rng.integers(0, 9, (25, 2))
    own = own[own[:, 0] != own[:, 1]]
    wanted = {(min(i, j), max(i, j)) for i, j in own.tolist()}
    expected = [
        (int(i), int(j), k, m)
        for (k, i), (m, j) in product(enumerate(body), repeat=2)
        if (k < still and j > 0) or (k >= still and m >= still and (i, j) in wanted)
    ]
    found = pair_arrays(body, still, runs_of(sorted(wanted)))
    assert [*numbered(found).values()] == [(k, m) for *_, k, m in sorted(expected)]
    assert count_of_pairs(found) == len(expected)


def loose(half: float = 0.05) -> dict[str, np.ndarray]:
    """A row of flush tiles with tops at z = 0, a taller one at its end, and a box (body 1)."""
    at = [(0.2 * k, 0.0, -0.05) for k in range(3)] + [(0.6, 0.0, 0.05)]
    placed = [PlacedCore(core_of(TILE, 0.0), 0, Placement(position=np.array(p))) for p in at]
    placed.append(PlacedCore(core_of(Box((2 * half,) * 3), 0.0), 1, Placement(), "box"))
    arrays = shape_arrays(placed)
    arrays |= _beside(arrays, [None] * len(arrays["shape_body"]))
    return arrays | pair_arrays(arrays["shape_body"], 4, NO_RUNS)


def at(arrays: dict[str, np.ndarray], place: tuple[float, float, float], **options: object) -> dict:
    R, p = np.array([np.eye(3)] * 2), np.array([(0.0, 0.0, 0.0), place])
    return contacts_at(arrays, R, p, **options)  # type: ignore[arg-type]


def normals(found: dict) -> np.ndarray:
    return found["contact_frame"][:, 6:]


@pytest.mark.parametrize("ahead", [1e-9, 1e-7, 1e-6, 1e-5, 1e-3, 0.03, 0.05])
def test_flush_tiles_have_no_edges(ahead: float) -> None:
    """A box that is about to enter the next tile feels the top alone."""
    tiles = loose()
    found = at(tiles, (0.05 + ahead, 0.0, 0.05 - 1e-5))
    assert len(found["contact_gap"]) >= 4
    assert np.allclose(normals(found), [0, 0, 1], atol=1e-12)
    tiles["shape_beside"][:] = 0
    if ahead < 1e-5:
        assert not np.allclose(normals(at(tiles, (0.05 + ahead, 0.0, 0.05 - 1e-5))), [0, 0, 1])


def test_wall_on_tiles_is_felt_down_to_its_foot() -> None:
    found = at(loose(), (0.45 + 1e-6, 0.0, 0.05 - 1e-5))
    wall = abs(normals(found)[:, 0]) > 0.5
    assert wall.sum() == 4 and np.allclose(normals(found)[wall], [-1, 0, 0])
    assert found["contact_place"][wall][:, 2].min() < 1e-5


def test_ball_on_flush_tiles_has_one_contact() -> None:
    tiles = [
        PlacedCore(core_of(TILE, 0.0), 0, Placement(position=np.array([0.2 * k, 0, -0.05]))) for k in (0, 1)
    ]
    arrays = shape_arrays([*tiles, PlacedCore(core_of(Sphere(0.1), 0.0), 1, Placement())])
    arrays |= _beside(arrays, [None] * len(arrays["shape_body"]))
    arrays |= pair_arrays(arrays["shape_body"], 2, NO_RUNS)
    for x in (0.0999, 0.09999, 0.1001, 0.101):
        found = at(arrays, (x, 0.0, 0.1 - 1e-5))
        assert np.allclose(normals(found), [[0, 0, 1]], atol=1e-12)
        assert np.allclose(found["contact_gap"], -1e-5)


def test_near_pairs_are_remembered_and_change_nothing() -> None:
    tiles, place = loose(), (0.31, 0.02, 0.05 - 1e-4)
    cold = at(tiles, place)
    assert (np.diff(cold["near_pair"]) > 0).all()
    warm = at(tiles, place, memory=cold)
    for name in ("contact_pair", "contact_feature"):
        assert (warm[name] == cold[name]).all()
    assert np.allclose(warm["contact_gap"], cold["contact_gap"], atol=1e-15)


def test_contacts_come_before_they_touch_and_none_are_lost() -> None:
    tiles = loose()
    above = (0.0, 0.0, 0.05 + 1e-3)
    assert not len(at(tiles, above, dt=1e-3)["contact_gap"])
    V = np.zeros((2, 6))
    V[1, 5] = -1.5
    assert len(at(tiles, above, dt=1e-3, V=V)["contact_gap"]) == 4
    assert len(at(tiles, above, dt=4e-3, gravity=9.81)["contact_gap"]) == 4
    few, detect.PLACES = detect.PLACES, 1
    try:
        assert len(at(tiles, (0.1, 0.0, 0.049))["contact_gap"]) == 4  # as on one slab
    finally:
        detect.PLACES = few


def test_pairs_are_those_of_today_and_more() -> None:
    robot = rk.load_urdf(rk.find_robot("humanoid"))
    new, old = {(i, j) for i, j in touching_pairs(robot).tolist()}, rk.collision_pairs(robot)
    left_out = set(old.left_out["neighbours"]) | set(old.left_out["touching in the neutral pose"])
    assert set(old.bodies) <= new | left_out
    assert not new & set(old.left_out["neighbours"])
    assert len(robot_shapes(robot)) >= robot.nbodies


def test_hull_of_a_mesh_covers_its_points() -> None:
    hull = ConvexHull(directions(50, 3))
    found = polytope(hull.points)
    assert sorted(map(tuple, found.corners)) == sorted(map(tuple, hull.points[hull.vertices]))


@pytest.mark.parametrize("angle", [1e-5, 1e-4, 1e-2, 0.3, 1.0])
def test_valley_of_two_solids_holds_at_its_bottom(angle: float) -> None:
    """Two wedges whose tops fall to their common edge: a point there is held by one of them at least."""
    h = 0.1 * np.tan(angle)
    right = np.array([[x, y, z] for y in (-0.1, 0.1) for x, z in ((0, -1), (0, 0), (0.1, -1), (0.1, h))])
    placed = [PlacedCore(core_of(c, 0.0), 0, Placement()) for c in (right, right * [-1, 1, 1])]
    pin = np.array([[0, 0, 0], [0.001, 0, 0.05], [-0.001, 0.001, 0.05], [-0.001, -0.001, 0.05]])
    arrays = shape_arrays([*placed, PlacedCore(core_of(pin, 0.0), 1, Placement())])
    arrays |= _beside(arrays, [None] * len(arrays["shape_body"]))
    arrays |= pair_arrays(arrays["shape_body"], 2, NO_RUNS)
    found = at(arrays, (0.0, 0.0, -1e-5))
    assert found["contact_gap"].min() == pytest.approx(-1e-5 * np.cos(angle), rel=1e-3)


@pytest.mark.parametrize("beside", [0.0, 1e-7, -2e-6, 5e-6, -9e-6])
def test_corner_on_a_seam_of_tiles_stands_on_them(beside: float) -> None:
    """It would leave both tiles soonest through the wall between them."""
    tile = core_of(TILE, 0.0)
    tiles = [PlacedCore(tile, 0, Placement(position=np.array([0.2 * k, 0, -0.05]))) for k in (0, 1)]
    pin = np.array([[0, 0, 0], [0.01, 0, 0.05], [-0.01, 0.01, 0.05], [-0.01, -0.01, 0.05]])
    arrays = shape_arrays([*tiles, PlacedCore(core_of(pin, 0.0), 1, Placement())])
    arrays |= _beside(arrays, [None] * len(arrays["shape_body"]))
    arrays |= pair_arrays(arrays["shape_body"], 2, NO_RUNS)
    found = at(arrays, (0.1 + beside, 0.0, -1e-5))
    assert 1 <= len(found["contact_gap"]) <= 2
    assert np.allclose(normals(found), [0, 0, 1])
    assert np.allclose(found["contact_gap"], -1e-5)


def test_plain_python_finds_the_same() -> None:
    tiles, place = loose(), (0.45 + 1e-6, 0.0, 0.05 - 1e-5)
    fast, plain = at(tiles, place), at(tiles, place, engine="python")
    assert fast["contact_feature"].tolist() == plain["contact_feature"].tolist()
    assert np.allclose(fast["contact_gap"], plain["contact_gap"], atol=1e-15)


@pytest.mark.parametrize("kind", ["ball", "cylinder", "cone", "disc", "box", "prism"])
def test_balls_cylinders_and_cones_are_found_in_meshes(kind: str, tmp_path: Path) -> None:
    import trimesh

    turn = np.arange(64) * np.pi / 32
    ring = np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], axis=1)
    points = {
        "ball": lambda: trimesh.creation.icosphere(subdivisions=3, radius=0.1).vertices,
        "cylinder": lambda: np.concatenate([0.1 * ring - [0, 0, 0.05], 0.1 * ring + [0, 0, 0.05]]),
        "disc": lambda: np.concatenate([0.1 * ring - [0, 0, 0.001], 0.1 * ring + [0, 0, 0.001]]),
        "cone": lambda: np.concatenate([0.1 * ring - [0, 0, 0.05], [[0, 0, 0.05]]]),
        "box": lambda: box((0.1, 0.2, 0.3)).corners,
        "prism": lambda: np.concatenate([0.1 * ring[::8] - [0, 0, 0.05], 0.1 * ring[::8] + [0, 0, 0.05]]),
    }[kind]()
    placed = Placement(about([0.3, 0.5, 0.1]), np.array([0.1, 0.2, 0.3]))
    path = tmp_path / "part.stl"
    trimesh.PointCloud(points @ placed.rotation.T + placed.position).convex_hull.export(path)
    core = core_of(Mesh("part.stl", path=path), 1e-3)
    expected = {"ball": POINT, "cylinder": CYLINDER, "disc": CYLINDER, "cone": CONE}
    assert core.kind == expected.get(kind, POLYTOPE)
    if kind in expected:
        assert core.own is not None
        np.testing.assert_allclose(core.own.position, placed.position, atol=1e-6)
        assert max(core.radius, core.size[0]) == pytest.approx(0.1, abs=1e-6)
    if kind in ("cylinder", "cone") and core.own is not None:
        up = core.own.rotation[:, 2] @ placed.rotation[:, 2]
        assert core.size[1] == pytest.approx(0.05, abs=1e-6) and abs(up) > 1.0 - 1e-9
        assert kind == "cylinder" or up > 0.0


def about(v: list[float]) -> np.ndarray:
    """A rotation by Rodrigues' formula."""
    angle = float(np.linalg.norm(v))
    x, y, z = np.array(v) / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


@pytest.mark.parametrize("kind", ["ball", "prism", "rounded"])
def test_climbing_finds_the_corner_that_is_farthest(kind: str) -> None:
    """Also where faces are flat only to the rounding of float32, and corners inside of them are left out."""
    rng = np.random.default_rng(4)
    turn = np.arange(40) * np.pi / 20
    ring = np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], axis=1)
    prism = np.concatenate([0.1 * ring - [0, 0, 0.05], 0.1 * ring + [0, 0, 0.05]])
    points = {"ball": 0.1 * directions(150), "prism": prism, "rounded": prism @ about([0.3, 0.2, 0.1]).T}[
        kind
    ]
    if kind == "rounded":
        points = np.concatenate([points, 0.5 * points]).astype(np.float32).astype(float)
    hull = polytope(points, 1e-4)
    arrays = shape_arrays([PlacedCore(polytope_core(hull), 1, Placement())])
    assert arrays["shape_starts"][0] == 0 and len(cube_directions()) == 6 * CUBE**2
    x = SimpleNamespace(**{name: array.astype(object) for name, array in arrays.items()})
    for d in [*rng.normal(size=(200, 3)), *hull.normals[:20], np.zeros(3), *cube_directions()]:
        for near in (-1, int(rng.integers(len(hull.corners)))):
            k = farthest(x, 0, Vector3(*d.tolist()), near)
            assert hull.corners[k] @ d >= (hull.corners @ d).max() - 1e-15


@pytest.mark.parametrize("gap", [3e-4, -3e-4])
def test_what_touches_in_the_neutral_pose_is_judged_by_whole_hulls(gap: float) -> None:
    """Thinned hulls of these balls reach 0.6 mm less far, and by their errors they could touch."""
    ball = directions(400, 7) * 0.1
    ball[0] = 0.1, 0.0, 0.0
    builder = rk.ModelBuilder("two arms").link("base", 1.0)
    for name, side in (("left", 1.0), ("right", -1.0)):
        shape = Shape(ball * [side, 1.0, 1.0], Placement(position=np.array([-side * (0.1 + gap / 2), 0, 0])))
        builder.link(name, 1.0, collisions=(shape,))
        builder.joint(name, "prismatic", "base", name, axis=(0, 0, 1))
    robot = builder.build()
    bodies = sorted(robot.link(name).body for name in ("left", "right"))
    assert min(c.core.hull.error for c in robot_shapes(robot)) > abs(gap)
    assert (bodies in touching_pairs(robot).tolist()) == (gap > 0.0)
