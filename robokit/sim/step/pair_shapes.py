"""What a step knows of the pairs of bodies that may touch, before it knows where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robokit.sim.collide import CollisionPairs, LinkCapsule

Point = tuple[float, float, float]


@dataclass(frozen=True)
class PairShapes:
    """Shapes of bodies that may touch, and which of them with which.

    Attributes:
        bodies: numbers of all bodies in pairs.
        spheres: centre and radius of a ball around the capsules of each of them, body coordinates [m].
        capsules: (body, start, end or None for a sphere, radius) of all of them, body coordinates [m].
        pairs: (i, j, slack [m], ((capsule of i, capsule of j), ...)); i and j are places in bodies.
    """

    bodies: tuple[int, ...]
    spheres: tuple[tuple[Point, float], ...]
    capsules: tuple[tuple[int, Point, Point | None, float], ...]
    pairs: tuple[tuple[int, int, float, tuple[tuple[int, int], ...]], ...]


def pair_shapes(pairs: CollisionPairs) -> PairShapes:
    """The shapes of a list of pairs."""
    bodies = sorted({i for pair in pairs.bodies for i in pair})
    place = {body: k for k, body in enumerate(bodies)}
    capsules = [c for c in pairs.capsules if c.body in place]
    of: dict[int, list[int]] = {body: [] for body in bodies}
    for k, c in enumerate(capsules):
        of[c.body].append(k)
    balls = [_ball([capsules[k] for k in of[body]]) for body in bodies]
    rows = []
    for i, j in pairs.bodies:
        both = tuple((a, b) for a in of[i] for b in of[j])
        rows.append((place[i], place[j], pairs.slack.get((i, j), 0.0), both))
    return PairShapes(
        tuple(bodies),
        tuple(balls),
        tuple((c.body, c.start, None if c.is_sphere else c.end, c.radius) for c in capsules),
        tuple(rows),
    )


def _ball(capsules: list[LinkCapsule]) -> tuple[Point, float]:
    """A ball around capsules: about the middle of the box around their ends."""
    ends = np.array([end for c in capsules for end in (c.start, c.end)])
    radii = np.repeat([c.radius for c in capsules], 2)
    low, high = (ends - radii[:, None]).min(axis=0), (ends + radii[:, None]).max(axis=0)
    centre = 0.5 * (low + high)
    x, y, z = centre.tolist()
    return (x, y, z), float((np.linalg.norm(ends - centre, axis=1) + radii).max())
