"""Laws of forces that act at velocity level: each is (J, R, aim, set), an impulse g of the velocity u = J y.

    g(u) = the least of  1/2 g.R g + g.(u - aim)  over the set of admissible impulses

It is the admissible impulse nearest to -(u - aim) / R, in the norm of the compliance R, and g = -dl/du of a
convex l. So G = -dg/du is symmetric and positive semidefinite, and the cost of a step has one minimum.

Newton's method with these slopes leaps where they change at once: a joint that dry friction stops slides the
other way in each iteration, and what slides in a corner is as stiff as it is pressed by mistake. The impulse
that the last iteration has expected, g - G J d, knows better, and G may be made of it: still symmetric and
positive semidefinite, and the slope where the impulse is as expected.

Source: A. Castro, F. Permenter, X. Han, An unconstrained convex formulation of compliant contact, IEEE
Transactions on Robotics 39 (2023); the shift: G. De Saxce, Z. Feng, The bipotential method, Mathematical and
Computer Modelling 28 (1998); the expected impulse: T. Chan, G. Golub, P. Mulet, A nonlinear primal-dual
method for total variation-based image restoration, SIAM Journal on Scientific Computing 20 (1999).
"""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.fields import FRICTION, LINE, SPIN, SPRING
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import maximum, minimum, sqrt, where

LEAST = 1e-300
"""Added to lengths that are divided by, which may be 0."""

Law = tuple[Any, Any]
"""The impulse g (3), and G = -dg/du (6): 11, 12, 22, 13, 23, 33."""


def slip(u: Any, aim: Any) -> tuple[Any, Any, Any]:
    """Velocity against the tangents' aim, and its size."""
    x, y = u[0] - aim[0], u[1] - aim[1]
    return x, y, sqrt(x * x + y * y)


def shift(u: Any, R_t: Any, R_n: Any, aim: Any, mu: Any) -> Any:
    """De Saxce's shift of the normal velocity: mu times the plastic slip, 0 where the contact sticks.

    s = mu max(0, |x| - mu R_t N),  N = max(0, -(u_n - aim_n) / R_n)

    With the s of the solution the law is Coulomb's exactly, |g_t| <= mu N. With any s >= 0 it is admissible,
    and the power g.(u - aim) is not positive.
    """
    N = maximum(0.0, -(u[2] - aim[2]) / R_n)
    return mu * maximum(0.0, slip(u, aim)[2] - mu * R_t * N)


def by_shift(u: Any, R_t: Any, R_n: Any, aim: Any, mu: Any) -> tuple[Any, Any, Any]:
    """How the shift changes with u; 0 where the contact sticks."""
    x, y, size = slip(u, aim)
    N = (aim[2] - u[2]) / R_n
    slides = size > mu * R_t * maximum(0.0, N)
    share = where(slides, mu / (size + LEAST), 0.0)
    return share * x, share * y, where(slides & (N > 0.0), mu * mu * R_t / R_n, 0.0)


def of_coulomb(G: Any, by_u: Any) -> tuple[Any, ...]:
    """Slopes of Coulomb's law itself, G + G n ds/du: the six of the symmetric part; w of the skew one, w x.

    Args:
        G: slopes with the shift held.
        by_u: ds/du.
    """
    p, q, r, s, t, w = G
    x, y, n = by_u
    even = p + s * x, q + 0.5 * (s * y + t * x), r + t * y
    return (
        *even,
        s + 0.5 * (s * n + w * x),
        t + 0.5 * (t * n + w * y),
        w + w * n,
        0.5 * (w * y - t * n),
        0.5 * (s * n - w * x),
    )


def friction(u: Any, R_t: Any, R_n: Any, aim: Any, mu: Any, s: Any, expected: Any = None) -> Law:
    """A contact with friction: the impulse in the cone |g_t| <= mu g_n.

    Args:
        u: velocity along t1, t2, n [m/s].
        R_t, R_n: compliance of the tangents and of the normal [1/kg].
        aim: velocity at which it does not act [m/s].
        mu: coefficient of friction.
        s: the shift [m/s].
        expected: the impulse that the last iteration has expected here; without it, G is the slope.
    """
    x, y, size = slip(u, aim)
    stiff_t, stiff_n = 1.0 / R_t, 1.0 / R_n
    n = -(u[2] + s - aim[2]) * stiff_n
    r, h = size * stiff_t, mu * R_t * stiff_n
    # Where mu is 0 nothing sticks, not even what does not slip.
    sticks, leaves = r < mu * n, n <= -h * r
    q = 1.0 / (1.0 + mu * h)
    along = 1.0 / (size + LEAST)
    a, b = -x * along, -y * along
    N = (n + h * r) * q
    c = h * q * stiff_t
    slides = (mu * N * a, mu * N * b, N)
    xx, xy, yy = turning(along, a, b, mu * N, expected, mu)
    slopes = (
        mu * c * a * a + xx,
        mu * c * a * b + xy,
        mu * c * b * b + yy,
        c * a,
        c * b,
        q * stiff_n,
    )
    stuck, stuck_slopes = (-x * stiff_t, -y * stiff_t, n), (stiff_t, 0.0, stiff_t, 0.0, 0.0, stiff_n)

    def chosen(one: Any, other: Any) -> tuple[Any, ...]:
        return tuple(where(leaves, 0.0, where(sticks, k, m)) for k, m in zip(one, other, strict=True))

    return chosen(stuck, slides), chosen(stuck_slopes, slopes)


def turning(along: Any, a: Any, b: Any, bound: Any, expected: Any, mu: Any) -> tuple[Any, Any, Any]:
    """Slopes of friction as its direction t = (a, b) turns: bound / |x| (1 - t t^T), along = 1 / |x|.

    With an expected impulse f, F along the normal: (mu F - sym(f t^T)) / |x|, f shortened to mu F.
    """
    f, x, y = bound * along, a, b
    if expected is not None:
        most, size = mu * expected[2], sqrt(expected[0] * expected[0] + expected[1] * expected[1])
        known = most > 0.0
        share = 1.0 / where(known, maximum(size, most), 1.0)
        f = where(known, most * along, f)
        x, y = (where(known, e * share, t) for e, t in ((expected[0], a), (expected[1], b)))
    return f * (1.0 - a * x), -0.5 * f * (a * y + b * x), f * (1.0 - b * y)


def line(u: Any, R_t: Any, R_n: Any, aim: Any) -> Law:
    """Three rows that hold both ways: g = -(u - aim) / R; a row of infinite R is free."""
    stiff = 1.0 / R_t, 1.0 / R_t, 1.0 / R_n
    g = tuple(-(v - w) * k for v, w, k in zip(u, aim, stiff, strict=True))
    return g, (stiff[0], 0.0, stiff[1], 0.0, 0.0, stiff[2])


def spring(u: Any, R_t: Any, R_n: Any, aim: Any, low: Any, high: Any) -> Law:
    """The third row alone, its impulse within bounds."""
    stiff = 1.0 / R_n
    free = -(u[2] - aim[2]) * stiff
    g = maximum(low, minimum(high, free))
    return (0.0, 0.0, g), (0.0, 0.0, 0.0, 0.0, 0.0, where((low < free) & (free < high), stiff, 0.0))


def spin(u: Any, R_t: Any, R_n: Any, aim: Any, rolling: Any, torsion: Any, N: Any) -> Law:
    """Friction of a patch against rolling and turning: a disc rolling N, and an interval torsion N.

    Args:
        u: angular velocity along t1, t2, n [rad/s].
        R_t, R_n: compliance [1/(kg m^2)].
        aim: angular velocity at which it does not act [rad/s].
        rolling, torsion: arms [m].
        N: normal impulse of its contact, frozen with the shift [N s].
    """
    x, y, size = slip(u, aim)
    stiff_t, stiff_n = 1.0 / R_t, 1.0 / R_n
    most, r = rolling * N, size * stiff_t
    along = 1.0 / (size + LEAST)
    a, b = x * along, y * along
    f = minimum(stiff_t, most * along)  # both sides of the disc's rim
    held = where(r < most, stiff_t, 0.0)
    bound, free = torsion * N, -(u[2] - aim[2]) * stiff_n
    g = -f * x, -f * y, maximum(-bound, minimum(bound, free))
    around = where(r < most, 0.0, f)
    return g, (
        held + around * b * b,
        -around * a * b,
        held + around * a * a,
        0.0,
        0.0,
        where(abs(free) < bound, stiff_n, 0.0),
    )


def law(
    kind: Any, u: Any, R: tuple[Any, Any], aim: Any, mu: Any, arm: Any, s: Any, expected: Any = None
) -> Law:
    """The impulse of a constraint and its slopes.

    Args:
        kind: FRICTION, LINE, SPIN or SPRING.
        u: velocity (3).
        R: compliance of tangents and normal.
        aim: velocity aimed at (3).
        mu, arm, s: coefficient of friction and shift; of SPIN the arms of rolling and torsion, and N; of
            SPRING the bounds of its impulse.
        expected: of FRICTION, see there.
    """
    return cond(
        kind == FRICTION,
        lambda: friction(u, *R, aim, mu, s, expected),
        lambda: cond(
            kind == LINE,
            lambda: line(u, *R, aim),
            lambda: cond(
                kind == SPIN,
                lambda: spin(u, *R, aim, mu, arm, s),
                lambda: spring(u, *R, aim, mu, arm),
            ),
        ),
    )


def project(kind: Any, g: Any, mu: Any, arm: Any, s: Any) -> tuple[Any, Any, Any]:
    """The admissible impulse with the same normal part, or none where that pulls.

    Args:
        kind: FRICTION, LINE, SPIN or SPRING.
        g: an impulse (3).
        mu, arm, s: as of :func:`law`.
    """
    bound = where(kind == SPIN, arm * s, where(kind == SPRING, arm, math.inf))
    least = where(kind == FRICTION, 0.0, where(kind == SPRING, mu, -bound))
    normal = maximum(least, minimum(bound, g[2]))
    both_ways = (kind == LINE) | (kind == SPRING)
    most = where(kind == FRICTION, mu * normal, where(both_ways, math.inf, mu * s))
    size = sqrt(g[0] * g[0] + g[1] * g[1])
    share = where(size <= most, 1.0, most / (size + LEAST))
    return g[0] * share, g[1] * share, normal


def row(
    u: Any, R: Any, aim: Any, low: Any, high: Any, speed: Any, speed_R: Any, expected: Any = None
) -> tuple[Any, Any]:
    """The impulse of a row of one coordinate and its slope -dg/du, or that of a chord.

    g = -(u - aim) / R within [low, high]; and no more than (speed - |u|) / speed_R in the direction in which
    it moves. Both fall with u, so their least does.

    At a bound the slope is 0. There the chord from u to where the law gives the impulse that was expected has
    it, too, if that is the bound.

    Args:
        u: velocity [rad/s | m/s].
        R: compliance.
        aim: velocity aimed at.
        low, high: bounds of the impulse.
        speed: at which it pushes no more, infinite for none.
        speed_R: compliance there.
        expected: the impulse that the last iteration has expected here; without it, the slope.
    """
    stiff = 1.0 / R
    free = (aim - u) * stiff
    g = maximum(low, minimum(high, free))
    inside = (low < free) & (free < high)

    def chord() -> Any:
        known = maximum(low, minimum(high, expected))
        across = R * (free - known)
        apart = abs(across) > 0.0
        return where(apart, (g - known) / where(apart, across, 1.0), 0.0)

    def limited() -> tuple[Any, Any]:
        sign = where(g < 0.0, -1.0, 1.0)
        room = maximum(0.0, speed - sign * u)
        # room / speed_R < |g|, for any speed
        slower = room < speed_R * abs(g)
        slope = where(room > 0.0, 1.0 / speed_R, 0.0)
        return where(slower, sign * (room / speed_R), g), where(slower, slope, G)

    G = where(inside, stiff, 0.0) if expected is None else cond(inside, lambda: stiff, chord)
    return cond(speed < math.inf, limited, lambda: (g, G))
