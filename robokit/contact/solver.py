"""The velocity at the end of a step: Newton's method on Coulomb's law, along a path that ends at a solution.

    H y - b = J^T g,   b = H v + dt (tau - C((v + y) / 2))          momentum
    g = P(p),   p = (w g + aim - u) / (w + R),   u = J y            the law of each force (laws.py)

Velocity y and impulses g are both unknown. With the tangents of the laws, g' = G (aim - u') + const,

    A d = b - H y + J^T T,   A = H + J^T G J,   T = G (aim - u) + const
    y += share d,   g += share (T - G J d - g)

Both are a solution where one number is 0:

    error^2 = |H y - b - J^T g|^2 / diag(H)  +  sum of w |g - P(p)|^2

See README.md here. Source: laws.py; the path: S. Smale, A convergent process of price adjustment and global
Newton methods, Journal of Mathematical Economics 3 (1976).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from robokit.contact.articulated import assemble, back_substitute, factor
from robokit.contact.fields import FRICTION, LINE, PRESCRIBED, SPEED, SPIN, SPRING
from robokit.contact.groups import ERROR, add_to, each_group, group_of_body
from robokit.contact.kinematics import (
    between,
    bias,
    generalized,
    multiply,
    own_inertia,
    push,
    velocities,
)
from robokit.contact.laws import growth, nearest, row_nearest, row_tangent, tangent, tried
from robokit.contact.vectors import motion, nothing, one_by_one, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision, rounding, smallest, while_loop
from robokit.spatial.scalars import clamp, floor, maximum, minimum, sqrt, where

CAP = 30
"""Iterations of the first attempt at most, beyond that in which its error was the least so far: several times
what the slowest steps of falls take. In a heap of hundreds some forces settle later than others."""

CAP_LATER = 100
"""The same of later attempts: with less friction, and from where a path has ended; of all by softer laws."""

LEAST = 64.0
"""The first path begins with half of the friction, each later one with half as much, the last with 1/64."""

AWAY = 1e-3  # Error beside a path at most: farther away another path is near, closer takes more iterations.

CURVED = 300
"""Iterations of a path at most, beside two for each constraint and coordinate: another path is sooner at its
end than one that is longer. Joints' rows are no measure: in lanes there are more of them."""

APART = 2.0**0.5 - 1.0
"""Share of a turn between the rates at which the friction of one constraint and of the next grows, for each
path a multiple of it."""

LOOPS = 1e-8
"""Tolerance of a robot with loops: each iteration leaves 1e-3 of the error of their forces (loops.py)."""

WILD = 10.0
"""Change of velocity products in an iteration, over the momentum, that is not taken. At 1 the fall of a chain
of 100 links loses 28 % of its energy by it, at 10 and without it 2 %; without it flung chains do not stay
finite."""

ROUNDING = 1e-12, 3e-6  # of the momentum, in double and in single precision: an error below it is rounding

OUTSIDE = 1e-10, 2e-5
"""Share of the impulses by which they may be outside of their sets, and momentum be lost; in single precision
what the rounding of velocities makes of them."""

NEAR = 1e-4
"""Error from which the tangents of an iteration are kept for the next: Newton's next error, of second order,
is settled, and what the kept ones leave, in proportion to how far they were, is not more by much."""

FASTER = 0.1
"""What such an iteration has to leave of the error, else tangents are taken anew in all that follow."""

HARDER = 2.0**-7
"""Compliance of loops and prescribed joints over that of the iteration before, where it left too much."""

HARDEST = 2.0**-14, 2.0**-7
"""The same over that of the first iteration at least: in single precision it becomes less once."""

LESS = 0.9
"""Of the square of the error, or of a direction, what a share has to leave no more than: at 1 two states
may take turns."""

SOFTER = 4.0
"""How much softer tangents become where not even half of their direction was taken, and how much less soft at
most where it was. With 2 or 10 instead, heaps take as many iterations or a fifth more."""

BEYOND = 1e-6, 1e-5
"""How far a share goes beyond the place where the first force changes its state, relative to it: in double
and in single precision."""

HERE = 0.0  # the share at which a direction begins
AHEAD = 1e-9  # a force that changes its state before this share does so where the direction begins


def solve(x: Any) -> None:
    """y, the impulses c_g and r_g, and statistics, from v0, tau, guess, dt, the constraints and
    the pattern.
    """
    begin_solution(x)
    once(x, end_solution, *once(x, attempt, 0))


def begin_solution(x: Any) -> None:
    """Prepare the first iteration."""
    once(x, multiply, x.v0, x.Hv0)
    begin_from(x)


def begin_from(x: Any) -> None:
    """Prepare the first iteration, from a given momentum Hv0."""
    x.solved[0] = x.solved[1] = x.less[0] = x.less[1] = x.less[2] = 0.0
    start_anew(x, 0)
    once(x, begin)


def end_solution(x: Any, *first: Any) -> None:
    """Finish a solution, given the result of its first attempt: if that failed, try softer laws in a world of
    several bodies, and then follow up to six paths, each from less friction.

    If the last path ends before friction is complete, its end is taken, or its start if the end is not
    finite: impulses are admissible there, too.
    """

    def with_part(it: Any) -> tuple[Any, Any, Any]:
        once(x, take_friction, 1.0 - 1.0 / x.less[2])
        start_anew(x, it)
        cond(x.n_of[3] > 0, lambda: once(x, multiply_from_zero), nothing)
        once(x, begin)
        return once(x, attempt, it)

    def along(it: Any, _e: Any, _found: Any, part: Any) -> tuple[Any, Any, Any, Any]:
        x.less[2] = part
        it, *_ = with_part(it)
        it = once(x, grow, it)
        start_anew(x, it)
        return *once(x, attempt, it), 2.0 * part

    def fails(_it: Any, _e: Any, found: Any, part: Any) -> Any:
        return ((found == 0) | (x.less[0] > 0.0)) & (part <= LEAST)

    def along_paths() -> tuple[Any, Any, Any]:
        for_range(x.n_of[0], lambda c: write_row(x.c_full, c, [x.c_mu[c], x.c_arm[c]]))
        it, e, found, _ = while_loop(fails, along, *by_law, 2.0)
        return cond(e < math.inf, lambda: (it, e, found), lambda: with_part(it))

    done = (first[2] > 0) | (x.n_parts < 2)  # paths of one robot are short
    by_law = cond(done, lambda: first, lambda: once(x, by_softer_laws, first[0]))
    it, e, found = cond(by_law[2] > 0, lambda: by_law, along_paths)
    cond(found > 0, nothing, lambda: unsettled(x))
    report(x, it, e, (found > 0) & (x.less[0] == 0.0))
    cond(x.less[0] > 0.0, lambda: once(x, take_friction, 0.0), nothing)


def by_softer_laws(x: Any, before: Any) -> tuple[Any, Any, Any]:
    """Another attempt, of about CAP_LATER iterations at most: the method of multipliers for all constraints.

    It solves a sequence of problems. In each, a law has a share of the mobility added to its compliance, and
    aims at the velocity that makes up for this at the impulse of the problem before: a solution of the laws
    themselves is a fixed point. The share is 1 at first, then the error of the laws themselves, and SOFTER
    times as large where a problem is not solved. The sequence begins where the first attempt ended; of robots
    with loops at the initial guess, as multipliers may be of any size there.
    Source: R. T. Rockafellar, Monotone operators and the proximal point algorithm, SIAM Journal on Control
    and Optimization 14 (1976).
    """

    def keep(c: Any) -> None:
        write_row(x.c_own, c, [*(x.c_R[c, k] for k in range(2)), *(x.c_aim[c, k] for k in range(3))])
        note(c)

    def note(c: Any) -> None:
        write_row(x.c_about, c, [x.c_g[c, k] for k in range(3)])

    def anew() -> None:
        once(x, multiply_from_zero)
        once(x, begin)

    def turn(it: Any, _e: Any, share: Any) -> tuple[Any, Any, Any]:
        once(x, make_soft, share)
        n, _, found = once(x, attempt, 0)
        cond(found > 0, lambda: for_range(x.n_of[0], note), nothing)
        once(x, make_soft, 0.0)
        once(x, leave)
        e = where(found > 0, error_here(x), 1.0)
        return it + n, e, minimum(where(found > 0, e, SOFTER * share), 1.0)

    cond(x.n_of[3] > 0, anew, nothing)
    for_range(x.n_of[0], keep)
    last = before + CAP_LATER
    it, *_ = while_loop(lambda it, e, _: (e > x.tolerance[0]) & (it < last), turn, 1 * before, 1.0, 1.0)
    n, e, found = once(x, attempt, 0)
    return it + n, e, found


def make_soft(x: Any, share: Any) -> None:
    """Add a share of the mobility to the compliances of the laws, and prepare an attempt with them."""

    def law(c: Any) -> None:
        more = share * x.c_w[c]
        back = [where(more > 0.0, more * x.c_about[c, k], 0.0) for k in range(3)]  # that may not be finite
        write_row(x.c_R, c, [x.c_own[c, k] + more for k in range(2)])
        write_row(x.c_aim, c, [x.c_own[c, 2 + k] + b for k, b in enumerate(back)])

    # Loops have multipliers in every iteration.
    for_range(x.n_of[0], lambda c: cond(x.c_kind[c] == LINE, nothing, lambda: law(c)))
    start_anew(x, 0)
    once(x, of_velocity)


def unsettled(x: Any) -> None:
    """End an iteration that has not converged: impulses become admissible, and the momentum balances."""
    once(x, of_velocity)
    once(x, project)
    once(x, leave)
    once(x, polish)
    once(x, project)
    cond(x.n_of[3] > 0, nothing, lambda: once(x, ray))  # H of rods may be singular


def attempt(x: Any, before: Any, at: Any = None, few: Any = None) -> tuple[Any, Any, Any]:
    """Iterate from the present y and g; returns the iterations, the error, and 1 at a solution, else 0.

    ``before``: iterations before this attempt, which are included in the number; ``at``: with those of this
    attempt, if it continues one, otherwise it begins; ``few``: largest number of iterations now, unlimited by
    default. In lanes, those that are near a solution wait for the others, so that all are checked together.
    """
    begins = before, 0.0, 0, 0
    if at is not None:
        begins = at, x.solved[1], 0, where(x.solved[0] > 0.5, 1, where(x.solved[0] < -0.5, -1, 0))
    goal = where(x.n_of[3] > 0, minimum(x.tolerance[0], rounding(LOOPS, 0.5)), x.tolerance[0])

    def later(it: Any, e: Any) -> Any:
        return where((it > before) & (e > 0.0), 1, 0)

    def iteration(it: Any, e: Any, kept: Any, _: Any) -> tuple[Any, Any, Any, Any]:
        cond(kept > 0, lambda: once(x, expect), lambda: once(x, linearise))
        once(x, direction)
        share, now = once(x, search, later(it, e), kept)
        met = where((now <= goal) & (share == 1.0), 1, 0)
        kept = cond(met > 0, lambda: 1 * kept, lambda: once(x, judge, it, e, now, share, kept, 0))
        return it + 1, where(met > 0, e, now), kept, met

    def turn(it: Any, e: Any, _: Any, kept: Any) -> tuple[Any, Any, Any, Any]:
        it, e, kept, met = while_loop(unmet, iteration, it, e, kept, 0)

        def check() -> tuple[Any, Any, Any]:
            settled, now = once(x, finish, goal, later(it - 1, e))
            return now, settled, once(x, judge, it - 1, e, now, 1.0, kept, met)

        return it, *cond(met > 0, check, lambda: (1.0 * e, 0, 1 * kept))

    def goes_on(it: Any, e: Any) -> Any:
        here = True if few is None else it < at + few
        return here & ~gives_up(x, before, it, e)

    def unmet(it: Any, e: Any, _: Any, met: Any) -> Any:
        return (met == 0) & goes_on(it, e)

    def unsettled_yet(it: Any, e: Any, settled: Any, _: Any) -> Any:
        return (settled == 0) & goes_on(it, e)

    it, e, settled, kept = while_loop(unsettled_yet, turn, *begins)
    if few is not None:
        x.solved[0], x.solved[1] = 1.0 * kept, e  # until it goes on
    return it, e, settled


def judge(x: Any, it: Any, e: Any, now: Any, share: Any, kept: Any, met: Any) -> Any:
    """Rate an iteration: 1 if the next one keeps its tangents, -1 if no later one does, else 0.

    ``it``: its number; ``e``, ``now``: errors before and after it; ``share``: fraction of the Newton step
    that it took; ``kept``: rating of the previous iteration; ``met``: 1 if the result was checked and is no
    solution.
    """
    gains = now < LESS * x.errors[2]
    x.errors[2], x.errors[3] = where(gains, now, x.errors[2]), where(gains, 1.0 * it, x.errors[3])
    soften(x, (share < 0.5) & (kept < 1), now)
    slow = (kept > 0) & (now > FASTER * e)
    keeps = (kept >= 0) & (now <= NEAR) & (share == 1.0) & (met < 1)
    return where(slow | (kept < 0), -1, where(keeps, 1, 0))


def start_anew(x: Any, before: Any) -> None:
    """Reset the ratings for an attempt that begins after so many iterations."""
    x.errors[2], x.errors[3], x.errors[4] = math.inf, 1.0 * before, 0.0
    x.errors[5] = x.errors[6] = 0.0


def soften(x: Any, cut: Any, e: Any) -> None:
    """Soften the tangents after two Newton steps in a row were cut: by the error, and more each time.

    From then on, the softness follows the error down, but only slowly: after an error that is small by
    chance, the next step would otherwise lead far away, and the same states recur without end. An error of 1
    or more says nothing about the right softness, nor do many cuts, as with loops that are torn open: then
    the tangents stay as they are.

    ``cut``: whether this step was; ``e``: the error at its end.
    """
    softer = maximum(e, where(cut, SOFTER, 1.0 / SOFTER) * x.errors[5])
    soft = (softer < 1.0) & ((x.errors[5] > 0.0) | (cut & (x.errors[6] > 0.0)))
    x.errors[5] = where(soft, softer, 0.0)
    x.errors[6] = where(cut, 1.0, 0.0)


def gives_up(x: Any, before: Any, it: Any, e: Any) -> Any:
    """Whether an attempt ends without a solution: its error has not decreased for long, or is not finite."""
    return (it >= x.errors[3] + where(before > 0, CAP_LATER, CAP)) | ~(e < math.inf)


def begin(x: Any) -> None:
    """Set the initial guess of the velocity, and the impulses of the forces there."""

    def coordinate(j: Any) -> None:
        x.y[j], x.row_mobility[j] = x.guess[j], 1.0 / own_inertia(x, j)

    def of_constraint(c: Any) -> None:
        by_velocity, last = nearest_of(x, c, 0.0), [x.c_last[c, k] for k in range(3)]
        g = [where(last[2] > 0.0, a, b) for a, b in zip(last, by_velocity, strict=True)]
        write_row(x.c_g, c, g)
        write_row(x.c_expected, c, g)

    def of_row(i: Any) -> None:
        x.r_g[i] = x.r_expected[i] = row_nearest_of(x, i, 0.0)

    for_range(x.nv, coordinate)
    x.errors[0], x.errors[1], x.held[1], x.held[2] = math.inf, 0.0, 0.0, math.inf
    cond(x.n_of[3] > 0, lambda: once(x, hold, 1.0), nothing)
    once(x, of_velocity)
    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], of_row)
    cond(x.span[0] > 0.0, lambda: guess_products(x), nothing)
    for_range(x.nv, lambda j: put(x.b, j, x.Hv0[j] + x.span[0] * (x.tau[j] - x.C[j])))
    once(x, leave)


def guess_products(x: Any) -> None:
    """Set the velocity products of the initial guess."""
    for_range(x.n_bodies, lambda b: write_row(x.W, b, (motion(x.V, b) + motion(x.V_y, b)) * 0.5))
    once(x, bias, x.C_guess)
    those_of_the_guess(x, 0, x.nv)


def of_velocity(x: Any) -> None:
    """Compute the momentum and velocities of y anew.

    As sums over Newton steps, they have the rounding of the largest of these, which exceeds all velocities
    where A is nearly singular.
    """
    once(x, multiply, x.y, x.Hy)
    once(x, see, x.y, x.c_u)
    for_range(x.n_bodies, lambda b: write_row(x.V_y, b, motion(x.Vd, b)))


def leave(x: Any) -> None:
    """Residual of the momentum balance, computed anew from y and g; a sum over fractions may be rounding."""
    once(x, impulses, x.n_of[0], x.n_of[1])
    for_range(x.nv, lambda j: put(x.residual, j, x.Hy[j] - x.b[j] - x.Jg[j]))


# ---- an iteration -----------------------------------------------------------------------------------------


def linearise(x: Any) -> None:
    """Compute the tangents of all laws, A and its factors, and the impulses of the tangents here."""

    def of_constraint(c: Any, slides: Any) -> Any:
        G, by_load, g = tangent_of(x, c)
        write_row(x.c_G, c, G)
        write_row(x.c_by_load, c, by_load)
        write_row(x.c_expected, c, g)
        spins = (by_load[0] != 0.0) | (by_load[1] != 0.0) | (by_load[2] != 0.0)
        return slides + where((G[6] != 0.0) | (G[7] != 0.0) | spins, 1, 0)

    def of_row(i: Any) -> None:
        x.r_G[i], x.r_expected[i] = row_tangent_of(x, i)

    cond(x.n_of[3] > 0, lambda: hold_harder(x), nothing)
    slides = for_range(x.n_of[0], of_constraint, 0)
    for_range(x.n_of[1], of_row)
    x.n_of[4] = where(slides > 0, 1, 0)
    once(x, assemble, x.n_of[0], x.n_of[1])
    once(x, factor)


def hold_harder(x: Any) -> None:
    """Make loops and prescribed joints stiffer if an iteration leaves too much error, most of it theirs.

    An iteration leaves R / (R + mobility) of their velocity, where the mobility is that with all other
    constraints acting. It is small in a nearly stretched linkage, and for a joint that presses on the ground.
    """
    left = x.errors[0] + x.errors[1]
    slow = (2.0 * x.held[1] > left) & (left > FASTER**2 * x.held[2]) & (x.held[0] > in_precision(*HARDEST))
    x.held[2] = left

    def harder() -> None:
        once(x, hold, HARDER * x.held[0])
        once(x, multiply_again)

    cond(slow, harder, nothing)


def hold(x: Any, softness: Any) -> None:
    """Set the compliance of loops and prescribed joints, relative to that of the first iteration."""
    share = softness / x.held[0]
    x.held[0] = softness

    def of_constraint(c: Any) -> None:
        loop = x.c_kind[c] == LINE
        write_row(x.c_R, c, [where(loop, share, 1.0) * x.c_R[c, k] for k in range(2)])

    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], lambda i: put(x.r_R, i, where(x.r_kind[i] == PRESCRIBED, share, 1.0) * x.r_R[i]))


def expect(x: Any) -> None:
    """The impulses of the tangents, for A and slopes from an earlier iteration."""
    for_range(x.n_of[0], lambda c: write_row(x.c_expected, c, tangent_of(x, c)[2]))
    for_range(x.n_of[1], lambda i: put(x.r_expected, i, row_tangent_of(x, i)[1]))


def expect_these(x: Any) -> None:
    """Expect the present impulses."""
    for_range(x.n_of[0], lambda c: write_row(x.c_expected, c, [x.c_g[c, k] for k in range(3)]))
    for_range(x.n_of[1], lambda i: put(x.r_expected, i, x.r_g[i]))


def direction(x: Any) -> None:
    """Compute the Newton step d, its velocities, and the changes of impulses by the tangents at its end."""
    once(x, toward)
    once(x, back_substitute, x.d)
    once(x, follow)


def toward(x: Any) -> None:
    """Residual of the momentum balance with the expected impulses: the right side A d."""

    def swap(c: Any) -> None:
        for k in range(3):
            x.c_g[c, k], x.c_expected[c, k] = x.c_expected[c, k], x.c_g[c, k]

    def swap_row(i: Any) -> None:
        x.r_g[i], x.r_expected[i] = x.r_expected[i], x.r_g[i]

    def both() -> None:
        for_range(x.n_of[0], swap)
        for_range(x.n_of[1], swap_row)

    both()
    once(x, impulses, x.n_of[0], x.n_of[1])
    both()
    for_range(x.nv, lambda j: put(x.d, j, x.b[j] - x.Hy[j] + x.Jg[j]))


def follow(x: Any) -> None:
    """Compute what follows from d: velocities, momentum and the changes of the impulses."""

    def change_of(c: Any) -> tuple[Any, Any, Any]:
        return times([x.c_G[c, k] for k in range(8)], tuple(x.c_du[c, k] for k in range(3)))

    def of_constraint(c: Any) -> None:
        change = change_of(c)

        def of_load() -> tuple[Any, ...]:
            less = change_of(x.c_of[c])[2]
            return tuple(a + x.c_by_load[c, k] * less for k, a in enumerate(change))

        change = cond(x.c_kind[c] == SPIN, of_load, lambda: tuple(change))
        write_row(x.c_expected, c, [x.c_expected[c, k] - change[k] - x.c_g[c, k] for k in range(3)])

    def of_row(i: Any) -> None:
        x.r_expected[i] = x.r_expected[i] - x.r_G[i] * x.r_gain[i] * x.d[x.r_row[i]] - x.r_g[i]

    once(x, see, x.d, x.c_du)
    once(x, multiply, x.d, x.Hd)
    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], of_row)


def go(x: Any, share: Any) -> Any:
    """Take a fraction of the Newton step; returns the error there."""
    once(x, move, share)
    once(x, take_products)

    def left(j: Any) -> None:
        b = x.Hv0[j] + x.span[0] * (x.tau[j] - x.C[j])
        x.residual[j] = (1.0 - share) * x.residual[j] + (x.b[j] - b)
        x.b[j] = b

    for_range(x.nv, left)
    return error_here(x)


def go_back(x: Any, share: Any) -> Any:
    """Undo a fraction of the Newton step; returns the error there, computed anew."""
    once(x, move, -share)
    once(x, take_products)
    for_range(x.nv, lambda j: put(x.b, j, x.Hv0[j] + x.span[0] * (x.tau[j] - x.C[j])))
    once(x, leave)
    return error_here(x)


def error_here(x: Any) -> Any:
    """The error at the present y and g, with the multipliers aimed at the present impulses."""
    cond(x.n_of[3] > 0, lambda: once(x, multiply_again), nothing)
    x.errors[1] = once(x, error_of_laws)
    return once(x, error)


def move(x: Any, share: Any) -> None:
    """Take a fraction of the Newton step: velocities and impulses."""

    def coordinate(j: Any) -> None:
        x.y[j] = x.y[j] + share * x.d[j]
        x.Hy[j] = x.Hy[j] + share * x.Hd[j]

    def of_constraint(c: Any) -> None:
        for k in range(3):
            x.c_u[c, k] = x.c_u[c, k] + share * x.c_du[c, k]
            x.c_g[c, k] = impulse_at(x, c, k, share)

    for_range(x.nv, coordinate)
    for_range(x.n_bodies, lambda b: write_row(x.V_y, b, motion(x.V_y, b) + motion(x.Vd, b) * share))
    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], lambda i: put(x.r_g, i, row_impulse_at(x, i, share)))
    cond(abs(x.less[1]) > 0.0, lambda: once(x, take_friction, x.less[0] + share * x.less[1]), nothing)


def admissible(x: Any, c: Any) -> tuple[Any, ...]:
    """The admissible impulse nearest to that of a constraint."""
    g = tuple(x.c_g[c, k] for k in range(3))
    return nearest(x.c_kind[c], g, x.c_mu[c], x.c_arm[c], load(x, c))


def admissible_row(x: Any, i: Any) -> Any:
    """The admissible impulse nearest to that of a row; beyond its largest speed it is 0."""
    return clamp(x.r_g[i], minimum(x.r_low[i], 0.0), maximum(x.r_high[i], 0.0))


def outside(x: Any) -> Any:
    """The fraction of the impulses that is not admissible."""

    def of_constraint(c: Any, moved: Any, all_: Any) -> tuple[Any, Any]:
        for k, found in enumerate(once(x, admissible, c)):
            moved, all_ = moved + abs(x.c_g[c, k] - found), all_ + abs(found)
        return moved, all_

    def of_row(i: Any, moved: Any, all_: Any) -> tuple[Any, Any]:
        found = admissible_row(x, i)
        return moved + abs(x.r_g[i] - found), all_ + abs(found)

    moved, all_ = for_range(x.n_of[0], of_constraint, 0.0, 0.0)
    rows_moved, rows_all = for_range(x.n_of[1], of_row, 0.0, 0.0)
    return maximum(moved / (all_ + smallest()), rows_moved / (rows_all + smallest()))


def finish(x: Any, goal: Any, later: Any) -> tuple[Any, Any]:
    """Project the impulses and remove the remaining momentum error; returns 1 for a solution, else 0, and the
    error.

    Without a solution, the next iterations remove the rest. ``goal``: tolerance; ``later``: 0 if a single
    Newton step led here, so that nothing was summed up.
    """

    def met() -> tuple[Any, Any]:
        once(x, polish)
        left = once(x, outside)
        once(x, project)
        return cond(left <= in_precision(*OUTSIDE), lambda: (1, e), not_met)

    def not_met() -> tuple[Any, Any]:
        once(x, leave)
        return 0, error_here(x)

    cond(later > 0, lambda: once(x, of_velocity), nothing)
    once(x, project)
    once(x, leave)
    e = once(x, error)
    e = cond(x.n_parts > 1, lambda: maximum(e, once(x, error_of_groups)), lambda: e)
    return cond(e <= goal, met, not_met)


def project(x: Any) -> None:
    """Replace the impulses by the nearest admissible ones."""
    for_range(x.n_of[0], lambda c: write_row(x.c_g, c, once(x, admissible, c)))
    for_range(x.n_of[1], lambda i: put(x.r_g, i, admissible_row(x, i)))


def polish(x: Any) -> None:
    """Remove the remaining error of momentum with the present factors and velocity products."""
    for_range(x.nv, lambda j: put(x.d, j, -x.residual[j]))
    once(x, back_substitute, x.d)
    once(x, expect_these)
    once(x, follow)
    once(x, move, 1.0)


def ray(x: Any) -> None:
    """Scale the admissible impulses so that the cost is least: momentum is exact, and no energy is created.

    theta = clip(g.(aim - J y*) / (g.J H^-1 J^T g + g.R g), 0, 1), y = y* + theta H^-1 J^T g, H y* = b
    """
    x.n_of[4] = 0
    once(x, assemble, 0, 0)
    once(x, factor)
    once(x, impulses, x.n_of[0], x.n_of[1])
    for_range(x.nv, lambda j: put(x.d, j, x.Jg[j]))
    for_range(x.nv, lambda j: put(x.y, j, x.b[j]))
    once(x, back_substitute, x.d)
    once(x, back_substitute, x.y)
    once(x, see, x.y, x.c_u)

    def of_constraint(c: Any, gain: Any, cost: Any) -> tuple[Any, Any]:
        for k in range(3):
            g, R = x.c_g[c, k], x.c_R[c, k // 2]
            gain = gain + where(abs(g) > 0.0, g * (x.c_aim[c, k] - x.c_u[c, k]), 0.0)
            cost = cost + where(abs(g) > 0.0, R * g * g, 0.0)
        return gain, cost

    def of_row(i: Any, gain: Any, cost: Any) -> tuple[Any, Any]:
        g = x.r_g[i]
        u = x.r_gain[i] * x.y[x.r_row[i]]
        return gain + g * (x.r_aim[i] - u), cost + x.r_R[i] * g * g

    gain, cost = for_range(x.n_of[0], of_constraint, 0.0, 0.0)
    gain, cost = for_range(x.n_of[1], of_row, gain, cost)
    cost = for_range(x.nv, lambda j, total: total + x.Jg[j] * x.d[j], cost)
    theta = clamp(gain / (cost + smallest()), 0.0, 1.0)
    for_range(x.nv, lambda j: put(x.y, j, x.y[j] + theta * x.d[j]))
    for_range(x.n_of[0], lambda c: write_row(x.c_g, c, [theta * x.c_g[c, k] for k in range(3)]))
    for_range(x.n_of[1], lambda i: put(x.r_g, i, theta * x.r_g[i]))
    once(x, see, x.y, x.c_u)


def see(x: Any, v: Any, u: Any) -> None:
    """The velocities u of constraints at a velocity v."""
    once(x, velocities, v, x.Vd)
    for_range(x.n_of[0], lambda c: write_row(u, c, relative(x, c, x.Vd)))


def multiply_again(x: Any) -> None:
    """Method of multipliers: loops and prescribed joints aim at their present impulses.

    Those that take no part in an impact (landings.py) have none: their compliance is infinite.
    """

    def of_constraint(c: Any) -> None:
        def line() -> None:
            R = x.c_R[c, 0], x.c_R[c, 0], x.c_R[c, 1]
            known = zip(R, (x.c_g[c, k] for k in range(3)), once(x, before, c), strict=True)
            write_row(x.c_aim, c, [r * g - u for r, g, u in known])

        cond((x.c_kind[c] == LINE) & (x.c_R[c, 0] < math.inf), line, nothing)

    def of_row(i: Any) -> None:
        def prescribed() -> None:
            x.r_aim[i] = x.motion_values[x.r_of[i], SPEED] + x.r_R[i] * x.r_g[i]

        cond((x.r_kind[i] == PRESCRIBED) & (x.r_R[i] < math.inf), prescribed, nothing)

    for_range(x.n_of[0], of_constraint)
    cond(x.n_motions > 0, lambda: for_range(x.n_of[1], of_row), nothing)


def multiply_from_zero(x: Any) -> None:
    """Reset the multipliers to 0: after a failed attempt they may have any size."""
    for_range(x.n_of[0], lambda c: write_row(x.c_g, c, [0.0] * 3))
    for_range(x.n_of[1], lambda i: put(x.r_g, i, 0.0))
    once(x, multiply_again)


def report(x: Any, it: Any, e: Any, settled: Any) -> None:
    """Enter the statistics; if anything is not finite, the entire solution counts as not finite."""
    x.solved[0], x.solved[1] = 1.0 * it, e
    finite = e < math.inf
    x.solved[2] = where(settled, 0.0, 1.0)
    x.solved[3] = where(finite, 0.0, 1.0)
    cond(finite, nothing, lambda: for_range(x.nv, lambda j: put(x.y, j, math.nan)))


# ---- friction that grows ----------------------------------------------------------------------------------


def grow(x: Any, before: Any) -> Any:
    """Continuation: follow the solution from less friction to all of it; returns the iterations, including
    those before.

    The velocities of all solutions on the path are bounded, so where the first one is the only one, its path
    leads to full friction. Each iteration goes to where the first force changes its state, or twice as far as
    the previous one if that is more, and no farther than the tangents are valid. Where the path turns back,
    the determinant of A changes its sign, and friction decreases until the path turns again. Since it may
    turn just before its end, full friction is not reached before the error is gone, too.
    """

    def turn(it: Any, e: Any, longest: Any, least: Any) -> tuple[Any, Any, Any, Any]:
        once(x, linearise)
        once(x, along_path, longest, least)
        share, now = while_loop(
            lambda share, now: (now > maximum(AWAY, e)) & (share > rounding(AHEAD, 0.5)),
            lambda share, now: (0.5 * share, once(x, go_back, 0.5 * share)),
            1.0,
            once(x, go, 1.0),
        )
        taken = share * abs(x.less[1])
        return it + 1, now, where(share < 1.0, taken, 1.0), where(share < 1.0, 0.0, 2.0 * taken)

    def goes_on(it: Any, e: Any, *_: Any) -> Any:
        return ((x.less[0] > 0.0) | (e > x.tolerance[0])) & (it < last) & (e < math.inf)

    x.errors[5] = 0.0
    last = before + CURVED + 2 * (x.n_of[0] + x.nv)
    once(x, leave)
    it, *_ = while_loop(goes_on, turn, before, 0.0, 1.0, 0.0)
    x.less[1] = 0.0
    return it


def along_path(x: Any, longest: Any, least: Any) -> None:
    """Compute the step to the path, and along it to where the first force changes its state.

    Along the path, with the share s of friction, A e = J^T dg/ds. The step to the path is orthogonal to (e,
    1), in the metric of H and of the square of J^T dg/ds: where the path turns back, it has no point with the
    same s nearby. ``longest``, ``least``: bounds of the change of s; the latter is allowed across changes of
    state.
    """

    def weight(j: Any, all_: Any) -> Any:
        # Of what the error may be, too: where all sticks, what friction adds is rounding.
        most = AWAY * x.Jg[j]
        return all_ + (x.d[j] * x.d[j] + most * most) * x.row_mobility[j]

    sign = once(x, sign_of_A)
    x.less[1] = -sign
    once(x, expect_these)
    once(x, expect_more)
    once(x, toward)
    for_range(x.nv, lambda j: put(x.d, j, x.d[j] + x.residual[j]))
    square = for_range(x.nv, weight, smallest())
    once(x, back_substitute, x.d)
    for_range(x.nv, lambda j: put(x.along, j, x.d[j]))
    once(x, follow)
    step = minimum(maximum(once(x, first_change, 1.0), least), longest)
    square = for_range(x.nv, lambda j, all_: all_ + x.d[j] * x.Hd[j], square)
    once(x, expect)
    once(x, toward)
    once(x, back_substitute, x.d)
    step = step - for_range(x.nv, lambda j, all_: all_ + x.d[j] * x.Hd[j], 0.0) / square
    step = minimum(step, where(sign > 0.0, x.less[0], 1.0))
    x.less[1] = -sign * step
    for_range(x.nv, lambda j: put(x.d, j, x.d[j] + step * x.along[j]))
    once(x, expect_more)
    once(x, follow)


def take_friction(x: Any, less: Any) -> None:
    """Reduce friction by a share ``less``; that of each contact grows at a rate of its own.

    Otherwise contacts that are mirror images would change state at the same time, and the sign of the
    determinant would not tell which way the path goes on.
    """

    def of_constraint(c: Any) -> None:
        acts = where(x.c_kind[c] == SPRING, 1.0, (1.0 - less) * (1.0 + own_rate(x, c) * less))
        x.c_mu[c], x.c_arm[c] = (where(acts < 1.0, acts * x.c_full[c, k], x.c_full[c, k]) for k in range(2))

    x.less[0] = less
    for_range(x.n_of[0], of_constraint)


def own_rate(x: Any, c: Any) -> Any:
    """A number from 0 to 1 for a constraint: no two are nearly equal, and each path has others."""
    turns = APART * x.less[2] * (1.0 * c)
    return turns - floor(turns)


def rates_of_friction(x: Any, c: Any) -> list[Any]:
    """Derivatives of mu and arm of a constraint along the step; 0 except on a path."""
    rate = -x.less[1] * (1.0 + own_rate(x, c) * (2.0 * x.less[0] - 1.0))
    return [where(abs(x.less[1]) > 0.0, rate * x.c_full[c, k], 0.0) for k in range(2)]


def expect_more(x: Any) -> None:
    """Add the change of the expected impulses by the change of friction along the step."""

    def of_constraint(c: Any) -> None:
        p, acts = tried_of(x, c, HERE, mobility(x, c)), (x.c_mu[c], x.c_arm[c])
        more = growth(x.c_kind[c], p, acts, rates_of_friction(x, c), load(x, c))
        write_row(x.c_expected, c, [x.c_expected[c, k] + m for k, m in enumerate(more)])

    for_range(x.n_of[0], of_constraint)


# ---- laws -------------------------------------------------------------------------------------------------


def mobility(x: Any, c: Any) -> Any:
    """Mobility w of a constraint; 0 for those of loops."""
    return where(x.c_kind[c] == LINE, 0.0, x.c_w[c])


def impulse_at(x: Any, c: Any, k: Any, share: Any) -> Any:
    """A component of the impulse of a constraint after a fraction of the Newton step."""
    if share is HERE:
        return x.c_g[c, k]
    return x.c_g[c, k] + share * x.c_expected[c, k]


def row_impulse_at(x: Any, i: Any, share: Any) -> Any:
    """The impulse of a row after a fraction of the Newton step."""
    if share is HERE:
        return x.r_g[i]
    return x.r_g[i] + share * x.r_expected[i]


def times(G: Any, u: Any) -> tuple[Any, Any, Any]:
    """G u of a constraint."""
    a, b, d, e, f, n, p, q = G
    v = Vector3(*u)
    return Vector3(a, b, e + q).dot(v), Vector3(b, d, f - p).dot(v), Vector3(e - q, f + p, n).dot(v)


def tangent_of(x: Any, c: Any) -> tuple[Any, Any, list[Any]]:
    """G of a constraint, the part of its impulse proportional to N of its contact, and its tangent's impulse.

    A softened tangent has a share of the mobility in addition to its compliance, and aims at the velocity
    that compensates it at the present impulse.
    """
    w, N = mobility(x, c), load(x, c)
    more = x.errors[5] * w
    R = tuple(x.c_R[c, k] + more for k in range(2))
    g, u = ([of[c, k] for k in range(3)] for of in (x.c_g, x.c_u))
    aim = [x.c_aim[c, k] + more * g[k] for k in range(3)]
    p = tuple(tried(g[k], u[k], aim[k], w, R[k // 2]) for k in range(3))
    G, const = tangent(x.c_kind[c], p, R, x.c_w[c], x.c_mu[c], x.c_arm[c], N)
    still = times(G, tuple(a - b for a, b in zip(aim, u, strict=True)))

    def by_load() -> tuple[Any, ...]:
        """Each of both is const here; N of the tangent of the contact, an earlier constraint, may differ."""
        per = where(N > 0.0, 1.0 / where(N > 0.0, N, 1.0), 0.0)
        by, more = [per * a for a in const], x.c_expected[x.c_of[c], 2] - N
        return *by, *(a + more * b for a, b in zip(const, by, strict=True))

    found = cond(x.c_kind[c] == SPIN, by_load, lambda: (0.0, 0.0, 0.0, *const))
    return G, found[:3], [a + b for a, b in zip(found[3:], still, strict=True)]


def row_tangent_of(x: Any, i: Any) -> tuple[Any, Any]:
    """The same of a row."""
    p, forward, back = tried_of_row(x, i, HERE, x.r_w[i])
    numbers = x.r_R[i], x.r_aim[i], x.r_low[i], x.r_high[i], x.r_speed[i], x.r_speed_R[i]
    const, G = row_tangent(p, *numbers, forward, back)
    return G, const - G * (x.r_gain[i] * x.y[x.r_row[i]])


def load(x: Any, c: Any, share: Any = HERE) -> Any:
    """Normal impulse of the contact that torsional friction belongs to, after a fraction of the
    Newton step.
    """
    return impulse_at(x, where(x.c_kind[c] == SPIN, x.c_of[c], c), 2, share)


def tried_of(x: Any, c: Any, share: Any, w: Any) -> tuple[Any, ...]:
    """Trial impulse p of a constraint after a fraction of the Newton step."""
    R, u = (x.c_R[c, 0], x.c_R[c, 0], x.c_R[c, 1]), [x.c_u[c, k] for k in range(3)]
    if share is not HERE:
        u = [u[k] + share * x.c_du[c, k] for k in range(3)]
    return tuple(tried(impulse_at(x, c, k, share), u[k], x.c_aim[c, k], w, R[k]) for k in range(3))


def tried_of_row(x: Any, i: Any, share: Any, w: Any) -> tuple[Any, Any, Any]:
    """Trial impulse p of a row, and p with its largest speed in both directions."""
    j, gain = x.r_row[i], x.r_gain[i]
    y = x.y[j] if share is HERE else x.y[j] + share * x.d[j]
    u, g, speed = gain * y, row_impulse_at(x, i, share), x.r_speed[i]
    forward, back = (tried(g, u, aim, w, x.r_speed_R[i]) for aim in (speed, -speed))
    return tried(g, u, x.r_aim[i], w, x.r_R[i]), forward, back


def nearest_of(x: Any, c: Any, w: Any) -> tuple[Any, Any, Any]:
    """P(p) of a constraint."""
    return nearest(x.c_kind[c], tried_of(x, c, HERE, w), x.c_mu[c], x.c_arm[c], load(x, c))


def row_nearest_of(x: Any, i: Any, w: Any) -> Any:
    """P(p) of a row."""
    p, forward, back = tried_of_row(x, i, HERE, w)
    return row_nearest(p, x.r_low[i], x.r_high[i], forward, back)


def error_of_laws(x: Any) -> Any:
    """Sum of w |g - P(p)|^2 [J]; ``held`` has that of loops and prescribed joints."""

    def of_constraint(c: Any, total: Any, held: Any) -> tuple[Any, Any]:
        loop, own = x.c_kind[c] == LINE, 0.0
        share = where(loop, x.held[0], 1.0)
        for k, found in enumerate(nearest_of(x, c, mobility(x, c))):
            off = share * (x.c_g[c, k] - found)
            total, own = total + x.c_w[c] * off * off, own + x.c_w[c] * off * off
        x.c_error[c] = own
        return total, held + where(loop, own, 0.0)

    def of_row(i: Any, total: Any, held: Any) -> tuple[Any, Any]:
        w = x.r_w[i]
        off = x.r_g[i] - row_nearest_of(x, i, w)
        x.r_error[i] = w * off * off
        return total + w * off * off, held + where(x.r_kind[i] == PRESCRIBED, w * off * off, 0.0)

    total, held = for_range(x.n_of[0], of_constraint, 0.0, 0.0)
    total, x.held[1] = for_range(x.n_of[1], of_row, total, held)
    return total


def error(x: Any) -> Any:
    """The error beyond rounding, relative to the sum of the sizes of the impulses in the step.

    Their resultant would be no measure: weight, or a motor against a joint limit, may cancel. sqrt(M) g dt is
    the weight's size in this measure.
    """

    def momentum(j: Any, *sums: Any) -> tuple[Any, ...]:
        return tuple(s + square for s, square in zip(sums, squares_of(x, j), strict=True))

    left, given, acted, all_ = for_range(x.nv, momentum, 0.0, 0.0, 0.0, 0.0)
    x.errors[0] = left
    rows = for_range(x.n_of[1], lambda i, total: total + square_of_row(x, i), 0.0)
    return beyond_rounding(x, x.span[0], left + x.errors[1], given, acted, all_, rows, x.composite[0, 0])


def squares_of(x: Any, j: Any) -> list[Any]:
    """Squares of residual, given impulses, acting ones and their sum in a row, times its mobility [J]."""
    r, weight = x.residual[j], x.row_mobility[j]
    numbers = r, x.span[0] * (x.tau[j] - x.C[j]), x.Hy[j] - x.b[j] - r, x.b[j]
    return [z * z * weight for z in numbers]


def square_of_row(x: Any, i: Any) -> Any:
    """Rows one by one: a motor against a joint limit has no net impulse, yet the error is relative to it."""
    g = x.r_gain[i] * x.r_g[i]
    return g * g * x.row_mobility[x.r_row[i]]


def beyond_rounding(
    x: Any, time: Any, left: Any, given: Any, acted: Any, all_: Any, rows: Any, mass: Any
) -> Any:
    """Root of the residual beyond rounding, relative to the impulses and to the weight over a time [s]."""
    found, least = sqrt(left), in_precision(*ROUNDING) * sqrt(all_)
    gravity = vector(x.gravity)
    weight = time * sqrt(mass * gravity.dot(gravity))
    all_of_them = weight + sqrt(given) + sqrt(acted) + sqrt(rows) + smallest()
    return where(found <= least, 0.0, found - least) / all_of_them


def error_of_groups(x: Any) -> Any:
    """The largest error of a group (groups.py), relative to its own impulses and its weight in a step.

    Also in impacts: the impulses of a linkage that takes part in none of them are rounding.
    """

    def momentum(j: Any) -> None:
        for k, square in enumerate(squares_of(x, j)):
            add_to(x, x.row_group[j], ERROR + k, square)

    def row(i: Any) -> None:
        g = x.row_group[x.r_row[i]]
        add_to(x, g, ERROR, x.r_error[i])
        add_to(x, g, ERROR + 4, square_of_row(x, i))

    def body(b: Any) -> None:
        carries = (b > 0) & (x.parent[b] == 0)  # all that hangs on it
        add_to(x, group_of_body(x, b), ERROR + 5, where(carries, x.composite[b, 0], 0.0))

    def error_of(p: Any, most: Any) -> Any:
        return maximum(most, beyond_rounding(x, x.dt[0], *(x.by_group[p, ERROR + k] for k in range(6))))

    each_group(x, lambda p: for_range(6, lambda k: put(x.by_group, (p, ERROR + k), 0.0)))
    for_range(x.nv, momentum)
    for_range(x.n_of[0], lambda c: add_to(x, x.c_group[c], ERROR, x.c_error[c]))
    for_range(x.n_of[1], row)
    for_range(x.n_bodies, body)
    return each_group(x, error_of, 0.0)


def relative(x: Any, c: Any, V: Any) -> tuple[Any, ...]:
    """u = E (V_b - V_a) of a constraint."""
    V_ab = between(x, c, V)
    return tuple(_dot(motion(x.c_E, c, 6 * k), V_ab) for k in range(3))


def before(x: Any, c: Any) -> tuple[Any, ...]:
    """u of a constraint before the kick."""
    return relative(x, c, x.V)


def _dot(E: Any, V: Any) -> Any:
    return E.ang.dot(V.ang) + E.lin.dot(V.lin)


def take_products(x: Any) -> None:
    """C at the mean velocity; in parts where it would change by ten times their momentum, that of the guess.

    In such a step a joint would turn by about a radian, and the error would grow from iteration to iteration,
    beyond all bounds.
    """
    cond(x.span[0] > 0.0, lambda: once(x, _take_products), nothing)


def _take_products(x: Any) -> None:
    for_range(x.n_bodies, lambda b: write_row(x.W, b, (motion(x.V, b) + motion(x.V_y, b)) * 0.5))
    once(x, bias, x.C)

    def of_part(p: Any) -> None:
        first, count = x.part_rows[p, 0], x.part_rows[p, 1]

        def sums(k: Any, change: Any, momentum: Any) -> tuple[Any, Any]:
            j = first + k
            more, given = x.span[0] * (x.C[j] - x.C_guess[j]), x.span[0] * x.tau[j]
            weight = x.row_mobility[j]
            return change + more * more * weight, momentum + (x.Hv0[j] * x.Hv0[j] + given * given) * weight

        change, momentum = for_range(count, sums, 0.0, 0.0)
        cond(change <= WILD**2 * momentum, nothing, lambda: those_of_the_guess(x, first, count))

    for_range(x.nv, lambda j: put(x.y_of_C, j, x.y[j]))
    for_range(x.n_parts, of_part)


def those_of_the_guess(x: Any, first: Any, count: Any) -> None:
    """Copy the velocity products of the guess in so many rows."""
    for_range(count, lambda k: put(x.C, first + k, x.C_guess[first + k]))
    for_range(count, lambda k: put(x.y_of_C, first + k, x.guess[first + k]))


def impulses(x: Any, constraints: Any, rows: Any) -> None:
    """Jg = J^T g of the first constraints and rows."""

    def on_bodies(c: Any) -> None:
        E, g = (motion(x.c_E, c, 6 * k) for k in range(3)), (x.c_g[c, k] for k in range(3))
        f = Force.zero()
        for e, size in zip(E, g, strict=True):
            f = f + Force(e.ang, e.lin) * size
        push(x, c, f, x.pushed)

    def on_row(i: Any) -> None:
        j = x.r_row[i]
        x.Jg[j] = x.Jg[j] + x.r_gain[i] * x.r_g[i]

    def of_bodies() -> None:
        for_range(x.n_bodies, lambda b: write_row(x.pushed, b, Force.zero()))
        one_by_one(x, lambda _: for_range(constraints, on_bodies))
        once(x, generalized, x.pushed, x.Jg)

    cond(constraints > 0, of_bodies, lambda: for_range(x.nv, lambda j: put(x.Jg, j, 0.0)))
    for_range(rows, on_row)


# ---- the share of a direction -----------------------------------------------------------------------------


def search(x: Any, later: Any, kept: Any) -> tuple[Any, Any]:
    """Line search: take all of d if that reduces the error, or half; returns the fraction taken and the error
    there.

    With softened tangents (:func:`soften`), it is also taken if the next Newton step is shorter
    (:func:`is_shorter`). Otherwise it ends where the first force changes its state or, if that is more, at
    twice the fraction of the last cut step, halved for each step since, up to a quarter: of thousands of
    forces the first one changes after a thousandth. This doubling ends with the first path of continuation:
    motors at their limits, on links with hardly any inertia, may be flung past a solution again and again. If
    the determinant of A is negative, the path to a solution goes the other way. The first step, from a guess,
    is taken in full, and so is one whose error is rounding. Errors include new velocity products; otherwise
    two states may alternate.

    ``later``: 0 for these two; ``kept``: 1 if the tangents are from an earlier iteration: the step is then
    taken in full or not at all.
    """
    before, soft = x.errors[0] + x.errors[1], x.errors[5] > 0.0

    def nearer() -> Any:
        less = x.errors[0] + x.errors[1] < LESS * before
        return cond(less | ~soft | (kept > 0), lambda: less, lambda: once(x, is_shorter))

    def forward() -> tuple[Any, Any]:
        now = once(x, go, 1.0)
        return cond(nearer() | (later == 0), lambda: (1.0, now), shortened)

    def shortened() -> tuple[Any, Any]:
        return cond(kept > 0, lambda: (0.0, once(x, go_back, 1.0)), shorter)

    def shorter() -> tuple[Any, Any]:
        half = once(x, go_back, 0.5)
        return cond(nearer(), lambda: (0.5, half), from_start)

    def from_start() -> tuple[Any, Any]:
        once(x, go_back, 0.5)
        return to_change(1.0)

    def to_change(sign: Any) -> tuple[Any, Any]:
        beyond = maximum(once(x, first_change, sign), minimum(4.0 * x.errors[4], 0.25))
        back = where(beyond < math.inf, -beyond, 1.0)
        share = where(sign > 0.0, where(beyond < 1.0, beyond, 0.25), back)
        x.errors[4] = where(x.less[2] > 2.0, 0.0, abs(share))
        return share, once(x, go, share)

    x.errors[4] = 0.5 * x.errors[4]
    sign = cond(later > 0, lambda: once(x, sign_of_A), lambda: 1.0)
    return cond(sign > 0.0, forward, lambda: to_change(sign))


def is_shorter(x: Any) -> Any:
    """Natural monotonicity test: whether the Newton step from here with the present factors is shorter.

    This shows progress where the error does not: forces that hardly move anything, such as those of a wedged
    body, may be far from a solution although the error is small, and it rises on the way there, as where the
    direction of friction turns. All but Vd and Jg stay.
    """

    def keep(c: Any) -> None:
        write_row(x.c_change, c, [x.c_expected[c, k] for k in range(3)])

    def keep_row(i: Any) -> None:
        x.r_change[i] = x.r_expected[i]

    def put_back(c: Any) -> None:
        write_row(x.c_expected, c, [x.c_change[c, k] for k in range(3)])

    def put_back_row(i: Any) -> None:
        x.r_expected[i] = x.r_change[i]

    before = once(x, size_of_direction)
    for_range(x.nv, lambda j: put(x.along, j, x.d[j]))
    for_range(x.n_of[0], keep)
    for_range(x.n_of[1], keep_row)
    once(x, expect)
    once(x, direction)
    now = once(x, size_of_direction)
    for_range(x.nv, lambda j: put(x.d, j, x.along[j]))
    once(x, see, x.d, x.c_du)
    once(x, multiply, x.d, x.Hd)
    for_range(x.n_of[0], put_back)
    for_range(x.n_of[1], put_back_row)
    return now < LESS * before


def size_of_direction(x: Any) -> Any:
    """d.H d + sum of w |change of g|^2 [J]."""

    def of_constraint(c: Any, total: Any) -> Any:
        change = Vector3(*(x.c_expected[c, k] for k in range(3)))
        return total + x.c_w[c] * change.dot(change)

    total = for_range(x.nv, lambda j, total: total + x.d[j] * x.Hd[j], 0.0)
    total = for_range(x.n_of[0], of_constraint, total)
    return for_range(x.n_of[1], lambda i, all_: all_ + x.r_w[i] * x.r_expected[i] * x.r_expected[i], total)


def sign_of_A(x: Any) -> Any:
    """The sign of the determinant of A: the product of the signs of its pivots; + for a symmetric A."""

    def of_pivot(k: Any, sign: Any) -> Any:
        return where(x.Dinv[k] < 0.0, -sign, sign)

    return cond(x.n_of[4] > 0, lambda: for_range(x.n_columns, of_pivot, 1.0), lambda: 1.0)


def first_change(x: Any, sign: Any) -> Any:
    """The fraction of the Newton step, in either direction, just beyond the first change of a
    force's state.
    """

    def of_constraint(c: Any, least: Any) -> Any:
        kind, w = x.c_kind[c], mobility(x, c)
        p, q = tried_of(x, c, HERE, w), tried_of(x, c, sign, w)
        d = [b - a for a, b in zip(p, q, strict=True)]
        mu, arm, spins = x.c_mu[c], x.c_arm[c], kind == SPIN
        N = where(spins, load(x, c), p[2])  # below 0 where it is open: it rubs from where it touches
        more = where(spins, load(x, c, sign) - load(x, c), d[2])
        mu_rate, arm_rate = rates_of_friction(x, c)
        slips = _meets(p[:2], d[:2], mu * N, mu * more + mu_rate * N)
        bound, wider = arm * N, arm * more + arm_rate * N
        turns = [_ahead(_at(s * bound - p[2], d[2] - s * wider), bound, wider) for s in (1.0, -1.0)]
        gives = [_at(most - p[2], d[2]) for most in (mu, arm)]
        rubs, pulls = (kind == FRICTION) | spins, kind == SPRING
        for holds, ends in ((rubs, (_at(-N, more), *slips)), (spins, turns), (pulls, gives)):
            least = where(holds, functools.reduce(minimum, ends, least), least)
        return least

    def of_row(i: Any, least: Any) -> Any:
        w = x.r_w[i]
        p, q = tried_of_row(x, i, HERE, w)[0], tried_of_row(x, i, sign, w)[0]
        changes = x.r_low[i] < x.r_high[i]  # not where it has no impulse, as limits that another lane is near
        for bound in (x.r_low[i], x.r_high[i]):
            least = where(changes, minimum(least, _at(bound - p, q - p)), least)
        return least

    first = for_range(x.n_of[1], of_row, for_range(x.n_of[0], of_constraint, math.inf))
    return (1.0 + in_precision(*BEYOND)) * first + rounding(AHEAD, 0.5)


def _meets(p: Any, d: Any, most: Any, more: Any) -> list[Any]:
    """The fractions of a Newton step at which |p + share d| = most + share more."""
    square = d[0] * d[0] + d[1] * d[1] - more * more
    half = d[0] * p[0] + d[1] * p[1] - more * most
    zero = p[0] * p[0] + p[1] * p[1] - most * most
    inside = half * half - square * zero
    root = sqrt(maximum(inside, 0.0))
    far = where(half < 0.0, root - half, -half - root)
    ends = _at(far, square), _at(zero, far)
    return [where(inside >= 0.0, _ahead(end, most, more), math.inf) for end in ends]


def _ahead(end: Any, most: Any, more: Any) -> Any:
    """The fraction at which a force meets its bound, most + share more; infinity if it does not."""
    return where(most + end * more > 0.0, end, math.inf)


def _at(way: Any, speed: Any) -> Any:
    """way / speed if that is positive, else infinity."""
    moves = abs(speed) > 0.0
    share = way / where(moves, speed, 1.0)
    return where(moves & (share > rounding(AHEAD, 0.5)), share, math.inf)
