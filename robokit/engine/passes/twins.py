"""Operations that are done twice with other numbers: those of a left and of a right limb.

A robot's limbs come in pairs. What is recorded for the left one is recorded for the right one, too: the same
operations with other constants and, since signs are kept outside, with sums for differences. The search
begins with inputs that correspond to each other, as the angles of two hips, and goes from values to what
reads them. Two readers are *twins* if they do the same with twins, or with one and the same value. Where the
other operands have no twins yet, readers of the same kind are tried in the order of recording, and their
operands become twins in turn. A wrong guess costs a little time and is no error: passes/paired.py writes any
two operations of one kind side by side.
"""

from __future__ import annotations

from collections.abc import Iterable

from robokit.engine.passes.guards import Path
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import (
    ADD,
    CALL,
    CONST,
    GUARD,
    INPUT,
    LOOKUP,
    OPERATIONS,
    PARAMETER,
    RESULT,
    SELECT,
    SUB,
    TABLE,
)
from robokit.engine.trace.program import Program

DEPTH = 8
"""How far a pair of readers is followed back to what it is computed of."""

ROUNDS = 2
"""How often all is gone through: in the first round conditions of guards may come after what is inside."""

_ALONE = frozenset((CALL, LOOKUP, TABLE, CONST))
"""Opcodes that have no twins here."""

_SIDES = frozenset(each.number for each in OPERATIONS if each.commutes) | {SUB}
"""Opcodes whose operands may change places, if need be with their signs."""

_CHOICES = (SELECT, GUARD)


def twins(program: Program, seeds: Iterable[tuple[int, int]], inside: dict[int, Path]) -> list[int]:
    """For each node the one that does the same with other numbers; 0 where there is none.

    Args:
        program: the graph.
        seeds: pairs of input nodes that correspond to each other.
        inside: guards around nodes. Those around twins are the same, or twins.
    """
    return _Search(program, inside).found(seeds)


class _Search:
    def __init__(self, program: Program, inside: dict[int, Path]) -> None:
        self.program, self.nodes = program, program.nodes
        nodes, body = program.nodes, program.bodies()
        self.twin = [0] * len(nodes)
        self.readers: list[list[int]] = [[] for _ in nodes]
        self.kind = [0] * len(nodes)
        """Equal for nodes that may be twins; 0 for those that have none."""
        numbers: dict[Path, int] = {(): 0}
        self.path = [0] * len(nodes)
        """Number of the guards around each node, in the order of the list below."""
        for n, path in inside.items():
            self.path[n] = numbers.setdefault(path, len(numbers))
        self.guards = list(numbers)
        self.conditions = {condition for path in numbers for condition in path}
        self.alike: dict[tuple[int, int], bool] = {}
        own = len(OPERATIONS) + 2
        for n, node in enumerate(nodes):
            if node[0] < CONST:
                line = body.get(n, -1) if node[0] == PARAMETER else node[1] if node[0] == INPUT else -1
                self.kind[n] = 0 if node[0] == TABLE else -1 - 2 * (line + 1) - (node[0] == INPUT)
        for n in program.order:
            op = nodes[n][0]
            if op not in _ALONE:
                self.kind[n] = (ADD if op == SUB else op) + 1 + own * (1 + body.get(n, -1))
            if op != CALL:
                for x in nodes[n][1:]:
                    self.readers[x].append(n)
        self.results: dict[tuple[int, int], int] = {}
        self.arguments: dict[int, list[tuple[int, ...]]] = {}
        for n in program.order if program.blocks else ():
            if nodes[n][0] == RESULT:
                self.results[nodes[n][1], position(program, n)] = n
            elif nodes[n][0] == CALL:
                self.arguments.setdefault(called(program, n), []).append(nodes[n][2:])
        self.places = [
            {r: k for k, r in enumerate(block.results) if type(r) is int} for block in program.blocks
        ]

    def found(self, seeds: Iterable[tuple[int, int]]) -> list[int]:
        """As :func:`twins`."""
        for a, b in seeds:
            if not self.twin[a] and not self.twin[b]:
                self.twin[a], self.twin[b] = b, a
        for _ in range(ROUNDS):
            self.alike.clear()
            self._round()
        return self.twin

    def _round(self) -> None:
        nodes, twin, kind, body = self.nodes, self.twin, self.kind, self.program.bodies()
        begun: set[int] = set()
        for n in self.program.order:
            if n in body and body[n] not in begun:
                begun.add(body[n])
                self._parameters(body[n])
            if twin[n] or not kind[n]:
                continue
            if nodes[n][0] == RESULT:
                self._result(n)
                continue
            for x in nodes[n][1:]:
                if twin[x] and self._reader(n, x):
                    break

    def _parameters(self, block: int) -> None:
        """Parameters are twins where the arguments are, in the first call that has some."""
        parameters = self.program.blocks[block].parameters
        for given in self.arguments.get(block, ()):
            place = dict(zip(reversed(given), reversed(parameters), strict=True))
            for x, p in zip(given, parameters, strict=True):
                other = place.get(self.twin[x], 0) if self.twin[x] else 0
                if other and other != p and not self.twin[p] and not self.twin[other]:
                    self.twin[p], self.twin[other] = other, p

    def _result(self, n: int) -> None:
        block, call = called(self.program, self.nodes[n][1]), self.nodes[n][1]
        value = self.program.blocks[block].results[position(self.program, n)]
        if type(value) is int and self.twin[value]:
            place = self.places[block].get(self.twin[value], -1)
            other = self.results.get((call, place), 0)
            if other and not self.twin[other]:
                self.twin[n], self.twin[other] = other, n

    def _reader(self, n: int, x: int) -> bool:
        """Make a node that reads x the twin of a reader of x's twin, if one does the same."""
        twin, kind, nodes, path, own = self.twin, self.kind, self.nodes, self.path, self.kind[n]
        node, t, maybe = nodes[n], twin[x], 0
        two, sides = len(node) == 3, node[0] in _SIDES
        first = node[1] == x
        other = node[-1] if first else node[1]
        constant, mate = nodes[other][0] == CONST, twin[other]
        for m in self.readers[t]:
            if twin[m] or kind[m] != own or m == n:
                continue
            if two:
                like = nodes[m]
                begins = like[1] == t
                y = like[2] if begins else like[1]
                if mate or twin[y]:
                    fit = 2 * (mate == y)
                elif y == other or (constant and nodes[y][0] == CONST):
                    fit = 2
                else:
                    fit = int(kind[y] == kind[other] != 0)
                if begins != first and not sides:
                    fit = 0
            else:
                fit = self._fit(node[1:], nodes[m][1:], node[0])
            if fit and (fit == 2 or not maybe) and (path[m] == path[n] or self._together(n, m)):
                if fit == 2:
                    self._bind(n, m, DEPTH)
                    return True
                maybe = m
        if maybe:
            self._bind(n, maybe, 0)
        return bool(maybe)

    def _fit(self, a: tuple[int, ...], b: tuple[int, ...], op: int) -> int:
        """2 where all operands correspond, 1 where they may, 0 where they cannot."""
        worst = 2
        for k, (x, y) in enumerate(self._sides(a, b, op)):
            how = self._same(x, y)
            if not how or (how == 1 and k == 0 and op in _CHOICES):
                return 0
            worst = min(worst, how)
        return worst

    def _sides(self, a: tuple[int, ...], b: tuple[int, ...], op: int) -> Iterable[tuple[int, int]]:
        if op in _SIDES and len(a) == 2:
            straight = self._same(a[0], b[0]) + self._same(a[1], b[1])
            if straight < 4 and self._same(a[0], b[1]) + self._same(a[1], b[0]) > straight:
                b = b[::-1]
        return zip(a, b, strict=True)

    def _same(self, x: int, y: int) -> int:
        """2 if two operands correspond, 1 if they may, 0 if they cannot."""
        if self.twin[x] or self.twin[y]:
            return 2 * (self.twin[x] == y)
        if x == y or (self.nodes[x][0] == CONST and self.nodes[y][0] == CONST):
            return 2
        return int(self.kind[x] == self.kind[y] != 0)

    def _bind(self, n: int, m: int, depth: int) -> None:
        """Make two nodes twins, and what they are computed of if that is open."""
        self.twin[n], self.twin[m] = m, n
        if n in self.conditions:
            self.alike.clear()
        op = self.nodes[n][0]
        if depth >= DEPTH or op < 0 or op == RESULT:
            return
        for x, y in self._sides(self.nodes[n][1:], self.nodes[m][1:], op):
            if x != y and not (self.twin[x] or self.twin[y]) and self._open(x, y):
                self._bind(x, y, depth + 1)

    def _together(self, x: int, y: int) -> bool:
        """Whether the guards around two nodes correspond."""
        key = self.path[x], self.path[y]
        if key not in self.alike:
            a, b = self.guards[key[0]], self.guards[key[1]]
            self.alike[key] = len(a) == len(b) and all(
                s == t or self.twin[s] == t for s, t in zip(a, b, strict=True)
            )
        return self.alike[key]

    def _open(self, x: int, y: int) -> bool:
        """Whether two operands without twins may be each other's."""
        op = self.nodes[x][0]
        if self._same(x, y) != 1 or not self._together(x, y):
            return False
        return op < 0 or op == RESULT or self._fit(self.nodes[x][1:], self.nodes[y][1:], op) > 0
