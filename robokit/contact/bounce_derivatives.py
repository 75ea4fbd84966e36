"""Derivatives of the aims of contacts that bounce (impacts.py, constraints/contacts.py).

These follow from a step without bounces, y0 of the residual r (step_derivatives.py), and from the turns in
which impacts are passed on. Both are solved again, and tangents follow them, by q and v in the middle of the
step and by tau:

    dy0 = -r_y^-1 (r_q dq + r_v dv + r_tau dtau)      dg = (J dv - J dy0 + dJ (v - y0)) / dt

g is how fast a gap falls on. With it, the gap and the speed before change when a contact arrives, t, and how
fast it leaves, s (``_rates``), and with these its aims. A turn solves

    H (y' - y) = J^T g(J y' - aim)      aim of what bounces: by J y, gap, its time, g; + R g the second time

so with the slopes G of the laws, of a pose that changes and of aims that change,

    (H + J^T G J) dy' = H dy + J^T G daim - r_q dq      dg = G (daim - du)      of dampers, motors: aim = J y

The aims of what was hit in turns follow from the velocities after the last one, from gaps and times, and from
what the compliance of bounces has left.

In reverse mode, what aims are worth is worth something by restitution, and, through g, what y0 is worth.

Source: implicit function theorem, solution by solution.
Cost: those of a step without bounces; two factorizations and 6 nv back substitutions a turn, O(nv n) of
bodies and contacts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from robokit.contact.bounces import bounces
from robokit.contact.closing_derivatives import along, loaded, motions
from robokit.contact.constraint_derivatives import enter_aims, follows, of_constraints, rates_of, seen
from robokit.contact.constraints import contacts
from robokit.contact.constraints.contacts import above, after, bounce, restitution, rigid
from robokit.contact.fields import BOUNCE_AIMS, FRICTION, STEP_PULLBACK
from robokit.contact.groups import WHEN, each_group
from robokit.contact.impacts import arrive, hits_now
from robokit.contact.kinematics import entries_of_H, generalized, velocities
from robokit.contact.landings import damps
from robokit.contact.linear import (
    back_substitute_transposed,
    back_substitute_unsymmetric,
    factor_unsymmetric,
)
from robokit.contact.pattern import rows_of
from robokit.contact.solver import hold
from robokit.contact.step import ARRAYS
from robokit.contact.step_derivatives import (
    by_motor,
    by_own_inertia,
    by_speed,
    follows_aim,
    inverse_dynamics_derivatives,
    kernel_of_copies,
    kick,
    no_parameters,
    of_body,
    of_constraint,
    of_law,
    of_motor,
    opposes,
)
from robokit.contact.vectors import add, force, motion, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Force, Vector3
from robokit.spatial.control_flow import cond, for_range, smallest
from robokit.spatial.scalars import maximum, sqrt, where


@functools.cache
def aims_kernel() -> LoopKernel:
    """The kernel of ``aims`` and ``aim_rates``; it serves all robots."""
    return kernel_of_copies("contact_aims", bounce_aims, ARRAYS, (*BOUNCE_AIMS, *STEP_PULLBACK), "aim_rates")


def bounce_aims(x: Any) -> None:
    """``aims`` and ``aim_rates``, and the gradients with respect to parameters from ``of_aims``, if no impact
    is passed on.
    """
    # Loops aim at the velocities before the step in all turns; nothing weighs anything in an impact.
    still = SimpleNamespace(**vars(x))
    still.gravity, still.v0 = x.weightless, x.v
    for k in range(3):
        x.weightless[k] = 0.0
    for A in (x.turned, x.c_passes, x.c_whens, x.aim_rates.reshape(2 * x.n_constraints, 3, x.nv)):
        M = A.reshape(A.shape[0], 3 * x.nv)
        for_range(M.shape[0], lambda r, M=M: for_range(M.shape[1], lambda c: put(M, (r, c), 0.0)))
    for_range(x.nv, lambda j: put(x.turned, (j, 1, j), 1.0))
    _begin_again(x)
    count = loaded(x)
    arrive(x, lambda: _fallen(x, count), lambda: _begins(x), lambda again: _solved(x, still, again, count))
    for_range(x.n_of[0], lambda i: cond(bounces(x, i), lambda: _aims(x, i), nothing))


def _begin_again(x: Any) -> None:
    """Restore contacts as the step has found them, and loops as its first iteration has held them."""
    n = 1 * x.n_of[0]
    x.n_of[0], x.n_of[2], x.bristle_pair[0] = 1 * x.contact_constraint[0], 0, -1
    contacts.collect(x)
    x.n_of[0] = n
    once(x, hold, 1.0)

    def dof(j: Any) -> None:
        x.v0[j] = x.v[j]
        x.guess[j] = x.v[j]

    for_range(x.nv, dof)


# ---- how bounces change ------------------------------------------------------------------------------------


class Rates(NamedTuple):
    """Derivatives of a number by the speed u before, the gap, the time of both, and the closing acceleration
    g.
    """

    u: Any
    gap: Any
    since: Any
    g: Any

    def of(self, x: Any, i: Any, m: int, c: Any, u: Any) -> Any:
        """Its change by coordinate c of q (m = 0), v (1) or tau (2), for contact i's constraint; ``u``:
        change of u.
        """
        known = self.gap * x.c_gaps[i, m, c] + self.since * x.c_whens[i, m, c] + self.g * x.c_falls[i, m, c]
        return self.u * u + known


def _rates(x: Any, c: Any, u: Any, gap: Any, since: Any) -> tuple[Rates, Rates]:
    """Derivatives of the result of ``contacts.bounce``: the time of arrival, and the speed afterwards."""
    dt, g, share = x.dt[0], x.contact_fall[c], restitution(x, c)
    begins = g * (0.5 * dt + since) - u
    arrives = sqrt(maximum(begins * begins + 2.0 * g * gap, 0.0)) + smallest()
    both = begins + arrives + smallest()
    # Of S and t by b = g (dt/2 + since) - u, the gap and g.
    S = begins / arrives, g / arrives, gap / arrives
    late = [2.0 * gap / (both * both) * rate for rate in (1.0 + S[0], S[1], S[2])]
    t = -late[0], 2.0 / both - late[1], -late[2]
    left = dt - since - 2.0 * gap / both
    moves = where(2.0 * share * arrives < g * left, 0.0, 1.0)
    when = Rates(-t[0], t[1], 1.0 + t[0] * g, t[0] * (0.5 * dt + since) + t[2])
    fast = Rates(-S[0], S[1], S[0] * g, S[0] * (0.5 * dt + since) + S[2])
    return Rates(*(moves * rate for rate in when)), Rates(*(share * rate for rate in fast))


def _after(x: Any, c: Any, at: Any, s: Any, rates: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """Changes of the result of ``contacts.after``, given those of ``at``, s and g."""
    (by_at, by_s, by_g), g, half = rates, x.contact_fall[c], 0.5 * x.dt[0]
    rest, least = x.dt[0] - at, where(s > 0.0, half, 0.0)
    left, by_left = maximum(rest, least), where(rest > least, -by_at, 0.0)
    way = by_left * (s - g * left) + left * by_s - 0.5 * left * left * by_g
    return way, by_s - g * by_left - (left - half) * by_g


def _higher(x: Any, i: Any, m: int, c: Any) -> Any:
    """Change of the height of a contact above the surface at the kick."""
    closer = x.c_closer[i, c] if m == 0 else 0.0
    rate = closer - 0.125 * x.dt[0] ** 2 * x.c_falls[i, m, c]
    return where(above(x, x.c_of[i]) > 0.0, rate, 0.0)


# ---- the step without bounces ------------------------------------------------------------------------------


def _fallen(x: Any, count: Any) -> None:
    """Changes of the accelerations at which gaps close, in the present solution."""
    dt = x.dt[0]
    for_range(x.n_of[0], lambda i: _look(x, i))
    once(x, kick)

    def right_side(r: Any, c: Any) -> None:
        x.dy[r, 0, c], x.dy[r, 1, c], x.dy[r, 2, c] = -x.r_q[r, c], -x.r_v[r, c], where(r == c, dt, 0.0)

    for_range(x.nv, lambda r: for_range(x.nv, lambda c: right_side(r, c)))
    cond(x.through_motors[0] > 0, lambda: for_range(x.n_of[1], lambda i: by_motor(x, i)), nothing)
    cond(x.with_parameters[0] > 0, lambda: _of_parameters(x), nothing)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, x.dy.reshape(x.nv, 3 * x.nv))

    def of_contact(i: Any) -> None:
        def column(c: Any) -> None:
            for m in range(3):
                x.c_falls[i, m, c] = -_of_speed(x, i, x.dy, m, c)

        for_range(x.nv, column)

    def before(i: Any) -> None:
        def column(c: Any) -> None:
            for m in range(3):
                x.c_comes[i, m, c] = _of_speed(x, i, x.turned, m, c)
                x.c_falls[i, m, c] = (x.c_falls[i, m, c] + x.c_comes[i, m, c]) / dt
                x.c_gaps[i, m, c] = _higher(x, i, m, c)

        def with_g() -> None:
            x.c_then[i, 0], x.c_then[i, 1] = above(x, x.c_of[i]), 0.0
            for_range(x.nv, column)

        _with_g(x, i, with_g)

    def every(do: Any) -> None:
        for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: do(i), nothing))

    once(x, _see, x.y, count)
    every(of_contact)
    once(x, _see, x.v, count)
    every(before)


def _with_g(x: Any, i: Any, do: Callable[[], None]) -> None:
    """Call do() while a contact knows g, before the step knows it."""
    c = x.c_of[i]
    u = 1.0 * x.contact_fall[c]
    x.contact_fall[c] = (u - x.c_u[i, 2]) / x.dt[0]
    do()
    x.contact_fall[c] = u


def _look(x: Any, i: Any) -> None:
    for row in (x.c_normal, x.c_closer, x.c_now):
        for_range(x.nv, lambda c, row=row: put(row, (i, c), 0.0))


def _see(x: Any, y: Any, count: Any) -> None:
    """Along each coordinate the changes of normal velocities, of gaps, and of those velocities at y."""
    once(x, velocities, y, x.V_y)
    for_range(x.n_bodies, lambda b: write_row(x.V_before, b, motion(x.V_y, b)))

    def of_contact(i: Any, r: Any) -> None:
        found = seen(x, i, *motions(x, i))
        x.c_normal[i, r], x.c_closer[i, r], x.c_now[i, r] = found.u[2], found.closer, found.now[2]

    def moved(r: Any) -> None:
        for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: of_contact(i, r), nothing))

    for_range(x.nv, lambda r: along(x, r, count, [], rates_of(x), lambda: moved(r)))


def _of_speed(x: Any, i: Any, dy: Any, m: int, c: Any) -> Any:
    """Change of a contact's normal velocity by coordinate c of q (m = 0), v or tau, with dy and the pose."""
    of_dy = for_range(x.nv, lambda r, total: total + x.c_normal[i, r] * dy[r, m, c], 0.0)
    return of_dy + x.c_now[i, c] if m == 0 else of_dy


# ---- turns -------------------------------------------------------------------------------------------------


def _begins(x: Any) -> None:
    """Changes of the aims of contacts that bounce in a turn, of the gaps of all contacts, and of
    their times.
    """

    def every(do: Any) -> None:
        for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: do(i), nothing))

    def first(i: Any) -> None:
        one = hits_now(x, i) & (x.c_du[i, 2] <= x.by_group[x.c_group[i], WHEN])
        x.soonest[x.c_group[i]] = where(one, i, x.soonest[x.c_group[i]])

    def goes_on(i: Any) -> None:
        cond(hits_now(x, i), lambda: _lands(x, i), lambda: _goes_on(x, i))
        for k in range(2):
            x.c_then[i, k] = x.c_passed[i, 2 + k]

    each_group(x, lambda p: put(x.soonest, p, -1))
    every(lambda i: cond(hits_now(x, i), lambda: _hit(x, i), nothing))
    every(first)
    every(goes_on)


def _hit(x: Any, i: Any) -> None:
    c, dt = x.c_of[i], x.dt[0]
    when, fast = _rates(x, c, x.c_u[i, 2], x.c_then[i, 0], x.c_then[i, 1])

    def column(k: Any) -> None:
        for m in range(3):
            u = _of_speed(x, i, x.turned, m, k)
            at = when.of(x, i, m, k, u)
            falls = x.contact_fall[c] * at + (0.5 * dt + x.c_du[i, 2]) * x.c_falls[i, m, k]
            x.c_hits[i, m, k], x.c_aimed[i, m, k] = at, fast.of(x, i, m, k, u) + falls

    for_range(x.nv, column)


def _lands(x: Any, i: Any) -> None:
    def column(k: Any) -> None:
        for m in range(3):
            x.c_gaps[i, m, k], x.c_whens[i, m, k] = 0.0, x.c_hits[i, m, k]

    for_range(x.nv, column)


def _goes_on(x: Any, i: Any) -> None:
    """As in impacts.py; the time is that of the first that bounces."""
    first, dt = x.soonest[x.c_group[i]], x.dt[0]
    u, g, since = x.c_u[i, 2], x.contact_fall[x.c_of[i]], x.c_then[i, 1]
    t = x.c_passed[i, 3] - since
    stays = where(x.c_passed[i, 2] > 0.0, 1.0, 0.0)

    def column(k: Any) -> None:
        for m in range(3):
            later = x.c_hits[maximum(first, 0), m, k] - x.c_whens[i, m, k]
            falls = (0.5 * (dt + t) + since) * x.c_falls[i, m, k] + g * (0.5 * later + x.c_whens[i, m, k])
            speed = u - g * (0.5 * (dt + t) + since)
            more = later * speed + t * (_of_speed(x, i, x.turned, m, k) - falls)
            x.c_gaps[i, m, k] = stays * (x.c_gaps[i, m, k] + more)
            x.c_whens[i, m, k] = x.c_whens[i, m, k] + later

    cond((first >= 0) & (t > 0.0), lambda: for_range(x.nv, column), nothing)


def _solved(x: Any, still: Any, again: Any, count: Any) -> None:
    """dy of a solution, to ``turning``; after the second one of a turn, to ``turned``."""
    _residual(x, still)
    once(x, _see, x.y, count)
    dy = x.turning.reshape(x.nv, 3 * x.nv)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, dy)

    def bounced(i: Any) -> None:
        def column(c: Any) -> None:
            for m in range(3):
                g = x.c_slopes[i, 8] * (x.c_aimed[i, m, c] - _of_speed(x, i, x.turning, m, c))
                add(x.c_aimed, (i, m, c), rigid() * x.c_w[i] * g)
                add(x.c_passes, (i, m, c), where(again > 0, g, 0.0))

        for_range(x.nv, column)

    def keep(j: Any, c: Any) -> None:
        for m in range(3):
            x.turned[j, m, c] = x.turning[j, m, c]

    for_range(x.n_of[0], lambda i: cond(follows(x, i), lambda: bounced(i), nothing))
    cond(again > 0, lambda: for_range(x.nv, lambda j: for_range(x.nv, lambda c: keep(j, c))), nothing)


def _residual(x: Any, still: Any) -> None:
    """Factors of r_y, and the unbalanced momentum by changes of q, v and tau, to ``turning``."""

    def rates(j: Any) -> None:
        x.mean[j], x.acceleration[j] = 0.0, x.y[j] - x.v0[j]

    def clear(r: Any, c: Any) -> None:
        x.r_y[r, c] = x.r_v[r, c] = 0.0

    def right_side(r: Any, c: Any) -> None:
        x.turning[r, 0, c], x.turning[r, 1, c], x.turning[r, 2, c] = -x.r_q[r, c], -x.r_v[r, c], 0.0

    def of_H(r: Any, c: Any, number: Any) -> None:
        add(x.r_y, (r, c), number)
        for m in range(3):
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
            for m in range(3):
                add(x.turning, (j, m, c), slope * x.turned[j, m, c])

        for_range(x.nv, column)

    def every(do: Any) -> None:
        for_range(x.nv, lambda r: for_range(x.nv, lambda c: do(r, c)))

    def enter(row: Any, m: int, c: Any, number: Any) -> None:
        add(x.turning, (row, m, c), number)

    for_range(x.nv, rates)
    rows_of(x, x.entries, x.entries_length)
    inverse_dynamics_derivatives(still, x.mean, x.acceleration, x.r_q, x.r_v)
    every(clear)
    by_own_inertia(x, of_row)
    of_constraints(still)
    every(right_side)
    entries_of_H(x, of_H)
    for_range(x.n_of[1], goes_on)
    enter_aims(x, lambda i, m, c: x.c_aimed[i, m, c], enter)
    factor_unsymmetric(x, x.r_y, x.r_y_inverse)


# ---- aims --------------------------------------------------------------------------------------------------


def _aims(x: Any, i: Any) -> None:
    """``aims`` of a bouncing contact, and their changes."""
    c = x.c_of[i]
    x.aims[i, 0], x.aims[i, 1] = x.c_aim[i, 2], x.contact_back[c, 2]
    cond(x.contact_bounces[c] > 1, lambda: _left(x, i, c), lambda: _alone(x, i, c))


def _alone(x: Any, i: Any, c: Any) -> None:
    """The same for a contact that follows from no other, as in ``impacts.arrive``; turns may have changed its
    gap.
    """
    dt, u, h = x.dt[0], _come(x, i), above(x, c)
    (at, s), (when, fast) = bounce(x, c, u, h), _rates(x, c, u, h, 0.0)

    def column(k: Any) -> None:
        for m in range(3):
            higher, u, g = _higher(x, i, m, k), x.c_comes[i, m, k], x.c_falls[i, m, k]
            of_at, of_s = (rate.u * u + rate.gap * higher + rate.g * g for rate in (when, fast))
            rises, back = _after(x, c, at, s, (of_at, of_s, g))
            x.aim_rates[i, 0, m, k], x.aim_rates[i, 1, m, k] = (rises - higher) / dt, back

    for_range(x.nv, column)


def _come(x: Any, i: Any) -> Any:
    """Speed of approach of a contact before the step [m/s]."""
    V = motion(x.V, x.c_bodies[i, 1]) - motion(x.V, x.c_bodies[i, 0])
    return V.dot(force(x.c_E, i, 12))


def _left(x: Any, i: Any, c: Any) -> None:
    """The same for a contact that was hit in turns, as in ``impacts._aim``."""
    dt, g, since, soft = x.dt[0], x.contact_fall[c], x.c_passed[i, 3], rigid() * x.c_w[i]
    s = x.c_u[i, 2] - g * (0.5 * dt + since)
    moves, back = after(x, c, since, s)
    rises = x.c_passed[i, 2] + moves > 0.0
    rest = maximum(dt - since, 0.5 * dt)
    leaves = where(rises | (back > 0.0), 1.0, 0.0)

    def column(k: Any) -> None:
        for m in range(3):
            at, of_g, left = x.c_whens[i, m, k], x.c_falls[i, m, k], soft * x.c_passes[i, m, k]
            of_s = _of_speed(x, i, x.turned, m, k) - (0.5 * dt + since) * of_g - g * at
            more, of_back = _after(x, c, since, s, (at, of_s, of_g))
            more = where(rises, x.c_gaps[i, m, k] + more, 0.0)
            more = more + rest * left - where(dt - since > 0.5 * dt, at, 0.0) * soft * x.c_passed[i, 0]
            x.aim_rates[i, 0, m, k] = (more - _higher(x, i, m, k)) / dt
            x.aim_rates[i, 1, m, k] = leaves * of_back + left

    for_range(x.nv, column)


# ---- parameters --------------------------------------------------------------------------------------------


def _of_parameters(x: Any) -> None:
    """Gradients with respect to parameters, from ``of_aims``, at the solution without bounces."""
    no_parameters(x)
    for_range(x.n_bodies, lambda b: write_row(x.f, b, Force.zero()))

    def contact(i: Any) -> None:
        c, dt, u = x.c_of[i], x.dt[0], _come(x, i)
        h = above(x, c)
        (at, s), (when, fast) = bounce(x, c, u, h), _rates(x, c, u, h, 0.0)
        higher = where(h > 0.0, -0.125 * dt * dt, 0.0)
        by_g = _after(x, c, at, s, (when.g + when.gap * higher, fast.g + fast.gap * higher, 1.0))
        by_s = _after(x, c, at, s, (0.0, 1.0, 0.0))
        way, back = x.of_aims[i, 0] / dt, x.of_aims[i, 1]
        of_law(x, c, 1, (way * by_s[0] + back * by_s[1]) * s / restitution(x, c))
        of_u = -(way * (by_g[0] - higher) + back * by_g[1]) / dt
        for side, sign in enumerate((-1.0, 1.0)):
            b = x.c_bodies[i, side]
            write_row(x.f, b, force(x.f, b) + force(x.c_E, i, 12) * (sign * of_u))

    def worth(i: Any) -> None:
        active = bounces(x, i) & (abs(x.of_aims[i, 0]) + abs(x.of_aims[i, 1]) > 0.0)
        cond(active, lambda: _with_g(x, i, lambda: contact(i)), nothing)

    for_range(x.n_of[0], worth)
    once(x, generalized, x.f, x.mu)
    back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)
    once(x, velocities, x.mu, x.V_mu)
    for_range(x.n_bodies, lambda b: of_body(x, b))
    for_range(x.n_of[0], lambda i: of_constraint(x, i, Vector3.zero()))
    for_range(x.n_of[1], lambda i: of_motor(x, i))
