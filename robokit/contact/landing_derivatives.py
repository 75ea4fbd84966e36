"""Derivatives of a step in which something lands fast (landings.py): of y1 of the way, and of y2 after it.

    r(y1) = 0          H (y2 - v) + s(y1) - J^T g(J y2) = 0

r is the residual of a step. s are the forces that an impact does not change, g the impulses of what lands,
touches or holds. So with the derivatives of step_derivatives.py, of s at y1 and of g at y2,

    dy1 = -r_y^-1 (r_q dq + r_v dv + r_tau dtau)
    dy2 = -(H + J^T G J)^-1 (r'_q dq + r'_v dv + s_y dy1 + r_tau dtau)

r'_q and r'_v are those of one residual at the mean velocity of y1 and the acceleration of y2.

Source: implicit function theorem, twice.
Cost: twice that of step_derivatives.py.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from robokit.contact.closing_derivatives import drift_tangents
from robokit.contact.fields import LANDING_DERIVATIVES, STEP_PULLBACK
from robokit.contact.kinematics import entries_of_H
from robokit.contact.landings import note_landings, smooth, smooth_row, strike, strike_row
from robokit.contact.linear import back_substitute_unsymmetric
from robokit.contact.solver import see
from robokit.contact.step import ARRAYS
from robokit.contact.step_derivatives import (
    balance,
    by_motor,
    constrain,
    finish,
    kernel_of_copies,
    right_sides,
    settle,
)
from robokit.contact.vectors import add, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where


@functools.cache
def landed_kernel() -> LoopKernel:
    """The kernel of ``next``, of all robots."""
    return kernel_of_copies("contact_landed", landed, ARRAYS, (*LANDING_DERIVATIVES, *STEP_PULLBACK), "next")


def landed(x: Any) -> None:
    """``next`` of a step in which something lands fast."""
    x.bounce_share[0] = 1.0
    once(x, drift_tangents, 0, x.v_before, x.v_before)
    _to_first(x)
    _first(x)
    _second(x)

    def ahead(r: Any, m: int, c: Any) -> None:
        x.dy_way[r, m, c] = 2.0 * x.dy_way[r, m, c] - x.dy[r, m, c]

    for m in range(3):
        for_range(x.nv, lambda r, m=m: for_range(x.nv, lambda c: ahead(r, m, c)))
    finish(x, x.ahead, x.dy_way)


def _to_first(x: Any) -> None:
    """Go from the second solution, which is kept, to the first one."""

    def constraint(c: Any) -> None:
        write_row(x.c_g_after, c, [x.c_g[c, k] for k in range(3)])
        write_row(x.c_g, c, [x.c_g[c, k] + x.c_ahead[c, k] for k in range(3)])

    def coordinate(j: Any) -> None:
        x.y_after[j], x.y[j] = 1.0 * x.y[j], 0.5 * (x.y[j] + x.ahead[j])

    def row(i: Any) -> None:
        x.r_g[i] = where(smooth_row(x, i), x.r_g[i], x.r_first[i, 2])

    for_range(x.n_of[0], constraint)
    for_range(x.nv, coordinate)
    note_landings(x)
    for_range(x.n_of[1], row)
    once(x, see, x.y, x.c_u)


def _first(x: Any) -> None:
    """dy of the first solution, to ``dy_way``; what is felt of joint forces, to ``felt``."""
    once(x, balance, x.y)
    once(x, constrain)
    once(x, settle)
    once(x, right_sides)
    cond(x.through_motors[0] > 0, lambda: for_range(x.n_of[1], lambda i: by_motor(x, i)), nothing)
    for_range(x.nv, lambda j: put(x.felt, j, x.dy[j, 2, j]))
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, x.dy.reshape(x.nv, 3 * x.nv))
    for m in range(3):
        for_range(x.nv, lambda r, m=m: for_range(x.nv, lambda c: put(x.dy_way, (r, m, c), x.dy[r, m, c])))


def _second(x: Any) -> None:
    """dy of the second solution, to ``dy``."""
    _linearize(x)
    once(x, right_sides)
    for_range(x.nv, lambda j: put(x.dy, (j, 2, j), x.felt[j]))
    count = 3 * x.nv
    dy, first = x.dy.reshape(x.nv, count), x.dy_way.reshape(x.nv, count)

    def row(r: Any) -> None:
        def by_way(m: Any) -> None:
            share = x.r_way[r, m]
            for_range(count, lambda c: add(dy, (r, c), -share * first[m, c]))

        for_range(x.nv, by_way)

    for_range(x.nv, row)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, dy)


def _linearize(x: Any) -> None:
    """r'_q, r'_v and factors of r'_y; s_y, to ``r_way``."""

    def separate(r: Any, c: Any) -> None:
        x.r_way[r, c], x.r_y[r, c] = 1.0 * x.r_y[r, c], 0.0

    def of_H(r: Any, c: Any, number: Any) -> None:
        add(x.r_way, (r, c), -number)
        add(x.r_y, (r, c), number)

    once(x, balance, x.y_after)
    _leave_smooth(x)
    once(x, constrain)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: separate(r, c)))
    entries_of_H(x, of_H)
    _go_to_second(x)
    once(x, constrain)
    once(x, settle)


def _leave_smooth(x: Any) -> None:
    """Of all forces only those that an impact does not change."""

    def constraint(c: Any) -> None:
        for k in range(2):
            x.c_R_first[c, k] = 1.0 * x.c_R[c, k]
            x.c_R[c, k] = where(smooth(x, c), x.c_R[c, k], math.inf)
        write_row(x.c_g, c, [where(smooth(x, c), x.c_g[c, k], 0.0) for k in range(3)])

    def row(i: Any) -> None:
        x.r_R_first[i] = 1.0 * x.r_R[i]
        x.r_R[i] = where(smooth_row(x, i), x.r_R[i], math.inf)

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)


def _go_to_second(x: Any) -> None:
    """To the second solution, of impulses alone; all other forces have no part."""
    soft = x.landed[1] > 0

    def compliance(now: Any, first: Any) -> Any:
        return where(soft & (now < math.inf), first, now)

    def constraint(c: Any) -> None:
        for k in range(2):
            x.c_R[c, k] = 1.0 * x.c_R_first[c, k]
        write_row(x.c_g, c, [x.c_g_after[c, k] + x.c_ahead[c, k] for k in range(3)])
        strike(x, c)
        for k in range(2):
            x.c_R[c, k] = compliance(x.c_R[c, k], x.c_R_first[c, k])
        write_row(x.c_g, c, [where(smooth(x, c), 0.0, x.c_g_after[c, k]) for k in range(3)])

    def row(i: Any) -> None:
        x.r_R[i] = 1.0 * x.r_R_first[i]
        strike_row(x, i)
        x.r_R[i] = compliance(x.r_R[i], x.r_R_first[i])

    x.struck[0] = where(soft, 2, 1)
    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    for_range(x.nv, lambda j: put(x.y, j, x.y_after[j]))
    once(x, see, x.y, x.c_u)
