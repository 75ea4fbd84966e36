"""Distance of any two of boxes, capsules and spheres, and the points in which they touch.

Source: box_distance.py, box_points.py, capsule_distance.py.
"""

from __future__ import annotations

from robokit.sim.collide.box_distance import Block, box_gap
from robokit.sim.collide.box_points import Meeting, box_meetings, points_of
from robokit.sim.collide.capsule_distance import nearest_points, normal_and_distance
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, sqrt


def meetings_of(a: int, b: int) -> int:
    """Points that two shapes touch in at most, by the numbers of their axes."""
    return points_of(min(a, b)) if max(a, b) == 3 else 1


def shape_gap(a: Block, b: Block) -> Scalar:
    """Distance, below 0 where they overlap [m]."""
    if len(a.axes) == 3:
        return box_gap(a, b)
    if len(b.axes) == 3:
        return box_gap(b, a)
    x, y = nearest_points(*_segment(a), *_segment(b))
    d = x - y
    return sqrt(d.dot(d)) - (a.radius + b.radius)


def shape_meetings(a: Block, b: Block, otherwise: Vector3) -> list[Meeting]:
    """The points in which two shapes touch.

    Args:
        a, b: the shapes.
        otherwise: direction from a to b where the axes of two capsules cross.
    """
    if len(a.axes) == 3:
        return box_meetings(a, b)
    if len(b.axes) == 3:
        return [Meeting(phi, -n, x) for phi, n, x in box_meetings(b, a)]
    x, y = nearest_points(*_segment(a), *_segment(b))
    n, distance = normal_and_distance(y, x, otherwise)
    gap = distance - (a.radius + b.radius)
    return [Meeting(gap, n, y - n * (b.radius + 0.5 * gap))]


def _segment(block: Block) -> tuple[Vector3, Vector3 | None]:
    """Start and vector of the axis of a capsule; None for that of a sphere."""
    if not block.axes:
        return block.center, None
    half = block.axes[0] * block.half[0]
    return block.center - half, half * 2.0
