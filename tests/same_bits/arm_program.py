"""The step of a fall as a program for Linux on ARM64, which runs under qemu-aarch64: no compiler or library.

LLVM makes one object file of the step's kernel and of a start function, which reads the arrays from its
input, takes the steps and writes the states. The few relocations of such a file are filled in here.
"""

from __future__ import annotations

import math
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from robokit.contact.step import step_kernel
from robokit.engine.backend import llvm
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.loops.emit import ENVIRONMENT, HEADER
from robokit.sim.steppers import ContactState

TRIPLE = "aarch64-linux-gnu"
START = 0x400000
READ, WRITE, EXIT = 63, 64, 94
BLOCK = 1 << 22  # bytes that a step may take for arrays of its own

ASK = struct.pack("<6I", 0xAA0003E8, 0xAA0103E0, 0xAA0203E1, 0xAA0303E2, 0xD4000001, 0xD65F03C0)
"""ask(number, file, from, n): mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc 0; ret."""

_MAIN = """
@data = internal global [{size} x i8] zeroinitializer, align 64
@work = internal global [{work} x i8] zeroinitializer, align 64
@block = internal global [{block} x i8] zeroinitializer, align 64
@args = internal global [{count} x ptr] zeroinitializer, align 64
@places = internal global [{arrays} x ptr] zeroinitializer, align 64
@env = internal global [{words} x ptr] zeroinitializer, align 64
@context = internal global [3 x ptr] zeroinitializer, align 64
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
  %done = call i64 @{name}_single(ptr @args, ptr @env, i64 {every})
  %w0 = call i64 @ask(i64 {write}, i64 1, ptr {q}, i64 {bytes_q})
  %w1 = call i64 @ask(i64 {write}, i64 1, ptr {v}, i64 {bytes_v})
  %r1 = add i64 %r, 1
  %next = icmp slt i64 %r1, {records}
  br i1 %next, label %record, label %end
end:
  %no = call i64 @ask(i64 {exit}, i64 0, ptr null, i64 0)
  unreachable
}}
"""


class _Fill:
    """Stores of addresses, which the start function makes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def address(self, name: str, place: int) -> str:
        """Of a byte of a global."""
        self.lines.append(f"  %d{len(self.lines)} = getelementptr i8, ptr @{name}, i64 {place}")
        return f"%d{len(self.lines) - 1}"

    def store(self, value: str, name: str, k: int) -> None:
        """Into word k of a global."""
        at = self.address(name, 8 * k)
        self.lines.append(f"  store ptr {value}, ptr {at}, align 8")


def states(simulation: ContactState, every: int, records: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v after every so many steps, (records, n) each.

    Args:
        simulation: a state, with arrays that are large enough for all of them.
        every: steps.
        records: how many.
    """
    kernel, sizes, fill = step_kernel(True), simulation.sizes, _Fill()
    content, place = bytearray(), dict[str, int]()

    def put(name: str, x: np.ndarray) -> None:
        place[name] = len(content)
        content.extend(np.ascontiguousarray(x).tobytes())
        content.extend(bytes(-len(content) % 64 + 64))  # an empty array's first element is read, too

    for a in kernel.taken:
        put(a.name, simulation.arrays[a.name])
    put(" sizes", np.array([sizes[name] for name in kernel.sizes], np.int32))
    lengths = [math.prod(a.at(sizes)) for a in kernel.arrays]
    put(" lengths", np.array(lengths, np.int64))
    for k, a in enumerate(kernel.taken):
        fill.store(fill.address("data", place[a.name]), "args", k)
    work = 0
    for k, (a, n) in enumerate(zip(kernel.arrays, lengths, strict=True)):
        if a.role == "work":
            fill.store(fill.address("work", work), "places", k)
            work += 8 * (n + 8)
    words = {"sizes": ("data", place[" sizes"]), "lengths": ("data", place[" lengths"])}
    words |= {"places": ("places", 0), "context": ("context", 0)}
    for k, word in enumerate(ENVIRONMENT):
        if word in words:
            fill.store(fill.address(*words[word]), "env", k)
    fill.store(fill.address("block", 0), "context", 2)
    fill.store(fill.address("block", BLOCK), "block", 1)
    q, v = (fill.address("data", place[name]) for name in ("q", "v"))
    nq, nv = (len(simulation.arrays[name]) for name in ("q", "v"))
    main = _MAIN.format(
        size=len(content), work=work + 64, block=BLOCK + HEADER, count=len(kernel.taken), name=kernel.name,
        arrays=len(kernel.arrays), words=len(ENVIRONMENT), read=READ, write=WRITE, exit=EXIT, every=every,
        fill="\n".join(fill.lines), q=q, v=v, bytes_q=8 * nq, bytes_v=8 * nv, records=records,
    )  # fmt: skip
    assembly, object_file = llvm.cross(kernel.text(1, FLOAT64) + main, TRIPLE)
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
        found = np.frombuffer(out.read_bytes(), "<f8").reshape(records, nq + nv)
    return found[:, :nq], found[:, nq:]


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
