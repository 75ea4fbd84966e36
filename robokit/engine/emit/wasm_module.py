"""Writes the module of a kernel for WebAssembly: one state, all arrays at fixed places of one memory.

    step()      reads the inputs and writes the outputs (passes/regions.py gives the places)

Nothing is checked. The text has a line for each instruction, in WebAssembly's own order: operands go to a
stack, from which an operation takes them.

    func NAME, PARAMETER ... : RESULTS      a function begins
    get X, set X, tee X                     a variable, one for each value: "5", a truth "5t", bits "5l"
    number HEX                              a number, by its bits
    at P, put P, take P                     place P is written, begin and end; it is read
    keep P                                  place P is written with what is on the stack already
    call NAME, if, end, f64.add ...

A value that is read once is computed where it is read, and needs no variable. So is one that is read several
times, all in one stretch that no branch leaves or enters: the first reader leaves it in a variable. Which
variables share one of the machine's, and which places are in memory, target/wasm_code.py decides.

A short text that is taken several times has its arguments and results on the stack, a long one in places.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from robokit.engine.emit.wasm_sines import SINES
from robokit.engine.passes.guards import Path
from robokit.engine.passes.regions import Regions
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

APART = -1
"""Stands for the stretch of a value that is read in several."""

Event = tuple[str, int, int]
"""What happens in a chunk: ("node", number, stretch), ("if", condition, stretch), ("end", 0, 0)."""


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
        self.here = set(chunk)
        events = self._events(chunk)
        last = len(events) + 1
        self._look(events, returned, last)
        self.ready: dict[int, str] = {}
        self.held: dict[tuple[int, int], str] = {}
        for kind, number, stretch in events:
            if kind == "node":
                if self.stretch.get(number) == APART:
                    self._root(number, stretch)
                continue
            if kind == "if":
                self._value(number, stretch)
            self.text.append(kind)
        for number in returned:
            self._value(number, last)

    def _events(self, chunk: Sequence[int]) -> list[Event]:
        """The nodes, and the branches around those in guarded blocks."""
        inside = self.schedule.inside
        events: list[Event] = []
        stretch = 0
        here: Path = ()
        for number in [*chunk, 0]:
            path = inside.get(number, ())
            if path != here:
                shared = 0
                while shared < min(len(path), len(here)) and path[shared] == here[shared]:
                    shared += 1
                events += [("end", 0, 0)] * (len(here) - shared)
                for condition in path[shared:]:
                    stretch += 1
                    events.append(("if", condition, stretch))
                here, stretch = path, stretch + 1
            events.append(("node", number, stretch))
        return events[:-1]

    def _look(self, events: list[Event], returned: Sequence[int], last: int) -> None:
        """Find how often each value is read in the chunk, and where it is computed.

        Sets ``stretch``: where all readers of a node are, or APART where it is computed at its own place;
        ``count`` of readers of each node, and ``reads`` of what comes from elsewhere, by stretch; ``pairs``:
        sines and cosines by opcode, angle and stretch.
        """
        nodes = self.program.nodes
        self.stretch: dict[int, int] = {}
        self.count: Counter[int] = Counter()
        self.reads: Counter[tuple[int, int]] = Counter()
        self.pairs: dict[tuple[int, int, int], int] = {}

        def use(number: int, stretch: int) -> None:
            if number in self.here:
                before = self.stretch.setdefault(number, stretch)
                if before != stretch:
                    self.stretch[number] = APART
                self.count[number] += 1
            else:
                self.reads[number, stretch] += 1

        for number in returned:
            use(number, last)
        for kind, number, stretch in reversed(events):
            if kind == "if":
                use(number, stretch)
            if kind != "node":
                continue
            node = nodes[number]
            if self._fixed(number):
                self.stretch[number] = APART
            at = self.stretch.get(number, APART)
            if at == APART:
                self.stretch[number], at = APART, stretch
            if node[0] == RESULT:
                continue
            if node[0] in (SIN, COS):
                self.pairs[node[0], node[1], at] = number
            for operand in node[2:] if node[0] in (CALL, LOOKUP) else node[1:]:
                use(operand, at)

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
        kept = self.count[number] > 0 or len(places) > 1
        if not kept and not places:
            return
        if number in self.ready:  # the other one of a sine and a cosine
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
        return f"{number}t" if self.program.nodes[number][0] in TRUTHS else str(number)

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
            elif self.count[result] or len(places) > 1:
                self.ready[result] = str(result)
                self.text.append(f"set {result}")
                for place in places:
                    self.text += [f"at {place}", f"get {result}", f"put {place}"]
            else:
                self.text.append(f"keep {places[0]}" if places else "drop")

    def _sines(self, number: int, stretch: int) -> None:
        """A sine or a cosine, and the other one if the same stretch has it."""
        op, angle = self.program.nodes[number]
        self._value(angle, stretch)
        self.text.append("call sines")
        other = self.pairs.get(((COS if op == SIN else SIN), angle, stretch))
        if op == SIN:  # the cosine is on top
            self.text.append("drop" if other is None else f"set {other}")
        elif other is None:
            self.text += [f"set {number}", "drop", f"get {number}"]
        else:
            self.text += [f"set {number}", f"set {other}", f"get {number}"]
        if other is not None:
            self.ready[other] = str(other)

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
                    self.ready[int(name.rstrip("t"))] = name
            elif item in self.ready:
                self.text.append(f"get {self.ready[item]}")
            elif item not in self.here:
                self._elsewhere(item, stretch)
            else:
                work += self._steps(item, stretch)

    def _steps(self, number: int, stretch: int) -> list[int | str]:
        """What computes a node of this chunk, the last first."""
        steps = self._operation(number)
        if self.count[number] > 1:
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
        if op != CONST and self.reads[number, stretch] >= often and not self.text[-1].startswith("get"):
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
