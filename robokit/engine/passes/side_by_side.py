"""Where values of blocks with lanes are in memory, so that few are copied (``scalars.side_by_side``).

A block that is called once has the memory of its arguments and results to itself. What it returns stays where
it is, and what it is given is stored in its lanes where it is computed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from robokit.engine.trace.blocks import called, lane, position
from robokit.engine.trace.ops import CALL, CONST, RESULT
from robokit.engine.trace.program import Program


@dataclass
class Copy:
    """Values of neighbouring lanes that go to neighbouring places of an output.

    Attributes:
        nodes: of the values.
        output, position: where the first one goes.
    """

    nodes: list[int]
    output: int
    position: int


def once(program: Program, insides: list[list[int]]) -> dict[int, tuple[int, int]]:
    """The results of blocks with lanes that are called once: (value of the body, lane) of each.

    Args:
        program: the graph.
        insides: the nodes of each body.
    """
    alone = _alone(program)
    own = {k: set(insides[k]) for k in alone}
    found = {}
    for n in program.order if alone else ():
        if program.nodes[n][0] == RESULT:
            block = called(program, program.nodes[n][1])
            value = program.blocks[block].results[position(program, n)]
            if block in alone and value in own[block]:
                found[n] = int(value), lane(program, n)
    return found


def written_at_once(
    program: Program, results: dict[int, tuple[int, int]], copies: dict[int, Copy]
) -> dict[int, Copy]:
    """The copies that a body writes itself where it computes the value, by its node: there is no other use.

    Args:
        program: the graph.
        results: as :func:`once` found them.
        copies: as :func:`copied` found them.
    """
    uses = Counter(results[n][0] for n in results)
    uses.update(operand for n in program.order for operand in program.nodes[n][1:] if operand in uses)
    whole = {n: copy for n, copy in copies.items() if n in results}
    return {
        results[n][0]: copy
        for n, copy in whole.items()
        if results[n][1] == 0 and uses[results[n][0]] == len(copy.nodes)
    }


def in_lanes(program: Program, line: list[int], slot: dict[int, int]) -> set[tuple[int, int]]:
    """Give arguments of blocks that are called once their place among the lanes; (call, number) of each.

    Args:
        program: the graph.
        line: the program's own line.
        slot: place of each node that has one; those of the arguments are added.
    """
    alone, own, found = _alone(program), set(line), set[tuple[int, int]]()
    for call in line if alone else ():
        node = program.nodes[call]
        if node[0] == CALL and called(program, call) in alone:
            parameters = program.blocks[called(program, call)].parameters
            for k, operand in enumerate(node[2:]):
                column, place = divmod(k, len(parameters))
                if operand in own and operand not in slot:
                    slot[operand] = slot[parameters[place]] + column
                    found.add((call, k))
    return found


def passed_on(
    program: Program, results: dict[int, tuple[int, int]], line: list[int]
) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """Arguments that are one value of another block, lane by lane: both are the same place in memory.

    Args:
        program: the graph.
        results: as :func:`once` found them.
        line: the program's own line.

    Returns:
        the value of each such parameter, and (call, number) of what need not be copied.
    """
    alone, body = _alone(program), program.bodies()
    same, found = dict[int, int](), set[tuple[int, int]]()
    for call in line if results else ():
        node = program.nodes[call]
        if node[0] != CALL or called(program, call) not in alone:
            continue
        block = program.blocks[called(program, call)]
        count = len(block.parameters)
        for k, parameter in enumerate(block.parameters):
            column = [results.get(n) for n in node[2 + k :: count]]
            used = len(column)
            while (
                used
                and column[used - 1] is None
                and program.nodes[node[2 + k + (used - 1) * count]][0] == CONST
            ):
                used -= 1  # lanes that nobody reads
            values = {each[0] if each and each[1] == at else 0 for at, each in enumerate(column[:used])}
            value = values.pop() if len(values) == 1 else 0
            if value and program.blocks[body[value]].lanes == block.lanes:
                same[parameter] = value
                found.update((call, k + at * count) for at in range(block.lanes))
    return same, found


def _alone(program: Program) -> set[int]:
    """Blocks with lanes that are called once."""
    calls = Counter(called(program, n) for n in program.order if program.nodes[n][0] == CALL)
    return {k for k, count in calls.items() if count == 1 and program.blocks[k].lanes > 1}


def copied(program: Program, line: list[int]) -> dict[int, Copy]:
    """Runs of results of one value that are outputs side by side, by their first node."""
    nodes = program.nodes
    read = {operand for n in program.order for operand in nodes[n][1:]}
    read.update(r for block in program.blocks for r in block.results if type(r) is int)
    goes: dict[int, list[tuple[int, int]]] = {}
    for k, row in enumerate(program.results):
        for p, r in enumerate(row):
            if type(r) is int and nodes[r][0] == RESULT:
                goes.setdefault(r, []).append((k, p))
    found: dict[int, Copy] = {}
    run, before = Copy([], 0, 0), None
    for n in line:
        to = goes.get(n, ())
        if n in read or len(to) != 1:
            continue
        own = nodes[n][1], position(program, n), lane(program, n) - to[0][1], to[0][0]
        if own == before and to[0][1] == run.position + len(run.nodes):
            run.nodes.append(n)
        else:
            run, before = Copy([n], *to[0]), own
        if len(run.nodes) > 1:
            found[run.nodes[0]] = run
    return found
