"""A function with loops in every way to run it: plain Python, one state, batches.

Sizes are known only when it runs, so its code is compiled once a machine and serves every robot. It is kept
on disk under its own text: what was recorded is what runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gzip
import itertools
import logging
import math
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import disk_cache, shipped_code
from robokit.arguments import one_of, whole_number
from robokit.dataclass_tools import frozen
from robokit.engine import maker
from robokit.engine.backend import llvm
from robokit.engine.backend.llvm import LOOPS
from robokit.engine.batch_calls import PAYS_SECONDS, SECONDS, Record, RolloutRunner
from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real, module
from robokit.engine.loops import emit, environment
from robokit.engine.loops.dual import differentiated, fill
from robokit.engine.loops.environment import Environment, Link, NoMachineCode
from robokit.engine.loops.record import Array, LoopGraph, Recorder, failure, recording
from robokit.engine.maker import ENGINES, MAKING, logged
from robokit.engine.maker import engine as wanted_engine
from robokit.engine.memory import address
from robokit.engine.signature import ArrayOf
from robokit.engine.trace.ops import INTEGER, LINK, REAL
from robokit.errors import RobokitError, ShapeError, UnknownName, WrongType
from robokit.spatial.control_flow import count_from_start, recorded_by, zeros

if TYPE_CHECKING:
    from robokit.engine.emit.wasm import Function
    from robokit.engine.loops.interpret import Usage


_log = logging.getLogger(__name__)

# -- Code on disk, under the source that its text is made from --------------------------------------------
#
# Under a source is the name of the code, and what else a recording would tell: a process that finds it there
# records nothing.


@frozen
class Source:
    """Robokit's source, where it tells all that a kernel does."""

    digest: bytes  # of the source as it was when this process began
    name: str  # of what the disk has under it
    what: str  # hash of what is made of the source, wherever it runs

    @staticmethod
    def of(function: Callable[..., None], *made_from: Any) -> Source | None:
        """None where it is not known what source this process runs, or the function is not one of robokit.

        ``function``: it reads nothing that may change; ``made_from``: what else the code depends on, with an
        exact repr.
        """
        where = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        own = where[0].startswith("robokit.") and getattr(sys.modules[where[0]], where[1], None) is function
        digest = disk_cache.source_digest() if own else b""
        if not digest:
            return None
        what = disk_cache.digest(*where, *made_from)
        return Source(digest, disk_cache.digest("loops", llvm.identity(), digest, what), what)

    def load(self) -> tuple[llvm.Loaded, bool] | None:
        """The code, and whether its calls may fail; None if it is not there."""
        noted = disk_cache.load(self.name)
        found = disk_cache.load(noted[1].decode("ascii", "replace")) if noted else None
        return (llvm.Loaded(found[1]), bool(noted[0].get("fails", True))) if noted and found else None

    def shipped(self, file: str) -> tuple[llvm.Loaded, bool] | None:
        """The same of a file that comes with robokit (:meth:`LoopKernel.to_be_shipped`)."""
        content = shipped_code.read(file)
        try:
            whole = gzip.decompress(content) if content else b""
        except (EOFError, OSError, zlib.error):  # damaged: the code is made here
            return None
        what = self.what.encode()
        start = len(what) + 1
        return (llvm.Loaded(whole[start:]), whole[start - 1] > 0) if whole.startswith(what) else None

    def note(self, kernel: str, text: str, fails: bool) -> None:
        """Keep the name of the code, unless the source has changed since this process began.

        Modules that were imported after the change are not the ones that the digest is of.
        """
        with contextlib.suppress(OSError):
            if disk_cache.source_digest.__wrapped__() == self.digest:
                meta = {"kernel": kernel, "part": "name of code", "fails": fails}
                disk_cache.store(self.name, meta, llvm.name_of(text).encode())


def code_of(kernel: str, text: str, key: tuple[Any, ...]) -> llvm.Loaded:
    """Code of a module of kernels with loops, kept on disk under its text."""
    about = {"kernel": kernel, "part": " ".join(map(str, key))}
    return llvm.code_of(text, about, logged(kernel, " ".join(map(str, key[2:])) or "single"))


# -- Many rows through many steps, on several threads -----------------------------------------------------


class LoopRunner(RolloutRunner):
    """As :class:`RolloutRunner`: the arrays of the kernel are (steps or 1, rows or 1, ...) each.

    Those that it reads and writes are its state, which goes from step to step.
    """

    def __init__(self, kernel: Any, sizes: Mapping[str, int], dtype: str = "float64") -> None:
        """A kernel with loops (kernel.LoopKernel) for given sizes."""
        self.kernel, self.sizes, self.dtype = kernel, dict(sizes), dtype
        self.written = [k for k, a in enumerate(kernel.taken) if a.role != "in"]
        driver, lanes, self._spare = 0, 1, list[Environment]()
        self._version = self._version_of_spare = kernel.version
        try:
            self._spare.append(kernel.environment(sizes, dtype, many=True))
            lanes, driver = kernel.lanes(dtype), kernel.driver("batch", dtype)
        except NoMachineCode:
            pass
        feedback = list(enumerate(self.written))
        # No method, which would be a cycle of references: workspaces must not wait for the collector.
        plain = functools.partial(_rows, kernel, self.sizes, self.written)
        super().__init__(feedback, len(kernel.taken), plain, SECONDS, driver, 0, lanes, kernel)
        self.timed = not driver

    def _ran(self, steps: int) -> None:
        """Count what so many steps of rows take, and go over to better code as soon as there is some."""
        if self._compiled:
            self.kernel.ran(steps * self.seconds, self.lanes, self.dtype, "batch")
            if self._version != self.kernel.version:
                self._version = self.kernel.version
                self._use(self.kernel.driver("batch", self.dtype))

    def workspace(self) -> Any:
        """An environment for one thread."""
        if not self._compiled:
            return None
        if self._version_of_spare != self.kernel.version:  # kernels that it calls are compiled well, too
            self._version_of_spare = self.kernel.version
            self._spare.clear()
        if self._spare:
            return self._spare.pop()
        return self.kernel.environment(self.sizes, self.dtype, many=True)

    def run(self, arrays: Sequence[np.ndarray], memory: Any, rows: range, step: int, steps: int) -> None:
        """As :meth:`RolloutRunner.run`; raises what the kernel fails with."""
        super().run(arrays, memory, rows, step, steps)
        if memory is not None:
            self.kernel.looked_at(memory)
            self._ran(len(rows) * steps)

    def release(self, memory: Any) -> None:
        """Take a workspace back."""
        for context in memory.contexts if memory is not None else ():
            context.status()
        self._spare.append(memory)

    def stopper(self, memory: Sequence[Any]) -> threading.Event:
        """An event that also ends the loops that other threads are in."""
        return _Stopper(memory)

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Record,
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """As :meth:`RolloutRunner.roll`. How long a step takes is measured on copies of a few rows first."""
        if not self.timed and rows * marks[-1] > self.lanes:
            few = min(rows, self.lanes)
            part = [np.array(a[:1, :few]) for a in arrays]
            memory = self.workspace()
            started = time.perf_counter()
            self.run(part, memory, range(few), 0, 1)
            self.seconds, self.timed = max(time.perf_counter() - started, 1e-7) / few, True
            self.release(memory)
        return super().roll(arrays, rows, marks, record, threads, progress)

    def once(self, arrays: Sequence[np.ndarray], rows: int) -> Callable[..., None]:
        """A call that runs the kernel once on rows of arrays, (1, rows or 1, ...) each, in place.

        Its argument is how many threads it takes; as many as pay if there is none.
        """
        words = self.words(arrays, 0)
        args, gaps, jumps = map(ctypes.addressof, words)

        def call(threads: int | None = None, _alive: Any = words) -> None:
            memory, done = self.workspace(), 0
            at = address(memory) if self._compiled else 0
            if not self.timed and rows:
                done, started = min(rows, self.lanes), time.perf_counter()
                self._run(args, gaps, at, 0, done, 1, jumps)
                self.kernel.looked_at(memory)
                self.seconds, self.timed = max(time.perf_counter() - started, 1e-7) / done, True
            left = rows - done
            if left * self.seconds < 2 * PAYS_SECONDS and self._compiled:
                self._ran(rows)
                if left:
                    self._run(args, gaps, at, done, rows, 1, jumps)
                    self.kernel.looked_at(memory)
                self.release(memory)
            else:
                self.release(memory)
                rest = [a[:, done:] if a.shape[1] > 1 else a for a in arrays]
                if self.roll(rest, left, (0, 1), lambda *_: None, threads)[1]:
                    raise KeyboardInterrupt

        return call


class _Stopper(threading.Event):
    """Set, it ends the calls that work with these environments."""

    def __init__(self, environments: Sequence[Environment | None]) -> None:
        super().__init__()
        self._environments = environments

    def set(self) -> None:
        """Set it."""
        super().set()
        for each in self._environments:
            for context in each.contexts if each is not None else ():
                context.end()


def _rows(
    kernel: Any, sizes: Mapping[str, int], written: Sequence[int], arrays: list[np.ndarray], rows: int
) -> list[np.ndarray]:
    """One step by the plain function: what is written."""
    own = []
    for k, (a, x) in enumerate(zip(kernel.taken, arrays, strict=True)):
        each = x if a.shared or x.ndim > len(a.shape) else np.broadcast_to(x, (rows, *x.shape))
        own.append(np.array(each) if k in written else each)
    for row in range(rows):
        states = [x if a.shared else x[row, ...] for a, x in zip(kernel.taken, own, strict=True)]
        kernel.on_memory(*sizes.values(), *states)
    return [own[k] for k in written]


REALS = {"float64": FLOAT64, "float32": FLOAT32}

SECONDS_A_BYTE = 3.3e-5
"""That code which was there soon runs, for each byte of it, before the kernel is compiled well: about what
compiling takes (AMD EPYC). A process that ends just then has lost no more than it has run."""

ATTRIBUTES = (
    'attributes #2 = { nounwind "no-builtins" "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
)
"""Of functions with loops; those of straight lines are not inlined, these may be. No loop becomes a call of
the C library's memcpy or memset: with one a module needs LLVM's own loader, in every process that runs it."""

MEMSET = """define hidden ptr @memset(ptr %place, i32 %byte, i64 %count) noinline nounwind "no-builtins" {
entry:
  %small = trunc i32 %byte to i8
  %none = icmp eq i64 %count, 0
  br i1 %none, label %end, label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %at = getelementptr i8, ptr %place, i64 %k
  store i8 %small, ptr %at
  %next = add i64 %k, 1
  %done = icmp eq i64 %next, %count
  br i1 %done, label %end, label %turn
end:
  ret ptr %place
}
"""
"""What fills zeros; memset of the C library is not in the module."""


class LoopKernel:
    """A function of arrays whose sizes are known only when it runs.

    Args:
        name: in the names of its code.
        function: called with the sizes, then the arrays; writes to those that are no inputs. It may use
            robokit.spatial.control_flow, and all that other functions may.
        sizes: names of whole numbers that all states share.
        arrays: what it takes.
        reproducible: whether its results are the same bits everywhere.
        checked: whether an index out of range is an error, as in Python, and not somebody else's memory.
            Indices count from 0: one below is out of range. Ctrl-C ends its loops, in a second or so.
        from_source: a function that, with the arrays, tells all that is recorded: it reads nothing that may
            change. If it is one of robokit, code is found on disk under its source, without a recording.
        lanes: states that go together in batches; as many as a vector register has if it is not given.
        fuses_all: whether sums that go on are fused with products, too (emit.py): long functions are faster,
            short ones that wait for their own sums slower.

    Its code is compiled sooner at first, with the same results, and well when it has run for a while.

    Attributes:
        seconds: that it has run in this process, as whoever runs it counts (:meth:`ran`).
        well: whether it is compiled well at once, as nobody counts how long it runs.
        version: how often better code has taken the place of other code. Whoever keeps addresses of it asks
            for new ones when it changes; the old ones stay good.

    Raises:
        RobokitError: the name cannot be one of code, or two things have the same name.
        UnknownName: a dimension is called by a name that is none of the sizes.

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

    recorder: type[Recorder] = Recorder
    """What its function is recorded by."""

    def __init__(
        self,
        name: str,
        function: Callable[..., None],
        sizes: Sequence[str],
        arrays: Sequence[ArrayOf],
        reproducible: bool = False,
        checked: bool = False,
        from_source: Callable[..., None] | None = None,
        lanes: int | None = None,
        fuses_all: bool = False,
    ) -> None:
        self.name, self.function = name, function
        self.sizes: Sequence[str] = tuple(sizes)
        self.arrays: Sequence[ArrayOf] = tuple(arrays)
        self.reproducible, self.checked, self._lanes = reproducible, checked, lanes
        self.fuses_all = fuses_all
        self.seconds, self.well, self.version = 0.0, False, 0
        names = [*self.sizes, *(a.name for a in self.arrays)]
        twice = next((x for x in names if names.count(x) > 1), None)
        if twice is not None:
            raise RobokitError(f"{name}: two of its sizes and arrays are named {twice!r}: rename one")
        if not (name.isascii() and name.isidentifier()):
            raise RobokitError(f"name: expected letters, digits and _, no digit first, got {name!r}")
        for n in (n for a in self.arrays for n in a.shape if isinstance(n, str)):
            one_of("size", n, self.sizes, f"(kernel {name!r})")
        self.refused: str | None = None
        self._codes: dict[tuple[Any, ...], llvm.Loaded] = {}
        self._enough: dict[tuple[Any, ...], float] = {}  # seconds, for code that was there soon
        self._begun: dict[tuple[Any, ...], object] = {}  # what a thread compiles well, or has
        self._source = from_source
        self._known_to_fail: bool | None = None  # of code found by its source; it calls no kernels
        self._places: dict[tuple[llvm.Loaded, str], int] = {}

    @functools.cached_property
    def graph(self) -> LoopGraph:
        """The recorded regions, kept."""
        return self.record()

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
            ShapeError: directions is no whole number above 0.
        """
        directions = None if directions is None else whole_number("directions", directions, least=1)
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

        def function(*arguments: Any) -> None:
            own = dict(zip(names, arguments[count:], strict=False))
            rates = dict(zip(moving, arguments[count + len(names) :], strict=True))
            for name in still:
                fill(rates[name], 0.0)
            tangents = {
                name: (rate,) if directions is None else tuple(rate[k] for k in range(directions))
                for name, rate in rates.items()
            }
            differentiated(self.function, arguments[:count], own, tangents, directions or 1)

        name, arrays = f"{self.name}_{mark}", [*self.arrays, *moving.values()]
        return LoopKernel(name, function, self.sizes, arrays, self.reproducible, self.checked)

    @functools.cached_property
    def unlinked(self) -> LoopGraph:
        """The same without calls of other kernels: their functions are called."""
        return self._recorded(environment.record_opened) if self.graph.links else self.graph

    def record(self) -> LoopGraph:
        """The recorded regions.

        Raises:
            TypeError: it must be reproducible, and calls a kernel that is not.
        """
        graph = self._recorded(environment.record_call)
        for link in graph.links if self.reproducible else ():
            if not link.kernel.reproducible:
                raise TypeError(f"{self.name} is reproducible and calls {link.kernel.name}, which is not")
        return graph

    def _recorded(self, link: Callable[..., None]) -> LoopGraph:
        """The same, where a function records calls of other kernels."""
        graph = LoopGraph(self.checked, self.reproducible)
        region = graph.regions[0]
        known = {name: graph.wrapped(graph.parameter(INTEGER)) for name in self.sizes}
        arguments = []
        for a in self.arrays:
            number = graph.array(a.kind, region, a.role != "in")
            graph.functions[0].arrays.append(number)
            if a.shared:
                graph.common.add(number)
            shape = [known[n] if isinstance(n, str) else n for n in a.shape]
            arguments.append(Array(graph, number, a.kind, shape, a.role != "in"))
        with recording(graph, link, self.recorder):
            self.function(*known.values(), *arguments)
        return graph

    @property
    def fused(self) -> bool:
        """Whether products are fused with sums, which all code of one kernel agrees on."""
        return not self.reproducible and llvm.has_fused_multiply_add()

    def parts(self, lanes: int, real: Real, part: str = "") -> tuple[list[str], set[int]]:
        """The functions for so many lanes, and numbers of lanes in them; parts as in :meth:`code`.

        What kernels have in common is not among them.
        """
        writer = emit.ModuleWriter(self.graph, self.name, real, register(real), self.fused, self.fuses_all)
        of_state = [not a.shared for a in self.arrays]
        driver = emit.Driver(self.name, self.arrays, len(self.sizes), lanes, real, writer.fails(0))
        body = writer.kernel(of_state, lanes)
        masked = writer.kernel(of_state, lanes, True) if lanes > 1 and part == "linked" else ""
        if lanes > 1 and part != "linked":
            drivers = [driver.batch(body)]
        else:
            drivers = [driver.linked(body, masked)]
            drivers += [driver.once(), driver.single(), driver.rows()] if lanes == 1 else []
        return [*writer.texts, "".join(drivers)], {*writer.widths, lanes}

    def text(self, lanes: int, real: Real, part: str = "") -> str:
        """The module for so many lanes; parts as in :meth:`code`."""
        return module_of([self], lanes, real, part)

    def code(self, lanes: int, real: Real, part: str = "") -> llvm.Loaded:
        """Machine code for so many lanes, from the cache or compiled now.

        Its part is "linked", for callers in machine code, or "batch"; code of one state is for callers too.
        """
        key = _key(lanes, real.dtype, part)
        with MAKING:
            known = self._codes.get(key)
            if known is None or (self.well and key in self._enough):
                try:
                    self._replace(key, maker.TIERED and not self.well)
                except llvm.CompilerMissing:  # no memory for more code
                    if known is None:
                        raise
            return self._codes[key]

    # -- better code --------------------------------------------------------------------------------

    def soon(self, lanes: int, dtype: str, part: str = "linked") -> bool:
        """Whether its code is some that was there soon; better code may take its place."""
        return _key(lanes, dtype, part) in self._enough

    def ran(self, seconds: float, lanes: int, dtype: str, part: str = "linked") -> None:
        """Count how long its code has run; once that is worth it, a thread compiles it well."""
        self.seconds += seconds
        if self.seconds >= self._enough.get(_key(lanes, dtype, part), math.inf):
            self.improve(lanes, dtype, part)

    def counted(self, call: Callable[..., Any], dtype: str) -> Callable[..., Any]:
        """A call of the code of one state; it counts how long it takes, as long as better code may come."""
        if not self.soon(1, dtype):
            return call

        def timed(*arguments: Any) -> Any:
            started = time.thread_time()  # others may have the processor, too
            found = call(*arguments)
            self.ran(time.thread_time() - started, 1, dtype)
            return found

        return timed

    def improve(self, lanes: int, dtype: str, part: str = "linked") -> None:
        """Compile it well in a thread, unless one does or has; :attr:`version` says when that is done."""
        key, own = _key(lanes, dtype, part), object()
        if self._begun.setdefault(key, own) is own:
            maker.aside(self.name, functools.partial(self._improve, key))

    def _improve(self, key: tuple[Any, ...]) -> None:
        # A kernel that is recorded has no source any more under which later processes could find its code.
        links = self.graph.links if "graph" in vars(self) and self._known_to_fail is None else ()
        for kernel in {link.kernel for link in links if isinstance(link.kernel, LoopKernel)}:
            for each in list(kernel._enough):  # as in _environment, and before anybody waits for it
                kernel._improve(each)
        self._replace(key)
        self.version += 1

    def seconds_to_compile(self, dtype: str) -> float:
        """What compiling its code of one state well takes, about."""
        return SECONDS_A_BYTE * self.code(1, REALS[dtype]).size

    def at_hand(self, part: str, dtype: str) -> bool:
        """Whether there is code of a part already, here or on disk under its source."""
        lanes, real = self.lanes(dtype) if part == "batch" else 1, REALS[dtype]
        key = lanes, real.dtype
        with MAKING:
            if key not in self._codes:
                found = self._found(self._source_of(lanes, real, part))
                if found is None:
                    return False
                self._codes[key] = found
            return True

    def _source_of(self, lanes: int, real: Real, part: str) -> Source | None:
        if self._source is None or "graph" in vars(self):  # the recording tells
            return None
        kind = self.reproducible, self.checked, self.fuses_all
        what = self.name, self.sizes, self.arrays, *kind, lanes, real, part
        return Source.of(self._source, what)

    def shipped_file(self, instructions: str) -> str:
        """Name of the file with its code of a set of llvm.INSTRUCTIONS that may come with robokit."""
        return f"{self.name}.{instructions}.gz"

    def to_be_shipped(self) -> dict[str, bytes]:
        """Content of these files, by name: code of one state in double precision that is compiled well.

        Any processor of x86-64 can make them. All that have the instructions run such code, with the bits of
        code compiled for them alone.

        Raises:
            RobokitError: the source tells not all that it does.
        """
        source = self._source_of(1, FLOAT64, "linked soon")
        if source is None or self.graph.links or self.graph.claims:
            raise RobokitError(f"{self.name}: no code to be shipped, as its source does not tell all of it")
        begin, text = source.what.encode() + bytes([self._may_fail]), self.text(1, FLOAT64)
        return {
            self.shipped_file(each): begin + llvm.assemble(text, processor)
            for each, processor in llvm.INSTRUCTIONS.items()
        }

    def _found(self, source: Source | None, shipped: bool = False) -> llvm.Loaded | None:
        found = source.load() if source else None
        if source and not found and shipped:
            files = (self.shipped_file(each) for each in llvm.INSTRUCTIONS if llvm.runs(each))
            found = next(filter(None, map(source.shipped, files)), None)
        if not found:
            return None
        self._known_to_fail = found[1]
        return found[0]

    def _replace(self, key: tuple[Any, ...], soon: bool = False) -> None:
        """Take code that is compiled well, or, if that will do, code that is there soon."""
        lanes, real = key[0], REALS[key[1]]
        part = "linked" if lanes == 1 or len(key) > 2 else "batch"
        source = self._source_of(lanes, real, part)
        found = self._found(source)
        if found:
            soon = False
        else:
            source = self._source_of(lanes, real, f"{part} soon") if soon else source
            found = self._found(source, (lanes, real) == (1, FLOAT64)) if soon else None
        if not found:
            with MAKING:
                text = self.text(lanes, real, part)
            soon = soon and disk_cache.load(llvm.name_of(text)) is None
            text = llvm.soon(text) if soon else text
            found = code_of(self.name, text, key)
            if source and not self.graph.links and not self.graph.claims:
                source.note(self.name, text, self._may_fail)
        self._codes[key] = found
        self._enough.pop(key, None)
        if soon:
            self._enough[key] = self.seconds + SECONDS_A_BYTE * found.size

    def lanes(self, dtype: str) -> int:
        """States that go together in batches."""
        return self._lanes or register(REALS[dtype])

    def driver(self, name: str, dtype: str) -> int:
        """Address of the function "single", "rows" or "batch" (emit.py)."""
        lanes, part = (self.lanes(dtype), name) if name == "batch" else (1, "linked")
        return self._address(self.code(lanes, REALS[dtype], part), name)

    def _address(self, loaded: llvm.Loaded, name: str) -> int:
        """Address of a function of some code, kept: asking where it is may take as long as a call."""
        place = self._places.get((loaded, name))
        if place is None:
            place = self._places[loaded, name] = loaded.address(f"{self.name}_{name}")
        return place

    def environment(self, sizes: Mapping[str, int], dtype: str, many: bool = False) -> Environment:
        """What the machine code of one state, or of batches, works with; for one thread.

        Raises:
            NoMachineCode: there is none, or a kernel that it calls has none.
            ShapeError: a kernel is called on an array of another size than it takes.
        """
        return self._environment(sizes, self.lanes(dtype) if many else 1, dtype, many)

    def linked(self, lanes: int, dtype: str, sizes: Mapping[str, int]) -> tuple[int, int, Any] | None:
        """The function that callers in machine code have, its environment, and what these need."""
        try:
            made = self._environment(sizes, lanes, dtype, False)
        except NoMachineCode:
            return None
        function = self._address(self.code(lanes, REALS[dtype], "linked"), "linked")
        return function, address(made), made

    def _environment(self, sizes: Mapping[str, int], lanes: int, dtype: str, many: bool) -> Environment:
        try:
            code = self.code(lanes, REALS[dtype], "batch" if many else "linked")
            moves = _moves(lanes, dtype) if many else (None, ())
            links = self._linked_sizes(sizes)
            if not self.soon(lanes, dtype, "batch" if many else "linked"):  # nobody counts
                for link, _ in links:
                    if isinstance(link.kernel, LoopKernel):
                        link.kernel.well = True
            own = {name: sizes[name] for name in self.sizes}
            keep = code, moves
            return Environment(self.arrays, own, lanes, dtype, links, moves[1], many, self._may_fail, keep)
        except (llvm.CompilerMissing, NoMachineCode) as error:
            self.refused = str(error)
            raise NoMachineCode(str(error)) from error
        except RecursionError:
            raise TypeError(
                f"the kernel {self.name} calls itself, or one that calls it: write a loop (while_loop)"
            ) from None

    @functools.cached_property
    def _may_fail(self) -> bool:
        """Whether a call may fail."""
        if self._known_to_fail is not None:
            return self._known_to_fail
        return any(node[0] in self.graph.failing for node in self.graph.nodes)

    def _linked_sizes(self, sizes: Mapping[str, int]) -> list[tuple[Link, dict[str, int]]]:
        """The kernels that are called, and their sizes."""
        if self._known_to_fail is not None:
            return []
        value = environment.Values(self.graph, [sizes[n] for n in self.sizes])
        for claim in self.graph.claims:
            claim.check(value)
        return [
            (link, dict(zip(link.kernel.sizes, map(value, link.sizes), strict=True)))
            for link in self.graph.links
        ]

    @property
    def taken(self) -> list[ArrayOf]:
        """The arrays that callers give: all but work arrays."""
        return [a for a in self.arrays if a.role != "work"]

    def opened(self, *arguments: Any) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The function and its arguments, for a caller that records them as its own.

        Args:
            arguments: of a call of the kernel.

        Raises:
            TypeError, ShapeError, WrongType: as in :meth:`on_memory`.
        """
        sizes, passed, claims = environment.matched(self, arguments)
        environment.note_claims(claims)
        rest = iter(passed)
        own = [
            zeros(*a.at(sizes), kind=a.kind) if a.role == "work" else next(rest).reshape(*a.at(sizes))
            for a in self.arrays
        ]
        return self.function, (*(sizes[n] for n in self.sizes), *own)

    def on_memory(self, *arguments: Any, work: Mapping[str, np.ndarray] | None = None) -> None:
        """Run the function as it is on arrays of one state, in place.

        Args:
            arguments: the sizes, if the arrays do not tell them, and the arrays.
            work: the work arrays by name; new ones if they are not given.

        Raises:
            TypeError, ShapeError, WrongType: these do not fit.
        """
        arrays = [x if isinstance(x, int) else np.asarray(x) for x in arguments]
        sizes, passed, claims = environment.matched(self, arrays)
        for claim in claims:
            claim.check(int)
        rest = iter(passed)
        dtype = next((x.dtype for x in passed if x.dtype != np.int32), np.dtype("float64"))
        own = [
            next(rest) if a.role != "work" else work[a.name] if work else a.zeros(sizes, dtype)
            for a in self.arrays
        ]
        own = [x.reshape(a.at(sizes)) for a, x in zip(self.arrays, own, strict=True)]
        with recorded_by(None):  # these are plain numbers, whatever is recorded meanwhile
            self.function(*(sizes[n] for n in self.sizes), *map(_Plain, own))

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
        arguments = self.name, self.unlinked, self.sizes, self.arrays, REALS[dtype], lines, units or {}
        return c_files(*arguments, own_sines=self.reproducible)

    def counts(self, **arguments: Any) -> dict[str, int]:
        """The operations that one state takes: "mul", "add", ... as in :attr:`Kernel.counts`, and more.

        "load" and "store" are elements read and written; "whole" are operations on whole numbers: sums,
        products, quotients, comparisons, choices, and what makes them real numbers or is made of those. What
        stays the same in a loop is computed before it, and counts once. What is not counted: the turns of
        the loops themselves, and that arrays of zeros are filled.

        Args:
            arguments: as in a call, of one state.

        Raises:
            ShapeError: arrays of a batch.
        """
        return self._usage(arguments).counts

    def workspace(self, **arguments: Any) -> dict[str, int]:
        """Elements of the largest workspace that arrays of zeros need: "real" and "integer".

        In C these are the sizes of ``work`` and ``whole_work``, in WebAssembly 8 bytes each and 4.

        Args:
            arguments: as in a call, of one state.
        """
        return self._usage(arguments).workspace

    def failures(self) -> list[str]:
        """Why a call may end early: the status that C and WebAssembly return counts these from 1."""
        from robokit.engine.loops.analysis import Live

        return Live(self.unlinked, self._written).reasons()

    def _usage(self, arguments: Mapping[str, Any]) -> Usage:
        from robokit.engine.loops.interpret import Usage

        sizes, arrays, rows = self._read(arguments, "float64")
        if rows is not None:
            raise ShapeError("counts are those of one state: give arrays without leading rows")
        own = [x.ravel() for x in arrays]
        return Usage(self.unlinked, self._written, [sizes[n] for n in self.sizes], own)

    @property
    def _written(self) -> list[int]:
        """Numbers of the arrays whose content matters at the end."""
        return [k for k, a in enumerate(self.arrays) if a.role in ("out", "inout")]

    def wasm_functions(self) -> list[Function]:
        """The function in WebAssembly, and those that it calls, for :func:`wasm_module`."""
        from robokit.engine.loops.analysis import Live
        from robokit.engine.loops.wasm import wasm_functions

        return wasm_functions(self.unlinked, Live(self.unlinked, self._written), self.name)

    # -- calls --------------------------------------------------------------------------------------

    def __call__(
        self, *, engine: str | None = None, dtype: str = "float64", **arguments: Any
    ) -> dict[str, np.ndarray]:
        """Run it.

        Args:
            engine: "python" runs the function as it is.
            dtype: of the real numbers, "float64" or "float32".
            arguments: the arrays that are inputs, each (...) or, for a batch, (B, ...) unless it is shared;
                and sizes that no shape of them tells.

        Returns:
            the arrays that are outputs, new ones.

        Raises:
            UnknownName: no such argument.
            ShapeError: an array of another shape, or sizes that contradict each other.
            WrongType: an argument is missing, or a size is no whole number.
        """
        engine = one_of("engine", engine or wanted_engine(), ENGINES)
        one_of("dtype", dtype, tuple(REALS))
        sizes, arrays, rows = self._read(arguments, dtype)
        if engine == "python" or not self._run(sizes, arrays, rows, dtype):
            for row in range(1 if rows is None else rows):
                own = [
                    x if rows is None or a.shared else x[row if len(x) > 1 else 0, ...]
                    for a, x in zip(self.taken, arrays, strict=True)
                ]
                self.on_memory(*(sizes[n] for n in self.sizes), *own)
        return {a.name: x for a, x in zip(self.taken, arrays, strict=True) if a.role in ("out", "inout")}

    def _run(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], rows: int | None, dtype: str
    ) -> bool:
        """Run the machine code; False where there is none."""
        try:
            if rows is None and (dtype == "float64" or not self.goes_straight):
                self.single(sizes, arrays, dtype)()
            else:
                few = [
                    x if rows is not None or a.shared else x[None]
                    for a, x in zip(self.taken, arrays, strict=True)
                ]
                self.batch(sizes, few, 1 if rows is None else rows, dtype)()
        except NoMachineCode:
            return False
        return True

    @property
    def goes_straight(self) -> bool:
        """Whether it calls straight kernels, which have no code of one state in single precision."""
        return any(getattr(link.kernel, "goes_straight", True) for link in self.graph.links)

    def _read(
        self, arguments: Mapping[str, Any], dtype: str
    ) -> tuple[dict[str, int], list[np.ndarray], int | None]:
        """Sizes, arrays (outputs are new ones) and number of rows of a call, None for one state."""
        asked = [a.name for a in self.arrays if a.role in ("in", "inout")]
        for name in arguments:
            if name not in asked and name not in self.sizes:
                raise UnknownName("argument", name, [*asked, *self.sizes], f"(kernel {self.name!r})")
        sizes, read, rows = {}, dict[str, np.ndarray](), None
        for name in self.sizes:
            if name in arguments:
                if isinstance(arguments[name], bool) or not isinstance(arguments[name], (int, np.integer)):
                    raise WrongType(name, arguments[name], "a whole number")
                sizes[name] = int(arguments[name])
                if not -(2**31) <= sizes[name] < 2**31:
                    raise WrongType(name, arguments[name], "a whole number of 32 bits")
        for a in self.arrays:
            if a.name not in asked:
                continue
            if a.name not in arguments:
                raise WrongType(a.name, None, f"an array {a.shape}")
            x = _numbers(a, arguments[a.name], dtype)
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
            raise WrongType(unknown[0], None, "a whole number, as no array has this size")
        arrays = []
        for a in self.arrays:
            shape = a.at(sizes)
            if min(shape, default=0) < 0 or math.prod(shape) >= 2**31:
                raise ShapeError(f"{a.name}: no array can have the shape {shape}: 0 to 2^31 - 1 elements")
        for a in self.taken:
            x = read[a.name] if a.name in read else a.zeros(sizes, dtype)
            if rows is not None and not a.shared and x.ndim == len(a.shape):  # an input: the same for all
                x = x[None] if a.role == "in" else np.broadcast_to(x, (rows, *x.shape))
            fresh = a.role == "inout" or not x.flags.c_contiguous
            arrays.append(np.array(x, order="C") if fresh else x)
        return sizes, arrays, rows

    def single(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], dtype: str = "float64"
    ) -> Callable[[], None]:
        """A call without arguments on contiguous arrays of one state, in place; nothing is checked.

        Raises:
            NoMachineCode: there is none.
        """
        call, version = self.counted(self._single(sizes, arrays, dtype), dtype), self.version
        if not self.soon(1, dtype):
            return call

        def newest() -> None:
            nonlocal call, version
            if version != self.version:
                version = self.version
                with contextlib.suppress(NoMachineCode):
                    call = self.counted(self._single(sizes, arrays, dtype), dtype)
            call()

        return newest

    def _single(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], dtype: str
    ) -> Callable[[], None]:
        made = self.environment(sizes, dtype)
        place = self._address(self.code(1, REALS[dtype], "linked"), "linked")
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(place)  # one state has no mask
        pointers = np.array([address(a) for a in arrays], np.uint64)
        at, of, context = address(pointers), address(made), made.context

        def call(_alive: Any = (made, pointers, arrays)) -> None:
            function(at, of)
            if context and context.used():
                self.failed(made)

        return call

    def batch(
        self, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], rows: int, dtype: str = "float64"
    ) -> Callable[..., None]:
        """A call on arrays of rows, in place: (rows, ...) contiguous, (1, ...), or (...) if shared.

        Its argument is how many threads it takes; as many as pay if there is none.
        """
        arguments = [x[None, None] if a.shared else x[None] for a, x in zip(self.taken, arrays, strict=True)]
        return LoopRunner(self, sizes, dtype).once(arguments, rows)

    def looked_at(self, memory: Environment) -> None:
        """Raise what a call that is over failed with, if it did."""
        if memory.context and memory.context.used():
            self.failed(memory)

    def failed(self, memory: Environment) -> None:
        """Say why a call ended: at which line of the function, and with the error that Python has there."""
        assert memory.context is not None
        status = memory.context.status()
        if status == emit.INTERRUPTED:
            signal.raise_signal(signal.SIGINT)  # whoever handles it does so now
        if status in (emit.INTERRUPTED, emit.ENDED):
            raise KeyboardInterrupt
        node = self.graph.nodes[status // 2]
        if node[0] == LINK:
            self.graph.links[node[1]].kernel.failed(memory.links[node[1]])
        raise failure(self.graph, self.name, status)


def _key(lanes: int, dtype: str, part: str) -> tuple[Any, ...]:
    """Of the code of a part; code of one state is for all of them."""
    return (lanes, dtype, part) if lanes > 1 and part == "linked" else (lanes, dtype)


def module_of(kernels: Sequence[LoopKernel], lanes: int, real: Real, part: str = "") -> str:
    """One module of kernels for so many lanes; the kernels are alike in whether they are reproducible."""
    own, each = zip(*(kernel.parts(lanes, real, part) for kernel in kernels), strict=True)
    texts, widths = [*itertools.chain(*own)], sorted(set().union(*each))
    shared = [emit.declarations(widths, real)]
    if any("@more(" in text for text in texts):
        shared.append(emit.MORE)
    if any("@interrupted(" in text for text in texts):
        shared.append(emit.INTERRUPTION)
    if any("@no_times(" in text for text in texts):
        shared.append(emit.no_times(real))
    if any("@llvm.memset" in text for text in texts):
        shared.append(MEMSET)
    for width in widths:
        if any(f"@sincos_{width}(" in text for text in texts):
            shared.append(ir.sincos(width, real, f"sincos_{width}", kernels[0].fused))
    text = module([*shared, *texts], widths) + ATTRIBUTES
    return LOOPS + (llvm.LONG if len(text) > llvm.LONG_FROM else "") + text


def _numbers(a: ArrayOf, value: Any, dtype: str) -> np.ndarray:
    """An argument as the kernel takes it.

    Raises WrongType: it has other numbers, or whole ones that 32 bits do not hold.
    """
    wanted = "whole numbers of 32 bits" if a.kind == INTEGER else "real numbers"
    try:
        x = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise WrongType(a.name, value, wanted) from None
    if x.dtype.kind not in ("biu" if a.kind == INTEGER else "biuf") and x.size:
        raise WrongType(a.name, value, wanted)
    if a.kind == INTEGER and x.size and (int(x.min()) < -(2**31) or int(x.max()) >= 2**31):
        raise WrongType(a.name, value, wanted)
    return np.asarray(x, np.int32 if a.kind == INTEGER else dtype, order="C")


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
    (:meth:`LoopKernel.failures`), as one with checks does; nothing else is checked. ``kernels``: of different
    names. Raises RobokitError: two of the same name, or one that is named "memory".
    """
    from robokit.engine.emit import wasm

    names = ["memory", *(kernel.name for kernel in kernels)]
    for name in names:
        if names.count(name) > 1:
            raise RobokitError(f"kernels: a module exports one thing named {name!r}: rename a kernel")
    return wasm.module([each for kernel in kernels for each in kernel.wasm_functions()], names[1:])


@functools.cache
def _moves(lanes: int, dtype: str) -> tuple[llvm.Loaded, np.ndarray]:
    """The functions that move rows to lanes and back, and their addresses."""
    with MAKING:
        text = module([emit.moves_module(lanes, REALS[dtype])], {lanes}) + ATTRIBUTES
        loaded = code_of("rows", text, (lanes, dtype))
        return loaded, np.array([loaded.address(f"move{k}") for k in range(len(emit.MOVES))], np.uint64)


class _Plain:
    """An array of one state for the function as it is: its elements are plain numbers, as in a recording."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape

    def __len__(self) -> int:
        return len(self.array)

    def reshape(self, *shape: int) -> _Plain:
        """The same memory in another shape."""
        return _Plain(self.array.reshape(shape))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The same memory, for kernels that are called."""
        return self.array

    def __getitem__(self, index: Any) -> Any:
        count_from_start(index)
        found = self.array[index]
        return _Plain(found) if isinstance(found, np.ndarray) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        count_from_start(index)
        self.array[index] = value
