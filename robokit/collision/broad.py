"""Pairs of shapes that may touch within some steps: the others are not looked at in each.

The ball around each shape is made larger by a margin, and the pairs whose larger balls overlap are found by a
sweep along the axis along which the shapes are spread most. They serve as long as no ball has left its larger
one, so that when they were found makes no difference to any contact. In the coordinates of a step, which
move with body 1, the balls of a robot that falls hardly move.

Source: L. Verlet, Computer experiments on classical fluids, 1967 (margins); D. Baraff, Dynamic simulation of
non-penetrating rigid bodies, 1992 (sort and sweep).
Cost: 3 ns a shape in each step, and each 10 to 100 steps 20 ns for each pair of balls side by side.
"""

from __future__ import annotations

from typing import Any

from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range, rounding, while_loop, zeros
from robokit.spatial.scalars import maximum, minimum, sqrt, where

MARGIN = 0.25
"""Of the mean radius of the bodies' balls: how much larger all are taken."""

AHEAD = 4.0
"""Of how far a shape may move in the step, likewise. Speeds that grow do not end it at once."""

GUARD = 1e-9
"""Of a larger ball: beyond rounding."""


def find_candidates(x: Any, balls: Any) -> None:
    """Bring the candidates up to date.

    Args:
        x: with SHAPES, PAIRS and CANDIDATES.
        balls: a row a shape, of which the first five count: the centre, the radius and how far it may move
            in the step, and this alone [m].
    """

    def left(s: Any, found: Any) -> Any:
        moved = _centre(balls, s) - _centre(x.ball_then, s)
        stays = sqrt(moved.dot(moved)) + balls[s, 4] <= x.ball_then[s, 3]
        return where(stays | (balls[s, 3] >= float("inf")), found, 1)

    stale = for_range(x.n_shapes, left, where(x.candidates[1] > 0, 0, 1))
    cond(stale > 0, lambda: _find(x, balls), lambda: None)


def _find(x: Any, balls: Any) -> None:
    known = 1 * x.candidates[1]
    cond(known > 0, lambda: None, lambda: for_range(x.n_shapes, lambda s: _put(x.sweep, s, s)))
    x.candidates[1] = 0
    ends = zeros(x.n_shapes, 3)  # of the larger ball along the axis, and its radius
    axis, size = _widest(x, balls), _mean_radius(x)

    def enlarge(s: Any) -> None:
        c, r = _centre(balls, s), balls[s, 3] - balls[s, 4]
        margin = where(r < float("inf"), MARGIN * size + AHEAD * balls[s, 4], 0.0)
        for k, number in enumerate((*c, margin)):
            x.ball_then[s, k] = number
        large = (r + margin) * (1.0 + rounding(GUARD, 0.5))
        at = where(axis == 0, c.x, where(axis == 1, c.y, c.z))
        for k, number in enumerate((at - large, at + large, large)):
            ends[s, k] = number

    for_range(x.n_shapes, enlarge)
    for_range(x.n_shapes, lambda t: _sort_in(x.sweep, ends, t))
    may_touch = zeros(x.n_pairs, kind="integer")

    def from_here(t: Any) -> None:
        s = x.sweep[t]

        def beside(u: Any) -> Any:
            o = x.sweep[u]
            d, reach = _centre(balls, o) - _centre(balls, s), ends[s, 2] + ends[o, 2]
            near = (d.dot(d) < reach * reach) & (x.shape_body[s] != x.shape_body[o])
            cond(near, lambda: _mark(x, s, o, may_touch), lambda: None)
            return u + 1

        def overlaps(u: Any) -> Any:
            o = x.sweep[minimum(u, x.n_shapes - 1)]
            return (u < x.n_shapes) & (ends[o, 0] <= ends[s, 1])

        while_loop(overlaps, beside, t + 1)

    for_range(x.n_shapes, from_here)

    def keep(k: Any, n: Any) -> Any:
        x.candidate[n] = k
        x.least_gap[k] = where(may_touch[k] * known > 0, x.least_gap[k], 0.0)
        return n + may_touch[k]

    x.candidates[0] = for_range(x.n_pairs, keep, 0)
    x.candidates[1] = 1


def _widest(x: Any, balls: Any) -> Any:
    """Number of the axis along which the centres of balls are spread most."""

    def spread(s: Any, *so_far: Any) -> Any:
        counts = balls[s, 3] < float("inf")
        low = [where(counts, minimum(a, balls[s, k]), a) for k, a in enumerate(so_far[:3])]
        return *low, *(where(counts, maximum(a, balls[s, k]), a) for k, a in enumerate(so_far[3:]))

    far = float("inf")
    low_x, low_y, low_z, *high = for_range(x.n_shapes, spread, far, far, far, -far, -far, -far)
    u, v, w = (b - a for a, b in zip((low_x, low_y, low_z), high, strict=True))
    return where((u >= v) & (u >= w), 0, where(v >= w, 1, 2))


def _mean_radius(x: Any) -> Any:
    """Of the balls around shapes that are not the world's."""

    def add(s: Any, total: Any, count: Any) -> Any:
        counts = (x.shape_body[s] > 0) & (x.shape_bound[s] < float("inf"))
        return where(counts, total + x.shape_bound[s], total), where(counts, count + 1.0, count)

    total, count = for_range(x.n_shapes, add, 0.0, 0.0)
    return total / maximum(count, 1.0)


def _sort_in(order: Any, ends: Any, t: Any) -> None:
    """Put entry t among those before it: few moves, where the order is nearly that of the last time."""
    s = order[t]

    def is_lower(u: Any) -> Any:
        return (u > 0) & (ends[s, 0] < ends[order[maximum(u - 1, 0)], 0])

    def move(u: Any) -> Any:
        order[u] = order[u - 1]
        return u - 1

    order[while_loop(is_lower, move, t)] = s


def _mark(x: Any, s: Any, o: Any, may_touch: Any) -> None:
    """Mark the pair of two shapes, if it is one."""
    a, b = minimum(s, o), maximum(s, o)
    first, count = x.shape_partners[a, 0], x.shape_partners[a, 1]

    def halve(low: Any, high: Any) -> Any:
        middle = (low + high) // 2
        below = x.partners[middle, 0] < b
        return where(below, middle + 1, low), where(below, high, middle)

    at, _ = while_loop(lambda low, high: low < high, halve, first, first + count)

    def found() -> None:
        cond(x.partners[at, 0] == b, lambda: _put(may_touch, x.partners[at, 1], 1), lambda: None)

    cond(at < first + count, found, lambda: None)


def _centre(array: Any, s: Any) -> Vector3:
    return Vector3(array[s, 0], array[s, 1], array[s, 2])


def _put(array: Any, k: Any, value: Any) -> None:
    array[k] = value
