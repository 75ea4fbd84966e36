"""A = H + J^T G J of a deep tree by bodies, its factors and solutions: articulated inertias.

A of a chain of n links has n^2 / 2 entries, and its factors take n^3 / 3 operations. Here the velocities V_b
of bodies are unknowns beside those of joints, V_b = V_lambda + S_b d_b, and A is never made. One dof of one
body after the other is eliminated, from the tips inward, with column s of S_b:

    D = s.M_bb s + rotor + slopes of rows      M_xy -= (M_xb s) (s^T M_by) / D      at last M_lambda += M_b

M_bb is at first the inertia of a body and what constraints on it add, 6 x 6, at last the articulated inertia
of what it carries. A constraint between bodies a and b adds to M_aa and M_bb, and couples them: M_ab = -K.
What a body is coupled with its parent is coupled with after it; so each body is coupled with the other ends
of the constraints that reach over it, and with no other bodies. M is not symmetric where a contact slides.
D are the pivots that A has when its rows are eliminated from the last to the first.

All is in world axes about the step's origin.

Source: RBDA section 7.3 (articulated bodies); couplings: D. Baraff, Linear-time dynamics using Lagrange
multipliers, SIGGRAPH (1996), eliminates the unknowns of bodies and joints from the tips likewise.
Cost: by dof, (6 + 6 m)^2 operations, where it carries m couplings; by dof of a solution, 24 (1 + m).
"""

from __future__ import annotations

from typing import Any

from robokit.contact import kinematics, linear
from robokit.contact.fields import SPIN
from robokit.contact.kinematics import generalized, velocities
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
body in whose list it was seen last; the number of its matrix in the list that is looked at."""


def by_bodies(x: Any) -> Any:
    """Whether the tree is deep (robot_data.py). Derivatives read A by rows."""
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


def _partner(x: Any, b: Any, e: Any) -> tuple[Any, Any]:
    """A body that another one is coupled with, and the number of their matrix. Those of bodies come first."""
    entry = x.coupled[b, FIRST] + e
    return x.pattern[entry], x.n_bodies + entry


def _note_places(x: Any, b: Any) -> None:
    """Note of each body in a list which matrix is theirs."""

    def one(e: Any) -> None:
        n, own = _partner(x, b, e)
        x.coupled[n, PLACE] = own

    for_range(x.coupled[b, COUNT], one)


# ---- matrices ---------------------------------------------------------------------------------------------


def _both(x: Any) -> tuple[Any, Any]:
    """M by rows, and its transpose: of b and a body n before it M_bn and the transpose of M_nb."""
    n = 16 * x.n_fill
    return x.A.reshape(n), x.A_skew.reshape(n)


def _row(M: Any, at: Any) -> list[Any]:
    return [M[at + k] for k in range(WIDE)]


def _write(M: Any, at: Any, values: Any) -> None:
    for k, value in enumerate(values):
        M[at + k] = value


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
    for r in range(6):
        write_row(x.six_by_six, (x.n_bodies, r), [0.0] * WIDE)


def _begun(x: Any, k: Any) -> Any:
    """Where a matrix begins. The first time it is a body's inertia, or 0: now it is in the cache."""
    cond(x.arcs[k, 0] > 0, nothing, lambda: once(x, _begin, k))
    return SIZE * k


def _begin(x: Any, k: Any) -> None:
    body = where(k < x.n_bodies, k, x.n_bodies)

    def row(r: Any) -> None:
        numbers = [x.six_by_six[body, r, c] for c in range(WIDE)]
        for each in _both(x):
            _write(each, SIZE * k + WIDE * r, numbers)

    x.arcs[k, 0] = 1
    for_range(6, row)


def articulate(x: Any, constraints: Any, rows: Any) -> None:
    """M of bodies and pairs, with the slopes of the first constraints; Dinv has what rows add to D."""

    def dof(j: Any) -> None:
        x.Dinv[j] = x.armature[j] * x.dof_gain[j] * x.dof_gain[j]

    def of_row(i: Any) -> None:
        j, gain = x.r_row[i], x.r_gain[i]
        x.Dinv[j] = x.Dinv[j] + gain * gain * x.r_G[i]

    for_range(x.n_columns, lambda k: put(x.Dinv, k, 1.0))
    for_range(x.nv, dof)
    for_range(rows, of_row)
    for_range(x.filled[0] // (SIZE // 16), lambda k: put(x.arcs, (k, 0), 0))
    for_range(constraints, lambda c: once(x, _of_constraint, c))


def _of_constraint(x: Any, c: Any) -> None:
    """Add K of a constraint to the matrices of its bodies, and take it from that between them."""
    a, b = x.c_bodies[c, 0], x.c_bodies[c, 1]

    def acts() -> None:
        write_row(x.K, 0, _six_by_six(x, c))
        one, other = x.body_tip[a] >= 0, x.body_tip[b] >= 0
        cond(one, lambda: once(x, _add_K, a, 1.0), nothing)
        cond(other, lambda: once(x, _add_K, b, 1.0), nothing)

        def between() -> None:
            last, n = where(a < b, b, a), where(a < b, a, b)
            once(x, _note_places, last)
            once(x, _add_K, 1 * x.coupled[n, PLACE], -1.0)

        cond(one & other, between, nothing)

    cond(a == b, nothing, acts)


def _add_K(x: Any, k: Any, sign: Any) -> None:
    """Add to a matrix what K of the world has, and to its transpose."""
    M, M_T = _both(x)
    first = _begun(x, k)

    def row(r: Any) -> None:
        at = first + WIDE * r
        for each, step in ((M, (6, 1)), (M_T, (1, 6))):
            K = [x.K[0, step[0] * r + step[1] * c] for c in range(6)]
            for c, number in enumerate(K):
                each[at + c] = each[at + c] + sign * number

    for_range(6, row)


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
    """What dof k of a body is worth of another one, in a row of the matrices between them."""
    for each, side in zip(_both(x), (1, 0), strict=True):
        _write(each, SIZE * own + WIDE * k, [x.worth[n, k, side, c] for c in range(WIDE)])


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
    """What the dof is worth of its body or of one that is coupled with it: M s and s^T M between them."""
    at = _begun(x, own)
    for side, each in enumerate(reversed(_both(x))):
        rows = [_row(each, at + WIDE * r) for r in range(6)]
        for c in range(WIDE):
            x.worth[n, k, side, c] = sum_of(x.S[j, r] * rows[r][c] for r in range(6))


def _take(x: Any, own: Any, one: Any, other: Any, j: Any, k: Any) -> None:
    """What the dof is worth of the matrix between two bodies, or of one."""
    first = _begun(x, own)

    def row(r: Any) -> None:
        at = first + WIDE * r
        for each, side in zip(_both(x), (0, 1), strict=True):
            left = x.worth[one, k, side, r] * x.Dinv[j]
            right = [x.worth[other, k, 1 - side, c] for c in range(WIDE)]
            _write(each, at, [a - left * b for a, b in zip(_row(each, at), right, strict=True)])

    for_range(6, row)


def _hand_down(x: Any, b: Any, parent: Any) -> None:
    """Matrices of a body to its parent, which moves as it does now."""

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
            sums = zip(_row(each, to + WIDE * r), _row(each, source + WIDE * r), strict=True)
            _write(each, to + WIDE * r, [p + q for p, q in sums])

    for_range(6, row)


def _add_transposed(x: Any, k: Any, own: Any) -> None:
    """The transpose of one to another."""
    (M, M_T), to, source = _both(x), _begun(x, k), _begun(x, own)

    def row(r: Any) -> None:
        for each, other in ((M, M_T), (M_T, M)):
            for c in range(6):
                place = to + WIDE * r + c
                each[place] = each[place] + other[source + WIDE * c + r]

    for_range(6, row)


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

            def push(n: Any, own: Any) -> None:
                u = _row(M_T, SIZE * own + WIDE * k)
                write_row(p, n, [p[n, c] + u[c] * share for c in range(WIDE)])

            push(b, b)
            for_range(x.coupled[b, COUNT], lambda z: push(*_partner(x, b, z)))

        for_range(count, dof)
        write_row(p, parent, [p[parent, c] + p[b, c] for c in range(WIDE)])

    def outward(m: Any) -> None:
        b = m + 1
        first, count, parent = x.body_dofs[b, 0], x.body_dofs[b, 1], x.parent[b]

        def dof(k: Any, *now: Any) -> tuple[Any, ...]:
            j = first + k

            def of(own: Any, V_n: Any) -> list[Any]:
                return [a * v for a, v in zip(_row(M, SIZE * own + WIDE * k), V_n, strict=True)]

            def partner(z: Any, *so_far: Any) -> tuple[Any, ...]:
                n, own = _partner(x, b, z)
                more = of(own, [V[n, c] for c in range(WIDE)])
                return tuple(a + q for a, q in zip(so_far, more, strict=True))

            t = for_range(x.coupled[b, COUNT], partner, *of(b, now))
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


def multiply_by_bodies(x: Any, y: Any, out: Any) -> None:
    """H y, by the momenta of bodies."""
    once(x, velocities, y, x.Vd)

    def body(b: Any) -> None:
        rows = [[x.six_by_six[b, r, c] for c in range(WIDE)] for r in range(6)]
        V = [x.Vd[b, r] for r in range(6)]
        write_row(x.pushed, b, [sum_of(V[r] * rows[r][c] for r in range(6)) for c in range(6)])

    def rotor(j: Any) -> None:
        out[j] = out[j] + x.armature[j] * x.dof_gain[j] * x.dof_gain[j] * y[j]

    for_range(x.n_bodies, body)
    once(x, generalized, x.pushed, out)
    for_range(x.nv, rotor)


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


def multiply(x: Any, y: Any, out: Any) -> None:
    """H y."""
    _either(x, (multiply_by_bodies, kinematics.multiply), y, out)


def _either(x: Any, functions: tuple[Any, Any], *arguments: Any) -> None:
    of_bodies, of_matrix = functions
    if in_lanes(x):
        once(x, of_matrix, *arguments)
    else:
        cond(by_bodies(x), lambda: once(x, of_bodies, *arguments), lambda: once(x, of_matrix, *arguments))
