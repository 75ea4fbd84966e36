"""How the error of a fall with impacts and friction goes down with the time step."""

import numpy as np
import pytest

import robokit as rk
from robokit.model import Capsule, ModelBuilder, Shape

STEPS = 2e-3, 1e-3, 0.5e-3, 0.25e-3


def rod() -> rk.Robot:
    inertia = np.diag([0.45**2, 0.45**2, 2 * 0.05**2]) / 12.0
    builder = ModelBuilder("rod").link("rod", 1.0, inertia=inertia, collisions=(Shape(Capsule(0.03, 0.4)),))
    return builder.build("floating")


@pytest.mark.parametrize("space", [False, True])
def test_falls_are_of_first_order(space):
    """Rods at random angles land sliding; the exponent of the median error of their places, by least squares.

    In space the direction of sliding turns within an impact: it was 0.4 to 0.9 when an impact took two steps,
    each with one direction.
    """
    rows, rng = 32, np.random.default_rng(0)
    angle = rng.uniform(0.0, np.pi, rows)
    q, v = np.zeros((rows, 7)), np.zeros((rows, 6))
    q[:, 0], q[:, 2], q[:, 6] = np.cos(angle / 2), np.sin(angle / 2), rng.uniform(0.25, 0.3, rows)
    v[:, 1], v[:, 3] = rng.uniform(-3, 3, rows), rng.uniform(-1, 1, rows)
    if space:
        v[:, 0], v[:, 2], v[:, 4] = rng.uniform(-3, 3, (3, rows))

    def places(dt: float) -> np.ndarray:
        ground = rk.Ground(friction=0.5)
        return rk.rollout(rod(), q, v, steps=round(0.28 / dt), dt=dt, ground=ground).q[-1, :, 4:]

    exact = places(1e-3 / 32)
    errors = [np.median(np.abs(places(dt) - exact).max(axis=-1)) for dt in STEPS]
    assert np.polyfit(np.log(STEPS), np.log(errors), 1)[0] > 0.85
