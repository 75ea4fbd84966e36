"""Nothing falls through a thin plate, however fast it comes and wherever in a step it gets there."""

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, ModelBuilder, Shape, Sphere

SHAPES = {
    "ball": Sphere(0.01),
    "box": Box((0.02,) * 3),
    "capsule": Capsule(0.01, 0.02),
    "thin box": Box((0.1, 0.1, 0.01)),
}
PLATE = rk.Solid(Box((40.0, 40.0, 0.02)), rk.Placement(np.eye(3), (0.0, 0.0, -0.01)))


@pytest.mark.parametrize("dt", [5e-4, 1e-3, 2e-3, 4e-3])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_nothing_falls_through_a_thin_plate(shape, dt):
    """At 1 to 15 m/s, three times its thickness in a step, with all kinds of restitution."""
    inertia = np.diag([1.0, 1.0, 1.5]) * 1e-4
    robot = (
        ModelBuilder("body").link("body", 0.1, inertia=inertia, collisions=(Shape(shape),)).build("floating")
    )
    speeds, shares = [1.0, 4.0, 10.0, 15.0], [0.0, 0.01, 0.03, 0.1, 0.5, 1.0]
    speed, e, part = np.meshgrid(speeds, shares, np.arange(4) / 4.0)
    speed, e, part = speed.ravel(), e.ravel(), part.ravel()
    rng = np.random.default_rng(0)
    q, v = np.zeros((e.size, 7)), np.zeros((e.size, 6))
    turn = rng.normal(size=(e.size, 4))
    q[:, :4] = turn / np.linalg.norm(turn, axis=1)[:, None]
    q[:, 6] = 0.1 + speed * dt * part
    R = rk.rotations.quat_wxyz_to_matrix(q[:, :4])
    v[:, 3:] = np.einsum("rki,rk->ri", R, np.stack([0.1 * speed, 0.0 * speed, -speed], axis=1))
    ground = rk.Ground(restitution=e, shapes=[PLATE], plane=False)
    moved = rk.rollout(robot, q, v, steps=round(0.15 / dt), dt=dt, ground=ground, record_every=1)
    assert moved.q[:, :, 6].min() > -0.005
