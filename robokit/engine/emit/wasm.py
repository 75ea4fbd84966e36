"""WebAssembly in bytes: instructions, functions, and the module around them.

Code is a list of instructions in WebAssembly's own order: operands go to a stack, from which an operation
takes them. An instruction is its bytes (:data:`PLAIN`), or what it names, which gets its number when all of
the module is written:

    (GET, variable), (SET, variable), (TEE, variable)
    (NUMBER, eight bytes)                   a constant
    (PUT, place), (TAKE, place)             what functions leave for others is written, read: a number, or,
                                            where the place is a variable, what that holds
    (CALL_FUNCTION, name)                   of a function

An instruction names a variable by its number, in one byte up to 127 and in two up to 16383. Values that are
not needed at the same time share a variable, and those that are used most get the small numbers.

An element of an array takes six bytes to read or to write, a *global* two or three, and five more once, for
it begins as a copy of one that the host brings: 0. So places are numbers, and the constants that are used
often, too.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from robokit.spatial import scalars
from robokit.spatial.scalars import FAR, NEAR, TWO_OVER_PI

I32, I64, F64 = 0x7F, 0x7E, 0x7C  # kinds of values

GET, SET, TEE, CALL_FUNCTION, GLOBAL_GET, GLOBAL_SET = 0x20, 0x21, 0x22, 0x10, 0x23, 0x24
NUMBER, PUT, TAKE = range(-3, 0)

Code = Any  # an instruction: bytes, or a tuple of one of these numbers and what it names

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

OPENS = {PLAIN["block"], PLAIN["loop"], PLAIN["if"]}  # what an "end" closes
OFTEN = 3  # times that a constant is named from which on it is a global

PAGE = 65536


class Variable:
    """A local variable of a function, of one kind."""

    __slots__ = ("kind",)

    def __init__(self, kind: int = F64) -> None:
        self.kind = kind


@dataclass
class Function:
    """A function of a module.

    ``name``: of it; ``parameters``: variables that hold its arguments; ``results``: kinds of what it leaves
    on the stack; ``code``: its instructions.
    """

    name: str
    parameters: Sequence[Variable]
    results: Sequence[int]
    code: list[Code] = field(default_factory=list)


def number(value: float) -> Code:
    """Instruction for a constant."""
    return NUMBER, struct.pack("<d", value)


def plain(words: str) -> list[Code]:
    """Instructions without operands, by their names."""
    return [PLAIN[word] for word in words.split()]


def whole(value: int) -> bytes:
    """Instruction for a constant integer of 32 bits."""
    return b"\x41" + signed(value)


def branch(depth: int, where: bool = False) -> bytes:
    """Branch out of this block and so many enclosing ones, or to a loop's beginning; "where": on
    a condition.
    """
    return (b"\x0d" if where else b"\x0c") + leb(depth)


def global_numbers(found: Iterable[Function]) -> dict[Any, int]:
    """Number of each global: of places, and of constants (bytes) that are named often.

    The first is the host's, if there are places of numbers.
    """
    named = Counter[Any]()
    for function in found:
        named.update(x[1] for x in function.code if type(x) is tuple and x[0] in (NUMBER, PUT, TAKE))
    kept = [x for x in named if type(x) is not bytes or named[x] >= OFTEN]
    kept.sort(key=lambda x: -named[x])
    return {x: k for k, x in enumerate(kept, any(map(_is_number, kept)))}


def _is_number(name: Any) -> bool:
    """Whether a global is a place of a number of 64 bits, which begins as the host's."""
    return type(name) not in (bytes, Variable)


def _declared(name: Any) -> bytes:
    """A global as it stands in its section."""
    if type(name) is Variable:
        return bytes([name.kind, 1]) + whole(0) + b"\x0b"
    begin = bytes([GLOBAL_GET, 0]) if _is_number(name) else b"\x44" + name
    return bytes([F64, _is_number(name)]) + begin + b"\x0b"


def body(function: Function, numbers: Mapping[Any, int], index: Mapping[str, int]) -> bytes:
    """A function as it stands in the code section, without its length.

    ``numbers``: number of each; ``index``: number of each function.
    """
    place, declared = variable_numbers(function)
    coded = dict[Code, bytes]()
    out = [declared]
    for item in function.code:
        if type(item) is tuple:
            code = coded.get(item)
            if code is None:
                code = coded[item] = _coded(item[0], item[1], place, numbers, index)
            out.append(code)
        else:
            out.append(item)
    return b"".join(out) + b"\x0b"


def _coded(
    what: int, name: Any, place: Mapping[Any, int], numbers: Mapping[Any, int], index: Mapping[str, int]
) -> bytes:
    """An instruction that names something."""
    if what in (GET, SET, TEE):
        return bytes([what]) + leb(place[name])
    if what == CALL_FUNCTION:
        return bytes([CALL_FUNCTION]) + leb(index[name])
    if name not in numbers:
        return b"\x44" + name
    return bytes([GLOBAL_SET if what == PUT else GLOBAL_GET]) + leb(numbers[name])


def variable_numbers(function: Function) -> tuple[dict[Variable, int], bytes]:
    """The number of each variable, and the declaration of those that are no parameters."""
    first, ends, times = _lives(function)
    place: dict[Variable, int] = {}
    kinds: list[int] = []
    free: defaultdict[int, list[int]] = defaultdict(list)

    def begin(variable: Variable) -> None:
        if free[variable.kind]:
            place[variable] = heappop(free[variable.kind])
        else:
            place[variable] = len(kinds)
            kinds.append(variable.kind)

    for variable in function.parameters:
        begin(variable)
    free_parameters = [v for v in function.parameters if v not in first]
    for variable in free_parameters:
        heappush(free[variable.kind], place[variable])
    begins = defaultdict[int, list[Variable]](list)
    for variable, k in first.items():
        begins[k].append(variable)
    for k in sorted({*begins, *ends}):
        for variable in begins.get(k, ()):
            if variable not in place:
                begin(variable)
        for variable in ends.get(k, ()):
            heappush(free[variable.kind], place[variable])
    used: Counter[int] = Counter()
    for variable, count in times.items():
        used[place[variable]] += count
    parameters = len(function.parameters)
    own = sorted(range(parameters, len(kinds)), key=lambda v: (-used[v], v))
    # Kinds are declared in runs: one of each among the numbers of one byte, one of each behind them.
    short = max(0, 128 - parameters)
    ordered = [v for part in (own[:short], own[short:]) for v in sorted(part, key=lambda v: (kinds[v], v))]
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
            if item[0] in (GET, SET, TEE):
                variable = item[1]
                first.setdefault(variable, k)
                last[variable] = k
                times[variable] += 1
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
        found: its functions; with sines and cosines if they are called.
        exported: names of those that the host calls.
        arrays: numbers in the caller's arrays, which come first.
    """
    if any((CALL_FUNCTION, NAME) in each.code for each in found):
        found = [sines(), *found]
    numbers = global_numbers(found)
    places = any(map(_is_number, numbers))
    index = {each.name: k for k, each in enumerate(found)}
    kinds = [(tuple(v.kind for v in each.parameters), tuple(each.results)) for each in found]
    types = sorted(set(kinds))
    parts = {
        TYPE: [b"\x60" + b"".join(leb(len(k)) + bytes(k) for k in each) for each in types],
        IMPORT: [_name("start") + _name("zero") + b"\3" + bytes([F64, 0])] * places,
        FUNCTION: [leb(types.index(kind)) for kind in kinds],
        MEMORY: [b"\0" + leb(max(1, -(-8 * arrays // PAGE)))],
        GLOBAL: [_declared(name) for name in numbers],
        EXPORT: [_name("memory") + b"\2\0", *(_name(n) + b"\0" + leb(index[n]) for n in exported)],
        CODE: [leb(len(code)) + code for code in (body(each, numbers, index) for each in found)],
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
    """The bytes of a number that may be negative, in LEB128."""
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
    """The function that computes sine and cosine."""
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
