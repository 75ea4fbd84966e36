"""Forward mode along one direction: values and derivatives side by side, in one pass.

A function that the program calls several times (trace/blocks.py) becomes a function of values and derivatives
that is called as often, so that the code of a time step's derivative is a few times that of the step, not of
all that the step does.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from robokit.engine.passes.equations import moved_by
from robokit.engine.passes.forward_mode import column
from robokit.engine.passes.replay import begun, play
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CALL, CONST, INPUT, JUMPS, RESULT
from robokit.engine.trace.program import Program
from robokit.spatial import control_flow

TOGETHER = 50
"""Nodes whose values are computed before their derivatives."""


def along_with(
    program: Program, arguments: Sequence[Sequence[Any]], seeds: Mapping[tuple[int, int], Any]
) -> tuple[list[Any], list[list[Any]]]:
    """The values of all nodes and the derivatives of all outputs along one direction, side by side.

    Args:
        program: what to differentiate.
        arguments: of the program.
        seeds: (input, offset) -> derivative of that scalar along the direction.

    Returns:
        the values as ``replayed`` gives them, and the derivatives of each output's scalars.
    """
    return _Along(program, arguments, seeds).run()


class _Along:
    """Values and derivatives of a program's nodes, as far as they are computed."""

    def __init__(
        self,
        program: Program,
        arguments: Sequence[Sequence[Any]],
        seeds: Mapping[tuple[int, int], Any],
    ) -> None:
        nodes = program.nodes
        self.program, self.value = program, begun(program, arguments)
        self.found = {
            n: seeds[node[1:]] for n, node in enumerate(nodes) if node[0] == INPUT and node[1:] in seeds
        }
        self.moving = moving_nodes(program, self.found)
        self.own, self.bodies = program.lines()
        self.places = [self._places(block) for block in range(len(program.blocks))]
        self.answers: dict[int, dict[int, tuple[Any, Any]]] = {}
        """Of each call the values that follow from its arguments, and their derivatives."""
        self.texts: dict[int, Callable[..., list[Any]]] = {}
        """Of each block its body with derivatives, the same function for all calls."""

    def run(self) -> tuple[list[Any], list[list[Any]]]:
        """The values of all nodes and the derivatives of all outputs."""
        self.play(self.own)
        value, get = self.value, self.found.get
        rows = [[get(r, 0.0) if type(r) is int else 0.0 for r in row] for row in self.program.results]
        return value, rows

    def play(self, order: Sequence[int]) -> None:
        """Values and derivatives of some nodes, in order."""
        nodes, value, found, moving = self.program.nodes, self.value, self.found, self.moving
        slopes: dict[int, Any] = {}
        for some in _pieces(nodes, order):
            op = nodes[some[0]][0]
            if op == CALL:
                self.answers[some[0]] = self.call(some[0])
            elif op == RESULT:
                self.result(some[0])
            else:
                play(nodes, value, some)
                column(nodes, value, slopes, [n for n in some if n in moving], found)

    def call(self, number: int) -> dict[int, tuple[Any, Any]]:
        """The value and the derivative of each node that a call returns."""
        block = called(self.program, number)
        parameters, body = self.program.blocks[block].parameters, self.bodies[block]
        operands = self.program.nodes[number][2:]
        count, moving = len(parameters), [k for k, p in enumerate(parameters) if p in self.moving]
        given = [self.value[n] for n in operands] + [self.found.get(operands[k], 0.0) for k in moving]
        places = self.places[block]
        moved = [n for n in places if n in self.moving]

        def text(*given: Any) -> list[Any]:
            """The body, with derivatives."""
            for n, x in zip(parameters, given[:count], strict=True):
                self.value[n] = x
            for n in (*parameters, *body):
                self.found.pop(n, None)
            self.found.update(zip([parameters[k] for k in moving], given[count:], strict=True))
            self.play(body)
            return [self.value[n] for n in places] + [self.found.get(n, 0.0) for n in moved]

        answers = control_flow.call(self.texts.setdefault(block, text), *given)
        slopes = dict(zip(moved, answers[len(places) :], strict=True))
        return {n: (x, slopes.get(n, 0.0)) for n, x in zip(places, answers, strict=False)}

    def _places(self, block: int) -> list[int]:
        """The nodes of a body whose values are returned."""
        inside = {*self.program.blocks[block].parameters, *self.bodies[block]}
        results = self.program.blocks[block].results
        return list(dict.fromkeys(r for r in results if type(r) is int and r in inside))

    def result(self, number: int) -> None:
        """One of the values of a call, and its derivative."""
        call = self.program.nodes[number][1]
        block = self.program.blocks[called(self.program, call)]
        at = block.results[position(self.program, number)]
        if type(at) is not int:
            value, slope = at, 0.0
        elif at in self.answers[call]:
            value, slope = self.answers[call][at]
        else:  # the same each time
            value, slope = self.value[at], self.found.get(at, 0.0)
        self.value[number] = value
        if number in self.moving:
            self.found[number] = slope


def _pieces(nodes: Sequence[Any], order: Sequence[int]) -> Iterator[list[int]]:
    """The order in pieces: each call and each of its values alone, TOGETHER others at most."""
    some: list[int] = []
    for number in order:
        alone = nodes[number][0] in (CALL, RESULT)
        if some and (alone or len(some) == TOGETHER):
            yield some
            some = []
        if alone:
            yield [number]
        else:
            some.append(number)
    if some:
        yield some


def moving_nodes(program: Program, begin: Mapping[int, Any]) -> set[int]:
    """The nodes between some inputs and an output; those of a body, of any of its calls."""
    nodes, order = program.nodes, program.order
    calls = {n: called(program, n) for n in order if nodes[n][0] == CALL}
    given: dict[int, list[int]] = {}  # what a parameter is, in all calls
    for n, block in calls.items():
        for parameter, operand in zip(program.blocks[block].parameters, nodes[n][2:], strict=True):
            given.setdefault(parameter, []).append(operand)
    results: dict[int, int] = {}
    for n in order:
        if nodes[n][0] == RESULT:
            at = program.blocks[calls[nodes[n][1]]].results[position(program, n)]
            if type(at) is int:
                results[n] = at

    depends, before = set(begin), -1
    while len(depends) != before:
        before = len(depends)
        for n in order:
            if n in depends or n in calls:
                continue
            if n in results:
                if results[n] in depends:
                    depends.add(n)
            elif nodes[n][0] not in JUMPS and not depends.isdisjoint(moved_by(nodes, nodes[n])):
                depends.add(n)
        depends.update(p for p, operands in given.items() if not depends.isdisjoint(operands))
        if not calls:  # one pass tells all
            break

    matters = {r for row in program.results for r in row if type(r) is int} & depends
    waiting = list(matters)
    while waiting:
        n = waiting.pop()
        if nodes[n][0] <= CONST:
            reads: Sequence[int] = given.get(n, ())
        else:
            reads = (results[n],) if n in results else moved_by(nodes, nodes[n])
        found = {x for x in reads if x in depends and x not in matters}
        matters.update(found)
        waiting += found
    return matters
