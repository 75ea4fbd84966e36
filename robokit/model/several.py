"""Several robots in one world, as one robot whose base is the world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robokit.conventions import FLOATING_BASE, WORLD
from robokit.errors import ModelError, WrongType
from robokit.model.arguments import checked_name, checked_placement
from robokit.model.builder import ModelBuilder
from robokit.model.geometry import Placement
from robokit.model.mimics import couple
from robokit.model.robot import Robot, check_robot
from robokit.model.walks import children, outward


def together(robots: Mapping[str, Any], name: str = WORLD) -> Robot:
    """Several robots in one world.

    The robot that is returned has a fixed base, the link "world", which carries them all: those that float by
    a floating joint "<key>/floating_base", the others by a fixed joint. Links and joints of each are named
    "<key>/<name>". Its q is that of one robot after the other; the neutral configuration has each robot at
    its placement. Gravity is that of the first.

    Args:
        robots: {key: robot, or (robot, placement)}, the placement of its root's frame in the world; for a
            robot that floats its base's pose in q is counted from there.
        name: of the whole.

    Raises:
        WrongType: robots is no mapping of names to robots.
        ModelError: no robot, a placement with an improper rotation, robots with samples of inertias, or
            some with coupled mimic joints and others with mimic joints that are free.

    Example:
        >>> arm = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> beside = rk.Placement(position=np.array([0.0, 1.0, 0.0]))
        >>> both = rk.together({"left": arm, "right": (arm, beside)})
        >>> both.joint_names
        ('left/upper_joint', 'left/lower_joint', 'right/upper_joint', 'right/lower_joint')
    """
    if not isinstance(robots, Mapping):
        raise WrongType("robots", robots, "a mapping of names to robots, or to (robot, placement)")
    if not robots:
        raise ModelError("robots: give at least one")
    builder = ModelBuilder(name)
    builder.link(WORLD)
    coupled, free = [], []
    first: Robot | None = None
    for key, given in robots.items():
        prefix = checked_name("robot", key) + "/"
        robot, placement = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        check_robot(robot, f"robots[{key!r}]")
        if robot.parameters is not None:
            raise ModelError(f"robots[{key!r}]: its inertias are an input; give a robot as it was loaded")
        first = first or robot
        _add(builder, robot, prefix, checked_placement(f"placement of robot {key!r}", placement))
        if robot.coupling is not None:
            coupled.append(key)
        elif any(joint.mimic is not None for joint in robot.joints):
            free.append(key)
    if coupled and free:
        raise ModelError(
            f"robots: the mimic joints of {coupled[0]!r} are coupled and those of {free[0]!r} are not; load "
            "both with the same mimic="
        )
    assert first is not None
    built = builder.build("fixed", gravity=first.tree.gravity)
    return couple(built) if coupled else built


def _add(builder: ModelBuilder, robot: Robot, prefix: str, placement: Placement) -> None:
    """Adds a robot's links and joints under another name, and the joint that carries its root."""
    root = outward(robot, children(robot))[0]
    kind = "floating" if robot.base == "floating" else "fixed"
    builder.joint(f"{prefix}{FLOATING_BASE}", kind, WORLD, prefix + root, placement)
    builder._include(ModelBuilder.from_robot(robot), prefix)
