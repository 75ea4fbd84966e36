"""Derivatives of numbers that solve an equation, by the implicit function theorem (trace/record.py).

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 15.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robokit.engine.trace.ops import CONST, JUMPS, SOLVED
from robokit.spatial import control_flow, linear


def moved_by(nodes: Sequence[Any], node: Any) -> Sequence[int]:
    """The operands by which a node's value is differentiated: of a solution the residuals alone."""
    if node[0] != SOLVED:
        return node[1:]
    count = int(nodes[node[2]][1])
    return node[3 + count : 3 + 2 * count]


Column = Callable[[list[int], dict[int, Any]], None]
"""Adds to the tangents of some nodes those of the nodes of a line."""

Play = Callable[[list[int]], None]
"""Computes the values of some nodes, in order."""

Pull = Callable[[list[int], dict[int, Any], Sequence[int]], list[Any]]
"""The adjoints of the last nodes, where those of others are known; a line of nodes is between them."""


class Equation:
    """The equation that a node (SOLVED, i, n, v..., r..., b..., x...) belongs to.

    Attributes:
        first: number of the node of its first unknown; those of the others follow.
        at: nodes of the unknown numbers.
        residuals: nodes of the residuals.
        right, solved: nodes of any right-hand side and of what the function's own solver gives for it, or
            none.
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
            if n > lowest and n not in reached and nodes[n][0] > CONST:
                reached.add(n)
                waiting += nodes[n][1:]
        depends = set(begin)
        for n in sorted(reached):
            operands = moved_by(nodes, nodes[n]) if moving else nodes[n][1:]
            if not (moving and nodes[n][0] in JUMPS) and not depends.isdisjoint(operands):
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
        play: Play,
        known: dict[int, Any],
        found: Mapping[int, Any],
    ) -> list[Any]:
        """The derivatives of the solution along a direction.

        Args:
            value: of each node.
            column: as :data:`Column`.
            play: as :data:`Play`.
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
            play(line)
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
