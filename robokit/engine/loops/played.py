"""A recording with loops played back over other scalars: numbers, columns, dual numbers, another recording.

It is written in the words of control_flow, so it means what the recorded function means, whoever records it.
What the engine checks when it runs is checked again by whoever plays it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from robokit.engine.loops.record import (
    CALL,
    CHECK,
    COND,
    FLOOR,
    FLOOR_DIVIDE,
    FOR,
    LOAD,
    MINUS,
    PARAMETER,
    PLUS,
    STORE,
    TIMES,
    TO_REAL,
    VALUE,
    VMAP,
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
    playing,
)
from robokit.engine.passes.replay import PLAY
from robokit.engine.trace.ops import ADD, CONST, MUL, SUB
from robokit.spatial import control_flow, scalars

_VALUES: dict[int, Callable[..., Any]] = PLAY | {
    MUL: operator.mul,
    ADD: operator.add,
    SUB: operator.sub,
    PLUS: operator.add,
    MINUS: operator.sub,
    TIMES: operator.mul,
    WHOLE_LT: operator.lt,
    WHOLE_LE: operator.le,
    WHOLE_EQ: operator.eq,
    WHOLE_SELECT: scalars.where,
    FLOOR_DIVIDE: operator.floordiv,
    FLOOR: control_flow.whole,
    TO_REAL: lambda k: 1.0 * k,
}


def play(graph: LoopGraph, arrays: Sequence[Any]) -> None:
    """Do again what a recording of arrays does, on others.

    Args:
        graph: the recording; it has no sizes.
        arrays: in place of the kernel's own; those that it reads at places that are known may be lists.
    """
    before = getattr(playing, "line", None)
    try:
        _Player(graph, arrays).region(graph.functions[0].region)
    finally:
        playing.line = before


class _Player:
    """Values of the nodes and arrays so far. A function does not call itself, so each has one at a time."""

    def __init__(self, graph: LoopGraph, arrays: Sequence[Any]) -> None:
        self.graph, self.value = graph, dict[int, Any]()
        self.array = dict(zip(graph.functions[0].arrays, arrays, strict=True))
        self.texts: dict[int, Callable[..., Any]] = {}
        self.solved = {n for each in graph.solutions.values() for n in each.made[1:]}

    def region(self, region: Region, part: slice = slice(None)) -> None:
        """Do what a region does, or a part of it."""
        for n in region.nodes[part]:
            node, playing.line = self.graph.nodes[n], self.graph.lines[n]
            opcode = node[0]
            if n in self.solved:
                continue
            if n in self.graph.solutions:
                self._solution(n)
            elif opcode in (CONST, WHOLE):
                self.value[n] = node[1]
            elif opcode == LOAD:
                self.value[n] = self.array[node[1]][self.value[node[2]]]
            elif opcode == STORE:
                self.array[node[1]][self.value[node[2]]] = self.value[node[3]]
            elif opcode == ZEROS:
                self.array[node[1]] = self._zeros(node)
            elif opcode in (FOR, WHILE, COND, CALL, VMAP):
                self.value[n] = self._control(node)
            elif opcode == VALUE:
                self.value[n] = self.value[node[1]][node[2]]
            elif opcode not in (PARAMETER, CHECK):
                self.value[n] = _VALUES[opcode](*(self.value[k] for k in operands(node)))

    def _solution(self, n: int) -> None:
        """The numbers that solve an equation."""
        noted = self.graph.solutions[n]

        def residual(unknown: list[Any]) -> list[Any]:
            self.value |= zip(noted.region.parameters, unknown, strict=True)
            self.region(noted.region)
            return list(self._results(noted.region))

        found = control_flow.solution(residual, [self.value[k] for k in noted.unknown])
        self.value |= zip(noted.made, found, strict=True)

    def _zeros(self, node: Any) -> Any:
        count: Any = 1
        for k in node[2:]:
            count = count * self.value[k]
        return control_flow.zeros(count, kind=self.graph.arrays[node[1]].kind)

    def _results(self, region: Region) -> tuple[Any, ...]:
        return tuple(self.value[k] for k in region.results)

    def _control(self, node: Any) -> tuple[Any, ...]:
        """The values that a control operation leaves."""
        if node[0] == FOR:
            region = self.graph.regions[node[1]]
            found = control_flow.for_range(self.value[node[2]], self._body(region), self._start(node[3:]))
        elif node[0] == WHILE:
            region = self.graph.regions[node[1]]
            found = control_flow.while_loop(self._test(region), self._body(region), self._start(node[2:]))
        elif node[0] == COND:
            then, otherwise = (self._branch(self.graph.regions[k]) for k in node[2:4])
            found = control_flow.cond(self.value[node[1]], then, otherwise)
        elif node[0] == CALL:
            values = [self.value[k] for k in node[3:]]
            found = control_flow.call(self._function(node[1]), self._arrays(node), values)
        else:
            found = self._columns(node)
        return tuple(found)

    def _arrays(self, node: Any) -> list[Any]:
        return [self.array[k] for k in node[2]]

    def _columns(self, node: Any) -> list[Any]:
        """What a function leaves in all columns, one after the other."""
        text, arrays, columns = self._function(node[1]), self._arrays(node), node[3]
        values, shared = [self.value[k] for k in node[4:]], len(self.graph.functions[node[1]].values)
        own, common = values[: len(values) - shared], values[len(values) - shared :]
        count = len(own) // columns
        rows = [own[k::count] for k in range(count)]
        function = lambda *column: text(arrays, [*column, *common])  # noqa: E731
        found = control_flow.vmap(function)(*rows) if rows else [function() for _ in range(columns)]
        return [x for column in found for x in column]

    def _start(self, nodes: Sequence[int]) -> tuple[Any, ...]:
        return tuple(self.value[k] for k in nodes)

    def _body(self, region: Region) -> Callable[..., Any]:
        def body(*given: Any) -> tuple[Any, ...]:
            *index, carried = given
            self.value |= zip(region.parameters, (*index, *carried), strict=True)
            self.region(region, slice(region.tested, None))
            return self._results(region)

        return body

    def _test(self, region: Region) -> Callable[..., Any]:
        def test(carried: tuple[Any, ...]) -> Any:
            self.value |= zip(region.parameters, carried, strict=True)
            self.region(region, slice(0, region.tested))
            return self.value[region.test]

        return test

    def _branch(self, region: Region) -> Callable[[], tuple[Any, ...]]:
        def branch() -> tuple[Any, ...]:
            self.region(region)
            return self._results(region)

        return branch

    def _function(self, number: int) -> Callable[..., Any]:
        """A function that is called, the same object for all its calls."""
        function = self.graph.functions[number]

        def text(arrays: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
            self.array |= zip(function.arrays, arrays, strict=True)
            self.value |= zip(function.region.parameters, values, strict=True)
            self.region(function.region)
            return self._results(function.region)

        return self.texts.setdefault(number, text)
