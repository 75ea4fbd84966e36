"""Forward dynamics with closed loops against the dense KKT system; redundant loops; coupled joints."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from dense import Dense
from ladder import relative
from loop_robots import KINDS, closed_at, jacobian, parallelogram, two_arms

import robokit as rk
from robokit.algorithms.loop_dynamics import loop_dynamics
from robokit.algorithms.sparse_factors import ArticulatedFactor, SparseFactor
from robokit.model import ModelBuilder, couple
from robokit.model.constraints import loop_models
from robokit.model.joints import JOINT_TABLE


def solved(robot, q, v, tau):
    """(accelerations, forces, system) with flat accelerations."""
    rows = robot.split_q(q.tolist()), robot.split_v(v.tolist()), robot.split_tau(tau.tolist())
    a, forces, system = loop_dynamics(robot.tree, loop_models(robot), *rows)
    return np.array(robot.join_v(a)), np.array(forces), system


@pytest.mark.parametrize("kind", KINDS)
def test_accelerations_and_forces_solve_the_dense_system(kind):
    rng = np.random.default_rng(3)
    robot = two_arms(kind)
    q = robot.random_configuration(rng)
    robot = closed_at(robot, kind, q, JOINT_TABLE[kind].neutral)
    v, tau = rng.standard_normal((2, robot.nv))
    K = jacobian(solved(robot, q, v, tau)[2].loops)
    v -= np.linalg.pinv(K) @ K @ v  # a velocity that the loops allow
    a, forces, system = solved(robot, q, v, tau)
    dense = Dense(robot, q, v)
    product = np.array([x for loop in system.loops for x in loop.velocity_product(robot.split_v(v.tolist()))])
    n = len(K)
    KKT = np.block([[dense.H, -K.T], [K, np.zeros((n, n))]])
    expected = np.linalg.solve(KKT, np.r_[tau - dense.C - dense.G, -product])
    assert relative(a, expected[: robot.nv]) < 1e-9
    assert relative(forces, expected[robot.nv :]) < 1e-9


def test_velocity_products_are_those_of_the_nearest_velocity_that_the_loops_allow():
    robot = parallelogram()
    q, allowed = np.array([0.4, -0.4, 0.4, 0.4]), np.array([1.5, -1.5, 1.5, 1.5])
    _, _, system = solved(robot, q, allowed, np.zeros(4))
    K, H = jacobian(system.loops), rk.crba(robot, q)
    opening = np.linalg.solve(H, K.T @ np.arange(10.0))
    a, b = (solved(robot, q, v, rk.bias_forces(robot, q, v))[0] for v in (allowed, allowed + opening))
    assert np.abs(K @ opening).max() > 1.0
    np.testing.assert_allclose(b, a, atol=1e-9)


def test_both_factors_halve_and_move_as_the_inverse_mass_matrix():
    rng = np.random.default_rng(9)
    robot = two_arms("fixed")
    tree, q = robot.tree, robot.random_configuration(rng)
    rows = robot.split_q(q.tolist())
    H = rk.crba(robot, q)
    B = np.zeros((3, robot.nv))
    B[0], B[1, 9:12], B[2, -1] = rng.standard_normal(robot.nv), 1.0, 2.0
    for factor in (SparseFactor(tree, H.tolist()), ArticulatedFactor.of(tree, tree.transforms(rows))):
        halves = [factor.half(b) for b in B.tolist()]
        A = np.array(factor.products(halves))
        np.testing.assert_allclose(A, B @ np.linalg.solve(H, B.T), rtol=1e-9)
        moved = robot.join_v(factor.motion(halves, [0.5, -2.0, 1.0]))
        assert relative(moved, np.linalg.solve(H, np.array([0.5, -2.0, 1.0]) @ B)) < 1e-11


def test_loop_forces_make_no_momentum():
    rng = np.random.default_rng(4)
    robot = two_arms("revolute")  # wide open: the wrenches still act on one line
    q = robot.random_configuration(rng)
    _, _, system = solved(robot, q, rng.standard_normal(robot.nv), np.zeros(robot.nv))
    pushed = np.array(robot.join_v(system.motion(rng.standard_normal(5).tolist())))
    np.testing.assert_allclose(rk.centroidal_momentum(robot, q, pushed), 0.0, atol=1e-12)


def test_redundant_loops_have_bounded_forces_and_the_motion_of_one_crank():
    robot = parallelogram()
    angle, rate = 0.4, 1.5
    q = np.array([angle, -angle, angle, angle])
    v = np.array([rate, -rate, rate, rate])
    a, forces, system = solved(robot, q, v, np.zeros(4))
    # Three cranks and a beam that only shifts: one pendulum of known inertia and moment.
    inertia = 3 * (0.02 + 1.0 * 0.25**2) + 2.0 * 0.5**2
    moment = (3 * 1.0 * 0.25 + 2.0 * 0.5) * 9.81 * np.sin(angle)
    assert np.linalg.matrix_rank(np.array(system.A), tol=1e-9) == 3 and len(forces) == 10
    np.testing.assert_allclose(a, moment / inertia * np.array([1, -1, 1, 1]), rtol=1e-9)
    assert np.abs(forces).max() < 5.0 * 5.0 * 9.81
    dense = Dense(robot, q, v)
    # The forces hold the equations of motion row by row.
    np.testing.assert_allclose(dense.H @ a + dense.C + dense.G, jacobian(system.loops).T @ forces, atol=1e-8)


def test_what_the_loops_cannot_meet_moves_nothing():
    robot = parallelogram()
    _, _, system = solved(robot, np.zeros(4), np.zeros(4), np.zeros(4))
    out_of_plane = [0.0] * 10
    out_of_plane[0] = out_of_plane[3] = 1.0
    assert not jacobian(system.loops)[[0, 3]].any()
    forces = system.forces(out_of_plane)
    assert np.isfinite(forces).all()
    np.testing.assert_allclose(robot.join_v(system.motion(forces)), 0.0, atol=1e-12)


def test_joints_that_follow_others_follow_in_loops_too():
    # The second crank follows the first by a mimic, which the loop would demand too.
    b = ModelBuilder.from_robot(parallelogram(2))
    b._joints["hinge1"] = dataclasses.replace(b._joints["hinge1"], mimic=rk.Mimic("hinge0", 1.0, 0.0))
    robot = couple(b.build())
    q, v = np.array([0.4, -0.4]), np.array([1.5, -1.5])
    a, _, _ = solved(robot, q, v, np.zeros(2))
    inertia, moment = 2 * (0.02 + 0.25**2) + 2.0 * 0.25, (0.5 + 1.0) * 9.81 * np.sin(0.4)
    np.testing.assert_allclose(a, moment / inertia * np.array([1, -1]), rtol=1e-9)
