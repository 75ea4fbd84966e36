"""Analyses of a recording: what of it is needed, and which values are the same in all lanes.

A language that has no optimizer behind it writes what is needed and nothing else. What is the same in all
lanes is computed once, and a loop whose count is has no mask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from robokit.dataclass_tools import frozen
from robokit.engine.loops.record import Function, LoopGraph, Region, calls, operands, told
from robokit.engine.trace import ops
from robokit.engine.trace.graph import Node


def inner(graph: LoopGraph, node: Node) -> list[Region]:
    """The regions that a control operation executes."""
    if node[0] in (ops.FOR, ops.WHILE):
        return [graph.regions[node[1]]]
    return [graph.regions[k] for k in node[2:4]] if node[0] == ops.COND else []


def outcome(node: Node) -> int | None:
    """The outcome, 0 or 1, of a comparison of an integer with itself; None for other nodes."""
    return _SELF[node[0]] if node[0] in _SELF and node[1] == node[2] else None


_SELF = {ops.WHOLE_LT: 0, ops.WHOLE_LE: 1, ops.WHOLE_EQ: 1}


def starts(node: Node) -> tuple[int, ...]:
    """The initial values that a loop carries."""
    return node[3:] if node[0] == ops.FOR else node[2:]


def loop_parameters(node: Node, region: Region) -> list[int]:
    """The parameters of a loop's region that stand for its carried values."""
    return region.parameters[1:] if node[0] == ops.FOR else region.parameters


CALLS = (ops.APPLY, ops.VMAP)


class Live:
    """The parts of a recording that are needed.

    Args:
        graph: the recording, without calls of other compiled kernels.
        arrays: numbers of those whose content matters at the end.
        others: operations that matter anyway.

    Attributes:
        nodes: numbers of the operations.
        outputs: the values that each control operation leaves, by position, and what a loop carries.
        values: the nodes that read them, by control operation.
        needed_parameters: positions of the parameters that each function needs.
        needed_results: positions of the results that somebody needs of it.
        functions: numbers of the functions that are called, each after those that it calls.
        control: the operation that runs each region of a loop or a condition, by the region's number.
        failures: the operations that may end a call, and the status that it then returns, from 1.
    """

    def __init__(self, graph: LoopGraph, arrays: Collection[int], others: Collection[int] = ()) -> None:
        self.graph = graph
        self.nodes: set[int] = set()
        self.outputs: defaultdict[int, set[int]] = defaultdict(set)
        self.values: defaultdict[int, list[int]] = defaultdict(list)
        self.needed_parameters: defaultdict[int, set[int]] = defaultdict(set)
        self.needed_results: defaultdict[int, set[int]] = defaultdict(set)
        self.function: dict[int, int] = {}
        """The function that each node belongs to."""
        self.control: dict[int, int] = {}
        self._around: dict[int, int] = {}
        self._parameter: dict[int, tuple[int, int]] = {}
        self._stores: defaultdict[int, list[int]] = defaultdict(list)
        self._calls: defaultdict[int, list[int]] = defaultdict(list)
        self._zeros: dict[int, int] = {}
        self._checks: list[int] = []
        self._work: list[int] = []
        self._arrays: set[int] = set()
        self._effects: set[int] = set()
        for function in graph.functions:
            self._parameter |= {p: (-1, k) for k, p in enumerate(function.region.parameters)}
            self._look(function.region, None, function.number)
        for array in arrays:
            self._array(array)
        self._work += [*others, *self._checks]
        while self._work:
            self._need(self._work.pop())
        self._own: defaultdict[int, list[int]] = defaultdict(list)
        for n in sorted(self.nodes):
            self._own[self.function[n]].append(n)
        self.functions: list[int] = []
        self._order(0)
        ending = (n for n in sorted(self.nodes) if graph.nodes[n][0] in (ops.CHECK, ops.ZEROS))
        self.failures = {
            n: k for k, n in enumerate((n for n in ending if self.function[n] in self.functions), 1)
        }

    def of(self, region: Region, part: slice = slice(None)) -> list[int]:
        """The operations of a region that are needed, in order."""
        return [n for n in region.nodes[part] if n in self.nodes]

    def positions(self, control: int) -> list[int]:
        """The values of a loop or a condition that are needed."""
        return sorted(self.outputs[control])

    def reach(self, what: Callable[[int], bool]) -> set[int]:
        """The functions that contain an operation of some kind, or call one that does."""
        found: set[int] = set()
        for function in self.functions:
            own = self._own[function]
            if any(map(what, own)) or any(self.graph.nodes[n][1] in found for n in self.calls(function)):
                found.add(function)
        return found

    def reasons(self) -> list[str]:
        """Why a call may end, each of :attr:`failures` in words."""
        found = []
        for n in self.failures:
            node, line = self.graph.nodes[n], told("", self.graph.lines[n]).strip()
            what = "the workspace is too small for zeros, or a size is below 0"
            if node[0] == ops.CHECK:
                what = f"{node[2]}: {node[3]}"
            found.append(f"{what}{' ' * bool(line)}{line}")
        return found

    def results(self, function: Function) -> list[int]:
        """The values that somebody needs of a function."""
        return [function.region.results[k] for k in sorted(self.needed_results[function.number])]

    def parameters(self, function: Function) -> list[int]:
        """The parameters that a function needs; for the kernel, all of its parameters."""
        numbers = function.region.parameters
        needed = sorted(self.needed_parameters[function.number])
        return [numbers[k] for k in needed] if function.number else numbers

    def arrays(self, function: Function) -> list[int]:
        """The arrays that a function needs; for the kernel, all of its arrays."""
        return [k for k in function.arrays if k in self._arrays or not function.number]

    def calls(self, function: int) -> list[int]:
        """The CALLs and VMAPs of a function."""
        return [n for n in self._own[function] if self.graph.nodes[n][0] in CALLS]

    def passed_arrays(self, call: int) -> list[int]:
        """The arrays that a CALL or VMAP passes."""
        node = self.graph.nodes[call]
        pairs = zip(self.graph.functions[node[1]].arrays, node[2], strict=True)
        return [outside for inside, outside in pairs if inside in self._arrays]

    def arguments(self, call: int) -> list[list[int]]:
        """The values that each call of a CALL or VMAP hands over."""
        node = self.graph.nodes[call]
        kept = sorted(self.needed_parameters[node[1]])
        return [[values[k] for k in kept] for values in calls(self.graph, node)]

    def values_of(self, call: int) -> list[dict[int, int]]:
        """For each call of a CALL or VMAP, the nodes that read its results, by position in the function."""
        node = self.graph.nodes[call]
        count = len(self.graph.functions[node[1]].region.results)
        found: list[dict[int, int]] = [{} for _ in calls(self.graph, node)]
        for value in self.values[call]:
            column, position = divmod(self.graph.nodes[value][2], count)
            found[column][position] = value
        return found

    def _order(self, function: int) -> None:
        for node in map(self.graph.nodes.__getitem__, self.calls(function)):
            if node[1] not in self.functions:
                self._order(node[1])
        self.functions.append(function)

    def _look(self, region: Region, around: int | None, function: int) -> None:
        graph = self.graph
        for n in region.nodes:
            node = graph.nodes[n]
            self.function[n] = function
            if around is not None:
                self._around[n] = around
            if node[0] == ops.STORE:
                self._stores[node[1]].append(n)
            if node[0] == ops.ZEROS:
                self._zeros[node[1]] = n
            if node[0] == ops.CHECK:
                self._checks.append(n)
            if node[0] in CALLS:
                self._calls[node[1]].append(n)
            for each in inner(graph, node):
                self.control[each.number] = n
                if node[0] != ops.COND:
                    self._parameter |= {p: (n, k) for k, p in enumerate(loop_parameters(node, each))}
                self._look(each, n, function)

    def _array(self, array: int) -> None:
        """An array whose content matters, and what it is called in other functions."""
        if array in self._arrays:
            return
        self._arrays.add(array)
        self._work += self._stores[array]
        if array in self._zeros:
            self._work.append(self._zeros[array])
        for function in self.graph.functions:
            for call in self._calls[function.number]:
                for inside, outside in zip(function.arrays, self.graph.nodes[call][2], strict=True):
                    if array in (inside, outside):
                        self._array(inside)
                        self._array(outside)

    def _effect(self, function: int) -> None:
        """A function that changes what matters, or may end the call, runs wherever it is called."""
        if function not in self._effects:
            self._effects.add(function)
            for call in self._calls[function]:
                self._work.append(call)
                self._effect(self.function[call])

    def _need(self, n: int) -> None:
        if n in self.nodes:
            return
        self.nodes.add(n)
        graph, node, work = self.graph, self.graph.nodes[n], self._work
        if n in self._around:
            work.append(self._around[n])
        if n in self._parameter:
            self._leave(*self._parameter[n], self.function[n])
        if node[0] == ops.VALUE:
            self.values[node[1]].append(n)
            work.append(node[1])
            self._leave(node[1], node[2], 0)
        elif node[0] == ops.FOR:
            work.append(node[2])
        elif node[0] == ops.WHILE:
            work.append(graph.regions[node[1]].test)
        elif node[0] in CALLS:
            work += [x for column in self.arguments(n) for x in column]
        elif outcome(node) is None:
            work += operands(node)
            if node[0] == ops.LOAD:
                self._array(node[1])
            own = self.graph.functions[self.function[n]].arrays
            if node[0] == ops.CHECK or (node[0] == ops.STORE and node[1] in own):
                self._effect(self.function[n])

    def _leave(self, control: int, position: int, function: int) -> None:
        """A value that a control operation leaves, or what a loop carries, or a function takes."""
        graph = self.graph
        node = graph.nodes[control] if control >= 0 else None
        results: list[int] = []
        if node is None:
            needed = self.needed_parameters[function]
        elif node[0] in CALLS:
            needed, results = self.needed_results[node[1]], graph.functions[node[1]].region.results
            position %= len(results)
        else:
            needed = self.outputs[control]
        if position in needed:
            return
        needed.add(position)
        if node is None:
            made = [graph.nodes[n] for n in self._calls[function] if n in self.nodes]
            self._work += [values[position] for call in made for values in calls(graph, call)]
        elif results:
            self._work.append(results[position])
        else:
            for region in inner(self.graph, node):
                self._work.append(region.results[position])
                if node[0] != ops.COND:
                    self._work += [starts(node)[position], loop_parameters(node, region)[position]]


# -- Uniformity: values that are the same in all lanes stay plain numbers ---------------------------------
#
# A value is the same where all that it is computed from is. What is carried out of a loop whose lanes stop at
# different turns is not, nor what a condition chooses that differs between lanes. The index of a for-loop
# always is: all lanes are in the same turn, some of them done. What a function returns depends on which of
# its arguments are the same: there is code of it for each pattern that is called.


@frozen
class Pattern:
    """The call pattern of a function: which arguments differ between lanes, and which lanes run."""

    function: int  # its number
    lanes: int  # of a vector
    # for each of its arrays, whether every lane has one of its own; on cards where it may be
    own: tuple[Any, ...]
    differs: tuple[bool, ...] = ()  # for each of its parameters, whether it may differ between lanes
    masked: bool = False  # whether it may run in some lanes alone
    stride: int = 1  # lanes of the memory of own arrays, where the function runs for one of them


class Uniformity(dict[Pattern, "Varying"]):
    """Which values may differ between lanes in the functions of a recording, by their call patterns."""

    def __init__(self, graph: LoopGraph) -> None:
        self.graph = graph

    def __missing__(self, pattern: Pattern) -> Varying:
        self[pattern] = found = Varying(self, pattern)
        return found


class Varying:
    """Values of a function that may differ between lanes.

    ``nodes``: their numbers; ``own``: arrays of which every lane has one of its own; ``left``: what control
    operations leave: their numbers, and positions; ``results``: for each of the function's results, whether
    it may differ.
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
        """The call pattern of a CALL or VMAP of this function with these values."""
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
            if opcode in (ops.FOR, ops.WHILE):
                self._loop(node, number)
            elif opcode == ops.COND:
                branches = [self.graph.regions[k] for k in node[2:]]
                for branch in branches:
                    self._look(branch)
                for k, pair in enumerate(zip(*(branch.results for branch in branches), strict=True)):
                    if node[1] in found or not found.isdisjoint(pair):
                        self.left.add((number, k))
            elif opcode in (ops.APPLY, ops.VMAP):
                results: list[bool] = []
                for values in calls(self.graph, node):
                    results += self.uniformity[self.called(node, values)].results
                self.left.update((number, k) for k, differs in enumerate(results) if differs)
            elif opcode == ops.VALUE:
                if node[1:3] in self.left:
                    found.add(number)
            elif opcode == ops.ZEROS:
                self.own.add(node[1])
            elif opcode == ops.GIVEN:
                continue
            elif (opcode == ops.LOAD and node[1] in self.own) or not found.isdisjoint(operands(node)):
                found.add(number)

    def _loop(self, node: Node, number: int) -> None:
        region, found = self.graph.regions[node[1]], self.nodes
        self._look(region)
        stops = node[2] if node[0] == ops.FOR else region.test
        carried = zip(starts(node), loop_parameters(node, region), region.results, strict=True)
        for k, (start, parameter, result) in enumerate(carried):
            if stops in found or not found.isdisjoint((start, result)):
                found.add(parameter)
                self.left.add((number, k))
