"""Kernels as WebAssembly modules: one state, its arrays at fixed places of a memory of the module's own.

No compiler takes part. A browser compiles what it is given anew, so a translation of the recorded line is as
fast as what LLVM writes; it is made ten times sooner and is little more than half as long.

    types, functions        by arguments and results
    imports                 "zero" of "start": the number 0
    memory, globals         the arrays; what outlives a function (wasm_code.py)
    exports                 the memory as "memory", the function as "step"
    code                    emit/wasm_module.py writes it as text, wasm_code.py as bytes

A module is kept with where its arrays lie (:class:`Module`). A host calls ``step()`` after it has written the
inputs, and reads the outputs.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass

from robokit.engine.emit.ir import FLOAT64
from robokit.engine.target import wasm_code
from robokit.engine.target.llvm import CompilerMissing
from robokit.engine.target.targets import Loaded, Planned, Target
from robokit.engine.target.wasm_code import F64, leb
from robokit.engine.trace.graph import TraceTooLarge

PAGE = 65536

BUDGET = 400_000
"""Operations that are written at most, shared texts counted once: two megabytes."""

TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, CODE = 1, 2, 3, 5, 6, 7, 10


@dataclass(frozen=True)
class Module:
    """A kernel as WebAssembly.

    Attributes:
        content: of the file.
        inputs, outputs: (name, first byte, numbers) of each array of float64; tables are among the inputs.
    """

    content: bytes
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

    def write(self, kernel: Planned) -> tuple[str, int]:
        """Text of a kernel, with where its arrays lie in the first line, and how many places it has."""
        from robokit.engine.emit.wasm_module import CHUNK, wasm_module
        from robokit.engine.passes.regions import regions

        if len(kernel.program.order) > BUDGET:
            raise TraceTooLarge(f"more than {BUDGET} operations to write as WebAssembly")
        program, plan = kernel.program, regions(kernel.program, CHUNK)
        ins = [*program.inputs, *program.tables]
        outs = [(name, math.prod(shape)) for name, shape in program.outputs]
        starts = [*plan.inputs, *plan.tables], plan.outputs
        layout = {
            "inputs": [(n, 8 * at, size) for (n, size), at in zip(ins, starts[0], strict=True)],
            "outputs": [(n, 8 * at, size) for (n, size), at in zip(outs, starts[1], strict=True)],
            "arrays": sum(size for _, size in (*ins, *outs)),
        }
        return f"; {json.dumps(layout)}\n{wasm_module(program, plan)}", plan.size

    def assemble(self, text: str) -> bytes:
        """The layout and the module, as :func:`unpacked` reads them."""
        head, _, rest = text.partition("\n")
        layout = json.loads(head[2:])
        module = module_of(rest, layout["arrays"])
        meta = json.dumps({"inputs": layout["inputs"], "outputs": layout["outputs"]}).encode()
        return struct.pack("<I", len(meta)) + meta + module

    def load(self, code: bytes) -> Loaded:
        """Not in this process."""
        raise CompilerMissing("WebAssembly runs in a browser")


WASM = WebAssembly()


def unpacked(code: bytes) -> Module:
    """The module that :meth:`WebAssembly.assemble` made."""
    (length,) = struct.unpack_from("<I", code)
    meta = json.loads(code[4 : 4 + length])
    return Module(code[4 + length :], *(tuple(map(tuple, meta[k])) for k in ("inputs", "outputs")))


def module_of(text: str, arrays: int) -> bytes:
    """A module that a host can load, of a text with a function "step".

    Args:
        text: as of emit/wasm_module.py.
        arrays: places of inputs, tables and outputs, which come first.
    """
    found = wasm_code.functions(text)
    bodies, storage = wasm_code.assembled(found, arrays)
    kinds = [(len(each.parameters), each.results) for each in found]
    types = sorted(set(kinds))
    step = next(k for k, each in enumerate(found) if each.name == "step")
    numbers = bytes([F64])
    parts = {
        TYPE: [b"\x60" + leb(a) + numbers * a + leb(b) + numbers * b for a, b in types],
        IMPORT: [_name("start") + _name("zero") + b"\3" + bytes([F64, 0])],
        FUNCTION: [leb(types.index(kind)) for kind in kinds],
        MEMORY: [b"\0" + leb(max(1, -(-storage.size // PAGE)))],
        GLOBAL: storage.declared(),
        EXPORT: [_name("memory") + b"\2\0", _name("step") + b"\0" + leb(step)],
        CODE: [leb(len(body)) + body for body in bodies],
    }
    out = b"\0asm" + struct.pack("<I", 1)
    for key, part in parts.items():
        content = leb(len(part)) + b"".join(part)
        out += bytes([key]) + leb(len(content)) + content
    return out


def _name(text: str) -> bytes:
    return leb(len(text.encode())) + text.encode()
