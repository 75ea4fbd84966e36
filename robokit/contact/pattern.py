"""Where A = H + J^T G J and its factors have entries: those of the robot's tree, cliques of pairs, and fill.

Rows and columns are coordinates of v. A dof is coupled to those that carry it. A force between two bodies
couples the dofs that one of their paths has and the other has not; those that both have see nothing of it.

Source: RBDA section 6.4 (branch-induced sparsity); A. George, J. Liu, Computer Solution of Large Sparse
Positive Definite Systems (1981), chapter 5 (fill).
"""

from __future__ import annotations

from typing import Any

from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import where


def nothing() -> None:
    """The other branch of what is only done sometimes."""


def constraints_of(x: Any) -> Any:
    """How many constraints there are."""
    return where(x.n_of[0] < x.n_constraints, x.n_of[0], x.n_constraints)


def rows_of(x: Any) -> Any:
    """How many rows of single coordinates there are."""
    return where(x.n_of[1] < x.n_rows, x.n_of[1], x.n_rows)


def tip(x: Any, body: Any) -> Any:
    """The last dof on the path of a body, -1 where it does not move."""
    at = while_loop(
        lambda b: (b >= 0) & (x.body_dofs[where(b < 0, 0, b), 1] == 0), lambda b: x.parent[b], body
    )
    known = where(at < 0, 0, at)
    return where(at < 0, -1, x.body_dofs[known, 0] + x.body_dofs[known, 1] - 1)


def symbolic(x: Any) -> None:
    """Columns of the entries of each row of A left of the diagonal, descending, for x.pattern.

    Eliminated from the last row to the first, row k changes the rows i of its entries; all of these are in
    the pattern of the first of them, i = max, so that it is enough to hand them on to that one.
    """
    marks, n = x.marks, x.nv

    def clear(k: Any) -> None:
        for_range(k, lambda c: _mark(marks, k, c, 0))

    def of_tree(j: Any) -> None:
        first = x.path[j, 0]
        for_range(x.path[j, 1], lambda m: _couple(x, j, x.ancestors[first + m]))

    def of_pair(c: Any, a: Any, b: Any) -> tuple[Any, Any]:
        now = x.c_bodies[c, 0], x.c_bodies[c, 1]
        cond((now[0] == a) & (now[1] == b), nothing, lambda: _clique(x, *now))
        return now

    def fill(m: Any) -> None:
        k = n - 1 - m
        i = while_loop(lambda c: _unmarked(marks, k, c), lambda c: c - 1, k - 1)

        def hand_on(c: Any) -> None:
            marks[i, c] = where(marks[k, c] > 0, 1, marks[i, c])

        for_range(i, hand_on)

    def listed(k: Any) -> None:
        def entry(m: Any, count: Any) -> Any:
            c = k - 1 - m
            x.pattern[k, count] = c
            return count + marks[k, c]

        x.pattern_length[k] = for_range(k, entry, 0)

    for_range(n, clear)
    for_range(x.n_dofs, of_tree)
    for_range(constraints_of(x), of_pair, -1, -1)
    for_range(n, fill)
    for_range(n, listed)


def _unmarked(marks: Any, k: Any, c: Any) -> Any:
    """Whether a row has an entry in a column from 0 on, and not in this one."""
    return (c >= 0) & (marks[k, where(c < 0, 0, c)] == 0)


def _mark(marks: Any, k: Any, c: Any, value: Any) -> None:
    marks[k, c] = value


def _couple(x: Any, j: Any, k: Any) -> None:
    """Mark the entry of the rows of two dofs."""
    a, b = x.dof_row[j], x.dof_row[k]

    def mark() -> None:
        x.marks[where(a < b, b, a), where(a < b, a, b)] = 1

    cond((a >= 0) & (b >= 0) & ((a < b) | (b < a)), mark, nothing)


def apart(x: Any, a: Any, b: Any) -> Any:
    """Write the dofs that one of two paths has and the other has not to x.pair_dofs, descending.

    Returns:
        how many they are; signs, 1 for b and -1 for a, are in x.pair_signs.
    """

    def step(i: Any, j: Any, count: Any) -> tuple[Any, Any, Any]:
        of_a = i > j
        k = where(of_a, i, j)
        x.pair_dofs[count] = k
        x.pair_signs[count] = where(of_a, -1.0, 1.0)
        up = x.dof_parent[k]
        return where(of_a, up, i), where(of_a, j, up), count + 1

    return while_loop(lambda i, j, _: (i < j) | (j < i), step, tip(x, a), tip(x, b), 0)[2]


def _clique(x: Any, a: Any, b: Any) -> None:
    """Mark what a force between two bodies couples; one with the world couples what the tree does."""

    def both() -> None:
        count = apart(x, a, b)

        def row(m: Any) -> None:
            for_range(count - 1 - m, lambda e: _couple(x, x.pair_dofs[m], x.pair_dofs[m + 1 + e]))

        for_range(count, row)

    cond((tip(x, a) >= 0) & (tip(x, b) >= 0), both, nothing)
