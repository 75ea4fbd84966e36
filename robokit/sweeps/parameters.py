"""The parameters of rows: names, units, meanings and ranges, and their values in each row.

A name with a colon refers to one link or joint: ``mass:torso``, ``joint:left_knee``. Angles are in radians.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.model.robot import Robot
from robokit.sweeps.distributions import (
    Distribution,
    Grid,
    Sobol,
    distribution,
    distribution_text,
    sobol_points,
    uniforms,
)

MAX_GRAVITIES = 8
"""Different ones of a sweep: each needs code of its own."""

ROBOT = "robot"
"""Name of the parameter that says which robot a row has."""


@dataclass(frozen=True)
class Parameter:
    """A row of the table.

    Attributes:
        name: as it is given and as the column is called.
        unit: of its values; "" for a plain number.
        about: what it is, in one line.
        default: what a row has where the parameter is not given.
        least: the smallest value that makes sense, itself allowed unless ``above`` is set.
        most: the largest.
        above: whether ``least`` itself makes no sense.
        of: "link" or "joint" where the name may or must go on with the name of one.
        needs: whether it must.
        base: whether it is about a floating base alone.
        ground: whether it needs a ground.
        words: whether its values are words.
    """

    name: str
    unit: str
    about: str
    default: float = 0.0
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    of: str = ""
    needs: bool = False
    base: bool = False
    ground: bool = False
    words: bool = False


_ANGULAR = "angular velocity of the base in world axes at the start"
_LINEAR = "velocity of the base's origin in world axes at the start"
_COM = "shift of the link's centre of mass along the axes of its body's frame; inertia about it stays"

PARAMETERS: tuple[Parameter, ...] = (
    Parameter(ROBOT, "", "name of the robot", words=True),
    Parameter("start", "", "number of the configuration among those given as starts, from 0", least=0.0),
    Parameter("tilt", "rad", "angle by which the robot leans at the start", base=True),
    Parameter(
        "direction", "rad", "where it leans and moves to: 0 for +x, counterclockwise from above", base=True
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
        "restitution", "", "share of its speed with which a point leaves the ground, of all links or one",
        least=0.0, most=1.0, of="link", ground=True,
    ),
    Parameter(
        "ground_tilt", "rad", "angle by which the ground's plane descends", least=-1.5, most=1.5, ground=True
    ),
    Parameter(
        "ground_tilt_direction", "rad", "where it descends to: 0 for +x, counterclockwise from above",
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
        "target", "rad | m | rad/s | m/s | N m | N", "what the actuator of a joint is to reach, or its force",
        of="joint", needs=True,
    ),
    Parameter(
        "target_noise", "rad | m | rad/s | m/s",
        "standard deviation of an error of each servo's target that stays the same during a row", least=0.0,
    ),
    Parameter("gravity", "m/s^2", "acceleration of free fall, at most 8 different values", 9.81, 0.0),
    Parameter("push", "N s", "size of an impulse on a link", least=0.0),
    Parameter("push_direction", "rad", "its horizontal direction: 0 for +x, counterclockwise from above"),
    Parameter("push_rise", "rad", "its angle over the horizontal", least=-math.pi / 2, most=math.pi / 2),
    Parameter("push_time", "s", "when the push begins", least=0.0),
    Parameter("push_link", "", "the link that is pushed; the base by default", words=True),
)  # fmt: skip


class ParameterTable(Mapping[str, Parameter]):
    """``rk.sweep_parameters``: the parameters by name; printed, a list of them."""

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

    Raises:
        UnknownName: there is none.
        ShapeError: the name of a link or joint is missing, or should not be there.
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

    Args:
        values: by name.
        robots: of the sweep, by name.
        starts: number of configurations to start from.
        ground: whether there is one.

    Raises:
        UnknownName: no such parameter, link, joint or robot.
        ShapeError, WrongType: values that make no sense.
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
        _check_bounds(name, row, found)
    if row.ground and not ground:
        raise ShapeError(f"{name}: there is no ground; give ground=True or leave this out")
    for robot in robots.values():
        _check_names(row, name, what, found, robot)
    return found


def check_kind(name: str, dist: Distribution) -> None:
    """Refuse words for a parameter of numbers, and numbers for one of words.

    Raises:
        UnknownName: no such parameter.
        ShapeError: values of another kind.
    """
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


def _check_bounds(name: str, row: Parameter, found: Distribution) -> None:
    low, high = found.bounds()
    if found.kind == "normal":  # its tails are the rows' matter, unless all of it is wrong
        low = high = found.mean  # type: ignore[attr-defined]
    bad = low < row.least or high > row.most or (row.above and low <= row.least)
    if bad:
        words = f"above {row.least:g}" if row.above else f"from {row.least:g} to {row.most:g}"
        words = words.replace(" to inf", " on")
        raise ShapeError(f"{name}: expected values {words}, got {distribution_text(found)}")


def _listed(name: str, found: Distribution, what: str) -> Sequence[Any]:
    values = found.values()
    if values is None:
        raise ShapeError(
            f"{name}: expected {what}: one, rk.Choice([...]) or rk.Grid([...]), got "
            f"{distribution_text(found)}"
        )
    return values


def out_of_range(name: str, values: np.ndarray) -> np.ndarray:
    """Which values of a parameter make no sense, (B,): what a normal distribution's tail may give."""
    row = parameter(name)
    if row.words:
        return np.zeros(len(values), bool)
    low = values <= row.least if row.above else values < row.least
    return np.asarray(low | (values > row.most))


# ---- the parameters of rows --------------------------------------------------------------------


def draw_parameters(
    parameters: Mapping[str, Distribution], seed: int, first: int, last: int
) -> dict[str, np.ndarray]:
    """The parameters of rows first..last, (B,) each.

    Args:
        parameters: of the sweep.
        seed: of the sweep.
        first, last: the first row, and the one after the last.
    """
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
