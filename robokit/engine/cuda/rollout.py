"""Many steps of a recorded kernel on a card: the states stay there from one step to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.engine.cuda.driver import Memory

Column = tuple[int, int, int]

HELD_BYTES = 1 << 30
"""Of inputs that change with the steps, on the card at once."""


class RolloutOnCard:
    """Takes a kernel whose every output is fed back through many steps, with RolloutRunner's methods.

    What is fed back is on the card twice: a step reads the one and writes the other. Nothing waits, and
    nothing is allocated, between :meth:`begin` and :meth:`look`, but in :meth:`put` of other arrays.

    Attributes:
        card: the card.
        columns: where the present states are, one Column for each input of the kernel.
        memory: of the states and the inputs.
    """

    def __init__(self, kernel: Any, card: Any) -> None:
        """Make or find the code of an engine.Kernel.

        Raises:
            ValueError: an output is not fed back.
        """
        signature = kernel.signature
        if len(signature.feedback) != len(signature.outputs):
            raise ValueError(f"{kernel.name}: every output must be fed back")
        self.card, self.feedback = card, sorted(signature.feedback)
        self.sizes, self.dtype = [n for _, n in signature.arguments], np.dtype(signature.dtype)
        self.names = [name for name, _ in signature.arguments]
        self._kernel = kernel.on_card(card)
        self._kernel.ready()
        self.columns: list[Column] = []
        self.memory, self._sizes = Memory(card, {}), dict[str, int]()

    def _room(self, k: int, numbers: int) -> int:
        """Memory of input k, or, below 0, of the next numbers of output -k - 1."""
        name, size = str(k), numbers * self.dtype.itemsize
        if self._sizes.get(name, -1) < size:
            self.memory.allocate({name: size})
            self._sizes[name] = size
        return self.memory[name]

    # ---- inputs --------------------------------------------------------------------------------

    def begin(self, arrays: Sequence[np.ndarray], rows: int, stream: int = 0) -> None:
        """Copy the states and what does not change to the card.

        Args:
            arrays: the inputs, (steps or 1, rows or 1, n) each.
            rows: how many.
            stream: on which.
        """
        self.rows, self.columns = rows, [(0, 1, 0)] * len(self.sizes)
        with self.memory.on(stream):
            for k, x in enumerate(arrays):
                if len(x) == 1:
                    self.put(k, x[0], stream)
            self.next = [self._room(-1 - o, self.sizes[k] * rows) for o, k in self.feedback]

    def put(self, k: int, x: np.ndarray, stream: int = 0) -> None:
        """Copy input k of all steps to come to the card, (rows, n), or (1, n) for all rows."""
        own = np.broadcast_to(x, (self.rows, x.shape[1])) if self._fed_back(k) else x
        with self.memory.on(stream):
            pointer = self.columns[k][0] if self._fed_back(k) else 0
            pointer = pointer or self._room(k, self.sizes[k] * len(own))
            if own.size:
                self.card.write(pointer, np.ascontiguousarray(own.T, self.dtype), stream)
        alone = len(own) == 1
        self.columns[k] = (pointer, 1, 0) if alone and self.rows > 1 else (pointer, len(own), 1)

    def _fed_back(self, k: int) -> bool:
        return any(k == i for _, i in self.feedback)

    # ---- steps ---------------------------------------------------------------------------------

    def steps(self, count: int, changing: dict[int, list[Column]] | None = None, stream: int = 0) -> None:
        """Queue so many steps of all rows.

        Args:
            count: how many.
            changing: inputs that change from step to step, one Column a step.
            stream: on which.
        """
        with self.memory.on(stream):
            for step in range(count):
                for k, each in (changing or {}).items():
                    self.columns[k] = each[step]
                after = [(pointer, self.rows, 1) for pointer in self.next]
                self._kernel([*self.columns, *after], self.rows, stream)
                for o, (_, k) in enumerate(self.feedback):
                    self.next[o], self.columns[k] = self.columns[k][0], after[o]
            if count % 2:  # back to where they were: the same steps may be repeated by a CUDA graph
                for o, (_, k) in enumerate(self.feedback):
                    here, there = self.columns[k][0], self.next[o]
                    self.card.copy(there, here, self.sizes[k] * self.rows * self.dtype.itemsize, stream)
                    self.next[o], self.columns[k] = here, (there, self.rows, 1)

    def look(self, arrays: Sequence[np.ndarray], which: Sequence[int] | None = None, stream: int = 0) -> None:
        """Copy the states from the card into the arrays of the host, (1, rows, n); waits."""
        with self.memory.on(stream):
            for _, k in self.feedback:
                if self.sizes[k] and (which is None or k in which):
                    found = np.empty((self.sizes[k], self.rows), self.dtype)
                    self.card.read(found, self.columns[k][0], stream)
                    arrays[k][0] = found.T

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Callable[[int, int, int], Any],
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """Take all rows through the steps; arguments and result as of RolloutRunner.roll."""
        self.begin(arrays, rows)
        for k in range(1, len(marks)):
            try:
                self._between(arrays, marks[k - 1], marks[k])
            except KeyboardInterrupt:
                return k, True
            self.look(arrays)
            before = [arrays[i].copy() for _, i in self.feedback]
            record(k, 0, rows)
            for (_, i), old in zip(self.feedback, before, strict=True):
                if not np.array_equal(
                    old, arrays[i], equal_nan=True
                ):  # sums that begin anew, rows that failed
                    self.put(i, arrays[i][0])
            if progress is not None:
                progress(marks[k] - marks[k - 1])
        return len(marks), False

    def _between(self, arrays: Sequence[np.ndarray], first: int, last: int) -> None:
        """The steps from one record to the next."""
        tables = {k: x for k, x in enumerate(arrays) if len(x) > 1}
        width = sum(x.shape[1] * x.shape[2] for x in tables.values()) * self.dtype.itemsize
        most = max(1, HELD_BYTES // width) if width else last - first
        for at in range(first, last, most):
            count, changing = min(most, last - at), {}
            with self.memory.on(0):
                for k, x in tables.items():
                    part = np.ascontiguousarray(np.moveaxis(x[at : at + count], 1, 2), self.dtype)
                    pointer, (_, n, B) = self._room(k, part.size), part.shape
                    self.card.write(pointer, part)
                    jump = n * B * self.dtype.itemsize
                    changing[k] = [
                        (pointer + j * jump, *((1, 0) if B == 1 and self.rows > 1 else (B, 1)))
                        for j in range(count)
                    ]
            self.steps(count, changing)
