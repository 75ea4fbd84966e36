"""The laws that the equations of motion obey, on every rung of the ladder."""

from __future__ import annotations

import numpy as np
import pytest
from dense import Dense
from ladder import Plain, State, along, relative

import robokit as rk
from robokit.algorithms.kinematics import forward_kinematics
from robokit.spatial import Vector3

STEP = 1e-30


@pytest.fixture
def case(robot):
    return robot, State(robot, 1), Plain(robot)


def test_mass_matrix_is_symmetric_positive_definite(case):
    _, s, plain = case
    H = plain.crba(s.q)
    assert (H == H.T).all()
    assert np.linalg.eigvalsh(H).min() > 0.0


def test_inverse_dynamics_is_affine_in_the_acceleration(case):
    # tau = H a + C
    _, s, plain = case
    tau = plain.crba(s.q) @ s.a + plain.bias(s.q, s.v)
    assert relative(plain.rnea(s.q, s.v, s.a), tau) < 1e-12


def test_bias_without_gravity_is_quadratic_in_the_velocity(case):
    robot, s, _ = case
    plain = Plain(robot.with_gravity((0, 0, 0)))
    assert relative(plain.bias(s.q, 3.0 * s.v), 9.0 * plain.bias(s.q, s.v)) < 1e-13
    assert np.abs(plain.gravity(s.q)).max() == 0.0


def test_rnea_after_aba_is_the_identity(case):
    _, s, plain = case
    for f_ext in (None, s.f_body):
        a = plain.aba(s.q, s.v, s.tau, f_ext)
        assert relative(plain.rnea(s.q, s.v, a, f_ext), s.tau) < 1e-10


def test_aba_after_rnea_is_the_identity(case):
    _, s, plain = case
    for f_ext in (None, s.f_body):
        tau = plain.rnea(s.q, s.v, s.a, f_ext)
        assert relative(plain.aba(s.q, s.v, tau, f_ext), s.a) < 1e-10


def test_articulated_body_and_composite_body_dynamics_agree(case):
    _, s, plain = case
    assert relative(plain.aba(s.q, s.v, s.tau), plain.forward_dynamics(s.q, s.v, s.tau)) < 1e-10


def test_inverse_dynamics_in_world_and_in_body_coordinates_agree(case):
    _, s, plain = case
    assert relative(plain.rnea_world(s.q, s.v, s.a, s.f_body), plain.rnea(s.q, s.v, s.a, s.f_body)) < 1e-12


def test_mass_matrix_is_the_columns_of_inverse_dynamics(case):
    _, s, plain = case
    assert relative(plain.crba(s.q), plain.columns(s.q)) < 1e-12


def test_kinetic_energy_is_the_quadratic_form_of_the_mass_matrix(case):
    _, s, plain = case
    assert plain.kinetic(s.q, s.v) == pytest.approx(0.5 * s.v @ plain.crba(s.q) @ s.v, rel=1e-12)


def test_power_flow(case):
    # dT/dt = v . (tau - G) along the motion that tau causes.
    robot, s, plain = case
    a = plain.aba(s.q, s.v, s.tau)
    rate = plain.kinetic(along(robot, s.q, s.v), s.v + 1j * STEP * a).imag / STEP
    assert rate == pytest.approx(s.v @ (s.tau - plain.gravity(s.q)), rel=1e-9, abs=1e-9)


def test_power_flow_with_external_forces(case):
    # The bodies' own velocities carry the power of f_ext: sum of v_i . f_i.
    robot, s, plain = case
    a = plain.aba(s.q, s.v, s.tau, s.f_body)
    rate = plain.kinetic(along(robot, s.q, s.v), s.v + 1j * STEP * a).imag / STEP
    pushed = plain.bias(s.q, s.v) - plain.bias(s.q, s.v, s.f_body)
    assert rate == pytest.approx(s.v @ (s.tau + pushed - plain.gravity(s.q)), rel=1e-9, abs=1e-9)


def test_total_energy_is_conserved_without_torques(case):
    robot, s, plain = case
    a = plain.aba(s.q, s.v, np.zeros(robot.nv))
    q, v = along(robot, s.q, s.v), s.v + 1j * STEP * a
    rate = (plain.kinetic(q, v) + plain.potential(q)).imag / STEP
    assert abs(rate) < 1e-9 * max(1.0, abs(plain.potential(q).imag / STEP))


def test_h_dot_minus_two_c_does_no_work(case):
    # v . (dH/dt v) = 2 v . C v, C v free of gravity.
    robot, s, _ = case
    plain = Plain(robot.with_gravity((0, 0, 0)))
    H_dot = plain.crba(along(robot, s.q, s.v)).imag / STEP
    scale = np.abs(s.v) @ np.abs(H_dot) @ np.abs(s.v)
    assert abs(s.v @ H_dot @ s.v - 2.0 * s.v @ plain.bias(s.q, s.v)) < 1e-12 * max(1.0, scale)


def test_h_dot_is_c_plus_its_transpose(case):
    # With C = sum J^T (I Jd + v x* I J), whose product with v is the bias (see dense.py).
    robot, s, plain = case
    H_dot = plain.crba(along(robot, s.q, s.v)).imag / STEP
    C = Dense(robot, s.q, s.v).C_matrix
    assert relative(H_dot, C + C.T) < 1e-12
    assert relative(plain.bias(s.q, s.v) - plain.gravity(s.q), C @ s.v) < 1e-12


def test_h_dot_is_c_plus_its_transpose_with_christoffel_symbols(holonomic):
    # Where velocities are coordinate rates, C = 1/2 d(bias)/dv is the Christoffel matrix.
    s, plain = State(holonomic, 1), Plain(holonomic.with_gravity((0, 0, 0)))
    H_dot = plain.crba(along(holonomic, s.q, s.v)).imag / STEP
    unit = np.eye(holonomic.nv)
    q = s.q + 0j
    C = np.array([0.5 * plain.bias(q, s.v + 1j * STEP * e).imag / STEP for e in unit]).T
    assert relative(C + C.T, H_dot) < 1e-11
    assert relative(C @ s.v, plain.bias(s.q, s.v)) < 1e-12


def test_gravity_forces_are_the_gradient_of_the_potential(case):
    robot, s, plain = case
    unit = np.eye(robot.nv)
    gradient = [plain.potential(along(robot, s.q, e)).imag / STEP for e in unit]
    assert relative(gradient, plain.gravity(s.q)) < 1e-12


def test_gravity_forces_do_not_depend_on_where_the_base_stands(floating):
    s, plain = State(floating), Plain(floating)
    moved = s.q.copy()
    moved[4:7] += [3.0, -2.0, 5.0]
    assert relative(plain.gravity(moved), plain.gravity(s.q)) < 1e-13


def test_a_turn_about_the_vertical_changes_nothing(floating):
    # Body coordinates see the same gravity: H, C, G are invariant under a yaw of the base.
    s, plain = State(floating), Plain(floating)
    c, n = np.cos(0.4), np.sin(0.4)
    w, x, y, z = s.q[:4]
    turned = s.q.copy()
    turned[:4] = [c * w - n * z, c * x - n * y, c * y + n * x, c * z + n * w]
    assert relative(plain.crba(turned), plain.crba(s.q)) < 1e-12
    assert relative(plain.bias(turned, s.v), plain.bias(s.q, s.v)) < 1e-12


def test_the_base_carries_the_whole_weight(floating):
    # G's base rows are the weight in base axes with its moment about the base's origin.
    s = State(floating)
    plain, dense = Plain(floating), Dense(floating, s.q, s.v)
    R, p = dense.T[floating.joints[0].child_link][:3, :3], s.q[4:7]
    up = -dense.mass * floating.gravity
    expected = np.r_[R.T @ np.cross(dense.com - p, up), R.T @ up]
    assert relative(plain.gravity(s.q)[:6], expected) < 1e-12


def test_pendulum_by_hand():
    # I = m l^2 / 3 about the hinge, G = m g l/2 sin(angle) for a rod of length l = 1 m hanging down.
    from ladder import pendulum

    plain, q, v = Plain(pendulum()), [0.3], [1.7]
    assert plain.crba(q)[0, 0] == pytest.approx(2 / 3, rel=1e-14)
    assert plain.gravity(q)[0] == pytest.approx(2 * 9.81 * 0.5 * np.sin(0.3), rel=1e-14)
    assert plain.bias(q, v)[0] == pytest.approx(plain.gravity(q)[0], rel=1e-14)
    assert plain.kinetic(q, v) == pytest.approx(0.5 * 2 / 3 * 1.7**2, rel=1e-14)
    assert plain.potential(q) == pytest.approx(-2 * 9.81 * 0.5 * np.cos(0.3), rel=1e-14)
    assert plain.aba(q, v, [0.0])[0] == pytest.approx(-1.5 * 9.81 * np.sin(0.3), rel=1e-14)


@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (0.3, -0.2, 0.5)])
def test_the_transpose_of_a_links_jacobian_takes_a_wrench_to_joint_forces(case, at):
    # tau = G - J^T w, the wrench w = [n; f] taken about the point.
    robot, s, _ = case
    rest, w = np.zeros(robot.nv), np.arange(1.0, 7.0)
    for link in robot.link_names[::-3]:
        R, p = rk.forward_kinematics(robot, s.q, engine="python")[link]
        J = rk.link_jacobian(robot, s.q, link, at=at, engine="python")
        about_origin = np.r_[w[:3] + np.cross(p + R @ at, w[3:]), w[3:]]
        held = rk.rnea(robot, s.q, rest, rest, f_ext={link: about_origin}, engine="python")
        assert relative(held, rk.gravity_forces(robot, s.q, engine="python") - J.T @ w) < 1e-12
        turned = rk.link_jacobian(robot, s.q, link, "body", at, engine="python")
        assert relative(np.kron(np.eye(2), R) @ turned, J) < 1e-12


def test_the_jacobian_times_the_velocity_is_the_rate_of_the_pose(case):
    robot, s, _ = case
    link, at = robot.links[-1], np.array([0.3, -0.2, 0.5])
    moved = forward_kinematics(robot.tree, robot.split_q(along(robot, s.q, s.v, STEP).tolist()))[link.body]
    place = link.placement.position + link.placement.rotation @ at
    velocity = np.array(list(moved.point(Vector3(*place.tolist())))).imag / STEP
    R = np.array(moved.E.rows).T
    W = R.imag / STEP @ R.real.T  # omega x
    twist = rk.link_jacobian(robot, s.q, link.name, at=at, engine="python") @ s.v
    assert relative(twist, np.r_[W[2, 1], W[0, 2], W[1, 0], velocity]) < 1e-12
