"""Writes straight lines of operations as machine code, without a compiler.

This is the code of first calls. It follows the plan of the code that LLVM makes (straight_line.py), with one
instruction for each operation, so it has the same bits. A chunk is a function with the same parameters, with

    rbx  the workspace        r13  the constants, which follow the code
    rbp  the arguments        r14  the frame of a call

A value is in a register until that is wanted for another one. The one that is read last goes to memory then,
and is read from there. Around calls and at the ends of guarded blocks, all values are in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from robokit.engine.emit.ir import FLOAT64, Real, rounded, vector
from robokit.engine.passes.order import Path, contractions, last_reads
from robokit.engine.passes.schedule import Copy, Plan
from robokit.engine.trace import ops
from robokit.engine.trace.graph import LANES, Program
from robokit.engine.trace.record import called
from robokit.engine.trace.record import lane as lane_of
from robokit.engine.trace.record import position as result_of

# -- Instructions ----------------------------------------------------------------------------------------
#
# Instructions of x86-64 with AVX2 and FMA as bytes, for machine_code.py.
#
# An instruction has a VEX prefix of three bytes, an opcode, registers or an address (a register and 32
# bits), and sometimes one byte more (Intel 64 and IA-32 Architectures Software Developer's Manual, volume
# 2). A value of 64 bytes is two registers, r and r + 8.

Place = tuple[int, int]  # in memory: a register and a distance [bytes]

RAX, RDX, WORKSPACE, ARGUMENTS, RSI, RDI, FRAME_GIVEN, CONSTANTS, FRAME = 0, 2, 3, 5, 6, 7, 9, 13, 14

POINTERS = 1, RDX, RSI, RDI, 8, 9, 10, 11  # registers for the addresses of the caller's arrays
NONE = -16  # in place of an operand that an instruction does not have
IN_MEMORY = 16  # added to the register of an address

LOAD, STORE, MOVE, MASK = 0x10, 0x11, 0x28, 0x50

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

LEAVE = bytes.fromhex("C5 F8 77 58 41 5E 41 5D 5D 5B C3")  # vzeroupper; pop rax, r14, r13, rbp, rbx; ret
HAND_ON = bytes.fromhex("48 89 DF 48 89 EE")  # mov rdi, rbx; mov rsi, rbp
ALIGN = 64  # of constants and of the code [bytes]
OUTSIDE = ALIGN // 8  # addresses of functions outside, before the code

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

UNPACK = form(0x14, 1), form(0x15, 1)  # the first numbers of two registers, and the second ones


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
        self.choose = form(0x4A + double, 1, long, 3)
        self.same = form(0x19, 1, True, 2) if long else form(0x12, 3)  # a double in every lane
        top = 1 << 8 * real.bytes - 1
        self.masks = {
            op: bits.to_bytes(real.bytes, "little") * (max(16, size) // real.bytes)
            for op, bits in ((ops.NEG, top), (ops.ABS, top - 1), (ops.NOT, 2 * top - 1))
        }


class Bytes:
    """Code and constants of functions that call each other.

    ``code``: the functions; ``entries``: where each of them begins.
    """

    def __init__(self, real: Real) -> None:
        self.code, self.entries = bytearray(), list[int]()
        self._letter = "d" if real is FLOAT64 else "f"
        self._real, self._pool, self._places = real, bytearray(), dict[bytes, int]()
        self._to_constants, self._calls = list[int](), list[tuple[int, int]]()

    def enter(self) -> None:
        """Begin a new function."""
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
        """Append an instruction on 64 bits with a register and an operand in memory or a register."""
        base, offset = place
        prefix = 0x48 | register >> 1 & 4 | base >> 3
        self.code += bytes((prefix, opcode, 0x80 | (register & 7) << 3 | base & 7)) + distance(offset)

    def jump_if_zero(self) -> int:
        """Append a jump to a target that :meth:`land` sets later."""
        self.code += b"\x0f\x84" + bytes(4)
        return len(self.code)

    def land(self, jump: int) -> None:
        """Set the target of a jump to the present position."""
        struct.pack_into("<i", self.code, jump - 4, len(self.code) - jump)

    def constant(self, content: bytes) -> Place:
        """Place of these bytes among the constants."""
        found = self._places.get(content)
        if found is None:
            self._pool += bytes(-len(self._pool) % len(content))
            found = self._places[content] = len(self._pool)
            self._pool += content
        return CONSTANTS, found

    def number(self, value: float | tuple[float, ...], lanes: int) -> Place:
        """Place of a constant, the same in every lane or one for each."""
        values = value if isinstance(value, tuple) else (value,) * lanes
        words = (rounded(x, self._real) for x in values)
        return self.constant(struct.pack(f"<{len(values)}{self._letter}", *words))

    def finished(self) -> bytes:
        """Code and constants, once all distances are known."""
        for place, function in self._calls:
            struct.pack_into("<i", self.code, place, self.entries[function] - place - 4)
        code = self.code + bytes(-len(self.code) % ALIGN)
        for place in self._to_constants:
            struct.pack_into("<i", code, place, len(code) - place - 4)
        return bytes(code + self._pool + bytes(16))  # logic of one number reads 16 bytes


# -- Straight lines --------------------------------------------------------------------------------------

At = int | Place  # where a value is: a register of vectors, or a place in memory
Fixed = tuple[int, int, float, int]  # of a constant: output, position, value, how often it stands there

SINES = """define internal void @sines_at_{lanes}(ptr %from, ptr %sin, ptr %cos) #0 {{
  %x = load {t}, ptr %from, align {align}
  %both = call {{{t}, {t}}} @{name}({t} %x)
  %s = extractvalue {{{t}, {t}}} %both, 0
  %c = extractvalue {{{t}, {t}}} %both, 1
  store {t} %s, ptr %sin, align {align}
  store {t} %c, ptr %cos, align {align}
  ret void
}}
"""
"""Sines and cosines in memory."""


class MachineCode:
    """Writes the chunks of a plan."""

    def __init__(
        self, program: Program, plan: Plan, direct: bool, real: Real, fused: bool,
        targets: Mapping[int, Sequence[tuple[int, int]]],
    ) -> None:  # fmt: skip
        """As of :class:`~robokit.engine.emit.straight_line.ChunkWriter`, and where values are outputs."""
        self.program, self.plan, self.direct, self.real, self.fused = program, plan, direct, real, fused
        self.targets, self.bytes, self.unit = targets, Bytes(real), real.bytes * plan.lanes
        self.body, self._forms = program.bodies(), dict[int, Forms]()
        self.sines: list[int] = []
        self.spills = self.top = -(-plan.slots * self.unit // ALIGN) * ALIGN

    def chunk(self, index: int) -> None:
        """Write a chunk of the plan."""
        number = self.plan.block_of.get(index)
        if number is not None and index - 1 not in self.plan.block_of:
            self.spills = self.top  # bodies are called in the midst of other chunks
        lanes = 1 if number is None else self.program.blocks[number].lanes
        Function(self, lanes if lanes > 1 else self.plan.lanes, lanes > 1).straight(self.plan.chunks[index])

    def outputs(self, passed: Sequence[int], fixed: Sequence[Fixed]) -> None:
        """Write a function for the outputs that no chunk computes."""
        function, first = Function(self, self.plan.lanes, False), self.program.first_output
        for number in passed:
            value = function.loaded(number, 1)
            for k, position in self.targets[number]:
                function.emit(function.own.store, value, NONE, function.array(first + k, position))
        for k, start, constant, count in fixed:
            forms = self.forms(min(count, 4))
            function.emit(forms.load, function.scratch, NONE, self.bytes.number(constant, forms.lanes))
            for at in range(start, start + count, forms.lanes):
                function.emit(forms.store, function.scratch, NONE, function.array(first + k, at))
        self.bytes.code += LEAVE

    def functions(self) -> list[str]:
        """All functions, chunk0 and so on, in LLVM's language. The plan gets the memory that they need.

        The bytes stand before a function that nobody calls, in the section of code.
        """
        content = self.bytes.finished()
        self.plan.slots = -(-self.top // self.unit) + ALIGN // self.unit
        outside = [f"ptr @sines_at_{lanes}" for lanes in self.sines]
        outside += ["ptr null"] * (OUTSIDE - len(outside))
        types = f"[{OUTSIDE} x ptr]", f"[{len(content)} x i8]"
        escaped = "\\" + content.hex("\\")
        value = f'<{{ {types[0]} [{", ".join(outside)}], {types[1]} c"{escaped}" }}>'
        kind = f"<{{ {', '.join(types)} }}>"
        heading = f"define internal void @code() #0 align {ALIGN} prologue {kind} {value}"
        before = [f"{heading} {{\n  unreachable\n}}\n"]
        for lanes in self.sines:
            name = "sincos" if lanes == self.plan.lanes else f"sincos_{lanes}"
            t = vector(lanes, self.real.kind)
            before.append(SINES.format(lanes=lanes, name=name, t=t, align=self.real.bytes))
        texts = [
            f"@chunk{k} = internal alias i8, ptr getelementptr (i8, ptr @code, i64 {ALIGN + place})\n"
            for k, place in enumerate(self.bytes.entries)
        ]
        return ["".join(before) + texts[0], *texts[1:]] if texts else []

    def forms(self, lanes: int) -> Forms:
        """The instructions for values of so many lanes."""
        if lanes not in self._forms:
            self._forms[lanes] = Forms(self.real, lanes)
        return self._forms[lanes]

    def sine_of(self, lanes: int) -> int:
        """Which of the functions outside computes sines and cosines in so many lanes."""
        if lanes not in self.sines:
            self.sines.append(lanes)
        return self.sines.index(lanes)


class Function:
    """Writes one function.

    ``own``: instructions for most of its values; ``scratch``: the register for what is needed at once.
    """

    def __init__(self, code: MachineCode, lanes: int, columns: bool) -> None:
        """A function whose values have so many lanes; with columns, those of the bodies alone."""
        self.whole, self.bytes, self.program, self.plan = code, code.bytes, code.program, code.plan
        self.own, self.columns = code.forms(lanes), columns
        self.vectors: Mapping[int, int] = code.body if columns else dict.fromkeys(code.program.wide, LANES)
        self.halves = self.own.halves
        self.scratch = 7 if self.halves else 15
        self.home: dict[int, Place] = {}
        self.made: set[int] = set()
        self.pinned: set[int] = set()
        self.last: dict[int, int] = {}
        self.pairs: dict[int, tuple[Place, Place]] = {}
        self.branches: list[tuple[int, dict[int, tuple[Place, Place]]]] = []
        self.spilled = code.spills
        self.widest = max(self.own.bytes, LANES * code.real.bytes if code.program.wide else 0)
        self.register: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.pointers: dict[int, int] = {}
        self.free, self.turn = list(range(self.scratch)), 0
        self.bytes.enter()

    # -- instructions ----------------------------------------------------------------------------

    def emit(self, form: int, target: int, first: int, second: At, tail: bytes = b"") -> None:
        """Append an instruction; two for values of two registers."""
        code = self.bytes.code
        if second.__class__ is int:
            code += BEGINNINGS[form, target, first, second] + tail  # type: ignore[index]
        else:
            base, offset = second  # type: ignore[misc]
            code += BEGINNINGS[form, target, first, base + IN_MEMORY] + distance(offset) + tail
        if self.halves:
            self.halves = False
            above = second + 8 if isinstance(second, int) else (second[0], second[1] + 32)
            self.emit(form, target + 8, first if first == NONE else first + 8, above, tail)
            self.halves = True

    def array(self, k: int, position: int) -> Place:
        """Address of a number of one of the caller's arrays."""
        register = self.pointers.get(k)
        if register is None:
            register = POINTERS[self.turn % len(POINTERS)]
            self.turn += 1
            for other in [other for other, r in self.pointers.items() if r == register]:
                del self.pointers[other]
            self.pointers[k] = register
            self.bytes.integer(0x8B, register, (ARGUMENTS, 8 * k))  # mov
        return register, 8 * position

    # -- where values are ------------------------------------------------------------------------

    def forms_for(self, number: int) -> Forms:
        """The instructions for a value of so many lanes."""
        if not self.vectors or self.columns:
            return self.own
        return self.whole.forms(LANES) if number in self.vectors else self.own

    def slot(self, place: int) -> Place:
        """Address of a slot of the workspace."""
        return WORKSPACE, place * self.whole.unit

    def in_memory(self, number: int, lanes: int) -> Place:
        """Address of a value that is in no register."""
        node = self.program.nodes[number]
        if node[0] == ops.CONST:
            return self.bytes.number(node[1], lanes)
        if node[0] == ops.INPUT and self.whole.direct:
            return self.array(node[1], node[2])
        within = self.plan.frames.within.get(number)
        if within is not None:
            return FRAME, within * self.whole.unit
        self.home[number] = place = WORKSPACE, self.plan.slot[number] * self.whole.unit
        return place

    def at(self, number: int, lanes: int) -> At:
        """Where a value is, as an operand of so many lanes."""
        register = self.register.get(number)
        if self.vectors:
            if lanes > 1 and number not in self.vectors and self.program.nodes[number][0] != ops.CONST:
                register = self.in_all(number, register)
            if register is not None:
                self.pinned.add(register)
        if register is not None:
            return register
        return self.home.get(number) or self.in_memory(number, lanes)

    def in_all(self, number: int, register: int | None) -> int:
        """A register with a number in every lane; it is known as minus the node."""
        found = self.register.get(-number)
        if found is None:
            source: At = register or 0
            if register is None:
                source = self.home.get(number) or self.in_memory(number, 1)
            else:
                self.pinned.add(register)
            found = self.take()
            form = self.own.same if self.columns else self.whole.forms(LANES).same
            halves, self.halves = self.halves, False  # both have the same
            for half in (found, found + 8) if halves else (found,):
                self.emit(form, half, NONE, source)
            self.halves = halves
            self.hold(found, -number)
            self.last[-number] = self.last.get(number, -1)
        return found

    def loaded(self, number: int, lanes: int) -> int:
        """The register of a value, or the one for what is needed at once."""
        at = self.at(number, lanes)
        if isinstance(at, int):
            return at
        self.emit(self.whole.forms(lanes).load, self.scratch, NONE, at)
        return self.scratch

    def resident(self, number: int, lanes: int) -> int:
        """The register that holds a value from now on; it is not reused for another operand meanwhile."""
        at = self.at(number, lanes)
        if not isinstance(at, int):
            place, at = at, self.take()
            self.emit(self.whole.forms(lanes).load, at, NONE, place)
            if self.program.nodes[number][0] != ops.CONST:
                self.hold(at, number)
        self.pinned.add(at)
        return at

    def hold(self, register: int, number: int) -> None:
        """Note the place of a value."""
        self.register[number], self.held[register] = register, number

    def take(self) -> int:
        """A register for a value; what is in it is kept in memory."""
        if self.free:
            return self.free.pop()
        last, held = self.last, self.held
        register = max(held.keys() - self.pinned, key=lambda r: last[held[r]])
        number = held.pop(register)
        self.keep(number, register)
        del self.register[number]
        return register

    def keep(self, number: int, register: int) -> None:
        """Make sure that a value is in memory."""
        if number in self.made and number not in self.home:
            self.home[number] = place = self.spill()
            self.emit(self.forms_for(number).store, register, NONE, place)

    def spill(self) -> Place:
        """A new place in memory for a value."""
        place = self.spilled
        self.spilled += self.widest
        self.whole.top = max(self.whole.top, self.spilled)
        return WORKSPACE, place

    def release(self, operands: Sequence[int], position: int) -> None:
        """Give back the registers of values that are read here for the last time."""
        register, last = self.register, self.last
        for operand in operands:
            if last[operand] == position:
                if operand in register:
                    self.free.append(register.pop(operand))
                    del self.held[self.free[-1]]
                if -operand in register:
                    self.free.append(register.pop(-operand))
                    del self.held[self.free[-1]]

    def spill_all(self) -> None:
        """All values to memory; nothing is in registers then."""
        for register, number in self.held.items():
            self.keep(number, register)
        for each in (self.register, self.held, self.pointers):
            each.clear()
        self.free[:] = range(self.scratch)

    # -- operations ------------------------------------------------------------------------------

    def straight(self, chunk: Sequence[int]) -> None:
        """Write the nodes of a chunk."""
        nodes, plan, inside = self.program.nodes, self.plan, self.plan.inside
        targets = {} if self.columns else self.whole.targets
        sums = dict[int, int]()
        if self.whole.fused:
            kept = {n for n in chunk if n in plan.stored or n in targets}
            sums = contractions(self.program, chunk, kept, inside)
        products = set(sums.values())
        self.last = last = last_reads(self.program, chunk, sums, inside)
        here: Path = ()
        for position, number in enumerate(chunk):
            path = inside.get(number, ()) if inside else ()
            if path != here:
                self.go(here, path)
                here = path
            if number in products:
                continue
            if self.pinned:
                self.pinned = set()
            forms = self.forms_for(number) if self.vectors else self.own
            if number in sums:
                register = self.fused(number, sums[number], forms, position)
            elif nodes[number][0] <= ops.DIV:
                register = self.arithmetic(nodes[number], forms, position)
            elif nodes[number][0] == ops.CALL:
                self.call(number, position)
                continue
            elif number in plan.copies:
                self.copy(plan.copies[number])
                continue
            else:
                register = self.computed(number, forms, position)
            self.made.add(number)
            if number in plan.stored or number in targets:
                self.store(number, register, forms, targets.get(number, ()))
            if last.get(number, -1) > position:
                self.hold(register, number)
            else:
                self.free.append(register)
        self.go(here, ())
        self.bytes.code += LEAVE

    def store(self, number: int, register: int, forms: Forms, targets: Sequence[tuple[int, int]]) -> None:
        """Store a value in the workspace, if it has a place there, and where it is an output."""
        if number in self.plan.stored:
            self.home[number] = place = self.in_memory(number, 1)
            self.emit(forms.store, register, NONE, place)
        for k, at in targets:
            self.emit(forms.store, register, NONE, self.array(k + self.program.first_output, at))

    def arithmetic(self, node: Sequence[int], forms: Forms, position: int) -> int:
        """Write a product, sum, difference or quotient."""
        op, left, right = node
        first, second = self.at(left, forms.lanes), self.at(right, forms.lanes)
        if not isinstance(first, int):
            if op <= ops.ADD and isinstance(second, int):
                first, second = second, first
            else:
                self.emit(forms.load, self.scratch, NONE, first)
                first = self.scratch
        self.release(node[1:], position)
        register = self.free.pop() if self.free else self.take()
        self.emit(forms.of[op], register, first, second)
        return register

    def fused(self, number: int, product: int, forms: Forms, position: int) -> int:
        """Write a sum or difference fused with one of its terms, a product."""
        op, left, right = self.program.nodes[number]
        _, a, b = self.program.nodes[product]
        lanes = forms.lanes
        c, which = (right, LESS_SUM) if left == product else (left, LESS_PRODUCT)
        first, second, third = self.at(a, lanes), self.at(b, lanes), self.at(c, lanes)
        if not isinstance(first, int):
            if isinstance(second, int):
                first, second = second, first
            else:
                self.emit(forms.load, self.scratch, NONE, first)
                first = self.scratch
        if isinstance(third, int) and self.last[c] <= position and c != a and c != b:
            target = third
            del self.register[self.held.pop(target)]
        else:
            self.pinned.update(r for r in (first, second, third) if isinstance(r, int))
            target = self.free.pop() if self.free else self.take()
            self.emit(forms.move if isinstance(third, int) else forms.load, target, NONE, third)
        self.release((a, b, c), position)
        self.emit(forms.fused[SUM if op == ops.ADD else which], target, first, second)
        return target

    def computed(self, number: int, forms: Forms, position: int) -> int:
        """Write any other operation that has a value."""
        op, *operands = self.program.nodes[number]
        lanes = forms.lanes
        if op in (ops.SIN, ops.COS):
            place = self.pair(operands[0], forms)[op == ops.COS]
        elif op == ops.RESULT:
            block = self.program.blocks[called(self.program, operands[0])]
            result = int(block.results[result_of(self.program, number)])
            place = self.slot(self.plan.slot[result] + lane_of(self.program, number))
        else:
            return self.by_instruction(op, operands, forms, position)
        self.release(operands[:1], position)
        register = self.take()
        self.emit(self.whole.forms(lanes).load, register, NONE, place)
        return register

    def by_instruction(self, op: int, operands: Sequence[int], forms: Forms, position: int) -> int:
        """Write an operation that is one instruction on registers."""
        lanes, form, tail = forms.lanes, forms.of.get(op, 0), TAIL.get(op, b"")
        spare = list[int]()
        second: At
        if op in (ops.SELECT, ops.GUARD):
            mask, first = self.resident(operands[0], lanes), self.resident(operands[2], lanes)
            second, form, tail = self.loaded(operands[1], lanes), forms.choose, bytes((mask << 4,))
            spare = [r for r in {mask, first} if r not in self.held]
        elif op == ops.PAIR:
            first, second, form = self.resident(operands[0], 1), self.loaded(operands[1], 1), UNPACK[0]
            spare = [first] if first not in self.held else []
        elif op in (ops.FIRST, ops.SECOND):
            first = second = self.loaded(operands[0], LANES)
            form = UNPACK[op == ops.SECOND]
        elif op in forms.masks:
            first, second = self.loaded(operands[0], lanes), self.bytes.constant(forms.masks[op])
        elif len(operands) == 1:  # a root, rounding down
            first, second = self.scratch if lanes == 1 else NONE, self.at(operands[0], lanes)
        else:  # comparisons, and, or
            first, second = self.loaded(operands[0], lanes), self.at(operands[1], lanes)
        self.release(operands, position)
        self.free += spare
        register = self.take()
        if self.halves and form == forms.choose:  # the last byte has a register, too
            assert isinstance(second, int)
            self.bytes.code += BEGINNINGS[form, register, first, second] + tail
            self.bytes.code += BEGINNINGS[form, register + 8, first + 8, second + 8] + bytes(
                (tail[0] + 0x80,)
            )
        else:
            self.emit(form, register, first, second, tail)
        return register

    def pair(self, angle: int, forms: Forms) -> tuple[Place, Place]:
        """Where sine and cosine of an angle are; they are computed once in a chunk."""
        if angle not in self.pairs:
            places = self.spill(), self.spill(), self.spill()
            self.emit(forms.store, self.loaded(angle, forms.lanes), NONE, places[0])
            self.spill_all()
            for register, place in zip((RDI, RSI, RDX), places, strict=True):
                self.bytes.integer(0x8D, register, place)  # lea
            self.bytes.call_outside(self.whole.sine_of(forms.lanes))
            self.pairs[angle] = places[1:]
        return self.pairs[angle]

    # -- calls and branches ----------------------------------------------------------------------

    def call(self, number: int, position: int) -> None:
        """Pass arguments to a shared function, and call it if it is a single chunk."""
        node, plan, block = self.program.nodes[number], self.plan, called(self.program, number)
        parameters = self.program.blocks[block].parameters
        frame, count = plan.frames.first.get(number), len(parameters)
        for k, operand in enumerate(node[2:]):
            if (number, k) not in plan.placed:
                lane, place = divmod(k, count)
                to = self.slot(plan.slot[parameters[place]] + lane if frame is None else frame + place)
                self.emit(self.own.store, self.loaded(operand, self.own.lanes), NONE, to)
                self.pinned = set()
        self.release(node[2:], position)
        if block in plan.direct:
            self.spill_all()
            self.bytes.code += HAND_ON
            if frame is not None:
                self.bytes.integer(0x8D, FRAME_GIVEN, self.slot(frame))  # lea
            self.bytes.call(plan.direct[block])

    def copy(self, copy: Copy) -> None:
        """Copy several lanes of a value to an output."""
        first, program = copy.nodes[0], self.program
        block = program.blocks[called(program, program.nodes[first][1])]
        start = self.plan.slot[int(block.results[result_of(program, first)])] + lane_of(program, first)
        done, count = 0, len(copy.nodes)
        while done < count:
            forms = self.whole.forms(min(4, 1 << (count - done).bit_length() - 1))
            self.emit(forms.load, self.scratch, NONE, self.slot(start + done))
            to = self.array(program.first_output + copy.output, copy.position + done)
            self.emit(forms.store, self.scratch, NONE, to)
            done += forms.lanes

    def go(self, before: Path, path: Path) -> None:
        """Leave and enter guarded blocks until the conditions around are those of the path."""
        shared = 0
        while shared < min(len(path), len(before)) and path[shared] == before[shared]:
            shared += 1
        while len(self.branches) > shared:
            self.spill_all()
            jump, self.pairs = self.branches.pop()
            self.bytes.land(jump)
        for condition in path[shared:]:
            forms = self.forms_for(condition)
            mask = self.loaded(condition, forms.lanes)
            self.spill_all()
            code, lanes = self.bytes.code, forms.lanes // (1 + self.halves)
            code += BEGINNINGS[forms.mask, RAX, NONE, mask]
            if self.halves:
                code += BEGINNINGS[forms.mask, RDX, NONE, mask + 8] + b"\x09\xd0"  # or eax, edx
            code += bytes((0xA8, (1 << lanes) - 1))  # test al
            self.branches.append((self.bytes.jump_if_zero(), dict(self.pairs)))
