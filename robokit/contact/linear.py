"""A = H + J^T G J, its factors by the pattern of the step, and solutions.

J is never formed. A constraint between bodies a and b adds S^T K S, K = E^T G E, for the columns S of the
dofs on their two paths; those of constraints with the world are summed down the tree first, as composite
inertias are. All columns are in world axes. Those of a mechanism, a tree or trees that loops connect, are
about its first base, and K is about that; between two mechanisms, about that of the lighter body. About one
origin for all, a body at the distance d from it would have rounding of G d^2.

With slopes of Coulomb's law A = U D L is not symmetric. The pattern is the same, and so is each operation:
rows of L are eliminated with the entries of U^T, and those of U^T with the entries of L. Where both are the
same, A = L^T D L has the same bits.

Source: RBDA sections 6.2 (composites), 6.5 (LTDL), in blocks of four.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from robokit.contact.fields import SPIN
from robokit.contact.kinematics import of_band, one_way, place_in_H, powers, powers_of_row
from robokit.contact.pattern import apart, blocks_of_pair, place, place_of_dof
from robokit.contact.robot_data import BLOCK, FEW
from robokit.contact.vectors import add as add_to
from robokit.contact.vectors import (
    anywhere,
    in_lanes,
    motion,
    moved,
    nothing,
    one_by_one,
    put,
    vector,
    write,
    write_row,
)
from robokit.engine.loops.fields import once
from robokit.spatial import Force, Matrix3, Motion, Symmetric3, Vector3
from robokit.spatial.control_flow import cond, for_range, while_loop, zeros
from robokit.spatial.scalars import where
from robokit.spatial.vectors import ArticulatedInertia


def _rows_of_E(x: Any, c: Any) -> list[Motion]:
    """The rows of a constraint."""
    return [motion(x.c_E, c, 6 * k) for k in range(3)]


def stiffness(x: Any, c: Any, E: list[Motion]) -> ArticulatedInertia:
    """The symmetric part of K, the derivative of the force by the velocities of the bodies; E: its rows."""
    a, b, d, e, f, g = (x.c_G[c, k] for k in range(6))
    GE = [E[0] * row[0] + E[1] * row[1] + E[2] * row[2] for row in ((a, b, e), (b, d, f), (e, f, g))]
    K = [*_products(E, GE)]

    def with_load() -> tuple[Any, ...]:
        m, n = _by_load(x, c)
        return tuple(p + 0.5 * q for p, q in zip(K, _products([m, n], [n, m]), strict=True))

    return ArticulatedInertia.of(list(cond(x.c_kind[c] == SPIN, with_load, lambda: tuple(K))))


def _products(one: list[Motion], other: list[Motion]) -> ArticulatedInertia:
    """The sum of products of columns and rows, a symmetric matrix."""

    def outer(left: list[Vector3], right: list[Vector3]) -> Matrix3:
        rows = [[*v] for v in left], [[*v] for v in right]
        return Matrix3(
            [[sum_of(p[r] * q[s] for p, q in zip(*rows, strict=True)) for s in range(3)] for r in range(3)]
        )

    ang, lin = [m.ang for m in one], [m.lin for m in one]
    other_ang, other_lin = [m.ang for m in other], [m.lin for m in other]
    return ArticulatedInertia(
        Symmetric3.upper(outer(ang, other_ang)),
        outer(ang, other_lin),
        Symmetric3.upper(outer(lin, other_lin)),
    )


def _by_load(x: Any, c: Any) -> tuple[Motion, Motion]:
    """Torsional friction depends on the normal impulse of its contact: K = m n^T of these two, in addition to
    E^T G E.
    """
    of = x.c_of[c]
    normal = x.c_G[of, 3] - x.c_G[of, 7], x.c_G[of, 4] + x.c_G[of, 6], x.c_G[of, 5]
    alone = in_lanes(x) or hasattr(x, "unrolls")

    def motion_of(k: Any, *weights: Any) -> Motion:
        six = _sum_of_rows(x, k, *weights) if alone else once(x, _sum_of_rows, k, *weights)
        return Motion(Vector3(*six[:3]), Vector3(*six[3:]))

    return motion_of(c, *(x.c_by_load[c, k] for k in range(3))), motion_of(of, *normal)


def _sum_of_rows(x: Any, c: Any, a: Any, b: Any, d: Any) -> tuple[Any, ...]:
    """The sum of the rows of a constraint with these weights."""
    E = _rows_of_E(x, c)
    return tuple(E[0] * a + E[1] * b + E[2] * d)


SYMMETRIC = ArticulatedInertia.SIZE  # numbers of the symmetric part of K; those of the skew part follow


class Skew(NamedTuple):
    """A skew 6 x 6 [[a x, M], [-M^T, b x]]."""

    a: Vector3
    M: Matrix3
    b: Vector3

    @classmethod
    def of_row(cls, K: Any, body: Any) -> Skew:
        """The skew matrix of a body, from a row."""
        M = Matrix3([[K[body, SYMMETRIC + 3 + 3 * r + c] for c in range(3)] for r in range(3)])
        return cls(vector(K, body, SYMMETRIC), M, vector(K, body, SYMMETRIC + 12))

    def __matmul__(self, v: Motion) -> Force:
        ang = self.a.cross(v.ang) + self.M @ v.lin
        return Force(ang, self.b.cross(v.lin) - self.M.transpose_apply(v.ang))


def skew_stiffness(x: Any, c: Any, E: list[Motion]) -> list[Any]:
    """The skew part of K: n p^T - p n^T, its 15 numbers."""
    t1, t2, n = E
    K = _skew_product(n, t2 * x.c_G[c, 6] - t1 * x.c_G[c, 7])

    def with_load() -> tuple[Any, ...]:
        m, normal = _by_load(x, c)
        return tuple(_sum(K, _skew_product(m * 0.5, normal)))

    return list(cond(x.c_kind[c] == SPIN, with_load, lambda: tuple(K)))


def _skew_product(n: Motion, p: Motion) -> list[Any]:
    M = [a * d - b * e for a, b in zip(n.ang, p.ang, strict=True) for d, e in zip(p.lin, n.lin, strict=True)]
    return [*p.ang.cross(n.ang), *M, *p.lin.cross(n.lin)]


def sum_of(terms: Any) -> Any:
    """The sum of one term or more."""
    first, *others = terms
    for each in others:
        first = first + each
    return first


def assemble(x: Any, constraints: Any, rows: Any) -> None:
    """A = H + J^T G J of the first constraints and rows, with their slopes, in the pattern's blocks."""

    def no_skew(k: Any) -> None:
        for_range(x.pattern_length[k] + 1, lambda z: _empty(x, x.A_skew, k, z - 1, 0.0))

    def in_order(k: Any) -> None:
        """H by blocks; what pairs have filled besides is empty."""
        first, count, length = x.bands[k, 0], x.bands[k, 1], x.pattern_length[k]
        for_range(where(length + 1 > count, length, 0), lambda z: _empty(x, x.A, k, z))

        def of_H(m: Any) -> None:
            c = x.blocks[first + m]
            for n in range(BLOCK):
                write_row_of(x.A, (block(x, k, c), n), row_of(x.H, (x.bands[k, 2] + c, n)))

        for_range(count, of_H)

    def moved(k: Any) -> None:
        for_range(x.pattern_length[k] + 1, lambda z: _empty(x, x.A, k, z - 1, 1.0))

    def by_entries(r: Any) -> None:
        first, j = x.row_path[r, 0], place(x, r)
        x.A[at(x, j, j)] = x.H[place_in_H(x, r, r)]

        def entry(m: Any) -> None:
            k = x.row_columns[first + m]
            x.A[at(x, j, k + (j - r))] = x.H[place_in_H(x, r, k)]

        for_range(x.row_path[r, 1], entry)

    def out_of_order() -> None:
        for_range(x.n_blocks, moved)
        for_range(x.nv, by_entries)

    def of_row(i: Any) -> None:
        j, gain = place(x, x.r_row[i]), x.r_gain[i]
        add_at(x, x.A, j, j, gain * gain * x.r_G[i])

    cond(x.n_parts > FEW, out_of_order, lambda: for_range(x.n_blocks, in_order))
    cond(anywhere(x, x.n_of[4] > 0), lambda: for_range(x.n_blocks, no_skew), nothing)
    for_range(rows, of_row)
    cond(constraints > 0, lambda: once(x, _of_bodies, constraints), nothing)


def _empty(x: Any, A: Any, k: Any, z: Any, on_diagonal: float = 0.0) -> None:
    """Write 0 to block z of a row of blocks or, for -1, to that on the diagonal, and a number to its
    diagonal.

    Rows that belong to no coordinate stay rows of the identity.
    """
    middle = where(z < 0, on_diagonal, 0.0)
    c = cond(z < 0, lambda: 1 * k, lambda: 1 * x.pattern[x.pattern_first[k] + z])
    for n in range(BLOCK):
        write_row_of(A, (block(x, k, c), n), [middle if m == n else 0.0 for m in range(BLOCK)])


def block(x: Any, k: Any, c: Any) -> Any:
    """Where A has the block of a row k and a column c of blocks."""
    return x.A_row[k] + x.depth[c]


def at(x: Any, row: Any, column: Any) -> tuple[Any, ...]:
    """The place of an entry of A in its blocks."""
    k, c = row // BLOCK, column // BLOCK
    return block(x, k, c), row - BLOCK * k, column - BLOCK * c


def row_of(A: Any, place: tuple[Any, ...]) -> list[Any]:
    """A row of a block."""
    return [A[(*place, n)] for n in range(BLOCK)]


def write_row_of(A: Any, place: tuple[Any, ...], values: Any) -> None:
    """The same, written."""
    for n, value in enumerate(values):
        A[(*place, n)] = value


def next_pair(x: Any, c: Any, constraints: Any, made: Any = None) -> tuple[Any, Any]:
    """Sum K of constraints from c on, for one pair of bodies; with the world, to the moving body.

    Returns the constraint after those of the pair, or their number, and whether there is a pair. ``made``:
    the symmetric parts of all constraints, if they have been computed before.
    """

    def add_own(c: Any, body: Any) -> None:
        if made is None:
            E = _rows_of_E(x, c)
            _carry(x, body, stiffness(x, c, E), lambda: skew_stiffness(x, c, E))
        else:
            K = ArticulatedInertia.of([made[c, e] for e in range(SYMMETRIC)])
            _carry(x, body, K, lambda: skew_stiffness(x, c, _rows_of_E(x, c)))

    def constraint(c: Any, _: Any) -> Any:
        a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]
        pair = (x.body_tip[a] >= 0) & (x.body_tip[b] >= 0)
        body = where(pair, 0, where(x.body_tip[a] < 0, b, a))
        after = where(c + 1 < constraints, c + 1, c)
        more = (c < after) & (x.c_bodies[after, 0] == a) & (x.c_bodies[after, 1] == b)
        acts = (x.c_kind[c] == SPIN) | (x.c_G[c, 0] + x.c_G[c, 2] + x.c_G[c, 5] > 0.0)
        cond(acts, lambda: add_own(c, body), nothing)
        return c + 1, where(pair & ~more & (x.has_K[0] > 0), 1, 0)

    found: tuple[Any, Any] = while_loop(lambda c, there: (c < constraints) & (there == 0), constraint, c, 0)
    return found


def _of_bodies(x: Any, constraints: Any) -> None:
    """Add K of the constraints of bodies."""
    made = zeros(constraints, SYMMETRIC) if in_lanes(x) else None  # of all states side by side

    def to_next_pair(c: Any) -> Any:
        """States that are computed side by side come to their first pair together, then to their second."""
        alone = in_lanes(x) or hasattr(x, "unrolls")
        c, there = next_pair(x, c, constraints, made) if alone else once(x, next_pair, c, constraints)
        cond(there > 0, lambda: whole_pair(c - 1), nothing)
        return c

    def whole_pair(c: Any) -> None:
        b = x.c_bodies[c, 1]
        one, other, place = x.body_tip[x.c_bodies[c, 0]], x.body_tip[b], vector(x.seat, b)
        place = place + vector(x.c_arms, (c, 1))
        _of_pair(x, one, other, ArticulatedInertia.of(_symmetric(x, 0)), place)
        x.has_K[0] = 0

    def down(m: Any) -> None:
        b = x.n_bodies - 1 - m
        parent = x.parent[b]

        def acting() -> None:
            K = ArticulatedInertia.of(_symmetric(x, b))
            for_range(x.body_dofs[b, 1], lambda e: _of_dof(x, x.body_dofs[b, 0] + e, K, b))
            cond(parent >= 0, lambda: carry_on(x, b, parent), nothing)

        cond(x.has_K[b] > 0, acting, nothing)

    for_range(x.n_bodies, lambda b: put(x.has_K, b, 0))
    if made is not None:
        for_range(constraints, lambda c: write_row(made, c, stiffness(x, c, _rows_of_E(x, c))))
    one_by_one(x, lambda _: while_loop(lambda c: c < constraints, to_next_pair, 0))
    for_range(x.n_bodies, down)


def _symmetric(x: Any, b: Any) -> list[Any]:
    """Numbers of the symmetric part of K of a body."""
    return [x.K[b, e] for e in range(SYMMETRIC)]


def _skew(x: Any, b: Any) -> list[Any]:
    """The numbers of the skew part."""
    return [x.K[b, SYMMETRIC + e] for e in range(15)]


def whole_stiffness(x: Any, b: Any) -> list[list[Any]]:
    """K of a body by rows, with both of its parts."""
    even, odd = ArticulatedInertia.of(_symmetric(x, b)), Skew.of_row(x.K, b)
    A, B, M = even.A.full(), even.B, even.M.full()
    a, N, b_x = Matrix3.skew(odd.a), odd.M, Matrix3.skew(odd.b)
    rows = [[*_sum(A.rows[r], a.rows[r]), *_sum(B.rows[r], N.rows[r])] for r in range(3)]
    for r in range(3):
        across = [B.rows[k][r] - N.rows[k][r] for k in range(3)]
        rows.append([*across, *_sum(M.rows[r], b_x.rows[r])])
    return rows


def _carry(x: Any, body: Any, K: Any, skew_part: Callable[[], list[Any]]) -> None:
    """Add to the K of a body, or begin with it."""
    there = x.has_K[body] > 0

    def added(old: list[Any], new: Any) -> list[Any]:
        return [where(there, p + q, q) for p, q in zip(old, new, strict=True)]

    def add_skew() -> None:
        for e, number in enumerate(added(_skew(x, body), skew_part())):
            x.K[body, SYMMETRIC + e] = number

    write_row(x.K, body, added(_symmetric(x, body), K))
    cond(x.n_of[4] > 0, add_skew, nothing)
    x.has_K[body] = 1


def carry_on(x: Any, source: Any, body: Any) -> None:
    """Add the K of one body to that of another."""
    _carry(x, body, ArticulatedInertia.of(_symmetric(x, source)), lambda: _skew(x, source))


def _of_dof(x: Any, j: Any, K: ArticulatedInertia, b: Any) -> None:
    """Add S_j.K S to the entries of a dof's row; b: the body that carries K."""

    def by_fours(A: Any, F: Force) -> None:
        def four(c: Any, e: Any, n: Any) -> None:
            row = block(x, j // BLOCK, x.blocks[e]), n
            more = powers_of_row(x, F, c, e, n)
            if A is not x.A:  # the diagonal of a skew part is 0, not rounding
                more = [where(c + m == j, 0.0, p) for m, p in enumerate(more)]
            write_row_of(A, row, [a + p for a, p in zip(row_of(A, row), more, strict=True)])

        of_band(x, j, four)

    def by_entries(A: Any, F: Force) -> None:
        row, first = place_of_dof(x, j), x.path[j, 0]

        def of_ancestor(e: Any) -> None:
            k = x.ancestors[first + e]
            add(x, A, row, k, motion(x.S, k).dot(F))

        def moving() -> None:
            if A is x.A:
                add_at(x, A, row, row, motion(x.S, j).dot(F))
            for_range(x.path[j, 1], of_ancestor)

        cond(row < 0, nothing, moving)

    def enter(A: Any, F: Force) -> None:
        one_way(x, lambda: by_fours(A, F), lambda: by_entries(A, F))

    enter(x.A, K @ motion(x.S, j))
    cond(x.n_of[4] > 0, lambda: enter(x.A_skew, -(Skew.of_row(x.K, b) @ motion(x.S, j))), nothing)


def _of_pair(x: Any, one: Any, other: Any, K: ArticulatedInertia, place: Vector3) -> None:
    """Add S^T K S of two paths that end with these dofs; dofs that carry both bodies do not contribute.

    ``place``: the point that K is about, from the step's origin.
    """
    count = apart(x, one, other)

    def of_dof(enter: Any) -> None:
        """Call enter(m, A, force) for all dofs, with the force on its row in A and in its skew part."""

        def dof(m: Any) -> None:
            s = motion(x.pair_S, m)
            enter(m, x.A, K @ s)
            cond(x.n_of[4] > 0, lambda: enter(m, x.A_skew, -(Skew.of_row(x.K, 0) @ s)), nothing)

        for_range(count, dof)

    def entries(m: Any, A: Any, F: Force) -> None:
        j = x.pair_dofs[m]
        row = place_of_dof(x, j)

        def of_other(e: Any) -> None:
            add(x, A, row, x.pair_dofs[m + 1 + e], motion(x.pair_S, m + 1 + e).dot(F))

        def moving() -> None:
            if A is x.A:
                add_at(x, A, row, row, motion(x.pair_S, m).dot(F))
            for_range(count - 1 - m, of_other)

        cond(row < 0, nothing, moving)

    def fours(m: Any, A: Any, F: Force, blocks: Any) -> None:
        j = x.pair_dofs[m]
        k = j // BLOCK

        def four(z: Any) -> None:
            c = x.pair_blocks[z]
            row = block(x, k, c), j - BLOCK * k
            last = j if A is x.A else j - 1  # of a skew part the diagonal is 0
            found = powers(x.pair_S_by_row, F, BLOCK * c)
            more = [where(BLOCK * c + n <= last, power, 0.0) for n, power in enumerate(found)]
            write_row_of(A, row, [a + b for a, b in zip(row_of(A, row), more, strict=True)])

        for_range(blocks, lambda z: cond(x.pair_blocks[z] > k, nothing, lambda: four(z)))

    def by_fours() -> None:
        blocks = blocks_of_pair(x, count)
        _pair_by_row(x, count, blocks)
        of_dof(lambda m, A, F: fours(m, A, F, blocks))

    for_range(count, lambda m: _pair_column(x, m, place))
    one_way(x, by_fours, lambda: of_dof(entries))


def _pair_column(x: Any, m: Any, place: Vector3) -> None:
    """The column of a dof of a pair about a place, with its sign."""
    j = x.pair_dofs[m]
    arm = place - vector(x.seat, x.dof_body[j])
    write_row(x.pair_S, m, moved(motion(x.S, j), arm) * x.pair_signs[m])


def _pair_by_row(x: Any, count: Any, blocks: Any) -> None:
    """Several of these by rows, in as many blocks; 0 in the other columns of the blocks."""

    def empty(z: Any) -> None:
        for k in range(6):
            write(x.pair_S_by_row[k], BLOCK * x.pair_blocks[z], [0.0] * BLOCK)

    def column(m: Any) -> None:
        for k in range(6):
            x.pair_S_by_row[k, x.pair_dofs[m]] = x.pair_S[m, k]

    for_range(blocks, empty)
    for_range(count, column)


def add(x: Any, A: Any, row: Any, k: Any, value: Any) -> None:
    """Add to the entry of A, or of its skew part, of a row and a dof other than its own.

    Two dofs of one row meet on its diagonal from both sides. A dof that cannot move has S = 0, and adds 0.
    """
    if in_lanes(x) or hasattr(x, "unrolls"):
        _add(x, row, k, value, A is x.A)
    else:
        once(x, _add_even if A is x.A else _add_odd, row, k, value)


def _add_even(x: Any, row: Any, k: Any, value: Any) -> None:
    _add(x, row, k, value, True)


def _add_odd(x: Any, row: Any, k: Any, value: Any) -> None:
    _add(x, row, k, value, False)


def _add(x: Any, row: Any, k: Any, value: Any, even: bool) -> None:
    other = place_of_dof(x, k)
    other = where(other < 0, row, other)
    on_diagonal, across = (2.0, 1.0) if even else (0.0, -1.0)
    times = where(row == other, on_diagonal, where(row < other, across, 1.0))
    A = x.A if even else x.A_skew
    add_at(x, A, where(row < other, other, row), where(row < other, row, other), times * value)


def add_at(x: Any, A: Any, row: Any, column: Any, value: Any) -> None:
    """Add to an entry of A, or of its skew part, on the diagonal or left of it."""
    if in_lanes(x):
        add_to(A.reshape(BLOCK * BLOCK * x.n_fill), x.entry_row[row] + x.entry_column[column], value)
    else:
        add_to(A, at(x, row, column), value)


def _sum(one: Any, other: Any) -> list[Any]:
    """Entry by entry."""
    return [p + q for p, q in zip(one, other, strict=True)]


# ---- factors and solutions --------------------------------------------------------------------------------


def factor(x: Any) -> None:
    """A = U D L in place: L below the diagonal, 1 / D in Dinv; U^T in A_skew, or L where A is symmetric.

    The entries above the diagonal are not valid afterwards.
    """
    cond(anywhere(x, x.n_of[4] > 0), lambda: _factor(x, (x.A, x.A_skew)), lambda: _factor(x, (x.A,)))


def _factor(x: Any, both: tuple[Any, ...]) -> None:
    """Factor A, or its lower triangle and the transpose of its upper one: each is eliminated with the entries
    of the other.
    """
    others = [len(both) - 1 - e for e in range(len(both))]

    def row(m: Any) -> None:
        k, rows = x.n_blocks - 1 - m, range(BLOCK)
        first, own_row = x.pattern_first[k], x.A_row[k]
        at_end = own_row + x.depth[k]
        given = [[[M[at_end, r, c] for c in range(r + 1)] for r in rows] for M in both]
        L, inverse = _of_diagonal(given, others)
        for r in rows:
            x.Dinv[BLOCK * k + r] = inverse[r]
            for e, M in enumerate(both):
                for c in range(r):
                    M[at_end, r, c] = L[e][r][c]

        def eliminate(z: Any) -> None:
            """The rows of the block one after the other; then shares, by which others take from these."""
            c = x.pattern[first + z]
            here = own_row + x.depth[c]
            for e, M in enumerate(both):
                own = [row_of(M, (here, r)) for r in rows]
                for r in reversed(rows):
                    for i in range(r):
                        own[i] = [a - L[others[e]][r][i] * b for a, b in zip(own[i], own[r], strict=True)]
                for r in rows:
                    write_row_of(M, (here, r), own[r])
                    write_row_of(x.shares, (c, e, r), [a * inverse[r] for a in own[r]])

        def take(z: Any) -> None:
            """What the block's rows are worth in the columns of one of its blocks."""
            c = x.pattern[first + z]
            depth = x.depth[c]
            here = own_row + depth
            own = [[row_of(M, (here, r)) for r in rows] for M in both]

            def from_row(n: Any) -> None:
                other = x.pattern[first + n]
                there = x.A_row[other] + depth
                for e, M in enumerate(both):
                    for i in rows:
                        left = row_of(M, (there, i))
                        for r in rows:
                            share = x.shares[other, others[e], r, i]
                            left = [a - share * b for a, b in zip(left, own[e][r], strict=True)]
                        write_row_of(M, (there, i), left)

            for_range(z + 1, from_row)
            for e, M in enumerate(both):
                for r in rows:
                    write_row_of(M, (here, r), row_of(x.shares, (c, e, r)))

        count = x.pattern_length[k]
        for_range(count, eliminate)
        for_range(count, take)

    if len(both) > 1:
        for_range(x.n_blocks, lambda k: _two_triangles(x, k))
    for_range(x.n_blocks, row)


def _two_triangles(x: Any, k: Any) -> None:
    """A row of blocks of A, and of its transpose, from the symmetric and the skew part."""

    def both(c: Any) -> None:
        at_block = block(x, k, c)
        for r in range(BLOCK):
            even, odd = (row_of(M, (at_block, r)) for M in (x.A, x.A_skew))
            write_row_of(x.A, (at_block, r), [a + b for a, b in zip(even, odd, strict=True)])
            write_row_of(x.A_skew, (at_block, r), [a - b for a, b in zip(even, odd, strict=True)])

    both(k)
    for_range(x.pattern_length[k], lambda z: both(x.pattern[x.pattern_first[k] + z]))


def _of_diagonal(given: Any, others: list[int]) -> tuple[Any, list[Any]]:
    """L of each triangle, and the inverse of D, of a block on the diagonal."""
    L, inverse = [[list(row) for row in A] for A in given], [1.0] * BLOCK
    for r in reversed(range(BLOCK)):
        inverse[r] = 1.0 / given[0][r][r]
        for A, own in zip(given, L, strict=True):
            for i in range(r):
                own[r][i] = A[r][i] * inverse[r]
        for A, other in zip(given, others, strict=True):
            for i in range(r):
                for c in range(i + 1):
                    A[i][c] = A[i][c] - L[other][r][i] * A[r][c]
    return L, inverse


def back_substitute(x: Any, b: Any) -> None:
    """b becomes A^-1 b, by the factors."""
    known = x.permuted
    for_range(x.n_columns, lambda c: put(known, c, 0.0))
    for_range(x.nv, lambda r: put(known, place(x, r), b[r]))
    cond(
        anywhere(x, x.n_of[4] > 0),
        lambda: for_range(x.n_blocks, lambda m: _by_U(x, x.n_blocks - 1 - m, True)),
        lambda: for_range(x.n_blocks, lambda m: _by_U(x, x.n_blocks - 1 - m, False)),
    )
    for_range(x.n_blocks, lambda k: _by_D_and_L(x, k))
    for_range(x.nv, lambda r: put(b, r, known[place(x, r)]))


def _by_U(x: Any, k: Any, skew: bool) -> None:
    """Solve for four unknowns of U y = b, and subtract those that come after them."""
    known, rows = x.permuted, range(BLOCK)
    first = BLOCK * k
    listed, own_row = x.pattern_first[k], x.A_row[k]
    at_end = own_row + x.depth[k]

    def entry(*place: Any) -> Any:
        if not skew:
            return x.A[place]
        of_U = x.A_skew[place]
        return where(x.n_of[4] > 0, of_U, x.A[place]) if in_lanes(x) else of_U

    own = [known[first + r] for r in rows]
    for r in reversed(rows):
        for i in range(r):
            own[i] = own[i] - entry(at_end, r, i) * own[r]
    for r in rows:
        known[first + r] = own[r]

    def take(z: Any) -> None:
        c = x.pattern[listed + z]
        here = own_row + x.depth[c]
        left = [known[BLOCK * c + n] for n in rows]
        for r in rows:
            left = [left[n] - entry(here, r, n) * own[r] for n in rows]
        for n in rows:
            known[BLOCK * c + n] = left[n]

    for_range(x.pattern_length[k], take)


def _by_D_and_L(x: Any, k: Any) -> None:
    """Solve for four unknowns of D L x = y, given those that come before them."""
    known, rows = x.permuted, range(BLOCK)
    first = BLOCK * k
    listed, own_row = x.pattern_first[k], x.A_row[k]
    at_end = own_row + x.depth[k]

    def of_block(z: Any, *so_far: Any) -> tuple[Any, ...]:
        c = x.pattern[listed + z]
        here = own_row + x.depth[c]
        given = [known[BLOCK * c + n] for n in rows]
        entries = [row_of(x.A, (here, r)) for r in rows]
        return tuple(so_far[BLOCK * r + n] + entries[r][n] * given[n] for r in rows for n in rows)

    sums = for_range(x.pattern_length[k], of_block, *[0.0] * BLOCK * BLOCK)
    own = [known[first + r] * x.Dinv[first + r] for r in rows]
    for r in rows:
        s = sums[BLOCK * r : BLOCK * (r + 1)]
        own[r] = own[r] - ((s[0] + s[1]) + (s[2] + s[3]))
        for i in range(r):
            own[r] = own[r] - x.A[at_end, r, i] * own[i]
    for r in rows:
        known[first + r] = own[r]


# ==== matrices that are not symmetric, in the pattern of A ========================================
# Factors of such a matrix, and solutions of it and of its transpose:
#
#     M = U L     U: ones on the diagonal, entries above it; L: entries on the diagonal and below it
#
# Row i has entries in the columns of ``entries``, and column i in these rows. Eliminated from the last row to
# the first, as symmetric matrices are above, this makes no other entries.
#
# Source: RBDA section 6.5; the same elimination without symmetry.


def factor_unsymmetric(x: Any, M: Any, inverse: Any) -> None:
    """Replace M by its factors, (nv, nv); ``inverse``: that of their diagonal, (nv,)."""

    def row(m: Any) -> None:
        k = x.nv - 1 - m
        inverse[k] = 1.0 / M[k, k]

        def above(e: Any) -> None:
            i = x.entries[k, e]
            share = M[i, k] * inverse[k]

            def entry(z: Any) -> None:
                c = x.entries[k, z]
                M[i, c] = M[i, c] - share * M[k, c]

            for_range(x.entries_length[k], entry)
            M[i, k] = share

        for_range(x.entries_length[k], above)

    for_range(x.nv, row)


def back_substitute_unsymmetric(x: Any, M: Any, inverse: Any, B: Any) -> None:
    """B becomes M^-1 B, by the factors; (nv, m): the columns go together."""

    def take(i: Any, share: Any, k: Any) -> None:
        def one(c: Any) -> None:
            B[i, c] = B[i, c] - share * B[k, c]

        for_range(B.shape[1], one)

    def up(m: Any) -> None:
        k = x.nv - 1 - m

        def entry(z: Any) -> None:
            i = x.entries[k, z]
            take(i, M[i, k], k)

        for_range(x.entries_length[k], entry)

    def down(k: Any) -> None:
        def entry(z: Any) -> None:
            i = x.entries[k, z]
            take(k, M[k, i], i)

        def scaled(c: Any) -> None:
            B[k, c] = B[k, c] * inverse[k]

        for_range(x.entries_length[k], entry)
        for_range(B.shape[1], scaled)

    for_range(x.nv, up)
    for_range(x.nv, down)


def back_substitute_transposed(x: Any, M: Any, inverse: Any, b: Any) -> None:
    """b becomes M^-T b, by the factors."""

    def up(m: Any) -> None:
        k = x.nv - 1 - m
        known = b[k] * inverse[k]
        b[k] = known

        def take(z: Any) -> None:
            i = x.entries[k, z]
            b[i] = b[i] - M[k, i] * known

        for_range(x.entries_length[k], take)

    def down(k: Any) -> None:
        def entry(z: Any, total: Any) -> Any:
            i = x.entries[k, z]
            return total - M[i, k] * b[i]

        b[k] = for_range(x.entries_length[k], entry, b[k])

    for_range(x.nv, up)
    for_range(x.nv, down)
