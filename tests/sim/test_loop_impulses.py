"""Loop joints in a step: impulses without work, and the projection back to closed loops."""

from __future__ import annotations

import numpy as np
import pytest
from loop_robots import KINDS, closed_at, jacobian, two_arms

import robokit as rk
from robokit.algorithms.crba import crba
from robokit.algorithms.sparse_factors import SparseFactor
from robokit.model.constraints import loop_models
from robokit.model.joints import JOINT_TABLE
from robokit.sim.joint_forces import LoopKick, LoopLaw, project
from robokit.sim.motion import ImplicitSweep, body_velocities
from robokit.sim.starts import gaps, tangent
from robokit.spatial import Force, Vector3


def state(kind: str):
    rng = np.random.default_rng(11)
    robot = two_arms(kind)
    q = robot.random_configuration(rng)
    robot = closed_at(robot, kind, q, JOINT_TABLE[kind].neutral)
    v, y = rng.standard_normal((2, robot.nv))
    rows = robot.split_q(q.tolist())
    factor = SparseFactor(robot.tree, crba(robot.tree, rows))
    return robot, LoopLaw(loop_models(robot)), factor, q, v, y


@pytest.mark.parametrize("kind", KINDS)
def test_a_kick_solves_the_dense_system_and_its_impulses_do_no_work(kind):
    robot, law, _, q, v, _ = state(kind)
    tree, rng, dt = robot.tree, np.random.default_rng(12), 0.01
    X = tree.transforms(robot.split_q(q.tolist()))
    b, tau = rng.uniform(0.0, 5.0, robot.nv), rng.standard_normal(robot.nv)
    T = [Force(Vector3(*x[:3]), Vector3(*x[3:])) for x in rng.standard_normal((tree.n + 1, 6))]
    sweep = ImplicitSweep(tree, X, robot.split_v(b.tolist()), dt)
    loops = LoopKick(law, tree, robot.split_q(q.tolist()), X)
    y, V = loops.solve(sweep, T, robot.split_v(tau.tolist()), robot.split_v(v.tolist()))
    A = np.array(crba(tree, robot.split_q(q.tolist()))) + dt * np.diag(b)
    right = A @ robot.join_v(sweep.solve(T, robot.split_v(tau.tolist()))[0])
    K, y = jacobian(loops.loops), np.array(robot.join_v(y))
    n = len(K)
    KKT = np.block([[A, -K.T], [K, np.zeros((n, n))]])
    expected = np.linalg.solve(KKT, np.r_[right, -K @ v])
    np.testing.assert_allclose(y, expected[: robot.nv], atol=1e-9 * np.abs(expected).max())
    impulses = expected[robot.nv :]
    assert abs((v + y) @ K.T @ impulses) < 1e-9 * np.abs(impulses).sum()
    assert [*V[2]] == [*body_velocities(tree, X, robot.split_v(y.tolist()))[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_beside_the_loops_comes_back_to_them(kind):
    robot, law, factor, q, v, _ = state(kind)
    v = tangent(robot, q[None], v)[0]
    off = robot.integrate(q, 1e-5 * np.random.default_rng(1).standard_normal(robot.nv))
    q1, v1 = project(law, robot.tree, factor, robot.split_q(off.tolist()), robot.split_v(v.tolist()))
    q1, v1 = np.array(robot.join_q(q1)), np.array(robot.join_v(v1))
    assert gaps(robot, off[None]).max() > 1e-6
    assert gaps(robot, q1[None]).max() < 1e-13
    np.testing.assert_allclose(tangent(robot, q1[None], v1)[0], v1, atol=1e-9)
    before, after = (rk.centroidal_momentum(robot, off, x) for x in (v, v1))
    np.testing.assert_allclose(after, before, atol=1e-9 * np.abs(before).max())
