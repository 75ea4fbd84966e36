"""Writes the module of a kernel for WebAssembly: one state, all arrays at fixed places of one memory.

    step()      reads the inputs and writes the outputs (passes/regions.py gives the places)

Nothing is checked. The text has a line for each instruction, in WebAssembly's own order: operands go to a
stack, from which an operation takes them.

    func NAME, PARAMETER ... : RESULTS      a function begins
    get X, set X, tee X                     a variable, one for each value: "5", a truth "5t", bits "5l", and
                                            "5z", which is 0 until it is set
    number HEX                              a number, by its bits
    at P, put P, take P                     place P is written, begin and end; it is read
    keep P                                  place P is written with what is on the stack already
    call NAME, if, end, f64.add ...

A value that is read once is computed where it is read, and needs no variable. So is one that is read several
times, all in one stretch that no branch leaves or enters: the first reader leaves it in a variable. Which
variables share one of the machine's, and which places are in memory, target/wasm_code.py decides.

A guarded choice between a value of its block and 0 is a variable that is 0 where the block is skipped.

A short text that is taken several times has its arguments and results on the stack, a long one in places.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence

from robokit.engine.emit.wasm_sines import SINES
from robokit.engine.passes.regions import Regions
from robokit.engine.passes.stretches import APART, Stretches
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import (
    CALL,
    CONST,
    COS,
    GUARD,
    INPUT,
    LOOKUP,
    OPERATIONS,
    RESULT,
    SELECT,
    SIN,
    TRUTHS,
)
from robokit.engine.trace.program import Program

CHUNK = 3000
"""Nodes per chunk: of longer ones browsers make slower code, and shorter ones are more bytes."""

OFTEN = 3
"""Times that a place is read in one stretch from which on a variable holds what was read."""


def wasm_module(program: Program, plan: Regions) -> str:
    """Text of the module."""
    texts = list(SINES)
    for line in range(len(plan.lines)):
        texts += LineWriter(program, plan, line).functions()
    return "\n".join(texts) + "\n"


class LineWriter:
    """Writes one line of a plan: the program's own, or a body."""

    def __init__(self, program: Program, plan: Regions, line: int) -> None:
        self.program, self.plan, self.line = program, plan, line
        self.schedule = plan.lines[line]
        self.stacked = line > 0 and plan.stacked[line - 1]
        self.instruction = [each.wasm for each in OPERATIONS]
        self.targets: defaultdict[int, list[int]] = defaultdict(list)
        self.fixed: list[tuple[int, float]] = []
        self.results: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for row, start in zip(() if line else program.results, plan.outputs, strict=False):
            for k, r in enumerate(row):
                if type(r) is int:
                    self.targets[r].append(start + k)
                else:
                    self.fixed.append((start + k, r))
        for chunk in self.schedule.chunks:
            for n in chunk:
                if program.nodes[n][0] == RESULT:
                    self.results[program.nodes[n][1]][position(program, n)] = n

    @property
    def name(self) -> str:
        """Of the function."""
        return f"block{self.line - 1}" if self.line else "step"

    def functions(self) -> list[str]:
        """The lines of the chunks, and of the function that calls them."""
        if self.stacked:
            parameters = self.program.blocks[self.line - 1].parameters
            returned = self._returned(self.line - 1)
            self._chunk(self.schedule.chunks[0], returned)
            head = f"func {self.name} {' '.join(map(str, parameters))} : {len(returned)}"
            return [head, *self.text]
        texts, calls = [], []
        computed = {n for chunk in self.schedule.chunks for n in chunk}
        for k, chunk in enumerate(self.schedule.chunks):
            self._chunk(chunk, ())
            calls.append(f"{self.name}_{k}")
            texts += [f"func {calls[-1]} : 0", *self.text]
        rest = list(self._copied() if self.line else self._passed(computed))
        return [*texts, f"func {self.name} : 0", *(f"call {name}" for name in calls), *rest]

    def _returned(self, block: int) -> list[int]:
        """What a short text leaves on the stack."""
        results = self.program.blocks[block].results
        return [int(results[at]) for at in sorted(self.plan.results[block])]

    def _copied(self) -> Iterator[str]:
        """Results of a body that it does not compute, to where calls look for them."""
        block = self.program.blocks[self.line - 1]
        for at, place in self.plan.results[self.line - 1].items():
            number = int(block.results[at])
            if self.schedule.slot.get(number) != place:
                yield from (f"at {place}", *self._leaf(number), f"put {place}")

    def _passed(self, computed: set[int]) -> Iterator[str]:
        """Outputs that no chunk computes."""
        for number, places in self.targets.items():
            for place in places if number not in computed else ():
                yield from (f"at {place}", *self._leaf(number), f"put {place}")
        for place, value in self.fixed:
            yield from (f"at {place}", _number(value), f"put {place}")

    # ---- a chunk -------------------------------------------------------------------------------------

    def _chunk(self, chunk: Sequence[int], returned: Sequence[int]) -> None:
        """Write a chunk to ``self.text``; what is returned stays on the stack."""
        self.text: list[str] = []
        fixed = {n for n in chunk if self._fixed(n)}
        self.found = Stretches(self.program, chunk, self.schedule.inside, fixed, returned)
        self.ready: dict[int, str] = {}
        self.held: dict[tuple[int, int], str] = {}
        for kind, number, stretch in self.found.events:
            if kind == "node":
                if number in self.found.skipped:
                    self.ready[number] = self.ready[self.program.nodes[number][2]]
                if self.found.stretch.get(number) == APART:
                    self._root(number, stretch)
                continue
            if kind == "if":
                self._value(number, stretch)
            self.text.append(kind)
        for number in returned:
            self._value(number, self.found.end)

    def _fixed(self, number: int) -> bool:
        """Whether a node is computed at its own place, whoever reads it."""
        stays = number in self.schedule.stored and not self.stacked
        return stays or number in self.targets or self.program.nodes[number][0] in (CALL, RESULT, SIN, COS)

    def _root(self, number: int, stretch: int) -> None:
        """Compute a node at its own place, for its readers here and elsewhere."""
        op = self.program.nodes[number][0]
        if op == CALL:
            self._call(number, stretch)
            return
        if op == RESULT and self._of_stacked(number):
            return  # came with the call
        places = self._places(number)
        kept = self.found.count[number] > 0 or len(places) > 1
        if not kept and not places:
            return
        if number in self.ready:  # a choice that is a variable; the other one of a sine and a cosine
            for place in places:
                self.text += [f"at {place}", f"get {self.ready[number]}", *self._put(number, place)]
            return
        if places:
            self.text.append(f"at {places[0]}")
        if op == RESULT:
            results = self.plan.results[called(self.program, self.program.nodes[number][1])]
            self.text.append(f"take {results[position(self.program, number)]}")
        elif op in (SIN, COS):
            self._sines(number, stretch)
        else:
            self._compute(number, stretch)
        if kept:
            self.ready[number] = self._name(number)
            self.text.append(f"{'tee' if places else 'set'} {self.ready[number]}")
        for k, place in enumerate(places):
            if k:
                self.text += [f"at {place}", f"get {self.ready[number]}"]
            self.text += self._put(number, place)

    def _places(self, number: int) -> list[int]:
        """Where a node is written to, besides a variable."""
        places = list(self.targets.get(number, ()))
        if number in self.schedule.stored and not self.stacked:
            places.append(self.schedule.slot[number])
        return places

    def _put(self, number: int, place: int) -> list[str]:
        truth = self.program.nodes[number][0] in TRUTHS
        return ["f64.convert_i32_u", f"put {place}"] if truth else [f"put {place}"]

    def _name(self, number: int) -> str:
        if self.program.nodes[number][0] in TRUTHS:
            return f"{number}t"
        return f"{number}z" if number in self.found.zero else str(number)

    def _of_stacked(self, result: int) -> bool:
        return self.plan.stacked[called(self.program, self.program.nodes[result][1])]

    def _call(self, number: int, stretch: int) -> None:
        program, plan = self.program, self.plan
        block = called(program, number)
        operands = program.nodes[number][2:]
        if not plan.stacked[block]:
            for k, operand in enumerate(operands):
                place = plan.arguments[block] + k
                self.text.append(f"at {place}")
                self._value(operand, stretch)
                self.text.append(f"put {place}")
            self.text.append(f"call block{block}")
            return
        for operand in operands:
            self._value(operand, stretch)
        self.text.append(f"call block{block}")
        results = self.results[number]
        for at in sorted(plan.results[block], reverse=True):
            result = results.get(at)
            places = [] if result is None else self._places(result)
            if result is None:
                self.text.append("drop")
            elif self.found.count[result] or len(places) > 1:
                name = self.ready[result] = self._name(result)
                self.text.append(f"set {name}")
                for place in places:
                    self.text += [f"at {place}", f"get {name}", f"put {place}"]
            else:
                self.text.append(f"keep {places[0]}" if places else "drop")

    def _sines(self, number: int, stretch: int) -> None:
        """A sine or a cosine, and the other one if the same stretch has it."""
        op, angle = self.program.nodes[number]
        self._value(angle, stretch)
        self.text.append("call sines")
        other = self.found.pairs.get(((COS if op == SIN else SIN), angle, stretch))
        if op == SIN:  # the cosine is on top
            self.text.append("drop" if other is None else f"set {self._name(other)}")
        else:
            name = self._name(number)
            self.text += [
                f"set {name}",
                "drop" if other is None else f"set {self._name(other)}",
                f"get {name}",
            ]
        if other is not None:
            self.ready[other] = self._name(other)

    # ---- values --------------------------------------------------------------------------------------

    def _value(self, number: int, stretch: int) -> None:
        """Put a value on the stack."""
        work: list[int | str] = [number]
        while work:
            item = work.pop()
            if isinstance(item, str):
                self.text.append(item)
                if item.startswith("tee "):
                    name = item[4:]
                    self.ready[int(name.rstrip("tz"))] = name
            elif item in self.ready:
                self.text.append(f"get {self.ready[item]}")
            elif item not in self.found.here:
                self._elsewhere(item, stretch)
            else:
                work += self._steps(item, stretch)

    def _steps(self, number: int, stretch: int) -> list[int | str]:
        """What computes a node of this chunk, the last first."""
        steps = self._operation(number)
        if self.found.count[number] > 1:
            steps.append(f"tee {self._name(number)}")
        return steps[::-1]

    def _compute(self, number: int, stretch: int) -> None:
        for item in self._operation(number):
            if isinstance(item, int):
                self._value(item, stretch)
            else:
                self.text.append(item)

    def _operation(self, number: int) -> list[int | str]:
        """Operands and instructions of a node, in order."""
        op, *operands = self.program.nodes[number]
        if op in (SELECT, GUARD):
            condition, a, b = operands
            return [a, b, condition, "select"]
        if op == LOOKUP:
            return self._lookup(number, self.program.nodes[operands[0]][1], operands[1])
        return [*operands, self.instruction[op]]

    def _lookup(self, number: int, table: int, index: int) -> list[int | str]:
        """An entry of a table at an index that is rounded down and clamped; NaN is less than nothing."""
        last, zero, name = _number(float(self.program.tables[table][1] - 1)), _number(0.0), f"{number}i"
        return [
            index, f"set {name}", f"get {name}", zero, f"get {name}", zero, "f64.gt", "select", f"set {name}",
            f"get {name}", last, f"get {name}", last, "f64.lt", "select",
            "i32.trunc_f64_s", f"entry {self.plan.tables[table]}",
        ]  # fmt: skip

    def _elsewhere(self, number: int, stretch: int) -> None:
        """A value that another chunk computes, or none."""
        if (number, stretch) in self.held:
            self.text.append(f"get {self.held[number, stretch]}")
            return
        self.text += self._leaf(number)
        op = self.program.nodes[number][0]
        often = 2 if op == INPUT else OFTEN
        if op != CONST and self.found.reads[number, stretch] >= often and not self.text[-1].startswith("get"):
            name = f"{number}s{stretch}" + ("t" if op in TRUTHS else "")
            self.held[number, stretch] = name
            self.text.append(f"tee {name}")

    def _leaf(self, number: int) -> list[str]:
        node = self.program.nodes[number]
        if node[0] == CONST:
            return [_number(node[1])]
        if node[0] == INPUT:
            return [f"take {self.plan.inputs[node[1]] + node[2]}"]
        if self.stacked and number in self.program.blocks[self.line - 1].parameters:
            return [f"get {number}"]
        found = [f"take {self.schedule.slot[number]}"]
        return [*found, "i32.trunc_f64_s"] if node[0] in TRUTHS else found


def _number(value: float) -> str:
    return f"number {struct.pack('<d', value).hex()}"
