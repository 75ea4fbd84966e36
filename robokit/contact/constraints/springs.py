"""Springs and dampers between two points, or at a joint.

A spring pulls its ends together with the tension f, which depends on its length l (of a joint: its
coordinate) and on the rate u of that. From the length in the middle of the step and the rate before it,

    f = f(l, u0) + alpha d (u - u0) + extra u,     k = df/dl,  d = df/du
    alpha = 1 / (1 - e^-z) - 1 / z,     extra = k dt max(0, 1 - 1 / R)

It is of second order. z and R are those of the mobility W_ij = J_i H^-1 J_j^T of all springs, row sums of
matrices that are at least dt sqrt(d) W sqrt(d) and dt^2 sqrt(k) W sqrt(k), so that many springs on one body
are stable together, too. What swings slower than once in 2 pi steps, R <= 1, is the leapfrog method, whose
energy stays; beyond, the characteristic polynomial of a step is z^2 - z / R + 1 / R, whose roots go to 0: a
spring comes to rest, however stiff it is. As a constraint:

    u = E (V_b - V_a)     R = 1/(dt (alpha d + extra))     aim = R dt (alpha d u0 - f(l, u0))
    set: impulses within -dt times the bounds of the tension; a cable only pulls

Linear springs have f = preload + k (l - rest) + d u. Others are functions of the user, which a step kernel
of their own has in it; their slopes are differences, since only what is implicit needs them.

Source: the damping, motors.py; the bound by row sums, S. Gershgorin (1931).
Cost: that of a factor of H, and n (n + nv) operations for n springs; nothing without springs.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.articulated import assemble, back_substitute, couple, factor
from robokit.contact.constraints.adding import (
    add_constraint,
    axes_of,
    meeting,
    place_on,
    value,
    vector,
    velocity_between,
)
from robokit.contact.constraints.adding import row as rate_of
from robokit.contact.constraints.motors import NOTHING, end_share
from robokit.contact.fields import SPRING
from robokit.contact.solver import impulses, see
from robokit.contact.vectors import nothing, of_all_forces, put, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import call, cond, for_range, in_precision, rounding
from robokit.spatial.scalars import Scalar, clamp, maximum, sqrt, where

LENGTH, RATE, TENSION, STIFFNESS, DAMPING, LAG = range(6)  # places in ``spring_state``
HUGE = 1e300, 1e37  # bound of an impulse that has none: it may be multiplied by 0


def collect(x: Any) -> None:
    """The constraints of all springs. They come first, so that there is memory for each."""
    if of_all_forces(x):
        cond(x.n_springs > 0, lambda: _collect(x), nothing)


def _collect(x: Any) -> None:
    for_range(x.n_springs, lambda k: _place(x, k))

    def factor_of_H() -> None:
        couple(x)
        once(x, assemble, 0, 0)
        once(x, factor)

    # Robots with loops have the factor of H + J^T J / R from loops.py.
    cond(x.n_loops > 0, nothing, factor_of_H)
    for_range(x.n_springs, lambda k: _give(x, k))


def _place(x: Any, k: Any) -> None:
    """Position of spring k, its length, its rate and its tension."""
    a, b = x.spring_bodies[k, 0], x.spring_bodies[k, 1]
    V = velocity_between(x, a, b)
    l, *E = cond(x.spring_dof[k] < 0, lambda: _between_points(x, k, a, b), lambda: _at_joint(x, k, b))
    line = Motion(Vector3(*E[:3]), Vector3(*E[3:]))
    none = Motion.zero()
    add_constraint(x, SPRING, k, (a, b), [none, none, line], (1.0, 1.0), Vector3.zero(), 0.0)
    u = rate_of(line, V)
    f, stiff, damp = _tension(x, k, l, u)
    write_row(x.spring_state, k, [l, u, f, stiff, damp, 0.0])


def _between_points(x: Any, k: Any, a: Any, b: Any) -> tuple[Scalar, ...]:
    """Length and row of a spring between two points."""
    end = place_on(x, b, vector(x.spring_points, k, 3))
    seats = [vector(x.seat, body, 0) for body in (a, b)]
    along = end - place_on(x, a, vector(x.spring_points, k, 0)) + (seats[1] - seats[0])
    l = sqrt(along.dot(along))
    apart = l > 0.0
    n = along * where(apart, 1.0 / where(apart, l, 1.0), 0.0)
    return l, *(end + (seats[1] - meeting(x, a, b))).cross(n), *n


def _at_joint(x: Any, k: Any, b: Any) -> tuple[Scalar, ...]:
    """Coordinate and row of a spring at a joint with one dof: a rotation if the joint rotates, else a
    translation.
    """
    j = x.spring_dof[k]
    R = axes_of(x, b)
    turn, shift = (R @ vector(x.dof_axis, j, c) for c in (0, 3))
    turns = turn.dot(turn) > 0.0
    E = [where(turns, s, 0.0) for s in turn] + [where(turns, 0.0, s) for s in shift]
    return value(x, j), *E


def _tension(x: Any, k: Any, l: Scalar, u: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Tension of spring k, and its slopes by length and rate, both at least 0."""
    stiffness, damping, rest, preload = (x.spring_numbers[k, c] for c in range(4))
    found = preload + stiffness * (l - rest) + damping * u, stiffness, damping
    h = x.spring_step[k]

    def of_function(f: Any) -> tuple[Scalar, ...]:
        g = h / x.dt[0]
        slope = (f(l + h, u) - f(l - h, u)) / (2.0 * h)
        by_rate = (f(l, u + g) - f(l, u - g)) / (2.0 * g)
        return 0.0 + f(l, u), maximum(slope, 0.0), maximum(by_rate, 0.0)

    for number, f in enumerate(getattr(x, "spring_functions", ())):

        def of_this(f: Any = f) -> tuple[Scalar, ...]:
            return of_function(f)

        def of_others(found: Any = found) -> tuple[Scalar, ...]:
            return found  # type: ignore[no-any-return]

        found = cond(x.spring_law[k] == number, of_this, of_others)
    return found


def _give(x: Any, k: Any) -> None:
    """Compliance and aim of spring k."""
    dt = x.dt[0]
    u, f, stiff, damp = (x.spring_state[k, c] for c in range(1, 5))
    a, b = x.c_bodies[k, 0], x.c_bodies[k, 1]
    for_range(x.n_springs, lambda m: write_row(x.c_g, m, [0.0, 0.0, where(m == k, 1.0, 0.0)]))
    once(x, impulses, x.n_of[0], x.n_of[1])  # there is nothing but springs yet
    once(x, back_substitute, x.Jg)
    for_range(x.nv, lambda j: put(x.d, j, x.Jg[j]))
    once(x, see, x.d, x.c_du)

    def other(m: Any, own: Scalar, R: Scalar, z: Scalar) -> tuple[Scalar, ...]:
        w = abs(x.c_du[m, 2])
        R = R + w * sqrt(stiff * x.spring_state[m, STIFFNESS])
        z = z + w * sqrt(damp * x.spring_state[m, DAMPING])
        return where(m == k, w, own), R, z

    W, R, z = for_range(x.n_springs, other, 0.0, 0.0, 0.0)
    R, z = dt * dt * R, dt * z
    alpha = call(end_share, z)
    stiffer = R > 1.0
    extra = where(stiffer, 1.0 - 1.0 / where(stiffer, R, 1.0), 0.0)
    implicit = alpha * damp + stiff * dt * extra
    # W of one whose length no velocity changes is rounding.
    most = W + where(x.spring_dof[k] < 0, x.body_mobility[a] + x.body_mobility[b], 0.0)
    moves = most > 0.0
    least = where(moves, rounding(NOTHING) / where(moves, most, 1.0), 1.0)
    compliance = 1.0 / (dt * implicit + least)
    low, high = (clamp(dt * x.spring_bounds[k, c], -in_precision(*HUGE), in_precision(*HUGE)) for c in (0, 1))
    x.c_R[k, 0], x.c_R[k, 1], x.c_w[k] = compliance, compliance, W
    x.c_aim[k, 2] = compliance * dt * (alpha * damp * u - f)
    x.c_mu[k], x.c_arm[k] = -high, -low
    x.spring_state[k, LAG] = (1.0 - alpha) * damp


def frame_motion(x: Any, i: Any, A: Motion, B: Motion) -> Motion:
    """How the row of spring i moves: with its ends, or with the body that the joint carries."""
    k = x.c_of[i]
    n, l = vector(x.c_E, i, 15), x.spring_state[k, LENGTH]
    end = place_on(x, x.spring_bodies[k, 1], vector(x.spring_points, k, 3))
    start = end - n * l
    v_a, v_b = A.lin + A.ang.cross(start), B.lin + B.ang.cross(end)
    apart = l > 0.0
    w = n.cross(v_b - v_a) * where(apart, 1.0 / where(apart, l, 1.0), 0.0)
    between = x.spring_dof[k] < 0
    of_ends = Motion(w, v_b - w.cross(end))
    return Motion(
        *(
            Vector3(*(where(between, s, t) for s, t in zip(one, other, strict=True)))
            for one, other in ((of_ends.ang, B.ang), (of_ends.lin, B.lin))
        )
    )


def by_length(x: Any, i: Any) -> tuple[Scalar, Scalar]:
    """How the aim of spring i changes with its length, and with its rate before the step."""
    k, share = x.c_of[i], x.c_R[i, 1] * x.dt[0]
    return -share * x.spring_state[k, STIFFNESS], -share * x.spring_state[k, LAG]
