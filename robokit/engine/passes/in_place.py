"""Arguments and results of texts that are called several times stay where they are computed.

All calls of a text share the places of its arguments and results. A value that is only needed until a call,
and computed after the call before it, is stored in the place of the argument. A result that is only needed
until the next call is read where the body has left it. What is needed for longer is copied.

Values of blocks with lanes: side_by_side.py; of calls that share no places: windows.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from robokit.engine.passes.guards import Path
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CALL, CONST, RESULT, TRUTHS
from robokit.engine.trace.program import Program


def in_place(
    program: Program,
    line: list[int],
    inside: dict[int, Path],
    borrowed: Sequence[set[int]],
    apart: Collection[int] = (),
) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
    """What need not be copied.

    Args:
        program: the graph.
        line: its own line, in order.
        inside: guards around nodes.
        borrowed: what each body reads of the program around it.
        apart: blocks whose calls have places of their own (windows.py).

    Returns:
        (call, number) of the argument that a node is, and the value of a body that a result is.
    """
    nodes, own = program.nodes, {n: k for k, n in enumerate(line)}
    last = dict(own)
    calls: defaultdict[int, list[int]] = defaultdict(list)
    for n, k in own.items():
        for operand in (*nodes[n][1:], *inside.get(n, ())):
            if operand in own:
                last[operand] = k
        if nodes[n][0] == CALL:
            number = called(program, n)
            if program.blocks[number].lanes == 1 and number not in apart:
                calls[number].append(n)
    lasting = {r for row in program.results for r in row if type(r) is int}.union(*borrowed)
    arguments: dict[int, tuple[int, int]] = {}
    ends: dict[int, int] = {}
    for number, several in calls.items():
        block = program.blocks[number]
        handed = set(block.results)
        before = -1
        for call, after in zip(several, [*several[1:], 0], strict=True):
            ends[call] = own.get(after, len(line))
            for k, operand in enumerate(nodes[call][2:]):
                node = nodes[operand]
                if (
                    before < own.get(operand, -1)
                    and last[operand] == own[call]
                    and not (operand in arguments or operand in lasting)
                    and not (node[0] in (CALL, RESULT) or node[0] in TRUTHS)
                    and block.parameters[k] not in handed
                ):
                    arguments[operand] = call, k
            before = own[call]
    body, results = program.bodies(), dict[int, int]()
    for n in line:
        if nodes[n][0] == RESULT and last[n] <= ends.get(nodes[n][1], -1) and n not in lasting:
            number = called(program, nodes[n][1])
            value = program.blocks[number].results[position(program, n)]
            if body.get(int(value)) == number and nodes[int(value)][0] > CONST:  # no argument handed back
                results[n] = int(value)
    return arguments, results
