"""A kernel as a program for Linux on ARM64, which runs under qemu-aarch64: no compiler, linker or library.

LLVM makes one object file of the kernel and of a start function, which reads the arguments from its input,
takes the steps and writes the states. The few relocations of such a file are filled in here.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from robokit.engine import Kernel
from robokit.engine.backend import llvm
from robokit.engine.backend.targets import Planned, Target
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.emit.single_module import single_module

TRIPLE = "aarch64-linux-gnu"
START = 0x400000
READ, WRITE, EXIT = 63, 64, 94

ASK = struct.pack("<6I", 0xAA0003E8, 0xAA0103E0, 0xAA0203E1, 0xAA0303E2, 0xD4000001, 0xD65F03C0)
"""ask(number, file, from, n): mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc 0; ret."""

_MAIN = """
@data = internal global [{size} x i8] zeroinitializer, align 64
@place = internal global [{workspace} x i8] zeroinitializer, align 64
@args = internal global [{count} x ptr] zeroinitializer, align 64
@strides = internal constant [{count1} x i64] [{strides}], align 64
@moves = internal constant [{count} x i64] zeroinitializer, align 64
declare i64 @ask(i64, i64, ptr, i64)
define void @_start() {{
entry:
  br label %read
read:
  %p = phi i64 [0, %entry], [%p1, %read]
  %left = sub i64 {size}, %p
  %at = getelementptr i8, ptr @data, i64 %p
  %got = call i64 @ask(i64 {read}, i64 0, ptr %at, i64 %left)
  %p1 = add i64 %p, %got
  %some = icmp sgt i64 %got, 0
  %more = icmp slt i64 %p1, {size}
  %again = and i1 %some, %more
  br i1 %again, label %read, label %fill
fill:
{fill}
  br label %record
record:
  %r = phi i64 [0, %fill], [%r1, %record]
  {call}
{write}
  %r1 = add i64 %r, 1
  %next = icmp slt i64 %r1, {records}
  br i1 %next, label %record, label %end
end:
  %no = call i64 @ask(i64 {exit}, i64 0, ptr null, i64 0)
  unreachable
}}
"""


class Arm(Target):
    """The text of a kernel for ARM64, single or in lanes."""

    real, lanes, bits = FLOAT64, 1, 128

    def __init__(self, lanes: int) -> None:
        self.lanes, self.name = lanes, f"arm64 of {lanes}"
        self.text = ""

    @property
    def features(self) -> str:
        return TRIPLE

    def write(self, kernel: Planned) -> tuple[str, int]:
        k = kernel
        if self.lanes == 1:
            return single_module(
                k.program,
                2,
                k.symbol,
                k.signature.quaternions,
                k.signature.feedback,
                k.signature.finite,
                k.shared,
                bounds=k.signature.bounds,
            )
        return batch_module(
            k.program,
            self.lanes,
            k.symbol,
            k.signature.quaternions,
            k.signature.finite,
            shared=k.shared,
            bounds=k.signature.bounds,
        )

    def assemble(self, text: str) -> bytes:
        self.text = text
        return text.encode()

    def load(self, code: bytes) -> None:
        raise llvm.CompilerMissing("code of another machine")


def states(
    kernel: Kernel, arguments: list[np.ndarray], every: int, records: int, lanes: int = 1
) -> list[np.ndarray]:
    """The first two outputs after every so many runs of a kernel, (records, rows, n) each.

    Args:
        kernel: whose outputs are fed back.
        arguments: (rows, n) or (n,) of each input and table; one row for lanes = 1.
        every: runs between two records.
        records: how many.
        lanes: 1: one state after the other; 2: two at once.
    """
    signature, target = kernel.signature, Arm(lanes)
    meta, code = kernel._maker.compiled(target)
    outs = [np.zeros((len(arguments[0]) if lanes > 1 else 1, *shape)) for shape in signature.output_shapes]
    rows = len(arguments[0]) if lanes > 1 else 1
    back = dict(signature.feedback)
    places, content = [], bytearray()
    for x in [*arguments, *outs]:
        places.append(len(content))
        content += np.ascontiguousarray(x, "<f8").tobytes()
        content += bytes(-len(content) % 64)
    first = len(arguments)
    tables = len(signature.tables)
    if lanes > 1:  # an output is fed back by giving it the address of its input
        for o, i in back.items():
            places[first + o] = places[i]
    strides = []
    for k, x in enumerate([*arguments, *outs]):
        one = x.ndim == 1 or len(x) == 1 or len(arguments) - tables <= k < len(arguments)
        strides.append(0 if one and rows > 1 else x.nbytes // max(1, len(x)) if x.ndim > 1 else 0)
    symbol = kernel._maker.symbol
    call = f"call i64 @{symbol}_iterate(ptr @args, ptr @place, i64 {every})"
    if lanes > 1:
        call = f"call i64 @{symbol}_passes(ptr @args, ptr @strides, ptr @place, i64 0, i64 {rows}, "
        call += f"i64 {every}, ptr @moves)"
    fill = []
    for k, place in enumerate(places):
        fill.append(f"  %d{k} = getelementptr i8, ptr @data, i64 {place}")
        fill.append(f"  %a{k} = getelementptr ptr, ptr @args, i64 {k}")
        fill.append(f"  store ptr %d{k}, ptr %a{k}, align 8")
    write, sizes = [], []
    for o in (0, 1):
        sizes.append(outs[o].nbytes)
        write.append(f"  %w{o} = call i64 @ask(i64 {WRITE}, i64 1, ptr %d{back[o]}, i64 {sizes[-1]})")
    main = _MAIN.format(
        size=len(content), workspace=8 * int(meta["workspace"]) + 64, count=len(places),
        count1=len(places) + 1, strides=", ".join(f"i64 {s}" for s in [*strides, 0]),
        read=READ, exit=EXIT, fill="\n".join(fill), call=f"%s = {call}", write="\n".join(write),
        records=records,
    )  # fmt: skip
    assembly, object_file = llvm.cross(code.decode() + main, TRIPLE)
    assert not any(
        f"\t{word}\t" in assembly for word in ("fmadd", "fmsub", "fnmsub", "fnmadd", "fmla", "fmls")
    )
    with tempfile.TemporaryDirectory() as folder:
        program, given, out = (Path(folder) / name for name in ("program", "given", "out"))
        program.write_bytes(linked(object_file))
        program.chmod(0o755)
        given.write_bytes(content)
        with given.open("rb") as stdin, out.open("wb") as stdout:
            subprocess.run(
                ["qemu-aarch64", str(program)], stdin=stdin, stdout=stdout, check=True, timeout=600
            )
        found = np.frombuffer(out.read_bytes(), "<f8").reshape(records, -1)
    split = sizes[0] // 8
    return [
        found[:, :split].reshape(records, *outs[0].shape),
        found[:, split:].reshape(records, *outs[1].shape),
    ]


_SECTION = struct.Struct("<IIQQQQIIQQ")


def linked(content: bytes) -> bytes:
    """A program of one object file whose start is ``_start``: one segment, everything in it."""
    (first,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    assert size == _SECTION.size and content[:6] == b"\x7fELF\x02\x01"
    sections = [_SECTION.unpack_from(content, first + k * size) for k in range(count)]
    image, place = bytearray(64 + 56) + ASK, dict[int, int]()
    wanted = [k for k, s in enumerate(sections) if s[2] & 2 and s[1] in (1, 8) and s[5]]
    end = 0
    for k in sorted(wanted, key=lambda k: sections[k][1]):  # zeros last
        _, kind, _, _, offset, length, _, _, align, _ = sections[k]
        at = -(-max(len(image), end) // max(align, 16)) * max(align, 16)
        place[k] = at
        if kind == 1:
            image += bytes(at - len(image)) + content[offset : offset + length]
        end = at + length
    symbols = []
    start = 0
    for s in sections:
        if s[1] == 2:
            names = sections[s[6]][4]
            for at in range(s[4], s[4] + s[5], 24):
                name, _, _, index, value, _ = struct.unpack_from("<IBBHQQ", content, at)
                text = content[names + name : content.index(b"\0", names + name)]
                symbols.append(place.get(index, -START) + START + value)
                if text == b"ask":
                    symbols[-1] = START + 64 + 56
                elif text == b"_start":
                    start = symbols[-1]
    for s in sections:
        if s[1] == 4 and s[7] in place:
            for at in range(s[4], s[4] + s[5], 24):
                offset, kind, symbol, addend = struct.unpack_from("<QIIq", content, at)
                _connect(image, place[s[7]] + offset, kind, symbols[symbol] + addend)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01", 2, 183, 1, start, 64, 0, 0, 64, 56, 1, 64, 0, 0,
    )  # fmt: skip
    segment = struct.pack("<IIQQQQQQ", 1, 7, 0, START, START, len(image), max(end, len(image)), 0x1000)
    image[: len(header) + len(segment)] = header + segment
    return bytes(image)


def _connect(image: bytearray, at: int, kind: int, target: int) -> None:
    """Fill in one relocation ("ELF for the Arm 64-bit Architecture", section 5.7)."""
    here = START + at
    (word,) = struct.unpack_from("<I", image, at)
    if kind == 257:  # ABS64
        struct.pack_into("<Q", image, at, target)
        return
    if kind == 261:  # PREL32
        struct.pack_into("<i", image, at, target - here)
        return
    if kind == 275:  # ADR_PREL_PG_HI21
        pages = (target >> 12) - (here >> 12)
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind in (
        277,
        278,
        284,
        285,
        286,
        299,
    ):  # the low twelve bits, of an addition, or of a load of 2^n bytes
        word |= ((target & 0xFFF) >> {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}[kind]) << 10
    elif kind in (282, 283):  # JUMP26, CALL26
        word |= (target - here) >> 2 & 0x3FFFFFF
    else:
        raise AssertionError(f"relocation {kind}")
    struct.pack_into("<I", image, at, word)
