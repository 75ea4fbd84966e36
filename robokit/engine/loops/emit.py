"""Writes regions as LLVM IR: loops with branches and phis, for one state or as many as a vector has lanes.

In lanes a value that differs between them is a vector, all others are plain numbers. Where lanes do not agree
whether something runs, it runs if one of them needs it, under a mask: stores keep what the others have, and
what is carried stays as it is in lanes that are done. So a row's numbers do not depend on its neighbours.

Memory of a state is element by element, the lanes of each side by side: an index that is the same for all is
a load of a vector, one that differs a gather.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.ir import Lines, Real, constant, suffix, vector
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
    TRUTH,
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
from robokit.engine.loops.uniform import Pattern, Uniformity
from robokit.engine.trace.ops import CONST, OPERATIONS

_WHOLE = {
    PLUS: "add nsw {i} %s, %s",
    MINUS: "sub nsw {i} %s, %s",
    TIMES: "mul nsw {i} %s, %s",
    WHOLE_LT: "icmp slt {i} %s, %s",
    WHOLE_LE: "icmp sle {i} %s, %s",
    WHOLE_EQ: "icmp eq {i} %s, %s",
    WHOLE_SELECT: "select {b} %s, {i} %s, {i} %s",
    TO_REAL: "sitofp {i} %s to {t}",
}


class ModuleWriter:
    """Writes a kernel and the functions that it calls, each once for every pattern that it is called in.

    Attributes:
        texts: of the functions.
    """

    def __init__(self, graph: LoopGraph, name: str, real: Real) -> None:
        self.graph, self.name, self.real = graph, name, real
        self.uniformity = Uniformity(graph)
        self.texts: list[str] = []
        self._names: dict[Pattern, str] = {}

    def kernel(self, own: Sequence[bool], lanes: int) -> str:
        """The kernel itself: the name of ``NAME(ptr arrays..., i32 sizes...)``.

        Args:
            own: for each array, whether every state has one of its own.
            lanes: states at once.
        """
        sizes = len(self.graph.functions[0].region.parameters)
        return self.function(Pattern(0, lanes, tuple(own), (False,) * sizes))

    def function(self, pattern: Pattern) -> str:
        """Name of a function, written now if it is new."""
        name = self._names.get(pattern)
        if name is None:
            name = self._names[pattern] = f"{self.name}_function{len(self._names)}"
            self.texts.append(FunctionWriter(self, pattern).text(name))
        return name


class FunctionWriter:
    """Writes one function."""

    def __init__(self, module: ModuleWriter, pattern: Pattern) -> None:
        self.module, self.pattern = module, pattern
        self.graph, self.real, self.lanes = module.graph, module.real, pattern.lanes
        self.called = self.graph.functions[pattern.function]
        self.uniform = module.uniformity.of(pattern)
        self.varying = self.uniform.nodes
        self.out = Lines(self.real)
        self.names: dict[int, str] = {}
        self.control: dict[tuple[int, int], str] = {}
        self.labels = 0
        self.label = "entry"
        self.mask = "%mask" if pattern.masked else ""
        self.sines: dict[int, str] = {}
        self.templates = {}
        for width in {1, self.lanes}:
            words = {
                "t": vector(width, self.real.kind),
                "truth": vector(width, "i1"),
                "true": "true" if width == 1 else "splat (i1 true)",
                "suffix": suffix(width, self.real),
                "i": vector(width, "i32"),
                "b": vector(width, "i1"),
            }
            rows = {operation.number: operation.llvm.format(**words) for operation in OPERATIONS}
            rows |= {opcode: text.format(**words) for opcode, text in _WHOLE.items()}
            self.templates[width] = rows

    def text(self, name: str) -> str:
        """The function ``name(ptr arrays..., values..., mask)``, which returns a struct of its results."""
        parameters = [f"ptr noalias nocapture %a{k}" for k in self.called.arrays]
        for k, number in enumerate(self.called.region.parameters):
            self.names[number] = f"%p{k}"
            parameters.append(f"{self._type_of(number)} %p{k}")
        if self.mask:
            parameters.append(f"{vector(self.lanes, 'i1')} %mask")
        self._region(self.called.region)
        results = self.called.region.results
        value, t = "", self._returns(results, self.uniform.results)
        for k, (number, wide) in enumerate(zip(results, self.uniform.results, strict=True)):
            own = f"{self._type(self.graph.kinds[number], wide)} {self._value(number, wide)}"
            value = self.out(f"insertvalue {t} {value or 'poison'}, {own}, {k}")
        self.out.do(f"ret {t} {value}")
        return f"define internal {t} @{name}({', '.join(parameters)}) #2 {{\nentry:\n{self.out.text()}\n}}\n"

    def _returns(self, results: Sequence[int], wide: Sequence[bool]) -> str:
        """Type of what a function returns."""
        types = [self._type(self.graph.kinds[k], w) for k, w in zip(results, wide, strict=True)]
        return f"{{{', '.join(types)}}}" if types else "void"

    def _call(self, number: int, node: tuple) -> None:
        out = self.out
        pattern = self.uniform.called(node, bool(self.mask))
        name = self.module.function(pattern)
        function, wide = self.graph.functions[node[1]], self.module.uniformity.of(pattern).results
        given = [f"ptr %a{k}" for k in node[2]]
        given += [f"{self._type_of(k)} {self._value(k, self._width(k))}" for k in node[3:]]
        if self.mask:
            given.append(f"{vector(self.lanes, 'i1')} {self.mask}")
        t = self._returns(function.region.results, wide)
        call = f"call {t} @{name}({', '.join(given)})"
        if t == "void":
            out.do(call)
            return
        found = out(call)
        for k in range(len(wide)):
            self.control[number, k] = out(f"extractvalue {t} {found}, {k}")

    # -- values -------------------------------------------------------------------------------------

    def _type(self, kind: str, wide: bool) -> str:
        element = {REAL: self.real.kind, INTEGER: "i32", TRUTH: "i1"}[kind]
        return vector(self.lanes if wide else 1, element)

    def _type_of(self, number: int) -> str:
        return self._type(self.graph.kinds[number], self._width(number))

    def _width(self, number: int) -> bool:
        return number in self.varying

    def _value(self, number: int, wide: bool) -> str:
        """Name of a value, in every lane where it is wanted wide."""
        node = self.graph.nodes[number]
        lanes = self.lanes if wide else 1
        if node[0] == CONST:
            return constant(lanes, node[1], self.real)
        if node[0] == WHOLE:
            return str(node[1]) if lanes == 1 else f"splat (i32 {node[1]})"
        name = self.names[number]
        return self._spread(name, self.graph.kinds[number]) if wide and not self._width(number) else name

    def _spread(self, name: str, kind: str) -> str:
        """A plain number in every lane."""
        if self.lanes == 1:
            return name
        out, t = self.out, self._type(kind, True)
        first = out(f"insertelement {t} poison, {self._type(kind, False)} {name}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return out(f"shufflevector {t} {first}, {t} poison, {zeros}")

    def _any(self, mask: str) -> str:
        return self.out.any(self.lanes, mask)

    def _block(self, label: str) -> None:
        self.out.do(f"{label}:")
        self.label = label
        self.sines = {}

    def _fresh(self) -> int:
        self.labels += 1
        return self.labels

    def _and(self, mask: str) -> str:
        """A mask within the present one."""
        return self.out(f"and {vector(self.lanes, 'i1')} {self.mask}, {mask}") if self.mask else mask

    def _choose(self, kind: str, mask: str, a: str, b: str) -> str:
        t = self._type(kind, True)
        return self.out(f"select {vector(self.lanes, 'i1')} {mask}, {t} {a}, {t} {b}")

    # -- regions ------------------------------------------------------------------------------------

    def _region(self, region: Region, part: slice = slice(None)) -> None:
        for number in region.nodes[part]:
            self._write(number)

    def _write(self, number: int) -> None:
        node = self.graph.nodes[number]
        opcode = node[0]
        if opcode in (CONST, WHOLE, PARAMETER):
            return
        if opcode == LOAD:
            self.names[number] = self._load(node[1], node[2])
        elif opcode == STORE:
            self._store(*node[1:])
        elif opcode == FOR:
            self._for(number, node)
        elif opcode == WHILE:
            self._while(number, node)
        elif opcode == COND:
            self._cond(number, node)
        elif opcode == CALL:
            self._call(number, node)
        elif opcode == VALUE:
            self.names[number] = self.control[node[1], node[2]]
        else:
            wide = self._width(number)
            values = [self._value(k, wide) for k in operands(node)]
            if opcode < 1000 and OPERATIONS[opcode].paired:
                values = [self._pair(node[1], values[0], wide)]
            template = self.templates[self.lanes if wide else 1][opcode]
            self.names[number] = self.out(template % tuple(values))

    def _pair(self, angle: int, value: str, wide: bool) -> str:
        if angle not in self.sines:
            t = self._type(REAL, wide)
            lanes = self.lanes if wide else 1
            self.sines[angle] = self.out(f"call {{{t}, {t}}} @sincos_{lanes}({t} {value})")
        return self.sines[angle]

    def _address(self, array: int, index: int) -> str:
        """Where an element stands, whose index is the same in all lanes."""
        element = self._type(self.graph.arrays[array].kind, array in self.uniform.own)
        place = self.out(f"sext i32 {self._value(index, False)} to i64")
        return self.out(f"getelementptr inbounds {element}, ptr %a{array}, i64 {place}")

    def _addresses(self, array: int, index: int) -> str:
        """Where the elements of all lanes stand."""
        out, n = self.out, self.lanes
        places = out(f"sext <{n} x i32> {self._value(index, True)} to <{n} x i64>")
        if array in self.uniform.own:
            places = out(f"mul nsw <{n} x i64> {places}, splat (i64 {n})")
            own = ", ".join(f"i64 {lane}" for lane in range(n))
            places = out(f"add nsw <{n} x i64> {places}, <{own}>")
        kind = self._type(self.graph.arrays[array].kind, False)
        return out(f"getelementptr {kind}, ptr %a{array}, <{n} x i64> {places}")

    def _load(self, array: int, index: int) -> str:
        kind = self.graph.arrays[array].kind
        size = 4 if kind == INTEGER else self.real.bytes
        if not self._width(index):
            wide = array in self.uniform.own and self.lanes > 1
            align = size * (self.lanes if wide else 1)
            return self.out(
                f"load {self._type(kind, wide)}, ptr {self._address(array, index)}, align {align}"
            )
        t, mask = self._type(kind, True), self.mask or "splat (i1 true)"
        name = f"@llvm.masked.gather.{_suffix(self.lanes, kind, self.real)}.v{self.lanes}p0"
        where = self._addresses(array, index)
        return self.out(
            f"call {t} {name}(<{self.lanes} x ptr> {where}, i32 {size}, "
            f"<{self.lanes} x i1> {mask}, {t} zeroinitializer)"
        )

    def _store(self, array: int, index: int, value: int) -> None:
        kind, out = self.graph.arrays[array].kind, self.out
        size = 4 if kind == INTEGER else self.real.bytes
        t, what = self._type(kind, self.lanes > 1), self._value(value, self.lanes > 1)
        if not self._width(index):
            where = self._address(array, index)
            align = size * self.lanes
            if self.mask:
                what = self._choose(kind, self.mask, what, out(f"load {t}, ptr {where}, align {align}"))
            out.do(f"store {t} {what}, ptr {where}, align {align}")
            return
        mask = self.mask or "splat (i1 true)"
        name = f"@llvm.masked.scatter.{_suffix(self.lanes, kind, self.real)}.v{self.lanes}p0"
        where = self._addresses(array, index)
        out.do(
            f"call void {name}({t} {what}, <{self.lanes} x ptr> {where}, i32 {size}, "
            f"<{self.lanes} x i1> {mask})"
        )

    # -- control ------------------------------------------------------------------------------------

    def _begin(
        self, k: int, number: int, starts: tuple[int, ...], parameters: list[int]
    ) -> list[tuple[str, str, str]]:
        """Phis of what a loop carries: (name, type, value to come)."""
        made = []
        firsts = []
        for start, parameter in zip(starts, parameters, strict=True):
            wide = self._width(parameter)
            firsts.append((self._value(start, wide), wide))
        before = self.label
        self.out.do(f"br label %head{k}")
        self._block(f"head{k}")
        for position, ((first, wide), parameter) in enumerate(zip(firsts, parameters, strict=True)):
            t = self._type(self.graph.kinds[parameter], wide)
            name = f"%c{number}x{position}"
            self.names[parameter] = name
            made.append((name, t, f"[{first}, %{before}]"))
        return made

    def _for(self, number: int, node: tuple) -> None:
        graph, out, k = self.graph, self.out, self._fresh()
        region, count, starts = graph.regions[node[1]], node[2], node[3:]
        index, *carried = region.parameters
        differs, outer = self._width(count), self.mask
        counts = self._value(count, differs)
        most = counts
        if differs:
            n = self.lanes
            wanted = self._choose(INTEGER, outer, counts, "zeroinitializer") if outer else counts
            most = out(f"call i32 @llvm.vector.reduce.smax.v{n}i32(<{n} x i32> {wanted})")
        before = self.label
        phis = self._begin(k, number, starts, carried)
        self.names[index] = f"%i{k}"
        at = len(out.lines)
        out.do("")  # the phis, once their other values are known
        out.do(f"%go{k} = icmp slt i32 %i{k}, {most}")
        out.do(f"br i1 %go{k}, label %body{k}, label %done{k}")
        self._block(f"body{k}")
        if differs:
            live = out(f"icmp slt <{self.lanes} x i32> {self._spread(f'%i{k}', INTEGER)}, {counts}")
            self.mask = self._and(live)
        self._region(region)
        nexts = self._nexts(region, carried, differs)
        self.mask = outer
        out.do(f"%j{k} = add nsw i32 %i{k}, 1")
        out.do(f"br label %head{k}")
        lines = [f"%i{k} = phi i32 [0, %{before}], [%j{k}, %{self.label}]"]
        self._end(k, number, at, phis, nexts, lines)

    def _while(self, number: int, node: tuple) -> None:
        graph, out, k = self.graph, self.out, self._fresh()
        region, starts = graph.regions[node[1]], node[2:]
        outer, differs = self.mask, self._width(region.test)
        phis = self._begin(k, number, starts, region.parameters)
        at = len(out.lines)
        out.do("")
        self._region(region, slice(0, region.tested))
        go = self._value(region.test, differs)
        if differs:
            self.mask = self._and(go)
            go = self._any(self.mask)
        out.do(f"br i1 {go}, label %body{k}, label %done{k}")
        self._block(f"body{k}")
        self._region(region, slice(region.tested, None))
        nexts = self._nexts(region, region.parameters, differs)
        self.mask = outer
        out.do(f"br label %head{k}")
        self._end(k, number, at, phis, nexts, [])

    def _nexts(self, region: Region, carried: list[int], differs: bool) -> list[str]:
        """What is carried on: in lanes that are done, what it was."""
        found = []
        for parameter, result in zip(carried, region.results, strict=True):
            wide = self._width(parameter)
            value = self._value(result, wide)
            if differs:
                value = self._choose(self.graph.kinds[parameter], self.mask, value, self.names[parameter])
            found.append(value)
        return found

    def _end(
        self,
        k: int,
        number: int,
        at: int,
        phis: list[tuple[str, str, str]],
        nexts: list[str],
        lines: list[str],
    ) -> None:
        """Close a loop, whose last block branches to its head."""
        for position, ((name, t, first), value) in enumerate(zip(phis, nexts, strict=True)):
            lines.append(f"{name} = phi {t} {first}, [{value}, %{self.label}]")
            self.control[number, position] = name
        self.out.lines[at : at + 1] = lines
        self._block(f"done{k}")

    def _cond(self, number: int, node: tuple) -> None:
        graph, out, k, outer = self.graph, self.out, self._fresh(), self.mask
        then, otherwise = (graph.regions[n] for n in node[2:])
        differs = self._width(node[1])
        condition = self._value(node[1], differs)
        kinds = [graph.kinds[r] for r in then.results]
        wides = [
            not self.varying.isdisjoint(pair) for pair in zip(then.results, otherwise.results, strict=True)
        ]
        wides = [wide or differs for wide in wides]
        if not differs:
            ends = []
            out.do(f"br i1 {condition}, label %then{k}, label %else{k}")
            for label, branch in (("then", then), ("else", otherwise)):
                self._block(f"{label}{k}")
                self._region(branch)
                values = [self._value(r, wide) for r, wide in zip(branch.results, wides, strict=True)]
                ends.append((self.label, values))
                out.do(f"br label %done{k}")
            self._block(f"done{k}")
            for position, (kind, wide) in enumerate(zip(kinds, wides, strict=True)):
                incoming = ", ".join(f"[{values[position]}, %{label}]" for label, values in ends)
                self.control[number, position] = out(f"phi {self._type(kind, wide)} {incoming}")
            return
        found: list[list[str]] = []
        turned = out(f"xor {vector(self.lanes, 'i1')} {condition}, splat (i1 true)")
        for label, branch, own in (("then", then, condition), ("else", otherwise, turned)):
            self.mask = outer
            self.mask = self._and(own)
            before, wanted = self.label, self._any(self.mask)
            out.do(f"br i1 {wanted}, label %{label}{k}, label %{label}end{k}")
            self._block(f"{label}{k}")
            self._region(branch)
            values = [self._value(r, True) for r in branch.results]
            last = self.label
            out.do(f"br label %{label}end{k}")
            self._block(f"{label}end{k}")
            found.append(
                [
                    out(f"phi {self._type(kind, True)} [{value}, %{last}], [zeroinitializer, %{before}]")
                    for kind, value in zip(kinds, values, strict=True)
                ]
            )
        self.mask = outer
        for position, kind in enumerate(kinds):
            a, b = found[0][position], found[1][position]
            self.control[number, position] = self._choose(kind, condition, a, b)


def _suffix(lanes: int, kind: str, real: Real) -> str:
    return f"v{lanes}i32" if kind == INTEGER else f"v{lanes}{real.suffix}"


def declarations(lanes: int, real: Real) -> str:
    """What the functions need of LLVM."""
    if lanes == 1:
        return ""
    lines = [f"declare i32 @llvm.vector.reduce.smax.v{lanes}i32(<{lanes} x i32>)"]
    for kind in (REAL, INTEGER):
        t = vector(lanes, "i32" if kind == INTEGER else real.kind)
        end, pointers, mask = _suffix(lanes, kind, real), f"<{lanes} x ptr>", f"<{lanes} x i1>"
        lines.append(f"declare {t} @llvm.masked.gather.{end}.v{lanes}p0({pointers}, i32, {mask}, {t})")
        lines.append(f"declare void @llvm.masked.scatter.{end}.v{lanes}p0({t}, {pointers}, i32, {mask})")
    return "\n".join(lines) + "\n"
