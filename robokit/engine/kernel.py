"""Kernel: one text, one robot, every way to run it.

    build       nothing happens yet
    first call  found in the cache, or traced, written as IR, compiled and kept
    then        single states through call.py, batches through batch.py

The single and the batch code are separate modules, each made when it is first needed. Without a compiler,
or when the text is too long to record, the same text runs on plain floats and NumPy arrays.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.engine.emit import ir as words
from robokit.engine.emit.ir import DOUBLE, SINGLE
from robokit.engine.maker import MAKING, Code, Maker, Text
from robokit.engine.run.batch_calls import BLOCK_SECONDS, BatchRunner
from robokit.engine.run.single_calls import aligned, declined, fast_call
from robokit.engine.target import llvm as compile
from robokit.engine.trace.ops import flops
from robokit.engine.trace.program import Program

PLAIN_SECONDS = 1e-5
"""A guess of the time per state of the text on NumPy arrays."""


class NotFinite(ArithmeticError):
    """A kernel built with finite=True computed NaN or infinity.

    Attributes:
        result: what it computed.
    """

    def __init__(self, name: str, result: Any) -> None:
        super().__init__(f"{name} is not finite")
        self.result = result


class Kernel:
    """Machine code of a text, made on demand.

    Attributes:
        name: of the kernel.
        inputs: (name, number of scalars) of each input.
        outputs: (name, shape) of each output.
        dtype: of all arrays, "float64" or "float32".
        fast: function of single states: one float64 array (n,) per input, then optionally one per output
            to write to; returns the output or a tuple of them, or None for arguments it does not take.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        text: Text,
        key: bytes | None,
        quaternions: Sequence[tuple[int, int]],
        feedback: Mapping[str, str],
        finite: bool,
        dtype: str,
    ) -> None:
        self.name, self.text, self.finite, self.dtype = name, text, finite, dtype
        self.inputs = [(n, int(size)) for n, size in inputs]
        self.outputs = [(n, tuple(map(int, shape))) for n, shape in outputs]
        self.quaternions = list(quaternions)
        self.input_names = [n for n, _ in self.inputs]
        self._arity = len(self.inputs)
        output_names = [n for n, _ in self.outputs]
        self.feedback = [(output_names.index(o), self.input_names.index(i)) for o, i in feedback.items()]
        for o, i in self.feedback:
            if math.prod(self.outputs[o][1]) != self.inputs[i][1]:
                raise ValueError(f"output {self.outputs[o]} does not fit into input {self.inputs[i]}")
        self._real = {real.dtype: real for real in (DOUBLE, SINGLE)}[dtype]
        self.fast: Callable[..., Any] = self._first_call if self._real is DOUBLE else declined
        self._lock = MAKING
        self._few: Callable[..., Any] = declined  # as fast, for batches too small for threads
        self._runner: BatchRunner | None = None
        self._maker = Maker(
            name, self.inputs, self.outputs, text, key, self.quaternions, self.feedback, finite, self._real
        )

    @classmethod
    def build(
        cls,
        name: str,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        text: Text,
        key: bytes | None = None,
        quaternions: Sequence[tuple[int, int]] = (),
        feedback: Mapping[str, str] | None = None,
        finite: bool = False,
        dtype: str = "float64",
    ) -> Kernel:
        """Describe a kernel.

        Args:
            name: for messages, symbols and the cache.
            inputs: (name, number of scalars) of each input.
            outputs: (name, shape) of each output.
            text: called with one list of scalars per input; returns one flat, row-major sequence of
                scalars per output.
            key: identifies what the text depends on besides robokit's own source (the robot): with it, a
                warm start needs no tracing. None: the cache is looked up by the code the text gives.
            quaternions: (input, offset) of each quaternion that must be of unit length.
            feedback: output name -> input name, for :meth:`iterate`.
            finite: raise NotFinite where an output is NaN or infinite (checked by machine code, at a few
                nanoseconds).
            dtype: "float64", or "float32": half the memory and twice the lanes, for batches; single states
                are batches of one.
        """
        return cls(name, inputs, outputs, text, key, quaternions, feedback or {}, finite, dtype)

    # -- running ---------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Run on one state or a batch.

        Args:
            arguments: one per input, (n,) or (B, n); single states go along with batches.
            out: array, or sequence of arrays, to write to; inputs that share memory with one are copied.

        Returns:
            the output, or a tuple of them, each of its shape or (B, *shape); a float where shape is ().

        Raises:
            ShapeError: a wrong shape or dtype, NaN, infinity, or a quaternion that is not unit.
        """
        if len(arguments) != self._arity:  # fast would take one too many for an output
            self._arrays(arguments)
        if out is None:
            result = self.fast(*arguments)
        else:
            given = (out,) if out.__class__ is np.ndarray else self._given(out)
            if len(given) != len(self.outputs):
                return self._checked(arguments, out, None)
            arguments = (*arguments, *given)
            result = self.fast(*arguments)
        if result is None:
            result = self._few(*arguments)
        return self._checked(arguments[: self._arity], out, None) if result is None else result

    single = __call__

    def batch(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        """Run on a batch, as :meth:`__call__` does.

        Args:
            arguments: as in :meth:`__call__`.
            out: as in :meth:`__call__`.
            threads: at most so many; None for as many as pay.
        """
        return self._checked(arguments, out, threads)

    def python(self, *arguments: Any, out: Any = None) -> Any:
        """Run the text on plain floats, or for a batch on NumPy arrays: slow, and the same numbers.

        Takes, returns and raises what :meth:`__call__` does.
        """
        return self._checked(arguments, out, None, plain=True)

    def bind(self, *last: np.ndarray) -> Bound:
        """The kernel with its last inputs given."""
        return Bound(self, last)

    def iterate(self, *arguments: Any, steps: int) -> tuple[int, Any]:
        """Run again and again, each time with the fed-back outputs as inputs.

        Args:
            arguments: one state, (n,) each; they are not changed.
            steps: how many runs.

        Returns:
            the runs done, and the outputs of the last. Fewer than `steps`: its fed-back outputs are not
            finite, or (0 runs) the arguments are not.
        """
        arrays = [np.array(a) for a in self._arrays(arguments)]
        if check.batch_size(self.input_names, arrays) is not None:
            raise check.ShapeError("iterate takes one state, not a batch")
        check.check_values(self.input_names, arrays, self.quaternions)
        outs = self._outs(None, None)
        code = self._maker.code("single")
        if code is None:
            return self._iterate_text(arrays, outs, steps), self._answer(outs)
        if steps <= 0:
            return 0, self._answer(outs)
        run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            code.address("iterate")
        )
        pointers = [a.__array_interface__["data"][0] for a in (*arrays, *outs)]
        addresses = (ctypes.c_void_p * len(pointers))(*pointers)
        memory = aligned(code.workspace)
        place, done = memory.__array_interface__["data"][0], 0
        block = max(1, int(BLOCK_SECONDS / self._seconds()))
        while done < steps:  # in blocks, so that Ctrl-C is heard
            wanted = min(block, steps - done)
            made = run(ctypes.addressof(addresses), place, wanted)
            done += made
            if made < wanted:
                break
        return done, self._answer(outs)

    def batch_code(self) -> tuple[Code | None, float]:
        """The batch module's code, or None if there can be none; and roughly the time per state [s]."""
        code = self._maker.code("batch")
        return code, self._seconds() if code is not None else PLAIN_SECONDS

    def plain(self, arrays: Sequence[np.ndarray], rows: int) -> list[np.ndarray]:
        """The outputs for a batch by the text on NumPy arrays, nothing checked."""
        outs = self._outs(None, rows)
        self._run_text(arrays, outs, rows)
        return outs

    # -- what it costs ---------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        """Operations per state after folding: mul, add, div, sqrt, sincos (pairs), neg, select, compare."""
        return dict(self._maker.counts())

    @property
    def flops(self) -> int:
        """Additions, multiplications, divisions and square roots per state."""
        return flops(self._maker.counts())

    @property
    def sparsity(self) -> list[np.ndarray]:
        """For each output, which of its scalars can be other than 0 (boolean, the output's shape)."""
        shapes = [shape for _, shape in self.outputs]
        rows = self._maker.program().sparsity()
        return [np.array(row, bool).reshape(shape) for row, shape in zip(rows, shapes, strict=True)]

    def program(self) -> Program:
        """The recorded graph."""
        return self._maker.program()

    # -- the slow way in -------------------------------------------------------------------------

    def _first_call(self, *arguments: Any) -> Any:
        """Stands for `fast` until there is machine code."""
        if not all(map(check.is_single, arguments[: len(self.inputs)])):
            return None  # a batch: the single code may never be needed
        with self._lock:
            if self.fast == self._first_call:
                code = self._maker.code("single")
                self.fast = declined if code is None else self._builtin(code)
        return self.fast(*arguments)

    def held(self, holder: type, owner: Any) -> Callable[..., Any]:
        """A function of single states, as :attr:`fast`, whose output comes in a new object.

        Args:
            holder: class with two slots.
            owner: what the first of them is given; the second is given the output.
        """
        code = self._maker.code("single") if self._real is DOUBLE else None
        return declined if code is None else self._builtin(code, (holder, owner))

    def _builtin(self, code: Code, held: tuple[type, Any] | None = None) -> Callable[..., Any]:
        return fast_call(
            code.address("single"),
            code.memory.__array_interface__["data"][0],
            [size for _, size in self.inputs],
            [shape for _, shape in self.outputs],
            code,
            held=held,
        )

    def _arrays(self, given: Sequence[Any]) -> list[np.ndarray]:
        if len(given) != len(self.inputs):
            names = ", ".join(self.input_names)
            raise TypeError(f"{self.name} takes {len(self.inputs)} arguments ({names}), got {len(given)}")
        return [
            check.argument(name, a, size, self.dtype)
            for a, (name, size) in zip(given, self.inputs, strict=True)
        ]

    def _outs(self, out: Any, rows: int | None) -> list[np.ndarray]:
        shapes = [shape if rows is None else (rows, *shape) for _, shape in self.outputs]
        if out is None:
            return [aligned(math.prod(shape), self.dtype).reshape(shape) for shape in shapes]
        given = self._given(out)
        if len(given) != len(shapes):
            raise check.ShapeError(f"out: {self.name} has {len(shapes)} outputs, got {len(given)} arrays")
        names = ["out"] if len(given) == 1 else [f"out[{k}]" for k in range(len(given))]
        return [check.output(*each, self.dtype) for each in zip(names, given, shapes, strict=True)]

    def _given(self, out: Any) -> Sequence[Any]:
        """One object per output; where there is one output, a list is what was given for it."""
        return out if isinstance(out, (tuple, list)) and len(self.outputs) != 1 else (out,)

    def _checked(self, given: Sequence[Any], out: Any, threads: int | None, plain: bool = False) -> Any:
        """Convert and check the arguments, then run; explains what machine code only refuses."""
        arrays = self._arrays(given)
        rows = check.batch_size(self.input_names, arrays)
        outs = self._outs(out, rows)
        if out is not None:  # what is written early must not be read later
            arrays = [a.copy() if any(np.may_share_memory(a, o) for o in outs) else a for a in arrays]
        status = 0 if plain else self._run_code(arrays, outs, rows, threads)
        plain = plain or self._maker.refused is not None
        if plain or status & ~words.NOT_FINITE_OUTPUT:
            check.check_values(self.input_names, arrays, self.quaternions)
        if plain:
            self._run_text(arrays, outs, rows)
            status = (
                0 if not self.finite or all(np.isfinite(o).all() for o in outs) else words.NOT_FINITE_OUTPUT
            )
        if status:
            raise NotFinite(self.name, self._answer(outs, out))
        return self._answer(outs, out)

    def _run_code(
        self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None, threads: int | None
    ) -> int:
        """Run the machine code, if there can be any (``refused`` says), and return its status."""
        if rows is None and self._real is DOUBLE:
            filled = self.fast(*map(check.plain, arrays), *map(check.plain, outs))
            return 0 if filled is not None or self._maker.refused is not None else words.NOT_FINITE
        runner = None if rows == 0 else self._batch_runner()
        if runner is None:
            return 0
        return runner(arrays, outs if rows else [o[None] for o in outs], rows or 1, threads)

    def _answer(self, outs: list[np.ndarray], out: Any = None) -> Any:
        results = tuple(o if o.ndim or out is not None else float(o) for o in outs)
        return results[0] if len(results) == 1 else results

    # -- the text on plain numbers ---------------------------------------------------------------

    def _run_text(self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None) -> None:
        if rows is None:
            try:
                results = self.text(*(a.tolist() for a in arrays))
            except (ValueError, ArithmeticError):  # Python raises where the processor answers NaN
                self._run_text(arrays, [o[None] for o in outs], 1)
                return
        else:
            columns = [np.ascontiguousarray(np.broadcast_to(a, (rows, a.shape[-1])).T) for a in arrays]
            with np.errstate(all="ignore"):
                results = self.text(*map(list, columns))
        for o, row in zip(outs, results, strict=True):
            flat = o.reshape(-1) if rows is None else o.reshape(rows, math.prod(o.shape[1:]))
            for k, x in enumerate(row):
                flat[..., k] = x

    def _iterate_text(self, arrays: list[np.ndarray], outs: list[np.ndarray], steps: int) -> int:
        for done in range(steps):
            if not all(np.isfinite(a).all() for a in arrays):
                return done
            self._run_text(arrays, outs, None)
            for o, i in self.feedback:
                arrays[i][:] = outs[o].reshape(-1)
        return max(steps, 0)

    def _seconds(self) -> float:
        """A guess of the time per state, enough to size blocks: 10 Gflop/s, 8 GB/s."""
        size = sum(n for _, n in self.inputs) + sum(math.prod(s) for _, s in self.outputs)
        return 1e-10 * self.flops + 1e-9 * size + 1e-8

    def _batch_runner(self) -> BatchRunner | None:
        if self._runner is None:
            with self._lock:
                code = self._maker.code("batch")
                if code is None:
                    return None
                tile = words.GROUP * compile.vector_width() * DOUBLE.bytes // self._real.bytes
                self._runner = BatchRunner(code.address("batch"), code.workspace, tile, self._seconds(), code)
                if self._real is DOUBLE:
                    self._few = fast_call(
                        code.address("batch"),
                        code.memory.__array_interface__["data"][0],
                        [size for _, size in self.inputs],
                        [shape for _, shape in self.outputs],
                        code,
                        rows=self._runner.few,
                    )
        return self._runner


class Bound:
    """A kernel whose last inputs are given: it runs as a kernel of the others does."""

    __slots__ = ("_kernel", "_last")

    def __init__(self, kernel: Kernel, last: Sequence[np.ndarray]) -> None:
        self._kernel, self._last = kernel, tuple(last)

    def fast(self, *arguments: Any) -> Any:
        """As :attr:`Kernel.fast`, without arrays to write to."""
        return self._kernel.fast(*arguments, *self._last)

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """As :meth:`Kernel.__call__`."""
        return self._kernel(*arguments, *self._last, out=out)

    def batch(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        """As :meth:`Kernel.batch`."""
        return self._kernel.batch(*arguments, *self._last, out=out, threads=threads)

    def python(self, *arguments: Any, out: Any = None) -> Any:
        """As :meth:`Kernel.python`."""
        return self._kernel.python(*arguments, *self._last, out=out)

    def __getattr__(self, name: str) -> Any:
        """Everything else (counts, flops, sparsity, ...) is the kernel's."""
        return getattr(self._kernel, name)
