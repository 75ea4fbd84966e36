"""Writes what passes/called_lines.py planned: chunks that call, and the calls that depend on a condition."""

from __future__ import annotations

from collections.abc import Mapping

from robokit.engine.emit.ir import Real, constant, vector
from robokit.engine.emit.straight_line import ChunkWriter
from robokit.engine.passes.called_lines import CalledLines
from robokit.engine.passes.guards import Path
from robokit.engine.passes.side_by_side import Copy
from robokit.engine.trace.blocks import called, lane, position
from robokit.engine.trace.ops import CALL, CONST, INPUT, RESULT
from robokit.engine.trace.program import Program

WINDOW = ", ptr noalias %window"
"""The parameter of a body whose calls have places of their own (passes/windows.py)."""


def _given(parameters: str) -> str:
    """What a function with these parameters hands on."""
    return ", ".join(f"{each.split()[0]} {each.split()[-1]}" for each in parameters.split(", "))


class CallWriter(ChunkWriter):
    """Writes the chunks of a program with shared texts."""

    plan: CalledLines

    def functions(self) -> list[str]:
        """As of :class:`ChunkWriter`; those of blocks with lanes by writers of vectors."""
        for copy in (*self.plan.copies.values(), *self.plan.written.values()):
            for n in copy.nodes:
                del self.targets[n]
        self.writers: dict[int, LanesWriter] = {}
        return super().functions()

    def _chunk(self, index: int) -> str:
        number = self.plan.block_of.get(index)
        lanes = 1 if number is None else self.program.blocks[number].lanes
        if lanes == 1:
            self.window = WINDOW if number in self.plan.windows.blocks else ""
            return super()._chunk(index)
        if lanes not in self.writers:
            self.writers[lanes] = LanesWriter(self.program, self.plan, self.direct, self.real, lanes)
        return self.writers[lanes]._chunk(index)

    def _compute(self, number: int) -> None:
        node, program = self.program.nodes[number], self.program
        if node[0] == CALL:
            block_number = called(program, number)
            parameters = program.blocks[block_number].parameters
            for place, parameter in enumerate(parameters):
                self._arguments(number, parameter, place, len(parameters))
            if block_number in self.plan.direct:
                more = "" if self.direct else ", ptr %strides, i64 %t, i64 %stop"
                chunk = self.plan.direct[block_number]
                if number in self.plan.windows.first:
                    self._begin_of_window(number, f"%b{number}")
                    more += f", ptr %b{number}"
                self.lines.append(f"call void @chunk{chunk}(ptr %ws, ptr %args{more})")
        elif number in self.plan.copies:
            self._copy(self.plan.copies[number])
        elif node[0] == RESULT:
            block = program.blocks[called(program, node[1])]
            result = int(block.results[position(program, number)])
            self._element(result, lane(program, number), f"%y{number}")
            self.lines.append(f"%v{number} = load {self.t}, ptr %y{number}, align {self.align}")
        else:
            super()._compute(number)

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
            if nodes[operands[start]][0] == CONST:  # all that follow at once
                while stop < len(operands) and nodes[operands[stop]][0] == CONST:
                    stop += 1
                if stop - start > 1:
                    each = [f"{t} {self._value(n)}" for n in operands[start:stop]]
                    value, t = f"<{', '.join(each)}>", vector(stop - start, self.real.kind)
            name = f"%x{call}x{place}x{start}"
            first = self.plan.windows.first.get(call)
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
        result, t = int(block.results[position(self.program, first)]), vector(len(copy.nodes), self.real.kind)
        pointer = self.program.first_output + copy.output
        self.pointers.add(pointer)
        self._element(result, lane(self.program, first), f"%y{first}")
        self.lines += [
            f"%v{first} = load {t}, ptr %y{first}, align {self.align}",
            f"%o{first} = {self.element} double, ptr %p{pointer}, i64 {copy.position}",
            f"store {t} %v{first}, ptr %o{first}, align 8",
        ]

    def _element(self, number: int, lane: int, name: str) -> None:
        """Make the name the address of a body's value in one of the lanes of its block."""
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {self.plan.slot[number] + lane}")

    def _address(self, number: int, name: str) -> None:
        place = self.plan.windows.within.get(number)
        if place is None:
            super()._address(number, name)
        else:
            self.lines.append(f"{name} = getelementptr {self.t}, ptr %window, i64 {place}")

    def _begin_of_window(self, call: int, name: str) -> None:
        """Make the name the address of a call's window."""
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {self.plan.windows.first[call]}")

    def in_window(self, name: str, call: int, stage: str, parameters: str) -> str:
        """A function that runs a stage of a body in the window of a call."""
        self.lines = []
        self._begin_of_window(call, "%window")
        call_of = f"call void @{stage}({_given(parameters)}, ptr %window)"
        body = "\n  ".join(["entry:", *self.lines, call_of, "ret void"])
        return f"define internal void @{name}({parameters}) #0 {{\n  {body}\n}}\n"

    def when(self, name: str, conditions: Path, stages: list[str], parameters: str) -> str:
        """A function that runs stages where each of the conditions holds in some lane."""
        self.lines = []
        for k, condition in enumerate(conditions):  # an inner one is computed where the outer one holds
            lanes = self._lanes(condition)
            t = vector(lanes, self.real.kind)
            self._address(condition, f"%a{k}")
            self.lines.append(f"%t{k} = load {t}, ptr %a{k}, align {self.real.bytes * lanes}")
            self.lines.append(f"%v{k} = fcmp une {t} %t{k}, {constant(lanes, 0.0, self.real)}")
            mask = f"%v{k}"
            if lanes > 1:
                self.lines.append(f"%m{k} = bitcast <{lanes} x i1> {mask} to i{lanes}")
                self.lines.append(f"%n{k} = icmp ne i{lanes} %m{k}, 0")
                mask = f"%n{k}"
            self.lines.append(f"br i1 {mask}, label %yes{k}, label %no")
            self.lines.append(f"yes{k}:")
        self.lines += [f"call void @{stage}({_given(parameters)})" for stage in stages]
        body = "\n  ".join(["entry:", *self.lines, "br label %no", "no:", "ret void"])
        return f"define internal void @{name}({parameters}) #0 {{\n  {body}\n}}\n"


class LanesWriter(ChunkWriter):
    """Writes the chunks of bodies whose values are vectors, a column in each lane, in code of one state."""

    plan: CalledLines

    def __init__(self, program: Program, plan: CalledLines, direct: bool, real: Real, lanes: int) -> None:
        """As :class:`ChunkWriter`, for blocks with so many lanes."""
        super().__init__(program, plan, direct, real, lanes)
        self.body, self.sincos = program.bodies(), f"sincos_{lanes}"
        self.targets = {n: [(copy.output, copy.position)] for n, copy in plan.written.items()}
        self.used = {(copy.output, copy.position): len(copy.nodes) for copy in plan.written.values()}

    def _forget(self, position: int, last: Mapping[int, int]) -> None:
        """Nothing: most operands are in memory, and the same in every lane."""

    def _output(self, k: int, position: int, value: str) -> None:
        used, pointer = self.used[k, position], self.program.first_output + k
        self.pointers.add(pointer)
        name = f"o{k}x{position}"
        if used < self.lanes:
            mask = ", ".join(f"i32 {lane}" for lane in range(used))
            line = f"shufflevector {self.t} {value}, {self.t} poison, <{used} x i32> <{mask}>"
            self.lines.append(f"%u{name} = {line}")
            value = f"%u{name}"
        self.lines.append(f"%{name} = getelementptr {self.real.kind}, ptr %p{pointer}, i64 {position}")
        self.lines.append(f"store {vector(used, self.real.kind)} {value}, ptr %{name}, align 8")

    def _address(self, number: int, name: str) -> None:
        self.lines.append(f"{name} = getelementptr {self.real.kind}, ptr %ws, i64 {self.plan.slot[number]}")

    def _value(self, number: int) -> str:
        """Text of a value; one of the program around the body is the same in every lane."""
        node, add, kind = self.program.nodes[number], self.lines.append, self.real.kind
        if node[0] == CONST or number in self.known or number in self.body:
            return super()._value(number)
        if node[0] == INPUT and self.direct:
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
