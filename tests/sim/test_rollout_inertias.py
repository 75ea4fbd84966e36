"""Inertias as an input of the step: every row as a robot built with its own inertias, one kernel for all."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
import sim_models as m
from loop_robots import closed_four_bar, free_four_bar

import robokit as rk
from robokit.engine import single_calls
from robokit.engine.backend import llvm

B = 3
GROUND = rk.Ground()


def varied(robot, B=B, spread=0.3, seed=0):
    """The robot with B samples: every body lighter or heavier, its inertia's box larger or smaller."""
    rng = np.random.default_rng(seed)
    P = robot.inertial_parameters
    mass, length = (rng.uniform(1.0 - spread, 1.0 + spread, (B, len(P), 1)) for _ in range(2))
    scale = np.concatenate([np.ones_like(length), *[length] * 3, *[length**2] * 6], axis=-1)
    return robot.with_inertias(P * mass * scale)


def simulated_anew(robot, k, q0, v0, monkeypatch, **arguments):
    """Sample k as a robot whose inertias are constants of its code, simulated by the plain text."""
    anew = dataclasses.replace(robot.sample(k), parameters=None, shared_kernels={})
    with monkeypatch.context() as patched:
        patched.setenv("ROBOKIT_ENGINE", "python")
        return rk.simulate(anew, q0, v0, **arguments)


def starts(robot, B=B, speed=0.3):
    return speed * np.random.default_rng(1).standard_normal((B, robot.nv))


def limited():
    """A floating brick with an arm against its stop: gains that follow from the inertias."""
    b = rk.ModelBuilder("limited")
    b.link("brick", 2.0, (0.05, 0.0, 0.02), np.diag([0.02, 0.03, 0.035]))
    b.link("arm", 0.5, (0.1, 0.0, 0.0), np.diag([0.001, 0.003, 0.003]))
    b.link("slide", 0.3, (0.0, 0.0, 0.0), np.diag([0.001, 0.001, 0.001]))
    limits = {"lower": -0.02, "upper": 0.02, "damping": 0.05, "friction": 0.02}
    b.joint("hinge", "revolute", "brick", "arm", axis=(0, 1, 0), **limits)
    b.joint("rail", "prismatic", "arm", "slide", axis=(1, 0, 0), **limits)
    return b.build("floating")


@pytest.fixture
def made(monkeypatch):
    """The modules that are compiled, nothing read from the cache."""
    single_calls._shim()  # compiled once a process
    found = []
    assemble = llvm.assemble
    monkeypatch.setattr(llvm, "assemble", lambda ir: found.append(ir) or assemble(ir))
    monkeypatch.setattr("robokit.disk_cache.load", lambda name: None)
    monkeypatch.setattr("robokit.disk_cache.store", lambda *given: None)
    return found


# ---- agreement -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "arguments"),
    [
        (m.free_chain, {"integrator": "rkmk4"}),
        (m.free_chain, {"ground": GROUND, "self_collision": False}),  # which boxes meet differs
        (limited, {"ground": GROUND, "joint_damping": 0.3}),
        (limited, {"integrator": "midpoint", "gravity": (1.0, 0.0, -2.0)}),
    ],
)
def test_each_row_is_the_robot_built_with_its_inertias(robot, arguments, monkeypatch):
    robot = robot()
    many = varied(robot)
    q0 = np.array([rk.standing_configuration(many.sample(k)) for k in range(B)])
    rollout = rk.rollout(many, q0, starts(robot), steps=40, **arguments)
    assert rollout.q.shape == (9, B, robot.nq)
    for k in (0, B - 1):
        anew = simulated_anew(many, k, q0[k], rollout.v[0, k], monkeypatch, duration=0.04, **arguments)
        assert rollout.q[:, k] == pytest.approx(anew.q, rel=1e-10, abs=1e-10)
        assert rollout.v[:, k] == pytest.approx(anew.v, rel=1e-10, abs=1e-9)
        again = rollout.trajectory(k)
        assert np.array_equal(again.q, rollout.q[:, k]) and again.robot.samples is None
        for part in ("kinetic", "potential", "dissipated", "total"):
            assert getattr(again.energy, part) == pytest.approx(getattr(anew.energy, part), abs=1e-9), part
        assert again.momentum == pytest.approx(anew.momentum, abs=1e-9)
        assert again.contact_force == pytest.approx(anew.contact_force, abs=1e-5)
    assert np.abs(rollout.q[-1, 0, 7:] - rollout.q[-1, 1, 7:]).max() > 1e-5, "the samples must matter"


@pytest.mark.slow
def test_boxes_with_other_masses_on_the_ground(monkeypatch):
    robot = m.box_with_bar()
    many = varied(robot, spread=0.1)
    q0 = rk.standing_configuration(robot, height=0.001)
    rollout = rk.rollout(many, q0, steps=25, ground=GROUND)
    anew = simulated_anew(many, 1, q0, None, monkeypatch, duration=0.025, ground=GROUND)
    assert anew.contact_force[-1, 2] > 0.0
    assert rollout.q[:, 1] == pytest.approx(anew.q, abs=1e-10)
    mean = np.diff(anew.contact_impulse, axis=0) / np.diff(anew.t)[:, None]
    assert rollout.contact_force[1:, 1] == pytest.approx(mean, rel=1e-7, abs=1e-5)


@pytest.mark.slow
def test_coupled_joints_and_samples_on_the_ground(monkeypatch):
    b = rk.ModelBuilder("follow")
    for name in ("body", "lead", "tail"):
        b.link(name, 1.0, (0.1, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
    b.joint("a", "revolute", "body", "lead", axis=(0, 1, 0), lower=-0.3, upper=0.3)
    b.joint("b", "revolute", "lead", "tail", axis=(0, 1, 0), mimic=rk.Mimic("a", -0.5, 0.1))
    robot = rk.model.couple(b.build("floating"))
    many = varied(robot)
    q0 = np.array([rk.standing_configuration(many.sample(k)) for k in range(B)])
    rollout = rk.rollout(many, q0, starts(robot), steps=20, ground=GROUND)
    anew = simulated_anew(many, 2, q0[2], rollout.v[0, 2], monkeypatch, duration=0.02, ground=GROUND)
    assert rollout.q[:, 2] == pytest.approx(anew.q, abs=1e-10)


def test_rows_of_a_robot_with_loops_are_its_samples():
    """How soft their multipliers are follows from each row's own inertias."""
    robot = free_four_bar("floating")
    many, q = varied(robot), closed_four_bar(robot)
    ground = rk.Ground(friction=[0.2, 0.5, 0.9], restitution=0.5)
    rollout = rk.rollout(many, q, steps=200, dt=1e-3, ground=ground, reproducible=True)
    for k in range(B):
        how = {"ground": dataclasses.replace(ground, friction=float(ground.friction[k]))}
        run = rk.simulate(many.sample(k), q, duration=0.2, dt=1e-3, reproducible=True, **how)
        assert (run.q == rollout.q[:, k]).all() and (run.v == rollout.v[:, k]).all()


# ---- laws ------------------------------------------------------------------------------------------------


def test_each_box_presses_with_its_own_weight():
    robot = m.box()
    many = robot.with_inertias({"box": ([0.5, 1.0, 4.0], None, None)})
    rollout = rk.rollout(many, rk.standing_configuration(robot), steps=400, ground=GROUND)
    assert rollout.contact_force[-1, :, 2] == pytest.approx(m.G * many.total_mass, rel=1e-6)
    height = rollout.q[-1, :, 6]
    assert np.ptp(height) < 1e-6, "the ground is as stiff as each is heavy"


def test_momentum_of_each_flight_is_kept():
    robot = m.free_chain()
    many = varied(robot)
    rollout = rk.rollout(many, None, starts(robot, speed=1.0), steps=60, integrator="contact")
    fall = np.zeros((len(rollout.t), B, 6))
    fall[..., 3:] = rollout.t[:, None, None] * many.total_mass[:, None] * robot.gravity
    for q, v, lost in zip(rollout.q, rollout.v, fall, strict=True):
        h = rk.centroidal_momentum(many, q, v) - lost
        assert np.abs(h - rk.centroidal_momentum(many, rollout.q[0], rollout.v[0])).max() < 1e-11
    summary = rollout.trajectory(1).summary
    assert summary["momentum_balance_linear"] < 1e-11 and summary["momentum_balance_angular"] < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{"ground": GROUND}, {"integrator": "rkmk4"}])
def test_where_the_robot_is_changes_nothing(arguments):
    """Velocities and joints: nothing is summed up about a far origin.

    To the bit, but for the path of the centre of mass in steps with contacts: it is kept in the world, where
    1e5 m from the origin numbers are 1.5e-11 m apart.
    """
    robot = m.free_chain()
    q0 = np.tile(rk.standing_configuration(robot), (2, 1))
    q0[1, 4:6] = 3e4, -1e5
    rollout = rk.rollout(robot, q0, starts(robot)[:1], steps=40, **arguments)
    off = 1e-10 if "ground" in arguments else 0.0
    np.testing.assert_allclose(rollout.v[:, 0], rollout.v[:, 1], rtol=0.0, atol=off)
    np.testing.assert_allclose(rollout.q[:, 0, 6:], rollout.q[:, 1, 6:], rtol=0.0, atol=off)
    if "ground" in arguments:
        one, other = np.swapaxes(rollout.contact_force, 0, 1)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_each_box_slides_as_far_as_its_friction_lets_it(dtype):
    mu, speed = np.array([0.2, 0.3, 0.6]), 1.0
    box, v0 = m.box(), np.zeros(6)
    v0[3] = speed
    ground = rk.Ground(friction=mu)
    q0 = rk.standing_configuration(box)
    rollout = rk.rollout(box, q0, v0, steps=700, ground=ground, dtype=dtype)
    way = rollout.q[-1, :, 4] - q0[4]
    assert way == pytest.approx(speed**2 / (2.0 * mu * m.G), rel=0.03)
    if dtype == "float64":
        one = rk.simulate(box, q0, v0, duration=0.7, ground=rk.Ground(friction=0.3))
        assert rollout.q[:, 1] == pytest.approx(one.q, abs=1e-9)
        assert rollout.trajectory(1).ground.friction == 0.3
    by_link = rk.rollout(box, q0, v0, steps=700, ground=rk.Ground(friction={"box": list(mu)}), dtype=dtype)
    assert np.array_equal(by_link.q, rollout.q)


# ---- one kernel ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_kernel_serves_all_inertias(made):
    robot = dataclasses.replace(limited(), shared_kernels={})
    motion = {"steps": 60}
    many = rk.rollout(varied(robot), None, starts(robot), **motion)
    assert len(made) == 2, "the step, and the energies that its rows are checked by"
    rk.rollout(varied(robot, B=7, seed=5), **motion)
    rk.rollout(varied(robot).sample(2), None, starts(robot), **motion)
    rk.rollout(robot.with_inertias(1.5 * robot.inertial_parameters), **motion).trajectory(0)
    assert len(made) == 2
    for k in range(B):
        one = rk.simulate(varied(robot).sample(k), None, many.v[0, k], duration=0.06)
        assert np.array_equal(many.q[:, k], one.q)
    assert len(made) == 2, "a single run is a rollout of one row"


@pytest.mark.slow
def test_a_shared_kernel_keeps_no_samples_alive():
    robot = dataclasses.replace(m.free_chain(), shared_kernels={})
    many = varied(robot)
    rk.rollout(many, rk.standing_configuration(many), steps=2, ground=GROUND)
    gone = weakref.ref(many.parameters)
    del many
    gc.collect()
    assert gone() is None


# ---- rows, and what is refused ---------------------------------------------------------------------------


def test_a_sample_that_fails_leaves_the_others_alone():
    robot = m.free_chain()
    many = varied(robot, B=9)
    v0 = starts(robot, 9)
    good = rk.rollout(many, None, v0, steps=40)
    tau = np.zeros((40, 9, robot.nv))
    tau[17, 4, 6:] = np.nan  # of the joints: on the base they would be a force from outside
    v0[7] = 1e200
    with pytest.warns(UserWarning, match="2 of 9 rows"):
        bad = rk.rollout(many, None, v0, steps=40, tau=tau)
    assert bad.failed.tolist() == [4, 7] and bad.failed_time[0] == pytest.approx(0.018)
    rest = [0, 1, 2, 3, 5, 6, 8]
    assert np.array_equal(bad.q[:, rest], good.q[:, rest]) and np.array_equal(bad.v[:, rest], good.v[:, rest])
    assert len(bad.trajectory(4).t) == 4 and np.array_equal(bad.trajectory(4).q, good.q[:4, 4])


def test_rows_and_samples_must_fit():
    robot = m.double_pendulum()
    many = varied(robot)
    assert rk.rollout(many, steps=2).q.shape[1] == B, "the samples alone count the rows"
    for name in ("q0", "v0"):
        with pytest.raises(rk.ShapeError, match=f"{name}: expected 1 row or 3, as robot has, got 4"):
            rk.rollout(many, steps=2, **{name: np.zeros((4, 2))})
    with pytest.raises(rk.ShapeError, match=r"tau: .* got \(2, 4, 2\)"):
        rk.rollout(many, steps=2, tau=np.zeros((2, 4, 2)))
    with pytest.raises(rk.ShapeError, match=r"rk\.rollout takes them all"):
        rk.simulate(many)
    with pytest.raises(rk.WrongType, match="robot"):
        rk.rollout("humanoid")


def test_frictions_and_rows_must_fit():
    box = m.box()
    many = box.with_inertias({"box": ([1.0, 2.0], None, None)})
    start, three = rk.standing_configuration(box), rk.Ground(friction=[0.1, 0.2, 0.3])
    assert hash(three) == hash(rk.Ground(friction=(0.1, 0.2, 0.3)))
    with pytest.raises(rk.ShapeError, match=r"Ground\(friction=...\): expected 2, one per row, got 3"):
        rk.rollout(many, start, steps=2, ground=three)
    with pytest.raises(rk.ShapeError, match="q0: expected 1 row or 3, as Ground"):
        rk.rollout(box, [start] * 2, steps=2, ground=three)
    with pytest.raises(rk.ShapeError, match="friction has 3 values, one per row"):
        rk.simulate(box, start, ground=three)
    with pytest.raises(rk.ShapeError, match="2 \\(friction\\) and 3"):
        rk.Ground(friction={"a": [0.1] * 2, "b": [0.1] * 3, "c": 1.0})
    for wrong in ([0.1, -0.2], [], [[0.1]], [0.1, np.nan], "rough", None):
        with pytest.raises(rk.ShapeError, match=r"Ground\(friction=...\): expected"):
            rk.Ground(friction=wrong)


@pytest.mark.slow
def test_rows_and_threads_change_nothing():
    robot = limited()
    many = varied(robot, B=21)
    q0 = rk.standing_configuration(many, height=0.001)
    v0 = starts(robot, 21)
    tau = np.random.default_rng(2).standard_normal((30, 21, robot.nv))
    mu = np.linspace(0.1, 1.0, 21)
    motion = {"steps": 30, "record_every": 10}
    whole = rk.rollout(many, q0, v0, tau=tau, ground=rk.Ground(friction=mu), threads=1, **motion)
    for threads in (2, 5):
        again = rk.rollout(many, q0, v0, tau=tau, ground=rk.Ground(friction=mu), threads=threads, **motion)
        assert np.array_equal(again.v, whole.v) and np.array_equal(again.contact_force, whole.contact_force)
    for part in (slice(0, 1), slice(5, 17)):
        some = robot.with_inertias(many.inertial_parameters[part])
        ground = rk.Ground(friction=mu[part])
        found = rk.rollout(some, q0, v0[part], tau=tau[:, part], ground=ground, **motion)
        assert np.array_equal(found.v, whole.v[:, part])
    row = whole.trajectory(20)
    assert np.array_equal(row.v, whole.v[:, 20]) and row.ground.friction == 1.0
