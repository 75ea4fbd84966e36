"""The error of a pose, and its derivative."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State, relative

import robokit as rk
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.pose_error import Frame, Target, pose_error, pose_error_columns, rodrigues
from robokit.dynamics.choices import link_frame
from robokit.spatial import Matrix3, Vector3

AT = np.array([0.3, -0.2, 0.5])


def turn(axis, angle):
    """Rotation matrix by Rodrigues' formula."""
    K = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 2.0, 3.1, np.pi - 1e-9, np.pi])
def test_rodrigues_parameters_at_every_angle(angle):
    rng = np.random.default_rng(0)
    for axis in (*np.eye(3), *-np.eye(3), *rng.standard_normal((20, 3))):
        u = axis / np.linalg.norm(axis)
        got = np.array(list(rodrigues(Matrix3(turn(u, angle).tolist()))))
        expected = np.tan(angle / 4.0) * u
        if angle > np.pi - 1e-6:  # both ways round are as far
            got *= np.sign(got @ expected)
        assert np.abs(got - expected).max() < 1e-8


def case(robot, turned, seed=0):
    rng, link = np.random.default_rng(seed), robot.link_names[-1]
    R = ladder.rotation(rng) if turned else None
    p = rng.standard_normal(3)
    target = Target(Vector3(*AT), Vector3(*p), Matrix3(R.tolist()) if turned else None)
    frame = Frame(*link_frame(robot, link), turned)

    def error(q):
        X0 = dict(enumerate(forward_kinematics(robot.tree, robot.split_q(q.tolist()))))
        return np.array(pose_error(frame, target, X0)), X0

    return link, R, p, frame, target, error


@pytest.mark.parametrize("turned", [False, True])
def test_the_derivative_is_that_of_the_error_and_made_of_the_links_jacobian(built, turned):
    robot, s = built, State(built, 6)
    link, R, _, frame, target, error = case(robot, turned)
    e, X0 = error(s.q)
    J = np.zeros((len(e), robot.nv))
    for k, column in pose_error_columns(robot.tree, frame, target, X0).items():
        J[:, k] = column
    for d in np.random.default_rng(1).standard_normal((3, robot.nv)):
        h = 1e-4
        points = [error(robot.integrate(s.q, k * h * d))[0] for k in (-2, -1, 1, 2)]
        slope = (points[0] - 8.0 * points[1] + 8.0 * points[2] - points[3]) / (12.0 * h)
        assert relative(J @ d, slope) < 1e-9
    world = rk.link_jacobian(robot, s.q, link, at=AT, engine="python")
    assert relative(J[-3:], R.T @ world[3:] if turned else world[3:]) < 1e-13


def test_near_the_target_the_error_is_the_rotation_vector(built):
    robot, s = built, State(built, 6)
    link, _, _, frame, _, _ = case(robot, True)
    R, p = rk.forward_kinematics(robot, s.q, engine="python")[link]
    phi = 1e-5 * np.array([0.3, -0.5, 0.8])
    away = R @ turn(phi / np.linalg.norm(phi), -np.linalg.norm(phi))
    target = Target(Vector3(0.0, 0.0, 0.0), Vector3(*(p - (0.1, 0.2, 0.3))), Matrix3(away.tolist()))
    X0 = dict(enumerate(forward_kinematics(robot.tree, robot.split_q(s.q.tolist()))))
    e = pose_error(frame, target, X0)
    assert np.abs(np.array(e) - [*phi, *away.T @ (0.1, 0.2, 0.3)]).max() < 1e-14
