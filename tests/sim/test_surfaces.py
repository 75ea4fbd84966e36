"""Solids of a ground, and what is no ground."""

from __future__ import annotations

import math

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, Placement, Shape, Sphere

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
