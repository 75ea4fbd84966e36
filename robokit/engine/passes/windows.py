"""Calls whose arguments and results have places of their own, in code of batches.

What a text returns for each of many columns may be what the kernel returns. It would be copied from the
place that all calls share to one that lasts. So each call has a *window* of memory: its arguments, then its
results. The body is told where the window begins. Whoever computes an argument stores it there, and whoever
needs a result reads it there.

Where results are only needed until the next call, a shared place stays in the caches: in_place.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CALL, CONST, RESULT, TRUTHS
from robokit.engine.trace.program import Program

LASTING = 0.5
"""Least part of a text's results that the kernel returns."""


@dataclass
class Windows:
    """Where arguments and results of such calls are.

    Attributes:
        blocks: whose calls have windows.
        within: place in the window of each parameter and of each value that the body leaves there.
        first: place where the window of each call begins.
        placed: (call, number) of each argument that is computed into its place.
        slot: place of each such argument, and of each result.
        results: nodes (RESULT, ...) that are such places, and need no operation.
        slots: places in all, those before included.
    """

    blocks: set[int]
    within: dict[int, int] = field(default_factory=dict)
    first: dict[int, int] = field(default_factory=dict)
    placed: set[tuple[int, int]] = field(default_factory=set)
    slot: dict[int, int] = field(default_factory=dict)
    results: set[int] = field(default_factory=set)
    slots: int = 0


def blocks_with_windows(program: Program, line: list[int]) -> set[int]:
    """Blocks that are called several times from the program's own line, and most of whose results last.

    Args:
        program: the graph.
        line: its own line, in order.
    """
    nodes = program.nodes
    lasting = {r for row in program.results for r in row if type(r) is int}
    here = Counter(called(program, n) for n in line if nodes[n][0] == CALL)
    calls = Counter(called(program, n) for n in program.order if nodes[n][0] == CALL)
    results = [n for n in line if nodes[n][0] == RESULT]
    returned = Counter(called(program, nodes[n][1]) for n in results)
    kept = Counter(called(program, nodes[n][1]) for n in results if n in lasting)
    return {
        k
        for k, count in here.items()
        if count > 1
        and count == calls[k]
        and program.blocks[k].lanes == 1
        and kept[k] >= LASTING * returned[k] > 0
    }


def windows(
    program: Program, line: list[int], blocks: set[int], first: int, taken: Collection[int]
) -> Windows:
    """Places for the calls of these blocks.

    Args:
        program: the graph.
        line: its own line, in order, without what has its place already.
        blocks: as :func:`blocks_with_windows` found them.
        first: place from which on there is room.
        taken: further nodes that have a place already.
    """
    nodes, body, own = program.nodes, program.bodies(), set(line).difference(taken)
    found = Windows(blocks, slots=first)
    sizes = {}
    for k in blocks:
        block = program.blocks[k]
        mine = [r for r in block.results if type(r) is int and body.get(r) == k]
        places = {n: place for place, n in enumerate(dict.fromkeys([*block.parameters, *mine]))}
        found.within |= places
        sizes[k] = len(places)
    for n in line:
        node = nodes[n]
        if node[0] == CALL and called(program, n) in blocks:
            found.first[n] = found.slots
            found.slots += sizes[called(program, n)]
            for k, operand in enumerate(node[2:]):
                op = nodes[operand][0]
                made_here = operand in own and op > CONST and op not in (CALL, RESULT) and op not in TRUTHS
                if made_here and operand not in found.slot:
                    found.slot[operand] = found.first[n] + k
                    found.placed.add((n, k))
        elif node[0] == RESULT and node[1] in found.first:
            value = program.blocks[called(program, node[1])].results[position(program, n)]
            if value in found.within:
                found.slot[n] = found.first[node[1]] + found.within[int(value)]
                found.results.add(n)
    return found
