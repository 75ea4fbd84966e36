"""The recorded graph as the page's program: it finds all values of the lines for any state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import CONST, OPERATIONS
from robokit.viewer.data.packing import deflated, deflated_whole
from robokit.viewer.payload_keys import ProgramData
from robokit.viewer.walk.text_runs import State

OPERANDS = 3
"""At most, of an operation."""


@dataclass(frozen=True)
class WalkProgram:
    """The part of a graph that some values need.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.

    Attributes:
        graph: the graph.
        constants, inputs, order: numbers of its nodes.
        slot: of each of these nodes.
    """

    graph: Graph
    constants: list[int]
    inputs: list[int]
    order: list[int]
    slot: dict[int, int]

    @classmethod
    def of(cls, graph: Graph, refs: Iterable[int]) -> WalkProgram:
        """What these signed references need."""
        nodes = graph.nodes
        needed = bytearray(len(nodes))
        for ref in refs:
            needed[abs(ref)] = 1
        for number in range(len(nodes) - 1, 0, -1):
            if needed[number] and nodes[number][0] > CONST:
                for operand in nodes[number][1:]:
                    needed[operand] = 1
        found = [number for number in range(1, len(nodes)) if needed[number]]
        constants = [number for number in found if nodes[number][0] == CONST]
        inputs = [number for number in found if nodes[number][0] < CONST]
        order = [number for number in found if nodes[number][0] > CONST]
        slot = {number: k for k, number in enumerate((*constants, *inputs, *order))}
        return cls(graph, constants, inputs, order, slot)

    def place(self, ref: int) -> int:
        """A signed reference as the page has it: twice the slot, and 1 more where its sign is turned."""
        return 2 * self.slot[abs(ref)] + (ref < 0)

    def data(self, state: State) -> ProgramData:
        """The page's data.

        Args:
            state: of the traced scalars that the graph began with.
        """
        nodes = self.graph.nodes
        place = {scalar.ref: k for k, scalar in enumerate(state.flat())}
        codes = [nodes[number][0] for number in self.order]
        used = sorted(set(codes))
        return ProgramData(
            operations=[OPERATIONS[code].name for code in used],
            codes=deflated([used.index(code) for code in codes], "u1"),
            operands=[deflated_whole(self._operands(k)) for k in range(OPERANDS)],
            constants=deflated([nodes[number][1] for number in self.constants], "<f8"),
            inputs=deflated_whole([place[number] for number in self.inputs]),
        )

    def _operands(self, k: int) -> Sequence[int]:
        """Operand k of the operations that have one: how far back it is, or -1 - slot of what is given."""
        first = len(self.constants) + len(self.inputs)
        found = []
        for number in self.order:
            operands = self.graph.nodes[number][1:]
            if k < len(operands):
                slot = self.slot[operands[k]]
                found.append(self.slot[number] - slot if slot >= first else -1 - slot)
        return found
