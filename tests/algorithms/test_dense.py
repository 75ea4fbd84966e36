"""Agreement of every algorithm's plain function with the dense equations of motion in dense.py."""

from __future__ import annotations

import numpy as np
import pytest
from dense import Dense
from ladder import Plain, State, relative

from robokit.algorithms.centroidal_from_h import (
    centroidal_momentum_bias_from_h,
    centroidal_momentum_matrix_from_h,
)
from robokit.algorithms.kinematics import forward_kinematics

EXACT = 1e-12


@pytest.fixture
def case(robot):
    s = State(robot)
    return robot, s, Plain(robot), Dense(robot, s.q, s.v)


def test_inverse_dynamics(case):
    _, s, plain, dense = case
    assert relative(plain.rnea(s.q, s.v, s.a), dense.tau(s.a)) < EXACT
    assert relative(plain.rnea_world(s.q, s.v, s.a), dense.tau(s.a)) < EXACT


def test_mass_matrix(case):
    _, s, plain, dense = case
    assert relative(plain.crba(s.q), dense.H) < EXACT
    assert relative(plain.columns(s.q), dense.H) < EXACT


def test_bias_and_gravity_forces(case):
    _, s, plain, dense = case
    assert relative(plain.bias(s.q, s.v), dense.C + dense.G) < EXACT
    assert relative(plain.gravity(s.q), dense.G) < EXACT


def test_forward_dynamics(case):
    _, s, plain, dense = case
    expected = np.linalg.solve(dense.H, s.tau - dense.C - dense.G)
    assert relative(plain.aba(s.q, s.v, s.tau), expected) < 1e-10
    assert relative(plain.forward_dynamics(s.q, s.v, s.tau), expected) < 1e-10


def test_center_of_mass_and_energies(case):
    _, s, plain, dense = case
    assert relative(plain.com(s.q), dense.com) < EXACT
    assert plain.kinetic(s.q, s.v) == pytest.approx(dense.T_kin, rel=EXACT)
    assert plain.potential(s.q) == pytest.approx(dense.V, rel=EXACT, abs=EXACT)


def test_centroidal_momentum(case):
    _, s, plain, dense = case
    assert relative(plain.cmm(s.q), dense.A_G) < EXACT
    assert relative(plain.momentum(s.q, s.v), dense.h_G) < EXACT
    assert relative(plain.momentum_bias(s.q, s.v), dense.bias_G) < EXACT


def test_body_poses(case):
    robot, s, plain, dense = case
    for i, X in enumerate(forward_kinematics(robot.tree, plain._q(s.q))):
        T = dense.T[robot.body_name(i)]
        assert relative(np.array(X.E.rows).T, T[:3, :3]) < EXACT
        assert relative(list(X.r), T[:3, 3]) < EXACT


def test_external_forces_in_body_coordinates(case):
    # tau loses J^T f: f_ext acts on the robot.
    robot, s, plain, dense = case
    expected = dense.tau(s.a)
    for i in range(1, robot.nbodies + 1):
        T, J = dense.T[robot.body_name(i)], dense.J[robot.body_name(i)]
        R, p = T[:3, :3], T[:3, 3]
        n, f = R @ s.f_body[i, :3], R @ s.f_body[i, 3:]
        expected = expected - J.T @ np.r_[n + np.cross(p, f), f]
    assert relative(plain.rnea(s.q, s.v, s.a, s.f_body), expected) < EXACT
    assert relative(plain.rnea_world(s.q, s.v, s.a, s.f_body), expected) < EXACT
    a = np.linalg.solve(dense.H, s.tau - (expected - dense.H @ s.a))
    assert relative(plain.aba(s.q, s.v, s.tau, s.f_body), a) < 1e-10
    assert relative(plain.forward_dynamics(s.q, s.v, s.tau, s.f_body), a) < 1e-10


def test_a_force_on_the_reference_body_does_nothing(built):
    s, plain = State(built), Plain(built)
    f = np.zeros_like(s.f_body)
    f[0] = s.f_body[0]
    assert (plain.rnea(s.q, s.v, s.a, f) == plain.rnea(s.q, s.v, s.a)).all()
    assert (plain.aba(s.q, s.v, s.tau, f) == plain.aba(s.q, s.v, s.tau)).all()


def test_centroidal_momentum_read_off_h_and_c(floating):
    s = State(floating)
    plain, dense = Plain(floating), Dense(floating, s.q, s.v)
    tree = floating.with_gravity((0, 0, 0)).tree
    assert relative(centroidal_momentum_matrix_from_h(tree, plain._q(s.q)), dense.A_G) < EXACT
    bias = list(centroidal_momentum_bias_from_h(tree, plain._q(s.q), plain._v(s.v)))
    assert relative(bias, dense.bias_G) < EXACT


def test_centroidal_momentum_from_h_needs_a_floating_base():
    from ladder import chain

    plain = Plain(chain())
    with pytest.raises(ValueError, match="floating base"):
        centroidal_momentum_matrix_from_h(plain.tree, plain._q(plain.robot.neutral()))
