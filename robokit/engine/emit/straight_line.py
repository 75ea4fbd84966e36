"""Writes straight lines of operations as LLVM IR: the chunks of a program, with calls, columns and pairs of
lanes.

Each chunk is `void @chunkN(ptr ws, ptr args)`. A value is loaded at its first use in a chunk and stored
where it is computed. Which instruction an operation is stands in trace/ops.py.

Around nodes inside a guard there is a branch, taken where the condition holds in no lane. A value of the
block that is used after it is then nothing in particular, in a register or in memory: the choices that read
it do not choose it.

    ChunkWriter    operations, guards, calls of shared functions
    LanesWriter    bodies whose values have a column in each lane
    PairWriter     programs some of whose values have two lanes (passes/superword.py)
    StepWriter     programs whose iterations share code (passes/similarity.py)
    MachineWriter  machine code in place of LLVM's language
    chunk_code     plans a program and writes its chunks by one of these
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT64, Real, constant, instructions, multiply_add, vector
from robokit.engine.emit.ir import number as literal
from robokit.engine.emit.machine_code import Fixed, MachineCode
from robokit.engine.passes.order import Path, contractions, last_reads
from robokit.engine.passes.schedule import Copy, Plan, call_plan
from robokit.engine.passes.similarity import LoopBody, Rerolled
from robokit.engine.trace import ops
from robokit.engine.trace.graph import LANES, Program
from robokit.engine.trace.record import called
from robokit.engine.trace.record import lane as lane_of
from robokit.engine.trace.record import position as result_of

WIDEST = 8  # most equal constants that one store writes
MOST_STORES = 256  # stores in one function, of outputs that no operation computes


REST_OF_STAGE = ", ptr %strides, i64 %t, i64 %stop"  # more parameters of batches (batch_module.py)
FRAME = ", ptr noalias %frame"  # of a body whose calls have places of their own (passes/schedule.py)
LOOK = 20  # every so many nodes, values are counted, so that not too many are kept in registers

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


def _arguments_of(parameters: str) -> str:
    """What a function with these parameters hands on."""
    return parameters.replace(" noalias", "")


@dataclass
class Branch:
    """A guarded block that is being written."""

    condition: int  # node that it is guarded by
    number: int  # of its labels
    label: str  # of the basic block before it
    # known, pairs: names of the values that were at hand there
    known: dict[int, str]
    pairs: dict[int, str]
    made: list[int]  # nodes that the block computes


class ChunkWriter:
    """Writes the chunks of a plan, and what calls those of bodies."""

    sincos = "sincos"
    """The function for an angle's sine and cosine."""

    frame = ""
    """One more parameter of the function that is being written."""

    plain = frozenset(each.number for each in ops.OPERATIONS if not each.paired) - {
        ops.CALL, ops.RESULT, ops.PAIR, ops.FIRST, ops.SECOND,
    }  # fmt: skip
    """Opcodes that are one instruction, which takes the values of the operands."""

    def __init__(
        self, program: Program, plan: Plan, direct: bool, real: Real = FLOAT64, lanes: int = 0,
        fused: bool = False,
    ) -> None:  # fmt: skip
        """With `direct`, inputs are read from and outputs written to the caller's arrays of doubles.

        A value has the lanes of the plan, if no others are given. With `fused`, products are fused with sums.
        """
        self.program, self.plan, self.direct, self.real, self.fused = program, plan, direct, real, fused
        self.lanes = lanes = lanes or plan.lanes
        self.t = vector(lanes, real.kind)
        self.truth = vector(lanes, "i1")
        self.align = real.bytes * lanes
        self.registers = REGISTERS[self.align]
        self.instruction = instructions(lanes, real)
        self.multiply_add = {n: multiply_add(n, real) for n in (lanes, LANES)}
        self.constants: dict[int, str] = {}
        self.targets: dict[int, list[tuple[int, int]]] = {}
        self.fixed: list[Fixed] = []
        self.writers: dict[int, LanesWriter] = {}
        """Of bodies with lanes, by how many."""
        if direct and lanes == plan.lanes:
            for k, row in enumerate(program.results):
                for position, r in enumerate(row):
                    if type(r) is int:
                        self.targets.setdefault(r, []).append((k, position))
                self.fixed += _runs(k, row)
            for copy in plan.copies.values():
                for n in copy.nodes:
                    del self.targets[n]

    def functions(self) -> list[str]:
        """The chunks, and last the outputs that no chunk computes (constants, inputs passed on)."""
        texts = [self._chunk(k) for k in range(len(self.plan.chunks))]
        for passed, fixed in self._rest():
            texts.append(self._function(len(texts), (), passed, fixed))
        return texts

    def _rest(self) -> Iterator[tuple[list[int], list[Fixed]]]:
        """Inputs passed on, and constants, of functions for the outputs that no chunk computes."""
        computed = {n for chunk in self.plan.chunks for n in chunk}
        for part in _parts([n for n in self.targets if n not in computed]):
            yield part, []
        for part in _parts(self.fixed):
            yield [], part

    def _chunk(self, index: int) -> str:
        """One chunk of the plan; those of bodies with lanes by writers of vectors."""
        number = self.plan.block_of.get(index)
        lanes, writer = 1 if number is None else self.program.blocks[number].lanes, self
        if lanes == 1:
            self.frame = FRAME if number in self.plan.frames.blocks else ""
        elif lanes in self.writers:
            writer = self.writers[lanes]
        else:
            arguments = self.program, self.plan, self.direct, self.real, lanes, self.fused
            writer = self.writers[lanes] = LanesWriter(*arguments)
        return writer._function(index, self.plan.chunks[index], (), ())

    def _function(
        self, index: int, chunk: Sequence[int], passed: Sequence[int], fixed: Sequence[Fixed]
    ) -> str:
        self._line(chunk)
        for each in fixed:
            self._fixed_output(*each)
        for number in passed:
            value_of = self._value(number)
            for k, position in self.targets[number]:
                self._output(k, position, value_of)
        return self._wrapped(index, sorted(self.pointers), self.lines)

    def _wrapped(self, index: int, pointers: Sequence[int], lines: Sequence[str]) -> str:
        """A function of these instructions, which use pointers to the caller's arrays."""
        body = "\n  ".join([*self._entry(pointers), *lines])
        parameters = self.parameters + self.frame
        return f"define internal void @chunk{index}({parameters}) #0 {{\n  {body}\n  ret void\n}}\n"

    @property
    def parameters(self) -> str:
        """Parameters of each function."""
        return "ptr noalias %ws, ptr noalias %args" + ("" if self.direct else REST_OF_STAGE)

    def _entry(self, pointers: Sequence[int] = ()) -> list[str]:
        """How a function begins that uses pointers to these of the caller's arrays."""
        entry = ["entry:"]
        for k in pointers:
            entry.append(f"%q{k} = getelementptr ptr, ptr %args, i64 {k}")
            entry.append(f"%p{k} = load ptr, ptr %q{k}, align 8")
        return entry

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
        inside = plan.inside if plan.inside and any(n in plan.inside for n in chunk) else {}
        sums = self._contractions(chunk)
        products, last = set(sums.values()), last_reads(self.program, chunk, sums, inside)
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
            if number in products:
                continue
            node = nodes[number]
            if number in sums:
                name = self._contracted(number, sums[number])
            elif (
                len(node) == 3 and node[0] in plain and number not in wide
            ):  # nearly all: no call more than there must be
                a = known.get(node[1]) or value(node[1])
                b = known.get(node[2]) or value(node[2])
                name = fresh()
                add(f"{name} = {instruction[node[0]] % (a, b)}")
            else:
                self._compute(number)
                if node[0] == ops.CALL:
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

    def _contractions(self, chunk: Sequence[int]) -> dict[int, int]:
        """Sums of a chunk, each with the product that it is fused with."""
        if not self.fused:
            return {}
        kept = {n for n in chunk if n in self.plan.stored or n in self.targets}
        return contractions(self.program, chunk, kept, self.plan.inside)

    def _contracted(self, number: int, product: int) -> str:
        """Name of a sum or difference that is written with one of its terms, a product."""
        nodes, known, value, add = self.program.nodes, self.known, self._value, self.lines.append
        op, first, second = nodes[number]
        terms = *nodes[product][1:], second if first == product else first
        if number in self.program.wide:
            a, b, c = (self._operand(number, n) for n in terms)
        else:
            a, b, c = (known.get(n) or value(n) for n in terms)
        if op == ops.SUB:
            minus = self.fresh()
            add(f"{minus} = fneg {self._kind(number)} {c if first == product else a}")
            a, c = (a, minus) if first == product else (minus, c)
        name = self.fresh()
        add(f"{name} = {self.multiply_add[self._lanes(number)] % (a, b, c)}")
        return name

    def _operand(self, number: int, operand: int) -> str:
        """Text of an operand of a node."""
        return self._value(operand)

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
                if n in slot or (self.direct and nodes[n][0] == ops.INPUT):
                    del known[n]

    def _go(self, path: Path, position: int, last: Mapping[int, int]) -> None:
        """Leave and enter guarded blocks until the conditions around are those of the path.

        ``path``: conditions, the outermost first; ``position``: in the chunk, of the node that comes next;
        ``last``: position in the chunk of the last use of each node.
        """
        shared = 0
        while shared < min(len(path), len(self.branches)) and path[shared] == self.branches[shared].condition:
            shared += 1
        while len(self.branches) > shared:
            self._leave(position, last)
        for condition in path[shared:]:
            mask = self._in_some_lane(condition)
            self.labels += 1
            k = self.labels
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

    def _in_some_lane(self, condition: int) -> str:
        """Whether a condition holds in some lane."""
        mask, lanes = self._value(condition), self._lanes(condition)
        if lanes == 1:
            return mask
        bits, found = self.fresh(), self.fresh()
        self.lines.append(f"{bits} = bitcast <{lanes} x i1> {mask} to i{lanes}")
        self.lines.append(f"{found} = icmp ne i{lanes} {bits}, 0")
        return found

    def _lanes(self, number: int) -> int:
        """Of a node's value."""
        return LANES if number in self.program.wide else self.lanes

    def _kind(self, number: int) -> str:
        """Type of a node's value."""
        return vector(self._lanes(number), "i1" if self._is_truth(number) else self.real.kind)

    def _is_truth(self, number: int) -> bool:
        """Whether a node's value is true or false, not a number."""
        return self.program.nodes[number][0] in ops.TRUTHS

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def _address(self, number: int, name: str) -> None:
        """Make the name the address of a node's place in memory."""
        place, base = self.plan.frames.within.get(number), "%frame"
        if place is None:
            place, base = self.plan.slot[number], "%ws"
        self.lines.append(f"{name} = getelementptr {self.t}, ptr {base}, i64 {place}")

    def _constant(self, value: float | tuple[float, ...]) -> str:
        """A number in every lane, or one for each."""
        if isinstance(value, tuple):
            return f"<{', '.join(f'{self.real.kind} {literal(x, self.real)}' for x in value)}>"
        return constant(self.lanes, value, self.real)

    def _value(self, number: int) -> str:
        """Text of a node's value; loads it if it is not at hand."""
        node, add = self.program.nodes[number], self.lines.append
        if node[0] == ops.CONST:
            if number not in self.constants:
                self.constants[number] = self._constant(node[1])
            return self.constants[number]
        if number in self.known:
            return self.known[number]
        place = self.fresh()
        if self.direct and node[0] == ops.INPUT:
            self.pointers.add(node[1])
            add(f"{place} = getelementptr double, ptr %p{node[1]}, i64 {node[2]}")
            name = self.fresh()
            add(f"{name} = load double, ptr {place}, align 8")
        else:
            self._address(number, place)
            lanes, name = self._lanes(number), self.fresh()
            t = vector(lanes, self.real.kind)
            self.lines.append(f"{name} = load {t}, ptr {place}, align {self.real.bytes * lanes}")
            if self._is_truth(number):
                real, name = name, self.fresh()  # truths are numbers in memory
                self.lines.append(f"{name} = fcmp une {t} {real}, {constant(lanes, 0.0, self.real)}")
        self.known[number] = name
        return name

    def _store(self, number: int, value: str) -> None:
        lanes = self._lanes(number)
        t = vector(lanes, self.real.kind)
        if self._is_truth(number):
            one, zero, name = constant(lanes, 1.0, self.real), constant(lanes, 0.0, self.real), self.fresh()
            self.lines.append(f"{name} = select {self._kind(number)} {value}, {t} {one}, {t} {zero}")
            value = name
        place = self.fresh()
        self._address(number, place)
        self.lines.append(f"store {t} {value}, ptr {place}, align {self.real.bytes * lanes}")

    def _output(self, k: int, position: int, value: str) -> None:
        place = self._place(k, position)
        self.lines.append(f"store double {value}, ptr {place}, align 8")

    def _fixed_output(self, k: int, position: int, value: float, count: int) -> None:
        place = self._place(k, position)
        self.lines.append(f"store {vector(count)} {constant(count, value)}, ptr {place}, align 8")

    def _place(self, k: int, position: int) -> str:
        """Name of the address of an output's scalar in the caller's array."""
        pointer = self.program.first_output + k
        self.pointers.add(pointer)
        name = self.fresh()
        self.lines.append(f"{name} = getelementptr double, ptr %p{pointer}, i64 {position}")
        return name

    def _compute(self, number: int) -> None:
        opcode, *operands = self.program.nodes[number]
        if opcode == ops.CALL:
            self._call(number)
        elif number in self.plan.copies:
            self._copy(self.plan.copies[number])
        elif opcode == ops.RESULT:
            block = self.program.blocks[called(self.program, self.program.nodes[number][1])]
            result = int(block.results[result_of(self.program, number)])
            self._element(result, lane_of(self.program, number), f"%y{number}")
            t, align = vector(self._lanes(number), self.real.kind), self.real.bytes * self._lanes(number)
            self.lines.append(f"%v{number} = load {t}, ptr %y{number}, align {align}")
        else:
            values = [self._value(n) for n in operands]
            if ops.OPERATIONS[opcode].paired:
                values = [self._pair(operands[0], values[0])]
            self.lines.append(f"%v{number} = {self.instruction[opcode] % tuple(values)}")

    def _pair(self, angle: int, value: str) -> str:
        """Sine and cosine of an angle, computed once in a chunk."""
        if angle not in self.pairs:
            name = self.pairs[angle] = f"%w{angle}x{self.labels}"
            self.lines.append(f"{name} = call {{{self.t}, {self.t}}} @{self.sincos}({self.t} {value})")
        return self.pairs[angle]

    # -- calls ---------------------------------------------------------------------------------------

    def _call(self, number: int) -> None:
        """The arguments of a call; and the call, where the body is one chunk."""
        block = called(self.program, number)
        parameters = self.program.blocks[block].parameters
        for place, parameter in enumerate(parameters):
            self._arguments(number, parameter, place, len(parameters))
        if block in self.plan.direct:
            arguments, chunk = _arguments_of(self.parameters), self.plan.direct[block]
            if number in self.plan.frames.first:
                self._begin_of_frame(number, f"%b{number}")
                arguments += f", ptr %b{number}"
            self.lines.append(f"call void @chunk{chunk}({arguments})")

    def _arguments(self, call: int, parameter: int, place: int, count: int) -> None:
        """Write what a parameter is in each lane, where it is not there yet."""
        operands, nodes = self.program.nodes[call][2 + place :: count], self.program.nodes
        start = 0
        while start < len(operands):
            stop, t = start + 1, self.t
            if (call, place + start * count) in self.plan.placed:
                start = stop
                continue
            value = self._value(operands[start])
            if nodes[operands[start]][0] == ops.CONST:  # all that follow at once
                while stop < len(operands) and nodes[operands[stop]][0] == ops.CONST:
                    stop += 1
                if stop - start > 1:
                    each = [f"{t} {self._value(n)}" for n in operands[start:stop]]
                    value, t = f"<{', '.join(each)}>", vector(stop - start, self.real.kind)
            name = f"%x{call}x{place}x{start}"
            first = self.plan.frames.first.get(call)
            if first is None:
                self._element(parameter, start, name)
            else:
                self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {first + place}")
            self.lines.append(f"store {t} {value}, ptr {name}, align {self.align}")
            start = stop

    def _copy(self, copy: Copy) -> None:
        """Write several lanes of a vector to an output."""
        first = copy.nodes[0]
        block = self.program.blocks[called(self.program, self.program.nodes[first][1])]
        result = int(block.results[result_of(self.program, first)])
        t = vector(len(copy.nodes), self.real.kind)
        pointer = self.program.first_output + copy.output
        self.pointers.add(pointer)
        self._element(result, lane_of(self.program, first), f"%y{first}")
        self.lines += [
            f"%v{first} = load {t}, ptr %y{first}, align {self.align}",
            f"%o{first} = getelementptr double, ptr %p{pointer}, i64 {copy.position}",
            f"store {t} %v{first}, ptr %o{first}, align 8",
        ]

    def _element(self, number: int, lane: int, name: str) -> None:
        """Make the name the address of a body's value in one of the lanes of its block."""
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {self.plan.slot[number] + lane}")

    def _begin_of_frame(self, call: int, name: str) -> None:
        """Make the name the address of a call's frame."""
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {self.plan.frames.first[call]}")

    def in_frame(self, name: str, call: int, stage: str, parameters: str) -> str:
        """A function that runs a stage of a body in the frame of a call."""
        self.lines = []
        self._begin_of_frame(call, "%frame")
        call_of = f"call void @{stage}({_arguments_of(parameters)}, ptr %frame)"
        body = "\n  ".join(["entry:", *self.lines, call_of, "ret void"])
        return f"define internal void @{name}({parameters}) #0 {{\n  {body}\n}}\n"

    def when(self, name: str, conditions: Path, stages: list[str], parameters: str) -> str:
        """A function that runs stages where each of the conditions holds in some lane."""
        self._line(())
        for k, condition in enumerate(conditions):  # an inner one is computed where the outer one holds
            mask = self._in_some_lane(condition)
            self.lines.append(f"br i1 {mask}, label %yes{k}, label %no")
            self.lines.append(f"yes{k}:")
        self.lines += [f"call void @{stage}({_arguments_of(parameters)})" for stage in stages]
        body = "\n  ".join([*self._entry(), *self.lines, "br label %no", "no:", "ret void"])
        return f"define internal void @{name}({parameters}) #0 {{\n  {body}\n}}\n"


# -- Columns in lanes ------------------------------------------------------------------------------------


class LanesWriter(ChunkWriter):
    """Writes the chunks of bodies whose values are vectors, a column in each lane, in code of one state."""

    def __init__(
        self, program: Program, plan: Plan, direct: bool, real: Real, lanes: int, fused: bool
    ) -> None:
        """As :class:`ChunkWriter`, for blocks with so many lanes."""
        super().__init__(program, plan, direct, real, lanes, fused)
        self.body, self.sincos = program.bodies(), f"sincos_{lanes}"

    def _forget(self, position: int, last: Mapping[int, int]) -> None:
        """Nothing: most operands are in memory, and the same in every lane."""

    def _address(self, number: int, name: str) -> None:
        self.lines.append(f"{name} = getelementptr {self.real.kind}, ptr %ws, i64 {self.plan.slot[number]}")

    def _value(self, number: int) -> str:
        """Text of a value; one of the program around the body is the same in every lane."""
        node, add, kind = self.program.nodes[number], self.lines.append, self.real.kind
        if node[0] == ops.CONST or number in self.known or number in self.body:
            return super()._value(number)
        if node[0] == ops.INPUT and self.direct:
            self.pointers.add(node[1])
            add(f"%a{number} = getelementptr double, ptr %p{node[1]}, i64 {node[2]}")
        else:
            self._address(number, f"%a{number}")
        one = f"<1 x {kind}>"  # LLVM has less to do with it than with a number that is put into a vector
        add(f"%s{number} = load {one}, ptr %a{number}, align {self.real.bytes}")
        places = f"<{self.lanes} x i32> zeroinitializer"
        add(f"%v{number} = shufflevector {one} %s{number}, {one} poison, {places}")
        self.known[number] = f"%v{number}"
        return f"%v{number}"


# -- Pairs -----------------------------------------------------------------------------------------------
#
# Writes programs some of whose values have two lanes, in code of one state (passes/superword.py).


class PairWriter(ChunkWriter):
    """Writes the chunks of a program with wide values."""

    def __init__(
        self, program: Program, plan: Plan, direct: bool, real: Real = FLOAT64, fused: bool = False
    ) -> None:
        super().__init__(program, plan, direct, real, fused=fused)
        self.wide = program.wide
        self.two = vector(LANES, real.kind)
        self.of_two = instructions(LANES, real)
        self.moved_truths: set[int] = set()
        for n in program.order if self.wide else ():
            node = program.nodes[n]
            if node[0] in (ops.PAIR, ops.FIRST, ops.SECOND) and self._is_truth(node[1]):
                self.moved_truths.add(n)

    def _is_truth(self, number: int) -> bool:
        return super()._is_truth(number) or number in self.moved_truths

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
        if node[0] == ops.CONST:
            return constant(LANES, node[1], self.real)
        if n not in self.same:
            value = self._value(n)
            if self._is_truth(n):
                name = self.fresh()
                add(f"{name} = select i1 {value}, {kind} {literal(1.0)}, {kind} {literal(0.0)}")
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

    def _operand(self, n: int, operand: int) -> str:
        return self._in_both(operand) if n in self.wide else self._value(operand)

    def _compute(self, n: int) -> None:
        node, add = self.program.nodes[n], self.lines.append
        op, wide = node[0], self.wide
        if n in wide and op in self.plain:  # nearly all
            known, value, both = self.known, self._value, self._in_both
            arguments = [known.get(x) or value(x) if x in wide else both(x) for x in node[1:]]
            add(f"%v{n} = {self.of_two[op] % tuple(arguments)}")
        elif op in (ops.FIRST, ops.SECOND):
            kind = self._kind(node[1])
            add(f"%v{n} = extractelement {kind} {self._value(node[1])}, i32 {int(op == ops.SECOND)}")
        elif n not in wide:
            super()._compute(n)
        elif op == ops.PAIR:
            a, b, one = self._value(node[1]), self._value(node[2]), self.fresh()
            kind, each = self._kind(n), self._kind(n).split()[2].rstrip(">")
            add(f"{one} = insertelement {kind} poison, {each} {a}, i32 0")
            add(f"%v{n} = insertelement {kind} {one}, {each} {b}, i32 1")
        else:  # a sine or a cosine
            angle = node[1]
            if angle not in self.pairs:
                argument = f"{self.two} {self._in_both(angle)}"
                self.pairs[angle] = f"%w{angle}x{self.labels}"
                add(f"{self.pairs[angle]} = call {{{self.two}, {self.two}}} @sincos_{LANES}({argument})")
            add(f"%v{n} = {self.of_two[op] % self.pairs[angle]}")


class MachineWriter(PairWriter):
    """Writes the chunks as machine code (machine_code.py), and what calls them as ever."""

    def functions(self) -> list[str]:
        """The chunks as machine code, with the rest as in :class:`ChunkWriter`."""
        machine = MachineCode(self.program, self.plan, self.direct, self.real, self.fused, self.targets)
        for k in range(len(self.plan.chunks)):
            machine.chunk(k)
        for passed, fixed in self._rest():
            machine.outputs(passed, fixed)
        return machine.functions()


# -- Iterations that do the same -------------------------------------------------------------------------
#
# A function for each kind of piece that passes/similarity.py found, the table, and its driver.


class StepWriter(ChunkWriter):
    """Writes the chunks of a program whose iterations share code, the shared functions and their table.

    step<kind>(ptr ws, ptr row, ptr values)    row: i32 slots of the bundles
    steps(ptr ws, i64 first, i64 last)         runs steps first..last-1
    """

    plan: Rerolled
    loop_body: LoopBody | None = None
    """The shared function that is being written, if one is."""

    def steps(self) -> list[str]:
        """The functions of all bodies, the tables, and @steps."""
        texts = [self._step(k, kind) for k, kind in enumerate(self.plan.bodies)]
        places: list[int] = []
        values: list[float] = []
        table: list[int] = []
        for kind, row, constants in self.plan.steps:
            table += kind, len(places), len(values)
            places += row
            values += constants
        names = ", ".join(f"ptr @step{k}" for k in range(len(self.plan.bodies)))
        texts.append(f"@kinds = internal constant [{len(self.plan.bodies)} x ptr] [{names}]\n")
        texts += [ir.table("steptable", table), ir.table("places", places)]
        texts.append(ir.table("values", values or [0.0], self.real.dtype))
        texts.append(_STEPS.format(real=self.real.kind))
        return texts

    def _step(self, index: int, kind: LoopBody) -> str:
        self.loop_body = kind
        self._line(kind.nodes)
        self.loop_body = None
        entry = ["entry:"]
        for c in range(kind.bundles):
            entry.append(f"%ra{c} = getelementptr i32, ptr %row, i64 {c}")
            entry.append(f"%rs{c} = load i32, ptr %ra{c}, align 4")
            entry.append(f"%ri{c} = zext i32 %rs{c} to i64")
            entry.append(f"%r{c} = getelementptr {self.t}, ptr %ws, i64 %ri{c}")
        body = "\n  ".join(entry + self.lines)
        parameters = "ptr noalias %ws, ptr noalias %row, ptr noalias %values"
        # Spilled vectors must not lie across two lines; of stages, rows.PAD takes care.
        head = f"define internal void @step{index}({parameters}) #0 alignstack(64)"
        return f"{head} {{\n  {body}\n  ret void\n}}\n"

    def _address(self, number: int, name: str) -> None:
        if self.loop_body is None:
            super()._address(number, name)
            return
        column, position = self.loop_body.place[number]
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %r{column}, i64 {position}")

    def _value(self, number: int) -> str:
        place = self.loop_body.values.get(number) if self.loop_body else None
        if place is None or number in self.known:
            return super()._value(number) if place is None else self.known[number]
        self.known[number] = f"%v{number}"
        add, real, lanes = self.lines.append, self.real, self.plan.lanes
        scalar = f"%v{number}" if lanes == 1 else f"%s{number}"
        add(f"%a{number} = getelementptr {real.kind}, ptr %values, i64 {place}")
        add(f"{scalar} = load {real.kind}, ptr %a{number}, align {real.bytes}")
        if lanes > 1:
            add(f"%i{number} = insertelement {self.t} poison, {real.kind} {scalar}, i64 0")
            zeros = vector(lanes, "i32")
            add(f"%v{number} = shufflevector {self.t} %i{number}, {self.t} poison, {zeros} zeroinitializer")
        return f"%v{number}"


_STEPS = """
define internal void @steps(ptr %ws, i64 %first, i64 %last) #0 {{
entry:
  br label %step
step:
  %k = phi i64 [%first, %entry], [%next, %step]
  %place = mul i64 %k, 12
  %line = getelementptr i8, ptr @steptable, i64 %place
  %kind = load i32, ptr %line, align 4
  %rowat = getelementptr i8, ptr %line, i64 4
  %row32 = load i32, ptr %rowat, align 4
  %valueat = getelementptr i8, ptr %line, i64 8
  %value32 = load i32, ptr %valueat, align 4
  %kind64 = zext i32 %kind to i64
  %row64 = zext i32 %row32 to i64
  %value64 = zext i32 %value32 to i64
  %functionat = getelementptr ptr, ptr @kinds, i64 %kind64
  %function = load ptr, ptr %functionat, align 8
  %row = getelementptr i32, ptr @places, i64 %row64
  %values = getelementptr {real}, ptr @values, i64 %value64
  call void %function(ptr %ws, ptr %row, ptr %values)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %step, label %done
done:
  ret void
}}
"""


# -- The chunks of a program -----------------------------------------------------------------------------


def chunk_code(
    program: Program,
    lanes: int,
    bundled: bool,
    size: int,
    shortest_run: int,
    parameters: str,
    real: Real = FLOAT64,
    fused: bool = False,
    machine_code: bool = False,
    shared: Rerolled | None = None,
) -> tuple[Plan, list[str], list[str]]:
    """Plan a program and write its chunks.

    Args:
        program, lanes, bundled, size, shortest_run: as in :func:`call_plan`.
        parameters: of each chunk's function.
        real: its numbers.
        fused: whether products are fused with sums.
        machine_code: whether they are written as such, and not for LLVM.
        shared: the plan for any number of lanes, if iterations share code.

    Returns:
        the plan, the functions, and the names of those that run one after the other.
    """
    if shared is not None:
        steps = StepWriter(program, replace(shared, lanes=lanes), False, real, fused=fused)
        return steps.plan, *in_turn(steps, parameters, steps.steps())
    plan = call_plan(program, lanes, bundled, size, shortest_run)
    kind = MachineWriter if machine_code else PairWriter if program.wide else ChunkWriter
    return plan, *in_turn(kind(program, plan, not bundled, real, fused=fused), parameters)


def in_turn(writer: ChunkWriter, parameters: str, steps: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The functions of a program, and the names of those that run one after the other.

    ``writer``: of its chunks; ``parameters``: of each chunk's function; ``steps``: the functions of
    iterations that share code.
    """
    plan, texts = writer.plan, writer.functions()
    rest = range(len(plan.chunks), len(texts))  # constants, and what is passed on
    texts += steps
    stages: list[str] = []
    for item in (*plan.sequence, *rest):
        if isinstance(item, int):
            stages.append(f"chunk{item}")
            continue
        if isinstance(item, range):
            stages.append(f"run{item.start}")
            call = f"call void @steps(ptr %ws, i64 {item.start}, i64 {item.stop})"
            texts.append(
                f"define internal void @{stages[-1]}({parameters}) #0 {{\n  {call}\n  ret void\n}}\n"
            )
            continue
        names = [f"chunk{k}" for k in item.chunks]
        if item.call in plan.frames.first:
            texts += [writer.in_frame(f"at{item.call}{name}", item.call, name, parameters) for name in names]
            names = [f"at{item.call}{name}" for name in names]
        if item.conditions:
            texts.append(writer.when(f"when{len(texts)}", item.conditions, names, parameters))
            names = [f"when{len(texts) - 1}"]
        stages += names
    return texts, stages
