"""Reverse mode: one adjoint a node, from one output back to all inputs.

The adjoint of what was computed for a branch that was not taken is 0, but 0 times a slope that is infinite is
NaN. So it is dropped where it would leave the nodes that only that branch needs.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.2.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from robokit.engine.passes.equations import Equation, moved_by
from robokit.engine.passes.forward_mode import column
from robokit.engine.passes.replay import chosen, opposite
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import CONST, DIV, GUARD, INPUT, JUMPS, OPERATIONS, SELECT, SOLVED


def adjoints(
    program: Program, value: list[Any], seeds: Mapping[int | float, Any]
) -> dict[tuple[int, int], Any]:
    """Reverse mode.

    Args:
        program: what to differentiate.
        value: of each node, as :func:`replayed` gives them.
        seeds: node -> weight; constants have none.

    Returns:
        (input, offset) -> derivative of the weighted sum of these nodes; a scalar that makes no difference
        is missing.
    """
    nodes = program.nodes
    ends = [number for number, node in enumerate(nodes) if node[0] == INPUT]
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
        if op in JUMPS:
            continue
        need = needs[number]
        if op in (SELECT, GUARD):
            _, c, a, b = node
            for operand, branch in ((a, True), (b, False)):
                if nodes[operand][0] != CONST:
                    give(operand, d, _under(need, c, branch))
        elif op == DIV:
            _, a, b = node
            share = d / value[b]
            give(a, share, need)
            if nodes[b][0] != CONST:
                give(b, -(share * value[number]), need)
        elif op == SOLVED:
            equation = Equation(nodes, number)
            need, weights = _weights(equation, needs, holds, found)
            for operand, d in zip(equation.residuals, _residuals(equation, value, weights), strict=True):
                if nodes[operand][0] != CONST:
                    give(operand, d, need)
        else:
            operands = [value[operand] for operand in node[1:]]
            for operand, slope in zip(node[1:], OPERATIONS[op].slopes, strict=True):
                if slope is not None and nodes[operand][0] != CONST:
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


Path = tuple[tuple[int, bool], ...]
"""Choices that must all fall so: (node of the condition, which way)."""

Need = frozenset[Path]
"""Where a value matters: along any of these paths."""

ALWAYS: Need = frozenset({()})

MOST_PATHS = 16
"""Paths that are told apart; a value with more of them counts as needed always."""


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
        if node[0] in (SELECT, GUARD):
            _, c, a, b = node
            needs[a] = _joined(needs[a], _under(need, c, True))
            needs[b] = _joined(needs[b], _under(need, c, False))
        else:
            for operand in node[1:] if node[0] != SOLVED else moved_by(nodes, node):
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
