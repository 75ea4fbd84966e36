"""Records what a function computes: the function runs once, on scalars that note what is done with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from robokit.engine.trace.graph import Graph, Shares
from robokit.engine.trace.ops import INPUT, TABLE
from robokit.engine.trace.program import Program
from robokit.engine.trace.scalar import Scalar, Table
from robokit.engine.trace.words import Recorder, noting
from robokit.interpreter import without_collector
from robokit.spatial.control_flow import recorded_by
from robokit.spatial.scalars import telling


def trace(
    text: Callable[..., Sequence[Sequence[Any]]],
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    budget: int = 400_000,
    signed: bool = False,
    tables: Sequence[tuple[str, int]] = (),
    shares: Shares = False,
    columns: int = 1,
    equations: bool = False,
) -> Program:
    """Record what a function computes.

    Args:
        text: called with one list of scalars per input, then one table per table; returns one flat,
            row-major sequence of scalars (traced or plain numbers) per output.
        inputs: (name, number of scalars) of each input.
        outputs: (name, shape) of each output.
        budget: most nodes to record.
        signed: whether constants keep their sign (see :class:`Graph`).
        tables: (name, number of entries) of each table.
        shares: which functions that are taken several times are recorded once (trace/blocks.py).
        columns: most columns of a function that are computed side by side (``vmap``).
        equations: whether the program will be differentiated, and says which numbers solve equations
            (trace/words.py).

    Raises:
        TraceTooLarge: the function records more than budget nodes.
        ValueError: the function returns other sizes than declared.
    """
    graph = Graph(budget, signed, shares, columns)
    arguments = [
        [Scalar(graph, graph.add((INPUT, k, offset))) for offset in range(size)]
        for k, (_, size) in enumerate(inputs)
    ]
    given = [Table(graph, graph.add((TABLE, k))) for k in range(len(tables))]
    # Half the time of a trace would go into looking for cycles among nodes.
    with (
        without_collector(),
        telling(graph.mark),
        recorded_by(Recorder(graph)),
        noting(graph if equations else None),
    ):
        returned = [list(row) for row in text(*arguments, *given)]
    sizes = [math.prod(shape) for _, shape in outputs]
    if [len(row) for row in returned] != sizes:
        raise ValueError(f"the text returned {[len(row) for row in returned]} scalars, declared are {sizes}")
    results = [[x.ref if type(x) is Scalar else float(x) for x in row] for row in returned]
    return Program.finish(graph, inputs, outputs, results, tables)
