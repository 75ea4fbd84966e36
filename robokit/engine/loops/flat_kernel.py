"""The machine code of a function on flat arrays that has loops: a kernel without sizes."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.record import LoopGraph
from robokit.engine.loops.recorded_once import RecordedOnce, recorded_with_loops, sizes_of
from robokit.engine.signature import ArrayOf, FlatFunction, Signature
from robokit.errors import FunctionError


class FlatKernel(LoopKernel):
    """A function with loops for one robot.

    Args:
        symbol: in the names of its code.
        text: one sequence of scalars for each input -> one flat sequence for each output.
        signature: of its kernel.
        names: of the inputs and outputs in code for others; none for machine code.
    """

    def __init__(
        self, symbol: str, text: FlatFunction, signature: Signature, names: Sequence[str] | None = None
    ) -> None:
        rows = [*signature.inputs, *sizes_of(signature.outputs)]
        count = len(signature.inputs)
        named = names or [f"x{k}" for k in range(len(rows))]
        arrays = [
            ArrayOf(name, (n,), "in" if k < count else "out")
            for k, (name, (_, n)) in enumerate(zip(named, rows, strict=True))
        ]
        super().__init__(symbol, self._none, [], arrays, signature.reproducible, checked=True)
        self.of, self.signature = text, signature
        self._sizes = [n for _, n in rows]
        self._lock = threading.Lock()
        self._one: tuple[list[np.ndarray], Callable[[], None]] | None = None

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
            NoMachineCode: there is none.
        """
        if rows is not None:
            arrays = [np.ascontiguousarray(np.broadcast_to(a, (rows, a.shape[-1]))) for a in arrays]
            batch = self.batch({}, [*arrays, *outs], rows, self.signature.dtype)
            if self.refused is not None:
                raise NoMachineCode(self.refused)
            self._done(batch)
            return
        with self._lock:
            own, call = self._one_state()
            for mine, given in zip(own, arrays, strict=False):
                mine[:] = given
            self._done(call)
            for out, mine in zip(outs, own[len(arrays) :], strict=True):
                out[...] = mine.reshape(out.shape)

    def fast(self, *arguments: Any) -> Any:
        """As ``Kernel.fast``, without arrays to write to."""
        shape = self.signature
        with self._lock:
            own, call = self._one_state()
            given = own[: len(shape.inputs)]
            if len(arguments) != len(given):
                return None
            for mine, x in zip(given, arguments, strict=True):
                if x.__class__ is not np.ndarray or x.dtype != mine.dtype or x.shape != mine.shape:
                    return None
                mine[:] = x
                if not math.isfinite(mine.sum()):
                    return None
            if shape.quaternions or shape.bounds:
                self.check_values(given)
            self._done(call)
            outs = own[len(given) :]
            return shape.answer([x.reshape(n).copy() for x, n in zip(outs, shape.output_shapes, strict=True)])

    def _one_state(self) -> tuple[list[np.ndarray], Callable[[], None]]:
        """Arrays of one state, and what runs on them."""
        if self._one is None:
            own = [np.empty(n, self.signature.dtype) for n in self._sizes]
            self._one = own, self.single({}, own, self.signature.dtype)
        return self._one

    def _done(self, call: Callable[[], None]) -> None:
        try:
            call()
        except (ArithmeticError, LookupError, ValueError) as error:
            message = str(error).replace(f"{self.name}: ", "", 1)
            name, kind = self.signature.name, type(error).__name__
            raise FunctionError(f"{name}: {kind}: {message}") from None

    def check_values(self, arrays: Sequence[np.ndarray]) -> None:
        """As that of the signature, which explains; here is a quick look.

        Raises:
            InvalidValue: as there.
        """
        shape = self.signature
        good = not shape.quaternions and all(np.isfinite(a).all() for a in arrays)
        if not good or any((np.abs(arrays[i][..., k]) > most).any() for i, k, most in shape.bounds):
            shape.check_values(arrays)
