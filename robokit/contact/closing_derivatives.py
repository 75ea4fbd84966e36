"""Derivatives of what closes loops: of the kick's pose, and of the end of a step.

The nearest closed pose moves by dq_c = P dq, the end of a step by

    dq'' = P dq'        dv'' = P dv' - H^-1 J^T A^-1 (dJ/dq'' y),     A = J H^-1 J^T

since J v'' = 0 there. P = 1 - H^-1 J^T A^-1 J takes away what opens the loops. With Z = H + J^T J / R it is
Z^-1 H up to the compliance R, twice that up to its square, also where loops repeat each other (closing.py).

What is held: P and dJ are those of the kick's pose at the end, too; this is an error of order dt.

Cost: O(nv^3); nothing without loops.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.closing import CLOSED
from robokit.contact.fields import LINE
from robokit.contact.unsymmetric import back_substitute, back_substitute_transposed, factor
from robokit.contact.vectors import force
from robokit.engine.loops.fields import once
from robokit.spatial import Force
from robokit.spatial.control_flow import for_range
from robokit.spatial.scalars import where


def pushed(x: Any, i: Any, rates: list[Any]) -> Force:
    """J^T of rates of a loop's rows over R; of another constraint none."""
    loop = x.c_kind[i] == LINE
    k = where(loop, x.c_of[i], 0)
    share = where(loop, 1.0 / (CLOSED * x.loop_mobility[k // 2, k % 2]), 0.0)
    f = Force.zero()
    for m in range(3):
        f = f + force(x.c_E, i, 6 * m) * (rates[m] * share)
    return f


def prepare(x: Any) -> None:
    """P, the factors of Z, and r_q for changes of the pose before it is closed; z holds J^T J / R."""

    def row(r: Any) -> None:
        def entry(c: Any) -> None:
            H = x.H[where(r < c, c, r), where(r < c, r, c)]
            x.z[r, c] = x.z[r, c] + H
            x.P[r, c] = H

        for_range(x.nv, entry)

    def again(r: Any) -> None:
        for_range(x.nv, lambda c: _set(x.product, r, c, 0.0))

        def term(m: Any) -> None:
            H = x.H[where(r < m, m, r), where(r < m, r, m)]
            for_range(x.nv, lambda c: _set(x.product, r, c, x.product[r, c] + H * x.P[m, c]))

        for_range(x.nv, term)

    for_range(x.nv, row)
    factor(x, x.z, x.z_inverse)
    once(x, back_substitute, x.z, x.z_inverse, x.P)
    for_range(x.nv, again)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: _set(x.P, r, c, x.product[r, c])))
    once(x, back_substitute, x.z, x.z_inverse, x.P)
    _times(x, x.r_q, x.P, x.product, x.nv)
    for_range(x.nv, lambda r: for_range(x.nv, lambda c: _set(x.r_q, r, c, x.product[r, c])))


def close(x: Any) -> None:
    """``next`` of the end that is closed."""
    count = 3 * x.nv
    q, v = (x.next[k].reshape(x.nv, count) for k in range(2))
    one, other = x.dy.reshape(x.nv, count), x.closed.reshape(x.nv, count)

    def copy(A: Any, B: Any) -> None:
        for_range(x.nv, lambda r: for_range(count, lambda c: _set(B, r, c, A[r, c])))

    once(x, _times, x.P, q, one, count)
    copy(one, q)
    once(x, _times, x.P, v, one, count)
    once(x, _times, x.opening, q, other, count)
    once(x, back_substitute, x.z, x.z_inverse, other)
    for_range(x.nv, lambda r: for_range(count, lambda c: _set(v, r, c, one[r, c] - other[r, c])))


def pull(x: Any) -> None:
    """of_q and of_v before loops are closed at the end of a step, from those after it."""
    once(x, _transposed, x.P, x.of_v, x.of_middle)
    back_substitute_transposed(x, x.z, x.z_inverse, x.of_v)
    once(x, _transposed, x.opening, x.of_v, x.mu)

    def entry(j: Any) -> None:
        x.mu[j], x.of_v[j] = x.of_q[j] - x.mu[j], x.of_middle[j]

    for_range(x.nv, entry)
    once(x, _transposed, x.P, x.mu, x.of_q)


def _transposed(x: Any, A: Any, b: Any, out: Any) -> None:
    """out = A^T b."""

    def entry(c: Any) -> None:
        out[c] = for_range(x.nv, lambda r, total: total + A[r, c] * b[r], 0.0)

    for_range(x.nv, entry)


def _times(x: Any, A: Any, B: Any, out: Any, count: Any) -> None:
    """out = A B, with so many columns."""

    def row(r: Any) -> None:
        for_range(count, lambda c: _set(out, r, c, 0.0))

        def term(m: Any) -> None:
            share = A[r, m]
            for_range(count, lambda c: _set(out, r, c, out[r, c] + share * B[m, c]))

        for_range(x.nv, term)

    for_range(x.nv, row)


def _set(A: Any, r: Any, c: Any, value: Any) -> None:
    A[r, c] = value
