"""From the text of emit/wasm_module.py to the functions of a WebAssembly module, in few bytes.

An instruction names a variable by its number, in one byte up to 127 and in two up to 16383. Values that are
not needed at the same time share a variable, and those that are used most get the small numbers.

A place in memory takes six bytes to read or to write, a *global* two or three, and five more once, for it
begins as a copy of one that the host brings: 0. So nearly all places are globals, and the constants that are
used often, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

I32, I64, F64 = 0x7F, 0x7E, 0x7C
KINDS = {"t": I32, "l": I64}
"""Kinds of the variables whose names end so; all others are numbers."""

GET, SET, TEE, GLOBAL_GET, GLOBAL_SET, CALL = 0x20, 0x21, 0x22, 0x23, 0x24, 0x10
NUMBER, WHOLE, LONG, LOAD, STORE = b"\x44", b"\x41", b"\x42", b"\x2b\x03", b"\x39\x03"
SHIFT = b"\x41\x03\x74"
"""Three bits to the left: bytes of so many numbers."""

PLAIN = {
    "end": b"\x0b", "drop": b"\x1a", "select": b"\x1b", "if": b"\x04\x40",
    "i32.eqz": b"\x45", "i32.and": b"\x71", "i32.or": b"\x72", "i32.wrap_i64": b"\xa7",
    "i32.trunc_f64_s": b"\xaa", "i64.and": b"\x83", "i64.xor": b"\x85", "i64.shl": b"\x86",
    "i64.shr_u": b"\x88",
    "i64.reinterpret_f64": b"\xbd", "f64.reinterpret_i64": b"\xbf", "f64.convert_i32_u": b"\xb8",
    "f64.eq": b"\x61", "f64.lt": b"\x63", "f64.gt": b"\x64", "f64.le": b"\x65",
    "f64.abs": b"\x99", "f64.neg": b"\x9a", "f64.floor": b"\x9c", "f64.sqrt": b"\x9f",
    "f64.add": b"\xa0", "f64.sub": b"\xa1", "f64.mul": b"\xa2", "f64.div": b"\xa3",
}  # fmt: skip
"""Instructions without an operand of their own."""

OFTEN_PLACE, OFTEN_NUMBER = 2, 3
"""Times that a place or a constant is named from which on it is a global."""


@dataclass
class Function:
    """A function as text.

    Attributes:
        name: of it.
        parameters: variables that hold its arguments, all numbers.
        results: how many numbers it leaves.
        lines: its instructions.
    """

    name: str
    parameters: list[str]
    results: int
    lines: list[str] = field(default_factory=list)


def functions(text: str) -> list[Function]:
    """The functions of a text."""
    found: list[Function] = []
    for line in text.split("\n"):
        if line.startswith("func "):
            head, _, results = line[5:].partition(":")
            name, *parameters = head.split()
            found.append(Function(name, parameters, int(results)))
        elif line:
            found[-1].lines.append(line)
    return found


@dataclass
class Storage:
    """Where places and constants are.

    Attributes:
        address: of each place in memory, its first byte.
        globals: number of each place (text "7") and constant (its bits in hexadecimal) that is a global.
        size: of memory, in bytes.
    """

    address: dict[str, int]
    globals: dict[str, int]
    size: int

    @classmethod
    def of(cls, found: list[Function], arrays: int) -> Storage:
        """Decide.

        Args:
            found: the functions.
            arrays: places below this are the caller's arrays, which are in memory, a number each.
        """
        words = Counter(line for each in found for line in each.lines if line[0] in "tpkn")
        named: Counter[str] = Counter()
        for line, times in words.items():
            what, _, name = line.partition(" ")
            if what in ("take", "put", "keep", "number"):
                named[name] += times
        places = [name for name in named if len(name) < 16]
        inside = {name for name in places if int(name) < arrays}
        often = [
            (-times, name)
            for name, times in named.items()
            if name not in inside and times >= (OFTEN_PLACE if len(name) < 16 else OFTEN_NUMBER)
        ]
        index = {name: 1 + k for k, (_, name) in enumerate(sorted(often))}  # after the host's
        rest = sorted(
            (name for name in places if name not in index and name not in inside), key=lambda n: -named[n]
        )
        address = {name: 8 * int(name) for name in inside}
        address |= {name: 8 * (arrays + k) for k, name in enumerate(rest)}
        return cls(address, index, 8 * (arrays + len(rest)))

    def declared(self) -> list[bytes]:
        """The globals as they stand in their section."""
        out = []
        for name in self.globals:
            constant = len(name) == 16
            begin = NUMBER + bytes.fromhex(name) if constant else bytes([GLOBAL_GET, 0])
            out.append(bytes([F64, not constant]) + begin + b"\x0b")
        return out


def assembled(found: list[Function], arrays: int) -> tuple[list[bytes], Storage]:
    """The bodies of functions as they stand in the code section, without their lengths, and their storage."""
    storage = Storage.of(found, arrays)
    index = {each.name: k for k, each in enumerate(found)}
    return [_body(each, storage, index) for each in found], storage


def _body(function: Function, storage: Storage, index: dict[str, int]) -> bytes:
    number, declared = _numbered(function)
    coded = dict(PLAIN)
    out = [declared]
    for line in function.lines:
        code = coded.get(line)
        if code is None:
            code = coded[line] = _code(line, number, storage, index)
        out.append(code)
    return b"".join(out) + b"\x0b"


def _code(line: str, number: dict[str, int], storage: Storage, index: dict[str, int]) -> bytes:
    """An instruction with an operand."""
    what, _, name = line.partition(" ")
    if what in ("get", "set", "tee"):
        return bytes([{"get": GET, "set": SET, "tee": TEE}[what]]) + leb(number[name])
    if what == "call":
        return bytes([CALL]) + leb(index[name])
    if what == "i64.const":
        return LONG + signed(int(name))
    if what == "entry":
        return SHIFT + LOAD + leb(8 * int(name))
    at = storage.globals.get(name)
    if at is not None:
        if what == "at":
            return b""
        return bytes([GLOBAL_SET if what in ("put", "keep") else GLOBAL_GET]) + leb(at)
    if what == "number":
        return NUMBER + bytes.fromhex(name)
    zero, address = WHOLE + b"\0", leb(storage.address[name])
    if what == "at":
        return zero
    if what == "take":
        return zero + LOAD + address
    if what == "put":
        return STORE + address
    spare = leb(number["spare"])
    return bytes([SET]) + spare + zero + bytes([GET]) + spare + STORE + address


def _numbered(function: Function) -> tuple[dict[str, int], bytes]:
    """The number of each variable, and the declaration of those that are no parameters."""
    last: dict[str, int] = {}
    times: Counter[str] = Counter()
    for k, line in enumerate(function.lines):
        if line[3:4] == " " and line[:3] in ("get", "set", "tee"):
            last[line[4:]] = k
            times[line[4:]] += 1
    if any(line.startswith("keep ") for line in function.lines):
        last["spare"] = len(function.lines)
    # Variables in order of their first use share a place as soon as one is over: branches only go forward.
    # One that has to be 0 before it is set has a place that nothing has used before.
    place: dict[str, int] = {}
    kinds: list[int] = []
    free: defaultdict[int, list[int]] = defaultdict(list)

    def begin(name: str) -> None:
        kind = KINDS.get(name[-1], F64)
        if free[kind] and name[-1] != "z":
            place[name] = free[kind].pop()
        else:
            place[name] = len(kinds)
            kinds.append(kind)

    for name in function.parameters:
        begin(name)
    for name in [*function.parameters, "spare"]:
        if name not in last:
            free[F64] += [place[name]] if name in place else []
        elif name not in place:
            begin(name)
    for k, line in enumerate(function.lines):
        if line[3:4] == " " and line[:3] in ("get", "set", "tee"):
            name = line[4:]
            if name not in place:
                begin(name)
            if last[name] == k:
                free[KINDS.get(name[-1], F64)].append(place[name])
    used: Counter[int] = Counter()
    for name, count in times.items():
        used[place[name]] += count
    parameters = len(function.parameters)
    own = sorted(range(parameters, len(kinds)), key=lambda v: (-used[v], v))
    # Kinds are declared in runs: one of each among the numbers of one byte, one of each behind them.
    short = max(0, 128 - parameters)
    ordered = [v for part in (own[:short], own[short:]) for v in sorted(part, key=lambda v: kinds[v])]
    final = {v: v for v in range(parameters)} | {v: parameters + k for k, v in enumerate(ordered)}
    return {name: final[at] for name, at in place.items()}, _declaration([kinds[v] for v in ordered])


def _declaration(kinds: list[int]) -> bytes:
    runs: list[list[int]] = []
    for kind in kinds:
        if runs and runs[-1][1] == kind:
            runs[-1][0] += 1
        else:
            runs.append([1, kind])
    return leb(len(runs)) + b"".join(leb(count) + bytes([kind]) for count, kind in runs)


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
