"""A straight line as a recording with regions: what C and WebAssembly are written from.

A long line is cut into functions, as for LLVM (passes/schedule.py). What crosses a cut is in memory that the
kernel has to itself. A block under a guard is a condition, which leaves what is read after it, or 0.

The program has no shared functions: they are written out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby

from robokit.engine.loops.analysis import Live
from robokit.engine.loops.record import Function, LoopGraph, Region
from robokit.engine.passes.schedule import call_plan
from robokit.engine.trace import ops
from robokit.engine.trace.graph import Program

NEVER = 2**62


def straight(program: Program, size: int) -> tuple[LoopGraph, Live]:
    """The recording of a program, whose arrays are the inputs, the outputs and, at the end, its own memory.

    ``size``: operations of a function, about. Returns the recording, and what of it is needed.
    """
    graph = _Line(program, size).graph
    outputs = slice(program.first_output, program.first_output + len(program.outputs))
    return graph, Live(graph, graph.functions[0].arrays[outputs])


class _Line:
    """Writes a program's line into a recording."""

    def __init__(self, program: Program, size: int) -> None:
        self.program, self.graph = program, LoopGraph()
        self.plan = call_plan(program, 1, False, size, NEVER)
        kernel = self.graph.functions[0]
        outputs = program.first_output
        kernel.arrays = [self._array(kernel, k >= outputs) for k in range(outputs + len(program.outputs))]
        if len(self.plan.chunks) > 1 and self.plan.slots:
            kernel.arrays.append(self._array(kernel, True, self.plan.slots))
        self.constants: dict[str, int] = {}
        self.places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        """Where the value of a node goes: outputs, and elements of them."""
        rest = list[tuple[int, int, int | float]]()
        for k, row in enumerate(program.results, outputs):
            for at, r in enumerate(row):
                if type(r) is int and program.nodes[r][0] > ops.CONST:
                    self.places[r].append((k, at))
                else:
                    rest.append((k, at, r))
        whole = _Chunk(self, kernel, ())
        for k, at, r in rest:
            value = whole.value(r, kernel.region) if type(r) is int else self.constant(r)
            whole.store(kernel.region, k, at, value)
        if len(self.plan.chunks) == 1:
            _Chunk(self, kernel, self.plan.chunks[0]).write()
            return
        for chunk in self.plan.chunks:
            made = self.graph.new_function()
            made.arrays = [
                self._array(made, self.graph.arrays[k].writable, self.graph.arrays[k].own)
                for k in kernel.arrays
            ]
            made.apart = True
            _Chunk(self, made, chunk).write()
            self.graph.put((ops.APPLY, made.number, tuple(kernel.arrays)), kernel.region)

    def _array(self, function: Function, writable: bool, own: int = 0) -> int:
        number = self.graph.array(ops.REAL, function.region, writable)
        self.graph.arrays[number].own = own
        return number

    def constant(self, value: float, *single: float) -> int:
        """Node of a constant; -0 is another one than 0."""
        key = repr((value, *single))
        if key not in self.constants:
            self.constants[key] = self.graph.put((ops.CONST, value, *single), self.graph.regions[0])
        return self.constants[key]


class _Chunk:
    """Writes some of the nodes as operations of a function."""

    def __init__(self, line: _Line, function: Function, nodes: Sequence[int]) -> None:
        self.line, self.function, self.nodes = line, function, nodes
        self.graph, self.program, self.plan = line.graph, line.program, line.plan
        self.known: dict[int, int] = {}
        """The operations that have the values of nodes, where they can be used."""
        self.zero: dict[int, int] = {}
        """The conditions of values that are 0 where these do not hold."""
        self.reads = Counter(self.program.operands(nodes))

    def write(self) -> None:
        """All of them."""
        self._run(self.nodes, self.function.region)

    def _run(self, nodes: Sequence[int], region: Region) -> None:
        inside = self.plan.inside
        for condition, group in groupby(nodes, lambda n: inside.get(n, ())[region.depth :][:1]):
            if condition:
                self._block(condition[0], list(group), region)
            else:
                for n in group:
                    self._operation(n, region)

    def _operation(self, n: int, region: Region) -> None:
        opcode, *operands = self.program.nodes[n]
        if opcode == ops.GUARD and self.zero.get(operands[1]) == operands[0] and self._is_zero(operands[2]):
            self.known[n] = self.known[operands[1]]
        else:
            known = self.known
            values = [known[k] if k in known else self.value(k, region) for k in operands]
            self.known[n] = self.graph.put((opcode, *values), region)
        if n in self.plan.stored:
            value = self.known[n]
            if opcode in ops.TRUTHS:
                one, zero = self.line.constant(1.0), self.line.constant(0.0)
                value = self.graph.put((ops.SELECT, value, one, zero), region)
            self.store(region, -1, self.plan.slot[n], value)
        for k, at in self.line.places[n]:
            self.store(region, k, at, self.known[n])

    def _is_zero(self, n: int) -> bool:
        node = self.program.nodes[n]
        return node[0] == ops.CONST and node[1] == 0.0

    def _block(self, condition: int, nodes: list[int], region: Region) -> None:
        """Nodes that are computed where a condition holds."""
        graph, asked = self.graph, self.value(condition, region)
        around = dict(self.known)
        then, otherwise = (graph.new_region(region.depth + 1, False) for _ in range(2))
        self._run(nodes, then)
        within = Counter(self.program.operands(nodes))
        left = [n for n in nodes if self.reads[n] > within[n]]
        then.results = [self.known[n] for n in left]
        for value in then.results:
            if graph.kinds[value] == ops.REAL:
                otherwise.results.append(self.line.constant(0.0))
            else:
                zero = graph.add((ops.WHOLE, 0))
                otherwise.results.append(graph.put((ops.WHOLE_LT, zero, zero), otherwise))
        control = graph.put((ops.COND, asked, then.number, otherwise.number), region)
        self.known = around
        for k, (n, value) in enumerate(zip(left, then.results, strict=True)):
            self.known[n] = graph.put((ops.VALUE, control, k, graph.kinds[value]), region)
            self.zero[n] = condition

    def value(self, n: int, region: Region) -> int:
        """The operation that has the value of a node."""
        if n in self.known:
            return self.known[n]
        node = self.program.nodes[n]
        if node[0] == ops.CONST:
            return self.line.constant(*node[1:])
        if node[0] == ops.INPUT:
            self.known[n] = self._load(region, node[1], node[2])
        else:
            self.known[n] = self._load(region, -1, self.plan.slot[n])
            if node[0] in ops.TRUTHS:
                none = self.graph.put((ops.EQ, self.known[n], self.line.constant(0.0)), region)
                self.known[n] = self.graph.put((ops.NOT, none), region)
        return self.known[n]

    def _load(self, region: Region, array: int, at: int) -> int:
        index = self.graph.add((ops.WHOLE, at))
        return self.graph.put((ops.LOAD, self.function.arrays[array], index, 0, ops.REAL), region)

    def store(self, region: Region, array: int, at: int, value: int) -> None:
        """Write a value to an element of an array; the last one is the kernel's own."""
        index = self.graph.add((ops.WHOLE, at))
        self.graph.put((ops.STORE, self.function.arrays[array], index, value), region)
