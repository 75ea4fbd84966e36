"""Derivatives of a function, as functions again.

A function is recorded once, on a graph of its own, and its program is replayed over the scalars that the
new function is given, together with its derivatives. Where these are the tracer's, equal operations are found
again on their graph. So derivatives of derivatives are made by the same functions.

A choice is differentiated branch by branch: what was computed for the other branch may be NaN, and so may its
derivative. ``floor`` changes in jumps: its derivative is 0.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from robokit.engine.passes.replay import Equation, chosen, interpret, leaves, moved_by, node_values, opposite
from robokit.engine.signature import FlatFunction
from robokit.engine.trace import ops
from robokit.engine.trace.graph import NODE_BUDGET, Program, Shares
from robokit.engine.trace.record import called, position, trace
from robokit.engine.trace.scalar import Scalar
from robokit.spatial import control_flow

# -- Forward mode ----------------------------------------------------------------------------------------
#
# Forward mode, one direction after the other: of each node the derivative along it, where it depends on it.
#
# Which nodes depend on which directions, and matter to an output, is found first, as sets of bits. One
# direction after the other, because few values then live at the same time: the derivatives of a humanoid
# compile in less than half the time that they take when each node has all its tangents at once, and run
# quicker.
#
# Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, sections 3.1 and 7.1 (sparse vectors).

Tangents = dict[int, Any]


def tangents(
    program: Program, value: list[Any], seeds: Mapping[tuple[int, int], Tangents]
) -> list[list[Tangents]]:
    """The derivatives of all outputs along some directions.

    ``program``: what to differentiate; ``value``: of each node, as ``node_values`` gives them; ``seeds``:
    (input, offset) -> {direction: derivative of that scalar along the direction}; directions are numbered
    from 0. Returns for each output the derivatives of its scalars; a direction that makes no difference is
    missing.
    """
    nodes = program.nodes
    begin = {n: seeds[node[1:]] for n, node in enumerate(nodes) if node[0] == ops.INPUT and node[1:] in seeds}
    slopes: dict[int, Any] = {}
    rows: list[list[Tangents]] = [[{} for _ in row] for row in program.results]
    for k, line in enumerate(_lines(program, begin)):
        found = {n: d[k] for n, d in begin.items() if k in d}
        column(nodes, value, slopes, line, found)
        for row, results in zip(rows, program.results, strict=True):
            for entry, r in zip(row, results, strict=True):
                if type(r) is int and r in found:
                    entry[k] = found[r]
    return rows


def _lines(program: Program, begin: Mapping[int, Tangents]) -> list[list[int]]:
    """For each direction the nodes that depend on it and on which an output depends, in order."""
    matters = _matters(program, {n: sum(1 << k for k in directions) for n, directions in begin.items()})
    lines: list[list[int]] = [[] for _ in range(max(map(int.bit_length, matters), default=0))]
    for number in program.order:
        found = matters[number]
        while found:
            lowest = found & -found
            lines[lowest.bit_length() - 1].append(number)
            found ^= lowest
    return lines


def _matters(program: Program, begin: Mapping[int, int]) -> list[int]:
    """For each node the directions, as bits, that it depends on and on which an output depends by it.

    A node of a body has those of all calls. ``begin``: directions along which some nodes change.
    """
    nodes, order = program.nodes, program.order
    reads = {n: moved_by(nodes, nodes[n]) for n in order if nodes[n][0] == ops.SOLVED}
    arguments: list[tuple[int, int]] = []  # a parameter, and what it is in a call
    for n in order if program.blocks else ():
        if nodes[n][0] == ops.CALL:
            arguments += zip(program.blocks[called(program, n)].parameters, nodes[n][2:], strict=True)
            reads[n] = ()
        elif nodes[n][0] == ops.RESULT:
            reads[n] = (int(program.blocks[called(program, nodes[n][1])].results[position(program, n)]),)
    depends, matters = [0] * len(nodes), [0] * len(nodes)
    for number, directions in begin.items():
        depends[number] = directions
    more = True
    while more:
        for number in order:
            if nodes[number][0] not in ops.JUMPS:
                found = 0
                for operand in reads.get(number, nodes[number][1:]):
                    found |= depends[operand]
                depends[number] = found
        more = False
        for parameter, operand in arguments:
            more = more or bool(depends[operand] & ~depends[parameter])
            depends[parameter] |= depends[operand]
    for r in program.returned():
        matters[r] = depends[r]
    more = True
    while more:
        for number in reversed(order):
            found = matters[number]
            if found:
                for operand in reads.get(number, nodes[number][1:]):
                    matters[operand] |= found & depends[operand]
        more = False
        for parameter, operand in arguments:
            found = matters[parameter] & depends[operand]
            more = more or bool(found & ~matters[operand])
            matters[operand] |= found
    return matters


def column(
    nodes: Sequence[Any], value: list[Any], slopes: dict[int, Any], line: list[int], found: dict[int, Any]
) -> None:
    """Add to the tangents of the inputs those of the nodes of a line.

    ``nodes``, ``value``: of the program; ``slopes``: of quotients, functions and solved equations, by node,
    as far as they are known; ``line``: numbers of nodes; ``found``: node -> tangent; a node without one does
    not depend on the direction.
    """
    get = found.get
    for number in line:
        node = nodes[number]
        op = node[0]
        if op == ops.MUL:
            _, a, b = node
            da, db = get(a), get(b)
            if db is None:
                d = da * value[b] if da is not None else None
            else:
                d = db * value[a] if da is None else da * value[b] + db * value[a]
        elif op == ops.ADD:
            da, db = get(node[1]), get(node[2])
            d = db if da is None else da if db is None else da + db
        elif op == ops.SUB:
            da, db = get(node[1]), get(node[2])
            if db is None:
                d = da
            else:
                d = -db if da is None else da - db
        elif op in (ops.SELECT, ops.GUARD):
            _, c, a, b = node
            d = chosen(value[c], get(a, 0.0), get(b, 0.0), op)
        elif op == ops.DIV:
            _, a, b = node
            da, db = get(a), get(b)
            if number not in slopes:
                # 1 / b is the quotient itself where a is 1.
                inverse = value[number] if type(value[a]) is float and value[a] == 1.0 else 1.0 / value[b]
                slopes[number] = inverse, -(inverse * value[number])
            inverse, by_b = slopes[number]
            if db is None:
                d = da * inverse if da is not None else None
            else:
                d = db * by_b if da is None else da * inverse + db * by_b
        elif op == ops.SOLVED:
            d = _solution(nodes, value, slopes, number, found)
        else:
            d = get(node[1])
            if d is not None:
                if number not in slopes:
                    slope = ops.OPERATIONS[op].slopes[0]
                    assert slope is not None
                    slopes[number] = slope(1.0, value[number], value[node[1]])
                d = d * slopes[number]
        if d is not None and (d.__class__ is not float or d != 0.0):
            found[number] = d


def _solution(
    nodes: Sequence[Any], value: list[Any], slopes: dict[int, Any], number: int, found: dict[int, Any]
) -> Any:
    """The tangent of one of the numbers that solve an equation; those of all are found at the first one."""
    if number in found:
        return found[number]
    equation, own = Equation(nodes, number), dict[int, Any]()
    line = equation.between(equation.at, equation.residuals, moving=True)
    for n in line:
        found.pop(n, None)

    def along(line: list[int], found: dict[int, Any]) -> None:
        column(nodes, value, own, line, found)

    along(line, found)  # again: the residuals may have been played at other numbers
    if all(found.get(r) is None for r in equation.residuals):
        return None
    rates = equation.tangents(value, along, lambda some: interpret(nodes, value, some), slopes, found)
    found.update(zip(equation.numbers, rates, strict=True))
    return found[number]


class _Along:
    """Values of a program's nodes and their derivatives along one direction, as far as they are computed.

    ``program``: what to differentiate; ``arguments``: of the program; ``seeds``: (input, offset) ->
    derivative of that scalar along the direction.
    """

    def __init__(
        self, program: Program, arguments: Sequence[Sequence[Any]], seeds: Mapping[tuple[int, int], Any]
    ) -> None:
        nodes = program.nodes
        self.program, self.value = program, leaves(program, arguments)
        self.found = {
            n: seeds[node[1:]] for n, node in enumerate(nodes) if node[0] == ops.INPUT and node[1:] in seeds
        }
        matters = _matters(program, dict.fromkeys(self.found, 1))
        self.moving = {n for n, along in enumerate(matters) if along}
        self.own, self.bodies = program.lines()
        self.places = [self._places(block) for block in range(len(program.blocks))]
        self.answers: dict[int, dict[int, tuple[Any, Any]]] = {}
        """Of each call the values that follow from its arguments, and their derivatives."""
        self.functions: dict[int, Callable[..., list[Any]]] = {}
        """Of each block its body with derivatives, the same function for all calls."""

    def run(self) -> tuple[list[Any], list[list[Any]]]:
        """The values of all nodes (as ``node_values``), and the derivatives of each output's scalars."""
        self.interpret(self.own)
        value, get = self.value, self.found.get
        rows = [[get(r, 0.0) if type(r) is int else 0.0 for r in row] for row in self.program.results]
        return value, rows

    def interpret(self, order: Sequence[int]) -> None:
        """Values and derivatives of some nodes, in order."""
        nodes, value, found, moving = self.program.nodes, self.value, self.found, self.moving
        slopes: dict[int, Any] = {}
        for line, some in groupby(order, lambda n: nodes[n][0] not in (ops.CALL, ops.RESULT)):
            numbers = list(some)
            if line:
                interpret(nodes, value, numbers)
                column(nodes, value, slopes, [n for n in numbers if n in moving], found)
                continue
            for n in numbers:
                if nodes[n][0] == ops.CALL:
                    self.answers[n] = self.call(n)
                else:
                    self.result(n)

    def call(self, number: int) -> dict[int, tuple[Any, Any]]:
        """The value and the derivative of each node that a call returns."""
        block = called(self.program, number)
        parameters, body = self.program.blocks[block].parameters, self.bodies[block]
        operands = self.program.nodes[number][2:]
        count, moving = len(parameters), [k for k, p in enumerate(parameters) if p in self.moving]
        arguments = [self.value[n] for n in operands] + [self.found.get(operands[k], 0.0) for k in moving]
        places = self.places[block]
        moved = [n for n in places if n in self.moving]

        def function(*arguments: Any) -> list[Any]:
            """The body, with derivatives."""
            for n, x in zip(parameters, arguments[:count], strict=True):
                self.value[n] = x
            for n in (*parameters, *body):
                self.found.pop(n, None)
            self.found.update(zip([parameters[k] for k in moving], arguments[count:], strict=True))
            self.interpret(body)
            return [self.value[n] for n in places] + [self.found.get(n, 0.0) for n in moved]

        answers = control_flow.call(self.functions.setdefault(block, function), *arguments)
        slopes = dict(zip(moved, answers[len(places) :], strict=True))
        return {n: (x, slopes.get(n, 0.0)) for n, x in zip(places, answers, strict=False)}

    def _places(self, block: int) -> list[int]:
        """The nodes of a body whose values are returned."""
        inside = {*self.program.blocks[block].parameters, *self.bodies[block]}
        return list(dict.fromkeys(r for r in self.program.blocks[block].returned if r in inside))

    def result(self, number: int) -> None:
        """One of the values of a call, and its derivative."""
        call = self.program.nodes[number][1]
        at = int(self.program.blocks[called(self.program, call)].results[position(self.program, number)])
        same_each_time = self.value[at], self.found.get(at, 0.0)
        self.value[number], slope = self.answers[call].get(at, same_each_time)
        if number in self.moving:
            self.found[number] = slope


# -- Reverse mode ----------------------------------------------------------------------------------------
#
# Reverse mode: one adjoint a node, from one output back to all inputs.
#
# The adjoint of what was computed for a branch that was not taken is 0, but 0 times a slope that is
# infinite is NaN. So it is dropped where it would leave the nodes that only that branch needs.
#
# Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.2.


def adjoints(
    program: Program, value: list[Any], seeds: Mapping[int | float, Any]
) -> dict[tuple[int, int], Any]:
    """Reverse mode.

    ``program``: what to differentiate; ``value``: of each node, as :func:`node_values` gives them; ``seeds``:
    node -> weight; constants have none. Returns (input, offset) -> derivative of the weighted sum of these
    nodes; a scalar that makes no difference is missing.
    """
    nodes = program.nodes
    ends = [number for number, node in enumerate(nodes) if node[0] == ops.INPUT]
    found = _backward(nodes, program.order, value, seeds, ends)
    return {nodes[number][1:]: found[number] for number in ends if found[number] is not None}


def _backward(
    nodes: Sequence[Any],
    order: Sequence[int],
    value: list[Any],
    seeds: Mapping[Any, Any],
    ends: Iterable[int],
) -> list[Any]:
    """Adjoints of nodes, where those of some are known; of the ends they hold whatever is chosen."""
    needs = _needs(nodes, order, seeds, ends)
    holds = _Conditions(value).holds
    found: list[Any] = [None] * len(nodes)
    for number, weight in seeds.items():
        if type(number) is int:
            found[number] = weight

    def give(operand: int, d: Any, need: Need) -> None:
        """Add to an operand's adjoint what matters under a condition."""
        if d.__class__ is float and d == 0.0:
            return
        if need is not ALWAYS and needs[operand] != need:
            d = chosen(holds(need), d, 0.0)
        before = found[operand]
        found[operand] = d if before is None else before + d

    for number in reversed(order):
        d = found[number]
        if d is None:
            continue
        node = nodes[number]
        op = node[0]
        if op in ops.JUMPS:
            continue
        need = needs[number]
        if op in (ops.SELECT, ops.GUARD):
            _, c, a, b = node
            for operand, branch in ((a, True), (b, False)):
                if nodes[operand][0] != ops.CONST:
                    give(operand, d, _under(need, c, branch))
        elif op == ops.DIV:
            _, a, b = node
            share = d / value[b]
            give(a, share, need)
            if nodes[b][0] != ops.CONST:
                give(b, -(share * value[number]), need)
        elif op == ops.SOLVED:
            equation = Equation(nodes, number)
            need, weights = _weights(equation, needs, holds, found)
            for operand, d in zip(equation.residuals, _residuals(equation, value, weights), strict=True):
                if nodes[operand][0] != ops.CONST:
                    give(operand, d, need)
        else:
            operands = [value[operand] for operand in node[1:]]
            for operand, slope in zip(node[1:], ops.OPERATIONS[op].slopes, strict=True):
                if slope is not None and nodes[operand][0] != ops.CONST:
                    give(operand, slope(d, value[number], *operands), need)
    return found


def _weights(
    equation: Equation, needs: Sequence[Need], holds: Callable[[Need], Any], found: list[Any]
) -> tuple[Need, list[Any]]:
    """Where a solution matters, and the adjoints of its numbers, which are done with."""
    moved = [n for n in equation.numbers if found[n] is not None]
    whole = functools.reduce(_joined, [needs[n] for n in moved])
    weights = [0.0] * len(equation.at)
    for n in moved:
        d, found[n] = found[n], None
        weights[n - equation.first] = d if needs[n] in (whole, ALWAYS) else chosen(holds(needs[n]), d, 0.0)
    return whole, weights


def _residuals(equation: Equation, value: list[Any], weights: Sequence[Any]) -> list[Any]:
    """Adjoints of the residuals of an equation, for those of its solution."""
    nodes = equation.nodes

    def pull(line: list[int], seeds: dict[int, Any], ends: Sequence[int]) -> list[Any]:
        own = _backward(nodes, line, value, seeds, ends)
        return [0.0 if own[n] is None else own[n] for n in ends]

    def along(line: list[int], tangents: dict[int, Any]) -> None:
        column(nodes, value, {}, line, tangents)

    return equation.adjoints(weights, along, pull)


Path = tuple[tuple[int, bool], ...]  # choices that must all fall so: (node of the condition, which way)
Need = frozenset[Path]  # where a value matters: along any of these paths

ALWAYS: Need = frozenset({()})

MOST_PATHS = 16  # paths that are told apart; a value with more of them counts as needed always


def _needs(
    nodes: Sequence[Any], order: Sequence[int], seeds: Iterable[int | float], ends: Iterable[int]
) -> list[Need]:
    """Under which conditions each node makes a difference to the nodes of the seeds."""
    needs: list[Need] = [frozenset()] * len(nodes)
    for end in ends:  # their adjoints go out: nothing of another branch may be left in them
        needs[end] = ALWAYS
    for number in seeds:
        if type(number) is int:
            needs[number] = ALWAYS
    for number in reversed(order):
        need = needs[number]
        if not need:
            continue
        node = nodes[number]
        if node[0] in (ops.SELECT, ops.GUARD):
            _, c, a, b = node
            needs[a] = _joined(needs[a], _under(need, c, True))
            needs[b] = _joined(needs[b], _under(need, c, False))
        else:
            for operand in node[1:] if node[0] != ops.SOLVED else moved_by(nodes, node):
                if needs[operand] is not need:
                    needs[operand] = _joined(needs[operand], need)
    return needs


def _under(need: Need, condition: int, branch: bool) -> Need:
    """What a branch of a choice is needed for."""
    choice = (condition, branch)
    return frozenset(path if choice in path else (*path, choice) for path in need)


def _joined(a: Need, b: Need) -> Need:
    """Needed for the one or the other."""
    if a is ALWAYS or b is ALWAYS or not a:
        return ALWAYS if a is ALWAYS else b
    paths = set(a)
    for path in b:
        while path and (*path[:-1], (path[-1][0], not path[-1][1])) in paths:  # both ways: the choice is free
            paths.remove((*path[:-1], (path[-1][0], not path[-1][1])))
            path = path[:-1]
        paths.add(path)
    return ALWAYS if () in paths or len(paths) > MOST_PATHS else frozenset(paths)


class _Conditions:
    """Conditions of needs, each computed once."""

    def __init__(self, value: Sequence[Any]) -> None:
        self._value = value
        self._known: dict[Need | Path, Any] = {}

    def holds(self, need: Need) -> Any:
        """Whether a value makes a difference."""
        if need not in self._known:
            paths = [self._path(path) for path in sorted(need)]
            self._known[need] = functools.reduce(operator.or_, paths)
        return self._known[need]

    def _path(self, path: Path) -> Any:
        if path not in self._known:
            ways = [self._value[c] if way else opposite(self._value[c]) for c, way in path]
            self._known[path] = functools.reduce(operator.and_, ways)
        return self._known[path]


# -- Derivatives of functions ----------------------------------------------------------------------------

Inputs = Sequence[tuple[str, int]]
Outputs = Sequence[tuple[str, tuple[int, ...]]]


class Recorded:
    """A function on its own graph, recorded at the first use.

    The program of a function is kept only where it is played on plain numbers, state by state.
    """

    def __init__(self, function: FlatFunction, inputs: Inputs, outputs: Outputs) -> None:
        self.function, self.inputs, self.outputs = function, list(inputs), list(outputs)
        self._program: Program | None = None

    def program(self, arguments: Sequence[Sequence[Any]], calls: bool = False) -> Program:
        """The program, for such arguments.

        ``arguments``: that it is to be played on; ``calls``: whether functions that it takes several times
        may be recorded once, where the arguments' graph does so.
        """
        if self._program is not None:
            return self._program
        graph = next((x.graph for row in arguments for x in row if type(x) is Scalar), None)
        shares: Shares = False
        if calls and graph is not None and graph.shared is not None:
            shares = "large" if graph.large else True
        program = trace(self.function, self.inputs, self.outputs, NODE_BUDGET, shares=shares, equations=True)
        if graph is None:
            self._program = program
        return program


def jacobian(function: FlatFunction, inputs: Inputs, outputs: Outputs, of: Sequence[int]) -> FlatFunction:
    """The function of the derivatives of all outputs with respect to some inputs, by forward mode.

    ``function``: to differentiate; ``inputs``: (name, number of scalars) of each; ``outputs``: (name, shape)
    of each; ``of``: numbers of the inputs. Returns a function of the same inputs. Its outputs are, for each
    output and for each of these inputs, the matrix (scalars of the output) x (scalars of the input), row by
    row.
    """
    recorded = Recorded(function, inputs, outputs)
    begins = [sum(inputs[k][1] for k in of[:i]) for i in range(len(of))]

    def derivatives(*arguments: Sequence[Any]) -> list[list[Any]]:
        program = recorded.program(arguments)
        seeds = {
            (k, j): {first + j: 1.0} for first, k in zip(begins, of, strict=True) for j in range(inputs[k][1])
        }
        rows = tangents(program, node_values(program, arguments), seeds)
        return [
            [row.get(first + j, 0.0) for row in output for j in range(inputs[k][1])]
            for output in rows
            for first, k in zip(begins, of, strict=True)
        ]

    return derivatives


def gradient(function: FlatFunction, inputs: Inputs, outputs: Outputs, of: Sequence[int]) -> FlatFunction:
    """As :func:`jacobian`, by reverse mode: some five times the function's operations an output scalar."""
    recorded = Recorded(function, inputs, outputs)

    def derivatives(*arguments: Sequence[Any]) -> list[list[Any]]:
        program = recorded.program(arguments)
        value = node_values(program, arguments)
        rows = [[adjoints(program, value, {r: 1.0}) for r in row] for row in program.results]
        return [
            [found.get((k, j), 0.0) for found in output for j in range(inputs[k][1])]
            for output in rows
            for k in of
        ]

    return derivatives


def along(
    function: FlatFunction, inputs: Inputs, outputs: Outputs, of: Sequence[int]
) -> Callable[..., tuple[list[list[Any]], list[list[Any]]]]:
    """The function of the derivatives of all outputs along a direction of some inputs.

    ``function``, ``inputs``, ``outputs``, ``of``: as in :func:`jacobian`. Returns a function of the same
    inputs, then a direction for each of these inputs, of as many scalars. It gives the outputs of the
    function and their derivatives.
    """
    recorded = Recorded(function, inputs, outputs)
    count = len(inputs)

    def derivatives(*arguments: Sequence[Any]) -> tuple[list[list[Any]], list[list[Any]]]:
        point, directions = arguments[:count], arguments[count:]
        program = recorded.program(point, calls=True)
        seeds = {(k, j): d for k, row in zip(of, directions, strict=True) for j, d in enumerate(row)}
        value, rows = _Along(program, point, seeds).run()
        values = [[value[r] if type(r) is int else r for r in row] for row in program.results]
        return values, rows

    return derivatives


def pullback(function: FlatFunction, inputs: Inputs, outputs: Outputs, of: int) -> FlatFunction:
    """The function of the gradient of a weighted sum of all outputs with respect to the first inputs: J^T w.

    Like :func:`along`, which gives J dx, it costs a few times the function, however many inputs and outputs
    there are (A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, chapter 3).

    Args:
        function, inputs, outputs: as in :func:`jacobian`.
        of: how many inputs, from the first, change.

    Returns:
        a function of the inputs, with the weights of each output between the first ones and the rest; its
        outputs have the sizes of the first inputs.
    """
    recorded = Recorded(function, inputs, outputs)

    def derivatives(*values: Sequence[Any]) -> list[list[Any]]:
        weights, arguments = values[of : of + len(outputs)], (*values[:of], *values[of + len(outputs) :])
        program = recorded.program(values)
        seeds: dict[int | float, Any] = {}
        for row, weight in zip(program.results, weights, strict=True):
            for r, w in zip(row, weight, strict=True):
                if type(r) is int:
                    seeds[r] = seeds[r] + w if r in seeds else w
        found = adjoints(program, node_values(program, arguments), seeds)
        return [[found.get((k, j), 0.0) for j in range(inputs[k][1])] for k in range(of)]

    return derivatives
