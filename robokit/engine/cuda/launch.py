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

ROUNDS = 4
"""Blocks of a multiprocessor from which on a batch is large."""


TEAM = "; team "
"""Before the numbers of a team, in the second line of a text."""


@dataclass(frozen=True)
class Team:
    """How code is launched in which the warps of a block work on the same states.

    Attributes:
        warps: of a block.
        states: of a block.
        shared: bytes that they share.
    """

    warps: int
    states: int
    shared: int


class OnCard:
    """A kernel on a card.

    Attributes:
        card: the card.
        name: of the kernel, for messages.
        count: arrays that it takes: inputs, tables and outputs.
    """

    _function: Function | None
    _team: Team | None

    def __init__(
        self, card: Card, name: str, count: int, load: Callable[[], tuple[Function, Team | None]]
    ) -> None:
        """A kernel whose code is loaded when it is first needed."""
        self.card, self.name, self.count = card, name, count
        self._load, self._function, self._team, self._lock = load, None, None, threading.Lock()

    @property
    def loaded(self) -> bool:
        """Whether its code is on the card."""
        return self._function is not None

    def ready(self) -> Function:
        """The function, with its code on the card: made, or found on disk, at the first call.

        Raises:
            DeviceError: it cannot be made or loaded.
            TraceTooLarge: it is too long.
            CompilerMissing: there is no llvmlite.
        """
        if self._function is None:
            with self._lock:
                if self._function is None:
                    function, self._team = self._load()
                    if self._team is not None:
                        function.give_shared(self._team.shared)
                    self._function = function
        return self._function

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
        function = self.ready()
        if rows <= 0:
            return
        team = self._team
        if team is not None:
            blocks = -(-rows // team.states)
            self.card.launch(function, blocks, WARP * team.warps, (*words, rows), stream, team.shared)
            return
        threads = BLOCK if rows >= ROUNDS * BLOCK * self.card.multiprocessors else WARP
        self.card.launch(function, -(-rows // threads), threads, (*words, rows), stream)
