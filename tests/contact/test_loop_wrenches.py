"""The wrenches of loop joints in a run with "contact", beside those of Lagrange's multipliers."""

from __future__ import annotations

import numpy as np
import pytest
from loop_robots import KINDS, free_four_bar, moving_arms

import robokit as rk


@pytest.mark.parametrize("kind", [None, *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS)])
def test_wrenches_are_those_of_multipliers(kind):
    """To first order in the step: that of "contact" is its mean, that of rkmk4 the one at the start."""
    options = {"duration": 0.04, "dt": 1e-4, "record_every": 20}
    if kind is None:
        robot = free_four_bar()
        q, v = robot.neutral(), np.random.default_rng(3).standard_normal(robot.nv)
    else:
        robot, q, v = moving_arms(kind)
        options["gravity"] = (0, 0, 0)  # no loop of what floats feels it
    one = rk.simulate(robot, q, v, integrator="contact", **options)
    other = rk.simulate(robot, q, v, integrator="rkmk4", **options)
    assert one.loop_forces.keys() == other.loop_forces.keys() and one.loop_forces
    for name, wrench in one.loop_forces.items():
        size = np.abs(other.loop_forces[name]).max()
        np.testing.assert_allclose(wrench[10:], other.loop_forces[name][10:], atol=5e-3 * size)
