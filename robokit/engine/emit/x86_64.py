"""Instructions of x86-64 with AVX2 and FMA as bytes, for machine_code.py.

An instruction has a VEX prefix of three bytes, an opcode, registers or an address (a register and 32 bits),
and sometimes one byte more (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). A value
of 64 bytes is two registers, r and r + 8.
"""

from __future__ import annotations

import struct

from robokit.engine.emit.ir import FLOAT64, Real, rounded
from robokit.engine.trace import ops

Place = tuple[int, int]
"""In memory: a register and a distance [bytes]."""

RAX, RDX, WORKSPACE, ARGUMENTS, RSI, RDI, FRAME_GIVEN, CONSTANTS, FRAME = 0, 2, 3, 5, 6, 7, 9, 13, 14

POINTERS = 1, RDX, RSI, RDI, 8, 9, 10, 11
"""Registers for the addresses of the caller's arrays."""

NONE = -16
"""In place of an operand that an instruction does not have."""

IN_MEMORY = 16
"""Added to the register of an address."""

LOAD, STORE, MOVE, MASK, LEAST, GREATEST, TO_INTEGER = 0x10, 0x11, 0x28, 0x50, 0x5D, 0x5F, 0x2C

SUM, LESS_SUM, LESS_PRODUCT = 0xB8, 0xBA, 0xBC
"""To what is in the target a product is added, or it is taken from a product, or a product from it."""

ARITHMETIC = {
    ops.MUL: 0x59, ops.ADD: 0x58, ops.SUB: 0x5C, ops.DIV: 0x5E, ops.SQRT: 0x51,
    ops.LT: 0xC2, ops.LE: 0xC2, ops.EQ: 0xC2,
}  # fmt: skip

LOGIC = {ops.AND: 0x54, ops.OR: 0x56, ops.ABS: 0x54, ops.NEG: 0x57, ops.NOT: 0x57}

TAIL = {ops.LT: b"\x01", ops.LE: b"\x02", ops.EQ: b"\x00", ops.FLOOR: b"\x09"}
"""The last byte: which comparison, and to round down."""

ENTER = bytes.fromhex("53 55 41 55 41 56 50 48 89 FB 48 89 F5 4D 89 CE 4C 8D 2D")
"""push rbx, rbp, r13, r14, rax; mov rbx, rdi; mov rbp, rsi; mov r14, r9; lea r13, [rip + 32 bits]."""

LEAVE = bytes.fromhex("C5 F8 77 58 41 5E 41 5D 5D 5B C3")
"""vzeroupper; pop rax, r14, r13, rbp, rbx; ret."""

HAND_ON = bytes.fromhex("48 89 DF 48 89 EE")
"""mov rdi, rbx; mov rsi, rbp."""

ALIGN = 64
"""Of constants and of the code [bytes]."""

OUTSIDE = ALIGN // 8
"""Addresses of functions outside, before the code."""

distance = struct.Struct("<i").pack


def form(opcode: int, pp: int, long: bool = False, opcodes: int = 1, w: bool = False) -> int:
    """An instruction without its operands.

    Args:
        opcode: of the instruction.
        pp: VEX.pp, which tells double from single precision, and all numbers of a register from one.
        long: whether registers have 32 bytes (VEX.L).
        opcodes: which map of opcodes (VEX.mmmmm).
        w: VEX.W.
    """
    return opcode << 16 | opcodes << 8 | w << 7 | long << 2 | pp


class _Beginnings(dict[tuple[int, int, int, int], bytes]):
    """Instructions without address and last byte, made when they are first used.

    By form, target, and first and second operand, which is :data:`IN_MEMORY` and a register for an address.
    """

    def __missing__(self, key: tuple[int, int, int, int]) -> bytes:
        form_of, target, first, second = key
        prefix = (~target & 8) << 4 | 0x40 | (~second & 8) << 2 | form_of >> 8 & 31
        rest = form_of & 0x87 | (~first & 15) << 3
        operands = (0x80 if second >= IN_MEMORY else 0xC0) | (target & 7) << 3 | second & 7
        self[key] = found = bytes((0xC4, prefix, rest, form_of >> 16, operands))
        return found


BEGINNINGS = _Beginnings()

UNPACK = form(0x14, 1), form(0x15, 1)
"""The first numbers of two registers, and the second ones."""


class Forms:
    """The instructions for values of so many lanes."""

    def __init__(self, real: Real, lanes: int) -> None:
        size, double, one = real.bytes * lanes, real is FLOAT64, lanes == 1
        self.lanes, self.bytes, self.halves = lanes, size, size == 64
        long, packed = size >= 32, int(double)
        pp = 2 + double if one else packed
        self.of = {op: form(code, pp, long) for op, code in ARITHMETIC.items()}
        self.of |= {op: form(code, packed, long) for op, code in LOGIC.items()}
        self.of[ops.FLOOR] = form(8 + double + 2 * one, 1, long, 3)
        self.fused = {op: form(op + one, 1, long, 2, double) for op in (SUM, LESS_SUM, LESS_PRODUCT)}
        self.load, self.store = form(LOAD, pp, long), form(STORE, pp, long)
        self.move, self.mask = form(MOVE, packed, long), form(MASK, packed, long)
        self.choose, self.to_integer = form(0x4A + double, 1, long, 3), form(TO_INTEGER, pp)
        self.least, self.greatest = form(LEAST, pp, long), form(GREATEST, pp, long)
        self.same = form(0x19, 1, True, 2) if long else form(0x12, 3)  # a double in every lane
        top = 1 << 8 * real.bytes - 1
        self.masks = {
            op: bits.to_bytes(real.bytes, "little") * (max(16, size) // real.bytes)
            for op, bits in ((ops.NEG, top), (ops.ABS, top - 1), (ops.NOT, 2 * top - 1))
        }


class Bytes:
    """Code and constants of functions that call each other.

    Attributes:
        code: the functions.
        entries: where each of them begins.
    """

    def __init__(self, real: Real) -> None:
        self.code, self.entries = bytearray(), list[int]()
        self._letter = "d" if real is FLOAT64 else "f"
        self._real, self._pool, self._places = real, bytearray(), dict[bytes, int]()
        self._to_constants, self._calls = list[int](), list[tuple[int, int]]()

    def enter(self) -> None:
        """Begin a function."""
        self.code += bytes(-len(self.code) % 16)
        self.entries.append(len(self.code))
        self.code += ENTER
        self._to_constants.append(len(self.code))
        self.code += bytes(4)

    def call(self, function: int) -> None:
        """Call one of the functions, which may come later."""
        self.code += b"\xe8" + bytes(4)
        self._calls.append((len(self.code) - 4, function))

    def call_outside(self, which: int) -> None:
        """Call the function at one of the addresses before the code."""
        self.code += b"\xff\x15"
        self.code += distance(8 * which - ALIGN - len(self.code) - 4)

    def integer(self, opcode: int, register: int, place: Place) -> None:
        """An instruction on 64 bits with a register and a place."""
        base, offset = place
        prefix = 0x48 | register >> 1 & 4 | base >> 3
        self.code += bytes((prefix, opcode, 0x80 | (register & 7) << 3 | base & 7)) + distance(offset)

    def jump_if_zero(self) -> int:
        """A jump to a place that :meth:`land` tells."""
        self.code += b"\x0f\x84" + bytes(4)
        return len(self.code)

    def land(self, jump: int) -> None:
        """Here is where a jump goes."""
        struct.pack_into("<i", self.code, jump - 4, len(self.code) - jump)

    def constant(self, content: bytes) -> Place:
        """Where these bytes are among the constants."""
        found = self._places.get(content)
        if found is None:
            self._pool += bytes(-len(self._pool) % len(content))
            found = self._places[content] = len(self._pool)
            self._pool += content
        return CONSTANTS, found

    def number(self, value: float | tuple[float, ...], lanes: int) -> Place:
        """Where a number is in every lane, or one for each."""
        values = value if isinstance(value, tuple) else (value,) * lanes
        words = (rounded(x, self._real) for x in values)
        return self.constant(struct.pack(f"<{len(values)}{self._letter}", *words))

    def finished(self) -> bytes:
        """All of them, when every distance is known."""
        for place, function in self._calls:
            struct.pack_into("<i", self.code, place, self.entries[function] - place - 4)
        code = self.code + bytes(-len(self.code) % ALIGN)
        for place in self._to_constants:
            struct.pack_into("<i", code, place, len(code) - place - 4)
        return bytes(code + self._pool + bytes(16))  # logic of one number reads 16 bytes
