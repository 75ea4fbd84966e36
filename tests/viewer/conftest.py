"""What the viewer's tests share: the humanoid and its made-up fall."""

from __future__ import annotations

from pathlib import Path

import pytest
from viewer_cases import made_up_motion

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, Shape, Sphere

ROBOTS = Path(__file__).parents[2] / "robots"


@pytest.fixture(scope="session")
def humanoid():
    return rk.load_urdf(ROBOTS / "humanoid.urdf", base="floating")


@pytest.fixture(scope="session")
def fall(humanoid):
    return made_up_motion(humanoid)


@pytest.fixture(scope="session")
def shapes():
    return (
        Shape(Box((0.1, 0.2, 0.3))),
        Shape(Sphere(0.1)),
        Shape(Cylinder(0.05, 0.4)),
        Shape(Capsule(0.05, 0.3)),
    )
