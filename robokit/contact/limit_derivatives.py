"""Derivatives of a step in which bounces give back less than all of restitution (bounces.py).

Its end is on the way between two solutions, one with aims of 0 and one with all of restitution, at the share
s at which what bounces make, W, is 0. With the derivatives of each solution by the implicit function theorem

    dy = (1 - s) dy0 + s dy1 + (y1 - y0) ds        W_s ds = -(change of W at this share)

s and W are those of each group of bodies that constraints connect (groups.py); one that is not limited has
s = 1.

    W = sum over bouncing contacts of g . u, less (y - v) . J^T g / 2

J^T g changes as the momentum does, g of a contact as its law says: dg = G (daim - du). In reverse mode, for
what parameters are worth, W has the weight -(y1 - y0) . (what y is worth) / W_s in each solution.

Source: implicit function theorem, twice.
Cost: twice that of step_derivatives.py, and O(nv n) of bodies and contacts.
"""

from __future__ import annotations

import functools
from typing import Any

from robokit.contact.accounts import TOUCHED
from robokit.contact.bounces import bounces
from robokit.contact.closing_derivatives import along, drift_tangents, loaded, motions, pull, pulled
from robokit.contact.constraint_derivatives import rates_of, seen
from robokit.contact.fields import LIMITED_BOUNCES, MOTOR, STEP_PULLBACK
from robokit.contact.groups import RATE, SHARE, WORK, add_to, each_group
from robokit.contact.kinematics import velocities
from robokit.contact.linear import back_substitute_transposed, back_substitute_unsymmetric
from robokit.contact.solver import impulses, see
from robokit.contact.step import ARRAYS
from robokit.contact.step_derivatives import (
    balance,
    by_motor,
    finish,
    kernel_of_copies,
    no_parameters,
    of_body,
    of_constraint,
    resist,
    right_sides,
)
from robokit.contact.vectors import add, nothing, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where


@functools.cache
def limited_kernel() -> LoopKernel:
    """The kernel of ``next``, of all robots."""
    return kernel_of_copies("contact_limited", limited, ARRAYS, (*LIMITED_BOUNCES, *STEP_PULLBACK), "next")


def limited(x: Any) -> None:
    """``next`` of a step whose bounces are limited, and what parameters are worth from ``of_end``."""
    for_range(x.nv, lambda j: put(x.y_now, j, x.y[j]))
    for_range(x.n_of[0], lambda i: write_row(x.c_g_now, i, vector(x.c_g, i)))
    once(x, see, x.y_bounced, x.c_u_bounced)
    once(x, see, x.y, x.c_u_now)
    for M in (x.W_by, x.W_by_start, x.dy_now.reshape(x.nv, 3 * x.nv)):
        for_range(M.shape[0], lambda r, M=M: for_range(M.shape[1], lambda c: put(M, (r, c), 0.0)))
    once(x, drift_tangents, 0, x.v_before, x.v_before)
    _by_share(x)
    for_range(2, lambda k: _solution(x, k))
    _weigh_mixed(x)
    _enter(x, x.dy_now)  # to W_by_start

    def direction(m: int, c: Any) -> None:
        def row(j: Any) -> None:
            ds = -x.W_by_start[m, c] * x.share_by_W[j]
            same = x.row_group[j] == x.row_group[c]
            x.dy[j, m, c] = x.dy_now[j, m, c] + where(same, x.y_bounced[j] * ds, 0.0)

        for_range(x.nv, row)

    for m in range(3):
        for_range(x.nv, lambda c, m=m: direction(m, c))
    for_range(x.nv, lambda j: put(x.y, j, x.y_now[j]))
    finish(x, x.y, x.dy)
    cond(x.with_parameters[0] > 0, lambda: _of_parameters(x), nothing)


def _own(x: Any, k: Any, group: Any) -> Any:
    """The share of a solution, with aims of 0 (k = 0) or with full restitution (1), in that of a group."""
    return where(k > 0, x.by_group[group, SHARE], 1.0 - x.by_group[group, SHARE])


def _away(x: Any, k: Any, group: Any) -> Any:
    """How far beyond its share the solution is, of the way from aims of 0 to full restitution."""
    return where(k > 0, 1.0 - x.by_group[group, SHARE], -x.by_group[group, SHARE])


def _half_work(x: Any, j: Any) -> Any:
    """1/2 of a row that takes part in a bounce, else 0."""
    return where(x.account[x.row_whole[j], TOUCHED] > 0.0, 0.5, 0.0)


def _by_share(x: Any) -> None:
    """1 / W_s of the group of each row, 0 where energy does not limit it; leaves what W changes by with y and
    v beside that of impulses in W_by.
    """

    def of_contact(i: Any) -> None:
        def rate() -> Any:
            more, speed = vector(x.c_bounced, i), _worth(x, i)
            return more.dot(speed) + vector(x.c_g, i).dot(vector(x.c_u_bounced, i))

        add_to(x, x.c_group[i], WORK, cond(bounces(x, i), rate, lambda: 0.0))

    def of_y(j: Any) -> None:
        half = _half_work(x, j)
        x.W_by[1, j], x.W_by[2, j] = half * x.Jg[j], -half * x.Jg[j]
        add_to(x, x.row_group[j], WORK, -half * x.y_bounced[j] * x.Jg[j])

    def of_Jg(j: Any) -> None:
        add_to(x, x.row_group[j], WORK, -_half_work(x, j) * (x.y_now[j] - x.v0[j]) * x.Jg[j])

    def inverse(j: Any) -> None:
        limited = x.by_group[x.row_group[j], SHARE] < 1.0
        x.share_by_W[j] = where(limited, 1.0 / where(limited, x.by_group[x.row_group[j], WORK], 1.0), 0.0)

    once(x, impulses, x.n_of[0], x.n_of[1])
    each_group(x, lambda p: put(x.by_group, (p, WORK), 0.0))
    for_range(x.n_of[0], of_contact)
    for_range(x.nv, of_y)
    for_range(x.n_of[0], lambda i: write_row(x.c_g, i, vector(x.c_bounced, i)))
    for_range(x.n_of[1], lambda i: put(x.r_g, i, x.r_bounced[i]))
    once(x, impulses, x.n_of[0], x.n_of[1])
    for_range(x.n_of[0], lambda i: write_row(x.c_g, i, vector(x.c_g_now, i)))
    for_range(x.nv, of_Jg)
    for_range(x.nv, inverse)


def _worth(x: Any, i: Any) -> Vector3:
    """What the impulse of a bouncing contact is worth in W: its velocity."""
    return vector(x.c_u_now, i)


def _solution(x: Any, k: Any) -> None:
    """dy of the solution with aims of 0 (k = 0) or with full restitution (1), and what W changes with it."""
    _slopes(x, k)
    right_sides(x)
    cond(x.through_motors[0] > 0, lambda: for_range(x.n_of[1], lambda i: _driven(x, i)), nothing)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, x.dy.reshape(x.nv, 3 * x.nv))
    _enter(x, x.dy)

    def entry(j: Any, m: int, c: Any) -> None:
        add(x.dy_now, (j, m, c), _own(x, k, x.row_group[j]) * x.dy[j, m, c])

    for m in range(3):
        for_range(x.nv, lambda j, m=m: for_range(x.nv, lambda c: entry(j, m, c)))


def _slopes(x: Any, k: Any) -> None:
    """r_q, r_v and factors of r_y at a solution, and what W changes with it."""
    x.bounce_share[0] = 1.0 * k

    def constraint(i: Any) -> None:
        away = _away(x, k, x.c_group[i])
        write_row(x.c_g, i, vector(x.c_g_now, i) + vector(x.c_bounced, i) * away)
        write_row(x.c_u, i, vector(x.c_u_now, i) + vector(x.c_u_bounced, i) * away)
        aim = where(x.c_g[i, 2] > 0.0, x.c_u[i, 2] + x.c_R[i, 1] * x.c_g[i, 2], 0.0)
        x.c_aim[i, 2] = where(bounces(x, i), aim, x.c_aim[i, 2])

    def momentum(c: Any) -> None:
        def more(j: Any, by_q: Any, by_v: Any, by_y: Any) -> Any:
            w = -_weight(x, k, j)
            return by_q + w * x.r_q[j, c], by_v + w * x.r_v[j, c], by_y + w * x.r_y[j, c]

        found = for_range(x.nv, more, 0.0, 0.0, 0.0)
        for m, number in enumerate(found):
            x.W_of[m, c] = number
        x.W_of[3, c] = _weight(x, k, c) * x.dt[0]

    def weigh(i: Any) -> None:
        G, w, own = [x.c_slopes[i, n] for n in range(9)], _worth(x, i), _own(x, k, x.c_group[i])
        rates = [own * (w.x * G[n] + w.y * G[3 + n] + w.z * G[6 + n]) for n in range(3)]
        write_row(x.c_weight, i, [*(-r for r in rates), rates[2]])

    def coordinate(j: Any) -> None:
        x.y[j] = x.y_now[j] + x.y_bounced[j] * _away(x, k, x.row_group[j])

    for_range(x.nv, coordinate)
    for_range(x.n_of[0], constraint)
    balance(x, x.y)
    for_range(x.nv, momentum)
    resist(x)
    for_range(x.n_of[0], lambda i: cond(bounces(x, i), lambda: weigh(i), nothing))
    once(x, _see)


def _weight(x: Any, k: Any, j: Any) -> Any:
    """What J^T g of a row is worth in -W, by its share of a solution."""
    return _own(x, k, x.row_group[j]) * _half_work(x, j) * (x.y_now[j] - x.v0[j])


def _of_parameters(x: Any) -> None:
    """What parameters are worth: of both solutions, and of the share.

    A number that y is worth changes with the share by rate = -(y1 - y0) . of_y / W_s times what W does, so of
    a solution mu = r_y^-T (own of_y + rate W_y), and W's own change by momentum and impulses comes to it.
    """
    for_range(x.nv, lambda j: put(x.of_q, j, x.of_end[0, j]))
    for_range(x.nv, lambda j: put(x.of_v, j, x.of_end[1, j]))
    cond(x.n_loops > 0, lambda: pull(x), nothing)
    once(x, pulled, 1, x.of_q, x.of_v, x.of_middle, x.of_y)
    each_group(x, lambda p: put(x.by_group, (p, RATE), 0.0))
    for_range(x.nv, lambda j: add_to(x, x.row_group[j], RATE, -x.of_y[j] * x.y_bounced[j] * x.share_by_W[j]))
    _weigh_mixed(x)
    for_range(x.nv, lambda j: put(x.W_mixed, j, x.W_of[2, j]))
    no_parameters(x)

    def solution(k: Any) -> None:
        _slopes(x, k)

        def worth(j: Any) -> None:
            own, rate = _own(x, k, x.row_group[j]), x.by_group[x.row_group[j], RATE]
            x.mu[j] = own * x.of_y[j] + rate * (x.W_of[2, j] + own * x.W_mixed[j])

        def of_momentum(j: Any) -> None:
            add(x.mu, j, x.by_group[x.row_group[j], RATE] * _weight(x, k, j))

        def constraint(i: Any) -> None:
            g = x.c_group[i]
            more = where(bounces(x, i), x.by_group[g, RATE] * _own(x, k, g), 0.0)
            of_constraint(x, i, _worth(x, i) * more)

        for_range(x.nv, worth)
        back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)
        once(x, velocities, x.mu, x.V_mu)
        for_range(x.n_of[0], constraint)
        for_range(x.nv, of_momentum)
        once(x, velocities, x.mu, x.V_mu)
        for_range(x.n_bodies, lambda b: of_body(x, b))

    for_range(2, solution)


def _driven(x: Any, i: Any) -> None:
    by_motor(x, i)
    cond(x.r_kind[i] == MOTOR, lambda: put(x.W_of, (3, x.r_row[i]), 0.0), nothing)


def _weigh_mixed(x: Any) -> None:
    """What W changes with the velocities at the share of each group, to W_of."""
    for_range(x.nv, lambda j: put(x.y, j, x.y_now[j]))
    once(x, velocities, x.y, x.V_y)
    for_range(4, lambda m: for_range(x.nv, lambda c: put(x.W_of, (m, c), x.W_by[m, c])))

    def weigh(i: Any) -> None:
        write_row(x.c_weight, i, [*vector(x.c_g_now, i), 0.0])

    for_range(x.n_of[0], lambda i: cond(bounces(x, i), lambda: weigh(i), nothing))
    once(x, _see)


def _see(x: Any) -> None:
    """Add what velocities and aims of bouncing contacts are worth to W_of, by c_weight."""
    count = loaded(x)

    def contact(i: Any, r: Any) -> None:
        found, w = seen(x, i, *motions(x, i)), [x.c_weight[i, n] for n in range(4)]
        aim = x.c_aims[i, 3] * found.before[2] + x.c_aims[i, 0] * found.closer
        aim = aim + x.c_aims[i, 5] * found.heavier
        add(x.W_of, (0, r), _dot(w, found.now) + w[3] * aim)
        add(x.W_of, (1, r), w[3] * x.c_aims[i, 3] * found.u[2])
        add(x.W_of, (2, r), _dot(w, found.u))

    def turned(i: Any, r: Any) -> None:
        for m in range(2):
            share = x.c_weight[i, 3] * x.bounce_share[0]
            add(x.W_of, (m, r), where(x.contact_bounces[x.c_of[i]] > 1, share * x.c_turned[i, m, r], 0.0))

    def every(do: Any, r: Any) -> None:
        for_range(x.n_of[0], lambda i: cond(bounces(x, i), lambda: do(i, r), nothing))

    for_range(x.nv, lambda r: along(x, r, count, [], rates_of(x), lambda: every(contact, r)))
    for_range(x.nv, lambda r: every(turned, r))


def _dot(a: list[Any], b: list[Any]) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _enter(x: Any, dy: Any) -> None:
    """W_of, by the middle of the step and y, to W_by_start."""
    once(x, pulled, 0, x.W_of[0], x.W_of[1], x.W_q, x.W_v)

    def direction(c: Any) -> None:
        def more(j: Any, *sums: Any) -> Any:
            return tuple(sums[m] + x.W_of[2, j] * dy[j, m, c] for m in range(3))

        found = for_range(x.nv, more, x.W_q[c], x.W_v[c], x.W_of[3, c])
        for m, number in enumerate(found):
            add(x.W_by_start, (m, c), number)

    for_range(x.nv, direction)
