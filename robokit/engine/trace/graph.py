"""The recorded graph: what an algorithm computes for one robot, each operation once.

A node is the tuple (operation, operands...), and the same tuple is the key that finds it again, so equal
subexpressions are one node. Operands are node numbers and are smaller than the node's own number: the
order of recording is an order of evaluation.

A *reference* to a value is a node number with a sign: -7 is minus the value of node 7. Negation therefore
costs nothing while recording and moves outward by itself (products and sums pull the sign out); a NEG node
exists only where a negative value is stored or fed to something that cannot absorb the sign.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np

from robokit.engine.trace.ops import (
    CALL,
    CONST,
    INPUT,
    NEG,
    OPERATIONS,
    PARAMETER,
    RESULT,
    SUB,
    counted,
    flops,
)
from robokit.errors import FunctionError

Node = tuple
"""(opcode, operands...), see ops.py; (INPUT, input, offset); (CONST, value), and in single
precision, if that is another."""


Shares = bool | Literal["large", "asked"]
"""Which functions that are taken several times are recorded once: none, all, or the large ones.

"asked": as the words ``call`` and ``vmap`` say, for a program that is replayed.
"""


NODE_BUDGET = 1_400_000
"""Operations that are recorded at most (some seconds); longer functions run on plain numbers."""


class TraceTooLarge(Exception):
    """The graph passed its node budget: run the function on plain floats instead."""


@dataclass
class Block:
    """A shared function, recorded once for several calls (see trace/record.py)."""

    parameters: list[int]  # nodes that stand for its arguments
    results: list[int | float]  # its values: nodes, or constants
    lanes: int = 1  # columns of arguments that one call takes side by side, and of values that it returns
    # with lanes, results that do not depend on the arguments: no results of a call
    around: set[int] = field(default_factory=set)

    @property
    def returned(self) -> list[int]:
        """Its returned values that are nodes."""
        return [r for r in self.results if type(r) is int]

    def numbered(self, at: Sequence[int]) -> Block:
        """The same block with renumbered nodes."""
        results = [at[r] if type(r) is int else r for r in self.results]
        return Block([at[p] for p in self.parameters], results, self.lanes)


class Graph:
    """Nodes under construction, found again by their content.

    Attributes:
        signed: whether constants keep their sign. Iterations are then recorded alike whatever the signs
            of their constants, at a few more operations.
        blocks: shared functions in the order of recording.
        shared: the same by key; None where all functions are written out.
        large: whether only large functions are shared.
        asked: whether the functions of all vmaps are, all columns in one call, and of calls.
        within: whether a shared function is being recorded: what it shares in turn is written out.
        columns: most columns of a function that one call takes side by side.
        measured: what a look at a function has told (trace/record.py).
    """

    __slots__ = (
        "asked", "blocks", "budget", "columns", "index", "large", "marks", "measured", "nodes",
        "shared", "signed", "within",
    )  # fmt: skip

    exact = False
    """Whether quotients are never products with a reciprocal."""

    def __init__(
        self, budget: int = 400_000, signed: bool = False, shares: Shares = False, columns: int = 1
    ) -> None:
        self.signed, self.large, self.columns = signed, shares == "large", columns
        self.asked = shares == "asked"
        self.shared: dict[Hashable, Block] | None = {} if shares else None
        self.blocks: list[Block] = []
        self.within = False
        self.measured: dict[Hashable, Any] = {}
        # Node 0 is a placeholder: it could not carry a sign.
        self.nodes: list[Node] = [(CONST, math.nan)]
        self.index: dict[Node, int] = {}
        self.marks: list[int] = []
        self.budget = budget

    def add(self, node: Node) -> int:
        """Number of the node, recorded now if it is new."""
        nodes = self.nodes
        new = len(nodes)
        found = self.index.setdefault(node, new)
        if found == new:
            nodes.append(node)
            if new > self.budget:
                raise TraceTooLarge(f"more than {self.budget} operations")
        return found

    def record(self, opcode: int, *operands: int) -> int:
        """Number of an operation on nodes; where operands commute, both orders are one node."""
        if OPERATIONS[opcode].commutes and operands[0] > operands[1]:
            operands = operands[::-1]
        return self.add((opcode, *operands))

    def mark(self) -> None:
        """Note that an iteration of the function begins, or that the last one is over."""
        self.marks.append(len(self.nodes))

    def constant(self, value: float) -> int:
        """Reference to a constant; the sign is in the reference, so c and -c are one node."""
        if value < 0.0 and not self.signed:
            return -self.add((CONST, -value))
        return self.add((CONST, value + 0.0))

    def plain(self, ref: int) -> int:
        """Number of a node that holds the signed value itself."""
        if ref > 0:
            return ref
        node = self.nodes[-ref]
        if node[0] == CONST:
            return self.add((CONST, *(-x for x in node[1:])))
        if node[0] == SUB:
            return self.add((SUB, node[2], node[1]))
        return node[1] if node[0] == NEG else self.add((NEG, -ref))


# -- The finished graph: only the nodes that an output needs, in an order of evaluation -------------------

LANES = 2  # of a wide value (passes/superword.py)
_OPERANDS = itemgetter(slice(1, None))  # of a node


def needed(nodes: Sequence[Node], order: Sequence[int], wanted: set[int]) -> list[int]:
    """The nodes of an order of evaluation that some need, themselves among them; these become more."""
    found = []
    for number in reversed(order):
        if number in wanted:
            found.append(number)
            wanted.update(nodes[number][1:])
    return found[::-1]


class Arrays(NamedTuple):
    """Nodes that compute something, as arrays of integers."""

    order: np.ndarray  # their numbers
    begin: np.ndarray  # where each begins among the words, and where the last one ends
    word: np.ndarray  # (operation, operands...), one node after the other

    @staticmethod
    def of(nodes: Sequence[Node], order: Collection[int] | None = None) -> Arrays:
        """The nodes with these numbers, or all that compute something."""
        rows = nodes if order is None else list(map(nodes.__getitem__, order))
        begin = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, rows), np.int32, len(rows)), out=begin[1:])
        if order is not None:
            word = np.fromiter(chain.from_iterable(rows), np.int32, int(begin[-1]))
            return Arrays(np.fromiter(order, np.int32, len(rows)), begin, word)
        words = np.fromiter(chain.from_iterable(rows), float, int(begin[-1]))  # constants are among them
        with np.errstate(invalid="ignore"):
            every = Arrays(np.arange(len(rows), dtype=np.int32), begin, words.astype(np.int32))
        return every.those(every.code > CONST)

    def those(self, kept: np.ndarray) -> Arrays:
        """A selection of the nodes; ``kept``: whether each is in it."""
        if kept.all():
            return self
        size = np.diff(self.begin)
        begin = np.zeros(int(kept.sum()) + 1, np.int32)
        np.cumsum(size[kept], out=begin[1:])
        return Arrays(self.order[kept], begin, self.word[np.repeat(kept, size)])

    @property
    def code(self) -> np.ndarray:
        """The operation of each node."""
        return self.word[self.begin[:-1]]

    def counted(self) -> dict[str, int]:
        """How many of them there are of what operations count as; sine and cosine of an angle are one."""
        return counted(self.code, self.word[self.begin[:-1] + 1])


def _kept(arrays: Arrays, nodes: Sequence[Node], blocks: Sequence[Block], wanted: set[int]) -> np.ndarray:
    """Which nodes are needed, those that are wanted among them."""

    def returned(result: int) -> int | float:
        """What a node (RESULT, ...) is in its block."""
        _, call, position = nodes[result]
        block = blocks[int(nodes[nodes[call][1]][1])]
        return block.results[int(nodes[position][1]) % len(block.results)]

    operand = arrays.word.copy()
    operand[arrays.begin[:-1]] = 0  # instead of operations; node 0 is none
    counts = np.bincount(operand, minlength=len(nodes))
    readers: Any = memoryview(counts)  # type: ignore[arg-type]
    for n in wanted:
        readers[n] += 1
    results = {n: returned(n) for n in arrays.order[arrays.code == RESULT].tolist()}
    for r in results.values():
        if type(r) is int:
            readers[r] += 1
    # What nobody reads reads nothing, so that others may be read by nobody.
    unread = arrays.order[counts[arrays.order] == 0].tolist()
    for n in unread:
        for x in (*nodes[n][1:], *((results[n],) if n in results else ())):
            if type(x) is int:
                readers[x] -= 1
                if not readers[x] and nodes[x][0] > CONST:
                    unread.append(x)
    kept: np.ndarray = counts[arrays.order] > 0
    return kept


@dataclass
class Program:
    """A finished graph."""

    inputs: list[tuple[str, int]]  # (name, number of scalars) of each input
    outputs: list[tuple[str, tuple[int, ...]]]  # (name, shape) of each output
    nodes: list[Node]  # the graph's nodes; numbers index this list
    order: list[int]  # numbers of the needed nodes that compute something, in order of evaluation
    # for each output its scalars in row-major order: a node number, or a float if constant
    results: list[list[int | float]]
    marks: list[int]  # node numbers at which iterations of the function begin
    # operations by what they count as (see :func:`robokit.engine.trace.ops.counted`)
    counts: dict[str, int] = field(default_factory=dict)
    # functions that are recorded once and called (trace/record.py)
    blocks: list[Block] = field(default_factory=list)
    wide: set[int] = field(default_factory=set)  # nodes whose value has two lanes (passes/superword.py)

    @classmethod
    def finish(
        cls,
        graph: Graph,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        results: Sequence[Sequence[int | float]],
    ) -> Program:
        """Drop what no output needs and count what is left.

        ``graph``: the recorded graph; ``inputs``: (name, number of scalars) of each input; ``outputs``:
        (name, shape) of each output; ``results``: for each output its scalars: a signed reference (int) or a
        constant (float).
        """
        plain = [[graph.plain(r) if type(r) is int else r for r in row] for row in results]
        for row in plain:
            for k, r in enumerate(row):
                if type(r) is int and graph.nodes[r][0] == CONST:
                    row[k] = graph.nodes[r][1]
        nodes, blocks = graph.nodes, graph.blocks
        computing = Arrays.of(nodes)
        wanted = {r for r in chain.from_iterable(plain) if type(r) is int}
        kept = _kept(computing, nodes, blocks, wanted)
        order: list[int] = computing.order[kept].tolist()
        found = cls(list(inputs), list(outputs), nodes, order, plain, graph.marks, {}, blocks)
        found.__dict__["_arrays"] = order, computing.those(kept)
        # Values that a user's function has kept while it was measured are parameters of no body.
        read = {*wanted, *found.operands(order)} if graph.asked and graph.measured else ()
        if not wanted.isdisjoint(found.bodies()) or any(nodes[n][:2] == (PARAMETER, -1) for n in read):
            raise FunctionError(
                "a value of a called function (call, vmap) is used outside of it: return it from the function"
            )
        found.counts = found.counted(order)
        return found

    @property
    def arrays(self) -> Arrays:
        """The nodes in order of evaluation as arrays, made once for each order."""
        known: tuple[list[int], Arrays] | None = self.__dict__.get("_arrays")
        if known is None or known[0] is not self.order:
            known = self.__dict__["_arrays"] = self.order, Arrays.of(self.nodes, self.order)
        return known[1]

    def counted(self, numbers: Collection[int]) -> dict[str, int]:
        """Operations among these nodes, those of a shared function as often as it is called."""
        nodes, blocks = self.nodes, self.blocks
        if not blocks:
            return (self.arrays if numbers is self.order else Arrays.of(nodes, numbers)).counted()
        line, insides = self.lines(numbers)
        counts = Arrays.of(nodes, line).counted()
        calls = [nodes[n] for n in self.order if nodes[n][0] == CALL]
        times = Counter(int(nodes[call[1]][1]) for call in calls)
        for k, (block, body) in enumerate(zip(blocks, insides, strict=True)):
            inside, often = Arrays.of(nodes, body).counted(), times[k] * block.lanes
            counts = {name: count + often * inside[name] for name, count in counts.items()}
        return counts

    def operands(self, numbers: Iterable[int]) -> Iterator[int]:
        """The operands of these nodes, one after the other."""
        return chain.from_iterable(map(_OPERANDS, map(self.nodes.__getitem__, numbers)))

    def bodies(self) -> dict[int, int]:
        """The number of the block of each node that depends on its parameters."""
        known: tuple[list[int], dict[int, int]] = self.__dict__.get("_bodies", ([], {}))
        if known[0] is self.order:
            return known[1]
        found = {p: k for k, block in enumerate(self.blocks) for p in block.parameters}
        nodes = self.nodes
        for number in self.order if found else ():
            for operand in nodes[number][1:]:
                if operand in found:
                    found[number] = found[operand]
                    break
        self.__dict__["_bodies"] = self.order, found
        return found

    def lines(self, numbers: Collection[int] | None = None) -> tuple[list[int], list[list[int]]]:
        """The program's own nodes and those of each block's body, in order of evaluation, or of these."""
        order, body = self.order if numbers is None else numbers, self.bodies()
        insides: list[list[int]] = [[] for _ in self.blocks]
        for n in [n for n in order if n in body]:
            insides[body[n]].append(n)
        return [n for n in order if n not in body], insides

    @property
    def first_output(self) -> int:
        """Place of the first output among the arguments, which are inputs, then outputs."""
        return len(self.inputs)

    @property
    def input_nodes(self) -> dict[tuple[int, int], int]:
        """The node of each number of the inputs, by (input, offset)."""
        found, count = dict[tuple[int, int], int](), sum(size for _, size in self.inputs)
        for number, node in enumerate(self.nodes):
            if len(found) == count:
                break  # they stand at the beginning of a recording
            if node[0] == INPUT:
                found[node[1:]] = number
        return found

    def returned(self) -> Iterator[int]:
        """The outputs' scalars that are nodes, as often as they are outputs."""
        return (r for row in self.results for r in row if type(r) is int)

    @property
    def flops(self) -> int:
        """Additions, multiplications, divisions and square roots (sines and cosines are counted apart)."""
        return flops(self.counts)

    def sparsity(self) -> list[list[bool]]:
        """For each output, which of its scalars can be other than 0."""
        return [[not (type(r) is float and r == 0.0) for r in row] for row in self.results]
