"""Makes the machine code of a kernel: from the cache, or by tracing, writing IR and compiling.

The single and the batch code are separate modules, each made when it is first asked for. A kernel with a
key is found without tracing: the name of its file is the hash of the key, of robokit's own source, of the
processor and of everything else that the code depends on.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from robokit import disk_cache as cache
from robokit.engine.emit import ir as text
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.emit.ir import DOUBLE, Real
from robokit.engine.emit.single_module import single_module
from robokit.engine.passes.multiply_add import fused
from robokit.engine.passes.repeats import PIECE, WORTH, Stepped, stepped
from robokit.engine.run.single_calls import aligned
from robokit.engine.target import llvm as compile
from robokit.engine.target.llvm import CompilerMissing, Loaded
from robokit.engine.trace.graph import TraceTooLarge
from robokit.engine.trace.program import Program
from robokit.errors import UnknownName

Text = Callable[..., Sequence[Sequence[Any]]]

NODE_BUDGET = 700_000
"""Operations that are recorded at most (some seconds); longer texts run on plain numbers."""

CODE_BUDGET = 250_000
"""Operations that are compiled at most, those of repeated iterations counted once."""


LONG = 60_000
"""Operations from which on a straight line is so slow to compile that another recording is tried."""

MAKING = threading.RLock()
"""Held while code is made, one kernel at a time: a process is never forked with a compiler half-way, which
the child would wait for in vain."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=MAKING.acquire, after_in_parent=MAKING.release, after_in_child=MAKING.release)


ENGINES = ("llvm", "python")
ENGINE_VARIABLE = "ROBOKIT_ENGINE"


def engine() -> str:
    """The engine that the environment asks for: "python" keeps all kernels made from now on from compiling.

    Raises:
        UnknownName: it asks for another.
    """
    wanted = os.environ.get(ENGINE_VARIABLE) or "llvm"
    if wanted not in ENGINES:
        raise UnknownName("engine", wanted, ENGINES, f"(environment variable {ENGINE_VARIABLE})")
    return wanted


class Code:
    """Machine code in memory, and the workspace that its single calls share."""

    def __init__(self, code: bytes, symbol: str, workspace: int) -> None:
        self._loaded, self._symbol = Loaded(code), symbol
        self.workspace = workspace
        self.memory = aligned(workspace)

    def address(self, driver: str) -> int:
        """Address of the driver "single", "iterate" or "batch"."""
        return self._loaded.address(f"{self._symbol}_{driver}")


class Maker:
    """What a kernel is, and its code once made.

    Attributes:
        refused: why there is no machine code (no compiler, text too long, not wanted, not allowed); None as
            long as there may be.
    """

    def __init__(
        self,
        name: str,
        inputs: list[tuple[str, int]],
        outputs: list[tuple[str, tuple[int, ...]]],
        text: Text,
        key: bytes | None,
        quaternions: list[tuple[int, int]],
        feedback: list[tuple[int, int]],
        finite: bool,
        real: Real = DOUBLE,
    ) -> None:
        self._text, self._key, self._real = text, key, real
        self._shape = (name, inputs, outputs, quaternions, feedback, finite)
        self._symbol = "robokit_" + re.sub(r"\W", "_", name, flags=re.ASCII)
        self._lock = MAKING
        self._codes: dict[str, Code] = {}
        self._program: Program | None = None
        self._plan: tuple[Program, Stepped | None] | None = None
        self._counts: dict[str, int] | None = None
        self.refused: str | None = None if engine() == "llvm" else f"{ENGINE_VARIABLE} asks for plain Python"

    def program(self) -> Program:
        """The recorded graph.

        Raises:
            TraceTooLarge: the text is longer than the budget.
        """
        with self._lock:
            if self._program is None:
                self._program = self._record()
            return self._program

    def _record(self, signed: bool = False) -> Program:
        from robokit.engine.trace.record import trace

        _, inputs, outputs, *_ = self._shape
        return trace(self._text, inputs, outputs, NODE_BUDGET, signed)

    def _planned(self) -> tuple[Program, Stepped | None]:
        """The graph to compile, and how to share its repeated iterations if that pays.

        Raises:
            TraceTooLarge: the text or its code is longer than the budgets.
        """
        if self._plan is None:
            program = self.program()
            shared = stepped(program, PIECE)
            if shared is None and len(program.order) > LONG:
                other = self._record(signed=True)
                shared = stepped(other, PIECE)
                program = other if shared else program
            written = shared.written if shared else len(program.order)
            if written > CODE_BUDGET:
                raise TraceTooLarge(f"more than {CODE_BUDGET} operations to compile")
            self._plan = (program, shared) if shared else (fused(program), None)
        return self._plan

    def counts(self) -> dict[str, int]:
        """Operations by name."""
        if self._counts is None:
            self._counts = self.program().counts
        return dict(self._counts)

    def code(self, part: str) -> Code | None:
        """The machine code of a part ("single" or "batch"), None if there can be none."""
        with self._lock:
            if part not in self._codes and self.refused is None:
                try:
                    meta, code = self._find(part)
                    if "refused" in meta:
                        raise TraceTooLarge(meta["refused"])
                    self._codes[part] = Code(code, self._symbol, int(meta["workspace"]))
                except (CompilerMissing, TraceTooLarge) as error:
                    self.refused = str(error)
                    return None
                self._counts = meta["counts"]
                if len(self._codes) == 2:
                    self._program = self._plan = None  # megabytes for a humanoid, and not needed any more
            return self._codes.get(part)

    def _find(self, part: str) -> tuple[dict[str, Any], bytes]:
        """Metadata and object code, from the cache or made now."""
        identity = compile.identity()
        name = None
        sources = (cache.source_digest(), _foreign_source(self._text))
        if self._key is not None and sources[0] and sources[1] is not None:
            settings = (
                compile.vector_width(),
                text.CHUNK,
                text.GROUP,
                text.FITS,
                WORTH,
                PIECE,
                NODE_BUDGET,
                CODE_BUDGET,
            )
            target = (part, compile.vector_width(), self._real.dtype)
            name = cache.digest(identity, *sources, self._key, self._shape, target, settings)
            found = cache.load(name)
            if found is not None:
                return found
        try:
            program, shared = self._planned()
        except TraceTooLarge as error:
            if name is not None:
                cache.store(name, {"kernel": self._shape[0], "part": part, "refused": str(error)}, b"")
            raise
        width = compile.vector_width()
        *_, quaternions, feedback, finite = self._shape
        if part == "single":
            ir, workspace = single_module(program, width, self._symbol, quaternions, feedback, finite, shared)
        else:
            lanes = width * DOUBLE.bytes // self._real.bytes
            ir, workspace = batch_module(
                program, lanes, self._symbol, quaternions, finite, self._real, shared
            )
        if name is None:
            name = cache.digest(identity, ir)
            found = cache.load(name)
            if found is not None:
                return found
        meta = {"kernel": self._shape[0], "part": part, "workspace": workspace, "counts": program.counts}
        code = compile.assemble(ir)
        cache.store(name, meta, code)
        return meta, code


def _foreign_source(text: Text) -> bytes | None:
    """Source file of a text from outside robokit, whose changes the digest of robokit's own cannot see.

    None where the file is not the source of the text that runs.
    """
    path = getattr(getattr(text, "__code__", None), "co_filename", "")
    inside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return b"" if not path or path.startswith(inside) else cache.source_file(path)
