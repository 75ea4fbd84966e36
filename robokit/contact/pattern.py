"""Where A = H + J^T G J and its factors have entries: those of the robot's tree, cliques of pairs, and fill.

Rows and columns of A are places of coordinates of v, see :func:`order`; in lanes the coordinates themselves.
A dof is coupled to those that carry it. A force between two bodies couples the dofs that one of their paths
has and the other has not; those that both have see nothing of it.

Source: RBDA section 6.4 (branch-induced sparsity); A. George, J. Liu, Computer Solution of Large Sparse
Positive Definite Systems (1981), chapter 5 (fill).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.vectors import in_lanes, nothing, one_by_one, put, write_four
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import where


def tip(x: Any, body: Any) -> Any:
    """The last dof on the path of a body, -1 where it does not move."""
    at = while_loop(
        lambda b: (b >= 0) & (x.body_dofs[where(b < 0, 0, b), 1] == 0), lambda b: x.parent[b], body
    )
    known = where(at < 0, 0, at)
    return where(at < 0, -1, x.body_dofs[known, 0] + x.body_dofs[known, 1] - 1)


def symbolic(x: Any) -> None:
    """Columns of the entries of each row of A left of the diagonal, descending, to x.pattern.

    Eliminated from the last row to the first, row k changes the rows of its entries. All of these are in the
    pattern of the first of them, so that it is enough to hand them on to that one. Rows that no pair touches
    keep the pattern of H, for which this holds already if no dof follows another.

    Rows and columns are places: see :func:`order`.
    """
    order(x)
    follows = x.n_dofs > x.nv

    def of_H(r: Any) -> None:
        first, count, k = x.row_path[r, 0], x.row_path[r, 1], place(x, r)
        x.pattern_length[k], x.lowest[k] = count, -1
        for_range(count, lambda m: put(x.pattern, (k, m), x.row_columns[first + m] + (k - r)))
        cond(follows, lambda: touch(x, k), nothing)

    def of_pair(c: Any, a: Any, b: Any) -> tuple[Any, Any]:
        now = x.c_bodies[c, 0], x.c_bodies[c, 1]
        known = (now[0] == a) & (now[1] == b)
        cond(known, nothing, lambda: _clique(x, tip(x, now[0]), tip(x, now[1])))
        return now

    def eliminate(m: Any) -> None:
        k = x.nv - 1 - m
        cond(x.lowest[k] < 0, nothing, lambda: _eliminated(x, k))

    for_range(x.nv, of_H)
    one_by_one(x, lambda _: for_range(x.n_of[0], of_pair, -1, -1))
    for_range(x.nv, eliminate)
    for_range(x.nv, lambda k: _by_fours(x, k))


def _by_fours(x: Any, k: Any) -> None:
    """The fours of a row, from its entries; in A they are 0, as what is no entry stays."""

    def entry(m: Any, at: Any, first: Any) -> tuple[Any, Any]:
        own = first_of_four(x.pattern[k, m])
        at, first = where(own < first, at + 1, at), own
        x.fours[k, at], x.fours_end[k, at] = first, m + 1
        return at, first

    diagonal = first_of_four(k)
    x.fours[k, 0], x.fours_end[k, 0] = diagonal, 0
    count = for_range(x.pattern_length[k], entry, 0, diagonal)[0] + 1
    x.fours_length[k] = count
    for_range(count, lambda m: write_four(x.A, k, x.fours[k, m], [0.0] * 4))


def first_of_four(column: Any) -> Any:
    """First column of the four that one stands in."""
    return 4 * (column // 4)


FEW = 2
"""Parts whose order makes no difference to the fill."""


def place(x: Any, row: Any) -> Any:
    """Of a row of H in A."""
    return row if in_lanes(x) else x.place[row]


def place_of_dof(x: Any, j: Any) -> Any:
    """Of the row of a dof in A, -1 of one that stands still."""
    return x.dof_row[j] if in_lanes(x) else x.dof_place[j]


def order(x: Any) -> None:
    """Places of the rows in A: those of a part of the robot stay together, in their order.

    Of the parts that are left the one whose neighbours have the fewest rows is eliminated first; then these
    are coupled with each other. A heap of hundreds of loose bodies has a fiftieth of the products for that.

    Source: W. Tinney, J. Walker, Direct solutions of sparse network equations by optimally ordered triangular
    factorization, Proceedings of the IEEE 55 (1967): minimum degree.
    """
    if in_lanes(x):
        return
    for_range(x.nv, lambda r: put(x.place, r, r))
    cond((x.n_parts > FEW) & (x.orders[0] > 0), lambda: _by_weight(x), nothing)

    def dof(j: Any) -> None:
        row = x.dof_row[j]
        x.dof_place[j] = cond(row < 0, lambda: -1, lambda: 1 * x.place[row])

    for_range(x.n_dofs, dof)


def _by_weight(x: Any) -> None:
    n = x.n_parts

    def part(p: Any) -> None:
        x.part_weight[p] = 0
        for_range(n, lambda q: put(x.part_beside, (p, q), 0))

    def couple(p: Any, q: Any) -> None:
        for one, other in ((p, q), (q, p)):
            x.part_beside[one, other] = 1
            x.part_weight[one] = x.part_weight[one] + x.part_rows[other, 1]

    def join(p: Any, q: Any) -> None:
        cond((p != q) & (x.part_beside[p, q] == 0), lambda: couple(p, q), nothing)

    def of_pair(c: Any) -> None:
        a, b = x.body_part[x.c_bodies[c, 0]], x.body_part[x.c_bodies[c, 1]]
        cond((a >= 0) & (b >= 0), lambda: join(a, b), nothing)

    def lightest(p: Any, least: Any, at: Any) -> Any:
        w = x.part_weight[p]
        fewer = (w >= 0) & ((at < 0) | (w < least))
        return where(fewer, w, least), where(fewer, p, at)

    def eliminate(_: Any, end: Any) -> Any:
        p = for_range(n, lightest, 0, -1)[1]
        first, count = x.part_rows[p, 0], x.part_rows[p, 1]
        x.part_weight[p] = -1
        for_range(count, lambda k: put(x.place, first + k, end - count + k))

        def neighbour(q: Any, found: Any) -> Any:
            def leave() -> Any:
                x.part_weight[q] = x.part_weight[q] - count
                x.pair_parts[found] = q
                return found + 1

            beside = (x.part_weight[q] >= 0) & (x.part_beside[p, q] > 0)
            return cond(beside, leave, lambda: found)

        found = for_range(n, neighbour, 0)
        for_range(found, lambda k: for_range(k, lambda m: join(x.pair_parts[k], x.pair_parts[m])))
        return end - count

    for_range(n, part)
    for_range(x.n_of[0], of_pair)
    for_range(n, eliminate, x.nv)


def touch(x: Any, k: Any) -> None:
    """Begin the marks of a row that has other entries than H."""

    def begin() -> None:
        for_range(k, lambda c: put(x.marks, (k, c), 0))
        x.lowest[k] = k
        for_range(x.pattern_length[k], lambda m: _mark(x, k, x.pattern[k, m]))

    cond(x.lowest[k] < 0, begin, nothing)


def _mark(x: Any, k: Any, c: Any) -> None:
    x.marks[k, c] = 1
    x.lowest[k] = where(c < x.lowest[k], c, x.lowest[k])


def _eliminated(x: Any, k: Any) -> None:
    """List the marks of a row, and hand them on."""

    def entry(m: Any, count: Any) -> Any:
        c = k - 1 - m
        x.pattern[k, count] = c
        return count + x.marks[k, c]

    count = for_range(k - x.lowest[k], entry, 0)
    x.pattern_length[k] = count

    def hand_on() -> None:
        i = x.pattern[k, 0]
        touch(x, i)
        for_range(count - 1, lambda m: _mark(x, i, x.pattern[k, m + 1]))

    cond(count > 1, hand_on, nothing)


def apart(x: Any, one: Any, other: Any) -> Any:
    """Write the dofs that one of two paths has and the other has not to x.pair_dofs, descending.

    Their signs, 1 for those of the other and -1 for those of the one, are in x.pair_signs.

    Args:
        x: the step.
        one, other: the last dofs of the paths.

    Returns:
        how many dofs they are.
    """

    def step(i: Any, j: Any, count: Any) -> tuple[Any, Any, Any]:
        of_one = i > j
        k = where(of_one, i, j)
        x.pair_dofs[count] = k
        x.pair_signs[count] = where(of_one, -1.0, 1.0)
        up = x.dof_parent[k]
        return where(of_one, up, i), where(of_one, j, up), count + 1

    return while_loop(lambda i, j, _: (i < j) | (j < i), step, one, other, 0)[2]


def _clique(x: Any, one: Any, other: Any) -> None:
    """Mark what a force between two bodies couples; one with the world couples what the tree does."""

    def both() -> None:
        count = apart(x, one, other)

        def begin(m: Any) -> None:
            row = place_of_dof(x, x.pair_dofs[m])
            cond(row < 0, nothing, lambda: touch(x, row))

        def row(m: Any) -> None:
            j = x.pair_dofs[m]
            moves = where(x.dof_row[j] < 0, 0, count - 1 - m)
            for_range(moves, lambda e: _couple(x, j, x.pair_dofs[m + 1 + e]))

        for_range(count, begin)
        for_range(count, row)

    cond((one >= 0) & (other >= 0), both, nothing)


def _couple(x: Any, j: Any, k: Any) -> None:
    """Mark the entry of the rows of two dofs; of one that stands still, or of one row, the diagonal."""
    a, b = place_of_dof(x, j), place_of_dof(x, k)
    a, b = where(a < 0, b, a), where(b < 0, a, b)
    _mark(x, where(a < b, b, a), where(a < b, a, b))
