"""Pseudo-inertias: there and back, and positive for every estimate."""

from __future__ import annotations

import ladder
import numpy as np
from ladder import relative
from measured_arm import R, motion, predicted_forces

import robokit as rk
from robokit.identification.estimate import nearest_possible, parameters_of, pseudo_inertia, second_moments
from robokit.model.inertial_parameters import COUNT


def test_pseudo_inertia_goes_there_and_back_and_is_positive_for_real_bodies():
    rows = np.vstack([R.inertial_parameters[1:], ladder.chain(6).inertial_parameters[1:]])
    P = pseudo_inertia(rows)
    assert relative(parameters_of(P), rows) < 1e-15
    assert np.linalg.eigvalsh(P).min() > 0.0
    thin = rows[:1] * (1, 1, 1, 1, 0, 0, 0, 0, 0, 0)  # a point
    assert second_moments(nearest_possible(thin)).min() > 0.0
    assert (nearest_possible(rows) == rows).all()


def test_every_estimate_is_a_body_that_can_exist(noisy):
    assert noisy.second_moments.min() > 0.0
    assert np.linalg.eigvalsh(pseudo_inertia(noisy.parameters)).min() > 0.0
    q, v, a = motion(R, 12, 4)  # few states and much noise: least squares alone gives bodies that cannot be
    rng = np.random.default_rng(0)
    tau = predicted_forces(R, q, v, a) + rng.standard_normal((12, 3)) * 20.0
    weights = np.full(3, 1 / 20.0)
    with np.errstate(all="raise"):
        found = rk.identify(R, q, v, a, tau, friction=True, weights=weights)
    assert found.converged
    assert found.second_moments.min() > 0.0
    assert min(found.viscous.min(), found.coulomb.min()) > 0.0
    alone = np.zeros_like(found.x)
    alone[found.base.independent] = found.base_values
    bodies = alone[: R.nbodies * COUNT].reshape(-1, COUNT)
    assert np.linalg.eigvalsh(pseudo_inertia(bodies)).min() < 0.0
