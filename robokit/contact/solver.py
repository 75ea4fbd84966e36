"""The velocity at the end of a step: Newton's method on one convex problem, to a tolerance.

    minimise over y   1/2 (y - y*)^T H (y - y*) + sum_c l_c(J_c y)        H (y* - v) = dt (tau - C)

    r(y) = H y - b - J^T g(J y),   b = H v + dt (tau - C((v + y) / 2))
    A d = -r,  A = H + J^T G J,    y += share d

Velocity products C and De Saxce's shift of the contacts are taken anew in each residual, which so is that of
Coulomb's law. Iterations hold the shift, so that theirs is a convex problem; near the solution they are those
of Newton's method on Coulomb's law, whose G and A are not symmetric. See README.md here.

Source: laws.py.
"""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.fields import FRICTION, LINE, PRESCRIBED, SPEED, SPIN, SPRING
from robokit.contact.kinematics import bias, generalized, multiply, own_inertia, velocities
from robokit.contact.laws import LEAST, by_shift, law, of_coulomb, project, row, shift
from robokit.contact.linear import assemble, back_substitute, factor
from robokit.contact.pattern import symbolic
from robokit.contact.vectors import force, motion, nothing, one_by_one, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Vector3
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import clamp, maximum, minimum, sqrt, where

CAP = 120
"""Iterations at most: several times what the slowest steps of falls take."""

OUTSIDE = 1e-10
"""Share of the impulses by which linear ones may be outside of their sets, and momentum be lost."""

SHIFTS, NESTED = 16, 3
"""Iterations after which the shift is held, and how often it is taken anew where this has settled: each is a
convex problem with one solution, whatever way an iteration takes to it."""

NEAR = 0.1
"""Residual below which Newton's method is taken on Coulomb's law itself: from farther away it fails more
often than it saves an iteration."""

NEARER = 0.5
"""Of the residual before: such an iteration that leaves more has failed, and is taken back."""

LOOPS = 1e-8
"""Tolerance of a robot with loops: each iteration leaves 1e-3 of the error of their forces (loops.py)."""

WILD = 10.0
"""Change of velocity products in an iteration, over the momentum, that is not taken. At 1 the fall of a chain
of 100 links loses 28 % of its energy by it, at 10 and without it 2 %; without it flung chains do not stay
finite."""

ENOUGH_AT_ONE, ENOUGH = 0.25, 0.1
"""Of the slope at 0: a full step, or a share of it, that leaves no more has found the valley."""

ROUNDING = 1e-12
"""Of the momentum: a residual below it is rounding, which rows of 1e-4 of the mobility see 1e4 times.

A row whose compliance over the mobility is beyond its inverse has an impulse that no velocity changes.
"""


def solve(x: Any) -> None:
    """y, the impulses c_g and r_g, and what it took, from v0, tau, guess, dt and the constraints."""
    tolerance = x.tolerance[0]
    goal = where(x.n_of[3] > 0, minimum(tolerance, LOOPS), tolerance)

    def begin(j: Any) -> None:
        x.y[j], x.d[j], x.row_mobility[j] = x.guess[j], 0.0, 1.0 / own_inertia(x, j)

    for_range(x.nv, begin)
    once(x, multiply, x.v0, x.Hv0)
    once(x, multiply, x.y, x.Hy)
    see(x, x.y, x.c_u)
    for_range(x.n_bodies, lambda b: write_row(x.V_y, b, motion(x.Vd, b)))
    for_range(x.n_of[0], lambda c: write_row(x.c_du, c, [0.0] * 3))
    once(x, symbolic)
    x.n_of[6] = 0
    first = once(x, residual, 1)
    it, e, outside, _, _, _ = while_loop(
        lambda it, e, outside, settled, *_: (settled > 0) | ((it < CAP) & (outside > OUTSIDE)),
        lambda it, e, _, settled, exact, nested: turn(x, goal, it, e, settled, exact, nested),
        0,
        first,
        math.inf,
        0,
        _exact_next(x, first, 0),
        0,
        most=2 * CAP,  # each iteration may be followed by a look at its impulses
    )

    def end() -> None:
        go(x, 1.0)
        accept(x, 1.0, False)

    def at_the_cap() -> None:
        once(x, direction)
        once(x, expect)
        ray(x)

    cond(outside <= OUTSIDE, end, at_the_cap)
    report(x, it, e, e <= goal)


def turn(x: Any, goal: Any, it: Any, e: Any, settled: Any, exact: Any, nested: Any) -> tuple[Any, ...]:
    """An iteration; of what is settled, how much of its linear impulses is outside."""
    cond(settled > 0, nothing, lambda: once(x, system, exact))
    once(x, direction)

    def iteration() -> tuple[Any, ...]:
        free = it < SHIFTS
        update = where(free, 1, 0)
        once(x, multiply, x.d, x.Hd)
        go(x, cond(exact > 0, lambda: 1.0, lambda: search(x)))
        cond(x.n_of[3] > 0, lambda: multiply_again(x), nothing)
        now = once(x, residual, update)
        failed = (exact > 0) & ~((now <= NEARER * e) | (now <= goal))

        def back() -> Any:
            go(x, -1.0)
            return once(x, residual, update)

        now = cond(failed, back, lambda: now)
        again = where(failed, 0, _exact_next(x, now, it + 1))
        found = (now <= goal) & ((exact > 0) | (again == 0)) & ~failed
        deeper = found & ~free & (nested < NESTED)
        now = cond(deeper, lambda: once(x, residual, 1), lambda: now)
        deep = nested + where(deeper, 1, 0)
        return it + 1, now, math.inf, where(found & ~deeper, 1, 0), again, deep

    return cond(settled > 0, lambda: (it, e, once(x, expect), 0, exact, nested), iteration)


def _exact_next(x: Any, e: Any, it: Any) -> Any:
    """Whether the next iteration is one on Coulomb's law."""
    return where((e < NEAR) & (x.n_of[4] > 0) & (it < SHIFTS), 1, 0)


def system(x: Any, exact: Any) -> None:
    """A and its factors; ``exact``: 1 for slopes of Coulomb's law."""

    def of_constraint(c: Any) -> None:
        G, u = [x.c_G[c, k] for k in range(6)], [x.c_u[c, k] for k in range(3)]
        by_u = by_shift(u, x.c_R[c, 0], x.c_R[c, 1], [x.c_aim[c, k] for k in range(3)], x.c_mu[c])
        cond(_slides(x, c), lambda: write_row(x.c_G, c, of_coulomb(G, by_u)), nothing)

    x.n_of[5] = exact
    cond(exact > 0, lambda: for_range(x.n_of[0], of_constraint), nothing)
    once(x, assemble, x.n_of[0], x.n_of[1])
    once(x, factor)
    keep_slopes(x)


def direction(x: Any) -> None:
    """d = -A^-1 r, and the velocities of constraints that it gives."""
    for_range(x.nv, lambda j: put(x.d, j, -x.residual[j]))
    once(x, back_substitute, x.d)
    see(x, x.d, x.c_du)


def see(x: Any, v: Any, u: Any) -> None:
    """The velocities u of constraints at a velocity v."""
    once(x, velocities, v, x.Vd)
    for_range(x.n_of[0], lambda c: write_row(u, c, relative(x, c, x.Vd)))


def go(x: Any, share: Any) -> None:
    """Take a share of the direction."""

    def coordinate(j: Any) -> None:
        x.y[j] = x.y[j] + share * x.d[j]
        x.Hy[j] = x.Hy[j] + share * x.Hd[j]

    for_range(x.nv, coordinate)
    for_range(x.n_bodies, lambda b: write_row(x.V_y, b, motion(x.V_y, b) + motion(x.Vd, b) * share))
    for_range(
        x.n_of[0], lambda c: write_row(x.c_u, c, [x.c_u[c, k] + share * x.c_du[c, k] for k in range(3)])
    )


def multiply_again(x: Any) -> None:
    """Multipliers of loops and prescribed joints: they aim at the impulses that were expected."""

    def of_constraint(c: Any) -> None:
        def line() -> None:
            R = x.c_R[c, 0], x.c_R[c, 0], x.c_R[c, 1]
            known = zip(R, linear_impulse(x, c), relative(x, c, x.V), strict=True)
            write_row(x.c_aim, c, [r * g - u for r, g, u in known])

        cond(x.c_kind[c] == LINE, line, nothing)

    def of_row(i: Any) -> None:
        def prescribed() -> None:
            known = x.r_g[i] - x.r_G_last[i] * x.r_gain[i] * x.d[x.r_row[i]]
            x.r_aim[i] = x.motion_values[x.r_of[i], SPEED] + x.r_R[i] * known

        cond(x.r_kind[i] == PRESCRIBED, prescribed, nothing)

    for_range(x.n_of[0], of_constraint)
    cond(x.n_motions > 0, lambda: for_range(x.n_of[1], of_row), nothing)


def report(x: Any, it: Any, e: Any, settled: Any) -> None:
    """Statistics; where something is not finite the whole solution is not."""
    x.solved[0], x.solved[1] = it * 1.0, e
    finite = e < math.inf
    x.solved[2] = where(settled, 0.0, 1.0)
    x.solved[3] = where(finite, 0.0, 1.0)
    cond(finite, nothing, lambda: for_range(x.nv, lambda j: put(x.y, j, math.nan)))


# ---- the residual -----------------------------------------------------------------------------------------


def relative(x: Any, c: Any, V: Any) -> tuple[Any, ...]:
    """u = E (V_b - V_a) of a constraint."""
    moved = motion(V, x.c_bodies[c, 1]) - motion(V, x.c_bodies[c, 0])
    return tuple(_dot(motion(x.c_E, c, 6 * k), moved) for k in range(3))


def _dot(E: Any, V: Any) -> Any:
    return E.ang.dot(V.ang) + E.lin.dot(V.lin)


def law_of(x: Any, c: Any, u: Any, expected: Any = None) -> Any:
    """The law of a constraint at a velocity."""
    aim = tuple(x.c_aim[c, k] for k in range(3))
    R = x.c_R[c, 0], x.c_R[c, 1]
    return law(x.c_kind[c], u, R, aim, x.c_mu[c], x.c_arm[c], x.c_shift[c], expected)


def row_of(x: Any, i: Any, u: Any, expected: Any = None) -> Any:
    """The law of a row at a velocity."""
    return row(u, x.r_R[i], x.r_aim[i], x.r_low[i], x.r_high[i], x.r_speed[i], x.r_speed_R[i], expected)


def _slides(x: Any, c: Any) -> Any:
    """Whether a contact slides; after a residual whose shift is new."""
    return (x.c_kind[c] == FRICTION) & (x.c_shift[c] > 0.0) & (x.c_g[c, 2] > 0.0)


def residual(x: Any, update: Any) -> Any:
    """Impulses and slopes at y and c_u, the residual; its size beyond rounding relative to the impulses.

    Args:
        x: the step.
        update: whether the shifts are taken anew.
    """

    def of_constraint(c: Any, sliding: Any) -> Any:
        u = tuple(x.c_u[c, k] for k in range(3))
        cond(update > 0, lambda: take_shift(x, c, u), nothing)
        g, G = law_of(x, c, u, linear_impulse(x, c))
        write_row(x.c_g, c, g)
        write_row(x.c_G, c, (*G, 0.0, 0.0))
        return sliding + where(_slides(x, c), 1, 0)

    def of_row(i: Any) -> None:
        j, gain = x.r_row[i], x.r_gain[i]
        expected = x.r_g[i] - x.r_G[i] * gain * x.d[j]
        x.r_g[i], x.r_G[i] = row_of(x, i, gain * x.y[j], expected)

    x.n_of[4] = for_range(x.n_of[0], of_constraint, 0)
    for_range(x.n_of[1], of_row)
    take_products(x)
    once(x, impulses, x.n_of[0], x.n_of[1])

    def momentum(j: Any, left: Any, given: Any, acted: Any, all_: Any) -> tuple[Any, ...]:
        change = x.dt[0] * (x.tau[j] - x.C[j])
        b = x.Hv0[j] + change
        r = x.Hy[j] - b - x.Jg[j]
        x.b[j], x.residual[j] = b, r
        weight = x.row_mobility[j]
        sums = (left, given, acted, all_)
        return tuple(s + z * z * weight for s, z in zip(sums, (r, change, x.Jg[j], b), strict=True))

    def by_row(i: Any, acted: Any) -> Any:
        """Rows one by one: a motor against a stop is no net impulse, and yet the residual is judged by it."""
        j, g = x.r_row[i], x.r_gain[i] * x.r_g[i]
        return acted + g * g * x.row_mobility[j]

    sums = for_range(x.nv, momentum, 0.0, 0.0, 0.0, 0.0)
    left, given, acted, all_ = (sqrt(s) for s in sums)
    acted = acted + sqrt(for_range(x.n_of[1], by_row, 0.0))
    rounding = ROUNDING * all_
    return where(left <= rounding, 0.0, left - rounding) / (given + acted + LEAST)


def take_products(x: Any) -> None:
    """C at the mean velocity; not where it would change by more than ten times the momentum there.

    A joint would turn by about a radian in such a step, and what one iteration leaves grows in the next, at
    last beyond all numbers.
    """
    for_range(x.n_bodies, lambda b: write_row(x.W, b, (motion(x.V, b) + motion(x.V_y, b)) * 0.5))
    once(x, bias, x.C_next)

    def sums(j: Any, change: Any, momentum: Any) -> tuple[Any, Any]:
        more, mean = x.dt[0] * (x.C_next[j] - x.C[j]), 0.5 * (x.Hv0[j] + x.Hy[j])
        return change + more * more * x.row_mobility[j], momentum + mean * mean * x.row_mobility[j]

    change, momentum = for_range(x.nv, sums, 0.0, 0.0)

    def take() -> None:
        for_range(x.nv, lambda j: put(x.C, j, x.C_next[j]))
        for_range(x.nv, lambda j: put(x.y_of_C, j, x.y[j]))

    cond((x.n_of[6] == 0) | (change <= WILD**2 * momentum), take, nothing)
    x.n_of[6] = 1


def take_shift(x: Any, c: Any, u: Any) -> None:
    """De Saxce's shift; of SPIN the normal impulse of its contact."""
    aim = tuple(x.c_aim[c, k] for k in range(3))
    spins = x.c_kind[c] == SPIN
    contact = where(spins, x.c_of[c], c)
    s = shift(u, x.c_R[c, 0], x.c_R[c, 1], aim, x.c_mu[c])
    x.c_shift[c] = where(spins, x.c_g[contact, 2], where(x.c_kind[c] == SPRING, 0.0, s))


def impulses(x: Any, constraints: Any, rows: Any) -> None:
    """Jg = J^T g of the first constraints and rows."""

    def on_bodies(c: Any) -> None:
        E, g = (motion(x.c_E, c, 6 * k) for k in range(3)), (x.c_g[c, k] for k in range(3))
        f = Force.zero()
        for e, size in zip(E, g, strict=True):
            f = f + Force(e.ang, e.lin) * size
        a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]
        write_row(x.pushed, b, force(x.pushed, b) + f)
        write_row(x.pushed, a, force(x.pushed, a) - f)

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


def search(x: Any) -> Any:
    """The share of d that minimises the cost along it: 1 mostly, else by regula falsi, then by halving."""

    def sums(j: Any, zero: Any, linear: Any, square: Any) -> tuple[Any, ...]:
        d = x.d[j]
        return zero + d * x.residual[j], linear + d * (x.Hy[j] - x.b[j]), square + d * x.Hd[j]

    at_zero, linear, square = for_range(x.nv, sums, 0.0, 0.0, 0.0)

    def slope(share: Any) -> Any:
        return once(x, slope_at, share, linear + share * square)

    at_one = slope(1.0)
    goal = ENOUGH * abs(at_zero)

    def halved() -> Any:
        def turn(k: Any, low: Any, at_low: Any, high: Any, at_high: Any, *_: Any) -> tuple[Any, ...]:
            width = high - low
            share = where(k < 2, low + width * (at_low / (at_low - at_high)), low + 0.5 * width)
            share = clamp(share, low + 0.05 * width, high - 0.05 * width)
            found = slope(share)
            rises = found > 0.0
            return (
                k + 1,
                where(rises, low, share),
                where(rises, at_low, found),
                where(rises, share, high),
                where(rises, found, at_high),
                share,
                found,
            )

        def wanted(*carried: Any) -> Any:
            return abs(carried[6]) > goal

        start = 0, 0.0, at_zero, 1.0, at_one, 1.0, at_one
        return while_loop(wanted, turn, *start, most=30)[5]

    done = (at_one <= 0.0) | (abs(at_one) <= ENOUGH_AT_ONE * abs(at_zero))
    return cond(done, lambda: 1.0, halved)


def slope_at(x: Any, share: Any, smooth: Any) -> Any:
    """Slope of the cost along d at a share of it; that of the smooth part is given."""

    def of_constraint(c: Any, total: Any) -> Any:
        du = [x.c_du[c, k] for k in range(3)]
        g, _ = law_of(x, c, tuple(x.c_u[c, k] + share * du[k] for k in range(3)))
        return total - (g[0] * du[0] + g[1] * du[1] + g[2] * du[2])

    def of_row(i: Any, total: Any) -> Any:
        j, gain = x.r_row[i], x.r_gain[i]
        g, _ = row_of(x, i, gain * (x.y[j] + share * x.d[j]))
        return total - g * gain * x.d[j]

    return for_range(x.n_of[1], of_row, for_range(x.n_of[0], of_constraint, smooth))


# ---- the end ----------------------------------------------------------------------------------------------


def keep_slopes(x: Any) -> None:
    """Keep those that the factor is made of."""
    for_range(x.n_of[0], lambda c: write_row(x.c_G_last, c, [x.c_G[c, k] for k in range(8)]))
    for_range(x.n_of[1], lambda i: put(x.r_G_last, i, x.r_G[i]))


def linear_impulse(x: Any, c: Any) -> tuple[Any, ...]:
    """g - G J d of a constraint."""
    a, b, d, e, f, n, p, q = (x.c_G_last[c, k] for k in range(8))
    du = Vector3(*(x.c_du[c, k] for k in range(3)))
    change = (Vector3(a, b, e + q).dot(du), Vector3(b, d, f - p).dot(du), Vector3(e - q, f + p, n).dot(du))
    return tuple(x.c_g[c, k] - change[k] for k in range(3))


def expect(x: Any) -> Any:
    """The admissible impulses next to g - G J d, d the direction from y: the share that was outside.

    With y + d those keep the momentum exactly, whatever G is, if A is made of it.
    """

    def of_constraint(c: Any, moved: Any, all_: Any) -> tuple[Any, Any]:
        g = linear_impulse(x, c)
        found = project(x.c_kind[c], g, x.c_mu[c], x.c_arm[c], x.c_shift[c])
        write_row(x.c_expected, c, found)
        for before, after in zip(g, found, strict=True):
            moved, all_ = moved + abs(after - before), all_ + abs(after)
        return moved, all_

    def of_row(i: Any, moved: Any, all_: Any) -> tuple[Any, Any]:
        before = x.r_g[i] - x.r_G_last[i] * x.r_gain[i] * x.d[x.r_row[i]]
        # Beyond its largest speed a row has none.
        g = clamp(before, minimum(x.r_low[i], 0.0), maximum(x.r_high[i], 0.0))
        x.r_expected[i] = g
        return moved + abs(g - before), all_ + abs(g)

    moved, all_ = for_range(x.n_of[0], of_constraint, 0.0, 0.0)
    rows_moved, rows_all = for_range(x.n_of[1], of_row, 0.0, 0.0)
    return maximum(moved / (all_ + LEAST), rows_moved / (rows_all + LEAST))


def accept(x: Any, share: Any, by_ray: bool) -> None:
    """The impulses that act: a share of those expected; by the ray, lines have those of their law."""

    def of_constraint(c: Any) -> None:
        def line() -> list[Any]:
            return list(law_of(x, c, tuple(x.c_u[c, k] for k in range(3)))[0])

        def expected() -> list[Any]:
            return [share * x.c_expected[c, k] for k in range(3)]

        write_row(x.c_g, c, cond(_is_line(x, c), line, expected) if by_ray else expected())

    def of_row(i: Any) -> None:
        u, g = x.r_gain[i] * x.y[x.r_row[i]], x.r_expected[i]
        shared = where(_is_given(x, i), g, share * g)
        x.r_g[i] = where(_is_free(x, i), (x.r_aim[i] - u) / x.r_R[i], shared) if by_ray else g

    for_range(x.n_of[0], of_constraint)
    for_range(x.n_of[1], of_row)


def _is_line(x: Any, c: Any) -> Any:
    """Whether a constraint holds both ways: a loop, or a spring."""
    return (x.c_kind[c] == LINE) | (x.c_kind[c] == SPRING)


def _is_free(x: Any, i: Any) -> Any:
    """Whether a row holds both ways without a bound."""
    return (x.r_low[i] == -math.inf) & (x.r_high[i] == math.inf) & (x.r_speed[i] == math.inf)


def _is_given(x: Any, i: Any) -> Any:
    """Whether no velocity changes a row's impulse."""
    j, gain = x.r_row[i], x.r_gain[i]
    return ROUNDING * x.r_R[i] * x.H[j, j] > gain * gain


def ray(x: Any) -> None:
    """The multiple of the admissible impulses that costs least in the dual: dissipative, momentum exact.

    theta = clip(-g.(J y* - aim) / (g.J A^-1 J^T g + g.R g), 0, 1),  A = H + J_L^T J_L / R

    L are the forces that hold both ways (damping, loops). They stay implicit, so that joints which move next
    to no inertia are not thrown. y* is the velocity without the others, aim_n less the shift.
    """

    def only_lines(c: Any) -> None:
        u = tuple(0.0 for _ in range(3))
        g, G = law_of(x, c, u)
        lines = where(_is_line(x, c), 1.0, 0.0)
        write_row(x.c_g, c, [where(lines > 0.0, z, 0.0) for z in g])
        write_row(x.c_G, c, [*(where(lines > 0.0, z, 0.0) for z in G), 0.0, 0.0])

    def only_free(i: Any) -> None:
        free = _is_free(x, i)
        given = where(_is_given(x, i), x.r_expected[i], 0.0)
        x.r_g[i] = where(free, x.r_aim[i] / x.r_R[i], given)
        x.r_G[i] = where(free, 1.0 / x.r_R[i], 0.0)

    def bounded(c: Any) -> None:
        write_row(x.c_g, c, [where(_is_line(x, c), 0.0, x.c_expected[c, k]) for k in range(3)])

    def bounded_row(i: Any) -> None:
        x.r_g[i] = where(_is_free(x, i) | _is_given(x, i), 0.0, x.r_expected[i])

    def respond(to: Any, momentum: Any) -> None:
        """A^-1 of a momentum and the impulses."""
        once(x, impulses, x.n_of[0], x.n_of[1])
        for_range(x.nv, lambda j: put(to, j, momentum(j) + x.Jg[j]))
        once(x, back_substitute, to)

    x.n_of[5] = 0
    for_range(x.n_of[0], only_lines)
    for_range(x.n_of[1], only_free)
    once(x, assemble, x.n_of[0], x.n_of[1])
    once(x, factor)
    respond(x.y, lambda j: x.b[j])
    for_range(x.n_of[0], bounded)
    for_range(x.n_of[1], bounded_row)
    respond(x.d, lambda j: 0.0)
    see(x, x.y, x.c_u)

    def of_constraint(c: Any, gain: Any, cost: Any) -> tuple[Any, Any]:
        u = [x.c_u[c, k] for k in range(3)]
        s = where(x.c_kind[c] == SPIN, 0.0, x.c_shift[c])
        g = [x.c_g[c, k] for k in range(3)]
        R = x.c_R[c, 0], x.c_R[c, 0], x.c_R[c, 1]
        for k in range(3):
            against = u[k] - x.c_aim[c, k] + (s if k == 2 else 0.0)
            gain = gain - g[k] * against
            cost = cost + where(abs(g[k]) > 0.0, R[k] * g[k] * g[k], 0.0)
        return gain, cost

    def of_row(i: Any, gain: Any, cost: Any) -> tuple[Any, Any]:
        g, u = x.r_g[i], x.r_gain[i] * x.y[x.r_row[i]]
        return gain - g * (u - x.r_aim[i]), cost + x.r_R[i] * g * g

    gain, cost = for_range(x.n_of[0], of_constraint, 0.0, 0.0)
    gain, cost = for_range(x.n_of[1], of_row, gain, cost)
    cost = for_range(x.nv, lambda j, total: total + x.Jg[j] * x.d[j], cost)
    theta = clamp(gain / (cost + LEAST), 0.0, 1.0)
    for_range(x.nv, lambda j: put(x.y, j, x.y[j] + theta * x.d[j]))
    see(x, x.y, x.c_u)
    accept(x, theta, True)
