"""Loop joints in a step: impulses without work, and the projection back to closed loops."""

from __future__ import annotations

import numpy as np
import pytest
from loop_robots import KINDS, closed_at, jacobian, two_arms

import robokit as rk
from robokit.algorithms.crba import crba
from robokit.algorithms.loop_dynamics import SparseFactor
from robokit.model.joints import JOINT_TABLE
from robokit.model.loop_models import loop_models
from robokit.sim.closing import gaps, tangent
from robokit.sim.step.loop_impulses import LoopLaw, kick, project


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
def test_the_impulse_of_a_kick_does_no_work(kind):
    robot, law, factor, q, v, y = state(kind)
    system = law.system(robot.tree, factor, robot.tree.transforms(robot.split_q(q.tolist())))
    rows = robot.split_v(v.tolist()), robot.split_v(y.tolist())
    after, impulses = kick(system, *rows)
    after = np.array(robot.join_v(after))
    given = jacobian(system.loops).T @ impulses
    np.testing.assert_allclose(given, rk.crba(robot, q) @ (after - y), atol=1e-9)
    assert abs(given @ (v + after)) < 1e-9 * np.abs(impulses).sum()
    np.testing.assert_allclose(jacobian(system.loops) @ (v + after), 0.0, atol=1e-10)


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
