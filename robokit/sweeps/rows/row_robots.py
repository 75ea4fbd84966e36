"""From the parameters of rows to their masses, their ground and what pushes them.

All of it goes into the step as inputs, one value a row: no parameter of a row compiles anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.errors import ModelError
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.sim.driving.pushes import Push
from robokit.sim.ground import Ground
from robokit.sim.joints.joint_law import joint_law
from robokit.spatial.scalars import cos, sin
from robokit.sweeps.draws.distributions import Distribution
from robokit.sweeps.draws.parameter_table import out_of_range, parameter

Values = Mapping[str, np.ndarray]

INERTIAL = ("mass", "com_x", "com_y", "com_z")
"""Parameters, or beginnings of them, that change inertias."""


def inertial(names: Any) -> list[str]:
    """Those of the names that change inertias."""
    return [name for name in names if name.partition(":")[0] in INERTIAL]


def link_share(robot: Robot, link: str) -> np.ndarray:
    """The inertial parameters that a link adds to those of its body, (10,), as one product and sum each.

    Raises:
        ModelError: it has no mass of its own.
    """
    found = robot.link(link)
    if not float(found.mass) > 0.0:
        raise ModelError(f"link {link!r} of robot {robot.name!r} has no mass, so mass:{link} changes nothing")
    alone = robot.with_inertias({link: (0.0, np.zeros(3), np.zeros((3, 3)))})
    return np.array(robot.inertial_parameters[found.body] - alone.inertial_parameters[found.body])


def row_inertias(robot: Robot, values: Values, shares: Mapping[str, np.ndarray], B: int) -> np.ndarray | None:
    """The inertial parameters of rows, (B, N + 1, 10); None where no parameter needs them as an input.

    Args:
        robot: the robot, without samples.
        values: of the parameters, (B,) each.
        shares: by link, what :func:`link_share` gives.
        B: number of rows.
    """
    names = inertial(values)
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
        P[:, body] = _shifted(P[:, body], d)
    return P


def _shifted(P: np.ndarray, d: list[np.ndarray]) -> np.ndarray:
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


def with_damping(robot: Robot, values: Values, default: float | None) -> Robot:
    """A robot with samples whose joints are damped by a factor of each row's own.

    Args:
        robot: with one sample of inertias a row.
        values: of the parameters, (B,) each.
        default: damping of joints that have none, as of :func:`robokit.sim.joints.joint_law.joint_law`.
    """
    if "damping" not in values:
        return robot
    law, names = joint_law(robot, default)
    factor = values["damping"]
    damped = [any(np.any(b) for b in row) for row in law.damping]
    damping = tuple(
        tuple(b * factor for b in row) if own else row for row, own in zip(law.damping, damped, strict=True)
    )
    # What is "assumed" is an input of the step.
    scaled = replace(law, damping=damping, assumed=tuple(damped))
    found = replace(robot)
    found.derived.get(("joint law", default), lambda: (scaled, names))
    return found


def row_pushes(
    robot: Robot, values: Values, parameters: Mapping[str, Distribution], fixed: tuple[Push, ...]
) -> list[Push]:
    """What pushes the robots of rows: the pushes of all, and one of each row's own on one of its links."""
    if "push" not in values:
        return list(fixed)
    size = values["push"]
    zero = np.zeros(len(size))
    where, rise = values.get("push_direction", zero), values.get("push_rise", zero)
    level = size * cos(rise)
    impulse = np.stack([level * cos(where), level * sin(where), size * sin(rise)], axis=1)
    links = [robot.body_name(1)]
    if "push_link" in parameters:
        links = [str(link) for link in dict.fromkeys(parameters["push_link"].values() or ())]
    found = []
    for link in links:
        mine = impulse
        if len(links) > 1:
            mine = np.where((values["push_link"] == link)[:, None], impulse, 0.0)
        found.append(_push(robot, link, mine, values))
    return [*fixed, *found]


def _push(robot: Robot, link: str, impulse: np.ndarray, values: Values) -> Push:
    """A push at the centre of mass of a link."""
    point = robot.link(link).com
    start = values.get("push_time", np.zeros(len(impulse)))
    return Push(link, impulse, point, start)


def without_nonsense(values: Values) -> tuple[dict[str, np.ndarray], dict[int, str]]:
    """The parameters with those replaced that make no sense, such as a normal distribution's tail may give.

    Returns:
        the parameters, and why rows cannot be run, by their place.
    """
    found: dict[int, str] = {}
    sound = dict(values)
    for name, column in values.items():
        bad = out_of_range(name, column)
        for row in np.flatnonzero(bad).tolist():
            found.setdefault(row, f"{name} = {column[row]:.6g} makes no sense")
        if bad.any():
            sound[name] = np.where(bad, parameter(name).default, column)
    return sound, found
