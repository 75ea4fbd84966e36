"""Surfaces of a ground: distances, normals and velocities beside their definitions; wrong arguments."""

from __future__ import annotations

import math

import numpy as np
import pytest

import robokit as rk
from robokit.meshes.face_planes import face_planes
from robokit.model import Box, Capsule, Cylinder, Placement, Shape, Sphere
from robokit.sim.run.ground_gaps import gaps, ground_surfaces
from robokit.sim.touching.surfaces import deepest
from robokit.spatial import Vector3
from robokit.spatial.rotation import quat_wxyz_to_rotation

R = np.array(quat_wxyz_to_rotation([0.5, 0.1, -0.7, math.sqrt(1 - 0.25 - 0.01 - 0.49)]).rows)
PLACE = Placement(R, np.array([0.3, -0.2, 0.5]))
SOLIDS = {
    "box": Box((0.4, 0.6, 1.0)),
    "sphere": Sphere(0.4),
    "cylinder": Cylinder(0.3, 0.8),
    "capsule": Capsule(0.2, 0.5),
    "hull": np.array([[0.4, 0, 0], [0, 0.5, 0], [-0.3, -0.3, 0], [0, 0, 0.6], [0.1, 0, -0.4]]),
}


def touch(ground: rk.Ground, x: np.ndarray):
    """phi (n,), normals (n, 3) and friction at points (n, 3)."""
    found = deepest(ground_surfaces(ground), Vector3(*x.T), 0.0, 0.8)
    n = np.stack([np.broadcast_to(c, len(x)) for c in found.n], axis=1)
    return np.broadcast_to(found.phi, len(x)), n, found


def solid_ground(name: str) -> rk.Ground:
    return rk.Ground(plane=False, shapes=[rk.Solid(SOLIDS[name], PLACE)])


def samples(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Points on the surface of a solid, in the world."""
    x = rng.normal(size=(n, 3))
    shape = SOLIDS[name]
    if name == "box":
        half = 0.5 * np.array(shape.size)
        k = rng.integers(0, 3, n)
        x = rng.uniform(-1, 1, (n, 3)) * half
        x[np.arange(n), k] = np.where(rng.random(n) < 0.5, -1, 1) * half[k]
    elif name == "sphere":
        x *= shape.radius / np.linalg.norm(x, axis=1, keepdims=True)
    elif name == "capsule":
        x *= shape.radius / np.linalg.norm(x, axis=1, keepdims=True)
        x[:, 2] += 0.5 * shape.length * np.where(rng.random(n) < 0.5, -1, 1)
        middle = rng.random(n) < 0.4
        side = x[middle, :2] / np.linalg.norm(x[middle, :2], axis=1, keepdims=True)
        x[middle, :2] = shape.radius * side
        x[middle, 2] = rng.uniform(-0.5, 0.5, middle.sum()) * shape.length
    elif name == "cylinder":
        side = x[:, :2] / np.linalg.norm(x[:, :2], axis=1, keepdims=True)
        x[:, :2] = shape.radius * side
        x[:, 2] = rng.uniform(-0.5, 0.5, n) * shape.length
        cap = rng.random(n) < 0.5
        x[cap, :2] *= np.sqrt(rng.random((cap.sum(), 1)))
        x[cap, 2] = np.where(rng.random(cap.sum()) < 0.5, -0.5, 0.5) * shape.length
    return x @ R.T + PLACE.position


@pytest.mark.parametrize("name", ["box", "sphere", "cylinder", "capsule"])
def test_distances_are_those_to_the_nearest_point(name):
    rng = np.random.default_rng(0)
    on = samples(name, rng, 40_000)
    x = rng.uniform(-1.2, 1.2, (60, 3)) + PLACE.position
    phi, n, _ = touch(solid_ground(name), x)
    nearest = np.linalg.norm(on[None] - x[:, None], axis=2).min(axis=1)
    np.testing.assert_allclose(np.abs(phi), nearest, atol=0.03)
    assert (phi > 0.0).sum() > 20
    # The nearest point is where the normal leads.
    back, _, _ = touch(solid_ground(name), x - phi[:, None] * n)
    np.testing.assert_allclose(back, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", SOLIDS)
def test_a_normal_is_the_gradient_of_the_distance(name):
    x = np.random.default_rng(1).uniform(-0.9, 0.9, (200, 3)) + PLACE.position
    _, n, _ = touch(solid_ground(name), x)
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, rtol=1e-12)
    h = 1e-6
    ahead, behind = (
        np.stack([touch(solid_ground(name), x + s * h * e)[0] for e in np.eye(3)]) for s in (1, -1)
    )
    slope = ((ahead - behind) / (2 * h)).T
    good = np.abs(slope - n).max(axis=1) < 1e-4
    assert good.mean() > 0.98  # all but those that a step takes over an edge


def test_the_deepest_surface_wins_with_its_friction_and_velocity():
    belt = rk.Ground(
        velocity=(1.0, 0.0, 0.0), spin=2.0, shapes=[rk.Solid(Sphere(0.5), (2.0, 0.0, 0.0), friction=0.3)]
    )
    x = np.array([[0.0, 1.0, 0.1], [2.0, 0.0, 0.45], [2.0, 0.0, -0.2]])
    phi, n, found = touch(belt, x)
    np.testing.assert_allclose(phi, [0.1, -0.05, -0.3])
    np.testing.assert_allclose(n, [[0, 0, 1], [0, 0, 1], [0, 0, -1]], atol=1e-12)
    np.testing.assert_allclose(found.mu, [0.8, 0.3, 0.3])
    np.testing.assert_allclose(np.stack(list(found.u), axis=1), [[1 - 2.0, 0, 0], [0, 0, 0], [0, 0, 0]])


def test_a_turntable_turns_about_its_own_height_and_normal():
    ground = rk.Ground(height=0.7, tilt=0.3, spin=1.5)
    n = np.array(ground.up)
    x = np.array([[0.4, -0.3, 0.9]])
    _, _, found = touch(ground, x)
    expected = 1.5 * np.cross(n, x[0] - [0, 0, 0.7])
    np.testing.assert_allclose(np.array(list(found.u)).ravel(), expected, atol=1e-14)


def test_planes_of_few_points_are_their_hull_and_of_many_hold_them_to_the_error_said():
    cube = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    planes, error = face_planes(cube)
    assert len(planes) == 6 and error == 0.0
    many = np.random.default_rng(2).normal(size=(3000, 3))
    many *= 0.2 / np.linalg.norm(many, axis=1, keepdims=True)
    planes, error = face_planes(many)
    assert len(planes) == 64
    assert (many @ planes[:, :3].T - planes[:, 3]).max() < 1e-9
    # 64 even planes about a ball of 0.2 m stand out by 0.2 m (1 / cos 0.26 - 1) = 7 mm in their corners.
    assert 4e-3 < error < 2e-2
    assert face_planes(many, close=0.05)[1] <= 0.05


def test_gaps_take_the_radius_of_a_ball():
    ground = rk.Ground(tilt=math.radians(30.0), height=0.2)
    assert gaps(ground, [0.0, 0.0, 1.2], 0.1) == pytest.approx(math.cos(math.radians(30)) - 0.1)
    assert gaps(ground, [1.0, 5.0, 0.2 - math.tan(math.radians(30.0))]) == pytest.approx(0.0, abs=1e-12)


WRONG = [
    (lambda: rk.Ground(plane=False), "shapes or a terrain"),
    (lambda: rk.Ground(tilt=0.1, normal=(0, 0, 1)), "one of them"),
    (lambda: rk.Ground(tilt=1.57), "1.553 rad"),
    (lambda: rk.Ground(normal=(1, 0, 0)), "upward"),
    (lambda: rk.Ground(normal=(0, 0, 0)), "upward"),
    (lambda: rk.Ground(velocity=(0, 0, 1)), "along the plane"),
    (lambda: rk.Ground(velocity=(0, 1)), "three finite numbers"),
    (lambda: rk.Ground(spin=math.nan), "finite number"),
    (lambda: rk.Ground(shapes=Box((1, 1, 1))), "a list of rk.Solid"),
    (lambda: rk.Ground(shapes=[Box((1, 1, 1))]), "rk.Solid"),
    (lambda: rk.Ground(terrain=np.zeros((3, 3))), "rk.HeightField"),
    (lambda: rk.Ground(plane="no"), "True, False or None"),
    (lambda: rk.Ground(terrain=rk.HeightField(np.zeros((2, 2))), tilt=0.1), "plane=False"),
    (lambda: rk.Solid("box"), "robokit.model"),
    (lambda: rk.Solid(Box((1, 0, 1))), "edges > 0"),
    (lambda: rk.Solid(Sphere(-1.0)), "> 0"),
    (lambda: rk.Solid(Capsule(1.0, math.inf)), "finite number"),
    (lambda: rk.Solid(np.zeros((8, 3))), "do not span a solid"),
    (lambda: rk.Solid(np.zeros((8, 2))), r"\(n, 3\)"),
    (lambda: rk.Solid(Sphere(1.0), (0, 0)), "position"),
    (lambda: rk.Solid(Sphere(1.0), Placement(np.eye(3) * 2)), "not orthonormal"),
    (lambda: rk.Solid(Sphere(1.0), friction=-1), ">= 0"),
    (lambda: rk.Solid(Sphere(1.0), rgba=(1, 2, 3, 4)), "0 to 1"),
    (lambda: rk.HeightField(np.zeros(3)), r"\(nx, ny\)"),
    (lambda: rk.HeightField([[0, math.nan], [0, 0]]), "finite"),
    (lambda: rk.HeightField(np.zeros((2, 2)), cell=0.0), "lengths > 0"),
    (lambda: rk.HeightField(np.zeros((2, 2)), cell=(1, 2, 3)), "lengths > 0"),
    (lambda: rk.HeightField(np.zeros((2, 2)), origin=1.0), "origin"),
    (lambda: rk.HeightField.from_picture("no such picture.png"), "no picture of heights"),
]


@pytest.mark.parametrize("make, words", WRONG)
def test_what_is_no_ground_is_refused_in_words(make, words):
    with pytest.raises(rk.RobokitError, match=words):
        make()


def test_a_shape_of_the_model_is_a_solid():
    ground = rk.Ground(shapes=[Shape(Box((1, 1, 1)), Placement(position=np.array([0, 0, 1.0])))])
    assert ground.shapes == (rk.Solid(Box((1, 1, 1)), (0, 0, 1)),)
