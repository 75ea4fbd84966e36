"""Which bodies can touch the ground in a step: what follows for the others is skipped (``scalars.guard``).

A body is near if the lowest corner of a box around its contact points could be at the surface at the end of
a step, at its present speed and twice that of the fastest body, which a collision might give to it. In the
first sweep a point of a body that is not near cannot be on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.spatial import Motion, Vector3
from robokit.spatial.scalars import Scalar, maximum, minimum

HASTE = 2.0
"""Speed that a body may gain in a step, over that of the fastest."""


@dataclass(frozen=True)
class Box:
    """A box around points, in a body's axes, with a margin.

    Attributes:
        center: in body coordinates [m].
        half: of its lengths [m].
        margin: [m].
    """

    center: Vector3
    half: tuple[Scalar, Scalar, Scalar]
    margin: float


def box_around(points: Sequence[tuple[Sequence[Scalar], float]]) -> Box:
    """The box around spheres, given by centres and radii."""
    center, half = [], []
    for axis in zip(*(p for p, _ in points), strict=True):
        low = high = axis[0]
        for x in axis[1:]:
            low, high = minimum(low, x), maximum(high, x)
        center.append((low + high) * 0.5)
        half.append((high - low) * 0.5)
    return Box(Vector3(*center), (half[0], half[1], half[2]), max(r for _, r in points))


def lowest(box: Box, n: Vector3, z: Scalar, V: Motion) -> tuple[Scalar, Scalar]:
    """Height of a box's lowest corner over the ground [m], and the largest vertical speed in the box [m/s].

    Args:
        box: around a body's points.
        n: the ground's normal, body coordinates.
        z: height of the body's origin over the ground [m].
        V: its velocity, body coordinates.
    """
    # A point at c + x is x . n higher than c, and x . (n x omega) faster.
    lower = sum((abs(k) * h for k, h in zip(n, box.half, strict=True)), box.margin)
    faster = sum((abs(k) * h for k, h in zip(n.cross(V.ang), box.half, strict=True)), 0.0)
    speed = abs(n.dot(V.lin + V.ang.cross(box.center))) + faster
    return n.dot(box.center) + z - lower, speed


def near_ground(found: Sequence[tuple[Scalar, Scalar]], falling: Scalar, dt: Scalar) -> list[Any]:
    """Which bodies could touch.

    Args:
        found: what :func:`lowest` says of each.
        falling: speed that gravity adds in the step [m/s].
        dt: step [s].
    """
    fastest: Scalar = 0.0
    for _, speed in found:
        fastest = maximum(fastest, speed)
    return [height - dt * (speed + HASTE * fastest + falling) < 0.0 for height, speed in found]
