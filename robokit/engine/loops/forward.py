"""Derivatives of functions on flat arrays that have loops, in forward mode: dual numbers (loops/dual.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.engine.loops.dual import jvp
from robokit.engine.signature import FlatFunction
from robokit.spatial.control_flow import for_range, zeros
from robokit.spatial.scalars import where


def jacobian_with_loops(
    text: FlatFunction, arguments: Sequence[Sequence[Any]], of: Sequence[int]
) -> list[list[Any]]:
    """The derivatives of all outputs with respect to some inputs.

    Args:
        text: one sequence of scalars for each input -> one flat sequence for each output.
        arguments: of it.
        of: numbers of the inputs.

    Returns:
        for each output and each of these inputs the matrix (scalars of the output) x (scalars of the input),
        row by row.
    """
    units = [(k, j) for k in of for j in range(len(arguments[k]))]
    values, *columns = _along(text, arguments, [{unit: 1.0} for unit in units])
    found = []
    for output, value in enumerate(values):
        for k in of:
            own = [column[output] for column, unit in zip(columns, units, strict=True) if unit[0] == k]
            found.append([column[i] for i in range(len(value)) for column in own])
    return found


def jacobian_by_loop(
    text: FlatFunction, arguments: Sequence[Sequence[Any]], of: Sequence[int], sizes: Sequence[int]
) -> list[list[Any]]:
    """The same in a loop over the directions, whose code is that of one.

    Args:
        text, arguments, of: as of :func:`jacobian_with_loops`.
        sizes: numbers of scalars of the outputs.
    """
    units = [(k, j) for k in of for j in range(len(arguments[k]))]
    count = len(units)
    columns = zeros(sum(sizes) * count)

    def turn(direction: Any) -> None:
        seed = {unit: where(direction == i, 1.0, 0.0) for i, unit in enumerate(units)}
        found = [x for row in _along(text, arguments, [seed])[1] for x in row]
        for i, x in enumerate(found):
            columns[i * count + direction] = 1.0 * x

    for_range(count, turn)
    found, begin = [], 0
    for size in sizes:
        for k in of:
            own = [i for i, unit in enumerate(units) if unit[0] == k]
            found.append([columns[(begin + i) * count + j] for i in range(size) for j in own])
        begin += size
    return found


def along_with_loops(
    text: FlatFunction, arguments: Sequence[Sequence[Any]], direction: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """The derivative of all outputs along a direction of the first inputs."""
    seed = {(k, j): d for k, row in enumerate(direction) for j, d in enumerate(row)}
    return _along(text, arguments, [seed])[1]


def _along(
    text: FlatFunction, arguments: Sequence[Sequence[Any]], seeds: Sequence[dict[tuple[int, int], Any]]
) -> list[list[list[Any]]]:
    """The outputs, and for each direction their derivatives."""
    moving = sorted({place for seed in seeds for place in seed})

    def function(*numbers: Any) -> list[list[Any]]:
        given = dict(zip(moving, numbers, strict=True))
        rows = []
        for k, row in enumerate(arguments):
            still = not any(place[0] == k for place in moving)
            rows.append(row if still else [given.get((k, j), x) for j, x in enumerate(row)])
        return [list(row) for row in text(*rows)]

    values = [arguments[k][j] for k, j in moving]
    directions = [[seed.get(place) for place in moving] for seed in seeds]
    return list(jvp(function, values, *directions))
