"""Writes the chunks: straight lines of scalar operations as LLVM IR functions.

Each chunk is `void @chunkN(ptr ws, ptr args)`. A value is loaded at its first use in a chunk and stored
where it is computed. Which instruction an operation is stands in trace/ops.py.

Around nodes inside a guard there is a branch, taken where the condition holds in no lane. A value of the
block that is used after it is then nothing in particular, in a register or in memory: the choices that read
it do not choose it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from robokit.engine.emit.ir import FLOAT64, Real, constant, suffix, vector
from robokit.engine.passes.chunks import Schedule
from robokit.engine.passes.guards import Path
from robokit.engine.trace.ops import (
    CALL,
    CONST,
    FIRST,
    INPUT,
    LOOKUP,
    OPERATIONS,
    PAIR,
    RESULT,
    SECOND,
    TRUTHS,
)
from robokit.engine.trace.program import Program

Fixed = tuple[int, int, float, int]
"""Output, position and value of a constant, and how many times it stands there."""

WIDEST = 8
"""Most equal constants that one store writes."""

MOST_STORES = 256
"""Stores in one function, of outputs that no operation computes."""


LOOK = 20
"""Every so many nodes, values are counted, so that not too many are kept in registers."""

REGISTERS = defaultdict(lambda: 36, {32: 20})
"""By the bytes of a value, how many that is: AVX2 has 16 registers, of 32 bytes, AVX-512 has 32.

The factors of a humanoid's mass matrix are 3 % faster so, the derivatives of its dynamics 1 to 2 % with AVX2.
"""


def _runs(k: int, row: Sequence[int | float]) -> Iterator[Fixed]:
    """The constants of output k: WIDEST or a power of two less of equal ones together."""
    position = 0
    while position < len(row):
        value, stop = row[position], position + 1
        if type(value) is float:
            end, same = min(len(row), position + WIDEST), constant(1, value)
            while stop < end and type(row[stop]) is float and constant(1, row[stop]) == same:
                stop += 1
            stop = position + (1 << (stop - position).bit_length() - 1)
            yield k, position, value, stop - position
        position = stop


def _parts(items: list) -> Iterator[list]:
    for start in range(0, len(items), MOST_STORES):
        yield items[start : start + MOST_STORES]


@dataclass
class Branch:
    """A guarded block that is being written.

    Attributes:
        condition: node that it is guarded by.
        number: of its labels.
        label: of the basic block before it.
        known, pairs: names of the values that were at hand there.
        made: nodes that the block computes.
    """

    condition: int
    number: int
    label: str
    known: dict[int, str]
    pairs: dict[int, str]
    made: list[int]


class ChunkWriter:
    """Writes the chunks of one schedule."""

    element = "getelementptr"
    """The instruction for the address of an element."""

    sincos = "sincos"
    """The function for an angle's sine and cosine."""

    window = ""
    """One more parameter of the function that is being written."""

    plain = frozenset(each.number for each in OPERATIONS if not each.paired) - {
        LOOKUP, CALL, RESULT, PAIR, FIRST, SECOND,
    }  # fmt: skip
    """Opcodes that are one instruction, which takes the values of the operands."""

    def __init__(
        self, program: Program, plan: Schedule, direct: bool, real: Real = FLOAT64, lanes: int = 0
    ) -> None:
        """With `direct`, inputs are read from and outputs written to the caller's arrays of doubles.

        A value has the lanes of the plan, if no others are given.
        """
        self.program, self.plan, self.direct, self.real = program, plan, direct, real
        self.lanes = lanes = lanes or plan.lanes
        self.t = vector(lanes, real.kind)
        self.truth = vector(lanes, "i1")
        self.align = real.bytes * lanes
        self.registers = REGISTERS[self.align]
        words = {
            "t": self.t,
            "truth": self.truth,
            "true": "true" if lanes == 1 else "splat (i1 true)",
            "suffix": suffix(lanes, real),
        }
        self.instruction = [operation.llvm.format(**words) for operation in OPERATIONS]
        self.constants: dict[int, str] = {}
        self.targets: dict[int, list[tuple[int, int]]] = {}
        self.fixed: list[Fixed] = []
        if direct and lanes == plan.lanes:
            for k, row in enumerate(program.results):
                for position, r in enumerate(row):
                    if type(r) is int:
                        self.targets.setdefault(r, []).append((k, position))
                self.fixed += _runs(k, row)

    def functions(self) -> list[str]:
        """The chunks, and last the outputs that no chunk computes (constants, inputs passed on)."""
        texts = [self._chunk(k) for k in range(len(self.plan.chunks))]
        computed = {n for chunk in self.plan.chunks for n in chunk}
        passed = [n for n in self.targets if n not in computed]
        for part in _parts(passed):
            texts.append(self._function(len(texts), (), part, ()))
        for part in _parts(self.fixed):
            texts.append(self._function(len(texts), (), (), part))
        return texts

    def _chunk(self, index: int) -> str:
        """One chunk of the plan."""
        return self._function(index, self.plan.chunks[index], (), ())

    def _function(
        self, index: int, chunk: Sequence[int], passed: Sequence[int], fixed: Sequence[Fixed]
    ) -> str:
        self._line(chunk)
        for k, position, value, count in fixed:
            place = self._place(k, position)
            self.lines.append(f"store {vector(count)} {constant(count, value)}, ptr {place}, align 8")
        for number in passed:
            value_of = self._value(number)
            for k, position in self.targets[number]:
                self._output(k, position, value_of)
        return self._wrapped(index, sorted(self.pointers), self.lines)

    def _wrapped(self, index: int, pointers: Sequence[int], lines: Sequence[str]) -> str:
        """A function of these instructions, which use pointers to the caller's arrays."""
        entry = ["entry:"]
        for k in pointers:
            entry.append(f"%q{k} = getelementptr ptr, ptr %args, i64 {k}")
            entry.append(f"%p{k} = load ptr, ptr %q{k}, align 8")
        body = "\n  ".join([*entry, *lines])
        more = self.window if self.direct else f", ptr %strides, i64 %t, i64 %stop{self.window}"
        return (
            f"define internal void @chunk{index}(ptr noalias %ws, ptr noalias %args{more}) #0 {{\n"
            f"  {body}\n  ret void\n}}\n"
        )

    def _line(self, chunk: Sequence[int]) -> None:
        """Write the nodes of a chunk to ``self.lines``."""
        self.lines: list[str] = []
        self.known: dict[int, str] = {}
        self.pairs: dict[int, str] = {}
        self.pointers: set[int] = set()
        self.fresh = map("%{}".format, itertools.count()).__next__
        self.branches: list[Branch] = []
        self.label, self.labels = "entry", 0
        nodes, plan, known = self.program.nodes, self.plan, self.known
        inside, last = plan.inside, dict[int, int]()
        if inside and any(n in inside for n in chunk):
            for position, number in enumerate(chunk):
                for operand in (*nodes[number][1:], *inside.get(number, ())):
                    last[operand] = position
        else:
            inside = {}
            for position, number in enumerate(chunk):
                for operand in nodes[number][1:]:
                    last[operand] = position
        add, value, instruction, plain = self.lines.append, self._value, self.instruction, self.plain
        fresh, wide = self.fresh, self.program.wide
        here: Path = ()
        for position, number in enumerate(chunk):
            if not position % LOOK and not inside:
                self._forget(position, last)
            if inside:
                path = inside.get(number, ())
                if path is not here and path != here:
                    self._go(path, position, last)
                    here, known = path, self.known
            node = nodes[number]
            if (
                len(node) == 3 and node[0] in plain and number not in wide
            ):  # nearly all: no call more than there must be
                a = known.get(node[1]) or value(node[1])
                b = known.get(node[2]) or value(node[2])
                name = fresh()
                add(f"{name} = {instruction[node[0]] % (a, b)}")
            else:
                self._compute(number)
                if node[0] == CALL:
                    continue
                name = f"%v{number}"
            known[number] = name
            if here:
                self.branches[-1].made.append(number)
            if number in plan.stored:
                self._store(number, name)
            for k, position in self.targets.get(number, ()):
                self._output(k, position, name)
        self._go((), len(chunk), last)

    def _forget(self, position: int, last: Mapping[int, int]) -> None:
        """Read from memory again what is there, if registers are too few for all that is still wanted.

        LLVM would write such values to the stack first.
        """
        slot, nodes, known = self.plan.slot, self.program.nodes, self.known
        if len(known) <= self.registers:
            return
        for n in [n for n in known if last.get(n, -1) < position]:
            del known[n]
        if len(known) > self.registers:
            for n in list(known):
                if n in slot or (self.direct and nodes[n][0] == INPUT):
                    del known[n]

    def _go(self, path: Path, position: int, last: Mapping[int, int]) -> None:
        """Leave and enter guarded blocks until the conditions around are those of the path.

        Args:
            path: conditions, the outermost first.
            position: in the chunk, of the node that comes next.
            last: position in the chunk of the last use of each node.
        """
        shared = 0
        while shared < min(len(path), len(self.branches)) and path[shared] == self.branches[shared].condition:
            shared += 1
        while len(self.branches) > shared:
            self._leave(position, last)
        for condition in path[shared:]:
            mask, lanes = self._value(condition), self._lanes(condition)
            self.labels += 1
            k = self.labels
            if lanes > 1:
                self.lines.append(f"%m{k} = bitcast <{lanes} x i1> {mask} to i{lanes}")
                self.lines.append(f"%n{k} = icmp ne i{lanes} %m{k}, 0")
                mask = f"%n{k}"
            self.lines.append(f"br i1 {mask}, label %block{k}, label %after{k}")
            self.branches.append(Branch(condition, k, self.label, dict(self.known), dict(self.pairs), []))
            self._begin(f"block{k}")

    def _leave(self, position: int, last: Mapping[int, int]) -> None:
        """End the innermost guarded block; its values that are used later get a name after it."""
        branch, before = self.branches.pop(), self.known
        self.known, self.pairs = branch.known, branch.pairs
        self.lines.append(f"br label %after{branch.number}")
        end = self.label
        self._begin(f"after{branch.number}")
        for number in branch.made:
            if last.get(number, -1) >= position:
                kind = self._kind(number)
                self.known[number] = f"%f{number}x{branch.number}"
                ways = f"[{before[number]}, %{end}], [poison, %{branch.label}]"
                self.lines.append(f"{self.known[number]} = phi {kind} {ways}")
                if self.branches:
                    self.branches[-1].made.append(number)

    def _lanes(self, number: int) -> int:
        """Of a node's value."""
        return self.lanes

    def _kind(self, number: int) -> str:
        """Type of a node's value."""
        return self.truth if self._is_truth(number) else self.t

    def _is_truth(self, number: int) -> bool:
        """Whether a node's value is true or false, not a number."""
        return self.program.nodes[number][0] in TRUTHS

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def _address(self, number: int, name: str) -> None:
        """Make the name the address of a node's place in memory."""
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {self.plan.slot[number]}")

    def _constant(self, value: float) -> str:
        return constant(self.lanes, value, self.real)

    def _value(self, number: int) -> str:
        """Text of a node's value; loads it if it is not at hand."""
        node, add, t = self.program.nodes[number], self.lines.append, self.t
        if node[0] == CONST:
            if number not in self.constants:
                self.constants[number] = self._constant(node[1])
            return self.constants[number]
        if number in self.known:
            return self.known[number]
        place = self.fresh()
        if self.direct and node[0] == INPUT:
            self.pointers.add(node[1])
            add(f"{place} = {self.element} double, ptr %p{node[1]}, i64 {node[2]}")
            name = self.fresh()
            add(f"{name} = load double, ptr {place}, align 8")
        else:
            self._address(number, place)
            name = self.fresh()
            add(f"{name} = load {t}, ptr {place}, align {self.align}")
            if self._is_truth(number):
                number_of, name = name, self.fresh()
                add(f"{name} = fcmp une {t} {number_of}, {self._constant(0.0)}")
        self.known[number] = name
        return name

    def _store(self, number: int, value: str) -> None:
        if self._is_truth(number):
            one, zero = self._constant(1.0), self._constant(0.0)
            name = self.fresh()
            self.lines.append(f"{name} = select {self.truth} {value}, {self.t} {one}, {self.t} {zero}")
            value = name
        place = self.fresh()
        self._address(number, place)
        self.lines.append(f"store {self.t} {value}, ptr {place}, align {self.align}")

    def _output(self, k: int, position: int, value: str) -> None:
        place = self._place(k, position)
        self.lines.append(f"store double {value}, ptr {place}, align 8")

    def _place(self, k: int, position: int) -> str:
        """Name of the address of an output's scalar in the caller's array."""
        pointer = self.program.first_output + k
        self.pointers.add(pointer)
        name = self.fresh()
        self.lines.append(f"{name} = {self.element} double, ptr %p{pointer}, i64 {position}")
        return name

    def _compute(self, number: int) -> None:
        opcode, *operands = self.program.nodes[number]
        if opcode == LOOKUP:
            self._lookup(number, self.program.nodes[operands[0]][1], self._value(operands[1]))
            return
        values = [self._value(n) for n in operands]
        if OPERATIONS[opcode].paired:
            values = [self._pair(operands[0], values[0])]
        self.lines.append(f"%v{number} = {self.instruction[opcode] % tuple(values)}")

    def _pair(self, angle: int, value: str) -> str:
        """Sine and cosine of an angle, computed once in a chunk."""
        if angle not in self.pairs:
            name = self.pairs[angle] = f"%w{angle}x{self.labels}"
            self.lines.append(f"{name} = call {{{self.t}, {self.t}}} @{self.sincos}({self.t} {value})")
        return self.pairs[angle]

    def _lookup(self, number: int, table: int, index: str) -> None:
        """An entry of a table for each lane, at an index that is rounded down and clamped."""
        k, lanes, t = len(self.program.inputs) + table, self.lanes, self.t
        self.pointers.add(k)
        zero, last = self._constant(0.0), self._constant(float(self.program.tables[table][1] - 1))
        places, scalar = vector(lanes, "i32"), self.real.kind
        # A comparison with NaN is false: the first entry.
        self.lines += [
            f"%la{number} = fcmp ogt {t} {index}, {zero}",
            f"%lb{number} = select {self.truth} %la{number}, {t} {index}, {t} {zero}",
            f"%lc{number} = fcmp olt {t} %lb{number}, {last}",
            f"%ld{number} = select {self.truth} %lc{number}, {t} %lb{number}, {t} {last}",
            f"%le{number} = fptosi {t} %ld{number} to {places}",
        ]
        for lane in range(lanes):
            own = f"{number}x{lane}"
            place, name = f"%le{number}", f"%v{number}"
            if lanes > 1:
                place, name = f"%lf{own}", f"%lg{own}"
                self.lines.append(f"{place} = extractelement {places} %le{number}, i32 {lane}")
            self.lines.append(f"%lh{own} = getelementptr {scalar}, ptr %p{k}, i32 {place}")
            self.lines.append(f"{name} = load {scalar}, ptr %lh{own}, align {self.real.bytes}")
            if lanes > 1:
                before = "poison" if lane == 0 else f"%li{number}x{lane - 1}"
                whole = f"%v{number}" if lane == lanes - 1 else f"%li{own}"
                self.lines.append(f"{whole} = insertelement {t} {before}, {scalar} {name}, i32 {lane}")
