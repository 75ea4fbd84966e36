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
        "slack_of_shapes": [[k, m, float(overlap)] for (k, m), overlap in pairs.slack.items()],
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
    shapes = tuple(made(_with_both_errors(shape), KINDS) for shape in given["shapes"])
    if "slack" in given:  # robokit 0.2.0: one for all shapes of two bodies
        of = {
            body: [k for k, shape in enumerate(shapes) if shape.body == body]
            for body in given["body_of"].values()
        }
        slack = {(k, m): overlap for i, j, overlap in given["slack"] for k in of[i] for m in of[j]}
    else:
        slack = {(k, m): overlap for k, m, overlap in given["slack_of_shapes"]}
    return CollisionPairs(
        robot=given["robot"],
        names=tuple(given["names"]),
        bodies=made(given["bodies"]),
        shapes=shapes,
        left_out={reason: made(found) for reason, found in given["left_out"].items()},
        slack=slack,
        samples=given["samples"],
        body_of=dict(given["body_of"]),
        friction=given["friction"],
        restitution=given["restitution"],
    )


def _with_both_errors(shape: Any) -> Any:
    """A stored shape; those of robokit 0.2.0 had one error, of both kinds."""
    named = dict(shape["named"])
    if "error" in named:
        error = named.pop("error")
        named |= {"missed": error, "added": error}
    return {**shape, "named": named}
