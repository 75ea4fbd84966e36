"""Robots of hundreds of joints: what physics asks of every matrix, and what Pinocchio says of it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import robokit as rk
from robokit.dynamics import long_robots
from robokit.engine.kernel import ONE_STATE
from robokit.model import Mimic, ModelBuilder, Placement, couple

AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@cache
def robot_of(joints: int, kind: str = "chain", base: str = "fixed") -> rk.Robot:
    """Random links in a row, or in a tree whose branches leave joints of its first half."""
    rng = np.random.default_rng(joints)
    builder = ModelBuilder(f"{kind}{joints}").link("l0", 1.0, (0.0, 0.0, 0.0), np.eye(3) * 0.1)
    for k in range(joints):
        parent = k if kind != "tree" else int(rng.integers(k // 2, k // 2 + 1 + (k > 0)))
        com = rng.uniform(-0.05, 0.05, 3)
        builder.link(f"l{k + 1}", rng.uniform(0.1, 1.0), com, np.diag(rng.uniform(0.002, 0.003, 3)))
        place = Placement(np.eye(3), (0.0, 0.01 * (k % 5), 0.1))
        more = {"mimic": Mimic(f"j{k - 1}", 0.5)} if kind == "coupled" and k % 20 == 5 else {}
        builder.joint(f"j{k}", "revolute", f"l{parent}", f"l{k + 1}", place, axis=AXES[k % 3], **more)
    return builder.build(base=base)


def state_of(robot: rk.Robot, rows: int | None = None):
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(rows or 1)])
    v, a = 0.1 * rng.standard_normal((2, len(q), robot.nv))
    return (q, v, a) if rows else (q[0], v[0], a[0])


def close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def laws(robot: rk.Robot, q, v, a, tolerance: float) -> None:
    """Every matrix of a state, by what it does with vectors that other algorithms compute."""
    tau, bias = rk.rnea(robot, q, v, a), rk.bias_forces(robot, q, v)
    H, inverse = rk.crba(robot, q), rk.inverse_mass_matrix(robot, q)
    assert np.array_equal(H, H.T) and np.array_equal(inverse, inverse.T)
    assert np.all(H[~robot.inertia_pattern] == 0.0)
    close(H @ a + bias, tau, tolerance)
    rows, columns = rk.inertia_entries(robot)
    close(rk.crba_nonzeros(robot, q), H[rows, columns], 1e-13)
    factor = rk.ltdl(robot, H)
    close(factor.L.T @ (factor.D[:, None] * factor.L), H, tolerance)
    assert np.all(factor.L[~robot.inertia_pattern] == 0.0)
    close(H @ factor.solve(a), a, 1e4 * tolerance)
    close(H @ (inverse @ a), a, 1e4 * tolerance)
    close(H @ rk.forward_dynamics(robot, q, v, tau, method="crba") + bias, tau, 1e4 * tolerance)
    C = rk.coriolis_matrix(robot, q, v)
    close(C @ v, bias - rk.gravity_forces(robot, q), tolerance)
    parameters = robot.inertial_parameters[1:].reshape(-1)
    Y = rk.regressor(robot, q, v, a)
    close(Y @ parameters, tau, tolerance)
    rows, columns = rk.regressor_entries(robot)
    close(rk.regressor_nonzeros(robot, q, v, a), Y[rows, columns], 1e-13)
    motors = rk.regressor(robot, q, v, a, armature=True)
    assert np.array_equal(motors, np.hstack([Y, np.diag(a)]))

    dq, dv = rk.rnea_derivatives(robot, q, v, a)
    rng, h = np.random.default_rng(2), 1e-5
    along = rng.standard_normal(robot.nv)
    ends = [robot.integrate(q, s * h * along) for s in (1.0, -1.0)]
    forward, back = (rk.rnea(robot, x, v, a) for x in ends)
    close(dq @ along, (forward - back) / (2 * h), 1e-5)
    close(dv @ along, (rk.rnea(robot, q, v + along, a) - rk.rnea(robot, q, v - along, a)) / 2, 10 * tolerance)
    later, before = (rk.crba(robot, robot.integrate(q, s * h * v)) for s in (1.0, -1.0))
    close(C + C.T, (later - before) / (2 * h), 1e-5)
    b = rk.aba(robot, q, v, tau)
    of_a = rk.rnea_derivatives(robot, q, v, b)
    for found, forces in zip(rk.aba_derivatives(robot, q, v, tau)[:2], of_a, strict=True):
        close(H @ (found @ along), -forces @ along, 1e5 * tolerance)


@pytest.mark.parametrize(
    ("joints", "kind"), [(300, "chain"), pytest.param(130, "tree", marks=pytest.mark.slow)]
)
def test_every_matrix_of_hundreds_of_joints(joints, kind):
    robot = robot_of(joints, kind)
    laws(robot, *state_of(robot), 1e-11)
    made = {key for key in robot.kernels if isinstance(key, str)}
    assert kind == "tree" or made.isdisjoint(long_robots.WAYS), "nothing was written out"


@pytest.mark.parametrize(("name", "least", "most"), [("body_poses", 700, 1000), ("rnea", 300, 450)])
def test_code_does_not_grow_with_what_repeats(name, least, most):
    """Masses and centres of mass are random, their signs too."""
    plans = [long_robots.kernel(robot_of(n), name)._maker.planned(ONE_STATE).shared for n in (least, most)]
    short, long = (plan.written for plan in plans)
    assert long < 1.1 * short and short < 4000


def test_batches_rows_and_single_precision():
    robot = robot_of(200)
    q, v, a = state_of(robot, 3)
    calls = (
        lambda q, v, a, **how: rk.rnea_derivatives(robot, q, v, a, **how),
        lambda q, v, a, **how: rk.aba_derivatives(robot, q, v, a, **how),
        lambda q, v, a, **how: (rk.crba(robot, q, **how), rk.inverse_mass_matrix(robot, q, **how)),
        lambda q, v, a, **how: (rk.regressor(robot, q, v, a, **how), rk.coriolis_matrix(robot, q, v, **how)),
    )
    for call in calls:
        many, one, small = call(q, v, a), call(q[1], v[1], a[1]), call(q, v, a, dtype="float32")
        for x, y, z in zip(many, one, small, strict=True):
            assert np.array_equal(x[1], y)
            assert z.dtype == np.float32 and np.array_equal(z, x.astype(np.float32))
        none = call(q[:0], v[:0], a[:0])
        assert [x.shape for x in none] == [(0, *x.shape[1:]) for x in many]


@pytest.mark.slow
def test_results_are_written_where_they_are_wanted():
    robot = robot_of(130)
    q, v, a = state_of(robot)
    outs = np.empty((130, 130)), np.empty((130, 130))
    assert rk.rnea_derivatives(robot, q, v, a, out=outs) is outs
    for x, y in zip(outs, rk.rnea_derivatives(robot, q, v, a), strict=True):
        assert np.array_equal(x, y)
    with pytest.raises(rk.ShapeError, match="share memory"):
        rk.rnea_derivatives(robot, q, v, a, out=(outs[0], outs[0]))
    with pytest.raises(rk.ShapeError, match="out"):
        rk.crba(robot, q, out=np.empty((130, 129)))


@pytest.mark.slow
def test_coupled_joints_and_samples_of_inertias_of_long_robots():
    robot = robot_of(140)
    free = robot_of(140, "coupled")
    coupled = couple(free)
    (q, v, a), G = state_of(coupled), coupled.coupling.G
    full = np.array(coupled.coupling.full_q(q))
    H = rk.crba(coupled, q)
    close(H, G.T @ rk.crba(free, full) @ G, 1e-12)
    close(H @ rk.inverse_mass_matrix(coupled, q), np.eye(coupled.nv), 1e-6)
    for x, y in zip(
        rk.rnea_derivatives(coupled, q, v, a), rk.rnea_derivatives(free, full, G @ v, G @ a), strict=True
    ):
        close(x, G.T @ y @ G, 1e-11)
    close(rk.regressor(coupled, q, v, a), G.T @ rk.regressor(free, full, G @ v, G @ a), 1e-12)
    P = robot.inertial_parameters * np.linspace(1.0, 1.5, 3)[:, None, None]
    varied = robot.with_inertias(P)
    q, v, a = state_of(robot)
    for k in range(3):
        own = varied.sample(k)
        close(rk.crba(varied, q)[k], rk.crba(own, q), 1e-13)
        close(rk.rnea_derivatives(varied, q, v, a)[0][k], rk.rnea_derivatives(own, q, v, a)[0], 1e-12)
        close(rk.inverse_mass_matrix(varied, q)[k], rk.inverse_mass_matrix(own, q), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "kind", "base"), [(1000, "chain", "fixed"), (500, "tree", "floating")])
def test_every_matrix_of_many_joints(joints, kind, base):
    robot = robot_of(joints, kind, base)
    laws(robot, *state_of(robot), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("joints", "kind"), [(300, "chain"), (300, "tree")])
def test_pinocchio_says_the_same(joints, kind):
    pin = pytest.importorskip("pinocchio")
    robot = robot_of(joints, kind)
    tree, model = robot.tree, pin.Model()
    for i in range(1, tree.n + 1):
        place = pin.SE3(np.array(tree.XT[i].E.rows).T, np.array([*tree.XT[i].r]))
        axis = np.array([*tree.joint[i].S.columns[0].ang])
        model.addJoint(tree.parent[i], pin.JointModelRevoluteUnaligned(axis), place, f"j{i}")
        model.appendBodyToJoint(
            i, pin.Inertia.FromDynamicParameters(robot.inertial_parameters[i]), pin.SE3.Identity()
        )
    model.gravity.linear = robot.gravity
    data, (q, v, a) = model.createData(), state_of(robot)
    H = pin.crba(model, data, q)
    close(rk.crba(robot, q), np.triu(H) + np.triu(H, 1).T, 1e-11)
    pin.computeRNEADerivatives(model, data, q, v, a)
    for found, expected in zip(
        rk.rnea_derivatives(robot, q, v, a), (data.dtau_dq, data.dtau_dv), strict=True
    ):
        close(found, expected, 1e-9)
    close(rk.coriolis_matrix(robot, q, v), pin.computeCoriolisMatrix(model, data, q, v), 1e-9)
    close(rk.regressor(robot, q, v, a), pin.computeJointTorqueRegressor(model, data, q, v, a), 1e-9)


def test_mass_matrix_with_few_entries_is_filled_with_these(monkeypatch):
    robot = robot_of(300, "tree")
    q, _, _ = state_of(robot, 2)
    H, out = rk.crba(robot, q), np.full((300, 300), 7.0)
    assert "crba_nonzeros" in robot.kernels, "which takes a third of the time of the loops"
    assert rk.crba(robot, q[1], out=out) is out and np.array_equal(out, out.T)
    close(out, H[1], 1e-14)
    assert np.array_equal(rk.crba(robot, q, dtype="float32"), H.astype(np.float32))
    monkeypatch.setattr(long_robots, "MOST", 0)
    close(rk.crba(robot, q), H, 1e-13)


def test_forces_from_outside_do_not_stay_for_the_next_call():
    robot = robot_of(130)
    q, v, a = state_of(robot)
    forces = np.random.default_rng(3).standard_normal((131, 6))
    free, held = rk.rnea_derivatives(robot, q, v, a), rk.rnea_derivatives(robot, q, v, a, f_ext=forces)
    assert not np.allclose(free[0], held[0])
    for x, y in zip(free, rk.rnea_derivatives(robot, q, v, a), strict=True):
        assert np.array_equal(x, y)
