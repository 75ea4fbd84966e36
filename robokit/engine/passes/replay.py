"""A program replayed over other scalars: numbers, arrays, or the tracer's on another graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from robokit.engine.trace import ops
from robokit.engine.trace.graph import Program
from robokit.engine.trace.record import called, lane, noted, position
from robokit.engine.trace.scalar import Truth
from robokit.engine.trace.scalar import where as traced_where
from robokit.spatial import control_flow, linear
from robokit.spatial import scalars as generic
from robokit.spatial.control_flow import call, vmap

# -- Operations on scalars of any kind --------------------------------------------------------------------


def _still(x: Any, _: Any, *beside: Any) -> Any:
    """A number whose derivative is 0, where that is to be differentiated."""
    notes = noted()
    return x if notes is None else notes.still(x, *beside)


def chosen(condition: Any, a: Any, b: Any, opcode: int = ops.SELECT) -> Any:
    """As ``where``, but recorded with the same kind of choice, so that a guarded choice stays guarded."""
    if type(condition) is Truth:
        return traced_where(condition, a, b, opcode)
    return generic.where(condition, a, b)


def _logic(name: str, usual: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on outcomes of comparisons; CasADi's expressions have no ~, & and |, but functions."""

    def run(*operands: Any) -> Any:
        own = (generic.library(x, name) for x in operands)
        return next(filter(None, own), usual)(*operands)

    return run


opposite = _logic("logic_not", lambda a: not a if type(a) is bool else ~a)


Operations = Mapping[int, Callable[..., Any]]  # by opcode

INTERPRET: Operations = {
    ops.DIV: operator.truediv,
    ops.SQRT: generic.sqrt,
    ops.SIN: generic.sin,
    ops.COS: generic.cos,
    ops.ABS: abs,
    ops.NEG: operator.neg,
    ops.SELECT: chosen,
    ops.GUARD: lambda c, a, b: chosen(c, a, b, ops.GUARD),
    ops.FLOOR: generic.floor,
    ops.LT: operator.lt,
    ops.LE: operator.le,
    ops.EQ: operator.eq,
    ops.AND: _logic("logic_and", operator.and_),
    ops.OR: _logic("logic_or", operator.or_),
    ops.NOT: opposite,
    ops.STILL: _still,
}
"""How each operation is done on scalars of any kind, where the table's own function is for plain numbers."""


# -- Programs ---------------------------------------------------------------------------------------------


def node_values(program: Program, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """The value of each node on other scalars; None where no output needs it."""
    value = leaves(program, arguments)
    interpret(program.nodes, value, program.order)
    return value


def evaluated(program: Program, *arguments: Sequence[float]) -> list[list[float]]:
    """The outputs on floats, one sequence of them for each input: each operation as its table has it.

    With the sines of the C library, this is what compiled code is compared with.
    """
    numbers = [[float(x) for x in row] for row in arguments]
    return [[float(x) for x in row] for row in replayed(program, numbers, ops.ON_NUMBERS)]


def replayed(
    program: Program, arguments: Sequence[Sequence[Any]], operations: Operations = INTERPRET
) -> list[list[Any]]:
    """The outputs of a program for other scalars; calls are recorded again if the recording of these takes
    them.

    ``program``: recorded with ``shares="asked"``; ``arguments``: of the program; ``operations``: how each of
    its operations is done.
    """
    nodes, value, answers = program.nodes, leaves(program, arguments), dict[int, list[list[Any]]]()
    own, bodies = program.lines()

    def body(k: int, *column: Any) -> list[Any]:
        block = program.blocks[k]
        for parameter, x in zip(block.parameters, column, strict=True):
            value[parameter] = x
        interpret(nodes, value, bodies[k], operations)
        return [value[r] if type(r) is int else r for r in block.results]

    functions = [partial(body, k) for k in range(len(bodies))]

    def answer(number: int) -> list[list[Any]]:
        k = called(program, number)
        block, operands = program.blocks[k], [value[n] for n in nodes[number][2:]]
        if block.lanes == 1:
            return [call(functions[k], *operands)]
        rows = [operands[j :: len(block.parameters)] for j in range(len(block.parameters))]
        return vmap(functions[k])(*rows)

    marks, told, waiting = program.marks, 0, list[int]()
    for number in own:
        op = nodes[number][0]
        begins = told < len(marks) and marks[told] <= number
        if begins or op in (ops.CALL, ops.RESULT):
            interpret(nodes, value, waiting, operations)
            waiting = []
        while told < len(marks) and marks[told] <= number:
            generic.iteration_begins()
            told += 1
        if op == ops.CALL:
            answers[number] = answer(number)
        elif op == ops.RESULT:
            value[number] = answers[nodes[number][1]][lane(program, number)][position(program, number)]
        else:
            waiting.append(number)
    interpret(nodes, value, waiting, operations)
    for _ in marks[told:]:
        generic.iteration_begins()
    return [[value[r] if type(r) is int else r for r in row] for row in program.results]


def leaves(program: Program, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of inputs and constants; None for all other nodes."""
    nodes = program.nodes
    value: list[Any] = [None] * len(nodes)
    for number, node in enumerate(nodes):
        op = node[0]
        if op == ops.INPUT:
            value[number] = arguments[node[1]][node[2]]
        elif op == ops.CONST:
            value[number] = node[1]
    return value


def interpret(
    nodes: Sequence[Any], value: list[Any], numbers: Iterable[int], operations: Operations = INTERPRET
) -> None:
    """Compute the values of some nodes, in order."""
    for number in numbers:
        node = nodes[number]
        op = node[0]
        if op == ops.MUL:
            value[number] = value[node[1]] * value[node[2]]
        elif op == ops.ADD:
            value[number] = value[node[1]] + value[node[2]]
        elif op == ops.SUB:
            value[number] = value[node[1]] - value[node[2]]
        elif op == ops.SOLVED:
            _solve(nodes, value, number)
        else:
            value[number] = operations[op](*[value[operand] for operand in node[1:]])


def _solve(nodes: Sequence[Any], value: list[Any], number: int) -> None:
    """One of the numbers that solve an equation.

    Where that is to be differentiated in turn, all of them are noted, and the residuals computed again: as
    functions of the numbers that solve the equation, no longer of what was found for them.
    """
    equation, notes = Equation(nodes, number), noted()
    if notes is None:
        value[number] = value[equation.at[number - equation.first]]
    elif any(value[n] is not value[v] for n, v in zip(equation.numbers, equation.at, strict=True)):
        rows = equation.at, equation.residuals, equation.right, equation.solved
        found = notes.solved(*([value[n] for n in row] for row in rows))
        for n, v, x in zip(equation.numbers, equation.at, found, strict=True):
            value[n] = value[v] = x
        interpret(nodes, value, equation.between(equation.at, equation.residuals))


# -- Solved equations ------------------------------------------------------------------------------------
#
# Derivatives of numbers that solve an equation, by the implicit function theorem (trace/record.py).
#
# Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 15.1.


def moved_by(nodes: Sequence[Any], node: Any) -> Sequence[int]:
    """The operands on which the derivative of a node depends; for a solution, only its residuals."""
    if node[0] != ops.SOLVED:
        return node[1:]
    count = int(nodes[node[2]][1])
    return node[3 + count : 3 + 2 * count]


Column = Callable[[list[int], dict[int, Any]], None]  # adds to tangents those of a line's nodes
Interpret = Callable[[list[int]], None]  # computes the values of some nodes, in order

Pull = Callable[[list[int], dict[int, Any], Sequence[int]], list[Any]]
"""The adjoints of the last nodes, where those of others are known; a line of nodes is between them."""


class Equation:
    """The equation that a node (SOLVED, i, n, v..., r..., b..., x...) belongs to.

    ``first``: number of the node of its first unknown; those of the others follow; ``at``: nodes of the
    unknown numbers; ``residuals``: nodes of the residuals; ``right``, ``solved``: nodes of any right-hand
    side and of what the function's own solver gives for it, or none.
    """

    def __init__(self, nodes: Sequence[Any], number: int) -> None:
        self.nodes, node = nodes, nodes[number]
        count = int(nodes[node[2]][1])
        rows = [node[3 + k * count : 3 + (k + 1) * count] for k in range(4)]
        self.at, self.residuals, self.right, self.solved = rows
        self.first = number - int(nodes[node[1]][1])

    @property
    def numbers(self) -> range:
        """The nodes of the solution."""
        return range(self.first, self.first + len(self.at))

    def between(self, begin: Sequence[int], end: Sequence[int], moving: bool = False) -> list[int]:
        """What depends on some nodes and leads to others, in order; if `moving`, with a derivative."""
        lowest, nodes = min(begin), self.nodes
        reached, waiting = set[int](), list(end)
        while waiting:
            n = waiting.pop()
            if n > lowest and n not in reached and nodes[n][0] > ops.CONST:
                reached.add(n)
                waiting += nodes[n][1:]
        depends = set(begin)
        for n in sorted(reached):
            operands = moved_by(nodes, nodes[n]) if moving else nodes[n][1:]
            if not (moving and nodes[n][0] in ops.JUMPS) and not depends.isdisjoint(operands):
                depends.add(n)
        return sorted((depends & reached) - set(begin))

    def factors(self, column: Column) -> linear.Factors:
        """Factors of the derivatives of the residuals by the unknown numbers."""
        columns = []
        for v in self.at:
            found = {v: 1.0}
            column(self.between([v], self.residuals, moving=True), found)
            columns.append([found.get(r, 0.0) for r in self.residuals])
        return linear.lu([list(row) for row in zip(*columns, strict=True)])

    def tangents(
        self,
        value: list[Any],
        column: Column,
        interpret: Interpret,
        known: dict[int, Any],
        found: Mapping[int, Any],
    ) -> list[Any]:
        """The derivatives of the solution along a direction.

        Args:
            value: of each node.
            column: as :data:`Column`.
            interpret: as :data:`Interpret`.
            known: the equation's factors, as far as they are known, by its first node.
            found: tangents of the residuals.
        """
        rate = [-found.get(r, 0.0) for r in self.residuals]
        if not self.right:
            if self.first not in known:
                known[self.first] = self.factors(column)
            return linear.lu_solve(known[self.first], rate)
        line = self.between(self.right, self.solved)

        def solve(b: Sequence[Any]) -> list[Any]:
            for n, x in zip(self.right, b, strict=True):
                value[n] = x
            interpret(line)
            return [value[n] for n in self.solved]

        def product(x: Sequence[Any]) -> list[Any]:
            along = dict(zip(self.at, x, strict=True))
            column(self.between(self.at, self.residuals, moving=True), along)
            return [along.get(r, 0.0) - d for r, d in zip(self.residuals, rate, strict=True)]

        # What is differentiated again is not how the solver works.
        return control_flow.solution(product, solve(rate), solve=solve)

    def adjoints(self, weights: Sequence[Any], column: Column, pull: Pull) -> list[Any]:
        """The adjoints of the residuals for those of the solution."""
        if not self.right:
            return [-x for x in linear.lu_solve_transposed(self.factors(column), weights)]

        def solve(b: Sequence[Any]) -> list[Any]:
            seeds = dict(zip(self.solved, b, strict=True))
            return pull(self.between(self.right, self.solved), seeds, self.right)

        def product(x: Sequence[Any]) -> list[Any]:
            seeds = dict(zip(self.residuals, x, strict=True))
            found = pull(self.between(self.at, self.residuals), seeds, self.at)
            return [a - b for a, b in zip(found, weights, strict=True)]

        return [-x for x in control_flow.solution(product, solve(weights), solve=solve)]
