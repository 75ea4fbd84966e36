"""Rollouts in single precision: as double precision but for rounding, and the same promises."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.engine.maker import Maker

EPS = float(np.finfo(np.float32).eps)
SINGLE = {"dtype": "float32"}


def starts(robot, B, speed=0.3):
    return speed * np.random.default_rng(0).standard_normal((B, robot.nv))


@pytest.mark.parametrize("integrator", ["contact", "midpoint", "rkmk4"])
def test_free_motion_agrees_with_double_precision(integrator):
    robot = m.free_chain()
    motion = {"steps": 100, "integrator": integrator, "record_every": 20}
    double = rk.rollout(robot, None, starts(robot, 5), **motion)
    single = rk.rollout(robot, None, starts(robot, 5), **motion, **SINGLE)
    assert single.q.dtype == single.v.dtype == np.float32 and single.summary["dtype"] == "float32"
    error = np.abs(single.q - double.q).max(axis=(1, 2))
    assert error[0] <= EPS and 0.0 < error[-1] < 300 * EPS
    assert np.abs(single.v - double.v).max() < 3000 * EPS
    quaternion = single.q[-1, :, :4].astype(float)
    assert np.abs((quaternion**2).sum(axis=1) - 1.0).max() < 3 * EPS


def test_a_box_at_rest_is_held_by_its_weight_however_long():
    """The impulse of 4000 steps is summed in double precision: in single it would lose three digits."""
    box = m.box()
    many = box.with_inertias({"box": ([0.5, 1.0, 4.0], None, None)})
    motion = {"ground": rk.Ground(), "steps": 4000, "record_every": 1}
    rollout = rk.rollout(many, rk.standing_configuration(box), **motion, **SINGLE)
    assert rollout.contact_force.dtype == np.float64
    mean = rollout.contact_force[-1000:, :, 2].mean(axis=0)
    assert mean == pytest.approx(m.G * many.total_mass, rel=1e-5)
    double = rk.rollout(many, rk.standing_configuration(box), **motion)
    assert np.abs(rollout.q - double.q).max() < 1e-5
    deepest = (run.summary["deepest_penetration"] for run in (rollout, double))
    assert next(deepest) == pytest.approx(next(deepest), rel=1e-2, abs=1e-6)
    assert not len(rollout.failed)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [{"ground": rk.Ground()}, {"integrator": "contact"}])
def test_momentum_is_kept_to_single_precision(arguments):
    robot = m.free_chain()
    q0 = rk.standing_configuration(robot, height=0.01)
    q0[4:6] = 300.0, -500.0
    rollout = rk.rollout(robot, q0, starts(robot, 3), steps=200, **arguments, **SINGLE)
    summary = rollout.trajectory(1).summary
    assert summary["momentum_balance_linear"] < 5e-5 and summary["momentum_balance_angular"] < 5e-6


@pytest.mark.slow
def test_rows_records_and_threads_change_nothing():
    robot = m.free_chain()
    q0 = rk.standing_configuration(robot, height=0.01)
    v0 = starts(robot, 37)
    motion = {"steps": 30, "ground": rk.Ground(), **SINGLE}
    whole = rk.rollout(robot, q0, v0, record_every=15, threads=1, **motion)
    for rows in (slice(0, 1), slice(11, 30), slice(36, 37)):
        some = rk.rollout(robot, q0, v0[rows], record_every=15, **motion)
        assert np.array_equal(some.q, whole.q[:, rows]) and np.array_equal(some.v, whole.v[:, rows])
    often = rk.rollout(robot, q0, v0, record_every=1, threads=2, **motion)
    assert np.array_equal(often.v[::15], whole.v)
    impulse = often.contact_force[1:].reshape(2, 15, 37, 3).mean(axis=1)
    assert impulse == pytest.approx(whole.contact_force[1:], rel=1e-5, abs=1e-4)


def test_failures_stay_in_their_row_and_trajectories_repeat():
    robot = m.free_chain()
    v0 = starts(robot, 20)
    good = rk.rollout(robot, None, v0, steps=40, **SINGLE)
    tau = np.zeros((40, 20, robot.nv))
    # Of the joints: on the base they would be forces from outside.
    tau[22, 3, 6:], tau[5, 9, 6] = np.nan, 1e200
    v0[17] = 1e60
    with pytest.warns(UserWarning, match="3 of 20 rows"):
        bad = rk.rollout(robot, None, v0, steps=40, tau=tau, **SINGLE)
    assert bad.failed.tolist() == [3, 9, 17]
    assert bad.failed_time == pytest.approx([0.023, 0.006, 0.0])
    rest = np.setdiff1d(np.arange(20), bad.failed)
    assert np.array_equal(bad.q[:, rest], good.q[:, rest]) and np.array_equal(bad.v[:, rest], good.v[:, rest])
    row = bad.trajectory(3)
    assert len(row.t) == 5 and np.array_equal(row.q, good.q[:5, 3]) and row.energy.kinetic.dtype == np.float64
    assert np.ptp(good.trajectory(0).energy.total) < 1e-3


def test_rollouts_continue_one_another_and_write_where_they_are_told():
    robot = m.free_chain()
    v0 = starts(robot, 4)
    whole = rk.rollout(robot, None, v0, steps=2000, **SINGLE)
    first = rk.rollout(robot, None, v0, steps=1000, **SINGLE)
    out = tuple(np.empty((201, 4, n), np.float32) for n in (robot.nq, robot.nv))
    second = rk.rollout(robot, first.q[-1], first.v[-1], steps=1000, out=out, dtype=np.float32)
    assert np.shares_memory(second.q, out[0])
    # The momentum is measured afresh at the second start, and rounded.
    assert np.abs(second.q[-1] - whole.q[-1]).max() < 1000 * EPS
    tau = np.zeros((5, 4, robot.nv), np.float32)
    assert rk.rollout(robot, tau=tau, steps=5, **SINGLE).tau is tau, "not copied"


def test_what_is_not_offered_is_named():
    robot = m.double_pendulum()
    for dtype in ("float16", "int32", "half a double"):
        with pytest.raises(rk.UnknownName, match="no dtype named"):
            rk.rollout(robot, steps=1, dtype=dtype)
    wrong = tuple(np.zeros((2, 1, 2)) for _ in range(2))
    with pytest.raises(rk.ShapeError, match=r"out\[0\]: expected float32 of shape"):
        rk.rollout(robot, steps=1, out=wrong, **SINGLE)


def test_plain_text_takes_the_same_steps(monkeypatch):
    robot = m.free_chain.__wrapped__()
    v0 = starts(robot, 3)
    compiled = rk.rollout(m.free_chain(), None, v0, steps=4, record_every=2, **SINGLE)
    monkeypatch.setattr(Maker, "code", lambda self, part, baseline=False: None)
    plain = rk.rollout(robot, None, v0, steps=4, record_every=2, **SINGLE)
    assert plain.q.dtype == np.float32
    assert plain.q == pytest.approx(compiled.q, abs=1e-5) and plain.v == pytest.approx(compiled.v, abs=1e-4)
