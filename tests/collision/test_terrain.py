"""Height fields: contacts beside distances to their triangles, and laws of what stands and rolls on them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.collision.detect import contacts_at
from robokit.collision.scene import NO_RUNS, _beside
from robokit.collision.shapes import PlacedCore, core_of, field_core, pair_arrays, shape_arrays
from robokit.model import ModelBuilder, Shape
from robokit.model.geometry import Box, Capsule, Cylinder, Placement, Sphere
from tests.ladder import rotation

CELL = 0.1
FLAT = np.zeros((11, 11))
ALONG = CELL * np.arange(11)
VALLEY = np.abs(ALONG - 0.5)[:, None] * np.ones(11)


def contacts(heights: np.ndarray, geometry: Any, p: Any, R: np.ndarray | None = None, **options: Any) -> dict:
    field = PlacedCore(field_core(heights, (CELL, CELL)), 0, Placement(position=np.array([0.0, 0.0, 0.2])))
    arrays = shape_arrays([field, PlacedCore(core_of(geometry, 0.0), 1, Placement())])
    body = arrays["shape_body"]
    arrays |= _beside(arrays, [None] * len(body)) | pair_arrays(body, 1, NO_RUNS)
    poses = np.array([np.eye(3), np.eye(3) if R is None else R])
    return contacts_at(arrays, poses, np.array([[0.0, 0.0, 0.0], np.add(p, [0.0, 0.0, 0.2])]), **options)


def triangles(heights: np.ndarray) -> np.ndarray:
    """Of the cells from 5 beyond the grid, (n, 3, 3)."""
    n = len(heights)
    found = []
    for i in range(-5, n + 4):
        for j in range(-5, n + 4):
            a, b, c, d = (
                np.array([CELL * u, CELL * w, heights[np.clip(u, 0, n - 1), np.clip(w, 0, n - 1)]])
                for u, w in ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
            )
            found += [(a, b, c), (a, c, d)]
    return np.array(found)


def distance(p: np.ndarray, faces: np.ndarray) -> float:
    """Of a point from triangles."""
    a, b, c = faces[:, 0], faces[:, 1], faces[:, 2]
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    over = np.ones(len(faces), bool)
    best = np.full(len(faces), np.inf)
    for s, e in ((a, b), (b, c), (c, a)):
        along = e - s
        over &= np.einsum("ni,ni->n", np.cross(along, p - s), n) >= 0.0
        t = np.clip(np.einsum("ni,ni->n", p - s, along) / (along**2).sum(axis=1), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(p - s - t[:, None] * along, axis=1))
    return float(np.where(over, np.abs(np.einsum("ni,ni->n", p - a, n)), best).min())


def test_a_ball_has_its_distance_from_the_triangles_also_beyond_the_grid() -> None:
    rng = np.random.default_rng(0)
    heights = rng.uniform(0.0, 0.1, (11, 11))
    faces, seen = triangles(heights), 0
    for _ in range(60):
        p = np.array([*rng.uniform(-0.3, 1.3, 2), rng.uniform(0.0, 0.25)])
        i, j = np.clip(np.floor(p[:2] / CELL).astype(int), 0, 9)
        if p[2] < heights[i : i + 2, j : j + 2].max():
            continue  # its centre may be below
        found = contacts(heights, Sphere(0.08), p)
        expected = distance(p, faces) - 0.08
        assert (len(found["contact_gap"]) > 0) == (expected < 0.0)
        if expected < 0.0:
            seen += 1
            assert found["contact_gap"].min() == pytest.approx(expected, abs=1e-9)
    assert seen > 10


@pytest.mark.parametrize("x", [0.53, 0.5, 0.55, 5.0])
def test_a_ball_on_a_flat_field_has_one_contact_on_seams_and_beyond_the_edge(x: float) -> None:
    found = contacts(FLAT, Sphere(0.05), [x, 0.55, 0.0499], gravity=9.81, dt=0.01)
    assert found["contact_gap"] == pytest.approx([-1e-4])
    assert found["contact_frame"][0, 6:] == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("at", [(0.51, 0.52), (0.5, 0.5), (0.55, 0.5)])
@pytest.mark.parametrize("geometry", [Box((0.4, 0.4, 0.2)), Cylinder(0.2, 0.2), Capsule(0.1, 0.31)])
def test_what_lies_on_a_flat_field_touches_it_as_a_plane(at: tuple[float, float], geometry: Any) -> None:
    R = np.eye(3)[[2, 0, 1]] if isinstance(geometry, Capsule) else np.eye(3)
    found = contacts(FLAT, geometry, [*at, 0.0999], R)
    expected = {Box: 4, Cylinder: 8, Capsule: 2}[type(geometry)]
    assert len(found["contact_gap"]) == expected and np.allclose(found["contact_gap"], -1e-4)
    assert np.allclose(found["contact_frame"][:, 6:], [0.0, 0.0, 1.0])
    assert len(set(found["contact_feature"].tolist())) == expected


@pytest.mark.parametrize("over", [0.0, 1e-10, 1e-8, 1e-7, 3e-7, 1e-6, 1e-5, 3e-5])
@pytest.mark.parametrize("geometry", [Box((0.2, 0.2, 0.08)), Cylinder(0.1, 0.08)])
def test_what_just_reaches_over_a_seam_or_a_corner_of_the_grid_touches_as_a_plane(
    over: float, geometry: Any
) -> None:
    """By less than it is deep, so that the shortest way out of the next cell is sideways."""
    rng = np.random.default_rng(0)
    for side, y in itertools.product((-1.0, 1.0), (0.2, 0.2 + 1e-7, 0.23, 0.2 - 3e-7, 0.2 + 1e-6)):
        tilt = Rotation.from_rotvec(1e-6 * rng.normal(size=3)).as_matrix()
        found = contacts(FLAT, geometry, [0.4 + side * over, y, 0.04 - 4e-5], tilt)
        assert len(found["contact_gap"]) == {Box: 4, Cylinder: 8}[type(geometry)]
        assert np.allclose(found["contact_frame"][:, 6:], [0.0, 0.0, 1.0], atol=1e-5)


def test_valleys_and_ridges_hold_along_their_whole_length() -> None:
    ball = contacts(VALLEY, Sphere(0.05), [0.5, 0.57, 0.05 * 2**0.5 - 1e-4])
    assert len(ball["contact_gap"]) == 2 and np.allclose(ball["contact_gap"], -1e-4 / 2**0.5)
    box = contacts(-VALLEY, Box((0.4, 0.4, 0.2)), [0.5, 0.53, 0.0999])
    assert np.allclose(sorted(box["contact_place"][:, 1]), [0.33, 0.73])
    assert np.allclose(box["contact_frame"][:, 6:], [0.0, 0.0, 1.0])
    turned = np.array([[1.0, 0.0, -1.0], [0.0, 2**0.5, 0.0], [1.0, 0.0, 1.0]]) / 2**0.5
    edge = contacts(VALLEY, Box((0.04, 0.24, 0.04)), [0.5, 0.57, 0.02 * 2**0.5 - 1e-4], turned)
    assert len(edge["contact_gap"]) == 8 and np.allclose(edge["contact_gap"], -1e-4 / 2**0.5)


def ground_at(heights: np.ndarray, x: float, y: float) -> float:
    i, j = int(x // CELL), int(y // CELL)
    u, w = x / CELL - i, y / CELL - j
    a, c = heights[i, j], heights[i + 1, j + 1]
    if u > w:
        return float(a + u * (heights[i + 1, j] - a) + w * (c - heights[i + 1, j]))
    return float(a + w * (heights[i, j + 1] - a) + u * (c - heights[i, j + 1]))


def test_no_corner_of_a_box_is_below_the_ground_without_a_contact() -> None:
    rng = np.random.default_rng(1)
    heights = rng.uniform(0.0, 0.03, (11, 11))
    size, seen = np.array([0.2, 0.15, 0.1]), 0
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    for _ in range(150):
        R, p = rotation(rng), np.array([*rng.uniform(0.3, 0.7, 2), rng.uniform(0.06, 0.14)])
        corners = signs * size @ R.T + p
        depths = [ground_at(heights, *corner[:2]) - corner[2] for corner in corners]
        if not 1e-4 < max(depths) < 5e-3:
            continue
        found = contacts(heights, Box((0.2, 0.15, 0.1)), p, R)
        for corner, depth in zip(corners, depths, strict=True):
            if depth > 1e-4:
                seen += 1
                near = np.linalg.norm(found["contact_place"] - corner - [0.0, 0.0, 0.2], axis=1)
                assert near.min(initial=np.inf) < 1.5 * depth
    assert seen > 10


def test_plain_python_finds_the_same() -> None:
    heights = np.random.default_rng(2).uniform(0.0, 0.05, (11, 11))
    R, p = rotation(np.random.default_rng(3)), [0.52, 0.47, 0.09]
    found, plain = (contacts(heights, Box((0.2, 0.15, 0.1)), p, R, engine=e) for e in ("llvm", "python"))
    assert len(found["contact_gap"]) > 2
    assert np.array_equal(found["contact_feature"], plain["contact_feature"])
    for name in ("contact_gap", "contact_place", "contact_frame"):
        np.testing.assert_allclose(found[name], plain[name], atol=1e-12)


# ---- whole steps ------------------------------------------------------------------------------------------


def loose(geometry: Any, inertia: Any) -> rk.Robot:
    return (
        ModelBuilder("b")
        .link("b", 1.0, inertia=np.diag(inertia), collisions=(Shape(geometry),))
        .build("floating")
    )


def run(robot: rk.Robot, heights: np.ndarray, q: Any, v: Any = None, duration: float = 1.0) -> rk.Trajectory:
    ground = rk.Ground(terrain=rk.HeightField(heights, cell=CELL), friction=0.5)
    options: Any = {"duration": duration, "dt": 1e-3, "record_every": 1}
    return rk.simulate(robot, np.array(q), v, ground=ground, **options)


def test_a_ball_rolls_over_a_flat_field_and_beyond_without_bumps() -> None:
    ball = loose(Sphere(0.05), [0.001] * 3)
    found = run(ball, FLAT, [1.0, 0, 0, 0, 0.3, 0.31, 0.05], np.array([0.0, 20.0, 0.0, 1.0, 0.0, 0.0]))
    assert np.ptp(found.q[200:, 6]) < 1e-12
    assert found.q[-1, 4] == pytest.approx(1.3, abs=1e-3)


@pytest.mark.parametrize("slope", [0.3, -0.1])
def test_a_box_rests_on_the_slope_of_a_field(slope: float) -> None:
    box = loose(Box((0.2, 0.2, 0.1)), [0.0042, 0.0042, 0.0067])
    angle = np.arctan(slope)
    heights = slope * ALONG[:, None] * np.ones(11)
    height = 0.5 * slope + 0.0502 / np.cos(angle)
    q = [np.cos(0.5 * angle), 0.0, -np.sin(0.5 * angle), 0.0, 0.5, 0.53, height]
    found = run(box, heights, q, duration=1.5)
    assert np.abs(found.v[-1]).max() < 1e-9 and np.ptp(found.q[-200:], axis=0).max() < 1e-12


def test_a_box_rests_on_a_ridge() -> None:
    box = loose(Box((0.4, 0.3, 0.1)), [0.008, 0.014, 0.02])
    found = run(box, -VALLEY, [1.0, 0, 0, 0, 0.5, 0.53, 0.051], duration=1.0)
    assert np.abs(found.v[-1]).max() < 1e-9
    assert np.abs(found.q[-1] - [1.0, 0, 0, 0, 0.5, 0.53, 0.05]).max() < 1e-3


@pytest.mark.parametrize("over", [0.0, 1e-9, 1e-6, 1e-5, 1e-4, -1e-6])
@pytest.mark.parametrize("along", ["x", "y", "diagonal"])
def test_a_bar_on_a_ridge_is_held_at_both_ends_where_cells_end_there(along: str, over: float) -> None:
    """Corners of the grid inside a ridge count for nothing, unless the bar ends there."""
    heights = {
        "x": -VALLEY.T,
        "y": -VALLEY,
        "diagonal": -np.abs(ALONG[:, None] - ALONG[None]) / np.sqrt(2.0),
    }[along]
    turn, stretch = {"x": (0.0, 1.0), "y": (0.5 * np.pi, 1.0), "diagonal": (0.25 * np.pi, np.sqrt(2.0))}[
        along
    ]
    R = Rotation.from_euler("z", turn).as_matrix()
    length = 0.6 * stretch + 2.0 * over
    for depth in (1e-8, 1e-6, 2e-5, 1e-3):
        found = contacts(heights, Box((length, 0.1, 0.1)), [0.5, 0.5, 0.05 - depth], R)
        normals = found["contact_frame"][:, 6:9]
        place = (found["contact_place"] - [0.5, 0.5, 0.2]) @ R
        held = (normals[:, 2] > 1.0 - 1e-12) & (np.abs(found["contact_gap"] + depth) < 1e-6 * depth + 1e-15)
        for end in (-1.0, 1.0):
            assert (np.abs(place[held, 0] - 0.5 * end * length) < 1e-3).any(), (depth, end)


@pytest.mark.parametrize("over", [0.0, 2e-5, 4e-5])
def test_a_bar_along_a_ridge_rests(over: float) -> None:
    """It rocks by some 1e-5 as it settles: by so little its face is on the ridge, else it falls through."""
    bar = loose(Box((0.1, 0.6 + 2.0 * over, 0.1)), [0.02, 0.002, 0.02])
    found = run(bar, -VALLEY, [1.0, 0, 0, 0, 0.5, 0.5, 0.05], duration=0.1)
    assert -6e-5 < found.q[-1, 6] - 0.05 < 0.0


@pytest.mark.parametrize("inclined", [2e-3, 1e-2, 0.1])
def test_a_bar_inclined_to_a_ridge_touches_it_wherever_it_ends(inclined: float) -> None:
    """Near a corner of the grid no cell has its shortest way out across the ridge: there was no contact."""
    rng, heights, depth = np.random.default_rng(0), -0.3 * VALLEY, 1e-4
    line = np.array([0.5, 0.5, 0.0]) + np.linspace(-0.45, 0.45, 4001)[:, None] * [0.0, 1.0, 0.0]
    for k in range(40):
        size = np.array([(0.5, 0.1, 0.1), (0.2, 0.2, 0.1)][k % 2])
        angles = inclined, rng.uniform(-0.03, 0.03), rng.choice([0.0, np.pi / 4, rng.uniform(0.3, 1.2)])
        R = Rotation.from_euler("XYZ", angles).as_matrix()
        p = np.array([0.5, 0.5, 0.0]) - 0.5 * size[2] * R[:, 2]
        seen = (np.abs((line - p) @ R) <= 0.5 * size)[:, :2].all(axis=1)
        end = line[seen][[0, -1][k // 2 % 2], 1]
        p[1] += np.round(end / CELL) * CELL - end + rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-5.0, -2.5)
        local = (line - p) @ R
        below = local[(np.abs(local) <= 0.5 * size)[:, :2].all(axis=1), 2]
        found = contacts(heights, Box(tuple(size)), p + R[:, 2] * (below.max() + 0.5 * size[2] - depth), R)
        assert found["contact_gap"].min(initial=0.0) < -0.5 * depth, (k, angles)


@pytest.mark.parametrize("turn", [0.0, 0.5 * np.pi, np.pi])
@pytest.mark.parametrize("slope", [0.0, 0.1])
@pytest.mark.parametrize("geometry", [Box((0.3, 0.14, 0.1)), Cylinder(0.05, 0.3)])
def test_what_lies_across_two_ridges_touches_both(geometry: Any, slope: float, turn: float) -> None:
    """Tilted however little, it touched one of them at a time, and rocked and wandered for ever."""
    terrace = slope * (ALONG - 0.5) - 0.3 * np.maximum(np.abs(ALONG - 0.55) - 0.05, 0.0)
    heights = np.rot90(terrace[:, None] * np.ones(11), round(turn / (0.5 * np.pi)))
    ends = np.array([[0.0, 0.0], [0.1, 0.1 * slope]])  # of the terrace, from the middle of the field
    world, rng = Rotation.from_euler("z", turn).as_matrix(), np.random.default_rng(0)
    for tilt in (0.0, 1e-9, -1e-9, 1e-6, -1e-6, 3e-5, -3e-5, 3e-4, -3e-4, 9e-4, -9e-4, 2e-3, -2e-3):
        for yaw in (*rng.uniform(-0.4, 0.4, 4), 0.0):
            lying = Rotation.from_euler("y", 0.5 * np.pi if isinstance(geometry, Cylinder) else 0.0)
            leaning = Rotation.from_euler("Y", -np.arctan(slope) - tilt)
            R = (leaning * Rotation.from_euler("z", yaw)).as_matrix()
            up, depth = R[:, 2], 1e-3
            down = np.array([0.05, rng.uniform(-0.2, 0.2), np.interp(0.05, *ends.T) - depth])
            p = world @ (down + 0.05 * up) + [0.5, 0.5, 0.0]
            found = contacts(heights, geometry, p, world @ R @ lying.as_matrix())
            place = (found["contact_place"] - [0.5, 0.5, 0.2]) @ world
            pressed = found["contact_gap"] < -0.5 * depth
            for x in ends[:, 0]:
                assert (np.abs(place[pressed, 0] - x) < 5e-3).any(), (tilt, yaw, x)


LYING = Rotation.from_euler("y", 0.5 * np.pi).as_matrix()


@pytest.mark.parametrize("tilt", [0.0, 2e-4, 2e-3, 2e-2])
def test_what_leans_on_a_ridge_touches_its_end(tilt: float) -> None:
    """Beside where it is deepest; it touched that alone where the triangle below its middle had no end."""
    heights, rng, depth = FLAT.copy(), np.random.default_rng(0), 1e-4
    heights[5, 5:] = 0.2
    for k in range(40):
        R = Rotation.from_euler("XZ", [-tilt, rng.uniform(0.0, 6.0)]).as_matrix()
        off = rng.uniform(-0.03, 0.03), rng.uniform(-0.06, -0.02), 0.025 - depth
        p = np.add([0.5, 0.5, 0.2], Rotation.from_euler("X", -tilt).apply([off[0], -off[1], off[2]]))
        for geometry in (Box((0.16, 0.16, 0.05)), Cylinder(0.08, 0.05)):
            found = contacts(heights, geometry, p, R)
            place = found["contact_place"][found["contact_gap"] < -0.5 * depth]
            assert (np.abs(place[:, :2] - 0.5) < 1e-3).all(axis=1).any(), (k, geometry)


@pytest.mark.parametrize(
    ("geometry", "up", "R"),
    [
        (Box((0.16, 0.16, 0.05)), 0.025, np.eye(3)),
        (Cylinder(0.06, 0.05), 0.025, np.eye(3)),
        (Sphere(0.05), 0.05, np.eye(3)),
        (Capsule(0.04, 0.1), 0.04, LYING),
    ],
)
@pytest.mark.parametrize("high", [0.02, 0.2])
def test_a_peak_is_one_contact(geometry: Any, up: float, R: np.ndarray, high: float) -> None:
    """Each of the six triangles around it had the same one: the ground was six times as stiff there."""
    heights, rng, depth = FLAT.copy(), np.random.default_rng(0), 1e-4
    heights[5, 5] = high
    for k in range(20):
        off = rng.uniform(-0.03, 0.03, 2) * (k > 0)
        off *= {Sphere: (0.0, 0.0), Capsule: (1.0, 0.0)}.get(type(geometry), (1.0, 1.0))
        found = contacts(heights, geometry, [0.5 + off[0], 0.5 + off[1], high + up - depth], R)
        pressed = found["contact_gap"] < -0.5 * depth
        np.testing.assert_allclose(
            found["contact_place"][pressed, :2], [[0.5, 0.5]], atol=1e-9, err_msg=str(k)
        )
