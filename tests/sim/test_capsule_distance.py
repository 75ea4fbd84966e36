"""Distances of capsules in closed form against the numerical minimum, and of hulls where they are known."""

import math

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from robokit.engine import Kernel
from robokit.sim.collide.capsule_distance import nearest_of_segments, nearest_points, normal_and_distance
from robokit.sim.collide.capsule_fit import fit_capsules
from robokit.sim.collide.hull_distance import hull_distance
from robokit.sim.collide.hull_surface import surface
from robokit.spatial import Vector3

CASES = ("any", "parallel", "nearly parallel", "crossing", "one line")


def _segments(case: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    p, u, q, w = rng.normal(size=(4, 3))
    if case == "parallel":
        w = u * rng.normal()
    elif case == "nearly parallel":
        w = u * rng.normal() + 1e-7 * rng.normal(size=3)
    elif case == "crossing":
        q = p + u * rng.random() - w * rng.random()
    elif case == "one line":
        w, q = u * rng.normal(), p + u * rng.normal()
    return p, u, q, w


def _least(p, u, q, w) -> float:
    """The distance by bounded least squares, an active-set method."""
    found = lsq_linear(np.stack([u, -w], axis=1), q - p, bounds=(0.0, 1.0), method="bvls", tol=1e-14)
    return math.sqrt(2.0 * found.cost)


def _vectors(*arrays: np.ndarray) -> list[Vector3]:
    return [Vector3(*a.tolist()) for a in arrays]


@pytest.mark.parametrize("case", CASES)
def test_nearest_points_of_segments_are_the_minimum(case):
    rng = np.random.default_rng(CASES.index(case))
    for _ in range(40):
        p, u, q, w = _segments(case, rng)
        x, y = nearest_points(*_vectors(p, u, q, w))
        assert np.linalg.norm(list(x - y)) == pytest.approx(_least(p, u, q, w), abs=1e-7)
        for other, a, along in ((y, p, u), (x, q, w)):  # points, and segments that are points
            point, _ = nearest_points(*_vectors(a, along), other, None)
            _, swapped = nearest_points(other, None, *_vectors(a, along))
            least = _least(a, along, np.array(list(other)), np.zeros(3))
            assert np.linalg.norm(list(point - other)) == pytest.approx(least, abs=1e-7)
            assert list(swapped) == list(point)


def test_parallel_segments_meet_in_the_middle_of_their_common_stretch():
    s, t = nearest_of_segments(
        *_vectors(*np.array([[0, 0, 0], [4, 0, 0], [1, 1, 0], [8, 0, 0]], dtype=float))
    )
    assert (4 * s, 1 + 8 * t) == pytest.approx((2.5, 2.5))


def test_axes_that_cross_have_the_normal_that_is_given_for_them():
    n, distance = normal_and_distance(Vector3(1.0, 2.0, 3.0), Vector3(1.0, 2.0, 3.0), Vector3(0.0, 0.6, 0.8))
    assert (list(n), distance) == ([0.0, 0.6, 0.8], 0.0)


def test_machine_code_and_arrays_give_the_numbers_of_floats():
    rng = np.random.default_rng(3)
    rows = np.array([np.concatenate(_segments(CASES[k % 5], rng)) for k in range(50)])

    def text(x):
        a, b = nearest_points(*(Vector3(*x[k : k + 3]) for k in (0, 3, 6, 9)))
        _, distance = normal_and_distance(a, b, Vector3(0.0, 0.0, 1.0))
        return [[distance]]

    kernel = Kernel.build("nearest", inputs=[("x", 12)], outputs=[("gap", (1,))], text=text, key=b"test")
    plain = np.array([text(row.tolist())[0] for row in rows])
    arrays = np.array(text(list(rows.T))[0]).T
    assert np.abs(arrays - plain).max() < 1e-12
    assert np.abs(np.array([kernel(row) for row in rows]) - plain).max() < 1e-7  # fused multiply-adds


def test_hulls_of_balls_are_as_far_apart_as_the_capsules_that_they_are():
    rng = np.random.default_rng(5)
    touching = 0
    for _ in range(60):
        p, u, q, w = rng.normal(size=(4, 3))
        a, b = np.array([p, p + u]), np.array([q, q + w])
        r = rng.uniform(0.1, 0.9, 2)
        x, y = nearest_points(*_vectors(p, u, q, w))
        want = float(np.linalg.norm(list(x - y))) - r.sum()
        got = hull_distance(a, np.full(2, r[0]), b, np.full(2, r[1]))
        assert got == pytest.approx(want, abs=1e-6)
        touching += want < 0.0
    assert 10 < touching < 50


def test_boxes_touch_where_their_intervals_do():
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    none = np.zeros(8)
    assert hull_distance(corners, none, corners + np.array([1.25, 0.3, -0.2]), none) == pytest.approx(0.25)
    assert hull_distance(corners, none, corners + np.array([1.3, 1.4, 0.0]), none) == pytest.approx(0.5)
    assert hull_distance(corners, none, corners + np.array([0.9, 0.3, -0.2]), none) <= 0.0


def test_what_is_a_capsule_is_fitted_exactly_and_the_stated_errors_are_the_errors():
    ends = np.array([[0.0, 0.1, 0.0], [0.3, 0.1, 0.2]])
    capsule = fit_capsules(ends, np.full(2, 0.05))
    assert capsule.missed == capsule.added == 0.0
    assert np.array_equal(np.concatenate([capsule.start, capsule.end]), ends)
    half = np.array([0.15, 0.05, 0.03])
    box = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    found = fit_capsules(box, np.zeros(8))
    rng = np.random.default_rng(0)
    x = rng.uniform(-half, half, size=(20000, 3))
    face = rng.integers(3, size=len(x))
    x[np.arange(len(x)), face] = half[face] * rng.choice([-1, 1], size=len(x))
    assert 0.9 * found.missed < _out_of(found, x).max() < 1.1 * found.missed < 0.012
    # The other way, from points on the capsules.
    t, d = rng.uniform(size=(20000, 1)), rng.normal(size=(20000, 3))
    k = rng.integers(len(found.radius), size=len(t))
    d *= found.radius[k, None] / np.linalg.norm(d, axis=1)[:, None]
    y = found.start[k] + rng.choice([0, 1], size=len(t))[:, None] * (found.end - found.start)[k] + d
    over = np.linalg.norm(np.maximum(np.abs(y) - half, 0.0), axis=1).max()
    assert 0.9 * found.added < over < 1.1 * found.added < 0.04


def _out_of(capsules, x):
    """How far points are outside all capsules [m]."""
    found = []
    for a, b, r in zip(capsules.start, capsules.end, capsules.radius, strict=True):
        t = np.clip((x - a) @ (b - a) / max((b - a) @ (b - a), 1e-12), 0.0, 1.0)
        found.append(np.linalg.norm(x - a - t[:, None] * (b - a), axis=1) - r)
    return np.min(found, axis=0)


def test_no_part_of_a_plate_is_left_out_between_the_capsules_that_stand_for_it():
    """Two rods along its edges would have nearly the same hull; what lies between them counts."""
    plate = np.array([0.1, 0.03, 0.005]) * [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    found = fit_capsules(plate, np.zeros(8))
    x = np.random.default_rng(1).uniform(-1, 1, size=(2000, 3)) * [0.1, 0.03, 0.005]
    assert _out_of(found, x).max() < 1.1 * found.missed + 1e-4 < 6e-3


def test_points_on_a_surface_are_where_it_is():
    half = np.array([0.3, 0.05, 0.1])
    box = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) + [1.0, 0.0, 0.0]
    x = np.abs(surface(box, np.zeros(8), 500) - [1.0, 0.0, 0.0]) / half
    assert x.max(axis=1) == pytest.approx(1.0, abs=1e-9)
    # A sphere: planes of a lattice are a little outside.
    ball = surface(np.zeros((1, 3)), np.array([0.2]), 500)
    assert np.linalg.norm(ball, axis=1) == pytest.approx(0.2, rel=3e-3)
