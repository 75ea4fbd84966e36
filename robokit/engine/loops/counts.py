"""Counts what a kernel with loops does for given arguments.

Each region's operations are counted once, and how often it runs is found by running what decides that:
counts, tests and conditions, and what these are computed from.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from robokit.engine.loops.live import Live, carried, inner, starts
from robokit.engine.loops.record import (
    CALL,
    COND,
    FOR,
    LOAD,
    MINUS,
    PARAMETER,
    PLUS,
    STORE,
    TIMES,
    TO_REAL,
    VALUE,
    WHILE,
    WHOLE,
    WHOLE_EQ,
    WHOLE_LE,
    WHOLE_LT,
    WHOLE_SELECT,
    LoopGraph,
    Region,
    operands,
)
from robokit.engine.trace.ops import CONST, COUNTS, OPERATIONS, SELECT, counted

NAMES = (*COUNTS, "load", "store", "whole")
"""What operations count as: of numbers as elsewhere; "whole" are those on whole numbers, also comparisons,
choices and what makes them real numbers. The turns of loops are not counted."""

_VALUES = {
    PLUS: operator.add,
    MINUS: operator.sub,
    TIMES: operator.mul,
    WHOLE_LT: operator.lt,
    WHOLE_LE: operator.le,
    WHOLE_EQ: operator.eq,
    WHOLE_SELECT: OPERATIONS[SELECT].value,
    TO_REAL: float,
}

_CONTROLS = (FOR, WHILE, COND, CALL)

Part = tuple[int, bool]
"""A region, and whether its test is meant."""


def counts(
    graph: LoopGraph, written: Collection[int], sizes: Sequence[int], arrays: Sequence[Any]
) -> dict[str, int]:
    """How many operations of each of :data:`NAMES` one state takes.

    Args:
        graph: the recording.
        written: numbers of the arrays whose content matters at the end.
        sizes: of the kernel.
        arrays: flat ones that can be written to; they are changed.
    """
    live = Live(graph, written)
    controls = [n for n in live.nodes if graph.nodes[n][0] in _CONTROLS]
    run = _Run(graph, Live(graph, [], controls), sizes, arrays)
    found = dict.fromkeys(NAMES, 0)
    for (number, is_test), times in run.times.items():
        region = graph.regions[number]
        part = slice(0, region.tested) if is_test else slice(region.tested, None)
        nodes = [graph.nodes[n] for n in live.of(region, part)]
        each = counted(node for node in nodes if CONST < node[0] < len(OPERATIONS))
        each |= {
            "load": sum(node[0] == LOAD for node in nodes),
            "store": sum(node[0] == STORE for node in nodes),
        }
        each["whole"] = sum(node[0] in _VALUES for node in nodes)
        for name, count in each.items():
            found[name] += times * count
    return found


class _Run:
    """Runs what decides how often each region runs.

    Attributes:
        times: that each part ran.
    """

    def __init__(self, graph: LoopGraph, live: Live, sizes: Sequence[int], arrays: Sequence[Any]) -> None:
        self.graph, self.live = graph, live
        self.times: Counter[Part] = Counter()
        kernel = graph.functions[0]
        # A function does not call itself, so a node has one value at a time.
        self.values: dict[int, Any] = dict(zip(kernel.region.parameters, sizes, strict=True))
        self.arrays = dict(zip(kernel.arrays, arrays, strict=True))
        self._region(kernel.region)

    def _value(self, n: int) -> Any:
        node = self.graph.nodes[n]
        return node[1] if node[0] in (CONST, WHOLE) else self.values[n]

    def _region(self, region: Region, is_test: bool = False) -> None:
        self.times[region.number, is_test] += 1
        part = slice(0, region.tested) if is_test else slice(region.tested, None)
        for n in self.live.of(region, part):
            opcode = self.graph.nodes[n][0]
            if opcode in _CONTROLS:
                self._control(n)
            elif opcode not in (CONST, WHOLE, PARAMETER, VALUE):
                self._operation(n)

    def _operation(self, n: int) -> None:
        node = self.graph.nodes[n]
        read = [self._value(k) for k in operands(node)]
        if node[0] == LOAD:
            self.values[n] = self.arrays[node[1]][read[0]].item()
        elif node[0] == STORE:
            self.arrays[node[1]][read[0]] = read[1]
        else:
            value: Any = _VALUES.get(node[0]) or OPERATIONS[node[0]].value
            self.values[n] = value(*read)

    def _control(self, n: int) -> None:
        node = self.graph.nodes[n]
        results: Sequence[int]
        if node[0] == CALL:
            function = self.graph.functions[node[1]]
            parameters = self.live.parameters(function)
            self.values |= zip(parameters, [self._value(k) for k in self.live.arguments(n)], strict=True)
            self.arrays |= zip(function.arrays, [self.arrays[k] for k in node[2]], strict=True)
            self._region(function.region)
            results = function.region.results
        elif node[0] == COND:
            region = self.graph.regions[node[2 if self._value(node[1]) else 3]]
            self._region(region)
            results = region.results
        else:
            results = self._loop(n)
        for value in self.live.values[n]:
            self.values[value] = self._value(results[self.graph.nodes[value][2]])

    def _loop(self, n: int) -> list[int]:
        """Run a loop; the parameters that hold what it leaves."""
        node, kept = self.graph.nodes[n], self.live.positions(n)
        (region,) = inner(self.graph, node)
        parameters = carried(node, region)
        own, results = [parameters[k] for k in kept], [region.results[k] for k in kept]
        self.values |= zip(own, [self._value(starts(node)[k]) for k in kept], strict=True)
        if node[0] == FOR:
            count = max(0, self._value(node[2]))
            if not kept and not self.live.of(region):
                self.times[region.number, False] += count
                return parameters
            for k in range(count):
                self.values[region.parameters[0]] = k
                self._region(region)
                self.values |= zip(own, [self._value(r) for r in results], strict=True)
            return parameters
        while True:
            self._region(region, True)
            if not self._value(region.test):
                return parameters
            self._region(region)
            self.values |= zip(own, [self._value(r) for r in results], strict=True)
