"""How contacts move with their bodies: derivatives of their detection.

Pairs that press are looked at again, in dual numbers (engine/loops/dual.py), while the second body moves by
the unit motions about the origin, and the first one stands still. So places, normals and gaps move as those
that detection makes of the shapes, whatever touches. Where another face, edge or corner is about to touch
instead they jump; the derivatives are those of what does.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.1.
Cost: about ten times that of the detection of these pairs.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from robokit.collision.detect import FALL, gap_of_balls
from robokit.collision.fields import CONTACTS, MEMORY, POSES, SHAPES
from robokit.collision.narrow import narrow
from robokit.collision.support import place
from robokit.contact.closing_derivatives import of_motion
from robokit.contact.fields import CONSTRAINTS, DETECTION_DERIVATIVES, FORCE_MEMORY, FORCES, ROBOT, SOLVER
from robokit.contact.vectors import matrix, nothing, put, vector, write_row
from robokit.engine.loops.dual import differentiated
from robokit.engine.loops.fields import kernel_of
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, while_loop, zeros
from robokit.spatial.scalars import added, sqrt, where

FROM_STEP = """
    gravity dt R p V seat ground_shapes shape_restitution between near_pair near_direction near_corners
    counts contact_shapes contact_pair contact_feature contact_constraint contact_bounces c_g c_ahead
"""
"""Arrays that the step has left, or was given, besides the shapes."""

AT_ONCE = 3  # motions: turns, then shifts. Six are 1.3 times as fast, and take twice as long to compile
SIZE = 7  # numbers of a contact that move: normal, place, gap


@functools.cache
def detection_derivatives_kernel() -> LoopKernel:
    """The kernel of ``contact_motion``; it serves all robots."""
    tables = (*ROBOT, *POSES, *FORCES, *MEMORY, *SOLVER, *CONTACTS, *CONSTRAINTS, *FORCE_MEMORY)
    of_step = {a.name: a for a in tables}
    taken = [replace(of_step[name], role="in") for name in FROM_STEP.split()]
    given = (*SHAPES, *taken, *DETECTION_DERIVATIVES)
    return kernel_of("contact_motions", contact_motions, given, by_source=True)


def contact_motions(x: Any) -> None:
    """``contact_motion`` of the contacts of pairs that press; NaN for contacts that are not found again."""
    g, balls = vector(x.gravity), zeros(x.n_shapes, 3)
    still = FALL * sqrt(g.dot(g)) * x.dt[0] * x.dt[0]
    moves = zeros(AT_ONCE, x.n_bodies, 9), zeros(AT_ONCE, x.n_bodies, 3)

    def contact(c: Any, last: Any) -> Any:
        k = x.contact_pair[c]
        i = x.contact_constraint[c]
        presses = (x.c_g[i, 2] > 0.0) | (x.c_g[i, 2] + x.c_ahead[i, 2] > 0.0) | (x.contact_bounces[c] != 0)

        def look() -> Any:
            shapes = x.contact_shapes[c, 0], x.contact_shapes[c, 1]
            far = gap_of_balls(x, shapes, balls, still, x.dt[0])[1]  # as in detect.py
            for_range(2, lambda part: _along(x, c, far, moves, part))
            return 1 * k

        return cond(presses & (k != last), look, lambda: last)

    def unknown(c: Any) -> None:
        for m in range(6):
            x.contact_motion[m, c, SIZE - 1] = math.nan

    def ball(s: Any) -> None:
        write_row(balls, s, place(x, x.shape_body[s], vector(x.shape_centre, s)))

    for_range(x.n_shapes, ball)
    for_range(x.counts[0], unknown)
    for_range(x.counts[0], contact, -1)


def _along(x: Any, first: Any, far: Any, moves: tuple[Any, Any], part: Any) -> None:
    """Contacts of a pair while its second body rotates (part 0), or translates (1).

    ``first``: of its contacts; ``far``: gap below which contacts count [m]; ``moves``: changes of R and p by
    motion, initially 0.
    """
    b = x.shape_body[x.contact_shapes[first, 1]]
    arrays = {name: array for name, array in vars(x).items() if name != "once"}
    tangents = {"R": moves[0], "p": moves[1], "cell": x.cell_moves}
    tangents |= {"inner_points": x.points_move, "inner_faces": x.faces_move}
    tangents = {name: [array[m] for m in range(AT_ONCE)] for name, array in tangents.items()}
    tangents["found_again"] = [x.contact_motion[AT_ONCE * part + m] for m in range(AT_ONCE)]

    def again(*given: Any) -> None:
        _look(SimpleNamespace(**dict(zip(arrays, given, strict=True))), first, far)

    for m in range(AT_ONCE):
        unit = of_motion([where(AT_ONCE * part + m == c, 1.0, 0.0) for c in range(6)])
        _move(x, b, unit, tangents["R"][m], tangents["p"][m])
    differentiated(again, [], arrays, tangents, AT_ONCE)
    for m in range(AT_ONCE):
        _move(x, b, of_motion([0.0] * 6), tangents["R"][m], tangents["p"][m])


def _move(x: Any, b: Any, M: Motion, R_moves: Any, p_moves: Any) -> None:
    """Changes of the pose of body b as it moves by M about the origin."""
    columns = [M.ang.cross(Vector3(*column)) for column in matrix(x.R, b).T.rows]
    write_row(R_moves, b, [number for row in zip(*columns, strict=True) for number in row])
    write_row(p_moves, b, M.lin + M.ang.cross(vector(x.p, b)))


def _look(x: Any, first: Any, far: Any) -> None:
    """Find the contacts of the first one's pair again, in dual numbers, to ``found_again`` in their previous
    order.
    """
    k, shapes = x.contact_pair[first], (x.contact_shapes[first, 0], x.contact_shapes[first, 1])
    direction, corners, at = zeros(3), zeros(6, kind="integer"), zeros(1, kind="integer")
    near = while_loop(lambda m: (m < x.n_near - 1) & (x.near_pair[m] != k), lambda m: m + 1, 0)
    known = x.near_pair[near] == k
    for i in range(3):
        direction[i] = where(known, x.near_direction[near, i], 0.0)
    for i in range(6):
        corners[i] = where(known, x.near_corners[near, i], -1)
    at[0] = first

    def add(feature: Any, point: Any, gap: Any, n: Any) -> None:
        """It is the next one with this feature: some have the same."""

        def is_other(c: Any) -> Any:
            same = (x.contact_pair[c] == k) & (x.contact_feature[c] == feature)
            return cond(c < x.counts[0], lambda: where(same, 0, 1), lambda: 0) > 0

        def write() -> None:
            on_b = where(x.shape_body[shapes[0]] == 0, 0.5 * gap, 0.0)  # as in detect.py
            write_row(x.found_again, c, [*n, *(Vector3(*point) + Vector3(*n) * on_b), gap])
            put(at, 0, c + 1)

        c = while_loop(is_other, lambda c: c + 1, at[0])
        cond(c < x.counts[0], write, nothing)

    narrow(x, shapes, far, direction, corners, add)


def frame_motion(x: Any, c: Any, A: Motion, B: Motion) -> Motion:
    """Motion of the frame of contact c about the origin, as its bodies move by A and B.

    The frame does not rotate about its normal.
    """
    p, n = vector(x.contact_place, c), vector(x.contact_frame, c, 6)
    rates = _rates(x, c, B - A)
    w = n.cross(A.ang.cross(n) + Vector3(*rates[:3]))
    return Motion(w, A.lin + A.ang.cross(p) + Vector3(*rates[3:6]) - w.cross(p))


def gap_rate(x: Any, c: Any, A: Motion, B: Motion) -> Any:
    """How the gap of contact c changes, as its bodies move by A and B."""
    return _rates(x, c, B - A)[6]


def _rates(x: Any, c: Any, D: Motion) -> list[Any]:
    """Changes of normal, place and gap of contact c, as b moves by D and a stands still."""
    return [added(x.contact_motion[m, c, k] * d for m, d in enumerate(D)) for k in range(SIZE)]
