"""Signs of outputs where their values are computed.

A value whose minus is an output gets its sign when the text is over (trace/program.py): all of them last,
when the values are long out of the registers. Here such an operation comes right after the last of its
operands.
"""

from __future__ import annotations

from dataclasses import replace

from robokit.engine.trace.ops import NEG, SUB
from robokit.engine.trace.program import Program


def signs_early(program: Program) -> Program:
    """The same program in such an order; its nodes keep their numbers, which may then not ascend."""
    nodes = program.nodes
    read = {operand for n in program.order for operand in nodes[n][1:]}
    read.update(r for block in program.blocks for r in block.results if type(r) is int)
    place = {n: k for k, n in enumerate(program.order)}
    after: dict[int, list[int]] = {}
    for n in program.order:
        if nodes[n][0] in (NEG, SUB) and n not in read:
            last = max((place.get(operand, -1) for operand in nodes[n][1:]), default=-1)
            if last >= 0:
                after.setdefault(program.order[last], []).append(n)
    moved = {n for several in after.values() for n in several}
    order: list[int] = []
    for n in program.order:
        if n not in moved:
            order.append(n)
            order += after.get(n, ())
    return replace(program, order=order) if moved else program
