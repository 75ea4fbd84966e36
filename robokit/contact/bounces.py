"""Bounces that make no energy: what several contacts, friction and joints give back together is limited.

Newton's law of restitution aims at e times the speed of approach, at each contact alone. Where friction turns
round, or a joint holds, the impulses of a step may then do work on the robot (Kane's paradox): with the
velocities u before and after it

    W = sum over bouncing contacts of g.u+  -  1/2 sum over all of g.(u+ - u-)

is what they would give beyond what all other forces do; without restitution it is never positive. Where it
is, the step is solved again with aims of 0, and the impulses are those of the largest share of the way
between both at which W = 0. Sets are convex, so they stay admissible, and momentum is linear in them.

Source: T. Kane, D. Levinson, Dynamics: Theory and Applications (1985), on the paradox.
Cost: O(contacts); where it matters, a solution.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.fields import FRICTION
from robokit.contact.solver import LEAST, impulses, see, solve
from robokit.contact.vectors import nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import clamp, sqrt, where


def solve_bounces(x: Any) -> None:
    """The solution of the step; bounces give back no more than there was."""

    def bounced() -> None:
        work = once(x, surplus)
        cond(work > 0.0, lambda: _give_less(x, work), nothing)

    once(x, solve)
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
        return total

    once(x, impulses, x.n_of[0], x.n_of[1])
    half = for_range(x.nv, lambda j, total: total - 0.5 * (x.y[j] - x.v0[j]) * x.Jg[j], 0.0)
    return for_range(x.n_of[0], of_constraint, half)


def _give_less(x: Any, at_one: Any) -> None:
    """The share of restitution that makes no energy, W = at_one being that of all of it."""

    def keep(j: Any) -> None:
        x.y_bounced[j], x.Jg_bounced[j] = x.y[j], x.Jg[j]

    def keep_impulse(c: Any) -> None:
        write_row(x.c_bounced, c, [x.c_g[c, k] for k in range(3)])
        x.c_aim[c, 2] = where(bounces(x, c), 0.0, x.c_aim[c, 2])

    for_range(x.nv, keep)
    for_range(x.n_of[0], keep_impulse)
    for_range(x.n_of[1], lambda i: put(x.r_bounced, i, x.r_g[i]))
    once(x, solve)
    at_zero = once(x, surplus)
    # W is a parabola in the share: its curve is that of -1/2 (y - v0).J^T g and of the contacts' g.u+.
    share = _share(x, at_zero, at_one)

    def between(j: Any) -> None:
        x.y[j] = x.y[j] + share * (x.y_bounced[j] - x.y[j])

    def between_impulses(c: Any) -> None:
        write_row(x.c_g, c, [x.c_g[c, k] + share * (x.c_bounced[c, k] - x.c_g[c, k]) for k in range(3)])

    for_range(x.nv, between)
    for_range(x.n_of[0], between_impulses)
    for_range(x.n_of[1], lambda i: put(x.r_g, i, x.r_g[i] + share * (x.r_bounced[i] - x.r_g[i])))
    see(x, x.y, x.c_u)


def _share(x: Any, at_zero: Any, at_one: Any) -> Any:
    """Largest share in 0..1 at which W is not positive."""

    def along(j: Any) -> Any:
        return x.y_bounced[j] - x.y[j]

    for_range(x.nv, lambda j: put(x.d, j, along(j)))
    see(x, x.d, x.c_du)
    curve = for_range(x.nv, lambda j, total: total - 0.5 * along(j) * (x.Jg_bounced[j] - x.Jg[j]), 0.0)

    def of_constraint(c: Any, total: Any) -> Any:
        for k in range(3):
            change = (x.c_bounced[c, k] - x.c_g[c, k]) * x.c_du[c, k]
            total = total + where(bounces(x, c), change, 0.0)
        return total

    a = for_range(x.n_of[0], of_constraint, curve)
    c = where(at_zero < 0.0, at_zero, 0.0)
    b = at_one - a - c
    root = sqrt(where(b * b > 4.0 * a * c, b * b - 4.0 * a * c, 0.0))
    # The root between c <= 0 at a share of 0 and at_one > 0 at 1, without a difference of large numbers.
    falls = b + root
    return clamp(where(falls > 0.0, -2.0 * c / (falls + LEAST), 0.5 * (root - b) / (a + LEAST)), 0.0, 1.0)
