"""Solved equations in a function that is recorded to be differentiated (``control_flow.solution``).

Beside the n unknown numbers u, which something has found, the graph has the residuals at these numbers:

    v_i = (STILL, u_i, key, u...)         the same number; how it was found is not differentiated
    r_j = residual(v, parameters)
    s_i = (SOLVED, i, n, v..., r...)      the same number again: what the function goes on with

The derivative of s is -(dr/dv)^-1 times that of r, which is by the parameters alone. Where the function
brings its own solver of (dr/dv) x = b, operands of s are also the nodes b, which stand for any right-hand
side, and those of x.

Functions that are recorded to be computed go on with u: no equation is in their programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import SOLVED, STILL
from robokit.engine.trace.scalar import Scalar
from robokit.spatial import control_flow


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
