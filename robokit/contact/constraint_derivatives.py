"""Derivatives of what contacts and loops do, by a motion along each coordinate of v: part of a step's.

    r_q   -d(J^T)/dq g + J^T G (dJ/dq y - daim/dq)        r_y   J^T G J        r_v   -J^T G daim/dv

A motion along a coordinate moves the bodies by X and changes their velocities V as the axes of joints move,
V_b' = V_a' + X_b x (V_b - V_a) from a body a to the next one, b. With the frame of a contact moved by M
(detection_derivatives.py), its rows E and its impulse f change by M x* E and M x* f.

Source: step_derivatives.py; for a force f in axes that stand still S_j . f changes by (X x S_j) . f.
Cost: of constraints with the world 2400 operations each, and O(n d) for the entries, d the depth of the tree;
of others, for each coordinate, O(n) of the bodies that carry constraints, and 400 operations each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from robokit.contact import closing_derivatives
from robokit.contact.closing_derivatives import along, gather, loaded, motions, of_motion
from robokit.contact.constraints import springs
from robokit.contact.constraints.contacts import HARDEST, TANGENTIAL, impact, stiffnesses, surface
from robokit.contact.detection_derivatives import frame_motion, gap_rate
from robokit.contact.fields import FRICTION, LINE, SPIN, SPRING
from robokit.contact.kinematics import velocities
from robokit.contact.laws import slip, tangent
from robokit.contact.solver import HERE, load, mobility, tried_of
from robokit.contact.vectors import add, force, motion, nothing, of_force, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision, smallest, while_loop
from robokit.spatial.scalars import sqrt, where

# ==== forces of contacts and loops ================================================================


HELD = 1e3
"""Stiffness of a loop over that of an iteration of the step: the iterations add up to one that holds it.
Where the step made loops stiffer it is less, by the root of the change: what softness leaves and rounding are
both in proportion to that, then.
"""

FLAT = 1e-9  # share of the bound of friction up to which a force is beside it by rounding

TOUCHES = 1e-12
"""Of a shape's size, or of a joint's bound: a gap below it is rounding, and what rests on such a gap is held
by its spring."""


def of_constraints(x: Any) -> None:
    """Add the contribution of all constraints, by a motion along each coordinate of v."""
    once(x, velocities, x.y, x.V_y)
    once(x, velocities, x.v0, x.V_before)
    for_range(x.n_bodies, lambda b: write_row(x.F, b, Force.zero()))
    for_range(x.n_of[0], lambda i: _prepare(x, i))

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        write_row(x.F, x.parent[b], force(x.F, x.parent[b]) + force(x.F, b))

    for_range(x.n_bodies - 1, inward)
    count = loaded(x)
    _with_world(x)

    def others() -> None:
        for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(x.z, (r, c), 0.0)))
        for_range(x.nv, lambda r: along(x, r, count, _forces(x), rates_of(x), lambda: _columns(x, r, count)))

    among = for_range(x.n_of[0], lambda i, found: where(_with_another(x, i), 1, found), 0)
    cond(among > 0, others, nothing)


def _with_another(x: Any, i: Any) -> Any:
    """Whether a constraint acts between two moving bodies, or closes a loop: these are done coordinate by
    coordinate.
    """
    return acts(x, i) & ((x.c_bodies[i, 0] > 0) | (x.c_kind[i] == LINE))


# ---- constraints with the world ---------------------------------------------------------------------------
# Such a constraint makes a force on its body b of that body's motion X, linear in it:
#
#     f_q = A X + U X_y + Z X_v        f_y = U X        f_v = Z X        by six motions of all bodies, once
#
# Along the axis S of a dof whose body has the parent a, every body b that it carries moves by X = S, and its
# velocities V_y and V_before change by S x (V_b - V_a). With psi = V_a x S this is, A less what is of V_b,
#
#     f_q = A' S + U psi_y + Z psi_v          A' = A + V_y,b x* U + V_before,b x* Z by rows
#
# A', U and Z of all that a body carries are sums, as composite inertias are, and enter as these do.


def _with_world(x: Any) -> None:
    """Add the contribution of constraints with the world, and the rotation of all forces with the axes of
    joints.
    """
    for_range(x.n_bodies, lambda b: for_range(108, lambda k: put(x.by_motion, (b, k), 0.0)))
    for_range(6, lambda k: for_range(x.n_of[0], lambda i: _along_unit(x, i, k)))
    for_range(x.n_bodies, lambda b: cond(x.loaded[b] > 0, lambda: _less_own(x, b), nothing))

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m

        def to_parent() -> None:
            for_range(108, lambda k: add(x.by_motion, (x.parent[b], k), x.by_motion[b, k]))

        cond(x.loaded[b] > 0, to_parent, nothing)

    for_range(x.n_bodies - 1, inward)

    def of_dof(k: Any, function: Any) -> None:
        enters = (x.loaded[x.dof_body[k]] > 0) & (x.dof_row[k] >= 0)
        cond(enters, lambda: function(x, k), nothing)

    for function in (_rates, _entries):
        for_range(x.n_dofs, lambda k, f=function: of_dof(k, f))


def _along_unit(x: Any, i: Any, k: Any) -> None:
    """Columns k of ``by_motion``: a constraint with the world, while its body moves by unit motion k."""
    b = x.c_bodies[i, 1]

    def enter() -> None:
        unit = of_motion([where(k == c, 1.0, 0.0) for c in range(6)])
        none = Motion(Vector3.zero(), Vector3.zero())
        for m, f in enumerate(_changes(x, i, none, unit, none, none)[:3]):
            for c, more in enumerate(f):
                add(x.by_motion, (b, 36 * m + 6 * c + k), more)

    cond(acts(x, i) & ~_with_another(x, i), enter, nothing)


def _less_own(x: Any, b: Any) -> None:
    """A' from A."""
    for c in range(6):
        row = force(x.by_motion, b, 6 * c)
        for m, V in ((1, x.V_y), (2, x.V_before)):
            row = row + motion(V, b).cross_force(force(x.by_motion, b, 36 * m + 6 * c))
        for n, number in enumerate(row):
            x.by_motion[b, 6 * c + n] = number


def _rates(x: Any, k: Any) -> None:
    """Both psi of a dof, to ``rates``."""
    S, parent = motion(x.S, k), x.parent[x.dof_body[k]]
    for m, V in enumerate((x.V_y, x.V_before)):
        for n, number in enumerate(motion(V, parent).cross(S)):
            x.rates[k, 6 * m + n] = number


def _entries(x: Any, k: Any) -> None:
    """Entries of a dof with those of its body, and with those that carry it."""
    b, row, S = x.dof_body[k], x.dof_row[k], motion(x.S, k)
    first, at = x.body_dofs[b, 0], x.path[k, 0]
    A, U, Z = ([force(x.by_motion, b, 36 * m + 6 * c) for c in range(6)] for m in range(3))
    psi = motion(x.rates, k), motion(x.rates, k, 6)
    turned = S.cross_force(force(x.F, b))

    def of_rows(M: list[Force]) -> Force:
        """M^T S."""
        total = Force.zero()
        for f, s in zip(M, S, strict=True):
            total = total + f * s
        return total

    S_A, S_U, S_Z = of_rows(A) - turned, of_rows(U), of_rows(Z)
    by_y, by_v = (of_force([S.dot(f) for f in M]) for M in (U, Z))
    by_q = of_force([S.dot(a) + psi[0].dot(u) + psi[1].dot(z) for a, u, z in zip(A, U, Z, strict=True)])

    def below(c: Any, column: Any) -> None:
        axis = motion(x.S, c)
        of_rates = motion(x.rates, c).dot(S_U) + motion(x.rates, c, 6).dot(S_Z)
        add(x.r_q, (row, column), axis.dot(S_A) + of_rates)
        add(x.r_y, (row, column), axis.dot(S_U))
        add(x.r_v, (row, column), axis.dot(S_Z))

    def of_body(n: Any) -> None:
        column = x.dof_row[first + n]
        cond(column < 0, nothing, lambda: below(first + n, column))

    def of_path(n: Any) -> None:
        c = x.ancestors[at + (k - first) + n]
        column = x.dof_row[c]

        def both() -> None:
            below(c, column)
            for M, f in ((x.r_q, by_q), (x.r_y, by_y), (x.r_v, by_v)):
                add(M, (column, row), motion(x.S, c).dot(f))

        cond(column < 0, nothing, both)

    for_range(x.body_dofs[b, 1], of_body)
    for_range(x.path[k, 1] - (k - first), of_path)


def _prepare(x: Any, i: Any) -> None:
    """Slopes, force, aims and the way in which it moves, of a constraint."""
    kind, a, b = x.c_kind[i], x.c_bodies[i, 0], x.c_bodies[i, 1]
    for k, slope in enumerate(_slopes(x, i)):
        x.c_slopes[i, k] = slope
    F = Force.zero()
    for k in range(3):
        F = F + force(x.c_E, i, 6 * k) * x.c_g[i, k]
    write_row(x.c_F, i, F)
    write_row(x.F, b, force(x.F, b) + F)
    write_row(x.F, a, force(x.F, a) - F)
    write_row(x.c_aims, i, [0.0] * 5)

    def contact() -> None:
        c = x.c_of[i]
        # What bounces changes as bounce_derivatives.py says.
        cond(x.contact_bounces[c] > 0, nothing, lambda: write_row(x.c_aims, i, _of_impact(x, i, c)))

    def spin() -> None:
        write_row(x.c_by_N, i, by_load(x, i))

    def spring() -> None:
        x.c_aims[i, 0], x.c_aims[i, 3] = springs.by_length(x, i)

    def others() -> None:
        cond(look_at == SPIN, spin, lambda: cond(look_at == SPRING, spring, nothing))

    look_at = cond(acts(x, i), lambda: kind, lambda: LINE)
    cond(look_at == FRICTION, contact, others)


def acts(x: Any, i: Any) -> Any:
    """Whether a constraint responds to a velocity; sliding torsional friction follows its contact."""

    def sum_of(k: Any) -> Any:
        return x.c_slopes[k, 0] + x.c_slopes[k, 4] + x.c_slopes[k, 8]

    return sum_of(i) + sum_of(where(x.c_kind[i] == SPIN, x.c_of[i], i)) > 0.0


def by_load(x: Any, i: Any) -> list[Any]:
    """Change of the moments of torsional friction by the normal impulse that bounds them."""
    u, aim = [x.c_u[i, k] for k in range(3)], [x.c_aim[i, k] for k in range(3)]
    N = x.c_g[x.c_of[i], 2]
    dx, dy, size = slip(u, aim)
    rolls = where(size > x.c_mu[i] * N * x.c_R[i, 0], x.c_mu[i] / (size + smallest()), 0.0)
    turns = aim[2] - u[2]
    arm = where(abs(turns) > x.c_arm[i] * N * x.c_R[i, 1], x.c_arm[i], 0.0)
    return [-rolls * dx, -rolls * dy, where(turns < 0.0, -arm, arm)]


def _slopes(x: Any, i: Any) -> list[Any]:
    """-dg/du of a constraint, by rows."""
    p, R = tried_of(x, i, HERE, mobility(x, i)), (x.c_R[i, 0], x.c_R[i, 1])
    numbers = x.c_w[i], x.c_mu[i], x.c_arm[i], load(x, i)
    G, _ = tangent(x.c_kind[i], p, R, *numbers)
    more = HELD * sqrt(x.held[0])
    a, b, d, e, f, n, p, q = (where(x.c_kind[i] == LINE, more * z, z) for z in G)
    return [a, b, e + q, b, d, f - p, e - q, f + p, n]


def _of_impact(x: Any, i: Any, c: Any) -> tuple[Any, ...]:
    """Derivatives of a contact's aim by its gap and, along t1, t2, n, by its speed before; and of that speed
    by the gap.

    The compliance changes with them, R = 1 / (dt kd), unless it is at its lower bound. In the law this is a
    change of the aim by -g dR, except for sliding friction, which is mu N whatever R_t is.
    """
    dt, phi = x.dt[0], x.contact_gap[c]
    k, R_t, R_n = x.pair_stiffness[0], x.c_R[i, 0], x.c_R[i, 1]
    g = [x.c_g[i, m] for m in range(3)]
    hit = x.contact_hit[c]
    rate = x.pair_impact[0] * hit
    w = x.body_mobility[x.c_bodies[i, 0]] + x.body_mobility[x.c_bodies[i, 1]]
    more, slope = impact(rate * hit, w * dt * x.pair_damping[0], w * dt)
    kd, _, kd_t = stiffnesses(x)
    least = in_precision(*HARDEST) * w
    changes_t, changes_n = R_t > least, R_n > least
    own_t = where(changes_t, R_t, 1.0 / (dt * (kd_t + TANGENTIAL**0.5 * more)))
    own_n = where(changes_n, R_n, 1.0 / (dt * (kd + more)))
    harder = 2.0 * rate * slope * dt * where((x.struck[0] == 1) | (x.contact_bounces[c] < -1), 0.0, 1.0)
    rests = where(x.struck[0] > 0, 0.0, 1.0)  # an impact aims at 0
    sticks = g[0] * g[0] + g[1] * g[1] < (x.c_mu[i] * g[2]) ** 2 * (1.0 - FLAT)
    changes = []
    for m in range(2):
        bent = -rests * x.contact_bristle[c, m] * TANGENTIAL * k * dt * own_t
        held = where(sticks & changes_t, g[m] * R_t, 0.0)
        changes.append((held - bent) * own_t * harder * TANGENTIAL**0.5)
    overlaps = phi < TOUCHES * x.shape_bound[x.contact_shapes[c, 1]]
    by_gap = rests * where(overlaps, -k * dt * own_n, -1.0 / dt)
    spring = rests * where(overlaps, x.c_aim[i, 2], 0.0)
    by_depth = where(phi < 0.0, -dt * k * w, 0.0)
    return by_gap, *changes, (where(changes_n, g[2] * R_n, 0.0) - spring) * own_n * harder, by_depth


# ---- contacts that bounce ----------------------------------------------------------------------------------


def enter_aims(x: Any, aims: Callable[..., Any], enter: Callable[..., None]) -> None:
    """Call ``enter(row, m, c, number)`` with all entries of J^T G daim of bouncing contacts.

    ``aims(i, m, c)``: change of the aim along the normal by coordinate c of q (m = 0), v (1) and tau (2).
    """

    def constraint(i: Any) -> None:
        f = _by_spin(x, i)
        for k in range(3):
            f = f + force(x.c_E, i, 6 * k) * x.c_slopes[i, 3 * k + 2]

        def dof(j: Any, share: Any) -> None:
            def column(c: Any) -> None:
                for m in range(3):
                    enter(x.dof_row[j], m, c, share * aims(i, m, c))

            cond(x.dof_row[j] < 0, nothing, lambda: for_range(x.nv, column))

        for side, sign in enumerate((-1.0, 1.0)):

            def inward(b: Any, sign: float = sign) -> Any:
                first = x.body_dofs[b, 0]
                for_range(x.body_dofs[b, 1], lambda n: dof(first + n, motion(x.S, first + n).dot(f) * sign))
                return x.parent[b]

            while_loop(lambda b: b > 0, inward, x.c_bodies[i, side])

    for_range(x.n_of[0], lambda i: cond(follows(x, i), lambda: constraint(i), nothing))


def follows(x: Any, i: Any) -> Any:
    """Whether a constraint is a bouncing contact that presses."""
    friction = x.c_kind[i] == FRICTION
    return friction & (x.contact_bounces[where(friction, x.c_of[i], 0)] > 0) & acts(x, i)


def _by_spin(x: Any, i: Any) -> Force:
    """Change of the torsional friction of contact constraint i by the contact's aim."""
    s = where(i + 1 < x.n_of[0], i + 1, i)

    def moment() -> Any:
        f = Force.zero()
        for k in range(3):
            f = f + force(x.c_E, s, 6 * k) * (x.c_by_N[s, k] * x.c_slopes[i, 8])
        return tuple(f)

    return of_force(cond((x.c_kind[s] == SPIN) & acts(x, s), moment, lambda: (0.0,) * 6))


# ---- constraints of two bodies that move, and of loops -----------------------------------------------------


def _forces(x: Any) -> list[tuple[Any, Any]]:
    """Matrices to which constraints add, and the forces on bodies from which these get a column."""
    return [(x.r_q, x.f_q), (x.r_y, x.f_y), (x.r_v, x.f_v), (x.z, x.f_z)]


def rates_of(x: Any) -> list[tuple[Any, Any]]:
    """Velocities of bodies at y and before, and how they change along a coordinate."""
    return [(x.V_y, x.X_y), (x.V_before, x.X_before)]


def _columns(x: Any, r: Any, count: Any) -> None:
    """Columns r: the change of the impulses by the motion."""

    def constraint(i: Any) -> None:
        moves = (x.moved[x.c_bodies[i, 0]] > 0) | (x.moved[x.c_bodies[i, 1]] > 0)
        cond(moves & _with_another(x, i), lambda: _of_two(x, i), nothing)

    for_range(x.n_of[0], constraint)
    gather(x, r, count, _forces(x))


def _of_two(x: Any, i: Any) -> None:
    """Forces of a constraint on its bodies."""
    a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]
    for (_, f), more in zip(_forces(x), _changes(x, i, *motions(x, i)), strict=True):
        write_row(f, b, force(f, b) + more)
        write_row(f, a, force(f, a) - more)


class Seen(NamedTuple):
    """Changes of a constraint's velocities along its rows, for a motion of its bodies.

    Attributes:
        M: motion of its frame.
        E: its rows.
        u: velocities of the motion itself.
        now, before: changes of the velocities at y and before, as rows and axes of joints move.
        closer: change of the gap.
    """

    M: Motion
    E: list[Force]
    u: list[Any]
    now: list[Any]
    before: list[Any]
    closer: Any


def seen(x: Any, i: Any, A: Motion, B: Motion, opens: Motion, opened: Motion) -> Seen:
    """The changes that constraint i sees; the other arguments are those of :func:`_changes`."""
    a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]
    contact = where(x.c_kind[i] == SPIN, x.c_of[i], i)

    def of_contact() -> Any:
        return tuple(frame_motion(x, x.c_of[contact], A, B))

    def of_loop() -> Any:
        return tuple(closing_derivatives.loop_motion(x, i, A, B))

    def of_spring() -> Any:
        return tuple(springs.frame_motion(x, i, A, B))

    def not_of_loop() -> Any:
        return cond(x.c_kind[i] == SPRING, of_spring, of_contact)

    def changes(change: Motion, V: Any) -> list[Any]:
        relative = motion(V, b) - motion(V, a)
        return [change.dot(e) + relative.dot(M.cross_force(e)) for e in E]

    M = of_motion(cond(x.c_kind[i] == LINE, of_loop, not_of_loop))
    E = [force(x.c_E, i, 6 * k) for k in range(3)]
    u = [(B - A).dot(e) for e in E]
    now, before = changes(opens, x.V_y), changes(opened, x.V_before)

    closer = cond(x.c_kind[i] == FRICTION, lambda: gap_rate(x, x.c_of[i], A, B), lambda: u[2])
    return Seen(M, E, u, now, before, closer)


def _changes(x: Any, i: Any, A: Motion, B: Motion, opens: Motion, opened: Motion) -> list[Force]:
    """Changes of the force of a constraint on body b for a motion of its bodies: in r_q, r_y, r_v and z.

    ``i``: the constraint; ``A``, ``B``: motions of its bodies; ``opens``, ``opened``: changes of their
    relative velocities at y and before, as axes of joints move.
    """
    loop, spins = x.c_kind[i] == LINE, x.c_kind[i] == SPIN
    contact = where(spins, x.c_of[i], i)
    M, E, u, now, before, closer = seen(x, i, A, B, opens, opened)
    # Of loops u - aim has the velocities before in it as well, and so has the aim of an impact.
    hits = before[2] + x.c_aims[i, 4] * closer
    du = [now[k] + where(loop, before[k], 0.0) - x.c_aims[i, 1 + k] * hits for k in range(3)]
    du[2] = du[2] - x.c_aims[i, 0] * closer
    turns = of_surface(x, i, M, B)

    def pushed(rates: list[Any], m: int) -> Force:
        """Of r_q, r_y, r_v (m); turning friction changes with the normal impulse of its contact, too."""
        f = Force.zero()
        for k in range(3):
            less = vector(x.c_slopes, i, 3 * k).dot(Vector3(*rates))
            less = less + where(spins, x.c_by_N[i, k] * x.c_less_N[contact, m], 0.0)
            f = f + E[k] * less
            if k == 2:
                x.c_less_N[i, m] = less
        return f

    for k in range(2):
        du[k] = du[k] - turns[k]
    of_q = pushed(du, 0) - M.cross_force(force(x.c_F, i))
    of_y = pushed(u, 1)
    by_v = [where(loop, -u[k], x.c_aims[i, 1 + k] * u[2]) for k in range(3)]
    for k in range(2):
        by_v[k] = by_v[k] + turns[2 + k]
    return [of_q, of_y, -pushed(by_v, 2), closing_derivatives.pushed(x, i, u)]


def of_surface(x: Any, i: Any, M: Motion, B: Motion) -> tuple[Any, ...]:
    """How the aims of a contact along t1 and t2 change with its place on a turntable: as its frame moves by M
    and its body by B; and with a change B of that body's velocity before.
    """

    def contact() -> Any:
        c, b, half = x.c_of[i], x.c_bodies[i, 1], 0.5 * x.dt[0]
        p, V = vector(x.contact_place, c, 0), motion(x.V_before, b)
        spin, way = surface(x, c, p, V)
        goes = B.lin + B.ang.cross(vector(x.p, b))
        place = M.lin + M.ang.cross(p) + V.ang.cross(goes) * half
        axes = [vector(x.contact_frame, c, 3 * k) for k in range(2)]
        by_q = [M.ang.cross(t).dot(way) + t.dot(spin.cross(place)) for t in axes]
        return (*by_q, *(t.dot(spin.cross(goes * half)) for t in axes))

    return cond(x.c_kind[i] == FRICTION, contact, lambda: (0.0,) * 4)
