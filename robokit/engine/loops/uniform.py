"""Which values are the same in all lanes: they stay plain numbers, and a loop whose count is one has no mask.

A value is the same where all that it is computed from is. What is carried out of a loop whose lanes stop at
different turns is not, nor what a condition chooses that differs between lanes. The index of a for-loop
always is: all lanes are in the same turn, some of them done. What a function returns depends on which of its
arguments are the same: there is code of it for each pattern that is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.engine.loops.record import (
    CALL,
    COND,
    FOR,
    LOAD,
    PARAMETER,
    VALUE,
    VMAP,
    WHILE,
    ZEROS,
    LoopGraph,
    Node,
    Region,
    calls,
    operands,
)


@dataclass(frozen=True)
class Pattern:
    """How a function is called.

    Attributes:
        function: its number.
        lanes: of a vector.
        own: for each of its arrays, whether every lane has one of its own; on cards where it may be.
        differs: for each of its parameters, whether it may differ between lanes.
        masked: whether it may run in some lanes alone.
        stride: lanes of the memory of own arrays, where the function runs for one of them.
    """

    function: int
    lanes: int
    own: tuple[Any, ...]
    differs: tuple[bool, ...] = ()
    masked: bool = False
    stride: int = 1


class Uniformity:
    """What may differ between lanes in the functions of a recording."""

    def __init__(self, graph: LoopGraph) -> None:
        self.graph = graph
        self._known: dict[Pattern, Varying] = {}

    def of(self, pattern: Pattern) -> Varying:
        """What may differ in a function that is called so."""
        if pattern not in self._known:
            self._known[pattern] = Varying(self, pattern)
        return self._known[pattern]


class Varying:
    """Values of a function that may differ between lanes.

    Attributes:
        nodes: their numbers.
        own: arrays of which every lane has one of its own.
        left: what control operations leave: their numbers, and positions.
        results: for each of the function's results, whether it may differ.
    """

    def __init__(self, uniformity: Uniformity, pattern: Pattern) -> None:
        self.graph, self.uniformity, self.pattern = uniformity.graph, uniformity, pattern
        function = self.graph.functions[pattern.function]
        self.own = {k for k, own in zip(function.arrays, pattern.own, strict=True) if own}
        flags = zip(function.region.parameters, pattern.differs, strict=True)
        self.nodes = {k for k, differs in flags if differs}
        self.left: set[tuple[int, int]] = set()
        before = -1
        while len(self.nodes) + len(self.left) > before and pattern.lanes > 1:
            before = len(self.nodes) + len(self.left)
            self._look(function.region)
        self.results = tuple(k in self.nodes for k in function.region.results)

    def called(self, node: Node, values: Sequence[int], masked: bool = False) -> Pattern:
        """How a CALL or VMAP of this function calls another with these values."""
        own = tuple(k in self.own for k in node[2])
        if self.graph.functions[node[1]].by_lane and self.pattern.lanes > 1:
            return Pattern(node[1], 1, own, (False,) * len(values), False, self.pattern.lanes)
        differs = tuple(k in self.nodes for k in values)
        return Pattern(node[1], self.pattern.lanes, own, differs, masked, self.pattern.stride)

    def _look(self, region: Region) -> None:
        found = self.nodes
        for number in region.nodes:
            node = self.graph.nodes[number]
            opcode = node[0]
            if opcode in (FOR, WHILE):
                self._loop(node, number)
            elif opcode == COND:
                branches = [self.graph.regions[k] for k in node[2:]]
                for branch in branches:
                    self._look(branch)
                for k, pair in enumerate(zip(*(branch.results for branch in branches), strict=True)):
                    if node[1] in found or not found.isdisjoint(pair):
                        self.left.add((number, k))
            elif opcode in (CALL, VMAP):
                results: list[bool] = []
                for values in calls(self.graph, node):
                    results += self.uniformity.of(self.called(node, values)).results
                self.left.update((number, k) for k, differs in enumerate(results) if differs)
            elif opcode == VALUE:
                if node[1:3] in self.left:
                    found.add(number)
            elif opcode == ZEROS:
                self.own.add(node[1])
            elif opcode == PARAMETER:
                continue
            elif (opcode == LOAD and node[1] in self.own) or not found.isdisjoint(operands(node)):
                found.add(number)

    def _loop(self, node: Node, number: int) -> None:
        region, found = self.graph.regions[node[1]], self.nodes
        starts = node[3:] if node[0] == FOR else node[2:]
        carried = region.parameters[len(region.parameters) - len(starts) :]
        self._look(region)
        stops = node[2] if node[0] == FOR else region.test
        for k, (start, parameter, result) in enumerate(zip(starts, carried, region.results, strict=True)):
            if stops in found or not found.isdisjoint((start, result)):
                found.add(parameter)
                self.left.add((number, k))
