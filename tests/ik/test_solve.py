"""Inverse kinematics: what it returns meets the targets, keeps the limits, and says where it cannot."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ik_arms import LENGTHS, ONE, PYTHON, arm, inside, reachable
from ladder import State

import robokit as rk
from robokit.ik import default_start
from robokit.model import couple


def test_limits_are_kept_by_every_answer(seven_arm):
    robot = seven_arm
    rng = np.random.default_rng(5)
    anywhere = {"l7": (np.array([ladder.rotation(rng) for _ in range(200)]), rng.uniform(-2, 2, (200, 3)))}
    start = rng.uniform(-4.0, 4.0, (200, 7))  # outside too
    found = rk.inverse_kinematics(robot, anywhere, start)
    assert inside(robot, found.q) and not found.converged.all()
    free = rk.inverse_kinematics(robot, anywhere, start, limits=False)
    assert not inside(robot, free.q)
    assert free.error.mean() < found.error.mean()


def test_limits_of_joints_that_move_no_target(seven_arm):
    target = {"l3": (0.2, 0.1, 0.6)}
    found = rk.inverse_kinematics(seven_arm, target, np.full((2, 7), 5.0))
    assert inside(seven_arm, found.q)
    free = rk.inverse_kinematics(seven_arm, target, np.full((2, 7), 5.0), limits=False)
    assert (free.q[:, 3:] == 5.0).all()


def test_limits_of_joints_that_follow():
    b = rk.ModelBuilder("hand").link("l0")
    for k in range(3):
        b.link(f"l{k + 1}", 1.0, (0.2, 0, 0), np.eye(3) * 0.01)
        mimic = rk.Mimic("j0", -2.0, 0.1) if k == 2 else None
        place = rk.Placement(np.eye(3), (0.5 * (k > 0), 0, 0))
        b.joint(
            f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, (0, 0, 1), lower=-1.0, upper=1.0, mimic=mimic
        )
    robot = couple(b.build())
    goal = np.array([0.3, -0.6])
    R, p = rk.forward_kinematics(robot, goal, **PYTHON)["l3"]
    target, at = {"l3": p + R @ (0.5, 0, 0)}, {"l3": (0.5, 0, 0)}
    found = rk.inverse_kinematics(robot, target, [0.2, -0.4], at=at, **PYTHON)
    assert found.converged and np.abs(found.q - goal).max() < 1e-5
    # From here the other way is shorter, and ends where the follower's limit is: -2 q + 0.1 = 1.
    stuck = rk.inverse_kinematics(robot, target, np.zeros(2), at=at, **ONE)
    assert not stuck.converged and stuck.q[0] == pytest.approx(-0.45) and inside(robot, stuck.q)
    for angle in np.linspace(-3, 3, 9):
        far = (3 * np.cos(angle), 3 * np.sin(angle), 0.0)
        found = rk.inverse_kinematics(robot, {"l3": far}, np.zeros(2), **ONE)
        assert not found.converged and inside(robot, found.q)


def test_out_of_reach_the_nearest_point_is_found():
    robot, far = arm(), np.array([2.0, 1.5, 0.4])
    found = rk.inverse_kinematics(robot, {"tip": far}, [0.5, 0.9], **ONE)
    nearest = np.r_[far[:2] / np.linalg.norm(far[:2]) * sum(LENGTHS), 0.0]
    assert not found.converged
    assert found.error == pytest.approx(np.linalg.norm(far - nearest), rel=1e-8)
    assert "target of 'tip' missed by 0.894 m" in found.message and "out of reach" in found.message


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
def test_far_away_it_reaches_out_all_the_same(far):
    robot = arm(n=3)
    found = rk.inverse_kinematics(robot, {"tip": (far, far, 0.0)}, [0.1, 0.2, -0.3], **ONE)
    assert not found.converged and "out of reach" in found.message
    np.testing.assert_allclose(found.q, [np.pi / 4, 0.0, 0.0], atol=1e-2)


def test_nearest_within_the_limits():
    # The elbow wants to bend to where its limit does not let it.
    robot = arm(-1.0, 1.0)
    found = rk.inverse_kinematics(robot, {"tip": (0.2, 0.1, 0.0)}, [0.0, 0.5], **ONE)
    assert not found.converged and inside(robot, found.q)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 401)] * 2), axis=-1)
    x = sum(
        n * np.stack([np.cos(a), np.sin(a)], -1)
        for n, a in zip(LENGTHS, (grid[..., 0], grid.sum(-1)), strict=True)
    )
    least = np.linalg.norm(x - (0.2, 0.1), axis=-1).min()
    assert found.error <= least + 1e-9 or found.error < 1.2 * least


@pytest.mark.parametrize("start", [(0.0, 0.0), (0.0, 1e-9), (1.0, 0.0)])
def test_from_and_to_singular_configurations(start):
    robot = arm()
    stretched = rk.inverse_kinematics(robot, {"tip": (0.0, sum(LENGTHS), 0.0)}, [0.3, 0.8], **PYTHON)
    assert stretched.converged and np.abs(stretched.q - [np.pi / 2, 0.0]).max() < 5e-3
    inward = rk.inverse_kinematics(robot, {"tip": (1.0, 0.6, 0.0)}, start, **ONE)
    assert np.isfinite(inward.q).all() and (inward.converged or inward.message)


def test_more_rows_than_joints_and_a_goal_that_is_met_already(seven_arm):
    robot = arm()
    q = np.array([0.4, -0.9])
    poses = rk.forward_kinematics(robot, q, **PYTHON)
    both = {"tip": poses["tip"], "l1": poses["l1"][1], "l2": poses["l2"][1]}
    found = rk.inverse_kinematics(robot, both, [0.1, -0.2], **PYTHON)
    assert found.converged and np.abs(found.q - q).max() < 1e-6
    there = rk.inverse_kinematics(robot, both, q, **PYTHON)
    assert (there.q == q).all() and there.iterations == 1 and there.converged


def test_a_posture_is_kept_as_near_as_the_target_lets_it(seven_arm):
    robot = seven_arm
    q, _, p = (x[0] for x in reachable(robot, "l7"))
    rest = np.full(7, 0.2)
    plain = rk.inverse_kinematics(robot, {"l7": p}, q + 0.5)
    drawn = rk.inverse_kinematics(robot, {"l7": p}, q + 0.5, posture=rest)
    assert plain.converged and drawn.converged
    assert np.linalg.norm(drawn.q - rest) < 0.9 * np.linalg.norm(plain.q - rest)
    # The best of all: its distance grows along every motion that keeps the target, up to the soft weight.
    J = rk.link_jacobian(robot, drawn.q, "l7")[3:]
    slope = np.linalg.svd(J)[2][3:] @ (drawn.q - rest)
    assert np.abs(slope).max() < 0.1 * np.linalg.norm(drawn.q - rest)


def test_the_center_of_mass_goes_where_it_is_wanted_and_feet_stay():
    robot = ladder.random_tree(1, "floating", kinds=("revolute",), n=6)
    q = State(robot, 1).q
    feet = [robot.link_names[k] for k in (-1, 3)]
    stay = {f: rk.forward_kinematics(robot, q, **PYTHON)[f] for f in feet[:1]}
    goal = rk.center_of_mass(robot, q, **PYTHON) + np.array([0.02, -0.03, 0.01])
    found = rk.inverse_kinematics(robot, stay, q, center_of_mass=goal, **PYTHON)
    assert found.converged and found.position_error["center of mass"] < 1e-6
    assert np.abs(rk.center_of_mass(robot, found.q, **PYTHON) - goal).max() < 1e-6
    assert np.abs(rk.forward_kinematics(robot, found.q, **PYTHON)[feet[0]][1] - stay[feet[0]][1]).max() < 1e-6


def test_joints_that_move_no_target_keep_their_values():
    robot = ladder.random_tree(1, "fixed", kinds=("revolute",), n=6)
    q = State(robot, 1).q
    link = robot.link_names[2]
    supports = set(robot.tree.support[robot.link(link).body])
    p = rk.forward_kinematics(robot, State(robot, 2).q, **PYTHON)[link][1]
    found = rk.inverse_kinematics(robot, {link: p}, q, **PYTHON)
    others = [j.q_slice.start for j in robot.joints if j.body not in supports]
    assert others and (found.q[others] == q[others]).all()


def test_what_can_be_reached_is_reached_without_being_asked_for_more(seven_arm):
    _, R, p = reachable(seven_arm, "l7", 100)
    once = rk.inverse_kinematics(seven_arm, {"l7": (R, p)}, starts=1)
    found = rk.inverse_kinematics(seven_arm, {"l7": (R, p)})
    assert once.converged.mean() < 0.97 and found.converged.all() and inside(seven_arm, found.q)
    assert (found.q[once.converged] == once.q[once.converged]).all()


def test_zero_outside_the_limits_is_no_start():
    robot = arm(-2.5, -0.1)
    assert default_start(robot, True).tolist() == [-1.3, -1.3] and not default_start(robot, False).any()
    one_sided = arm(0.2, np.inf)
    assert default_start(one_sided, True).tolist() == [0.2, 0.2]
    q, _, p = (x[0] for x in reachable(robot, "tip"))
    found = rk.inverse_kinematics(robot, {"tip": p}, **ONE)
    assert found.converged and np.abs(found.q - q).max() < 1e-5


def test_a_link_that_nothing_moves_and_no_states(seven_arm):
    fixed = rk.inverse_kinematics(seven_arm, {"l0": (0.1, 0, 0)}, np.zeros(7), **ONE)
    assert not fixed.converged and fixed.error == pytest.approx(0.1)
    assert rk.inverse_kinematics(seven_arm, {"l0": np.zeros(3)}, np.zeros(7)).converged
    none = rk.inverse_kinematics(seven_arm, {"l7": (0.1, 0, 0)}, np.empty((0, 7)))
    assert none.q.shape == (0, 7) and none.message == ""
