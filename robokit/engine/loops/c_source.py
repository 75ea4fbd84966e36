"""Writes regions as C99: one state, loops as loops, one line one operation (emit/c_source.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from robokit.engine.emit.c_source import comment, function, header, identifier, linked, number
from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.loops.arguments import ArrayOf
from robokit.engine.loops.live import Live, carried, starts
from robokit.engine.loops.record import (
    CALL,
    COND,
    FOR,
    INTEGER,
    LOAD,
    MINUS,
    PARAMETER,
    PLUS,
    REAL,
    STORE,
    TIMES,
    TO_REAL,
    VALUE,
    WHILE,
    WHOLE,
    WHOLE_EQ,
    WHOLE_LE,
    WHOLE_LT,
    WHOLE_SELECT,
    LoopGraph,
    Region,
    operands,
)
from robokit.engine.trace.ops import CONST, OPERATIONS

_WHOLE = {
    PLUS: "%s + %s",
    MINUS: "%s - %s",
    TIMES: "%s * %s",
    WHOLE_LT: "%s < %s",
    WHOLE_LE: "%s <= %s",
    WHOLE_EQ: "%s == %s",
    WHOLE_SELECT: "(%s ? %s : %s)",
}

_SELF = {WHOLE_LT: "0", WHOLE_LE: "1", WHOLE_EQ: "1"}
"""A comparison of a whole number with itself, which compilers warn of."""


class CWriter:
    """Writes functions.

    Args:
        graph: the recording.
        live: what of it is needed.
        name: of the kernel; its functions' names begin with it.
        arguments: names of its sizes, then those of its arrays.
        real: kind of the real numbers.
    """

    def __init__(
        self,
        graph: LoopGraph,
        live: Live,
        name: str,
        arguments: Sequence[str],
        real: Real,
    ) -> None:
        self.graph, self.live, self.name, self.real = graph, live, name, real
        self.kind, suffix = ("double", "") if real is FLOAT64 else ("float", "f")
        self.form = {each.number: (each.c or each.notation).replace("{f}", suffix) for each in OPERATIONS}
        self.form |= {TO_REAL: f"({self.kind})%s", **_WHOLE}
        kernel = graph.functions[0]
        numbers = [*kernel.region.parameters, *(~k for k in kernel.arrays)]
        self.names = dict(zip(numbers, arguments, strict=True))
        """Of values that have others than x_NUMBER, and of the kernel's arrays, by ~ of their numbers."""

    def function(self, number: int) -> tuple[str, str]:
        """The head of a function, and its text."""
        made = self.graph.functions[number]
        parameters, results = self.live.parameters(made), self.live.results(made)
        arguments = [self._name(p) for p in parameters] + [self._array(k) for k in made.arrays]
        declared = [f"{self._type(p)} {self._name(p)}" for p in parameters]
        for k in made.arrays:
            memory = self.graph.arrays[k]
            kind = "int" if memory.kind == INTEGER else self.kind
            declared.append(f"{'' if memory.writable else 'const '}{kind} *restrict {self._array(k)}")
        lines = list(self._region(made.region))
        returned = "void"
        if len(results) == 1:
            returned = self._type(results[0])
            lines.append(f"return {self._name(results[0])};")
        else:
            declared += [f"{self._type(r)} *restrict x_out_{k}" for k, r in enumerate(results)]
            lines += [f"*x_out_{k} = {self._name(r)};" for k, r in enumerate(results)]
        words = set(re.findall(r"\w+", "\n".join(lines)))
        lines = [f"(void){x};" for x in arguments if x not in words] + lines
        head = f"{returned} {self._function(number)}({', '.join(declared) or 'void'})"
        return head, function(f"static {head}" if number else head, lines)

    def _function(self, number: int) -> str:
        return f"{self.name}_{number}" if number else self.name

    def _array(self, number: int) -> str:
        return self.names.get(~number, f"x_a{number}")

    def _region(self, region: Region, part: slice = slice(None)) -> Iterator[str]:
        for n in self.live.of(region, part):
            yield from self._lines(n)

    def _name(self, n: int) -> str:
        """A value, where it is read."""
        node = self.graph.nodes[n]
        if node[0] == CONST:
            return number(node[1], self.real)
        if node[0] == WHOLE:
            return str(node[1]) if node[1] >= 0 else f"({node[1]})"
        return self.names.get(n, f"x_{n}")

    def _type(self, n: int) -> str:
        return self.kind if self.graph.kinds[n] == REAL else "int"

    def _let(self, n: int, value: str) -> str:
        return f"const {self._type(n)} x_{n} = {value};"

    def _lines(self, n: int) -> Iterator[str]:
        node = self.graph.nodes[n]
        opcode = node[0]
        if opcode in (CONST, WHOLE, PARAMETER, VALUE):
            return
        if opcode == LOAD:
            yield self._let(n, f"{self._array(node[1])}[{self._name(node[2])}]")
        elif opcode == STORE:
            yield f"{self._array(node[1])}[{self._name(node[2])}] = {self._name(node[3])};"
        elif opcode in (FOR, WHILE):
            yield from self._loop(n)
        elif opcode == COND:
            yield from self._cond(n)
        elif opcode == CALL:
            yield from self._call(n)
        elif opcode in _SELF and node[1] == node[2]:
            yield self._let(n, _SELF[opcode])
        else:
            yield self._let(n, self.form[opcode] % tuple(map(self._name, operands(node))))

    # -- control ------------------------------------------------------------------------------------

    def _loop(self, n: int) -> Iterator[str]:
        node = self.graph.nodes[n]
        region, kept = self.graph.regions[node[1]], self.live.positions(n)
        parameters = [carried(node, region)[k] for k in kept]
        for k, p in zip(kept, parameters, strict=True):
            yield f"{self._type(p)} x_{p} = {self._name(starts(node)[k])};"
        if node[0] == FOR:
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
            yield from _indented(self._region(branch))
            yield from (f"    x_{n}_{at} = {self._name(branch.results[at])};" for at in kept)
        yield "}"
        self._leave(n, {k: f"x_{n}_{k}" for k in kept})

    def _call(self, n: int) -> Iterator[str]:
        node, kept = self.graph.nodes[n], self.live.positions(n)
        results = self.graph.functions[node[1]].region.results
        given = [self._name(k) for k in self.live.arguments(n)] + [self._array(k) for k in node[2]]
        if len(kept) != 1:
            yield from (f"{self._type(results[k])} x_{n}_{k};" for k in kept)
            given += [f"&x_{n}_{k}" for k in kept]
        text = f"{self._function(node[1])}({', '.join(given)});"
        if len(kept) == 1 and self.live.values[n]:
            text = f"const {self._type(results[kept[0]])} x_{n}_{kept[0]} = {text}"
        yield text
        self._leave(n, {k: f"x_{n}_{k}" for k in kept})

    def _leave(self, control: int, names: dict[int, str]) -> None:
        """Name the values that a control operation leaves."""
        for n in self.live.values[control]:
            self.names[n] = names[self.graph.nodes[n][2]]


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def c_files(
    name: str,
    graph: LoopGraph,
    sizes: Sequence[str],
    arrays: Sequence[ArrayOf],
    real: Real,
    about: Sequence[str],
    units: Mapping[str, str],
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
    """
    names = [identifier(name)]
    for argument in (*sizes, *(a.name for a in arrays)):
        names.append(identifier(argument, names))
    name, *arguments = names
    named = dict(zip((*sizes, *(a.name for a in arrays)), arguments, strict=True))
    live = Live(graph, [k for k, a in enumerate(arrays) if a.role in ("out", "inout")])
    writer = CWriter(graph, live, name, arguments, real)
    functions = [writer.function(k) for k in live.called]
    head = functions[-1][0]
    lines = [*(about or [f"{name}, a function of arrays."]), "", *_documented(sizes, arrays, named, units)]
    first = comment([lines[0], f"Written by robokit; {name}.h says more."])
    return {
        f"{name}.h": header(name, lines, linked(head.replace("restrict ", ""))),
        f"{name}.c": f'{first}\n#include "{name}.h"\n\n#include <math.h>\n\n'
        + "\n".join(text for _, text in functions),
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
        whole = ", of int" if a.kind == INTEGER else ""
        yield f"{named[a.name]}{shape}{whole}{rows}: {_ROLES[a.role]}{unit}"
    yield ""
    yield "Arrays share no memory. Nothing is checked: all numbers must be finite, and whole numbers that are"
    yield "indices within their arrays. The function keeps no state and allocates nothing."
    yield ""
    yield "GCC rounds each operation by itself with -std=c99, other compilers with -ffp-contract=off."
