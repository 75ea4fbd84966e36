"""Writes regions as C99: one state, loops as loops, nothing but math.h.

One line is one operation, so a compiler may fuse a product and a sum only where it is told to look across
statements (-ffp-contract=fast, which is GCC's choice without -std=c99). A straight line (straight.py) is cut
into functions: one of all would take GCC four times as long. What crosses a cut goes through an array on the
caller's stack.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.engine.loops.analysis import CALLS, Live, loop_parameters, outcome, starts
from robokit.engine.loops.emit import STACK
from robokit.engine.loops.record import LoopGraph, Region, operands
from robokit.engine.loops.straight import straight
from robokit.engine.signature import ArrayOf
from robokit.engine.trace import ops
from robokit.engine.trace.graph import Program
from robokit.errors import one_line
from robokit.spatial import scalars

SIZE = 500  # operations of a function, about: between 100 and 2,000 GCC's time and the code's hardly change

WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while asm and bool catch class compl delete explicit export false friend mutable namespace new not
    operator or private protected public template this throw true try typeid typename using virtual xor
    cos cosf fabs fabsf floor floorf infinity main nan printf sin sinf sqrt sqrtf work
"""
"""Words of C and C++, and names in the code: no argument has them."""

LONGEST = 100  # characters of a name in C: some file systems take no more than 143

_APART = """/* Kept apart: joined again, the functions would take long to compile. */
#if defined(__GNUC__)
#define APART __attribute__((noinline))
#else
#define APART
#endif
"""


LIBRARY = """
    acosh? asinh? atanh? atan2 cbrt ceil copysign cosh? erfc? exp2? expm1 fabs fdim floor fma fmax fmin fmod
    frexp hypot ilogb ldexp lgamma l?l?rint log10 log1p log2 logb? l?l?round modf nan nearbyint nextafter
    nexttoward pow remainder remquo scalbl?n sinh? sqrt tanh? tgamma trunc
    l?l?abs l?l?div atan2 abort exit free malloc calloc realloc qsort rand srand
    is(alnum|alpha|cntrl|digit|finite|graph|inf|lower|nan|normal|print|punct|space|upper|xdigit)
    to(lower|upper) mem(chr|cmp|cpy|move|set) strc?spn strn?(cat|cmp|cpy) str(chr|len|pbrk|rchr|str)
    v?[fs]?n?printf v?[fs]?scanf puts putchar
"""
"""Functions of the C library, of which no kernel has the name."""

_WHOLE_BELOW = """/* The whole number below a real one; the last one there is where it is beyond. */
static int x_{name}_whole(double x)
{{
    if (!(x >= -2147483648.0)) return x < 0 ? -2147483647 - 1 : 0;
    return x < 2147483648.0 ? (int)floor(x) : 2147483647;
}}
"""

_DIVIDED = """/* A quotient, rounded down; that by 0 is nothing in particular. */
static int x_{name}_divided(int a, int b)
{{
    if (b == 0) return 0;
    if (b == -1) return a < -2147483647 ? 2147483647 : -a;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}}
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

    ``name``: of the function and of the file; ``about``: lines of its comment; ``declarations``: what it
    declares.
    """
    guard = f"{name.upper()}_H"
    return "\n".join(
        [comment(about), f"#ifndef {guard}\n#define {guard}\n", declarations, f"#endif /* {guard} */\n"]
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


def function(head: str, lines: Iterable[str]) -> str:
    """A function with these statements."""
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}", ""])


# -- Regions ---------------------------------------------------------------------------------------------


class CWriter:
    """Writes functions.

    Args:
        graph: the recording.
        live: what of it is needed.
        name: of the kernel; its functions' names begin with it.
        arguments: names of its sizes, then those of its arrays.
        real: kind of the real numbers.
        own_sines: whether sines and cosines are not those of the C library.
    """

    def __init__(
        self, graph: LoopGraph, live: Live, name: str, arguments: Sequence[str], real: Real, own_sines: bool
    ) -> None:
        self.graph, self.live, self.name, self.real = graph, live, name, real
        self.kind, suffix = ("double", "") if real is FLOAT64 else ("float", "f")
        words = {"{f}": suffix, "{t}": self.kind}
        self.form = {
            each.number: re.sub(r"{.}", lambda found: words[found[0]], each.c or each.notation)
            for each in ops.OPERATIONS
        }
        self.form |= {ops.TO_WHOLE: f"x_{name}_whole(%s)"}
        if own_sines:
            self.form |= {ops.SIN: f"x_{name}_sines(%s, 0)", ops.COS: f"x_{name}_sines(%s, 1)"}
        self.form[ops.FLOOR_DIVIDE] = f"x_{name}_divided(%s, %s)"
        kernel = graph.functions[0]
        numbers = [*kernel.region.parameters, *(~k for k in kernel.arrays)]
        self.names = dict(zip(numbers, arguments, strict=True))
        """Of values that have others than x_NUMBER, and of the kernel's arrays, by ~ of their numbers."""
        self.works = {
            kind: live.reach(lambda n, kind=kind: self._in_workspace(n, kind))  # type: ignore[misc]
            for kind in (ops.REAL, ops.INTEGER)
        }
        """The functions that need a workspace of each kind."""
        checks = live.reach(lambda n: graph.nodes[n][0] == ops.CHECK)
        self.fails = checks | self.works[ops.REAL] | self.works[ops.INTEGER]
        self.tops: dict[str, str] = {}
        """Where the workspaces are free."""

    def _in_workspace(self, n: int, kind: str) -> bool:
        node = self.graph.nodes[n]
        return node[0] == ops.ZEROS and self.graph.arrays[node[1]].kind == kind and self._length(n) is None

    def _length(self, n: int) -> int | None:
        """Elements of an array of zeros that stands on the stack."""
        sizes = [self.graph.nodes[k] for k in self.graph.nodes[n][2:]]
        if any(size[0] != ops.WHOLE for size in sizes):
            return None
        length = math.prod(size[1] for size in sizes)
        return length if 8 * length <= STACK else None

    def function(self, number: int) -> tuple[str, str]:
        """The head of a function, and its body."""
        made = self.graph.functions[number]
        parameters, results = self.live.parameters(made), self.live.results(made)
        arguments = [self._name(p) for p in parameters] + [self._array(k) for k in self.live.arrays(made)]
        declared = [f"{self._type(p)} {self._name(p)}" for p in parameters]
        begin = []
        for k in self.live.arrays(made):
            memory = self.graph.arrays[k]
            kind = "int" if memory.kind == ops.INTEGER else self.kind
            if memory.own and not number:
                begin.append(f"{kind} {self._array(k)}[{memory.own}];")
                continue
            declared.append(f"{'' if memory.writable else 'const '}{kind} *restrict {self._array(k)}")
        for kind, (word, t) in self._workspaces().items():
            if number in self.works[kind]:
                arguments += [word, f"{word}_size"]
                declared += [f"{t} *restrict {word}", f"int {word}_size"]
        self.tops = dict.fromkeys(self._workspaces(), "0")
        lines = list(self._region(made.region))
        kind_of_result = "void"
        if len(results) == 1 and number not in self.fails:
            kind_of_result = self._type(results[0])
            lines.append(f"return {self._name(results[0])};")
        else:
            declared += [f"{self._type(r)} *restrict x_out_{k}" for k, r in enumerate(results)]
            lines += [f"*x_out_{k} = {self._name(r)};" for k, r in enumerate(results)]
        if number in self.fails:
            kind_of_result = "int"
            lines.append("return 0;")
        words = set(re.findall(r"\w+", "\n".join(lines)))
        lines = begin + [f"(void){x};" for x in arguments if x not in words] + lines
        head = f"{kind_of_result} {self._function(number)}({', '.join(declared) or 'void'})"
        prefix = "static APART " if made.apart else "static " if number else ""
        return head, function(f"{prefix}{head}", lines)

    def _workspaces(self) -> dict[str, tuple[str, str]]:
        """Name and type of the workspace of each kind of array."""
        return {ops.REAL: ("work", self.kind), ops.INTEGER: ("whole_work", "int")}

    def helpers(self) -> list[str]:
        """Functions of one number or two that are needed."""
        opcodes = {self.graph.nodes[n][0] for n in self.live.nodes}
        found = [_WHOLE_BELOW] * (ops.TO_WHOLE in opcodes) + [_DIVIDED] * (ops.FLOOR_DIVIDE in opcodes)
        texts = [text.format(name=self.name) for text in found]
        texts += [_APART] * any(self.graph.functions[k].apart for k in self.live.functions)
        name = f"x_{self.name}_sines"
        if name in self.form[ops.SIN] and opcodes & {ops.SIN, ops.COS}:
            texts.append(sines(name, self.real))
        return texts

    def _function(self, number: int) -> str:
        return f"x_{self.name}_{number}" if number else self.name

    def _array(self, number: int) -> str:
        return self.names.get(~number, f"x_a{number}")

    def _region(self, region: Region, part: slice = slice(None)) -> Iterator[str]:
        for n in self.live.of(region, part):
            yield from self._lines(n)

    def _name(self, n: int) -> str:
        """A value, where it is read."""
        node = self.graph.nodes[n]
        if node[0] == ops.CONST:
            return number(node[-1 if self.real is FLOAT32 else 1], self.real)
        if node[0] == ops.WHOLE:
            return str(node[1]) if node[1] >= 0 else f"({node[1]})"
        return self.names.get(n, f"x_{n}")

    def _type(self, n: int) -> str:
        return self.kind if self.graph.kinds[n] == ops.REAL else "int"

    def _let(self, n: int, value: str) -> str:
        return f"const {self._type(n)} x_{n} = {value};"

    def _lines(self, n: int) -> Iterator[str]:
        node = self.graph.nodes[n]
        opcode = node[0]
        if opcode in (ops.CONST, ops.WHOLE, ops.GIVEN, ops.VALUE):
            return
        if opcode == ops.LOAD:
            yield self._let(n, f"{self._array(node[1])}[{self._name(node[2])}]")
        elif opcode == ops.STORE:
            yield f"{self._array(node[1])}[{self._name(node[2])}] = {self._name(node[3])};"
        elif opcode in (ops.FOR, ops.WHILE):
            yield from self._loop(n)
        elif opcode == ops.COND:
            yield from self._cond(n)
        elif opcode in CALLS:
            yield from self._call(n)
        elif opcode == ops.ZEROS:
            yield from self._zeros(n)
        elif opcode == ops.CHECK:
            yield f"if (!{self._name(node[1])}) return {self.live.failures[n]};"
        elif outcome(node) is not None:
            yield self._let(n, str(outcome(node)))
        else:
            yield self._let(n, self.form[opcode] % tuple(map(self._name, operands(node))))

    # -- control ------------------------------------------------------------------------------------

    def _loop(self, n: int) -> Iterator[str]:
        node, tops = self.graph.nodes[n], dict(self.tops)
        region, kept = self.graph.regions[node[1]], self.live.positions(n)
        parameters = [loop_parameters(node, region)[k] for k in kept]
        for k, p in zip(kept, parameters, strict=True):
            yield f"{self._type(p)} x_{p} = {self._name(starts(node)[k])};"
        if node[0] == ops.FOR:
            index = f"x_{region.parameters[0]}"
            yield f"for (int {index} = 0; {index} < {self._name(node[2])}; {index}++) {{"
            inside: Iterator[str] = self._region(region)
        else:
            yield "for (;;) {"
            test = [*self._region(region, slice(0, region.tested))]
            test.append(f"if (!{self._name(region.test)}) break;")
            inside = chain(test, self._region(region, slice(region.tested, None)))
        yield from _indented(inside)
        yield from _indented(self._carry(parameters, [region.results[k] for k in kept]))
        yield "}"
        self.tops = tops
        self._leave(n, {k: f"x_{p}" for k, p in zip(kept, parameters, strict=True)})

    def _carry(self, parameters: Sequence[int], results: Sequence[int]) -> Iterator[str]:
        """What is carried on; what is overwritten before it is read is kept aside."""
        aside = dict[int, str]()
        for k, r in enumerate(results):
            if r in parameters[:k] and r not in aside:
                aside[r] = f"x_{r}_was"
                yield f"const {self._type(r)} {aside[r]} = x_{r};"
        for p, r in zip(parameters, results, strict=True):
            if p != r:
                yield f"x_{p} = {aside.get(r, self._name(r))};"

    def _cond(self, n: int) -> Iterator[str]:
        node, kept = self.graph.nodes[n], self.live.positions(n)
        then, otherwise = (self.graph.regions[k] for k in node[2:])
        for k in kept:
            yield f"{self._type(then.results[k])} x_{n}_{k};"
        yield f"if ({self._name(node[1])}) {{"
        for k, branch in enumerate((then, otherwise)):
            if k:
                yield "} else {"
            tops = dict(self.tops)
            yield from _indented(self._region(branch))
            self.tops = tops
            yield from (f"    x_{n}_{at} = {self._name(branch.results[at])};" for at in kept)
        yield "}"
        self._leave(n, {k: f"x_{n}_{k}" for k in kept})

    def _zeros(self, n: int) -> Iterator[str]:
        node, length = self.graph.nodes[n], self._length(n)
        kind = self.graph.arrays[node[1]].kind
        word, t = self._workspaces()[kind]
        if length is not None:
            yield f"{t} {self._array(node[1])}[{max(length, 1)}] = {{0}};"
            return
        sizes, top = [self._name(k) for k in node[2:]], self.tops[kind]
        kinds = [self.graph.nodes[k][0] for k in node[2:]]
        wrong = [f"{size} < 0" for size, k in zip(sizes, kinds, strict=True) if k != ops.WHOLE]
        room = f"{word}_size" + (f" - {top}" if top != "0" else "")
        wrong.append(f"(double){' * '.join(sizes or ['1'])} > {room}")
        yield f"if ({' || '.join(wrong)}) return {self.live.failures[n]};"
        yield f"const int x_{n}_size = {' * '.join(sizes or ['1'])};"
        yield f"const int x_{n}_top = {top} + x_{n}_size;"
        yield f"{t} *const {self._array(node[1])} = {word} + {top};"
        yield f"for (int x_i = 0; x_i < x_{n}_size; x_i++) {self._array(node[1])}[x_i] = 0;"
        yield f"(void)x_{n}_top;"
        self.tops[kind] = f"x_{n}_top"

    def _call(self, n: int) -> Iterator[str]:
        """A call, or several: one result is returned, several through pointers, and a status."""
        node, live = self.graph.nodes[n], self.live
        results = self.graph.functions[node[1]].region.results
        kept, fails = sorted(live.needed_results[node[1]]), node[1] in self.fails
        arrays = [self._array(k) for k in live.passed_arrays(n)]
        for kind, (word, _) in self._workspaces().items():
            if node[1] in self.works[kind]:
                top = self.tops[kind]
                rest = [f"{word} + {top}", f"{word}_size - {top}"]
                arrays += rest if top != "0" else [word, f"{word}_size"]
        for column, (values, read) in enumerate(zip(live.arguments(n), live.values_of(n), strict=True)):
            arguments, name = [*map(self._name, values), *arrays], f"x_{n}_{column}"
            if fails or len(kept) != 1:
                yield from (f"{self._type(results[k])} {name}_{k} = 0;" for k in kept)
                arguments += [f"&{name}_{k}" for k in kept]
            text = f"{self._function(node[1])}({', '.join(arguments)});"
            if fails:
                text = f"const int {name} = {text}"
            elif len(kept) == 1 and read:
                text = f"const {self._type(results[kept[0]])} {name}_{kept[0]} = {text}"
            yield text
            if fails:
                yield f"if ({name}) return {name};"
            self.names |= {value: f"{name}_{k}" for k, value in read.items()}

    def _leave(self, control: int, names: dict[int, str]) -> None:
        """Name the values that a control operation leaves."""
        for n in self.live.values[control]:
            self.names[n] = names[self.graph.nodes[n][2]]


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def c_source(program: Program, name: str, arguments: Sequence[str], real: Real = FLOAT64) -> tuple[str, int]:
    """The functions of a program, the last of which computes it, and its workspace.

    ``program``: what to compute; with no shared functions (trace/record.py); ``name``: of the function.
    ``arguments``: names of its inputs and outputs, identifiers of C. None begins with "x_" or is "work".
    ``real``: kind of the numbers. Returns the source, and the numbers that its function keeps on the stack.
    """
    graph, live = straight(program, SIZE)
    own = [graph.arrays[k].own for k in graph.functions[0].arrays if graph.arrays[k].own]
    writer = CWriter(graph, live, name, [*arguments, *["work"] * len(own)], real, False)
    return "\n".join([*writer.helpers(), *(writer.function(k)[1] for k in live.functions)]), sum(own)


def c_files(
    name: str,
    graph: LoopGraph,
    sizes: Sequence[str],
    arrays: Sequence[ArrayOf],
    real: Real,
    about: Sequence[str],
    units: Mapping[str, str],
    own_sines: bool,
) -> dict[str, str]:
    """The header and the source of a kernel, by the names of their files.

    Args:
        name: of the kernel.
        graph: its recording.
        sizes: names of its sizes.
        arrays: what it takes.
        real: of its real numbers.
        about: what it computes, in lines.
        units: of arguments, by their names.
        own_sines: whether sines and cosines are not those of the C library.
    """
    name = identifier(name)
    if re.fullmatch(f"({'|'.join(LIBRARY.split())})[fl]?", name):
        name = f"r_{name}"
    names = [name, "work", "work_size", "whole_work", "whole_work_size"]
    for argument in (*sizes, *(a.name for a in arrays)):
        names.append(identifier(argument, names))
    arguments = names[5:]
    named = dict(zip((*sizes, *(a.name for a in arrays)), arguments, strict=True))
    live = Live(graph, [k for k, a in enumerate(arrays) if a.role in ("out", "inout")])
    writer = CWriter(graph, live, name, arguments, real, own_sines)
    functions = [writer.function(k) for k in live.functions]
    head = functions[-1][0]
    lines = [*(about or [f"{name}, a function of arrays."]), "", *_documented(sizes, arrays, named, units)]
    lines += _workspace_documented(writer)
    first = comment([lines[0], f"Written by robokit; {name}.h says more."])
    return {
        f"{name}.h": header(name, lines, extern_c(head.replace("restrict ", ""))),
        f"{name}.c": f'{first}\n#include "{name}.h"\n\n#include <math.h>\n\n'
        + "\n".join([*writer.helpers(), *(text for _, text in functions)]),
    }


_ROLES = {
    "in": "input",
    "out": "output",
    "inout": "input and output",
    "work": "memory to work in, whose content is nothing in particular before and after",
}


def _documented(
    sizes: Sequence[str], arrays: Sequence[ArrayOf], named: Mapping[str, str], units: Mapping[str, str]
) -> Iterator[str]:
    """Lines about the arguments."""
    yield "Written by robokit. The arguments, in this order:"
    yield ""
    for n in sizes:
        yield f"{named[n]}: a whole number, not negative{f' [{units[n]}]' if n in units else ''}"
    for a in arrays:
        shape = "".join(f"[{named.get(str(n), n)}]" for n in a.shape) or "[1]"
        rows = ", row by row" if len(a.shape) > 1 else ""
        unit = f" [{units[a.name]}]" if a.name in units else ""
        whole = ", of int" if a.kind == ops.INTEGER else ""
        yield f"{named[a.name]}{shape}{whole}{rows}: {_ROLES[a.role]}{unit}"
    yield ""
    yield "Arrays share no memory. All numbers must be finite: nothing is checked but what is listed below,"
    yield "if anything is. The function keeps no state and allocates nothing."
    yield ""
    yield "GCC rounds each operation by itself with -std=c99, other compilers with -ffp-contract=off."


def _workspace_documented(writer: CWriter) -> Iterator[str]:
    """Lines about memory to work in, and what the function returns."""
    for kind, (word, t) in writer._workspaces().items():
        if 0 in writer.works[kind]:
            yield ""
            yield f"{word}[{word}_size], of {t}: memory to work in, whose content is nothing in particular"
    if 0 in writer.fails:
        yield ""
        yield "Returns 0, or why it ended before its end:"
        yield from (f"    {k} {reason}" for k, reason in enumerate(writer.live.reasons(), 1))


# -- Sine and cosine --------------------------------------------------------------------------------------


def sines(name: str, real: Real) -> str:
    """``static TYPE NAME(TYPE x, int quarters)``: the sine of x and so many quarters of a turn; 0 or 1.

    One line is one operation.
    """
    t, f = ("float", "f") if real is FLOAT32 else ("double", "")
    own = (scalars.NEAR_FLOAT32, scalars.SIN_FLOAT32, scalars.COS_FLOAT32)
    way, sine, cosine = own if f else (scalars.NEAR, scalars.SIN, scalars.COS)
    lines = [
        f"{t} r = x, z, zz, y, p;",
        "double wide = (double)x, m, part;",
        f"if (!(fabs{f}(x) <= {number(scalars.FAR[0], real)})) return NAN;",
        f"if (fabs{f}(x) <= {number(way[0], real)}) {{",
        *[f"    {line}" for line in _reduced("r", "y", "p", way, real)],
        "} else {",
        *[f"    {line}" for line in _reduced("wide", "m", "part", scalars.FAR, FLOAT64)],
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


def _reduced(r: str, k: str, part: str, way: scalars.Way, real: Real) -> Iterator[str]:
    """Lines for what is left of a number after whole quarters of a turn, which are counted."""
    _, magic, parts = way
    yield f"{k} = {r} * {number(scalars.TWO_OVER_PI, real)};"
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
