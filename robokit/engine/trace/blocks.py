"""Texts that are taken several times, recorded once (``scalars.shared``).

Where code is dear all such texts are, elsewhere the large ones, whose code takes long to compile.

The text is recorded on nodes that stand for its arguments, the *parameters*. What depends on them is the
*body* of the block. All else that it computes is the same each time and belongs to the program around it. A
call is a node (CALL, block, arguments...), each of its values a node (RESULT, call, position).

An argument that only matters under a condition is recorded as a guarded choice, so that what leads to it is
skipped where the condition does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robokit.engine.trace.graph import Block
from robokit.engine.trace.ops import CALL, GUARD, PARAMETER, RESULT
from robokit.engine.trace.program import Program
from robokit.engine.trace.scalar import Scalar, where


def shared(
    key: object,
    text: Callable[..., Sequence[Any]],
    arguments: Sequence[Any],
    matter: Sequence[Any],
    large: bool = False,
    numbers: bool = False,
) -> list[Any]:
    """As :func:`robokit.spatial.scalars.shared`: a call, where the graph shares texts."""
    graph = next(x.graph for x in arguments if type(x) is Scalar)
    if graph.shared is None or graph.within or (graph.large and not large):
        return list(text(*arguments))
    if numbers:
        arguments = [x if type(x) is Scalar else Scalar(graph, graph.constant(float(x))) for x in arguments]
    given = [
        where(needed, x, 0.0, GUARD) if type(x) is Scalar else x
        for x, needed in zip(arguments, matter, strict=True)
    ]
    # Constants are part of the text: with others it is another one.
    pattern = (key, *(None if type(x) is Scalar else float(x) for x in given))
    block = graph.shared.get(pattern)
    if block is None:
        number = len(graph.blocks)
        parameters = [graph.add((PARAMETER, number, k)) for k, x in enumerate(given) if type(x) is Scalar]
        rest = iter(parameters)
        graph.within = True
        values = text(*(Scalar(graph, next(rest)) if type(x) is Scalar else x for x in given))
        graph.within = False
        block = Block(parameters, [graph.plain(x.ref) if type(x) is Scalar else float(x) for x in values])
        graph.shared[pattern] = block
        graph.blocks.append(block)
    number = next(k for k, each in enumerate(graph.blocks) if each is block)
    operands = [graph.plain(x.ref) for x in given if type(x) is Scalar]
    call = graph.add((CALL, graph.constant(float(number)), *operands))
    return [
        Scalar(graph, graph.add((RESULT, call, graph.constant(float(k))))) if type(x) is int else x
        for k, x in enumerate(block.results)
    ]


def sharing(x: Scalar, large: bool = False) -> bool:
    """Whether the graph of a scalar shares texts, or large ones."""
    return x.graph.shared is not None and (large or not x.graph.large)


def called(program: Program, call: int) -> int:
    """Number of the block that a node (CALL, ...) takes."""
    return int(program.nodes[program.nodes[call][1]][1])


def position(program: Program, result: int) -> int:
    """Which of a block's values a node (RESULT, ...) is."""
    return int(program.nodes[program.nodes[result][2]][1])
