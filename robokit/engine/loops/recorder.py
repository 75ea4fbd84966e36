"""What the words of control_flow do while a function is recorded: they make regions of a graph (record.py).

What is carried, chosen and returned may be nested tuples and lists, and parts of arrays; it must have the
same form and kind wherever it comes from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from robokit.engine.loops.record import (
    CALL,
    COND,
    FLOOR,
    FOR,
    INTEGER,
    VALUE,
    VMAP,
    WHILE,
    ZEROS,
    Array,
    Escaped,
    Function,
    Integer,
    LoopGraph,
    Region,
    told,
    users_line,
    wrong,
)
from robokit.engine.trace.graph import Node
from robokit.engine.trace.ops import CONST
from robokit.engine.trace.scalar import Scalar, Truth
from robokit.spatial import control_flow
from robokit.spatial.scalars import holds


def flat(values: Any) -> list[Any]:
    """The numbers of nested tuples and lists, in order; of an array, those that say where its memory is."""
    if isinstance(values, (tuple, list)):
        return [x for each in values for x in flat(each)]
    if isinstance(values, Array):
        return [values.offset, *(n for n in values.shape if isinstance(n, Integer))]
    return [] if values is None else [values]


def rebuilt(pattern: Any, numbers: Iterator[Any], arrays: Callable[[int], int] | None = None) -> Any:
    """Numbers in the nested form of a pattern; its arrays are parts of others, if these are given."""
    if isinstance(pattern, (tuple, list)):
        items = [rebuilt(each, numbers, arrays) for each in pattern]
        return pattern._make(items) if hasattr(pattern, "_make") else type(pattern)(items)
    if isinstance(pattern, Array):
        number = arrays(pattern.number) if arrays else pattern.number
        offset = next(numbers)
        shape = [next(numbers) if isinstance(n, Integer) else n for n in pattern.shape]
        return Array(pattern.graph, number, pattern.kind, shape, pattern.writable, offset)
    return None if pattern is None else next(numbers)


def form(values: Any, kinds: Iterator[str], bases: Callable[[Array], int]) -> Any:
    """What two values must have in common to be the same in form and kind."""
    if isinstance(values, (tuple, list)):
        return type(values), *(form(each, kinds, bases) for each in values)
    own = tuple([next(kinds) for _ in flat(values)])
    if isinstance(values, Array):
        sizes = [None if isinstance(n, Integer) else n for n in values.shape]
        return own, bases(values), values.kind, values.writable, *sizes
    return own


def described(graph: LoopGraph, values: Any) -> str:
    """Form and kinds of numbers in nested tuples and lists."""
    if isinstance(values, (tuple, list)):
        return f"({', '.join(described(graph, each) for each in values)})" if values else "nothing"
    if isinstance(values, Array):
        sizes = ["n" if isinstance(n, Integer) else str(n) for n in values.shape]
        return f"array of {values.kind}s ({', '.join(sizes)})"
    return "nothing" if values is None else graph.kinds[graph.node(values)]


def _pattern(graph: LoopGraph, values: Any) -> tuple[str, list[int]]:
    """Form and kinds of values, and the memory of the arrays among them."""
    return described(graph, values), [graph.array_here(number) for number in _arrays_in(values)]


def _same(graph: LoopGraph, given: Any, expected: tuple[str, list[int]], what: str, other: str) -> list[int]:
    """Nodes of what a body or branch returns, which must be the same in form and kind as something else."""
    words, arrays = _pattern(graph, given)
    if words != expected[0]:
        raise TypeError(
            f"{what} returns {words}, {other} {expected[0]}: they must be the same in number and kind; 0.0 "
            "is a real number and 0 a whole one, 1.0 * k makes a real number of a whole one and whole(x) a "
            f"whole one of a real one{told('here', users_line())}"
        )
    if arrays != expected[1]:
        raise TypeError(
            f"{what} returns a part of an array, {other} a part of another one: write the entries to one "
            f"array{told('here', users_line())}"
        )
    return [graph.node(x) for x in flat(given)]


class Recorder:
    """What for_range, while_loop and cond do while a graph is recorded."""

    def __init__(self, graph: LoopGraph, link: Callable[..., None]) -> None:
        self.graph, self.link = graph, link
        self.functions: dict[Any, list[Function]] = {}
        self.open: list[Any] = []

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`."""
        graph = self.graph
        turns = graph.node(count)
        if graph.kinds[turns] != INTEGER:
            raise wrong("for_range: a count is a whole number", count, "whole(x) makes one of a real number")
        with self._loop(start) as (region, starts, carried):
            index = graph.wrapped(graph.parameter(INTEGER))
            region.parameters.insert(0, region.parameters.pop())
            self._carry(region, body(index, *carried), start)
        return self._left((FOR, region.number, turns, *starts), start, region)

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: int | None
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`."""
        graph = self.graph
        if most is not None:
            return self._bounded(test, body, start, most)
        with self._loop(start) as (region, starts, carried):
            held = test(*carried)
            if not isinstance(held, (Truth, int, np.bool_)):
                raise wrong("while_loop: a test returns a comparison", held, "x != 0, or another one")
            if not isinstance(held, Truth) and holds(held):
                raise wrong("while_loop: a test depends on what is carried", held, "the loop never ends")
            region.test = graph.node(held if isinstance(held, Truth) else False)
            region.tested = len(region.nodes)
            graph.forget_memory()
            self._carry(region, body(*carried), start)
        return self._left((WHILE, region.number, *starts), start, region)

    @contextlib.contextmanager
    def _loop(self, start: tuple[Any, ...]) -> Iterator[tuple[Region, list[int], Any]]:
        """Record the body of a loop: its region, what it starts with, and what its turns carry."""
        graph = self.graph
        starts = [graph.node(x) for x in flat(start)]
        with graph.region(True) as region:
            carried = [graph.wrapped(graph.parameter(graph.kinds[k])) for k in starts]
            yield region, starts, rebuilt(start, iter(carried))

    def _carry(self, region: Region, returned: Any, start: tuple[Any, ...]) -> None:
        """Note what a body carries on; it must be what the loop starts with."""
        expected = _pattern(self.graph, start[0] if len(start) == 1 else start or None)
        region.results = _same(
            self.graph, returned, expected, "the body of a loop", "what it carries began as"
        )

    def _bounded(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: Any
    ) -> tuple[Any, ...]:
        """A while-loop that counts its turns."""

        def another(*carried: Any) -> Any:
            return test(*carried[:-1]) & (carried[-1] < most)

        def counted(*carried: Any) -> Any:
            returned = body(*carried[:-1])
            own = (returned,) if len(start) == 1 else returned if start else ()
            return *own, carried[-1] + 1

        found = self.while_loop(another, counted, (*start, 0), None)
        return found[:-1]

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`: values alone are those that were found."""
        return unknown

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`."""
        graph = self.graph
        if not isinstance(condition, Truth):
            raise wrong("cond: a condition is a comparison", condition, "x != 0, or another one")
        branches: list[Region] = []
        first: tuple[Any, tuple[str, list[int]]] | None = None
        asked = graph.node(condition)
        for branch in (then, otherwise):
            with graph.region(False) as region:
                value = branch()
                first = first or (value, _pattern(graph, value))
                region.results = _same(graph, value, first[1], "the second branch of cond", "the first one")
            branches.append(region)
        assert first
        return self._left((COND, asked, *(region.number for region in branches)), first[0], branches[0])

    def zeros(self, shape: tuple[Any, ...], kind: str) -> Array:
        """As :func:`robokit.spatial.control_flow.zeros`."""
        graph = self.graph
        sizes = [graph.node(n) for n in shape]
        for n, number in zip(shape, sizes, strict=True):
            if graph.kinds[number] != INTEGER:
                raise wrong("zeros: a size is a whole number", n, "whole(x) makes one of a real number")
        number = graph.array(kind, graph.stack[-1], True)
        graph.effect((ZEROS, number, *sizes))
        return Array(graph, number, kind, [n if isinstance(n, Integer) else int(n) for n in shape], True)

    def in_precision(self, double: float, single: float) -> Any:
        """As :func:`robokit.spatial.control_flow.in_precision`."""
        return self.graph.wrapped(self.graph.add((CONST, double, single)))

    def whole(self, x: Any) -> Any:
        """As :func:`robokit.spatial.control_flow.whole`."""
        if isinstance(x, Integer):
            return x
        if not isinstance(x, Scalar):
            raise wrong(
                "whole: a real number is expected", x, "where(condition, 1, 0) makes one of a comparison"
            )
        graph = self.graph
        message = "whole: NaN, or beyond 32 bits, is no count and no index"
        graph.check((x >= -(2.0**31)) & (x < 2.0**31), "ValueError", message)
        return graph.wrapped(graph.add((FLOOR, graph.node(x))))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """As :func:`robokit.spatial.control_flow.call`."""
        if hasattr(function, "on_memory"):
            return self.link(self.graph, function, arguments)
        bases: list[int] = []
        given = [self.graph.node(x) for x in flat(arguments)]
        key = self._key(function, arguments, given, bases)
        return self._called(self._function(function, key, arguments, given, bases), given, bases)

    def vmap(self, function: Callable[..., Any], columns: list[tuple[Any, ...]]) -> list[Any]:
        """As :func:`robokit.spatial.control_flow.vmap`.

        Columns are one VMAP where they are the same in form and kind, and the function writes to no array but
        its own: the order of its calls then means nothing.
        """
        graph = self.graph
        bases: list[int] = []
        given = [[graph.node(x) for x in flat(column)] for column in columns]
        keys = [self._key(function, *both, bases) for both in zip(columns, given, strict=True)]
        if len(columns) < 2 or keys.count(keys[0]) < len(keys):
            return [self.call(function, column) for column in columns]
        found = self._function(function, keys[0], columns[0], given[0], bases)
        if found.writes.intersection(found.arrays):
            return [self.call(function, column) for column in columns]
        arrays = self._arrays(found, bases)
        shared = [graph.here(number) for number in found.values]
        values = [x for column in given for x in column]
        control = graph.effect((VMAP, found.number, tuple(arrays), len(columns), *values, *shared))
        results = len(found.region.results)
        return [self._results(found, control, k * results, arrays) for k in range(len(columns))]

    def _key(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], given: list[int], bases: list[int]
    ) -> Any:
        """What calls that share code have in common; the arguments' arrays are added to bases."""

        def base(array: Array) -> int:
            number = self.graph.array_here(array.number)
            if number not in bases:
                bases.append(number)
            return bases.index(number)

        return identity(function), form(arguments, iter([self.graph.kinds[k] for k in given]), base)

    def _function(
        self,
        function: Callable[..., Any],
        key: Any,
        arguments: tuple[Any, ...],
        given: list[int],
        bases: list[int],
    ) -> Function:
        """The recorded function, recorded now if it is new."""
        if key[0] in self.open:
            raise TypeError(
                f"{function!r} calls itself, which a recorded function cannot: write a loop (while_loop)"
                f"{told('called', users_line())}"
            )
        return self._recorded(key, bases) or self._record(function, key, arguments, given, bases)

    def _recorded(self, key: Any, bases: list[int]) -> Function | None:
        """A function that was recorded before, and can be called here with parts of these arrays."""
        graph = self.graph
        for known in self.functions.get(key, ()):
            actual = self._arrays(known, bases)
            merged = all(
                graph.array_here(outside) == actual[known.arrays.index(own)]
                for outside, own in known.taken.items()
            )
            if merged and len(set(actual)) == len(actual):
                return known
        return None

    def _arrays(self, function: Function, bases: list[int]) -> list[int]:
        """Which arrays of the present function those of a called one are."""
        outside = {own: number for number, own in reversed(function.taken.items())}
        rest = function.arrays[function.explicit :]
        return [*bases, *(self.graph.array_here(outside[own]) for own in rest)]

    def _record(
        self,
        function: Callable[..., Any],
        key: Any,
        arguments: tuple[Any, ...],
        given: list[int],
        bases: list[int],
    ) -> Function:
        graph = self.graph
        outer = [graph.arrays[number] for number in bases]
        resolved = {k: graph.array_here(k) for k in _arrays_in(arguments)}
        with graph.function() as frame:
            made = frame.function
            for number, memory in zip(bases, outer, strict=True):
                frame.given[number] = graph.array(memory.kind, made.region, memory.writable)
            made.arrays, made.explicit = list(frame.given.values()), len(bases)
            made.by_lane = getattr(function, "by_lane", False)
            numbers = [graph.wrapped(graph.parameter(graph.kinds[k])) for k in given]
            self.open.append(key[0])
            try:
                own = rebuilt(arguments, iter(numbers), lambda number: frame.given[resolved[number]])
                returned = function(*own)
            finally:
                self.open.pop()
            made.form = self._returned(made, returned)
        self.functions.setdefault(key, []).append(made)
        return made

    def _returned(self, made: Function, returned: Any) -> Any:
        """Note what a function returns: its form, in which plain numbers are the same in all calls."""
        graph = self.graph
        for number in _arrays_in(returned):
            graph.array_here(number)
        made.region.results = [graph.node(x) for x in flat(returned)]
        return returned

    def _called(self, function: Function, given: list[int], bases: list[int]) -> Any:
        """Record a call."""
        graph = self.graph
        arrays = self._arrays(function, bases)
        values = [*given, *(graph.here(number) for number in function.values)]
        control = graph.effect((CALL, function.number, tuple(arrays), *values))
        pairs = zip(function.arrays, arrays, strict=True)
        graph.written([actual for own, actual in pairs if own in function.writes])
        return self._results(function, control, 0, arrays)

    def _results(self, function: Function, control: int, first: int, arrays: list[int]) -> Any:
        """What a call returns: the values that it leaves, from a position on."""
        graph, found = self.graph, []
        for k, (number, x) in enumerate(zip(function.region.results, flat(function.form), strict=True)):
            node = (VALUE, control, first + k, graph.kinds[number])
            known = not isinstance(x, (Scalar, Integer, Truth))
            found.append(x if known else graph.wrapped(graph.add(node)))

        def outside(number: int) -> int:
            own = function.taken.get(number, number)
            if own not in function.arrays:
                raise Escaped(graph.escaped(graph.arrays[own].line))
            return arrays[function.arrays.index(own)]

        return rebuilt(function.form, iter(found), outside)

    def _left(self, node: Node, pattern: Any, region: Region) -> Any:
        """What a control operation leaves, in the form of a pattern."""
        graph = self.graph
        control = graph.effect(node)
        kinds = [graph.kinds[k] for k in region.results]
        numbers = [graph.add((VALUE, control, k, kind)) for k, kind in enumerate(kinds)]
        return rebuilt(pattern, map(graph.wrapped, numbers))


def identity(function: Callable[..., Any]) -> Any:
    """What is the same for two functions that do the same: the code, and the very objects that it uses."""
    if isinstance(function, MethodType):
        return identity(function.__func__), _Same(function.__self__)
    if not isinstance(function, FunctionType):
        return _Same(function)
    used = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a name without a value yet
            used.append(cell.cell_contents)
    return function.__code__, id(function.__globals__), *map(_Same, used)


class _Same:
    """An object as a key: equal to itself alone, and alive as long as the key."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def _arrays_in(values: Any) -> list[int]:
    """Numbers of the arrays in nested tuples and lists."""
    if isinstance(values, (tuple, list)):
        return [x for each in values for x in _arrays_in(each)]
    return [values.number] if isinstance(values, Array) else []


@contextlib.contextmanager
def recording(graph: LoopGraph, link: Callable[..., None], kind: type[Recorder] = Recorder) -> Iterator[None]:
    """While it lasts, loops of this thread are recorded; ``link`` records calls of other kernels."""
    try:
        with control_flow.recorded_by(kind(graph, link)):
            yield
    except RecursionError:
        raise TypeError(
            "the function calls itself without end: what is known only later does not end a recursion, since "
            "both branches of cond are recorded; write a loop (while_loop)"
        ) from None
    finally:
        graph.frames.clear()  # what is kept of it is of no use any more
