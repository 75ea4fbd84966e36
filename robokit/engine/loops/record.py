"""Records a function with loops, conditions and calls: regions of operations, one inside the other.

A *region* is the body of a loop, a branch of a condition, or a whole function. Its operations are recorded
once, as those of a straight line are (trace/graph.py); a control operation holds the regions that it runs:

    (FOR, region, count, start values...)      region's parameters: the index, then what is carried
    (WHILE, region, start values...)           parameters: what is carried; the region has a test
    (COND, condition, then, otherwise)         regions without parameters
    (APPLY, function, arrays, values...)       a function's region; its parameters stand for the values
    (VMAP, function, arrays, columns, values...)   as many calls; of each the arguments, then what all share
    (VALUE, control, position, kind)           a value that one of these leaves
    (LINK, entry, arrays, offsets...)          another kernel is called on parts of arrays (environment.py)

and memory is read and written by

    (LOAD, array, index, version, kind)        index counts elements; versions end at writes
    (STORE, array, index, value)
    (ZEROS, array, sizes...)                   memory that lasts as long as the region, zero each time

    (CHECK, truth, exception, message)         must hold where it stands, or the call ends with the exception

An operation stands in the innermost loop that its operands change in: what stays the same in a loop is
computed before it. Out of a branch nothing is moved, since it may not be needed. Loads keep their place: an
index may be right only inside.

A *function* (:class:`Function`) is recorded once for all its calls. Its parameters and arrays are its own;
what it uses of the function around it, numbers and arrays, becomes further parameters and arrays, which a
call finds where it stands. No two arrays of a function are the same memory.

A scalar of a region that is over cannot be used any more. Recording it says so where it happens.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from robokit import dataclass_tools
from robokit.engine.trace import ops, scalar
from robokit.engine.trace.graph import Graph, Node
from robokit.engine.trace.record import Same
from robokit.engine.trace.scalar import KEPT, Number, Scalar, Truth
from robokit.spatial import control_flow
from robokit.spatial.control_flow import cond, count_from_start, while_loop
from robokit.spatial.scalars import holds, register, unboxed

_KINDS = {each.number: each.kind for each in ops.OPERATIONS} | {ops.CONST: ops.REAL, ops.WHOLE: ops.INTEGER}
_EFFECTS = (ops.STORE, ops.ZEROS, ops.CHECK, ops.FOR, ops.WHILE, ops.COND, ops.APPLY, ops.VMAP, ops.LINK)
"""Nodes without a value; the last item of those that are in neither is their kind."""


class Escaped(TypeError):
    """A value of a loop, a branch or a called function is used outside of it."""


@dataclass
class Region:
    """The body of a loop, a branch, or a whole function."""

    number: int  # in the recording
    depth: int  # regions around it in its function
    loop: bool  # whether what does not change in it may stand before it
    nodes: list[int] = field(default_factory=list)  # numbers of its operations in an order of evaluation
    # nodes that stand for its index and what is carried, or for a function's arguments
    parameters: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)  # nodes of the values that it leaves, or carries on
    test: int = 0  # of a WHILE, the node that says whether it goes on, and
    tested: int = 0  # how many of its nodes belong to the test


@dataclass
class Memory:
    """An array of a kernel or of a function."""

    kind: str  # of its elements
    region: Region  # in which it can be used
    writable: bool  # whether it can be written
    line: tuple[CodeType, int] | None  # of the user's source, where it was made
    # elements of memory that the kernel has to itself, what is in it before it is written being nothing in
    # particular (straight.py); 0 of an array that it is given, or that zeros makes
    own: int = 0


@dataclass
class Function:
    """A function that is called: its region and what it takes.

    Attributes:
        number: in the recording; the kernel itself is 0.
        region: its operations; the parameters are the arguments' numbers, then what it uses of the functions
            around it.
        arrays: its arrays; first those that arguments are parts of, each once.
        values: numbers of other functions' regions that it uses, and the parameters that stand for them.
        taken: arrays of other functions that it uses, and which of its own they are.
        explicit: how many of its arrays are arguments'.
        by_lane: whether states in lanes run it one after the other.
        writes: those of its arrays that it writes to.
        form: what it returns, for :func:`rebuilt`.
        apart: whether no compiler should write it where it is called.
    """

    number: int
    region: Region
    arrays: list[int] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    explicit: int = 0
    by_lane: bool = False
    writes: set[int] = field(default_factory=set)
    form: Any = None
    apart: bool = False


@dataclass
class Solved:
    """Numbers that solve an equation, noted for those who replay a recording."""

    region: Region  # of the residuals; its parameters stand for the unknown. Nothing runs it.
    unknown: list[int]  # the numbers as they were found
    made: list[int]  # the same, as what follows uses them


@dataclass
class Frame:
    """A function that is being recorded."""

    function: Function  # itself
    # which arrays of the function around it its own stand for
    captured: dict[int, int] = field(default_factory=dict)
    stack: list[Region] = field(default_factory=list)  # its open regions, the innermost last
    index: dict[Node, int] = field(default_factory=dict)  # its operations that are known there


def operands(node: Node) -> Sequence[int]:
    """The nodes that a node reads."""
    opcode = node[0]
    if 0 <= opcode < ops.GIVEN:
        return node[1:]
    if opcode <= ops.WHOLE:
        return ()
    return node[_FIRST.get(opcode, 1) : _LAST.get(opcode)]


def calls(graph: LoopGraph, node: Node) -> list[Sequence[int]]:
    """The values of each call that an APPLY or VMAP makes."""
    if node[0] == ops.APPLY:
        return [node[3:]]
    shared = len(node) - len(graph.functions[node[1]].values)
    own = (shared - 4) // node[3]
    return [(*node[4 + k * own : 4 + (k + 1) * own], *node[shared:]) for k in range(node[3])]


_FIRST = {
    ops.LOAD: 2, ops.STORE: 2, ops.ZEROS: 2, ops.FOR: 2, ops.WHILE: 2, ops.APPLY: 3, ops.VMAP: 4, ops.LINK: 3,
}  # fmt: skip
_LAST = {ops.LOAD: 3, ops.VALUE: 2, ops.COND: 2, ops.CHECK: 2}
"""Where the operands of a node are, if they are not all but the first item."""


class LoopGraph(Graph):
    """A recording with regions.

    Attributes:
        regions: all of them; the kernel itself is the first.
        functions: all of them; the kernel itself is the first.
        kinds: of the value of each node.
        arrays: all of them, those of the kernel first.
        frames: functions that are being recorded, the innermost last.
        solutions: solved equations, by the first of their numbers.
        checked: whether every index is checked when the kernel runs.
        exact: whether quotients are never products with a reciprocal.
        common: arrays of the kernel that all states share.
        links: other kernels that are called (environment.Link), and
        claims: what must hold for the sizes of their arrays (environment.Claim).
    """

    def __init__(self, checked: bool = False, exact: bool = False, budget: int = 400_000) -> None:
        self.checked, self.exact = checked, exact
        self.common: set[int] = set()
        self.links: list[Any] = []
        self.claims: list[Any] = []
        self.regions: list[Region] = []
        self.functions: list[Function] = []
        self.arrays: list[Memory] = []
        self.versions: list[int] = []
        self.frames: list[Frame] = []
        self.constants: dict[Node, int] = {}
        self.solutions: dict[int, Solved] = {}
        self.held: dict[int, tuple[int, dict[int, Any]]] = {}  # of arrays: fields.HeldArray
        super().__init__(budget)
        self.frames = [self._frame({})]
        self.index = self.frames[0].index
        self.place: list[Region] = [self.regions[0]]
        self.kinds: list[str] = [ops.REAL]
        self.lines: list[tuple[CodeType, int] | None] = [None]

    # -- operations ---------------------------------------------------------------------------------

    def add(self, node: Node) -> int:
        """Number of the node, recorded now if no region that is open has it."""
        constant = node[0] in (ops.CONST, ops.WHOLE)
        index = self.constants if constant else self.index
        node = node if constant else self._own(node)
        found = index.get(node)
        if found is None:
            found = index[node] = self._append(node, self.regions[0] if constant else self._innermost(node))
        return found

    def effect(self, node: Node) -> int:
        """Record what is done here and now: a store, a loop, a condition, a call."""
        return self._append(self._own(node), self.stack[-1])

    def take_back(self) -> None:
        """Leave out the loop that was recorded last, and the values that it leaves."""
        numbers = self.stack[-1].nodes
        while self.nodes[numbers.pop()][0] == ops.VALUE:
            pass

    def _append(self, node: Node, region: Region) -> int:
        return self.put(node, region, users_line())

    def put(self, node: Node, region: Region, line: tuple[CodeType, int] | None = None) -> int:
        """Number of a new node, the last of its region; line is that of the user's source."""
        number = len(self.nodes)
        self.nodes.append(node)
        self.place.append(region)
        self.kinds.append(self._kind(node))
        self.lines.append(line)
        region.nodes.append(number)
        return number

    def _kind(self, node: Node) -> str:
        return _KINDS.get(node[0]) or (ops.NOTHING if node[0] in _EFFECTS else node[-1])

    def _own(self, node: Node) -> Node:
        """The node with operands that the function being recorded has."""
        used = operands(node)
        here = [self.here(k) for k in used]
        if here == list(used):
            return node
        first = _FIRST.get(node[0], 1)
        return (*node[:first], *here, *node[first + len(here) :])

    def _innermost(self, node: Node) -> Region:
        """The region that an operation stands in."""
        stack = self.stack
        place = len(stack) - 1
        if node[0] in (ops.LOAD, ops.VALUE, ops.CHECK):
            return stack[place]
        depth = max([self.place[k].depth for k in operands(node) if not self._constant(k)], default=0)
        while place > depth and stack[place].loop:
            place -= 1
        return stack[place]

    def _constant(self, number: int) -> bool:
        return self.nodes[number][0] in (ops.CONST, ops.WHOLE)

    # -- regions and functions ----------------------------------------------------------------------

    @property
    def stack(self) -> list[Region]:
        """Open regions of the function that is being recorded."""
        return self.frames[-1].stack

    def new_region(self, depth: int, loop: bool) -> Region:
        """A region without operations."""
        made = Region(len(self.regions), depth, loop)
        self.regions.append(made)
        return made

    @contextlib.contextmanager
    def region(self, loop: bool) -> Iterator[Region]:
        """Record a region."""
        self.forget_memory()
        made = self.new_region(len(self.stack), loop)
        self.stack.append(made)
        try:
            yield made
        finally:
            self.stack.pop()
            for number in made.nodes:
                if self.index.get(self.nodes[number]) == number:
                    del self.index[self.nodes[number]]
            self.forget_memory()

    def new_function(self) -> Function:
        """A function without operations, the last."""
        self.functions.append(Function(len(self.functions), self.new_region(0, False)))
        return self.functions[-1]

    def _frame(self, arguments: dict[int, int]) -> Frame:
        function = self.new_function()
        return Frame(function, arguments, [function.region])

    @contextlib.contextmanager
    def function(self) -> Iterator[Frame]:
        """Record a function."""
        frame = self._frame({})
        self.frames.append(frame)
        self.index = frame.index
        try:
            yield frame
        finally:
            self.frames.pop()
            self.index = self.frames[-1].index

    def here(self, number: int) -> int:
        """The node that has a value in the function that is being recorded.

        Raises Escaped: its region is over.
        """
        region = self.place[number]
        for frame in reversed(self.frames):
            if _open(frame.stack, region):
                break
        else:
            if not self._constant(number):
                raise Escaped(self.escaped(self.lines[number]))
            return number
        if frame is self.frames[-1] or self._constant(number):
            return number
        function = self.frames[-1].function
        if number not in function.values:
            function.values[number] = self.parameter(self.kinds[number], function.region)
        return function.values[number]

    def array(self, kind: str, region: Region, writable: bool) -> int:
        """A new array."""
        self.arrays.append(Memory(kind, region, writable, users_line()))
        self.versions.append(0)
        return len(self.arrays) - 1

    def array_here(self, number: int, level: int = -1) -> int:
        """The array of a function that is being recorded which is an array of a function around it.

        Raises Escaped: its region is over.
        """
        memory = self.arrays[number]
        if not self.frames:
            raise Escaped(self.escaped(memory.line))
        level %= len(self.frames)
        frame = self.frames[level]
        if _open(frame.stack, memory.region):
            return number
        if not level:
            raise Escaped(self.escaped(memory.line))
        function = frame.function
        if number not in function.taken:
            outer = self.array_here(number, level - 1)
            if outer not in frame.captured:
                frame.captured[outer] = self.array(memory.kind, function.region, memory.writable)
                function.arrays.append(frame.captured[outer])
            function.taken[number] = frame.captured[outer]
        return function.taken[number]

    def check(self, truth: Any, error: str, message: str) -> None:
        """Record that a comparison must hold where it stands.

        ``truth``: the comparison; ``error``: name of the exception, one of Python's own; ``message``: of the
        exception.
        """
        if isinstance(truth, Truth):
            self.add((ops.CHECK, self.node(truth), error, message))
        elif not truth:
            raise ERRORS[error](f"{message}{told('here', users_line())}")

    def written(self, arrays: Sequence[int]) -> None:
        """Note that these arrays are written now."""
        self.frames[-1].function.writes.update(arrays)
        for number in arrays:
            self.versions[number] += 1

    def forget_memory(self) -> None:
        """What was loaded may have changed."""
        self.versions = [version + 1 for version in self.versions]

    def escaped(self, made: tuple[CodeType, int] | None) -> str:
        """What is said of a value or an array that was made in a region that is over."""
        return (
            "a value of a loop, a branch or a called function is used outside of it: carry it "
            "(for_range(n, body, start)), return it from both branches of cond or from the function"
            f"{told('made', made)}{told('used', users_line())}"
        )

    @property
    def failing(self) -> tuple[int, ...]:
        """Operations of which a function with one may end early; in a checked kernel Ctrl-C ends loops."""
        return (ops.ZEROS, ops.CHECK, ops.LINK, *((ops.FOR, ops.WHILE) if self.checked else ()))

    def operations(self, region: Region) -> Iterator[Node]:
        """All operations of a region and of those inside it."""
        for number in region.nodes:
            node = self.nodes[number]
            yield node
            for inside in {ops.FOR: node[1:2], ops.WHILE: node[1:2], ops.COND: node[2:]}.get(node[0], ()):
                yield from self.operations(self.regions[inside])

    # -- values -------------------------------------------------------------------------------------

    def parameter(self, kind: str, region: Region | None = None) -> int:
        """A parameter of a region; of the one that is being recorded, if none is given."""
        region = region or self.stack[-1]
        node = (ops.GIVEN, region.number, len(region.parameters), kind)
        number = self._append(node, region)
        region.parameters.append(number)
        return number

    def node(self, x: Any) -> int:
        """The node that holds a value as it is."""
        if isinstance(x, (Scalar, Integer, Truth)):
            if x.graph is not self:
                raise Escaped(f"{KEPT}{told('used', users_line())}")
            return self.here(self.plain(x.ref) if isinstance(x, Scalar) else x.number)
        if isinstance(x, (bool, np.bool_)):
            zero = self.add((ops.WHOLE, 0))
            return self.add((ops.WHOLE_EQ, zero, zero if x else self.add((ops.WHOLE, 1))))
        if isinstance(x, (int, np.integer)):
            if not -(2**31) <= x < 2**31:
                raise ValueError(
                    f"whole numbers of a kernel have 32 bits, {x} has more: {float(x)} is a real number"
                    f"{told('here', users_line())}"
                )
            return self.add((ops.WHOLE, int(x)))
        if isinstance(x, (float, np.floating)):
            return self.plain(self.constant(float(x)))
        if isinstance(x, control_flow.Changed):
            x.refuse()
        raise wrong(
            "a number, a comparison or an array is expected",
            x,
            f"this is a {type(x).__name__}; tuples, lists and NumPy's arrays of them are, too, and list(v) "
            "of a vector v",
        )

    def known(self, number: int) -> Any:
        """A constant whole number, or whether a comparison of such numbers holds; else None."""
        node = self.nodes[number]
        if node[0] == ops.WHOLE:
            return node[1]
        return ops.folded(node, self.known) if self.kinds[number] == ops.TRUTH else None

    def wrapped(self, number: int) -> Any:
        """A scalar of a node."""
        kind = self.kinds[number]
        return {ops.REAL: Scalar, ops.INTEGER: Integer, ops.TRUTH: Truth}[kind](self, number)


ERRORS = {
    each.__name__: each for each in (IndexError, MemoryError, OverflowError, ValueError, ZeroDivisionError)
}
"""What machine code may end with, by name."""


def failure(graph: LoopGraph, kernel: str, status: int) -> Exception:
    """What a call of machine code failed with: the error that Python has there, and the line.

    ``kernel``: its name; ``status``: twice the number of the node, or one more where there was no memory.
    """
    number, code = divmod(status, 2)
    node, line = graph.nodes[number], told("here", graph.lines[number])
    if node[0] == ops.CHECK:
        return ERRORS[node[2]](f"{kernel}: {node[3]}{line}")
    if code:
        return MemoryError(f"{kernel}: no memory for zeros{line}")
    return ValueError(f"{kernel}: zeros: a size is below 0, or the array has 2^31 elements{line}")


def _open(stack: list[Region], region: Region) -> bool:
    return region.depth < len(stack) and stack[region.depth] is region


# -- lines of the user's source ---------------------------------------------------------------------

_ENGINE = os.path.dirname(os.path.dirname(__file__))
_INSIDE = tuple(os.path.join(os.path.dirname(_ENGINE), x) + os.sep for x in ("engine", "spatial", "dynamics"))
_BETWEEN = (contextlib.__file__, functools.__file__, dataclass_tools.__file__)
_is_inside: dict[str, bool] = {}

interpreting = threading.local()
"""Its attribute ``line``, if set, is the line of what a recording that is replayed does now."""


def users_line() -> tuple[CodeType, int] | None:
    """Where the function that is recorded is now: the innermost line that is not the engine's own."""
    line = getattr(interpreting, "line", None)
    if line is not None:
        return line  # type: ignore[no-any-return]
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        inside = _is_inside.get(code.co_filename)
        if inside is None:
            own = code.co_filename.startswith(_INSIDE) or code.co_filename in _BETWEEN
            inside = _is_inside[code.co_filename] = own
        if not inside:
            return code, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def told(what: str, line: tuple[CodeType, int] | None) -> str:
    """A line of a message: where something was done."""
    if line is None:
        return ""
    name, number = line[0].co_filename, line[1]
    return f"\n  {what} at {os.path.basename(name)}:{number}: {linecache.getline(name, number).strip()}"


class Integer(Number):
    """A whole number that is known only when the kernel runs: an index, a count."""

    __slots__ = ("graph", "number")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: LoopGraph, number: int) -> None:
        self.graph, self.number = graph, number

    def __repr__(self) -> str:
        return f"Integer(#{self.number})"

    def _with(self, opcode: int, on_reals: Callable[..., Any], other: Any, turned: bool = False) -> Any:
        """An operation with another number, of reals if that is one; turned: the other is the first."""
        if isinstance(other, (float, Scalar)):
            return on_reals(other, self.real()) if turned else on_reals(self.real(), other)
        if isinstance(other, bool) or not isinstance(other, (int, Integer)):
            return NotImplemented
        a, b = self.number, self.graph.node(other)
        if turned:
            a, b = b, a
        return self.graph.wrapped(self.graph.record(opcode, a, b))

    def real(self) -> Scalar:
        """The same as a real number."""
        return Scalar(self.graph, self.graph.add((ops.TO_REAL, self.number)))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return self
        return self._with(ops.PLUS, operator.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 0:
            return self
        return self._with(ops.MINUS, operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(ops.MINUS, operator.sub, other, True)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int) and other in (0, 1):
            return self if other else 0
        return self._with(ops.TIMES, operator.mul, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, (float, Scalar)):
            return self.real() // other
        return _floor_divided(self.graph, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        if isinstance(other, (float, Scalar)):
            return other // self.real()
        return _floor_divided(self.graph, other, self)

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, int):
            return self.real() ** power
        if power < 0:
            return self.real() ** power
        found: Any = 1
        for _ in range(power):
            found = found * self
        return found

    def __rpow__(self, base: Any) -> Any:
        """A real number to this power, by squaring: as a product it has powers of bases below 0, too."""

        def square(n: Any, square: Any, product: Any) -> tuple[Any, ...]:
            return n // 2, square * square, cond(n % 2 == 1, lambda: product * square, lambda: product)

        _, _, found = while_loop(lambda n, *_: n > 0, square, abs(self), 1.0 * base, 1.0)
        return _where(self < 0, 1.0 / found, found)

    def __truediv__(self, other: Any) -> Any:
        return self.real() / (other.real() if isinstance(other, Integer) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.real()

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return _where(self < 0, -self, self)

    def __floor__(self) -> Integer:
        return self

    def __lt__(self, other: Any) -> Any:
        return self._with(ops.WHOLE_LT, operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._with(ops.WHOLE_LE, operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._with(ops.WHOLE_LT, operator.lt, other, True)

    def __ge__(self, other: Any) -> Any:
        return self._with(ops.WHOLE_LE, operator.le, other, True)

    def __eq__(self, other: object) -> Any:
        return self._with(ops.WHOLE_EQ, operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def __index__(self) -> int:
        raise TypeError(
            "range(), and the index of a list, need a number that is known now: use for_range(n, body), and "
            "an array (zeros) in place of the list"
        )

    def __float__(self) -> float:
        raise TypeError(
            "a number that is known only later is no float yet: 1.0 * k is the same as a real number"
        )

    def __int__(self) -> int:
        raise TypeError("a number that is known only later is no int yet: it is a whole number already")


def _floor_divided(graph: LoopGraph, a: Any, b: Any) -> Any:
    if isinstance(b, bool) or not isinstance(b, (int, Integer)) or not isinstance(a, (int, Integer)):
        return NotImplemented
    if not isinstance(b, Integer) and b in (1, -1):
        return a * b
    graph.check(b != 0, "ZeroDivisionError", "division of a whole number by zero")
    return graph.wrapped(graph.add((ops.FLOOR_DIVIDE, graph.node(a), graph.node(b))))


class Array:
    """Memory of a state, or numbers that all states share, in a recording: what NumPy's indexing gives.

    ``shape``: whole numbers, some of which are known only when the kernel runs.
    """

    __slots__ = ("graph", "kind", "number", "offset", "shape", "writable")

    def __init__(
        self, graph: LoopGraph, number: int, kind: str, shape: Sequence[Any], writable: bool, offset: Any = 0
    ) -> None:
        self.graph, self.number, self.kind, self.writable = graph, number, kind, writable
        self.shape, self.offset = tuple(shape), offset

    def reshape(self, *shape: Any) -> Array:
        """The same numbers in another shape, which has as many."""
        return Array(self.graph, self.number, self.kind, shape, self.writable, self.offset)

    def __len__(self) -> int:
        if isinstance(self.shape[0], int):
            return self.shape[0]
        raise TypeError("the length is known only later: it is array.shape[0], and for_range goes through it")

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
            size = self.shape[k]
            if isinstance(i, slice):
                if k < len(index) - 1 or k > 0 or i.step is not None:
                    raise IndexError(
                        "slices go without steps, and over the first dimension alone: a loop goes over others"
                    )
                start = self._whole(0 if i.start is None else i.start, size)
                stop = self._whole(size if i.stop is None else i.stop, size)
                self._within(i, size, (0, start), (start, stop), (stop, size))
                offset, shape = offset + start * stride, [stop - start]
            else:
                count_from_start(i)
                i = self._whole(i, size)
                self._within(i, size, (0, i), (i, size - 1))
                offset = offset + i * stride
        return offset, (*shape, *self.shape[len(index) :])

    def _whole(self, index: Any, size: Any) -> Any:
        """An index, counted from the start."""
        if isinstance(index, Integer):
            return index
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise TypeError(
                f"an index is a whole number, a slice or several of them, not {index!r}: whole(x) of "
                "robokit.spatial.control_flow makes one of a real number"
            )
        return size + int(index) if index < 0 else int(index)

    def _within(self, index: Any, size: Any, *pairs: tuple[Any, Any]) -> None:
        """Refuse an index that is outside, if that is known, or known later in a checked kernel.

        ``index``: as it was given; ``size``: of its dimension; ``pairs``: of numbers, the first of which must
        not be above the second.
        """
        for low, high in pairs:
            if self.graph.checked or (isinstance(low, int) and isinstance(high, int)):
                self.graph.check(low <= high, "IndexError", f"index out of range{_said(index, size)}")

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        offset, shape = self._at(index)
        graph = self.graph
        number = graph.array_here(self.number)
        if shape:
            return Array(graph, self.number, self.kind, shape, self.writable, offset)
        node = ops.LOAD, number, graph.node(offset), graph.versions[number], self.kind
        return graph.wrapped(graph.add(node))

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.writable:
            raise TypeError("this array is an input, or shared by all states: it cannot be written")
        offset, shape = self._at(index)
        graph = self.graph
        number = graph.array_here(self.number)
        if shape:
            raise IndexError("one element at a time: write a loop")
        if self.kind == ops.REAL and isinstance(value, (int, Integer)):
            value = value.real() if isinstance(value, Integer) else float(value)
        at, what = graph.node(offset), graph.node(value)
        if graph.kinds[what] != self.kind:
            instead = {
                ops.REAL: "whole(x) makes a whole number of it",
                ops.INTEGER: "1.0 * k makes a real number of it",
                ops.TRUTH: "where(condition, 1, 0) makes a number of it",
            }[graph.kinds[what]]
            raise TypeError(
                f"a {graph.kinds[what]} is no element of an array of {self.kind}s: {instead}"
                f"{told('here', users_line())}"
            )
        graph.effect((ops.STORE, number, at, what))
        graph.written([number])


def _said(index: Any, size: Any) -> str:
    """An index and a size in words, as far as they are known."""
    if not isinstance(size, int):
        return ""
    if isinstance(index, int):
        return f": {index} of {size}"
    return f": the array has {size} entries, which such an index counts from 0"


def wrong(what: str, value: Any, instead: str) -> TypeError:
    """The error for something that was given, with the line where it was."""
    return TypeError(f"{what}, not {value!r}: {instead}{told('here', users_line())}")


def _real(x: Any) -> Any:
    return x.real() if isinstance(x, Integer) else x


def _where(condition: Any, a: Any, b: Any) -> Any:
    """A choice: of whole numbers a whole number, but in a straight line, which has only real ones."""
    if not isinstance(condition, Truth):
        return a if holds(condition) else b
    if isinstance(a, Truth) or isinstance(b, Truth):
        return (condition & a) | (~condition & b)
    graph = condition.graph
    if isinstance(graph, LoopGraph) and all(isinstance(x, (int, np.integer, Integer)) for x in (a, b)):
        return graph.wrapped(graph.add((ops.WHOLE_SELECT, condition.number, graph.node(a), graph.node(b))))
    return scalar.where(condition, _real(a), _real(b))


def _of_reals(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *numbers: function(*map(_real, numbers))


scalar.FUNCTIONS.where = _where
scalar.DEFERS.add(Integer)
_OF_INTEGERS = {name: _of_reals(getattr(scalar.FUNCTIONS, name)) for name in ("sin", "cos", "sqrt", "atan2")}
register(Integer, SimpleNamespace(**{**vars(scalar.FUNCTIONS), **_OF_INTEGERS, "floor": lambda x: x}))


# -- The recorder ----------------------------------------------------------------------------------------
#
# What the words of control_flow do while a function is recorded: they make regions of a graph (record.py).
#
# What is carried, chosen and returned may be nested tuples and lists, and parts of arrays; it must have the
# same form and kind wherever it comes from.


def flat(values: Any) -> list[Any]:
    """The numbers of nested tuples, lists and NumPy's arrays, in order.

    Those of an array of a recording say where its memory is.
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, (tuple, list)):
        return [x for each in values for x in flat(each)]
    if isinstance(values, Array):
        return [values.offset, *(n for n in values.shape if isinstance(n, Integer))]
    return [] if values is None else [values]


def rebuilt(pattern: Any, numbers: Iterator[Any], arrays: Callable[[int], int] | None = None) -> Any:
    """Numbers in the nested form of a pattern; its arrays are parts of others, if these are given."""
    if isinstance(pattern, np.ndarray) and pattern.ndim:
        made = np.empty(pattern.shape, object)
        made.ravel()[:] = [next(numbers) for _ in range(pattern.size)]
        return made
    if isinstance(pattern, (tuple, list)):
        return control_flow.like(pattern, [rebuilt(each, numbers, arrays) for each in pattern])
    if isinstance(pattern, Array):
        number = arrays(pattern.number) if arrays else pattern.number
        offset = next(numbers)
        shape = [next(numbers) if isinstance(n, Integer) else n for n in pattern.shape]
        return Array(pattern.graph, number, pattern.kind, shape, pattern.writable, offset)
    return None if pattern is None else next(numbers)


def form(values: Any, kinds: Iterator[str], bases: Callable[[Array], int]) -> Any:
    """What two values must have in common to be the same in form and kind."""
    if isinstance(values, np.ndarray) and values.ndim:
        return values.shape, *(next(kinds) for _ in range(values.size))
    if isinstance(values, (tuple, list)):
        return type(values), *(form(each, kinds, bases) for each in values)
    own = tuple([next(kinds) for _ in flat(values)])
    if isinstance(values, Array):
        sizes = [None if isinstance(n, Integer) else n for n in values.shape]
        return own, bases(values), values.kind, values.writable, *sizes
    return own


def described(graph: LoopGraph, values: Any) -> str:
    """Form and kinds of numbers in nested tuples, lists and NumPy's arrays."""
    if isinstance(values, np.ndarray) and values.ndim:
        return f"NumPy array {described(graph, values.tolist())}"
    if isinstance(values, (tuple, list)):
        return f"({', '.join(described(graph, each) for each in values)})" if values else "nothing"
    if isinstance(values, Array):
        sizes = ["n" if isinstance(n, Integer) else str(n) for n in values.shape]
        return f"array of {values.kind}s ({', '.join(sizes)})"
    return "nothing" if values is None else graph.kinds[graph.node(unboxed(values))]


def _pattern(graph: LoopGraph, values: Any) -> tuple[str, list[int]]:
    """Form and kinds of values, and the memory of the arrays among them."""
    return described(graph, values), [graph.array_here(number) for number in _arrays_in(values)]


def _same(graph: LoopGraph, value: Any, expected: tuple[str, list[int]], what: str, other: str) -> list[int]:
    """Nodes of what a body or branch returns, which must be the same in form and kind as something else."""
    words, arrays = _pattern(graph, value)
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
    return [graph.node(x) for x in flat(value)]


_NOTHING: dict[str, Any] = {ops.REAL: 0.0, ops.INTEGER: 0, ops.TRUTH: False}
"""What a branch that never runs leaves, by kind."""


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
        if graph.kinds[turns] != ops.INTEGER:
            raise wrong("for_range: a count is a whole number", count, "whole(x) makes one of a real number")
        with self._loop(start) as (region, starts, carried):
            index = graph.wrapped(graph.parameter(ops.INTEGER))
            region.parameters.insert(0, region.parameters.pop())
            self._carry(region, body(index, *carried), start)
        return self._left((ops.FOR, region.number, turns, *starts), start, region)

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: int | None
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`."""
        graph = self.graph
        if most is not None:

            def another(*carried: Any) -> Any:
                return test(*carried[:-1]) & (carried[-1] < most)

            def counted(*carried: Any) -> Any:
                returned = body(*carried[:-1])
                own = (returned,) if len(start) == 1 else returned if start else ()
                return *own, carried[-1] + 1

            return Recorder.while_loop(self, another, counted, (*start, 0), None)[:-1]
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
        return self._left((ops.WHILE, region.number, *starts), start, region)

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

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`: values alone are those that were found."""
        return unknown

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`.

        Where the graph knows the condition, the branch that never runs is not recorded, but the other one is
        still a branch: the same sums are fused with products (emit.py) as where the condition is not known.
        """
        graph = self.graph
        if not isinstance(condition, Truth):
            raise wrong("cond: a condition is a comparison", condition, "x != 0, or another one")
        branches: list[Region] = []
        first: tuple[Any, tuple[str, list[int]]] | None = None
        asked = graph.node(condition)
        known = graph.known(asked)
        for branch in (then, otherwise) if known is None else (then if known else otherwise,):
            with graph.region(False) as region:
                value = branch()
                first = first or (value, _pattern(graph, value))
                region.results = _same(graph, value, first[1], "the second branch of cond", "the first one")
            branches.append(region)
        if known is not None:
            with graph.region(False) as region:
                region.results = [graph.node(_NOTHING[graph.kinds[k]]) for k in branches[0].results]
            branches.insert(known, region)
        assert first
        return self._left((ops.COND, asked, *(region.number for region in branches)), first[0], branches[0])

    def zeros(self, shape: tuple[Any, ...], kind: str) -> Array:
        """As :func:`robokit.spatial.control_flow.zeros`."""
        graph = self.graph
        sizes = [graph.node(n) for n in shape]
        for n, number in zip(shape, sizes, strict=True):
            if graph.kinds[number] != ops.INTEGER:
                raise wrong("zeros: a size is a whole number", n, "whole(x) makes one of a real number")
        number = graph.array(kind, graph.stack[-1], True)
        graph.effect((ops.ZEROS, number, *sizes))
        return Array(graph, number, kind, [n if isinstance(n, Integer) else int(n) for n in shape], True)

    def in_precision(self, double: float, single: float) -> Any:
        """As :func:`robokit.spatial.control_flow.in_precision`."""
        return self.graph.wrapped(self.graph.add((ops.CONST, double, single)))

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
        return graph.wrapped(graph.add((ops.TO_WHOLE, graph.node(x))))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """As :func:`robokit.spatial.control_flow.call`."""
        if hasattr(function, "on_memory"):
            return self.link(self.graph, function, arguments)
        bases: list[int] = []
        nodes = [self.graph.node(x) for x in flat(arguments)]
        key = self._key(function, arguments, nodes, bases)
        return self._called(self._function(function, key, arguments, nodes, bases), nodes, bases)

    def vmap(self, function: Callable[..., Any], columns: list[tuple[Any, ...]]) -> list[Any]:
        """As :func:`robokit.spatial.control_flow.vmap`.

        Columns are one VMAP where they are the same in form and kind, and the function writes to no array but
        its own: the order of its calls then means nothing.
        """
        graph = self.graph
        bases: list[int] = []
        arguments = [[graph.node(x) for x in flat(column)] for column in columns]
        keys = [self._key(function, *both, bases) for both in zip(columns, arguments, strict=True)]
        if len(columns) < 2 or keys.count(keys[0]) < len(keys):
            return [self.call(function, column) for column in columns]
        found = self._function(function, keys[0], columns[0], arguments[0], bases)
        if found.writes.intersection(found.arrays):
            return [self.call(function, column) for column in columns]
        arrays = self._arrays(found, bases)
        shared = [graph.here(number) for number in found.values]
        values = [x for column in arguments for x in column]
        control = graph.effect((ops.VMAP, found.number, tuple(arrays), len(columns), *values, *shared))
        results = len(found.region.results)
        return [self._results(found, control, k * results, arrays) for k in range(len(columns))]

    def _key(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], nodes: list[int], bases: list[int]
    ) -> Any:
        """What calls that share code have in common; the arguments' arrays are added to bases."""

        def base(array: Array) -> int:
            number = self.graph.array_here(array.number)
            if number not in bases:
                bases.append(number)
            return bases.index(number)

        return identity(function), form(arguments, iter([self.graph.kinds[k] for k in nodes]), base)

    def _function(
        self,
        function: Callable[..., Any],
        key: Any,
        arguments: tuple[Any, ...],
        nodes: list[int],
        bases: list[int],
    ) -> Function:
        """The recorded function, recorded now if it is new."""
        if key[0] in self.open:
            raise TypeError(
                f"{function!r} calls itself, which a recorded function cannot: write a loop (while_loop)"
                f"{told('called', users_line())}"
            )
        return self._recorded(key, bases) or self._record(function, key, arguments, nodes, bases)

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
        nodes: list[int],
        bases: list[int],
    ) -> Function:
        graph = self.graph
        outer = [graph.arrays[number] for number in bases]
        resolved = {k: graph.array_here(k) for k in _arrays_in(arguments)}
        with graph.function() as frame:
            made = frame.function
            for number, memory in zip(bases, outer, strict=True):
                frame.captured[number] = graph.array(memory.kind, made.region, memory.writable)
            made.arrays, made.explicit = list(frame.captured.values()), len(bases)
            made.by_lane = getattr(function, "by_lane", False)
            numbers = [graph.wrapped(graph.parameter(graph.kinds[k])) for k in nodes]
            self.open.append(key[0])
            try:
                own = rebuilt(arguments, iter(numbers), lambda number: frame.captured[resolved[number]])
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

    def _called(self, function: Function, arguments: list[int], bases: list[int]) -> Any:
        """Record a call."""
        graph = self.graph
        arrays = self._arrays(function, bases)
        values = [*arguments, *(graph.here(number) for number in function.values)]
        control = graph.effect((ops.APPLY, function.number, tuple(arrays), *values))
        pairs = zip(function.arrays, arrays, strict=True)
        graph.written([actual for own, actual in pairs if own in function.writes])
        return self._results(function, control, 0, arrays)

    def _results(self, function: Function, control: int, first: int, arrays: list[int]) -> Any:
        """What a call returns: the values that it leaves, from a position on."""
        graph, found = self.graph, []
        for k, (number, x) in enumerate(zip(function.region.results, flat(function.form), strict=True)):
            node = (ops.VALUE, control, first + k, graph.kinds[number])
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
        numbers = [graph.add((ops.VALUE, control, k, kind)) for k, kind in enumerate(kinds)]
        return rebuilt(pattern, map(graph.wrapped, numbers))


def identity(function: Callable[..., Any]) -> Any:
    """What is the same for two functions that do the same: the code, and the very objects that it uses."""
    if isinstance(function, MethodType):
        return identity(function.__func__), Same(function.__self__)
    if not isinstance(function, FunctionType):
        return Same(function)
    used = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a name without a value yet
            used.append(cell.cell_contents)
    return function.__code__, id(function.__globals__), *map(Same, used)


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
        raise TypeError(control_flow.ENDLESS) from None
    finally:
        graph.frames.clear()  # what is kept of it is of no use any more
