"""Bounces that make no energy: what several contacts, friction and joints give back together is limited.

Newton's law of restitution aims at e times the speed of approach, at each contact alone. Where friction turns
round, or a joint holds, the impulses of a step may then do work on the robot (Kane's paradox): with the
velocities u before and after it

    W = sum over bouncing contacts of g.u+  -  1/2 sum over all of g.(u+ - u-)

is what they would give beyond what all other forces do; without restitution it is never positive. Where the
step before has taken a contact's speed of approach as it landed, u- has it still. A robot
that floats also gets the momentum that the step has missed (accounts.py): one that a bounce turns round
another axis may gain so. What it gains to the end of the step beyond the work of all forces is added to W.

Where W is positive, the step is solved again with aims of 0, and the impulses are those of the largest share
of the way between both at which W is not positive. Sets are convex, so they stay admissible, and momentum is
linear in them.

Source: T. Kane, D. Levinson, Dynamics: Theory and Applications (1985), on the paradox.
Cost: O(contacts), with a base that floats O(bodies); where it matters, a solution and some of these.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.accounts import FREE, TOUCHED, gain, gains, touch
from robokit.contact.fields import FRICTION
from robokit.contact.landings import solve_landings
from robokit.contact.solver import impulses, see, solve
from robokit.contact.vectors import nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, where

LOST = 1e-6  # of the energy that all of restitution would make: so much may be lost, too
MOST = 40  # tries to find the share: each leaves less than the half where W bends little


def solve_bounces(x: Any) -> None:
    """The solution of the step; bounces give back no more than there was."""
    solve_landings(x)
    give_less(x)


def give_less(x: Any) -> None:
    """What bounces give back of a solution is no more than there was."""

    def bounced() -> None:
        work = once(x, surplus)
        cond(work > 0.0, lambda: _give_less(x, work), nothing)

    cond(x.n_of[2] > 0, bounced, nothing)


def bounces(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that bounces."""
    friction = x.c_kind[c] == FRICTION
    return friction & (x.contact_bounces[where(friction, x.c_of[c], 0)] > 0)


def surplus(x: Any) -> Any:
    """W [J]; leaves J^T g in Jg."""

    def of_constraint(c: Any, total: Any) -> Any:
        for k in range(3):
            total = total + where(bounces(x, c), x.c_g[c, k] * x.c_u[c, k], 0.0)
        taken = x.contact_taken[where(x.c_kind[c] == FRICTION, x.c_of[c], 0)]
        return total - where(bounces(x, c), 0.5 * x.c_g[c, 2] * taken, 0.0)

    def of_row(j: Any, total: Any) -> Any:
        touched = x.account[x.row_whole[j], TOUCHED] > 0.0  # else it takes part in no bounce
        return total - where(touched, 0.5 * (x.y[j] - x.v0[j]) * x.Jg[j], 0.0)

    once(x, impulses, x.n_of[0], x.n_of[1])
    once(x, touch)
    W = for_range(x.n_of[0], of_constraint, for_range(x.nv, of_row, 0.0))

    def beyond_work() -> Any:
        def work(j: Any, total: Any) -> Any:
            amount = 0.5 * (x.v0[j] + x.y[j]) * (x.dt[0] * x.tau[j] + x.Jg[j])
            return total + where(gains(x, x.row_whole[j]), amount, 0.0)

        return W + gain(x) - for_range(x.nv, work, 0.0)

    return cond(x.keeps[0] == FREE, beyond_work, lambda: W)


def _give_less(x: Any, at_one: Any) -> None:
    """The share of restitution that makes no energy, W = at_one > 0 being that of all of it."""

    def keep(c: Any) -> None:
        write_row(x.c_bounced, c, [x.c_g[c, k] for k in range(3)])
        x.c_aim[c, 2] = where(bounces(x, c), 0.0, x.c_aim[c, 2])

    def from_zero(c: Any) -> None:
        write_row(x.c_bounced, c, [x.c_bounced[c, k] - x.c_g[c, k] for k in range(3)])

    for_range(x.nv, lambda j: put(x.y_bounced, j, x.y[j]))
    for_range(x.n_of[0], keep)
    for_range(x.n_of[1], lambda i: put(x.r_bounced, i, x.r_g[i]))
    iterations, *worst = (x.solved[k] for k in range(3))
    once(x, solve)
    x.solved[0] = x.solved[0] + iterations
    for k, found in enumerate(worst, 1):
        x.solved[k] = maximum(x.solved[k], found)
    for_range(x.nv, lambda j: put(x.y_bounced, j, x.y_bounced[j] - x.y[j]))
    for_range(x.n_of[0], from_zero)
    for_range(x.n_of[1], lambda i: put(x.r_bounced, i, x.r_bounced[i] - x.r_g[i]))
    _go_to_share(x, at_one)


def _go_to_share(x: Any, at_one: Any) -> None:
    """From a share of 0 to the largest at which W is not positive: by regula falsi, from below."""
    wanted = -LOST * at_one

    def searching(k: Any, now: Any, low: Any, at_low: Any, *_: Any) -> Any:
        return (k < MOST) & (at_low < 2.0 * wanted)

    def turn(k: Any, now: Any, low: Any, at_low: Any, high: Any, at_high: Any) -> tuple[Any, ...]:
        share = low + (high - low) * ((wanted - at_low) / (at_high - at_low))
        once(x, _go, share - now)
        found = once(x, surplus)
        over = found > 0.0
        ends = where(over, low, share), where(over, at_low, found)
        return k + 1, share, *ends, where(over, share, high), where(over, found, at_high)

    at_zero = once(x, surplus)
    _, now, low, *_ = while_loop(searching, turn, 0, 0.0, 0.0, at_zero, 1.0, at_one, most=MOST)
    once(x, _go, low - now)


def _go(x: Any, change: Any) -> None:
    """Change the share by so much."""

    def of_constraint(c: Any) -> None:
        write_row(x.c_g, c, [x.c_g[c, k] + change * x.c_bounced[c, k] for k in range(3)])

    for_range(x.nv, lambda j: put(x.y, j, x.y[j] + change * x.y_bounced[j]))
    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], lambda i: put(x.r_g, i, x.r_g[i] + change * x.r_bounced[i]))
    once(x, see, x.y, x.c_u)
