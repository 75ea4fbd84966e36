"""Derivatives, H^-1 and the Coriolis matrix: laws, and the complex step through other functions."""

from __future__ import annotations

from dataclasses import replace

import ladder
import numpy as np
import pytest
from ladder import Plain, State, along, forces, relative
from test_coupling import gripper

import robokit as rk
from robokit.algorithms.kinematics import forward_kinematics
from robokit.dynamics import long_robots
from robokit.model import couple

STEP = 1e-30
EXACT = 1e-11
PYTHON = {"engine": "python"}


def step(f, *arguments):
    """Derivative of f by the complex step; the arguments hold it already."""
    return np.asarray(f(*arguments)).imag / STEP


@pytest.fixture
def case(built):
    return built, State(built, 4), Plain(built)


def directions(robot):
    return np.random.default_rng(9).standard_normal((2, robot.nv))


@pytest.mark.parametrize("pushed", [False, True])
def test_inverse_dynamics(case, pushed):
    robot, s, plain = case
    f = s.f_body if pushed else None
    by_q, by_v = rk.rnea_derivatives(robot, s.q, s.v, s.a, f, **PYTHON)
    for d in directions(robot):
        assert relative(by_q @ d, step(plain.rnea, along(robot, s.q, d), s.v, s.a, f)) < EXACT
        assert relative(by_v @ d, step(plain.rnea, s.q + 0j, s.v + 1j * STEP * d, s.a, f)) < EXACT


@pytest.mark.parametrize("pushed", [False, True])
def test_forward_dynamics(case, pushed):
    robot, s, plain = case
    f = s.f_body if pushed else None
    by_q, by_v, by_tau = rk.aba_derivatives(robot, s.q, s.v, s.tau, f, **PYTHON)
    for d in directions(robot):
        assert relative(by_q @ d, step(plain.aba, along(robot, s.q, d), s.v, s.tau, f)) < EXACT
        assert relative(by_v @ d, step(plain.aba, s.q + 0j, s.v + 1j * STEP * d, s.tau, f)) < EXACT
        assert relative(by_tau @ d, step(plain.aba, s.q + 0j, s.v, s.tau + 1j * STEP * d, f)) < EXACT


def test_wrenches_in_the_world_stay_there(case):
    robot, s, plain = case
    tree = robot.tree
    wrenches = {link.name: s.rng.standard_normal(6) * 5.0 for link in robot.links if link.body > 0}

    def in_bodies(q):
        world = np.zeros((robot.nbodies + 1, 6))
        for name, wrench in wrenches.items():
            world[robot.link(name).body] += wrench
        X0 = forward_kinematics(tree, tree.split_q(list(q)))
        return [list(X.star(f)) for X, f in zip(X0, forces(world), strict=True)]

    by_q, by_v = rk.rnea_derivatives(robot, s.q, s.v, s.a, wrenches, **PYTHON)
    acceleration_by_q, _, _ = rk.aba_derivatives(robot, s.q, s.v, s.tau, wrenches, **PYTHON)
    rows = np.array(in_bodies(s.q))
    moving_along, _ = rk.rnea_derivatives(robot, s.q, s.v, s.a, rows, **PYTHON)
    assert relative(by_q, moving_along) > 1e-3 or robot.nv == 1
    for d in directions(robot):
        q = along(robot, s.q, d)
        assert relative(by_q @ d, step(plain.rnea, q, s.v, s.a, in_bodies(q))) < EXACT
        assert relative(acceleration_by_q @ d, step(plain.aba, q, s.v, s.tau, in_bodies(q))) < EXACT
        assert relative(by_v @ d, step(plain.rnea, s.q + 0j, s.v + 1j * STEP * d, s.a, rows)) < EXACT


def test_centroidal_momentum(case):
    robot, s, plain = case
    got = rk.centroidal_momentum_derivatives(robot, s.q, s.v, s.a, **PYTHON)

    def rate(q, v):
        return plain.cmm(q) @ s.a + plain.momentum_bias(q, v)

    assert relative(got.drate_da, plain.cmm(s.q)) < EXACT
    for d in directions(robot):
        q = along(robot, s.q, d)
        assert relative(got.dh_dq @ d, step(plain.momentum, q, s.v)) < EXACT
        assert relative(got.drate_dq @ d, step(rate, q, s.v)) < EXACT
        assert relative(got.drate_dv @ d, step(rate, s.q + 0j, s.v + 1j * STEP * d)) < EXACT


def test_inverse_mass_matrix(case):
    robot, s, plain = case
    inverse = rk.inverse_mass_matrix(robot, s.q, **PYTHON)
    assert (inverse == inverse.T).all()
    assert relative(plain.crba(s.q) @ inverse, np.eye(robot.nv)) < EXACT


def test_branches_that_leave_the_reference_do_not_feel_each_other():
    b = rk.ModelBuilder("two").link("ground")
    for k in (0, 1):
        b.link(f"l{k}", 1.0, (0.1, 0.2, 0.3), np.eye(3)).joint(f"j{k}", "revolute", "ground", f"l{k}")
    inverse = rk.inverse_mass_matrix(b.build(), np.array([0.1, 0.2]), **PYTHON)
    assert inverse[0, 1] == 0.0 and inverse[0, 0] > 0.0


def test_rate_of_the_mass_matrix_is_c_and_its_transpose(case):
    robot, s, plain = case
    C = rk.coriolis_matrix(robot, s.q, s.v, **PYTHON)
    rate = step(plain.crba, along(robot, s.q, s.v))
    assert relative(C + C.T, rate) < EXACT
    skew = rate - 2.0 * C
    assert relative(skew, -skew.T) < EXACT
    bias = Plain(robot.with_gravity((0, 0, 0))).bias(s.q, s.v)
    assert relative(C @ s.v, bias) < EXACT


@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ladder.COORDINATE_KINDS])
def test_coriolis_matrix_is_made_of_christoffels_symbols(kinds):
    robot = ladder.random_tree(5, kinds=kinds, n=7)
    s, plain = State(robot, 4), Plain(robot)
    dH = np.stack([step(plain.crba, s.q + 1j * STEP * e) for e in np.eye(robot.nv)], axis=2)
    symbols = 0.5 * (
        dH + dH.transpose(0, 2, 1) - dH.transpose(2, 1, 0)
    )  # of i, j, k: H_ij,k + H_ik,j - H_jk,i
    C = rk.coriolis_matrix(robot, s.q, s.v, **PYTHON)
    assert relative(C, symbols @ s.v) < EXACT


def test_turning_and_moving_a_floating_base_changes_its_own_acceleration_alone():
    robot = ladder.chain(4, "floating")
    s = State(robot)
    by_q, _, _ = rk.aba_derivatives(robot, s.q, s.v, s.tau, **PYTHON)
    assert not by_q[:3, :6].any() and not by_q[6:, :6].any() and not by_q[:, 3:6].any()
    assert np.linalg.norm(by_q[3:6, :3]) == pytest.approx(np.sqrt(2.0) * 9.81)


@pytest.mark.parametrize("world", [False, True])
def test_a_uniform_velocity_changes_the_bases_own_acceleration_alone(world):
    """In the base's axes, and by its turning: -omega x that velocity. Forces from outside change nothing."""
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    s = State(robot)
    q, v, tau = s.q, s.v, s.tau
    rng = np.random.default_rng(5)
    f_ext = (
        {robot.link_names[-1]: rng.standard_normal(6)}
        if world
        else rng.standard_normal((robot.nbodies + 1, 6))
    )
    _, dv, _ = rk.aba_derivatives(robot, q, v, tau, f_ext=f_ext)
    moved = v.copy()
    moved[3:6] += (1.0, -2.0, 3.0)
    change = rk.aba(robot, q, moved, tau, f_ext=f_ext) - rk.aba(robot, q, v, tau, f_ext=f_ext)
    np.testing.assert_allclose(dv[:, 3:6] @ (1.0, -2.0, 3.0), change, atol=1e-9 * np.abs(change).max())
    np.testing.assert_allclose(dv[3:6, 3:6] @ (1.0, -2.0, 3.0), np.cross((1.0, -2.0, 3.0), v[:3]))
    assert (dv[:3, 3:6] == 0.0).all() and (dv[6:, 3:6] == 0.0).all()


def test_rotors_count_in_the_accelerations_only():
    robot = ladder.chain(3)
    rotors = ((), *((0.3 + 0.1 * i,) for i in range(3)))
    heavy = replace(robot, tree=replace(robot.tree, armature=rotors))
    s = State(robot)
    inverse = rk.inverse_mass_matrix(heavy, s.q, **PYTHON)
    H = Plain(robot).crba(s.q) + np.diag([0.3, 0.4, 0.5])
    assert relative(inverse @ H, np.eye(3)) < EXACT
    assert relative(rk.aba_derivatives(heavy, s.q, s.v, s.tau, **PYTHON)[2] @ H, np.eye(3)) < EXACT


def test_a_robot_without_joints_has_empty_matrices():
    robot = rk.ModelBuilder("rock").link("rock", 1.0, inertia=np.eye(3)).build()
    nothing = np.zeros(0)
    for matrices in (
        rk.rnea_derivatives(robot, nothing, nothing, nothing),
        rk.aba_derivatives(robot, nothing, nothing, nothing),
        (rk.inverse_mass_matrix(robot, nothing), rk.coriolis_matrix(robot, nothing, nothing)),
    ):
        assert all(x.shape == (0, 0) for x in matrices)


def test_a_singular_joint_is_named():
    b = rk.ModelBuilder("r").link("ground").link("a", 1.0, inertia=np.eye(3)).link("tip")
    b.joint("j", "revolute", "ground", "a").joint("loose", "revolute", "a", "tip")
    robot, two = b.build(), np.zeros(2)
    for call in (
        lambda: rk.inverse_mass_matrix(robot, two),
        lambda: rk.aba_derivatives(robot, two, two, two),
    ):
        with pytest.raises(rk.SingularInertia, match="'loose'"):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_robots_too_long_to_write_out(base, monkeypatch):
    robot = (
        couple(gripper(base))
        if base == "fixed"
        else ladder.random_tree(3, base, ("revolute", "spherical", "prismatic"), n=4)
    )
    states = [State(robot, k) for k in range(2)]
    q, v, a = (np.array([getattr(s, x) for s in states]) for x in "qva")
    wrenches = {link.name: np.arange(6.0) + link.body for link in robot.links if link.body > 0}
    calls = (
        lambda q, v, a, **how: rk.rnea_derivatives(robot, q, v, a, **how),
        lambda q, v, a, **how: rk.rnea_derivatives(robot, q, v, a, wrenches, **how),
        lambda q, v, a, **how: rk.aba_derivatives(robot, q, v, a, wrenches, **how),
        lambda q, v, a, **how: (
            rk.inverse_mass_matrix(robot, q, **how),
            rk.coriolis_matrix(robot, q, v, **how),
        ),
    )
    expected = [call(q, v, a, **PYTHON) for call in calls]
    monkeypatch.setattr(long_robots, "MOST", -1)
    for call, wanted in zip(calls, expected, strict=True):
        got = call(q, v, a)
        assert max(relative(x, y) for x, y in zip(got, wanted, strict=True)) < EXACT
        got = call(q[0], v[0], a[0], dtype="float32")
        assert all(x.dtype == np.float32 and x.shape == y.shape[1:] for x, y in zip(got, wanted, strict=True))
    outs = [np.empty_like(x) for x in expected[1]]
    assert rk.rnea_derivatives(robot, q, v, a, wrenches, out=outs) is outs
    assert max(relative(x, y) for x, y in zip(outs, expected[1], strict=True)) < EXACT
    with pytest.raises(rk.ShapeError, match="2 outputs, got 1 arrays"):
        rk.rnea_derivatives(robot, q, v, a, out=outs[:1])


def test_the_recorded_graphs_have_the_same_derivatives(case):
    robot, s, _ = case
    for name, directions, given in (
        ("rnea", ("q", "v"), (s.q, s.v, s.a)),
        ("aba", ("q", "v", "tau"), (s.q, s.v, s.tau)),
    ):
        analytic = getattr(rk, f"{name}_derivatives")(robot, *given, **PYTHON)
        graphs = rk.functions[name].derivative(*directions)(robot, *given, **PYTHON)
        assert max(relative(x, y) for x, y in zip(analytic, graphs, strict=True)) < 1e-12
    change = rk.centroidal_momentum_derivatives(robot, s.q, s.v, s.a, **PYTHON)
    graph = rk.functions["centroidal_momentum"].derivative("q")(robot, s.q, s.v, **PYTHON)
    assert relative(change.dh_dq, graph) < 1e-12
