"""Finds pieces of a recorded line that do the same with other numbers.

The line is cut where a function says that iterations begin. Two pieces are alike if they do the same
operations on the same places of their own; what they read from elsewhere and their constants are data: each
piece lists them in order of first use, and they run in a loop over a table. All pieces go through NumPy at
once: a long line has hundreds of thousands of operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from operator import itemgetter

import numpy as np

from robokit.engine.passes.schedule import Plan, cut, fixed_places
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import ADD, CONST, NEG, OPERATIONS, SUB

_INSIDE, _CONSTANT, _OUTSIDE, _OPERATION = range(4)

_LATE = np.array([0, 2, 1], np.int8)  # place of such an operand among those that commute

_COMMUTES = np.array([operation.commutes for operation in OPERATIONS])


@dataclass
class Pieces:
    """A line cut into pieces. Its words are a node, those that it reads, the next node, and so on."""

    line: np.ndarray  # nodes of all pieces, in order
    code: np.ndarray  # operation of each of them
    begin: np.ndarray  # its word
    word: np.ndarray  # the node of each word
    by: np.ndarray  # its piece
    # home, at: piece of each node of the program and its place there; -1 where it is in none
    home: np.ndarray
    at: np.ndarray
    count: int  # of pieces

    @staticmethod
    def of(program: Program, line: Line, starts: np.ndarray) -> Pieces:
        """The pieces of a line that begin at these positions."""
        arrays, nodes = program.arrays, line.nodes
        place, home, inner = np.full((3, len(program.nodes)), -1, np.int32)
        place[arrays.order] = np.arange(len(arrays.order))
        lengths, place = np.diff(starts), place[nodes]  # in the program's order
        size = np.diff(arrays.begin)[place]
        begin = np.cumsum(size, dtype=np.int32) - size
        total = int(size.sum())
        at = np.repeat(arrays.begin[place] - begin, size)
        at += np.arange(total, dtype=np.int32)
        word = arrays.word[at]
        word[begin] = nodes
        pieces = np.arange(len(lengths), dtype=np.int32)
        home[nodes] = np.repeat(pieces, lengths)
        inner[nodes] = np.arange(len(nodes)) - np.repeat(starts[:-1], lengths)
        by = np.repeat(pieces, np.diff(np.r_[begin, total][starts]))
        return Pieces(nodes, line.codes, begin, word, by, home, inner, len(lengths))


@dataclass
class Similarity:
    """What pieces compute, without the places of their operands."""

    program: Program
    # what they do, the words of one piece after the other, and where each begins
    words: tuple[np.ndarray, np.ndarray]
    # owners of what each reads from elsewhere and of what it leaves, in order of first use
    named: tuple[np.ndarray, np.ndarray]
    constants: tuple[np.ndarray, np.ndarray]  # nodes of its constants, in order of first use

    @staticmethod
    def of(
        program: Program, pieces: Pieces, owner: np.ndarray, within: np.ndarray, stored: np.ndarray
    ) -> Similarity:
        """The pieces' descriptions.

        ``pieces``: of its line; ``owner``: by node, the place that it is in, which is named where it is read;
        below 0 outside of the line; ``within``: by node, what is the same of it in pieces that are alike;
        ``stored``: by node, whether a piece that leaves it must leave it in the same place.
        """
        x, by, begin = pieces.word.astype(np.intp), pieces.by, pieces.begin
        home = pieces.home[x]
        tags = np.where(home == by, np.int8(_INSIDE), np.int8(_OUTSIDE))
        none = np.flatnonzero(home < 0)
        tags[none[owner[x[none]] >= 0]] = _CONSTANT
        # Where operands commute, those of the piece come before others, and constants before none.
        first = begin[_COMMUTES[pieces.code]] + 1
        first = first[_LATE[tags[first]] > _LATE[tags[first + 1]]]
        for array in (x, tags):
            array[first], array[first + 1] = array[first + 1], array[first]
        tags[begin] = np.where(stored[pieces.line], _OUTSIDE, _OPERATION)  # named as what is elsewhere
        inside, fixed, outside = (np.flatnonzero(tags == tag) for tag in (_INSIDE, _CONSTANT, _OUTSIDE))
        word = tags.astype(np.int64)
        word[inside] = _INSIDE + (pieces.at[x[inside]].astype(np.int64) << 32)
        rank, constants = _named(pieces.count, by[fixed], x[fixed])
        word[fixed] = _CONSTANT + (rank << 32)
        rank, named = _named(pieces.count, by[outside], owner[x[outside]])
        word[outside] = _OUTSIDE + (rank << 32) + (within[x[outside]] << 8)
        word[begin] += 1 + pieces.code.astype(np.int64) << 2
        return Similarity(program, (word, np.searchsorted(by, np.arange(pieces.count + 1))), named, constants)

    def groups(self, least: int) -> Iterator[np.ndarray]:
        """Groups of at least so many pieces that are alike, by their numbers."""
        flat, starts = self.words
        lengths = np.diff(starts)
        _, group = np.unique(sums(flat, starts), return_inverse=True)
        order = np.argsort(group, kind="stable")
        found = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
        for members in sorted((each for each in found if len(each) >= least), key=lambda each: int(each[0])):
            same = members[lengths[members] == lengths[members[0]]]  # sums may be equal by chance
            rows = flat[starts[same][:, None] + np.arange(lengths[members[0]])]
            same = same[(rows == rows[0]).all(axis=1)]
            if len(same) >= least:
                yield same

    def values(self, group: np.ndarray) -> np.ndarray:
        """Constants of similar pieces: a row for each piece, in order of first use."""
        found = _rows(self.constants, group)
        values = [self.program.nodes[n][1] for n in found.ravel().tolist()]
        return np.array(values, float).reshape(found.shape)


def sums(words: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """A hash of each sequence of words.

    ``words``: whole numbers, one sequence after the other; ``starts``: where each begins, and the last ends.
    """
    lengths = np.diff(starts)
    keys = np.random.default_rng(1).integers(0, 2**63, int(lengths.max(initial=0)), np.uint64)
    places = np.arange(len(words), dtype=np.int32)
    places -= np.repeat(starts[:-1].astype(np.int32), lengths)
    mixed = (keys | np.uint64(1))[places]
    mixed *= words.astype(np.uint64) + np.uint64(1)
    total = np.zeros(len(words) + 1, np.uint64)
    np.cumsum(mixed, out=total[1:])
    found: np.ndarray = total[starts[1:]] - total[starts[:-1]]
    return found


def _rows(found: tuple[np.ndarray, np.ndarray], group: np.ndarray) -> np.ndarray:
    """A row for each of some pieces for which as much is found; as :func:`_named` returns it."""
    names, starts = found
    count = starts[group[0] + 1] - starts[group[0]]
    rows: np.ndarray = names[starts[group][:, None] + np.arange(count)]
    return rows


def _named(
    count: int, piece: np.ndarray, name: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The number of each name in its piece, by first use; the names by piece, and where each piece begins.

    ``count``: of pieces; ``piece``, ``name``: of each use, in order.
    """
    if not len(name):
        return np.zeros(0, np.int64), (np.zeros(0, np.int64), np.zeros(count + 1, np.int64))
    low, bits = int(name.min()), len(name).bit_length()
    span = int(name.max()) - low + 1
    # One sort without an index beside it: pieces, names and uses are some 17, 21 and 23 bits at most.
    key = np.sort((piece.astype(np.int64) * span + (name - low) << bits) + np.arange(len(name)))
    use, key = key & ((1 << bits) - 1), key >> bits
    new = np.diff(key, prepend=-1) != 0
    opens = np.zeros(len(name), bool)
    opens[use[new]] = True
    found = np.empty(len(name), np.int64)
    found[use] = (np.cumsum(opens) - 1)[use[new]][np.cumsum(new) - 1]
    starts = np.searchsorted(piece[opens], np.arange(count + 1))
    return found - starts[piece], (name[opens], starts)


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

_SIGNLESS = np.array([ADD if each.number == SUB else each.number for each in OPERATIONS])
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
        """Nodes for which code is written."""
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
    line = Line.of(program, list(fixed.slot))
    shared, least = line.alike()
    if least >= len(line.nodes) // 2:
        return None  # most lines end here: the plan takes ten times as long
    ends = [0]
    for own, piece in groupby(zip(shared.tolist(), line.starts[1:].tolist(), strict=True), itemgetter(0)):
        found = [end for _, end in piece]
        if not own:
            rest = line.nodes[ends[-1] : found[-1]].tolist()
            chunks = cut(program, rest, [1] * len(rest), size)
            found = list(accumulate(map(len, chunks), initial=ends[-1]))[1:]
        ends += found
    plan = _plan(program, fixed, line, np.array(ends))
    return plan if plan.written < len(line.nodes) // 2 else None


@dataclass
class Line:
    """Nodes of a program in order, cut where iterations begin."""

    nodes: np.ndarray
    codes: np.ndarray  # operation of each
    starts: np.ndarray  # where each iteration begins, and the last one ends

    @staticmethod
    def of(program: Program, without: Sequence[int] = ()) -> Line:
        """All but some nodes.

        Outputs that turn a value's sign, which come last of all, stand behind the iteration that made it.
        """
        arrays, marks = program.arrays, np.array(program.marks)
        inside = np.ones(len(program.nodes), bool)
        inside[list(without)] = False
        inside = inside[arrays.order]
        nodes, codes = arrays.order[inside], arrays.code[inside]
        piece = np.repeat(
            np.arange(len(marks) + 1), np.diff(np.r_[0, np.searchsorted(nodes, marks), len(nodes)])
        )
        output = np.zeros(len(program.nodes), bool)
        output[list(program.returned())] = True
        turned = output[nodes] & ((codes == NEG) | (codes == SUB)) & (piece == len(marks))
        if turned.any():
            begin, end = arrays.begin[:-1][inside][turned], arrays.begin[1:][inside][turned]
            made = np.maximum(arrays.word[begin + 1], arrays.word[end - 1])
            piece[turned] = np.searchsorted(marks, made, "right")
            by_piece = np.argsort(piece, kind="stable")
            nodes, codes, piece = nodes[by_piece], codes[by_piece], piece[by_piece]
        return Line(nodes, codes, np.r_[np.flatnonzero(np.diff(piece, prepend=-1)), len(nodes)])

    def alike(self, signs: bool = True) -> tuple[np.ndarray, int]:
        """Which pieces have enough others of the same operations: a guess, before places are known.

        ``signs``: whether a sum and a difference are two operations. Returns that, and the fewest nodes that
        can be left to write.
        """
        codes, starts = self.codes, self.starts
        if not signs:
            counted = codes != NEG
            starts = np.r_[0, np.cumsum(counted)][starts]
            codes = _SIGNLESS[codes[counted]]
        _, group, count = np.unique(sums(codes, starts), return_inverse=True, return_counts=True)
        length = np.diff(self.starts)
        alike = (count[group] >= LEAST) & (length <= LONGEST)
        once = np.zeros(len(count), int)
        once[group[alike]] = length[alike]
        return alike, int(length[~alike].sum() + once.sum())


def fewest(program: Program, signs: bool = True) -> int:
    """The fewest nodes that can be left to write; ``signs``: of the constants, whether they differ."""
    return Line.of(program).alike(signs)[1]


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
    size = len(program.nodes)
    home = pieces.home[pieces.word]
    outside = np.flatnonzero((home >= 0) & (home != pieces.by))
    kept = np.array([n for n in set(program.returned()) if pieces.home[n] >= 0], np.int64)
    count = pieces.count + 1  # readers, the caller among them
    read = pieces.word[outside].astype(np.int64) * count + pieces.by[outside]
    reads = np.sort(np.concatenate([read, kept * count + pieces.count]))
    node, who = np.divmod(reads[np.diff(reads, prepend=-1) != 0], count)
    names = np.random.default_rng(0).integers(0, 2**63, count, np.uint64)
    ends = np.flatnonzero(np.diff(node, append=-1))
    readers, last = np.zeros(size, np.uint64), np.full(size, -1)
    readers[node[ends]] = np.add.reduceat(names[who], np.r_[0, ends[:-1] + 1])  # stands for the set
    last[node[ends]] = who[ends]
    stored = last >= 0
    line = pieces.line[stored[pieces.line]]
    # What has a fixed slot is a bundle of its own, with a negative name.
    owner, within = np.zeros(size, np.int64), np.zeros(size, np.int64)
    owner[list(fixed.slot)] = [-1 - slot for slot in fixed.slot.values()]
    # A piece's own name keeps its bundles from those of others.
    key = readers[line] + names[pieces.home[line]] * np.uint64(3)
    _, first, bundle = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    bundle = rank[bundle]
    owner[line] = bundle
    within[line] = _counted(bundle)
    made = np.empty(len(first), np.int64)
    made[bundle] = pieces.home[line]
    done = np.full(len(first), -1)
    np.maximum.at(done, bundle, last[line])
    sizes = np.bincount(bundle, minlength=len(first))
    return _Memory(owner, within, stored, sizes, np.where(done == pieces.count, END, done), made)


def _counted(groups: np.ndarray) -> np.ndarray:
    """How many of the same number come before each."""
    order = np.argsort(groups, kind="stable")
    found = groups[order]
    starts = np.flatnonzero(np.diff(found, prepend=-1))
    counts = np.empty(len(groups), np.int64)
    counts[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))
    return counts


def _plan(program: Program, fixed: Plan, line: Line, starts: np.ndarray) -> Rerolled:
    """The plan for a line cut into these pieces."""
    pieces = Pieces.of(program, line, starts)
    memory = _memory(program, fixed, pieces)
    start, slots = _allocate(memory, fixed.slots)
    slot = dict(fixed.slot)
    stored = pieces.line[memory.stored[pieces.line]]
    slot |= zip(stored.tolist(), (start[memory.owner[stored]] + memory.within[stored]).tolist(), strict=True)
    kept = set(stored.tolist())
    plan = Rerolled(0, [], slot, kept, fixed.angles, fixed.constants, fixed.slot_of_input, slots)

    def nodes(piece: int) -> list[int]:
        found: list[int] = line.nodes[starts[piece] : starts[piece + 1]].tolist()
        return found

    alike = Similarity.of(program, pieces, memory.owner, memory.within, memory.stored)
    kind_of: dict[int, int] = {}
    rows: dict[int, tuple[list[int], list[float]]] = {}
    for group in alike.groups(LEAST):
        first = nodes(group[0])
        if len(first) > LONGEST:
            continue
        bundles, values = _rows(alike.named, group), alike.values(group)
        differ = np.flatnonzero((values != values[0]).any(axis=0))
        table = np.where(bundles >= 0, np.r_[start, 0][np.maximum(bundles, 0)], -1 - bundles)
        for k, row, own in zip(group.tolist(), table.tolist(), values[:, differ].tolist(), strict=True):
            kind_of[k], rows[k] = len(plan.bodies), (row, own)
        plan.bodies.append(_kind(program, memory, first, bundles[0], values[0], differ))
    for k in range(pieces.count):
        kind = kind_of.get(k)
        if kind is None:
            plan.sequence.append(len(plan.chunks))
            plan.chunks.append(nodes(k))
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
