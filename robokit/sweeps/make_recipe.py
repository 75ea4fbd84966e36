"""From the arguments of a sweep to its recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit.arguments import not_a_robot, real_array, real_number, whole_number
from robokit.contact.measures import DEFAULT
from robokit.errors import ShapeError, UnknownName, WrongType, shown
from robokit.model.robot import Robot
from robokit.sim.actuators import Actuator, actuators_of, with_rotors
from robokit.sim.ground import Ground
from robokit.sim.rollout_measures import Measure, wanted_measures
from robokit.sim.run_inputs import LARGEST_CONTACT_STEP, DrivenJoints
from robokit.sim.starts import check_quaternions, standing_configuration
from robokit.sim.steppers import default_step
from robokit.sweeps.distributions import LARGEST_SEED, Distribution, Sobol, Uniform
from robokit.sweeps.parameters import check_parameters, grid_size
from robokit.sweeps.recipe import MAX_ROWS, Recipe, check_steps, versions
from robokit.sweeps.robot_record import RobotRecord, actuator_to_json
from robokit.sweeps.row_inputs import check_drives
from robokit.sweeps.user_measures import StoredMeasure

STATE_NAMES = ("q", "v")


def make_recipe(
    robots: Robot | Sequence[Robot] | Mapping[str, Robot],
    *,
    starts: Any = None,
    parameters: Mapping[str, Any] | None = None,
    duration: float = 1.0,
    ground: Ground | bool | None = True,
    measures: Any = None,
    count: int | None = None,
    seed: int = 0,
    dt: float | None = None,
    sobol: bool = False,
    trajectories: Sequence[int] = (),
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: Any = None,
    gravity: Sequence[float] | None = None,
    actuators: Any = None,
) -> Recipe:
    """The recipe of a sweep; arguments and errors as those of :func:`robokit.sweep`."""
    named = named_robots(robots)
    if isinstance(actuators, Mapping):
        for name in actuators:
            if name not in named:
                raise UnknownName("robot", str(name), named, "in this sweep (actuators)")
    if gravity is not None:
        named = {name: robot.with_gravity(gravity) for name, robot in named.items()}
    ground = _checked_ground(ground)
    start_parameters, states = _split_starts(starts)
    values = dict(start_parameters)
    for name, value in (parameters or {}).items():
        if name in values:
            raise ShapeError(f"parameters: {name!r} is among the starts already")
        values[name] = value
    duration = real_number("duration", duration, above=0.0)
    start = {name: _start_states(name, robot, states, ground) for name, robot in named.items()}
    number = {len(q) for q, _, _ in start.values()}
    if len(number) > 1:
        raise ShapeError(f"starts: robots have {min(number)} and {max(number)} states; give each as many")
    drawn = check_parameters(values, named, number.pop(), ground is not None)
    if ground is not None and "ground_tilt" in drawn and not (ground.only_plane and ground.horizontal):
        raise ShapeError("ground_tilt: expected a ground that is one horizontal plane at rest, to be tilted")
    if sobol:
        drawn = {name: _sobol(x) for name, x in drawn.items()}
    count = _row_count(count, drawn)
    steps = {name: _time_step(robot, ground, dt, duration) for name, robot in named.items()}
    drives = {
        name: _checked_actuators(name, robot, actuators, (steps[name], duration), start[name][0])
        for name, robot in named.items()
    }
    for name, robot in ({n: r for n, r in named.items() if drives[n]} or named).items():
        check_drives(robot, drives[name], list(drawn))
    links = [name.partition(":")[2] for name in drawn if name.startswith("mass:")]
    options = {"integrator": integrator, "joint_damping": joint_damping}
    return Recipe(
        robots={
            name: RobotRecord.of(robot, *start[name][:2], ground, links, self_collision, drives[name])
            for name, robot in named.items()
        },
        parameters=drawn,
        count=count,
        trajectories=tuple(sorted({whole_number("trajectories", k, 0, count - 1) for k in trajectories})),
        seed=whole_number("seed", seed, 0, LARGEST_SEED),
        duration=duration,
        dt=steps,
        ground=ground,
        measures=tuple(
            StoredMeasure.of(x, named.values()) if isinstance(x, Measure) else x
            for x in wanted_measures(DEFAULT if measures is None else measures)
        ),
        standing={name: standing for name, (_, _, standing) in start.items()},
        options={name: x for name, x in options.items() if x not in (None, False)},
        versions=versions(),
    )


def named_robots(robots: Any) -> dict[str, Robot]:
    """The robots of a sweep by name.

    Raises:
        WrongType: no robots.
        ShapeError: two have one name.
    """
    if isinstance(robots, Robot):
        return {robots.name: robots}
    if isinstance(robots, Mapping):
        named = dict(robots)
    elif isinstance(robots, Sequence) and not isinstance(robots, str):
        named = {getattr(robot, "name", k): robot for k, robot in enumerate(robots)}
        if len(named) != len(robots):
            raise ShapeError("robots: two have one name; give {name: robot, ...}")
    else:
        raise not_a_robot(robots, "robots")
    for name, robot in named.items():
        if not isinstance(robot, Robot):
            raise not_a_robot(robot, f"robots[{name!r}]")
        if not isinstance(name, str):
            raise WrongType("robots", name, "names as keys")
    if not named:
        raise ShapeError("robots: expected at least one, got none")
    return named


def _checked_ground(ground: Any) -> Ground | None:
    surface = Ground() if ground is True else ground or None
    if surface is not None and not isinstance(surface, Ground):
        raise ShapeError(f"ground: expected rk.Ground(...), True or None, got {shown(ground)}")
    if surface is not None and surface.rows is not None:
        raise ShapeError("ground: a sweep's friction by row is its parameter friction=rk.Uniform(...)")
    return surface


def _split_starts(starts: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the start, and states to start from: q and v."""
    if starts is None:
        return {}, {}
    if isinstance(starts, Mapping):
        states = {name: starts[name] for name in STATE_NAMES if name in starts}
        return {name: x for name, x in starts.items() if name not in STATE_NAMES}, states
    if isinstance(starts, tuple) and len(starts) == 2:
        return {}, dict(zip(STATE_NAMES, starts, strict=True))
    return {}, {"q": starts}


def _start_states(
    name: str, robot: Robot, states: Mapping[str, Any], ground: Ground | None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Configurations and velocities to start from, (S, nq) and (S, nv); whether they are standing ones."""
    q, v = (x.get(name) if isinstance(x, Mapping) else x for x in (states.get(k) for k in STATE_NAMES))
    standing = q is None and robot.base == "floating"
    if standing:
        # On a ground that is not even, each row is lowered onto it where it is.
        q = standing_configuration(robot, ground_height=0.0 if ground is None else ground.height)
    elif q is None:
        q = robot.neutral()
    q = _state_rows(f"starts: q of robot {name!r}", q, robot.nq)
    v = _state_rows(f"starts: v of robot {name!r}", np.zeros(robot.nv) if v is None else v, robot.nv)
    S = max(len(q), len(v))
    if min(len(q), len(v)) not in (1, S):
        raise ShapeError(f"starts: robot {name!r} has {len(q)} configurations and {len(v)} velocities")
    check_quaternions(f"starts: q of robot {name!r}", robot, q)
    return np.array(np.broadcast_to(q, (S, robot.nq))), np.array(np.broadcast_to(v, (S, robot.nv))), standing


def _state_rows(what: str, states: Any, n: int) -> np.ndarray:
    array = real_array(what, states, f"({n},) or (S, {n})")
    rows = np.atleast_2d(array)
    if rows.ndim != 2 or rows.shape[1] != n or not len(rows):
        raise ShapeError(f"{what}: expected shape ({n},) or (S, {n}), got {array.shape}")
    if not np.isfinite(rows).all():
        raise ShapeError(f"{what}: expected finite numbers")
    return rows


def _row_count(count: int | None, drawn: Mapping[str, Distribution]) -> int:
    if count is None:
        count = grid_size(drawn)
        if count == 1:
            raise ShapeError("count: expected the number of rows; without rk.Grid nothing else says it")
    return whole_number("count", count, 1, MAX_ROWS)


def _time_step(robot: Robot, ground: Ground | None, dt: float | None, duration: float) -> float:
    """The time step of a robot [s]."""
    step = default_step(robot, ground is not None) if dt is None else real_number("dt", dt, above=0.0)
    if ground is not None and step > LARGEST_CONTACT_STEP:
        raise ShapeError(f"dt: {step:g} s is too long for contact; take {LARGEST_CONTACT_STEP:g} s or less")
    check_steps(duration, step)
    return step


def _checked_actuators(
    name: str, robot: Robot, actuators: Any, times: tuple[float, float], q: np.ndarray
) -> tuple[Actuator, ...]:
    """The actuators of a robot, checked as a run of a step and a duration would check them."""
    own = actuators_of(actuators.get(name) if isinstance(actuators, Mapping) else actuators)
    if not own:
        return ()
    for one in own:
        actuator_to_json(one)  # refuses functions
    dt, duration = times
    fitted = DrivenJoints(with_rotors(robot, own), own, dt, max(1, round(duration / dt)), q[:1], None)
    if fitted.rows is not None:
        raise ShapeError(
            f"actuators: expected one set of numbers for all rows, got {fitted.rows}; a sweep changes them "
            "by parameters such as kp=rk.Uniform(0.5, 2.0)"
        )
    return own


def _sobol(values: Distribution) -> Distribution:
    """A uniform distribution as a dimension of the Sobol sequence; others as they are."""
    return Sobol(values.low, values.high) if type(values) is Uniform else values
