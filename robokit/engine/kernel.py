"""Kernel: one function in every way to run it.

    build       nothing happens yet
    first call  found in the cache, or traced, written as IR, compiled and kept
    then        single states through single_calls.py, batches through batch_calls.py

The code of single states and that of batches are separate modules, each made when it is first needed.
Without a compiler, or when the function is too long to record, the same function runs on plain floats and
NumPy arrays.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from robokit import arguments as check
from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.backend.targets import ManyStates, OneState, Target
from robokit.engine.batch_calls import SECONDS, BatchRunner, RolloutRunner, run_plain
from robokit.engine.emit.ir import FLOAT32, FLOAT64, GROUP, NOT_FINITE, NOT_FINITE_OUTPUT
from robokit.engine.loops.environment import NoMachineCode, matched, note_claims
from robokit.engine.loops.recorded_once import FlatKernel
from robokit.engine.maker import MAKING, Code, Identity, Maker
from robokit.engine.memory import address, aligned
from robokit.engine.reproducible import recorded, wanted
from robokit.engine.signature import ArrayOf, FlatFunction, Signature
from robokit.engine.single_calls import declined, fast_call
from robokit.engine.trace.graph import Program, TraceTooLarge
from robokit.engine.trace.ops import flops
from robokit.errors import WrongType

if TYPE_CHECKING:
    from robokit.engine.cuda.driver import Card, Function, OnCard, Team
    from robokit.engine.cuda.loops import LoopedOnCard

ONE_STATE = OneState()
MANY_STATES = {real.dtype: ManyStates(real) for real in (FLOAT64, FLOAT32)}
LINKED_STATES = {real.dtype: ManyStates(real, linked=True) for real in (FLOAT64, FLOAT32)}


class NotFinite(ArithmeticError):
    """A kernel built with finite=True computed NaN or infinity.

    Attributes:
        result: what it computed.
    """

    def __init__(self, name: str, result: Any) -> None:
        super().__init__(f"{name} is not finite")
        self.result = result


class Kernel:
    """Machine code of a function, made on demand.

    Attributes:
        signature: its arguments and results.
        function: the Python function that it computes.
        fast: function of single states: one float64 array (n,) per input, then optionally one per output
            to write to; returns the output or a tuple of them, or None for arguments it does not take.
        few: the same for batches that are too small for threads, (B, n).
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        function: FlatFunction,
        key: Identity = None,
        quaternions: Sequence[tuple[int, int]] = (),
        feedback: Mapping[str, str] | None = None,
        finite: bool = False,
        dtype: str = "float64",
        bounds: Sequence[tuple[int, int, float]] = (),
        reproducible: bool | None = None,
        superword_seeds: Sequence[tuple[int, int, int]] = (),
        looped: Callable[[], bool] | None = None,
    ) -> None:
        """A kernel; nothing is recorded or compiled before it is called.

        Args:
            name: for messages, symbols and the cache.
            inputs: (name, number of scalars) of each input.
            outputs: (name, shape) of each output.
            function: called with one list of scalars per input; returns one flat, row-major sequence of
                scalars per output.
            key: identifies what the function depends on besides robokit's own source: with it, a warm start
                needs no tracing. A function tells it when code is asked for. None: the cache is looked up by
                the code the function gives.
            quaternions: (input, offset) of each quaternion that must be of unit length.
            feedback: output name -> input name, for :meth:`rollout_runner`.
            finite: raise NotFinite where an output is NaN or infinite (checked by machine code, at a few
                nanoseconds).
            dtype: "float64", or "float32": half the memory and twice the lanes, for batches; single states
                are batches of one.
            bounds: (input, offset, largest magnitude) of each angle [rad].
            reproducible: whether the outputs are the same bits on every target and in every way to run it;
                None asks the environment (engine/reproducible.py).
            superword_seeds: (input, offset, other offset) of scalars that a left and a right limb are
                computed from: code of one state does what is alike in both at once (passes/superword.py).
            looped: tells whether the function has loops whose length is known only when it runs; None for no.

        Raises:
            ValueError: an output does not fit into the input it is fed back to.
        """
        ins = [(n, int(size)) for n, size in inputs]
        outs = [(n, tuple(map(int, shape))) for n, shape in outputs]
        input_names, output_names = [n for n, _ in ins], [n for n, _ in outs]
        back = [(output_names.index(o), input_names.index(i)) for o, i in (feedback or {}).items()]
        options = list(quaternions), back, finite, list(bounds), wanted(reproducible), list(superword_seeds)
        self.signature = Signature(name, ins, outs, dtype, *options)
        self._arity, self._is_double = len(ins), dtype == FLOAT64.dtype
        self.fast: Callable[..., Any] = self._first_call if self._is_double else declined
        self.few: Callable[..., Any] = declined
        self._lock = MAKING
        self._runner: BatchRunner | None = None
        self._on_cards: dict[Card, OnCard | LoopedOnCard] = {}
        self._maker = Maker(self.signature, function, key)
        self._looped, self._loops = looped, cast(FlatKernel | None, None)
        self.function = recorded(self._maker.program, function) if self.reproducible else function

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.signature.name

    # -- running ---------------------------------------------------------------------------------

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Run on one state or a batch.

        Args:
            arguments: one per input, (n,) or (B, n); single states go along with
                batches.
            out: array, or sequence of arrays, to write to; inputs that share memory with one are copied.

        Returns:
            the output, or a tuple of them, each of its shape, with B in front for a batch; a float
            where the shape is ().

        Raises:
            ShapeError: a wrong shape or dtype.
            InvalidValue: NaN, infinity, a quaternion that is not of unit length, or an angle too large.
        """
        if len(arguments) != self._arity:  # fast would take one too many for an output
            self.signature.arrays(arguments)
        if out is None:
            result = self.fast(*arguments)
        else:
            outs = (out,) if out.__class__ is np.ndarray else self.signature.outs_of(out)
            if len(outs) != len(self.signature.outputs):
                return self._checked(arguments, out, None)
            arguments = (*arguments, *outs)
            result = self.fast(*arguments)
        if result is None:
            result = self.few(*arguments)
        return self._checked(arguments[: self._arity], out, None) if result is None else result

    def batch(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        """Run on a batch, like :meth:`__call__`.

        Args:
            arguments: as in :meth:`__call__`.
            out: as in :meth:`__call__`.
            threads: largest number of threads; None for the number that is worthwhile.
        """
        return self._checked(arguments, out, threads)

    def python(self, *arguments: Any, out: Any = None) -> Any:
        """Run the function as plain Python on floats, or for a batch on NumPy arrays: slow, with the same
        results.

        Takes, returns and raises what :meth:`__call__` does.
        """
        return self._checked(arguments, out, None, plain=True)

    def rollout_runner(self, baseline: bool = False) -> RolloutRunner:
        """Runs many states through many steps in place.

        Args:
            baseline: whether baseline code will do; whoever runs it goes on with what :meth:`newer` gives.

        Raises:
            ValueError: an output is not fed back.
        """
        signature = self.signature
        if len(signature.feedback) != len(signature.outputs):
            raise ValueError(f"{self.name}: every output must be fed back")
        count = len(signature.inputs)
        code = self._maker.code(self._many, baseline=baseline)
        if code is None:
            return RolloutRunner(signature.feedback, count, self.unchecked, SECONDS)
        lanes, driver, left = code.target.lanes, code.address("passes"), code.baseline > 0.0
        more = driver, code.workspace, lanes, code, left
        return RolloutRunner(signature.feedback, count, self.unchecked, self._seconds(), *more)

    def newer(self, runner: RolloutRunner, seconds: float) -> RolloutRunner:
        """The runner to continue with after one that has run for so long: one with better code, once it
        exists.
        """
        self._ran(seconds)
        code = self._maker.code(self._many, baseline=True)
        return runner if code is runner.keep else self.rollout_runner(baseline=True)

    # -- called by other machine code (loops/) -----------------------------------------------------

    sizes: Sequence[str] = ()

    @property
    def arrays(self) -> list[ArrayOf]:
        """The arrays of a call: inputs, then outputs."""
        shape = self.signature
        inputs = [ArrayOf(name, (size,)) for name, size in shape.inputs]
        return [*inputs, *(ArrayOf(name, each, "out") for name, each in shape.outputs)]

    @property
    def reproducible(self) -> bool:
        """Whether the outputs are the same bits on every target."""
        return self.signature.reproducible

    def linked(self, lanes: int, dtype: str, sizes: Mapping[str, int]) -> tuple[int, int, Any] | None:
        """The function for calls from other machine code, for one state or in lanes; it checks nothing.

        Returns:
            addresses of it and of a workspace, which serves one thread, and what must live as long as these;
            None where there is no machine code.

        Raises:
            WrongType: the caller has another dtype.
        """
        if dtype != self.signature.dtype:
            raise WrongType(f"{self.name}, which is called in {dtype}", self, f"a kernel of {dtype}")
        target = LINKED_STATES[dtype] if lanes > 1 else ONE_STATE
        code = self._maker.code(target) if target.real.dtype == dtype else None
        if code is None:
            return None
        workspace = aligned(code.workspace)
        return code.address("linked"), address(workspace), (code, workspace)

    def opened(self, *arguments: Any) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """A function of arrays that replays the program, and its arguments, for a caller that records them.

        Args:
            arguments: of a call of the kernel.

        Raises:
            TypeError, ShapeError: these do not fit.
        """
        _, arrays, claims = matched(self, arguments)
        note_claims(claims)
        return self._played, tuple(arrays)

    @functools.cached_property
    def _played(self) -> Callable[..., None]:
        from robokit.engine.passes.replay import replayed

        program, sizes = self.program(), [math.prod(a.shape) for a in self.arrays]

        def played(*arrays: Any) -> None:
            rows = [x.reshape(n) for x, n in zip(arrays, sizes, strict=True)]
            arguments, places = rows[: program.first_output], rows[program.first_output :]
            found = replayed(program, [[x[k] for k in range(len(x))] for x in arguments])
            for row, x in zip(found, places, strict=True):
                for k, value in enumerate(row):
                    x[k] = value

        return played

    def on_memory(self, *arguments: Any) -> None:
        """Run the function on arrays of one state: inputs, then outputs, which are written.

        Raises:
            TypeError, ShapeError: too many or too few arrays, or one of another size.
        """
        _, passed, claims = matched(self, [np.asarray(x) for x in arguments])
        for claim in claims:
            claim.check(int)
        arrays, count = [x.reshape(-1) for x in passed], len(self.signature.inputs)
        self._run_plain(arrays[:count], arrays[count:], None)

    def on_card(self, card: Card) -> OnCard | LoopedOnCard:
        """The kernel on a card, the same object each time; its code is made when it is first needed."""
        from robokit.engine.cuda.driver import OnCard  # `import robokit` stays light
        from robokit.engine.cuda.loops import LoopedOnCard

        with self._lock:
            if card not in self._on_cards and self._has_loops():
                assert self._loops is not None
                self._on_cards[card] = LoopedOnCard(card, self._loops)
            if card not in self._on_cards:
                self._on_cards[card] = OnCard(
                    card, self.name, len(self.arrays), lambda team: self._loaded_to(card, team)
                )
            return self._on_cards[card]

    def _loaded_to(self, card: Card, team: bool) -> tuple[Function, Team | None] | None:
        from robokit.engine.cuda.straight_code import CardTarget

        target = CardTarget(FLOAT64 if self._is_double else FLOAT32, card, team)
        with self._lock:
            loaded = target.load(self._maker.compiled(target)[1])
        if loaded is None:
            return None
        function, shape = loaded[0].function(self._maker.symbol), loaded[1]
        if shape is not None:
            function.give_shared(shape.shared)
        return function, shape

    def compiled(self, target: Target) -> bytes:
        """Machine code for any target, also for one that cannot run here.

        Raises:
            TraceTooLarge: the function or its code is too long.
            CompilerMissing: there is no compiler for this target.
        """
        return self._maker.compiled(target)[1]

    # -- what it costs ---------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int]:
        """Operations per state after folding: mul, add, div, sqrt, sincos (pairs), neg, select, compare, ...

        Operations inside guards, which run only if they are needed, are included; see :attr:`guarded`.
        """
        return self._maker.counts()

    @property
    def guarded(self) -> dict[str, int]:
        """The operations of :attr:`counts` inside guards (``control_flow.cond``)."""
        return self._maker.guarded()

    @property
    def refused(self) -> str | None:
        """Why the function runs as plain Python instead of machine code; None if it does not."""
        return self._maker.refused

    @property
    def flops(self) -> int:
        """Additions, multiplications, divisions and square roots per state."""
        return flops(self._maker.counts())

    @property
    def sparsity(self) -> list[np.ndarray]:
        """For each output, which of its scalars can be other than 0 (boolean, the output's shape)."""
        rows = self._maker.program().sparsity()
        shapes = self.signature.output_shapes
        return [np.array(row, bool).reshape(shape) for row, shape in zip(rows, shapes, strict=True)]

    def program(self) -> Program:
        """The recorded graph."""
        return self._maker.program()

    def _seconds(self, lanes: int = 1) -> float:
        """A guess of the time per state, enough to size blocks: 10 Gflop/s, 8 GB/s; with lanes less."""
        return (1e-10 * self.flops + 1e-9 * self.signature.scalars) * 2 / (1 + lanes) + 1e-8

    # -- machine code ----------------------------------------------------------------------------

    @property
    def _many(self) -> ManyStates:
        return MANY_STATES[self.signature.dtype]

    def _first_call(self, *arguments: Any) -> Any:
        """Stands for `fast` until there is machine code."""
        if not all(map(check.is_single, arguments[: self._arity])):
            return None  # a batch: the code of single states may never be needed
        with self._lock:
            if self.fast == self._first_call:
                if self._maker.refused is None and self._has_loops():
                    return None  # the first call goes the way that knows what to do without a compiler
                code = self._maker.code(ONE_STATE, baseline=True)
                self.fast = declined if code is None else self._of_one_state(code)
        return self.fast(*arguments)

    def _of_one_state(self, code: Code) -> Callable[..., Any]:
        """The builtin function; for baseline code one that asks for better code when that is worth it."""
        run = self._builtin(code)
        if not code.baseline:
            return run

        def baseline(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = run(*arguments)
            if code.ran(time.perf_counter() - started) and self.fast is baseline:
                self.fast = run
                self._maker.improve(ONE_STATE, self._improved)
            return result

        return baseline

    def _improved(self, code: Code) -> None:
        """Use better code from now on."""
        if code.target is ONE_STATE:
            self.fast = self._builtin(code)
        else:
            self._runner = self._runner_of(code)

    def _has_loops(self) -> bool:
        """Whether the function is recorded with loops."""
        if self._looped is not None:
            if self._looped():
                self._loops = FlatKernel(self._maker.symbol, self._maker.function, self.signature)
            self._looped = None
        return self._loops is not None

    def with_loops(self, name: str, arguments: Sequence[str]) -> FlatKernel | None:
        """The function as a kernel with loops, for export to C and other libraries; None for straight-line
        code.

        Args:
            name: name of the function.
            arguments: names of the inputs, then of the outputs.
        """
        if not self._has_loops():
            return None
        return FlatKernel(name, self._maker.function, self.signature, arguments)

    def held(self, holder: type, owner: Any) -> Callable[..., Any] | None:
        """A function of single states, like :attr:`fast`, that puts its output into a new object; None as
        long as there is baseline code only.

        Args:
            holder: class with two slots.
            owner: what the first of them is given; the second is given the output.
        """
        code = None
        if self._is_double and not self._has_loops():
            code = self._maker.code(ONE_STATE, baseline=True)
            if code is not None and code.baseline:
                return None
        return declined if code is None else self._builtin(code, held=(holder, owner))

    def _builtin(
        self, code: Code, driver: str = "single", rows: int = 0, held: tuple[type, Any] | None = None
    ) -> Callable[..., Any]:
        """The builtin function of a driver."""
        return fast_call(
            code.address(driver),
            address(code.memory),
            [size for _, size in self.signature.inputs],
            self.signature.output_shapes,
            code,
            rows,
            held,
        )

    def _batch_runner(self) -> BatchRunner | None:
        if self._runner is None:
            with self._lock:
                code = self._maker.code(self._many, baseline=True)
                self._runner = None if code is None else self._runner_of(code)
        return self._runner

    def _runner_of(self, code: Code) -> BatchRunner:
        """What runs batches; few states go straight to code that is not replaced soon."""
        lanes = code.target.lanes
        driver, seconds = code.address("batch"), self._seconds(lanes)
        runner = BatchRunner(driver, code.workspace, GROUP * lanes, seconds, code)
        if self._is_double and not code.baseline:
            self.few = self._builtin(code, "batch", runner.few)
        return runner

    # -- the slow way in -------------------------------------------------------------------------

    def _checked(self, arguments: Sequence[Any], out: Any, threads: int | None, plain: bool = False) -> Any:
        """Convert and check the arguments, then run; explains what machine code only refuses."""
        signature = self.signature
        arrays = signature.arrays(arguments)
        rows = signature.rows(arrays)
        outs = signature.outs(out, rows)
        if out is not None:  # what is written early must not be read later
            arrays = [a.copy() if any(np.may_share_memory(a, o) for o in outs) else a for a in arrays]
        status = 0 if plain else self._run_code(arrays, outs, rows, threads)
        plain = plain or self._maker.refused is not None
        if plain or status & ~NOT_FINITE_OUTPUT:
            signature.check_values(arrays)
        if plain:
            self._run_plain(arrays, outs, rows)
            good = not signature.finite or all(np.isfinite(o).all() for o in outs)
            status = 0 if good else NOT_FINITE_OUTPUT
        if status:
            raise NotFinite(self.name, signature.answer(outs, out))
        return signature.answer(outs, out)

    def _run_code(
        self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None, threads: int | None
    ) -> int:
        """Run the machine code, if there can be any (the maker's ``refused`` says), and return its status."""
        if self._maker.refused is None and self._has_loops():
            return self._run_loops(arrays, outs, rows)
        if rows is None and self._is_double:
            filled = self.fast(*map(check.plain, arrays), *map(check.plain, outs))
            return 0 if filled is not None or self._maker.refused is not None else NOT_FINITE
        runner = None if rows == 0 else self._batch_runner()
        if runner is None:
            return 0
        started = time.perf_counter()
        status = runner(arrays, outs if rows else [o[None] for o in outs], rows or 1, threads)
        self._ran(time.perf_counter() - started)
        return status

    def _ran(self, seconds: float) -> None:
        """Count how long the code for many states has run; better code is asked for when that is worth it."""
        code = self._maker.code(self._many, baseline=True)
        if code is not None and code.ran(seconds):
            self._maker.improve(self._many, self._improved)

    def _run_loops(self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None) -> int:
        """The same for a function with loops, whose arguments are checked before."""
        assert self._loops is not None
        self._loops.check_values(arrays)
        try:
            self._loops.run(arrays, outs, rows)
            if rows is None and self._is_double and not self.signature.finite:
                self.fast = self._loops.fast
        except (CompilerMissing, NoMachineCode, TraceTooLarge) as error:
            self._maker.refused = str(error)
            return 0
        good = not self.signature.finite or all(np.isfinite(o).all() for o in outs)
        return 0 if good else NOT_FINITE_OUTPUT

    def _run_plain(self, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None) -> None:
        """Run the function as plain Python; one state by columns of one row where floats would be double."""
        if rows is None and self.reproducible and not self._is_double:
            outs, rows = [o[None] for o in outs], 1
        run_plain(self.function, arrays, outs, rows)

    def unchecked(self, arrays: Sequence[np.ndarray], rows: int) -> list[np.ndarray]:
        """The outputs for a batch, computed as plain Python, without checks: on NumPy arrays, which for one
        row are five times slower than Python's floats.

        Args:
            arrays: one per input, (rows or 1, n), or (n,) for all rows.
            rows: number of rows of the batch.
        """
        outs = self.signature.outs(None, rows)
        if rows == 1 and self._is_double:  # Python's floats are double
            run_plain(
                self.function, [a.reshape(-1) for a in arrays], [o.reshape(o.shape[1:]) for o in outs], None
            )
        else:
            run_plain(self.function, arrays, outs, rows)
        return outs


class Bound:
    """A kernel of the first inputs only: the last ones are always the same arrays."""

    __slots__ = ("_kernel", "_last")

    def __init__(self, kernel: Kernel, *last: np.ndarray) -> None:
        self._kernel, self._last = kernel, last

    def fast(self, *arguments: Any) -> Any:
        """As :attr:`Kernel.fast`, without arrays to write to."""
        return self._kernel.fast(*arguments, *self._last)

    def few(self, *arguments: Any) -> Any:
        """As :attr:`Kernel.few`, without arrays to write to."""
        return self._kernel.few(*arguments, *self._last)

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
