"""A function with loops in every way to run it: plain Python, one state, batches.

Sizes are known only when it runs, so its code is compiled once a machine and serves every robot. It is kept
on disk under its own text: what was recorded is what runs.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import disk_cache
from robokit.arguments import one_of
from robokit.engine.emit import sincos
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real, module
from robokit.engine.loops.arguments import ArrayOf
from robokit.engine.loops.dual import differentiated, fill
from robokit.engine.loops.emit import HEADER, MORE, ModuleWriter, declarations
from robokit.engine.loops.record import CHECK, ERRORS, INTEGER, REAL, ZEROS, Array, LoopGraph, recording, told
from robokit.engine.loops.rows import MOVES, Body, batch_driver, moves_module, single_driver
from robokit.engine.maker import ENGINES, MAKING
from robokit.engine.maker import engine as wanted_engine
from robokit.engine.memory import address, aligned
from robokit.engine.reproducible import in_one_order
from robokit.engine.target import llvm
from robokit.engine.target.split import LOOPS
from robokit.errors import RobokitError, ShapeError, UnknownName, WrongType

if TYPE_CHECKING:
    from robokit.engine.emit.wasm_code import Function
    from robokit.engine.loops.counts import Usage

REALS = {"float64": FLOAT64, "float32": FLOAT32}

ATTRIBUTES = 'attributes #2 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
"""Of functions with loops; those of straight lines are not inlined, these may be."""


class LoopKernel:
    """A function of arrays whose sizes are known only when it runs.

    Args:
        name: in the names of its code.
        function: called with the sizes, then the arrays; writes to those that are no inputs. It may use
            robokit.spatial.control_flow, and all that other texts may.
        sizes: names of whole numbers that all states share.
        arrays: what it takes.
        reproducible: whether its results are the same bits everywhere.
        checked: whether an index out of range is an error, as in Python, and not somebody else's memory. A
            negative index counts from the end only where it is known while recording.

    Example:
        >>> from robokit.spatial.control_flow import for_range
        >>> def total(n, x, out):
        ...     out[0] = for_range(n, lambda k, so_far: so_far + x[k], 0.0)
        >>> kernel = LoopKernel("total", total, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")])
        >>> kernel(x=np.array([1.0, 2.0, 4.0]))["out"]
        array([7.])
        >>> kernel(x=np.ones((4, 3)))["out"].ravel()  # a batch: the same code for any number of rows
        array([3., 3., 3., 3.])
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., None],
        sizes: Sequence[str],
        arrays: Sequence[ArrayOf],
        reproducible: bool = False,
        checked: bool = False,
    ) -> None:
        self.name, self.function, self.sizes, self.arrays = name, function, tuple(sizes), tuple(arrays)
        self.reproducible, self.checked = reproducible, checked
        self._codes: dict[tuple[int, str], llvm.Loaded] = {}

    def forward(self, wrt: str | Sequence[str], directions: int | None = None) -> LoopKernel:
        """The kernel of values and derivatives along directions of some inputs, by forward mode.

        Beside x it takes a direction dx, beside out it gives the derivative dout. Derivatives of derivatives
        have names of their own: ``kernel.forward("x").forward("x")`` gives d2dout along d2x. An input that is
        not among these does not change.

        Args:
            wrt: names of arrays of real numbers that are inputs.
            directions: how many at once: dx and dout have one more dimension, the first. Without it there is
                one; a batch of rows of dx for one x has a direction in each lane.

        Raises:
            UnknownName: no such input.
            WrongType: its numbers are whole ones.
        """
        wrt = (wrt,) if isinstance(wrt, str) else tuple(wrt)
        inputs = {a.name: a for a in self.arrays if a.role in ("in", "inout")}
        for name in wrt:
            if name not in inputs:
                raise UnknownName("input", name, list(inputs), f"(kernel {self.name!r})")
            if inputs[name].kind != REAL:
                raise WrongType("wrt", name, "an input of real numbers")
        taken = {a.name for a in self.arrays} | set(self.sizes)
        marks = itertools.chain(["d"], (f"d{k}" for k in itertools.count(2)))
        mark = next(mark for mark in marks if taken.isdisjoint(mark + name for name in taken))
        moving = {
            a.name: replace(
                a,
                name=mark + a.name,
                shape=a.shape if directions is None else (directions, *a.shape),
                role="out" if a.role == "inout" and a.name not in wrt else a.role,
                shared=False,
            )
            for a in self.arrays
            if a.kind == REAL and (a.role != "in" or a.name in wrt)
        }
        still = [name for name in moving if name in inputs and name not in wrt]
        count, names = len(self.sizes), [a.name for a in self.arrays]

        def text(*given: Any) -> None:
            own = dict(zip(names, given[count:], strict=False))
            rates = dict(zip(moving, given[count + len(names) :], strict=True))
            for name in still:
                fill(rates[name], 0.0)
            tangents = {
                name: (rate,) if directions is None else tuple(rate[k] for k in range(directions))
                for name, rate in rates.items()
            }
            differentiated(self.function, given[:count], own, tangents, directions or 1)

        arrays = [*self.arrays, *moving.values()]
        return LoopKernel(f"{self.name}_{mark}", text, self.sizes, arrays, self.reproducible, self.checked)

    def record(self) -> LoopGraph:
        """The recorded regions."""
        graph = LoopGraph(self.checked, self.reproducible)
        region = graph.regions[0]
        known = {name: graph.wrapped(graph.parameter(INTEGER)) for name in self.sizes}
        given = []
        for a in self.arrays:
            number = graph.array(a.kind, region, a.role != "in")
            graph.functions[0].arrays.append(number)
            shape = [known[n] if isinstance(n, str) else n for n in a.shape]
            given.append(Array(graph, number, a.kind, shape, a.role != "in"))
        with recording(graph):
            self.function(*known.values(), *given)
        return graph

    @functools.cached_property
    def graph(self) -> LoopGraph:
        """What was recorded, once for all code."""
        return self.record()

    def parts(self, lanes: int, real: Real) -> Parts:
        """The functions for so many lanes, without what kernels have in common."""
        fused = not self.reproducible and llvm.has_fused_multiply_add()
        writer = ModuleWriter(self.graph, self.name, real, register(real), fused)
        of_state = [not a.shared for a in self.arrays]
        name = writer.kernel(of_state, lanes)
        body = Body(name, len(self.arrays), len(self.sizes), writer.fails(0))
        if lanes == 1:
            driver = single_driver(self.name, body)
        else:
            moves = [
                (a.kind, own and a.role in ("in", "inout"), own and a.role in ("out", "inout"))
                for a, own in zip(self.arrays, of_state, strict=True)
            ]
            driver = batch_driver(self.name, body, moves, of_state, lanes, real)
        return Parts([*writer.texts, driver], {*writer.widths, lanes})

    def text(self, lanes: int, real: Real) -> str:
        """The module for so many lanes."""
        return module_of([self], lanes, real)

    def code(self, lanes: int, real: Real) -> llvm.Loaded:
        """Machine code for so many lanes, from the cache or compiled now."""
        key = lanes, real.dtype
        with MAKING:
            if key not in self._codes:
                self._codes[key] = _loaded(self.name, self.text(lanes, real), key)
            return self._codes[key]

    def c_source(
        self, dtype: str = "float64", about: str = "", units: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The function in C99, of one state: a header and its source, by the names of their files.

        ``void NAME(int sizes..., double *arrays...)`` in the order of :attr:`sizes` and :attr:`arrays`. It
        needs math.h and nothing else, keeps no state and allocates nothing. A kernel with arrays of zeros
        whose size is known only when it runs takes more arguments, ``work, work_size`` for real numbers and
        ``whole_work, whole_work_size`` for whole ones (:meth:`workspace` tells how much). One that may end
        early returns an int, 0 or a status (:meth:`failures`). Sines are those of the C library, unless the
        kernel is reproducible.

        Args:
            dtype: of the real numbers, "float64" or "float32".
            about: what it computes, for the header's comment.
            units: of arguments, by their names, for the same.

        Raises:
            UnknownName: no such dtype; units of an argument that there is not.
        """
        from robokit.engine.loops.c_source import c_files

        one_of("dtype", dtype, tuple(REALS))
        names = [*self.sizes, *(a.name for a in self.arrays)]
        for name in units or {}:
            one_of("units", name, names)
        lines = about.splitlines()
        given = self.name, self.graph, self.sizes, self.arrays, REALS[dtype], lines, units or {}
        return c_files(*given, own_sines=self.reproducible)

    def counts(self, **given: Any) -> dict[str, int]:
        """The operations that one state takes: "mul", "add", ... as in :attr:`Kernel.counts`, and more.

        "load" and "store" are elements read and written; "whole" are operations on whole numbers: sums,
        products, quotients, comparisons, choices, and what makes them real numbers or is made of those. What
        stays the same in a loop is computed before it, and counts once. What is not counted: the turns of
        the loops themselves, and that arrays of zeros are filled.

        Args:
            given: as in a call, of one state.

        Raises:
            ShapeError: arrays of a batch.
        """
        return self._usage(given).counts

    def workspace(self, **given: Any) -> dict[str, int]:
        """Elements of the largest workspace that arrays of zeros need: "real" and "integer".

        In C these are the sizes of ``work`` and ``whole_work``, in WebAssembly 8 bytes each and 4.

        Args:
            given: as in a call, of one state.
        """
        return self._usage(given).workspace

    def failures(self) -> list[str]:
        """Why a call may end early: the status that C and WebAssembly return counts these from 1."""
        from robokit.engine.loops.live import Live

        return Live(self.graph, self._written).reasons()

    def _usage(self, given: Mapping[str, Any]) -> Usage:
        from robokit.engine.loops.counts import Usage

        sizes, arrays, rows = self._read(given, "float64")
        if rows is not None:
            raise ShapeError("counts are those of one state: give arrays without leading rows")
        own = [
            x.ravel() if a.role == "in" else x.ravel().copy()
            for a, x in zip(self.arrays, arrays, strict=True)
        ]
        return Usage(self.graph, self._written, [sizes[n] for n in self.sizes], own)

    @property
    def _written(self) -> list[int]:
        """Numbers of the arrays whose content matters at the end."""
        return [k for k, a in enumerate(self.arrays) if a.role in ("out", "inout")]

    def wasm_functions(self) -> list[Function]:
        """The function in WebAssembly, and those that it calls, for :func:`wasm_module`."""
        from robokit.engine.loops.live import Live
        from robokit.engine.loops.wasm import wasm_functions

        return wasm_functions(self.graph, Live(self.graph, self._written), self.name)

    # -- calls --------------------------------------------------------------------------------------

    def __call__(
        self, *, engine: str | None = None, dtype: str = "float64", **given: Any
    ) -> dict[str, np.ndarray]:
        """Run it.

        Args:
            engine: "python" runs the function as it is.
            dtype: of the real numbers, "float64" or "float32".
            given: the arrays that are inputs, each (...) or, for a batch, (B, ...) unless it is shared; and
                sizes that no shape of them tells.

        Returns:
            the arrays that are outputs, new ones.

        Raises:
            UnknownName: no such argument.
            ShapeError: an array of another shape, or sizes that contradict each other.
            WrongType: an argument is missing, or a size is no whole number.
        """
        engine = one_of("engine", engine or wanted_engine(), ENGINES)
        one_of("dtype", dtype, tuple(REALS))
        sizes, arrays, rows = self._read(given, dtype)
        if engine == "python":
            self._python(sizes, arrays, rows)
        elif rows is None:
            self.single(sizes, arrays, dtype)()
        else:
            self.batch(sizes, arrays, rows, dtype)()
        return {a.name: x for a, x in zip(self.arrays, arrays, strict=True) if a.role in ("out", "inout")}

    def _read(
        self, given: Mapping[str, Any], dtype: str
    ) -> tuple[dict[str, int], list[np.ndarray], int | None]:
        """Sizes, arrays (outputs are new ones) and number of rows of a call, None for one state."""
        asked = [a.name for a in self.arrays if a.role in ("in", "inout")]
        for name in given:
            if name not in asked and name not in self.sizes:
                raise UnknownName("argument", name, [*asked, *self.sizes], f"(kernel {self.name!r})")
        sizes, read, rows = {}, dict[str, np.ndarray](), None
        for name in self.sizes:
            if name in given:
                if isinstance(given[name], bool) or not isinstance(given[name], (int, np.integer)):
                    raise WrongType(name, given[name], "a whole number")
                sizes[name] = int(given[name])
                if not -(2**31) <= sizes[name] < 2**31:
                    raise WrongType(name, given[name], "a whole number of 32 bits")
        for a in self.arrays:
            if a.name not in asked:
                continue
            if a.name not in given:
                raise WrongType(a.name, None, f"an array {a.shape}")
            x = _numbers(a, given[a.name], dtype)
            leading = x.ndim - len(a.shape)
            if leading not in (0, 1) or (a.shared and leading):
                raise ShapeError(f"{a.name}: expected an array {a.shape}, got shape {x.shape}")
            if leading:
                if rows not in (None, len(x)):
                    raise ShapeError(f"{a.name}: has {len(x)} rows where others have {rows}")
                rows = len(x)
            for n, size in zip(a.shape, x.shape[leading:], strict=True):
                if size != (sizes.setdefault(n, size) if isinstance(n, str) else n):
                    raise ShapeError(f"{a.name}: expected shape {a.shape} with {sizes}, got {x.shape}")
            read[a.name] = x
        unknown = [name for name in self.sizes if name not in sizes]
        if unknown:
            raise WrongType(unknown[0], None, "a whole number: no array tells it")
        arrays = []
        for a in self.arrays:
            shape = tuple(sizes[n] if isinstance(n, str) else n for n in a.shape)
            if min(shape, default=0) < 0 or math.prod(shape) >= 2**31:
                raise ShapeError(f"{a.name}: no array can have the shape {shape}: 0 to 2^31 - 1 elements")
            x = read.get(a.name, np.zeros(shape, np.int32 if a.kind == INTEGER else dtype))
            if rows is not None and not a.shared and a.role != "work" and x.ndim == len(shape):
                x = np.broadcast_to(x, (rows, *shape))
            fresh = a.role == "inout" or not x.flags.c_contiguous or not x.flags.writeable
            arrays.append(np.array(x, order="C") if fresh else x)
        return sizes, arrays, rows

    def _python(self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], rows: int | None) -> None:
        order = [sizes[n] for n in self.sizes]
        for row in range(1 if rows is None else rows):
            own = [
                x if rows is None or a.shared or a.role == "work" else x[row]
                for a, x in zip(self.arrays, arrays, strict=True)
            ]
            self.function(*order, *map(_Plain, own))

    def single(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], dtype: str = "float64"
    ) -> Callable[[], None]:
        """A call without arguments on contiguous arrays of one state, in place; nothing is checked."""
        loaded = self.code(1, REALS[dtype])
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
            loaded.address(f"{self.name}_single")
        )
        numbers = np.array([sizes[n] for n in self.sizes], np.int32)
        context = self._context()
        pointers = np.array([*map(address, arrays), context.address if context else 0], np.uint64)
        at, of = address(pointers), address(numbers)

        def call(_alive: Any = (loaded, pointers, numbers, arrays)) -> None:
            function(at, of)
            if context and context.used():
                self._failed(context)

        return call

    def batch(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], rows: int, dtype: str = "float64"
    ) -> Callable[[], None]:
        """A call without arguments on contiguous arrays with leading rows, in place; nothing is checked."""
        real = REALS[dtype]
        lanes = register(real)
        loaded = self.code(lanes, real)
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 2)(
            loaded.address(f"{self.name}_batch")
        )
        numbers = np.array([sizes[n] for n in self.sizes], np.int32)
        context = self._context()
        pointers = np.array([*map(address, arrays), context.address if context else 0], np.uint64)
        lengths = [math.prod(sizes[n] if isinstance(n, str) else n for n in a.shape) for a in self.arrays]
        kinds = ["int32" if a.kind == INTEGER else dtype for a in self.arrays]
        lanes_of = [aligned(max(n, 1) * lanes, kind) for n, kind in zip(lengths, kinds, strict=True)]
        places = np.array([address(x) for x in lanes_of], np.uint64)
        sized = np.array(lengths, np.int64)
        moves = _moves(lanes, dtype)
        tables = [address(x) for x in (pointers, numbers, sized, places, moves[1])]
        given = (*tables, 0, rows)

        def call(_alive: Any = (loaded, pointers, numbers, arrays, lanes_of, places, sized, moves)) -> None:
            if rows:
                function(*given)
            if context and context.used():
                self._failed(context)

        return call

    def _context(self) -> Context | None:
        """What machine code that may fail works with."""
        return Context() if any(node[0] in (ZEROS, CHECK) for node in self.graph.nodes) else None

    def _failed(self, context: Context) -> None:
        """Say why a call ended: at which line of the function, and with the error that Python has there."""
        number, code = divmod(context.status(), 2)
        node, line = self.graph.nodes[number], told("here", self.graph.lines[number])
        if node[0] == CHECK:
            raise ERRORS[node[2]](f"{self.name}: {node[3]}{line}")
        if code:
            raise MemoryError(f"{self.name}: no memory for zeros{line}")
        raise ValueError(f"{self.name}: zeros: a size is below 0, or the array has 2^31 elements{line}")


@dataclass(frozen=True)
class Parts:
    """Functions of a kernel.

    Attributes:
        texts: of the functions.
        widths: numbers of lanes in them.
    """

    texts: list[str]
    widths: set[int]


def module_of(kernels: Sequence[LoopKernel], lanes: int, real: Real) -> str:
    """One module of kernels for so many lanes; the kernels are alike in whether they are reproducible."""
    parts = [kernel.parts(lanes, real) for kernel in kernels]
    widths = sorted(set().union(*(part.widths for part in parts)))
    texts = [text for part in parts for text in part.texts]
    shared = [declarations(widths, real)]
    if any("@more(" in text for text in texts):
        shared.append(MORE)
    for width in widths:
        if any(f"@sincos_{width}(" in text for text in texts):
            shared.append(sincos.function(width, real, f"sincos_{width}"))
    text = LOOPS + module([*shared, *texts], widths) + ATTRIBUTES
    return in_one_order(text) if kernels[0].reproducible else text


class Context:
    """What a call of machine code works with: where it says that it failed, and its workspace.

    The workspace is a list of blocks. A block begins with the address of the next one and of its own end;
    memory is taken from its start to its end, then from the next one, and given back in the opposite order.

    Attributes:
        address: of the status, the function that makes blocks, and the first block.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[int, np.ndarray]] = []
        self._numbers = (ctypes.c_int64 * 3)()
        self._more = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(self._add)
        self._numbers[1] = ctypes.cast(self._more, ctypes.c_void_p).value or 0
        self._numbers[2] = self._add(None, FIRST_BLOCK) or 0
        self.address = ctypes.addressof(self._numbers)

    def _add(self, after: int | None, size: int) -> int | None:
        """A new block after one, as large as all before it together; those that came after it are gone."""
        while self._blocks and self._blocks[-1][0] != after:
            self._blocks.pop()
        size = max(size, sum(block.nbytes for _, block in self._blocks)) + HEADER
        try:
            block = aligned(size + HEADER, "uint8")  # the first element is read, even where there is none
        except MemoryError:
            return None
        place = address(block)
        block[:16].view(np.int64)[:] = 0, place + size
        if self._blocks:
            self._blocks[-1][1][:8].view(np.int64)[0] = place
        self._blocks.append((place, block))
        return place

    def used(self) -> int:
        """Whether the call that is over failed; the next one finds all of its memory in one block."""
        if len(self._blocks) > 1:
            size = sum(block.nbytes for _, block in self._blocks)
            self._blocks.clear()
            self._numbers[2] = self._add(None, size) or 0
        return self._numbers[0]

    def status(self) -> int:
        """What failed; the next call begins anew."""
        found, self._numbers[0] = self._numbers[0], 0
        return found


FIRST_BLOCK = 1 << 14
"""Bytes of the workspace that a call begins with."""


def _numbers(a: ArrayOf, given: Any, dtype: str) -> np.ndarray:
    """An argument as the kernel takes it.

    Raises:
        WrongType: it has other numbers, or whole ones that 32 bits do not hold.
    """
    wanted = "whole numbers of 32 bits" if a.kind == INTEGER else "real numbers"
    x = np.asarray(given)
    if x.dtype.kind not in ("biu" if a.kind == INTEGER else "biuf") and x.size:
        raise WrongType(a.name, given, wanted)
    if a.kind == INTEGER and x.size and (int(x.min()) < -(2**31) or int(x.max()) >= 2**31):
        raise WrongType(a.name, given, wanted)
    return np.ascontiguousarray(x, np.int32 if a.kind == INTEGER else dtype)


def register(real: Real) -> int:
    """Numbers in a vector register of this processor."""
    return llvm.vector_width() * FLOAT64.bytes // real.bytes


def wasm_module(kernels: Sequence[LoopKernel]) -> bytes:
    """A WebAssembly module with a function of each kernel, of one state, and a memory for their arrays.

    A module serves all sizes, and so all robots. It exports ``memory``, which the host may let grow, and each
    kernel by its name: ``NAME(sizes..., places...)``, all whole numbers. A place is the first byte of an
    array, in the order of the kernel's arrays: real numbers have 64 bits, and a place that 8 divides, whole
    numbers have 32. Results are in the arrays.

    A kernel with arrays of zeros takes two more numbers, the first byte of a workspace, which 8 divides, and
    the one after its last (:meth:`LoopKernel.workspace`). It returns 0 or a status
    (:meth:`LoopKernel.failures`), as one with checks does; nothing else is checked.

    Args:
        kernels: of different names.

    Raises:
        RobokitError: two of the same name, or one that is named "memory".
    """
    from robokit.engine.emit import wasm_code, wasm_sines

    names = ["memory", *(kernel.name for kernel in kernels)]
    for name in names:
        if names.count(name) > 1:
            raise RobokitError(f"kernels: a module exports one thing named {name!r}: rename a kernel")
    functions = [function for kernel in kernels for function in kernel.wasm_functions()]
    angles = any((wasm_code.CALL, wasm_sines.NAME) in each.code for each in functions)
    return wasm_code.module([wasm_sines.sines()] * angles + functions, names[1:])


def _loaded(name: str, text: str, key: tuple[int, str]) -> llvm.Loaded:
    """Code of a module, kept on disk under its text."""
    place = disk_cache.digest(llvm.identity(), text)
    found = disk_cache.load(place)
    if found is None:
        content = llvm.assemble(text)
        disk_cache.store(place, {"kernel": name, "part": f"{key[0]} {key[1]}"}, content)
    return llvm.Loaded(content if found is None else found[1])


@functools.cache
def _moves(lanes: int, dtype: str) -> tuple[llvm.Loaded, np.ndarray]:
    """The functions that move rows to lanes and back, and their addresses."""
    with MAKING:
        loaded = _loaded(
            "rows", module([moves_module(lanes, REALS[dtype])], {lanes}) + ATTRIBUTES, (lanes, dtype)
        )
        return loaded, np.array([loaded.address(f"move{k}") for k in range(len(MOVES))], np.uint64)


class _Plain:
    """An array of one state for the function as it is: its elements are plain numbers, as in a recording."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        found = self.array[index]
        return _Plain(found) if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value
