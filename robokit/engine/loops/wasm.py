"""Writes regions as WebAssembly: one state, loops as loops, arrays where the caller has put them.

A kernel's parameters are its sizes, then the first byte of each array in the module's memory, 32 bits each.
Memory that it has to itself is in globals. So are places of arrays that a function is given by all who call
it: only those that differ between calls are arguments.

A value that is read in its own region alone is computed where it is read first, and left in a variable if it
is read again. What is loaded is so only if nothing is stored there in between. All others are computed in
their place, into variables. The address of a row is a value, too, one for all elements of it that a region
reads and writes.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

from robokit.dataclass_tools import frozen
from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.backend.targets import Loaded, Planned, Target
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.emit.wasm import (
    CALL_FUNCTION,
    F64,
    GET,
    I32,
    NAME,
    PLAIN,
    PUT,
    SET,
    TAKE,
    TEE,
    Code,
    Function,
    Variable,
    branch,
    leb,
    module,
    number,
    plain,
    whole,
)
from robokit.engine.loops.analysis import CALLS, Live, inner, loop_parameters, outcome, starts
from robokit.engine.loops.record import LoopGraph, Region, operands
from robokit.engine.loops.straight import straight
from robokit.engine.trace import ops
from robokit.engine.trace.graph import Node
from robokit.interpreter import without_collector

_INSTRUCTIONS = {each.number: each.wasm for each in ops.OPERATIONS}

_CHOICES = (ops.SELECT, ops.GUARD, ops.WHOLE_SELECT)

_EFFECTS = (ops.STORE, ops.ZEROS, ops.CHECK, ops.FOR, ops.WHILE, ops.COND, *CALLS)

_ADDRESS = -2  # the node (_ADDRESS, array, index): of an element

_AT_ONCE = (ops.CONST, ops.WHOLE, ops.GIVEN, ops.VALUE)  # what computes nothing
_HERE = {*_EFFECTS, *_AT_ONCE, ops.SIN, ops.COS}  # what is computed in its place, or nowhere


def wasm_functions(
    graph: LoopGraph, live: Live, name: str, at: Mapping[int, int] = MappingProxyType({})
) -> list[Function]:
    """A kernel's functions, itself the last.

    ``live``: what of it is needed; ``name``: of the kernel; its functions' names begin with it; ``at``: first
    bytes of arrays that are known: these are no parameters.
    """
    places = _Places(graph, live, at)
    return [_Writer(graph, live, name, number, places).function() for number in live.functions]


class _Places:
    """What the functions of a kernel have in common.

    ``same``: for each array of a function, the one that it is in all calls, or itself where calls differ;
    ``globals``: where the first bytes of these are for other functions; ``end``: where that of the workspace
    is; ``works``, ``fails``: the functions that need a workspace, and those that return a status; ``at``:
    first bytes that are known.
    """

    def __init__(self, graph: LoopGraph, live: Live, at: Mapping[int, int]) -> None:
        self.at = at
        self.works = live.reach(lambda n: graph.nodes[n][0] == ops.ZEROS)
        self.fails = self.works | live.reach(lambda n: graph.nodes[n][0] == ops.CHECK)
        self.same: dict[int, int] = {}
        self.globals: dict[int, Variable] = {}
        self.end = Variable(I32)
        passed = defaultdict[int, set[int]](set)
        for function in reversed(live.functions):  # each after those that call it
            for array in live.arrays(graph.functions[function]):
                (same,) = passed[array] if len(passed[array]) == 1 else (array,)
                self.same[array] = same
                if same != array:
                    self.globals.setdefault(same, Variable(I32))
            for call in live.calls(function):
                inside = live.arrays(graph.functions[graph.nodes[call][1]])
                for own, array in zip(inside, live.passed_arrays(call), strict=True):
                    passed[own].add(self.same.get(array, array))


class _Writer:
    """Writes one function.

    ``code``: its instructions so far; ``variables``: those of values that are in one.
    """

    def __init__(self, graph: LoopGraph, live: Live, name: str, number: int, places: _Places) -> None:
        self.code: list[Code] = []
        self.variables: dict[int, Variable] = {}
        self.graph, self.live, self.name, self.number = graph, live, name, number
        self.places, self.works, self.fails = places, places.works, places.fails
        self.made = graph.functions[number]
        self.addresses: dict[int, Node] = {}
        """Nodes of addresses, by numbers behind those of the graph."""
        self.elements: dict[int, tuple[int, int]] = {}
        """Of what is loaded or stored: the address, or -1 where that is known, and elements on top."""
        arrays = [k for k in live.arrays(self.made) if places.same[k] == k and self._moves(k)]
        self.begins, self.copies = {k: Variable(I32) for k in arrays}, list[Code]()
        """The first bytes of arrays, at first those that are arguments; the code that copies others."""
        self.top = Variable(I32)
        """Where the workspace is free."""
        self.kinds = [self.kind(r) for r in live.results(self.made)]
        self.reads: Counter[int] = Counter()
        self.later: set[int] = set()
        """Values that are computed where they are read first."""
        self.pairs: dict[tuple[int, int, int], int] = {}
        """Sines and cosines by region, opcode and angle."""
        self._plan(self.made.region)

    def function(self) -> Function:
        """The function."""
        parameters = [self.variable(p) for p in self.live.parameters(self.made)]
        parameters += self.begins.values()
        for array in list(self.begins):
            self._share(array)
        if self.number in self.works:
            parameters.append(self.top)
            if not self.number:
                end = Variable(I32)
                parameters.append(end)
                self.code += [(GET, end), (PUT, self.places.end)]
        self._region(self.made.region)
        self.write(self.live.results(self.made))
        kinds = list(self.kinds)
        if self.number in self.fails:
            self.code.append(whole(0))
            kinds.append(I32)
        return Function(self._name(self.number), parameters, kinds, [*self.copies, *self.code])

    def _name(self, function: int) -> str:
        return f"{self.name} {function}" if function else self.name

    def _share(self, array: int) -> None:
        """Let functions that are called find an array."""
        if array in self.places.globals:
            self.code += [(GET, self.begins[array]), (PUT, self.places.globals[array])]

    def _moves(self, array: int) -> bool:
        """Whether an array begins where only those know who run the module."""
        return not self.graph.arrays[array].own and self.places.same.get(array) not in self.places.at

    def _begin_of(self, array: int) -> Code:
        """What puts the first byte of an array on the stack: a variable, as hosts load a global each time."""
        if array not in self.begins:
            own = self.begins[array] = Variable(I32)
            self.copies += [(TAKE, self.places.globals[self.places.same[array]]), (SET, own)]
        return GET, self.begins[array]

    # -- where values are computed ------------------------------------------------------------------

    def _node(self, n: int) -> Node:
        return self.addresses.get(n) or self.graph.nodes[n]

    def _with_addresses(self, region: Region) -> list[int]:
        """The nodes of a region that are needed; each address before the first one that needs it."""
        nodes, made = list[int](), dict[Node, int]()
        for n in self.live.of(region):
            node = self.graph.nodes[n]
            if node[0] in (ops.LOAD, ops.STORE) and not self.graph.arrays[node[1]].own:
                row, more = self._row(node[2])
                address = (_ADDRESS, node[1], row)
                if row >= 0 and address not in made:
                    number = made[address] = len(self.graph.nodes) + len(self.addresses)
                    self.addresses[number] = address
                    nodes.append(number)
                self.elements[n] = made.get(address, -1), more
            nodes.append(n)
        return nodes

    def _row(self, index: int) -> tuple[int, int]:
        """Index of the first element of a row, -1 where all is known; how far behind that an element is."""
        nodes = self.graph.nodes

        def known(n: int) -> int:
            return nodes[n][1] if nodes[n][0] == ops.WHOLE else -1

        if nodes[index][0] == ops.PLUS:
            for row, more in (nodes[index][1:], nodes[index][:0:-1]):
                width = max(map(known, nodes[row][1:])) if nodes[row][0] == ops.TIMES else 0
                if 0 <= known(more) < width:  # then it is in the array only if the first one is
                    return row, known(more)
        return (-1, known(index)) if known(index) >= 0 else (index, 0)

    def _plan(self, region: Region) -> set[int]:
        """Decide for a region and those in it; what they read of the regions around."""
        nodes = self._with_addresses(region)
        # A run is of nodes in which nothing is stored.
        run, effects = dict[int, int](), list[Node]()
        for n in nodes:
            run[n] = len(effects)
            opcode, *operand = self._node(n)
            if opcode in _EFFECTS:
                effects.append(self.graph.nodes[n])
            if opcode in (ops.SIN, ops.COS):
                self.pairs[region.number, opcode, operand[0]] = n
        never = len(effects) + 1
        first = dict.fromkeys(nodes, never)  # the runs in which they are read first
        outside, apart = set[int](), set[int]()

        def use(n: int, where: int) -> None:
            self.reads[n] += 1
            if n not in first:
                outside.add(n)
            elif where < first[n]:
                first[n] = where

        for r in self._results(region):
            use(r, len(effects))
        tested = self.live.of(region, slice(0, region.tested))
        if region.tested:
            use(region.test, run[tested[-1]] if tested else 0)
        for n in reversed(nodes):
            node, where = self._node(n), run[n]
            if first[n] == never and node[0] not in _EFFECTS:
                continue  # an index of which only the row is read
            if first[n] < never and n not in apart and self._later(node, effects, where, first[n]):
                self.later.add(n)
                where = first[n]
            for k in self._operands(n):
                use(k, where)
            if node[0] in (ops.FOR, ops.ZEROS):
                apart.update(node[2:3] if node[0] == ops.FOR else node[2:])
            for each in inner(self.graph, node):
                for k in self._plan(each):
                    apart.add(k)
                    use(k, where)
        return outside

    def _later(self, node: Node, effects: Sequence[Node], run: int, first: int) -> bool:
        """Whether what is computed in a run may be so in a later one, the first in which it is read."""
        if node[0] == ops.LOAD:
            return not any(self._changes(each, node) for each in effects[run:first])
        return node[0] not in _HERE

    def _changes(self, effect: Node, load: Node) -> bool:
        """Whether an effect may change what is loaded."""
        if effect[0] not in (ops.STORE, ops.ZEROS, ops.CHECK):
            return True
        if effect[0] == ops.CHECK or effect[1] != load[1]:
            return False
        opcodes = [self.graph.nodes[k][0] for k in (effect[2], load[2])]
        known = effect[0] == ops.STORE and opcodes == [ops.WHOLE] * 2
        return not known or effect[2] == load[2]

    def _results(self, region: Region) -> list[int]:
        """The values that a region leaves or carries on, of those that are needed."""
        if region is self.made.region:
            return self.live.results(self.made)
        return [region.results[k] for k in self.live.positions(self.live.control[region.number])]

    def _operands(self, n: int) -> Iterable[int]:
        """What a node reads itself, of all that is needed."""
        node = self._node(n)
        if node[0] == _ADDRESS:
            return node[2:]
        if n in self.elements:
            return [k for k in (self.elements[n][0], *operands(node)[1:]) if k >= 0]
        if node[0] in (ops.FOR, ops.WHILE):
            kept = [starts(node)[k] for k in self.live.positions(n)]
            return [node[2], *kept] if node[0] == ops.FOR else kept
        if node[0] in CALLS:
            return [k for column in self.live.arguments(n) for k in column]
        return () if node[0] == ops.VALUE or outcome(node) is not None else operands(node)

    # -- values -------------------------------------------------------------------------------------

    def kind(self, n: int) -> int:
        """Kind of a value."""
        return I32 if n in self.addresses or self.graph.kinds[n] != ops.REAL else F64

    def variable(self, n: int) -> Variable:
        """A new variable for a value."""
        made = self.variables[n] = Variable(self.kind(n))
        return made

    def write(self, items: Sequence[Code]) -> None:
        """Write instructions, and values by their numbers, which go to the stack."""
        work = list(items)[::-1]
        while work:
            item = work.pop()
            if type(item) is not int:
                self.code.append(item)
            elif item in self.variables:
                self.code.append((GET, self.variables[item]))
            else:
                work += reversed(self.steps(item))

    def steps(self, n: int) -> list[Code]:
        """What puts a value on the stack that is in no variable: operands and instructions, in order."""
        found = self._operation(n)
        if n in self.later and self.reads[n] > 1:
            found.append((TEE, self.variable(n)))
        return found

    def _operation(self, n: int) -> list[Code]:
        node = self._node(n)
        opcode = node[0]
        if opcode == _ADDRESS:
            return self._from_begin(*node[1:])
        if opcode == ops.CONST:
            return [number(node[1])]
        if opcode == ops.WHOLE:
            return [whole(node[1])]
        found = outcome(node)
        if found is not None:
            return [whole(found)]
        if opcode == ops.LOAD and self.graph.arrays[node[1]].own:
            return [(TAKE, self._place(node[2]))]
        if opcode == ops.LOAD:
            word, _ = self._element(node[1])
            address, offset = self._address(n)
            return [address, PLAIN[f"{word}.load"] + leb(offset)]
        if opcode == ops.TO_WHOLE:
            return [node[1], *plain("f64.floor i32.trunc_sat_f64_s")]
        if opcode == ops.FLOOR_DIVIDE:
            return self._divided(node[1], node[2])
        if opcode in _CHOICES:
            return [*node[2:], node[1], PLAIN["select"]]
        return [*operands(node), PLAIN[_INSTRUCTIONS[opcode]]]

    def _divided(self, a: int, b: int) -> list[Code]:
        """A quotient of whole numbers; in double precision it is never rounded up to a whole number."""
        node = self.graph.nodes[b]
        if node[0] == ops.WHOLE and node[1] > 0 and node[1].bit_count() == 1:
            return [a, whole(node[1].bit_length() - 1), PLAIN["i32.shr_s"]]
        real = PLAIN["f64.convert_i32_s"]
        return [a, real, b, real, *plain("f64.div f64.floor i32.trunc_sat_f64_s")]

    def _place(self, index: int) -> tuple[str, int]:
        """Where an element of memory of the kernel's own is."""
        return self.name, self.graph.nodes[index][1]

    def _element(self, array: int) -> tuple[str, int]:
        """Kind of an array's elements, and by how many bits an index is shifted."""
        return ("i32", 2) if self.graph.arrays[array].kind == ops.INTEGER else ("f64", 3)

    def _known_begin(self, array: int) -> int | None:
        """The first byte of an array, where that is known."""
        return self.places.at.get(self.places.same.get(array, array))

    def _address(self, n: int) -> tuple[Code, int]:
        """What puts an address on the stack for what is loaded or stored; bytes from there to the element."""
        array, (address, more) = self.graph.nodes[n][1], self.elements[n]
        begin = self._known_begin(array)
        offset = (begin or 0) + (more << self._element(array)[1])
        if address >= 0:
            return address, offset
        return (self._begin_of(array) if begin is None else whole(0)), offset

    def _from_begin(self, array: int, index: int) -> list[Code]:
        """What puts the address of an element on the stack: places that are known have known indices."""
        bytes_ = [index, whole(self._element(array)[1]), PLAIN["i32.shl"]]
        return [self._begin_of(array), *bytes_, PLAIN["i32.add"]]

    def _set(self, variables: Sequence[Variable], values: Sequence[int]) -> None:
        """Values to variables, all at once."""
        self.write([*values, *((SET, v) for v in reversed(variables))])

    # -- regions ------------------------------------------------------------------------------------

    def _region(self, region: Region, part: slice = slice(None)) -> None:
        for n in self.live.of(region, part):
            opcode = self.graph.nodes[n][0]
            if opcode == ops.STORE:
                self._store(n)
            elif opcode == ops.FOR:
                self._for(n)
            elif opcode == ops.WHILE:
                self._while(n)
            elif opcode == ops.COND:
                self._cond(n)
            elif opcode in CALLS:
                self._call(n)
            elif opcode == ops.ZEROS:
                self._zeros(n)
            elif opcode == ops.CHECK:
                self.write([self.graph.nodes[n][1], *plain("i32.eqz if")])
                self._fail(whole(self.live.failures[n]))
            elif opcode in (ops.SIN, ops.COS):
                self._sines(n, region)
            elif opcode not in _AT_ONCE and n not in self.later and self.reads[n]:
                self.write([n])
                self.code.append((SET, self.variable(n)))

    def _store(self, n: int) -> None:
        _, array, index, value = self.graph.nodes[n]
        if self.graph.arrays[array].own:
            self.write([value, (PUT, self._place(index))])
            return
        word, _ = self._element(array)
        address, offset = self._address(n)
        self.write([address, value, PLAIN[f"{word}.store"] + leb(offset)])

    def _call(self, n: int) -> None:
        node, kept = self.graph.nodes[n], sorted(self.live.needed_results[self.graph.nodes[n][1]])
        inside = self.live.arrays(self.graph.functions[node[1]])
        pairs = zip(inside, self.live.passed_arrays(n), strict=True)
        same = self.places.same
        places = [self._begin_of(k) for own, k in pairs if same[own] == own and self._moves(k)]
        if node[1] in self.works:
            places.append((GET, self.top))
        for values, read in zip(self.live.arguments(n), self.live.values_of(n), strict=True):
            self.write([*values, *places, (CALL_FUNCTION, self._name(node[1]))])
            status = Variable(I32)
            if node[1] in self.fails:
                self.code.append((SET, status))
            for k in reversed(kept):
                self.code.append((SET, self.variable(read[k])) if k in read else PLAIN["drop"])
            if node[1] in self.fails:
                self.code += [(GET, status), PLAIN["if"]]
                self._fail((GET, status))

    def _fail(self, status: Code) -> None:
        """Leave the function; the end of what an "if" has begun."""
        self.code += [whole(0) if kind == I32 else number(0.0) for kind in self.kinds]
        self.code += [status, *plain("return end")]

    def _zeros(self, n: int) -> None:
        """Memory for the rest of the region; sizes are compared with the room there is as real numbers."""
        node = self.graph.nodes[n]
        sizes, (_, shift) = node[2:], self._element(node[1])
        length, base, top = Variable(I32), Variable(I32), Variable(I32)
        real = PLAIN["f64.convert_i32_s"]
        wrong: list[Code] = [number(float(1 << shift))]
        for k in sizes:
            wrong += [k, real, PLAIN["f64.mul"]]
        wrong += [(TAKE, self.places.end), (GET, self.top), PLAIN["i32.sub"], real, PLAIN["f64.gt"]]
        for k in sizes:
            if self.graph.nodes[k][0] != ops.WHOLE:
                wrong += [k, whole(0), *plain("i32.lt_s i32.or")]
        self.write([*wrong, PLAIN["if"]])
        self._fail(whole(self.live.failures[n]))
        self.code += [(GET, self.top), (SET, base), (GET, base), whole(0), whole(1)]
        for k in sizes:
            self.write([k, PLAIN["i32.mul"]])
        # The next one begins at a place that 8 divides.
        self.code += [whole(shift), *plain("i32.shl"), (TEE, length), PLAIN["memory.fill"]]
        self.code += [(GET, base), (GET, length), *plain("i32.add"), whole(7), *plain("i32.add"), whole(-8)]
        self.code += [PLAIN["i32.and"], (SET, top)]
        self.begins[node[1]], self.top = base, top
        self._share(node[1])

    def _sines(self, n: int, region: Region) -> None:
        """A sine and a cosine of one angle."""
        if n in self.variables:
            return
        angle = self.graph.nodes[n][1]
        self.write([angle, (CALL_FUNCTION, NAME)])
        for opcode in (ops.COS, ops.SIN):  # the cosine is on top
            other = self.pairs.get((region.number, opcode, angle))
            self.code.append(PLAIN["drop"] if other is None else (SET, self.variable(other)))

    def _begin(self, n: int) -> tuple[list[Variable], list[int]]:
        """What a loop carries: set before it; what is carried on."""
        node, kept = self.graph.nodes[n], self.live.positions(n)
        region = self.graph.regions[node[1]]
        parameters = [loop_parameters(node, region)[k] for k in kept]
        self._set([self.variable(p) for p in parameters], [starts(node)[k] for k in kept])
        pairs = [(p, region.results[k]) for p, k in zip(parameters, kept, strict=True)]
        changed = [(self.variables[p], r) for p, r in pairs if p != r]
        for value in self.live.values[n]:
            self.variables[value] = self.variables[loop_parameters(node, region)[self.graph.nodes[value][2]]]
        return [v for v, _ in changed], [r for _, r in changed]

    def _for(self, n: int) -> None:
        _, number_of, count, *_ = self.graph.nodes[n]
        region = self.graph.regions[number_of]
        changed, results = self._begin(n)
        index = self.variable(region.parameters[0])
        self.code += [whole(0), (SET, index)]
        node = self.graph.nodes[count]
        always = node[0] == ops.WHOLE and node[1] > 0
        if not always:
            self.write([count])
            self.code += [whole(0), *plain("i32.gt_s if")]
        self.code += plain("loop")
        top = self.top
        self._region(region)
        self._set(changed, results)
        self.code += [(GET, index), whole(1), *plain("i32.add"), (TEE, index)]
        self.write([count])
        self.code += [*plain("i32.lt_s"), branch(0, True), *plain("end" if always else "end end")]
        self.top = top

    def _while(self, n: int) -> None:
        top = self.top
        region = self.graph.regions[self.graph.nodes[n][1]]
        changed, results = self._begin(n)
        self.code += plain("block loop")
        self._region(region, slice(0, region.tested))
        self.write([region.test])
        self.code += [*plain("i32.eqz"), branch(1, True)]
        self._region(region, slice(region.tested, None))
        self._set(changed, results)
        self.code += [branch(0), *plain("end end")]
        self.top = top

    def _cond(self, n: int) -> None:
        node, kept = self.graph.nodes[n], self.live.positions(n)
        branches = [self.graph.regions[k] for k in node[2:]]
        left = [Variable(self.kind(branches[0].results[k])) for k in kept]
        self.write([node[1]])
        for word, each in zip(("if", "else"), branches, strict=True):
            if word == "if" or left or self.live.of(each):
                self.code += plain(word)
            top = self.top
            self._region(each)
            self._set(left, [each.results[k] for k in kept])
            self.top = top
        self.code += plain("end")
        for value in self.live.values[n]:
            self.variables[value] = left[kept.index(self.graph.nodes[value][2])]


# -- Straight lines for a browser -------------------------------------------------------------------------
#
# Kernels without loops as WebAssembly modules: one state, its arrays at fixed places of a memory of the
# module's own.
#
# No compiler takes part. A browser compiles what it is given anew, so a translation of the recorded line is
# as fast as what LLVM writes; it is made ten times sooner and is little more than half as long.
#
# The module imports "zero" of "start", the number 0, and exports "memory" and "step".
#
# A module is kept with where its arrays lie (:class:`Module`). A host calls ``step()`` after it has written
# the inputs, and reads the outputs.

CHUNK = 3000  # operations of a function, about: browsers make slower code of longer, shorter are more bytes


@frozen
class Module:
    """A kernel as WebAssembly."""

    content: bytes  # of the file
    # inputs, outputs: (name, first byte, numbers) of each array of float64
    inputs: tuple[tuple[str, int, int], ...]
    outputs: tuple[tuple[str, int, int], ...]


class WebAssembly(Target):
    """A browser, or another host of WebAssembly."""

    name = "wasm"
    real = FLOAT64
    shares = False
    lanes = 1
    bits = 64

    @property
    def features(self) -> str:
        """What the host must know."""
        return "multi-value"

    @without_collector()
    def write(self, kernel: Planned) -> tuple[bytes, int]:
        """The module and where its arrays lie, as :func:`unpacked` reads them, and the numbers in these."""
        program = kernel.program
        graph, live = straight(program, CHUNK)
        outs = [(name, math.prod(shape)) for name, shape in program.outputs]
        *starts, size = accumulate((count for _, count in (*program.inputs, *outs)), initial=0)
        placed = [(n, 8 * at, count) for (n, count), at in zip((*program.inputs, *outs), starts, strict=True)]
        count = len(program.inputs)
        meta = json.dumps({"inputs": placed[:count], "outputs": placed[count:]}).encode()
        at = dict(zip(graph.functions[0].arrays, (at for _, at, _ in placed), strict=False))
        content = module(wasm_functions(graph, live, "step", at), ["step"], size)
        return struct.pack("<I", len(meta)) + meta + content, size

    def assemble(self, text: bytes) -> bytes:
        """The same."""
        return text

    def load(self, code: bytes) -> Loaded:
        """Not possible: WebAssembly does not run in this process."""
        raise CompilerMissing("WebAssembly runs in a browser")


WASM = WebAssembly()


def unpacked(code: bytes) -> Module:
    """The module that :meth:`WebAssembly.write` made."""
    (length,) = struct.unpack_from("<I", code)
    meta = json.loads(code[4 : 4 + length])
    return Module(code[4 + length :], *(tuple(map(tuple, meta[k])) for k in ("inputs", "outputs")))
