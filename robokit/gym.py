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

import math
from typing import Any, ClassVar

import numpy as np

from robokit.arguments import check_finite, real_array, whole_number
from robokit.dynamics import center_of_mass, forward_kinematics
from robokit.errors import InvalidValue, MissingDependency, ShapeError, UnknownName, WrongType
from robokit.model.robot import Robot, check_robot
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

__all__ = ["Environment", "Environments", "Reaching", "Standing", "Task", "Walking"]

LARGEST = 100.0
"""Bound of each number of an observation [rad, m, and those a second], to which it is cut: joints turn by
some rad and by tens of rad a second, and only a robot that is thrown goes beyond."""


class Task:
    """A task of a robot. A subclass sets ``robot`` and defines the starts and the rewards of the rows.

    Attributes:
        robot: the robot.
        sim: the :class:`robokit.Simulation` of the environments that have the task, for what else the rows
            see, such as ``net_contact_forces``; they set it.
        options: arguments of :class:`robokit.Simulation`.
        steps: number of simulation steps in an environment step.
        horizon: number of environment steps of an episode.
        scale: range of the targets of driven joints about their start, for actions from -1 to 1 [rad].
    """

    robot: Robot
    sim: Simulation
    options: ClassVar[dict[str, Any]] = {"dt": 3e-3, "ground": True, "actuators": PD(kp=100.0, kd=5.0)}
    steps, horizon, scale = 5, 500, 0.5

    def begin(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start states of the rows with these numbers, (n,): q (n, nq) and v (n, nv)."""
        q = np.tile(self.home(), (len(rows), 1))
        return q, rng.normal(scale=0.02, size=(len(rows), self.robot.nv))

    def home(self) -> np.ndarray:
        """The configuration about which the robot moves, (nq,): standing, or neutral on a fixed base."""
        return standing_configuration(self.robot) if self.robot.base == "floating" else self.robot.neutral()

    def observation(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Observations, (B, n): all coordinates except a base's horizontal position, and velocities."""
        seen = [q[:, :4], q[:, 6:]] if self.robot.base == "floating" else [q]
        return np.concatenate([*seen, v], axis=1)

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Rewards of the step, (B,)."""
        raise NotImplementedError

    def ended(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rows whose episode has terminated, (B,)."""
        return np.zeros(len(q), bool)


# ---- tasks ------------------------------------------------------------------------------------------------


class Standing(Task):
    """A robot that stays on its feet, with little effort: a humanoid, or another with a floating base."""

    _name = "humanoid"

    def __init__(self, robot: Robot | None = None) -> None:
        self.robot = load_urdf(find_robot(self._name), base="floating") if robot is None else robot
        self.height = center_of_mass(self.robot, self.home())[2]

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """One per step, minus a penalty on the actions."""
        return 1.0 - 0.01 * (action**2).sum(axis=1)

    def ended(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rows whose centre of mass has sunk by a quarter of its height."""
        return np.asarray(center_of_mass(self.robot, q)[:, 2] < 0.75 * self.height)


class Walking(Standing):
    """A robot that moves along the world's x axis: a quadruped, or another with a floating base."""

    _name = "quadruped"

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The speed of the base along the world's x axis, plus one half, minus a penalty on the actions."""
        axis = forward_kinematics(self.robot, q)[self.robot.links[0].name][0][
            :, 0
        ]  # in axes of the base, as v
        return np.asarray(0.5 + (axis * v[:, 3:6]).sum(axis=1) - 0.01 * (action**2).sum(axis=1))


class Reaching(Task):
    """An arm whose last link must reach a goal, a new one in each episode."""

    options: ClassVar[dict[str, Any]] = {
        "dt": 3e-3,
        "actuators": PD(kp=1000.0, kd=100.0),  # 100 N m/rad give way to its weight by half a radian
        "integrator": "contact",
    }
    horizon, scale = 150, 2.0

    def __init__(self) -> None:
        self.robot = load_urdf(find_robot("arm"))
        self.link, self.goals = self.robot.links[-1].name, np.zeros((0, 3))

    def tip(self, q: np.ndarray) -> np.ndarray:
        """Position of the last link, (B, 3) [m]."""
        return np.asarray(forward_kinematics(self.robot, q)[self.link][1])

    def begin(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Starts, with goals that the arm can reach."""
        q, v = super().begin(rng, rows)
        if len(rows) and rows[-1] >= len(self.goals):
            self.goals = np.resize(self.goals, (rows[-1] + 1, 3))
        self.goals[rows] = self.tip(q + rng.uniform(-1.0, 1.0, q.shape))
        return q, v

    def observation(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The state, and the vector to the goal."""
        return np.concatenate([super().observation(q, v), self.goals - self.tip(q)], axis=1)

    def reward(self, q: np.ndarray, v: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Minus the distance."""
        return -np.linalg.norm(self.goals - self.tip(q), axis=1)


TASKS: dict[str, type[Task]] = {"Standing": Standing, "Walking": Walking, "Reaching": Reaching}


# ---- environments -----------------------------------------------------------------------------------------


class Environments(VectorEnv):  # type: ignore[misc]
    """A vector environment: many robots with one task.

    When an episode is over, its row starts a new one in the next step.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        task: Task | str,
        num_envs: int = 1,
        threads: int | None = None,
        render_mode: str | None = None,
        device: Any = None,
        max_episode_steps: int | None = None,
    ) -> None:
        """Prepare the environments.

        Args:
            task: what they are to do, or the name of one of :data:`TASKS`.
            num_envs: how many.
            threads: as in :class:`robokit.Simulation`.
            render_mode: None, for nothing is drawn.
            device: "cuda" takes the steps on a graphics card, as in :class:`robokit.Simulation`; what is
                seen, done and rewarded stays in NumPy's arrays.
            max_episode_steps: environment steps of an episode, as ``gymnasium.make_vec`` passes them on;
                default: the task's ``horizon``.

        Raises:
            InvalidValue: a render mode.
            ShapeError: num_envs or max_episode_steps is not a whole number >= 1, or an observation is not
                (B, n); :meth:`step` also refuses rewards and ends that are not (B,).
            UnknownName: of a task.
            WrongType: task is neither a Task nor a name, or its robot is no Robot.
        """
        if render_mode is not None:
            raise InvalidValue(f"render_mode: expected None, got {render_mode!r}; nothing is drawn here")
        if isinstance(task, str):
            if task not in TASKS:
                raise UnknownName("task", task, TASKS)
            task = TASKS[task]()
        if not isinstance(task, Task):
            raise WrongType("task", task, f"an object such as Standing(), or one of {', '.join(TASKS)}")
        check_robot(getattr(task, "robot", None))
        num_envs = whole_number("num_envs", num_envs, 1)
        self.task, self.num_envs, self.render_mode = task, num_envs, render_mode
        most = max_episode_steps
        self.horizon: float = task.horizon if most is None else whole_number("max_episode_steps", most, 1)
        self.home = task.home()
        options = {"batch": num_envs, "threads": threads, "device": device} | task.options
        self.sim = task.sim = Simulation(task.robot, self.home, **options)
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
        """See ``gymnasium.vector.VectorEnv``.

        Args:
            seed: seed of the starts; None continues the current random stream.
            options: ``{"reset_mask": rows}`` resets some rows only, a mask (num_envs,).
        """
        rows = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        if rows.shape != (self.num_envs,) or rows.dtype != bool:
            given = f"{rows.dtype} of shape {rows.shape}"
            raise ShapeError(f'options["reset_mask"]: expected bool of shape ({self.num_envs},), got {given}')
        super().reset(seed=seed, options=options)
        self._begin(rows)
        return self._observed(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """See ``gymnasium.vector.VectorEnv``."""
        shape = self.num_envs, len(self.sim.driven)
        actions = np.clip(real_array("actions", actions, shape), -1.0, 1.0)
        if actions.shape != shape:
            raise ShapeError(f"actions: expected shape {shape}, got {actions.shape}")
        check_finite("actions", actions)
        again = self._over
        self.sim.step(targets=self._about + self.task.scale * actions, steps=self.task.steps)
        self._age += 1
        broken = self.sim.failed
        self._begin(again)
        q, v = self._sound()
        rewards = np.where(again | broken, 0.0, self._returned("reward", self.task.reward(q, v, actions)))
        terminated = (self._returned("ended", self.task.ended(q, v), "b") | broken) & ~again
        truncated = (self._age >= self.horizon) & ~terminated & ~again
        self._over = terminated | truncated
        return self._observed(), rewards, terminated, truncated, {}

    def _begin(self, rows: np.ndarray) -> None:
        """Set rows, a mask, to new starts."""
        self.task.sim = self.sim  # other environments may have the same task
        if rows.any():
            q, v = self.task.begin(self.np_random, np.flatnonzero(rows))
            self.sim.reset(q, v, rows=rows)
            self._age[rows] = 0
        self._over = self._over & ~rows

    def _sound(self) -> tuple[np.ndarray, np.ndarray]:
        """The states; where one is not finite, that of the start."""
        q, v = np.asarray(self.sim.q, float), np.asarray(self.sim.v, float)
        bad = self.sim.failed[:, None]
        return np.where(bad, self.home, q), np.where(bad, 0.0, v)

    def _observed(self) -> np.ndarray:
        seen = self._returned("observation", self.task.observation(*self._sound()))
        broken = self.sim.failed[:, None]
        # What a task sees of the simulation besides may not be finite in such rows.
        return np.clip(np.where(broken, np.nan_to_num(seen), seen), -LARGEST, LARGEST)

    def _returned(self, method: str, x: Any, kinds: str = "fiu") -> np.ndarray:
        """What a method of the task returned: (B,), or of ``observation`` (B, n); no NaN in sound rows."""
        found, rows, about = np.asarray(x), self.num_envs, f"{type(self.task).__name__}.{method}"
        right = found.ndim == 2 and len(found) == rows if method == "observation" else found.shape == (rows,)
        if not right or found.dtype.kind not in kinds:
            kind = "booleans" if kinds == "b" else "numbers"
            shape = f"({rows}, n)" if method == "observation" else f"({rows},)"
            raise ShapeError(
                f"{about}: expected {kind} of shape {shape}, one row per robot, got {found.dtype} of shape "
                f"{found.shape}"
            )
        if np.isnan(found[~self.sim.failed]).any():
            raise InvalidValue(f"{about}: expected numbers, got NaN for a robot whose state is finite")
        return found


class Environment(gymnasium.Env):  # type: ignore[misc]
    """One robot with a task."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, task: Task | str, render_mode: str | None = None) -> None:
        """Prepare the environment: see :class:`Environments`."""
        self.rows, self.render_mode = Environments(task, 1, 1, render_mode), render_mode
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


def without_end(task: str, render_mode: str | None = None) -> Environment:
    """The environment of ``gymnasium.make``: its wrapper TimeLimit ends episodes, not the task's horizon."""
    made = Environment(task, render_mode)
    made.rows.horizon = math.inf
    return made


for _name, _task in TASKS.items():
    gymnasium.register(
        f"robokit/{_name}-v0",
        entry_point="robokit.gym:without_end",
        vector_entry_point="robokit.gym:Environments",
        max_episode_steps=_task.horizon,
        kwargs={"task": _name},
    )
