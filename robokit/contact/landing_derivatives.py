"""Derivatives of a step in which something lands fast (landings.py): of y1, to the next kick, and y2, after
it.

    r(y1) = 0          H (y2 - v) + s(y1) - J^T g(J y2) = 0

r is the residual of a step. s are the forces that an impact does not change, g the impulses of contacts that
land or are closed, and of loops and limits; those of dampers depend on both. So with the derivatives of
step_derivatives.py, of s at y1 and of g at y2,

    dy1 = -r_y^-1 (r_q dq + r_v dv + r_tau dtau)
    dy2 = -(H + J^T G J)^-1 (r'_q dq + r'_v dv + s_y dy1 + r_tau dtau)

r'_q and r'_v are those of one residual at the mean velocity of y1 and the acceleration of y2. The aims of
bouncing contacts change in both (bounce_derivatives.py): r_q, r_v and r_tau get -J^T G daim. Where
restitution is reduced to create no energy, there are two such pairs of solutions (limit_derivatives.py).

Source: implicit function theorem, twice.
Cost: twice that of step_derivatives.py.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

from robokit.contact import limit_derivatives as limits
from robokit.contact.bounces import bounces
from robokit.contact.closing_derivatives import bend, drift_tangents, pull, pulled_apart
from robokit.contact.constraint_derivatives import enter_aims
from robokit.contact.fields import LANDING_DERIVATIVES, STEP_PULLBACK, STOP
from robokit.contact.kinematics import entries_of_H, velocities
from robokit.contact.landings import note_landings, smooth, smooth_row, strike, strike_row
from robokit.contact.linear import back_substitute_transposed, back_substitute_unsymmetric
from robokit.contact.solver import see
from robokit.contact.step import ARRAYS
from robokit.contact.step_derivatives import (
    balance,
    by_motor,
    constrain,
    end,
    finish,
    inverse_dynamics_derivatives,
    kernel_of_copies,
    no_parameters,
    of_body,
    of_constraint,
    of_motor,
    opposes,
    right_sides,
    settle,
)
from robokit.contact.vectors import add, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import maximum, minimum, where


@functools.cache
def landed_kernel() -> LoopKernel:
    """The kernel of ``next``; it serves all robots."""
    return kernel_of_copies("contact_landed", landed, ARRAYS, (*LANDING_DERIVATIVES, *STEP_PULLBACK), "next")


def landed(x: Any) -> None:
    """``next`` of a step with a fast landing or a bounce, and the gradients with respect to parameters from
    of_end.
    """
    once(x, drift_tangents, 0, x.v_before, x.v_before)
    cond(x.n_loops > 0, lambda: _bend(x), nothing)
    for_range(x.n_of[0], lambda c: write_row(x.c_R_first, c, [x.c_R[c, k] for k in range(2)]))
    for_range(x.n_of[1], lambda i: put(x.r_R_first, i, x.r_R[i]))
    limits.begin(x)
    for_range(2, lambda k: cond((k > 0) | (x.limited[0] > 0), lambda: _pair(x, k), nothing))
    cond(x.limited[0] > 0, lambda: limits.end(x), nothing)
    cond(x.n_loops > 0, lambda: _of_bent(x), nothing)

    def coordinate(j: Any) -> None:
        x.y[j], x.ahead[j] = 1.0 * x.y_now[j], 1.0 * x.ahead_now[j]
        for m in range(3):
            for_range(x.nv, lambda c, m=m: put(x.dy, (j, m, c), x.dy_now[j, m, c]))

    for_range(x.nv, coordinate)
    finish(x, x.ahead, x.dy_ahead, x.dy_bent)
    cond(x.with_parameters[0] > 0, lambda: _of_parameters(x), nothing)


def _pair(x: Any, k: Any) -> None:
    """Changes of y and ``ahead`` by a pair of solutions, weighted by their share in the step."""
    once(x, _first, k)
    once(x, _second, k)
    cond(x.limited[0] > 0, lambda: limits.enter(x, x.W_after, x.W_way, x.dy, x.dy_way), nothing)

    def ahead(r: Any, m: int, c: Any) -> None:
        own, dy = limits.own(x, k, x.row_group[r]), x.dy[r, m, c]
        add(x.dy_now, (r, m, c), own * dy)
        add(x.dy_ahead, (r, m, c), own * (2.0 * x.dy_way[r, m, c] - dy))

    for m in range(3):
        for_range(x.nv, lambda r, m=m: for_range(x.nv, lambda c: ahead(r, m, c)))


def _bend(x: Any) -> None:
    """dH d, of what closes loops at the end (closing_derivatives.py), to ``bent``."""
    still = SimpleNamespace(**vars(x))
    still.gravity = x.weightless
    for k in range(3):
        x.weightless[k] = 0.0
    end(x, x.ahead)

    def rates(j: Any) -> None:
        x.mean[j], x.acceleration[j] = 0.0, x.end_v[j] - x.v_next[j]

    for_range(x.nv, rates)
    inverse_dynamics_derivatives(still, x.mean, x.acceleration, x.bent, x.unchanged)


def _of_bent(x: Any) -> None:
    """The same by q, v and tau before the step, to ``dy_bent``; ``opening`` of a force that turns, too."""
    once(x, bend)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(x.unchanged, (r, c), 0.0)))
    at_start = SimpleNamespace(**vars(x))
    at_start.r_q, at_start.r_v, at_start.dy = x.bent, x.unchanged, x.dy_bent
    right_sides(at_start)

    def less(r: Any, c: Any) -> None:
        for m in range(2):
            x.dy_bent[r, m, c] = -x.dy_bent[r, m, c]
        x.dy_bent[r, 2, c] = 0.0

    for_range(x.nv, lambda r: for_range(x.nv, lambda c: less(r, c)))


def _go_to_first(x: Any, k: Any) -> None:
    """Restore the first solution of pair k and its laws; the second one is stored."""

    def constraint(c: Any) -> None:
        more = [limits.beyond(x, k, x.c_group[c], x.c_bounced[c, n]) for n in range(6)]
        after = [x.c_g_now[c, n] + more[n] for n in range(3)]
        write_row(x.c_g_after, c, after)
        write_row(x.c_R, c, [x.c_R_first[c, n] for n in range(2)])
        write_row(x.c_aim, c, [x.c_first[c, 2 + n] for n in range(3)])
        write_row(x.c_g, c, [after[n] + x.c_way_now[c, n] + more[3 + n] for n in range(3)])

        def with_restitution() -> None:
            x.c_aim[c, 2], x.contact_back[x.c_of[c], 2] = x.aims[c, 0], x.aims[c, 1]

        def without() -> None:
            x.c_aim[c, 2] = minimum(-x.contact_gap[x.c_of[c]], 0.0) / x.dt[0]
            x.contact_back[x.c_of[c], 2] = 0.0

        cond(limits.is_limited(x, c), lambda: cond(k > 0, with_restitution, without), nothing)

    def row(i: Any) -> None:
        x.r_R[i], x.r_aim[i] = 1.0 * x.r_R_first[i], 1.0 * x.r_first[i, 1]

    def coordinate(j: Any) -> None:
        group = x.row_group[j]
        x.y_after[j] = x.y_now[j] + limits.beyond(x, k, group, x.y_bounced[j])
        x.ahead[j] = x.ahead_now[j] + limits.beyond(x, k, group, x.ahead_bounced[j])
        x.y[j] = 0.5 * (x.y_after[j] + x.ahead[j])

    x.struck[0] = 0
    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    for_range(x.nv, coordinate)
    once(x, see, x.y, x.c_u)
    note_landings(x)


def _kick(x: Any, k: Any) -> None:
    """r_q, r_v and factors of r_y at the first solution."""
    _go_to_first(x, k)
    once(x, balance, x.y)
    once(x, constrain)
    once(x, _follow, k, 0)
    once(x, settle)


def _follow(x: Any, k: Any, after: Any) -> None:
    """Changes of the aims of bouncing contacts, in the first or the second solution: to r_q, r_v
    and r_tau.
    """
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(x.r_tau, (r, c), 0.0)))

    def less(row: Any, m: int, c: Any, change: Any) -> None:
        add((x.r_q, x.r_v, x.r_tau)[m], (row, c), -change)

    def change(i: Any, m: int, c: Any) -> Any:
        """Without restitution there is that of the gap on the way alone."""
        falls = (x.contact_gap[x.c_of[i]] > 0.0) & (after < 1)
        closer = where(falls, -x.c_closer[i, c] / x.dt[0], 0.0) if m == 0 else 0.0
        return where((k > 0) | ~limits.is_limited(x, i), x.aim_rates[i, after, m, c], closer)

    cond(x.n_of[2] > 0, lambda: enter_aims(x, change, less), nothing)


def _add_tau(x: Any) -> None:
    """Changes by joint forces through the aims, to ``dy``."""
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: add(x.dy, (r, 2, c), -x.r_tau[r, c])))


def _first(x: Any, k: Any) -> None:
    """dy of the first solution, to ``dy_way``; the share of joint forces that acts, to ``felt``."""
    once(x, _kick, k)
    once(x, right_sides)
    cond(x.through_motors[0] > 0, lambda: for_range(x.n_of[1], lambda i: by_motor(x, i)), nothing)
    for_range(x.nv, lambda j: put(x.felt, j, x.dy[j, 2, j]))
    _add_tau(x)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, x.dy.reshape(x.nv, 3 * x.nv))
    for m in range(3):
        for_range(x.nv, lambda r, m=m: for_range(x.nv, lambda c: put(x.dy_way, (r, m, c), x.dy[r, m, c])))


def _second(x: Any, k: Any) -> None:
    """dy of the second solution, to ``dy``."""

    def motor(i: Any) -> None:
        cond(smooth_row(x, i), nothing, lambda: by_motor(x, i))

    _linearize(x, k)
    once(x, right_sides)
    for_range(x.nv, lambda j: put(x.dy, (j, 2, j), x.felt[j]))
    cond(x.through_motors[0] > 0, lambda: for_range(x.n_of[1], motor), nothing)
    _add_tau(x)
    count = 3 * x.nv
    dy, first = x.dy.reshape(x.nv, count), x.dy_way.reshape(x.nv, count)

    def row(r: Any) -> None:
        def by_way(m: Any) -> None:
            share = x.r_way[r, m]
            for_range(count, lambda c: add(dy, (r, c), -share * first[m, c]))

        for_range(x.nv, by_way)

    for_range(x.nv, row)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, dy)


def _linearize(x: Any, k: Any) -> None:
    """r'_q, r'_v and factors of r'_y; s_y, to ``r_way``."""

    def separate(r: Any, c: Any) -> None:
        x.r_way[r, c], x.r_y[r, c] = 1.0 * x.r_y[r, c], 0.0

    def of_H(r: Any, c: Any, number: Any) -> None:
        add(x.r_way, (r, c), -number)
        add(x.r_y, (r, c), number)

    once(x, balance, x.y_after)
    cond(x.limited[0] > 0, lambda: limits.see_momentum(x, k), nothing)
    _leave_smooth(x)
    once(x, constrain)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: separate(r, c)))
    entries_of_H(x, of_H)
    _go_to_second(x, k)
    constrain(x, lambda i: cond(smooth_row(x, i), nothing, lambda: _oppose(x, i)))
    cond(x.limited[0] > 0, lambda: limits.see_contacts(x, k), nothing)
    once(x, _follow, k, 1)
    once(x, settle)


def _oppose(x: Any, i: Any) -> None:
    """How the impulses of dampers and motors in the second solution change with y1."""
    j, gain, R = x.r_row[i], x.r_gain[i], x.r_R_first[i]
    acts = opposes(x, i, R, gain * 0.5 * (x.y_after[j] - x.ahead[j]))
    add(x.r_way, (j, j), acts * gain * gain / (maximum(x.r_w[i], x.r_loose[i]) + R))


def _leave_smooth(x: Any) -> None:
    """Keep only those forces of the first solution that an impact does not change."""

    def constraint(c: Any) -> None:
        stays = smooth(x, c)
        for k in range(2):
            x.c_R[c, k] = where(stays, x.c_R[c, k], math.inf)
        write_row(x.c_g, c, [where(stays, x.c_g[c, k], 0.0) for k in range(3)])

    def row(i: Any) -> None:
        x.r_R[i] = where(smooth_row(x, i), x.r_R[i], math.inf)

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)


def _go_to_second(x: Any, k: Any) -> None:
    """Restore the second solution and its laws."""
    soft = x.landed[1] > 0

    def compliance(now: Any, first: Any, gives: Any = True) -> Any:
        return where(soft & gives & (now < math.inf), first, now)

    def constraint(c: Any) -> None:
        strike(x, c)
        write_row(x.c_R, c, [compliance(x.c_R[c, k], x.c_R_first[c, k]) for k in range(2)])
        write_row(x.c_g, c, [where(smooth(x, c), 0.0, x.c_g_after[c, k]) for k in range(3)])

    def row(i: Any) -> None:
        strike_row(x, i)
        x.r_R[i] = compliance(x.r_R[i], x.r_R_first[i], x.r_kind[i] == STOP)

    _go_to_first(x, k)
    x.struck[0] = where(soft, 2, 1)
    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    for_range(x.nv, lambda j: put(x.y, j, x.y_after[j]))
    once(x, see, x.y, x.c_u)


# ---- parameters -------------------------------------------------------------------------------------------
# With mu2 = (H + J^T G J)^-T (what y2 is worth) y1 is worth -s_y^T mu2 besides. Bodies and contacts are in
# both residuals; contacts that an impact does not change are in s. So are motors, which also oppose what it
# changes of their speed.


def _of_parameters(x: Any) -> None:
    """Gradients with respect to parameters, from ``of_end``, and with respect to the aims of bounces."""
    for_range(x.nv, lambda j: put(x.of_q, j, x.of_end[0, j]))
    for_range(x.nv, lambda j: put(x.of_v, j, x.of_end[1, j]))
    cond(x.n_loops > 0, lambda: pull(x), nothing)
    once(x, pulled_apart, 1, x.of_q, x.of_v, x.of_middle, x.of_y, x.of_ahead)
    no_parameters(x)
    for_range(x.n_of[0], lambda i: write_row(x.of_aims, i, [0.0] * 2))
    cond(x.limited[0] > 0, lambda: limits.weigh_share(x), nothing)
    for_range(2, lambda k: cond((k > 0) | (x.limited[0] > 0), lambda: _worth_of_pair(x, k), nothing))


def _worth_of_pair(x: Any, k: Any) -> None:
    """Add the gradients with respect to parameters from a pair of solutions."""
    once(x, _kick, k)
    once(x, _linearize, k)

    def of_second(j: Any) -> None:
        group = x.row_group[j]
        own = limits.own(x, k, group)
        x.mu[j] = own * (x.of_y[j] - x.of_ahead[j]) + limits.of_rate(x, group, x.W_after[j])
        x.of_way[j] = 2.0 * own * x.of_ahead[j] + limits.of_rate(x, group, x.W_way[j])

    def of_first(j: Any) -> None:
        x.of_way[j] = for_range(x.nv, lambda r, left: left - x.r_way[r, j] * x.mu[r], x.of_way[j])

    def of_momentum(j: Any, sign: float) -> None:
        add(x.mu, j, sign * limits.of_rate(x, x.row_group[j], limits.momentum_worth(x, k, j)))

    def of_contact(i: Any) -> None:
        more = limits.of_rate(x, x.c_group[i], limits.own(x, k, x.c_group[i]))
        _of_force(x, k, 1, i, limits.worth(x, i) * more)

    def of_stricken(i: Any) -> None:
        """Of b, g(y2) has the slope of g(y1), and -(u2 - u1) (1 - (R / (w + R))^2)."""
        R, apart = x.r_R_first[i], 0.5 * (x.ahead[x.r_row[i]] - x.y_after[x.r_row[i]])
        kept = R / (maximum(x.r_w[i], x.r_loose[i]) + R)
        of_motor(x, i, kept * kept * x.r_gain[i] * apart)

    def of_bodies() -> None:
        once(x, velocities, x.mu, x.V_mu)
        for_range(x.n_bodies, lambda b: of_body(x, b))

    for_range(x.nv, of_second)
    back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)
    for_range(x.nv, of_first)
    for_range(x.nv, lambda j: of_momentum(j, 1.0))
    of_bodies()
    for_range(x.nv, lambda j: of_momentum(j, -1.0))
    once(x, velocities, x.mu, x.V_mu)
    for_range(x.n_of[0], of_contact)
    for_range(x.n_of[1], lambda i: cond(smooth_row(x, i), nothing, lambda: of_stricken(i)))
    once(x, _kick, k)
    for_range(x.n_of[0], lambda i: cond(smooth(x, i), lambda: _of_force(x, k, 0, i, Vector3.zero()), nothing))
    for_range(x.n_of[1], lambda i: cond(smooth_row(x, i), lambda: of_motor(x, i), nothing))
    for_range(x.nv, lambda j: put(x.mu, j, x.of_way[j]))
    back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)
    of_bodies()
    for_range(x.n_of[0], lambda i: _of_force(x, k, 0, i, Vector3.zero()))
    for_range(x.n_of[1], lambda i: of_motor(x, i))


def _of_force(x: Any, k: Any, after: int, i: Any, more: Vector3) -> None:
    """Add the gradients with respect to a constraint's friction and, with full restitution (k = 1), to the
    aims of bounces.
    """

    def of_aim(c: Any, worth: Any) -> None:
        counts = bounces(x, c) & ((k > 0) | ~limits.is_limited(x, c))
        add(x.of_aims, (c, after), where(counts, worth, 0.0))

    of_constraint(x, i, more, of_aim)
