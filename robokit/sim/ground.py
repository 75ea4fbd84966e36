"""The ground: a horizontal plane, with the constants of the contact law."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.arguments import real_array, real_number, whole_number
from robokit.conventions import GRAVITY
from robokit.errors import ShapeError, shown
from robokit.model.robot import Robot

MAX_SWEEPS = 50


@dataclass(frozen=True)
class Ground:
    """A horizontal ground with dry friction that pushes and never pulls.

    A point at the height phi over the surface that moves up at vn feels N = max(0, -k phi - d vn), and
    friction of at most friction * N. k = M g / sink at every point: one point alone would carry the
    robot's weight at the depth ``sink``. d = k * time, so that an impact is absorbed.

    Attributes:
        friction: Coulomb coefficient, for all links or {link: coefficient} (0.8 for the others); for
            :func:`robokit.rollout` also (B,) coefficients, one a row.
        height: of the surface in the world [m].
        sink: depth at which one point carries the whole weight [m].
        time: relaxation time of the contact, d / k [s].
        slip: sliding speed below which friction fades out [m/s]; a robot at rest creeps at up to a third of
            it. None (default) for true stiction: a point that sticks is held by a spring and does not creep.
        sweeps: solves of a time step, 1 to 50. 1 takes half the time, for dt <= 1 ms.
        max_points: contact points of a robot; meshes and cylinders share what other shapes leave.
    """

    friction: float | Sequence[float] | Mapping[str, float | Sequence[float]] = 0.8
    height: float = 0.0
    sink: float = 1e-3
    time: float = 0.02
    slip: float | None = None
    sweeps: int = 2
    max_points: int = 96

    def __post_init__(self) -> None:
        mu = self.friction
        mu = {link: _plain(x) for link, x in mu.items()} if isinstance(mu, Mapping) else _plain(mu)
        object.__setattr__(self, "friction", mu)
        self.rows  # noqa: B018  (raises where there are several)
        for name in ("sink", "time"):
            real_number(f"Ground({name}=...)", getattr(self, name), above=0.0)
        real_number("Ground(height=...)", self.height)
        if self.slip is not None:
            real_number("Ground(slip=...)", self.slip, above=0.0)
        whole_number("Ground(sweeps=...)", self.sweeps, 1, MAX_SWEEPS)
        whole_number("Ground(max_points=...)", self.max_points, 1)

    @property
    def rows(self) -> int | None:
        """B where the friction has one coefficient a row, else None."""
        values = self.friction.values() if isinstance(self.friction, Mapping) else [self.friction]
        counts = sorted({len(x) for x in values if isinstance(x, tuple)})
        if len(counts) > 1:
            raise ShapeError(f"Ground(friction=...): links have {counts[0]} and {counts[1]} coefficients")
        return counts[0] if counts else None

    def row(self, k: int) -> Ground:
        """The ground of row k alone; without rows, itself."""
        if self.rows is None:
            return self
        mu = self.friction
        if isinstance(mu, Mapping):
            return replace(self, friction={link: _of_row(x, k) for link, x in mu.items()})
        return replace(self, friction=_of_row(mu, k))

    def gains(self, robot: Robot) -> tuple[Any, Any]:
        """k [N/m] and d [N s/m] of every contact point; (B,) for a robot with samples."""
        k = weight(robot) / self.sink
        return k, k * self.time

    def coefficient(self, link: str) -> Any:
        """Friction coefficient of a link, (B,) where there is one a row."""
        mu = self.friction.get(link, 0.8) if isinstance(self.friction, Mapping) else self.friction
        return np.array(mu) if isinstance(mu, tuple) else mu


def _plain(mu: Any) -> float | tuple[float, ...]:
    """A coefficient as a float, one a row as a tuple."""
    values = real_array("Ground(friction=...)", mu, "() or (B,)")
    if values.ndim > 1 or not values.size or not np.all(np.isfinite(values) & (values >= 0.0)):
        raise ShapeError(f"Ground(friction=...): expected coefficients >= 0, got {shown(mu)}")
    return tuple(values.tolist()) if values.ndim else float(values)


def _of_row(mu: Any, k: int) -> Any:
    return mu[k] if isinstance(mu, tuple) else mu


def weight(robot: Robot) -> Any:
    """M g [N], (B,) for samples; without gravity, as on Earth: the scale of forces that hold the robot."""
    g = math.sqrt(sum(x * x for x in robot.tree.gravity)) or abs(GRAVITY[2])
    return robot.total_mass * g
