"""Exciting motions keep the limits, rest at both ends, and tell more with more effort."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative
from measured_arm import R, arm

import robokit as rk


@pytest.fixture(scope="module")
def excited():
    return rk.excitation(R, 5.0, effort=60, rate=50.0)


def test_an_excitation_keeps_the_limits_and_rests_at_both_ends(excited):
    low, high = ([getattr(joint, x) for joint in R.joints] for x in ("lower", "upper"))
    assert (excited.q > low).all() and (excited.q < high).all()
    assert np.abs(excited.v).max() < 3.0 and np.abs(excited.a).max() <= 20.0 * (1 + 1e-3)
    for k in (0, -1):
        assert np.abs(excited.v[k]).max() < 1e-9 and np.abs(excited.a[k]).max() < 1e-9
    assert excited.t[-1] == 5.0 and excited.q.shape == (251, 3)


def test_velocities_and_accelerations_are_the_rates_of_the_positions(excited):
    dt = excited.t[1]
    for x, rate in ((excited.q, excited.v), (excited.v, excited.a)):
        by_differences = (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * dt)
        assert relative(by_differences, rate[2:-2]) < 1e-4


def test_effort_makes_a_motion_tell_more(excited):
    assert len(rk.base_parameters(R, excited.q, excited.v, excited.a)) == len(rk.base_parameters(R))
    one = rk.excitation(R, 5.0, effort=1, criterion="condition").condition
    assert rk.excitation(R, 5.0, effort=120, criterion="condition").condition < 0.8 * one


def test_robots_without_a_series_are_refused():
    with pytest.raises(rk.ModelError, match=r"joint 'floating_base' has several; .* base='fixed'"):
        rk.excitation(arm("floating"))
    with pytest.raises(rk.ModelError, match="each, got loop joints"):
        rk.excitation(rk.load_urdf(rk.find_robot("four_bar")))
    with pytest.raises(rk.ShapeError, match=r"^margin: expected a share of the limits, at most 1, got 1\.1"):
        rk.excitation(R, margin=1.1)
    with pytest.raises(rk.ShapeError, match="harmonics"):
        rk.excitation(R, harmonics=1)
    with pytest.raises(rk.UnknownName, match="criterion"):
        rk.excitation(R, criterion="beauty")
