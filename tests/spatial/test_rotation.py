"""Rotations, quaternions wxyz, exponential and logarithm, near 0 and near pi too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from values import array, quaternion, three

from robokit.spatial import Vector3
from robokit.spatial.rotation import (
    coordinate_rotation,
    exp_translation,
    log_translation,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_normalized,
    quat_wxyz_to_rotation,
)

# Across the switch from series to closed form (|phi| = 0.01 for exp, 0.02 for log) and up to pi.
ANGLES = [
    0.0,
    1e-300,
    1e-12,
    1e-8,
    1e-4,
    9.9e-3,
    0.01,
    0.0101,
    0.0199,
    0.02,
    0.0201,
    0.5,
    2.0,
    3.0,
    math.pi - 1e-3,
    math.pi - 1e-6,
]
AXES = [np.eye(3)[2], -np.eye(3)[0], np.array([2.0, -3.0, 6.0]) / 7.0]


def scipy_rotation(quat_wxyz) -> np.ndarray:
    w, x, y, z = quat_wxyz
    return Rotation.from_quat([x, y, z, w]).as_matrix()


@given(quaternion)
def test_rotation_of_a_quaternion_is_orthogonal_and_takes_body_to_world(quat):
    quat = quat_normalized(quat)
    R = array(quat_wxyz_to_rotation(quat))
    assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-13)
    assert_allclose(R, scipy_rotation(quat), atol=1e-14)


def test_order_and_sense_of_a_quaternion():
    # A quarter turn about z takes the body's x axis to the world's y axis; the scalar part stands first.
    R = array(quat_wxyz_to_rotation((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))))
    assert_allclose(R @ [1, 0, 0], [0, 1, 0], atol=1e-15)


@given(quaternion, quaternion)
def test_quaternion_product_is_the_product_of_rotations(a, b):
    a, b = quat_normalized(a), quat_normalized(b)
    product = array(quat_wxyz_to_rotation(quat_multiply(a, b)))
    assert_allclose(product, array(quat_wxyz_to_rotation(a)) @ array(quat_wxyz_to_rotation(b)), atol=1e-14)
    assert_allclose(quat_multiply(a, quat_conjugate(a)), [1, 0, 0, 0], atol=1e-15)


@given(quaternion)
def test_normalised_quaternions_are_unit_and_parallel(quat):
    unit = quat_normalized(quat)
    assert sum(c * c for c in unit) == pytest.approx(1.0, abs=1e-15)
    assert_allclose(np.array(unit) * np.linalg.norm(quat), quat, rtol=1e-13, atol=1e-13)


@given(three.filter(lambda u: np.linalg.norm(u) > 1e-3), st.floats(-7.0, 7.0))
def test_coordinate_rotation_is_the_transpose_of_the_rotation(u, angle):
    u = np.array(u) / np.linalg.norm(u)
    E = array(coordinate_rotation(Vector3(*u), math.cos(angle), math.sin(angle)))
    assert_allclose(E.T, Rotation.from_rotvec(u * angle).as_matrix(), atol=1e-13)


def test_coordinate_rotation_about_an_axis_keeps_zeros_and_ones_exact():
    E = array(coordinate_rotation(Vector3(0.0, 0.0, 1.0), 0.3, 0.4))
    assert E[2].tolist() == [0, 0, 1] and E[:, 2].tolist() == [0, 0, 1]


@for_each("angle", ANGLES)
@for_each("axis", AXES)
def test_exponential_of_a_rotation_vector(angle, axis):
    quat = quat_exp(Vector3(*axis * angle))
    assert_allclose(quat, [math.cos(angle / 2), *axis * math.sin(angle / 2)], rtol=1e-15, atol=1e-15)


@for_each("angle", ANGLES)
@for_each("axis", AXES)
def test_logarithm_inverts_the_exponential(angle, axis):
    phi = axis * angle
    assert_allclose(array(quat_log(quat_exp(Vector3(*phi)))), phi, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_logarithm_takes_the_short_way(axis):
    # q and -q are one rotation; its vector is never longer than pi.
    quat = np.array(quat_exp(Vector3(*axis * 5.0)))
    for sign in (1.0, -1.0):
        assert_allclose(array(quat_log(sign * quat)), axis * (5.0 - 2 * math.pi), atol=1e-14)
    half = array(quat_log((0.0, *axis.tolist())))
    assert_allclose(half, math.pi * axis, rtol=1e-15)


@given(quaternion)
def test_exponential_inverts_the_logarithm(quat):
    quat = np.array(quat_normalized(quat))
    again = np.array(quat_exp(quat_log(quat)))
    assert_allclose(again * np.sign(again @ quat), quat, atol=1e-14)


@for_each("angle", ANGLES)
@for_each("axis", AXES)
def test_translation_of_a_constant_twist_is_that_of_the_matrix_exponential(angle, axis):
    u = np.array([0.3, -1.2, 0.7])
    phi = axis * angle
    twist = np.zeros((4, 4))
    twist[:3, :3] = [[0, -phi[2], phi[1]], [phi[2], 0, -phi[0]], [-phi[1], phi[0], 0]]
    twist[:3, 3] = u
    got = array(exp_translation(Vector3(*phi), Vector3(*u)))
    assert_allclose(got, expm(twist)[:3, 3], rtol=0, atol=5e-13)


@for_each("angle", ANGLES)
@for_each("axis", AXES)
def test_log_translation_inverts_exp_translation(angle, axis):
    u, phi = np.array([0.3, -1.2, 0.7]), Vector3(*axis * angle)
    assert_allclose(array(log_translation(phi, exp_translation(phi, Vector3(*u)))), u, rtol=0, atol=5e-12)


def test_series_and_closed_form_meet():
    u = Vector3(0.3, -1.2, 0.7)
    # On either side of the switch the two branches agree to rounding, so nothing jumps there.
    for low, high in ((0.01 * (1 - 1e-12), 0.01 * (1 + 1e-12)), (0.02 * (1 - 1e-12), 0.02 * (1 + 1e-12))):
        for f in (
            lambda t: quat_exp(Vector3(0.0, t, 0.0)),
            lambda t: list(quat_log((math.cos(t / 2), 0.0, math.sin(t / 2), 0.0))),
            lambda t: list(exp_translation(Vector3(0.0, t, 0.0), u)),
            lambda t: list(log_translation(Vector3(0.0, t, 0.0), u)),
        ):
            assert_allclose(f(low), f(high), rtol=0, atol=2e-12)
