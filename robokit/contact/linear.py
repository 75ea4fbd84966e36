"""A = H + J^T G J, its factors L^T D L by the pattern of the step, and solutions.

J is never formed. A constraint between bodies a and b adds S^T K S, K = E^T G E, for the columns S of the
dofs on their two paths; those of constraints with the world are summed down the tree first, as composite
inertias are. All columns are in world axes about one origin.

Source: RBDA sections 6.2 (composites), 6.5 (LTDL).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.pattern import apart, place, place_of_dof, tip
from robokit.contact.vectors import (
    in_lanes,
    motion,
    nothing,
    one_by_one,
    put,
    read_four,
    write_four,
    write_row,
)
from robokit.spatial import Matrix3, Symmetric3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.inertia import ArticulatedInertia
from robokit.spatial.scalars import where


def stiffness(x: Any, c: Any) -> ArticulatedInertia:
    """K = E^T G E of a constraint: the force that its bodies' velocities make."""
    E = [motion(x.c_E, c, 6 * k) for k in range(3)]
    a, b, d, e, f, g = (x.c_G[c, k] for k in range(6))
    G = (a, b, e), (b, d, f), (e, f, g)
    GE = [E[0] * row[0] + E[1] * row[1] + E[2] * row[2] for row in G]
    ang, lin = [m.ang for m in E], [m.lin for m in E]

    def outer(left: Any, right: Any) -> Matrix3:
        return Matrix3(
            [
                [sum_of(p[r] * q[s] for p, q in zip(left, right, strict=True)) for s in range(3)]
                for r in range(3)
            ]
        )

    left_ang, left_lin = [[*v] for v in ang], [[*v] for v in lin]
    right_ang, right_lin = [[*m.ang] for m in GE], [[*m.lin] for m in GE]
    return ArticulatedInertia(
        Symmetric3.upper(outer(left_ang, right_ang)),
        outer(left_ang, right_lin),
        Symmetric3.upper(outer(left_lin, right_lin)),
    )


def sum_of(terms: Any) -> Any:
    """The sum of one term or more."""
    first, *others = terms
    for each in others:
        first = first + each
    return first


def assemble(x: Any, constraints: Any, rows: Any) -> None:
    """A = H + J^T G J of the first constraints and rows, with their slopes, in the pattern's entries."""

    def of_H(r: Any) -> None:
        first, j = x.row_path[r, 0], place(x, r)

        def empty() -> None:
            for_range(x.fours_length[j], lambda m: write_four(x.A, j, x.fours[j, m], [0.0] * 4))

        cond(x.lowest[j] < 0, nothing, empty)
        x.A[j, j] = x.H[r, r]

        def entry(m: Any) -> None:
            k = x.row_columns[first + m]
            x.A[j, k + (j - r)] = x.H[r, k]

        for_range(x.row_path[r, 1], entry)

    def of_row(i: Any) -> None:
        j, gain = place(x, x.r_row[i]), x.r_gain[i]
        x.A[j, j] = x.A[j, j] + gain * gain * x.r_G[i]

    for_range(x.nv, of_H)
    for_range(rows, of_row)
    cond(constraints > 0, lambda: _of_bodies(x, constraints), nothing)


def _of_bodies(x: Any, constraints: Any) -> None:
    """Add what constraints of bodies make."""
    zero = (0.0,) * 21

    def acting(K: Any) -> Any:
        return sum_of(K[e] for e in (0, 1, 2, 15, 16, 17)) > 0.0

    def matrix(b: Any) -> list[Any]:
        return [x.K[b, e] for e in range(21)]

    def constraint(c: Any) -> None:
        """To the K of the body that moves; of a pair to that of the world, until its last one."""
        a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]
        one, other = tip(x, a), tip(x, b)
        pair = (one >= 0) & (other >= 0)
        body = where(pair, 0, where(one < 0, b, a))
        after = where(c + 1 < constraints, c + 1, c)
        more = (c < after) & (x.c_bodies[after, 0] == a) & (x.c_bodies[after, 1] == b)

        def whole() -> None:
            K = matrix(0)
            cond(acting(K), lambda: _of_pair(x, one, other, ArticulatedInertia.of(K)), nothing)
            write_row(x.K, 0, zero)

        acts = x.c_G[c, 0] + x.c_G[c, 2] + x.c_G[c, 5] > 0.0
        cond(acts, lambda: write_row(x.K, body, _sum(matrix(body), stiffness(x, c))), nothing)
        cond(more, nothing, lambda: cond(pair, whole, nothing))

    def down(m: Any) -> None:
        b = x.n_bodies - 1 - m
        K = matrix(b)
        count, parent = x.body_dofs[b, 1], x.parent[b]

        def of_dof(e: Any) -> None:
            j = x.body_dofs[b, 0] + e
            row, s, first = place_of_dof(x, j), motion(x.S, j), x.path[j, 0]
            F = ArticulatedInertia.of(K) @ s

            def of_ancestor(e: Any) -> None:
                k = x.ancestors[first + e]
                add(x, row, k, motion(x.S, k).dot(F))

            def moving() -> None:
                x.A[row, row] = x.A[row, row] + s.dot(F)
                for_range(x.path[j, 1], of_ancestor)

            cond(row < 0, nothing, moving)

        def hand_on() -> None:
            write_row(x.K, parent, _sum(matrix(parent), K))

        def loaded() -> None:
            for_range(count, of_dof)
            cond(parent >= 0, hand_on, nothing)

        cond(acting(K), loaded, nothing)

    for_range(x.n_bodies, lambda b: write_row(x.K, b, zero))
    one_by_one(x, lambda _: for_range(constraints, constraint))
    for_range(x.n_bodies, down)


def _of_pair(x: Any, one: Any, other: Any, K: ArticulatedInertia) -> None:
    """Add S^T K S of two paths that end with these dofs: dofs that carry both bodies see nothing of it."""
    count = apart(x, one, other)

    def of_dof(m: Any) -> None:
        j = x.pair_dofs[m]
        row, s = place_of_dof(x, j), motion(x.S, j) * x.pair_signs[m]
        F = K @ s

        def of_other(e: Any) -> None:
            k, sign = x.pair_dofs[m + 1 + e], x.pair_signs[m + 1 + e]
            add(x, row, k, motion(x.S, k).dot(F) * sign)

        def moving() -> None:
            x.A[row, row] = x.A[row, row] + s.dot(F)
            for_range(count - 1 - m, of_other)

        cond(row < 0, nothing, moving)

    for_range(count, of_dof)


def add(x: Any, row: Any, k: Any, value: Any) -> None:
    """Add to the entry of A of a row and of another dof than the one that made it.

    Two dofs of one row meet on its diagonal from both sides. One that stands still has S = 0, and adds 0.
    """
    other = place_of_dof(x, k)
    other = where(other < 0, row, other)
    twice = where(row == other, 2.0, 1.0)
    entry = where(row < other, other, row), where(row < other, row, other)
    x.A[entry] = x.A[entry] + twice * value


def _sum(one: Any, other: Any) -> list[Any]:
    """Entry by entry."""
    return [p + q for p, q in zip(one, other, strict=True)]


def factor(x: Any) -> None:
    """A = L^T D L in place: L below the diagonal, and 0 from there to the end of its four; 1 / D in Dinv.

    Each row is taken from the rows of its entries, four columns at a time: one operation of a vector, also
    where some of them are 0.
    """
    if in_lanes(x):
        _factor_in_lanes(x)
        return
    A, pattern = x.A, x.pattern

    def row(m: Any) -> None:
        k = x.nv - 1 - m
        inverse, last, count = 1.0 / A[k, k], x.fours[k, 0], x.pattern_length[k]
        x.Dinv[k] = inverse
        write_four(A, k, last, [where(last + n < k, A[k, last + n], 0.0) for n in range(4)])
        for_range(count, lambda n: put(x.shares, n, A[k, pattern[k, n]] * inverse))

        def four(z: Any) -> None:
            first = x.fours[k, z]
            own = read_four(A, k, first)

            def entry(n: Any) -> None:
                i, share = pattern[k, n], x.shares[n]
                less = [a - share * b for a, b in zip(read_four(A, i, first), own, strict=True)]
                write_four(A, i, first, less)

            for_range(x.fours_end[k, z], entry)
            write_four(A, k, first, [a * inverse for a in own])

        for_range(x.fours_length[k], four)

    for_range(x.nv, row)


def back_substitute(x: Any, b: Any) -> None:
    """b becomes A^-1 b, by the factors."""
    if in_lanes(x):
        _back_substitute_in_lanes(x, b)
        return
    known = x.permuted

    def up(m: Any) -> None:
        k = x.nv - 1 - m
        number = known[k]

        def take(z: Any) -> None:
            first = x.fours[k, z]
            less = [known[first + n] - x.A[k, first + n] * number for n in range(4)]
            for n, value in enumerate(less):
                known[first + n] = value

        for_range(x.fours_length[k], take)

    def down(k: Any) -> None:
        # One by one: four numbers of which one was written just before are not read until it is in the cache.
        def entry(z: Any, total: Any) -> Any:
            i = x.pattern[k, z]
            return total - x.A[k, i] * known[i]

        known[k] = for_range(x.pattern_length[k], entry, known[k] * x.Dinv[k])

    for_range(x.n_columns, lambda c: put(known, c, 0.0))
    for_range(x.nv, lambda r: put(known, place(x, r), b[r]))
    for_range(x.nv, up)
    for_range(x.nv, down)
    for_range(x.nv, lambda r: put(b, r, known[place(x, r)]))


# ---- rows in lanes ----------------------------------------------------------------------------------------


def _factor_in_lanes(x: Any) -> None:
    """As :func:`factor`, by the entries alone: rows fill the vectors. Four rows at a time share numbers."""
    A, pattern = x.A, x.pattern

    def row(m: Any) -> None:
        k = x.nv - 1 - m
        inverse, count = 1.0 / A[k, k], x.pattern_length[k]
        x.Dinv[k] = inverse

        def some(start: Any, width: int) -> None:
            rows = [pattern[k, start + n] for n in range(width)]
            known = [A[k, i] for i in rows]
            shares = [a * inverse for a in known]
            for n, i in enumerate(rows):
                for c in range(n, width):
                    A[i, rows[c]] = A[i, rows[c]] - shares[n] * known[c]

            def entry(z: Any) -> None:
                c = pattern[k, start + width + z]
                number = A[k, c]
                for i, share in zip(rows, shares, strict=True):
                    A[i, c] = A[i, c] - share * number

            for_range(count - start - width, entry)
            for i, share in zip(rows, shares, strict=True):
                A[k, i] = share

        fours = count // 4
        rest = count - 4 * fours
        for_range(fours, lambda n: some(4 * n, 4))
        cond(rest > 1, lambda: some(4 * fours, 2), nothing)
        cond((rest == 1) | (rest == 3), lambda: some(count - 1, 1), nothing)

    for_range(x.nv, row)


def _back_substitute_in_lanes(x: Any, b: Any) -> None:
    def up(m: Any) -> None:
        k = x.nv - 1 - m
        known = b[k]

        def take(z: Any) -> None:
            i = x.pattern[k, z]
            b[i] = b[i] - x.A[k, i] * known

        for_range(x.pattern_length[k], take)

    def down(k: Any) -> None:
        def entry(z: Any, total: Any) -> Any:
            i = x.pattern[k, z]
            return total - x.A[k, i] * b[i]

        b[k] = for_range(x.pattern_length[k], entry, b[k] * x.Dinv[k])

    for_range(x.nv, up)
    for_range(x.nv, down)
