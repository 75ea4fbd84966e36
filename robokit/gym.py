"""Robots as environments of Gymnasium: many at once, stepped by one Simulation. Needs the extra ``gym``.

    import gymnasium, robokit.gym
    envs = gymnasium.make_vec("robokit/Standing-v0", num_envs=256)
    observations, infos = envs.reset(seed=0)
    observations, rewards, terminations, truncations, infos = envs.step(actions)

    env = gymnasium.make("robokit/Reaching-v0")          # one robot

A task of one's own is a class of a dozen lines, of which :class:`Environments` and :class:`Environment` make
environments: a robot, where it starts, what it sees, and what it is worth.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from robokit.dynamics import center_of_mass, forward_kinematics
from robokit.errors import MissingDependency
from robokit.model.robot import Robot
from robokit.robot_names import find_robot
from robokit.sim import PD, Simulation, standing_configuration
from robokit.urdf import load_urdf

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as missing:
    raise MissingDependency("robokit.gym needs gymnasium: pip install 'robokit[gym]'") from missing

LARGEST = 100.0
"""Observations are cut to this: a robot that is thrown has no use for more."""


class Task:
    """What a robot is to do; a subclass has ``robot``, and says where rows start and what they are worth.

    Attributes:
        robot: the robot.
        options: of :class:`robokit.Simulation`.
        steps: of the simulation in one of the environment.
        horizon: steps of the environment after which an episode is over.
        scale: of actions, which go from -1 to 1: targets of the driven joints about those of the start [rad].
    """

    robot: Robot
    options: ClassVar[dict[str, Any]] = {"dt": 3e-3, "ground": True, "actuators": PD(kp=100.0, kd=5.0)}
    steps, horizon, scale = 5, 500, 0.5

    def begin(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States that rows begin with, by number (n,): q (n, nq) and v (n, nv)."""
        q = np.tile(self.home(), (len(rows), 1))
        return q, rng.normal(scale=0.02, size=(len(rows), self.robot.nv))

    def home(self) -> np.ndarray:
        """The configuration about which the robot moves, (nq,)."""
        return standing_configuration(self.robot)

    def observation(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What rows see, (B, n): all coordinates but the place on the ground, and velocities."""
        return np.concatenate([q[:, :4], q[:, 6:], v], axis=1)

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """What the step was worth, (B,)."""
        raise NotImplementedError

    def ended(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rows whose episode is over for good, (B,)."""
        return np.zeros(len(q), bool)


# ---- tasks ------------------------------------------------------------------------------------------------


class Standing(Task):
    """A humanoid that stays on its feet, with little effort."""

    def __init__(self) -> None:
        self.robot = load_urdf(find_robot("humanoid"), base="floating")
        self.height = center_of_mass(self.robot, self.home())[2]

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """One for each step, less what is asked of the motors."""
        return 1.0 - 0.01 * (action**2).sum(axis=1)

    def ended(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Where the centre of mass has sunk by a quarter."""
        return np.asarray(center_of_mass(self.robot, q)[:, 2] < 0.75 * self.height)


class Walking(Standing):
    """A quadruped that gets on, along x."""

    def __init__(self) -> None:
        self.robot = load_urdf(find_robot("quadruped"), base="floating")
        self.height = center_of_mass(self.robot, self.home())[2]

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The speed of the base, and half a point for being on its feet."""
        return 0.5 + v[:, 3] - 0.01 * (action**2).sum(axis=1)


class Reaching(Task):
    """An arm whose last link is to come to a place, another one in each episode."""

    options: ClassVar[dict[str, Any]] = {
        "dt": 3e-3,
        "actuators": PD(kp=100.0, kd=10.0),
        "integrator": "contact",
    }
    horizon, scale = 150, 2.0

    def __init__(self) -> None:
        self.robot = load_urdf(find_robot("arm"))
        self.link, self.goals = self.robot.links[-1].name, np.zeros((0, 3))

    def home(self) -> np.ndarray:
        """See Task."""
        return self.robot.neutral()

    def tip(self, q: np.ndarray) -> np.ndarray:
        """Where the last link is, (B, 3) [m]."""
        return np.asarray(forward_kinematics(self.robot, q)[self.link][1])

    def begin(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Goals are places that the arm can reach."""
        q, v = super().begin(rng, rows)
        if len(rows) and rows[-1] >= len(self.goals):
            self.goals = np.resize(self.goals, (rows[-1] + 1, 3))
        self.goals[rows] = self.tip(q + rng.uniform(-1.0, 1.0, q.shape))
        return q, v

    def observation(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The state, and the way to the goal."""
        return np.concatenate([q, v, self.goals - self.tip(q)], axis=1)

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The distance, below 0."""
        return -np.linalg.norm(self.goals - self.tip(q), axis=1)


TASKS = {"Standing": Standing, "Walking": Walking, "Reaching": Reaching}


# ---- environments -----------------------------------------------------------------------------------------


class Environments(VectorEnv):  # type: ignore[misc]
    """Many robots with one task. A row whose episode is over begins anew in its next step."""

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(self, task: Task, num_envs: int = 1, threads: int | None = None) -> None:
        """Prepare them.

        Args:
            task: what they are to do.
            num_envs: how many.
            threads: as of :class:`robokit.Simulation`.
        """
        self.task, self.num_envs = task, num_envs
        self.home = task.home()
        self.sim = Simulation(task.robot, self.home, batch=num_envs, threads=threads, **task.options)
        places = {joint.name: joint.q_slice.start for joint in task.robot.joints}
        self._about = self.home[[places[name] for name in self.sim.driven]]
        self._age, self._over = np.zeros(num_envs, int), np.zeros(num_envs, bool)
        task.begin(np.random.default_rng(0), np.arange(num_envs))
        size = self._observed().shape[1]
        self.single_observation_space = Box(-LARGEST, LARGEST, (size,), np.float64)
        self.single_action_space = Box(-1.0, 1.0, (len(self.sim.driven),), np.float64)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """See ``gymnasium.vector.VectorEnv``."""
        super().reset(seed=seed, options=options)
        self._begin(np.ones(self.num_envs, bool))
        return self._observed(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """See ``gymnasium.vector.VectorEnv``."""
        actions = np.clip(np.asarray(actions, float).reshape(self.action_space.shape), -1.0, 1.0)
        again = self._over
        self.sim.step(targets=self._about + self.task.scale * actions, steps=self.task.steps)
        self._age += 1
        broken = self.sim.failed
        self._begin(again)
        q, v = self._sound()
        rewards = np.where(again | broken, 0.0, self.task.reward(q, v, actions))
        terminated = (self.task.ended(q, v) | broken) & ~again
        truncated = (self._age >= self.task.horizon) & ~terminated & ~again
        self._over = terminated | truncated
        return self._observed(), rewards, terminated, truncated, {}

    def _begin(self, rows: np.ndarray) -> None:
        """Set rows, a mask, to new starts."""
        if rows.any():
            q, v = self.task.begin(self.np_random, np.flatnonzero(rows))
            self.sim.reset(q, v, rows=rows)
            self._age[rows] = 0
        self._over = np.zeros(self.num_envs, bool)

    def _sound(self) -> tuple[np.ndarray, np.ndarray]:
        """The states; where one is not finite, that of the start."""
        bad = self.sim.failed[:, None]
        return np.where(bad, self.home, self.sim.q), np.where(bad, 0.0, self.sim.v)

    def _observed(self) -> np.ndarray:
        return np.clip(self.task.observation(*self._sound()), -LARGEST, LARGEST)


class Environment(gymnasium.Env):  # type: ignore[misc]
    """One robot with a task."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: Task) -> None:
        """Prepare it."""
        self.rows = Environments(task, 1, threads=1)
        self.observation_space = self.rows.single_observation_space
        self.action_space = self.rows.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """See ``gymnasium.Env``."""
        super().reset(seed=seed)
        self.rows._np_random = self.np_random
        self.rows._begin(np.ones(1, bool))
        return self.rows._observed()[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """See ``gymnasium.Env``."""
        seen, reward, terminated, truncated, _ = self.rows.step(np.asarray(action)[None])
        self.rows._over[:] = False  # its caller resets it
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}


def _registered(name: str, task: type[Task]) -> None:
    gymnasium.register(
        f"robokit/{name}-v0",
        entry_point=lambda **options: Environment(task(), **options),
        vector_entry_point=lambda num_envs=1, **options: Environments(task(), num_envs, **options),
    )


for _name, _task in TASKS.items():
    _registered(_name, _task)
