"""A function with loops on a card, called with pointers: as launch.py does a straight line."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robokit.engine.cuda.launch import Column
from robokit.engine.cuda.loops import Loops
from robokit.errors import ShapeError

if TYPE_CHECKING:
    from robokit.engine.loops.recorded_once import FlatKernel

SIZES = 8
"""Batches of so many sizes have memory of their own at a time."""


class LoopedOnCard:
    """A function with loops on a card, with the methods of OnCard.

    Attributes:
        card: the card.
        name: of the kernel, for messages.
        loaded: whether a call finds all that it needs.
    """

    loaded = True

    def __init__(self, card: Any, kernel: FlatKernel) -> None:
        """A function of arrays of numbers without sizes."""
        self.card, self.kernel, self.name = card, kernel, kernel.signature.name
        self._made: dict[int, Loops] = {}
        self._recorded: dict[tuple[int, int], Loops] = {}
        self._lock = threading.Lock()

    def ready(self, rows: int | None = None) -> None:
        """Make, or find on disk, its code, which is the same for any number of states.

        Raises:
            DeviceError: it cannot be made.
            CompilerMissing: there is no llvmlite.
        """
        if not self._made:
            self._of(1, 0)

    def _of(self, rows: int, graph: int) -> Loops:
        """The kernel with memory of so many states, made at the first call of each number.

        A CUDA graph has memory of its own, since it may be replayed at any time; it stays for good, since
        nobody says when the graph is gone.
        """
        with self._lock:
            found = self._recorded.get((graph, rows)) if graph else self._made.get(rows)
            if found is None:
                where, dtype = ["tile"] * len(self.kernel.arrays), self.kernel.signature.dtype
                found = Loops(self.card, self.kernel, {}, where, dtype, {}, rows)
                if graph:
                    self._recorded[graph, rows] = found
                else:
                    self._made[rows] = found
                    if len(self._made) > SIZES:
                        del self._made[next(iter(self._made))]
            return found

    def __call__(self, arrays: Sequence[Column], rows: int, stream: int = 0, check: bool = False) -> None:
        """Queue it for all states; arguments as of OnCard.

        Args:
            arrays, rows, stream: as there.
            check: whether to raise what the function's text raised for one of the states; waits.
        """
        if len(arrays) != len(self.kernel.arrays):
            raise ShapeError(f"{self.name} takes {len(self.kernel.arrays)} arrays, got {len(arrays)}")
        if rows <= 0:
            return
        pairs = list(zip(self.kernel.arrays, arrays, strict=True))
        loops = self._of(rows, self.card.capturing(stream))
        with loops.memory.on(stream):  # calls of other threads, and on other streams, have the same
            loops.clear(stream)
            for a, column in pairs:
                if a.role == "in":
                    loops.take(a.name, column, stream)
            loops.run(1, stream)
            for a, column in pairs:
                if a.role == "out":
                    loops.give(a.name, column, stream)
            if check:
                for status in set(loops.read("status", stream).tolist()) - {0}:
                    raise loops.failed(status)
