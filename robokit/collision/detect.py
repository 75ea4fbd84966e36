"""Contacts of all pairs of shapes that are near: of candidates, balls first, then the narrow phase.

A pair is looked at where the balls around its shapes, each larger by how far its shape may move in the step,
overlap. Contacts count whose gap is less than

    far = closing speed dt + 10 g dt^2

the closing speed at most |u| + |w| r: u the velocity of one ball's centre relative to the other shape's
body, w the difference of their angular velocities, r its radius. What flies together is not near for that.

Contacts that a neighbour of the fixed shape hides are none (flush.py).

Cost: 3 ns a candidate (broad.py), 30-60 ns for those that are near, 0.5-3 us for those with contacts.
"""

from __future__ import annotations

from typing import Any

from robokit.collision.broad import find_candidates
from robokit.collision.fields import FIELD, PLANE
from robokit.collision.flush import hidden, on_face
from robokit.collision.narrow import narrow, place, rotation
from robokit.collision.support import tangents
from robokit.spatial import Vector3
from robokit.spatial.control_flow import call, cond, for_range, while_loop, zeros
from robokit.spatial.scalars import maximum, minimum, sqrt, where
from robokit.spatial.vector3 import chosen

FALL = 10.0
"""Of g dt^2: what is so near may touch before the step is over, though nothing moves yet."""

AFTER = 2**31 - 1
"""Above the numbers of all pairs."""

CORNERS = 6
"""Numbers of corners that are remembered of a pair."""


def detect(x: Any) -> None:
    """Fill CONTACTS, and bring MEMORY and CANDIDATES up to date.

    ``counts`` are the numbers of contacts and near pairs, also beyond the place that there is, and of those
    that there was no place for. Contacts are in the order of their pairs; near pairs ascend.

    Args:
        x: with SHAPES, PAIRS, POSES, CANDIDATES, MEMORY and CONTACTS, ``gravity`` and ``dt``.
    """
    for k in range(4):
        x.counts[k] = 0
    known = remembered(x.near_pair, x.n_near)
    balls, before = zeros(x.n_shapes, 5), zeros(known, kind="integer")
    directions, direction = zeros(known, 3), zeros(3)
    simplices, corners = zeros(known, CORNERS, kind="integer"), zeros(CORNERS, kind="integer")
    g, dt = _row(x.gravity, 0), x.dt[0]
    still = FALL * sqrt(g.dot(g)) * dt * dt

    def ball(s: Any) -> None:
        body = x.shape_body[s]
        c = place(x, body, _row(x.shape_centre, s))
        w, r = _row(x.V, body), x.shape_bound[s]
        u = _row(x.V, body, 3) + w.cross(c)
        # Planes have r infinite, and may turn with no body: not infinity times zero.
        turn = sqrt(w.dot(w))
        moved = sqrt(u.dot(u)) + where(turn > 0.0, turn * r, 0.0)
        more = dt * moved + 0.5 * still
        _write(balls, s, (*c, r + more, more))

    def keep(k: Any) -> None:
        before[k] = x.near_pair[k]
        _write(directions, k, _row(x.near_direction, k))
        _write(simplices, k, [x.near_corners[k, i] for i in range(CORNERS)])

    for_range(x.n_shapes, ball)
    for_range(known, keep)
    find_candidates(x, balls)

    def pair(m: Any, at: Any) -> Any:
        k = x.candidate[m]
        a, b = x.pair_shapes[k, 0], x.pair_shapes[k, 1]
        d, reach = _row(balls, b) - _row(balls, a), balls[a, 3] + balls[b, 3] - x.pair_slack[k]
        return cond(d.dot(d) < reach * abs(reach), lambda: closer(k, at), lambda: at)

    def closer(k: Any, at: Any) -> Any:
        near, far = may_meet(x, k, balls, still, dt)
        return cond(near, lambda: look(k, far, at), lambda: at)

    def look(k: Any, far: Any, at: Any) -> Any:
        at = while_loop(lambda m: _entry(before, known, m) < k, lambda m: m + 1, at)

        def take() -> None:
            _put_all(direction, [directions[at, i] for i in range(3)])
            _put_all(corners, [simplices[at, i] for i in range(CORNERS)])

        def begin() -> None:
            _put_all(direction, [0.0] * 3)
            _put_all(corners, [-1] * CORNERS)

        cond(_entry(before, known, at) == k, take, begin)

        def add(feature: Any, point: Any, gap: Any, n: Any) -> None:
            add_contact(x, k, feature, Vector3(*point), gap, Vector3(*n))

        narrow(x, k, far, direction, corners, add)
        _remember(x, k, direction, corners)
        return at

    for_range(x.candidates[0], pair, 0)
    n = minimum(x.counts[1], x.n_near)
    for_range(known - n, lambda k: _put(x.near_pair, n + k, -1))


def remembered(near_pair: Any, size: Any) -> Any:
    """How many pairs a list has before its first -1.

    Args:
        near_pair: of MEMORY.
        size: of the array.
    """
    return while_loop(
        lambda k: cond(k < size, lambda: where(near_pair[k] >= 0, 1, 0), lambda: 0) > 0, lambda k: k + 1, 0
    )


def may_meet(x: Any, k: Any, balls: Any, still: Any, dt: Any) -> tuple[Any, Any]:
    """Whether a pair may touch within the step, and the gap below which its contacts count."""
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
    reach = far - x.pair_slack[k]

    def above_plane() -> Any:
        n = Vector3(*(x.shape_placement[a, 3 * i + 2] for i in range(3)))
        return (c_b - c_a).dot(rotation(x, body_a) @ n) - r_b < reach

    def both_balls() -> Any:
        d, reach_of_both = c_b - c_a, r_a + r_b + reach
        return (d.dot(d) < reach_of_both * reach_of_both) & (reach_of_both > 0.0)

    def above_field() -> Any:
        top = place(x, body_a, _row(x.shape_placement, a, 9)).z + x.shape_size[a, 2]
        return c_b.z - r_b - top < reach

    def other() -> Any:
        return cond(x.shape_kind[a] == FIELD, above_field, both_balls)

    return cond(x.shape_kind[a] == PLANE, above_plane, other), far


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
