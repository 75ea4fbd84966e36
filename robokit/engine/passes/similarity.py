"""Finds pieces of a recorded line that do the same with other numbers.

The line is cut where a function says that iterations begin. Two pieces are alike if they do the same
operations on the same places of their own; what they read from elsewhere and their constants are data: each
piece lists them in order of first use. Other files tell what is made of them: passes/rerolling.py a loop over
a table, passes/outlining.py calls of a function. All pieces go through NumPy at once: a long line has
hundreds of thousands of operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

import numpy as np

from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import CONST, OPERATIONS

_INSIDE, _CONSTANT, _OUTSIDE, _OWN = range(4)

_LATE = np.array([0, 2, 1])
"""Place of such an operand among those that commute."""

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
        mine = [nodes[n] for n in line.tolist()]
        counts = np.fromiter(map(len, mine), np.int64, len(mine)) - 1
        flat = np.fromiter(chain.from_iterable(mine), np.int64)
        starts = np.cumsum(counts + 1) - (counts + 1)
        operand = np.delete(flat, starts)
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
        stored: np.ndarray | None = None,
    ) -> Similarity:
        """The pieces' descriptions.

        Args:
            program: the graph.
            pieces: of its line.
            owner: by node, what is named where it is read: the node itself, or the place that it is in.
            within: by node, what is the same of it in pieces that are alike.
            stored: by node, whether a piece that leaves it must leave it in the same place.
        """
        count, x = pieces.count, pieces.operand
        by = pieces.piece[pieces.reader]
        fixed = pieces.codes[x] == CONST
        inside = (pieces.home[x] == by) & ~fixed
        outside = ~inside & ~fixed
        left = np.flatnonzero(stored[pieces.line]) if stored is not None else np.zeros(0, np.int64)
        # The order of use: the operands of a node, its own before others where they commute, then its place.
        most = int(pieces.turn.max(initial=0)) + 3
        tags = np.where(inside, _INSIDE, np.where(fixed, _CONSTANT, _OUTSIDE))
        turned = np.flatnonzero(_COMMUTES[pieces.codes[pieces.line[pieces.reader]]] & (pieces.turn == 0))
        turned = turned[_LATE[tags[turned]] > _LATE[tags[turned + 1]]]
        turn = pieces.turn.copy()
        turn[turned], turn[turned + 1] = 1, 0
        turns = pieces.reader * most + 1 + turn
        own = left * most + most - 1
        ranks = np.empty(len(x), np.int64)
        ranks[inside] = pieces.at[x[inside]]
        ranks[fixed], constants = _named(count, by[fixed], x[fixed], turns[fixed])
        both = np.concatenate([owner[x[outside]], owner[pieces.line[left]]])
        of = np.concatenate([by[outside], pieces.piece[left]])
        found, named = _named(count, of, both, np.concatenate([turns[outside], own]))
        ranks[outside] = found[: int(outside.sum())]
        inner = np.where(outside, within[x], 0)
        words = [
            (pieces.codes[pieces.line] << 2, np.arange(len(pieces.line)) * most),
            (((ranks << 24) + inner << 2) + tags, turns),
            (((found[int(outside.sum()) :] << 24) + within[pieces.line[left]] << 2) + _OWN, own),
        ]
        order = np.argsort(np.concatenate([at for _, at in words]), kind="stable")
        of_all = np.concatenate([pieces.piece, by, pieces.piece[left]])[order]
        text = np.concatenate([word for word, _ in words])[order]
        starts = np.searchsorted(of_all, np.arange(count + 1))
        return Similarity(program, (text, starts), named, constants)

    def groups(self, least: int) -> Iterator[list[int]]:
        """Numbers of pieces that are alike, of at least so many each."""
        text, starts = self.words
        lengths = np.diff(starts)
        keys = np.random.default_rng(1).integers(0, 2**63, int(lengths.max(initial=0)), np.uint64)
        places = np.arange(len(text)) - np.repeat(starts[:-1], lengths)
        mixed = (text.astype(np.uint64) + np.uint64(1)) * (keys[places] | np.uint64(1))
        sums = np.r_[np.uint64(0), np.cumsum(mixed, dtype=np.uint64)]
        _, group = np.unique(sums[starts[1:]] - sums[starts[:-1]], return_inverse=True)
        order = np.argsort(group.reshape(-1), kind="stable")
        found = np.split(order, np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1)
        for members in sorted((each for each in found if len(each) >= least), key=lambda each: int(each[0])):
            same = members[lengths[members] == lengths[members[0]]]  # sums may be equal by chance
            rows = text[starts[same][:, None] + np.arange(lengths[members[0]])]
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
