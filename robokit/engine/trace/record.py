"""Records what a function computes: the function runs once, on scalars that note what is done with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from numpy import empty, ndarray

from robokit.engine.trace import ops
from robokit.engine.trace.graph import Block, Graph, Program, Shares
from robokit.engine.trace.scalar import KEPT, Scalar, Truth, node_of, reference, where
from robokit.errors import FunctionError
from robokit.interpreter import without_collector
from robokit.spatial import control_flow
from robokit.spatial.control_flow import Memory, closed, flat, held_by, recorded_by, shaped_like
from robokit.spatial.scalars import holds, iterations, of_each, telling

# -- Functions that are taken several times --------------------------------------------------------------
#
# They are recorded once: ``call`` and ``vmap``.
#
# Where code is dear all such functions are, elsewhere the large ones, whose code takes long to compile.
#
# The function is recorded on nodes that stand for its arguments, the *parameters*. What depends on them is
# the *body* of the block. All else that it computes is the same each time and belongs to the program around
# it. A call is a node (CALL, block, arguments...), each of its values a node (RESULT, call, position).
#
# A block may have *lanes* (``vmap``): a call has the arguments of so many columns, one column
# after the other, and so it has the values. Code of one state computes them in the lanes of a vector.

WORTH = 60
"""Multiplications of all columns together from which on they are taken side by side: moving the arguments
into lanes and the values out of them takes time, too."""

LARGE = 200  # multiplications of a column from which on its code is written once for all columns like it

LONG = 450
"""Operations from which on a function is called where code is not dear: a straight line is cut there anyway
(emit/ir.py), and what goes over a cut goes through memory."""

CHOICES = frozenset({*ops.TRUTHS, ops.SELECT, ops.GUARD})
"""Operations that lanes, and columns that are recorded in turn, do not have."""

PANEL = 3
"""Most columns that are recorded in turn where no lanes are for them: with four rows of a product these are
twelve sums, which fit in 16 registers beside one number of each column and one of a row."""


def call(graph: Graph, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """As :func:`robokit.spatial.control_flow.call`: one block for all calls, where that pays."""
    numbers = flat(arguments)
    if graph.shared is None or graph.within or not all(map(_is_number, numbers)):
        return function(*arguments)
    key = _key(graph, function, arguments)
    run = _Flat(function, arguments)
    measured = _measured(graph, key, run, [None] * len(numbers))
    if measured is None or measured.operations < (LONG if graph.large else len(numbers) + measured.results):
        return function(*arguments)
    number = _block(graph, (*key, "call"), run, [None] * len(numbers), 1)
    values = _called(graph, number, [node_of(graph, x) for x in numbers], 1)[0]
    return measured.shaped(values)


def vmap(graph: Graph, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]]) -> list[Any]:
    """As :func:`robokit.spatial.control_flow.vmap`: calls with as many lanes as the graph allows.

    Where there are none, columns of the same function, which is long, are calls of one block each, and others
    are recorded in turn.
    """
    arguments = [flat(column) for column in columns]
    forms = {_form(column) for column in columns}
    numbers = [x for column in arguments for x in column]
    traced = any(type(x) is Scalar for x in numbers) and all(map(_is_number, numbers))
    if len(columns) < 2 or len(forms) > 1 or not traced or graph.within:
        return [function(*column) for column in columns]
    known = [_known(row) for row in zip(*arguments, strict=True)]
    key, run = _key(graph, function, columns[0]), _Flat(function, columns[0])
    measured = _measured(graph, key, run, known)
    if measured is None or measured.chooses:
        return [function(*column) for column in columns]
    lanes = min(graph.columns, 1 << (len(columns) - 1).bit_length())
    if graph.asked:
        lanes = len(columns)
    elif lanes < 2 or graph.shared is None or measured.products * len(columns) < WORTH:
        found = _one_by_one(graph, key, run, arguments, measured)
        return [measured.shaped(column) for column in found]
    number = _block(graph, (*key, lanes, *known), run, known, lanes)
    changing = [k for k, x in enumerate(known) if x is None]
    zero, values = graph.constant(0.0), list[list[Any]]()
    for start in range(0, len(columns), lanes):
        part = arguments[start : start + lanes]
        operands = [node_of(graph, column[k]) for column in part for k in changing]
        operands += [zero] * (lanes * len(changing) - len(operands))
        values += _called(graph, number, operands, len(part))
    return [measured.shaped(column) for column in values]


def _key(graph: Graph, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Hashable, ...]:
    """What calls that share code have in common; what a function of a user uses may change between them."""
    return function, contents(function) if graph.asked else (), _form(arguments)


class Same:
    """An object as a key: equal to itself alone, and alive as long as the key."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def contents(function: Any, seen: set[Any] | None = None) -> tuple[Any, ...]:
    """What is in the lists, dicts and arrays that a function uses, and in those of functions that it calls.

    It may change from one call to the next. Of other objects it is what their attributes are.
    """
    seen, found = seen or {function}, list[Any]()
    used = [(None, getattr(function, "__self__", None)), *(x[1:] for x in held_by(function))]
    for holder, now in used:
        if isinstance(holder, CellType):
            found.append(Same(now))
        if isinstance(now, FunctionType | MethodType):
            found += () if now in seen else contents(now, seen | {now})
        elif isinstance(holder, dict | list):
            found += map(Same, [*now, *now.values()] if isinstance(now, dict) else now)
        elif isinstance(holder, ndarray):
            found += map(Same, now.ravel().tolist()) if now.dtype == object else [now.tobytes()]
        elif not isinstance(now, type | ModuleType):
            found += map(Same, getattr(now, "__dict__", {}).values())
        found.append(len(found))
    return tuple(found)


def _one_by_one(
    graph: Graph, key: tuple[Hashable, ...], run: _Flat, columns: Sequence[Sequence[Any]], measured: Measured
) -> list[list[Any]]:
    """The values of columns that no lanes are for."""
    patterns = [tuple(None if type(x) is Scalar else float(x) for x in column) for column in columns]
    seen: list[Hashable] = graph.measured.setdefault(("patterns", key), [])
    seen += patterns
    if measured.products < LARGE or len(set(seen)) == len(seen):
        return [column for panel in _panels(columns) for column in _in_turn(run, panel)]
    if graph.shared is None:
        return [run(*column) for column in columns]
    found = list[list[Any]]()
    for column, pattern in zip(columns, patterns, strict=True):
        if None not in pattern:
            found.append(run(*column))
            continue
        number = _block(graph, (*key, *pattern), run, pattern, 1)
        operands = [node_of(graph, x) for x in column if type(x) is Scalar]
        found.append(_called(graph, number, operands, 1)[0])
    return found


class _Flat:
    """A function on the numbers of its arguments, one after the other; so it returns its values."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments
        self.returned: Any = None

    def __call__(self, *numbers: Any) -> list[Any]:
        self.returned = self.function(*shaped_like(self.arguments, iter(numbers)))
        return flat(self.returned)


@dataclass
class Measured:
    """Properties of a function, found by recording it once."""

    operations: int  # that depend on its arguments
    products: int  # multiplications among them
    chooses: bool  # whether there are comparisons or choices among them
    results: int  # how many values it returns,
    pattern: Any  # and in which form

    def shaped(self, values: Sequence[Any]) -> Any:
        """Values in the form in which the function returns them."""
        return shaped_like(self.pattern, iter(values))


def _is_number(x: Any) -> bool:
    return isinstance(x, Scalar | int | float) and not isinstance(x, bool)


class Writes(Exception):
    """Raised for a function that writes to memory of its caller, so that its values alone do not
    describe it.
    """


def _measured(
    graph: Graph, key: tuple[Hashable, ...], run: _Flat, known: Sequence[float | None]
) -> Measured | None:
    """What a function does on arguments some of which are known; it is recorded to tell, and taken back.

    None: it writes to memory, or returns something else than numbers. Raises TypeError: a function of a user,
    recorded twice, does something else the second time.
    """
    pattern = ("measured", key, *known)
    if pattern not in graph.measured:
        watch = control_flow.Watch("a function of call or vmap", run.function) if graph.asked else None
        found, done = _measure(graph, run, known)
        if watch is not None:
            watch.spoil()
            again = _measure(graph, run, known)[1]
            if again != done and repr(again) != repr(done):  # NaN is no other number than NaN
                instead = "pass the value and return it"
                raise TypeError(control_flow.OTHERWISE % (watch.what, instead))
            watch.spoil()
            graph.nodes += done[0]  # for what it has left somewhere: their numbers must not be others'
        graph.measured[pattern] = found
    measured: Measured | None = graph.measured[pattern]
    return measured


def _measure(graph: Graph, run: _Flat, known: Sequence[float | None]) -> tuple[Measured | None, Any]:
    """What :func:`_measured` tells, and all that has been recorded."""
    begin, marks = len(graph.nodes), len(graph.marks)
    parameters = [graph.add((ops.PARAMETER, -1, k)) for k, x in enumerate(known) if x is None]
    rest, found, values = iter(parameters), None, list[Any]()
    graph.within = True
    try:
        with closed(Writes()):
            values = run(*(Scalar(graph, next(rest)) if x is None else x for x in known))
        body = [graph.nodes[n] for n in _body(graph, parameters) - set(parameters)]
        chooses = any(node[0] in CHOICES for node in body)
        products = sum(node[0] == ops.MUL for node in body)
        if all(map(_is_number, values)):
            found = Measured(len(body), products, chooses, len(values), run.returned)
    except Writes:
        pass
    finally:
        graph.within = False
        recorded = graph.nodes[begin:]
        for node in recorded:
            del graph.index[node]
        del graph.nodes[begin:], graph.marks[marks:]
    return found, (recorded, found and [x.ref if type(x) is Scalar else x for x in values])


def _form(values: Any) -> Any:
    """The nested form of tuples and lists of numbers."""
    return tuple(map(_form, values)) if isinstance(values, tuple | list) else None


def _panels(columns: Sequence[Sequence[Any]]) -> list[Sequence[Sequence[Any]]]:
    """The columns in groups of about equal size, at most PANEL."""
    count = -(-len(columns) // PANEL)
    size = -(-len(columns) // max(count, 1))
    return [columns[k : k + size] for k in range(0, len(columns), size)]


def _in_turn(run: Callable[..., Sequence[Any]], columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The values of a function for some columns, each operation for all of them before the next one.

    What they share, say a row of a matrix, is then loaded once. An argument is an array of the columns'.
    """
    if len(columns) == 1:
        return [list(run(*columns[0]))]
    values = run(*(_together(row) if _known(row) is None else row[0] for row in zip(*columns, strict=True)))
    each = [x if type(x) is ndarray else [x] * len(columns) for x in values]
    return [[x[k] for x in each] for k in range(len(columns))]


def _together(row: Sequence[Any]) -> ndarray:
    """An array of scalars."""
    found = empty(len(row), object)
    found[:] = row
    return found


def _known(row: Sequence[Any]) -> float | None:
    """The number that an argument is in all columns; None where it changes."""
    first = row[0]
    return float(first) if all(type(x) is not Scalar and x == first for x in row) else None


def _block(
    graph: Graph,
    pattern: Hashable,
    run: Callable[..., Sequence[Any]],
    known: Sequence[float | None],
    lanes: int,
) -> int:
    """Number of the block of a function, recorded now if it is new.

    Args:
        graph: that it belongs to.
        pattern: by which it is found again.
        run: of one column.
        known: its arguments: numbers, or None where they change.
        lanes: columns of a call.
    """
    assert graph.shared is not None
    block = graph.shared.get(pattern)
    if block is None:
        number = len(graph.blocks)
        parameters = [graph.add((ops.PARAMETER, number, k)) for k, x in enumerate(known) if x is None]
        rest = iter(parameters)
        graph.within = True
        values = run(*(Scalar(graph, next(rest)) if x is None else x for x in known))
        graph.within = False
        results = [node_of(graph, x) if type(x) is Scalar else float(x) for x in values]
        block = graph.shared[pattern] = Block(parameters, results, lanes)
        if lanes > 1:
            block.around = {r for r in results if type(r) is int} - _body(graph, parameters)
        graph.blocks.append(block)
    return next(k for k, each in enumerate(graph.blocks) if each is block)


def _body(graph: Graph, parameters: Sequence[int]) -> set[int]:
    """The nodes that depend on parameters, which are recorded already."""
    found = set(parameters)
    for number in range(min(found, default=len(graph.nodes)), len(graph.nodes)):
        if not found.isdisjoint(graph.nodes[number][1:]) and graph.nodes[number][0] > ops.CONST:
            found.add(number)
    return found


def _called(graph: Graph, number: int, operands: Sequence[int], columns: int) -> list[list[Any]]:
    """The values of a block for these arguments, column by column.

    What the lanes of one vector hold is recorded one after the other.
    """
    block = graph.blocks[number]
    call = graph.add((ops.CALL, graph.constant(float(number)), *operands))
    count, found = len(block.results), list[list[Any]]()
    for k, x in enumerate(block.results):
        row: list[Any] = [Scalar(graph, int(x)) if x in block.around else x] * columns
        if type(x) is int and x not in block.around:
            places = [graph.constant(float(lane * count + k)) for lane in range(columns)]
            row = [Scalar(graph, graph.add((ops.RESULT, call, place))) for place in places]
        found.append(row)
    return [list(column) for column in zip(*found, strict=True)]


def called(program: Program, call: int) -> int:
    """Number of the block that a node (CALL, ...) takes."""
    return int(program.nodes[program.nodes[call][1]][1])


def position(program: Program, result: int) -> int:
    """Which of a block's values a node (RESULT, ...) is, in its lane."""
    count = len(program.blocks[called(program, program.nodes[result][1])].results)
    return int(program.nodes[program.nodes[result][2]][1]) % count


def lane(program: Program, result: int) -> int:
    """The lane of a node (RESULT, ...)."""
    count = len(program.blocks[called(program, program.nodes[result][1])].results)
    return int(program.nodes[program.nodes[result][2]][1]) // count


# -- What the words of control_flow do while a straight line is recorded ----------------------------------
#
# What is known now is done as Python does it: a loop is unrolled, a branch is taken. A condition that is not
# known records both branches, each guarded by its own condition (passes/order.py), and chooses. A count,
# test or index that is known only when the function runs is no matter of a straight line:
# :class:`RunTimeLoop` says so, and a function of a user's own is recorded with loops instead (engine/loops).

UNROLLED = 20_000
"""Operations of a loop of a user's function from which on it stays a loop: a straight line as long takes
seconds to compile."""


class RunTimeLoop(FunctionError):
    """A straight line met a loop whose length is known only when it runs, or one too long to be unrolled."""

    def __init__(self, what: str = "a loop whose length is known only when the function runs") -> None:
        super().__init__(
            f"{what}: there is no straight line of its operations, which is needed here. Such functions have "
            "calls, batches and derivative; make the length known (for_range(3, ...)), or choose with cond"
        )


class Recorder:
    """Implements loops, conditions and memory (control_flow) while a graph is recorded."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`, unrolled."""
        known = None if isinstance(count, Scalar) else control_flow.known_count(count)
        if not isinstance(known, int):
            raise RunTimeLoop
        carried, begin = start, len(self.graph.nodes)
        for k in iterations(range(known)):
            carried = self._carried_on(body(k, *carried), start)
            self._not_too_long(begin)
        return carried

    def in_precision(self, double: float, single: float) -> Any:
        """As :func:`robokit.spatial.control_flow.in_precision`: where loops are recorded it is known."""
        raise RunTimeLoop

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: Any
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`, where the test is known in each turn."""
        if isinstance(most, Scalar):
            raise RunTimeLoop
        carried, turns, begin = start, 0, len(self.graph.nodes)
        while most is None or turns < most:
            goes = test(*carried)
            control_flow.check_truth(goes)
            if isinstance(goes, Truth):
                raise RunTimeLoop
            if not holds(goes):
                break
            carried = self._carried_on(body(*carried), start)
            turns += 1
            self._not_too_long(begin)
        return carried

    def _carried_on(self, returned: Any, start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.carried_on`; straight lines know all whole numbers."""
        for old, new in zip(control_flow.flat(start), control_flow.flat(returned), strict=False):
            if isinstance(old, int) and isinstance(new, Scalar):
                raise RunTimeLoop("a whole number that is known only when the function runs")
        return control_flow.carried_on(returned, start)

    def _not_too_long(self, begin: int) -> None:
        if self.graph.asked and len(self.graph.nodes) - begin > UNROLLED:
            raise RunTimeLoop(f"a loop of more than {UNROLLED} operations")

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`: a guarded choice of each value.

        Raises TypeError: the branches differ in form.
        """
        control_flow.check_truth(condition)
        if not isinstance(condition, Truth):
            return then() if holds(condition) else otherwise()
        graph = self.graph
        if graph.asked:  # by users
            then, otherwise = control_flow.spoiling(then, otherwise)
        with control_flow.only(condition):
            value = then()
        opposite = ~condition
        begin = len(graph.nodes)
        with control_flow.only(opposite):
            other = otherwise()

        def choice(c: Truth, x: Any, y: Any) -> Any:
            if type(x) is ndarray or type(y) is ndarray:
                return of_each(choice, c, x, y)
            if isinstance(x, Truth | bool) and isinstance(y, Truth | bool):
                return (c & x) | (opposite & y)
            if (
                type(y) is Scalar
                and abs(reference(graph, y)) >= begin
                and graph.nodes[abs(y.ref)][0] > ops.CONST
            ):
                y = where(opposite, y, 0.0, ops.GUARD)
            return where(c, x, y, ops.GUARD)

        return control_flow.chosen(condition, value, other, choice)

    def kept(self, on: Any, value: Any, before: Any) -> Any:
        """The content of an entry of memory after a branch that may not run has written a value to it."""
        return where(on, value, before, ops.GUARD)

    def look(self, index: Any) -> None:
        """Raise an error for an index that is known only when the function runs."""
        if any(isinstance(i, Scalar) for i in (index if isinstance(index, tuple) else (index,))):
            raise RunTimeLoop("an index that is known only when the function runs")

    def zeros(self, shape: Sequence[Any], kind: str) -> Any:
        """Memory whose entries are scalars of the graph."""
        if any(isinstance(n, Scalar) for n in shape):
            raise RunTimeLoop("memory whose size is known only when the function runs")
        return Memory.of(shape, kind)

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`, noted where the line will be differentiated."""
        equations = noted()
        return unknown if equations is None else equations.solution(residual, unknown, parameters, solve)

    def whole(self, x: Any) -> Any:
        """As :func:`robokit.spatial.control_flow.whole`; integers that are not known exist only in loops."""
        raise RunTimeLoop("a whole number that is known only when the function runs")

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """As :func:`robokit.spatial.control_flow.call`: a call, where that pays."""
        return call(self.graph, function, arguments)

    def vmap(self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As :func:`robokit.spatial.control_flow.vmap`: side by side, where that pays."""
        return vmap(self.graph, function, columns)


class Equations:
    """Notes solved equations on a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`."""
        arguments, shaped = control_flow.numbers(unknown), control_flow.shaped
        at = [self.still(x, *arguments) for x in arguments]
        within, self.graph.within = self.graph.within, True  # a body of its own would hide the derivative
        try:
            residuals = control_flow.numbers(residual(shaped(unknown, at), *parameters))
            control_flow.check_residuals(len(residuals), len(at))
            b = [self.still(0.0, *arguments) for _ in at] if solve else []
            x = control_flow.numbers(solve(shaped(unknown, b))) if solve else []
        finally:
            self.graph.within = within
        return shaped(unknown, self.solved(at, residuals, b, x))

    def still(self, x: Any, *beside: Any) -> Scalar:
        """A number with the derivative 0.

        Each call makes another node, in the body of a block if one of ``beside`` is.
        """
        operands = (node_of(self.graph, each) for each in (x, float(len(self.graph.nodes)), *beside))
        return Scalar(self.graph, self.graph.add((ops.STILL, *operands)))

    def solved(self, *operands: Sequence[Any]) -> list[Scalar]:
        """The numbers that solve an equation, given v, r, b and x: neighbours in the graph."""
        count, flat = len(operands[0]), [x for row in operands for x in row]
        at = [node_of(self.graph, x) for x in (*map(float, range(count)), float(count), *flat)]
        return [Scalar(self.graph, self.graph.add((ops.SOLVED, at[i], *at[count:]))) for i in range(count)]


def noted() -> Equations | None:
    """What notes equations in this thread; None where nothing is recorded to be differentiated."""
    return getattr(control_flow.recorder, "equations", None)


@contextmanager
def noting(graph: Graph | None) -> Iterator[None]:
    """While it lasts, this thread's solved equations go to a graph, or to none."""
    before = noted()
    control_flow.recorder.equations = None if graph is None else Equations(graph)
    try:
        yield
    finally:
        control_flow.recorder.equations = before


def trace(
    function: Callable[..., Sequence[Sequence[Any]]],
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    budget: int = 400_000,
    signed: bool = False,
    shares: Shares = False,
    columns: int = 1,
    equations: bool = False,
) -> Program:
    """Record what a function computes.

    Args:
        function: called with one list of scalars per input; returns one flat, row-major sequence of scalars
            (traced or plain numbers) per output.
        inputs: (name, number of scalars) of each input.
        outputs: (name, shape) of each output.
        budget: most nodes to record.
        signed: whether constants keep their sign (see :class:`Graph`).
        shares: which functions that are taken several times are recorded once (trace/record.py).
        columns: most columns of a function that are computed side by side (``vmap``).
        equations: whether the program will be differentiated, and says which numbers solve equations
            (:class:`Equations`).

    Raises:
        TraceTooLarge: the function records more than budget nodes.
        ValueError: the function returns other sizes than declared.
    """
    graph = Graph(budget, signed, shares, columns)
    arguments = [
        [Scalar(graph, graph.add((ops.INPUT, k, offset))) for offset in range(size)]
        for k, (_, size) in enumerate(inputs)
    ]
    # Half the time of a trace would go into looking for cycles among nodes.
    with (
        without_collector(),
        telling(graph.mark),
        recorded_by(Recorder(graph)),
        noting(graph if equations else None),
    ):
        returned = [list(row) for row in function(*arguments)]
    sizes = [math.prod(shape) for _, shape in outputs]
    if (found := [len(row) for row in returned]) != sizes:
        raise ValueError(f"the function returned {found} scalars, declared are {sizes}")
    if any(type(x) is Scalar and x.graph is not graph for row in returned for x in row):
        raise FunctionError(KEPT)
    results = [[x.ref if type(x) is Scalar else float(x) for x in row] for row in returned]
    return Program.finish(graph, inputs, outputs, results)
