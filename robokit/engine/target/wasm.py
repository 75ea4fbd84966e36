"""Kernels as WebAssembly modules: one state, its arrays at fixed places of a memory of the module's own.

LLVM writes an object file for a linker. The modules are simple: no calls to the outside, no variables, no
table of functions. So its parts need no linking, only other company:

    types, functions, code      as they are
    imports                     dropped: the memory, which is the module's own instead
    exports                     the memory as "memory", the function as "step"
    custom sections             dropped: symbols, relocations, names

A module is kept with where its arrays lie (:class:`Module`). A host calls ``step()`` after it has written the
inputs, and reads the outputs.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from robokit.engine.emit.ir import FLOAT64
from robokit.engine.target import llvm, wasm_code
from robokit.engine.target.target import Loaded, Planned, Target
from robokit.engine.trace.graph import TraceTooLarge

TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+nontrapping-fptoint,+sign-ext"

PAGE = 65536

BUDGET = 250_000
"""Operations that are compiled at most, shared texts counted once: most of a minute."""

TYPE, IMPORT, FUNCTION, MEMORY, EXPORT, CODE, DATA = 1, 2, 3, 5, 7, 10, 11


class NotLinked(Exception):
    """An object file holds what this linker does not know."""


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
        """The compiler's release and what the host must know."""
        return f"{llvm.release()} {TRIPLE} {FEATURES}"

    def write(self, kernel: Planned) -> tuple[str, int]:
        """Text of a kernel, with where its arrays lie in the first line, and the numbers in its memory."""
        from robokit.engine.emit.wasm_module import BASE, CHUNK, wasm_module
        from robokit.engine.passes.regions import regions

        if len(kernel.program.order) > BUDGET:
            raise TraceTooLarge(f"more than {BUDGET} operations to compile for WebAssembly")
        program, plan = kernel.program, regions(kernel.program, CHUNK)
        ins = [*program.inputs, *program.tables]
        outs = [(name, math.prod(shape)) for name, shape in program.outputs]
        layout = {
            "inputs": [
                (n, BASE + 8 * at, size)
                for (n, size), at in zip(ins, [*plan.inputs, *plan.tables], strict=True)
            ],
            "outputs": [(n, BASE + 8 * at, size) for (n, size), at in zip(outs, plan.outputs, strict=True)],
            "bytes": BASE + 8 * (plan.size + 2),
            "constants": [(BASE + 8 * at, value) for value, at in plan.constants.items()],
        }
        return f"; {json.dumps(layout)}\n{wasm_module(program, plan)}", plan.size + 2

    def assemble(self, text: str) -> bytes:
        """The layout and the module, as :func:`unpacked` reads them."""
        head, _, rest = text.partition("\n")
        layout = json.loads(head[2:])
        _, content = llvm.cross(rest, TRIPLE, features=FEATURES)
        module = linked(content, layout["bytes"], layout["constants"])
        meta = json.dumps({"inputs": layout["inputs"], "outputs": layout["outputs"]}).encode()
        return struct.pack("<I", len(meta)) + meta + module

    def load(self, code: bytes) -> Loaded:
        """Not in this process."""
        raise llvm.CompilerMissing("WebAssembly runs in a browser")


WASM = WebAssembly()


def unpacked(code: bytes) -> Module:
    """The module that :meth:`WebAssembly.assemble` made."""
    (length,) = struct.unpack_from("<I", code)
    meta = json.loads(code[4 : 4 + length])
    return Module(code[4 + length :], *(tuple(map(tuple, meta[k])) for k in ("inputs", "outputs")))


def linked(content: bytes, size: int, constants: list[tuple[int, float]]) -> bytes:
    """A module that a host can load, of an object file with one function "step" to the outside.

    Args:
        content: of the object file.
        size: bytes of memory.
        constants: (first byte, value) of numbers that memory starts with.

    Raises:
        NotLinked: the object needs a linker.
    """
    sections = dict(_sections(content))
    names = _imports(sections.get(IMPORT, b"\0"))
    if any(kind != 2 for _, kind in names):
        raise NotLinked(f"the module needs {', '.join(name for name, kind in names if kind != 2)}")
    if DATA in sections:
        raise NotLinked("the module has data of its own")
    index = _function(sections.get(0, b""), "step")
    pages = -(-size // PAGE)
    parts = {
        TYPE: sections[TYPE],
        FUNCTION: sections[FUNCTION],
        MEMORY: _leb(1) + b"\0" + _leb(pages),
        EXPORT: _leb(2) + _name("memory") + b"\2\0" + _name("step") + b"\0" + _leb(index),
        CODE: _shorter(sections[CODE], _parameters(sections[TYPE], sections[FUNCTION])),
        DATA: _data(constants),
    }
    out = b"\0asm" + struct.pack("<I", 1)
    return out + b"".join(bytes([key]) + _leb(len(part)) + part for key, part in parts.items())


def _shorter(part: bytes, parameters: list[int]) -> bytes:
    """The code with variables numbered by use; as it is where there is an instruction that nobody knows."""
    reader, out = _Reader(part), []
    count = reader.number()
    try:
        for k in range(count):
            body = wasm_code.shorter(reader.bytes(reader.number()), parameters[k])
            out += [_leb(len(body)), body]
    except wasm_code.Unknown:
        return part
    return _leb(count) + b"".join(out)


def _parameters(types: bytes, functions: bytes) -> list[int]:
    """How many arguments each function of the module takes."""
    reader, counts = _Reader(types), []
    for _ in range(reader.number()):
        reader.bytes(1)
        counts.append(reader.number())
        reader.bytes(counts[-1])
        reader.bytes(reader.number())
    reader = _Reader(functions)
    return [counts[reader.number()] for _ in range(reader.number())]


def _data(constants: list[tuple[int, float]]) -> bytes:
    """Constants that lie side by side, in one piece."""
    if not constants:
        return _leb(0)
    ordered = sorted(constants)
    first, values = ordered[0][0], [value for _, value in ordered]
    content = struct.pack(f"<{len(values)}d", *values)
    return _leb(1) + b"\0\x41" + _signed(first) + b"\x0b" + _leb(len(content)) + content


# ---- the format --------------------------------------------------------------------------------------


_leb = wasm_code.leb


def _signed(value: int) -> bytes:
    out = b""
    while not -64 <= value < 64:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value & 127])


def _name(text: str) -> bytes:
    return _leb(len(text.encode())) + text.encode()


class _Reader:
    def __init__(self, content: bytes, at: int = 0) -> None:
        self.content, self.at = content, at

    @property
    def more(self) -> bool:
        return self.at < len(self.content)

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.content[self.at - count : self.at]

    def name(self) -> str:
        return self.bytes(self.number()).decode()


def _sections(content: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, content) of the sections; of custom ones only "linking", as number 0."""
    if content[:4] != b"\0asm":
        raise NotLinked("no WebAssembly")
    reader = _Reader(content, 8)
    while reader.more:
        key = reader.bytes(1)[0]
        part = reader.bytes(reader.number())
        if key:
            yield key, part
            continue
        inner = _Reader(part)
        if inner.name() == "linking":
            yield 0, part[inner.at :]


def _imports(part: bytes) -> list[tuple[str, int]]:
    """(name, kind) of what an object file wants: 0 a function, 1 a table, 2 memory, 3 a variable."""
    reader, found = _Reader(part), []
    for _ in range(reader.number()):
        reader.name()
        name, kind = reader.name(), reader.bytes(1)[0]
        if kind == 2:
            flags = reader.number()
            reader.number()
            if flags & 1:
                reader.number()
        found.append((name, kind))
        if kind != 2:
            break  # nothing after it matters
    return found


def _function(part: bytes, wanted: str) -> int:
    """Number of a function, from the table of symbols of the section "linking"."""
    reader = _Reader(part)
    reader.number()  # version
    while reader.more:
        kind, inner = reader.number(), _Reader(reader.bytes(reader.number()))
        for _ in range(inner.number() if kind == 8 else 0):
            symbol, _flags = inner.number(), inner.number()
            if symbol != 0:
                raise NotLinked("a symbol is no function")
            index = inner.number()
            if inner.name() == wanted:
                return index
    raise NotLinked(f"no function {wanted!r}")
