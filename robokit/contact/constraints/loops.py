"""Loop joints: the relative velocity that they constrain is zero.

A loop joint between bodies a and b constrains up to three rotations and three positions of its frame S on b
in its frame P on a. With R and r, axes and origin of S seen from P, these are 0 where it is closed:

    rotations    all of them: 2 tan(theta/2) u     tilts of the axis: 2 tan(theta/2) of R axis about t1, t2
                 of a cross: axis . R t1
    positions    t1 . r, t2 . r, axis . r          of a thread: 2 h tan((axis . r / h - psi) / 2)
                 of a rod: |r| - L

u and theta are axis and angle of R, psi the angle of R about the axis, h the pitch. A row of their Jacobian
is a wrench f, with f . (V_b - V_a) the rate. As two constraints, of rotations and of positions:

    u = E (V_b - V_a)     R = 1e-3 w     aim = -E (V_b - V_a) before + R lambda     set: all impulses

w is the mobility of all bodies connected to the loop, as one rigid body, and lambda the impulse of the last
step, then that of the last iteration. So the mean velocity of the step is one that the loop allows, and the
impulse does no work, also in redundant loops. The gap that a step leaves is removed by a projection at its
end (`close`). A loop stores no energy.

Source: RBDA sections 8.2 and 8.3; R. T. Rockafellar (1976), proximal point iteration.
Cost: O(loops), 600 operations each.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.articulated import assemble, back_substitute, couple, factor
from robokit.contact.constraints.adding import (
    add_constraint,
    axes_of,
    meeting,
    mobility,
    row,
    vector,
    velocity_between,
)
from robokit.contact.fields import LINE
from robokit.contact.kinematics import advance, mass_matrix, place_bodies, velocities
from robokit.contact.solver import impulses, see
from robokit.contact.vectors import put
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision
from robokit.spatial.scalars import Scalar, cos, sin, sqrt, where
from robokit.spatial.vectors import chosen

SOFT = 1e-3, 1.0
"""Compliance over the mobility of all that hangs together, which loops have to hold at most, in double and in
single precision: less adds only rounding where links are lighter. Impulses have the rounding of velocities
over it; in single precision that has to be less than what counts as rounding of the momentum (solver.py)."""


def collect(x: Any) -> None:
    """The constraints of all loops."""

    def loop(k: Any) -> None:
        def rows(half: int, E: list[Motion], delta: list[Scalar]) -> None:
            R = in_precision(*SOFT) * x.loop_mobility[k, half]
            V = velocity_between(x, x.loop_bodies[k, 0], x.loop_bodies[k, 1])
            known = (x.dt[0] * x.loop_force[k, 3 * half + m] for m in range(3))
            aim = Vector3(*(R * g - row(e, V) for g, e in zip(known, E, strict=True)))
            add_half(x, k, half, E, R, aim)

        halves(x, k, rows)

    for_range(x.n_loops, loop)
    x.n_of[3] = x.n_loops


def remember(x: Any) -> None:
    """The forces of all loops, by row, in the axes of P."""

    def constraint(i: Any) -> None:
        def keep() -> None:
            k = x.c_of[i] // 2
            first = 3 * (x.c_of[i] - 2 * k)
            for m in range(3):
                x.loop_force[k, first + m] = x.c_g[i, m] / x.dt[0]

        cond(x.c_kind[i] == LINE, keep, lambda: None)

    cond(x.n_loops > 0, lambda: for_range(x.n_of[0], constraint), lambda: None)


def add_half(x: Any, k: Any, half: int, E: list[Motion], R: Scalar, aim: Vector3) -> Any:
    """The constraint of the rotations (0) or positions (1) of loop k."""
    bodies = x.loop_bodies[k, 0], x.loop_bodies[k, 1]
    return add_constraint(x, LINE, 2 * k + half, bodies, E, (R, R), aim, x.loop_mobility[k, half])


# ---- rows ------------------------------------------------------------------------------------------------


def halves(x: Any, k: Any, rows: Any) -> None:
    """Call ``rows(half, E, delta)`` for the rotations (0) of a loop, if it has any, and for its positions
    (1).
    """
    R, r, axes = _between(x, k)
    p, at = _frame(x, k, 0)
    a, b = x.loop_bodies[k, 0], x.loop_bodies[k, 1]
    at = at + (vector(x.seat, a, 0) - meeting(x, a, b))

    def in_world(f: Force) -> Motion:
        lin = p @ f.lin
        return Motion(p @ f.ang + at.cross(lin), lin)

    def rotations() -> None:
        all_of_them, tilts = _orientation(R, axes), _tilts(R, axes)
        full, cross = x.loop_turns[k] > 2, x.loop_turns[k] == 1
        delta = [where(full, s, t) for s, t in zip(all_of_them[1], tilts[1], strict=True)]
        E = [chosen(full, s, t) for s, t in zip(all_of_them[0], tilts[0], strict=True)]
        # a . b of the axes of a cross, a on the predecessor and b = R t1.
        b, none = R @ axes[0], Vector3.zero()
        right_angle = [b.cross(axes[2]), none, none], [axes[2].dot(b), 0.0, 0.0]
        delta = [where(cross, s, t) for s, t in zip(right_angle[1], delta, strict=True)]
        E = [chosen(cross, s, t) for s, t in zip(right_angle[0], E, strict=True)]
        rows(0, [in_world(Force(f, Vector3.zero())) for f in E], delta)

    cond(x.loop_turns[k] > 0, rotations, lambda: None)
    forces, delta = _positions(x, k, R, r, axes)
    rows(1, [in_world(f) for f in forces], delta)


def _frame(x: Any, k: Any, end: int) -> tuple[Matrix3, Vector3]:
    """Axes of P (0) or S (1) of a loop in the world, and its origin from the seat of its body."""
    b = x.loop_bodies[k, end]
    R = axes_of(x, b)
    own = Matrix3([[x.loop_placement[k, end, 3 * i + j] for j in range(3)] for i in range(3)])
    return R @ own, R @ vector(x.loop_placement, k, end, 9) + vector(x.p, b, 0)


def _between(x: Any, k: Any) -> tuple[Matrix3, Vector3, list[Vector3]]:
    """R and r of a loop, and its t1, t2 and axis, all in P."""
    (P, p), (S, s) = _frame(x, k, 0), _frame(x, k, 1)
    from_a, from_b = (vector(x.seat, x.loop_bodies[k, end], 0) for end in range(2))
    r = P.transpose_apply(s - p + (from_b - from_a))
    return P.T @ S, r, [vector(x.loop_axes, k, 3 * m) for m in range(3)]


def _orientation(R: Matrix3, axes: list[Vector3]) -> tuple[list[Vector3], list[Scalar]]:
    """2 c . e with c = tan(theta/2) u; c' = (1 - c x + c c^T) omega / 2."""
    k = 1.0 / (1.0 + (R[0, 0] + R[1, 1] + R[2, 2]))
    c = Vector3((R[2, 1] - R[1, 2]) * k, (R[0, 2] - R[2, 0]) * k, (R[1, 0] - R[0, 1]) * k)
    return [e + c.cross(e) + c * c.dot(e) for e in axes], [2.0 * c.dot(e) for e in axes]


def _tilts(R: Matrix3, axes: list[Vector3]) -> tuple[list[Vector3], list[Scalar]]:
    """2 t . (a x n) / (1 + a . n): the tilts of n = R a about t1 and t2; the rotation about a
    has no effect.
    """
    a = axes[2]
    n = R @ a
    k = 1.0 / (1.0 + a.dot(n))
    rows, delta = [], []
    for t in axes[:2]:
        m = t.cross(a)
        h = m.dot(n) * k
        rows.append(n.cross(m - a * h) * (2.0 * k))
        delta.append(2.0 * h)
    return [*rows, Vector3.zero()], [*delta, 0.0]


def _positions(
    x: Any, k: Any, R: Matrix3, r: Vector3, axes: list[Vector3]
) -> tuple[list[Force], list[Scalar]]:
    """The positions that a loop constrains; the others are 0."""
    forces = [Force(r.cross(e), e) for e in axes]
    delta = [e.dot(r) for e in axes]
    pitch = x.loop_pitch[k]

    def thread() -> tuple[Scalar, ...]:
        f, s = _thread(axes, where(pitch * pitch > 0.0, pitch, 1.0), R, r)
        return s, *f.ang, *f.lin

    def plain() -> tuple[Scalar, ...]:
        return delta[2], *forces[2].ang, *forces[2].lin

    s, *f = cond(pitch * pitch > 0.0, thread, plain)
    forces[2], delta[2] = Force(Vector3(*f[:3]), Vector3(*f[3:])), s
    length = x.loop_length[k]
    is_rod, size = length > 0.0, sqrt(r.dot(r))
    apart = size > 0.0
    along = r * where(apart, 1.0 / where(apart, size, 1.0), 0.0)
    delta[0] = where(is_rod, size - length, delta[0])
    first = chosen(is_rod, Vector3.zero(), forces[0].ang), chosen(is_rod, along, forces[0].lin)
    forces[0] = Force(*first)
    holds = [x.loop_holds[k, m] for m in range(3)]
    return [f * h for f, h in zip(forces, holds, strict=True)], [
        s * h for s, h in zip(delta, holds, strict=True)
    ]


def _thread(axes: list[Vector3], pitch: Scalar, R: Matrix3, r: Vector3) -> tuple[Force, Scalar]:
    """2 h tan((a . r / h - psi) / 2): a thread fits again after each turn."""
    t1, t2, a = axes
    b1, b2 = R @ t1, R @ t2
    s, c = t2.dot(b1) - t1.dot(b2), t1.dot(b1) + t2.dot(b2)
    turned = b1.cross(t2) - b2.cross(t1), b1.cross(t1) + b2.cross(t2)
    k = 1.0 / (s * s + c * c)
    w = (turned[0] * c - turned[1] * s) * k
    along = a.dot(r) * (1.0 / pitch)
    root, ca, sa = sqrt(k), cos(along), sin(along)
    T = (sa * c - ca * s) * root / (1.0 + (ca * c + sa * s) * root)
    f = Force(r.cross(a) - w * pitch, a) * (1.0 + T * T)
    return f, 2.0 * pitch * T


# ==== poses and velocities on which loops are closed ==============================================
# Loops closed: for the kick of a step, and at its end.
#
# The kick takes place at the pose nearest to that of the middle in which the loops are closed. The drift
# before it has opened them by order dt^2; while open, rows of a linkage that moves only because they repeat
# each other (Bennett's, Sarrus's) are independent, and would stop it. What the step leaves open is taken away
# at its end,
#
#     q <- q - H^-1 J^T A^-1 delta     v <- v - H^-1 J^T A^-1 J v,     A = J H^-1 J^T,
#
# by (H + J^T J / R) d = J^T (aim - J d) / R, twice; where loops repeat each other, too. Both are wrenches
# between two bodies, which make no momentum.
#
# Source: Hairer, Lubich and Wanner, "Geometric numerical integration", section VII.2.
# Cost: that of a factor of H for each of the five projections; nothing without loops.


CLOSED = 1e-6, 1e-3
"""Compliance over the mobility of all that moves, in double and in single precision: two iterations leave its
square of what they take away, and A has its inverse times the rounding of J."""

PASSES = 2  # corrections of positions: each takes off the digits that are right


def close_for_kick(x: Any) -> None:
    """Compute the pose with closed loops that is nearest to q; q itself does not change.

    It needs H at q, and leaves the poses, velocities and H of the closed pose, which is stored as ``q_kick``.
    """

    def closed() -> None:
        for_range(x.nq, lambda k: put(x.q_drifted, k, x.q[k]))
        once(x, constrain, 0)
        couple(x)
        # Where A has no room the step is taken again with more.
        cond(x.filled[0] <= x.n_fill, lambda: _close_positions(x), lambda: None)
        once(x, place_bodies, x.q)
        once(x, velocities, x.v, x.V)
        once(x, mass_matrix)
        for_range(x.nq, lambda k: put(x.q_kick, k, x.q[k]))
        for_range(x.nq, lambda k: put(x.q, k, x.q_drifted[k]))

    def as_it_is() -> None:
        for_range(x.nq, lambda k: put(x.q_kick, k, x.q[k]))

    cond(x.n_loops > 0, closed, as_it_is)


def close(x: Any) -> None:
    """Project q and v onto the loops at the end of a step, with the H and the pattern of the step.

    Deep trees (articulated.py) use the H of the end. The arrays of constraints are overwritten, so everything
    that needs those of the step comes before. Leaves the poses of the new q.
    """

    def closed() -> None:
        _close_positions(x)
        once(x, project, 1)
        for_range(x.nv, lambda j: put(x.v, j, x.v[j] + x.d[j]))

    cond(x.n_loops > 0, closed, lambda: None)


def _close_positions(x: Any) -> None:
    def closer(_: Any) -> None:
        once(x, project, 0)
        once(x, advance, x.q, x.d, x.d, 1.0)

    for_range(PASSES, closer)


def constrain(x: Any, speeds: Any) -> None:
    """Make the loops the only constraints; they aim at closing their gaps (0), or at stopping their opening
    (1).
    """
    for k in (0, 1, 2, 4):
        x.n_of[k] = 0
    for_range(x.n_loops, lambda k: _constraints(x, k, speeds))
    for_range(x.n_motions, lambda m: _hold(x, m))


def project(x: Any, speeds: Any) -> None:
    """The change d that closes the loops at q (0), or stops their opening (1)."""
    once(x, place_bodies, x.q)
    once(x, velocities, x.v, x.V)
    once(x, constrain, speeds)
    n, rows = x.n_of[0], x.n_of[1]
    once(x, assemble, n, rows)
    once(x, factor)
    for_range(x.nv, lambda j: put(x.d, j, 0.0))

    def correct(_: Any) -> None:
        once(x, see, x.d, x.c_du)

        def push(i: Any) -> None:
            for m in range(3):
                x.c_g[i, m] = (x.c_aim[i, m] - x.c_du[i, m]) / x.c_R[i, 0]

        def hold(i: Any) -> None:
            x.r_g[i] = -x.r_G[i] * x.r_gain[i] * x.d[x.r_row[i]]

        for_range(n, push)
        for_range(rows, hold)
        once(x, impulses, n, rows)
        once(x, back_substitute, x.Jg)
        for_range(x.nv, lambda j: put(x.d, j, x.d[j] + x.Jg[j]))

        def pushed(i: Any) -> None:
            x.motion_push[i] = x.motion_push[i] - x.r_G[i] * x.r_gain[i] * x.d[x.r_row[i]]

        for_range(rows, pushed)

    for_range(rows, lambda i: put(x.motion_push, i, 0.0))
    for_range(2, correct)


def _hold(x: Any, m: Any) -> None:
    """Keep prescribed joint m where it is."""
    i, j = x.n_of[1], x.motion_dof[m]
    x.n_of[1] = i + 1
    x.r_row[i], x.r_gain[i] = x.dof_row[j], x.dof_gain[j]
    x.r_G[i] = 1.0 / (in_precision(*CLOSED) * mobility(x, j))


def _constraints(x: Any, k: Any, speeds: Any) -> None:
    """The constraints of loop k, which aim at closing its gap."""

    def rows(half: int, E: list[Motion], delta: list[Scalar]) -> None:
        R = in_precision(*CLOSED) * x.loop_mobility[k, half]
        V = velocity_between(x, x.loop_bodies[k, 0], x.loop_bodies[k, 1])
        left = [where(speeds > 0, row(e, V), s) for e, s in zip(E, delta, strict=True)]
        i = add_half(x, k, half, E, R, Vector3(*(-s for s in left)))
        for m, G in enumerate((1.0, 0.0, 1.0, 0.0, 0.0, 1.0)):
            x.c_G[i, m] = G / R

    halves(x, k, rows)
