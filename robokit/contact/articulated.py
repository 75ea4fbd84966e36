"""Solutions of A = H + J^T G J by bodies: articulated inertias, for trees so deep that A would be dense.

A of a chain of n links has n^2 / 2 entries, and its factors take n^3 / 3 operations. Here the velocity V_b of
each body stays beside that of its joint, V_b = V_lambda + S_b d_b, and what is eliminated, from the tips
inward, is one dof of one body after the other:

    D = s.M_b s + rotor + G      M_xy -= (M_xb s) (s^T M_by) / D      then M_lambda += M_b

M_b is the articulated inertia of a body with the constraints that act on what it carries, 6 x 6. A constraint
between bodies a and b couples them, M_ab = -K. What is coupled with a body is handed to its parent, so that
each body is coupled with the other ends of the constraints that reach over it, and with no others. D are the
pivots that A has when its rows are eliminated from the last to the first.

Source: RBDA sections 7.2 and 7.3 (articulated bodies); couplings: D. Baraff, Linear-time dynamics using
Lagrange multipliers, SIGGRAPH (1996), eliminates bodies and joints of a sparse matrix likewise.
Cost: by dof, (6 + 6 m)^2 operations where it is under m coupled bodies; a solution 24 (1 + m).
"""

from __future__ import annotations

from typing import Any

from robokit.contact import linear
from robokit.contact.fields import SPIN
from robokit.contact.linear import by_load, rows_of_E, sum_of
from robokit.contact.pattern import symbolic
from robokit.contact.vectors import in_lanes, inertia, nothing, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum, where

WIDE = 8  # numbers of a row of M: six, and two zeros, so that it is two vectors of four
SIZE = 6 * WIDE

FIRST, COUNT, CHILDREN, SIBLING, PAIRS, SEEN, PLACE = range(7)
"""Columns of ``coupled``: a body's first entry of ``pattern``, the coupled bodies, and how many; the first
body whose couplings are handed to it, and the next one of these; the first pair whose last body it is; the
body in whose list it was seen last; its place in the list that is looked at."""


def by_bodies(x: Any) -> Any:
    """Whether A is not made."""
    return (x.n_articulated > 0) & (x.orders[0] > 0)


# ---- which bodies are coupled -----------------------------------------------------------------------------


def list_coupled(x: Any) -> None:
    """List the bodies that each one is coupled with when it is eliminated; all come before it.

    ``filled`` is how much room their matrices need, in blocks of A.
    """

    def begin(b: Any) -> None:
        for column in (CHILDREN, PAIRS, SEEN):
            x.coupled[b, column] = -1
        x.coupled[b, COUNT] = 0

    def pair(c: Any) -> None:
        a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]
        last = where(a < b, b, a)

        def enter() -> None:
            x.next_clique[c] = x.coupled[last, PAIRS]
            x.coupled[last, PAIRS] = c

        cond((x.body_tip[a] >= 0) & (x.body_tip[b] >= 0) & (a != b), enter, nothing)

    for_range(x.n_bodies, begin)
    for_range(minimum(x.n_of[0], x.n_constraints), pair)
    x.filled[0] = 0
    for_range(x.n_bodies - 1, lambda m: _list(x, x.n_bodies - 1 - m))
    x.filled[0] = SIZE // 16 * (x.n_bodies + x.filled[0])
    note_inertias(x)


def _list(x: Any, b: Any) -> None:
    """The list of a body, and to whom it is handed: of these and the parent the last one."""
    first = 1 * x.filled[0]
    x.coupled[b, FIRST] = first
    x.coupled[b, SEEN] = b

    def enter(n: Any) -> None:
        def new() -> None:
            x.coupled[n, SEEN] = b
            x.pattern[minimum(x.filled[0], x.n_fill - 1)] = n
            x.filled[0] = x.filled[0] + 1

        cond(x.coupled[n, SEEN] == b, nothing, new)

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


def _matrix(b: Any) -> Any:
    """Where the matrix of a body begins, in M and its transpose."""
    return SIZE * b


def _between(x: Any, e: Any) -> Any:
    """And that of a body and one that it is coupled with, which is entry e of ``pattern``."""
    return SIZE * (x.n_bodies + e)


def _partner(x: Any, b: Any, e: Any) -> tuple[Any, Any]:
    """A body that another one is coupled with, and where their matrix is."""
    entry = x.coupled[b, FIRST] + e
    return x.pattern[entry], _between(x, entry)


def _note_places(x: Any, b: Any) -> None:
    """Note of each body in a list where its matrix is."""

    def one(e: Any) -> None:
        n, at = _partner(x, b, e)
        x.coupled[n, PLACE] = at

    for_range(x.coupled[b, COUNT], one)


# ---- matrices ---------------------------------------------------------------------------------------------


def _both(x: Any) -> tuple[Any, Any]:
    """M by rows, and its transpose: of b and a body n before it M_bn and the transpose of M_nb."""
    n = 16 * x.n_fill
    return x.A.reshape(n), x.A_skew.reshape(n)


def _row(M: Any, at: Any, r: int) -> list[Any]:
    return [M[at + WIDE * r + k] for k in range(WIDE)]


def _write(M: Any, at: Any, r: int, values: Any) -> None:
    for k, value in enumerate(values):
        M[at + WIDE * r + k] = value


def note_inertias(x: Any) -> None:
    """Inertias of bodies, six by six, which stay while a step is solved."""

    def body(b: Any) -> None:
        I = inertia(x.I, b)
        h, J = I.h, I.Ibar
        angular = [[J.xx, J.xy, J.xz], [J.xy, J.yy, J.yz], [J.xz, J.yz, J.zz]]
        skew = [[0.0, -h.z, h.y], [h.z, 0.0, -h.x], [-h.y, h.x, 0.0]]
        for r in range(3):
            straight, turned = [I.m if r == c else 0.0 for c in range(3)], [skew[c][r] for c in range(3)]
            write_row(x.six_by_six, (b, r), [*angular[r], *skew[r], 0.0, 0.0])
            write_row(x.six_by_six, (b, 3 + r), [*turned, *straight, 0.0, 0.0])

    for_range(x.n_bodies, body)


def articulate(x: Any, constraints: Any, rows: Any) -> None:
    """M of all bodies and pairs, with the slopes of the first constraints; Dinv has what rows add to D."""
    M, M_T = _both(x)

    def nothing_yet(k: Any) -> None:
        for each in (M, M_T):
            for r in range(6):
                _write(each, SIZE * (x.n_bodies + k), r, [0.0] * WIDE)

    def body(b: Any) -> None:
        for r in range(6):
            row = [x.six_by_six[b, r, c] for c in range(WIDE)]
            for each in (M, M_T):
                _write(each, _matrix(b), r, row)

    def dof(j: Any) -> None:
        x.Dinv[j] = x.armature[j] * x.dof_gain[j] * x.dof_gain[j]

    def of_row(i: Any) -> None:
        j, gain = x.r_row[i], x.r_gain[i]
        x.Dinv[j] = x.Dinv[j] + gain * gain * x.r_G[i]

    for_range(x.n_columns, lambda k: put(x.Dinv, k, 1.0))
    for_range(x.nv, dof)
    for_range(rows, of_row)
    for_range(x.filled[0] // (SIZE // 16) - x.n_bodies, nothing_yet)
    for_range(x.n_bodies, body)
    for_range(constraints, lambda c: once(x, _of_constraint, c))


def _of_constraint(x: Any, c: Any) -> None:
    """Add K of a constraint to the matrices of its bodies, and take it from that between them."""
    M, M_T = _both(x)
    a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]

    def add(at: Any, sign: float, K: list[Any]) -> None:
        for r in range(6):
            for each, own in ((M, [K[6 * r + k] for k in range(6)]), (M_T, [K[6 * k + r] for k in range(6)])):
                row = _row(each, at, r)
                _write(each, at, r, [p + sign * q for p, q in zip(row, [*own, 0.0, 0.0], strict=True)])

    def acts() -> None:
        K = _six_by_six(x, c)
        one, other = x.body_tip[a] >= 0, x.body_tip[b] >= 0
        cond(one, lambda: add(_matrix(a), 1.0, K), nothing)
        cond(other, lambda: add(_matrix(b), 1.0, K), nothing)

        def between() -> None:
            last, n = where(a < b, b, a), where(a < b, a, b)
            once(x, _note_places, last)
            add(1 * x.coupled[n, PLACE], -1.0, K)

        cond(one & other, between, nothing)

    cond(a == b, nothing, acts)


def _six_by_six(x: Any, c: Any) -> list[Any]:
    """K of a constraint by rows."""
    E = [[*e.ang, *e.lin] for e in rows_of_E(x, c, c)]
    a, b, d, e, f, n, p, q = (x.c_G[c, k] for k in range(8))
    G = (a, b, e + q), (b, d, f - p), (e - q, f + p, n)
    GE = [[row[0] * E[0][k] + row[1] * E[1][k] + row[2] * E[2][k] for k in range(6)] for row in G]
    K = [sum_of(E[i][r] * GE[i][k] for i in range(3)) for r in range(6) for k in range(6)]

    def with_load() -> tuple[Any, ...]:
        of_turn, of_normal = ([*m.ang, *m.lin] for m in by_load(x, c))
        return tuple(K[6 * r + k] + of_turn[r] * of_normal[k] for r in range(6) for k in range(6))

    return list(cond(x.c_kind[c] == SPIN, with_load, lambda: tuple(K)))


# ---- factors ----------------------------------------------------------------------------------------------


def eliminate(x: Any) -> None:
    """The dofs of all bodies, from the tips inward: D, and what each is worth of the velocities before it.

    Of dof k of a body row k of its matrices becomes s^T M and, in M_T, M s: that of its own and of those
    between it and others.
    """
    M, M_T = _both(x)

    def body(m: Any) -> None:
        b = x.n_bodies - 1 - m
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]
        partners = x.coupled[b, COUNT]
        for_range(count, lambda e: once(x, _eliminate, b, first + (count - 1 - e), count - 1 - e))
        cond(x.body_tip[parent] >= 0, lambda: once(x, _hand_down, b, parent), nothing)

        def keep(k: Any) -> None:
            _copy(x, b, _matrix(b) + WIDE * k, k)

            def one(e: Any) -> None:
                n, at = _partner(x, b, e)
                _copy(x, n, at + WIDE * k, k)

            for_range(partners, one)

        for_range(count, keep)

    for_range(x.n_bodies - 1, body)


def _copy(x: Any, n: Any, at: Any, k: Any) -> None:
    """What dof k of a body is worth of another one, to a row of their matrices."""
    for each, side in zip(_both(x), (1, 0), strict=True):
        _write(each, at, 0, [x.worth[n, k, side, c] for c in range(WIDE)])


def _eliminate(x: Any, b: Any, j: Any, k: Any) -> None:
    """One dof, the k-th of its body."""
    s = [x.S[j, c] for c in range(6)]

    def worth(n: Any, at: Any) -> None:
        for side, each in enumerate(reversed(_both(x))):
            rows = [_row(each, at, r) for r in range(6)]
            for c in range(WIDE):
                x.worth[n, k, side, c] = sum_of(s[r] * rows[r][c] for r in range(6))

    def of_partner(e: Any) -> None:
        worth(*_partner(x, b, e))

    partners = 1 * x.coupled[b, COUNT]
    worth(b, _matrix(b))
    for_range(partners, of_partner)
    D = x.Dinv[j] + sum_of(s[c] * x.worth[b, k, 0, c] for c in range(6))
    x.Dinv[j] = 1.0 / D
    once(x, _take, _matrix(b), b, b, j, k)

    def from_partner(e: Any) -> None:
        n, at = _partner(x, b, e)
        once(x, _take, at, b, n, j, k)
        once(x, _take, _matrix(n), n, n, j, k)

        def other(z: Any) -> None:
            o = x.pattern[x.coupled[b, FIRST] + z]
            cond(o < n, lambda: once(x, _take, 1 * x.coupled[o, PLACE], n, o, j, k), nothing)

        def others() -> None:
            once(x, _note_places, n)
            for_range(partners, other)

        cond(partners > 1, others, nothing)

    for_range(partners, from_partner)


def _take(x: Any, at: Any, one: Any, other: Any, j: Any, k: Any) -> None:
    """What the dof is worth of the matrices between two bodies."""
    inverse = x.Dinv[j]
    for each, side in zip(_both(x), (0, 1), strict=True):
        left = [x.worth[one, k, side, r] * inverse for r in range(6)]
        right = [x.worth[other, k, 1 - side, c] for c in range(WIDE)]
        for r in range(6):
            row = _row(each, at, r)
            _write(each, at, r, [a - left[r] * b for a, b in zip(row, right, strict=True)])


def _hand_down(x: Any, b: Any, parent: Any) -> None:
    """Matrices of a body to its parent, which moves as it does now."""

    def add(to: Any, source: Any) -> None:
        for each in _both(x):
            for r in range(6):
                sums = zip(_row(each, to, r), _row(each, source, r), strict=True)
                _write(each, to, r, [p + q for p, q in sums])

    def add_transposed(to: Any, source: Any) -> None:
        M, M_T = _both(x)
        for each, other in ((M, M_T), (M_T, M)):
            rows = [_row(other, source, r) for r in range(6)]
            for r in range(6):
                column = [*(rows[c][r] for c in range(6)), 0.0, 0.0]
                _write(each, to, r, [p + q for p, q in zip(_row(each, to, r), column, strict=True)])

    def of_partner(e: Any) -> None:
        n, at = _partner(x, b, e)

        def itself() -> None:
            add(_matrix(parent), at)
            add_transposed(_matrix(parent), at)

        def after() -> None:
            once(x, _note_places, n)
            add_transposed(1 * x.coupled[parent, PLACE], at)

        def another() -> None:
            cond(n > parent, after, lambda: add(1 * x.coupled[n, PLACE], at))

        cond(n == parent, itself, another)

    once(x, _note_places, parent)
    add(_matrix(parent), _matrix(b))
    for_range(x.coupled[b, COUNT], of_partner)


# ---- solutions --------------------------------------------------------------------------------------------


def solve_by_bodies(x: Any, given: Any) -> None:
    """``given`` becomes A^-1 given."""
    M, M_T = _both(x)
    known, p, V = x.permuted, x.articulated_p, x.articulated_V

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]

        def dof(e: Any) -> None:
            k = count - 1 - e
            j = first + k
            t = [x.S[j, c] * p[b, c] for c in range(6)]
            share = (given[j] - (((t[0] + t[1]) + (t[2] + t[3])) + (t[4] + t[5]))) * x.Dinv[j]
            known[j] = share

            def push(n: Any, at: Any) -> None:
                u = _row(M_T, at + WIDE * k, 0)
                write_row(p, n, [p[n, c] + u[c] * share for c in range(WIDE)])

            push(b, _matrix(b))
            for_range(x.coupled[b, COUNT], lambda z: push(*_partner(x, b, z)))

        for_range(count, dof)
        write_row(p, parent, [p[parent, c] + p[b, c] for c in range(WIDE)])

    def outward(m: Any) -> None:
        b = m + 1
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]

        def dof(k: Any, *now: Any) -> tuple[Any, ...]:
            j = first + k

            def of(at: Any, V_n: Any) -> list[Any]:
                return [a * v for a, v in zip(_row(M, at + WIDE * k, 0), V_n, strict=True)]

            def partner(z: Any, *so_far: Any) -> tuple[Any, ...]:
                n, at = _partner(x, b, z)
                more = of(at, [V[n, c] for c in range(WIDE)])
                return tuple(a + q for a, q in zip(so_far, more, strict=True))

            t = for_range(x.coupled[b, COUNT], partner, *of(_matrix(b), now))
            total = ((t[0] + t[4]) + (t[1] + t[5])) + (t[2] + t[3])
            d = known[j] - x.Dinv[j] * total
            given[j] = d
            return tuple(now[c] + (x.S[j, c] * d if c < 6 else 0.0) for c in range(WIDE))

        write_row(V, b, for_range(count, dof, *(V[parent, c] for c in range(WIDE))))

    def none(b: Any) -> None:
        write_row(p, b, [0.0] * WIDE)

    write_row(V, 0, [0.0] * WIDE)
    for_range(x.n_bodies, none)
    for_range(x.n_bodies - 1, inward)
    for_range(x.n_bodies - 1, outward)


# ---- one or the other -------------------------------------------------------------------------------------


def couple(x: Any) -> None:
    """What constraints couple in a step: bodies, or blocks of A."""
    _either(x, (list_coupled, symbolic))


def assemble(x: Any, constraints: Any, rows: Any) -> None:
    """A of the first constraints and rows, with their slopes."""
    _either(x, (articulate, linear.assemble), constraints, rows)


def factor(x: Any) -> None:
    """Its factors."""
    _either(x, (eliminate, linear.factor))


def back_substitute(x: Any, b: Any) -> None:
    """b becomes A^-1 b, by the factors."""
    _either(x, (solve_by_bodies, linear.back_substitute), b)


def _either(x: Any, functions: tuple[Any, Any], *arguments: Any) -> None:
    of_bodies, of_matrix = functions
    if in_lanes(x):
        once(x, of_matrix, *arguments)
    else:
        cond(by_bodies(x), lambda: once(x, of_bodies, *arguments), lambda: once(x, of_matrix, *arguments))
