"""A function that runs once: all kernels are made of what was recorded of it then, and so is their key.

Functions of users read what they like: other functions, globals, arrays, files, the time. No look at a
function tells what. What it recorded does, to the bit, and takes a few milliseconds. Kernels of single
states, of batches, of derivatives and of measures replay the recording, so that they agree whatever has
changed meanwhile.

A function is recorded as a straight line. Where it meets a loop whose length is known only when it runs, or
one that is too long, it is recorded with loops instead: nobody but the function decides.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from robokit.dataclass_tools import Spare, cached_attribute
from robokit.engine.loops.analysis import inner
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.interpret import interpret
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.record import (
    Array,
    Escaped,
    Function,
    LoopGraph,
    Recorder,
    Region,
    Solved,
    operands,
    told,
)
from robokit.engine.passes.derivative import Inputs, Outputs
from robokit.engine.passes.replay import replayed
from robokit.engine.signature import ArrayOf, FlatFunction, Signature
from robokit.engine.trace import ops
from robokit.engine.trace.graph import NODE_BUDGET, Node, Program, TraceTooLarge
from robokit.engine.trace.record import RunTimeLoop, contents, trace
from robokit.engine.trace.scalar import Scalar
from robokit.errors import FunctionError
from robokit.spatial import control_flow


class RecordedOnce:
    """A function that is recorded at the first recording; on plain numbers it runs as it stands."""

    def __init__(self, function: FlatFunction, inputs: Inputs, outputs: Outputs) -> None:
        self.function, self.inputs, self.outputs = function, list(inputs), list(outputs)

    def __call__(self, *arguments: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """The outputs."""
        if getattr(control_flow.recorder, "now", None) is None:
            return self.function(*arguments)
        return self.again(*arguments)

    def again(self, *arguments: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """The outputs, by what was recorded."""
        if self.loops is not None:
            graph = self.loops
            sizes = [size for _, size in sizes_of(self.outputs)]
            own = graph.functions[0].arrays
            nodes = graph.nodes
            moving = {node[1] for node in nodes if node[0] == ops.LOAD and nodes[node[2]][0] != ops.WHOLE}
            moving |= {number for node in nodes if node[0] in (ops.APPLY, ops.VMAP) for number in node[2]}
            rows = [
                _memory(row) if number in moving else row for number, row in zip(own, arguments, strict=False)
            ]
            found = [control_flow.zeros(size) for size in sizes]
            interpret(graph, [*rows, *found])
            return [[x[k] for k in range(size)] for x, size in zip(found, sizes, strict=True)]
        if not all(isinstance(x, float | int | np.number) for row in arguments for x in row):
            return replayed(self.program, arguments)
        with np.errstate(all="ignore"):  # known numbers: NumPy's answer NaN where Python's raise
            return replayed(self.program, [list(map(np.float64, row)) for row in arguments])

    @cached_attribute
    def _recorded(self) -> Program | LoopGraph:
        what = self.function, self.inputs, self.outputs
        try:
            return trace(*what, NODE_BUDGET, signed=True, shares="asked", equations=True)
        except RunTimeLoop:
            return recorded_with_loops(*what, watched=True)

    @property
    def loops(self) -> LoopGraph | None:
        """The recording, if it has loops; None for straight-line code.

        Raises TraceTooLarge: the function is longer than the budget.
        """
        made = self._recorded
        return made if isinstance(made, LoopGraph) else None

    def looped(self) -> bool:
        """Whether the function has loops whose length is known only when it runs."""
        try:
            return self.loops is not None
        except TraceTooLarge:
            return False

    @property
    def program(self) -> Program:
        """What was recorded, as a straight line.

        Raises TraceTooLarge: the function is longer than the budget; RunTimeLoop: it has loops.
        """
        made = self._recorded
        if isinstance(made, LoopGraph):
            raise RunTimeLoop
        return made

    @cached_attribute
    def digest(self) -> bytes:
        """Hash of what was recorded. Raises TraceTooLarge: the function is longer than the budget."""
        made = self._recorded
        content: Any
        if isinstance(made, LoopGraph):
            arrays = [(a.kind, a.writable) for a in made.arrays]
            content = (made.nodes, made.regions, made.functions, arrays, made.solutions)
        else:
            blocks = [(b.parameters, b.results, b.lanes) for b in made.blocks]
            content = (made.inputs, made.outputs, made.nodes, made.order, made.results, made.marks, blocks)
        return hashlib.sha256(repr(content).encode()).digest()


class _Meaning:
    """What is recorded when a function runs again, whatever the numbers of operations and arrays are.

    Equal values have one name, a whole number with a sign: which of two operands stands first, and where a
    minus is kept, depends on what has been recorded before.
    """

    def __init__(self, graph: LoopGraph) -> None:
        self.graph, self.begin = graph, len(graph.nodes)
        self.old = {
            "region": len(graph.regions),
            "function": len(graph.functions),
            "array": len(graph.arrays),
        }
        self.values: dict[int, int] = {}  # the names of operations
        self.names: dict[Any, int] = {}

    def since(self, dead: set[int]) -> list[tuple[Any, int]]:
        """What has been done since this was asked last: each effect and its operation.

        ``dead``: operations that have been taken back.
        """
        graph, found, met = self.graph, list[tuple[Any, int]](), dict[Any, int]()
        begin, self.begin = self.begin, len(graph.nodes)
        outside = {own: outer for f in graph.functions for outer, own in f.values.items()}
        for number in range(begin, self.begin):
            node = graph.nodes[number]
            if node[0] < ops.GIVEN or node[0] == ops.WHOLE:
                self.values[number] = self._value(number, node)
                continue
            if number in outside:  # what a function uses of the one around it
                self.values[number] = self._name(outside[number])
                continue
            if number in dead:
                continue
            opcode, more, inside, read = node[0], (), list[Region](), list(operands(node))
            things = [("region", graph.place[number].number)]
            if opcode in (ops.APPLY, ops.VMAP):
                called = graph.functions[node[1]]
                inside, read = [called.region], read[: len(read) - len(called.values)]
                things += [("function", node[1]), *(("array", k) for k in node[2])]
            elif opcode in (ops.LOAD, ops.STORE, ops.ZEROS):
                things.append(("array", node[1]))
            elif opcode in (ops.VALUE, ops.CHECK, ops.GIVEN):
                more = node[2:]
            else:
                inside = inner(graph, node)
            read += [k for each in inside for k in (*each.results, each.test)]
            where = [~k if k < self.old[kind] else met.setdefault((kind, k), len(met)) for kind, k in things]
            found.append(((opcode, more, where, list(map(self._name, read))), number))
            self.values[number] = self._named("made", len(found))
        return found

    def _value(self, number: int, node: Node) -> int:
        """The name of the value of an operation on numbers."""
        opcode = node[0]
        if opcode == ops.CONST:
            sign = -1 if node[1] < 0.0 else 1 if node[1] else 0  # -0 is 0
            return sign * self._named(opcode, *(repr(sign * x) for x in node[1:]))  # NaN is itself
        if opcode == ops.WHOLE:
            return self._named(*node)
        read, sign = list(map(self._name, operands(node))), 1
        if opcode == ops.NEG:
            return -read[0]
        if opcode == ops.SUB:
            opcode, read[1] = ops.ADD, -read[1]
        if ops.OPERATIONS[opcode].commutes:
            read.sort(key=abs)
        parity = ops.OPERATIONS[opcode].parity or -(opcode in (ops.MUL, ops.DIV))
        if parity:
            sign = parity if sum(x < 0 for x in read) % 2 else 1
            read = list(map(abs, read))
        else:  # a sum is as odd as its terms, a choice as its numbers
            k = {ops.ADD: 0, ops.SELECT: 1, ops.GUARD: 1}.get(opcode, len(read))
            if next(filter(None, read[k:]), 1) < 0:
                sign, read[k:] = -1, [-x for x in read[k:]]
        return sign * self._named(opcode, *read)

    def _name(self, number: int) -> int:
        if number not in self.values:
            node = self.graph.nodes[number]
            constant = node[0] in (ops.CONST, ops.WHOLE)
            self.values[number] = self._value(number, node) if constant else self._named("before", number)
        return self.values[number]

    def _named(self, *what: Any) -> int:
        return self.names.setdefault(what, len(self.names) + 1)


class _Recorder(Recorder):
    """The words while a function of a user is recorded, whose derivatives are made of the recording.

    ``watched``: whether loops are recorded twice to see what their bodies change around them.
    ``dead``: operations that have been taken back.
    """

    watched = False

    def __init__(self, graph: LoopGraph, link: Callable[..., None]) -> None:
        super().__init__(graph, link)
        self.dead: set[int] = set()

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`."""
        return self._watched(lambda: super(_Recorder, self).for_range(count, body, start), body)

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: int | None
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`."""
        return self._watched(lambda: super(_Recorder, self).while_loop(test, body, start, most), test, body)

    def _watched(self, record: Callable[[], Any], *functions: Callable[..., Any]) -> Any:
        instead = "carry the value (for_range(n, body, start)), or write to memory (zeros)"
        return self._twice(record, self.graph.take_back, "the body of a loop", instead, *functions)

    def _record(self, function: Callable[..., Any], *more: Any) -> Function:
        record = lambda: super(_Recorder, self)._record(function, *more)  # noqa: E731
        what = "a function of call or vmap"
        return self._twice(record, lambda: None, what, "pass the value and return it", function)

    def _twice(
        self, record: Callable[[], Any], undo: Callable[[], None], what: str, instead: str, *functions: Any
    ) -> Any:
        """Record a loop or a function twice: it must not read what it has changed itself around it.

        Args:
            record: records it.
            undo: takes that back.
            what: it is, for messages.
            instead: what to do, for messages.
            functions: of the user, that run meanwhile.

        Raises TypeError: the second recording does something else than the first one.
        """
        if not self.watched:
            return record()
        watch, graph = control_flow.Watch(what, *functions), self.graph
        meaning, known = _Meaning(graph), {key: list(made) for key, made in self.functions.items()}
        begin = meaning.begin
        record()
        watch.spoil()
        undo()
        first, self.functions, self.watched = meaning.since(self.dead), known, False
        self.dead.update(range(begin, meaning.begin))
        try:
            found = record()
        finally:
            self.watched = True
        watch.spoil()
        for (before, _), (now, number) in zip_longest(first, meaning.since(self.dead), fillvalue=(None, -1)):
            if before != now:
                raise TypeError(
                    f"{control_flow.OTHERWISE % (what, instead)}{told('here', graph.lines[number])}"
                )
        return found

    def _key(self, function: Callable[..., Any], *more: Any) -> Any:
        return super()._key(function, *more), contents(function)

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`."""
        return super().cond(condition, *control_flow.spoiling(then, otherwise))

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`, kept for those who replay the recording."""
        graph, arguments = self.graph, control_flow.numbers(unknown)
        if any(isinstance(x, Array) for x in arguments):
            raise TypeError("solution: in your own functions, the unknown must be numbers or lists of them")
        with graph.region(False) as region:  # no control operation runs it
            own = [graph.wrapped(graph.parameter("real")) for _ in arguments]
            found = control_flow.numbers(residual(control_flow.shaped(unknown, own), *parameters))
            control_flow.check_residuals(len(found), len(arguments))
            region.results = [graph.node(1.0 * x) for x in found]
        always = graph.node(True)
        numbers = [graph.node(1.0 * x) for x in arguments]
        # Nodes of their own: a choice between a number and itself.
        made = [graph.effect((ops.SELECT, always, number, number)) for number in numbers]
        graph.solutions[made[0]] = Solved(region, numbers, made)
        return control_flow.shaped(unknown, [graph.wrapped(number) for number in made])


def _no_kernels(*_: Any) -> None:
    raise TypeError("call: a function of your own calls functions of numbers, not compiled kernels")


class Row(list[Any]):
    """The numbers of an input in a recording with loops.

    ``array``: the same with places that are known only later.
    """

    def __init__(self, array: Array) -> None:
        super().__init__(array)
        self.array = array


def sizes_of(outputs: Outputs) -> list[tuple[str, int]]:
    """Name and number of scalars of each output."""
    return [(name, int(np.prod(shape, dtype=int))) for name, shape in outputs]


def recorded_with_loops(
    function: FlatFunction, inputs: Inputs, outputs: Outputs, watched: bool = False
) -> LoopGraph:
    """The recording of a function on flat arrays; its arrays are the inputs and the outputs.

    ``watched``: whether it is a user's function itself, which may change what is around it.

    Quotients stay quotients, as on plain numbers, and indices are checked. Raises TraceTooLarge: the function
    records more than the budget; ValueError: the function returns other sizes than declared; FunctionError:
    it returns a value that has left its loop, branch or function.
    """
    graph = LoopGraph(checked=True, exact=True, budget=NODE_BUDGET)
    region = graph.regions[0]
    arrays = []
    for k, (_, size) in enumerate([*inputs, *sizes_of(outputs)]):
        number = graph.array("real", region, k >= len(inputs))
        graph.functions[0].arrays.append(number)
        arrays.append(Array(graph, number, "real", (size,), k >= len(inputs)))
    recorder = _Recorder(graph, _no_kernels)
    recorder.watched = watched
    with control_flow.recorded_by(recorder):
        try:
            write(function(*map(Row, arrays[: len(inputs)])), arrays[len(inputs) :])
        except Escaped as error:
            raise FunctionError(str(error)) from None
    return graph


def write(rows: Sequence[Sequence[Any]], arrays: Sequence[Any]) -> None:
    """Write the outputs of a function to arrays; -0 becomes 0, as in all reproducible kernels."""
    for row, array in zip(rows, arrays, strict=True):
        if len(row) != len(array):
            raise ValueError(f"the function returned {len(row)} scalars, declared are {len(array)}")
        for k, x in enumerate(row):
            if isinstance(x, Scalar):
                x = Scalar(x.graph, x.graph.add((ops.ADD, x.graph.plain(x.ref), x.graph.constant(0.0))))
            array[k] = x


def _memory(row: Sequence[Any]) -> Any:
    """Numbers where an index that is known only later finds them."""
    array = getattr(row, "array", None)
    if array is None:
        array = control_flow.zeros(len(row))
        for k, x in enumerate(row):
            array[k] = x
    return array


# -- Machine code of what has loops: a kernel without sizes -----------------------------------------------


class FlatKernel(LoopKernel):
    """A function with loops for one robot.

    ``symbol``: in the names of its code; ``function``: one sequence of scalars for each input -> one flat
    sequence for each output; ``signature``: of its kernel; ``names``: of the inputs and outputs in code for
    others; none for machine code.
    """

    def __init__(
        self, symbol: str, function: FlatFunction, signature: Signature, names: Sequence[str] | None = None
    ) -> None:
        rows = [*signature.inputs, *sizes_of(signature.outputs)]
        count = len(signature.inputs)
        named = names or [f"x{k}" for k in range(len(rows))]
        arrays = [
            ArrayOf(name, (n,), "in" if k < count else "out")
            for k, (name, (_, n)) in enumerate(zip(named, rows, strict=True))
        ]
        super().__init__(symbol, self._none, [], arrays, signature.reproducible, checked=True)
        self.of, self.signature = function, signature
        self._sizes = [n for _, n in rows]
        # No lock, which a child that is forked in the midst of a call would wait for.
        self._spare = Spare[tuple[list[np.ndarray], Callable[[], None]]](4)

    def _none(self, *_: Any) -> None:
        raise NotImplementedError  # recorded below

    def record(self) -> LoopGraph:
        """The recording, one for all its code."""
        own = self.of.loops if isinstance(self.of, RecordedOnce) else None
        return own or recorded_with_loops(self.of, self.signature.inputs, self.signature.outputs)

    def run(self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None) -> None:
        """Run it on one state or a batch; the outputs are written in place.

        Raises FunctionError: an index is out of range, or there is no such whole number; NoMachineCode: there
        is none.
        """
        if rows is not None:
            arrays = [np.ascontiguousarray(np.broadcast_to(a, (rows, a.shape[-1]))) for a in arrays]
            batch = self.batch({}, [*arrays, *outs], rows, self.signature.dtype)
            if self.refused is not None:
                raise NoMachineCode(self.refused)
            self._done(batch)
            return
        own, call = one = self._spare.take(None, self._one_state)
        try:
            for mine, array in zip(own, arrays, strict=False):
                mine[:] = array
            self._done(call)
            for out, mine in zip(outs, own[len(arrays) :], strict=True):
                out[...] = mine.reshape(out.shape)
        finally:
            self._spare.give(None, one)

    def fast(self, *arguments: Any) -> Any:
        """As ``Kernel.fast``, without arrays to write to."""
        shape = self.signature
        own, call = one = self._spare.take(None, self._one_state)
        try:
            inputs = own[: len(shape.inputs)]
            if len(arguments) != len(inputs):
                return None
            for mine, x in zip(inputs, arguments, strict=True):
                if x.__class__ is not np.ndarray or x.dtype != mine.dtype or x.shape != mine.shape:
                    return None
                mine[:] = x
                if not math.isfinite(mine.sum()):
                    return None
            if shape.quaternions or shape.bounds:
                self.check_values(inputs)
            self._done(call)
            outs = own[len(inputs) :]
            return shape.answer([x.reshape(n).copy() for x, n in zip(outs, shape.output_shapes, strict=True)])
        finally:
            self._spare.give(None, one)

    def _one_state(self) -> tuple[list[np.ndarray], Callable[[], None]]:
        """Arrays of one state, and what runs on them; for one thread."""
        own = [np.empty(n, self.signature.dtype) for n in self._sizes]
        return own, self.single({}, own, self.signature.dtype)

    def _done(self, call: Callable[[], None]) -> None:
        try:
            call()
        except (ArithmeticError, LookupError, ValueError) as error:
            message = str(error).replace(f"{self.name}: ", "", 1)
            name, kind = self.signature.name, type(error).__name__
            raise FunctionError(f"{name}: {kind}: {message}") from None

    def check_values(self, arrays: Sequence[np.ndarray]) -> None:
        """As that of the signature, which explains; here is a quick look. Raises InvalidValue: as there."""
        shape = self.signature
        good = not shape.quaternions and all(np.isfinite(a).all() for a in arrays)
        if not good or any((np.abs(arrays[i][..., k]) > most).any() for i, k, most in shape.bounds):
            shape.check_values(arrays)
