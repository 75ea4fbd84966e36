"""Which bodies can touch the ground in a step: what follows for the others is skipped (``cond``).

A body is near if the lowest corner of a box around its contact points could be at the surface at the end of
a step, at its present speed and twice that of the fastest body, which a collision might give to it. In the
first sweep a point of a body that is not near cannot be on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.sim.shapes.contact_shapes import ContactShape
from robokit.sim.touching.acting import Acting, forces_at
from robokit.sim.touching.contact import BodyContact
from robokit.spatial import ArticulatedInertia, Force, Motion, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, likewise, maximum, minimum, where

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
    margin: Scalar


def box_around(shapes: Sequence[ContactShape]) -> Box:
    """The box around the centres of what can touch, with the largest radius as a margin."""
    reaches = [shape.reach() for shape in shapes]
    center, half = [], []
    for axis in zip(*(place for place, _ in reaches), strict=True):
        low, high = functools.reduce(minimum, axis), functools.reduce(maximum, axis)
        center.append((low + high) * 0.5)
        half.append((high - low) * 0.5)
    margin = functools.reduce(maximum, [radius for _, radius in reaches])
    return Box(Vector3(*center), (half[0], half[1], half[2]), margin)


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
    faster = sum((abs(k) * (h + box.margin) for k, h in zip(n.cross(V.ang), box.half, strict=True)), 0.0)
    speed = abs(n.dot(V.lin + V.ang.cross(box.center))) + faster
    return n.dot(box.center) + z - lower, speed


def near_ground(
    contacts: Sequence[BodyContact], points: Sequence[Sequence[ContactShape]], V: Sequence[Motion], dt: Scalar
) -> list[Any]:
    """Which of these bodies could touch: conditions; all of them on a ground that is not one plane.

    Args:
        contacts: of the bodies.
        points: what can touch of all bodies 0..N.
        V: their velocities, body coordinates.
        dt: step [s].
    """
    if any(body.law.surfaces for body in contacts):
        return [True] * len(contacts)
    fastest: Scalar = 0.0
    found = []
    for body in likewise(contacts):
        own, motion = V[body.i], body.motion
        own = own if motion is None else own - motion
        height, speed = lowest(box_around(points[body.i]), body.axes.n, body.axes.z, own)
        fastest = maximum(fastest, speed)
        found.append(height - dt * (speed + body.falling))
    return [height < dt * HASTE * fastest for height in found]


# ---- what is skipped for the others ------------------------------------------------------------------


def bend(near: Any, body: BodyContact, V: Motion, anchors: Sequence[tuple[Scalar, Scalar]]) -> None:
    """:meth:`BodyContact.hold`; the bristles of a body that is not near are straight."""
    body.hold(V, anchors)
    flat = _if(near, [x for pair in body.anchors for x in pair])
    body.anchors = list(zip(flat[::2], flat[1::2], strict=True))


def linear(near: Any, body: BodyContact) -> tuple[ArticulatedInertia, Force]:
    """:meth:`BodyContact.linear`; 0 for a body that is not near."""
    K, impulse = body.linear()
    flat = _if(near, [*K, *impulse])
    return ArticulatedInertia.of(flat[:-6]), _force(flat[-6:])


def choose(near: Any, body: BodyContact) -> None:
    """What the last sweep has chosen; 0 for a body that is not near."""
    rows = [*body.choice(), body.N, body.N_before]
    values = iter(_if(near, [x for row in rows for x in row]))
    for row in rows:
        row[:] = [next(values) for _ in row]


def act(near: Any, body: BodyContact, V: Motion) -> Acting:
    """:func:`forces_at`; 0 for a body that is not near, its depth too."""
    done = forces_at(body, V)
    flat = _if(near, [*done.impulse, *(x for force in done.forces for x in force)])
    done.impulse, rest = _force(flat[:6]), flat[6:]
    done.forces = list(zip(rest[::3], rest[1::3], rest[2::3], strict=True))
    sums = _if(near, [done.pressed, done.pulled, done.outside, done.work, done.depth])
    done.pressed, done.pulled, done.outside, done.work, done.depth = sums
    return done


def unforeseen(near: Any, done: Acting) -> list[Scalar]:
    """What of the normal forces the first sweep did not foresee [N]; 0 of what is not pressed."""
    pairs = zip(done.forces, done.body.foreseen, strict=True)
    return _if(near, [where(N > 0.0, N - before, 0.0) for (N, _, _), before in pairs])


def _if(near: Any, values: Sequence[Scalar]) -> list[Scalar]:
    # What only leads to these values is inside the guard with them.
    return cond(near, lambda: values, lambda: [0.0] * len(values))


def _force(values: Sequence[Scalar]) -> Force:
    return Force(Vector3(*values[:3]), Vector3(*values[3:]))
