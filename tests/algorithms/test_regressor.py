"""Laws of the regressors: forces, energies and momentum are linear in the inertial parameters, for any."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State, relative

import robokit as rk
from robokit.dynamics import long_robots
from robokit.model import armature_by_dof, couple, replace_armature

PYTHON = {"engine": "python"}


@pytest.fixture(
    params=[
        ladder.random_tree(0, "floating"),
        ladder.random_tree(1),
        ladder.chain(4, "floating"),
        ladder.pendulum(),
    ],
    ids=lambda robot: f"{robot.name}-{robot.base}",
)
def case(request):
    robot = request.param
    return robot, State(robot, 5), robot.inertial_parameters[1:].ravel()


def changed(robot: rk.Robot) -> rk.Robot:
    """The same robot with other bodies."""
    rng = np.random.default_rng(7)
    body = {}
    for link in robot.links:
        if link.name == robot.body_name(link.body) and link.body > 0:
            mass = float(rng.uniform(0.2, 5.0))
            body[link.name] = (mass, rng.uniform(-0.3, 0.3, 3), ladder.inertia(rng, mass))
    return robot.with_inertias(body)


def test_forces_are_the_regressor_times_the_parameters_of_any_bodies(case):
    robot, s, _ = case
    Y = rk.regressor(robot, s.q, s.v, s.a, **PYTHON)
    for one in (robot, changed(robot)):
        tau = rk.rnea(one, s.q, s.v, s.a, **PYTHON)
        assert relative(Y @ one.inertial_parameters[1:].ravel(), tau) < 1e-13


def test_energies_and_momentum_are_linear_in_the_parameters(case):
    robot, s, pi = case
    T, V = rk.energy_regressor(robot, s.q, s.v, **PYTHON) @ pi
    assert relative(T, rk.kinetic_energy(robot, s.q, s.v, **PYTHON)) < 1e-13
    assert relative(V, rk.potential_energy(robot, s.q, **PYTHON)) < 1e-13
    k_O, l = (rk.momentum_regressor(robot, s.q, s.v, **PYTHON) @ pi).reshape(2, 3)
    p_G = rk.center_of_mass(robot, s.q, **PYTHON)
    h_G = rk.centroidal_momentum(robot, s.q, s.v, **PYTHON)
    assert relative(np.r_[k_O - np.cross(p_G, l), l], h_G) < 1e-13


def test_power_is_the_rate_of_energy_for_every_single_parameter(case):
    # v^T Y = d/dt (row of T + row of V), column by column, along the motion of constant a.
    robot, s, _ = case
    h = 1e-4

    def energy(t: float) -> np.ndarray:
        q = robot.integrate(s.q, s.v * t + s.a * (t * t / 2))
        return rk.energy_regressor(robot, q, s.v + s.a * t, **PYTHON).sum(axis=0)

    rate = (8 * (energy(h) - energy(-h)) - energy(2 * h) + energy(-2 * h)) / (12 * h)
    assert relative(s.v @ rk.regressor(robot, s.q, s.v, s.a, **PYTHON), rate) < 1e-7


def test_a_joint_feels_only_the_bodies_that_it_carries(case):
    robot, s, _ = case
    Y = rk.regressor(robot, s.q, s.v, s.a, **PYTHON)
    rows, columns = rk.regressor_entries(robot)
    assert (Y[rows, columns] == rk.regressor_nonzeros(robot, s.q, s.v, s.a, **PYTHON)).all()
    outside = np.ones_like(Y, dtype=bool)
    outside[rows, columns] = False
    assert not Y[outside].any()
    for joint in robot.joints:
        carried = {i for i in robot.tree.subtree[joint.body] if i > 0}
        assert {1 + c // 10 for c in columns[rows == joint.v_slice.start]} == carried


def test_coupled_joints_share_their_rows():
    b = rk.ModelBuilder("pair").link("l0")
    for k in (1, 2):
        b.link(f"l{k}", 1.0 + k, (0.1, 0.2 * k, 0.3), np.eye(3) * 0.01)
        mimic = rk.Mimic("j1", -2.0, 0.1) if k == 2 else None
        b.joint(f"j{k}", "revolute", f"l{k - 1}", f"l{k}", axis=(0, 1, 0), mimic=mimic)
    robot = couple(b.build())
    q, v, a = np.array([[0.3], [-0.7], [1.1]])
    pi = robot.inertial_parameters[1:].ravel()
    assert relative(rk.regressor(robot, q, v, a, **PYTHON) @ pi, rk.rnea(robot, q, v, a, **PYTHON)) < 1e-14


@pytest.mark.parametrize("how", [{}, PYTHON], ids=["machine code", "python"])
@pytest.mark.parametrize(
    "make", [lambda: ladder.random_tree(3, "floating"), ladder.follower], ids=["tree", "coupled"]
)
def test_motors_have_columns_where_they_are_asked_for(make, how):
    bare = make()
    motors = {joint.name: 0.1 + 0.2 * k for k, joint in enumerate(bare.body_joints[1:])}
    robot = replace_armature(bare, motors)
    s, n = State(robot), 10 * robot.nbodies
    Y = rk.regressor(robot, s.q, s.v, s.a, armature=True, **how)
    pi = np.concatenate([robot.inertial_parameters[1:].ravel(), armature_by_dof(robot)])
    assert armature_by_dof(robot).any() and Y.shape == (robot.nv, n + robot.nv)
    assert relative(Y @ pi, rk.rnea(robot, s.q, s.v, s.a, **PYTHON)) < 1e-12
    np.testing.assert_array_equal(Y[:, n:], np.diag(s.a))
    assert relative(Y[:, :n], rk.regressor(robot, s.q, s.v, s.a, **how)) < 1e-14
    rows = rk.regressor(
        robot, *(np.stack([x, x]) for x in (s.q, s.v, s.a)), True, out=np.empty((2, *Y.shape)), **how
    )
    assert relative(rows, [Y, Y]) < 1e-13


@pytest.mark.parametrize("wrong", [1, None, "yes", {"joint2": 0.3}])
def test_whether_there_are_motors_is_yes_or_no(wrong):
    s = State(ladder.chain(2))
    with pytest.raises(rk.WrongType, match="armature: expected True or False"):
        rk.regressor(ladder.chain(2), s.q, s.v, s.a, armature=wrong)


def test_a_robot_that_cannot_move_has_an_empty_regressor():
    still = rk.ModelBuilder("still").link("base", 1.0, inertia=np.eye(3)).build()
    none = np.zeros(0)
    for how in ({}, PYTHON):
        assert rk.regressor(still, none, none, none, **how).shape == (0, 0)
        assert rk.regressor(still, none, none, none, True, **how).shape == (0, 0)
        assert rk.regressor_nonzeros(still, none, none, none, **how).shape == (0,)
        assert rk.energy_regressor(still, none, none, **how).shape == (2, 0)
        assert rk.momentum_regressor(still, none, none, **how).shape == (6, 0)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_the_law_holds_on_our_humanoid_in_machine_code(base):
    robot = rk.load_urdf(ladder.ROBOTS / "humanoid.urdf", base=base)
    s, pi = State(robot, 1), robot.inertial_parameters[1:].ravel()
    Y = rk.regressor(robot, s.q, s.v, s.a)
    assert relative(Y @ pi, rk.rnea(robot, s.q, s.v, s.a)) < 1e-12


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_long_robots_go_another_way_to_the_same_matrix(base, monkeypatch):
    robot = replace_armature(ladder.chain(5, base), {"joint2": 0.3})
    states = [
        np.array(x) for x in zip(*((s.q, s.v, s.a) for s in (State(robot, 1), State(robot, 2))), strict=True)
    ]
    expected = np.array([rk.regressor(robot, *one, **PYTHON) for one in zip(*states, strict=True)])
    monkeypatch.setattr(long_robots, "MOST", 0)

    assert relative(rk.regressor(robot, *states), expected) < 1e-12
    assert relative(rk.regressor(robot, states[0], *(x[0] for x in states[1:]))[0], expected[0]) < 1e-12
    motors = rk.regressor(robot, *states, armature=True)
    assert relative(motors[..., : -robot.nv], expected) < 1e-12
    np.testing.assert_array_equal(motors[..., -robot.nv :], [np.diag(a) for a in states[2]])
    rows, columns = rk.regressor_entries(robot)
    one = [x[1] for x in states]
    assert relative(rk.regressor_nonzeros(robot, *one), expected[1][rows, columns]) < 1e-12
    with pytest.raises(rk.ShapeError, match="v: expected"):
        rk.regressor(robot, states[0], np.zeros(3), states[2])
    with pytest.raises(rk.InvalidValue, match="v: expected finite numbers"):
        rk.regressor(robot, states[0], states[1] * np.nan, states[2])
