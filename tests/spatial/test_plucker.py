"""Laws of spatial vectors and Plücker transforms, against dense 6 x 6 matrices."""

from __future__ import annotations

import numpy as np
import pytest
from dense import cross_force, cross_motion, skew
from hypothesis import given
from numpy.testing import assert_allclose
from values import array, force, matrix, motion, number, quaternion, six, three, transform

from robokit.spatial import Force, Matrix3, Motion, RigidInertia, Symmetric3, Transform, Vector3
from robokit.spatial.rotation import quat_normalized, quat_wxyz_to_rotation


def close(a, b) -> None:
    assert_allclose(a, b, rtol=1e-11, atol=1e-9)


@given(three, three, three)
def test_jacobi_identity_of_the_cross_product(a, b, c):
    a, b, c = Vector3(*a), Vector3(*b), Vector3(*c)
    total = a.cross(b.cross(c)) + b.cross(c.cross(a)) + c.cross(a.cross(b))
    close(array(total), np.zeros(3))


@given(three, three)
def test_cross_product_against_its_matrix(a, b):
    close(array(Vector3(*a).cross(Vector3(*b))), skew(a) @ b)
    close(array(Matrix3.skew(Vector3(*a)) @ Vector3(*b)), np.cross(a, b))


@given(six, six, six)
def test_jacobi_identity_of_the_motion_cross_product(a, b, c):
    a, b, c = motion(a), motion(b), motion(c)
    total = a.cross(b.cross(c)) + b.cross(c.cross(a)) + c.cross(a.cross(b))
    close(array(total), np.zeros(6))


@given(six, six)
def test_spatial_cross_products_against_dense_matrices(v, m):
    close(array(motion(v).cross(motion(m))), cross_motion(v) @ m)
    close(array(motion(v).cross_force(force(m))), cross_force(v) @ m)


@given(six, six, six)
def test_force_cross_is_minus_the_transpose_of_motion_cross(v, m, f):
    # (v x*) = -(v x)^T: m . (v x* f) = -(v x m) . f
    left = motion(m).dot(motion(v).cross_force(force(f)))
    right = -motion(v).cross(motion(m)).dot(force(f))
    close(left, right)


@given(six)
def test_a_motion_crossed_with_itself_is_zero(v):
    close(array(motion(v).cross(motion(v))), np.zeros(6))


@given(quaternion, three, six, six)
def test_power_is_invariant_under_a_change_of_coordinates(quat, r, m, f):
    # (X m) . (X* f) = m . f
    X = transform(quat, r)
    close((X @ motion(m)).dot(X.star(force(f))), motion(m).dot(force(f)))


@given(quaternion, three, six)
def test_transforms_of_motions_and_forces_against_dense_matrices(quat, r, m):
    X = transform(quat, r)
    dense = matrix(X)
    close(array(X @ motion(m)), dense @ m)
    close(array(X.star(force(m))), np.linalg.inv(dense).T @ m)
    close(array(X.T @ force(m)), dense.T @ m)


@given(quaternion, three, quaternion, three, six)
def test_composition_of_transforms(q1, r1, q2, r2, m):
    X1, X2 = transform(q1, r1), transform(q2, r2)
    close(matrix(X2 @ X1), matrix(X2) @ matrix(X1))
    close(array((X2 @ X1) @ motion(m)), array(X2 @ (X1 @ motion(m))))
    close(array((X2 @ X1).star(force(m))), array(X2.star(X1.star(force(m)))))


@given(quaternion, three, six, three)
def test_inverse_transform(quat, r, m, p):
    X = transform(quat, r)
    close(matrix(X.inverse()) @ matrix(X), np.eye(6))
    close(array(X.inverse() @ (X @ motion(m))), m)
    close(array(X.T @ X.star(force(m))), m)
    close(array(X.inverse().point(X.point(Vector3(*p)))), p)


@given(quaternion, three, six, six)
def test_cross_products_commute_with_transforms(quat, r, v, m):
    X = transform(quat, r)
    close(array(X @ motion(v).cross(motion(m))), array((X @ motion(v)).cross(X @ motion(m))))
    close(
        array(X.star(motion(v).cross_force(force(m)))), array((X @ motion(v)).cross_force(X.star(force(m))))
    )


@given(six, six, number)
def test_vectors_form_a_vector_space(a, b, s):
    for kind in (motion, force):
        u, w = kind(a), kind(b)
        close(array(u + w), np.add(a, b))
        close(array(u - w), np.subtract(a, b))
        close(array(-u), np.negative(a))
        close(array(u * s), np.multiply(a, s))
        close(array(s * u), np.multiply(a, s))
        close(array(u + kind([0.0] * 6)), a)
    assert array(Motion.zero()).tolist() == array(Force.zero()).tolist() == [0.0] * 6


def test_shifting_a_pure_rotation_gives_the_velocity_of_the_new_origin():
    # Turning at 2 rad/s about world z: a frame 3 m along x sees its origin move at 6 m/s along y.
    X = Transform(Matrix3.identity(), Vector3(3.0, 0.0, 0.0))
    seen = X @ Motion(Vector3(0.0, 0.0, 2.0), Vector3.zero())
    assert list(seen) == [0.0, 0.0, 2.0, 0.0, 6.0, 0.0]
    # A force of 5 N along y through that origin has a moment of 15 N m about the old one.
    assert list(X.T @ Force(Vector3.zero(), Vector3(0.0, 5.0, 0.0))) == [0.0, 0.0, 15.0, 0.0, 5.0, 0.0]


def test_congruence_refuses_two_different_transforms():
    X = Transform.identity()
    with pytest.raises(TypeError, match="same transform"):
        X.T @ RigidInertia.zero() @ Transform.identity()


@given(three, three, three, three, three)
def test_matrix_operations_against_numpy(a, b, c, d, v):
    A, B = Matrix3((a, b, c)), Matrix3((d, c, b))
    close(array(A + B), array(A) + array(B))
    close(array(A - B), array(A) - array(B))
    close(array(A @ B), array(A) @ array(B))
    close(array(A.T), array(A).T)
    close(array(A * 2.0), array(A) * 2.0)
    close(array(A @ Vector3(*v)), array(A) @ v)
    close(array(A.transpose_apply(Vector3(*v))), array(A).T @ v)
    assert A[0, 2] == a[2] and A[2, 1] == c[1]


@given(six, quaternion, three)
def test_symmetric_matrix_operations(c, quat, v):
    S = Symmetric3(*c)
    E = quat_wxyz_to_rotation(quat_normalized(quat))
    full = array(S.full())
    assert (full == full.T).all()
    close(array(S @ Vector3(*v)), full @ v)
    close(array(S.rotated(E).full()), array(E).T @ full @ array(E))
    assert list(Symmetric3.upper(S.full())) == list(S)
