"""Functions of WebAssembly with their local variables numbered anew, so that the code is shorter.

An instruction names a variable by its number, in one byte up to 127 and in two up to 16383. LLVM numbers them
in the order in which they come; a long straight line has hundreds. Here those that are used most get the
small numbers. Nothing else is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

GET, SET, TEE = 0x20, 0x21, 0x22
LOCALS = (GET, SET, TEE)

_PLAIN = {0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B, *range(0x45, 0xC5)}
"""Instructions of one byte."""

_ONE_NUMBER = {0x0C, 0x0D, 0x10, 0x23, 0x24, 0x41, 0x42, *LOCALS}
"""Instructions with one number: branches, calls, variables, whole constants."""

_BLOCKS = {0x02, 0x03, 0x04}
_MEMORY = set(range(0x28, 0x3F))
_FLOATS = {0x43: 4, 0x44: 8}
_MORE = 0xFC


class Unknown(Exception):
    """An instruction that this file does not know."""


@dataclass(frozen=True)
class _Local:
    """Where an instruction names a variable: first and last byte of the number, and the variable."""

    start: int
    end: int
    variable: int


def shorter(body: bytes, parameters: int) -> bytes:
    """The body of a function, declarations and instructions, with its variables numbered by use.

    Args:
        body: as it stands in the code section, without its length.
        parameters: how many variables are arguments, which keep their numbers.

    Raises:
        Unknown: the body has an instruction that is not known here.
    """
    kinds, at = _declared(body)
    uses = list(_uses(body, at))
    count = Counter(use.variable for use in uses)
    own = range(parameters, parameters + len(kinds))
    by_use = sorted(own, key=lambda v: (-count[v], v))
    # Kinds are declared in runs: one of each among the numbers of one byte, one of each behind them.
    short = max(0, 128 - parameters)
    ordered = [
        v
        for part in (by_use[:short], by_use[short:])
        for v in sorted(part, key=lambda v: kinds[v - parameters])
    ]
    number = {v: parameters + k for k, v in enumerate(ordered)}
    out, before = [_declaration([kinds[v - parameters] for v in ordered])], at
    for use in uses:
        out += [body[before : use.start], leb(number.get(use.variable, use.variable))]
        before = use.end
    return b"".join([*out, body[before:]])


def leb(value: int) -> bytes:
    """A number that is not negative, in as few bytes as there may be."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(body: bytes, at: int) -> tuple[int, int]:
    """A number that is not negative, and where it ends."""
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _declared(body: bytes) -> tuple[list[int], int]:
    """The kind of each variable that is declared, and where the instructions begin."""
    runs, at = _number(body, 0)
    kinds: list[int] = []
    for _ in range(runs):
        count, at = _number(body, at)
        kinds += [body[at]] * count
        at += 1
    return kinds, at


def _declaration(kinds: list[int]) -> bytes:
    runs: list[list[int]] = []
    for kind in kinds:
        if runs and runs[-1][1] == kind:
            runs[-1][0] += 1
        else:
            runs.append([1, kind])
    return leb(len(runs)) + b"".join(leb(count) + bytes([kind]) for count, kind in runs)


def _uses(body: bytes, at: int) -> Iterator[_Local]:
    """Every use of a variable, in order."""
    while at < len(body):
        code = body[at]
        at += 1
        if code in LOCALS:
            variable, end = _number(body, at)
            yield _Local(at, end, variable)
            at = end
        elif code in _PLAIN:
            continue
        elif code in _ONE_NUMBER:
            at = _number(body, at)[1]
        elif code in _BLOCKS:
            at += 1
        elif code in _MEMORY:
            at = _number(body, _number(body, at)[1])[1]
        elif code in _FLOATS:
            at += _FLOATS[code]
        elif code == _MORE:
            which, at = _number(body, at)
            if which > 7:  # more than a conversion
                raise Unknown(f"instruction fc {which}")
        else:
            raise Unknown(f"instruction {code:x}")
