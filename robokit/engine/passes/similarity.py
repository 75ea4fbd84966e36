"""Finds pieces of a recorded line that do the same with other numbers.

The line is cut where a function says that iterations begin. Two pieces are alike if they do the same
operations on the same places of their own; what they read from elsewhere and their constants are data: each
piece lists them in order of first use, and they run in a loop over a table. All pieces go through NumPy at
once: a long line has hundreds of thousands of operations.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from operator import itemgetter

import numpy as np

from robokit.engine.passes.schedule import Plan, cut, fixed_places
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import (
    ADD,
    CONST,
    NEG,
    OPERATIONS,
    SUB,
)

_INSIDE, _CONSTANT, _OUTSIDE, _OWN = range(4)

_LATE = np.array([0, 2, 1])  # place of such an operand among those that commute

_COMMUTES = np.array([operation.commutes for operation in OPERATIONS])


@dataclass
class Pieces:
    """The pieces of a line as arrays."""

    count: int  # of pieces
    line: np.ndarray  # nodes of all pieces, in order
    # piece, local: piece of each of them, and its place there
    piece: np.ndarray
    local: np.ndarray
    # home, at: the same by node; -1 where it is in none
    home: np.ndarray
    at: np.ndarray
    operand: np.ndarray  # what they read, one after the other
    reader: np.ndarray  # place in the line of who reads it
    turn: np.ndarray  # how many operands of the same reader come before
    codes: np.ndarray  # operation of each node of the program

    @staticmethod
    def of(program: Program, lines: Sequence[Sequence[int]]) -> Pieces:
        """Those of some nodes each."""
        nodes = program.nodes
        line = np.fromiter(chain.from_iterable(lines), np.int64)
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        piece = np.repeat(np.arange(len(lines)), lengths)
        local = np.arange(len(line)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        mine = line.tolist()
        counts = np.fromiter(map(len, map(nodes.__getitem__, mine)), np.int64, len(mine)) - 1
        operand = np.fromiter(program.operands(mine), np.int64, int(counts.sum()))
        reader = np.repeat(np.arange(len(line)), counts)
        home, at = np.full((2, len(nodes)), -1)
        home[line], at[line] = piece, local
        turn = np.arange(len(operand)) - np.repeat(np.cumsum(counts) - counts, counts)
        codes = np.fromiter(map(itemgetter(0), nodes), np.int64, len(nodes))
        return Pieces(len(lines), line, piece, local, home, at, operand, reader, turn, codes)


@dataclass
class Similarity:
    """What pieces do, without where their operands are."""

    program: Program
    # what they do, the words of one piece after the other, and where each begins
    words: tuple[np.ndarray, np.ndarray]
    # owners of what each reads from elsewhere and of what it leaves, in order of first use
    named: tuple[np.ndarray, np.ndarray]
    constants: tuple[np.ndarray, np.ndarray]  # nodes of its constants, in order of first use

    @staticmethod
    def of(
        program: Program,
        pieces: Pieces,
        owner: np.ndarray,
        within: np.ndarray,
        stored: np.ndarray,
    ) -> Similarity:
        """The pieces' descriptions.

        ``pieces``: of its line; ``owner``: by node, what is named where it is read: the node itself, or the
        place that it is in; ``within``: by node, what is the same of it in pieces that are alike; ``stored``:
        by node, whether a piece that leaves it must leave it in the same place.
        """
        count, x = pieces.count, pieces.operand
        by = pieces.piece[pieces.reader]
        fixed = pieces.codes[x] == CONST
        inside = (pieces.home[x] == by) & ~fixed
        outside = ~inside & ~fixed
        left = np.flatnonzero(stored[pieces.line])
        # The order of use: the operands of a node, its own before others where they commute, then its place.
        length = 1 + np.bincount(pieces.reader, minlength=len(pieces.line))
        length[left] += 1
        begin = np.cumsum(length) - length
        tags = np.where(inside, _INSIDE, np.where(fixed, _CONSTANT, _OUTSIDE))
        turned = np.flatnonzero(_COMMUTES[pieces.codes[pieces.line[pieces.reader]]] & (pieces.turn == 0))
        turned = turned[_LATE[tags[turned]] > _LATE[tags[turned + 1]]]
        turn = pieces.turn.copy()
        turn[turned], turn[turned + 1] = 1, 0
        turns, own = begin[pieces.reader] + 1 + turn, begin[left] + length[left] - 1
        ranks = np.empty(len(x), np.int64)
        ranks[inside] = pieces.at[x[inside]]
        ranks[fixed], constants = _named(count, by[fixed], x[fixed], turns[fixed])
        both = np.concatenate([owner[x[outside]], owner[pieces.line[left]]])
        of = np.concatenate([by[outside], pieces.piece[left]])
        found, named = _named(count, of, both, np.concatenate([turns[outside], own]))
        ranks[outside] = found[: int(outside.sum())]
        inner = np.where(outside, within[x], 0)
        flat = np.empty(int(length.sum()), np.int64)
        flat[begin] = pieces.codes[pieces.line] << 2
        flat[turns] = ((ranks << 24) + inner << 2) + tags
        flat[own] = ((found[int(outside.sum()) :] << 24) + within[pieces.line[left]] << 2) + _OWN
        starts = np.r_[begin, len(flat)][np.searchsorted(pieces.piece, np.arange(count + 1))]
        return Similarity(program, (flat, starts), named, constants)

    def groups(self, least: int) -> Iterator[list[int]]:
        """Numbers of pieces that are alike, of at least so many each."""
        flat, starts = self.words
        lengths = np.diff(starts)
        keys = np.random.default_rng(1).integers(0, 2**63, int(lengths.max(initial=0)), np.uint64)
        places = np.arange(len(flat)) - np.repeat(starts[:-1], lengths)
        mixed = (flat.astype(np.uint64) + np.uint64(1)) * (keys[places] | np.uint64(1))
        sums = np.r_[np.uint64(0), np.cumsum(mixed, dtype=np.uint64)]
        _, group = np.unique(sums[starts[1:]] - sums[starts[:-1]], return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        found = np.split(order, np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1)
        for members in sorted((each for each in found if len(each) >= least), key=lambda each: int(each[0])):
            same = members[lengths[members] == lengths[members[0]]]  # sums may be equal by chance
            rows = flat[starts[same][:, None] + np.arange(lengths[members[0]])]
            same = same[(rows == rows[0]).all(axis=1)]
            if len(same) >= least:
                yield same.tolist()

    def owners(self, piece: int) -> list[int]:
        """Owners of what a piece reads from elsewhere, and of what it leaves, in order of first use."""
        found, starts = self.named
        owners: list[int] = found[starts[piece] : starts[piece + 1]].tolist()
        return owners

    def values(self, piece: int) -> list[float]:
        """Its constants, in order of first use."""
        found, starts = self.constants
        return [self.program.nodes[n][1] for n in found[starts[piece] : starts[piece + 1]].tolist()]


def _named(
    count: int, piece: np.ndarray, name: np.ndarray, turn: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The number of each name in its piece, by first use; the names by piece, and where each piece begins."""
    if not len(name):
        return np.zeros(0, np.int64), (np.zeros(0, np.int64), np.zeros(count + 1, np.int64))
    low = int(name.min())
    key = piece * (int(name.max()) - low + 1) + (name - low)
    order = np.argsort(turn, kind="stable")
    _, first, number = np.unique(key[order], return_index=True, return_inverse=True)
    by_use = np.argsort(first)  # turns go up with pieces
    rank = np.empty(len(first), np.int64)
    rank[by_use] = np.arange(len(first))
    at = order[first[by_use]]
    starts = np.searchsorted(piece[at], np.arange(count + 1))
    found = np.empty(len(name), np.int64)
    found[order] = rank[number.reshape(-1)]
    return found - starts[piece], (name[at], starts)


# -- Iterations become a loop over a table ---------------------------------------------------------------
#
# Iterations of a loop over the tree that do the same share one function, which runs from a table.
#
# A robot of hundreds of joints would make megabytes of straight line. The function says where iterations
# begin (``scalars.iterations``), and the recorded line is cut there. Pieces that are equal, apart from
# constants and the places of operands, are of one *kind*. A kind is written once, as a function, and called
# with a row of a table: the row holds the places and the constants of a piece. Pieces that are like no
# others, at roots, leaves and forks, stay a straight line.
#
# Values that a piece makes for the same readers lie side by side and are called a *bundle*; a row names
# where its bundles begin. emit/straight_line.py writes the functions and the table.

WORTH = 18_000  # nodes from which shared code is looked for: shorter lines are faster as they are (7 %)
PIECE = 350  # nodes per chunk that is not shared: mostly loads and stores, which compile slowly
LEAST = 3  # pieces that must be equal to share a function
LONGEST = 4_000  # nodes of the longest shared function: LLVM's time grows faster than that of its pieces

_SIGNLESS = [ADD if each.number == SUB else each.number for each in OPERATIONS]
"""Opcode of each operation, that of a sum for a difference."""

SHARED = 0.6  # share of a line that iterations leave at most where they are what makes it short
END = -1  # stands among the readers of an output for the caller


@dataclass
class LoopBody:
    """A function for equal pieces."""

    nodes: list[int]  # of the first piece, which the function is written from
    bundles: int  # how many columns a row has
    # column and position within the bundle of each node of the first piece that is in memory
    place: dict[int, tuple[int, int]]
    # of each constant node of the first piece that differs among the pieces: its place in the piece's row of
    # values
    values: dict[int, int]


@dataclass
class Rerolled(Plan):
    """A plan with shared pieces."""

    bodies: list[LoopBody] = field(default_factory=list)  # the functions
    # for each step its kind, its row (a slot for each bundle) and its values
    steps: list[tuple[int, list[int], list[float]]] = field(default_factory=list)

    @property
    def written(self) -> int:
        """Nodes that become code."""
        return sum(map(len, self.chunks)) + sum(len(kind.nodes) for kind in self.bodies)


def rerolled(program: Program, size: int) -> Rerolled | None:
    """Plan a program with shared pieces, all of whose inputs and outputs live in the workspace.

    ``program``: what to compute; its marks say where iterations begin; ``size``: nodes per chunk of what is
    not shared, about. Returns the plan, for any number of lanes, or None where it would not save half of the
    code.
    """
    if len(program.order) < WORTH or not program.marks:
        return None
    fixed = fixed_places(program, 0, bundled=True, shortest_run=1)
    order = [n for n in program.order if n not in fixed.slot]
    whole = _pieces(program, order)
    shared, least = _alike(program, whole)
    if least >= len(order) // 2:
        return None  # most lines end here: the plan takes ten times as long
    pieces: list[list[int]] = []
    line: list[int] = []
    for piece, kind in [*zip(whole, shared, strict=True), ([], True)]:
        if not kind:
            line += piece
            continue
        if line:
            pieces += cut(program, line, [1] * len(line), size)
            line = []
        if piece:
            pieces.append(piece)
    plan = _plan(program, fixed, pieces)
    return plan if plan.written < len(order) // 2 else None


def _pieces(program: Program, order: list[int]) -> list[list[int]]:
    """The line, whose numbers ascend, cut where iterations begin; empty pieces are dropped.

    Outputs that turn a value's sign, which come last of all, stand behind the iteration that made it.
    """
    nodes, marks = program.nodes, program.marks
    ends = [0, *(bisect_left(order, mark) for mark in marks), len(order)]
    *pieces, last = (order[a:b] for a, b in pairwise(ends))
    pieces.append([])
    kept = set(program.returned())
    for n in last:
        turned = n in kept and nodes[n][0] in (NEG, SUB)
        pieces[bisect_right(marks, max(nodes[n][1:])) if turned else -1].append(n)
    return [piece for piece in pieces if piece]


@dataclass
class _Memory:
    """What lives between pieces: for each node its bundle and the position in it, and the bundles."""

    owner: np.ndarray
    within: np.ndarray
    stored: np.ndarray
    size: np.ndarray  # of each bundle
    last: np.ndarray  # piece that reads it last; END: it is an output
    made: np.ndarray  # the piece that makes it


def _memory(program: Program, fixed: Plan, pieces: Pieces) -> _Memory:
    """Bundles: values that a piece makes for the same readers."""
    count = len(program.nodes)
    at, read = pieces.piece[pieces.reader], pieces.operand
    outside = pieces.home[read] != at
    outside &= pieces.home[read] >= 0
    kept = np.array([n for n in set(program.returned()) if pieces.home[n] >= 0], np.int64)
    reads = np.unique(
        np.concatenate(
            [read[outside] * (pieces.count + 1) + at[outside], kept * (pieces.count + 1) + pieces.count]
        )
    )
    node, who = np.divmod(reads, pieces.count + 1)
    names = np.random.default_rng(0).integers(0, 2**63, pieces.count + 1, np.uint64)
    readers, last = np.zeros(count, np.uint64), np.full(count, -1)
    np.add.at(readers, node, names[who])  # the sum stands for the set
    np.maximum.at(last, node, who)
    stored = last >= 0
    line = pieces.line[stored[pieces.line]]
    # What has a fixed slot is a bundle of its own, with a negative name.
    owner, within = np.zeros(count, np.int64), np.zeros(count, np.int64)
    if fixed.slot:
        at_slot = np.array(list(fixed.slot.items()), np.int64)
        owner[at_slot[:, 0]] = -1 - at_slot[:, 1]
    # A piece's own name keeps its bundles from those of others.
    key = readers[line] + names[pieces.home[line]] * np.uint64(3)
    _, first, bundle = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    bundle = rank[bundle.reshape(-1)]
    owner[line] = bundle
    within[line] = _counted(bundle)
    made = np.empty(len(first), np.int64)
    made[bundle] = pieces.home[line]
    ends = np.full(len(first), -1)
    np.maximum.at(ends, bundle, last[line])
    size = np.bincount(bundle, minlength=len(first))
    return _Memory(owner, within, stored, size, np.where(ends == pieces.count, END, ends), made)


def _counted(groups: np.ndarray) -> np.ndarray:
    """How many of the same number come before each."""
    order = np.argsort(groups, kind="stable")
    found = groups[order]
    starts = np.flatnonzero(np.r_[True, found[1:] != found[:-1]]) if len(found) else np.zeros(0, np.int64)
    counts = np.empty(len(groups), np.int64)
    counts[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
    return counts


def _alike(program: Program, pieces: list[list[int]], signs: bool = True) -> tuple[list[bool], int]:
    """Which pieces have enough others of the same operations: a guess, before places are known.

    ``pieces``: of its line; ``signs``: whether a sum and a difference are two operations. Returns that, and
    the fewest nodes that can be left to write.
    """
    nodes = program.nodes
    if signs:
        found = [hash(tuple([nodes[n][0] for n in piece])) for piece in pieces]
    else:
        found = [
            hash(tuple([_SIGNLESS[nodes[n][0]] for n in piece if nodes[n][0] != NEG])) for piece in pieces
        ]
    count = Counter(found)
    alike = [count[one] >= LEAST and len(piece) <= LONGEST for one, piece in zip(found, pieces, strict=True)]
    once = {one: len(piece) for one, piece, each in zip(found, pieces, alike, strict=True) if each}
    rest = sum(len(piece) for piece, each in zip(pieces, alike, strict=True) if not each)
    return alike, rest + sum(once.values())


def fewest(program: Program) -> tuple[int, int]:
    """The fewest nodes that can be left to write: as it is, and if constants keep their signs."""
    pieces = _pieces(program, program.order)
    return _alike(program, pieces)[1], _alike(program, pieces, signs=False)[1]


def _plan(program: Program, fixed: Plan, lines: list[list[int]]) -> Rerolled:
    pieces = Pieces.of(program, lines)
    memory = _memory(program, fixed, pieces)
    start, slots = _allocate(memory, fixed.slots)
    slot = dict(fixed.slot)
    stored = pieces.line[memory.stored[pieces.line]]
    slot |= zip(stored.tolist(), (start[memory.owner[stored]] + memory.within[stored]).tolist(), strict=True)
    kept = set(stored.tolist())
    plan = Rerolled(0, [], slot, kept, fixed.angles, fixed.constants, fixed.slot_of_input, slots)

    alike = Similarity.of(program, pieces, memory.owner, memory.within, memory.stored)
    kind_of: dict[int, int] = {}
    rows: dict[int, tuple[list[int], list[float]]] = {}
    for group in alike.groups(LEAST):
        first = lines[group[0]]
        if len(first) > LONGEST:
            continue
        bundles = np.array([alike.owners(k) for k in group])
        values = np.array([alike.values(k) for k in group])
        differ = np.flatnonzero((values != values[0]).any(axis=0))
        table = np.where(bundles >= 0, np.r_[start, 0][np.maximum(bundles, 0)], -1 - bundles)
        for k, row, own in zip(group, table.tolist(), values[:, differ].tolist(), strict=True):
            kind_of[k], rows[k] = len(plan.bodies), (row, own)
        plan.bodies.append(_kind(program, memory, first, bundles[0], values[0], differ))
    for k, piece in enumerate(lines):
        kind = kind_of.get(k)
        if kind is None:
            plan.sequence.append(len(plan.chunks))
            plan.chunks.append(piece)
            continue
        here = len(plan.steps)
        plan.steps.append((kind, *rows[k]))
        before = plan.sequence[-1] if plan.sequence else 0
        if isinstance(before, range):
            plan.sequence[-1] = range(before.start, here + 1)
        else:
            plan.sequence.append(range(here, here + 1))
    return plan


def _kind(
    program: Program,
    memory: _Memory,
    piece: list[int],
    bundles: np.ndarray,
    values: np.ndarray,
    differ: np.ndarray,
) -> LoopBody:
    column = {bundle: k for k, bundle in enumerate(bundles.tolist())}
    row = {values[c]: k for k, c in enumerate(differ.tolist())}
    used = {*piece, *program.operands(piece)}
    own = set(piece)
    place = {
        n: (column[int(memory.owner[n])], int(memory.within[n]))
        for n in used
        if (memory.stored[n] if n in own else program.nodes[n][0] != CONST)
    }
    constants = {
        n: row[program.nodes[n][1]]
        for n in used
        if program.nodes[n][0] == CONST and program.nodes[n][1] in row
    }
    return LoopBody(piece, len(column), place, constants)


def _allocate(memory: _Memory, slots: int) -> tuple[np.ndarray, int]:
    """First slot of each bundle, and slots in all; those whose readers are done are used again."""
    start: list[int] = []
    sizes, last, made = memory.size.tolist(), memory.last.tolist(), memory.made.tolist()
    free: defaultdict[int, list[int]] = defaultdict(list)
    ending: defaultdict[int, list[int]] = defaultdict(list)
    done = 0
    for bundle, piece in enumerate(made):
        while done < piece:
            for old in ending.pop(done, ()):
                free[sizes[old]].append(start[old])
            done += 1
        size = sizes[bundle]
        if free[size]:
            start.append(free[size].pop())
        else:
            start.append(slots)
            slots += size
        ending[last[bundle]].append(bundle)
    return np.array(start, np.int64), slots
