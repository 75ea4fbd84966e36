"""The derivative of a text as a linear map, forward and back: what libraries that differentiate ask for.

    pushforward   inputs x, dx -> dy = J(x) dx
    pullback      inputs x, wy -> wx = J(x)^T wy

Each costs a few times the text, however many inputs and outputs there are.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.engine.passes.derivative import Inputs, Outputs, Recorded, Text
from robokit.engine.passes.forward_mode import tangents
from robokit.engine.passes.replay import replayed
from robokit.engine.passes.reverse_mode import adjoints


def pushforward(text: Text, inputs: Inputs, outputs: Outputs, of: int) -> Text:
    """The text of the derivative of all outputs along a direction of the first inputs.

    Args:
        text: to differentiate.
        inputs: (name, number of scalars) of each.
        outputs: (name, shape) of each.
        of: how many inputs, from the first, change.

    Returns:
        a text of the inputs, with a direction for each of the first ones between these and the rest; its
        outputs have the shapes of the text's.
    """
    recorded = Recorded(text, inputs, outputs)

    def derivatives(*given: Sequence[Any]) -> list[list[Any]]:
        arguments = (*given[:of], *given[2 * of :])
        program = recorded.program(given)
        seeds = {(k, j): {0: d} for k, row in enumerate(given[of : 2 * of]) for j, d in enumerate(row)}
        rows = tangents(program, replayed(program, arguments), seeds)
        return [[found.get(0, 0.0) for found in row] for row in rows]

    return derivatives


def pullback(text: Text, inputs: Inputs, outputs: Outputs, of: int) -> Text:
    """The text of the gradient of a weighted sum of all outputs with respect to the first inputs.

    Args:
        text, inputs, outputs, of: as in :func:`pushforward`.

    Returns:
        a text of the inputs, with the weights of each output between the first ones and the rest; its
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
