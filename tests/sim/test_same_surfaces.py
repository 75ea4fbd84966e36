"""A surface is the same, however it is described: as a plane, a slab, tiles or a height field."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Shape, Sphere

SHAPES = {
    "box": Box((0.2, 0.3, 0.1)),
    "ball": Sphere(0.1),
    "capsule": Capsule(0.05, 0.2),
    "cylinder": Cylinder(0.08, 0.3),
    "disc": Cylinder(0.15, 0.04),
}
SLAB = rk.Solid(Box((20.0, 20.0, 1.0)), (0.0, 0.0, -0.5))


def body(name: str) -> rk.Robot:
    inertia = np.diag([5.0, 5.0, 4.0]) * 1e-3
    builder = ModelBuilder("body").link("body", 1.0, inertia=inertia, collisions=(Shape(SHAPES[name]),))
    return builder.build("floating")


@pytest.mark.parametrize("turn", [(1.0, 0.0, 0.0, 0.0), (0.9, 0.3, 0.1, 0.3)], ids=["upright", "turned"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_slab_is_a_plane(name: str, turn: tuple[float, ...]) -> None:
    """A plane had other points of a rim than a slab: discs moved 0.3 to 4 m apart."""
    q, v = [*np.divide(turn, np.linalg.norm(turn)), 0.0, 0.0, 0.3], [0.5, -0.3, 1.0, 0.4, 0.2, 0.0]
    plane, slab = (
        rk.simulate(body(name), q, v, duration=0.8, dt=1e-3, ground=ground).q
        for ground in (rk.Ground(), rk.Ground(plane=False, shapes=[SLAB]))
    )
    np.testing.assert_allclose(slab, plane, rtol=0.0, atol=1e-10)
