"""Derivatives of impacts that touching contacts pass on (impacts.py).

The turns are taken again, and tangents follow them: dy by q and v in the middle of the step. A turn solves

    H (y' - y) = J^T g(J y' - aim)      aim = s(phi, J y) of what bounces; + R g the second time

so with the slopes G of the laws (step_derivatives.py), of a pose that changes and of aims that change,

    (H + J^T G J) dy' = H dy + J^T G daim - r_q dq      dg = G (daim - du)
    ds = s_phi dphi + s_u (J dy + dJ y)      of dampers and motors: aim = J y

The aims of the step follow from the velocities after the last turn, and from what the compliance of bounces
has left. The impulses of these aims are linear in them, so r_q and r_v of the step get -J^T G daim.

Source: implicit function theorem, turn by turn.
Cost: two factorizations and 4 nv back substitutions a turn, O(nv n) of bodies and contacts.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

from robokit.contact.bounces import bounces
from robokit.contact.closing_derivatives import along, loaded, motions
from robokit.contact.constraint_derivatives import (
    bounce_rates,
    enter_aims,
    follows,
    of_constraints,
    rates_of,
    seen,
)
from robokit.contact.constraints.contacts import rigid, weight
from robokit.contact.fields import FRICTION, IMPACT_DERIVATIVES
from robokit.contact.impacts import hits_now, pass_on
from robokit.contact.kinematics import entries_of_H, velocities
from robokit.contact.landings import damps
from robokit.contact.linear import back_substitute_unsymmetric, factor_unsymmetric
from robokit.contact.pattern import rows_of
from robokit.contact.step import ARRAYS
from robokit.contact.step_derivatives import (
    by_own_inertia,
    by_speed,
    follows_aim,
    inverse_dynamics_derivatives,
    kernel_of_copies,
    opposes,
)
from robokit.contact.vectors import add, motion, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where


@functools.cache
def turns_kernel() -> LoopKernel:
    """The kernel of ``c_turned``, of all robots."""
    return kernel_of_copies("contact_turns", turns, ARRAYS, IMPACT_DERIVATIVES, "c_turned")


def turns(x: Any) -> None:
    """``c_turned``: how the aims that impacts have left change with q and v."""
    # Loops aim at the velocities before the step in all turns; nothing weighs anything in an impact.
    still = SimpleNamespace(**vars(x))
    still.gravity, still.v0 = x.weightless, x.v
    for k in range(3):
        x.weightless[k] = 0.0
    for A in (x.turned, x.c_passes, x.c_turned):
        M = A.reshape(A.shape[0], 2 * x.nv)
        for_range(M.shape[0], lambda r, M=M: for_range(M.shape[1], lambda c: put(M, (r, c), 0.0)))
    for_range(x.nv, lambda j: put(x.turned, (j, 1, j), 1.0))
    count = loaded(x)
    for_range(x.n_of[0], lambda i: _look(x, i))
    _see(x, x.v, count)

    def begins() -> None:
        for_range(x.n_of[0], lambda i: _aim(x, i))

    pass_on(x, begins, lambda again: _solved(x, still, again, count))
    for_range(x.n_of[0], lambda i: cond(bounces(x, i), lambda: _left(x, i), nothing))


def _look(x: Any, i: Any) -> None:
    for row in (x.c_normal, x.c_closer, x.c_now, x.c_heavier):
        for_range(x.nv, lambda c, row=row: put(row, (i, c), 0.0))


def _see(x: Any, y: Any, count: Any) -> None:
    """Along each coordinate the changes of normal velocities, of gaps, of those velocities at y, and of
    gravity along normals.
    """
    once(x, velocities, y, x.V_y)
    for_range(x.n_bodies, lambda b: write_row(x.V_before, b, motion(x.V_y, b)))

    def of_contact(i: Any, r: Any) -> None:
        found = seen(x, i, *motions(x, i))
        x.c_normal[i, r], x.c_closer[i, r], x.c_now[i, r] = found.u[2], found.closer, found.now[2]
        x.c_heavier[i, r] = found.heavier

    def moved(r: Any) -> None:
        for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: of_contact(i, r), nothing))

    for_range(x.nv, lambda r: along(x, r, count, [], rates_of(x), lambda: moved(r)))


def _of_speed(x: Any, i: Any, dy: Any, m: int, c: Any) -> Any:
    """Change of a contact's normal velocity by coordinate c of q (m = 0) or v (1), with dy and the pose."""
    of_dy = for_range(x.nv, lambda r, total: total + x.c_normal[i, r] * dy[r, m, c], 0.0)
    return of_dy + x.c_now[i, c] if m == 0 else of_dy


def _aim(x: Any, i: Any) -> None:
    """Change of the aim of a contact that bounces in a turn, to c_aimed."""

    def hit() -> None:
        by_gap, by_speed, by_g = bounce_rates(x, x.c_of[i], -x.c_du[i, 0])
        x.contact_bounces[x.c_of[i]] = 2  # of_constraints holds its aim

        def column(c: Any) -> None:
            for m in range(2):
                x.c_aimed[i, m, c] = by_speed * _of_speed(x, i, x.turned, m, c)
            add(x.c_aimed, (i, 0, c), by_gap * x.c_closer[i, c] + (by_g + x.dt[0]) * x.c_heavier[i, c])

        for_range(x.nv, column)

    cond(hits_now(x, i), hit, nothing)


def _solved(x: Any, still: Any, again: Any, count: Any) -> None:
    """dy of a solution, to ``turning``; after the second one of a turn to ``turned``."""
    _residual(x, still)
    once(x, _see, x.y, count)
    dy = x.turning.reshape(x.nv, 2 * x.nv)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, dy)

    def bounced(i: Any) -> None:
        def column(c: Any) -> None:
            for m in range(2):
                g = x.c_slopes[i, 8] * (x.c_aimed[i, m, c] - _of_speed(x, i, x.turning, m, c))
                add(x.c_aimed, (i, m, c), rigid() * x.c_w[i] * g)
                add(x.c_passes, (i, m, c), where(again > 0, g, 0.0))

        for_range(x.nv, column)

    def keep(j: Any, c: Any) -> None:
        for m in range(2):
            x.turned[j, m, c] = x.turning[j, m, c]

    for_range(x.n_of[0], lambda i: cond(follows(x, i), lambda: bounced(i), nothing))
    cond(again > 0, lambda: for_range(x.nv, lambda j: for_range(x.nv, lambda c: keep(j, c))), nothing)


def _residual(x: Any, still: Any) -> None:
    """Factors of r_y, and what changes leave unbalanced, to ``turning``."""

    def rates(j: Any) -> None:
        x.mean[j], x.acceleration[j] = 0.0, x.y[j] - x.v0[j]

    def clear(r: Any, c: Any) -> None:
        x.r_y[r, c] = x.r_v[r, c] = 0.0

    def right_side(r: Any, c: Any) -> None:
        x.turning[r, 0, c], x.turning[r, 1, c] = -x.r_q[r, c], -x.r_v[r, c]

    def of_H(r: Any, c: Any, number: Any) -> None:
        add(x.r_y, (r, c), number)
        for m in range(2):
            for_range(x.nv, lambda n, m=m: add(x.turning, (r, m, n), number * x.turned[c, m, n]))

    def of_row(i: Any) -> None:
        j = x.r_row[i]
        opposes(x, i, x.r_first[i, 0], x.r_gain[i] * (x.y[j] - x.v0[j]))
        by_speed(x, i)

    def goes_on(i: Any) -> None:
        """A damper aims at the speed before the turn."""
        j, gain = x.r_row[i], x.r_gain[i]
        slope = where(damps(x, i), gain * gain * follows_aim(x, i)[0] / x.r_R[i], 0.0)

        def column(c: Any) -> None:
            for m in range(2):
                add(x.turning, (j, m, c), slope * x.turned[j, m, c])

        for_range(x.nv, column)

    def every(do: Any) -> None:
        for_range(x.nv, lambda r: for_range(x.nv, lambda c: do(r, c)))

    for_range(x.nv, rates)
    rows_of(x, x.entries, x.entries_length)
    inverse_dynamics_derivatives(still, x.mean, x.acceleration, x.r_q, x.r_v)
    every(clear)
    by_own_inertia(x, of_row)
    of_constraints(still)
    every(right_side)
    entries_of_H(x, of_H)
    for_range(x.n_of[1], goes_on)
    enter_aims(x, x.c_aimed, lambda row, m, c, less: add(x.turning, (row, m, c), less))
    factor_unsymmetric(x, x.r_y, x.r_y_inverse)


def _left(x: Any, i: Any) -> None:
    """What a contact aims at in the step, as in impacts.py."""
    moves = where(x.c_u[i, 2] > x.dt[0] * weight(x, x.c_of[i]), 1.0, 0.0)

    def column(c: Any) -> None:
        for m in range(2):
            left = rigid() * x.c_w[i] * x.c_passes[i, m, c]
            x.c_turned[i, m, c] = moves * _of_speed(x, i, x.turned, m, c) + left
        add(x.c_turned, (i, 0, c), -moves * x.dt[0] * x.c_heavier[i, c])

    for_range(x.nv, column)
