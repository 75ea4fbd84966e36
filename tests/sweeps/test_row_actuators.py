"""Sweeps of driven robots: parameters change actuators from row to row."""

from __future__ import annotations

import numpy as np
import pytest
import sweep_robots
from sweep_robots import WAVE, recipe_of

import robokit as rk
from robokit.sweeps.distributions import Uniform
from robokit.sweeps.recipe import Recipe, prepare_rows


@pytest.fixture(scope="module")
def robot():
    return sweep_robots.hopper(base="fixed")


def rows_of(recipe, first=0, last=5):
    values = recipe.rows(first, last)
    name = next(iter(recipe.robots))
    return prepare_rows(recipe, name, np.arange(first, last, dtype=np.uint64), values), values


def test_rows_have_their_own_servos(robot):
    parameters = {
        "kp": Uniform(0.5, 2.0),
        "kd:hip": Uniform(0.5, 2.0),
        "effort": Uniform(0.1, 1.0),
        "target_noise": 0.1,
        "target:hip": Uniform(-0.5, 0.5),
    }
    recipe = recipe_of(robot, rk.PD(kp=200.0, kd={"hip": 3.0}, armature=0.02), parameters)
    assert Recipe.from_json(recipe.to_json()).hash == recipe.hash
    runs, values = rows_of(recipe)
    (servo,) = runs.actuators
    np.testing.assert_array_equal(servo.kp, 200.0 * values["kp"][:, None])
    np.testing.assert_array_equal(servo.kd, 3.0 * values["kd:hip"][:, None])
    np.testing.assert_array_equal(servo.effort, 50.0 * values["effort"][:, None])
    off = servo.target[0, :, 0] - values["target:hip"]
    assert 0.01 < np.abs(off).mean() < 0.4 and len(set(off)) == 5
    # The same as by hand, the rotor too.
    table = recipe.compute(0, 5)
    start = robot.neutral()
    for k in range(5):
        by_hand = rk.PD(
            kp=servo.kp[k], kd=servo.kd[k], effort=servo.effort[k], target=servo.target[0, k], armature=0.02
        )
        run = rk.simulate(robot, start, duration=0.02, dt=1e-3, actuators=by_hand, reproducible=True)
        found = recipe.trajectory(k)
        np.testing.assert_array_equal(found.q[-1], run.q[-1])
        assert recipe.compute(k, k + 1)["final_hash"][0] == table["final_hash"][k]
    assert len(set(table["final_hash"].to_pylist())) == 5


def test_noise_moves_targets_that_change_with_time(robot):
    recipe = recipe_of(robot, rk.PD(kp=100.0, kd=1.0, target=WAVE), {"target_noise": 0.2})
    runs, _ = rows_of(recipe)
    off = runs.actuators[0].feedforward[0, :, 0] / 100.0
    moved = rk.Keyframes(WAVE.time, WAVE.joints, WAVE.values + off[3])
    run = rk.simulate(
        robot, duration=0.02, dt=1e-3, actuators=rk.PD(kp=100.0, kd=1.0, target=moved), reproducible=True
    )
    np.testing.assert_allclose(recipe.trajectory(3).q[-1], run.q[-1], atol=1e-12)
