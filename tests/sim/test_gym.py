"""Environments of Gymnasium: its own checks, and rows that are single robots and begin anew by themselves."""

import re
import warnings

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

import robokit  # noqa: E402
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
        for _ in range(250):
            seen, rewards, terminated, truncated, _ = envs.step(rng.uniform(-1, 1, (4, seen_size(envs))))
            assert envs.observation_space.contains(seen) and rewards.shape == (4,)
            assert (rewards[over] == 0.0).all() and not terminated[over].any()
            fresh += int(over.sum())
            over = terminated | truncated
            ends += over
        assert (ends > 0).all() and fresh >= 4, "humanoids that flail fall within four seconds"
        runs.append(seen)
    assert np.array_equal(*runs)


def seen_size(envs):
    return envs.single_action_space.shape[0]


def test_a_humanoid_that_does_nothing_stands():
    envs = gymnasium.make_vec("robokit/Standing-v0", num_envs=2)
    envs.reset(seed=0)
    worth = sum(envs.step(np.zeros(envs.action_space.shape))[1] for _ in range(60))
    assert worth == pytest.approx([60.0, 60.0])


def test_an_arm_that_is_driven_to_the_angles_of_its_goal_gets_there():
    arms = gymnasium.make_vec("robokit/Reaching-v0", num_envs=3)
    arms.reset(seed=0)
    task = arms.unwrapped.task
    angles = np.random.default_rng(1).uniform(-0.8, 0.8, (3, task.robot.nq))
    task.goals[:] = [robokit.forward_kinematics(task.robot, q)[task.link][1] for q in angles]
    rewards = np.array([arms.step((angles - task.home()) / task.scale)[1] for _ in range(60)])
    assert (rewards < 0.0).all() and (rewards[-1] > 0.1 * rewards[0]).all()


def test_walking_is_worth_the_way_along_x_of_the_world():
    """Turned by half a turn the same velocity in the base's axes goes back; a reward is 0.5 and the speed."""
    task = gym.TASKS["Walking"]()
    q, v, still = np.tile(task.home(), (3, 1)), np.zeros((3, task.robot.nv)), np.zeros((3, 1))
    q[1, :4], q[2, :4] = [0.0, 0.0, 0.0, 1.0], np.sqrt([0.5, 0.0, 0.0, 0.5])
    v[:, 3:6] = [0.7, 0.2, 0.1]
    before = robokit.center_of_mass(task.robot, q)
    after = robokit.center_of_mass(task.robot, task.robot.integrate(q, 1e-6 * v))
    assert task.reward(q, v, still) == pytest.approx([1.2, -0.2, 0.3])
    assert task.reward(q, v, still) - 0.5 == pytest.approx((after - before)[:, 0] / 1e-6, abs=1e-6)


def test_some_rows_begin_anew():
    envs = gymnasium.make_vec("robokit/Reaching-v0", num_envs=3)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        seen = envs.step(rng.uniform(-1, 1, envs.action_space.shape))[0]
    anew, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(anew[[0, 2]], seen[[0, 2]])
    nq = envs.unwrapped.task.robot.nq
    assert np.array_equal(anew[1, :nq], envs.unwrapped.home) and not np.array_equal(seen[1], anew[1])
    with pytest.raises(robokit.ShapeError, match="reset_mask"):
        envs.reset(options={"reset_mask": [True]})


def test_what_is_registered_can_be_written_and_made_again_and_wrong_arguments_are_refused():
    env = gymnasium.make("robokit/Reaching-v0", render_mode=None)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert np.array_equal(env.reset(seed=2)[0], again.reset(seed=2)[0])
    envs = gym.Environments("Reaching", 4)
    envs.reset(seed=0)
    with pytest.raises(robokit.ShapeError, match=r"actions: expected shape \(4, \d\), got"):
        envs.step(np.zeros(envs.action_space.shape[::-1]))
    with pytest.raises(robokit.InvalidValue, match="render_mode"):
        gym.Environments("Reaching", render_mode="human")
    with pytest.raises(robokit.UnknownName, match="Dancing"):
        gym.Environment("Dancing")


def test_a_task_of_ones_own():
    class Hopping(gym.Standing):
        def reward(self, q, v, action):
            return q[:, 6]

    envs = gym.Environments(Hopping(), 3)
    envs.reset(seed=1)
    assert envs.step(np.zeros((3, envs.single_action_space.shape[0])))[1] == pytest.approx(envs.sim.q[:, 6])


def test_what_a_task_returns_is_of_one_row_per_robot():
    """A column of rewards would otherwise become a square, and one row of observations that of all robots."""

    def steps(**methods):
        envs = gym.Environments(type("Own", (gym.Walking,), methods)(), 3)
        envs.reset(seed=0)
        return envs.step(np.zeros((3, 12)))

    said = "Own.{}: expected {} of shape {}, one row per robot, got {} of shape {}"
    for method, returned, *words in (
        ("reward", lambda self, q, v, action: q[:, :1], "numbers", "(3,)", "float64", "(3, 1)"),
        ("reward", lambda self, q, v, action: 1.0, "numbers", "(3,)", "float64", "()"),
        ("reward", lambda self, q, v, action: None, "numbers", "(3,)", "object", "()"),
        ("ended", lambda self, q, v: v[:, 0] * 0.0, "booleans", "(3,)", "float64", "(3,)"),
        ("ended", lambda self, q, v: np.bool_(False), "booleans", "(3,)", "bool", "()"),
        ("observation", lambda self, q, v: q[0], "numbers", "(3, n)", "float64", "(19,)"),
        ("observation", lambda self, q, v: q.T, "numbers", "(3, n)", "float64", "(19, 3)"),
    ):
        with pytest.raises(robokit.ShapeError, match=re.escape(said.format(method, *words))):
            steps(**{method: returned})
    with pytest.raises(robokit.InvalidValue, match=r"Own\.reward: .* NaN for a robot whose state is finite"):
        steps(reward=lambda self, q, v, action: v[:, 0] * np.nan)
    assert steps(reward=lambda self, q, v, action: np.ones(3, int))[1].tolist() == [1.0, 1.0, 1.0]


def test_wrong_arguments_have_gymnasiums_names():
    with pytest.raises(robokit.WrongType, match=r"task: expected an object such as Standing\(\)"):
        gym.Environments(gym.Standing, 2)
    with pytest.raises(robokit.WrongType, match=r"robot: expected a Robot.*got None"):
        gym.Environments(gym.Task(), 2)
    with pytest.raises(robokit.ShapeError, match="num_envs: expected a whole number >= 1, got 0"):
        gym.Environments("Reaching", num_envs=0)
    envs = gym.Environments("Reaching", num_envs=2)
    envs.reset(seed=0)
    with pytest.raises(robokit.InvalidValue, match=r"actions: expected finite numbers, got nan"):
        envs.step(np.full((2, seen_size(envs)), np.nan))


def test_a_task_takes_any_robot():
    """A fixed base is seen and starts at its neutral configuration; standing is for any floating one."""

    class Still(gym.Task):
        robot = robokit.load("arm")

        def reward(self, q, v, action):
            return -np.abs(v).max(axis=1)

    envs = gym.Environments(Still(), 2)
    seen, _ = envs.reset(seed=0)
    assert seen.shape == (2, 14) and np.array_equal(envs.home, Still.robot.neutral())
    dog = robokit.load("quadruped", base="floating")
    envs = gym.Environments(gym.Standing(dog), 2)
    assert envs.reset(seed=0)[0].shape == (2, dog.nq - 2 + dog.nv)


def test_environments_that_share_a_task_see_their_own_simulation():
    class Timed(gym.Task):
        robot = robokit.load("arm")

        def observation(self, q, v):
            return np.full((len(q), 1), self.sim.time)

        def reward(self, q, v, action):
            return np.full(len(q), self.sim.time)

    task = Timed()
    first, second = (gym.Environments(task, rows) for rows in (2, 3))
    for envs, rows, steps in ((first, 2, 1), (second, 3, 2), (first, 2, 1)):
        for _ in range(steps):
            seen, rewards, *_ = envs.step(np.zeros(envs.action_space.shape))
        assert seen.tolist() == [[envs.sim.time]] * rows and rewards.tolist() == [envs.sim.time] * rows
    assert first.sim.time == second.sim.time and envs.reset()[0].shape == (2, 1)


def lengths(step, count):
    """Steps of the first episodes of an environment, whose actions are 0."""
    found, age = [], 0
    while len(found) < count:
        age += 1
        if any(step()[2:4]):
            found, age = [*found, age], 0
    return found


def test_the_length_of_an_episode_is_gymnasiums():
    """Of one robot and of many, however they are made, longer than the task's own or shorter."""
    most = gym.TASKS["Reaching"].horizon
    assert gymnasium.spec("robokit/Reaching-v0").max_episode_steps == most
    for given, length in (
        ({}, most),
        ({"max_episode_steps": 3}, 3),
        ({"max_episode_steps": most + 7}, most + 7),
    ):
        env = gymnasium.make("robokit/Reaching-v0", **given)
        env.reset(seed=0)
        assert lengths(lambda env=env: env.step(np.zeros(env.action_space.shape)), 1) == [length]
        for mode in ("vector_entry_point", "sync"):
            envs = gymnasium.make_vec("robokit/Reaching-v0", num_envs=2, vectorization_mode=mode, **given)
            envs.reset(seed=0)
            ends = [envs.step(np.zeros(envs.action_space.shape))[3].tolist() for _ in range(length + 2)]
            assert ends == [*[[False] * 2] * (length - 1), [True] * 2, *[[False] * 2] * 2], (mode, given)
    alone = gym.Environment("Reaching")
    alone.reset(seed=0)
    assert lengths(lambda: alone.step(np.zeros(alone.action_space.shape)), 1) == [most]
    with pytest.raises(robokit.ShapeError, match="max_episode_steps: expected a whole number >= 1, got 0"):
        gym.Environments("Reaching", 2, max_episode_steps=0)


def test_a_task_sees_what_its_feet_feel():
    """A quadruped in the air, then on its feet: the forces of the simulation are part of what it sees."""

    class Feeling(gym.Walking):
        def __init__(self):
            super().__init__()
            self.feet = [k for k, name in enumerate(self.robot.link_names) if name.endswith("foot")]

        def begin(self, rng, rows):
            q, v = super().begin(rng, rows)
            return q + 0.01 * np.eye(self.robot.nq)[6], v

        def observation(self, q, v):
            feet = self.sim.net_contact_forces[:, self.feet, 2]
            return np.concatenate([super().observation(q, v), feet > 1.0], axis=1)

    envs = gym.Environments(Feeling(), 3)
    seen, _ = envs.reset(seed=0)
    assert seen.shape == (3, envs.task.robot.nq - 2 + envs.task.robot.nv + 4) and not seen[:, -4:].any()
    for _ in range(40):
        seen = envs.step(np.zeros(envs.action_space.shape))[0]
    assert seen[:, -4:].all() and envs.observation_space.contains(seen)
    envs.sim.reset(v=np.full(envs.task.robot.nv, 1e200), rows=[1])
    seen, rewards, terminated, *_ = envs.step(np.zeros(envs.action_space.shape))
    assert terminated.tolist() == [False, True, False] and envs.observation_space.contains(seen)
    assert np.isfinite(rewards).all() and rewards[1] == 0.0
