"""Records what a function computes: the function runs once, on scalars that note what is done with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from robokit.engine.trace import blocks
from robokit.engine.trace.graph import Graph, Program, Shares
from robokit.engine.trace.ops import CONST, GUARD, INPUT, SOLVED, STILL, TABLE
from robokit.engine.trace.scalar import Scalar, Table, Truth, where
from robokit.errors import FunctionError
from robokit.interpreter import without_collector
from robokit.spatial import control_flow
from robokit.spatial.control_flow import Memory, recorded_by
from robokit.spatial.scalars import holds, iterations, telling

# -- What the words of control_flow do while a straight line is recorded ----------------------------------
#
# What is known now is done as Python does it: a loop is unrolled, a branch is taken. A condition that is not
# known records both branches, each guarded by its own condition (passes/guards.py), and chooses. A count,
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
    """The words while a graph is recorded."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`: the turns, one after the other."""
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

        Raises:
            TypeError: the branches differ in form.
        """
        control_flow.check_truth(condition)
        if not isinstance(condition, Truth):
            return then() if holds(condition) else otherwise()
        graph = self.graph
        with control_flow.only(condition):
            value = then()
        opposite = ~condition
        begin = len(graph.nodes)
        with control_flow.only(opposite):
            other = otherwise()

        def choice(c: Truth, x: Any, y: Any) -> Any:
            if isinstance(x, Truth | bool) and isinstance(y, Truth | bool):
                return (c & x) | (opposite & y)
            if type(y) is Scalar and abs(y.ref) >= begin and graph.nodes[abs(y.ref)][0] > CONST:
                y = where(opposite, y, 0.0, GUARD)
            return where(c, x, y, GUARD)

        return control_flow.chosen(condition, value, other, choice)

    def kept(self, on: Any, value: Any, before: Any) -> Any:
        """What an entry of memory holds after a branch that may not run has written a value to it."""
        return where(on, value, before, GUARD)

    def look(self, index: Any) -> None:
        """Refuse an index that is known only later."""
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
        """As :func:`robokit.spatial.control_flow.whole`: only loops have whole numbers that are not known."""
        raise RunTimeLoop("a whole number that is known only when the function runs")

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """As :func:`robokit.spatial.control_flow.call`: a call, where that pays."""
        return blocks.call(self.graph, function, arguments)

    def vmap(self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As :func:`robokit.spatial.control_flow.vmap`: side by side, where that pays."""
        return blocks.vmap(self.graph, function, columns)


class Equations:
    """What notes solved equations on a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`."""
        given, shaped = control_flow.numbers(unknown), control_flow.shaped
        at = [self.still(x, *given) for x in given]
        within, self.graph.within = self.graph.within, True  # a body of its own would hide the derivative
        try:
            residuals = control_flow.numbers(residual(shaped(unknown, at), *parameters))
            control_flow.check_residuals(len(residuals), len(at))
            b = [self.still(0.0, *given) for _ in at] if solve else []
            x = control_flow.numbers(solve(shaped(unknown, b))) if solve else []
        finally:
            self.graph.within = within
        return shaped(unknown, self.solved(at, residuals, b, x))

    def still(self, x: Any, *beside: Any) -> Scalar:
        """A number whose derivative is 0: each time another node, in the body of a block if one beside is."""
        operands = map(self._number, (x, float(len(self.graph.nodes)), *beside))
        return Scalar(self.graph, self.graph.add((STILL, *operands)))

    def solved(self, *operands: Sequence[Any]) -> list[Scalar]:
        """The numbers that solve an equation, given v, r, b and x: neighbours in the graph."""
        count, flat = len(operands[0]), [x for row in operands for x in row]
        at = [self._number(x) for x in (*map(float, range(count)), float(count), *flat)]
        return [Scalar(self.graph, self.graph.add((SOLVED, at[i], *at[count:]))) for i in range(count)]

    def _number(self, x: Any) -> int:
        return self.graph.plain(x.ref if type(x) is Scalar else self.graph.constant(float(x)))


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
    text: Callable[..., Sequence[Sequence[Any]]],
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    budget: int = 400_000,
    signed: bool = False,
    tables: Sequence[tuple[str, int]] = (),
    shares: Shares = False,
    columns: int = 1,
    equations: bool = False,
) -> Program:
    """Record what a function computes.

    Args:
        text: called with one list of scalars per input, then one table per table; returns one flat,
            row-major sequence of scalars (traced or plain numbers) per output.
        inputs: (name, number of scalars) of each input.
        outputs: (name, shape) of each output.
        budget: most nodes to record.
        signed: whether constants keep their sign (see :class:`Graph`).
        tables: (name, number of entries) of each table.
        shares: which functions that are taken several times are recorded once (trace/blocks.py).
        columns: most columns of a function that are computed side by side (``vmap``).
        equations: whether the program will be differentiated, and says which numbers solve equations
            (:class:`Equations`).

    Raises:
        TraceTooLarge: the function records more than budget nodes.
        ValueError: the function returns other sizes than declared.
    """
    graph = Graph(budget, signed, shares, columns)
    arguments = [
        [Scalar(graph, graph.add((INPUT, k, offset))) for offset in range(size)]
        for k, (_, size) in enumerate(inputs)
    ]
    given = [Table(graph, graph.add((TABLE, k))) for k in range(len(tables))]
    # Half the time of a trace would go into looking for cycles among nodes.
    with (
        without_collector(),
        telling(graph.mark),
        recorded_by(Recorder(graph)),
        noting(graph if equations else None),
    ):
        returned = [list(row) for row in text(*arguments, *given)]
    sizes = [math.prod(shape) for _, shape in outputs]
    if [len(row) for row in returned] != sizes:
        raise ValueError(f"the text returned {[len(row) for row in returned]} scalars, declared are {sizes}")
    results = [[x.ref if type(x) is Scalar else float(x) for x in row] for row in returned]
    return Program.finish(graph, inputs, outputs, results, tables)
