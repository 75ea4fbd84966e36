"""Kernels whose outputs are the same bits on every target: ``reproducible=True``.

IEEE 754 fixes + - * / and the square root. What else could differ is fixed here:

    contraction    none: no product is fused with a sum, for WebAssembly and old processors cannot
    order          that of the recorded graph: sums are not rearranged
    sine, cosine   the engine's own polynomials, also where the graph is run by Python (spatial/scalars.py)
    zeros          outputs hold no -0: which zero a sum of opposite numbers gives depends on how signs are
                   kept while a function is recorded, and on nothing else

Tiny numbers count: the processor must not take them for 0, and is asked.
NaN is one value: which of its bit patterns an operation gives is the processor's choice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from robokit.engine.passes.replay import node_values
from robokit.engine.trace.graph import Node, Program, TraceTooLarge
from robokit.engine.trace.ops import ADD, CONST
from robokit.engine.trace.record import RunTimeLoop
from robokit.errors import RobokitError, UnknownName, WrongType

REPRODUCIBLE_VARIABLE = "ROBOKIT_REPRODUCIBLE"

_HALF = [0.5]  # in a list, so that Python does not compute with it before the process has begun

_WORDS = {"": False, "0": False, "1": True}


def wanted(value: bool | None) -> bool:
    """What a caller asks for; None leaves it to the environment.

    Raises WrongType: neither True nor False nor None; UnknownName: the environment asks for something else.
    """
    if value is None:
        word = os.environ.get(REPRODUCIBLE_VARIABLE, "")
        if word not in _WORDS:
            raise UnknownName("value", word, ("0", "1"), f"(environment variable {REPRODUCIBLE_VARIABLE})")
        return _WORDS[word] and _exact()
    if not isinstance(value, bool):
        raise WrongType("reproducible", value, "True, False or None")
    return value and _exact()


def _exact() -> bool:
    """True; a library may have told the processor to take tiny numbers for 0.

    Raises RobokitError: one has.
    """
    if sys.float_info.min * _HALF[0] == 0.0:
        raise RobokitError(
            "reproducible=True: this process takes numbers below 2.2e-308 for 0, so its results are its own; "
            "a library compiled with -ffast-math has asked the processor to: load it later, or not at all"
        )
    return True


def plain_zeros(program: Program) -> Program:
    """The same program with 0 in place of -0 in its outputs; nodes are renumbered."""
    needed, stored = set(program.order), set(program.returned())
    nodes: list[Node] = [program.nodes[0], (CONST, 0.0)]
    at, result = [0] * len(program.nodes), dict[int, int]()
    order: list[int] = []
    marks = iter([*program.marks, len(program.nodes)])
    moved, mark = list[int](), next(marks)

    def put(node: Node) -> int:
        order.append(len(nodes))
        nodes.append(node)
        return order[-1]

    for number, node in enumerate(program.nodes):
        while mark == number:
            moved.append(len(nodes))
            mark = next(marks)
        if number and node[0] <= CONST:
            at[number] = len(nodes)
            nodes.append(node)
        elif number in needed:
            at[number] = put((node[0], *(at[operand] for operand in node[1:])))
        if number in stored:
            result[number] = put((ADD, at[number], 1))
    while len(moved) < len(program.marks):
        moved.append(len(nodes))
    return replace(
        program,
        nodes=nodes,
        order=order,
        results=[[result[r] if type(r) is int else r + 0.0 for r in row] for row in program.results],
        marks=moved,
        blocks=[block.numbered(at) for block in program.blocks],
    )


def recorded(program: Callable[[], Program], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it was recorded, for Python to run: the same operations as in machine code.

    One that is too long to record runs as it stands. It has no machine code either.
    """

    def run(*arguments: Sequence[Any]) -> Sequence[Sequence[Any]]:
        try:
            graph = program()
        except TraceTooLarge:
            return function(*arguments)
        except RunTimeLoop:
            found = getattr(function, "again", function)(*arguments)
            return [[0.0 + x for x in row] for row in found]
        value = node_values(graph, arguments)
        return [[0.0 + (value[r] if type(r) is int else r) for r in row] for row in graph.results]

    return run
