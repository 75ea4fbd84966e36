"""Derivatives of what a landing puts back: s = t (y - v) of landing.py, as a part of the step's derivatives.

With the gap phi and the speed u before of the contact that lands, t = -phi/u, and

    dt = -(dphi + t du) / u        ds = t (dy - dv) + (y - v) dt

Aims of other gaps follow t, too: a term r_t dt of the residual. The second drift goes along y - 2 s/dt.

Source: step_derivatives.py.
Cost: O(n^2) in a step in which something lands.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.vectors import add, nothing, put
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where


def lands(x: Any) -> Any:
    """Whether the step puts something back."""
    return x.landing_contact[0] >= 0


def landing_constraint(x: Any) -> Any:
    """The constraint of the contact that lands, or -1."""
    c = x.landing_contact[0]
    return where(c < 0, -1, x.contact_constraint[where(c < 0, 0, c)])


def begin(x: Any) -> None:
    """No changes of t yet."""
    for each in (x.late_q, x.late_v, x.r_t):
        for_range(x.nv, lambda j, each=each: put(each, j, 0.0))


def enter(x: Any) -> None:
    """What changes of t make of r; and ``l_q`` and ``l_v``, the changes of -s by q and v."""

    def of_part(p: Any) -> None:
        first, late = x.part_rows[p, 0], where(x.part_lands[p] > 0, 1.0, 0.0)

        def row(k: Any) -> None:
            i = first + k
            change = late * (x.y[i] - x.v0[i])
            x.put_late[i] = late * x.landing[0]

            def entry(j: Any) -> None:
                add(x.r_q, (i, j), x.r_t[i] * x.late_q[j])
                add(x.r_v, (i, j), x.r_t[i] * x.late_v[j])
                x.l_q[i, j] = -change * x.late_q[j]
                x.l_v[i, j] = -change * x.late_v[j]

            for_range(x.nv, entry)
            add(x.l_v, (i, i), x.put_late[i])

        for_range(x.part_rows[p, 1], row)

    cond(lands(x), lambda: for_range(x.n_parts, of_part), nothing)


def change_drift(x: Any) -> None:
    """``ds``, which has what q and v change of s, and what dy does."""
    count = 3 * x.nv
    dy, ds = x.dy.reshape(x.nv, count), x.ds.reshape(x.nv, count)

    def row(i: Any) -> None:
        for_range(count, lambda c: put(ds, (i, c), ds[i, c] + x.put_late[i] * dy[i, c]))

    for_range(x.nv, row)


def pull(x: Any, turn: Any) -> None:
    """What q and v in the middle, and y, are worth by s; ``turn`` gives ``nu``, what s is worth."""

    def found() -> None:
        for M, of in ((x.l_q, x.of_middle), (x.l_v, x.of_v)):

            def less(j: Any, M: Any = M, of: Any = of) -> None:
                of[j] = for_range(x.nv, lambda r, total: total - M[r, j] * x.nu[r], of[j])

            for_range(x.nv, less)
        for_range(x.nv, lambda j: put(x.mu, j, x.mu[j] + x.put_late[j] * x.nu[j]))

    cond(lands(x), lambda: turn(x), nothing)
    for_range(x.nv, lambda j: put(x.of_v, j, 0.0))
    cond(lands(x), found, nothing)


def of_turn(W: Any, i: Any, k: Any) -> Any:
    """An entry of W that a turn of the base makes: how the linear velocity is seen from the new axes."""
    return where((i > 2) & (k < 3), W, 0.0)
