"""A description becomes a robot: bodies are links, joints are joints, through the ModelBuilder."""

from __future__ import annotations

from robokit.errors import Diagnostic
from robokit.formats.description import Description
from robokit.model.robot import Robot


def build_robot(side: Description, base: str | None = None, root: str | None = None) -> Robot:
    """The robot of a description.

    Args:
        side: what a reader has read.
        base: "fixed" or "floating"; None: as the file says.
        root: name of the body whose tree is the robot, where the file has several trees.

    Raises:
        UrdfError: the description is no robot.
    """
    raise NotImplementedError


def notes_of(side: Description) -> list[Diagnostic]:
    """What the file says and the robot does not have, one diagnostic for each kind of thing."""
    raise NotImplementedError
