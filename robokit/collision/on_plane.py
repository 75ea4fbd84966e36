"""Contacts of many rows with planes of the world: each shape's corners in turn, in the lanes of all rows."""

from __future__ import annotations

from typing import Any

from robokit.collision.detect import FALL, gap_of_balls, write_contact
from robokit.collision.narrow import on_plane, place
from robokit.collision.support import vector
from robokit.spatial import Vector3
from robokit.spatial.control_flow import call, cond, for_range, zeros
from robokit.spatial.scalars import sqrt


def detect_on_planes(x: Any) -> None:
    """Fill CONTACTS as :func:`robokit.collision.detect.detect` does, where each pair begins with a plane.

    Which pair and corner is looked at is the same in all lanes. Nothing is remembered.

    Args:
        x: with SHAPES, PAIRS, POSES and CONTACTS, ``gravity`` and ``dt``.
    """
    for k in range(4):
        x.counts[k] = 0
    balls, g, dt = zeros(x.n_shapes, 3), Vector3(*(x.gravity[c] for c in range(3))), x.dt[0]
    still = FALL * sqrt(g.dot(g)) * dt * dt

    def ball(s: Any) -> None:
        for c, number in enumerate(place(x, x.shape_body[s], vector(x.shape_centre, s))):
            balls[s, c] = number

    def pair(k: Any) -> None:
        gap, far = gap_of_balls(x, k, balls, still, dt)
        cond(gap < far, lambda: on_plane(x, k, far, None, lambda *contact: add(k, *contact)), lambda: None)

    def add(k: Any, feature: Any, point: Any, gap: Any, n: Any) -> None:
        def write(feature: Any, p: Any, gap: Any, n: Any) -> None:
            write_contact(x, k, feature, Vector3(*p), gap, Vector3(*n))

        call(write, feature, tuple(point), gap, tuple(n))

    for_range(x.n_shapes, ball)
    for_range(x.n_pairs, pair)
