"""Superword parallelism: what is done twice with other numbers goes through two lanes of a vector.

Limbs come in pairs. What is recorded for the left one is recorded for the right one, too: the same operations
with other constants and, since signs are kept outside, with sums for differences. :class:`_Search` finds
them, :func:`units` orders them, :func:`packed` writes the program anew. It is for code of one state, and for
programs without shared functions: what these compute is written once already.

On an AMD EPYC with AVX-512 a step of a fall takes 0.64 of the time for our humanoid, 0.66 for G1, 0.73 for
our quadruped and 0.83 for Talos, without self-collision; single calls of RNEA and ABA take 0.74 to 0.86. The
passes take time in first calls, and LLVM has less to do: a step's code takes 0.86 to 1.0 times the processor
time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from robokit.engine.passes.order import Path, paths
from robokit.engine.trace import ops
from robokit.engine.trace.graph import Node, Program, needed

# -- Isomorphic pairs ------------------------------------------------------------------------------------
#
# Operations that are done twice with other numbers: those of a left and of a right limb.
#
# A robot's limbs come in pairs. What is recorded for the left one is recorded for the right one, too: the
# same operations with other constants and, since signs are kept outside, with sums for differences. The
# search begins with inputs that correspond to each other, as the angles of two hips, and goes from values to
# what reads them. Two readers are *partners* if they do the same with partners, or with one and the same
# value. Where the other operands have no partners yet, readers of the same kind are tried in the order of
# recording, and their operands become partners in turn. A wrong guess costs a little time and is no error:
# :func:`packed` writes any two operations of one kind side by side.


DEPTH = 8  # how far a pair of readers is followed back to what it is computed of
ROUNDS = 2  # passes over all nodes: in the first, a guard's condition may come after what is inside

_SIDES = frozenset(each.number for each in ops.OPERATIONS if each.commutes) | {ops.SUB}
"""Opcodes whose operands may change places, if need be with their signs."""

_CHOICES = (ops.SELECT, ops.GUARD)


def isomorphic_pairs(
    program: Program, seeds: Iterable[tuple[int, int]], inside: dict[int, Path]
) -> list[int]:
    """For each node the one that does the same with other numbers; 0 where there is none.

    ``seeds``: pairs of input nodes that correspond to each other. ``inside``: guards around nodes. Those
    around partners are the same, or partners.
    """
    return _Search(program, inside).found(seeds)


class _Search:
    def __init__(self, program: Program, inside: dict[int, Path]) -> None:
        self.program, self.nodes = program, program.nodes
        nodes = program.nodes
        self.partner = [0] * len(nodes)
        self.readers: list[list[int]] = [[] for _ in nodes]
        self.kind = [0] * len(nodes)
        """Equal for nodes that may be partners; 0 for those that have none."""
        numbers: dict[Path, int] = {(): 0}
        self.path = [0] * len(nodes)
        """Number of the guards around each node, in the order of the list below."""
        for n, path in inside.items():
            self.path[n] = numbers.setdefault(path, len(numbers))
        self.guards = list(numbers)
        self.conditions = {condition for path in numbers for condition in path}
        self.alike: dict[tuple[int, int], bool] = {}
        for n, node in enumerate(nodes):
            if node[0] == ops.INPUT:
                self.kind[n] = -1 - node[1]
        for n in program.order:
            op = nodes[n][0]
            self.kind[n] = (ops.ADD if op == ops.SUB else op) + 1
            for x in nodes[n][1:]:
                self.readers[x].append(n)

    def found(self, seeds: Iterable[tuple[int, int]]) -> list[int]:
        """As :func:`isomorphic_pairs`."""
        for a, b in seeds:
            if not self.partner[a] and not self.partner[b]:
                self.partner[a], self.partner[b] = b, a
        for _ in range(ROUNDS):
            self.alike.clear()
            nodes, partner = self.nodes, self.partner
            for n in self.program.order:
                if not partner[n]:
                    for x in nodes[n][1:]:
                        if partner[x] and self._reader(n, x):
                            break
        return self.partner

    def _reader(self, n: int, x: int) -> bool:
        """Make a node that reads x the partner of a reader of x's partner, if one does the same."""
        partner, kind, nodes, path, own = self.partner, self.kind, self.nodes, self.path, self.kind[n]
        node, t, maybe = nodes[n], partner[x], 0
        two, sides = len(node) == 3, node[0] in _SIDES
        first = node[1] == x
        other = node[-1] if first else node[1]
        constant, mate = nodes[other][0] == ops.CONST, partner[other]
        for m in self.readers[t]:
            if partner[m] or kind[m] != own or m == n:
                continue
            if two:
                like = nodes[m]
                begins = like[1] == t
                y = like[2] if begins else like[1]
                if mate or partner[y]:
                    fit = 2 * (mate == y)
                elif y == other or (constant and nodes[y][0] == ops.CONST):
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
        if self.partner[x] or self.partner[y]:
            return 2 * (self.partner[x] == y)
        if x == y or (self.nodes[x][0] == ops.CONST and self.nodes[y][0] == ops.CONST):
            return 2
        return int(self.kind[x] == self.kind[y] != 0)

    def _bind(self, n: int, m: int, depth: int) -> None:
        """Make two nodes partners, and what they are computed of if that is open."""
        self.partner[n], self.partner[m] = m, n
        if n in self.conditions:
            self.alike.clear()
        op = self.nodes[n][0]
        if depth >= DEPTH or op < 0:
            return
        for x, y in self._sides(self.nodes[n][1:], self.nodes[m][1:], op):
            if x != y and not (self.partner[x] or self.partner[y]) and self._open(x, y):
                self._bind(x, y, depth + 1)

    def _together(self, x: int, y: int) -> bool:
        """Whether the guards around two nodes correspond."""
        key = self.path[x], self.path[y]
        if key not in self.alike:
            a, b = self.guards[key[0]], self.guards[key[1]]
            self.alike[key] = len(a) == len(b) and all(
                s == t or self.partner[s] == t for s, t in zip(a, b, strict=True)
            )
        return self.alike[key]

    def _open(self, x: int, y: int) -> bool:
        """Whether two operands without partners may be each other's."""
        op = self.nodes[x][0]
        if self._same(x, y) != 1 or not self._together(x, y):
            return False
        return op < 0 or self._fit(self.nodes[x][1:], self.nodes[y][1:], op) > 0


# -- An order of evaluation ------------------------------------------------------------------------------
#
# The order of evaluation of a program in which some operations are done two at once.


def units(program: Program, pairs: dict[int, int]) -> Iterator[list[int]]:
    """What is computed at once, in an order of evaluation: about the order of the later of two partners.

    Args:
        program: the graph.
        pairs: node -> its partner, in both directions. Partners that wait for each other are taken out.
    """
    nodes, order = program.nodes, program.order
    mate = [0] * len(nodes)
    for n, m in pairs.items():
        mate[n] = m
    computed = bytearray(len(nodes))
    for n in order:
        computed[n] = 1
    readers: list[list[int]] = [[] for _ in nodes]
    wanting = [0] * len(nodes)  # what is still to come before each node
    for n in order:
        for x in nodes[n][1:]:
            if computed[x]:
                readers[x].append(n)
                wanting[n] += 1
    heap = [n for n in order if not wanting[n] and n > mate[n] and not (mate[n] and wanting[mate[n]])]
    heapq.heapify(heap)
    done, count, rest = bytearray(len(nodes)), 0, iter(order)
    while count < len(order):
        if not heap:  # some partners wait for each other
            n = next(n for n in rest if not done[n])
            m, mate[n] = mate[n], 0
            if m:
                mate[m] = 0
                del pairs[n], pairs[m]
                heap = [x for x in sorted((n, m)) if not wanting[x]]
            continue
        n = heapq.heappop(heap)
        m = mate[n]
        members = [m, n] if m else [n]
        count += len(members)
        yield members
        for each in members:
            done[each] = 1
            for reader in readers[each]:
                wanting[reader] -= 1
                if not wanting[reader]:
                    m = mate[reader]
                    if not m:
                        heapq.heappush(heap, reader)
                    elif not wanting[m]:
                        heapq.heappush(heap, max(m, reader))


# -- Two lanes -------------------------------------------------------------------------------------------
#
# Code of one state in which what is done twice goes through two lanes of a vector.
#
# Operations that the search found become one, whose value has two lanes: it is *wide*. A wide operation
# takes wide operands, and numbers that are the same in both lanes. Where it needs two numbers of different
# origin they are put into lanes (PAIR), and where one lane is needed alone it is taken out (FIRST, SECOND).
# The two are computed exactly as they were, but for signs: where the one lane adds and the other subtracts,
# an operand is multiplied by 1 in the one and by -1 in the other.
#
# Two operations that wait for each other stay apart: they are found when the new order of evaluation is made.


WORTH = 0.85  # share of the operations that may be left: moves between lanes take the rest


def packed(program: Program, seeds: Iterable[tuple[int, int, int]]) -> Program:
    """The same program with its partners in two lanes; nodes are renumbered.

    ``seeds``: (input, offset, other offset) of inputs that correspond to each other.
    """
    at = program.input_nodes
    corresponding = [(at[k, a], at[k, b]) for k, a, b in seeds if (k, a) in at and (k, b) in at]
    if not corresponding or program.blocks:
        return program
    partner = isomorphic_pairs(program, corresponding, paths(program))
    own = set(program.order)
    pairs: dict[int, int] = {}
    for n in program.order:
        m = partner[n]
        if m and m in own and _joined(program, n, m):
            pairs[n] = m
    if len(program.order) - len(pairs) // 2 > WORTH * len(program.order):
        return program
    found = _Writer(program, pairs).written()
    return found if len(found.order) <= WORTH * len(program.order) else program


def _joined(program: Program, n: int, m: int) -> bool:
    """Whether partners are computed at all, and by one instruction for both."""
    nodes = program.nodes
    op, other = nodes[n][0], nodes[m][0]
    if op in (ops.SIN, ops.COS) and ops.INPUT in (nodes[nodes[n][1]][0], nodes[nodes[m][1]][0]):
        return False  # a loop computes those of all joints
    return op == other or (op in (ops.ADD, ops.SUB) and other in (ops.ADD, ops.SUB))


class _Writer:
    """Writes the program anew."""

    def __init__(self, program: Program, pairs: dict[int, int]) -> None:
        self.program, self.old, self.pairs = program, program.nodes, pairs
        self.nodes: list[Node] = [program.nodes[0]]
        self.order: list[int] = []
        self.wide: set[int] = set()
        self.at: dict[int, int] = {}
        self.lane: dict[int, tuple[int, int]] = {}
        self.index: dict[Node, int] = {}

    def written(self) -> Program:
        """The program with wide values."""
        program = self.program
        for n, node in enumerate(self.old):
            if n and node[0] <= ops.CONST:
                self.at[n] = self._leaf(node)
        for members in units(program, self.pairs):
            if len(members) == 2:
                self._both(*members)
            else:
                node = self.old[members[0]]
                self.at[members[0]] = self._put((node[0], *(self._alone(x) for x in node[1:])))
        results = [[self._alone(r) if type(r) is int else r for r in row] for row in program.results]
        # A product whose sign went into its factor is not read any more.
        self.order = needed(self.nodes, self.order, {r for row in results for r in row if type(r) is int})
        return replace(program, nodes=self.nodes, order=self.order, results=results, marks=[], wide=self.wide)

    # -- nodes -----------------------------------------------------------------------------------

    def _leaf(self, node: Node) -> int:
        if node not in self.index:
            self.index[node] = len(self.nodes)
            self.nodes.append(node)
        return self.index[node]

    def _put(self, node: Node, wide: bool = False) -> int:
        self.nodes.append(node)
        self.order.append(len(self.nodes) - 1)
        if wide:
            self.wide.add(self.order[-1])
        return self.order[-1]

    def _once(self, node: Node, wide: bool = False) -> int:
        if node not in self.index:
            self.index[node] = self._put(node, wide)
        return self.index[node]

    def _alone(self, n: int) -> int:
        """A value as one number."""
        if n in self.at:
            return self.at[n]
        whole, lane = self.lane[n]
        self.at[n] = self._put((ops.SECOND if lane else ops.FIRST, whole))
        return self.at[n]

    def _lanes(self, x: int, y: int) -> int:
        """The node of a number for each lane; one number where they are the same."""
        old = self.old
        if x == y:
            return self._alone(x)
        if old[x][0] == ops.CONST and old[y][0] == ops.CONST:
            return self._constants(old[x][1], old[y][1])
        whole_x, lane = self.lane.get(x, (0, 0))
        if lane == 0 and whole_x and self.lane.get(y) == (whole_x, 1):
            return whole_x
        return self._once((ops.PAIR, self._alone(x), self._alone(y)), wide=True)

    def _constants(self, a: float, b: float) -> int:
        number = self._leaf((ops.CONST, (a, b)))
        self.wide.add(number)
        return number

    def _both(self, n: int, m: int) -> None:
        """One operation for two partners."""
        op, other = self.old[n][0], self.old[m][0]
        if self._turned(n, m):
            n, m, op, other = m, n, other, op
        a, b = list(self.old[n][1:]), list(self.old[m][1:])
        swapped = len(b) == 2 and self._swap(a, b, op)
        if swapped:
            b.reverse()
        x = [self._lanes(s, t) for s, t in zip(a, b, strict=True)]
        if op in (ops.ADD, ops.SUB):
            number = self._sum(x[0], x[1], (op == ops.ADD, other == ops.ADD), swapped)
        else:
            number = self._put((op, *x), wide=True)
        self.lane[n], self.lane[m] = (number, 0), (number, 1)

    def _sum(self, x: int, y: int, adds: tuple[bool, bool], swapped: bool) -> int:
        """A sum in one lane and, maybe, a difference in the other.

        ``x``, ``y``: operands; ``adds``: whether each lane adds; ``swapped``: whether the second lane's
        operands are y and x.
        """
        if adds[0] == adds[1] and (adds[0] or not swapped):
            return self._put((ops.ADD if adds[0] else ops.SUB, x, y), wide=True)
        if not swapped or adds[1]:  # y - x is the only way in which the second lane has a minus before x
            signed = self._signed(y, *(1.0 if add else -1.0 for add in adds))
            return self._put((ops.ADD, x, signed), wide=True)
        if adds[0]:
            return self._put((ops.ADD, y, self._signed(x, 1.0, -1.0)), wide=True)
        return self._signed(self._put((ops.SUB, x, y), wide=True), 1.0, -1.0)

    def _signed(self, x: int, *signs: float) -> int:
        """A value with a sign for each lane; a constant factor takes it up."""
        node = self.nodes[x]
        if node[0] == ops.CONST:
            return self._constants(*(s * c for s, c in zip(signs, self._numbers(x), strict=True)))
        if node[0] == ops.MUL and x in self.wide:
            for c, other in (node[1:], node[:0:-1]):
                if self.nodes[c][0] == ops.CONST:
                    numbers = (s * each for s, each in zip(signs, self._numbers(c), strict=True))
                    return self._once((ops.MUL, other, self._constants(*numbers)), wide=True)
        return self._once((ops.MUL, x, self._constants(*signs)), wide=True)

    def _numbers(self, constant: int) -> Sequence[float]:
        value = self.nodes[constant][1]
        return value if constant in self.wide else (value, value)

    def _turned(self, n: int, m: int) -> bool:
        """Whether the operands of the first are in the second lanes."""
        for x, y in zip(self.old[n][1:], self.old[m][1:], strict=True):
            for each, lane in ((x, 1), (y, 0)):
                if each in self.lane and x != y:
                    return self.lane[each][1] == lane
        return False

    def _swap(self, a: Sequence[int], b: Sequence[int], op: int) -> bool:
        """Whether the second lane's operands change places."""
        if not (ops.OPERATIONS[op].commutes or op == ops.SUB):
            return False
        straight = self._fits(a[0], b[0]) + self._fits(a[1], b[1])
        return self._fits(a[0], b[1]) + self._fits(a[1], b[0]) > straight

    def _fits(self, x: int, y: int) -> int:
        if x == y or (self.old[x][0] == ops.CONST and self.old[y][0] == ops.CONST):
            return 1
        return int(x in self.lane and y in self.lane and self.lane[x][0] == self.lane[y][0])
