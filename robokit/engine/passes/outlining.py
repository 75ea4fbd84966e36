"""Pieces of a line that are alike become one shared function, for a target where code is dear.

The recorded line is cut where passes of loops begin (``scalars.iterations``), and where
a shared function is called. Pieces that do the same with other numbers are of one group: their function is
recorded once, with what differs as its parameters. What is the same in all of them stays a part of it. The
values are the same to the bit.

passes/similarity.py finds them, for passes/rerolling.py too, which makes loops over a table for this process.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robokit.engine.passes.similarity import Pieces, Similarity
from robokit.engine.trace.graph import Block, Node, Program
from robokit.engine.trace.ops import CALL, CONST, LOOKUP, LT, PARAMETER, RESULT, SELECT, TRUTHS

LEAST = 8
"""Nodes of the shortest piece that is looked at."""

MOST = 250
"""Arguments and results of a function at most."""

NODE, PASSED, CALLED = 5.5, 2.4, 6.0
"""Bytes of a node, of an argument or result of a call, and of a call besides: about."""

WORTH = 1.05
"""Bytes as they are over those with calls from which on pieces are outlined: a call costs time, too."""


@dataclass
class Piece:
    """Part of a line."""

    nodes: list[int]  # in order
    leaves: list[int]  # what it reads that others compute, in order of use
    values: list[float]  # constants that it reads, in order of use
    read: set[int]  # places among its nodes of those that others read


@dataclass
class Group:
    """Pieces that are alike."""

    pieces: list[Piece]  # of the program
    # leaves, values: which of the leaves and constants are parameters
    leaves: list[int]
    values: list[int]
    read: list[int]  # places of the nodes that are results
    block: int  # number of the function

    @property
    def passed(self) -> int:
        """Arguments and results of a call."""
        return len(self.leaves) + len(self.values) + len(self.read)

    @property
    def saved(self) -> float:
        """Bytes as they are over those with calls."""
        text, count = len(self.pieces[0].nodes) * NODE, len(self.pieces)
        return count * text / (text + count * CALLED + (count + 1) * PASSED * self.passed)


def outline(program: Program) -> Program:
    """The same program with pieces that are alike called; nodes are renumbered."""
    body = program.bodies()
    groups: list[Group] = []
    for pieces in _alike(program, body):
        group = _group(pieces, body, len(program.blocks) + len(groups))
        if group.leaves and group.passed <= MOST and group.saved >= WORTH:
            groups.append(group)
    return _Writer(program, groups).written() if groups else program


def _alike(program: Program, body: dict[int, int]) -> Iterator[list[Piece]]:
    """The pieces that are long enough, by what they do."""
    nodes = program.nodes
    cuts = sorted(set(program.marks))
    calls: defaultdict[int, int] = defaultdict(int)
    of: dict[int, tuple[int, ...]] = {}
    found: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for n in program.order:
        line = body.get(n, -1)
        if nodes[n][0] in (CALL, RESULT):
            calls[line] += 1
            continue
        of[n] = (line, bisect_right(cuts, n), calls[line])
        found[of[n]].append(n)
    read = {r for row in program.results for r in row if type(r) is int}
    read |= {r for block in program.blocks for r in block.results if type(r) is int}
    for n in program.order:
        own = of.get(n)
        read.update(operand for operand in nodes[n][1:] if of.get(operand) != own)
    lines = [
        line for line in found.values() if len(line) >= LEAST and not any(nodes[n][0] == LOOKUP for n in line)
    ]
    truths = np.array([node[0] in TRUTHS for node in nodes], np.int64)
    alike = Similarity.of(program, Pieces.of(program, lines), np.arange(len(nodes)), truths)
    left = [{p for p, n in enumerate(line) if n in read} for line in lines]
    for group in alike.groups(2):
        yield [Piece(lines[k], alike.owners(k), alike.values(k), left[k]) for k in group]


def _group(pieces: list[Piece], body: dict[int, int], block: int) -> Group:
    def differ(rows: list[list]) -> list[int]:
        return [k for k, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1]

    differing = set(differ([piece.leaves for piece in pieces]))
    # What depends on the parameters of a function around the piece is not there when another function runs.
    inner = {k for piece in pieces for k, leaf in enumerate(piece.leaves) if leaf in body}
    values = differ([piece.values for piece in pieces])
    read = sorted(set().union(*(piece.read for piece in pieces)))
    return Group(pieces, sorted(differing | inner), values, read, block)


class _Writer:
    """Writes the program anew."""

    def __init__(self, program: Program, groups: list[Group]) -> None:
        self.program, self.groups = program, groups
        self.nodes: list[Node] = [program.nodes[0]]
        self.order: list[int] = []
        self.at: dict[int, int] = {}
        self.constants: dict[float, int] = {}
        self.blocks: dict[int, Block] = {}
        self.piece = {n: (group, piece) for group in groups for piece in group.pieces for n in piece.nodes}

    def written(self) -> Program:
        """The program with calls."""
        program, nodes = self.program, self.program.nodes
        for n, node in enumerate(nodes):
            if n and node[0] <= CONST:
                self.at[n] = self._add(node)
                if node[0] == CONST:
                    self.constants.setdefault(node[1], self.at[n])
        for n in program.order:
            self._need(n)
        at = self.at
        old = [
            Block([at[p] for p in b.parameters], [at.get(r, 0) if type(r) is int else r for r in b.results])
            for b in program.blocks
        ]
        return replace(
            program,
            nodes=self.nodes,
            order=self.order,
            results=[[at[r] if type(r) is int else r for r in row] for row in program.results],
            marks=[],
            blocks=[*old, *(self.blocks[group.block] for group in self.groups)],
        )

    def _need(self, number: int) -> None:
        """Write a node, and before it what it reads."""
        waiting = [number]
        while waiting:
            n = waiting[-1]
            if n in self.at:
                waiting.pop()
                continue
            group, piece = self.piece.get(n, (None, None))
            reads = self.program.nodes[n][1:] if piece is None else piece.leaves
            missing = [x for x in reads if x not in self.at]
            if missing:
                waiting += missing
                continue
            if group is None or piece is None:
                node = self.program.nodes[n]
                self.at[n] = self._put((node[0], *(self.at[x] for x in node[1:])))
            else:
                self._call(group, piece)
            waiting.pop()

    def _call(self, group: Group, piece: Piece) -> None:
        if group.block not in self.blocks:
            self._function(group, piece)
        given = [self._number(piece.leaves[k]) for k in group.leaves]
        given += [self._constant(piece.values[k]) for k in group.values]
        call = self._put((CALL, self._constant(float(group.block)), *given))
        for position, k in enumerate(group.read):
            n = piece.nodes[k]
            if k in piece.read:
                self.at[n] = self._put((RESULT, call, self._constant(float(position))))
                if self.program.nodes[n][0] in TRUTHS:
                    self.at[n] = self._put((LT, self._constant(0.5), self.at[n]))
        for n in piece.nodes:
            self.at.setdefault(n, 0)  # nobody else reads it

    def _function(self, group: Group, piece: Piece) -> None:
        """The function of a group, written as the first of its pieces with parameters."""
        nodes = self.program.nodes
        parameters: list[int] = []
        at: dict[int, int] = {}
        values: dict[float, int] = {}

        def parameter() -> int:
            parameters.append(self._add((PARAMETER, group.block, len(parameters))))
            return parameters[-1]

        for k in group.leaves:
            leaf = piece.leaves[k]
            at[leaf] = parameter()
            if nodes[leaf][0] in TRUTHS:
                at[leaf] = self._put((LT, self._constant(0.5), at[leaf]))
        for k in group.values:
            values[piece.values[k]] = parameter()
        for n in piece.nodes:
            op, *operands = nodes[n]
            given = []
            for x in operands:
                known = values.get(nodes[x][1]) if nodes[x][0] == CONST else at.get(x)
                given.append(self.at[x] if known is None else known)
            at[n] = self._put((op, *given))
        results: list[int | float] = []
        for k in group.read:
            n = piece.nodes[k]
            results.append(self._truth(at[n]) if nodes[n][0] in TRUTHS else at[n])
        self.blocks[group.block] = Block(parameters, results)

    def _number(self, leaf: int) -> int:
        """A leaf as an argument."""
        return self._truth(self.at[leaf]) if self.program.nodes[leaf][0] in TRUTHS else self.at[leaf]

    def _truth(self, at: int) -> int:
        return self._put((SELECT, at, self._constant(1.0), self._constant(0.0)))

    def _constant(self, value: float) -> int:
        if value not in self.constants:
            self.constants[value] = self._add((CONST, value))
        return self.constants[value]

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _put(self, node: Node) -> int:
        self.order.append(self._add(node))
        return self.order[-1]
