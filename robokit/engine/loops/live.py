"""What of a recording is needed: a language that has no optimizer behind it writes nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from robokit.engine.loops.record import COND, FOR, LOAD, STORE, VALUE, WHILE, LoopGraph, Region, operands
from robokit.engine.trace.graph import Node


def inner(graph: LoopGraph, node: Node) -> list[Region]:
    """The regions that a control operation runs."""
    if node[0] in (FOR, WHILE):
        return [graph.regions[node[1]]]
    return [graph.regions[k] for k in node[2:4]] if node[0] == COND else []


def starts(node: Node) -> tuple[int, ...]:
    """What a loop carries into its first turn."""
    return node[3:] if node[0] == FOR else node[2:]


def carried(node: Node, region: Region) -> list[int]:
    """The parameters of a loop's region that stand for what it carries."""
    return region.parameters[1:] if node[0] == FOR else region.parameters


class Live:
    """What is needed of a recording.

    Args:
        graph: the recording.
        arrays: numbers of those whose content matters at the end.
        control: whether all that decides what runs matters, too.

    Attributes:
        nodes: numbers of the operations.
        left: the values that each control operation leaves, by position, and what a loop carries.
        values: the nodes that read them, by control operation.
    """

    def __init__(self, graph: LoopGraph, arrays: Collection[int], control: bool = False) -> None:
        self.graph = graph
        self.nodes: set[int] = set()
        self.left: defaultdict[int, set[int]] = defaultdict(set)
        self.values: defaultdict[int, list[int]] = defaultdict(list)
        self._around: dict[int, int] = {}
        self._parameter: dict[int, tuple[int, int]] = {}
        self._stores: defaultdict[int, list[int]] = defaultdict(list)
        self._work: list[int] = []
        self._arrays: set[int] = set()
        self._look(graph.regions[0], None)
        for array in arrays:
            self._array(array)
        if control:
            self._work += [n for n, node in enumerate(graph.nodes) if node[0] in (FOR, WHILE, COND)]
        while self._work:
            self._need(self._work.pop())

    def of(self, region: Region, part: slice = slice(None)) -> list[int]:
        """The operations of a region that are needed, in order."""
        return [n for n in region.nodes[part] if n in self.nodes]

    def positions(self, control: int) -> list[int]:
        """Of the values of a control operation, those that are needed."""
        return sorted(self.left[control])

    def _look(self, region: Region, around: int | None) -> None:
        graph = self.graph
        for n in region.nodes:
            node = graph.nodes[n]
            if around is not None:
                self._around[n] = around
            if node[0] == STORE:
                self._stores[node[1]].append(n)
            for each in inner(graph, node):
                if node[0] != COND:
                    for k, p in enumerate(carried(node, each)):
                        self._parameter[p] = n, k
                self._look(each, n)

    def _array(self, array: int) -> None:
        if array not in self._arrays:
            self._arrays.add(array)
            self._work += self._stores[array]

    def _need(self, n: int) -> None:
        if n in self.nodes:
            return
        self.nodes.add(n)
        graph, node, work = self.graph, self.graph.nodes[n], self._work
        if n in self._around:
            work.append(self._around[n])
        if n in self._parameter:
            self._leave(*self._parameter[n])
        if node[0] == VALUE:
            self.values[node[1]].append(n)
            work.append(node[1])
            self._leave(node[1], node[2])
        elif node[0] == FOR:
            work.append(node[2])
        elif node[0] == WHILE:
            work.append(graph.regions[node[1]].test)
        else:
            work += operands(node)
            if node[0] == LOAD:
                self._array(node[1])

    def _leave(self, control: int, position: int) -> None:
        """A value that a control operation leaves, or what a loop carries."""
        if position in self.left[control]:
            return
        self.left[control].add(position)
        node = self.graph.nodes[control]
        for region in inner(self.graph, node):
            self._work.append(region.results[position])
            if node[0] != COND:
                self._work += [starts(node)[position], carried(node, region)[position]]
