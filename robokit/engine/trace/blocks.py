"""Functions that are taken several times, recorded once: ``call`` and ``vmap``.

Where code is dear all such functions are, elsewhere the large ones, whose code takes long to compile.

The function is recorded on nodes that stand for its arguments, the *parameters*. What depends on them is the
*body* of the block. All else that it computes is the same each time and belongs to the program around it. A
call is a node (CALL, block, arguments...), each of its values a node (RESULT, call, position).

A block may have *lanes* (``vmap``): a call has the arguments of so many columns, one column
after the other, and so it has the values. Code of one state computes them in the lanes of a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy import empty, ndarray

from robokit.engine.trace.graph import Block, Graph, Program
from robokit.engine.trace.ops import CALL, CONST, GUARD, LOOKUP, MUL, PARAMETER, RESULT, SELECT, TRUTHS
from robokit.engine.trace.scalar import Scalar, node_of
from robokit.spatial.control_flow import closed, flat, shaped_like

WORTH = 60
"""Multiplications of all columns together from which on they are taken side by side: moving the arguments
into lanes and the values out of them takes time, too."""

LARGE = 200
"""Multiplications of a column from which on its code is written once for all columns like it."""

LONG = 450
"""Operations from which on a function is called where code is not dear: a straight line is cut there anyway
(emit/ir.py), and what goes over a cut goes through memory."""

CHOICES = frozenset({*TRUTHS, SELECT, GUARD, LOOKUP})
"""Operations that lanes, and columns that are recorded in turn, do not have."""

PANEL = 3
"""Most columns that are recorded in turn where no lanes are for them: with four rows of a product these are
twelve sums, which fit in 16 registers beside one number of each column and one of a row."""


def call(graph: Graph, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """As :func:`robokit.spatial.control_flow.call`: one block for all calls, where that pays."""
    given = flat(arguments)
    if graph.shared is None or graph.within or not all(map(_is_number, given)):
        return function(*arguments)
    key = function, _form(arguments)
    text = _Flat(function, arguments)
    measured = _measured(graph, key, text, [None] * len(given))
    if measured is None or measured.operations < (LONG if graph.large else len(given) + measured.results):
        return function(*arguments)
    number = _block(graph, (*key, "call"), text, [None] * len(given), 1)
    values = _called(graph, number, [node_of(graph, x) for x in given], 1)[0]
    return measured.shaped(values)


def vmap(graph: Graph, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]]) -> list[Any]:
    """As :func:`robokit.spatial.control_flow.vmap`: calls with as many lanes as the graph allows.

    Where there are none, columns of the same function, which is long, are calls of one block each, and others
    are recorded in turn.
    """
    given = [flat(column) for column in columns]
    forms = {_form(column) for column in columns}
    numbers = [x for column in given for x in column]
    traced = any(type(x) is Scalar for x in numbers) and all(map(_is_number, numbers))
    if len(columns) < 2 or len(forms) > 1 or not traced or graph.within:
        return [function(*column) for column in columns]
    known = [_known(row) for row in zip(*given, strict=True)]
    key, text = (function, *forms), _Flat(function, columns[0])
    measured = _measured(graph, key, text, known)
    if measured is None or measured.chooses:
        return [function(*column) for column in columns]
    lanes = min(graph.columns, 1 << (len(columns) - 1).bit_length())
    if graph.asked:
        lanes = len(columns)
    elif lanes < 2 or graph.shared is None or measured.products * len(columns) < WORTH:
        found = _one_by_one(graph, key, text, given, measured)
        return [measured.shaped(column) for column in found]
    number = _block(graph, (*key, lanes, *known), text, known, lanes)
    changing = [k for k, x in enumerate(known) if x is None]
    zero, values = graph.constant(0.0), list[list[Any]]()
    for start in range(0, len(columns), lanes):
        part = given[start : start + lanes]
        operands = [node_of(graph, column[k]) for column in part for k in changing]
        operands += [zero] * (lanes * len(changing) - len(operands))
        values += _called(graph, number, operands, len(part))
    return [measured.shaped(column) for column in values]


def _one_by_one(
    graph: Graph, key: tuple[Hashable, ...], text: _Flat, columns: Sequence[Sequence[Any]], measured: Measured
) -> list[list[Any]]:
    """The values of columns that no lanes are for."""
    patterns = [tuple(None if type(x) is Scalar else float(x) for x in column) for column in columns]
    seen: list[Hashable] = graph.measured.setdefault(("patterns", key), [])
    seen += patterns
    if measured.products < LARGE or len(set(seen)) == len(seen):
        return [column for panel in _panels(columns) for column in _in_turn(text, panel)]
    if graph.shared is None:
        return [text(*column) for column in columns]
    found = list[list[Any]]()
    for column, pattern in zip(columns, patterns, strict=True):
        if None not in pattern:
            found.append(text(*column))
            continue
        number = _block(graph, (*key, *pattern), text, pattern, 1)
        operands = [graph.plain(x.ref) for x in column if type(x) is Scalar]
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
    """What a function does, looked at once."""

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
    """A function writes to memory around it: it has no values alone."""


def _measured(
    graph: Graph, key: tuple[Hashable, ...], text: _Flat, known: Sequence[float | None]
) -> Measured | None:
    """What a function does on arguments some of which are known; it is recorded to tell, and taken back.

    None: it writes to memory, or returns something else than numbers.
    """
    pattern = ("measured", key, *known)
    if pattern not in graph.measured:
        begin, marks = len(graph.nodes), len(graph.marks)
        parameters = [graph.add((PARAMETER, -1, k)) for k, x in enumerate(known) if x is None]
        rest, found = iter(parameters), None
        graph.within = True
        try:
            with closed(Writes()):
                values = text(*(Scalar(graph, next(rest)) if x is None else x for x in known))
            body = [graph.nodes[n] for n in _body(graph, parameters) - set(parameters)]
            chooses = any(node[0] in CHOICES for node in body)
            products = sum(node[0] == MUL for node in body)
            if all(map(_is_number, values)):
                found = Measured(len(body), products, chooses, len(values), text.returned)
        except Writes:
            pass
        finally:
            graph.within = False
            for node in graph.nodes[begin:]:
                del graph.index[node]
            del graph.nodes[begin:], graph.marks[marks:]
        graph.measured[pattern] = found
    measured: Measured | None = graph.measured[pattern]
    return measured


def _form(values: Any) -> Any:
    """The nested form of tuples and lists of numbers."""
    return tuple(map(_form, values)) if isinstance(values, tuple | list) else None


def _panels(columns: Sequence[Sequence[Any]]) -> list[Sequence[Sequence[Any]]]:
    """The columns in groups of about equal size, at most PANEL."""
    count = -(-len(columns) // PANEL)
    size = -(-len(columns) // max(count, 1))
    return [columns[k : k + size] for k in range(0, len(columns), size)]


def _in_turn(text: Callable[..., Sequence[Any]], columns: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The values of a function for some columns, each operation for all of them before the next one.

    What they share, say a row of a matrix, is then loaded once. An argument is an array of the columns'.
    """
    if len(columns) == 1:
        return [list(text(*columns[0]))]
    values = text(*(_together(row) if _known(row) is None else row[0] for row in zip(*columns, strict=True)))
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
    text: Callable[..., Sequence[Any]],
    known: Sequence[float | None],
    lanes: int,
) -> int:
    """Number of the block of a function, recorded now if it is new.

    Args:
        graph: that it belongs to.
        pattern: by which it is found again.
        text: of one column.
        known: its arguments: numbers, or None where they change.
        lanes: columns of a call.
    """
    assert graph.shared is not None
    block = graph.shared.get(pattern)
    if block is None:
        number = len(graph.blocks)
        parameters = [graph.add((PARAMETER, number, k)) for k, x in enumerate(known) if x is None]
        rest = iter(parameters)
        graph.within = True
        values = text(*(Scalar(graph, next(rest)) if x is None else x for x in known))
        graph.within = False
        results = [graph.plain(x.ref) if type(x) is Scalar else float(x) for x in values]
        block = graph.shared[pattern] = Block(parameters, results, lanes)
        if lanes > 1:
            block.around = {r for r in results if type(r) is int} - _body(graph, parameters)
        graph.blocks.append(block)
    return next(k for k, each in enumerate(graph.blocks) if each is block)


def _body(graph: Graph, parameters: Sequence[int]) -> set[int]:
    """The nodes that depend on parameters, which are recorded already."""
    found = set(parameters)
    for number in range(min(found, default=len(graph.nodes)), len(graph.nodes)):
        if not found.isdisjoint(graph.nodes[number][1:]) and graph.nodes[number][0] > CONST:
            found.add(number)
    return found


def _called(graph: Graph, number: int, operands: Sequence[int], columns: int) -> list[list[Any]]:
    """The values of a block for these arguments, column by column.

    What the lanes of one vector hold is recorded one after the other.
    """
    block = graph.blocks[number]
    call = graph.add((CALL, graph.constant(float(number)), *operands))
    count, found = len(block.results), list[list[Any]]()
    for k, x in enumerate(block.results):
        row: list[Any] = [Scalar(graph, int(x)) if x in block.around else x] * columns
        if type(x) is int and x not in block.around:
            places = [graph.constant(float(lane * count + k)) for lane in range(columns)]
            row = [Scalar(graph, graph.add((RESULT, call, place))) for place in places]
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
