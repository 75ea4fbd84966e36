"""Calls for many states: batches and rollouts of machine code, and functions run as they stand by Python."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from robokit.engine.backend.llvm import last_cache, processors
from robokit.engine.emit.ir import GROUP
from robokit.engine.memory import address, aligned
from robokit.engine.signature import FlatFunction, Pairs
from robokit.interpreter import at_fork

# -- Functions as they stand, on Python's floats or NumPy's columns: slow, and the same numbers ------------

SECONDS = 1e-5  # a guess of the time per state of a batch


def run_plain(
    function: FlatFunction, arrays: Sequence[np.ndarray], outs: Sequence[np.ndarray], rows: int | None
) -> None:
    """Run a function once.

    ``function``: what to run; ``arrays``: (n,) or (rows, n) each; ``outs``: for what it returns;
    ``rows``: states of the batch; None for one state.
    """
    if rows is None:
        try:
            results = function(*(a.tolist() for a in arrays))
        except (ValueError, ArithmeticError):  # Python raises where the processor answers NaN
            run_plain(function, arrays, [o[None] for o in outs], 1)
            return
    else:
        columns = [np.ascontiguousarray(np.broadcast_to(a, (rows, a.shape[-1])).T) for a in arrays]
        with np.errstate(all="ignore"):
            results = function(*map(list, columns))
    for o, row in zip(outs, results, strict=True):
        flat = o.reshape(-1) if rows is None else o.reshape(rows, math.prod(o.shape[1:]))
        for k, x in enumerate(row):
            flat[..., k] = x


# -- Rows: blocks that Ctrl-C can interrupt, threads where they pay ---------------------------------------
#
# The machine code is called through ctypes, which releases the GIL, so Python threads are real threads
# here. Each holds a workspace of its own. Rows are independent: the result does not depend on the division.

BLOCK_SECONDS = 0.05  # longest time between two looks at Ctrl-C
PAYS_SECONDS = 200e-6  # work that a thread must have to be worth waking
PAST = 0.25  # of the last cache: larger outputs are written past it, since others need their place there

NEAR = 12 * 2**20
"""Bytes of the largest outputs that are not, however large the last cache: a server's is shared by many
processors and about as slow to write as memory. There, a call and a sum over its result gain from here on.
"""

Words = ctypes.Array[Any]
Part = TypeVar("Part")
Answer = TypeVar("Answer")

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def thread_pool() -> ThreadPoolExecutor:
    """The threads that all batches share."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(processors(), thread_name_prefix="robokit")
        return _pool


def _forget_threads() -> None:
    """In a forked child the threads of the parent do not exist."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


at_fork(after_in_child=_forget_threads)


def in_threads(work: Callable[[Part], Answer], parts: Sequence[Part], stop: threading.Event) -> list[Answer]:
    """Do the parts of a work at the same time: the first in this thread, the others in those of the pool.

    Parts for which no thread can be had are done here, one after the other. ``work``: does one part, without
    the GIL; it ends early once ``stop`` is set; ``parts``: in any order; ``stop``: set when this is over:
    threads that still write must not outlive an interrupted caller. Returns what the parts give, in any
    order.
    """
    own, futures = list(parts[:1]), list[Future[Answer]]()
    try:
        for k in range(1, len(parts)):
            try:
                futures.append(thread_pool().submit(work, parts[k]))
            except RuntimeError:  # no thread can be had: a limit is reached, or the program is ending
                own += parts[k:]
                break
        found = [work(part) for part in own]
        return [*found, *(future.result() for future in futures)]
    finally:
        stop.set()
        for future in futures:
            future.cancel() or future.exception()


class BatchRunner:
    """The batch driver of one kernel, ready to be called."""

    def __init__(self, driver: int, workspace: int, tile: int, seconds: float, keep: Any = None) -> None:
        """Wrap a driver.

        Args:
            driver: its address.
            workspace: size of its workspace [doubles].
            tile: rows that go together; blocks are multiples of it.
            seconds: time per row, roughly.
            keep: object that owns the code.
        """
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(driver)
        self._workspace, self._tile, self._seconds, self._keep = workspace, tile, seconds, keep
        self._free: list[np.ndarray] = []
        self.few = max(1, int(2 * PAYS_SECONDS / seconds))  # rows that no second thread is woken for

    def __call__(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], rows: int, threads: int | None
    ) -> int:
        """Run over all rows.

        ``inputs``: (rows, n) each, or (n,) for one row that serves the whole batch; ``outputs``: (rows, ...)
        each; ``rows``: how many; ``threads``: largest number of threads; None for the number that is
        worthwhile. Returns the status of all rows together.
        """
        arrays = (*inputs, *outputs)
        addresses = (ctypes.c_void_p * len(arrays))(*map(address, arrays))
        steps = [a.strides[0] if a.ndim == 2 else 0 for a in inputs] + [a.strides[0] for a in outputs]
        past = int(sum(a.nbytes for a in outputs) > min(PAST * last_cache(), NEAR))
        strides = (ctypes.c_int64 * (len(arrays) + 1))(*steps, past)
        shares = max(1, min(int(rows * self._seconds / PAYS_SECONDS), threads or processors(), processors()))
        if shares == 1:
            return self._rows(addresses, strides, 0, rows, None)
        share = -(-rows // (shares * self._tile)) * self._tile
        stop = threading.Event()
        parts = [(start, min(start + share, rows)) for start in range(0, rows, share)]

        def work(part: tuple[int, int], _keep: Any = arrays) -> int:
            return self._rows(addresses, strides, *part, stop)

        return functools.reduce(operator.or_, in_threads(work, parts, stop), 0)

    def _rows(
        self, addresses: Words, strides: Words, start: int, end: int, stop: threading.Event | None
    ) -> int:
        """Rows start..end in blocks; a set event ends it early."""
        block = max(self._tile, int(BLOCK_SECONDS / self._seconds) // self._tile * self._tile)
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = aligned(self._workspace)
        place = address(workspace)
        args, steps = ctypes.addressof(addresses), ctypes.addressof(strides)
        status = 0
        for first in range(start, end, block):
            if stop is not None and stop.is_set():
                break
            status |= self._run(args, steps, place, first, min(first + block, end))
        self._free.append(workspace)
        return status


# -- Rollouts: many states through many steps, threads, records -------------------------------------------
#
# The machine code (emit/batch_module.py) takes many steps of many rows in one call, without the GIL. Rows
# are divided among threads; each thread goes from record to record with its own rows and waits for no other.
# Rows are independent, so the result does not depend on the division.

Record = Callable[[int, int, int], None]
"""(number of the record, first row, last row + 1): called when these rows have reached a record."""


def from_record_to_record(
    parts: Sequence[range],
    marks: Sequence[int],
    take: Callable[[int, int, int], bool],
    record: Record,
    progress: Callable[[int], Any] | None,
    stop: threading.Event,
) -> tuple[int, bool]:
    """Take parts of the rows through the steps, each in a thread of its own.

    ``take``: takes a part, by its number, from one step to another; whether it got there: it does not where
    ``stop`` is set. Others are as of :meth:`RolloutRunner.roll`, and so is what is returned.
    """
    done = [1] * len(parts)

    def go(number: int) -> None:
        for k in range(1, len(marks)):
            if not take(number, marks[k - 1], marks[k]):
                return
            record(k, parts[number].start, parts[number].stop)
            done[number] = k + 1
            if progress is not None and number == 0:
                progress(marks[k] - marks[k - 1])

    interrupted = False
    try:
        in_threads(go, range(len(parts)), stop)
    except KeyboardInterrupt:
        interrupted = True
    return min(done, default=len(marks)), interrupted


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
        baseline: bool = False,
    ) -> None:
        """Wrap a driver, or the plain function.

        Args:
            feedback: (output, input) of each output.
            count: of inputs.
            plain: one step by the function: inputs (rows, n) or (n,), number of rows -> outputs.
            seconds: time per row and step, roughly.
            driver: address of the driver; 0 where there is no machine code, and the function runs.
            workspace: size of its workspace [doubles].
            lanes: states in a tile.
            keep: object that owns the code.
            baseline: whether better code may come.
        """
        self.feedback, self.count, self.seconds, self.lanes = feedback, count, seconds, lanes
        self._plain, self._workspace, self.keep, self.baseline = plain, workspace, keep, baseline
        self._use(driver)

    def _use(self, driver: int) -> None:
        """Run the driver of that address from now on."""
        self._compiled = bool(driver)
        self._run = ctypes.CFUNCTYPE(
            ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, ctypes.c_void_p
        )(driver)

    def workspace(self) -> np.ndarray | None:
        """Memory that one thread needs for :meth:`run`."""
        return aligned(self._workspace) if self._compiled else None

    @property
    def most(self) -> int:
        """Steps of one row that are no longer than a wait for Ctrl-C may be."""
        return max(1, int(BLOCK_SECONDS / self.seconds)) if self._compiled else 1

    def of_one_row(self, arrays: Sequence[np.ndarray]) -> Callable[[int], Any]:
        """What takes so many steps of the one row of these arrays, in place, with the same inputs."""
        memory = self.workspace()
        if memory is None:
            return lambda steps: self.run(arrays, None, range(1), 0, steps)
        words, place, run = self.words(arrays, 0), address(memory), self._run
        args, gaps, jumps = map(ctypes.addressof, words)

        def take(steps: int, _alive: Any = (self, arrays, words, memory)) -> None:
            run(args, gaps, place, 0, 1, steps, jumps)

        return take

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
                self._in_python(arrays, rows, k)
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

    def _in_python(self, arrays: Sequence[np.ndarray], rows: range, step: int) -> None:
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
        work = rows * (marks[-1] - marks[0]) * self.seconds
        shares = threads or max(1, min(processors(), int(work / PAYS_SECONDS)))
        share = max(1, -(-rows // (shares * self.lanes))) * self.lanes
        parts = [range(start, min(start + share, rows)) for start in range(0, rows, share)]
        memory = [self.workspace() for _ in parts]
        stop = self.stopper(memory)

        def take(number: int, first: int, last: int) -> bool:
            for part, step, steps in self._blocks(parts[number], first, last):
                if stop.is_set():
                    return False
                self.run(arrays, memory[number], part, step, steps)
            return True

        try:
            return from_record_to_record(parts, marks, take, record, progress, stop)
        finally:
            for each in memory:
                self.release(each)

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
