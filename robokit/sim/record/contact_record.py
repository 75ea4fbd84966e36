"""The contact forces of a run: by point at its records, by link in every step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.dataclass_tools import short_repr


@dataclass(frozen=True)
class Contacts:
    """The K contact points over time.

    Attributes:
        points: (T, K, 3) in the world [m]; of a sphere, the point under its centre.
        forces: (T, K, 3) on these links, world axes [N]: the impulse of the step before each state, divided
            by the step; 0 at the start.
        links: K link names.
        against: what each link touches: K names of links, "" for the ground. Empty if all touch the ground.
        normals: (T, K, 3) unit normals pointing out of the touched surface, world axes; 0 without contact.
            None if unknown, as in files of earlier versions.
    """

    points: np.ndarray
    forces: np.ndarray
    links: tuple[str, ...]
    against: tuple[str, ...] = ()
    normals: np.ndarray | None = None

    __repr__ = short_repr

    def at(self, records: Any) -> Contacts:
        """The contacts at one record, (K, 3) each, or at several, (..., K, 3)."""
        normals = None if self.normals is None else self.normals[records]
        return replace(self, points=self.points[records], forces=self.forces[records], normals=normals)

    @property
    def of_ground(self) -> np.ndarray:
        """Which of the points touch the ground, (K,)."""
        return np.array([not name for name in self.against or [""] * len(self.links)], bool)


@dataclass(frozen=True)
class StepForces:
    """Force of the ground on the robot in each of S steps.

    Attributes:
        t: (S,) ends of the steps [s].
        links: names of the L links that can touch the ground.
        force: (S, L, 3) the impulse of each step over the step, world axes [N].
    """

    t: np.ndarray
    links: tuple[str, ...]
    force: np.ndarray

    __repr__ = short_repr

    @property
    def total(self) -> np.ndarray:
        """(S, 3) the sum over the links [N]."""
        return self.force.sum(axis=1)

    @staticmethod
    def of(force: np.ndarray, links: Iterable[str], dt: float) -> StepForces:
        """Those of steps of dt [s] from the start, given by (S, L, 3) numbers."""
        steps = np.arange(1, len(force) + 1)
        return StepForces(dt * steps, tuple(links), force)
