"""Base parameters: the combinations of parameters that forces depend on."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State, relative
from measured_arm import R, arm, motion

import robokit as rk


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_combinations_give_all_forces(base):
    robot = arm(base)
    found, s = rk.base_parameters(robot), State(robot, 1)
    Y = rk.regressor(robot, s.q, s.v, s.a, engine="python")
    rng = np.random.default_rng(0)
    for pi in (robot.inertial_parameters[1:].ravel(), rng.standard_normal(Y.shape[1])):
        assert relative(Y[:, found.independent] @ found.values(pi), Y @ pi) < 1e-12
    W = np.vstack([rk.regressor(robot, *x, engine="python") for x in zip(*motion(robot, 60), strict=True)])
    assert len(found) == np.linalg.matrix_rank(W / np.maximum(np.linalg.norm(W, axis=0), 1e-9), tol=1e-8)


def test_a_pendulum_has_its_two_moments_and_its_inertia():
    robot = ladder.pendulum()
    found = rk.base_parameters(robot)
    assert found.expressions == ["rod m c_x", "rod m c_z", "rod I_yy"]
    assert relative(found.values(robot.inertial_parameters[1:]), [0.0, -1.0, 1 / 6 + 0.5]) < 1e-12
    assert "3 combinations of 10 parameters" in str(found)
    assert "without effect: rod m, rod m c_y" in str(found)


def test_a_second_link_acts_on_the_first_as_in_the_textbook():
    # A planar arm with its second joint at x = l on the first link: l m2 joins m1 c1, l^2 m2 joins I1.
    b = rk.ModelBuilder("planar").link("ground").link("one", 1.0, (0.3, 0, 0), np.eye(3) * 0.1)
    b.link("two", 2.0, (0.2, 0, 0), np.eye(3) * 0.1)
    b.joint("a", "continuous", "ground", "one", axis=(0, 1, 0))
    b.joint("b", "continuous", "one", "two", rk.Placement(np.eye(3), (0.5, 0, 0)), (0, 1, 0))
    assert rk.base_parameters(b.build()).expressions == [
        "one m c_x + 0.5 two m",
        "one m c_z",
        "one I_yy + 0.25 two m",
        "two m c_x",
        "two m c_z",
        "two I_yy",
    ]


@pytest.mark.slow
def test_an_arm_of_seven_joints_has_forty_three():
    # Gautier, Khalil 1990: 43 for seven revolute joints in general, the first about the vertical.
    assert len(rk.base_parameters(rk.load_urdf(ladder.ROBOTS / "arm.urdf"))) == 43


def test_a_motion_that_turns_one_joint_determines_less():
    q, v, a = motion(R, 50)
    for x in (q, v, a):
        x[:, 1:] = 0.0
    found = rk.base_parameters(R, q, v, a)
    assert 0 < len(found) < len(rk.base_parameters(R))
    with pytest.raises(rk.ShapeError, match="expected all three"):
        rk.base_parameters(R, q)


def test_a_robot_that_cannot_move_has_none():
    still = rk.ModelBuilder("still").link("base", 1.0, inertia=np.eye(3)).build()
    assert len(rk.base_parameters(still)) == 0
