"""Texts that pairs of bodies repeat, written once for all of them (``scalars.shared``).

The distance of two shapes is one text for each kind of shapes, boxes, capsules or spheres, with the numbers
of the shapes as arguments. Sorting in what was found is one text for each number of rows. The results are
those of the plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from robokit.sim.collide.box_distance import Block
from robokit.sim.collide.box_points import Meeting
from robokit.sim.collide.shape_distance import shape_meetings
from robokit.spatial import Vector3
from robokit.spatial.scalars import Scalar, shared, where

Row = list[Scalar]
"""Numbers of a point where two shapes are nearest; the first is their distance."""

SHORT = 4
"""Comparisons up to which rows are sorted in by plain text."""


def meetings(a: Block, b: Block, otherwise: Vector3) -> list[Meeting]:
    """The points in which two shapes touch, as of :func:`shape_meetings`."""
    if len(b.axes) == 3 > len(a.axes):
        return [Meeting(phi, -n, x) for phi, n, x in meetings(b, a, -otherwise)]
    kinds = (len(a.axes), len(b.axes))
    if kinds == (0, 0):
        return shape_meetings(a, b, otherwise)

    def text(*given: Scalar) -> list[Scalar]:
        rest = iter(given)
        first, second = (_block(axes, rest) for axes in kinds)
        way = otherwise if kinds[0] == 3 else _vector(rest)
        return [x for phi, n, x in shape_meetings(first, second, way) for x in (phi, *n, *x)]

    given = [*_numbers(a), *_numbers(b), *(() if kinds[0] == 3 else otherwise)]
    found = shared(("meetings", kinds), text, given, [True] * len(given), large=True, numbers=True)
    rows = (iter(found[k : k + 7]) for k in range(0, len(found), 7))
    return [Meeting(next(row), _vector(row), _vector(row)) for row in rows]


def sorted_in(slots: Sequence[Row], found: Sequence[Row]) -> list[Row]:
    """The slots, the nearest first, with those of ``found`` that are nearer."""
    width, count = len(slots[0]), len(slots)

    def text(*given: Scalar) -> list[Scalar]:
        rows = [list(given[k : k + width]) for k in range(0, len(given), width)]
        kept, others = rows[:count], rows[count:]
        for best in others:
            for k, slot in enumerate(kept):
                nearer = best[0] < slot[0]
                kept[k], best = (
                    [where(nearer, x, y) for x, y in zip(best, slot, strict=True)],
                    [where(nearer, y, x) for x, y in zip(best, slot, strict=True)],
                )
        return [x for row in kept for x in row]

    given = [x for row in (*slots, *found) for x in row]
    if count * len(found) <= SHORT:
        values = text(*given)
    else:
        key = ("sorted in", width, count, len(found))
        values = shared(key, text, given, [True] * len(given), large=True, numbers=True)
    return [list(values[k : k + width]) for k in range(0, len(values), width)]


def _numbers(block: Block) -> list[Scalar]:
    """What changes from block to block; a box has no radius."""
    values = [*block.center, *(x for axis in block.axes for x in axis), *block.half]
    return values if len(block.axes) == 3 else [*values, block.radius]


def _block(axes: int, values: Iterator[Scalar]) -> Block:
    """The opposite of :func:`_numbers`."""
    center, edges = _vector(values), tuple(_vector(values) for _ in range(axes))
    half = tuple(islice(values, axes))
    return Block(center, edges, half, 0.0 if axes == 3 else next(values))


def _vector(values: Iterator[Scalar]) -> Vector3:
    return Vector3(*islice(values, 3))
