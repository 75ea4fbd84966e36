"""A program as a list of instructions for an interpreter, which also notes what its derivatives take.

What is too long to compile in seconds runs at once in this way. The interpreter (emit/interpreter.py)
goes through the list on plain numbers: it calls shared functions, and leaves out guarded blocks whose
condition does not hold. Each instruction whose value moves with a direction adds an entry to a *tape*,
the linear equation of its tangent in up to three others. Of a choice only the branch that was taken is
noted. So the tape has no branches and no calls, and serves all directions.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, sections 2.2, 3.1 and 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import count

import numpy as np

from robokit.engine.passes.forward_along import moving_nodes
from robokit.engine.passes.guards import Path, blocks, paths
from robokit.engine.passes.regions import borrowed_by
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.graph import Node
from robokit.engine.trace.ops import ADD, CALL, CONST, INPUT, LOOKUP, MUL, OPERATIONS, RESULT, SUB
from robokit.engine.trace.program import Program

COPY, PLUS, MINUS, FROM, SKIP, ENTER, LEAVE, STOP = range(len(OPERATIONS), len(OPERATIONS) + 8)
"""Instructions that are no operations: copy a value; c + a b, c - a b and a b - c, rounded twice as the two
operations are; go on elsewhere where a condition does not hold; go to a shared function; go back; the end."""

FIELDS = 9
"""Numbers of an instruction: operation, place of the value, places of operands a, b and c, and the places of
the tangents of the value and of a, b and c, 0 where there is none. A condition is c. SKIP and ENTER have the
instruction to go to as the place of the value, LOOKUP a table as its operand b."""


@dataclass
class Bytecode:
    """Instructions, and where numbers are.

    Place 0 holds 0, and has no tangent.

    Attributes:
        code: (n, FIELDS) instructions.
        constants: the first numbers in memory.
        inputs: (n, 3): input, offset and place of each scalar that is read.
        seeds: place of the scalar of each direction, 0 where nothing depends on it.
        results: place of each scalar of the outputs.
        slopes: place of the tangent of each scalar of the outputs, 0 where it has none.
        sizes: places in all, and the most entries of a tape.
    """

    code: np.ndarray
    constants: np.ndarray
    inputs: np.ndarray
    seeds: np.ndarray
    results: np.ndarray
    slopes: np.ndarray
    sizes: np.ndarray

    def arrays(self) -> list[np.ndarray]:
        """All of them, in order."""
        return [getattr(self, each.name) for each in fields(self)]


@dataclass
class _Line:
    """Instructions of one line, of nodes.

    Attributes:
        rows: (operation, value, operands a and b, operand c); the value may be the instruction to go to.
        last: the last instruction that reads a node.
    """

    rows: list[tuple[int, int, tuple[int, ...], int]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def add(self, op: int, value: int, operands: tuple[int, ...] = (), third: int = 0) -> None:
        """Append an instruction."""
        self.read(operands)
        if third:
            self.read((third,))
        self.rows.append((op, value, operands, third))

    def read(self, nodes: Sequence[int] | set[int]) -> None:
        """The next instruction reads these nodes."""
        self.last.update(dict.fromkeys(nodes, len(self.rows)))


def bytecode(program: Program, directions: Sequence[tuple[int, int]]) -> Bytecode:
    """The instructions of a program.

    Args:
        program: a graph without blocks with lanes.
        directions: (input, offset) of the scalar that each direction moves.
    """
    return _Assembler(program, directions).bytecode()


def _terms(program: Program) -> dict[int, int]:
    """Sums and differences, and the product in the same line that is a term of each and read nowhere else."""
    nodes, body = program.nodes, program.bodies()
    reads = Counter(x for n in program.order for x in nodes[n][1:])
    kept = {r for row in program.results for r in row} | {r for b in program.blocks for r in b.results}
    found = {}
    for n in program.order:
        if nodes[n][0] in (ADD, SUB):
            for x in nodes[n][1:]:
                if nodes[x][0] == MUL and reads[x] == 1 and x not in kept and body.get(x) == body.get(n):
                    found[n] = x
                    break
    return found


class _Assembler:
    """Makes the instructions of one program."""

    def __init__(self, program: Program, directions: Sequence[tuple[int, int]]) -> None:
        self.program, self.directions = program, directions
        self.of_input = {node[1:]: n for n, node in enumerate(program.nodes) if node[0] == INPUT}
        found = {self.of_input[place] for place in directions if place in self.of_input}
        self.moving = moving_nodes(program, dict.fromkeys(found))
        self.constants: dict[float, int] = {0.0: 0}
        self.terms = _terms(program)
        self.within = set(self.terms.values())
        self.place: dict[int, int] = {}

    def bytecode(self) -> Bytecode:
        """The instructions."""
        program = self.program
        body, path = program.bodies(), paths(program)
        own, insides = program.lines()
        self.borrowed = borrowed_by(program, [own, *insides], body, path)
        orders = [blocks(program, order, self.borrowed, path) for order in (own, *insides)]
        lines = [self._line(order, inside) for order, inside in orders]
        lines[0].add(STOP, 0)
        for line in lines[1:]:
            line.add(LEAVE, 0)
        outputs = [r for row in program.results for r in row]
        used = {x for line in lines for x in line.last} | {r for r in outputs if type(r) is int}
        for n in sorted(used):
            if n > 0 and program.nodes[n][0] == CONST:
                self._constant(program.nodes[n][1])
        for r in outputs:
            if type(r) is not int:
                self._constant(r)
        inputs = [(place, n) for place, n in self.of_input.items() if n in used]
        free = count(len(self.constants))
        self.place |= {n: next(free) for _, n in inputs}
        self._places(lines[0], {r for r in outputs if type(r) is int}, free)
        for block, line in zip(program.blocks, lines[1:], strict=True):
            self.place |= {p: next(free) for p in block.parameters}
            self._places(line, {r for r in block.results if type(r) is int}, free)
        code = self._written(lines)
        places = [self._at(r) if type(r) is int else self.constants[r] for r in outputs]
        return Bytecode(
            code,
            np.array(list(self.constants)),
            np.array([(*place, self.place[n]) for place, n in inputs], np.int32).reshape(-1, 3),
            np.array([self._slope(self.of_input.get(place, 0)) for place in self.directions], np.int32),
            np.array(places, np.int32),
            np.array([self._slope(r) if type(r) is int else 0 for r in outputs], np.int32),
            np.array([next(free), self._entries(lines)]),
        )

    def _line(self, order: Sequence[int], inside: Mapping[int, Path]) -> _Line:
        """The instructions of a line, in order of evaluation."""
        nodes, line = self.program.nodes, _Line()
        here: Path = ()
        skips: list[int] = []

        def go(path: Path) -> None:
            """Leave and enter guarded blocks until these conditions are around."""
            nonlocal here
            common = 0
            while common < min(len(path), len(here)) and path[common] == here[common]:
                common += 1
            while len(skips) > common:
                at = skips.pop()
                line.rows[at] = (SKIP, len(line.rows), (), line.rows[at][3])
            for condition in path[common:]:
                skips.append(len(line.rows))
                line.add(SKIP, 0, (), condition)
            here = path

        for n in order:
            path = inside.get(n, ())
            if path != here:
                go(path)
            node = nodes[n]
            if node[0] == CALL:
                self._call(line, n)
            elif node[0] == RESULT:
                block = self.program.blocks[called(self.program, node[1])]
                value = block.results[position(self.program, n)]
                line.add(COPY, n, (value if type(value) is int else -1 - self._constant(value),))
            elif len(node) == 4:
                line.add(node[0], n, node[2:], node[1])
            elif n in self.within:
                continue
            elif n in self.terms:
                product = self.terms[n]
                other = node[2] if node[1] == product else node[1]
                op = PLUS if node[0] == ADD else FROM if node[1] == product else MINUS
                line.add(op, n, nodes[product][1:], other)
            else:
                line.add(node[0], n, node[1:])
        go(())
        return line

    def _call(self, line: _Line, call: int) -> None:
        """Arguments are copied, then the function runs."""
        block = called(self.program, call)
        parameters = self.program.blocks[block].parameters
        for parameter, operand in zip(parameters, self.program.nodes[call][2:], strict=True):
            line.add(COPY, parameter, (operand,))
        line.read(self.borrowed[block])
        line.add(ENTER, block)

    def _constant(self, value: float) -> int:
        """Place of a constant."""
        return self.constants.setdefault(value, len(self.constants))

    def _places(self, line: _Line, kept: set[int], free: count[int]) -> None:
        """Places of the values of a line; a place is used again where the value is read for the last time."""
        place, again = self.place, list[int]()
        ending: dict[int, list[int]] = {}
        for k, (op, n, _, _) in enumerate(line.rows):
            if op < SKIP and n not in place:
                place[n] = again.pop() if again else next(free)
                if n not in kept:
                    ending.setdefault(max(line.last.get(n, k), k), []).append(place[n])
            if k in ending:
                again += ending.pop(k)

    def _at(self, n: int) -> int:
        """Place of a node's value."""
        if n < 0:
            return -1 - n
        node: Node = self.program.nodes[n]
        return self.constants[node[1]] if node[0] == CONST else self.place[n]

    def _slope(self, n: int) -> int:
        """Place of a node's tangent, 0 where it has none."""
        return self.place[n] if n in self.moving else 0

    def _written(self, lines: list[_Line]) -> np.ndarray:
        """All lines, one after the other."""
        begins = np.cumsum([0, *(len(line.rows) for line in lines)]).tolist()
        nodes, at, slope = self.program.nodes, self._at, self._slope
        code: list[tuple[int, ...]] = []
        for line, begin in zip(lines, begins, strict=False):
            for op, n, operands, c in line.rows:
                if op == SKIP:
                    code.append((op, begin + n, 0, 0, at(c), 0, 0, 0, 0))
                elif op == ENTER:
                    code.append((op, begins[1 + n], *[0] * 7))
                elif op > SKIP:
                    code.append((op, *[0] * 8))
                elif op == LOOKUP:
                    table, index = operands
                    code.append((op, self.place[n], at(index), nodes[table][1], *[0] * 5))
                else:
                    a, b = operands if len(operands) == 2 else (*operands, 0)
                    second, third = at(b) if len(operands) == 2 else 0, at(c) if c else 0
                    tangents = (slope(n), slope(a), slope(b), slope(c)) if n in self.moving else (0,) * 4
                    code.append((op, self.place[n], at(a), second, third, *tangents))
        return np.array(code, np.int32)

    def _entries(self, lines: list[_Line]) -> int:
        """The most entries of a tape."""
        moving = [sum(op < SKIP and n in self.moving for op, n, _, _ in line.rows) for line in lines]
        return moving[0] + sum(moving[1 + n] for op, n, _, _ in lines[0].rows if op == ENTER)
