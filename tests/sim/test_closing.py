"""Configurations that close the loops of a robot."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sim_models import ROBOTS

import robokit as rk
from robokit.model import ModelBuilder, Placement
from robokit.sim.starts import closed, distances, tangent, torn


def four_bar() -> rk.Robot:
    return rk.load_urdf(ROBOTS / "four_bar.urdf")


def test_a_four_bar_closes_where_the_law_of_cosines_says():
    # Crank, coupler and rocker of 0.15, 0.39 and 0.325 m on a ground of 0.485 m; crank and rocker stand
    # upright and at 112.6 degrees in the file.
    crank, coupler, rocker, ground = 0.15, 0.39, 0.325, 0.485
    for angle in (-2.0, -0.5, 0.3, 1.0):
        q = rk.close_loops(four_bar(), [angle, 0.0, 0.0], keep=["crank_joint"])
        assert q[0] == angle
        tip = crank * np.array([np.sin(angle), np.cos(angle)])
        d = np.array([ground, 0.0]) - tip
        reach = np.hypot(*d)
        at_foot = np.arccos((rocker**2 + reach**2 - coupler**2) / (2 * rocker * reach))
        rocker_angle = np.arctan2(-0.125, 0.3) + q[2]  # from the vertical, clockwise about y
        rocker_tip = np.array([ground, 0.0]) + rocker * np.array([np.sin(rocker_angle), np.cos(rocker_angle)])
        to_tip, to_crank = rocker_tip - [ground, 0.0], -d
        found = np.arccos(to_tip @ to_crank / rocker / reach)
        assert found == pytest.approx(at_foot, abs=1e-12)
        assert np.hypot(*(rocker_tip - tip)) == pytest.approx(coupler, abs=1e-13)


def test_what_is_closed_stays_and_rows_close_one_by_one():
    robot = four_bar()
    np.testing.assert_array_equal(rk.close_loops(robot), robot.neutral())
    rng = np.random.default_rng(0)
    q = rng.normal(0.0, 0.4, (50, 3))
    together = rk.close_loops(robot, q)
    assert distances(robot, together).max() < 1e-13
    for k in (0, 49):
        np.testing.assert_allclose(rk.close_loops(robot, q[k]), together[k], atol=1e-12)


def test_rows_that_are_not_finite_stay_as_they_are():
    q = np.array([[0.1, 0.0, 0.0], [np.nan, 0.0, 0.0]])
    found = closed(four_bar(), q, "q0")
    assert np.isfinite(found[0]).all() and np.isnan(found[1, 0])


def test_no_loop_is_open_where_no_state_is_left():
    """As of a rollout whose rows have all failed."""
    assert torn(four_bar(), np.zeros((0, 3))) is None


def test_a_loop_that_cannot_be_closed_is_named_with_its_gap():
    b = ModelBuilder.from_robot(four_bar())
    far = Placement(position=np.array([3.0, 0.0, 0.0]))
    b._loops["closing_joint"] = dataclasses.replace(b._loops["closing_joint"], successor_placement=far)
    with pytest.raises(rk.ShapeError, match=r"q: loop joint 'closing_joint' cannot .* open by \d\.\d+ m"):
        rk.close_loops(b.build())
    with pytest.raises(rk.ShapeError, match=r"q\[1\]: loop joint 'closing_joint'"):
        # The crank cannot hold: the second row's loop is too far away.
        rk.close_loops(four_bar(), [[0.0, 0, 0], [0.0, 1.0, 0.0]], ["coupler_joint", "rocker_joint"])


def test_limits_are_kept():
    b = ModelBuilder.from_robot(four_bar())
    for name, upper in (("crank_joint", 3.0), ("coupler_joint", 3.0), ("rocker_joint", 0.05)):
        b._joints[name] = dataclasses.replace(b._joints[name], kind="revolute", lower=-3.0, upper=upper)
    robot = b.build()
    free, held = (rk.close_loops(r, [0.5, 0.0, 0.0]) for r in (four_bar(), robot))
    assert free[2] > 0.06 and held[2] <= 0.05
    assert distances(robot, held[None]).max() < 1e-12


def test_the_base_of_a_floating_robot_stays():
    robot = rk.load_urdf(ROBOTS / "four_bar.urdf", base="floating")
    q = robot.neutral()
    q[:7], q[7:] = [0.5, 0.5, -0.5, 0.5, 1.0, 2.0, 3.0], [0.4, 0.1, 0.0]
    found = rk.close_loops(robot, q)
    np.testing.assert_array_equal(found[:7], q[:7])
    assert distances(robot, found[None]).max() < 1e-13


def test_tangent_velocities_leave_the_loops_closed():
    robot = four_bar()
    q = rk.close_loops(robot, [0.7, 0.0, 0.0], keep=["crank_joint"])
    v = tangent(robot, q[None], np.array([1.0, 0.0, 0.0]))[0]
    moved = distances(robot, np.stack([robot.integrate(q, 1e-4 * v), robot.integrate(q, [1e-4, 0, 0])]))
    assert moved[0, 0] < 1e-8 < 1e-5 < moved[1, 0]


def test_wrong_arguments_are_refused_in_words():
    robot = four_bar()
    with pytest.raises(rk.WrongType, match="robot"):
        rk.close_loops("four_bar")
    with pytest.raises(rk.ShapeError, match=r"q: expected shape \(3,\) or \(B, 3\), got \(4,\)"):
        rk.close_loops(robot, [0.0] * 4)
    with pytest.raises(rk.InvalidValue, match="q: expected finite numbers, got nan"):
        rk.close_loops(robot, [np.nan, 0, 0])
    with pytest.raises(rk.UnknownName, match="crank_joint"):
        rk.close_loops(robot, keep=["crank"])
    with pytest.raises(rk.WrongType, match="keep"):
        rk.close_loops(robot, keep="crank_joint")


def test_a_robot_without_loops_comes_back_as_it_is():
    robot = rk.load_urdf(ROBOTS / "double_pendulum.urdf")
    np.testing.assert_array_equal(rk.close_loops(robot, [0.3, 0.4]), [0.3, 0.4])


def test_a_robot_stands_with_its_loops_closed():
    robot = rk.load_urdf(ROBOTS / "four_bar.urdf", base="floating")
    q = rk.standing_configuration(robot, seed=3)
    assert distances(robot, q[None]).max() < 1e-12
    assert np.abs(q[7:]).min() > 1e-4
