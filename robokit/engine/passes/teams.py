"""Shares a program's straight line among workers that go on together: what each does between two meetings.

A *round* is what the workers do between two meetings. It is taken from the next operations of the line, as
recorded: so few values are alive at a time. Of these, operations that depend on each other go to the same
worker; how deep a round goes into the window is chosen so that no worker is left with most of it. What a
round gives to a later one has a place in memory that all share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.graph import Node, Program
from robokit.engine.trace.ops import CALL, COS, RESULT, SIN

UNEVEN = 1.5
"""How many times its share of a round a worker may have, where operations depend on each other."""

SLACK = 1.15
"""How many times its share of a round a worker may have in order to read less from others."""

TREE = 24
"""Operations at most of values that are read once and so stay with what reads them."""


@dataclass
class Shared:
    """A line that is shared."""

    rounds: list[list[list[int]]]  # for each round, and in it for each worker, its operations in order
    slot: dict[int, int]  # place of each value that a later round reads
    slots: int  # places in all


def expanded(program: Program, marked: Collection[int]) -> tuple[Program, set[int]]:
    """The program without calls: the body of each stands where it is called.

    Args:
        program: the graph.
        marked: some of its nodes.

    Returns:
        the program, and these nodes and their copies.
    """
    if not program.blocks:
        return program, set(marked)
    nodes: list[Node] = list(program.nodes)
    line, bodies = program.lines()
    at, order, found = dict[int, int](), list[int](), set(marked)
    values: dict[int, dict[int, int]] = {}

    def put(number: int, moved: Mapping[int, int]) -> int:
        node = nodes[number]
        operands = [moved.get(n, at.get(n, n)) for n in node[1:]]
        if operands == list(node[1:]) and moved is at:
            order.append(number)
            return number
        nodes.append((node[0], *operands))
        order.append(len(nodes) - 1)
        if number in found:
            found.add(order[-1])
        return order[-1]

    for number in line:
        node = nodes[number]
        if node[0] == CALL:
            block = called(program, number)
            operands = [at.get(n, n) for n in node[2:]]
            moved = dict(zip(program.blocks[block].parameters, operands, strict=True))
            for n in bodies[block]:
                moved[n] = put(n, moved)
            values[number] = moved
        elif node[0] == RESULT:
            result = program.blocks[called(program, node[1])].results[position(program, number)]
            assert type(result) is int
            at[number] = values[node[1]].get(result, at.get(result, result))
        else:
            made = put(number, at)
            if made != number:
                at[number] = made
    results = [[at.get(r, r) if type(r) is int else r for r in row] for row in program.results]
    needed = {r for row in results for r in row if type(r) is int}
    kept = []
    for number in reversed(order):
        if number in needed:
            kept.append(number)
            needed.update(nodes[number][1:])
    kept.reverse()
    return replace(program, nodes=nodes, order=kept, results=results, blocks=[]), found


def shared(program: Program, workers: int, fused: Collection[int], window: int) -> Shared:
    """Share a program without calls and guards among workers.

    Args:
        program: the graph.
        workers: how many.
        fused: products that are fused with the sum that alone reads them.
        window: operations that a round is taken from, for each worker.
    """
    nodes = program.nodes
    units = _units(program, fused)
    reads = {
        n: list(dict.fromkeys(o for m in unit for o in nodes[m][1:] if o in units and o != n))
        for n, unit in units.items()
    }
    todo, made, rounds = list(units), dict[int, int](), list[list[list[int]]]()
    while todo:
        ahead, total = list[int](), 0
        for n in todo:
            ahead.append(n)
            total += len(units[n])
            if total >= window * workers:
                break
        taken = _shares(program, units, reads, ahead, made, workers)
        for w, share in enumerate(taken):
            made.update(dict.fromkeys(share, w))
        rounds.append(taken)
        todo = [n for n in ahead if n not in made] + todo[len(ahead) :]
    slot, slots = _places(reads, rounds)
    whole = [[[m for n in share for m in units[n]] for share in shares] for shares in rounds]
    return Shared(whole, slot, slots)


def _units(program: Program, fused: Collection[int]) -> dict[int, list[int]]:
    """Operations that stay together, by the last of each: what one of them alone reads goes with it."""
    nodes = program.nodes
    uses = Counter(r for row in program.results for r in row if type(r) is int)
    for n in program.order:
        uses.update(nodes[n][1:])
    units: dict[int, list[int]] = {}
    for n in program.order:
        unit = [n]
        for o in dict.fromkeys(nodes[n][1:]):
            if o in units and (o in fused or (uses[o] == 1 and len(units[o]) + len(unit) <= TREE)):
                unit = units.pop(o) + unit
        units[n] = unit
    return units


def _shares(
    program: Program,
    units: Mapping[int, list[int]],
    reads: Mapping[int, list[int]],
    ahead: list[int],
    made: Mapping[int, int],
    workers: int,
) -> list[list[int]]:
    """The units of a round for each worker, from those ahead."""
    depth, levels = dict[int, int](), list[list[int]]()
    for n in ahead:
        depth[n] = level = 1 + max((depth[o] for o in reads[n] if o in depth), default=-1)
        if level == len(levels):
            levels.append([])
        levels[level].append(n)
    parts = Parts(program, units, reads)
    best = total = 0
    for level, line in enumerate(levels):
        for n in line:
            parts.add(n)
        total += sum(len(units[n]) for n in line)
        if parts.largest * workers <= UNEVEN * total:
            best = level
    parts = Parts(program, units, reads)
    taken = [n for n in ahead if depth[n] <= best]
    for n in taken:
        parts.add(n)
    members: dict[int, list[int]] = {}
    for n in taken:
        members.setdefault(parts.root(n), []).append(n)
    fair = SLACK * sum(len(units[n]) for n in taken) / workers
    loads, shares = [0] * workers, [set[int]() for _ in range(workers)]
    for root, part in sorted(members.items(), key=lambda each: -parts.size[each[0]]):
        known = Counter(made[o] for n in part for o in reads[n] if o in made)
        size = parts.size[root]
        w = min(range(workers), key=lambda w: (loads[w] + size > fair, -known[w], loads[w]))
        loads[w] += size
        shares[w].update(part)
    return [[n for n in taken if n in share] for share in shares]


class Parts:
    """Units of which no two that depend on each other are apart.

    Attributes:
        size: operations of each part, by its root.
        largest: of these.
    """

    def __init__(
        self, program: Program, units: Mapping[int, list[int]], reads: Mapping[int, list[int]]
    ) -> None:
        self._nodes, self._units, self._reads = program.nodes, units, reads
        self._parent, self._angle = dict[int, int](), dict[int, int]()
        self.size, self.largest = dict[int, int](), 0

    def root(self, n: int) -> int:
        """The part of a unit."""
        parent = self._parent
        while parent[n] != n:
            parent[n] = n = parent[parent[n]]
        return n

    def add(self, n: int) -> None:
        """Add a unit after those that it depends on."""
        self._parent[n], self.size[n] = n, len(self._units[n])
        others = [o for o in self._reads[n] if o in self._parent]
        if self._nodes[n][0] in (SIN, COS):  # are computed together
            others.append(self._angle.setdefault(self._nodes[n][1], n))
        for o in others:
            a, b = self.root(n), self.root(o)
            if a != b:
                self._parent[b] = a
                self.size[a] += self.size.pop(b)
        self.largest = max(self.largest, self.size[self.root(n)])


def _places(reads: Mapping[int, list[int]], rounds: list[list[list[int]]]) -> tuple[dict[int, int], int]:
    """Place of each value that a later round reads, and how many places there are."""
    home = {n: k for k, shares in enumerate(rounds) for share in shares for n in share}
    last = dict[int, int]()
    for n, k in home.items():
        for o in reads[n]:
            if home[o] < k:
                last[o] = max(last.get(o, 0), k)
    slot, free, ending, count = dict[int, int](), list[int](), dict[int, list[int]](), 0
    for k, shares in enumerate(rounds):
        free += ending.pop(k - 1, [])
        for share in shares:
            for n in share:
                if n in last:
                    if not free:
                        free.append(count)
                        count += 1
                    slot[n] = free.pop()
                    ending.setdefault(last[n], []).append(slot[n])
    return slot, count
