"""Distances of the bodies of a robot in many configurations at once: for lists that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from robokit.dynamics import forward_kinematics
from robokit.model.robot import Robot
from robokit.sim.collide.body_shapes import LinkShape, placed
from robokit.sim.collide.box_distance import Block
from robokit.sim.collide.pair_list import CollisionPairs
from robokit.sim.collide.shape_distance import shape_gap
from robokit.spatial import Vector3

PAIRS = 1024
"""Pairs of shapes that are looked at together, for memory's sake."""


class Gaps:
    """Distances of bodies in many configurations at once.

    Attributes:
        of: {body: numbers of its shapes}.
        shapes: of the links.
    """

    def __init__(
        self, robot: Robot, shapes: Sequence[LinkShape], q: np.ndarray, engine: str | None = None
    ) -> None:
        self.of: dict[int, list[int]] = {}
        self.shapes, self.poses = shapes, body_poses(robot, q, engine)
        self.middle, self.reach = [], []
        for k, shape in enumerate(shapes):
            self.of.setdefault(shape.body, []).append(k)
            middle = shape.ends.mean(axis=0)
            R, p = self.poses[:, shape.body, :, :3], self.poses[:, shape.body, :, 3]
            self.middle.append((R @ middle + p).T)
            self.reach.append(shape.radius + float(np.linalg.norm(shape.ends - middle, axis=1).max()))

    def met(self, i: int, j: int) -> np.ndarray:
        """In which configurations bodies i and j overlap, (B,) booleans."""
        found = np.zeros(len(self.poses), bool)
        for k in self.of[i]:
            for m in self.of[j]:
                reach = self.reach[k] + self.reach[m]
                apart = self.middle[k] - self.middle[m]
                some = np.flatnonzero(((apart * apart).sum(axis=0) < reach * reach) & ~found)
                if len(some):
                    found[some[self.gap(k, m, some) < 0.0]] = True
        return found

    def apart(self, i: int, j: int) -> np.ndarray:
        """Distance of bodies i and j by the balls around their shapes, in all configurations, (B,) [m]."""
        found = np.full(len(self.poses), np.inf)
        for k in self.of[i]:
            for m in self.of[j]:
                d = self.middle[k] - self.middle[m]
                np.minimum(found, np.sqrt((d * d).sum(axis=0)) - self.reach[k] - self.reach[m], out=found)
        return found

    def least(self, i: int, j: int, rows: np.ndarray) -> np.ndarray:
        """Distance of bodies i and j in the given configurations, negative where they overlap [m]."""
        return np.min([self.gap(k, m, rows) for k in self.of[i] for m in self.of[j]], axis=0)

    def nearest(self, i: int, j: int, row: int) -> float:
        """Distance of bodies i and j in one configuration, negative where they overlap [m]."""
        return float(self.least(i, j, np.array([row]))[0])

    def gap(self, k: int, m: int, rows: np.ndarray) -> np.ndarray:
        """Distance of shapes k and m in the given configurations, negative where they overlap [m]."""
        return np.asarray(shape_gap(*(self._placed(self.shapes[s], rows) for s in (k, m))))

    def _placed(self, shape: LinkShape, rows: np.ndarray) -> Block:
        R, p = self.poses[rows, shape.body, :, :3], self.poses[rows, shape.body, :, 3]
        return placed(shape, lambda x: Vector3(*(R @ np.array(x)).T), Vector3(*p.T))


def overlaps(
    robot: Robot, pairs: CollisionPairs, q: np.ndarray
) -> list[tuple[tuple[int, int], np.ndarray, np.ndarray]]:
    """Pairs of shapes that overlap, in which rows of q, and how far [m].

    Overlap that a pair does not feel, its slack, does not count.

    Args:
        robot: the robot.
        pairs: of its bodies.
        q: configurations, (nq,) or (B, nq); rows that are not finite are left out.
    """
    q = np.atleast_2d(q)
    good = np.flatnonzero(np.isfinite(q).all(axis=1))
    if not len(good):
        return []
    gaps = Gaps(robot, pairs.shapes, q[good], engine="python")
    those = [each for i, j in pairs.bodies for each in product(gaps.of[i], gaps.of[j])]
    first, second = ([pair[k] for pair in those] for k in (0, 1))
    slack = np.array([pairs.slack.get(pair, 0.0) for pair in those])
    middle, reach = np.array(gaps.middle), np.array(gaps.reach)
    found = []
    # One pass over all shapes by the balls around them; few are left to be looked at.
    for at in range(0, len(those), PAIRS):
        part = slice(at, at + PAIRS)
        d = middle[first[part]] - middle[second[part]]
        limit = np.maximum(reach[first[part]] + reach[second[part]] - slack[part], 0.0)
        near = (d * d).sum(axis=1) < (limit * limit)[:, None]
        for n in np.flatnonzero(near.any(axis=1)).tolist():
            rows = np.flatnonzero(near[n])
            over = -(gaps.gap(*those[at + n], rows) + slack[at + n])
            if over.max() > 0.0:
                found.append((those[at + n], good[rows], over))
    return found


def body_poses(robot: Robot, q: np.ndarray, engine: str | None = None) -> np.ndarray:
    """[R p] of bodies 0..N in world axes, (B, N + 1, 3, 4)."""
    if engine == "python" and len(q) == 1:  # plain numbers are quicker than arrays of one
        links = forward_kinematics(robot, q[0], engine=engine).matrices[None]
    else:
        links = forward_kinematics(robot, q, engine=engine).matrices
    found = np.zeros((len(q), robot.nbodies + 1, 3, 4))
    found[:, 0, :, :3] = np.eye(3)
    for i in range(1, robot.nbodies + 1):
        found[:, i] = links[:, robot.link_index[robot.tree.name[i]]]
    return found
