"""Candidates of the broad phase: kept for many steps, they lose no pair and change no contact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scenes import numbered

from robokit.collision.detect import DIRECTIONS, LISTED, contacts_at, detect_kernel
from robokit.collision.fields import CANDIDATES, CYLINDER, MEMORY
from robokit.collision.scene import _beside
from robokit.collision.shapes import PlacedCore, core_of, pair_arrays, plane_core, runs_of, shape_arrays
from robokit.collision.support import middle_of_part, part_of_cube
from robokit.model.geometry import Box, Capsule, Cylinder, Placement, Sphere
from robokit.spatial import Vector3

G, DT = 9.81, 4e-3


def crowd(count: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Bodies of two shapes, sizes 1 : 20, over a plane and two solids; half of the pairs are left out."""
    rng = np.random.default_rng(seed)
    still = [PlacedCore(plane_core(), 0, Placement())]
    still += [PlacedCore(core_of(Box((1.0, 1.0, 0.4)), 0.0), 0, Placement(position=np.array([x, 0.0, 0.1])))
              for x in (-0.7, 0.5)]  # fmt: skip
    moving = []
    for body in range(1, count + 1):
        size = float(10.0 ** rng.uniform(-1.6, -0.3))
        for geometry in (Box((size, 0.5 * size, 0.3 * size)), rng.choice(kinds(size))):
            place = Placement(position=size * rng.uniform(-0.3, 0.3, 3))
            moving.append(PlacedCore(core_of(geometry, 0.0), body, place))
    arrays = shape_arrays([*still, *moving])
    arrays |= _beside(arrays, [None] * len(arrays["shape_body"]))
    own = [(i, j) for i in range(1, count + 1) for j in range(i + 1, count + 1) if rng.uniform() < 0.5]
    places = np.vstack([np.zeros(3), rng.uniform((-1.0, -1.0, 0.0), (1.0, 1.0, 2.0), (count, 3))])
    return arrays | pair_arrays(arrays["shape_body"], len(still), runs_of(own)), places


def kinds(size: float) -> list[Any]:
    return [Sphere(0.4 * size), Capsule(0.2 * size, size), Cylinder(0.3 * size, 0.5 * size)]


def turned(w: np.ndarray) -> np.ndarray:
    """A rotation by the vector w."""
    angle = float(np.linalg.norm(w)) + 1e-300
    x, y, z = w / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def same(scene: dict[str, np.ndarray], one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """Pairs and gaps are the same; of round shapes, whose normals are known to 1e-5, the deepest ones are."""
    pairs, shapes = (one["contact_pair"], other["contact_pair"]), numbered(scene)
    assert set(pairs[0].tolist()) == set(pairs[1].tolist())
    for k in set(pairs[0].tolist()):
        gaps = [np.sort(each["contact_gap"][p == k]) for each, p in zip((one, other), pairs, strict=True)]
        turns = (scene["shape_kind"][[*shapes[k]]] == CYLINDER).any()
        gaps = [each[:1] for each in gaps] if turns else gaps
        np.testing.assert_allclose(*gaps, rtol=0.0, atol=2e-8 if turns else 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_contacts_are_those_of_all_pairs_however_long_the_candidates_are_kept(seed: int) -> None:
    """Bodies fly about, one of them fast; now and then they are somewhere else at once."""
    count, steps = 10, 120
    scene, p = crowd(count, seed)
    rng = np.random.default_rng(seed)
    R = np.array([np.eye(3), *(turned(rng.normal(size=3)) for _ in range(count))])
    w, u = rng.normal(size=(count + 1, 3)) * 3.0, rng.normal(size=(count + 1, 3))
    w[0] = u[0] = 0.0
    u[1] *= 10.0
    given = scene | {"gravity": np.array([0.0, 0.0, -G]), "dt": np.array([DT]), "origin": np.zeros(3)}
    given["seat"] = np.zeros((count + 1, 3))
    sizes = {"n_candidates": 512, "n_shapes": len(scene["shape_body"]), "n_near": 512}
    sizes["n_bodies"] = count + 1
    kept = {a.name: a.zeros(sizes) for a in (*CANDIDATES, *MEMORY)}
    kept["near_pair"][:] = -1
    made = np.zeros(steps, bool)
    touched = apart = 0
    for step in range(steps):
        if step == 70:
            p[1:] += rng.uniform(-0.5, 0.5, (count, 3))
        V = np.concatenate([w, u - np.cross(w, p)], axis=1)
        state = {"R": R.reshape(-1, 9), "p": p, "V": V}
        before = kept["ball_then"]
        found = detect_kernel()(**given, **state, **kept, n_contacts=512)
        kept = {name: found[name] for name in kept}
        apart += int(np.sum(kept["least_gap"][: kept["candidates"][0]] > 0.0))
        made[step] = (kept["ball_then"] != before).any()
        cold = contacts_at(scene, R, p, V, G, DT)
        n = found["counts"][0]
        same(scene, {name: found[name][:n] for name in ("contact_pair", "contact_gap")}, cold)
        touched += n
        p = p + DT * u
        R = np.array([turned(DT * each) @ r for each, r in zip(w, R, strict=True)])
    assert touched > 200 and apart > 1000  # some pairs touch, and gaps of others are known
    assert made[0] and made[70] and 3 < made.sum() < steps // 2


def test_a_direction_is_as_its_number_tells() -> None:
    d = np.random.default_rng(5).normal(size=(200, 3))
    for v in [*d / np.linalg.norm(d, axis=1)[:, None], *np.eye(3), *-np.eye(3)]:
        number = part_of_cube(Vector3(*v.tolist()), DIRECTIONS)
        assert 0 <= number < 2**31
        middle = middle_of_part(number, DIRECTIONS)
        assert part_of_cube(middle, DIRECTIONS) == number
        assert np.linalg.norm([*middle] - v) < 2.0 / DIRECTIONS


def found_of_balls(at: np.ndarray, places: int, room: int = 512) -> dict[str, np.ndarray]:
    """What is found of balls of radius 0.1 that all may meet, with so many places for contacts and pairs.

    ``room``: for candidates.
    """
    n = len(at)
    scene = shape_arrays([PlacedCore(core_of(Sphere(0.1), 0.0), 1 + k, Placement()) for k in range(n)])
    scene |= {"shape_beside": np.zeros((n, 3), np.int32), "beside": np.zeros(1, np.int32)}
    scene |= pair_arrays(scene["shape_body"], 0, np.array([(k, k + 1, n + 1) for k in range(1, n)]))
    sizes = {"n_candidates": room, "n_shapes": n, "n_bodies": n + 1, "n_near": places}
    kept = {a.name: a.zeros(sizes) for a in (*CANDIDATES, *MEMORY)}
    kept["near_pair"][:] = -1
    found = detect_kernel()(
        **scene, **kept, R=np.tile(np.eye(3).ravel(), (n + 1, 1)), p=np.vstack([np.zeros(3), at]),
        V=np.zeros((n + 1, 6)), seat=np.zeros((n + 1, 3)), origin=np.zeros(3),
        gravity=np.array([0.0, 0.0, -G]), dt=np.array([1e-3]), n_contacts=places,
    )  # fmt: skip
    return found | {"numbers": np.array([*numbered(scene)])}


def grid(side: int) -> np.ndarray:
    """Points of a cube, 1 apart."""
    return np.array([[i, j, k] for i in range(side) for j in range(side) for k in range(side)], float)


def test_of_many_balls_few_pairs_are_candidates() -> None:
    """300 balls in a grid of spaces of 3 radii."""
    found = found_of_balls(0.3 * grid(7)[:300], 8)
    assert found["counts"].tolist() == [0, 0, 0, 0]
    assert found["candidates"].tolist() == [0, 1]


def test_what_is_known_of_candidates_lies_in_their_order() -> None:
    """The last two of 300 balls are near: memory of one pair is written to."""
    at = 0.3 * grid(7)[:300]
    at[299] = at[298] + np.array([0.22, 0.0, 0.0])
    found = found_of_balls(at, 8)
    assert found["candidates"].tolist() == [1, 1]
    assert found["candidate_shapes"][0].tolist() == [298, 299]
    assert found["candidate"][0] == found["numbers"][-1]
    for name in ("candidate", "candidate_shapes", "least_gap", "apart_along", "apart_corners"):
        assert not found[name][1:].any()


def test_more_pairs_may_touch_than_are_listed_at_once() -> None:
    """64 balls overlap their neighbours in a grid: all 144 pairs have their contact, in their order."""
    at = 0.19 * grid(4)
    found = found_of_balls(at, 160)
    a, b = np.triu_indices(64, 1)
    expected = found["numbers"][np.linalg.norm(at[b] - at[a], axis=1) < 0.2]
    assert len(expected) == 144 > 4 * LISTED
    assert found["counts"][:2].tolist() == [144, 144]
    np.testing.assert_array_equal(found["contact_pair"][:144], expected)
    np.testing.assert_array_equal(found["near_pair"][:144], expected)
    np.testing.assert_allclose(found["contact_gap"][:144], -0.01, rtol=0.0, atol=1e-15)
    np.testing.assert_array_equal(found["numbers"][:63], np.arange(63))  # of the first ball with the others


def test_candidates_without_a_place_are_counted_and_looked_for_again() -> None:
    """Of 144 pairs there is place for 100: all others are missing, and nothing is taken to be known."""
    found = found_of_balls(0.19 * grid(4), 160, 100)
    near = found_of_balls(0.19 * grid(4), 160)["counts"][3]
    assert near >= 144
    assert found["counts"][2:].tolist() == [near - 100, near]
    assert found["candidates"].tolist() == [100, 0]
