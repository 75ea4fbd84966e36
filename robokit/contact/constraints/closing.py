"""Loops closed: for the kick of a step, and at its end.

The kick takes place at the pose nearest to that of the middle in which the loops are closed. The drift before
it has opened them by order dt^2; while open, rows of a linkage that moves only because they repeat each other
(Bennett's, Sarrus's) are independent, and would stop it. What the step leaves open is taken away at its end,

    q <- q - H^-1 J^T A^-1 delta     v <- v - H^-1 J^T A^-1 J v,     A = J H^-1 J^T,

by (H + J^T J / R) d = J^T (aim - J d) / R, twice; where loops repeat each other, too. Both are wrenches
between two bodies, which make no momentum.

Source: Hairer, Lubich and Wanner, "Geometric numerical integration", section VII.2.
Cost: that of a factor of H for each of the five projections; nothing without loops.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import body_velocity, mobility, row
from robokit.contact.constraints.loops import add_half, halves
from robokit.contact.kinematics import advance, mass_matrix, place_bodies, velocities
from robokit.contact.linear import assemble, back_substitute, factor
from robokit.contact.pattern import symbolic
from robokit.contact.solver import impulses, relative
from robokit.contact.vectors import put
from robokit.engine.loops.fields import once
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision
from robokit.spatial.scalars import Scalar, where

CLOSED = 1e-6, 1e-3
"""Compliance over the mobility of all that moves, in double and in single precision: two iterations leave its
square of what they take away, and A has its inverse times the rounding of J."""

PASSES = 2
"""Corrections of positions: each takes off the digits that are right."""


def close_for_kick(x: Any) -> None:
    """Place the robot where its loops are closed, as near to q as can be; q stays.

    It takes H at q, and leaves the poses, velocities and H of that pose, which is noted as ``q_kick``.
    """

    def closed() -> None:
        for_range(x.nq, lambda k: put(x.q_drifted, k, x.q[k]))
        once(x, constrain, 0)
        once(x, symbolic)
        _close_positions(x)
        once(x, place_bodies, x.q)
        once(x, velocities, x.v, x.V)
        once(x, mass_matrix)
        for_range(x.nq, lambda k: put(x.q_kick, k, x.q[k]))
        for_range(x.nq, lambda k: put(x.q, k, x.q_drifted[k]))

    def as_it_is() -> None:
        for_range(x.nq, lambda k: put(x.q_kick, k, x.q[k]))

    cond(x.n_loops > 0, closed, as_it_is)


def close(x: Any) -> None:
    """Project q and v onto the loops at the end of a step, with the H and the pattern of the step.

    It takes the constraints' arrays for its own: what the step's are needed for has to be done before. It
    leaves the poses of the new q.
    """

    def closed() -> None:
        _close_positions(x)
        once(x, project, 1)
        for_range(x.nv, lambda j: put(x.v, j, x.v[j] + x.d[j]))

    cond(x.n_loops > 0, closed, lambda: None)


def _close_positions(x: Any) -> None:
    def closer(_: Any) -> None:
        once(x, project, 0)
        once(x, advance, x.q, x.d, 1.0)

    for_range(PASSES, closer)


def constrain(x: Any, speeds: Any) -> None:
    """The loops as the only constraints, which aim at what is open (0) or opens (1)."""
    for k in (0, 1, 2, 5):
        x.n_of[k] = 0
    for_range(x.n_loops, lambda k: _constraints(x, k, speeds))
    for_range(x.n_motions, lambda m: _hold(x, m))


def project(x: Any, speeds: Any) -> None:
    """The change d that closes the loops at q (0), or stops what opens them (1)."""
    once(x, place_bodies, x.q)
    once(x, velocities, x.v, x.V)
    once(x, constrain, speeds)
    n, rows = x.n_of[0], x.n_of[1]
    once(x, assemble, n, rows)
    once(x, factor)
    for_range(x.nv, lambda j: put(x.d, j, 0.0))

    def correct(_: Any) -> None:
        once(x, velocities, x.d, x.Vd)

        def push(i: Any) -> None:
            for m, u in enumerate(relative(x, i, x.Vd)):
                x.c_g[i, m] = (x.c_aim[i, m] - u) / x.c_R[i, 0]

        def hold(i: Any) -> None:
            x.r_g[i] = -x.r_G[i] * x.r_gain[i] * x.d[x.r_row[i]]

        for_range(n, push)
        for_range(rows, hold)
        once(x, impulses, n, rows)
        once(x, back_substitute, x.Jg)
        for_range(x.nv, lambda j: put(x.d, j, x.d[j] + x.Jg[j]))

        def pushed(i: Any) -> None:
            x.motion_push[i] = x.motion_push[i] - x.r_G[i] * x.r_gain[i] * x.d[x.r_row[i]]

        for_range(rows, pushed)

    for_range(rows, lambda i: put(x.motion_push, i, 0.0))
    for_range(2, correct)


def _hold(x: Any, m: Any) -> None:
    """Prescribed joint m stays where it is."""
    i, j = x.n_of[1], x.motion_dof[m]
    x.n_of[1] = i + 1
    x.r_row[i], x.r_gain[i] = x.dof_row[j], x.dof_gain[j]
    x.r_G[i] = 1.0 / (in_precision(*CLOSED) * mobility(x, j))


def _constraints(x: Any, k: Any, speeds: Any) -> None:
    """Of loop k: they aim at what is open."""

    def rows(half: int, E: list[Motion], delta: list[Scalar]) -> None:
        R = in_precision(*CLOSED) * x.loop_mobility[k, half]
        V = body_velocity(x, x.loop_bodies[k, 1]) - body_velocity(x, x.loop_bodies[k, 0])
        left = [where(speeds > 0, row(e, V), s) for e, s in zip(E, delta, strict=True)]
        i = add_half(x, k, half, E, R, Vector3(*(-s for s in left)))
        for m, G in enumerate((1.0, 0.0, 1.0, 0.0, 0.0, 1.0)):
            x.c_G[i, m] = G / R

    halves(x, k, rows)
