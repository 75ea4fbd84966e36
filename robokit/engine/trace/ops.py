"""The operations of recorded graphs: one place for everything that is known of each.

A new operation is one more `_operation(...)` below. The tracer (scalar.py), the counts (graph.py), the
emitters, and who replays a recording, read this table. What else it takes: a way to record it, a method or a
function in scalar.py, and for a function of the algorithms its name in `robokit.spatial.scalars`.

Recordings with loops (loops/record.py) have operations on whole numbers, too, and nodes with regions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.spatial.scalars import cos, sin, where

REAL, INTEGER, TRUTH, NOTHING = "real", "integer", "truth", "nothing"  # kinds of values

Slope = Callable[..., Any]
"""(d, value, *operands) -> d times the derivative of the value with respect to one operand.

The same function carries a tangent d of the operand forward and an adjoint d of the value back. It takes
traced scalars and plain numbers. A choice passes d on or drops it, so that NaN in the branch that was not
taken stays there.
"""


@frozen
class Operation:
    """Properties of one operation."""

    number: int  # its opcode, the first item of a node; place in :data:`OPERATIONS`
    name: str  # in messages
    notation: str  # how it is written for a reader, with `%s` for each operand
    value: Callable[..., Any]  # its value on plain numbers: floats, or bools for truths
    # its instruction in LLVM's language: `%s` for each operand, `{t}` for the type of a real number, `{i}`
    # for that of a whole one, `{truth}` for that of a truth, `{true}` for the constant, `{suffix}` for the
    # ending of intrinsics; "" where it takes more than one. A paired operation has one operand, the pair
    # that @sincos returned.
    llvm: str
    # derivative with respect to each operand; none where the value is a truth, which changes only in jumps,
    # and None for an operand that is one
    slopes: tuple[Slope | None, ...] = ()
    count: str = ""  # what it counts as; "" where it is not counted
    # whether it is a floating-point operation: an addition, multiplication, division or root
    flop: bool = False
    commutes: bool = False  # whether operands may change places; the smaller node is then written first
    parity: int = 0  # of a function f of one number: -1 if f(-x) = -f(x), 1 if f(-x) = f(x), else 0
    kind: str = REAL  # of its value
    whole: bool = False  # whether it takes whole numbers, or makes one
    # whether it is computed, and counted, together with the other of its pair on the same operand
    paired: bool = False
    intrinsic: str = ""  # LLVM's function of that name computes it; "" where an instruction does
    wasm: str = ""  # its instruction in WebAssembly; "" where it takes more than one
    # how it is written in C, `%s` for each operand, where that is not the notation; `{f}` for the ending of
    # functions of math.h, `{t}` for the type of a real number
    c: str = ""

    @property
    def operands(self) -> int:
        """Number of operands."""
        return self.notation.count("%s")

    @property
    def truth(self) -> bool:
        """Whether its value is true or false, not a number."""
        return self.kind == TRUTH


PARAMETER, INPUT, CONST = -3, -2, -1
"""Opcodes of what computes nothing.

(PARAMETER, block, position), (INPUT, input, offset), (CONST, value).

All others are larger.
"""

OPERATIONS: list[Operation] = []  # every operation, by its opcode


def _operation(
    name: str, notation: str, value: Callable[..., Any], llvm: str = "", intrinsic: str = "", **more: Any
) -> int:
    """Add an operation to the table; its opcode."""
    number = len(OPERATIONS)
    if intrinsic:
        llvm = f"call {{t}} @llvm.{intrinsic}.{{suffix}}({{t}} %s)"
    OPERATIONS.append(Operation(number, name, notation, value, llvm, intrinsic=intrinsic, **more))
    return number


def _quotient(a: float, b: float) -> float:
    # Floats of Python raise where the processor answers inf or NaN.
    if b == 0.0:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


# No fast-math flags: NaN and infinities mean what they mean, and passes/order.py says what is fused.

MUL = _operation(
    "product",
    "%s * %s",
    operator.mul,
    "fmul {t} %s, %s",
    slopes=(lambda d, y, a, b: d * b, lambda d, y, a, b: d * a),
    count="mul",
    flop=True,
    commutes=True,
    wasm="f64.mul",
)
ADD = _operation(
    "sum",
    "%s + %s",
    operator.add,
    "fadd {t} %s, %s",
    slopes=(lambda d, y, a, b: d, lambda d, y, a, b: d),
    count="add",
    flop=True,
    commutes=True,
    wasm="f64.add",
)
SUB = _operation(
    "difference",
    "%s - %s",
    operator.sub,
    "fsub {t} %s, %s",
    slopes=(lambda d, y, a, b: d, lambda d, y, a, b: -d),
    count="add",
    flop=True,
    wasm="f64.sub",
)
DIV = _operation(
    "quotient",
    "%s / %s",
    _quotient,
    "fdiv {t} %s, %s",
    slopes=(lambda d, y, a, b: d / b, lambda d, y, a, b: -(d / b) * y),
    count="div",
    flop=True,
    wasm="f64.div",
)
SQRT = _operation(
    "square root",
    "sqrt(%s)",
    lambda a: math.sqrt(a) if a >= 0.0 else math.nan,
    intrinsic="sqrt",
    c="sqrt{f}(%s)",
    slopes=(lambda d, y, a: 0.5 * d / y,),
    count="sqrt",
    flop=True,
    wasm="f64.sqrt",
)
SIN = _operation(
    "sine",
    "sin(%s)",
    lambda a: math.sin(a) if math.isfinite(a) else math.nan,
    "extractvalue {{{t}, {t}}} %s, 0",
    slopes=(lambda d, y, a: d * cos(a),),
    count="sincos",
    parity=-1,
    paired=True,
    c="sin{f}(%s)",
)
COS = _operation(
    "cosine",
    "cos(%s)",
    lambda a: math.cos(a) if math.isfinite(a) else math.nan,
    "extractvalue {{{t}, {t}}} %s, 1",
    slopes=(lambda d, y, a: -(d * sin(a)),),
    count="sincos",
    parity=1,
    paired=True,
    c="cos{f}(%s)",
)
NEG = _operation(
    "negative",
    "-%s",
    operator.neg,
    "fneg {t} %s",
    slopes=(lambda d, y, a: -d,),
    count="neg",
    parity=-1,
    wasm="f64.neg",
)
ABS = _operation(
    "absolute value",
    "abs(%s)",
    abs,
    intrinsic="fabs",
    c="fabs{f}(%s)",
    slopes=(lambda d, y, a: where(a < 0.0, -d, d),),
    parity=1,
    wasm="f64.abs",
)
SELECT = _operation(
    "choice",
    "(%s ? %s : %s)",
    lambda c, a, b: a if c else b,
    "select {truth} %s, {t} %s, {t} %s",
    slopes=(None, lambda d, y, c, a, b: where(c, d, 0.0), lambda d, y, c, a, b: where(c, 0.0, d)),
    count="select",
    wasm="select",
)
# A choice for whose first number a block is guarded (passes/order.py).
GUARD = _operation(
    "guarded choice",
    "(%s ? %s : %s)",
    OPERATIONS[SELECT].value,
    OPERATIONS[SELECT].llvm,
    slopes=OPERATIONS[SELECT].slopes,
    count="select",
    wasm="select",
)
FLOOR = _operation(
    "floor",
    "floor(%s)",
    lambda a: float(math.floor(a)) if math.isfinite(a) else a,
    intrinsic="floor",
    slopes=(lambda d, y, a: 0.0 * d,),
    c="floor{f}(%s)",
    wasm="f64.floor",
)
# A shared function is taken (trace/record.py): (CALL, block, arguments...) and (RESULT, call, position),
# where block and position are constants. What they mean does not follow from their operands alone.
CALL = _operation("call", "%s()", lambda *_: math.nan)
RESULT = _operation("result", "%s[%s]", lambda *_: math.nan)
# Two numbers in the lanes of a vector, and one of them alone (passes/superword.py).
PAIR = _operation("pair", "(%s, %s)", lambda *_: math.nan)
FIRST = _operation("first", "%s.0", lambda *_: math.nan)
SECOND = _operation("second", "%s.1", lambda *_: math.nan)
# Comparisons are ordered: false where a number is NaN.
LT = _operation(
    "less", "%s < %s", operator.lt, "fcmp olt {t} %s, %s", count="compare", kind=TRUTH, wasm="f64.lt"
)
LE = _operation(
    "less or equal",
    "%s <= %s",
    operator.le,
    "fcmp ole {t} %s, %s",
    count="compare",
    kind=TRUTH,
    wasm="f64.le",
)
EQ = _operation(
    "equal", "%s == %s", operator.eq, "fcmp oeq {t} %s, %s",
    count="compare", commutes=True, kind=TRUTH, wasm="f64.eq",
)  # fmt: skip
AND = _operation(
    "and", "%s && %s", operator.and_, "and {truth} %s, %s", commutes=True, kind=TRUTH, wasm="i32.and"
)
OR = _operation("or", "%s || %s", operator.or_, "or {truth} %s, %s", commutes=True, kind=TRUTH, wasm="i32.or")
NOT = _operation("not", "!%s", operator.not_, "xor {truth} %s, {true}", kind=TRUTH, wasm="i32.eqz")

# Solved equations (trace/record.py) in what is recorded to be differentiated: a value as it is, whose
# derivative is 0 (the other operands make no difference), and one of the numbers that solve an equation.
STILL = _operation("still", "still(%s)", lambda a, *_: a)
SOLVED = _operation("solution", "solution()", lambda i, _, *values: values[int(i)])


def _whole(
    name: str, notation: str, value: Callable[..., Any], llvm: str = "", wasm: str = "", kind: str = INTEGER,
    **more: Any,
) -> int:  # fmt: skip
    return _operation(name, notation, value, llvm, kind=kind, whole=True, wasm=wasm, **more)


# Of whole numbers, which recordings with loops have: indices and counts.
PLUS = _whole("whole sum", "%s + %s", operator.add, "add nsw {i} %s, %s", "i32.add", commutes=True)
MINUS = _whole("whole difference", "%s - %s", operator.sub, "sub nsw {i} %s, %s", "i32.sub")
TIMES = _whole("whole product", "%s * %s", operator.mul, "mul nsw {i} %s, %s", "i32.mul", commutes=True)
WHOLE_LT = _whole("whole less", "%s < %s", operator.lt, "icmp slt {i} %s, %s", "i32.lt_s", TRUTH)
WHOLE_LE = _whole("whole less or equal", "%s <= %s", operator.le, "icmp sle {i} %s, %s", "i32.le_s", TRUTH)
WHOLE_EQ = _whole(
    "whole equal", "%s == %s", operator.eq, "icmp eq {i} %s, %s", "i32.eq", TRUTH, commutes=True
)
WHOLE_SELECT = _whole(
    "whole choice", "(%s ? %s : %s)", OPERATIONS[SELECT].value, "select {truth} %s, {i} %s, {i} %s", "select"
)
TO_REAL = _whole("real", "%s", float, "sitofp {i} %s to {t}", "f64.convert_i32_s", REAL, c="({t})%s")
# Quotients and what is rounded down take more than one instruction. They may stand before their check.
FLOOR_DIVIDE = _whole("whole quotient", "%s // %s", lambda a, b: a // b if b else 0)
TO_WHOLE = _whole("whole", "whole(%s)", lambda a: math.floor(a) if math.isfinite(a) else 0)

# Nodes of recordings with loops that are no operations on numbers (loops/record.py).
(
    GIVEN, WHOLE, LOAD, STORE, ZEROS, CHECK, FOR, WHILE, COND, VALUE, APPLY, VMAP, LINK,
) = range(1000, 1013)  # fmt: skip


ON_NUMBERS = {each.number: each.value for each in OPERATIONS}
"""How each operation is done on plain numbers."""

_FOLDED = {
    each.number: each.value
    for each in OPERATIONS
    if each.number == NOT or (each.whole and each.llvm and each.kind != REAL)
}


def folded(node: tuple[Any, ...], known: Callable[[int], Any]) -> Any:
    """The whole number or truth that a node is where its operands are known, or one that decides; else None.

    ``known``: what an operand is, or None.
    """
    opcode, *operands = node
    if opcode not in _FOLDED and opcode not in (AND, OR):
        return None
    values = [known(k) for k in operands]
    if opcode in _FOLDED:
        return None if None in values else _FOLDED[opcode](*values)
    decides = opcode == OR
    return decides if decides in values else None if None in values else not decides


TRUTHS = frozenset(each.number for each in OPERATIONS if each.truth)  # opcodes whose value is true or false

JUMPS = TRUTHS | {FLOOR, STILL}
"""Operations whose value changes in jumps only, or counts as constant: it has no derivative."""

INTRINSICS = tuple(sorted({each.intrinsic for each in OPERATIONS} - {""}))
"""Functions of LLVM that the operations need."""

COUNTS = tuple(dict.fromkeys(each.count for each in OPERATIONS if each.count))  # what operations count as

_FLOPS = frozenset(each.count for each in OPERATIONS if each.flop)


def counted(codes: np.ndarray, firsts: np.ndarray) -> dict[str, int]:
    """How many nodes there are of each of :data:`COUNTS`; a sine and a cosine of one angle are one.

    ``codes``: their operations; ``firsts``: the first operand of each.
    """
    counts = dict.fromkeys(COUNTS, 0)
    times = np.bincount(codes, minlength=len(OPERATIONS)).tolist()
    for each in OPERATIONS:
        if each.count and not each.paired:
            counts[each.count] += times[each.number]
    for name in {each.count for each in OPERATIONS if each.paired}:
        paired = [each.number for each in OPERATIONS if each.paired and each.count == name]
        counts[name] += len(np.unique(firsts[np.isin(codes, paired)]))
    return counts


def flops(counts: Mapping[str, int]) -> int:
    """Additions, multiplications, divisions and square roots among these counts."""
    return sum(counts[name] for name in COUNTS if name in _FLOPS)
