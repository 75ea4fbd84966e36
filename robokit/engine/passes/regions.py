"""Plans a program with shared functions: its own line and that of each body, and one memory for all.

Places are given to inputs, tables and outputs, then to each block's arguments and results, then to what must
outlive a chunk. What a body reads from the program around it stays there until the last call. Short bodies
need no places for arguments and results: these are handed over on the stack.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from robokit.engine.passes.chunks import STORE, Schedule, cut
from robokit.engine.passes.guards import Path, blocks, paths
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import CALL, CONST, RESULT

STACKED = 250
"""Arguments, and results, that are handed over on the stack at most: hosts allow 1000."""


@dataclass
class Regions:
    """Where and when everything happens; places are counted in numbers."""

    # inputs, tables, outputs: first place of each
    inputs: list[int]
    tables: list[int]
    outputs: list[int]
    arguments: list[int]  # first place of each block's arguments
    results: list[dict[int, int]]  # place of each result that is read, by position, of each block
    stacked: list[bool]  # whether arguments and results of each block are on the stack
    lines: list[Schedule]  # the program's own line, then that of each block
    size: int  # places in all


@dataclass
class _Memory:
    """Places that are given out and come back."""

    size: int
    free: list[int] = field(default_factory=list)

    def take(self, count: int = 1) -> int:
        """First of so many new places."""
        self.size += count
        return self.size - count

    def borrow(self) -> int:
        """A place that may have been used before."""
        return self.free.pop() if self.free else self.take()


def regions(program: Program, size: int) -> Regions:
    """Plan a program.

    Args:
        program: what to compute.
        size: nodes per chunk, about.
    """
    nodes, memory = program.nodes, _Memory(0)
    inputs = [memory.take(count) for _, count in program.inputs]
    tables = [memory.take(count) for _, count in program.tables]
    outputs = [memory.take(math.prod(shape)) for _, shape in program.outputs]
    body = program.bodies()
    arguments = [memory.take(len(block.parameters)) for block in program.blocks]
    results: list[dict[int, int]] = [{} for _ in program.blocks]
    for number in program.order:
        if nodes[number][0] == RESULT:
            at = position(program, number)
            places = results[called(program, nodes[number][1])]
            if at not in places:
                places[at] = memory.take()
    slot: dict[int, int] = {}
    for k, block in enumerate(program.blocks):
        slot |= {p: arguments[k] + j for j, p in enumerate(block.parameters)}
        own_results = {int(block.results[at]): place for at, place in results[k].items()}
        slot |= {r: place for r, place in own_results.items() if body.get(r) == k and r not in slot}
    line, insides = program.lines()
    own = [line, *insides]
    path = paths(program)
    borrowed = borrowed_by(program, own, body, path)
    orders, inside = [], dict[int, Path]()
    for order in own:
        line, within = blocks(program, order, borrowed, path)
        orders.append(line)
        inside |= within
    kept: set[int] = set()
    for one in borrowed:
        kept |= one
    lines, ends = [], list[int]()
    for line in orders:
        # A body runs while the values of the functions around it live, but not those of another body.
        around = [
            end for end, caller in zip(ends, orders, strict=False) if _calls(program, caller, len(ends) - 1)
        ]
        memory.free, memory.size = [], max([memory.size] if not ends else [ends[0], *around])
        lines.append(_line(program, line, inside, slot, memory, kept, borrowed, size))
        ends.append(memory.size)
    stacked = [
        len(line.chunks) == 1 and max(len(block.parameters), len(found)) <= STACKED
        for line, block, found in zip(lines[1:], program.blocks, results, strict=True)
    ]
    return Regions(inputs, tables, outputs, arguments, results, stacked, lines, max(ends))


def borrowed_by(
    program: Program, orders: list[list[int]], body: dict[int, int], inside: dict[int, Path]
) -> list[set[int]]:
    """What each body reads from the program around it, conditions included."""
    nodes = program.nodes
    found = []
    for k, line in enumerate(orders[1:]):
        read = {r for r in program.blocks[k].results if type(r) is int}
        for number in line:
            read.update(nodes[number][1:])
            read.update(inside.get(number, ()))
        found.append({n for n in read if nodes[n][0] > CONST and n not in body})
    for k in reversed(range(len(found))):  # a function calls those that come after it
        for number in orders[1 + k]:
            if nodes[number][0] == CALL:
                found[k] |= found[called(program, number)]
    return found


def _line(
    program: Program,
    line: list[int],
    inside: dict[int, Path],
    slot: dict[int, int],
    memory: _Memory,
    kept: set[int],
    borrowed: list[set[int]],
    size: int,
) -> Schedule:
    """Chunks of a line and places of what lives longer than one; adds the places to ``slot``.

    Args:
        program: the graph.
        line: its nodes in order.
        inside: guards around nodes.
        slot: place of each node that has one.
        memory: where further places come from.
        kept: nodes that bodies read.
        borrowed: the same by block.
        size: nodes per chunk, about.
    """
    nodes = program.nodes
    for n in line:
        if nodes[n][0] == RESULT:  # follows its call
            inside[n] = inside.get(nodes[n][1], ())
    weight = Counter(r for row in program.results for r in row if type(r) is int)
    chunks = _with_calls(program, cut(program, line, [1 + STORE * weight[n] for n in line], size))
    home = {n: k for k, chunk in enumerate(chunks) for n in chunk}
    last = dict(home)
    for n, k in home.items():
        reads = [*nodes[n][1:], *inside.get(n, ())]
        if nodes[n][0] == CALL:
            reads += borrowed[called(program, n)]
        for operand in reads:
            if operand in last:
                last[operand] = max(last[operand], k)
    ends = {n for n in home if n in slot}  # the results of a body
    stored = {n for n in home if last[n] > home[n] or n in kept or n in ends}
    stored -= {n for n in home if nodes[n][0] == CALL}  # has no value of its own
    ending: list[list[int]] = [[] for _ in chunks]
    for k, chunk in enumerate(chunks):
        if k:
            memory.free += ending[k - 1]
        for n in chunk:
            if n in stored and n not in ends:
                slot[n] = memory.borrow()
                ending[last[n]].append(slot[n])
    return Schedule(1, chunks, slot, stored, [], {}, {}, memory.size, inside)


def _calls(program: Program, line: list[int], block: int) -> bool:
    """Whether a line calls a block."""
    return any(program.nodes[n][0] == CALL and called(program, n) == block for n in line)


def _with_calls(program: Program, chunks: list[list[int]]) -> list[list[int]]:
    """Chunks in which the results of a call follow it at once."""
    nodes = program.nodes
    results: defaultdict[int, list[int]] = defaultdict(list)
    for chunk in chunks:
        for n in chunk:
            if nodes[n][0] == RESULT:
                results[nodes[n][1]].append(n)
    return [
        [each for n in chunk if nodes[n][0] != RESULT for each in (n, *results.get(n, ()))]
        for chunk in chunks
    ]
