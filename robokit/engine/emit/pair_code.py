"""Writes programs some of whose values have two lanes, in code of one state (passes/paired.py)."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.call_code import CallWriter
from robokit.engine.emit.ir import FLOAT64, Real, constant, number, suffix, vector
from robokit.engine.passes.called_lines import CalledLines
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CONST, FIRST, OPERATIONS, PAIR, RESULT, SECOND, TRUTHS
from robokit.engine.trace.program import LANES, Program


class PairWriter(CallWriter):
    """Writes the chunks of a program with wide values."""

    def __init__(self, program: Program, plan: CalledLines, direct: bool, real: Real = FLOAT64) -> None:
        super().__init__(program, plan, direct, real)
        self.wide = program.wide
        self.two, self.truths = vector(LANES, real.kind), vector(LANES, "i1")
        words = {
            "t": self.two,
            "truth": self.truths,
            "true": "splat (i1 true)",
            "suffix": suffix(LANES, real),
        }
        self.of_two = [operation.llvm.format(**words) for operation in OPERATIONS]
        self.true_ones: set[int] = set()
        for n in program.order:
            node = program.nodes[n]
            if node[0] in TRUTHS or (node[0] in (PAIR, FIRST, SECOND) and node[1] in self.true_ones):
                self.true_ones.add(n)

    def _lanes(self, number: int) -> int:
        return LANES if number in self.wide else self.lanes

    def _is_truth(self, number: int) -> bool:
        return number in self.true_ones

    def _kind(self, number: int) -> str:
        if number in self.wide:
            return self.truths if self._is_truth(number) else self.two
        return super()._kind(number)

    def _line(self, chunk: Sequence[int]) -> None:
        self.same: dict[int, str] = {}
        super()._line(chunk)

    def _begin(self, label: str) -> None:
        super()._begin(label)
        self.same = {}

    def _in_both(self, n: int) -> str:
        """A value in two lanes; one number is the same in both."""
        if n in self.wide:
            return self._value(n)
        node, add, kind = self.program.nodes[n], self.lines.append, self.real.kind
        if node[0] == CONST:
            return constant(LANES, node[1], self.real)
        if n not in self.same:
            value = self._value(n)
            if self._is_truth(n):
                name = self.fresh()
                add(f"{name} = select i1 {value}, {kind} {number(1.0)}, {kind} {number(0.0)}")
                value = name
            one, both = self.fresh(), self.fresh()
            add(f"{one} = insertelement {self.two} poison, {kind} {value}, i32 0")
            add(
                f"{both} = shufflevector {self.two} {one}, {self.two} poison, <{LANES} x i32> zeroinitializer"
            )
            if self._is_truth(n):
                number_of, both = both, self.fresh()
                add(f"{both} = fcmp une {self.two} {number_of}, {constant(LANES, 0.0, self.real)}")
            self.same[n] = both
        return self.same[n]

    def _value(self, number_of: int) -> str:
        n = number_of
        if n not in self.wide or n in self.known:
            return super()._value(n)
        node = self.program.nodes[n]
        if node[0] == CONST:
            return f"<{', '.join(f'{self.real.kind} {number(x, self.real)}' for x in node[1])}>"
        place, name = self.fresh(), self.fresh()
        self._address(n, place)
        self.lines.append(f"{name} = load {self.two}, ptr {place}, align {LANES * self.align}")
        if self._is_truth(n):
            loaded, name = name, self.fresh()
            self.lines.append(f"{name} = fcmp une {self.two} {loaded}, {constant(LANES, 0.0, self.real)}")
        self.known[n] = name
        return name

    def _store(self, n: int, value: str) -> None:
        if n not in self.wide:
            super()._store(n, value)
            return
        if self._is_truth(n):
            one, zero, name = constant(LANES, 1.0, self.real), constant(LANES, 0.0, self.real), self.fresh()
            self.lines.append(f"{name} = select {self.truths} {value}, {self.two} {one}, {self.two} {zero}")
            value = name
        place = self.fresh()
        self._address(n, place)
        self.lines.append(f"store {self.two} {value}, ptr {place}, align {LANES * self.align}")

    def _compute(self, n: int) -> None:
        node, add = self.program.nodes[n], self.lines.append
        op, wide = node[0], self.wide
        if n in wide and op in self.plain:  # nearly all
            known, value, both = self.known, self._value, self._in_both
            given = [known.get(x) or value(x) if x in wide else both(x) for x in node[1:]]
            add(f"%v{n} = {self.of_two[op] % tuple(given)}")
        elif op in (FIRST, SECOND):
            kind = self._kind(node[1])
            add(f"%v{n} = extractelement {kind} {self._value(node[1])}, i32 {int(op == SECOND)}")
        elif n not in wide:
            super()._compute(n)
        elif op == PAIR:
            a, b, one = self._value(node[1]), self._value(node[2]), self.fresh()
            kind, each = self._kind(n), self._kind(n).split()[2].rstrip(">")
            add(f"{one} = insertelement {kind} poison, {each} {a}, i32 0")
            add(f"%v{n} = insertelement {kind} {one}, {each} {b}, i32 1")
        elif op == RESULT:
            block = self.program.blocks[called(self.program, node[1])]
            self._element(int(block.results[position(self.program, n)]), 0, f"%y{n}")
            add(f"%v{n} = load {self.two}, ptr %y{n}, align {LANES * self.align}")
        else:  # a sine or a cosine
            angle = node[1]
            if angle not in self.pairs:
                argument = f"{self.two} {self._in_both(angle)}"
                self.pairs[angle] = f"%w{angle}x{self.labels}"
                add(f"{self.pairs[angle]} = call {{{self.two}, {self.two}}} @sincos_{LANES}({argument})")
            add(f"%v{n} = {self.of_two[op] % self.pairs[angle]}")

    def _arguments(self, call: int, parameter: int, place: int, count: int) -> None:
        if parameter not in self.wide:
            super()._arguments(call, parameter, place, count)
        elif (call, place) not in self.plan.placed:
            name, value = f"%x{call}x{place}x0", self._in_both(self.program.nodes[call][2 + place])
            self._element(parameter, 0, name)
            self.lines.append(f"store {self.two} {value}, ptr {name}, align {LANES * self.align}")
