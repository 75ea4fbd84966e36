"""Inverse kinematics on others' robots: Pinocchio says where the links are; how often targets are met."""

from __future__ import annotations

import numpy as np
import pytest
from test_parity import loaded

import robokit as rk

pytestmark = pytest.mark.parity


@pytest.mark.parametrize(
    ("name", "link"),
    [("panda", "panda_hand"), ("g1", "left_wrist_yaw_link"), ("talos", "gripper_left_base_link")],
)
def test_pinocchio_finds_the_link_at_its_target(name, link):
    import pinocchio as pin
    from peers import PinocchioPeer

    robot, path = loaded(name, "fixed")
    rng, count = np.random.default_rng(0), 300
    goal, start = (np.array([robot.random_configuration(rng) for _ in range(count)]) for _ in "ab")
    R, p = rk.forward_kinematics(robot, goal)[link]
    once = rk.inverse_kinematics(robot, {link: (R, p)}, start, starts=1)
    found = rk.inverse_kinematics(robot, {link: (R, p)}, start, starts=50)
    # 51 % (Panda) and 70 % (G1) from one random start: as many as quadratic programs with limits meet.
    assert once.converged.mean() > 0.4 and found.converged.mean() >= 0.99
    low, high = np.array([robot.position_range(joint) for joint in robot.joints]).T
    assert (found.q >= low - 1e-12).all() and (found.q <= high + 1e-12).all()
    peer, worst = PinocchioPeer(robot, path), 0.0
    frame = peer.model.getFrameId(link, pin.FrameType.BODY)
    for k in np.flatnonzero(found.converged)[:20]:
        pin.framesForwardKinematics(peer.model, peer.data, peer.adapter.q(found.q[k]))
        away = peer.data.oMf[frame].actInv(pin.SE3(R[k], p[k]))
        turned, moved = np.linalg.norm(pin.log3(away.rotation)), np.linalg.norm(away.translation)
        assert turned == pytest.approx(found.rotation_error[link][k], abs=1e-9)
        assert moved == pytest.approx(found.position_error[link][k], abs=1e-12)
        worst = max(worst, turned, moved)
    assert worst <= 1e-6


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("panda", ["panda_hand"]),
        ("ur5", ["tool0"]),
        ("z1", ["gripperStator"]),
        ("g1", ["left_wrist_yaw_link", "right_wrist_yaw_link"]),
    ],
)
@pytest.mark.parametrize("whole", [True, False], ids=["pose", "position"])
def test_by_default_what_can_be_reached_is_reached(name, links, whole):
    robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"))
    met = 0
    for k in range(100):
        poses = rk.forward_kinematics(robot, robot.random_configuration(k))
        found = rk.inverse_kinematics(
            robot, {link: poses[link] if whole else poses[link][1] for link in links}
        )
        met += found.converged
    assert met >= 99


def test_a_humanoid_keeps_its_feet_and_its_balance():
    robot, _ = loaded("g1", "floating")
    q0 = robot.neutral()
    poses = rk.forward_kinematics(robot, q0)
    feet = [link for link in robot.link_names if "ankle_roll" in link]
    rng, count = np.random.default_rng(1), 64
    hand = poses["left_wrist_yaw_link"][1] + rng.uniform(-0.15, 0.15, (count, 3))
    targets = {foot: poses[foot] for foot in feet} | {"left_wrist_yaw_link": hand}
    found = rk.inverse_kinematics(
        robot,
        targets,
        q0,
        center_of_mass=rk.center_of_mass(robot, q0),
        weights={"center of mass": (1.0, 1.0, 0.0)},
    )
    assert found.converged.mean() > 0.95
    met = found.q[found.converged]
    moved = rk.forward_kinematics(robot, met)
    for foot in feet:
        assert np.abs(moved[foot][0] - poses[foot][0]).max() < 2e-6
        assert np.abs(moved[foot][1] - poses[foot][1]).max() < 1e-6
    assert np.abs(moved["left_wrist_yaw_link"][1] - hand[found.converged]).max() < 1e-6
    assert np.abs((rk.center_of_mass(robot, met) - rk.center_of_mass(robot, q0))[:, :2]).max() < 1e-6
