"""Pairs of bodies that are kept apart, in JSON: their boxes and capsules come from meshes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robokit.sim.collide import CollisionPairs
from robokit.sim.collide.body_shapes import LinkBox, LinkCapsule
from robokit.sweeps.recipes.stored_points import made, plain

KINDS = {cls.__name__: cls for cls in (LinkBox, LinkCapsule)}


def record_of_pairs(pairs: CollisionPairs) -> dict[str, Any]:
    """The pairs of a robot, for JSON."""
    return {
        "robot": pairs.robot,
        "names": list(pairs.names),
        "bodies": plain(pairs.bodies),
        "shapes": [plain(shape) for shape in pairs.shapes],
        "left_out": {reason: plain(found) for reason, found in pairs.left_out.items()},
        "slack": [[i, j, float(overlap)] for (i, j), overlap in pairs.slack.items()],
        "samples": pairs.samples,
        "body_of": pairs.body_of,
        "friction": pairs.friction,
        "restitution": pairs.restitution,
    }


def pairs_of_record(given: Mapping[str, Any]) -> CollisionPairs:
    """What :func:`record_of_pairs` gave.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    return CollisionPairs(
        robot=given["robot"],
        names=tuple(given["names"]),
        bodies=made(given["bodies"]),
        shapes=tuple(made(shape, KINDS) for shape in given["shapes"]),
        left_out={reason: made(found) for reason, found in given["left_out"].items()},
        slack={(i, j): overlap for i, j, overlap in given["slack"]},
        samples=given["samples"],
        body_of=dict(given["body_of"]),
        friction=given["friction"],
        restitution=given["restitution"],
    )
