"""Landings and bounces: one solution for the motion to the next kick, one for the velocity after the impact.

In a step's first solution, a contact that lands aims at -phi/dt. This gives the velocity y1 with which the
robot moves from this kick to the next, when the contact is on the surface. The impulse of that solution is
only a part of the impact. If the rest followed in the next step, friction would oppose the slip at the end of
each part, and the result would depend on when in the step the contact lands. So a second solution, which
starts from the first, aims at 0 for contacts that land. It gives the velocity y2 after the step, and all
impulses.

    y1: aim -phi/dt          y2: aim 0          q' = q + dt/2 (2 y1 - y2)

A bouncing contact aims at the height that it reaches by the end of the step, and at its velocity there
(constraints/contacts.py).

The second solution contains impulses only: forces that an impact does not change, and velocity products, are
those of the first. Dampers and motors oppose the change of joint speed u in the impact, as far as they would
remove it within the step,

    g(y2) = g(y1) - (u2 - u1) / (R (1 + R/w)),   R = 1/(dt b)

for a dof of mobility w with everything else free. This is accurate to second order in dt, and uses all of b
for a joint that stops within a step: a link with hardly any inertia, such as a head that is a point mass on
three axes, is held by its dampers alone. If it has no inertia in the neutral pose, w is infinite.

Closed contacts are rigid in the second solution. The compliance of a resting contact is that of a damper,
which would yield more to an impact the shorter the step is. A contact that lands slowly, below the speed at
which the impact term of its law exceeds that damper, has one solution only, and so have groups (groups.py) in
which nothing lands.

Source: README.md here. y1 as in D. Stewart and J. Trinkle (1996), y2 as in J. J. Moreau (1988).
Cost: one more solution, in steps in which something lands.
"""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.constraints.contacts import rigid
from robokit.contact.fields import DAMPING, FRICTION, LINE, MOTOR, PRESCRIBED, SPRING, STOP
from robokit.contact.groups import LANDS, each_group
from robokit.contact.solver import attempt, begin_from, end_solution, impulses, solve
from robokit.contact.vectors import nothing, put, write, write_row
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import maximum, where


def solve_landings(x: Any) -> None:
    """Both solutions: y, the impulses, and ``ahead``, the velocity of the motion to the end of the step."""
    once(x, solve)
    land(x)


def land(x: Any) -> None:
    """Compute the second solution if a contact lands in the first one."""
    cond(once(x, let_land) > 0, lambda: once(x, _impact), nothing)


def let_land(x: Any) -> Any:
    """Count the contacts that land in the first solution; ``ahead`` is y until there is a second solution."""
    count = note_landings(x)
    x.landed[0], x.landed[1] = count, 0
    for_range(x.n_of[0], lambda c: write_row(x.c_ahead, c, [0.0] * 5))
    for_range(x.nv, lambda j: put(x.ahead, j, x.y[j]))
    return count


def note_landings(x: Any) -> Any:
    """Mark the groups with a contact that lands in the first solution; returns the number of
    such contacts.
    """

    def note(c: Any, count: Any) -> Any:
        one = lands(x, c)
        x.by_group[x.c_group[c], LANDS] = where(one, 1.0, x.by_group[x.c_group[c], LANDS])
        return count + where(one, 1, 0)

    each_group(x, lambda p: put(x.by_group, (p, LANDS), 0.0))
    return for_range(x.n_of[0], note, 0)


def lands(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that reaches the surface in this step from a fall, stops
    or bounces.
    """

    def contact() -> Any:
        k = x.c_of[c]
        fast = x.pair_impact[0] * x.contact_hit[k] * x.contact_hit[k] > x.pair_damping[0]
        rests = fast & (x.contact_bounces[k] == 0) & (x.c_aim[c, 2] < x.contact_rolls[k, 2])
        return (rests | (x.contact_bounces[k] > 0)) & (x.c_g[c, 2] > 0.0)

    return cond(x.c_kind[c] == FRICTION, contact, lambda: False)


def _impact(x: Any) -> None:
    begin_impact(x)
    end_impact(x, *once(x, attempt, 0))


def begin_impact(x: Any) -> None:
    """Prepare the second solution, up to its first iteration."""
    write(x.first, 0, [*(x.solved[k] for k in range(3)), x.held[0]])
    for_range(x.n_of[0], lambda c: _keep(x, c))
    for_range(x.n_of[1], lambda i: _keep_row(x, i))
    once(x, impulses, x.n_of[0], x.n_of[1])
    for_range(x.nv, lambda j: put(x.guess, j, x.y[j]))
    for_range(x.nv, lambda j: put(x.Hv0, j, x.b[j] + x.Jg[j]))
    x.span[0] = 0.0
    begin_from(x)


def end_impact(x: Any, it: Any, e: Any, settled: Any) -> None:
    """Finish the second solution with the result of its first attempt; if that failed, try with
    compliance.
    """
    found = cond(settled > 0, lambda: (it, e, settled), lambda: _soften(x, it))
    once(x, end_solution, *found)
    x.span[0] = x.dt[0]
    x.solved[0] = x.solved[0] + x.first[0]
    for k in (1, 2):
        x.solved[k] = maximum(x.solved[k], x.first[k])
    harder = x.held[0] / x.first[3]
    for_range(x.n_of[0], lambda c: _go_on(x, c, harder))
    for_range(x.n_of[1], lambda i: _go_on_row(x, i, harder))
    for_range(x.nv, lambda j: put(x.ahead, j, 2.0 * x.ahead[j] - x.y[j]))


def _keep(x: Any, c: Any) -> None:
    """Store a constraint of the first solution, and change it for the second one."""
    g = [x.c_g[c, k] for k in range(3)]
    write_row(x.c_ahead, c, [*g, *(x.c_u[c, k] for k in range(2))])
    law = [*(x.c_R[c, k] for k in range(2)), *(x.c_aim[c, k] for k in range(3))]
    write_row(x.c_first, c, [*law, *(x.c_last[c, k] for k in range(3))])
    strike(x, c)
    write_row(x.c_last, c, g)


def _keep_row(x: Any, i: Any) -> None:
    write_row(x.r_first, i, [x.r_R[i], x.r_aim[i], x.r_g[i]])
    strike_row(x, i)


def strike(x: Any, c: Any) -> None:
    """Change a constraint for the impact: closed contacts become rigid, and springs have no part."""
    kept, friction = smooth(x, c), x.c_kind[c] == FRICTION
    touches = ~kept & touches_now(x, c)
    k_c = where(touches, x.c_of[c], 0)
    for k in range(3):
        x.c_aim[c, k] = where(touches, x.contact_back[k_c, k], x.c_aim[c, k])
    no_part = kept | (friction & ~touches)
    for k in range(2):
        R = where(no_part, math.inf, x.c_R[c, k])
        x.c_R[c, k] = where(touches, rigid() * x.c_w[c], R)
    write_row(x.c_g, c, [where(kept, x.c_g[c, k], 0.0) for k in range(3)])


def smooth(x: Any, c: Any) -> Any:
    """Whether the impact leaves the force of a constraint unchanged: springs, and all where nothing lands."""
    return (x.c_kind[c] == SPRING) | (x.by_group[x.c_group[c], LANDS] == 0.0)


def touches_now(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that takes part in impacts.

    It does if it presses, if its gap is closed, or if another impact reaches it; but not if it bounces in the
    next step.
    """

    def contact() -> Any:
        k = x.c_of[c]
        closed = (x.c_g[c, 2] > 0.0) | (x.c_aim[c, 2] >= x.contact_rolls[k, 2])
        return (closed & (x.contact_bounces[k] > -2)) | (x.contact_bounces[k] > 1)

    return cond(x.c_kind[c] == FRICTION, contact, lambda: False)


def strike_row(x: Any, i: Any) -> None:
    """Change a row for the impact: limits and prescribed motions have impulses, dry friction
    stays as it is.
    """
    stop, kept = x.r_kind[i] == STOP, smooth_row(x, i)
    touches = stop & ((x.r_g[i] > 0.0) | (x.r_aim[i] >= 0.0))
    u, softer = x.r_gain[i] * x.y[x.r_row[i]], where(damps(x, i), softness(x, i), 1.0)
    x.r_aim[i] = where(stop, 0.0, where(damps(x, i), u + softer * (x.r_aim[i] - u), x.r_aim[i]))
    R = where(touches, rigid() * x.r_w[i], softer * x.r_R[i])
    x.r_R[i] = where(kept | (stop & ~touches), math.inf, R)
    x.r_g[i] = where(kept, x.r_g[i], 0.0)


def damps(x: Any, i: Any) -> Any:
    """Whether a row is a damper or a motor."""
    return (x.r_kind[i] == DAMPING) | (x.r_kind[i] == MOTOR)


def softness(x: Any, i: Any) -> Any:
    """Compliance of a damper or motor in an impact, relative to that in a step."""
    return 1.0 + x.r_R[i] / maximum(x.r_w[i], x.r_loose[i])


SLIGHT = 1e-3  # a motor that gives less than it wants by a larger share is at a limit; less is rounding


def limited(x: Any, i: Any) -> Any:
    """1.0 if the motor of a row is at a limit, otherwise 0.0; valid after both solutions."""
    y, ahead = x.y[x.r_row[i]], x.ahead[x.r_row[i]]
    first, change = 0.5 * x.r_gain[i] * (y + ahead), 0.5 * x.r_gain[i] * (y - ahead)
    wanted = (x.r_aim[i] - first - change / softness(x, i)) / x.r_R[i]
    return where(abs(wanted - x.r_g[i]) > SLIGHT * abs(wanted), 1.0, 0.0)


def smooth_row(x: Any, i: Any) -> Any:
    """Whether the impact leaves the force of a row unchanged, because nothing lands in its group."""
    return x.by_group[x.row_group[x.r_row[i]], LANDS] == 0.0


def _soften(x: Any, it: Any) -> Any:
    """Attempt the second solution again, with the compliance of the first one; returns its result."""

    def constraint(c: Any) -> None:
        for k in range(2):
            x.c_R[c, k] = where(touched(x, c), x.c_first[c, k], x.c_R[c, k])

    def row(i: Any) -> None:
        x.r_R[i] = where((x.r_kind[i] == STOP) & (x.r_R[i] < math.inf), x.r_first[i, 0], x.r_R[i])

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    x.landed[1] = 1
    begin_from(x)
    return once(x, attempt, it)


def touched(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that takes part in the impact."""
    return (x.c_kind[c] == FRICTION) & (x.c_R[c, 1] < math.inf)


def _go_on(x: Any, c: Any, harder: Any) -> None:
    """Restore the law of the first solution. ``c_ahead``: its impulse and slip minus those of the second.

    ``harder``: compliance of loops now, relative to that of the first solution.
    """
    kept, of_way = smooth(x, c), [x.c_ahead[c, k] for k in range(5)]
    share = where(x.c_kind[c] == LINE, harder, 1.0)
    write_row(x.c_R, c, [x.c_first[c, k] * share for k in range(2)])
    write_row(x.c_aim, c, [x.c_first[c, 2 + k] for k in range(3)])
    write_row(x.c_last, c, [x.c_first[c, 5 + k] for k in range(3)])
    g = [where(kept, of_way[k], x.c_g[c, k]) for k in range(3)]
    write_row(x.c_g, c, g)
    now = [*g, *(x.c_u[c, k] for k in range(2))]
    write_row(x.c_ahead, c, [a - b for a, b in zip(of_way, now, strict=True)])


def _go_on_row(x: Any, i: Any, harder: Any) -> None:
    x.r_R[i] = x.r_first[i, 0] * where(x.r_kind[i] == PRESCRIBED, harder, 1.0)
    x.r_aim[i] = x.r_first[i, 1]
    x.r_g[i] = where(smooth_row(x, i), x.r_first[i, 2], x.r_g[i])
