"""Derivatives of a step whose restitution is reduced so that bounces create no energy (bounces.py).

The end of such a step is interpolated between two pairs of solutions (landings.py), one with aims of 0 and
one with full restitution, at the share s at which the energy W that bounces create is 0. With the derivatives
of each solution (landing_derivatives.py), for y and in the same way for ``ahead``,

    dy = (1 - s) dy_0 + s dy_1 + (y_1 - y_0) ds        W_s ds = -(change of W at this share)

s and W are those of each group of bodies that constraints connect (groups.py); in a group that is not
limited, s = 1.

    W = sum over bouncing contacts of g . u, less (y - v) . J^T g / 2, and dt/2 G . (ahead - y)

J^T g changes as the momentum does, g of a contact by its law, dg = G (daim - du), and the gravity forces G by
inverse dynamics at rest. In reverse mode, for gradients with respect to parameters, W has the weight -(y_1 -
y_0) . (gradient with respect to y) / W_s.

Source: implicit function theorem, twice.
Cost: twice that of landing_derivatives.py, and O(nv n) of bodies and contacts.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.accounts import TOUCHED
from robokit.contact.bounces import bounces, from_surface
from robokit.contact.closing_derivatives import along, loaded, motions, pulled
from robokit.contact.constraint_derivatives import of_surface, rates_of, seen
from robokit.contact.fields import MOTOR
from robokit.contact.groups import RATE, SHARE, WORK, add_to, each_group
from robokit.contact.kinematics import entries_of_H, velocities
from robokit.contact.solver import impulses, see
from robokit.contact.step_derivatives import inverse_dynamics_derivatives, of_body
from robokit.contact.vectors import add, force, motion, nothing, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where


def own(x: Any, k: Any, group: Any) -> Any:
    """The share in a group of a pair of solutions: with aims of 0 (k = 0), or with full restitution (1)."""
    share = where(x.limited[0] > 0, x.by_group[group, SHARE], 1.0)
    return where(k > 0, share, 1.0 - share)


def beyond(x: Any, k: Any, group: Any, change: Any) -> Any:
    """Part of a ``change`` from aims of 0 to full restitution that a pair of solutions has
    beyond its share.
    """
    away = own(x, 1 - k, group) * where(k > 0, 1.0, -1.0)
    return where(x.limited[0] > 0, away * change, 0.0)


def is_limited(x: Any, i: Any) -> Any:
    """Whether a constraint is a bouncing contact whose restitution is reduced."""
    return bounces(x, i) & (own(x, 1, x.c_group[i]) < 1.0)


def worth(x: Any, i: Any) -> Vector3:
    """Derivative of W by the impulse of a contact: its velocity relative to the surface, if it bounces."""
    counts = bounces(x, i) & (x.limited[0] > 0)
    return Vector3(*(where(counts, u, 0.0) for u in from_surface(x, i, vector(x.c_u_now, i))))


def momentum_worth(x: Any, k: Any, j: Any) -> Any:
    """Derivative of -W by J^T g of a row, by its share of a pair of solutions."""
    return own(x, k, x.row_group[j]) * _half_work(x, j) * (x.y_now[j] - x.v0[j])


def _half_work(x: Any, j: Any) -> Any:
    """1/2 for a row that takes part in a bounce, else 0."""
    return where(x.account[x.row_whole[j], TOUCHED] > 0.0, 0.5, 0.0)


def begin(x: Any) -> None:
    """Prepare the derivatives: the step as it was left, and 1 / W_s of the group of each row, 0 where
    restitution is not reduced.

    Also the derivatives of W by the velocities at the share, and by the motion of bodies there.
    """

    def constraint(i: Any) -> None:
        write_row(x.c_g_now, i, vector(x.c_g, i))
        write_row(x.c_way_now, i, [x.c_ahead[i, k] for k in range(5)])

    def coordinate(j: Any) -> None:
        x.y_now[j], x.ahead_now[j], x.share_by_W[j] = x.y[j], x.ahead[j], 0.0

    for_range(x.nv, coordinate)
    for_range(x.n_of[0], constraint)
    for M in (x.W_of, x.W_by_start, x.dy_now.reshape(x.nv, 3 * x.nv), x.dy_ahead.reshape(x.nv, 3 * x.nv)):
        for_range(M.shape[0], lambda r, M=M: for_range(M.shape[1], lambda c: put(M, (r, c), 0.0)))
    cond(x.limited[0] > 0, lambda: _begin(x), nothing)


def _begin(x: Any) -> None:
    _gravity(x)
    once(x, see, x.y_bounced, x.c_u_bounced)
    once(x, see, x.y_now, x.c_u_now)
    once(x, impulses, x.n_of[0], x.n_of[1])
    for_range(x.nv, lambda j: put(x.Jg_now, j, x.Jg[j]))
    _by_share(x)

    def mixed(j: Any) -> None:
        half = _half_work(x, j) * x.Jg_now[j]
        x.W_after[j], x.W_ahead[j] = 0.0, 0.5 * x.dt[0] * x.weight[j]
        x.W_y[j] = -half - x.W_ahead[j]
        add(x.W_of, (1, j), half)

    def weigh(i: Any) -> None:
        write_row(x.c_weight, i, vector(x.c_g_now, i) * where(bounces(x, i), 1.0, 0.0))

    for_range(x.nv, mixed)
    for_range(x.n_of[0], weigh)
    once(x, velocities, x.y_now, x.V_y)
    _see(x)
    for_range(x.nv, lambda j: add(x.W_y, j, x.W_after[j]))


def _gravity(x: Any) -> None:
    """The gravity forces G, and the change of W as bodies move that y1 lifts."""

    def at_rest(j: Any) -> None:
        x.mean[j], x.acceleration[j], x.weight[j] = 0.0, 0.0, 0.0

    def dof(k: Any) -> None:
        power = motion(x.S, k).dot(force(x.f, x.dof_body[k]))
        cond(x.dof_row[k] < 0, nothing, lambda: add(x.weight, x.dof_row[k], power))

    def column(c: Any) -> None:
        def more(j: Any, total: Any) -> Any:
            return total + (x.ahead_now[j] - x.y_now[j]) * x.r_q[j, c]

        add(x.W_of, (0, c), 0.5 * x.dt[0] * for_range(x.nv, more, 0.0))

    for_range(x.nv, at_rest)
    inverse_dynamics_derivatives(x, x.mean, x.acceleration, x.r_q, x.r_v)
    for_range(x.n_dofs, dof)
    for_range(x.nv, column)


def _by_share(x: Any) -> None:
    """1 / W_s of the group of each row whose restitution is reduced."""

    def of_contact(i: Any) -> None:
        more, speed = Vector3(*(x.c_bounced[i, k] for k in range(3))), vector(x.c_u_bounced, i)
        rate = more.dot(worth(x, i)) + vector(x.c_g_now, i).dot(speed) * where(bounces(x, i), 1.0, 0.0)
        add_to(x, x.c_group[i], WORK, rate)

    def of_row(j: Any) -> None:
        half, lifts = _half_work(x, j), x.ahead_bounced[j] - x.y_bounced[j]
        work = x.y_bounced[j] * x.Jg_now[j] + (x.y_now[j] - x.v0[j]) * x.Jg[j]
        add_to(x, x.row_group[j], WORK, 0.5 * x.dt[0] * x.weight[j] * lifts - half * work)

    def inverse(j: Any) -> None:
        group = x.row_group[j]
        limited = own(x, 1, group) < 1.0
        x.share_by_W[j] = where(limited, 1.0 / where(limited, x.by_group[group, WORK], 1.0), 0.0)

    for_range(x.n_of[0], lambda i: write_row(x.c_g, i, [x.c_bounced[i, k] for k in range(3)]))
    for_range(x.n_of[1], lambda i: put(x.r_g, i, x.r_bounced[i]))
    once(x, impulses, x.n_of[0], x.n_of[1])
    each_group(x, lambda p: put(x.by_group, (p, WORK), 0.0))
    for_range(x.n_of[0], of_contact)
    for_range(x.nv, of_row)
    for_range(x.nv, inverse)


def see_momentum(x: Any, k: Any) -> None:
    """Derivatives of W by the momentum of a second solution, from r_q, r_v and r_y without constraints.

    They go to W_of, W_after and W_way.
    """

    def column(c: Any) -> None:
        def more(j: Any, by_q: Any, by_v: Any, by_way: Any) -> Any:
            w = -momentum_worth(x, k, j)
            return by_q + w * x.r_q[j, c], by_v + w * x.r_v[j, c], by_way + w * x.r_y[j, c]

        by_q, by_v, x.W_way[c] = for_range(x.nv, more, 0.0, 0.0, 0.0)
        for m, number in enumerate((by_q, by_v)):
            add(x.W_of, (m, c), number)
        x.W_after[c], x.W_q[c] = 0.0, x.dt[0] * momentum_worth(x, k, c)

    def of_H(r: Any, c: Any, number: Any) -> None:
        share = -momentum_worth(x, k, r) * number
        add(x.W_after, c, share)
        add(x.W_way, c, -share)

    def motor(i: Any) -> None:
        """Joint forces that go through it are impulses of its row."""
        j = x.r_row[i]
        driven = (x.through_motors[0] > 0) & (x.r_kind[i] == MOTOR)
        x.W_q[j] = where(driven, 0.0, x.W_q[j])

    for_range(x.nv, column)
    entries_of_H(x, of_H)
    for_range(x.n_of[1], motor)
    for_range(x.nv, lambda c: add(x.W_of, (2, c), x.W_q[c]))


def see_contacts(x: Any, k: Any) -> None:
    """Derivatives of W by the impulses of bouncing contacts, from the slopes of a second solution."""

    def weigh(i: Any) -> None:
        w, G = worth(x, i), [x.c_slopes[i, n] for n in range(9)]
        share = -own(x, k, x.c_group[i])
        write_row(x.c_weight, i, [share * (w.x * G[n] + w.y * G[3 + n] + w.z * G[6 + n]) for n in range(3)])

    def aims(i: Any) -> None:
        def column(c: Any) -> None:
            for m in range(3):
                add(x.W_of, (m, c), -x.c_weight[i, 2] * x.aim_rates[i, 1, m, c])

        cond(bounces(x, i), lambda: for_range(x.nv, column), nothing)

    for_range(x.n_of[0], weigh)
    _see(x)
    cond(k > 0, lambda: for_range(x.n_of[0], aims), nothing)


def _see(x: Any) -> None:
    """Add the derivatives by velocities of bouncing contacts, weighted by ``c_weight``: to W_of, and by y to
    W_after.
    """
    once(x, velocities, x.v0, x.V_before)
    count = loaded(x)

    def contact(i: Any, r: Any) -> None:
        _, goes, _, speeds = moved = motions(x, i)
        found, w = seen(x, i, *moved), vector(x.c_weight, i)
        *by_place, x_by_v, y_by_v = of_surface(x, i, found.M, goes)
        *_, x_by_speed, y_by_speed = of_surface(x, i, found.M, speeds)
        carried = w.x * (by_place[0] + x_by_speed) + w.y * (by_place[1] + y_by_speed)
        add(x.W_of, (0, r), w.dot(Vector3(*found.now)) - carried)
        add(x.W_of, (1, r), -w.x * x_by_v - w.y * y_by_v)
        add(x.W_after, r, w.dot(Vector3(*found.u)))

    def every(r: Any) -> None:
        for_range(x.n_of[0], lambda i: cond(bounces(x, i), lambda: contact(i, r), nothing))

    for_range(x.nv, lambda r: along(x, r, count, [], rates_of(x), lambda: every(r)))


def enter(x: Any, by_y: Any, by_way: Any, dy: Any, dy_way: Any) -> None:
    """Add the change of W with two velocities to W_by_start, from their changes, (nv, 3, nv)."""

    def column(c: Any) -> None:
        def more(j: Any, *sums: Any) -> Any:
            return tuple(s + by_y[j] * dy[j, m, c] + by_way[j] * dy_way[j, m, c] for m, s in enumerate(sums))

        for m, number in enumerate(for_range(x.nv, more, 0.0, 0.0, 0.0)):
            add(x.W_by_start, (m, c), number)

    for_range(x.nv, column)


def end(x: Any) -> None:
    """Changes of y and of y1, to ``dy`` and ``dy_way``, from those at a constant share."""
    enter(x, x.W_y, x.W_ahead, x.dy_now, x.dy_ahead)
    once(x, pulled, 0, x.W_of[0], x.W_of[1], x.W_q, x.W_v)

    def direction(m: int, c: Any) -> None:
        own_change = (x.W_q[c], x.W_v[c], x.W_of[2, c])[m]
        W = x.W_by_start[m, c] + own_change

        def row(j: Any) -> None:
            ds = where(x.row_group[j] == x.row_group[c], -W * x.share_by_W[j], 0.0)
            x.dy_now[j, m, c] = x.dy_now[j, m, c] + x.y_bounced[j] * ds
            x.dy_ahead[j, m, c] = x.dy_ahead[j, m, c] + x.ahead_bounced[j] * ds

        for_range(x.nv, row)

    for m in range(3):
        for_range(x.nv, lambda c, m=m: direction(m, c))


# ---- parameters -------------------------------------------------------------------------------------------


def weigh_share(x: Any) -> None:
    """Gradient with respect to W, to RATE of each group; and those with respect to y and y1 at a constant
    share.

    Also the gradients with respect to inertias and gravity through the height to which y1 lifts bodies.
    """
    each_group(x, lambda p: put(x.by_group, (p, RATE), 0.0))

    def of_share(j: Any) -> None:
        rate = x.of_y[j] * x.y_bounced[j] + x.of_ahead[j] * x.ahead_bounced[j]
        add_to(x, x.row_group[j], RATE, -rate * x.share_by_W[j])

    def of_W(j: Any) -> None:
        rate = x.by_group[x.row_group[j], RATE]
        x.of_y[j], x.of_ahead[j] = x.of_y[j] + rate * x.W_y[j], x.of_ahead[j] + rate * x.W_ahead[j]
        x.mu[j] = -0.5 * rate * (x.ahead_now[j] - x.y_now[j])
        x.mean[j], x.acceleration[j] = 0.0, 0.0

    for_range(x.nv, of_share)
    for_range(x.nv, of_W)
    inverse_dynamics_derivatives(x, x.mean, x.acceleration, x.r_q, x.r_v)
    once(x, velocities, x.mu, x.V_mu)
    for_range(x.n_bodies, lambda b: of_body(x, b))


def of_rate(x: Any, group: Any, number: Any) -> Any:
    """A number times the gradient with respect to W of a group; 0 where restitution is not reduced."""
    return where(x.limited[0] > 0, x.by_group[group, RATE] * number, 0.0)
