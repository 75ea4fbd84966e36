"""Velocity products that a step cannot follow make no numbers that are none."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import ModelBuilder, Placement


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_of_light_links_that_is_flung_stays_finite(seed: int) -> None:
    """At 20 rad/s and 4 ms, where its last links turn by more than a radian in a step."""
    builder, inertia = ModelBuilder("chain"), np.diag([4e-5, 4e-5, 8e-7])
    for k in range(20):
        builder.link(f"{k}", 0.05, (0.0, 0.0, 0.05), inertia)
        if k:
            place = Placement(position=np.array([0.0, 0.0, 0.1]))
            builder.joint(f"{k}", "continuous", f"{k - 1}", f"{k}", place, (k % 2, 1 - k % 2, 0))
    robot = builder.build("floating")
    v = np.random.default_rng(seed).normal(size=robot.nv) * 20.0
    try:
        run = rk.simulate(robot, None, v, duration=0.2, dt=4e-3, integrator="contact")
    except rk.errors.SimulationError as error:  # such a step is far from true, and is told so
        assert "the energy has grown" in str(error)
        run = error.trajectory
    assert np.isfinite(run.q).all() and np.isfinite(run.v).all() and len(run) > 3
