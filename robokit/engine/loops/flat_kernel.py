"""The machine code of a text on flat arrays that has loops: a kernel without sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.arguments import ArrayOf
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.record import LoopGraph
from robokit.engine.loops.recorded_once import RecordedOnce, recorded_with_loops, sizes_of
from robokit.engine.passes.derivative import Text
from robokit.engine.signature import Signature
from robokit.errors import FunctionError


class FlatKernel(LoopKernel):
    """A text with loops for one robot.

    Args:
        symbol: in the names of its code.
        text: one sequence of scalars for each input -> one flat sequence for each output.
        signature: of its kernel.
    """

    def __init__(self, symbol: str, text: Text, signature: Signature) -> None:
        rows = [*signature.inputs, *sizes_of(signature.outputs)]
        count = len(signature.inputs)
        arrays = [ArrayOf(f"x{k}", (n,), "in" if k < count else "out") for k, (_, n) in enumerate(rows)]
        super().__init__(symbol, self._none, [], arrays, signature.reproducible, checked=True)
        self.of, self.signature = text, signature

    def _none(self, *_: Any) -> None:
        raise NotImplementedError  # recorded below

    def record(self) -> LoopGraph:
        """The recording, one for all its code."""
        own = self.of.loops if isinstance(self.of, RecordedOnce) else None
        return own or recorded_with_loops(self.of, self.signature.inputs, self.signature.outputs)

    def run(self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None) -> None:
        """Run it on one state or a batch; the outputs are written in place.

        Raises:
            FunctionError: an index is out of range, or there is no such whole number.
        """
        dtype = self.signature.dtype
        if rows is not None:
            arrays = [np.ascontiguousarray(np.broadcast_to(a, (rows, a.shape[-1]))) for a in arrays]
        given = [*arrays, *outs]
        try:
            call = self.single({}, given, dtype) if rows is None else self.batch({}, given, rows, dtype)
            call()
        except (ArithmeticError, LookupError, ValueError) as error:
            message = str(error).replace(f"{self.name}: ", "", 1)
            name, kind = self.signature.name, type(error).__name__
            raise FunctionError(f"{name}: {kind}: {message}") from None
