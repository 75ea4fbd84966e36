"""The state that every engine is asked about, its answers, and how links are named there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robokit.model.robot import Robot
from robokit.model.walks import is_base
from robokit.parity.reading import THEIR_WORLD

Answers = dict[str, np.ndarray]


@dataclass(frozen=True)
class State:
    """q (nq,), v, a and tau (nv,), as robokit has them; tau is None if no accelerations are asked for."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray | None


Answering = Callable[[State], Answers]
Opener = Callable[[bytes, Robot, list[str]], Answering]


def root_link(robot: Robot) -> str:
    """Name of the root link: the one that is no joint's child."""
    joints = (*robot.body_joints, *robot.fixed_joints)
    carried = {joint.child_link for joint in joints if not is_base(robot, joint)}
    return next(name for name in robot.link_names if name not in carried)


def names_there(robot: Robot) -> dict[str, str]:
    """Name of a link -> its name for MuJoCo and Drake, where "world" is the fixed frame."""
    names = {name: name for name in robot.link_names}
    if THEIR_WORLD in names:
        free = THEIR_WORLD + "_link"
        while free in names:
            free += "_"
        names[THEIR_WORLD] = free
    return names


def one_line(refusal: BaseException) -> str:
    """The message of another program's exception, in one line."""
    return " ".join(str(refusal).split()) or type(refusal).__name__


def some(links: list[str]) -> str:
    """How many links, and the names of the first."""
    shown = ", ".join(map(repr, links[:3])) + (", ..." if len(links) > 3 else "")
    return f"{len(links)} link{'s' if len(links) > 1 else ''} ({shown})"
