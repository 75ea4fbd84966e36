"""Parameters of sweeps: their table, their values in each row, and the inputs that they become."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.dynamics.build import angle_bounds
from robokit.errors import ModelError, ShapeError, UnknownName, WrongType
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.sim.actuators import Actuator, Keyframes, by_joint, driven, label_of
from robokit.sim.force_elements import Push
from robokit.sim.ground import Ground
from robokit.sim.joint_forces import joint_law
from robokit.sim.starts import closed_rows, ground_gaps, lowered, touching_shapes
from robokit.spatial.rotation import quat_multiply, quat_normalized, quat_wxyz_to_rotation
from robokit.spatial.scalars import cos, sin
from robokit.spatial.vectors import Vector3
from robokit.sweeps.distributions import (
    Distribution,
    Grid,
    Sobol,
    distribution,
    distribution_text,
    normal_quantile,
    sobol_points,
    uniforms,
)

# ==== the parameters of rows: names, units, meanings and ranges, and their values in each row =====
# A name with a colon refers to one link or joint: ``mass:torso``, ``joint:left_knee``. Angles are in radians.

MAX_GRAVITIES = 8  # different ones of a sweep: each needs code of its own
ROBOT = "robot"  # name of the parameter that says which robot a row has


@frozen
class Parameter:
    """A row of the table."""

    name: str  # as it is given and as the column is called
    unit: str  # of its values; "" for a plain number
    about: str  # what it is, in one line
    default: float = 0.0  # what a row has where the parameter is not given
    least: float = -math.inf  # the smallest value that makes sense, itself allowed unless ``above`` is set
    most: float = math.inf  # the largest
    above: bool = False  # whether ``least`` itself makes no sense
    of: str = ""  # "link" or "joint" where the name may or must go on with the name of one
    needs: bool = False  # whether it must
    base: bool = False  # whether it is about a floating base alone
    ground: bool = False  # whether it needs a ground
    words: bool = False  # whether its values are words

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Which of its values make no sense, (B,)."""
        if self.words:
            return np.zeros(len(values), bool)
        low = values <= self.least if self.above else values < self.least
        return np.asarray(low | (values > self.most))


_ANGULAR = "angular velocity of the base in world axes at the start"
_LINEAR = "velocity of the base's origin in world axes at the start"
_COM = "shift of the link's centre of mass along the axes of its body's frame; inertia about it stays"

PARAMETERS: tuple[Parameter, ...] = (
    Parameter(ROBOT, "", "name of the robot", words=True),
    Parameter("start", "", "number of the configuration among those given as starts, from 0", least=0.0),
    Parameter("tilt", "rad", "angle by which the robot leans at the start", base=True),
    Parameter(
        "direction", "rad", "direction of tilt and speed: 0 for +x, counterclockwise from above", base=True
    ),
    Parameter("yaw", "rad", "angle by which the robot is turned about the vertical", base=True),
    Parameter("height", "m", "gap between the ground and the robot's lowest point at the start", base=True),
    Parameter("speed", "m/s", "horizontal speed of the base at the start, along direction", base=True),
    Parameter("spin", "rad/s", "angular velocity of the base about the vertical at the start", base=True),
    *(Parameter(f"velocity_{x}", "m/s", f"{_LINEAR}, {x}", base=True) for x in "xyz"),
    *(Parameter(f"angular_velocity_{x}", "rad/s", f"{_ANGULAR}, {x}", base=True) for x in "xyz"),
    Parameter(
        "joint_noise", "rad | m", "standard deviation of a random change of each joint at the start",
        least=0.0,
    ),
    Parameter(
        "joint_velocity_noise", "rad/s | m/s", "standard deviation of each joint's velocity at the start",
        least=0.0,
    ),
    Parameter("joint", "rad | m", "a joint's coordinate at the start", of="joint", needs=True),
    Parameter("joint_velocity", "rad/s | m/s", "a joint's velocity at the start", of="joint", needs=True),
    Parameter(
        "mass", "", "factor of mass and inertia together, of the robot or of one link", 1.0, 0.0, above=True,
        of="link",
    ),
    *(Parameter(f"com_{x}", "m", f"{_COM}, {x}", of="link", needs=True) for x in "xyz"),
    Parameter(
        "friction", "", "Coulomb coefficient of the ground, for all links or for one", least=0.0, of="link",
        ground=True,
    ),
    Parameter(
        "restitution", "", "coefficient of restitution of the ground, for all links or for one",
        least=0.0, most=1.0, of="link", ground=True,
    ),
    Parameter(
        "ground_tilt", "rad", "angle by which the ground's plane descends", least=-1.5, most=1.5, ground=True
    ),
    Parameter(
        "ground_tilt_direction", "rad", "direction of its descent: 0 for +x, counterclockwise from above",
        ground=True,
    ),
    Parameter("damping", "", "factor of the damping of all joints", 1.0, 0.0),
    Parameter(
        "kp", "", "factor of the stiffness of servos, on all joints or on one", 1.0, 0.0, above=True,
        of="joint",
    ),
    Parameter(
        "kd", "", "factor of the damping of servos and of the gain of velocity servos, on all joints or one",
        1.0, 0.0, above=True, of="joint",
    ),
    Parameter("effort", "", "factor of the actuators' largest force, on all joints or one", 1.0, 0.0,
        of="joint"),
    Parameter(
        "target", "rad | m | rad/s | m/s | N m | N", "target of an actuator: position, velocity or force",
        of="joint", needs=True,
    ),
    Parameter(
        "target_noise", "rad | m | rad/s | m/s",
        "standard deviation of an error of each servo's target that stays the same during a row", least=0.0,
    ),
    Parameter("gravity", "m/s^2", "acceleration of free fall, at most 8 different values", 9.81, 0.0),
    Parameter("push", "N s", "size of an impulse on a link", least=0.0),
    Parameter("push_direction", "rad", "its horizontal direction: 0 for +x, counterclockwise from above"),
    Parameter("push_rise", "rad", "its angle above the horizontal", least=-math.pi / 2, most=math.pi / 2),
    Parameter("push_time", "s", "when the push begins", least=0.0),
    Parameter("push_link", "", "the link that is pushed; the base by default", words=True),
)  # fmt: skip


class ParameterTable(Mapping[str, Parameter]):
    """The parameters of sweeps by name; ``print(rk.sweep_parameters)`` lists them."""

    def __getitem__(self, name: str) -> Parameter:
        return BY_NAME[name]

    def __iter__(self) -> Iterator[str]:
        return iter(BY_NAME)

    def __len__(self) -> int:
        return len(BY_NAME)

    def __repr__(self) -> str:
        return f"<ParameterTable: {', '.join(self)}>"

    def __str__(self) -> str:
        """A line or two for each, of 80 characters."""
        lines = []
        for row in self.values():
            link = f":{row.of.upper()}" if row.needs else f"[:{row.of.upper()}]" if row.of else ""
            unit = f" [{row.unit}]" if row.unit else ""
            lines += textwrap.wrap(f"{row.name}{link}{unit}: {row.about}", 78, subsequent_indent="    ")
        return "\n".join(lines)


BY_NAME: dict[str, Parameter] = {row.name: row for row in PARAMETERS}


sweep_parameters = ParameterTable()
"""The parameters of a sweep by name."""


def parameter(name: str) -> Parameter:
    """The row of a parameter by its full name.

    Raises UnknownName if there is none, ShapeError if the name of a link or joint is missing or too much.
    """
    head, colon, rest = name.partition(":")
    row = BY_NAME.get(head)
    if row is None:
        raise UnknownName("parameter of a sweep", head, BY_NAME)
    if colon and not row.of:
        raise ShapeError(f"{name}: the parameter {head!r} is not that of a single link or joint")
    if row.needs and not rest:
        raise ShapeError(f"{name}: expected {head}:NAME with the name of a {row.of}")
    return row


def check_parameters(
    values: Mapping[str, Any], robots: Mapping[str, Robot], starts: int, ground: bool
) -> dict[str, Distribution]:
    """The parameters of a sweep, each as a distribution, in the order in which they are given.

    ``starts`` is the number of configurations to start from, ``ground`` whether there is one. Raises
    UnknownName for a parameter, link, joint or robot that is not there, ShapeError or WrongType for values
    that make no sense.
    """
    found = {name: _check_parameter(name, value, robots, ground) for name, value in values.items()}
    if "start" in found:
        for value in _listed("start", found["start"], "numbers of starts"):
            if not (isinstance(value, float) and value == int(value) and value < starts):
                raise ShapeError(f"start: expected whole numbers below {starts}, got {value}")
    if ROBOT in found:
        for value in _listed(ROBOT, found[ROBOT], "names of robots"):
            if value not in robots:
                raise UnknownName("robot", value, robots, "in this sweep")
    elif len(robots) > 1:
        found[ROBOT] = Grid(list(robots))
    for head, unit in (("push", "N s"), ("ground_tilt", "rad")):
        more = [name for name in found if name.startswith(f"{head}_")]
        if more and head not in found:
            raise ShapeError(f"{more[0]}: there is no {head}; give {head}=..., its size [{unit}]")
    if "gravity" in found:
        gravities = set(_listed("gravity", found["gravity"], f"{MAX_GRAVITIES} numbers or fewer"))
        if len(gravities) > MAX_GRAVITIES:
            raise ShapeError(f"gravity: expected {MAX_GRAVITIES} values or fewer, got {len(gravities)}")
    if starts > 1 and "start" not in found:
        found["start"] = Grid([float(k) for k in range(starts)])
    return found


def _check_parameter(name: Any, value: Any, robots: Mapping[str, Robot], ground: bool) -> Distribution:
    if not isinstance(name, str):
        raise WrongType("parameters", name, "names of parameters as keys")
    row, what = parameter(name), name.partition(":")[2]
    found = distribution(name, value)
    check_kind(name, found)
    if not row.words:
        low, high = found.bounds()
        if found.kind == "normal":  # its tails are the rows' matter, unless all of it is wrong
            low = high = found.mean  # type: ignore[attr-defined]
        if row.outside(np.array([low, high])).any():
            words = f"above {row.least:g}" if row.above else f"from {row.least:g} to {row.most:g}"
            words = words.replace(" to inf", " on")
            raise ShapeError(f"{name}: expected values {words}, got {distribution_text(found)}")
    if row.ground and not ground:
        raise ShapeError(f"{name}: there is no ground; give ground=True or leave this out")
    for robot in robots.values():
        _check_names(row, name, what, found, robot)
    return found


def check_kind(name: str, dist: Distribution) -> None:
    """Refuse words for a parameter of numbers, and numbers for one of words, by ShapeError."""
    row = parameter(name)
    if row.words:
        values = _listed(name, dist, "words")
        if not all(isinstance(value, str) for value in values):
            raise ShapeError(
                f"{name}: expected words, such as rk.Choice(['a', 'b']), got {distribution_text(dist)}"
            )
    elif isinstance((dist.values() or [0.0])[0], str):
        raise ShapeError(f"{name}: expected numbers [{row.unit or '1'}], got {distribution_text(dist)}")


def _check_names(row: Parameter, name: str, what: str, found: Distribution, robot: Robot) -> None:
    if row.base and robot.base != "floating":
        raise ShapeError(
            f"{name}: robot {robot.name!r} has a fixed base; load it with base='floating' or leave this out"
        )
    links = [what] if row.of == "link" and what else []
    if row.name == "push_link":
        links = [str(value) for value in found.values() or ()]
    for link in links:
        if robot.link(link).body == 0:
            raise ShapeError(f"{name}: link {link!r} is fixed to the world")
    if row.of == "joint" and what:
        joint = robot.joint(what)
        if joint not in robot.joints and joint.mimic is not None and joint.kind != "fixed":
            raise ShapeError(f"{name}: joint {what!r} follows {joint.mimic.joint!r}; give that one")
        if joint not in robot.joints or joint.v_slice.stop - joint.v_slice.start != 1:
            raise ShapeError(f"{name}: expected a joint of one degree of freedom, got a {joint.kind} one")


def _listed(name: str, found: Distribution, what: str) -> Sequence[Any]:
    values = found.values()
    if values is None:
        raise ShapeError(
            f"{name}: expected {what}: one, rk.Choice([...]) or rk.Grid([...]), got "
            f"{distribution_text(found)}"
        )
    return values


# ---- the parameters of rows --------------------------------------------------------------------


def draw_parameters(
    parameters: Mapping[str, Distribution], seed: int, first: int, last: int
) -> dict[str, np.ndarray]:
    """The parameters of rows first..last-1, (B,) each."""
    rows = np.arange(first, last, dtype=np.uint64)
    even = [name for name, x in parameters.items() if isinstance(x, Sobol)]
    points = sobol_points(seed, even, first, last) if even else np.zeros((len(rows), 0))
    places = grid_places(parameters, rows)
    found = {}
    for name, dist in parameters.items():
        if isinstance(dist, Grid):
            found[name] = dist.at_places(places[name])
        elif isinstance(dist, Sobol):
            found[name] = dist.at(points[:, even.index(name)])
        elif dist.drawn:
            found[name] = dist.at(uniforms(seed, name, rows)[:, 0])
        else:
            found[name] = dist.at(np.zeros(len(rows)))
    return found


def grid_places(parameters: Mapping[str, Distribution], rows: np.ndarray) -> dict[str, np.ndarray]:
    """The place in each grid of a row's value: the last grid changes fastest, robots faster still."""
    grids = {name: x for name, x in parameters.items() if isinstance(x, Grid)}
    rest, found = rows.astype(np.int64), {}
    for name in sorted(grids, key=lambda x: x == ROBOT)[::-1]:
        n = len(grids[name].points)
        found[name] = rest % n
        rest = rest // n
    return found


def grid_size(parameters: Mapping[str, Distribution]) -> int:
    """How many combinations the grids of a sweep have; 1 without grids."""
    total = 1
    for dist in parameters.values():
        total *= len(dist.points) if isinstance(dist, Grid) else 1
    return total


# ==== from the parameters of rows to their starts, masses, ground, pushes and actuators ===========
# All of these are inputs of the step, with one value per row: no parameter of a row compiles anything. Every
# number is computed by + - * / and square roots, and by robokit's own sines and cosines
# (robokit.spatial.scalars), so that a row starts with the same bits on every machine and in every chunk.


# ---- states at the start -----------------------------------------------------------------------

ORIENTATION_PARAMETERS = ("tilt", "yaw", "direction")  # parameters that turn the robot

VELOCITY_PARAMETERS = (
    "speed",
    "spin",
    *(f"{what}_{x}" for what in ("velocity", "angular_velocity") for x in "xyz"),
)

STANDING_GAP = 0.02  # under a robot that starts standing without a height [m]: as of ``robokit fall``

Values = Mapping[str, np.ndarray]


def start_states(
    robot: Robot,
    starts: tuple[np.ndarray, np.ndarray],
    values: Values,
    rows: np.ndarray,
    seed: int,
    grounds: tuple[Ground | None, Ground | None],
    standing: bool,
    broken: dict[int, str],
) -> tuple[np.ndarray, np.ndarray]:
    """The states in which rows start, (B, nq) and (B, nv).

    Args:
        robot: the robot, without samples.
        starts: configurations and velocities to choose from, (S, nq) and (S, nv).
        values: of the parameters, (B,) each.
        rows: their numbers, (B,).
        seed: of the sweep.
        grounds: of the sweep, and of the rows, which may have tilts of their own; or None twice.
        standing: whether the starts are standing configurations: their height is not a wish.
        broken: gets the reasons why rows cannot be run, by their place.

    A row under whose robot there is nothing has NaN.
    """
    B = len(rows)
    place = np.asarray(values.get("start", np.zeros(B))).astype(int)
    q, v = np.array(starts[0][place]), np.array(starts[1][place])
    _move_joints(robot, q, v, values, rows, seed)
    q = _check_starts(robot, q, broken)
    if robot.base != "floating":
        return q, v
    turned = any(name in values for name in ORIENTATION_PARAMETERS)
    if turned:
        # The base turns by yaw about the vertical, then by tilt about the horizontal axis across direction.
        zero = np.zeros(len(q))
        half_yaw, half = 0.5 * values.get("yaw", zero), 0.5 * values.get("tilt", zero)
        where = values.get("direction", zero)
        turn = [cos(half), -sin(where) * sin(half), cos(where) * sin(half), zero]
        turn = list(quat_multiply(turn, [cos(half_yaw), zero, zero, sin(half_yaw)]))
        q[:, :4] = np.stack(quat_normalized(quat_multiply(turn, list(q[:, :4].T))), axis=1)
    ground = grounds[1]
    moved = turned or "ground_tilt" in values
    moved |= any(name.partition("_")[0].partition(":")[0] == "joint" for name in values)
    if ground is not None and touching_shapes(robot, ground) and (moved or standing or "height" in values):
        if "height" in values:
            gap: Any = values["height"]
        elif standing:
            gap = np.full(B, STANDING_GAP)
        else:  # as far from the ground as the configuration that was given
            gap = ground_gaps(robot, starts[0], grounds[0] or ground)[place]
        q[:, 6] = lowered(robot, q, ground, gap)
        q[~np.isfinite(q[:, 6])] = np.nan
    elif "height" in values:
        q[:, 6] = q[:, 6] + values["height"]
    if any(name in values for name in VELOCITY_PARAMETERS):
        _add_velocity(q, v, values)
    return q, v


def normals(seed: int, name: str, rows: np.ndarray, count: int) -> np.ndarray:
    """Standard normal variables of rows, (B, count)."""
    return normal_quantile(uniforms(seed, name, rows, count))


def _move_joints(
    robot: Robot, q: np.ndarray, v: np.ndarray, values: Values, rows: np.ndarray, seed: int
) -> None:
    """Joints at given coordinates and velocities, and their random changes."""
    for name, value in values.items():
        kind, _, joint_name = name.partition(":")
        if kind == "joint":
            q[:, robot.joint(joint_name).q_slice.start] = value
        elif kind == "joint_velocity":
            v[:, robot.joint(joint_name).v_slice.start] = value
    own = [joint for joint in robot.joints if robot.base != "floating" or joint.body != 1]
    if "joint_noise" in values:
        size = values["joint_noise"]
        for joint in own:
            change = normals(
                seed, f"joint_noise:{joint.name}", rows, joint.v_slice.stop - joint.v_slice.start
            )
            dv = [size * column for column in change.T]
            at = list(q[:, joint.q_slice].T)
            after = robot.tree.joint[joint.body].integrate(at, dv)
            if len(after) == 1:
                low, high = robot.position_range(joint)
                # A start beyond its limits stays where it is.
                after = [np.minimum(np.maximum(after[0], np.minimum(low, at[0])), np.maximum(high, at[0]))]
            q[:, joint.q_slice] = np.stack(after, axis=1)
    if "joint_velocity_noise" in values:
        size = values["joint_velocity_noise"]
        for joint in own:
            part = joint.v_slice
            change = normals(seed, f"joint_velocity_noise:{joint.name}", rows, part.stop - part.start)
            v[:, part] = v[:, part] + size[:, None] * change


def _check_starts(robot: Robot, q: np.ndarray, broken: dict[int, str]) -> np.ndarray:
    """Starts (B, nq) with their loops closed, and NaN where that cannot be done, or a number is too large.

    ``broken`` gets the reasons, by the row's place.
    """
    for place, most in angle_bounds(robot):
        for row in np.flatnonzero(np.abs(q[:, place]) > most).tolist():
            broken[row] = f"an angle of {q[row, place]:.3g} rad at its start is beyond {most:.3g}"
            q[row] = np.nan
    q, why = closed_rows(robot, q)
    for row, reason in why.items():
        broken[row] = reason.partition("; start closer")[0].removeprefix("start: ")
        q[row] = np.nan
    return q


def _add_velocity(q: np.ndarray, v: np.ndarray, values: Values) -> None:
    """Add a velocity in world axes to that of the base."""
    zero = np.zeros(len(q))

    def value_of(name: str) -> np.ndarray:
        return values.get(name, zero)

    where, speed = value_of("direction"), value_of("speed")
    turning = [value_of(f"angular_velocity_{x}") for x in "xyz"]
    moving = [value_of(f"velocity_{x}") for x in "xyz"]
    turning[2] = turning[2] + value_of("spin")
    moving[0], moving[1] = moving[0] + speed * cos(where), moving[1] + speed * sin(where)
    R = quat_wxyz_to_rotation(list(q[:, :4].T))
    in_base = [*R.transpose_apply(Vector3(*turning)), *R.transpose_apply(Vector3(*moving))]
    v[:, :6] = v[:, :6] + np.stack(np.broadcast_arrays(*in_base), axis=1)


# ---- masses, ground and pushes -----------------------------------------------------------------

INERTIA_PARAMETERS = ("mass", "com_x", "com_y", "com_z")
"""Parameters, or beginnings of them, that change inertias."""


def link_share(robot: Robot, link: str) -> np.ndarray:
    """The inertial parameters that a link adds to those of its body, (10,), as one product and sum each.

    Raises ModelError if it has no mass of its own.
    """
    found = robot.link(link)
    if not float(found.mass) > 0.0:
        raise ModelError(f"link {link!r} of robot {robot.name!r} has no mass, so mass:{link} changes nothing")
    alone = robot.with_inertias({link: (0.0, np.zeros(3), np.zeros((3, 3)))})
    return np.array(robot.inertial_parameters[found.body] - alone.inertial_parameters[found.body])


def row_inertias(robot: Robot, values: Values, shares: Mapping[str, np.ndarray], B: int) -> np.ndarray | None:
    """The inertial parameters of B rows, (B, N + 1, 10); None where no parameter needs them as an input.

    ``values`` are the parameters, (B,) each; ``shares`` what :func:`link_share` gives, by link.
    """
    names = [name for name in values if name.partition(":")[0] in INERTIA_PARAMETERS]
    if not names and "damping" not in values:
        return None
    P = np.tile(robot.inertial_parameters, (B, 1, 1))
    if "mass" in values:
        P = P * values["mass"][:, None, None]
    for name in names:
        head, _, link = name.partition(":")
        if head == "mass" and link:
            body = robot.link(link).body
            share = shares[link] * (values[name] - 1.0)[:, None]
            if "mass" in values:
                share = share * values["mass"][:, None]
            P[:, body] = P[:, body] + share
    for link in dict.fromkeys(name.partition(":")[2] for name in names if name.startswith("com_")):
        d = [values.get(f"com_{x}:{link}", np.zeros(B)) for x in "xyz"]
        body = robot.link(link).body
        P[:, body] = _shift_centres(P[:, body], d)
    return P


def _shift_centres(P: np.ndarray, d: list[np.ndarray]) -> np.ndarray:
    """Parameters (B, 10) of bodies whose centres of mass are moved by d, their inertias about them unchanged.

    I_o(c + d) = I_o(c) + m (((c+d).(c+d) - c.c) 1 - (c+d)(c+d)^T + c c^T), with h = m c.
    """
    m, hx, hy, hz = P[:, 0], P[:, 1], P[:, 2], P[:, 3]
    x, y, z = d
    a, b, c = 2.0 * hx * x + m * x * x, 2.0 * hy * y + m * y * y, 2.0 * hz * z + m * z * z
    xy, xz, yz = hx * y + hy * x + m * x * y, hx * z + hz * x + m * x * z, hy * z + hz * y + m * y * z
    change = [np.zeros(len(m)), m * x, m * y, m * z, b + c, -xy, a + c, -xz, -yz, a + b]
    assert len(change) == COUNT
    return P + np.stack(change, axis=1)


def row_ground(ground: Ground | None, robot: Robot, values: Values) -> Ground | None:
    """The ground of rows, with a friction, restitution and tilt of its own for each."""
    if ground is None:
        return None
    changes: dict[str, Any] = {
        "friction": _by_link("friction", ground.coefficient, robot, values),
        "restitution": _by_link("restitution", ground.bounce, robot, values),
    }
    changes = {name: x for name, x in changes.items() if x is not None}
    if "ground_tilt" in values:
        tilt = values["ground_tilt"]
        where = values.get("ground_tilt_direction", np.zeros(len(tilt)))
        changes["normal"] = np.stack([sin(tilt) * cos(where), sin(tilt) * sin(where), cos(tilt)], axis=1)
    return replace(ground, **changes) if changes else ground


def _by_link(what: str, otherwise: Callable[[str], Any], robot: Robot, values: Values) -> Any:
    """A coefficient of rows: (B,) for all links, or by link; None where no parameter changes it."""
    named = [name for name in values if name.startswith(f"{what}:")]
    everywhere = values.get(what)
    if not named:
        return None if everywhere is None else tuple(everywhere.tolist())
    of_link: dict[str, Any] = {}
    for link in robot.links:
        of_link[link.name] = otherwise(link.name) if everywhere is None else everywhere
    for name in named:
        # The links of a body touch as one: its coefficient is that of the first of them.
        body = robot.link(name.partition(":")[2]).body
        for link in robot.links:
            if link.body == body:
                of_link[link.name] = values[name]
    return of_link


def with_damping(robot: Robot, values: Values, default: float | None, sink: float | None = None) -> Robot:
    """A robot with samples, one a row, whose joints are damped by a factor of each row's own.

    ``default`` and ``sink`` are the damping of joints that have none and the ground's ``sink``, as in
    :func:`robokit.sim.joint_forces.joint_law`.
    """
    if "damping" not in values:
        return robot
    law, names = joint_law(robot, default, sink)
    factor = values["damping"]
    damped = [any(np.any(b) for b in row) for row in law.damping]
    damping = tuple(
        tuple(b * factor for b in row) if own else row for row, own in zip(law.damping, damped, strict=True)
    )
    # What is "assumed" is an input of the step.
    scaled = replace(law, damping=damping, assumed=tuple(damped))
    found = replace(robot)
    found.derived.get(("joint law", default, sink), lambda: (scaled, names))
    return found


def row_pushes(robot: Robot, values: Values, parameters: Mapping[str, Distribution]) -> list[Push]:
    """What pushes the robots of rows: a push of each row's own on one of its links."""
    if "push" not in values:
        return []
    size = values["push"]
    zero = np.zeros(len(size))
    direction, rise = values.get("push_direction", zero), values.get("push_rise", zero)
    level = size * cos(rise)
    impulse = np.stack([level * cos(direction), level * sin(direction), size * sin(rise)], axis=1)
    start = values.get("push_time", zero)
    links = [robot.body_name(1)]
    if "push_link" in parameters:
        links = [str(link) for link in dict.fromkeys(parameters["push_link"].values() or ())]
    pushes = []
    for link in links:
        own = impulse
        if len(links) > 1:
            own = np.where((values["push_link"] == link)[:, None], impulse, 0.0)
        pushes.append(Push(link, own, robot.link(link).com, start))
    return pushes


def replace_invalid(values: Values) -> tuple[dict[str, np.ndarray], dict[int, str]]:
    """Replace parameters that are impossible, such as the tail of a normal distribution may give.

    Also returns why rows cannot be run, by their place.
    """
    found: dict[int, str] = {}
    sound = dict(values)
    for name, column in values.items():
        bad = parameter(name).outside(column)
        for row in np.flatnonzero(bad).tolist():
            found.setdefault(row, f"{name} = {column[row]:.6g} makes no sense")
        if bad.any():
            sound[name] = np.where(bad, parameter(name).default, column)
    return sound, found


# ---- actuators ---------------------------------------------------------------------------------

GAINS = {"kp": "kp", "kd": "kd", "gain": "kd"}  # parameter that is a factor of a gain

ACTUATOR_PARAMETERS = ("kp", "kd", "effort", "target", "target_noise")
"""Parameters, or beginnings of them, that change actuators."""


def actuator_parameters(names: Any) -> list[str]:
    """Those of the given names that change actuators."""
    return [name for name in names if name.partition(":")[0] in ACTUATOR_PARAMETERS]


def check_drives(robot: Robot, actuators: Sequence[Actuator], names: Sequence[str]) -> None:
    """Refuse parameters that change nothing of these actuators.

    Raises ShapeError: there are none, none has what the parameter changes, or its target changes with time.
    """
    for name in actuator_parameters(names):
        head, _, joint = name.partition(":")
        if not actuators:
            raise ShapeError(f"{name}: there are no actuators; give actuators=rk.PD(...)")
        mine = [
            (k, one) for k, one in enumerate(actuators)
            if (not joint or joint in _names(robot, actuators, k)) and _has_parameter(one, head)
        ]  # fmt: skip
        if not mine:
            where = f" on joint {joint!r}" if joint else ""
            raise ShapeError(f"{name}: robot {robot.name!r} has no actuator{where} with such a value")
        moving = [k for k, one in mine if _target_moves(one)]
        if head == "target" and moving:
            raise ShapeError(
                f"{name}: the target of {label_of(actuators, moving[0])} changes with time; a sweep changes "
                "one that is constant"
            )
        moved: list[Any] = [one for _, one in mine if _target_moves(one)] if head == "target_noise" else []
        if any(type(one).__name__ != "PD" for one in moved):
            raise ShapeError(f"{name}: expected constant targets of all but rk.PD")
        if any(_is_moving(one.feedforward) for one in moved):
            raise ShapeError(f"{name}: expected a constant feedforward where the target changes with time")


def change_with_time(actuators: Sequence[Actuator]) -> bool:
    """Whether any of their targets, velocities and feedforwards does."""
    names = ("target", "velocity", "feedforward")
    return any(_is_moving(getattr(one, name, None)) for one in actuators for name in names)


def row_actuators(
    robot: Robot, actuators: Sequence[Actuator], values: Values, q: np.ndarray, rows: np.ndarray, seed: int
) -> list[Actuator]:
    """The sweep's actuators with the values of rows; their rotors are left out, which the robot has by now.

    ``values`` are the parameters, (B,) each, ``q`` the configurations at the start, (B, nq), ``rows`` their
    numbers, (B,).
    """
    own = actuator_parameters(values)
    found = []
    for k, one in enumerate(actuators):
        changes: dict[str, Any] = {"armature": 0.0}
        names = _names(robot, actuators, k)
        joints = [robot.joint(name) for name in names]
        if any(not of or of in names for of in (name.partition(":")[2] for name in own)):
            changes["joints"] = names
            for gain in one.gains:
                factor = _factors(GAINS[gain], names, values)
                if factor is not None:
                    base = by_joint(gain, getattr(one, gain), joints, robot.nv)
                    changes[gain] = base * factor
                elif isinstance(getattr(one, gain), Mapping):
                    changes[gain] = by_joint(gain, getattr(one, gain), joints, robot.nv)
            factor = _factors("effort", names, values)
            if factor is not None:
                limits = [joint.effort or math.inf for joint in joints]
                base = by_joint(
                    "effort", limits if one.effort is None else one.effort, joints, robot.nv, limits
                )
                endless = np.isinf(base)
                changes["effort"] = np.where(endless, math.inf, np.where(endless, 0.0, base) * factor)
            changes |= _targets(robot, one, names, values, q, rows, seed, changes)
        found.append(replace(one, **changes))
    return found


def _targets(
    robot: Robot,
    one: Actuator,
    names: Sequence[str],
    values: Values,
    q: np.ndarray,
    rows: np.ndarray,
    seed: int,
    changes: Mapping[str, Any],
) -> dict[str, Any]:
    """The targets of rows, where parameters change them."""
    B, kind = len(rows), type(one).__name__
    noise = values.get("target_noise") if kind != "Torque" else None
    if noise is None and not any(f"target:{name}" in values for name in names):
        return {}
    off = np.zeros((B, len(names)))
    if noise is not None:
        for j, name in enumerate(names):
            off[:, j] = noise * normals(seed, f"target_noise:{name}", rows, 1)[:, 0]
    if _target_moves(one):  # of rk.PD, as was checked: kp times what the target is off
        joints = [robot.joint(name) for name in names]
        kp = changes.get("kp", by_joint("kp", one.kp, joints, robot.nv))  # type: ignore[attr-defined]
        more = kp * off
        forward: Any = one.feedforward  # type: ignore[attr-defined]
        if isinstance(forward, Mapping):
            forward = [float(forward.get(name, 0.0)) for name in names]
        forward = np.asarray(forward, dtype=float)
        if forward.ndim and len(forward) != len(names):
            forward = forward[[joint.v_slice.start for joint in joints]]
        return {"feedforward": (forward + more)[None]}
    target = np.array(_constant(robot, one, names, q))
    for j, name in enumerate(names):
        if f"target:{name}" in values:
            target[:, j] = values[f"target:{name}"]
    return {"target": (target + off)[None]}


def _constant(robot: Robot, one: Actuator, names: Sequence[str], q: np.ndarray) -> np.ndarray:
    """The constant target of an actuator in each row, (B, n)."""
    value: Any = one.target  # type: ignore[attr-defined]
    position = type(one).__name__ == "PD"
    joints = [robot.joint(name) for name in names]
    columns = [(j.q_slice if position else j.v_slice).start for j in joints]
    base = np.zeros((len(q), len(names)))
    if position:  # a row that cannot be run has no start
        base = np.where(np.isfinite(q[:, columns]), q[:, columns], 0.0)
    if value is None:
        return base
    if isinstance(value, Mapping):
        base = base.copy()
        for name, number in value.items():
            base[:, list(names).index(name)] = float(number)
        return base
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        return np.full(base.shape, float(array))
    if array.shape[-1] != len(names):
        array = array[..., columns]
    return np.broadcast_to(array.reshape(-1, len(names)), base.shape)


def _names(robot: Robot, actuators: Sequence[Actuator], k: int) -> list[str]:
    return [joint.name for joint in driven(label_of(actuators, k), robot, actuators[k])]


def _has_parameter(one: Actuator, head: str) -> bool:
    """Whether a parameter changes something of an actuator."""
    if head in ("kp", "kd"):
        return any(GAINS[gain] == head for gain in one.gains)
    return head != "target_noise" or type(one).__name__ != "Torque"


def _target_moves(one: Actuator) -> bool:
    """Whether the target changes with time."""
    return _is_moving(one.target)  # type: ignore[attr-defined]


def _is_moving(value: Any) -> bool:
    if value is None or isinstance(value, Mapping):
        return False
    return isinstance(value, Keyframes) or np.ndim(value) > 1


def _factors(head: str, names: Sequence[str], values: Values) -> np.ndarray | None:
    """The factor of each joint in each row, (B, n); None where there is none."""
    everywhere = values.get(head)
    if everywhere is None and not any(f"{head}:{name}" in values for name in names):
        return None
    columns = []
    for name in names:
        column = values.get(f"{head}:{name}")
        if column is None:
            column = everywhere
        elif everywhere is not None:
            column = column * everywhere
        columns.append(column)
    known = next(column for column in columns if column is not None)
    return np.stack([np.ones(len(known)) if column is None else column for column in columns], axis=1)
