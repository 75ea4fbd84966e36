"""Makes the machine code of a kernel: from the cache, or by tracing, planning, writing and compiling.

The code of each target is a module of its own, made when it is first asked for. A kernel with a key is found
in the cache without tracing: the name of its file is the hash of the key, of robokit's own source, of the
target and of everything else that the code depends on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from robokit import disk_cache
from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.backend.targets import Planned, Target
from robokit.engine.emit import ir
from robokit.engine.memory import aligned
from robokit.engine.passes.order import LEAST, fused, guarded, opened, signs_early
from robokit.engine.passes.similarity import PIECE, SHARED, WORTH, Rerolled, fewest, rerolled
from robokit.engine.reproducible import plain_zeros
from robokit.engine.signature import FlatFunction, Signature
from robokit.engine.trace.graph import NODE_BUDGET, Program, Shares, TraceTooLarge
from robokit.errors import UnknownName
from robokit.interpreter import at_fork, without_collector
from robokit.stages import stage

_log = logging.getLogger(__name__)

CODE_BUDGET = 900_000  # operations compiled at most, repeated iterations counted once: a minute or so
RECORDED = 14  # operations that are recorded again, and compared, while one is compiled
LONG = 60_000  # operations from which on a line compiles so slowly that another recording is tried
SECONDS_A_BYTE = 1.5e-6  # of running baseline code before better is made, which takes longer (AMD EPYC)
TIERED = True  # whether first calls make do with baseline code; benchmarks, for speed alone, say False

MAKING = threading.RLock()
"""Held while code is made, one kernel at a time: a process is never forked with a compiler half-way, which
the child would wait for in vain."""

at_fork(before=MAKING.acquire, after_in_parent=MAKING.release, after_in_child=MAKING.release)


def aside(name: str, compile_well: Callable[[], None]) -> None:
    """Replace code that was there soon, in a thread; who runs it goes on until the better code is there.

    ``name``: of the kernel. ``compile_well``: makes and hands over better code. It holds :data:`MAKING` for
    no longer than it records and writes: LLVM's part, nearly all of the time, keeps no caller and no fork
    waiting.
    """

    def work() -> None:
        try:
            compile_well()
        except CompilerMissing as error:  # no memory for more code
            _log.info("%s keeps its baseline code: %s", name, error)

    with contextlib.suppress(RuntimeError):  # no thread can be had: a limit, or the program is ending
        threading.Thread(target=work, name="robokit compiler", daemon=True).start()


ENGINES = ("llvm", "python")
ENGINE_VARIABLE = "ROBOKIT_ENGINE"


def engine() -> str:
    """The engine that the environment asks for: "python" keeps all kernels made from now on from compiling.

    Raises UnknownName: it asks for another.
    """
    wanted = os.environ.get(ENGINE_VARIABLE) or "llvm"
    if wanted not in ENGINES:
        raise UnknownName("engine", wanted, ENGINES, f"(environment variable {ENGINE_VARIABLE})")
    return wanted


Found = tuple[dict[str, Any], bytes]  # metadata and code of a target

Identity = bytes | Callable[[], bytes] | None
"""What a function depends on besides robokit's own source, or a callable that tells when code is wanted."""


class Code:
    """Machine code in memory, and the workspace that its single calls share.

    Attributes:
        target: what it was made for.
        workspace: size of the workspace that its functions need [doubles].
        memory: such a workspace.
        baseline: seconds after which better code is worth what it takes to compile, 0 for code that is
            compiled well.
    """

    def __init__(self, target: Target, code: bytes, symbol: str, meta: Mapping[str, Any]) -> None:
        self.target, self.workspace = target, int(meta["workspace"])
        self._left = self.baseline = SECONDS_A_BYTE * len(code) if meta["baseline"] else 0.0
        self._loaded, self.symbol = target.load(code), symbol
        self.memory = aligned(self.workspace)

    def address(self, driver: str) -> int:
        """Address of the driver "single", "batch" or "passes"."""
        return self._loaded.address(f"{self.symbol}_{driver}")

    def ran(self, seconds: float) -> bool:
        """Count how long it has run, whoever runs it; True once, when better code is worth it."""
        before, self._left = self._left, self._left - seconds
        return before > 0.0 >= self._left


class Maker:
    """Makes the code of one kernel.

    ``symbol``: in the names of its code; ``function``: what it computes; ``refused``: why there is no machine
    code (no compiler, function too long, not wanted, not allowed); None as long as there may be.
    """

    def __init__(self, signature: Signature, function: FlatFunction, key: Identity) -> None:
        self._signature, self.function, self._identity = signature, function, key
        self.symbol = "robokit_" + re.sub(r"\W", "_", signature.name, flags=re.ASCII)
        self._lock = MAKING
        self._codes: dict[str, Code] = {}
        self._program: Program | None = None
        self._plans: dict[int, tuple[Program, Rerolled | None]] = {}
        self._counts: dict[str, int] | None = None
        self.refused: str | None = None if engine() == "llvm" else f"{ENGINE_VARIABLE} asks for plain Python"

    @property
    def _key(self) -> bytes | None:
        """What the function depends on besides robokit's own source.

        Raises TraceTooLarge: it takes a recording to tell, and the function is longer than the budget.
        """
        if callable(self._identity):
            self._identity = self._identity()
        return self._identity

    def program(self) -> Program:
        """The recorded graph. Raises TraceTooLarge: the function is longer than the budget."""
        with self._lock:
            if self._program is None:
                self._program = self._record()
            return self._program

    def _record(self, signed: bool = False, shares: Shares = False, columns: int = 1) -> Program:
        from robokit.engine.trace.record import trace

        shape = self._signature
        made = trace(self.function, shape.inputs, shape.outputs, NODE_BUDGET, signed, shares, columns)
        return opened(made)

    def planned(self, target: Target) -> Planned:
        """The kernel ready to be written: its graph, and how to share its repeated iterations if that pays.

        Raises TraceTooLarge: the function or its code is longer than the budgets.
        """
        if not target.shares:
            return self._described(self._ready(self.program()), None)
        # The same bits on every target are those of one column after the other.
        columns = 1 if self._signature.reproducible else target.columns
        if columns not in self._plans:
            calls = self._with_calls(columns)
            if calls is not None:
                alike = all(block.lanes == 1 for block in calls.blocks)
                self._plans |= dict.fromkeys((columns, 1) if alike else (columns,), (calls, None))
                return self._described(calls, None)
            program = self.program()
            if self._signature.reproducible:
                program = plain_zeros(program)
            program, shared = self._shared(program)
            written = shared.written if shared else len(program.order)
            if written > CODE_BUDGET:
                raise TraceTooLarge(f"more than {CODE_BUDGET} operations to compile")
            if shared is None and not self._signature.reproducible:
                program = fused(signs_early(program))
            self._plans[columns] = self._plans[1] = program, shared
        return self._described(*self._plans[columns])

    def _shared(self, program: Program) -> tuple[Program, Rerolled | None]:
        """The program, or the one whose constants keep their signs, and a plan if iterations share code."""
        if not program.marks:
            return program, None
        count, least = len(program.order), fewest(program)
        other, again, saved = program, None, 0
        if count < RECORDED * least and (count > LONG or 2 * least < count):
            signless = fewest(program, signs=False)
            saved = least - signless if 2 * signless < least else 0
        if count < RECORDED * saved:
            other = self._record(signed=True)
            if self._signature.reproducible:
                other = plain_zeros(other)
            again = rerolled(other, PIECE)
            if again and again.written < least:  # no plan of the first does as well
                return other, again
        shared = rerolled(program, PIECE)
        better = again and again.written < (shared.written if shared else len(program.order))
        return (other, again) if better else (program, shared)

    def _with_calls(self, columns: int) -> Program | None:
        """The kernel with calls of its large shared functions, if it has any and iterations share nothing."""
        program = self._record(shares="large", columns=columns)
        if not program.blocks:
            self._program = program
            return None
        if program.marks and fewest(program, signs=False) < SHARED * len(program.order):
            return None
        return self._ready(program)

    def _ready(self, program: Program) -> Program:
        """A program that is not too long, in the order in which it is written."""
        if len(program.order) > CODE_BUDGET:
            raise TraceTooLarge(f"more than {CODE_BUDGET} operations to compile")
        return plain_zeros(program) if self._signature.reproducible else fused(signs_early(program))

    def _described(self, program: Program, shared: Rerolled | None) -> Planned:
        return Planned(self.symbol, program, shared, self._signature)

    def counts(self) -> dict[str, int]:
        """Operations by name."""
        if self._counts is None:
            self._counts = self.program().counts
        return dict(self._counts)

    def guarded(self) -> dict[str, int]:
        """Those of them that are inside guards."""
        return guarded(self.program())

    def code(self, target: Target, baseline: bool = False) -> Code | None:
        """The code for a target of this process, None if there can be none.

        ``target``: where it runs; ``baseline``: whether baseline code will do, which is there sooner; whoever
        runs it asks for better code (:meth:`improve`) when :meth:`Code.ran` says so.
        """
        baseline = baseline and TIERED

        def found() -> Code | None:
            code = self._codes.get(target.name)
            return code if code is not None and (baseline or not code.baseline) else None

        if (code := found()) is not None:  # whatever else is being made
            return code
        with self._lock:
            if found() is None and self.refused is None:
                try:
                    meta, content = self.compiled(target, baseline)
                    self._codes[target.name] = Code(target, content, self.symbol, meta)
                except (CompilerMissing, TraceTooLarge) as error:
                    self.refused = str(error)
                    return None
                self._counts = meta["counts"]
                if len(self._codes) == 2:
                    self._program = None  # megabytes for a humanoid, and not needed any more
                    self._plans.clear()
            return self._codes.get(target.name)

    def improve(self, target: Target, done: Callable[[Code], None]) -> None:
        """Compile well, in a thread, what there is baseline code for; ``done`` is called there with it."""

        def compile_well() -> None:
            meta, content = self.compiled(target, aside=True)
            with self._lock:
                code = self._codes[target.name] = Code(target, content, self.symbol, meta)
            done(code)

        aside(self._signature.name, compile_well)

    def compiled(self, target: Target, baseline: bool = False, aside: bool = False) -> Found:
        """Metadata and code for any target, from the cache or made now.

        ``target``: where it runs; ``baseline``: as in :meth:`code`. ``aside``: whether other threads may make
        code meanwhile. Then the lock of the cache's file is taken without :data:`MAKING`, for LLVM's part
        alone: who has `MAKING` may wait for that lock. Raises TraceTooLarge: the function or its code is
        longer than the budgets; CompilerMissing: there is no compiler for this target.
        """
        name = self._file_name(target)
        found = None if name is None else _kept(name, baseline)
        if found is None:
            with logged(self._signature.name, target.name):
                if name is None or aside:
                    return self._compile(target, name, baseline)
                found = _made_once(name, baseline, lambda: self._compile(target, name, baseline, True))
        if "refused" in found[0]:
            raise TraceTooLarge(found[0]["refused"])
        return found

    def _compile(self, target: Target, name: str | None, baseline: bool, locked: bool = False) -> Found:
        """Metadata and code, compiled now and kept in the cache.

        ``target``: what for; ``name``: of the cache's file; None to name it by the code's own text;
        ``baseline``: as in :meth:`code`; ``locked``: whether the making of that file is locked already.
        """
        described = {"kernel": self._signature.name, "part": target.name}
        try:
            with self._lock, without_collector():  # LLVM's part needs no lock
                planned = replace(self.planned(target), baseline=baseline)
                text, workspace = target.write(planned)
        except TraceTooLarge as error:
            if name is not None:
                disk_cache.store(name, {**described, "refused": str(error)}, b"")
            raise
        if name is None:
            name = disk_cache.digest(target.features, text)
            found = _kept(name, baseline)
            if found is not None:
                return found
        # Side by side, lanes compute what nobody needs: operations are counted one column after the other.
        alike = all(block.lanes == 1 for block in planned.program.blocks)
        counts = planned.program.counts if alike else None
        meta, path = {**described, "workspace": workspace, "counts": counts, "baseline": baseline}, name

        def assembled() -> Found:
            code = target.assemble(text)
            disk_cache.store(_baseline_name(path) if baseline else path, meta, code)
            return meta, code

        return assembled() if locked else _made_once(path, baseline, assembled)

    def _file_name(self, target: Target) -> str | None:
        """Name of the cache's file, None where it takes the code's own text to tell."""
        features = target.features  # first: where there is no compiler, nothing else matters
        # A function from outside robokit may change where the digest of robokit's own sources does not.
        path = getattr(getattr(self.function, "__code__", None), "co_filename", "")
        inside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        outside = b"" if not path or path.startswith(inside) else disk_cache.source_file(path)
        sources = disk_cache.source_digest(), outside
        if self._key is None or not sources[0] or outside is None:
            return None
        sizes = ir.CHUNK, ir.LONGER, ir.GROUP, ir.HELD, ir.FITS, WORTH, PIECE, NODE_BUDGET, CODE_BUDGET, LEAST
        made_for = (target.name, target.bits, target.lanes, target.real.dtype)
        return disk_cache.digest(features, *sources, self._key, self._signature, made_for, sizes)


def _baseline_name(name: str) -> str:
    """Name of the cache's file for baseline code."""
    return disk_cache.digest(name, "baseline")


def _kept(name: str, baseline: bool) -> Found | None:
    """What the cache has by that name, where it will do baseline code if there is no better."""
    found = disk_cache.load(name)
    return disk_cache.load(_baseline_name(name)) if found is None and baseline else found


def _made_once(name: str, baseline: bool, make: Callable[[], Found]) -> Found:
    """What another process has stored by that name meanwhile, waiting while it compiles; else made here."""
    with disk_cache.making(_baseline_name(name) if baseline else name) as waited:
        found = _kept(name, baseline) if waited else None
        return make() if found is None else found


@contextlib.contextmanager
def logged(kernel: str, part: str) -> Iterator[None]:
    """Log that a compilation begins, and that it has ended and in what time (``record.seconds``)."""
    _log.info("compiling %s (%s)", kernel, part)
    started = time.perf_counter()
    try:
        with stage(f"compiling {kernel} ({part})"):
            yield
    finally:
        seconds = time.perf_counter() - started
        _log.info("compiled %s (%s) in %.2f s", kernel, part, seconds, extra={"seconds": seconds})
