"""Distance of two capsules in closed form, over generic scalars and without a branch.

The nearest points of two segments: the unconstrained minimum over one parameter is clamped to its segment,
then the best partner on the other, then the best partner back. Where the segments are parallel every point of
their common stretch is nearest; the one in its middle is taken.

Source: C. Ericson, "Real-Time Collision Detection" (2005), section 5.1.9.  Differs: parallel segments meet in
the middle of their common stretch, by a regularisation of 1e-9 of the determinant; no branches.
Cost: about 80 operations for two capsules, 35 for a capsule and a sphere, 12 for two spheres.
"""

from __future__ import annotations

from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt, where

PARALLEL = 1e-9
TOUCHING = 1e-9
"""Axes nearer than this have no direction between them [m]."""


def unit_range(x: Scalar) -> Scalar:
    """x, clamped to 0..1."""
    return minimum(maximum(x, 0.0), 1.0)


def nearest_on_segment(p: Vector3, a: Vector3, along: Vector3) -> Scalar:
    """Parameter 0..1 of the point a + s along, along not zero, that is nearest to p."""
    return unit_range((p - a).dot(along) / along.dot(along))


def nearest_of_segments(p: Vector3, u: Vector3, q: Vector3, w: Vector3) -> tuple[Scalar, Scalar]:
    """Parameters (s, t), each 0..1, of the nearest points p + s u and q + t w; u and w are not zero."""
    r = p - q
    a, e, b = u.dot(u), w.dot(w), u.dot(w)
    c, f = u.dot(r), w.dot(r)
    # Where the second segment's ends lie along the first: their common stretch is between them.
    first, last = unit_range(-c / a), unit_range((b - c) / a)
    middle = 0.5 * (first + last)
    bent = PARALLEL * a * e
    s = unit_range((b * f - c * e + bent * middle) / (maximum(a * e - b * b, 0.0) + bent))
    t = unit_range((b * s + f) / e)
    return unit_range((b * t - c) / a), t


def nearest_points(p: Vector3, u: Vector3 | None, q: Vector3, w: Vector3 | None) -> tuple[Vector3, Vector3]:
    """Nearest points of the segments p..p+u and q..q+w; None for a segment that is a point."""
    if u is None and w is None:
        return p, q
    if u is None:
        assert w is not None
        return p, q + w * nearest_on_segment(p, q, w)
    if w is None:
        return p + u * nearest_on_segment(q, p, u), q
    s, t = nearest_of_segments(p, u, q, w)
    return p + u * s, q + w * t


def normal_and_distance(x: Vector3, y: Vector3, otherwise: Vector3) -> tuple[Vector3, Scalar]:
    """Unit vector from y to x, and their distance [m]; ``otherwise`` where they coincide."""
    d = x - y
    square = d.dot(d)
    apart = square > TOUCHING * TOUCHING
    distance = sqrt(where(apart, square, 1.0))
    n = Vector3(*(where(apart, m / distance, o) for m, o in zip(d, otherwise, strict=True)))
    return n, where(apart, distance, 0.0)
