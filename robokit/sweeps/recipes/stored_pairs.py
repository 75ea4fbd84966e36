"""Pairs of bodies that are kept apart, in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from robokit.sim.body_pairs import CollisionPairs


def record_of_pairs(pairs: CollisionPairs) -> dict[str, Any]:
    """The pairs of a robot, for JSON."""
    return {
        "robot": pairs.robot,
        "names": list(pairs.names),
        "bodies": _plain(pairs.bodies),
        "shaped": list(pairs.shaped),
        "left_out": {reason: _plain(found) for reason, found in pairs.left_out.items()},
        "body_of": dict(pairs.body_of),
        "error": float(pairs.error),
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
        bodies=_pairs(given["bodies"]),
        shaped=tuple(int(i) for i in given["shaped"]),
        left_out={reason: _pairs(found) for reason, found in given["left_out"].items()},
        body_of=dict(given["body_of"]),
        error=float(given["error"]),
        friction=given["friction"],
        restitution=given["restitution"],
    )


def _plain(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    return [[int(i), int(j)] for i, j in pairs]


def _pairs(given: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(i), int(j)) for i, j in given)
