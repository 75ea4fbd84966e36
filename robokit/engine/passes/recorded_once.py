"""A text that runs once: all kernels are made of what was recorded of it then, and so is their key.

Texts of users read what they like: other functions, globals, arrays, files, the time. No look at a text tells
what. What it recorded does, to the bit, and takes a few milliseconds. Kernels of single states, of batches,
of derivatives and of measures play the recording back, so that they agree whatever has changed meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.derived import cached_attribute
from robokit.engine.passes.derivative import BUDGET, Inputs, Outputs, Text
from robokit.engine.passes.played_back import played_again
from robokit.engine.trace.program import Program
from robokit.engine.trace.record import trace
from robokit.engine.trace.scalar import Scalar
from robokit.spatial.scalars import recording


class RecordedOnce:
    """A text that is recorded at the first recording; on plain numbers it runs as it stands."""

    def __init__(self, text: Text, inputs: Inputs, outputs: Outputs) -> None:
        self.text, self.inputs, self.outputs = text, list(inputs), list(outputs)

    def __call__(self, *given: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """The outputs."""
        if not recording():
            return self.text(*given)
        if any(type(x) is Scalar for row in given for x in row):
            return played_again(self.program, given)
        with np.errstate(all="ignore"):  # known numbers: NumPy's answer NaN where Python's raise
            return played_again(self.program, [list(map(np.float64, row)) for row in given])

    @cached_attribute
    def program(self) -> Program:
        """What was recorded.

        Raises:
            TraceTooLarge: the text is longer than the budget.
        """
        return trace(
            self.text, self.inputs, self.outputs, BUDGET, signed=True, shares="asked", equations=True
        )

    @cached_attribute
    def digest(self) -> bytes:
        """Hash of what was recorded.

        Raises:
            TraceTooLarge: the text is longer than the budget.
        """
        made = self.program
        blocks = [(b.parameters, b.results, b.lanes) for b in made.blocks]
        content = (made.inputs, made.outputs, made.nodes, made.order, made.results, made.marks, blocks)
        return hashlib.sha256(repr(content).encode()).digest()
