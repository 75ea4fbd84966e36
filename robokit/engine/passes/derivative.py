"""Derivatives of a text, as texts again.

A function is recorded once, on a graph of its own, and its program is played back over the scalars that the
new function is given, together with its derivatives. Where these are the tracer's, equal operations are found
again on their graph. So derivatives of derivatives are made by the same functions.

A choice is differentiated branch by branch: what was computed for the other branch may be NaN, and so may its
derivative. ``floor`` and entries of tables change in jumps: their derivative is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robokit.engine.passes.forward_mode import along_with, tangents
from robokit.engine.passes.replay import replayed
from robokit.engine.passes.reverse_mode import adjoints
from robokit.engine.signature import FlatFunction
from robokit.engine.trace.graph import NODE_BUDGET, Program, Shares
from robokit.engine.trace.record import trace
from robokit.engine.trace.scalar import Scalar

Inputs = Sequence[tuple[str, int]]
Outputs = Sequence[tuple[str, tuple[int, ...]]]


class Recorded:
    """A function on its own graph, recorded at the first use.

    The program of a function is kept only where it is played on plain numbers, state by state.
    """

    def __init__(self, text: FlatFunction, inputs: Inputs, outputs: Outputs, tables: Inputs = ()) -> None:
        self.text, self.inputs, self.outputs, self.tables = text, list(inputs), list(outputs), list(tables)
        self._program: Program | None = None

    def program(self, arguments: Sequence[Sequence[Any]], calls: bool = False) -> Program:
        """The program, for such arguments.

        Args:
            arguments: that it is to be played on.
            calls: whether functions that it takes several times may be recorded once, where the arguments'
                graph does so.
        """
        if self._program is not None:
            return self._program
        graph = next((x.graph for row in arguments for x in row if type(x) is Scalar), None)
        shares: Shares = False
        if calls and graph is not None and graph.shared is not None:
            shares = "large" if graph.large else True
        program = trace(
            self.text,
            self.inputs,
            self.outputs,
            NODE_BUDGET,
            tables=self.tables,
            shares=shares,
            equations=True,
        )
        if graph is None:
            self._program = program
        return program


def jacobian(text: FlatFunction, inputs: Inputs, outputs: Outputs, of: Sequence[int]) -> FlatFunction:
    """The function of the derivatives of all outputs with respect to some inputs, by forward mode.

    Args:
        text: to differentiate.
        inputs: (name, number of scalars) of each.
        outputs: (name, shape) of each.
        of: numbers of the inputs.

    Returns:
        a function of the same inputs. Its outputs are, for each output and for each of these inputs, the
        matrix (scalars of the output) x (scalars of the input), row by row.
    """
    recorded = Recorded(text, inputs, outputs)
    begins = [sum(inputs[k][1] for k in of[:i]) for i in range(len(of))]

    def derivatives(*arguments: Sequence[Any]) -> list[list[Any]]:
        program = recorded.program(arguments)
        seeds = {
            (k, j): {first + j: 1.0} for first, k in zip(begins, of, strict=True) for j in range(inputs[k][1])
        }
        rows = tangents(program, replayed(program, arguments), seeds)
        return [
            [row.get(first + j, 0.0) for row in output for j in range(inputs[k][1])]
            for output in rows
            for first, k in zip(begins, of, strict=True)
        ]

    return derivatives


def gradient(text: FlatFunction, inputs: Inputs, outputs: Outputs, of: Sequence[int]) -> FlatFunction:
    """As :func:`jacobian`, by reverse mode: some five times the function's operations an output scalar."""
    recorded = Recorded(text, inputs, outputs)

    def derivatives(*arguments: Sequence[Any]) -> list[list[Any]]:
        program = recorded.program(arguments)
        value = replayed(program, arguments)
        rows = [[adjoints(program, value, {r: 1.0}) for r in row] for row in program.results]
        return [
            [found.get((k, j), 0.0) for found in output for j in range(inputs[k][1])]
            for output in rows
            for k in of
        ]

    return derivatives


def along(
    text: FlatFunction, inputs: Inputs, outputs: Outputs, of: Sequence[int], tables: Inputs = ()
) -> Callable[..., tuple[list[list[Any]], list[list[Any]]]]:
    """The function of the derivatives of all outputs along a direction of some inputs.

    Args:
        text, inputs, outputs, of: as in :func:`jacobian`.
        tables: (name, number of entries) of each table.

    Returns:
        a function of the same inputs, a direction for each of these inputs, of as many scalars, and the
        tables. It gives the outputs of the function and their derivatives.
    """
    recorded = Recorded(text, inputs, outputs, tables)
    count = len(inputs)

    def derivatives(*arguments: Sequence[Any]) -> tuple[list[list[Any]], list[list[Any]]]:
        given = [*arguments[:count], *arguments[count + len(of) :]]
        program = recorded.program(arguments[:count], calls=True)
        directions = arguments[count : count + len(of)]
        seeds = {(k, j): d for k, row in zip(of, directions, strict=True) for j, d in enumerate(row)}
        value, rows = along_with(program, given, seeds)
        values = [[value[r] if type(r) is int else r for r in row] for row in program.results]
        return values, rows

    return derivatives


# -- Linear maps -----------------------------------------------------------------------------------------
#
# The derivative of a function as a linear map, forward and back: what libraries that differentiate ask for.
#
#     pushforward   inputs x, dx -> dy = J(x) dx
#     pullback      inputs x, wy -> wx = J(x)^T wy
#
# Each costs a few times the function, however many inputs and outputs there are (A. Griewank, A. Walther,
# Evaluating Derivatives, SIAM 2008, chapter 3).


def pushforward(text: FlatFunction, inputs: Inputs, outputs: Outputs, of: int) -> FlatFunction:
    """The function of the derivative of all outputs along a direction of the first inputs.

    Args:
        text: to differentiate.
        inputs: (name, number of scalars) of each.
        outputs: (name, shape) of each.
        of: how many inputs, from the first, change.

    Returns:
        a function of the inputs, with a direction for each of the first ones between these and the rest; its
        outputs have the shapes of the function's.
    """
    recorded = Recorded(text, inputs, outputs)

    def derivatives(*given: Sequence[Any]) -> list[list[Any]]:
        arguments = (*given[:of], *given[2 * of :])
        program = recorded.program(given)
        seeds = {(k, j): {0: d} for k, row in enumerate(given[of : 2 * of]) for j, d in enumerate(row)}
        rows = tangents(program, replayed(program, arguments), seeds)
        return [[found.get(0, 0.0) for found in row] for row in rows]

    return derivatives


def pullback(text: FlatFunction, inputs: Inputs, outputs: Outputs, of: int) -> FlatFunction:
    """The function of the gradient of a weighted sum of all outputs with respect to the first inputs.

    Args:
        text, inputs, outputs, of: as in :func:`pushforward`.

    Returns:
        a function of the inputs, with the weights of each output between the first ones and the rest; its
        outputs have the sizes of the first inputs.
    """
    recorded = Recorded(text, inputs, outputs)

    def derivatives(*given: Sequence[Any]) -> list[list[Any]]:
        weights, arguments = given[of : of + len(outputs)], (*given[:of], *given[of + len(outputs) :])
        program = recorded.program(given)
        seeds: dict[int | float, Any] = {}
        for row, weight in zip(program.results, weights, strict=True):
            for r, w in zip(row, weight, strict=True):
                if type(r) is int:
                    seeds[r] = seeds[r] + w if r in seeds else w
        found = adjoints(program, replayed(program, arguments), seeds)
        return [[found.get((k, j), 0.0) for j in range(inputs[k][1])] for k in range(of)]

    return derivatives
