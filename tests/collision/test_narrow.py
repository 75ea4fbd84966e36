"""The narrow phase against dense oracles that share nothing with it, and by its laws."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scenes import (
    NARROW,
    arrays,
    box,
    capsule,
    cone,
    contacts,
    cylinder,
    ellipsoid,
    flat,
    hull,
    plane,
    sphere,
    turned,
)
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from robokit.collision.fields import SHAPES
from robokit.collision.gjk import nearest_sets
from robokit.collision.narrow import AS_DEEP
from robokit.collision.support import SUPPORTS, vector
from robokit.engine.loops.fields import kernel_of, real, whole
from robokit.spatial import Vector3
from robokit.spatial.control_flow import for_range, zeros
from robokit.spatial.scalars import sqrt, where

HERE = np.eye(3), np.zeros(3)
LYING = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])  # turns z to x

ANY = [
    sphere(0.4),
    capsule(0.2, 0.5),
    box(0.5, 0.3, 0.4),
    cylinder(0.4, 0.5),
    cone(0.5, 0.4),
    ellipsoid(0.5, 0.3, 0.4),
    hull(np.random.default_rng(0).normal(size=(12, 3)) * 0.4),
]


def at(*p: float, R: Any = None) -> tuple[np.ndarray, np.ndarray]:
    return np.eye(3) if R is None else R, np.array(p, float)


def random_poses(seed: int, reach: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    d = rng.normal(size=3)
    p = rng.normal(size=3)
    return (turned(2 * seed), p), (turned(2 * seed + 1), p + d * rng.uniform(0.0, reach) / np.linalg.norm(d))


def deepest(found: dict) -> tuple[float, np.ndarray]:
    k = np.argmin(found["gap"])
    return found["gap"][k], found["normal"][k]


def core(s: dict, pose: Any) -> np.ndarray:
    return s["corners"] @ pose[0].T + pose[1]


def dense_distance(a: dict, b: dict, P: Any, Q: Any) -> float:
    """Of cores with corners: from all differences of corners."""
    w = (core(a, P)[:, None] - core(b, Q)[None]).reshape(-1, 3)
    radii = a.get("radius", 0.0) + b.get("radius", 0.0)
    try:
        inner = ConvexHull(w).equations[:, 3].max()
    except Exception:  # flat: it has no inside
        inner = 1.0
    if inner <= 0.0:
        return inner - radii
    scale = 1e6 * np.abs(w).max()  # the weights sum to 1 by a heavy row
    shares, _ = nnls(np.vstack([w.T, np.full(len(w), scale)]), np.array([0, 0, 0, scale]))
    return float(np.linalg.norm(shares @ w / shares.sum())) - radii


def support(s: dict, d: np.ndarray) -> np.ndarray:
    if "corners" in s:
        return s["corners"][np.argmax(s["corners"] @ d)]
    r, h, last = s["size"]
    if s["kind"] == ellipsoid(1, 1, 1)["kind"]:
        w = np.array([r, h, last]) * d
        return np.array([r, h, last]) * w / np.linalg.norm(w)
    u = np.array([d[0], d[1], 0.0]) / (np.hypot(d[0], d[1]) or 1.0)  # the middle of an end that d faces
    ends = [r * u + [0, 0, -h], r * u + [0, 0, h] if s["kind"] == cylinder(1, 1)["kind"] else [0, 0, h]]
    return np.array(max(ends, key=lambda p: np.dot(p, d)))


def separation(a: dict, b: dict, P: Any, Q: Any, n: np.ndarray) -> float:
    """How far b is from a along n: at most the distance, and the depth is at most minus that."""
    far_a = P[0] @ support(a, P[0].T @ n) + P[1]
    near_b = Q[0] @ support(b, -Q[0].T @ n) + Q[1]
    return float(n @ (near_b - far_a)) - a.get("radius", 0.0) - b.get("radius", 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_distance_and_depth_of_hulls_are_those_of_all_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = [box(*rng.uniform(0.2, 1, 3)) for _ in range(3)]
    pool += [hull(rng.normal(size=(n, 3)) * 0.5) for n in (5, 8, 16, 24)]
    pool += [capsule(0.1, 0.5), sphere(0.3)]
    errors, inside = [], 0
    for k in range(40):
        a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
        P, Q = random_poses(100 * seed + k, 2.0)
        wanted, (gap, n) = dense_distance(a, b, P, Q), deepest(contacts(a, b, P, Q))
        errors += [gap - wanted, separation(a, b, P, Q, n) - wanted]
        inside += wanted < 0
    assert np.abs(errors).max() < 1e-9
    assert 5 < inside < 35


@pytest.mark.parametrize("side", [1.0, 20.0, 1000.0])
def test_a_ball_touches_a_long_edge_where_it_is(side: float) -> None:
    """A corner that GJK found twice made a triangle without area: of 20 m the place was up to 8 m off."""
    rng, radius = np.random.default_rng(0), 0.05
    slab = box(0.5 * side, 0.5 * side, 0.25)
    for _ in range(40):
        y, turn = rng.uniform(-0.5, 0.5) * side, rng.uniform(0.0, 0.5 * np.pi)
        edge, n = np.array([0.5 * side, y, 0.25]), np.array([np.sin(turn), 0.0, np.cos(turn)])
        found = contacts(slab, sphere(radius), HERE, at(*(edge + radius * n)))
        np.testing.assert_allclose(found["place"], [edge], rtol=0.0, atol=1e-10 * side)
        np.testing.assert_allclose(found["gap"], 0.0, rtol=0.0, atol=1e-15 * side)


def test_a_ball_in_the_middle_of_a_capsule_presses_where_it_is() -> None:
    """The difference of the cores is a segment through the origin: the place was the capsule's end."""
    P = turned(3), np.array([0.2, -0.1, 0.4])
    ball = P[0] @ [0.0, 0.0, 0.3] + P[1]
    found = contacts(capsule(0.2, 1.0), sphere(0.1), P, (np.eye(3), ball))
    assert found["gap"] == pytest.approx(-0.3, abs=1e-12)
    np.testing.assert_allclose(found["place"], ball + 0.05 * found["normal"], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_ball_in_the_middle_of_a_cone_has_the_depth_of_its_side(seed: int) -> None:
    """All around the normals are as deep: the depth was that of the facets of 100 directions, off by 3e-4."""
    rng = np.random.default_rng(seed)
    radius, half = rng.uniform(0.2, 0.5), rng.uniform(0.8, 1.2)
    P = turned(seed), rng.normal(size=3)
    depth = 0.1 + radius * half / np.hypot(radius, 2.0 * half)  # of the side below the middle of the axis
    gap, _ = deepest(contacts(cone(radius, half), sphere(0.1), P, (np.eye(3), P[1])))
    assert gap == pytest.approx(-depth, abs=1e-12)


@pytest.mark.parametrize("i", range(4))
def test_nearest_points_are_those_of_the_normal(i: int) -> None:
    """Both sides are as deep as each other: the normal was at times that of one, the points of the other."""
    thing = [sphere(0.1), cylinder(0.1, 0.6), box(0.5, 0.3, 0.4), box(0.5, 0.3, 0.4)][i]
    egg = ellipsoid(*[(0.47, 0.43, 0.1), (0.5, 0.8, 0.02), (0.5, 0.8, 0.02), (0.5, 0.3, 0.1)][i])
    for seed in range(60):
        P, Q = (turned(2 * seed), np.zeros(3)), (turned(2 * seed + 1), np.zeros(3))
        found = contacts(egg, thing, Q, P)
        k = np.argmin(found["gap"])
        gap, n, place = (found[name][k] for name in ("gap", "normal", "place"))
        # A curved shape has one point that is farthest along a direction.
        np.testing.assert_allclose(
            place - 0.5 * gap * n, Q[0] @ support(egg, Q[0].T @ n), rtol=0.0, atol=1e-6
        )


@pytest.mark.parametrize("seed", range(3))
def test_no_direction_separates_curved_shapes_more(seed: int) -> None:
    rng, seen = np.random.default_rng(seed), [0, 0]
    for k in range(60):
        i, j = rng.integers(0, len(ANY), 2)
        if i < 2 or j < 2:  # spheres and capsules: closed forms below
            continue
        P, Q = random_poses(100 * seed + k, 1.6)
        gap, n = deepest(contacts(ANY[i], ANY[j], P, Q))
        assert abs(separation(ANY[i], ANY[j], P, Q, n) - gap) < 1e-9
        seen[int(gap < 0)] += 1
        for size in (1e-2, 1e-3, 1e-4):
            for _ in range(8):
                d = n + size * rng.normal(size=3)
                other = separation(ANY[i], ANY[j], P, Q, d / np.linalg.norm(d))
                assert other < gap + 2e-7, (i, j, k)
    assert min(seen) > 3


def test_normals_of_curved_shapes_hardly_change_where_the_shapes_hardly_move() -> None:
    rng, seen = np.random.default_rng(3), [0, 0]
    curved = [k for k, s in enumerate(ANY) if "size" in s]
    for k in range(150):
        i, j = (int(rng.choice(of)) for of in (curved, range(len(ANY)))[:: rng.choice((-1, 1))])
        P, Q = random_poses(1000 + k, 1.6)
        gap, n = deepest(contacts(ANY[i], ANY[j], P, Q))
        moved = Q[0], Q[1] + 1e-11 * rng.choice((-1.0, 1.0), 3)
        change = deepest(contacts(ANY[i], ANY[j], P, moved))[1] - n
        assert np.abs(change).max() < 1e-8, (i, j, k)
        seen[int(gap < 0)] += 1
    assert min(seen) > 30


@pytest.mark.parametrize("i", range(len(ANY)))
def test_an_ellipsoid_has_exact_normals_at_its_equator(i: int) -> None:
    """Its supports there are on both sides of z = 0."""
    egg, other, rng = ellipsoid(0.5, 0.3, 0.4), ANY[i], np.random.default_rng(i)
    for k, gap in enumerate((-0.04, 0.1) * 8):
        angle, R = rng.uniform(0.0, 2.0 * np.pi), turned(100 * i + k)
        n = np.array([np.cos(angle), np.sin(angle), 0.0])
        p = support(egg, n) - R @ support(other, -R.T @ n) + n * (other.get("radius", 0.0) + gap)
        found, normal = deepest(contacts(egg, other, HERE, (R, p)))
        assert abs(found - gap) < 1e-12 and np.abs(normal - n).max() < 1e-12, (k, gap)


def test_a_new_kind_is_its_support_function_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the manual says in "Adding your own contact model": here |x/a|^3 + |y/b|^3 + |z/c|^3 <= 1."""

    def farthest(axes: Any, d: Any) -> Vector3:
        across = [abs(a * x) for a, x in zip(axes, d, strict=True)]
        k = sum(x * sqrt(x) for x in across) ** (-1.0 / 3.0)
        each = zip(axes, d, across, strict=True)
        return Vector3(*(where(x < 0.0, -a, a) * sqrt(s) * k for a, x, s in each))

    kind, size, rng = 1 + max(SUPPORTS), (0.5, 0.3, 0.4), np.random.default_rng(5)
    monkeypatch.setitem(SUPPORTS, kind, farthest)
    for gap in (-0.04, 0.1, 0.3) * 4:
        R, n = turned(len(ANY)), rng.normal(size=3)
        n /= np.linalg.norm(n)
        p = R @ np.array([*farthest(Vector3(*size), Vector3(*(R.T @ n)))]) + n * (0.4 + gap)
        found, normal = deepest(
            contacts({"kind": kind, "size": size}, sphere(0.4), at(0, 0, 0, R=R), at(*p), engine="python")
        )
        assert abs(found - gap) < 1e-12 and np.abs(normal - n).max() < 1e-9, gap


def test_sphere_and_cylinder() -> None:
    s, c = sphere(0.2), cylinder(0.5, 1.0)
    for place, gap, n in [
        ((1.0, 0.0, 0.3), 0.3, (1, 0, 0)),
        ((0.0, 0.2, 1.5), 0.3, (0, 0, 1)),
        ((0.5 + 0.3, 0.0, 1.0 + 0.4), 0.3, (0.6, 0, 0.8)),
        ((0.4, 0.0, 0.3), -0.3, (1, 0, 0)),
        ((0.1, 0.0, 0.9), -0.3, (0, 0, 1)),
    ]:
        found, normal = deepest(contacts(c, s, HERE, at(*place)))
        assert abs(found - gap) < 1e-9
        assert np.allclose(normal, n, atol=1e-4)


@pytest.mark.parametrize("i", range(len(ANY)))
def test_swapped_shapes_have_mirrored_contacts(i: int) -> None:
    for j in range(len(ANY)):
        P, Q = random_poses(7 * i + j, 0.9)
        there, back = contacts(ANY[i], ANY[j], P, Q, 0.05), contacts(ANY[j], ANY[i], Q, P, 0.05)
        assert bool(len(there["gap"])) == bool(len(back["gap"]))
        if "corners" in ANY[i] and "corners" in ANY[j]:
            assert np.allclose(np.sort(there["gap"]), np.sort(back["gap"]), atol=1e-9)
        if not len(there["gap"]):
            continue
        (gap, n), (other, m) = deepest(there), deepest(back)
        assert abs(gap - other) < 1e-8
        if gap > 1e-3 or j in (2, 6):
            assert np.allclose(n, -m, atol=1e-4)


@pytest.mark.parametrize("tilt", [0.0, 1e-5, 0.01, 0.5])
def test_segments_side_by_side_have_the_same_contacts_from_both_sides(tilt: float) -> None:
    """Neither of them is the reference: places were 1 % of a size apart where one was chosen by its order."""
    rods = [capsule(0.2, 0.5), capsule(0.3, 0.5), cylinder(0.2, 0.6)]
    for i, a in enumerate(rods):
        for b in rods[i:]:
            for along in (0.0, 0.37, 1.05):
                P, Q = HERE, at(0.0, 0.41, along, R=about_y(0.3 * tilt) @ about_x(tilt))
                there, back = contacts(a, b, P, Q, 0.1), contacts(b, a, Q, P, 0.1)
                there, back = (
                    np.column_stack([found["place"], found["gap"], sign * found["normal"]])
                    for found, sign in ((there, 1.0), (back, -1.0))
                )
                assert len(there) == len(back)
                for each in there:
                    assert np.abs(back - each).max(axis=1).min() < 1e-9


def about_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def about_y(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


@pytest.mark.parametrize("i", range(len(ANY)))
def test_contacts_move_with_both_shapes(i: int) -> None:
    E, r = turned(99), np.array([3.0, -2.0, 1.0])
    for j in range(len(ANY)):
        P, Q = random_poses(11 * i + j, 0.9)
        here = contacts(ANY[i], ANY[j], P, Q, 0.05)
        there = contacts(ANY[i], ANY[j], *((E @ R, E @ p + r) for R, p in (P, Q)), 0.05)
        apart = np.linalg.norm(here["place"][:, None] - here["place"][None], axis=2) > 1e-5
        alone = apart.sum(axis=0) == len(apart) - 1  # of two at one place it is chance which corner each is
        assert list(here["feature"][alone]) == list(there["feature"][alone])
        assert np.allclose(here["gap"], there["gap"], atol=1e-9)
        assert np.allclose(here["place"] @ E.T + r, there["place"], atol=1e-5)


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("i", range(len(ANY)))
def test_contacts_scale_with_lengths(i: int, size: float) -> None:
    def scaled(s: dict) -> dict:
        return s | {
            "corners": np.asarray(s.get("corners", np.zeros((0, 3)))) * size,
            "radius": s.get("radius", 0.0) * size,
            "size": tuple(size * k for k in s.get("size", (0.0,) * 3)),
        }

    for j in range(len(ANY)):
        (R, p), (S, q) = random_poses(13 * i + j, 0.9)
        one = contacts(ANY[i], ANY[j], (R, p), (S, q), 0.05)
        other = contacts(scaled(ANY[i]), scaled(ANY[j]), (R, size * p), (S, size * q), 0.05 * size)
        assert list(one["feature"]) == list(other["feature"])
        assert np.allclose(one["gap"], other["gap"] / size, atol=1e-9)
        assert np.allclose(one["place"], other["place"] / size, atol=1e-5)


def test_machine_code_is_plain_python() -> None:
    for i in range(len(ANY)):
        P, Q = random_poses(i, 0.6)
        a, b = (contacts(ANY[i], ANY[-1], P, Q, 0.05, engine=engine) for engine in (None, "python"))
        assert list(a["feature"]) == list(b["feature"])
        assert np.allclose(a["gap"], b["gap"], atol=1e-12)


# ---- manifolds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [-0.02, 0.0, 1e-9, 0.02])
def test_flush_faces_have_the_corners_of_their_overlap(gap: float) -> None:
    found = contacts(box(1, 1, 1), box(0.5, 0.5, 0.5), HERE, at(0.7, 0.2, 1.5 + gap), 0.1)
    assert np.allclose(found["gap"], gap, atol=1e-12)
    corners = {(x, y) for x in (0.2, 1.0) for y in (-0.3, 0.7)}
    assert {(round(x, 9), round(y, 9)) for x, y, _ in found["place"]} == corners
    assert np.allclose(found["place"][:, 2], 1 + gap / 2)
    assert np.allclose(found["normal"], [0, 0, 1])


def face_along(s: dict, pose: Any, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners and normal of the face that faces n most."""
    normal, members = max(s["faces"], key=lambda face: float(pose[0] @ face[0] @ n))
    return s["corners"][members] @ pose[0].T + pose[1], pose[0] @ normal


def overlap(p: np.ndarray, q: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Corners of the overlap of two convex polygons seen along n, projected along it."""
    flat = np.eye(3) - np.outer(n, n)
    found = []
    for each, other in ((p, q), (q, p)):
        along = np.roll(other, -1, axis=0) - other
        beside = np.einsum("ijk,jk->ij", each[:, None] - other[None], np.cross(along, n))
        found += [x for x, off in zip(each, beside, strict=True) if (off <= 0.0).all() or (off >= 0.0).all()]
    for a, b in zip(p, np.roll(p, -1, axis=0), strict=True):
        for c, d in zip(q, np.roll(q, -1, axis=0), strict=True):
            s, t, _ = np.linalg.solve(np.column_stack([b - a, c - d, n]), c - a)
            found += [a + s * (b - a)] if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0 else []
    return np.array(found) @ flat


@pytest.mark.parametrize("seed", range(3))
def test_contacts_of_polytopes_are_the_corners_of_the_overlap_of_their_faces(seed: int) -> None:
    rng, seen = np.random.default_rng(seed), 0
    for k in range(30):
        a, b = (box(*rng.uniform(0.2, 1, 3)), hull(rng.normal(size=(12, 3)) * 0.5))[:: (-1) ** k]
        P, Q = random_poses(1000 * seed + k, 1.5)
        found = contacts(a, b, P, Q)
        n = found["normal"][0]
        (p, m), (q, o) = face_along(a, P, n), face_along(b, Q, -n)
        clipped = found["feature"] != 3  # else the nearest points
        places, expected = found["place"][clipped] @ (np.eye(3) - np.outer(n, n)), overlap(p, q, n)
        if not len(places) and not len(expected):
            continue
        apart = np.linalg.norm(places[:, None] - expected[None], axis=2)
        assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 1e-4
        # Along n the gap is that of the planes of both faces.
        at_places = found["place"][clipped]
        heights = [((corner[0] - at_places) @ d) / (d @ n) for corner, d in ((p, m), (q, o))]
        np.testing.assert_allclose(found["gap"][clipped], heights[1] - heights[0], rtol=0.0, atol=1e-9)
        seen += len(places)
    assert seen > 80


def test_equal_boxes_keep_their_corners_under_noise() -> None:
    rng, cube = np.random.default_rng(0), box(0.5, 0.5, 0.5)
    features = {
        tuple(
            sorted(contacts(cube, cube, HERE, at(*(rng.normal(size=3) * 1e-15 + [0, 0, 1])), 0.1)["feature"])
        )
        for _ in range(20)
    }
    assert len(features) == 1


def test_turned_squares_meet_in_an_octagon() -> None:
    c = np.cos(np.pi / 4)
    R = np.array([[c, -c, 0], [c, c, 0], [0, 0, 1]])
    found = contacts(box(1, 1, 1), box(1, 1, 1), HERE, at(0, 0, 2, R=R), 0.1)
    assert len(found["gap"]) == 8
    assert np.allclose(np.linalg.norm(found["place"][:, :2], axis=1), np.hypot(1, np.sqrt(2) - 1))
    assert len(set(found["feature"])) == 8


def test_crossed_edges_meet_in_a_point() -> None:
    c = np.cos(np.pi / 4)
    up = np.array([[1, 0, 0], [0, c, -c], [0, c, c]])  # an edge along x on top
    down = np.array([[c, 0, c], [0, 1, 0], [-c, 0, c]])  # an edge along y below
    for gap in (-0.01, 0.01):
        found = contacts(
            box(1, 1, 1), box(1, 1, 1), at(0, 0, 0, R=up), at(0.3, 0.2, 2 * np.sqrt(2) + gap, R=down), 0.05
        )
        k = np.argmin(found["gap"])
        assert abs(found["gap"][k] - gap) < 1e-12
        assert np.allclose(found["normal"], [0, 0, 1], atol=1e-12)
        assert np.allclose(found["place"][k], [0.3, 0.0, np.sqrt(2) + gap / 2], atol=1e-9)
        assert found["feature"][k] % 4 == 2


def test_many_sided_faces_touch_at_all_corners() -> None:
    t = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    disc = hull(np.array([[np.cos(a), np.sin(a), z] for a in t for z in (-0.1, 0.1)]))
    found = contacts(disc, box(2, 2, 0.5), HERE, at(0, 0, 0.6), 0.05)
    assert len(found["gap"]) == 24
    assert np.allclose(np.linalg.norm(found["place"][:, :2], axis=1), 1.0)
    assert len(set(found["feature"])) == len(found["gap"])


def test_capsule_lies_on_a_face_by_two_points() -> None:
    found = contacts(box(1, 1, 1), capsule(0.1, 0.5), HERE, at(0.2, 0.3, 1.09, R=LYING), 0.05)
    assert np.allclose(sorted(found["place"][:, 0]), [-0.3, 0.7])
    assert np.allclose(found["gap"], -0.01)
    assert np.allclose(found["place"][:, 2], 0.995)


def test_parallel_capsules_touch_at_two_points_and_crossed_ones_at_one() -> None:
    rod = capsule(0.1, 0.5)
    found = contacts(rod, rod, HERE, at(0.19, 0, 0.3), 0.05)
    assert np.allclose(sorted(found["place"][:, 2]), [-0.2, 0.5])
    assert np.allclose(found["gap"], -0.01)
    crossed = contacts(rod, rod, HERE, at(0.0, 0.19, 0.3, R=LYING), 0.05)
    assert len(crossed["gap"]) == 1
    assert np.allclose(crossed["place"], [[0, 0.095, 0.3]])


def test_nearly_parallel_capsules_change_smoothly() -> None:
    rod, last = capsule(0.1, 0.5), None
    for angle in np.linspace(0.0, 0.3, 31):
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        found = contacts(rod, rod, HERE, at(0.19, 0, 0, R=R), 0.05)
        force = np.sum(0.05 - found["gap"]), np.min(found["gap"])
        assert abs(force[1] + 0.01) < 1e-9
        if last is not None:
            assert np.abs(np.sort(found["gap"])[0] - last) < 1e-8
        last = np.sort(found["gap"])[0]


def test_capsule_in_a_groove_touches_both_sides_at_both_ends() -> None:
    rod, wall = capsule(0.1, 0.4), box(1, 1, 0.2)
    sides = []
    for sign in (-1, 1):
        c, s = np.cos(0.5), sign * np.sin(0.5)
        R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
        sides.append((R, -R @ np.array([0, 0, 0.3])))
    along_y = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    for pose in sides:
        found = contacts(wall, rod, pose, at(0, 0, 0, R=along_y), 0.01)
        assert len(found["gap"]) == 2
        assert np.allclose(found["gap"], 0.0, atol=1e-12)
        assert np.allclose(sorted(found["place"][:, 1]), [-0.4, 0.4])


# ---- planes and rims -----------------------------------------------------------------------------------


def test_every_corner_meets_a_plane() -> None:
    R = turned(3)
    found = contacts(plane(), ANY[6], at(0, 0, 0.1, R=R), at(0.2, 0.1, 0), 10.0)
    heights = ((ANY[6]["corners"] + [0.2, 0.1, 0]) - [0, 0, 0.1]) @ R[:, 2]
    assert np.allclose(found["gap"], heights)
    assert np.allclose(found["normal"], R[:, 2])
    turned_round = contacts(ANY[6], plane(), at(0.2, 0.1, 0), at(0, 0, 0.1, R=R), 10.0)
    assert np.allclose(turned_round["gap"], heights)
    assert np.allclose(turned_round["place"], found["place"])
    assert np.allclose(turned_round["normal"], -R[:, 2])


@pytest.mark.parametrize(
    "s", [ANY[0], ANY[3], ANY[4], ANY[5]], ids=["sphere", "cylinder", "cone", "ellipsoid"]
)
def test_lowest_point_of_round_shapes_meets_a_plane(s: dict) -> None:
    for seed in range(10):
        P, Q = random_poses(seed, 1.0)
        gap, n = deepest(contacts(plane(), s, P, Q, 10.0))
        lowest = P[0][:, 2] @ (Q[0] @ support(s, -Q[0].T @ P[0][:, 2]) + Q[1] - P[1]) - s.get("radius", 0.0)
        assert abs(gap - lowest) < 1e-9
        assert np.allclose(n, P[0][:, 2])


@pytest.mark.parametrize("ground", [plane(), box(2, 2, 1)], ids=["plane", "box"])
def test_a_can_stands_and_lies(ground: dict) -> None:
    floor = at(0, 0, 0 if "corners" not in ground else -1)
    standing = contacts(ground, cylinder(0.3, 0.5), floor, at(0, 0, 0.499), 0.05)
    assert len(standing["gap"]) >= 4
    assert np.allclose(standing["gap"], -0.001, atol=1e-9)
    assert np.allclose(standing["place"][:, :2].mean(0), 0.0, atol=1e-12)
    lying = contacts(ground, cylinder(0.3, 0.5), floor, at(0.1, 0.2, 0.299, R=LYING), 0.05)
    assert np.allclose(sorted(lying["place"][:, 0]), [-0.4, 0.6])
    assert np.allclose(lying["gap"], -0.001)


@pytest.mark.parametrize("ground", [plane(), box(2, 2, 1)], ids=["plane", "box"])
def test_a_wheel_has_no_bumps(ground: dict) -> None:
    floor = at(0, 0, 0 if "corners" not in ground else -1)
    for angle in np.linspace(0, 7, 50):
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ LYING
        found = contacts(ground, cylinder(0.3, 0.1), floor, at(0, 0, 0.299, R=R), 0.02)
        assert np.allclose(found["gap"], -0.001, atol=1e-11)
        assert np.allclose(sorted(found["place"][:, 0]), [-0.1, 0.1])
        assert np.allclose(found["place"][:, 1], 0.0, atol=1e-6)
        assert len(set(found["feature"])) == 2


# ---- traps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", range(len(ANY)))
def test_coincident_centres(i: int) -> None:
    found = contacts(ANY[i], ANY[i], HERE, HERE, 0.1)
    gap, n = deepest(found)
    assert np.isfinite(found["place"]).all()
    assert abs(np.linalg.norm(n) - 1) < 1e-12
    assert gap < -0.3 if i not in (1, 6) else gap <= -0.399 or i == 6


@pytest.mark.parametrize("i", range(len(ANY)))
@pytest.mark.parametrize("gap", [0.0, 1e-15, -1e-15, 1e-12, -1e-12, 1e-9, -1e-9])
def test_shapes_that_just_touch_are_not_deep(i: int, gap: float) -> None:
    """Nor are they farther apart than what a contact may be higher than the nearest points, AS_DEEP of an
    edge of these shapes: at the rim of a cone it is as high as the direction is off.
    """
    for j in range(len(ANY)):
        for seed in range(3):
            R, S, n = turned(20 * i + seed), turned(20 * j + seed + 1), turned(50 + seed)[:, 0]
            radii = ANY[i].get("radius", 0.0) + ANY[j].get("radius", 0.0)
            p = R @ support(ANY[i], R.T @ n) - S @ support(ANY[j], -S.T @ n) + n * (gap + radii)
            least, _ = deepest(contacts(ANY[i], ANY[j], at(0, 0, 0, R=R), (S, p), 0.01))
            sharp = "corners" in ANY[i] and "corners" in ANY[j]
            deeper, higher = (1e-12, 1e-12) if sharp else (3e-10, 2.0 * AS_DEEP)
            assert gap - deeper < least < abs(gap) + higher


def test_thin_plates_do_not_fall_through() -> None:
    plate = box(1, 1, 1e-3)
    for z in (2.1e-3, 1.9e-3, 1e-4):
        gap, n = deepest(contacts(plate, plate, HERE, at(0.3, 0.2, z), 0.01))
        assert abs(gap - (z - 2e-3)) < 1e-12
        assert np.allclose(n, [0, 0, 1], atol=1e-9)


def test_degenerate_hulls() -> None:
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    sheet = flat(square, [((0, 0, 1), [0, 1, 2, 3]), ((0, 0, -1), [3, 2, 1, 0])])
    found = contacts(sheet, box(0.5, 0.5, 0.5), HERE, at(0.2, 0.1, 0.5), 0.05)
    assert np.allclose(found["gap"], 0.0, atol=1e-12)
    assert len(found["gap"]) == 4
    upright = contacts(box(2, 2, 1), sheet, at(0, 0, -1), at(0, 0, 1.0, R=LYING), 0.05)
    assert np.allclose(sorted(upright["place"][:, 1]), [-1, 1])
    assert np.allclose(upright["gap"], 0.0, atol=1e-12)
    stick = flat([[0, 0, -1], [0, 0, 1]], [])
    lying = contacts(box(2, 2, 1), stick, at(0, 0, -1), at(0, 0, 0.01, R=LYING), 0.05)
    assert np.allclose(lying["gap"], 0.01, atol=1e-12)
    assert np.allclose(sorted(lying["place"][:, 0]), [-1, 1])


def test_a_warm_direction_changes_no_result() -> None:
    rng = np.random.default_rng(0)
    for k in range(30):
        i, j = rng.integers(0, len(ANY), 2)
        P, Q = random_poses(k, 1.2)
        d = rng.normal(size=3)
        cold, warm = (
            contacts(ANY[i], ANY[j], P, Q),
            contacts(ANY[i], ANY[j], P, Q, direction=d / np.linalg.norm(d)),
        )
        assert abs(deepest(cold)[0] - deepest(warm)[0]) < 1e-8


def test_features_tell_contacts_of_a_pair_apart() -> None:
    rng = np.random.default_rng(1)
    for k in range(60):
        i, j = rng.integers(1, len(ANY), 2)
        P, Q = random_poses(k, 0.7)
        found = contacts(ANY[i], ANY[j], P, Q, 0.2)
        assert len(set(found["feature"])) == len(found["feature"])
        assert (found["feature"] >= 0).all()


def test_features_last_while_a_box_slides() -> None:
    features = [
        set(contacts(box(1, 1, 1), box(0.3, 0.3, 0.3), HERE, at(x, 0.1, 1.29), 0.05)["feature"])
        for x in np.linspace(-0.6, 0.6, 20)
    ]
    assert all(a == b for a, b in pairwise(features))


@pytest.mark.parametrize("turn", [0.0, 0.02, 1.0], ids=["face on face", "slowly", "by jumps"])
def test_what_is_remembered_of_a_pair_changes_no_distance(turn: float) -> None:
    """Corners and directions of the last pose, near or not, lead to the distances that are found without."""
    rng = np.random.default_rng(7)
    many = [hull(0.3 * rng.normal(size=(n, 3))) for n in (6, 12, 24, 40)]
    choice = [box(0.2, 0.3, 0.1), box(0.2, 0.2, 0.2), *many, capsule(0.1, 0.3), sphere(0.2)]
    count = 40
    shapes = [choice[k] for k in rng.integers(2 if turn == 0.0 else len(choice), size=2 * count)]
    pairs = [(2 * k, 2 * k + 1) for k in range(count)]
    R = [np.eye(3) if turn == 0.0 else turned(k) for k in range(2 * count)]
    p = rng.normal(size=(2 * count, 3)) * np.tile([[0.0], [0.35]], (count, 1))
    remembered: dict = {}
    near = 0
    for _ in range(12):
        given = arrays(shapes, pairs, list(zip(R, p, strict=True)))
        cold = _least(NARROW(**given, far=np.array([0.05]), room=2048), count)
        found = NARROW(**given | remembered, far=np.array([0.05]), room=2048)
        remembered = {name: found[name] for name in ("near_direction", "near_corners")}
        warm = _least(found, count)
        assert np.array_equal(np.isfinite(warm), np.isfinite(cold))
        there = np.isfinite(cold)
        assert np.allclose(warm[there], cold[there], rtol=0.0, atol=1e-13)
        near += int(there.sum())
        R = [_turned_by(turn * w) @ r for w, r in zip(rng.normal(size=(2 * count, 3)), R, strict=True)]
        p = p + rng.normal(size=p.shape) * np.tile([[0.0], [max(0.01, 0.1 * turn)]], (count, 1))
    assert near > 150


def _least(found: dict, count: int) -> np.ndarray:
    """The least gap of each pair, infinite where it has no contact."""
    least, n = np.full(count, np.inf), int(found["found"][0])
    np.minimum.at(least, found["pair"][:n], found["gap"][:n])
    return least


def _turned_by(w: np.ndarray) -> np.ndarray:
    """A rotation about w by half a tangent of its length."""
    K = 0.5 * np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    return np.linalg.solve(np.eye(3) - K, np.eye(3) + K)


def _depth(x: Any) -> None:
    """Depth of two clouds of points, and how many supports it takes."""

    def outermost(points: Any, d: Any) -> Any:
        def better(k: Any, most: Any, at: Any) -> Any:
            h = vector(points, k).dot(d)
            return where(h > most, h, most), where(h > most, k, at)

        return for_range(x.n, better, -np.inf, 0)[1]

    def vertex(d: Any, row: Any) -> Any:
        x.supports[0] = x.supports[0] + 1
        d = Vector3(*d)
        i, j = outermost(x.A, d), outermost(x.B, -d)
        a, b = vector(x.A, i), vector(x.B, j) + Vector3(x.offset[0], x.offset[1], x.offset[2])
        for k, number in enumerate((*(a - b), *a, *b, 1.0 * i, 1.0 * j)):
            row[k] = number
        return (a - b).dot(d)

    numbers, direction = zeros(6, kind="integer"), zeros(3)
    direction[0] = 1.0
    nearest_sets(x, vertex, 1.0, direction, x.result, (lambda k, row: 0, numbers))


def test_depth_in_single_precision_takes_the_supports_of_double_precision():
    """A corner that no face sees, though it is beyond one, is asked for again until there is no place."""
    work = [a for a in SHAPES if a.name.startswith("inner_")]
    points = [real("A", "n", 3), real("B", "n", 3)]
    found = [real("result", 10, role="out"), whole("supports", 1, role="out")]
    kernel = kernel_of("depth", _depth, [*points, real("offset", 3), *work, *found])
    rng = np.random.default_rng(0)
    p = rng.normal(size=(60, 3))
    p /= np.linalg.norm(p, axis=1)[:, None]
    given = {"A": p * [1.0, 1.5, 0.7], "B": p * [0.6, 1.2, 1.0], "offset": rng.normal(size=(200, 3))}
    double, single = (kernel(**given, dtype=dtype) for dtype in ("float64", "float32"))
    np.testing.assert_allclose(single["result"][:, 0], double["result"][:, 0], atol=2e-5)
    assert double["supports"].max() < 60 and single["supports"].max() < 60


@pytest.mark.parametrize("kind", ["capsule", "edge"])
def test_a_ball_on_a_long_edge_has_its_place_in_single_precision(kind):
    """Where rounding hides that no corner is nearer, the last simplex was taken for one around the origin."""
    R = turned(3)
    long, along = (capsule(0.005, 6.0), R[:, 2]) if kind == "capsule" else (box(6.0, 0.1, 0.1), R[:, 0])
    out = R[:, 0] * 0.05 if kind == "capsule" else (R[:, 1] + R[:, 2]) * (0.1 + 0.05 / np.sqrt(2))
    gap = 0.05 - 0.02 - (0.005 if kind == "capsule" else 0.0)
    for s in np.linspace(-5.0, 5.0, 200):
        q = s * along + out
        found = contacts(long, sphere(0.02), (R, -q), at(0, 0, 0), dtype="float32")
        k = np.argmin(found["gap"])
        assert abs((found["place"][k] + q) @ along - s) < 5e-6 and abs(found["gap"][k] - gap) < 2e-6


def test_cylinders_side_by_side_have_two_contacts_and_the_exact_normal() -> None:
    """Their rims' differences are on a line: at some turns the normal was 1e-5 off, with a third contact."""
    rng, rod = np.random.default_rng(0), cylinder(0.1, 0.05)

    def about_z(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    for depth in (1e-3, 1e-4, 1e-5):
        for first, second in rng.uniform(-3.0, 3.0, (100, 2)):
            there = about_z(second), np.array([0.2 - depth, 0.0, 0.0])
            found = contacts(rod, rod, (about_z(first), np.zeros(3)), there, far=1e-2)
            np.testing.assert_allclose(found["gap"], [-depth, -depth], rtol=1e-9)
            np.testing.assert_allclose(found["normal"], [[1.0, 0.0, 0.0]] * 2, atol=1e-12)
