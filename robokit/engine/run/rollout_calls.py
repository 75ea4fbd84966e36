"""Many states through many steps of a kernel with feedback: threads, records, Ctrl-C.

The machine code (emit/batch_module.py) takes many steps of many rows in one call, without the GIL. Rows
are divided among threads; each thread goes from record to record with its own rows and waits for no other.
Rows are independent, so the result does not depend on the division.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.engine.backend.cpu import processors
from robokit.engine.emit.ir import GROUP
from robokit.engine.memory import address, aligned
from robokit.engine.run.batch_calls import BLOCK_SECONDS, PAYS_SECONDS, Words, in_threads
from robokit.engine.signature import Pairs

Record = Callable[[int, int, int], None]
"""(number of the record, first row, last row + 1): called when these rows have reached a record."""


class RolloutRunner:
    """Runs a kernel whose every output is fed back on many states, in place.

    Its inputs are arrays (steps or 1, rows or 1, n) of the kernel's dtype with contiguous rows: what changes
    from step to step, or from row to row, has that axis. The fed-back ones are (1, rows, n) and are
    overwritten.
    """

    def __init__(
        self,
        feedback: Pairs,
        count: int,
        plain: Callable[[list[np.ndarray], int], list[np.ndarray]],
        seconds: float,
        driver: int = 0,
        workspace: int = 0,
        lanes: int = 1,
        keep: Any = None,
    ) -> None:
        """Wrap a driver, or the plain function.

        Args:
            feedback: (output, input) of each output.
            count: of inputs, tables included.
            plain: one step by the function: inputs (rows, n) or (n,), number of rows -> outputs.
            seconds: time per row and step, roughly.
            driver: address of the driver; 0 where there is no machine code, and the function runs.
            workspace: size of its workspace [doubles].
            lanes: states in a tile.
            keep: object that owns the code.
        """
        self.feedback, self.count, self.seconds, self.lanes = feedback, count, seconds, lanes
        self._plain, self._compiled, self._workspace, self._keep = plain, bool(driver), workspace, keep
        self._run = ctypes.CFUNCTYPE(
            ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, ctypes.c_void_p
        )(driver)

    def workspace(self) -> np.ndarray | None:
        """Memory that one thread needs for :meth:`run`."""
        return aligned(self._workspace) if self._compiled else None

    def stopper(self, memory: Sequence[Any]) -> threading.Event:
        """The event that ends what works with these workspaces early."""
        return threading.Event()

    def release(self, memory: np.ndarray | None) -> None:
        """Take back what :meth:`workspace` gave."""

    def run(
        self, arrays: Sequence[np.ndarray], memory: np.ndarray | None, rows: range, step: int, steps: int
    ) -> None:
        """Take steps in place.

        Args:
            arrays: the inputs.
            memory: from :meth:`workspace`, of this thread.
            rows: which.
            step: number of the first step, where inputs change from step to step.
            steps: how many.

        Raises:
            ValueError: more or fewer arrays than the kernel has inputs; it would write anywhere.
        """
        if len(arrays) != self.count:
            raise ValueError(f"expected {self.count} arrays, got {len(arrays)}")
        if memory is None:
            for k in range(step, step + steps):
                self._text(arrays, rows, k)
            return
        args, gaps, jumps = self.words(arrays, step)
        self._run(
            ctypes.addressof(args),
            ctypes.addressof(gaps),
            address(memory),
            rows.start,
            rows.stop,
            steps,
            ctypes.addressof(jumps),
        )

    def words(self, arrays: Sequence[np.ndarray], step: int) -> list[Words]:
        """Addresses of the arguments, bytes between their rows, and bytes between their steps."""
        moves = [a.strides[0] if len(a) > 1 else 0 for a in arrays]
        strides = [a.strides[1] if a.shape[1] > 1 else 0 for a in arrays]
        places = [address(a) + step * m for a, m in zip(arrays, moves, strict=True)]
        for _, k in sorted(self.feedback):  # an output has the address of its input
            for words in (moves, strides, places):
                words.append(words[k])
        strides.append(0)  # nothing is written past the caches: the next step reads it
        return [(ctypes.c_int64 * len(words))(*words) for words in (places, strides, moves)]

    def _text(self, arrays: Sequence[np.ndarray], rows: range, step: int) -> None:
        """One step of the plain function."""
        part = slice(rows.start, rows.stop)
        now = [a[step if len(a) > 1 else 0] for a in arrays]
        now = [a[part] if len(a) > 1 else a[0] for a in now]
        outs = self._plain(now, len(rows))
        for output, k in self.feedback:
            arrays[k][0, part] = outs[output]

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Record,
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """Take all rows through the steps, and report them at each record.

        Args:
            arrays: the inputs.
            rows: how many.
            marks: number of steps taken at each record, ascending from 0.
            record: called for every record after the first.
            threads: so many; None for as many as pay.
            progress: called with the steps that were taken since the call before.

        Returns:
            the records that all rows have reached, and whether Ctrl-C ended it early.
        """
        work = rows * marks[-1] * self.seconds
        shares = threads or max(1, min(processors(), int(work / PAYS_SECONDS)))
        share = max(1, -(-rows // (shares * self.lanes))) * self.lanes
        starts = range(0, rows, share)
        done = [1] * len(starts)
        memory = [self.workspace() for _ in starts]
        stop = self.stopper(memory)

        def go(number: int) -> None:
            own = range(starts[number], min(starts[number] + share, rows))
            for k in range(1, len(marks)):
                for part, step, steps in self._blocks(own, marks[k - 1], marks[k]):
                    if stop.is_set():
                        return
                    self.run(arrays, memory[number], part, step, steps)
                record(k, own.start, own.stop)
                done[number] = k + 1
                if progress is not None and number == 0:
                    progress(marks[k] - marks[k - 1])

        interrupted = False
        try:
            in_threads(go, range(len(starts)), stop)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            for each in memory:
                self.release(each)
        return min(done, default=len(marks)), interrupted

    def _blocks(self, rows: range, first: int, last: int) -> list[tuple[range, int, int]]:
        """(rows, step, steps) from step first to last, none longer than a wait for Ctrl-C may be."""
        wanted = int(BLOCK_SECONDS / (self.seconds * (last - first)))
        size = max(GROUP * self.lanes, wanted // self.lanes * self.lanes)
        steps = max(1, min(last - first, int(BLOCK_SECONDS / (self.seconds * min(size, len(rows))))))
        if not self._compiled:  # NumPy arrays as scalars: the more rows the better
            size, steps = len(rows), 1
        return [
            (range(start, min(start + size, rows.stop)), step, min(steps, last - step))
            for start in range(rows.start, rows.stop, size)
            for step in range(first, last, steps)
        ]
