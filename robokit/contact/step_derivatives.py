"""Derivatives of a step by the implicit function theorem.

The velocity y after the kick solves r(y, v, q, tau) = 0, with q and v as they are in the middle of the step:

    r = H (y - v) + dt (C((v + y) / 2) - tau) - J^T g(J y - aim)

    r_y = H + dt/2 dC/dw + J^T G J                    r_v = -H + dt/2 dC/dw - J^T G daim/dv
    r_q = dt dID/dq - d(J^T)/dq g + J^T G (dJ/dq y - daim/dq)             r_tau = -dt

    dy = -r_y^-1 (r_q dq + r_v dv + r_tau dtau)

ID is the inverse dynamics at the mean velocity and the acceleration (y - v) / dt, G = -dg/du the slopes of
the laws at the solution; those of contacts with the change of De Saxce's shift, so that they are Coulomb's
law's. So r_y is not symmetric, and has the pattern of the step's A. Before and after the kick come the
derivatives of the drifts (drift_derivatives.py).

Places and normals of contacts move with the bodies, see contact_motions.py. What is held: bristles, in the
world; compliances that are a share of the mobility, but those of dry friction of joints; what belts and
rolling discs add to velocities; and what the end of a step corrects to conserve. What closes loops is in
closing_derivatives.py.

It takes the arrays of a step that has stopped before its second drift (``keeps`` -1).

Source: implicit function theorem; for contacts S. Zimmermann, R. Poranne, S. Coros, Dynamic manipulation of
deformable objects with implicit integration (2021), section IV, and 7-contact of this project's notes.
Cost: O(n d) for inverse dynamics, O(n (n + contacts)) for contacts, 3 nv back substitutions.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from robokit.collision.fields import CONTACTS, PAIRS, SHAPES
from robokit.contact import closing_derivatives
from robokit.contact.constraints.motors import servo_numbers
from robokit.contact.contact_motions import frame_motion, look
from robokit.contact.derivatives import inverse_dynamics_derivatives
from robokit.contact.drift_derivatives import block, drift_tangents, no_sums, of_motion
from robokit.contact.fields import (
    CONSTRAINTS,
    DERIVATIVES,
    DRY,
    FORCE_MEMORY,
    FORCES,
    FRICTION,
    LINE,
    MOTION,
    MOTOR,
    ROBOT,
    SOLVER,
    SPIN,
    STATE,
    STEP,
    STEP_DERIVATIVES,
    STOP,
)
from robokit.contact.kinematics import velocities
from robokit.contact.laws import LEAST, slip
from robokit.contact.solver import law_of, relative
from robokit.contact.unsymmetric import back_substitute, factor
from robokit.contact.vectors import add, force, inertia, matrix, motion, nothing, put, vector, write_row
from robokit.engine.loops.fields import kernel_of, once
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import clamp, where

FROM_STEP = """
    R p origin S I V H v0 y pattern pattern_length n_of
    c_kind c_bodies c_of c_E c_R c_aim c_mu c_arm c_shift c_u c_g
    r_kind r_of r_row r_gain r_R r_aim r_low r_high r_speed r_speed_R
    contact_pair contact_feature contact_place contact_frame contact_gap contact_bounces
"""
"""Arrays that the step has left."""

PLAIN, BOUNCES, WITH_LOOPS = 2, 3, 5
"""Matrices that constraints add to: of a plain contact, where aims follow velocities, of loops."""

GIVEN_TO_STEP = """
    dt v_before pair_shapes pair_slack pair_stiffness pair_damping pair_restitution
    motor_gains motor_inertia stop_gains
    loop_bodies loop_placement loop_turns loop_mobility
"""
"""What it was given, or noted, besides the robot and the shapes."""

OWN = ("W", "a", "f", "composite", "mean")
"""Work arrays of the same names as the step's, for the same purpose."""


def _arrays() -> tuple[ArrayOf, ...]:
    tables = (*PAIRS, *FORCES, *STATE, *SOLVER, *STEP, *FORCE_MEMORY, *MOTION, *CONTACTS, *CONSTRAINTS)
    of_step = {a.name: a for a in tables}
    taken = [replace(of_step[name], role="in") for name in (GIVEN_TO_STEP + FROM_STEP).split()]
    own = [of_step[name] for name in OWN]
    return (*ROBOT, *SHAPES, *taken, *own, *DERIVATIVES, *STEP_DERIVATIVES)


@functools.cache
def derivatives_kernel() -> LoopKernel:
    """The kernel of a step's derivatives, of all robots."""
    return kernel_of("contact_step_derivatives", step_derivatives, _arrays())


def step_derivatives(x: Any) -> None:
    """``next``: the changes of the next q and v, by q, v and tau."""
    kick(x)
    drift_tangents(x, 0, x.v_before)
    drift_tangents(x, 1, x.y)
    _right_sides(x)
    once(x, back_substitute, x.r_y, x.r_y_inverse, x.dy.reshape(x.nv, 3 * x.nv))
    _end(x)
    cond(x.n_loops > 0, lambda: closing_derivatives.close(x), nothing)


def kick(x: Any) -> None:
    """r_q, r_v, and the factors of r_y."""
    dt = x.dt[0]

    def rates(j: Any) -> None:
        x.mean[j] = 0.5 * (x.v0[j] + x.y[j])
        x.acceleration[j] = (x.y[j] - x.v0[j]) / dt

    def matrices(r: Any) -> None:
        def entry(c: Any) -> None:
            H = x.H[where(r < c, c, r), where(r < c, r, c)]
            of_products = 0.5 * dt * x.r_v[r, c]
            x.r_y[r, c], x.r_v[r, c] = of_products + H, of_products - H
            x.r_q[r, c] = dt * x.r_q[r, c]

        for_range(x.nv, entry)

    for_range(x.nv, rates)
    inverse_dynamics_derivatives(x, x.mean, x.acceleration, x.r_q, x.r_v)
    for_range(x.nv, matrices)
    for_range(x.nv, lambda j: put(x.held, j, 0.0))
    for_range(x.n_of[1], lambda i: _row(x, i))
    cond(x.n_dofs > x.nv, nothing, lambda: for_range(x.n_dofs, lambda k: _mobilities(x, k)))
    cond(x.n_of[0] > 0, lambda: _of_constraints(x), nothing)
    cond(x.n_loops > 0, lambda: closing_derivatives.prepare(x), nothing)
    factor(x, x.r_y, x.r_y_inverse)


# ---- rows -------------------------------------------------------------------------------------------------


def _row(x: Any, i: Any) -> None:
    """A row of a joint: it changes with the coordinate and the speed that its aim follows."""
    j, gain, kind = x.r_row[i], x.r_gain[i], x.r_kind[i]
    dt = x.dt[0]
    u, R = gain * x.y[j], x.r_R[i]
    free = (x.r_aim[i] - u) / R
    g = clamp(free, x.r_low[i], x.r_high[i])
    room = x.r_speed[i] - where(g < 0.0, -u, u)
    slower = room < x.r_speed_R[i] * abs(g)
    follows = where(slower | (abs(g) < abs(free)), 0.0, 1.0)  # else it does not see its aim
    slope = follows * gain * gain / R
    at_speed = where(slower & (room > 0.0), gain * gain / x.r_speed_R[i], 0.0)
    add(x.r_y, (j, j), slope + at_speed)

    def stop() -> None:
        k, d = x.stop_gains[x.r_of[i], 0], x.stop_gains[x.r_of[i], 1]
        # aim >= 0 where phi < 0
        by_gap = where(x.r_aim[i] > 0.0, k / (k * dt + d), 1.0 / dt)
        add(x.r_q, (j, j), slope * by_gap)

    def motor() -> None:
        m = x.r_of[i]
        kp, kd = x.motor_gains[m, 0], x.motor_gains[m, 1]
        _, lag, _ = servo_numbers(kp, kd, x.motor_inertia[m], dt)
        add(x.r_q, (j, j), slope * R * dt * kp)
        add(x.r_v, (j, j), slope * R * dt * lag)

    def dry() -> None:
        x.held[j] = follows * gain * u / (R * x.H[j, j])

    def others() -> None:
        cond(kind == DRY, dry, nothing)

    cond(kind == STOP, stop, lambda: cond(kind == MOTOR, motor, others))


def _mobilities(x: Any, k: Any) -> None:
    """Dry friction that holds, g = -u/R, R a share of 1/H_jj: how that changes with dof k farther out.

    d(H_jj) = -2 (S_k x S_j) . I S_j, I of all that k carries.
    """
    b, S_k = x.dof_body[k], motion(x.S, k)
    I = inertia(x.composite, b)

    def carries(m: Any) -> None:
        j = x.ancestors[x.path[k, 0] + m]
        held = where(x.dof_body[j] == b, 0.0, x.held[x.dof_row[j]])

        def enter() -> None:
            S = motion(x.S, j)
            add(x.r_q, (x.dof_row[j], x.dof_row[k]), -2.0 * held * S_k.cross(S).dot(I @ S))

        cond(abs(held) > 0.0, enter, nothing)

    for_range(x.path[k, 1], carries)


# ---- constraints between bodies ---------------------------------------------------------------------------


def _of_constraints(x: Any) -> None:
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

    def of_loops() -> None:
        for M in (x.z, x.opening):
            for_range(x.nv, lambda r, M=M: for_range(x.nv, lambda c: put(M, (r, c), 0.0)))
        directions(WITH_LOOPS)

    def others() -> None:
        cond(x.n_of[2] > 0, lambda: directions(BOUNCES), lambda: directions(PLAIN))

    cond(x.n_loops > 0, of_loops, others)


def _forces(x: Any, what: int) -> list[tuple[Any, Any]]:
    """Matrices that constraints add to, and the forces on bodies from which they get a column."""
    every = (x.r_q, x.f_q), (x.r_y, x.f_y), (x.r_v, x.f_v), (x.z, x.f_z), (x.opening, x.f_o)
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
    x.c_aims[i, 0], x.c_aims[i, 1] = 0.0, 0.0

    def contact() -> None:
        look(x, i, x.c_of[i])
        for k, number in enumerate(_aims(x, i, x.c_of[i])):
            x.c_aims[i, k] = number

    def spin() -> None:
        write_row(x.c_by_N, i, _by_load(x, i))

    cond(kind == FRICTION, contact, lambda: cond(kind == SPIN, spin, nothing))


def _by_load(x: Any, i: Any) -> list[Any]:
    """Change of the moments of turning friction by the normal impulse that bounds them."""
    u, aim = [x.c_u[i, k] for k in range(3)], [x.c_aim[i, k] for k in range(3)]
    N = x.c_g[x.c_of[i], 2]
    dx, dy, size = slip(u, aim)
    rolls = where(size > x.c_mu[i] * N * x.c_R[i, 0], x.c_mu[i] / (size + LEAST), 0.0)
    turns = aim[2] - u[2]
    arm = where(abs(turns) > x.c_arm[i] * N * x.c_R[i, 1], x.c_arm[i], 0.0)
    return [-rolls * dx, -rolls * dy, where(turns < 0.0, -arm, arm)]


def _slopes(x: Any, i: Any) -> list[Any]:
    """-dg/du of a constraint, by rows: with the change of the shift s, G + G n ds/du."""
    u, aim = [x.c_u[i, k] for k in range(3)], [x.c_aim[i, k] for k in range(3)]
    _, (p, q, r, s, t, w) = law_of(x, i, u)
    along_n = s, t, w
    mu, R_t, R_n = x.c_mu[i], x.c_R[i, 0], x.c_R[i, 1]
    N = (aim[2] - u[2]) / R_n
    dx, dy, size = slip(u, aim)
    presses = N > 0.0
    slides = (x.c_kind[i] == FRICTION) & (size > mu * R_t * where(presses, N, 0.0))
    share = where(slides, mu / (size + LEAST), 0.0)
    by_u = share * dx, share * dy, where(slides & presses, mu * mu * R_t / R_n, 0.0)
    G = (p, q, s), (q, r, t), (s, t, w)
    return [G[m][k] + along_n[m] * by_u[k] for m in range(3) for k in range(3)]


def _aims(x: Any, i: Any, c: Any) -> tuple[Any, Any]:
    """How the aim along the normal of a contact changes with its gap, and with its speed before."""
    k, dt = x.contact_pair[c], x.dt[0]
    stiffness, phi, share = x.pair_stiffness[k], x.contact_gap[c], x.pair_restitution[k]
    spring = where(phi < 0.0, -stiffness / (stiffness * dt + x.pair_damping[k]), -1.0 / dt)
    n = vector(x.contact_frame, c, 6)
    weight = -n.dot(vector(x.gravity))
    weight = where(x.c_bodies[i, 0] == 0, where(weight > 0.0, weight, 0.0), 0.0)
    u = Vector3(*relative(x, i, x.V)).z
    arrives = 0.5 * dt * weight - u
    square = share * share * (arrives * arrives + 2.0 * weight * phi) - 2.0 * weight * phi
    returns = square > 0.0
    root = where(returns, square, 1.0) ** 0.5
    by_gap = where(returns, (share * share - 1.0) * weight / root, 0.0)
    by_speed = where(returns, -share * share * arrives / root, 2.0)
    bounces = x.contact_bounces[c] > 0
    return where(bounces, by_gap, spring), where(bounces, by_speed, 0.0)


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
        x: the step.
        r: the coordinate.
        count: of bodies in the list.
        what: how many matrices they add to.
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
        cond(moves > 0, lambda: _moved(x, b, r), nothing)
        return where(moves > 0, 1, any_one)

    def constraint(i: Any) -> None:
        a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]
        moves = (x.moved[a] > 0) | (x.moved[b] > 0)
        cond(moves, lambda: _changes(x, i, a, b, what), nothing)

    def changes() -> None:
        for_range(x.n_of[0], constraint)
        _gather(x, r, count, what)

    cond(for_range(count, body, 0) > 0, changes, nothing)


def _moved(x: Any, b: Any, r: Any) -> None:
    """X: the motion of a body; how its velocities change as its joints' axes move."""
    first, parent = x.body_dofs[b, 0], x.parent[b]
    known = where(x.moved[parent] > 0, 1.0, 0.0)

    def more(n: Any, *so_far: Any) -> Any:
        is_r = where(x.dof_row[first + n] == r, 1.0, 0.0)
        return tuple(so_far[c] + x.S[first + n, c] * is_r for c in range(6))

    X = of_motion(for_range(x.body_dofs[b, 1], more, *_if(known > 0.0, x.X, parent)))
    write_row(x.X, b, X)
    for V, change in ((x.V_y, x.X_y), (x.V_sum, x.X_sum)):
        before = Motion(
            *(
                Vector3(*(where(known > 0.0, change[parent, 3 * h + c], 0.0) for c in range(3)))
                for h in range(2)
            )
        )
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
        return tuple(_loop_motion(x, i, A, B))

    M = of_motion(cond(loop, of_loop, of_contact))
    E = [force(x.c_E, i, 6 * k) for k in range(3)]
    apart = B - A
    # Of loops u - aim has the velocities before in it as well.
    change = _chosen(loop, of(x.X_sum, b) - of(x.X_sum, a), of(x.X_y, b) - of(x.X_y, a))
    V = _chosen(loop, motion(x.V_sum, b) - motion(x.V_sum, a), motion(x.V_y, b) - motion(x.V_y, a))
    u = [apart.dot(e) for e in E]
    du = [change.dot(e) + V.dot(M.cross_force(e)) for e in E]
    before = of(x.X_sum, b) - of(x.X_sum, a) - change, motion(x.V_sum, b) - motion(x.V_sum, a) - V
    du_before = before[0].dot(E[2]) + before[1].dot(M.cross_force(E[2]))
    du[2] = du[2] - x.c_aims[i, 0] * u[2] - x.c_aims[i, 1] * du_before
    by_v = [where(loop, -u[k], x.c_aims[i, 1] * u[2] if k == 2 else 0.0) for k in range(3)]

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
    if what >= BOUNCES:
        changes.append(-pushed(by_v, 2))
    if what >= WITH_LOOPS:
        V_y, X_y = motion(x.V_y, b) - motion(x.V_y, a), of(x.X_y, b) - of(x.X_y, a)
        opens = closing_derivatives.changed_rows(x, i, M, X_y, V_y)
        changes += [closing_derivatives.pushed(x, i, rates) for rates in (u, opens)]
    for (_, f), more in zip(_forces(x, what), changes, strict=True):
        write_row(f, b, force(f, b) + more)
        write_row(f, a, force(f, a) - more)


def _if(condition: Any, rows: Any, body: Any) -> Motion:
    """A motion of a row, or none."""
    return of_motion([where(condition, rows[body, c], 0.0) for c in range(6)])


def _chosen(condition: Any, A: Motion, B: Motion) -> Motion:
    """One of two motions."""
    return of_motion([where(condition, s, t) for s, t in zip(A, B, strict=True)])


def _loop_motion(x: Any, i: Any, A: Motion, B: Motion) -> Motion:
    """Axes of a closed loop are those of its predecessor; they meet in the successor's frame."""
    k = x.c_of[i] // 2
    b = x.loop_bodies[k, 1]
    p = matrix(x.R, b) @ Vector3(*(x.loop_placement[k, 1, 9 + c] for c in range(3))) + vector(x.p, b)
    full = (x.c_of[i] % 2 == 0) & (x.loop_turns[k] > 2)
    w = A.ang + (B.ang - A.ang) * where(full, 0.5, 0.0)
    v = B.lin + B.ang.cross(p)
    return Motion(w, v - w.cross(p))


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


# ---- the whole step ---------------------------------------------------------------------------------------


def _right_sides(x: Any) -> None:
    """dy, (nv, 3 nv): the momentum that changes of q, v and tau leave unbalanced."""
    h, dt = 0.5 * x.dt[0], x.dt[0]

    def row(i: Any) -> None:
        def sums(j: Any) -> None:
            x.dy[i, 0, j] = -x.r_q[i, j]
            x.dy[i, 1, j] = -(h * x.r_q[i, j] + x.r_v[i, j])
            x.dy[i, 2, j] = 0.0

        for_range(x.nv, sums)
        x.dy[i, 2, i] = dt

    def joint(b: Any, first: Any, n: Any) -> None:
        def entry(i: Any, k: Any) -> None:
            def more(m: Any, by_q: Any, by_v: Any) -> Any:
                P, Q, W = block(x, 0, b, m, k)
                r_q, r_v = x.r_q[i, first + m], x.r_v[i, first + m]
                return by_q - r_q * P, by_v - r_q * Q - r_v * W

            x.dy[i, 0, first + k], x.dy[i, 1, first + k] = for_range(n, more, 0.0, 0.0)

        for_range(x.nv, lambda i: for_range(n, lambda k: entry(i, k)))

    for_range(x.nv, row)
    no_sums(x, joint)


def _end(x: Any) -> None:
    """``next``: the second drift."""
    h, count = 0.5 * x.dt[0], 3 * x.nv
    dy = x.dy.reshape(x.nv, count)
    q, v = (x.next[k].reshape(x.nv, count) for k in range(2))

    def row(i: Any) -> None:
        def sums(c: Any) -> None:
            q[i, c], v[i, c] = h * dy[i, c], dy[i, c]

        for_range(count, sums)
        q[i, i] = q[i, i] + 1.0
        q[i, x.nv + i] = q[i, x.nv + i] + h

    def joint(b: Any, first: Any, n: Any) -> None:
        def component(i: Any) -> None:
            def clear(c: Any) -> None:
                q[first + i, c], v[first + i, c] = 0.0, 0.0

            def term(m: Any) -> None:
                _, Q, W = block(x, 1, b, i, m)

                def sums(c: Any) -> None:
                    q[first + i, c] = q[first + i, c] + Q * dy[first + m, c]
                    v[first + i, c] = v[first + i, c] + W * dy[first + m, c]

                for_range(count, sums)

            def own(k: Any) -> None:
                def more(m: Any, by_q: Any, by_v: Any) -> Any:
                    P, Q, _ = block(x, 0, b, m, k)
                    later, _, _ = block(x, 1, b, i, m)
                    return by_q + later * P, by_v + later * Q

                by_q, by_v = for_range(n, more, 0.0, 0.0)
                add(q, (first + i, first + k), by_q)
                add(q, (first + i, x.nv + first + k), by_v)

            for_range(count, clear)
            for_range(n, term)
            for_range(n, own)

        for_range(n, component)

    for_range(x.nv, row)
    no_sums(x, joint)
