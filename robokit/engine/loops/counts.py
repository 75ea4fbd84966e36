"""Counts what a kernel with loops does for given arguments.

Each region's operations are counted once, and how often it runs is found by running what decides that:
counts, tests and conditions, and what these are computed from.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.analysis import CALLS, Live, inner, loop_parameters, outcome, starts
from robokit.engine.loops.record import (
    CHECK,
    COND,
    ERRORS,
    FLOOR,
    FLOOR_DIVIDE,
    FOR,
    INTEGER,
    LOAD,
    MINUS,
    PARAMETER,
    PLUS,
    REAL,
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
    ZEROS,
    LoopGraph,
    Region,
    operands,
    told,
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
    FLOOR: lambda a: math.floor(a) if math.isfinite(a) else 0,
    FLOOR_DIVIDE: lambda a, b: a // b if b else 0,  # a quotient may stand before its check
}

_CONTROLS = (FOR, WHILE, COND, ZEROS, *CALLS)

Part = tuple[int, bool]
"""A region, and whether its test is meant."""


class Usage:
    """What one state takes.

    Args:
        graph: the recording.
        written: numbers of the arrays whose content matters at the end.
        sizes: of the kernel.
        arrays: flat ones that can be written to; they are changed.

    Attributes:
        counts: operations, by :data:`NAMES`.
        workspace: real numbers and whole numbers that arrays of zeros take at most at a time.
    """

    def __init__(
        self, graph: LoopGraph, written: Collection[int], sizes: Sequence[int], arrays: Sequence[Any]
    ) -> None:
        live = Live(graph, written)
        controls = [n for n in live.nodes if graph.nodes[n][0] in _CONTROLS]
        run = _Run(graph, Live(graph, [], controls), sizes, arrays)
        self.workspace = {"real": run.most[REAL], "integer": run.most[INTEGER]}
        self.counts = dict.fromkeys(NAMES, 0)
        for (region, is_test), times in run.times.items():
            for name, count in _usage(graph, live, graph.regions[region], is_test).items():
                self.counts[name] += times * count


def _usage(graph: LoopGraph, live: Live, region: Region, is_test: bool) -> dict[str, int]:
    """Operations of a part of a region, without those inside it."""
    part = slice(0, region.tested) if is_test else slice(region.tested, None)
    nodes = [graph.nodes[n] for n in live.of(region, part) if outcome(graph.nodes[n]) is None]
    opcodes = Counter(node[0] for node in nodes)
    found = counted(node for node in nodes if CONST < node[0] < len(OPERATIONS))
    whole = sum(count for opcode, count in opcodes.items() if opcode in _VALUES)
    return found | {"load": opcodes[LOAD], "store": opcodes[STORE], "whole": whole}


class _Run:
    """Runs what decides how often each region runs.

    Attributes:
        times: that each part ran.
        most: elements of arrays of zeros at a time, by their kind.
    """

    def __init__(self, graph: LoopGraph, live: Live, sizes: Sequence[int], arrays: Sequence[Any]) -> None:
        self.graph, self.live = graph, live
        self.times: Counter[Part] = Counter()
        self.most, self.used = Counter[str](), Counter[str]()
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
        used = Counter(self.used)
        part = slice(0, region.tested) if is_test else slice(region.tested, None)
        for n in self.live.of(region, part):
            opcode = self.graph.nodes[n][0]
            if opcode in _CONTROLS and opcode != ZEROS:
                self._control(n)
            elif opcode not in (CONST, WHOLE, PARAMETER, VALUE):
                self._operation(n)
        if not is_test:
            self.used = used

    def _operation(self, n: int) -> None:
        node = self.graph.nodes[n]
        if outcome(node) is not None:
            self.values[n] = outcome(node)
            return
        read = [self._value(k) for k in operands(node)]
        if node[0] == LOAD:
            self.values[n] = self.arrays[node[1]][read[0]].item()
        elif node[0] == STORE:
            self.arrays[node[1]][read[0]] = read[1]
        elif node[0] == CHECK:
            if not read[0]:
                raise ERRORS[node[2]](f"{node[3]}{told('here', self.graph.lines[n])}")
        elif node[0] == ZEROS:
            kind, length = self.graph.arrays[node[1]].kind, math.prod(read)
            self.used[kind] += length + (length % 2 if kind == INTEGER else 0)
            self.most |= self.used
            self.arrays[node[1]] = np.zeros(length, np.int64 if kind == INTEGER else float)
        else:
            value: Any = _VALUES.get(node[0]) or OPERATIONS[node[0]].value
            self.values[n] = value(*read)

    def _control(self, n: int) -> None:
        node = self.graph.nodes[n]
        results: Sequence[int]
        if node[0] in CALLS:
            self._call(n)
            return
        if node[0] == COND:
            region = self.graph.regions[node[2 if self._value(node[1]) else 3]]
            self._region(region)
            results = region.results
        else:
            results = self._loop(n)
        for value in self.live.values[n]:
            self.values[value] = self._value(results[self.graph.nodes[value][2]])

    def _call(self, n: int) -> None:
        node, graph, live = self.graph.nodes[n], self.graph, self.live
        function = graph.functions[node[1]]
        parameters = live.parameters(function)
        self.arrays |= zip(live.arrays(function), [self.arrays[k] for k in live.given_arrays(n)], strict=True)
        for column, read in zip(live.arguments(n), live.values_of(n), strict=True):
            self.values |= zip(parameters, [self._value(k) for k in column], strict=True)
            self._region(function.region)
            self.values |= {x: self._value(function.region.results[k]) for k, x in read.items()}

    def _loop(self, n: int) -> list[int]:
        """Run a loop; the parameters that hold what it leaves."""
        node, kept = self.graph.nodes[n], self.live.positions(n)
        (region,) = inner(self.graph, node)
        parameters = loop_parameters(node, region)
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
        used = self.used
        while True:
            self.used = Counter(used)
            self._region(region, True)
            if not self._value(region.test):
                self.used = used
                return parameters
            self._region(region)
            self.values |= zip(own, [self._value(r) for r in results], strict=True)
