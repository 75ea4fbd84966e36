"""Derivatives of a step by the implicit function theorem.

The velocity y after the kick solves r(y, v, q, tau) = 0, with q and v as they are in the middle of the step:

    r = H (y - v) + dt (C((v + y) / 2) - tau) - J^T g(J y - aim)

    r_y = H + dt/2 dC/dw + J^T G J                    r_v = -H + dt/2 dC/dw - J^T G daim/dv
    r_q = dt dID/dq - d(J^T)/dq g + J^T G (dJ/dq y - daim/dq)             r_tau = -dt

    dy = -r_y^-1 (r_q dq + r_v dv + r_tau dtau)

ID is the inverse dynamics at the mean velocity and the acceleration (y - v) / dt, G = -dg/du the slopes of
the laws at the solution; those of contacts with the change of De Saxce's shift, so that they are Coulomb's
law's. So r_y is not symmetric, and has the pattern of the step's A. Before and after the kick come the
derivatives of the drifts (closing_derivatives.py).

Places and normals of contacts move with the bodies, see detection_derivatives.py. What is held: bristles,
in the world; what turning friction aims at; compliances that are a share of the mobility, but those of dry
friction, of largest speeds of joints and of limits in impacts; what rolling adds to velocities; and what the
end of a step corrects to conserve. What closes loops is in closing_derivatives.py, what lands fast or bounces
in landing_derivatives.py.

It takes the arrays of a step that has stopped before its second drift (``keeps`` -1).

Source: implicit function theorem; for contacts S. Zimmermann, R. Poranne, S. Coros, Dynamic manipulation of
deformable objects with implicit integration (2021), section IV.
Cost: O(n d) for inverse dynamics and contacts with the world, O(n (n + contacts)) for others, 3 nv back
substitutions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from robokit.collision.fields import CONTACTS, SHAPES
from robokit.contact import closing_derivatives
from robokit.contact.closing_derivatives import block, drift_tangents, no_sums, pulled, turns_base
from robokit.contact.constraint_derivatives import (
    TOUCHES,
    acts,
    by_load,
    of_constraints,
)
from robokit.contact.constraints.contacts import of_ground
from robokit.contact.constraints.motors import servo_numbers
from robokit.contact.fields import (
    CONSTRAINTS,
    DERIVATIVES,
    DRY,
    FORCE_MEMORY,
    FORCES,
    FRICTION,
    MOTION,
    MOTOR,
    ROBOT,
    SOLVER,
    SPIN,
    STATE,
    STEP,
    STEP_DERIVATIVES,
    STEP_PULLBACK,
    STOP,
)
from robokit.contact.kinematics import (
    advance,
    composites,
    entries_of_H,
    is_free_base,
    known_row,
    place_in_H,
    velocities,
)
from robokit.contact.landings import damps
from robokit.contact.laws import slip
from robokit.contact.linear import (
    back_substitute_transposed,
    back_substitute_unsymmetric,
    factor_unsymmetric,
)
from robokit.contact.pattern import rows_of
from robokit.contact.vectors import (
    add,
    entries,
    force,
    inertia,
    matrix,
    motion,
    nothing,
    put,
    vector,
    write_row,
)
from robokit.engine.loops.fields import kernel_of, once
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, smallest
from robokit.spatial.scalars import clamp, where
from robokit.spatial.vectors import CoriolisInertia

# ==== derivatives of inverse dynamics =============================================================
# Derivatives of inverse dynamics of a robot that is data: loops over the arrays of fields.py.
#
#     tau = H(q) a + C(q, w),    in axes that do not turn for the linear velocity of bases that float
#
# Configurations are differentiated along the velocities: q moves by a unit of v_k. For a dof k of body i,
# with the velocity W and the acceleration A of the parent of i, W_i its own, and composites of what i
# carries:
#
#     Psi' = W x S        Psi'' = A x S + W x Psi'        s = Psi' + W_i x S
#
#     row k, column c of the same body or on its path:  dq = Psi'_c . 2 B^T S_k + Psi''_c . I S_k
#                                                       dv = S_c . 2 B^T S_k + s_c . I S_k
#     row c of a dof that carries k, column k:          dq = S_c . (2 B Psi'_k + I Psi''_k + S_k x* f)
#                                                       dv = S_c . (2 B S_k + I s_k)
#
# Source: S. Singh, R. P. Russell, P. M. Wensing 2022, algorithm 1 (IDSVA).
# Differs: all vectors are about one origin; joints of several dofs are taken dof by dof; bases that float.
# Cost: O(n) for the vectors, O(n d) for the entries, d the depth of the tree.


def inverse_dynamics_derivatives(x: Any, w: Any, a: Any, dq: Any, dv: Any) -> None:
    """dtau/dq and dtau/dv, (nv, nv) each, at velocities w and accelerations a.

    It takes R, p, S and I of the configuration; composites, W, a and f are written.
    """
    _forces(x, w, a)
    # Inertias, Coriolis matrices and forces, of each body and all that it carries.
    composites(x)

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        parent = x.parent[b]
        write_row(x.B, parent, [x.B[parent, k] + x.B[b, k] for k in range(12)])
        write_row(x.f, parent, force(x.f, parent) + force(x.f, b))

    for_range(x.n_bodies - 1, inward)
    for_range(x.n_dofs, lambda k: _rates(x, k))
    for each in (dq, dv):
        for_range(x.nv, lambda r, D=each: for_range(x.nv, lambda c: put(D, (r, c), 0.0)))
    for_range(x.n_dofs, lambda k: _entries(x, k, dq, dv))


def _forces(x: Any, w: Any, a: Any) -> None:
    """Velocities, accelerations, forces and Coriolis matrices of the bodies."""
    velocities(x, w, x.W)
    write_row(x.a, 0, Motion(Vector3.zero(), -vector(x.gravity)))
    write_row(x.f, 0, Force.zero())
    write_row(x.B, 0, [0.0] * 12)

    def body(m: Any) -> None:
        b = m + 1
        parent, W, I, first = x.parent[b], motion(x.W, b), inertia(x.I, b), x.body_dofs[b, 0]
        u = W.lin + W.ang.cross(vector(x.p, b))
        A = motion(x.a, parent) + motion(x.W, parent).cross(W)
        A = Motion(A.ang, A.lin + u.cross(W.ang) * where(is_free_base(x, b), 1.0, 0.0))

        def more(n: Any, *so_far: Any) -> tuple[Any, ...]:
            rate = a[known_row(x.dof_row[first + n])]
            return tuple(so_far[c] + x.S[first + n, c] * rate for c in range(6))

        write_row(x.a, b, for_range(x.body_dofs[b, 1], more, *A))
        B = CoriolisInertia.of(I, W)
        write_row(x.f, b, I @ motion(x.a, b) + B @ W)
        write_row(x.B, b, [*entries(B.K), *B.p])

    for_range(x.n_bodies - 1, body)


def _rates(x: Any, k: Any) -> None:
    """How a dof's axis moves, and the forces that come of it."""
    b, S = x.dof_body[k], motion(x.S, k)
    up, W = motion(x.W, x.parent[b]), motion(x.W, b)
    psi = up.cross(S)
    psi2 = motion(x.a, x.parent[b]).cross(S) + up.cross(psi)
    rate = psi + W.cross(S)
    # The acceleration u x omega of a base that floats, about its origin.
    p = vector(x.p, b)
    u, lin = W.lin + W.ang.cross(p), S.lin + S.ang.cross(p)
    turning = u.cross(S.ang) + lin.cross(W.ang)
    rate = Motion(rate.ang, rate.lin + turning * where(is_free_base(x, b), 1.0, 0.0))
    write_row(x.rates, k, [*psi, *psi2, *rate])
    I, f = inertia(x.composite, b), force(x.f, b)
    B = CoriolisInertia(Matrix3([[x.B[b, 3 * r + c] for c in range(3)] for r in range(3)]), vector(x.B, b, 9))
    by_q = B @ (psi * 2.0) + I @ psi2 + S.cross_force(f)
    by_v = B @ (S * 2.0) + I @ rate
    write_row(x.slopes, k, [*by_q, *by_v, *(I @ S), *B.transpose_apply(S * 2.0)])


def _entries(x: Any, k: Any, dq: Any, dv: Any) -> None:
    """Entries of a dof with those of its body, and with those that carry it."""
    b, row = x.dof_body[k], x.dof_row[k]
    first, at = x.body_dofs[b, 0], x.path[k, 0]
    by_q, by_v, IS, BS = (force(x.slopes, k, 6 * n) for n in range(4))

    def below(c: Any, column: Any) -> None:
        psi, psi2, rate = (motion(x.rates, c, 6 * n) for n in range(3))
        add(dq, (row, column), psi.dot(BS) + psi2.dot(IS))
        add(dv, (row, column), motion(x.S, c).dot(BS) + rate.dot(IS))

    def of_body(n: Any) -> None:
        column = x.dof_row[first + n]
        cond(column < 0, nothing, lambda: below(first + n, column))

    def of_path(n: Any) -> None:
        c = x.ancestors[at + (k - first) + n]
        column = x.dof_row[c]

        def both() -> None:
            below(c, column)
            add(dq, (column, row), motion(x.S, c).dot(by_q))
            add(dv, (column, row), motion(x.S, c).dot(by_v))

        cond(column < 0, nothing, both)

    def all_of_them() -> None:
        for_range(x.body_dofs[b, 1], of_body)
        for_range(x.path[k, 1] - (k - first), of_path)

    cond(row < 0, nothing, all_of_them)


# ==== velocity update and step ====================================================================


FROM_STEP = """
    q R p origin S I V H v0 y pattern pattern_first pattern_length n_of
    c_kind c_bodies c_of c_E c_R c_aim c_mu c_arm c_w c_u c_g
    r_kind r_of r_row r_gain r_R r_aim r_low r_high r_speed r_speed_R r_w r_loose
    contact_shapes contact_bodies contact_place contact_frame contact_gap contact_hit
    contact_bounces contact_bristle spring_state held
"""
"""Arrays that the step has left."""

GIVEN_TO_STEP = """
    dt v_before shape_bound surface_velocity
    pair_stiffness pair_damping pair_impact ground_shapes body_mobility
    motor_gains motor_inertia stop_gains stop_bound
    loop_bodies loop_placement loop_axes loop_length loop_turns loop_mobility
    spring_bodies spring_points spring_dof
"""
"""What it was given, or noted, besides the robot."""

OWN = ("W", "a", "f", "composite", "mean")  # work arrays with the names and purposes of the step's


def arrays() -> tuple[ArrayOf, ...]:
    """All arrays that derivatives take."""
    tables = (
        *SHAPES,
        *FORCES,
        *STATE,
        *SOLVER,
        *STEP,
        *FORCE_MEMORY,
        *MOTION,
        *CONTACTS,
        *CONSTRAINTS,
    )
    of_step = {a.name: a for a in tables}
    taken = [replace(of_step[name], role="in") for name in (GIVEN_TO_STEP + FROM_STEP).split()]
    own = [of_step[name] for name in OWN]
    return (*ROBOT, *taken, *own, *DERIVATIVES, *STEP_DERIVATIVES)


def kernel_of_copies(
    name: str,
    function: Callable[[Any], None],
    given: Sequence[ArrayOf],
    own: Sequence[ArrayOf],
    found: str,
) -> LoopKernel:
    """A kernel that continues with the arrays of a step after its kick, and overwrites them.

    ``given``: these arrays; ``own``: its own arrays besides them and those of derivatives; ``found``: its
    outputs.
    """
    of_step = {a.name: replace(a, role="inout") for a in given}
    more = {a.name: a for a in (*DERIVATIVES, *STEP_DERIVATIVES, *own)}
    more[found] = replace(more[found], role="out")
    return kernel_of(name, function, tuple((more | of_step).values()), by_source=True)


@functools.cache
def derivatives_kernel() -> LoopKernel:
    """The kernel of a step's derivatives; it serves all robots."""
    return kernel_of("contact_step_derivatives", step_derivatives, arrays(), by_source=True)


def step_derivatives(x: Any) -> None:
    """``next``: derivatives of the next q and v by q, v and tau; and these themselves."""
    kick(x)
    once(x, drift_tangents, 0, x.v_before, x.v_before)
    right_sides(x)
    once(x, back_substitute_unsymmetric, x.r_y, x.r_y_inverse, x.dy.reshape(x.nv, 3 * x.nv))
    finish(x, x.y, x.dy)


def finish(x: Any, way: Any, dy_way: Any, bent: Any = None) -> None:
    """``next`` from dy, and the end of the step; ``way``: velocity of the second drift, whose derivative is
    dy_way.
    """
    end(x, way)
    once(x, drift_tangents, 1, way, x.y)
    _end(x, dy_way)
    cond(x.n_loops > 0, lambda: closing_derivatives.close(x, bent), nothing)


def kick(x: Any) -> None:
    """r_q, r_v, and the factors of r_y."""
    balance(x, x.y)
    resist(x)


def resist(x: Any) -> None:
    """Add the contribution of constraints to r_q, r_v and r_y, and factor the latter."""
    constrain(x)
    settle(x)


def balance(x: Any, after: Any) -> None:
    """r_q, r_v and r_y without constraints; ``after``: velocity after the step, usually y."""
    dt = x.dt[0]

    def rates(j: Any) -> None:
        x.mean[j] = 0.5 * (x.v0[j] + x.y[j])
        x.acceleration[j] = (after[j] - x.v0[j]) / dt

    def matrices(r: Any) -> None:
        def entry(c: Any) -> None:
            x.r_v[r, c] = 0.5 * dt * x.r_v[r, c]
            x.r_y[r, c] = x.r_v[r, c]
            x.r_q[r, c] = dt * x.r_q[r, c]

        for_range(x.nv, entry)

    def of_H(r: Any, c: Any, number: Any) -> None:
        add(x.r_y, (r, c), number)
        add(x.r_v, (r, c), -number)

    for_range(x.nv, rates)
    rows_of(x, x.entries, x.entries_length)
    inverse_dynamics_derivatives(x, x.mean, x.acceleration, x.r_q, x.r_v)
    for_range(x.nv, matrices)
    entries_of_H(x, of_H)


def constrain(x: Any, row_besides: Callable[[Any], None] = lambda _: None) -> None:
    """Add the contribution of constraints to r_q, r_v and r_y; ``row_besides``: called with the number of
    each row.
    """

    def row(i: Any) -> None:
        _row(x, i)
        row_besides(i)

    by_own_inertia(x, row)
    cond(x.n_of[0] > 0, lambda: of_constraints(x), nothing)


def by_own_inertia(x: Any, do: Callable[[Any], None]) -> None:
    """Call do(i) for each row, to enter the change of its force with H_jj; to r_q by the motion of dof j."""
    for_range(x.nv, lambda j: put(x.own_change, j, 0.0))
    for_range(x.n_of[1], do)
    cond(x.n_dofs > x.nv, nothing, lambda: for_range(x.n_dofs, lambda k: _mobilities(x, k)))


def settle(x: Any) -> None:
    """Add the contribution of closed loops, and factor r_y."""
    cond(x.n_loops > 0, lambda: closing_derivatives.prepare(x), nothing)
    factor_unsymmetric(x, x.r_y, x.r_y_inverse)


def end(x: Any, way: Any) -> None:
    """``q_next`` and ``v_next``: the second drift, with its own velocity ``way``."""
    for_range(x.nq, lambda k: put(x.q_next, k, x.q[k]))
    for_range(x.nv, lambda j: put(x.v_next, j, x.y[j]))
    once(x, advance, x.q_next, x.v_next, way, 0.5 * x.dt[0])


# ---- rows -------------------------------------------------------------------------------------------------


def _row(x: Any, i: Any) -> None:
    """Add a row of a joint: its aim follows the coordinate and the speed."""
    j, gain, kind = x.r_row[i], x.r_gain[i], x.r_kind[i]
    dt, u, R = x.dt[0], gain * x.y[j], x.r_R[i]
    follows = by_speed(x, i)
    slope = follows * gain * gain / R

    def stop() -> None:
        k, d = x.stop_gains[x.r_of[i], 0], x.stop_gains[x.r_of[i], 1]
        # aim >= 0 where phi < 0, up to the rounding of a coordinate beside its bound.
        overlaps = x.r_aim[i] * dt > -TOUCHES * abs(x.stop_bound[x.r_of[i]])
        by_gap = where(overlaps, k / (k * dt + d), 1.0 / dt)
        add(x.r_q, (j, j), where(x.struck[0] > 0, 0.0, slope * by_gap))
        # In an impact its compliance is a share of 1/H_jj, if that is more than the mobility of the neutral
        # pose.
        own = (x.struck[0] == 1) & ((x.r_w[i] > x.r_loose[i]) | ~(x.r_loose[i] < math.inf))
        add(x.own_change, j, where(own, by_own(x, i) * follows * u / R, 0.0))

    def motor() -> None:
        m = x.r_of[i]
        kp, kd = x.motor_gains[m, 0], x.motor_gains[m, 1]
        _, lag, _ = servo_numbers(kp, kd, x.motor_inertia[m], dt)
        acts = where(slope > 0.0, slope * R * dt, 0.0)  # R is infinite in an impact
        add(x.r_q, (j, j), acts * kp)
        add(x.r_v, (j, j), acts * lag)

    def others() -> None:
        cond(kind == DRY, lambda: add(x.own_change, j, by_own(x, i) * follows * u / R), nothing)

    cond(kind == STOP, stop, lambda: cond(kind == MOTOR, motor, others))


def by_speed(x: Any, i: Any) -> Any:
    """Add the dependence of a row on its speed to r_y; returns 1 if the row follows its aim."""
    j, gain = x.r_row[i], x.r_gain[i]
    follows, g, room = follows_aim(x, i)
    limited = (room < x.r_speed_R[i] * abs(g)) & (room > 0.0)
    add(x.r_y, (j, j), gain * gain * (follows / x.r_R[i] + where(limited, 1.0 / x.r_speed_R[i], 0.0)))
    share = by_own(x, i) / x.r_speed_R[i]
    add(x.own_change, j, where(limited, where(g < 0.0, room, -room) * share, 0.0))
    return follows


def by_own(x: Any, i: Any) -> Any:
    """Gain of a row over H_jj; 0 for a massless link, whose compliances do not depend on its own inertia."""
    j = x.r_row[i]
    own = x.H[place_in_H(x, j, j)]
    moves = own > 0.0
    return where(moves, x.r_gain[i] / where(moves, own, 1.0), 0.0)


def opposes(x: Any, i: Any, R: Any, change: Any) -> Any:
    """Fraction by which a damper or motor opposes a change of its speed in an impact (landings.py), 0 for
    other rows.

    ``R``: its compliance in a step. If its mobility is 1/H_jj, that changes its force, to ``own_change``.
    """
    w, acts = x.r_w[i], where(damps(x, i), follows_aim(x, i)[0], 0.0)
    own = where(w > x.r_loose[i], acts * by_own(x, i), 0.0)
    add(x.own_change, x.r_row[i], -own * change * w / ((w + R) * (w + R)))
    return acts


def by_motor(x: Any, i: Any) -> None:
    """Joint forces that act through a motor are impulses of its row; in dy, they have no effect at limits."""
    j = where(x.r_kind[i] == MOTOR, x.r_row[i], 0)
    felt = cond(x.r_kind[i] == MOTOR, lambda: x.dt[0] * follows_aim(x, i)[0], lambda: 1.0 * x.dy[j, 2, j])
    x.dy[j, 2, j] = felt


def follows_aim(x: Any, i: Any) -> tuple[Any, Any, Any]:
    """Whether a row follows its aim: 1, or 0 at the largest effort or speed of its motor.

    Also its impulse without the speed limit, and the distance from that limit.
    """
    u = x.r_gain[i] * x.y[x.r_row[i]]
    free = (x.r_aim[i] - u) / x.r_R[i]
    g = clamp(free, x.r_low[i], x.r_high[i])
    room = x.r_speed[i] - where(g < 0.0, -u, u)
    return where((room < x.r_speed_R[i] * abs(g)) | (abs(g) < abs(free)), 0.0, 1.0), g, room


def _mobilities(x: Any, k: Any) -> None:
    """Change of impulses with dof k farther out, for compliances that are a share of 1/H_jj.

    These are dry friction that holds, g = -u/R, and motors at their largest speed: d(H_jj) = -2 (S_k x S_j) .
    I S_j, with the inertia I of all that k carries.
    """
    b, S_k = x.dof_body[k], motion(x.S, k)
    I = inertia(x.composite, b)

    def carries(m: Any) -> None:
        j = x.ancestors[x.path[k, 0] + m]
        held = where(x.dof_body[j] == b, 0.0, x.own_change[x.dof_row[j]])

        def enter() -> None:
            S = motion(x.S, j)
            add(x.r_q, (x.dof_row[j], x.dof_row[k]), -2.0 * held * S_k.cross(S).dot(I @ S))

        cond(abs(held) > 0.0, enter, nothing)

    for_range(x.path[k, 1], carries)


# ---- the whole step ---------------------------------------------------------------------------------------


def right_sides(x: Any) -> None:
    """The right sides of dy, (nv, 3 nv): the unbalanced momentum by changes of q, v and tau."""
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


def _end(x: Any, dy_way: Any) -> None:
    """``next``: the second drift."""
    h, count = 0.5 * x.dt[0], 3 * x.nv
    dy, dw = x.dy.reshape(x.nv, count), dy_way.reshape(x.nv, count)
    q, v = (x.next[k].reshape(x.nv, count) for k in range(2))

    def row(i: Any) -> None:
        def sums(c: Any) -> None:
            q[i, c], v[i, c] = h * dw[i, c], dy[i, c]

        for_range(count, sums)
        q[i, i] = q[i, i] + 1.0
        q[i, x.nv + i] = q[i, x.nv + i] + h

    def joint(b: Any, first: Any, n: Any) -> None:
        def component(i: Any) -> None:
            def clear(c: Any) -> None:
                q[first + i, c], v[first + i, c] = 0.0, 0.0

            def term(m: Any) -> None:
                _, Q, W = block(x, 1, b, i, m)
                turns = turns_base(i, m)

                def sums(c: Any) -> None:
                    q[first + i, c] = q[first + i, c] + Q * dw[first + m, c]
                    v[first + i, c] = v[first + i, c] + W * where(turns, dw[first + m, c], dy[first + m, c])

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


# ==== Reverse mode of a step: from how a number changes with the next state to how it does with this one ====
#     mu = r_y^-T (what y is worth)     of tau: dt mu     of q, v in the middle: -r_q^T mu, -r_v^T mu
#
# and the transposed derivatives of both drifts. It is the above read backwards: one back substitution instead
# of 3 nv.
#
# Of a parameter p the residual changes by r_p, and p is worth -mu . r_p. As motions of
# the bodies, V_mu = S mu:
#
#     inertia pi of a body    -dt (V_mu . I(pi) A - (W x V_mu) . I(pi) W),  which is linear in pi
#     gravity                 dt sum over the bodies of the linear part of I V_mu
#     friction                E V_mu . dg/dmu:  g_t = mu N t where a contact slides, and N does not change
#     restitution             of contacts that bounce: bounce_derivatives.py
#     force of a motor        dt mu_j, unless it is at its largest effort or speed
#     b of a motor            -dt mu_j qd
#
# W and A are the velocities and accelerations of inverse dynamics, at the mean velocity. What is held is that
# of step_derivatives.py; compliances, which are shares of mobilities, do not follow inertias, nor does what
# closes loops at the end of a step: with loops, inertias are worth what they are in the kick alone.
#
# Source: as above; regressors as in W. Khalil, E. Dombre, Modeling, identification and control of robots
# (2002), chapter 12.
# Cost: O(n d) for inverse dynamics, O(n (n + contacts)) for contacts, O(n + contacts + motors) for
# parameters.


@functools.cache
def pullback_kernel() -> LoopKernel:
    """The kernel of a step's reverse mode; it serves all robots."""
    taken = tuple(a for a in arrays() if a.name != "next")
    return kernel_of("contact_step_pullback", step_pullback, (*taken, *STEP_PULLBACK), by_source=True)


def step_pullback(x: Any) -> None:
    """``of_start`` and the gradients with respect to parameters, from ``of_end``; for a step that stopped
    after its kick.
    """

    def prepare() -> None:
        kick(x)
        end(x, x.y)
        once(x, drift_tangents, 0, x.v_before, x.v_before)
        once(x, drift_tangents, 1, x.y, x.y)

    cond(x.again[0] > 0, nothing, prepare)

    def begin(j: Any) -> None:
        x.of_q[j], x.of_v[j] = x.of_end[0, j], x.of_end[1, j]

    for_range(x.nv, begin)
    cond(x.n_loops > 0, lambda: closing_derivatives.pull(x), nothing)
    once(x, pulled, 1, x.of_q, x.of_v, x.of_middle, x.mu)
    back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)

    def middle(j: Any) -> None:
        def more(r: Any, by_q: Any, by_v: Any) -> Any:
            return by_q - x.r_q[r, j] * x.mu[r], by_v - x.r_v[r, j] * x.mu[r]

        x.of_middle[j], x.of_v[j] = for_range(x.nv, more, x.of_middle[j], 0.0)
        x.of_start[2, j] = x.dt[0] * x.mu[j]

    for_range(x.nv, middle)
    of_parameters(x)
    once(x, pulled, 0, x.of_middle, x.of_v, x.of_start[0], x.of_start[1])


# ---- parameters -------------------------------------------------------------------------------------------


def of_parameters(x: Any) -> None:
    """Gradients with respect to all parameters, from ``mu``."""
    no_parameters(x)
    once(x, velocities, x.mu, x.V_mu)
    for_range(x.n_bodies, lambda b: of_body(x, b))
    for_range(x.n_of[0], lambda i: of_constraint(x, i, Vector3.zero()))
    for_range(x.n_of[1], lambda i: of_motor(x, i))


def no_parameters(x: Any) -> None:
    """Set the gradients with respect to parameters to 0."""
    for_range(x.n_shapes, lambda s: write_row(x.of_shape, s, [0.0] * 2))
    for_range(2, lambda k: put(x.of_between, k, 0.0))
    for_range(x.n_motors, lambda m: put(x.of_motor, m, 0.0))
    for_range(x.n_motors, lambda m: put(x.of_drag, m, 0.0))
    for_range(x.n_bodies, lambda b: write_row(x.of_inertia, b, [0.0] * 10))
    for k in range(3):
        x.of_gravity[k] = 0.0


def of_body(x: Any, b: Any) -> None:
    """Add the gradients with respect to the inertia of a body, through its inertia and its weight."""
    V, W, A = (motion(M, b) for M in (x.V_mu, x.W, x.a))
    momentum = inertia(x.I, b) @ V
    for k, each in enumerate(momentum.lin):
        add(x.of_gravity, k, x.dt[0] * each)
    R, p = matrix(x.R, b).T, vector(x.p, b)

    def own(M: Motion) -> Motion:
        return Motion(R @ M.ang, R @ (M.lin + M.ang.cross(p)))

    one = _ten(own(V), own(A))
    other = _ten(own(W.cross(V)), own(W))
    for k in range(10):
        add(x.of_inertia, (b, k), where(b > 0, x.dt[0] * (other[k] - one[k]), 0.0))


def _ten(X: Motion, Y: Motion) -> list[Any]:
    """The numbers in which X . I Y is linear, in the order of ``inertia``."""
    h = Y.lin.cross(X.ang) - Y.ang.cross(X.lin)
    a, b = tuple(X.ang), tuple(Y.ang)

    def mixed(i: int, k: int) -> Any:
        return a[i] * b[k] + a[k] * b[i]

    return [
        X.lin.dot(Y.lin),
        *h,
        a[0] * b[0],
        mixed(0, 1),
        a[1] * b[1],
        mixed(0, 2),
        mixed(1, 2),
        a[2] * b[2],
    ]


def of_law(x: Any, c: Any, k: int, worth: Any) -> None:
    """Add the gradient with respect to the friction (k = 0) or restitution (1) of a contact."""

    def of_shape() -> None:
        add(x.of_shape, (x.contact_shapes[c, 1], k), worth)

    cond(of_ground(x, c), of_shape, lambda: add(x.of_between, k, worth))


def of_constraint(x: Any, i: Any, more: Vector3, of_aim: Callable[..., None] = lambda *_: None) -> None:
    """Add the gradient with respect to the friction of a constraint; its impulse has the additional gradient
    ``more``.

    ``of_aim(i, worth)``: called with the gradient with respect to the aim of contact constraint i along its
    normal.
    """

    def seen() -> Vector3:
        moved = motion(x.V_mu, x.c_bodies[i, 1]) - motion(x.V_mu, x.c_bodies[i, 0])
        return Vector3(*(moved.dot(force(x.c_E, i, 6 * k)) for k in range(3)))

    def contact() -> None:
        w = seen() + more
        u, aim = [x.c_u[i, k] for k in range(3)], [x.c_aim[i, k] for k in range(3)]
        dx, dy, size = slip(u, aim)
        R_t, R_n = x.c_R[i, 0], x.c_R[i, 1]
        N = (aim[2] - u[2]) / R_n
        slides = size > x.c_mu[i] * R_t * N
        along = where(slides, N / (size + smallest()), 0.0)
        of_law(x, x.c_of[i], 0, -along * (w.x * dx + w.y * dy))
        G = [x.c_slopes[i, 3 * k + 2] for k in range(3)]
        of_aim(i, w.x * G[0] + w.y * G[1] + w.z * G[2])

    def spin() -> None:
        """What its contact's aim changes of the normal impulse that bounds it."""
        c = x.c_of[i]
        of_aim(c, seen().dot(Vector3(*by_load(x, i))) * x.c_slopes[c, 8])

    kind = cond(acts(x, i), lambda: x.c_kind[i], lambda: -1)
    cond(kind == FRICTION, contact, lambda: cond(kind == SPIN, spin, nothing))


def of_motor(x: Any, i: Any, change: Any = 0.0) -> None:
    """Add the gradients with respect to the force of a row's motor and to its damping b; nothing for other
    rows.

    ``change``: change of its speed, weighted as that of ``y`` [rad/s | m/s].
    """

    def motor() -> None:
        m, j, gain = x.r_of[i], x.r_row[i], x.r_gain[i]
        worth = follows_aim(x, i)[0] * x.dt[0] * gain * x.mu[j]
        add(x.of_motor, m, worth)
        add(x.of_drag, m, -worth * (gain * x.y[j] + change))

    cond(x.r_kind[i] == MOTOR, motor, nothing)
