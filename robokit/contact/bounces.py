"""Restitution that creates no energy: what several contacts, friction and joints return together is limited.

Newton's law of restitution aims at e times the speed of approach, at each contact alone. Where the direction
of friction changes, or a joint resists, the impulses of a step may then do work on the robot (Kane's
paradox). With the velocities u- before and u+ after the step,

    W = sum over bouncing contacts of g.u+  -  1/2 sum over all of g.(u+ - u-)

is the energy that they add beyond the work of all other forces; without restitution it is never positive. u+
is relative to the surface, so that the work of a belt on what bounces on it does not count. If the previous
step has already removed a contact's speed of approach when it landed, u- still contains it. A floating robot
also gets the momentum that the step has missed (accounts.py), and may gain energy by it if a bounce turns it
about another axis. What it gains in this way beyond the work of all forces is added to W.

If W is positive, the step is solved again with aims of 0. The impulses are then interpolated between both
solutions, at the largest share of restitution at which W is not positive. The admissible sets are convex and
the momentum is linear in the impulses, so both stay satisfied. Groups of bodies that no constraint of the
step connects are independent, so each has its own W and share (groups.py).

Source: T. Kane, D. Levinson, Dynamics: Theory and Applications (1985), on the paradox.
Cost: O(contacts), with a floating base O(bodies); if restitution is limited, one more solution and some
evaluations of W.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.accounts import FREE, TOUCHED, gain, gains, lift, touch
from robokit.contact.fields import FRICTION
from robokit.contact.groups import (
    AT_HIGH,
    AT_SHARE,
    BOUNCES,
    CHANGE,
    GAINED,
    GIVEN,
    HIGH,
    NOW,
    SHARE,
    WANTED,
    WORK,
    add_to,
    each_group,
    group_of_body,
)
from robokit.contact.landings import solve_landings
from robokit.contact.solver import impulses, see
from robokit.contact.vectors import nothing, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum, where

LOST = 1e-6  # of the energy that all of restitution would make: so much may be lost, too
MOST = 40  # tries to find the share: each leaves less than the half where W bends little


def solve_bounces(x: Any) -> None:
    """The solution of the step, with restitution reduced where it would create energy."""
    once(x, solve_landings)
    give_less(x)


def give_less(x: Any) -> None:
    """Reduce the restitution of bounces where they would create energy."""

    def bounced() -> None:
        once(x, surplus)
        each_group(x, lambda p: put(x.by_group, (p, SHARE), 1.0))
        cond(
            each_group(x, lambda p, most: maximum(most, x.by_group[p, WORK]), 0.0) > 0.0, _give_less, nothing
        )

    def _give_less() -> None:
        _to_no_restitution(x)
        _go_to_share(x)

    cond(x.n_of[2] > 0, bounced, nothing)


def bounces(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that bounces in this step."""
    friction = x.c_kind[c] == FRICTION
    return friction & (x.contact_bounces[where(friction, x.c_of[c], 0)] > 0)


def from_surface(x: Any, c: Any, u: Vector3) -> Vector3:
    """Velocity u of a bouncing contact relative to its surface, which may be that of a belt."""
    k = where(bounces(x, c), x.c_of[c], 0)
    return u - Vector3(x.contact_surface[k, 0], x.contact_surface[k, 1], 0.0)


def surplus(x: Any) -> None:
    """The energy W of each group with a bounce [J], to WORK, 0 for other groups; leaves J^T g in Jg."""

    def of_constraint(c: Any) -> None:
        g, one = x.c_group[c], bounces(x, c)
        made = vector(x.c_g, c).dot(from_surface(x, c, vector(x.c_u, c)))
        add_to(x, g, WORK, where(one, made, 0.0))
        x.by_group[g, BOUNCES] = where(one, 1.0, x.by_group[g, BOUNCES])

    def of_row(j: Any) -> None:
        touched = x.account[x.row_whole[j], TOUCHED] > 0.0  # else it takes part in no bounce
        add_to(x, x.row_group[j], WORK, -where(touched, 0.5 * (x.y[j] - x.v0[j]) * x.Jg[j], 0.0))

    def beyond_work() -> None:
        def work(j: Any) -> None:
            amount = 0.5 * (x.v0[j] + x.y[j]) * (x.dt[0] * x.tau[j] + x.Jg[j])
            add_to(x, x.row_group[j], GIVEN, where(gains(x, x.row_whole[j]), amount, 0.0))

        gain(x, lambda w, more: add_to(x, x.group[x.body_part[x.wholes[w, 0]]], GAINED, more))
        for_range(x.nv, work)

    def all_of_it(p: Any) -> None:
        made = x.by_group[p, WORK] + x.by_group[p, GAINED] - x.by_group[p, GIVEN]
        x.by_group[p, WORK] = where(x.by_group[p, BOUNCES] > 0.0, made, 0.0)

    each_group(x, lambda p: write_row(x.by_group, p, [0.0] * 4))
    once(x, impulses, x.n_of[0], x.n_of[1])
    once(x, touch)
    for_range(x.n_of[0], of_constraint)
    for_range(x.nv, of_row)
    lift(x, lambda b, more: add_to(x, group_of_body(x, b), WORK, more))
    cond(x.keeps[0] == FREE, beyond_work, nothing)
    each_group(x, all_of_it)


def _to_no_restitution(x: Any) -> None:
    """Solve with aims of 0 in groups that create energy; the change to full restitution goes to
    ``bounced``.
    """

    def begin(p: Any) -> None:
        made = x.by_group[p, WORK]
        limited = made > 0.0
        x.by_group[p, SHARE], x.by_group[p, HIGH], x.by_group[p, NOW] = where(limited, 0.0, 1.0), 1.0, 0.0
        x.by_group[p, AT_HIGH] = where(limited, made, 1.0)
        x.by_group[p, WANTED] = where(limited, -LOST * made, 0.0)

    def all_of(c: Any) -> list[Any]:
        return [*(x.c_g[c, k] for k in range(3)), *(x.c_ahead[c, k] for k in range(5))]

    def keep(c: Any) -> None:
        write_row(x.c_bounced, c, all_of(c))
        limited = bounces(x, c) & (x.by_group[x.c_group[c], SHARE] < 1.0)
        k = where(limited, x.c_of[c], 0)
        x.c_aim[c, 2] = where(limited, minimum(-x.contact_gap[k], 0.0) / x.dt[0], x.c_aim[c, 2])
        x.contact_back[k, 2] = where(limited, 0.0, x.contact_back[k, 2])

    def from_zero(c: Any) -> None:
        write_row(x.c_bounced, c, [x.c_bounced[c, k] - now for k, now in enumerate(all_of(c))])

    def coordinate(j: Any) -> None:
        x.y_bounced[j], x.ahead_bounced[j] = x.y_bounced[j] - x.y[j], x.ahead_bounced[j] - x.ahead[j]

    each_group(x, begin)
    for_range(x.nv, lambda j: put(x.y_bounced, j, x.y[j]))
    for_range(x.nv, lambda j: put(x.ahead_bounced, j, x.ahead[j]))
    for_range(x.n_of[0], keep)
    for_range(x.n_of[1], lambda i: put(x.r_bounced, i, x.r_g[i]))
    iterations, *worst = (x.solved[k] for k in range(3))
    once(x, solve_landings)
    x.solved[0] = x.solved[0] + iterations
    for k, found in enumerate(worst, 1):
        x.solved[k] = maximum(x.solved[k], found)
    for_range(x.nv, coordinate)
    for_range(x.n_of[0], from_zero)
    for_range(x.n_of[1], lambda i: put(x.r_bounced, i, x.r_bounced[i] - x.r_g[i]))


def _go_to_share(x: Any) -> None:
    """Find the largest share of restitution at which W is not positive: by regula falsi, from below."""

    def begin(p: Any) -> None:
        x.by_group[p, AT_SHARE] = where(x.by_group[p, SHARE] < 1.0, x.by_group[p, WORK], 0.0)

    def searched(p: Any) -> Any:
        return x.by_group[p, AT_SHARE] < 2.0 * x.by_group[p, WANTED]

    def choose(p: Any) -> None:
        low, at_low, high, at_high, now = (x.by_group[p, SHARE + k] for k in range(5))
        share = low + (high - low) * ((x.by_group[p, WANTED] - at_low) / (at_high - at_low))
        share = where(searched(p), share, now)
        x.by_group[p, NOW], x.by_group[p, CHANGE] = share, share - now

    def look(p: Any) -> None:
        low, at_low, high, at_high, now = (x.by_group[p, SHARE + k] for k in range(5))
        found = x.by_group[p, WORK]
        below, above = searched(p) & (found <= 0.0), searched(p) & (found > 0.0)
        ends = where(below, now, low), where(below, found, at_low)
        more = where(above, now, high), where(above, found, at_high)
        for k, number in enumerate(ends + more):
            x.by_group[p, SHARE + k] = number

    def turn(k: Any, _: Any) -> tuple[Any, Any]:
        each_group(x, choose)
        once(x, _go)
        once(x, surplus)
        each_group(x, look)
        return k + 1, left()

    def left() -> Any:
        return each_group(x, lambda p, count: count + where(searched(p), 1, 0), 0)

    def end(p: Any) -> None:
        x.by_group[p, CHANGE] = x.by_group[p, SHARE] - x.by_group[p, NOW]

    def products(j: Any) -> None:  # between those of both, to second order
        limited = x.by_group[x.row_group[j], SHARE] < 1.0
        x.y_of_C[j] = where(limited, 0.5 * (x.y[j] + x.ahead[j]), x.y_of_C[j])

    once(x, surplus)
    each_group(x, begin)
    while_loop(lambda k, left: (k < MOST) & (left > 0), turn, 0, left(), most=MOST)
    each_group(x, end)
    once(x, _go)
    for_range(x.nv, products)


def _go(x: Any) -> None:
    """Change the share of restitution of each group by its CHANGE."""

    def of_constraint(c: Any) -> None:
        change = x.by_group[x.c_group[c], CHANGE]
        write_row(x.c_g, c, [x.c_g[c, k] + change * x.c_bounced[c, k] for k in range(3)])
        write_row(x.c_ahead, c, [x.c_ahead[c, k] + change * x.c_bounced[c, 3 + k] for k in range(5)])

    def of_row(i: Any) -> None:
        x.r_g[i] = x.r_g[i] + x.by_group[x.row_group[x.r_row[i]], CHANGE] * x.r_bounced[i]

    def coordinate(j: Any) -> None:
        change = x.by_group[x.row_group[j], CHANGE]
        x.y[j] = x.y[j] + change * x.y_bounced[j]
        x.ahead[j] = x.ahead[j] + change * x.ahead_bounced[j]

    for_range(x.nv, coordinate)
    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], of_row)
    once(x, see, x.y, x.c_u)
