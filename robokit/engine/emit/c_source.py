"""Writes a program as C99: one state, no memory of its own, nothing but math.h.

One line is one operation, so a compiler may fuse a product and a sum only where it is told to look across
statements (-ffp-contract=fast, which is GCC's choice without -std=c99). As for LLVM, the line is cut into
functions: one of all would take GCC four times as long. What crosses a cut goes through an array on the
caller's stack.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.engine.passes.schedule import call_plan
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import CONST, INPUT, OPERATIONS, TRUTHS
from robokit.errors import one_line
from robokit.spatial.scalars import (
    COS,
    COS_FLOAT32,
    FAR,
    NEAR,
    NEAR_FLOAT32,
    SIN,
    SIN_FLOAT32,
    TWO_OVER_PI,
    Way,
)

SIZE = 500
"""Operations of a function, about: between 100 and 2,000 GCC's time and the code's hardly change."""

NEVER = 2**62

WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while asm and bool catch class compl delete explicit export false friend mutable namespace new not
    operator or private protected public template this throw true try typeid typename using virtual xor
    cos cosf fabs fabsf floor floorf infinity main nan printf sin sinf sqrt sqrtf work
"""
"""Words of C and C++, and names in the code: no argument has them."""

LONGEST = 100
"""Characters of a name in C: files named after it must fit any file system, some of which take 143."""

_APART = """/* Kept apart: joined again, the functions would take long to compile. */
#if defined(__GNUC__)
#define APART __attribute__((noinline))
#else
#define APART
#endif
"""


def identifier(text: str, taken: Sequence[str] = ()) -> str:
    """A name in C like the text: its letters, digits and underscores, unlike all those taken.

    No identifier begins with "x_", as the values inside the functions do. A long text keeps its beginning
    and its end; the digits between them tell it from others of the same ends.
    """
    name = re.sub(r"[\W_]+", "_", text, flags=re.ASCII).strip("_") or "robot"
    if len(name) > LONGEST:
        digits = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]
        kept = LONGEST // 2 - 5
        name = f"{name[:kept].rstrip('_')}_{digits}_{name[-kept:].lstrip('_')}"
    if name[0].isdigit() or name.startswith("x_") or name.lower() in WORDS.split():
        name = f"r_{name}"
    while name in taken:
        name += "_"
    return name


def comment(lines: Sequence[str]) -> str:
    """A comment; what a name holds cannot end it."""
    safe = []
    for line in lines:
        plain = one_line(line, 1000).encode("ascii", "backslashreplace").decode()
        safe.append(re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", plain))
    return "/* " + "\n".join(f" * {line}".rstrip() for line in safe)[3:] + "\n */\n"


def header(name: str, about: Sequence[str], declarations: str) -> str:
    """A header file.

    Args:
        name: of the function and of the file.
        about: lines of its comment.
        declarations: what it declares.
    """
    guard = f"{name.upper()}_H"
    return "\n".join(
        [
            comment(about),
            f"#ifndef {guard}\n#define {guard}\n",
            declarations,
            f"#endif /* {guard} */\n",
        ]
    )


def extern_c(prototype: str) -> str:
    """A declaration that C++ reads as one of C; `restrict`, which C++ has not, need not stand in it."""
    return f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{prototype};\n\n#ifdef __cplusplus\n}}\n#endif\n'


def number(value: float, real: Real = FLOAT64) -> str:
    """A constant in C that is read back as it was, rounded to the kind of number."""
    with np.errstate(over="ignore"):
        rounded = value if real is FLOAT64 else np.float32(value)
    if math.isfinite(rounded):
        text = str(rounded) if real is FLOAT64 else f"{rounded}f"
        return f"({text})" if text.startswith("-") else text
    return "NAN" if math.isnan(rounded) else "INFINITY" if rounded > 0.0 else "(-INFINITY)"


def c_source(program: Program, name: str, arguments: Sequence[str], real: Real = FLOAT64) -> tuple[str, int]:
    """The functions of a program, the last of which computes it, and its workspace.

    Args:
        program: what to compute; with no shared functions (trace/record.py).
        name: of the function; those that it calls begin with it.
        arguments: names of its inputs and outputs, identifiers of C. None begins with "x_" or is
            "work".
        real: kind of the numbers.

    Returns:
        the source, and the numbers that its function keeps on the stack.
    """
    return _Source(program, name, arguments, real).text()


class _Source:
    def __init__(self, program: Program, name: str, arguments: Sequence[str], real: Real) -> None:
        self.program, self.name, self.real = program, name, real
        self.arguments = arguments
        self.kind, suffix = ("double", "") if real is FLOAT64 else ("float", "f")
        self.form = [(each.c or each.notation).replace("{f}", suffix) for each in OPERATIONS]
        self.plan = call_plan(program, 1, False, SIZE, NEVER)
        self.used: set[str] = set()
        self.places: dict[int, list[str]] = {}
        """Where in the outputs the value of a node goes."""
        self.copies: list[str] = []
        """The outputs that nothing is computed for."""
        for k, row in enumerate(program.results):
            out = arguments[program.first_output + k]
            for at, r in enumerate(row):
                if type(r) is int and program.nodes[r][0] > CONST:
                    self.places.setdefault(r, []).append(f"{out}[{at}]")
                else:
                    value = self._leaf(r) if type(r) is int else number(r, real)
                    self.copies.append(f"{out}[{at}] = {value};")
                    self.used.add(out)

    def text(self) -> tuple[str, int]:
        """See :func:`c_source`."""
        chunks = self.plan.chunks
        texts, size = [], 0
        body = list(self.copies)
        if len(chunks) == 1:
            self._pointers(chunks[0])
            body += self._lines(chunks[0])
        elif chunks:
            size = self.plan.slots
            texts.append(_APART)
            body = [f"{self.kind} work[{size}];"] * (size > 0) + body
            for k, chunk in enumerate(chunks):
                part, lines = f"{self.name}_{k}", list(self._lines(chunk))
                own = self._pointers(chunk)
                if any("work[" in line for line in lines):
                    own.append("work")
                head = f"static APART void {part}({self._declared(own)})"
                texts.append(function(head, lines))
                body.append(f"{part}({', '.join(own)});")
        body += [f"(void){a};" for a in self.arguments if a not in self.used]
        head = f"void {self.name}({self._declared(self.arguments) or 'void'})"
        return "\n".join([*texts, function(head, body)]), size

    def _declared(self, names: Sequence[str]) -> str:
        given = self.arguments[: self.program.first_output]
        kinds = (f"const {self.kind}" if n in given else self.kind for n in names)
        return ", ".join(f"{kind} *restrict {n}" for kind, n in zip(kinds, names, strict=True))

    def _pointers(self, chunk: Sequence[int]) -> list[str]:
        """The arguments that a chunk reads or writes, in their order."""
        nodes, found = self.program.nodes, set()
        for n in chunk:
            leaves = (nodes[operand] for operand in nodes[n][1:])
            found |= {self._pointer(leaf) for leaf in leaves if leaf[0] == INPUT}
            found |= {place.partition("[")[0] for place in self.places.get(n, ())}
        self.used |= found
        return [a for a in self.arguments if a in found]

    def _pointer(self, leaf: Sequence[int]) -> str:
        return self.arguments[leaf[1]]

    def _leaf(self, n: int) -> str:
        node = self.program.nodes[n]
        if node[0] == CONST:
            return number(node[1], self.real)
        pointer = self._pointer(node)
        self.used.add(pointer)
        return f"{pointer}[{node[2]}]"

    def _lines(self, chunk: Sequence[int]) -> Iterator[str]:
        """The statements of a chunk."""
        nodes, plan, known = self.program.nodes, self.plan, set[int]()
        for n in chunk:
            opcode, *operands = nodes[n]
            values = []
            for operand in operands:
                if nodes[operand][0] <= CONST:
                    values.append(self._leaf(operand))
                    continue
                values.append(f"x_{operand}")
                if operand not in known:
                    known.add(operand)
                    slot = f"work[{plan.slot[operand]}]"
                    truth = nodes[operand][0] in TRUTHS
                    yield self._let(operand, f"{slot} != 0" if truth else slot)
            yield self._let(n, self.form[opcode] % tuple(values))
            known.add(n)
            if n in plan.stored:
                yield f"work[{plan.slot[n]}] = x_{n};"
            for place in self.places.get(n, ()):
                yield f"{place} = x_{n};"

    def _let(self, n: int, value: str) -> str:
        return f"const {'int' if self.program.nodes[n][0] in TRUTHS else self.kind} x_{n} = {value};"


def function(head: str, lines: Iterable[str]) -> str:
    """A function with these statements."""
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}", ""])


def sines(name: str, real: Real) -> str:
    """``static TYPE NAME(TYPE x, int quarters)``: the sine of x and so many quarters of a turn; 0 or 1.

    One line is one operation, as in emit/c_source.py.
    """
    t, f = ("float", "f") if real is FLOAT32 else ("double", "")
    way, sine, cosine = (NEAR_FLOAT32, SIN_FLOAT32, COS_FLOAT32) if f else (NEAR, SIN, COS)
    lines = [
        f"{t} r = x, z, zz, y, p;",
        "double wide = (double)x, m, part;",
        f"if (!(fabs{f}(x) <= {number(FAR[0], real)})) return NAN;",
        f"if (fabs{f}(x) <= {number(way[0], real)}) {{",
        *[f"    {line}" for line in _reduced("r", "y", "p", way, real)],
        "} else {",
        *[f"    {line}" for line in _reduced("wide", "m", "part", FAR, FLOAT64)],
        f"    r = ({t})wide;",
        "}",
        "z = r * r;",
        "zz = z * z;",
        "if (quarters & 1) {",
        *[f"    {line}" for line in _polynomial(cosine, real)],
        f"    z = z * {number(0.5, real)};",
        f"    z = {number(1.0, real)} - z;",
        "    p = zz * p;",
        "    y = z + p;",
        "} else {",
        *[f"    {line}" for line in _polynomial(sine, real)],
        "    z = r * z;",
        "    p = z * p;",
        "    y = r + p;",
        "}",
        "return quarters & 2 ? -y : y;",
    ]
    return "/* The sine of x and so many quarters of a turn. */\n" + function(
        f"static {t} {name}({t} x, int quarters)", lines
    )


def _reduced(r: str, k: str, part: str, way: Way, real: Real) -> Iterator[str]:
    """Lines for what is left of a number after whole quarters of a turn, which are counted."""
    _, magic, parts = way
    yield f"{k} = {r} * {number(TWO_OVER_PI, real)};"
    yield f"{k} = {number(magic, real)} + {k};"
    yield f"{k} = {k} - {number(magic, real)};"
    for value in parts:
        yield f"{part} = {k} * {number(value, real)};"
        yield f"{r} = {r} - {part};"
    yield f"quarters += (int){k};"


def _polynomial(a: Sequence[float], real: Real) -> Iterator[str]:
    """Lines for p = (a0 + a1 z) + zz ((a2 + a3 z) + zz (a4 + a5 z))."""
    pairs = [a[j : j + 2] for j in range(0, len(a), 2)]
    yield from _pair("p", pairs[-1], real)
    for pair in reversed(pairs[:-1]):
        yield "p = zz * p;"
        yield from _pair("y", pair, real)
        yield "p = y + p;"


def _pair(name: str, pair: Sequence[float], real: Real) -> Iterator[str]:
    numbers = [number(value, real) for value in pair]
    yield f"{name} = {f'z * {numbers[1]}' if numbers[1:] else numbers[0]};"
    if numbers[1:]:
        yield f"{name} = {numbers[0]} + {name};"
