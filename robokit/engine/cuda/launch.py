"""A kernel on one card, called with pointers: nothing is converted, checked, allocated or waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robokit.engine.cuda.driver import Card, Function
from robokit.errors import ShapeError

Column = tuple[int, int, int]
"""Where an array is: (pointer, between, own). Number j of state t is at ``between j + own t``."""

LARGEST = 2**31 - 1
"""Most numbers between two numbers of a state."""

BLOCK, WARP = 128, 32
"""Threads of a block: in large batches, and in small ones, which so reach more multiprocessors."""

WAVES = 2
"""Blocks that follow each other on a multiprocessor at most where numbers do not fit into registers: more of
them leave it partly idle in the end (ABA of G1 on an H200: 582 million a second, 542 with a block for each
128 states; the quadruped's CRBA in double precision loses a tenth).
"""

ROUNDS = 4
"""Blocks of a multiprocessor from which on a batch is large."""


TILES = 4
"""Tiles of 32 states for each multiprocessor up to which a batch is small (measured on an H200)."""

TEAM = "; team "
"""Before the numbers of a team, in the second line of a text."""


@dataclass(frozen=True)
class Team:
    """How code is launched in which the warps of a block work on the same states."""

    warps: int  # of a block
    states: int  # of a block
    shared: int  # bytes that they share


class OnCard:
    """A kernel on a card.

    In large batches a thread has a state of its own. In small ones, whose states do not fill the card, a team
    of warps has 32 of them where there is code for that. The results are the same bits.

    Attributes:
        card: the card.
        name: of the kernel, for messages.
        count: arrays that it takes: inputs, tables and outputs.
        small: most states of a small batch.
    """

    def __init__(
        self, card: Card, name: str, count: int, load: Callable[[bool], tuple[Function, Team | None] | None]
    ) -> None:
        """A kernel whose code is loaded when it is first needed.

        Args:
            card, name, count: as above.
            load: the code, or that for teams, which there may not be.
        """
        self.card, self.name, self.count = card, name, count
        self.small = TILES * WARP * card.multiprocessors
        self._load, self._lock = load, threading.Lock()
        self._codes: dict[bool, tuple[Function, Team | None] | None] = {}

    @property
    def loaded(self) -> bool:
        """Whether code of it is on the card."""
        return bool(self._codes)

    def ready(self, rows: int | None = None) -> Function:
        """The function for so many states; its code is made, or found on disk, at the first call.

        Args:
            rows: number of states; None for many.

        Raises:
            DeviceError: it cannot be made or loaded.
            TraceTooLarge: it is too long.
            CompilerMissing: there is no llvmlite.
        """
        return self._chosen(self.small + 1 if rows is None else rows)[0]

    def _chosen(self, rows: int, stream: int = 0) -> tuple[Function, Team | None]:
        """The code for so many states. None is made while a graph is recorded: what is there does as well."""
        team = rows <= self.small
        if team not in self._codes and self._codes and self.card.capturing(stream):
            team = not team
        found = self._code(team) or self._code(False)
        assert found is not None
        return found

    def _code(self, team: bool) -> tuple[Function, Team | None] | None:
        if team not in self._codes:
            with self._lock:
                if team not in self._codes:
                    self._codes[team] = self._load(team)
        return self._codes[team]

    def __call__(self, arrays: Sequence[Column], rows: int, stream: int = 0) -> None:
        """Queue the kernel for all states.

        Args:
            arrays: where the inputs, tables and outputs are. States side by side, (n, B): (pointer, B, 1).
                State after state, (B, n): (pointer, 1, n). One state for all: (pointer, 1, 0).
            rows: number of states.
            stream: on which.

        Raises:
            ShapeError: too many or too few arrays, or numbers too far apart.
            DeviceError: as :meth:`ready`.
        """
        if len(arrays) != self.count:
            raise ShapeError(f"{self.name} takes {self.count} arrays on the card, got {len(arrays)}")
        words = [word for array in arrays for word in array]
        if not -LARGEST <= min(words[1::3]) <= max(words[1::3]) <= LARGEST:
            raise ShapeError(f"{self.name}: numbers of a state more than {LARGEST} numbers apart")
        if rows <= 0:
            return
        function, team = self._chosen(rows, stream)
        if team is not None:
            blocks = -(-rows // team.states)
            self.card.launch(function, blocks, WARP * team.warps, (*words, rows), stream, team.shared)
            return
        threads = BLOCK if rows >= ROUNDS * BLOCK * self.card.multiprocessors else WARP
        blocks = -(-rows // threads)
        if function.local and threads == BLOCK:
            blocks = min(blocks, WAVES * function.resident(threads) * self.card.multiprocessors)
        self.card.launch(function, blocks, threads, (*words, rows), stream)
