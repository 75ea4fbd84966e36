"""Forward mode along one direction: values and derivatives side by side, in one pass.

A text that the program calls several times (trace/blocks.py) becomes a text of values and derivatives that is
called as often, so that the code of a time step's derivative is a few times that of the step, not of all that
the step does.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from robokit.engine.passes.forward_mode import column
from robokit.engine.passes.played_back import JUMPS, begun, play
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CALL, INPUT, RESULT
from robokit.engine.trace.program import Program
from robokit.spatial import scalars as generic

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
        self.moving = _moving(program, self.found)
        self.own, self.bodies = program.lines()
        self.places = [self._places(block) for block in range(len(program.blocks))]
        self.answers: dict[int, dict[int, tuple[Any, Any]]] = {}
        """Of each call the values that follow from its arguments, and their derivatives."""
        self.name = object()

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
        for some in _stretches(nodes, order):
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

        key, matter = (self.name, block), [True] * len(given)
        answers = generic.shared(key, text, given, matter, large=True, numbers=True)
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


def _stretches(nodes: Sequence[Any], order: Sequence[int]) -> Iterator[list[int]]:
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


def _moving(program: Program, begin: Mapping[int, Any]) -> set[int]:
    """The nodes between the direction and an output; those of a body, of any of its calls."""
    nodes, order = program.nodes, program.order
    depends, matters = set(begin), set[int]()
    calls = {n: (called(program, n), nodes[n][2:]) for n in order if nodes[n][0] == CALL}
    results: dict[int, int] = {}
    for n in order:
        if nodes[n][0] == RESULT:
            at = program.blocks[calls[nodes[n][1]][0]].results[position(program, n)]
            if type(at) is int:
                results[n] = at

    def outwards() -> None:
        for n in order:
            if n in results:
                if results[n] in depends:
                    depends.add(n)
            elif n in calls:
                block, operands = calls[n]
                parameters = program.blocks[block].parameters
                depends.update(p for p, x in zip(parameters, operands, strict=True) if x in depends)
            elif nodes[n][0] not in JUMPS and not depends.isdisjoint(nodes[n][1:]):
                depends.add(n)

    def inwards() -> None:
        for n in reversed(order):
            if n in calls:
                block, operands = calls[n]
                parameters = program.blocks[block].parameters
                matters.update(x for p, x in zip(parameters, operands, strict=True) if p in matters)
            elif n in matters and n in results:
                matters.add(results[n])
            elif n in matters and nodes[n][0] not in JUMPS:
                matters.update(nodes[n][1:])

    matters.update(r for row in program.results for r in row if type(r) is int)
    for step, found in ((outwards, depends), (inwards, matters)):
        before = -1
        while len(found) != before:
            before = len(found)
            step()
            if not calls:  # one pass tells all
                break
    return depends & matters
