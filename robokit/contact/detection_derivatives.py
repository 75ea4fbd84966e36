"""How contacts move with their bodies: the derivatives of their detection.

The pairs that press are looked at again, in dual numbers (engine/loops/dual.py), while the second body moves
by the six unit motions about the origin and the first one stands still. So places, normals and gaps move as
what detection makes of the shapes, whatever touches. A face, edge or corner that is about to be another one
is a jump; the derivative is that of what touches.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.1.
Cost: about ten times that of the detection of these pairs.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

from robokit.collision.detect import FALL, gap_of_balls
from robokit.collision.fields import CONTACTS, MEMORY, PAIRS, POSES, SHAPES
from robokit.collision.narrow import narrow
from robokit.collision.support import place
from robokit.contact.fields import CONSTRAINTS, DETECTION_DERIVATIVES, FORCE_MEMORY, ROBOT, SOLVER
from robokit.contact.vectors import matrix, nothing, vector
from robokit.engine.loops.dual import differentiated
from robokit.engine.loops.fields import kernel_of
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range, while_loop, zeros
from robokit.spatial.scalars import sqrt, where

DIRECTIONS = 6
NORMAL, PLACE, GAP = 0, 3, 6
"""Columns of ``contact_motion``."""

MOVES = {
    "cell": "cell_moves",
    "inner_points": "points_move",
    "inner_faces": "faces_move",
    "found_again": "contact_motion",
}
"""Arrays of numbers that move with the bodies, and their derivatives."""

TAKEN = """
    gravity dt R p V pair_shapes pair_slack near_pair near_direction near_corners
    counts contact_pair contact_feature contact_constraint contact_bounces c_g
"""


@functools.cache
def detection_derivatives_kernel() -> LoopKernel:
    """The kernel of ``contact_motion``, of all robots."""
    tables = (*ROBOT, *POSES, *PAIRS, *MEMORY, *SOLVER, *CONTACTS, *CONSTRAINTS, *FORCE_MEMORY)
    of_step = {a.name: a for a in tables}
    taken = [ArrayOf(a.name, a.shape, "in", a.kind) for a in (of_step[name] for name in TAKEN.split())]
    arrays = (*SHAPES, *taken, *DETECTION_DERIVATIVES)
    return kernel_of("contact_motions", contact_motions, arrays, by_source=True)


def contact_motions(x: Any) -> None:
    """``contact_motion`` of the contacts of pairs that press; NaN of what is not found again."""
    balls, g = zeros(x.n_shapes, 3), Vector3(*(x.gravity[k] for k in range(3)))
    moves = zeros(DIRECTIONS, x.n_bodies, 9), zeros(DIRECTIONS, x.n_bodies, 3)
    still = FALL * sqrt(g.dot(g)) * x.dt[0] * x.dt[0]

    def contact(c: Any, last: Any) -> Any:
        k = x.contact_pair[c]
        presses = (x.c_g[x.contact_constraint[c], 2] > 0.0) | (x.contact_bounces[c] > 0)

        def look() -> Any:
            _look(x, c, k, balls, still, moves)
            return 1 * k

        return cond(presses & (k != last), look, lambda: last)

    def unknown(c: Any) -> None:
        for m in range(DIRECTIONS):
            x.contact_motion[m, c, GAP] = math.nan

    for_range(x.counts[0], unknown)
    for_range(x.counts[0], contact, -1)


def _look(x: Any, first: Any, k: Any, balls: Any, still: Any, moves: tuple[Any, Any]) -> None:
    """At pair k, as detection has."""
    bodies = [x.shape_body[x.pair_shapes[k, side]] for side in range(2)]
    for side, body in enumerate(bodies):
        s = x.pair_shapes[k, side]
        for c, number in enumerate(place(x, body, vector(x.shape_centre, s))):
            balls[s, c] = number
    _, far = gap_of_balls(x, k, balls, still, x.dt[0])
    names = [name for name in vars(x) if name != "once"]
    tangents = {name: getattr(x, of) for name, of in MOVES.items()} | dict(zip("Rp", moves, strict=True))
    tangents = {name: [array[m] for m in range(DIRECTIONS)] for name, array in tangents.items()}

    def again(*given: Any) -> None:
        _again(SimpleNamespace(**dict(zip(names, given, strict=True))), first, k, far)

    _move(x, moves, bodies[1], 1.0)
    differentiated(again, [], {name: getattr(x, name) for name in names}, tangents, DIRECTIONS)
    _move(x, moves, bodies[1], 0.0)


def _move(x: Any, moves: tuple[Any, Any], b: Any, rate: float) -> None:
    """Let body b move by six unit motions about the origin, or stand still."""
    R, p = matrix(x.R, b), vector(x.p, b)
    for m in range(3):
        e = Vector3(*(rate if c == m else 0.0 for c in range(3)))
        columns = [e.cross(Vector3(*(R.rows[i][c] for i in range(3)))) for c in range(3)]
        for c, column in enumerate(columns):
            for i, number in enumerate(column):
                moves[0][m, b, 3 * i + c] = number
        for c, number in enumerate(e.cross(p)):
            moves[1][m, b, c] = number
        for c, number in enumerate(e):
            moves[1][3 + m, b, c] = number


def _again(x: Any, first: Any, k: Any, far: Any) -> None:
    """The contacts of pair k to ``found_again``, all in dual numbers."""
    direction, corners = zeros(3), zeros(6, kind="integer")
    m = while_loop(lambda m: (m < x.n_near - 1) & (x.near_pair[m] != k), lambda m: m + 1, 0)
    for c in range(3):
        direction[c] = where(x.near_pair[m] == k, x.near_direction[m, c], 0.0)
    for c in range(6):
        corners[c] = where(x.near_pair[m] == k, x.near_corners[m, c], -1)

    at = zeros(1, kind="integer")  # they come in the order that they had; some have the same feature
    at[0] = first

    def is_other(feature: Any, c: Any) -> Any:
        def differs() -> Any:
            return where((x.contact_pair[c] == k) & (x.contact_feature[c] == feature), 0, 1)

        return cond(c < x.counts[0], differs, lambda: 0) > 0

    def add(feature: Any, point: Any, gap: Any, n: Any) -> None:
        p, n = Vector3(*point), Vector3(*n)
        p = p + n * where(x.shape_body[x.pair_shapes[k, 0]] == 0, 0.5 * gap, 0.0)  # as in detect.py
        c = while_loop(lambda c: is_other(feature, c), lambda c: c + 1, at[0])

        def write() -> None:
            for column, number in enumerate((*n, *p, gap)):
                x.found_again[c, column] = number
            at[0] = c + 1

        cond(c < x.counts[0], write, nothing)

    narrow(x, k, far, direction, corners, add)


def frame_motion(x: Any, c: Any, A: Motion, B: Motion) -> Motion:
    """The motion of the frame of contact c about the origin, as its bodies move by A and B; it does not turn
    about its normal.
    """
    p, n = vector(x.contact_place, c), vector(x.contact_frame, c, 6)
    turned, moved, _ = _by_motion(x, c, B - A)
    w = n.cross(A.ang.cross(n) + turned)
    return Motion(w, A.lin + A.ang.cross(p) + moved - w.cross(p))


def gap_rate(x: Any, c: Any, A: Motion, B: Motion) -> Any:
    """How the gap of contact c changes, as its bodies move by A and B."""
    return _by_motion(x, c, B - A)[2]


def _by_motion(x: Any, c: Any, D: Motion) -> tuple[Vector3, Vector3, Any]:
    """Changes of normal, place and gap of contact c, as b moves by D while a stands still."""
    rates = [0.0] * 7
    for m, d in enumerate(D):
        for k in range(7):
            rates[k] = rates[k] + x.contact_motion[m, c, k] * d
    return Vector3(*rates[:3]), Vector3(*rates[3:6]), rates[6]
