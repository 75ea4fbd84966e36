"""Mass, centre of mass and inertia as the referee adds, moves and compares them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from robokit.model.geometry import Placement


def steiner(mass: float, c: np.ndarray) -> np.ndarray:
    """Parallel-axis term of a point mass at c, (3, 3) [kg m^2]."""
    return np.asarray(mass * (float(c @ c) * np.eye(3) - np.outer(c, c)))


@dataclass(frozen=True)
class Rigid:
    """Mass [kg], centre of mass (3,) [m] and inertia about it (3, 3) [kg m^2], in the axes of some frame."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def at(self, pose: Placement) -> Rigid:
        """The same body in the frame in which its own frame has this pose."""
        R = pose.rotation
        return Rigid(self.mass, R @ self.com + pose.position, R @ self.inertia @ R.T)

    def __add__(self, other: Rigid) -> Rigid:
        return self._with(other, 1.0)

    def __sub__(self, other: Rigid) -> Rigid:
        return self._with(other, -1.0)

    def _with(self, other: Rigid, sign: float) -> Rigid:
        if other.mass == 0.0 and not other.inertia.any():
            return self
        mass = self.mass + sign * other.mass
        first = self.mass * self.com + sign * other.mass * other.com
        # About other.com, which is near both, so that little is lost by cancellation.
        o = other.com
        about = self.inertia + steiner(self.mass, self.com - o) + sign * other.inertia
        if abs(mass) <= 1e-12 * max(abs(self.mass), abs(other.mass)):
            return Rigid(0.0, np.zeros(3), about)
        com = first / mass
        return Rigid(mass, com, about - steiner(mass, com - o))

    @property
    def size(self) -> float:
        """A length of the body: radius of gyration plus distance of the centre of mass [m]."""
        if self.mass <= 0.0:
            return 0.0
        return math.sqrt(abs(float(np.trace(self.inertia))) / self.mass) + float(np.linalg.norm(self.com))


NOTHING = Rigid(0.0, np.zeros(3), np.zeros((3, 3)))


LEAST = 1e-9
"""Distance of two centres of mass that is none, however small the body is [m]."""


@dataclass(frozen=True)
class Slack:
    """What may differ between equal bodies: a relative part, and absolute parts from rounding."""

    relative: float
    mass: float = 0.0
    length: float = 0.0
    inertia: float = 0.0

    def rougher(self, relative: float) -> Slack:
        """The same with a larger relative part."""
        return replace(self, relative=max(relative, self.relative))

    def mass_same(self, a: Rigid, b: Rigid) -> bool:
        """Whether the masses agree."""
        return abs(a.mass - b.mass) <= self.relative * max(abs(a.mass), abs(b.mass)) + self.mass

    def com_same(self, a: Rigid, b: Rigid) -> bool:
        """Whether the centres of mass agree, measured by the size of the body."""
        if abs(a.mass) <= self.mass and abs(b.mass) <= self.mass:
            return True
        size = max(a.size, b.size)
        lever = self.mass / max(abs(a.mass), abs(b.mass), 1e-300) * size
        return float(np.abs(a.com - b.com).max()) <= self.relative * size + self.length + lever + LEAST

    def inertia_same(self, a: Rigid, b: Rigid) -> bool:
        """Whether the inertias about the centres of mass agree, measured by their largest entries."""
        scale = max(float(np.abs(a.inertia).max()), float(np.abs(b.inertia).max()))
        return float(np.abs(a.inertia - b.inertia).max()) <= self.relative * scale + self.inertia

    def same(self, a: Rigid, b: Rigid) -> bool:
        """Whether two bodies agree in everything."""
        return self.mass_same(a, b) and self.com_same(a, b) and self.inertia_same(a, b)
