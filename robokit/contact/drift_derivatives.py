"""Derivatives of a drift: how the end of ``advance`` changes with its start, in tangent coordinates.

    dq' = P dq + Q dv        dv' = W dv

Of joints whose motions are sums P = W = 1 and Q = h. Others move q by the exponential of xi = h S v, whose
differentials, with ad = xi x in body coordinates, are

    P = exp(-ad) = sum of (-ad)^n / n!        Q = h (sum of (-ad)^n / (n + 1)!)        W = 1

A base that floats turns by E = exp(h w) and goes straight, by h u in axes that do not turn:

    turn:   exp(-ad) da + h J dw              ad = h w x, J the second sum
    place:  E^T (dp + h (da x u + du))        u': E^T du + u' x (h J dw)

Source: A. Iserles, H. Munthe-Kaas, S. Nørsett, A. Zanna, Lie-group methods, Acta Numerica 9 (2000), section
2.6: the differential of the exponential.
Cost: O(n) for each of two drifts; joints of several dofs 36 numbers for each of P, Q, W.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.kinematics import is_free_base
from robokit.contact.robot_data import PLANAR
from robokit.contact.vectors import force, motion, nothing
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import where

TERMS = 40
"""Of the series, at most: enough for six turns in half a step."""

SIZE = 108
"""Numbers of a joint: P, Q and W, each 6 x 6 by columns."""


def drift_tangents(x: Any, drift: int, v: Any) -> None:
    """x.tangents[drift] of all joints with a motion that is no sum.

    Args:
        drift: 0 for that before the kick, 1 for that after it.
        v: velocity before the drift, (nv,).
    """
    h = 0.5 * x.dt[0]

    def joint(b: Any, _first: Any, _n: Any) -> None:
        cond(is_free_base(x, b), lambda: _free(x, drift, b, v, h), lambda: _joint(x, drift, b, v, h))

    no_sums(x, joint)


def no_sums(x: Any, joint: Any) -> None:
    """``joint(b, first, n)`` of all whose motion is no sum: the body, its coordinates of v."""

    def body(m: Any) -> None:
        b = m + 1
        no_sum = (x.joint_kind[b] >= PLANAR) & (x.joint_leads[b] > 0)

        def call() -> None:
            joint(b, x.dof_row[x.body_dofs[b, 0]], x.body_dofs[b, 1])

        cond(no_sum, call, nothing)

    for_range(x.n_bodies - 1, body)


def block(x: Any, drift: Any, b: Any, i: Any, k: Any) -> tuple[Any, Any, Any]:
    """Entries i, k of P, Q and W."""
    p, q, w = (x.tangents[drift, b, 36 * part + 6 * k + i] for part in range(3))
    return p, q, w


def pulled(x: Any, drift: Any, of_q: Any, of_v: Any, q_out: Any, v_out: Any) -> None:
    """What (q, v) before a drift are worth, from what they are worth after it, (nv,) each."""
    h = 0.5 * x.dt[0]

    def sums(j: Any) -> None:
        q_out[j] = of_q[j]
        v_out[j] = h * of_q[j] + of_v[j]

    def joint(b: Any, first: Any, n: Any) -> None:
        def component(k: Any) -> None:
            def more(i: Any, q: Any, v: Any) -> Any:
                P, Q, W = block(x, drift, b, i, k)
                return q + P * of_q[first + i], v + Q * of_q[first + i] + W * of_v[first + i]

            q_out[first + k], v_out[first + k] = for_range(n, more, 0.0, 0.0)

        for_range(n, component)

    for_range(x.nv, sums)
    no_sums(x, joint)


def _write(x: Any, drift: int, b: Any, part: int, k: Any, column: Any) -> None:
    for i, number in enumerate(column):
        x.tangents[drift, b, 36 * part + 6 * k + i] = number


def _series(xi: Motion, start: Motion) -> tuple[Motion, Motion]:
    """The sums of (-ad)^n start / n! and of (-ad)^n start / (n + 1)!."""

    def wanted(n: Any, *numbers: Any) -> Any:
        term = numbers[:6]
        total = term[0] * 0.0
        for t in term:
            total = total + abs(t)
        return total > 1e-18

    def more(n: Any, *numbers: Any) -> Any:
        term, whole, part = (of_motion(numbers[6 * k : 6 * k + 6]) for k in range(3))
        whole, part = whole + term, part + term * (1.0 / (n + 1.0))
        return n + 1.0, *(term.cross(xi) * (1.0 / (n + 1.0))), *whole, *part

    zero = (0.0,) * 6
    found = while_loop(wanted, more, 0.0, *start, *zero, *zero, most=TERMS)
    return of_motion(found[7:13]), of_motion(found[13:19])


def of_motion(six: Any) -> Motion:
    """A motion from six numbers."""
    return Motion(Vector3(*six[:3]), Vector3(*six[3:]))


def _joint(x: Any, drift: int, b: Any, v: Any, h: Any) -> None:
    """Of an exponential in the joint's own group."""
    first, n = x.body_dofs[b, 0], x.body_dofs[b, 1]
    row = x.dof_row[first]

    def more(k: Any, *so_far: Any) -> Any:
        return tuple(so_far[c] + x.dof_axis[first + k, c] * v[row + k] * h for c in range(6))

    xi = of_motion(for_range(n, more, *(0.0,) * 6))

    def column(k: Any) -> None:
        whole, part = _series(xi, motion(x.dof_axis, first + k))

        def component(i: Any) -> None:
            S = force(x.dof_axis, first + i)  # the columns of S are orthonormal
            at = 6 * k + i
            x.tangents[drift, b, at] = whole.dot(S)
            x.tangents[drift, b, 36 + at] = h * part.dot(S)
            x.tangents[drift, b, 72 + at] = where(i == k, 1.0, 0.0)

        for_range(n, component)

    for_range(n, column)


def _free(x: Any, drift: int, b: Any, v: Any, h: Any) -> None:
    """Of a base that floats."""
    row = x.dof_row[x.body_dofs[b, 0]]
    w, u = (Vector3(*(v[row + first + c] for c in range(3))) for first in (0, 3))
    zero = Vector3.zero()
    u_later = _series(Motion(w * h, zero), Motion(u, zero))[0].ang

    def column(k: Any) -> None:
        e = Vector3(*(where(k % 3 == c, 1.0, 0.0) for c in range(3)))
        turned, J = (m.ang for m in _series(Motion(w * h, zero), Motion(e, zero)))

        def of_turn() -> None:
            # E^T (e x u) = (E^T e) x (E^T u)
            _write(x, drift, b, 0, k, [*turned, *(turned.cross(u_later) * h)])
            _write(x, drift, b, 1, k, [*(J * h), *zero])
            _write(x, drift, b, 2, k, [*e, *(u_later.cross(J) * h)])

        def of_place() -> None:
            _write(x, drift, b, 0, k, [*zero, *turned])
            _write(x, drift, b, 1, k, [*zero, *(turned * h)])
            _write(x, drift, b, 2, k, [*zero, *turned])

        cond(k < 3, of_turn, of_place)

    for_range(6, column)
