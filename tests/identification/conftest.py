"""Identifications that several tests of this folder look at."""

from __future__ import annotations

import numpy as np
import pytest
from measured_arm import R, guess, motion, predicted_forces

import robokit as rk


@pytest.fixture(scope="session")
def noisy():
    """An identification from noisy forces, from another robot's bodies on."""
    q, v, a = motion(R, 600)
    rng = np.random.default_rng(3)
    tau = predicted_forces(R, q, v, a) + rng.standard_normal((600, 3)) * (0.3, 0.5, 1.0)
    return rk.identify(R, q, v, a, tau, friction=True, prior=guess(R))
