"""Guarded blocks: what is only needed where a condition holds runs only if it holds in some lane.

A guard is recorded as choices between a value and what stands for it (``control_flow.cond``), so that every
lane gets the same number whether the block ran for it or for its neighbour. All that nothing but the values
of such choices depends on is *inside* the guard: this is found here, from the graph. What is also used
elsewhere is outside. A value that goes from one block to a later one with the same condition is inside too.
So a choice decides what is right, and a branch only what is skipped: any node may be computed where it need
not be.

emit/straight_line.py writes the branches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from typing import Any

from robokit.engine.trace.graph import Node, Program
from robokit.engine.trace.ops import CALL, CONST, FIRST, GUARD, LOOKUP, OPERATIONS, RESULT, SECOND, SELECT
from robokit.engine.trace.record import called

Path = tuple[int, ...]
"""The conditions of the guards that a node is inside of, the outermost first."""

Common = Callable[[Path, Path], Path]
"""What two paths have in common."""

CHOICES = (GUARD, SELECT)

LEAST = 8
"""Fewest nodes that a branch pays for."""

DEAR = (LOOKUP, CALL)
"""Nodes that pay for a branch alone."""


def paths(program: Program) -> dict[int, Path]:
    """For each node inside a guard its path; a node that no guard is around is missing."""
    found = _paths(program, _shared)
    return found if _nested_alike(set(found.values())) else _paths(program, _beginning)


def _nested_alike(found: set[Path]) -> bool:
    """Whether no guard is inside another one here and around it there: then no blocks wait for each other."""
    inside: defaultdict[int, set[int]] = defaultdict(set)
    for path in found:
        for outer, inner in pairwise(path):
            inside[inner].add(outer)
    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return False
    return True


def _paths(program: Program, common: Common) -> dict[int, Path]:
    """The same, where what is read under several paths is inside what they have in common."""
    nodes = program.nodes
    conditions = {nodes[n][1] for n in program.order if nodes[n][0] == GUARD}
    if not conditions:
        return {}
    found: list[Any] = [None] * len(nodes)  # None: nothing has read it so far
    for row in program.results:
        for r in row:
            if type(r) is int:
                found[r] = ()
    inner: dict[tuple[Path, int], Path] = {}
    for number in reversed(program.order):
        here = found[number]
        node = nodes[number]
        op = node[0]
        if op in CHOICES and node[1] in conditions and whole(nodes, node[1]) not in here:
            condition = whole(nodes, node[1])
            within = inner.setdefault((here, condition), (*here, condition))
            _narrow(found, node[2], within, common)
            for operand in (node[1], node[3]):
                _narrow(found, operand, here, common)
        elif not here:
            for operand in node[1:]:
                found[operand] = here
        else:
            for operand in node[1:]:
                before = found[operand]
                if before is None:
                    found[operand] = here
                elif before is not here:
                    found[operand] = common(before, here)
        if op == CALL:  # all calls come after their body: its path is what theirs have in common
            for r in program.blocks[called(program, number)].results:
                if type(r) is int:
                    _narrow(found, r, here, common)
    for number in program.order if program.blocks else ():
        if nodes[number][0] == RESULT:  # read at once: the next call writes it anew
            found[number] = found[nodes[number][1]]
    body = program.bodies()
    around = _around_bodies(program, found, common)
    for number in program.order if body else ():
        path = found[number]
        if number in body:  # a call is skipped as a whole: inside it there are only the guards of the body
            found[number] = path[around[body[number]] :]
        else:  # what a body needs under a condition of its own is computed before
            known = next((k for k, condition in enumerate(path) if condition in body), len(path))
            found[number] = path[:known]
    return {n: found[n] for n in program.order if found[n]}


def whole(nodes: Sequence[Node], condition: int) -> int:
    """The condition of a branch: of one lane of a wide condition all of it, which others branch on, too."""
    return nodes[condition][1] if nodes[condition][0] in (FIRST, SECOND) else condition


def _around_bodies(program: Program, found: list[Any], common: Common) -> dict[int, int]:
    """How many guards are around all calls of each block: the first of the paths of its nodes."""
    around: dict[int, Path] = {}
    for number in program.order if program.blocks else ():
        if program.nodes[number][0] == CALL:
            block = called(program, number)
            around[block] = common(around.get(block, found[number]), found[number])
    return {block: len(path) for block, path in around.items()}


def _narrow(found: list[Any], number: int, path: Path, common: Common) -> None:
    """A node is read under these conditions, too."""
    before = found[number]
    found[number] = path if before is None else common(before, path)


def _shared(a: Path, b: Path) -> Path:
    """The guards that two paths share, in the order of the first."""
    return a if a == b else tuple(condition for condition in a if condition in b)


def _beginning(a: Path, b: Path) -> Path:
    """The guards that two paths share from the outermost on."""
    if a == b:
        return a
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return a[:length]


def opened(program: Program) -> Program:
    """The same program without choices inside a guard on its own condition: there the value is as good."""
    inside = paths(program)
    nodes, same = list(program.nodes), dict[int, int]()
    for number in program.order if inside else ():
        node = nodes[number]
        if not same.keys().isdisjoint(node[1:]):
            nodes[number] = (node[0], *(same.get(operand, operand) for operand in node[1:]))
        if node[0] in CHOICES and node[1] in inside.get(number, ()):
            same[number] = nodes[number][2]
    if not same:
        return program
    needed = {r for row in program.results for r in row if type(r) is int}
    needed |= {same.get(r, r) for block in program.blocks for r in block.results if type(r) is int}
    order = []
    for number in reversed(program.order):
        if number in needed:
            order.append(number)
            needed.update(nodes[number][1:])
    order.reverse()
    blocks = [
        replace(block, results=[same.get(r, r) if type(r) is int else r for r in block.results])
        for block in program.blocks
    ]
    made = replace(program, nodes=nodes, order=order, blocks=blocks)
    made.counts = made.counted(order)
    return made


def guarded(program: Program) -> dict[str, int]:
    """Operations that are inside guards, by what they count as."""
    return program.counted(paths(program))


def blocks(
    program: Program,
    order: list[int] | None = None,
    reads: Sequence[set[int]] = (),
    path: dict[int, Path] | None = None,
) -> tuple[list[int], dict[int, Path]]:
    """An order of evaluation in which guarded blocks are in one piece, and the path of each node.

    A node inside a guard waits until the first choice that needs a value of the block, or the first call. The
    choice itself waits until it is read, so that the block's values are used where they are at hand.

    Args:
        program: the graph.
        order: some of its nodes; None for all.
        reads: what the body of each shared function reads from the program around it.
        path: as in :func:`paths`, where it is known.
    """
    order = program.order if order is None else order
    path = paths(program) if path is None else path
    if not path:
        return order, {}
    nodes = program.nodes
    waiting: defaultdict[Path, list[int]] = defaultdict(list)
    line: list[int] = []
    placed: set[int] = set()

    def walk(numbers: list[int], here: Path) -> None:
        for number in numbers:
            own = path.get(number, ())
            if own != here:
                waiting[own[: len(here) + 1]].append(number)
                continue
            node = nodes[number]
            if node[0] in CHOICES and nodes[node[2]][0] > CONST and node[2] not in placed:
                enter((*here, whole(nodes, node[1])))
            if node[0] == CALL:
                flush(here, reads[called(program, number)])
            line.append(number)
            placed.add(number)

    def enter(block: Path) -> None:
        numbers = waiting.pop(block, [])
        # What the block needs where more holds than in another block waits there.
        flush(block[:-1], {operand for number in numbers for operand in nodes[number][1:]})
        walk(numbers, block)

    def flush(here: Path, wanted: set[int]) -> None:
        for block in [b for b in waiting if b[:-1] == here and not wanted.isdisjoint(waiting[b])]:
            if block in waiting:
                enter(block)
                flush(block, wanted)

    walk(_sunk(program, order, reads, path), ())
    return line, _worth(program, line, path)


def _sunk(program: Program, order: list[int], reads: Sequence[set[int]], path: dict[int, Path]) -> list[int]:
    """The order with each choice of a guard before the first node that reads it; see :func:`blocks`."""
    nodes, conditions = program.nodes, {c for own in path.values() for c in own}
    line: list[int] = []
    later: set[int] = set()

    def need(wanted: Iterable[int]) -> None:
        for number in sorted(later.intersection(wanted)):
            if number in later:
                later.remove(number)
                need(nodes[number][1:])
                line.append(number)

    for number in order:
        if nodes[number][0] == GUARD and number not in conditions:
            later.add(number)
            continue
        need(nodes[number][1:])
        if nodes[number][0] == CALL:
            need(reads[called(program, number)])
        line.append(number)
    need(list(later))
    return line


def _worth(program: Program, line: list[int], path: dict[int, Path]) -> dict[int, Path]:
    """The paths without the guards of blocks that are too short for a branch of their own."""
    kept: dict[int, Path] = {}
    for own, group in groupby(line, lambda n: path.get(n, ())):
        run = list(group)
        dear = any(program.nodes[n][0] in DEAR or OPERATIONS[program.nodes[n][0]].paired for n in run)
        if own and len(run) < LEAST and not dear:
            own = own[:-1]
        if own:
            kept |= dict.fromkeys(run, own)
    return kept
