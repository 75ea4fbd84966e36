"""The finished graph: only the nodes that an output needs, in an order of evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from robokit.engine.trace.graph import Graph, Node
from robokit.engine.trace.ops import CONST, OPERATIONS, TABLE, counted, flops


@dataclass
class Program:
    """A finished graph.

    Attributes:
        inputs: (name, number of scalars) of each input.
        outputs: (name, shape) of each output.
        nodes: the graph's nodes; numbers index this list.
        order: numbers of the needed nodes that compute something, in order of evaluation.
        results: for each output its scalars in row-major order: a node number, or a float if constant.
        marks: node numbers at which iterations of the text begin.
        counts: operations by what they count as (see :func:`robokit.engine.trace.ops.counted`).
        tables: (name, number of entries) of each table.
    """

    inputs: list[tuple[str, int]]
    outputs: list[tuple[str, tuple[int, ...]]]
    nodes: list[Node]
    order: list[int]
    results: list[list[int | float]]
    marks: list[int]
    counts: dict[str, int] = field(default_factory=dict)
    tables: list[tuple[str, int]] = field(default_factory=list)

    @classmethod
    def finish(
        cls,
        graph: Graph,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        results: Sequence[Sequence[int | float]],
        tables: Sequence[tuple[str, int]] = (),
    ) -> Program:
        """Drop what no output needs and count what is left.

        Args:
            graph: the recorded graph.
            inputs: (name, number of scalars) of each input.
            outputs: (name, shape) of each output.
            results: for each output its scalars: a signed reference (int) or a constant (float).
            tables: (name, number of entries) of each table.
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
        counts = counted(nodes[number] for number in order)
        return cls(list(inputs), list(outputs), nodes, order, plain, graph.marks, counts, list(tables))

    @property
    def first_output(self) -> int:
        """Place of the first output among the arguments, which are inputs, tables and outputs."""
        return len(self.inputs) + len(self.tables)

    @property
    def flops(self) -> int:
        """Additions, multiplications, divisions and square roots (sines and cosines are counted apart)."""
        return flops(self.counts)

    def sparsity(self) -> list[list[bool]]:
        """For each output, which of its scalars can be other than 0."""
        return [[not (type(r) is float and r == 0.0) for r in row] for row in self.results]

    def evaluate(self, *arguments: Sequence[float]) -> list[list[float]]:
        """Run the graph in plain Python: the oracle that compiled code is compared with.

        Args:
            arguments: one sequence of floats per input, then one per table.
        """
        value: dict[int, Any] = {}
        nodes = self.nodes

        def get(number: int) -> Any:
            if number not in value:  # inputs, constants and tables are not in the order
                node = nodes[number]
                if node[0] == TABLE:
                    value[number] = arguments[len(self.inputs) + node[1]]
                else:
                    value[number] = node[1] if node[0] == CONST else float(arguments[node[1]][node[2]])
            return value[number]

        for number in self.order:
            opcode, *operands = nodes[number]
            value[number] = OPERATIONS[opcode].value(*map(get, operands))
        return [[get(r) if type(r) is int else float(r) for r in row] for row in self.results]
