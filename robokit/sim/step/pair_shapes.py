"""What a step knows of the pairs of bodies that may touch, before it knows where they are.

Pairs are collected in *groups*, a body against a segment of the robot: of each group the one pair that is
deepest, or nearest to it, is looked at closer. A segment is a chain of at most three bodies, or a hand with
its fingers. So a step need not treat all pairs at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.collide import CollisionPairs, LinkCapsule

Point = tuple[float, float, float]

LONGEST = 3
"""Bodies of a segment."""

LIGHT = 0.01
"""A subtree of less than this part of the robot's mass belongs to the segment that carries it."""


@dataclass(frozen=True)
class PairShapes:
    """Shapes of bodies that may touch, and which of them with which.

    Attributes:
        bodies: numbers of all bodies in pairs.
        spheres: centre and radius of a ball around the capsules of each of them, body coordinates [m].
        capsules: (body, start, end or None for a sphere, radius) of all of them, body coordinates [m].
        groups: of pairs (i, j, slack [m], ((capsule of i, capsule of j), ...)); i and j are places in bodies.
    """

    bodies: tuple[int, ...]
    spheres: tuple[tuple[Point, float], ...]
    capsules: tuple[tuple[int, Point, Point | None, float], ...]
    groups: tuple[tuple[tuple[int, int, float, tuple[tuple[int, int], ...]], ...], ...]


def pair_shapes(robot: Robot, pairs: CollisionPairs) -> PairShapes:
    """The shapes of a list of pairs."""
    bodies = sorted({i for pair in pairs.bodies for i in pair})
    place = {body: k for k, body in enumerate(bodies)}
    capsules = [c for c in pairs.capsules if c.body in place]
    of: dict[int, list[int]] = {body: [] for body in bodies}
    for k, c in enumerate(capsules):
        of[c.body].append(k)
    segment = segments(robot, bodies)
    balls = [_ball([capsules[k] for k in of[body]]) for body in bodies]
    radius = {body: ball[1] for body, ball in zip(bodies, balls, strict=True)}
    groups: dict[tuple[int, int], list[Any]] = {}
    for i, j in pairs.bodies:
        small, large = sorted((i, j), key=lambda body: radius[body])
        key = (small, segment[large])
        both = tuple((a, b) for a in of[i] for b in of[j])
        groups.setdefault(key, []).append((place[i], place[j], pairs.slack.get((i, j), 0.0), both))
    return PairShapes(
        tuple(bodies),
        tuple(balls),
        tuple((c.body, c.start, None if c.is_sphere else c.end, c.radius) for c in capsules),
        tuple(tuple(rows) for rows in groups.values()),
    )


def segments(robot: Robot, bodies: list[int]) -> dict[int, int]:
    """For each body with shapes the first body of its segment."""
    tree = robot.tree
    mass = [float(np.ravel(I.m)[0]) for I in tree.I]
    for i in tree.inward():
        mass[tree.parent[i]] += mass[i]
    shaped = set(bodies)
    above: dict[int, int] = {}
    for i in bodies:
        p = tree.parent[i] if i else -1
        while p >= 0 and p not in shaped:
            p = tree.parent[p]
        above[i] = p
    first: dict[int, int] = {}
    size: dict[int, int] = {}
    for i in bodies:
        p = above[i]
        alone = sum(q == p for q in above.values()) == 1
        light = i > 0 and mass[i] < LIGHT * mass[0]
        if p >= 0 and (light or (alone and size[first[p]] < LONGEST)):
            first[i] = first[p]
            size[first[i]] += 1
        else:
            first[i], size[i] = i, 1
    return first


def _ball(capsules: list[LinkCapsule]) -> tuple[Point, float]:
    """A ball around capsules: about the middle of the box around their ends."""
    ends = np.array([end for c in capsules for end in (c.start, c.end)])
    radii = np.repeat([c.radius for c in capsules], 2)
    low, high = (ends - radii[:, None]).min(axis=0), (ends + radii[:, None]).max(axis=0)
    centre = 0.5 * (low + high)
    x, y, z = centre.tolist()
    return (x, y, z), float((np.linalg.norm(ends - centre, axis=1) + radii).max())
