"""Derivatives of what contacts and loops do, by a motion along each coordinate of v: part of a step's.

    r_q   -d(J^T)/dq g + J^T G (dJ/dq y - daim/dq)        r_y   J^T G J        r_v   -J^T G daim/dv

A motion along a coordinate moves the bodies by X and changes their velocities V as the axes of joints move,
V_b' = V_a' + X_b x (V_b - V_a) from a body a to the next one, b. With the frame of a contact moved by M (see
contact_motions.py), its rows E and its impulse f change by M x* E and M x* f.

Source: step_derivatives.py; for a force f in axes that stand still S_j . f changes by (X x S_j) . f.
Cost: O(n) for each coordinate, of the bodies that carry constraints, and 400 operations for each of these.
"""

from __future__ import annotations

from typing import Any

from robokit.contact import closing_derivatives
from robokit.contact.constraints import springs
from robokit.contact.constraints.contacts import TANGENTIAL, impact
from robokit.contact.contact_motions import along_rim, frame_motion, look
from robokit.contact.drift_derivatives import of_motion
from robokit.contact.fields import FRICTION, LINE, SPIN, SPRING
from robokit.contact.kinematics import velocities
from robokit.contact.laws import slip, tangent
from robokit.contact.solver import HERE, load, mobility, relative, tried_of
from robokit.contact.vectors import add, force, motion, nothing, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, smallest
from robokit.spatial.scalars import maximum, where

PLAIN, ALL = 2, 4
"""Matrices that constraints add to: where no aim follows velocities; where impacts and loops do."""

HELD = 1e3
"""Stiffness of a loop over that of an iteration of the step: the iterations add up to one that holds it."""

FLAT = 1e-9
"""Change of an aim by the velocity before that is none: what rests comes to its contacts with rounding."""

TOUCHES = 1e-12
"""Of a shape's size, or of a joint's bound: a gap below it is rounding, and what rests on such a gap is held
by its spring."""


def of_constraints(x: Any) -> None:
    """Add what they make of a motion along each coordinate of v."""
    once(x, velocities, x.y, x.V_y)
    for_range(x.nv, lambda j: put(x.mean, j, x.y[j] + x.v0[j]))
    once(x, velocities, x.mean, x.V_sum)
    for_range(x.n_bodies, lambda b: write_row(x.F, b, Force.zero()))
    for_range(x.n_of[0], lambda i: _prepare(x, i))

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        write_row(x.F, x.parent[b], force(x.F, x.parent[b]) + force(x.F, b))

    for_range(x.n_bodies - 1, inward)
    count = _loaded(x)

    def directions(what: int) -> None:
        for_range(x.nv, lambda r: _along(x, r, count, what))

    def with_all() -> None:
        for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(x.z, (r, c), 0.0)))
        directions(ALL)

    def follow(i: Any, found: Any) -> Any:
        most = maximum(maximum(abs(x.c_aims[i, 1]), abs(x.c_aims[i, 2])), abs(x.c_aims[i, 3]))
        return where(most > FLAT, 1, found)

    follows = (for_range(x.n_of[0], follow, 0) > 0) | (x.n_loops > 0)

    def plain() -> None:
        _with_world(x)
        directions(PLAIN)

    cond(follows, with_all, plain)


def _with_world(x: Any) -> None:
    """What constraints of a body with the world make of its motion: f_q = by_X X + by_u X_y, f_y = by_u X.

    They are as linear as each of them is, and found by six motions of all bodies.
    """

    def constraint(i: Any) -> None:
        a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]
        cond((a == 0) & acts(x, i), lambda: _changes(x, i, a, b, PLAIN), nothing)

    def motion_along(k: Any) -> None:
        def begin(b: Any) -> None:
            x.moved[b] = where(b > 0, 1, 0)
            for each in (x.X, x.X_y, x.f_q, x.f_y):
                write_row(each, b, [0.0] * 6)
            x.X[b, k] = 1.0

        def end(b: Any) -> None:
            for c in range(6):
                x.by_X[b, c, k], x.by_u[b, c, k] = x.f_q[b, c], x.f_y[b, c]

        for_range(x.n_bodies, begin)
        for_range(x.n_of[0], constraint)
        for_range(x.n_bodies, end)

    def mark(i: Any) -> None:
        b = x.c_bodies[i, 1]
        x.touches[b] = where((x.c_bodies[i, 0] == 0) & acts(x, i), 1, x.touches[b])

    for_range(x.n_bodies, lambda b: put(x.touches, b, 0))
    for_range(x.n_of[0], mark)
    for_range(6, motion_along)


def _touches(x: Any, b: Any) -> None:
    """Forces of all constraints of a body with the world."""
    X, X_y = ([A[b, k] for k in range(6)] for A in (x.X, x.X_y))

    def times(A: Any, c: int, v: Any) -> Any:
        total = A[b, c, 0] * v[0]
        for k in range(1, 6):
            total = total + A[b, c, k] * v[k]
        return total

    for c in range(6):
        x.f_q[b, c] = times(x.by_X, c, X) + times(x.by_u, c, X_y)
        x.f_y[b, c] = times(x.by_u, c, X)


def _forces(x: Any, what: int) -> list[tuple[Any, Any]]:
    """Matrices that constraints add to, and the forces on bodies from which they get a column."""
    every = (x.r_q, x.f_q), (x.r_y, x.f_y), (x.r_v, x.f_v), (x.z, x.f_z)
    return list(every[:what])


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
        look(x, i, x.c_of[i])
        bounces = x.contact_bounces[x.c_of[i]] > 0
        aims = cond(bounces, lambda: _of_bounce(x, i, x.c_of[i]), lambda: _of_impact(x, i, x.c_of[i]))
        write_row(x.c_aims, i, aims)

    def spin() -> None:
        write_row(x.c_by_N, i, by_load(x, i))

    def spring() -> None:
        x.c_aims[i, 0], x.c_aims[i, 3] = springs.by_length(x, i)

    def others() -> None:
        cond(look_at == SPIN, spin, lambda: cond(look_at == SPRING, spring, nothing))

    look_at = cond(acts(x, i), lambda: kind, lambda: LINE)
    cond(look_at == FRICTION, contact, others)


def acts(x: Any, i: Any) -> Any:
    """Whether a constraint answers to a velocity."""
    return x.c_slopes[i, 0] + x.c_slopes[i, 4] + x.c_slopes[i, 8] > 0.0


def by_load(x: Any, i: Any) -> list[Any]:
    """Change of the moments of turning friction by the normal impulse that bounds them."""
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
    G, _ = tangent(x.c_kind[i], p, R, *numbers, 0.0)
    a, b, d, e, f, n, p, q = (where(x.c_kind[i] == LINE, z * HELD, z) for z in G)
    return [a, b, e + q, b, d, f - p, e - q, f + p, n]


def _of_impact(x: Any, i: Any, c: Any) -> tuple[Any, ...]:
    """How a contact's aim changes with its gap, along t1, t2, n with its speed before; and that with its gap.

    With that its compliance changes, R = 1 / (dt kd). To the law that is a change of the aim by -g dR, apart
    from friction that slides, which is mu N whatever R_t is.
    """
    pair, dt, phi = x.contact_pair[c], x.dt[0], x.contact_gap[c]
    k, R_t, R_n = x.pair_stiffness[pair], x.c_R[i, 0], x.c_R[i, 1]
    g = [x.c_g[i, m] for m in range(3)]
    hit = x.contact_hit[c]
    rate = x.pair_impact[pair] * hit
    w = x.body_mobility[x.c_bodies[i, 0]] + x.body_mobility[x.c_bodies[i, 1]]
    _, slope = impact(rate * hit, w * dt * x.pair_damping[pair], w * dt)
    harder = 2.0 * rate * slope * dt
    sticks = g[0] * g[0] + g[1] * g[1] < (x.c_mu[i] * g[2]) ** 2 * (1.0 - FLAT)
    changes = []
    for m in range(2):
        bent = -x.contact_bristle[c, m] * TANGENTIAL * k * dt * R_t
        changes.append((where(sticks, g[m] * R_t, 0.0) - bent) * R_t * harder * TANGENTIAL**0.5)
    overlaps = phi < TOUCHES * x.shape_bound[x.pair_shapes[pair, 1]]
    springs = x.contact_bounces[c] > -1  # its gap is 0 where it leaves
    by_gap = where(springs, where(overlaps, -k * dt * R_n, -1.0 / dt), 0.0)
    spring = where(overlaps, x.c_aim[i, 2], 0.0)
    by_depth = where(springs & (phi < 0.0), -dt * k * w, 0.0)
    return by_gap, *changes, (g[2] * R_n - spring) * R_n * harder, by_depth


def _of_bounce(x: Any, i: Any, c: Any) -> tuple[Any, ...]:
    """The same of one that bounces."""
    share = x.pair_restitution[x.contact_pair[c]]
    weight, arrives, _, root = _fall(x, i, c)
    return (share * share - 1.0) * weight / root, 0.0, 0.0, -share * share * arrives / root, 0.0


def _fall(x: Any, i: Any, c: Any) -> tuple[Any, Any, Any, Any]:
    """Of a contact that bounces: gravity along its normal, speed at which it arrives, 2 h, and the speed with
    which it leaves (constraints/contacts.py).
    """
    phi, share = x.contact_gap[c], x.pair_restitution[x.contact_pair[c]]
    weight = -vector(x.contact_frame, c, 6).dot(vector(x.gravity))
    weight = where(x.c_bodies[i, 0] == 0, where(weight > 0.0, weight, 0.0), 0.0)
    dt = x.dt[0]
    arrives = 0.5 * dt * weight - Vector3(*relative(x, i, x.V)).z
    lift = 2.0 * phi - 0.25 * weight * dt * dt
    square = share * share * (arrives * arrives + weight * lift) - weight * lift
    return weight, arrives, lift, square**0.5


def restitution_rates(x: Any, i: Any, c: Any) -> tuple[Any, Any]:
    """How the aim of a contact that bounces changes with restitution, and with gravity along its normal."""
    share, dt = x.pair_restitution[x.contact_pair[c]], x.dt[0]
    weight, arrives, lift, root = _fall(x, i, c)
    by_share = share * (arrives * arrives + weight * lift) / root
    lift_by_weight = lift - 0.25 * weight * dt * dt
    by_weight = 0.5 * (share * share * (arrives * dt + lift_by_weight) - lift_by_weight) / root - 0.5 * dt
    return by_share, where(weight > 0.0, by_weight, 0.0)


def _loaded(x: Any) -> Any:
    """List the bodies on which constraints act, or which carry such, outward; how many."""
    for_range(x.n_bodies, lambda b: put(x.loaded, b, 0))

    def constraint(i: Any) -> None:
        for k in range(2):
            x.loaded[x.c_bodies[i, k]] = 1

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        x.loaded[x.parent[b]] = where(x.loaded[b] > 0, 1, x.loaded[x.parent[b]])

    def entry(m: Any, count: Any) -> Any:
        x.loaded_bodies[count] = m + 1
        return count + where(x.loaded[m + 1] > 0, 1, 0)

    for_range(x.n_of[0], constraint)
    for_range(x.n_bodies - 1, inward)
    return for_range(x.n_bodies - 1, entry, 0)


def _along(x: Any, r: Any, count: Any, what: int) -> None:
    """Columns r: the impulses that a motion along coordinate r of v changes.

    Args:
        r: the coordinate.
        count: of bodies in the list.
        what: PLAIN or ALL.
    """
    write_row(x.X, 0, [0.0] * 6)
    x.moved[0] = 0

    def body(m: Any, any_one: Any) -> Any:
        b = x.loaded_bodies[m]
        first = x.body_dofs[b, 0]

        def own(n: Any, moves: Any) -> Any:
            return where(x.dof_row[first + n] == r, 1, moves)

        moves = for_range(x.body_dofs[b, 1], own, x.moved[x.parent[b]])
        x.moved[b] = moves
        for f in [f for _, f in _forces(x, what)]:
            write_row(f, b, [0.0] * 6)
        cond(moves > 0, lambda: _moved(x, b, r, what), nothing)
        if what == PLAIN:
            cond((moves > 0) & (x.touches[b] > 0), lambda: _touches(x, b), nothing)
        return where(moves > 0, 1, any_one)

    def constraint(i: Any) -> None:
        a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]
        moves = acts(x, i) & ((x.moved[a] > 0) | (x.moved[b] > 0))
        if what == PLAIN:
            moves = moves & (a > 0)
        cond(moves, lambda: _changes(x, i, a, b, what), nothing)

    def changes() -> None:
        for_range(x.n_of[0], constraint)
        _gather(x, r, count, what)

    cond(for_range(count, body, 0) > 0, changes, nothing)


def _moved(x: Any, b: Any, r: Any, what: int) -> None:
    """X: the motion of a body; how its velocities change as its joints' axes move."""
    first, parent = x.body_dofs[b, 0], x.parent[b]
    known = where(x.moved[parent] > 0, 1.0, 0.0)

    def more(n: Any, *so_far: Any) -> Any:
        is_r = where(x.dof_row[first + n] == r, 1.0, 0.0)
        return tuple(so_far[c] + x.S[first + n, c] * is_r for c in range(6))

    X = of_motion(for_range(x.body_dofs[b, 1], more, *_if(known > 0.0, x.X, parent)))
    write_row(x.X, b, X)
    for V, change in ((x.V_y, x.X_y), (x.V_sum, x.X_sum))[: 1 if what == PLAIN else 2]:
        before = _if(known > 0.0, change, parent)
        write_row(change, b, before + X.cross(motion(V, b) - motion(V, parent)))


def _changes(x: Any, i: Any, a: Any, b: Any, what: int) -> None:
    """What a motion of its bodies changes of the forces of a constraint."""

    def of(rows: Any, body: Any) -> Motion:
        return _if(x.moved[body] > 0, rows, body)

    A, B = of(x.X, a), of(x.X, b)
    loop, spins = x.c_kind[i] == LINE, x.c_kind[i] == SPIN
    contact = where(spins, x.c_of[i], i)

    def of_contact() -> Any:
        c = x.c_of[contact]
        M = frame_motion(x, contact, vector(x.contact_place, c), vector(x.contact_frame, c, 6), A, B)
        return tuple(M)

    def of_loop() -> Any:
        return tuple(closing_derivatives.loop_motion(x, i, A, B))

    def of_spring() -> Any:
        return tuple(springs.frame_motion(x, i, A, B))

    def not_of_loop() -> Any:
        return cond(x.c_kind[i] == SPRING, of_spring, of_contact)

    def seen(change: Motion, V: Motion) -> list[Any]:
        return [change.dot(e) + V.dot(M.cross_force(e)) for e in E]

    M = of_motion(not_of_loop() if what == PLAIN else cond(loop, of_loop, not_of_loop))
    E = [force(x.c_E, i, 6 * k) for k in range(3)]
    u = [(B - A).dot(e) for e in E]
    opens = seen(of(x.X_y, b) - of(x.X_y, a), motion(x.V_y, b) - motion(x.V_y, a))
    du = list(opens)
    on_rim = cond(x.c_kind[i] == FRICTION, lambda: along_rim(x, i, M, A, B), lambda: 0.0)
    closer = u[2] + on_rim  # of the gap
    if what == ALL:
        # Of loops u - aim has the velocities before in it as well, and so has the aim of an impact.
        both = seen(of(x.X_sum, b) - of(x.X_sum, a), motion(x.V_sum, b) - motion(x.V_sum, a))
        du = [where(loop, s, t) for s, t in zip(both, opens, strict=True)]
        hits = both[2] - opens[2] + x.c_aims[i, 4] * closer
        du = [z - x.c_aims[i, 1 + k] * hits for k, z in enumerate(du)]
    du[2] = du[2] - x.c_aims[i, 0] * closer

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

    of_q = pushed(du, 0) - M.cross_force(force(x.c_F, i))
    changes = [of_q, pushed(u, 1)]
    if what == ALL:
        by_v = [where(loop, -u[k], x.c_aims[i, 1 + k] * u[2]) for k in range(3)]
        changes.append(-pushed(by_v, 2))
        changes.append(closing_derivatives.pushed(x, i, u))
    for (_, f), more in zip(_forces(x, what), changes, strict=True):
        write_row(f, b, force(f, b) + more)
        write_row(f, a, force(f, a) - more)


def _if(condition: Any, rows: Any, body: Any) -> Motion:
    """A motion of a row, or none."""
    return of_motion([where(condition, rows[body, c], 0.0) for c in range(6)])


def _gather(x: Any, r: Any, count: Any, what: int) -> None:
    """Forces on bodies to columns r: S . f, and (X x S) . F of what moves."""
    forces = _forces(x, what)

    def inward(m: Any) -> None:
        b = x.loaded_bodies[count - 1 - m]
        parent = x.parent[b]
        for _, f in forces:
            write_row(f, parent, force(f, parent) + force(f, b))

        def turned() -> None:
            write_row(x.f_q, b, force(x.f_q, b) + motion(x.X, b).cross_force(force(x.F, b)))

        cond(x.moved[b] > 0, turned, nothing)
        for_range(x.body_dofs[b, 1], lambda n: dof(b, x.body_dofs[b, 0] + n))

    def dof(b: Any, j: Any) -> None:
        row, S = x.dof_row[j], motion(x.S, j)

        def enter() -> None:
            for M, f in forces:
                add(M, (row, r), S.dot(force(f, b)))

        cond(row < 0, nothing, enter)

    for_range(count, inward)
