"""rollout: every row as simulate would move it, whatever the other rows do."""

import contextlib
import gc
import math
import signal
import time

import numpy as np
import pytest
import sim_models as m
import waiting

import robokit as rk
from robokit.engine.maker import Maker
from robokit.sim import rollouts


def starts(robot, B, seed=0, speed=0.3):
    rng = np.random.default_rng(seed)
    return speed * rng.standard_normal((B, robot.nv))


def same(a, b):
    return a.q.tobytes() == b.q.tobytes() and a.v.tobytes() == b.v.tobytes()


def agree(robot, rollout, k, **arguments):
    """Row k of a rollout is what simulate makes of its start, to the bit."""
    one = rk.simulate(robot, rollout.q[0, k], rollout.v[0, k], **arguments)
    assert np.array_equal(one.t, rollout.t)
    assert np.array_equal(rollout.q[:, k], one.q)
    assert np.array_equal(rollout.v[:, k], one.v)
    return one


@pytest.fixture(scope="module")
def pushed():
    """200 steps of pushed quadrupeds on the ground."""
    robot = m.quadruped()
    q0 = rk.standing_configuration(robot, height=0.01, tilt=0.05)
    return robot, q0, rk.rollout(robot, q0, starts(robot, 5), steps=200, ground=rk.Ground())


# ---- agreement with simulate -----------------------------------------------------------------------------


@pytest.mark.slow
def test_quadrupeds_on_the_ground_move_as_simulated(pushed):
    robot, _, rollout = pushed
    for k in range(3):
        one = agree(robot, rollout, k, duration=0.2, ground=rk.Ground())
        mean = np.diff(one.contact_impulse, axis=0) / np.diff(one.t)[:, None]
        assert rollout.contact_force[1:, k] == pytest.approx(mean, abs=1e-5)
    assert rollout.contact_force[1:, :, 2].max() > 0.5 * robot.total_mass * m.G
    assert 0.0 < rollout.summary["deepest_penetration"] < 0.01


@pytest.mark.slow
def test_quadrupeds_in_free_flight_move_as_simulated():
    robot = m.quadruped()
    rollout = rk.rollout(robot, None, starts(robot, 3, speed=2.0), duration=0.1)
    assert rollout.contact_force is None and len(rollout.failed) == 0
    agree(robot, rollout, 2, duration=0.1)


def test_passive_arms_move_as_simulated():
    robot = rk.load_urdf(m.ROBOTS / "arm.urdf")
    rng = np.random.default_rng(0)
    q0 = np.array([robot.random_configuration(rng) for _ in range(3)])
    agree(robot, rk.rollout(robot, q0, duration=0.2, joint_damping=0.3), 1, duration=0.2, joint_damping=0.3)


@pytest.mark.parametrize("integrator", ["contact", "midpoint", "rkmk4"])
def test_every_integrator_and_joint_kind(integrator):
    robot = m.free_chain()
    arguments = {"duration": 0.05, "integrator": integrator, "record_every": 7}
    rollout = rk.rollout(robot, None, starts(robot, 3), **arguments)
    assert rollout.summary["integrator"] == integrator
    agree(robot, rollout, 0, **arguments)


def test_joints_without_damping_get_that_of_simulate():
    robot = m.pendulum()
    arguments = {"duration": 0.2, "ground": rk.Ground(height=-5.0), "gravity": (1.0, 0.0, -3.0)}
    rollout = rk.rollout(robot, [0.5], [[0.0], [3.0]], **arguments)
    one = agree(robot, rollout, 1, **arguments)
    assert rollout.summary["default_damping"] == one.summary["default_damping"] == "inertia"


def test_a_row_as_trajectory_has_the_ledger_of_simulate(pushed):
    robot, q0, rollout = pushed
    one = rk.simulate(robot, q0, rollout.v[0, 3], duration=0.2, ground=rk.Ground())
    row = rollout.trajectory(3)
    assert np.array_equal(row.q, rollout.q[:, 3]) and np.array_equal(row.t, one.t)
    for part in ("kinetic", "potential", "dissipated", "total"):
        assert getattr(row.energy, part) == pytest.approx(getattr(one.energy, part), abs=1e-7), part
    assert row.momentum == pytest.approx(one.momentum, abs=1e-8)
    assert row.contacts.forces.sum(axis=1) == pytest.approx(one.contacts.forces.sum(axis=1), abs=1e-5)
    for figure in ("energy_balance", "momentum_balance_linear", "deepest_penetration"):
        assert row.summary[figure] == pytest.approx(one.summary[figure], abs=1e-7), figure
    assert np.array_equal(rollout.trajectory(-2).q, row.q)
    with pytest.raises(rk.ShapeError, match="row: expected a whole number from 0 to 4, got 5"):
        rollout.trajectory(5)


# ---- laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["contact", "rkmk4"])
def test_momentum_of_free_flight_is_kept(integrator):
    robot = m.free_chain()
    rollout = rk.rollout(robot, None, starts(robot, 8, speed=1.0), steps=100, integrator=integrator)
    fall = np.zeros((len(rollout.t), 6))
    fall[:, 3:] = rollout.t[:, None] * robot.total_mass * robot.gravity
    for k in range(8):
        h = rk.centroidal_momentum(robot, rollout.q[:, k], rollout.v[:, k]) - fall
        assert np.abs(h - h[0]).max() < 1e-11


def test_rows_do_not_depend_on_how_many_there_are():
    robot = m.box()
    q0, _ = rk.standing_configuration(robot, height=0.02, tilt=0.3), None
    v0 = starts(robot, 4097, speed=0.5)
    arguments = {"steps": 40, "ground": rk.Ground(), "record_every": 20}
    whole = rk.rollout(robot, q0, v0, threads=1, **arguments)
    assert whole.q.shape == (3, 4097, 7) and not np.array_equal(whole.q[-1, 0], whole.q[-1, 4096])
    for part in (slice(0, 1), slice(4096, 4097), slice(7, 10), slice(90, 95)):
        some = rk.rollout(robot, q0, v0[part], **arguments)
        assert np.array_equal(some.q, whole.q[:, part]) and np.array_equal(some.v, whole.v[:, part])
    for threads in (2, 3):
        assert same(rk.rollout(robot, q0, v0, threads=threads, **arguments), whole)


def test_how_often_is_recorded_changes_nothing(pushed):
    robot, q0, every_5 = pushed
    for every in (1, 37, 200):
        other = rk.rollout(
            robot, q0, every_5.v[0], steps=200, ground=rk.Ground(), record_every=every, threads=1
        )
        assert np.array_equal(other.q[-1], every_5.q[-1]) and len(other.t) == math.ceil(200 / every) + 1
        impulse = np.einsum("tbi,t->bi", other.contact_force[1:], np.diff(other.t))
        assert impulse == pytest.approx(0.005 * every_5.contact_force.sum(axis=0), rel=1e-9, abs=1e-9)


def test_rollouts_continue_one_another():
    robot = m.free_chain()
    v0 = starts(robot, 6)
    v0[4] = np.nan
    with pytest.warns(UserWarning, match="1 of 6 rows"):
        whole = rk.rollout(robot, None, v0, steps=60)
        first = rk.rollout(robot, None, v0, steps=30)
        second = rk.rollout(robot, first.q[-1], first.v[-1], steps=30)
    # The momentum is measured afresh at the second start, and rounded.
    np.testing.assert_allclose(second.q[-1], whole.q[-1], rtol=0, atol=1e-14)
    np.testing.assert_allclose(second.v[-1], whole.v[-1], rtol=0, atol=1e-13)
    assert second.failed.tolist() == [4] and np.isfinite(second.v[:, 5]).all()


# ---- rows that fail ----------------------------------------------------------------------------------


def test_a_row_that_fails_leaves_the_others_alone():
    robot = m.free_chain()
    v0 = starts(robot, 9)
    good = rk.rollout(robot, None, v0, steps=60, record_every=20)
    bad = v0.copy()
    bad[2], bad[5] = 1e160, np.nan
    bad[7] = 0.0
    tau = np.zeros((60, 9, robot.nv))
    tau[32, 7, 6:] = np.inf  # of the joints: on the base they would be a force from outside
    good_7 = rk.rollout(robot, None, bad[7], steps=60, record_every=20)
    with pytest.warns(UserWarning, match=r"3 of 9 rows are no longer finite, row 5 first, at t = 0 s"):
        found = rk.rollout(robot, None, bad, tau=tau, steps=60, record_every=20)
    assert found.failed.tolist() == [2, 5, 7]
    assert found.failed_time == pytest.approx([0.001, 0.0, 0.033])
    rest = [0, 1, 3, 4, 6, 8]
    assert np.array_equal(found.q[:, rest], good.q[:, rest]) and np.array_equal(
        found.v[:, rest], good.v[:, rest]
    )
    assert np.isnan(found.q[1:, 2]).all() and np.isnan(found.q[:, 5]).all() and np.isnan(found.v[2:, 7]).all()
    assert np.array_equal(found.q[:2, 7], good_7.q[:2, 0])
    assert found.trajectory(7).t == pytest.approx([0.0, 0.02])
    with pytest.raises(rk.SimulationError, match="row 5 was not finite from the start"):
        found.trajectory(5)


def test_the_time_of_a_failure_is_that_of_simulate():
    robot, dt = m.double_pendulum(), 0.01
    tau = np.zeros((40, 2, 2))
    tau[13:, 1] = 1e308  # the velocity overflows in that step
    with pytest.raises(rk.SimulationError) as error:
        rk.simulate(
            robot, None, duration=0.4, dt=dt, record_every=1,
            controller=lambda t, q, v: tau[int(t / dt), 1],
        )  # fmt: skip
    with pytest.warns(UserWarning, match="row 1 first"):
        found = rk.rollout(robot, None, np.zeros((2, 2)), dt=dt, steps=40, tau=tau, record_every=1000)
    assert found.failed.tolist() == [1] and found.failed_time == pytest.approx(14 * dt)
    assert f"t = {found.failed_time[0]:.6g} s" in str(error.value)


# ---- arguments -------------------------------------------------------------------------------------------


def test_joint_forces_constant_and_by_step():
    robot = m.double_pendulum()
    rng = np.random.default_rng(0)
    tau = rng.standard_normal((30, 3, 2))
    full = rk.rollout(robot, None, np.zeros((3, 2)), tau=tau, steps=30)
    for k in range(3):
        held = rk.simulate(
            robot, duration=0.03, controller=lambda t, q, v, k=k: tau[min(int(t * 1e3), 29), k]
        )
        assert full.q[:, k] == pytest.approx(held.q, abs=1e-12)
        row = full.trajectory(k)
        assert row.energy.work == pytest.approx(held.energy.work, abs=1e-12)
        assert np.array_equal(row.tau, held.tau)

    def last(given, B=3):
        return rk.rollout(robot, None, np.zeros((B, 2)), tau=given, steps=30).q[-1]

    every = np.broadcast_to(tau[:1], tau.shape)
    assert np.array_equal(last(every), last(tau[0])) and np.array_equal(last(every), last(every.copy()))
    assert np.array_equal(last(tau[:, 1]), last(tau[:, [1] * 3])) and np.array_equal(
        last(tau[:, 1:2]), last(tau[:, 1])
    )
    assert np.array_equal(last(tau[0, 0]), last(np.tile(tau[0, 0], (30, 3, 1))))
    assert np.array_equal(last(tau[:, ::-1]), last(tau[:, ::-1].copy()))
    assert np.array_equal(last(tau.astype(np.float32)), last(tau.astype(np.float32).astype(float)))
    assert np.array_equal(rk.rollout(robot, tau=tau, steps=30).q, full.q), "tau alone may count the rows"
    assert not np.array_equal(last(tau[:, 1]), last(None))


def test_records_may_go_to_arrays_of_the_caller():
    robot = m.double_pendulum()
    v0 = starts(robot, 4)
    fresh = rk.rollout(robot, None, v0, steps=20)
    out = np.full((5, 4, 2), 7.0), np.full((5, 4, 2), 7.0)
    found = rk.rollout(robot, None, v0, steps=20, out=out)
    assert np.shares_memory(found.q, out[0]) and same(found, fresh)
    assert len(rk.rollout(robot, steps=0).t) == 1 and fresh.summary["rows"] == 4
    assert np.array_equal(v0, fresh.v[0]), "the start is the first record, and is not changed"


def test_inputs_that_share_memory_with_the_records_are_read_first():
    """A loop that keeps its joint forces and its records in one buffer computes what it should."""
    robot = m.double_pendulum()
    V = np.random.default_rng(3).normal(0.0, 5.0, (21, 4, 2))
    Q, tau, start = np.empty_like(V), V[:20].copy(), V[20].copy()
    fresh = rk.rollout(robot, start, tau=tau, steps=20, record_every=1)
    shared = rk.rollout(robot, V[20], tau=V[:20], steps=20, record_every=1, out=(Q, V))
    assert np.array_equal(fresh.v, V) and np.array_equal(fresh.q, Q)
    assert np.array_equal(shared.tau, tau), "what is kept is what was given"
    assert np.array_equal(shared.trajectory(1).q, Q[:, 1])
    both = np.zeros((5, 4, 2))
    with pytest.raises(rk.ShapeError, match="the arrays for q and v share memory"):
        rk.rollout(robot, start, steps=20, out=(both, both))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"q0": np.zeros((2, 3))}, r"q0: expected shape \(2,\) or \(B, 2\)"),
        ({"q0": np.zeros((0, 2))}, "q0: .* B >= 1"),
        ({"q0": [math.nan, 0.0]}, "q0: expected finite"),
        ({"v0": "fast"}, "v0: expected real numbers"),
        ({"q0": np.zeros((3, 2)), "v0": np.zeros((4, 2))}, "v0: expected 3 rows like q0, got 4"),
        ({"tau": np.zeros((7, 2))}, r"tau: expected shape \(2,\), .* got \(7, 2\)"),
        ({"tau": np.zeros((20, 3, 3))}, "tau: expected shape"),
        ({"tau": [math.inf, 0.0], "v0": np.zeros((3, 2))}, "tau: expected finite"),
        ({"tau": "up"}, "tau: expected real numbers"),
        ({"v0": np.zeros((20, 2)), "tau": np.zeros((20, 2))}, r"tau: \(20, 2\) could be .* \(20, 1, 2\)"),
        ({"steps": 1.5}, "steps"),
        ({"steps": -1}, "steps"),
        ({"threads": 0}, "threads"),
        ({"record_every": 0}, "record_every"),
        ({"dt": 0.0}, "dt"),
        ({"ground": 3.0}, "ground"),
        ({"out": (np.zeros((5, 1, 2)), np.zeros((4, 1, 2)))}, r"out\[1\]: expected float64 of shape"),
        ({"out": np.zeros((5, 1, 2))}, "out: expected two arrays"),
    ],
)
def test_wrong_arguments_are_named(arguments, said):
    with pytest.raises((rk.ShapeError, rk.InvalidValue), match=said):
        rk.rollout(m.double_pendulum(), **({"steps": 20} | arguments))


def test_starts_that_cannot_be_name_their_row():
    q0 = np.tile(rk.standing_configuration(m.box()), (3000, 1))
    q0[2999, 6] -= 0.5
    with pytest.raises(rk.ShapeError, match=r"q0\[2999\]: link 'box' starts 0.5 m below"):
        rk.rollout(m.box(), q0, ground=rk.Ground())
    q0[7, 0] = 2.0
    with pytest.raises(rk.InvalidValue, match=r"q0: expected a unit quaternion .* at q0\[7, 0:4\]"):
        rk.rollout(m.box(), q0)
    with pytest.raises(rk.UnknownName, match="contact"):
        rk.rollout(m.box(), ground=rk.Ground(), integrator="rkmk4")


# ---- ways to run -----------------------------------------------------------------------------------------


def test_plain_text_takes_the_same_steps(monkeypatch):
    robot = m.free_chain()
    v0 = starts(robot, 3)
    tau = np.random.default_rng(1).standard_normal((4, 3, robot.nv))
    compiled = rk.rollout(robot, None, v0, tau=tau, steps=4, record_every=2, threads=2)
    monkeypatch.setattr(Maker, "code", lambda self, part, baseline=False: None)
    plain = rk.rollout(m.free_chain.__wrapped__(), None, v0, tau=tau, steps=4, record_every=2, threads=2)
    assert plain.q == pytest.approx(compiled.q, abs=1e-12) and plain.v == pytest.approx(compiled.v, abs=1e-11)


@pytest.fixture
def no_collector():
    """The collector of garbage rests: it calls Hypothesis, and a Ctrl-C that arrives there is lost."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_returns_what_all_rows_have_reached(threads):
    robot = m.double_pendulum()
    v0 = starts(robot, 64)
    rk.rollout(robot, None, v0, steps=1)

    waiting.after(0.3, lambda: signal.raise_signal(signal.SIGINT))
    found = rk.rollout(robot, None, v0, steps=10**7, record_every=50_000, threads=threads)
    assert found.summary["interrupted"] is True and 1 <= len(found.t) < 201
    assert found.q.shape == (len(found.t), 64, 2) and np.isfinite(found.q).all()
    if len(found.t) > 1:
        assert same(found, rk.rollout(robot, None, v0, steps=found.summary["steps"], record_every=50_000))


@pytest.mark.usefixtures("no_collector")
def test_ctrl_c_ends_a_large_batch_at_once_and_its_figures_are_those_of_its_records():
    robot = m.box()
    q0 = rk.standing_configuration(robot)
    motion = {"ground": rk.Ground(), "record_every": 10**5, "threads": 1}
    rk.rollout(robot, q0, starts(robot, 2000), steps=1, **motion)
    sent = []

    waiting.after(0.3, lambda: (sent.append(time.process_time()), signal.raise_signal(signal.SIGINT)))
    found = rk.rollout(robot, q0, starts(robot, 2000), steps=10**5, **motion)
    assert time.process_time() - sent[0] < 2.0, "a block is a twentieth of a second"
    assert found.summary["interrupted"] and len(found.t) == 1
    assert found.summary["deepest_penetration"] == 0.0


def test_progress_tells_of_every_step(monkeypatch):
    told = []

    class Bar:
        update = told.append

    @contextlib.contextmanager
    def bar(steps, progress):
        assert (steps, progress) == (12, True)
        yield Bar()
        told.append("closed")

    monkeypatch.setattr(rollouts, "stepping", bar)
    rk.rollout(m.double_pendulum(), steps=12, progress=True)
    assert told == [5, 5, 2, "closed"]


def test_a_kernel_must_feed_everything_back():
    from robokit.engine import Kernel

    kernel = Kernel("one", [("x", 1)], [("y", (1,)), ("z", (1,))], lambda x: [x, x], feedback={"y": "x"})
    with pytest.raises(ValueError, match="every output must be fed back"):
        kernel.rollout_runner()


@pytest.mark.parametrize("run", [rk.simulate, rk.rollout])
def test_less_than_a_step_is_refused(run):
    with pytest.raises(rk.ShapeError, match=r"^duration: 0.001 s is half a step of 0.004 s or less"):
        run(m.pendulum(), duration=1e-3, dt=4e-3)
    assert len(run(m.pendulum(), duration=0.0).t) == 1
