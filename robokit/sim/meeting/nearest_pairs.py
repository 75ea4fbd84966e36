"""Which bodies touch or are about to: the few pairs that are deepest.

Two balls that are farther apart than bodies can come together in a step decide most pairs; the shapes of
the others are looked at in a guarded block.

Cost: 10 operations a pair of bodies; about 130 for each pair of capsules whose balls meet, for boxes see
box_distance.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.collide.body_shapes import placed
from robokit.sim.collide.box_distance import Block
from robokit.sim.meeting.pair_shapes import PairShapes
from robokit.sim.meeting.shared_distances import Row, meetings, sorted_in
from robokit.sim.motion.momentum_projection import at_base, floats
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, floor, likewise, where

SLOTS = 8
"""Contacts between bodies that a step treats together."""

FEW, SLOTS_OF_FEW = 30, 12
"""With so many pairs of bodies or fewer, a step treats more of them: boxes on each other have four a pair."""

SLOTS_OF_STACK = 24
"""The same at most of boxes on top of each other: four for each two."""

FAR = 1e3
"""Distance of what is not there [m]."""

WIDTH = 10
"""Numbers of a contact."""

PLACE = 7
"""Those of them that say where it is: distance, normal and point."""

WAYS = 4
"""Points of two shapes at most."""

TOGETHER = 12
"""Pairs that are sorted in together."""

FASTEST = 10.0
"""Bodies come together at this speed at most, or are found late [m/s]."""


@dataclass(frozen=True)
class Pose:
    """^iE_0 of a body, and its origin in world axes [m]."""

    E: Matrix3
    o: Vector3

    def out(self, p: Sequence[Scalar]) -> Vector3:
        """A point of the body, world axes."""
        return self.o + self.E.transpose_apply(Vector3(*p))

    def seen(self, V: Motion) -> Motion:
        """A velocity of the body in world axes, about the world's origin."""
        ang = self.E.transpose_apply(V.ang)
        return Motion(ang, self.E.transpose_apply(V.lin) + self.o.cross(ang))

    def own(self, F: Force) -> Force:
        """A force in world axes about the world's origin, in the body's coordinates."""
        return Force(self.E @ (F.ang - self.o.cross(F.lin)), self.E @ F.lin)

    def turned(self, x: Sequence[float]) -> Vector3:
        """A vector of the body, world axes."""
        return self.E.transpose_apply(Vector3(*x))


@dataclass(frozen=True)
class Nearest:
    """The nearest points of a pair of bodies i and j.

    Attributes:
        phi: their distance, negative where they overlap [m].
        n: unit vector from j to i, world axes.
        x: the point between them, world axes [m].
        i, j: places in the list of bodies, as scalars.
        which: number of the pair of bodies, of their shapes and of the point, as a scalar.
    """

    phi: Scalar
    n: Vector3
    x: Vector3
    i: Scalar
    j: Scalar
    which: Scalar

    @staticmethod
    def none() -> Nearest:
        """Nothing near."""
        return Nearest(FAR, Vector3(0.0, 0.0, 1.0), Vector3.zero(), -1.0, -1.0, -1.0)

    def values(self) -> list[Scalar]:
        """All of them in a row."""
        return [self.phi, *self.n, *self.x, self.i, self.j, self.which]

    @staticmethod
    def of(values: Sequence[Scalar]) -> Nearest:
        """The opposite of :meth:`values`."""
        phi, nx, ny, nz, x, y, z, i, j, which = values
        return Nearest(phi, Vector3(nx, ny, nz), Vector3(x, y, z), i, j, which)


def poses_of(tree: Tree, X: Sequence[Any], bodies: Sequence[int]) -> dict[int, Pose]:
    """Poses of these bodies; a robot that floats is seen from its base, and so is the world that it is in."""
    alone = floats(tree)
    here = at_base(tree, X) if alone else X
    found = {0: Pose(Matrix3.identity(), Vector3.zero())}
    for i in tree.outward():
        above = found[tree.parent[i]]
        found[i] = Pose(here[i].E @ above.E, above.out(here[i].r))
    if alone:
        found[0] = Pose(found[0].E, -X[1].r)
    return {i: found[i] for i in bodies}


class Vicinity:
    """Where the bodies in pairs are, and which pairs are near each other by the balls around them.

    Attributes:
        poses: of the bodies in pairs, in their order.
        near: for each pair whether its balls meet within a step.
    """

    def __init__(self, shapes: PairShapes, tree: Tree, X: Sequence[Any], dt: Scalar) -> None:
        self.shapes = shapes
        self.by_body = poses_of(tree, X, shapes.bodies)
        self.poses = [self.by_body[b] for b in shapes.bodies]
        centres = [pose.out(c) for pose, (c, _) in zip(self.poses, shapes.spheres, strict=True)]
        self.reach = FASTEST * dt
        self.apart = [centres[i] - centres[j] for i, j, _ in shapes.pairs]
        limits = [self.reach + (shapes.spheres[i][1] + shapes.spheres[j][1]) for i, j, _ in shapes.pairs]
        self.near = [d.dot(d) < r * r for d, r in likewise(zip(self.apart, limits, strict=True))]

    def deepest(self) -> list[Nearest]:
        """At most slots_of(shapes) points, the deepest first; without those that are not near."""
        shapes = self.shapes
        poses = [self.by_body[shape.body] for shape in shapes.shapes]
        placing = likewise(zip(shapes.shapes, poses, strict=True))
        blocks = [placed(shape, at.turned, at.o) for shape, at in placing]
        found: list[Row] = []
        rows = zip(shapes.pairs, shapes.points, self.apart, self.near, strict=True)
        nothing = [*Nearest.none().values()[:PLACE], -1.0]
        ways = WAYS * max((len(both) for *_, both in shapes.pairs), default=1)
        for (i, j, both), count, d, condition in likewise(rows):
            number = ways * (i * len(shapes.bodies) + j)
            closest = partial(_closest, blocks, d, both, number, count)
            values = iter(cond(condition, closest, partial(list, nothing * count)))
            found += [list(islice(values, PLACE + 1)) for _ in range(count)]
        kept = [nothing] * slots_of(shapes)
        together = -(-len(found) // max(1, -(-len(found) // TOGETHER)))
        found += [nothing] * (-len(found) % max(1, together))
        for k in range(0, len(found), max(1, together)):
            some = found[k : k + together]
            close = any_of([row[0] < self.reach for row in some])
            values = iter(
                cond(
                    close,
                    partial(_flat_sorted_in, kept, some),
                    partial(list, (x for row in kept for x in row)),
                )
            )
            kept = [list(islice(values, PLACE + 1)) for _ in kept]
        return [Nearest.of([*row[:PLACE], *self._bodies(row[PLACE], ways), row[PLACE]]) for row in kept]

    def _bodies(self, which: Scalar, ways: int) -> tuple[Scalar, Scalar]:
        """Places of the two bodies, from the number of a point: it counts bodies, bodies and ways."""
        count, some = len(self.shapes.bodies), which >= 0.0
        i = floor((which + 0.5) * (1.0 / (ways * count)))
        j = floor((which + 0.5) * (1.0 / ways)) - i * float(count)
        return where(some, i, -1.0), where(some, j, -1.0)


def slots_of(shapes: PairShapes) -> int:
    """Contacts that a step treats of these shapes."""
    count = SLOTS
    if len(shapes.pairs) <= FEW:
        boxes = {
            k for pair, n in zip(shapes.pairs, shapes.points, strict=True) if n == WAYS for k in pair[:2]
        }
        count = min(max(SLOTS_OF_FEW, WAYS * (len(boxes) - 1)), SLOTS_OF_STACK)
    return min(count, sum(shapes.points))


def any_of(truths: Sequence[Any]) -> Any:
    """Whether any of them holds."""
    found: Any = False
    for truth in truths:
        found = truth | found
    return found


def _flat_sorted_in(slots: Sequence[Row], found: Sequence[Row]) -> list[Scalar]:
    return [x for row in sorted_in(slots, found) for x in row]


def _closest(
    blocks: Sequence[Block],
    apart: Vector3,
    both: Sequence[tuple[int, int, float]],
    number: int,
    count: int,
) -> list[Scalar]:
    """The nearest points of the shapes of two bodies, ``count`` of them: distance, normal, point, which."""
    candidates = []
    for m, (a, b, slack) in enumerate(both):
        for k, (phi, n, x) in enumerate(meetings(blocks[a], blocks[b], -apart)):
            candidates.append([phi + slack, *(-n), *x, float(number + WAYS * m + k)])
    if len(candidates) > count:
        none = [*Nearest.none().values()[:PLACE], -1.0]
        candidates = sorted_in([none] * count, candidates)
    return [x for row in candidates for x in row]
