"""Loops closed at the end of a step: positions and velocities projected by the least change in the norm of H.

    q <- q - H^-1 J^T A^-1 delta     v <- v - H^-1 J^T A^-1 J v,     A = J H^-1 J^T,

by (H + J^T J / R) d = J^T (aim - J d) / R, twice; where loops repeat each other, too. Both are
wrenches between two bodies, which make no momentum.

Source: Hairer, Lubich and Wanner, "Geometric numerical integration", section VII.2.
Cost: that of a factor of H for each of the three projections; nothing without loops.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import body_velocity, row
from robokit.contact.constraints.loops import add_half, halves
from robokit.contact.kinematics import advance, place_bodies, velocities
from robokit.contact.linear import assemble, back_substitute, factor
from robokit.contact.solver import impulses, relative
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import call, cond, for_range
from robokit.spatial.scalars import Scalar, where

CLOSED = 1e-6
"""Compliance over the mobility of the two bodies: two iterations leave its square of what they take away."""

PASSES = 2
"""Corrections of positions: each takes off the digits that are right."""


def close(x: Any) -> None:
    """Project q and v onto the loops at the end of a step, with the H and the pattern of the step.

    It takes the constraints' arrays for its own: what the step's are needed for has to be done before.
    """

    def closed() -> None:
        project = _project(x)

        def positions(_: Any) -> None:
            call(project, 0)
            advance(x, x.q, x.d, 1.0)

        for_range(PASSES, positions)
        call(project, 1)

        def faster(j: Any) -> None:
            x.v[j] = x.v[j] + x.d[j]

        for_range(x.nv, faster)

    cond(x.n_loops > 0, closed, lambda: None)


def _project(x: Any) -> Any:
    """The change d that closes the loops at q (0), or stops what opens them (1)."""

    def project(speeds: Any) -> None:
        place_bodies(x, x.q)
        velocities(x, x.v, x.V)
        for k in range(3):
            x.n_of[k] = 0

        def loop(k: Any) -> None:
            def rows(half: int, E: list[Motion], delta: list[Scalar]) -> None:
                R = CLOSED * x.loop_mobility[k, half]
                V = body_velocity(x, x.loop_bodies[k, 1]) - body_velocity(x, x.loop_bodies[k, 0])
                open_ = [where(speeds > 0, row(e, V), s) for e, s in zip(E, delta, strict=True)]
                i = add_half(x, k, half, E, R, Vector3(*(-s for s in open_)))
                for m, G in enumerate((1.0, 0.0, 1.0, 0.0, 0.0, 1.0)):
                    x.c_G[i, m] = G / R

            halves(x, k, rows)

        for_range(x.n_loops, loop)
        n = x.n_of[0]
        assemble(x, n, 0)
        factor(x)

        def clear(j: Any) -> None:
            x.d[j] = 0.0

        def correct(_: Any) -> None:
            velocities(x, x.d, x.Vd)

            def push(i: Any) -> None:
                for m, u in enumerate(relative(x, i, x.Vd)):
                    x.c_g[i, m] = (x.c_aim[i, m] - u) / x.c_R[i, 0]

            for_range(n, push)
            impulses(x, n, 0)
            back_substitute(x, x.Jg)

            def move(j: Any) -> None:
                x.d[j] = x.d[j] + x.Jg[j]

            for_range(x.nv, move)

        for_range(x.nv, clear)
        for_range(2, correct)

    return project
