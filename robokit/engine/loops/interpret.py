"""A recording done again: on other arrays, or on plain numbers to count what a kernel does."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.analysis import CALLS, Live, loop_parameters, outcome, starts
from robokit.engine.loops.record import ERRORS, LoopGraph, Region, interpreting, operands, told
from robokit.engine.passes.replay import INTERPRET, Operations
from robokit.engine.trace import ops
from robokit.engine.trace.graph import Node
from robokit.spatial import control_flow, scalars

_ON_SCALARS: Operations = {
    **INTERPRET,
    ops.MUL: operator.mul,
    ops.ADD: operator.add,
    ops.SUB: operator.sub,
    **{each.number: each.value for each in ops.OPERATIONS if each.whole},
    ops.WHOLE_SELECT: scalars.where,
    ops.FLOOR_DIVIDE: operator.floordiv,
    ops.TO_WHOLE: control_flow.whole,
    ops.TO_REAL: lambda k: 1.0 * k,
}


def interpret(graph: LoopGraph, arrays: Sequence[Any]) -> None:
    """Do again what a recording of arrays does, on others.

    ``graph``: the recording; it has no sizes; ``arrays``: in place of the kernel's own; those that it reads
    at places that are known may be lists.
    """
    _Interpreter(graph, arrays).run()


class _Interpreter:
    """Values of the nodes and arrays so far. A function does not call itself, so each has one at a time."""

    operations: Operations = _ON_SCALARS
    """How those are done that have no regions."""

    def __init__(self, graph: LoopGraph, arrays: Sequence[Any]) -> None:
        self.graph, self.value = graph, dict[int, Any]()
        self.array = dict(zip(graph.functions[0].arrays, arrays, strict=True))
        self.functions: dict[int, Callable[..., Any]] = {}
        self.solved = {n for each in graph.solutions.values() for n in each.made[1:]}

    def run(self) -> None:
        """Do all of it."""
        before = getattr(interpreting, "line", None)
        try:
            self.region(self.graph.functions[0].region)
        finally:
            interpreting.line = before

    def region(self, region: Region, part: slice = slice(None)) -> None:
        """Do what a region does, or a part of it."""
        for n in self.nodes(region, part):
            node, interpreting.line = self.graph.nodes[n], self.graph.lines[n]
            opcode = node[0]
            if n in self.solved:
                continue
            if n in self.graph.solutions:
                self._solution(n)
            elif opcode in (ops.CONST, ops.WHOLE):
                self.value[n] = node[1] if len(node) == 2 else control_flow.in_precision(*node[1:])
            elif opcode == ops.LOAD:
                self.value[n] = self.array[node[1]][self.value[node[2]]]
            elif opcode == ops.STORE:
                self.array[node[1]][self.value[node[2]]] = self.value[node[3]]
            elif opcode == ops.ZEROS:
                self.array[node[1]] = self.zeros(self.graph.arrays[node[1]].kind, self._of(node[2:]))
            elif opcode == ops.CHECK:
                self.check(n)
            elif opcode in (ops.FOR, ops.WHILE, ops.COND, *CALLS):
                self.value[n] = self._control(node)
            elif opcode == ops.VALUE:
                self.value[n] = self.value[node[1]][node[2]]
            elif opcode != ops.GIVEN:
                self.value[n] = self.operation(node)

    def nodes(self, region: Region, part: slice) -> Sequence[int]:
        """The nodes of a part of a region that are done."""
        return region.nodes[part]

    def operation(self, node: Node) -> Any:
        """The value of an operation without regions."""
        return self.operations[node[0]](*self._of(operands(node)))

    def check(self, n: int) -> None:
        """Nothing: what is done again checks for itself."""

    def zeros(self, kind: str, sizes: Sequence[Any]) -> Any:
        """An array of zeros."""
        count: Any = 1
        for n in sizes:
            count = count * n
        return control_flow.zeros(count, kind=kind)

    def _of(self, nodes: Sequence[int]) -> tuple[Any, ...]:
        """The values of some nodes."""
        return tuple([self.value[k] for k in nodes])

    def _solution(self, n: int) -> None:
        """The numbers that solve an equation."""
        noted = self.graph.solutions[n]

        def residual(unknown: list[Any]) -> list[Any]:
            self.value |= zip(noted.region.parameters, unknown, strict=True)
            self.region(noted.region)
            return list(self._of(noted.region.results))

        found = control_flow.solution(residual, list(self._of(noted.unknown)))
        self.value |= zip(noted.made, found, strict=True)

    def _control(self, node: Node) -> tuple[Any, ...]:
        """The values that a control operation leaves."""
        if node[0] in (ops.FOR, ops.WHILE):
            found = self.loop(node, self.graph.regions[node[1]])
        elif node[0] == ops.COND:
            then, otherwise = (self._branch(self.graph.regions[k]) for k in node[2:4])
            found = control_flow.cond(self.value[node[1]], then, otherwise)
        elif node[0] == ops.VMAP:
            found = self._columns(node)
        else:
            arrays = [self.array[k] for k in node[2]]
            found = control_flow.call(self._function(node[1]), arrays, list(self._of(node[3:])))
        return tuple(found)

    def _columns(self, node: Node) -> list[Any]:
        """What a function leaves in all columns, one after the other."""
        function, arrays, columns = self._function(node[1]), [self.array[k] for k in node[2]], node[3]
        values, shared = self._of(node[4:]), len(self.graph.functions[node[1]].values)
        own, common = values[: len(values) - shared], values[len(values) - shared :]
        count = len(own) // columns
        rows = [own[k::count] for k in range(count)]
        each = lambda *column: function(arrays, [*column, *common])  # noqa: E731
        found = control_flow.vmap(each)(*rows) if rows else [each() for _ in range(columns)]
        return [x for column in found for x in column]

    def loop(self, node: Node, region: Region) -> Sequence[Any]:
        """What a loop leaves."""

        def body(*arguments: Any) -> tuple[Any, ...]:
            *index, carried = arguments
            self.value |= zip(region.parameters, (*index, *carried), strict=True)
            self.region(region, slice(region.tested, None))
            return self._of(region.results)

        def test(carried: tuple[Any, ...]) -> Any:
            self.value |= zip(region.parameters, carried, strict=True)
            self.region(region, slice(0, region.tested))
            return self.value[region.test]

        start = self._of(starts(node))
        if node[0] == ops.FOR:
            return control_flow.for_range(self.value[node[2]], body, start)  # type: ignore[no-any-return]
        return control_flow.while_loop(test, body, start)  # type: ignore[no-any-return]

    def _branch(self, region: Region) -> Callable[[], tuple[Any, ...]]:
        def branch() -> tuple[Any, ...]:
            self.region(region)
            return self._of(region.results)

        return branch

    def _function(self, number: int) -> Callable[..., Any]:
        """A function that is called, the same object for all its calls."""
        function = self.graph.functions[number]

        def run(arrays: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
            self.array |= zip(function.arrays, arrays, strict=True)
            self.value |= zip(function.region.parameters, values, strict=True)
            self.region(function.region)
            return self._of(function.region.results)

        return self.functions.setdefault(number, run)


# -- Counting: what a kernel does for given arguments -----------------------------------------------------

NAMES = (*ops.COUNTS, "load", "store", "whole")
"""What operations count as: of numbers as elsewhere; "whole" are those on whole numbers, also comparisons,
choices and what makes them real numbers. The turns of loops are not counted."""


class Usage(_Interpreter):
    """What one state takes.

    Each region's operations are counted once, and how often it runs is found by running what decides that:
    counts, tests and conditions, and what these are computed from. The value of all else is None.

    Args:
        graph: the recording.
        written: numbers of the arrays whose content matters at the end.
        sizes: of the kernel.
        arrays: flat ones; they stay as they are.

    Attributes:
        counts: operations, by :data:`NAMES`.
        workspace: real numbers and whole numbers that arrays of zeros take at most at a time.
    """

    operations = ops.ON_NUMBERS

    def __init__(
        self, graph: LoopGraph, written: Collection[int], sizes: Sequence[int], arrays: Sequence[np.ndarray]
    ) -> None:
        super().__init__(graph, [x.tolist() for x in arrays])
        kernel, needed = graph.functions[0], Live(graph, written)
        deciding = (ops.FOR, ops.WHILE, ops.COND, ops.ZEROS, *CALLS)
        controls = [n for n in needed.nodes if graph.nodes[n][0] in deciding]
        self.live = Live(graph, [], controls)
        self.value = defaultdict(lambda: None, zip(kernel.region.parameters, sizes, strict=True))
        self.array = defaultdict(lambda: None, self.array)
        self.times = Counter[tuple[int, bool]]()
        """How often each region ran, or its test."""
        self.most, self.used = Counter[str](), Counter[str]()
        """Elements of arrays of zeros, by their kind: at most, and now."""
        self.run()
        self.workspace = {kind: self.most[kind] for kind in ("real", "integer")}
        self.counts = dict.fromkeys(NAMES, 0)
        for (number, is_test), times in self.times.items():
            for name, count in _usage(graph, needed, graph.regions[number], is_test).items():
                self.counts[name] += times * count

    def region(self, region: Region, part: slice = slice(None)) -> None:
        """Do what a part does that decides; arrays of zeros last as long as it, those of a test longer."""
        is_test, used = part.stop is not None, Counter(self.used)
        self.times[region.number, is_test] += 1
        super().region(region, part)
        if not is_test:
            self.used = used

    def nodes(self, region: Region, part: slice) -> Sequence[int]:
        """Those that decide."""
        return self.live.of(region, part)

    def operation(self, node: Node) -> Any:
        """As of :class:`_Interpreter`."""
        found = outcome(node)
        return super().operation(node) if found is None else found

    def check(self, n: int) -> None:
        """Raise what the kernel ends with where something does not hold."""
        _, truth, error, message = self.graph.nodes[n]
        if not self.value[truth]:
            raise ERRORS[error](f"{message}{told('here', self.graph.lines[n])}")

    def zeros(self, kind: str, sizes: Sequence[int]) -> list[float] | list[int]:
        """An array of zeros, counted."""
        length = math.prod(sizes)
        self.used[kind] += length + (length % 2 if kind == ops.INTEGER else 0)
        self.most |= self.used
        return [0] * length if kind == ops.INTEGER else [0.0] * length

    def loop(self, node: Node, region: Region) -> Sequence[Any]:
        """What a loop leaves; here values may be None, which the words of control_flow do not carry."""
        carried, used = self._of(starts(node)), self.used
        if node[0] == ops.FOR and not self.live.of(region):
            self.times[region.number, False] += max(0, self.value[node[2]])
            return self._of(region.results)
        for k in itertools.count():
            self.value |= zip(loop_parameters(node, region), carried, strict=True)
            self.used = Counter(used)
            if node[0] == ops.WHILE:
                self.region(region, slice(0, region.tested))
            else:
                self.value[region.parameters[0]] = k
            if not (self.value[region.test] if node[0] == ops.WHILE else k < self.value[node[2]]):
                break
            self.region(region, slice(region.tested, None))
            carried = self._of(region.results)
        self.used = used
        return carried


def _usage(graph: LoopGraph, live: Live, region: Region, is_test: bool) -> dict[str, int]:
    """Operations of a part of a region, without those inside it."""
    part = slice(0, region.tested) if is_test else slice(region.tested, None)
    nodes = [graph.nodes[n] for n in live.of(region, part) if outcome(graph.nodes[n]) is None]
    opcodes = Counter(node[0] for node in nodes)
    own = [node[:2] for node in nodes if ops.CONST < node[0] < len(ops.OPERATIONS)]
    found = ops.counted(*np.array(own, int).reshape(-1, 2).T)
    whole = sum(opcodes[each.number] for each in ops.OPERATIONS if each.whole)
    return found | {"load": opcodes[ops.LOAD], "store": opcodes[ops.STORE], "whole": whole}
