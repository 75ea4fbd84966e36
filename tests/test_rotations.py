"""Conversions of rotations: SciPy's, round trips to rounding, gimbal lock, half turns, derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import robokit as rk
from robokit import rotations as rot
from robokit.errors import InvalidValue, ShapeError

RNG = np.random.default_rng(2)


def quaternions(n=200):
    """Any, small turns, nearly half turns, and turns of pi about axes and between them."""
    q = RNG.standard_normal((n, 4))
    q[: n // 4, 1:] *= 10.0 ** RNG.uniform(-12, -2, (n // 4, 1))
    q[n // 4 : n // 2, 0] *= 10.0 ** RNG.uniform(-16, -4, n // 4)
    exact = [x for x in itertools.product((0.0, 1.0, -1.0), repeat=4) if any(x)]
    q = np.concatenate([q, exact])
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def same(a, b):
    """Angle between quaternions, at most."""
    return np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)).max()


def test_all_are_those_of_scipy():
    from scipy.spatial.transform import Rotation

    q = quaternions()
    theirs = Rotation.from_quat(q, scalar_first=True)
    R = theirs.as_matrix()
    assert np.abs(rot.quat_wxyz_to_matrix(q) - R).max() < 1e-15
    assert same(rot.matrix_to_quat_wxyz(R), q) < 1e-15
    vectors = rot.quat_wxyz_to_rotation_vector(q)
    assert np.linalg.norm(vectors, axis=1).max() <= np.pi + 1e-15
    assert np.abs(Rotation.from_rotvec(vectors).as_matrix() - R).max() < 1e-15
    assert same(rot.rotation_vector_to_quat_wxyz(theirs.as_rotvec()), q) < 1e-15
    angles = RNG.uniform(-4, 4, (300, 3))
    turned = Rotation.from_euler("xyz", angles)
    assert np.abs(rot.rpy_to_matrix(angles) - turned.as_matrix()).max() < 1e-15
    assert same(rot.rpy_to_quat_wxyz(angles), turned.as_quat(scalar_first=True)) < 1e-15
    assert np.abs(rot.matrix_to_rpy(turned.as_matrix()) - turned.as_euler("xyz")).max() < 1e-11
    axis = RNG.standard_normal((50, 3))
    unit, angle = axis / np.linalg.norm(axis, axis=1, keepdims=True), RNG.uniform(-7, 7, 50)
    expected = Rotation.from_rotvec(unit * angle[:, None])
    assert np.abs(rot.axis_angle_to_matrix(axis, angle) - expected.as_matrix()).max() < 1e-14
    assert same(rot.quat_xyzw_to_wxyz(expected.as_quat()), rot.axis_angle_to_quat_wxyz(axis, angle)) < 1e-14


def test_what_comes_back_is_the_same_rotation_to_rounding():
    q = quaternions()
    R = rot.quat_wxyz_to_matrix(q)
    back = {
        "rpy": rot.rpy_to_matrix(rot.matrix_to_rpy(R)),
        "rpy of quat": rot.rpy_to_matrix(rot.quat_wxyz_to_rpy(q)),
        "vector": rot.rotation_vector_to_matrix(rot.matrix_to_rotation_vector(R)),
        "axis": rot.axis_angle_to_matrix(*rot.matrix_to_axis_angle(R)),
        "axis of quat": rot.axis_angle_to_matrix(*rot.quat_wxyz_to_axis_angle(q)),
        "quat": rot.quat_wxyz_to_matrix(rot.quat_xyzw_to_wxyz(rot.quat_wxyz_to_xyzw(q))),
    }
    assert {k: float(np.abs(x - R).max()) for k, x in back.items() if np.abs(x - R).max() > 2e-15} == {}
    axis, angle = rot.quat_wxyz_to_axis_angle(q)
    assert np.abs(np.linalg.norm(axis, axis=1) - 1.0).max() < 1e-15
    assert angle.min() >= 0.0 and angle.max() <= np.pi + 1e-15
    assert rot.matrix_to_quat_wxyz(R)[:, 0].min() >= 0.0


def test_gimbal_lock_is_said_with_a_yaw_of_zero_and_near_it_nothing_is_lost():
    for up in (1.0, -1.0):
        for roll, yaw in RNG.uniform(-3, 3, (20, 2)):
            R = rot.rpy_to_matrix([roll, up * np.pi / 2, yaw])
            found = rot.matrix_to_rpy(R)
            assert found[2] == 0.0 and found[1] == pytest.approx(up * np.pi / 2, abs=1e-15)
            both = np.exp(1j * (roll - up * yaw))  # one angle is left
            assert abs(np.exp(1j * found[0]) - both) < 1e-14
            for off in 10.0 ** np.arange(-15.0, -3.0):
                R = rot.rpy_to_matrix([roll, up * (np.pi / 2 - off), yaw])
                assert np.abs(rot.rpy_to_matrix(rot.matrix_to_rpy(R)) - R).max() < 3e-15


def test_no_turn_and_half_turns():
    assert rot.quat_wxyz_to_rotation_vector([1, 0, 0, 0]).tolist() == [0, 0, 0]
    axis, angle = rot.quat_wxyz_to_axis_angle([-1, 0, 0, 0])
    assert axis.tolist() == [1, 0, 0] and angle == 0.0
    assert rot.matrix_to_rotation_vector(np.diag([-1, -1, 1])).tolist() == [0, 0, np.pi]
    tiny = [1e-200, 0, 0]
    assert rot.rotation_vector_to_quat_wxyz(tiny).tolist() == [1, 5e-201, 0, 0]


def test_any_leading_axes():
    q = rot.rpy_to_quat_wxyz(RNG.uniform(-1, 1, (2, 5, 3)))
    assert q.shape == (2, 5, 4)
    assert rot.quat_wxyz_to_matrix(q).shape == (2, 5, 3, 3)
    assert rot.quat_wxyz_to_matrix(q[0, 0]).shape == (3, 3)
    axis, angle = rot.quat_wxyz_to_axis_angle(q)
    assert axis.shape == (2, 5, 3) and angle.shape == (2, 5)
    assert rot.axis_angle_to_quat_wxyz(axis=[0, 0, 1], angle=np.linspace(0, 1, 7)).shape == (7, 4)
    assert rot.rpy_to_matrix(np.zeros((0, 3))).shape == (0, 3, 3)
    assert isinstance(rot.quat_wxyz_to_axis_angle([1, 0, 0, 0])[1], float)


def test_derivatives_go_through_them():
    @rk.function(
        inputs={"rpy": (3,)}, outputs={"q": (4,), "w": (3,), "R": (3, 3), "again": (3,), "angle": ()}
    )
    def of_rpy(tree, rpy):
        q = rot.rpy_to_quat_wxyz(rpy)
        R = rot.quat_wxyz_to_matrix(q)
        return q, rot.matrix_to_rotation_vector(R), R, rot.matrix_to_rpy(R), rot.quat_wxyz_to_axis_angle(q)[1]

    robot, x = rk.load_urdf(rk.find_robot("double_pendulum")), np.array([0.4, -0.7, 2.9])
    q, w, R, again, angle = of_rpy(robot, x)
    assert np.abs(q - rot.rpy_to_quat_wxyz(x)).max() < 1e-15
    assert np.abs(R - rot.rpy_to_matrix(x)).max() < 1e-15
    assert np.abs(again - x).max() < 1e-15
    assert angle == pytest.approx(np.linalg.norm(w), abs=1e-14)
    J = of_rpy.derivative("rpy")(robot, x)
    h = 1e-6
    for got, f in zip(
        J, (rot.rpy_to_quat_wxyz, lambda y: rot.matrix_to_rotation_vector(rot.rpy_to_matrix(y))), strict=False
    ):
        by_differences = np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
        assert np.abs(got - by_differences).max() < 1e-8
    assert np.abs(np.reshape(J[3], (3, 3)) - np.eye(3)).max() < 1e-13


def test_what_is_no_rotation_is_refused():
    with pytest.raises(InvalidValue, match=r"quat_wxyz\[1\]: expected a unit quaternion"):
        rot.quat_wxyz_to_matrix([[1, 0, 0, 0], [1, 1, 0, 0]])
    for bad in (np.diag([1, 1, -1]), 2 * np.eye(3), np.zeros((3, 3))):
        with pytest.raises(InvalidValue, match="matrix: expected a rotation"):
            rot.matrix_to_rpy(bad)
    with pytest.raises(InvalidValue, match="axis that is not zero"):
        rot.axis_angle_to_matrix([0, 0, 0], 1.0)
    with pytest.raises(ShapeError, match=r"rpy: expected shape \(3,\)"):
        rot.rpy_to_matrix([1, 2])
    with pytest.raises(InvalidValue, match="rpy"):
        rot.rpy_to_matrix([1, 2, np.nan])
    with pytest.raises(ShapeError, match="axis, angle"):
        rot.axis_angle_to_matrix(np.ones((2, 3)), np.ones(3))
    with pytest.raises(TypeError, match="angle"):
        rot.axis_angle_to_matrix([1, 0, 0])
