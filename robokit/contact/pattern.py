"""Which blocks the factors of A have, and in which order its rows are eliminated.

A = H + J^T G J couples rows of blocks k > c where a path of the tree or a force between two bodies does.
Eliminated from the last row to the first, a row changes those of its blocks, and all of these are in the
pattern of the first of them: the parent of the row in the elimination tree. All blocks of a row are on the
path from it to the root of that tree, so that a block is found by the depth of its column there.

Source: J. Liu, The role of elimination trees in sparse factorization, SIAM Journal on Matrix Analysis and
Applications 11 (1990).
Cost: in proportion to the blocks of A; of a robot, to the square of its rows of blocks.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.robot_data import BLOCK, FEW
from robokit.contact.vectors import in_lanes, nothing, one_by_one, put
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum, where


def symbolic(x: Any) -> None:
    """Symbolic factorisation: columns of the blocks of each row of A left of the diagonal, descending, and
    their places.

    ``filled`` is the memory that they need; if there is less, all of them share one block.
    """
    x.filled[0] = 0
    order(x)
    if in_lanes(x):
        _by_marks(x)
    else:
        cond(x.filled[0] <= x.n_fill, lambda: _by_lists(x), nothing)
    _give_places(x)


def _give_places(x: Any) -> None:
    """Depths in the elimination tree, and where a row's blocks begin: there is one for each depth from its
    least.
    """

    def row(k: Any, end: Any) -> Any:
        first, count = x.pattern_first[k], x.pattern_length[k]

        def below() -> tuple[Any, Any]:
            return 1 + x.depth[x.pattern[first]], 1 * x.depth[x.pattern[first + count - 1]]

        depth, least = cond(count > 0, below, lambda: (0, 0))
        x.depth[k], x.A_row[k] = depth, end - least
        return end + (depth - least + 1)

    def none(k: Any) -> None:
        x.depth[k] = x.A_row[k] = x.pattern_length[k] = 0

    def all_rows() -> Any:
        return for_range(x.n_blocks, row, 0)

    def entry(j: Any) -> None:
        k = j // BLOCK
        n = j - BLOCK * k
        x.entry_row[j] = BLOCK * (BLOCK * x.A_row[k] + n)
        x.entry_column[j] = BLOCK * BLOCK * x.depth[k] + n

    x.filled[0] = cond(x.filled[0] <= x.n_fill, all_rows, lambda: 1 * x.filled[0])
    cond(x.filled[0] <= x.n_fill, nothing, lambda: for_range(x.n_blocks, none))
    if in_lanes(x):
        for_range(x.n_columns, entry)


# ---- in lanes: marks of all blocks ------------------------------------------------------------------------


def _by_marks(x: Any) -> None:
    def begin(k: Any) -> None:
        x.lowest[k] = k
        for_range(k, lambda c: put(x.marks, (k, c), 0))

    def of_H(k: Any) -> None:
        first = x.bands[k, 0]
        for_range(x.bands[k, 1] - 1, lambda m: _mark(x, k, x.blocks[first + 1 + m]))

    def clique(c: Any, count: Any) -> None:
        def mark(m: Any) -> None:
            for_range(m, lambda e: _mark(x, x.pair_blocks[m], x.pair_blocks[e]))

        for_range(count, mark)

    for_range(x.n_blocks, begin)
    for_range(x.n_bands, of_H)
    one_by_one(x, lambda _: _of_pairs(x, clique))
    for_range(x.n_blocks, lambda m: _eliminated(x, x.n_blocks - 1 - m))


def _mark(x: Any, one: Any, other: Any) -> None:
    """Mark the block of two rows of blocks; that on the diagonal always exists."""
    k, c = where(one < other, other, one), where(one < other, one, other)
    x.marks[k, c] = 1
    x.lowest[k] = where(c < x.lowest[k], c, x.lowest[k])


def _eliminated(x: Any, k: Any) -> None:
    """List the marked blocks of a row, and pass them on to the rows that it updates."""
    first = 1 * x.filled[0]

    def entry(m: Any, count: Any) -> Any:
        c = k - 1 - m
        x.pattern[first + count] = c
        return count + x.marks[k, c]

    count = for_range(k - x.lowest[k], entry, 0)
    x.pattern_first[k], x.pattern_length[k] = first, count
    x.filled[0] = first + count
    for_range(count - 1, lambda m: _mark(x, x.pattern[first], x.pattern[first + m + 1]))


# ---- else: lists ------------------------------------------------------------------------------------------

AFTER, CHILDREN, SIBLING, CLIQUES = range(4)
"""Columns of ``links``: the next block of the row that is listed; the first row whose parent this one is;
the next one with the same parent; the first clique whose last row this is. -1 ends each list."""


def _by_lists(x: Any) -> None:
    """Rows from the last to the first: couplings by H and pairs, and those passed on by earlier rows."""

    def begin(k: Any) -> None:
        for column in (CHILDREN, CLIQUES):
            x.links[k, column] = -1

    def clique(c: Any, count: Any) -> None:
        last = for_range(count, lambda m, most: maximum(most, x.pair_blocks[m]), 0)
        x.next_clique[c] = x.links[last, CLIQUES]
        x.links[last, CLIQUES] = c

    def row(m: Any) -> None:
        cond(x.filled[0] <= x.n_fill, lambda: _list(x, x.n_blocks - 1 - m), nothing)

    x.filled[0] = 0
    for_range(x.n_blocks, begin)
    for_range(x.n_columns, lambda j: put(x.place_row, j, -1))
    for_range(x.nv, lambda r: put(x.place_row, x.place[r], r))
    _of_pairs(x, clique)
    for_range(x.n_blocks, row)


def _list(x: Any, k: Any) -> None:
    """The blocks of a row, descending."""
    x.links[k, AFTER] = -1

    def in_order() -> None:
        first = x.bands[k, 0] + 1
        for_range(x.bands[k, 1] - 1, lambda m, at: once(x, _insert, at, x.blocks[first + m]), k)

    def of_row(n: Any) -> None:
        r = x.place_row[BLOCK * k + n]

        def of_H() -> None:
            first = x.row_path[r, 0]

            def column(m: Any, at: Any) -> Any:
                return once(x, _insert, at, x.place[x.row_columns[first + m]] // BLOCK)

            for_range(x.row_path[r, 1], column, k)

        cond(r < 0, nothing, of_H)

    def of_clique(c: Any) -> Any:
        count = blocks_apart(x, *_tips(x, c))

        def insert(m: Any) -> None:
            once(x, _insert, k, x.pair_blocks[m])

        for_range(count, insert)
        return 1 * x.next_clique[c]

    def of_child(child: Any) -> Any:
        first = x.pattern_first[child] + 1
        for_range(x.pattern_length[child] - 1, lambda m, at: once(x, _insert, at, x.pattern[first + m]), k)
        return 1 * x.links[child, SIBLING]

    def enter(c: Any, count: Any) -> tuple[Any, Any]:
        x.pattern[minimum(begin + count, x.n_fill - 1)] = c
        return 1 * x.links[c, AFTER], count + 1

    cond(x.n_parts > FEW, lambda: for_range(BLOCK, of_row), in_order)
    while_loop(lambda c: c >= 0, of_clique, 1 * x.links[k, CLIQUES])
    while_loop(lambda child: child >= 0, of_child, 1 * x.links[k, CHILDREN])
    begin, parent = 1 * x.filled[0], 1 * x.links[k, AFTER]
    count = while_loop(lambda c, _: c >= 0, enter, parent, 0)[1]
    x.pattern_first[k], x.pattern_length[k] = begin, count
    x.filled[0] = begin + count

    def hand_on() -> None:
        x.links[k, SIBLING] = x.links[parent, CHILDREN]
        x.links[parent, CHILDREN] = k

    cond(parent < 0, nothing, hand_on)


def _insert(x: Any, at: Any, c: Any) -> Any:
    """Insert a block into the list of a row, unless it is there; returns its place."""

    def left() -> Any:
        before = while_loop(lambda b: x.links[b, AFTER] > c, lambda b: 1 * x.links[b, AFTER], at)
        after = 1 * x.links[before, AFTER]

        def new() -> None:
            x.links[c, AFTER] = after
            x.links[before, AFTER] = c

        cond(after == c, nothing, new)
        return 1 * c

    return cond(c < at, left, lambda: 1 * at)


# ---- pairs of bodies --------------------------------------------------------------------------------------


def _of_pairs(x: Any, do: Any) -> None:
    """Call do(constraint, count) for the first constraint of each pair of moving bodies.

    A force between them couples ``count`` blocks, ``pair_blocks``; one with the world couples what the tree
    does.
    """

    def of_constraint(c: Any, a: Any, b: Any) -> tuple[Any, Any]:
        now = x.c_bodies[c, 0], x.c_bodies[c, 1]
        known = (now[0] == a) & (now[1] == b)
        cond(known, nothing, lambda: both(c))
        return now

    def both(c: Any) -> None:
        one, other = _tips(x, c)
        moves = (one >= 0) & (other >= 0)
        cond(moves, lambda: do(c, blocks_apart(x, one, other)), nothing)

    for_range(minimum(x.n_of[0], x.n_constraints), of_constraint, -1, -1)


def _tips(x: Any, c: Any) -> tuple[Any, Any]:
    """The last dofs on the paths of a constraint's bodies."""
    return x.body_tip[x.c_bodies[c, 0]], x.body_tip[x.c_bodies[c, 1]]


def blocks_apart(x: Any, one: Any, other: Any) -> Any:
    """Write the blocks of these dofs; returns their number."""
    if in_lanes(x) or hasattr(x, "unrolls"):
        return _blocks_apart(x, one, other)
    return once(x, _blocks_apart, one, other)


def _blocks_apart(x: Any, one: Any, other: Any) -> Any:
    return blocks_of_pair(x, apart(x, one, other))


def apart(x: Any, one: Any, other: Any) -> Any:
    """Write the dofs that are on exactly one of two paths to x.pair_dofs, descending; returns their number.

    Their signs, 1 on the path of ``other`` and -1 on that of ``one``, go to x.pair_signs. ``one``, ``other``:
    the last dofs of the paths.
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
    """Write the blocks of so many dofs of x.pair_dofs to x.pair_blocks, each once; returns their number."""

    def of_dof(m: Any, found: Any, last: Any) -> tuple[Any, Any]:
        p = place_of_dof(x, x.pair_dofs[m])
        k = where(p < 0, last, p // BLOCK)
        x.pair_blocks[found] = k
        return where(k == last, found, found + 1), k

    return for_range(count, of_dof, 0, -1)[0]


# ---- order ------------------------------------------------------------------------------------------------


def place(x: Any, row: Any) -> Any:
    """The place in A of a row of H."""
    return row if in_lanes(x) else x.place[row]


def place_of_dof(x: Any, j: Any) -> Any:
    """The place in A of the row of a dof, -1 for one that cannot move."""
    return x.dof_row[j] if in_lanes(x) else x.dof_place[j]


def order(x: Any) -> None:
    """Places of the rows in A: those of a part of the robot stay together, in their order, in blocks of their
    own.

    The part whose neighbours have the fewest rows is eliminated first; then these are coupled with each
    other. For a heap of hundreds of loose bodies, this takes a fiftieth of the products.

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


ARCS, SEEN, NEXT, BEFORE = range(4)
"""Columns of ``part_links``: the first arc to a part beside this one; the part beside which it was seen last,
or -2 less one that was eliminated; those next to it in the list of parts of one weight. -1 ends lists."""


def _by_weight(x: Any) -> None:
    """Place parts that are eliminated one after the other, the lightest first.

    ``part_weight``: number of rows of a part's neighbours, -1 once it is placed.
    """

    def begin(p: Any) -> None:
        x.part_weight[p] = 0
        x.part_links[p, ARCS] = x.part_links[p, SEEN] = -1

    def of_pair(c: Any) -> None:
        a, b = x.body_part[x.c_bodies[c, 0]], x.body_part[x.c_bodies[c, 1]]

        def join() -> None:
            once(x, _see, a)
            cond(x.part_links[b, SEEN] == a, nothing, lambda: once(x, _join, a, b))

        cond((a >= 0) & (b >= 0) & (a != b), join, nothing)

    def eliminate(m: Any, end: Any, lightest: Any) -> tuple[Any, Any]:
        weight = while_loop(lambda w: x.weight_first[w] < 0, lambda w: w + 1, lightest)
        p = 1 * x.weight_first[weight]
        first, count = x.part_rows[p, 0], x.part_rows[p, 1]
        begin = end - (count + BLOCK - 1) // BLOCK * BLOCK
        for_range(count, lambda k: put(x.place, first + k, begin + k))
        once(x, _leave, p)
        x.part_weight[p] = -1
        return begin, minimum(weight, _couple(x, p, count))

    for_range(x.n_parts, begin)
    for_range(minimum(x.n_of[0], x.n_constraints), of_pair)
    for_range(x.n_columns, lambda w: put(x.weight_first, w, -1))
    for_range(x.n_parts, lambda m: once(x, _enter, x.n_parts - 1 - m))
    for_range(x.n_parts, eliminate, x.n_columns, 0)


def _couple(x: Any, p: Any, count: Any) -> Any:
    """Couple the neighbours of a part that is placed; returns their least weight."""

    def beside(arc: Any, found: Any) -> tuple[Any, Any]:
        q = x.arcs[arc // 2, arc % 2]
        new = (x.part_weight[q] >= 0) & (x.part_links[q, SEEN] != -2 - p)

        def take() -> None:
            x.part_links[q, SEEN] = -2 - p
            x.pair_parts[found] = q
            once(x, _leave, q)
            x.part_weight[q] = x.part_weight[q] - count

        cond(new, take, nothing)
        return 1 * x.arcs[arc // 2, 2 + arc % 2], where(new, found + 1, found)

    found = while_loop(lambda arc, _: arc >= 0, beside, 1 * x.part_links[p, ARCS], 0)[1]

    def with_others(k: Any) -> None:
        one = x.pair_parts[k]
        once(x, _see, one)

        def join(m: Any) -> None:
            other = x.pair_parts[m]
            cond(x.part_links[other, SEEN] == one, nothing, lambda: once(x, _join, one, other))

        for_range(k, join)

    def enter(k: Any, least: Any) -> Any:
        q = x.pair_parts[k]
        once(x, _enter, q)
        return minimum(least, x.part_weight[q])

    for_range(found, with_others)
    return for_range(found, enter, 1 * x.n_columns)


def _join(x: Any, p: Any, q: Any) -> None:
    """Note that two parts are neighbours."""
    at = 1 * x.filled[0]
    x.filled[0] = at + 1

    def enter() -> None:
        for side, (one, other) in enumerate(((p, q), (q, p))):
            x.arcs[at, side], x.arcs[at, 2 + side] = other, x.part_links[one, ARCS]
            x.part_links[one, ARCS] = 2 * at + side
            x.part_weight[one] = x.part_weight[one] + x.part_rows[other, 1]

    cond(at < x.n_fill, enter, nothing)


def _see(x: Any, p: Any) -> None:
    """Note the neighbours of a part, without those that are placed."""

    def one(arc: Any, before: Any) -> tuple[Any, Any]:
        q, after = x.arcs[arc // 2, arc % 2], 1 * x.arcs[arc // 2, 2 + arc % 2]

        def forget() -> Any:
            cond(
                before < 0,
                lambda: put(x.part_links, (p, ARCS), after),
                lambda: put(x.arcs, (before // 2, 2 + before % 2), after),
            )
            return before

        def keep() -> Any:
            x.part_links[q, SEEN] = p
            return arc

        return after, cond(x.part_weight[q] < 0, forget, keep)

    while_loop(lambda arc, _: arc >= 0, one, 1 * x.part_links[p, ARCS], -1)


def _enter(x: Any, p: Any) -> None:
    """Enter a part into the list of parts of its weight."""
    weight = x.part_weight[p]
    after = 1 * x.weight_first[weight]
    x.part_links[p, NEXT], x.part_links[p, BEFORE] = after, -1
    cond(after < 0, nothing, lambda: put(x.part_links, (after, BEFORE), p))
    x.weight_first[weight] = p


def _leave(x: Any, p: Any) -> None:
    """Remove a part from the list of parts of its weight."""
    after, before = 1 * x.part_links[p, NEXT], 1 * x.part_links[p, BEFORE]
    cond(
        before < 0,
        lambda: put(x.weight_first, x.part_weight[p], after),
        lambda: put(x.part_links, (before, NEXT), after),
    )
    cond(after < 0, nothing, lambda: put(x.part_links, (after, BEFORE), before))


def rows_of(x: Any, columns: Any, counts: Any) -> None:
    """Columns of the entries of each row left of the diagonal, descending, and how many: those of its blocks.

    ``x``: with the pattern of a step whose rows have kept their order; ``columns``: gets them, (nv, nv);
    ``counts``: (nv,).
    """

    def row(r: Any) -> None:
        k = r // BLOCK
        own = r - BLOCK * k
        for_range(own, lambda m: put(columns, (r, m), r - 1 - m))

        def block(z: Any) -> None:
            for n in range(BLOCK):
                columns[r, own + BLOCK * z + n] = BLOCK * x.pattern[x.pattern_first[k] + z] + BLOCK - 1 - n

        for_range(x.pattern_length[k], block)
        counts[r] = own + BLOCK * x.pattern_length[k]

    for_range(x.nv, row)
