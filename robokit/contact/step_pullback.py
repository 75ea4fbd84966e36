"""Reverse mode of a step: from how a number changes with the next state to how it does with this one.

    mu = r_y^-T (what y is worth)     of tau: dt mu     of q, v in the middle: -r_q^T mu, -r_v^T mu

and the transposed derivatives of both drifts. It is step_derivatives.py read backwards: one back substitution
instead of 3 nv.

Of a parameter p the residual of step_derivatives.py changes by r_p, and p is worth -mu . r_p. As motions of
the bodies, V_mu = S mu:

    inertia pi of a body    -dt (V_mu . I(pi) A - (W x V_mu) . I(pi) W),  which is linear in pi
    gravity                 dt sum over the bodies of the linear part of I V_mu; and bounces know heights
    friction                E V_mu . dg/dmu:  g_t = mu N t where a contact slides, and N does not change
    restitution             E V_mu . G daim/dr, of contacts that bounce
    force of a motor        dt mu_j, unless it is at its largest effort or speed

W and A are the velocities and accelerations of inverse dynamics, at the mean velocity. What is held is that
of step_derivatives.py; compliances, which are shares of mobilities, do not follow inertias, nor does what
closes loops at the end of a step: with loops, inertias are worth what they are in the kick alone.

Source: step_derivatives.py; regressors as in W. Khalil, E. Dombre, Modeling, identification and control of
robots (2002), chapter 12.
Cost: O(n d) for inverse dynamics, O(n (n + contacts)) for contacts, O(n + contacts + motors) for parameters.
"""

from __future__ import annotations

import functools
from typing import Any

from robokit.contact import closing_derivatives
from robokit.contact.constraint_derivatives import acts, by_load, restitution_rates
from robokit.contact.drift_derivatives import drift_tangents, pulled
from robokit.contact.fields import FRICTION, MOTOR, SPIN, STEP_PULLBACK
from robokit.contact.kinematics import velocities
from robokit.contact.laws import slip
from robokit.contact.step_derivatives import arrays, end, kick
from robokit.contact.unsymmetric import back_substitute_transposed
from robokit.contact.vectors import add, force, inertia, matrix, motion, nothing, put, vector, write_row
from robokit.engine.loops.fields import kernel_of, once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, smallest
from robokit.spatial.scalars import clamp, where


@functools.cache
def pullback_kernel() -> LoopKernel:
    """The kernel of a step's reverse mode, of all robots."""
    taken = tuple(a for a in arrays() if a.name != "next")
    return kernel_of("contact_step_pullback", step_pullback, (*taken, *STEP_PULLBACK), by_source=True)


def step_pullback(x: Any) -> None:
    """``of_start`` and what parameters are worth, from ``of_end``; of a step that stopped after its kick."""

    def prepare() -> None:
        kick(x)
        end(x)
        once(x, drift_tangents, 0, x.v_before)
        once(x, drift_tangents, 1, x.y)

    cond(x.again[0] > 0, nothing, prepare)

    def begin(j: Any) -> None:
        x.of_q[j], x.of_v[j] = x.of_end[0, j], x.of_end[1, j]

    for_range(x.nv, begin)
    cond(x.n_loops > 0, lambda: closing_derivatives.pull(x), nothing)
    once(x, pulled, 1, x.of_q, x.of_v, x.of_middle, x.mu)
    back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)

    def middle(j: Any) -> None:
        def more(r: Any, by_q: Any, by_v: Any) -> Any:
            return by_q - x.r_q[r, j] * x.mu[r], by_v - x.r_v[r, j] * x.mu[r]

        x.of_middle[j], x.of_v[j] = for_range(x.nv, more, x.of_middle[j], 0.0)
        x.of_start[2, j] = x.dt[0] * x.mu[j]

    for_range(x.nv, middle)
    of_parameters(x)
    once(x, pulled, 0, x.of_middle, x.of_v, x.of_start[0], x.of_start[1])


# ---- parameters -------------------------------------------------------------------------------------------


def of_parameters(x: Any) -> None:
    """``of_pair``, ``of_gravity``, ``of_motor`` and ``of_inertia`` from ``mu``."""
    once(x, velocities, x.mu, x.V_mu)
    for_range(x.n_pairs, lambda k: write_row(x.of_pair, k, [0.0] * 2))
    for_range(x.n_motors, lambda m: put(x.of_motor, m, 0.0))
    for k in range(3):
        x.of_gravity[k] = 0.0
    for_range(x.n_bodies, lambda b: _of_body(x, b))
    for_range(x.n_of[0], lambda i: _of_constraint(x, i))
    for_range(x.n_of[1], lambda i: cond(x.r_kind[i] == MOTOR, lambda: _of_motor(x, i), nothing))


def _of_body(x: Any, b: Any) -> None:
    """Its inertia and its weight; the world has none."""
    V, W, A = (motion(M, b) for M in (x.V_mu, x.W, x.a))
    momentum = inertia(x.I, b) @ V
    for k, each in enumerate(momentum.lin):
        add(x.of_gravity, k, x.dt[0] * each)
    R, p = matrix(x.R, b).T, vector(x.p, b)

    def of_body(M: Motion) -> Motion:
        return Motion(R @ M.ang, R @ (M.lin + M.ang.cross(p)))

    one = _ten(of_body(V), of_body(A))
    other = _ten(of_body(W.cross(V)), of_body(W))
    for k in range(10):
        x.of_inertia[b, k] = where(b > 0, x.dt[0] * (other[k] - one[k]), 0.0)


def _ten(X: Motion, Y: Motion) -> list[Any]:
    """The numbers that X . I Y is linear in, in the order of ``inertia``."""
    h = Y.lin.cross(X.ang) - Y.ang.cross(X.lin)
    a, b = tuple(X.ang), tuple(Y.ang)

    def mixed(i: int, k: int) -> Any:
        return a[i] * b[k] + a[k] * b[i]

    return [
        X.lin.dot(Y.lin),
        *h,
        a[0] * b[0],
        mixed(0, 1),
        a[1] * b[1],
        mixed(0, 2),
        mixed(1, 2),
        a[2] * b[2],
    ]


def _of_bounce(x: Any, i: Any, worth: Any) -> None:
    """What the aim of contact constraint i is worth, of restitution and gravity."""
    c = x.c_of[i]
    by_share, by_weight = restitution_rates(x, i, c)
    add(x.of_pair, (x.contact_pair[c], 1), worth * by_share)
    for k in range(3):
        add(x.of_gravity, k, -worth * by_weight * x.contact_frame[c, 6 + k])


def _of_constraint(x: Any, i: Any) -> None:
    def seen() -> Vector3:
        moved = motion(x.V_mu, x.c_bodies[i, 1]) - motion(x.V_mu, x.c_bodies[i, 0])
        return Vector3(*(moved.dot(force(x.c_E, i, 6 * k)) for k in range(3)))

    def contact() -> None:
        c = x.c_of[i]
        pair, w = x.contact_pair[c], seen()
        u, aim = [x.c_u[i, k] for k in range(3)], [x.c_aim[i, k] for k in range(3)]
        dx, dy, size = slip(u, aim)
        R_t, R_n = x.c_R[i, 0], x.c_R[i, 1]
        N = (aim[2] - u[2]) / R_n
        slides = size > x.c_mu[i] * R_t * N
        along = where(slides, N / (size + smallest()), 0.0)
        add(x.of_pair, (pair, 0), -along * (w.x * dx + w.y * dy))
        cond(x.contact_bounces[c] > 0, lambda: bounce(w), nothing)

    def bounce(w: Vector3) -> None:
        G = [x.c_slopes[i, 3 * k + 2] for k in range(3)]
        _of_bounce(x, i, w.x * G[0] + w.y * G[1] + w.z * G[2])

    def spin() -> None:
        """What its contact's bounce changes of the normal impulse that bounds it."""
        c = x.c_of[x.c_of[i]]

        def follow() -> None:
            _of_bounce(x, x.c_of[i], seen().dot(Vector3(*by_load(x, i))) * x.c_slopes[x.c_of[i], 8])

        cond(x.contact_bounces[c] > 0, follow, nothing)

    kind = cond(acts(x, i), lambda: x.c_kind[i], lambda: -1)
    cond(kind == FRICTION, contact, lambda: cond(kind == SPIN, spin, nothing))


def _of_motor(x: Any, i: Any) -> None:
    """What its force times dt is worth."""
    j, gain = x.r_row[i], x.r_gain[i]
    u = gain * x.y[j]
    free = (x.r_aim[i] - u) / x.r_R[i]
    g = clamp(free, x.r_low[i], x.r_high[i])
    slower = x.r_speed[i] - where(g < 0.0, -u, u) < x.r_speed_R[i] * abs(g)
    follows = where(slower | (abs(g) < abs(free)), 0.0, 1.0)
    x.of_motor[x.r_of[i]] = follows * x.dt[0] * gain * x.mu[j]
