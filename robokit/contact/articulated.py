"""A = H + J^T G J of a deep tree, by bodies: articulated inertias, factors and solutions.

A of a chain of n links has n^2 / 2 entries, and its factors take n^3 / 3 operations. Here the velocities V_b
of bodies are unknowns in addition to those of joints, V_b = V_lambda + S_b d_b, and A is never formed. The
dofs of one body after the other are eliminated, from the tips inward, with column s of S_b:

    D = s.M_bb s + rotor + slopes of rows      M_xy -= (M_xb s) (s^T M_by) / D      at last M_lambda += M_b

M_bb is at first the inertia of a body plus K of its constraints, 6 x 6, and in the end the articulated
inertia of what it carries. A constraint between bodies a and b adds to M_aa and M_bb, and couples them: M_ab
= -K. After a body is eliminated, its parent is coupled with the same bodies. So each body is coupled with the
other ends of the constraints that reach over it, and with no other bodies. M is not symmetric where a contact
slides. D are the pivots that A has when its rows are eliminated from the last to the first.

All quantities are in world axes about the step's origin.

Source: RBDA section 7.3 (articulated bodies); couplings: D. Baraff, Linear-time dynamics using Lagrange
multipliers, SIGGRAPH (1996), eliminates the unknowns of bodies and joints from the tips likewise.
Cost: by dof, (6 + 6 m)^2 operations, where it carries m couplings; by dof of a solution, 24 (1 + m).
"""

from __future__ import annotations

from typing import Any

from robokit.contact import linear
from robokit.contact.linear import carry_on, next_pair, sum_of, whole_stiffness
from robokit.contact.pattern import symbolic
from robokit.contact.robot_data import ROOM
from robokit.contact.vectors import in_lanes, inertia, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum, where
from robokit.spatial.vectors import ArticulatedInertia

WIDE = 8  # numbers of a row of M: six, and two zeros, so that it is two vectors of four

FIRST, COUNT, CHILDREN, SIBLING, PAIRS, SEEN, PLACE = range(7)
"""Columns of ``coupled``: a body's first entry of ``pattern``, the coupled bodies, and how many; the first
body whose couplings are handed to it, and the next one of these; the first pair whose last body it is; the
body in whose list it was seen last; the number of its matrix in the list that is looked at."""

P, V = range(2)
"""Rows of ``p_and_V``: the force that is left on a body, and its velocity."""


def by_bodies(x: Any) -> Any:
    """Whether the tree is deep (robot_data.py); derivatives always have A by rows."""
    return (x.n_deep > 0) & (x.orders[0] > 0)


# ---- which bodies are coupled -----------------------------------------------------------------------------


def list_coupled(x: Any) -> None:
    """List the bodies with which each body is coupled when it is eliminated; all have smaller numbers.

    ``filled`` is the memory that their matrices need, in blocks of A. If there is less, no body is coupled,
    and couplings are added to the matrix of the first body.
    """

    def begin(b: Any) -> None:
        for column in (CHILDREN, PAIRS, SEEN):
            x.coupled[b, column] = -1
        x.coupled[b, COUNT] = 0
        x.coupled[b, PLACE] = b

    def pair(c: Any) -> None:
        a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]
        last = where(a < b, b, a)

        def enter() -> None:
            x.next_clique[c] = x.coupled[last, PAIRS]
            x.coupled[last, PAIRS] = c

        cond((x.body_tip[a] >= 0) & (x.body_tip[b] >= 0), enter, nothing)

    for_range(x.n_bodies, begin)
    for_range(minimum(x.n_of[0], x.n_constraints), pair)
    x.filled[0] = 0
    for_range(x.n_bodies - 1, lambda m: _list(x, x.n_bodies - 1 - m))
    x.filled[0] = ROOM * (x.n_bodies + x.filled[0])
    fits = x.filled[0] <= x.n_fill
    cond(fits, nothing, lambda: for_range(x.n_bodies, lambda b: put(x.coupled, (b, COUNT), 0)))


def _list(x: Any, b: Any) -> None:
    """List the bodies coupled with a body, and pass the list on to the last of these and its parent."""
    first = 1 * x.filled[0]
    x.coupled[b, FIRST] = first
    x.coupled[b, SEEN] = b

    def enter(n: Any) -> None:
        once(x, _enter, b, n)

    def of_pair(c: Any) -> Any:
        one, other = x.c_bodies[c, 0], x.c_bodies[c, 1]
        enter(where(one < other, one, other))
        return 1 * x.next_clique[c]

    def of_child(child: Any) -> Any:
        def one(e: Any) -> None:
            enter(x.pattern[minimum(x.coupled[child, FIRST] + e, x.n_fill - 1)])

        for_range(x.coupled[child, COUNT], one)
        parent = x.parent[child]
        cond(x.body_tip[parent] >= 0, lambda: enter(parent), nothing)
        return 1 * x.coupled[child, SIBLING]

    while_loop(lambda c: c >= 0, of_pair, 1 * x.coupled[b, PAIRS])
    while_loop(lambda child: child >= 0, of_child, 1 * x.coupled[b, CHILDREN])
    count = x.filled[0] - first
    x.coupled[b, COUNT] = count

    def last_one(e: Any, last: Any) -> Any:
        return maximum(last, x.pattern[minimum(first + e, x.n_fill - 1)])

    def hand_on() -> None:
        parent = x.parent[b]
        to = for_range(count, last_one, where(x.body_tip[parent] >= 0, parent, -1))
        x.coupled[b, SIBLING] = x.coupled[to, CHILDREN]
        x.coupled[to, CHILDREN] = b

    cond(count > 0, hand_on, nothing)


def _enter(x: Any, b: Any, n: Any) -> None:
    """Enter a body into the list of another one, once."""

    def new() -> None:
        x.coupled[n, SEEN] = b
        x.pattern[minimum(x.filled[0], x.n_fill - 1)] = n
        x.filled[0] = x.filled[0] + 1

    cond(x.coupled[n, SEEN] == b, nothing, new)


def _partner(x: Any, b: Any, e: Any) -> tuple[Any, Any]:
    """A body with which another one is coupled, and the number of their matrix. Those of bodies
    come first.
    """
    entry = x.coupled[b, FIRST] + e
    return x.pattern[entry], x.n_bodies + entry


def _note_places(x: Any, b: Any) -> None:
    """Store for each body in a list which matrix couples them."""

    def one(e: Any) -> None:
        n, own = _partner(x, b, e)
        x.coupled[n, PLACE] = own

    for_range(x.coupled[b, COUNT], one)


# ---- matrices ---------------------------------------------------------------------------------------------


def _both(x: Any) -> tuple[Any, Any]:
    """M by rows, and its transpose; between b and a body n before it, M_bn and the transpose of M_nb."""
    return x.A.reshape(2 * x.n_fill, WIDE), x.A_skew.reshape(2 * x.n_fill, WIDE)


def _row(M: Any, at: Any) -> list[Any]:
    return [M[at, k] for k in range(WIDE)]


def inertia_of(x: Any, b: Any) -> ArticulatedInertia:
    """The inertia of a body where it is now."""
    return inertia(x.I, b).articulated()


def _begun(x: Any, k: Any) -> Any:
    """Prepare a matrix at its first use: K of a body, or 0, so that it is in the cache when it is needed."""
    return once(x, _begin, k)


def _begin(x: Any, k: Any) -> Any:
    M, M_T = _both(x)

    def of_body() -> None:
        K = whole_stiffness(x, k)
        for r in range(6):
            write_row(M, 6 * k + r, [*K[r], 0.0, 0.0])
            write_row(M_T, 6 * k + r, [*(row[r] for row in K), 0.0, 0.0])

    def empty(r: Any) -> None:
        for each in (M, M_T):
            write_row(each, 6 * k + r, [0.0] * WIDE)

    def first() -> None:
        x.arcs[k, 0] = 1
        cond(k < x.n_bodies, of_body, lambda: for_range(6, empty))

    cond(x.arcs[k, 0] > 0, nothing, first)
    return 6 * k


def articulate(x: Any, constraints: Any, rows: Any) -> None:
    """K of bodies, with their inertias, and of pairs, for the first constraints; Dinv has the contributions
    of rows to D.
    """

    def of_row(i: Any) -> None:
        j, gain = x.r_row[i], x.r_gain[i]
        x.Dinv[j] = x.Dinv[j] + gain * gain * x.r_G[i]

    def body(b: Any) -> None:
        write_row(x.K, b, [*inertia_of(x, b), *[0.0] * 15])
        x.has_K[b] = where(b > 0, 1, 0)  # that of the world is the sum of a pair

    for_range(x.n_columns, lambda k: put(x.Dinv, k, 1.0))
    for_range(x.nv, lambda j: put(x.Dinv, j, 1.0 * x.armature[j]))
    for_range(rows, of_row)
    for_range(minimum(x.filled[0], x.n_fill) // ROOM, lambda k: put(x.arcs, (k, 0), 0))
    for_range(x.n_bodies, body)
    while_loop(lambda c: c < constraints, lambda c: _to_next_pair(x, c, constraints), 0)


def _to_next_pair(x: Any, c: Any, constraints: Any) -> Any:
    """Add K of a pair to both bodies, and subtract it from the matrix between them; returns the constraint
    after it.
    """
    c, there = once(x, next_pair, c, constraints)

    def of_pair() -> None:
        a, b = x.c_bodies[c - 1, 0], x.c_bodies[c - 1, 1]
        last, n = where(a < b, b, a), where(a < b, a, b)

        def of_two() -> None:
            once(x, carry_on, 0, a)
            once(x, carry_on, 0, b)
            once(x, _note_places, last)
            once(x, _take_K, 1 * x.coupled[n, PLACE])

        cond(a == b, nothing, of_two)
        x.has_K[0] = 0

    cond(there > 0, of_pair, nothing)
    return c


def _take_K(x: Any, own: Any) -> None:
    """Subtract K of a pair from the matrix between its bodies."""
    (M, M_T), first, K = _both(x), _begun(x, own), whole_stiffness(x, 0)
    for r in range(6):
        for c in range(6):
            M[first + r, c] = M[first + r, c] - K[r][c]
            M_T[first + r, c] = M_T[first + r, c] - K[c][r]


# ---- factors ----------------------------------------------------------------------------------------------


def eliminate(x: Any) -> None:
    """Eliminate the dofs of all bodies, from the tips inward: D, and the rows for back substitution.

    Row k of a body's matrices becomes s^T M for its dof k and, in M_T, M s: for its own matrix and for those
    between it and other bodies.
    """

    def body(m: Any) -> None:
        b = x.n_bodies - 1 - m
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]
        for_range(count, lambda e: once(x, _eliminate, b, first + (count - 1 - e), count - 1 - e))
        cond(x.body_tip[parent] >= 0, lambda: once(x, _hand_down, b, parent), nothing)

        def keep(k: Any) -> None:
            once(x, _keep, b, b, k)
            for_range(x.coupled[b, COUNT], lambda e: once(x, _keep, *_partner(x, b, e), k))

        for_range(count, keep)

    for_range(x.n_bodies - 1, body)


def _keep(x: Any, n: Any, own: Any, k: Any) -> None:
    """Store the product of dof k of a body with the matrix to another one, in a row of the matrices between
    them.
    """
    for each, side in zip(_both(x), (1, 0), strict=True):
        write_row(each, 6 * own + k, [x.worth[n, k, side, c] for c in range(WIDE)])


def _eliminate(x: Any, b: Any, j: Any, k: Any) -> None:
    """Dof j, the k-th of its body."""
    partners = 1 * x.coupled[b, COUNT]
    once(x, _weigh, b, b, j, k)
    for_range(partners, lambda e: once(x, _weigh, *_partner(x, b, e), j, k))
    D = x.Dinv[j] + sum_of(x.S[j, c] * x.worth[b, k, 0, c] for c in range(6))
    x.Dinv[j] = 1.0 / D
    once(x, _take, b, b, b, j, k)

    def from_partner(e: Any) -> None:
        n, own = _partner(x, b, e)
        once(x, _take, own, b, n, j, k)
        once(x, _take, n, n, n, j, k)

        def other(z: Any) -> None:
            o = x.pattern[x.coupled[b, FIRST] + z]
            cond(o < n, lambda: once(x, _take, 1 * x.coupled[o, PLACE], n, o, j, k), nothing)

        def others() -> None:
            once(x, _note_places, n)
            for_range(partners, other)

        cond(partners > 1, others, nothing)

    for_range(partners, from_partner)


def _weigh(x: Any, n: Any, own: Any, j: Any, k: Any) -> None:
    """Products of a dof with the matrix of its body, or with that to a coupled body: M s and s^T M."""
    at = _begun(x, own)
    for side, each in enumerate(reversed(_both(x))):

        def row(r: Any, *sums: Any) -> tuple[Any, ...]:
            numbers = _row(each, at + r)  # noqa: B023
            return tuple(a + x.S[j, r] * b for a, b in zip(sums, numbers, strict=True))

        write_row(x.worth, (n, k, side), for_range(6, row, *[0.0] * WIDE))


def _take(x: Any, own: Any, one: Any, other: Any, j: Any, k: Any) -> None:
    """Subtract the contribution of the dof from the matrix between two bodies, or of one."""
    first = _begun(x, own)

    def row(r: Any) -> None:
        at = first + r
        for each, side in zip(_both(x), (0, 1), strict=True):
            left = x.worth[one, k, side, r] * x.Dinv[j]
            right = [x.worth[other, k, 1 - side, c] for c in range(WIDE)]
            write_row(each, at, [a - left * b for a, b in zip(_row(each, at), right, strict=True)])

    for_range(6, row)


def _hand_down(x: Any, b: Any, parent: Any) -> None:
    """Add the matrices of a body to those of its parent, with which it now moves."""

    def of_partner(e: Any) -> None:
        n, own = _partner(x, b, e)

        def itself() -> None:
            once(x, _add, parent, own)
            once(x, _add_transposed, parent, own)

        def after() -> None:
            once(x, _note_places, n)
            once(x, _add_transposed, 1 * x.coupled[parent, PLACE], own)
            once(x, _note_places, parent)

        def another() -> None:
            cond(n > parent, after, lambda: once(x, _add, 1 * x.coupled[n, PLACE], own))

        cond(n == parent, itself, another)

    def of_partners() -> None:
        once(x, _note_places, parent)
        for_range(x.coupled[b, COUNT], of_partner)

    once(x, _add, parent, b)
    cond(x.coupled[b, COUNT] > 0, of_partners, nothing)


def _add(x: Any, k: Any, own: Any) -> None:
    """One matrix to another."""
    to, source = _begun(x, k), _begun(x, own)

    def row(r: Any) -> None:
        for each in _both(x):
            sums = zip(_row(each, to + r), _row(each, source + r), strict=True)
            write_row(each, to + r, [p + q for p, q in sums])

    for_range(6, row)


def _add_transposed(x: Any, k: Any, own: Any) -> None:
    """Add the transpose of one matrix to another."""
    (M, M_T), to, source = _both(x), _begun(x, k), _begun(x, own)

    def row(r: Any) -> None:
        for each, other in ((M, M_T), (M_T, M)):
            for c in range(6):
                each[to + r, c] = each[to + r, c] + other[source + c, r]

    for_range(6, row)


# ---- solutions --------------------------------------------------------------------------------------------


def solve_by_bodies(x: Any, given: Any) -> None:
    """Replace ``given`` by A^-1 given."""
    M, M_T = _both(x)
    known, both = x.permuted, x.p_and_V

    def with_partners(b: Any, do: Any, *start: Any) -> Any:
        """Call do(n, number of the matrix, what is carried) for a body and those that it is coupled with."""
        first = x.coupled[b, FIRST]

        def one(e: Any, *carried: Any) -> Any:
            entry = maximum(first + e - 1, 0)
            n, own = (where(e > 0, other, b) for other in (x.pattern[entry], x.n_bodies + entry))
            return do(n, own, *carried)

        return for_range(x.coupled[b, COUNT] + 1, one, *start)

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]

        def dof(e: Any) -> None:
            k = count - 1 - e
            j = first + k
            t = [x.S[j, c] * both[b, P, c] for c in range(6)]
            share = (given[j] - (((t[0] + t[1]) + (t[2] + t[3])) + (t[4] + t[5]))) * x.Dinv[j]
            known[j] = share

            def push(n: Any, own: Any) -> None:
                u = _row(M_T, 6 * own + k)
                write_row(both, (n, P), [both[n, P, c] + u[c] * share for c in range(WIDE)])

            with_partners(b, push)

        for_range(count, dof)
        write_row(both, (parent, P), [both[parent, P, c] + both[b, P, c] for c in range(WIDE)])

    def outward(m: Any) -> None:
        b = m + 1
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]

        def dof(k: Any) -> None:
            j = first + k

            def moves(n: Any, own: Any, *so_far: Any) -> tuple[Any, ...]:
                w = _row(M, 6 * own + k)
                return tuple(a + w[c] * both[n, V, c] for c, a in enumerate(so_far))

            t = with_partners(b, moves, *[0.0] * WIDE)
            d = known[j] - x.Dinv[j] * (((t[0] + t[4]) + (t[1] + t[5])) + (t[2] + t[3]))
            given[j] = d
            write_row(both, (b, V), [both[b, V, c] + x.S[j, c] * d for c in range(6)])

        write_row(both, (b, V), [both[parent, V, c] for c in range(WIDE)])
        for_range(count, dof)

    def begin(c: Any) -> None:
        for_range(x.n_bodies, lambda b: put(both, (b, P, c), 0.0))
        both[0, V, c] = 0.0

    for_range(WIDE, begin)
    for_range(x.n_bodies - 1, inward)
    for_range(x.n_bodies - 1, outward)


# ---- one or the other -------------------------------------------------------------------------------------


def couple(x: Any) -> None:
    """Find what constraints couple in a step: bodies, or blocks of A."""
    once(x, _couple)


def _couple(x: Any) -> None:
    _either(x, (list_coupled, symbolic))


def assemble(x: Any, constraints: Any, rows: Any) -> None:
    """A of the first constraints and rows, with their slopes, by bodies or as a matrix."""
    _either(x, (articulate, linear.assemble), constraints, rows)


def factor(x: Any) -> None:
    """Factor A."""
    _either(x, (eliminate, linear.factor))


def back_substitute(x: Any, b: Any) -> None:
    """Replace b by A^-1 b, with the factors."""
    _either(x, (solve_by_bodies, linear.back_substitute), b)


def _either(x: Any, functions: tuple[Any, Any], *arguments: Any) -> None:
    of_bodies, of_matrix = functions
    if in_lanes(x) or getattr(x, "by_matrix", False):
        once(x, of_matrix, *arguments)
    else:
        cond(by_bodies(x), lambda: once(x, of_bodies, *arguments), lambda: once(x, of_matrix, *arguments))
