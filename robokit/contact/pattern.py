"""Where the matrix A = H + J^T G J of a step has entries, and its factors, in blocks of four by four.

Rows and columns of A are places of coordinates of v, see :func:`order`. A dof is coupled to those that carry
it. A force between two bodies couples the dofs that one of their paths has and the other has not; those that
both have see nothing of it. A block is worked on as a whole, with its zeros: four numbers are one operation
of a vector, and of a robot's tree few of them are zeros.

Source: RBDA section 6.4 (branch-induced sparsity); A. George, J. Liu, Computer Solution of Large Sparse
Positive Definite Systems (1981), chapter 5 (fill).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.robot_data import BLOCK, FEW
from robokit.contact.vectors import in_lanes, nothing, one_by_one, put
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import where


def symbolic(x: Any) -> None:
    """Columns of the blocks of each row of blocks of A left of the diagonal, descending, to x.pattern.

    Eliminated from the last row to the first, row k changes the rows of its blocks. All of these are in the
    pattern of the first of them, so that it is enough to hand them on to that one.
    """
    order(x)

    def begin(k: Any) -> None:
        x.lowest[k] = k
        for_range(k, lambda c: put(x.marks, (k, c), 0))

    def in_order(k: Any) -> None:
        first = x.bands[k, 0]
        for_range(x.bands[k, 1] - 1, lambda m: _mark(x, k, x.blocks[first + 1 + m]))

    def of_H(r: Any) -> None:
        first, k = x.row_path[r, 0], place(x, r) // BLOCK
        for_range(x.row_path[r, 1], lambda m: _mark(x, k, place(x, x.row_columns[first + m]) // BLOCK))

    def of_pair(c: Any, a: Any, b: Any) -> tuple[Any, Any]:
        now = x.c_bodies[c, 0], x.c_bodies[c, 1]
        known = (now[0] == a) & (now[1] == b)
        cond(known, nothing, lambda: _clique(x, x.body_tip[now[0]], x.body_tip[now[1]]))
        return now

    for_range(x.n_blocks, begin)
    cond(x.n_parts > FEW, lambda: for_range(x.nv, of_H), lambda: for_range(x.n_bands, in_order))
    one_by_one(x, lambda _: for_range(x.n_of[0], of_pair, -1, -1))
    for_range(x.n_blocks, lambda m: _eliminated(x, x.n_blocks - 1 - m))


def place(x: Any, row: Any) -> Any:
    """Of a row of H in A."""
    return row if in_lanes(x) else x.place[row]


def place_of_dof(x: Any, j: Any) -> Any:
    """Of the row of a dof in A, -1 of one that stands still."""
    return x.dof_row[j] if in_lanes(x) else x.dof_place[j]


def order(x: Any) -> None:
    """Places of the rows in A: those of a part of the robot stay together, in their order, in blocks of it.

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
        begin = end - (count + BLOCK - 1) // BLOCK * BLOCK
        for_range(count, lambda k: put(x.place, first + k, begin + k))

        def neighbour(q: Any, found: Any) -> Any:
            def leave() -> Any:
                x.part_weight[q] = x.part_weight[q] - count
                x.pair_parts[found] = q
                return found + 1

            beside = (x.part_weight[q] >= 0) & (x.part_beside[p, q] > 0)
            return cond(beside, leave, lambda: found)

        found = for_range(n, neighbour, 0)
        for_range(found, lambda k: for_range(k, lambda m: join(x.pair_parts[k], x.pair_parts[m])))
        return begin

    for_range(n, part)
    for_range(x.n_of[0], of_pair)
    for_range(n, eliminate, x.n_columns)


def _mark(x: Any, one: Any, other: Any) -> None:
    """Mark the block of two rows of blocks; that on the diagonal is there anyway."""
    k, c = where(one < other, other, one), where(one < other, one, other)
    x.marks[k, c] = 1
    x.lowest[k] = where(c < x.lowest[k], c, x.lowest[k])


def _eliminated(x: Any, k: Any) -> None:
    """List the marks of a row of blocks, and hand them on."""

    def entry(m: Any, count: Any) -> Any:
        c = k - 1 - m
        x.pattern[k, count] = c
        return count + x.marks[k, c]

    count = for_range(k - x.lowest[k], entry, 0)
    x.pattern_length[k] = count
    for_range(count - 1, lambda m: _mark(x, x.pattern[k, 0], x.pattern[k, m + 1]))


def rows_of(x: Any, columns: Any, counts: Any) -> None:
    """Columns of the entries of each row left of the diagonal, descending, and how many: those of its blocks.

    Args:
        x: with the pattern of a step whose rows have kept their order.
        columns: gets them, (nv, nv).
        counts: (nv,).
    """

    def row(r: Any) -> None:
        k = r // BLOCK
        own = r - BLOCK * k
        for_range(own, lambda m: put(columns, (r, m), r - 1 - m))

        def block(z: Any) -> None:
            for n in range(BLOCK):
                columns[r, own + BLOCK * z + n] = BLOCK * x.pattern[k, z] + BLOCK - 1 - n

        for_range(x.pattern_length[k], block)
        counts[r] = own + BLOCK * x.pattern_length[k]

    for_range(x.nv, row)


def apart(x: Any, one: Any, other: Any) -> Any:
    """Write the dofs that one of two paths has and the other has not to x.pair_dofs, descending.

    Their signs, 1 for those of the other and -1 for those of the one, are in x.pair_signs.

    Args:
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


def blocks_of_pair(x: Any, count: Any) -> Any:
    """Write the blocks of so many dofs of x.pair_dofs to x.pair_blocks, each once; how many there are."""

    def of_dof(m: Any, found: Any, last: Any) -> tuple[Any, Any]:
        p = place_of_dof(x, x.pair_dofs[m])
        k = where(p < 0, last, p // BLOCK)
        x.pair_blocks[found] = k
        return where(k == last, found, found + 1), k

    return for_range(count, of_dof, 0, -1)[0]


def _clique(x: Any, one: Any, other: Any) -> None:
    """Mark what a force between two bodies couples; one with the world couples what the tree does."""

    def both() -> None:
        def mark(m: Any) -> None:
            for_range(m, lambda e: _mark(x, x.pair_blocks[m], x.pair_blocks[e]))

        for_range(blocks_of_pair(x, apart(x, one, other)), mark)

    cond((one >= 0) & (other >= 0), both, nothing)
