"""Boxes against boxes, capsules and spheres: distances from a solver, and the points in which they touch."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from robokit.sim.collide.box_distance import Block, box_gap
from robokit.sim.collide.box_points import box_meetings
from robokit.sim.collide.shape_distance import meetings_of, shape_gap, shape_meetings
from robokit.spatial import Vector3


def _block(rng, dimensions, center=(0.0, 0.0, 0.0), radius=0.0):
    """Of edges 6 to 40 cm long, turned at random."""
    axes = Rotation.random(random_state=rng).as_matrix()[:dimensions]
    half = rng.uniform(0.03, 0.2, dimensions)
    return Block(Vector3(*center), tuple(Vector3(*a) for a in axes.tolist()), tuple(half.tolist()), radius)


def _moved(block, way):
    return Block(block.center + way, block.axes, block.half, block.radius)


def _distance(a, b):
    """By bounded least squares: 0 where they overlap."""
    columns = [list(v) for v in a.axes] + [list(-v) for v in b.axes]
    half = np.array([*a.half, *b.half])
    found = lsq_linear(np.array(columns).T, np.array(list(b.center - a.center)), (-half, half), "bvls", 1e-14)
    return float(np.sqrt(2.0 * found.cost)) - a.radius - b.radius


def _pairs(dimensions, count, seed, gap):
    """Pairs at about the distance gap() by the nearest of their faces and edges."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a, b = _block(rng, 3), _block(rng, dimensions, (0.2 * rng.normal(size=3)).tolist())
        n = box_meetings(a, b)[0].n
        yield a, _moved(b, n * (gap(rng) - box_gap(a, b)))


@pytest.mark.parametrize(("dimensions", "bound"), [(3, 1.3e-3), (1, 1e-9), (0, 1e-15)])
def test_the_distance_of_bodies_that_are_near_is_that_of_a_solver(dimensions, bound):
    near = 0
    for a, b in _pairs(dimensions, 250, dimensions, lambda rng: rng.uniform(0.0, 0.01)):
        exact, got = _distance(a, b), box_gap(a, b)
        assert got < exact + 1e-9
        near += exact < 0.011
        if exact < 0.011:
            assert got > exact - bound
    assert near > 200


@pytest.mark.parametrize("dimensions", [3, 1, 0])
def test_a_shift_by_the_depth_parts_them_and_a_shorter_one_does_not(dimensions):
    for a, b in _pairs(dimensions, 150, 10 + dimensions, lambda rng: -rng.uniform(0.001, 0.05)):
        depth, n = -box_gap(a, b), box_meetings(a, b)[0].n
        # Where faces are taken before edges the normal is best to FACES_FIRST.
        assert _distance(a, _moved(b, n * (depth + 6e-5))) > 0.0
        assert _distance(a, _moved(b, n * (depth - 6e-5))) < 1e-7


@pytest.mark.parametrize("dimensions", [3, 1, 0])
def test_the_deepest_point_has_the_distance_of_the_bodies_from_either_side(dimensions):
    for a, b in _pairs(dimensions, 150, 20 + dimensions, lambda rng: rng.uniform(-0.05, -0.001)):
        gap = box_gap(a, b)
        here, there = (shape_meetings(*pair, Vector3(0.0, 0.0, 1.0)) for pair in ((a, b), (b, a)))
        assert len(here) == len(there) == meetings_of(3, dimensions)
        for points in (here, there):
            assert min(point.phi for point in points) == pytest.approx(gap, abs=6e-5)
        assert shape_gap(b, a) == pytest.approx(gap, abs=1e-12)
        for n in (here[0].n, -there[0].n):
            assert n.dot(n) == pytest.approx(1.0)
            # No plane across n parts them farther than the distance.
            across = n.dot(b.center - a.center) - a.reach(n) - b.reach(n)
            assert across == pytest.approx(gap, abs=6e-5)


def test_a_box_with_a_radius_is_nearer_by_it():
    a, b = next(_pairs(1, 1, 3, lambda rng: 0.01))
    round_a, round_b = (Block(x.center, x.axes, x.half, r) for x, r in ((a, 0.004), (b, 0.003)))
    assert box_gap(round_a, round_b) == pytest.approx(box_gap(a, b) - 0.007, abs=1e-12)
    for sharp, blunt in zip(box_meetings(a, b), box_meetings(round_a, round_b), strict=True):
        assert blunt.phi == pytest.approx(sharp.phi - 0.007, abs=1e-12)
        assert np.abs(np.array(list(blunt.x - sharp.x - sharp.n * 0.0005))).max() < 1e-12


@pytest.mark.parametrize("swapped", [False, True])
def test_boxes_on_each_other_touch_in_the_corners_of_what_they_share(swapped):
    axes = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))
    low = Block(Vector3(0.0, 0.0, 0.1), axes, (0.3, 0.2, 0.1), 0.0)
    top = Block(Vector3(0.25, 0.1, 0.248), axes, (0.1, 0.15, 0.05), 0.0)
    points = box_meetings(top, low) if swapped else box_meetings(low, top)
    sign = -1.0 if swapped else 1.0
    for phi, n, _ in points:
        assert phi == pytest.approx(-0.002)
        assert list(n) == pytest.approx([0.0, 0.0, sign])
    places = sorted(tuple(np.round(list(x), 9)) for *_, x in points)
    assert places == [(x, y, 0.199) for x in (0.15, 0.3) for y in (-0.05, 0.2)]


def test_edges_that_cross_touch_in_one_point_where_they_cross():
    s = np.sqrt(0.5)
    low = Block(
        Vector3(0.0, 0.0, 0.0),
        (Vector3(1.0, 0.0, 0.0), Vector3(0.0, s, s), Vector3(0.0, -s, s)),
        (0.5, 0.1, 0.1),
        0.0,
    )
    top = Block(
        Vector3(0.07, 0.03, 0.2 / s - 0.002),
        (Vector3(0.0, 1.0, 0.0), Vector3(s, 0.0, s), Vector3(-s, 0.0, s)),
        (0.5, 0.1, 0.1),
        0.0,
    )
    points = sorted(box_meetings(low, top), key=lambda point: point.phi)
    assert points[0].phi == pytest.approx(-0.002, abs=1e-12)
    assert list(points[0].n) == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)
    assert list(points[0].x) == pytest.approx([0.07, 0.0, 0.1 / s - 0.001], abs=1e-9)
    assert all(point.phi > 1.0 for point in points[1:])


def _rocking(rng, what):
    """An edge or a face of a box, or a capsule, that lies on the face of a box and is rocked by 1 mrad.

    Returns:
        the box below, and the other one in 400 poses of a closed way, 0.1 to 0.3 mm deep in its middle.
    """
    low, half = rng.uniform(0.03, 0.2, 3), rng.uniform(0.03, 0.2, 3)
    turn = Rotation.from_euler("ZX", [rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.3, 1.2)])
    if what != "edge":
        turn = Rotation.from_euler("Z", rng.uniform(0.0, 2.0 * np.pi))
    axes = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
    s = np.linspace(0.0, 2.0 * np.pi, 401)
    ways = 1e-3 * (np.outer(np.cos(s), axes[0]) + np.outer(np.sin(s), axes[1]))
    turned = (Rotation.from_rotvec(ways) * turn).as_matrix()
    lowest = turn.apply(-np.sign(turn.as_matrix()[2].round(9)) * half)
    count, radius = (1, 0.03) if what == "capsule" else (3, 0.0)
    if count == 1:
        lowest = np.array([0.0, 0.0, -radius])
    x, y, z = np.array([*(rng.uniform(-0.9, 0.9, 2) * low[:2]), low[2] - 2e-4]) - lowest
    unit = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))
    center = Vector3(x + 0.0 * s, y + 0.0 * s, z + 1e-4 * np.sin(2.0 * s))
    upper = tuple(Vector3(*turned[:, :, k].T) for k in range(count))
    return (
        Block(Vector3(0.0, 0.0, 0.0), unit, tuple(low.tolist()), 0.0),
        Block(center, upper, tuple(half[:count].tolist()), radius),
    )


@pytest.mark.parametrize("what", ["edge", "face", "capsule"])
def test_what_carries_a_body_on_a_face_does_not_jump(what):
    """Its ends carry it, and where it leaves the face; else a foot on a foot would hop from one to the other.

    Counted are forces, and torques about the middle over 10 cm, as the depth of one point that gives as much.
    From pose to pose the deepest points sink in by up to 4 um.
    """
    rng = np.random.default_rng(4)
    for _ in range(40):
        low, top = _rocking(rng, what)
        total = np.zeros((6, 401))
        for phi, n, x in box_meetings(low, top):
            force = np.maximum(-phi, 0.0) * np.array([c + 0.0 * phi for c in n])
            arm = np.array(list(x - top.center))
            total += np.concatenate([force, np.cross(arm, force, axis=0) / 0.1])
        assert np.abs(np.diff(total, axis=1)).max() < 1e-4
