"""Derivatives: the complex step through the plain functions, against finite differences on the manifold."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from ladder import Plain, State, along, inertia, relative

import robokit as rk
from robokit.model import ModelBuilder, Placement

STEP, H = 1e-30, 1e-5


def central(robot, f, q, direction):
    """Fourth-order central difference of f along a body velocity."""

    def at(k):
        return f(robot.integrate(q, k * H * direction))

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * H)


def directions(robot, count=3):
    return np.random.default_rng(9).standard_normal((count, robot.nv))


def check(robot, f, q, tolerance):
    for d in directions(robot):
        exact = np.asarray(f(along(robot, q, d, STEP))).imag / STEP
        assert np.abs(exact).max() > 0.0
        assert relative(central(robot, f, q, d), exact) < tolerance


def test_inverse_dynamics_by_position(robot):
    s, plain = State(robot, 4), Plain(robot)
    check(robot, lambda q: plain.rnea(q, s.v, s.a), s.q, 1e-8)


def test_inverse_dynamics_by_velocity(robot):
    s, plain = State(robot, 4), Plain(robot)
    for d in directions(robot):
        exact = plain.rnea(s.q + 0j, s.v + 1j * STEP * d, s.a).imag / STEP
        # Quadratic in v: the central difference is exact whatever the step.
        difference = (plain.rnea(s.q, s.v + d, s.a) - plain.rnea(s.q, s.v - d, s.a)) / 2
        assert relative(difference, exact) < 1e-12


def test_forward_dynamics_by_position(built):
    s, plain = State(built, 4), Plain(built)
    check(built, lambda q: plain.aba(q, s.v, s.tau), s.q, 1e-6)


def test_forward_dynamics_by_torque_is_the_inverse_mass_matrix(robot):
    s, plain = State(robot, 4), Plain(robot)
    inverse = np.linalg.inv(plain.crba(s.q))
    for d in directions(robot, 1):
        exact = plain.aba(s.q + 0j, s.v, s.tau + 1j * STEP * d).imag / STEP
        assert relative(exact, inverse @ d) < 1e-9


def test_mass_matrix_by_position(built):
    s, plain = State(built, 4), Plain(built)
    if built.name != "pendulum":  # whose H is constant
        check(built, plain.crba, s.q, 1e-8)


def test_center_of_mass_by_position(robot):
    s, plain = State(robot, 4), Plain(robot)
    check(robot, plain.com, s.q, 1e-9)


def test_arrays_through_the_plain_text_are_batches(built):
    states = [State(built, k) for k in range(3)]
    q, v, a, tau = (np.array([getattr(s, x) for s in states]) for x in ("q", "v", "a", "tau"))
    plain = Plain(built)
    columns = [list(x.T) for x in (q, v, a, tau)]
    got = np.stack([np.broadcast_to(x, 3) for x in _each(plain.rnea, *columns[:3])], axis=1)
    assert relative(got, [plain.rnea(s.q, s.v, s.a) for s in states]) < 1e-13
    got = np.stack([np.broadcast_to(x, 3) for x in _each(plain.aba, *columns[:2], columns[3])], axis=1)
    assert relative(got, [plain.aba(s.q, s.v, s.tau) for s in states]) < 1e-10


def _each(f, *columns):
    """The algorithm on lists of arrays, one array a coordinate."""
    return f(*columns)


def test_sympy_finds_the_pendulum_equation():
    import pytest

    sp = pytest.importorskip("sympy")
    from ladder import pendulum

    q, v, a = sp.symbols("q v a", real=True)
    tau = sp.nsimplify(Plain(pendulum()).rnea([q], [v], [a])[0], rational=True)
    expected = sp.Rational(2, 3) * a + sp.Rational(981, 100) * sp.sin(q)
    assert sp.trigsimp(sp.expand(tau - expected)) == 0


def screws(seed: int) -> rk.Robot:
    """A floating chain of helical and revolute joints: at large angles H is conditioned badly."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder("screws").link("l0", 1.0, (0.0, 0.0, 0.0), np.eye(3) * 0.1)
    for i in range(1, 5):
        builder.link(f"l{i}", float(rng.integers(1, 4)), (0.0, 0.0, 0.1), inertia(rng))
        place, kind = Placement(np.eye(3), (0.1, 0.0, 0.1)), ("helical", "revolute")[rng.integers(2)]
        builder.joint(f"j{i}", kind, f"l{i - 1}", f"l{i}", place, np.eye(3)[rng.integers(3)], pitch=0.1)
    return builder.build("floating")


@pytest.mark.parametrize("engine", ["python", "llvm"])
def test_derivatives_of_accelerations_are_exact_to_the_condition_of_the_mass_matrix(engine):
    """Against fifty digits, where columns of dID/dq are a million times what the joints feel of them."""
    import mpmath as mp

    importlib.import_module("fifty_digits")  # its functions
    errors = []
    for seed in range(6):
        robot = screws(seed)
        for k in range(3):
            rng = np.random.default_rng([seed, k])
            q, (v, tau) = robot.random_configuration(rng), rng.standard_normal((2, robot.nv))
            for joint in robot.joints:
                if joint.kind == "helical":
                    q[joint.q_slice] = rng.uniform(-1e5, 1e5)
            with mp.workdps(50):
                given = ([mp.mpf(x) for x in values.tolist()] for values in (q, v, tau))
                function = rk.functions["aba_derivatives"].flat(robot).function
                exact = [np.array(A, float).reshape(robot.nv, -1) for A in function(*given)]
            rounding = 1.1e-16 * np.linalg.cond(rk.crba(robot, q, engine="python"))
            got = rk.aba_derivatives(robot, q, v, tau, engine=engine)
            for x, y in zip(got, exact, strict=True):
                errors.append(np.abs(x - y).max() / (np.abs(y).max() * rounding))
    assert max(errors) < 2.0
