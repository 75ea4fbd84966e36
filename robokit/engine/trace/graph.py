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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

INPUT, CONST, ADD, SUB, MUL, DIV, NEG, ABS, SQRT, SIN, COS, SELECT, LT, LE, EQ, AND, OR, NOT = range(18)

TRUTHS = frozenset((LT, LE, EQ, AND, OR, NOT))
"""Operations whose value is true or false, not a number."""

Node = tuple
"""(operation, operands...); (INPUT, input, offset); (CONST, value)."""


class TraceTooLarge(Exception):
    """The graph passed its node budget: run the text on plain floats instead."""


class Graph:
    """Nodes under construction, found again by their content.

    Attributes:
        signed: whether constants keep their sign. Iterations are then recorded alike whatever the signs
            of their constants, at a few more operations.
    """

    __slots__ = ("budget", "index", "marks", "nodes", "signed")

    def __init__(self, budget: int = 400_000, signed: bool = False) -> None:
        self.signed = signed
        # Node 0 is a placeholder: it could not carry a sign.
        self.nodes: list[Node] = [(CONST, math.nan)]
        self.index: dict[Node, int] = {}
        self.marks: list[int] = []
        self.budget = budget

    def add(self, node: Node) -> int:
        """Number of the node, recorded now if it is new."""
        nodes = self.nodes
        found = self.index.setdefault(node, len(nodes))
        if found == len(nodes):
            nodes.append(node)
            if found > self.budget:
                raise TraceTooLarge(f"more than {self.budget} operations")
        return found

    def mark(self) -> None:
        """Note that an iteration of the text begins, or that the last one is over."""
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
            return self.add((CONST, -node[1]))
        if node[0] == SUB:
            return self.add((SUB, node[2], node[1]))
        return node[1] if node[0] == NEG else self.add((NEG, -ref))


@dataclass
class Program:
    """A finished graph: only the nodes that an output needs.

    Attributes:
        inputs: (name, number of scalars) of each input.
        outputs: (name, shape) of each output.
        nodes: the graph's nodes; numbers index this list.
        order: numbers of the needed nodes that compute something, in order of evaluation.
        results: for each output its scalars in row-major order: a node number, or a float if constant.
        marks: node numbers at which iterations of the text begin.
    """

    inputs: list[tuple[str, int]]
    outputs: list[tuple[str, tuple[int, ...]]]
    nodes: list[Node]
    order: list[int]
    results: list[list[int | float]]
    marks: list[int]
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def finish(
        cls,
        graph: Graph,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        results: Sequence[Sequence[int | float]],
    ) -> Program:
        """Drop what no output needs and count what is left.

        Args:
            graph: the recorded graph.
            inputs: (name, number of scalars) of each input.
            outputs: (name, shape) of each output.
            results: for each output its scalars: a signed reference (int) or a constant (float).
        """
        plain = [[graph.plain(r) if type(r) is int else r for r in row] for row in results]
        for row in plain:
            for k, r in enumerate(row):
                if type(r) is int and graph.nodes[r][0] == CONST:
                    row[k] = graph.nodes[r][1]
        nodes = graph.nodes
        needed = bytearray(len(nodes))
        for row in plain:
            for r in row:
                if type(r) is int:
                    needed[r] = 1
        order = []
        for number in range(len(nodes) - 1, 0, -1):
            if needed[number]:
                node = nodes[number]
                if node[0] > CONST:
                    order.append(number)
                    for operand in node[1:]:
                        needed[operand] = 1
        order.reverse()
        program = cls(list(inputs), list(outputs), nodes, order, plain, graph.marks)
        program.counts = program._count()
        return program

    def _count(self) -> dict[str, int]:
        seen = Counter(self.nodes[n][0] for n in self.order)
        angles = {self.nodes[n][1] for n in self.order if self.nodes[n][0] in (SIN, COS)}
        return {
            "mul": seen[MUL],
            "add": seen[ADD] + seen[SUB],
            "div": seen[DIV],
            "sqrt": seen[SQRT],
            "sincos": len(angles),
            "neg": seen[NEG],
            "select": seen[SELECT],
            "compare": seen[LT] + seen[LE] + seen[EQ],
        }

    @property
    def flops(self) -> int:
        """Additions, multiplications, divisions and square roots (sin/cos are counted apart)."""
        return sum(self.counts[name] for name in ("mul", "add", "div", "sqrt"))

    def sparsity(self) -> list[list[bool]]:
        """For each output, which of its scalars can be other than 0."""
        return [[not (type(r) is float and r == 0.0) for r in row] for row in self.results]

    def evaluate(self, *arguments: Sequence[float]) -> list[list[float]]:
        """Run the graph in plain Python: the oracle that compiled code is compared with.

        Args:
            arguments: one sequence of floats per input.
        """
        value: dict[int, float] = {}
        nodes = self.nodes

        def get(number: int) -> float:
            if number not in value:  # inputs and constants are not in the order
                node = nodes[number]
                value[number] = node[1] if node[0] == CONST else float(arguments[node[1]][node[2]])
            return value[number]

        for number in self.order:
            op, *operands = nodes[number]
            value[number] = _COMPUTE[op](*map(get, operands))
        return [[get(r) if type(r) is int else float(r) for r in row] for row in self.results]


def _divide(a: float, b: float) -> float:
    # Floats of Python raise where the processor answers inf or NaN.
    if b == 0.0:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


_COMPUTE: dict[int, Callable[..., Any]] = {
    ADD: lambda a, b: a + b,
    SUB: lambda a, b: a - b,
    MUL: lambda a, b: a * b,
    DIV: _divide,
    NEG: lambda a: -a,
    ABS: abs,
    SQRT: lambda a: math.sqrt(a) if a >= 0.0 else math.nan,
    SIN: lambda a: math.sin(a) if math.isfinite(a) else math.nan,
    COS: lambda a: math.cos(a) if math.isfinite(a) else math.nan,
    SELECT: lambda c, a, b: a if c else b,
    LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b,
    EQ: lambda a, b: a == b,
    AND: lambda a, b: a and b,
    OR: lambda a, b: a or b,
    NOT: lambda a: not a,
}
