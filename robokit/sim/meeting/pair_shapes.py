"""What a step knows of the pairs of bodies that may touch, before it knows where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robokit.sim.collide import CollisionPairs, LinkShape
from robokit.sim.collide.shape_distance import meetings_of

Point = tuple[float, float, float]

POINTS = 2
"""Contacts of two bodies of several shapes at most, where no pair of these has more."""


@dataclass(frozen=True)
class PairShapes:
    """Shapes of bodies that may touch, and which of them with which.

    Attributes:
        bodies: numbers of all bodies in pairs.
        spheres: centre and radius of a ball around the shapes of each of them, body coordinates [m].
        shapes: boxes and capsules of all of them.
        pairs: (i, j, ((shape of i, shape of j, slack [m]), ...)); i and j are places in bodies.
        points: in which each of the pairs touches at most.
    """

    bodies: tuple[int, ...]
    spheres: tuple[tuple[Point, float], ...]
    shapes: tuple[LinkShape, ...]
    pairs: tuple[tuple[int, int, tuple[tuple[int, int, float], ...]], ...]
    points: tuple[int, ...]


def pair_shapes(pairs: CollisionPairs) -> PairShapes:
    """The shapes of a list of pairs."""
    bodies = sorted({i for pair in pairs.bodies for i in pair})
    place = {body: k for k, body in enumerate(bodies)}
    numbers = [k for k, shape in enumerate(pairs.shapes) if shape.body in place]
    shapes = [pairs.shapes[k] for k in numbers]
    of: dict[int, list[int]] = {body: [] for body in bodies}
    for k, shape in enumerate(shapes):
        of[shape.body].append(k)
    balls = [_ball([shapes[k] for k in of[body]]) for body in bodies]
    rows = []
    for i, j in pairs.bodies:
        both = tuple((a, b, pairs.slack.get((numbers[a], numbers[b]), 0.0)) for a in of[i] for b in of[j])
        rows.append((place[i], place[j], both))
    return PairShapes(
        tuple(bodies),
        tuple(balls),
        tuple(shapes),
        tuple(rows),
        tuple(_points([shapes[a] for a in of[i]], [shapes[b] for b in of[j]]) for i, j in pairs.bodies),
    )


def _points(first: Sequence[LinkShape], second: Sequence[LinkShape]) -> int:
    """Points of two bodies: as many as the pair of their shapes with most, two if there are several pairs."""
    counts = [meetings_of(a.dimensions, b.dimensions) for a in first for b in second]
    return max(*counts, min(POINTS, len(counts)))


def _ball(shapes: Sequence[LinkShape]) -> tuple[Point, float]:
    """A ball around shapes: about the middle of the box around their ends."""
    ends = np.concatenate([shape.ends for shape in shapes])
    radii = np.concatenate([np.full(len(shape.ends), shape.radius) for shape in shapes])
    low, high = (ends - radii[:, None]).min(axis=0), (ends + radii[:, None]).max(axis=0)
    centre = 0.5 * (low + high)
    x, y, z = centre.tolist()
    return (x, y, z), float((np.linalg.norm(ends - centre, axis=1) + radii).max())
