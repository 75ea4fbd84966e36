"""Robots too long for straight lines: the other ways give what the functions give."""

from __future__ import annotations

import time

import ladder
import numpy as np
import pytest

import robokit as rk
from robokit.dynamics import long_robots
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.trace.record import trace
from robokit.model import ModelBuilder, Placement

pytestmark = pytest.mark.slow

JOINTS = 9


@pytest.fixture(params=["fixed", "floating"])
def robot(request):
    return ladder.chain(JOINTS, base=request.param)


@pytest.fixture
def state(robot):
    rng = np.random.default_rng(4)
    q = np.stack([robot.random_configuration(rng) for _ in range(3)])
    return q, *rng.standard_normal((2, 3, robot.nv))


def close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def answers(robot, q, v, tau):
    """Everything that has another way."""
    H = rk.crba(robot, q)
    factor = rk.ltdl(robot, H)
    force = {robot.link_names[-1]: np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])}
    return {
        "H": H,
        "entries": rk.crba_nonzeros(robot, q),
        "L": factor.L,
        "D": factor.D,
        "x": factor.solve(tau),
        "a": rk.forward_dynamics(robot, q, v, tau, method="crba"),
        "a with forces": rk.forward_dynamics(robot, q, v, tau, force, method="crba"),
    }


@pytest.mark.parametrize("one", [True, False], ids=["one state", "a batch"])
def test_they_agree_with_the_texts(robot, state, one, monkeypatch):
    given = [x[1] for x in state] if one else state
    expected = answers(robot, *given)
    monkeypatch.setattr(long_robots, "MOST", 0)
    found = answers(ladder.chain(JOINTS, base=robot.base), *given)
    for name, value in expected.items():
        assert found[name].shape == value.shape
        close(found[name], value, 1e-13 if name in ("H", "entries") else 1e-7)
    close(rk.aba(robot, *given), found["a"], 1e-7)


@pytest.mark.parametrize("price", [0.0, np.inf], ids=["along branches", "by LAPACK"])
def test_factors_are_factors_and_solutions_solve(robot, state, price, monkeypatch):
    monkeypatch.setattr(long_robots, "MOST", 0)
    monkeypatch.setattr(long_robots, "BRANCHES_FOR_LAPACK", price)
    H = rk.crba(robot, state[0])
    factor = rk.ltdl(robot, H)
    close(np.swapaxes(factor.L, -1, -2) @ (factor.D[..., None] * factor.L), H, 1e-14)
    assert np.array_equal(np.tril(factor.L), factor.L)
    assert np.all(np.diagonal(factor.L, axis1=-2, axis2=-1) == 1.0)
    b = state[1]
    close(np.einsum("...ij,...j", H, factor.solve(b)), b, 1e-9)


def test_no_fill_in(monkeypatch):
    monkeypatch.setattr(long_robots, "MOST", 0)
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    factor = rk.ltdl(robot, rk.crba(robot, robot.neutral()))
    assert np.all(factor.L[~rk.inertia_sparsity(robot)] == 0.0)


def test_refusals_are_those_of_the_texts(monkeypatch):
    monkeypatch.setattr(long_robots, "MOST", 0)
    robot = ladder.chain(JOINTS)
    H = rk.crba(robot, np.zeros(JOINTS))
    with pytest.raises(rk.ShapeError, match=r"q: expected shape \(9,\) or \(B, 9\), got \(8,\)"):
        rk.crba(robot, np.zeros(8))
    with pytest.raises(rk.InvalidValue, match=r"q: expected finite numbers, got nan at q\[7\]"):
        rk.crba(robot, np.where(np.arange(JOINTS) == 7, np.nan, 0.0))
    with pytest.raises(rk.SingularInertia, match="not positive definite"):
        rk.ltdl(robot, -H)
    with pytest.raises(rk.InvalidValue, match=r"b: expected finite numbers, got inf at b\[0\]"):
        rk.ltdl(robot, H).solve(np.where(np.arange(JOINTS) == 0, np.inf, 0.0))


def test_single_precision_is_what_comes_back(monkeypatch):
    monkeypatch.setattr(long_robots, "MOST", 0)
    robot = ladder.chain(JOINTS)
    q, out = np.zeros(JOINTS), np.empty((JOINTS, JOINTS), np.float32)
    assert rk.crba(robot, q, dtype="float32").dtype == np.float32
    assert rk.crba(robot, q, dtype="float32", out=out) is out
    np.testing.assert_array_equal(out, rk.crba(robot, q).astype(np.float32))


def test_a_long_chain_is_quick():
    robot = ladder.chain(400)
    q = np.linspace(-1.0, 1.0, 400)
    H = rk.crba(robot, q)
    assert robot.kernels.keys().isdisjoint({"crba", "ltdl"}), "nothing was written out"
    assert rk.ltdl(robot, H).L.shape == (400, 400)


def branched(kind: str, joints: int) -> rk.Robot:
    """A star, all joints at the base, or a binary tree."""
    builder = ModelBuilder(kind).link("l0")
    for k in range(joints):
        parent = 0 if kind == "star" or k == 0 else (k - 1) // 2 + 1
        builder.link(f"l{k + 1}", 1.0 + 0.01 * k, (0.0, 0.0, 0.1), np.eye(3) * 0.02)
        place = Placement(np.eye(3), (0.01 * (k % 7), 0.0, -0.5))
        axis = ((1, 0, 0), (0, 1, 0))[k % 2]
        builder.joint(f"j{k}", "revolute", f"l{parent}", f"l{k + 1}", place, axis=axis)
    return builder.build()


def test_a_star_is_not_written_out_place_by_place():
    robot = branched("star", 1000)
    q = np.linspace(-1.0, 1.0, 1000)
    H = rk.crba(robot, q)
    factor = rk.ltdl(robot, H)
    assert robot.kernels.keys().isdisjoint({"crba", "ltdl", "ltdl_solve"})
    assert np.array_equal(H, np.diag(np.diagonal(H)))
    close(np.diagonal(H), 0.03 + 0.0001 * np.arange(1000), 1e-14)
    close(factor.solve(q), q / np.diagonal(H), 1e-14)
    assert np.array_equal(rk.crba(robot, q, dtype="float32"), H.astype(np.float32))


@pytest.mark.parametrize("rows", [None, 4])
def test_branched_robots_and_samples_of_inertias(rows, monkeypatch):
    robot, rng = branched("binary", 31), np.random.default_rng(1)
    q = rng.uniform(-1.0, 1.0, (31,) if rows is None else (rows, 31))
    v, a = rng.standard_normal((2, *q.shape))
    varied = robot.with_inertias(robot.inertial_parameters * np.linspace(1.0, 2.0, 4)[:, None, None])

    def found():
        return [
            x
            for each in (robot, varied)
            for x in (
                rk.crba(each, q),
                rk.crba_nonzeros(each, q),
                rk.inverse_mass_matrix(each, q),
                *rk.rnea_derivatives(each, q, v, a),
                *rk.aba_derivatives(each, q, v, a),
                rk.coriolis_matrix(each, q, v),
            )
        ]

    expected = found()
    monkeypatch.setattr(long_robots, "MOST", 0)
    for x, y in zip(found(), expected, strict=True):
        assert x.shape == y.shape
        close(x, y, 1e-12)


def test_zeros_of_a_large_matrix_are_written_out_in_linear_time():
    n = 500
    program = trace(
        lambda x: [[x[i] if i == j else 0.0 for i in range(n) for j in range(n)]],
        [("x", n)],
        [("H", (n, n))],
    )
    start = time.process_time()
    batch_module(program, 8, "diagonal")
    assert time.process_time() - start < 6.0, "a set built for each of 30,000 blocks took 20 s"
