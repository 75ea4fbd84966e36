"""How far a run can be trusted, and the ledger of each row of a rollout."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.sim.simulation import size_of

DT = 1e-3


def test_half_the_step_changes_the_centre_of_mass_as_the_order_says():
    robot, start = m.double_pendulum(), [1.0, 1.0]
    changes = []
    for dt in (4e-3, 2e-3):
        run = rk.simulate(
            robot, start, duration=1.0, dt=dt, integrator="rkmk4", estimate=True, record_every=5
        )
        found = run.summary["estimate"]
        assert found["dt"] == dt / 2 and found["agrees"] and "first_contact" not in found
        changes.append(found["center_of_mass_largest"])
    assert changes[0] / changes[1] == pytest.approx(16.0, rel=0.1)
    assert 1e-12 < found["center_of_mass_end"] <= changes[1]
    assert "throughout" in " ".join(run.report()).partition("estimate")[2]
    assert all(len(line) <= 80 for line in run.report())


def test_contact_is_compared_and_a_run_that_departs_is_said():
    q0, v0 = m.box().neutral(), np.array([3.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    q0[-1] = 0.5
    run = rk.simulate(m.box(), q0, v0, 1.5, 4e-3, rk.Ground(), estimate=True, record_every=1)
    found = run.summary["estimate"]
    assert found["first_contact"] == run.events[0].time
    assert abs(found["first_contact_change"]) <= 4e-3 and 0.0 < abs(found["peak_force_change"]) < 1.0
    assert found["size"] == pytest.approx(2 * np.sqrt(3 * 0.2**2 / 12), rel=1e-9)
    assert not found["agrees"] and run.events[0].time < found["agrees_until"] < 1.5
    again = rk.simulate(m.box(), q0, v0, 1.5, 2e-3, rk.Ground(), record_every=2)
    apart = np.linalg.norm(again.q[:, 4:] - run.q[:, 4:], axis=1)
    assert found["center_of_mass_largest"] == pytest.approx(apart.max(), rel=1e-9)


def test_targets_with_a_row_a_step_are_the_same():
    robot, steps = m.pendulum(kind="continuous"), 200
    target = np.linspace(0.0, 1.0, steps)[:, None]
    run = rk.simulate(
        robot, duration=steps * DT, dt=DT, actuators=rk.PD(target=target, kp=50.0, kd=3.0), estimate=True
    )
    assert 0.0 < run.summary["estimate"]["center_of_mass_largest"] < 1e-3


def test_estimate_is_a_truth_value():
    with pytest.raises(rk.WrongType, match="estimate"):
        rk.simulate(m.pendulum(), estimate="yes")


def test_the_size_of_an_arm_reaches_over_its_bodies():
    assert 0.5 <= size_of(m.humanoid()) <= 2.5


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_a_rollout_keep_what_their_trajectories_say(dtype):
    rng = np.random.default_rng(5)
    q0 = np.tile(m.box().neutral(), (4, 1))
    q0[:, -1] = 0.4
    v0 = rng.normal(size=(4, 6)) * 2.0
    v0[3] = np.nan
    with pytest.warns(UserWarning, match="fail|finite"):
        rows = rk.rollout(m.box(), q0, v0, duration=0.6, dt=DT, ground=rk.Ground(), dtype=dtype)
    near = {"rtol": 1e-6, "atol": 1e-9} if dtype == "float64" else {"rtol": 0.02, "atol": 2e-3}
    for k in range(3):
        one = rows.trajectory(k)
        gained = one.energy.total[-1] - one.energy.total[0]
        np.testing.assert_allclose(rows.energy_balance[k], gained, **near)
        np.testing.assert_allclose(rows.deepest[k], one.summary["deepest_penetration"], **near)
    assert rows.deepest[:3].min() > 0.0
    for figure in (rows.energy_balance, rows.deepest):
        assert np.isnan(figure[3])
