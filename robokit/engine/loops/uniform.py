"""Which values are the same in all lanes: they stay plain numbers, and a loop whose count is one has no mask.

A value is the same where all that it is computed from is. What is carried out of a loop whose lanes stop at
different turns is not, nor what a condition chooses that differs between lanes. The index of a for-loop
always is: all lanes are in the same turn, some of them done.
"""

from __future__ import annotations

from robokit.engine.loops.record import (
    COND,
    FOR,
    LOAD,
    PARAMETER,
    VALUE,
    WHILE,
    LoopGraph,
    Region,
    operands,
)


def varying(graph: LoopGraph, of_state: list[bool]) -> set[int]:
    """Nodes whose values may differ between lanes.

    Args:
        graph: the recording.
        of_state: for each array, whether every state has one of its own.
    """
    found: set[int] = set()
    while True:
        before = len(found)
        _look(graph, graph.regions[0], of_state, found)
        if len(found) == before:
            return found


def _look(graph: LoopGraph, region: Region, of_state: list[bool], found: set[int]) -> None:
    for number in region.nodes:
        node = graph.nodes[number]
        opcode = node[0]
        if opcode in (FOR, WHILE):
            _loop(graph, node, number, of_state, found)
        elif opcode == COND:
            branches = [graph.regions[k] for k in node[2:]]
            for branch in branches:
                _look(graph, branch, of_state, found)
            for k, pair in enumerate(zip(*(branch.results for branch in branches), strict=True)):
                if node[1] in found or not found.isdisjoint(pair):
                    found.add(_key(number, k))
        elif opcode == VALUE:
            if _key(node[1], node[2]) in found:
                found.add(number)
        elif opcode == PARAMETER:
            continue
        elif (opcode == LOAD and of_state[node[1]]) or not found.isdisjoint(operands(node)):
            found.add(number)


def _loop(graph: LoopGraph, node: tuple, number: int, of_state: list[bool], found: set[int]) -> None:
    region = graph.regions[node[1]]
    starts = node[3:] if node[0] == FOR else node[2:]
    carried = region.parameters[len(region.parameters) - len(starts) :]
    _look(graph, region, of_state, found)
    stops = node[2] if node[0] == FOR else region.test
    for k, (start, parameter, result) in enumerate(zip(starts, carried, region.results, strict=True)):
        if stops in found or not found.isdisjoint((start, result)):
            found |= {parameter, _key(number, k)}


def _key(control: int, position: int) -> int:
    """Stands for a value that a control operation leaves."""
    return -(control * 4096 + position + 1)
