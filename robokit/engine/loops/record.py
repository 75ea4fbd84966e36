"""Records a function with loops and conditions: regions of operations, one inside the other.

A *region* is the body of a loop, a branch of a condition, or the whole function. Its operations are recorded
once, as those of a straight line are (trace/graph.py); a control operation holds the regions that it runs:

    (FOR, region, count, start values...)      region's parameters: the index, then what is carried
    (WHILE, region, start values...)           parameters: what is carried; the region has a test
    (COND, condition, then, otherwise)         regions without parameters
    (VALUE, control, position)                 a value that one of these leaves

An operation stands in the innermost loop that its operands change in: what stays the same in a loop is
computed before it. Out of a branch nothing is moved, since it may not be needed. Loads keep their place: an
index may be right only inside.

A scalar of a region that is over cannot be used any more. Recording it says so where it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from robokit.engine.trace import scalar
from robokit.engine.trace.graph import Graph, Node
from robokit.engine.trace.ops import CONST, TRUTHS
from robokit.engine.trace.scalar import Scalar, Truth
from robokit.spatial import control_flow
from robokit.spatial.scalars import register

(
    PARAMETER, WHOLE, SIZE, PLUS, MINUS, TIMES, WHOLE_LT, WHOLE_LE, WHOLE_EQ, WHOLE_SELECT, TO_REAL,
    LOAD, STORE, FOR, WHILE, COND, VALUE,
) = range(1000, 1017)  # fmt: skip

REAL, INTEGER, TRUTH, NOTHING = "real", "integer", "truth", "nothing"

_KINDS = {
    WHOLE: INTEGER, SIZE: INTEGER, PLUS: INTEGER, MINUS: INTEGER, TIMES: INTEGER, WHOLE_SELECT: INTEGER,
    TO_REAL: REAL, WHOLE_LT: TRUTH, WHOLE_LE: TRUTH, WHOLE_EQ: TRUTH, STORE: NOTHING,
    FOR: NOTHING, WHILE: NOTHING, COND: NOTHING,
}  # fmt: skip


class Escaped(TypeError):
    """A value of a loop or branch is used after it."""


@dataclass
class Region:
    """The body of a loop, a branch, or a whole function.

    Attributes:
        number: in the recording.
        depth: regions around it.
        loop: whether what does not change in it may stand before it.
        nodes: numbers of its operations in an order of evaluation.
        parameters: nodes that stand for its index and what is carried.
        results: nodes of the values that it leaves, or carries on.
        test: of a WHILE, the node that says whether it goes on, and
        tested: how many of its nodes belong to the test.
    """

    number: int
    depth: int
    loop: bool
    nodes: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    test: int = 0
    tested: int = 0


def operands(node: Node) -> Sequence[int]:
    """The nodes that a node reads."""
    opcode = node[0]
    if opcode < 0 or opcode in (PARAMETER, WHOLE, SIZE):
        return ()
    if opcode == LOAD:
        return node[2:3]
    if opcode == VALUE:
        return node[1:2]
    if opcode in (STORE, FOR, WHILE):
        return node[2:]
    return node[1:2] if opcode == COND else node[1:]


class LoopGraph(Graph):
    """A recording with regions.

    Attributes:
        regions: all of them; the function itself is the first.
        kinds: of the value of each node.
    """

    def __init__(self, arrays: int, budget: int = 400_000) -> None:
        self.regions = [Region(0, 0, False)]
        self.stack = [self.regions[0]]
        self.place: list[Region] = [self.regions[0]]
        self.kinds: list[str] = [REAL]
        self.versions = [0] * arrays
        super().__init__(budget)

    # -- operations ---------------------------------------------------------------------------------

    def add(self, node: Node) -> int:
        """Number of the node, recorded now if no region that is open has it."""
        found = self.index.get(node)
        if found is not None:
            return found
        number = self._append(node, self._innermost(node))
        self.index[node] = number
        return number

    def effect(self, node: Node) -> int:
        """Record what is done here and now: a store, a loop, a condition."""
        self._innermost(node)
        return self._append(node, self.stack[-1])

    def _append(self, node: Node, region: Region) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        self.place.append(region)
        self.kinds.append(self._kind(node))
        region.nodes.append(number)
        return number

    def _kind(self, node: Node) -> str:
        opcode = node[0]
        if opcode in _KINDS:
            return _KINDS[opcode]
        if opcode in (PARAMETER, LOAD, VALUE):
            return node[-1] if opcode != LOAD else node[4]
        return TRUTH if opcode in TRUTHS else REAL

    def _innermost(self, node: Node) -> Region:
        """The region that an operation stands in.

        Raises:
            Escaped: an operand's region is over.
        """
        current = self.stack[-1]
        if node[0] in (CONST, WHOLE, SIZE):
            return self.regions[0]
        depth = 0
        for k in operands(node):
            region = self.place[k]
            if region.depth >= len(self.stack) or self.stack[region.depth] is not region:
                raise Escaped(
                    "a value of a loop or branch is used after it: carry it (for_range(n, body, start)), or "
                    "return it from both branches of cond"
                )
            depth = max(depth, region.depth)
        if node[0] in (LOAD, PARAMETER):
            return current
        place = len(self.stack) - 1
        while place > depth and self.stack[place].loop:
            place -= 1
        return self.stack[place]

    @contextmanager
    def region(self, loop: bool) -> Iterator[Region]:
        """Record a region."""
        self._forget_memory()
        made = Region(len(self.regions), len(self.stack), loop)
        self.regions.append(made)
        self.stack.append(made)
        try:
            yield made
        finally:
            self.stack.pop()
            for number in made.nodes:
                if self.index.get(self.nodes[number]) == number:
                    del self.index[self.nodes[number]]
            self._forget_memory()

    def _forget_memory(self) -> None:
        """What was loaded may have changed."""
        self.versions = [version + 1 for version in self.versions]

    # -- values -------------------------------------------------------------------------------------

    def parameter(self, kind: str) -> int:
        """A parameter of the region that is being recorded."""
        region = self.stack[-1]
        node = (PARAMETER, region.number, len(region.parameters), kind)
        number = self._append(node, region)
        region.parameters.append(number)
        return number

    def node(self, x: Any) -> int:
        """The node that holds a value as it is."""
        if isinstance(x, Scalar):
            return self.plain(x.ref)
        if isinstance(x, (Integer, Truth)):
            return x.number
        if isinstance(x, bool):
            zero = self.add((WHOLE, 0))
            return self.add((WHOLE_EQ, zero, zero if x else self.add((WHOLE, 1))))
        if isinstance(x, int):
            return self.add((WHOLE, x))
        return self.plain(self.constant(float(x)))

    def wrapped(self, number: int) -> Any:
        """A scalar of a node."""
        kind = self.kinds[number]
        return {REAL: Scalar, INTEGER: Integer, TRUTH: Truth}[kind](self, number)


class Integer:
    """A whole number that is known only when the kernel runs: an index, a count."""

    __slots__ = ("graph", "number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: LoopGraph, number: int) -> None:
        self.graph, self.number = graph, number

    def __repr__(self) -> str:
        return f"Integer(#{self.number})"

    def _with(self, opcode: int, other: Any, turned: bool = False) -> Any:
        if isinstance(other, bool) or not isinstance(other, (int, Integer)):
            return NotImplemented
        a, b = self.number, self.graph.node(other)
        if turned:
            a, b = b, a
        if opcode in (PLUS, TIMES, WHOLE_EQ) and a > b:
            a, b = b, a
        number = self.graph.add((opcode, a, b))
        return self.graph.wrapped(number)

    def real(self) -> Scalar:
        """The same as a real number."""
        return Scalar(self.graph, self.graph.add((TO_REAL, self.number)))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return self
        if isinstance(other, (float, Scalar)):
            return self.real() + other
        return self._with(PLUS, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return self
        if isinstance(other, (float, Scalar)):
            return self.real() - other
        return self._with(MINUS, other)

    def __rsub__(self, other: Any) -> Any:
        return other - self.real() if isinstance(other, (float, Scalar)) else self._with(MINUS, other, True)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int) and other in (0, 1):
            return self if other else 0
        if isinstance(other, (float, Scalar)):
            return self.real() * other
        return self._with(TIMES, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.real() / (other.real() if isinstance(other, Integer) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.real()

    def __neg__(self) -> Any:
        return 0 - self

    def __lt__(self, other: Any) -> Any:
        return self.real() < other if isinstance(other, (float, Scalar)) else self._with(WHOLE_LT, other)

    def __le__(self, other: Any) -> Any:
        return self.real() <= other if isinstance(other, (float, Scalar)) else self._with(WHOLE_LE, other)

    def __gt__(self, other: Any) -> Any:
        return (
            self.real() > other if isinstance(other, (float, Scalar)) else self._with(WHOLE_LT, other, True)
        )

    def __ge__(self, other: Any) -> Any:
        return (
            self.real() >= other if isinstance(other, (float, Scalar)) else self._with(WHOLE_LE, other, True)
        )

    def __eq__(self, other: object) -> Any:
        return self.real() == other if isinstance(other, (float, Scalar)) else self._with(WHOLE_EQ, other)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def __bool__(self) -> bool:
        raise TypeError("no branch on a number that is known only later: use where, cond or for_range")

    def __index__(self) -> int:
        raise TypeError("range() needs a number that is known now: use for_range(n, body)")


class Array:
    """Memory of a state, or numbers that all states share, in a recording: what NumPy's indexing gives.

    Attributes:
        shape: whole numbers, some of which are known only when the kernel runs.
    """

    __slots__ = ("graph", "kind", "number", "offset", "shape", "writable")

    def __init__(
        self, graph: LoopGraph, number: int, kind: str, shape: Sequence[Any], writable: bool, offset: Any = 0
    ) -> None:
        self.graph, self.number, self.kind, self.writable = graph, number, kind, writable
        self.shape, self.offset = tuple(shape), offset

    def __len__(self) -> int:
        if isinstance(self.shape[0], int):
            return self.shape[0]
        raise TypeError("the length is known only later: it is array.shape[0]")

    def _at(self, index: Any) -> tuple[Any, tuple[Any, ...]]:
        """Offset and shape of an element, or of a part."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > len(self.shape):
            raise IndexError(f"{len(index)} indices for an array of {len(self.shape)} dimensions")
        offset, shape = self.offset, []
        for k, i in enumerate(index):
            stride: Any = 1
            for size in self.shape[k + 1 :]:
                stride = stride * size
            if isinstance(i, slice):
                if k < len(index) - 1 or k > 0 or i.step is not None:
                    raise IndexError("slices go without steps, and over the first dimension alone")
                start, stop = i.start or 0, self.shape[0] if i.stop is None else i.stop
                offset, shape = offset + start * stride, [stop - start]
            elif isinstance(i, int) and i < 0:
                offset = offset + (self.shape[k] + i) * stride
            elif isinstance(i, (int, Integer)):
                offset = offset + i * stride
            else:
                raise TypeError(f"an index is a whole number, a slice or several of them, not {i!r}")
        return offset, (*shape, *self.shape[len(index) :])

    def __getitem__(self, index: Any) -> Any:
        offset, shape = self._at(index)
        graph = self.graph
        if shape:
            return Array(graph, self.number, self.kind, shape, self.writable, offset)
        node = (LOAD, self.number, graph.node(offset), graph.versions[self.number], self.kind)
        return graph.wrapped(graph.add(node))

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.writable:
            raise TypeError("this array is an input, or shared by all states: it cannot be written")
        offset, shape = self._at(index)
        graph = self.graph
        if shape:
            raise IndexError("one element at a time: write a loop")
        if self.kind == REAL and isinstance(value, (int, Integer)):
            value = value.real() if isinstance(value, Integer) else float(value)
        at, what = graph.node(offset), graph.node(value)
        if graph.kinds[what] != self.kind:
            raise TypeError(f"a {graph.kinds[what]} is no element of an array of {self.kind}s")
        graph.effect((STORE, self.number, at, what))
        graph.versions[self.number] += 1


# -- control flow -----------------------------------------------------------------------------------


def flat(values: Any) -> list[Any]:
    """The numbers of nested tuples and lists, in order."""
    if isinstance(values, (tuple, list)):
        return [x for each in values for x in flat(each)]
    return [values]


def shaped_like(pattern: Any, numbers: Iterator[Any]) -> Any:
    """Numbers in the nested form of a pattern."""
    if isinstance(pattern, (tuple, list)):
        return type(pattern)([shaped_like(each, numbers) for each in pattern])
    return next(numbers)


def _carried(graph: LoopGraph, region: Region, returned: Any, pattern: Any) -> None:
    """Note what a body carries on; it must be what the loop starts with."""
    values = [graph.node(x) for x in flat(returned)]
    kinds = [graph.kinds[k] for k in region.parameters[-len(flat(pattern)) :]] if flat(pattern) else []
    if [graph.kinds[k] for k in values] != kinds:
        raise TypeError(
            f"the body of a loop returns {[graph.kinds[k] for k in values]}, what it carries began as "
            f"{kinds}: they must be the same in number and kind (0.0 for a real number, 0 for a whole one)"
        )
    region.results = values


class Recorder:
    """What for_range, while_loop and cond do while a graph is recorded."""

    def __init__(self, graph: LoopGraph) -> None:
        self.graph = graph

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`."""
        graph = self.graph
        starts = [graph.node(x) for x in flat(start)]
        with graph.region(True) as region:
            index = graph.wrapped(graph.parameter(INTEGER))
            carried = [graph.wrapped(graph.parameter(graph.kinds[k])) for k in starts]
            returned = body(index, *shaped_like(start, iter(carried)))
            if len(start) == 1:
                returned = (returned,)
            _carried(graph, region, () if returned is None else returned, start)
        return self._left((FOR, region.number, graph.node(count), *starts), start, region)

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: int | None
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`."""
        graph = self.graph
        starts = [graph.node(x) for x in flat(start)]
        with graph.region(True) as region:
            carried = [graph.wrapped(graph.parameter(graph.kinds[k])) for k in starts]
            region.test = graph.node(test(*shaped_like(start, iter(carried))))
            region.tested = len(region.nodes)
            graph._forget_memory()
            returned = body(*shaped_like(start, iter(carried)))
            if len(start) == 1:
                returned = (returned,)
            _carried(graph, region, returned, start)
        return self._left((WHILE, region.number, *starts), start, region)

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`."""
        graph, made, values = self.graph, [], []
        for branch in (then, otherwise):
            with graph.region(False) as region:
                value = branch()
                region.results = [graph.node(x) for x in flat(() if value is None else value)]
            made.append(region)
            values.append(() if value is None else value)
        kinds = [[graph.kinds[k] for k in region.results] for region in made]
        if kinds[0] != kinds[1]:
            raise TypeError(f"the branches of cond return {kinds[0]} and {kinds[1]}: they must be the same")
        node = (COND, condition.number, made[0].number, made[1].number)
        return self._left(node, values[0], made[0])

    def _left(self, node: Node, pattern: Any, region: Region) -> Any:
        """What a control operation leaves, in the form of a pattern."""
        graph = self.graph
        control = graph.effect(node)
        kinds = [graph.kinds[k] for k in region.results]
        numbers = [graph.add((VALUE, control, k, kind)) for k, kind in enumerate(kinds)]
        return shaped_like(pattern, map(graph.wrapped, numbers))


@contextmanager
def recording(graph: LoopGraph) -> Iterator[None]:
    """While it lasts, loops of this thread are recorded."""
    before = getattr(control_flow.recorder, "now", None)
    control_flow.recorder.now = Recorder(graph)
    try:
        yield
    finally:
        control_flow.recorder.now = before


def _real(x: Any) -> Any:
    return x.real() if isinstance(x, Integer) else x


def _where(condition: Any, a: Any, b: Any) -> Any:
    """A choice: of whole numbers a whole number."""
    if not isinstance(condition, Truth):
        return a if condition else b
    if all(isinstance(x, (int, Integer)) for x in (a, b)):
        graph: Any = condition.graph
        return graph.wrapped(graph.add((WHOLE_SELECT, condition.number, graph.node(a), graph.node(b))))
    return scalar.where(condition, _real(a), _real(b))


def _of_reals(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *numbers: function(*map(_real, numbers))


scalar.FUNCTIONS.where = _where
scalar.FUNCTIONS.maximum = lambda a, b: _where(a < b, b, a)
scalar.FUNCTIONS.minimum = lambda a, b: _where(b < a, b, a)
scalar.DEFERS.add(Integer)
_OF_INTEGERS = {name: _of_reals(getattr(scalar.FUNCTIONS, name)) for name in ("sin", "cos", "sqrt", "atan2")}
register(Integer, SimpleNamespace(**{**vars(scalar.FUNCTIONS), **_OF_INTEGERS, "floor": lambda x: x}))
