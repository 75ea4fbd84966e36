"""Derivatives of a step in which something lands fast (landings.py): y of the way, and z after it.

    r(y) = 0      H' (z' - v') - H (y - v) + s(y) - J'^T g'(J' z') = 0

r is the residual of a step, s that of it without all that can give impulses: contacts, loops, limits and
prescribed motions. What is primed is that of the poses at the landings, where z' is z and v' is v as seen
from the axes there. These poses, their shares of the step, and what acts there, follow from the middle of the
step and v alone, so with r_y, s_y and so on of step_derivatives.py

    dy = -r_y^-1 (r_q dq + r_v dv + r_tau dtau)
    dz' = -(H' + J'^T G' J')^-1 (z_q dq + z_v dv + (s_y - H) dy + r_tau dtau)

and z_q and z_v are taken in dual numbers, along one coordinate after the other, of the functions of the step.

Source: implicit function theorem, twice; dual numbers as in detection_derivatives.py.
Cost: twice that of step_derivatives.py, and of 2 nv times about ten times that of kinematics.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from robokit.contact.closing_derivatives import along, drift_tangents, loaded, motions, no_sums
from robokit.contact.constraint_derivatives import rates_of, seen
from robokit.contact.fields import FRICTION, LANDING_DERIVATIVES, LINE, SPIN, SPRING, STEP_PULLBACK, STOP
from robokit.contact.kinematics import (
    advance_along,
    entries_of_H,
    is_free_base,
    mass_matrix,
    multiply,
    place_bodies,
    velocities,
)
from robokit.contact.landings import find_times, go_to_landings, smooth_row, strike, strike_row, touches_now
from robokit.contact.linear import back_substitute_unsymmetric, factor_unsymmetric
from robokit.contact.pattern import rows_of
from robokit.contact.solver import before, impulses, relative, see
from robokit.contact.step import ARRAYS
from robokit.contact.step_derivatives import (
    aim_by_gap,
    balance,
    by_motor,
    constrain,
    finish,
    kernel_of_copies,
    right_sides,
    settle,
)
from robokit.contact.vectors import add, nothing, put, vector, write_row
from robokit.engine.loops.dual import differentiated, fill
from robokit.engine.loops.fields import once
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.rotation import quat_exp, quat_wxyz_to_rotation
from robokit.spatial.scalars import where

MOVE = """
    q q_drifted coordinate R p origin S S_by_row I composite H multiplied multiples row_sums V V_y v0
    contact_place contact_frame c_E c_aim c_shift c_late c_g r_aim account landing_way pushed Jg d Hd residual
""".split()
"""Arrays of the way to the landings that have derivatives: what it begins with, works with and ends with."""

STAY = "c_R r_R r_g y c_u".split()
"""Others that the second solution has of its own."""

BEGIN = "q v0 contact_place contact_frame c_E c_aim c_shift c_g r_aim account".split()
"""What it begins with."""


@functools.cache
def landed_kernel() -> LoopKernel:
    """The kernel of ``next``, of all robots."""
    of_step = {a.name: a for a in ARRAYS}

    def more(names: list[str], ending: str) -> list[ArrayOf]:
        return [replace(of_step[name], name=name + ending, role="work") for name in names]

    own = (*LANDING_DERIVATIVES, *STEP_PULLBACK, *more([*MOVE, *STAY], "_kept"), *more(MOVE, "_moves"))
    return kernel_of_copies("contact_landed", landed, ARRAYS, own, "next")


def landed(x: Any) -> None:
    """``next`` of a step in which something lands fast, from the arrays of its first solution."""
    x.bounce_share[0] = 1.0
    once(x, drift_tangents, 0, x.v_before, x.v_before)
    _keep(x, [*MOVE, *STAY])
    _impact(x)
    _keep(x, [*MOVE, *STAY], back=True)
    _without_impulses(x)
    balance(x)
    once(x, constrain)
    for_range(2, lambda m: _columns(x, m))
    settle(x, x.r_after[0])
    _solve(x)
    for_range(x.nv, lambda j: put(x.way, j, 2.0 * x.y[j] - x.y_back[j]))
    for_range(x.nv, lambda j: put(x.y, j, x.y_back[j]))
    finish(x, x.way, x.dy_after)


def _keep(x: Any, names: list[str], back: bool = False) -> None:
    """Copy arrays of these names to those that keep them, or back."""
    for name in names:
        arrays = getattr(x, name), getattr(x, name + "_kept")
        _copy(*(arrays[::-1] if back else arrays))


def _copy(A: Any, B: Any) -> None:
    """Copy numbers from A to B."""

    def part(k: Any) -> None:
        if len(A.shape) == 1:
            B[k] = A[k]
        else:
            _copy(A[k], B[k])

    for_range(A.shape[0], part)


# ---- the second solution ----------------------------------------------------------------------------------


def _impact(x: Any) -> None:
    """Go to the second solution: factors of its residual's derivative, slopes of laws there, and z."""

    def as_soft(A: Any, first: Any) -> Any:
        return where((x.soft[0] > 0) & (A < math.inf), first, A)

    def constraint(c: Any) -> None:
        first = [x.c_R[c, k] for k in range(2)]
        strike(x, c)
        write_row(x.c_R, c, [as_soft(x.c_R[c, k], R) for k, R in enumerate(first)])
        write_row(x.c_g, c, [where(x.c_kind[c] == SPRING, 0.0, x.c_g_after[c, k]) for k in range(3)])

    def row(i: Any) -> None:
        first = 1.0 * x.r_R[i]
        strike_row(x, i)
        x.r_R[i] = as_soft(x.r_R[i], first)
        x.r_g[i] = where(smooth_row(x, i), 0.0, x.r_g_after[i])

    def slopes(c: Any) -> None:
        write_row(x.c_slopes_after, c, [x.c_slopes[c, k] for k in range(9)])
        write_row(x.c_by_N_after, c, vector(x.c_by_N, c))

    find_times(x)
    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    go_to_landings(x)
    for_range(x.nv, lambda j: put(x.y, j, x.y_after[j]))
    once(x, see, x.y, x.c_u)
    rows_of(x, x.entries, x.entries_length)
    _clear(x.r_y)
    entries_of_H(x, lambda r, c, number: add(x.r_y, (r, c), number))
    once(x, constrain)
    factor_unsymmetric(x, x.r_y, x.r_y_inverse)
    _copy(x.r_y, x.r_after[3])
    _copy(x.r_y_inverse, x.r_after_inverse)
    for_range(x.n_of[0], slopes)
    _copy(x.c_g, x.c_g_after)
    for_range(x.n_of[0], lambda c: write_row(x.c_u_after, c, _with_before(x, c)))
    for_range(x.nv, lambda j: put(x.y_back, j, x.y[j]))
    for_range(x.nv, lambda j: put(x.turns_back, j, -x.landing_way[j]))
    once(x, advance_along, x.q_drifted, x.y_back, x.turns_back, 1.0)


def _with_before(x: Any, c: Any) -> list[Any]:
    """u of a constraint; of loops with that before, which they aim at."""
    came = before(x, c)
    return [x.c_u[c, k] + where(x.c_kind[c] == LINE, came[k], 0.0) for k in range(3)]


def _clear(A: Any) -> None:
    for_range(A.shape[0], lambda r: for_range(A.shape[1], lambda c: put(A, (r, c), 0.0)))


def _without_impulses(x: Any) -> None:
    """s_q, s_v and s_y - H, of all but what gives impulses, to ``r_after``."""

    def constraint(c: Any) -> None:
        spring = x.c_kind[c] == SPRING
        for k in range(2):
            x.c_R[c, k] = where(spring, x.c_R[c, k], math.inf)
        write_row(x.c_g, c, [where(spring, x.c_g[c, k], 0.0) for k in range(3)])

    def row(i: Any) -> None:
        x.r_R[i] = where(smooth_row(x, i), x.r_R[i], math.inf)

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    balance(x)
    once(x, constrain)
    for m, M in enumerate((x.r_q, x.r_v, x.r_y)):
        _copy(M, x.r_after[m])
    entries_of_H(x, lambda r, c, number: add(x.r_after, (2, r, c), -number))
    _keep(x, ["c_R", "c_g", "r_R"], back=True)


# ---- the way to the landings, in dual numbers -------------------------------------------------------------


def _columns(x: Any, m: Any) -> None:
    """z_q (m = 0) or z_v (1), added to ``r_after``."""
    count = loaded(x)

    def column(c: Any) -> None:
        _begin(x)
        for_range(x.nv, lambda j: put(x.along_row, j, where(j == c, 1.0, 0.0)))
        for_range(x.nv, lambda j: put(x.landing_way_moves, j, where(m > 0, 0.0, x.along_row[j])))
        for_range(x.nv, lambda j: put(x.v0_moves, j, where(m > 0, x.along_row[j], 0.0)))
        once(x, velocities, x.along_row, x.V_along)
        origin = vector(x.V_along, 1, 3)
        along(x, c, count, [], rates_of(x), nothing)
        _seeds(x, m, c, origin)  # of all: where no body moves that they are on, the origin may
        for_range(x.n_of[1], lambda i: _seed_of_row(x, i, m, c))
        differentiated(
            lambda *arrays: _residual(SimpleNamespace(**dict(zip(names, arrays, strict=True))), x),
            [],
            {name: getattr(x, name + "_kept") if name in MOVE else getattr(x, name) for name in names},
            {name: [getattr(x, name + "_moves")] for name in MOVE},
            1,
        )
        for_range(x.nv, lambda j: add(x.r_after, (m, j, c), x.residual_moves[j]))

    names = [name for name in vars(x) if name != "once"]
    for_range(x.nv, column)


def _begin(x: Any) -> None:
    """What the way begins with; nothing moves."""
    _keep(x, BEGIN)
    fill(x.landing_way_kept, 0.0)
    for name in BEGIN:
        fill(getattr(x, name + "_moves"), 0.0)


def _seeds(x: Any, m: Any, c: Any, origin: Vector3) -> None:
    """Changes of contacts and loops by a coordinate, from the step's origin, which moves by ``origin``."""

    def constraint(i: Any) -> None:
        found, k = seen(x, i, *motions(x, i)), x.c_of[i]
        M = Motion(found.M.ang, found.M.lin - origin)

        def of_contact() -> None:
            write_row(x.contact_place_moves, k, M.lin + M.ang.cross(vector(x.contact_place, k)))
            for n, number in enumerate(M.ang.cross(vector(x.contact_frame, k, 6))):
                x.contact_frame_moves[k, 6 + n] = number
            x.c_aim_moves[i, 2] = x.c_aims[i, 0] * found.closer + _of_bounce(x, i, found.before[2])
            x.c_aim_moves[i, 2] = x.c_aim_moves[i, 2] + x.c_aims[i, 5] * found.heavier

        def moves() -> None:
            for r, e in enumerate(found.E):
                for n, number in enumerate(M.cross_force(e)):
                    x.c_E_moves[i, 6 * r + n] = number
            cond(x.c_kind[i] == FRICTION, of_contact, nothing)

        def is_faster() -> None:
            x.c_aim_moves[i, 2] = _of_bounce(x, i, found.u[2])

        cond(m > 0, lambda: cond(x.c_kind[i] == FRICTION, is_faster, nothing), moves)

    def turned(i: Any) -> None:
        passed = (x.turns[0] > 0) & (x.contact_bounces[where(x.c_kind[i] == FRICTION, x.c_of[i], 0)] > 1)
        x.c_aim_moves[i, 2] = x.c_aim_moves[i, 2] + where(passed, x.c_turned[i, m, c], 0.0)

    def one(i: Any) -> None:
        contact = where(x.c_kind[i] == SPIN, x.c_of[i], i)
        takes_part = (x.c_kind[i] == LINE) | touches_now(x, contact)
        cond(takes_part, lambda: constraint(i), nothing)
        cond(takes_part & (x.c_kind[i] == FRICTION), lambda: turned(i), nothing)

    for_range(x.n_of[0], one)


def _of_bounce(x: Any, i: Any, faster: Any) -> Any:
    """Change of the aim of a contact that bounces by its speed before."""
    return where(x.contact_bounces[x.c_of[i]] > 0, x.c_aims[i, 3] * faster, 0.0)


def _seed_of_row(x: Any, i: Any, m: Any, c: Any) -> None:
    """The aim of a limit follows its coordinate."""
    moves = (x.r_kind[i] == STOP) & (x.r_row[i] == c) & (m == 0)
    x.r_aim_moves[i] = cond(moves, lambda: -x.r_gain[i] * aim_by_gap(x, i), lambda: 0.0)


def _residual(x: Any, still: Any) -> None:
    """H' (z' - v') - H (y - v) - J'^T g', to ``residual``, in dual numbers; ``still`` has plain arrays."""

    def inertial(sign: float) -> None:
        for_range(x.nv, lambda j: put(x.d, j, x.d[j] - x.v0[j]))
        once(x, multiply, x.d, x.Hd)
        for_range(x.nv, lambda j: add(x.residual, j, sign * x.Hd[j]))

    def constraint(c: Any) -> None:
        u, came, line = relative(x, c, x.V_y), relative(x, c, x.V), x.c_kind[c] == LINE
        faster = [u[k] + where(line, came[k], 0.0) - still.c_u_after[c, k] for k in range(3)]
        bounces = x.contact_bounces[where(x.c_kind[c] == FRICTION, x.c_of[c], 0)] > 0
        aims = (x.c_kind[c] == FRICTION) & bounces
        faster[2] = faster[2] - where(aims, x.c_aim[c, 2] - still.c_aim[c, 2], 0.0)
        contact = where(x.c_kind[c] == SPIN, x.c_of[c], c)
        more_N = where(x.c_kind[c] == SPIN, x.c_g[contact, 2] - still.c_g_after[contact, 2], 0.0)
        for k in range(3):
            less = vector(still.c_slopes_after, c, 3 * k).dot(Vector3(*faster))
            x.c_g[c, k] = still.c_g_after[c, k] - less + still.c_by_N_after[c, k] * more_N

    fill(x.residual, 0.0)
    once(x, advance_along, x.q, x.d, x.landing_way, 1.0)
    once(x, place_bodies, x.q, 0)
    once(x, velocities, x.v0, x.V)
    once(x, mass_matrix)
    for_range(x.nv, lambda j: put(x.d, j, still.y[j]))
    inertial(-1.0)
    find_times(x)
    go_to_landings(x)
    for_range(x.nv, lambda j: put(x.d, j, still.y_back[j]))
    once(x, advance_along, x.q, x.d, x.landing_way, 1.0)
    once(x, velocities, x.d, x.V_y)
    inertial(1.0)
    for_range(x.n_of[0], constraint)
    once(x, impulses, x.n_of[0], 0)
    for_range(x.nv, lambda j: add(x.residual, j, -x.Jg[j]))


# ---- both solutions ---------------------------------------------------------------------------------------


def _solve(x: Any) -> None:
    """dz, to ``dy``, and the change of the velocity of the way, 2 dy - dz, to ``dy_after``."""
    count = 3 * x.nv
    second = SimpleNamespace(**vars(x))
    second.r_q, second.r_v, second.dy = x.r_after[0], x.r_after[1], x.dy_after
    right_sides(x)
    cond(x.through_motors[0] > 0, lambda: for_range(x.n_of[1], lambda i: by_motor(x, i)), nothing)
    right_sides(second)
    first, after = x.dy.reshape(x.nv, count), x.dy_after.reshape(x.nv, count)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(x.dy_after, (r, 2, c), x.dy[r, 2, c])))
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, first)

    def less(r: Any) -> None:
        def by_y(m: Any) -> None:
            share = x.r_after[2, r, m]
            for_range(count, lambda c: add(after, (r, c), -share * first[m, c]))

        for_range(x.nv, by_y)

    def end(r: Any, c: Any) -> None:
        z, y = 1.0 * after[r, c], 1.0 * first[r, c]
        first[r, c], after[r, c] = z, 2.0 * y - z

    for_range(x.nv, less)
    once(x, back_substitute_unsymmetric, x.r_after[3], x.r_after_inverse, after)
    no_sums(x, lambda b, first, n: cond(is_free_base(x, b), lambda: _turn(x, after, first, count), nothing))
    for_range(x.nv, lambda r: for_range(count, lambda c: end(r, c)))


def _turn(x: Any, A: Any, row: Any, count: Any) -> None:
    """Linear velocities of a base, as seen from the axes of the middle: columns of A, from its first row."""
    R = quat_wxyz_to_rotation(quat_exp(vector(x.turns_back, None, row))).T

    def column(c: Any) -> None:
        for k, turned in enumerate(R @ Vector3(*(A[row + 3 + n, c] for n in range(3)))):
            A[row + 3 + k, c] = turned

    for_range(count, column)
