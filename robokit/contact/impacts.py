"""When contacts bounce; impacts that touching ones pass on: one after another, as if there were tiny gaps.

A step without bounces comes first: how it moves a contact on is how it falls on to the surface, and when it
arrives (constraints/contacts.py).

What a ball hits may touch a third body. At the velocities before the step their contact does not approach,
and so does not bounce; a spring would take up the impact over several steps, and not give it back. So a step
with a bounce first finds which impacts follow from which. In turns, without other forces than those of loops
and of prescribed motions, and without friction, the contacts that approach bounce by Newton's law of
restitution,

    H (y' - y) = J^T g      u' = -e u where g > 0      of contacts with u = J y < 0

in each group (groups.py) those at once of which none is less than half as fast as another, until none
approaches. H has besides what dampers and motors oppose a change of speed by (landings.py). At e = 1 energy
and momentum stay. Of touching balls in a row (Newton's cradle) as many fly off as come, and a box that lands
on four corners stays upright. Gaps close from turn to turn, and what is hit has its time. No turn makes
energy: with friction some would (Kane's paradox), and a light link between two heavy ones would be passed
more of it in each. The contacts that were hit bounce in the step, which is solved as ever, with all forces at
once: they aim at the velocities that they have after the last turn, and on the way at where these bring them.

Source: B. Smith, D. Kaufman, E. Vouga, R. Tamstorf, E. Grinspun, Reflections on simultaneous impact, ACM
Transactions on Graphics 31 (2012).
Differs: the fastest come first; e < 1 as above.
Cost: a solution where something may bounce; two a turn, of which there is one where impacts make no others.
The second removes what the compliance of bounces has left of the first: one body may take part in many turns.
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
    """The laws of contacts that bounce: when they arrive is known from a step without bounces.

    ``fallen()``: called after that, the others by :func:`pass_on`.
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
    """Aims of contacts that bounce, those among them that touched and are hit by others' impacts.

    ``begun()``, ``found(again)``: called where a turn has given contacts their aims, and after each
    solution.
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
    """In single precision bounces aim beyond by what their compliance leaves more than in double precision.

    That is known from the step's solutions; those that were hit one after another aim beyond by all of it.
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
    """The contacts that bounce in turn k get their laws; how many there are in all groups."""

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
    """Speed at which a contact comes to bounce in a turn, else 0. Leaves it, its aim and when in c_du."""

    def look() -> tuple[Any, ...]:
        c = x.c_of[i]
        u, gap, since = x.c_u[i, 2], x.c_passed[i, 2], x.c_passed[i, 3]
        at, s = once(x, bounce, c, u, gap, since)
        one = once(x, fast, c, u, x.c_last[i, 2] * x.c_w[i]) & (at < math.inf) & (x.c_passed[i, 1] >= LEFT)
        return where(one, -u, 0.0), s + x.contact_fall[c] * (0.5 * x.dt[0] + at), at

    write_row(x.c_du, i, cond(x.c_kind[i] == FRICTION, look, lambda: (0.0, 0.0, 0.0)))
    return x.c_du[i, 0]


def hits_now(x: Any, i: Any) -> Any:
    """Whether a constraint is that of a contact that bounces in a turn."""
    return x.c_du[i, 0] > x.by_group[x.c_group[i], LEAST]


def hit(x: Any, i: Any) -> Any:
    """1.0 where a constraint is that of a contact that bounces in a turn, whose law it is given; else 0."""
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
    """How far above the surface a contact is that bounces not in this turn, where another one does."""

    def contact() -> None:
        u, gap, since = x.c_u[i, 2], x.c_passed[i, 2], x.c_passed[i, 3]
        now = x.by_group[x.c_group[i], WHEN]
        t = where(now < math.inf, maximum(now - since, 0.0), 0.0)
        falls = x.contact_fall[x.c_of[i]] * (0.5 * (x.dt[0] + t) + since)
        x.c_passed[i, 2] = maximum(gap + t * (u - falls), 0.0)
        x.c_passed[i, 3] = since + t

    cond(x.c_kind[i] == FRICTION, contact, nothing)


def _comes_next(x: Any, i: Any) -> Any:
    """Whether a constraint is a contact that a bounce drives on, but that does not arrive in this step."""

    def contact() -> Any:
        c = x.c_of[i]
        return (x.contact_bounces[c] < 1) & once(x, fast, c, x.c_u[i, 2], x.c_last[i, 2] * x.c_w[i])

    return cond(x.c_kind[i] == FRICTION, contact, lambda: False)


def _aim(x: Any) -> None:
    """The step as it was, in which contacts that were hit one after another aim at what they have found."""

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
