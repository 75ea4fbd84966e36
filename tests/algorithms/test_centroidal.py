"""Laws of the centroidal momentum: what it is, how it changes, and that nothing inside can change it."""

from __future__ import annotations

import numpy as np
import pytest
from dense import Dense
from ladder import Plain, State, along, relative

STEP = 1e-30


@pytest.fixture
def case(robot):
    return robot, State(robot, 3), Plain(robot)


def test_linear_momentum_is_mass_times_velocity_of_the_center_of_mass(case):
    # l_G = M v_G (eq. 20)
    robot, s, plain = case
    velocity = plain.com(along(robot, s.q, s.v)).imag / STEP
    assert relative(plain.momentum(s.q, s.v)[3:], robot.total_mass * velocity) < 1e-12


def test_momentum_is_the_matrix_times_the_velocity(case):
    # h_G = A_G v (eq. 21)
    _, s, plain = case
    assert relative(plain.cmm(s.q) @ s.v, plain.momentum(s.q, s.v)) < 1e-13


def test_bias_is_the_rate_of_the_matrix_times_the_velocity(case):
    # dA_G/dt v (eq. 22)
    robot, s, plain = case
    A_dot = plain.cmm(along(robot, s.q, s.v)).imag / STEP
    assert relative(plain.momentum_bias(s.q, s.v), A_dot @ s.v) < 1e-12


def test_momentum_does_not_depend_on_gravity(case):
    robot, s, plain = case
    weightless = Plain(robot.with_gravity((0, 0, 0)))
    assert (weightless.momentum_bias(s.q, s.v) == plain.momentum_bias(s.q, s.v)).all()


def test_momentum_rate_is_the_external_wrench(floating):
    # A_G a + dA_G/dt v = gravity + f_ext about G, whatever the joints do.
    s, plain = State(floating, 3), Plain(floating)
    dense = Dense(floating, s.q, s.v)
    tau = s.tau.copy()
    tau[:6] = 0.0
    a = plain.aba(s.q, s.v, tau, s.f_body)
    wrench = np.r_[np.zeros(3), floating.total_mass * floating.gravity]
    for i in range(1, floating.nbodies + 1):
        T = dense.T[floating.body_name(i)]
        R, p = T[:3, :3], T[:3, 3]
        n, f = R @ s.f_body[i, :3], R @ s.f_body[i, 3:]
        wrench += np.r_[n + np.cross(p - dense.com, f), f]
    rate = plain.cmm(s.q) @ a + plain.momentum_bias(s.q, s.v)
    assert relative(rate, wrench) < 1e-9


def test_joint_torques_cannot_change_the_momentum(floating):
    robot = floating.with_gravity((0, 0, 0))
    s, plain = State(robot, 3), Plain(robot)
    tau = s.tau * 10.0
    tau[:6] = 0.0
    a = plain.aba(s.q, s.v, tau)
    rate = plain.cmm(s.q) @ a + plain.momentum_bias(s.q, s.v)
    scale = np.abs(plain.cmm(s.q)) @ np.abs(a)
    assert (np.abs(rate) < 1e-11 * scale.max()).all()


def test_momentum_about_the_center_of_mass_is_not_changed_by_a_uniform_translation(floating):
    # A base velocity that moves all bodies alike adds M u to l and nothing to k.
    s, plain = State(floating, 3), Plain(floating)
    R = Dense(floating, s.q, s.v).T[floating.joints[0].child_link][:3, :3]
    u = np.array([0.7, -0.3, 1.1])
    v = s.v.copy()
    v[3:6] += R.T @ u
    change = plain.momentum(s.q, v) - plain.momentum(s.q, s.v)
    assert relative(change, np.r_[np.zeros(3), floating.total_mass * u]) < 1e-12


def test_a_body_in_free_flight():
    # Torque-free: k_G stays; falling: l_G loses M g per second.
    from ladder import random_tree

    robot = random_tree(0, "floating")
    s, plain = State(robot), Plain(robot)
    a = plain.aba(s.q, s.v, np.zeros(robot.nv))
    rate = plain.cmm(s.q) @ a + plain.momentum_bias(s.q, s.v)
    assert relative(rate, np.r_[np.zeros(5), -9.81 * robot.total_mass]) < 1e-11
