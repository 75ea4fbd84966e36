"""Environments of Gymnasium: its own checks, and rows that are single robots and begin anew by themselves."""

import warnings

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

import robokit.gym as gym  # noqa: E402

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("name", gym.TASKS)
def test_gymnasium_checks_it(name):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"robokit/{name}-v0").unwrapped)


def test_rows_begin_anew_and_are_the_same_from_a_seed():
    runs = []
    for _ in range(2):
        envs = gymnasium.make_vec("robokit/Standing-v0", num_envs=4)
        seen, _ = envs.reset(seed=3)
        rng, ends, fresh = np.random.default_rng(0), np.zeros(4, int), 0
        over = np.zeros(4, bool)
        for _ in range(120):
            seen, rewards, terminated, truncated, _ = envs.step(rng.uniform(-1, 1, (4, seen_size(envs))))
            assert envs.observation_space.contains(seen) and rewards.shape == (4,)
            assert (rewards[over] == 0.0).all() and not terminated[over].any()
            fresh += int(over.sum())
            over = terminated | truncated
            ends += over
        assert ends.sum() >= 4 and fresh >= 3, "humanoids that flail fall within two seconds"
        runs.append(seen)
    assert np.array_equal(*runs)


def seen_size(envs):
    return envs.single_action_space.shape[0]


def test_a_humanoid_that_does_nothing_stands_and_an_arm_comes_to_its_goal():
    envs = gymnasium.make_vec("robokit/Standing-v0", num_envs=2)
    envs.reset(seed=0)
    worth = sum(envs.step(np.zeros(envs.action_space.shape))[1] for _ in range(60))
    assert worth == pytest.approx([60.0, 60.0])
    arms = gymnasium.make_vec("robokit/Reaching-v0", num_envs=3)
    arms.reset(seed=0)
    task = arms.unwrapped.task
    rewards = [arms.step(np.zeros(arms.action_space.shape))[1] for _ in range(3)]
    assert np.allclose(rewards[-1], -np.linalg.norm(task.goals - task.tip(arms.unwrapped.sim.q), axis=1))


def test_a_task_of_ones_own():
    class Hopping(gym.Standing):
        def reward(self, q, v, action):
            return q[:, 6]

    envs = gym.Environments(Hopping(), 3)
    envs.reset(seed=1)
    assert envs.step(np.zeros((3, envs.single_action_space.shape[0])))[1] == pytest.approx(envs.sim.q[:, 6])
