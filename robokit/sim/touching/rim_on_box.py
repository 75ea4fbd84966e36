"""Where the rim of a cylinder, or its end, touches a box of the ground: at a face, or at an edge.

The nearest face of a point that is inside, which serves for corners, turns the normal of a wheel that climbs
a step by a quarter turn as soon as it sinks in. So the normal is that of the pair: of those on which rim and
box are farthest apart, or least inside each other,

    face   f                 phi = f . (c - r down) - h        the lowest point of the rim
    rim    e x t             phi = (|d| - r) n . rho           where the edge pierces the plane of the rim
    end    a, if the edge    phi = a . (c - y)                 the point y of the edge that is deepest in it
           is under it

c, a and r are the rim's centre, axis and radius. Of an edge with direction e, c + d is in the plane of the
rim, rho = -d / |d|, and t = a x rho is the rim's tangent there. Where the lowest point is beside the face,
the nearest of the end over its border takes its place: so a can stands on what of it is on a table.

Source: separating axes of a circle and an edge, to first order in the depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robokit.sim.touching.surfaces import FAR, TINY, PlacedSolid, Touch
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, clamp, maximum, minimum, sqrt, where
from robokit.spatial.vector3 import chosen

PARALLEL = 1e-6
"""Cosine of an edge and a rim's axis below which the edge does not pierce the plane of the rim."""

LYING = 0.01
"""Squared sine of an edge and the axis below which the edge lies along the cylinder, not under its end; and
cosine of a face's normal and the axis below which the end is not over the face."""

STANDING = 0.9
"""Cosine of the axis and a face's normal above which neighbours of the lowest point may touch."""

LEVEL = 1e-3
"""Depths that differ by less are those of what lies flat, over the radius."""

STEEPNESS = 200.0
"""An edge under the end of a cylinder touches at its deepest place from a slope of 1/STEEPNESS, and in the
middle where it is parallel: so the place does not jump from one side to the other."""


@dataclass(frozen=True)
class PlacedRim:
    """A rim of a cylinder at its place, world axes.

    Attributes:
        center: of the rim, or of the middle between two of which the lower one is meant [m].
        axis: unit vector.
        radius: [m].
        lowest: normal -> its point that is to touch a face [m].
        half: half the distance of two rims; 0 of one [m].
        rounding: radius of the tube around the rim [m].
        neighbour: whether it is one of the points beside the lowest, which touch faces only.
    """

    center: Vector3
    axis: Vector3
    radius: Scalar
    lowest: Callable[[Vector3], Vector3]
    half: float = 0.0
    rounding: Scalar = 0.0
    neighbour: bool = False


def rim_on_box(rim: PlacedRim, solid: PlacedSolid) -> tuple[Vector3, Touch]:
    """The place of a rim, or of the end in it, that touches a box first [m], and what is there."""
    c, a, radius = solid.inward(rim.center - solid.p), solid.inward(rim.axis), rim.radius
    if rim.half:
        c = c + a * where(solid.inner(c, 0.0).n.dot(a) > 0.0, -rim.half, rim.half)
    sign = Vector3(*(where(s < 0.0, -1.0, 1.0) for s in c))
    c, a, half = _product(sign, c), _product(sign, a), Vector3(*solid.sizes)

    # The face: that from which the rim is farthest.
    low = [s - radius * sqrt(maximum(1.0 - k * k, 0.0)) for s, k in zip(c - half, a, strict=True)]
    x = where((low[0] > low[1]) & (low[0] > low[2]), 1.0, 0.0)
    y = where(low[1] > low[2], 1.0 - x, 0.0)
    apart, face = maximum(low[0], maximum(low[1], low[2])), Vector3(x, y, 1.0 - x - y)
    lowest = rim.lowest(solid.outward(_product(sign, face)))
    phi, place = _on_face(face, c, half, a, radius, _product(sign, solid.inward(lowest - solid.p)))
    n = face

    edges = [Vector3(*(1.0 if j == k else 0.0 for j in range(3))) for k in range(3)]
    # What lies nearly flat has the face, so that the place does not jump with every tremor.
    flat = LEVEL * radius
    for (found, m, at), margin in (
        *((_at_edge(e, c - half, a, radius), 0.0) for e in edges),
        *((_under_end(e, face, c, half, a, radius), flat) for e in edges),
    ):
        more = found > apart + margin
        apart = where(more, found, apart)
        if rim.neighbour:
            continue
        n = chosen(more, m, n)
        phi = where(more, found - rim.rounding, phi)
        place = chosen(more, c + at - m * rim.rounding, place)
    if rim.neighbour:
        standing = (abs(face.dot(a)) > STANDING) & (phi > apart - LEVEL * radius)
        phi = where(standing, phi, FAR)  # else an edge touches, or the lowest point alone
    return solid.p + solid.outward(_product(sign, place)), solid.touch(phi, _product(sign, n))


def _on_face(
    face: Vector3, c: Vector3, half: Vector3, a: Vector3, radius: Scalar, lowest: Vector3
) -> tuple[Scalar, Vector3]:
    """Distance and place of a point of the rim over a face; beside the face, of the end over its border."""
    rows = zip(face, lowest, half, strict=True)
    inside = Vector3(*(where(f > 0.5, s, clamp(s, -h, h)) for f, s, h in rows))
    moved = inside - lowest
    beside = moved.dot(moved) > 0.0
    fa = face.dot(a)
    slope = a.dot(inside - c) / where(abs(fa) > LYING, fa, 1.0)
    ended = inside - face * slope
    out = ended - c
    held = (abs(fa) > LYING) & (out.dot(out) < radius * radius)
    place = chosen(beside, ended, lowest)
    return where(beside, where(held, face.dot(ended - half), FAR), face.dot(lowest - half)), place


def _at_edge(e: Vector3, out: Vector3, a: Vector3, radius: Scalar) -> tuple[Scalar, Vector3, Vector3]:
    """Distance, normal and place from the centre, where the edge along e pierces the plane of the rim.

    All in the box's axes, mirrored such that the rim's centre is beside the positive faces; -FAR where it is
    one of the faces that the rim touches.

    Args:
        out: the centre's distance from the faces [m].
        a: axis of the rim.
    """
    across = _across(e, out)
    ea = e.dot(a)
    pierced = abs(ea) > PARALLEL
    d = e * (across.dot(a) / where(pierced, ea, 1.0)) - across
    size = sqrt(d.dot(d) + TINY)
    rho = d * (-1.0 / size)
    er = e.dot(rho)
    scale = 1.0 / sqrt(ea * ea + er * er + TINY)
    n = (rho * abs(ea) - a * where(ea < 0.0, -er, er)) * scale
    between = pierced & (_smallest(n + e) > 0.0)
    return where(between, (size - radius) * (abs(ea) * scale), -FAR), n, rho * -radius


def _under_end(
    e: Vector3, face: Vector3, c: Vector3, half: Vector3, a: Vector3, radius: Scalar
) -> tuple[Scalar, Vector3, Vector3]:
    """The same, where the edge is under the end of the cylinder."""
    facing = where(_smallest(a + e * 2.0) > 0.0, 1.0, where(_smallest(e * 2.0 - a) > 0.0, -1.0, 0.0))
    n = a * facing
    # In the plane of the end, the edge is a line past its middle.
    across, ea = _across(e, c - half), e.dot(a)
    off, flat = e - a * ea, across - a * a.dot(across)
    size = maximum(off.dot(off), TINY)
    nearest = off.dot(flat) / size
    flat = flat - off * nearest
    beside = radius * radius - flat.dot(flat)
    chord = sqrt(maximum(beside, 0.0) / size)
    at = e.dot(c) + nearest + clamp(STEEPNESS * radius * e.dot(n), -chord, chord)
    at = clamp(at, -e.dot(half), e.dot(half))
    place = e * (at - e.dot(c)) - across
    # Else the lowest point of the rim is over the face, and touches that.
    (x, u, f), (y, v, g) = (row for *row, s in zip(across, n, face, e, strict=True) if s == 0.0)
    shift = radius * u * v
    beyond = ((g < 0.5) | (x + shift * _over_root(v) > 0.0)) & ((f < 0.5) | (y + shift * _over_root(u) > 0.0))
    under = (abs(facing) > 0.5) & (beside > 0.0) & (size > LYING) & beyond
    return where(under, -n.dot(place), -FAR), n, place


def _over_root(c: Scalar) -> Scalar:
    """1 / sin of the angle whose cosine this is."""
    return 1.0 / sqrt(maximum(1.0 - c * c, TINY))


def _across(e: Vector3, x: Vector3) -> Vector3:
    """What of a vector is not along e, one of the axes."""
    return x - e * e.dot(x)


def _smallest(a: Vector3) -> Scalar:
    return minimum(a.x, minimum(a.y, a.z))


def _product(a: Vector3, b: Vector3) -> Vector3:
    return Vector3(*(x * y for x, y in zip(a, b, strict=True)))
