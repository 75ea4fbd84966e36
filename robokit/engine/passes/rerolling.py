"""Iterations of a loop over the tree that do the same share one function, which runs from a table.

A robot of hundreds of joints would make megabytes of straight line. The function says where iterations begin
(``scalars.iterations``), and the recorded line is cut there. Pieces that are equal, apart from constants and
the places of operands, are of one *kind*. A kind is written once, as a function, and called with a row of a
table: the row holds the places and the constants of a piece. Pieces that are like no others, at roots,
leaves and forks, stay a straight line.

Values that a piece makes for the same readers lie side by side and are called a *bundle*; a row names where
its bundles begin. emit/rerolled_code.py writes the functions and the table.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from robokit.engine.passes.chunks import Places, Schedule, cut, fixed_places
from robokit.engine.passes.similarity import Pieces, Similarity
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import ADD, CONST, NEG, OPERATIONS, SUB

WORTH = 18_000
"""Nodes from which on shared code is looked for: a shorter line is faster as it is (7 % at this length)."""

PIECE = 350
"""Nodes per chunk of what is not shared: mostly loads and stores, of which long lines compile slowly."""

LEAST = 3
"""Pieces that must be equal to share a function."""

LONGEST = 4_000
"""Nodes of the longest shared function: LLVM's time grows faster than that of its pieces."""

_SIGNLESS = [ADD if each.number == SUB else each.number for each in OPERATIONS]
"""Opcode of each operation, that of a sum for a difference."""

SHARED = 0.6
"""Share of a line that iterations leave at most where they are what makes it short."""

END = -1
"""Stands among the readers of an output for the caller."""


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
class Rerolled(Schedule):
    """A schedule with shared pieces."""

    bodies: list[LoopBody] = field(default_factory=list)  # the functions
    # the order of the code: the number of a chunk, or a range of steps
    sequence: list[int | range] = field(default_factory=list)
    # for each step its kind, its row (a slot for each bundle) and its values
    steps: list[tuple[int, list[int], list[float]]] = field(default_factory=list)

    @property
    def written(self) -> int:
        """Nodes that become code."""
        return sum(map(len, self.chunks)) + sum(len(kind.nodes) for kind in self.bodies)


def rerolled(program: Program, size: int) -> Rerolled | None:
    """Plan a program with shared pieces, all of whose inputs and outputs live in the workspace.

    Args:
        program: what to compute; its marks say where iterations begin.
        size: nodes per chunk of what is not shared, about.

    Returns:
        the plan, for any number of lanes, or None where it would not save half of the code.
    """
    if len(program.order) < WORTH or not program.marks or program.tables:
        return None
    places = fixed_places(program, bundled=True, shortest_run=1)
    order = [n for n in program.order if n not in places.slot]
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
    plan = _plan(program, places, pieces)
    return plan if plan.written < len(order) // 2 else None


def _pieces(program: Program, order: list[int]) -> list[list[int]]:
    """The line, whose numbers ascend, cut where iterations begin; empty pieces are dropped.

    Outputs that turn a value's sign, which come last of all, stand behind the iteration that made it.
    """
    nodes, marks = program.nodes, program.marks
    ends = [0, *(bisect_left(order, mark) for mark in marks), len(order)]
    *pieces, last = (order[a:b] for a, b in pairwise(ends))
    pieces.append([])
    kept = {r for row in program.results for r in row if type(r) is int}
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


def _memory(program: Program, places: Places, pieces: Pieces) -> _Memory:
    """Bundles: values that a piece makes for the same readers."""
    count = len(program.nodes)
    at, read = pieces.piece[pieces.reader], pieces.operand
    outside = pieces.home[read] != at
    outside &= pieces.home[read] >= 0
    kept = np.array([n for n in places.kept if pieces.home[n] >= 0], np.int64)
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
    if places.slot:
        fixed = np.array(list(places.slot.items()), np.int64)
        owner[fixed[:, 0]] = -1 - fixed[:, 1]
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

    Args:
        program: the graph.
        pieces: of its line.
        signs: whether a sum and a difference are two operations.

    Returns:
        that, and the fewest nodes that can be left to write.
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


def _plan(program: Program, places: Places, lines: list[list[int]]) -> Rerolled:
    pieces = Pieces.of(program, lines)
    memory = _memory(program, places, pieces)
    start, slots = _allocate(memory, places.slots)
    slot = dict(places.slot)
    stored = pieces.line[memory.stored[pieces.line]]
    slot |= zip(stored.tolist(), (start[memory.owner[stored]] + memory.within[stored]).tolist(), strict=True)
    plan = Rerolled(0, [], slot, set(stored.tolist()), places.angles, places.constants, {}, slots)
    plan.slot_of_input = places.inputs(program)

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
