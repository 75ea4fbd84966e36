"""When contacts bounce, and how an impact is passed on between touching bodies, as if there were tiny gaps.

A step without bounces is solved first. It shows how fast a gap closes, and so when the contact arrives at the
surface (constraints/contacts.py).

A ball that is hit may touch a third body. At the velocities before the step, their contact does not approach
and so does not bounce; a spring would absorb the impact over several steps. So a step with a bounce first
finds which impacts follow from which. In turns, the contacts that approach bounce by Newton's law of
restitution,

    H (y' - y) = J^T g      u' = -e u where g > 0      for contacts with u = J y < 0

without friction and without other forces than those of loops and prescribed motions. In each group
(groups.py), all contacts that approach at half of the largest speed or more bounce at once, until none
approaches. H contains what dampers and motors oppose to a change of speed (landings.py).

With e = 1, energy and momentum are conserved: as many balls of a row that touch (Newton's cradle) fly off as
arrive, and a box that lands on four corners stays upright. Gaps close from turn to turn, and each contact has
a time of its own. No turn creates energy; with friction some would (Kane's paradox), and a light link between
two heavy ones would be given more in each. The step itself is then solved as usual, with all forces: contacts
that were hit aim at their velocities after the last turn, and at the positions to which these bring them.

Source: B. Smith, D. Kaufman, E. Vouga, R. Tamstorf, E. Grinspun, Reflections on simultaneous impact, ACM
Transactions on Graphics 31 (2012).
Differs: the fastest come first; e < 1 as above.
Cost: one solution where something may bounce; two a turn, of which there is one if no impact causes another.
The second of a turn removes what the compliance of bounces has left: a body may take part in many turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from robokit.contact import solver
from robokit.contact.bounces import bounces
from robokit.contact.constraints.contacts import RIGID, above, after, bounce, fast, restitution, rigid
from robokit.contact.fields import FRICTION, LINE, PRESCRIBED
from robokit.contact.groups import (
    FASTEST,
    FIRST,
    FOLLOWS,
    HITS,
    LEAST,
    MOST_OF_ALL,
    WHEN,
    add_to,
    each_group,
    group_of_body,
)
from robokit.contact.landings import damps, softness, solve_landings
from robokit.contact.solver import see, solve
from robokit.contact.vectors import motion, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range, in_precision, rounding, while_loop
from robokit.spatial.scalars import maximum, minimum, sqrt, where

AT_ONCE = 0.5
"""Share of the fastest approach beyond which contacts bounce at once. Two balls that come together may
approach each other by what rounding makes; with the third that they hit they are no row that bounces as one.
"""

LEFT = 1e-3
"""Share of the fastest approach of all turns below which none follows: where e < 1 impacts may go on without
end, each at a share of the speed of the ones before. What is left has 1e-6 of the energy. A contact whose
bounces leave as little of a speed, e^n, bounces no more: a light link between heavy ones that come together
would go on until it has stopped them.
"""

SEEN = 1e-10  # share of the bodies' speeds that this one is at least: by rounding bodies approach, too

MOST = 1000  # turns: n bodies of a tower that lands take n (n + 1) / 2; beyond, a step counts as not settled


def arrive(
    x: Any,
    fallen: Callable[[], None] = nothing,
    begun: Callable[[], None] = nothing,
    found: Callable[[Any], None] = lambda _: None,
) -> None:
    """Set the laws of contacts that bounce, from a step without bounces, which shows when they arrive.

    ``fallen()``: called after that step; ``begun``, ``found``: of :func:`pass_on`.
    """

    def falls(i: Any) -> None:
        def contact() -> None:
            c = x.c_of[i]
            x.contact_fall[c] = (x.contact_fall[c] - x.c_u[i, 2]) / x.dt[0]
            cond(x.contact_bounces[c] > 0, lambda: one(c, x.contact_fall[c] * x.dt[0] + x.c_u[i, 2]), nothing)

        def one(c: Any, u: Any) -> None:
            h = once(x, above, c)
            at, s = once(x, bounce, c, u, h)
            rises, back = once(x, after, c, at, s)
            reached = at < math.inf
            x.contact_bounces[c] = where(reached, 1, -2)
            x.contact_back[c, 2] = where(reached, back, x.contact_back[c, 2])
            x.c_aim[i, 2] = where(reached, rises - h, minimum(-x.contact_gap[c], 0.0)) / x.dt[0]

        cond(x.c_kind[i] == FRICTION, contact, nothing)

    def dof(j: Any) -> None:
        x.v0[j], x.guess[j] = x.v[j], x.y_bounced[j]

    def _arrive() -> None:
        _solve(x)
        for_range(x.nv, lambda j: put(x.y_bounced, j, x.y[j]))
        fallen()
        for_range(x.n_of[0], falls)
        cond(x.n_of[3] > 0, lambda: once(x, solver.hold, 1.0), nothing)
        cond(x.counts[0] > 1, lambda: pass_on(x, begun, found), nothing)
        for_range(x.nv, dof)

    for k in range(3):
        x.passed[k] = 0.0
    cond(x.n_of[2] > 0, _arrive, nothing)


def pass_on(x: Any, begun: Callable[[], None], found: Callable[[Any], None]) -> None:
    """Aims of bouncing contacts, including those that touch already and are hit by the impacts of others.

    ``begun()``: called when a turn has set its aims; ``found(again)``: called after each solution of a turn.
    """

    def keep(i: Any) -> None:
        write_row(x.c_bounced, i, [x.c_R[i, 0], x.c_R[i, 1], x.c_aim[i, 2]])
        k = where(x.c_kind[i] == FRICTION, x.c_of[i], 0)
        write_row(x.c_passed, i, (0.0, 1.0, once(x, above, k), 0.0))

    def keep_row(i: Any) -> None:
        write_row(x.r_first, i, [x.r_R[i], x.r_aim[i]])
        of_others = where(damps(x, i), softness(x, i) * x.r_R[i], math.inf)
        x.r_R[i] = where(x.r_kind[i] == PRESCRIBED, x.r_R[i], of_others)

    def turn(k: Any, _: Any) -> tuple[Any, Any]:
        hits = _choose(x, k)
        for_range(x.nv, lambda j: put(x.v0, j, x.y[j]))
        for_range(x.n_of[1], goes_on)
        begun()
        for_range(where(hits > 0.0, 2, 0), solved)
        return k + 1, hits

    def goes_on(i: Any) -> None:
        x.r_aim[i] = where(damps(x, i), x.r_gain[i] * x.v0[x.r_row[i]], x.r_aim[i])

    def solved(again: Any) -> None:
        for_range(x.nv, lambda j: put(x.guess, j, x.y[j]))
        _solve(x)
        found(again)
        for_range(x.n_of[0], lambda i: beyond(i, again))

    def beyond(i: Any, again: Any) -> None:
        g = where((x.c_kind[i] == FRICTION) & (x.c_R[i, 1] < math.inf), x.c_g[i, 2], 0.0)
        x.c_aim[i, 2] = x.c_aim[i, 2] + rigid() * x.c_w[i] * g
        x.c_passed[i, 0] = x.c_passed[i, 0] + where(again > 0, g, 0.0)

    def moves(b: Any) -> None:
        g = group_of_body(x, b)
        v = motion(x.Vd, b).lin  # about the origin of the step, as it is added up
        x.by_group[g, MOST_OF_ALL] = maximum(x.by_group[g, MOST_OF_ALL], rounding(SEEN) * sqrt(v.dot(v)))

    def begins(j: Any) -> None:
        x.y[j], x.C[j], x.C_guess[j] = x.v[j], 0.0, 0.0  # nothing has written velocity products in this step

    for_range(x.n_of[0], keep)
    for_range(x.n_of[1], keep_row)
    x.span[0] = 0.0
    for_range(x.nv, begins)
    once(x, see, x.v, x.c_u)
    each_group(x, lambda p: write_row(x.by_group, p, [0.0] * 6))
    for_range(x.n_bodies, moves)
    for_range(x.n_of[0], lambda i: add_to(x, x.c_group[i], FIRST, where(bounces(x, i), 1.0, 0.0)))
    _, hits = while_loop(lambda k, hits: (hits > 0.0) & (k < MOST), turn, 0, 1.0, most=MOST)
    x.passed[2] = maximum(x.passed[2], where(hits > 0.0, 1.0, 0.0))
    _aim(x)


def hold(x: Any) -> None:
    """Raise the aims of bounces in single precision by what their larger compliance would leave.

    The amount follows from the step's solutions; contacts that were hit in turns get all of it.
    """
    more = in_precision(0.0, RIGID[1] - RIGID[0])

    def beyond(i: Any) -> None:
        one = bounces(x, i) & (x.contact_bounces[where(bounces(x, i), x.c_of[i], 0)] == 1)
        left, c = where(one, more * x.c_w[i], 0.0), where(one, x.c_of[i], 0)
        way = [x.c_g[i, k] + x.c_ahead[i, k] for k in range(3)]
        write_row(x.c_aim, i, [x.c_aim[i, k] + left * way[k] for k in range(3)])
        write_row(x.contact_back, c, [x.contact_back[c, k] + left * x.c_g[i, k] for k in range(3)])

    def again() -> None:
        _solve(x, solve_landings)
        for_range(x.n_of[0], beyond)

    cond((x.n_of[2] > 0) & (more > 0.0), again, nothing)


def _solve(x: Any, how: Callable[[Any], None] = solve) -> None:
    once(x, how)
    x.passed[0] = x.passed[0] + x.solved[0]
    for k in (1, 2):
        x.passed[k] = maximum(x.passed[k], x.solved[k])


def _choose(x: Any, k: Any) -> Any:
    """Set the laws of the contacts that bounce in turn k; returns their number in all groups."""

    def approach(i: Any) -> None:
        g, u = x.c_group[i], speed(x, i)
        x.by_group[g, FASTEST] = maximum(x.by_group[g, FASTEST], u)

    def choose(p: Any) -> None:
        fastest = x.by_group[p, FASTEST]
        most = maximum(x.by_group[p, MOST_OF_ALL], fastest)
        least = where(fastest > LEFT * most, AT_ONCE * fastest, math.inf)
        for column, number in (
            (FASTEST, 0.0),
            (MOST_OF_ALL, most),
            (LEAST, least),
            (HITS, 0.0),
            (WHEN, math.inf),
        ):
            x.by_group[p, column] = number

    def when(i: Any) -> None:
        g = x.c_group[i]
        soonest = minimum(x.by_group[g, WHEN], x.c_du[i, 2])
        x.by_group[g, WHEN] = where(hits_now(x, i), soonest, x.by_group[g, WHEN])

    def note(p: Any, hits: Any) -> Any:
        own = x.by_group[p, HITS]
        after = (own > 0.0) & ((k > 0) | (own < x.by_group[p, FIRST]))
        x.by_group[p, FOLLOWS] = where(after, 1.0, x.by_group[p, FOLLOWS])
        return hits + own

    for_range(x.n_of[0], approach)
    each_group(x, choose)
    for_range(x.n_of[0], when)
    for_range(x.n_of[0], lambda i: add_to(x, x.c_group[i], HITS, hit(x, i)))
    return each_group(x, note, 0.0)


def speed(x: Any, i: Any) -> Any:
    """Speed at which a contact approaches in a turn [m/s], 0 if it does not bounce.

    Leaves this speed, the contact's aim and its time of arrival in c_du.
    """

    def look() -> tuple[Any, ...]:
        c = x.c_of[i]
        u, gap, since = x.c_u[i, 2], x.c_passed[i, 2], x.c_passed[i, 3]
        at, s = once(x, bounce, c, u, gap, since)
        one = once(x, fast, c, u, x.c_last[i, 2] * x.c_w[i]) & (at < math.inf) & (x.c_passed[i, 1] >= LEFT)
        return where(one, -u, 0.0), s + x.contact_fall[c] * (0.5 * x.dt[0] + at), at

    write_row(x.c_du, i, cond(x.c_kind[i] == FRICTION, look, lambda: (0.0, 0.0, 0.0)))
    return x.c_du[i, 0]


def hits_now(x: Any, i: Any) -> Any:
    """Whether a constraint is a contact that bounces in this turn."""
    return x.c_du[i, 0] > x.by_group[x.c_group[i], LEAST]


def hit(x: Any, i: Any) -> Any:
    """Set the law of a contact that bounces in this turn; returns 1.0, or 0.0 if the constraint is none."""
    one = hits_now(x, i)
    for m in range(2):
        x.c_R[i, m] = where(x.c_kind[i] == LINE, x.c_R[i, m], math.inf)

    def of_contact() -> None:
        c = x.c_of[i]
        x.contact_bounces[c] = 1
        x.c_passed[i, 2], x.c_passed[i, 3] = 0.0, x.c_du[i, 2]
        x.c_R[i, 1], x.c_aim[i, 2] = rigid() * x.c_w[i], x.c_du[i, 1]
        x.c_passed[i, 1] = x.c_passed[i, 1] * restitution(x, c)

    cond(one, of_contact, lambda: _goes_on(x, i))
    return where(one, 1.0, 0.0)


def _goes_on(x: Any, i: Any) -> None:
    """Update the gap of a contact that does not bounce in this turn, to the time at which
    another one does.
    """

    def contact() -> None:
        u, gap, since = x.c_u[i, 2], x.c_passed[i, 2], x.c_passed[i, 3]
        now = x.by_group[x.c_group[i], WHEN]
        t = where(now < math.inf, maximum(now - since, 0.0), 0.0)
        falls = x.contact_fall[x.c_of[i]] * (0.5 * (x.dt[0] + t) + since)
        x.c_passed[i, 2] = maximum(gap + t * (u - falls), 0.0)
        x.c_passed[i, 3] = since + t

    cond(x.c_kind[i] == FRICTION, contact, nothing)


def _comes_next(x: Any, i: Any) -> Any:
    """Whether another bounce makes a contact approach that does not arrive within this step."""

    def contact() -> Any:
        c = x.c_of[i]
        return (x.contact_bounces[c] < 1) & once(x, fast, c, x.c_u[i, 2], x.c_last[i, 2] * x.c_w[i])

    return cond(x.c_kind[i] == FRICTION, contact, lambda: False)


def _aim(x: Any) -> None:
    """Restore the laws of the step; contacts that were hit in turns aim at the result of the turns."""

    def constraint(i: Any) -> None:
        one, comes = (x.by_group[x.c_group[i], FOLLOWS] > 0.0) & bounces(x, i), _comes_next(x, i)
        c, dt = where(one, x.c_of[i], 0), x.dt[0]
        left, since = rigid() * x.c_w[i] * x.c_passed[i, 0], x.c_passed[i, 3]
        moves, back = once(x, after, c, since, x.c_u[i, 2] - x.contact_fall[c] * (0.5 * dt + since))
        rises = maximum(x.c_passed[i, 2] + moves, 0.0)
        back = where(rises > 0.0, back, maximum(back, 0.0))
        way = (rises + maximum(dt - since, 0.5 * dt) * left - above(x, c)) / dt
        x.c_aim[i, 2] = where(one, way, x.c_bounced[i, 2])
        x.contact_back[c, 2] = where(one, back + left, x.contact_back[c, 2])
        for k in range(2):
            x.c_R[i, k] = where(one | comes, rigid() * x.c_w[i], x.c_bounced[i, k])
        cond(one | comes, lambda: put(x.contact_bounces, x.c_of[i], where(one, 2, -2)), nothing)

    def row(i: Any) -> None:
        x.r_R[i], x.r_aim[i] = x.r_first[i, 0], x.r_first[i, 1]

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    x.span[0], x.held[0] = x.dt[0], 1.0
