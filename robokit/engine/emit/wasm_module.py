"""Writes a kernel's program as WebAssembly functions: one state, all arrays at fixed places of one memory.

    step()      reads the inputs and writes the outputs

Nothing is checked. A value that is read once is computed where it is read, and needs no variable. So is one
that is read several times, all in one basic block: no branch leaves or enters it, and the first reader leaves
the value in a variable. Which variables share one of the machine's, and which places are in memory,
wasm_code.py decides.

A guarded choice between a value of its block and 0 is a variable that is 0 where the block is skipped.

A short function that is taken several times has its arguments and results on the stack, a long one in places.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from robokit.engine.emit.wasm_code import (
    AT,
    ENTRY,
    F64,
    GET,
    I32,
    KEEP,
    NAME,
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
    sines,
)
from robokit.engine.emit.wasm_code import CALL as TO
from robokit.engine.passes.guards import Path, blocks, paths
from robokit.engine.passes.schedule import STORE, Schedule, borrowed_by, cut
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
from robokit.engine.trace.record import called, position

# -- The plan: places in memory --------------------------------------------------------------------------
#
# Plans a program with shared functions: its own line and that of each body, and one memory for all.
#
# Places are given to inputs, tables and outputs, then to each block's arguments and results, then to what
# must outlive a chunk. What a body reads from the program around it stays there until the last call. Short
# bodies need no places for arguments and results: these are handed over on the stack.

STACKED = 250
"""Arguments, and results, that are handed over on the stack at most: hosts allow 1000."""


@dataclass
class Regions:
    """Where and when everything happens; places are counted in numbers."""

    # inputs, tables, outputs: first place of each
    inputs: list[int]
    tables: list[int]
    outputs: list[int]
    arguments: list[int]  # first place of each block's arguments
    results: list[dict[int, int]]  # place of each result that is read, by position, of each block
    stacked: list[bool]  # whether arguments and results of each block are on the stack
    lines: list[Schedule]  # the program's own line, then that of each block
    size: int  # places in all


@dataclass
class _Memory:
    """Places that are given out and come back."""

    size: int
    free: list[int] = field(default_factory=list)

    def take(self, count: int = 1) -> int:
        """First of so many new places."""
        self.size += count
        return self.size - count

    def borrow(self) -> int:
        """A place that may have been used before."""
        return self.free.pop() if self.free else self.take()


def regions(program: Program, size: int) -> Regions:
    """Plan a program.

    Args:
        program: what to compute.
        size: nodes per chunk, about.
    """
    nodes, memory = program.nodes, _Memory(0)
    inputs = [memory.take(count) for _, count in program.inputs]
    tables = [memory.take(count) for _, count in program.tables]
    outputs = [memory.take(math.prod(shape)) for _, shape in program.outputs]
    body = program.bodies()
    arguments = [memory.take(len(block.parameters)) for block in program.blocks]
    results: list[dict[int, int]] = [{} for _ in program.blocks]
    for n in program.order:
        if nodes[n][0] == RESULT:
            at = position(program, n)
            places = results[called(program, nodes[n][1])]
            if at not in places:
                places[at] = memory.take()
    slot: dict[int, int] = {}
    for k, block in enumerate(program.blocks):
        slot |= {p: arguments[k] + j for j, p in enumerate(block.parameters)}
        own_results = {int(block.results[at]): place for at, place in results[k].items()}
        slot |= {r: place for r, place in own_results.items() if body.get(r) == k and r not in slot}
    line, insides = program.lines()
    own = [line, *insides]
    path = paths(program)
    borrowed = borrowed_by(program, own, body, path)
    orders, inside = [], dict[int, Path]()
    for order in own:
        line, within = blocks(program, order, borrowed, path)
        orders.append(line)
        inside |= within
    kept: set[int] = set()
    for one in borrowed:
        kept |= one
    lines, ends = [], list[int]()
    for line in orders:
        # A body runs while the values of the functions around it live, but not those of another body.
        around = [
            end for end, caller in zip(ends, orders, strict=False) if _calls(program, caller, len(ends) - 1)
        ]
        memory.free, memory.size = [], max([memory.size] if not ends else [ends[0], *around])
        lines.append(_line(program, line, inside, slot, memory, kept, borrowed, size))
        ends.append(memory.size)
    stacked = [
        len(line.chunks) == 1 and max(len(block.parameters), len(found)) <= STACKED
        for line, block, found in zip(lines[1:], program.blocks, results, strict=True)
    ]
    return Regions(inputs, tables, outputs, arguments, results, stacked, lines, max(ends))


def _line(
    program: Program,
    line: list[int],
    inside: dict[int, Path],
    slot: dict[int, int],
    memory: _Memory,
    kept: set[int],
    borrowed: list[set[int]],
    size: int,
) -> Schedule:
    """Chunks of a line and places of what lives longer than one; adds the places to ``slot``.

    Args:
        program: the graph.
        line: its nodes in order.
        inside: guards around nodes.
        slot: place of each node that has one.
        memory: where further places come from.
        kept: nodes that bodies read.
        borrowed: the same by block.
        size: nodes per chunk, about.
    """
    nodes = program.nodes
    for n in line:
        if nodes[n][0] == RESULT:  # follows its call
            inside[n] = inside.get(nodes[n][1], ())
    weight = Counter(r for row in program.results for r in row if type(r) is int)
    chunks = _with_calls(program, cut(program, line, [1 + STORE * weight[n] for n in line], size))
    home = {n: k for k, chunk in enumerate(chunks) for n in chunk}
    last = dict(home)
    for n, k in home.items():
        reads = [*nodes[n][1:], *inside.get(n, ())]
        if nodes[n][0] == CALL:
            reads += borrowed[called(program, n)]
        for operand in reads:
            if operand in last:
                last[operand] = max(last[operand], k)
    ends = {n for n in home if n in slot}  # the results of a body
    stored = {n for n in home if last[n] > home[n] or n in kept or n in ends}
    stored -= {n for n in home if nodes[n][0] == CALL}  # has no value of its own
    ending: list[list[int]] = [[] for _ in chunks]
    for k, chunk in enumerate(chunks):
        if k:
            memory.free += ending[k - 1]
        for n in chunk:
            if n in stored and n not in ends:
                slot[n] = memory.borrow()
                ending[last[n]].append(slot[n])
    return Schedule(1, chunks, slot, stored, [], {}, {}, memory.size, inside)


def _calls(program: Program, line: list[int], block: int) -> bool:
    """Whether a line calls a block."""
    return any(program.nodes[n][0] == CALL and called(program, n) == block for n in line)


def _with_calls(program: Program, chunks: list[list[int]]) -> list[list[int]]:
    """Chunks in which the results of a call follow it at once."""
    nodes = program.nodes
    results: defaultdict[int, list[int]] = defaultdict(list)
    for chunk in chunks:
        for n in chunk:
            if nodes[n][0] == RESULT:
                results[nodes[n][1]].append(n)
    return [
        [each for n in chunk if nodes[n][0] != RESULT for each in (n, *results.get(n, ()))]
        for chunk in chunks
    ]


# -- Where the values of a chunk are computed ------------------------------------------------------------
#
# Where the values of a chunk are computed, for code whose operands go to a stack.
#
# A *basic block* is a run of nodes that no branch leaves or enters. A value whose readers are all in one
# basic block is computed there, by the first of them; the others are computed at their own place in the
# line.

APART = -1
"""Stands for the basic block of a value that is computed at its own place."""

Event = tuple[str, int, int]
"""What happens in a chunk: ("node", n, basic_block), ("if", condition, basic_block), ("end", 0, 0)."""


class BasicBlocks:
    """What is known of a chunk before it is written.

    Attributes:
        events: the nodes, and the branches around those in guarded blocks.
        end: the basic block after the last event.
        basic_block: where each node of the chunk is computed.
        count: how often each node of the chunk is read in it.
        reads: how often what comes from elsewhere is read, by node and basic block.
        pairs: sines and cosines by opcode, angle and basic block.
        skipped: choices between a value of a block that is skipped otherwise, and 0.
        zero: those values: variables that are 0 where nobody has set them.
    """

    def __init__(
        self,
        program: Program,
        chunk: Sequence[int],
        inside: Mapping[int, Path],
        fixed: Collection[int],
        returned: Sequence[int],
    ) -> None:
        """Look at a chunk.

        Args:
            program: the graph.
            chunk: nodes in order.
            inside: guards around nodes.
            fixed: nodes that are computed at their own place, whoever reads them.
            returned: nodes that are read after the last event.
        """
        self.program, self.inside = program, inside
        self.here = set(chunk)
        self.events = self._events(chunk)
        self.end = len(self.events) + 1
        self.basic_block: dict[int, int] = {}
        self.count: Counter[int] = Counter()
        self.reads: Counter[tuple[int, int]] = Counter()
        self.pairs: dict[tuple[int, int, int], int] = {}
        self.skipped = {n for n in chunk if self._skips(n)}
        self.zero = {program.nodes[n][2] for n in self.skipped}
        for n in returned:
            self._use(n, self.end)
        for kind, n, basic_block in reversed(self.events):
            if kind == "if":
                self._use(n, basic_block)
            elif kind == "node":
                self._look(n, basic_block, n in fixed)

    def _events(self, chunk: Sequence[int]) -> list[Event]:
        events: list[Event] = []
        basic_block = 0
        here: Path = ()
        for n in [*chunk, 0]:
            path = self.inside.get(n, ())
            if path != here:
                shared = 0
                while shared < min(len(path), len(here)) and path[shared] == here[shared]:
                    shared += 1
                events += [("end", 0, 0)] * (len(here) - shared)
                for condition in path[shared:]:
                    basic_block += 1
                    events.append(("if", condition, basic_block))
                here, basic_block = path, basic_block + 1
            events.append(("node", n, basic_block))
        return events[:-1]

    def _skips(self, n: int) -> bool:
        op, *operands = self.program.nodes[n]
        if op != GUARD or operands[1] not in self.here:
            return False
        condition, value, other = operands
        node = self.program.nodes[other]
        within = self.inside.get(value, ()) == (*self.inside.get(n, ()), condition)
        return within and node[0] == CONST and node[1] == 0.0

    def _look(self, n: int, basic_block: int, fixed: bool) -> None:
        """A node, after all that read it."""
        at = self.basic_block.get(n, APART)
        if fixed or at == APART:
            self.basic_block[n], at = APART, basic_block
        node = self.program.nodes[n]
        if n in self.skipped:
            self.basic_block[node[2]] = APART
            self.count[node[2]] += 1
            return
        if node[0] in (SIN, COS):
            self.pairs[node[0], node[1], at] = n
        if node[0] != RESULT:
            for operand in node[2:] if node[0] in (CALL, LOOKUP) else node[1:]:
                self._use(operand, at)

    def _use(self, n: int, basic_block: int) -> None:
        if n not in self.here:
            self.reads[n, basic_block] += 1
            return
        if self.basic_block.setdefault(n, basic_block) != basic_block:
            self.basic_block[n] = APART
        self.count[n] += 1


# -- The functions ---------------------------------------------------------------------------------------

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
