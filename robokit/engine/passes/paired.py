"""Code of one state in which what is done twice goes through two lanes of a vector.

Operations that passes/twins.py found become one, whose value has two lanes: it is *wide*. A wide operation
takes wide operands, and numbers that are the same in both lanes. Where it needs two numbers of different
origin they are put into lanes (PAIR), and where one lane is needed alone it is taken out (FIRST, SECOND).
The two are computed exactly as they were, but for signs: where the one lane adds and the other subtracts, an
operand is multiplied by 1 in the one and by -1 in the other.

Two operations that wait for each other stay apart: they are found when the new order of evaluation is made
(pair_order.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from robokit.engine.passes.guards import paths
from robokit.engine.passes.pair_order import units
from robokit.engine.passes.twins import twins
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.graph import Block, Node
from robokit.engine.trace.ops import (
    ADD,
    CALL,
    CONST,
    COS,
    FIRST,
    INPUT,
    MUL,
    OPERATIONS,
    PAIR,
    PARAMETER,
    RESULT,
    SECOND,
    SIN,
    SUB,
)
from robokit.engine.trace.program import Program

WORTH = 0.85
"""Share of the operations that may be left: above it, moving numbers between lanes takes the gain."""


def paired(program: Program, seeds: Iterable[tuple[int, int, int]]) -> Program:
    """The same program with its twins in two lanes; nodes are renumbered.

    Args:
        program: the graph.
        seeds: (input, offset, other offset) of inputs that correspond to each other.
    """
    at = {node[1:]: n for n, node in enumerate(program.nodes) if node[0] == INPUT}
    given = [(at[k, a], at[k, b]) for k, a, b in seeds if (k, a) in at and (k, b) in at]
    if not given or any(block.lanes > 1 for block in program.blocks):
        return program
    twin = twins(program, given, paths(program))
    own = set(program.order)
    pairs: dict[int, int] = {}
    for n in program.order:
        m = twin[n]
        if m and m in own and _joined(program, n, m):
            pairs[n] = m
    if len(program.order) - len(pairs) // 2 > WORTH * len(program.order):
        return program
    for block in program.blocks:
        pairs |= {p: twin[p] for p in block.parameters if twin[p]}
    found = _Writer(program, pairs).written()
    return found if len(found.order) <= WORTH * len(program.order) else program


def _joined(program: Program, n: int, m: int) -> bool:
    """Whether twins are computed at all, and by one instruction for both."""
    nodes = program.nodes
    op, other = nodes[n][0], nodes[m][0]
    if op in (SIN, COS) and INPUT in (nodes[nodes[n][1]][0], nodes[nodes[m][1]][0]):
        return False  # a loop computes those of all joints
    if op == RESULT and nodes[n][1] != nodes[m][1]:
        return False  # the next call of the text leaves others where the first one's were
    return op == other or (op in (ADD, SUB) and other in (ADD, SUB))


class _Writer:
    """Writes the program anew."""

    def __init__(self, program: Program, pairs: dict[int, int]) -> None:
        self.program, self.old, self.pairs = program, program.nodes, pairs
        self.nodes: list[Node] = [program.nodes[0]]
        self.order: list[int] = []
        self.wide: set[int] = set()
        self.at: dict[int, int] = {}
        self.lane: dict[int, tuple[int, int]] = {}
        self.index: dict[Node, int] = {}
        self.ends: dict[int, list[int | float]] = {}

    def written(self) -> Program:
        """The program with wide values."""
        program = self.program
        for n, node in enumerate(self.old):
            if n and node[0] <= CONST and node[0] != PARAMETER:
                self.at[n] = self._leaf(node)
        parameters = [self._parameters(k, block) for k, block in enumerate(program.blocks)]
        for members in units(program, self.pairs):
            n = members[0]
            if self.old[n][0] == CALL:
                self._call(n, parameters[called(program, n)])
            elif self.old[n][0] == RESULT:
                for each in members:
                    self._result(each)
            elif len(members) == 2:
                self._both(*members)
            else:
                node = self.old[n]
                self.at[n] = self._put((node[0], *(self._alone(x) for x in node[1:])))
        results = [[self._alone(r) if type(r) is int else r for r in row] for row in program.results]
        blocks = [Block([self._found(p) for p in own], self._ends(k)) for k, own in enumerate(parameters)]
        needed = {r for row in results for r in row if type(r) is int}
        needed |= {r for block in blocks for r in block.results if type(r) is int}
        for n in reversed(self.order):  # a product whose sign went into its factor is not read any more
            if n in needed:
                needed.update(self.nodes[n][1:])
        self.order = [n for n in self.order if n in needed]
        return replace(
            program, nodes=self.nodes, order=self.order, results=results, marks=[], cuts=[], blocks=blocks,
            wide=self.wide,
        )  # fmt: skip

    # -- nodes -----------------------------------------------------------------------------------

    def _leaf(self, node: Node) -> int:
        if node not in self.index:
            self.index[node] = len(self.nodes)
            self.nodes.append(node)
        return self.index[node]

    def _put(self, node: Node, wide: bool = False) -> int:
        self.nodes.append(node)
        self.order.append(len(self.nodes) - 1)
        if wide:
            self.wide.add(self.order[-1])
        return self.order[-1]

    def _once(self, node: Node, wide: bool = False) -> int:
        if node not in self.index:
            self.index[node] = self._put(node, wide)
        return self.index[node]

    def _alone(self, n: int) -> int:
        """A value as one number."""
        if n in self.at:
            return self.at[n]
        whole, lane = self.lane[n]
        self.at[n] = self._put((SECOND if lane else FIRST, whole))
        return self.at[n]

    def _found(self, n: int) -> int:
        """The node that holds a value, alone or in a lane."""
        return self.lane[n][0] if n in self.lane else self.at[n]

    def _lanes(self, x: int, y: int, whole: bool = False) -> int:
        """The node of a number for each lane; one number where they are the same, unless asked for whole."""
        old = self.old
        if x == y and not whole:
            return self._alone(x)
        if old[x][0] == CONST and old[y][0] == CONST:
            return self._constants(old[x][1], old[y][1])
        whole_x, lane = self.lane.get(x, (0, 0))
        if lane == 0 and whole_x and self.lane.get(y) == (whole_x, 1):
            return whole_x
        return self._once((PAIR, self._alone(x), self._alone(y)), wide=True)

    def _constants(self, a: float, b: float) -> int:
        number = self._leaf((CONST, (a, b)))
        self.wide.add(number)
        return number

    def _both(self, n: int, m: int) -> None:
        """One operation for two twins."""
        op, other = self.old[n][0], self.old[m][0]
        if self._turned(n, m):
            n, m, op, other = m, n, other, op
        a, b = list(self.old[n][1:]), list(self.old[m][1:])
        swapped = len(b) == 2 and self._swap(a, b, op)
        if swapped:
            b.reverse()
        x = [self._lanes(s, t) for s, t in zip(a, b, strict=True)]
        if op in (ADD, SUB):
            number = self._sum(x[0], x[1], (op == ADD, other == ADD), swapped)
        else:
            number = self._put((op, *x), wide=True)
        self.lane[n], self.lane[m] = (number, 0), (number, 1)

    def _sum(self, x: int, y: int, adds: tuple[bool, bool], swapped: bool) -> int:
        """A sum in one lane and, maybe, a difference in the other.

        Args:
            x, y: operands.
            adds: whether each lane adds.
            swapped: whether the second lane's operands are y and x.
        """
        if adds[0] == adds[1] and (adds[0] or not swapped):
            return self._put((ADD if adds[0] else SUB, x, y), wide=True)
        if not swapped or adds[1]:  # y - x is the only way in which the second lane has a minus before x
            return self._put((ADD, x, self._signed(y, *(1.0 if add else -1.0 for add in adds))), wide=True)
        if adds[0]:
            return self._put((ADD, y, self._signed(x, 1.0, -1.0)), wide=True)
        return self._signed(self._put((SUB, x, y), wide=True), 1.0, -1.0)

    def _signed(self, x: int, *signs: float) -> int:
        """A value with a sign for each lane; a constant factor takes it up."""
        node = self.nodes[x]
        if node[0] == CONST:
            return self._constants(*(s * c for s, c in zip(signs, self._numbers(x), strict=True)))
        if node[0] == MUL and x in self.wide:
            for c, other in (node[1:], node[:0:-1]):
                if self.nodes[c][0] == CONST:
                    numbers = (s * each for s, each in zip(signs, self._numbers(c), strict=True))
                    return self._once((MUL, other, self._constants(*numbers)), wide=True)
        return self._once((MUL, x, self._constants(*signs)), wide=True)

    def _numbers(self, constant: int) -> Sequence[float]:
        value = self.nodes[constant][1]
        return value if constant in self.wide else (value, value)

    def _turned(self, n: int, m: int) -> bool:
        """Whether the operands of the first are in the second lanes."""
        for x, y in zip(self.old[n][1:], self.old[m][1:], strict=True):
            for each, lane in ((x, 1), (y, 0)):
                if each in self.lane and x != y:
                    return self.lane[each][1] == lane
        return False

    def _swap(self, a: Sequence[int], b: Sequence[int], op: int) -> bool:
        """Whether the second lane's operands change places."""
        if not (OPERATIONS[op].commutes or op == SUB):
            return False
        straight = self._fits(a[0], b[0]) + self._fits(a[1], b[1])
        return self._fits(a[0], b[1]) + self._fits(a[1], b[0]) > straight

    def _fits(self, x: int, y: int) -> int:
        if x == y or (self.old[x][0] == CONST and self.old[y][0] == CONST):
            return 1
        return int(x in self.lane and y in self.lane and self.lane[x][0] == self.lane[y][0])

    # -- shared texts ----------------------------------------------------------------------------

    def _parameters(self, number: int, block: Block) -> list[int]:
        """The parameters of a block, of two in the lanes of one the first."""
        own: list[int] = []
        for p in block.parameters:
            m = self.pairs.get(p, 0)
            if p in self.lane:
                continue
            made = self._leaf((PARAMETER, number, len(own)))
            own.append(p)
            if m:
                self.wide.add(made)
                self.lane[p], self.lane[m] = (made, 0), (made, 1)
            else:
                self.at[p] = made
        return own

    def _call(self, call: int, own: list[int]) -> None:
        block = self.program.blocks[called(self.program, call)]
        given = dict(zip(block.parameters, self.old[call][2:], strict=True))
        operands = []
        for p in own:
            m = self.pairs.get(p, 0)
            operands.append(self._lanes(given[p], given[m], whole=True) if m else self._alone(given[p]))
        self.at[call] = self._put((CALL, self.at[self.old[call][1]], *operands))

    def _ends(self, number: int) -> list[int | float]:
        """The results of a block whose body is written, each wide one once."""
        if number in self.ends:
            return self.ends[number]
        ends: dict[int | float | str, int | float] = {}
        for k, r in enumerate(self.program.blocks[number].results):
            if type(r) is not int:
                ends[f"constant {k}"] = r
            elif r in self.lane or r in self.at:
                ends[self._found(r)] = self._found(r)
            else:
                ends[f"unread {k}"] = 0
        self.ends[number] = list(ends.values())
        return self.ends[number]

    def _result(self, n: int) -> None:
        call = self.old[n][1]
        number = called(self.program, call)
        r = self.program.blocks[number].results[position(self.program, n)]
        ends = self._ends(number)
        place = self._leaf((CONST, float(ends.index(self._found(int(r))))))
        node = (RESULT, self.at[call], place)
        if int(r) in self.lane:
            self.lane[n] = self._once(node, wide=True), self.lane[int(r)][1]
        else:
            self.at[n] = self._once(node)
