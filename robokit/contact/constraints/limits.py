"""Limits of the joints: contacts in one dimension.

With the distance phi that is left to a limit, and the speed u at which it grows,

    N = max(0, -k (phi + dt u) - d u)
    u = +-qd     R = 1/(dt (k dt + d))     aim = -phi k/(k dt + d) (phi < 0),  -phi/dt (phi >= 0)
    set: impulses >= 0

Cost: O(stops).
"""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.constraints.adding import add_row, moves, speed, value
from robokit.contact.fields import STOP
from robokit.contact.vectors import anywhere, in_lanes
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, where

REACH = 0.02, 4.0
"""A stop takes part within this share of the joint's range, and this many times what it moves in the step.
What throws a joint farther in one step than that meets it one step later, that much deeper."""


def collect(x: Any) -> None:
    """The rows of all stops that can be reached."""

    def stop(m: Any) -> None:
        j, side, dt = x.stop_dof[m], x.stop_side[m], x.dt[0]

        def add() -> None:
            k, kd = x.stop_gains[m, 0], x.stop_gains[m, 0] * dt + x.stop_gains[m, 1]
            phi = gap(x, m)
            aim = where(phi < 0.0, -phi * k / kd, -phi / dt)
            near = REACH[0] * x.stop_range[m] + REACH[1] * dt * abs(speed(x, j))

            def row() -> None:
                # In lanes where another one is near, it has no impulse.
                most = where(phi < near, math.inf, 0.0) if in_lanes(x) else math.inf
                add_row(x, STOP, m, j, side, 1.0 / (dt * kd), aim, 0.0, most)

            cond(anywhere(x, phi < near), row, lambda: None)

        cond(moves(x, j), add, lambda: None)

    for_range(x.n_stops, stop)


def gap(x: Any, m: Any) -> Scalar:
    """The distance that is left to a limit, below 0 past it [rad | m]."""
    return x.stop_side[m] * (value(x, x.stop_dof[m]) - x.stop_bound[m])
