"""Contacts of all pairs of shapes that are near: of candidates, balls first, then the narrow phase.

A pair is looked at where the balls around its shapes, each larger by how far its shape may move in the step,
overlap. Contacts count whose gap is less than

    far = closing speed dt + 10 g dt^2

the closing speed at most |u| + |w| r: u the velocity of one ball's centre relative to the other shape's
body, w the difference of their angular velocities, r its radius. What flies together is not near for that.

Of a pair that cannot touch in the step a gap is known that is its least. It shrinks by no more than the two
shapes move, and until it may be as small as far the pair is passed over.

Contacts that a neighbour of the fixed shape hides are none (flush.py).

Source: B. Mirtich, Impulse-based dynamic simulation of rigid body systems, 1996 (conservative advancement).
Cost: 2 ns a candidate (broad.py), 0.1 us for one whose gap is looked at anew, 0.5-3 us for those with
contacts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robokit.collision.broad import GUARD, find_candidates
from robokit.collision.fields import FIELD, PLANE
from robokit.collision.flush import hidden, on_face
from robokit.collision.narrow import Pairs, gap_along, narrow_pairs, place, rotation
from robokit.collision.support import middle_of_part, part_of_cube, tangents
from robokit.spatial import Vector3
from robokit.spatial.control_flow import call, cond, for_range, rounding, while_loop, zeros
from robokit.spatial.scalars import maximum, minimum, sqrt, where
from robokit.spatial.vectors import chosen

FALL = 10.0
"""Of g dt^2: what is so near may touch before the step is over, though nothing moves yet."""

AFTER = 2**31 - 1
"""Above the numbers of all pairs."""

CORNERS = 6
"""Numbers of corners that are remembered of a pair."""

LISTED = 32
"""Near pairs that are listed before they are looked at."""

DIRECTIONS = 2**14
"""Parts of the edge of a cube of directions along which gaps are known: as many as a whole number tells."""

RADIUS, MORE, MOVED, TURN, SIZE = range(3, 8)
"""Columns of ``balls``, after the centre [m]: the radius of the larger ball, and by how much it is larger;
how far the shape has moved since the last step; how far its body may turn in this one [rad]; the radius
again, 0 where it is infinite."""


def detect(x: Any) -> None:
    """Fill CONTACTS, and bring MEMORY and CANDIDATES up to date.

    ``counts`` are the numbers of contacts and near pairs, also beyond the place that there is, and of those
    that there was no place for. Contacts are in the order of their pairs; near pairs ascend.

    Args:
        x: with SHAPES, PAIRS, POSES, CANDIDATES, MEMORY and CONTACTS, ``gravity`` and ``dt``.
    """
    for k in range(4):
        x.counts[k] = 0
    balls = zeros(x.n_shapes, SIZE + 1)
    g, dt = _row(x.gravity, 0), x.dt[0]
    still = FALL * sqrt(g.dot(g)) * dt * dt
    _place_balls(x, balls, still)
    find_candidates(x, balls)
    _look_at_candidates(x, balls, still)


def _place_balls(x: Any, balls: Any, still: Any) -> None:
    """Where balls are, how far they have moved and may move."""
    dt, turned = x.dt[0], zeros(x.n_bodies)

    def body(b: Any) -> None:
        """The most that a point at the distance 1 has moved: of R - R_before the largest singular value."""
        square = 0.0
        for i in range(9):
            change = x.R[b, i] - x.R_before[b, i]
            square = square + change * change
            x.R_before[b, i] = x.R[b, i]
        turned[b] = sqrt(0.5 * square)

    def ball(s: Any) -> None:
        body = x.shape_body[s]
        c = place(x, body, _row(x.shape_centre, s))
        w, r = _row(x.V, body), x.shape_bound[s]
        u, turn, since = _row(x.V, body, 3) + w.cross(c), sqrt(w.dot(w)), c - _row(x.centre_before, s)
        # Planes have r infinite, and may turn with no body: not infinity times zero.
        more = dt * (sqrt(u.dot(u)) + where(turn > 0.0, turn * r, 0.0)) + 0.5 * still
        moved = sqrt(since.dot(since)) + where(turned[body] > 0.0, turned[body] * r, 0.0)
        size = where(r < float("inf"), r + more, 0.0)
        _write(balls, s, (*c, r + more, more, moved, dt * turn, size))
        _write(x.centre_before, s, c)

    for_range(x.n_bodies, body)
    for_range(x.n_shapes, ball)


def _look_at_candidates(x: Any, balls: Any, still: Any) -> None:
    """Contacts of candidates, and what is known of them for the next step.

    Near ones are listed before they are looked at, some at a time: states that are computed side by side,
    whose pairs differ, look at their first one together, then at their second one.
    """
    dt, last, total = x.dt[0], _last(x), x.candidates[0]
    near = _Near(zeros(LISTED, kind="integer"), zeros(LISTED, 2))

    def pair(m: Any, count: Any) -> Any:
        k = x.candidate[m]
        return m + 1, cond(_stays_apart(x, k, balls), lambda: count, lambda: overlapping(k, count))

    def overlapping(k: Any, count: Any) -> Any:
        a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
        d, sum_ = _row(balls, b) - _row(balls, a), balls[a, RADIUS] + balls[b, RADIUS] - x.pair_slack[k]
        return cond(d.dot(d) < sum_ * abs(sum_), lambda: closer(k, a, b, count), lambda: count)

    def closer(k: Any, a: Any, b: Any, count: Any) -> Any:
        gap, far = gap_of_balls(x, k, balls, still, dt)

        def is_near() -> Any:
            near.pair[count], near.reach[count, 0] = k, far
            near.reach[count, 1] = rounding(GUARD, 0.5) * (far + balls[a, SIZE] + balls[b, SIZE])
            return count + 1

        def is_apart() -> Any:
            x.least_gap[k] = gap
            return count

        return cond(gap < far, is_near, is_apart)

    def some(m: Any) -> Any:
        m, count = while_loop(lambda m, count: (m < total) & (count < LISTED), pair, m, 0)
        _look(x, near, count, last)
        return m

    while_loop(lambda m: m < total, some, 0)
    n = minimum(x.counts[1], x.n_near)
    for_range(last.count - n, lambda k: _put(x.near_pair, n + k, -1))


def _stays_apart(x: Any, k: Any, balls: Any) -> Any:
    """Whether the gap of a pair, less what both have moved, is above far: that is at most the sums here."""
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    gap = (x.least_gap[k] - (balls[a, MOVED] + balls[b, MOVED])) * (1.0 - rounding(GUARD, 0.5))
    gap = maximum(gap, 0.0)
    x.least_gap[k] = gap
    turn = balls[a, TURN] + balls[b, TURN] + rounding(GUARD, 0.5)
    return gap > balls[a, MORE] + balls[b, MORE] + turn * (balls[a, SIZE] + balls[b, SIZE])


class _Near(NamedTuple):
    """Pairs that are near: their numbers, and the gap below which contacts count, with how much more rules
    them out beyond rounding [m].
    """

    pair: Any
    reach: Any


class _Last(NamedTuple):
    """A copy of MEMORY as the last step left it: this one writes its own over it."""

    at: Any
    """How many of its pairs come before the one that is looked at, at least."""
    count: Any
    pair: Any
    direction: Any
    corners: Any


def _last(x: Any) -> _Last:
    count = remembered(x.near_pair, x.n_near)
    at = zeros(1, kind="integer")
    last = _Last(
        at, count, zeros(count, kind="integer"), zeros(count, 3), zeros(count, CORNERS, kind="integer")
    )

    def keep(k: Any) -> None:
        last.pair[k] = x.near_pair[k]
        _write(last.direction, k, _row(x.near_direction, k))
        _write(last.corners, k, [x.near_corners[k, i] for i in range(CORNERS)])

    for_range(count, keep)
    return last


def _look(x: Any, near: _Near, count: Any, last: _Last) -> None:
    """Contacts of pairs whose balls are near, and what is known of them.

    Args:
        x: as in :func:`detect`.
        near: these, in their order.
        count: how many.
        last: the pairs of the last step.
    """
    direction, corners = zeros(3), zeros(CORNERS, kind="integer")

    def begin(i: Any) -> Any:
        k = near.pair[i]
        at = while_loop(lambda m: _entry(last.pair, last.count, m) < k, lambda m: m + 1, last.at[0])
        last.at[0] = at
        is_known = _entry(last.pair, last.count, at) == k

        def take() -> None:
            _put_all(direction, [last.direction[at, c] for c in range(3)])
            _put_all(corners, [last.corners[at, c] for c in range(CORNERS)])

        def afresh() -> None:
            _put_all(direction, [0.0] * 3)
            _put_all(corners, [-1] * CORNERS)

        def along() -> Any:
            return gap_along(x, k, middle_of_part(x.apart_along[k], DIRECTIONS))

        gap = cond(both_convex(x, k) & ~is_known, along, lambda: 0.0)

        def is_apart() -> Any:
            x.least_gap[k] = gap
            return 0

        def goes() -> Any:
            cond(is_known, take, afresh)
            return 1

        return cond(gap > near.reach[i, 0] + near.reach[i, 1], is_apart, goes)

    def end(i: Any, touches: Any) -> None:
        k = near.pair[i]

        def note() -> None:
            x.apart_along[k] = part_of_cube(_row(direction, 0), DIRECTIONS)
            x.apart_corners[k, 0] = 0

        cond(touches > 0, lambda: _remember(x, k, direction, corners), note)

    def add(k: Any, feature: Any, point: Any, gap: Any, n: Any) -> None:
        add_contact(x, k, feature, Vector3(*point), gap, Vector3(*n))

    def pair(i: Any) -> tuple[Any, Any]:
        return 1 * near.pair[i], near.reach[i, 0]

    narrow_pairs(x, count, Pairs(pair, direction, corners, begin, end), add)


def remembered(near_pair: Any, size: Any) -> Any:
    """How many pairs a list has before its first -1.

    Args:
        near_pair: of MEMORY.
        size: of the array.
    """
    return while_loop(
        lambda k: cond(k < size, lambda: where(near_pair[k] >= 0, 1, 0), lambda: 0) > 0, lambda k: k + 1, 0
    )


def both_convex(x: Any, k: Any) -> Any:
    """Whether both shapes of a pair are convex and finite."""
    a, b = x.shape_kind[x.pair_shapes[k, 0]], x.shape_kind[x.pair_shapes[k, 1]]
    return (a != PLANE) & (a != FIELD) & (b != PLANE) & (b != FIELD)


def gap_of_balls(x: Any, k: Any, balls: Any, still: Any, dt: Any) -> tuple[Any, Any]:
    """A gap that no contact of a pair is below, by balls around shapes, and the one below which it counts."""
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    body_a, body_b = x.shape_body[a], x.shape_body[b]
    r_a, r_b = x.shape_bound[a], x.shape_bound[b]
    c_a, c_b = _row(balls, a), _row(balls, b)
    w = _row(x.V, body_b) - _row(x.V, body_a)
    v = _row(x.V, body_b, 3) - _row(x.V, body_a, 3)
    smaller = r_a < r_b
    c, r = chosen(smaller, c_a, c_b), where(smaller, r_a, r_b)
    u = v + w.cross(c)
    far = still + dt * (sqrt(u.dot(u)) + sqrt(w.dot(w)) * r)

    def above_plane() -> Any:
        n = Vector3(*(x.shape_placement[a, 3 * i + 2] for i in range(3)))
        return (c_b - c_a).dot(rotation(x, body_a) @ n) - r_b

    def both_balls() -> Any:
        d = c_b - c_a
        return sqrt(d.dot(d)) - r_a - r_b

    def above_field() -> Any:
        top = place(x, body_a, _row(x.shape_placement, a, 9)).z + x.shape_size[a, 2]
        return c_b.z - r_b - top

    def other() -> Any:
        return cond(x.shape_kind[a] == FIELD, above_field, both_balls)

    return cond(x.shape_kind[a] == PLANE, above_plane, other) + x.pair_slack[k], far


def add_contact(x: Any, k: Any, feature: Any, point: Vector3, gap: Any, n: Vector3) -> None:
    """Write a contact; instead of one that is hidden, that on the face of the solid which is not."""

    def write(feature: Any, p: Any, gap: Any, n: Any) -> None:
        write_contact(x, k, feature, Vector3(*p), gap, Vector3(*n))

    def instead() -> None:
        last = x.counts[0] - 1
        known = (last >= 0) & (x.contact_pair[minimum(maximum(last, 0), x.n_contacts - 1)] == k)
        cond(known, lambda: None, face)

    def face() -> None:
        found, p, gap, f = on_face(x, k)
        cond(found, lambda: call(write, 3, tuple(p), gap, tuple(f)), lambda: None)

    def given() -> None:
        call(write, feature, tuple(point), gap, tuple(n))

    cond(hidden(x, x.pair_shapes[k, 0], point - n * (0.5 * gap), n), instead, given)


def write_contact(x: Any, k: Any, feature: Any, point: Vector3, gap: Any, n: Vector3) -> None:
    """Count a contact, and write it where there is place."""
    a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
    i = x.counts[0]
    x.counts[0] = i + 1

    def put() -> None:
        x.contact_bodies[i, 0], x.contact_bodies[i, 1] = x.shape_body[a], x.shape_body[b]
        x.contact_pair[i], x.contact_feature[i], x.contact_gap[i] = k, feature, gap
        # On the surface of what touches the ground: a wheel rolls on its radius.
        _write(x.contact_place, i, point + n * where(x.shape_body[a] == 0, 0.5 * gap, 0.0))
        t1, t2 = tangents(n)
        for m, axis in enumerate((t1, t2, n)):
            for c, number in enumerate(axis):
                x.contact_frame[i, 3 * m + c] = number

    cond(i < x.n_contacts, put, lambda: _put(x.counts, 2, x.counts[2] + 1))


def _remember(x: Any, k: Any, direction: Any, corners: Any) -> None:
    m = x.counts[1]
    x.counts[1] = m + 1

    def keep() -> None:
        x.near_pair[m] = k
        _write(x.near_direction, m, [direction[i] for i in range(3)])
        _write(x.near_corners, m, [corners[i] for i in range(CORNERS)])

    cond(m < x.n_near, keep, lambda: _put(x.counts, 2, x.counts[2] + 1))


def _entry(pairs: Any, size: Any, m: Any) -> Any:
    """Pair m of a list, a number above all after its end."""
    return cond(m < size, lambda: 1 * pairs[m], lambda: AFTER)


def _row(array: Any, k: Any, first: int = 0) -> Vector3:
    if first == 0 and len(getattr(array, "shape", (0, 0))) == 1:
        return Vector3(array[0], array[1], array[2])
    return Vector3(*(array[k, first + c] for c in range(3)))


def _put(array: Any, k: Any, value: Any) -> None:
    array[k] = value


def _put_all(array: Any, values: Any) -> None:
    for k, value in enumerate(values):
        array[k] = value


def _write(array: Any, k: Any, values: Any) -> None:
    for c, value in enumerate(values):
        array[k, c] = value
