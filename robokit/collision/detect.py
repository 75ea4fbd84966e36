"""Contacts of all pairs of shapes that are near: of candidates, balls first, then the narrow phase.

A pair is looked at where the balls around its shapes, each larger by how far its shape may move in the step,
overlap. Contacts count whose gap is less than

    far = closing speed dt + 10 g dt^2

the closing speed at most |u| + |w| r: u the velocity of the smaller ball's centre relative to the other
shape's body, w the difference of their angular velocities, r its radius. What flies together is not near for
that, unless it bounces: the speed with which each of them goes towards the ground may be turned back then.

Of a pair that cannot touch in the step a gap is known that is its least. It shrinks by no more than the two
shapes move, and until it may be as small as far the pair is passed over.

Contacts that a neighbour of the fixed shape hides are none.

Source: B. Mirtich, Impulse-based dynamic simulation of rigid body systems, 1996 (conservative advancement).
Cost: 2 ns a candidate (see below), 0.1 us for one whose gap is looked at anew, 0.5-3 us for those with
contacts.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from robokit.collision.fields import (
    CANDIDATES,
    CONTACTS,
    FIELD,
    MEMORY,
    PAIRS,
    PLANE,
    POSES,
    SHAPES,
)
from robokit.collision.flush import touches
from robokit.collision.narrow import Pairs, gap_along, narrow_pairs, on_plane
from robokit.collision.support import (
    middle_of_part,
    pair_number,
    part_of_cube,
    place,
    rotation,
    tangents,
    vector,
)
from robokit.collision.terrain import ALIGNED, FLUSH
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.maker import engine
from robokit.spatial import Vector3
from robokit.spatial.control_flow import (
    call,
    cond,
    for_range,
    in_precision,
    rounding,
    while_loop,
    zeros,
)
from robokit.spatial.scalars import maximum, minimum, sqrt, where

# ==== contacts of all pairs =======================================================================


FALL = 10.0  # of g dt^2: what is so near may touch before the step is over, though nothing moves yet
AFTER = 2**31 - 1  # above the numbers of all pairs
CORNERS = 6  # numbers of corners that are remembered of a pair
LISTED = 32  # near pairs that are listed before they are looked at

DIRECTIONS = 2**14
"""Parts of the edge of a cube of directions along which gaps are known: as many as a whole number tells."""

RADIUS, MORE, MOVED, TURN, SIZE = range(3, 8)
"""Columns of ``balls``, after the centre [m]: the radius of the larger ball, and by how much it is larger;
how far the shape has moved since the last step; how far its body may turn in this one [rad]; the radius
again, 0 where it is infinite."""


def detect(x: Any) -> None:
    """Fill CONTACTS, and update MEMORY and CANDIDATES.

    ``counts`` are the numbers of contacts, near pairs and candidates, also beyond the size of the arrays, and
    of those that found no place: if there are any, nothing else is valid. Contacts are in the order of their
    pairs; near pairs ascend. ``x``: with SHAPES, PAIRS, POSES, CANDIDATES, MEMORY and CONTACTS, ``gravity``
    and ``dt``.
    """
    look_among(x, *place_balls(x))


def look_among(x: Any, balls: Any, still: Any, stale: Any) -> None:
    """Detect contacts as :func:`detect` does, given the result of :func:`place_balls`."""
    for k in range(3):
        x.counts[k] = 0
    x.counts[3] = x.candidates[0]
    cond(stale > 0, lambda: _find(x, balls), lambda: None)
    _look_at_candidates(x, balls, still)


def place_balls(x: Any) -> tuple[Any, Any, Any]:
    """Bounding spheres of shapes, and how far they have moved and may move, for :func:`look_among`.

    It takes the same branches in all states.
    """
    balls, turned = zeros(x.n_shapes, SIZE + 1), zeros(x.n_bodies)
    g, dt = _row(x.gravity, 0), x.dt[0]
    still = FALL * sqrt(g.dot(g)) * dt * dt

    def body(b: Any) -> None:
        """The most that a point at the distance 1 has moved: of R - R_before the largest singular value."""
        square = 0.0
        for i in range(9):
            change = x.R[b, i] - x.R_before[b, i]
            square = square + change * change
            x.R_before[b, i] = x.R[b, i]
        turned[b] = sqrt(0.5 * square)

    def ball(s: Any, stale: Any) -> Any:
        body = x.shape_body[s]
        c = place(x, body, _row(x.shape_centre, s))
        (w, v), r = velocity(x, body), x.shape_bound[s]
        u, turn, since = v + w.cross(c), sqrt(w.dot(w)), c - _row(x.centre_before, s)
        # Planes have r infinite, and may turn with no body: not infinity times zero.
        more = dt * (sqrt(u.dot(u)) + where(turn > 0.0, turn * r, 0.0)) + 0.5 * still
        moved = sqrt(since.dot(since)) + where(turned[body] > 0.0, turned[body] * r, 0.0)
        finite = r < float("inf")
        more = more + where(finite, rounding(GUARD, 0.5) * r, 0.0)
        size = where(finite, r + more, 0.0)
        _write(balls, s, (*c, r + more, more, moved, dt * turn, size))
        _write(x.centre_before, s, c)
        left = c - _centre(x.ball_then, s)
        return where((sqrt(left.dot(left)) + more <= x.ball_then[s, 3]) | ~finite, stale, 1)

    for_range(x.n_bodies, body)
    return balls, still, for_range(x.n_shapes, ball, where(x.candidates[1] > 0, 0, 1))


def velocity(x: Any, body: Any) -> tuple[Vector3, Vector3]:
    """Angular velocity of a body, and how fast what moves with it goes at the step's origin."""
    w = _row(x.V, body)
    return w, _row(x.V, body, 3) - w.cross(_row(x.seat, body))


def _look_at_candidates(x: Any, balls: Any, still: Any) -> None:
    """Contacts of candidates, and what is known of them for the next step.

    Near ones are listed before they are looked at, some at a time: states that are computed side by side,
    whose pairs differ, look at their first one together, then at their second one.
    """
    dt, last, total = x.dt[0], _last(x), x.candidates[0]
    near = _Near(zeros(LISTED, kind="integer"), zeros(LISTED, 2))

    def pair(m: Any, count: Any) -> Any:
        return m + 1, cond(_stays_apart(x, m, balls), lambda: count, lambda: overlapping(m, count))

    def overlapping(m: Any, count: Any) -> Any:
        a, b = x.candidate_shapes[m, 0], x.candidate_shapes[m, 1]
        d, sum_ = _row(balls, b) - _row(balls, a), balls[a, RADIUS] + balls[b, RADIUS]
        return cond(d.dot(d) < sum_ * sum_, lambda: closer(m, a, b, count), lambda: count)

    def closer(m: Any, a: Any, b: Any, count: Any) -> Any:
        gap, far = gap_of_balls(x, (a, b), balls, still, dt)

        def is_near() -> Any:
            near.candidate[count], near.reach[count, 0] = m, far
            near.reach[count, 1] = rounding(GUARD, 0.5) * (far + balls[a, SIZE] + balls[b, SIZE])
            return count + 1

        def is_apart() -> Any:
            x.least_gap[m] = gap
            return count

        return cond(gap < far, is_near, is_apart)

    def some(m: Any) -> Any:
        m, count = while_loop(lambda m, count: (m < total) & (count < LISTED), pair, m, 0)
        _look(x, near, count, last)
        return m

    while_loop(lambda m: m < total, some, 0)
    n = minimum(x.counts[1], x.n_near)
    for_range(last.count - n, lambda k: _put(x.near_pair, n + k, -1))


def _stays_apart(x: Any, m: Any, balls: Any) -> Any:
    """Whether the gap of a candidate, less what both have moved, is above far, at most the sums here."""
    a, b = x.candidate_shapes[m, 0], x.candidate_shapes[m, 1]
    gap = (x.least_gap[m] - (balls[a, MOVED] + balls[b, MOVED])) * (1.0 - rounding(GUARD, 0.5))
    gap = maximum(gap, 0.0)
    x.least_gap[m] = gap
    turn = balls[a, TURN] + balls[b, TURN] + rounding(GUARD, 0.5)
    return gap > balls[a, MORE] + balls[b, MORE] + turn * (balls[a, SIZE] + balls[b, SIZE])


class _Near(NamedTuple):
    """Candidates that are near: their places in the list, and the gap below which contacts count, with how
    much more rules them out beyond rounding [m].
    """

    candidate: Any
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

    ``x``: as in :func:`detect`; ``near``: these, in their order; ``count``: how many; ``last``: the pairs of
    the last step.
    """
    direction, corners = zeros(3), zeros(CORNERS, kind="integer")

    def begin(i: Any) -> Any:
        m = near.candidate[i]
        k = x.candidate[m]
        at = while_loop(lambda n: _entry(last.pair, last.count, n) < k, lambda n: n + 1, last.at[0])
        last.at[0] = at
        is_known = _entry(last.pair, last.count, at) == k

        def take() -> None:
            _put_all(direction, [last.direction[at, c] for c in range(3)])
            _put_all(corners, [last.corners[at, c] for c in range(CORNERS)])

        def afresh() -> None:
            _put_all(direction, [0.0] * 3)
            _put_all(corners, [-1] * CORNERS)

        def along() -> Any:
            return gap_along(x, m, middle_of_part(x.apart_along[m], DIRECTIONS))

        a, b = (x.shape_kind[x.candidate_shapes[m, side]] for side in range(2))
        convex = (a != PLANE) & (a != FIELD) & (b != PLANE) & (b != FIELD)
        gap = cond(convex & ~is_known, along, lambda: 0.0)

        def is_apart() -> Any:
            x.least_gap[m] = gap
            return 0

        def goes() -> Any:
            cond(is_known, take, afresh)
            return 1

        return cond(gap > near.reach[i, 0] + near.reach[i, 1], is_apart, goes)

    def end(i: Any, touches: Any) -> None:
        m = near.candidate[i]

        def note() -> None:
            x.apart_along[m] = part_of_cube(_row(direction, 0), DIRECTIONS)
            x.apart_corners[m, 0] = 0

        cond(touches > 0, lambda: _remember(x, x.candidate[m], direction, corners), note)

    def add_one(shapes: Any, feature: Any, point: Any, gap: Any, n: Any) -> None:
        add_contact(x, shapes, feature, Vector3(*point), gap, Vector3(*n))

    def add(*contact: Any) -> None:
        call(add_one, *contact)

    def pair(i: Any) -> tuple[tuple[Any, Any], Any]:
        m = near.candidate[i]
        return (1 * x.candidate_shapes[m, 0], 1 * x.candidate_shapes[m, 1]), near.reach[i, 0]

    narrow_pairs(x, count, Pairs(pair, direction, corners, begin, end), add)


def remembered(near_pair: Any, size: Any) -> Any:
    """Number of pairs in a list before its first -1. ``near_pair``: of MEMORY; ``size``: of the array."""
    return while_loop(
        lambda k: cond(k < size, lambda: where(near_pair[k] >= 0, 1, 0), lambda: 0) > 0, lambda k: k + 1, 0
    )


def gap_of_balls(x: Any, shapes: tuple[Any, Any], balls: Any, still: Any, dt: Any) -> tuple[Any, Any]:
    """A lower bound of a pair's gap, from its bounding spheres, and the gap below which it counts.

    The bound has a margin for rounding, because the impact of a neighbour may pass through contacts at rest.
    """
    a, b = shapes
    body_a, body_b = x.shape_body[a], x.shape_body[b]
    r_a, r_b = x.shape_bound[a], x.shape_bound[b]
    c_a, c_b = _row(balls, a), _row(balls, b)
    (w_a, v_a), (w_b, v_b) = velocity(x, body_a), velocity(x, body_b)
    w, v = w_b - w_a, v_b - v_a
    u_a, u_b = v + w.cross(c_a), v + w.cross(c_b)
    r = minimum(r_a, r_b)

    square_a, square_b = u_a.dot(u_a), u_b.dot(u_b)
    square = where(r_a < r_b, square_a, where(r_b < r_a, square_b, minimum(square_a, square_b)))
    far = still + dt * (sqrt(square) + sqrt(w.dot(w)) * r) + rounding(GUARD, 0.5) * r

    def on_its_own(r: Any, *of: Any) -> Any:
        """Velocity of a centre along the ground; its size towards it, and that of the rim by turning."""
        w, v, c = (Vector3(*of[k : k + 3]) for k in (0, 3, 6))
        u = v + w.cross(c)
        back, turn = _turned_back(x, u), sqrt(w.dot(w))
        return *(u - back), sqrt(back.dot(back)), where((r < float("inf")) & (turn > 0.0), turn * r, 0.0)

    def farther() -> Any:
        *t_a, s_a, turn_a = call(on_its_own, r_a, *w_a, *v_a, *c_a)
        *t_b, s_b, turn_b = call(on_its_own, r_b, *w_b, *v_b, *c_b)
        along = Vector3(*t_b) - Vector3(*t_a)
        square = where(x.shape_kind[a] == PLANE, 0.0, along.dot(along)) + (s_a + s_b) * (s_a + s_b)
        return still + dt * (sqrt(square) + turn_a + turn_b) + rounding(GUARD, 0.5) * r

    if hasattr(x, "shape_restitution"):  # one of the two may bounce off the ground, and come back
        share = where(a < x.ground_shapes[0], x.shape_restitution[b], x.between[1])
        far = cond(share > 0.0, farther, lambda: far)

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

    return cond(x.shape_kind[a] == PLANE, above_plane, other), far


def _turned_back(x: Any, u: Vector3) -> Vector3:
    """What of a velocity the ground may turn back: along the normal where a plane is all of it, else all.

    A plane may be a belt: to those who move with what lies on it nothing is nearer than on one at rest.
    """
    n = Vector3(*(x.shape_placement[0, 3 * i + 2] for i in range(3)))
    alone = (x.ground_shapes[0] == 1) & (x.shape_kind[0] == PLANE)
    part = n * n.dot(u)
    return Vector3(*(where(alone, p, s) for p, s in zip(part, u, strict=True)))


def add_contact(x: Any, shapes: tuple[Any, Any], feature: Any, point: Vector3, gap: Any, n: Vector3) -> None:
    """Write a contact, unless neighbours of a fixed shape hide it, or another triangle of a field has it."""
    a, b = shapes

    def write(feature: Any, p: Any, gap: Any, n: Any) -> None:
        def one() -> None:
            write_contact(x, shapes, feature, Vector3(*p), gap, Vector3(*n))

        known = cond(
            x.shape_kind[a] == FIELD, lambda: _is_known(x, shapes, Vector3(*p), gap, Vector3(*n)), lambda: 0
        )
        cond(known > 0, lambda: None, one)

    def given() -> None:
        call(write, feature, tuple(point), gap, tuple(n))

    cond(touches(x, a, b, feature, point - n * (0.5 * gap), n), given, lambda: None)


def _is_known(x: Any, shapes: tuple[Any, Any], point: Vector3, gap: Any, n: Vector3) -> Any:
    """1 where a contact of this pair with a field has the same place and normal, by rounding; else 0."""
    s, k = shapes[0], pair_number(x, *shapes)
    p, off = point + n * (0.5 * gap), in_precision(*FLUSH) * (x.shape_size[s, 0] + x.shape_size[s, 1])

    def is_other(m: Any) -> Any:
        apart, turned = _row(x.contact_place, m) - p, _row(x.contact_frame, m, 6).cross(n)
        return (apart.dot(apart) > off * off) | (turned.dot(turned) > ALIGNED)

    def goes_on(m: Any) -> Any:
        def other() -> Any:
            return where((x.contact_pair[m] == k) & is_other(m), 1, 0)

        return cond(m >= 0, other, lambda: 0) > 0

    last = while_loop(goes_on, lambda m: m - 1, minimum(x.counts[0], x.n_contacts) - 1)
    return cond(last >= 0, lambda: where(x.contact_pair[last] == k, 1, 0), lambda: 0)


def write_contact(
    x: Any, shapes: tuple[Any, Any], feature: Any, point: Vector3, gap: Any, n: Vector3
) -> None:
    """Count a contact, and write it if there is memory for it."""
    a, b = shapes
    i = x.counts[0]
    x.counts[0] = i + 1

    def put() -> None:
        x.contact_bodies[i, 0], x.contact_bodies[i, 1] = x.shape_body[a], x.shape_body[b]
        x.contact_shapes[i, 0], x.contact_shapes[i, 1] = a, b
        x.contact_pair[i], x.contact_feature[i], x.contact_gap[i] = pair_number(x, a, b), feature, gap
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


# ==== contacts of many rows with planes ===========================================================
# Contacts of many rows with planes of the world: each shape's corners in turn, in the lanes of all rows.


def detect_on_planes(x: Any) -> None:
    """Fill CONTACTS as :func:`robokit.collision.detect.detect` does, where each pair begins with a plane.

    Which pair and corner is looked at is the same in all lanes. Nothing is remembered. ``x``: with SHAPES,
    PAIRS, POSES and CONTACTS, ``gravity`` and ``dt``.
    """
    for k in range(4):
        x.counts[k] = 0
    balls, g, dt = zeros(x.n_shapes, 3), Vector3(*(x.gravity[c] for c in range(3))), x.dt[0]
    still = FALL * sqrt(g.dot(g)) * dt * dt

    def ball(s: Any) -> None:
        for c, number in enumerate(place(x, x.shape_body[s], vector(x.shape_centre, s))):
            balls[s, c] = number

    def pair(*shapes: Any) -> None:
        gap, far = gap_of_balls(x, shapes, balls, still, dt)
        near = functools.partial(on_plane, x, shapes, far, None, functools.partial(add, shapes))
        cond(gap < far, near, lambda: None)

    def add(shapes: tuple[Any, Any], feature: Any, point: Any, gap: Any, n: Any) -> None:
        def write(feature: Any, p: Any, gap: Any, n: Any) -> None:
            write_contact(x, shapes, feature, Vector3(*p), gap, Vector3(*n))

        call(write, feature, tuple(point), gap, tuple(n))

    def run(a: Any, m: Any) -> None:
        first, end = x.runs[m, 0], x.runs[m, 1]
        for_range(end - first, lambda k: pair(a, first + k))

    def shape(a: Any) -> None:
        first, count = x.shape_runs[a, 0], x.shape_runs[a, 1]
        for_range(count, lambda k: run(a, first + k))

    for_range(x.n_shapes, ball)
    for_range(x.n_shapes, shape)


# ==== detection as a kernel of its own ============================================================
# Detection alone, at given poses: a kernel that serves every scene.


Arrays = dict[str, np.ndarray]

PLACES = 256  # contacts and near pairs that there is place for to begin with


@functools.cache
def detect_kernel(reproducible: bool = False) -> LoopKernel:
    """The kernel of detection."""
    arrays = (*SHAPES, *PAIRS, *POSES, *CANDIDATES, *MEMORY, *CONTACTS, real("gravity", 3), real("dt", 1))
    return kernel_of("detect", detect, arrays, by_source=True, reproducible=reproducible)


def contacts_at(
    scene: Mapping[str, np.ndarray],
    R: np.ndarray,
    p: np.ndarray,
    V: np.ndarray | None = None,
    gravity: float = 0.0,
    dt: float = 0.0,
    memory: Mapping[str, np.ndarray] | None = None,
    **options: Any,
) -> Arrays:
    """Contacts of bodies at rest or in motion, as many as there are.

    Args:
        scene: arrays SHAPES and PAIRS by name.
        R, p: rotations (n_bodies, 3, 3) and origins (n_bodies, 3) of bodies 0..N in the world [m].
        V: velocities about the world's origin, angular first, (n_bodies, 6).
        gravity: its size [m/s^2].
        dt: time step [s]; with 0 only shapes that overlap have contacts.
        memory: of the last call: its result.
        options: ``engine``.

    Returns:
        CONTACTS and MEMORY by name.
    """
    n = len(p)
    given: dict[str, Any] = {name: np.asarray(array) for name, array in scene.items()}
    given |= {"R": np.reshape(R, (n, 9)), "p": p, "V": np.zeros((n, 6)) if V is None else V}
    given |= {"seat": np.zeros((n, 3)), "origin": np.zeros(3)}
    given |= {"gravity": np.array([0.0, 0.0, -gravity]), "dt": np.array([dt])}
    sizes = {"n_candidates": PLACES, "n_shapes": len(given["shape_body"]), "n_bodies": n}
    known = memory or {}
    before = len(known["near_pair"]) if known else 0
    places = max(PLACES, before)
    while True:
        given |= {a.name: a.zeros(sizes) for a in CANDIDATES}
        given |= {a.name: a.zeros({"n_near": places}) for a in MEMORY}
        given["near_pair"][:] = -1
        for name in (a.name for a in MEMORY if known):
            given[name][:before] = known[name]
        found = detect_kernel()(**given, n_contacts=places, **options)
        contacts, near, missing, candidates = found["counts"].tolist()
        if not missing:
            kept = {a.name: found[a.name][:contacts] for a in CONTACTS if a.shape[0] == "n_contacts"}
            return kept | {a.name: found[a.name][:near] for a in MEMORY} | {"counts": found["counts"]}
        places, sizes["n_candidates"] = max(places, contacts, near), max(PLACES, candidates)


class Detector:
    """Contacts of one scene at many poses of bodies at rest, one after the other; arrays are made once."""

    def __init__(
        self,
        scene: Mapping[str, np.ndarray],
        bodies: int,
        far: float = 0.0,
        reproducible: bool = False,
    ) -> None:
        """Prepare it.

        ``scene``: arrays SHAPES and PAIRS by name; ``bodies``: how many there are, the world among them;
        ``far``: gap up to which contacts are found [m]; 0 for shapes that overlap; ``reproducible``: whether
        the bits are the same everywhere.
        """
        self.kernel, self.places, self.candidates = detect_kernel(reproducible), PLACES, PLACES
        given = {"gravity": np.array([0.0, 0.0, -1.0]), "dt": np.array([math.sqrt(far / FALL)])}
        self._given = {name: np.ascontiguousarray(array) for name, array in scene.items()} | given
        self._bodies = bodies
        self._prepare()

    def at(self, R: np.ndarray, p: np.ndarray) -> Arrays:
        """The contacts, which hold until the next call; arguments as in :func:`contacts_at`."""
        while True:
            x = self.arrays
            x["R"][:], x["p"][:] = np.reshape(R, (-1, 9)), p
            x["near_pair"][:], x["candidates"][:] = -1, 0
            self._call()
            contacts, near, missing, candidates = x["counts"].tolist()
            if not missing:
                return {a.name: x[a.name][:contacts] for a in CONTACTS if a.shape[0] == "n_contacts"}
            self.places = max(self.places, contacts, near)
            self.candidates = max(self.candidates, candidates)
            self._given |= {name: x[name] for name in self._given}  # with what was changed since
            self._prepare()

    def _prepare(self) -> None:
        known = {"n_bodies": self._bodies, "n_contacts": self.places, "n_near": self.places}
        known["n_candidates"] = self.candidates
        for a in self.kernel.arrays:
            if a.name in self._given:
                shape = self._given[a.name].shape
                known |= {n: size for n, size in zip(a.shape, shape, strict=True) if isinstance(n, str)}
        self.arrays = {
            a.name: np.array(self._given[a.name], a.zeros(known).dtype)
            if a.name in self._given
            else a.zeros(known)
            for a in self.kernel.taken
        }
        sizes, arrays = {name: known[name] for name in self.kernel.sizes}, list(self.arrays.values())
        self._call: Callable[[], None] = functools.partial(self.kernel.on_memory, *sizes.values(), *arrays)
        if engine() != "python":
            with contextlib.suppress(NoMachineCode):
                self._call = self.kernel.single(sizes, arrays)


# ==== Pairs of shapes that may touch within some steps: the others are not looked at in each ===========
# The ball around each shape is made larger by a margin, and the pairs whose larger balls overlap are found
# by a sweep along the axis along which the shapes are spread most. They serve as long as no ball has left its
# larger one, so that when they were found makes no difference to any contact. In the coordinates of a step,
# which move with body 1, the balls of a robot that falls hardly move.
#
# Source: L. Verlet, Computer experiments on classical fluids, 1967 (margins); D. Baraff, Dynamic simulation
# of non-penetrating rigid bodies, 1992 (sort and sweep).
# Cost: 3 ns a shape in each step, and each 10 to 100 steps 20 ns for each pair of balls side by side.


MARGIN = 0.25  # of the mean radius of the bodies' balls: how much larger all are taken
AHEAD = 4.0  # Of how far a shape may move in the step, likewise. Speeds that grow do not end it at once.
GUARD = 1e-9  # of a larger ball: beyond rounding


def _find(x: Any, balls: Any) -> None:
    """Bring the candidates up to date.

    ``x``: with SHAPES, PAIRS and CANDIDATES; ``balls``: a row a shape, of which the first five count: the
    centre, the radius and how far it may move in the step, and this alone [m].
    """
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
    last = _kept(x, x.candidates[0] * known)
    x.candidates[0] = 0

    def from_here(t: Any) -> None:
        s = x.sweep[t]

        def beside(u: Any) -> Any:
            o = x.sweep[u]
            d, reach = _centre(balls, o) - _centre(balls, s), ends[s, 2] + ends[o, 2]
            near = (d.dot(d) < reach * reach) & (x.shape_body[s] != x.shape_body[o])
            cond(near, lambda: _enter(x, s, o), lambda: None)
            return u + 1

        def overlaps(u: Any) -> Any:
            o = x.sweep[minimum(u, x.n_shapes - 1)]
            return (u < x.n_shapes) & (ends[o, 0] <= ends[s, 1])

        while_loop(overlaps, beside, t + 1)

    for_range(x.n_shapes, from_here)
    x.counts[3] = x.candidates[0]
    missing = maximum(x.counts[3] - x.n_candidates, 0)
    x.counts[2], x.candidates[0] = missing, x.counts[3] - missing
    # Candidates are sorted by their last digit, then by their first one, with n_shapes to a digit.
    found = zeros(x.candidates[0], 3, kind="integer")
    _sort_by(x, found, lambda k: k % x.n_shapes)
    _sort_by(x, found, lambda k: k // x.n_shapes)
    for_range(x.candidates[0], functools.partial(_hand_on, x, last), 0)
    x.candidates[1] = where(missing > 0, 0, 1)


class _Kept(NamedTuple):
    """A copy of what is known of candidates."""

    count: Any
    pair: Any
    gap: Any
    along: Any
    corners: Any


def _kept(x: Any, count: Any) -> _Kept:
    """Of the first ones, so many."""
    kept = _Kept(
        count,
        zeros(count, kind="integer"),
        zeros(count),
        zeros(count, kind="integer"),
        zeros(count, 2, kind="integer"),
    )

    def keep(m: Any) -> None:
        kept.pair[m], kept.gap[m] = 1 * x.candidate[m], 1.0 * x.least_gap[m]
        kept.along[m] = 1 * x.apart_along[m]
        _write(kept.corners, m, [x.apart_corners[m, side] for side in range(2)])

    for_range(count, keep)
    return kept


def _hand_on(x: Any, kept: _Kept, m: Any, at: Any) -> Any:
    """What was known of a candidate; ``at``: of those before, where pairs begin that are none below it."""
    k = x.candidate[m]
    at = while_loop(lambda n: _entry(kept.pair, kept.count, n) < k, lambda n: n + 1, at)

    def known() -> None:
        x.least_gap[m], x.apart_along[m] = 1.0 * kept.gap[at], 1 * kept.along[at]
        _write(x.apart_corners, m, [kept.corners[at, side] for side in range(2)])

    def new() -> None:
        x.least_gap[m], x.apart_along[m] = 0.0, 0
        _write(x.apart_corners, m, [0, 0])

    cond(_entry(kept.pair, kept.count, at) == k, known, new)
    return at


def _sort_by(x: Any, found: Any, digit: Callable[[Any], Any]) -> None:
    """Sort candidates by a digit; those with the same one stay in their order. ``found``: room for them."""
    count, first = x.candidates[0], zeros(x.n_shapes + 1, kind="integer")

    def note(m: Any) -> None:
        _write(found, m, [1 * x.candidate[m], *(1 * x.candidate_shapes[m, side] for side in range(2))])
        d = digit(found[m, 0]) + 1
        first[d] = first[d] + 1

    def add(d: Any) -> None:
        first[d + 1] = first[d + 1] + first[d]

    def put(m: Any) -> None:
        d = digit(found[m, 0])
        x.candidate[first[d]] = 1 * found[m, 0]
        _write(x.candidate_shapes, first[d], [1 * found[m, 1], 1 * found[m, 2]])
        first[d] = first[d] + 1

    for_range(count, note)
    for_range(x.n_shapes, add)
    for_range(count, put)


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


def _enter(x: Any, s: Any, o: Any) -> None:
    """Put the pair of two shapes at the end of the candidates, if they may touch."""
    a, b = minimum(s, o), maximum(s, o)
    first, count = x.shape_runs[a, 0], x.shape_runs[a, 1]

    def halve(low: Any, high: Any) -> Any:
        """To the first run that ends beyond b."""
        middle = (low + high) // 2
        below = x.runs[middle, 1] <= b
        return where(below, middle + 1, low), where(below, high, middle)

    at, _ = while_loop(lambda low, high: low < high, halve, first, first + count)

    def put() -> None:
        m = 1 * x.candidates[0]
        x.candidates[0] = m + 1

        def write() -> None:
            x.candidate[m] = pair_number(x, a, b)
            _write(x.candidate_shapes, m, [a, b])

        cond(m < x.n_candidates, write, lambda: None)

    def found() -> None:
        cond(x.runs[at, 0] <= b, put, lambda: None)

    cond(at < first + count, found, lambda: None)


def _centre(array: Any, s: Any) -> Vector3:
    return Vector3(array[s, 0], array[s, 1], array[s, 2])
