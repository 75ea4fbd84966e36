"""Measures of rollouts: the same as in every single step of a run."""

from __future__ import annotations

import numpy as np
import pytest
from test_step_facts import DT, folding

import robokit as rk


@pytest.fixture(scope="module")
def both():
    robot = folding()
    q, v = robot.neutral(), np.array([1.5, -2.0, 3.0, 1.0, 0.0, 0.0, 4.0])
    q[6] = 0.8
    options = {"duration": 1.5, "dt": DT, "ground": True}
    rows = rk.rollout(robot, np.stack([q, q]), np.stack([0.0 * v, v]), measures=True, **options)
    run = rk.simulate(robot, q, v, **options)
    return {name: column[1] for name, column in rows.measures.items()}, run, rows


def middle(step):
    return (step + 0.5) * DT


def test_peaks_and_first_contacts_are_those_of_the_steps(both):
    measures, run, _ = both
    facts = run.step_facts
    size = np.linalg.norm(facts.force, axis=-1)
    for k, link in enumerate(("box", "bar")):
        assert measures[f"peak_force/{link}"] == pytest.approx(size[:, k].max(), rel=1e-9)
        assert measures[f"peak_force_time/{link}"] == pytest.approx(middle(size[:, k].argmax()))
        assert measures[f"first_contact_time/{link}"] == pytest.approx(
            middle(np.flatnonzero(facts.normal[:, k])[0])
        )
    load = np.linalg.norm(facts.force.sum(axis=1), axis=-1)
    assert measures["peak_load"] == pytest.approx(load.max(), rel=1e-9)
    assert measures["peak_load_time"] == pytest.approx(middle(load.argmax()))


def test_stops_are_those_of_the_steps(both):
    measures, run, _ = both
    facts = run.step_facts
    assert measures["past_limit"] == pytest.approx(facts.past.max(), rel=1e-9)
    assert measures["limit_hits"] >= 2
    reached = [e for e in run.events if e.kind == "limit"]
    assert measures["limit_hits"] == len(reached)
    assert measures["limit_time/hinge"] == pytest.approx(reached[0].time)


def test_a_robot_comes_to_rest_and_what_it_lost_adds_up(both):
    measures, run, rows = both
    assert measures["rest_time"] < 1.4
    rests = next(e for e in run.events if e.kind == "rest")
    assert measures["rest_time"] == pytest.approx(rests.time, abs=1.01 * DT)
    assert measures["deepest_penetration"] == pytest.approx(run.summary["deepest_penetration"], rel=1e-9)
    assert abs(measures["energy_balance"]) < 1e-2
    np.testing.assert_allclose(rows.q[-1, 1], run.q[-1], atol=1e-9)
    assert measures["greatest_speed"] > 3.0


def test_a_rollout_without_measures_takes_the_same_steps(both):
    *_, rows = both
    robot = folding()
    plain = rk.rollout(
        robot, rows.q[0], rows.v[0], duration=1.5, dt=DT, ground=True
    )  # fmt: skip
    np.testing.assert_array_equal(plain.q[-1], rows.q[-1])


def test_own_measures_are_taken_of_every_step(both):
    _, run, _ = both
    robot = folding()

    @rk.function(inputs={"q": "q", "v": "v", "t": (), "contact_force": (3,)}, outputs={"x": (), "push": ()})
    def look(tree, q, v, t, contact_force):
        return {"x": v[1][5] + 0.0 * t, "push": contact_force[2]}

    chosen = [
        rk.Measure(look, "max", "top"),
        rk.Measure(look, "max", "bar", link="bar"),
        rk.Measure(look, "mean", "mean"),
    ]
    rows = rk.rollout(
        robot, run.q[:1], run.v[:1], duration=1.5, dt=DT, ground=True,
        measures=["peak_force", *chosen],
    )  # fmt: skip
    found, facts = {name: x[0] for name, x in rows.measures.items()}, run.step_facts
    up = facts.force[..., 2]
    assert found["top_push"] == pytest.approx(up.sum(axis=1).max(), rel=1e-9)
    assert found["top_push_time"] == pytest.approx((up.sum(axis=1).argmax() + 1) * DT)
    assert found["bar_push"] == pytest.approx(up[:, 1].max(), rel=1e-9)
    assert found["mean_push"] == pytest.approx(up.sum() / 1501, rel=1e-6)
    assert found["top_x"] == pytest.approx(facts.v[:, 5].max(), rel=1e-9)
