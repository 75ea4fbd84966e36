"""Rollouts and simulations on a card, which is the host's, beside those of the processor: the same bits."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

import robokit as rk
from robokit.engine.cuda import arrays, straight_code

B = 3


@pytest.fixture(scope="module")
def pendulum():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


@pytest.fixture(scope="module")
def q(pendulum):
    return np.random.default_rng(0).normal(size=(B, pendulum.nq))


@pytest.fixture
def tau(pendulum):
    return np.random.default_rng(1).normal(size=(40, B, pendulum.nv))


def same(a, b):
    return all(np.array_equal(getattr(a, x), getattr(b, x), equal_nan=True) for x in ("t", "q", "v"))


@pytest.mark.slow
def test_rollouts_have_the_bits_of_the_processor(card, pendulum, q, tau):
    """Forces that change, single precision, measures, actuators, a row that fails, samples of inertias."""
    many = pendulum.with_inertias(pendulum.inertial_parameters * np.linspace(1, 2, B)[:, None, None])
    endless = tau.copy()
    endless[10, 1] = 1e300
    warned = pytest.warns(rk.SimulationWarning, match="1 of 3 rows are no longer finite, row 1")
    for robot, q0, options in (
        (pendulum, q, {}),
        (pendulum, q, {"tau": tau, "dtype": "float32"}),
        (pendulum, q, {"tau": tau, "measures": True, "record_every": 3}),
        (pendulum, q, {"actuators": rk.PD(kp=5.0, kd=0.3, target=np.ones((B, 2)))}),
        (many, q, {"tau": tau[0]}),
        (pendulum, q, {"tau": endless}),
    ):
        fails = options.get("tau") is endless
        with warned if fails else contextlib.nullcontext():
            runs = [rk.rollout(robot, q0, steps=40, device=device, **options) for device in ("cuda", "cpu")]
        assert same(*runs) and [each.device for each in runs] == ["cuda:0", "cpu"]
        assert runs[0].failed.tolist() == runs[1].failed.tolist() == ([1] if fails else [])
        assert runs[0].failed_time.tolist() == runs[1].failed_time.tolist()
        for name, column in runs[1].measures.items():
            assert np.array_equal(runs[0].measures[name], column, equal_nan=column.dtype.kind == "f"), name
    assert np.array_equal(runs[0].trajectory(0).q, runs[0].q[:, 0])
    assert not card.held


def test_the_dtype_is_that_of_a_start_on_the_card(card, pendulum, q):
    torch = pytest.importorskip("torch")
    single = torch.tensor(q, dtype=torch.float32)
    for dtype, wanted in ((None, "float32"), (torch.float64, "float64")):
        sim = rk.Simulation(pendulum, single, batch=B, dtype=dtype)
        run = rk.rollout(pendulum, single, steps=2, dtype=dtype)
        assert sim.q.dtype == getattr(torch, wanted) and run.q.dtype == wanted
    assert rk.rollout(pendulum, q, steps=2, device="cuda").q.dtype == float
    with pytest.raises(rk.ShapeError, match=r'tau: expected float64, got float32; .* dtype="float32"'):
        sim.step(single)


def test_a_simulation_of_numpys_arrays_shows_its_memory(card, pendulum, q, tau):
    there, here = (rk.Simulation(pendulum, q, batch=B, device=device) for device in ("cuda", "cpu"))
    state = None
    for k in range(10):
        for sim in (there, here):
            sim.step(tau=tau[k], steps=2)
        if k == 5:
            state = there.state()
            after = np.asarray(there.q)
    assert there.q.shape == (B, 2) and np.array_equal(there.q, here.q) and np.array_equal(there.v, here.v)
    assert not np.array_equal(after, there.q) and there.q.__dlpack_device__() == (1, 0)
    mask = np.array([True, False, True])
    for sim in (there, here):
        sim.reset(rows=np.zeros(B, bool))
        sim.reset(q[mask], rows=mask)
        sim.step(steps=5)
    assert np.array_equal(there.q, here.q) and there.failed.tolist() == [False] * B
    there.restore(state)
    assert np.array_equal(there.q, after) and there.steps == 12
    with pytest.raises(rk.ShapeError, match="expected one of a simulation with the same arguments"):
        rk.Simulation(pendulum, q, batch=B, device="cuda", dt=2e-3).restore(state)
    single = rk.Simulation(pendulum, q, batch=B, device="cuda", dtype="float32")
    for sim, words in ((here, "cuda, float64 instead of cpu"), (single, "float64 instead of cuda, float32")):
        with pytest.raises(rk.ShapeError, match=f"other device or dtype: .*{words}"):
            sim.restore(state)
    own = here.state()
    earlier = tuple(x for x in own.about if x[0] != "layout")
    with pytest.raises(rk.ShapeError, match="this version of robokit, got one of another"):
        here.restore(replace(own, about=earlier))
    with pytest.raises(rk.ShapeError, match="other device or dtype: cpu instead of cuda"):
        there.restore(own)


def test_what_a_controller_holds_belongs_to_the_state(card, pendulum, q):
    def law(t, q, v):
        return -2.0 * np.asarray(q) - 0.1 * np.asarray(v)

    sim = rk.Simulation(pendulum, q, batch=B, device="cuda", controller=law, control_every=4)
    sim.step(steps=6)
    state = sim.state()
    sim.step(steps=5)
    after = np.array(sim.q)
    sim.restore(state)
    sim.step(steps=5)
    assert np.array_equal(sim.q, after)


def test_what_a_card_does_not_do_is_said(card, pendulum, q, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(straight_code, "MOST", 3)
    for call, text in (
        (
            lambda: rk.Simulation(pendulum, q[0], device="cuda"),
            "a card moves many robots at once",
        ),
        (lambda: rk.Simulation(pendulum, q, batch=B, device="cuda", threads=2), "threads: expected None"),
        (lambda: rk.Simulation(pendulum, q, batch=B, dtype="float32"), 'dtype: expected None or "float64"'),
        (lambda: rk.rollout(pendulum, q, steps=2, device="cuda", threads=2), "threads: expected None"),
        (lambda: rk.coriolis_matrix(pendulum, q, q, device="cuda"), "no code for a card .* more than 3 to"),
        (lambda: rk.rollout(pendulum, q, steps=2, device="tpu"), 'device: expected "cpu", "cuda"'),
    ):
        with pytest.raises(rk.RobokitError, match=text):
            call()


@pytest.mark.parity
def test_a_simulation_of_tensors_is_one_of_tensors(card, pendulum, q, tau):
    """Their memory is that of the steps; joint forces, targets, masks and a controller are tensors too."""
    torch = pytest.importorskip("torch")
    sim = rk.Simulation(pendulum, torch.tensor(q), batch=B)
    here = rk.Simulation(pendulum, q, batch=B)
    seen, place = sim.q, sim.q.data_ptr()
    for k in range(7):
        sim.step(tau=torch.tensor(tau[k]))
        here.step(tau=tau[k])
    assert isinstance(seen, torch.Tensor) and seen.data_ptr() == sim.q.data_ptr() == place
    assert np.array_equal(seen, here.q) and sim.v.stride() == (1, B)
    mask = torch.tensor([False, True, True])
    sim.reset(torch.zeros(2, 2, dtype=torch.float64), rows=mask)
    here.reset(np.zeros((2, 2)), rows=mask.numpy())
    pd = {"actuators": rk.PD(kp=5.0, kd=0.3), "batch": B}
    for a, b in (
        (sim, here),
        (rk.Simulation(pendulum, torch.tensor(q), **pd), rk.Simulation(pendulum, q, **pd)),
    ):
        given = {"targets": np.full((B, 2), 0.3)} if a.driven else {}
        for _ in range(3):
            a.step(**{k: torch.tensor(x) for k, x in given.items()}, steps=2)
            b.step(**given, steps=2)
        assert np.array_equal(a.q, b.q)
    calls = []

    def law(t, q, v):
        calls.append(t)
        return -2.0 * q - 0.1 * v

    a = rk.Simulation(pendulum, torch.tensor(q), batch=B, controller=law, control_every=2)
    b = rk.Simulation(pendulum, q, batch=B)
    a.step(steps=6)
    for _ in range(3):
        b.step(tau=(-2.0 * b.q) - 0.1 * b.v, steps=2)
    assert np.array_equal(a.q, b.q) and np.allclose(calls, [0.0, 2 * a.dt, 4 * a.dt])
    for wrong, text in (
        ({"tau": torch.zeros(B, 3, dtype=torch.float64)}, r"tau: expected shape \(2,\) or \(3, 2\)"),
        ({"tau": torch.zeros(B, 2)}, "tau: expected float64"),
    ):
        with pytest.raises(rk.ShapeError, match=text):
            sim.step(**wrong)
    with pytest.raises(rk.RobokitError, match="tau: on a card, and the simulation is not"):
        here.step(tau=torch.tensor(tau[0]))
    assert arrays.TORCH.number(seen) == 0


@pytest.mark.slow
def test_contacts_on_a_card(card):
    """A quadruped on its feet and above: rollout, steps with motors and forces, resets, restored."""
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    q = np.tile(rk.standing_configuration(robot), (B, 1))
    q[:, 6] += [0.0, 0.01, 0.05]
    tau = np.random.default_rng(0).normal(size=(6, B, robot.nv))
    options = {"ground": True, "reproducible": True, "dt": 1e-3}
    runs = [rk.rollout(robot, q, steps=60, device=device, **options) for device in ("cuda", "cpu")]
    assert same(*runs) and np.array_equal(runs[0].contact_force, runs[1].contact_force)
    options |= {"batch": B, "actuators": rk.PD(kp=50.0, kd=1.0)}
    there, here = (rk.Simulation(robot, q, device=device, **options) for device in ("cuda", "cpu"))
    mask = np.array([True, False, True])
    for k, each in enumerate(tau):
        for sim in (there, here):
            sim.step(tau=each, targets=np.full(len(sim.driven), 0.1 * k), steps=2)
            if k == 3:
                sim.reset(q[0], rows=mask)
        assert np.array_equal(there.q, here.q) and np.array_equal(there.v, here.v)
        assert np.array_equal(there.net_contact_forces, here.net_contact_forces)
        if k == 4:
            state, place = there.state(), np.asarray(there.q)
            forces = np.asarray(there.net_contact_forces)
    assert forces.any() and not np.array_equal(there.net_contact_forces, forces)
    there.restore(state)
    assert np.array_equal(there.q, place) and np.array_equal(there.net_contact_forces, forces)
    there.reset(rows=mask)
    assert not np.asarray(there.net_contact_forces)[mask].any()
    single = rk.Simulation(robot, q, device="cuda", dtype="float32", **options)
    momenta = []
    for steps in (60, 1):
        single.step(steps=steps)
        states = (np.asarray(x, float) for x in (single.q, single.v))
        momenta.append(rk.centroidal_momentum(robot, *states)[:, 3:])
    forces = np.asarray(single.net_contact_forces)
    assert forces.dtype == np.float32 and forces.shape == (B, len(robot.links), 3)
    given = (momenta[1] - momenta[0]) / 1e-3 - robot.total_mass * robot.gravity
    np.testing.assert_allclose(forces.sum(axis=1), given, atol=0.1)
    assert given[0, 2] > 100.0


def test_sweeps_have_the_same_rows_on_a_card(card, pendulum):
    drawn = {"mass": rk.Uniform(0.5, 2.0), "joint:upper_joint": rk.Uniform(-1.0, 1.0)}
    what = {"parameters": drawn, "count": 6, "ground": None, "duration": 0.02, "seed": 3}
    here = rk.sweep(pendulum, **what).rows()
    there = rk.sweep(pendulum, **what, device="cuda").rows()
    for name in here.column_names:
        assert list(map(repr, there[name])) == list(map(repr, here[name])), name
    assert card.launches and not card.held
    with pytest.raises(rk.DeviceError, match='device: expected "cpu", "cuda"'):
        rk.sweep(pendulum, **what, device="gpu")


@pytest.mark.slow
def test_a_sweep_that_was_begun_on_a_card_goes_on_without(card, pendulum, tmp_path):
    what = {"starts": {"joint:upper_joint": rk.Grid(0.0, 1.0, 6)}, "ground": None, "duration": 0.02}
    found = rk.sweep(pendulum, **what, device="cuda", out=tmp_path / "there", chunk=2, workers=0)
    next((tmp_path / "there" / "chunks").iterdir()).unlink()
    again = rk.open_sweep(tmp_path / "there").resume(workers=0)
    rows = [list(map(repr, each.table().to_pylist())) for each in (again, rk.sweep(pendulum, **what))]
    assert rows[0] == rows[1] and len(found) == 6
    assert again.replay(4).summary["same_bits"]


@pytest.mark.slow
def test_environments_of_gymnasium_on_a_card(card):
    gym = pytest.importorskip("robokit.gym")
    there, here = (gym.Environments("Reaching", B, device=device) for device in ("cuda", "cpu"))
    for env in (there, here):
        env.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (3, B, 7))
    for each in actions:
        for x, y in zip(there.step(each)[:4], here.step(each)[:4], strict=True):
            assert np.allclose(x, y, atol=1e-9)


def test_a_gradient_that_would_end_in_a_simulation_is_refused(card):
    """As on the processor; a policy's forces are given without one."""
    torch = pytest.importorskip("torch")
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    q = torch.zeros(3, 2, dtype=torch.float64)
    sim = rk.Simulation(robot, q, batch=3, device="cuda")
    forces = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    for call in (
        lambda: sim.step(tau=forces),
        lambda: sim.reset(forces),
        lambda: rk.rollout(robot, q, steps=2, dt=1e-3, tau=forces),
        lambda: rk.Simulation(robot, forces, batch=3, device="cuda"),
    ):
        with pytest.raises(rk.ShapeError, match=r"(tau|q|q0): expected an array without a gradient"):
            call()
    with torch.no_grad():
        sim.step(tau=forces)
    sim.step(tau=forces.detach())
    assert sim.steps == 2
