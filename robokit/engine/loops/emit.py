"""Writes regions as LLVM IR: loops with branches and phis, for one state or as many as a vector has lanes.

In lanes a value that differs between them is a vector, all others are plain numbers. Where lanes do not agree
whether something runs, it runs if one of them needs it, under a mask: stores keep what the others have, and
what is carried stays as it is in lanes that are done. So a row's numbers do not depend on its neighbours.

Memory of a state is element by element, the lanes of each side by side: an index that is the same for all is
a load of a vector. One that differs is a load of each lane: gathers and scatters of the processor take longer
(sweeps of Gauss-Seidel over pairs of bodies that differ 1.6 times as long on an AMD EPYC, under a mask 1.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from robokit.engine.emit.ir import (
    FLOAT32,
    FLOAT64,
    Lines,
    Real,
    constant,
    instructions,
    multiply_add,
    suffix,
    vector,
)  # fmt: skip
from robokit.engine.loops.analysis import Pattern, Uniformity
from robokit.engine.loops.record import LoopGraph, Region, calls, operands, told
from robokit.engine.signature import ArrayOf
from robokit.engine.trace import ops

RUNNING = (ops.ADD, ops.SUB, ops.GIVEN, ops.VALUE)  # what a running sum goes on from

STACK = 4096
"""Bytes of the largest array that stands on the stack: no more than the page that guards its end, and small
enough for its numbers to become registers. Larger ones, and those whose size is known only later, are in the
workspace.
"""

IN_MEMORY = 5
"""As many real numbers a function of x86-64 returns in memory. With three or four, LLVM has those after the
second on the stack of x87. Its quick selection takes them from there by an instruction of SSE, which knows 16
registers, where AVX-512 has 32: with one of the others it is an illegal instruction.
"""

HEADER = 64  # bytes at the start of a block of the workspace: where the next one is, and where this one ends
INTERRUPTED, ENDED = -1, -2  # status of a call that Ctrl-C has ended, and of one that another thread has

MORE = """define internal ptr @more(ptr %context, ptr %block, i64 %bytes) noinline #2 {
entry:
  %next = load ptr, ptr %block
  %none = icmp eq ptr %next, null
  br i1 %none, label %ask, label %look
look:
  %place = getelementptr i8, ptr %next, i64 8
  %end = load i64, ptr %place
  %start = ptrtoint ptr %next to i64
  %size = sub i64 %end, %start
  %room = sub i64 %size, 64
  %fits = icmp ule i64 %bytes, %room
  br i1 %fits, label %found, label %ask
ask:
  %where = getelementptr i8, ptr %context, i64 8
  %function = load ptr, ptr %where
  %new = call ptr %function(ptr %block, i64 %bytes)
  ret ptr %new
found:
  ret ptr %next
}
"""
"""The block of the workspace after a block, which has room for so many bytes; null where there is no memory.

What was in blocks after the present one is over: memory lasts as long as its region.
"""


TURNS = 1 << 14  # turns of loops between two looks at the clock: less than a hundredth of their time

INTERRUPTION = f"""define internal i1 @interrupted(ptr %context) noinline #2 {{
entry:
  %left = getelementptr i64, ptr %context, i64 3
  store i64 {TURNS}, ptr %left
  %place = getelementptr i64, ptr %context, i64 4
  %last = load i64, ptr %place
  %clock = getelementptr i64, ptr %context, i64 5
  %time = load ptr, ptr %clock
  %now = call i64 %time(ptr null)
  %same = icmp eq i64 %now, %last
  br i1 %same, label %end, label %look
look:
  store i64 %now, ptr %place
  %whether = getelementptr i64, ptr %context, i64 6
  %function = load ptr, ptr %whether
  %found = call i32 %function()
  %none = icmp eq i32 %found, 0
  br i1 %none, label %end, label %stop
stop:
  store i64 {INTERRUPTED}, ptr %context
  br label %end
end:
  %status = load volatile i64, ptr %context
  %over = icmp ne i64 %status, 0
  ret i1 %over
}}
"""
"""Whether a call is to end: Ctrl-C was pressed, which is asked each second, or another thread has said so."""


class ModuleWriter:
    """Writes a kernel and the functions that it calls, each once for every pattern that it is called in.

    Attributes:
        texts: of the functions.
        columns: of a VMAP that code of one state computes in the lanes of a vector.
        contracts: whether products are fused with sums.
        fused: sums and differences with the product that each takes part in with one rounding.
        widths: numbers of lanes that there are functions for.
    """

    def __init__(
        self,
        graph: LoopGraph,
        name: str,
        real: Real,
        columns: int = 1,
        fused: bool = False,
        fuses_all: bool = False,
    ) -> None:
        self.graph, self.name, self.real, self.columns = graph, name, real, columns
        self.contracts, self.fused = fused, _fused(graph, () if fuses_all else RUNNING) if fused else {}
        self.widths = {1}
        self.uniformity = Uniformity(graph)
        self.texts: list[str] = []
        self._names: dict[Pattern, str] = {}
        self._has: dict[tuple[int, ...], bool] = {}

    def fails(self, function: int) -> bool:
        """Whether a function takes memory of the workspace, may end early, or calls what may."""
        return self.has(function, *self.graph.failing)

    def has(self, function: int, *opcodes: int) -> bool:
        """Whether a function, or one that it calls, has such operations."""
        key = function, *opcodes
        if key not in self._has:
            self._has[key] = any(
                opcode in opcodes or (opcode in (ops.APPLY, ops.VMAP) and self.has(rest[0], *opcodes))
                for opcode, *rest in self.graph.operations(self.graph.functions[function].region)
            )
        return self._has[key]

    def kernel(self, own: Sequence[bool], lanes: int, masked: bool = False) -> str:
        """The kernel itself: the name of ``NAME(ptr arrays..., i32 sizes...)``.

        ``own``: for each array, whether every state has one of its own; ``lanes``: states at once;
        ``masked``: whether it may run in some lanes alone; then it takes which, after the sizes.
        """
        sizes = len(self.graph.functions[0].region.parameters)
        return self.function(Pattern(0, lanes, tuple(own), (False,) * sizes, masked))

    def function(self, pattern: Pattern) -> str:
        """Name of a function, written now if it is new."""
        name = self._names.get(pattern)
        if name is None:
            name = self._names[pattern] = f"{self.name}_function{len(self._names)}"
            self.widths.add(pattern.lanes)
            self.texts.append(self._written(name, pattern))
        return name

    def _written(self, name: str, pattern: Pattern) -> str:
        return FunctionWriter(self, pattern).text(name)


class FunctionWriter:
    """Writes one function.

    ``status``: type and place of what says whether a call has failed; ``ends``: whether one that has ends
    there.
    """

    status = "i64", "ptr %context"
    ends = True

    def __init__(self, module: ModuleWriter, pattern: Pattern) -> None:
        self.module, self.pattern = module, pattern
        self.graph, self.real, self.lanes = module.graph, module.real, pattern.lanes
        self.called = self.graph.functions[pattern.function]
        self.uniform = module.uniformity[pattern]
        self.varying = self.uniform.nodes
        self.out = Lines(self.real)
        self.names: dict[int, str] = {}
        self.control: dict[tuple[int, int], str] = {}
        self.labels = 0
        self.label = "entry"
        self.mask = "%mask" if pattern.masked else ""
        self.sines: dict[int, str] = {}
        self.bases = {k: f"%a{k}" for k in self.called.arrays}
        self.stack: list[str] = []
        self.memory = "%block", "%top"
        self.templates = {width: instructions(width, self.real) for width in {1, self.lanes}}

    def text(self, name: str) -> str:
        """The function ``name(ptr arrays..., values..., mask)``, which returns a struct of its results."""
        parameters = ["ptr %links", *(f"ptr noalias nocapture %a{k}" for k in self.called.arrays)]
        for k, number in enumerate(self.called.region.parameters):
            self.names[number] = f"%p{k}"
            parameters.append(f"{self._type_of(number)} %p{k}")
        if self.mask:
            parameters.append(f"{vector(self.lanes, 'i1')} %mask")
        fails = self.module.fails(self.pattern.function)
        if fails:
            parameters += ["ptr %context", "ptr %block", "ptr %top"]
        return self._written(name, parameters, fails)

    def _written(self, name: str, parameters: Sequence[str], fails: bool) -> str:
        """The function with these parameters; whether a call of it may fail."""
        self._region(self.called.region)
        results = self.called.region.results
        value, t = "", self._returns(results, self.uniform.results, self.lanes)
        for k, (number, wide) in enumerate(zip(results, self.uniform.results, strict=True)):
            own = f"{self._type(self.graph.kinds[number], wide)} {self._value(number, wide)}"
            value = self.out(f"insertvalue {t} {value or 'poison'}, {own}, {k}")
        self.out.do(f"ret {t} {value}")
        if fails:
            self.out.do("fail:")
            self.out.do(f"ret {t} {'zeroinitializer' if results else ''}")
        text = "\n".join(["entry:", *self.stack, self.out.text()])
        return f"define internal {t} @{name}({', '.join(parameters)}) #2 {{\n{text}\n}}\n"

    def _returns(self, results: Sequence[int], wide: Sequence[bool], lanes: int) -> str:
        """Type of what a function returns, with as many more reals as make it return in memory."""
        types = [
            vector(lanes if w else 1, self._type(self.graph.kinds[k], False))
            for k, w in zip(results, wide, strict=True)
        ]
        real = self.real.kind
        if real in [t for t in types if not t.startswith("i")][2:]:
            types += [real] * (IN_MEMORY - types.count(real))
        return f"{{{', '.join(types)}}}" if types else "void"

    def _call(self, number: int, node: tuple) -> None:
        """A CALL, or a VMAP; where states are in lanes, its columns are calls one after the other."""
        columns = calls(self.graph, node)
        if self.lanes > 1 and self.graph.functions[node[1]].by_lane:
            self._lane_by_lane(number, node, columns[0])
            return
        one_by_one = max(self.lanes, self.pattern.stride) > 1 or self.module.has(node[1], ops.LINK)
        if one_by_one or len(columns) == 1:
            results: list[str] = []
            for values in columns:
                pattern = self.uniform.called(node, values, bool(self.mask))
                arguments = [f"{self._type_of(k)} {self._value(k, self._width(k))}" for k in values]
                results += self._called(node, pattern, arguments)
            self.control |= {(number, k): result for k, result in enumerate(results)}
            return
        each = len(self.graph.functions[node[1]].region.results)
        for start in range(0, len(columns), self.module.columns):
            group = columns[start : start + self.module.columns]
            for k, column in enumerate(self._in_lanes(node, group)):
                self.control |= {(number, (start + k) * each + r): value for r, value in enumerate(column)}

    def _lane_by_lane(self, number: int, node: tuple, values: Sequence[int]) -> None:
        """A CALL of a function that lanes run one after the other."""
        out, bases = self.out, self.bases
        if self.graph.functions[node[1]].region.results:
            line = told("called", self.graph.lines[number])
            raise TypeError(f"what lanes run one after the other returns nothing{line}")
        pattern = self.uniform.called(node, values)
        for lane in range(self.lanes):
            k = self._fresh()
            if self.mask:
                runs = out(f"extractelement {vector(self.lanes, 'i1')} {self.mask}, i32 {lane}")
                out.do(f"br i1 {runs}, label %lane{k}, label %lanedone{k}")
                self._block(f"lane{k}")
            arguments = []
            for value in values:
                name, t = self._value(value, self._width(value)), self._type(self.graph.kinds[value], False)
                if self._width(value):
                    name = out(f"extractelement {self._type_of(value)} {name}, i32 {lane}")
                arguments.append(f"{t} {name}")
            own = [array for array in node[2] if array in self.uniform.own]
            places = {
                array: out.pointer(bases[array], lane, self._type(self.graph.arrays[array].kind, False))
                for array in own
            }
            self.bases = {**bases, **places}
            self._called(node, pattern, arguments)
            if self.mask:
                out.do(f"br label %lanedone{k}")
                self._block(f"lanedone{k}")
        self.bases = bases

    def _in_lanes(self, node: tuple, columns: list[Sequence[int]]) -> list[list[str]]:
        """Results of columns that are computed in lanes; the last one is in those left over, too."""
        out, graph = self.out, self.graph
        lanes = 1 << (len(columns) - 1).bit_length()
        rows = list(zip(*columns, *[columns[-1]] * (lanes - len(columns)), strict=True))
        differs = tuple(len(set(row)) > 1 for row in rows)
        pattern = Pattern(node[1], lanes, (False,) * len(node[2]), differs, False)
        arguments = []
        for row, wide in zip(rows, differs, strict=True):
            value, t = self._value(row[0], False), self._type_of(row[0])
            if wide:
                wider, whole = vector(lanes, t), "poison"
                for lane, k in enumerate(row):
                    whole = out(f"insertelement {wider} {whole}, {t} {self._value(k, False)}, i32 {lane}")
                value, t = whole, wider
            arguments.append(f"{t} {value}")
        found = self._called(node, pattern, arguments)
        flags = self.module.uniformity[pattern].results
        kinds = [graph.kinds[k] for k in graph.functions[node[1]].region.results]
        return [
            [
                out(f"extractelement {vector(lanes, self._type(kind, False))} {value}, i32 {k}")
                if wide
                else value
                for value, kind, wide in zip(found, kinds, flags, strict=True)
            ]
            for k in range(len(columns))
        ]

    def _called(self, node: tuple, pattern: Pattern, arguments: list[str]) -> list[str]:
        """Results of a call with these values."""
        name = self.module.function(pattern)
        wide, masked = self.module.uniformity[pattern].results, pattern.masked
        arguments = ["ptr %links", *(f"ptr {self.bases[k]}" for k in node[2]), *arguments]
        if masked:
            arguments.append(f"{vector(self.lanes, 'i1')} {self.mask}")
        fails = self.module.fails(node[1])
        if fails:
            arguments += ["ptr %context", f"ptr {self.memory[0]}", f"ptr {self.memory[1]}"]
        t = self._returns(self.graph.functions[node[1]].region.results, wide, pattern.lanes)
        return self._returned(f"call {t} @{name}({', '.join(arguments)})", t, len(wide), fails)

    def _returned(self, call: str, t: str, count: int, fails: bool) -> list[str]:
        """What a call returns, of that type; whether it may fail."""
        out, (kind, place) = self.out, self.status
        found = out(call) if count else ""
        if not count:
            out.do(call)
        if fails:
            status = out(f"load {kind}, {place}")
            self._go_on_if(out(f"icmp eq {kind} {status}, 0"))
        return [out(f"extractvalue {t} {found}, {k}") for k in range(count)]

    def _link(self, number: int, node: tuple) -> None:
        """A call of another kernel, whose arrays' addresses stand side by side."""
        out, lanes, room = self.out, self.lanes, len(self.stack)
        places = []
        for array, offset in zip(node[2], node[3:], strict=True):
            if self._width(offset):
                line = told("called", self.graph.lines[number])
                raise TypeError(
                    f"a kernel is called on parts of arrays whose offsets differ between lanes{line}"
                )
            places.append(self._address(array, offset))
        self.stack.append(f"  %given{room} = alloca [{len(places)} x ptr], align 8")
        for k, place in enumerate(places):
            out.do(f"store ptr {place}, ptr {out.pointer(f'%given{room}', k, 'ptr')}, align 8")
        entry = out.pointer("%links", 2 * node[1], "ptr")
        function = out(f"load ptr, ptr {entry}, align 8")
        data = out(f"load ptr, ptr {out.pointer(entry, 1, 'ptr')}, align 8")
        mask = "-1"
        if self.mask:
            bits = out(f"bitcast {vector(lanes, 'i1')} {self.mask} to i{lanes}")
            mask = out(f"zext i{lanes} {bits} to i64")
        status = out(f"call i64 {function}(ptr %given{room}, ptr {data}, i64 {mask})")
        self._fail_unless(out(f"icmp eq i64 {status}, 0"), number)

    # -- what may fail ------------------------------------------------------------------------------

    def _go_on_if(self, truth: str) -> None:
        k = self._fresh()
        self.out.do(f"br i1 {truth}, label %fine{k}, label %fail")
        self._block(f"fine{k}", same=True)

    def _fail_unless(self, truth: str, number: int, code: int = 0) -> None:
        """Note where something does not hold, with the number of the node, and end the call."""
        k, label = self._fresh(), self.label
        self.out.do(f"br i1 {truth}, label %fine{k}, label %bad{k}")
        self._block(f"bad{k}")
        self.out.do(f"store {self.status[0]} {2 * number + code}, {self.status[1]}")
        self.out.do(f"br label %{'fail' if self.ends else f'fine{k}'}")
        self.label = label
        self._block(f"fine{k}", same=True)

    def _in_all(self, truth: str, wide: bool) -> str:
        """Whether something holds in all lanes that run."""
        if not wide or self.lanes == 1:
            return truth
        t = vector(self.lanes, "i1")
        wrong = self.out(f"xor {t} {truth}, splat (i1 true)")
        return self.out(f"xor i1 {self._any(self._and(wrong))}, true")

    def _zeros(self, number: int, node: tuple) -> None:
        """Memory for the rest of the region."""
        out, array, sizes = self.out, node[1], node[2:]
        kind = self.graph.arrays[array].kind
        size = (4 if kind == ops.INTEGER else self.real.bytes) * self.lanes
        known = [self.graph.nodes[k] for k in sizes]
        length = math.prod(each[1] for each in known if each[0] == ops.WHOLE) * size
        if length <= STACK and all(each[0] == ops.WHOLE for each in known):
            length = max(length, HEADER)  # the first element is read, even where there is none
            self.bases[array] = f"%z{array}"
            self.stack.append(f"  %z{array} = alloca [{length} x i8], align {HEADER}")
            out.do(
                f"call void @llvm.memset.p0.i64(ptr align {HEADER} %z{array}, i8 0, i64 {length}, i1 false)"
            )
            return
        count = self._count(number, sizes)
        length = out(f"mul nsw i64 {count}, {size}")
        length = out(f"and i64 {out(f'add i64 {length}, {HEADER - 1}')}, -{HEADER}")
        block, top = self.memory
        end = out(f"load i64, ptr {out(f'getelementptr i8, ptr {block}, i64 8')}")
        room = out(f"sub i64 {end}, {out(f'ptrtoint ptr {top} to i64')}")
        k, before = self._fresh(), self.label
        out.do(f"br i1 {out(f'icmp ule i64 {length}, {room}')}, label %room{k}, label %more{k}")
        self._block(f"more{k}")
        new = out(f"call ptr @more(ptr %context, ptr {block}, i64 {length})")
        self._fail_unless(out(f"icmp ne ptr {new}, null"), number, 1)
        start, last = out(f"getelementptr i8, ptr {new}, i64 {HEADER}"), self.label
        out.do(f"br label %room{k}")
        self._block(f"room{k}")
        block = out(f"phi ptr [{block}, %{before}], [{new}, %{last}]")
        base = out(f"phi ptr [{top}, %{before}], [{start}, %{last}]")
        self.memory = block, out(f"getelementptr i8, ptr {base}, i64 {length}")
        self.bases[array] = base
        out.do(f"call void @llvm.memset.p0.i64(ptr align {HEADER} {base}, i8 0, i64 {length}, i1 false)")

    def _count(self, number: int, sizes: Sequence[int]) -> str:
        """Elements of an array, the most that a lane which runs wants; a size may be no less than 0."""
        out = self.out
        wide = any(self._width(k) for k in sizes)
        t, narrow = vector(self.lanes if wide else 1, "i64"), vector(self.lanes if wide else 1, "i32")
        zero, largest = ("0", str(2**31)) if not wide else ("zeroinitializer", f"splat (i64 {2**31})")
        count = "1" if not wide else "splat (i64 1)"
        for k in sizes:
            n = out(f"sext {narrow} {self._value(k, wide)} to {t}")
            count = out(f"mul {t} {count}, {n}")
            fine = out(f"icmp ult {t} {count}, {largest}")
            fine = out(
                f"and {vector(self.lanes if wide else 1, 'i1')} {fine}, {out(f'icmp sge {t} {n}, {zero}')}"
            )
            self._fail_unless(self._in_all(fine, wide), number)
        if not wide:
            return count
        if self.mask:
            count = out(f"select {vector(self.lanes, 'i1')} {self.mask}, {t} {count}, {t} zeroinitializer")
        return out(f"call i64 @llvm.vector.reduce.umax.v{self.lanes}i64({t} {count})")

    def _floor_divide(self, number: int, node: tuple) -> None:
        """Of whole numbers. The quotient in double precision is never rounded up to a whole number."""
        out, wide = self.out, self._width(number)
        lanes = self.lanes if wide else 1
        i, t, truth = vector(lanes, "i32"), vector(lanes, "double"), vector(lanes, "i1")
        a, b = (self._value(k, wide) for k in node[1:])
        divisor = self.graph.nodes[node[2]]
        if divisor[0] == ops.WHOLE:
            shift = divisor[1].bit_length() - 1
            if divisor[1] == 1 << shift:
                by = str(shift) if lanes == 1 else f"splat (i32 {shift})"
                self.names[number] = out(f"ashr {i} {a}, {by}")
                return
            zero = "0" if lanes == 1 else "zeroinitializer"
            found, rest = out(f"sdiv {i} {a}, {b}"), out(f"srem {i} {a}, {b}")
            sign = out(f"icmp slt {i} {out(f'xor {i} {rest}, {b}')}, {zero}")
            below = out(f"and {truth} {sign}, {out(f'icmp ne {i} {rest}, {zero}')}")
            self.names[number] = out(f"add {i} {found}, {out(f'sext {truth} {below} to {i}')}")
            return
        x, y = (out(f"sitofp {i} {k} to {t}") for k in (a, b))
        self.names[number] = self._floor(out(f"fdiv {t} {x}, {y}"), lanes, FLOAT64)

    def _floor(self, x: str, lanes: int, real: Real) -> str:
        """The whole number below a real one; the last one there is where it is beyond."""
        whole, end = "i32" if lanes == 1 else f"v{lanes}i32", suffix(lanes, real)
        t = vector(lanes, real.kind)
        down = self.out(f"call {t} @llvm.floor.{end}({t} {x})")
        return self.out(f"call {vector(lanes, 'i32')} @llvm.fptosi.sat.{whole}.{end}({t} {down})")

    # -- values -------------------------------------------------------------------------------------

    def _type(self, kind: str, wide: bool) -> str:
        element = {ops.REAL: self.real.kind, ops.INTEGER: "i32", ops.TRUTH: "i1"}[kind]
        return vector(self.lanes if wide else 1, element)

    def _type_of(self, number: int) -> str:
        return self._type(self.graph.kinds[number], self._width(number))

    def _width(self, number: int) -> bool:
        return number in self.varying

    def _value(self, number: int, wide: bool) -> str:
        """Name of a value, in every lane where it is wanted wide."""
        node = self.graph.nodes[number]
        lanes = self.lanes if wide else 1
        if node[0] == ops.CONST:
            return constant(lanes, node[-1 if self.real is FLOAT32 else 1], self.real)
        if node[0] == ops.WHOLE:
            return str(node[1]) if lanes == 1 else f"splat (i32 {node[1]})"
        name = self.names[number]
        return self._spread(name, self.graph.kinds[number]) if wide and not self._width(number) else name

    def _spread(self, name: str, kind: str) -> str:
        """A plain number in every lane."""
        out, t = self.out, self._type(kind, True)
        first = out(f"insertelement {t} poison, {self._type(kind, False)} {name}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return out(f"shufflevector {t} {first}, {t} poison, {zeros}")

    def _any(self, mask: str) -> str:
        return self.out.any(self.lanes, mask)

    def _block(self, label: str, same: bool = False) -> None:
        """Begin a block; whether it goes on with what was computed just before."""
        self.out.do(f"{label}:")
        self.label = label
        self.sines = self.sines if same else {}

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
        if opcode in (ops.CONST, ops.WHOLE, ops.GIVEN):
            return
        if opcode == ops.LOAD:
            self.names[number] = self._load(node[1], node[2])
        elif opcode == ops.STORE:
            self._store(*node[1:])
        elif opcode == ops.FOR:
            self._for(number, node)
        elif opcode == ops.WHILE:
            self._while(number, node)
        elif opcode == ops.COND:
            self._cond(number, node)
        elif opcode in (ops.APPLY, ops.VMAP):
            self._call(number, node)
        elif opcode == ops.LINK:
            self._link(number, node)
        elif opcode == ops.ZEROS:
            self._zeros(number, node)
        elif opcode == ops.CHECK:
            wide = self._width(node[1])
            self._fail_unless(self._in_all(self._value(node[1], wide), wide), number)
        elif opcode == ops.TO_WHOLE:
            wide = self._width(number)
            value = self._value(node[1], wide)
            self.names[number] = self._floor(value, self.lanes if wide else 1, self.real)
        elif opcode == ops.FLOOR_DIVIDE:
            self._floor_divide(number, node)
        elif opcode == ops.VALUE:
            self.names[number] = self.control[node[1], node[2]]
        else:
            wide = self._width(number)
            if number in self.module.fused:
                self._fuse(number, node, wide)
                return
            values = [self._value(k, wide) for k in operands(node)]
            if ops.OPERATIONS[opcode].paired:
                values = [self._pair(node[1], values[0], wide)]
            template = self.templates[self.lanes if wide else 1][opcode]
            self.names[number] = self.out(template % tuple(values))

    def _fuse(self, number: int, node: tuple, wide: bool) -> None:
        """A product and a sum or difference."""
        out, product = self.out, self.module.fused[number]
        lanes = self.lanes if wide else 1
        t = vector(lanes, self.real.kind)
        # The same order where the same is done side by side: LLVM finds no vectors otherwise.
        factors = sorted(self.graph.nodes[product][1:], key=lambda k: self.graph.nodes[k][0])
        a, b = (self._value(k, wide) for k in factors)
        first = node[1] == product
        rest = self._value(node[2] if first else node[1], wide)
        if node[0] == ops.SUB and first:
            rest = out(f"fneg {t} {rest}")
        elif node[0] == ops.SUB:
            a = out(f"fneg {t} {a}")
        self.names[number] = out(multiply_add(lanes, self.real) % (a, b, rest))

    def _pair(self, angle: int, value: str, wide: bool) -> str:
        if angle not in self.sines:
            t = self._type(ops.REAL, wide)
            lanes = self.lanes if wide else 1
            self.sines[angle] = self.out(f"call {{{t}, {t}}} @sincos_{lanes}({t} {value})")
        return self.sines[angle]

    def _address(self, array: int, index: int) -> str:
        """Where an element stands, whose index is the same in all lanes."""
        own = array in self.uniform.own
        element = self._type(self.graph.arrays[array].kind, own)
        if own and self.pattern.stride > 1:
            element = f"[{self.pattern.stride} x {element}]"
        terms, known = self._terms(index)
        total = ""
        for term in terms:
            value = self._value(term, False)
            total = self.out(f"add nsw i32 {total}, {value}") if total else value
        place = self.out(f"sext i32 {total} to i64") if total else "0"
        if known:
            place = self.out(f"add nsw i64 {place}, {known}")
        return self.out(f"getelementptr inbounds {element}, ptr {self.bases[array]}, i64 {place}")

    def _terms(self, index: int) -> tuple[list[int], int]:
        """An index as a sum of nodes and a known number, so that LLVM sees which elements are neighbours.

        With the known number last; the sum of the others overflows no more than the index does.
        """
        node = self.graph.nodes[index]
        if node[0] == ops.WHOLE:
            return [], node[1]
        if node[0] != ops.PLUS:
            return [index], 0
        (one, first), (other, second) = (self._terms(k) for k in node[1:])
        return ([*one, *other], first + second) if first or second else ([index], 0)

    def _addresses(self, array: int, index: int) -> list[str]:
        """Where the element of each lane stands; in lanes that do not run that is the first one."""
        out, n = self.out, self.lanes
        kind, places = self._type(self.graph.arrays[array].kind, False), self._value(index, True)
        if self.mask:
            places = self._choose(ops.INTEGER, self.mask, places, "zeroinitializer")
        found = []
        for lane in range(n):
            place = out(f"extractelement <{n} x i32> {places}, i32 {lane}")
            place = f"ptr {self.bases[array]}, i64 {out(f'sext i32 {place} to i64')}"
            own = f"<{n} x {kind}>, {place}, i32 {lane}"
            step = own if array in self.uniform.own else f"{kind}, {place}"
            found.append(out(f"getelementptr inbounds {step}"))
        return found

    def _load(self, array: int, index: int) -> str:
        kind = self.graph.arrays[array].kind
        size = 4 if kind == ops.INTEGER else self.real.bytes
        if not self._width(index):
            wide = array in self.uniform.own and self.lanes > 1
            align = size * (self.lanes if wide else 1)
            return self.out(
                f"load {self._type(kind, wide)}, ptr {self._address(array, index)}, align {align}"
            )
        t, one, found = self._type(kind, True), self._type(kind, False), "poison"
        for lane, where in enumerate(self._addresses(array, index)):
            element = self.out(f"load {one}, ptr {where}, align {size}")
            found = self.out(f"insertelement {t} {found}, {one} {element}, i32 {lane}")
        return found

    def _store(self, array: int, index: int, value: int) -> None:
        kind, out = self.graph.arrays[array].kind, self.out
        size = 4 if kind == ops.INTEGER else self.real.bytes
        if self.lanes > 1 and array not in self.uniform.own:
            if self._width(index) or self._width(value):
                raise TypeError("lanes write different numbers to an array that all states share")
            where = self._address(array, index)
            out.do(f"store {self._type(kind, False)} {self._value(value, False)}, ptr {where}, align {size}")
            return
        t, what = self._type(kind, self.lanes > 1), self._value(value, self.lanes > 1)
        if not self._width(index):
            where = self._address(array, index)
            align = size * self.lanes
            if self.mask:
                what = self._choose(kind, self.mask, what, out(f"load {t}, ptr {where}, align {align}"))
            out.do(f"store {t} {what}, ptr {where}, align {align}")
            return
        one = self._type(kind, False)
        if self.mask:  # lanes that do not run write what is there
            first = out(f"load {t}, ptr {self.bases[array]}, align {size * self.lanes}")
            what = self._choose(kind, self.mask, what, first)
        for lane, where in enumerate(self._addresses(array, index)):
            element = out(f"extractelement {t} {what}, i32 {lane}")
            out.do(f"store {one} {element}, ptr {where}, align {size}")

    # -- control ------------------------------------------------------------------------------------

    def _begin(
        self, k: int, number: int, firsts: Sequence[str], parameters: list[int]
    ) -> list[tuple[str, str, str]]:
        """Phis of what a loop carries, at first these values: (name, type, value to come)."""
        made = []
        before = self.label
        self.out.do(f"br label %head{k}")
        self._block(f"head{k}")
        for position, (first, parameter) in enumerate(zip(firsts, parameters, strict=True)):
            self.names[parameter] = name = f"%c{number}x{position}"
            made.append((name, self._type_of(parameter), f"[{first}, %{before}]"))
        return made

    def _firsts(self, starts: Sequence[int], parameters: Sequence[int]) -> list[str]:
        pairs = zip(starts, parameters, strict=True)
        return [self._value(start, self._width(parameter)) for start, parameter in pairs]

    def _for(self, number: int, node: tuple, turn: str = "0", firsts: Sequence[str] | None = None) -> None:
        """The turns of a loop from ``turn`` on; ``firsts``: what is carried to it, if not its starts."""
        graph, out, k = self.graph, self.out, self._fresh()
        region, count, starts = graph.regions[node[1]], node[2], node[3:]
        index, *carried = region.parameters
        differs, outer = self._width(count), self.mask
        counts, memory = self._value(count, differs), self.memory
        most = counts
        if differs:
            n = self.lanes
            wanted = self._choose(ops.INTEGER, outer, counts, "zeroinitializer") if outer else counts
            most = out(f"call i32 @llvm.vector.reduce.smax.v{n}i32(<{n} x i32> {wanted})")
        runs = (ops.FOR, ops.WHILE, ops.APPLY, ops.VMAP)
        innermost = not any(opcode in runs for opcode, *_ in graph.operations(region))
        if innermost and graph.nodes[count][0] != ops.WHOLE:  # nothing disturbs it, and it ends in seconds
            self._look(most)
        before = self.label
        phis = self._begin(k, number, self._firsts(starts, carried) if firsts is None else firsts, carried)
        self.names[index] = f"%i{k}"
        at = len(out.lines)
        out.do("")  # the phis, once their other values are known
        out.do(f"%go{k} = icmp slt i32 %i{k}, {most}")
        out.do(f"br i1 %go{k}, label %body{k}, label %done{k}")
        self._block(f"body{k}")
        if not innermost:
            self._look()
        if differs:
            live = out(f"icmp slt <{self.lanes} x i32> {self._spread(f'%i{k}', ops.INTEGER)}, {counts}")
            self.mask = self._and(live)
        self._region(region)
        nexts = self._nexts(region, carried, differs)
        self.mask, self.memory = outer, memory
        out.do(f"%j{k} = add nsw i32 %i{k}, 1")
        out.do(f"br label %head{k}")
        lines = [f"%i{k} = phi i32 [{turn}, %{before}], [%j{k}, %{self.label}]"]
        self._end(k, number, at, phis, nexts, lines)

    def _while(self, number: int, node: tuple) -> None:
        graph, out, k = self.graph, self.out, self._fresh()
        region, starts = graph.regions[node[1]], node[2:]
        outer, memory, differs, before = self.mask, self.memory, self._width(region.test), self.label
        phis = self._begin(k, number, self._firsts(starts, region.parameters), region.parameters)
        at = len(out.lines)
        out.do("")
        if differs:
            self.mask = f"%live{k}"
        self._region(region, slice(0, region.tested))
        go = self._value(region.test, differs)
        if differs:
            self.mask = self._and(go)
            go = self._any(self.mask)
        live = self.mask
        out.do(f"br i1 {go}, label %body{k}, label %done{k}")
        self._block(f"body{k}")
        self._look()
        self._region(region, slice(region.tested, None))
        nexts = self._nexts(region, region.parameters, differs)
        self.mask, self.memory = outer, memory
        out.do(f"br label %head{k}")
        lines = []
        if differs:
            t, first = vector(self.lanes, "i1"), outer or "splat (i1 true)"
            lines = [f"%live{k} = phi {t} [{first}, %{before}], [{live}, %{self.label}]"]
        self._end(k, number, at, phis, nexts, lines)

    def _look(self, turns: str = "1") -> None:
        """End the call before these turns of a loop if Ctrl-C was pressed; kernels that are checked do so."""
        if not self.graph.checked:
            return
        out = self.out
        place = out.pointer("%context", 3, "i64")
        wide = out(f"sext i32 {turns} to i64")
        left = out(f"sub i64 {out(f'load i64, ptr {place}')}, {wide}")
        out.do(f"store i64 {left}, ptr {place}")
        k = self._fresh()
        out.do(f"br i1 {out(f'icmp sgt i64 {left}, 0')}, label %on{k}, label %look{k}")
        self._block(f"look{k}")
        out.do(f"br i1 {out('call i1 @interrupted(ptr %context)')}, label %fail, label %on{k}")
        self._block(f"on{k}")

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
        graph, out, k, outer, memory = self.graph, self.out, self._fresh(), self.mask, self.memory
        then, otherwise = (graph.regions[n] for n in node[2:])
        differs = self._width(node[1])
        condition = self._value(node[1], differs)
        kinds = [graph.kinds[r] for r in then.results]
        pairs = zip(then.results, otherwise.results, strict=True)
        wides = [differs or not self.varying.isdisjoint(pair) for pair in pairs]
        if not differs:
            ends = []
            out.do(f"br i1 {condition}, label %then{k}, label %else{k}")
            for label, branch in (("then", then), ("else", otherwise)):
                self._block(f"{label}{k}")
                self._region(branch)
                values = [self._value(r, wide) for r, wide in zip(branch.results, wides, strict=True)]
                ends.append((self.label, values))
                self.memory = memory
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
            last, self.memory = self.label, memory
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


def _fused(graph: LoopGraph, running: Sequence[int]) -> dict[int, int]:
    """Sums and differences with the product that each is fused with: these are computed with one rounding.

    This is not left to LLVM, which decides by what stands side by side: code of one state and of lanes would
    differ in their last bits. It follows from the two operands alone. What a branch, loop or call leaves, or
    memory, is no product, and what else reads a product does not count: it is then computed, too, and the sum
    takes no longer. A sum is left as it is where one of ``running`` goes on: each has to wait for the one
    before, and an addition is over sooner than a fused one, or at least as soon. Sweeps of Gauss-Seidel take
    an eighth (AMD EPYC) or a sixth (Intel Xeon) less time so; steps of robots, in which much goes on at a
    time, 3 to 5 % more (Intel Xeon).
    """
    found = {}
    for number, node in enumerate(graph.nodes):
        if node[0] in (ops.ADD, ops.SUB):
            for k, rest in (node[:0:-1], node[1:]):
                if graph.nodes[k][0] == ops.MUL and graph.nodes[rest][0] not in running:
                    found[number] = k
                    break
    return found


def declarations(widths: Sequence[int], real: Real) -> str:
    """What the functions for these numbers of lanes need of LLVM."""
    lines = ["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"]
    for width in widths:
        for number in dict.fromkeys((FLOAT64, real)):
            whole, end = "i32" if width == 1 else f"v{width}i32", suffix(width, number)
            t = vector(width, number.kind)
            lines.append(f"declare {vector(width, 'i32')} @llvm.fptosi.sat.{whole}.{end}({t})")
    for lanes in widths:
        if lanes == 1:
            continue
        lines.append(f"declare i32 @llvm.vector.reduce.smax.v{lanes}i32(<{lanes} x i32>)")
        lines.append(f"declare i64 @llvm.vector.reduce.umax.v{lanes}i64(<{lanes} x i64>)")
    return "\n".join(lines) + "\n"


# -- Rows of calls in lanes ------------------------------------------------------------------------------
#
# Writes the functions that callers see: of one state, and of batches, whose rows go into lanes and back.

ENVIRONMENT = ("sizes", "lengths", "places", "links", "moves", "context")
"""What an environment points to (environment.py): the sizes; elements of each array, and its memory in lanes,
or that of work arrays; the table of other kernels; the functions of :data:`MOVES`; and where a call says that
it failed: a status of 64 bits, 0 where all is well, and what Context (environment.py) has beside it."""

BATCH = "ptr %args, ptr %strides, ptr %env, i64 %start, i64 %stop, i64 %passes, ptr %jumps"
"""Parameters of the functions of many rows."""


class Driver:
    """Writes the functions of a kernel that others call.

    Args:
        name: of the kernel.
        arrays: what it takes.
        sizes: how many.
        lanes: states at once.
        real: of the numbers.
        fails: whether the functions that do it take a context.
    """

    def __init__(
        self, name: str, arrays: Sequence[ArrayOf], sizes: int, lanes: int, real: Real, fails: bool
    ) -> None:
        self.fails = fails
        self.name, self.arrays, self.sizes, self.lanes, self.real = name, arrays, sizes, lanes, real
        self.taken = [k for k, a in enumerate(arrays) if a.role != "work"]

    def linked(self, body: str, masked: str = "") -> str:
        """``i64 NAME_linked(ptr args, ptr env, i64 mask)``: for callers in machine code; it tells a status.

        ``body``: name of the function for all lanes; ``masked``: of the one for some.
        """
        out = self._begin()
        memory = self._loaded("places", "ptr", len(self.arrays))
        for place, k in enumerate(self.taken):
            memory[k] = out(f"load ptr, ptr {out.pointer('%args', place, 'ptr')}")
        call = self._call(body, memory)
        if masked:
            n = self.lanes
            out.do("%all = icmp eq i64 %mask, -1")
            out.do("br i1 %all, label %whole, label %part")
            out.do("whole:")
            out.do(call)
            out.do(f"ret i64 {self._status()}")
            out.do("part:")
            mask = out(f"bitcast i{n} {out(f'trunc i64 %mask to i{n}')} to {vector(n, 'i1')}")
            call = self._call(masked, memory, f"{vector(n, 'i1')} {mask}")
        out.do(call)
        out.do(f"ret i64 {self._status()}")
        heading = f"define i64 @{self.name}_linked(ptr %args, ptr %env, i64 %mask) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n}}\n"

    def once(self) -> str:
        """``i64 NAME_once(ptr args, ptr env)``: one state, in place; 1 where it may run again.

        It may not where a call fails, or an array that is read and written, and no hint, is no longer finite.
        """
        out = self._begin()
        status = out(f"call i64 @{self.name}_linked(ptr %args, ptr %env, i64 -1)")
        total, kind = constant(1, 0.0, self.real), self.real.kind
        for place, k in enumerate(self.taken):
            a = self.arrays[k]
            if a.role == "inout" and a.kind == ops.REAL and not a.is_hint:
                pointer = out(f"load ptr, ptr {out.pointer('%args', place, 'ptr')}")
                total = out(f"call {kind} @no_times({kind} {total}, ptr {pointer}, i64 {self.lengths[k]})")
        well = out(f"fcmp ord {kind} {total}, {total}")
        if self.fails:
            well = out(f"and i1 {well}, {out(f'icmp eq i64 {status}, 0')}")
        out.do(f"%well = zext i1 {well} to i64")
        heading = f"define internal i64 @{self.name}_once(ptr %args, ptr %env) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n  ret i64 %well\n}}\n"

    def single(self) -> str:
        """``i64 NAME_single(ptr args, ptr env, i64 passes)``: one state, in place, again and again.

        Its value is how often it ran: less than was asked for where it may not run again.
        """
        out = Lines(self.real)
        out.do("br label %pass")
        out.do("pass:")
        out.do("%k = phi i64 [0, %entry], [%next, %pass]")
        out.do(f"%ok = call i64 @{self.name}_once(ptr %args, ptr %env)")
        out.do("%next = add i64 %k, 1")
        more = out(f"and i1 {out('icmp slt i64 %next, %passes')}, {out('icmp ne i64 %ok, 0')}")
        out.do(f"br i1 {more}, label %pass, label %end")
        out.do("end:")
        heading = f"define i64 @{self.name}_single(ptr %args, ptr %env, i64 %passes) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n  ret i64 %next\n}}\n"

    def rows(self) -> str:
        """``void NAME_rows``, with the arguments of ``batch`` and ``ptr done``.

        As ``single``, for rows start..stop, one after the other, each in place; done gets how often each ran.
        """
        out, n = self._begin(), len(self.taken)
        out.do(f"%own = alloca [{n} x ptr]")
        out.do("br label %row_head")
        out.do("row_head:")
        out.do("%row = phi i64 [%start, %entry], [%next_row, %row_done]")
        out.do(f"br i1 {out('icmp slt i64 %row, %stop')}, label %pass, label %end")
        out.do("pass:")
        out.do("%p = phi i64 [0, %row_head], [%next, %ran]")
        out.do("br label %place")
        out.do("place:")
        out.do("%k = phi i64 [0, %pass], [%next_k, %place]")
        arguments = out(f"load ptr, ptr {out.pointer('%args', '%k', 'ptr')}")
        words = [out(f"load i64, ptr {out.pointer(name, '%k', 'i64')}") for name in ("%strides", "%jumps")]
        away = [out(f"mul i64 {a}, {b}") for a, b in zip(words, ("%row", "%p"), strict=True)]
        there = out.pointer(arguments, out(f"add i64 {away[0]}, {away[1]}"), "i8")
        out.do(f"store ptr {there}, ptr {out.pointer('%own', '%k', 'ptr')}")
        out.do("%next_k = add i64 %k, 1")
        out.do(f"br i1 {out(f'icmp slt i64 %next_k, {n}')}, label %place, label %placed")
        out.do("placed:")
        out.do(f"%ok = call i64 @{self.name}_once(ptr %own, ptr %env)")
        out.do("br label %ran")
        out.do("ran:")
        out.do("%next = add i64 %p, 1")
        more = out(f"and i1 {out('icmp slt i64 %next, %passes')}, {out('icmp ne i64 %ok, 0')}")
        out.do(f"br i1 {more}, label %pass, label %row_done")
        out.do("row_done:")
        out.do(f"store i64 %next, ptr {out.pointer('%done', '%row', 'i64')}")
        out.do("%next_row = add i64 %row, 1")
        out.do("br label %row_head")
        out.do("end:")
        heading = f"define void @{self.name}_rows({BATCH}, ptr %done) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n  ret void\n}}\n"

    def batch(self, body: str) -> str:
        """``i64 NAME_batch(ptr args, ptr strides, ptr env, i64 start, i64 stop, i64 passes, ptr jumps)``.

        Rows start..stop, so many passes of a tile before the next one begins; between two passes its numbers
        stay in vectors. strides are the bytes between the rows of each array, 0 to use one for all; jumps
        those by which its pointer moves from one pass to the next, 0 where it stays.
        """
        out = self._begin()
        functions = self._loaded("moves", "ptr", len(MOVES))
        memory = self._loaded("places", "ptr", len(self.arrays))
        words: dict[str, list[str]] = {"strides": [], "jumps": []}
        arguments = []
        for place in range(len(self.taken)):
            arguments.append(out(f"load ptr, ptr {out.pointer('%args', place, 'ptr')}"))
            for name, found in words.items():
                found.append(out(f"load i64, ptr {out.pointer(f'%{name}', place, 'i64')}"))

        def move(what: str, place: int, pointer: str) -> None:
            k = self.taken[place]
            function = functions[MOVES.index((what, self.arrays[k].kind))]
            rows = f"ptr {pointer}, i64 {words['strides'][place]}, i64 %row, i64 %stop"
            out.do(f"call void {function}({rows}, ptr {memory[k]}, i64 {self.lengths[k]})")

        out.do("br label %tile")
        out.do("tile:")
        out.do("%row = phi i64 [%start, %entry], [%nextrow, %done]")
        for k, a in enumerate(self.arrays):
            if a.role == "out":
                size = (4 if a.kind == ops.INTEGER else self.real.bytes) * self.lanes
                count = out(f"mul i64 {self.lengths[k]}, {size}")
                out.do(f"call void @llvm.memset.p0.i64(ptr {memory[k]}, i8 0, i64 {count}, i1 false)")
        out.do("br label %pass")
        out.do("pass:")
        out.do("%p = phi i64 [0, %tile], [%nextpass, %ran]")
        first = out("icmp eq i64 %p, 0")
        here = list(memory)
        for place, k in enumerate(self.taken):
            a, jump = self.arrays[k], words["jumps"][place]
            pointer = out(f"getelementptr i8, ptr {arguments[place]}, i64 {out(f'mul i64 %p, {jump}')}")
            if a.shared:
                here[k] = pointer
            elif a.role != "out":
                wanted = out(f"or i1 {first}, {out(f'icmp ne i64 {jump}, 0')}")
                out.do(f"br i1 {wanted}, label %read{k}, label %have{k}")
                out.do(f"read{k}:")
                move("pack", place, pointer)
                out.do(f"br label %have{k}")
                out.do(f"have{k}:")
        out.do("br label %ran")
        out.do("ran:")
        out.do(self._call(body, here))
        out.do("%nextpass = add i64 %p, 1")
        more = out("icmp slt i64 %nextpass, %passes")
        well = "true"
        if self.fails:
            well = out(f"icmp eq i64 {self._status()}, 0")
            more = out(f"and i1 {more}, {well}")
        out.do(f"br i1 {more}, label %pass, label %done")
        out.do("done:")
        for place, k in enumerate(self.taken):
            if self.arrays[k].role != "in":
                move("unpack", place, arguments[place])
        out.do(f"%nextrow = add i64 %row, {self.lanes}")
        more = out("icmp slt i64 %nextrow, %stop")
        out.do(f"br i1 {out(f'and i1 {more}, {well}')}, label %tile, label %end")
        out.do("end:")
        return f"define i64 @{self.name}_batch({BATCH}) #2 {{\nentry:\n{out.text()}\n  ret i64 0\n}}\n"

    def _begin(self) -> Lines:
        """Load what all functions need of the environment."""
        out = self.out = Lines(self.real)
        self.values = self._loaded("sizes", "i32", self.sizes)
        self.lengths = self._loaded("lengths", "i64", len(self.arrays))
        self.links, self.context = (
            out(f"load ptr, ptr {out.pointer('%env', ENVIRONMENT.index(name), 'ptr')}")
            for name in ("links", "context")
        )
        return out

    def _status(self) -> str:
        return self.out(f"load i64, ptr {self.context}") if self.fails else "0"

    def _loaded(self, what: str, kind: str, count: int) -> list[str]:
        out = self.out
        base = out(f"load ptr, ptr {out.pointer('%env', ENVIRONMENT.index(what), 'ptr')}")
        return [out(f"load {kind}, ptr {out.pointer(base, k, kind)}") for k in range(count)]

    def _call(self, body: str, memory: Sequence[str], *more: str) -> str:
        arguments = [*(f"ptr {p}" for p in (self.links, *memory)), *(f"i32 {n}" for n in self.values), *more]
        if self.fails:
            block = self.out(f"load ptr, ptr {self.out.pointer(self.context, 2, 'ptr')}")
            top = self.out.pointer(block, HEADER, "i8")
            arguments += [f"ptr {self.context}", f"ptr {block}", f"ptr {top}"]
        return f"call void @{body}({', '.join(arguments)})"


_NO_TIMES = """define internal {t} @no_times({t} %before, ptr %x, i64 %n) noinline #2 {{
entry:
  %whole = and i64 %n, -8
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %eight]
  %sums = phi <8 x {t}> [zeroinitializer, %entry], [%new, %eight]
  %more = icmp slt i64 %i, %whole
  br i1 %more, label %eight, label %rest
eight:
  %place = getelementptr {t}, ptr %x, i64 %i
  %numbers = load <8 x {t}>, ptr %place, align {bytes}
  %nothing = fmul <8 x {t}> %numbers, zeroinitializer
  %new = fadd <8 x {t}> %sums, %nothing
  %next = add i64 %i, 8
  br label %head
rest:
  %k = phi i64 [%i, %head], [%next_k, %one]
  %sum = phi {t} [%before, %head], [%new_sum, %one]
  %more_ones = icmp slt i64 %k, %n
  br i1 %more_ones, label %one, label %end
one:
  %place_k = getelementptr {t}, ptr %x, i64 %k
  %number = load {t}, ptr %place_k
  %product = fmul {t} %number, {zero}
  %new_sum = fadd {t} %sum, %product
  %next_k = add i64 %k, 1
  br label %rest
end:
  %all = call reassoc {t} @llvm.vector.reduce.fadd.v8{name}({t} %sum, <8 x {t}> %sums)
  ret {t} %all
}}
declare {t} @llvm.vector.reduce.fadd.v8{name}({t}, <8 x {t}>)
"""


def no_times(real: Real) -> str:
    """The function ``no_times(before, array, n)``: before, if all its numbers are finite, else NaN.

    It is a function, and no loop in its callers: a loop for each array takes 8 ms to compile. Eight sums go
    side by side: one after the other took 3 % of a step with contacts.
    """
    name = f"f{8 * real.bytes}"
    return _NO_TIMES.format(t=real.kind, bytes=real.bytes, name=name, zero=constant(1, 0.0, real))


MOVES = (("pack", ops.REAL), ("unpack", ops.REAL), ("pack", ops.INTEGER), ("unpack", ops.INTEGER))
"""Functions that move rows to lanes and back. They are the same for all kernels, and compiled once."""


def moves_module(lanes: int, real: Real) -> str:
    """The functions ``move0``... of :data:`MOVES`."""
    return "".join(_moves(lanes, real.kind, real.bytes, 0) + _moves(lanes, "i32", 4, 2))


_MOVE = """define void @{name}(
    ptr noalias %rows, i64 %stride, i64 %row, i64 %stop, ptr noalias %lanes, i64 %n) #2 {{
entry:
  %last = sub i64 %stop, 1
{start}
  br label %head
head:
  %j = phi i64 [0, %entry], [%j1, %block]
  %j1 = add i64 %j, {w}
  %fits = icmp sle i64 %j1, %n
  br i1 %fits, label %block, label %rest
block:
{block}
  br label %head
rest:
  %s = phi i64 [%j, %head], [%s1, %one]
  %more = icmp slt i64 %s, %n
  br i1 %more, label %one, label %out
one:
  %there = getelementptr {t}, ptr %lanes, i64 %s
{one}
  %s1 = add i64 %s, 1
  br label %rest
out:
  ret void
}}
"""


def _moves(lanes: int, kind: str, size: int, first: int) -> list[str]:
    """Two functions: an array of some rows to lanes and back; lanes beyond the last row have it.

    They are written back first: the last row's own lane is the one that counts.
    """
    element, t = Real("", kind, size, "", 0.0), vector(lanes, kind)
    start = "\n".join(
        f"  %r{k} = add i64 %row, {k}\n  %b{k} = icmp slt i64 %r{k}, %stop\n"
        f"  %m{k} = select i1 %b{k}, i64 %r{k}, i64 %last\n  %o{k} = mul i64 %m{k}, %stride\n"
        f"  %p{k} = getelementptr i8, ptr %rows, i64 %o{k}"
        for k in range(lanes)
    )
    texts = []
    for which, reads in ((first, True), (first + 1, False)):
        block = Lines(element)
        in_rows = [block.pointer(f"%p{k}", "%j") for k in range(lanes)]
        in_lanes = [block.pointer("%lanes", block(f"add i64 %j, {k}"), t) for k in range(lanes)]
        source, target = (in_rows, in_lanes) if reads else (in_lanes, in_rows)
        aligned = (size, size * lanes) if reads else (size * lanes, size)
        loaded = [block(f"load {t}, ptr {place}, align {aligned[0]}") for place in source]
        turned = block.transposed(loaded)
        for k in reversed(range(lanes)):
            block.do(f"store {t} {turned[k]}, ptr {target[k]}, align {aligned[1]}")
        one = Lines(element)
        one.count = block.count
        for k in reversed(range(lanes)):
            places = one.pointer(f"%p{k}", "%s"), one.pointer("%there", k)
            source_place, target_place = places if reads else places[::-1]
            value = one(f"load {kind}, ptr {source_place}, align {size}")
            one.do(f"store {kind} {value}, ptr {target_place}, align {size}")
        texts.append(
            _MOVE.format(name=f"move{which}", start=start, w=lanes, block=block.text(), t=t, one=one.text())
        )
    return texts
