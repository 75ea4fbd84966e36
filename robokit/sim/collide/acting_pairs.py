"""Which pairs of bodies act in a run that asks for some, for none, or leaves the choice."""

from __future__ import annotations

from typing import Any

from robokit.errors import ShapeError, shown
from robokit.model.robot import Robot
from robokit.sim.collide.collision_pairs import collision_pairs
from robokit.sim.collide.pair_list import CollisionPairs
from robokit.sim.ground import Ground

MOST = 400
"""More pairs than these act only where they are asked for: their step takes minutes to compile."""


def acting_pairs(robot: Robot, given: Any, ground: Ground | None) -> tuple[CollisionPairs | None, int]:
    """The pairs that are kept apart, or None, and how many are not because nobody asked for so many.

    Args:
        robot: the robot.
        given: True, False, pairs of bodies; None for True where there is a ground without an accuracy and at
            most MOST pairs. Without a ground it keeps the integrators of free motion. An accuracy is that of
            the ground's forces, which change once more when bodies meet.
        ground: of the run, or None.

    Raises:
        ShapeError: none of these, or pairs of another robot.
    """
    if isinstance(given, CollisionPairs):
        if given.names != tuple(robot.tree.name):
            raise ShapeError(f"self_collision: these are pairs of {given.robot!r}, not of {robot.name!r}")
        return (given if len(given) else None), 0
    if given is not None and not isinstance(given, bool):
        raise ShapeError(
            f"self_collision: expected True, False, None or rk.collision_pairs(robot), got {shown(given)}"
        )
    default = ground is not None and ground.accuracy is None
    if not (default if given is None else given):
        return None, 0
    pairs = collision_pairs(robot)
    if given is None and len(pairs) > MOST:
        return None, len(pairs)
    return (pairs if len(pairs) else None), 0
