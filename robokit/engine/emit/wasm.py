"""WebAssembly in bytes: instructions, functions, and the module around them.

Code is a list of instructions in WebAssembly's own order: operands go to a stack, from which an operation
takes them. An instruction is its bytes (:data:`PLAIN`), or what it names, which gets its number when all of
the module is written:

    (GET, variable), (SET, variable), (TEE, variable)
    (NUMBER, eight bytes)                   a constant
    (AT, place), (PUT, place)               a place of memory is written, begin and end; (TAKE, place): read
    (KEEP, place)                           it is written with what is on the stack already
    (CALL_FUNCTION, name)                   of a function

An instruction names a variable by its number, in one byte up to 127 and in two up to 16383. Values that are
not needed at the same time share a variable, and those that are used most get the small numbers.

A place in memory takes six bytes to read or to write, a *global* two or three, and five more once, for it
begins as a copy of one that the host brings: 0. So all places but those of the caller's arrays are globals,
and the constants that are used often, too.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robokit.dataclass_tools import frozen
from robokit.engine.passes.order import Path, blocks, paths
from robokit.engine.passes.schedule import STORE, Schedule, borrowed_by, cut
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import (
    CALL,
    CONST,
    COS,
    GUARD,
    INPUT,
    OPERATIONS,
    RESULT,
    SELECT,
    SIN,
    TRUTHS,
)
from robokit.engine.trace.record import called, position
from robokit.spatial import scalars
from robokit.spatial.scalars import FAR, NEAR, TWO_OVER_PI

I32, I64, F64 = 0x7F, 0x7E, 0x7C
"""Kinds of values."""

GET, SET, TEE, CALL_FUNCTION, GLOBAL_GET, GLOBAL_SET = 0x20, 0x21, 0x22, 0x10, 0x23, 0x24
NUMBER, AT, PUT, TAKE, KEEP = range(-5, 0)

Code = Any
"""An instruction: bytes, or a tuple of one of these numbers and what it names."""

PLAIN = {
    "block": b"\x02\x40", "loop": b"\x03\x40", "if": b"\x04\x40", "else": b"\x05", "end": b"\x0b",
    "drop": b"\x1a", "select": b"\x1b",
    "i32.load": b"\x28\x02", "f64.load": b"\x2b\x03", "i32.store": b"\x36\x02", "f64.store": b"\x39\x03",
    "i32.eqz": b"\x45", "i32.eq": b"\x46", "i32.lt_s": b"\x48", "i32.gt_s": b"\x4a", "i32.le_s": b"\x4c",
    "i32.add": b"\x6a", "i32.sub": b"\x6b", "i32.mul": b"\x6c", "i32.and": b"\x71", "i32.or": b"\x72",
    "i32.shl": b"\x74", "i32.shr_s": b"\x75", "i32.wrap_i64": b"\xa7", "i32.trunc_f64_s": b"\xaa",
    "i32.trunc_sat_f64_s": b"\xfc\x02", "memory.fill": b"\xfc\x0b\x00", "return": b"\x0f",
    "i64.and": b"\x83", "i64.xor": b"\x85", "i64.shl": b"\x86", "i64.shr_u": b"\x88",
    "i64.reinterpret_f64": b"\xbd", "f64.reinterpret_i64": b"\xbf",
    "f64.convert_i32_s": b"\xb7", "f64.convert_i32_u": b"\xb8",
    "f64.eq": b"\x61", "f64.lt": b"\x63", "f64.gt": b"\x64", "f64.le": b"\x65",
    "f64.abs": b"\x99", "f64.neg": b"\x9a", "f64.floor": b"\x9c", "f64.sqrt": b"\x9f",
    "f64.add": b"\xa0", "f64.sub": b"\xa1", "f64.mul": b"\xa2", "f64.div": b"\xa3",
}  # fmt: skip
"""Instructions that name nothing; loads and stores go before their offset."""

OPENS = {PLAIN["block"], PLAIN["loop"], PLAIN["if"]}
"""What an "end" closes."""

OFTEN = 3
"""Times that a constant is named from which on it is a global."""

PAGE = 65536


class Variable:
    """Holds a value in a function.

    Attributes:
        kind: of the value.
        zero: whether it is read where it may not have been set: it is 0 then.
    """

    __slots__ = ("kind", "zero")

    def __init__(self, kind: int = F64, zero: bool = False) -> None:
        self.kind, self.zero = kind, zero


@dataclass
class Function:
    """A function.

    Attributes:
        name: of it.
        parameters: variables that hold its arguments.
        results: kinds of what it leaves on the stack.
        code: its instructions.
    """

    name: str
    parameters: Sequence[Variable]
    results: Sequence[int]
    code: list[Code] = field(default_factory=list)


class StackWriter:
    """Writes instructions, in which values are given by their numbers.

    Attributes:
        code: what is written.
        variables: those of values that are in one.
    """

    def __init__(self) -> None:
        self.code: list[Code] = []
        self.variables: dict[int, Variable] = {}

    def kind(self, n: int) -> int:
        """Kind of a value."""
        raise NotImplementedError

    def steps(self, n: int) -> list[Code]:
        """What puts a value on the stack that is in no variable: values and instructions, in order."""
        raise NotImplementedError

    def variable(self, n: int) -> Variable:
        """A new variable for a value."""
        made = self.variables[n] = Variable(self.kind(n))
        return made

    def write(self, items: Sequence[Code]) -> None:
        """Write values, which go to the stack, and instructions."""
        work = list(items)[::-1]
        while work:
            item = work.pop()
            if type(item) is not int:
                self.code.append(item)
            elif item in self.variables:
                self.code.append((GET, self.variables[item]))
            else:
                work += reversed(self.steps(item))

    def value(self, n: int) -> None:
        """Put a value on the stack."""
        self.write([n])


def number(value: float) -> Code:
    """A constant."""
    return NUMBER, struct.pack("<d", value)


def plain(words: str) -> list[Code]:
    """Instructions that name nothing."""
    return [PLAIN[word] for word in words.split()]


def whole(value: int) -> bytes:
    """A whole number of 32 bits."""
    return b"\x41" + signed(value)


def branch(depth: int, where: bool = False) -> bytes:
    """Go on behind this block and so many around it, or at a loop's beginning; "where": if the stack says."""
    return (b"\x0d" if where else b"\x0c") + leb(depth)


@frozen
class Storage:
    """Where places and constants are."""

    arrays: int  # places below this are the caller's arrays, in memory, a number each
    globals: dict[int | bytes, int]  # number of each other place, and of each constant that is a global

    @classmethod
    def of(cls, found: Iterable[Function], arrays: int) -> Storage:
        """Decide.

        Args:
            found: the functions.
            arrays: places of the caller's arrays.
        """
        named = Counter[Any]()
        for function in found:
            named.update(
                x[1] for x in function.code if type(x) is tuple and x[0] in (NUMBER, PUT, TAKE, KEEP)
            )
        often = [x for x in named if (named[x] >= OFTEN if type(x) is bytes else x >= arrays)]
        often.sort(key=lambda x: -named[x])
        needs_zero = any(type(x) is int for x in often)  # the host's own is the first
        return cls(arrays, {x: needs_zero + k for k, x in enumerate(often)})

    @property
    def needs_zero(self) -> bool:
        """Whether the host has to bring a 0."""
        return any(type(x) is int for x in self.globals)

    def declared(self) -> list[bytes]:
        """The globals as they stand in their section."""
        out = []
        for name in self.globals:
            begin = b"\x44" + name if type(name) is bytes else bytes([GLOBAL_GET, 0])
            out.append(bytes([F64, type(name) is int]) + begin + b"\x0b")
        return out


def body(function: Function, storage: Storage, index: dict[str, int]) -> bytes:
    """A function as it stands in the code section, without its length.

    Args:
        function: the function.
        storage: where places and constants are.
        index: number of each function.
    """
    place, declared = variable_numbers(function)
    coded = dict[Code, bytes]()
    out = [declared]
    for item in function.code:
        if type(item) is tuple:
            code = coded.get(item)
            if code is None:
                code = coded[item] = _coded(item[0], item[1], place, storage, index)
            out.append(code)
        else:
            out.append(item)
    return b"".join(out) + b"\x0b"


def _coded(what: int, name: Any, place: dict[Any, int], storage: Storage, index: dict[str, int]) -> bytes:
    """An instruction that names something."""
    if what in (GET, SET, TEE):
        return bytes([what]) + leb(place[name])
    if what == CALL_FUNCTION:
        return bytes([CALL_FUNCTION]) + leb(index[name])
    at = storage.globals.get(name)
    if at is not None:
        if what == AT:
            return b""
        return bytes([GLOBAL_SET if what in (PUT, KEEP) else GLOBAL_GET]) + leb(at)
    if what == NUMBER:
        return b"\x44" + name
    if what == AT:
        return whole(0)
    address = leb(8 * name)
    if what == TAKE:
        return whole(0) + PLAIN["f64.load"] + address
    if what == PUT:
        return PLAIN["f64.store"] + address
    spare = leb(place[SPARE])
    return bytes([SET]) + spare + whole(0) + bytes([GET]) + spare + PLAIN["f64.store"] + address


SPARE = Variable()
"""Holds what KEEP finds on the stack."""


def variable_numbers(function: Function) -> tuple[dict[Variable, int], bytes]:
    """The number of each variable, and the declaration of those that are no parameters."""
    first, ends, times = _lives(function)
    place: dict[Variable, int] = {}
    kinds: list[int] = []
    free: defaultdict[int, list[int]] = defaultdict(list)

    def begin(variable: Variable) -> None:
        # One that has to be 0 before it is set has a place that nothing has used before.
        if free[variable.kind] and not variable.zero:
            place[variable] = free[variable.kind].pop()
        else:
            place[variable] = len(kinds)
            kinds.append(variable.kind)

    for variable in function.parameters:
        begin(variable)
    free_parameters = [v for v in function.parameters if v not in first]
    for variable in free_parameters:
        free[variable.kind].append(place[variable])
    begins = defaultdict[int, list[Variable]](list)
    for variable, k in first.items():
        begins[k].append(variable)
    for k in sorted({*begins, *ends}):
        for variable in begins.get(k, ()):
            if variable not in place:
                begin(variable)
        for variable in ends.get(k, ()):
            free[variable.kind].append(place[variable])
    used: Counter[int] = Counter()
    for variable, count in times.items():
        used[place[variable]] += count
    parameters = len(function.parameters)
    own = sorted(range(parameters, len(kinds)), key=lambda v: (-used[v], v))
    # Kinds are declared in runs: one of each among the numbers of one byte, one of each behind them.
    short = max(0, 128 - parameters)
    ordered = [v for part in (own[:short], own[short:]) for v in sorted(part, key=lambda v: kinds[v])]
    final = {v: v for v in range(parameters)} | {v: parameters + k for k, v in enumerate(ordered)}
    return {v: final[at] for v, at in place.items()}, _declaration([kinds[v] for v in ordered])


def _lives(
    function: Function,
) -> tuple[dict[Variable, int], defaultdict[int, list[Variable]], Counter[Variable]]:
    """Where each variable is first named, those that are named last at each place, and how often.

    Branches go forward, but for those of loops: what was there before a loop is needed to its end.
    """
    first: dict[Variable, int] = {}
    last: dict[Variable, int] = {}
    times: Counter[Variable] = Counter()
    opened: list[tuple[int, set[Variable] | None]] = []
    for k, item in enumerate(function.code):
        if type(item) is tuple:
            if item[0] in (GET, SET, TEE) or item[0] == KEEP:
                variable = SPARE if item[0] == KEEP else item[1]
                first.setdefault(variable, k)
                last[variable] = k
                times[variable] += item[0] != KEEP
                for _, inside in opened:
                    if inside is not None:
                        inside.add(variable)
        elif item in OPENS:
            opened.append((k, set() if item == PLAIN["loop"] else None))
        elif item == PLAIN["end"]:
            start, inside = opened.pop()
            for variable in inside or ():
                if first[variable] < start or variable in function.parameters:
                    last[variable] = k
    ends = defaultdict[int, list[Variable]](list)
    for variable, k in last.items():
        ends[k].append(variable)
    return first, ends, times


def _declaration(kinds: Sequence[int]) -> bytes:
    runs: list[list[int]] = []
    for kind in kinds:
        if runs and runs[-1][1] == kind:
            runs[-1][0] += 1
        else:
            runs.append([1, kind])
    return leb(len(runs)) + b"".join(leb(count) + bytes([kind]) for count, kind in runs)


# -- modules ----------------------------------------------------------------------------------------

TYPE, IMPORT, FUNCTION, MEMORY, GLOBAL, EXPORT, CODE = 1, 2, 3, 5, 6, 7, 10


def module(found: Sequence[Function], exported: Iterable[str], arrays: int = 0) -> bytes:
    """A module that a host can load; it exports its memory as "memory", too.

    Args:
        found: its functions.
        exported: names of those that the host calls.
        arrays: places of the caller's arrays, which come first.
    """
    storage = Storage.of(found, arrays)
    index = {each.name: k for k, each in enumerate(found)}
    kinds = [(tuple(v.kind for v in each.parameters), tuple(each.results)) for each in found]
    types = sorted(set(kinds))
    parts = {
        TYPE: [b"\x60" + b"".join(leb(len(k)) + bytes(k) for k in each) for each in types],
        IMPORT: [_name("start") + _name("zero") + b"\3" + bytes([F64, 0])] * storage.needs_zero,
        FUNCTION: [leb(types.index(kind)) for kind in kinds],
        MEMORY: [b"\0" + leb(max(1, -(-8 * arrays // PAGE)))],
        GLOBAL: storage.declared(),
        EXPORT: [_name("memory") + b"\2\0", *(_name(n) + b"\0" + leb(index[n]) for n in exported)],
        CODE: [leb(len(code)) + code for code in (body(each, storage, index) for each in found)],
    }
    out = b"\0asm" + struct.pack("<I", 1)
    for key, part in parts.items():
        content = leb(len(part)) + b"".join(part)
        out += bytes([key]) + leb(len(content)) + content if part else b""
    return out


def _name(text: str) -> bytes:
    return leb(len(text.encode())) + text.encode()


def leb(value: int) -> bytes:
    """A number that is not negative, in as few bytes as there may be."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    """A number that may be negative, likewise."""
    out = b""
    while not -64 <= value < 64:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value & 127])


# -- Sine and cosine -------------------------------------------------------------------------------------
#
# Sine and cosine together in WebAssembly: the computation of emit/ir.py.
#
# sines(x) -> sine, cosine

NAME = "sines"


def sines() -> Function:
    """The function."""
    x, k, r, rr, rrrr, s, c = variables = [Variable() for _ in range(7)]
    bits, odd = Variable(I64), Variable(I32)
    one, sixty_three = b"\x42\x01", b"\x42\x3f"

    def get(*these: Variable) -> list[Code]:
        return [(GET, v) for v in these]

    def reduced(parts: Sequence[float]) -> list[Code]:
        """x less k times each part."""
        code = get(x)
        for part in parts:
            code += [*get(k), number(part), *plain("f64.mul f64.sub")]
        return code

    def polynomial(a: Sequence[float]) -> list[Code]:
        """(a0 + a1 z) + z^2 ((a2 + a3 z) + z^2 (a4 + a5 z)) of z = r^2."""
        pairs = [
            [number(a[j]), *get(rr), number(a[j + 1]), *plain("f64.mul f64.add")] for j in range(0, len(a), 2)
        ]
        code: list[Code] = []
        for pair in pairs[:-1]:
            code += [*pair, *get(rrrr)]
        return [*code, *pairs[-1], *plain("f64.mul f64.add") * (len(pairs) - 1)]

    def signed(other: Variable, own: Variable, quadrant: Sequence[Code]) -> list[Code]:
        """One of two values, by whether the quadrant is odd, with its sign."""
        code = [*get(other, own, odd), *plain("select i64.reinterpret_f64")]
        return [*code, *quadrant, sixty_three, *plain("i64.shl i64.xor f64.reinterpret_i64")]

    def within(bound: float) -> list[Code]:
        return [*get(x), *plain("f64.abs"), number(bound), *plain("f64.le")]

    m, half = Variable(), [*get(bits), one, *plain("i64.shr_u")]
    code = [
        # k, a whole number, and its low bits; what is left of x after k quarters of a turn
        *[number(NEAR[1]), *get(x), number(TWO_OVER_PI), *plain("f64.mul f64.add"), (TEE, m)],
        *[*plain("i64.reinterpret_f64"), (SET, bits), *get(m), number(NEAR[1]), *plain("f64.sub"), (SET, k)],
        *[*reduced(NEAR[2]), (SET, r)],
        *[*within(NEAR[0]), *plain("i32.eqz if"), *reduced(FAR[2]), number(float("nan"))],
        *[*within(FAR[0]), *plain("select"), (SET, r), *plain("end")],
        # both of what is left
        *[*get(r, r), *plain("f64.mul"), (TEE, rr), *get(rr), *plain("f64.mul"), (SET, rrrr)],
        *[*get(r, r, rr), *plain("f64.mul"), *polynomial(scalars.SIN), *plain("f64.mul f64.add"), (SET, s)],
        *[number(1.0), *get(rr), number(0.5), *plain("f64.mul f64.sub")],
        *[*get(rrrr), *polynomial(scalars.COS), *plain("f64.mul f64.add"), (SET, c)],
        # the quadrant swaps them and sets their signs
        *[*get(bits), one, *plain("i64.and i32.wrap_i64"), (SET, odd)],
        *signed(c, s, half),
        *signed(s, c, [*half, *get(bits), *plain("i64.xor")]),
    ]
    return Function(NAME, variables[:1], [F64, F64], code)


# -- Straight lines --------------------------------------------------------------------------------------
#
# Writes a kernel's program as functions: one state, all arrays at fixed places of one memory.
#
#     step()      reads the inputs and writes the outputs
#
# Nothing is checked. A value that is read once is computed where it is read, and needs no variable. So is
# one that is read several times, all in one basic block: no branch leaves or enters it, and the first reader
# leaves the value in a variable. Which variables share one of the machine's, and which places are in memory,
# the plan decides.
#
# A guarded choice between a value of its block and 0 is a variable that is 0 where the block is skipped.
#
# A short function that is taken several times has its arguments and results on the stack, a long one in
# places.


# -- The plan: places in memory --------------------------------------------------------------------------
#
# Plans a program with shared functions: its own line and that of each body, and one memory for all.
#
# Places are given to inputs and outputs, then to each block's arguments and results, then to what
# must outlive a chunk. What a body reads from the program around it stays there until the last call. Short
# bodies need no places for arguments and results: these are handed over on the stack.

STACKED = 250
"""Arguments, and results, that are handed over on the stack at most: hosts allow 1000."""


@dataclass
class Regions:
    """Where and when everything happens; places are counted in numbers."""

    # inputs, outputs: first place of each
    inputs: list[int]
    outputs: list[int]
    arguments: list[int]  # first place of each block's arguments
    results: list[dict[int, int]]  # place of each result that is read, by position, of each block
    stacked: list[bool]  # whether arguments and results of each block are on the stack
    lines: list[Schedule]  # the program's own line, then that of each block
    size: int  # places in all


@dataclass
class _Memory:
    """Places that are given out and come back."""

    size: int
    free: list[int] = field(default_factory=list)

    def take(self, count: int = 1) -> int:
        """First of so many new places."""
        self.size += count
        return self.size - count

    def borrow(self) -> int:
        """A place that may have been used before."""
        return self.free.pop() if self.free else self.take()


def regions(program: Program, size: int) -> Regions:
    """Plan a program.

    Args:
        program: what to compute.
        size: nodes per chunk, about.
    """
    nodes, memory = program.nodes, _Memory(0)
    inputs = [memory.take(count) for _, count in program.inputs]
    outputs = [memory.take(math.prod(shape)) for _, shape in program.outputs]
    body = program.bodies()
    arguments = [memory.take(len(block.parameters)) for block in program.blocks]
    results: list[dict[int, int]] = [{} for _ in program.blocks]
    for n in program.order:
        if nodes[n][0] == RESULT:
            at = position(program, n)
            places = results[called(program, nodes[n][1])]
            if at not in places:
                places[at] = memory.take()
    slot: dict[int, int] = {}
    for k, block in enumerate(program.blocks):
        slot |= {p: arguments[k] + j for j, p in enumerate(block.parameters)}
        own_results = {int(block.results[at]): place for at, place in results[k].items()}
        slot |= {r: place for r, place in own_results.items() if body.get(r) == k and r not in slot}
    line, insides = program.lines()
    own = [line, *insides]
    path = paths(program)
    borrowed = borrowed_by(program, own, body, path)
    orders, inside = [], dict[int, Path]()
    for order in own:
        line, within = blocks(program, order, borrowed, path)
        orders.append(line)
        inside |= within
    kept: set[int] = set()
    for one in borrowed:
        kept |= one
    lines, ends = [], list[int]()
    for line in orders:
        # A body runs while the values of the functions around it live, but not those of another body.
        around = [
            end for end, caller in zip(ends, orders, strict=False) if _calls(program, caller, len(ends) - 1)
        ]
        memory.free, memory.size = [], max([memory.size] if not ends else [ends[0], *around])
        lines.append(_line(program, line, inside, slot, memory, kept, borrowed, size))
        ends.append(memory.size)
    stacked = [
        len(line.chunks) == 1 and max(len(block.parameters), len(found)) <= STACKED
        for line, block, found in zip(lines[1:], program.blocks, results, strict=True)
    ]
    return Regions(inputs, outputs, arguments, results, stacked, lines, max(ends))


def _line(
    program: Program,
    line: list[int],
    inside: dict[int, Path],
    slot: dict[int, int],
    memory: _Memory,
    kept: set[int],
    borrowed: list[set[int]],
    size: int,
) -> Schedule:
    """Chunks of a line and places of what lives longer than one; adds the places to ``slot``.

    Args:
        program: the graph.
        line: its nodes in order.
        inside: guards around nodes.
        slot: place of each node that has one.
        memory: where further places come from.
        kept: nodes that bodies read.
        borrowed: the same by block.
        size: nodes per chunk, about.
    """
    nodes = program.nodes
    for n in line:
        if nodes[n][0] == RESULT:  # follows its call
            inside[n] = inside.get(nodes[n][1], ())
    weight = Counter(r for row in program.results for r in row if type(r) is int)
    chunks = _with_calls(program, cut(program, line, [1 + STORE * weight[n] for n in line], size))
    home = {n: k for k, chunk in enumerate(chunks) for n in chunk}
    last = dict(home)
    for n, k in home.items():
        reads = [*nodes[n][1:], *inside.get(n, ())]
        if nodes[n][0] == CALL:
            reads += borrowed[called(program, n)]
        for operand in reads:
            if operand in last:
                last[operand] = max(last[operand], k)
    ends = {n for n in home if n in slot}  # the results of a body
    stored = {n for n in home if last[n] > home[n] or n in kept or n in ends}
    stored -= {n for n in home if nodes[n][0] == CALL}  # has no value of its own
    ending: list[list[int]] = [[] for _ in chunks]
    for k, chunk in enumerate(chunks):
        if k:
            memory.free += ending[k - 1]
        for n in chunk:
            if n in stored and n not in ends:
                slot[n] = memory.borrow()
                ending[last[n]].append(slot[n])
    return Schedule(1, chunks, slot, stored, [], {}, {}, memory.size, inside)


def _calls(program: Program, line: list[int], block: int) -> bool:
    """Whether a line calls a block."""
    return any(program.nodes[n][0] == CALL and called(program, n) == block for n in line)


def _with_calls(program: Program, chunks: list[list[int]]) -> list[list[int]]:
    """Chunks in which the results of a call follow it at once."""
    nodes = program.nodes
    results: defaultdict[int, list[int]] = defaultdict(list)
    for chunk in chunks:
        for n in chunk:
            if nodes[n][0] == RESULT:
                results[nodes[n][1]].append(n)
    return [
        [each for n in chunk if nodes[n][0] != RESULT for each in (n, *results.get(n, ()))]
        for chunk in chunks
    ]


# -- Where the values of a chunk are computed ------------------------------------------------------------
#
# Where the values of a chunk are computed, for code whose operands go to a stack.
#
# A *basic block* is a run of nodes that no branch leaves or enters. A value whose readers are all in one
# basic block is computed there, by the first of them; the others are computed at their own place in the
# line.

APART = -1
"""Stands for the basic block of a value that is computed at its own place."""

Event = tuple[str, int, int]
"""What happens in a chunk: ("node", n, basic_block), ("if", condition, basic_block), ("end", 0, 0)."""


class BasicBlocks:
    """What is known of a chunk before it is written.

    Attributes:
        events: the nodes, and the branches around those in guarded blocks.
        end: the basic block after the last event.
        basic_block: where each node of the chunk is computed.
        count: how often each node of the chunk is read in it.
        reads: how often what comes from elsewhere is read, by node and basic block.
        pairs: sines and cosines by opcode, angle and basic block.
        skipped: choices between a value of a block that is skipped otherwise, and 0.
        zero: those values: variables that are 0 where nobody has set them.
    """

    def __init__(
        self,
        program: Program,
        chunk: Sequence[int],
        inside: Mapping[int, Path],
        fixed: Collection[int],
        returned: Sequence[int],
    ) -> None:
        """Look at a chunk.

        Args:
            program: the graph.
            chunk: nodes in order.
            inside: guards around nodes.
            fixed: nodes that are computed at their own place, whoever reads them.
            returned: nodes that are read after the last event.
        """
        self.program, self.inside = program, inside
        self.here = set(chunk)
        self.events = self._events(chunk)
        self.end = len(self.events) + 1
        self.basic_block: dict[int, int] = {}
        self.count: Counter[int] = Counter()
        self.reads: Counter[tuple[int, int]] = Counter()
        self.pairs: dict[tuple[int, int, int], int] = {}
        self.skipped = {n for n in chunk if self._skips(n)}
        self.zero = {program.nodes[n][2] for n in self.skipped}
        for n in returned:
            self._use(n, self.end)
        for kind, n, basic_block in reversed(self.events):
            if kind == "if":
                self._use(n, basic_block)
            elif kind == "node":
                self._look(n, basic_block, n in fixed)

    def _events(self, chunk: Sequence[int]) -> list[Event]:
        events: list[Event] = []
        basic_block = 0
        here: Path = ()
        for n in [*chunk, 0]:
            path = self.inside.get(n, ())
            if path != here:
                shared = 0
                while shared < min(len(path), len(here)) and path[shared] == here[shared]:
                    shared += 1
                events += [("end", 0, 0)] * (len(here) - shared)
                for condition in path[shared:]:
                    basic_block += 1
                    events.append(("if", condition, basic_block))
                here, basic_block = path, basic_block + 1
            events.append(("node", n, basic_block))
        return events[:-1]

    def _skips(self, n: int) -> bool:
        op, *operands = self.program.nodes[n]
        if op != GUARD or operands[1] not in self.here:
            return False
        condition, value, other = operands
        node = self.program.nodes[other]
        within = self.inside.get(value, ()) == (*self.inside.get(n, ()), condition)
        return within and node[0] == CONST and node[1] == 0.0

    def _look(self, n: int, basic_block: int, fixed: bool) -> None:
        """A node, after all that read it."""
        at = self.basic_block.get(n, APART)
        if fixed or at == APART:
            self.basic_block[n], at = APART, basic_block
        node = self.program.nodes[n]
        if n in self.skipped:
            self.basic_block[node[2]] = APART
            self.count[node[2]] += 1
            return
        if node[0] in (SIN, COS):
            self.pairs[node[0], node[1], at] = n
        if node[0] != RESULT:
            for operand in node[2:] if node[0] == CALL else node[1:]:
                self._use(operand, at)

    def _use(self, n: int, basic_block: int) -> None:
        if n not in self.here:
            self.reads[n, basic_block] += 1
            return
        if self.basic_block.setdefault(n, basic_block) != basic_block:
            self.basic_block[n] = APART
        self.count[n] += 1


# -- The functions ---------------------------------------------------------------------------------------

CHUNK = 3000
"""Nodes per chunk: of longer ones browsers make slower code, and shorter ones are more bytes."""

READ_OFTEN = 3
"""Times that a place is read in one basic block from which on a variable holds what was read."""


def wasm_functions(program: Program, plan: Regions) -> list[Function]:
    """The functions of the module, "step" among them."""
    found = [sines()]
    for line in range(len(plan.lines)):
        found += LineWriter(program, plan, line).functions()
    return found


class LineWriter(StackWriter):
    """Writes one line of a plan: the program's own, or a body."""

    def __init__(self, program: Program, plan: Regions, line: int) -> None:
        super().__init__()
        self.program, self.plan, self.line = program, plan, line
        self.schedule = plan.lines[line]
        self.stacked = line > 0 and plan.stacked[line - 1]
        self.instruction = [PLAIN.get(each.wasm, b"") for each in OPERATIONS]
        self.targets: defaultdict[int, list[int]] = defaultdict(list)
        self.fixed: list[tuple[int, float]] = []
        self.results: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for row, start in zip(() if line else program.results, plan.outputs, strict=False):
            for k, r in enumerate(row):
                if type(r) is int:
                    self.targets[r].append(start + k)
                else:
                    self.fixed.append((start + k, r))
        for chunk in self.schedule.chunks:
            for n in chunk:
                if program.nodes[n][0] == RESULT:
                    self.results[program.nodes[n][1]][position(program, n)] = n

    @property
    def name(self) -> str:
        """Of the function."""
        return f"block{self.line - 1}" if self.line else "step"

    def functions(self) -> list[Function]:
        """Those of the chunks, and the one that calls them."""
        if self.stacked:
            parameters = [Variable() for _ in self.program.blocks[self.line - 1].parameters]
            returned = self._returned(self.line - 1)
            self._chunk(self.schedule.chunks[0], returned, parameters)
            return [Function(self.name, parameters, [F64] * len(returned), self.code)]
        found = []
        computed = {n for chunk in self.schedule.chunks for n in chunk}
        for k, chunk in enumerate(self.schedule.chunks):
            self._chunk(chunk, ())
            found.append(Function(f"{self.name}_{k}", [], [], self.code))
        self.variables = {}
        calls: list[Code] = [(CALL_FUNCTION, each.name) for each in found]
        rest = self._copied() if self.line else self._passed(computed)
        return [*found, Function(self.name, [], [], [*calls, *rest])]

    def _returned(self, block: int) -> list[int]:
        """What a short function leaves on the stack."""
        results = self.program.blocks[block].results
        return [int(results[at]) for at in sorted(self.plan.results[block])]

    def _copied(self) -> Iterator[Code]:
        """Results of a body that it does not compute, to where calls look for them."""
        block = self.program.blocks[self.line - 1]
        for at, place in self.plan.results[self.line - 1].items():
            result = int(block.results[at])
            if self.schedule.slot.get(result) != place:
                yield from ((AT, place), *self._leaf(result), (PUT, place))

    def _passed(self, computed: set[int]) -> Iterator[Code]:
        """Outputs that no chunk computes."""
        for n, places in self.targets.items():
            for place in places if n not in computed else ():
                yield from ((AT, place), *self._leaf(n), (PUT, place))
        for place, value in self.fixed:
            yield from ((AT, place), number(value), (PUT, place))

    # ---- a chunk -------------------------------------------------------------------------------------

    def _chunk(
        self, chunk: Sequence[int], returned: Sequence[int], parameters: Sequence[Variable] = ()
    ) -> None:
        """Write a chunk to ``self.code``; what is returned stays on the stack."""
        self.code, self.variables = [], {}
        if self.stacked:
            own = self.program.blocks[self.line - 1].parameters
            self.variables = dict(zip(own, parameters, strict=True))
        fixed = {n for n in chunk if self._fixed(n)}
        self.found = BasicBlocks(self.program, chunk, self.schedule.inside, fixed, returned)
        self.held: dict[tuple[int, int], Variable] = {}
        for kind, n, basic_block in self.found.events:
            self.basic_block = basic_block
            if kind == "node":
                if n in self.found.skipped:
                    self.variables[n] = self.variables[self.program.nodes[n][2]]
                if self.found.basic_block.get(n) == APART:
                    self._root(n)
                continue
            if kind == "if":
                self.value(n)
            self.code.append(PLAIN[kind])
        self.basic_block = self.found.end
        for n in returned:
            self.value(n)

    def _fixed(self, n: int) -> bool:
        """Whether a node is computed at its own place, whoever reads it."""
        stays = n in self.schedule.stored and not self.stacked
        return stays or n in self.targets or self.program.nodes[n][0] in (CALL, RESULT, SIN, COS)

    def _root(self, n: int) -> None:
        """Compute a node at its own place, for its readers here and elsewhere."""
        op = self.program.nodes[n][0]
        if op == CALL:
            self._call(n)
            return
        if op == RESULT and self._of_stacked(n):
            return  # came with the call
        places = self._places(n)
        kept = self.found.count[n] > 0 or len(places) > 1
        if not kept and not places:
            return
        if n in self.variables:  # a choice that is a variable; the other one of a sine and a cosine
            for place in places:
                self.code += [(AT, place), (GET, self.variables[n]), *self._put(n, place)]
            return
        if places:
            self.code.append((AT, places[0]))
        if op == RESULT:
            results = self.plan.results[called(self.program, self.program.nodes[n][1])]
            self.code.append((TAKE, results[position(self.program, n)]))
        elif op in (SIN, COS):
            self._sines(n)
        else:
            self.write(self._operation(n))
        if kept:
            self.code.append((TEE if places else SET, self.variable(n)))
        for k, place in enumerate(places):
            if k:
                self.code += [(AT, place), (GET, self.variables[n])]
            self.code += self._put(n, place)

    def _places(self, n: int) -> list[int]:
        """Where a node is written to, besides a variable."""
        places = list(self.targets.get(n, ()))
        if n in self.schedule.stored and not self.stacked:
            places.append(self.schedule.slot[n])
        return places

    def _put(self, n: int, place: int) -> list[Code]:
        truth = self.program.nodes[n][0] in TRUTHS
        return [PLAIN["f64.convert_i32_u"], (PUT, place)] if truth else [(PUT, place)]

    def kind(self, n: int) -> int:
        """Kind of a value."""
        return I32 if self.program.nodes[n][0] in TRUTHS else F64

    def variable(self, n: int) -> Variable:
        """A new variable for a value; 0 before it is set where a skipped choice is it."""
        made = super().variable(n)
        made.zero = n in self.found.zero
        return made

    def _of_stacked(self, result: int) -> bool:
        return self.plan.stacked[called(self.program, self.program.nodes[result][1])]

    def _call(self, n: int) -> None:
        program, plan = self.program, self.plan
        block = called(program, n)
        operands = program.nodes[n][2:]
        if not plan.stacked[block]:
            for k, operand in enumerate(operands):
                place = plan.arguments[block] + k
                self.write([(AT, place), operand, (PUT, place)])
            self.code.append((CALL_FUNCTION, f"block{block}"))
            return
        self.write([*operands, (CALL_FUNCTION, f"block{block}")])
        results = self.results[n]
        for at in sorted(plan.results[block], reverse=True):
            result = results.get(at)
            places = [] if result is None else self._places(result)
            if result is not None and (self.found.count[result] or len(places) > 1):
                own = self.variable(result)
                self.code.append((SET, own))
                for place in places:
                    self.code += [(AT, place), (GET, own), (PUT, place)]
            else:
                self.code.append((KEEP, places[0]) if places else PLAIN["drop"])

    def _sines(self, n: int) -> None:
        """A sine or a cosine, and the other one if the same basic block has it."""
        op, angle = self.program.nodes[n]
        self.write([angle, (CALL_FUNCTION, NAME)])
        other = self.found.pairs.get(((COS if op == SIN else SIN), angle, self.basic_block))
        aside = PLAIN["drop"] if other is None else (SET, self.variable(other))
        if op == SIN:  # the cosine is on top
            self.code.append(aside)
        else:
            own = Variable()
            self.code += [(SET, own), aside, (GET, own)]

    # ---- values --------------------------------------------------------------------------------------

    def steps(self, n: int) -> list[Code]:
        """What computes a value: operands and instructions, in order."""
        if n not in self.found.here:
            return self._elsewhere(n)
        found = self._operation(n)
        if self.found.count[n] > 1:
            found.append((TEE, self.variable(n)))
        return found

    def _operation(self, n: int) -> list[Code]:
        """Operands and instructions of a node, in order."""
        op, *operands = self.program.nodes[n]
        if op in (SELECT, GUARD):
            condition, a, b = operands
            return [a, b, condition, PLAIN["select"]]
        return [*operands, self.instruction[op]]

    def _elsewhere(self, n: int) -> list[Code]:
        """A value that another chunk computes, or none."""
        held = self.held.get((n, self.basic_block))
        if held is not None:
            return [(GET, held)]
        found = self._leaf(n)
        op = self.program.nodes[n][0]
        if op != CONST and self.found.reads[n, self.basic_block] >= (2 if op == INPUT else READ_OFTEN):
            held = self.held[n, self.basic_block] = Variable(self.kind(n))
            found.append((TEE, held))
        return found

    def _leaf(self, n: int) -> list[Code]:
        node = self.program.nodes[n]
        if node[0] == CONST:
            return [number(node[1])]
        if node[0] == INPUT:
            return [(TAKE, self.plan.inputs[node[1]] + node[2])]
        found: list[Code] = [(TAKE, self.schedule.slot[n])]
        return [*found, PLAIN["i32.trunc_f64_s"]] if node[0] in TRUTHS else found
