"""Writes the chunks: straight lines of scalar operations as LLVM IR functions.

Each chunk is `void @chunkN(ptr ws, ptr args)`. A value is loaded at its first use in a chunk and stored
where it is computed. Which instruction an operation is stands in trace/ops.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robokit.engine.emit.ir import FLOAT64, Real, constant, suffix, vector
from robokit.engine.passes.chunks import Schedule
from robokit.engine.trace.ops import CONST, INPUT, OPERATIONS, TRUTHS
from robokit.engine.trace.program import Program

Fixed = tuple[int, int, float]
"""Output, position and value of a constant."""

MOST_STORES = 256
"""Stores in one function, of outputs that no operation computes."""


def _parts(items: list) -> Iterator[list]:
    for start in range(0, len(items), MOST_STORES):
        yield items[start : start + MOST_STORES]


class ChunkWriter:
    """Writes the chunks of one schedule."""

    def __init__(self, program: Program, plan: Schedule, direct: bool, real: Real = FLOAT64) -> None:
        """With `direct`, inputs are read from and outputs written to the caller's arrays of doubles."""
        self.program, self.plan, self.direct, self.real = program, plan, direct, real
        self.t = vector(plan.lanes, real.kind)
        self.truth = vector(plan.lanes, "i1")
        self.align = real.bytes * plan.lanes
        words = {
            "t": self.t,
            "truth": self.truth,
            "true": "true" if plan.lanes == 1 else "splat (i1 true)",
            "suffix": suffix(plan.lanes, real),
        }
        self.instruction = [operation.llvm.format(**words) for operation in OPERATIONS]
        self.targets: dict[int, list[tuple[int, int]]] = {}
        self.fixed: list[Fixed] = []
        if direct:
            for k, row in enumerate(program.results):
                for position, r in enumerate(row):
                    if type(r) is int:
                        self.targets.setdefault(r, []).append((k, position))
                    else:
                        self.fixed.append((k, position, r))

    def functions(self) -> list[str]:
        """The chunks, and last the outputs that no chunk computes (constants, inputs passed on)."""
        texts = [self._function(k, chunk, (), ()) for k, chunk in enumerate(self.plan.chunks)]
        computed = {n for chunk in self.plan.chunks for n in chunk}
        passed = [n for n in self.targets if n not in computed]
        for part in _parts(passed):
            texts.append(self._function(len(texts), (), part, ()))
        for part in _parts(self.fixed):
            texts.append(self._function(len(texts), (), (), part))
        return texts

    def _function(
        self, index: int, chunk: Sequence[int], passed: Sequence[int], fixed: Sequence[Fixed]
    ) -> str:
        self._line(chunk)
        for k, position, value in fixed:
            self._output(k, position, self._constant(value))
        for number in passed:
            value_of = self._value(number)
            for k, position in self.targets[number]:
                self._output(k, position, value_of)
        entry = []
        for k in sorted(self.pointers):
            entry.append(f"%q{k} = getelementptr ptr, ptr %args, i64 {k}")
            entry.append(f"%p{k} = load ptr, ptr %q{k}, align 8")
        body = "\n  ".join(entry + self.lines)
        more = "" if self.direct else ", ptr %strides, i64 %t, i64 %stop"
        return (
            f"define internal void @chunk{index}(ptr noalias %ws, ptr noalias %args{more}) #0 {{\n"
            f"  {body}\n  ret void\n}}\n"
        )

    def _line(self, chunk: Sequence[int]) -> None:
        """Write the nodes of a chunk to ``self.lines``."""
        self.lines: list[str] = []
        self.known: set[int] = set()
        self.pairs: set[int] = set()
        self.pointers: set[int] = set()
        for number in chunk:
            self._compute(number)
            self.known.add(number)
            if number in self.plan.stored:
                self._store(number)
            for k, position in self.targets.get(number, ()):
                self._output(k, position, f"%v{number}")

    def _address(self, number: int, name: str) -> None:
        """Make the name the address of a node's place in memory."""
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {self.plan.slot[number]}")

    def _constant(self, value: float) -> str:
        return constant(self.plan.lanes, value, self.real)

    def _value(self, number: int) -> str:
        """Text of a node's value; loads it if it is not at hand."""
        node, add, t = self.program.nodes[number], self.lines.append, self.t
        if node[0] == CONST:
            return self._constant(node[1])
        if number in self.known:
            return f"%v{number}"
        self.known.add(number)
        if self.direct and node[0] == INPUT:
            self.pointers.add(node[1])
            add(f"%a{number} = getelementptr double, ptr %p{node[1]}, i64 {node[2]}")
            add(f"%v{number} = load double, ptr %a{number}, align 8")
            return f"%v{number}"
        truth = node[0] in TRUTHS
        name = f"%t{number}" if truth else f"%v{number}"
        self._address(number, f"%a{number}")
        add(f"{name} = load {t}, ptr %a{number}, align {self.align}")
        if truth:
            add(f"%v{number} = fcmp une {t} {name}, {self._constant(0.0)}")
        return f"%v{number}"

    def _store(self, number: int) -> None:
        value = f"%v{number}"
        if self.program.nodes[number][0] in TRUTHS:
            one, zero = self._constant(1.0), self._constant(0.0)
            self.lines.append(f"%t{number} = select {self.truth} {value}, {self.t} {one}, {self.t} {zero}")
            value = f"%t{number}"
        self._address(number, f"%b{number}")
        self.lines.append(f"store {self.t} {value}, ptr %b{number}, align {self.align}")

    def _output(self, k: int, position: int, value: str) -> None:
        pointer = len(self.program.inputs) + k
        self.pointers.add(pointer)
        name = f"%o{k}x{position}"
        self.lines.append(f"{name} = getelementptr double, ptr %p{pointer}, i64 {position}")
        self.lines.append(f"store double {value}, ptr {name}, align 8")

    def _compute(self, number: int) -> None:
        opcode, *operands = self.program.nodes[number]
        values = [self._value(n) for n in operands]
        if OPERATIONS[opcode].paired:
            values = [self._pair(operands[0], values[0])]
        self.lines.append(f"%v{number} = {self.instruction[opcode] % tuple(values)}")

    def _pair(self, angle: int, value: str) -> str:
        """Sine and cosine of an angle, computed once in a chunk."""
        name = f"%w{angle}"
        if angle not in self.pairs:
            self.pairs.add(angle)
            self.lines.append(f"{name} = call {{{self.t}, {self.t}}} @sincos({self.t} {value})")
        return name
