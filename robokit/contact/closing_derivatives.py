"""Derivatives of what closes loops: of the kick's pose, and of the end of a step.

The nearest closed pose moves by dq_c = P dq, the end of a step by

    dq'' = P dq'        dv'' = P dv' - H^-1 J^T A^-1 (dJ/dq'' v''),     A = J H^-1 J^T

since J v'' = 0 there. P = 1 - H^-1 J^T A^-1 J takes away what opens the loops. With Z = H + J^T J / R it is
Z^-1 H up to the compliance R, twice that up to its square, also where loops repeat each other (loops.py).

J is that of the closed end there, H that of the kick, as in loops.py. What is held: how P itself changes,
which counts with how far the drift had opened the loops.

Cost: O(nv^3); nothing without loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from robokit.contact.constraints.loops import CLOSED
from robokit.contact.fields import LINE
from robokit.contact.kinematics import entries_of_H, is_free_base, velocities
from robokit.contact.linear import back_substitute_transposed, back_substitute_unsymmetric, factor_unsymmetric
from robokit.contact.robot_data import PLANAR
from robokit.contact.vectors import add, force, matrix, motion, nothing, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, in_precision, while_loop
from robokit.spatial.scalars import where

TERMS = 40  # of the series, at most: enough for six turns in half a step
SIZE = 108  # numbers of a joint: P, Q and W, each 6 x 6 by columns


def drift_tangents(x: Any, drift: int, way: Any, v: Any) -> None:
    """x.tangents[drift] of all joints whose motion is not a plain sum (rotations).

    ``drift``: 0 for the drift before the kick, 1 for that after it; ``way``: velocity along which q moves,
    (nv,); ``v``: velocity, whose part for floating bases the drift rotates.
    """
    h = 0.5 * x.dt[0]

    def joint(b: Any, _first: Any, _n: Any) -> None:
        cond(is_free_base(x, b), lambda: _free(x, drift, b, way, v, h), lambda: _joint(x, drift, b, way, h))

    no_sums(x, joint)


def no_sums(x: Any, joint: Any) -> None:
    """Call ``joint(b, first, n)`` for each joint whose motion is not a plain sum, with its body and its rows
    of v.
    """

    def body(m: Any) -> None:
        b = m + 1
        no_sum = (x.joint_kind[b] >= PLANAR) & (x.joint_leads[b] > 0)

        def call() -> None:
            joint(b, x.dof_row[x.body_dofs[b, 0]], x.body_dofs[b, 1])

        cond(no_sum, call, nothing)

    for_range(x.n_bodies - 1, body)


def block(x: Any, drift: Any, b: Any, i: Any, k: Any) -> tuple[Any, Any, Any]:
    """Entries i, k of P, Q and W."""
    p, q, w = (x.tangents[drift, b, 36 * part + 6 * k + i] for part in range(3))
    return p, q, w


def pulled(x: Any, drift: Any, of_q: Any, of_v: Any, q_out: Any, v_out: Any) -> None:
    """Gradients with respect to (q, v) before a drift, from those after it, (nv,) each."""

    def one(j: Any, of_way: Any, of_own: Any) -> None:
        v_out[j] = of_way + of_own

    _pulled(x, drift, (of_q, of_v), q_out, one)


def pulled_apart(x: Any, drift: Any, of_q: Any, of_v: Any, q_out: Any, v_out: Any, way_out: Any) -> None:
    """The same for a drift along a velocity other than v; also the gradient with respect to that velocity."""

    def both(j: Any, of_way: Any, of_own: Any) -> None:
        v_out[j], way_out[j] = of_own, of_way

    _pulled(x, drift, (of_q, of_v), q_out, both)


def _pulled(x: Any, drift: Any, of: tuple[Any, Any], q_out: Any, enter: Callable[..., None]) -> None:
    """``of``: gradients by q and v after the drift; ``enter(j, of_way, of_v)``: called with the result of
    each row.
    """
    h, (of_q, of_v) = 0.5 * x.dt[0], of

    def sums(j: Any) -> None:
        q_out[j] = 1.0 * of_q[j]
        enter(j, h * of_q[j], 1.0 * of_v[j])

    def joint(b: Any, first: Any, n: Any) -> None:
        def component(k: Any) -> None:
            def more(i: Any, q: Any, way: Any, own: Any) -> Any:
                P, Q, W = block(x, drift, b, i, k)
                turns, share = turns_base(i, k), W * of_v[first + i]
                way = way + Q * of_q[first + i] + where(turns, share, 0.0)
                return q + P * of_q[first + i], way, own + where(turns, 0.0, share)

            q_out[first + k], way, own = for_range(n, more, 0.0, 0.0, 0.0)
            enter(first + k, way, own)

        for_range(n, component)

    for_range(x.nv, sums)
    no_sums(x, joint)


def turns_base(i: Any, k: Any) -> Any:
    """Whether entry i, k of W belongs to the rotation that a drift gives the linear velocity of a floating
    base.
    """
    return (i > 2) & (k < 3)


def _write(x: Any, drift: int, b: Any, part: int, k: Any, column: Any) -> None:
    for i, number in enumerate(column):
        x.tangents[drift, b, 36 * part + 6 * k + i] = number


def _series(xi: Motion, start: Motion) -> tuple[Motion, Motion]:
    """The sums of (-ad)^n start / n! and of (-ad)^n start / (n + 1)!."""

    def wanted(n: Any, *numbers: Any) -> Any:
        term = numbers[:6]
        total = term[0] * 0.0
        for t in term:
            total = total + abs(t)
        return total > 1e-18

    def more(n: Any, *numbers: Any) -> Any:
        term, whole, part = (of_motion(numbers[6 * k : 6 * k + 6]) for k in range(3))
        whole, part = whole + term, part + term * (1.0 / (n + 1.0))
        return n + 1.0, *(term.cross(xi) * (1.0 / (n + 1.0))), *whole, *part

    zero = (0.0,) * 6
    found = while_loop(wanted, more, 0.0, *start, *zero, *zero, most=TERMS)
    return of_motion(found[7:13]), of_motion(found[13:19])


def of_motion(six: Any) -> Motion:
    """A motion from six numbers."""
    return Motion(Vector3(*six[:3]), Vector3(*six[3:]))


def _joint(x: Any, drift: int, b: Any, v: Any, h: Any) -> None:
    """Tangents of the exponential map in the joint's own group."""
    first, n = x.body_dofs[b, 0], x.body_dofs[b, 1]
    row = x.dof_row[first]

    def more(k: Any, *so_far: Any) -> Any:
        return tuple(so_far[c] + x.dof_axis[first + k, c] * v[row + k] * h for c in range(6))

    xi = of_motion(for_range(n, more, *(0.0,) * 6))

    def column(k: Any) -> None:
        whole, part = _series(xi, motion(x.dof_axis, first + k))

        def component(i: Any) -> None:
            S = force(x.dof_axis, first + i)  # the columns of S are orthonormal
            at = 6 * k + i
            x.tangents[drift, b, at] = whole.dot(S)
            x.tangents[drift, b, 36 + at] = h * part.dot(S)
            x.tangents[drift, b, 72 + at] = where(i == k, 1.0, 0.0)

        for_range(n, component)

    for_range(n, column)


def _free(x: Any, drift: int, b: Any, way: Any, v: Any, h: Any) -> None:
    """The same for a floating base."""
    row = x.dof_row[x.body_dofs[b, 0]]
    w, zero = Vector3(*(way[row + c] for c in range(3))), Vector3.zero()

    def later(v: Any) -> Vector3:
        u = Vector3(*(v[row + 3 + c] for c in range(3)))
        return _series(Motion(w * h, zero), Motion(u, zero))[0].ang

    goes, own = later(way), later(v)

    def column(k: Any) -> None:
        e = Vector3(*(where(k % 3 == c, 1.0, 0.0) for c in range(3)))
        turned, J = (m.ang for m in _series(Motion(w * h, zero), Motion(e, zero)))

        def of_turn() -> None:
            # E^T (e x u) = (E^T e) x (E^T u)
            _write(x, drift, b, 0, k, [*turned, *(turned.cross(goes) * h)])
            _write(x, drift, b, 1, k, [*(J * h), *zero])
            _write(x, drift, b, 2, k, [*e, *(own.cross(J) * h)])

        def of_place() -> None:
            _write(x, drift, b, 0, k, [*zero, *turned])
            _write(x, drift, b, 1, k, [*zero, *(turned * h)])
            _write(x, drift, b, 2, k, [*zero, *turned])

        cond(k < 3, of_turn, of_place)

    for_range(6, column)


def pushed(x: Any, i: Any, rates: list[Any]) -> Force:
    """J^T of the rates of a loop's rows over R; 0 for other constraints."""

    def compliance() -> Any:
        k = x.c_of[i]
        return 1.0 / (in_precision(*CLOSED) * x.loop_mobility[k // 2, k % 2])

    share = cond(x.c_kind[i] == LINE, compliance, lambda: 0.0)
    f = Force.zero()
    for m in range(3):
        f = f + force(x.c_E, i, 6 * m) * (rates[m] * share)
    return f


def loop_motion(x: Any, i: Any, A: Motion, B: Motion) -> Motion:
    """Axes of a closed loop are those of its predecessor; they meet in the successor's frame.

    That of a cross turns about its axis on the predecessor with the successor; a rod turns with its ends.
    """
    k = x.c_of[i] // 2
    b = x.loop_bodies[k, 1]
    p = matrix(x.R, b) @ Vector3(*(x.loop_placement[k, 1, 9 + c] for c in range(3))) + vector(x.p, b)
    full = (x.c_of[i] % 2 == 0) & (x.loop_turns[k] > 2)
    w = A.ang + (B.ang - A.ang) * where(full, 0.5, 0.0)
    v = B.lin + B.ang.cross(p)
    # The axis of loop k on its predecessor, in world axes.
    own = Matrix3([[x.loop_placement[k, 0, 3 * r + c] for c in range(3)] for r in range(3)])
    a = matrix(x.R, x.loop_bodies[k, 0]) @ (own @ vector(x.loop_axes, k, 6))
    cross = (x.c_of[i] % 2 == 0) & (x.loop_turns[k] == 1)
    w = w + a * where(cross, a.dot(B.ang - A.ang), 0.0)
    length, n = x.loop_length[k], vector(x.c_E, i, 3)
    rod = length > 0.0
    apart = v - A.lin - A.ang.cross(p - n * length)
    turned = n.cross(apart) * where(rod, 1.0 / where(rod, length, 1.0), 0.0)
    w = Vector3(*(where(rod, s, t) for s, t in zip(turned, w, strict=True)))
    return Motion(w, v - w.cross(p))


def prepare(x: Any) -> None:
    """Take account of closing the loops for the kick in r_q, where z holds J^T J / R.

    Leaves P, the factors of Z and ``opening`` of the end.
    """
    once(x, _project)
    once(x, of_closed, x.r_q)
    if hasattr(x, "bent"):
        once(x, of_closed, x.bent)  # P changes nothing the second time
    for M in (x.z, x.opening):
        for_range(x.nv, lambda r, M=M: for_range(x.nv, lambda c: put(M, (r, c), 0.0)))
    end = _at_end(x)
    velocities(end, x.end_v, x.V_y)
    count = loaded(end)
    for_range(x.nv, lambda r: _opens(end, r, count))
    once(x, _project)


def of_closed(x: Any, M: Any) -> None:
    """Convert a derivative by the closed pose to one by the pose before loops were closed, with its P."""
    once(x, _times, M, x.P, x.product, x.nv)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(M, (r, c), x.product[r, c])))


def _at_end(x: Any) -> SimpleNamespace:
    """The arrays, with the poses and rows of the closed end of the step."""
    end = SimpleNamespace(**{name: value for name, value in vars(x).items() if name != "once"})
    end.S, end.R, end.p, end.c_E = x.end_S, x.end_R, x.end_p, x.end_E
    return end


# ---- where velocities open loops by much ------------------------------------------------------------------
# What an impact leaves opens loops by terms of first order, so that P counts as it changes: with d = v'' - v'
#
#     H d = -J^T l        dv'' = P dv' - Z^-1 (J^T dJ v'' / R + dJ^T l + dH d)        l = J Z^-1 H v' / R


def bend(x: Any) -> None:
    """Add dJ^T l to ``opening``, for v' in ``v_next``."""
    end = _at_end(x)
    for_range(x.nv, lambda j: put(x.mu, j, 0.0))
    entries_of_H(x, lambda r, c, number: add(x.mu, r, number * x.v_next[c]))
    once(x, back_substitute_unsymmetric, x.z, x.z_inverse, x.mu.reshape(x.nv, 1))
    velocities(end, x.mu, x.V_y)
    for_range(x.n_bodies, lambda b: write_row(x.F, b, Force.zero()))

    def load(i: Any) -> None:
        a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]
        V = motion(x.V_y, b) - motion(x.V_y, a)
        f = pushed(end, i, [V.dot(force(end.c_E, i, 6 * m)) for m in range(3)])
        write_row(x.c_F, i, f)
        write_row(x.F, b, force(x.F, b) + f)
        write_row(x.F, a, force(x.F, a) - f)

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        write_row(x.F, x.parent[b], force(x.F, x.parent[b]) + force(x.F, b))

    _loops(x, load)
    for_range(x.n_bodies - 1, inward)
    count = loaded(end)
    for_range(x.nv, lambda r: _turned(end, r, count))


def _loops(x: Any, do: Callable[[Any], None]) -> None:
    for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == LINE, lambda: do(i), nothing))


def _turned(x: Any, r: Any, count: Any) -> None:
    """Column r of dJ^T l: the rows of loops rotate with their forces, and the axes of joints with their
    bodies.
    """
    forces = [(x.opening, x.f_o)]

    def row(i: Any) -> None:
        a, b, (A, B, _, _) = x.c_bodies[i, 0], x.c_bodies[i, 1], motions(x, i)
        more = loop_motion(x, i, A, B).cross_force(force(x.c_F, i))
        write_row(x.f_o, b, force(x.f_o, b) + more)
        write_row(x.f_o, a, force(x.f_o, a) - more)

    def body(m: Any) -> None:
        b = x.loaded_bodies[m]

        def axis(n: Any) -> None:
            j = x.body_dofs[b, 0] + n
            power = motion(x.X, b).cross(motion(x.S, j)).dot(force(x.F, b))
            cond(x.dof_row[j] < 0, nothing, lambda: add(x.opening, (x.dof_row[j], r), power))

        cond(x.moved[b] > 0, lambda: for_range(x.body_dofs[b, 1], axis), nothing)

    def changes() -> None:
        _loops(x, row)
        gather(x, r, count, forces)
        for_range(count, body)

    along(x, r, count, forces, [], changes)


def _project(x: Any) -> None:
    """P and the factors of Z."""

    def clear(M: Any) -> None:
        for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(M, (r, c), 0.0)))

    def of_H(r: Any, c: Any, number: Any) -> None:
        add(x.z, (r, c), number)
        x.P[r, c] = number

    def times(r: Any, c: Any, number: Any) -> None:
        for_range(x.nv, lambda m: add(x.product, (r, m), number * x.P[c, m]))

    clear(x.P)
    entries_of_H(x, of_H)
    factor_unsymmetric(x, x.z, x.z_inverse)
    once(x, back_substitute_unsymmetric, x.z, x.z_inverse, x.P)
    clear(x.product)
    entries_of_H(x, times)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: put(x.P, (r, c), x.product[r, c])))
    once(x, back_substitute_unsymmetric, x.z, x.z_inverse, x.P)


def _opens(x: Any, r: Any, count: Any) -> None:
    """Columns r of J^T J / R and of J^T dJ/dq v / R, at the end."""
    forces = (x.z, x.f_z), (x.opening, x.f_o)

    def rows(i: Any) -> None:
        a, b, (A, B, change, _) = x.c_bodies[i, 0], x.c_bodies[i, 1], motions(x, i)
        M, E = loop_motion(x, i, A, B), [force(x.c_E, i, 6 * m) for m in range(3)]
        V = motion(x.V_y, b) - motion(x.V_y, a)
        opens = [change.dot(e) + V.dot(M.cross_force(e)) for e in E]
        for (_, f), rates in zip(forces, ([(B - A).dot(e) for e in E], opens), strict=True):
            more = pushed(x, i, rates)
            write_row(f, b, force(f, b) + more)
            write_row(f, a, force(f, a) - more)

    def changes() -> None:
        _loops(x, rows)
        gather(x, r, count, forces)

    along(x, r, count, forces, [(x.V_y, x.X_y)], changes)


def close(x: Any, bent: Any = None) -> None:
    """``next`` of the closed end; ``bent``: further unbalanced momentum, (nv, 3, nv)."""
    count = 3 * x.nv
    q, v = (x.next[k].reshape(x.nv, count) for k in range(2))
    one, other = x.dy.reshape(x.nv, count), x.closed.reshape(x.nv, count)

    def copy(A: Any, B: Any) -> None:
        for_range(x.nv, lambda r: for_range(count, lambda c: put(B, (r, c), A[r, c])))

    once(x, _times, x.P, q, one, count)
    copy(one, q)
    once(x, _times, x.P, v, one, count)
    once(x, _times, x.opening, q, other, count)
    if bent is not None:
        more = bent.reshape(x.nv, count)
        for_range(x.nv, lambda r: for_range(count, lambda c: add(other, (r, c), more[r, c])))
    once(x, back_substitute_unsymmetric, x.z, x.z_inverse, other)
    for_range(x.nv, lambda r: for_range(count, lambda c: put(v, (r, c), one[r, c] - other[r, c])))


def pull(x: Any) -> None:
    """Gradients ``of_q`` and ``of_v`` before loops are closed at the end of a step, from those after it."""
    once(x, _transposed, x.P, x.of_v, x.of_middle)
    back_substitute_transposed(x, x.z, x.z_inverse, x.of_v)
    once(x, _transposed, x.opening, x.of_v, x.mu)

    def entry(j: Any) -> None:
        x.mu[j], x.of_v[j] = x.of_q[j] - x.mu[j], x.of_middle[j]

    for_range(x.nv, entry)
    once(x, _transposed, x.P, x.mu, x.of_q)


def _transposed(x: Any, A: Any, b: Any, out: Any) -> None:
    """out = A^T b."""

    def entry(c: Any) -> None:
        out[c] = for_range(x.nv, lambda r, total: total + A[r, c] * b[r], 0.0)

    for_range(x.nv, entry)


def _times(x: Any, A: Any, B: Any, out: Any, count: Any) -> None:
    """out = A B, with so many columns."""

    def row(r: Any) -> None:
        for_range(count, lambda c: put(out, (r, c), 0.0))

        def term(m: Any) -> None:
            share = A[r, m]
            for_range(count, lambda c: put(out, (r, c), out[r, c] + share * B[m, c]))

        for_range(x.nv, term)

    for_range(x.nv, row)


# ---- bodies along one coordinate of v ---------------------------------------------------------------------


def loaded(x: Any) -> Any:
    """List the bodies with constraints, or that carry such bodies, outward from the base; returns their
    number.
    """
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


Rows = Sequence[tuple[Any, Any]]


def along(x: Any, r: Any, count: Any, forces: Rows, rates: Rows, changes: Callable[[], None]) -> None:
    """Move the bodies along coordinate r of v and call ``changes()``, unless no body moves.

    ``r``: the coordinate; ``count``: of bodies in the list; ``forces``: matrices and forces on bodies of
    which they get a column (:func:`gather`), set to 0 here; ``rates``: velocities of bodies, and where their
    changes go.
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
        for _, f in forces:
            write_row(f, b, [0.0] * 6)
        cond(moves > 0, lambda: _moved(x, b, r, rates), nothing)
        return where(moves > 0, 1, any_one)

    cond(for_range(count, body, 0) > 0, changes, nothing)


def _moved(x: Any, b: Any, r: Any, rates: Rows) -> None:
    """X: the motion of a body, and how its velocities change as the axes of its joints move."""
    first, parent = x.body_dofs[b, 0], x.parent[b]
    known = where(x.moved[parent] > 0, 1.0, 0.0)

    def more(n: Any, *so_far: Any) -> Any:
        is_r = where(x.dof_row[first + n] == r, 1.0, 0.0)
        return tuple(so_far[c] + x.S[first + n, c] * is_r for c in range(6))

    X = of_motion(for_range(x.body_dofs[b, 1], more, *_if(known > 0.0, x.X, parent)))
    write_row(x.X, b, X)
    for V, change in rates:
        before = _if(known > 0.0, change, parent)
        write_row(change, b, before + X.cross(motion(V, b) - motion(V, parent)))


def motions(x: Any, i: Any) -> tuple[Motion, Motion, Motion, Motion]:
    """Motions of the bodies of a constraint, and changes of their relative velocities at y and before."""
    a, b = x.c_bodies[i, 0], x.c_bodies[i, 1]

    def of(rows: Any, body: Any) -> Motion:
        return _if(x.moved[body] > 0, rows, body)

    return of(x.X, a), of(x.X, b), of(x.X_y, b) - of(x.X_y, a), of(x.X_before, b) - of(x.X_before, a)


def _if(condition: Any, rows: Any, body: Any) -> Motion:
    """A motion of a row, or zero."""
    return of_motion([where(condition, rows[body, c], 0.0) for c in range(6)])


def gather(x: Any, r: Any, count: Any, forces: Rows) -> None:
    """Add S . f of the forces on bodies to columns r."""

    def inward(m: Any) -> None:
        b = x.loaded_bodies[count - 1 - m]
        parent = x.parent[b]
        for _, f in forces:
            write_row(f, parent, force(f, parent) + force(f, b))
        for_range(x.body_dofs[b, 1], lambda n: dof(b, x.body_dofs[b, 0] + n))

    def dof(b: Any, j: Any) -> None:
        row, S = x.dof_row[j], motion(x.S, j)

        def enter() -> None:
            for M, f in forces:
                add(M, (row, r), S.dot(force(f, b)))

        cond(row < 0, nothing, enter)

    for_range(count, inward)
