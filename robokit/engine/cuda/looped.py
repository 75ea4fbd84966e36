"""A function with loops on a card, called with pointers: as launch.py does a straight line."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robokit.engine.cuda.launch import Column
from robokit.engine.cuda.loops import Loops
from robokit.errors import ShapeError

if TYPE_CHECKING:
    from robokit.engine.loops.flat_kernel import FlatKernel

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
        self._last: dict[int, tuple[int, Any]] = {}  # stream of the last call, and when it is done
        self._recorded: list[Loops] = []  # those whose addresses CUDA graphs have
        self._lock = threading.Lock()

    def ready(self, rows: int | None = None) -> None:
        """Make, or find on disk, its code, which is the same for any number of states.

        Raises:
            DeviceError: it cannot be made.
            CompilerMissing: there is no llvmlite.
        """
        if not self._made:
            self._of(1)

    def _of(self, rows: int) -> Loops:
        """The kernel with memory of so many states, made at the first call of each number."""
        with self._lock:
            if rows not in self._made:
                where, dtype = ["tile"] * len(self.kernel.arrays), self.kernel.signature.dtype
                self._made[rows] = Loops(self.card, self.kernel, {}, where, dtype, {}, rows)
                if len(self._made) > SIZES:
                    oldest = next(iter(self._made))
                    if oldest in self._last:
                        self._last.pop(oldest)[1].before(0)  # memory is given back on that stream
                    del self._made[oldest]
            return self._made[rows]

    def __call__(self, arrays: Sequence[Column], rows: int, stream: int = 0) -> None:
        """Queue it for all states; arguments as of OnCard."""
        if len(arrays) != len(self.kernel.arrays):
            raise ShapeError(f"{self.name} takes {len(self.kernel.arrays)} arrays, got {len(arrays)}")
        if rows <= 0:
            return
        loops, pairs = self._of(rows), list(zip(self.kernel.arrays, arrays, strict=True))
        with self._lock:  # calls of other threads, and on other streams, have the same memory
            recorded = self.card.capturing(stream)
            if recorded:
                self._recorded.append(loops)
            elif rows in self._last and self._last[rows][0] != stream:
                self._last[rows][1].before(stream)
            loops.clear(stream)
            for a, column in pairs:
                if a.role == "in":
                    loops.take(a.name, column, stream)
            loops.run(1, stream)
            for a, column in pairs:
                if a.role == "out":
                    loops.give(a.name, column, stream)
            if not recorded:
                self._last[rows] = stream, self.card.event(stream)

    def check(self, rows: int) -> None:
        """Raise what the text of a state of the last call with so many rows raised; waits."""
        loops = self._of(rows)
        for status in set(loops.read("status").tolist()) - {0}:
            raise loops.failed(status)
