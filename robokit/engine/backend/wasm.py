"""Kernels as WebAssembly modules: one state, its arrays at fixed places of a memory of the module's own.

No compiler takes part. A browser compiles what it is given anew, so a translation of the recorded line is as
fast as what LLVM writes; it is made ten times sooner and is little more than half as long.

emit/wasm_module.py writes its functions, emit/wasm_code.py the module, which imports "zero" of "start", the
number 0, and exports "memory" and "step".

A module is kept with where its arrays lie (:class:`Module`). A host calls ``step()`` after it has written the
inputs, and reads the outputs.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass

from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.backend.targets import Loaded, Planned, Target
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.emit.wasm_code import module
from robokit.engine.trace.graph import TraceTooLarge

BUDGET = 400_000
"""Operations that are written at most, shared functions counted once: two megabytes."""


@dataclass(frozen=True)
class Module:
    """A kernel as WebAssembly."""

    content: bytes  # of the file
    # inputs, outputs: (name, first byte, numbers) of each array of float64; tables are among the inputs
    inputs: tuple[tuple[str, int, int], ...]
    outputs: tuple[tuple[str, int, int], ...]


class WebAssembly(Target):
    """A browser, or another host of WebAssembly."""

    name = "wasm"
    real = FLOAT64
    shares = True
    lanes = 1
    bits = 64

    @property
    def features(self) -> str:
        """What the host must know."""
        return "multi-value"

    def write(self, kernel: Planned) -> tuple[bytes, int]:
        """The module and where its arrays lie, as :func:`unpacked` reads them, and how many places it has."""
        from robokit.engine.emit.wasm_module import CHUNK, regions, wasm_functions

        if len(kernel.program.order) > BUDGET:
            raise TraceTooLarge(f"more than {BUDGET} operations to write as WebAssembly")
        program, plan = kernel.program, regions(kernel.program, CHUNK)
        ins = [*program.inputs, *program.tables]
        outs = [(name, math.prod(shape)) for name, shape in program.outputs]
        starts = [*plan.inputs, *plan.tables], plan.outputs
        layout = {
            "inputs": [(n, 8 * at, size) for (n, size), at in zip(ins, starts[0], strict=True)],
            "outputs": [(n, 8 * at, size) for (n, size), at in zip(outs, starts[1], strict=True)],
        }
        arrays = sum(size for _, size in (*ins, *outs))
        meta = json.dumps(layout).encode()
        content = module(wasm_functions(program, plan), ["step"], arrays)
        return struct.pack("<I", len(meta)) + meta + content, plan.size

    def assemble(self, text: bytes) -> bytes:
        """The same."""
        return text

    def load(self, code: bytes) -> Loaded:
        """Not in this process."""
        raise CompilerMissing("WebAssembly runs in a browser")


WASM = WebAssembly()


def unpacked(code: bytes) -> Module:
    """The module that :meth:`WebAssembly.write` made."""
    (length,) = struct.unpack_from("<I", code)
    meta = json.loads(code[4 : 4 + length])
    return Module(code[4 + length :], *(tuple(map(tuple, meta[k])) for k in ("inputs", "outputs")))
