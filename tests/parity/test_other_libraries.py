"""Functions in CasADi and JAX: values, derivatives through their own differentiation, batches."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State, relative

import robokit as rk

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def robot():
    return ladder.random_tree(0, "floating", ("revolute", "prismatic"), n=2)


@pytest.fixture
def jax():
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


@rk.function(inputs={"q": "q", "K": (2, 3), "gain": ()}, outputs={"e": (), "u": (2,)})
def mixed(tree, q, K, gain):
    u = [gain * sum(K[3 * i + j] * q[-1][0] for j in range(3)) + i * q[-2][0] for i in range(2)]
    return {"e": u[0] * u[1], "u": u}


def tangents(robot, q, gradient):
    """Derivatives by the coordinates of q as derivatives along robot.integrate."""
    h, columns = 1e-6, []
    for k in range(robot.nv):
        step = np.zeros(robot.nv)
        step[k] = h
        columns.append((robot.integrate(q, step) - robot.integrate(q, -step)) / (2 * h))
    return gradient @ np.array(columns).T


def test_casadi_takes_a_robot_of_other_inertias(robot):
    """Whose machine code has the inertias as an input: in CasADi they are numbers."""
    other, s = robot.with_inertias(1.5 * robot.inertial_parameters), State(robot)
    for name, given in (
        ("rnea", (s.q, s.v, s.a)),
        ("aba", (s.q, s.v, s.tau)),
        ("regressor", (s.q, s.v, s.a)),
    ):
        f = rk.functions[name].to_casadi(other)
        expected = getattr(rk, name)(other, *given)
        assert f.n_in() == len(given)
        assert relative(np.array(f(*given)).reshape(expected.shape), expected) < 1e-12
    slope = rk.functions["kinetic_energy"].gradient("v").to_casadi(other)
    assert relative(np.array(slope(s.q, s.v)).ravel(), rk.crba(other, s.q) @ s.v) < 1e-12


def test_casadi_has_the_operations_and_differentiates_them(robot):
    s = State(robot)
    for name, given in (("aba", (s.q, s.v, s.tau)), ("rnea", (s.q, s.v, s.a)), ("crba", (s.q,))):
        f = rk.functions[name].to_casadi(robot)
        assert f.name_in() == [*rk.functions[name].inputs] and f.size_out(0)[0] == robot.nv
        assert (
            relative(np.array(f(*given)).reshape(robot.nv, -1).squeeze(), getattr(rk, name)(robot, *given))
            < 1e-12
        )
    f = rk.functions["aba"].to_casadi(robot)
    by_q, by_v, by_tau = f.jacobian()(s.q, s.v, s.tau, f(s.q, s.v, s.tau))
    expected = rk.functions["aba"].derivative("q", "v", "tau")(robot, s.q, s.v, s.tau)
    assert relative(tangents(robot, s.q, np.array(by_q)), expected[0]) < 1e-8
    assert relative(np.array(by_v), expected[1]) < 1e-11 and relative(np.array(by_tau), expected[2]) < 1e-11


def test_casadi_has_matrices_numbers_and_rows_of_poses(robot):
    s, K = State(robot), np.arange(6.0).reshape(2, 3)
    e, u = mixed.to_casadi(robot)(s.q, K, 0.5)
    expected = mixed(robot, s.q, K, 0.5)
    assert relative(float(e), expected.e) < 1e-14 and relative(np.array(u).ravel(), expected.u) < 1e-14
    poses = rk.functions["forward_kinematics"].to_casadi(robot)(s.q)
    expected = rk.forward_kinematics(robot, s.q).matrices
    assert relative(np.array(poses).reshape(expected.shape), expected) < 1e-14


def test_casadi_has_choices_and_elementary_functions():
    from robokit.spatial.elementary import atan2, exp, log, tanh
    from robokit.spatial.scalars import floor, where

    robot = rk.load_urdf(rk.find_robot("double_pendulum"))

    def text(tree, q, v):
        (x,), (y,), u = q[1], q[2], v[1][0]
        some = where((x > 0.1) & ~(u < 0.0) | (y == 1.0), x % 0.3, abs(u))
        return [some, exp(x) + log(abs(y)) * tanh(u), atan2(y, u), floor(3.0 * x)]

    f = rk.function(text, inputs=("q", "v"), outputs={"z": (4,)})
    made = f.to_casadi(robot)
    for q, v in (([0.5, 0.2], [1.3, -2.0]), ([0.5, -1.2], [-0.4, 0.0]), ([-0.7, 1.0], [-1.0, 0.0])):
        assert relative(np.array(made(q, v)).ravel(), f(robot, q, v)) < 1e-14
        assert relative(np.array(made.jacobian()(q, v, 0)[0]), f.derivative("q")(robot, q, v)) < 1e-13


def test_jax_has_our_derivative_in_both_modes(robot, jax):
    s = State(robot)
    expected = rk.functions["aba"].derivative("q", "v", "tau")(robot, s.q, s.v, s.tau)
    for mode, jacobian in (("reverse", jax.jacrev), ("forward", jax.jacfwd)):
        f = rk.functions["aba"].to_jax(robot, mode=mode)
        assert relative(f(s.q, s.v, tau=s.tau), rk.aba(robot, s.q, s.v, s.tau)) < 1e-14
        found = jax.jit(jacobian(f, argnums=(0, 1, 2)))(s.q, s.v, s.tau)
        assert relative(tangents(robot, s.q, np.array(found[0])), expected[0]) < 1e-8
        assert all(relative(a, b) < 1e-11 for a, b in zip(found[1:], expected[1:], strict=True))


def test_jax_has_batches_gradients_and_second_derivatives(robot, jax):
    states = [State(robot, k) for k in range(4)]
    q, v = (np.array([getattr(s, x) for s in states]) for x in ("q", "v"))
    energy = rk.functions["kinetic_energy"].to_jax(robot)
    many = jax.jit(jax.vmap(jax.grad(energy, argnums=1)))(q, v)
    H = rk.crba(robot, q)
    assert relative(many, np.einsum("bij,bj->bi", H, v)) < 1e-12
    hessians = jax.vmap(jax.jacrev(jax.grad(energy, argnums=1), argnums=1), in_axes=(0, None))(q, v[0])
    assert relative(hessians, H) < 1e-12
    f = mixed.to_jax(robot)
    K = np.arange(6.0).reshape(2, 3)
    by_K, by_gain = jax.grad(lambda K, gain: f(q[0], K, gain).e, argnums=(0, 1))(K, 0.5)
    h, near = 1e-6, lambda K, gain: mixed(robot, q[0], K, gain).e
    assert by_gain == pytest.approx((near(K, 0.5 + h) - near(K, 0.5 - h)) / (2 * h), rel=1e-7)
    step = h * np.eye(6)[4].reshape(2, 3)
    assert by_K[1, 1] == pytest.approx((near(K + step, 0.5) - near(K - step, 0.5)) / (2 * h), rel=1e-7)


@pytest.mark.parametrize("way", ["jacfwd", "hessian"])
def test_jax_says_which_mode_a_forward_derivative_takes(robot, jax, way):
    f = rk.functions["potential_energy"].to_jax(robot)
    derivative = getattr(jax, way)(f)
    for made in (derivative, jax.jit(derivative)):
        with pytest.raises(
            TypeError, match=r"potential_energy: .* for jax.jvp and jax.jacfwd use to_jax\(mode='forward'\)"
        ):
            made(robot.neutral())


def test_jax_says_what_is_wrong(robot, jax):
    s, f = State(robot), rk.functions["crba"].to_jax(robot)
    with pytest.raises(rk.ShapeError, match=r"q: expected shape .* got \(2, .*jax.vmap makes batches"):
        f(np.stack([s.q, s.q]))
    with pytest.raises(rk.UnknownName, match="no mode named 'both'"):
        rk.functions["crba"].to_jax(robot, mode="both")
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(rk.ShapeError, match="crba: robokit computes in double precision, and JAX's is off"):
        f(s.q)
