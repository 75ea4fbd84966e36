"""Loop joints of every kind: delta vanishes where the joint lets it, K and K' qd are its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import along, relative
from loop_robots import AXIS, KINDS, closed_at, two_arms

from robokit.algorithms.loop_constraints import ClosedLoop
from robokit.model import ModelBuilder
from robokit.model.constraints import loop_models
from robokit.model.joints import JOINT_TABLE, JointModel
from robokit.spatial import Vector3


def loop_at(robot, q) -> ClosedLoop:
    (model,) = loop_models(robot)
    tree = robot.tree
    return ClosedLoop(tree, model, tree.transforms(robot.split_q(q)))


def delta(robot, q) -> np.ndarray:
    return np.array(loop_at(robot, list(q)).delta)


@pytest.mark.parametrize("kind", KINDS)
def test_delta_vanishes_wherever_the_joint_stands(kind):
    rng = np.random.default_rng(5)
    row = JOINT_TABLE[kind]
    robot = two_arms(kind)
    for _ in range(5):
        q, n = robot.random_configuration(rng), row.nq
        moved = JointModel(row, Vector3(*AXIS)).random(rng, [-2.5] * n, [2.5] * n)
        closed = closed_at(robot, kind, q, moved)
        assert len(loop_at(closed, list(q)).rows) == 6 - row.nv
        np.testing.assert_allclose(delta(closed, q), 0.0, atol=1e-13)


def test_a_floating_loop_joint_constrains_nothing():
    assert loop_models(two_arms("floating")) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_jacobian_is_the_derivative_of_delta(kind):
    # Far from closed: the derivative is exact wherever delta is defined.
    robot, rng = two_arms(kind), np.random.default_rng(6)
    for _ in range(3):
        q, v = robot.random_configuration(rng), rng.standard_normal(robot.nv)
        K = np.array(loop_at(robot, q.tolist()).jacobian())
        assert relative(K @ v, delta(robot, along(robot, q, v, 1e-30)).imag / 1e-30) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_the_velocity_product_is_the_rate_of_the_jacobian(kind):
    robot, rng = two_arms(kind), np.random.default_rng(7)
    for _ in range(3):
        q, v = robot.random_configuration(rng), rng.standard_normal(robot.nv)
        moving = np.array(loop_at(robot, along(robot, q, v, 1e-30).tolist()).jacobian()) @ v
        found = loop_at(robot, q.tolist()).velocity_product(robot.tree.split_v(v.tolist()))
        assert relative(found, moving.imag / 1e-30) < 1e-11


@pytest.mark.parametrize("kind", KINDS)
def test_joints_above_both_ends_do_not_appear(kind):
    robot, rng = two_arms(kind), np.random.default_rng(8)
    K = np.array(loop_at(robot, robot.random_configuration(rng).tolist()).jacobian())
    assert not K[:, :6].any()
    assert np.abs(K[:, 6:]).max(axis=0).min() > 0.0


def test_orientation_errors_are_angles_and_grow_up_to_half_a_turn():
    b = ModelBuilder("door").link("frame").link("door", 1.0, (0, 0, 0), np.eye(3))
    b.joint("hinge", "continuous", "frame", "door", axis=(0, 0, 1))
    b.loop_joint("lock", "fixed", "frame", "door")
    robot = b.build()
    for angle in (1e-6, 0.1, 1.0, 2.0, 3.0, -3.0):
        assert delta(robot, [angle])[:3] == pytest.approx([0, 0, 2.0 * np.tan(angle / 2.0)])


def test_a_nut_fits_its_thread_after_each_turn():
    b = ModelBuilder("nut").link("frame").link("nut", 1.0, (0, 0, 0), np.eye(3))
    b.joint("slide", "cylindrical", "frame", "nut", axis=(0, 0, 1))
    b.loop_joint("thread", "helical", "frame", "nut", axis=(0, 0, 1), pitch=0.01)
    robot = b.build()
    for angle in (0.3, 2.0, 7.0, -20.0):
        np.testing.assert_allclose(delta(robot, [angle, 0.01 * angle]), 0.0, atol=1e-15)
        assert delta(robot, [angle, 0.01 * angle + 1e-6])[4] == pytest.approx(1e-6)
