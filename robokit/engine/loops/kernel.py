"""A function with loops in every way to run it: plain Python, one state, batches.

Sizes are known only when it runs, so its code is compiled once a machine and serves every robot. It is kept
on disk under its own text: what was recorded is what runs.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.arguments import one_of
from robokit.engine.emit import sincos
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real, module
from robokit.engine.loops.emit import RegionWriter, declarations
from robokit.engine.loops.record import INTEGER, REAL, SIZE, Array, Integer, LoopGraph, recording
from robokit.engine.loops.rows import MOVES, batch_driver, moves_module, single_driver
from robokit.engine.maker import ENGINES, MAKING
from robokit.engine.maker import engine as wanted_engine
from robokit.engine.memory import address, aligned
from robokit.engine.reproducible import in_one_order
from robokit.engine.target import llvm
from robokit.engine.target.split import LOOPS
from robokit.errors import ShapeError, UnknownName, WrongType

REALS = {"float64": FLOAT64, "float32": FLOAT32}

ATTRIBUTES = 'attributes #2 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
"""Of functions with loops; those of straight lines are not inlined, these may be."""


@dataclass(frozen=True)
class ArrayOf:
    """An array that a kernel takes.

    Attributes:
        name: of the argument.
        shape: numbers, or names of sizes.
        role: "in", "out", "inout", or "work": memory that nobody else sees, whose content is nothing in
            particular at the start, as that of "out".
        kind: "real" or "integer".
        shared: whether all states have the same one; it is then an input.
    """

    name: str
    shape: tuple[int | str, ...]
    role: str = "in"
    kind: str = REAL
    shared: bool = False


class LoopKernel:
    """A function of arrays whose sizes are known only when it runs.

    Args:
        name: in the names of its code.
        function: called with the sizes, then the arrays; writes to those that are no inputs. It may use
            robokit.spatial.control_flow, and all that other texts may.
        sizes: names of whole numbers that all states share.
        arrays: what it takes.
        reproducible: whether its results are the same bits everywhere.

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
    ) -> None:
        self.name, self.function, self.sizes, self.arrays = name, function, tuple(sizes), tuple(arrays)
        self.reproducible = reproducible
        self._codes: dict[tuple[int, str], llvm.Loaded] = {}
        self._functions: dict[tuple[int, str], Any] = {}

    def record(self) -> LoopGraph:
        """The recorded regions."""
        graph = LoopGraph(len(self.arrays))
        known = {name: Integer(graph, graph.add((SIZE, k))) for k, name in enumerate(self.sizes)}
        given = [
            Array(graph, k, a.kind, [known[n] if isinstance(n, str) else n for n in a.shape], a.role != "in")
            for k, a in enumerate(self.arrays)
        ]
        with recording(graph):
            self.function(*known.values(), *given)
        return graph

    def text(self, lanes: int, real: Real) -> str:
        """The module for so many lanes."""
        of_state, kinds = [not a.shared for a in self.arrays], [a.kind for a in self.arrays]
        body = RegionWriter(self.record(), of_state, kinds, lanes, real).function("body", len(self.sizes))
        parts = [declarations(lanes, real), body]
        if lanes == 1:
            parts.append(single_driver(self.name, len(self.arrays), len(self.sizes)))
        else:
            moves = [
                (
                    a.kind,
                    not a.shared and a.role in ("in", "inout"),
                    not a.shared and a.role in ("out", "inout"),
                )
                for a in self.arrays
            ]
            parts.append(batch_driver(self.name, moves, of_state, len(self.sizes), lanes, real))
        if "@sincos(" in body:
            parts.insert(1, sincos.function(lanes, real))
        if "@sincos_1(" in body:
            parts.insert(1, sincos.function(1, real, "sincos_1"))
        text = LOOPS + module(parts, {lanes}) + ATTRIBUTES
        return in_one_order(text) if self.reproducible else text

    def code(self, lanes: int, real: Real) -> llvm.Loaded:
        """Machine code for so many lanes, from the cache or compiled now."""
        key = lanes, real.dtype
        with MAKING:
            if key not in self._codes:
                self._codes[key] = _loaded(self.name, self.text(lanes, real), key)
            return self._codes[key]

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
        for a in self.arrays:
            if a.name not in asked:
                continue
            if a.name not in given:
                raise WrongType(a.name, None, f"an array {a.shape}")
            x = np.ascontiguousarray(given[a.name], np.int32 if a.kind == INTEGER else dtype)
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

    def _function(self, loaded: llvm.Loaded, driver: str, pointers: int, numbers: int) -> Any:
        """A function of some code; asking where it is may take as long as a call."""
        found = self._functions.get((id(loaded), driver))
        if found is None:
            prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers, *[ctypes.c_int64] * numbers)
            found = prototype(loaded.address(f"{self.name}_{driver}"))
            self._functions[id(loaded), driver] = found
        return found

    def single(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], dtype: str = "float64"
    ) -> Callable[[], None]:
        """A call without arguments on contiguous arrays of one state, in place; nothing is checked."""
        loaded = self.code(1, REALS[dtype])
        function = self._function(loaded, "single", 2, 0)
        pointers = np.array([address(a) for a in arrays], np.uint64)
        numbers = np.array([sizes[n] for n in self.sizes], np.int32)
        at, of = address(pointers), address(numbers)

        def call(_alive: Any = (loaded, pointers, numbers, arrays)) -> None:
            function(at, of)

        return call

    def batch(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], rows: int, dtype: str = "float64"
    ) -> Callable[[], None]:
        """A call without arguments on contiguous arrays with leading rows, in place; nothing is checked."""
        real = REALS[dtype]
        lanes = llvm.vector_width() * FLOAT64.bytes // real.bytes
        loaded = self.code(lanes, real)
        function = self._function(loaded, "batch", 5, 2)
        pointers = np.array([address(a) for a in arrays], np.uint64)
        numbers = np.array([sizes[n] for n in self.sizes], np.int32)
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

        return call


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
