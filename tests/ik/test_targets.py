"""Targets of inverse kinematics: every form of them, weights, and errors that name the argument."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ik_arms import PYTHON, arm, reachable, seven
from ladder import State

import robokit as rk


@pytest.mark.parametrize("form", ["pair", "matrix", "rows", "quaternion", "seven"])
def test_every_form_of_a_pose_is_reached(seven_arm, form):
    robot = seven_arm
    q, R, p = (x[0] for x in reachable(robot, "l7"))
    w = np.sqrt(1.0 + np.trace(R)) / 2.0
    quat = np.r_[w, np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w)]
    rows = np.c_[R, p]
    target = {
        "pair": (R, p),
        "matrix": np.r_[rows, [[0, 0, 0, 1]]],
        "rows": rows,
        "quaternion": (quat, p),
        "seven": np.r_[quat, p],
    }[form]
    found = rk.inverse_kinematics(robot, {"l7": target}, q + 0.3 * np.sin(np.arange(7)))
    assert found.converged and found.error < 1e-6 and found.message == ""
    pose = rk.forward_kinematics(robot, found.q)["l7"]
    assert np.abs(pose[0] - R).max() < 2e-6 and np.abs(pose[1] - p).max() < 1e-6
    assert found.position_error["l7"] == pytest.approx(np.linalg.norm(pose[1] - p), abs=1e-12)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_points_and_poses_of_a_tree_with_every_kind_of_joint(base):
    robot = ladder.random_tree(0, base)
    goal, start = State(robot, 1).q, State(robot, 2).q
    links, at = (robot.link_names[-1], robot.link_names[7]), np.array([0.1, 0.2, -0.3])
    poses = rk.forward_kinematics(robot, goal, **PYTHON)
    (R, p), (R2, p2) = poses[links[0]], poses[links[1]]
    targets = {links[1]: p2 + R2 @ at, links[0]: (R, p)}
    found = rk.inverse_kinematics(robot, targets, start, at={links[1]: at}, **PYTHON)
    assert found.converged, found.message
    poses = rk.forward_kinematics(robot, found.q, **PYTHON)
    assert np.abs(poses[links[0]][0] - R).max() < 2e-6 and np.abs(poses[links[0]][1] - p).max() < 1e-6
    assert np.abs(poses[links[1]][0] @ at + poses[links[1]][1] - p2 - R2 @ at).max() < 1e-6
    for joint in robot.joints:
        k = robot.tree.joint[joint.body].kind.quaternion
        if k is not None:
            assert np.linalg.norm(found.q[joint.q_slice][k : k + 4]) == pytest.approx(1.0, abs=1e-12)


def test_weights_leave_axes_free():
    robot = seven()
    q, R, p = (x[0] for x in reachable(robot, "l7"))
    start = q + 0.4 * np.cos(np.arange(7))
    direction = rk.inverse_kinematics(
        robot, {"l7": (R, p)}, start, weights={"l7": (1, 1, 0, 0, 0, 0)}, **PYTHON
    )
    got = rk.forward_kinematics(robot, direction.q, **PYTHON)["l7"]
    assert direction.converged and np.abs(got[0][:, 2] - R[:, 2]).max() < 1e-5
    assert np.abs(got[1] - p).max() > 1e-3
    height = rk.inverse_kinematics(robot, {"l7": p}, start, weights={"l7": (0, 0, 2)}, **PYTHON)
    got = rk.forward_kinematics(robot, height.q, **PYTHON)["l7"][1]
    assert height.converged and abs(got[2] - p[2]) < 1e-6 and np.abs(got[:2] - p[:2]).max() > 1e-3


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"targets": {}}, rk.ShapeError, "^targets: expected at least one"),
        ({"targets": {"hand": (0, 0, 0)}}, rk.UnknownName, "no link named 'hand'"),
        ({"targets": [0, 0, 0]}, rk.WrongType, "^targets: expected a mapping"),
        (
            {"targets": {"tip": (0, 0)}},
            rk.ShapeError,
            r"^targets\['tip'\]: expected a position .* shape \(2,\)",
        ),
        ({"targets": {"tip": "there"}}, rk.ShapeError, r"^targets\['tip'\]: expected real numbers"),
        ({"targets": {"tip": (0, 0, np.nan)}}, rk.InvalidValue, r"^targets\['tip'\]: expected finite"),
        ({"targets": {"tip": (0, 0, 1e300)}}, rk.ShapeError, "at most 1e"),
        ({"targets": {"tip": (2 * np.eye(3), (0, 0, 0))}}, rk.ShapeError, "rotation matrix"),
        ({"targets": {"tip": (-np.eye(3), (0, 0, 0))}}, rk.ShapeError, "rotation matrix"),
        (
            {"targets": {"tip": np.eye(3)}},
            rk.ShapeError,
            r"a rotation matrix without a position: give",
        ),
        ({"targets": {"tip": ((1, 1, 0, 0), (0, 0, 0))}}, rk.InvalidValue, "unit quaternion .* norm 1.41421"),
        ({"targets": {"tip": np.ones((4, 4))}}, rk.ShapeError, "last row"),
        ({"targets": {"tip": np.zeros((2, 3)), "l1": np.zeros((3, 3))}}, rk.ShapeError, "batch of"),
        ({"q0": (0, 0, 0)}, rk.ShapeError, r"^q0: expected shape \(2,\)"),
        ({"q0": (0, np.inf)}, rk.InvalidValue, "^q0: expected finite"),
        ({"q0": (0, 1e12)}, rk.InvalidValue, "^q0: expected an angle"),
        ({"q0": np.zeros((2, 2)), "targets": {"tip": np.zeros((3, 3))}}, rk.ShapeError, "batch of 2 like q0"),
        ({"at": {"l1": (0, 0, 0)}}, rk.UnknownName, "no target named 'l1'"),
        ({"at": {"tip": (0, 0)}}, rk.ShapeError, r"^at\['tip'\]: expected a point"),
        ({"weights": {"tip": (1, 1)}}, rk.ShapeError, r"^weights\['tip'\]: expected a number or \(3,\)"),
        ({"weights": {"tip": -1}}, rk.ShapeError, r"^weights\['tip'\]"),
        ({"weights": {"center of mass": 1}}, rk.UnknownName, "no target named 'center of mass'"),
        ({"center_of_mass": (0, 0)}, rk.ShapeError, "^center_of_mass: expected a position"),
        ({"posture": (0, 0, 0)}, rk.ShapeError, "^posture: expected shape"),
        ({"posture": (0, 0), "posture_weight": -1}, rk.ShapeError, "^posture_weight"),
        ({"limits": 3}, rk.WrongType, "^limits: expected True or False"),
        ({"starts": 0}, rk.ShapeError, "^starts: expected a whole number >= 1"),
        ({"starts": 2, "seed": "x", "targets": {"tip": (9, 9, 9)}}, rk.ShapeError, "^seed"),
        ({"seed": "x"}, rk.ShapeError, "^seed: expected a whole number >= 0"),
        ({"seed": -1}, rk.ShapeError, "^seed"),
        ({"tolerance": 0}, rk.ShapeError, "^tolerance"),
        ({"iterations": 1.5}, rk.ShapeError, "^iterations"),
        ({"engine": "fortran"}, rk.UnknownName, "no engine named 'fortran'"),
        ({"robot": "arm"}, rk.WrongType, "^robot: expected a Robot"),
    ],
)
def test_wrong_arguments(change, error, message):
    given = {"robot": arm(), "targets": {"tip": (1.0, 0.5, 0.0)}, "q0": (0.1, 0.2)} | PYTHON | change
    with pytest.raises(error, match=message):
        rk.inverse_kinematics(**given)
