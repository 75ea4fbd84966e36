"""Distances of links as a function of plain coordinates, with its linear maps: for JAX and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.body_pairs import CollisionPairs
from robokit.sim.distances import Pairs, Query, query
from robokit.sim.ground import Ground
from robokit.sim.run.step_functions import LibraryFunction, norms, rates


class DistanceFunction(LibraryFunction):
    """Signed distances of pairs of links as a function of q; arrays may have leading axes.

    Attributes:
        pairs: names of the links of each pair.
        inputs, outputs: (name, shape) of each.
    """

    name = "distance"

    def __init__(self, robot: Robot, of: Query, how: str = "value") -> None:
        """A function; ``of`` measures with gradients."""
        self.robot, self.how, self._of = robot, how, of
        self.pairs: Pairs = of.pairs
        nq, count = (robot.nq,), (len(of.pairs),)
        self.inputs, self.outputs = (("q", nq),), (("distance", count),)
        if how == "pullback":
            self.inputs, self.outputs = (("q", nq), ("w_distance", count)), (("g_q", nq),)
        elif how == "pushforward":
            self.inputs, self.outputs = (("q", nq), ("dq", nq)), (("ddistance", count),)

    def derived(self, how: str) -> DistanceFunction:
        """See the base class."""
        return DistanceFunction(self.robot, self._of, how)

    def rows(self, flat: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """As of the base class."""
        several = any(x.ndim == 2 for x in flat)
        count = max((len(x) for x in flat if x.ndim == 2), default=1)
        q, *more = (np.broadcast_to(x, (count, x.shape[-1])) for x in flat)
        sizes = np.array([norms(self.robot, row) for row in q]).reshape(q.shape)
        at = np.ascontiguousarray(q / sizes)
        found = self._of.at(at, math.inf, None)
        if self.how == "value":
            made = found["distance"]
        else:
            M = np.array([rates(self.robot, row)[0] for row in at]).reshape(count, self.robot.nv, -1)
            if self.how == "pullback":
                made = np.einsum("bp,bpv,bvq->bq", more[0], found["gradient"], M) / sizes
            else:
                made = np.einsum("bpv,bvq,bq->bp", found["gradient"], M, more[0] / sizes)
        return (made if several else made[0],)


def distance_function(
    robot: Robot,
    a: str | Sequence[str] | None = None,
    b: str | Sequence[str] | None = None,
    *,
    ground: Ground | bool | None = None,
    pairs: CollisionPairs | str | None = None,
) -> DistanceFunction:
    """Signed distances of links as a function, with derivatives in JAX and PyTorch.

    ``f(q)`` returns the distances of :func:`distance`, (P,), in the order of ``f.pairs``; ``f.to_jax()`` and
    ``f.to_torch()`` return functions of these libraries. There, q is a plain array, and quaternions are
    normalised inside.

    Args:
        robot, a, b, ground, pairs: as of :func:`distance`.

    Raises:
        as :func:`distance`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"))
        >>> f = rk.distance_function(robot, "left_hand", ["pelvis", "chest"])
        >>> (d,) = f(robot.neutral())
        >>> d.shape, f.pairs[0]
        ((2,), ('left_hand', 'pelvis'))
    """
    return DistanceFunction(robot, query(robot, a, b, ground, pairs, True))
