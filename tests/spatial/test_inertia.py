"""Rigid and articulated inertias against dense 6 x 6 matrices."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from dense import cross_force, cross_motion, dense_inertia
from for_each import for_each
from numpy.testing import assert_allclose
from values import array, force, matrix, motion, transform

from robokit.spatial import ArticulatedInertia, Matrix3, RigidInertia, Symmetric3, Vector3
from robokit.spatial.linear import ldl, ldl_solve

SEEDS = range(8)


def body(rng):
    """A rigid inertia and the same as a dense matrix."""
    mass, com = rng.uniform(0.2, 5.0), rng.standard_normal(3)
    Ic = ladder.inertia(rng, mass)
    I = RigidInertia.about_com(mass, Vector3(*com), Symmetric3.upper(Matrix3(Ic.tolist())))
    return I, dense_inertia(mass, com, Ic)


def dense(I) -> np.ndarray:
    """The matrix of any inertia, from its action on the six unit motions."""
    return np.array([array(I @ motion(e)) for e in np.eye(6)]).T


def random_transform(rng):
    return transform(rng.standard_normal(4), rng.standard_normal(3))


def articulated(rng):
    """A symmetric positive definite 6 x 6 and its three blocks."""
    A = rng.standard_normal((6, 6))
    A = A @ A.T + np.eye(6)
    blocks = (
        Symmetric3.upper(Matrix3(A[:3, :3].tolist())),
        Matrix3(A[:3, 3:].tolist()),
        Symmetric3.upper(Matrix3(A[3:, 3:].tolist())),
    )
    return ArticulatedInertia(*blocks), A


@for_each("seed", SEEDS)
def test_rigid_inertia_is_the_dense_matrix(seed):
    I, M = body(np.random.default_rng(seed))
    assert_allclose(dense(I), M, rtol=1e-13, atol=1e-13)
    assert_allclose(dense(I.articulated()), M, rtol=1e-13, atol=1e-13)


@for_each("seed", SEEDS)
def test_congruence_of_a_rigid_inertia(seed):
    rng = np.random.default_rng(seed)
    (I, M), X = body(rng), random_transform(rng)
    assert_allclose(dense(X.T @ I @ X), matrix(X).T @ M @ matrix(X), rtol=1e-12, atol=1e-12)
    assert (X.T @ I @ X).m == I.m


@for_each("seed", SEEDS)
def test_congruence_of_an_articulated_inertia(seed):
    rng = np.random.default_rng(seed)
    (I, M), X = articulated(rng), random_transform(rng)
    got = dense(X.T @ I @ X)
    assert_allclose(got, matrix(X).T @ M @ matrix(X), rtol=1e-12, atol=1e-12)
    assert_allclose(got, got.T, rtol=0, atol=1e-12)


@for_each("seed", SEEDS)
def test_kinetic_energy_is_invariant(seed):
    # v^T I v in B equals that in A, where v_B = X v_A and I_A = X^T I_B X
    rng = np.random.default_rng(seed)
    (I, _), X, v = body(rng), random_transform(rng), motion(rng.standard_normal(6))
    vB = X @ v
    assert vB.dot(I @ vB) == pytest.approx(v.dot((X.T @ I @ X) @ v), rel=1e-12)


@for_each("seed", SEEDS)
def test_the_rate_of_a_moving_inertia(seed):
    # dI/dt = v x* I - I v x in fixed coordinates (RBDA eq. 2.71), so dI/dt v = v x* I v
    rng = np.random.default_rng(seed)
    (I, M), v = body(rng), rng.standard_normal(6)
    rate = cross_force(v) @ M - M @ cross_motion(v)
    assert_allclose(array(motion(v).cross_force(I @ motion(v))), rate @ v, rtol=1e-11, atol=1e-11)


def test_inertias_add():
    rng = np.random.default_rng(1)
    (I1, M1), (I2, M2), (A, MA) = body(rng), body(rng), articulated(rng)
    assert_allclose(dense(I1 + I2), M1 + M2, rtol=1e-13)
    assert_allclose(dense(A + I1.articulated()), MA + M1, rtol=1e-13)
    assert_allclose(dense(I1 + RigidInertia.zero()), M1, rtol=1e-15)


@for_each("seed", SEEDS)
def test_inertia_of_a_point_mass_about_another_point(seed):
    rng = np.random.default_rng(seed)
    m, c = 3.0, rng.standard_normal(3)
    I = RigidInertia.about_com(m, Vector3(*c), Symmetric3.zero())
    assert_allclose(array(I.Ibar.full()), m * (c @ c * np.eye(3) - np.outer(c, c)), rtol=1e-13, atol=1e-13)
    assert_allclose(array(I.h), m * c, rtol=1e-15)


@for_each("seed", SEEDS)
def test_minus_outer_product(seed):
    rng = np.random.default_rng(seed)
    (I, M), U = articulated(rng), rng.standard_normal(6)
    got = dense(I.minus_outer(force(U), force(U * 0.7)))
    assert_allclose(got, M - 0.7 * np.outer(U, U), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axes", [(), (2,), (4,), (0, 1, 2), (2, 3), tuple(range(6))])
def test_without_clears_rows_and_columns_exactly(axes):
    I, M = articulated(np.random.default_rng(3))
    kept = [i not in axes for i in range(6)]
    assert_allclose(dense(I.without(axes)), np.where(np.outer(kept, kept), M, 0.0), rtol=1e-15, atol=0)


def test_upper_triangle_of_products():
    P, Q, R, S = np.random.default_rng(5).standard_normal((4, 3, 3))
    found = Symmetric3.of_products(*(Matrix3(x.tolist()) for x in (P, Q, R, S)))
    assert_allclose(np.triu(array(found.full())), np.triu(P @ Q.T + R @ S.T), rtol=1e-14, atol=1e-14)


def test_articulated_inertia_of_one_joint_resists_nothing_along_it():
    # I^a = I - U D^-1 U^T, U = I S: I^a S = 0 (RBDA section 7.1)
    rng = np.random.default_rng(4)
    I, M = body(rng)
    S = rng.standard_normal(6)
    U = I.articulated() @ motion(S)
    Ia = I.articulated().minus_outer(U, U * (1.0 / motion(S).dot(U)))
    assert_allclose(array(Ia @ motion(S)), np.zeros(6), atol=1e-12)
    assert_allclose(dense(Ia), M - np.outer(M @ S, M @ S) / (S @ M @ S), rtol=1e-12, atol=1e-12)


@for_each("k", [1, 2, 3, 6])
@for_each("sparse", [False, True])
def test_small_factorisation_solves(k, sparse):
    rng = np.random.default_rng(k)
    A = rng.standard_normal((k, k))
    A = A @ A.T + np.eye(k)
    if sparse:
        A = A * (np.add.outer(range(k), range(k)) % 2 == 0)
    L, dinv = ldl(A.tolist())
    assert_allclose(np.array(L) @ np.diag(1.0 / np.array(dinv)) @ np.array(L).T, A, rtol=1e-12, atol=1e-12)
    b = rng.standard_normal(k)
    assert_allclose(ldl_solve((L, dinv), b.tolist()), np.linalg.solve(A, b), rtol=1e-11, atol=1e-12)


@for_each("axis", range(3))
@for_each("angle", [0.0, 0.7, -2.0, np.pi / 2])
def test_turning_about_a_coordinate_axis_is_turning(axis, angle):
    c, s = float(np.cos(angle)), float(np.sin(angle))
    E = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    E[i, i] = E[j, j] = c
    E[i, j], E[j, i] = s, -s
    A = np.array([[2.0, 0.3, -0.4], [0.3, 5.0, 0.7], [-0.4, 0.7, 3.0]])
    turned = Symmetric3.upper(Matrix3(A.tolist())).rotated(Matrix3(E.tolist()))
    np.testing.assert_allclose(np.array(turned.full().rows), E.T @ A @ E, rtol=0, atol=1e-14)


def test_a_turn_too_small_for_its_cosine_still_turns():
    # cos 2e-8 is exactly 1.0 in double precision, sin 2e-8 is not 0: rounded angles give such frames.
    s = 2e-8
    E = Matrix3(((1.0, s, 0.0), (-s, 1.0, 0.0), (0.0, 0.0, 1.0)))
    A = Symmetric3(1.0, 2.0, 3.0, 0.4, 0.5, 0.6)
    dense = np.array(E.rows).T @ np.array(A.full().rows) @ np.array(E.rows)
    assert_allclose(np.array(A.rotated(E).full().rows), dense, atol=1e-15)
