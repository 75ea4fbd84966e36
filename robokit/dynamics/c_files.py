"""The files of a function in C: a header, the source, and a program that checks them on one state.

They say what their reader needs: what the function computes for which robot, how its arrays are laid out, the
joints behind the entries of q and v, and units. They need nothing but a C99 compiler and math.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robokit.engine.emit.c_source import c_source, comment, extern_c, header, number
from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.trace.program import Program

TOLERANCE = {"float64": 1e-8, "float32": 1e-2}
"""Largest error that the checking program lets pass, over the output's largest entry."""

_WIDTH = 100


@dataclass(frozen=True)
class Argument:
    """An array that the function takes or fills.

    Attributes:
        name: an identifier of C.
        shape: of the array; () for one number.
        meaning: in a few words.
        details: more lines.
        values: of the state that the checking program runs.
    """

    name: str
    shape: tuple[int, ...]
    meaning: str
    details: Sequence[str]
    values: Sequence[float]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class CFunction:
    """A function to be written.

    Attributes:
        name: of the function and of its files.
        about: what it computes, for which robot; lines.
        inputs: arrays that it reads.
        outputs: arrays that it fills.
        program: what it computes; its inputs, tables and outputs are these.
        real: kind of its numbers.
        loops: what it computes where it has loops whose length is known only when it runs.
    """

    name: str
    about: Sequence[str]
    inputs: Sequence[Argument]
    outputs: Sequence[Argument]
    program: Program | None
    real: Real
    loops: LoopKernel | None = None

    @property
    def kind(self) -> str:
        """Type of the numbers in C."""
        return "double" if self.real is FLOAT64 else "float"

    def macro(self, argument: Argument) -> str:
        """Name of the macro with an array's size."""
        return f"{self.name}_{argument.name}_size".upper()


def c_files(function: CFunction) -> dict[str, str]:
    """The text of each file by its name: header, source, checking program."""
    if function.loops is not None:
        arrays = (*function.inputs, *function.outputs)
        about = [*function.about, *(line for a in arrays for line in _entries(a))]
        written = function.loops.c_source(function.real.dtype, "\n".join(about))
        return {**written, f"{function.name}_test.c": _test(function, written[f"{function.name}.h"])}
    assert function.program is not None
    source, workspace = c_source(
        function.program,
        function.name,
        [a.name for a in (*function.inputs, *function.outputs)],
        function.real,
    )
    name = function.name
    return {
        f"{name}.h": _header(function, workspace),
        f"{name}.c": f'{_head(function)}\n#include "{name}.h"\n\n#include <math.h>\n\n{source}',
        f"{name}_test.c": _test(function),
    }


def _entries(argument: Argument) -> list[str]:
    """What stands where in an array, if more than its name says it."""
    if not argument.details:
        return []
    return ["", f"{argument.name}: {argument.meaning}".rstrip(": "), *(f"    {x}" for x in argument.details)]


def _head(function: CFunction) -> str:
    return comment([f"{function.about[0]}", f"Written by robokit; {function.name}.h says more."])


def _header(function: CFunction, workspace: int) -> str:
    name = function.name
    lines = [
        *function.about,
        "",
        "Written by robokit. Angular first, quaternions w x y z, SI units, radians.",
    ]
    for word, arrays in (("Input", function.inputs), ("Output", function.outputs)):
        for argument in arrays:
            shape = "".join(f"[{n}]" for n in argument.shape) or "[1]"
            rows = ", row by row" if len(argument.shape) > 1 else ""
            lines += ["", f"{word} {argument.name}{shape}{rows}: {argument.meaning or 'see its text'}"]
            lines += [f"    {line}" for line in argument.details]
    stack = workspace * function.real.bytes
    lines += [
        "",
        "Outputs share no memory with inputs. Nothing is checked: quaternions must be of unit length and all",
        f"numbers finite. The function keeps no state and allocates nothing. It needs {stack} bytes of stack",
        "and what the compiler adds.",
        "",
        "With GCC, -std=c99 rounds each operation by itself. Fastest is, for most robots,",
        "-O3 -march=native -ffp-contract=fast -fno-tree-slp-vectorize. The check:",
        f"    cc -std=c99 -O2 {name}.c {name}_test.c -lm -o {name}_test && ./{name}_test",
    ]
    sizes = "".join(f"#define {function.macro(a)} {a.size}\n" for a in (*function.inputs, *function.outputs))
    return header(name, lines, f"{sizes}\n{extern_c(_prototype(function))}")


def _prototype(function: CFunction) -> str:
    arrays = [f"const {function.kind} *{a.name}" for a in function.inputs]
    arrays += [f"{function.kind} *{a.name}" for a in function.outputs]
    return f"void {function.name}({', '.join(arrays) or 'void'})"


_TEST = """
#include "{name}.h"

#include <math.h>
#include <stdio.h>

{stored}
/* Whether an output is as stored, to {tolerance:g} of its largest entry. */
static int right(const char *name, const {t} *got, const {t} *stored, int size)
{{
    double error = 0, largest = 0;
    int k, good = 1;
    for (k = 0; k < size; k++) {{
        if (fabs((double)stored[k]) > largest) largest = fabs((double)stored[k]);
    }}
    for (k = 0; k < size; k++) {{
        const double off = fabs((double)got[k] - (double)stored[k]);
        if (!(off <= {tolerance:g} * largest)) good = 0; /* NaN too */
        if (off > error) error = off;
    }}
    printf("%s: largest error %.3g of %.3g, %s\\n", name, error, largest, good ? "right" : "WRONG");
    return good;
}}

int main(void)
{{
{body}
}}
"""


def _test(function: CFunction, declared: str = "") -> str:
    """The checking program.

    Args:
        function: that it checks.
        declared: the header of one with loops, which may take a workspace and return a status.
    """
    t, name = function.kind, function.name
    stored = [_stored(function, f"{a.name}_given", a) for a in function.inputs]
    stored += [_stored(function, f"{a.name}_stored", a) for a in function.outputs]
    names = [f"{a.name}_given" for a in function.inputs] + [f"{a.name}_found" for a in function.outputs]
    body = ["int good = 1;"]
    body += [f"static {t} {a.name}_found[{max(a.size, 1)}];" for a in function.outputs]
    if function.loops is not None:
        room = function.loops.workspace(**{a.name: a.values for a in function.inputs})
        for kind, word, numbers in (("real", "work", t), ("integer", "whole_work", "int")):
            if f"{numbers} *{word}, int {word}_size" in declared:
                body.append(f"static {numbers} {word}[{max(room[kind], 1)}];")
                names += [word, str(max(room[kind], 1))]
    status = f"int {name}(" in declared
    body.append(f"{'good = 0 == ' if status else ''}{name}({', '.join(names)});")
    body += [
        f'good &= right("{a.name}", {a.name}_found, {a.name}_stored, {a.size});' for a in function.outputs
    ]
    body.append("return good ? 0 : 1;")
    return _head(function) + _TEST.format(
        name=name,
        stored="\n".join(stored),
        t=t,
        tolerance=TOLERANCE[function.real.dtype],
        body="\n".join(f"    {line}" for line in body),
    )


def _stored(function: CFunction, name: str, argument: Argument) -> str:
    values = ",\n".join(_wrapped([number(x, function.real) for x in argument.values] or ["0"]))
    return f"static const {function.kind} {name}[{max(argument.size, 1)}] = {{\n{values}}};\n"


def _wrapped(words: Sequence[str]) -> Iterator[str]:
    """Lines of words with commas between, the last one left out."""
    line = ""
    for word in words:
        if line and len(line) + len(word) + 2 > _WIDTH:
            yield line
            line = ""
        line += f", {word}" if line else f"    {word}"
    yield line
