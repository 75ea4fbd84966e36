"""Normal and nearest points of two cores of which one is round, to the last digits.

GJK and EPA stop where the distance or depth is known to 1e-14 or 1e-10 of the size, and know the normal to
the root of this. What they do know is which features touch. Of a pair of these, a corner, a rim or a tip of
each core, the difference of its points is

    w(n) = a(n) - b(n)        where the point of a rim turns with n, and a corner stays

and the normal n is found where n . w is the same for all pairs, and a sum of all w, with weights that are not
negative, is parallel to n. Newton's method finds it. A pair with a negative weight does not touch, and goes.
A round end is tried first: its normal is the axis. Of SMOOTH shapes it differentiates the support function.

Source: R. Schneider, Convex Bodies, 2014, sections 1.7 and 2.5 (derivatives of support functions).
Cost: 0.1 us a turn, of which there are two to four.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robokit.collision.fields import CONE, CYLINDER, POLYTOPE, ROW, SMOOTH
from robokit.collision.support import of_kinds, tangents, unit, vector
from robokit.engine.loops.dual import jvp
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.control_flow import cond, for_range, rounding, smallest, solution, while_loop, zeros
from robokit.spatial.scalars import added, minimum, sqrt, where
from robokit.spatial.vectors import chosen

TURNS = 8  # of Newton's method at most: two pairs may go, and each other turn squares the error
LAST = 1e-14  # of the coordinates, and as an angle [rad]: what is less is rounding
LINE = 1e-8  # sine below which the third pair is on the line through the others, as of cylinders side by side
LOWER, UPPER = -2, -3  # numbers of the features of round shapes: the rim or tip below and above their middle

STOPS, GOES, FOUND = range(3)


def feature(x: Any, s: Any, p: Vector3) -> Any:
    """Number of the feature of round shape s on which a point of it lies; a SMOOTH shape is one feature."""
    return where((p.z < 0.0) & (x.shape_kind[s] < SMOOTH), LOWER, UPPER)


def refine(
    x: Any,
    shapes: tuple[Any, Any],
    place: Callable[[], tuple[Matrix3, Vector3]],
    known: Any,
    out: Any,
    vertex: Callable[[Any, Any], Any],
    apart: Any,
) -> None:
    """Bring the results of gjk.nearest_sets to the last digits.

    Args:
        x: with SHAPES.
        shapes: a and b.
        place: rotation and origin of b in the axes of a.
        known: 6 whole numbers: features of a and b in turn, of the corners of the last simplex; -1 for none.
        out: 10 numbers: the results.
        vertex: as of gjk.nearest_sets.
        apart: whether the cores are apart.
    """
    row, points = zeros(ROW), [Vector3(*(out[first + c] for c in range(3))) for first in (4, 7)]
    beyond = rounding(LAST) * (abs(out[0]) + added(sqrt(p.dot(p)) for p in points))

    def take(n: Vector3, depth: Any, a: Vector3, b: Vector3) -> Any:
        """1 if this is it: cores that are apart have no other, of those that overlap it is not deeper."""

        def write() -> Any:
            for k, number in enumerate((-depth, *n, *a, *b)):
                out[k] = number
            return 1

        return cond((depth <= beyond - out[0]) | (apart & (depth <= 0.0)), write, lambda: 0)

    def on_end(s: Any, of_b: bool) -> Any:
        """A round end of a shape, if the other one's point that is farthest along its normal lies on it."""
        Q, r = place()
        n = Vector3(out[1], out[2], out[3])
        z = (-Q.transpose_apply(n) if of_b else n).z
        up = Vector3(0.0, 0.0, where(z < 0.0, -1.0, 1.0))
        n = -(Q @ up) if of_b else up
        depth = vertex(tuple(n), row)
        a, b = (Vector3(*(row[first + c] for c in range(3))) for first in (3, 6))
        p, radius = Q.transpose_apply(a - r) if of_b else b, x.shape_size[s, 0]
        is_end = (x.shape_kind[s] == CYLINDER) | ((x.shape_kind[s] == CONE) & (z < 0.0))
        ends = (a, a - n * depth) if of_b else (b + n * depth, b)
        inside = p.x * p.x + p.y * p.y <= radius * radius
        return cond(is_end & inside, lambda: take(n, depth, *ends), lambda: 0)

    def on_rims() -> None:
        features, count = zeros(3, 2, kind="integer"), zeros(1, kind="integer")
        pairs = _Pairs(x, shapes, place, features, count, zeros(3, 7))
        for_range(3, lambda k: pairs.enter(known[2 * k], known[2 * k + 1]))

        def turn(k: Any, _: Any, *numbers: Any) -> Any:
            return k + 1, *_turn(pairs, Vector3(*numbers), beyond)

        n = Vector3(out[1], out[2], out[3])
        _, goes, *numbers = while_loop(lambda k, goes, *_: (goes == GOES) & (k < TURNS), turn, 0, GOES, *n)
        n = Vector3(*numbers)
        pairs.look(n)
        a, b = pairs.middle()
        depth = vertex(tuple(n), row)
        farthest = depth <= n.dot(a - b) + beyond
        cond((goes == FOUND) & farthest, lambda: take(n, depth, a, b), lambda: 0)

    taken = on_end(shapes[0], False)
    taken = cond(taken > 0, lambda: 1, lambda: on_end(shapes[1], True))
    cond(taken > 0, lambda: None, on_rims)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of features, their points and weights."""

    x: Any
    shapes: tuple[Any, Any]
    place: Callable[[], tuple[Matrix3, Vector3]]
    features: Any
    count: Any
    rows: Any
    """Points of a and b, and the weight."""

    def enter(self, i: Any, j: Any) -> None:
        """Add a pair, unless it is there."""
        m = self.count[0]

        def same(k: Any, found: Any) -> Any:
            return where((self.features[k, 0] == i) & (self.features[k, 1] == j), 1, found)

        def add() -> None:
            self.features[m, 0], self.features[m, 1] = i, j
            self.count[0] = m + 1

        cond((i != -1) & (j != -1) & (for_range(m, same, 0) == 0), add, lambda: None)

    def leave(self, k: Any) -> None:
        """Take pair k away."""
        last = self.count[0] - 1
        for c in range(2):
            self.features[k, c] = self.features[last, c]
        self.count[0] = last

    def look(self, n: Vector3) -> None:
        """The points of all where the normal is n."""

        def pair(k: Any) -> None:
            Q, r = self.place()
            a = _point(self.x, self.shapes[0], self.features[k, 0], n)
            b = Q @ _point(self.x, self.shapes[1], self.features[k, 1], -Q.transpose_apply(n)) + r
            for c, number in enumerate((*a, *b)):
                self.rows[k, c] = number

        for_range(self.count[0], pair)

    def difference(self, k: int) -> Vector3:
        """Of pair k of 3."""
        return Vector3(*(self.rows[k, c] - self.rows[k, 3 + c] for c in range(3)))

    def weigh(self, weights: tuple[Any, ...]) -> None:
        """Write the weights."""
        for k, weight in enumerate(weights):
            self.rows[k, 6] = weight

    def middle(self) -> tuple[Vector3, Vector3]:
        """The points of a and b: weighted sums."""

        def add(k: Any, *so_far: Any) -> Any:
            return tuple(p + self.rows[k, 6] * self.rows[k, c] for c, p in enumerate(so_far))

        found = for_range(self.count[0], add, *(0.0,) * 6)
        return Vector3(*found[:3]), Vector3(*found[3:])

    def turned(self, n: Vector3, t: Vector3) -> Vector3:
        """How the weighted sum of all differences moves as n turns along t."""

        def add(k: Any, *so_far: Any) -> Any:
            Q, _ = self.place()
            a = _turned(self.x, self.shapes[0], self.features[k, 0], n, t)
            e, u = -Q.transpose_apply(n), Q.transpose_apply(t)
            b = Q @ _turned(self.x, self.shapes[1], self.features[k, 1], e, u)
            return tuple(Vector3(*so_far) + (a + b) * self.rows[k, 6])

        return Vector3(*for_range(self.count[0], add, 0.0, 0.0, 0.0))


def _turn(pairs: _Pairs, n: Vector3, beyond: Any) -> tuple[Any, ...]:
    """One turn of Newton's method: whether there is another, and the normal."""
    pairs.look(n)
    m = pairs.count[0]
    w = pairs.difference(0)
    first, second = (chosen(m > k, pairs.difference(k) - w, Vector3.zero()) for k in (1, 2))
    t1 = chosen(m > 1, unit(first - n * n.dot(first)), tangents(n)[0])
    t2 = n.cross(t1)
    beside = second.dot(t2)
    is_third = beside * beside > rounding(LINE, 0.5) ** 2 * second.dot(second)
    across = where(m > 1, first.dot(t1), 1.0), where(is_third, beside, 1.0)
    # Weights of the second and third pair with which nothing is left of the sum along t1 and t2.
    of_third = where(is_third, -w.dot(t2) / across[1], 0.0)
    of_second = where(m > 1, -(w + second * of_third).dot(t1) / across[0], 0.0)
    weights = 1.0 - of_second - of_third, of_second, of_third
    least = minimum(weights[0], minimum(weights[1], weights[2]))
    pairs.weigh(weights)

    def go() -> Any:
        pairs.leave(where(weights[2] == least, 2, where(weights[1] == least, 1, 0)))
        return GOES, *n

    def step() -> Any:
        sum_ = w + first * of_second + second * of_third
        height = n.dot(sum_)
        d1, d2 = pairs.turned(n, t1), pairs.turned(n, t2)
        m11, m12, m22 = d1.dot(t1) - height, d2.dot(t1), d2.dot(t2) - height
        # Along t1, t2: two heights that are to be equal, or the rest of the sum.
        u = where(m > 1, -n.dot(first) / across[0], 0.0)
        free = where(m > 1, m22, m22 - m12 * m12 / m11)
        rest = where(m > 1, sum_.dot(t2) + m12 * u, sum_.dot(t2) - m12 / m11 * sum_.dot(t1))
        # Around a ring of normals that are as deep as each other both are rounding.
        turn = solution(lambda turn: free * turn + rest, where(abs(rest) <= beyond, 0.0, -rest / free))
        v = where(is_third, -(n.dot(second) + second.dot(t1) * u) / across[1], turn)
        u = where(m > 1, u, -(sum_.dot(t1) + m12 * v) / m11)
        least_there = is_third | ((free > -beyond) & ((m > 1) | (m11 > 0.0)))
        angle = u * u + v * v
        there = angle <= rounding(LAST) * rounding(LAST)
        goes = where(least_there & (angle < 1.0), where(there, FOUND, GOES), STOPS)
        return goes, *unit(n + t1 * u + t2 * v)

    return cond(m == 0, lambda: (STOPS, *n), lambda: cond((least < 0.0) & (m > 1), go, step))


# ---- features ------------------------------------------------------------------------------------------


def _point(x: Any, s: Any, i: Any, d: Vector3) -> Vector3:
    """The point of feature i of shape s that is farthest along d.

    ``x``: with SHAPES; ``s``: number of the shape; ``i``: a row of ``corners``, LOWER or UPPER; ``d``:
    direction, of any length.
    """
    size = vector(x.shape_size, s)

    def of_round() -> Any:
        r = _radius(x, s, i) / (_across(d) + smallest())
        rim = Vector3(r * d.x, r * d.y, where(i == UPPER, size.y, -size.y))
        return tuple(chosen(x.shape_kind[s] >= SMOOTH, Vector3(*of_kinds(x, s, d, SMOOTH)), rim))

    return Vector3(*cond(x.shape_kind[s] <= POLYTOPE, lambda: tuple(vector(x.corners, i)), of_round))


def _turned(x: Any, s: Any, i: Any, d: Vector3, t: Vector3) -> Vector3:
    """How that point moves as the unit vector d turns along t."""

    def of_round() -> Any:
        _, smooth = jvp(lambda *d: of_kinds(x, s, Vector3(*d), SMOOTH), tuple(d), tuple(t))
        k = 1.0 / (_across(d) + smallest())
        side = Vector3(-d.y * k, d.x * k, 0.0)
        rim = side * (side.dot(t) * _radius(x, s, i) * k)
        return tuple(chosen(x.shape_kind[s] >= SMOOTH, Vector3(*smooth), rim))

    return Vector3(*cond(x.shape_kind[s] <= POLYTOPE, lambda: (0.0, 0.0, 0.0), of_round))


def _radius(x: Any, s: Any, i: Any) -> Any:
    """Of a rim; 0 of a tip."""
    return where((i == UPPER) & (x.shape_kind[s] == CONE), 0.0, x.shape_size[s, 0])


def _across(d: Vector3) -> Any:
    return sqrt(d.x * d.x + d.y * d.y)
