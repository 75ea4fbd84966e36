"""Laws of forces that act at velocity level: each is (J, R, aim, set), an impulse g as a function of u = J y.

    g = P(p),    p = (w g + aim - u) / (w + R)

P(p) is the admissible impulse nearest to p: for an open contact it is 0, a tangential impulse is shortened to
mu N, and a bounded impulse is cut to its bounds. Where g = P(p) holds, g = (aim - u) / R as far as that is
admissible, whatever w > 0 is. w only decides which of two states a force is nearer to before this holds, and
has the size of its mobility. This is Coulomb's law: P of a contact shortens by the normal impulse N of the
same contact.

In each state the law is linear except for the rotation of a direction. Its tangent at p, with x = aim - u':

    g' = G x + const         open: 0         held: x / R         bound: const
    slides along t = p_t / |p_t|, with s across it:
        g_n' = x_n / R_n     g_t' = mu g_n' t + k s s.x_t     k = f / (R_t + (1 - f) w),  f = mu N / |p_t|

Source: P. Alart, A. Curnier, A mixed formulation for frictional contact problems prone to Newton like
solution methods, Computer Methods in Applied Mechanics and Engineering 92 (1991); R of all forces: A. Castro,
F. Permenter, X. Han, An unconstrained convex formulation of compliant contact, IEEE Transactions on Robotics
39 (2023).
"""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.fields import FRICTION, LINE, SPIN
from robokit.spatial.control_flow import cond, smallest
from robokit.spatial.scalars import clamp, maximum, minimum, sqrt, where


def tried(g: Any, u: Any, aim: Any, w: Any, R: Any) -> Any:
    """The trial impulse p of one component; g: the impulse, u: the velocity."""
    return (w * g + aim - u) / (w + R)


def rubs(p: Any, mu: Any) -> tuple[Any, Any, Any]:
    """P of a contact with friction: its normal impulse N, the fraction of p_t that it keeps, and |p_t|."""
    size, N = sqrt(p[0] * p[0] + p[1] * p[1]), maximum(0.0, p[2])
    return N, minimum(1.0, mu * N / (size + smallest())), size


def spins(p: Any, rolling: Any, torsion: Any, N: Any) -> tuple[Any, Any, Any]:
    """P of torsional and rolling friction: the impulse about n, the fraction of p_t that it keeps, and |p_t|.

    ``p``: about t1, t2, n [N m s]; ``rolling``, ``torsion``: lever arms [m]; ``N``: normal impulse of its
    contact [N s].
    """
    size = sqrt(p[0] * p[0] + p[1] * p[1])
    most, bound = maximum(0.0, rolling * N), maximum(0.0, torsion * N)
    return clamp(p[2], -bound, bound), minimum(1.0, most / (size + smallest())), size


def nearest(kind: Any, p: Any, mu: Any, arm: Any, N: Any) -> tuple[Any, Any, Any]:
    """P(p) of a constraint: the admissible impulse nearest to p.

    ``kind``: FRICTION, LINE, SPIN or SPRING; ``p``: an impulse (3); ``mu``, ``arm``, ``N``: the coefficient
    of friction; for SPIN the lever arms of rolling and torsion, and N of its contact; for SPRING the bounds
    of its third row, the only one.
    """
    normal, share = cond(
        kind == FRICTION,
        lambda: rubs(p, mu)[:2],
        lambda: cond(
            kind == LINE,
            lambda: (p[2], 1.0),
            lambda: cond(kind == SPIN, lambda: spins(p, mu, arm, N)[:2], lambda: (clamp(p[2], mu, arm), 0.0)),
        ),
    )
    return p[0] * share, p[1] * share, normal


Tangent = tuple[tuple[Any, ...], tuple[Any, ...]]
"""G: 11, 12, 22, 13, 23, 33 of its symmetric part, then w x of the skew one, w along t1 and t2; const (3)."""


def tangent(kind: Any, p: Any, R: Any, w: Any, mu: Any, arm: Any, N: Any) -> Tangent:
    """How a constraint's impulse follows its velocity near p: g' = G (aim - u') + const.

    Args:
        kind: FRICTION, LINE, SPIN or SPRING.
        p: see above.
        R: compliance of tangents and normal.
        w: mobility.
        mu, arm, N: as in :func:`nearest`.
    """
    stiff_t, stiff_n = 1.0 / R[0], 1.0 / R[1]

    def held() -> Tangent:
        return (stiff_t, 0.0, stiff_t, 0.0, 0.0, stiff_n, 0.0, 0.0), (0.0, 0.0, 0.0)

    def rubbing() -> Tangent:
        normal, share, size = rubs(p, mu)
        a, b, across = _direction(p, share, size, R[0], w)
        half = 0.5 * (mu * stiff_n)  # of what N adds, in the symmetric part and in the skew one
        sliding = (
            across * b * b,
            -across * a * b,
            across * a * a,
            half * a,
            half * b,
            stiff_n,
            -half * b,
            half * a,
        )
        sticks = size < mu * normal
        chosen = (where(sticks, k, m) for k, m in zip(held()[0], sliding, strict=True))
        return tuple(where(normal > 0.0, k, 0.0) for k in chosen), (0.0, 0.0, 0.0)

    def spinning() -> Tangent:
        normal, share, size = spins(p, mu, arm, N)
        a, b, across = _direction(p, share, size, R[0], w)
        rolls, turns = share < 1.0, abs(p[2]) > abs(normal)
        G = (
            where(rolls, across * b * b, stiff_t),
            where(rolls, -across * a * b, 0.0),
            where(rolls, across * a * a, stiff_t),
            0.0,
            0.0,
            where(turns, 0.0, stiff_n),
            0.0,
            0.0,
        )
        most = where(rolls, share * size, 0.0)
        return G, (most * a, most * b, where(turns, normal, 0.0))

    def pulling() -> Tangent:
        inside = (mu < p[2]) & (p[2] < arm)
        G = (0.0, 0.0, 0.0, 0.0, 0.0, where(inside, stiff_n, 0.0), 0.0, 0.0)
        return G, (0.0, 0.0, where(inside, 0.0, clamp(p[2], mu, arm)))

    return cond(
        kind == FRICTION,
        rubbing,
        lambda: cond(kind == LINE, held, lambda: cond(kind == SPIN, spinning, pulling)),
    )


def growth(kind: Any, p: Any, acts: Any, rates: Any, N: Any) -> tuple[Any, Any, Any]:
    """Change of P(p) as mu and arm change, for contacts that slide or turn at the bound of their friction.

    ``kind``: FRICTION, LINE, SPIN or SPRING; ``p``, ``N``: as in :func:`nearest`; ``acts``: mu and arm;
    ``rates``: their changes.
    """
    spins = kind == SPIN
    size, load = sqrt(p[0] * p[0] + p[1] * p[1]), maximum(0.0, where(spins, N, p[2]))
    slides = ((kind == FRICTION) | spins) & (size >= acts[0] * load)
    turns = spins & (abs(p[2]) >= acts[1] * load)
    rate = where(slides, rates[0] * load / (size + smallest()), 0.0)
    return rate * p[0], rate * p[1], where(turns, where(p[2] < 0.0, -rates[1], rates[1]) * load, 0.0)


def _direction(p: Any, share: Any, size: Any, R_t: Any, w: Any) -> tuple[Any, Any, Any]:
    """Direction of p_t, and k: how an impulse of constant size rotates with it."""
    along = 1.0 / (size + smallest())
    return p[0] * along, p[1] * along, share / (R_t + (1.0 - share) * w)


def row_nearest(p: Any, low: Any, high: Any, forward: Any, back: Any) -> Any:
    """P of a row of one coordinate: within its bounds, and not faster than its largest speed.

    ``p``: see above; ``low``, ``high``: bounds of the impulse; ``forward``, ``back``: p with an aim of its
    largest speed, and of minus that, and the compliance there; infinite where there is none.
    """
    return clamp(clamp(p, low, high), minimum(0.0, back), maximum(0.0, forward))


def row_tangent(
    p: Any, R: Any, aim: Any, low: Any, high: Any, speed: Any, speed_R: Any, forward: Any, back: Any
) -> tuple[Any, Any]:
    """g' = const - G u' of a row: const and G.

    Args:
        p, low, high, forward, back: as in :func:`row_nearest`.
        R: compliance.
        aim: velocity aimed at.
        speed: at which it pushes no more, infinite for none.
        speed_R: compliance there.
    """
    within = clamp(p, low, high)
    inside = (low < p) & (p < high)
    const, G = where(inside, aim / R, within), where(inside, 1.0 / R, 0.0)

    def limited() -> tuple[Any, Any]:
        fast, slow = within > maximum(0.0, forward), within < minimum(0.0, back)
        sign = where(fast, 1.0, -1.0)
        gives = where(fast, forward > 0.0, back < 0.0)
        over = fast | slow
        found = where(gives, sign * speed / speed_R, 0.0), where(gives, 1.0 / speed_R, 0.0)
        return where(over, found[0], const), where(over, found[1], G)

    return cond(speed < math.inf, limited, lambda: (const, G))


def slip(u: Any, aim: Any) -> tuple[Any, Any, Any]:
    """Velocity of slip relative to the aim of the tangents, and its size."""
    x, y = u[0] - aim[0], u[1] - aim[1]
    return x, y, sqrt(x * x + y * y)
