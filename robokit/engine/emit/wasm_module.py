"""Writes a kernel's program as WebAssembly functions: one state, all arrays at fixed places of one memory.

    step()      reads the inputs and writes the outputs (passes/regions.py gives the places)

Nothing is checked. A value that is read once is computed where it is read, and needs no variable. So is one
that is read several times, all in one basic block: no branch leaves or enters it, and the first reader leaves
the value in a variable. Which variables share one of the machine's, and which places are in memory,
wasm_code.py decides.

A guarded choice between a value of its block and 0 is a variable that is 0 where the block is skipped.

A short function that is taken several times has its arguments and results on the stack, a long one in places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from robokit.engine.emit.wasm_code import (
    AT,
    ENTRY,
    F64,
    GET,
    I32,
    KEEP,
    PLAIN,
    PUT,
    SET,
    TAKE,
    TEE,
    Code,
    Function,
    StackWriter,
    Variable,
    number,
    plain,
)
from robokit.engine.emit.wasm_code import CALL as TO
from robokit.engine.emit.wasm_sines import NAME, sines
from robokit.engine.passes.basic_blocks import APART, BasicBlocks
from robokit.engine.passes.regions import Regions
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.graph import Program
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

CHUNK = 3000
"""Nodes per chunk: of longer ones browsers make slower code, and shorter ones are more bytes."""

OFTEN = 3
"""Times that a place is read in one basic block from which on a variable holds what was read."""


def wasm_functions(program: Program, plan: Regions) -> list[Function]:
    """The functions of the module, "step" among them."""
    found = [sines()]
    for line in range(len(plan.lines)):
        found += LineWriter(program, plan, line).functions()
    return found


class LineWriter(StackWriter):
    """Writes one line of a plan: the program's own, or a body."""

    def __init__(self, program: Program, plan: Regions, line: int) -> None:
        super().__init__()
        self.program, self.plan, self.line = program, plan, line
        self.schedule = plan.lines[line]
        self.stacked = line > 0 and plan.stacked[line - 1]
        self.instruction = [PLAIN.get(each.wasm, b"") for each in OPERATIONS]
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

    def functions(self) -> list[Function]:
        """Those of the chunks, and the one that calls them."""
        if self.stacked:
            parameters = [Variable() for _ in self.program.blocks[self.line - 1].parameters]
            returned = self._returned(self.line - 1)
            self._chunk(self.schedule.chunks[0], returned, parameters)
            return [Function(self.name, parameters, [F64] * len(returned), self.code)]
        found = []
        computed = {n for chunk in self.schedule.chunks for n in chunk}
        for k, chunk in enumerate(self.schedule.chunks):
            self._chunk(chunk, ())
            found.append(Function(f"{self.name}_{k}", [], [], self.code))
        self.variables = {}
        calls: list[Code] = [(TO, each.name) for each in found]
        rest = self._copied() if self.line else self._passed(computed)
        return [*found, Function(self.name, [], [], [*calls, *rest])]

    def _returned(self, block: int) -> list[int]:
        """What a short function leaves on the stack."""
        results = self.program.blocks[block].results
        return [int(results[at]) for at in sorted(self.plan.results[block])]

    def _copied(self) -> Iterator[Code]:
        """Results of a body that it does not compute, to where calls look for them."""
        block = self.program.blocks[self.line - 1]
        for at, place in self.plan.results[self.line - 1].items():
            result = int(block.results[at])
            if self.schedule.slot.get(result) != place:
                yield from ((AT, place), *self._leaf(result), (PUT, place))

    def _passed(self, computed: set[int]) -> Iterator[Code]:
        """Outputs that no chunk computes."""
        for n, places in self.targets.items():
            for place in places if n not in computed else ():
                yield from ((AT, place), *self._leaf(n), (PUT, place))
        for place, value in self.fixed:
            yield from ((AT, place), number(value), (PUT, place))

    # ---- a chunk -------------------------------------------------------------------------------------

    def _chunk(
        self, chunk: Sequence[int], returned: Sequence[int], parameters: Sequence[Variable] = ()
    ) -> None:
        """Write a chunk to ``self.code``; what is returned stays on the stack."""
        self.code, self.variables = [], {}
        if self.stacked:
            own = self.program.blocks[self.line - 1].parameters
            self.variables = dict(zip(own, parameters, strict=True))
        fixed = {n for n in chunk if self._fixed(n)}
        self.found = BasicBlocks(self.program, chunk, self.schedule.inside, fixed, returned)
        self.held: dict[tuple[int, int], Variable] = {}
        for kind, n, basic_block in self.found.events:
            self.basic_block = basic_block
            if kind == "node":
                if n in self.found.skipped:
                    self.variables[n] = self.variables[self.program.nodes[n][2]]
                if self.found.basic_block.get(n) == APART:
                    self._root(n)
                continue
            if kind == "if":
                self.value(n)
            self.code.append(PLAIN[kind])
        self.basic_block = self.found.end
        for n in returned:
            self.value(n)

    def _fixed(self, n: int) -> bool:
        """Whether a node is computed at its own place, whoever reads it."""
        stays = n in self.schedule.stored and not self.stacked
        return stays or n in self.targets or self.program.nodes[n][0] in (CALL, RESULT, SIN, COS)

    def _root(self, n: int) -> None:
        """Compute a node at its own place, for its readers here and elsewhere."""
        op = self.program.nodes[n][0]
        if op == CALL:
            self._call(n)
            return
        if op == RESULT and self._of_stacked(n):
            return  # came with the call
        places = self._places(n)
        kept = self.found.count[n] > 0 or len(places) > 1
        if not kept and not places:
            return
        if n in self.variables:  # a choice that is a variable; the other one of a sine and a cosine
            for place in places:
                self.code += [(AT, place), (GET, self.variables[n]), *self._put(n, place)]
            return
        if places:
            self.code.append((AT, places[0]))
        if op == RESULT:
            results = self.plan.results[called(self.program, self.program.nodes[n][1])]
            self.code.append((TAKE, results[position(self.program, n)]))
        elif op in (SIN, COS):
            self._sines(n)
        else:
            self.write(self._operation(n))
        if kept:
            self.code.append((TEE if places else SET, self.variable(n)))
        for k, place in enumerate(places):
            if k:
                self.code += [(AT, place), (GET, self.variables[n])]
            self.code += self._put(n, place)

    def _places(self, n: int) -> list[int]:
        """Where a node is written to, besides a variable."""
        places = list(self.targets.get(n, ()))
        if n in self.schedule.stored and not self.stacked:
            places.append(self.schedule.slot[n])
        return places

    def _put(self, n: int, place: int) -> list[Code]:
        truth = self.program.nodes[n][0] in TRUTHS
        return [PLAIN["f64.convert_i32_u"], (PUT, place)] if truth else [(PUT, place)]

    def kind(self, n: int) -> int:
        """Kind of a value."""
        return I32 if self.program.nodes[n][0] in TRUTHS else F64

    def variable(self, n: int) -> Variable:
        """A new variable for a value; 0 before it is set where a skipped choice is it."""
        made = super().variable(n)
        made.zero = n in self.found.zero
        return made

    def _of_stacked(self, result: int) -> bool:
        return self.plan.stacked[called(self.program, self.program.nodes[result][1])]

    def _call(self, n: int) -> None:
        program, plan = self.program, self.plan
        block = called(program, n)
        operands = program.nodes[n][2:]
        if not plan.stacked[block]:
            for k, operand in enumerate(operands):
                place = plan.arguments[block] + k
                self.write([(AT, place), operand, (PUT, place)])
            self.code.append((TO, f"block{block}"))
            return
        self.write([*operands, (TO, f"block{block}")])
        results = self.results[n]
        for at in sorted(plan.results[block], reverse=True):
            result = results.get(at)
            places = [] if result is None else self._places(result)
            if result is not None and (self.found.count[result] or len(places) > 1):
                own = self.variable(result)
                self.code.append((SET, own))
                for place in places:
                    self.code += [(AT, place), (GET, own), (PUT, place)]
            else:
                self.code.append((KEEP, places[0]) if places else PLAIN["drop"])

    def _sines(self, n: int) -> None:
        """A sine or a cosine, and the other one if the same basic block has it."""
        op, angle = self.program.nodes[n]
        self.write([angle, (TO, NAME)])
        other = self.found.pairs.get(((COS if op == SIN else SIN), angle, self.basic_block))
        aside = PLAIN["drop"] if other is None else (SET, self.variable(other))
        if op == SIN:  # the cosine is on top
            self.code.append(aside)
        else:
            own = Variable()
            self.code += [(SET, own), aside, (GET, own)]

    # ---- values --------------------------------------------------------------------------------------

    def steps(self, n: int) -> list[Code]:
        """What computes a value: operands and instructions, in order."""
        if n not in self.found.here:
            return self._elsewhere(n)
        found = self._operation(n)
        if self.found.count[n] > 1:
            found.append((TEE, self.variable(n)))
        return found

    def _operation(self, n: int) -> list[Code]:
        """Operands and instructions of a node, in order."""
        op, *operands = self.program.nodes[n]
        if op in (SELECT, GUARD):
            condition, a, b = operands
            return [a, b, condition, PLAIN["select"]]
        if op == LOOKUP:
            return self._lookup(self.program.nodes[operands[0]][1], operands[1])
        return [*operands, self.instruction[op]]

    def _lookup(self, table: int, index: int) -> list[Code]:
        """An entry of a table at an index that is rounded down and clamped; NaN is less than nothing."""
        last, zero, own = number(float(self.program.tables[table][1] - 1)), number(0.0), Variable()
        get = (GET, own)
        return [
            *[index, (SET, own), get, zero, get, zero, *plain("f64.gt select"), (SET, own)],
            *[
                get,
                last,
                get,
                last,
                *plain("f64.lt select i32.trunc_f64_s"),
                (ENTRY, self.plan.tables[table]),
            ],
        ]

    def _elsewhere(self, n: int) -> list[Code]:
        """A value that another chunk computes, or none."""
        held = self.held.get((n, self.basic_block))
        if held is not None:
            return [(GET, held)]
        found = self._leaf(n)
        op = self.program.nodes[n][0]
        if op != CONST and self.found.reads[n, self.basic_block] >= (2 if op == INPUT else OFTEN):
            held = self.held[n, self.basic_block] = Variable(self.kind(n))
            found.append((TEE, held))
        return found

    def _leaf(self, n: int) -> list[Code]:
        node = self.program.nodes[n]
        if node[0] == CONST:
            return [number(node[1])]
        if node[0] == INPUT:
            return [(TAKE, self.plan.inputs[node[1]] + node[2])]
        found: list[Code] = [(TAKE, self.schedule.slot[n])]
        return [*found, PLAIN["i32.trunc_f64_s"]] if node[0] in TRUTHS else found
